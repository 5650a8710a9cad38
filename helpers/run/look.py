"""One sentence and every head of an encoder, on one page that needs no network; ``python -m helpers look`` writes it."""

from helpers import attention, encoders, places, tokens, views
from helpers.run.templates import template

LONGEST = 40
"""Tokens that a page can show."""


def page(sentence: str, model: str = "minilm") -> str:
    """HTML of a sentence's attention: the heads of a layer to point at, and bertviz' view of all.

    Raises:
        BookError: for a model that cannot be loaded, and for a text of more than :data:`LONGEST` tokens.
    """
    encoder = encoders.load(model)
    batch = tokens.encode(encoder, [sentence])
    [pieces] = batch.tokens
    if len(pieces) > LONGEST:
        raise places.BookError(f"The sentence has {len(pieces)} tokens; a page shows {LONGEST} at most.")
    maps = attention.maps(encoder, batch)[:, 0].numpy(force=True)
    view = views.attention_view(maps, pieces)
    every = views.bertviz("model_view", maps, pieces, height=100 * (encoder.layers + 1))
    shown = {"sentence": sentence, "encoder": encoder, "one": view.data, "every": every.data}
    return template("look.html.j2", escaped=True).render(shown)

"""A sentence in all heads: as one page that needs nothing else (:func:`look`), and as the live page, a small BERT and its tokenizer in one file, which ``book/_static/live`` runs in a reader's browser.

A page that was opened from a disk may not read files, but may run scripts. So the file is a script that hands over one string, a byte
a letter; on a server the page reads the same file as bytes. Matrices are rounded to 8 bits, each 32 numbers in steps of their own.
"""

import base64
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from helpers import attention, encoders, places, tokens, views
from helpers.run import atlas, template

SENTENCE = "The girl put an old letter under the bed."
#: Tokens of a sentence on a page that draws it.
LONGEST = 40
#: Tokens of an input, and bytes of a model that a page may ask its readers to load.
MOST_TOKENS, LIMIT = 48, 50_000_000
BERT = {"WordPiece", "BertNormalizer", "BertPreTokenizer", "BertModel", "gelu"}


def look(sentence: str, encoder: encoders.Encoder) -> str:
    """HTML of a sentence's attention: the heads of a layer to point at, and bertviz' view of all.

    Raises:
        BookError: for a text of more than :data:`LONGEST` tokens.
    """
    batch = tokens.encode(encoder, [sentence])
    [pieces] = batch.tokens
    if len(pieces) > LONGEST:
        raise places.BookError(f"The sentence has {len(pieces)} tokens; a page shows {LONGEST} at most.")
    maps = attention.maps(encoder, batch)[:, 0].numpy(force=True)
    view = views.attention_view(maps, pieces)
    every = views.bertviz("model_view", maps, pieces, height=100 * (encoder.layers + 1))
    shown = {"sentence": sentence, "encoder": encoder, "one": view.data, "every": every.data}
    return template("look.html.j2", escaped=True).render(shown)


def model(encoder: encoders.Encoder) -> bytes:
    """The script that holds an encoder and its tokenizer: the length of a header, the header, and the numbers.

    Raises:
        EncoderError: for another architecture than BERT's, another tokenizer than its WordPiece, and more than :data:`LIMIT`.
    """
    config, tokenizer = encoder.model.config, json.loads(encoder.tokenizer.backend_tokenizer.to_str())
    parts = {(tokenizer[part] or {}).get("type") for part in ("model", "normalizer", "pre_tokenizer")}
    arrays, numbers = {}, bytearray()
    for name, tensor in encoder.model.state_dict().items():
        weights, matrix = tensor.float().cpu().numpy(), tensor.dim() == 2
        arrays[name] = len(numbers), weights.size, matrix
        numbers += rounded(weights) if matrix else weights.tobytes()
        numbers += bytes(-len(numbers) % 4)
    header = {"arrays": arrays, "config": config.to_dict(), "tokenizer": tokenizer}
    text = json.dumps(header | {"frame": [encoder.special.cls, encoder.special.sep]}).encode()
    text += b" " * (-len(text) % 4)  # numbers lie where arrays of them may begin
    content, size = np.uint32(len(text)).tobytes() + text + numbers, len(text) + len(numbers)
    if parts | {type(encoder.model).__name__, config.hidden_act} != BERT or size > LIMIT:
        raise encoders.EncoderError(
            f"The live page runs a BERT with its WordPiece, of at most {LIMIT / 1e6:.0f} MB in 8 bits; "
            f"{encoder.name!r} is a {type(encoder.model).__name__} with {tokenizer['model']['type']}, {size / 1e6:.0f} MB."
        )
    for sign, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r")):
        content = content.replace(sign, escaped)
    return b'liveModel("' + content + b'")\n'


def rounded(weights: NDArray[np.float32]) -> bytes:
    """Numbers in 8 bits: the step of each 32, as the upper half of a float32, then how many steps each number is, -127 to 127."""
    groups = np.pad(weights.ravel(), (0, -weights.size % 32)).reshape(-1, 32)
    step = ((np.abs(groups).max(1) / 127 + 1e-30).astype("<f4").view("<u4") + 0xFFFF) >> 16  # rounded up
    return step.astype("<u2").tobytes() + np.rint(groups / (step << 16).view("<f4")[:, None]).astype("i1").tobytes()


def write(encoder: encoders.Encoder, folder: Path, base: str = ".", known: atlas.Content | None = None) -> str:
    """Write the model and the page's scripts into a folder, and return the page.

    Args:
        base: where the folder lies, from the page; "." for a page that stands alone, anything else for the element of a page.
        known: what the atlas, which then stands beside the page, shows of the model.
    """
    batch, script = tokens.encode(encoder, [SENTENCE]), model(encoder)
    maps = np.round(65535 * attention.maps(encoder, batch)[:, 0].cpu().numpy()).astype("<u2")
    for file in (places.ROOT / "book" / "_static" / "live").iterdir():
        places.write(folder / file.name, file.read_bytes())
    places.write(folder / "model.js", script)
    data = {"sentence": SENTENCE, "tokens": batch.tokens[0], "maps": base64.b64encode(maps).decode(), "base": base}
    data |= {"words": (batch.unit * ~batch.special)[0].tolist()}  # from 1; 0 of special tokens
    data |= {"bytes": len(script), "most": min(MOST_TOKENS, encoder.max_length - 50)}  # places may count from 50
    return template("live.html.j2").render(data, encoder=encoder, known=known, called=atlas.called)


def ask(tab: Any, **fields: object) -> dict[str, Any]:
    """What an open live page with its model answers to the fields of a link, as it saves it.

    Args:
        tab: a page of playwright.
    """
    tab.evaluate(
        "(link) => new Promise((done) => { addEventListener('hashchange', done, { once: true }); location.hash = link; })",
        urlencode(fields | {"asked": time.time_ns()}),
    )
    tab.wait_for_function("document.querySelector('.live .note').textContent.endsWith(' s.')")
    with tab.expect_download() as saved:
        tab.click(".live .save")
    return json.loads(saved.value.path().read_text("utf-8"))

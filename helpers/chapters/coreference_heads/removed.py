"""Chapter 05: the same mention with its antecedent in the input, and without.

Two inputs for each mention: the text from the beginning of its nearest antecedent on, and the text from the end of that
antecedent on. They differ in the antecedent's own words and in nothing else. As a control, the same is done with a mention
of something else before the antecedent, which then stays.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from helpers import attention
from helpers.chapters.coreference_heads.mentions import Passage, Placed
from helpers.corpora.treebanks import PRONOUN
from helpers.encoders import Encoder
from helpers.stats import Estimate, mean
from helpers.tokens import EncodedText


def cuts(passages: Sequence[Passage], *, other: bool = False) -> Iterator[tuple[Passage, Placed, Placed]]:
    """Each mention with an antecedent, and the mention that the input begins with or just behind.

    Args:
        other: not the nearest antecedent, but the last mention of another chain before it: the antecedent stays.
    """
    for passage in passages:
        for mention, right in zip(passage.mentions, passage.antecedent, strict=True):
            if not right.any():
                continue
            nearest = passage.mentions[int(np.flatnonzero(right)[-1])]
            before = [m for m in passage.mentions if m.chain != mention.chain and m.end <= nearest.start]
            first = nearest if not other else before[-1] if before else None
            if first is not None and first.end <= mention.head:
                yield passage, mention, first


def without(
    encoder: Encoder, passages: Sequence[Passage], head: tuple[int, int], *, other: bool = False, seed: int = 0
) -> Mapping[str, Mapping[str, Estimate]]:
    """What a head gives [CLS] from the head word of a mention, with and without the nearest antecedent.

    Args:
        other: a control, with and without a mention of another chain, the antecedent in both.

    Returns:
        "pronouns" and "nouns and names" -> "with", "without" and "difference", shares with an interval over documents;
        kinds that do not occur are left out.
    """
    found = list(cuts(passages, other=other))
    starts = [start for _, _, nearest in found for start in (nearest.start, nearest.end)]
    asked = [(passage, mention) for passage, mention, _ in found for _ in range(2)]
    inputs = [list(p.words[start:]) for (p, _), start in zip(asked, starts, strict=True)]
    places = [mention.head - start for (_, mention), start in zip(asked, starts, strict=True)]

    def to_cls(maps: Tensor, text: EncodedText) -> Tensor:
        """The weight from the mention's head word to [CLS], a mean over its pieces."""
        pieces = text.word == places[text.number]
        return maps[*head][pieces][:, text.cls].mean()

    shares = np.reshape(attention.measure(encoder, inputs, to_cls), (-1, 2))
    pronoun = np.array([mention.kind == PRONOUN for _, mention, _ in found], bool)
    document = [passage.document for passage, _, _ in found]
    kinds = {"pronouns": pronoun, "nouns and names": ~pronoun}
    return {kind: _compared(shares, kept, document, seed) for kind, kept in kinds.items() if kept.any()}


def _compared(
    shares: Float[np.ndarray, "mention 2"], kept: NDArray[np.bool_], document: Sequence[int], seed: int
) -> dict[str, Estimate]:
    with_, gone = (mean(np.where(kept, shares[:, n], np.nan), document, seed=seed) for n in range(2))
    return {"with": with_, "without": gone, "difference": gone - with_}

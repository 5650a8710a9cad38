"""A fresh run and the recorded ones of its chapter, side by side under short labels."""

from collections.abc import Mapping
from typing import Any

from helpers.corpora.readers import Corpus
from helpers.encoders import Encoder


def short(model: str) -> str:
    """The name of a model; of a folder or of an address with an owner the last part."""
    return model.split("/")[-1]


def runs(
    values: Mapping[str, Any], encoder: Encoder, corpus: Corpus, recorded: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Model and corpus -> values: those of this run, then those of the recorded runs.

    Args:
        recorded: model -> what was recorded, as :func:`helpers.results.runs` gives it.
    """
    others = {
        f"{short(name)}, {one['provenance']['corpus']['name']}": one["values"] for name, one in recorded.items()
    }
    return {f"{short(encoder.name)}, {corpus.name}": values, **others}

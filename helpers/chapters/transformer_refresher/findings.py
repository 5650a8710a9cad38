"""Chapter 01: the size of the papers' model beside that of the encoder at hand."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from helpers.record.verdicts import Finding, Judged, beside, judge

FINDINGS = (
    Finding(claim="clark2019 layers", label="layers", shown=lambda v: str(v["layers"])),
    Finding(claim="clark2019 heads_per_layer", label="heads in each layer", shown=lambda v: str(v["heads"])),
    Finding(claim="clark2019 heads_total", label="heads in all", shown=lambda v: str(v["layers"] * v["heads"])),
)
NOT_MEASURED = {
    "setup": (
        "clark2019 heads_total",
        "clark2019 layers",
        "clark2019 heads_per_layer",
        "simon2021 bert_base_heads",
        "koreanslides2022 configuration",
    ),
    "background": ("clark2019 pretraining_tokens", "koreanslides2022 mlm_mask_rate"),
    "definition": ("simon2021 squashing_function",),
}


def findings(values: Mapping[str, Any]) -> list[Judged]:
    """The chapter's findings on an encoder's ``layers`` and ``heads``."""
    return judge(FINDINGS, values)


table = partial(beside, findings)
"""Paper beside book: ``table(paper, {heading: values})``, see :func:`helpers.record.verdicts.beside`."""

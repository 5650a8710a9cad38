"""Chapter 01: the size of the papers' model beside that of the encoder at hand."""

from functools import partial

from helpers.record.verdicts import Claim, Finding, Row, beside, judge

FINDINGS = (
    Finding(Claim("clark2019 layers"), row=Row("layers", "layers")),
    Finding(Claim("clark2019 heads_per_layer"), row=Row("heads in each layer", "heads")),
    Finding(Claim("clark2019 heads_total"), row=Row("heads in all", lambda v: v["layers"] * v["heads"])),
)
NOT_MEASURED = {
    "setup": (
        "clark2019 heads_total, layers, heads_per_layer",
        "simon2021 bert_base_heads",
        "koreanslides2022 configuration",
    ),
    "background": ("clark2019 pretraining_tokens", "koreanslides2022 mlm_mask_rate"),
    "definition": ("simon2021 squashing_function",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""
table = partial(beside, findings)
"""Paper beside book: ``table(paper, {heading: values})``, see :func:`helpers.record.verdicts.beside`."""

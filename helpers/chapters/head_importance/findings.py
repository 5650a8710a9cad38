"""Chapter 11: what the papers report of models without a single head, and our numbers for it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from helpers.chapters.head_importance.measures import best_and_worst, share_helped
from helpers.record.verdicts import Claim, Finding, Ours, Row, Take, beside, judge

TITLE = "without a single head"
INTRO = "How many single heads can be missed, and whether some are better missed."
TASKS = {"paraphrase": "paraphrase", "entailment": "entailment", "qa": "questions", "mlm": "hidden words"}


def _significant(count: Any) -> int:
    return count["helps_significantly"] + count["hurts_significantly"]


FINDINGS = (
    *(
        Finding(
            Claim("kovaleva2019 random_head_removal_helps", "above", unit="count"),
            f"Removing a single head helps more often than it hurts, on {what} (heads that help vs heads that hurt)",
            Ours("helps", f"tasks.{task}.cost.score.heads.count", against="hurts"),
        )
        for task, what in (("paraphrase", "paraphrases"), ("rte", "RTE, answered by the head for entailment"))
    ),
    *(
        Finding(
            Claim("michel2019 table1_significant", "below", 10, unit="%"),
            f"Few single heads matter on {what}: removing one changes the loss significantly for fewer than one in ten (share of heads)",
            Ours(lambda count: _significant(count) / count["heads"], f"tasks.{task}.cost.loss.heads.count"),
        )
        for task, what in TASKS.items()
    ),
    *(
        Finding(
            Claim("michel2019 table1_significant_better", "at least", 1, unit="count"),
            f"Some heads hurt on {what}: the loss is significantly lower without them (how many)",
            Ours("helps_significantly", f"tasks.{task}.cost.loss.heads.count"),
        )
        for task, what in TASKS.items()
    ),
)
NOT_MEASURED = {
    "same": ("kovaleva2019 random_head_removal",),
    "elsewhere": ("michel2019 table1, base_bleu, table1_worst_head, table1_best_removal",),
    "setup": ("michel2019 table1_significance_level, table1_heads, bert_evaluation_sets",),
    "definition": ("michel2019 importance_score, pruning_orders",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


# ---------------------------------------------------------------------------------------- the chapter's tables, a task a column


def _change(which: str) -> Callable[[Any], str]:
    def shown(values: Any) -> str:
        layer, head, value = best_and_worst(values)[which]
        return f"{100 * value:+.1f} ({layer + 1}-{head + 1})"

    return shown


COUNT = "cost.score.heads.count"


def _helped(values: Any) -> str:
    count = values["cost"]["score"]["heads"]["count"]
    return f"{values['task']}: {share_helped(values):.0%} help, {count['hurts'] / count['heads']:.0%} hurt"


def _row(claim: str, label: str, shown: Take, of: str = "") -> Finding:
    return Finding(Claim(claim), ours=Ours(of=of), row=Row(label, shown))


OF_A_TASK = (
    _row("michel2019 base_bleu", "score of the whole model", lambda v: f"{100 * v['score'].value:.1f}"),
    _row("michel2019 table1_heads", "heads tested", "heads", COUNT),
    _row("michel2019 table1_significant", "removals that change the score significantly", _significant, COUNT),
    _row("michel2019 table1_significant_better", "of these, for the better", "helps_significantly", COUNT),
    _row("michel2019 table1_worst_head", "the removal that costs most", _change("down")),
    _row("michel2019 table1_best_removal", "the removal that gains most", _change("up")),
    _row("kovaleva2019 random_head_removal_helps", "removals of one head that help", _helped),
)
"""Rows of the chapter's tables, which have a column for each task and not for each record."""
of_a_task = partial(judge, OF_A_TASK)
"""The rows for what the chapter records of one task; Kovaleva's also reads ``task``, its name."""
table = partial(beside, of_a_task)
"""Paper beside book: ``table(paper, {heading: values of a task})``, see :func:`helpers.record.verdicts.beside`."""

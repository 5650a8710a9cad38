"""Chapter 11: what the papers report of models without a single head, and our numbers for it."""

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from helpers.chapters.head_importance.measures import best_and_worst, share_helped
from helpers.record.verdicts import Finding, Judged, beside, judge

TITLE = "without a single head"
INTRO = "How many single heads can be missed, and whether some are better missed."
TASKS = {"paraphrase": "paraphrase", "entailment": "entailment", "qa": "questions", "mlm": "hidden words"}


def _count(task: str, name: str) -> Callable[[Any], Any]:
    return lambda v: v["tasks"][task]["cost"][name]["heads"]["count"]


FINDINGS = (
    *(
        Finding(
            claim="kovaleva2019 random_head_removal_helps",
            text=f"Removing a single head helps more often than it hurts, on {what} (heads that help vs heads that hurt)",
            rule="above",
            unit="count",
            of=_count(task, "score"),
            value=itemgetter("helps"),
            against=itemgetter("hurts"),
        )
        for task, what in (("paraphrase", "paraphrases"), ("rte", "RTE, answered by the head for entailment"))
    ),
    *(
        Finding(
            claim="michel2019 table1_significant",
            text=f"Few single heads matter on {what}: removing one changes the loss significantly for fewer than one in ten (share of heads)",
            rule="below",
            than=10,
            unit="%",
            of=_count(task, "loss"),
            value=lambda count: (count["helps_significantly"] + count["hurts_significantly"]) / count["heads"],
        )
        for task, what in TASKS.items()
    ),
    *(
        Finding(
            claim="michel2019 table1_significant_better",
            text=f"Some heads hurt on {what}: the loss is significantly lower without them (how many)",
            rule="at least",
            than=1,
            unit="count",
            of=_count(task, "loss"),
            value=itemgetter("helps_significantly"),
        )
        for task, what in TASKS.items()
    ),
)
NOT_MEASURED = {
    "same": ("kovaleva2019 random_head_removal",),
    "elsewhere": (
        "michel2019 table1",
        "michel2019 base_bleu",
        "michel2019 table1_worst_head",
        "michel2019 table1_best_removal",
    ),
    "setup": ("michel2019 table1_significance_level", "michel2019 table1_heads", "michel2019 bert_evaluation_sets"),
    "definition": ("michel2019 importance_score", "michel2019 pruning_orders"),
}


def findings(values: Mapping[str, Any]) -> list[Judged]:
    """The chapter's findings on what it records."""
    return judge(FINDINGS, values)


# ---------------------------------------------------------------------------------------- the chapter's tables, a task a column


def _change(which: str) -> Callable[[Any], str]:
    def shown(values: Any) -> str:
        layer, head, value = best_and_worst(values)[which]
        return f"{100 * value:+.1f} ({layer + 1}-{head + 1})"

    return shown


def _score(values: Any) -> Any:
    return values["cost"]["score"]["heads"]["count"]


def _helped(values: Any) -> str:
    count = _score(values)
    return f"{values['task']}: {share_helped(values):.0%} help, {count['hurts'] / count['heads']:.0%} hurt"


OF_A_TASK = (
    Finding(
        claim="michel2019 base_bleu",
        label="score of the whole model",
        shown=lambda v: f"{100 * v['score'].value:.1f}",
    ),
    Finding(claim="michel2019 table1_heads", label="heads tested", of=_score, shown=lambda c: str(c["heads"])),
    Finding(
        claim="michel2019 table1_significant",
        label="removals that change the score significantly",
        of=_score,
        shown=lambda c: str(c["helps_significantly"] + c["hurts_significantly"]),
    ),
    Finding(
        claim="michel2019 table1_significant_better",
        label="of these, for the better",
        of=_score,
        shown=lambda c: str(c["helps_significantly"]),
    ),
    Finding(claim="michel2019 table1_worst_head", label="the removal that costs most", shown=_change("down")),
    Finding(claim="michel2019 table1_best_removal", label="the removal that gains most", shown=_change("up")),
    Finding(claim="kovaleva2019 random_head_removal_helps", label="removals of one head that help", shown=_helped),
)
"""Rows of the chapter's tables, which have a column for each task and not for each record."""


def of_a_task(values: Mapping[str, Any]) -> list[Judged]:
    """The rows for what the chapter records of one task; Kovaleva's also reads ``task``, its name."""
    return judge(OF_A_TASK, values)


table = partial(beside, of_a_task)
"""Paper beside book: ``table(paper, {heading: values of a task})``, see :func:`helpers.record.verdicts.beside`."""

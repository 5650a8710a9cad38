"""Chapter 11: what the papers report of models without a single head, and our numbers for it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from scipy.stats import binom

from helpers.chapters.head_importance.jobs import ALONE
from helpers.engine.estimates import Estimate
from helpers.record.verdicts import OWN, Claim, Finding, Number, Ours, Row, Take, beside, judge, taken

TITLE = "without a single head"
INTRO = (
    "How many single heads can be missed, and whether some are better missed. A head counts as missed if the score falls "
    "without it significantly, each head tested by itself at the paper's level; one whose removal helps does not count."
)
TASKS = {
    "paraphrase": "paraphrase",
    "entailment": "entailment",
    "rte": "RTE",
    "qa": "questions",
    "mlm": "hidden words",
}
COUNT = "cost.score.heads.count"
UNTRAINED = "a network without training solves no task that a head could be missed in"


def _solved(task: str, path: str) -> Callable[[Any], Any]:
    """A part of a task's record, where the task is solved on its texts: elsewhere nothing can be lost."""

    def part(values: Any) -> Any:
        found = values["tasks"][task]
        if found["above"]["all"].low <= 0:
            return None
        for key in filter(None, path.split(".")):
            found = found and found[key]
        return found

    return part


def _by_luck(count: Any) -> float:
    """How often at least as many heads would help at this level by chance, if no removal changed anything."""
    return float(binom.sf(count["helps_alone"] - 1, count["heads"], ALONE / 2))


def _loss_of_score(values: Any) -> Estimate:
    """What the head that is missed most costs, as a share of the score."""
    cost, score = values["extremes"]["worst"]["cost"], float(values["score"].value)
    return Estimate(cost.value / score, cost.low / score, cost.high / score, cost.replicates)


FINDINGS = (
    *(
        Finding(
            Claim("kovaleva2019 random_head_removal_helps", "above", unit="points"),
            f"{how}, a single head is more often better missed than not, on {what} (share of heads that help minus share that hurt)",
            Ours("balance", _solved(task, f"{part}.score.heads")),
            uncontrolled=UNTRAINED,
        )
        for task, what in (("paraphrase", "paraphrases"), ("rte", "RTE, answered by the head for entailment"))
        for part, how in (("even", "With even weights, as in the paper"), ("cost", "With weights of zero"))
    ),
    *(
        Finding(
            Claim("michel2019 table1_significant_worse", "below", 10, unit="%"),
            f"Few single heads are missed on {what}: the score falls at p < 0.01 without fewer than one in ten (share of heads)",
            Ours(lambda count: count["hurts_alone"] / count["heads"], _solved(task, COUNT)),
            uncontrolled=UNTRAINED,
        )
        for task, what in TASKS.items()
    ),
    *(
        Finding(
            Claim("michel2019 table1_worst_head", "below", 5, unit="%"),
            f"The head that is missed most costs less than a twentieth of the score on {what} (chosen on one half of the documents, measured on the other)",
            Ours(_loss_of_score, _solved(task, "")),
            uncontrolled=UNTRAINED,
        )
        for task, what in TASKS.items()
    ),
    *(
        Finding(
            Claim("michel2019 table1_significant_better", "at least", 1, unit="count"),
            f"Some heads hurt on {what}: the score rises without them at p < 0.01, more of them than by luck (how many)",
            Ours("helps_alone", _solved(task, COUNT), p=_by_luck),
            uncontrolled=UNTRAINED,
        )
        for task, what in TASKS.items()
    ),
)


def _drawn(path: str) -> Callable[[Any], list[Any]]:
    """A part of every task's record that the page draws."""

    def parts(values: Any) -> list[Any]:
        return [taken(path, one) for one in values["drawn"].values()]

    return parts


def _most_missed(counts: list[Any]) -> float:
    return max(count["hurts_alone"] / count["heads"] for count in counts)


def _least_steady(agreements: list[Estimate]) -> Estimate:
    return min(agreements, key=lambda one: float(one.low))


def _layers_missed(tasks: Any) -> float:
    """Share of the layers whose removal adds to the loss, with the whole interval; the lower one, of hidden words and of paraphrases."""
    wanted = [one for title, one in tasks.items() if title.startswith(("mlm ", "paraphrase "))]
    return min(float((taken("cost.loss.layers", one)["cost"].low > 0).mean()) for one in wanted)


def _share_gone(sizes: Any) -> float:
    return 1 - sizes["without them"]["all"] / sizes["whole"]["all"]


HEADLINES = (
    Finding(
        Claim(OWN, "below", 5, unit="%"),
        "Few single heads are missed in the score: on every task drawn, at most three of 72 lower it at p < 0.01 when they are switched off.",
        Ours(_most_missed, _drawn(COUNT)),
        uncontrolled=UNTRAINED,
    ),
    Finding(
        Claim(OWN, "above", 50, unit="%"),
        "Most layers are missed where hidden words are restored, and for paraphrases.",
        Ours(_layers_missed, "drawn"),
        uncontrolled=UNTRAINED,
    ),
    Finding(
        Claim(OWN, "above"),
        "Importance from one backward pass is steady: on other documents it agrees with itself.",
        Ours(_least_steady, _drawn("agreement.importance_twice")),
        uncontrolled="two halves of the documents are compared, and heads in an order drawn by chance would agree at 0",
    ),
    Finding(
        Claim(OWN, "below", 10, unit="%"),
        "Half of the heads, removed for real, are less than a tenth of the parameters.",
        Ours(_share_gone, "parameters"),
        uncontrolled="it is a count of parameters",
    ),
)
"""The chapter's own claims, first sentences of its summary."""

NOT_MEASURED = {
    "same": ("kovaleva2019 random_head_removal", "michel2019 table1_significant"),
    "elsewhere": ("michel2019 table1, base_bleu, table1_best_removal",),
    "setup": ("michel2019 table1_significance_level, table1_heads, bert_evaluation_sets",),
    "definition": ("michel2019 importance_score, pruning_orders",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


# ---------------------------------------------------------------------------------------- the chapter's tables, a task a column


def _change(which: str) -> Callable[[Any], str]:
    def shown(values: Any) -> str:
        (layer, head), cost = (values["extremes"][which][k] for k in ("head", "cost"))
        change = Number(-100 * float(cost.value), -100 * float(cost.high), -100 * float(cost.low))
        return f"{change:+.1f} ({layer + 1}-{head + 1})"

    return shown


def _alone(which: str) -> Callable[[Any], str]:
    """How many removals help or hurt at :data:`ALONE`, by score and by loss."""

    def shown(cost: Any) -> str:
        score, loss = (cost[name]["heads"]["count"] for name in ("score", "loss"))
        counts = f"{score[f'{which}_alone']}; {loss[f'{which}_alone']} of {score['heads']}"
        return f"{counts} (by luck {score['heads'] * ALONE / 2:.1f})"

    return shown


def _helped(part: str) -> Callable[[Any], str]:
    def shown(values: Any) -> str:
        if values[part] is None:
            return "not measured"
        count = values[part]["score"]["heads"]["count"]
        return f"{count['helps']} help, {count['hurts']} hurt"

    return shown


def _seen(values: Any) -> str:
    seen = values["cost"]["score"]["heads"]["visible"]
    return f"{100 * seen['alone']:.1f}; {100 * seen['together']:.1f}"


def _row(claim: str, label: str, shown: Take, of: str = "") -> Finding:
    return Finding(Claim(claim), ours=Ours(of=of), row=Row(label, shown))


OF_A_TASK = (
    _row("michel2019 base_bleu", "score of the whole model", lambda v: f"{100 * v['score'].value:.1f}"),
    _row("michel2019 table1_heads", "heads tested", "heads", COUNT),
    _row(
        "michel2019 table1_significant_worse",
        "missed, p < 0.01 for each: score falls; loss rises",
        _alone("hurts"),
        "cost",
    ),
    _row("michel2019 table1_significant_better", "better missed: score rises; loss falls", _alone("helps"), "cost"),
    _row(
        "michel2019 table1_significance_level",
        "level of the test, in the paper; smallest cost seen at it in 4 of 5 samples (points), here; all heads together",
        _seen,
    ),
    _row("michel2019 table1_worst_head", "the removal that costs most, held out", _change("worst")),
    _row("michel2019 table1_best_removal", "the removal that gains most, held out", _change("best")),
    _row("kovaleva2019 random_head_removal_helps", "removals, even weights (1/n)", _helped("even")),
    _row(
        "kovaleva2019 random_head_removal_helps", "removals, weights of 0 (the paper: even weights)", _helped("cost")
    ),
)
"""Rows of the chapter's tables, which have a column for each task and not for each record."""
of_a_task = partial(judge, OF_A_TASK)
"""The rows for what the chapter records of one task."""
table = partial(beside, of_a_task)
"""Paper beside book: ``table(paper, {heading: values of a task})``, see :func:`helpers.record.verdicts.beside`."""

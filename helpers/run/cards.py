"""Scores of a finished adapter, and its card: ``adapter.json`` for programs, ``README.md`` for people."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helpers import adapters, corpora, encoders, places, tasks
from helpers.encoders import Encoder
from helpers.engine.accumulators import StreamingMean
from helpers.results import Table
from helpers.run.course import RECIPES, Evaluation
from helpers.run.templates import template

NAMES = {
    "mlm": "masked words",
    "qa": "extractive question answering",
    "paraphrase": "paraphrase or not",
    "entailment": "entailment, neutral or contradiction",
    "rte": "entailment or not",
    "keywords": "keyphrases",
}
BOOK_TIER = "encyclopedia"


def write(folder: Path, card: Mapping[str, Any]) -> None:
    """Write ``adapter.json`` and the card for people."""
    places.write(folder / "adapter.json", json.dumps(card, indent=1) + "\n")
    places.write(folder / "README.md", as_markdown(card))


def read(folder: Path) -> dict[str, Any]:
    """The content of ``adapter.json``."""
    return json.loads((folder / "adapter.json").read_text("utf-8"))


def finish(folder: Path, model: str, *, device: str = "auto", progress: bool = True) -> dict[str, Any]:
    """Score the adapter in a folder as readers load it, in single precision, and write the scores into its card.

    A corpus that is not on this machine is left out, and the card says so.
    """
    card = read(folder)
    encoder = encoders.load(model, task=str(folder), device=device)
    card |= {"reference": RECIPES[card["task"]].reference, "notes": list(RECIPES[card["task"]].notes)}
    card["scores"] = [_scored(encoder, card["task"], e, progress) for e in RECIPES[card["task"]].evaluations]
    write(folder, card)
    if folder.parent.resolve() == places.adapters().resolve():
        places.write(folder.parent / "README.md", index(folder.parent))
    return card


def index(folder: Path) -> str:
    """All cards of the adapters in a folder as one page, and which tasks ``minilm`` has none for yet."""
    cards = [read(file.parent) for file in sorted(folder.glob("*/adapter.json"))]
    scored = [card for card in cards if card["scores"]]
    rows = []
    for card in scored:
        there = [row for row in card["scores"] if row["task"] == card["task"] and not row.get("missing")]
        quoted = [row for row in there if row["floors"]], [row for row in there if row["corpus"] == BOOK_TIER]
        trained = ", ".join(name for name, _ in card["data"]["train"])
        rows.append(
            [f"{card['model']}-{card['task']}", trained, *(_quoted(rows[0]) if rows else "" for rows in quoted)]
        )
    table = Table(["adapter", "trained on", "quoted score", "on the book's own texts"], rows)
    lines = ["# The adapters", "", str(table)]
    there = {c["task"] for c in scored if c["model"] == "minilm"} | {"rte"}  # entailment's serves for it
    if without := [task for task in adapters.LABELS if task not in there]:
        lines += [
            "",
            f"None for `minilm` yet: {', '.join(without)}. Train it with `python -m helpers train TASK`, or load a "
            "checkpoint that has the head.",
        ]
    for card in scored:
        text = as_markdown(card).strip().split("\n")
        lines += ["", *(f"#{line}" if line.startswith("#") else line for line in text)]
    return "\n".join([*lines, ""])


def _quoted(row: Mapping[str, Any]) -> str:
    """The scores of a row, but the loss."""
    values = ", ".join(f"{name} {found[0]:.3f}" for name, found in row["scores"].items() if name != "loss")
    return f"{_set(row)}: {values}"


def _set(row: Mapping[str, Any]) -> str:
    return f"{row['corpus']} {row['split'] or ''}".strip()


def _scored(encoder: Encoder, task: str, wanted: Evaluation, progress: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"task": wanted.task or task, "corpus": wanted.corpus, "split": wanted.split}
    row["floors"], row["reason"] = dict(wanted.floors), wanted.reason
    try:
        given = tasks.examples(row["task"], wanted.corpus, wanted.split, limit=wanted.limit)
    except corpora.CorpusError:
        return row | {"missing": True}
    scores = tasks.score(encoder, given, progress=progress)
    row |= {"examples": len(given), "scores": {}}
    if not math.isnan(chance := tasks.majority(given)):
        row["majority"] = round(chance, 4)
    for name in scores.values:
        mean = StreamingMean(())
        mean.add(scores.documents.tolist(), scores.values[name] * scores.weights, scores.weights)
        found = mean.estimate()
        row["scores"][name] = [round(float(end), 4) for end in (found.value, found.low, found.high)]
    return row


def summary(folder: Path) -> list[str]:
    """A line for each score of a finished adapter."""
    card = read(folder)
    found = []
    for row in card["scores"]:
        where = _set(row) + (f" as {row['task']}" if row["task"] != card["task"] else "")
        if row.get("missing"):
            found.append(f"{where}: not on this machine, not scored")
        for name, (value, low, high) in row.get("scores", {}).items():
            floor = f", floor {row['floors'][name]:.2f}" if name in row["floors"] else ""
            found.append(f"{where}: {name} {value:.3f} [{low:.3f}, {high:.3f}]{floor}")
    return found


def as_markdown(card: Mapping[str, Any]) -> str:
    """The card for people: what it is, how it was made, what it scores."""
    columns = list(card["curve"][0]) if card["curve"] else []
    head = ["training loss (nats)" if c == "loss" else c.replace("dev_", "development ") for c in columns]
    curve = str(Table(head, [[f"{row[c]:g}" for c in columns] for row in card["curve"]])) if columns else ""
    scores = str(_scores(card)) if card["scores"] else ""
    reasons = [f"{_set(row)}: {row['reason']}" for row in card["scores"] if row.get("reason")]
    given = {"name": NAMES[card["task"]], "curve": curve, "scores": scores, "reasons": reasons}
    return template("card.md.j2").render(card=card, **given)


def _scores(card: Mapping[str, Any]) -> Table:
    """The scores beside majorities and floors."""
    rows = []
    for row in card["scores"]:
        where = row["corpus"] + (f" ({row['split']})" if row["split"] else " (the book's own)")
        where += f", as {row['task']}" if row["task"] != card["task"] else ""
        if row.get("missing"):
            rows.append([where, "not here when scored", *[""] * 4])
            continue
        for name, (value, low, high) in row["scores"].items():
            floor = row["floors"].get(name)
            kept = "" if floor is None else f"{floor:.2f}: {'reached' if value >= floor else 'missed'}"
            chance = f"{row['majority']:.3f}" if name == "accuracy" and "majority" in row else ""
            shown = f"{value:.3f} [{low:.3f}, {high:.3f}]"
            rows.append([where, f"{row['examples']:,}", name, shown, chance, kept])
    return Table(["set", "examples", "score", "value", "majority", "floor"], rows)

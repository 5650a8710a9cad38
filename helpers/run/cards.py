"""Scores of a finished adapter, and its card: ``adapter.json`` for programs, ``README.md`` for people."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers import corpora, places
from helpers.engine import adapters, encoders, tasks
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import StreamingMean
from helpers.record.results import Table
from helpers.run.course import RECIPES, Evaluation

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
        cells = [
            _quoted(there, lambda row: bool(row["floors"])),
            _quoted(there, lambda row: row["corpus"] == BOOK_TIER),
        ]
        trained = ", ".join(name for name, _ in card["data"]["train"])
        rows.append([f"{card['model']}-{card['task']}", trained, *cells])
    table = Table(["adapter", "trained on", "quoted score", "on the book's own texts"], rows)
    lines = ["# The adapters", "", str(table)]
    without = [
        t for t in adapters.LABELS if t != "rte" and ("minilm", t) not in {(c["model"], c["task"]) for c in scored}
    ]
    if without:
        lines += [
            "",
            f"None for `minilm` yet: {', '.join(without)}. Train it with `python -m helpers train TASK`, or load a "
            "checkpoint that has the head.",
        ]
    for card in scored:
        text = as_markdown(card).strip().split("\n")
        lines += ["", *(f"#{line}" if line.startswith("#") else line for line in text)]
    return "\n".join([*lines, ""])


def _quoted(rows: Sequence[Mapping[str, Any]], wanted: Callable[[Mapping[str, Any]], bool]) -> str:
    """The scores of the first row that is wanted, but the loss."""
    row = next((r for r in rows if wanted(r)), None)
    if row is None:
        return ""
    values = ", ".join(f"{name} {found[0]:.3f}" for name, found in row["scores"].items() if name != "loss")
    return f"{row['corpus']} {row['split'] or ''}".strip() + f": {values}"


def _scored(encoder: Encoder, task: str, wanted: Evaluation, progress: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"task": wanted.task or task, "corpus": wanted.corpus, "split": wanted.split}
    row["floors"] = dict(wanted.floors)
    try:
        given = tasks.examples(row["task"], wanted.corpus, wanted.split, limit=wanted.limit)
    except corpora.CorpusError:
        return row | {"missing": True}
    scores = tasks.score(encoder, given, progress=progress)
    row |= {"examples": len(given), "scores": {}}
    if not math.isnan(chance := tasks.majority(given)):
        row["majority"] = round(chance, 4)
    for name in scores.values:
        mean = StreamingMean((1,))
        values = scores.values[name] * scores.weights
        mean.add(scores.documents.tolist(), values[:, None], scores.weights[:, None])
        estimate = mean.estimate()
        row["scores"][name] = [round(float(v[0]), 4) for v in (estimate.value, estimate.low, estimate.high)]
    return row


def summary(folder: Path) -> list[str]:
    """A line for each score of a finished adapter."""
    card = read(folder)
    found = []
    for row in card["scores"]:
        where = f"{row['corpus']} {row['split'] or ''}".strip()
        where += f" as {row['task']}" if row["task"] != card["task"] else ""
        if row.get("missing"):
            found.append(f"{where}: not on this machine, not scored")
        for name, (value, low, high) in row.get("scores", {}).items():
            floor = f", floor {row['floors'][name]:.2f}" if name in row["floors"] else ""
            found.append(f"{where}: {name} {value:.3f} [{low:.3f}, {high:.3f}]{floor}")
    return found


def as_markdown(card: Mapping[str, Any]) -> str:
    """The card for people: what it is, how it was made, what it scores."""
    s, data = card["settings"], card["data"]
    epochs = card["step"] / card["steps_an_epoch"]
    trained = ", ".join(f"{name} ({split})" for name, split in data["train"])
    corners = card["corners"]
    hidden = f"{s['hidden']:.0%} of the tokens hidden; " if card["task"] == "mlm" else ""
    falling = (
        "falling to 0 at the last step"
        if len(corners) == 4
        else "then through " + ", ".join(f"{rate:.2g} at step {step:g}" for step, rate in corners[3:])
    )
    lines = [
        f"# {card['model']}-{card['task']}: {NAMES[card['task']]}",
        "",
        f"A task adapter for `{card['model']}`: low-rank changes of every linear map of its layers (LoRA, rank {card['rank']}, scale "
        f"{card['scale']:g}) and a head (`helpers.engine.adapters.{card['head']}`). It loads with "
        f'`encoders.load("{card["model"]}", task="{card["task"]}")`, which adds the changes to the weights with sha256 '
        f"`{card['model_sha256'][:16]}…`. Made with `python -m helpers train {card['task']}`.",
        "",
        "## Training",
        "",
        f"Data: {trained}; {data['train_examples']:,} examples, and {data['dev_examples']} more held out as the development part. "
        "The book's own corpora were not trained on and nothing was chosen by the sets below.",
        "",
        f"Stopped at the best development score: step {card['step']:,} of {s['steps']:,} ({epochs:.1f} passes over the data, "
        f"{card['minutes']:g} minutes until then), batches of {s['batch_size']}, inputs of up to {s['max_length']} tokens, AdamW with "
        f"learning rate {s['rate']:g} after {s['warmup']} steps of warm-up, {falling}; "
        f"{'with' if s['dropout'] else 'without'} the encoder's dropout; {hidden}{s['precision']}; seed {s['seed']}.",
        "",
        *_table(card["curve"], {"loss": "training loss (nats)"}),
        "",
        "## Scores",
        "",
    ]
    versions = ", ".join(f"{n} {v}" for n, v in card["versions"].items())
    notes = [f"\n{note}" for note in card.get("notes", [])]
    return "\n".join(
        [
            *lines,
            *_scores(card),
            *notes,
            "",
            f"Made with {versions}. The texts it was trained on are under their own licences "
            "(`python -m helpers corpora`); none of them is in this folder.",
            "",
        ]
    )


def _scores(card: Mapping[str, Any]) -> list[str]:
    """The table of scores, beside majorities and floors."""
    if not card["scores"]:
        return ["Not scored yet."]
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
    said = "In single precision, with 95 % bootstrap intervals over documents. A floor is what the book asks for."
    return [said, "", str(Table(["set", "examples", "score", "value", "majority", "floor"], rows))]


def _table(rows: Sequence[Mapping[str, float | int]], names: Mapping[str, str]) -> list[str]:
    if not rows:
        return ["No score yet."]
    columns = list(rows[0])
    head = [names.get(c, c.replace("dev_", "development ")) for c in columns]
    return [str(Table(head, [[f"{row[c]:g}" for c in columns] for row in rows]))]

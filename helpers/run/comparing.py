"""The tables of a run beside those that travel with the book: what says that stored outputs are of this code."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from helpers import places, results
from helpers.run import pages

ROUNDING = 1e-4
"""How far a number may lie from the stored one where both were computed on processors of one name and model."""
REFITTED = "a probe is fitted anew, and its steps depend on the order in which a processor adds"
A_RATIO = "a ratio of gains over layers, whose denominator, what all layers add, may be close to 0"
FEW_TARGETS = "; of the smallest task 0.02 are four targets"
WEIGHED = "mixing weights are fitted anew; in layers, of which there are six or twelve"
DRAWN = "few of many drawn replicates lie on the other side of what is compared"
ENDS = ("", "_least", "_most")
TOLERANCES = {
    "probing_classifiers": {
        **dict.fromkeys(("score_over_baseline", "gain_over_baseline", "pair_accuracy"), (0.01, REFITTED)),
        **dict.fromkeys(("uas", "uas_by_sentences", "uas_on_control_task", "selectivity"), (0.02, REFITTED)),
        **{"structural_probe_uas": (0.03, REFITTED), "structural_probe_from_fit_to_fit": (0.03, REFITTED)},
        **{f"probe_weight_{of}_governor{end}": (0.2, REFITTED) for of in ("to", "from") for end in ENDS},
    },
    "layer_semantics": {
        **dict.fromkeys(("expected_layer", "later_expected_layer"), (3.0, A_RATIO)),
        **dict.fromkeys(("later_by_expected_layer", "later_by_expected_layer_both"), (3.0, A_RATIO)),
        **dict.fromkeys(("scalar_mix_score", "scalar_mix_gain", "layers_gain"), (0.02, REFITTED + FEW_TARGETS)),
        **dict.fromkeys(("least_certain_gain", "most_certain_gain"), (0.02, REFITTED + FEW_TARGETS)),
        **dict.fromkeys(("relation_gain", "relation_score"), (0.15, REFITTED + "; ten words have some relations")),
        **dict.fromkeys(("centre_of_gravity", "later_by_gravity", "later_by_gravity_of_random"), (0.1, WEIGHED)),
        "later_by_gravity_beyond_random": (0.1, WEIGHED),
        "more_concentrated": (0.1, REFITTED + "; in nats, between 0 and the logarithm of the number of layers"),
    },
    "head_importance": dict.fromkeys(("removal_cost_p", "removal_loss_p"), (0.005, DRAWN)),
    "keywords": {
        **dict.fromkeys(("keyword_weight", "keyword_precision", "all_heads_over_rule"), (0.02, REFITTED)),
        **dict.fromkeys(("ranking_precision", "ranking_gain", "phrase_f1"), (0.02, REFITTED)),
    },
}
"""Chapter -> quantity -> how far a number may lie from the stored one between processors, and why; about twice what two processors showed."""


def differences(new: Path, old: Path) -> dict[Path, str]:
    """Where the tables of two folders differ by more than is allowed.

    Returns:
        The tables that only one of them has, or that differ, each with a sentence on what is different; of a profile and
        model that is in both.
    """
    there = {file.relative_to(new) for file in new.rglob("*.csv")}
    stored = {file.relative_to(old) for name in there for file in (old / name.parent).glob("*.csv")}
    found = {}
    for name in sorted(there | stored):
        if name not in there or name not in stored:
            found[name] = f"{name} is not among the {'stored' if name in there else 'new'} tables."
            continue
        tables = [results.from_csv(root / name) for root in (new, old)]
        apart = differing(*tables, {} if same_processor(new / name, old / name) else TOLERANCES.get(name.stem, {}))
        if len(apart):
            where, now, before = apart.iloc[0]
            found[name] = f"{name}: {len(apart)} numbers differ; {where} is {now}, stored is {before}."
    return found


def rule_of(new: Path, old: Path) -> str:
    """Which tolerances hold for the tables of two folders, as a sentence."""
    both = [name for name in (file.relative_to(new) for file in new.rglob("*.csv")) if (old / name).is_file()]
    same = sum(same_processor(new / name, old / name) for name in both)
    return (
        f"{same} of {len(both)} tables are from processors of one name and model, where numbers may differ by {ROUNDING}; "
        "the others by what helpers/run/comparing.py allows between processors."
    )


def same_processor(*tables: Path) -> bool:
    """Whether tables were made on processors of one name and model."""
    made = [json.loads(table.with_suffix(".json").read_text("utf-8"))["provenance"] for table in tables]
    return made[0].get("processor", "") == made[1].get("processor")


def differing(new: pd.DataFrame, old: pd.DataFrame, tolerances: dict[str, tuple[float, str]]) -> pd.DataFrame:
    """Each number, end of an interval or name that is not the old one, or lies farther from it than its quantity's tolerance.

    Returns:
        A row for each: where it is, what it is, what it was.
    """
    key = ["network", "model", "quantity", "layer", "head", "of"]
    shown = [*results.NUMBERS, "label", "n"]
    names = dict.fromkeys(("model", "of", "label"), object)  # a column without any is one of numbers
    sides = [table[[*key, *shown]].astype(names).fillna(dict.fromkeys(names, "")) for table in (new, old)]
    sides = [side.sort_values([*key, "label"], kind="stable") for side in sides]
    sides = [side.assign(turn=side.groupby(key, dropna=False).cumcount()) for side in sides]
    both = sides[0].merge(sides[1], "outer", [*key, "turn"], suffixes=("", " before"), indicator="side")
    allowed = both.quantity.map(lambda name: tolerances.get(name, (ROUNDING, ""))[0])
    rows = []
    for name in shown:
        now, before = both[name], both[f"{name} before"]
        if name == "label":  # with a number it says only how that is shown
            apart = both.value.isna() & (now != before)
        else:
            now, before = now.astype(float), before.astype(float)
            apart = ~(np.isclose(now, before, rtol=0, atol=allowed, equal_nan=True))
        for at in np.flatnonzero(apart):
            where = " ".join(str(part) for part in both.loc[at, key] if pd.notna(part) and part != "")
            rows.append((f"{where}, {name}", now[at], before[at]))
    return pd.DataFrame(rows, columns=["where", "now", "before"])


def keep(executed: Path, root: Path) -> None:
    """Copy executed notebooks into ``notebooks/``, tables whose numbers have changed into ``data/results``, and the README's picture."""
    for file in sorted((executed / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        shutil.copy2(file, root / "notebooks" / file.name)  # with its time: it is no newer than what it was made of
    for name in differences(executed / "results", root / "data" / "results"):
        for part in (name, name.with_suffix(".json")):
            if (executed / "results" / part).is_file():
                places.write(root / "data" / "results" / part, (executed / "results" / part).read_bytes())
    (root / "book" / "_static" / "cover.png").write_bytes(pages.cover())

"""Chapter 12: its numbers as rows of the tidy table, and the order of tasks beside the paper's."""

from collections.abc import Mapping

from helpers import results
from helpers.results import Blocks, Record, Table, rows
from helpers.stats import Estimate

NETWORKS = {"": "trained", "@random": "random", "@shuffled": "shuffled"}
GAINING = ("part of speech", "dependency", "entity")


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values = record["values"]
    for network, name in NETWORKS.items():
        tasks = values.get("tasks" if not network else name, {})
        for task, found in tasks.items():
            common = {"network": network, "of": task, "n": found["sizes"][2], "split": "test"}
            yield rows("scalar_mix_score", found["scores"], "state", **common)
            yield rows("scalar_mix_gain", found["gains"], "layer", **common)
            yield rows("centre_of_gravity", found["gravity"], **common)
            yield rows("expected_layer", found["expected"], **common)
        yield from _in_brief(tasks, network)
        for pair, found in values["order"][name].items():
            common = {"network": network, "of": pair, "split": "test", "against": ""}
            yield rows("later_by_expected_layer", found["expected"], **common)
            yield rows("later_by_gravity", found["gravity"], **common)
            yield rows("later_by_gravity_of_random", found.get("random"), **common)
            yield rows("later_by_gravity_beyond_random", found.get("beyond"), **common)
            yield rows("more_concentrated", found["spread"], **common)
        yield rows("relation_gain", values["relation_gains"][name], network=network, split="test", against="")


def _in_brief(tasks: Record, network: str) -> Blocks:
    """What the chapter's headlines are about: the least and the most that the layers certainly bring to a task, and the later expected layer of two."""
    common = {"network": network, "split": "test", "against": ""}
    gains = {task: Estimate.from_record(found["gain"]) for task, found in tasks.items()}
    least = min((gain for task, gain in gains.items() if task in GAINING), key=lambda gain: gain.low, default=None)
    most = max(gains.values(), key=lambda gain: gain.low, default=None)
    expected = [tasks[task]["expected"] for task in GAINING[:2] if task in tasks]
    layers = [Estimate.from_record(layer) for layer in expected if layer is not None]
    yield rows("least_certain_gain", least, **common)
    yield rows("most_certain_gain", most, **common)
    yield rows("later_expected_layer", max(layers, key=lambda layer: layer.high, default=None), **common)


def _order(values: Record, key: str) -> str:
    known = {task: float(Estimate.from_record(one[key]).value) for task, one in values.items() if one[key]}
    return " < ".join(f"{task} {known[task]:.2f}" for task in sorted(known, key=known.get)) or "–"


def order(runs: Mapping[str, Record]) -> Table:
    """The order of tasks in the paper beside that in fresh or recorded values of several runs and their controls, by two measures."""
    stated = [results.paper("tenney2019", name) for name in ("task_order", "ner_order")]
    theirs = "; ".join(f"{' < '.join(one['value'])} ({one['where']})" for one in stated)
    rows = []
    for label, key in (("expected layer", "expected"), ("centre of gravity", "gravity")):
        rows.append([f"order by {label}", theirs, *(_order(values["tasks"], key) for values in runs.values())])
        for control in ("random", "shuffled"):
            orders = [_order(values.get(control, {}), key) for values in runs.values()]
            rows.append([f"the same, @{control}", "", *orders])
    return Table(["", f"Tenney et al. 2019: {stated[0]['model']}", *runs], rows)

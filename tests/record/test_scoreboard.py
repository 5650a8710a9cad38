"""The scoreboard: rules, what is taken from a record, what stands beside every claim, the page and the command."""

import json
import shutil
from functools import cache
from types import ModuleType

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from helpers import chapters, places
from helpers.__main__ import main
from helpers.chapters.distance_features import findings as distance_features
from helpers.chapters.no_op import findings as no_op
from helpers.chapters.pattern_types import findings as pattern_types
from helpers.chapters.surface_patterns import findings as surface_patterns
from helpers.engine.estimates import Estimate
from helpers.record import results, scoreboard
from helpers.record.scoreboard import Run
from helpers.record.verdicts import (
    ABSENT,
    ALSO,
    APART,
    DECIDED,
    FAILS,
    FIRM,
    HOLDS,
    MISSING,
    MIXED,
    RULES,
    UNDECIDED,
    Cell,
    Claim,
    Control,
    Finding,
    Number,
    Ours,
    Row,
    beside,
    judge,
    opened,
    overall,
    taken,
)
from helpers.run import notebooks

STORED = places.ROOT / "data" / "results"
BOARD = chapters.scoreboard()


CLAIM = "clark2019 heads_total"


def recorded(profile, model, module):
    return json.loads((STORED / profile / model / f"{module}.json").read_text("utf-8"))["values"]


@pytest.mark.parametrize(
    ("rule", "number", "bound", "verdict"),
    [
        ("above", (0.6, 0.51, 0.7), 0.5, HOLDS),
        ("above", (0.6, 0.5, 0.7), 0.5, UNDECIDED),
        ("above", (0.45, 0.4, 0.7), 0.5, UNDECIDED),
        ("above", (0.45, 0.4, 0.5), 0.5, UNDECIDED),
        ("above", (0.45, 0.4, 0.49), 0.5, FAILS),
        ("above", (0.6,), 0.5, HOLDS),
        ("above", (0.4,), 0.5, FAILS),
        ("above", (0.5,), 0.5, UNDECIDED),
        ("below", (0.4, 0.3, 0.49), 0.5, HOLDS),
        ("below", (0.4, 0.3, 0.5), 0.5, UNDECIDED),
        ("below", (0.55, 0.51, 0.6), 0.5, FAILS),
        ("below", (0.4,), 0.5, HOLDS),
        ("about", (50, 45, 60), 50, HOLDS),
        ("about", (60, 55, 63), 50, UNDECIDED),
        ("about", (40, 39, 41), 50, UNDECIDED),
        ("about", (63, 49, 70), 50, UNDECIDED),
        ("about", (50, 20, 90), 50, UNDECIDED),
        ("about", (70, 63, 80), 50, FAILS),
        ("about", (39.9,), 50, FAILS),
        ("at least", (1,), 1, HOLDS),
        ("at least", (0,), 1, FAILS),
        ("equal", (4,), 4, HOLDS),
        ("equal", (3,), 4, FAILS),
        ("every", (1,), 0, HOLDS),
        ("every", (2 / 3,), 0, MIXED),
        ("every", (0,), 0, FAILS),
        ("passed", (1,), 0, HOLDS),
        ("passed", (0,), 0, FAILS),
        ("shown", (80, 79, 81), 0, APART),
    ],
)
def test_rules(rule, number, bound, verdict):
    assert RULES[rule](Number(*number), bound) == verdict


@pytest.mark.parametrize(
    ("verdicts", "over_all"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([FAILS, FAILS], FAILS),
        ([HOLDS, FAILS], MIXED),
        ([UNDECIDED, HOLDS], HOLDS),
        ([UNDECIDED, FAILS], FAILS),
        ([UNDECIDED, UNDECIDED, ABSENT], UNDECIDED),
        ([HOLDS, FAILS, UNDECIDED], MIXED),
        ([ALSO, ALSO], ALSO),
        ([ALSO, HOLDS], MIXED),
        ([HOLDS, MISSING], HOLDS),
        ([ABSENT, FAILS], FAILS),
        ([ABSENT, ABSENT], ABSENT),
        ([MISSING], MISSING),
        ([], MISSING),
    ],
)
def test_models_that_decide_decide(verdicts, over_all):
    assert overall(verdicts) == over_all


def test_the_run_on_real_corpora_counts():
    runs = [Run("full", "a"), Run("book", "a"), Run("book", "b")]
    assert scoreboard.decisive(runs) == [Run("full", "a"), Run("book", "b")]


def test_where_the_run_on_real_corpora_has_no_number_the_other_counts():
    one = Finding(
        Claim(CLAIM, "above", unit="%"),
        ours=Ours("x"),
        control=(Control("@random", lambda v: {"x": v["y"]}), Control("next word", value="z")),
    )

    def line(stored):
        return scoreboard.line(one, {run: judge([one], values)[0] for run, values in stored.items()})

    found = line({Run("book", "a"): {"x": 1.0, "y": -1.0, "z": -0.5}, Run("full", "a"): {}})
    assert found.verdict == HOLDS and found.told.replace(FIRM, " ") == "holds, 1 of 1"
    assert found.cells[Run("book", "a", "@random")].verdict == FAILS
    told = found.cells[Run("book", "a")].text.replace(FIRM, " ")
    assert told == "100.0 % ●; next word: −50.0 % ○", "what is no network stands in the cell"
    for controls in ({"y": 1.0, "z": -1.0}, {"y": -1.0, "z": 1.0}):
        assert line({Run("book", "a"): {"x": 1.0} | controls}).verdict == ALSO
        assert line({Run("book", "a"): {"x": -1.0} | controls}).verdict == FAILS, "what fails, fails"
    assert line({Run("full", "a"): {}}).verdict == ABSENT
    assert line({}).verdict == MISSING
    two = line({Run("book", "a"): {"x": estimate(1, -1, 2)}, Run("full", "b"): {"x": 1.0}})
    assert two.told.replace(FIRM, " ") == "holds, 1 of 2"


@pytest.mark.parametrize("rule", ["above", "below", "about"])
@given(st.floats(-9, 9), st.floats(0, 5), st.floats(0, 5), st.floats(0.1, 9), st.floats(0, 1))
def test_more_data_decide_and_never_turn_round(rule, value, left, right, bound, share):
    """An interval that shrinks about the same number keeps what was decided; sides that are swapped swap the verdict."""
    judged = RULES[rule]
    wide = judged(Number(value, value - left, value + right), bound)
    narrow = judged(Number(value, value - share * left, value + share * right), bound)
    assert narrow == wide or wide == UNDECIDED
    if rule != "about":
        other = RULES[{"above": "below", "below": "above"}[rule]]
        swapped = judged(Number(-value, -value - right, -value + left), -bound)
        for verdict in (swapped, other(Number(value, value - left, value + right), bound)):
            assert verdict == {HOLDS: FAILS, FAILS: HOLDS}.get(wide, UNDECIDED)
    assert judged(Number(value), bound) != UNDECIDED or value == bound or rule == "about"


@given(st.lists(st.sampled_from([HOLDS, FAILS, UNDECIDED, ALSO, MIXED, ABSENT]), max_size=5), st.randoms())
def test_the_order_of_models_does_not_matter_and_swapped_verdicts_swap_the_whole(verdicts, random):
    swap = {HOLDS: FAILS, FAILS: HOLDS}
    mixed = random.sample(verdicts, len(verdicts))
    assert overall(mixed) == overall(verdicts)
    assert overall([swap.get(v, v) for v in verdicts]) == swap.get(overall(verdicts), overall(verdicts))
    assert overall([*verdicts, UNDECIDED]) == (overall(verdicts) if set(verdicts) - {ABSENT} else UNDECIDED)


def estimate(value, low, high):
    return {"value": value, "low": low, "high": high}


BY_LAYER = estimate([0.1, 0.5, 0.3], [0.0, 0.4, 0.2], [0.2, 0.6, 0.4])
LATER = estimate([0.2, 0.1, 0.9], [0.1, 0.0, 0.8], [0.3, 0.2, 1.0])
HEADS = estimate([[0.9, 0.1], [0.2, 0.7], [0.6, 0.8]], [[0] * 2] * 3, [[1] * 2] * 3)
SURFACE = {
    "summary": {
        "to_cls_by_layer": BY_LAYER,
        "to_sep_by_layer": LATER,
        "specialists": [
            {"role": "next", "layer": 0, "head": 1},
            {"role": "cls", "layer": 1, "head": 0},
            {"role": "sep", "layer": 1, "head": 1},
        ],
    },
    "patterns": {"stop": HEADS, "previous": HEADS, "next": estimate([[0.5]], [[0]], [[1]])},
}
GROUPS = {"2": {"silhouette": estimate(0.3, 0.2, 0.4)}, "3": {"silhouette": estimate(0.5, 0.4, 0.6)}}
DEPTHS = [["dense", "dense_vertical"], ["dense", "dense"], ["vertical", "dense_vertical"]]


@pytest.mark.parametrize(
    ("take", "record", "number"),
    [
        (surface_patterns.largest, {"found": BY_LAYER}, Number(0.5, 0.4, 0.6)),
        (surface_patterns.count("cls", "sep"), {"found": SURFACE["summary"]}, Number(2)),
        (surface_patterns.depth("previous"), {"found": SURFACE}, Number(0.625, words="1, 2, 3, 3 of 3")),
        (surface_patterns.depth("next"), {"found": SURFACE}, None),
        (surface_patterns.peaks, {"found": SURFACE}, Number(2 / 3, words="[CLS] 2, [SEP] 3, full stops 3")),
        (no_op.deep, {"found": {"gradient_ratio": HEADS}}, Number(0, words="0 of 2")),
        (no_op.at_peak("y"), {"found": {"share": HEADS, "y": HEADS}}, Number(0.9, 0, 1)),
        (distance_features.clearest, {"found": {"k": GROUPS}}, Number(3)),
        (distance_features.depths, {"found": {"fits": {"vertical": False}, "types": DEPTHS}}, None),
        (pattern_types.typical("b", "c"), {"found": {"typical": [["a", "b"], ["a", "a"], ["b", "c"]]}}, Number(0.5)),
    ],
)
def test_what_is_taken_from_a_record(take, record, number):
    found = Number.of(take(opened(record)["found"]))
    if number is None:
        assert found is None
    else:
        assert (found.value, found.words) == (pytest.approx(number.value), number.words)
        assert (found.low, found.high) == (pytest.approx(number.low), pytest.approx(number.high))


def test_a_list_is_not_a_number():
    for wrong in ([1.0], opened(SURFACE), Estimate.from_record(BY_LAYER), "many"):
        with pytest.raises(results.ResultError, match="take one of it"):
            Number.of(wrong)


def test_a_record_is_read_as_it_was_recorded():
    values = {"found": Estimate.from_record(BY_LAYER), 3: {"name": "x"}, "list": [Estimate.from_record(LATER)]}
    for record in (opened(results.plain(values)), opened(json.loads(json.dumps(results.plain(values))))):
        assert record["found"].value.tolist() == BY_LAYER["value"] and record["found"][1].low == 0.4
        assert record["3"]["name"] == "x" and record["list"][0].high.tolist() == LATER["high"]
        assert list(record) == ["found", "3", "list"] and len(record) == 3
        with pytest.raises(KeyError):
            record["nothing"]


def test_judging():
    values = {
        "head": estimate(0.8, 0.75, 0.85),
        "offset": estimate(0.6, 0.5, 0.7),
        "gain": estimate(0.2, 0.15, 0.25),
        "p": 0.04,
        "control": {"head": estimate(0.1, 0.05, 0.15), "offset": estimate(0.6, 0.5, 0.7)},
        "fits": False,
    }

    def judged(found=values, rule="above", than=0, **given):
        control = (Control("@random", "control"), Control("a guess", value="offset"))
        one = Finding(Claim(CLAIM, rule, than, unit="%"), ours=Ours(**{"value": "head"} | given), control=control)
        return judge([one], found)[0]

    pair = {"against": "offset"}
    against = pair | {"difference": "gain", "p": "p"}
    found = judged(than=60, **against)
    assert found.ours.text.replace(FIRM, " ") == "80.0 vs 60.0 %, +20.0 [15.0, 25.0] points ○"
    cell = judged(values | {"offset": estimate(-0.1, -0.2, 0)}, **against).ours
    assert cell.text.replace(FIRM, " ") == "80.0 vs −10.0 %, +20.0 [15.0, 25.0] points ●" and cell.verdict == HOLDS
    by_chance = judged(values | {"p": 0.05}, **against).ours
    assert by_chance.verdict == UNDECIDED and by_chance.text.endswith("◐")
    unpaired = judged(**pair)
    assert "[5.0" in unpaired.ours.text and unpaired.ours.verdict == ALSO, "the guess is above zero as well"
    assert unpaired.controls["@random"].verdict == FAILS
    assert unpaired.controls["a guess"].text.replace(FIRM, " ") == "60.0 [50.0, 70.0] % ●", "judged alone"
    assert judged(than=lambda v: v["offset"]).ours.verdict == HOLDS
    assert judged(than=80.0).ours.verdict == UNDECIDED and judged(than=86).ours.verdict == FAILS
    tested = judged(rule="passed", test="fits").ours
    assert tested.verdict == FAILS and tested.text.startswith("80.0")
    assert judged(value="nothing").ours == Cell("–", ABSENT)
    assert judged(value=lambda v: [][0]).ours == judged(value=lambda v: None).ours == Cell("–", ABSENT)
    assert judged(against="nothing").ours.verdict == ABSENT
    assert judged(of="nothing").ours.verdict == ABSENT and judged(of=lambda v: None).ours.verdict == ABSENT
    assert judged(value=None).ours.verdict == MISSING
    with pytest.raises(ZeroDivisionError):
        judged(value=lambda v: 1 / 0)


def test_a_chapters_table_and_the_scoreboard_read_the_same_findings():
    one = Finding(Claim("clark2019 layers", "above"), ours=Ours("n"))
    row = Finding(Claim("clark2019 heads_total"), ours=Ours(of="n"), row=Row("heads", lambda n: f"{n} heads"))
    other = Finding(Claim("tenney2019 task_order"), row=Row("order", lambda v: ""))
    found = beside(lambda v: judge((one, row, other), v), "clark2019", {"a": {"n": np.int64(3)}, "b": {}})
    assert found.columns == ["", "Clark et al. 2019: BERT-base", "a", "b"]
    assert found.rows == [["heads", "144 (section 1, section 2)", "3 heads", "not recorded"]]


@cache
def claims():
    papers = yaml.safe_load((places.ROOT / "data" / "papers.yml").read_text("utf-8"))
    return {(key, name): claim for key, paper in papers.items() for name, claim in paper["claims"].items()}


def test_every_claim_is_mapped_or_listed_with_a_reason():
    mapped = {tuple(f.claim.name.split()) for f in BOARD.findings()}
    listed = [(key, name.partition(":")[0]) for found in BOARD.not_measured().values() for key, name in found]
    assert mapped | set(listed) == set(claims())
    whole = [(key, name) for found in BOARD.not_measured().values() for key, name in found if ":" not in name]
    assert len(whole) == len(set(whole)) and not mapped & set(whole), "a claim stands in two places"


def test_every_row_of_the_papers_tables_is_used():
    used = {}
    for one in BOARD.findings():
        claim = one.claim
        for cited in (claim.cited, claim.cited and claim.cited.against):
            used.setdefault(tuple(claim.name.split()), []).extend([cited.row] if cited else [])
    left_out = {name.partition(": ")[2] for found in BOARD.not_measured().values() for _, name in found}
    for claim, rows in used.items():
        for row in claims()[claim].get("rows", ()):
            named = any(all(row[k] == v for k, v in pick.items()) for pick in rows) or left_out & set(
                map(str, row.values())
            )
            ordered = claim == ("guan2020", "type_shares")
            assert named or ordered, (claim, row)


def test_findings_stand_in_the_chapter_of_their_claim():
    for chapter, module in BOARD.modules.items():
        rows = (*module.FINDINGS, *getattr(module, "OF_A_TASK", ()))
        for one in rows:
            claim = one.claim
            assert claim.source["chapter"] == chapter[3:], claim.name
            assert claim.rule is None or (one.text and one.ours.value), (
                f"{claim.name} has a rule and nothing to judge"
            )
            assert claim.rule or one.row, claim.name
    claimed = {claim["chapter"] for claim in claims().values()}
    judging = [c for c, module in BOARD.modules.items() if module.FINDINGS or module.NOT_MEASURED]
    assert [c for c in notebooks.chapters() if c[3:] in claimed] == judging


NOT_IN_EVERY_RUN = {
    "clark2019 layers_over_half_previous": "no head gives over half of its attention to the previous token",
    "clark2019 layers_over_half_next": "the same for the next one",
    "tenney2019 task_order": "layers add nothing to one of two tasks",
    "tenney2019 ner_order": "the same, of entity types and another task",
    "tenney2019 entity_types": "layers add nothing",
}
"""Findings that ask for something a network may lack. For all others: where the part is recorded, so is the number."""


def test_every_way_to_a_number_finds_one():
    """What a run did not measure at all may be missing from its record, but from no chapter's records altogether."""
    stored = {}
    for file in STORED.glob("*/*/*.json"):
        values = json.loads(file.read_text("utf-8"))["values"]
        if "fits" in values:
            values["fits"]["vertical"] = True  # else nothing is asked of these heads
        for task in values.get("tasks", {}).values():
            if "above" in task:
                task["above"]["all"]["low"] = 1.0  # else nothing is asked of a task that is not solved
        stored.setdefault(file.stem, []).append(opened(values))
    seen = 0
    for chapter, module in BOARD.modules.items():
        records = stored.get(chapter[3:], [])
        for one in module.FINDINGS if records else ():
            for of in (one.ours.of, *(control.of for control in one.controls if control.value is None)):
                parts = [part for values in records if (part := taken(of, values)) is not None]
                whole = any(part is values for part, values in zip(parts, records, strict=False))
                ours, shown = one.ours, one.row and one.row.shown
                for take in filter(None, (ours.value, ours.against, ours.difference, ours.test, ours.p, shown)):
                    there = [taken(take, part) is not None for part in parts]
                    assert any(there) or (of != ours.of and one.claim.name in NOT_IN_EVERY_RUN), one
                    assert all(there) or one.claim.name in NOT_IN_EVERY_RUN or whole, one
                    seen += len(there)
    assert seen > 500


def chapter(rows, not_measured):
    """A findings module that is written in a test."""
    module = ModuleType("findings")
    vars(module).update(FINDINGS=rows, NOT_MEASURED=not_measured, findings=lambda values: judge(rows, values))
    return module


def test_the_tables_show_the_recorded_numbers():
    text = BOARD.chapter_text("04_dependency_heads").replace(FIRM, " ")
    line = next(line for line in text.split("\n") if line.startswith("| dobj:"))
    theirs = next(r for r in results.paper("clark2019", "table1")["rows"] if r["relation"] == "dobj")
    assert f"{theirs['accuracy']} vs {theirs['baseline']} % ({theirs['head']}; Table 1)" in line
    for profile, model in (("full", "minilm"), ("full", "mpnet")):  # the runs that count
        row = recorded(profile, model, "dependency_heads")["stanford"]["table"]["dobj"]
        value, low, high = (f"{100 * row['gain'][end]:.1f}" for end in ("value", "low", "high"))
        assert (
            f"{100 * row['held_out']['value']:.1f} vs {100 * row['baseline']['value']:.1f} %, +{value} [{low}, {high}] points"
            in line
        )
    control = recorded("full", "mpnet", "dependency_heads")["random_stanford"]["table"]["dobj"]
    assert f"mpnet@random {100 * control['held_out']['value']:.1f} vs" in line
    surface = BOARD.chapter_text("02_surface_patterns")
    last = recorded("full", "mpnet", "surface_patterns")["summary"]["entropy_from_cls_by_layer"]["value"][-1]
    assert f"| {last:.2f} [" in surface and "3.89 (section 3.3)" in surface


def test_a_changed_record_changes_the_page(tmp_path, monkeypatch):
    before = BOARD.chapter_text("07_divergence_map")
    file = tmp_path / "full" / "minilm" / "divergence_map.json"
    file.parent.mkdir(parents=True)
    record = json.loads((STORED / "full" / "minilm" / "divergence_map.json").read_text("utf-8"))
    record["values"]["beyond"]["all"]["model"]["difference"] = estimate(0.234, 0.1, 0.3)
    file.write_text(json.dumps(record))
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path))
    after = BOARD.chapter_text("07_divergence_map")
    assert "0.234" in after and "0.234" not in before
    line = next(line for line in after.split("\n") if line.startswith("| Heads of one layer"))
    was = next(line for line in before.split("\n") if line.startswith("| Heads of one layer"))
    assert (was.split(" | ")[1][:5], line.split(" | ")[1][:5]) == (HOLDS, MIXED), "the run on real texts counts"
    assert file in BOARD.sources(), "Sphinx reads the page again when this file changes"
    assert STORED / "full" / "mpnet" / "divergence_map.json" in BOARD.sources()


@pytest.mark.slow
def test_the_summary_adds_up():
    tally = BOARD.tally()
    total = sum(sum(found.values()) for found in tally.values())
    assert total == len(BOARD.findings())
    last = BOARD.summary().rows[-1]
    assert last[0] == "all" and sum(map(int, last[2:])) == total
    shown = BOARD.summary()._repr_markdown_()
    assert "{ref}`surface patterns <scoreboard-surface-patterns>`" in shown
    runs = {row[0]: list(map(int, row[1:])) for row in BOARD.by_run().rows}
    assert next(iter(runs)).endswith(", book")
    assert BOARD.by_run().columns[1:] == [f"{mark} {verdict}" for verdict, mark in DECIDED.items()]
    assert runs["minilm@random, full"][0] < runs["minilm, full"][0]
    listed = BOARD.reasons().rows
    assert sum(int(row[1]) for row in listed) == sum(map(len, BOARD.not_measured().values()))


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    run = lambda *arguments: CliRunner().invoke(main, ("scoreboard", *arguments))  # noqa: E731
    everything = run()
    assert (
        everything.exit_code == 0
        and "04_dependency_heads" in everything.output
        and "mpnet, full" in everything.output
    )
    one = run("04", "--model", "mpnet").output
    assert "02_surface" not in one and "minilm" not in one
    value = recorded("full", "mpnet", "dependency_heads")["stanford"]["table"]["dobj"]["held_out"]["value"]
    assert f"{100 * value:.1f}" in one and "{doc}" not in everything.output + one
    for arguments, says in ((("--model", "nobody"), "Recorded: minilm, mpnet"), (("99",), "has no chapter '99'")):
        failed = run(*arguments)
        assert failed.exit_code == 1 and says in failed.output
    own = tmp_path / "own" / "full" / "my--model"
    own.mkdir(parents=True)
    shutil.copyfile(STORED / "full" / "minilm" / "surface_patterns.json", own / "surface_patterns.json")
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path / "own"))
    assert "my/model, full" in run("surface_patterns", "--model", "my/model").output


def test_twelve_findings_come_first_survived_taken_away_and_undecided():
    table = BOARD.twelve()
    assert [row[1] for row in table.cells] == ["holds"] * 4 + ["also the control"] * 4 + ["undecided"] * 4
    assert len(table.columns) <= 6

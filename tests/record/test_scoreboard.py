"""The scoreboard: rules, what is taken from a record, what stands beside every claim, the page and the command."""

import json
import math
import re
import shutil
from functools import cache

import matplotlib.pyplot as plt
import pytest
import yaml
from click.testing import CliRunner

from helpers import places
from helpers.__main__ import main
from helpers.figures.series import VERDICT_STYLES, verdict_bars
from helpers.record import results, scoreboard
from helpers.record.scoreboard import ABSENT, APART, FAILS, HOLDS, MISSING, PART, RULES, Number, Run, take
from helpers.run import notebooks

STORED = places.ROOT / "data" / "results"
PAGE = (places.ROOT / "book" / "scoreboard.md").read_text("utf-8")


def recorded(profile, model, module):
    return json.loads((STORED / profile / model / f"{module}.json").read_text("utf-8"))["values"]


# ---------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("rule", "number", "bound", "verdict"),
    [
        ("above", (0.6, 0.51, 0.7), 0.5, HOLDS),
        ("above", (0.6, 0.5, 0.7), 0.5, PART),
        ("above", (0.5, 0.4, 0.7), 0.5, FAILS),
        ("above", (0.6,), 0.5, HOLDS),
        ("above", (0.4,), 0.5, FAILS),
        ("below", (0.4, 0.3, 0.49), 0.5, HOLDS),
        ("below", (0.4, 0.3, 0.5), 0.5, PART),
        ("below", (0.5, 0.3, 0.6), 0.5, FAILS),
        ("below", (0.4,), 0.5, HOLDS),
        ("about", (50, 45, 60), 50, HOLDS),
        ("about", (60, 55, 63), 50, PART),
        ("about", (40, 39, 41), 50, PART),
        ("about", (63, 49, 70), 50, FAILS),
        ("about", (39.9,), 50, FAILS),
        ("at least", (1,), 1, HOLDS),
        ("at least", (0,), 1, FAILS),
        ("equal", (4,), 4, HOLDS),
        ("equal", (3,), 4, FAILS),
        ("every", (1,), 0, HOLDS),
        ("every", (2 / 3,), 0, PART),
        ("every", (0.5,), 0, FAILS),
        ("every", (0,), 0, FAILS),
        ("passed", (1,), 0, HOLDS),
        ("passed", (0,), 0, FAILS),
        ("shown", (80, 79, 81), 0, APART),
    ],
)
def test_rules(rule, number, bound, verdict):
    assert RULES[rule](Number(*number), bound) == verdict


def test_every_rule_says_what_it_asks_and_is_tested():
    tested = test_rules.pytestmark[0].args[1]
    assert {case[0] for case in tested} == set(RULES)
    assert all(rule.__doc__ and rule.__doc__.endswith(".") for rule in RULES.values())
    shown = scoreboard.rules()._repr_markdown_()
    assert all(f"| {finding.rule} |" in shown for finding in scoreboard.findings())


@pytest.mark.parametrize(
    ("verdicts", "over_all"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([FAILS, FAILS], FAILS),
        ([HOLDS, FAILS], PART),
        ([PART, HOLDS], PART),
        ([PART, FAILS], PART),
        ([HOLDS, MISSING], HOLDS),
        ([ABSENT, FAILS], FAILS),
        ([ABSENT, ABSENT], ABSENT),
        ([MISSING], MISSING),
        ([], MISSING),
    ],
)
def test_a_finding_holds_if_it_does_for_every_model(verdicts, over_all):
    assert scoreboard.overall(verdicts) == over_all


def test_the_run_on_real_corpora_counts():
    runs = [Run("full", "a"), Run("book", "a"), Run("book", "b")]
    assert scoreboard._decisive(runs) == [Run("full", "a"), Run("book", "b")]


def test_where_the_run_on_real_corpora_has_no_number_the_other_counts():
    one = finding("above", {"value": ["x"]}, random={"value": ["y"]})
    stored = {Run("book", "a"): {"values": {"x": 1.0, "y": 1.0}}, Run("full", "a"): {"values": {}}}
    line = scoreboard._line(one, stored)
    assert line.verdict == HOLDS and line.also_random and Run("book", "a", random=True) in line.cells
    failed = scoreboard._line(one, {Run("book", "a"): {"values": {"x": -1.0, "y": 1.0}}})
    assert failed.verdict == FAILS and not failed.also_random, "a mark of the untrained says nothing about what fails"
    assert scoreboard._line(one, {Run("full", "a"): {"values": {}}}).verdict == ABSENT
    assert scoreboard._line(one, {}).verdict == MISSING


# ---------------------------------------------------------------------------------------- numbers


def estimate(value, low, high):
    return {"value": value, "low": low, "high": high}


RECORD = {
    "by_layer": estimate([0.1, 0.5, 0.3], [0.0, 0.4, 0.2], [0.2, 0.6, 0.4]),
    "later": estimate([0.2, 0.1, 0.9], [0.1, 0.0, 0.8], [0.3, 0.2, 1.0]),
    "heads": estimate([[0.9, 0.1], [0.2, 0.7], [0.6, 0.8]], [[0] * 2] * 3, [[1] * 2] * 3),
    "types": [["a", "b"], ["a", "a"], ["b", "b"]],
    "specialists": [{"role": "next", "layer": 0}, {"role": "cls", "layer": 1}, {"role": "sep", "layer": 1}],
    "k": {"2": {"s": estimate(0.3, 0.2, 0.4)}, "3": {"s": estimate(0.5, 0.4, 0.6)}},
    "weights": [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]],
    "fits": True,
    "plain": 0.25,
}


@pytest.mark.parametrize(
    ("spec", "number"),
    [
        ({"value": ["plain"]}, Number(0.25)),
        ({"value": ["by_layer", 1]}, Number(0.5, 0.4, 0.6)),
        ({"value": ["heads", 2, 0]}, Number(0.6, 0, 1)),
        ({"value": ["fits"]}, Number(1, words="yes")),
        ({"at": ["k", "3"], "value": ["s"]}, Number(0.5, 0.4, 0.6)),
        ({"value": ["by_layer"], "take": "largest"}, Number(0.5, 0.4, 0.6)),
        ({"value": ["by_layer"], "take": "last"}, Number(0.3, 0.2, 0.4)),
        ({"value": ["by_layer"], "take": "mean but last"}, Number(0.3)),
        ({"value": ["specialists"], "take": "count", "where": {"role": "next"}}, Number(1)),
        ({"value": ["specialists"], "take": "count", "where": {"role": ["cls", "sep"]}}, Number(2)),
        ({"value": [["heads"], ["by_layer"]], "take": "count", "over": 0.4}, Number(5)),
        ({"value": ["heads"], "take": "share", "under": 0.5}, Number(2 / 6)),
        ({"value": ["types"], "take": "share", "among": ["a"]}, Number(0.5)),
        ({"value": ["heads"], "take": "depth", "over": 0.5}, Number(0.625, words="1, 2, 3, 3 of 3")),
        ({"value": ["heads"], "take": "depth", "over": 0.95}, None),
        (
            {"value": [["by_layer"], ["later"], ["heads"]], "take": "peaks", "names": ["x", "y", "z"]},
            Number(2 / 3, words="x 2, y 3, z 3"),
        ),
        ({"value": ["types"], "take": "depths", "names": ["a", "b"]}, Number(1, words="a 1.7, b 2.3")),
        ({"value": ["types"], "take": "depths", "names": ["a", "c"]}, None),
        (
            {"value": [["plain"], ["k", "2", "s"], ["k", "3", "s"]], "take": "ordered", "names": ["p", "q", "r"]},
            Number(1, words="p 0.25, q 0.30, r 0.50"),
        ),
        ({"value": ["k"], "take": "best key", "by": ["s"]}, Number(3)),
        ({"value": [["by_layer"], ["later"]], "take": "close", "within": 1.0}, Number(1)),
        ({"value": [["by_layer"], ["later"]], "take": "close", "within": 0.9}, Number(0.5)),
        (
            {"value": ["heads"], "take": "deep", "column": [1], "under": 0.75, "start": 0.3},
            Number(0.5, words="1 of 2"),
        ),
        ({"value": [["heads"], ["heads"]], "take": "at peak", "column": [1]}, Number(0.8, 0, 1)),
        ({"value": [["heads"], ["heads"]], "take": "at peak", "column": [0, 1]}, Number(0.9, 0, 1)),
        ({"value": [["by_layer", 0], ["by_layer", 1]], "take": "total"}, Number(0.6, 0.4, 0.8)),
        ({"value": [["k", "2", "s"], ["k", "3", "s"], ["plain"]], "take": "ratio"}, Number(3.2)),
        ({"value": ["weights"], "take": "concentration"}, Number(0.5 * math.log(1.5) + 0.5 * math.log(1.5))),
        ({"value": ["nowhere", "at all"]}, None),
        ({"value": [["plain"], ["nowhere"]], "take": "total"}, None),
    ],
)
def test_what_is_taken_from_a_record(spec, number):
    found = take(RECORD, spec)
    if number is None:
        assert found is None
        return
    assert (found.value, found.words) == (pytest.approx(number.value), number.words)
    assert (found.low, found.high) == (pytest.approx(number.low), pytest.approx(number.high))


def test_every_way_to_take_a_number_is_tested():
    tested = {case[0].get("take", "number") for case in test_what_is_taken_from_a_record.pytestmark[0].args[1]}
    assert tested == set(scoreboard.TAKES)


def test_a_list_is_not_a_number():
    with pytest.raises(results.ResultError, match="a way to take one"):
        take(RECORD, {"value": ["specialists"]})


def test_differences_and_how_numbers_are_written():
    difference = Number(0.6, 0.5, 0.7).minus(Number(0.7, 0.6, 0.8))
    assert f"{difference.times(100):+.1f}" == f"−10.0 [−30.0,{scoreboard.FIRM}10.0]"
    assert f"{Number(3).minus(Number(1, 0, 2)):.0f}" == "2"
    assert f"{Number(1, words='yes'):.3f}" == "yes"


def finding(rule, ours, *, than=0.0, unit="%", random=None):
    return scoreboard.Finding("02_x", "clark2019", "table1", "", "", rule, than, ours, random, unit)


def test_judging():
    values = {
        "head": estimate(0.8, 0.75, 0.85),
        "offset": estimate(0.6, 0.5, 0.7),
        "gain": estimate(0.2, 0.15, 0.25),
        "p": 0.04,
        "control": {"head": estimate(0.1, 0.05, 0.15), "offset": estimate(0.6, 0.5, 0.7)},
        "fits": False,
    }
    ours = {"value": ["head"], "against": ["offset"], "difference": ["gain"], "p": ["p"]}
    against = finding("above", ours, random={"at": ["control"], "value": ["head"], "against": ["offset"]})
    cell = scoreboard.judge(against, values)
    assert cell.text.replace(scoreboard.FIRM, " ") == "80.0 vs 60.0, +20.0 [15.0, 25.0] ●" and cell.verdict == HOLDS
    by_chance = scoreboard.judge(against, values | {"p": 0.05})
    assert by_chance.verdict == PART and by_chance.text.endswith("◐")
    unpaired = scoreboard.judge(finding("above", {"value": ["head"], "against": ["offset"]}), values)
    assert "[5.0" in unpaired.text and unpaired.verdict == HOLDS
    assert scoreboard.judge(against, values, random=True).verdict == FAILS
    assert (
        scoreboard.judge(finding("above", {"value": ["head"]}, than={"value": ["offset"]}), values).verdict == HOLDS
    )
    assert scoreboard.judge(finding("above", {"value": ["head"]}, than=80.0), values).verdict == FAILS
    tested = scoreboard.judge(finding("passed", {"value": ["head"], "test": ["fits"]}), values)
    assert tested.verdict == FAILS and tested.text.startswith("80.0")
    assert scoreboard.judge(finding("above", {"value": ["nothing"]}), values) == scoreboard.Cell("–", ABSENT)
    assert scoreboard.judge(finding("above", {"value": ["head"], "against": ["nothing"]}), values).verdict == ABSENT
    assert scoreboard.judge(finding("above", None), values).verdict == MISSING


# ---------------------------------------------------------------------------------------- what stands beside what


@cache
def claims():
    papers = yaml.safe_load((places.ROOT / "data" / "papers.yml").read_text("utf-8"))
    return {(key, name): claim for key, paper in papers.items() for name, claim in paper["claims"].items()}


def test_every_claim_is_mapped_or_listed_with_a_reason():
    mapped = {(f.paper, f.claim) for f in scoreboard.findings()}
    listed = [(key, name.partition(":")[0]) for found in scoreboard.not_measured().values() for key, name in found]
    assert mapped | set(listed) == set(claims())
    whole = [(key, name) for found in scoreboard.not_measured().values() for key, name in found if ":" not in name]
    assert len(whole) == len(set(whole)) and not mapped & set(whole), "a claim stands in two places"


def test_every_row_of_the_papers_tables_is_used():
    used = {}
    for chapter in scoreboard._file()["chapters"].values():
        for entry in chapter.get("findings") or ():
            for row in entry.get("each", [{}]):
                spec = scoreboard._filled(entry.get("paper", {}), row)
                picked = [spec.get("row"), (spec.get("against") or {}).get("row")]
                used.setdefault(tuple(entry["claim"].split()), []).extend(p for p in picked if p)
    left_out = {name.partition(": ")[2] for found in scoreboard.not_measured().values() for _, name in found}
    for claim, rows in used.items():
        for row in claims()[claim].get("rows", ()):
            named = any(all(row[k] == v for k, v in pick.items()) for pick in rows) or left_out & set(
                map(str, row.values())
            )
            ordered = claim == ("guan2020", "type_shares")
            assert named or ordered, (claim, row)


def test_findings_stand_in_the_chapter_of_their_claim():
    for one in scoreboard.findings():
        assert results.paper(one.paper, one.claim)["chapter"] == one.module
    written = set(notebooks.chapters())
    assert all(
        chapter in scoreboard.chapters()
        for chapter in written
        if any(c["chapter"] == chapter[3:] for c in claims().values())
    )


def test_every_mapped_path_is_in_the_records():
    """What a run did not measure at all may be missing from its record, but from no chapter's records altogether."""
    stored = {}
    for file in STORED.glob("*/*/*.json"):
        stored.setdefault(file.stem, []).append(json.loads(file.read_text("utf-8"))["values"])
    seen = 0
    for one in scoreboard.findings():
        if one.module not in stored:
            continue
        assert one.ours is not None, f"{one.chapter} is recorded: say where {one.claim} is ({one.text})"
        for spec in filter(None, (one.ours, one.random)):
            for part in {"value", "against", "difference", "test", "p"} & set(spec):
                for path in spec[part] if isinstance(spec[part][0], list) else [spec[part]]:
                    path = [*spec.get("at", ()), *path]
                    there = [scoreboard.at(values, path) is not None for values in stored[one.module]]
                    assert any(there), (one.chapter, one.claim, path)
                    whole = [
                        name in values and (len(path) < 2 or scoreboard.at(values, path[:2]) is not None)
                        for values, name in zip(stored[one.module], [path[0]] * len(there), strict=True)
                    ]
                    assert there == whole or path[-1] in ("largest_peak_of_broad", "expected"), (one.chapter, path)
                    seen += len(there)
    assert seen > 500


def test_mistakes_in_the_file_are_named():
    entry = {"claim": "clark2019 table1", "finding": "", "rule": "above", "ours": None}
    with pytest.raises(results.ResultError, match="no rule 'nonsense'"):
        scoreboard._finding("04_x", entry | {"rule": "nonsense"})
    with pytest.raises(results.ResultError, match="0 rows with"):
        scoreboard._finding("04_x", entry | {"paper": {"row": {"relation": "none"}, "field": "accuracy"}})
    with pytest.raises(results.ResultError, match="No claim 'table9'"):
        scoreboard._finding("04_x", entry | {"claim": "clark2019 table9"})
    with pytest.raises(results.ResultError, match="no chapter '99_x'"):
        scoreboard.findings("99_x")


# ---------------------------------------------------------------------------------------- the page


def test_the_tables_show_the_recorded_numbers():
    text = scoreboard.chapter_text("04_dependency_heads").replace(scoreboard.FIRM, " ")
    line = next(line for line in text.split("\n") if line.startswith("| dobj:"))
    theirs = next(r for r in results.paper("clark2019", "table1")["rows"] if r["relation"] == "dobj")
    assert f"{theirs['accuracy']} vs {theirs['baseline']} % ({theirs['head']}; Table 1)" in line
    for profile, model in (("book", "minilm"), ("full", "minilm"), ("full", "mpnet")):
        row = recorded(profile, model, "dependency_heads")["stanford"]["table"]["dobj"]
        value, low, high = (f"{100 * row['gain'][end]:.1f}" for end in ("value", "low", "high"))
        assert (
            f"{100 * row['held_out']['value']:.1f} vs {100 * row['baseline']['value']:.1f}, +{value} [{low}, {high}]"
            in line
        )
    control = recorded("full", "mpnet", "dependency_heads")["random_stanford"]["table"]["dobj"]
    assert f"| {100 * control['held_out']['value']:.1f} vs" in line
    surface = scoreboard.chapter_text("02_surface_patterns")
    last = recorded("full", "mpnet", "surface_patterns")["summary"]["entropy_from_cls_by_layer"]["value"][-1]
    assert f"| {last:.2f} [" in surface and "3.89 (section 3.3)" in surface


def test_a_changed_record_changes_the_page(tmp_path, monkeypatch):
    before = scoreboard.chapter_text("07_divergence_map")
    file = tmp_path / "full" / "minilm" / "divergence_map.json"
    file.parent.mkdir(parents=True)
    record = json.loads((STORED / "full" / "minilm" / "divergence_map.json").read_text("utf-8"))
    record["values"]["model"]["closeness"]["layer"]["ratio"] = estimate(1.234, 1.1, 1.3)
    file.write_text(json.dumps(record))
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path))
    after = scoreboard.chapter_text("07_divergence_map")
    assert "1.234" in after and "1.234" not in before
    line = next(line for line in after.split("\n") if line.startswith("| Heads of one layer"))
    assert f"| {PART}" in line, "minilm now fails, mpnet holds"
    assert file in scoreboard.sources(), "Sphinx reads the page again when this file changes"
    assert STORED / "full" / "mpnet" / "divergence_map.json" in scoreboard.sources()


def test_chapters_without_records_are_shown_as_such(monkeypatch):
    monkeypatch.setattr(results, "runs", lambda *_, **__: {})
    for chapter in scoreboard.chapters():
        text = scoreboard.chapter_text(chapter)
        assert "Nothing is recorded yet." in text
        assert text.count(MISSING) == len(scoreboard.findings(chapter))
    assert {v for found in scoreboard.tally().values() for v in found} == {MISSING}


def test_only_chapters_that_are_in_the_book_are_linked(tmp_path, monkeypatch):
    there = notebooks.chapters()
    for chapter in scoreboard.chapters():
        assert ("{doc}" in scoreboard.linked(chapter)) == (chapter in there)
    assert scoreboard.linked("99_nothing") == "99"
    monkeypatch.setattr(scoreboard, "FILE", tmp_path / "scoreboard.yml")
    (tmp_path / "_toc.yml").write_text("root: book/intro\n")
    assert scoreboard.linked(there[0]) == there[0][:2]


def test_the_page_has_a_part_for_every_chapter_with_findings():
    directives = re.findall(r"```\{scoreboard\} (\S+)", PAGE)
    assert len(directives) == len(set(directives))
    chapters = [d for d in directives if re.match(r"\d\d_", d)]
    assert chapters == [c for c in scoreboard.chapters() if scoreboard.findings(c)]
    assert set(directives) - set(chapters) == {"summary", "runs", "rules", "reasons"}
    for chapter in chapters:
        assert f"({scoreboard.label(chapter)})=\n## Chapter {int(chapter[:2])}:" in PAGE
    for where in re.findall(r"\{doc\}`[^<`]*<\.\./(notebooks/[^>`]+)>`", PAGE):
        assert (places.ROOT / f"{where}.ipynb").is_file()


def test_the_summary_adds_up():
    tally = scoreboard.tally()
    total = sum(sum(found.values()) for found in tally.values())
    assert total == len(scoreboard.findings())
    last = scoreboard.summary().rows[-1]
    assert last[0] == "all" and sum(map(int, last[2:])) == total
    shown = scoreboard.summary()._repr_markdown_()
    assert "{ref}`surface patterns <scoreboard-surface-patterns>`" in shown
    runs = {row[0]: list(map(int, row[1:])) for row in scoreboard.by_run().rows}
    assert next(iter(runs)).endswith(", book") and sum(runs["minilm@random, full"][:2]) < sum(
        runs["minilm, full"][:2]
    )
    listed = scoreboard.reasons().rows
    assert sum(int(row[1]) for row in listed) == sum(map(len, scoreboard.not_measured().values()))


def test_no_number_of_ours_is_typed():
    """The prose of the page and the sentences of the findings name bounds and set-ups, never a result."""
    prose = re.sub(r"```.*?```|^---.*?---$", "", PAGE, flags=re.S | re.M)
    assert not re.search(r"\d\.\d", prose.replace("p below 0.05", ""))
    assert not re.search(r"\d+(\.\d+)? ?%", prose.replace("95 % interval", ""))


# ---------------------------------------------------------------------------------------- terminal, figure


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


def test_the_figure_shows_the_counts():
    figure = verdict_bars({"a": {HOLDS: 3, FAILS: 1}, "b": {MISSING: 2}}, order=scoreboard.VERDICTS)
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.texts] == ["3", "1", "2"]
    assert [bar.get_width() for bar in ax.patches] == [3, 1, 2]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"] and ax.yaxis_inverted()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [HOLDS, FAILS, MISSING]
    assert set(VERDICT_STYLES) == set(scoreboard.VERDICTS)
    plt.close(figure)

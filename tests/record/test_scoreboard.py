"""The scoreboard: rules, claims against hand-made tables, what stands beside every number of the papers, the page and the command."""

import html
import math
import shutil
from itertools import chain, product

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from conftest import estimate

from helpers import places, results, scoreboard
from helpers.__main__ import main
from helpers.results import rows
from helpers.run import notebooks, part
from helpers.scoreboard import ABSENT, ALSO, APART, FAILS, FIRM, HOLDS, LEVEL, MIXED, UNDECIDED

CHAPTERS = scoreboard.chapters()
PAPERS = yaml.safe_load((places.ROOT / "data" / "papers.yml").read_text("utf-8"))


@pytest.fixture(scope="module")
def board():
    return scoreboard.judged()


@pytest.mark.parametrize(
    ("rule", "bound", "verdicts"),
    [
        ("above", 0.5, {HOLDS: [(0.6, 0.51, 0.7), (0.6,)], FAILS: [(0.45, 0.4, 0.49)]}),
        ("above", 0.5, {UNDECIDED: [(0.6, 0.5, 0.7), (0.45, 0.4, 0.5)], LEVEL: [(0.5,), (0.5, 0.46, 0.54)]}),
        ("below", 0.5, {HOLDS: [(0.47, 0.46, 0.48)], FAILS: [(0.52, 0.51, 0.53)], UNDECIDED: [(0.5, 0.45, 0.52)]}),
        ("about", 50, {HOLDS: [(50, 45, 60)], UNDECIDED: [(60, 55, 63), (50, 20, 90)], FAILS: [(70, 63, 80)]}),
        ("around", 5, {HOLDS: [(4, 3, 5)], UNDECIDED: [(4, -math.inf, math.inf)], FAILS: [(4, 3, 4.9), (6, 5.1, 7)]}),
        ("at least", 1, {HOLDS: [(1,)], FAILS: [(0,)]}),
        ("equal", 4, {HOLDS: [(4,)], FAILS: [(3,)]}),
        ("every", 0, {HOLDS: [(1,)], MIXED: [(2 / 3,)], FAILS: [(0,)]}),
        ("passed", 0, {HOLDS: [(1,)], FAILS: [(0,)]}),
        ("shown", 0, {APART: [(80, 79, 81)]}),
    ],
)
def test_rules(rule, bound, verdicts):
    for verdict, numbers in verdicts.items():
        for number in numbers:
            assert scoreboard.verdict(scoreboard.Number(*number), rule, bound, margin=0.05) == verdict, number


def test_models_that_decide_decide():
    assert scoreboard.overall([ALSO, HOLDS]) == ALSO, "the weaker"
    for decided in (HOLDS, FAILS, ALSO, MIXED, LEVEL):
        votes = ([decided], [decided, decided], [UNDECIDED, decided], [decided, ABSENT])
        assert {scoreboard.overall(each) for each in votes} == {decided}
    assert (
        scoreboard.overall([HOLDS, FAILS])
        == scoreboard.overall([LEVEL, HOLDS])
        == scoreboard.overall([HOLDS, FAILS, UNDECIDED])
        == MIXED
    )
    assert scoreboard.overall([UNDECIDED, UNDECIDED, ABSENT]) == UNDECIDED
    assert scoreboard.overall([ABSENT, ABSENT]) == scoreboard.overall([]) == ABSENT


def numbers(**more):
    """What claims of the next test name."""
    blocks = [
        rows("head", estimate(0.8, 0.75, 0.85), of="obj", place=(3, 4), label="to the governor"),
        rows("head", estimate(0.1, 0.05, 0.15), of="obj", place=(0, 0), network="@random"),
        rows("offset", estimate(0.6, 0.5, 0.7), of="obj"),
        rows("offset", estimate(0.6, 0.5, 0.7), of="obj", network="@random"),
        rows("gain", estimate(0.2, 0.15, 0.25), of="obj"),
        rows("p", 0.04),
        rows("fits", False),
        rows("order", 2 / 3, label="dense 1, vertical 2"),
        *(rows(name, value) for name, value in more.items()),
    ]
    return scoreboard.numbers_of(results.joined(blocks))


def judged(measured=None, **given):
    row = {"paper": "clark2019 heads_total", "ours": "head/obj", "rule": "above", "unit": "%"} | given
    return scoreboard.judge(scoreboard.Claim("04_dependency_heads", **row), measured or numbers())


def test_judging():
    pair = {"against": "offset/obj", "difference": "gain/obj", "p": "p"}
    assert str(judged(**pair)).replace(FIRM, " ") == "80.0 vs 60.0 %, +20.0 [15.0, 25.0] points ●"
    assert str(judged(**pair | {"p": "chance"}, measured=numbers(chance=0.05))).endswith("◐")
    control, near = {"ours": "near", "against": "offset/obj"}, numbers(near=estimate(0.7, 0.68, 0.72))
    unpaired = judged(near, against="offset/obj", controls={"": control})
    assert f"+20.0 [5.0,{FIRM}35.0]" in unpaired.text and unpaired.verdict == HOLDS, "widest; offset cancels"
    both = judged(controls={"@random": None, "a guess": "offset/obj"}, rule="above 20")
    assert both.verdict == HOLDS and both.controls["@random"].verdict == FAILS, "the guess passes, but by less"
    assert str(both.controls["a guess"]).endswith(f"{FIRM}●; ours further by 20.0 [8.8,{FIRM}31.2]")
    # the same from draws of two estimates whose difference nobody computed by a formula
    noise, half, sides = np.random.default_rng(0).normal(0, 0.01, (2, 200_000)), 0.0196, {"above": 1, "below": -1}
    for ours, control, least, (side, sign) in product((0.7, 0.72, 0.73), (0.66, 0.7), (0.5, 0.69), sides.items()):
        a, b = (estimate(sign * n, sign * n - half, sign * n + half) for n in (ours, control))
        ahead = np.quantile(ours + noise[0] - control - noise[1], 0.025) > 0 or control + half < least
        known = HOLDS if ahead else ALSO if control - half > least else UNDECIDED
        found = judged(numbers(a=a, b=b), ours="a", rule=f"{side} {100 * sign * least}", controls={"": "b"}).verdict
        assert found == (known if ours - half > least else UNDECIDED), (ours, control, least)
    assert f"{FIRM}●; the control further by 10.0" in str(judged(numbers(n=0.9), controls={"": "n"}).controls[""])
    assert judged(rule="above 80").verdict == UNDECIDED and judged(rule="above 86").verdict == FAILS
    assert judged(rule="above offset/obj").verdict == HOLDS and judged(rule="below paper").verdict == HOLDS
    assert str(judged(rule="passed", judged="fits")) == f"no (80.0 [75.0,{FIRM}85.0]{FIRM}%){FIRM}○"
    assert str(judged(ours="order", rule="every")).replace(FIRM, " ") == "dense 1, vertical 2 ◪"
    assert judged(ours="@random head/obj", rule="below 20").verdict == HOLDS, "a claim of a control"
    for absent in ({"ours": "nothing"}, {"against": "nothing"}, {"judged": "nothing"}):
        assert judged(**absent) == scoreboard.Cell("–", ABSENT)
    with pytest.raises(results.ResultError, match="no rule 'near 3'"):
        judged(rule="near 3")


def test_absence_of_evidence_is_undecided():
    few, enough = ({"power": name, "visible": "below 5"} for name in ("seen_by_few", "seen_by_many"))
    table = numbers(seen_by_few=0.12, seen_by_many=0.03)
    for rule, rests_on_absence, evidence in (("below 90", HOLDS, "below 60"), ("at least 90", FAILS, "at least 60")):
        assert judged(table, rule=rule, **few).verdict == UNDECIDED
        assert judged(table, rule=rule, **enough).verdict == judged(table, rule=rule).verdict == rests_on_absence
        assert judged(table, rule=evidence, **few).verdict == judged(table, rule=evidence).verdict != UNDECIDED


def test_the_run_on_real_corpora_counts_or_the_one_that_has_a_number():
    columns = ["chapter", "claim", "model", "profile", "control", "whose", "text", "verdict", "counts", "value"]
    chapter, n = next(
        (c, n)
        for c, file in CHAPTERS.items()
        for n, claim in enumerate(file["claims"])
        if claim.rule.startswith("at least")
    )
    made = [
        [chapter, n, "a", "full", "", "a", "1", HOLDS, True, 1],
        [chapter, n, "a", "book", "", "a", "0", FAILS, False, 0],
        [chapter, n, "a", "full", "@random", "a@random", "1", FAILS, True, 1],
        [chapter, n, "a", "full", "@shuffled", "a@shuffled", "2", FAILS, True, 2],
        [chapter, n, "b", "book", "", "b", "?", UNDECIDED, True, 0],
    ]
    board = pd.DataFrame(made, columns=columns)
    assert scoreboard.verdicts(board)[chapter, n] == HOLDS
    (row,) = scoreboard.compact(board, {(chapter, n): "name"}).cells
    nearest = scoreboard.strongest(scoreboard.Claim(chapter, rule="equal 3"), board[board.control != ""], "{0.whose}")
    assert nearest == "a@shuffled"
    assert row[:2] == ["name", f"{HOLDS}, 1{FIRM}of{FIRM}2"] and row[-3:] == ["1", "?", "a@shuffled 2"]


def not_measured():
    """(Paper, name) of what is listed as not measured; of a row of a table the name is ``claim: row``."""
    for file in CHAPTERS.values():
        for text in chain.from_iterable(file["not measured"].values()):
            paper, names = text.split(maxsplit=1)
            yield from ((paper, name) for name in names.split(", "))


def test_every_number_of_the_papers_has_a_claim_or_a_reason():
    stated = {(key, name) for key, paper in PAPERS.items() for name in paper["claims"]}
    claims = [claim for file in CHAPTERS.values() for claim in file["claims"] if claim.paper]
    ruled = {tuple(claim.paper.split()) for claim in claims if claim.rule}
    listed = set(not_measured())
    assert ruled | {(key, name.partition(":")[0]) for key, name in listed} == stated
    assert {tuple(claim.paper.split()) for claim in claims} <= stated
    assert not ruled & listed, "a number stands in two places"


def test_every_row_of_the_papers_tables_is_used():
    left_out, used = {name.partition(": ")[2] for _, name in not_measured()}, {}
    for claim in (claim for file in CHAPTERS.values() for claim in file["claims"] if claim.row):
        others = [claim.beside] if isinstance(claim.beside, dict) else []
        used.setdefault(claim.paper, []).extend([claim.row, *others])
    for paper, picks in used.items():
        for row in results.paper(*paper.split())["rows"]:
            named = any(pick.items() <= row.items() for pick in picks)
            assert named or left_out & set(map(str, row.values())) or paper.endswith("type_shares"), (paper, row)


def test_a_claim_stands_in_the_chapter_of_its_paper_and_names_a_control_or_why_there_is_none():
    for chapter, file in CHAPTERS.items():
        for claim in file["claims"]:
            assert claim.source.get("chapter", chapter[3:]) == chapter[3:] and (claim.rule or claim.label), claim
        for claim in (*file["claims"], *file["headlines"]):
            if claim.rule and claim.rule != "shown":
                assert claim.claim and bool(claim.controls) != bool(claim.uncontrolled), f"{chapter}: {claim.claim}"
    claimed = {claim["chapter"] for paper in PAPERS.values() for claim in paper["claims"].values()}
    judging = [c for c, s in CHAPTERS.items() if any(claim.paper for claim in s["claims"]) or s["not measured"]]
    assert [c for c in notebooks.chapters() if c[3:] in claimed] == judging


NO_RUN_HAS_IT = {"order_of_depth", "em_cost_of_row/5", "em_in_row/11", *(f"f1_in_row/{row}" for row in (5, 6, 7, 11))}
"""Numbers of heads that fit the type *vertical*; no recorded network has a group that does."""


def test_every_number_that_a_claim_names_is_recorded_somewhere():
    """A misspelt name would read as a number that no run has."""
    for chapter, file in CHAPTERS.items():
        tables = [scoreboard.numbers_of(run.table) for _, run in results.all_runs(chapters=[chapter[3:]])]
        known = {name for table in tables for _, name in table} | NO_RUN_HAS_IT
        # a closing table has a column for each task, of one number
        known |= {name.partition("/")[0] for name in known}
        for claim in (*file["claims"], *file["headlines"]):
            names = [getattr(claim, role) for role in ("ours", "against", "difference", "judged", "p", "power")]
            for control in filter(None, claim.controls.values()):
                names.extend([control] if isinstance(control, str) else control.values())
            for name in filter(None, names):
                name = name.removeprefix("around ")
                bare = name.split(" ", 1)[-1] if name.startswith("@") else name
                assert bare in known, f"no recorded run has {name}: python -m helpers run {chapter[:2]} --record"


def test_the_page_shows_the_recorded_numbers(board):
    objects = next(n for n, c in enumerate(CHAPTERS["04_dependency_heads"]["claims"]) if c.rule and "dobj" in c.claim)
    shown = scoreboard.compact(board, {("04_dependency_heads", objects): "objects"})
    line = repr(shown).replace(FIRM, " ").split("\n")[-1]
    theirs = next(r for r in results.paper("clark2019", "table1")["rows"] if r["relation"] == "dobj")
    assert f"{theirs['accuracy']} vs {theirs['baseline']} % ({theirs['head']}; Table 1)" in line
    for model in ("minilm", "mpnet"):
        stored = results.recorded("dependency_heads", model=model, profile="full")
        ours, lead, random = (
            stored.row(f"{name}_for_relation_stanford", of="dobj", network=network)
            for name, network in (("best", ""), ("lead", ""), ("best", "@random"))
        )
        value, low, high = (f"{100 * lead[end]:.1f}" for end in ("value", "low", "high"))
        assert f"{100 * ours.value:.1f} vs {100 * ours.control:.1f} %, +{value} [{low}, {high}] points" in line
    assert f"mpnet@random {100 * random.value:.1f} vs" in line  # of its controls the one that comes nearest


def test_the_page_adds_up(board):
    counts, claims = scoreboard.tally(board), scoreboard.findings().row
    once = {key: (key[0], claim.comparison or claim.claim) for key, claim in claims.items()}
    assert counts.to_numpy().sum() == scoreboard.summary(board).loc["all"].sum() == len({*once.values()}) < len(once)
    votes = {name: {} for name in once.values()}
    for row in board[board.counts & (board.control == "")].itertuples():
        votes[once[row.chapter, row.claim]].setdefault(row.model, set()).add(row.verdict)
    held = [[*each.values()] for each in votes.values() if set().union(*each.values()) - {UNDECIDED} == {HOLDS}]
    assert scoreboard.agreement(board).sum() == counts[HOLDS].sum() == len(held)
    assert scoreboard.agreement(board).iloc[0] == sum(len(each) == 2 and HOLDS in each[0] & each[1] for each in held)
    sections, reasons = (
        html.unescape(part("scoreboard.md.j2", name, board=board, scoreboard=scoreboard, results=results))
        for name in ("chapters", "reasons")
    )
    assert all(claim.claim in sections for claim in claims)
    controls = board[(board.control != "") & (board.verdict != ABSENT)]
    assert all(f"| {line.whose} | {line.text} |" in sections for line in controls.itertuples())
    assert all(results.paper(paper, name.split(":")[0])["what"] in reasons for paper, name in not_measured())


def test_twelve_findings_come_first_survived_taken_away_undecided_and_failed(board):
    groups = scoreboard.told(board)
    sizes = {"Holds": 6, "Also the control": 2, "Undecided": 1, "Fails": 3}
    assert {name: len(table.cells) for name, table in groups.items()} == sizes and [*groups] == [*sizes]


@pytest.fixture
def claims(tmp_path, monkeypatch):
    """The file of chapter 13's claims in a copy of what the scoreboard reads; what is read is read anew."""
    folder = tmp_path / "data"
    for name in ("claims", "papers.yml", "quantities.yml", "results/book/minilm"):
        copy = shutil.copytree if (places.ROOT / "data" / name).is_dir() else shutil.copyfile
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy(places.ROOT / "data" / name, folder / name)
    monkeypatch.setattr(places, "book_data", lambda: folder)
    cached = (results.from_yaml, scoreboard.chapters, scoreboard.findings)
    for function in cached:
        function.cache_clear()
    yield folder / "claims" / "13_keywords.yml"
    for function in cached:
        function.cache_clear()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (("claims:\n", "claims:\n  - claim: a: b\n"), r'in ".*13_keywords\.yml", line'),
        (("claims:\n", "claims:\n  - {claim: A., rul: above 0}\n"), r"13_keywords\.yml: under claims .* rul:"),
        (("headlines:\n", "headlines:\n  - {claim: A., paper: x y}\n"), "A paper's finding stands under claims"),
    ],
)
def test_a_mistake_in_a_claim_names_its_file(claims, changed, says):
    claims.write_text(claims.read_text("utf-8").replace(*changed), "utf-8")
    with pytest.raises((results.ResultError, yaml.YAMLError), match=says):
        scoreboard.chapters()


def test_the_command(tmp_path, monkeypatch):
    def run(*arguments):
        return CliRunner().invoke(main, ("scoreboard", *arguments))

    printed = run("04", "--model", "mpnet").output
    assert "\n04 dobj: the best head" in printed and "mpnet, full: " in printed
    assert "\n02 " not in printed and "minilm" not in printed and "{doc}" not in printed
    failed = run("--model", "nobody")
    assert failed.exit_code == 1 and "Recorded: minilm, mpnet" in failed.output
    own = shutil.copytree(places.ROOT / "data" / "results" / "full" / "minilm", tmp_path / "full" / "my--model")
    record = (own / "surface_patterns.json").read_text("utf-8")
    places.write(own / "surface_patterns.json", record.replace('"name": "minilm"', '"name": "my/model"'))
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path))
    assert "my/model, full" in run("surface_patterns", "--model", "my/model").output

"""What the pages say in their text is what was recorded: their numbers, digit by digit."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import BOOK, FULL, MPNET, recorded

from helpers.heads import Head

RUNS = {"book": BOOK, "full": FULL, "mpnet": MPNET}
PROSE = yaml.safe_load((Path(__file__).parents[1] / "data" / "prose.yml").read_text("utf-8"))


def as_shown(number, printed):
    """A number with the decimals that the page prints, in per cent where it does, and with its interval where it does."""
    said, scale = printed.split()[0], 100 if "%" in printed else 1
    digits = len(said.rstrip("%").partition(".")[2])
    value, *ends = (f"{scale * end:z.{digits}f}" for end in (number.value, number.low, number.high))
    return value + "%" * ("%" in printed) + f" [{', '.join(ends)}]" * ("[" in printed)


@pytest.mark.parametrize(
    ("chapter", "run", "quantity", "where", "printed"),
    [(chapter, *row) for chapter, rows in PROSE["printed"].items() for row in rows],
)
def test_a_number_of_a_page_is_recorded(chapter, run, quantity, where, printed):
    if "head" in where:
        where = where | {"head": Head(*where["head"])}
    assert as_shown(recorded(chapter, RUNS.get(run, run)).number(quantity, **where), printed) == printed


@pytest.mark.parametrize(
    ("chapter", "runs", "quantity", "where", "column", "least", "most", "said"),
    [(chapter, *row) for chapter, rows in PROSE["said"].items() for row in rows],
)
def test_what_is_said_of_several_numbers_is_recorded(chapter, runs, quantity, where, column, least, most, said):
    for run in runs:
        numbers = recorded(chapter, RUNS[run]).rows(quantity, network=where.get("network", ""))
        for name in where.keys() - {"network"}:
            numbers = numbers[numbers[name].isin(np.atleast_1d(where[name]))]
        assert len(numbers) and numbers[column].between(least, most).all(), (said, run, numbers[column].tolist())


@pytest.mark.parametrize("run", [FULL, MPNET])
def test_on_gum_seven_of_eight_relations_are_ahead(run):
    leads = recorded("dependency_heads", run).estimates("lead_for_relation")
    assert [relation for relation in [*leads][1:9] if leads[relation].low <= 0] == ["nmod"]

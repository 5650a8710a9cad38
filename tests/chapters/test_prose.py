"""What the pages say in their text is what was recorded: their numbers, digit by digit, and what they say of several numbers."""

import json
import re
from functools import cache

import numpy as np
import pytest
from conftest import RUNS, from_data, recorded

from helpers import places, results

PROSE = from_data("prose")


def listed(section):
    """The rows of a section, the chapter before each."""
    return [(chapter, *row) for chapter, rows in PROSE[section].items() for row in rows]


def numbers(chapter, run, quantity, where):
    """Rows of the table; ``where`` gives columns a value, several of them, or null for none."""
    table = recorded(chapter, RUNS.get(run, ("book", "mpnet"))).table
    rows = table[table.quantity == quantity]
    for name, wanted in ({"network": ""} | where).items():
        if name == "place":
            rows = rows[(rows[["layer", "head"]] == wanted).all(axis=1)]
        else:
            rows = rows[rows[name].isna() if wanted is None else rows[name].isin(np.atleast_1d(wanted))]
    assert len(rows), f"nothing is recorded of {quantity} with {where}"
    return rows


def as_shown(number, printed):
    """A number with the decimals that the page prints, in per cent where it does, and with its interval where it does."""
    shown, scale = printed.split()[0], 100 if "%" in printed else 1
    digits = len(shown.rstrip("%").partition(".")[2])
    value, *ends = (f"{scale * end:z.{digits}f}" for end in (number.value, number.low, number.high))
    return value + "%" * ("%" in printed) + f" [{', '.join(ends)}]" * ("[" in printed)


@cache
def lines() -> list[tuple[str, str]]:
    """What is written in the book, in text and captions, line by line, the name of the page before each."""
    pages = {
        file.stem: file.read_text("utf-8") for file in (places.ROOT / "README.md", *places.ROOT.glob("book/*.md"))
    }
    for file in places.ROOT.glob("notebooks/*.ipynb"):
        cells = json.loads(file.read_text("utf-8"))["cells"]
        written = [str(c["metadata"].get("mystnb")) if "outputs" in c else "".join(c["source"]) for c in cells]
        pages[file.stem] = "\n".join(written)
    return [(page, line) for page, text in pages.items() for line in text.split("\n")]


@cache
def stated(chapter: str) -> set[str | frozenset[str]]:
    """Numbers and ends of intervals on a chapter's page, and where others name it, without signs; a head's name is no number."""
    name = results.notebooks()[chapter]
    text = "\n".join(line for page, line in lines() if page == name or name in line).replace("−", "")
    ends = re.findall(r"\[([\d.]+)%?, ([\d.]+)%?\]", text.replace(" %", "%"))
    return {*re.findall(r"(?<![-.\d])\d+(?:\.\d+)?(?![-\d])", text), *map(frozenset, ends)}


@pytest.mark.parametrize(("chapter", "run", "quantity", "where", "printed"), listed("printed"))
def test_a_number_of_a_page_is_recorded(chapter, run, quantity, where, printed):
    [number] = numbers(chapter, run, quantity, where).itertuples()
    assert as_shown(number, printed) == printed
    value, *ends = re.findall(r"[\d.]+", printed)
    assert value in stated(chapter) and (not ends or frozenset(ends) in stated(chapter)), "no page says it any more"


@pytest.mark.parametrize("row", listed("said") + listed("counted"), ids=lambda row: f"{row[0]}: {row[-1]}")
def test_what_is_said_of_several_numbers_is_recorded(row):
    chapter, runs, quantity, where, column, least, most, *count, text = row
    for run in runs:
        values = numbers(chapter, run, quantity, where)[column]
        assert values.between(least, most).sum() in (count or [len(values)]), (text, run, values.tolist())


@pytest.mark.parametrize(("chapter", "runs", "more", "times", "less", "text"), listed("above"))
def test_what_is_said_to_be_more_is_more(chapter, runs, more, times, less, text):
    for run in runs:
        values, others = (numbers(chapter, run, *of)[column] for *of, column in (more, less))
        assert values.min() > times * others.max(), (text, run, values.tolist(), others.tolist())

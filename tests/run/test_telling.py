"""Counting how a chapter is told, on small texts."""

import nbformat
import pytest

from helpers.run import durations, notebooks, telling

BOX = """# Is it so?

:::{admonition} In this chapter
:class: tip
- one thing;
- another.

**Read:** 5 minutes. **Run:** a minute.
**You need:** nothing.
:::

:::{admonition} Predict
:class: seealso
Which one?
:::

:::{admonition} What comes out
:class: dropdown
This one, and many words that nobody has to read who does not want to.
:::"""
EXERCISES = """## Exercises

**Predict** ★☆☆, 5 minutes. Guess.

**Build** ★★☆, 15 minutes. Make.

**Interpret** ★★☆, 10 minutes. Say.

**Open project** ★★★, 2 hours. Find out."""
END = """## Summary

- It is so.

## One might think

One might think not, but it is.

**Further reading.** A book."""


def chapter(monkeypatch, tmp_path, *cells):
    made = [c if not isinstance(c, str) else nbformat.v4.new_markdown_cell(c) for c in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=made), tmp_path / "01_toy.ipynb")
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    return "01_toy"


def shown(source, tags=(), **data):
    output = nbformat.v4.new_output("execute_result", data=data)
    return nbformat.v4.new_code_cell(source, outputs=[output], metadata={"tags": list(tags)})


def test_a_chapter_in_form_has_no_problems(monkeypatch, tmp_path):
    assert telling.problems(chapter(monkeypatch, tmp_path, BOX, "One, two.", EXERCISES, END)) == []


@pytest.mark.parametrize(
    ("added", "said"),
    [
        (("word " * 91).strip() + ".", "a paragraph of 91 words"),
        (" ".join(["One two three."] * 10 + ["Word", *["word"] * 30]) + ".", "a sentence of 31 words"),
        ("Of 1 and 2.5, 3 %, 1,000, −4 and 6.", "a paragraph with 6 numbers"),
        (nbformat.v4.new_code_cell("\n".join(["import os", *["x = 1"] * 16])), "a cell of 16 lines"),
        ("\n\n".join(["word " * 60] * 51), "3"),
    ],
)
def test_what_is_too_long_is_named(monkeypatch, tmp_path, added, said):
    (first, *_) = telling.problems(chapter(monkeypatch, tmp_path, BOX, added, EXERCISES, END))
    assert first.startswith(said)


@pytest.mark.parametrize("part", telling.PARTS)
def test_what_is_missing_is_named(monkeypatch, tmp_path, part):
    cells = [cell.replace(part, "x") for cell in (BOX, EXERCISES, END)]
    assert any(repr(part) in one for one in telling.problems(chapter(monkeypatch, tmp_path, *cells)))


def test_parts_in_another_order_are_seen(monkeypatch, tmp_path):
    assert any(
        "another order" in one for one in telling.problems(chapter(monkeypatch, tmp_path, BOX, END, EXERCISES))
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("**Interpret** ★★☆, 10 minutes.", "", "0 exercises of the kind 'Interpret'"),
        ("★★★", "★★☆", "three stars"),
        ("★☆☆", "★★★", "three stars"),
    ],
)
def test_exercises_of_other_kinds_are_seen(monkeypatch, tmp_path, old, new, said):
    name = chapter(monkeypatch, tmp_path, BOX, EXERCISES.replace(old, new), END)
    assert any(one.startswith(said) for one in telling.problems(name))


def test_folds_exercises_code_and_formulas_are_no_words(monkeypatch, tmp_path):
    hidden = [
        ":::{admonition} More\n:class: note dropdown\nmany words here\n:::",
        "::::{admonition} More\n:class: dropdown\nouter\n\n:::{admonition} Open\n:class: tip\ninner\n:::\n\nouter\n::::",
        "```python\nx = 1\n```",
        "```{figure} a.png\n:alt: words\n\nA caption of words.\n```",
        "$$\nx = y\n$$",
        "| a | b |\n| --- | --- |\n| c | d |",
        "### A heading of words",
    ]
    found = telling.of(chapter(monkeypatch, tmp_path, "Two words.", *hidden, "## Exercises\n\nNot these.\n\n## End"))
    assert found.paragraphs == ["Two words."]


def test_open_boxes_count_without_their_fence():
    box = ":::{admonition} Mind\n:class: tip\nThree words here.\n:::"
    assert list(telling.paragraphs(box)) == ["Three words here."]


def test_items_are_paragraphs_and_roles_are_words():
    text = "- one $x^2$ here\n- see {doc}`a/long/path` and {cite:t}`clark2019` {cite:p}`guan2020`\n1. [a link](there)"
    assert list(telling.paragraphs(text)) == ["one x here", "see X and X", "[a link]"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Head 3-5 of `x1 = 2` in BERT-base", []),
        ("from 1.5 to 2,000, or −3 %", ["1.5", "2,000", "−3"]),
        ("in 12 layers, F1 0.4", ["12", "0.4"]),
    ],
)
def test_numbers_are_those_that_a_reader_has_to_hold(text, found):
    assert telling.numbers(text) == found


def test_minutes_follow_from_words_and_pictures(monkeypatch, tmp_path):
    table = {"text/markdown": "| a |\n| --- |\n| b |"}
    pictures = [shown("a", **table), shown("b", **{"image/png": "x"}), shown("c", tags=["hide-output"], **table)]
    name = chapter(monkeypatch, tmp_path, BOX, ("word " * 60 + "\n\n") * 10, *pictures, EXERCISES, END)
    found = telling.of(name)
    assert found.pictures == 2 and found.minutes == 10  # 600 words and 2 pictures: 7.9 minutes
    assert any("should say 10 minutes" in one for one in telling.problems(name))
    assert telling.renew(name) and not telling.renew(name)
    assert not any("minutes to read" in one for one in telling.problems(name))


def test_sentences_end_at_stops_and_not_at_abbreviations(monkeypatch, tmp_path):
    found = telling.of(chapter(monkeypatch, tmp_path, "It is e.g. this one. Is it? It falls by 0.5 points (Fig. 2)."))
    assert len(found.sentences) == 3


def test_the_memory_in_the_box_is_that_of_the_last_run(monkeypatch, tmp_path):
    name = chapter(monkeypatch, tmp_path, BOX.replace("a minute.", "a minute and 1 GB of memory."), EXERCISES, END)
    assert telling.memory(name) == "" and telling.problems(name) == []
    durations.Noted(tmp_path / durations.PEAKS).record(("minilm", name), 1025)
    assert "the box should say 1.5 GB of memory" in telling.problems(name)
    assert telling.renew(name) and telling.problems(name) == []
    durations.Noted(tmp_path / durations.PEAKS).record(("minilm", name), 2048)
    assert telling.memory(name) == "2 GB"

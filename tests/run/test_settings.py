"""What parameters may be: checked before a kernel starts, in a sentence that names the chapter, the parameter and its kind."""

import pytest

from helpers.run import notebooks, settings
from helpers.run.notebooks import NotebookError

TAKEN = {name for chapter in notebooks.chapters() for name in notebooks.defaults(chapter)}


def given(chapter, **raw):
    """The parameters of a chapter with these written on the command line."""
    chapter = notebooks.find(chapter)
    values = {name: notebooks.meant(chapter, name, text) for name, text in raw.items()}
    return notebooks.parameters(chapter, "book", values)


def test_every_parameter_of_the_book_has_a_kind_and_every_kind_a_parameter():
    assert {name.split(".")[-1] for name in settings.KINDS} == TAKEN
    chapters = {name.split(".")[0] for name in settings.KINDS if "." in name}
    assert chapters <= set(notebooks.chapters())


@pytest.mark.parametrize(
    ("chapter", "name", "text", "says"),
    [
        ("02", "segments", "abc", "a whole number from 1, or null for all, not 'abc' (in the book: 1000)"),
        ("02", "segments", "-1", "not -1"),
        ("02", "segments", "0", "not 0"),
        ("02", "segments", "1:30", "not '1:30'"),
        ("02", "segments", "0x10", "not '0x10'"),
        ("02", "segments", "1.5", "not 1.5"),
        ("02", "segments", "true", "not True"),
        ("02", "segments", "[1,", "not '[1,'"),
        ("02", "segments", "*a", "not '*a'"),
        ("02", "segments", "[" * 5000, "…"),
        ("02", "seed", "-1", "a whole number from 0 to 4294967295"),
        ("02", "seed", "4294967296", "a whole number from 0 to 4294967295"),
        ("02", "seed", "2024-99-99", "not '2024-99-99'"),
        ("02", "corpus", " ", "a name or a path"),
        ("02", "corpus", "x" * 5000, "a name or a path"),
        ("02", "corpus", "a\0b", "a name or a path"),
        ("02", "profile", "../../escape", "a name of letters, digits, - and _"),
        ("02", "profile", "/tmp/x", "a name of letters, digits, - and _"),
        ("02", "profile", "..", "a name of letters, digits, - and _"),
        ("02", "profile", "", "a name of letters, digits, - and _"),
        ("02", "profile", "full", "cannot be kept as those of full. Say --profile full"),
        ("05", "choose_on", "dev", "a list of some of train, dev, not 'dev'"),
        ("05", "choose_on", "[test]", "not ['test']"),
        ("05", "choose_on", "[dev, dev]", "not ['dev', 'dev']"),
        ("05", "choose_on", "[]", "not []"),
        ("05", "choose_on", "[[dev]]", "not [['dev']]"),
        ("06", "limits", "[1, 2]", "a list of 3 (train, dev, test), each a whole number from 1, or null for all"),
        ("08", "tasks", "[qa, poetry]", "some of mlm, qa"),
        ("09", "limit", "0", "a whole number from 1"),
        ("11", "shares", "[0, 2]", "each a number from 0 to 1"),
        ("11", "shares", "[.nan]", "each a number from 0 to 1"),
        ("11", "keep", "1", "true or false, not 1"),
        ("11", "sizes", "5", "{TASK: a whole number"),
        ("11", "texts", "{poetry: x}", "TASK one of mlm"),
        ("11", "texts", "{rte: rte}", "sizes must say how many examples of rte"),
        ("13", "points", "1", "a whole number from 2"),
        ("14", "documents", "[1, 2, 3]", "a whole number from 1"),
        ("02", "segmens", "5", "no parameter 'segmens'. Did you mean 'segments'? It takes: model, corpus"),
    ],
)
def test_what_is_no_value_is_refused_in_a_sentence(chapter, name, text, says):
    with pytest.raises(NotebookError) as error:
        given(chapter, **{name: text})
    assert says in str(error.value) and notebooks.find(chapter) in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("chapter", "name", "text", "value"),
    [
        ("02", "segments", "010", 10),
        ("02", "segments", "null", None),
        ("02", "corpus", "*.txt", "*.txt"),
        ("02", "corpus", "a: b", "a: b"),
        ("02", "corpus", "1984", "1984"),
        ("02", "corpus", "no", "no"),
        ("02", "profile", "mine-2", "mine-2"),
        ("14", "other", "@random", "@random"),
        ("14", "documents", "3", 3),
        ("05", "choose_on", "[dev]", ["dev"]),
        ("06", "limits", "[8, null, 8]", [8, None, 8]),
        ("11", "shares", "[0, .5, 1]", [0, 0.5, 1]),
        (
            "11",
            "sizes",
            "{mlm: 2, qa: null, paraphrase: 2, entailment: 2}",
            {"mlm": 2, "qa": None, "paraphrase": 2, "entailment": 2},
        ),
        ("11", "keep", "true", True),
    ],
)
def test_what_a_reader_means(chapter, name, text, value):
    assert given(chapter, **{name: text})[name] == value


@pytest.mark.parametrize(
    ("default", "fits", "not_"),
    [("a", "b", 1), (1, 2, "a"), (1.5, 2.5, 1), (True, False, 1), ([1], [], 1), ({}, {"a": 1}, []), (None, 5, ...)],
)
def test_a_new_chapters_parameter_is_of_the_type_of_its_default(default, fits, not_):
    kind = settings.kind("99_new", "unheard_of", default)
    assert kind.fits(fits) and (not_ is ... or not kind.fits(not_))
    assert kind.text == isinstance(default, str)

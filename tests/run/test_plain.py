"""Chapters in plain Markdown: nothing of MyST is left, nothing that was said is lost, links lead to the built pages."""

import re

import nbformat
import pytest

from helpers.run import notebooks, plain
from helpers.run.failures import NotebookError

pytest.importorskip("pybtex", reason="the extra lab is not installed")

SITE = "https://example.org/book"
LEFT = re.compile(r"\{[\w:.-]+\}`|^\s*:{3,}|^\s*[`~]{3,}\{|^:[\w-]+: ", re.MULTILINE)


def markdown(source: str, *more: nbformat.NotebookNode, site: str | None = None) -> str:
    """The plain Markdown of a toy chapter."""
    cells = [nbformat.v4.new_markdown_cell(source), *more]
    found = plain.rendered(nbformat.v4.new_notebook(cells=cells), "02_toy", site)
    return "\n\n".join(cell.source for cell in found.cells if cell.cell_type == "markdown")


@pytest.fixture(scope="module", params=notebooks.chapters())
def chapter(request):
    name = request.param
    stored = nbformat.read(notebooks.FOLDER / f"{name}.ipynb", as_version=4)
    return name, stored, plain.rendered(stored, name, SITE)


def told(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def test_nothing_of_myst_is_left(chapter):
    name, stored, made = chapter
    nbformat.validate(made)
    assert any(map(LEFT.search, told(stored))), "the pattern would see it"
    assert [found for text in told(made) for found in LEFT.findall(text)] == []
    apart = told(plain.rendered(stored, name))
    assert [found for text in apart for found in LEFT.findall(text)] == []
    assert SITE not in "\n".join(apart)


def test_code_and_outputs_are_as_they_were(chapter):
    _, stored, made = chapter
    before, after = ([c for c in book.cells if c.cell_type == "code"] for book in (stored, made))
    assert [(c.source, c.outputs) for c in before] == [(c.source, c.outputs) for c in after]
    assert len({cell.id for cell in made.cells}) == len(made.cells)


def test_every_figure_and_every_exercise_is_there_with_its_number(chapter):
    name, stored, made = chapter
    text, first = "\n\n".join(told(made)), int(name[:2])
    figures = [c for c in stored.cells if "figure" in c.metadata.get("mystnb", {})]
    assert re.findall(r"^\*\*Fig\. ([\d.]+)\*\* \S", text, re.MULTILINE) == [
        f"{first}.{n}" for n in range(1, len(figures) + 1)
    ]
    exercises = re.findall(r"\{exercise(?:-start)?\} (.+)", "\n".join(told(stored)))
    assert len(exercises) >= 4
    for n, title in enumerate(exercises, 1):
        assert f"### Exercise {first}.{n}: {title}" in text


def test_no_word_is_lost(chapter):
    """Each longer word of the prose, roles apart, is in the copy."""
    _, stored, made = chapter
    bare = re.sub(
        r"\{solution.*|\{[\w:-]+\}(`[^`]*`)?|^:[\w-]+:.*$", " ", "\n".join(told(stored)), flags=re.MULTILINE
    )
    assert set(re.findall(r"[a-z]{5,}", bare)) - set(re.findall(r"[a-z]{5,}", "\n".join(told(made)))) == set()


def test_links_lead_to_pages_of_the_book(chapter):
    _, _, made = chapter
    pages = re.findall(rf"\]\({SITE}/([\w/]+)\.html", "\n".join(told(made)))
    assert all(plain.title_of(page) for page in pages)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{math}`h`", "$h$"),
        ("{doc}`../book/glossary`", f"[Glossary]({SITE}/book/glossary.html)"),
        ("{doc}`the words <../book/glossary>`", f"[the words]({SITE}/book/glossary.html)"),
        ("{term}`head`", f"[head]({SITE}/book/glossary.html#term-head)"),
        ("{func}`~helpers.f`", f"[`helpers.f`]({SITE}/book/helpers.html#helpers.f)"),
        ("{mod}`helpers`", f"[`helpers`]({SITE}/book/helpers.html#helpers)"),
        ("{mod}`helpers.engine.a`", f"[`helpers.engine.a`]({SITE}/book/helpers/engine.html#helpers.engine.a)"),
        ("{cite:t}`clark2019`", "[Clark et al. (2019)](https://doi.org/10.18653/v1/W19-4828)"),
        (
            "so {cite:p}`jain2019,stefaniknd`.",
            "so ([Jain and Wallace, 2019](https://doi.org/10.18653/v1/N19-1357); Štefánik, n.d.).",
        ),
        ("```python\n{doc}`x`\n```", "```python\n{doc}`x`\n```"),
        (":::{tip}\nDo.\n:::", "> **Tip**\n>\n> Do."),
        (":::{note} A *b*\nDo.\n:::", "> **Note**\n>\n> A *b*\n> Do."),
        (
            ":::{admonition} A `b` < c\n:class: note dropdown\n\nDo.\n:::",
            "<details><summary><b>A <code>b</code> &lt; c</b></summary>\n\nDo.\n\n</details>",
        ),
        (
            "::::{admonition} Out\n:::{tip}\nIn.\n:::\n$$\na\nb\n$$\n::::",
            "> **Out**\n>\n> > **Tip**\n> >\n> > In.\n>\n> $$ a b $$",
        ),
        ("A\n:::{tip}\nB\n:::\nC", "A\n\n> **Tip**\n>\n> B\n\nC"),
    ],
)
def test_each_construct_has_its_plain_form(source, said):
    assert markdown(source, site=SITE) == said


def test_without_an_address_there_are_no_links_to_pages():
    assert markdown("See {doc}`../book/glossary` and {term}`head`.") == "See *Glossary* and head."


def test_exercises_solutions_and_formulas_are_numbered_in_their_order():
    source = """```{math}
:label: eq-one
a
```
````{exercise} First
:label: ex-a
Do.
````

````{solution} ex-a
:class: dropdown
Done with {eq}`eq-one`.
````
```{exercise-start} Second
:label: ex-b
```
As {ref}`ex-a`."""
    end = nbformat.v4.new_markdown_cell("```{exercise-end}\n```\n````{solution-start} ex-b\n````\nSo.", id="end")
    cells = [nbformat.v4.new_markdown_cell(source), nbformat.v4.new_code_cell("pass"), end]
    first, _, solution = plain.rendered(nbformat.v4.new_notebook(cells=cells), "02_toy").cells
    assert first.source.split("\n\n") == [
        "$$\na \\tag{2.1}\n$$",
        "### Exercise 2.1: First",
        "Do.",
        "<details><summary><b>Solution to Exercise 2.1</b></summary>",
        "Done with (2.1).",
        "</details>",
        "### Exercise 2.2: Second",
        "As Exercise 2.1.",
    ]
    assert solution.source == "#### Solution to Exercise 2.2\n\nSo."
    assert solution.metadata["jp-MarkdownHeadingCollapsed"] and solution.id == "end"


def test_what_the_page_hides_is_hidden_and_parameters_are_not():
    cells = [
        nbformat.v4.new_code_cell("a", metadata={"tags": tags})
        for tags in (["hide-input"], ["hide-output"], ["parameters", "hide-input"], [])
    ]
    made = plain.rendered(nbformat.v4.new_notebook(cells=cells), "02_toy")
    assert [cell.metadata.get("jupyter") for cell in made.cells] == [
        {"source_hidden": True},
        {"outputs_hidden": True},
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{kbd}`x`", r"02_toy: the role \{kbd\}"),
        ("```{mermaid}\n```", r"directive \{mermaid\}"),
        ("{numref}`fig-none`", "refers to 'fig-none'"),
        ("{cite:t}`nobody1900`", "no work 'nobody1900'"),
        ("{doc}`nowhere`", "no page 'notebooks/nowhere'"),
        (":::{tip}\nNo end.", "has no end: No end"),
    ],
)
def test_what_has_no_plain_form_is_refused(source, why):
    with pytest.raises(NotebookError, match=why):
        markdown(source)

"""Chapters in plain Markdown: nothing of MyST is left, nothing that was said is lost, links lead to the built pages."""

import re

import nbformat
import pytest

from helpers import places
from helpers.run import notebooks, plain

pytest.importorskip("pybtex", reason="the extra lab is not installed")

SITE = "https://example.org/book"
LEFT = re.compile(r"\{[\w:.-]+\}`|^\s*:{3,}|^\s*[`~]{3,}\{|^:[\w-]+: ", re.MULTILINE)


def markdown(*sources, site=None):
    """The plain Markdown of a toy chapter, a text for each cell."""
    cells = [nbformat.v4.new_markdown_cell(source) for source in sources]
    made = plain.rendered(nbformat.v4.new_notebook(cells=cells), "02_toy", site)
    return [cell.source for cell in made.cells]


def prose(notebook):
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("chapter", notebooks.chapters())
def test_a_chapter_is_plain_and_whole(chapter):
    stored = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4)
    made = plain.rendered(stored, chapter, SITE)
    nbformat.validate(made)
    assert LEFT.search(prose(stored)) and LEFT.findall(prose(made)) == []
    bare = re.sub(r"\{solution.*|\{[\w:-]+\}(`[^`]*`)?|^:[\w-]+:.*$", " ", prose(stored), flags=re.MULTILINE)
    assert set(re.findall(r"[a-z]{5,}", bare)) - set(re.findall(r"[a-z]{5,}", prose(made))) == set()
    code = [[(c.source, c.outputs) for c in book.cells if c.cell_type == "code"] for book in (stored, made)]
    assert code[0] == code[1] and len({cell.id for cell in made.cells}) == len(made.cells)
    figures = [cell for cell in stored.cells if "figure" in cell.metadata.get("mystnb", {})]
    numbers = re.findall(r"^\*\*Fig\. ([\d.]+)\*\* \S", prose(made), re.MULTILINE)
    assert numbers == [f"{int(chapter[:2])}.{n}" for n in range(1, len(figures) + 1)]
    assert all(map(plain.title_of, re.findall(rf"\]\({SITE}/([\w/]+)\.html\)", prose(made))))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{doc}`../book/glossary`", f"[Glossary]({SITE}/book/glossary.html)"),
        ("{doc}`the words <../book/glossary>`", f"[the words]({SITE}/book/glossary.html)"),
        ("{func}`~helpers.f`", f"[`helpers.f`]({SITE}/book/helpers/core.html#helpers.f)"),
        ("{cite:t}`clark2019`", "[Clark et al. (2019)](https://doi.org/10.18653/v1/W19-4828)"),
        (
            "so {cite:p}`jain2019,stefaniknd`.",
            "so ([Jain and Wallace, 2019](https://doi.org/10.18653/v1/N19-1357); Štefánik, n.d.).",
        ),
        ("```python\n{doc}`x`\n```", "```python\n{doc}`x`\n```"),
        (":::{tip}\nDo.\n:::", "> **Tip**\n>\n> Do."),
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
    assert markdown(source, site=SITE) == [said]


def test_without_an_address_there_are_no_links_to_pages():
    assert markdown("See {doc}`../book/glossary`.") == ["See *Glossary*."]


def test_exercises_solutions_and_formulas_are_numbered_and_solutions_marked():
    first = """```{math}
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
    second = "```{exercise-end}\n```\n````{solution-start} ex-b\n````\nSo."
    cells = [nbformat.v4.new_markdown_cell(first), nbformat.v4.new_markdown_cell(second)]
    cells += [nbformat.v4.new_code_cell("1"), nbformat.v4.new_markdown_cell("````{solution-end}\n````\n\nAfter.")]
    made = plain.rendered(nbformat.v4.new_notebook(cells=cells), "02_toy").cells
    assert [(cell.source, plain.SOLUTION in cell.metadata.get("tags", ())) for cell in made] == [
        ("$$\na \\tag{2.1}\n$$\n\n### Exercise 2.1: First\n\nDo.", False),
        ("<details><summary><b>Solution to Exercise 2.1</b></summary>\n\nDone with (2.1).\n\n</details>", True),
        ("### Exercise 2.2: Second\n\nAs Exercise 2.1.", False),
        ("#### Solution to Exercise 2.2\n\nSo.", True),
        ("1", True),
        ("After.", False),
    ]
    assert made[3].metadata["jp-MarkdownHeadingCollapsed"]


def test_what_the_page_hides_is_hidden_and_parameters_are_not():
    tags = (["hide-input"], ["hide-output"], ["parameters", "hide-input"], [])
    cells = [nbformat.v4.new_code_cell("a", metadata={"tags": one}) for one in tags]
    made = plain.rendered(nbformat.v4.new_notebook(cells=cells), "02_toy").cells
    hidden = [{"source_hidden": True}, {"outputs_hidden": True}, None, None]
    assert [cell.metadata.get("jupyter") for cell in made] == hidden


@pytest.mark.parametrize("source", ["{numref}`fig-none`", "{cite:t}`nobody1900`", "{doc}`nowhere`"])
def test_what_leads_nowhere_is_refused(source):
    with pytest.raises(places.BookError):
        markdown(source)

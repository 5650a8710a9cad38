"""The report of a whole run: what is kept, what is left out, that it needs nothing else, that it stays small."""

import base64
import io
import re
from functools import partial

import nbformat
import numpy as np
import pytest
from browser import CHROMIUM, browser
from grown import HOSTILE
from PIL import Image

from helpers import places
from helpers.figures import atlas
from helpers.record.results import Table
from helpers.run import notebooks, report, telling
from helpers.run.notebooks import Run


def picture(width=80, height=60):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8))
    saved = io.BytesIO()
    image.save(saved, "PNG")
    return base64.b64encode(saved.getvalue()).decode()


def cell(source, *outputs, **metadata):
    made = nbformat.v4.new_code_cell(source, metadata=metadata)
    made.outputs = list(outputs)
    return made


def shown(**data):
    return nbformat.v4.new_output("display_data", data={k.replace("_", "/"): v for k, v in data.items()})


def printed(text):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


@pytest.fixture
def chapter(tmp_path):
    figure = {
        "mystnb": {
            "figure": {
                "caption": "Heads of `[CLS]` & $k$, as in {numref}`fig-a`; {cite:t}`clark2019`.",
                "name": "fig-a",
            }
        }
    }
    cells = [
        nbformat.v4.new_markdown_cell(
            "# Is this *the* title?\n\n:::{admonition} x\n# not a title\n:::\nProse of others."
        ),
        nbformat.v4.new_markdown_cell("## Measured\n\nMore prose."),
        cell("print(inspect.getsource(f))", printed("def f(): pass")),
        cell("plot()", shown(image_png=picture()), **figure),
        cell("table", shown(text_markdown="| a | b |\n| --- | --- |\n| x \\| y | <0.05 |")),
        cell("print()", printed("one <line>\n")),
        cell("view", shown(text_html="<script>alert()</script>")),
        nbformat.v4.new_markdown_cell("## Exercises"),
        cell("check", shown(text_markdown="| not | shown |\n| --- | --- |\n| 1 | 2 |")),
        nbformat.v4.new_markdown_cell("## Summary\n\n- done"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"book": {"parameters": {"model": "folder/mine"}}})
    file = tmp_path / "04_some_chapter.ipynb"
    nbformat.write(notebook, file)
    return Run("04_some_chapter", file, executed=True, seconds=1.0)


def test_a_chapter_is_read_without_prose_code_and_exercises(chapter):
    found = report.read(chapter.file)
    assert (found.number, found.title) == (4, "Is this *the* title?")
    assert [kind for kind, _ in found.blocks] == ["heading", "figure", "table", "log", "view"]
    assert found.blocks[0][1] == "Measured" and found.blocks[3][1] == "one <line>"


def test_the_page_is_whole_and_needs_nothing_else(chapter, tmp_path):
    refused = Run("03_no_op", tmp_path / "03_no_op.ipynb", False, 0.0, "it has no head for 'mlm' & more")
    broken = Run("05_x", tmp_path / "05_x.ipynb", False, 0.0, "ZeroDivisionError", failed=True)
    file = report.write(
        [chapter, refused, broken], tmp_path / "out" / "report.html", results=tmp_path, profile="smoke"
    )
    page = file.read_text("utf-8")
    assert "What the attention heads of mine look at" in page and "1 of 3 chapters" in page
    assert "4. Is this <em>the</em> title?" in page and "Prose of others" not in page
    k = '<span class="math inline">k</span>'
    assert f"<b>Figure 4.1.</b> Heads of <code>[CLS]</code> &amp; {k}, as in Figure 4.1; Clark 2019." in page
    assert "<td>x | y</td>\n<td>&lt;0.05</td>" in page and "one &lt;line&gt;" in page
    assert "alert" not in page and "1 interactive view in" in page
    assert (
        "<td>skipped</td><td>it has no head for &#39;mlm&#39; &amp; more</td>" in page and "<td>failed</td>" in page
    )
    for outside in ("<script", "http:", "https:", 'src="/', "@import", "url("):
        assert outside not in page
    assert (
        "The atlas was not measured for this model. <code>python -m helpers atlas --models folder/mine</code>" in page
    )
    assert "@media print" in page and "size: A4" in page and "break-before: page" in page
    assert report.write([chapter], file, results=tmp_path, profile="smoke").read_text("utf-8") == report.write(
        [chapter], file, results=tmp_path, profile="smoke"
    ).read_text("utf-8"), "the same run, the same bytes"


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.browser
def test_nothing_in_a_report_runs(chapter, tmp_path):
    """Hostile tokens, names of models, captions and messages are shown as they are typed."""
    notebook = nbformat.read(chapter.file, as_version=4)
    notebook.metadata.book.parameters["model"] = HOSTILE[0]
    table = Table(["token", HOSTILE[0]], [[token, f"`{token}`"] for token in HOSTILE])
    notebook.cells[3].metadata.mystnb.figure.caption = f"Of {HOSTILE[0]}."
    printed_and_tabled = (
        cell("print()", printed("\n".join(HOSTILE))),
        cell("t", shown(text_markdown=table._repr_markdown_())),
    )
    notebook.cells[5:5] = printed_and_tabled
    nbformat.write(notebook, chapter.file)
    refused = Run("03_no_op", tmp_path / "03_no_op.ipynb", False, 0.0, " ".join(HOSTILE))
    file = report.write([chapter, refused], tmp_path / "report.html", results=tmp_path, profile="smoke")
    with browser() as page:
        page.open(file)
        assert page.problems == [] and page.evaluate("document.scripts.length") == 0
        assert page.evaluate("document.title") != "taken"
        text = page.evaluate("document.body.innerText")
    assert all(text.count(" ".join(token.split())) >= 2 for token in HOSTILE), "shown as typed"


def test_figures_shrink_until_the_page_fits(chapter, tmp_path):
    def size(largest):
        return len(
            report.write(
                [chapter], tmp_path / "r.html", results=tmp_path, profile="smoke", largest=largest
            ).read_bytes()
        )

    whole = size(10**6)
    fewer = size(whole - 1)
    assert fewer < whole and "data:image/png" in (tmp_path / "r.html").read_text()
    assert size(fewer // 2) <= whole and size(100) > 100
    assert "left out for its size" in (tmp_path / "r.html").read_text()
    small = report._smaller((32, 0.5), picture())
    assert Image.open(io.BytesIO(base64.b64decode(small))).size == (40, 30)


def test_provenance_comes_from_the_records(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "atlas_of", lambda *_: {})
    found = report.provenance(places.book_data() / "results", "book", "minilm")
    assert {"surface_patterns", "dependency_heads"} <= {name for name, _ in found}
    said = {"profile": "book", "results": places.book_data() / "results"}
    page = report.write([], tmp_path / "r.html", **said).read_text("utf-8")
    for part in (found[0][1]["model"]["sha256"], "transformers", "encyclopedia", found[0][1]["date"]):
        assert part in page
    page = report.write([], tmp_path / "r.html", **said | {"results": tmp_path}).read_text("utf-8")
    assert "No chapter recorded" in page


def test_a_report_of_the_book_itself_is_small_enough(tmp_path):
    """From the outputs kept in git: every figure and table, in one file that can be sent by mail."""
    done = [Run(c, notebooks.FOLDER / f"{c}.ipynb", True, 1.0) for c in notebooks.chapters()]
    file = report.write(done, tmp_path / "report.html", results=places.book_data() / "results", profile="book")
    assert 1_000_000 < file.stat().st_size <= report.LARGEST
    page = file.read_text("utf-8")
    wanted = drawn = 0
    for run in done:
        told = telling.without_exercises(
            nbformat.read(run.file, as_version=4).cells
        )  # the report leaves them out too
        wanted += sum("image/png" in o.get("data", {}) for c in told if not isinstance(c, str) for o in c.outputs)
        drawn += len(re.findall(rf"<b>Figure {int(run.chapter[:2])}\.\d+\.</b>", page))
    assert drawn == wanted and page.count("<table>") > 10
    text = re.sub(r"base64,[^\"]*", "", page)
    assert not re.search(r"\{(numref|cite|doc)", text), "marks of the book's own Markdown"
    assert "not solved yet" not in text
    scripts = re.findall(r"<script.*?</script>", text, re.S)
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert len(scripts) == 3 and not re.search(r"<script|https?:|@import|url\(", outside), (
        "only the atlas has scripts"
    )


ATLAS = {"results": places.book_data() / "results", "profile": "book"}


@pytest.fixture
def of_minilm(chapter):
    """A run of the book's own model, of which the atlas is recorded."""
    notebook = nbformat.read(chapter.file, as_version=4)
    notebook.metadata.book.parameters["model"] = "minilm"
    nbformat.write(notebook, chapter.file)
    return chapter


def test_a_report_has_the_atlas_only_of_the_weights_it_was_measured_with(of_minilm, tmp_path, monkeypatch):
    write = partial(report.write, [of_minilm], tmp_path / "report.html", **ATLAS)
    page = write().read_text("utf-8")
    assert 'class="atlas"' in page and "helpers atlas --models" not in page
    assert page == write().read_text("utf-8"), "the same run, the same bytes"
    ours = report.provenance(ATLAS["results"], "book", "minilm")
    theirs = [(name, p | {"model": p["model"] | {"sha256": "0" * 64}}) for name, p in ours]
    monkeypatch.setattr(report, "provenance", lambda *_: theirs)
    page = write().read_text("utf-8")
    assert "The atlas was measured with other weights. <code>python -m helpers atlas --models minilm</code>" in page
    assert "<script" not in page


def test_an_atlas_that_is_too_large_is_left_out(of_minilm, tmp_path, monkeypatch):
    monkeypatch.setattr(atlas, "LIMIT", 1000)
    page = report.write([of_minilm], tmp_path / "report.html", **ATLAS).read_text("utf-8")
    assert "The atlas does not fit into this page. The atlas of minilm has" in page and "<script" not in page


@pytest.mark.journey
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.browser
def test_a_reader_looks_a_head_up_in_a_report(of_minilm, tmp_path):
    file = report.write([of_minilm], tmp_path / "report.html", **ATLAS)
    with browser() as page:
        page.open(file)
        page.wait("document.querySelectorAll('.tile').length === 72")
        page.evaluate("document.querySelectorAll('.tile')[28].focus()")
        page.tab.keyboard.press("Enter")
        page.wait("document.querySelector('.head-card')")
        assert page.evaluate("document.querySelector('.head-card .title').textContent").startswith(
            "Head 3-5 of minilm"
        )
        page.evaluate("document.querySelector('ol.contents a').click()")
        assert page.evaluate("location.hash") == "#chapter-4"
        page.evaluate("document.querySelector('.head-card .title').focus()")
        page.tab.keyboard.press("Escape")
        page.wait("!document.querySelector('.head-card')")
        assert page.evaluate("location.hash") == "#chapter-4", "an anchor of the report's own"
        assert page.problems == [] and page.requests == [file.resolve().as_uri()] and page.barriers() == []

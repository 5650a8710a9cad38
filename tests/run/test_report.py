"""The report of a whole run: what it shows of the chapters, what it says of those left out, and that nothing in it runs."""

import json
import re
from itertools import takewhile

import nbformat
import pytest
from conftest import HOSTILE
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers import places
from helpers.results import Table
from helpers.run import notebooks, report
from helpers.run.notebooks import Run

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
RECORDS = places.book_data() / "results"


def executed(folder, *, model, token="otter"):
    """A chapter with a model, a caption, a table and a printed line that hold a token."""
    caption = f"The {token} of {{cite:t}}`clark2019` in {{numref}}`fig-a`, with $k$ heads."
    outputs = [
        new_output("display_data", {"image/png": PNG}),
        new_output("display_data", {"text/markdown": str(Table([token, "share"], [[token, 0.5]]))}),
        new_output("display_data", {"text/html": "<script>document.title = 'taken'</script>"}),
        new_output("stream", text=f"printed {token}"),
    ]
    cells = [
        new_markdown_cell("# Is this *the* title?\n\nProse about other models."),
        new_markdown_cell("::::{admonition} x\n::::\n\n## Measured"),
        new_code_cell(
            "plot()", outputs=outputs, metadata={"mystnb": {"figure": {"name": "fig-a", "caption": caption}}}
        ),
        new_markdown_cell("## Exercises"),
        new_code_cell("check()", outputs=[new_output("stream", text="not solved yet")]),
    ]
    notebook = new_notebook(cells=cells, metadata={"papermill": {"parameters": {"model": model}}})
    nbformat.write(notebook, folder / "04_some_chapter.ipynb")
    return Run("04_some_chapter", folder / "04_some_chapter.ipynb", "executed", 1.0)


def test_a_report_shows_what_a_run_found_and_what_it_left_out(tmp_path):
    skipped = Run("11_head_importance", tmp_path / "11.ipynb", "skipped", 1.0, "it has no head for 'mlm'")
    done = [executed(tmp_path, model="folder/mine"), skipped]
    page = report.write(done, tmp_path / "out" / "report.html", results=tmp_path, profile="book").read_text("utf-8")
    assert "the attention heads of mine look at" in page and "1 of 2 chapters" in page
    assert "<strong>Fig. 4.1</strong> The otter of <a" in page and "in Fig. 4.1, with" in page and PNG in page
    assert "4. Is this <em>the</em> title?" in page and "<h3>Measured</h3>" in page
    assert "<td>otter</td>" in page and "<pre>printed otter</pre>" in page
    assert "Prose" not in page and "not solved yet" not in page
    assert "<td>skipped</td><td>it has no head for &#39;mlm&#39;</td>" in page
    assert "python -m helpers atlas --model folder/mine" in page and "No chapter recorded numbers" in page


@pytest.mark.journey
def test_a_report_of_the_book_holds_every_figure_the_card_first_provenance_and_the_atlas(tmp_path):
    done = [Run(name, notebooks.FOLDER / f"{name}.ipynb", "kept", 0.0) for name in notebooks.chapters()]
    text = report.write(done, tmp_path / "report.html", results=RECORDS, profile="book").read_text("utf-8")
    page = re.sub(r"base64,[^\"]*|<script.*?</script>", "", text, flags=re.DOTALL)
    labels = re.findall(r"<strong>Fig\. (\d+\.\d+)</strong>", page)
    chapters = [nbformat.read(run.file, as_version=4).cells for run in done]
    before = [takewhile(lambda cell: "## Exercises" not in cell.source, cells) for cells in chapters]
    figures = sum("figure" in cell.metadata.get("mystnb", {}) for cells in before for cell in cells)
    assert len(set(labels)) == len(labels) == figures > 70 and page.count('<div class="encoder-card">') == 2
    assert page.index('<div class="encoder-card">') < page.index("The atlas of its heads") < page.index(labels[0])
    own = json.loads((RECORDS / "book" / "minilm" / "no_op.json").read_text("utf-8"))["provenance"]
    assert own["model"]["sha256"] in page and own["corpus"]["sha256"][:10] in page
    assert own["versions"]["torch"] in page
    assert text.count("<script") == text.count("</script>") == 3 and 'class="atlas"' in page
    assert not re.search(r"src=.https?:|@import|url\(|\{(numref|cite|doc)", page)


def test_the_atlas_of_other_weights_is_not_shown(tmp_path):
    record = json.loads((RECORDS / "book" / "minilm" / "no_op.json").read_text("utf-8"))
    record["provenance"]["model"]["sha256"] = "0" * 64
    places.write(tmp_path / "book" / "minilm" / "no_op.json", json.dumps(record))
    done = [executed(tmp_path, model="minilm")]
    page = report.write(done, tmp_path / "report.html", results=tmp_path, profile="book").read_text("utf-8")
    assert "0" * 64 in page and "not measured with these weights" in page and "<script" not in page


@pytest.mark.slow
def test_tokens_are_shown_as_typed_and_nothing_runs(chromium, tmp_path):
    done = [executed(tmp_path, model=HOSTILE, token=HOSTILE), Run("05_x", tmp_path / "x", "failed", 0.0, HOSTILE)]
    file = report.write(done, tmp_path / "report.html", results=tmp_path, profile="book")
    chromium.open(file)
    assert chromium.problems == [] and chromium.evaluate("document.scripts.length") == 0
    assert chromium.evaluate("document.title") != "taken"
    assert chromium.evaluate("document.body.innerText").count(HOSTILE) >= 5

"""The built pages, with one chapter more than the book has: what it costs, structure, links."""

import csv
import html
import re
import subprocess
import sys
from functools import cache
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from grown import HOSTILE, NAME, QUESTION, REPOSITORY, python
from PIL import Image

from helpers import places
from helpers.record import characters, quantities
from helpers.run import contents, notebooks, pages, publishing

pytest.importorskip("jupyter_book", reason="the extra book is not installed")

PAGES = pages.pages_of(places.ROOT / "book" / "_toc.yml")


@pytest.mark.slow
@pytest.mark.notebooks
def test_a_new_chapter_is_its_own_files_and_one_line(tree, grown):
    own = {
        f"helpers/chapters/{NAME}/{part}.py" for part in ("__init__", "measures", "figures", "exercises", "findings")
    }
    own |= {f"helpers/chapters/{NAME}/teaching.yml"}
    own |= {f"notebooks/15_{NAME}.ipynb", f"tests/chapters/test_{NAME}.py"}
    assert set(grown.changed) == own | {"book/_toc.yml", "README.md"} == set(grown.told)
    assert set(grown.after) - set(grown.before) == {f"15_{NAME}"}
    assert {c: grown.after[c] for c in grown.before} == grown.before, "no other chapter is stale"
    python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/chapters/test_{NAME}.py")


@pytest.mark.slow
def test_a_new_chapter_is_told_like_a_chapter(tree, grown):
    code = (
        f"from helpers.run import notebooks, telling; print(*telling.problems(notebooks.find({NAME!r})), sep='\\n')"
    )
    said = python(tree, "-c", code).splitlines()
    assert [one for one in said if one and "minutes to read" not in one] == []


@pytest.mark.slow
def test_a_new_chapter_is_on_every_page_that_lists_chapters(tree, site):
    page = (site / "notebooks" / f"15_{NAME}.html").read_text("utf-8")
    assert QUESTION in page and "<figure" in page and "not solved yet" in page
    assert f"notebooks/15_{NAME}.html" in (site / "book" / "intro.html").read_text("utf-8")
    row = rf"\| \[15\]\(notebooks/15_{NAME}\.ipynb\) \| {re.escape(QUESTION)} \|"
    assert re.search(row, (tree / "README.md").read_text("utf-8"))
    assert f"helpers.chapters.{NAME}.measures.measure" in (site / "book/helpers/chapters.html").read_text("utf-8")
    board = (site / "book" / "scoreboard.html").read_text("utf-8")
    assert "In some head more than half of all attention goes to the first token" in board


@pytest.mark.slow
def test_every_page_is_there(site):
    assert (site / "index.html").is_file()
    for page in PAGES:
        text = (site / f"{page}.html").read_text("utf-8")
        assert len(text) > 5_000 and "<h1>" in text, page


@cache
def anchors(file):
    return set(re.findall(r'\bid="([^"]+)"', file.read_text("utf-8")))


@pytest.mark.slow
def test_links_lead_somewhere(site):
    broken = []
    for page in PAGES:
        file = site / f"{page}.html"
        text = file.read_text("utf-8")
        for address in re.findall(r'(?:href|src)="([^"]+)"', text):
            address = html.unescape(address)
            if re.match(r"[a-z]+:|//", address):
                continue
            path, _, anchor = address.partition("#")
            target = (file.parent / unquote(path.split("?")[0])).resolve() if path else file
            if not target.exists():
                broken.append(f"{page}: {address}")
            elif anchor and target.suffix == ".html" and anchor not in anchors(target):
                broken.append(f"{page}: no anchor {address}")
    assert not broken, broken[:10]


@pytest.mark.slow
def test_every_table_and_figure_of_a_chapter_can_be_saved(site):
    for chapter in notebooks.chapters():
        text = (site / "notebooks" / f"{chapter}.html").read_text("utf-8")
        saved = re.findall(r'<p class="save"><a href="\.\./([^"]+)" download="([^"]+)" aria-label="Save (\w+)', text)
        kinds = [what for _, _, what in saved]
        assert kinds.count("table") == len(re.findall(r'<table class="[^"]*\btable\b', text)), chapter
        assert kinds.count("figure") == len(re.findall(r'<figure class="[^"]*" id="', text)), chapter
        assert kinds.count("drawing") == text.count('<div class="plot"><svg'), chapter
        assert len({name for _, name, _ in saved}) == len(saved) and all(
            (site / file).is_file() for file, _, _ in saved
        )


DRAWINGS = {"intro": "svg", "notation": "svg", "scoreboard": "svg", "treebank": "svg svg csv", "pairs": "csv csv"}
"""Pages with what code draws into them, and what is saved of it."""


@pytest.mark.slow
@pytest.mark.parametrize("page", DRAWINGS)
def test_every_drawing_with_a_picture_or_a_table_can_be_saved(site, page):
    text = (site / "book" / f"{page}.html").read_text("utf-8")
    names = re.findall(r'<p class="save"><a href="\.\./([^"]+)" download="[^"]+" aria-label="Save drawing \d', text)
    assert [name.rpartition(".")[2] for name in names] == DRAWINGS[page].split()
    for file in (site / name for name in names):
        if file.suffix == ".svg":
            assert ElementTree.parse(file).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        else:
            with file.open(encoding="utf-8", newline="") as opened:
                first, *rows = csv.reader(opened)
            assert f"<th>{first[0]}</th>" in text and len(rows) >= 4 and {len(row) for row in rows} == {len(first)}


@pytest.mark.slow
def test_a_saved_figure_to_touch_stands_alone(site):
    """With its style and its legend; what a text or a name holds is text there, too."""
    (file,) = (site / "_downloads").glob(f"15_{NAME}-drawing-*.svg")
    drawn = ElementTree.parse(file).getroot()
    tags = [one.tag.rpartition("}")[2] for one in drawn.iter()]
    assert not {"script", "img", "foreignObject"} & {*tags} and not any(
        k.startswith("on") for one in drawn.iter() for k in one.attrib
    )
    said = [one.text for one in drawn.iter() if one.tag.endswith("}text")]
    assert {HOSTILE[0], HOSTILE[1], HOSTILE[2]} <= {*said}, "labels of the axes, and the legend"
    assert ".axis{" in drawn[0].text and drawn[1].get("fill") == "white"


@pytest.mark.slow
def test_a_saved_table_has_the_cells_of_the_page(site):
    text = (site / "notebooks" / "04_dependency_heads.html").read_text("utf-8")
    for number, table in enumerate(re.findall(r'<table class="table">.*?</table>', text, re.S), 1):
        rows = [
            re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in re.findall(r"<tr.*?</tr>", table, re.S)
        ]
        shown = [[" ".join(html.unescape(re.sub(r"<[^>]+>", "", cell)).split()) for cell in row] for row in rows]
        file = site / "_downloads" / f"04_dependency_heads-table-{number}.csv"
        with file.open(encoding="utf-8", newline="") as opened:
            assert list(csv.reader(opened)) == shown
    assert number >= 5


@pytest.mark.slow
def test_the_page_of_numbers_lists_every_quantity_and_column(site):
    text = (site / "book" / "numbers.html").read_text("utf-8")
    names = [*quantities.COLUMNS, *(one.name for one in quantities.vocabulary())]
    assert [name for name in names if f">{name}<" not in text] == []


@pytest.mark.slow
def test_figures_tables_and_numbers_made_it_into_the_pages(site):
    for chapter in notebooks.chapters():
        text = (site / "notebooks" / f"{chapter}.html").read_text("utf-8")
        assert text.count("<figure") >= 5 and text.count("<table") >= 1
        assert "| ---" not in text, "a table was not rendered"
        assert not re.search(
            r"\{(cite|doc|eq|numref|exercise|solution)", re.sub(r"<script.*?</script>", "", text, flags=re.S)
        ), "a role was not rendered"
        assert 'class="output stderr' not in text and "traceback" not in text.lower()
    patterns = (site / "notebooks" / "02_surface_patterns.html").read_text("utf-8")
    assert patterns.count("<table") >= 4


@pytest.mark.slow
def test_the_data_pages_show_what_code_drew(site):
    wanted = {
        "treebank": ("data:image/svg+xml", 'class="mention"', "acl:relcl"),
        "questions": ("<mark>",),
        "pairs": ("not_paraphrase", "not_entailment"),
        "keyphrases": ("<em>",),
        "corpora": ("247 sentences", "fetch gum", "in the book"),
    }
    for page, marks in wanted.items():
        text = (site / "book" / f"{page}.html").read_text("utf-8")
        assert '<figure class="drawing">' in text and [m for m in marks if m not in text] == []


@pytest.mark.slow
def test_the_heads_that_come_back_have_their_cards_in_the_margin(site):
    asked = {
        c: found[1]
        for c in notebooks.chapters()
        if (found := re.search(r"```\{characters\} (\d\d)", (notebooks.FOLDER / f"{c}.ipynb").read_text("utf-8")))
    }
    assert asked["14_your_own_model"] == "14" and all(number == chapter[:2] for chapter, number in asked.items())
    for chapter, number in asked.items():
        page = (site / "notebooks" / f"{chapter}.html").read_text("utf-8")
        cast = characters.cards("minilm", number)
        assert cast and page.count('class="character"') == len(cast)
        assert all(one.label in page for one in cast)


@pytest.mark.slow
def test_figures_of_heads_lead_to_the_atlas(site):
    for chapter in ("02", "04", "05", "07", "08", "10", "11", "13"):
        text = (site / "notebooks" / f"{notebooks.find(chapter)}.html").read_text("utf-8")
        assert text.count('class="to-atlas"') >= 1, chapter
    for page, touched in (("book/intro", True), ("notebooks/02_surface_patterns", True), ("book/glossary", False)):
        assert ("data-atlas=" in (site / f"{page}.html").read_text("utf-8")) == touched, page
    data = list((site / "_static" / "atlas").glob("minilm*.js"))
    assert data and all(file.stat().st_size < 1_500_000 for file in data)


@pytest.mark.slow
def test_buttons_lead_to_the_copies_to_launch_and_to_the_source_to_edit(site):
    page = html.unescape((site / "notebooks" / "02_surface_patterns.html").read_text("utf-8"))
    buttons = set(re.findall(r'href="(https://[^"]*/example/attention[^"]*)"', page))
    assert buttons == {
        REPOSITORY,
        f"{REPOSITORY}/edit/main/notebooks/02_surface_patterns.ipynb",
        "https://mybinder.org/v2/gh/example/attention/launch?urlpath=lab/tree/notebooks/02_surface_patterns.ipynb",
        "https://colab.research.google.com/github/example/attention/blob/launch/notebooks/02_surface_patterns.ipynb",
        f"{REPOSITORY}/releases/latest/download/{publishing.NAME}.pdf",
        f"{REPOSITORY}/releases/latest/download/{publishing.NAME}.zip",
    }
    told = re.sub(r"<[^>]+>", "", (site / "book" / "how_to_run.html").read_text("utf-8"))
    assert f"git clone {REPOSITORY}\ncd attention\n" in told and "The rocket" in told


@pytest.mark.slow
def test_the_pages_are_a_site(site):
    home = "https://example.github.io/attention/"
    assert (site / ".nojekyll").is_file()
    listed = re.findall("<loc>(.*?)</loc>", (site / "sitemap.xml").read_text("utf-8"))
    assert set(listed) == {f"{home}{page}.html" for page in (*PAGES, f"notebooks/15_{NAME}")}
    with Image.open(site / "_static" / "card.png") as card:
        assert card.size == (1200, 630) and len(card.getcolors(1 << 20)) > 50
    for page in PAGES:
        text = (site / f"{page}.html").read_text("utf-8")
        assert f'<link rel="canonical" href="{home}{page}.html"' in text, page
        assert f'<meta property="og:image" content="{home}_static/card.png"' in text, page
        assert len(re.findall('<meta name="description" content="[^"]{40,}"', text)) == 1, page
    assert "fontawesome.js" not in text and "MathJax" not in text
    told = (site / "notebooks" / "04_dependency_heads.html").read_text("utf-8")
    assert (
        f'<meta name="description" content="In this chapter you {contents.purpose("04_dependency_heads")[0][:20]}'
        in told
    )


@pytest.mark.slow
def test_figures_keep_their_place_until_they_are_fetched(site):
    for chapter in notebooks.chapters():
        text = (site / "notebooks" / f"{chapter}.html").read_text("utf-8")
        pictures = re.findall(r'<img [^>]*src="\.\./_images[^>]*>', text)
        assert len(pictures) > 4
        assert all(re.search(r'loading="lazy" decoding="async" width="\d+" height="\d+"', one) for one in pictures)


def test_the_cover_can_be_touched(site):
    assert 'class="touch"' in (site / "book" / "intro.html").read_text("utf-8")


@pytest.mark.slow
def test_a_missing_page_and_an_unknown_name_fail_the_build(tmp_path):
    source = tmp_path / "source"
    for name, text in {
        "_config.yml": "title: Toy\nonly_build_toc_files: true\n",
        "book/_toc.yml": "format: jb-book\nroot: book/page\nchapters:\n- file: book/nowhere\n",
        "book/page.md": "# A page\n\n```{eval-rst}\n|nowhere| either\n```\n",
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    for _ in range(2):  # not only the first time
        with pytest.raises(notebooks.NotebookError, match="nonexisting document 'book/nowhere'") as error:
            pages.build(source, tmp_path / "out")
        assert 'Undefined substitution referenced: "nowhere"' in str(error.value)


def test_pages_are_built_again_only_when_something_has_changed(tmp_path, monkeypatch):
    built = []

    def sphinx(command, **_):
        if command[0] == "git":  # asked for the remote
            return subprocess.CompletedProcess(command, 0, "", "")
        built.append(command)
        for page in ("index", "book/intro"):
            file = tmp_path / "out" / "_build" / "html" / f"{page}.html"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("page")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(pages.subprocess, "run", sphinx)
    pages.stage(tmp_path / "source")
    (tmp_path / "source" / "book" / "_toc.yml").write_text("format: jb-book\nroot: book/intro\n")
    index = pages.build(tmp_path / "source", tmp_path / "out")
    assert pages.build(tmp_path / "source", tmp_path / "out") == index and len(built) == 1
    index.unlink()
    pages.build(tmp_path / "source", tmp_path / "out")
    assert len(built) == 2, "a page is missing"
    (tmp_path / "source" / "book" / "intro.md").write_text("# New")
    pages.build(tmp_path / "source", tmp_path / "out")
    assert len(built) == 3, "a page has changed"
    kept = tmp_path / "out" / "_build" / ".doctrees"
    kept.mkdir()
    (tmp_path / "source" / "book" / "intro.md").write_text("# Newer")
    pages.build(tmp_path / "source", tmp_path / "out")
    assert len(built) == 4 and kept.is_dir(), "other pages stay as they are"
    (tmp_path / "source" / "book" / "_ext" / "legible.py").write_text("changed = 1")
    pages.build(tmp_path / "source", tmp_path / "out")
    assert len(built) == 5 and not kept.exists(), "every page goes through it"
    monkeypatch.setattr(pages.helpers, "__version__", "1.2.3")
    for _ in range(2):
        pages.build(tmp_path / "source", tmp_path / "out")
        assert len(built) == 6, "a tag was made: pages say of which version they are"


CONF = """
import sys
import helpers
sys.path.insert(0, {extensions!r})
helpers.__version__ = open({version!r}).read()
extensions, exclude_patterns = ["contents"], ["out"]
"""


@pytest.mark.slow
@pytest.mark.journey
def test_a_page_with_generated_parts_is_read_again_when_they_have_changed(tmp_path):
    extensions, version = places.ROOT / "book" / "_ext", tmp_path / "version"
    (tmp_path / "conf.py").write_text(CONF.format(extensions=str(extensions), version=str(version)))
    (tmp_path / "index.rst").write_text("Book\n====\n\n.. toctree::\n\n   book/cite\n   book/other\n")
    (tmp_path / "book").mkdir()
    for name, text in {"cite": "Version <!-- generated: version -->", "other": "None"}.items():
        (tmp_path / "book" / f"{name}.rst").write_text(f"{name}\n=====\n\n{text}\n")

    def built(said):
        version.write_text(said)
        told = python(places.ROOT, "-m", "sphinx", "-W", "-j", "2", str(tmp_path), str(tmp_path / "out"))
        assert f"Version {said}" in (tmp_path / "out" / "book" / "cite.html").read_text("utf-8")
        return re.search(r"(\d+) added, (\d+) changed", told).groups()

    assert built("0.1.0") == ("3", "0")
    assert built("0.1.0") == ("0", "0")
    assert built("0.2.0") == ("0", "1")


def test_pages_that_load_from_elsewhere_are_recognised():
    sys.path.insert(0, str(places.ROOT / "book" / "_ext"))
    try:
        from offline_assets import LOADED_FROM_ELSEWHERE as pattern
    finally:
        sys.path.pop(0)
    for bad in (
        '<script src="https://cdn.x/a.js">',
        "<img alt='' src='//x/y.png'>",
        '<link rel="stylesheet" href="https://x/a.css">',
    ):
        assert pattern.search(bad), bad
    for good in (
        '<script src="../_static/a.js">',
        '<a href="https://example.org">',
        '<link rel="canonical" href="https://x/">',
    ):
        assert not pattern.search(good), good


def test_the_lists_in_the_readme_are_made_from_what_there_is():
    readme = (places.ROOT / "README.md").read_text("utf-8")
    assert contents.renewed(readme) == readme
    stale = readme.replace("ModernBERT", "AncientBERT").replace("notebooks/03_no_op", "notebooks/03_no")
    assert stale != readme == contents.renewed(stale)
    assert contents.families() in contents.filled((places.ROOT / "book" / "bring_your_own.md").read_text("utf-8"))


def test_the_readme_names_every_chapter_and_command():
    readme = (places.ROOT / "README.md").read_text("utf-8")
    for chapter in notebooks.chapters():
        assert f"notebooks/{chapter}.ipynb" in readme
    help_text = subprocess.run(["make", "help"], cwd=places.ROOT, capture_output=True, text=True, check=True).stdout
    for target in (
        "book",
        "site",
        "test",
        "test-all",
        "check",
        "test-random",
        "lab",
        "notebooks",
        "atlas",
        "lock",
        "clean",
    ):
        assert f"make {target}" in help_text
    assert "make book" in readme and "make test" in readme

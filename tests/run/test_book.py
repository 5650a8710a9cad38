"""The built pages, with one chapter more than the book has: what it costs, structure, links, every page in a browser.

The book with the chapter that a test adds is built once; all tests look at that.
"""

import csv
import html
import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlparse

import nbformat
import pytest
from browser import CHROMIUM, browser
from PIL import Image

from helpers import places
from helpers.record import characters, quantities
from helpers.run import contents, notebooks, pages, publishing

pytest.importorskip("jupyter_book", reason="the extra book is not installed")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
PAGES = pages.pages_of(places.ROOT / "book" / "_toc.yml")
COPIED = (
    "helpers",
    "notebooks",
    "book",
    "data",
    "tests",
    "_config.yml",
    "README.md",
    "requirements.lock",
    "pyproject.toml",
)
NAME, QUESTION = "first_tokens", "Does every head look at the beginning?"
CLAIM = f"""
    first_token:
      value: 50
      unit: "%"
      bound: lower
      what: A claim for a chapter that a test adds.
      model: BERT-base
      where: section 0
      data: n/a
      chapter: {NAME}
"""
REPOSITORY = "https://github.com/example/attention"
HOSTILE = (
    "</script><script>parent.document.title = 'taken'</script>",
    "<!--<script>",
    "<img src=x onerror=\"parent.document.title='taken'\">",
)
SHOWN = f"""import numpy as np
from helpers.figures import touch
from helpers.figures.views import attention_view, bertviz
from helpers.record.results import Table
hostile = {HOSTILE!r}
maps = np.full((2, 2, 3, 3), 1 / 3)
labels = {{"alt": hostile[2], "xlabel": hostile[0], "ylabel": hostile[1], "texts": hostile, "tokens": hostile}}
display(touch.points([0, 1, 2], [0, 1, 2], hostile, colours={{hostile[0]: (hostile, dict.fromkeys(hostile, "#000000"))}}, maps=np.full((3, 3, 3), 1 / 3), **labels))
display(touch.frames([0], [hostile[2]], [[hostile, [(one, "#ffdd88") for one in hostile]]], alt=hostile[0]))
display(attention_view(maps, hostile), bertviz("head_view", maps, hostile), Table(["token", hostile[0]], [[t, f"`{{t}}`"] for t in hostile]))
print(*hostile)
"""
FINDING = """Finding(
        Claim("clark2019 first_token", "above", "paper"),
        "In some head more than half of all attention goes to the first token",
        Ours("largest"),
    ),"""


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A copy of the checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        source = places.ROOT / name
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(source, folder / name, ignore=ignored) if source.is_dir() else shutil.copy(
            source, folder / name
        )
    return folder


def helpers(tree, *arguments):
    """Run ``python -m helpers`` on the copy, and return what it prints."""
    return python(tree, "-m", "helpers", *arguments)


def python(tree, *arguments, **variables):
    path = os.pathsep.join([str(tree), os.environ.get("PYTHONPATH", "")])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BOOK_")} | {"PYTHONPATH": path}
    environment |= variables
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def digests(tree):
    code = "import json; from helpers.run import notebooks as n; print(json.dumps({c: n.digest(c, n.parameters(c, 'book')) for c in n.chapters()}))"
    return json.loads(python(tree, "-c", code))


def files_of(tree):
    return {f: f.read_bytes() for f in tree.rglob("*") if f.is_file() and f.suffix != ".pyc"}


@pytest.fixture(scope="session")
def grown(tree):
    """What happened when the copy got a chapter more: files and digests before and after, what the command said."""
    files, before = files_of(tree), digests(tree)
    told = helpers(tree, "new", NAME, "--question", QUESTION).split("\n")
    changed = {f.relative_to(tree).as_posix() for f, now in files_of(tree).items() if files.get(f) != now}
    notebook = nbformat.read(tree / f"notebooks/15_{NAME}.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(SHOWN))
    nbformat.write(notebook, tree / f"notebooks/15_{NAME}.ipynb")
    for file, old, new in (
        ("data/papers.yml", "  claims:\n", "  claims:" + CLAIM),
        (
            f"helpers/chapters/{NAME}/findings.py",
            "FINDINGS: tuple[Finding, ...] = ()",
            f"FINDINGS = (\n    {FINDING}\n)",
        ),
    ):
        text = (tree / file).read_text("utf-8")
        assert old in text
        (tree / file).write_text(text.replace(old, new, 1), "utf-8")
    helpers(tree, "run", NAME, "--profile", "smoke", "--to", "notebooks", "--record")
    return SimpleNamespace(told=set(filter(None, told)), changed=changed, before=before, after=digests(tree))


@pytest.fixture(scope="session")
def site(tree, grown) -> Path:
    """The pages, built from the stored outputs with warnings as errors, for a repository that somebody might have."""
    python(tree, "-m", "helpers", "book", "--stored", "--output", "out", BOOK_REPOSITORY=REPOSITORY)
    return tree / "out" / "_build" / "html"


@pytest.mark.slow
@pytest.mark.notebooks
def test_a_new_chapter_is_its_own_files_and_one_line(tree, grown):
    own = {
        f"helpers/chapters/{NAME}/{part}.py" for part in ("__init__", "measures", "figures", "exercises", "findings")
    }
    own |= {f"helpers/chapters/{NAME}/teaching.yml"}
    own |= {f"notebooks/15_{NAME}.ipynb", f"tests/chapters/test_{NAME}.py"}
    assert grown.changed == own | {"book/_toc.yml", "README.md"} == grown.told
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
    assert f"helpers.chapters.{NAME}.measures.measure" in (site / "book" / "helpers.html").read_text("utf-8")
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
        assert len({name for _, name, _ in saved}) == len(saved) and all(
            (site / file).is_file() for file, _, _ in saved
        )


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


# ------------------------------------------------------------------ in a browser


@pytest.fixture(scope="module")
def page():
    with browser() as tab:
        yield tab


CODE, SEEN_ONCE = "notebooks/14_your_own_model", (".highlight", "dl.py", ".indextable")
"""Code is looked at on one page, and the index's links not one by one: axe would take minutes to measure the colours of its words."""
REFERENCE = "book/helpers"
"""A hundred thousand parts that Sphinx makes by itself: with or without their colours, axe needs minutes."""
LIGHT = 2_500_000
"""Bytes that a chapter may ask for before a reader moves."""


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("name", ["index", "search", "genindex", *PAGES, f"notebooks/15_{NAME}"])
def test_pages_open_without_a_network(site, page, name):
    page.open(site / f"{name}.html")
    assert page.problems == []
    assert page.requests, "the browser reports what it loads"
    source = (site / f"{name}.html").read_text("utf-8")
    assert page.evaluate("document.querySelectorAll('math').length") == source.count('class="math notranslate')
    broken = page.evaluate("[...document.images].filter((i) => !i.naturalWidth).map((i) => i.src)")
    assert broken == []
    assert not name.startswith("notebooks/") or 500_000 < page.weight < LIGHT
    for width, theme in ((1280, "light"), (390, "dark")):
        page.look(width, theme)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), "wider than the window"
        assert name == REFERENCE or page.barriers(*SEEN_ONCE * (name != CODE)) == [], (width, theme)


@needs_chromium
@pytest.mark.browser
def test_tables_and_wide_figures_are_moved_on_a_phone_not_shrunk(site, page):
    page.open(site / "notebooks" / "04_dependency_heads.html")
    page.look(390, "light")
    widths = page.evaluate(
        "[...document.querySelectorAll('article img.wide')].map((i) => i.getBoundingClientRect().width)"
    )
    assert widths and min(widths) > 600
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
    tables = "[...document.querySelectorAll('article [role=region]')]"
    assert page.evaluate(f"{tables}.some((r) => r.scrollWidth > r.clientWidth + 20)")
    labels = page.evaluate(
        f"{tables}.map((r) => (r.tabIndex === 0 || r.scrollWidth <= r.clientWidth) && r.ariaLabel)"
    )
    assert all(labels) and len({*labels}) == len(labels) == page.evaluate(
        "document.querySelectorAll('article table').length"
    )
    page.look(1280, "light")


@needs_chromium
@pytest.mark.browser
def test_a_barrier_is_noticed(tmp_path, page):
    """The check itself must be able to fail."""
    (tmp_path / "bad.html").write_text(
        "<!doctype html><html lang=en><title>t</title><img src='data:,'><p style='color:#eee'>pale"
    )
    page.open(tmp_path / "bad.html")
    assert {found.partition(":")[0] for found in page.barriers()} == {"image-alt", "color-contrast"}


@needs_chromium
@pytest.mark.browser
def test_a_head_of_a_figure_opens_its_card(site, page):
    page.open(site / "notebooks" / "07_divergence_map.html", settle=1)
    page.evaluate(
        "document.querySelector('.touch .point[aria-label=\"3-5\"]').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    page.wait("document.querySelector('.under-figure .head-card')")
    assert "Head 3-5 of minilm" in page.evaluate("document.querySelector('.under-figure').textContent")
    assert (
        page.evaluate("document.querySelector('.under-figure .tools a').getAttribute('href')")
        == "../book/atlas.html#minilm/3-5"
    )
    assert page.problems == []


@needs_chromium
@pytest.mark.browser
def test_the_books_view_reacts(site, page):
    page.open(site / "notebooks" / "01_transformer_refresher.html")
    lines = "document.querySelectorAll('.attention-view svg line').length"
    before = page.evaluate(lines)
    assert before > 50
    page.evaluate(
        "[...document.querySelectorAll('.attention-view button')].find((b) => b.textContent === 'all').click()"
    )
    everything = page.evaluate(lines)
    assert everything > before
    page.evaluate("document.querySelector('.attention-view text[tabindex]').focus()")
    assert 0 < page.evaluate(lines) < everything / 5, "one token's rows"
    assert "attends to" in page.evaluate("document.querySelector('.attention-view p').textContent")
    page.evaluate("document.querySelector('.attention-view text[tabindex]').blur()")
    page.evaluate(
        "(() => { const s = document.querySelector('.attention-view select'); s.value = '0'; s.dispatchEvent(new Event('change')); })()"
    )
    assert page.evaluate(lines) != everything
    page.evaluate(
        "[...document.querySelectorAll('.attention-view button')].find((b) => b.textContent === 'none').click()"
    )
    assert page.evaluate(lines) == 0
    assert page.problems == []


@needs_chromium
@pytest.mark.browser
def test_bertviz_draws(site, page):
    page.open(site / "notebooks" / "01_transformer_refresher.html", settle=1.5)
    assert page.problems == []
    frames = page.evaluate("[...document.querySelectorAll('iframe.bertviz')].map((f) => [f.src, f.sandbox.value])")
    assert len(frames) == 2 and all(rights == "allow-scripts" for _, rights in frames), "no reach into the page"
    for address, _ in frames:
        page.open(Path(unquote(urlparse(address).path)), settle=1.5)
        assert page.evaluate("document.querySelectorAll('svg line').length") > 200
        assert page.problems == []


@needs_chromium
@pytest.mark.browser
def test_texts_that_are_code_are_shown_as_typed(site, page):
    page.open(site / "notebooks" / f"15_{NAME}.html", settle=1.5)
    assert page.problems == [] and page.evaluate("document.title") != "taken"
    for where in (
        ".attention-view svg",
        ".touch .legend",
        ".touch .steps",
        "table.table",
        ".output.stream",
        "article",
    ):
        shown = page.evaluate(f"[...document.querySelectorAll({where!r})].map((e) => e.textContent).join(' ')")
        assert all(text in shown for text in HOSTILE), where
    assert page.evaluate("document.querySelector('h2 ~ *, footer') !== null"), "nothing swallows the rest of the page"
    (frame,) = page.evaluate("[...document.querySelectorAll('iframe.bertviz')].map((f) => f.src)")
    page.open(Path(unquote(urlparse(frame).path)), settle=1.5)
    assert page.problems == [] and page.evaluate("document.title") != "taken"
    shown = page.evaluate("[...document.querySelectorAll('svg text')].map((e) => e.textContent)")
    assert set(HOSTILE) <= set(shown)


@needs_chromium
@pytest.mark.browser
def test_search_finds(site, page):
    page.open(site / "search.html")
    page.tab.goto((site / "search.html").as_uri() + "?q=entropy")
    page.wait("document.querySelectorAll('#search-results li').length > 2")
    assert page.problems == []


@needs_chromium
@pytest.mark.browser
def test_the_blocked_network_is_noticed(tmp_path, page):
    """The check itself must be able to fail."""
    (tmp_path / "bad.html").write_text(
        "<script src='https://example.org/x.js'></script><script>undefinedFunction()</script>"
    )
    page.open(tmp_path / "bad.html")
    assert any("asks the network" in p for p in page.problems) and any("exception" in p for p in page.problems)


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
    for target in ("book", "site", "test", "check", "test-random", "lab", "notebooks", "atlas", "lock", "clean"):
        assert f"make {target}" in help_text
    assert "make book" in readme and "make test" in readme

"""The built pages: every page in a browser with the network blocked, its links, what can be saved, zipped and printed."""

import csv
import html
import io
import re
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import SimpleNamespace
from urllib.parse import unquote, urlparse

import nbformat
import pytest
import yaml
from conftest import from_data

from helpers import encoders, places, views
from helpers.run import address, live, pages

pytest.importorskip("jupyter_book", reason="the extra book is not installed")

PAGES = re.findall(r"^[- ]*(?:root|file): *(\S+)", (places.ROOT / "book" / "_toc.yml").read_text("utf-8"), re.M)
CHAPTERS = [page for page in PAGES if page.startswith("notebooks/")]
REFERENCE = [page for page in PAGES if page.startswith("book/helpers/")][1:]
"""Pages that Sphinx makes of docstrings, all alike: axe, which takes minutes for them, looks at one."""
LOOKS = ((1280, "light"), (390, "dark"))
REPOSITORY = "https://github.com/example/attention"
"""What the fixture ``site`` is built for."""


@pytest.mark.parametrize("name", ["index", "search", "genindex", *PAGES])
def test_a_page_needs_no_network_and_fits_every_screen(site, chromium, name):
    chromium.open(site / f"{name}.html")
    assert chromium.problems == []
    bad = "[...document.images].filter((i) => !i.naturalWidth || (i.closest('article') && !i.alt))"
    assert chromium.evaluate(f"{bad}.map((i) => i.src)") == [], "not there, or without words for who cannot see it"
    formulas = chromium.evaluate("document.querySelectorAll('.math').length")
    assert chromium.evaluate("document.querySelectorAll('.math > mjx-container > svg').length") == formulas
    assert chromium.evaluate("document.querySelectorAll('[data-mml-node=merror]').length") == 0
    tables = "[...document.querySelectorAll('.pst-scrollable-table-container')]"
    narrow = f"{tables}.filter((t) => t.scrollWidth > t.clientWidth + 1 && t.getBoundingClientRect().right < document.documentElement.clientWidth - 40)"
    scrolls = "getComputedStyle(i.closest('figure') ?? i).overflowX === 'auto'"
    cut = f"[...document.querySelectorAll('article img')].filter((i) => i.getBoundingClientRect().right > innerWidth && !({scrolls}))"
    chromium.unfold()  # tables are fitted when they are seen
    for width, theme in LOOKS:
        chromium.look(width, theme)
        assert chromium.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), width
        assert chromium.evaluate(f"{cut}.map((i) => i.src)") == [], width
        assert chromium.evaluate(f"{narrow}.length") == 0, "a table is cut beside empty space"


@pytest.mark.journey
@pytest.mark.parametrize("name", ["search", *(page for page in PAGES if page not in REFERENCE)])
def test_a_page_keeps_nobody_out(site, chromium, name):
    chromium.open(site / f"{name}.html")
    chromium.unfold()
    for width, theme in LOOKS:
        chromium.look(width, theme)
        # the colours of code are the same everywhere, and axe needs minutes for all of them
        code = () if name == "notebooks/14_your_own_model" else (".highlight", "dl.py")
        assert chromium.barriers(*code) == [], (width, theme)


def test_the_checks_themselves_can_fail(tmp_path, chromium):
    (tmp_path / "bad.html").write_text(
        "<!doctype html><html lang=en><title>t</title><img src='data:,'><p style='color:#eee'>pale</p>"
        "<script src='https://example.org/x.js'></script><script>undefinedFunction()</script>"
    )
    chromium.open(tmp_path / "bad.html")
    for problem in ("asks the network", "exception"):
        assert any(problem in told for told in chromium.problems)
    assert {barrier.partition(":")[0] for barrier in chromium.barriers()} == {"image-alt", "color-contrast"}


@cache
def anchors(file):
    return set(re.findall(r'\bid="([^"]+)"', file.read_text("utf-8")))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_rendered_whole_and_its_links_lead_somewhere(site, name):
    file, broken = site / f"{name}.html", []
    text = file.read_text("utf-8")
    for link in map(html.unescape, re.findall(r'(?:href|src)="([^"]+)"', text)):
        if re.match(r"[a-z]+:|//", link):
            continue
        path, _, anchor = link.partition("#")
        target = (file.parent / unquote(path.split("?")[0])).resolve() if path else file
        if not target.exists() or (anchor and target.suffix == ".html" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []
    prose = re.sub(r"<(script|pre)\b.*?</\1>", "", text, flags=re.DOTALL)
    left = re.search(r"\{(cite|doc|eq|numref|exercise|solution|generated)|\| ---", prose)
    assert name in REFERENCE or not left, "a role or a table is not rendered"
    assert 'class="output stderr' not in text and "Traceback" not in text
    assert name not in CHAPTERS or text.count("<figure") >= 4


def test_buttons_launch_the_copies_and_edit_the_source(site):
    page = "notebooks/02_surface_patterns"
    text, name = html.unescape((site / f"{page}.html").read_text("utf-8")), f"{page}.ipynb"
    assert set(re.findall(r'href="(https://[^"]*/example/attention[^"]*)"', text)) == {
        REPOSITORY,
        f"{REPOSITORY}/edit/main/{name}",
        f"{REPOSITORY}/issues/new?title=Issue%20on%20page%20%2F{page}.html&body=Your%20issue%20content%20here.",
        f"{REPOSITORY}/discussions",
        f"https://mybinder.org/v2/gh/example/attention/launch?urlpath=lab/tree/{name}",
        f"https://colab.research.google.com/github/example/attention/blob/launch/{name}",
        f"{REPOSITORY}/releases/latest/download/{pages.NAME}.pdf",
        f"{REPOSITORY}/releases/latest/download/{pages.NAME}.zip",
    }


@pytest.mark.parametrize(("remote", "repository", "home"), from_data("remotes"))
def test_the_remote_decides_which_buttons_there_are(tmp_path, monkeypatch, assemble, remote, repository, home):
    for variable in ("BOOK_REPOSITORY", "BOOK_SITE"):
        monkeypatch.delenv(variable, raising=False)
    config = SimpleNamespace(html_static_path=[], html_theme_options={})
    monkeypatch.setattr(places, "ROOT", tmp_path)
    if remote:
        for command in (["init", "-q"], ["remote", "add", "origin", remote]):
            subprocess.run(["git", "-C", tmp_path, *command], check=True)
    assert (address.repository(), address.site()) == (repository, home)
    assemble.configure(None, config)
    assert config.html_theme_options.get("repository_url") == repository
    assert ("launch_buttons" in config.html_theme_options) == (repository is not None)


def test_tables_and_figures_can_be_saved(site, chromium):
    chromium.open(site / "notebooks" / "14_your_own_model.html")
    rows = "[...document.querySelector('article table').rows]"
    links = chromium.evaluate("[...document.querySelectorAll('p.save a')].map((a) => [a.download, a.href])")
    tables = [href for name, href in links if name.endswith(".csv")]
    assert len(tables) == chromium.evaluate("document.querySelectorAll('article .cell_output table').length") > 2
    saved = unquote(tables[0].partition(",")[2])
    assert [*csv.reader(io.StringIO(saved))] == chromium.evaluate(
        f"{rows}.map((row) => [...row.cells].map((cell) => cell.textContent.trim()))"
    )
    figures = [(site / unquote(urlparse(href).path)).is_file() for name, href in links if name.endswith(".png")]
    assert len(figures) > 4 and all(figures)


def test_a_head_of_a_figure_opens_its_card(site, chromium):
    chromium.open(site / "notebooks" / "07_divergence_map.html", settle=1)
    chromium.tab.locator(".touch .point[aria-label='3-5']").dispatch_event("click")
    chromium.wait("document.querySelector('.under-figure .head-card')")
    assert "Head 3-5 of minilm" in chromium.tab.locator(".under-figure").first.text_content()
    link = chromium.tab.locator(".under-figure .tools a").first.get_attribute("href")
    assert link == "../book/atlas.html#minilm/3-5" and chromium.problems == []


def test_the_view_of_attention_reacts(tmp_path, chromium):
    (tmp_path / "page.html").write_text(
        live.look("Emma slept until her dog woke her", encoders.load("minilm")), "utf-8"
    )
    chromium.open(tmp_path / "page.html", settle=1)
    view = chromium.tab.locator(".attention-view").first
    lines = view.locator("svg line")
    view.get_by_role("button", name="all").click()
    everything = lines.count()
    assert everything > 50
    view.locator("text[tabindex]").first.focus()
    assert 0 < lines.count() < everything / 5, "one token's rows"
    assert "attends to" in view.locator("p").first.text_content()
    view.get_by_role("button", name="none").click()
    assert lines.count() == 0 and chromium.problems == []


def test_bertviz_draws_in_a_frame_without_rights(site, chromium):
    chromium.open(site / "notebooks" / "01_transformer_refresher.html", settle=1)
    frames = chromium.evaluate(
        "[...document.querySelectorAll('iframe.bertviz')].map((f) => [f.src, f.sandbox.value])"
    )
    assert frames and all(rights == "allow-scripts" for _, rights in frames)
    for source, _ in frames:
        chromium.open(site / unquote(urlparse(source).path), settle=1)
        assert chromium.evaluate("document.querySelectorAll('svg line').length") > 200 and chromium.problems == []


def test_tokens_that_are_code_are_shown_as_typed(tmp_path, chromium):
    tokens = [
        "</script><script>parent.document.title='taken'</script>",
        "<!--<script>",
        "<img src=x onerror=\"title='taken'\">",
    ]
    maps = [[[[1 / 3] * 3] * 3] * 2] * 2
    shown = views.attention_view(maps, tokens).data + views.bertviz("head_view", maps, tokens).data
    (tmp_path / "page.html").write_text(f"<!doctype html><title>mine</title>{shown}", "utf-8")
    chromium.open(tmp_path / "page.html", settle=1)
    assert chromium.problems == [] and chromium.evaluate("document.title") == "mine"
    assert set(tokens) <= set(chromium.tab.locator(".attention-view svg text").all_text_contents())
    assert set(tokens) <= set(chromium.tab.frame_locator("iframe.bertviz").locator("svg text").all_text_contents())


def test_search_finds_chapters_before_the_reference(site, chromium):
    chromium.open(site / "search.html")
    chromium.tab.goto(f"{(site / 'search.html').as_uri()}?q=ablation")
    chromium.wait("document.querySelectorAll('#search-results li').length > 5")
    hits = chromium.evaluate("[...document.querySelectorAll('#search-results li > a')].map((a) => a.href)")
    reference = ["/book/helpers" in hit for hit in hits]
    assert reference == sorted(reference), hits
    assert any("notebooks/10_ablation_by_type" in hit for hit in hits[: reference.count(False)]), hits


@pytest.mark.pages
def test_what_is_missing_fails_the_build_every_time(tmp_path):
    for name, text in {
        "_config.yml": "title: Toy\nonly_build_toc_files: true\n",
        "book/_toc.yml": "format: jb-book\nroot: book/page\nchapters:\n- file: book/nowhere\n",
        "book/page.md": "# A page\n\n```{eval-rst}\n|nowhere| either\n```\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for _ in range(2):
        with pytest.raises(places.BookError, match="nonexisting document 'book/nowhere'") as error:
            pages.build(tmp_path, tmp_path / "out")
        assert 'Undefined substitution referenced: "nowhere"' in str(error.value)


def test_pages_are_packed(tmp_path):
    folder = tmp_path / "html"
    with pytest.raises(places.BookError, match="make site"):
        pages.pack(folder, tmp_path / "book.zip")
    (folder / "_static").mkdir(parents=True)
    for name in ("index.html", "_static/a.css"):
        (folder / name).write_text(name)
    pages.pack(folder, tmp_path / "dist" / "book.zip")
    with zipfile.ZipFile(tmp_path / "dist" / "book.zip") as archive:
        assert sorted(archive.namelist()) == ["book/_static/a.css", "book/index.html"]


def test_the_book_is_printed(site, chromium, tmp_path):
    toc = {"root": "book/intro", "parts": [{"chapters": [{"file": CHAPTERS[0]}, {"file": "book/notation"}]}]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(toc))
    joined = pages.join(site, tmp_path / "_toc.yml")
    known = set(re.findall(r'\bid="([^"]+)"', joined))
    links = [html.unescape(link) for link in re.findall(r'href="#((?:book|notebooks)/[^"]+)"', joined)]
    assert len(links) > 10 and set(links) <= known
    target = tmp_path / "dist" / "book.pdf"
    with ThreadPoolExecutor(1) as thread:  # this one has a browser already
        thread.submit(pages.write_pdf, target, site, tmp_path / "_toc.yml").result()
    printed = target.read_bytes()
    assert printed.startswith(b"%PDF") and len(printed) > 500_000
    assert not (site / "notebooks" / "paper.html").exists()


@pytest.mark.parametrize("name", ["notebooks/04_dependency_heads", "book/scoreboard"])
def test_a_page_is_printed_whole(site, chromium, name):
    closed = "document.querySelectorAll('article details:not([open], .above-input)').length"
    cut = "[...document.querySelectorAll('article :is(pre, .pst-scrollable-table-container)')].filter((one) => one.scrollWidth > one.clientWidth + 1)"
    chromium.open(site / f"{name}.html")
    folded = chromium.evaluate(closed)
    chromium.tab.set_viewport_size({"width": 718, "height": 1000})  # A4 between margins of a centimetre
    chromium.tab.emulate_media(media="print")
    chromium.evaluate("dispatchEvent(new Event('beforeprint'))")
    there = chromium.evaluate(f"[{closed}, {cut}.map((one) => one.textContent.slice(0, 60))]")
    chromium.evaluate("dispatchEvent(new Event('afterprint'))")
    again = chromium.evaluate(closed)
    chromium.tab.emulate_media(media="screen")
    assert folded > 0 and there == [0, []] and again == folded


def test_without_a_browser_nothing_is_printed(tmp_path, monkeypatch):
    monkeypatch.setattr(pages.shutil, "which", {}.get)
    with pytest.raises(places.BookError, match="Chromium"):
        pages.write_pdf(tmp_path / "book.pdf", tmp_path)


SCHEMAS = {"github-workflows": ".github/workflows/*.yml", "dependabot": ".github/dependabot.yml"}
SCHEMAS |= {"citation-file-format": "CITATION.cff"}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_that_services_read_are_valid(schema):
    from check_jsonschema import main
    from click.testing import CliRunner

    done = CliRunner().invoke(
        main, ["--builtin-schema", f"vendor.{schema}", *map(str, places.ROOT.glob(SCHEMAS[schema]))]
    )
    assert done.exit_code == 0, done.output


def test_a_page_offers_a_copy_to_run(site):
    """As hosted notebooks show it, and with a cell that installs the package."""
    copy = nbformat.read(site / "_sources" / "notebooks" / "04_dependency_heads.ipynb", as_version=4)
    assert any("%pip install" in cell.source for cell in copy.cells[:4])
    assert not any(":::" in cell.source for cell in copy.cells)


def test_workflows_name_targets_that_exist_and_have_few_rights():
    targets = set(re.findall(r"^([a-z-]+):", (places.ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for file in (places.ROOT / ".github/workflows").glob("*.yml"):
        name, flow = file.stem, yaml.safe_load(file.read_text("utf-8"))
        assert flow["permissions"] == {"contents": "read"}, name
        steps = [step for job in flow["jobs"].values() for step in job["steps"]]
        commands = "\n".join(step.get("run", "") for step in steps)
        assert set(re.findall(r"^make ([a-z-]+)", commands, re.MULTILINE)) <= targets, name
        if "make release" in commands:
            assert commands.index("make test") < commands.index("make release"), "what is published was tested"
        used = [step["uses"] for step in steps if "uses" in step]
        assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action in used), name

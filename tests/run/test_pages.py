"""Every built page in a browser with the network blocked: what it loads, how wide it is, whom it keeps out, what reacts."""

from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from browser import CHROMIUM, browser
from grown import HOSTILE, NAME

from helpers import places
from helpers.run import contents, pages

pytest.importorskip("jupyter_book", reason="the extra book is not installed")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
PAGES = ["index", "search", "genindex", *pages.pages_of(places.ROOT / "book" / "_toc.yml"), f"notebooks/15_{NAME}"]
CODE, SEEN_ONCE = "notebooks/14_your_own_model", (".highlight", "dl.py", ".indextable")
"""Code is looked at on one page, and the index's links not one by one: axe would take minutes to measure the colours of its words."""
REFERENCE = [f"book/helpers/{room}" for room in contents.ROOMS if room != "figures"]
"""Tens of thousands of parts that Sphinx makes by itself, for which axe needs minutes: it looks at one room of the package."""
LOOKS = ((1280, "light"), (390, "dark"))


@pytest.fixture(scope="module")
def page():
    with browser() as tab:
        yield tab


LIGHT = 2_500_000
"""Bytes that a chapter may ask for before a reader moves."""


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_pages_open_without_a_network(site, page, name):
    page.open(site / f"{name}.html")
    assert page.problems == []
    assert page.requests, "the browser reports what it loads"
    source = (site / f"{name}.html").read_text("utf-8")
    assert page.evaluate("document.querySelectorAll('math').length") == source.count('class="math notranslate')
    broken = page.evaluate("[...document.images].filter((i) => !i.naturalWidth).map((i) => i.src)")
    assert broken == []
    assert not name.startswith("notebooks/") or 500_000 < page.weight < LIGHT
    for width, theme in LOOKS:
        page.look(width, theme)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), "wider than the window"


@needs_chromium
@pytest.mark.browser
@pytest.mark.journey
@pytest.mark.parametrize("name", [name for name in PAGES if name not in REFERENCE])
def test_pages_keep_nobody_out(site, page, name):
    page.open(site / f"{name}.html")
    for width, theme in LOOKS:
        page.look(width, theme)
        assert page.barriers(*SEEN_ONCE * (name != CODE)) == [], (width, theme)


@needs_chromium
@pytest.mark.browser
def test_tables_and_wide_figures_are_moved_on_a_phone_not_shrunk(site, page):
    page.open(site / "notebooks" / "04_dependency_heads.html")
    page.look(390, "light")
    widths = page.evaluate(
        "[...document.querySelectorAll('article img.wide')].map((i) => i.getBoundingClientRect().width)"
    )
    assert widths and min(widths) > 600
    widths = page.evaluate(
        "[...document.querySelectorAll('article a.broad > img')].map((i) => i.getBoundingClientRect().width)"
    )
    assert widths and min(widths) > 480
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
def test_formulas_stand_in_the_middle_and_long_ones_begin_at_their_beginning(site, page):
    page.open(site / "notebooks" / "12_layer_semantics.html")
    room = """[...document.querySelectorAll('div.math')].map((box) => {
        const [b, f] = [box, box.querySelector('math')].map((e) => e.getBoundingClientRect());
        return [f.left - b.left, b.right - f.right];
    })"""
    page.look(1280, "light")
    (left, right), *_ = page.evaluate(room)
    assert left > 20 and abs(left - right) < 2
    page.look(390, "light")
    sides = page.evaluate(room)
    assert min(right for _, right in sides) < 0 <= min(left for left, _ in sides)
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


@pytest.mark.journey
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

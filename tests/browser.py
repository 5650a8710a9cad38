"""A headless Chromium with the network blocked."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from playwright.sync_api import Page as Tab
from playwright.sync_api import Request

from helpers.run import pages

CHROMIUM = next(filter(None, map(shutil.which, pages.BROWSERS)), None)
AXE = files("axe_playwright_python") / "axe.min.js"
HERE = ("file:", "data:", "about:", "blob:")


class Page:
    """One tab: opens files, runs JavaScript, remembers every request, console error and exception."""

    def __init__(self, tab: Tab) -> None:
        self.tab, self.problems, self.requests = tab, [], []
        tab.set_default_timeout(120_000)
        tab.on("request", self._asked)
        tab.on("requestfailed", self._failed)
        tab.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        tab.on("console", lambda line: line.type == "error" and self.problems.append(f"console: {line.text}"))
        self._session = tab.context.new_cdp_session(tab)
        self._session.send("Emulation.setFocusEmulationEnabled", {"enabled": True})

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith(HERE):
            self.problems.append(f"asks the network for {request.url}")

    def _failed(self, request: Request) -> None:
        if "ERR_ABORTED" not in (request.failure or ""):
            self.problems.append(f"request failed: {request.failure} ({request.url})")

    def evaluate(self, code: str) -> object:
        """Value of a JavaScript expression; promises are awaited."""
        return self.tab.evaluate(code)

    def wait(self, condition: str) -> None:
        """Until a condition holds, through changes of the page."""
        self.tab.wait_for_function(condition)

    def open(self, file: Path, settle: float = 0.4) -> None:
        """Open a page, load the frames that it would load when they are reached, and wait for pictures and formulas."""
        self.problems.clear()
        self.requests.clear()
        self.tab.goto(file.resolve().as_uri())
        self.wait("!document.querySelector('meta[http-equiv=refresh i]')")  # index.html sends one on
        self.tab.wait_for_load_state("load")
        self.evaluate("document.querySelectorAll('iframe[data-src]').forEach((f) => f.src = f.dataset.src)")
        self.wait("[...document.images].every((i) => i.complete)")
        self.evaluate("window.MathJax?.startup?.promise.then(() => 0)")
        self.tab.wait_for_timeout(1000 * settle)

    def unfold(self) -> None:
        """Open all that is folded."""
        self.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    def look(self, width: int, theme: str) -> None:
        """Be so many pixels wide, ``light`` or ``dark``."""
        self.tab.set_viewport_size({"width": width, "height": 1000})
        self.tab.wait_for_timeout(350)  # the theme looks 300 ms later which tables can be moved now
        self.evaluate(f"Object.assign(document.documentElement.dataset, {{mode: {theme!r}, theme: {theme!r}}}) && 0")

    def barriers(self, *without: str) -> list[str]:
        """What axe finds that keeps people out, serious or critical, outside of what the selectors name."""
        if not self.evaluate("'axe' in window"):
            self.tab.evaluate(AXE.read_text("utf-8") + ";0")
        there = [selector for selector in without if self.tab.query_selector(selector)]
        where = {"include": [["html"]], "exclude": [[selector] for selector in there]}
        options = {"resultTypes": ["violations"], "iframes": False, "preload": False}
        flaws = self.tab.evaluate("([where, options]) => axe.run(where, options)", [where, options])["violations"]
        return [
            f"{flaw['id']}: {node['target']} {node['html'][:160]}"
            for flaw in flaws
            if flaw["impact"] in ("serious", "critical")
            for node in flaw["nodes"]
        ]


@contextmanager
def browser() -> Iterator[Page]:
    """A fresh Chromium with one tab."""
    with pages.browser() as chromium:
        yield Page(chromium.new_page(viewport={"width": 1280, "height": 1000}))

"""A headless Chromium with the network blocked, driven through its DevTools protocol."""

import base64
import itertools
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import websocket

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--window-size=1280,1000",
    "--allow-file-access-from-files",
]


class NavigatedError(RuntimeError):
    """The page that was asked has given way to another."""


class Page:
    """One tab: opens files, runs JavaScript, remembers every failed request, console error and exception."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=60)
        self._numbers = itertools.count(1)
        self.problems: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: object) -> dict:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                if "error" in message:
                    gone = message["error"]["message"] == "Inspected target navigated or closed"
                    raise (NavigatedError if gone else RuntimeError)(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message: dict) -> None:
        method, given = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            url = given["request"]["url"]
            self.requests.append(url)
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.problems.append(f"asks the network for {url}")
        elif method == "Network.loadingFailed" and not given.get("canceled"):
            self.problems.append(
                f"request failed: {given.get('errorText')} ({self.requests[-1] if self.requests else ''})"
            )
        elif method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.problems.append(f"exception: {details.get('exception', {}).get('description', details.get('text'))}")
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "assert"):
            self.problems.append(f"console: {[a.get('value', a.get('description')) for a in given['args']]}")
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.problems.append(f"log: {given['entry']['text']} {given['entry'].get('url', '')}")

    def evaluate(self, code: str) -> object:
        """Value of a JavaScript expression; promises are awaited."""
        got = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"])
        return got["result"].get("value")

    def open(self, file: Path, settle: float = 0.4) -> None:
        """Open a page, bring every lazy frame into view, wait until it has come to rest."""
        self.problems.clear()
        self.requests.clear()
        self.evaluate("window.isLeft = true")  # what answers until the new page is there
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.wait(
            "!window.isLeft && document.readyState === 'complete' && location.href.startsWith('file:')"
            " && !document.querySelector('meta[http-equiv=refresh i]')"  # index.html sends one on
        )
        self.evaluate("document.querySelectorAll('iframe').forEach((f) => f.loading = 'eager')")
        self.wait(
            "!window.MathJax || !MathJax.startup || !MathJax.startup.promise || MathJax.startup.promise.then(() => true)"
        )
        time.sleep(settle)
        self.evaluate("1")

    def wait(self, condition: str, seconds: float = 120) -> None:
        """Until a condition holds, through changes of the page."""
        end = time.monotonic() + seconds
        while not self._holds(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.05)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.evaluate(condition))
        except NavigatedError:
            return False

    def screenshot(self, file: Path, *, top: int = 0, height: int = 1000, width: int = 1280) -> None:
        """A PNG of the page from ``top`` down, ``height`` pixels."""
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        file.write_bytes(base64.b64decode(data))

    @property
    def height(self) -> int:
        """Height of the whole page in pixels."""
        return int(self.evaluate("Math.max(document.body.scrollHeight, document.documentElement.scrollHeight)"))


@contextmanager
def browser() -> Iterator[Page]:
    """A fresh Chromium with one tab."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        try:
            port = None
            for line in process.stderr:
                if found := re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
                    port = int(found[1])
                    break
            if port is None:
                raise RuntimeError("Chromium did not start.")
            yield Page(_tab(port))
        finally:
            process.terminate()
            process.wait()
            process.stderr.close()


def _tab(port: int) -> str:
    """Address of the first tab."""
    import http.client

    for _ in range(1200):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/json")
        targets = json.loads(connection.getresponse().read())
        connection.close()
        for target in targets:
            if target["type"] == "page":
                return target["webSocketDebuggerUrl"]
        time.sleep(0.1)
    raise RuntimeError("Chromium has no tab.")

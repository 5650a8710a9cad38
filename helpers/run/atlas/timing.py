"""How long the atlas takes from a key to a repaint, in headless Chromium on this machine."""

import json
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from helpers import places
from helpers.run.atlas import content, page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
FLAGS += ("--disable-component-update", "--disable-sync", "--window-size=1280,1000", "--enable-logging=stderr")
KEYS = ("c", "a", "t", "l", "m", "ArrowRight", "Enter", "Escape")
PRESSING = """<script>
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
(async () => {
  while (!document.querySelector(".tile")) await painted();
  const taken = [];
  for (let round = 0; round <= ROUNDS; round++) for (const key of KEYS) {
    document.querySelector(".tile[tabindex='0']").focus();
    await painted();
    const start = performance.now();
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await painted();
    if (round) taken.push([key, performance.now() - start]);
  }
  console.log("taken " + JSON.stringify(taken));
})();
</script>"""


def atlas(model: str = "minilm", *, rounds: int = 10) -> dict[str, Any]:
    """Press every key of the atlas, one after another, and wait each time until the page is painted again; a round before warms up.

    Returns:
        ``heads``; ``median_ms`` and ``largest_ms`` of all presses; ``slowest_key`` by its median.

    Raises:
        BookError: without Chromium.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise places.BookError("This benchmark needs Chromium. Install it: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        index = page.write(Path(scratch) / "atlas", [model])
        pressing = PRESSING.replace("ROUNDS", str(rounds)).replace("KEYS", json.dumps(KEYS))
        index.write_text(index.read_text("utf-8").replace("</body>", pressing + "</body>"), "utf-8")
        taken = _logged([browser, *FLAGS, f"--user-data-dir={scratch}/profile", index.as_uri()])
    each = {key: statistics.median(ms for pressed, ms in taken if pressed == key) for key in KEYS}
    times = [ms for _, ms in taken]
    return {
        "model": model,
        "heads": _heads(model),
        "presses": len(times),
        "median_ms": statistics.median(times),
        "largest_ms": max(times),
        "slowest_key": max(each, key=each.__getitem__),
    }


def _heads(model: str) -> int:
    return sum(map(len, content.measuring.recorded()[model]["values"]["scale"]))


def _logged(command: list[str]) -> list[tuple[str, float]]:
    """What the page says it has taken; the browser is ended then."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if found := re.search(r'"taken (\[.*\])"', line):
                return json.loads(found[1].replace('\\"', '"'))
        raise places.BookError("Chromium ended before the page was measured.")
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()

"""What measuring costs: the figures of the page about long runs, and of the live page.

Timed in processor time, which a busy machine does not change much. The stored figures are renewed by
``bench.passes("minilm", "a machine, in words")`` and, with a folder that ``python -m helpers build live`` made, by
``bench.live(folder, "a machine, in words")``.
"""

import json
import time
from functools import partial
from pathlib import Path
from timeit import repeat
from typing import Any
from urllib.parse import urlencode

import numpy as np
import psutil
import torch

from helpers import attention, corpora, encoders, parallel, places, tokens
from helpers.measurements import divergence, head_types, surface
from helpers.run import pages, template

PASSES = {
    "forward": "forward pass, nothing observed",
    "surface_patterns": "chapter 02, all statistics",
    "distance_features": "chapter 08, distance features",
    "divergence_map": "chapter 07, all pairs of heads",
}
"""The passes that are timed, and their names on the page about long runs."""
FILE = places.book_data() / "results" / "costs.json"
"""Their figures; the table that the page includes lies beside it."""


def passes(model: str, machine: str, *, rounds: int = 3) -> None:
    """Time :data:`PASSES` on one thread over 16 segments of 128 tokens, reading the text into tokens included, and keep the rates.

    Args:
        machine: what it is measured on, in plain words.
        rounds: how often each is timed, after one more that warms up.
    """
    encoder = encoders.load(model, device="cpu")
    texts = [segment.texts for segment in corpora.segments(corpora.read("encyclopedia"))[:16]]

    def forward() -> None:
        for batch in tokens.batches(encoder, texts, batch_size=4, max_length=128, truncate=True):
            encoder.model(**batch.inputs)

    look = partial(attention.measure, encoder, texts, longest=128)
    runs = (forward, *(partial(look, chapter.look) for chapter in (surface, head_types, divergence)))
    rates = {}
    with parallel.one_thread(), torch.inference_mode():
        for name, run in zip(PASSES, runs, strict=True):
            seconds = repeat(run, timer=time.process_time, number=1, repeat=1 + rounds)[1:]
            rates[name] = np.round(16 * 128 / np.array(seconds), 1).tolist()
    kept = json.loads(FILE.read_text("utf-8")) | {"machine": machine, "segment": 128}
    kept["models"][model] = {"layers": encoder.layers, "heads": encoder.heads, "rates": rates}
    places.write(FILE, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    places.write(FILE.with_suffix(".md"), template("costs.md.j2").render(kept, passes=PASSES, median=np.median))


def ask(tab: Any, **fields: object) -> dict[str, Any]:
    """What an open live page with its model answers to the fields of a link, as it saves it.

    Args:
        tab: a page of playwright.
    """
    tab.evaluate(
        "(link) => new Promise((done) => { addEventListener('hashchange', done, { once: true }); location.hash = link; })",
        urlencode(fields | {"asked": time.time_ns()}),
    )
    tab.wait_for_function("document.querySelector('.live .note').textContent.endsWith(' s.')")
    with tab.expect_download() as saved:
        tab.click(".live .save")
    return json.loads(saved.value.path().read_text("utf-8"))


def live(folder: Path, machine: str) -> None:
    """Compare a live page's attention on twenty sentences of the encyclopedia with the encoder's own, time it in Chromium, and keep
    what the page says of it, ``data/results/live.md``: how far a weight is off; processor seconds for about 16 tokens, the least of
    ten, with drawing and saving; bytes that the page's process takes more with the model.

    Args:
        machine: what it is measured on, in plain words.
    """
    encoder = encoders.load("minilm", device="cpu")
    texts = [text for segment in corpora.segments(corpora.read("encyclopedia"))[:12] for text in segment.texts]
    sentences = [text[start:end].strip() for text in texts for start, end in corpora.sentences(text)]
    lengths = {sentence: len(tokens.encode(encoder, [sentence]).tokens[0]) for sentence in sentences}
    chosen = [sentence for sentence in sentences if 8 <= lengths[sentence] <= 48][:20]
    near = min(chosen, key=lambda sentence: abs(lengths[sentence] - 16))
    with pages.browser("Timing a page") as chromium:
        tab = chromium.new_page()
        tab.goto((folder / "index.html").as_uri())
        before = _renderers("memory_info")[0]
        tab.click(".live .load")
        answers = [np.array(ask(tab, first=sentence)["maps"]) for sentence in chosen]
        tab.request_gc()
        memory = _renderers("memory_info")[0] - before
        seconds = [sum(_renderers("cpu_times")[:2])]
        for blanks in range(10):
            ask(tab, first=near + " " * blanks)
            seconds.append(sum(_renderers("cpu_times")[:2]))
    exact = [attention.maps(encoder, tokens.encode(encoder, [sentence]))[:, 0].numpy() for sentence in chosen]
    apart = np.concatenate([np.abs(a - b).ravel() for a, b in zip(answers, exact, strict=True)])
    numbers = {"largest": apart.max(), "mean": apart.mean(), "weights": apart.size, "seconds": np.diff(seconds).min()}
    numbers |= {"memory": memory, "bytes": (folder / "model.js").stat().st_size, "machine": machine}
    places.write(places.book_data() / "results" / "live.md", template("live.md.j2").render(numbers))


def _renderers(what: str) -> list[float]:
    """Sums of what psutil tells of the processes that draw pages, of browsers that this process has started."""
    mine = [child for child in psutil.Process().children(recursive=True) if "--type=renderer" in child.cmdline()]
    return np.sum([getattr(child, what)() for child in mine], axis=0).tolist()

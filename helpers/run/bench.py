"""What measuring costs: the figures of the page about long runs, those of chapter 07 about its helper (:func:`pairs`), of chapter 11 about
pruned models, and of the live page.

All but the last are timed on one thread, in processor time, which a busy machine does not change much. The stored figures are renewed by
``bench.keep_passes(bench.passes("minilm"), "a machine, in words")``, ``bench.keep_pruning(bench.pruning("minilm"))`` and, with a folder
that ``python -m helpers build live`` made, ``bench.keep_live(bench.live(folder), "a machine, in words")``.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from timeit import timeit
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

import numpy as np
import psutil
import torch
from jaxtyping import Float
from tqdm import trange

from helpers import attention, corpora, encoders, parallel, places, results, tokens
from helpers.corpora.records import Segment
from helpers.measurements import divergence, head_types, importance, surface
from helpers.run import pages
from helpers.run.templates import template

PASSES = {
    "forward": "forward pass, nothing observed",
    "surface_patterns": "chapter 02, all statistics",
    "distance_features": "chapter 08, distance features",
    "divergence_map": "chapter 07, all pairs of heads",
}
"""The passes that are timed, and their names on the page about long runs."""


def timed(rounds: int, *runs: Callable[[], object]) -> Float[np.ndarray, "run round"]:
    """Processor seconds of each run in each round; every round runs all of them once, and a round before the first warms up."""
    once = partial(timeit, timer=time.process_time, number=1)
    with parallel.one_thread(), torch.inference_mode():
        seconds = [list(map(once, runs)) for _ in trange(1 + rounds, desc="rounds", leave=False)]
    return np.transpose(seconds[1:])


def first(count: int) -> list[Segment]:
    """The first segments of the encyclopedia."""
    return corpora.segments(corpora.read("encyclopedia"))[:count]


def passes(model: str = "minilm", *, rounds: int = 3) -> dict[str, Any]:
    """Time :data:`PASSES` over 16 segments of 128 tokens, reading the text into tokens included.

    Returns:
        ``model``, its ``layers`` and ``heads``; ``rates``: pass -> tokens a second, one for each round.
    """
    encoder, segments = encoders.load(model, device="cpu"), first(16)
    texts = [segment.texts for segment in segments]

    def forward() -> None:
        for batch in tokens.batches(encoder, texts, batch_size=4, max_length=128, truncate=True):
            encoder.model(**batch.inputs)

    look = partial(attention.measure, encoder, texts, longest=128)
    statistics, features, pairs = (partial(look, chapter.look) for chapter in (surface, head_types, divergence))
    runs = (forward, statistics, features, pairs)
    rates = np.round(16 * 128 / timed(rounds, *runs), 1).tolist()
    found = {"model": model, "layers": encoder.layers, "heads": encoder.heads}
    return found | {"rates": dict(zip(PASSES, rates, strict=True))}


def keep_passes(found: Mapping[str, Any], machine: str) -> Path:
    """Keep :func:`passes` in ``data/results/costs.json``, and write the table that the page includes beside it.

    Args:
        machine: what it was measured on, in plain words.
    """
    file = places.book_data() / "results" / "costs.json"
    kept = json.loads(file.read_text("utf-8")) | {"machine": machine, "segment": 128}
    kept["models"][found["model"]] = {name: found[name] for name in ("layers", "heads", "rates")}
    places.write(file, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    places.write(file.with_suffix(".md"), template("costs.md.j2").render(kept, passes=PASSES, median=np.median))
    return file


def pairs(model: str = "minilm", *, rounds: int = 9, heads: int = 144) -> dict[str, float]:
    """Time all divergences of so many maps of 128 tokens against two plain loops, each of a head against all.

    Returns:
        ``ms``, processor milliseconds of :func:`helpers.measurements.divergence.divergences`; how many times as long a loop takes that
        computes ``both_terms`` of each divergence, relative entropies to the mixture, and one that takes each head's
        ``entropy_once``; and the ``largest`` difference from the first in double precision, in nats a token.
    """
    encoder = encoders.load(model, device="cpu")
    segments = first(-(-heads // (encoder.layers * encoder.heads)))
    batch = tokens.encode(encoder, [segment.texts for segment in segments], max_length=128, truncate=True)
    maps = attention.maps(encoder, batch).flatten(0, 2)[:heads].contiguous()
    weights = maps.numpy().clip(divergence.TINY)

    def both_terms(weights: Float[np.ndarray, "head query key"] = weights) -> Float[np.ndarray, "head head"]:
        rows = []
        for head in weights:
            mixture = (head + weights) / 2
            terms = head * np.log(head / mixture) + weights * np.log(weights / mixture)
            rows.append(terms.sum((1, 2)) / 2)
        return np.stack(rows)

    def entropy_once() -> Float[np.ndarray, "head head"]:
        own, rows = -(weights * np.log(weights)).sum((1, 2)), []
        for head, entropy in zip(weights, own, strict=True):
            mixture = (head + weights) / 2
            rows.append(-(mixture * np.log(mixture)).sum((1, 2)) - (entropy + own) / 2)
        return np.stack(rows)

    runs = (partial(divergence.divergences, maps), both_terms, entropy_once)
    seconds = np.median(timed(rounds, *runs), 1)
    largest = np.abs(runs[0]() - both_terms(weights.astype(np.float64))).max() / maps.shape[-1]
    times = dict(zip(("both_terms", "entropy_once"), seconds[1:] / seconds[0], strict=True))
    return {"ms": 1e3 * seconds[0], **times, "largest": largest}


def pruning(model: str = "minilm", *, rounds: int = 9) -> dict[str, Any]:
    """Time forward passes of models whose heads are really gone: none, some of every layer, all of the last layers.

    Returns:
        ``inputs``, the shapes of what is timed, and ``variants``: name -> ``removed``, the share of heads, parameters (all, layers,
        attention), and the median milliseconds of a forward pass of one input and of a batch.
    """
    encoder = encoders.load(model, device="cpu")
    layers, heads = encoder.layers, encoder.heads
    removed = {"none": []}
    for count in [round(share * heads) for share in (1 / 12, 1 / 4, 1 / 2, 3 / 4, 11 / 12, 1)]:
        gone = [(layer, head) for layer in range(layers) for head in range(count)]
        removed[f"{count} of {heads} heads of every layer"] = gone
    for count in sorted({max(1, round(share * layers)) for share in (1 / 6, 1 / 3, 1 / 2)}):
        gone = [(layer, head) for layer in range(layers - count, layers) for head in range(heads)]
        removed[f"all heads of {count} of {layers} layers"] = gone
    pruned = [importance.cut_out(encoder, gone) for gone in removed.values()]
    both = [
        tokens.encode(encoder, [segment.texts for segment in first(n)], max_length=128, truncate=True).inputs
        for n in (1, 16)
    ]
    seconds = timed(rounds, *(partial(one.model, **given) for one in pruned for given in both))
    variants = {}
    for (name, gone), one, times in zip(removed.items(), pruned, np.median(seconds, 1).reshape(-1, 2), strict=True):
        variants[name] = {"removed": len(gone) / (layers * heads), **importance.sizes(one)}
        variants[name] |= {"one_ms": 1e3 * times[0], "batch_ms": 1e3 * times[1]}
    shapes = {size: list(given["input_ids"].shape) for size, given in zip(("one", "batch"), both, strict=True)}
    return {"model": model, "rounds": rounds, "inputs": shapes, "variants": variants}


def keep_pruning(found: Mapping[str, Any]) -> Path:
    """Keep :func:`pruning` in ``data/results``, where chapter 11 reads it."""
    values = {name: value for name, value in found.items() if name != "model"}
    encoder = encoders.load(found["model"], device="cpu")
    with patch.dict(os.environ, {"BOOK_RESULTS": str(places.book_data() / "results")}):
        return results.record("pruning_speed", values, encoder=encoder, corpus=None, profile="bench", parameters={})


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


def live(folder: Path) -> dict[str, Any]:
    """Compare a live page's attention on twenty sentences of the encyclopedia with the encoder's own, and time it in Chromium.

    Returns:
        ``largest`` and ``mean`` difference of a weight, of so many ``weights``; processor ``seconds`` for about 16 tokens, the
        least of ten, with drawing and saving; ``memory``, bytes that the page's process takes more with the model; ``bytes`` of the model's file.
    """
    from playwright.sync_api import sync_playwright

    encoder, texts = encoders.load("minilm", device="cpu"), [one for segment in first(12) for one in segment.texts]
    sentences = [text[start:end].strip() for text in texts for start, end in corpora.sentences(text)]
    own = [tokens.encode(encoder, [sentence]) for sentence in sentences]
    chosen = [
        (sentence, batch) for sentence, batch in zip(sentences, own, strict=True) if 8 <= len(batch.tokens[0]) <= 48
    ][:20]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, pages.BROWSERS))), args=pages.FLAGS
        )
        tab = browser.new_page()
        tab.goto((folder / "index.html").as_uri())
        before = _renderers("memory_info")[0]
        tab.click(".live .load")
        answers = [np.array(ask(tab, first=sentence)["maps"]) for sentence, _ in chosen]
        tab.request_gc()
        memory = _renderers("memory_info")[0] - before
        near = min(chosen, key=lambda one: abs(len(one[1].tokens[0]) - 16))[0]
        seconds = [_renderers("cpu_times")]
        for n in range(10):
            ask(tab, first=near + " " * n)
            seconds.append(_renderers("cpu_times"))
        browser.close()
    exact = [attention.maps(encoder, batch)[:, 0].numpy() for _, batch in chosen]
    apart = np.concatenate([np.abs(a - b).ravel() for a, b in zip(answers, exact, strict=True)])
    found = {
        "largest": apart.max(),
        "mean": apart.mean(),
        "weights": apart.size,
        "seconds": np.diff(np.array(seconds)[:, :2].sum(-1)).min(),
    }
    return found | {"memory": memory, "bytes": (folder / "model.js").stat().st_size}


def _renderers(what: str) -> list[float]:
    """Sums of what psutil tells of the processes that draw pages, of browsers that this process has started."""
    mine = [one for one in psutil.Process().children(recursive=True) if "--type=renderer" in one.cmdline()]
    return np.sum([getattr(one, what)() for one in mine], axis=0).tolist()


def keep_live(found: Mapping[str, Any], machine: str) -> Path:
    """Keep :func:`live` in ``data/results/live.md``, which the page includes.

    Args:
        machine: what it was measured on, in plain words.
    """
    file = places.book_data() / "results" / "live.md"
    places.write(file, template("live.md.j2").render(found, machine=machine))
    return file

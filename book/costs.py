"""What measuring costs, and how exact the live page is: the numbers on ``long_runs.md`` and ``try.md``, measured anew. ::

    python -P book/costs.py passes minilm "a machine, in words"
    python -P book/costs.py live _build/live "a machine, in words"

Timed in processor time, which a busy machine does not change much. ``-P``, because a
folder of pages beside this file is called like the package. The second needs Chromium, and a folder that
``python -m helpers build live`` has made.
"""

import json
import sys
import time
from functools import partial
from pathlib import Path
from timeit import repeat

import numpy as np
import pandas as pd
import psutil
import torch

from helpers import attention, corpora, encoders, places, tokens
from helpers.measurements import divergence, head_types, surface
from helpers.run import live, pages

PASSES = {
    "forward": "forward pass, nothing observed",
    "surface_patterns": "chapter 02, all statistics",
    "distance_features": "chapter 08, distance features",
    "divergence_map": "chapter 07, all pairs of heads",
}
"""The passes that are timed, and their names on the page about long runs."""
RESULTS = places.book_data() / "results"
SEGMENT = 128


def passes(model: str, machine: str, rounds: int = 3) -> None:
    """Time :data:`PASSES` on one thread over 16 segments of 128 tokens, reading the text into tokens included, and keep the rates."""
    encoder = encoders.load(model, device="cpu")
    texts = [segment.texts for segment in corpora.segments(corpora.read("encyclopedia"))[:16]]

    def forward() -> None:
        for batch in tokens.batches(encoder, texts, batch_size=4, max_length=SEGMENT, truncate=True):
            encoder.model(**batch.inputs)

    look = partial(attention.measure, encoder, texts, longest=SEGMENT)
    runs = (forward, *(partial(look, chapter.look) for chapter in (surface, head_types, divergence)))
    rates = {}
    torch.set_num_threads(1)
    with torch.inference_mode():
        for name, run in zip(PASSES, runs, strict=True):
            seconds = repeat(run, timer=time.process_time, number=1, repeat=1 + rounds)[1:]  # the first warms up
            rates[name] = np.round(16 * SEGMENT / np.array(seconds), 1).tolist()
    kept = json.loads((RESULTS / "costs.json").read_text("utf-8")) | {"machine": machine, "segment": SEGMENT}
    kept["models"][model] = {"layers": encoder.layers, "heads": encoder.heads, "rates": rates}
    places.write(RESULTS / "costs.json", json.dumps(kept, indent=1, sort_keys=True) + "\n")
    table = pd.DataFrame(index=PASSES.values())
    for name, of in sorted(kept["models"].items()):
        rate = np.array([np.median(of["rates"][timed]) for timed in PASSES])
        table[f"{name}, {of['layers']} × {of['heads']} heads: tokens a second"] = [f"{each:,.0f}" for each in rate]
        table[f"{name}: 10⁹ tokens take"] = [f"{1e9 / each / 86400:,.1f} core-days" for each in rate]
    told = f"Measured with `book/costs.py` on {machine}, in segments of {SEGMENT} tokens, one thread; median of {rounds} rounds."
    told += " A pass includes reading the text into tokens and the forward pass.\n\n"
    shown = (
        table.rename_axis("pass")
        .reset_index()
        .to_markdown(index=False, disable_numparse=True, colalign=["left", *["right"] * len(table.columns)])
    )
    places.write(RESULTS / "costs.md", f"{told}{shown}\n")


def exactness(folder: str, machine: str) -> None:
    """Compare a live page's attention on twenty sentences of the encyclopedia with the encoder's own, and time it in Chromium: processor
    seconds for about 16 tokens, the least of ten, with drawing and saving; bytes that the page's process takes more with the model.
    """
    encoder = encoders.load("minilm", device="cpu")
    texts = [text for segment in corpora.segments(corpora.read("encyclopedia"))[:12] for text in segment.texts]
    sentences = [text[start:end].strip() for text in texts for start, end in corpora.sentences(text)]
    lengths = {sentence: len(tokens.encode(encoder, [sentence]).tokens[0]) for sentence in sentences}
    chosen = [sentence for sentence in sentences if 8 <= lengths[sentence] <= 48][:20]
    near = min(chosen, key=lambda sentence: abs(lengths[sentence] - 16))
    with pages.browser("Timing a page") as chromium:
        tab = chromium.new_page()
        tab.goto((Path(folder) / "index.html").absolute().as_uri())
        before = renderers("memory_info")[0]
        tab.click(".live .load")
        answers = [np.array(live.ask(tab, first=sentence)["maps"]) for sentence in chosen]
        tab.request_gc()
        memory = renderers("memory_info")[0] - before
        seconds = [sum(renderers("cpu_times")[:2])]
        for blanks in range(10):
            live.ask(tab, first=near + " " * blanks)
            seconds.append(sum(renderers("cpu_times")[:2]))
    exact = [attention.maps(encoder, tokens.encode(encoder, [sentence]))[:, 0].numpy() for sentence in chosen]
    apart = np.concatenate([np.abs(a - b).ravel() for a, b in zip(answers, exact, strict=True)])
    size = (Path(folder) / "model.js").stat().st_size / 1e6
    told = f"**How exact it is.** To be small, the model's matrices are rounded to 8 bits ({size:.0f} MB in place of 91). "
    told += "On twenty sentences of the {doc}`encyclopedia` an attention weight of this page differs from that of the chapters by "
    told += f"{apart.max():.3f} at most and by {apart.mean():.4f} on average ({apart.size:,} weights). Sixteen tokens take "
    told += f"{np.diff(seconds).min():.2f} seconds of one processor, drawing included, and the model {round(memory / 1e6, -1):.0f} MB "
    places.write(RESULTS / "live.md", f"{told}of memory. Measured with `book/costs.py` on {machine}.\n")


def renderers(what: str) -> list[float]:
    """Sums of what psutil tells of the processes that draw pages, of browsers that this process has started."""
    mine = [child for child in psutil.Process().children(recursive=True) if "--type=renderer" in child.cmdline()]
    return np.sum([getattr(child, what)() for child in mine], axis=0).tolist()


if __name__ == "__main__":
    {"passes": passes, "live": exactness}[sys.argv[1]](*sys.argv[2:])

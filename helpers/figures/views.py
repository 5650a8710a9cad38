"""Interactive views that draw with no network, and the libraries that bertviz needs."""

import base64
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

import numpy as np
from IPython.display import HTML
from numpy.typing import ArrayLike

from helpers.figures.look import HEAD_COLOURS


def attention_view(
    maps: ArrayLike, tokens: Sequence[str], *, layer: int = 0, heads: Sequence[int] | None = None
) -> HTML:
    """The book's own interactive view: choose layers and heads, point at a token.

    Draws with no network in the book and in JupyterLab; weights are rounded to one byte, so that a sentence
    of twenty tokens takes about 40 kB. Reachable by keyboard.

    Args:
        maps: [layer, head, query, key], at most 40 tokens.
        layer, heads: what is shown at first (from 0; default: all heads).
    """
    maps = np.asarray(maps)
    layers, count, length, _ = maps.shape
    if length > 40 or length != len(tokens):
        raise ValueError(
            f"The view takes up to 40 tokens with their maps, not {length} positions and {len(tokens)} tokens."
        )
    weights = np.round(255 * maps.clip(0, 1)).astype(np.uint8)
    data = {"tokens": list(tokens), "layers": layers, "heads": count, "layer": layer}
    data |= {"on": list(range(count) if heads is None else heads), "colours": list(HEAD_COLOURS)}
    data["label"] = f"Attention of {count} heads in {layers} layers over {length} tokens"
    data["weights"] = base64.b64encode(weights.tobytes()).decode()
    script = (files("helpers.figures") / "attention_view.js").read_text("utf-8")
    return HTML(
        '<div class="attention-view" style="max-width:34em">'
        f'<script type="application/json">{in_script(json.dumps(data))}</script><script>{script}</script></div>'
    )


def in_script(code: str) -> str:
    """JSON, whatever texts are in it, as it may stand in a script element: nothing in it can end the element or open a comment."""
    return code.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def bertviz(
    view: str, maps: ArrayLike, tokens: Sequence[str], *, second: int | None = None, height: int | None = None
) -> HTML:
    """bertviz's ``head_view`` or ``model_view`` (Vig 2019), in a frame of its own that needs no network.

    bertviz asks a content network for d3, jQuery and require.js. Here they come from installed packages. A
    stored notebook keeps the weights only (:func:`without_frames`); the book's build and a fresh run of the
    cell put the scripts in again.

    Args:
        view: ``"head_view"`` or ``"model_view"``.
        maps: [layer, head, query, key]; rounded to three digits.
        second: position where the second text begins, to choose directions between the two.
        height: of the frame in pixels (default: as many as the head view of these tokens needs).
    """
    maps = np.asarray(maps)
    height = height or 90 + 24 * len(tokens)
    thousandths = np.round(1000 * maps).astype("<u2")
    data = {"view": view, "tokens": list(tokens), "second": second, "shape": list(maps.shape)}
    data["thousandths"] = base64.b64encode(thousandths.tobytes()).decode()
    try:
        scripts = vendored(*FRAME_LIBRARIES).values()
        libraries = "".join(f"<script>{file.read_text('utf-8')}</script>" for file in scripts)
        document = bertviz_document(data, libraries)
    except (PackageNotFoundError, ModuleNotFoundError):
        return HTML(
            "<p>bertviz is not installed here: <code>pip install 'attention-heads-book[book]'</code> brings it.</p>"
        )
    return HTML(
        f'<div><iframe class="bertviz" sandbox="allow-scripts" title="bertviz {view}" style="width:100%;height:{height}px;border:1px solid #cccccc;'
        f'background:white" data-bertviz="{html.escape(json.dumps(data))}" '
        f'srcdoc="{html.escape(document)}"></iframe></div>'
    )


FRAME_LIBRARIES = ("d3.min.js", "jquery.min.js")
FRAME_DOCUMENT = re.compile(r' srcdoc="[^"]*"')
_AS_OTHERS = {ord(sign): 0xE000 + ord(sign) for sign in "<>&"}  # of Unicode's private use
_REQUIRE_FROM_CDN = re.compile(r'<script src="https://cdnjs[^"]*require[^"]*"></script>')
_REQUIRE_SHIM = "window.require={config(){}};window.requirejs=(names,run)=>run(window.jQuery,window.d3);"


def bertviz_document(data: Mapping[str, object], libraries: str) -> str:
    """A whole HTML page with a bertviz view.

    Args:
        data: what :func:`bertviz` keeps in ``data-bertviz``.
        libraries: script elements that bring d3 and jQuery.
    """
    import torch
    from bertviz import head_view, model_view

    raw = np.frombuffer(base64.b64decode(data["thousandths"]), dtype="<u2").reshape(data["shape"])
    attention = [torch.from_numpy(layer / 1000.0)[None] for layer in raw]
    draw = {"head_view": head_view, "model_view": model_view}[data["view"]]
    # bertviz writes tokens into its script as they are: signs that could end it go through as others, and come back escaped
    tokens = [token.translate(_AS_OTHERS) for token in data["tokens"]]
    page = draw(attention, tokens, sentence_b_start=data["second"], html_action="return").data
    page = re.sub(r"\\ue0([0-9a-f]{2})", r"\\u00\1", page)
    page = re.sub(r"bertviz-[0-9a-f]{32}", "bertviz-view", page)
    return (
        "<!doctype html><html><head><meta charset='utf-8'></head><body style='margin:4px;background:white'>"
        f"{libraries}<script>{_REQUIRE_SHIM}</script>{_REQUIRE_FROM_CDN.sub('', page)}</body></html>"
    )


def without_frames(output: str) -> str:
    """The HTML of :func:`bertviz` without its scripts, as it is kept in stored notebooks."""
    return FRAME_DOCUMENT.sub(' srcdoc="Run this cell to draw the view."', output)


VENDORED = {"d3.min.js": ("mpld3", "js/d3.v5.min.js"), "jquery.min.js": ("sphinxcontrib-jquery", "jquery/jquery.js")}
"""Third-party scripts that pages load: the package that has each, and how its path there ends."""


def vendored(*names: str) -> dict[str, Path]:
    """Third-party scripts, all or those named: name -> where an installed package keeps them."""
    return {name: _file_of(*VENDORED[name]) for name in names or VENDORED}


def _file_of(package: str, ending: str) -> Path:
    for file in distribution(package).files or ():
        if str(file).endswith(ending):
            return Path(file.locate())
    raise FileNotFoundError(f"The installed package {package} has no file {ending}.")

"""Views in the page: text with its annotations, bertviz and a small view of our own, and figures to touch: points that show a map.

Each is drawn as SVG and text, can be read without a script and printed, and loads nothing from anywhere; every text is escaped, and the
data of a figure to touch stay under :data:`LIMIT`.
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from html import escape, unescape
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
from IPython.display import HTML
from jinja2 import Environment, PackageLoader
from jinja2.environment import TemplateModule
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from helpers.corpora.treebanks import Document
from helpers.plots import ASSETS, COLOURS, HEAD_COLOURS, LABELS, REST, Labels, Names

#: Characters that a figure may put into a page, its script and style apart.
LIMIT = 150_000
TOO_LARGE = "There is too much here for a figure to touch."
#: From where to where the axes of a plot go, on a page of 400 by 300 (``touch.html.j2``).
ACROSS, DOWN = (56, 390), (258, 10)

#: The label of each point, and the colour of each label.
Colouring = tuple[Names, Labels]


@dataclass(frozen=True)
class InteractiveFigure:
    """What a cell shows: HTML where that can be shown, and otherwise what the figure says in words."""

    data: str
    alt: str

    def _repr_html_(self) -> str:
        return self.data

    def __repr__(self) -> str:
        return self.alt


def points(
    x: ArrayLike,
    y: ArrayLike,
    names: Names,
    *,
    xlabel: str,
    ylabel: str,
    alt: str,
    colours: Mapping[str, Colouring],
    texts: Names,
    maps: ArrayLike | None = None,
    tokens: Names = (),
    first: int = 0,
    equal: bool = False,
) -> InteractiveFigure:
    """Points that say who they are when they are pointed at, touched, or reached with the arrow keys.

    Where all would be more than :data:`LIMIT` the maps are left out, and where that is not enough a sentence stands in place of the figure.

    Args:
        x, y: [point].
        alt: what the figure shows, in a sentence.
        colours: what points may be coloured by, "layer", "k = 4", …; the first is what is shown at first.
        texts: a line on each point.
        maps: [point, size, size], a map in 0 … 1 of each point, kept as bytes.
        tokens: [size], the names of a map's rows and columns.
        first: the point that is shown at first.
        equal: whether a unit is as long on x as on y, as on a map.

    Raises:
        KeyError: for a label without a colour.
        ValueError: for a map whose rows are not the tokens.
    """
    spans = [1.08 * np.ptp(values) or 1.0 for values in (x, y)]  # with a little room
    if equal:
        lengths = np.ptp([ACROSS, DOWN], axis=1)
        spans = lengths * np.max(spans / lengths)
    across = _axis(xlabel, x, spans[0], ACROSS, ticks=6)
    down = _axis(ylabel, y, spans[1], DOWN, ticks=5)
    colourings = []
    for title, (labels, palette) in colours.items():
        used = [label for label in palette if label in set(labels)]
        colourings.append([title, [used.index(label) for label in labels], [(name, palette[name]) for name in used]])
    data = {"names": list(names), "texts": list(texts), "first": first}
    data |= {"alt": alt, "colourings": colourings}
    plain = _figure(data, across, down)
    if maps is None:
        return plain
    each = [token for token, _ in zip(tokens, maps[0], strict=True)]
    data |= {"size": len(each), "tokens": each, "maps": as_bytes(maps)}
    figure = _figure(data, across, down)
    return plain if figure.alt == TOO_LARGE else figure


def _axis(label: str, values: ArrayLike, span: float, ends: tuple[int, int], *, ticks: int) -> dict[str, object]:
    """An axis that shows a span around some values: where these are between its ends, and at most so many round numbers with their places."""
    middle = (np.max(values) + np.min(values)) / 2
    shown = middle - span / 2, middle + span / 2
    numbers = [tick for tick in MaxNLocator(ticks).tick_values(*shown) if shown[0] <= tick <= shown[1]]
    names = [f"{number:.4g}".replace("-", "−") for number in numbers]
    marks = list(zip(names, np.interp(numbers, shown, ends), strict=True))
    return {"label": label, "ends": ends, "places": np.interp(values, shown, ends), "ticks": marks}


def _figure(data: Mapping[str, object], *axes: Mapping[str, object]) -> InteractiveFigure:
    """The figure in one element, if small enough for a page: what ``touch.html.j2`` draws, its data, style and script."""
    content = _macros().plot(data, *axes)
    content += Markup(f'<script type="application/json">{in_script(json.dumps(data))}</script>')
    if len(content) > LIMIT:
        return InteractiveFigure(f"<p>{TOO_LARGE}</p>", TOO_LARGE)
    style, script = asset("touch.css"), asset("touch.js")
    page = f'<div class="touch"><style>{style}</style>{content}<script>{script}</script></div>'
    return InteractiveFigure(page, data["alt"])


def by_kind(kinds: Names) -> Colouring:
    """Points coloured by a name of :data:`helpers.plots.STYLES` each, an empty one for the rest."""
    rest, colours = "none of these", {LABELS[kind]: COLOURS[kind] for kind in LABELS if kind in set(kinds)}
    return [LABELS.get(kind, rest) for kind in kinds], colours | {rest: REST}


@cache
def _macros() -> TemplateModule:
    options = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(loader=PackageLoader("helpers", "assets"), **options).get_template("touch.html.j2").module


def asset(name: str) -> str:
    """A script or a style of this package."""
    return (ASSETS / name).read_text("utf-8")


def as_bytes(weights: ArrayLike) -> str:
    """Weights from 0 to 1, a byte each, in base64."""
    return base64.b64encode(np.round(255 * np.clip(weights, 0, 1)).astype(np.uint8).tobytes()).decode()


def attention_view(maps: ArrayLike, tokens: Names) -> HTML:
    """The book's own interactive view: choose layers and heads, point at a token.

    Draws with no network in the book and in JupyterLab; weights are rounded to one byte, so that a sentence
    of twenty tokens takes about 40 kB. Reachable by keyboard.

    Args:
        maps: [layer, head, query, key], at most 40 tokens.
    """
    layers, heads, length, _ = np.shape(maps)
    if length > 40 or length != len(tokens):
        raise ValueError(f"The view takes up to 40 tokens with their maps, not {length} with {len(tokens)} names.")
    data = {"tokens": list(tokens), "layers": layers, "heads": heads, "colours": HEAD_COLOURS}
    data["weights"] = as_bytes(maps)
    data["label"] = f"Attention of {heads} heads in {layers} layers over {length} tokens"
    return HTML(
        '<div class="attention-view" style="max-width:34em"><script type="application/json">'
        f"{in_script(json.dumps(data))}</script><script>{asset('attention_view.js')}</script></div>"
    )


def in_script(code: str) -> str:
    """JSON, whatever texts are in it, as it may stand in a script element: nothing in it can end the element or open a comment."""
    return code.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def bertviz(
    view: str,
    maps: ArrayLike,
    tokens: Names,
    *,
    head: tuple[int, int] | None = None,
    second: int | None = None,
    height: int | None = None,
) -> HTML:
    """bertviz's ``head_view`` or ``model_view`` (Vig 2019), in a frame of its own that needs no network.

    bertviz asks a content network for d3, jQuery and require.js. Here they come from installed packages. A
    stored notebook keeps the weights only (:func:`helpers.run.notebooks.without_frames`); the book's build and a fresh run of the
    cell put the scripts in again.

    Args:
        view: ``"head_view"`` or ``"model_view"``.
        maps: [layer, head, query, key]; rounded to three digits.
        head: that the head view opens at (layer, head, from 0); its list of layers counts from 1, as the book does.
        second: position where the second text begins, to choose directions between the two.
        height: of the frame in pixels (default: as many as the head view of these tokens needs).
    """
    data = {"view": view, "tokens": list(tokens), "head": head, "second": second, "shape": list(np.shape(maps))}
    thousandths = np.round(1000 * np.asarray(maps)).astype("<u2")
    data["thousandths"] = base64.b64encode(thousandths.tobytes()).decode()
    style = f"width:100%;height:{height or 90 + 24 * len(tokens)}px;border:1px solid #cccccc;background:white"
    frame = (
        f'<div><iframe class="bertviz" sandbox="allow-scripts" title="bertviz {view}" style="{style}" '
        f'data-bertviz="{escape(json.dumps(data))}"></iframe></div>'
    )
    try:
        return HTML(with_frames(frame))
    except (PackageNotFoundError, ModuleNotFoundError):
        return HTML(
            "<p>bertviz is not installed here: <code>pip install 'attention-heads-book[book]'</code> brings it.</p>"
        )


FRAME = re.compile(r'(<iframe class="bertviz"[^>]*?) data-bertviz="([^"]*)"')
FRAME_DOCUMENT = re.compile(r' srcdoc="[^"]*"')
_AS_OTHERS = {ord(sign): 0xE000 + ord(sign) for sign in "<>&"}  # of Unicode's private use
_REQUIRE_FROM_CDN = re.compile(r'<script src="https://cdnjs[^"]*require[^"]*"></script>')
_REQUIRE_SHIM = "window.require={config(){}};window.requirejs=(names,run)=>run(window.jQuery,window.d3);"


def bertviz_document(data: Mapping[str, object]) -> str:
    """A whole HTML page with a bertviz view and the scripts that it needs.

    Args:
        data: what :func:`bertviz` keeps in ``data-bertviz``.
    """
    import torch
    from bertviz import head_view, model_view

    raw = np.frombuffer(base64.b64decode(data["thousandths"]), dtype="<u2").reshape(data["shape"])
    attention = [torch.from_numpy(layer / 1000.0)[None] for layer in raw]
    draw = {"head_view": head_view, "model_view": model_view}[data["view"]]
    # bertviz writes tokens into its script as they are: signs that could end it go through as others, and come back escaped
    tokens = [token.translate(_AS_OTHERS) for token in data["tokens"]]
    opened = {"layer": data["head"][0], "heads": [data["head"][1]]} if data.get("head") and draw is head_view else {}
    page = draw(attention, tokens, sentence_b_start=data["second"], html_action="return", **opened).data
    page = page.replace(".text(layer)", ".text(layer + 1)")
    page = re.sub(r"\\ue0([0-9a-f]{2})", r"\\u00\1", page)
    page = re.sub(r"bertviz-[0-9a-f]{32}", "bertviz-view", page)
    return (
        "<!doctype html><html><head><meta charset='utf-8'></head><body style='margin:4px;background:white'>"
        f"{_libraries()}<script>{_REQUIRE_SHIM}</script>{_REQUIRE_FROM_CDN.sub('', page)}</body></html>"
    )


@cache
def _libraries() -> str:
    """Script elements with d3 and jQuery, each from an installed package."""
    scripts = ""
    for package, ending in {"mpld3": "js/d3.v5.min.js", "sphinxcontrib-jquery": "jquery/jquery.js"}.items():
        file = next(file for file in distribution(package).files or () if str(file).endswith(ending))
        scripts += f"<script>{file.read_text('utf-8')}</script>"
    return scripts


def with_frames(output: str) -> str:
    """The HTML that a stored notebook keeps of :func:`bertviz`, with the scripts."""

    def drawn(frame: re.Match[str]) -> str:
        return f'{frame[0]} srcdoc="{escape(bertviz_document(json.loads(unescape(frame[2]))))}"'

    return FRAME.sub(drawn, FRAME_DOCUMENT.sub("", output))


def coreference(document: Document) -> HTML:
    """A document with its coreference chains underlined, each in a colour and with a number of its own."""
    texts = [[escape(word) for word in sentence.words] for sentence in document.sentences]
    chained = [(number, mention) for number, chain in enumerate(document.chains.values()) for mention in chain]
    for number, mention in sorted(chained, key=lambda pair: (pair[1].end, -pair[1].start)):  # from the inside out
        words, colour = texts[mention.sentence], HEAD_COLOURS[number % len(HEAD_COLOURS)]
        style = f"border-bottom: 2px solid {colour}; background: {colour}22"
        words[mention.start] = f'<span class="mention" style="{style}">{words[mention.start]}'
        words[mention.end - 1] += f'<sub style="color: {colour}">{number + 1}</sub></span>'
    written = [replace(s, words=tuple(words)).text for s, words in zip(document.sentences, texts, strict=True)]
    return HTML(f'<p class="coreference" style="line-height: 2.1">{" ".join(written)}</p>')

"""Views in the page: text with its annotations, bertviz and a small view of our own, and figures to touch, which are points that show a map, or steps of a slider.

Each is drawn as SVG and text, can be read without a script and printed, and loads nothing from anywhere; every text is escaped, and the
data of a figure to touch stay under :data:`LIMIT`.
"""

import base64
import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

import numpy as np
from IPython.display import HTML
from matplotlib.colors import to_hex
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from helpers.corpora.readers import Question
from helpers.corpora.treebanks import Document
from helpers.plots import COLOURS, HEAD_COLOURS, LABELS, layer_colours
from helpers.stats import Estimate

LIMIT = 150_000
"""Characters that a figure may put into a page, its script and style apart."""
WIDTH, HEIGHT = 400, 300  # of a plot, in its own units
LEFT, RIGHT, TOP, BOTTOM = 56, 10, 10, 42  # its margins
CONTROLS = ("buttons", "slider")
REST = "#bbbbbb"  # of points without a kind
GOOD, BAD = "#dbe7f3", "#f3d3c2"  # behind words: right or as before, and wrong or changed

Colouring = tuple[Sequence[str], Mapping[str, str]]
Word = str | tuple[str, str]
Piece = Sequence[Sequence[Word]]
"""The label of each point, with the colour of each label; a word, with or without a colour; the lines of a step."""


class TooLarge(ValueError):
    """A figure has more data than a page should carry."""


@dataclass(frozen=True)
class InteractiveFigure:
    """What a cell shows: HTML where that can be shown, and otherwise what the figure says in words."""

    data: str
    alt: str

    def _repr_html_(self) -> str:
        return self.data

    def __repr__(self) -> str:
        return self.alt


@dataclass(frozen=True)
class Curve:
    """A curve that a marker moves along.

    Attributes:
        x: places of the values; the steps of :func:`frames` lie between the first and the last.
        series: name -> a value for each place, with the band of its interval if it is an :class:`Estimate`.
        colours: name -> colour (default: the book's, in turn).
    """

    x: Sequence[float]
    series: Mapping[str, Estimate | ArrayLike]
    xlabel: str
    ylabel: str
    colours: Mapping[str, str] = field(default_factory=dict)


def points(
    x: ArrayLike,
    y: ArrayLike,
    names: Sequence[str],
    *,
    xlabel: str,
    ylabel: str,
    alt: str,
    colours: Mapping[str, Colouring],
    maps: ArrayLike | None = None,
    tokens: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    links: Sequence[str] | None = None,
    lines: Mapping[str, tuple[str, float]] | None = None,
    control: str = "buttons",
    first: int = 0,
    equal: bool = False,
) -> InteractiveFigure:
    """Points that say who they are when they are pointed at, touched, or reached with the arrow keys.

    Args:
        x, y: [point].
        alt: what the figure shows, in a sentence.
        colours: what points may be coloured by, "layer", "k = 4", …; the first is what is shown at first.
        maps: [point, size, size], a map in 0 … 1 of each point, kept as bytes.
        tokens: [size], the names of a map's rows and columns.
        texts: a line on each point.
        links: a page of the book for each point.
        lines: name -> ("x" or "y", where), lines that points are compared with.
        control: "buttons", or a "slider" where the colourings have an order.
        first: the point that is shown at first.
        equal: whether a unit is as long on x as on y, as on a map.

    Raises:
        ValueError: for lists that do not fit together, what is no number, maps outside 0 … 1, a label without a colour, a link
            that leads out of the book.
        TooLarge: for more data than :data:`LIMIT`.
    """
    x, y = (np.asarray(values, np.float64) for values in (x, y))
    listed = {"x": x, "y": y, "texts": texts, "links": links, "maps": maps}
    listed |= {f"labels of {title!r}": labels for title, (labels, _) in colours.items()}
    _check_points(len(names), listed)
    if not colours or control not in CONTROLS or not 0 <= first < len(names):
        raise ValueError(f"Wanted are points, something to colour them by, a control of {CONTROLS}, a first point.")
    ticks = "x", "y"
    extra = {axis: [at for on, at in (lines or {}).values() if on == axis] for axis in ticks}
    frame = _Frame.around([*x, *extra["x"]], [*y, *extra["y"]], equal=equal)
    painted = {title: _painted(title, *one) for title, one in colours.items()}
    data: dict[str, object] = {"kind": "points", "names": list(names), "texts": list(texts or ()), "first": first}
    data |= {"links": list(links or ()), "control": control, "alt": alt}
    data["colourings"] = [[title, labels, palette] for title, (labels, palette) in painted.items()]
    if maps is not None:
        data |= _packed(np.asarray(maps, np.float64), tokens)
    labels, palette = next(iter(painted.values()))
    circles = [
        f'<circle class="point" cx="{across:.1f}" cy="{down:.1f}" r="5" fill="{palette[label][1]}">'
        f"<title>{escape(name)}{escape(f': {texts[n]}' if texts else '')}</title></circle>"
        for n, (name, label, across, down) in enumerate(
            zip(names, labels, frame.across(x), frame.down(y), strict=True)
        )
    ]
    drawn = frame.svg(alt, xlabel, ylabel, frame.rules(lines or {}), *circles)
    body = f'<div class="plot">{drawn}{_legend(palette)}</div>'
    return _figure(body, data, alt)


def _check_points(count: int, listed: Mapping[str, Sequence | np.ndarray | None]) -> None:
    """Refuse lists that are not one for each point, and links that lead out of the book."""
    for what, given in listed.items():
        if given is not None and len(given) != count:
            raise ValueError(f"There are {count} names and {len(given)} {what}; give one for each point.")
    out = [link for link in listed["links"] or () if re.match(r"\s*([a-zA-Z][\w+.-]*:|[/\\]{2})", link)]
    if out:
        raise ValueError(f"Links lead to pages of the book, by a relative address; this one does not: {out[0]!r}.")


def frames(
    values: Sequence[float], labels: Sequence[str], pieces: Sequence[Piece], *, alt: str, curve: Curve | None = None
) -> InteractiveFigure:
    """Steps that a slider goes through, with a marker on a curve.

    Args:
        values: [step], where on the curve a step is.
        labels: [step], "layer 3", "gate 0.4", …
        pieces: what each step shows: lines of words, a word with a colour as ``(word, colour)``; or anything with a
            ``_repr_html_`` of its own, whose maker has escaped it.
        alt: what the figure shows, in a sentence.
        curve: what is drawn above.

    Raises:
        ValueError: for lists that do not fit together, what is no number, or a step beyond the curve.
        TooLarge: for more data than :data:`LIMIT`.
    """
    if not len(values) == len(labels) == len(pieces) > 0:
        raise ValueError(f"{len(values)} values, {len(labels)} labels, {len(pieces)} pieces: give one each a step.")
    data: dict[str, object] = {"kind": "frames", "labels": list(labels), "alt": alt}
    body = ""
    if curve is not None:
        frame, drawn, legend = _curve(curve)
        if min(values) < min(curve.x) or max(values) > max(curve.x):
            raise ValueError(f"The curve goes from {min(curve.x)} to {max(curve.x)}; there is a step beyond it.")
        data["at"] = [round(place, 1) for place in frame.across(_finite("values", values)).tolist()]
        marker = f'<line class="marker" x1="{data["at"][0]}" x2="{data["at"][0]}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        body = f'<div class="plot">{frame.svg(alt, curve.xlabel, curve.ylabel, drawn, marker)}{_legend(legend)}</div>'
    steps = "".join(
        f"<details{' open' if n == 0 else ''}><summary>{escape(label)}</summary>{_piece(piece)}</details>"
        for n, (label, piece) in enumerate(zip(labels, pieces, strict=True))
    )
    return _figure(f'{body}<div class="steps">{steps}</div>', data, alt)


def largest(*forms: Callable[[], InteractiveFigure]) -> InteractiveFigure:
    """The first of several forms of a figure that is small enough for a page, so that a model with many heads has one too."""
    for form in forms:
        with suppress(TooLarge):
            return form()
    said = "There are too many points here for a figure to touch."
    return InteractiveFigure(f"<p>{said}</p>", said)


def by_layer(layers: Sequence[int]) -> Colouring:
    """Points coloured by the layer of each, from 0."""
    names = [str(layer + 1) for layer in range(max(layers) + 1)]
    shades = (to_hex(colour) for colour in layer_colours(len(names)))
    return [names[layer] for layer in layers], dict(zip(names, shades, strict=True))


def by_kind(kinds: Sequence[str], *, called: Mapping[str, str] = LABELS, rest: str = "none of these") -> Colouring:
    """Points coloured by a name of :data:`helpers.plots.STYLES` each, an empty one for the rest.

    Args:
        called: name -> what it is called (:func:`helpers.plots.group_names`).
        rest: what those without a name are called.
    """
    named = {called[kind]: COLOURS[kind] for kind in called if kind in set(kinds)}
    return [called[kind] if kind else rest for kind in kinds], named | {rest: REST}


def _figure(body: str, data: Mapping[str, object], alt: str) -> InteractiveFigure:
    """The figure in one element, small enough for a page."""
    content = f'{body}<script type="application/json">{in_script(json.dumps(data))}</script>'
    if len(content) > LIMIT:
        raise TooLarge(
            f"This figure would put {len(content):,} characters into the page; at most {LIMIT:,} are allowed. "
            "Give fewer points or steps, smaller maps, or shorter texts."
        )
    script = (files("helpers") / "assets" / "touch.js").read_text("utf-8")
    style = (files("helpers") / "assets" / "touch.css").read_text("utf-8")
    return InteractiveFigure(
        f'<div class="touch"><style>{style}</style>{content}<script>{script}</script></div>', alt
    )


def _painted(
    title: str, labels: Sequence[str], colours: Mapping[str, str]
) -> tuple[list[int], list[tuple[str, str]]]:
    """The label of each point as a number, and those that there are with their colours, as they may stand in a page."""
    if missing := sorted(set(labels) - set(colours)):
        raise ValueError(f"{title!r} has no colour for {', '.join(map(repr, missing))}.")
    used = [label for label in colours if label in set(labels)]
    return [used.index(label) for label in labels], [(label, _colour(colours[label])) for label in used]


def _colour(given: str) -> str:
    if not re.fullmatch(r"#[0-9a-fA-F]{3,8}", given):
        raise ValueError(f"A colour is written as #rrggbb, not {given!r}.")
    return given


def _packed(maps: NDArray[np.float64], tokens: Sequence[str] | None) -> dict[str, object]:
    """Maps as bytes in base64, with their size and the names of their rows and columns."""
    size = maps.shape[-1]
    if maps.shape[1:] != (size, size) or len(tokens or range(size)) != size:
        raise ValueError(f"Maps are [point, size, size], with a token for each row, not {maps.shape} with {tokens}.")
    if not (maps >= 0).all() or not (maps <= 1).all():
        raise ValueError("Maps hold numbers from 0 to 1.")
    kept = np.round(255 * maps).astype(np.uint8)
    return {"size": size, "tokens": list(tokens or ()), "maps": base64.b64encode(kept.tobytes()).decode()}


def _piece(piece: object) -> str:
    if hasattr(piece, "_repr_html_"):
        return f"<div>{piece._repr_html_()}</div>"
    return "".join(f"<p>{' '.join(map(_word, line))}</p>" for line in piece)  # type: ignore[attr-defined]


def _word(word: Word) -> str:
    if isinstance(word, str):
        return escape(word)
    text, colour = word
    return f'<span class="word" style="--colour:{_colour(colour)}">{escape(text)}</span>'


def _curve(curve: Curve) -> tuple["_Frame", str, list[tuple[str, str]]]:
    """The frame of a curve, its lines and bands, and its legend."""
    x = _finite("x", curve.x)
    names = {name: curve.colours.get(name, HEAD_COLOURS[n % 12]) for n, name in enumerate(curve.series)}
    bands = {}
    for name, one in curve.series.items():
        rows = (one.low, one.value, one.high) if isinstance(one, Estimate) else (one,) * 3
        bands[name] = np.stack([_finite(name, row) for row in rows])
        if bands[name].shape[1:] != x.shape:
            raise ValueError(f"{name!r} has {bands[name].shape[1]} values for {len(x)} places of the curve.")
    frame = _Frame.around(x, np.concatenate([band.ravel() for band in bands.values()]))
    drawn = ""
    for name, (low, value, high) in bands.items():
        colour, across = _colour(names[name]), frame.across(x)
        if (low < high).any():
            outline = frame.path([*across, *across[::-1]], frame.down(np.concatenate([low, high[::-1]])))
            drawn += f'<path class="band" d="{outline}Z" fill="{colour}"/>'
        drawn += f'<path class="line" d="{frame.path(across, frame.down(value))}" stroke="{colour}"/>'
    return frame, drawn, [(name, names[name]) for name in bands]


@dataclass(frozen=True)
class _Frame:
    """A plot's axes: ticks on x and on y, and where between their ends a number is."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    xlim: tuple[float, float]
    ylim: tuple[float, float]

    @classmethod
    def around(cls, x: ArrayLike, y: ArrayLike, *, equal: bool = False) -> "_Frame":
        """With a little room around the data; with the same scale on both, if they are to be equal."""
        given = _finite("x", x), _finite("y", y)
        lengths = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        spans = [1.08 * float(np.ptp(values)) or 1.0 for values in given]
        if equal:
            unit = max(span / length for span, length in zip(spans, lengths, strict=True))
            spans = [unit * length for length in lengths]
        ends = [
            ((values.max() + values.min() - span) / 2, (values.max() + values.min() + span) / 2)
            for values, span in zip(given, spans, strict=True)
        ]
        ticks = [MaxNLocator(most).tick_values(*end) for most, end in zip((6, 5), ends, strict=True)]
        shown = (tick[(tick >= low) & (tick <= high)] for tick, (low, high) in zip(ticks, ends, strict=True))
        return cls(*shown, *ends)

    def across(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = self.xlim
        return LEFT + (x - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def down(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = self.ylim
        return TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def path(self, across: Sequence[float], down: Sequence[float]) -> str:
        return "M" + "L".join(f"{a:.1f},{d:.1f}" for a, d in zip(across, down, strict=True))

    def rules(self, lines: Mapping[str, tuple[str, float]]) -> str:
        """Dashed lines with names."""
        drawn = ""
        for name, (axis, where) in lines.items():
            at = float((self.across if axis == "x" else self.down)(np.float64(where)))
            ends = (at, TOP, at, HEIGHT - BOTTOM) if axis == "x" else (LEFT, at, WIDTH - RIGHT, at)
            place = (at + 4, TOP + 10) if axis == "x" else (WIDTH - RIGHT, at - 4)
            drawn += '<line class="rule" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*ends)
            anchor = "start" if axis == "x" else "end"
            drawn += _text(escape(name), *place, anchor, "note")
        return drawn

    def svg(self, alt: str, xlabel: str, ylabel: str, *drawn: str) -> str:
        """The axes with what is drawn in them."""
        low, right, middle = HEIGHT - BOTTOM, WIDTH - RIGHT, (TOP + HEIGHT - BOTTOM) / 2
        axes = f'<path class="axis" d="M{LEFT},{TOP}V{low}H{right}"/>'
        for tick, at in zip(self.x, self.across(self.x), strict=True):
            axes += _text(f"{tick:.4g}".replace("-", "−"), at, low + 15, "middle")
        for tick, at in zip(self.y, self.down(self.y), strict=True):
            axes += f'<path class="tick" d="M{LEFT},{at:.1f}H{right}"/>'
            axes += _text(f"{tick:.4g}".replace("-", "−"), LEFT - 5, at + 4, "end")
        axes += _text(escape(xlabel), (LEFT + right) / 2, HEIGHT - 8, "middle")
        axes += (
            f'<text transform="translate(12,{middle:.1f}) rotate(-90)" text-anchor="middle">{escape(ylabel)}</text>'
        )
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(alt)}">{axes}{"".join(drawn)}</svg>'
        )


def _text(text: str, x: float, y: float, anchor: str, kind: str = "") -> str:
    """Text that is escaped already."""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _legend(palette: Sequence[tuple[str, str]]) -> str:
    entries = (f'<li><i style="background:{_colour(colour)}"></i>{escape(label)}</li>' for label, colour in palette)
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _finite(what: str, values: ArrayLike) -> NDArray[np.float64]:
    numbers = np.asarray(values, np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{what} holds what is no number.")
    return numbers


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
    script = (files("helpers") / "assets" / "attention_view.js").read_text("utf-8")
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


def coreference(document: Document) -> HTML:
    """A document with its coreference chains underlined, each in a colour and with a number of its own."""
    number = {chain: i for i, chain in enumerate(document.chains, 1)}
    pieces = []
    for place, sentence in enumerate(document.sentences):
        own = [(m, number[m.chain]) for m in document.mentions if m.sentence == place and m.chain in number]
        for word, form in enumerate(sentence.words):
            for _, n in sorted(((m, n) for m, n in own if m.start == word), key=lambda found: -found[0].end):
                colour = HEAD_COLOURS[(n - 1) % len(HEAD_COLOURS)]
                style = f"border-bottom: 2px solid {colour}; background: {colour}22"
                pieces.append(f'<span class="mention" style="{style}">')
            pieces.append(html.escape(form))
            for _, n in sorted(((m, n) for m, n in own if m.end == word + 1), key=lambda found: -found[0].start):
                pieces.append(f'<sub style="color: {HEAD_COLOURS[(n - 1) % len(HEAD_COLOURS)]}">{n}</sub></span>')
            if sentence.spaces[word] if sentence.spaces else True:
                pieces.append(" ")
        pieces.append(" ")
    return HTML(f'<p class="coreference" style="line-height: 2.1">{"".join(pieces).strip()}</p>')


def answers(questions: Sequence[Question]) -> HTML:
    """A paragraph with the answers to its questions marked and numbered, and the questions below."""
    context = questions[0].context
    cuts: list[tuple[int, int, str]] = []
    for number, question in enumerate(questions, 1):
        answer = question.answers[0]
        end = answer.start + len(answer.text)
        cuts += [(answer.start, 1, "<mark>"), (end, 0, f"</mark><sub>{number}</sub>")]
    text, last = [], 0
    for place, _, tag in sorted(cuts):
        text += [html.escape(context[last:place]), tag]
        last = place
    asked = "".join(f"<li>{html.escape(q.question)}</li>" for q in questions)
    return HTML(f'<p class="context">{"".join(text)}{html.escape(context[last:])}</p><ol>{asked}</ol>')

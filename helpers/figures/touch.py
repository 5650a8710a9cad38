"""Figures that a reader can touch: points that show a map, and steps of a slider.

Each is drawn here, as SVG and text in the page, and can be read without a script and printed; ``touch.js`` adds what moves.
Nothing is loaded from anywhere, every text is escaped, and the data of a figure stay under :data:`LIMIT`.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from helpers.figures.look import COLOURS, HEAD_COLOURS, LABELS, layer_colours
from helpers.figures.views import in_script
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
class Touchable:
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
) -> Touchable:
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
    return _touchable(body, data, alt)


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
) -> Touchable:
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
    return _touchable(f'{body}<div class="steps">{steps}</div>', data, alt)


def largest(*forms: Callable[[], Touchable]) -> Touchable:
    """The first of several forms of a figure that is small enough for a page, so that a model with many heads has one too."""
    for form in forms:
        with suppress(TooLarge):
            return form()
    said = "There are too many points here for a figure to touch."
    return Touchable(f"<p>{said}</p>", said)


def by_layer(layers: Sequence[int]) -> Colouring:
    """Points coloured by the layer of each, from 0."""
    names = [str(layer + 1) for layer in range(max(layers) + 1)]
    shades = (to_hex(colour) for colour in layer_colours(len(names)))
    return [names[layer] for layer in layers], dict(zip(names, shades, strict=True))


def by_kind(kinds: Sequence[str], *, called: Mapping[str, str] = LABELS, rest: str = "none of these") -> Colouring:
    """Points coloured by a name of :data:`helpers.figures.look.STYLES` each, an empty one for the rest.

    Args:
        called: name -> what it is called (:func:`helpers.figures.look.group_names`).
        rest: what those without a name are called.
    """
    named = {called[kind]: COLOURS[kind] for kind in called if kind in set(kinds)}
    return [called[kind] if kind else rest for kind in kinds], named | {rest: REST}


def _touchable(body: str, data: Mapping[str, object], alt: str) -> Touchable:
    """The figure in one element, small enough for a page."""
    content = f'{body}<script type="application/json">{in_script(json.dumps(data))}</script>'
    if len(content) > LIMIT:
        raise TooLarge(
            f"This figure would put {len(content):,} characters into the page; at most {LIMIT:,} are allowed. "
            "Give fewer points or steps, smaller maps, or shorter texts."
        )
    script = (files("helpers.figures") / "touch.js").read_text("utf-8")
    style = (files("helpers.figures") / "touch.css").read_text("utf-8")
    return Touchable(f'<div class="touch"><style>{style}</style>{content}<script>{script}</script></div>', alt)


# ---------------------------------------------------------------------------------------- points


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


# ---------------------------------------------------------------------------------------- steps


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


# ---------------------------------------------------------------------------------------- drawing


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

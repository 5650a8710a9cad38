"""The atlas of heads as it stands in a page: an element that ``atlas.js`` brings to life, a script of data for each model, a still picture.

Data are scripts that assign a variable, not files to be asked for, so that a page works when it is opened from a disk. What they
hold is :func:`helpers.run.atlas.content.of`'s business; here it is only packed, escaped and kept under :data:`LIMIT`.
"""

import base64
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from helpers import places
from helpers.figures.look import squares
from helpers.figures.touch import TooLarge
from helpers.figures.views import in_script

LIMIT = 1_500_000
"""Bytes of a model's data."""
FOLDER = "_static/atlas"
"""Where the built book keeps script, style and data."""


ASSETS = {"js": "atlas.js", "css": "atlas.css"}


def asset(kind: str) -> str:
    """The script (``js``) or the style (``css``)."""
    return (files("helpers.figures") / ASSETS[kind]).read_text("utf-8")


def file_of(model: str) -> str:
    """The name of a model's data."""
    return f"{places.label(model)}.js"


def data(model: str, content: Mapping[str, Any]) -> str:
    """A script that hands the content of a model to the page; nothing in it can end a script element.

    Raises:
        TooLarge: for more than :data:`LIMIT`.
    """
    name, body = (in_script(json.dumps(one, separators=(",", ":"), allow_nan=False)) for one in (model, content))
    script = f"(window.atlasModels=window.atlasModels||{{}})[{name}]={body};\n"
    if len(script) > LIMIT:
        raise TooLarge(f"The atlas of {model} has {len(script):,} bytes; at most {LIMIT:,} are allowed.")
    return script


def element(models: Iterable[str], *, folder: str, still: str, page: bool = True) -> str:
    """The atlas in a page: what a reader without scripts, or of a print, sees, and what ``atlas.js`` needs.

    Args:
        models: in the order of the list, the first is opened.
        folder: where their data lie, from the page.
        still: HTML of the still picture.
        page: whether the chapters stand beside the page, to be linked to.
    """
    given = {"folder": f"{folder}/", "files": {name: file_of(name) for name in models}, "page": page}
    told = in_script(json.dumps(given))
    return f'<div class="atlas" data-page><div class="still">{still}</div><script type="application/json">{told}</script></div>'


def png(picture: Figure) -> bytes:
    """A figure as a file, which is then closed."""
    target = io.BytesIO()
    picture.savefig(target, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None})
    plt.close(picture)
    return target.getvalue()


def image(picture: Figure, alt: str) -> str:
    """A figure in a page that can be read without a script."""
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{base64.b64encode(png(picture)).decode()}">'


def still(content: Mapping[str, Any]) -> Figure:
    """All heads as mean maps in a layer × head grid, framed in the colours of their types."""
    layers, heads, size = content["layers"], content["heads"], content["size"]
    maps = np.frombuffer(base64.b64decode(content["maps"]), np.uint8).reshape(layers, heads, size, size)
    shape = {"figsize": (0.62 * heads, 0.62 * layers + 0.3), "squeeze": False, "layout": "none"}
    figure, axes = plt.subplots(layers, heads, **shape)
    types = content["types"]
    for (layer, head), ax in np.ndenumerate(axes):
        ax.imshow(np.sqrt(maps[layer, head] / 255), cmap="Greys", vmin=0, vmax=1.08)
        ax.set(xticks=[], yticks=[])
        ax.set_title(head + 1 if layer == 0 else "", fontsize=8, pad=3)
        ax.set_ylabel(layer + 1 if head == 0 else "", fontsize=8, rotation=0, ha="right", va="center")
        _frame(ax.spines.values(), types and types["colours"][types["of"][layer * heads + head]])
    figure.subplots_adjust(wspace=0.12, hspace=0.12, left=0.04, right=0.99, top=0.94, bottom=0.09)
    if types:
        used = {
            name: colour
            for n, (name, colour) in enumerate(zip(types["names"], types["colours"], strict=True))
            if n in types["of"]
        }
        figure.legend(handles=squares(used), loc="lower center", ncols=len(used), fontsize=8)
    return figure


def _frame(spines: Iterable[Any], colour: str | None) -> None:
    for spine in spines:
        spine.set(visible=True, color=colour or "#999999", linewidth=2.2)


def told(content: Mapping[str, Any]) -> str:
    """The still picture in words."""
    return f"Mean attention maps of the {content['layers'] * content['heads']} heads of {content['model']}: a row for each layer, a column for each head, framed in the colour of the head's type."


def links(model: str, names: Sequence[str], *, folder: str, page: str) -> str:
    """What ``atlas.js`` needs in a page with figures whose points are heads of a model in a JSON text."""
    return json.dumps({"model": model, "folder": f"{folder}/", "files": {n: file_of(n) for n in names}, "page": page})

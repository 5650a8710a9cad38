"""The picture that stands beside a link to the book: the mark, the title, the question."""

import io
import re
import textwrap

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from helpers.figures import drawing, look

SIZE = (1200, 630)
"""Pixels, as those who show such pictures ask for them."""
MARK = (70, 115, 25)  # left, top, pixels for each of the mark's 16
TEXT = 540  # left edge of what is written
RECT = re.compile(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)" fill="(#\w+)"/>')


def draw(title: str, question: str) -> bytes:
    """PNG of :data:`SIZE`, the same bytes for the same texts."""
    with mpl.rc_context({"font.family": "DejaVu Sans", "text.parse_math": False}):
        figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor="white", layout="none")
        ax = figure.add_axes((0, 0, 1, 1), xlim=(0, SIZE[0]), ylim=(SIZE[1], 0))
        ax.set_axis_off()
        left, top, scale = MARK
        for *place, colour in RECT.findall(drawing.mark()):
            x, y, width, height = (scale * int(number) for number in place)
            ax.add_patch(Rectangle((left + x, top + y), width, height, color=colour, linewidth=0))
        style = {"color": look.INK, "va": "top", "linespacing": 1.25}
        ax.text(TEXT, 130, textwrap.fill(title, 18), fontsize=44, fontweight="bold", **style)
        ax.text(TEXT, 350, textwrap.fill(question, 36), fontsize=22, **style)
        with io.BytesIO() as target:
            FigureCanvasAgg(figure).print_png(target, metadata={"Software": None})
            return target.getvalue()

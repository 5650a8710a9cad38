"""Sphinx extension: formulas as MathML, which browsers draw themselves, instead of a script of two megabytes.

What cannot be translated (:mod:`helpers.run.formulas`) is a warning with the formula's place, which ends the build. The font, STIX
Two Math, comes out of an installed package, cut to the signs that the pages use.
"""

import html
import re
import unicodedata
from importlib.resources import files
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from fontTools import subset
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from helpers.run.formulas import mathml

LOGGER = logging.getLogger(__name__)
FONT = "mathematics.woff"
ITALIC = {"ϵ": "\N{MATHEMATICAL ITALIC EPSILON SYMBOL}", "h": "\N{PLANCK CONSTANT}"}


def _drawn(node: nodes.Node, block: bool = False) -> str:
    try:
        return mathml(node.astext(), block)
    except MathError as error:
        said = " ".join(str(error).split())
        LOGGER.warning("no formula that can be drawn: %s (%s)", node.astext(), said, location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def inline(writer, node: nodes.math) -> None:
    """A formula within a line."""
    writer.body.append(writer.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    writer.body.append(_drawn(node) + "</span>")
    raise nodes.SkipNode


def display(writer, node: nodes.math_block) -> None:
    """A formula of its own, with its number and a link to it if it has one."""
    writer.body.append(writer.starttag(node, "div", "", CLASS="math notranslate nohighlight", TABINDEX="0"))
    if node.get("number"):
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(_drawn(node, block=True) + "</div>\n")
    raise nodes.SkipNode


def signs(pages: str) -> set[str]:
    """The characters of all formulas in HTML, with the slanted form in which a browser draws a letter that stands alone."""
    drawn = re.findall(r"<math.*?</math>", pages, re.DOTALL)
    found = set(html.unescape("".join(re.sub(r"<[^>]*>", "", one) for one in drawn)))
    if any("<msqrt" in one or "<mroot" in one for one in drawn):
        found.add("√")  # drawn, but nowhere in the text
    return found | {slanted for sign in found if (slanted := _slanted(sign))}


def _slanted(letter: str) -> str:
    kind, _, name = unicodedata.name(letter, "").partition(" LETTER ")
    case = {"LATIN SMALL": "SMALL", "LATIN CAPITAL": "CAPITAL", "GREEK SMALL": "SMALL", "GREEK CAPITAL": "CAPITAL"}
    try:
        return ITALIC.get(letter) or unicodedata.lookup(f"MATHEMATICAL ITALIC {case[kind]} {name}")
    except KeyError:
        return ""


def write_font(app: Sphinx, exception: Exception | None) -> None:
    """Put the font of all formulas where ``book.css`` looks for it."""
    if exception is not None or app.builder.format != "html":
        return
    pages = "".join(file.read_text("utf-8") for file in Path(app.outdir).rglob("*.html"))
    options = subset.Options(flavor="woff", layout_features=["ssty"], hinting=False, recalc_timestamp=False)
    font = subset.load_font(str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"), options)
    cut = subset.Subsetter(options)
    cut.populate(text="".join(sorted(signs(pages))))
    cut.subset(font)
    target = Path(app.outdir) / "_static" / "vendor" / FONT
    target.parent.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(target), options)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

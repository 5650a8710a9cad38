"""Sphinx extension: formulas as MathML, which browsers draw themselves, instead of a script of two megabytes.

docutils translates LaTeX; what it does not know is a warning with the formula's place, which ends the build. The font, STIX
Two Math, comes out of an installed package, cut to the signs that the pages use.
"""

import html
import re
import unicodedata
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from fontTools import subset
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

LOGGER = logging.getLogger(__name__)
SPELT = (
    (r"\\dots(?![a-zA-Z])", r"\\ldots"),
    (r"\\([tdc]?frac)(\d)(\d)", r"\\\1{\2}{\3}"),
    (r"\\([bB]igg?)(?=\s*(?:[(\[<]|\\(?:\{|langle|lfloor|lvert|lVert)))", r"\\\1l"),
    (r"\\([bB]igg?)(?![a-zA-Z])", r"\\\1r"),
    (r"^\s*\\begin\{(equation|gather)\*?\}(.*)\\end\{\1\*?\}\s*$", r"\2"),
)
"""LaTeX that docutils does not know, and what it knows for it."""

THIN = 'lspace="0.17em" rspace="0.17em"'
SET = (
    (r">\s+<", "><"),
    (r' xmlns="[^"]*"', ""),
    (r'<mo class="math(?:open|close)">([|‖])', r'<mo stretchy="false">\1'),
    (r"<mo>‖</mo>", '<mo stretchy="false">‖</mo>'),
    (r'<mo stretchy="false">\|</mo>', '<mo stretchy="false" lspace="0" rspace="0">|</mo>'),
    (r"<mo>/</mo>", '<mo lspace="0" rspace="0">/</mo>'),
    (r"<mi>(\w\w+)</mi><mo>\u2061</mo>(?=<mo[^>]*>\()", r'<mo form="prefix" lspace="0.17em" rspace="0">\1</mo>'),
    (r"<mi>(\w\w+)</mi><mo>\u2061</mo>", rf'<mo form="prefix" {THIN}>\1</mo>'),
    (r"(<mo[^>]*>[=≈≤≥<>(\[,]</mo>)<mo>([−+])</mo>", r'\1<mo form="prefix">\2</mo>'),
)
"""Spaces and heights as TeX sets them."""

SPACE, ACCENTS = "http://www.w3.org/1998/Math/MathML", "ˉ¯~˜^ˆ→˙"
FONT = "mathematics.woff"
ITALIC = {"ϵ": "\N{MATHEMATICAL ITALIC EPSILON SYMBOL}", "h": "\N{PLANCK CONSTANT}"}


def mathml(latex: str, block: bool = False) -> str:
    """A formula as a ``math`` element; a block of several lines is aligned at its ``&``.

    Raises:
        MathError: for a command that docutils does not know, or LaTeX that is none.
    """
    for theirs, known in SPELT:
        latex = re.sub(theirs, known, latex, flags=re.DOTALL)
    element = tex2mathml(latex.strip(), as_block=block).replace("&ApplyFunction;", "\u2061")
    element = _accents_on_letters(element)
    for plain, spaced in SET:
        element = re.sub(plain, spaced, element)
    return element


def _accents_on_letters(element: str) -> str:
    """An index stands beside the letter, as in TeX, not below it, where docutils has it if the letter has an accent."""
    tree = ElementTree.fromstring(element)
    for found in tree.iter(f"{{{SPACE}}}munderover"):
        letter, index, over = found
        if over.text in ACCENTS:
            found.tag, both = f"{{{SPACE}}}msub", ElementTree.Element(f"{{{SPACE}}}mover", accent="true")
            both.extend((letter, over))
            found[:] = (both, index)
    ElementTree.register_namespace("", SPACE)
    return ElementTree.tostring(tree, encoding="unicode")


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
    writer.body.append(writer.starttag(node, "div", "", CLASS="math notranslate nohighlight"))
    if node.get("number"):
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(_drawn(node, block=True) + "</div>\n")
    raise nodes.SkipNode


def signs(pages: str) -> set[str]:
    """The characters of all formulas in HTML, with the slanted form in which a browser draws a letter that stands alone."""
    texts = (re.sub(r"<[^>]*>", "", found) for found in re.findall(r"<math.*?</math>", pages, re.DOTALL))
    found = set(html.unescape("".join(texts)))
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

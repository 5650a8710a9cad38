"""Formulas as MathML, which browsers draw themselves and screen readers read, out of LaTeX by way of docutils."""

import re
from xml.etree import ElementTree

from docutils.utils.math.latex2mathml import tex2mathml

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

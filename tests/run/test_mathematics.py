"""Formulas as MathML: what docutils does not do as TeX does, and the font cut to what is used."""

import sys
import xml.etree.ElementTree as ElementTree

import pytest

from helpers import places

sys.path.insert(0, str(places.ROOT / "book" / "_ext"))
mathematics = pytest.importorskip("mathematics", reason="the pages are not built here")
sys.path.pop(0)
formulas = pytest.importorskip("helpers.run.formulas", exc_type=ImportError)


def tags(latex, **options):
    """The formula with tags only where something is placed."""
    found = ElementTree.fromstring(formulas.mathml(latex, **options))
    return found, [one.tag for one in found.iter()]


@pytest.mark.parametrize("latex", [r"\tilde\alpha_{ij}", r"\bar{\ell}_\Delta"])
def test_an_index_stands_beside_a_letter_with_an_accent(latex):
    found, names = tags(latex)
    assert "munderover" not in names and names.count("msub") == names.count("mover") == 1
    assert found.find("msub")[0].tag == "mover"


def test_limits_stay_below_and_above_sums():
    assert "munderover" in tags(r"\sum_{i=1}^n x_i", block=True)[1]


def test_functions_have_space_around_and_bars_stay_small():
    said = formulas.mathml(r"p \ln p + |x| + \lVert y\rVert_2 - \ln(z)")
    assert f'<mo form="prefix" {formulas.THIN}>ln</mo><mi>p</mi>' in said
    assert 'rspace="0">ln</mo><mo stretchy="false">(' in said
    assert said.count('stretchy="false" lspace="0" rspace="0">|') == 2 and said.count('stretchy="false">‖') == 2


def test_a_sign_after_an_equals_sign_is_no_difference():
    assert '<mo form="prefix">−</mo>' in formulas.mathml("a = -b")
    assert '<mo form="prefix">−</mo>' not in formulas.mathml("a - b")


@pytest.mark.parametrize(
    "latex", [r"a, \dots, b", r"-\tfrac12", r"\Big( x \Big)", r"\begin{equation}x\end{equation}"]
)
def test_spellings_that_docutils_does_not_know(latex):
    formulas.mathml(latex, block=True)


def test_lines_are_aligned():
    assert tags(r"a &= b \\ c &= d", block=True)[1].count("mtr") == 2


def test_what_is_not_known_is_an_error():
    with pytest.raises(mathematics.MathError):
        formulas.mathml(r"\nosuchcommand x")


def test_the_font_is_for_the_signs_of_formulas_only():
    page = "<p>Ünlikely</p><math><mi>x</mi><mo>∈</mo><mi>h</mi><mi>α</mi><mn>2</mn></math>"
    assert mathematics.signs(page) == set("x∈hα2") | {"𝑥", "ℎ", "𝛼"}


def test_the_font_has_the_sign_of_a_root():
    """Browsers draw it for an element that does not hold it as text."""
    page = "<p>√ is no formula</p><math><mi>x</mi></math>"
    assert "√" not in mathematics.signs(page)
    assert "√" in mathematics.signs(page + "<math><mfrac><mn>1</mn><msqrt><mi>d</mi></msqrt></mfrac></math>")

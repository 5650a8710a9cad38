"""The slides of a chapter, from its form: puzzle, predictions, drawing, claims with their figures, limits, summary.

They are one HTML file beside its pictures and the reveal.js that carries them, so that no network is needed; the key S opens
the speaker's view, whose notes are the chapter's prose.
"""

import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin

from helpers import places
from helpers.run.teaching.form import Exercise, Figure, Form, Prediction
from helpers.run.templates import template

CARRIED = (
    "dist/reset.css",
    "dist/reveal.css",
    "dist/reveal.js",
    "plugin/notes/notes.js",
    "plugin/zoom/zoom.js",
    "revealjs/LICENSE",
)
MOST_WORDS = 42
"""Words beneath a figure."""
MOST_LISTED = 125
"""Words of a list; what is beyond stands in the notes."""
TALL = 1.7
"""A figure that is less wide than so many times its height stands beside its text."""
PACKAGE = "sphinx-revealjs"
"""The package that reveal.js is taken from."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SENTENCE = re.compile(r"(?:(?<=[.?!])|(?<=[.?!]\*\*))\s+(?=[A-Z*`\"“])")
_LINKED = re.compile(r"(But|So|It|Its|They|Both|Part|Such|That|This|These|Here|For that)\b")
"""How a sentence begins that cannot be read without the one before it."""


@dataclass
class Slide:
    """A slide: heading, text as Markdown, a figure, and what the speaker has before her."""

    title: str
    text: str = ""
    figure: Figure | None = None
    notes: list[str] = field(default_factory=list)
    kind: str = "told"


def deck(form: Form) -> list[Slide]:
    """The slides of a chapter, in the order in which it is told."""
    points = "\n".join(f"- {point}" for point in form.box)
    first = [f"You need: {form.needs}", f"To run the chapter: {form.run}"]
    return [
        Slide(form.title, f"Chapter {form.number}", notes=first, kind="title"),
        Slide("In this chapter", points, notes=["Afterwards students can:", _listed(form.taught["goals"])]),
        *_told(form),
        Slide("What this does not show", _listed(_limits(form.limits)), notes=[form.limits], kind="long"),
        Slide("One might think …", _listed(form.misconceptions), kind="long"),
        Slide("Summary", _listed(_claims(form.summary)), notes=list(form.summary)),
        Slide("To discuss", _listed([d["ask"] for d in form.taught["discussion"]]), notes=_listened(form)),
        Slide("Exercises", _listed(map(_asked, form.exercises)), notes=[one.text for one in form.exercises]),
    ]


def _told(form: Form) -> Iterator[Slide]:
    """Puzzle, predictions, drawing and claims; the prose between them becomes the notes of the slide that it leads to."""
    puzzle = next(figure for section in form.sections for figure in section.figures)
    wanted = {puzzle.name, form.taught["drawing"], *form.taught["claims"]}
    usual, notes, last = iter(form.taught["predictions"]), [], None
    for section in form.sections:
        title = section.title or form.title
        for item in section.items:
            if isinstance(item, str):
                shown = last.figure.claim if last and last.figure else ""
                (last.notes if shown and item.endswith(shown) else notes).append(item)
                continue
            made = list(_predicted(item, next(usual))) if isinstance(item, Prediction) else []
            if isinstance(item, Figure) and item.name in wanted:
                made = [Slide(title, _seen(item), item, kind="tall" if _tall(item) else "figure")]
            if made:
                made[0].notes[:0] = notes
                notes, last = [], made[-1]
                yield from made
    if last:
        last.notes += notes


def _predicted(item: Prediction, usual: dict[str, str]) -> Iterator[Slide]:
    said = [f"Usual answer: {usual['usual']}", f"Why: {usual['why']}"]
    yield Slide("Predict", item.ask, notes=said, kind="asked")
    yield Slide("What comes out", item.answer, kind="asked")


def _seen(figure: Figure) -> str:
    """What is to see in a figure: the first sentences of what the chapter notices, or how its caption begins."""
    first, *more = _SENTENCE.split(figure.claim or figure.caption)
    for sentence in more if figure.claim else ():
        if len(f"{first} {sentence}".split()) > MOST_WORDS:
            break
        first = f"{first} {sentence}"
    return first


def _limits(text: str) -> list[str]:
    """The points of a text, each with the sentences that lean on it, as many as a slide takes."""
    points: list[str] = []
    for sentence in _SENTENCE.split(text):
        if points and _LINKED.match(sentence):
            points[-1] += f" {sentence}"
        else:
            points.append(re.sub(r"^And (.)", lambda found: found[1].upper(), sentence))
    while len(points) > 1 and len(" ".join(points).split()) > MOST_LISTED:
        points.pop()
    return points


def _tall(figure: Figure) -> bool:
    """Whether a figure has more room beside its text than above it."""
    width, height = struct.unpack(">II", figure.picture[16:24])  # of a PNG, behind its signature
    return width < TALL * height


def _claims(summary: Sequence[str]) -> list[str]:
    """The bold beginnings of a summary's points that claim something."""
    bold = [found[1] for point in summary if (found := re.match(r"\*\*(.+?)\*\*", point))]
    return [claim for claim in bold if len(claim.split()) > 3] or list(summary)


def _listened(form: Form) -> list[str]:
    return [f"{d['ask']} Listen for: {d['listen']}" for d in form.taught["discussion"]]


def _asked(exercise: Exercise) -> str:
    return f"**{exercise.kind}** {exercise.stars} {exercise.title} ({exercise.time})"


def _listed(points: Sequence[str] | Iterator[str]) -> str:
    return "\n".join(f"- {' '.join(point.split())}" for point in points)


# ---------------------------------------------------------------------------------------- writing


def _formula(content: str, options: dict[str, bool]) -> str:
    with places.extra("book", "Setting formulas"):
        from helpers.run import formulas
    return formulas.mathml(content, options["display_mode"])


def _unbroken(_renderer: object, tokens: Sequence[Token], number: int, _options: object, _env: object) -> str:
    """Text in which ``9 %`` and ``3-5`` stay on one line."""
    return re.sub(
        r"(?<=\d) (?=%)", "\u00a0", re.sub(r"\b(\d+)-(?=\d+\b)", "\\1\u2011", escapeHtml(tokens[number].content))
    )


_READER = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin, renderer=_formula)
_READER.add_render_rule("text", _unbroken)


def html(text: str) -> Markup:
    """HTML of plain Markdown with formulas; HTML in it is shown as text."""
    return Markup(_READER.render(text))


def write(form: Form, folder: Path, *, pdf: bool = True) -> Path:
    """Write the slides of a chapter, with pictures and reveal.js beside them, and return the HTML file.

    Args:
        pdf: print them, too, where this machine has a Chromium.

    Raises:
        BookError: when the package with reveal.js is not installed, or Chromium prints something else.
    """
    slides, pictures = deck(form), Path("pictures")
    for slide in slides:
        if slide.figure:
            places.write(folder / pictures / f"{slide.figure.name}.png", slide.figure.picture)
    given = {"form": form, "slides": slides, "html": html, "pictures": pictures}
    carry(folder / "reveal")
    file = folder / f"{form.chapter}.html"
    shown = template("slides.html.j2", escaped=True)
    places.write(file, shown.render(given, printed=False))
    if pdf and (browser := browser_here()):
        _print(browser, shown.render(given, printed=True), file.with_suffix(".pdf"), len(slides))
    return file


def browser_here() -> str | None:
    """A Chromium of this machine."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def carry(folder: Path) -> None:
    """Copy reveal.js out of the package that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        files = {str(file): Path(file.locate()) for file in distribution(PACKAGE).files or ()}
    except PackageNotFoundError:
        raise places.BookError(
            f"Slides need reveal.js, which comes with {PACKAGE}: pip install '{PACKAGE}'."
        ) from None
    for name in CARRIED:
        source = next(
            path for file, path in files.items() if file.endswith(f"revealjs/{name.removeprefix('revealjs/')}")
        )
        shutil.copyfile(source, folder / source.name)


def _print(browser: str, page: str, file: Path, count: int) -> None:
    """Print slides, a page each."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    flags += ["--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", "--no-pdf-header-footer"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, places.whole(file) as made:
        source = file.with_name(f"{file.stem}-printed.html")
        try:
            places.write(source, page)
            own = [f"--user-data-dir={profile}", f"--print-to-pdf={made}", source.resolve().as_uri()]
            done = subprocess.run([browser, *flags, *own], capture_output=True, text=True, check=False, timeout=180)
        finally:
            source.unlink(missing_ok=True)
        if (pages := len(re.findall(rb"/Type\s*/Page\b", made.read_bytes()))) != count:
            raise places.BookError(f"{browser} printed {pages} of {count} slides: {done.stderr[-500:]}")

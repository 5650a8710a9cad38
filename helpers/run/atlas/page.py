"""The atlas as files: of the built book, and a page of its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from helpers import places
from helpers.figures import atlas, look
from helpers.results import ResultError
from helpers.run.atlas import content, measuring
from helpers.run.atlas.content import Content

TITLE = "The atlas of heads"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{font-family:"DejaVu Sans",Verdana,sans-serif;margin:1.5rem auto;padding:0 1rem;max-width:80rem}}h1{{font-size:1.5rem}}</style>
<link rel="stylesheet" href="atlas.css"></head><body>
<h1>{title}</h1>
{element}
<script src="atlas.js"></script>
</body></html>
"""


def write_data(folder: Path, models: Mapping[str, Content]) -> None:
    """Script, style, and the data of each model."""
    for kind in ("js", "css"):
        places.write(folder / f"atlas.{kind}", atlas.asset(kind))
    for name, shown in models.items():
        places.write(folder / atlas.file_of(name), atlas.data(name, shown))


def still(shown: Content) -> str:
    """The still picture of a model, for a page."""
    look.use_style()
    return atlas.image(atlas.still(shown), atlas.told(shown))


def inline(shown: Content) -> str:
    """The atlas of one model with its script, style and data, for a page that is one file.

    Raises:
        TooLarge: for a model with more heads than a page should carry.
    """
    name = shown["model"]
    element = atlas.element([name], folder=".", still=still(shown), page=False)
    scripts = (f"<script>{text}</script>" for text in (atlas.data(name, shown), atlas.asset("js")))
    return f"<style>{atlas.asset('css')}</style>{element}{''.join(scripts)}"


def picture() -> Path:
    """Draw the still picture of the first model for the README and the welcome page, and say where it is."""
    file, first = places.ROOT / "book" / "_static" / "atlas.png", next(iter(measuring.recorded()))
    look.use_style()
    places.write(file, atlas.png(atlas.still(content.models([first])[first])))
    return file


def write(folder: Path, names: Sequence[str] | None = None) -> Path:
    """A page of models that have been measured, with its data beside it, that opens from a disk.

    Args:
        names: of the models (default: all).

    Returns:
        The page.

    Raises:
        ResultError: when none has been measured.
    """
    models = content.models(names)
    if not models:
        raise ResultError(
            f"Not measured for the atlas: {', '.join(names or ['any model'])}. Run: python -m helpers atlas --models ..."
        )
    write_data(folder, models)
    element = atlas.element(models, folder=".", still=still(next(iter(models.values()))), page=False)
    places.write(folder / "index.html", PAGE.format(title=TITLE, element=element))
    return folder / "index.html"

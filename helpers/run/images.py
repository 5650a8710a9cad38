"""Figures as they are kept in notebooks: small, and the same bytes for the same picture."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LIMIT = 250_000
"""Bytes that a stored figure may take."""

WIDEST = 1200
"""Pixels: almost two for each of the column in which a page shows its figures."""

PALETTES = (24, 32, 48, 64, 128, 256)
"""Numbers of colours, the coarsest first; a finer one where a coarser would show."""

AREA = 0.0003
"""Share of a picture from which on a colour is one of an area: a cell of a map of heads, say."""

MEAN, ANYWHERE, IN_AREAS = 0.004, 0.16, 0.025
"""By how much of full scale a channel may move: over all pixels, in one pixel, and where a colour fills an area."""


def lean(png: bytes) -> bytes:
    """A PNG with a palette and without metadata, not wider than a page shows.

    Colours of areas stay as they are, or become one that nobody can tell from them; the rest of the palette covers the range
    of the others, those of edges, evenly. Nothing is dithered. It has as many colours as it takes to stay near (:data:`MEAN`,
    :data:`ANYWHERE`, :data:`IN_AREAS`), or as fit into :data:`LIMIT`. What is lean already, or anything transparent, is left alone.
    """
    picture = Image.open(io.BytesIO(png))
    if _is_lean(picture) or ("A" in picture.mode and picture.getextrema()[-1][0] < 255):
        return png
    picture = _narrowed(picture.convert("RGB"))
    shades, where, counts = _shades(picture)
    worst = np.where(counts >= AREA * counts.sum(), IN_AREAS, ANYWHERE)
    tried = []
    for colours in PALETTES:
        palette = _palette(picture, shades, counts, colours)
        nearest = ((shades[:, None] - palette) ** 2).sum(-1).argmin(-1)
        tried.append((palette, nearest))
        off = np.abs(palette[nearest] - shades) / 255
        if np.average(off.mean(-1), weights=counts) <= MEAN and (off.max(-1) <= worst).all():
            break
    for palette, nearest in reversed(tried):
        small = _written(nearest[where].reshape(picture.height, picture.width), palette)
        if len(small) <= LIMIT:
            break
    return small


def _is_lean(picture: Image.Image) -> bool:
    return picture.mode == "P" and picture.width <= WIDEST


def _narrowed(picture: Image.Image) -> Image.Image:
    if picture.width <= WIDEST:
        return picture
    return picture.resize((WIDEST, round(picture.height * WIDEST / picture.width)), Image.Resampling.BOX)


def _shades(picture: Image.Image) -> tuple[NDArray, NDArray, NDArray]:
    """The colours that occur [colour, channel], which of them each pixel has, and how many pixels have each."""
    red, green, blue = np.moveaxis(np.asarray(picture, dtype=np.int32), -1, 0)
    codes, where, counts = np.unique(red << 16 | green << 8 | blue, return_inverse=True, return_counts=True)
    return np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=-1), where, counts


def _palette(picture: Image.Image, shades: NDArray, counts: NDArray, colours: int) -> NDArray:
    """So many colours [colour, channel]: those of areas, the largest first, and others that cover the rest."""
    if len(shades) <= colours:
        return shades
    areas: list[NDArray] = []
    for n in np.argsort(-counts, kind="stable"):
        if counts[n] < AREA * counts.sum() or len(areas) == 3 * colours // 4:
            break
        if all(np.abs(one - shades[n]).max() > 255 * IN_AREAS for one in areas):
            areas.append(shades[n])
    rest = picture.quantize(colours - len(areas), method=Image.Quantize.MAXCOVERAGE).getpalette()
    return np.concatenate([np.reshape(areas, (-1, 3)), np.reshape(rest, (-1, 3))])


def _written(pixels: NDArray, palette: NDArray) -> bytes:
    drawn = Image.fromarray(pixels.astype(np.uint8), "P")
    drawn.putpalette(palette.astype(np.uint8).tobytes())
    with io.BytesIO() as target:
        drawn.save(target, "PNG", optimize=True)
        return target.getvalue()

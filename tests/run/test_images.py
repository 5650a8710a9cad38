"""Stored figures: small, as sharp, the same bytes for the same picture, and not visibly other."""

import io

import numpy as np
import pytest
from PIL import Image

from helpers.run import images


def png(pixels, **settings):
    with io.BytesIO() as target:
        Image.fromarray(pixels).save(target, "PNG", **settings)
        return target.getvalue()


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int)


@pytest.fixture
def smooth():
    """Several colour maps side by side: more colours than a palette has."""
    x, y = np.meshgrid(np.linspace(0, 255, 150), np.linspace(0, 255, 100))
    return np.stack([x, y, (x + y) / 2], axis=-1).astype(np.uint8)


def test_few_colours_are_kept_exactly_and_metadata_goes():
    drawn = np.full((80, 90, 3), 255, np.uint8)
    drawn[10:30, 5:60] = (0, 114, 178)
    whole = png(drawn)
    assert (pixels(images.lean(whole)) == drawn).all()
    opaque = np.concatenate([drawn, np.full((80, 90, 1), 255, np.uint8)], axis=-1)
    assert images.lean(png(opaque)) == images.lean(whole) == images.lean(png(drawn, dpi=(144, 144), compress_level=1))


def test_many_colours_stay_near(smooth):
    small = images.lean(png(smooth))
    off = np.abs(pixels(small) - smooth)
    assert pixels(small).shape == smooth.shape and Image.open(io.BytesIO(small)).mode == "P"
    assert off.max() <= 40 and off.mean() < 10, "a whole cube of colours, which no figure has"
    assert images.lean(small) == small, "once is enough"


def test_areas_keep_their_colours_among_many(smooth):
    smooth[10:30, 20:100], smooth[50:60, 5:25] = (0, 114, 178), (253, 231, 244)
    small = pixels(images.lean(png(smooth)))
    assert (small[10:30, 20:100] == (0, 114, 178)).all() and (small[50:60, 5:25] == (253, 231, 244)).all()


def test_every_cell_of_five_maps_of_heads_keeps_its_colour():
    """Hundreds of colours, each of an area: a small fall was grey when only the larger areas were kept."""
    from matplotlib import colormaps

    cells = np.random.default_rng(0).normal(size=(12, 30)) / 6 + 0.5
    drawn = np.round(255 * np.asarray(colormaps["RdBu_r"](cells))[..., :3]).astype(np.uint8)
    drawn = drawn.repeat(20, axis=0).repeat(20, axis=1)
    assert np.abs(pixels(images.lean(png(drawn))) - drawn).max() <= 255 * images.IN_AREAS


def test_no_more_colours_than_it_takes():
    edges = np.full((400, 400, 3), 255, np.uint8)
    edges[:, 200] = np.linspace(0, 255, 400)[:, None]
    small = images.lean(png(edges))
    assert len(np.unique(pixels(small))) <= images.PALETTES[0]
    assert np.abs(pixels(small) - edges).max() <= 255 * images.ANYWHERE


def test_a_wide_picture_becomes_as_wide_as_a_page_shows():
    wide = np.full((100, 2 * images.WIDEST, 3), 255, np.uint8)
    wide[:, :500] = (213, 94, 0)
    small = images.lean(png(wide))
    assert pixels(small).shape == (50, images.WIDEST, 3) and images.lean(small) == small
    assert (pixels(small)[:, :249] == (213, 94, 0)).all() and (pixels(small)[:, 251:] == 255).all()


def test_what_is_transparent_is_left_alone(smooth):
    clear = np.concatenate([smooth, np.full((100, 150, 1), 128, np.uint8)], axis=-1)
    assert images.lean(png(clear)) == png(clear)


def test_a_picture_over_the_limit_gets_fewer_colours(smooth, monkeypatch):
    monkeypatch.setattr(images, "LIMIT", len(images.lean(png(smooth))) - 1)
    fewer = images.lean(png(smooth))
    assert len(np.unique(pixels(fewer).reshape(-1, 3), axis=0)) < images.PALETTES[-1]

"""Sphinx extension: pages that load fast, read well on a phone and can be used without a mouse.

Figures are fetched when they are reached, and keep their place before; those as wide as the text are moved sideways on a
phone instead of being shrunk to a half, and those with panels side by side are not shrunk at all. A table scrolls in a region of its own, which the keyboard reaches. A chapter describes itself to search
engines in the words of the welcome page.
"""

import html
import re
from collections.abc import Mapping
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx

from helpers.run import contents

PICTURE = re.compile(r'(?:(<a class=")([^"]*image-reference[^>]*>\s*))?<img ([^>]*?)src="([^"]+)"([^>]*?)(/?)>')
TABLE = re.compile(r'(?:<div class="pst-scrollable-table-container">)?(<table.*?</table>)(?:\s*</div>)?', re.DOTALL)
SVG_SIZE = re.compile(r'<svg[^>]*viewBox="\S+ \S+ (\S+) (\S+)"')
WIDE = 1.75
"""Times as wide as high: two panels side by side, mostly."""
BROAD = 1000
"""Dots, two to a pixel of the page: about as wide as the text."""


def size(file: Path) -> tuple[int, int] | None:
    """Width and height of a picture, None of a kind that is not known."""
    if file.suffix == ".svg":
        found = SVG_SIZE.search(file.read_text("utf-8"))
        return (round(float(found[1])), round(float(found[2]))) if found else None
    with Image.open(file) as picture:
        return picture.size


def lazily(body: str, files: Mapping[str, Path]) -> str:
    """The pictures of a page, of which ``files`` tells where they lie, fetched when they are reached."""

    def changed(found: re.Match[str]) -> str:
        opened, rest, before, source, after, closed = (part or "" for part in found.groups())
        file = files.get(source.rpartition("/")[2])
        if source.startswith("data:") or file is None or not (shape := size(file)):
            return found[0]
        kind = "wide" if shape[0] > WIDE * shape[1] else "broad" if shape[0] > BROAD else ""
        place = f'loading="lazy" decoding="async" width="{shape[0]}" height="{shape[1]}"'
        link = f"{opened}{kind + ' ' * bool(kind)}{rest}" if opened else ""
        return _classed(f'{link}<img {before}src="{source}" {place}{after}{closed}>', kind)

    return PICTURE.sub(changed, body)


def _classed(picture: str, kind: str) -> str:
    link, _, tag = picture.rpartition("<img ")
    if not kind:
        return picture
    return f"{link}<img " + (
        tag.replace('class="', f'class="{kind} ', 1) if 'class="' in tag else f'class="{kind}" {tag}'
    )


def in_regions(body: str) -> str:
    """The tables of a page, each in a region that scrolls and has a name."""
    number = 0

    def framed(found: re.Match[str]) -> str:
        nonlocal number
        number += 1
        heads = [re.sub(r"<[^>]*>", "", head).strip() for head in re.findall(r"<th\b.*?</th>", found[1], re.DOTALL)]
        name = html.escape(html.unescape(", ".join(filter(None, heads[:4]))), quote=True)
        label = f"Table {number}: {name}" if name else f"Table {number}"
        return f'<div class="pst-scrollable-table-container" role="region" tabindex="0" aria-label="{label}">{found[1]}</div>'

    return TABLE.sub(framed, body)


def improve(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        files = {name: Path(app.srcdir) / source for source, name in app.builder.images.items()}
        context["body"] = in_regions(lazily(context["body"], files))
    if page.startswith("notebooks/"):
        describe(context, page.partition("/")[2])


def describe(context: dict, chapter: str) -> None:
    """Give a chapter's page a description."""
    purpose = html.escape(f"In this chapter you {contents.purpose(chapter)[0]}.", quote=True)
    context["meta"] = {**(context.get("meta") or {}), "og:description": html.unescape(purpose)}
    context["metatags"] += f'\n<meta name="description" content="{purpose}" />\n'


def name_toggles(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Say of what shows and hides pages in the contents at the side whose pages these are."""
    if not (made := context.get("generate_toctree_html")):
        return

    def named(kind: str, **given: object) -> object:
        contents = made(kind, **given)
        for toggle in contents.select("li > details > summary") if contents else ():
            toggle["aria-label"] = f"Pages below: {toggle.find_parent('li').a.get_text(strip=True)}"
        return contents

    context["generate_toctree_html"] = named


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", improve, priority=400)
    app.connect("html-page-context", name_toggles, priority=900)  # after the theme's own
    return {"parallel_read_safe": True, "parallel_write_safe": True}

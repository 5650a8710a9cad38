"""What the built pages have beside their sources: generated text, buttons, the atlas of heads, MathJax and bertviz without a network.

- ``<!-- generated: NAME PART -->`` and ``<!-- version -->`` in a page are replaced by text that nobody types.
- Launching and downloading give copies to run, releases offer the whole book, discussions are linked; below a page stands when its
  file was last changed.
- The data of the atlas, links to it from figures of heads, and its script on pages with interactive points.
- MathJax from an installed package, and bertviz' frames as pages of their own. Stored notebooks keep the weights of a view, not its
  scripts. A frame that may do nothing but run scripts cannot load a file beside it, so that its page holds all of them.
"""

import hashlib
import html
import json
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from pybtex.plugin import find_plugin, register_plugin
from sphinx.application import Sphinx
from sphinx.config import Config

from helpers import __version__, encoders, models, places, results, scoreboard, views
from helpers.run import address, atlas, course, launch, live, notebooks, pages, part

ATLAS = "book/atlas"
#: Functions that draw figures in which a point, a cell or a picture is a head.
HEAD_FIGURES = re.compile(r"\b(heads_by_layer|scatter_groups|thumbnails|views\.points|grid\(ax, \w+, marked)[(=]")
LINK = '<p class="to-atlas"><a href="../book/atlas.html">Look a head up in the atlas</a></p>'
BINDER, COLAB = "https://mybinder.org", "https://colab.research.google.com"
#: Kinds of files of the whole book in a release, and their icons.
FILES = {"pdf": "fas fa-book", "zip": "fas fa-file-archive"}
MATHJAX = files("sphinx-mathjax-offline") / "static" / "mathjax" / "tex-svg-full.js"


def configure(app: Sphinx, config: Config) -> None:
    """Have MathJax, one file without fonts, copied into ``_static``; and, where the book's address is known, set what depends on it:
    each page's own address, and buttons to launch and edit pages, to see the repository and to open an issue.
    """
    config.html_static_path.append(str(MATHJAX))
    home, repository = address.site(), address.repository()
    if home:
        config.html_baseurl = config.ogp_site_url = f"{home}/"
        config.ogp_image = f"{home}/_static/cover.png"
    if repository:
        colab = {"colab_url": COLAB} if "/github.com/" in repository else {}
        options = {"repository_url": repository, "path_to_docs": "", "repository_branch": address.BRANCH}
        options["launch_buttons"] = {"notebook_interface": "jupyterlab", "binderhub_url": BINDER} | colab
        options |= {"use_repository_button": True, "use_edit_page_button": True}
        options["use_issues_button"] = repository.split("/")[2] in address.PAGES
        config.html_theme_options |= options


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace the marks of a page, and read it again in the next build, since what is generated may have changed."""
    if page.startswith("book/") and (text := filled(source[0], Path(app.srcdir) / "book" / "_static")) != source[0]:
        source[0] = text
        app.env.note_reread()


def filled(page: str, static: Path) -> str:
    """The text of a page with each ``<!-- generated: NAME PART -->`` replaced by a macro of ``NAME.md.j2`` (``package``: the reference of
    a folder of the package), and ``<!-- version -->``.

    Args:
        static: where files that a part needs are written.
    """

    def text(match: re.Match[str]) -> str:
        name, of = match.groups()
        return reference(of) if name == "package" else part(f"{name}.md.j2", of, **context(static)).strip("\n")

    return re.sub(r"<!-- generated: (\w+) (\w+) -->", text, page.replace("<!-- version -->", __version__))


@cache
def context(static: Path) -> dict[str, Any]:
    """What the templates of pages are given."""
    about = {"names": notebooks.chapters(), "purpose": purpose, "outline": course.outline, "models": models.FAMILIES}
    about |= {"board": scoreboard.judged(), "numbers": results.table(), "scoreboard": scoreboard, "results": results}
    about |= {"heads": atlas, "static": static}
    return about | {"write_live": live.write, "load": encoders.load}


def purpose(chapter: str) -> tuple[str, str]:
    """What a reader will do in a chapter, and after which source: "You …. After …." in the docstring of its exercises."""
    docstring = import_module(f"helpers.exercises.{chapter[3:]}").__doc__
    return re.fullmatch(r"You (.+)\. After (.+)\.", " ".join(docstring.split())).groups()


def reference(folder: str) -> str:
    """The reference of a folder of the package, or of the modules that lie in none (``core``): a part for each module."""
    house = places.HOME / "helpers"
    modules = house.glob("*.py") if folder == "core" else (house / folder).rglob("*.py")
    parts = [] if folder == "core" else [import_module(f"helpers.{folder}").__doc__.strip()]
    for file in sorted(file for file in modules if not file.stem.startswith("__")):
        name = ".".join(file.relative_to(house).with_suffix("").parts)
        members = "" if folder == "exercises" and file.stem != "checks" else "\n   :members:"
        parts.append(f"## {name}\n\n```{{eval-rst}}\n.. automodule:: helpers.{name}{members}\n```")
    return "\n\n".join(parts)


def skip_imported(app: Sphinx, what: str, name: str, thing: object, *_: object) -> bool | None:
    """Have autodoc leave out what a module has imported from elsewhere; it would first read all of the module that it is from."""
    home = str(getattr(thing, "__module__", "helpers"))
    return (not home.startswith("helpers") and getattr(sys.modules.get(home), name, ...) is thing) or None


def link_figures(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Put a link to the atlas under every static figure of heads."""
    if not name.startswith("notebooks/"):
        return
    cells = nbformat.read(app.env.doc2path(name), as_version=4).cells
    of_heads = [cell for cell in cells if HEAD_FIGURES.search(cell.source)]
    figures = {cell.metadata.get("mystnb", {}).get("figure", {}).get("name") for cell in of_heads}
    for figure in tree.findall(nodes.figure):
        if figures.intersection(figure["ids"]):
            figure.append(nodes.raw("", LINK, format="html"))


def load_atlas(app: Sphinx, name: str, template: str, context: dict, tree: nodes.document | None) -> None:
    """Add script and style to the atlas and to pages with interactive points; the latter also learn whose heads they show."""
    if name != ATLAS and 'class="point"' not in context.get("body", ""):
        return
    attributes = {}
    if name != ATLAS:
        model, up = next(iter(atlas.shown())), "../" * name.count("/")
        if name.startswith("notebooks/"):
            metadata = nbformat.read(app.env.doc2path(name), as_version=4).metadata
            model = metadata.get("papermill", {}).get("parameters", {}).get("model", model)
        data = atlas.data_files(atlas.shown(), f"{up}{atlas.FOLDER}", page=f"{up}{ATLAS}.html")
        attributes["data-atlas"] = json.dumps({"model": model} | data)
    app.add_css_file("atlas/atlas.css")
    app.add_js_file("atlas/atlas.js", loading_method="defer", **attributes)


def arrange_buttons(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Change the theme's groups of buttons in place."""
    shown = context.get("header_buttons", ())
    groups = {group.get("label"): group["buttons"] for group in shown if "buttons" in group}
    for button in groups.get("launch-buttons", ()):
        branch = rf"(?<=/blob/){address.BRANCH}(?=/)|(?<=/){address.BRANCH}(?=\?)"
        button["url"] = re.sub(branch, address.LAUNCH, button["url"])
    repository = address.repository() or ""
    if repository.startswith("https://github.com/"):
        for kind, icon in FILES.items():
            button = {"type": "link", "label": f"download-book-{kind}", "icon": icon, "text": f"whole book .{kind}"}
            button["url"] = f"{repository}/releases/latest/download/{pages.NAME}.{kind}"
            button["tooltip"] = f"Download the whole book .{kind}"
            groups.get("download-buttons", []).append(button)
        button = {"type": "link", "label": "discussions-button", "icon": "fas fa-comments", "text": "Discussions"}
        button |= {"url": f"{repository}/discussions", "tooltip": "Ask a question, or discuss a chapter"}
        groups.get("source-buttons", []).append(button)
    if (places.ROOT / ".git").exists():
        changed = ["git", "log", "-1", "--format=%cs", "--", f"{page}.md", f"{page}.ipynb"]
        done = subprocess.run(changed, cwd=places.ROOT, capture_output=True, text=True)
        context["last_updated"] = done.stdout.strip()


def write_files(app: Sphinx, exception: Exception | None) -> None:
    """Write the copies of chapters that their pages offer to download, the files of the atlas, and for each bertviz frame its page, which is
    loaded when a reader comes near (``book.js``).
    """
    if exception is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    launch.write(output / "_sources", wheel=address.raw(launch.WHEEL) or "")
    atlas.write_data(output / atlas.FOLDER, atlas.shown())

    def with_page(frame: re.Match[str]) -> str:
        weights = html.unescape(frame[2])
        name = f"{hashlib.sha256(weights.encode()).hexdigest()[:16]}.html"
        places.write(output / "_static" / "bertviz" / name, views.bertviz_document(json.loads(weights)))
        return f'{frame[1]} data-src="../_static/bertviz/{name}"'

    for page in output.glob("notebooks/*.html"):
        text = page.read_text("utf-8")
        if 'class="bertviz"' in text:
            page.write_text(views.FRAME.sub(with_page, views.FRAME_DOCUMENT.sub("", text)), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    # found once and for all, which each citation would look for among all installed packages
    register_plugin("pybtex.backends", "plaintext", find_plugin("pybtex.backends", "plaintext"), force=True)
    app.connect("config-inited", configure)
    app.connect("source-read", fill)
    app.connect("autodoc-skip-member", skip_imported)
    app.connect("doctree-resolved", link_figures)
    app.connect("html-page-context", load_atlas)
    app.connect("html-page-context", arrange_buttons, priority=900)  # after the theme has made the buttons
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

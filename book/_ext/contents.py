"""``<!-- generated: NAME -->`` in a page: a table or a reference that follows from what there is.

Such a page is read again when what is generated has changed, such as the version, though its file has not.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from helpers.run import contents

MADE = "generated"
"""What the digest of a filled page is called among the metadata that Sphinx keeps of it."""


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith("book/") and (text := contents.filled(source[0])) != source[0]:
        source[0], app.env.metadata[page][MADE] = text, digest(text)


def outdated(
    app: Sphinx, env: BuildEnvironment, added: Iterable[str], changed: Iterable[str], removed: Iterable[str]
) -> list[str]:
    """The pages that would be filled otherwise than when they were read."""
    kept = {page: known[MADE] for page, known in env.metadata.items() if MADE in known}
    others = sorted(kept.keys() - {*added, *changed, *removed})
    return [page for page in others if digest(contents.filled(read(env, page))) != kept[page]]


def read(env: BuildEnvironment, page: str) -> str:
    return Path(env.doc2path(page)).read_text("utf-8")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", fill)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": True}

"""Sphinx extension: the same pages in half the time.

What Sphinx works out anew for each link, each member of a module and each page of source code, though it comes out the same, is kept;
what could not be found is not looked for; trees are walked without a generator for each level; and cycles of objects are collected seldom: pages are made of objects that stay.
"""

import gc
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any

from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.domains.python import PythonDomain
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment
from sphinx.ext.autodoc import type_comment
from sphinx.pycode import ModuleAnalyzer

PACKAGE = "helpers"
SELDOM = (50_000, 20, 1000)
SOURCES = "_modules/"
"""Where the pages of source code are."""


def own_sources(found: Callable) -> Callable:
    """Nothing is documented of what classes inherit from other packages, so their sources count as empty and are not parsed."""

    @cache
    def empty(cls: type[ModuleAnalyzer], name: str) -> ModuleAnalyzer:
        file, _ = cls.get_module_source(name)
        return cls("", name, file or "<string>")

    @wraps(found)
    def of(cls: type[ModuleAnalyzer], name: str) -> ModuleAnalyzer:
        return found(cls, name) if name.partition(".")[0] == PACKAGE else empty(cls, name)

    return of


def with_known_ends(find: Callable) -> Callable:
    """A name that no object ends with is not compared with each of them."""

    @cache
    def ends(objects: int, domain: PythonDomain) -> set[str]:
        return {name.rpartition(".")[2] for name in domain.objects}

    @wraps(find)
    def found(domain: PythonDomain, env: BuildEnvironment, module: str, owner: str, name: str, *rest: Any) -> list:
        known = ends(len(domain.objects), domain)
        return (
            find(domain, env, module, owner, name, *rest)
            if name.removesuffix("()").rpartition(".")[2] in known
            else []
        )

    return found


def in_order(node: Node, kind: type[Node] = Node) -> Iterator[Node]:
    """A node and all below it that are of a kind, parents first, as docutils yields them."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, kind):
            yield node
        if children := node.children:
            waiting.extend(children[::-1])


def walked_in_order(find: Callable) -> Callable:
    """What docutils finds by a condition that is no kind, below a node, is looked for in order, too."""

    @wraps(find)
    def found(node: Node, condition: Any = None, *where: bool, **named: bool) -> Iterator[Node]:
        if where or named or condition is None or isinstance(condition, type):
            return find(node, condition, *where, **named)
        return filter(condition, in_order(node))

    return found


class Remembered:
    """An environment whose pages are read once, for those who only look something up in them."""

    def __init__(self, env: BuildEnvironment) -> None:
        self._env, self.get_doctree = env, cache(env.get_doctree)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)


def with_pages_read_once(resolve: Callable) -> Callable:
    """A reference to a numbered figure looks at the page that the figure is on."""
    remembered = cache(Remembered)

    @wraps(resolve)
    def resolved(domain: StandardDomain, env: BuildEnvironment, *rest: Any) -> Any:
        return resolve(domain, remembered(env), *rest)

    return resolved


def once_a_folder(listed: Callable) -> Callable:
    """The list of the book's pages beside a page of source code is that of the page next to it."""
    kept: dict[tuple, str] = {}

    @wraps(listed)
    def beside(builder: StandaloneHTMLBuilder, page: str, **options: Any) -> str:
        if not page.startswith(SOURCES):
            return listed(builder, page, **options)
        key = (page.rpartition("/")[0], *sorted(options.items()))
        if key not in kept:
            kept[key] = listed(builder, page, **options)
        return kept[key]

    return beside


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    gc.set_threshold(*SELDOM)
    ModuleAnalyzer.for_module = classmethod(own_sources(ModuleAnalyzer.for_module.__func__))
    PythonDomain.find_obj = with_known_ends(PythonDomain.find_obj)
    StandardDomain._resolve_numref_xref = with_pages_read_once(StandardDomain._resolve_numref_xref)
    StandaloneHTMLBuilder._get_local_toctree = once_a_folder(StandaloneHTMLBuilder._get_local_toctree)
    Node.findall = walked_in_order(Node.findall)
    Node._fast_findall = Node._superfast_findall = in_order
    type_comment.get_type_comment = lambda *_: None  # this package's types are annotations
    return {"parallel_read_safe": True, "parallel_write_safe": True}

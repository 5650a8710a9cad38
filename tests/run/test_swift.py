"""What makes the build of the pages swift changes nothing that is found."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import places

sys.path.insert(0, str(places.ROOT / "book" / "_ext"))
swift = pytest.importorskip("swift", reason="the pages are not built here")
sys.path.pop(0)

NAMES = ("helpers.places", "helpers.places.write", "helpers.engine.tap.Tap", "helpers.engine.tap.Tap.write")
WANTED = ("write", "Tap.write", "helpers.places.write()", "Tap", "ndarray", "rite", "Path", "tap.Tap", "", "()")


def test_only_the_sources_of_the_package_are_parsed():
    from sphinx.errors import PycodeError
    from sphinx.pycode import ModuleAnalyzer

    found = swift.own_sources(ModuleAnalyzer.for_module.__func__)
    assert ("", "ROOT") in found(ModuleAnalyzer, "helpers.places").find_attr_docs()
    for other in ("json", "yaml.nodes"):
        assert not found(ModuleAnalyzer, other).find_tags() and found(ModuleAnalyzer, other).srcname.endswith(".py")
    with pytest.raises(PycodeError, match="builtins"):
        found(ModuleAnalyzer, "builtins")


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("mode", [0, 1])
def test_a_name_is_found_as_before(name, mode):
    from sphinx.domains.python import ObjectEntry, PythonDomain

    domain = PythonDomain.__new__(PythonDomain)
    domain.data = {"objects": {}}
    find = swift.with_known_ends(PythonDomain.find_obj)
    assert find(domain, None, "helpers.places", "", name, None, mode) == []
    domain.data["objects"] |= {one: ObjectEntry("page", one, "function", False) for one in NAMES}
    before = PythonDomain.find_obj(domain, None, "helpers.places", "Tap", name, None, mode)
    assert find(domain, None, "helpers.places", "Tap", name, None, mode) == before


@given(st.recursive(st.just([]), lambda below: st.lists(below, max_size=4), max_leaves=25), st.integers(0, 3))
def test_a_tree_is_walked_as_before(shape, nth):
    from docutils import nodes

    kinds = (nodes.section, nodes.paragraph, nodes.emphasis)

    def grown(shape):
        """A node for each list, of one of three kinds by how much is in it; an empty one is a text."""
        return kinds[len(shape) % 3]("", *map(grown, shape)) if shape else nodes.Text("word")

    def slow(node):
        return [node, *(one for child in node.children for one in slow(child))]

    def same(found, wanted):
        return [id(one) for one in found] == [id(one) for one in wanted]

    tree = nodes.section("", *map(grown, shape))
    kind = (*kinds, nodes.Text)[nth]
    assert same(swift.in_order(tree), slow(tree))
    assert same(swift.in_order(tree, kind), [one for one in slow(tree) if isinstance(one, kind)])
    find = swift.walked_in_order(nodes.Node.findall)

    def leaf(node):
        return not node.children

    assert same(find(tree, leaf), filter(leaf, slow(tree)))
    assert same(find(tree, leaf, include_self=False), filter(leaf, slow(tree)[1:]))
    assert same(find(tree, kind), tree.findall(kind))


def test_a_page_that_is_looked_into_again_is_read_once():
    read = []

    class Environment:
        numbers = 3

        def get_doctree(self, page):
            read.append(page)
            return page.upper()

    env = Environment()
    resolve = swift.with_pages_read_once(lambda domain, env, page: (env.get_doctree(page), env.numbers))
    assert [resolve(None, env, page) for page in "aba"] == [("A", 3), ("B", 3), ("A", 3)]
    assert read == ["a", "b"]


def test_pages_of_source_code_in_a_folder_share_their_list():
    asked = []
    beside = swift.once_a_folder(lambda builder, page, **options: asked.append(page) or f"{page} {options}")
    assert beside(None, "_modules/a/b", depth=1) == beside(None, "_modules/a/c", depth=1)
    assert beside(None, "_modules/a/b", depth=2) != beside(None, "_modules/a/b", depth=1)
    assert beside(None, "_modules/a", depth=1) != beside(None, "_modules/a/b", depth=1)
    assert beside(None, "book/a", depth=1) != beside(None, "book/b", depth=1)
    assert asked == ["_modules/a/b", "_modules/a/b", "_modules/a", "book/a", "book/b"]

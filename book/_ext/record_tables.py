"""``{scoreboard} NAME`` and ``{numbers} NAME``: parts of pages computed from the recorded results, ``scoreboard.md.j2`` and ``numbers.md.j2``."""

from functools import cache

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from helpers import results, scoreboard
from helpers.run import part

SECTIONS = ("chapters", "quantities")
"""Parts that are sections of the page; the others are one table each."""


@cache
def context() -> dict[str, object]:
    """What the templates are given."""
    return {"board": scoreboard.judged(), "numbers": results.table(), "scoreboard": scoreboard, "results": results}


class RecordTable(SphinxDirective):
    """One part of the scoreboard or of the page of all numbers."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of the part where the directive stands."""
        name = self.arguments[0]
        self.env.note_reread()  # records change without the page
        try:
            text = part(f"{self.name}.md.j2", name, **context())
        except (AttributeError, results.ResultError) as error:
            raise self.error(str(error)) from None
        parent = nodes.Element() if name in SECTIONS else nodes.container(classes=[self.name])
        lines = StringList(text.split("\n"), source=self.get_source_info()[0])
        self.state.nested_parse(lines, 0, parent, match_titles=name in SECTIONS)
        return parent.children if name in SECTIONS else [parent]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("scoreboard", RecordTable)
    app.add_directive("numbers", RecordTable)
    return {"parallel_read_safe": True}

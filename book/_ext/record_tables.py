"""``{scoreboard} NAME`` and ``{numbers} NAME``: tables computed from the recorded results while the pages are built."""

from functools import cache

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from helpers import scoreboard, tidy
from helpers.results import ResultError

SECTIONS = ("chapters", "quantities")
"""Parts that are sections of the page; the others are one table each."""
BOARD = {
    "twelve": scoreboard.twelve,
    "summary": scoreboard.summary,
    "runs": scoreboard.by_run,
    "rules": scoreboard.rules,
    "headlines": scoreboard.headlines,
    "reasons": scoreboard.reasons,
    "chapters": scoreboard.sections,
}
NUMBERS = {"encoders": tidy.encoders, "corpora": tidy.corpora, "quantities": tidy.quantities}

judged, numbers = cache(scoreboard.judged), cache(tidy.table)


def markdown(directive: str, part: str) -> str:
    """The Markdown of a part of a page.

    Raises:
        KeyError: for a part that does not exist.
        ResultError: if a record is missing or damaged.
    """
    if directive == "scoreboard":
        return str(BOARD[part](judged()))
    return str(tidy.columns() if part == "columns" else NUMBERS[part](numbers()))


class RecordTable(SphinxDirective):
    """One part of the scoreboard or of the page of all numbers."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of the part where the directive stands."""
        part = self.arguments[0]
        self.env.note_reread()  # records change without the page
        try:
            text = markdown(self.name, part)
        except KeyError:
            raise self.error(f"There is no {self.name} part {part!r}.") from None
        except ResultError as error:
            raise self.error(str(error)) from None
        parent = nodes.Element() if part in SECTIONS else nodes.container(classes=[self.name])
        lines = StringList(text.split("\n"), source=self.get_source_info()[0])
        self.state.nested_parse(lines, 0, parent, match_titles=part in SECTIONS)
        return parent.children if part in SECTIONS else [parent]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("scoreboard", RecordTable)
    app.add_directive("numbers", RecordTable)
    return {"parallel_read_safe": True}

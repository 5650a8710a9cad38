"""``{scoreboard} NAME``: a part of the scoreboard, computed from the recorded results while the pages are built."""

from collections.abc import Callable

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from helpers import chapters
from helpers.record.results import ResultError
from helpers.record.scoreboard import Scoreboard

PARTS: dict[str, Callable[[Scoreboard], str]] = {
    "summary": lambda board: board.summary()._repr_markdown_(),
    "runs": lambda board: board.by_run()._repr_markdown_(),
    "rules": lambda board: board.rules()._repr_markdown_(),
    "headlines": lambda board: board.headlines()._repr_markdown_(),
    "reasons": lambda board: board.reasons()._repr_markdown_(),
    "chapters": Scoreboard.sections,
}


class Part(Directive):
    """One of :data:`PARTS`; ``chapters`` writes sections of the page, the others a table each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name, board = self.arguments[0], chapters.scoreboard()
        for file in board.sources():
            self.state.document.settings.env.note_dependency(str(file))
        if name not in PARTS:
            raise self.error(f"The scoreboard has no part {name!r}; there are {', '.join(PARTS)}.")
        try:
            text = PARTS[name](board)
        except ResultError as error:
            raise self.error(str(error)) from None
        sections = name == "chapters"
        found = nodes.Element() if sections else nodes.container(classes=["scoreboard", "parts"])
        lines = StringList(text.split("\n"), source=self.state_machine.get_source(self.lineno))
        self.state.nested_parse(lines, 0, found, match_titles=sections)
        return found.children if sections else [found]


def setup(app) -> dict[str, object]:
    """Called by Sphinx."""
    app.add_directive("scoreboard", Part)
    return {"parallel_read_safe": True}

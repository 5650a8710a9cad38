"""``{scoreboard} NAME``: a part of the scoreboard, computed from the recorded results while the pages are built."""

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from helpers.record import scoreboard
from helpers.record.results import ResultError

PARTS = {
    "summary": scoreboard.summary,
    "runs": scoreboard.by_run,
    "rules": scoreboard.rules,
    "reasons": scoreboard.reasons,
}


class Scoreboard(Directive):
    """One of :data:`PARTS`, or a chapter by the name of its notebook."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        for file in scoreboard.sources():
            self.state.document.settings.env.note_dependency(str(file))
        try:
            text = PARTS[name]()._repr_markdown_() if name in PARTS else scoreboard.chapter_text(name)
        except ResultError as error:
            raise self.error(str(error)) from None
        found = nodes.container(classes=["scoreboard", "parts" if name in PARTS else "findings"])
        self.state.nested_parse(
            StringList(text.split("\n"), source=self.state_machine.get_source(self.lineno)), 0, found
        )
        return [found]


def setup(app) -> dict[str, object]:
    """Called by Sphinx."""
    app.add_directive("scoreboard", Scoreboard)
    return {"parallel_read_safe": True}

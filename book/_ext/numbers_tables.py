"""``{numbers} NAME``: a part of the page on the long table, computed from the recorded results while the pages are built."""

from collections.abc import Callable
from functools import lru_cache

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from helpers.record import quantities, schema

PARTS: dict[str, Callable[[pd.DataFrame], str]] = {
    "columns": lambda table: str(schema.columns()),
    "encoders": lambda table: str(schema.encoders(table)),
    "corpora": lambda table: str(schema.corpora(table)),
    "quantities": schema.sections,
}

recorded = lru_cache(maxsize=1)(quantities.table)


class Part(Directive):
    """One of :data:`PARTS`; ``quantities`` writes sections of the page, the others a table each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in PARTS:
            raise self.error(f"The long table has no part {name!r}; there are {', '.join(PARTS)}.")
        for file in quantities.sources():
            self.state.document.settings.env.note_dependency(str(file))
        sections = name == "quantities"
        found = nodes.Element() if sections else nodes.container(classes=["numbers"])
        lines = StringList(PARTS[name](recorded()).split("\n"), source=self.state_machine.get_source(self.lineno))
        self.state.nested_parse(lines, 0, found, match_titles=sections)
        return found.children if sections else [found]


def setup(app) -> dict[str, object]:
    """Called by Sphinx."""
    app.add_directive("numbers", Part)
    return {"parallel_read_safe": True}

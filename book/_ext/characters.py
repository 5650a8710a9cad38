"""``{characters} 04``: margin cards of the heads that the chapter has something to add about, from the recorded results."""

from docutils import nodes
from docutils.parsers.rst import Directive, directives

from helpers import places
from helpers.record import characters
from helpers.record.results import ResultError


class Cards(Directive):
    """What is known of each character up to the chapter named, folded, as it tells what comes out; ``:open:`` unfolds it, ``:model:`` is whose heads they are."""

    required_arguments = 1
    option_spec = {"model": directives.unchanged, "open": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        chapter, model = self.arguments[0], self.options.get("model", "minilm")
        for name in characters.CHAPTERS.values():
            for file in (places.book_data() / "results").glob(f"*/{places.label(model)}/{name}.json"):
                self.state.document.settings.env.note_dependency(str(file))
        try:
            cards = [one.card(chapter) for one in characters.cards(model, chapter)]
        except ResultError as error:
            raise self.error(str(error)) from None
        html = "".join(cards) or "<p>No head of this model is known for a trade that this chapter looks at.</p>"
        unfolded = " open" if "open" in self.options else ""
        head = f'<details{unfolded}><summary class="sidebar-title">What we know of these heads so far</summary>'
        box = nodes.raw("", f"{head}{html}</details>", format="html")
        beside = nodes.sidebar("", box, classes=["margin", "characters"])
        return [beside]


def setup(app) -> dict[str, object]:
    """Called by Sphinx."""
    app.add_directive("characters", Cards)
    return {"parallel_read_safe": True}

"""``{drawing} NAME``: an example or a table that a function draws from the book's own data while the pages are built."""

import base64
import html
import io
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import matplotlib as mpl
import nbformat
import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from matplotlib.figure import Figure

from helpers import chapters, corpora
from helpers.corpora import sources, treebanks
from helpers.engine import estimates
from helpers.figures import look, series, words
from helpers.record import scoreboard
from helpers.record.verdicts import VERDICTS
from helpers.run import notebooks


def tree() -> Figure:
    """The first development sentence of 8 to 12 words with a subject, an object and a preposition."""
    return words.dependency_tree(_sentence())


def stanford_tree() -> Figure:
    """The same sentence with Stanford-style relations; what changed is in the second colour."""
    before, after = _sentence(), treebanks.stanford(_sentence())
    changed = [
        w
        for w, pair in enumerate(
            zip(
                zip(before.governors, before.relations, strict=True),
                zip(after.governors, after.relations, strict=True),
                strict=True,
            )
        )
        if pair[0] != pair[1]
    ]
    return words.dependency_tree(after, highlight=changed)


def _sentence() -> treebanks.Sentence:
    wanted = {"nsubj", "obj", "case", "obl"}
    return next(
        s
        for d in corpora.documents("encyclopedia", "dev")
        for s in d.sentences
        if 8 <= len(s.words) <= 13 and wanted <= set(s.relations)
    )


def chains() -> str:
    """The first development document with at least four chains, one of them of names, nouns and pronouns."""
    for document in corpora.documents("encyclopedia", "dev"):
        kinds = [{m.kind for m in chain} for chain in document.chains.values()]
        if len(kinds) >= 4 and {"pronoun", "proper", "nominal"} in kinds:
            return words.coreference(document).data
    raise LookupError("no document with four chains, one of all three kinds of mention")


def questions() -> str:
    """The first paragraph whose questions have answers that do not overlap."""
    by_context: dict[str, list[corpora.Question]] = {}
    for question in corpora.questions("encyclopedia"):
        by_context.setdefault(question.context, []).append(question)
    for asked in by_context.values():
        spans = sorted((q.answers[0].start, q.answers[0].start + len(q.answers[0].text)) for q in asked)
        if len(asked) >= 5 and all(a[1] < b[0] for a, b in pairwise(spans)):
            return words.answers(asked).data
    raise LookupError("no paragraph with five answers that do not overlap")


def pairs(name: str) -> str:
    """The first two pairs of each label, from different articles."""
    rows, seen = [], Counter()
    for pair in corpora.pairs(name):
        if seen[pair.label] < 2 and pair.id.rpartition("-")[0] not in {r[0] for r in rows}:
            seen[pair.label] += 1
            rows.append((pair.id.rpartition("-")[0], pair.first, pair.second, str(pair.label)))
    return _table(("First", "Second", "Label"), [r[1:] for r in sorted(rows, key=lambda r: r[3])])


def keyphrases() -> str:
    """The first three articles' keyphrases; those that are not in the text word for word in italics."""
    rows = []
    for keyed in corpora.keyphrases("encyclopedia")[:3]:
        verbatim = set(keyed.verbatim())
        shown = [html.escape(k) if k in verbatim else f"<em>{html.escape(k)}</em>" for k in keyed.keyphrases]
        rows.append(f"<tr><td>{html.escape(keyed.title)}</td><td>{'; '.join(shown)}</td></tr>")
    return f'<table class="table"><thead><tr><th>Article</th><th>Keyphrases</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'


def heads() -> str:
    """The figure of chapter 02 that can be touched, a point for each head, as its notebook keeps it."""
    notebook = nbformat.read(notebooks.FOLDER / f"{notebooks.find('surface_patterns')}.ipynb", as_version=4)
    shown = (output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ()))
    return next(html for data in shown if 'class="touch"' in (html := data.get("text/html", "")))


def catalogue() -> str:
    """Every corpus of the catalogue: kind, splits, licence, how to get it, and for the book's own the counts."""
    rows = []
    for entry in sources.CATALOGUE:
        own = entry.name.startswith("encyclopedia")
        split = [f"{s}: {corpora.COUNTS[entry.kind](entry.name, s)}" for s in entry.files] if own else entry.files
        how = "in the book" if own else f"fetch {entry.name}" if entry.name in sources.RECIPES else "--data"
        rows.append((entry.name, entry.kind, "; ".join(split).removeprefix("all: "), entry.licence, how))
    return _table(("Name", "Kind", "Splits", "Licence", "How to get it"), rows)


def relations() -> str:
    """How often each relation occurs in the treebank, with an example."""
    found: dict[str, list[tuple[treebanks.Sentence, int]]] = {}
    for split in ("train", "dev", "test"):
        for document in corpora.documents("encyclopedia", split):
            for sentence in document.sentences:
                for word, relation in enumerate(sentence.relations):
                    found.setdefault(relation, []).append((sentence, word))
    rows = []
    for relation, places in sorted(found.items(), key=lambda f: -len(f[1])):
        sentence, word = min(places, key=lambda p: abs(p[1] - p[0].governors[p[1]]) + len(p[0].words) / 100)
        governor = sentence.governors[word]
        example = sentence.words[word] if governor < 0 else f"{sentence.words[governor]} → {sentence.words[word]}"
        rows.append((relation, f"{len(places):,}", example))
    return _table(("Relation", "Count", "Governor → dependent"), rows)


def coverage() -> Figure:
    """How often 95 % intervals over few documents hold the truth, with and without Student's factor."""
    counts, random = (3, 5, 7, 10, 15, 20, 29, 30, 50, 100), np.random.default_rng(0)
    held = [_held(random.beta(4, 4, (count, 2000)), truth=0.5) for count in counts]
    figure, ax = mpl.pyplot.subplots(figsize=(6.4, 3.2))
    styles = {"bootstrap alone": ("first", "--"), "as in this book": ("second", "-")}
    for (label, (kind, dashes)), shares in zip(styles.items(), np.transpose(held), strict=True):
        style = {"color": look.COLOURS[kind], "marker": look.MARKERS[kind], "linestyle": dashes}
        ax.plot(counts, 100 * shares, label=label, **style)
    ax.axhline(95, **look.REFERENCE)
    ax.set(xscale="log", xticks=counts, xticklabels=["" if c == 29 else c for c in counts], ylim=(70, 100))
    ax.minorticks_off()
    ax.set(xlabel="documents", ylabel="intervals that hold\nthe truth (%)")
    ax.legend(loc="lower right")
    return figure


def _held(shares: np.ndarray, truth: float) -> tuple[float, float]:
    """Share of samples, one a column, whose interval holds the truth: of the bootstrap alone, and of the book."""
    found = estimates.over(shares)
    bare = estimates.Estimate.of(found.value, found.replicates)
    return tuple(float(((e.low <= truth) & (truth <= e.high)).mean()) for e in (bare, found))


def verdicts() -> Figure:
    """How many findings of the papers hold on our models, by chapter."""
    tally = chapters.scoreboard().tally()
    named = {f"{chapter[:2]} {scoreboard.titled(chapter)}": found for chapter, found in tally.items()}
    figure = series.verdict_bars(named, order=VERDICTS)
    figure.axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    return figure


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = lambda tag, row: "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row)  # noqa: E731
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<table class="table"><thead><tr>{cells("th", head)}</tr></thead><tbody>{body}</tbody></table>'


DRAWINGS: dict[str, Callable[[], Figure | str]] = {
    "coverage": coverage,
    "tree": tree,
    "stanford-tree": stanford_tree,
    "chains": chains,
    "questions": questions,
    "paraphrase": lambda: pairs("encyclopedia-paraphrase"),
    "entailment": lambda: pairs("encyclopedia-entailment"),
    "keyphrases": keyphrases,
    "heads": heads,
    "catalogue": catalogue,
    "relations": relations,
    "verdicts": verdicts,
}


class Drawing(Directive):
    """The drawing as HTML; the directive's content is its caption, ``:alt:`` the text for those who cannot see it."""

    required_arguments = 1
    has_content = True
    option_spec = {"alt": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in DRAWINGS:
            raise self.error(f"There is no drawing {name!r}; there are {', '.join(DRAWINGS)}.")
        with mpl.rc_context({"svg.hashsalt": "drawing"}):  # the same picture, the same bytes
            look.use_style()
            drawn = DRAWINGS[name]()
            if isinstance(drawn, Figure):
                drawn = f'<img src="{_as_svg(drawn)}" alt="{html.escape(self.options.get("alt", ""))}">'
        opened = nodes.raw("", f'<figure class="drawing">{drawn}<figcaption>', format="html")
        caption = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, caption)
        return [opened, *caption.children, nodes.raw("", "</figcaption></figure>", format="html")]


def _as_svg(figure: Figure) -> str:
    target = io.BytesIO()
    figure.savefig(target, format="svg", bbox_inches="tight", metadata={"Date": None})
    mpl.pyplot.close(figure)
    return "data:image/svg+xml;base64," + base64.b64encode(target.getvalue()).decode()


def setup(app) -> dict[str, object]:
    """Called by Sphinx."""
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True}

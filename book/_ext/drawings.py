"""``{drawing} NAME``: an example or a table from the book's own data, drawn while the pages are built."""

from collections import Counter, defaultdict
from functools import partial
from html import escape
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from textwrap import wrap

import matplotlib as mpl
import nbformat
import numpy as np
import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from helpers import corpora, plots, scoreboard, stats, views
from helpers.corpora import sources, treebanks
from helpers.run import course, notebooks


def example_sentence() -> treebanks.Sentence:
    """The first short development sentence with a subject, an object and a preposition."""
    wanted = {"nsubj", "obj", "case", "obl"}
    sentences = (s for document in corpora.documents("encyclopedia", "dev") for s in document.sentences)
    return next(s for s in sentences if 8 <= len(s.words) <= 13 and wanted <= set(s.relations))


def tree() -> Figure:
    """The example sentence with its relations."""
    return plots.dependency_tree(example_sentence())


def stanford_tree() -> Figure:
    """The example sentence with Stanford-style relations; what changed is in black."""
    before = example_sentence()
    after = treebanks.stanford(before)
    old, new = (list(zip(s.governors, s.relations, strict=True)) for s in (before, after))
    return plots.dependency_tree(after, highlight=[word for word, arc in enumerate(new) if arc != old[word]])


def chains() -> str:
    """The first development document with at least four chains, one of them of names, nouns and pronouns."""
    for document in corpora.documents("encyclopedia", "dev"):
        kinds = [{mention.kind for mention in chain} for chain in document.chains.values()]
        if len(kinds) >= 4 and {"pronoun", "proper", "nominal"} in kinds:
            return views.coreference(document).data


def questions() -> str:
    """The first paragraph with five questions whose answers do not overlap: the answers marked and numbered, the questions below."""
    paragraphs = defaultdict(list)
    for question in corpora.questions("encyclopedia"):
        paragraphs[question.context].append(question)
    for context, group in paragraphs.items():
        spans = sorted((q.answers[0].start, q.answers[0].text, number) for number, q in enumerate(group, 1))
        if len(spans) < 5 or any(first[0] + len(first[1]) >= second[0] for first, second in pairwise(spans)):
            continue
        text, last = "", 0
        for start, answer, number in spans:
            text += f"{escape(context[last:start])}<mark>{escape(answer)}</mark><sub>{number}</sub>"
            last = start + len(answer)
        asked = "".join(f"<li>{escape(question.question)}</li>" for question in group)
        return f'<p class="context">{text}{escape(context[last:])}</p><ol>{asked}</ol>'


def pairs(name: str) -> str:
    """The first two pairs of each label, from different articles."""
    rows, counts, articles = [], Counter(), set()
    for pair in corpora.pairs(name):
        article = pair.id.rpartition("-")[0]
        if counts[pair.label] < 2 and article not in articles:
            counts[pair.label] += 1
            articles.add(article)
            rows.append((pair.first, pair.second, str(pair.label)))
    return table(["First", "Second", "Label"], sorted(rows, key=itemgetter(2)))


def keyphrases() -> str:
    """The first three articles' keyphrases; those that are not in the text word for word in italics."""
    rows = []
    for article in corpora.keyphrases("encyclopedia")[:3]:
        text = " ".join(f"{article.title} {article.text}".lower().split())
        phrases = [escape(p) if p.lower() in text else f"<em>{escape(p)}</em>" for p in article.keyphrases]
        rows.append((escape(article.title), "; ".join(phrases)))
    return table(["Article", "Keyphrases"], rows, escape=False)


def heads() -> str:
    """The interactive figure of chapter 02, a point for each head, as its stored notebook has it."""
    cells = nbformat.read(notebooks.FOLDER / "02_surface_patterns.ipynb", as_version=4).cells
    outputs = [output.get("data", {}).get("text/html", "") for cell in cells for output in cell.get("outputs", ())]
    return next(output for output in outputs if 'class="touch"' in output)


def catalogue() -> str:
    """Every corpus of the catalogue: kind, splits, licence, how to get it, and for the book's own the counts."""
    rows = []
    for entry in sources.CATALOGUE:
        own = entry.name.startswith("encyclopedia")
        splits = [f"{s}: {corpora.count(entry.name, entry.kind, s)}" for s in entry.files] if own else entry.files
        how = "in the book" if own else f"fetch {entry.name}" if entry.name in sources.RECIPES else "--data"
        rows.append((entry.name, entry.kind, "; ".join(splits).removeprefix("all: "), entry.licence, how))
    return table(["Name", "Kind", "Splits", "Licence", "How to get it"], rows)


def relations() -> str:
    """How often each relation occurs in the treebank, with the closest pair as an example."""
    documents = [d for split in ("train", "dev", "test") for d in corpora.documents("encyclopedia", split)]
    rows = []
    for sentence in [sentence for document in documents for sentence in document.sentences]:
        for word, (relation, governor) in enumerate(zip(sentence.relations, sentence.governors, strict=True)):
            example = " → ".join(sentence.words[w] for w in (governor, word) if w >= 0)
            rows.append((relation, abs(word - governor) + len(sentence.words) / 100, example))
    by_relation = pd.DataFrame(rows).sort_values([1, 2]).groupby(0)[2].agg(["size", "first"])
    ranked = by_relation.sort_values("size", ascending=False, kind="stable")
    rows = [(name, f"{count:,}", example) for name, count, example in ranked.itertuples()]
    return table(["Relation", "Count", "Governor → dependent"], rows)


def coverage() -> Figure:
    """How often 95 % intervals over few documents hold the truth, with and without Student's factor."""
    counts, random, truth, covered = (3, 5, 7, 10, 15, 20, 29, 30, 50, 100), np.random.default_rng(0), 0.5, []
    for count in counts:
        estimate = stats.mean(random.beta(4, 4, (count, 2000)), range(count))
        bootstrap = stats.Estimate.of(estimate.value, estimate.replicates)
        covered.append([((e.low <= truth) & (truth <= e.high)).mean() for e in (bootstrap, estimate)])
    figure, ax = plt.subplots(figsize=(6.4, 3.2))
    styles = {"bootstrap alone": ("first", "--"), "as in this book": ("second", "-")}
    for (label, (kind, dashes)), shares in zip(styles.items(), np.transpose(covered), strict=True):
        ax.plot(counts, 100 * shares, dashes, color=plots.COLOURS[kind], marker=plots.MARKERS[kind], label=label)
    ax.axhline(95, **plots.REFERENCE)
    ax.set(xscale="log", xticks=counts, xticklabels=["" if c == 29 else c for c in counts], ylim=(70, 100))
    ax.minorticks_off()
    ax.set(xlabel="documents", ylabel="intervals that hold\nthe truth (%)")
    ax.legend(loc="lower right")
    return figure


def verdicts() -> Figure:
    """How many findings of the papers hold on our models, by chapter, with the counts written in."""
    counts = scoreboard.tally(scoreboard.judged()).rename(
        lambda chapter: f"{chapter[:2]} {chapter[3:].replace('_', ' ')}"
    )
    counts = counts.loc[:, counts.any()]
    size = 4.7, 1.7 + 0.42 * len(counts)  # small, so that letters stay legible on a phone
    ax = counts.plot.barh(stacked=True, width=0.72, figsize=size, xlabel="statements", ylabel="", legend=False)
    for bars, verdict in zip(ax.containers, counts, strict=True):
        look = plots.LOOKS["verdicts"][verdict]
        plt.setp(bars, linewidth=0.8, **look)
        box = {"facecolor": look["facecolor"], "edgecolor": "none", "pad": 1.2} if "hatch" in look else None
        style = {"color": plots.ink_on(look["facecolor"]), "fontsize": 10, "bbox": box}
        ax.bar_label(bars, [size or "" for size in counts[verdict]], label_type="center", **style)
        plt.setp([bar for bar in bars if not bar.get_width()], visible=False)
    plots.in_rows(ax, counts.index)
    ax.grid(axis="y", visible=False)
    widest = [max(bars, key=Rectangle.get_width) for bars in ax.containers]  # an empty one has no edge
    ax.figure.legend(widest, [*counts], loc="outside upper left", ncols=2, fontsize=10)
    return ax.figure


def bounds() -> Figure:
    """How far each statement that one would tell a colleague is past its bound, and its controls; each row on a scale of its own."""
    board, claims, top = scoreboard.judged(), scoreboard.findings().row, 0.0
    total, looks = scoreboard.verdicts(board), plots.MODEL_LOOKS
    control = {"color": "0.5", "marker": "D", "mfc": "white", "markersize": 5}
    board = board[board.counts & (board.verdict != scoreboard.ABSENT)]
    board = board.sort_values(["model", "control"], ascending=False)  # the models lie above their controls
    figure, ax = plt.subplots(figsize=(4.8, 9.6))
    for verdict, keys in groupby(scoreboard.quoted(board), total.get):
        ax.text(-1, top, f"{scoreboard.MARKS[verdict]} {verdict}", weight="bold", backgroundcolor="white", zorder=0.5)
        for key in keys:
            text = wrap(f"{claims[key].tell.partition(' (')[0].rstrip('.')} ({key[0][:2]})", 56)
            ax.text(-1, top + 0.3, "\n".join(text), va="top", fontsize=9, backgroundcolor="white", zorder=0.5)
            rows = board[[*map(key.__eq__, zip(board.chapter, board.claim, strict=True))]]
            size = max(abs(end) for number in rows.past for end in (number.value, *number.ends))
            top += 0.75 + 0.55 * len(text)
            for row in rows.itertuples():
                who = row.control.removeprefix("@") or row.model
                look = looks.get(who, control)
                at = top + 0.65 * (row.model != "minilm") + 0.25 * bool(row.control)
                ax.hlines(at, *(end / size for end in row.past.ends), color=look["color"], linewidth=2.2, alpha=0.5)
                ax.plot(row.past.value / size, at, linestyle="", label=row.control or row.model, **look)
            top += 1.3
        top += 1.1
    ax.axvline(0, label="the bound", **plots.REFERENCE | {"zorder": 0})
    ax.set(xlim=(-1.05, 1.05), ylim=(top - 1, -1), xticks=[], yticks=[])
    ax.set_xlabel("← short of its bound        past its bound →")
    named = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(named.values(), named, loc="outside upper left", ncols=3, fontsize=9)
    return figure


def beliefs() -> Figure:
    """The numbers of each finding that the closing page believes, beside those of controls and of a simple rule."""
    figure = plots.dot_panels(scoreboard.beliefs(), (4.8, 9.6), limits=None, apart=0.2)
    for ax in figure.axes:
        ax.set_title(ax.get_xlabel(), fontsize=9, loc="left", weight="normal")
        ax.set_xlabel("")
    return figure


def chapters() -> Figure:
    """Which chapter builds on which: a row for each depth, a line from each chapter that no other one leads to."""
    depth, behind, spots, filled = {}, {}, {}, Counter()
    for chapter in notebooks.chapters():
        needed = course.outline(chapter)["before"]
        behind[chapter] = set(needed).union(*(behind[earlier] for earlier in needed))
        depth[chapter] = 1 + max((depth[earlier] for earlier in needed), default=-1)
    figure = plt.figure(figsize=(8, 5), layout="none")
    ax = figure.add_axes((0, 0, 1, 1))
    ax.margins(0.1)
    for chapter, row in depth.items():
        spots[chapter] = (filled[row] - (Counter(depth.values())[row] - 1) / 2, -row)
        filled[row] += 1
        for earlier in sorted(behind[chapter]):
            if not any(earlier in behind[other] for other in behind[chapter]):
                ax.plot(*zip(spots[earlier], spots[chapter], strict=True), color="0.6", zorder=0)
        name = f"{chapter[:2]}\n{chapter[3:].replace('_', ' ')}"
        ax.text(*spots[chapter], name, ha="center", va="center", bbox={"boxstyle": "round", "facecolor": "white"})
    ax.set_axis_off()
    return figure


def table(columns: list[str], rows: list, *, escape: bool = True) -> str:
    """HTML of a table in a region that scrolls; without ``escape`` its cells are HTML."""
    layout = {"index": False, "border": 0, "justify": "left", "classes": "table"}
    with pd.option_context("display.max_colwidth", None):
        html = pd.DataFrame(rows, columns=columns).to_html(escape=escape, **layout)
    return f'<div class="pst-scrollable-table-container">{html}</div>'


FIGURES = (beliefs, bounds, chapters, coverage, tree, verdicts)
PAGES = (catalogue, chains, heads, keyphrases, questions, relations)  # as HTML
DRAWINGS = {function.__name__: function for function in FIGURES + PAGES} | {"stanford-tree": stanford_tree}
DRAWINGS |= {name: partial(pairs, f"encyclopedia-{name}") for name in ("paraphrase", "entailment")}


class Drawing(SphinxDirective):
    """A figure; the directive's content is its caption, ``:alt:`` the text for those who cannot see it."""

    required_arguments = 1
    has_content = True
    option_spec = {"alt": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """The drawing, as a picture beside the pages or as HTML, and its caption."""
        name = self.arguments[0]
        if name not in DRAWINGS:
            raise self.error(f"There is no drawing {name!r}; there are {', '.join(DRAWINGS)}.")
        self.env.note_reread()  # data change without the page
        with mpl.rc_context({"svg.hashsalt": "drawing"}):  # the same picture, the same bytes
            plots.use_style()
            drawing = DRAWINGS[name]()
            if isinstance(drawing, Figure):
                file = Path(self.env.srcdir) / "drawings" / f"{name}.svg"
                file.parent.mkdir(exist_ok=True)
                drawing.savefig(file, bbox_inches="tight", metadata={"Date": None})
                plt.close(drawing)
                shown = nodes.image(uri=f"/drawings/{file.name}", alt=self.options["alt"])
            else:
                shown = nodes.raw("", drawing, format="html")
        caption = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, caption)
        tags = ('<figure class="drawing">', "<figcaption>", "</figcaption></figure>")
        begin, middle, end = (nodes.raw("", tag, format="html") for tag in tags)
        return [begin, shown, middle, *caption.children, end]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True}

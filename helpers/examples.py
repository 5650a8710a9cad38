"""Corpora read as examples of a task: what is given to a model with a head, and what is right."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from helpers import corpora
from helpers.adapters import LABELS, AdapterError
from helpers.corpora import phrases, sources
from helpers.corpora.records import sample


@dataclass(frozen=True)
class Example:
    """One thing to get right.

    Attributes:
        task: a key of :data:`helpers.adapters.LABELS`.
        id: of the question, pair or segment.
        document: number of the article or source it is from, the unit that intervals resample.
        texts: two paragraphs (mlm), question and context (qa), title and text (keywords), or the two sentences of a pair.
        label: the class (pairs only).
        answers: of the question (qa only).
        keyphrases: of the text (keywords only).
    """

    task: str
    id: str
    document: int
    texts: tuple[str, str]
    label: str = ""
    answers: tuple[corpora.Answer, ...] = ()
    keyphrases: tuple[str, ...] = ()

    @property
    def spelled(self) -> phrases.Spelled:
        """Title and text as words and marks."""
        return phrases.spell("\n".join(self.texts))


def examples(
    task: str, corpus: str, split: str | None = None, *, limit: int | None = None, seed: int = 0
) -> list[Example]:
    """Read a corpus as examples of a task.

    Args:
        task: a key of :data:`helpers.adapters.LABELS`.
        corpus: a name of the catalogue or a path; for pairs of the book tier ``encyclopedia`` is enough. For ``mlm`` the
            contexts of questions are texts too.
        limit: draw this many at random; all when there are no more.

    Questions on a single article have its paragraphs for documents. For ``rte`` a three-class corpus is read with neutral and contradiction as ``not_entailment``.

    Raises:
        helpers.corpora.sources.CorpusError: when the corpus is not here or is malformed.
    """
    if task not in LABELS:
        raise AdapterError(f"There is no task {task!r}. The tasks are {', '.join(LABELS)}.")
    found = {"mlm": _segments, "qa": _questions, "keywords": _keyed}.get(task, _pairs)(task, corpus, split)
    return sample(found, limit, seed=seed)


def _segments(task: str, corpus: str, split: str | None) -> list[Example]:
    if sources.entry(corpus, "questions") and not sources.entry(corpus, "text"):
        return _contexts(task, corpus, split)
    found = corpora.segments(corpora.read(corpus, split))
    return [Example(task, str(n), s.document, s.texts) for n, s in enumerate(found)]


def _contexts(task: str, corpus: str, split: str | None) -> list[Example]:
    """Each context of questions with the one that follows it in the same article."""
    contexts = list(dict.fromkeys((q.document, q.context) for q in corpora.questions(corpus, split)))
    number = {d: n for n, d in enumerate(dict.fromkeys(d for d, _ in contexts))}
    return [
        Example(task, str(n), number[one[0]], (one[1], other[1]))
        for n, (one, other) in enumerate(pairwise(contexts))
        if one[0] == other[0]
    ]


def _questions(task: str, corpus: str, split: str | None) -> list[Example]:
    found = corpora.questions(corpus, split)
    documents = [q.document for q in found]
    if len(set(documents)) < 2:  # of one's own, on one article: its paragraphs stand for articles
        documents = [q.context for q in found]
    number = {d: n for n, d in enumerate(dict.fromkeys(documents))}
    return [
        Example(task, q.id, number[d], (q.question, q.context), answers=q.answers)
        for q, d in zip(found, documents, strict=True)
    ]


def _keyed(task: str, corpus: str, split: str | None) -> list[Example]:
    found = corpora.keyphrases(corpus, split)
    return [Example(task, k.id, n, (k.title, k.text), keyphrases=k.keyphrases) for n, k in enumerate(found)]


def _pairs(task: str, corpus: str, split: str | None) -> list[Example]:
    kind = {"paraphrase": "mrpc", "entailment": "nli"}.get(task, task)
    if corpus == "encyclopedia":
        path = corpora.locate(f"encyclopedia-{'paraphrase' if task == 'paraphrase' else 'entailment'}", "pairs")
        found = corpora.read_pairs(path, kind)
    else:
        known = sources.entry(corpus, "pairs")
        found = corpora.pairs(corpus, split, task=known.task if known else kind)
    labels = [p.label for p in found]
    if task == "rte":
        labels = ["not_entailment" if label in ("neutral", "contradiction") else label for label in labels]
    if wrong := set(labels) - set(LABELS[task]):
        said = f"The labels are {', '.join(sorted(map(str, wrong)))}."
        raise corpora.CorpusError(corpus, None, said, f"for the task {task!r}, {', '.join(LABELS[task])}.")
    articles = [p.id.rsplit("-", 1)[0] for p in found] if corpus == "encyclopedia" else range(len(found))
    number = {article: n for n, article in enumerate(dict.fromkeys(articles))}
    return [
        Example(task, p.id, number[article], (p.first, p.second), str(label))
        for p, label, article in zip(found, labels, articles, strict=True)
    ]


def majority(examples: Sequence[Example]) -> float:
    """Accuracy of always giving the most frequent class (pairs), or the most frequent token of the text (mlm): the simple baseline.

    For mlm it is the share of the most frequent lower-case word; for qa and keywords there is none and the answer is NaN.
    """
    task = examples[0].task
    if task in ("qa", "keywords"):
        return float("nan")
    if task == "mlm":
        counted = Counter(w.lower() for e in examples for w in e.texts[0].split())
    else:
        counted = Counter(e.label for e in examples)
    return counted.most_common(1)[0][1] / counted.total()

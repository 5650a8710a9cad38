"""Corpora read as examples of a task: what is given to a model with a head, and what is right."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from helpers import corpora, phrases
from helpers.adapters import LABELS, AdapterError
from helpers.corpora import sources
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
    read = {"mlm": _segments, "qa": _questions, "keywords": _keyed}.get(task, _pairs)
    return sample(read(task, corpus, split), limit, seed=seed)


def _numbers(documents: Iterable[Hashable]) -> list[int]:
    """The documents' numbers, in the order in which they first occur."""
    number: dict[Hashable, int] = {}
    return [number.setdefault(document, len(number)) for document in documents]


def _segments(task: str, corpus: str, split: str | None) -> list[Example]:
    if not sources.entry(corpus, "questions") or sources.entry(corpus, "text"):
        segments = corpora.segments(corpora.read(corpus, split))
        return [Example(task, str(n), segment.document, segment.texts) for n, segment in enumerate(segments)]
    contexts = list(dict.fromkeys((q.document, q.context) for q in corpora.questions(corpus, split)))
    numbers, texts = _numbers(document for document, _ in contexts), [context for _, context in contexts]
    inside = [n for n, (number, other) in enumerate(pairwise(numbers)) if number == other]
    return [Example(task, str(n), numbers[n], (texts[n], texts[n + 1])) for n in inside]


def _questions(task: str, corpus: str, split: str | None) -> list[Example]:
    questions = corpora.questions(corpus, split)
    documents = [q.document for q in questions]
    if len(set(documents)) < 2:  # of one's own, on one article: its paragraphs stand for articles
        documents = [q.context for q in questions]
    numbered = zip(_numbers(documents), questions, strict=True)
    return [Example(task, q.id, number, (q.question, q.context), answers=q.answers) for number, q in numbered]


def _keyed(task: str, corpus: str, split: str | None) -> list[Example]:
    articles = corpora.keyphrases(corpus, split)
    return [Example(task, k.id, n, (k.title, k.text), keyphrases=k.keyphrases) for n, k in enumerate(articles)]


def _pairs(task: str, corpus: str, split: str | None) -> list[Example]:
    labels = {"paraphrase": "mrpc", "entailment": "nli"}.get(task, task)
    if corpus == "encyclopedia":
        pairs = corpora.pairs(f"encyclopedia-{'paraphrase' if task == 'paraphrase' else 'entailment'}", task=labels)
        documents = _numbers(pair.id.rsplit("-", 1)[0] for pair in pairs)
    else:
        known = sources.entry(corpus, "pairs")
        pairs = corpora.pairs(corpus, split, task=known.task if known else labels)
        documents = range(len(pairs))
    merged = dict.fromkeys(("neutral", "contradiction"), "not_entailment") if task == "rte" else {}
    numbered = zip(documents, pairs, strict=True)
    return [Example(task, p.id, n, (p.first, p.second), merged.get(p.label, p.label)) for n, p in numbered]


def majority(examples: Sequence[Example]) -> float:
    """Accuracy of always giving the most frequent class (pairs), or the most frequent token of the text (mlm): the simple baseline.

    For mlm it is the share of the most frequent lower-case word; for qa and keywords there is none and the answer is NaN.
    """
    task = examples[0].task
    if task in ("qa", "keywords"):
        return float("nan")
    words = (word.lower() for example in examples for word in example.texts[0].split())
    counted = Counter(words if task == "mlm" else (example.label for example in examples))
    return counted.most_common(1)[0][1] / counted.total()

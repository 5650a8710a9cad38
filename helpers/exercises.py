"""Checks for the exercises: each says what is right, or what is wrong and where to look."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np


@dataclass(frozen=True)
class Verdict:
    """What a check found, shown under the exercise."""

    exercise: str
    solved: bool
    message: str

    def _repr_markdown_(self) -> str:
        return f"{'✅' if self.solved else '⬜'} **{self.exercise}**: {self.message}"

    def __repr__(self) -> str:
        return f"{'solved' if self.solved else 'open'}: {self.exercise}: {self.message}"


class _Wrong(Exception):
    """An answer that is not right yet."""


_CHECKS: dict[str, Callable[[Callable], str]] = {}


def check(exercise: str, answer: Callable) -> Verdict:
    """Try an answer on cases it has not seen.

    Args:
        exercise: its name, as printed in the chapter.
        answer: the reader's function.
    """
    if exercise not in _CHECKS:
        raise ValueError(f"There is no exercise {exercise!r}. There are: {', '.join(_CHECKS)}.")
    try:
        return Verdict(exercise, True, _CHECKS[exercise](answer))
    except NotImplementedError:
        return Verdict(
            exercise, False, "not solved yet. Replace the `raise` with your own lines and run the cell again."
        )
    except _Wrong as wrong:
        return Verdict(exercise, False, str(wrong))
    except Exception as error:  # a reader's code may fail in any way; say how instead of stopping the page
        return Verdict(exercise, False, f"your function raised {type(error).__name__}: {error}")


def _exercise(test: Callable[[Callable], str]) -> Callable[[Callable], str]:
    _CHECKS[test.__name__] = test
    return test


def _close(got: object, wanted: np.ndarray | float, complaint: str) -> None:
    if got is None:
        raise _Wrong("your function returns None; does it end in `return`?")
    got = np.asarray(got, dtype=np.float64)
    if got.shape != np.shape(wanted):
        raise _Wrong(f"the result has shape {got.shape}, wanted is {np.shape(wanted)}.")
    if not np.allclose(got, wanted, atol=1e-6):
        raise _Wrong(complaint)


def _maps(size: int, seed: int) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(size, size)) * 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


# ------------------------------------------------------------------ chapter 01


@_exercise
def softmax(answer: Callable) -> str:
    """Chapter 01: rows of scores as weights, without overflow."""
    scores = np.array([[0.0, 1.0, 2.0], [3.0, 3.0, 3.0]])
    weights = np.exp(scores)
    _close(
        answer(scores),
        weights / weights.sum(-1, keepdims=True),
        "rows should be exp(score) divided by their own sum; check the axis.",
    )
    large = np.array([[1000.0, 1000.0]])
    _close(
        answer(large),
        np.array([[0.5, 0.5]]),
        "it overflows for large scores; subtract each row's maximum first.",
    )
    return "right, also for scores of 1,000."


@_exercise
def strongest(answer: Callable) -> str:
    """Chapter 01: the most-attended word of a row."""
    tokens = ["[CLS]", "a", "b", "c", "[SEP]"]
    for seed in range(5):
        weights = _maps(5, seed)
        ordinary = [1, 2, 3]
        for query in range(5):
            wanted = tokens[ordinary[int(weights[query, ordinary].argmax())]]
            got = answer(weights, tokens, query)
            if got != wanted:
                hint = " It is a special token: leave those out." if got in ("[CLS]", "[SEP]") else ""
                hint = hint or (" Rows are attending tokens, columns attended ones." if seed else "")
                raise _Wrong(f"for {tokens[query]!r} it says {got!r}, not {wanted!r}.{hint}")
    return "right for 25 rows."


@_exercise
def causal_attention(answer: Callable) -> str:
    """Chapter 01: an encoder's weights under a causal mask."""
    for seed in range(3):
        weights = _maps(4, seed)
        wanted = np.tril(weights)
        wanted /= wanted.sum(-1, keepdims=True)
        got = answer(weights)
        if got is not None and np.shape(got) == (4, 4):
            if np.any(np.triu(np.asarray(got), 1) != 0):
                raise _Wrong("some token still sees a later one; `np.tril` keeps the lower triangle.")
            if not np.allclose(np.asarray(got).sum(-1), 1):
                raise _Wrong("the rows do not sum to 1 any more; divide each by its sum.")
        _close(got, wanted, "the weights that remain should keep their proportions.")
    return "right: the first token can only see itself, and every row sums to 1."


# ------------------------------------------------------------------ chapter 02


@_exercise
def to_previous(answer: Callable) -> str:
    """Chapter 02: mean attention to the previous token."""
    weights = np.zeros((4, 4))
    weights[0, 0] = weights[1, 0] = weights[2, 1] = weights[3, 2] = 1
    _close(
        answer(weights),
        1.0,
        "a head that only looks back one token should score 1. Did you take the diagonal above the main one? That is the next token. The first token has no previous one: average over the others.",
    )
    for seed in range(5):
        weights = _maps(7, seed)
        _close(
            answer(weights),
            float(np.mean([weights[i, i - 1] for i in range(1, 7)])),
            "it is right for a pure head but not for a mixed one; average weights[i, i - 1] over i = 1, 2, ….",
        )
    return "right, and not mixed up with the next token."


@_exercise
def entropy(answer: Callable) -> str:
    """Chapter 02: entropy of a row, with 0 ln 0 = 0."""
    _close(
        answer(np.array([0.0, 1.0, 0.0])),
        0.0,
        "all attention on one token is an entropy of 0; take 0 · ln 0 as 0.",
    )
    _close(
        answer(np.full(8, 1 / 8)),
        float(np.log(8)),
        "equal attention to 8 tokens is ln 8 = 2.079 nats; use the natural logarithm.",
    )
    row = _maps(6, 3)[0]
    _close(answer(row), float(-(row * np.log(row)).sum()), "it should be -Σ p ln p.")
    return "right, in nats, also where a weight is 0."


@_exercise
def sinks(answer: Callable) -> str:
    """Chapter 02: heads with over half of their attention on tokens without content."""
    rng = np.random.default_rng(0)
    shares = {name: rng.random((3, 4)) / 3 for name in ("cls", "sep", "stop")}
    total = sum(shares.values())
    wanted = [(int(layer) + 1, int(head) + 1) for layer, head in np.argwhere(total > 0.5)]
    got = answer(shares["cls"], shares["sep"], shares["stop"])
    if got is None:
        raise _Wrong("your function returns None; does it end in `return`?")
    got = [tuple(map(int, pair)) for pair in got]
    if sorted((a + 1, b + 1) for a, b in got) == wanted:
        raise _Wrong("the heads are right, but counted from 0; the book counts layers and heads from 1.")
    if sorted(got) != wanted:
        raise _Wrong(
            f"it lists {len(got)} heads, wanted are {len(wanted)}: those whose three shares sum to more than 0.5."
        )
    return "right, counted from 1."


# ------------------------------------------------------------------ chapter 03


@_exercise
def norm_weighted(answer: Callable) -> str:
    """Chapter 03: lengths of weighted vectors."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        weights, values, output = _maps(5, seed), rng.normal(size=(5, 3)), rng.normal(size=(3, 7))
        f = [sum(values[j, k] * output[k] for k in range(3)) for j in range(5)]
        wanted = np.array([[np.sqrt(((weights[i, j] * f[j]) ** 2).sum()) for j in range(5)] for i in range(5)])
        got = answer(weights, values, output)
        if got is not None and np.shape(got) == (5, 5):
            if np.allclose(got, weights * np.linalg.norm(values, axis=-1)):
                raise _Wrong("these are lengths of the values themselves; they still have to go through `output`.")
            if np.allclose(got, weights * np.linalg.norm(values @ output, axis=-1)[:, None]):
                raise _Wrong("each weight has to meet the vector of the *attended* token, its column.")
        _close(got, wanted, "it should be weights[i, j] times the length of values[j] @ output.")
    return "right: a length for each token, and every row of weights times these lengths."


@_exercise
def without_sink(answer: Callable) -> str:
    """Chapter 03: remove and renormalise."""
    weights = np.vstack([_maps(4, 0), [[1.0, 0.0, 0.0, 0.0]]])[[0, 1, 2, 4]]
    for sink in ([0], [0, 3]):
        wanted = weights.copy()
        wanted[:, sink] = 0
        left = wanted.copy()
        for row in wanted:
            if row.sum() > 0:
                row /= row.sum()
        before = weights.copy()
        with np.errstate(invalid="ignore", divide="ignore"):
            got = answer(before, list(sink))
        if not np.array_equal(before, weights):
            raise _Wrong("it changes the array it was given; work on a copy.")
        if got is not None and np.shape(got) == wanted.shape:
            if not np.isfinite(got).all():
                raise _Wrong("the last row gives everything to the sink: 0 / 0. Let such a row stay zero.")
            if np.allclose(got, left):
                raise _Wrong("the weights are gone, but the rest of each row does not sum to 1 yet.")
        _close(got, wanted, "the weights that remain should keep their proportions within a row.")
    return "right, also for a row with nothing left."


@_exercise
def gradient_per_example(answer: Callable) -> str:
    """Chapter 03: size of the gradient, example by example."""
    rng = np.random.default_rng(0)
    own = rng.normal(size=(9, 3, 3))
    for sizes in ((9,), (4, 4, 1), (1,) * 9, (2, 7)):
        cuts = np.split(own, np.cumsum(sizes)[:-1])
        batches = [part / len(part) for part in cuts]
        got = answer([b.copy() for b in batches])
        if got is not None and np.shape(got) == (3, 3) and len(sizes) < 9:
            if np.allclose(got, np.abs(np.concatenate(batches)).mean(0)):
                raise _Wrong("each gradient is still divided by the size of its batch; multiply it back.")
            if np.allclose(got, np.abs(own.mean(0))):
                raise _Wrong("gradients of opposite sign cancel: take the absolute value of each example's first.")
            if len(set(sizes)) > 1 and np.allclose(got, np.mean([np.abs(c).mean(0) for c in cuts], axis=0)):
                raise _Wrong("that is a mean of batches; a small batch must not count as much as a large one.")
        _close(
            got,
            np.abs(own).mean(0),
            f"for batches of {sizes} it is not the mean of |gradient| over the nine examples.",
        )
    return "right: the same number however the examples are batched."


# ------------------------------------------------------------------ chapter 04


@_exercise
def pool_words(answer: Callable) -> str:
    """Chapter 04: token-level attention as word-level attention."""
    for seed, words in enumerate(([0, 1, 1, 2], [0, 0, 1, 2, 2, 2], [0, 1, 2])):
        weights = _maps(len(words), seed)
        size = max(words) + 1
        wanted = np.zeros((size, size))
        for i, row in enumerate(words):
            for j, column in enumerate(words):
                wanted[row, column] += weights[i, j] / words.count(row)
        got = answer(weights, words)
        if got is not None and np.shape(got) == wanted.shape and not np.allclose(np.asarray(got).sum(-1), 1):
            raise _Wrong(
                "the rows do not sum to 1: take the sum over the attended pieces, but the mean over the attending ones."
            )
        _close(got, wanted, "the rows sum to 1, but the weights differ; is it the mean over a word's own pieces?")
    return "right: attention to a word is a sum, attention from it a mean, and rows still sum to 1."


@_exercise
def offset_accuracy(answer: Callable) -> str:
    """Chapter 04: how often the governor stands at a fixed distance."""
    rng = np.random.default_rng(0)
    for offset in (1, -2, 3):
        sentences = []
        for _ in range(6):
            n = int(rng.integers(2, 8))
            root = int(rng.integers(0, n))
            sentences.append(
                [-1 if w == root else int(rng.choice([g for g in range(n) if g != w])) for w in range(n)]
            )
        asked = [(w, g) for s in sentences for w, g in enumerate(s) if g >= 0]
        got = answer(sentences, offset)
        if got is not None and np.isclose(
            got, np.mean([w + offset == g for s in sentences for w, g in enumerate(s)])
        ):
            raise _Wrong("the root has no governor (-1): leave it out of the count.")
        _close(
            got,
            float(np.mean([w + offset == g for w, g in asked])),
            f"for offset {offset} it should be the share of words w with governor w + offset.",
        )
    return "right, roots left out."


@_exercise
def held_out(answer: Callable) -> str:
    """Chapter 04: choose on one part, score on the other."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        dev, test = rng.random((6, 12)), rng.random((6, 12))
        layer, head = np.unravel_index(dev.argmax(), dev.shape)
        got = answer(dev, test)
        if got is not None and np.isclose(got, test.max()):
            raise _Wrong("that is the best test accuracy: the head was chosen on the data that scores it.")
        if got is not None and np.isclose(got, dev.max()):
            raise _Wrong("that is the accuracy on the part on which the head was chosen.")
        _close(
            got, float(test[layer, head]), "take the head that is best in `dev` and return its accuracy in `test`."
        )
    return "right: chosen on one part, scored on the other."


# ------------------------------------------------------------------ chapter 05


def _chains(seed: int) -> tuple[list[str], np.ndarray]:
    """Chains of the mentions of a text, in order, and attention between their head words."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 9))
    return [str(c) for c in rng.choice(["a", "b", "c"], count)], _maps(count, seed)


def _antecedent_hits(chains: list[str], choices: list[int]) -> list[bool]:
    return [chains[choices[i]] == chains[i] for i in range(len(chains)) if chains[i] in chains[:i]]


@_exercise
def antecedent_accuracy(answer: Callable) -> str:
    """Chapter 05: how often the most attended earlier mention corefers."""
    for seed in range(6):
        chains, weights = _chains(seed)
        picked = [int(weights[i, :i].argmax()) if i else 0 for i in range(len(chains))]
        hits = _antecedent_hits(chains, picked)
        got = answer(weights, chains)
        anywhere = [int(np.where(np.arange(len(row)) == i, -1, row).argmax()) for i, row in enumerate(weights)]
        others = _antecedent_hits(chains, anywhere)
        if got is not None and not np.isclose(got, np.mean(hits)) and np.isclose(got, np.mean(others)):
            raise _Wrong("it also chooses later mentions; an antecedent comes before: look at weights[i, :i] only.")
        if got is not None and np.isclose(got, sum(hits) / len(chains)) and len(hits) < len(chains):
            raise _Wrong("mentions without an antecedent are counted as wrong; leave them out.")
        _close(
            got,
            float(np.mean(hits)),
            "count the mentions with an antecedent whose most attended earlier mention has their chain.",
        )
    return "right: only earlier mentions are chosen, and only mentions with an antecedent are asked."


@_exercise
def nearest_match(answer: Callable) -> str:
    """Chapter 05: the nearest earlier mention with the same head word, else the nearest."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        words = [str(w) for w in rng.choice(["she", "otter", "it", "shell", "king"], int(rng.integers(3, 9)))]
        for i in range(1, len(words)):
            same = [j for j in range(i) if words[j] == words[i]]
            wanted = same[-1] if same else i - 1
            got = answer(words, i)
            if same and got == same[0] != wanted:
                raise _Wrong(f"for {words} and mention {i} it says {got}: that one matches, but {wanted} is nearer.")
            if got != wanted:
                raise _Wrong(f"for {words} and mention {i} it says {got}, not {wanted}.")
    return "right, also where no word matches."


@_exercise
def chance_of_antecedent(answer: Callable) -> str:
    """Chapter 05: expected accuracy of a random earlier mention."""
    for seed in range(6):
        chains, _ = _chains(seed + 10)
        asked = [i for i in range(len(chains)) if chains[i] in chains[:i]]
        wanted = np.mean([chains[:i].count(chains[i]) / i for i in asked])
        got = answer(chains)
        if got is not None and np.isclose(got, np.mean([1 / i for i in asked])) and not np.isclose(got, wanted):
            raise _Wrong("any antecedent counts as right, not only one of them: how many are there before mention i?")
        _close(
            got,
            float(wanted),
            "average, over mentions with an antecedent, the number of antecedents over that of earlier mentions.",
        )
    return "right, without drawing a single random number."


# ------------------------------------------------------------------ chapter 06


@_exercise
def governor_scores(answer: Callable) -> str:
    """Chapter 06: the scores of the attention-only probe for one sentence."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        maps, w, u = np.stack([_maps(5, seed + n) for n in range(4)]), rng.normal(size=4), rng.normal(size=4)
        wanted = np.zeros((5, 5))
        for j in range(5):
            for i in range(5):
                wanted[j, i] = sum(w[k] * maps[k, i, j] + u[k] * maps[k, j, i] for k in range(4))
        got = answer(maps, w, u)
        if got is not None and np.shape(got) == (5, 5) and np.allclose(np.asarray(got, np.float64).T, wanted):
            raise _Wrong(
                "the directions are mixed up: u goes with attention from the dependent, which is the row of the result."
            )
        _close(
            got, wanted, "it should be w_k * maps[k, i, j] + u_k * maps[k, j, i], summed over k, in row j, column i."
        )
    return "right: dependents are rows, and each head has a weight for either direction."


@_exercise
def edges_by_guessing(answer: Callable) -> str:
    """Chapter 06: how often "no edge" is right when pairs are not balanced."""
    for words in (5, 20, 2):
        got = answer(words)
        if words > 2 and got is not None and np.isclose(got, 0.5):
            raise _Wrong("it is one half only if the pairs are balanced; here all pairs of the sentence are asked.")
        if words > 2 and got is not None and np.isclose(got, 2 / words):
            raise _Wrong('that is the share of pairs with an edge; the guess is "no edge".')
        _close(got, 1 - 2 / words, f"a tree over {words} words has {words - 1} edges; how many pairs are there?")
    return "right: with 20 words, always saying no is right nine times in ten."


@_exercise
def undirected_score(answer: Callable) -> str:
    """Chapter 06: UUAS of a sentence."""
    gold = [3, -1, 1, 1, 3]
    for predicted, wanted in (
        ([(0, 3), (1, 2), (1, 3), (3, 4)], 1.0),
        ([(3, 0), (2, 1), (0, 1), (0, 2)], 0.5),
        ([(0, 1), (0, 2), (0, 4), (2, 3)], 0.0),
    ):
        got = answer(gold, predicted)
        if got is not None and np.isclose(got, wanted * 4 / 5) and wanted:
            raise _Wrong("a sentence of five words has four edges: the root (-1) has no governor.")
        _close(
            got, wanted, "it is the share of the tree's edges that are among the predicted ones, in either direction."
        )
    return "right, whichever end comes first."


# ------------------------------------------------------------------ chapter 07


@_exercise
def row_divergence(answer: Callable) -> str:
    """Chapter 07: Jensen-Shannon divergence of two rows, with 0 ln 0 = 0."""
    one, other = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5])
    got = answer(one, other)
    if got is not None and np.isnan(got):
        raise _Wrong(
            "it is NaN where a weight is 0: take 0 · ln 0 as 0, for instance with a logarithm of positive weights only."
        )
    if got is not None and np.isclose(got, 1.0):
        raise _Wrong("that is in bits; use the natural logarithm.")
    if got is not None and np.isclose(got, 2 * np.log(2)):
        raise _Wrong("it is twice too large: the mixture is (p + q) / 2, and each entropy counts one half.")
    _close(got, float(np.log(2)), "two rows that share no token are ln 2 = 0.693 nats apart.")
    for seed in range(4):
        p, q = _maps(6, seed)[:2]
        mixture = (p + q) / 2
        wanted = ((p * np.log(p / mixture)).sum() + (q * np.log(q / mixture)).sum()) / 2
        _close(answer(p, p), 0.0, "a row is 0 away from itself.")
        _close(answer(p, q), float(wanted), "it should be H((p + q) / 2) - H(p) / 2 - H(q) / 2.")
    return "right, from 0 for equal rows to ln 2 for rows that share no token."


@_exercise
def classical_scaling(answer: Callable) -> str:
    """Chapter 07: points in the plane from their distances."""
    for seed in range(4):
        points = np.random.default_rng(seed).normal(size=(7, 2))
        distances = np.linalg.norm(points[:, None] - points, axis=-1)
        got = answer(distances)
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        got = np.asarray(got, np.float64)
        if got.shape != (7, 2):
            raise _Wrong(f"the result has shape {got.shape}, wanted is (7, 2): a row for each point.")
        shown = np.linalg.norm(got[:, None] - got, axis=-1)
        lengths = np.linalg.norm(got, axis=0)
        if np.allclose(lengths, 1, atol=1e-6):
            raise _Wrong("these are bare eigenvectors; multiply each by the square root of its eigenvalue.")
        if not np.allclose(shown, distances, atol=1e-6):
            raise _Wrong(
                "the distances between your points are not those given. Did you square the distances, centre rows and "
                "columns, and take the two largest eigenvalues (`eigh` sorts from small to large)?"
            )
    return "right: the plane is recovered, but for a turn and a reflection, which distances cannot tell."


@_exercise
def permutation_p(answer: Callable) -> str:
    """Chapter 07: p-value of a mean within labels."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(8, 2)) + np.repeat([[0, 0], [0.7, 0]], 4, axis=0)
        matrix = np.linalg.norm(points[:, None] - points, axis=-1)
        labels = np.repeat([0, 1], 4)
        orders = [rng.permutation(8) for _ in range(49)]

        def within(given: np.ndarray, matrix: np.ndarray = matrix) -> float:
            pairs = [matrix[i, j] for i in range(8) for j in range(i) if given[i] == given[j]]
            return float(np.mean(pairs))

        observed = within(labels)
        count = sum(within(labels[order]) <= observed + 1e-12 for order in orders)
        got = answer(matrix, labels, orders)
        if got is not None and np.isclose(got, count / 49) and not np.isclose(count / 49, (1 + count) / 50):
            raise _Wrong(
                "add 1 above and below: the labels as they are, are one of the possible orders, and p is never 0."
            )
        if got is not None and np.isclose(got, 1 - count / 49):
            raise _Wrong("that is the share of orders with a larger mean; closer than chance means a smaller one.")
        _close(
            got,
            (1 + count) / 50,
            "p is (1 + number of orders whose mean within labels is at most the observed one) / (1 + orders).",
        )
    return "right, and never 0."


# ------------------------------------------------------------------ chapter 08


@_exercise
def window_of(answer: Callable) -> str:
    """Chapter 08: the window of a pair of tokens."""
    for n in (128, 40, 17, 9):
        for i, j in ((0, 1), (1, 0), (0, n - 1), (n - 1, 0), (3, 3 + n // 2), (2, 7), (8, 2), (5, 5)):
            if max(i, j) >= n:
                continue
            wanted = 0 if i == j else 1 + 16 * abs(i - j) // n
            got = answer(i, j, n)
            if got is None:
                raise _Wrong("your function returns None; does it end in `return`?")
            if got == wanted - 1 and wanted:
                raise _Wrong("windows are counted from 1; 0 is kept for the token itself.")
            if i > j and got == answer(j, i, n) - 1:
                raise _Wrong("to the left it says something else than to the right; take the absolute distance.")
            if got != wanted:
                raise _Wrong(f"for tokens {i} and {j} of {n} it says {got}, not {wanted}.")
    return "right, in both directions and for inputs of 9 to 128 tokens."


@_exercise
def renumbered(answer: Callable) -> str:
    """Chapter 08: group numbers that agree with a reference as far as possible."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        reference = rng.integers(0, 4, 24)
        labels = rng.permutation(4)[np.where(rng.random(24) < 0.7, reference, rng.integers(0, 4, 24))]
        best = max((np.array(p)[labels] == reference).sum() for p in permutations(range(4)))
        got = answer(labels, reference)
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        got = np.asarray(got)
        pairs = set(zip(labels.tolist(), got.tolist(), strict=True))
        if len(pairs) != len(set(labels.tolist())) or len({new for _, new in pairs}) != len(pairs):
            raise _Wrong(
                "it moves heads to other groups: each old number must become one new number, and no two the same."
            )
        if (got == reference).sum() != best:
            raise _Wrong(
                f"{(got == reference).sum()} heads agree with the reference, but {best} could; try all 24 ways."
            )
    return "right: the groups stay, only their numbers change."


@_exercise
def agreed_by_all(answer: Callable) -> str:
    """Chapter 08: the share of heads that all refits label alike."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels = np.where(rng.random((10, 30)) < 0.95, rng.integers(0, 4, 30), rng.integers(0, 4, (10, 30)))
        wanted = float((labels == labels[0]).all(0).mean())
        got = answer(labels)
        if got is not None and np.isclose(got, (labels == labels[0]).mean()) and not np.isclose(got, wanted):
            raise _Wrong(
                "that is the mean agreement with the first refit; a head counts only if all ten agree on it."
            )
        _close(
            got, wanted, "count the columns in which all rows are equal, and divide by their number; check the axis."
        )
    return "right: one refit that differs is enough to lose a head."


# ------------------------------------------------------------------ chapter 09


@_exercise
def sink_mass(answer: Callable) -> str:
    """Chapter 09: the largest mean weight of a column."""
    for seed in range(4):
        weights = _maps(6, seed)
        weights[:, seed] += 0.5
        weights /= weights.sum(-1, keepdims=True)
        got = answer(weights)
        if got is not None and np.isclose(got, weights.mean(1).max()):
            raise _Wrong("that is the mean of a row, which is 1/n for every row; columns are the attended tokens.")
        if got is not None and np.isclose(got, weights.max()):
            raise _Wrong("one dark cell makes no column; take the mean over the attending tokens first.")
        _close(got, float(weights.mean(0).max()), "it should be the largest mean over the rows, column by column.")
    return "right: the column that all rows share wins, wherever it stands."


@_exercise
def type_entropy(answer: Callable) -> str:
    """Chapter 09: the entropy of a head's types, given as a list of names."""
    for names in (["a", "b"] * 3, ["a", "a", "a", "b"], ["c"] * 5, ["a", "b", "c", "d", "e"]):
        shares = np.array([names.count(name) for name in sorted(set(names))]) / len(names)
        wanted = float(-(shares * np.log(shares)).sum())
        got = answer(names)
        if got is not None and wanted and np.isclose(got, wanted / np.log(2)):
            raise _Wrong("that is in bits; this book counts in nats, with the natural logarithm.")
        _close(
            got, wanted, f"for {names} it should be {wanted:.3f}: minus the sum of p ln p over the names that occur."
        )
    return "right: 0 for a head that never changes, ln 5 for one that shows all five types alike."


@_exercise
def macro_f1(answer: Callable) -> str:
    """Chapter 09: macro-F1 from a confusion table."""
    for seed in range(4):
        table = np.random.default_rng(seed).integers(0, 9, (4, 4)) + np.diag([9, 1, 4, 2])
        if seed:
            table[seed] = 0  # a type that nothing is labelled with
        kept = table.sum(1) > 0
        per_type = 2 * np.diag(table) / np.maximum(table.sum(0) + table.sum(1), 1)
        got = answer(table)
        if got is not None and np.isclose(got, np.trace(table) / table.sum()):
            raise _Wrong("that is the accuracy; F1 is computed for each type, and then averaged.")
        if seed and got is not None and np.isclose(got, per_type.mean()):
            raise _Wrong("a type without any labelled map (a row of zeros) should be left out of the mean.")
        _close(
            got,
            float(per_type[kept].mean()),
            "F1 of a type is 2 · hits / (labelled so + given so); average it over the rows that are not empty.",
        )
    return "right, also where a type never occurs."


# ------------------------------------------------------------------ chapter 10


@_exercise
def even_weights(answer: Callable) -> str:
    """Chapter 10: the weights of a head that is made even."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(2, 8, 3)
        mask = np.arange(9)[None] < lengths[:, None]
        wanted = np.repeat((mask / lengths[:, None])[:, None], 9, axis=1)
        got = answer(mask)
        if got is not None and np.shape(got) == wanted.shape and np.allclose(got, 1 / 9):
            raise _Wrong(
                "padding gets weight, too; n counts the real tokens of each input, not the width of the batch."
            )
        if (
            got is not None
            and np.shape(got) == wanted.shape
            and np.allclose(np.asarray(got).sum(-1), lengths[:, None])
        ):
            raise _Wrong("each row sums to n; each of the n real tokens gets 1/n.")
        _close(got, wanted, "wanted is 1/n at the real tokens of each input and 0 at its padding, in every row.")
    return "right: every row sums to 1 over the real tokens, whatever the padding."


@_exercise
def inside_only(answer: Callable) -> str:
    """Chapter 10: remove the weights between sentences, and let rows sum to 1 again."""
    for seed in range(4):
        weights = _maps(8, seed)
        sentence = np.array([-1, 0, 0, -1, 1, 1, 2, -1])
        special = sentence < 0
        kept = (sentence[:, None] == sentence[None]) | special[:, None] | special[None]
        for renormalise in (False, True):
            wanted = np.where(kept, weights, 0)
            if renormalise:
                wanted = wanted / wanted.sum(-1, keepdims=True)
            got = answer(weights.copy(), sentence, renormalise)
            if got is not None and np.shape(got) == wanted.shape:
                sums = np.asarray(got, np.float64).sum(-1)
                if np.allclose(np.asarray(got)[1][special], 0):
                    raise _Wrong(
                        "attention to special tokens (sentence -1) is gone; it belongs to no sentence and stays."
                    )
                if renormalise and not np.allclose(sums, 1):
                    raise _Wrong("with renormalise=True every row has to sum to 1 again.")
                if not renormalise and np.allclose(sums, 1):
                    raise _Wrong("with renormalise=False the weights that are left stay as they were.")
            _close(
                got, wanted, "weights between two different sentences are 0, all others stay (or grow in proportion)."
            )
    return "right, both as the tables do it and renormalised."


@_exercise
def deal_anew(answer: Callable) -> str:
    """Chapter 10: a control with the same number of heads of each type in each layer."""
    names = np.array([["a", "a", "b", "c"], ["b", "b", "b", "b"], ["c", "a", "a", "b"], ["a", "b", "c", "c"]])
    before, seen = names.copy(), set()
    for seed in range(20):
        got = answer(names, np.random.default_rng(seed))
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        got = np.asarray(got)
        if not np.array_equal(names, before):
            raise _Wrong("it changes the grid it was given; make a new one.")
        if got.shape != names.shape:
            raise _Wrong(f"the result has shape {got.shape}, wanted is {names.shape}.")
        if not np.array_equal(np.sort(got.ravel()), np.sort(names.ravel())):
            raise _Wrong("the number of heads of each type has changed.")
        if not np.array_equal(np.sort(got, axis=1), np.sort(names, axis=1)):
            raise _Wrong("types moved from layer to layer; deal within each layer only.")
        seen.add(tuple(got.ravel()))
    if len(seen) < 10:
        raise _Wrong(
            "twenty draws gave hardly any different grids; use the generator, and deal each layer by itself."
        )
    return "right: each layer keeps its types, and which head has which is chance."


# ------------------------------------------------------------------ chapter 12


@_exercise
def expected_layer(answer: Callable) -> str:
    """Chapter 12: the expected layer from the scores of the prefixes 0 to L."""
    for seed in range(4):
        scores = np.sort(np.random.default_rng(seed).random(5 + seed))
        gains = np.diff(scores)
        layers = np.arange(1, len(scores))
        got = answer(scores)
        if got is not None and np.isclose(got, (gains * (layers - 1)).sum() / gains.sum()):
            raise _Wrong("that counts layers from 0; the first gain belongs to layer 1.")
        if got is not None and np.isclose(got, (gains * layers).sum()):
            raise _Wrong("the gains have to be divided by their sum, to be shares.")
        if got is not None and np.isclose(got, (scores * np.arange(len(scores))).sum() / scores.sum()):
            raise _Wrong("that weights the layers by the scores; take what each layer adds to the one below.")
        _close(got, (gains * layers).sum() / gains.sum(), "it should be the mean layer, weighted by the gains.")
    return "right: a task that gains everything at layer 3 has expected layer 3."


@_exercise
def mixture(answer: Callable) -> str:
    """Chapter 12: the mixed state of a token from the layers 0 to ``top``."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        states, a, gamma, top = rng.normal(size=(5, 4)), rng.normal(size=5) * 2, 1.5 + seed, 4 - seed
        weights = np.exp(a[: top + 1]) / np.exp(a[: top + 1]).sum()
        got = answer(states, a, gamma, top)
        cut = np.exp(a) / np.exp(a).sum()
        if top < 4 and got is not None and np.allclose(got, gamma * cut[: top + 1] @ states[: top + 1]):
            raise _Wrong("the weights of the layers that are read do not sum to 1; cut before the softmax.")
        if got is not None and np.allclose(got, weights @ states[: top + 1]):
            raise _Wrong("gamma is missing.")
        if got is not None and top and np.allclose(got, gamma * states[: top + 1].mean(0)):
            raise _Wrong("that is the uniform mixture; it does not depend on a.")
        _close(got, gamma * weights @ states[: top + 1], "gamma times the weighted sum of the layers 0 to top, top included.")  # fmt: skip
    return "right: whatever layers are read, their weights sum to 1."


@_exercise
def letters(answer: Callable) -> str:
    """Chapter 12: the label of a word in a task that needs no context."""
    for word in ("a", "Ada", "half-sisters", "1,500", ".", "unbelievable", "O'Brien"):
        wanted = str(min(sum(c.isalpha() for c in word), 10))
        got = answer(word)
        if isinstance(got, int) and str(got) == wanted:
            raise _Wrong("labels are strings here; wrap the number in str().")
        if got == str(min(len(word), 10)) != wanted:
            raise _Wrong(f"{word!r} has characters that are no letters; they do not count.")
        if got == str(sum(c.isalpha() for c in word)) != wanted:
            raise _Wrong(f"{word!r} has more than ten letters; the label is '10' from ten on.")
        if got != wanted:
            raise _Wrong(f"for {word!r} it should be {wanted!r}, not {got!r}.")
    return "right: eleven classes, and no context needed for any of them."


# ------------------------------------------------------------------ chapter 13


def _with_special(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A map of eight tokens, of which the first, the last and one between are special and get much."""
    weights = _maps(8, seed)
    special = np.zeros(8, bool)
    special[[0, 3 + seed % 3, 7]] = True
    weights[:, special] += 0.4
    return weights / weights.sum(-1, keepdims=True), special


@_exercise
def attention_received(answer: Callable) -> str:
    """Chapter 13: column sums over the rows of ordinary tokens."""
    for seed in range(4):
        weights, special = _with_special(seed)
        got = answer(weights, special)
        if got is not None and np.shape(got) == (8,):
            if np.allclose(got, weights.sum(0)):
                raise _Wrong("special tokens attend in your sum; leave their rows out.")
            if np.allclose(got, weights[:, ~special].sum(1)):
                raise _Wrong(
                    "you summed over a row, which is what a token gives; what it receives stands in its column."
                )
        _close(got, weights[~special].sum(0), "it should be the column sums over the rows of ordinary tokens.")
    return "right: columns receive, and special tokens are not asked."


@_exercise
def received_without_special(answer: Callable) -> str:
    """Chapter 13: the same once rows are rescaled over ordinary tokens."""
    for seed in range(4):
        weights, special = _with_special(seed)
        kept = weights[~special][:, ~special]
        got = answer(weights, special)
        if got is not None and np.shape(got) == (5,) and np.allclose(got, kept.sum(0)):
            raise _Wrong("the rows do not sum to 1 any more; divide each by what is left of it.")
        _close(
            got,
            (kept / kept.sum(-1, keepdims=True)).sum(0),
            "cut rows and columns of special tokens, rescale each row, then sum the columns.",
        )
    return "right: now every document hands out as much as it has ordinary tokens."


@_exercise
def average_precision(answer: Callable) -> str:
    """Chapter 13: mean precision at the ranks of the key words."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        scores, key = rng.permutation(12) / 12, np.arange(12) % 4 == seed % 4
        hits = key[np.argsort(-scores)]
        wanted = float((hits.cumsum() / np.arange(1, 13))[hits].mean())
        got = answer(scores, key)
        rising = key[np.argsort(scores)]
        if got is not None and np.isclose(got, (rising.cumsum() / np.arange(1, 13))[rising].mean()):
            raise _Wrong("you ranked from the lowest score; the highest comes first.")
        if got is not None and np.isclose(got, (hits.cumsum() / np.arange(1, 13)).mean()):
            raise _Wrong("that is the mean over all ranks; only the ranks of key words count.")
        _close(got, wanted, "it should be the mean, over key words, of hits so far / words so far.")
    return "right: 1 when all key words come first."


# ------------------------------------------------------------------ chapter 14


@_exercise
def even_multiple(answer: Callable) -> str:
    """Chapter 14: how many times its even share a kind of token gets."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        inputs = []
        for length in rng.integers(3, 9, 3):
            kind = np.zeros(length, bool)
            kind[rng.choice(length, 1 + int(length > 5), replace=False)] = True
            inputs.append((_maps(int(length), seed + int(length)), kind))
        rows = sum(len(kind) for _, kind in inputs)
        share = sum(float(weights[:, kind].sum()) for weights, kind in inputs) / rows
        even = sum(float(kind.sum()) for _, kind in inputs) / rows
        got = answer([(weights.copy(), kind.copy()) for weights, kind in inputs])
        if got is not None and np.ndim(got) == 0 and np.isclose(got, share):
            raise _Wrong("that is the share itself; divide it by what a head with equal weights would give.")
        if got is not None and np.ndim(got) == 0:
            each = [w[:, k].sum() / len(k) / (k.sum() / len(k)) for w, k in inputs]
            if np.isclose(got, np.mean(each)) and not np.isclose(got, share / even):
                raise _Wrong(
                    "that is a mean of multiples, input by input; sum over all rows first, then divide once."
                )
        _close(got, share / even, "it should be the mean share of a row, over the mean even share of a row.")
    return "right: 1 means no preference, whatever the model and the length of its inputs."


@_exercise
def paired_gap(answer: Callable) -> str:
    """Chapter 14: the interval of a difference, from paired replicates."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        common = rng.normal(size=400)
        one, other = 0.7 + 0.05 * common + 0.01 * rng.normal(size=400), 0.66 + 0.05 * common
        wanted = np.percentile(one - other, (2.5, 97.5))
        got = answer(one.copy(), other.copy())
        if got is not None and np.shape(got) == (2,):
            ends = np.percentile(one, (2.5, 97.5)), np.percentile(other, (2.5, 97.5))
            if np.allclose(got, ends[0] - ends[1]):
                raise _Wrong("these are differences of ends; subtract replicate by replicate, then take percentiles.")
            if np.allclose(got, [ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]]):
                raise _Wrong(
                    "that treats the two as unrelated; the same texts were drawn for both, so subtract first."
                )
        _close(got, wanted, "it should be the 2.5th and 97.5th percentile of one - other.")
    return "right: what both models owe to the texts drawn cancels out."


@_exercise
def least_certain(answer: Callable) -> str:
    """Chapter 14: the number whose interval is widest."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        numbers = {}
        for name in ("relation", "type", "sink", "entropy"):
            value = float(rng.random())
            numbers[name] = (value, value - float(rng.random()) / 5, value + float(rng.random()) / 5)
        numbers["large"] = (50.0, 49.99, 50.01)
        wanted = max(numbers, key=lambda name: numbers[name][2] - numbers[name][1])
        got = answer(dict(numbers))
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        if got == "large" != wanted:
            raise _Wrong("that is the largest value; ask for the widest interval, high minus low.")
        if got != wanted:
            raise _Wrong(f"it says {got!r}, but the interval of {wanted!r} is wider.")
    return "right. On a card, that is where a larger sample helps most."


# ------------------------------------------------------------------ chapter 11


@_exercise
def gate_importance(answer: Callable) -> str:
    """Chapter 11: the mean size of single examples' gradients, from gradients of batches' means."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        own = [rng.normal(size=(size, 5)) for size in (4, 1, 7)]
        given = [batch / len(batch) for batch in own]
        wanted = np.abs(np.concatenate(own)).mean(0)
        got = answer([batch.copy() for batch in given])
        if got is not None and np.shape(got) == wanted.shape:
            if np.allclose(got, np.abs(np.concatenate(given)).mean(0)):
                raise _Wrong("each gradient is still divided by the size of its batch; multiply first.")
            if np.allclose(got, np.mean([np.abs(batch).mean(0) for batch in own], axis=0)):
                raise _Wrong("a small batch counts as much as a large one; average over examples, not over batches.")
            if np.allclose(got, np.abs(np.concatenate(own).mean(0))):
                raise _Wrong("examples of opposite sign cancel; take the absolute value before the mean.")
        _close(got, wanted, "multiply by the batch's size, take absolute values, average over all examples.")
    return "right: the same whatever the batches."


@_exercise
def size_before_mean(answer: Callable) -> str:
    """Chapter 11: absolute value before and after the mean over examples."""
    for seed in range(3):
        gradients = np.random.default_rng(seed).normal(size=(9, 4))
        before, after = np.abs(gradients).mean(0), np.abs(gradients.mean(0))
        got = answer(gradients.copy())
        if got is not None and np.shape(got) == (2, 4) and np.allclose(got, [after, before]):
            raise _Wrong(
                "the two rows are exchanged: first the absolute value of each example, then that of the mean."
            )
        _close(
            got, np.stack([before, after]), "the first row is mean(|g|), the second |mean(g)|, both over examples."
        )
    return "right: they differ for a head that helps some examples and harms others."


@_exercise
def cut_head(answer: Callable) -> str:
    """Chapter 11: a layer's four maps without one head."""
    rng = np.random.default_rng(0)
    for head in (0, 2, 3):
        maps = [rng.normal(size=(12, 5)) for _ in range(3)] + [rng.normal(size=(5, 12))]
        kept = [n for n in range(12) if n // 3 != head]
        wanted = [*(m[kept] for m in maps[:3]), maps[3][:, kept]]
        got = answer(*(m.copy() for m in maps), head, 4)
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        if len(got) != 4:
            raise _Wrong(f"it returns {len(got)} arrays instead of four.")
        for name, one, right in zip(("query", "key", "value", "output"), got, wanted, strict=True):
            if np.shape(one) == (5, 9) != right.shape or np.shape(one) == (9, 5) != right.shape:
                raise _Wrong(f"{name} is turned round; rows go from the first three maps, columns from the last.")
            _close(
                one,
                right,
                f"{name} does not hold what is left; features {3 * head} to {3 * head + 2} should be gone.",
            )
    return "right: rows from three maps, columns from the fourth."

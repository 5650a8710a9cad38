"""The exercises of chapter 06."""

from helpers.chapters.checks import Exercise
from helpers.chapters.progress import desk

GOVERNORS = [3, -1, 1, 1, 3]


class is_tree(Exercise):
    """Whether governors make one tree with one root."""

    solved = "right: one word says ROOT, and every other word reaches it."
    means = "Answers that are right one by one need not fit together; a tree is a property of all of them."
    leads_on = "How likely is a tree when every word is right nine times in ten?"
    hints = (
        "First count the zeros: there must be exactly one.",
        "From each word go to its candidate again and again, at most `len(candidates)` times; if you have not met 0 by then, you are in a circle.",
    )

    cases = (
        ([2, 0, 2, 2, 4],),
        ([2, 0, 2, 5, 4],),
        ([2, 0, 0, 3],),
        ([2, 3, 1],),
        ([0],),
        ([0, 1, 2, 3, 4, 5],),
        ([0, 2],),
    )

    def right(candidates):
        """climbing from every word, governor by governor, must end at ROOT, and exactly one word may name ROOT itself."""
        reached = {0}
        for _ in candidates:
            reached |= {w for w, c in enumerate(candidates, 1) if c in reached}
        return len(reached) == len(candidates) + 1 and list(candidates).count(0) == 1

    def one_root(candidates):
        """one word names ROOT, but that is not enough: words may name each other, or themselves, and never come out."""
        return list(candidates).count(0) == 1

    def any_roots(candidates):
        """every word reaches ROOT, but a tree has one root: exactly one word may name ROOT itself."""
        reached = {0}
        for _ in candidates:
            reached |= {w for w, c in enumerate(candidates, 1) if c in reached}
        return len(reached) == len(candidates) + 1


class undirected_score(Exercise):
    """Share of a tree's edges that are predicted, in either direction."""

    solved = "right, whichever end comes first."
    means = "The undirected score forgives a probe for not knowing which end governs."
    leads_on = 'Which sentences does the rule "neighbours are joined" get fully right, and how long are they?'
    hints = (
        "The arc of word `w` is `{w, governors[w]}`; the root has none.",
        "Make a set of `frozenset` pairs of both trees and count what they share, over the number of words less one.",
    )

    cases = (
        (GOVERNORS, [(0, 3), (1, 2), (1, 3), (3, 4)]),
        (GOVERNORS, [(3, 0), (2, 1), (0, 1), (0, 2)]),
        (GOVERNORS, [(0, 1), (0, 2), (0, 4), (2, 3)]),
    )

    def right(governors, predicted):
        """it is the share of the tree's edges that are among the predicted ones, in either direction."""
        return sum((w, g) in predicted or (g, w) in predicted for w, g in enumerate(governors)) / 4

    def root_too(*case):
        """a sentence of five words has four edges: the root (-1) has no governor."""
        return undirected_score.right(*case) * 4 / 5


check, hint, progress = desk(globals())

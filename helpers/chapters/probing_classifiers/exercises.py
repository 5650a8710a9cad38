"""The exercises of chapter 06."""

from helpers.chapters.checks import Exercise, checker

GOVERNORS = [3, -1, 1, 1, 3]


class is_tree(Exercise):
    solved = "right: one word says ROOT, and every other word reaches it."

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
    solved = "right, whichever end comes first."

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


check = checker(globals())

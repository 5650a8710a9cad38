"""You train probes that read all heads at once, beside control tasks that show how much they learn about words.

After {cite:t}`clark2019`, section 5; {cite:t}`coenen2019`; {cite:t}`hewitt2019control`.
"""

from helpers.exercises.checks import desk, exercise

CANDIDATES = ([2, 0, 2, 2, 4], [2, 0, 2, 5, 4], [2, 0, 0, 3], [2, 3, 1], [0], [0, 1, 2, 3, 4, 5], [0, 2])


@exercise([(candidates,) for candidates in CANDIDATES])
def is_tree(candidates):
    """Whether governors make one tree with one root."""
    reached, one_root = {0}, list(candidates).count(0) == 1
    for _ in candidates:
        reached |= {w for w, c in enumerate(candidates, 1) if c in reached}
    rooted = len(reached) == len(candidates) + 1
    return {"right": rooted and one_root, "one_root": one_root, "rooted": rooted}


check, hint, progress = desk("probing_classifiers", is_tree)

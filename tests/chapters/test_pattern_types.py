"""Chapter 09: the functions of its page against plain loops, labels by what was drawn, its sentences against recorded numbers."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from conftest import as_printed
from sklearn.metrics import f1_score

from helpers import attention, results, scoreboard, stats, tokens
from helpers.corpora.sources import CorpusError
from helpers.heads import Head
from helpers.measurements import pattern_types
from helpers.measurements.pattern_types import TASKS, TYPES, Item, Label
from helpers.results import Run


@pytest.fixture(scope="module")
def page(methods):
    return methods("09_pattern_types")


def random_maps(*shape: int, seed: int = 0) -> np.ndarray:
    scores = np.exp(2 * np.random.default_rng(seed).normal(size=shape))
    return scores / scores.sum(-1, keepdims=True)


def slow_description(weights, texts):
    """Cell by cell, from the words of the chapter."""
    n = len(weights)
    cut = sorted(weights.ravel())[max(1, int(0.99 * n * n)) - 1]
    grey = [[min(1.0, weights[i][j] / cut) for j in range(n)] for i in range(n)]

    def lower_median(values):
        return sorted(values)[(len(values) - 1) // 2]

    medians = [lower_median([grey[i][j] for i in range(n)]) for j in range(n)]
    rest = [[max(0.0, grey[i][j] - medians[j]) for j in range(n)] for i in range(n)]
    cells = [(i, j) for i in range(n) for j in range(n)]
    near = [c for c in cells if abs(c[0] - c[1]) <= 2]
    far = [c for c in cells if abs(c[0] - c[1]) > 3]
    inside = [c for c in far if texts[c[0]] == texts[c[1]]]
    across = [c for c in far if texts[c[0]] != texts[c[1]]]

    def mean(part):
        return sum(rest[i][j] for i, j in part) / len(part)

    def correlation(part, whole):
        x = np.array([rest[i][j] for i, j in whole])
        y = np.array([float(c in set(part)) for c in whole])
        return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and 0 < y.mean() < 1 else 0.0

    columns = [sum(grey[i][j] for i in range(n)) / n for j in range(n)]
    share = weights.mean(0)
    dark = [any(rest[i][j] >= 0.35 for j in range(n) if abs(i - j) <= 2) for i in range(n)]
    rows = [-sum(p * math.log(p) for p in row if p > 0) for row in weights]
    return [
        max(lower_median(list(weights[:, j])) for j in range(n)),
        max(columns),
        max(sum(grey[i][j] >= 0.35 for i in range(n)) / n for j in range(n)),
        float(np.var(columns) / np.var(grey)),
        1 + sum(p * math.log(p) for p in share if p > 0) / math.log(n),
        max(np.mean([rest[i][i + k] for i in range(n) if 0 <= i + k < n]) for k in range(-3, 4)),
        sum(dark) / n,
        math.log((mean(near) + 0.01) / (mean([c for c in cells if c not in set(near)]) + 0.01)),
        correlation(near, cells),
        math.log((mean(inside) + 0.01) / (mean(across) + 0.01)) if across and inside else 0.0,
        correlation(inside, far),
        float(np.mean(rows) / math.log(n)),
    ]


@pytest.mark.parametrize(("n", "border"), [(9, 4), (12, 12), (17, 3)])
def test_descriptions_are_what_loops_find(page, n, border):
    maps, texts = random_maps(2, 2, n, n, seed=n), (np.arange(n) >= border).astype(int)
    found = page.twelve_of(maps, texts)
    for at in np.ndindex(2, 2):
        np.testing.assert_allclose(found[at], slow_description(maps[at], texts.tolist()), atol=1e-9)


def test_two_numbers_and_the_rule_are_what_loops_find(page):
    maps = random_maps(6, 8, 8)
    for weights, numbers in zip(maps, page.two_numbers(maps), strict=True):
        column = max(sum(weights[i][j] for i in range(8)) / 8 for j in range(8))
        near = sum(weights[i][j] for i in range(8) for j in range(8) if abs(i - j) <= 1) / 8
        np.testing.assert_allclose(numbers, [column, near])
        kind = {(0, 0): "heterogeneous", (1, 0): "vertical", (0, 1): "diagonal", (1, 1): "vertical_diagonal"}
        for thresholds in product((column - 0.01, column + 0.01), (near - 0.01, near + 0.01)):
            called = kind[column >= thresholds[0], near >= thresholds[1]]
            assert TYPES[page.rule(numbers, *thresholds)] == called
    rng = np.random.default_rng(0)
    numbers, types = rng.random((30, 2)), rng.choice([0, 1, 2, 4], 30)
    scores = {
        pair: f1_score(types, page.rule(numbers, *pair), labels=[0, 1, 2, 4], average="macro")
        for pair in product([n / 50 for n in range(1, 41)], repeat=2)
    }
    assert page.fit_rule(numbers, types) == max(scores, key=scores.get)


def label(head, kind):
    return Label("m", head, Item("text/0", "text", ("a", "b"), 0), "dev", kind, "")


def test_other_maps_vote(page):
    dev = [label(Head(*at), kind) for *at, kind in ((1, 1, "diagonal"), (1, 1, "diagonal"), (1, 1, "block"))]
    dev += [label(Head(1, 2), "block"), label(Head(2, 1), "vertical")]
    asked = [label(Head(*at), "vertical") for at in ((1, 1), (1, 3), (2, 1), (3, 3))]
    assert [TYPES[k] if k >= 0 else None for k in page.named_by_head(asked, dev)] == [
        "diagonal",
        None,
        "vertical",
        None,
    ]
    by_layer = [TYPES[k] if k >= 0 else None for k in page.named_by_layer(asked, dev)]
    assert by_layer == ["block", "diagonal", None, None], "of ties the first type"


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_looking_at_texts_is_what_loops_find(page, small_encoder, family):
    encoder = small_encoder(family)
    items = [
        Item("x/0", "text", ("The cat sat, on its mat.", "A dog!"), 0),
        Item("x/1", "text", ("Yes", "On it."), 1),
    ]
    found = page.measure(encoder, items)
    for n, item in enumerate(items):
        batch = tokens.encode(encoder, [item.texts])
        maps = attention.maps(encoder, batch)[:, 0].double().numpy()
        texts, text = [], 0
        for own in batch.text[0].tolist():  # special tokens are of the text before them
            text = max(text, own)
            texts.append(text)
        for at in np.ndindex(maps.shape[:2]):
            np.testing.assert_allclose(found["twelve"][n][at], slow_description(maps[at], texts), atol=1e-4)
            column = int(
                np.minimum(maps[at] / np.sort(maps[at], None)[int(0.99 * maps[at].size) - 1], 1).mean(0).argmax()
            )
            kinds = batch.cls[0, column], batch.sep[0, column], batch.punctuation[0, column], True
            assert found["target"][n][at] == [bool(kind) for kind in kinds].index(True)


def test_shares_and_pairs_are_what_loops_count(page):
    rng = np.random.default_rng(3)
    items = [Item(f"{task}/{n}", task, ("a", "b"), n // 2) for task in TASKS for n in range(6)]
    types = rng.integers(0, 5, (len(items), 2, 3))
    vars(page)["shares_of"].__globals__["seed"] = 0  # a parameter of the page
    shares = page.shares_of(types, items)
    for t, task in enumerate(TASKS):
        own = [types[n] for n, item in enumerate(items) if item.task == task]
        for layer, head, kind in np.ndindex(2, 3, 5):
            assert shares.value[t, layer, head, kind] == np.mean([x[layer, head] == kind for x in own])
    heads = shares.value.mean(0)
    alike = {True: [], False: []}
    for one, other in product(np.ndindex(2, 3), repeat=2):
        alike[one == other].append(sum(heads[one][k] * heads[other][k] for k in range(5)))
    np.testing.assert_allclose(page.same_type(heads), [np.mean(alike[True]), np.mean(alike[False])])
    numbers, vertical = {"target": rng.integers(0, 4, types.shape)}, types == 0
    counts = Counter(numbers["target"][vertical].tolist())
    for k, share in enumerate(page.whose_column(numbers, vertical, items).values()):
        assert share.value == counts[k] / vertical.sum()


def test_mean_f1_is_scikit_learns(page):
    rng = np.random.default_rng(0)
    truth, called = rng.choice([0, 1, 2, 4], 90), rng.integers(0, 5, 90)
    table = np.zeros((5, 5))
    np.add.at(table, (truth, called), 1)
    assert page.mean_f1(table) == pytest.approx(f1_score(truth, called, labels=[0, 1, 2, 4], average="macro"))


def test_what_is_recorded_of_a_network(small_encoder, tmp_path, monkeypatch):
    run = Run("pattern_types", small_encoder("bert", num_hidden_layers=2), None, profile="smoke")
    value = np.zeros((2, run.encoder.heads, 5))
    value[0, :, 4], value[0, 0, 4], value[0, 0, 0], value[1, :, 2] = 1.0, 0.5, 0.5, 1.0
    shares = stats.mean(np.stack([value] * 12), by=np.arange(12) // 3)
    pattern_types.record(run, "", stats.stack([shares] * 4))
    heads = run.encoder.heads
    assert run.recorded.number("dark_column").value == pytest.approx((0.5 + heads) / (2 * heads))
    assert run.recorded.number("heterogeneous_in_first_layer").value == 1
    assert run.recorded.array("pattern_type", column="label")[:, 1].tolist() == ["heterogeneous", "vertical_diagonal"]
    assert run.recorded.number("frequent_types").value == 3
    entropy = run.recorded.array("pattern_entropy")
    np.testing.assert_allclose(entropy[0, 0], math.log(2), atol=1e-6)


@pytest.mark.parametrize("kind", TYPES)
def test_synthetic_maps_are_maps_and_reproducible(kind):
    texts = np.repeat([0, 1], [9, 21])
    one, again = (pattern_types.synthetic_map(kind, texts, np.random.default_rng(4)) for _ in range(2))
    assert one.shape == (30, 30) and (one >= 0).all() and np.array_equal(one, again)
    np.testing.assert_allclose(one.sum(-1), 1)


def test_labels_are_of_the_maps_that_were_drawn(minilm, small_encoder):
    choice = [i for task, name in pattern_types.BOOK_CORPORA.items() for i in pattern_types.items(task, name)]
    assert {i.document for i in choice} == set(range(100)), "one document for each article"
    of_its_shape = small_encoder("bert", num_hidden_layers=12, num_attention_heads=12, hidden_size=48)
    for seed, (encoder, name, count) in enumerate(((minilm, "minilm", 240), (of_its_shape, "mpnet", 72))):
        labels = [x for x in pattern_types.read_labels() if x.model == name]
        assert [(x.head, x.item) for x in labels] == pattern_types.draw(encoder, choice, count, seed=seed)
    assert not any(x.head[0] == 0 or x.type not in ("vertical", "vertical_diagonal") for x in labels), "mpnet's"
    with pytest.raises(ValueError, match="give more items"):
        pattern_types.draw(minilm, choice[:1], 73, seed=0)


HEADER = ",".join(pattern_types.COLUMNS)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model,layer\n", "line 1: The columns are model, layer"),
        (f"{HEADER}\nminilm,1,1,text,text/9999,dev,block,\n", "line 2: .*an input of the book tier"),
        (f"{HEADER}\nminilm,1,1,text,text/1,dev,block,stripes\n", "line 2: The types are"),
        (f"{HEADER}\nminilm,0,1,text,text/1,dev,block,\n", "line 2: Layer '0'"),
        (f"{HEADER}\nminilm,1,text\n", "line 2: .*8 columns"),
    ],
)
def test_wrong_labels_are_refused_with_their_line(tmp_path, text, says):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(CorpusError, match=says):
        pattern_types.read_labels(tmp_path / "labels.csv")


BOOK, FULL, MPNET = ("book", "minilm"), ("full", "minilm"), ("full", "mpnet")
FOREST, DEV_FOREST, RULE = "forest on synthetic maps", "forest on dev maps", "simple rule"
NOISE_FOREST = "forest on dev maps and noise"
OWN_HEAD, LAYER, MAJORITY = "other maps of the head", "other heads of the layer", "always the majority type"


def recorded(run):
    profile, model = run
    return results.recorded("pattern_types", model=model, profile=profile)


PRINTED = [  # numbers as the page prints them, in per cent
    (BOOK, "accuracy_known_heads", {"of": OWN_HEAD}, "95 [89, 100]"),
    (BOOK, "accuracy_known_heads", {"of": LAYER}, "69"),
    (BOOK, "accuracy_known_heads", {"of": FOREST}, "88"),
    (BOOK, "accuracy_known_heads", {"of": DEV_FOREST}, "93"),
    (BOOK, "accuracy_known_heads", {"of": f"{OWN_HEAD}, just one"}, "95"),
    (BOOK, "macro_f1", {"of": FOREST}, "79"),
    (BOOK, "macro_f1", {"of": DEV_FOREST}, "89"),
    (MPNET, "macro_f1", {"of": FOREST}, "65"),
    (MPNET, "macro_f1", {"of": DEV_FOREST}, "85"),
    (MPNET, "accuracy_new_heads", {"of": FOREST}, "69"),
    (MPNET, "accuracy_new_heads", {"of": DEV_FOREST}, "82"),
    (BOOK, "accuracy_gain", {"of": f"{OWN_HEAD} over {LAYER}"}, "27 [12, 41]"),
    (BOOK, "accuracy_new_heads", {"of": FOREST}, "89"),
    (BOOK, "accuracy_new_heads", {"of": RULE}, "73"),
    (BOOK, "accuracy_gain", {"of": f"{FOREST} over {RULE}"}, "16 [5, 32]"),
    (BOOK, "share_by_classifier", {"of": f"vertical, {DEV_FOREST}", "network": "@shuffled"}, "73"),
    (BOOK, "share_by_classifier", {"of": f"vertical, {DEV_FOREST}", "network": "@random"}, "70"),
    (BOOK, "share_by_classifier", {"of": f"vertical, {FOREST}", "network": "@shuffled"}, "0.2"),
    (BOOK, "share_by_classifier", {"of": f"vertical, {FOREST}", "network": "@random"}, "3"),
    (BOOK, "dark_column", {}, "87 [86, 87]"),
    (BOOK, "same_type", {"of": "of one head"}, "91"),
    (BOOK, "same_type", {"of": "of two heads"}, "39"),
    (BOOK, "same_type", {"of": "of one head", "network": "@random"}, "95"),
    (BOOK, "same_type", {"of": "of two heads", "network": "@random"}, "94"),
    (MPNET, "same_type", {"of": "of one head"}, "85"),
    (MPNET, "same_type", {"of": "of two heads"}, "42"),
    (MPNET, "same_type", {"of": "of one head", "network": "@random"}, "82"),
    (MPNET, "same_type", {"of": "of two heads", "network": "@random"}, "68"),
    (MPNET, "pattern_share", {"of": "vertical", "layer": None, "network": "@random"}, "80"),
    (MPNET, "vertical_target", {"of": "other"}, "6"),
    (MPNET, "vertical_target", {"of": "other", "network": "@random"}, "88"),
    (MPNET, "heterogeneous_in_first_layer", {}, "39"),
]


@pytest.mark.parametrize(("run", "quantity", "where", "printed"), PRINTED)
def test_the_page_prints_what_is_recorded(run, quantity, where, printed):
    table = recorded(run)
    if where.get("layer", 0) is None:
        rows = table.rows(quantity, of=where["of"], network=where["network"])
        value = rows[rows.layer.isna()].value.item()
    else:
        found = table.number(quantity, **where)
        value = found.value
        if "[" in printed:
            assert printed == stats.percent(found)
    assert as_printed(100 * value, printed.split()[0]) == printed.split()[0]


def test_the_summary_holds_in_every_run():
    for run in (BOOK, FULL, MPNET):
        numbers = scoreboard.numbers_of(recorded(run).table)
        verdicts = [
            scoreboard.judge(c, numbers).verdict for c in scoreboard.chapters()["09_pattern_types"]["headlines"]
        ]
        if run != MPNET:
            assert set(verdicts) == {scoreboard.HOLDS}, verdicts
        alike, random = (recorded(run).estimates("same_type", network=n) for n in ("", "@random"))
        gap, control = (one["of one head"].value - one["of two heads"].value for one in (alike, random))
        assert gap > 0.4 and control < gap / 2.5
        shuffled = recorded(run).estimates("share_by_classifier", network="@shuffled")
        assert shuffled[f"vertical, {FOREST}"].value < 0.01 and shuffled[f"vertical, {DEV_FOREST}"].value > 0.5
    mpnet = recorded(MPNET)
    gains = mpnet.estimates("accuracy_gain")
    assert gains[f"{FOREST} over {RULE}"].low < 0 < gains[f"{FOREST} over {MAJORITY}"].low
    assert mpnet.rows("accuracy_known_heads", of=OWN_HEAD).n.item() == 9
    typical = mpnet.array("pattern_type", column="label")
    assert all((typical[:, head - 1] == "vertical").all() for head in (2, 4, 6))
    book = recorded(BOOK)
    assert book.number("accuracy_gain", of=f"{FOREST} over {MAJORITY}").low < 0
    typical = book.array("pattern_type", column="label")
    assert (typical[-1] == "vertical").all() and not np.isin(typical[1:], ("diagonal", "heterogeneous")).any()
    for network in ("@shuffled", "@random"):
        assert book.number("share_by_classifier", of=f"vertical, {NOISE_FOREST}", network=network).value < 0.01
    own = book.rows("accuracy_known_heads", of=f"{OWN_HEAD}, just one").n.item()
    assert own > book.rows("accuracy_known_heads", of=OWN_HEAD).n.item() / 2, "one map is mostly enough"
    level = book.number("accuracy_gain", of=f"{FOREST} over {DEV_FOREST}")
    assert level.low <= 0 <= level.high

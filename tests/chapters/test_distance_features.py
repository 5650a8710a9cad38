"""Chapter 08: distance features against plain loops, naming and matching against all permutations, controls."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from helpers import attention, encoders, results, scoreboard, tokens
from helpers.chapters import distance_features as distance
from helpers.chapters.distance_features import FEATURES, TYPES, DistanceFeatures, tables
from helpers.plots import group_names
from helpers.stats import Estimate
from helpers.tokens import EncodedText

INPUTS = [
    "One, two, three. Four",
    ("Unbelievable semiconductors, they say.", "Yes."),
    "Hi",
    ("A, B.", "The cat sat on the mat, and the dog, which was old, slept near the fire all day."),
    "A few more words than sixteen tokens, so that the windows of distance get wider than one token each.",
    "The end.",
]


def by_loops(weights: np.ndarray, names: tuple[str, ...], cls: str, sep: str) -> list[float]:
    """The definition, cell by cell, for one map of one input without padding."""
    n = len(names)
    found = [0.0] * 21
    for i in range(n):
        for j in range(n):
            if names[j] == cls:
                place = 17
            elif names[j] == sep:
                place = 18
            elif names[j] == ",":
                place = 19
            elif names[j] == ".":
                place = 20
            elif i == j:
                place = 0
            else:
                place = next(w + 1 for w in range(16) if w * n / 16 <= abs(i - j) < (w + 1) * n / 16)
            found[place] += weights[i, j] / n
    return found


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_features_are_what_loops_count(small_encoder, family):
    encoder = small_encoder(family)
    found = distance.measure(encoder, INPUTS, draws=4)
    wanted = np.zeros((len(INPUTS), encoder.layers, encoder.heads, 21))
    special = encoder.special
    for n, one in enumerate(INPUTS):
        batch = tokens.encode(encoder, [one])
        maps = attention.maps(encoder, batch)[:, 0].numpy()
        for layer, head in np.ndindex(encoder.layers, encoder.heads):
            wanted[n, layer, head] = by_loops(maps[layer, head], batch.tokens[0], special.cls, special.sep)
    assert np.allclose(found.all.value, wanted.mean(0), atol=1e-6)
    for half, chosen in zip(found.halves, distance.random_halves(len(INPUTS), draws=4), strict=True):
        assert np.allclose(half, wanted[chosen].mean(0), atol=1e-6) and chosen.sum() == 3
    assert found.inputs == len(INPUTS) and found.shape == (3, 4) and found.points.shape == (12, 21)


SOME_WORDS = st.lists(st.sampled_from(["the", ",", ".", "cat", "unbelievable", "x", "!"]), min_size=1, max_size=40)


def encoded(encoder, given) -> EncodedText:
    return EncodedText.of(tokens.encode(encoder, [given]), 0, given)


@settings(max_examples=20, deadline=None)
@given(SOME_WORDS, st.integers(0, 99))
def test_every_head_sums_to_one_at_any_length(minilm, words, seed):
    text = encoded(minilm, words)
    scores = torch.randn(2, 3, *[len(text.tokens)] * 2, generator=torch.Generator().manual_seed(seed))
    found = distance.look(scores.mul(3).softmax(-1), text)
    assert torch.allclose(found["features"].sum(-1), torch.ones(2, 3), atol=1e-5) and (found["features"] >= 0).all()
    even = distance.look(torch.full_like(scores, 1 / len(text.tokens)), text)["features"]
    assert torch.allclose(even, found["even"].expand_as(even), atol=1e-6) and float(
        even[0, 0].sum()
    ) == pytest.approx(1)


def test_kinds_of_token_come_before_the_diagonal_and_the_windows(minilm):
    text = encoded(minilm, ("One, two.", "Three"))
    cells, names = distance.cells(text), list(text.tokens)
    comma, stop = names.index(","), names.index(".")
    for place, feature in ((0, "cls"), (comma, "comma"), (stop, "period"), (len(names) - 1, "sep")):
        assert (cells[:, place] == FEATURES.index(feature)).all(), feature
    assert cells[1, 1] == 0 and cells[1, 3] > 0


def test_commas_are_known_under_any_tokenizers_marks(minilm):
    text = encoded(minilm, "a , b .")
    marked = replace(text, tokens=("<s>", "a", "\u0120,", "\u2581b", "\u2581.", "</s>"))
    assert torch.equal(distance.cells(text), distance.cells(marked))


def test_shuffled_maps_have_features_without_places(small_encoder):
    encoder = small_encoder()
    own, dealt = (distance.measure(encoder, INPUTS, draws=2, shuffled=shuffled) for shuffled in (False, True))
    assert np.allclose(dealt.all.value.sum(-1), 1, atol=1e-6) and not np.allclose(own.all.value, dealt.all.value)
    assert np.array_equal(own.even, dealt.even)


def planted(per_group: int = 6, noise: float = 0.01, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of heads in four clear groups, even attention, and each head's type."""
    rng = np.random.default_rng(seed)
    even = np.array([0.01, *np.linspace(0.11, 0.02, 16), 0.01, 0.02, 0.03, 0.0])
    even[-1] = 1 - even[:-1].sum()
    near, special = np.zeros(21), np.zeros(21)
    near[:2], special[17:] = (0.2, 0.8), (0.5, 0.3, 0.1, 0.1)
    pure = {"dense": even, "diagonal": near, "dense_vertical": (even + special) / 2, "vertical": special}
    names = np.repeat(TYPES, per_group)
    rng.shuffle(names)
    features = np.stack([pure[name] for name in names]) + noise * rng.normal(size=(len(names), 21))
    return features.reshape(4, per_group, 21), even, names.reshape(4, per_group)


def test_planted_groups_are_found_and_named():
    features, even, names = planted()
    found = distance.types(features, even)
    assert np.array_equal(found.names, names) and all(found.fits.values())
    assert np.allclose(found.shares, 0.25)
    assert np.array_equal(distance.by_rule(features, even), names)
    for name, heads in distance.examples(features, found).items():
        assert len(heads) == 2 and all(names[head] == name for head in heads)
        own = [((features[h] - found.centroids[TYPES.index(name)]) ** 2).sum() for h in found.of(name)]
        assert ((features[heads[0]] - found.centroids[TYPES.index(name)]) ** 2).sum() == min(own)
    mixed = distance.mixture(distance.points(features)).labels
    assert distance.agreement(mixed, found.labels) == 1
    assert distance.silhouette(distance.points(features), found.labels) > 0.8


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_naming_is_the_best_of_all_pairings(seed):
    rng = np.random.default_rng(seed)
    centroids, even = rng.dirichlet(np.ones(21), 4), rng.dirichlet(np.ones(21))
    table = ((distance.masses(centroids)[:, None] - distance.prototypes(even)) ** 2).sum(-1)
    named = distance.name_groups(centroids, even)
    assert sorted(named) == [0, 1, 2, 3]
    assert table[range(4), named].sum() == pytest.approx(
        min(table[range(4), p].sum() for p in permutations(range(4)))
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_matching_is_the_best_of_all_renumberings(seed, k):
    rng = np.random.default_rng(seed)
    labels, reference = rng.integers(0, k, (2, 20))
    best = max((np.array(p)[labels] == reference).sum() for p in permutations(range(k)))
    found = distance.matched(labels, reference)
    assert (found == reference).sum() == best
    assert len(set(zip(labels.tolist(), found.tolist(), strict=True))) == len(set(labels.tolist()))


def test_heads_that_keep_their_company_keep_their_type():
    features, even, names = planted()
    reference = distance.types(features, even)
    moved = features.copy()
    moved[0, 0] = features[names == ("vertical" if names[0, 0] != "vertical" else "dense")][0]
    again = distance.retyped({"same": features, "moved": moved, "mirrored": 1 - features}, reference)
    assert np.array_equal(again["same"], names) and np.array_equal(again["mirrored"], names)
    assert np.argwhere(again["moved"] != names).tolist() == [[0, 0]]
    with pytest.raises(ValueError, match="'other' has \\(3, 6\\)"):
        distance.retyped({"other": features[:3]}, reference)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 9_999), st.integers(2, 6), st.sampled_from([1, 3, 10]))
def test_k_means_of_many_samples_is_scikit_learns_of_each(seed, k, starts):
    rng = np.random.default_rng(seed)
    samples = rng.dirichlet(np.full(21, rng.uniform(0.2, 2)), size=(5, int(rng.integers(k + 2, 60))))
    found = distance.k_means(samples, k, seed=seed, starts=starts)
    for sample, labels, centroids in zip(samples, found.labels, found.centroids, strict=True):
        # of two draws of k-means++ that are equally good, rounding takes one: it may be that of another order of the sums
        orders = (np.arange(21), *(rng.permutation(21) for _ in range(20)))
        fits = ((order, KMeans(k, n_init=starts, random_state=seed).fit(sample[:, order])) for order in orders)
        order, wanted = next(pair for pair in fits if distance.agreement(labels, pair[1].labels_) == 1)
        groups = [labels[wanted.labels_ == group][0] for group in range(k)]
        assert np.allclose(centroids[groups][:, order], wanted.cluster_centers_, atol=1e-12)


def test_a_model_with_too_few_heads_is_refused(small_encoder):
    distance.refuse_small(small_encoder("bert", num_hidden_layers=5, num_attention_heads=2))
    with pytest.raises(encoders.EncoderError, match=r"8 heads in all.* at least 10 heads"):
        distance.refuse_small(small_encoder("bert", num_hidden_layers=4, num_attention_heads=2))


def as_measured(features: np.ndarray, noise: float, seed: int = 0) -> DistanceFeatures:
    rng = np.random.default_rng(seed)
    draws = [features + noise * rng.normal(size=(n, *features.shape)) for n in (60, 20)]
    return DistanceFeatures(Estimate.of(features, draws[0]), draws[1], planted()[1], 10, 100)


def test_stability_is_what_a_loop_counts():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((10, 40)) < 0.98, 1, 0)
    agreed = sum(all(labels[r, h] == labels[0, h] for r in range(10)) for h in range(40))
    assert distance.stability(labels).value == pytest.approx(agreed / 40)
    more = np.where(rng.random((50, 40)) < 0.98, 1, 0)
    found = distance.stability(more)
    assert found.low < found.value < found.high and found.low == distance.stability(more).low
    assert distance.stability(np.ones((50, 7), int)).value == 1


def test_clear_groups_are_stable_and_beat_invented_heads():
    found = as_measured(planted(9)[0], 0.002)
    clear = distance.robustness(found, 4)
    assert clear["inputs"].value == 1 and clear["heads"].value > 0.95
    assert clear["silhouette"].low > clear["silhouette_control"].high + 0.2
    assert clear["heads"].value > clear["heads_control"].value
    shares = distance.type_shares(found)
    assert np.allclose(shares.value, 0.25) and (shares.low <= shares.value).all()


def test_invented_heads_are_possible_and_have_the_mean_and_spread_of_the_real_ones():
    rng = np.random.default_rng(0)
    points = rng.dirichlet(rng.uniform(0.5, 5, 21), 3000)
    points[:, 4] = 0  # a window that is empty in every input
    invented = distance.structureless(points, seed=1)
    assert invented.shape == points.shape and (invented >= 0).all() and np.allclose(invented.sum(1), 1)
    assert (invented[:, 4] < 1e-3).all()

    def ratios(x):
        logs = np.log(x.clip(1e-6))
        return logs - logs.mean(1, keepdims=True)

    assert np.allclose(ratios(invented).mean(0), ratios(points).mean(0), atol=0.15)
    assert np.allclose(np.cov(ratios(invented).T), np.cov(ratios(points).T), atol=0.35)
    assert not np.array_equal(invented, distance.structureless(points, seed=2))


def test_the_gap_statistic_finds_planted_groups_and_none_where_there_are_none():
    points = distance.points(planted(9)[0])
    found = distance.by_scale(points, (2, 3, 4, 5, 6))
    for name, one in found.items():
        assert one["excess"][4].low > 0.1 and one["four"] == 1, name
        assert one["silhouette"][4] == pytest.approx(one["control"][4].value + one["excess"][4].value), name
    assert found["as they are"]["groups"] == 4 and found["as they are"]["mixture"] == 1
    rng = np.random.default_rng(0)
    crowd = rng.normal(size=(80, 5))

    def spread(heads):
        return [distance.inertia(heads), *(distance.inertia(heads, distance.k_means(heads, k)) for k in (2, 3, 4))]

    ours = np.array(spread(crowd))
    assert ours[0] == pytest.approx(((crowd - crowd.mean(0)) ** 2).sum(1).mean()) and (np.diff(ours) < 0).all()
    assert ours[2] == pytest.approx(KMeans(3, n_init=50, random_state=0).fit(crowd).inertia_ / 80, rel=0.02)
    others = np.stack([spread(rng.normal(size=(80, 5))) for _ in range(10)])
    assert distance.gap(ours, others) == 1


def test_changes_are_shares_of_heads_with_paired_intervals():
    features, _, names = planted(9)
    moved = features.copy()
    moved[0, 0], moved[0, 1] = (
        features[names != names[0, 0]][0],
        features[names != names[0, 1]][0],
    )  # two heads change their company
    one, other = as_measured(features, 0.002), as_measured(moved, 0.002)
    reference = distance.k_means(one.points).labels
    found = distance.changed(one, {"same": one, "other": other}, reference)
    assert found["same"].high == 0
    found = found["other"]
    assert found.value == found.low == found.high == pytest.approx(2 / 36)


@pytest.fixture
def recorded():
    return results.recorded("distance_features")["values"]


def test_the_names_and_where_they_sit(recorded):
    types = np.array(recorded["types"])
    count = {name: int((types == name).sum()) for name in TYPES}
    assert count == {"dense": 29, "diagonal": 6, "dense_vertical": 20, "vertical": 17}
    assert recorded["fits"] == {"dense": True, "diagonal": True, "dense_vertical": True, "vertical": False}
    near, _, special = recorded["masses"]["vertical"]
    assert round(near, 2) == 0.39 and round(special, 2) == 0.45
    assert round(recorded["masses"]["dense_vertical"][2], 2) == 0.53, "more than group 4"
    assert group_names(recorded["fits"])["vertical"] == "group 4"
    assert round(recorded["masses"]["diagonal"][0], 2) == 0.58
    table = distance.distances(np.array(recorded["centroids"]["vertical"]), np.array(recorded["even"]))
    assert TYPES[table.argmin()] == "dense_vertical"
    assert set(np.argwhere(types == "diagonal")[:, 0]) == {0, 1}, "layers 1 and 2"
    assert (types[0] == "dense").sum() == 9 and (types[-1] == "dense").all()
    assert not np.isin(types[[0, -1]], ["vertical", "dense_vertical"]).any()
    rule = np.array(recorded["rule"]["types"])
    assert (rule == "dense_vertical").sum() == 44 and (rule == "vertical").sum() == 1


def test_where_the_heads_of_earlier_chapters_are(recorded):
    names = {"1-3": "diagonal", "3-1": "vertical", "3-9": "vertical", "3-5": "dense_vertical"}
    for head, name in names.items():
        layer, number = (int(part) - 1 for part in head.split("-"))
        assert recorded["types"][layer][number] == name, head
    assert recorded["features"]["value"][2][4][17] > 0.5, "3-5 gives more than half to [CLS]"
    types = np.array(recorded["types"])
    assert [int((types == name).sum()) for name in ("vertical", "dense_vertical")] == [17, 20]
    assert recorded["fits"]["vertical"] is False, "group 4"


def test_only_cls_is_far_above_its_even_share(recorded):
    features, even = np.array(recorded["features"]["value"]), np.array(recorded["even"])
    for name in TYPES:
        middle = np.median(features[np.array(recorded["types"]) == name], axis=0)
        assert middle[17] > 10 * even[17] and (np.abs(middle - even)[18:] < 0.04).all(), name


def test_four_groups_are_a_little_clearer_than_in_one_cloud_on_every_scale(recorded):
    scales = recorded["scales"]
    assert list(scales) == list(distance.SCALES)
    assert [round(one["excess"]["4"]["value"], 2) for one in scales.values()] == [0.07, 0.07, 0.08]
    plain = scales["as they are"]
    for k in "23":
        assert plain["excess"][k]["low"] < 0 < plain["excess"][k]["high"], "not clearer than the cloud"
    for side in (plain["silhouette"], {k: one["value"] for k, one in plain["control"].items()}):
        assert max(side, key=side.get) == "3", "three look best, here and there"
    assert [one["groups"] for one in scales.values()] == [1, 3, 3]
    assert round(scales["standardised"]["four"], 2) == 0.49
    mixed = {name: (round(one["mixture"], 2), one["mixture_control"]["high"]) for name, one in scales.items()}
    assert [value for value, _ in mixed.values()] == [0.47, 0.61, 0.67]
    assert mixed["as they are"][1] == pytest.approx(0.475, abs=0.02), "at the edge"
    assert mixed["square roots"][0] > mixed["square roots"][1]


def test_two_numbers_are_nearly_all_that_k_means_sees(recorded):
    weights = dict(zip(recorded["feature_names"], recorded["variances"]["as they are"], strict=True))
    assert round(weights["window 1"] + weights["cls"], 2) == round(recorded["largest"]["value"], 2) == 0.87
    assert round(recorded["shuffled"]["largest"]["value"], 2) == 0.22
    roots = recorded["variances"]["square roots"]
    assert sum(sorted(roots)[-2:]) < 0.5 and np.allclose(recorded["variances"]["standardised"], 1 / 21, atol=1e-5)


def test_stability_does_not_tell_groups_from_none(recorded):
    for k in "2345":
        at = recorded["k"][k]
        assert at["inputs"]["low"] <= at["inputs_control"]["high"], k
    four = recorded["k"]["4"]
    assert [f"{100 * four[name]['value']:.0f}" for name in ("inputs", "inputs_control")] == ["96", "96"]
    assert round(four["heads"]["value"], 2) == 0.57 and four["heads"]["low"] < four["heads_control"]["high"]


def test_heads_invented_from_a_gaussian_would_be_impossible(recorded):
    heads = distance.points(np.array(recorded["features"]["value"]))
    rng = np.random.default_rng(0)
    crowds = [rng.multivariate_normal(heads.mean(0), np.cov(heads.T), size=72, method="eigh") for _ in range(50)]
    assert np.mean([(crowd < -1e-9).any(1).mean() for crowd in crowds]) == pytest.approx(0.5, abs=0.1), "about half"
    assert (distance.structureless(heads) >= 0).all()


def test_dense_is_what_heads_without_preferences_are(recorded):
    assert recorded["shuffled"]["rule"]["dense"] == 1 and max(recorded["shuffled"]["spread"]) < 0.005
    features = np.array(recorded["random"]["features"])
    assert (distance.by_rule(features, np.array(recorded["even"])) == "dense").all()


def test_groups_change_with_length_more_than_with_the_task(recorded):
    texts = recorded["texts"]
    assert texts["questions"]["changed"] < 0.08 and round(recorded["changed_in_half"], 3) == 0.009
    change = {name: [round(100 * t["change"][end]) for end in ("value", "low", "high")] for name, t in texts.items()}
    assert change["cut short"] == [46, 43, 47] and change["paraphrase"] == [49, 10, 49]
    assert change["questions"][0] == 7 and change["entailment"][0] == 49
    tuned = {task: round(100 * texts[f"tuned: {task}"]["changed"]) for task in ("qa", "paraphrase", "entailment")}
    assert tuned == {"qa": 33, "paraphrase": 31, "entailment": 35}
    held = [recorded["stability"][f"tuned: {task}"]["inputs"]["value"] for task in tuned]
    assert [round(100 * share) for share in held] == [100, 94, 95]
    for name in ("paraphrase", "entailment"):
        assert 0.45 < texts[name]["changed"] < 0.52
    short = np.array(texts["cut short"]["types"])
    assert (np.array(texts["paraphrase"]["types"]) != short).mean() < 0.1
    assert (np.array(texts["entailment"]["types"]) != short).mean() > 0.4
    assert (np.array(texts["entailment"]["types"]) == "diagonal").sum() == 25
    assert not any(texts[name]["fits"]["diagonal"] for name in ("cut short", "paraphrase", "entailment"))
    assert 54 <= texts["cut short"]["tokens"] / texts["cut short"]["inputs"] <= 56


def test_random_heads_have_nothing_to_group(recorded):
    assert max(recorded["random"]["spread"]) < 0.005 and min(recorded["spread"]) > 0.15
    control = recorded["stability"]["random"]
    assert control["silhouette"]["value"] < control["silhouette_control"]["high"]


@pytest.mark.parametrize("fits", [True, False])
def test_types_stand_in_an_order_of_depth_where_a_group_is_vertical(fits):
    types = [["dense", "dense_vertical"], ["dense", "dense"], ["vertical", "dense_vertical"]]
    values = {"types": types, "fits": dict.fromkeys(TYPES, fits), "feature_names": FEATURES, "inputs": 3}
    found = scoreboard.numbers_in(values, tables.tidy).get(("", "order_of_depth"))
    assert (found and (found.value, found.words)) == (
        (1, "dense 1.7, dense & vertical 2.0, vertical 3.0") if fits else None
    )


def test_the_papers_shares_leave_a_whole_number_of_diagonal_heads():
    shares = {r["type"]: r["share"] for r in results.paper("guan2020", "type_shares")["rows"]}
    whole = {name: round(384 * share / 100) for name, share in shares.items() if name != "diagonal"}
    assert all(round(100 * count / 384, 2) == shares[name] for name, count in whole.items())
    assert 384 - sum(whole.values()) == 102 and round(100 * 102 / 384, 2) == 26.56


def test_full_runs_on_wikitext():
    runs = results.runs("distance_features", profile="full")
    assert set(runs) >= {"minilm", "mpnet"}
    for model, run in runs.items():
        values = run["values"]
        assert run["provenance"]["corpus"]["name"] == "wikitext" and values["inputs"] == 1000
        assert set(values["texts"]) >= {"cut short", "questions", "paraphrase", "entailment"}
        assert np.allclose(np.array(values["features"]["value"]).sum(-1), 1, atol=2e-5)
        at = values["stability"]["plain text"]
        assert at["heads"]["low"] < at["heads_control"]["high"], "no more stable than heads without groups"
        for name, one in values["scales"].items():
            clear = one["excess"]["4"]["low"] > 0
            assert clear == (model != "mpnet" or name != "square roots"), (model, name)
    minilm = runs["minilm"]["values"]
    assert [round(100 * minilm["texts"][t]["changed"]) for t in ("cut short", "paraphrase", "entailment")] == [
        25,
        44,
        44,
    ]
    assert (
        minilm["stability"]["paraphrase"]["inputs"]["value"]
        < 0.6
        < 0.97
        < minilm["stability"]["plain text"]["inputs"]["value"]
    )
    assert minilm["fits"]["vertical"] is False and minilm["shares"]["diagonal"]["value"] < 0.11


def test_the_groups_of_mpnet():
    values = results.runs("distance_features", profile="full")["mpnet"]["values"]
    assert [name for name, fits in values["fits"].items() if fits] == ["dense_vertical"]
    assert max(values["shares"], key=lambda n: values["shares"][n]["value"]) == "vertical"
    assert round(values["masses"]["vertical"][2], 2) == 0.71
    cls, sep, _, period = values["centroids"]["vertical"][17:]
    assert period > sep > 3 * cls
    layers = set(np.argwhere(np.array(values["types"]) == "vertical")[:, 0].tolist())
    assert layers == set(range(5, 11)), "layers 6 to 11"
    at = values["stability"]["plain text"]
    assert round(at["heads"]["value"], 2) == 0.74 and round(at["heads_control"]["value"], 2) == 0.59
    changed = {name: values["texts"][name]["changed"] for name in values["texts"]}
    assert round(changed["cut short"], 2) == 0.30 and changed["cut short"] > max(
        changed["paraphrase"], changed["entailment"]
    )


def maps(layers=2, heads=3, length=4):
    weights = np.random.default_rng(0).random((layers, heads, length, length))
    return weights / weights.sum(-1, keepdims=True)

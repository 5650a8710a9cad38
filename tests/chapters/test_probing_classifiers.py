"""Chapter 06: probes of all heads together, against plain loops on random maps and random trees; its claims against recorded numbers."""

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from conftest import BOOK, FULL, MPNET, random_tree, recorded, unit_maps

from helpers import attention
from helpers.corpora.treebanks import Sentence
from helpers.heads import Head
from helpers.tokens import encode

SENTENCES = [random_tree(np.random.default_rng(n), n // 3) for n in range(24)]
HEADS = 6


def random_maps(sentence: Sentence, seed: int = 0) -> torch.Tensor:
    units = len(sentence.words) + 2
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(units, units, HEADS, generator=generator).softmax(1)


def drawn_anew(probe):
    torch.manual_seed(1)
    for parameter in probe.parameters():
        torch.nn.init.normal_(parameter)
    return probe


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_pairs_are_what_loops_compute(small_encoder, page, family):
    encoder = small_encoder(family)
    pairs = attention.measure(encoder, SENTENCES[:9], page.attention_vectors)
    for sentence, units in zip(SENTENCES, pairs, strict=False):
        batch, count = encode(encoder, [list(sentence.words)]), len(sentence.words)
        maps = attention.maps(encoder, batch)[:, 0].numpy()
        unit = [*batch.unit[0, :-1].tolist(), count + 1]
        words = unit_maps(maps, unit).reshape(-1, count + 2, count + 2).transpose(1, 2, 0)
        order = [0, count + 1, *range(1, count + 1)]
        np.testing.assert_allclose(units, words[order][:, order], atol=1e-3)
        [states] = page.states_of(encoder, [sentence])
        with torch.no_grad():
            layers = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states
        pieces = [[n for n, u in enumerate(batch.unit[0].tolist()) if u == word + 1] for word in range(count)]
        for state, layer in zip(states.float(), layers, strict=True):
            means = torch.stack([layer[0, of].mean(0) for of in pieces])
            torch.testing.assert_close(state, means, atol=2e-3, rtol=2e-3)


def test_a_score_is_a_sum_over_heads_and_both_directions(page):
    sentence, scale = SENTENCES[2], torch.linspace(0.5, 2, HEADS)
    maps, vectors = random_maps(sentence), torch.randn(len(sentence.words), 5)
    plain, adding = drawn_anew(page.Probe(scale)), drawn_anew(page.OnlyAdding(scale))
    worded = drawn_anew(page.WordProbe(scale, 5))
    scores, only, by_words = plain(maps), adding(maps), worded(maps, vectors)
    both = drawn_anew(page.BothProbe(scale, 5))
    torch.testing.assert_close(both(maps, vectors), both.attention(maps) + both.words(vectors))
    units = torch.cat([torch.zeros(2, 5), vectors])
    a, b, c, d = (units @ part for part in worded.by_word)  # of w, then of u; each [unit, head]

    def summed(w, u, word, candidate):
        return ((w * maps[candidate, word] + u * maps[word, candidate]) / scale).sum().item()

    for word in range(2, len(units)):
        for candidate in range(2, len(units)):
            at = word - 2, candidate - 1
            assert scores[at].item() == pytest.approx(summed(plain.w, plain.u, word, candidate), abs=1e-4)
            positive = adding.w.clamp(min=0), adding.u.clamp(min=0)
            assert only[at].item() == pytest.approx(summed(*positive, word, candidate), abs=1e-4)
            own = worded.w + a[candidate] + b[word], worded.u + c[word] + d[candidate]
            assert by_words[at].item() == pytest.approx(summed(*own, word, candidate), abs=1e-4)
        root = sum(plain.root[special] * summed(plain.w, plain.u, word, special) for special in (0, 1))
        assert scores[word - 2, 0].item() == pytest.approx(root.item(), abs=1e-4)
    assert torch.equal(page.mask_itself(scores, itself=True), scores)
    open_to = page.mask_itself(scores).isfinite()
    assert not open_to.diagonal(1).any() and open_to.sum() == scores.numel() - len(scores)


def test_the_probe_without_attention_reads_words_and_distance(page):
    probe, vectors = drawn_anew(page.DistanceProbe(5, hidden=4)), torch.randn(4, 5)
    scores = probe(vectors)
    for word in range(4):
        for candidate in range(4):
            k = candidate - word
            read = torch.tensor([max(k, 0) / 4, max(-k, 0) / 4, *(float(k == near) for near in range(-2, 3))])
            inside = probe.word(vectors[word]) + probe.candidate(vectors[candidate]) + probe.distance(read)
            assert scores[word, candidate + 1].item() == pytest.approx(probe.out(inside.tanh()).item(), abs=1e-5)


def test_training_finds_the_head_that_points_to_governors(page):
    examples = []
    for sentence in SENTENCES:
        maps = random_maps(sentence)
        for word, governor in enumerate(sentence.governors):
            maps[word + 2, governor + 2 if governor >= 0 else 0, 4] += 1
        examples.append((maps, torch.tensor(sentence.governors) + 1))
    scale = page.variation([maps for maps, _ in examples])
    others = [m[w, [o for o in range(2, len(m)) if o != w]] for m, _ in examples for w in range(2, len(m))]
    apart = torch.cat([weights - weights.mean(0) for weights in others])
    np.testing.assert_allclose(scale, apart.square().mean(0).sqrt(), rtol=1e-4)
    made = [page.fit(page.Probe(scale), examples, 30, seed) for seed in (0, 0, 1)]
    assert torch.equal(made[0].w, made[1].w) and not torch.equal(made[0].w, made[2].w)
    u, w = made[0].u.detach(), made[0].w.detach()
    assert int(u.argmax()) == 4 and u[4] > 2 * w.max()
    named = [page.mask_itself(made[0](maps)).argmax(1) for maps, _ in examples]
    hits = [page.right(n, g, s) for n, (_, g), s in zip(named, examples, SENTENCES, strict=True)]
    assert [len(h) for h in hits] == [sum(page.counted(s)) for s in SENTENCES] and np.concatenate(hits).mean() > 0.9


def test_heads_and_averages_are_those_of_loops(page):
    every = [random_maps(s, n) for n, s in enumerate(SENTENCES)]
    means = page.mean_by_distance(every)
    for maps, flat in zip(every, (page.by_distance(m, means) for m in every), strict=True):
        count, named, together = len(maps) - 2, page.heads_name(maps), page.added_up(maps)
        assert not flat[:2].any() and not flat[:, :2].any()
        for word in range(count):
            others = [w for w in range(count) if w != word] or [0]
            words = maps[2:, 2:]
            for head in range(HEADS):
                for way, weights in enumerate((words[word, others, head], words[others, word, head])):
                    assert named[way, head, word] == 1 + others[int(weights.argmax())]
            both = words[word, others].sum(-1) + words[others, word].sum(-1)
            assert together[word] == 1 + others[int(both.argmax())]
            for other in range(count):
                step = other - word
                same = [m[a, a + step] for m in every for a in range(2, len(m)) if 2 <= a + step < len(m)]
                assert torch.allclose(flat[word + 2, other + 2], torch.stack(same).mean(0), atol=1e-5)


def test_coins_go_by_the_word_form(page):
    habits = {}
    for s in SENTENCES:
        for w, (word, target) in enumerate(zip(s.words, page.control_answers(s.words, 0), strict=True)):
            fits = {name for name, c in (("self", w + 1), ("last", len(s.words))) if target == c}
            habits[word] = habits.get(word, {"self", "last"}) & fits
    assert all(habits.values()) and {frozenset({"self"}), frozenset({"last"})} <= {*map(frozenset, habits.values())}


@pytest.mark.parametrize("equally_far", [False, True])
def test_pairs_are_balanced_and_read_as_loops_do(page, equally_far):
    rng = np.random.default_rng(0)
    chosen = [page.arc_pairs(s, rng, equally_far) for s in SENTENCES]
    maps = [random_maps(s, n) for n, s in enumerate(SENTENCES)]
    vectors = [torch.randn(len(s.words), 5) for s in SENTENCES]
    asked = 0
    for pairs, s, weights, words in zip(chosen, SENTENCES, maps, vectors, strict=True):
        apart = [sorted(b - a for a, b, arc in pairs if arc == kind) for kind in (0, 1)]
        assert apart[0] == apart[1] or (not equally_far and len(apart[0]) == len(apart[1]))
        features = page.read_pairs(pairs, weights, words) if pairs else {}
        for at, (a, b, arc) in enumerate(pairs):
            assert a < b and (s.governors[a] == b or s.governors[b] == a) == arc
            assert page.counted(s)[[a, b]].all()
            read = {name: of[at] for name, of in features.items()}
            np.testing.assert_allclose(read["attention"], torch.cat([weights[a + 2, b + 2], weights[b + 2, a + 2]]))
            np.testing.assert_allclose(read["words"], torch.cat([words[a], words[b]]))
            assert read["distance"].argmax() == b - a + 10
            asked += 1
    assert asked > 20


def path(governors, word: int) -> set:
    """The arcs from a word up to the root."""
    return {word} | path(governors, governors[word]) if governors[word] >= 0 else set()


def test_a_structural_probe_with_the_right_distances_finds_all_arcs(page):
    distances = []
    for s in SENTENCES:
        paths = [path(s.governors, word) for word in range(len(s.words))]
        distances.append(torch.tensor([[len(route ^ other) for other in paths] for route in paths]).float())
        assert torch.equal(page.tree_distances(s.governors), distances[-1])
    answers = iter(distances)
    score = page.arc_shares(lambda _: next(answers)[None], distances, [s.governors for s in SENTENCES], SENTENCES)
    assert score.value.tolist() == [1]
    spread = 1 + torch.rand(2, 1, 5)
    probe, points = page.TreeProbe(spread, rank=3), torch.randn(2, 4, 5)
    probe.map.data.normal_()
    layers = (points / spread @ probe.map).detach()
    expected = np.array([[[((a - b) ** 2).sum() for b in mapped] for a in mapped] for mapped in layers])
    np.testing.assert_allclose(probe(points).detach(), expected, rtol=1e-4, atol=1e-6)
    apart = abs(expected - distances[0][:4, :4].numpy()).mean((1, 2)).sum()
    assert page.tree_error(torch.tensor(expected), distances[0][:4, :4]).item() == pytest.approx(apart, rel=1e-5)
    arcs, hits = 0, 0
    for s in SENTENCES:
        words = np.flatnonzero(page.counted(s)).tolist()
        joined = {(a, b) for a, b in combinations(words, 2) if s.governors[a] == b or s.governors[b] == a}
        arcs, hits = arcs + len(joined), hits + len(joined & {*pairwise(words)})
    assert page.neighbours_joined(SENTENCES).value == pytest.approx(hits / arcs)


def both_ways(run, quantity):
    array = recorded("probing_classifiers", run).array
    return np.stack([array(f"{quantity}_{way}_governor") for way in ("to", "from")])


@pytest.mark.parametrize("run", [BOOK, FULL, MPNET])
def test_the_lowest_weights_belong_to_heads_that_are_right_less_often_than_chance(run):
    weights, alone = both_ways(run, "probe_weight"), both_ways(run, "alone")
    lowest = np.argsort(weights, axis=None)[:3]
    assert (weights.flat[lowest] < 0).all()
    assert (alone.flat[lowest] < recorded("probing_classifiers", run).number("chance", of="train").value).all()
    if run != MPNET:
        ways = (0, Head(4, 12)), (1, Head(5, 3)), (1, Head(4, 7))
        assert {*lowest} == {np.ravel_multi_index((way, *head), weights.shape) for way, head in ways}


def test_the_weights_furthest_from_zero_are_negative():
    weights, alone = both_ways(BOOK, "probe_weight"), both_ways(BOOK, "alone")
    largest = np.argsort(-np.abs(weights), axis=None)
    assert (weights.flat[largest[:4]] < 0).all() and largest[6] == alone.argmax()

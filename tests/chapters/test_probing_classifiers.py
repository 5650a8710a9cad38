"""Chapter 06: probes of all heads together, against plain loops on random maps and random trees."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import corpora
from helpers.chapters import probing_classifiers
from helpers.chapters.probing_classifiers import (
    AttentionProbe,
    DistanceProbe,
    Outcome,
    Pairs,
    Refits,
    StructuralProbe,
    figures,
    findings,
)
from helpers.corpora.readers import Vectors
from helpers.corpora.treebanks import Document, Sentence
from helpers.engine import attention, controls
from helpers.engine.estimates import Estimate, ratio
from helpers.engine.tokens import encode, to_words
from helpers.figures.look import COLOURS
from helpers.record import results

RELATIONS = ("nsubj", "obj", "det", "case", "obl", "punct")
WORDS = ("the", "unbelievable", "cat", "sat", "on", "its", "mat", "photosynthesis", "'s", ",")
GLOVE = Vectors(
    {w: n for n, w in enumerate(WORDS[:8])}, np.random.default_rng(9).normal(size=(8, 5)).astype(np.float32)
)


def random_tree(rng: np.random.Generator, count: int) -> list[int]:
    order, governors = rng.permutation(count), [-1] * count
    for place, word in enumerate(order[1:], 1):
        governors[word] = int(order[rng.integers(0, place)])
    return governors


def random_sentence(rng: np.random.Generator, number: int, most: int = 8) -> Sentence:
    count = int(rng.integers(1, most + 1))
    governors = random_tree(rng, count)
    words = tuple(str(w) for w in rng.choice(WORDS, count))
    relations = tuple("root" if g < 0 else str(rng.choice(RELATIONS)) for g in governors)
    upos = tuple("PUNCT" if w == "," else "NOUN" for w in words)
    return Sentence(f"s{number}", words, upos=upos, governors=tuple(governors), relations=relations)


SENTENCES = [random_sentence(np.random.default_rng(n), n) for n in range(24)]


@pytest.fixture(scope="module")
def part(small_encoder):
    return probing_classifiers.read(small_encoder("bert"), SENTENCES, GLOVE, states=True, pairs=200)


def random_probe(heads: int, dimensions: int) -> AttentionProbe:
    probe = AttentionProbe(np.linspace(0.5, 2, heads), dimensions)
    torch.manual_seed(1)
    for parameter in probe.parameters():
        torch.nn.init.normal_(parameter)
    return probe


def blocks_with_rows(part):
    return ((block, row, int(number)) for block in part.blocks for row, number in enumerate(block.numbers))


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "modernbert"])
def test_what_is_kept_is_what_loops_compute(small_encoder, family):
    encoder = small_encoder(family)
    found = probing_classifiers.read(encoder, SENTENCES[:9], GLOVE, states=True, pairs=150)
    assert len(found.blocks) > 1 and found.shape == (encoder.layers, encoder.heads)
    for block, row, number in blocks_with_rows(found):
        sentence = found.sentences[number]
        batch = encode(encoder, [list(sentence.words)])
        unit, count = batch.unit[0].tolist(), len(sentence.words)
        tokens = attention.maps(encoder, batch)[:, 0].flatten(0, 1).numpy()
        words = np.zeros((len(tokens), count + 2, count + 2))
        for i, a in enumerate(unit):
            for j, b in enumerate(unit):
                words[:, a, b] += tokens[:, i, j] / unit.count(a)
        order = [0, count + 1, *range(1, count + 1)]
        kept = block.maps[row, : count + 2, : count + 2].float().numpy()
        assert np.allclose(kept, words[:, order][:, :, order].transpose(1, 2, 0), atol=1e-3)
        assert not block.maps[row, count + 2 :].any() and not block.maps[row, :, count + 2 :].any()
        with torch.inference_mode():
            hidden = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states
        for layer, states in enumerate(hidden):
            mean = [states[0, [i for i, u in enumerate(unit) if u == 1 + w]].mean(0) for w in range(count)]
            assert torch.allclose(block.states[layer, row, :count].float(), torch.stack(mean), atol=5e-3, rtol=2e-3)
        assert block.present[row].tolist() == [w < count for w in range(block.present.shape[1])]
        for w, word in enumerate(sentence.words):
            wanted = GLOVE.matrix[GLOVE.index[word]] if word in GLOVE.index else np.zeros(5)
            assert np.array_equal(block.vectors[row, 2 + w].numpy(), wanted)
            assert block.scored[row, w] == (sentence.relations[w] != "punct" and word != ",")
        assert not block.vectors[row, :2].any()


def test_blocks_do_not_matter(small_encoder, part):
    whole = probing_classifiers.read(small_encoder("bert"), SENTENCES, GLOVE, pairs=100_000)
    assert len(whole.blocks) == 1 < len(part.blocks)
    for probe in (random_probe(12, 5), random_probe(12, 0), DistanceProbe(5)):
        assert np.array_equal(probing_classifiers.parse(probe, part), probing_classifiers.parse(probe, whole))
    assert np.allclose(probing_classifiers.spread(part), probing_classifiers.spread(whole))
    assert np.array_equal(probing_classifiers.single_heads(part), probing_classifiers.single_heads(whole))


def test_words_come_in_the_order_of_the_sentences(part):
    governors = [g + 1 for s in SENTENCES for g in s.governors]
    assert part.targets["governor"].tolist() == governors
    assert part.relation.tolist() == [r for s in SENTENCES for r in s.relations]
    assert part.sentence.tolist() == [n for n, s in enumerate(SENTENCES) for _ in s.words]
    few = part.first(7).without_states()
    assert few.targets["governor"].tolist() == governors[: few.starts[-1]] and len(few.sentences) == 7
    assert all(b.states is None for b in few.blocks)
    probe = random_probe(12, 5)
    assert np.array_equal(
        probing_classifiers.parse(probe, few), probing_classifiers.parse(probe, part)[: few.starts[-1]]
    )


def test_sentences_drawn_anew_are_those_of_a_bootstrap(part):
    drawn = part.redrawn(3)
    counts = np.random.default_rng(3).poisson(1.0, len(SENTENCES))
    numbers = Counter(int(n) for block in drawn.blocks for n in block.numbers)
    assert [numbers[n] for n in range(len(SENTENCES))] == counts.tolist()
    kept = {n: (block, row) for block, row, n in blocks_with_rows(part)}
    for block, row, number in blocks_with_rows(drawn):
        same, at = kept[number]
        assert torch.equal(block.maps[row], same.maps[at]) and torch.equal(block.present[row], same.present[at])
        assert all(torch.equal(block.targets[t][row], same.targets[t][at]) for t in block.targets)
        assert torch.equal(block.states[:, row], same.states[:, at])


def test_shuffled_maps_are_those_of_the_control(small_encoder):
    encoder = small_encoder("bert")
    found = probing_classifiers.read(encoder, SENTENCES[:5], GLOVE, shuffled=True, pairs=1)
    for block, row, number in blocks_with_rows(found):
        words, count = list(SENTENCES[number].words), len(SENTENCES[number].words)
        batch = encode(encoder, [words])
        deal, tokens = controls.shuffling(batch), attention.maps(encoder, batch)
        maps = torch.cat([to_words(deal(layer, one), batch)[0] for layer, one in enumerate(tokens)])
        order = [0, count + 1, *range(1, count + 1)]
        wanted = maps[:, order][:, :, order].permute(1, 2, 0)
        assert torch.allclose(block.maps[row].float(), wanted, atol=1e-3)
        assert torch.allclose(block.maps[row].float().sum(1), torch.ones(count + 2, maps.shape[0]), atol=5e-3)


def test_sentences_are_chosen_at_random_with_trees_and_if_they_fit(small_encoder):
    encoder = small_encoder("bert")
    long = Sentence(
        "l", ("word",) * 80, upos=("NOUN",) * 80, governors=(-1, *range(79)), relations=("root", *["obj"] * 79)
    )
    flat = Sentence("f", ("no", "tree"))
    documents = [Document("d", (long, flat, *SENTENCES))]
    chosen = probing_classifiers.choose(encoder, documents, 5)
    assert len(chosen) == 5 and chosen == probing_classifiers.choose(encoder, documents, 9)[:5]
    assert chosen != probing_classifiers.choose(encoder, documents, 5, seed=1)
    every = probing_classifiers.choose(encoder, documents)
    assert sorted(s.id for s in every) == sorted(s.id for s in SENTENCES)
    with pytest.raises(ValueError, match="No sentence"):
        probing_classifiers.choose(encoder, [Document("d", (long, flat))])


# ------------------------------------------------------------------ tasks


def test_targets(part):
    sentence = Sentence(
        "s",
        ("The", "cat", "ran", "."),
        upos=("DET", "NOUN", "VERB", "PUNCT"),
        governors=(1, 2, -1, 2),
        relations=("det", "nsubj", "root", "punct"),
    )
    assert probing_classifiers.target(sentence, "governor") == [2, 3, 0, 3]
    assert probing_classifiers.target(sentence, "next word") == [2, 3, 4, 0]
    behaviours = {}
    for number in range(3):
        for s in SENTENCES:
            for w, (word, t) in enumerate(
                zip(s.words, probing_classifiers.target(s, "control", number), strict=True)
            ):
                fits = {name for name, c in (("self", w + 1), ("first", 1), ("last", len(s.words))) if t == c}
                behaviours[number, word] = behaviours.get((number, word), {"self", "first", "last"}) & fits
    assert all(behaviours.values()), "one behaviour for each kind of word"
    assert len({frozenset(b) for b in behaviours.values()}) >= 3, "and not the same for all"
    with pytest.raises(ValueError, match="Unknown task 'parent'; there are governor, control, next word"):
        probing_classifiers.target(sentence, "parent")


@given(st.integers(0, 10_000), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_tree_distances_are_lengths_of_paths(seed, count):
    governors = random_tree(np.random.default_rng(seed), count)
    steps = np.full((count, count), np.inf)
    np.fill_diagonal(steps, 0)
    for w, g in enumerate(governors):
        if g >= 0:
            steps[w, g] = steps[g, w] = 1
    for k in range(count):  # Floyd and Warshall
        steps = np.minimum(steps, steps[:, [k]] + steps[[k]])
    assert np.array_equal(probing_classifiers.tree_distances(governors), steps)


def test_control_trees_are_trees_without_syntax():
    hangs = {}
    for sentence in SENTENCES:
        tree = probing_classifiers.control_tree(sentence)
        scored = [w for w, keep in enumerate(probing_classifiers.scored_words(sentence)) if keep]
        assert tree.count(-1) == 1 and np.isfinite(probing_classifiers.tree_distances(tree)).all()
        if len(scored) > 1:
            assert tree[scored[-1]] == scored[0] and tree[scored[0]] == -1
            for w in set(scored[1:-1]):
                hangs.setdefault(sentence.words[w], set()).add("first" if tree[w] == scored[0] else "last")
    assert all(len(h) == 1 for h in hangs.values()) and len({next(iter(h)) for h in hangs.values()}) == 2


# ------------------------------------------------------------------ parsers


@pytest.mark.parametrize("dimensions", [0, 5])
def test_attention_probes_follow_the_formula(part, dimensions):
    probe = random_probe(12, dimensions)
    bias = (probe.bias / probe.scale[:, None]).detach().double().numpy()
    if dimensions:
        attending, attended = (
            p.detach().double().numpy().reshape(5, 12, 2) / probe.scale.numpy()[:, None]
            for p in (probe.attending, probe.attended)
        )
    for block, row, number in list(blocks_with_rows(part))[:8]:
        count = len(part.sentences[number].words)
        maps, v = block.maps[row].double().numpy(), block.vectors[row].double().numpy()

        def score(i, j, maps=maps, v=v):
            """Unit i as governor of unit j."""
            w, u = bias[:, 0].copy(), bias[:, 1].copy()
            if dimensions:
                w += v[i] @ attending[..., 0] + v[j] @ attended[..., 0]
                u += v[j] @ attending[..., 1] + v[i] @ attended[..., 1]
            return sum(w[k] * maps[i, j, k] + u[k] * maps[j, i, k] for k in range(12))

        found = probe(block)[row].detach().numpy()
        root = probe.root.detach().numpy()
        for j in range(count):
            wanted = [root[0] * score(0, j + 2) + root[1] * score(1, j + 2)]
            wanted += [score(i + 2, j + 2) for i in range(count)]
            assert np.allclose(found[j, : count + 1], wanted, atol=1e-4)
        p = probing_classifiers.probabilities(probe, part, number)
        assert p.shape == (count, count + 1) and np.allclose(p.sum(-1), 1)
    with pytest.raises(ValueError, match="no sentence 99; the part has 24"):
        probing_classifiers.probabilities(probe, part, 99)


def test_weights_of_two_words():
    probe = random_probe(12, 5)
    v, x = np.random.default_rng(0).normal(size=(2, 5))
    attending, attended = (p.detach().double().numpy().reshape(5, 12, 2) for p in (probe.attending, probe.attended))
    found = probe.weights(v, x)
    for k in range(12):
        w = probe.bias[k, 0].item() + v @ attending[:, k, 0] + x @ attended[:, k, 0]
        u = probe.bias[k, 1].item() + x @ attending[:, k, 1] + v @ attended[:, k, 1]
        assert found[:, k] == pytest.approx([w, u])
    assert np.allclose(probe.weights(), probe.bias.detach().numpy().T)


def test_distance_probe_follows_its_formula(part):
    probe = DistanceProbe(5, hidden=4, seed=3)
    p = {name: value.detach().double().numpy() for name, value in probe.named_parameters()}
    for block, row, number in list(blocks_with_rows(part))[:8]:
        count, v = len(part.sentences[number].words), block.vectors[row, 2:].double().numpy()
        found = probe(block)[row].detach().numpy()
        for j in range(count):
            scores = [np.tanh(v[j] @ p["dependent"] + p["root"]) @ p["out"]]
            for i in range(count):
                features = np.zeros(7)
                features[0], features[1] = max(i - j, 0) / count, max(j - i, 0) / count
                if abs(i - j) <= 2:
                    features[4 + i - j] = 1
                inside = v[j] @ p["dependent"] + v[i] @ p["candidate"] + features @ p["distance"]
                scores.append(np.tanh(inside) @ p["out"])
            assert np.allclose(found[j, : count + 1], np.ravel(scores), atol=1e-4)


def test_spread_is_the_deviation_from_the_mean_of_a_row(part):
    squares = []
    for block, row, number in blocks_with_rows(part):
        size = 2 + len(part.sentences[number].words)
        maps = block.maps[row, :size, :size].double().numpy()
        squares += [(maps[i, j] - maps[i].mean(0)) ** 2 for i in range(size) for j in range(size)]
    assert np.allclose(probing_classifiers.spread(part), np.sqrt(np.mean(squares, 0)), rtol=1e-3)


def test_answers_are_what_loops_count(part):
    pointed = np.random.default_rng(0).integers(0, 5, part.starts[-1])
    for relation in (None, "det"):
        wanted, place = np.zeros((len(SENTENCES), 2)), 0
        for n, s in enumerate(SENTENCES):
            for g, r, u in zip(s.governors, s.relations, s.upos, strict=True):
                if r != "punct" and u != "PUNCT" and relation in (None, r):
                    wanted[n] += (pointed[place] == g + 1, 1)
                place += 1
        assert np.array_equal(probing_classifiers.answers(pointed, part, relation=relation), wanted)
    right = probing_classifiers.answers(part.targets["control"], part, "control")
    assert np.array_equal(right[:, 0], right[:, 1])


def test_right_branching_points_to_the_next_word(part):
    next_word = part.targets["next word"]
    found = probing_classifiers.right_branching(part)
    inside = next_word != 0
    assert np.array_equal(found[inside], next_word[inside])
    last = found[~inside]
    assert (last > [len(s.words) for s in SENTENCES]).all(), "no such candidate"


def test_single_heads_are_what_loops_find(part):
    found = probing_classifiers.single_heads(part)
    for block, row, number in list(blocks_with_rows(part))[:8]:
        count, start = len(part.sentences[number].words), part.starts[number]
        maps = block.maps[row].float().numpy()[2:, 2:]
        for head, word in np.ndindex(12, count):
            others = [o for o in range(count) if o != word]
            for direction in range(2 * bool(others)):
                weight = [maps[(word, o) if direction == 0 else (o, word)][head] for o in others]
                got = found[direction, head, start + word] - 1
                assert weight[others.index(got)] == max(weight)
    accuracy = probing_classifiers.head_accuracy(found, part)
    right, asked = probing_classifiers.answers(found[1, 7], part).sum(0)
    assert accuracy.shape == (2, 12) and accuracy[1, 7] == pytest.approx(right / asked)


def planted(part, head: int = 3, noise: float = 0.2):
    """The part with random maps in which one head points from dependents to governors, and at [CLS] from the root."""
    rng = np.random.default_rng(0)
    for block in part.blocks:
        maps = torch.from_numpy(noise * rng.random(block.maps.shape)).half()
        for row, target in enumerate(block.targets["governor"].tolist()):
            for word, candidate in enumerate(target):
                if candidate >= 0:
                    maps[row, word + 2, candidate + 1 if candidate else 0, head] = 1
        block.maps.copy_(maps)
    return part


def test_a_planted_head_is_found(small_encoder):
    part = planted(probing_classifiers.read(small_encoder("bert"), SENTENCES, GLOVE, pairs=200))
    for dimensions in (0, 5):
        make = lambda _, d=dimensions: AttentionProbe(probing_classifiers.spread(part), d)  # noqa: E731
        found = probing_classifiers.parser_outcome(make, (part, part, part), epochs=12, rate=0.1)
        assert found.score.value > 0.95 and found.control.value < 0.9
        assert found.selectivity.value == pytest.approx(found.score.value - found.control.value)
    weights = AttentionProbe.weights(
        probing_classifiers.train_parser(AttentionProbe(probing_classifiers.spread(part)), part, part, epochs=12)
    )
    assert weights[1].argmax() == 3, "u: the dependent attends"
    again = probing_classifiers.train_parser(AttentionProbe(probing_classifiers.spread(part)), part, part, epochs=12)
    assert np.array_equal(again.weights(), weights), "same seed, same weights"


def test_training_keeps_the_best_pass_and_cuts_the_step(part):
    scores = iter([0.5, 0.4, 0.6, 0.6, 0.1, 0.2, 0.9])
    seen = []

    def score(probe):
        seen.append(probe.bias.detach().clone())
        return next(scores)

    probe = probing_classifiers.train(AttentionProbe(np.ones(12)), part, score, epochs=30, cuts=4)
    assert len(seen) == 6, "the fourth pass without a gain ends it"
    assert torch.equal(probe.bias, seen[2])


def test_training_restores_the_number_of_threads(part):
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        probing_classifiers.train(AttentionProbe(np.ones(12)), part, lambda _: 1 / 0)
    assert torch.get_num_threads() == before


# ------------------------------------------------------------------ structural probe


def test_structural_probe_and_its_loss(part):
    probe = StructuralProbe(2, np.linspace(0.5, 2, 32), rank=6)
    b = probe.map.detach().double().numpy()
    for block in part.blocks[:2]:
        total, found = 0.0, probe(block).detach().numpy()
        for row, number in enumerate(block.numbers):
            sentence = part.sentences[number]
            states = block.states[2, row].double().numpy() / np.linspace(0.5, 2, 32)
            true, gaps = probing_classifiers.tree_distances(sentence.governors), []
            for i, j in np.ndindex(len(sentence.words), len(sentence.words)):
                distance = np.sum(((states[i] - states[j]) @ b) ** 2)
                assert found[row, i, j] == pytest.approx(distance, abs=1e-3)
                gaps.append(abs(true[i, j] - distance))
            total += np.mean(gaps)
        assert probing_classifiers.structural_loss(probe, block, "governor").item() == pytest.approx(total, rel=1e-3)
    words = np.concatenate([b.states[1][b.present].double().numpy() for b in part.blocks])
    assert np.allclose(probing_classifiers.state_scale(part, 1), words.std(0, ddof=1), rtol=1e-3)
    with pytest.raises(ValueError, match="without hidden states"):
        probe(part.without_states().blocks[0])
    with pytest.raises(ValueError, match="without hidden states"):
        probing_classifiers.layer_scores((part.without_states(),) * 3)


def test_edges_found_by_kruskal():
    rng = np.random.default_rng(0)
    for _ in range(30):
        count = int(rng.integers(2, 9))
        true = probing_classifiers.tree_distances(random_tree(rng, count))
        assert probing_classifiers.edges_found(true, true == 1) == (count - 1, count - 1)
        distances = rng.random((count, count))
        distances += distances.T
        group, kept = list(range(count)), set()
        for i, j in sorted(combinations(range(count), 2), key=lambda pair: distances[pair]):
            if group[i] != group[j]:
                kept.add((i, j))
                group = [group[i] if g == group[j] else g for g in group]
        hits = sum(true[pair] == 1 for pair in kept)
        assert probing_classifiers.edges_found(distances, true == 1) == (hits, count - 1)
    assert probing_classifiers.edges_found(np.zeros((1, 1)), np.zeros((1, 1), bool)) == (0, 0)


def test_a_structural_probe_finds_a_tree_that_is_there(part):
    """Hidden states made so that the tree's distances are squared distances, hidden by a random rotation."""
    rng = np.random.default_rng(0)
    for block in part.blocks:
        for row, number in enumerate(block.numbers):
            tree = part.sentences[number].governors
            above = (probing_classifiers.tree_distances(tree) < 0).astype(float)
            for w in range(len(tree)):
                place = w
                while place >= 0:
                    above[w, place] = 1
                    place = tree[place]
            block.states[3, row] = 0
            block.states[3, row, : len(tree), : len(tree)] = torch.from_numpy(above)
    rotation = torch.from_numpy(np.linalg.qr(rng.normal(size=(32, 32)))[0]).float()
    for block in part.blocks:
        block.states[3] = (block.states[3].float() @ rotation).half()
    found = probing_classifiers.structural_outcome((part, part, part), 3, rank=32, epochs=60, rate=0.02)
    assert found.score.value > 0.9 > found.control.value + 0.2
    scores = probing_classifiers.layer_scores((part, part, part), epochs=4, rate=0.02)
    assert scores.value.shape == (4,) and scores.value.argmax() == 3


def test_joining_neighbours_is_a_chain_through_the_words_that_count(part):
    found = probing_classifiers.neighbours(part)
    for sentence, (hits, edges) in zip(part.sentences, found, strict=True):
        words = [w for w, keep in enumerate(probing_classifiers.scored_words(sentence)) if keep]
        tree = [{w, sentence.governors[w]} for w in words if sentence.governors[w] in words]
        assert edges == len(tree) and hits == sum({a, b} in tree for a, b in pairwise(words))
    for block in part.blocks:  # the chain as a spanning tree
        for row, number in enumerate(block.numbers):
            words = np.flatnonzero(block.scored[row].numpy())
            chain = np.abs(np.subtract.outer(np.arange(len(words)), np.arange(len(words)))).astype(float)
            true = block.distances["governor"][row].numpy()[np.ix_(words, words)] == 1
            assert probing_classifiers.edges_found(chain, true) == tuple(found[number])
    score = probing_classifiers.neighbours_outcome(part).score
    assert score.value == pytest.approx(found[:, 0].sum() / found[:, 1].sum())


# ------------------------------------------------------------------ training again


def test_refits_differ_by_seed_and_a_penalty_shrinks_weights(part):
    scale, parts = np.ones(12), (part, part, part)
    make = lambda _: AttentionProbe(scale)  # noqa: E731
    plain = probing_classifiers.refits(make, parts, range(2), redrawn=False, epochs=4)
    drawn = probing_classifiers.refits(make, parts, range(2), redrawn=True, epochs=4)
    assert plain.weights.shape == drawn.weights.shape == (2, 2, 12) and plain.scores.value.shape == (2,)
    alone = probing_classifiers.parser_outcome(make, parts, control=False, epochs=4, seed=1)
    assert plain.scores.value[1] == pytest.approx(float(alone.score.value))
    assert np.array_equal(plain.weights[1], alone.probe.weights()) and not np.array_equal(*drawn.weights)
    whole = probing_classifiers.parser_outcome(make, parts, fits=2, epochs=4)
    assert whole.score.value == pytest.approx(plain.scores.value.mean()) and len(whole.fits.probes) == 2
    assert np.array_equal(whole.probe.weights(), plain.weights[0]) and whole.control.value < 1, (
        "the first fit's probe"
    )
    assert np.allclose(whole.score.replicates, plain.scores.replicates.mean(1)), "paired over sentences"
    block, probe = part.blocks[0], random_probe(12, 0)
    extra = probing_classifiers.penalised(probe, block, "governor") - probing_classifiers.parser_loss(
        probe, block, "governor"
    )
    words = sum(len(SENTENCES[n].words) for n in block.numbers)
    assert float(extra.detach()) == pytest.approx(0.01 * words * float((probe.bias.detach() ** 2).sum()), rel=1e-3)


def test_outcomes_are_recorded_with_their_paired_differences():
    rng = np.random.default_rng(0)
    names = ("attention", "next", "attention, @random", "attention, @shuffled")
    scores = {n: ratio(np.stack([rng.integers(0, 5, 40), np.full(40, 5)], 1).astype(float)) for n in names}
    outcomes = {n: Outcome(one, scores["next"] if n == "attention" else None) for n, one in scores.items()}
    found = probing_classifiers.as_dict(outcomes)
    assert set(found["attention"]["over"]) == {"next"} and set(found["next"]["over"]) == {"attention"}
    assert set(found["attention, @random"]["over"]) == {"next"}, "its own attention is no rival"
    wanted = scores["attention, @random"] - scores["next"]
    made = found["attention, @random"]["over"]["next"]
    assert (made.value, made.low, made.high) == (wanted.value, wanted.low, wanted.high)
    assert set(found["attention"]) == {"score", "over", "control", "selectivity"} and "control" not in found["next"]
    several = Refits(Estimate(np.array([0.5, 0.7]), *np.zeros((2, 2)), np.zeros((3, 2))), (random_probe(2, 0),) * 2)
    found = probing_classifiers.as_dict({"attention": Outcome(several.score, fits=several)})["attention"]
    assert found["score"].value == pytest.approx(0.6) and found["fits"].tolist() == [0.5, 0.7]


# ------------------------------------------------------------------ pairs


@pytest.mark.parametrize("equally_far", [False, True])
def test_pairs_are_balanced(part, equally_far):
    found = probing_classifiers.edge_pairs(part, equally_far=equally_far)
    assert found.label.mean() == 0.5 and len(found.label) == len(found.kinds) == len(found.attention)
    assert (found.distance > 0).all()
    if equally_far:
        for n in range(len(SENTENCES)):
            here = found.sentence == n
            apart = [sorted(found.distance[here & (found.label == label)]) for label in (0, 1)]
            assert apart[0] == apart[1]
    for n in range(0, len(found.label)):
        sentence = SENTENCES[found.sentence[n]]
        places = [(a, a + found.distance[n]) for a in range(len(sentence.words) - found.distance[n])]
        places = [p for p in places if (sentence.words[p[0]], sentence.words[p[1]]) == found.kinds[n]]
        edges = [sentence.governors[a] == b or sentence.governors[b] == a for a, b in places]
        assert found.label[n] in edges
    limited = probing_classifiers.edge_pairs(part, limit=4)
    assert 8 <= len(limited.label) < len(found.label)
    again = probing_classifiers.edge_pairs(part, equally_far=equally_far)
    assert np.array_equal(again.attention, found.attention), "same seed, same pairs"


def test_few_words_of_each_relation_are_better_than_none(part):
    every, few = (probing_classifiers.relation_pairs(part, fewest=n) for n in (1, 10_000))
    assert len(every.label) and (few.label == every.label).all()
    counts = Counter(part.relation[part.scored].tolist())
    assert probing_classifiers.usual(part, "det") == "det" and "dt" not in counts
    assert counts[probing_classifiers.usual(part, "dt")] == max(counts.values())


def test_relation_pairs_hold_the_attention_of_both_directions(part):
    found = probing_classifiers.relation_pairs(part, fewest=1)
    wanted = [
        (n, w, g, s.relations[w])
        for n, s in enumerate(SENTENCES)
        for w, g in enumerate(s.governors)
        if g >= 0 and probing_classifiers.scored_words(s)[w]
    ]
    assert [(n, d, r) for n, d, r in zip(found.sentence, found.distance, found.label, strict=True)] == [
        (n, g - w, r) for n, w, g, r in wanted
    ]
    rows = {number: block.maps[row] for block, row, number in blocks_with_rows(part)}
    words = [np.concatenate([GLOVE([SENTENCES[n].words[at]])[0] for at in (w, g)]) for n, w, g, _ in wanted]
    assert np.allclose(found.words, words)
    for pair, (n, w, g, _) in enumerate(wanted):
        both = torch.cat([rows[n][w + 2, g + 2], rows[n][g + 2, w + 2]]).float().numpy()
        assert np.array_equal(found.attention[pair], both)
    only = probing_classifiers.relation_pairs(part, relations=["det"], limit=3)
    assert only.label.tolist() == ["det"] * 3
    common = probing_classifiers.relation_pairs(part, fewest=15)
    assert all((found.label == r).sum() >= 15 for r in set(common.label))


def synthetic(seed: int, count: int = 400) -> Pairs:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, count)
    weights = rng.normal(size=(count, 6)).astype(np.float32)
    weights[:, 2] += 3 * label
    kinds = tuple((f"w{a}", f"w{b}") for a, b in rng.integers(0, 300, (count, 2)))
    words = rng.normal(size=(count, 4)).astype(np.float32)
    words[:, 0] = (
        np.where(label, 1, -1) * words[:, 2] + 0.3 * words[:, 0]
    )  # no sum over the two words tells the label
    return Pairs(weights, 1 + label + rng.integers(0, 2, count), words, label, np.arange(count) // 5, kinds)


def test_classifiers_learn_what_is_there_and_nothing_else():
    train, test = synthetic(0), synthetic(1)
    found = probing_classifiers.pair_outcome(train, test, control=True)
    assert probing_classifiers.pair_outcome(train, test).control is None
    assert found.score.value > 0.85 and 0.4 < found.control.value < 0.6
    assert found.score.low < found.score.value < found.score.high
    assert 0.65 < probing_classifiers.classify(train, test, of="distance").mean() < 0.85
    train, test = synthetic(0, 3000), synthetic(1, 3000)
    shares = {of: probing_classifiers.classify(train, test, of=of).mean() for of in probing_classifiers.READERS}
    assert shares["words"] > 0.75, "what the two words say together"
    assert shares["words and distance"] > max(shares["words"], shares["distance"])
    assert shares["attention, words and distance"] > max(shares["attention"], shares["words and distance"])
    with pytest.raises(ValueError, match="say one of 'attention', 'distance'"):
        probing_classifiers.classify(train, test, of="letters")


def test_control_labels_go_by_the_two_words():
    pairs = synthetic(2, 2000)
    labels = probing_classifiers.control_labels(pairs)
    by_kind = {}
    for kinds, label in zip(pairs.kinds, labels, strict=True):
        by_kind.setdefault(kinds, set()).add(label)
    assert all(len(found) == 1 for found in by_kind.values()) and 0.4 < labels.mean() < 0.6
    assert not np.array_equal(labels, probing_classifiers.control_labels(pairs, seed=1))


def test_shares_have_intervals_over_sentences():
    pairs = synthetic(3)
    right = (pairs.label == 1).astype(float)
    sums = np.stack([right.reshape(-1, 5).sum(1), np.full(80, 5)], 1)
    found, wanted = probing_classifiers.share(right, pairs), ratio(np.float64(sums))
    assert (found.value, found.low, found.high) == (wanted.value, wanted.low, wanted.high)


# ------------------------------------------------------------------ what the chapter says


@pytest.fixture(scope="module")
def book():
    return results.recorded("probing_classifiers")["values"]


def above(one, other):
    """Whether one interval lies above another."""
    return one["low"] > other["high"]


def test_claims_about_parsers(book):
    scores = {name: o["score"] for name, o in book["outcomes"].items()}
    order = [
        "attention and words",
        "attention",
        "distances and words",
        "best single head",
        "right-branching",
        "attention, @random",
    ]
    for better, worse in pairwise(order):
        assert above(scores[better], scores[worse]), (better, worse)
    shown = {
        "attention": 0.58,
        "best single head": 0.43,
        "attention and words": 0.66,
        "distances and words": 0.53,
        "all heads, equal weights": 0.29,
        "attention and words, @random": 0.12,
    }
    assert all(round(scores[name]["value"], 2) == value for name, value in shown.items())
    for name in ("attention", "attention and words", "distances and words"):
        fits = book["outcomes"][name]["fits"]
        assert len(fits) == 5 and np.mean(fits) == pytest.approx(scores[name]["value"], abs=1e-5)
    fits = book["outcomes"]["attention"]["fits"]
    assert [round(100 * end(fits)) for end in (min, max)] == [57, 59]
    assert fits == book["weights"]["again"]["other orders"]["scores"]
    adding = book["adding"]
    assert len(adding["fits"]) == 5 and round(100 * adding["score"]["value"]) == 52
    assert adding["worth"]["low"] > 0 and round(100 * adding["worth"]["value"]) == 6
    assert adding["worth"]["value"] == pytest.approx(np.mean(fits) - np.mean(adding["fits"]), abs=1e-5)
    control = {name: o["control"]["value"] for name, o in book["outcomes"].items() if "control" in o}
    assert round(control["attention and words"], 2) == 0.43 and round(control["distances and words"], 2) == 0.55
    gap = {name: o["selectivity"] for name, o in book["outcomes"].items() if "control" in o}
    assert gap["distances and words"]["low"] < 0 < gap["distances and words"]["high"]
    assert gap["attention"]["value"] - gap["attention and words"]["value"] == pytest.approx(0.06, abs=0.005)
    assert round(100 * (scores["attention and words"]["value"] - scores["attention"]["value"])) == 8
    assert max(gap, key=lambda name: gap[name]["value"]) == "structural probe"


def test_claims_about_the_random_network(book, minilm):
    found = book["next_word"]
    assert found["trained"]["value"] > 0.995 and round(found["random"]["value"], 2) == 0.08
    assert round(found["guess"], 2) == 0.04
    assert 0.10 < book["spread"]["random"] / book["spread"]["trained"] < 0.15, "an eighth"
    tables = minilm.model.embeddings
    differ = [
        (w - w.mean(0)).norm(dim=-1).mean()
        for w in (tables.position_embeddings.weight, tables.word_embeddings.weight)
    ]
    assert differ[0] < differ[1] / 2


def test_claims_about_relations_and_weights(book):
    relations = {name: {p: e["value"] for p, e in found.items()} for name, found in book["relations"].items()}
    assert all(relations[r]["attention"] > 0.865 for r in ("det", "aux"))
    ahead = {name: {r: e["value"] for r, e in gains.items() if e["low"] > 0} for name, gains in book["gain"].items()}
    assert (
        set(ahead["attention"]) == {"case", "det", "obj", "nmod"} and book["gain"]["attention"]["advcl"]["high"] < 0
    )
    more = ahead["attention and words"]
    assert set(more) == {"case", "det", "obl", "obj", "root", "nmod", "mark"} and max(more, key=more.get) == "root"
    assert [round(100 * end(more.values())) for end in (min, max)] == [13, 41]
    for r in ("case", "root", "obl", "mark"):
        gains = relations[r]["attention and words"] - relations[r]["attention"]
        assert gains > 0.13 > relations["obj"]["attention and words"] - relations["obj"]["attention"]
    for r in ("aux", "amod", "nmod:poss", "advmod"):
        found = book["relations"][r]
        assert not above(found["attention"], found["distances and words"])
        assert not above(found["attention and words"], found["distances and words"])
    assert all(v < 0.2 for r in ("conj", "acl:relcl", "advcl") for v in relations[r].values())
    w, u, alone = np.array(book["weights"]["w"]), np.array(book["weights"]["u"]), np.array(book["alone"])
    assert u[2, 8] > 0.3 and w[4, 7] > 0.3 and alone[0, 2, 8] > 0.35 < alone[1, 4, 7]
    largest = np.argsort(-np.abs(w).ravel())[:6]
    assert np.abs(u).max() < np.abs(w).ravel()[largest].min() and (w.ravel()[largest] < 0).all()
    assert (alone[1].ravel()[largest] < 0.08).all()
    sinks = np.array(book["to_cls"]).ravel()[largest]
    assert round(sinks.min(), 2) == 0.44 and round(sinks.max(), 2) == 0.79
    assert [round(a, 2) for a in book["weights"]["agreement"]] == [0.41, 0.39]
    again = {name: np.array(one["largest"]) for name, one in book["weights"]["again"].items()}
    assert all((one < 0).all() for one in again.values()), "in every fit"
    turned = again["other orders"].min(0) / again["other orders"].max(0)
    assert turned.min() > 1.5 and turned.max() < 2.5, "about a factor of two"
    assert (again["penalised"][0] / again["other orders"][0]).max() < 0.55, "about half or less"
    assert book["determiner"]["largest"] == book["determiner"]["single"] == "3-9"


def test_claims_about_structure_edges_and_the_curve(book):
    layers = book["layers"]["value"]
    assert book["layer"] == 3 and max(layers) == layers[3] and max(layers[5:]) < min(layers[:5])
    trees = {name: round(100 * o["score"]["value"]) for name, o in book["outcomes"].items()}
    shown = {"structural probe": 58, "structural probe, @random": 43, "neighbours joined": 46}
    assert all(trees[name] == value for name, value in shown.items()) and book["neighbours"]["value"] > layers[0]
    assert max(book["random_layers"]["value"]) < book["neighbours"]["value"]
    probe = book["outcomes"]["structural probe"]
    assert abs(probe["score"]["value"] - 0.58) < 0.02 and abs(probe["control"]["value"] - 0.18) < 0.02, "about"
    edges = {name: o["score"]["value"] for name, o in book["edges"].items()}
    whole = "attention, words and distance"
    shown = {
        "edge, attention": 0.88,
        "edge, distance": 0.79,
        "edge, words and distance": 0.86,
        "edge, equally far, attention": 0.82,
        "edge, equally far, distance": 0.5,
        "edge, equally far, words": 0.8,
        f"edge, equally far, {whole}": 0.87,
        "edge, equally far, attention, @random": 0.69,
        "which relation, attention": 0.69,
        "which relation, words and distance": 0.66,
        f"which relation, {whole}": 0.78,
    }
    assert all(round(edges[name] + 1e-9, 2) == value for name, value in shown.items())
    for q in ("edge", "edge, equally far"):
        control = book["edges"][f"{q}, attention"]["control"]
        assert control["low"] < 0.5 < control["high"]
    curve = {name: e["value"] for name, e in book["curve"].items() if name != "sentences"}
    assert [round(curve["attention"][n], 2) for n in (0, -1)] == [0.54, 0.58]
    for name in ("attention and words", "distances and words"):
        assert (np.diff(curve[name]) > 0).all() and curve[name][-1] - curve[name][-2] > 0.015


def test_sixty_sentences_of_gum_will_do(minilm, real_data):
    """The attention-only probe needs little training: on a sliver of GUM it is near the full run's 55 %."""
    vectors = Vectors({"the": 0}, np.zeros((1, 2), np.float32))
    sentences = probing_classifiers.choose(minilm, corpora.documents("gum", "dev"), 130)
    cuts = (sentences[:60], sentences[60:80], sentences[80:])
    parts = tuple(probing_classifiers.read(minilm, cut, vectors) for cut in cuts)
    scale = probing_classifiers.spread(parts[0])
    found = probing_classifiers.parser_outcome(lambda _: AttentionProbe(scale), parts, control=False)
    assert 0.44 < found.score.value < 0.62
    right, asked = probing_classifiers.answers(probing_classifiers.right_branching(parts[2]), parts[2]).sum(0)
    assert right / asked < found.score.low


def test_claims_about_gum():
    runs = results.runs("probing_classifiers", profile="full")
    assert set(runs) >= {"minilm", "mpnet"}
    for run in runs.values():
        assert run["provenance"]["corpus"]["name"] == "gum" and run["provenance"]["parameters"]["limits"][0] == 4000
    found, whole = runs["minilm"]["values"], "attention, words and distance"
    score = {name: round(100 * o["score"]["value"]) for name, o in found["outcomes"].items()}
    control = {name: round(100 * o["control"]["value"]) for name, o in found["outcomes"].items() if "control" in o}
    assert score["attention"] == score["distances and words"] == 55 and score["attention and words"] == 65
    assert score["attention and words, @random"] == 18 < score["right-branching"] == 32
    assert (control["attention and words"], control["distances and words"]) == (49, 69)
    for run, worth in (("minilm", 7), ("mpnet", 8)):
        fits = [o["fits"] for o in runs[run]["values"]["outcomes"].values() if "fits" in o]
        assert len(fits) == 3 and all(len(each) == 5 and max(each) - min(each) < 0.012 for each in fits)
        adding = runs[run]["values"]["adding"]["worth"]
        assert adding["low"] > 0 and round(100 * adding["value"]) == worth
    assert found["outcomes"]["distances and words"]["selectivity"]["value"] == pytest.approx(-0.14, abs=0.005)
    assert [round(100 * found["curve"]["attention"]["value"][n]) for n in (0, -1)] == [52, 55]
    assert found["curve"]["sentences"][0] == 60
    edges = {name: round(100 * o["score"]["value"]) for name, o in found["edges"].items()}
    assert (edges["edge, attention"], edges["edge, distance"], edges["edge, equally far, attention"]) == (86, 79, 80)
    assert (edges["which relation, attention"], edges["which relation, words and distance"]) == (64, 66)
    assert found["edges"]["which relation, attention"]["over"]["words and distance"]["high"] < 0
    far = "edge, equally far, "
    assert abs(found["edges"][f"{far}attention"]["over"]["words and distance"]["value"]) < 0.01, "level"
    more = [found["edges"][f"{far}{whole}{kind}"]["over"]["words and distance"] for kind in ("", ", @random")]
    assert round(100 * more[0]["value"]) == 7 and more[1]["low"] < 0 < more[1]["high"]
    structural = {name: 100 * o["score"]["value"] for name, o in found["outcomes"].items()}
    known = structural["neighbours joined"]
    assert (
        round(structural["structural probe, @random"]) == 51 and round(structural["structural probe"] - known) == 25
    )
    assert round(structural["structural probe, @random"] - known) == 9
    mpnet = runs["mpnet"]["values"]
    large = {name: o["score"] for name, o in mpnet["outcomes"].items()}
    order = [
        "attention and words",
        "attention",
        "distances and words",
        "right-branching",
        "attention and words, @random",
    ]
    assert all(above(large[better], large[worse]) for better, worse in pairwise(order))
    assert [round(100 * large[name]["value"]) for name in order] == [70, 60, 55, 32, 28]
    for run in runs.values():
        o = {name: one["score"]["value"] for name, one in run["values"]["outcomes"].items()}
        assert o["attention and words"] - max(o["attention"], o["distances and words"]) > 0.09
        assert run["values"]["determiner"]["rank"] == 2
    assert round(100 * mpnet["next_word"]["random"]["value"]) == 60
    assert round(100 * found["next_word"]["random"]["value"]) == 9
    for run, negative, dependent in ((found, 5, 0), (mpnet, 4, 3)):
        weights = np.array([run["weights"]["w"], run["weights"]["u"]])
        largest = np.unravel_index(np.argsort(-np.abs(weights), axis=None)[:6], weights.shape)
        below, alone = weights[largest] < 0, np.array(run["alone"])[::-1][largest]
        assert below.sum() == negative and (largest[0] == 1).sum() == dependent
        assert (alone[below] < 0.11).all() and (alone.max() > 0.25) == (run is mpnet), "a decent parser has a plus"
    fits = np.array(found["weights"]["again"]["other orders"]["scores"])
    assert np.ptp(fits) < 0.005 and fits.tolist() == found["outcomes"]["attention"]["fits"]
    embeddings = found["layers"]["value"][0] - found["neighbours"]["value"]
    assert round(100 * embeddings) == 11 and round(structural["structural probe"]) == 66 and round(known) == 41
    trees = {name: 100 * o["score"]["value"] for name, o in mpnet["outcomes"].items()}
    assert round(trees["structural probe"]) == 63 and round(trees["structural probe"] - known) == 21
    below = mpnet["layers"]["value"][0] - mpnet["neighbours"]["value"]
    assert (round(100 * below), round(trees["structural probe, @random"] - known)) == (-6, -7)
    assert max(mpnet["random_layers"]["value"]) < mpnet["neighbours"]["value"] == found["neighbours"]["value"]
    assert min(found["random_layers"]["value"]) > found["neighbours"]["value"]
    relation = mpnet["edges"]["which relation, attention"]["score"]["value"]
    assert round(100 * relation) == 70
    ahead = mpnet["edges"]["which relation, attention"]["over"]["words and distance"]
    assert round(100 * ahead["value"]) == 4 and ahead["low"] > 0, "of words and distance, in mpnet"
    assert round(100 * mpnet["edges"][f"{far}words and distance"]["score"]["value"]) == 79
    kinds = "attention", whole, f"{whole}, @random", f"{whole}, @shuffled"
    over = [mpnet["edges"][far + kind]["over"]["words and distance"] for kind in kinds]
    assert [round(100 * one["value"], 1) for one in over[:3]] == [4.5, 9.5, 0.7]
    assert all(one["low"] > 0 for one in over[:3]) and over[3]["high"] < 0
    tests = [mpnet["edges"][f"{q}, attention"]["score"]["value"] for q in ("edge", "edge, equally far")]
    assert [round(100 * value) for value in tests] == [88, 84]
    paper = {r["model"]: r["score"] for r in results.paper("clark2019", "table3")["rows"]}
    theirs = {
        "attention": "Attn",
        "attention and words": "Attn + GloVe",
        "distances and words": "Distances + GloVe",
        "attention and words, @random": "Random Init Attn + GloVe",
        "structural probe": "Structural probe",
    }
    for ours, name in theirs.items():
        assert score[ours] < paper[name] and 100 * large[ours]["value"] < paper[name]


def test_tables_of_several_runs_leave_out_what_a_run_has_not(book):
    full = {name: run["values"] for name, run in results.runs("probing_classifiers", profile="full").items()}
    runs = {"book": book, **full}
    edges, more = findings.edges(runs), findings.more(runs)
    assert edges.rows[0][1] == "85.8" and [row[1] for row in edges.rows if row[1]] == ["85.8", "71.9"]
    assert all(row[2] for row in edges.rows) and all(map(all, more.rows))


# ------------------------------------------------------------------ figures


def estimate(*shape):
    value = np.random.default_rng(len(shape)).random(shape)
    return Estimate(value, value - 0.1, value + 0.1, np.empty((0, *shape)))


def test_readers_have_a_row_each_and_controls_their_own_colour():
    asked = {"one": {"attention": estimate(), "attention, @random": estimate()}, "two": {"words": estimate()}}
    first, second = figures.readers(asked, {"one": 0.5, "two": 0.2}).axes
    assert [t.get_text() for t in first.get_yticklabels()] == ["attention", "attention, @random", "words"]
    points = [line for line in second.lines if line.get_marker() not in ("None", "")]
    assert [float(line.get_ydata()[0]) for line in points] == [2.0]
    colours = [line.get_color() for line in first.lines if line.get_marker() not in ("None", "")]
    assert colours == [COLOURS["first"], COLOURS["random"]] and second.lines[-1].get_xdata()[0] == 0.2
    values = [f"{100 * float(found.value):.0f}" for found in asked["one"].values()]
    assert [text.get_text() for text in first.texts] == values, "per cent beside the points"


def test_differences_are_in_points_beside_none():
    gain = estimate(3)
    ax = figures.differences(["a", "b", "c"], {"x − y": gain, "z − y": gain}).axes[0]
    shown = [line for line in ax.lines if line.get_marker() in "os"]
    assert all(np.allclose(line.get_xdata(), 100 * gain.value) for line in shown) and len(shown) == 2
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b", "c"] and ax.lines[-1].get_xdata()[0] == 0


def test_arcs_tell_right_from_wrong_and_leave_out_what_is_not_asked():
    right = {0: 2, 1: 0, 2: 2}
    figure = figures.arcs(["She", "ran", "home", "."], right, {"one": [2, 0, 3, 1], "other": [3, 1, 2, 0]})
    first, second = figure.axes
    assert [ax.get_title(loc="left") or ax.get_title() for ax in figure.axes] == ["one: 2 of 3", "other: 1 of 3"]
    drawn = [line for line in first.lines if len(line.get_xdata()) > 1]
    assert [line.get_color() for line in drawn] == [COLOURS["first"], COLOURS["first"], COLOURS["other"]]
    she, ran, home, _ = (text.get_position()[0] for text in first.texts)
    assert drawn[0].get_xdata()[-1] == pytest.approx(she) and ran - 0.2 < drawn[0].get_xdata()[0] < ran, (
        "from governor to dependent"
    )
    assert np.allclose(drawn[1].get_xdata(), ran) and drawn[1].get_ydata()[0] == first.get_ylim()[1], "ROOT is above"
    assert np.ptp(drawn[2].get_xdata()) < 0.3 and abs(drawn[2].get_xdata().mean() - home) < 0.05, "its own governor"
    assert sum(len(line.get_xdata()) > 1 for line in second.lines) == 3


def test_governor_map_frames_the_right_candidates():
    probabilities = np.array([[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]])
    ax = figures.governor_map(probabilities, ["She", "ran"], [2, 0]).axes[0]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["ROOT", "She", "ran"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["She", "ran"]
    assert np.array_equal(ax.images[0].get_array(), probabilities)
    assert [(f.get_x() + 0.5, f.get_y() + 0.5) for f in ax.patches] == [(2, 0), (0, 1)], "candidate on x, word on y"


def test_weights_share_a_scale_and_accuracies_another():
    rng = np.random.default_rng(0)
    grids = {name: rng.normal(size=(3, 4)) for name in ("w", "u")} | {"alone": rng.random((3, 4))}
    figure = figures.parsers_and_weights({"alone": grids["alone"], **grids, "back": 2 * grids["alone"]}, ["w", "u"])
    shown = {ax.get_title(): ax.images[0].get_clim() for ax in figure.axes if ax.get_title()}
    most = max(np.abs(grids["w"]).max(), np.abs(grids["u"]).max())
    assert shown["w"] == shown["u"] == pytest.approx((-most, most))
    assert shown["alone"] == shown["back"] == pytest.approx((0, 2 * grids["alone"].max()))


def test_no_run_hides_another():
    one = estimate()
    ax = figures.runs(["a", "b"], {"paper": [0.5, float("nan")], "ours": [one, one], "more": [one, one]}).axes[0]
    rows = [line.get_ydata()[0] for line in ax.lines if line.get_marker() in "os^"]
    assert len(set(rows)) == 6 and all(abs(at - round(at)) < 0.5 for at in rows)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["paper", "ours", "more"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]

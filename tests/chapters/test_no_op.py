"""Chapter 03: gradients, norms, duty and removals against slow loops; the chapter's claims against recorded numbers."""

import dataclasses

import numpy as np
import pytest
import torch
from conftest import USUAL, WITH_VALUES
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import attention, inputs, results, scoreboard, tokens
from helpers.chapters import no_op
from helpers.chapters.no_op import GROUPS, KINDS, PLACES, Removal, tables
from helpers.corpora.treebanks import Sentence
from helpers.encoders import EncoderError
from helpers.measurements.choosing import Hits
from helpers.measurements.syntax import OFFSETS, Scores
from helpers.stats import Estimate
from helpers.tasks import IGNORED, Example


def seg(first, second, document, name):
    return Example("mlm", name, document, (first, second))


SEGMENTS = [
    seg("The otter dives, fast.", "It cracks an urchin on a stone.", 0, "a"),
    seg("A short one.", "Yes.", 0, "a"),
    seg("Lamps were lit, one by one, along the quay.", "Nobody came.", 1, "b"),
    seg("Photosynthesis feeds plants.", "Light, water and air: that is all they need, it seems.", 2, "c"),
]


@pytest.fixture
def guesser(small_encoder):
    """Factory: a tiny encoder with an untrained head for hidden words."""
    return lambda family="bert", **changes: no_op.untrained(small_encoder(family, **changes), seed=1)


def ask(encoder, segments=SEGMENTS, numbers=None, seed=0):
    """One batch with hidden words, in the order given; ``numbers`` are those of the segments in their corpus."""
    batch = tokens.encode(encoder, [s.texts for s in segments])
    numbers = tuple(range(len(segments)) if numbers is None else numbers)
    return inputs.masked(encoder, dataclasses.replace(batch, index=numbers), [(seed, n) for n in numbers])


def batch_of(encoder, segments=SEGMENTS):
    return tokens.encode(encoder, [s.texts for s in segments])


def test_every_real_token_is_of_one_kind(small_encoder):
    batch = batch_of(small_encoder())
    kinds = no_op.kinds(batch)
    assert torch.equal(kinds.sum(-1), batch.mask.float())
    for row, names in enumerate(batch.tokens):
        for place, token in enumerate(names):
            wanted = {"[CLS]": "cls", "[SEP]": "sep", ".": "stop", ",": "stop"}.get(token, "other")
            assert kinds[row, place, KINDS.index(wanted)] == 1


def test_a_hidden_comma_looks_like_any_hidden_word(minilm):
    batch = batch_of(minilm)
    targets = torch.where(batch.stop, batch.ids, IGNORED)
    kinds = no_op.kinds(batch, targets)
    assert (kinds[batch.stop][:, KINDS.index("other")] == 1).all() and kinds[..., KINDS.index("stop")].sum() == 0


def test_leaders_are_heads_that_clearly_lead_the_best_offset():
    rng = np.random.default_rng(0)
    label = rng.choice([-1, 1, 2, 3], 80, p=[0.1, 0.5, 0.35, 0.05])
    hits, by_offset = rng.random((2, 3, 2, 80)) < 0.4, rng.random((len(OFFSETS), 80)) < 0.2
    hits[1, 2, 1, label == 1] = True
    names, documents = np.array(["", "obj", "det", "iobj"]), np.arange(80) // 4
    dev = Scores(names[label.clip(0)], Hits(hits, documents), Hits(by_offset, documents))
    best, lead = {}, {}
    for number, relation in enumerate(names[1:], 1):
        asked = label == number
        best[relation] = max(hits[at][asked].mean() for at in np.ndindex(2, 3, 2))
        lead[relation] = best[relation] - max(row[asked].mean() for row in by_offset)
    found = no_op.leaders(dev, "iobj", words=10, lead=lead["det"] + 0.01)
    assert [*found] == ["iobj", "obj"] and found["obj"].head == (1, 2, 1), (
        "the rare one only because it was asked for"
    )
    assert [*no_op.leaders(dev, words=10, lead=lead["det"] - 0.01)] == ["det", "obj"]
    for relation, one in found.items():
        assert (one.accuracy, one.lead) == pytest.approx((best[relation], lead[relation]))


def loss_by_hand(encoder, asked, edit=None):
    """Mean cross-entropy of each example in loops."""
    with torch.no_grad(), attention.tap(encoder, edit=edit):
        logits = encoder.logits(asked.batch).double()
    losses = []
    for row, targets in enumerate(asked.targets.tolist()):
        terms = [
            float(torch.logsumexp(logits[row, place], 0) - logits[row, place, target])
            for place, target in enumerate(targets)
            if target != IGNORED
        ]
        losses.append(np.mean(terms))
    return np.array(losses)


def all_gradients(encoder, asked):
    seen = {}
    no_op.gradients(encoder, asked, lambda layer, p, g: seen.update({layer: (p.clone(), g.clone())}))
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("family", USUAL)
def test_gradients_are_the_slopes_of_the_loss(guesser, family):
    """Against a central difference: one weight a little up, a little down. (The softmax stays in single precision.)"""
    encoder = guesser(family)
    encoder.model.double(), encoder.head.double()
    asked = ask(encoder, SEGMENTS[:1] * 2)
    try:
        seen = all_gradients(encoder, asked)
        assert sorted(seen) == [0, 1, 2] and list(seen) == [2, 1, 0], "layer by layer, from the last"
        for layer, (row, head, i, j) in ((0, (0, 1, 3, 0)), (1, (1, 3, 2, 4)), (2, (0, 0, 5, 6))):

            def nudge(size, layer=layer, at=(row, head, i, j)):
                def edit(here, p):
                    p = p.clone()
                    if here == layer:
                        p[at] += size
                    return p

                return edit

            up, down = (loss_by_hand(encoder, asked, nudge(s)) for s in (1e-3, -1e-3))
            slope = (up - down) / 2e-3
            got = float(seen[layer][1][row, head, i, j])
            assert got == pytest.approx(slope[row], rel=2e-3, abs=1e-7)
            assert slope[1 - row] == 0, "no example touches another's loss"
    finally:
        encoder.model.float(), encoder.head.float()


def test_gradients_belong_to_the_example_whatever_the_batch(guesser):
    encoder = guesser()
    together = all_gradients(encoder, ask(encoder))
    for number, segment in enumerate(SEGMENTS):
        alone = ask(encoder, [segment], [number])
        n = int(alone.batch.lengths[0])
        for layer, (_, gradient) in all_gradients(encoder, alone).items():
            inside = together[layer][1][number, :, :n, :n]
            assert torch.allclose(inside, gradient[0], rtol=1e-3, atol=1e-7)
            assert (together[layer][1][number, :, n:] == 0).all(), "rows of padding do nothing"


def slow_gradient_means(encoder, segments, seed):
    """Loops over segments one at a time, heads, attending and attended tokens."""
    shape = (encoder.layers, encoder.heads, 4)
    sums = {name: np.zeros(shape) for name in ("gradient", "moved", "predicted")}
    pairs = np.zeros(4)
    for number, segment in enumerate(segments):
        asked = ask(encoder, [segment], [number], seed)
        kind = no_op.kinds(asked.batch, asked.targets)[0].argmax(-1).tolist()
        n = len(kind)
        for j in range(n):
            pairs[kind[j]] += n
        for layer, (p, g) in all_gradients(encoder, asked).items():
            p, g = p[0].double().numpy(), g[0].double().numpy()
            for head, i in np.ndindex(encoder.heads, n):
                mean = sum(p[head, i, j] * g[head, i, j] for j in range(n))
                for j in range(n):
                    at = (layer, head, kind[j])
                    sums["gradient"][at] += abs(g[head, i, j])
                    sums["moved"][at] += abs(g[head, i, j] - mean)
                    sums["predicted"][at] -= p[head, i, j] * g[head, i, j]
    return {
        "gradient": sums["gradient"] / pairs,
        "moved": sums["moved"] / pairs,
        "predicted": sums["predicted"] / len(segments),
    }


@pytest.mark.parametrize("size", [1, 3, 4])
def test_sensitivity_is_what_loops_count_whatever_the_batch_size(guesser, size):
    encoder = guesser()
    found = no_op.sensitivity(encoder, SEGMENTS, seed=5, batch_size=size)
    for name, expected in slow_gradient_means(encoder, SEGMENTS, 5).items():
        np.testing.assert_allclose(getattr(found, name).value, expected, rtol=1e-3, atol=1e-8, err_msg=name)
    asked = ask(encoder, seed=5)
    assert found.loss.value == pytest.approx(loss_by_hand(encoder, asked).mean(), rel=1e-5)
    assert (found.segments, found.tokens) == (4, int((asked.targets != IGNORED).sum()))
    ratio = found.ratio()
    assert (ratio.value[:, -1] == 1).all() and ratio.value.shape == (3, 4)


@pytest.mark.slow
@pytest.mark.parametrize("family", WITH_VALUES)
def test_output_projections_make_the_attentions_output(small_encoder, family):
    """The layer's heads, weighted by the observed probabilities and joined by the map found, are what the map gives."""
    encoder = small_encoder(family)
    batch = batch_of(encoder)
    found = attention.output_projections(encoder)
    assert len(found) == encoder.layers
    heads, outputs = [], []
    hooks = [
        m.register_forward_hook(lambda _, i, o: outputs.append((i[0], o))) for m in {id(m): m for m in found}.values()
    ]
    with torch.no_grad(), attention.tap(encoder, observe=lambda layer, p, v: heads.append(p @ v)):
        encoder.model(**batch.inputs)
    for hook in hooks:
        hook.remove()
    assert len(outputs) == len(heads) == encoder.layers
    real = batch.mask[..., None]
    for module, o, (entered, output) in zip(found, heads, outputs, strict=True):
        joined = o.transpose(1, 2).flatten(2)
        assert ((joined - entered) * real).abs().max() < 1e-5
        shares = module.weight.view(len(module.weight), encoder.heads, -1)  # [width, head, d]
        bias = 0 if module.bias is None else module.bias
        explicit = sum(o[:, h] @ shares[:, h].T for h in range(encoder.heads)) + bias
        assert ((explicit - output) * real).abs().max() < 1e-4


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "mpnet"])
def test_norm_statistics_are_what_loops_count(small_encoder, family):
    encoder = small_encoder(family)
    shape = (encoder.layers, encoder.heads, 4)
    share, weighted, joint, norm = (np.zeros(shape) for _ in range(4))
    queries, keys = 0, np.zeros(4)
    for segment in SEGMENTS:
        batch = batch_of(encoder, [segment])
        kind = no_op.kinds(batch)[0].argmax(-1).tolist()
        n = len(kind)
        queries, keys = queries + n, keys + np.bincount(kind, minlength=4)
        seen = {}
        with torch.no_grad(), attention.tap(encoder, observe=lambda la, p, v, seen=seen: seen.update({la: (p, v)})):
            encoder.model(**batch.inputs)
        for layer, module in enumerate(attention.output_projections(encoder)):
            p, v = (t[0].double().numpy() for t in seen[layer])
            d = v.shape[-1]
            for head in range(encoder.heads):
                f = v[head] @ module.weight.double().numpy()[:, head * d : head * d + d].T
                for j in range(n):
                    norm[layer, head, kind[j]] += np.linalg.norm(f[j])
                for i in range(n):
                    for k in range(4):
                        vectors = [p[head, i, j] * f[j] for j in range(n) if kind[j] == k]
                        weighted[layer, head, k] += sum(np.linalg.norm(x) for x in vectors)
                        joint[layer, head, k] += np.linalg.norm(sum(vectors, np.zeros(f.shape[1])))
                        share[layer, head, k] += sum(p[head, i, j] for j in range(n) if kind[j] == k)
    found = no_op.weigh(encoder, SEGMENTS)
    np.testing.assert_allclose(found.share.value, share / queries, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.weighted.value, weighted / queries, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found.joint.value, joint / queries, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found.norm.value, norm / keys, rtol=1e-4, atol=1e-6)
    assert (found.joint.value <= found.weighted.value * (1 + 1e-4)).all()
    np.testing.assert_allclose(found.share.value.sum(-1), 1, atol=1e-5)
    told = no_op.norms_as_dict(found)
    by_layer = {n: x.mean(1) / x.mean(1).sum(-1, keepdims=True) for n, x in (("share", share), ("joint", joint))}
    np.testing.assert_allclose(told["kept"].value, by_layer["share"] - by_layer["joint"], rtol=1e-3, atol=1e-5)
    assert (found.ratio().value[:, -1] == 1).all()


def test_hidden_value_vectors_are_refused(small_encoder):
    with pytest.raises(EncoderError, match="value vectors"):
        no_op.weigh(small_encoder("deberta"), SEGMENTS[:1])


TREES = [
    Sentence(
        "a",
        ("She", "lit", "the", "unbelievable", "lamp", "."),
        upos=("PRON", "VERB", "DET", "ADJ", "NOUN", "PUNCT"),
        governors=(1, -1, 4, 4, 1, 1),
        relations=("nsubj", "root", "det", "amod", "obj", "punct"),
    ),
    Sentence(
        "b",
        ("Otters", "eat", "urchins"),
        upos=("NOUN", "VERB", "NOUN"),
        governors=(1, -1, 1),
        relations=("nsubj", "root", "obj"),
    ),
    Sentence("c", ("It", "rained"), upos=("PRON", "VERB"), governors=(1, -1), relations=("nsubj", "root")),
]


@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_duty_is_what_loops_count(small_encoder, family, direction):
    encoder = small_encoder(family)
    sums, count = np.zeros((encoder.layers, encoder.heads, 5, 5)), np.zeros(5, int)
    for tree in TREES:
        batch = tokens.encode(encoder, [list(tree.words)])
        text = tokens.EncodedText.of(batch, 0, tree)
        words = tokens.by_word(attention.maps(encoder, batch)[:, 0], text, special=True).double().numpy()
        order = [0, *range(2, len(tree.words) + 2), 1]  # [CLS], words, [SEP]
        words = words[:, :, order][..., order]
        for word, tag in enumerate(tree.upos):
            governs = [w for w, g in enumerate(tree.governors) if g == word]
            if direction == 0:
                on, partners = tree.relations[word] == "obj", [g for g in [tree.governors[word]] if g >= 0]
            else:
                on, partners = any(tree.relations[w] == "obj" for w in governs), governs
            group = 3 if tag == "PUNCT" else 0 if on else 1 if tag in ("NOUN", "PROPN", "PRON") else 2
            groups = [group, 4] if group in (1, 2) else [group]
            count[groups] += 1
            row = words[:, :, 1 + word]
            to = [
                row[..., 0],
                row[..., len(tree.words) + 1],
                row[..., 1 + word],
                sum(row[..., 1 + p] for p in partners),
            ]
            to = [np.broadcast_to(t, row.shape[:2]) for t in to]
            sums[:, :, groups] += np.stack([*to, 1 - sum(to)], -1)[:, :, None]
    found = no_op.duties(encoder, TREES, {"nsubj": 1 - direction, "obj": direction})["obj"]
    assert found.count.tolist() == count.tolist()
    np.testing.assert_allclose(found.share.value, sums / np.maximum(count, 1)[:, None], atol=1e-5)
    retreat = found.share.value[:, :, 1, :2].sum(-1) - found.share.value[:, :, 0, :2].sum(-1)
    rest = found.share.value[:, :, 1, :2].sum(-1) / (1 - found.share.value[:, :, 1, 3])
    np.testing.assert_allclose(found.of_rest("other nouns").value, rest)
    np.testing.assert_allclose(found.retreat("other nouns").value, retreat, atol=1e-6)


def test_a_retreat_is_held_against_that_of_all_heads(small_encoder):
    """Against loops over heads and relations, on random maps."""
    found = no_op.duties(small_encoder("bert"), TREES, {"nsubj": 0, "obj": 0})
    heads = {"nsubj": (2, 1), "obj": (0, 3)}
    expected = dict.fromkeys(no_op.of_working(found, heads), 0.0)
    for relation, (layer, head) in heads.items():
        share = found[relation].share.value
        sink, partner = share[..., :2].sum(-1), share[..., PLACES.index("partner")]
        rest = sink / (1 - partner)
        on, no_nouns, off = (GROUPS.index(g) for g in ("on duty", "no nouns", "off duty"))
        for name, grid in (
            ("all", sink[..., off] - sink[..., on]),
            ("of_rest", rest[..., off] - rest[..., on]),
            ("no_nouns", rest[..., no_nouns] - rest[..., on]),
        ):
            every = [grid[at] for at in np.ndindex(grid.shape)]
            expected[name] += grid[layer, head] / len(heads)
            expected[f"{name}_beyond"] += (grid[layer, head] - sum(every) / len(every)) / len(heads)
    for name, one in no_op.of_working(found, heads).items():
        assert float(one.value) == pytest.approx(expected[name], abs=1e-9), name


def test_the_shuffled_control_sees_other_maps_and_the_same_words(small_encoder):
    encoder = small_encoder("bert")
    plain, dealt = (no_op.duties(encoder, TREES, {"obj": 0}, shuffled=s)["obj"] for s in (False, True))
    assert plain.count.tolist() == dealt.count.tolist()
    filled = plain.count > 0
    np.testing.assert_allclose(dealt.share.value[:, :, filled].sum(-1), 1, atol=1e-5)
    assert not np.allclose(plain.share.value[:, :, filled], dealt.share.value[:, :, filled], atol=1e-4)
    own, other = (no_op.weigh(encoder, SEGMENTS, shuffled=s) for s in (False, True))
    np.testing.assert_allclose(own.norm.value, other.norm.value, rtol=1e-5)
    assert not np.allclose(own.share.value, other.share.value, atol=1e-4)


def random_weights(seed, heads=2, n=6):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(1, heads, n, n, generator=generator) * 2).softmax(-1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_thinning_takes_as_much_from_other_tokens_and_leaves_some(seed):
    weights = random_weights(seed)
    keys = torch.tensor([[True, False, False, False, True, False]])
    order = torch.from_numpy(np.random.default_rng(seed).permutation(6))[None]
    got = no_op.thinned(weights, keys, order)
    for head, i in np.ndindex(2, 6):
        row = weights[0, head, i].double().numpy().copy()
        left = min(row[0] + row[4], 1 - row[0] - row[4]) / 2
        for j in order[0].tolist():
            if j in (0, 4):
                continue
            taken = min(left, row[j])
            row[j], left = row[j] - taken, left - taken
        np.testing.assert_allclose(got[0, head, i], row, atol=1e-6)
    budget = weights[..., [0, 4]].sum(-1)
    np.testing.assert_allclose(1 - got.sum(-1), budget.minimum(1 - budget) / 2, atol=1e-5)
    assert torch.equal(got[..., [0, 4]], weights[..., [0, 4]]) and (got >= -1e-7).all()
    same = no_op.matched(weights, keys)
    assert torch.allclose(same.sum(-1), got.sum(-1), atol=1e-5) and (same >= -1e-7).all(), (
        "the same mass in every row"
    )
    assert torch.equal(same[..., [1, 2, 3, 5]], weights[..., [1, 2, 3, 5]])
    assert torch.allclose(same[..., 0] * weights[..., 4], same[..., 4] * weights[..., 0], atol=1e-6), "in proportion"
    for left in (got, same):
        moved = no_op.renormalised(left, keys)
        assert torch.equal(moved[..., [0, 4]], left[..., [0, 4]]), "none of what is taken goes to the sink"
        assert torch.allclose(moved.sum(-1), torch.ones(1, 2, 6), atol=1e-5)
        others = [1, 2, 3, 5]
        assert torch.allclose(
            moved[..., others] * left[..., others].sum(-1, keepdim=True),
            left[..., others] * moved[..., others].sum(-1, keepdim=True),
            atol=1e-5,
        )


def slow_change(encoder, segment, number, removal, seed):
    asked = ask(encoder, [segment], [number], seed)
    special = [j for j, s in enumerate(asked.batch.special[0].tolist()) if s]
    ends = {"cls": special[:1], "sep": special[1:]}.get(removal.what, special)
    n = len(asked.batch.tokens[0])
    order = np.random.default_rng([seed, removal.draw, number]).permutation(n)

    def edit(layer, p):
        if removal.layer is not None and layer != removal.layer:
            return p
        p = p.clone()
        for head, i in np.ndindex(encoder.heads, n):
            row = p[0, head, i]
            on = float(row[special].sum())
            if removal.what == "random":
                left = min(on, 1 - on) / 2
                for j in order:
                    if j not in special:
                        taken = min(left, float(row[j]))
                        row[j] -= taken
                        left -= taken
            elif removal.what == "matched":
                row[special] *= 1 - min(on, 1 - on) / 2 / on
            else:
                row[ends] = 0
            if removal.renormalise:
                others = [j for j in range(n) if j not in ends]
                row[others] *= (1 - row[ends].sum()) / row[others].sum()
        return p

    return (loss_by_hand(encoder, asked, edit) - loss_by_hand(encoder, asked))[0]


@pytest.mark.slow
@pytest.mark.parametrize("size", [3])
def test_removals_are_what_loops_do_whatever_the_batch_size(guesser, size):
    encoder = guesser()
    found = no_op.remove(encoder, SEGMENTS, draws=2, seed=3, batch_size=size)
    assert len(found.removals) == 2 * 4 * 4 + 4 == len(set(found.removals))
    for place in range(0, len(found.removals), 5):
        changes = [slow_change(encoder, s, n, found.removals[place], 3) for n, s in enumerate(SEGMENTS)]
        assert found.change[place].value == pytest.approx(np.mean(changes), abs=2e-5), found.removals[place]
    for renormalise in (False, True):
        assert found.by_layer("random", renormalise).value.shape == (4,)
        random = found.at("random", 1, renormalise).value
        assert found.draws("random", 1, renormalise).value.mean() == pytest.approx(random)
        special = found.at("special", None, renormalise)
        assert special.value == found.by_layer("special", renormalise).value[-1]
        assert found.at("cls", None, renormalise).value != found.at("sep", None, renormalise).value
    told, spent = no_op.removed_as_dict(found), {}
    for what in ("special", "matched", "random"):
        spent[what] = found.by_layer(what, True).value - found.by_layer(what, False).value
        np.testing.assert_allclose(told["spent"][what].value, spent[what])
    for way, renormalise in (("as_left", False), ("renormalised", True)):
        matched, other = (found.by_layer(what, renormalise).value for what in ("matched", "random"))
        np.testing.assert_allclose(told[way]["difference"].value, matched - other)
    np.testing.assert_allclose(told["spent"]["difference"].value, spent["matched"] - spent["random"])


def test_the_mass_is_that_of_the_rows(guesser):
    encoder = guesser()
    found = no_op.remove(encoder, SEGMENTS, draws=1)
    sums, rows = np.zeros((3, 2)), 0
    for number, segment in enumerate(SEGMENTS):
        asked = ask(encoder, [segment], [number])
        maps = attention.maps(encoder, asked.batch)[:, 0]
        on = maps[..., asked.batch.special[0]].sum(-1)
        sums += torch.stack([on, torch.minimum(on, 1 - on) / 2], -1).sum((1, 2)).numpy()
        rows += on.shape[1] * on.shape[2]
    np.testing.assert_allclose(found.mass.value, sums / rows, atol=1e-5)


def test_a_silent_sink_can_be_removed_without_loss(guesser):
    """If the special tokens' values are 0, taking their weights away changes nothing; renormalising does."""
    encoder = guesser("bert")
    batch = batch_of(encoder)
    hooks = []
    for module in encoder.model.modules():
        if type(module).__name__ == "BertSelfAttention":
            hooks.append(module.value.register_forward_hook(lambda _, __, o: o * (~batch.special)[..., None]))
    try:
        asked = ask(encoder)
        plain = loss_by_hand(encoder, asked)
        for renormalise in (False, True):
            edit = no_op.editor(Removal("special", None, renormalise), asked.batch)
            change = np.abs(loss_by_hand(encoder, asked, edit) - plain).max()
            assert (change > 1e-4) == renormalise
        seen = all_gradients(encoder, asked)
        special = batch.special[:, None, None].expand_as(seen[1][1])
        assert seen[1][1][special].abs().max() == 0, "and the gradient is 0"
        assert no_op.moved(*seen[1])[special].abs().max() > 0, "but moving weight there is not for nothing"
    finally:
        for hook in hooks:
            hook.remove()


def opened(found):
    """Recorded values with their estimates as :class:`Estimate` again."""
    if not isinstance(found, dict):
        return found
    if set(found) == {"value", "low", "high"}:
        return Estimate.from_record(found)
    return {name: opened(one) for name, one in found.items()}


def recorded():
    return opened(results.recorded("no_op")["values"])


MIDDLE = slice(1, 5)  # layers 2 to 5, where [CLS] is the sink
OTHER = KINDS.index("other")


PAIR = ("The otter cracked a mollusc on its belly.", "Then it dived.")


def test_the_head_of_the_puzzle(minilm):
    batch = tokens.encode(minilm, [PAIR])
    kept = {}
    with torch.no_grad(), attention.tap(minilm, observe=lambda layer, p, v: kept.update({layer: (p, v)})):
        minilm.model(**batch.inputs)
    output = attention.output_projections(minilm)[2].weight
    weights, lengths = kept[2][0][0, 4], no_op.norms(kept[2][1], output)[0, 4]
    received, to_cls = weights.mean(0), weights[:, 0].tolist()
    assert abs(received[0] - 2 / 3) < 0.02 and received[0] > 7 * received[1:].max()
    assert 1 / 40 < lengths[0] / lengths[1:].mean() < 1 / 25 and (lengths[1:].max() < 2 * lengths[1:].min())
    words = [w for w in range(len(to_cls)) if batch.tokens[0][w].isalpha() and len(batch.tokens[0][w]) > 1]
    least = sorted(words, key=lambda w: to_cls[w])[:2]
    assert {batch.tokens[0][w] for w in least} == {"its", "it"} and max(to_cls[w] for w in least) < 1 / 3
    for row in least:  # what they look at most, special tokens apart
        words_only = weights[row].clone()
        words_only[batch.special[0]] = 0
        assert batch.tokens[0][int(words_only.argmax())] == "a", "of a mollusc, not otter"
    otter = batch.tokens[0].index("otter")
    assert 1 / (1 - to_cls[otter]) > 20 and all(1 / (1 - to_cls[w]) < 1.6 for w in least)
    handed = weights[..., None] * (kept[2][1][0, 4] @ output[:, 4 * 32 : 5 * 32].T)
    assert handed[:, 0].norm() / handed.sum(1).norm() < 0.1, "what is missing without [CLS]"


def test_the_adapter_makes_the_sink_larger():
    values = recorded()
    own, adapted = (values[name]["share"] for name in ("without_adapter", "norms"))
    assert (np.abs(own.value[MIDDLE, 0] - 1 / 3) < 0.08).all(), "about a third"
    assert (own.value[[0, 5], 0] < 0.15).all(), "little in the first and in the last"
    assert (adapted.low[2:, 0] > own.high[2:, 0]).all(), "more from layer 3 on"
    assert adapted.value[5, 0] > 2 * own.value[5, 0], "several times as much in the last"
    for control in ("random", "shuffled"):
        assert (values[control]["share"].high[:, 0] < 0.02).all(), "no sink, next to nothing"


def test_moves_react_less_to_the_sink_and_single_weights_far_less():
    values = recorded()
    alone, move = values["gradient_ratio"], values["moved_ratio"]
    for run in (values, opened(results.recorded("no_op", profile="full")["values"])):
        times, untrained = 1 / run["moved_ratio"].value[1:, 0], run["untrained_head"]["moved_ratio"]
        assert times.min() > 2.45 and times.max() < 4.25, "2.5 to 4.2 times less, from layer 2 on"
        assert (untrained.high[:, 0] < 0.5).all(), "the untrained output reacts little to moves, too"
        less = untrained.high[:, 0] < run["moved_ratio"].low[:, 0]
        assert {2, 3, 5} <= {*(np.flatnonzero(less) + 1).tolist()}, "in several layers even less"
    assert (alone.high[MIDDLE, 0] < 0.1).all(), "more than ten times"
    assert (move.low[:, 0] > alone.high[:, 0]).all(), "the plain gradient overstates"
    for found in (alone, move):
        assert (found.low[:5, 1:3] > 0.5).all() and (found.low[5, 1:3] > 0.4).all(), "[SEP], punctuation: within two"


def test_the_small_gradient_is_the_short_vector():
    values = recorded()
    for gradients, lengths in ((values, "norms"), (values["untrained_head"], "without_adapter")):
        apart = np.log(gradients["gradient_ratio"].value[:, 0] / values[lengths]["norm_ratio"].value[:, 0])
        assert np.abs(apart).max() < np.log(1.7), "nearly the same story"
    for name in ("gradient_ratio", "moved_ratio"):
        assert (np.abs(values["random_head"][name].value[:, 0] - 1) < 0.3).all(), "near 1"
    assert (np.abs(values["random"]["norm_ratio"].value - 1) < 0.2).all()


def test_the_sink_has_less_of_what_is_handed_on_than_of_the_attention():
    values = recorded()
    for name in ("norms", "without_adapter"):
        norms = values[name]
        share, joint, lengths = (norms[of].value[1:, 0] for of in ("share", "joint_share", "weighted_share"))
        assert (share > 2.9 * joint).all() and (joint < 0.3).all(), "several times less, from layer 2 on"
        assert (lengths < joint).all(), "smaller still"
        assert (norms["norm_ratio"].high[1:, 0] < 1 / 6).all()
    own = values["without_adapter"]
    most = own["share"].value[:, 0].argmax()
    told = [float(own[name].value[most, 0]) for name in ("share", "joint_share", "norm_ratio")]
    assert most == 4 and [round(one, 3) for one in told] == [0.371, 0.032, 0.031], "layer 5, where it draws most"
    sums, lengths = (values["norms"][of].value[5, 0] for of in ("joint_share", "weighted_share"))
    assert 0.4 < lengths / sums < 0.7, "by up to a half, with the adapter"
    assert (values["random"]["kept"].high[:, 0] < 0).all(), "the other way round without training"
    assert (values["norms"]["joint_share"].value[:, OTHER] > 0.4).all(), "most comes from ordinary tokens"


def test_the_object_head_off_duty_of_all_attention():
    duty = recorded()["duty"]
    head = duty["obj"]
    sink = head["sink"]
    assert (head["layer"], head["head"]) == (2, 0)
    assert sink.high[0] < 0.3 and sink.low[1] > 0.4 and sink.low[2] > 0.42 and sink.low[3] > 0.6
    assert np.mean(head["retreat_of_all"]) < -0.03, "over all heads the other way round"
    for control in ("random", "shuffled"):
        assert np.abs(recorded()[f"duty_{control}"]["obj"]["retreat"]["off duty"].value) < 0.05, "hardly any"
    everyone = np.array(head["retreat_of_all_nouns"])
    assert (everyone > head["retreat"]["other nouns"].value).sum() <= 1
    controls = recorded()["control_retreats"]
    assert np.abs(controls["@random"]).max() < 0.02 < np.abs(controls["@shuffled"]).max() < 0.15
    assert head["off_duty"]["of_rest"].value < head["off_duty"]["all"].value / 2, "more than half was arithmetic"


def test_some_heads_with_a_function_turn_to_the_sink_off_duty():
    values = recorded()
    duty = values["duty"]
    working = {r for r, d in duty.items() if d["accuracy"] > 0.5}
    assert working == {"aux", "case", "cc", "det", "obj"} == set(values["working"]["relations"])
    for relation in working:
        retreat = duty[relation]["off_duty"]["all"]
        assert retreat.low > 0.1 and 0.165 < retreat.value < 0.345, "of all attention by 17 to 34 points"
    assert duty["cc"]["beyond"]["all"].value < 0.05, "all heads nearly as much"
    strict, beyond = ({r: duty[r][what]["no_nouns"] for r in working} for what in ("off_duty", "beyond"))
    assert {r for r, one in beyond.items() if one.low > 0.05} == {"obj", "det", "case"}
    assert strict["aux"].low < 0 < strict["aux"].high and abs(strict["aux"].value) < 0.01, "stays where it is"
    assert strict["cc"].low > 0 > beyond["cc"].high, "turns, less than all heads"
    model = values["working"]["model"]
    assert [round(100 * float(model[way].value), 1) for way in ("no_nouns", "no_nouns_beyond")] == [11.3, 6.5]
    for name in ("random", "shuffled"):
        assert abs(values["working"][name]["no_nouns"].value) < 0.01, "near zero"


def test_determiners_and_prepositions_on_both_treebanks_objects_hardly():
    here, gum = (opened(results.recorded("no_op", profile=p)["values"])["duty"] for p in ("book", "full"))
    for duty in (here, gum):
        for relation in ("det", "case"):
            own, head = duty[relation]["off_duty"]["no_nouns"], duty[relation]
            assert 0.155 < own.value < 0.235 and duty[relation]["beyond"]["no_nouns"].low > 0.05
            assert (head["layer"], head["head"]) == (2, 8), "3-9"
        objects = duty["obj"]
        assert objects["off_duty"]["no_nouns"].value - objects["beyond"]["no_nouns"].value < 0, "the bar is negative"
    points = [round(100 * float(duty["obj"]["off_duty"]["no_nouns"].value)) for duty in (here, gum)]
    assert points == [7, 1]
    working = {r: d["off_duty"]["no_nouns"] for r, d in gum.items() if d["accuracy"] > 0.5}
    away = {r for r, own in working.items() if own.high < 0}
    assert len(working) == 12 and away == {"nmod:poss", "nsubj", "nmod:unmarked", "xcomp"}, "four of twelve"


def test_the_sink_can_go_unless_the_rest_takes_its_place():
    values = recorded()
    removed = values["removed"]
    left, renormalised = removed["as_left"], removed["renormalised"]
    special = left["special"].value[-1]
    assert 0.005 < special / removed["loss"].value < 0.02, "about one per cent"
    assert left["matched"].high[-1] < special < 1.3 * left["random"].value[-1], (
        "all of it about as much as a part of others"
    )
    assert left["difference"].high[-1] < 0, "as much of others costs more"
    assert 7 < renormalised["special"].value[-1] / special < 13, "about ten times the harm"
    assert renormalised["special"].low[-1] > renormalised["random"].high[-1]
    assert renormalised["difference"].high[-1] < 0 < removed["spent"]["difference"].low[-1]
    assert all(removed["spent"][what].low[-1] < 0 < removed["spent"][what].high[-1] for what in ("matched", "random"))
    full = opened(results.recorded("no_op", profile="full")["values"])["removed"]["spent"]["difference"]
    assert full.low[-1] > 0 and [round(float(d.value[-1]), 3) for d in (removed["spent"]["difference"], full)] == [
        0.018,
        0.022,
    ]
    for ends, told in ((left, [0.0, 0.04]), (renormalised, [0.01, 0.03])):
        assert [round(ends[what].value[-1], 2) for what in ("matched", "random")] == told, "squares and diamonds"
    assert renormalised["cls_everywhere"].value > 5 * np.abs(renormalised["sep_everywhere"].value)
    mass = removed["mass"]
    assert (mass.value[:, 1] <= mass.value[:, 0] / 2).all() and mass.value[4, 0] > 4 * mass.value[4, 1]


def test_single_layers_hardly_miss_the_sink():
    values = recorded()
    left, renormalised = (values["removed"][way]["special"] for way in ("as_left", "renormalised"))
    assert np.abs(left.value[:-1]).max() < 0.05, "a few hundredths of a nat"
    assert np.abs(left.value[:-1] - values["predicted"].value).max() < 0.03, "about what the gradients predict"
    assert renormalised.low[3] > 0 and renormalised.value[3:5].min() > 0.03, "the middle layers"
    assert renormalised.value[-1] > renormalised.value[:-1].sum(), "more than the single ones added up"
    assert 0.22 < renormalised.value[:-1].sum() < 0.27 and 0.435 < renormalised.value[-1] < 0.445, (
        "a quarter, and 0.44"
    )
    assert ((renormalised.high - renormalised.low)[1:5] > renormalised.value[1:5]).sum() >= 3, (
        "bars as long as effects"
    )
    assert values["removed"]["segments"] > results.recorded("no_op")["provenance"]["parameters"]["few"]
    run = results.recorded("no_op", profile="full")
    whole = Estimate.from_record(run["values"]["removed"]["renormalised"]["special"])
    assert 0.315 < whole.value[:-1].sum() < 0.325 and 0.685 < whole.value[-1] < 0.695, "on Wikipedia"
    assert 1.9 < whole.value[-1] / whole.value[:-1].sum() < 2.3, "about twice the sum"
    assert whole.low[-1] > whole.high[:-1].sum(), "and more than the upper ends added up"
    asked = run["provenance"]["parameters"]
    assert asked.get("few") in (None, run["values"]["removed"]["segments"]), "on the same segments"


def test_full_runs():
    values = results.recorded("no_op", profile="full")["values"]
    duty = {r: d for r, d in values["duty"].items() if d["lead"] >= 0.1}
    working = {r: d["retreat"]["off duty"]["value"] for r, d in duty.items() if d["accuracy"] > 0.5}
    assert (len(duty), len(working)) == (18, 12)
    still = {r for r, retreat in working.items() if retreat < 0.1}
    assert still == {"nsubj", "nmod:poss", "nmod:unmarked"} and all(abs(working[r]) < 0.03 for r in still)
    heads = {r: (d["layer"], d["head"]) for r, d in duty.items()}
    assert {heads[r] for r in ("nsubj", "nmod:poss", "det", "case", "cc")} == {(2, 8)}
    assert (Estimate.from_record(values["removed"]["renormalised"]["special"]).low > 0).all(), "every layer, and all"
    strict = {r for r in working if values["duty"][r]["off_duty"]["no_nouns"]["low"] > 0.05}
    assert strict == {"det", "case", "cop", "aux", "cc"}, "by the strict count only these clearly"
    model = values["working"]["model"]
    assert [round(100 * model[way]["value"], 1) for way in ("no_nouns", "no_nouns_beyond")] == [2.4, 4.9]
    left = Estimate.from_record(values["removed"]["as_left"]["special"])
    assert np.flatnonzero(left.low[:-1] > 0).tolist() == [3, 4] and left.value[:-1].max() < 0.01, "layers 4 and 5"


def test_the_sink_of_the_claims_is_the_special_token_that_draws_most():
    values = results.recorded("no_op")["values"]
    ours = scoreboard.numbers_in(values, tables.tidy)
    for estimate in values["without_adapter"].values():
        for layer in (layer for end in estimate.values() for layer in end):
            layer[:2] = layer[1::-1]  # [SEP] in the place of [CLS]
    swapped = scoreboard.numbers_in(values, tables.tidy)
    named = [name for name in ours if name[1].startswith(("sink", "other_special"))]
    assert len(named) == 5 and all(ours[name] == swapped[name] for name in named)

"""Parts of a measurement: the same numbers wherever they are measured, whatever dies on the way."""

from dataclasses import replace

import joblib
import numpy as np
import pytest
import torch

from helpers import encoders
from helpers.chapters import distance_features, no_op
from helpers.engine import shards, sweeps
from helpers.tokens import Batches, NoWords

WORDS = [
    "the",
    "otter",
    "dived",
    "and",
    "came",
    "up",
    "with",
    "a",
    "shell",
    ",",
    "laid",
    "it",
    "on",
    "its",
    "belly",
    ".",
]
TEXTS = [" ".join(WORDS[n % 5 : 6 + n % 13]) for n in range(54)]
DOCUMENTS = [n // 3 for n in range(54)]


def measured(encoder):
    """A pass over the corpus in nine parts, with two of the chapters' observers."""
    sums = no_op.NormSums(encoder, DOCUMENTS)
    features = distance_features.Accumulator(encoder, DOCUMENTS, distance_features.random_halves(54, draws=3))
    batches = Batches(encoder, TEXTS, batch_size=1, max_length=12, overlong="truncate")
    sweeps.sweep(encoder, batches, sums, features)
    return sums, features, batches.truncated


def same(one, other):
    """Bit for bit."""
    means = [(a.rows, a.norm, b.all) for a, b, _ in (one, other)]
    for a, b in zip(*means, strict=True):
        assert np.array_equal(a.numerator, b.numerator) and np.array_equal(a.denominator, b.denominator)
    for name in ("halves", "even", "counts", "inputs", "tokens"):
        assert np.array_equal(getattr(one[1], name), getattr(other[1], name)), name
    assert (one[0].segments, one[2]) == (other[0].segments, other[2])


@pytest.fixture(scope="module")
def encoder(small_encoder):
    return small_encoder("bert")


@pytest.fixture(autouse=True)
def one_thread_and_small_parts(monkeypatch):
    for name in ("BOOK_WORKERS", "BOOK_DASK", "BOOK_SHARDS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BOOK_SHARD_BATCHES", "6")
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
def test_parts_add_up_to_the_whole(encoder, monkeypatch):
    in_parts = measured(encoder)
    monkeypatch.setenv("BOOK_SHARD_BATCHES", "1000")
    whole = measured(encoder)
    assert (in_parts[0].segments, in_parts[2]) == (54, whole[2]) and whole[2] > 0
    for a, b in ((in_parts[0].rows, whole[0].rows), (in_parts[1].all, whole[1].all)):
        np.testing.assert_allclose(a.numerator, b.numerator, atol=1e-9)
    seen = no_op.NormSums(encoder, DOCUMENTS)
    observed = []
    sweeps.sweep(
        encoder,
        Batches(encoder, TEXTS, batch_size=1, max_length=12, overlong="truncate"),
        seen,
        lambda batch, *_: observed.extend(batch.index),
    )
    assert sorted(observed) == sorted([*range(54)] * encoder.layers), "an observer that cannot be cut sees everything"
    np.testing.assert_allclose(seen.norm.numerator, whole[0].norm.numerator, atol=1e-9)


@pytest.mark.slow
def test_a_dask_cluster_measures_the_same(encoder, monkeypatch):
    from distributed import LocalCluster

    here = measured(encoder)
    where = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**where, silence_logs=50) as cluster:
        monkeypatch.setenv("BOOK_DASK", cluster.scheduler_address)
        same(measured(encoder), here)


def double(encoder, part, by=2):
    return part * by


def kept(encoder, part, *given):
    return 0


def test_each_keeps_the_order_and_reads_parts_as_needed(encoder, tmp_path, monkeypatch):
    read = []
    parts = (read.append(n) or n for n in range(5))
    found = shards.each(encoder, double, parts, 3)
    assert next(found) == 0 and read == [0]
    assert list(found) == [3, 6, 9, 12]
    monkeypatch.setenv("BOOK_SHARDS", str(tmp_path))
    assert list(shards.each(encoder, double, range(3))) == [0, 2, 4]
    assert list(shards.each(encoder, double, range(4))) == [0, 2, 4, 6], "three kept, one new"


def test_errors_of_the_measurement_and_of_its_parts_come_as_they_are(encoder, tmp_path, monkeypatch):
    def broken():
        yield 1
        raise NoWords("Input 1 is empty.")

    monkeypatch.setenv("BOOK_SHARDS", str(tmp_path))
    with pytest.raises(NoWords, match="Input 1 is empty"):
        list(shards.each(encoder, double, broken()))
    with pytest.raises(TypeError):
        list(shards.each(encoder, double, [None]))


def test_a_part_that_somebody_else_wrote_is_not_read(encoder, tmp_path, monkeypatch):
    """Reading a pickle runs what is in it, so only what this user has signed is opened."""
    monkeypatch.setenv("BOOK_SHARDS", str(tmp_path / "parts"))
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "mine"))

    def doubled():
        return list(shards.each(encoder, double, range(2), what="signed"))

    assert doubled() == [0, 2] == doubled()
    key = tmp_path / "mine" / "parts.key"
    assert key.stat().st_mode & 0o077 == 0 and [f.name for f in key.parent.iterdir()] == ["parts.key"]
    part = next((tmp_path / "parts").glob("*.part"))
    kept = part.read_bytes()
    for changed in (b"", kept[shards.SEAL :], bytes(shards.SEAL) + kept[shards.SEAL :], kept[:-1] + b"x"):
        part.write_bytes(changed)
        with pytest.raises(shards.ShardError, match=r"was not written by this user's runs .* Remove its folder"):
            doubled()
    part.write_bytes(kept)
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "another user's"))
    with pytest.raises(shards.ShardError, match="was not written by this user"):
        doubled()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("BOOK_WORKERS", "many", "BOOK_WORKERS='many': a whole number"),
        ("BOOK_DASK", "tcp://127.0.0.1:1", "no Dask scheduler at 'tcp://127.0.0.1:1'"),
    ],
)
def test_foreseen_errors(encoder, monkeypatch, name, value, says):
    monkeypatch.setattr(shards, "PATIENCE", "0.3s")
    monkeypatch.setenv(name, value)
    with pytest.raises(shards.ShardError, match=says):
        list(shards.each(encoder, double, [1, 2]))


def test_parts_are_kept_under_all_that_they_depend_on(encoder, small_encoder, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_SHARDS", str(tmp_path))

    def new(encoder, part=1, *given):
        """Whether a part is added to those on disk."""
        before = len(list(tmp_path.glob("*.part")))
        list(shards.each(encoder, kept, [part], *given))
        return len(list(tmp_path.glob("*.part"))) > before

    assert new(encoder) and not new(encoder), "kept"
    assert not new(small_encoder("bert")), "the same weights, loaded again"
    assert new(encoder, 2) and new(encoder, 1, 5)
    assert new(small_encoder("bert", layer_norm_eps=1e-3)), "the configuration"
    other = small_encoder("bert")
    with torch.no_grad():
        other.model.get_parameter("encoder.layer.1.attention.output.dense.bias")[0] += 1e-3
    assert new(other), "one weight"
    inputs = Batches(encoder, TEXTS[:6], batch_size=1)
    sums = no_op.NormSums(encoder, DOCUMENTS[:6])
    part = next(inputs.shards(6)), [sums.part(range(6))]
    assert new(encoder, part) and not new(encoder, (next(inputs.shards(6)), [sums.part(range(6))]))
    seeded = no_op.NormSums(encoder, DOCUMENTS[:6], seed=1)
    assert new(encoder, (part[0], [seeded.part(range(6))])), "the observer's seed"
    assert new(encoder, (replace(part[0], settings=part[0].settings | {"max_length": 9}), part[1])), (
        "the batches' settings"
    )


@pytest.mark.slow
def test_an_encoder_travels_by_name_or_as_it_is(encoder):
    minilm = encoders.load("minilm", device="cpu")
    named = shards.Portable.of(minilm, minilm.state)
    assert named.source == ("minilm", None, 0) and named.pickled is None
    assert named.encoder().state == named.state and named.encoder() is named.encoder()
    pruned = replace(minilm, max_length=64)
    assert shards.Portable.of(pruned, pruned.state).source is None, "not what loading gives any more"
    sent = shards.Portable.of(encoder, encoder.state)
    assert sent.source is None and sent.encoder().state == sent.state
    with pytest.raises(shards.ShardError, match="other weights on this worker"):
        replace(named, state="another").encoder()
    task = shards._Task(double, sent, (), "another version")
    with pytest.raises(shards.ShardError, match="another version of the helpers package"):
        task(0, 1)
    assert encoders.load("minilm@random", device="cpu").source == ("minilm@random", None, 0)

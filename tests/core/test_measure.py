"""A function of one text's maps over a corpus: the same numbers in any batch, any process, and after a run that was killed."""

import importlib
import linecache
import pickle
import sys

import cloudpickle
import numpy as np
import pytest
import torch

from helpers import attention, controls, encoders, parallel, tokens
from helpers.corpora.readers import Segment
from helpers.encoders import EncoderError
from helpers.tokens import TooLong

WORDS = ["the", "otter", ",", "dived", "with", "an", "unbelievable", "shell", "and", "came", "up", "."]
TEXTS = [[WORDS[(n + i) % len(WORDS)] for i in range(1 + 7 * n % 23)] for n in range(24)]


@pytest.fixture(scope="module")
def encoder(small_encoder):
    return small_encoder("bert")


def as_it_is(maps, text):
    return maps


def same(measured, expected, **tolerance):
    assert len(measured) == len(expected)
    for a, b in zip(measured, expected, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


def test_results_come_in_the_order_of_the_texts_whatever_batch_they_were_in(encoder):
    def number_and_length(maps, text):
        assert text.source is TEXTS[text.number]
        assert maps.shape == (encoder.layers, encoder.heads, len(text.tokens), len(text.tokens))
        return torch.tensor([text.number, len(text.words)])

    answers = attention.measure(encoder, TEXTS, number_and_length)
    assert [answer.tolist() for answer in answers] == [[n, len(words)] for n, words in enumerate(TEXTS)]
    alone = [attention.measure(encoder, [words], as_it_is)[0] for words in TEXTS]
    same(attention.measure(encoder, TEXTS, as_it_is), alone, atol=1e-6)
    assert attention.measure(encoder, [], as_it_is) == []
    with pytest.raises(TooLong, match="Input 1"):
        attention.measure(encoder, [["shell"], ["otter"] * 100], as_it_is)
    cut = attention.measure(encoder, [["shell"], ["otter"] * 100], as_it_is, longest=10)
    assert [maps.shape[-1] for maps in cut] == [3, 10]


def test_maps_are_those_of_a_batch(encoder):
    """Of tokens, of words (pieces summed and averaged, special tokens left out), and with shuffled scores."""
    texts = [
        *TEXTS,
        "don't 3.5 'x' 漢字? XYZ",
        ("One, two-three.", "Café é漢!"),
        (["given words", "b-c"], ["'", "9é"]),
    ]
    batch = tokens.encode(encoder, texts)
    maps = attention.maps(encoder, batch)
    for options in ({}, {"shuffled": True, "seed": 3}):
        by_token, by_word = (
            attention.measure(encoder, texts, as_it_is, units=units, **options) for units in ("tokens", "words")
        )
        for row, length in enumerate(batch.lengths):
            unpadded = maps[:, row, :, :length, :length]
            unpadded = controls.shuffled_maps(unpadded, row, seed=3) if options else unpadded
            np.testing.assert_allclose(by_token[row], unpadded, atol=1e-5)
            in_words = tokens.by_word(unpadded, tokens.EncodedText.of(batch, row, texts[row]))
            np.testing.assert_allclose(by_word[row], in_words, atol=1e-5)


def test_records_and_pairs_are_texts_too(encoder):
    def which(maps, text):
        return text.text

    pair = ("An otter dived.", "It came up.")
    [segment, plain] = attention.measure(encoder, [Segment(pair, 0), pair], which)
    assert segment.tolist() == plain.tolist() == [-1, *[0] * 5, -1, *[1] * 4, -1]


@pytest.fixture(autouse=True)
def in_this_process():
    """Where it runs is said to the whole process, so it is taken back."""
    yield
    parallel.use()


def counting(folder):
    """A function with two results that notes whom it has seen, and fails at text 16 while a file says so."""

    def function(maps, text):
        if text.number == 16 and (folder / "broken").exists():
            raise RuntimeError("killed")
        with (folder / "seen").open("a") as file:
            file.write(f"{text.number}\n")
        return {"sum": maps.sum(-1), "words": np.array(len(text.words))}

    return function


def kept(folder):
    """The results of finished parts."""
    return list(folder.rglob("output.pkl"))


def seen(folder):
    return sorted(map(int, (folder / "seen").read_text().split()))


def test_a_run_that_was_killed_goes_on_where_it_was(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(attention, "PART", 8)
    function, parts = counting(tmp_path), tmp_path / "parts"
    parallel.use(parts=parts)
    (tmp_path / "broken").touch()
    with pytest.raises(RuntimeError, match="killed"):
        attention.measure(encoder, TEXTS, function)
    assert set(range(16)) <= set(seen(tmp_path)) and len(kept(parts)) == 2
    (tmp_path / "broken").unlink()
    (tmp_path / "seen").unlink()
    first = attention.measure(encoder, TEXTS, function)
    assert seen(tmp_path) == [*range(16, 24)]
    again = attention.measure(encoder, TEXTS, function)
    assert seen(tmp_path) == [*range(16, 24)], "nothing is measured twice"
    parallel.use()
    fresh = attention.measure(encoder, TEXTS, function)
    for answers in (first, again):
        assert [answer["words"] for answer in answers] == [len(words) for words in TEXTS]
        same([answer["sum"] for answer in answers], [answer["sum"] for answer in fresh])


@pytest.mark.slow
def test_parts_of_another_measurement_are_not_read(encoder, small_encoder, tmp_path, monkeypatch):
    def files(by=encoder, texts=TEXTS[:2], function=as_it_is, **options):
        attention.measure(by, texts, function, **options)
        return len(kept(tmp_path))

    parallel.use(parts=tmp_path)
    assert files() == files() == files(small_encoder("bert")) == 1, "the same weights, loaded again"
    assert files(texts=TEXTS[1:3]) == 2 and files(function=lambda maps, text: maps[0]) == 3
    assert files(longest=5) == 4 and files(units="words") == 5 and files(shuffled=True) == 6
    assert files(shuffled=True, seed=1) == 7
    other = small_encoder("bert")
    with torch.no_grad():
        other.model.get_parameter("encoder.layer.1.attention.output.dense.bias")[0] += 1e-3
    assert files(other) == 8, "one weight"
    monkeypatch.setattr(parallel.places, "sha256", lambda *files: "of another version")
    assert files() == 9


def page(kernel, source):
    """The names of a notebook's cell, run in a kernel that no other cell has run in."""
    cell: dict = {"__name__": "__main__"}
    file = f"/tmp/ipykernel_{kernel}/1.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), cell)
    return cell


def test_parts_of_a_notebooks_function_are_found_by_another_kernel(encoder, tmp_path):
    """Also of one that calls another function of the page; not where either, or a number that it uses, is another."""
    source = "by = 2\n\ndef g(maps):\n    return by * maps\n\ndef f(maps, text):\n    return g(maps)\n"
    changes = [
        source,
        source,
        source + "\nunused = 1\n",
        source.replace("by = 2", "by = 3"),
        source.replace("by *", "by +"),
    ]
    counts = []
    parallel.use(parts=tmp_path)
    for kernel, changed in enumerate(changes):
        attention.measure(encoder, TEXTS[:2], page(kernel, changed)["f"])
        counts.append(len(kept(tmp_path)))
    assert counts == [1, 1, 1, 2, 3]


def test_parts_of_an_own_module_that_was_edited_are_measured_again(encoder, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module, scaled = tmp_path / "own_measure.py", []
    parallel.use(parts=tmp_path / "parts")
    for factor in (1, 100):
        module.write_text(
            f"def scale(maps):\n    return {factor} * maps\n\n\ndef f(maps, text):\n    return scale(maps)\n"
        )
        sys.modules.pop("own_measure", None)
        importlib.invalidate_caches()
        linecache.clearcache()
        own = importlib.import_module("own_measure")
        scaled.append(attention.measure(encoder, TEXTS[:1], own.f)[0])
    np.testing.assert_allclose(scaled[1], 100 * scaled[0], rtol=1e-6)


@pytest.mark.slow
def test_other_processes_and_a_cluster_find_the_same(encoder, tmp_path, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(attention, "PART", 8)
    scale = 2.0

    def scaled(maps, text):
        return scale * maps.sum((0, 1))

    here = attention.measure(encoder, TEXTS, scaled)
    parallel.use(jobs=2, parts=tmp_path)
    same(attention.measure(encoder, TEXTS, scaled), here, atol=1e-6)
    assert len(kept(tmp_path)) == 3
    where = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**where, silence_logs=50) as cluster:
        parallel.use(jobs=cluster.scheduler_address)
        same(attention.measure(encoder, TEXTS, scaled), here, atol=1e-6)


@pytest.mark.slow
def test_an_encoder_travels_by_its_name_or_with_its_weights(minilm, encoder):
    by_name = cloudpickle.dumps(minilm)
    assert len(by_name) < 2000 and pickle.loads(by_name).state == minilm.state
    edited = encoders.load("minilm", device="cpu")
    with torch.no_grad():
        next(edited.model.parameters())[0] += 1
    for changed in (edited, encoder):
        sent = cloudpickle.dumps(changed)
        assert len(sent) > 4 * changed.parameters and pickle.loads(sent).state == changed.state
    with pytest.raises(EncoderError, match="other weights on this worker"):
        encoders._loaded_again("minilm", None, 0, "cpu", "float32", "another state")


def test_a_function_returns_the_same_of_every_text(encoder):
    """A name that only later texts have would be lost unseen; a sum and its count of two shapes are no array."""

    def more_of_long_texts(maps, text):
        return {"a": 1} | ({"b": 2} if len(text.tokens) > 9 else {})

    def a_sum_and_a_count(maps, text):
        return [maps.sum((-1, -2)).tolist(), 1]

    with pytest.raises(ValueError, match="of the first a, of text 1 a, b"):
        attention.measure(encoder, TEXTS, more_of_long_texts)
    with pytest.raises(ValueError, match="have one shape"):
        attention.measure(encoder, TEXTS, a_sum_and_a_count)

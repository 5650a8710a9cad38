"""Parts of a measurement: the same numbers wherever they are measured, whatever dies on the way."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch

from helpers import places
from helpers.chapters import distance_features
from helpers.chapters.surface_patterns import measures as surface_patterns
from helpers.engine import attention, encoders, shards
from helpers.engine.tokens import Batches, NoWords

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
VICTIM = 30  # the input at which a worker dies


class Mortal(surface_patterns.Accumulator):
    """Chapter 02's accumulator, which kills the process it is in, once, while a file of this name exists."""

    flag: Path | None = None

    def __call__(self, batch, layer, probabilities, values):
        if self.flag is not None and layer == 1 and VICTIM in batch.index and self.flag.exists():
            self.flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        super().__call__(batch, layer, probabilities, values)


def measured(encoder, flag=None):
    """A pass over the corpus in nine parts, with two of the chapters' observers."""
    sums = Mortal(encoder, DOCUMENTS)
    sums.flag = flag
    features = distance_features.Accumulator(encoder, DOCUMENTS, distance_features.random_halves(54, draws=3))
    batches = Batches(encoder, TEXTS, batch_size=1, max_length=12, overlong="truncate")
    attention.sweep(encoder, batches, sums, features)
    return sums, features, batches.truncated


def same(one, other):
    """Bit for bit."""
    means = [(a.halves[0], a.halves[1], a.background, b.all) for a, b, _ in (one, other)]
    for a, b in zip(*means, strict=True):
        assert np.array_equal(a.numerator, b.numerator) and np.array_equal(a.denominator, b.denominator)
    for name in ("halves", "even", "counts", "inputs", "tokens"):
        assert np.array_equal(getattr(one[1], name), getattr(other[1], name)), name
    assert (one[0].segments, one[0].tokens, one[2]) == (other[0].segments, other[0].tokens, other[2])


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


@pytest.fixture
def flag(tmp_path):
    file = tmp_path / "die"
    file.touch()
    return Path(
        str(file)
    )  # from Python 3.13 on a path is pickled as it was put together, and another process has it in one piece


# ------------------------------------------------------------------ in this process


def test_parts_add_up_to_the_whole(encoder, monkeypatch):
    in_parts = measured(encoder)
    monkeypatch.setenv("BOOK_SHARD_BATCHES", "1000")
    whole = measured(encoder)
    assert (in_parts[0].segments, in_parts[2]) == (54, whole[2]) and whole[2] > 0
    for a, b in ((in_parts[0].halves[0], whole[0].halves[0]), (in_parts[1].all, whole[1].all)):
        np.testing.assert_allclose(a.numerator, b.numerator, atol=1e-9)
    seen = surface_patterns.Accumulator(encoder, DOCUMENTS)
    observed = []
    attention.sweep(
        encoder,
        Batches(encoder, TEXTS, batch_size=1, max_length=12, overlong="truncate"),
        seen,
        lambda batch, *_: observed.extend(batch.index),
    )
    assert sorted(observed) == sorted([*range(54)] * encoder.layers), "an observer that cannot be cut sees everything"
    np.testing.assert_allclose(seen.halves[1].numerator, whole[0].halves[1].numerator, atol=1e-9)


def test_shards_are_whole_windows_and_make_the_same_batches(encoder):
    batches = Batches(encoder, iter(TEXTS), batch_size=2, max_length=12, overlong="truncate")
    cut = [b for shard in batches.shards(7) for b in shard.batches(encoder)]
    whole = list(Batches(encoder, TEXTS, batch_size=2, max_length=12, overlong="truncate"))
    assert [b.index for b in cut] == [b.index for b in whole]
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(cut, whole, strict=True))
    assert [len(s.inputs) for s in Batches(encoder, TEXTS, batch_size=2).shards(7)] == [24, 24, 6]


def double(encoder, part, by=2):
    return part * by


def test_each_keeps_the_order_and_reads_parts_as_needed(encoder, tmp_path, monkeypatch):
    read = []
    parts = (read.append(n) or n for n in range(5))
    found = shards.each(encoder, double, parts, 3)
    assert next(found) == 0 and read == [0]
    assert list(found) == [3, 6, 9, 12]
    monkeypatch.setenv("BOOK_SHARDS", str(tmp_path))
    assert list(shards.each(encoder, double, range(3), what="doubling", total=3)) == [0, 2, 4]
    assert json.loads((tmp_path / shards.PROGRESS).read_text()) == {"what": "doubling", "done": 3, "total": 3}
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


def test_workers_and_threads_never_exceed_the_cores(monkeypatch):
    monkeypatch.setenv("BOOK_WORKERS", "64")
    monkeypatch.setattr(joblib, "cpu_count", lambda: 6)
    for threads, workers, each in (("6", 6, 1), ("1", 6, 1), ("", 6, 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        assert (shards.Plan.of_environment().workers, shards.Plan.of_environment().threads) == (workers, each)
    monkeypatch.setenv("BOOK_WORKERS", "2")
    assert shards.Plan.of_environment().threads == 3


# ------------------------------------------------------------------ what is kept


def test_keys_change_with_everything_that_matters(encoder, small_encoder, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_SHARDS", str(tmp_path))
    calls = []
    monkeypatch.setattr(sys.modules[__name__], "double", lambda *a: calls.append(a[1:]) or 0)
    double.__module__, double.__qualname__ = __name__, "double"

    def new(encoder, part=1, *given):
        before = len(calls)
        list(shards.each(encoder, double, [part], *given))
        return len(calls) > before

    assert new(encoder) and not new(encoder), "kept"
    assert not new(small_encoder("bert")), "the same weights, loaded again"
    assert new(encoder, 2) and new(encoder, 1, 5)
    assert new(small_encoder("bert", layer_norm_eps=1e-3)), "the configuration"
    other = small_encoder("bert")
    with torch.no_grad():
        other.model.get_parameter("encoder.layer.1.attention.output.dense.bias")[0] += 1e-3
    assert new(other), "one weight"
    inputs = Batches(encoder, TEXTS[:6], batch_size=1)
    sums = surface_patterns.Accumulator(encoder, DOCUMENTS[:6])
    part = next(inputs.shards(6)), [sums.part(range(6))]
    assert new(encoder, part) and not new(encoder, (next(inputs.shards(6)), [sums.part(range(6))]))
    seeded = surface_patterns.Accumulator(encoder, DOCUMENTS[:6], seed=1)
    assert new(encoder, (part[0], [seeded.part(range(6))])), "the observer's seed"
    assert new(encoder, (replace(part[0], settings=part[0].settings | {"max_length": 9}), part[1])), (
        "the batches' settings"
    )
    monkeypatch.setattr(shards, "code_digest", lambda: "another version")
    assert new(encoder), "the sources of the package"


@pytest.mark.journey
def test_a_killed_run_goes_on_where_it_stopped(encoder, tmp_path, flag, monkeypatch):
    """kill -9 of the whole process, in the middle; half-written files beside the finished ones."""
    expected = measured(encoder)
    kept = tmp_path / "parts"
    code = (
        # The package first: then no types are checked, which takes longer than all the rest
        f"import sys, helpers.places; sys.path[:0] = {[str(f) for f in Path(__file__).parents[:2]]!r}\n"
        "import conftest, test_shards; from pathlib import Path\n"
        "from transformers import AutoTokenizer; from helpers.engine import encoders, adapters\n"
        "tokenizer = AutoTokenizer.from_pretrained(encoders.KNOWN['minilm'].folder())\n"
        "small = encoders.wrap(conftest.small_model('bert'), tokenizer, name='small-bert', device='cpu')\n"
        f"test_shards.measured(small, Path({str(flag)!r}))"
    )
    settings = {"BOOK_SHARDS": str(kept), "BOOK_SHARD_BATCHES": "6", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=places.ROOT, env={**os.environ, **settings}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(kept.glob("*.part"))) == VICTIM // 6, "parts before the one that died"
    (kept / "half.tmp").write_bytes(b"written in part")
    again = []
    show = attention._show
    monkeypatch.setattr(attention, "_show", lambda *a: again.append(a) or show(*a))
    monkeypatch.setenv("BOOK_SHARDS", str(kept))
    # The flag's name is one of the observer's settings, so it must be the same for the parts to be found
    same(measured(encoder, flag), expected)
    assert len(again) == 9 - VICTIM // 6, "finished parts are not measured again"
    same(measured(encoder, flag), expected)
    assert len(again) == 9 - VICTIM // 6


# ------------------------------------------------------------------ elsewhere


@pytest.mark.journey
def test_two_processes_one_of_which_is_killed(encoder, flag, monkeypatch):
    expected = measured(encoder)
    monkeypatch.setenv("BOOK_WORKERS", "2")
    same(measured(encoder, flag), expected)
    assert not flag.exists(), "a process was killed"
    with pytest.raises(NoWords, match="Input 2 is empty"):
        attention.sweep(encoder, Batches(encoder, ["a", "b", " "]), surface_patterns.Accumulator(encoder, [0, 1, 2]))


@pytest.mark.journey
def test_a_dask_cluster_one_of_whose_workers_is_killed(encoder, flag, monkeypatch):
    import dask
    from distributed import LocalCluster
    from distributed.utils import get_mp_context

    expected = measured(encoder)
    where = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context()  # names its own modules to import before forking, so ours come after
        multiprocessing.set_forkserver_preload(
            [
                "distributed",
                "helpers.chapters.distance_features.measures",
                "helpers.chapters.surface_patterns.measures",
            ]
        )
        with LocalCluster(**where, silence_logs=50) as cluster:
            monkeypatch.setenv("BOOK_DASK", cluster.scheduler_address)
            same(measured(encoder, flag), expected)
    assert not flag.exists(), "a worker was killed"


class Cluster:
    """What a job asks of Dask's client, whose scheduler is killed when it is asked for the ``last`` time."""

    loop = None

    def __init__(self, error, last):
        self.error, self.last, self.closed = error, last, False

    def nthreads(self):
        self.last -= 1
        if self.last < 0:
            raise self.error
        return {"worker": 1}

    def submit(self, task, number, part, **_):
        return Future("finished", lambda: task(number, part))

    def close(self):
        self.closed = True
        raise self.error


@pytest.mark.parametrize("last", [0, 1, 2])
@pytest.mark.parametrize(
    "error", [OSError("Timed out trying to connect"), RuntimeError("Client not running"), CancelledError()]
)
def test_a_scheduler_that_was_killed_is_said(encoder, monkeypatch, error, last):
    import distributed

    cluster = Cluster(error, last)
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: cluster)
    monkeypatch.setattr(distributed, "as_completed", lambda loop: Queue())
    monkeypatch.setenv("BOOK_DASK", "tcp://far:8786")
    with pytest.raises(
        shards.ShardError, match=r"The Dask scheduler at 'tcp://far:8786' went away .*same command again"
    ):
        list(shards.each(encoder, double, range(20), what="parts"))
    assert cluster.closed


@dataclass(eq=False)
class Future:
    status: str
    result: Callable


class Queue(list):
    """Futures in the order in which they came."""

    add = list.append


def test_what_a_part_raises_on_a_cluster_comes_as_it_is(encoder, monkeypatch):
    import distributed

    def submit(self, *_, **__):
        def result():
            raise OSError("of the part")

        return Future("error", result)

    monkeypatch.setattr(Cluster, "submit", submit)
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: Cluster(OSError(), 9))
    monkeypatch.setattr(distributed, "as_completed", lambda loop: Queue())
    monkeypatch.setenv("BOOK_DASK", "tcp://far:8786")
    with pytest.raises(OSError, match="of the part"):
        list(shards.each(encoder, double, range(3), what="parts"))


def test_workers_that_die_again_and_again_are_an_error(encoder, monkeypatch):
    asked = []

    def dying(job, task):
        """Finishes a part at each call, until there is only part 3, at which every worker dies."""
        for number, part in job.waiting():
            asked.append(number)
            if number != 2:
                yield number, task.function(encoder, part)
            elif len(job.unfinished) == 1:
                break
        raise BrokenProcessPool("A process was terminated.")

    monkeypatch.setattr(shards._Job, "in_processes", dying)
    monkeypatch.setenv("BOOK_WORKERS", "2")
    found = shards.each(encoder, double, range(3), what="dying")
    assert [next(found), next(found)] == [0, 2]
    with pytest.raises(shards.ShardError, match=r"dying: workers died again and again over part 3 .*fewer workers"):
        next(found)
    assert asked.count(2) == shards.DEATHS + 1


def test_an_encoder_travels_by_name_or_as_it_is(encoder):
    minilm = encoders.load("minilm", device="cpu")
    named = shards.Portable.of(minilm, shards.state_of(minilm))
    assert named.source == ("minilm", None, 0) and named.pickled is None
    assert shards.state_of(named.encoder()) == named.state and named.encoder() is named.encoder()
    pruned = replace(minilm, max_length=64)
    assert shards.Portable.of(pruned, shards.state_of(pruned)).source is None, "not what loading gives any more"
    sent = shards.Portable.of(encoder, shards.state_of(encoder))
    assert sent.source is None and shards.state_of(sent.encoder()) == sent.state
    with pytest.raises(shards.ShardError, match="other weights on this worker"):
        replace(named, state="another").encoder()
    task = shards._Task(double, sent, (), "another version")
    with pytest.raises(shards.ShardError, match="another version of the helpers package"):
        task(0, 1)
    assert encoders.load("minilm@random", device="cpu").source == ("minilm@random", None, 0)

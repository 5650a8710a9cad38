"""Long measurements in parts: in this process, in several, or on a Dask cluster, with the same numbers each time.

:func:`each` maps a function over parts and gives the results in the parts' order. Where it runs is not the
chapter's business but the environment's (the command line sets it, see ``python -m helpers run --help``):

``BOOK_WORKERS``
    processes on this machine, through joblib.
``BOOK_DASK``
    address of a Dask scheduler; its workers, on any machine, do the work instead.
``BOOK_SHARDS``
    a folder in which every finished part is kept, so that a run that was killed goes on where it stopped.
``BOOK_SHARD_BATCHES``
    batches in a part of a corpus pass (default 24). Numbers depend on it only in their last bits.

The parts are the same wherever they run, and their results are put together in the same order, so the numbers are the
same bit for bit, as long as each process computes with as many threads and the same kind of processor.
"""

import hashlib
import hmac
import io
import os
import pickle
import secrets
import tempfile
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import torch

from helpers import DTYPES, encoders, places
from helpers.encoders import Encoder

BATCHES = 24  # in a part of a corpus pass: some seconds of work on a processor
PATIENCE = "20s"  # for a scheduler to answer
SEAL = 32  # bytes of a signature
DEATHS = 3  # workers that may die one after another, with nothing finished in between


class ShardError(places.BookError, RuntimeError):
    """The workers cannot do the work; the message says why and what to do next."""


@dataclass(frozen=True)
class Plan:
    """Where parts are measured, and where finished ones are kept.

    Attributes:
        workers: processes on this machine; 1 is the process itself.
        dask: address of a scheduler, or None.
        keep: folder for finished parts, or None.
    """

    workers: int = 1
    dask: str | None = None
    keep: Path | None = None

    @classmethod
    def of_environment(cls) -> "Plan":
        """What ``BOOK_WORKERS``, ``BOOK_DASK`` and ``BOOK_SHARDS`` say; never more processes than cores.

        Raises:
            ShardError: when ``BOOK_WORKERS`` is no number from 1.
        """
        dask, keep = (os.environ.get(name) or None for name in ("BOOK_DASK", "BOOK_SHARDS"))
        return cls(min(_number("BOOK_WORKERS", 1), joblib.cpu_count()), dask, keep and Path(keep))

    @property
    def threads(self) -> int:
        """Threads of each process: more threads than cores slow each other down many times over."""
        here = int(os.environ.get("OMP_NUM_THREADS") or joblib.cpu_count())
        return max(1, here // self.workers)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: small products do not gain from more, and their sums must not depend on the number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def batches_per_shard() -> int:
    """Batches in a part of a corpus pass."""
    return _number("BOOK_SHARD_BATCHES", BATCHES)


def _number(name: str, default: int) -> int:
    given = os.environ.get(name) or str(default)
    if not given.isdecimal() or int(given) < 1:
        raise ShardError(f"{name}={given!r}: a whole number from 1 is needed.")
    return int(given)


def each(
    encoder: Encoder,
    function: Callable[..., Any],
    parts: Iterable[Any],
    *given: Any,
    what: str = "parts",
    keep: Path | None = None,
) -> Iterator[Any]:
    """``function(encoder, part, *given)`` for each part, in the parts' order, wherever the environment says.

    Args:
        function: of a module, not a closure, so that another process can find it.
        parts: read as they are needed; results are few and small enough that some may wait for their turn.
        what: name of the measurement, for messages.
        keep: a folder for finished parts, if the environment names none.

    Raises:
        ShardError: when workers die again and again over the same parts, when the cluster cannot be reached, or when a
            worker has other weights or another version of this package. Errors of the function itself come as they are.
    """
    plan = Plan.of_environment()
    plan = replace(plan, keep=plan.keep or keep)
    if plan == Plan():
        yield from (function(encoder, part, *given) for part in parts)
    else:
        yield from _Job(encoder, function, parts, given, plan, what).results()


@dataclass(eq=False)
class _Job:
    """One call of :func:`each` under a plan."""

    encoder: Encoder
    function: Callable[..., Any]
    parts: Iterable[Any]
    given: tuple
    plan: Plan
    what: str
    done: int = 0  # parts whose results have been handed on
    unfinished: dict[int, Any] = field(default_factory=dict)  # handed out, no result yet
    finished: dict[int, Any] = field(default_factory=dict)  # results, or the files they are in, until their turn
    keys: dict[int, str] = field(default_factory=dict)
    broken: BaseException | None = None  # what reading the parts has raised

    def __post_init__(self) -> None:
        self.parts = enumerate(self.parts)
        self.state = self.encoder.state
        self.lock = threading.Lock()  # joblib reads parts in a thread of its own
        named = self.function.__module__, self.function.__qualname__
        self.common = joblib.hash(
            (code_digest(), *named, self.state, torch.__version__, self.given), hash_name="sha1"
        )

    def results(self) -> Iterator[Any]:
        for number, result in self.completed():
            self.unfinished.pop(number, None)
            self.finished[number] = self.kept(number, result)
            yield from self.in_turn()
        yield from self.in_turn()  # kept by an earlier run, after the last that was measured now
        if self.broken is not None:
            raise self.broken

    def in_turn(self) -> Iterator[Any]:
        """Finished parts' results, out of memory or out of their files, up to the first that is not there yet."""
        while self.done in self.finished:
            found = self.finished.pop(self.done)
            self.done += 1
            yield found if self.plan.keep is None else opened(found)

    def waiting(self) -> Iterator[tuple[int, Any]]:
        """Parts to measure: those lost with a worker first, then the next that no earlier run has kept."""
        yield from list(self.unfinished.items())
        while self.broken is None:
            with self.lock:
                try:
                    number, part = next(self.parts)
                except StopIteration:
                    return
                except BaseException as error:  # raised again where the results are read, not in joblib's thread
                    self.broken = error
                    return
                if self.plan.keep is not None:
                    self.keys[number] = hashlib.sha256((self.common + joblib.hash(part, "sha1")).encode()).hexdigest()
                    file = self.plan.keep / f"{self.keys[number]}.part"
                    if file.exists():
                        self.finished[number] = file
                        continue
                self.unfinished[number] = part
            yield number, part

    def kept(self, number: int, result: Any) -> Any:
        """Keep a result in its file, whole or not at all."""
        if self.plan.keep is None:
            return result
        file = self.plan.keep / f"{self.keys.pop(number)}.part"
        places.write(file, sealed(result))
        return file

    def completed(self) -> Iterator[tuple[int, Any]]:
        """Numbers and results as they come; what a dying worker takes with it is measured again."""
        if self.plan.workers == 1 and self.plan.dask is None:
            for number, part in self.waiting():
                yield number, self.function(self.encoder, part, *self.given)
            return
        task = _Task(self.function, Portable.of(self.encoder, self.state), self.given, code_digest())
        deaths = 0
        while True:
            try:
                for number, result in self.on_cluster(task) if self.plan.dask else self.in_processes(task):
                    deaths = 0
                    yield number, result
                return
            except BrokenProcessPool as error:
                deaths += 1
                if deaths > DEATHS:
                    raise ShardError(_died(self.what, self.unfinished, str(error).split("\n")[0])) from None

    def in_processes(self, task: "_Task") -> Iterator[tuple[int, Any]]:
        pool = joblib.Parallel(
            self.plan.workers,
            backend="loky",
            inner_max_num_threads=self.plan.threads,
            max_nbytes=None,
            return_as="generator_unordered",
            batch_size=1,
        )
        yield from pool(joblib.delayed(task)(number, part) for number, part in self.waiting())

    def on_cluster(self, task: "_Task") -> Iterator[tuple[int, Any]]:
        """Dask's scheduler gives a dead worker's parts to another; one that kills several workers is an error."""
        with places.extra("long", "A Dask cluster"):
            from distributed import Client

        try:
            client = Client(self.plan.dask, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ShardError(
                f"There is no Dask scheduler at {self.plan.dask!r} ({type(error).__name__}). Start one with 'dask scheduler', "
                "workers with 'dask worker ADDRESS', and give the address that the scheduler prints."
            ) from None
        try:
            yield from self.through(client, task)
        finally:
            with suppress(OSError, RuntimeError, CancelledError):  # nobody may be there to say goodbye to
                client.close()

    def through(self, client: Any, task: "_Task") -> Iterator[tuple[int, Any]]:
        """Hand parts to a cluster and take what it finishes, until all is done or its scheduler is gone."""
        from distributed import KilledWorker, as_completed

        source, flying, running = self.waiting(), {}, as_completed(loop=client.loop)

        def fill() -> None:
            most = 2 * max(4, sum(client.nthreads().values()))  # what waits lets an adaptive cluster grow
            while len(flying) < most and (following := next(source, None)) is not None:
                name = f"{self.what}-{following[0]}-{uuid.uuid4().hex}"
                future = client.submit(task, *following, key=name, pure=False)
                flying[future] = following[0]
                running.add(future)

        with self.reached():
            fill()
        for future in running:
            number = flying.pop(future)
            try:
                result = future.result()
            except KilledWorker as error:
                raise ShardError(_died(self.what, [number], str(error).split("\n")[0])) from None
            except Exception:
                if future.status == "error":  # what the part itself has raised
                    raise
                with self.reached():
                    raise
            yield result
            with self.reached():
                fill()

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Whatever goes wrong in here, the scheduler cannot be reached any more."""
        try:
            yield
        except (OSError, RuntimeError, CancelledError) as error:
            raise ShardError(
                f"The Dask scheduler at {self.plan.dask!r} went away ({str(error) or type(error).__name__}). What is finished "
                "is kept; start a cluster and give the same command again."
            ) from None


def sealed(result: Any) -> bytes:
    """A result as it is kept: pickled, and signed with this user's key, since reading a pickle runs what is in it."""
    packed = io.BytesIO()
    joblib.dump(result, packed, compress=1)
    return hmac.digest(_key(), packed.getvalue(), "sha256") + packed.getvalue()


def opened(file: Path) -> Any:
    """The result in a file that :func:`sealed` made for this user.

    Raises:
        ShardError: when somebody else wrote it, or it was changed.
    """
    content = file.read_bytes()
    seal, packed = content[:SEAL], content[SEAL:]
    if not hmac.compare_digest(seal, hmac.digest(_key(), packed, "sha256")):
        raise ShardError(
            f"{file} was not written by this user's runs (its signature is another), and reading it could run anything. "
            "Remove its folder; the parts are measured again."
        )
    return joblib.load(io.BytesIO(packed))


def _key() -> bytes:
    """The secret that this user's parts are signed with, made when it is first needed; nobody else may read it."""
    file = places.cache() / "parts.key"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, mine = tempfile.mkstemp(dir=file.parent)  # for this user alone
        with os.fdopen(handle, "wb") as written:
            written.write(secrets.token_bytes(SEAL))
        with suppress(FileExistsError):
            os.link(mine, file)  # whole at once; of several processes the first makes it
        Path(mine).unlink()
    return file.read_bytes()


def _died(what: str, numbers: Iterable[int], why: str) -> str:
    listed = ", ".join(str(n + 1) for n in sorted(numbers)[:8])
    return (
        f"{what}: workers died again and again over part {listed} ({why}). Most often the memory is too small: use fewer "
        "workers, or smaller batches. What is finished is kept; the same command goes on from there."
    )


@dataclass(frozen=True)
class Portable:
    """An encoder on its way to another process: how to load it there, or all of it where it cannot be loaded.

    Attributes:
        state: digest of weights, head and tokenizer, checked on arrival.
        source: what :func:`helpers.encoders.load` was given.
        device: where it shall compute; ``auto`` if it was on this machine's best device.
        dtype: what it shall compute in.
        pickled: the encoder itself, when loading does not give the same one, as after an edit of its weights.
    """

    state: str
    source: tuple[str, str | None, int] | None
    device: str
    dtype: str
    pickled: bytes | None

    @classmethod
    def of(cls, encoder: Encoder, state: str) -> "Portable":
        device = "auto" if encoder.device == encoders.best_device() else str(encoder.device)
        dtype = str(encoder.dtype).removeprefix("torch.")
        if encoder.source is not None and dtype in DTYPES and _loads_as(*encoder.source, dtype) == state:
            return cls(state, encoder.source, device, dtype, None)
        return cls(state, None, device, dtype, cloudpickle.dumps(encoder))

    def encoder(self) -> Encoder:
        """The encoder, kept in this process for the next part."""
        if self.state in _ENCODERS:
            _ENCODERS.move_to_end(self.state)
            return _ENCODERS[self.state]
        if self.pickled is not None:
            sent: Encoder = pickle.loads(self.pickled)
            device = encoders.best_device() if self.device == "auto" else torch.device(self.device)
            found = replace(sent, model=sent.model.to(device), head=sent.head and sent.head.to(device))
        else:
            name, task, seed = self.source  # type: ignore[misc]
            found = encoders.load(name, task=task, seed=seed, device=self.device, dtype=self.dtype)
            if found.state != self.state:
                raise ShardError(
                    f"{name!r} has other weights on this worker than where the run was started. Give all machines the same "
                    "files (BOOK_CACHE, BOOK_ADAPTERS)."
                )
        _ENCODERS[self.state] = found
        while len(_ENCODERS) > 2:
            _ENCODERS.popitem(last=False)
        return found


_ENCODERS: "OrderedDict[str, Encoder]" = OrderedDict()
_ONE_AT_A_TIME = threading.Lock()  # a Dask worker may have several threads, but a model has one tap


@dataclass(frozen=True)
class _Task:
    """What travels to a worker."""

    function: Callable[..., Any]
    model: Portable
    given: tuple
    code: str

    def __call__(self, number: int, part: Any) -> tuple[int, Any]:
        if self.code != code_digest():
            raise ShardError(
                "The worker has another version of the helpers package than the run: the same checkout must be installed on "
                "all machines, and not be edited during a run. The same command goes on."
            )
        with _ONE_AT_A_TIME:
            return number, self.function(self.model.encoder(), part, *self.given)


@cache
def code_digest() -> str:
    """Digest of this package's code, but for what draws, asks and compares."""
    package, apart = places.HOME / "helpers", {"figures", "plots", "views", "drawing", "exercises", "tables"}
    files = (f for f in package.rglob("*.py") if apart.isdisjoint(f.relative_to(package).with_suffix("").parts))
    return places.sha256(*sorted(files))


@lru_cache(maxsize=4)
def _loads_as(name: str, task: str | None, seed: int, dtype: str) -> str:
    """The state of what loading gives."""
    return encoders.load(name, task=task, seed=seed, device="cpu", dtype=dtype).state

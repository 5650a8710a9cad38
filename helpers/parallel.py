"""A function over the parts of a long measurement: in this process, in several, or on a Dask cluster, with the same numbers each time.

joblib does the work. Where it is done is the caller's to say, or the command line's, which tells the kernels of chapters by ``BOOK_WORKERS``
(processes), ``BOOK_DASK`` (address of a scheduler) and ``BOOK_PARTS`` (folder in which finished parts are kept).
"""

import os
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import cloudpickle
import joblib
import torch

from helpers import places
from helpers.encoder import Encoder

_ONE_AT_A_TIME = threading.Lock()  # a Dask worker may have several threads, but a model has one tap


def each(
    encoder: Encoder,
    function: Callable[..., Any],
    parts: Iterable[Any],
    *given: Any,
    jobs: int | str | None = None,
    keep: Path | str | None = None,
) -> Iterator[Any]:
    """``function(encoder, part, *given)`` for each part, in the parts' order.

    Args:
        function: of a module; what is ``given`` to it may be functions of a notebook.
        parts: read as they are needed.
        jobs: processes on this machine, or the address of a Dask scheduler (default: what the environment says, or
            :class:`joblib.parallel_config`, else this process).
        keep: a folder for the results of finished parts, so that a run that was killed goes on; a part is known by the encoder's
            state, the code of this package and of the notebook's functions, what is given to them, and the part itself. Name a folder that only
            you can write to: results are pickles.

    Raises:
        EncoderError: when a worker has other weights. Errors of the function come as they are.
    """
    keep = keep or os.environ.get("BOOK_PARTS")
    run, what = _run, None
    if keep is not None:
        run = joblib.Memory(keep, verbose=0).cache(_run, ignore=["encoder", "function", "given"])
        codes = [_code_of(one) if callable(one) else one for one in (function, *given)]
        what = joblib.hash((encoder.state, _package(), codes))
    with _where(jobs or os.environ.get("BOOK_DASK") or int(os.environ.get("BOOK_WORKERS") or 0) or None):
        sent = encoder if joblib.effective_n_jobs(None) == 1 else cloudpickle.dumps(encoder)
        work = (joblib.delayed(run)(what, part, sent, function, given) for part in parts)
        yield from joblib.Parallel(return_as="generator")(work)


@contextmanager
def _where(jobs: int | str | None) -> Iterator[None]:
    """Where joblib works inside the block: in processes, or through a client of a Dask scheduler that is closed afterwards."""
    if not isinstance(jobs, str):
        with joblib.parallel_config(n_jobs=jobs):
            yield
        return
    from distributed import Client

    with Client(jobs, set_as_default=False) as client, joblib.parallel_config("dask", client=client, n_jobs=-1):
        yield


def _run(what: str | None, part: Any, encoder: Encoder | bytes, function: Callable[..., Any], given: tuple) -> Any:
    """The function's result for one part, in whichever process this is; ``what`` tells kept results apart."""
    if isinstance(encoder, bytes):
        encoder = _arrived(encoder)
    with _ONE_AT_A_TIME:
        return function(encoder, part, *given)


@lru_cache
def _package() -> str:
    """Digest of this package's code."""
    return places.sha256(*sorted(Path(__file__).parent.rglob("*.py")))


@lru_cache(maxsize=2)
def _arrived(pickled: bytes) -> Encoder:
    """An encoder that was sent to this process, kept for the next part."""
    return pickle.loads(pickled)


def _code_of(function: Callable[..., Any]) -> bytes:
    """What tells a function from others: of a module its name, else its code with all that it refers to, wherever it stood.

    A notebook's cell has another name in every kernel.
    """
    named = getattr(function, "__qualname__", "<locals>")
    of_module = function.__module__ != "__main__" and "<locals>" not in named
    if of_module or not isinstance(function, FunctionType):
        return cloudpickle.dumps(function)
    given = (function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    return cloudpickle.dumps(FunctionType(_placeless(function.__code__), *given))


def _placeless(code: CodeType) -> CodeType:
    parts = tuple(_placeless(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_filename="", co_firstlineno=1, co_linetable=b"", co_consts=parts)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: small products do not gain from more, and their sums must not depend on the number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

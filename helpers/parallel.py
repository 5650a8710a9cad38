"""A function over the parts of a long measurement: in this process, in several, or on a Dask cluster, with the same numbers each time.

joblib does the work. Where it is done is the caller's to say, or the command line's, which tells the kernels of chapters by ``BOOK_WORKERS``
(processes), ``BOOK_DASK`` (address of a scheduler) and ``BOOK_PARTS`` (folder in which finished parts are kept).
"""

import dis
import inspect
import os
import pickle
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle
import joblib

from helpers import places
from helpers.encoder import Encoder

_ONE_AT_A_TIME = threading.Lock()  # a Dask worker may have several threads, but a model has one tap


_WHERE: dict[str, Any] = {"jobs": None, "parts": None}


def use(*, jobs: int | str | None = None, parts: Path | str | None = None) -> None:
    """Say, for all that follows, where long measurements run and where their finished parts are kept.

    Args:
        jobs: processes on this machine, or the address of a Dask scheduler (default: what the environment says, or
            :class:`joblib.parallel_config`, else this process).
        parts: a folder for the results of finished parts, so that a run that was killed goes on; a part is known by the encoder's
            state, the code of this package, the sources of functions of a notebook or of own modules with all that they use, what is given to
            them, and the part itself. Name a folder that only you can write to: results are pickles.
    """
    _WHERE.update(jobs=jobs, parts=parts)


def each(encoder: Encoder, function: Callable[..., Any], parts: Iterable[Any], *given: Any) -> Iterator[Any]:
    """``function(encoder, part, *given)`` for each part, in the parts' order; where, says :func:`use`.

    Args:
        function: of a module; what is ``given`` to it may be functions of a notebook.
        parts: read as they are needed.

    Raises:
        EncoderError: when a worker has other weights. Errors of the function come as they are.
    """
    keep = _WHERE["parts"] or os.environ.get("BOOK_PARTS")
    run, what = _run, None
    if keep is not None:
        run = joblib.Memory(keep, verbose=0).cache(_run, ignore=["encoder", "function", "given"])
        package = places.sha256(*sorted(Path(__file__).parent.rglob("*.py")))
        what = joblib.hash((encoder.state, package, _told((function, given), set())))
    jobs = _WHERE["jobs"] or os.environ.get("BOOK_DASK") or int(os.environ.get("BOOK_WORKERS") or 0) or None
    with ExitStack() as closing:
        if isinstance(jobs, str):  # the address of a scheduler, whose client is closed afterwards
            from distributed import Client

            client = closing.enter_context(Client(jobs, set_as_default=False))
            closing.enter_context(joblib.parallel_config("dask", client=client, n_jobs=-1))
        else:
            closing.enter_context(joblib.parallel_config(n_jobs=jobs))
        sent = encoder if joblib.effective_n_jobs(None) == 1 else cloudpickle.dumps(encoder)
        work = (joblib.delayed(run)(what, part, sent, function, given) for part in parts)
        yield from joblib.Parallel(return_as="generator")(work)


def _run(what: str | None, part: Any, encoder: Encoder | bytes, function: Callable[..., Any], given: tuple) -> Any:
    """The function's result for one part, in whichever process this is; ``what`` tells kept results apart."""
    if isinstance(encoder, bytes):
        encoder = _arrived(encoder)
    with _ONE_AT_A_TIME:
        return function(encoder, part, *given)


_arrived = lru_cache(maxsize=2)(pickle.loads)  # an encoder that was sent to this process is kept for the next part


def _told(thing: Any, seen: set[int]) -> Any:
    """What tells a function, or whatever it uses, from others: of a page or of a reader's own module its source, with all that it names in turn.

    What installed libraries and this package define is known by its name, and the package by the digest of its code.
    """
    if isinstance(thing, Mapping):
        return [(key, _told(value, seen)) for key, value in thing.items()]
    if isinstance(thing, list | tuple):
        return [_told(item, seen) for item in thing]
    if isinstance(thing, partial):
        return _told((thing.func, thing.args, thing.keywords), seen)
    thing = inspect.unwrap(thing) if callable(thing) else thing
    if not isinstance(thing, ModuleType | FunctionType | type | BuiltinFunctionType):
        return thing
    module = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    named = f"{module}.{getattr(thing, '__qualname__', '')}"
    file = getattr(sys.modules.get(module), "__file__", None)
    libraries = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    known = file is None or module.split(".")[0] == "helpers" or file.startswith(libraries)
    if id(thing) in seen or (known and module != "__main__"):
        return named
    seen.add(id(thing))
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        used = [thing.__globals__.get(name) for name in sorted(_globals(thing.__code__))]
        return inspect.getsource(thing), _told([*used, *cells, thing.__defaults__, thing.__kwdefaults__ or {}], seen)
    parts = sorted((name, part) for name, part in vars(thing).items() if not name.startswith("__"))
    return named, _told([part for _, part in parts if isinstance(part, ModuleType | FunctionType | type)], seen)


def _globals(code: CodeType) -> set[str]:
    """Names of globals that code loads, and the functions inside it."""
    inner = [_globals(part) for part in code.co_consts if isinstance(part, CodeType)]
    loaded = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return loaded.union(*inner)

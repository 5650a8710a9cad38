"""A process of its own for code that nobody has read: what it can see, how long it may run, how much it may use.

On Linux the process gets namespaces of its own (``unshare``, of util-linux, as the user who grades; no other rights are
needed): a file system that holds Python, its libraries and the folders named, all read-only, and an empty folder to work
in; no network, not even this machine's own; no sight of other processes. It cannot take back any of it. Everywhere, its
time, memory, output and number of processes are bounded from outside.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

LONGEST = 16 << 20
"""Bytes of a report that are read."""
MOST_PROCESSES = 32
EVERY = 0.05
"""Seconds between two looks at what a process uses."""

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_TOOLS = ("unshare", "mount", "umount", "pivot_root", "setpriv", "sh")
_SPACES = ("--user", "--map-root-user", "--net", "--pid", "--mount", "--ipc", "--uts", "--fork", "--kill-child")
_ENTER = """
set -e
new=$1 size=$2
shift 2
mount -t tmpfs -o "size=$size,mode=755" tmpfs "$new"
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir -p "$new$2"; else mkdir -p "$new${2%/*}"; : > "$new$2"; fi
  mount --bind "$1" "$new$2"
  [ -c "$1" ] || mount -o remount,bind,ro,nosuid,nodev "$new$2"
  shift 2
done
shift
mkdir -p "$new/proc" "$new/tmp" "$new/left"
mount -t proc proc "$new/proc" || true
cd "$new"
pivot_root . left
umount -l /left
cd /tmp
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom")


@dataclass(frozen=True)
class Limits:
    """What a process may use: seconds on the clock, bytes of memory."""

    seconds: float = 20
    memory: int = 2 << 30


@dataclass(frozen=True)
class Outcome:
    """What a process has written, the seconds it took, and why it was ended, if it was."""

    report: bytes
    seconds: float
    ended: str = ""


@cache
def isolated() -> bool:
    """Whether processes can be shut in here: namespaces and the tools for them are there, and it was tried."""
    if not all(shutil.which(tool, path=_PATH) for tool in _TOOLS):
        return False
    return run(["-c", "print(1)"], b"", {}, Limits(20), shut_in=True).report.strip() == b"1"


def said(shut_in: bool) -> str:
    """What isolation is given, and what is not, for people."""
    if shut_in:
        return (
            "Each function runs in a process and namespaces of its own: no network; it sees Python, its libraries and the "
            "book without its answers, read-only, and no other submission; time, memory, output and number of processes "
            "are bounded. Not given: a kernel of its own. Whoever can break out of Linux's namespaces can break out of these."
        )
    return (
        "Each function runs in a process of its own with bounds on time, memory and output, and Python opens no connection "
        "for it. NOT given here: it can read and delete whatever you can, and other means than Python's sockets reach the "
        "network."
    )


def run(
    arguments: Sequence[str], given: bytes, folders: Mapping[Path, str], limits: Limits, *, shut_in: bool
) -> Outcome:
    """Run Python with arguments and what it reads from its standard input, and bring back what it writes.

    Args:
        folders: each shown read-only under another path (``shut_in``), where the first is looked for modules.
        shut_in: in namespaces of its own; else with bounds only.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        command = [sys.executable, *arguments]
        if shut_in:
            command = _entering(Path(scratch), folders, limits) + command
        home = "/tmp" if shut_in else scratch
        modules = next(iter(folders.values() if shut_in else map(str, folders)), "")
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=scratch,
            env=_environment(home, modules),
            start_new_session=True,
        )
        report, ended = _watched(process, given, limits, start)
        return Outcome(report, time.monotonic() - start, ended)


def _environment(home: str, modules: str) -> dict[str, str]:
    """Nothing of the grader's own but what numerical libraries need to know of the processor."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    fixed = {"PATH": _PATH, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return kept | fixed | {"HOME": home, "TMPDIR": home, "PYTHONPATH": modules, "TQDM_DISABLE": "1"}


def _entering(scratch: Path, folders: Mapping[Path, str], limits: Limits) -> list[str]:
    """The command that makes the namespaces; Python's own folders stand where they are."""
    python = {sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parents[1])}
    own = [place for place in sorted(python) if not place.startswith("/usr/") and place != "/usr"]
    shown = [(place, place) for place in (*_SYSTEM, *own) if Path(place).exists()]
    shown += [(str(folder), place) for folder, place in folders.items()]
    size = str(min(limits.memory, 64 << 20))
    places = [place for both in shown for place in both]
    return ["unshare", *_SPACES, "sh", "-c", _ENTER, "sh", str(scratch), size, *places, "--"]


def _watched(process: subprocess.Popen, given: bytes, limits: Limits, start: float) -> tuple[bytes, str]:
    """Hand a process its input, read its report, and end it when it goes beyond its limits."""
    report: list[bytes] = []
    threads = [
        threading.Thread(target=_feed, args=(process, given), daemon=True),
        threading.Thread(target=lambda: report.append(process.stdout.read(LONGEST + 1)), daemon=True),
    ]
    for thread in threads:
        thread.start()
    ended = ""
    while process.poll() is None and not ended:
        time.sleep(EVERY)
        ended = _beyond(process.pid, limits, time.monotonic() - start, report)
    _end(process)
    threads[1].join(timeout=5)
    return (report[0] if report else b""), ended


def _feed(process: subprocess.Popen, given: bytes) -> None:
    with suppress(OSError):  # it has ended before it had read all
        process.stdin.write(given)
        process.stdin.close()


def _beyond(pid: int, limits: Limits, passed: float, report: list[bytes]) -> str:
    """Which limit a process, with all that it has started, is beyond."""
    if passed > limits.seconds:
        return f"it did not end within {limits.seconds:g} seconds."
    if report and len(report[0]) > LONGEST:
        return "its result is too large."
    count, memory = _used(pid)
    if count > MOST_PROCESSES:
        return f"it started more than {MOST_PROCESSES} processes."
    return f"it used more than {limits.memory / 2**30:.2g} GiB of memory." if memory > limits.memory else ""


def _used(pid: int) -> tuple[int, int]:
    """How many processes run under one, and the bytes of memory of all."""
    try:
        every = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return 0, 0
    return len(every), sum(map(_memory, every[:MOST_PROCESSES]))


def _memory(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def _end(process: subprocess.Popen) -> None:
    """End a process and its group; in namespaces of its own, all that it has started ends with it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

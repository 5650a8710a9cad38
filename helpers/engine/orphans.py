"""Processes that end when the one that wanted them is gone, even if that was killed and could not say so."""

import os
import signal
import threading
import time
from functools import cache

import psutil

LOOK = 1.0
"""Seconds between two looks."""


@cache
def end_with(parent: int) -> None:
    """From now on, end this process at once when ``parent``, the process that started it, is gone.

    With it ends its group, if it leads one, as kernels do.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def beginning() -> str:
    """What ``python -c`` may begin with, in any folder, to run no longer than this process."""
    return f"import runpy; runpy.run_path({__file__!r})['end_with']({os.getpid()}); "


def _watch(parent: int) -> None:
    # Elsewhere a launcher may stand between the two, and the number of a parent never changes
    posix = os.name == "posix"
    while os.getppid() == parent if posix else psutil.pid_exists(parent):
        time.sleep(LOOK)
    if posix and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)

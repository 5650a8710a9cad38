"""A process that is tied to its parent: Linux kills it when that ends, even in the middle of an import.

The server of kernels (:mod:`helpers.run.kernels`) imports this before its libraries, with :data:`AT_ONCE` set. A thread that
watches, as in :mod:`helpers.engine.orphans`, has to wait for the interpreter, and would be lost in every fork; forks tie themselves.
"""

import ctypes
import os
import signal
import sys

AT_ONCE = "BOOK_TIED"
"""The environment variable that makes an import of this module tie the process; without it an import does nothing."""

PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def tie() -> None:
    """Let this process be killed when the thread that started it ends; elsewhere than on Linux, nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if os.environ.get(AT_ONCE):
    tie()

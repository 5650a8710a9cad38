"""A process that imports this is tied to its parent: Linux kills it when that ends, even in the middle of an import.

The server of kernels (:mod:`helpers.run.kernels`) imports it before its libraries. A thread that watches, as in
:mod:`helpers.engine.orphans`, has to wait for the interpreter, and would be lost in every fork; forks tie themselves.
"""

import ctypes
import signal

PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def tie() -> None:
    """Let this process be killed when the thread that started it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


tie()

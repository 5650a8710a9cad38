"""Kernels for the chapters: no ports that two of them could both pick, and a start that is half a second, not five.

Most of the time until a chapter's first number is the import of torch, transformers and their company. A process that runs
several chapters imports them once, in a server that computes nothing, and each kernel is a fork of that server: an
ordinary IPython kernel in every other respect, which begins with these libraries loaded and with nothing of this package.
"""

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from multiprocessing import context, forkserver, get_context, parent_process
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from helpers.engine import orphans
from helpers.run import tied

LOADED = """
    helpers.run.tied conllu ipykernel.kernelapp jaxtyping joblib matplotlib.backends.backend_agg matplotlib.figure
    matplotlib.font_manager peft platformdirs pyarrow.parquet scipy.stats sklearn.cluster
    sklearn.decomposition sklearn.linear_model sklearn.manifold sklearn.pipeline torch
    transformers transformers.models.auto.modeling_auto transformers.models.bert.modeling_bert
""".split()  # noqa: SIM905
"""What kernels find imported: libraries that most chapters need. ``helpers`` itself keeps a warning of tqdm's quiet; none of its
modules but the first is here, for they may change while the server runs."""

AT_IMPORT = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "TQDM_DISABLE": "1", tied.AT_ONCE: "1"}
"""Settings that matplotlib, tqdm and :mod:`helpers.run.tied` read when they are imported."""


UNWATCHED = "--IPKernelApp.parent_handle=1"
"""IPython's own watch is off: it would end the kernel without its workers."""


FOLDER = "book-kernel-"


@cache
def _sweep() -> None:
    """Remove the folders that killed processes of this user left behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*-*"):
        owner = folder.name.removeprefix(FOLDER).partition("-")[0]
        with suppress(OSError):
            if owner.isdecimal() and not psutil.pid_exists(int(owner)) and folder.stat().st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)


class Kernel(AsyncKernelManager):
    """A kernel that is reached through files of a folder of its own where the system has them, else through ports.

    Attributes:
        peak: most memory, in MiB, that the last kernel to end in this process has had; 0 where the system does not tell.
    """

    peak = 0

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if os.name == "posix":
            _sweep()
            self._folder = tempfile.TemporaryDirectory(prefix=f"{FOLDER}{os.getpid()}-")
            self.transport = "ipc"
            self.connection_file = str(Path(self._folder.name) / "k.json")

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """A kernel that is no fork ends with this process as well, even if that ends while the kernel is still starting."""
        command = super().format_kernel_cmd(extra_arguments)
        if _Forked.server is not None or "-m" not in command:
            return command
        at = command.index("-m")
        begin = f"{orphans.beginning()}runpy.run_module({command[at + 1]!r}, run_name='__main__', alter_sys=True)"
        return [*command[:at], "-c", begin, *command[at + 2 :], UNWATCHED]

    async def interrupt_kernel(self) -> None:
        """Nothing: a shutdown interrupts first, and a kernel that has done its work leaves that to its workers to complain of."""

    _async_interrupt_kernel = interrupt_kernel

    async def request_shutdown(self, restart: bool = False) -> None:
        """Look first how much memory the kernel has had."""
        Kernel.peak = peak(self.provisioner.pid)
        await super()._async_request_shutdown(restart)

    _async_request_shutdown = request_shutdown

    def cleanup_resources(self, restart: bool = False) -> Any:
        done = super().cleanup_resources(restart)
        if not restart and os.name == "posix":
            self._folder.cleanup()
        return done


def peak(process: int) -> int:
    """Most memory in MiB that a process that runs has held; 0 where the system does not tell."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process}/status").read_text())
        return round(int(found[1]) / 1024) if found else 0
    return 0


def warm_up() -> None:
    """Let this process start its kernels as forks from now on, where that is safe: on Linux."""
    if sys.platform != "linux" or _Forked.server is not None:
        return
    with patch.dict(os.environ, AT_IMPORT):
        _Forked.server = get_context("forkserver")
        _Forked.server.set_forkserver_preload(LOADED)
        forkserver.ensure_running()
    factory = KernelProvisionerFactory.instance()
    factory.provisioners["forked"] = EntryPoint("forked", f"{__name__}:_Provisioner", factory.GROUP_NAME)
    factory.default_provisioner_name = "forked"


class _Provisioner(LocalProvisioner):
    """Starts a kernel as a fork."""

    async def launch_kernel(self, cmd: list[str], **given: Any) -> dict[str, Any]:
        self.cwd = str(given.get("cwd") or Path.cwd())
        self.process = _Forked(cmd[cmd.index("-m") + 2 :], self.cwd, given.get("env") or os.environ)
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class _Forked:
    """What the provisioner needs of ``subprocess.Popen``, for a fork of the server."""

    server: context.ForkServerContext | None = None
    stdin = stdout = stderr = None

    def __init__(self, arguments: list[str], folder: str, environment: Mapping[str, str]) -> None:
        self._process = self.server.Process(target=_serve, args=(arguments, folder, dict(environment)))
        self._process.start()
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def _serve(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be a kernel, in a process of its own."""
    tied.tie()
    os.setsid()  # as a kernel that is started: Ctrl-C is its parent's business
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = [find_spec("ipykernel_launcher").origin, *arguments]
    from ipykernel.kernelapp import IPKernelApp

    try:
        IPKernelApp.launch_instance([*arguments, UNWATCHED])
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves without


def _end_with_parent() -> None:
    parent_process().join()
    os.killpg(0, signal.SIGKILL)

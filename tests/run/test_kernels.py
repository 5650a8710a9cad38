"""Kernels: a fork of a server that has the libraries loaded is a kernel like any other."""

import os
import signal
import subprocess
import sys
import time

import nbformat
import psutil
import pytest

from helpers import places
from helpers.run import kernels

CELLS = [
    "import matplotlib.pyplot as plt, os, sys\nplt.plot([1, 2])",
    "plt.plot([2, 1]);",
    "import torch\nprint(torch.get_num_threads(), os.environ['OMP_NUM_THREADS'], os.getcwd(), sys.argv[0], __name__)",
    "from joblib import Parallel, delayed\nParallel(2)(delayed(abs)(n) for n in (-1, -2))",
    "1 / 0",
]
SCRIPT = """
import os, sys, nbformat
from nbclient import NotebookClient
from helpers.run import kernels

if __name__ == "__main__":
    kernels.LOADED = ["helpers", "torch", "matplotlib.figure", "ipykernel.kernelapp"]
    if sys.argv[1] == "warm":
        kernels.warm_up()
    notebook = nbformat.read(sys.argv[2], as_version=4)
    NotebookClient(notebook, kernel_manager_class=kernels.Kernel, kernel_name="python3", allow_errors=True).execute()
    nbformat.write(notebook, sys.argv[3])
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forks on Linux only")


def start(tmp_path, way, cells):
    source = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c, id=f"c{i}") for i, c in enumerate(cells)])
    nbformat.write(source, tmp_path / "source.ipynb")
    (tmp_path / "run.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "run.py"), way, str(tmp_path / "source.ipynb"), str(tmp_path / way)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "JUPYTER_PREFER_ENV_PATH": "1", "PYTHONPATH": str(places.ROOT)}
    env.pop("MPLBACKEND", None)
    return subprocess.Popen(command, cwd=places.ROOT, env=env, start_new_session=True)


@linux
@pytest.mark.journey
@pytest.mark.notebooks
def test_a_fork_does_what_a_started_kernel_does(tmp_path):
    runs = [start(tmp_path, way, CELLS) for way in ("warm", "cold")]
    assert [run.wait() for run in runs] == [0, 0]
    outputs = []
    for way in ("warm", "cold"):
        cells = nbformat.read(tmp_path / way, as_version=4).cells
        for output in (output for cell in cells for output in cell.outputs):
            output.pop("traceback", None)
            output.get("data", {}).pop("text/plain", None)  # holds an address
        outputs.append([cell.outputs for cell in cells])
    assert outputs[0] == outputs[1]
    assert "image/png" in outputs[0][0][1].data and "image/png" in outputs[0][1][0].data
    assert outputs[0][-1][0].ename == "ZeroDivisionError"


SLEEPING = """
import os, time
from joblib import Parallel, delayed
def sleep(seconds):
    open(f"{folder}/{{os.getpid()}}", "w").close()
    time.sleep(seconds)
open(f"{folder}/{{os.getpid()}}", "w").close()
Parallel(2)(delayed(sleep)(600) for _ in range(2))
"""


@linux
@pytest.mark.notebooks
@pytest.mark.parametrize("way", ["warm", "cold"])
@pytest.mark.journey
def test_a_kernel_ends_with_the_process_that_wanted_it(tmp_path, way):
    """kill -9 of the runner: neither the kernel, nor its workers, nor the server stays."""
    (marks := tmp_path / "pids").mkdir()
    run = start(tmp_path, way, [SLEEPING.format(folder=marks)])
    while len(list(marks.iterdir())) < 3:  # the kernel and its two workers
        assert run.poll() is None
        time.sleep(0.05)
    family = psutil.Process(run.pid).children(recursive=True)
    assert {int(file.name) for file in marks.iterdir()} <= {one.pid for one in family}
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert psutil.wait_procs(family, timeout=60)[1] == []


@linux
@pytest.mark.notebooks
@pytest.mark.journey
def test_a_kernel_that_was_still_starting_ends_too(tmp_path):
    run = start(tmp_path, "cold", ["import time; time.sleep(600)"])
    while not (family := psutil.Process(run.pid).children()):
        assert run.poll() is None
        time.sleep(0.005)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert psutil.wait_procs(family, timeout=60)[1] == []


@linux
@pytest.mark.journey
def test_a_server_that_is_still_importing_ends_too(tmp_path):
    """In the middle of an import that never lets go of the interpreter."""
    (tmp_path / "endless.py").write_text(
        f"import os\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nsum(range(10**12))\n"
    )
    (tmp_path / "run.py").write_text(
        "import time\nfrom helpers.run import kernels\n\nif __name__ == '__main__':\n"
        "    kernels.LOADED = [kernels.LOADED[0], 'endless']\n    kernels.warm_up()\n    time.sleep(600)\n"
    )
    path = os.pathsep.join([str(places.ROOT), str(tmp_path)])
    run = subprocess.Popen([sys.executable, str(tmp_path / "run.py")], env={**os.environ, "PYTHONPATH": path})
    while not (file := tmp_path / "pid").exists() or not file.read_text():
        assert run.poll() is None
        time.sleep(0.05)
    server = psutil.Process(int(file.read_text()))
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert psutil.wait_procs([server], timeout=60)[1] == []


@pytest.mark.skipif(os.name != "posix", reason="kernels are reached through files on POSIX systems only")
def test_what_killed_runs_leave_is_swept_away(tmp_path, monkeypatch):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    monkeypatch.setattr(kernels.tempfile, "gettempdir", lambda: str(tmp_path))
    left, kept = tmp_path / f"{kernels.FOLDER}{ended.pid}-abc", tmp_path / f"{kernels.FOLDER}{os.getpid()}-abc"
    other = tmp_path / "book-kernel-notes"
    for folder in (left, kept, other):
        folder.mkdir()
    (left / "k.json").write_text("{}")
    kernels._sweep.__wrapped__()
    assert not left.exists() and kept.exists() and other.exists()


@linux
def test_the_peak_of_a_process_is_what_it_held_at_most():
    assert 1 < kernels.peak(os.getpid()) < 100_000 and kernels.peak(2**22 + 1) == 0
    code = "x = bytearray(200 << 20); del x; print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        held = kernels.peak(process.pid)
        process.communicate(b"\n")
    assert 200 < held < 300, "also when it holds it no more"

"""A chapter's cells in one process, in two, and on a Dask cluster, with a worker killed on the way: the same numbers."""

import json
import multiprocessing
import os
import signal
import threading
import time
from contextlib import contextmanager

import joblib
import nbformat
import psutil
import pytest

from helpers.run import notebooks

CHAPTER, RECORD = "02_surface_patterns", "surface_patterns.json"
PARTS = 4
pytestmark = pytest.mark.journey


def alone(patch):
    """One process with one thread, and parts of one batch."""
    for name in ("BOOK_WORKERS", "BOOK_DASK", "BOOK_SHARDS"):
        patch.delenv(name, raising=False)
    patch.setenv("BOOK_SHARD_BATCHES", "1")
    patch.setenv("OMP_NUM_THREADS", "1")
    patch.setattr(joblib, "cpu_count", lambda: 2)


@pytest.fixture(autouse=True)
def small_parts_and_one_thread(monkeypatch):
    alone(monkeypatch)


def numbers(folder, patch):
    """What the chapter records: its cells, but for the figures, run here up to the one that does so."""
    patch.setenv("BOOK_RESULTS", str(folder / "results"))
    patch.setenv("BOOK_SHARDS", str(folder / "parts"))
    cells = nbformat.read(notebooks.FOLDER / f"{CHAPTER}.ipynb", as_version=4).cells
    scope = {"__name__": CHAPTER}
    for cell in (c for c in cells if c.cell_type == "code" and "mystnb" not in c.metadata):
        exec(cell.source, scope)
        if "parameters" in cell.metadata.get("tags", ()):
            scope |= notebooks.parameters(CHAPTER, "smoke", {"segments": 16 * PARTS})
        if "results.record(" in cell.source:
            break
    (file,) = (folder / "results").rglob(RECORD)
    return json.loads(file.read_text("utf-8"))["values"]


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        alone(patch)
        return numbers(tmp_path_factory.mktemp("one"), patch)


@contextmanager
def one_killed(folder, workers):
    """SIGKILL for the first worker as soon as a part is finished."""
    killed, over = [], threading.Event()

    def kill():
        victims = []
        while not over.is_set() and not killed:
            victims = victims or workers()  # looked for in advance: that takes long
            done = len(list((folder / "parts").glob("*.part")))
            if victims and done:
                os.kill(victims[0], signal.SIGKILL)
                killed.append(done)
            time.sleep(0.005)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def loky_workers():
    """Processes that joblib has started here."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if any("loky" in word and "tracker" not in word for word in child.cmdline()):
                found.append(child.pid)
        except psutil.Error:
            continue
    return found


def test_in_two_processes_one_of_which_is_killed(tmp_path, monkeypatch, in_one_process):
    monkeypatch.setenv("BOOK_WORKERS", "2")
    with one_killed(tmp_path, loky_workers) as killed:
        assert numbers(tmp_path, monkeypatch) == in_one_process
    assert killed and killed[0] < PARTS, "a process was killed on the way"


def test_on_a_dask_cluster_one_of_whose_workers_is_killed(tmp_path, monkeypatch, in_one_process):
    import dask
    from distributed import LocalCluster
    from distributed.utils import get_mp_context

    where = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context()  # names its own modules to import before forking, so ours come after
        multiprocessing.set_forkserver_preload(["distributed", "helpers.chapters.surface_patterns.measures"])
        with LocalCluster(**where, silence_logs=50) as cluster:
            monkeypatch.setenv("BOOK_DASK", cluster.scheduler_address)
            pids = [worker.pid for worker in cluster.workers.values()]
            with one_killed(tmp_path, lambda: pids) as killed:
                assert numbers(tmp_path, monkeypatch) == in_one_process
    assert killed and killed[0] < PARTS, "a worker was killed on the way"

"""A process ends when the one that wanted it was killed."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from helpers import places
from helpers.engine import orphans

CHILD = "import time; from helpers.engine import orphans; orphans.end_with({}); print(1, flush=True); time.sleep(600)"
PARENT = """
import os, subprocess, sys
from helpers.engine import orphans
child = [sys.executable, "-c", orphans.beginning() + "import time; print(1, flush=True); time.sleep(600)"]
child = subprocess.Popen(child, start_new_session=sys.argv[1] == "leads", cwd="/")
print(child.pid, flush=True)
child.wait()
"""


def started(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(places.ROOT)}
    return subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize("group", ["leads", "follows"])
def test_kill_9_leaves_no_child(group):
    with started(PARENT, group) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        assert parent.stdout.readline() == "1\n"
        parent.send_signal(signal.SIGKILL)
        assert psutil.wait_procs([child], timeout=60)[1] == []


def test_a_parent_that_was_gone_before_is_noticed():
    with started(CHILD.format(2**22 + 1)) as process:
        assert process.wait(60) == 1


def test_one_watch_is_enough(monkeypatch):
    begun = []
    monkeypatch.setattr(orphans.threading, "Thread", lambda **given: begun.append(given) or SimpleThread())
    orphans.end_with.cache_clear()
    for _ in range(3):
        orphans.end_with(1)
    orphans.end_with.cache_clear()
    assert len(begun) == 1


class SimpleThread:
    def start(self): ...

"""Every chapter end to end, profile smoke: those that need a task's head with minilm, the others in ``test_another_model.py``."""

import pytest
from executed import assert_whole
from test_another_model import REFUSED

from helpers.run import notebooks

HEADED = [*REFUSED, "13_keywords"]


@pytest.mark.notebooks
def test_chapters_with_a_task_run_from_start_to_end(tmp_path):
    """Through papermill, several at a time."""
    runs = notebooks.run(HEADED, tmp_path, profile="smoke", results=tmp_path / "results")
    assert [r.chapter for r in runs] == HEADED
    for run in runs:
        assert_whole(run)
    recorded = {f.relative_to(tmp_path / "results").as_posix() for f in (tmp_path / "results").rglob("*.json")}
    assert recorded == {f"smoke/minilm/{chapter[3:]}.json" for chapter in HEADED}
    again = notebooks.run(HEADED, tmp_path, profile="smoke", results=tmp_path / "results")
    assert not any(r.executed for r in again), "nothing has changed"

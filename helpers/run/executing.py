"""One run of one notebook: parameters put in, a kernel of its own, the first failing cell said."""

import math
import os
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import nbformat

from helpers import places
from helpers.run import failures
from helpers.run.failures import NotebookError


def executed(chapter: str, notebook: nbformat.NotebookNode, changed: Mapping[str, Any]) -> nbformat.NotebookNode:
    """A chapter's notebook with outputs of a run in which some parameters differ from its own, as papermill would run it.

    Raises:
        NotebookError: for the first cell that fails, or a kernel that ends.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    from helpers.run.kernels import Kernel

    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    if changed:
        _inject(notebook, changed)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        kernel_manager_class=Kernel,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": str(places.ROOT)}},
        timeout=24 * 3600,
        raise_on_iopub_timeout=True,  # a cell whose outputs are lost is not one that has none
    )
    try:
        with client.setup_kernel():  # not client.execute(), which would take Ctrl-C for a kernel that has died
            for number, cell in enumerate(notebook.cells):
                client.execute_cell(cell, number)
    except CellExecutionError as error:
        traceback = [line for output in cell.outputs for line in output.get("traceback", ())]
        raise failures.of_cell(chapter, cell.execution_count, error.ename, error.evalue, traceback) from None
    except DeadKernelError:
        raise NotebookError(f"{chapter}: its kernel {failures.ENDED}") from None
    return notebook


def _inject(notebook: nbformat.NotebookNode, changed: Mapping[str, Any]) -> None:
    """Put a cell with values of parameters after that of their defaults, tagged and written as papermill does."""
    lines = ["# Parameters\n", *(f"{name} = {_literal(value)}\n" for name, value in changed.items())]
    cell = nbformat.v4.new_code_cell("".join(lines), metadata={"tags": ["injected-parameters"]})
    tags = [cell.metadata.get("tags", ()) for cell in notebook.cells]
    notebook.cells.insert(1 + next(n for n, names in enumerate(tags) if "parameters" in names), cell)


def _literal(value: Any) -> str:
    """A value of YAML's kinds in Python, with papermill's quotes and escapes: outputs of earlier runs name them so."""
    if isinstance(value, str):
        escaped = value.encode("unicode_escape").decode().replace('"', r"\"")
        return f'"{escaped}"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(str(k))}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return str(value)


def memory() -> int:
    """MiB that the last kernel of this process had at most."""
    from helpers.run.kernels import Kernel

    return Kernel.peak


@contextmanager
def environment(**variables: str):
    """Environment of a kernel: this interpreter's kernels first, inline figures, the given variables."""
    wanted = {"JUPYTER_PREFER_ENV_PATH": "1", "TQDM_DISABLE": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1", **variables}
    with patch.dict(os.environ, wanted):
        os.environ.pop("MPLBACKEND", None)  # 'agg' would silently drop every inline figure
        yield

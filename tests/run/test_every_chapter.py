"""Every chapter end to end."""

import nbformat
import pytest

from helpers.run import notebooks


@pytest.mark.notebooks
def test_every_chapter_runs_from_start_to_end(tmp_path):
    """Profile smoke, through papermill, several at a time."""
    chapters = notebooks.chapters()
    runs = notebooks.run(chapters, tmp_path, profile="smoke", results=tmp_path / "results")
    assert [r.chapter for r in runs] == chapters and all(r.executed for r in runs)
    for run in runs:
        notebook = nbformat.read(run.file, as_version=4)
        assert notebook.metadata.book.parameters["profile"] == "smoke"
        for cell in (c for c in notebook.cells if c.cell_type == "code"):
            assert cell.execution_count is not None
            for output in cell.outputs:
                assert output.output_type != "error"
                assert not (output.output_type == "stream" and output.name == "stderr"), output.get("text")
                assert output.get("data") != {} and output.get("text") != ""
            if "figure" in cell.metadata.get("mystnb", {}):
                assert any("image/png" in o.get("data", {}) for o in cell.outputs), cell.source
    recorded = sorted(f.relative_to(tmp_path / "results").as_posix() for f in (tmp_path / "results").rglob("*.json"))
    names = (
        "ablation_by_type",
        "coreference_heads",
        "dependency_heads",
        "distance_features",
        "divergence_map",
        "head_importance",
        "keywords",
        "layer_semantics",
        "no_op",
        "pattern_types",
        "probing_classifiers",
        "surface_patterns",
        "your_own_model",
    )
    assert recorded == [f"smoke/minilm/{name}.json" for name in names]
    again = notebooks.run(chapters, tmp_path, profile="smoke", results=tmp_path / "results")
    assert not any(r.executed for r in again), "nothing has changed"

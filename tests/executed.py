"""What every executed notebook has to be, whatever model it ran with."""

import nbformat


def assert_whole(run, *, without=()):
    """Every cell executed, no error, nothing on stderr, no empty output, a picture under every caption but for figures named."""
    notebook = nbformat.read(run.file, as_version=4)
    assert run.executed and notebook.metadata.book.parameters["profile"] == "smoke"
    for cell in (c for c in notebook.cells if c.cell_type == "code"):
        assert cell.execution_count is not None
        for output in cell.outputs:
            assert output.output_type != "error"
            assert not (output.output_type == "stream" and output.name == "stderr"), output.get("text")
            assert output.get("data") != {} and output.get("text") != ""
        figure = cell.metadata.get("mystnb", {}).get("figure")
        if figure and figure["name"] not in without:
            assert any("image/png" in o.get("data", {}) for o in cell.outputs), cell.source

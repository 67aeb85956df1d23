"""The notebooks of examples/notebooks: every cell runs, in its order, and what a cell claims holds."""

import json
import os
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
STUDIES = ["cbq-router", "cbq-tbf-clock", "pfifo-fast-tos", "aqm-domains", "virtual-lab"]


def test_there_is_one_for_each_founding_study():
    assert {f"study-{s}" for s in STUDIES} <= {n.stem for n in NOTEBOOKS}
    assert {"bufferbloat", "classes", "design-an-aqm", "tune-sqm"} <= {n.stem for n in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs(path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    # The command of this environment, as a notebook's server has it.
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells and not any(cell.outputs for cell in cells), "outputs are not kept in the repository"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    shown = [output.get("data", {}) for cell in cells for output in cell.outputs]
    assert any("text/html" in data or "image/png" in data or "image/svg+xml" in data for data in shown)


def test_they_are_written_as_they_are_kept():
    for path in NOTEBOOKS:
        assert json.loads(path.read_text(encoding="utf-8"))["nbformat"] == 4

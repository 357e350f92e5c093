"""The notebooks run from top to bottom; results and figures show themselves in them."""

from pathlib import Path

import pytest

from tests.house import tree

pytestmark = pytest.mark.long
NOTEBOOKS = sorted((tree.ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_and_shows_its_results(page: Path, tmp_path: Path) -> None:
    nbformat, nbclient = (pytest.importorskip(name) for name in ("nbformat", "nbclient"))
    notebook = nbformat.read(page, 4)
    assert [cell for cell in notebook.cells if cell.get("outputs")] == [], "stored without outputs"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) for output in outputs)
    assert [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"] == []

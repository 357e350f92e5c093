"""The notebooks run from top to bottom; results, figures and progress show themselves in them."""

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


_SHOWN = [
    "import time, polars as pl, ranktilt as rt\nfrom ranktilt.progress import report\ncollection = rt.bundled()\n"
    "run = rt.ranker('bm25').rank(collection)\naudit = rt.audit(collection, run, 'nDCG@3', resamples=100); audit",
    "audit.plot()",
    "rt.explain(collection, ['statistics'])",
    "docs = collection.docs.with_columns(temperature=pl.lit(0.7))\n"
    "warm = rt.Collection(docs, collection.queries, collection.qrels)\n"
    "rt.study(warm, [rt.ranker('bm25')], 'nDCG@3', resamples=100)",
    "rt.level(collection, rt.ranker('bm25'), ['nDCG@3'])",
    "audit.frame('tilts').to_pandas()",
    "for n in range(301):\n    report('encoding', n, 300); report('asking', n, 300); time.sleep(0.004)",
    "for n in range(200):\n    report('broken off', n, 300); time.sleep(0.004)\nraise ValueError",
]


@pytest.mark.filterwarnings("ignore")
def test_results_show_themselves_and_progress_is_one_output_a_cell(tmp_path: Path) -> None:
    nbformat, nbclient = (pytest.importorskip(name) for name in ("nbformat", "nbclient"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in _SHOWN])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, allow_errors=True, resources=resources).execute()
    outputs = [
        [output for output in cell.outputs if output.output_type != "display_data" or output.data["text/plain"]]
        for cell in notebook.cells
    ]
    for number in (0, 2, 3, 4, 5):
        [shown] = outputs[number]
        assert "<table" in shown.data["text/html"], notebook.cells[number].source
        assert len(shown.data["text/plain"]) < 6000
    assert outputs[0][0].data["text/plain"].startswith("Means and Relative Δ, in %")
    [figure] = outputs[1]
    assert "mark" in str(figure.data["application/vnd.vegalite.v5+json"])
    assert [output.data for output in notebook.cells[6].outputs] == [{"text/html": "", "text/plain": ""}]
    bar, error = notebook.cells[7].outputs
    assert bar.data["text/plain"].endswith("% broken off")
    assert error.ename == "ValueError"

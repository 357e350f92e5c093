"""Run the notebooks of examples/notebooks, and store them with their outputs; `make docs` does so.

    python scripts/refresh_notebooks.py                                    # all
    python scripts/refresh_notebooks.py examples/notebooks/2-why.ipynb     # this one

Each runs in an empty folder, without network. Stored are results, figures and what is printed; not
the progress of a cell, nor when it ran. A notebook whose texts are what they were stays as it is:
the last digits in a figure's data depend on the machine.
"""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "notebooks"
SECONDS = 300
NUMBER = re.compile(r"[+−-]?\d*[.,]?\d+(?:[.,]\d+)*")
RULE = re.compile(r"[─\s]+")


def notebooks() -> list[Path]:
    """List the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(page: Path) -> Any:
    """Return a notebook with the outputs that it has now; an error in a cell is raised."""
    notebook = nbformat.read(page, 4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, resources=resources).execute()
    notebook.metadata = {"language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_progress(output)]
    return notebook


def _is_progress(output: Any) -> bool:
    """Whether it is a progress bar, which is empty once its work is done."""
    return output.output_type == "display_data" and not output.data.get("text/plain")


def texts(notebook: Any) -> list[str]:
    """Return what each output of a notebook shows as text."""
    outputs = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            outputs.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return outputs


def without_numbers(text: str) -> list[str]:
    """Return the words of a text, `#` for numbers; rules of a table are as long as its numbers."""
    return RULE.sub(" ", NUMBER.sub("#", text)).split()


def main(argv: Sequence[str] | None = None) -> int:
    """Run notebooks and store them."""
    parser = argparse.ArgumentParser(description="Store the notebooks with their outputs.")
    parser.add_argument("pages", nargs="*", type=Path, help="notebooks; all by default")
    os.environ["HF_HUB_OFFLINE"] = "1"
    for page in parser.parse_args(argv).pages or notebooks():
        notebook = executed(page)
        if texts(notebook) != texts(nbformat.read(page, 4)):
            page.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
            print(f"refreshed {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The papers' tables and figures that ``ranktilt report`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranktilt.cli.notes import note
from ranktilt.cli.report.formats import shows_texts
from ranktilt.data.files import write_files

LAYOUT = "paper"
"""Name of the layout that has all tables of all papers."""


def paper_table(
    files: Sequence[Path], layout: str, format: str, *, texts: bool, queries: Sequence[str]
) -> str:
    """Return a table as a paper prints it, or all tables.

    Parameters
    ----------
    files : sequence of Path
        Results (JSON), and cells of a table (CSV).
    layout : str
        Name of the table, such as ``dai-1``, or ``paper`` for all.
    format : str
        ``latex``, ``markdown`` or ``csv``.
    texts : bool
        Whether the texts of documents may be read again, for tables that show them.
    queries : sequence of str
        Queries whose texts a table shows; empty for those with the largest tilt.
    """
    from ranktilt.reporting.layouts.cells import read_cells
    from ranktilt.reporting.layouts.tables import paper_tables
    from ranktilt.reporting.report import laid_out, read_result

    # All tables as CSV are without those of texts.
    is_all_as_csv = format == "csv" and layout == LAYOUT
    reads_texts = texts and shows_texts(layout) and not is_all_as_csv
    results = []
    for file in dict.fromkeys(files):
        if file.name.endswith((".csv", ".csv.gz")):
            result: Any = read_cells(file)
        else:
            result = read_result(file, laid_out())
        if _reads_collection(layout):
            result = _with_collection(result, file)
        elif reads_texts:
            result = _with_texts(result, file)
        results.append(result)
    return paper_tables(results, layout, format, queries=queries)


def _reads_collection(layout: str) -> bool:
    """Return whether a layout needs the collection and ranked lists of an audit."""
    from ranktilt.reporting.layouts.layout import layouts

    return layout != LAYOUT and layouts()[layout].reads_collection


def _with_collection(result: Any, file: Path) -> Any:
    """Return an audit with its collection and ranked lists, which are read again.

    Any other result is returned as it is.
    """
    from ranktilt.auditing.result import Audit
    from ranktilt.reporting.reload import reload

    if not isinstance(result, Audit):
        return result
    loaded = reload(result, file)
    if loaded.notes:
        note(" ".join(loaded.notes))
    return loaded


def _with_texts(result: Any, file: Path) -> Any:
    """Return an audit by source with its collection, which is read again.

    Its runs are left out: the tables of texts choose documents by their grades, not by ranks. Any
    other result is returned as it is.
    """
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.source_audits import SourceAudits
    from ranktilt.reporting.reload import Loaded, reload, reload_sources

    loaded: Loaded
    if isinstance(result, SourceAudits):
        loaded = reload_sources(result, file)
        loaded = replace(loaded, parts=tuple(replace(part, runs=()) for part in loaded.parts))
    elif isinstance(result, Audit) and result.spec.get("by") == "source":
        loaded = replace(reload(result, file), runs=())
    else:
        return result
    if loaded.collection is None:
        note(" ".join(loaded.notes))
    return loaded


def write_figures(files: Sequence[Path], folder: Path, format: str, layout: str) -> None:
    """Write the figures of results into a folder, and say how large each is."""
    from ranktilt.reporting.layouts.figures import paper_figures
    from ranktilt.reporting.numbers import size
    from ranktilt.reporting.reload import Loaded
    from ranktilt.reporting.report import laid_out, opened

    results = opened(files, laid_out())
    drawings = paper_figures(results, format=format, layout=layout)
    for result in results:
        if isinstance(result, Loaded):
            for sentence in result.notes:
                note(sentence)
    write_files({folder / name: content for name, content in drawings.items()})
    for name, content in drawings.items():
        note(f"{folder / name}: {size(len(content))}")

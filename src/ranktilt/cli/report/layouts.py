"""Tables and figures in the form of a published paper, which ``ranktilt report`` writes.

A *layout* is the form of one such table or figure: ``dai-1`` is Table 1 of Dai et al. (KDD 2024).
A *cell* is one number of a table. An audit measures how much a ranker favours one group of
documents over another, its *tilt*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranktilt.cli.notes import note
from ranktilt.cli.report.formats import shows_texts
from ranktilt.data.files import write_files

ALL_TABLES = "paper"
"""Name that stands for all tables of all papers, in place of a layout's."""


def paper_table(
    files: Sequence[Path], layout: str, format: str, *, texts: bool, queries: Sequence[str]
) -> str:
    """Return one table as a paper prints it, or all tables that the results can fill.

    Parameters
    ----------
    files : sequence of Path
        Results (JSON), and numbers that a user typed in, with a line for each cell (CSV).
    layout : str
        Name of the table's layout, such as ``dai-1``, or `ALL_TABLES`.
    format : str
        ``latex``, ``markdown`` or ``csv``.
    texts : bool
        Whether tables may show texts of documents. Results do not hold them, so they are read from
        the audited collection.
    queries : sequence of str
        Ids of the queries whose texts a table shows; empty for those with the largest tilt.
    """
    from ranktilt.reporting.layouts.cells import read_cells
    from ranktilt.reporting.layouts.tables import paper_tables
    from ranktilt.reporting.report import laid_out, read_result

    # A CSV file of all tables holds numbers alone; a table of texts has other columns.
    is_numbers_only = format == "csv" and layout == ALL_TABLES
    reads_texts = texts and shows_texts(layout) and not is_numbers_only
    printable_kinds = laid_out()
    results = []
    for file in dict.fromkeys(files):
        if file.name.endswith((".csv", ".csv.gz")):
            result: Any = read_cells(file)
        else:
            result = read_result(file, printable_kinds)
        if _reads_collection(layout):
            result = _with_collection(result, file)
        elif reads_texts:
            result = _with_texts(result, file)
        results.append(result)
    return paper_tables(results, layout, format, queries=queries)


def _reads_collection(layout: str) -> bool:
    """Return whether a layout needs the collection and ranked lists of an audit."""
    from ranktilt.reporting.layouts.layout import layouts

    return layout != ALL_TABLES and layouts()[layout].reads_collection


def _with_collection(result: Any, file: Path) -> Any:
    """Return an audit with its collection and ranked lists, as far as they can be read again.

    A note says what is missing of either. Any other result is returned as it is.
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
    """Return an audit of sources with its collection, if that can be read again.

    A *source* is who wrote a document, such as human. Both an audit that is grouped by source and
    a `SourceAudits`, which holds an audit for each of several sources, have texts to compare. Any
    other result is returned as it is.

    Runs are left out: the tables of texts choose documents by their grades, not by ranks. So a
    note is written only if the collection is missing.
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
    """Write the figures of results into a folder, and say how large each file is.

    `format` is ``svg``, ``pdf`` or ``png``. `layout` names one figure; empty for all figures.
    """
    from ranktilt.reporting.layouts.figures import paper_figures
    from ranktilt.reporting.numbers import size
    from ranktilt.reporting.reload import Loaded
    from ranktilt.reporting.report import laid_out, opened

    # `opened` also loads the collection and runs of each audit, which some figures need.
    results = opened(files, laid_out())
    drawings = paper_figures(results, format=format, layout=layout)
    for result in results:
        if isinstance(result, Loaded):
            for sentence in result.notes:
                note(sentence)
    write_files({folder / name: content for name, content in drawings.items()})
    for name, content in drawings.items():
        note(f"{folder / name}: {size(len(content))}")

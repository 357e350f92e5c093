"""The papers' tables as a document: the tables that results hold, with the notes they need.

A *layout* describes a table of a paper, a *cell* is one number of it, and a *key* is a property of
a cell that gives its position, such as its ranker. Cells come from results, or from a CSV file of
cells. The *source* of documents is who wrote them, such as human or LLM. A *note* tells the author
what differs from the paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isnan
from typing import Any

import polars as pl

from ranktilt.auditing.result import Audit
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.data.artifact import names_files
from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.contrast import ROUNDINGS
from ranktilt.reporting.document import Document, Panels, Table, single_section
from ranktilt.reporting.layouts.cells import DELTA, CellFile, printed_cells
from ranktilt.reporting.layouts.layout import PAPER, Layout, layout_named, layouts
from ranktilt.reporting.layouts.pivot import key_values, pivot
from ranktilt.reporting.layouts.results import cells_of, left_out, made_by, tables_of
from ranktilt.reporting.layouts.selection import KEYS, PaperCell
from ranktilt.reporting.layouts.texts import chosen_texts, has_pairs, of_collections
from ranktilt.reporting.numbers import DASH
from ranktilt.reporting.output import table
from ranktilt.reporting.reload import Loaded, LoadedAudit
from ranktilt.training.study_result import TrainingStudy

CellSource = Any
"""What cells are taken from: a result, an audit with its collection, or a `CellFile`."""
GivenResult = Any
"""What a user passes: a result, with or without its collection (`Loaded`), or a `CellFile`."""
FORMATS = ("latex", "markdown", "csv")
"""Formats of tables."""
_NO_SYSTEM = ("", "-")
"""Values of the key ``system`` in cells about a collection, which several results may share."""
_ROUNDING_NOTE = (
    "Relative Δ is computed from the means as printed here, as in the paper; the audit computes it "
    "before rounding, so small means may give another value."
)
"""Note on Relative Δ that was computed from rounded means."""
_NO_TWINS_NOTE = (
    "Groups that are not twins: the neutral Relative Δ is what shuffled labels give, which need "
    "not be 0."
)
"""Note on groups that are not twins."""
_CURVE_NOTE = "Values at the indices 1, 2, 5, 10, 20 … and at the last; CSV has all."
"""Note on a curve of which not all values are printed."""
_KEYS_OF_TITLE = ("collection", "condition")
"""Keys whose only value is left out of a caption, because the layout's title says it."""
_CSV_KEYS = ("dataset", "system", "measure")
"""Keys that are always columns of CSV; others only where some cell has them."""


def paper_tables(
    results: Sequence[GivenResult],
    layout: str | Layout,
    format: str,
    *,
    rounding: str = "paper",
    queries: Sequence[str] = (),
) -> str:
    """Return results as the papers' tables in one of the `FORMATS`.

    The other parameters are those of `paper_document`.
    """
    if format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    return table(paper_document(results, layout, rounding=rounding, queries=queries), format)


@names_files
def paper_document(
    results: Sequence[GivenResult],
    layout: str | Layout,
    *,
    rounding: str = "paper",
    queries: Sequence[str] = (),
) -> Document:
    """Return the document of one of the papers' tables, or of all that the results hold.

    `layout` is a layout, the name of one, or `PAPER` for all tables. With `rounding` ``paper``,
    Relative Δ is computed from the printed means. `queries` are ids for tables of texts, which
    otherwise choose the queries.
    """
    if rounding not in ROUNDINGS:
        raise unknown_name("rounding", rounding, ROUNDINGS)
    sources = [result.audit if isinstance(result, Loaded) else result for result in results]
    # Some layouts take cells from an audit together with its runs and texts.
    sources += [result for result in results if isinstance(result, LoadedAudit)]
    blocks: list[Panels] = []
    cells: list[PaperCell] = []
    for table_layout in _layouts_to_print(results, sources, layout):
        if table_layout.texts:
            blocks.append(_texts_table(results, table_layout, queries))
        else:
            at_home = layout == PAPER
            numbers = _numbers_table(sources, table_layout, rounding, at_home=at_home)
            blocks.append(numbers.block)
            cells += numbers.cells
    data = _cell_data(cells) if cells else _text_data(blocks)
    return Document(
        kind="tables of a paper", headline="", sections=single_section(blocks), data=data
    )


def _layouts_to_print(
    results: Sequence[GivenResult], sources: Sequence[CellSource], layout: str | Layout
) -> list[Layout]:
    """Return the layout of this name, or for `PAPER` those of all tables that the results hold."""
    if isinstance(layout, Layout):
        return [layout]
    if layout != PAPER:
        return [layout_named(layout)]
    names = _table_names(results, sources)
    if not names:
        raise UserError(
            "these results hold no table of a paper; "
            "name a layout (--layout) to see which command makes it"
        )
    return [layouts()[name] for name in names]


def _cell_data(cells: Sequence[PaperCell]) -> pl.DataFrame:
    """Return cells as a frame for CSV: keys, printed numbers, marks and notes."""
    keys = [key for key in KEYS if key in _CSV_KEYS or any(getattr(cell, key) for cell in cells)]
    has_marks = any(cell.mark for cell in cells)
    rows = []
    for cell in cells:
        text = "nan" if isnan(cell.value) else cell.text
        marks = [cell.mark] if has_marks else []
        rows.append((cell.table, *cell.at(keys), text, *marks, cell.note))
    names = ["table", *keys, "value", *(["mark"] if has_marks else []), "note"]
    return _frame(names, rows)


def _text_data(blocks: Sequence[Panels]) -> pl.DataFrame:
    """Return the texts of tables of texts as a frame for CSV, with a row for each query.

    Collections with other sources have other columns; what a table does not have is empty.
    """
    panels = [*chain.from_iterable(block.tables for block in blocks)]
    columns = chain.from_iterable(panel.columns for panel in panels)
    titles = list(dict.fromkeys(column.title for column in columns))
    rows = list[tuple[str, ...]]()
    for block in blocks:
        for panel in block.tables:
            rows += [(block.name, panel.caption, *texts) for texts in _texts_of(panel, titles)]
    return _frame(["table", "pair", *titles], rows)


def _texts_of(panel: Table, titles: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts of each row in the columns of these titles; empty where there is none."""
    panel_titles = [column.title for column in panel.columns]
    for row in panel.rows:
        texts = dict(zip(panel_titles, [cell.text for cell in row], strict=True))
        yield [texts.get(title, "") for title in titles]


def _frame(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> pl.DataFrame:
    """Return a frame of texts; an empty text is null, for which CSV writes no quotes."""
    schema = dict.fromkeys(names, pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.all().replace("", None))


def _table_names(results: Sequence[GivenResult], sources: Sequence[CellSource]) -> list[str]:
    """Return the names of the tables that the results hold, in the papers' order."""
    # `texts` is which collection with texts a layout shows, so there must be as many of them.
    with_texts = sum(map(has_pairs, of_collections(results)))
    names = {layout.name for layout in layouts().values() if 0 < layout.texts <= with_texts}
    for source in sources:
        if isinstance(source, CellFile):
            names.update(cell.table for cell in source.cells)
        else:
            names.update(tables_of(source))
    return [name for name in layouts() if name in names]


@dataclass(frozen=True, kw_only=True)
class _NumbersTable:
    """A table of numbers, for print and for CSV."""

    block: Panels
    """The table for print."""
    cells: list[PaperCell]
    """The cells for CSV, in the order of the print."""


def _numbers_table(
    sources: Sequence[CellSource], layout: Layout, rounding: str, *, at_home: bool
) -> _NumbersTable:
    """Return one table of numbers, with the notes that they need.

    `at_home` leaves out cells that belong in another table, where all tables are printed.
    """
    unprinted_cells, origins = _gathered_cells(sources, layout, at_home=at_home)
    if not unprinted_cells:
        raise UserError(_no_cells_reason(sources, layout))
    cells = printed_cells(unprinted_cells, layout, rounding=rounding)
    table_cells = _curve_cells(cells) if layout.curve else cells
    pivoted = pivot(table_cells, layout)
    notes = [
        *_cell_notes(table_cells, layout, pivoted.keys, has_gaps=None in pivoted.cells),
        *_caveats(sources, cells, layout, rounding),
        *([_CURVE_NOTE] if layout.curve else []),
    ]
    block = Panels(
        name=layout.name,
        caption=_caption(table_cells, layout, pivoted.keys),
        layout=f"Layout: {layout.paper}.",
        tables=pivoted.tables,
        notes=tuple(notes),
        remarks=tuple(_missing_measures(table_cells, layout)),
        origins=tuple(dict.fromkeys(origins)),
    )
    # CSV has every cell of a curve, of which the print shows some.
    csv_cells = cells if layout.curve else [cell for cell in pivoted.cells if cell is not None]
    return _NumbersTable(block=block, cells=csv_cells)


def _gathered_cells(
    sources: Sequence[CellSource], layout: Layout, *, at_home: bool
) -> tuple[list[PaperCell], list[str]]:
    """Return the cells of one table from all sources, and the commands or files they come from."""
    cells: list[PaperCell] = []
    origins: list[str] = []
    for source in sources:
        source_cells = _cells(source, layout, at_home=at_home)
        # Cells about a collection occur in each of its results, and are taken once.
        cells += [
            cell for cell in source_cells if cell.system not in _NO_SYSTEM or cell not in cells
        ]
        if not source_cells:
            continue
        if not isinstance(source, CellFile):
            origins += made_by(_spec(source))
        elif source.path:
            origins.append(f"Cells of {source.path}")
    return cells, origins


def _spec(result: Any) -> Mapping[str, Any]:
    """Return the spec of a result, or of an audit that was loaded with its collection."""
    spec: Mapping[str, Any] = getattr(result, "audit", result).spec
    return spec


def _curve_cells(cells: Sequence[PaperCell]) -> list[PaperCell]:
    """Return the cells at the indices 1, 2, 5, 10, 20 … of a curve, and at the last.

    The index is the value of the key ``condition``.
    """
    last_index = cells[-1].condition
    return [
        cell
        for cell in cells
        if cell.condition == last_index or re.fullmatch("[125]0*", cell.condition)
    ]


def _missing_measures(cells: Sequence[PaperCell], layout: Layout) -> Iterator[str]:
    """Name the measures of the paper's table that no cell has; nothing where all are there."""
    labels = {layout.label("measure", cell.measure) for cell in cells}
    paper_labels = [layout.label("measure", measure) for measure in layout.measures]
    missing = [label for label in paper_labels if label not in labels]
    if missing:
        yield f"The paper's table also has {', '.join(missing)}, not in these results."


def _caveats(
    sources: Sequence[CellSource], cells: Sequence[PaperCell], layout: Layout, rounding: str
) -> list[str]:
    """Return sentences on what a reader of the numbers must know: about studies, or about tilts."""
    studies = [source for source in sources if isinstance(source, TrainingStudy)]
    if studies and "system" in (*layout.rows, *layout.columns):
        return _study_caveats(studies, layout)
    audits = [
        source for source in sources if isinstance(source, Audit | SourceAudits) and source.tilts
    ]
    if layout.derived != DELTA or not audits:
        return []
    return _tilt_caveats(audits, cells, layout, rounding)


def _study_caveats(studies: Sequence[TrainingStudy], layout: Layout) -> list[str]:
    """Explain the mark of a study's table, and name pretrained models that were already tuned."""
    caveats = [layout.mark_note] if layout.mark else []
    for study in studies:
        for body, task in study.tuned.items():
            caveats.append(f"Body already tuned for {task}: {body}.")
    return caveats


def _tilt_caveats(
    audits: Sequence[Audit | SourceAudits],
    cells: Sequence[PaperCell],
    layout: Layout,
    rounding: str,
) -> list[str]:
    """Say which rankers are left out, and how Relative Δ was computed."""
    caveats = []
    rankers: dict[str, None] = {}
    for audit in audits:
        rankers |= dict.fromkeys(left_out(audit, layout))
    if rankers:
        caveats.append(f"Without {', '.join(rankers)}: {layout.left_out}.")
    # An audit may have computed Relative Δ from rounded means itself.
    has_unrounded_audit = any(audit.spec.get("rounding", "none") != "paper" for audit in audits)
    if not any(cell.target == DELTA for cell in cells):
        caveats.append("No Relative Δ: it needs two groups; leave the others out with `where`.")
    elif rounding == "paper" and has_unrounded_audit:
        caveats.append(_ROUNDING_NOTE)
    tilts = chain.from_iterable(audit.tilts for audit in audits)
    if not all(tilt.twins for tilt in tilts):
        caveats.append(_NO_TWINS_NOTE)
    return caveats


def _cells(source: CellSource, layout: Layout, *, at_home: bool) -> list[PaperCell]:
    """Return the cells of one table; `at_home` leaves out those that belong in another table."""
    if isinstance(source, CellFile):
        return [cell for cell in source.cells if cell.table == layout.name]
    return cells_of(source, layout, at_home=at_home)


def _texts_table(results: Sequence[GivenResult], layout: Layout, queries: Sequence[str]) -> Panels:
    """Return the table of texts of the collection that a layout shows."""
    # Collections with texts to choose come first.
    collections = sorted(of_collections(results), key=has_pairs, reverse=True)
    if len(collections) < layout.texts:
        raise UserError(_no_cells_reason(results, layout))
    return chosen_texts(collections[layout.texts - 1], layout.name, queries=queries)


def _caption(cells: Sequence[PaperCell], layout: Layout, keys: Sequence[str]) -> str:
    """Return the caption: the title, and the keys' values that all numbers have in common.

    `keys` are those that give positions in the table.
    """
    values = key_values(cells, layout)
    context = [
        layout.caption_phrase(key, values[key][0])
        for key in KEYS
        if key not in (*keys, *_KEYS_OF_TITLE) and values[key][0] not in _NO_SYSTEM
    ]
    has_other_groups = layout.title_of_groups and "human" not in values["target"]
    title = layout.title_of_groups if has_other_groups else layout.title
    return f"{title}. {', '.join(context)}." if context else f"{title}."


def _cell_notes(
    cells: Sequence[PaperCell], layout: Layout, keys: Sequence[str], *, has_gaps: bool
) -> list[str]:
    """Return the notes of single cells, named by their keys' values, and what a dash means."""
    notes = [
        f"{', '.join(map(layout.label, keys, cell.at(keys)))}: {cell.note}"
        for cell in cells
        if cell.note
    ]
    reasons = ["not in these results"] if has_gaps else []
    reasons += ["undefined"] if any(cell.text == DASH for cell in cells) else []
    notes += [f"{DASH}: {' or '.join(reasons)}"] if reasons else []
    return [f"{note.removesuffix('.')}." for note in dict.fromkeys(notes)]


def _no_cells_reason(results: Sequence[GivenResult], layout: Layout) -> str:
    """Say what a layout shows that the results do not hold, and which command would make it."""
    content = f"{layout.name} shows {layout.shows}"
    if layout.texts:
        for result in results:
            if isinstance(result, Loaded) and result.notes:
                return f"{content}; {result.notes[0]}"
    return f"{content}; the results given hold none: {layout.command} makes one"

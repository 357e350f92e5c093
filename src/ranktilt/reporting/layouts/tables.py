"""The papers' tables as a document: which of them the results hold, and the notes they need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isnan
from typing import Any

import polars as pl

from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.data.artifact import names_files
from ranktilt.errors import UserError, unknown
from ranktilt.measures.contrast import ROUNDINGS
from ranktilt.reporting.document import Document, Panels, single_section
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

Bare = Any
"""A result without its collection, or a `CellFile`."""
Source = Any
"""A result with or without its collection (`Loaded`), or a `CellFile`."""
FORMATS = ("latex", "markdown", "csv")
"""Formats of tables."""
_NO_SYSTEM = ("", "-")
"""Systems of cells that are about a collection: several results of it hold the same cells."""
_ROUNDED = (
    "Relative Δ is computed from the means as printed here, as in the paper; the audit computes it "
    "before rounding, so small means may give another value."
)
"""Note on Relative Δ that was computed from rounded means."""
_SHUFFLED = (
    "Groups that are not twins: the neutral Relative Δ is what shuffled labels give, which need "
    "not be 0."
)
"""Note on groups that are not twins."""
_CURVE = "Values at the indices 1, 2, 5, 10, 20 … and at the last; CSV has all."
"""Note on a curve of which not all values are printed."""
_KEYS_OF_TITLE = ("collection", "condition")
"""Keys whose only value a caption does not repeat: the title says it."""
_CSV_KEYS = ("dataset", "system", "measure")
"""Keys that are columns of CSV although all cells may lack them."""


def paper_tables(
    results: Sequence[Source],
    layout: str | Layout,
    format: str,
    *,
    rounding: str = "paper",
    queries: Sequence[str] = (),
) -> str:
    """Print results as the papers' tables."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return table(paper_document(results, layout, rounding=rounding, queries=queries), format)


@names_files
def paper_document(
    results: Sequence[Source],
    layout: str | Layout,
    *,
    rounding: str = "paper",
    queries: Sequence[str] = (),
) -> Document:
    """Lay results out as one of the papers' tables, or as all that they hold."""
    if rounding not in ROUNDINGS:
        raise unknown("rounding", rounding, ROUNDINGS)
    bare = [result.audit if isinstance(result, Loaded) else result for result in results]
    # Some layouts also need an audit's runs and texts.
    bare += [result for result in results if isinstance(result, LoadedAudit)]
    blocks: list[Panels] = []
    cells: list[PaperCell] = []
    for table_layout in _chosen_layouts(results, bare, layout):
        if table_layout.texts:
            blocks.append(_texts_table(results, table_layout, queries))
        else:
            at_home = layout == PAPER
            numbers = _numbers_table(bare, table_layout, rounding, at_home=at_home)
            blocks.append(numbers.block)
            cells += numbers.cells
    data = _cell_data(cells) if cells else _text_data(blocks)
    return Document(
        kind="tables of a paper", headline="", sections=single_section(blocks), data=data
    )


def _chosen_layouts(
    results: Sequence[Source], bare: Sequence[Bare], layout: str | Layout
) -> list[Layout]:
    """Return the layout of this name, or for `PAPER` those of all tables that the results hold."""
    if isinstance(layout, Layout):
        return [layout]
    if layout != PAPER:
        return [layout_named(layout)]
    names = _table_names(results, bare)
    if not names:
        raise UserError(
            "these results hold no table of a paper; "
            "name a layout (--layout) to see which command makes it"
        )
    return [layouts()[name] for name in names]


def _cell_data(cells: Sequence[PaperCell]) -> pl.DataFrame:
    """Return cells as they are printed, and in the order of the print."""
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
    """Return texts as a frame, one row per query."""
    rows = []
    for block in blocks:
        for panel in block.tables:
            for row in panel.rows:
                rows.append((block.name, panel.caption, *(cell.text for cell in row)))
    titles = [column.title for column in blocks[0].tables[0].columns]
    return _frame(["table", "pair", *titles], rows)


def _frame(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> pl.DataFrame:
    """Make a frame of texts; an empty one is missing, since CSV has no quotes for it."""
    schema = dict.fromkeys(names, pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.all().replace("", None))


def _table_names(results: Sequence[Source], bare: Sequence[Bare]) -> list[str]:
    """Name the tables that the results hold, in the papers' order."""
    with_texts = sum(map(has_pairs, of_collections(results)))
    names = {layout.name for layout in layouts().values() if 0 < layout.texts <= with_texts}
    for result in bare:
        if isinstance(result, CellFile):
            names.update(cell.table for cell in result.cells)
        else:
            names.update(tables_of(result))
    return [name for name in layouts() if name in names]


@dataclass(frozen=True, kw_only=True)
class _NumbersTable:
    """A table of numbers, and its cells in the order of the print."""

    block: Panels
    """The table as it is printed."""
    cells: list[PaperCell]
    """Its cells."""


def _numbers_table(
    results: Sequence[Bare], layout: Layout, rounding: str, *, at_home: bool
) -> _NumbersTable:
    """Make one table, with every note that its numbers need."""
    gathered, origins = _gathered_cells(results, layout, at_home=at_home)
    if not gathered:
        raise UserError(_lacking(results, layout))
    cells = printed_cells(gathered, layout, rounding=rounding)
    table_cells = _curve_cells(cells) if layout.curve else cells
    pivoted = pivot(table_cells, layout)
    notes = [
        *_notes(table_cells, layout, pivoted.keys, has_gaps=None in pivoted.cells),
        *_caveats(results, cells, layout, rounding),
        *([_CURVE] if layout.curve else []),
    ]
    block = Panels(
        name=layout.name,
        caption=_caption(table_cells, layout, pivoted.keys),
        layout=f"Layout: {layout.paper}.",
        tables=pivoted.tables,
        notes=tuple(notes),
        remarks=tuple(_lacking_measures(table_cells, layout)),
        origins=tuple(dict.fromkeys(origins)),
    )
    # CSV has every cell of a curve, of which the print shows some.
    in_order = cells if layout.curve else [cell for cell in pivoted.cells if cell is not None]
    return _NumbersTable(block=block, cells=in_order)


def _gathered_cells(
    results: Sequence[Bare], layout: Layout, *, at_home: bool
) -> tuple[list[PaperCell], list[str]]:
    """Return the cells of one table in all results, and which command or file made them."""
    cells: list[PaperCell] = []
    origins: list[str] = []
    for result in results:
        result_cells = _cells(result, layout, at_home=at_home)
        cells += [
            cell for cell in result_cells if cell.system not in _NO_SYSTEM or cell not in cells
        ]
        if not result_cells:
            continue
        if not isinstance(result, CellFile):
            origins += made_by(_spec(result))
        elif result.path:
            origins.append(f"Cells of {result.path}")
    return cells, origins


def _spec(result: Any) -> Mapping[str, Any]:
    """Return the spec of a result, or of one that was loaded with its collection."""
    spec: Mapping[str, Any] = getattr(result, "audit", result).spec
    return spec


def _curve_cells(cells: Sequence[PaperCell]) -> list[PaperCell]:
    """Keep the cells at the places 1, 2, 5, 10, 20 … of a curve, and the last."""
    last = cells[-1].condition
    return [
        cell for cell in cells if cell.condition == last or re.fullmatch("[125]0*", cell.condition)
    ]


def _lacking_measures(cells: Sequence[PaperCell], layout: Layout) -> Iterator[str]:
    """Name the measures of the paper's table that the cells do not have."""
    labels = {layout.label("measure", cell.measure) for cell in cells}
    paper_labels = [layout.label("measure", measure) for measure in layout.measures]
    lacking = [label for label in paper_labels if label not in labels]
    if lacking:
        yield f"The paper's table also has {', '.join(lacking)}, not in these results."


def _caveats(
    results: Sequence[Bare], cells: Sequence[PaperCell], layout: Layout, rounding: str
) -> list[str]:
    """Say what a reader of the numbers must know."""
    studies = [result for result in results if isinstance(result, TrainingStudy)]
    if studies and "system" in (*layout.rows, *layout.columns):
        return _study_caveats(studies, layout)
    audits = [
        result for result in results if isinstance(result, Audit | SourceAudits) and result.tilts
    ]
    if layout.derived != DELTA or not audits:
        return []
    return _tilt_caveats(audits, cells, layout, rounding)


def _study_caveats(studies: Sequence[TrainingStudy], layout: Layout) -> list[str]:
    """Say which bodies of a study were already tuned."""
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
    """Say how Relative Δ was computed, and which rankers are not shown."""
    caveats = []
    rankers: dict[str, None] = {}
    for audit in audits:
        rankers |= dict.fromkeys(left_out(audit, layout))
    if rankers:
        caveats.append(f"Without {', '.join(rankers)}: {layout.left_out}.")
    is_rounded_here = any(audit.spec.get("rounding", "none") != "paper" for audit in audits)
    if not any(cell.target == DELTA for cell in cells):
        caveats.append("No Relative Δ: it needs two groups; leave the others out with `where`.")
    elif rounding == "paper" and is_rounded_here:
        caveats.append(_ROUNDED)
    tilts = chain.from_iterable(audit.tilts for audit in audits)
    if not all(tilt.twins for tilt in tilts):
        caveats.append(_SHUFFLED)
    return caveats


def _cells(result: Bare, layout: Layout, *, at_home: bool) -> list[PaperCell]:
    """Return the cells of one table; `at_home` leaves out those of other tables.

    See `ranktilt.reporting.layouts.selection.Selection.home`.
    """
    if isinstance(result, CellFile):
        return [cell for cell in result.cells if cell.table == layout.name]
    return cells_of(result, layout, at_home=at_home)


def _texts_table(results: Sequence[Source], layout: Layout, queries: Sequence[str]) -> Panels:
    """Return the texts of the collection that a layout shows."""
    collections = sorted(of_collections(results), key=has_pairs, reverse=True)
    if len(collections) < layout.texts:
        raise UserError(_lacking(results, layout))
    return chosen_texts(collections[layout.texts - 1], layout.name, queries=queries)


def _caption(cells: Sequence[PaperCell], layout: Layout, keys: Sequence[str]) -> str:
    """Return the caption: the title, and what all numbers have in common."""
    values = key_values(cells, layout)
    context = [
        layout.caption_phrase(key, values[key][0])
        for key in KEYS
        if key not in (*keys, *_KEYS_OF_TITLE) and values[key][0] not in _NO_SYSTEM
    ]
    has_other_groups = layout.title_of_groups and "human" not in values["target"]
    title = layout.title_of_groups if has_other_groups else layout.title
    return f"{title}. {', '.join(context)}." if context else f"{title}."


def _notes(
    cells: Sequence[PaperCell], layout: Layout, keys: Sequence[str], *, has_gaps: bool
) -> list[str]:
    """Return the notes of single cells, and what a dash means."""
    notes = [
        f"{', '.join(map(layout.label, keys, cell.at(keys)))}: {cell.note}"
        for cell in cells
        if cell.note
    ]
    reasons = ["not in these results"] if has_gaps else []
    reasons += ["undefined"] if any(cell.text == DASH for cell in cells) else []
    notes += [f"{DASH}: {' or '.join(reasons)}"] if reasons else []
    return [f"{note.removesuffix('.')}." for note in dict.fromkeys(notes)]


def _lacking(results: Sequence[Source], layout: Layout) -> str:
    """Say what a layout shows that the results do not hold."""
    content = f"{layout.name} shows {layout.shows}"
    if layout.texts:
        for result in results:
            if isinstance(result, Loaded) and result.notes:
                return f"{content}; {result.notes[0]}"
    return f"{content}; the results given hold none: {layout.command} makes one"

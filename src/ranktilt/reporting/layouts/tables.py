"""The papers' tables of any results, as a document: which ones the results hold, and where each cell stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.data.artifact import names_files
from ranktilt.errors import UserError, unknown
from ranktilt.measures.contrast import ROUNDINGS
from ranktilt.reporting.document import Cell, Column, Document, Panels, Row, Table, printed
from ranktilt.reporting.layouts import cells as numbers
from ranktilt.reporting.layouts.cells import DELTA, CellFile
from ranktilt.reporting.layouts.layout import PAPER, Layout, layout_named, layouts
from ranktilt.reporting.layouts.results import cells_of, left_out, made_by, tables_of
from ranktilt.reporting.layouts.selection import KEYS, PaperCell
from ranktilt.reporting.layouts.texts import chosen_texts, has_pairs, of_collections
from ranktilt.reporting.numbers import DASH
from ranktilt.reporting.output import table
from ranktilt.reporting.reload import Loaded, LoadedAudit
from ranktilt.reporting.tones import Tone
from ranktilt.training.study_result import TrainingStudy

Bare = Any
"""A result, or a `CellFile`."""
Source = Any
"""The same, or one that was loaded with its collection."""
FORMATS = ("latex", "markdown", "csv")
_ANY = ("", "-")
"""Systems of cells that are about a collection: several results of it hold the same ones."""
_ROUNDED = (
    "Relative Δ comes from the means as printed here, as in the paper; the audit's own comes from the means before "
    "rounding, and may differ where they are small."
)
_SOME = "Values at the indices 1, 2, 5, 10, 20 … and at the last; CSV has all."
_SETTING = ("collection", "condition")
"""Keys whose only value a caption does not repeat: the title says it."""
_ALWAYS = ("dataset", "system", "measure")
"""Keys that CSV always has."""


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
    bare = [one.audit if isinstance(one, Loaded) else one for one in results]
    bare += [one for one in results if isinstance(one, LoadedAudit)]
    if layout == PAPER:
        chosen = [layouts()[name] for name in _held(results, bare)]
    else:
        chosen = [layout_named(layout) if isinstance(layout, str) else layout]
    if not chosen:
        raise UserError(
            "these results hold no table of a paper; name a layout (--layout) to see which command makes it"
        )
    blocks, cells = list[Panels](), list[PaperCell]()
    for shown in chosen:
        if shown.texts:
            blocks.append(_texts(results, shown, queries))
        else:
            block, found = _numbers(bare, shown, rounding, own=layout == PAPER)
            blocks.append(block)
            cells += found
    data = _cell_data(cells) if cells else _text_data(blocks)
    return Document("tables of a paper", "", printed(blocks), data=data)


def _cell_data(cells: Sequence[PaperCell]) -> pl.DataFrame:
    """Cells as they are printed and in the order of the print."""
    keys = [key for key in KEYS if key in _ALWAYS or any(getattr(cell, key) for cell in cells)]
    marks = ["mark"] if any(cell.mark for cell in cells) else []
    rows = [
        (
            c.table,
            *c.at(keys),
            "nan" if c.value != c.value else c.text,
            *(c.mark for _ in marks),
            c.note,
        )
        for c in cells
    ]
    return _frame(["table", *keys, "value", *marks, "note"], rows)


def _text_data(blocks: Sequence[Panels]) -> pl.DataFrame:
    rows = [
        (block.name, panel.caption, *(cell.text for cell in row))
        for block in blocks
        for panel in block.tables
        for row in panel.rows
    ]
    return _frame(
        ["table", "pair", *(column.title for column in blocks[0].tables[0].columns)], rows
    )


def _frame(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> pl.DataFrame:
    """What is empty is missing: CSV has no quotes for it."""
    return pl.DataFrame(
        [[text or None for text in row] for row in rows],
        schema=dict.fromkeys(names, pl.String),
        orient="row",
    )


def _held(results: Sequence[Source], bare: Sequence[Bare]) -> list[str]:
    """Names of the tables that the results hold, in the papers' order."""
    with_texts = sum(map(has_pairs, of_collections(results)))
    found = {layout.name for layout in layouts().values() if 0 < layout.texts <= with_texts}
    for one in bare:
        found.update(
            [cell.table for cell in one.cells] if isinstance(one, CellFile) else tables_of(one)
        )
    return [name for name in layouts() if name in found]


def _numbers(
    results: Sequence[Bare], layout: Layout, rounding: str, *, own: bool
) -> tuple[Panels, list[PaperCell]]:
    """One table, and its cells in the order of the print."""
    cells, made = list[PaperCell](), list[str]()
    for result in results:
        found = _cells(result, layout, own=own)
        cells += [cell for cell in found if cell.system not in _ANY or cell not in cells]
        if isinstance(result, CellFile):
            made += [f"Cells of {result.path}"] if found and result.path else []
        else:
            made += made_by(_spec(result)) if found else ()
    if not cells:
        raise UserError(_lacking(results, layout))
    cells = numbers.printed(cells, layout, rounding=rounding)
    caveats = [*_caveats(results, cells, layout, rounding), *([_SOME] if layout.curve else [])]
    shown = _some(cells) if layout.curve else cells
    tables, order, keys = _pivot(shown, layout)
    labels = [layout.label("measure", measure) for measure in layout.measures]
    shown_labels = {layout.label("measure", cell.measure) for cell in shown}
    lacking = [label for label in labels if label not in shown_labels]
    block = Panels(
        layout.name,
        _caption(shown, layout, keys),
        f"Layout: {layout.paper}.",
        tuple(tables),
        (*_notes(shown, layout, keys, gaps=None in order), *caveats),
        (f"The paper's table also has {', '.join(lacking)}, not in these results.",)
        if lacking
        else (),
        tuple(dict.fromkeys(made)),
    )
    return block, cells if layout.curve else [cell for cell in order if cell is not None]


def _spec(result: Any) -> Mapping[str, Any]:
    """The spec of a result, or of one that was loaded with its collection."""
    spec: Mapping[str, Any] = getattr(result, "audit", result).spec
    return spec


def _some(cells: Sequence[PaperCell]) -> list[PaperCell]:
    """Keep the cells at the places 1, 2, 5, 10, 20 … of a curve, and the last."""
    last = cells[-1].condition
    return [
        cell for cell in cells if cell.condition == last or re.fullmatch("[125]0*", cell.condition)
    ]


def _caveats(
    results: Sequence[Bare], cells: Sequence[PaperCell], layout: Layout, rounding: str
) -> list[str]:
    """What the numbers of a result must not be read without."""
    studies = [one for one in results if isinstance(one, TrainingStudy)]
    if studies and "system" in (*layout.rows, *layout.columns):
        tuned = (
            f"Body already tuned for {what}: {body}."
            for one in studies
            for body, what in one.tuned.items()
        )
        return [*([layout.mark_note] if layout.mark else []), *tuned]
    found = [one for one in results if isinstance(one, Audit | SourceAudits) and one.tilts]
    if layout.derived != DELTA or not found:
        return []
    others = dict.fromkeys(name for one in found for name in left_out(one, layout))
    notes = [f"Without {', '.join(others)}: {layout.left_out}."] if others else []
    if not any(cell.target == DELTA for cell in cells):
        notes.append("No Relative Δ: it takes two groups; leave the others out by `where`.")
    elif rounding == "paper" and any(one.spec.get("rounding", "none") != "paper" for one in found):
        notes.append(_ROUNDED)
    if not all(tilt.twins for one in found for tilt in one.tilts):
        notes.append(
            "Groups that are not twins: Relative Δ is level at what shuffled labels give, which need not be 0."
        )
    return notes


def _cells(result: Bare, layout: Layout, *, own: bool) -> list[PaperCell]:
    """Cells of one table; where nobody named it, only those that are at home in it."""
    if isinstance(result, CellFile):
        return [cell for cell in result.cells if cell.table == layout.name]
    return cells_of(result, layout, at_home=own)


def _texts(results: Sequence[Source], layout: Layout, queries: Sequence[str]) -> Panels:
    opened = sorted(of_collections(results), key=has_pairs, reverse=True)
    if len(opened) < layout.texts:
        raise UserError(_lacking(results, layout))
    return chosen_texts(opened[layout.texts - 1], layout.name, queries=queries)


def _pivot(
    cells: Sequence[PaperCell], layout: Layout
) -> tuple[list[Table], list[PaperCell | None], tuple[str, ...]]:
    """Lay cells out by a layout's panels, rows and columns.

    Returns the tables, their cells in the order of the print (None where there is none), and the
    keys that say where a cell stands, those of panels first.
    """
    if len({cell.place for cell in cells}) < len(cells):
        raise UserError(_twice(cells, layout))
    values = {key: _values(key, cells, layout) for key in KEYS}

    def together(keys: Sequence[str], among: Iterable[PaperCell]) -> list[tuple[str, ...]]:
        """Values of some keys that occur together, in order."""
        found = {cell.at(keys) for cell in among}
        return sorted(
            found,
            key=lambda one: [
                values[key].index(value) for key, value in zip(keys, one, strict=True)
            ],
        )

    several = [key for key in KEYS if len(values[key]) > 1]
    columns = tuple(key for key in layout.columns if key in several or key == layout.columns[-1])
    used = {*layout.rows, *layout.columns, *layout.panels}
    panels = tuple(
        key for key in (*layout.panels, *(k for k in KEYS if k not in used)) if key in several
    )
    tables, order = list[Table](), list[PaperCell | None]()
    for panel in together(panels, cells):
        inside = {
            cell.at((*layout.rows, *columns)): cell for cell in cells if cell.at(panels) == panel
        }
        across = together(columns, inside.values())
        rows, before = list[Row](), tuple("" for _ in layout.rows)
        for row in together(layout.rows, inside.values()):
            found = [inside.get((*row, *column)) for column in across]
            order += found
            same = next(
                (i for i, (a, b) in enumerate(zip(row, before, strict=True)) if a != b), len(row)
            )
            labels = [
                "" if i < same else layout.label(k, v)
                for i, (k, v) in enumerate(zip(layout.rows, row, strict=True))
            ]
            rule = bool(rows) and len(labels) > 1 and bool(labels[0])
            rows.append(Row((*map(Cell, labels), *map(_printed, found)), rule=rule))
            before = row
        title = ", ".join(filter(None, map(layout.said, panels, panel)))
        stub = [Column(layout.title_of(key), number=False, header=True) for key in layout.rows]
        titles = [Column(layout.label(columns[-1], column[-1])) for column in across]
        first = [column[0] for column in across] if len(columns) > 1 else []
        spans = [
            (layout.label(columns[0], value), first.count(value)) for value in dict.fromkeys(first)
        ]
        above = (("", len(layout.rows)), *spans) if spans else ()
        tables.append(Table(title, (*stub, *titles), tuple(rows), spans=above))
    return tables, order, tuple(dict.fromkeys((*panels, *layout.rows, *columns)))


def _caption(cells: Sequence[PaperCell], layout: Layout, keys: Sequence[str]) -> str:
    values = {key: _values(key, cells, layout) for key in KEYS}
    only = [(key, found[0]) for key, found in values.items() if key not in (*keys, *_SETTING)]
    context = [layout.said(key, value) for key, value in only if value not in _ANY]
    groups = layout.title_of_groups and "human" not in values["target"]
    title = layout.title_of_groups if groups else layout.title
    return ". ".join([title, *([", ".join(context)] if context else [])]) + "."


def _notes(
    cells: Sequence[PaperCell], layout: Layout, keys: Sequence[str], *, gaps: bool
) -> list[str]:
    notes = [
        f"{', '.join(map(layout.label, keys, cell.at(keys)))}: {cell.note}"
        for cell in cells
        if cell.note
    ]
    why = ["not in these results"] if gaps else []
    why += ["undefined"] if any(cell.text == DASH for cell in cells) else []
    notes += [f"{DASH}: {' or '.join(why)}"] if why else []
    return [f"{note.removesuffix('.')}." for note in dict.fromkeys(notes)]


def _printed(cell: PaperCell | None) -> Cell:
    """A cell as it is printed; of Relative Δ, with the side that it favours."""
    if cell is None:
        return Cell(DASH)
    favours = cell.target == DELTA and cell.value == cell.value and cell.value != 0
    tone: Tone = "" if not favours else "first" if cell.value > 0 else "second"
    return Cell(cell.text.replace("-", "−") + cell.mark, cell.value if favours else None, tone)


def _values(key: str, cells: Sequence[PaperCell], layout: Layout) -> list[str]:
    """Values of one key in the order of the print."""
    found = list(dict.fromkeys(str(getattr(cell, key)) for cell in cells))
    if key == "measure":
        found.sort(
            key=lambda m: layout.measures.index(m) if m in layout.measures else len(layout.measures)
        )
    if key == "target":
        found.sort(key=lambda target: (target == DELTA, target not in ("human", "")))
    return found


def _twice(cells: Sequence[PaperCell], layout: Layout) -> str:
    places = [cell.place for cell in cells]
    place = next(place for number, place in enumerate(places) if place in places[:number])
    keys = [
        f"{layout.title_of(key).lower()} {value}"
        for key, value in zip(KEYS, place[1:], strict=True)
        if value
    ]
    return (
        f"{layout.name}: two results hold the same cell ({', '.join(keys)}); leave one of them out, or give their "
        "folders different names"
    )


def _lacking(results: Sequence[Source], layout: Layout) -> str:
    first = f"{layout.name} shows {layout.shows}"
    why = [note for result in results if isinstance(result, Loaded) for note in result.notes]
    if layout.texts and why:
        return f"{first}; {why[0]}"
    return f"{first}; the results given hold none: {layout.command} makes one"

"""Tables of a document as LaTeX with booktabs; sentences and notes are comments.

A *block* is a part of a document, such as a table. A text is *escaped* so that LaTeX prints it as
it is, and *guarded* where others wrote it, as a name of a run: then it cannot hold commands, ends
of cells or invisible characters either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ranktilt.reporting.document import Cell, Column, Document, Panels, Table
from ranktilt.reporting.render.markdown import clean, flat, one_line

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "Δ": r"$\Delta$",
    "α": r"$\alpha$",
    "–": "--",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "…": r"\ldots{}",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "τ": r"$\tau$",
    "→": r"$\rightarrow$",
    "∞": r"$\infty$",
}
"""Characters that LaTeX reads as commands or that its text fonts lack, as LaTeX writes them."""
_GUARDS = {**_ESCAPES, "[": "{[}", "]": "{]}", "*": "{*}", "`": "{`}"}
"""Also brackets and stars, which LaTeX would read as options of the ``\\\\`` that ends a line."""
_NARROW_COLUMNS = 6
"""Most columns of a table that fit into one column of a two-column paper."""
_SMALL_PRINT_COLUMNS = 9
"""Most columns of a table that fit across the page in ``\\small``; more need ``\\scriptsize``."""
_TEXT_WIDTH = 0.94
"""Share of the page's width that all columns of texts have together."""
_SPANNING_ALIGNMENT = r"p{0.96\linewidth}"
"""Alignment of a cell that spans columns of texts: a paragraph, which wraps."""
_SIDE_COLOURS = {"first": (0x00, 0x72, 0xB2), "second": (0xD5, 0x5E, 0x00)}
"""Blue and orange, which the colour-blind can distinguish (after Okabe and Ito)."""
_DARKEST_SHARE = 0.6
"""Share of the colour in the darkest shade; the rest is white."""
_SHADED = (
    "Shaded: Relative Δ, blue above 0 and orange below, the darker the further from it "
    "(darkest from 100 on)."
)
"""Note on the shades of cells."""


def render(document: Document, *, notes: bool = True) -> str:
    r"""Return tables as ``tabular``, and panels as ``table`` with caption and label.

    Both need ``\usepackage{booktabs}``.
    """
    lines: list[str] = []
    for block in document.blocks("text"):
        if isinstance(block, Table):
            lines += _table(block)
        elif isinstance(block, Panels):
            lines += [*([""] if lines else []), *_panels(block)]
    comments = [line.text for line in document.lines(notes=notes)]
    comments += [*document.legend, *document.notes] if notes else []
    return "\n".join([*lines, *(f"% {one_line(text)}" for text in comments)]) + "\n"


def _table(table: Table) -> Iterator[str]:
    """Yield the lines of a table."""
    columns, rows = flat(table)
    titles = [column.title for column in columns]
    if table.group_titles:
        # The first column has the name of the first group, such as "run", in small letters.
        titles[0] = titles[0].capitalize()
    yield f"% {one_line(table.caption)}"
    alignment = "".join("r" if column.number else "l" for column in columns)
    yield rf"\begin{{tabular}}{{{alignment}}}"
    yield r"\toprule"
    yield _line(map(_escaped, titles))
    yield r"\midrule"
    for index, (begins_group, cells) in enumerate(rows):
        if index and begins_group:
            yield r"\midrule"
        yield _line(map(_escaped, cells))
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _panels(block: Panels) -> Iterator[str]:
    """Yield the lines of a complete environment, whose width and print follow from its columns."""
    columns = max(block.tables, key=lambda table: len(table.columns)).columns
    column_count = len(columns)
    has_texts = any(map(_is_text, columns))
    environment = "table*" if has_texts or column_count > _NARROW_COLUMNS else "table"
    is_shaded = any(map(_has_shades, block.tables))
    xcolor = r" and \usepackage[table]{xcolor}" if is_shaded else ""
    packages = rf"{block.layout} Needs \usepackage{{booktabs}}{xcolor}."
    yield from (f"% {clean(text)}" for text in (packages, *block.origins, *block.remarks))
    yield rf"\begin{{{environment}}}[t]"
    yield r"\centering"
    yield rf"\caption{{{_guarded(block.caption)}}}"
    yield rf"\label{{tab:{block.name}}}"
    if column_count > _SMALL_PRINT_COLUMNS:
        yield from (r"\scriptsize", r"\setlength{\tabcolsep}{2pt}")
    elif environment == "table*":
        yield r"\small"
    yield rf"\begin{{tabular}}{{{_alignment(columns)}}}"
    yield r"\toprule"
    alignment = _SPANNING_ALIGNMENT if has_texts else "l"
    spanning = rf"\multicolumn{{{column_count}}}{{{alignment}}}"
    yield from _panel_rows(block.tables, spanning, column_count)
    yield r"\bottomrule"
    yield r"\end{tabular}"
    notes = [*([_SHADED] if is_shaded else []), *block.notes]
    if notes:
        yield from (r"\par\smallskip", r"\begin{minipage}{\linewidth}", r"\footnotesize")
        yield from (rf"{_guarded(note)}\par" for note in notes)
        yield r"\end{minipage}"
    yield rf"\end{{{environment}}}"


def _is_text(column: Column) -> bool:
    """Tell whether a column holds texts, which wrap."""
    return not column.number and not column.header


def _has_shades(table: Table) -> bool:
    """Tell whether any cell has the tone of a side."""
    cells = chain.from_iterable(table.rows)
    return any(cell.tone in _SIDE_COLOURS for cell in cells)


def _alignment(columns: Sequence[Column]) -> str:
    """Return the alignment of columns: numbers right, names left, and texts in wrapped columns."""
    text_count = sum(map(_is_text, columns))
    text_column = rf"p{{{_TEXT_WIDTH / max(text_count, 1):.3g}\linewidth}}"
    alignments = []
    for column in columns:
        if _is_text(column):
            alignments.append(text_column)
        else:
            alignments.append("r" if column.number else "l")
    return "".join(alignments)


def _panel_rows(tables: Sequence[Table], spanning: str, column_count: int) -> Iterator[str]:
    """Yield the lines of the panels, with rules between them.

    Panels that all have the same header share it: it stands once, above the first title. `spanning`
    begins a cell that spans all columns.
    """
    is_shared = len({(table.spans, table.columns) for table in tables}) == 1
    for index, table in enumerate(tables):
        header = [*_header(table, column_count), r"\midrule"]
        title = []
        if table.caption:
            caption = rf"{spanning}{{\textit{{{_guarded(table.caption)}}}}}"
            title = [_line([caption]), r"\midrule"]
        if index:
            yield r"\midrule"
        if not is_shared:
            yield from [*title, *header]
        elif index:
            yield from title
        else:
            yield from [*header, *title]
        for row in table.rows:
            if row.rule:
                yield r"\midrule"
            yield _line((f"{_shade(cell)}{_guarded(cell.text)}" for cell in row), column_count)


def _shade(cell: Cell) -> str:
    """Return the command that shades a cell of a favoured side; darkest from a value of 100 on."""
    if cell.tone not in _SIDE_COLOURS or cell.value is None:
        return ""
    share = _DARKEST_SHARE * min(abs(cell.value) / 100, 1)
    channels = [round(255 - share * (255 - channel)) for channel in _SIDE_COLOURS[cell.tone]]
    return rf"\cellcolor[HTML]{{{''.join(f'{channel:02X}' for channel in channels)}}}"


def _header(table: Table, column_count: int) -> Iterator[str]:
    """Yield the line of titles, below the line of headings that span several columns."""
    if table.spans:
        header_count = sum(column.header for column in table.columns)
        cells, rules = [""] * header_count, list[str]()
        next_column = header_count + 1
        # The first span is above the columns that name rows, and has no title.
        for title, span in table.spans[1:]:
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{_guarded(title)}}}")
            rules.append(rf"\cmidrule(lr){{{next_column}-{next_column + span - 1}}}")
            next_column += span
        cells_right = column_count + 1 - next_column
        yield _line([*cells, *[""] * cells_right], len(cells))
        yield " ".join(rules)
    yield _line([_guarded(column.title) for column in table.columns], column_count)


def _line(cells: Iterable[str], column_count: int = 0) -> str:
    """Return a line of cells, with empty cells up to `column_count`; 0 for no more than given."""
    cells = list(cells)
    line = " & ".join([*cells, *[""] * (column_count - len(cells))])
    # LaTeX would read a bracket or a star as an option of the command that ends the line above.
    if line.startswith(("[", "*")):
        line = f"{{}}{line}"
    # Empty cells at the end would leave two blanks in a row.
    return (line.rstrip() if column_count else line) + r" \\"


def _escaped(text: str) -> str:
    """Escape a text that RankTilt wrote, on a single line."""
    return "".join(_ESCAPES.get(letter, letter) for letter in one_line(text))


def _guarded(text: str) -> str:
    """Escape a text that others wrote, so that it holds no command and no end of a line or cell."""
    return "".join(_GUARDS.get(letter, letter) for letter in clean(text))

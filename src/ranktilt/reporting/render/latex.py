"""Tables of a document as LaTeX with booktabs; sentences and notes are comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ranktilt.reporting.document import Cell, Column, Document, Panels, Table
from ranktilt.reporting.render.markdown import clean, flat, one_line

_SIGNS = {
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
}
"""Characters that LaTeX reads as commands or that its text fonts lack, as LaTeX writes them."""
_GUARDED = {**_SIGNS, "[": "{[}", "]": "{]}", "*": "{*}", "`": "{`}"}
"""Brackets and stars too: LaTeX would read them as options of the line's end before them."""
_NARROW_COLUMNS = 6
"""Most columns of a table that fit into one column of a two-column paper."""
_SMALL_PRINT_COLUMNS = 9
"""Most columns of a table that fit across the page in small print; more need smaller print."""
_TEXT_WIDTH = 0.94
"""Share of the line's width that all columns of texts have together."""
_SPANNING_ALIGNMENT = r"p{0.96\linewidth}"
"""Alignment of a cell that spans columns of texts: a paragraph, which wraps."""
_SIDES = {"first": (0x00, 0x72, 0xB2), "second": (0xD5, 0x5E, 0x00)}
"""Blue and orange, told apart by the colour-blind (after Okabe and Ito)."""
_DARKEST_SHARE = 0.6
"""Largest share of a colour in a shade."""
_SHADED = (
    "Shaded: Relative Δ, blue above 0 and orange below, the darker the further from it "
    "(darkest from 100 on)."
)
"""Note on the shades of cells."""


def render(document: Document, *, notes: bool = True) -> str:
    r"""Write tables as ``tabular``, and panels as ``table`` with caption and label.

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
    for number, (begins_group, cells) in enumerate(rows):
        if number and begins_group:
            yield r"\midrule"
        yield _line(map(_escaped, cells))
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _panels(block: Panels) -> Iterator[str]:
    """Write a complete environment, as wide and in as small a print as its columns need."""
    columns = max(block.tables, key=lambda table: len(table.columns)).columns
    width = len(columns)
    has_texts = any(map(_is_text, columns))
    environment = "table*" if has_texts or width > _NARROW_COLUMNS else "table"
    is_shaded = any(map(_has_shades, block.tables))
    colours = r" and \usepackage[table]{xcolor}" if is_shaded else ""
    needs = rf"{block.layout} Needs \usepackage{{booktabs}}{colours}."
    yield from (f"% {clean(text)}" for text in (needs, *block.origins, *block.remarks))
    yield rf"\begin{{{environment}}}[t]"
    yield r"\centering"
    yield rf"\caption{{{_guarded(block.caption)}}}"
    yield rf"\label{{tab:{block.name}}}"
    if width > _SMALL_PRINT_COLUMNS:
        yield from (r"\scriptsize", r"\setlength{\tabcolsep}{2pt}")
    elif environment == "table*":
        yield r"\small"
    yield rf"\begin{{tabular}}{{{_alignment(columns)}}}"
    yield r"\toprule"
    spanning = rf"\multicolumn{{{width}}}{{{_SPANNING_ALIGNMENT if has_texts else 'l'}}}"
    yield from _panel_rows(block.tables, spanning, width)
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
    return any(cell.tone in _SIDES for cell in cells)


def _alignment(columns: Sequence[Column]) -> str:
    """Align numbers right, names left, and let columns of texts share the line."""
    text_count = sum(map(_is_text, columns))
    text_column = rf"p{{{_TEXT_WIDTH / max(text_count, 1):.3g}\linewidth}}"
    alignments = []
    for column in columns:
        if _is_text(column):
            alignments.append(text_column)
        else:
            alignments.append("r" if column.number else "l")
    return "".join(alignments)


def _panel_rows(tables: Sequence[Table], spanning: str, width: int) -> Iterator[str]:
    """Write panels between rules; those with the same header share it."""
    is_shared = len({(table.spans, table.columns) for table in tables}) == 1
    for number, table in enumerate(tables):
        header = [*_header(table, width), r"\midrule"]
        title = []
        if table.caption:
            caption = rf"{spanning}{{\textit{{{_guarded(table.caption)}}}}}"
            title = [_line([caption]), r"\midrule"]
        if number:
            yield r"\midrule"
        if not is_shared:
            yield from [*title, *header]
        elif number:
            yield from title
        else:
            yield from [*header, *title]
        for row in table.rows:
            if row.rule:
                yield r"\midrule"
            yield _line((f"{_shade(cell)}{_guarded(cell.text)}" for cell in row), width)


def _shade(cell: Cell) -> str:
    """Colour a cell that favours a side, the darker the more."""
    if cell.tone not in _SIDES or cell.value is None:
        return ""
    share = _DARKEST_SHARE * min(abs(cell.value) / 100, 1)
    parts = (round(255 - share * (255 - part)) for part in _SIDES[cell.tone])
    return rf"\cellcolor[HTML]{{{''.join(f'{part:02X}' for part in parts)}}}"


def _header(table: Table, width: int) -> Iterator[str]:
    """Yield the lines of the headings, with those that span columns."""
    if table.spans:
        header_count = sum(column.header for column in table.columns)
        cells, rules = [""] * header_count, list[str]()
        next_column = header_count + 1
        # The first span stands above the headers of rows, and has no title.
        for title, span in table.spans[1:]:
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{_guarded(title)}}}")
            rules.append(rf"\cmidrule(lr){{{next_column}-{next_column + span - 1}}}")
            next_column += span
        cells_right = width + 1 - next_column
        yield _line([*cells, *[""] * cells_right], len(cells))
        yield " ".join(rules)
    yield _line([_guarded(column.title) for column in table.columns], width)


def _line(cells: Iterable[str], width: int = 0) -> str:
    """Write one line of cells, filled up to a width with empty ones."""
    cells = list(cells)
    line = " & ".join([*cells, *[""] * (width - len(cells))])
    # Empty cells at the end would leave two blanks in a row.
    return (line.rstrip() if width else line) + r" \\"


def _escaped(text: str) -> str:
    """Escape a text of RankTilt's, in one line."""
    return "".join(_SIGNS.get(letter, letter) for letter in one_line(text))


def _guarded(text: str) -> str:
    """Escape a text that others wrote: it holds no command and no end of a line or cell."""
    return "".join(_GUARDED.get(letter, letter) for letter in clean(text))

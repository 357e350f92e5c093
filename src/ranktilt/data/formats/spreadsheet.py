"""CSV for spreadsheets, in which no name or id is a formula: what begins like one has an apostrophe before it."""

from __future__ import annotations

import re

import polars as pl

from ranktilt.data.formats.ids import NUMBER

_FORMULA = r"(?s)'*[=+\-@\t\r\n].+"
"""Spreadsheets run cells that begin with one of these; apostrophes before it count, so that `from_cell` is exact."""
_ESCAPED = re.compile(rf"'{_FORMULA.removeprefix('(?s)')}", re.DOTALL)


def csv_text(frame: pl.DataFrame) -> str:
    """Return a frame as CSV whose text cells and column names are no formulas; numbers stay as they are."""
    safe = frame.with_columns(_escaped(pl.col(pl.String)))
    names = pl.DataFrame({"name": frame.columns}, schema={"name": pl.String}).select(
        _escaped(pl.col("name"))
    )
    safe.columns = names["name"].to_list()
    return safe.write_csv()


def _escaped(texts: pl.Expr) -> pl.Expr:
    is_formula = texts.str.contains(f"^{_FORMULA}$") & ~texts.str.contains(f"^{NUMBER}$")
    return pl.when(is_formula).then(pl.lit("'") + texts).otherwise(texts).name.keep()


def from_cell(cell: str) -> str:
    """Return the text of a cell as it was before `csv_text` wrote it."""
    return cell[1:] if _ESCAPED.fullmatch(cell) else cell

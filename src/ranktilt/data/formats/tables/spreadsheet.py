"""Write CSV for spreadsheets: text that begins like a formula gets an apostrophe before it.

Spreadsheet programs would otherwise run it as a formula.
"""

from __future__ import annotations

import re

import polars as pl

from ranktilt.data.formats.ids import NUMBER

_FORMULA = r"(?s)'*[=+\-@\t\r\n].+"
"""Text that is written with one more apostrophe before it.

It includes formulas after apostrophes, so that `from_cell` restores every text.
"""
_ESCAPED = re.compile(rf"'{_FORMULA.removeprefix('(?s)')}", re.DOTALL)
"""A text that got an apostrophe."""


def csv_text(frame: pl.DataFrame) -> str:
    """Return a frame as CSV without formulas in text cells and column names."""
    safe = frame.with_columns(_escaped(pl.col(pl.String)))
    names = pl.DataFrame({"name": frame.columns}, schema={"name": pl.String})
    safe.columns = names.select(_escaped(pl.col("name")))["name"].to_list()
    return safe.write_csv()


def _escaped(texts: pl.Expr) -> pl.Expr:
    """Return texts with an apostrophe before those that begin like a formula."""
    is_formula = texts.str.contains(f"^{_FORMULA}$") & ~texts.str.contains(f"^{NUMBER}$")
    return pl.when(is_formula).then(pl.lit("'") + texts).otherwise(texts).name.keep()


def from_cell(cell: str) -> str:
    """Return the text that `csv_text` wrote into a cell."""
    return cell[1:] if _ESCAPED.fullmatch(cell) else cell

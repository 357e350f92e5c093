"""Which formats, layouts and files of ``ranktilt report`` go together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ranktilt.cli.output import ENDINGS, check_ending, check_paths
from ranktilt.data.files import require_place
from ranktilt.errors import UserError, join_words

Format = Literal["html", "latex", "markdown", "csv", "svg", "pdf", "png"]
"""Any format of a report; ``html`` is a page."""
TABLES: tuple[Format, ...] = ("latex", "markdown", "csv")
"""Formats of a paper's tables."""
FIGURES: tuple[Format, ...] = ("svg", "pdf", "png")
"""Formats of a paper's figures."""


def format_of(output: Path | None, layout: str | None, figures: Path | None) -> Format:
    """Return the format where none is typed.

    Figures are SVG. Without a layout the format is a page, with a layout the format of a table
    that the ending of `output` names, or Markdown.
    """
    if figures is not None:
        return "svg"
    if layout is None:
        return "html"
    ending = "" if output is None else output.suffix.lower()
    if ending in (".html", ".htm"):
        raise UserError(
            f"{output}: a page has no layout; name a .tex, .md or .csv file for the table, or omit "
            "--layout"
        )
    for table_format in TABLES:
        if ending in ENDINGS[table_format]:
            return table_format
    return "markdown"


def shows_texts(layout: str | None) -> bool:
    """Tell whether a layout has queries and documents; all tables together (None) have."""
    from ranktilt.reporting.layouts.layout import PAPER, layouts

    return layout in (None, PAPER) or layouts()[layout].texts > 0


def require_layout(name: str) -> None:
    """Refuse an unknown layout."""
    from ranktilt.reporting.layouts.layout import PAPER, layout_named

    if name != PAPER:
        layout_named(name)


def _check_layout(name: str, format: Format) -> None:
    """Refuse a format that a layout does not have."""
    from ranktilt.reporting.layouts.layout import PAPER, layouts

    if format in TABLES or (format in FIGURES and name != PAPER and layouts()[name].is_figure):
        return
    if format in FIGURES:
        raise UserError(f"{name} is a table, not a figure; choose --format latex, markdown or csv")
    raise UserError(f"a layout is not a page ({format}); choose --format latex, markdown or csv")


def check_figures(format: Format, folder: Path | None, output: Path | None) -> None:
    """Refuse figures in a format of tables, and a format of figures without a folder for them.

    `folder` is where ``--figures`` draws, and `output` the file of ``-o``.
    """
    if folder is None:
        if format in FIGURES:
            raise UserError(f"{format} is a format for figures; name a folder: --figures DIR")
        return
    if format not in FIGURES:
        raise UserError(f"--figures draws {join_words(FIGURES, 'or')}, not {format}")
    if output is not None:
        raise UserError("--figures writes only figures; omit -o")
    require_place(folder / f"figure.{format}")


def check_output(
    format: Format,
    output: Path | None,
    layout: str | None,
    files: Sequence[Path],
    *,
    no_texts: bool,
) -> None:
    """Refuse what cannot be written, before a result is read.

    Parameters
    ----------
    format : str
        The format to write.
    output : Path or None
        The file of ``-o``; None for standard output.
    layout : str or None
        The table or figure of a paper; None for a page, or for all of a paper's figures.
    files : sequence of Path
        The results to read, which the output may not replace.
    no_texts : bool
        Whether ``--no-texts`` is typed.
    """
    if layout is not None:
        _check_layout(layout, format)
    if no_texts and format in FIGURES:
        raise UserError("--no-texts is for pages and tables; figures hold no texts")
    if output is None:
        if format == "html" and sys.stdout.isatty():
            raise UserError("the page needs a file: -o report.html")
        return
    check_paths({"-o": output}, inputs=files)
    hint = ""
    for table_format in TABLES:
        if output.suffix.lower() in ENDINGS[table_format]:
            hint = f"; --format {table_format} makes {output.suffix} files"
    check_ending(output, format, hint=hint)

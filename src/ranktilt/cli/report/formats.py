"""What ``ranktilt report`` writes, and where: formats, layouts and files that go together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ranktilt.cli.output import ENDINGS, check_ending, check_paths
from ranktilt.data.files import require_place
from ranktilt.errors import UserError, join_words

TABLES, FIGURES = ("latex", "markdown", "csv"), ("svg", "pdf", "png")
"""Formats of a paper's tables and figures."""


def format_of(output: Path | None, layout: str | None, figures: Path | None) -> str:
    """Return the format where none is named: a page, or for a layout as the file ends."""
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
    return next((name for name in TABLES if ending in ENDINGS[name]), "markdown")


def shows_texts(layout: str | None) -> bool:
    """Tell whether a layout is a table of texts, or all tables."""
    from ranktilt.reporting.layouts.layout import PAPER, layouts

    return layout in (None, PAPER) or layouts()[layout].texts > 0


def require_layout(name: str) -> None:
    """Refuse an unknown layout."""
    from ranktilt.reporting.layouts.layout import PAPER, layout_named

    if name != PAPER:
        layout_named(name)


def _check_layout(name: str, form: str) -> None:
    """Refuse a format that a layout does not have."""
    from ranktilt.reporting.layouts.layout import PAPER, layouts

    if form in TABLES or (form in FIGURES and name != PAPER and layouts()[name].is_figure):
        return
    if form in FIGURES:
        raise UserError(f"{name} is a table, not a figure; choose --format latex, markdown or csv")
    raise UserError(f"a layout is not a page ({form}); choose --format latex, markdown or csv")


def check_figures(form: str, folder: Path | None, output: Path | None) -> None:
    """Refuse figures in a format of tables, and the reverse."""
    if folder is None:
        if form in FIGURES:
            raise UserError(f"{form} is a format for figures; name a folder: --figures DIR")
        return
    if form not in FIGURES:
        raise UserError(f"--figures draws {join_words(FIGURES, 'or')}, not {form}")
    if output is not None:
        raise UserError("--figures writes only figures; omit -o")
    require_place(folder / f"figure.{form}")


def check_output(
    form: str, output: Path | None, layout: str | None, files: Sequence[Path], *, no_texts: bool
) -> None:
    """Refuse what cannot be written, before a result is read."""
    if layout is not None:
        _check_layout(layout, form)
    if no_texts and form in FIGURES:
        raise UserError("--no-texts is for pages and tables; figures hold no texts")
    if output is None:
        if form == "html" and sys.stdout.isatty():
            raise UserError("the page needs a file: -o report.html")
        return
    check_paths({"-o": output}, inputs=files)
    hint = ""
    for table_format in TABLES:
        if output.suffix.lower() in ENDINGS[table_format]:
            hint = f"; --format {table_format} makes {output.suffix} files"
    check_ending(output, form, hint=hint)

"""Options of ``ranktilt report``: where it writes, in which format, and with which texts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import completion
from ranktilt.cli.app import OUTPUT, SELDOM
from ranktilt.cli.report.formats import (
    TABLES,
    Format,
    check_figures,
    check_output,
    format_of,
    require_layout,
    shows_texts,
)
from ranktilt.errors import UserError


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The file or folder to write, its format, and what it shows.

    A *layout* is the form of a table or figure as a paper prints it.
    """

    output: Annotated[
        Path | None,
        Parameter(alias="-o", help="File for the page or table.", metavar="FILE"),
    ] = None
    figures: Annotated[
        Path | None,
        Parameter(help="Folder for the figures, drawn for a paper.", metavar="DIR"),
    ] = None
    layout: Annotated[
        str | None,
        Parameter(
            help="A table or figure as a paper prints it: paper, dai-1, dai-fig7, wang-1, "
            "askari-1…",
            metavar="NAME",
            completer=completion.layout_names,
        ),
    ] = None
    format: Annotated[
        Format | None,
        Parameter(
            help="html for a page; latex, markdown or csv for a layout; svg, pdf or png for "
            "figures.",
            metavar="FORMAT",
            show_choices=False,
        ),
    ] = None
    query: Annotated[
        list[str] | None,
        Parameter(
            help="Queries whose texts dai-10 and dai-11 show (default: by tilt).",
            metavar="ID",
            group=SELDOM,
        ),
    ] = None
    no_texts: Annotated[
        bool,
        Parameter(help="Leave queries, ranked lists and documents out of the page."),
    ] = False
    open_page: Annotated[
        bool,
        Parameter(
            name="--open",
            help="Open the page in the browser; without -o, from a temporary file.",
        ),
    ] = False

    def check_layout(self) -> None:
        """Refuse an unknown layout."""
        if self.layout is not None:
            require_layout(self.layout)

    def format_in_force(self) -> Format:
        """Return the format that is typed, or else that of the file's ending."""
        return self.format or format_of(self.output, self.layout, self.figures)

    def page_to_open(self, format: Format) -> Path:
        """Return the file of the page that a browser opens; a temporary one where none is named."""
        if format != "html":
            raise UserError(f"--open needs the page (html), not {format}")
        return self.output or Path(tempfile.mkdtemp(prefix="ranktilt-")) / "report.html"

    def check(self, format: Format, files: Sequence[Path]) -> None:
        """Refuse what cannot be written in this format; `files` are the results to read."""
        check_figures(format, self.figures, self.output)
        check_output(format, self.output, self.layout, files, no_texts=self.no_texts)
        shows_queries = format in TABLES and not self.no_texts and shows_texts(self.layout)
        if self.query and not shows_queries:
            raise UserError(
                "--query needs a table of texts: --layout dai-10, dai-11 or paper, without "
                "--no-texts"
            )

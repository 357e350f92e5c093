"""``ranktilt report``: a page people look at, and the papers' tables and figures."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ranktilt.cli import completion
from ranktilt.cli.app import OUTPUT, SELDOM, START, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import print_result
from ranktilt.cli.report.formats import (
    TABLES,
    check_figures,
    check_output,
    format_of,
    require_layout,
    shows_texts,
)
from ranktilt.cli.report.layouts import LAYOUT, paper_table, write_figures
from ranktilt.data.files import write_files
from ranktilt.errors import UserError

Formats = Literal["html", "latex", "markdown", "csv", "svg", "pdf", "png"]
"""All formats of a report."""


@verb(
    "report",
    "report audit.json -o report.html",
    "report audit.json --figures figures --format pdf",
    arguments="FILE…",
    panel=START,
    order=4,
)
def report(
    files: Annotated[
        list[Path],
        Parameter(
            name="FILE", help="Audits and other results (JSON); for a layout also cells (CSV)."
        ),
    ],
    /,
    *,
    output: Annotated[
        Path | None,
        Parameter(alias="-o", help="File for the page or table.", metavar="FILE", group=OUTPUT),
    ] = None,
    figures: Annotated[
        Path | None,
        Parameter(help="Folder for the figures, drawn for a paper.", metavar="DIR", group=OUTPUT),
    ] = None,
    layout: Annotated[
        str | None,
        Parameter(
            help="A table or figure as a paper prints it: paper, dai-1, dai-fig7, wang-1, "
            "askari-1…",
            metavar="NAME",
            group=OUTPUT,
            completer=completion.layout_names,
        ),
    ] = None,
    format: Annotated[
        Formats | None,
        Parameter(
            help="html for a page; latex, markdown or csv for a layout; svg, pdf or png for "
            "figures.",
            metavar="FORMAT",
            group=OUTPUT,
            show_choices=False,
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        Parameter(
            help="Queries whose texts dai-10 and dai-11 show (default: by tilt).",
            metavar="ID",
            group=SELDOM,
        ),
    ] = None,
    no_texts: Annotated[
        bool,
        Parameter(help="Leave queries, ranked lists and documents out of the page.", group=OUTPUT),
    ] = False,
    open_page: Annotated[
        bool,
        Parameter(
            name="--open",
            help="Open the page in the browser; without -o, from a temporary file.",
            group=OUTPUT,
        ),
    ] = False,
) -> None:
    """Write a page, a paper's table or figures from results.

    A page is one file that opens anywhere. It shows the ranked lists that the audit keeps, and
    reads the audit's collection again. It leaves out whatever is gone or has changed, and says so.
    """
    if layout is not None:
        require_layout(layout)
    form = format or format_of(output, layout, figures)
    if open_page:
        output = _page_to_open(form, output)
    check_figures(form, figures, output)
    check_output(form, output, layout, files, no_texts=no_texts)
    if query and (form not in TABLES or no_texts or not shows_texts(layout)):
        raise UserError(
            "--query needs a table of texts: --layout dai-10, dai-11 or paper, without --no-texts"
        )
    if form == "html":
        _page(files, output, texts=not no_texts)
        if open_page and output is not None:
            _open(output)
    elif figures is not None:
        write_figures(files, figures, form, layout or "")
    else:
        text = paper_table(files, layout or LAYOUT, form, texts=not no_texts, queries=query or ())
        _deliver(text, output)


def _page_to_open(form: str, output: Path | None) -> Path:
    """Return the file of the page that a browser opens; a temporary one where none is named."""
    if form != "html":
        raise UserError(f"--open needs the page (html), not {form}")
    return output or Path(tempfile.mkdtemp(prefix="ranktilt-")) / "report.html"


def _open(page: Path) -> None:
    """Open a page in a browser."""
    if not webbrowser.open(page.resolve().as_uri()):
        note(f"no browser could be opened; open {page} in yours")


def _page(files: Sequence[Path], output: Path | None, *, texts: bool) -> None:
    """Write the page of results."""
    from ranktilt.reporting.numbers import size
    from ranktilt.reporting.reload import Loaded
    from ranktilt.reporting.report import opened, report_page

    results = opened(files)
    for result in results:
        if isinstance(result, Loaded) and result.notes:
            front = "" if result.collection else "Queries, ranked lists and texts are left out. "
            note(front + " ".join(result.notes))
    page = report_page(results, texts=texts)
    _deliver(page, output)
    if output is not None:
        note(f"{output}: {size(len(page.encode()))}")


def _deliver(text: str, output: Path | None) -> None:
    """Print a text, or write it into a file."""
    if output is None:
        print_result(text)
    else:
        write_files({output: text.encode()})

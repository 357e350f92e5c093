"""``ranktilt report``: a page people look at, and the papers' tables and figures."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli.app import START, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import print_result
from ranktilt.cli.report.layouts import ALL_TABLES, paper_table, write_figures
from ranktilt.cli.report.options import ReportOptions
from ranktilt.data.files import write_files


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
    options: ReportOptions = ReportOptions(),
) -> None:
    """Write a page, a paper's table or figures from results.

    A page is one file that opens anywhere. It shows the ranked lists that the audit keeps, and
    reads the audit's collection again. It leaves out whatever is gone or has changed, and says so.
    """
    options.check_layout()
    format = options.format_in_force()
    if options.open_page:
        options = replace(options, output=options.page_to_open(format))
    options.check(format, files)
    if format == "html":
        _write_page(files, options.output, texts=not options.no_texts)
        if options.open_page and options.output is not None:
            _open(options.output)
    elif options.figures is not None:
        write_figures(files, options.figures, format, options.layout or "")
    else:
        table = paper_table(
            files,
            options.layout or ALL_TABLES,
            format,
            texts=not options.no_texts,
            queries=options.query or (),
        )
        _deliver(table, options.output)


def _open(page: Path) -> None:
    """Open a page in a browser."""
    if not webbrowser.open(page.resolve().as_uri()):
        note(f"no browser could be opened; open {page} in yours")


def _write_page(files: Sequence[Path], output: Path | None, *, texts: bool) -> None:
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

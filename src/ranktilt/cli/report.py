"""``ranktilt report``: a page people look at, and the papers' tables and figures.

A *layout* is the form of a table or figure as a paper prints it: ``dai-1`` is Table 1 of Dai et al.
(KDD 2024), and ``paper`` stands for all tables. A *source* is who wrote a document, such as human.
"""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ranktilt.cli import completion
from ranktilt.cli.app import OUTPUT, SELDOM, START, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import ENDINGS, check_ending, check_paths, print_result
from ranktilt.data.files import require_place, write_files
from ranktilt.errors import UserError, join_words

Format = Literal["html", "latex", "markdown", "csv", "svg", "pdf", "png"]
"""Any format of a report; ``html`` is a page."""
TABLES: tuple[Format, ...] = ("latex", "markdown", "csv")
"""Formats of a paper's tables."""
FIGURES: tuple[Format, ...] = ("svg", "pdf", "png")
"""Formats of a paper's figures."""


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The file or folder to write, its format, and what it shows."""

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

    def format_in_force(self) -> Format:
        """Return the format that is typed, or the one that the other options imply.

        Figures (``--figures``) are SVG. Without a layout the result is a page. A layout is a table
        in the format of the file's ending, such as ``.tex``, or in Markdown.
        """
        if self.format is not None:
            return self.format
        if self.figures is not None:
            return "svg"
        if self.layout is None:
            return "html"
        ending = "" if self.output is None else self.output.suffix.lower()
        if ending in ENDINGS["html"]:
            raise UserError(
                f"{self.output}: a page has no layout; name a .tex, .md or .csv file for the "
                "table, or omit --layout"
            )
        return _table_format(ending) or "markdown"

    def page_to_open(self, format: Format) -> Path:
        """Return the file of the page that a browser opens; a temporary one where none is named."""
        if format != "html":
            raise UserError(f"--open needs the page (html), not {format}")
        return self.output or Path(tempfile.mkdtemp(prefix="ranktilt-")) / "report.html"

    def check(self, format: Format, files: Sequence[Path]) -> None:
        """Refuse what cannot be written in this format; `files` are the results to read."""
        self._check_figures(format)
        if self.layout is not None:
            _check_layout(self.layout, format)
        if self.no_texts and format in FIGURES:
            raise UserError("--no-texts is for pages and tables; figures hold no texts")
        self._check_file(format, files)
        if self.query and not self.shows_texts(format):
            raise UserError(
                "--query needs a table of texts: --layout dai-10, dai-11 or paper (not as csv), "
                "without --no-texts"
            )

    def shows_texts(self, format: Format) -> bool:
        """Tell whether tables in this format show queries and documents."""
        from ranktilt.reporting.layouts.layout import PAPER, layouts

        if self.no_texts or format not in TABLES:
            return False
        if self.layout is None or self.layout == PAPER:
            # A CSV file of all tables holds numbers alone; a table of texts has other columns.
            return format != "csv"
        return layouts()[self.layout].texts > 0

    def _check_figures(self, format: Format) -> None:
        """Refuse figures in a format of tables, and a format of figures without a folder."""
        if self.figures is None:
            if format in FIGURES:
                raise UserError(f"{format} is a format for figures; name a folder: --figures DIR")
            return
        if format not in FIGURES:
            raise UserError(f"--figures draws {join_words(FIGURES, 'or')}, not {format}")
        if self.output is not None:
            raise UserError("--figures writes only figures; omit -o")
        require_place(self.figures / f"figure.{format}")

    def _check_file(self, format: Format, files: Sequence[Path]) -> None:
        """Refuse a file that cannot be written, that is read, or whose ending is another format's.

        A page needs a file where standard output is a terminal.
        """
        if self.output is None:
            if format == "html" and sys.stdout.isatty():
                raise UserError("the page needs a file: -o report.html")
            return
        check_paths({"-o": self.output}, inputs=files)
        table_format = _table_format(self.output.suffix.lower())
        hint = f"; --format {table_format} makes {self.output.suffix} files" if table_format else ""
        check_ending(self.output, format, hint=hint)


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
    if options.layout is not None:
        _require_layout(options.layout)
    format = options.format_in_force()
    if options.open_page:
        options = replace(options, output=options.page_to_open(format))
    options.check(format, files)
    if format == "html":
        _write_page(files, options.output, texts=not options.no_texts)
        if options.open_page and options.output is not None:
            _open(options.output)
    elif options.figures is not None:
        _write_figures(files, options.figures, format, options.layout or "")
    else:
        _deliver(_paper_table(files, options, format), options.output)


# ---- formats and files that go together ---------------------------------------------------------


def _table_format(ending: str) -> Format | None:
    """Return the format of tables whose files have an ending, such as ``.tex``; None without."""
    for table_format in TABLES:
        if ending in ENDINGS[table_format]:
            return table_format
    return None


def _require_layout(name: str) -> None:
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


# ---- pages --------------------------------------------------------------------------------------


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


def _open(page: Path) -> None:
    """Open a page in a browser."""
    if not webbrowser.open(page.resolve().as_uri()):
        note(f"no browser could be opened; open {page} in yours")


# ---- tables and figures of papers ---------------------------------------------------------------


def _paper_table(files: Sequence[Path], options: ReportOptions, format: Format) -> str:
    """Return one table as a paper prints it, or all tables that the results can fill.

    `files` are results (JSON), and numbers that a user typed in, with a line for each cell (CSV).
    Results do not hold the texts of documents, so these are read from the audited collection.
    """
    from ranktilt.reporting.layouts.cells import read_cells
    from ranktilt.reporting.layouts.layout import PAPER
    from ranktilt.reporting.layouts.tables import paper_tables
    from ranktilt.reporting.report import laid_out, read_result

    layout = options.layout or PAPER
    printable_kinds = laid_out()
    results = []
    for file in dict.fromkeys(files):
        if file.name.endswith((".csv", ".csv.gz")):
            result: Any = read_cells(file)
        else:
            result = read_result(file, printable_kinds)
        if _reads_collection(layout):
            result = _with_collection(result, file)
        elif options.shows_texts(format):
            result = _with_texts(result, file)
        results.append(result)
    return paper_tables(results, layout, format, queries=options.query or ())


def _reads_collection(layout: str) -> bool:
    """Tell whether a layout needs the collection and ranked lists of an audit."""
    from ranktilt.reporting.layouts.layout import PAPER, layouts

    return layout != PAPER and layouts()[layout].reads_collection


def _with_collection(result: Any, file: Path) -> Any:
    """Return an audit with its collection and ranked lists, as far as they can be read again.

    A note says what is missing of either. Any other result is returned as it is.
    """
    from ranktilt.auditing.result import Audit
    from ranktilt.reporting.reload import reload

    if not isinstance(result, Audit):
        return result
    loaded = reload(result, file)
    if loaded.notes:
        note(" ".join(loaded.notes))
    return loaded


def _with_texts(result: Any, file: Path) -> Any:
    """Return an audit of sources with its collection, if that can be read again.

    Both an audit that is grouped by source and a `SourceAudits`, which holds an audit for each of
    several sources, have texts to compare. Any other result is returned as it is.

    Runs are left out: the tables of texts choose documents by their grades, not by ranks. So a
    note is written only if the collection is missing.
    """
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sources.source_audits import SourceAudits
    from ranktilt.reporting.reload import Loaded, reload, reload_sources

    loaded: Loaded
    if isinstance(result, SourceAudits):
        loaded = reload_sources(result, file)
        loaded = replace(loaded, parts=tuple(replace(part, runs=()) for part in loaded.parts))
    elif isinstance(result, Audit) and result.spec.get("by") == "source":
        loaded = replace(reload(result, file), runs=())
    else:
        return result
    if loaded.collection is None:
        note(" ".join(loaded.notes))
    return loaded


def _write_figures(files: Sequence[Path], folder: Path, format: str, layout: str) -> None:
    """Write the figures of results into a folder, and say how large each file is.

    `format` is ``svg``, ``pdf`` or ``png``. `layout` names one figure; empty for all figures.
    """
    from ranktilt.reporting.layouts.figures import paper_figures
    from ranktilt.reporting.numbers import size
    from ranktilt.reporting.reload import Loaded
    from ranktilt.reporting.report import laid_out, opened

    # `opened` also loads the collection and runs of each audit, which some figures need.
    results = opened(files, laid_out())
    drawings = paper_figures(results, format=format, layout=layout)
    for result in results:
        if isinstance(result, Loaded):
            for sentence in result.notes:
                note(sentence)
    write_files({folder / name: content for name, content in drawings.items()})
    for name, content in drawings.items():
        note(f"{folder / name}: {size(len(content))}")


def _deliver(text: str, output: Path | None) -> None:
    """Print a text, or write it into a file."""
    if output is None:
        print_result(text)
    else:
        write_files({output: text.encode()})

"""``ranktilt report``: a page people look at, and the papers' tables and figures."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ranktilt.cli import completion
from ranktilt.cli.app import OUTPUT, SELDOM, START, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import ENDINGS, check_ending, check_paths, print_result
from ranktilt.data.files import require_place, write_files
from ranktilt.errors import UserError, join_words

TABLES, FIGURES = ("latex", "markdown", "csv"), ("svg", "pdf", "png")
Formats = Literal["html", "latex", "markdown", "csv", "svg", "pdf", "png"]
LAYOUT = "paper"


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
            name="FILE", help="Audits and other results (JSON); of a layout also cells (CSV)."
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
            help="html; latex, markdown or csv of a layout; svg, pdf or png of figures.",
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

    A page is one file that opens anywhere. Ranked lists are those that an audit keeps; its
    collection is read again as it names it. What is gone or has changed is left out, and the page
    says so.
    """
    if layout is not None:
        _require_layout(layout)
    form = format or _form(output, layout, figures)
    if open_page:
        output = _page_to_open(form, output)
    _check_figures(form, figures, output)
    _check(form, output, layout, files, no_texts=no_texts)
    if query and (form not in TABLES or no_texts or not _shows_texts(layout)):
        raise UserError(
            "--query needs a table of texts: --layout dai-10, dai-11 or paper, without --no-texts"
        )
    if form == "html":
        _page(files, output, texts=not no_texts)
        if open_page and output is not None:
            _open(output)
    elif figures is not None:
        _figures(files, figures, form, layout or "")
    else:
        text = _table(files, layout or LAYOUT, form, texts=not no_texts, queries=query or ())
        _deliver(text, output)


def _page_to_open(form: str, output: Path | None) -> Path:
    """Return the file of the page that a browser opens; a temporary one where none is named."""
    if form != "html":
        raise UserError(f"--open needs the page (html), not {form}")
    return output or Path(tempfile.mkdtemp(prefix="ranktilt-")) / "report.html"


def _open(page: Path) -> None:
    if not webbrowser.open(page.resolve().as_uri()):
        note(f"no browser could be opened; open {page} in yours")


def _form(output: Path | None, layout: str | None, figures: Path | None) -> str:
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


def _shows_texts(layout: str | None) -> bool:
    """Tell whether a layout is a table of texts, or all tables."""
    from ranktilt.reporting.layouts.layout import PAPER, layouts

    return layout in (None, PAPER) or layouts()[layout].texts > 0


def _require_layout(name: str) -> None:
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
        raise UserError(f"{name} is a table, no figure; choose --format latex, markdown or csv")
    raise UserError(f"a layout is no page ({form}); choose --format latex, markdown or csv")


def _check_figures(form: str, folder: Path | None, output: Path | None) -> None:
    if folder is None:
        if form in FIGURES:
            raise UserError(f"{form} is a format of figures; name their folder: --figures DIR")
        return
    if form not in FIGURES:
        raise UserError(f"--figures draws {join_words(FIGURES, 'or')}, not {form}")
    if output is not None:
        raise UserError("--figures writes figures alone; omit -o")
    require_place(folder / f"figure.{form}")


def _check(
    form: str, output: Path | None, layout: str | None, files: Sequence[Path], *, no_texts: bool
) -> None:
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


def _page(files: Sequence[Path], output: Path | None, *, texts: bool) -> None:
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


def _table(
    files: Sequence[Path], layout: str, form: str, *, texts: bool, queries: Sequence[str]
) -> str:
    from ranktilt.reporting.layouts.cells import read_cells
    from ranktilt.reporting.layouts.tables import paper_tables
    from ranktilt.reporting.report import laid_out, read_result

    # A table of texts is no part of a paper as CSV.
    shows_texts = texts and _shows_texts(layout) and not (form == "csv" and layout == LAYOUT)
    results = []
    for file in dict.fromkeys(files):
        if file.name.endswith((".csv", ".csv.gz")):
            result: Any = read_cells(file)
        else:
            result = read_result(file, laid_out())
        if _reads_collection(layout):
            result = _with_collection(result, file)
        elif shows_texts:
            result = _with_texts(result, file)
        results.append(result)
    return paper_tables(results, layout, form, queries=queries)


def _reads_collection(layout: str) -> bool:
    """Whether a layout reads an audit's collection and lists again."""
    from ranktilt.reporting.layouts.layout import layouts

    return layout != LAYOUT and layouts()[layout].reads_collection


def _with_collection(result: Any, file: Path) -> Any:
    """Read the collection and the lists of an audit again."""
    from ranktilt.auditing.result import Audit
    from ranktilt.reporting.reload import reload

    if not isinstance(result, Audit):
        return result
    loaded = reload(result, file)
    if loaded.notes:
        note(" ".join(loaded.notes))
    return loaded


def _with_texts(result: Any, file: Path) -> Any:
    """Read the collection of an audit by source again; texts are chosen by grade, without lists."""
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.source_audits import SourceAudits
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


def _deliver(text: str, output: Path | None) -> None:
    if output is None:
        print_result(text)
    else:
        write_files({output: text.encode()})


def _figures(files: Sequence[Path], folder: Path, form: str, layout: str) -> None:
    from ranktilt.reporting.layouts.figures import paper_figures
    from ranktilt.reporting.numbers import size
    from ranktilt.reporting.reload import Loaded
    from ranktilt.reporting.report import laid_out, opened

    results = opened(files, laid_out())
    drawings = paper_figures(results, format=form, layout=layout)
    for result in results:
        if isinstance(result, Loaded):
            for sentence in result.notes:
                note(sentence)
    write_files({folder / name: content for name, content in drawings.items()})
    for name, content in drawings.items():
        note(f"{folder / name}: {size(len(content))}")

"""Where a result goes: stdout, and the files that were asked for, all of them or none."""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.output import deliver
from ranktilt.cli.places import check_places
from ranktilt.errors import UserError, unknown
from ranktilt.io.files import cannot_write, write_bytes, write_files

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.collection import Collection
    from ranktilt.run import Run

ENDINGS = {"html": (".html", ".htm"), "latex": (".tex",), "markdown": (".md",), "csv": (".csv",)}
"""How a file of each format ends."""
AUDIT, TABLE, RUNS = "audit.json", "table.parquet", "runs"
"""What ``--save`` puts into its folder."""
_LONGEST = 80


@dataclass(frozen=True)
class Destination:
    """The output options of an audit, checked before any work is done.

    Parameters
    ----------
    format : str
        Of the table on stdout.
    json : str or None
        File for the whole audit; ``-`` for stdout, in place of the table.
    per_query : Path or None
        File for a row a query, as CSV.
    save : Path or None
        Folder for audit, table and runs.
    quiet : bool
        Leave out legend and notes.
    inputs : sequence of Path
        Files that are read and must not be overwritten.
    output : Path or None
        File for the report, as HTML.

    Raises
    ------
    UserError
        If the format is unknown, or a place cannot be what it is asked to be.
    """

    format: str
    json: str | None = None
    per_query: Path | None = None
    save: Path | None = None
    quiet: bool = False
    inputs: Sequence[Path] = ()
    output: Path | None = None

    def __post_init__(self) -> None:
        from ranktilt.reporting.table import FORMATS

        if self.format not in FORMATS:
            raise unknown("format", self.format, FORMATS)
        json = None if self.json in (None, "-") else Path(str(self.json))
        places = {"--json": self.json, "--per-query": self.per_query, "-o": self.output}
        if self.save is not None:
            try:
                if (self.save.exists() and not self.save.is_dir()) or self.save in (json, self.output):
                    raise UserError(f"--save {self.save}: expected a folder, this is a file")
            except OSError as error:
                raise cannot_write(self.save, error) from error
            inside = (AUDIT, TABLE, f"{RUNS}/1-run.trec.gz")
            # The audit is the same whoever asks for it: --json may name the one that --save writes.
            places |= {f"--save, {n}": self.save / n for n in inside if json is None or self.save / n != json}
        check_places(places, stdout=("--json",), inputs=self.inputs)
        if self.output is not None:
            check_ending(self.output, "html")

    def deliver(self, result: Audit, runs: Sequence[Run], collection: Collection | None = None) -> None:
        """Print the result, then write all files; what fails does not take the others with it.

        Parameters
        ----------
        result : Audit
            The audit; the command is noted in its spec.
        runs : sequence of Run
            Its runs.
        collection : Collection, optional
            What it was made from, for the report.
        """
        result = replace(result, spec={**result.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])})
        files: dict[Path | str | None, Callable[[], bytes]] = {
            self.json: result.to_json,
            self.per_query: lambda: per_query_csv(result),
        }
        folder = [] if self.save is None else [partial(_save, result, runs, self.save)]
        page = [] if self.output is None else [partial(_write_page, result, runs, collection, self.output)]
        deliver(self._text(result) if self.json != "-" else result.to_json().decode(), files, *folder, *page)

    def _text(self, result: Audit) -> str:
        from ranktilt.reporting.table import table
        from ranktilt.reporting.terminal import show

        if self.format != "table":
            return table(result, format=self.format)
        buffer = io.StringIO()
        show(result, buffer, notes=not self.quiet, terminal=sys.stdout if sys.stdout.isatty() else None)
        return buffer.getvalue()


def _save(result: Audit, runs: Sequence[Run], folder: Path) -> None:
    table = io.BytesIO()
    result.table.write_parquet(table)
    contents = {folder / AUDIT: result.to_json(), folder / TABLE: table.getvalue()}
    for number, run in enumerate(runs, start=1):
        slug = file_name(re.sub(r"[^\w.=-]+", "_", run.name).strip("_"))
        contents |= run.contents(folder / RUNS / f"{number}-{slug}.trec.gz")
    write_files(contents)


def file_name(name: str) -> str:
    """Shorten a file's name so that every file system takes it with its endings: they count bytes, not letters."""
    return name.encode()[:_LONGEST].decode(errors="ignore")


def check_ending(path: Path, form: str, *, hint: str = "") -> None:
    """Refuse a name for ``-o`` that does not end as the files of a format do; `UserError` says how they do."""
    if path.suffix.lower() not in ENDINGS[form]:
        raise UserError(f"-o {path}: expected a name that ends in {' or '.join(ENDINGS[form])}, for {form}{hint}")


def _write_page(result: Audit, runs: Sequence[Run], collection: Collection | None, output: Path) -> None:
    from ranktilt.reporting.reload import Opened
    from ranktilt.reporting.report_page import report_page

    write_bytes(output, report_page([Opened(result, collection, tuple(runs))]).encode())


def per_query_csv(result: Audit) -> bytes:
    """Return the tidy table (run, measure, group, query, value) as CSV; undefined values are empty."""
    import polars as pl

    defined = pl.when(pl.col("value").is_not_nan()).then("value")
    return result.table.with_columns(defined.alias("value")).write_csv().encode()

"""Where a result goes: stdout, and the files that were asked for, all of them or none."""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.output import results
from ranktilt.cli.places import check_places
from ranktilt.errors import UserError, unknown
from ranktilt.files import cannot_write, require_place, write_files

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.collection import Collection
    from ranktilt.run import Run

ENDINGS = {"html": (".html", ".htm"), "latex": (".tex",), "markdown": (".md",), "csv": (".csv",)}
"""How a file of each format ends."""


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
        check_places(places, stdout=("--json",), inputs=self.inputs)
        if self.output is not None:
            check_ending(self.output, "html")
        if self.save is None:
            return
        try:
            if (self.save.exists() and not self.save.is_dir()) or self.save in (json, self.output):
                raise UserError(f"--save {self.save}: expected a folder, this is a file")
            require_place(self.save / "audit.json")
        except OSError as error:
            raise cannot_write(self.save, error) from error

    def deliver(self, result: Audit, runs: Sequence[Run], collection: Collection | None = None) -> None:
        """Print the result, then write all files.

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
        with results() as stream:
            stream.write(self._text(result) if self.json != "-" else result.to_json().decode())
        contents = self._contents(result, runs)
        if self.output is not None:
            contents[self.output] = _page(result, runs, collection)
        if contents:
            write_files(contents)

    def _text(self, result: Audit) -> str:
        from ranktilt.reporting.table import table
        from ranktilt.reporting.terminal import show

        if self.format != "table":
            return table(result, format=self.format)
        buffer = io.StringIO()
        show(result, buffer, notes=not self.quiet, terminal=sys.stdout if sys.stdout.isatty() else None)
        return buffer.getvalue()

    def _contents(self, result: Audit, runs: Sequence[Run]) -> dict[Path, bytes]:
        contents: dict[Path, bytes] = {}
        if self.json not in (None, "-"):
            contents[Path(str(self.json))] = result.to_json()
        if self.per_query is not None:
            contents[self.per_query] = per_query_csv(result)
        if self.save is not None:
            table = io.BytesIO()
            result.table.write_parquet(table)
            contents |= {self.save / "audit.json": result.to_json(), self.save / "table.parquet": table.getvalue()}
            for number, run in enumerate(runs, start=1):
                slug = re.sub(r"[^\w.=-]+", "_", run.name).strip("_")[:80]
                contents |= run.contents(self.save / "runs" / f"{number}-{slug}.trec.gz")
        return contents


def check_ending(path: Path, form: str, *, hint: str = "") -> None:
    """Refuse a name for ``-o`` that does not end as the files of a format do; `UserError` says how they do."""
    if path.suffix.lower() not in ENDINGS[form]:
        raise UserError(f"-o {path}: expected a name that ends in {' or '.join(ENDINGS[form])}, for {form}{hint}")


def _page(result: Audit, runs: Sequence[Run], collection: Collection | None) -> bytes:
    from ranktilt.reporting.opened import Opened
    from ranktilt.reporting.report_page import report_page

    return report_page([Opened(result, collection, tuple(runs))]).encode()


def per_query_csv(result: Audit) -> bytes:
    """Return the tidy table (run, measure, group, query, value) as CSV; undefined values are empty."""
    import polars as pl

    defined = pl.when(pl.col("value").is_not_nan()).then("value")
    return result.table.with_columns(defined.alias("value")).write_csv().encode()

"""Where a result goes: stdout, and the files that were asked for, all of them or none."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.output import Output, with_command
from ranktilt.errors import UserError
from ranktilt.io.files import cannot_write, write_files

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.collection import Collection
    from ranktilt.run import Run

AUDIT, TABLE, RUNS = "audit.json", "table.parquet", "runs"
"""What ``--save`` puts into its folder."""
_LONGEST = 80


@dataclass(frozen=True)
class AuditOutput(Output):
    """The output options of an audit.

    Parameters
    ----------
    per_query : Path or None
        File for a row a query, as CSV.
    save : Path or None
        Folder for audit, table and runs.
    """

    per_query: Path | None = None
    save: Path | None = None

    def check(self, *, inputs: Iterable[Path] = (), more: Mapping[str, Path | str | None] | None = None) -> None:
        """Refuse places that cannot be what they are asked to be."""
        json = None if self.json in (None, "-") else Path(str(self.json))
        places: dict[str, Path | str | None] = {"--per-query": self.per_query, **(more or {})}
        if self.save is not None:
            try:
                if (self.save.exists() and not self.save.is_dir()) or self.save in (json, self.page):
                    raise UserError(f"--save {self.save}: expected a folder, this is a file")
            except OSError as error:
                raise cannot_write(self.save, error) from error
            inside = (AUDIT, TABLE, f"{RUNS}/1-run.trec.gz")
            # The audit is the same whoever asks for it: --json may name the one that --save writes.
            places |= {f"--save, {n}": self.save / n for n in inside if json is None or self.save / n != json}
        super().check(inputs=inputs, more=places)

    def deliver_audit(self, result: Audit, runs: Sequence[Run], collection: Collection | None = None) -> None:
        """Print the result, then write all files; what fails does not take the others with it."""
        result = with_command(result)
        folder = [] if self.save is None else [partial(_save, result, runs, self.save)]
        files: dict[Path | str | None, Callable[[], bytes]] = {self.per_query: lambda: per_query_csv(result)}
        self.deliver(result, files, *folder, page=lambda: _page(result, runs, collection))


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


def _page(result: Audit, runs: Sequence[Run], collection: Collection | None) -> str:
    from ranktilt.reporting.reload import Opened
    from ranktilt.reporting.report import report_page

    return report_page([Opened(result, collection, tuple(runs))])


def per_query_csv(result: Audit) -> bytes:
    """Return the tidy table (run, measure, group, query, value) as CSV; undefined values are empty."""
    import polars as pl

    defined = pl.when(pl.col("value").is_not_nan()).then("value")
    return result.table.with_columns(defined.alias("value")).write_csv().encode()

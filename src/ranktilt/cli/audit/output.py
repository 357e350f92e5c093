"""Where an audit's result goes: the terminal, a page, JSON, a row per query, or a folder."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli.app import OUTPUT, resolve_types
from ranktilt.cli.output import FILE_OR_STDOUT, PageOutput, deliver, file_name, with_command
from ranktilt.data.files import write_files

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.source_audits import SourceAudits
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run

AUDIT, TABLE, RUNS = "audit.json", "table.parquet", "runs"
"""Names of the two files and of the folder of runs, in the folder of ``--save``."""


@resolve_types
@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class AuditOutput(PageOutput):
    """Output of an audit; besides that of other verbs, a row per query, and a folder."""

    per_query: Annotated[
        Path | None,
        FILE_OR_STDOUT,
        Parameter(help="Save one row per query.", metavar="FILE.csv"),
    ] = None
    save: Annotated[
        Path | None,
        Parameter(help="Save audit, table and runs in this folder.", metavar="DIR"),
    ] = None

    @property
    def paths(self) -> dict[str, Path | str | None]:
        paths = {**super().paths, "--per-query": self.per_query}
        if self.save is not None:
            # Runs are not named before they are made; one name stands for all of their files.
            paths |= {
                f"--save, {name}": self.save / name
                for name in (AUDIT, TABLE, f"{RUNS}/1-run.trec.gz")
            }
        return paths

    def deliver_audit(self, result: Audit | SourceAudits, parts: Sequence[AuditedPart]) -> None:
        """Print the audit, then write all files, even where standard output is closed.

        `parts` are the audits that `result` consists of: one for each source, or the audit itself.
        """
        result = with_command(result)
        page = partial(_page, result, parts)
        is_page = self.format == "html" and self.json != "-"
        printed = page().decode() if is_page else self.text(result)
        files: dict[Path | str | None, Callable[[], bytes]] = {
            self.page: page,
            self.json: result.to_json,
            self.per_query: partial(per_query_csv, result),
        }
        writers = [] if self.save is None else [partial(_save, result, parts, self.save)]
        deliver(printed, files, *writers)


@dataclass(frozen=True, kw_only=True)
class AuditedPart:
    """An audit with the runs and the collection that its page and its folder show."""

    audit: Audit
    """The audit of a single source, or of all documents."""
    runs: Sequence[Run]
    """The audited runs."""
    collection: Collection | None
    """The documents; None where no page is written."""


def _save(result: Audit | SourceAudits, parts: Sequence[AuditedPart], folder: Path) -> None:
    """Write the audit, its table and its runs into a folder."""
    table = io.BytesIO()
    result.table.write_parquet(table)
    contents = {folder / AUDIT: result.to_json(), folder / TABLE: table.getvalue()}
    for part in parts:
        runs_folder = folder / RUNS
        if len(parts) > 1:
            runs_folder /= _slug(part.audit.pairs[0][1])
        for number, run in enumerate(part.runs, start=1):
            contents |= run.contents(runs_folder / f"{number}-{_slug(run.name)}.trec.gz")
    write_files(contents)


def _slug(name: str) -> str:
    """Return a name with ``_`` for characters that a file's name should not have."""
    return file_name(re.sub(r"[^\w.=-]+", "_", name).strip("_"))


def _page(result: Audit | SourceAudits, parts: Sequence[AuditedPart]) -> bytes:
    """Return the page of an audit."""
    from ranktilt.auditing.source_audits import SourceAudits
    from ranktilt.reporting.reload import LoadedAudit, LoadedSourceAudits, tested_part
    from ranktilt.reporting.report import report_page

    loaded = []
    for part in parts:
        collection = part.collection
        if collection is not None:
            collection = tested_part(part.audit, collection)
        loaded.append(LoadedAudit(part.audit, collection, tuple(part.runs)))
    if isinstance(result, SourceAudits):
        return report_page([LoadedSourceAudits(result, tuple(loaded))]).encode()
    return report_page([replace(loaded[0], audit=result)]).encode()


def per_query_csv(result: Audit | SourceAudits) -> bytes:
    """Return the table (run, measure, group, query, value) as CSV; undefined values are empty."""
    import polars as pl

    from ranktilt.data.formats.tables.spreadsheet import csv_text

    defined = pl.when(pl.col("value").is_not_nan()).then("value")
    return csv_text(result.table.with_columns(defined.alias("value"))).encode()

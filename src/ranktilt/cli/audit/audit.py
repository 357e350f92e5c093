"""``ranktilt audit``: whether a ranker favours one side of a collection.

Documents are in groups by their *source*, who wrote them, such as human and llm; two groups that
are compared are the *sides*. A *run* is what a ranker returned for each query. The *tilt* is how
far a run leans to one side.

The result goes to the terminal, a page, JSON, a row per query, or a folder. If there are more than
two sources, each is ranked and audited with the reference source alone. A *part* is one of
these audits; with two sources, the whole audit is the only part.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import OUTPUT, START, resolve_types, verb
from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.cli.audit.question import AuditQuestion, SequentialOptions, SourceOptions
from ranktilt.cli.output import FILE_OR_STDOUT, PageOutput, deliver, file_names, with_command
from ranktilt.cli.rankers import rank_with
from ranktilt.cli.statistics_options import StatisticsOptions
from ranktilt.data.files import write_files

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sources.source_audits import SourceAudits
    from ranktilt.auditing.sources.sources_apart import SourcesApart
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.rankers.base import Ranker

_AUDIT, _TABLE, _RUNS = "audit.json", "table.parquet", "runs"
"""Names of the two files and of the folder of runs, in the folder of ``--save``."""


@dataclass(frozen=True, kw_only=True)
class AuditedPart:
    """An audit with the runs and the collection that its page and its folder show."""

    audit: Audit
    """The audit of a single source, or of all documents."""
    runs: Sequence[Run]
    """The audited runs."""
    collection: Collection | None
    """The documents; None where no page is written."""


@resolve_types
@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class AuditOutput(PageOutput):
    """Where an audit goes: terminal, JSON, page (as for other verbs), CSV by query, folder."""

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
                for name in (_AUDIT, _TABLE, f"{_RUNS}/1-run.trec.gz")
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
        folder_writers = [] if self.save is None else [partial(_save, result, parts, self.save)]
        deliver(printed, files, *folder_writers)


@verb(
    "audit",
    "audit DIR -r bm25 -r dense:minilm -o report.html",
    "audit --groups labels.csv --run run.trec",
    arguments="[DIR]",
    panel=START,
    order=3,
)
def audit(
    folder: Annotated[
        Path | None,
        Parameter(
            name="DIR",
            help="A collection (a folder, hub:OWNER/NAME or irds:ID), or an audit to repeat "
            "(FILE.json). Not needed with --run and --groups.",
        ),
    ] = None,
    /,
    *,
    inputs: InputOptions = InputOptions(),
    sources: SourceOptions = SourceOptions(),
    measure: options.Measures = None,
    preset: options.Preset = None,
    card: options.Card = False,
    controls: options.Controls = False,
    label_errors: options.LabelErrors = None,
    by_query: options.ByQuery = None,
    sequential: SequentialOptions = SequentialOptions(),
    text: options.Text = None,
    max_failures: options.MaxFailures = None,
    statistics: StatisticsOptions = StatisticsOptions(),
    output: AuditOutput = AuditOutput(),
) -> None:
    """Measure which side a ranker favours, and how sure you can be.

    On a collection, each ranker (-r) runs and is audited. A saved run (--run) is audited as it is.
    It needs no collection if you give labels of its documents (--groups).
    """
    from ranktilt.data.runs.repeats import join_namesakes

    inputs = replace(inputs, folder=folder)
    # Options that an audit of a live engine, query by query, does not read.
    sequential.check(
        card=card,
        controls=controls,
        qrels=inputs.qrels,
        per_query=output.per_query,
        save=output.save,
        mixed=sources.mixed,
        primary=statistics.primary,
        ties=statistics.ties,
        margin=statistics.margin,
        preset=preset,
        label_errors=label_errors,
        by_query=by_query,
    )
    question = AuditQuestion(
        measure=measure,
        preset=preset,
        card=card,
        controls=controls,
        text=text,
        max_failures=max_failures,
        statistics=statistics,
        label_errors=label_errors,
        by_query=by_query,
    )
    if sequential.stop_at_tilt is not None:
        output.check(*inputs.files)
        output.deliver(sequential.audit(inputs, sources.source, question))
        return
    inputs.check(controls=controls, card=card)
    sources.check(inputs)
    output.check(*inputs.files)
    question.check()
    rankers = question.rankers(inputs)
    collection, saved_runs = inputs.load(max_failures, repeats=True)
    sources_apart = sources.apart(inputs, collection, rankers)
    if sources_apart is not None:
        _audit_sources(sources_apart, rankers, inputs, question, output)
        return
    collection = sources.together(inputs, collection)
    question.check_query_groups(collection)
    pairs = inputs.pairs_to_compare(collection, was_ranked_before=bool(saved_runs))
    ranked_runs = saved_runs or rank_with(rankers, collection, inputs.names, repeats=True)
    # Runs to which the user gave the same name are repeats of one ranking.
    runs = join_namesakes(ranked_runs)
    result = question.audit(collection, runs, rankers, by=inputs.column, pairs=pairs)
    part = AuditedPart(audit=result, runs=runs, collection=collection)
    output.deliver_audit(result, [part])


def _audit_sources(
    sources: SourcesApart,
    rankers: Sequence[Ranker],
    inputs: InputOptions,
    question: AuditQuestion,
    output: AuditOutput,
) -> None:
    """Audit each source, ranked with the reference alone, and deliver all audits as one result."""
    from ranktilt.auditing.sources.source_audits import join_audits, pairs_to_name
    from ranktilt.data.runs.repeats import join_namesakes

    parts = []
    for collection, pair in zip(sources.collections, sources.pairs, strict=True):
        question.check_query_groups(collection)
        pairs = pairs_to_name(collection, pair)
        runs = join_namesakes(rank_with(rankers, collection, inputs.names, repeats=True))
        result = question.audit(collection, runs, rankers, by=inputs.column, pairs=pairs)
        parts.append(AuditedPart(audit=result, runs=runs, collection=collection))
    joined = join_audits(sources, [part.audit for part in parts])
    # `join_audits` corrects the p-values for the tests of all sources, which changes each audit.
    corrected_parts = [
        replace(part, audit=audit) for part, audit in zip(parts, joined.audits, strict=True)
    ]
    output.deliver_audit(joined, corrected_parts)


# ---- pages and files ----------------------------------------------------------------------------


def _page(result: Audit | SourceAudits, parts: Sequence[AuditedPart]) -> bytes:
    """Return the page of an audit."""
    from ranktilt.auditing.sources.source_audits import SourceAudits
    from ranktilt.reporting.reload import LoadedAudit, LoadedSourceAudits, tested_part
    from ranktilt.reporting.report import report_page

    loaded = []
    for part in parts:
        collection = part.collection
        if collection is not None:
            # A ranker that was trained on some queries is not tested on them.
            collection = tested_part(part.audit, collection)
        loaded.append(LoadedAudit(part.audit, collection, tuple(part.runs)))
    if isinstance(result, SourceAudits):
        return report_page([LoadedSourceAudits(result, tuple(loaded))]).encode()
    return report_page([replace(loaded[0], audit=result)]).encode()


def _save(result: Audit | SourceAudits, parts: Sequence[AuditedPart], folder: Path) -> None:
    """Write the audit, its table and its runs into a folder."""
    table = io.BytesIO()
    result.table.write_parquet(table)
    contents = {folder / _AUDIT: result.to_json(), folder / _TABLE: table.getvalue()}
    folders = file_names(part.audit.pairs[0][1] for part in parts) if len(parts) > 1 else [""]
    for part, folder_of_part in zip(parts, folders, strict=True):
        files = file_names(run.name for run in part.runs)
        for number, (run, file) in enumerate(zip(part.runs, files, strict=True), start=1):
            contents |= run.contents(folder / _RUNS / folder_of_part / f"{number}-{file}.trec.gz")
    write_files(contents)


def per_query_csv(result: Audit | SourceAudits) -> bytes:
    """Return the table (run, measure, group, query, value) as CSV; undefined values are empty."""
    import polars as pl

    from ranktilt.data.formats.tables.spreadsheet import csv_text

    defined = pl.when(pl.col("value").is_not_nan()).then("value")
    return csv_text(result.table.with_columns(defined.alias("value"))).encode()

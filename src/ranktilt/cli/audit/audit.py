"""``ranktilt audit``: whether a ranker favours one side of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import START, verb
from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.cli.audit.output import AuditedPart, AuditOutput
from ranktilt.cli.audit.question import AuditQuestion
from ranktilt.cli.audit.sequential import SequentialOptions
from ranktilt.cli.audit.sources import SourceOptions
from ranktilt.cli.rankers import rank_with
from ranktilt.cli.statistics_options import StatisticsOptions

if TYPE_CHECKING:
    from ranktilt.auditing.sources_apart import SourcesApart
    from ranktilt.rankers.base import Ranker


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
    sequential.check(
        card=card,
        controls=controls,
        qrels=inputs.qrels,
        per_query=output.per_query,
        save=output.save,
        mixed=sources.mixed,
        primary=statistics.primary,
        preset=preset,
        label_errors=label_errors,
        by_query=by_query,
    )
    if sequential.stop_at_tilt is not None:
        output.check(*inputs.files)
        output.deliver(sequential.audit(inputs, sources.source, measure, text))
        return
    inputs.check(controls=controls, card=card)
    sources.check(inputs)
    output.check(*inputs.files)
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
    from ranktilt.auditing.source_audits import join_audits, pairs_to_name
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

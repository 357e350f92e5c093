"""Conclude an audit: put what was measured and inferred into one frozen result.

A *tilt* is Relative Δ of one run, between two groups, on one measure: the difference of both
groups' means in percent. The *card* has the answers to all other questions. The *primary question*
gives the verdict. *Twins* are two versions of one document, one in each group. A *repeat* is one of
several rankings by the same ranker. A *note* is a remark for the reader, as data.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ranktilt.auditing.confounds import Confound, confounds
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.infer import Inferences, first_tilts
from ranktilt.auditing.label_errors.notes import label_notes
from ranktilt.auditing.label_errors.sensitivity import label_sensitivities
from ranktilt.auditing.measure import Measurements
from ranktilt.auditing.notes import (
    card_notes,
    few_query_notes,
    group_notes,
    identical_notes,
    judgment_notes,
    lone_group_notes,
    noise_notes,
    repeated_notes,
    run_notes,
    source_notes,
    sparse_notes,
    twin_notes,
    variation_notes,
)
from ranktilt.auditing.prepare import AuditInputs
from ranktilt.auditing.query_groups.result import QueryBreakdown
from ranktilt.auditing.repeats.runs import (
    content_repeated,
    distinct_rankings,
    mean_values,
    named_repeats,
    queries_repeated,
    repeat_notes,
    summed_pair_counts,
)
from ranktilt.auditing.result import Audit, QueryAnswers
from ranktilt.auditing.significance import Sample
from ranktilt.auditing.storage.contributions import Contributions
from ranktilt.auditing.storage.provenance import audit_provenance
from ranktilt.auditing.storage.top_results import TopResults
from ranktilt.data.notes.base import Note
from ranktilt.data.runs.repeats import spec_with_repeats
from ranktilt.measures.margin import DEFAULT_MARGIN, read_margin

LONE_GROUP_DEPTH = 10
"""If there is only one group, the number of first ranks of which its share is shown."""


def conclude(
    inputs: AuditInputs,
    measurements: Measurements,
    inferences: Inferences,
    by_query: QueryBreakdown | None = None,
) -> Audit:
    """Return the result of an audit: data, from which reports make sentences and figures.

    `by_query` has every answer by group of queries; None if it was not asked for.
    """
    runs, judged_runs = inputs.runs, inputs.judged_runs
    spec = _spec(inputs)
    run_names = tuple(run.name for run in runs)
    values = mean_values(judged_runs, measurements.values)
    counts = measurements.pair_counts
    pair_counts = summed_pair_counts(counts) if inputs.has_repeats else counts
    notes = tuple(_notes(inputs, measurements, inferences))
    differences = tuple(_confounds(inputs))
    sensitivities = tuple(label_sensitivities(_answers_by_labels(inputs, inferences)))
    keep_top = inputs.options.keep_top
    top_results = TopResults.from_runs(runs, keep_top) if keep_top else None
    # `compare` tests these answers again, and needs what each document adds to them.
    query_answers = tuple(_query_answers(sample) for sample in inferences.group_samples)
    samples = [*inferences.tilt_samples, *inferences.group_samples]
    contributions = Contributions.from_samples(samples, inputs.collection, inputs.judgments.queries)
    return Audit(
        spec=spec,
        runs=run_names,
        measures=inputs.measures,
        groups=(ALL, *inputs.groups.names),
        queries=inputs.judgments.queries,
        values=values,
        tilts=inferences.tilts,
        pair_counts=pair_counts,
        notes=notes,
        card=inferences.card,
        confounds=differences,
        repeated=queries_repeated(judged_runs),
        top_results=top_results,
        query_answers=query_answers,
        contributions=contributions,
        noise=inferences.noise,
        label_sensitivities=sensitivities,
        repeats=inferences.repeats,
        by_query=by_query,
    )


def _spec(inputs: AuditInputs) -> dict[str, Any]:
    """Return how the audit was made, so that it can be repeated: options, inputs, versions."""
    options, inference = inputs.options, inputs.options.inference
    spec: dict[str, Any] = {
        "by": options.by,
        "margin": read_margin(options.margin),
        "missing": options.missing,
        "ties": options.ties,
        "rounding": inference.rounding,
        "test": inference.test,
        "correction": inference.correction,
        "resamples": inference.resamples,
        "seed": inference.seed,
    }
    if inputs.primary is not None:
        spec["primary"] = repr(inputs.primary)
    if options.label_errors is not None:
        spec["label_errors"] = options.label_errors.text
    if options.by_query is not None:
        spec["by_query"] = options.by_query
    if options.pairs is not None:
        spec["pairs"] = [list(pair.names) for pair in inputs.pairs]
    errors = options.label_errors
    files = [] if errors is None or errors.sample is None else [errors.sample.path]
    if inputs.query_groups is not None:
        files += filter(None, [inputs.query_groups.file])
    return spec | audit_provenance(
        inputs.collection, [spec_with_repeats(run) for run in inputs.runs], files=files
    )


def _answers_by_labels(inputs: AuditInputs, inferences: Inferences) -> list[Effect]:
    """Return the answers that wrong labels could explain: of groups without twins.

    They are the card's answers to the primary question. The label of a twin cannot be wrong,
    because it is known to be a version of another document.
    """
    has_twins = {pair.names for pair in inputs.pairs if len(pair.twins.rows)}
    return [
        effect
        for effect in inferences.card
        if effect.measure == repr(inputs.primary) and (effect.a, effect.b) not in has_twins
    ]


def _query_answers(sample: Sample) -> QueryAnswers:
    """Return the values per query of a sample, as the result holds them."""
    return QueryAnswers(
        run=sample.run,
        estimand=sample.estimand,
        a=sample.a,
        b=sample.b,
        numerator=sample.numerator,
        denominator=sample.denominator,
    )


def _confounds(inputs: AuditInputs) -> list[Confound]:
    """Return the differences between sources other than who wrote the texts.

    Empty for other groups, which have texts of all sources.
    """
    if not inputs.options.confounds or inputs.options.by != "source":
        return []
    differences: list[Confound] = []
    for pair in inputs.pairs:
        differences += confounds(inputs.collection, inputs.groups, pair.twins, inputs.runs)
    return differences


def _notes(
    inputs: AuditInputs, measurements: Measurements, inferences: Inferences
) -> Iterator[Note]:
    """Yield what a reader should know: exclusions, small samples, unknown documents."""
    collection, groups, judgments = inputs.collection, inputs.groups, inputs.judgments
    options, tilts = inputs.options, inferences.tilts
    judged_runs = list(named_repeats(inputs.judged_runs))
    yield from inputs.notes
    # Notes on how far labels and lists can be trusted.
    answers_by_labels = _answers_by_labels(inputs, inferences)
    yield from label_notes(
        options.label_errors, options.margin, inputs.label_model, answers_by_labels
    )
    yield from variation_notes((*tilts, *inferences.card))
    # Notes on runs, and on what was read.
    notes_on_runs = chain.from_iterable(
        run_notes(judged_run, collection, options.missing) for judged_run in judged_runs
    )
    # Repeats from one file have the same notes on the file: each is yielded once.
    yield from dict.fromkeys(notes_on_runs)
    yield from repeat_notes(inputs.judged_runs, inferences.repeats, repr(inputs.primary))
    yield from identical_notes(distinct_rankings(inputs.judged_runs))
    yield from source_notes(collection, groups.by)
    yield from judgment_notes(judgments, collection)
    yield from repeated_notes(content_repeated(inputs.judged_runs))
    # Notes on groups, and on comparisons that rest on few queries.
    yield from group_notes(
        groups,
        [pair.names for pair in inputs.pairs if inputs.measures and not pair.has_judgments],
        tilts,
        absent=any(run.left_out(options.missing).any() for run in judged_runs),
    )
    primary_answers = [
        effect for effect in inferences.card if effect.measure == repr(inputs.primary)
    ]
    yield from few_query_notes(tilts, primary_answers, options.inference.resamples)
    depth = LONE_GROUP_DEPTH if inputs.card_questions else None
    yield from lone_group_notes(judged_runs, groups, collection, depth=depth)
    names = [run.name for run in inputs.runs]
    yield from sparse_notes(
        tilts, names, groups, mean_values(inputs.judged_runs, measurements.values)
    )
    uneven = [pair.names for pair in inputs.pairs_with_judgments if not pair.are_twins]
    yield from twin_notes(collection, groups, uneven, judgments)
    if inputs.card_questions and inputs.label_model is None:
        has_twins = any(len(pair.twins.rows) for pair in inputs.pairs)
        yield from card_notes(collection, groups, twins=has_twins)
    # A margin in another unit says nothing about Relative Δ, which is in points.
    margin = read_margin(options.margin)
    points = margin if isinstance(margin, float) else DEFAULT_MARGIN
    yield from noise_notes(inferences.noise, first_tilts(inputs, tilts), points)

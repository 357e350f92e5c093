"""The bench: compare candidates with the baseline by their runs, without ranking or training.

A *candidate* is a correction of a ranker at some strength, and the *baseline* is the ranker without
any correction. A *question* is a measure or another estimand (a number to estimate), such as
``Share@10``. An *effect* is one number about a run, with its interval and its p. A *tilt* is an
effect about two groups: how far a ranker favours one over the other. It is *level* if it is within
a margin. A *change* is an effect of a candidate minus the same effect of the baseline.

`bench` is for any runs; `mitigate` makes its own and calls `compare_candidates`.

The *reference* is the group that all others are compared with: the human texts by default. A bench
takes two audits. The first is of runs over all documents, which shows tilts and effectiveness. The
second is of runs over the reference's documents alone. It shows effectiveness where there is
nothing to be tilted toward, so a candidate cannot hide a loss by finding the other group's
documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranktilt.auditing.comparison.changes import (
    ChangeTask,
    Columns,
    contrast_changes,
    contrast_task,
    mean_changes,
)
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.result import percent_factor
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.options import check_resamples, usual_primary
from ranktilt.auditing.prepare import DEFAULT_MEASURES
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import correct_p_values, effects, mean_sample
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, notes_within
from ranktilt.errors import UserError, refuse_twice
from ranktilt.explaining.equivalence import only_group
from ranktilt.field_checks import require_seed
from ranktilt.measures.base import Estimand, Measure, estimand, measure
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.mitigation.audited_candidates import (
    AuditedRuns,
    BenchOptions,
    CandidateRuns,
    check_reference_runs,
    prepare_candidates,
)
from ranktilt.mitigation.bench_result import Bench, Candidate, check_limits, default_budget
from ranktilt.mitigation.movement import movements_from
from ranktilt.statistics.bootstrap import RESAMPLES, shared_numbering

EFFECTIVENESS = "nDCG@10"
"""Default measure of effectiveness; the cost of a candidate is how much of it is lost."""


def bench(
    mixed: Collection,
    runs: CandidateRuns,
    measures: Iterable[str | Estimand] = DEFAULT_MEASURES,
    *,
    reference_runs: CandidateRuns | None = None,
    primary: str | Estimand | None = None,
    effectiveness: str | Measure = EFFECTIVENESS,
    budget: float | None = None,
    reference: str = "human",
    by: str = "source",
    pairs: Sequence[Pair] | None = None,
    selected: Iterable[str] = (),
    ties: str = "expected",
    test: str = "interval",
    correction: str = "holm",
    margin: float = DEFAULT_MARGIN,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Bench:
    """Compare candidates of rising strength with the baseline, and find the smallest that is level.

    Parameters
    ----------
    mixed : Collection
        The collection that all candidates ranked, ideally with queries that no candidate has
        learned from.
    runs : mapping of Candidate to Run
        The baseline, whose method is empty, and at least one candidate, each with its run of
        `mixed`.
    measures : iterable of str or Estimand, optional
        Measures to take Relative Δ of, and other estimands of two groups, such as ``Share@10``.
    reference_runs : mapping of Candidate to Run, optional
        Each candidate's run of the reference's documents alone (`only_group`).
    primary : str or Estimand, optional
        The question that decides what is level; its unit must be percent. By default it is that of
        an audit with these measures.
    effectiveness : str or Measure, optional
        The measure of effectiveness, if any document is judged relevant.
    budget : float, optional
        Largest cost that a candidate may have, in points from 0 to 100. With judgments, the cost is
        the loss of effectiveness, over all documents and on the reference's alone; 1 point by
        default. Without judgments, it is the percentage of the baseline's first ten documents that
        the candidate replaces; 20 by default.
    reference : str, optional
        The group to compare all others with; positive values favour it.
    by : str, optional
        Document column of the groups.
    pairs : sequence of (str, str), optional
        Groups to compare; by default the reference and each other group. A candidate is level if it
        is level on all of these pairs.
    selected : iterable of str, optional
        Names of candidates that were selected on other queries. If you name any, only these may be
        chosen.
    margin : float, optional
        Largest tilt, either way, that counts as level, in points.
    ties, test, correction, resamples, seed
        Parameters of `ranktilt.audit`, for the audit of the candidates. The p of all changes of the
        bench are corrected together.

    Returns
    -------
    Bench
        Tilts, effectiveness, and how each differs from the baseline's.

    Raises
    ------
    UserError
        If there is no baseline or no candidate, names or strengths come twice, runs are over other
        queries or documents, or an option is out of range.
    """
    budget = default_budget(is_judged=mixed.has_judgments) if budget is None else budget
    check_limits(margin, budget)
    check_resamples(resamples)
    require_seed(seed)
    candidates = _order_candidates(runs)
    if pairs is None:
        groups = grouping(mixed, by)
        names, reference = groups.names, groups.names[groups.index(reference)]
        pairs = [(reference, name) for name in names if name != reference]
    options = BenchOptions(
        effectiveness=measure(effectiveness),
        budget=budget,
        reference=reference,
        by=by,
        pairs=tuple(pairs),
        ties=ties,
        test=test,
        correction=correction,
        margin=margin,
        resamples=resamples,
        seed=seed,
    )
    questions = order_questions(measures, primary, by)
    return compare_candidates(
        mixed,
        {candidate: runs[candidate] for candidate in candidates},
        questions,
        reference_runs=reference_runs or {},
        selected=tuple(selected),
        options=options,
    )


def _order_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Put the baseline first, then the others by method and rising strength.

    Raises
    ------
    UserError
        If there is not exactly one baseline, if there is no other candidate, or if a name comes
        twice.
    """
    candidates = list(candidates)
    refuse_twice([candidate.name for candidate in candidates], "candidate")
    baselines = [candidate for candidate in candidates if not candidate.method]
    others = [candidate for candidate in candidates if candidate.method]
    if len(baselines) != 1 or not others:
        raise UserError(
            "a bench needs one baseline, the ranker without any correction (no method), and at "
            f"least one candidate; got {len(baselines)} and {len(others)}"
        )
    methods = list(dict.fromkeys(candidate.method for candidate in others))
    others.sort(key=lambda candidate: (methods.index(candidate.method), candidate.strength))
    return [*baselines, *others]


def order_questions(
    measures: Iterable[str | Estimand], primary: str | Estimand | None, by: str
) -> list[Estimand]:
    """Return the questions of a bench without repetitions, the primary one first.

    Raises
    ------
    UserError
        If a question does not say which of two groups is favoured, or if there is none.
    """
    questions = [estimand(question).complete() for question in measures]
    first = usual_primary(questions, by) if primary is None else estimand(primary)
    if first is not None:
        questions = [first, *(question for question in questions if question != first)]
    one_sided = next((question for question in questions if not question.sided), None)
    if one_sided is not None:
        raise UserError(
            f"{one_sided!r} does not say which of two groups it favours; use one that does, such "
            "as Share@10"
        )
    if not questions:
        raise UserError("a bench needs a measure to judge level by, such as nDCG@3 or Share@10")
    return list(dict.fromkeys(questions))


def compare_candidates(
    mixed: Collection,
    runs: CandidateRuns,
    questions: Sequence[Estimand],
    *,
    reference_runs: CandidateRuns,
    selected: tuple[str, ...] = (),
    options: BenchOptions,
) -> Bench:
    """Audit the runs of all candidates, and return their bench.

    Parameters
    ----------
    mixed : Collection
        The collection that was ranked, with all groups.
    runs : mapping of Candidate to Run
        Runs over `mixed`, the baseline's first. The baseline alone is a bench too.
    questions : sequence of Estimand
        Questions about two groups, the primary one first.
    reference_runs : mapping of Candidate to Run
        Runs over the reference's documents alone; empty without any.
    selected : tuple of str, optional
        Names of the candidates that may be chosen; empty for all.
    options : BenchOptions
        How candidates are compared.
    """
    candidates = tuple(runs)
    if mixed.has_judgments:
        questions = list(dict.fromkeys([*questions, options.effectiveness]))
    inputs = prepare_candidates(mixed, runs, questions, options)
    audited = {ALL: AuditedRuns.from_inputs(inputs)}
    if mixed.has_judgments and reference_runs:
        measures = [question for question in questions if isinstance(question, Measure)]
        alone = only_group(mixed, options.reference, options.by)
        check_reference_runs(alone, runs, reference_runs, options.reference)
        ordered_runs = {candidate: reference_runs[candidate] for candidate in runs}
        inputs = prepare_candidates(alone, ordered_runs, measures, options, is_grouped=False)
        audited[options.reference] = AuditedRuns.from_inputs(inputs)
    mixed_audit = audited[ALL].audit
    tilts = _tilts(mixed_audit, questions, options.correction)
    changes = _changes(audited, options)
    baseline, primary = candidates[0].name, repr(questions[0])
    baseline_effects = [tilt for tilt in tilts if tilt.run == baseline and tilt.measure == primary]
    movements = movements_from(
        mixed_audit,
        {candidate.name: run for candidate, run in runs.items()},
        resamples=options.resamples,
        seed=options.seed,
    )
    return Bench(
        spec=_spec(mixed_audit, runs, changes, options),
        candidates=candidates,
        measures=tuple(repr(measured) for measured in mixed_audit.measures),
        tilts=tilts,
        effectiveness=_means(audited, options),
        changes=changes,
        notes=_notes(audited),
        selected=selected,
        baseline_effects=tuple(baseline_effects),
        movements=movements,
    )


def _spec(
    audited: Audit, runs: CandidateRuns, changes: Sequence[Change], options: BenchOptions
) -> dict[str, Any]:
    """Return how the bench was made: the audit's spec, and what only a bench has."""
    # A bench has the first two at their defaults, and a margin of its own.
    audit_only = ("missing", "rounding", "margin")
    shared = {key: value for key, value in audited.spec.items() if key not in audit_only}
    # The audit calls each run by its candidate's name; the runs' own specs have the rankers' texts.
    baseline, *others = (dict(run.spec) for run in runs.values())
    spec = {
        **shared,
        "margin": options.margin,
        "reference": options.reference,
        "runs": [baseline, *(_differing_entries(spec, baseline) for spec in others)],
        # The number of tests that are corrected together.
        "family_size": sum(not np.isnan(change.p) for change in changes),
        "budget": options.budget,
    }
    if audited.measures:
        spec["effectiveness"] = repr(options.effectiveness)
    return spec


def _differing_entries(spec: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a run's spec that differ from the baseline's, and the ranker.

    Most candidates correct the baseline's run, whose spec is then their entry ``candidates``; it is
    left out.
    """
    differing = {"ranker": spec["ranker"]} if "ranker" in spec else {}
    for key, value in spec.items():
        is_baseline_spec = key == "candidates" and value == baseline
        if value != baseline.get(key) and not is_baseline_spec:
            differing[key] = value
    return differing


def _notes(audited: Mapping[str, AuditedRuns]) -> tuple[Note, ...]:
    """Return the notes of all audits; `audited` has them by the documents that were ranked."""
    notes = _without_repeats(audited[ALL].audit)
    for documents, runs in audited.items():
        if documents != ALL:
            others = [note for note in _without_repeats(runs.audit) if note not in notes]
            notes += notes_within(others, "documents", documents)
    return tuple(notes)


def _without_repeats(audit: Audit) -> list[Note]:
    """Return the notes of an audit without those about a candidate that the baseline has too.

    The baseline is the first run of the audit.
    """
    baseline = audit.runs[0]
    notes = list[Note]()
    for note in audit.notes:
        run = getattr(note, "run", baseline)
        # Only notes about one run have the field `run`, which their base class does not know.
        baseline_fields: dict[str, Any] = {} if run == baseline else {"run": baseline}
        if run == baseline or replace(note, **baseline_fields) not in audit.notes:
            notes.append(note)
    return notes


# ---- effects -------------------------------------------------------------------------------------


def _tilts(audited: Audit, questions: Sequence[Estimand], correction: str) -> tuple[Effect, ...]:
    """Return every tilt of an audit: sorted by run, then by pair of groups, then by question.

    The p of the primary question are corrected over the pairs of one run, as an audit of that run
    alone would correct them. The p of other questions are as the audit gives them.

    Parameters
    ----------
    audited : Audit
        Audit of all candidates.
    questions : sequence of Estimand
        The questions; the first is the primary one.
    correction : str
        How p are corrected for several tests, such as ``holm``.

    Raises
    ------
    UserError
        If the primary question has no answer for these groups, or is not in percent.
    """
    primary = repr(questions[0])
    question_order = {repr(question): number for number, question in enumerate(questions)}
    run_order = {name: number for number, name in enumerate(audited.runs)}
    tilts = sorted(
        (*audited.tilts, *audited.card),
        key=lambda tilt: (run_order[tilt.run], tilt.a, tilt.b, question_order[tilt.measure]),
    )
    if not tilts or tilts[0].measure != primary:
        raise UserError(
            f"{primary} is undefined for these groups: they have no twins, or no relevant documents"
        )
    if np.isnan(percent_factor(tilts[0])):
        raise UserError(
            f"level is judged in percent, and {primary} has another unit; put Share@10 first"
        )
    primary_tilts = dict[tuple[str, str, str], Effect]()
    for name in audited.runs:
        tilts_of_run = [tilt for tilt in tilts if tilt.run == name and tilt.measure == primary]
        for tilt in correct_p_values(tilts_of_run, correction):
            primary_tilts[tilt.run, tilt.a, tilt.b] = tilt
    return tuple(
        primary_tilts[tilt.run, tilt.a, tilt.b] if tilt.measure == primary else tilt
        for tilt in tilts
    )


def _changes(audited: Mapping[str, AuditedRuns], options: BenchOptions) -> tuple[Change, ...]:
    """Return how every tilt and effectiveness differs from the baseline's, over the same queries.

    `audited` has the audit over all documents by the key ``all``, and the audit over the
    reference's documents by the reference's name. The p of all changes are corrected together.
    """
    resamples, seed = options.resamples, options.seed
    changes = list[Change]()
    for documents, runs in audited.items():
        changes += contrast_changes(_tilt_tasks(runs), resamples=resamples, seed=seed)
        mean_tasks = _mean_tasks(runs.audit, documents)
        changes += mean_changes(mean_tasks, resamples=resamples, seed=seed)
    return correct_p_values(changes, options.correction)


def _tilt_tasks(runs: AuditedRuns) -> list[ChangeTask]:
    """Pair each candidate's values of a question about two groups with the baseline's values.

    A sample is one run's values of one question about one pair of groups, query by query.
    """
    baseline = runs.audit.runs[0]
    baseline_samples = {
        (sample.estimand, sample.a, sample.b): sample
        for sample in runs.samples
        if sample.run == baseline
    }
    tasks = []
    for sample in runs.samples:
        if sample.run != baseline:
            before = baseline_samples[sample.estimand, sample.a, sample.b]
            tasks.append(contrast_task(sample, before, (sample.neutral, before.neutral)))
    return tasks


def _mean_tasks(audited: Audit, documents: str) -> list[ChangeTask]:
    """Pair each candidate's effectiveness, query by query, with the baseline's."""
    baseline, *candidates = audited.runs
    tasks = []
    for number, candidate in enumerate(candidates, start=1):
        # Queries that repeat each other in both runs are no fresh evidence, and count once.
        distinct = shared_numbering([audited.distinct(candidate), audited.distinct(baseline)])
        for index, measured in enumerate(audited.measures):
            # Runs × measures × groups × queries; group 0 is all documents, run 0 the baseline.
            values = audited.values[[number, 0], index, 0]
            tasks.append(
                ChangeTask(
                    run=candidate,
                    old_run=baseline,
                    estimand=measured,
                    a=documents,
                    b=documents,
                    columns=Columns(values=values, distinct=distinct),
                )
            )
    return tasks


def _means(audited: Mapping[str, AuditedRuns], options: BenchOptions) -> tuple[Effect, ...]:
    """Return the mean effectiveness of every run and measure, with its interval.

    There is no p, because a test against 0 says nothing: every useful ranker has a mean above 0.
    """
    means = list[Effect]()
    for documents, runs in audited.items():
        samples = []
        for run, run_values in zip(runs.audit.runs, runs.audit.values[:, :, 0], strict=True):
            distinct = runs.audit.distinct(run)
            for measured, values in zip(runs.audit.measures, run_values, strict=True):
                samples.append(mean_sample(run, measured, documents, values, distinct=distinct))
        means += effects(samples, options.inference)
    return tuple(means)

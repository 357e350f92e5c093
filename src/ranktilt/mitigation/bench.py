"""The bench: candidates and the baseline, compared by their runs. It ranks and trains nothing.

`bench` is for any runs; `mitigate` makes its own and calls `compare_candidates`. A bench takes two
audits: of the runs of all documents, and of those of the reference's documents alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ranktilt.auditing.card import DEPTH
from ranktilt.auditing.conclude import conclude
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.limit_checks import in_percent
from ranktilt.auditing.groups import ALL, Pair, grouping
from ranktilt.auditing.infer import infer
from ranktilt.auditing.measure import measure as measure_runs
from ranktilt.auditing.options import AuditOptions, usual_primary
from ranktilt.auditing.prepare import DEFAULT_MEASURES, AuditInputs, prepare
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import (
    ChangeTask,
    Columns,
    InferenceOptions,
    Sample,
    contrast_changes,
    contrast_task,
    corrected,
    effects,
    mean_changes,
    mean_sample,
)
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, notes_within
from ranktilt.data.run import Run, collection_rows
from ranktilt.errors import UserError, counted, refuse_twice, unknown
from ranktilt.explaining.equivalence import reference_alone
from ranktilt.measures.base import Estimand, Measure, estimand, measure
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.mitigation.bench_result import (
    BUDGET,
    MOVEMENT_BUDGET,
    Bench,
    Candidate,
    check_limits,
)
from ranktilt.mitigation.movement import movements_from
from ranktilt.statistics.bootstrap import RESAMPLES, shared_numbering

EFFECTIVENESS = "nDCG@10"
CandidateRuns = Mapping[Candidate, Run]


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """How candidates are compared; `bench` has the meaning of each field."""

    effectiveness: Measure
    budget: float
    reference: str
    by: str
    pairs: tuple[Pair, ...]
    ties: str
    test: str
    correction: str
    margin: float
    resamples: int
    seed: int

    @property
    def inference(self) -> InferenceOptions:
        """How changes and means get their intervals."""
        return InferenceOptions(
            resamples=self.resamples,
            seed=self.seed,
            test=self.test,
            correction=self.correction,
            rounding="none",
        )


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
        The collection that all of them ranked; best with queries that no candidate was made on.
    runs : mapping of Candidate to Run
        The baseline, whose method is empty, and one candidate at least, each with its run of
        `mixed`.
    measures : iterable of str or Estimand, optional
        Measures whose Relative Δ is taken, and other estimands of two groups, such as ``Share@10``.
    reference_runs : mapping of Candidate to Run, optional
        Of each, the run of the reference's documents alone (`reference_alone`).
    primary : str or Estimand, optional
        The question that level is judged on, in percent such as a share or a ratio; by default the
        one of `audit`.
    effectiveness : str or Measure, optional
        The measure on which the cost is judged, where anything is judged relevant.
    budget : float, optional
        Effectiveness that a candidate may cost, 0 to 1, .01 by default: over all documents, and on
        the reference's alone. Where nothing is judged, the share of the baseline's first ten
        documents that it may replace, .2 by default.
    reference : str, optional
        The group that all others are compared with, favoured by positive values.
    by : str, optional
        Document column of the groups.
    pairs : sequence of (str, str), optional
        Groups to compare; by default the reference and each other group. Level is level on all of
        them.
    selected : iterable of str, optional
        Names of candidates that were chosen on other queries; only these may be chosen then.
    margin : float, optional
        Half-width, in points, of what counts as level.
    ties, test, correction, resamples, seed
        As in `audit`, for each candidate separately; p of the changes are corrected over all
        changes of the bench.

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
    budget = budget_of(mixed, budget)
    check_limits(margin, budget)
    candidates = order_candidates(runs)
    if pairs is None:
        names = grouping(mixed, by).names
        if reference not in names:
            raise unknown(by, reference, names)
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


def budget_of(collection: Collection, budget: float | None) -> float:
    """Return the budget, by default that of effectiveness, or of moved lists for no judgments."""
    if budget is not None:
        return budget
    return BUDGET if collection.qrels.height else MOVEMENT_BUDGET


def order_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Put the baseline first, then the others by method and rising strength; refuse none."""
    candidates = list(candidates)
    refuse_twice([candidate.name for candidate in candidates], "candidate")
    baselines = [candidate for candidate in candidates if not candidate.method]
    others = [candidate for candidate in candidates if candidate.method]
    if len(baselines) != 1 or not others:
        raise UserError(
            "a bench needs one baseline, the ranker without any correction (no method), and one "
            f"candidate at least; got {len(baselines)} and {len(others)}"
        )
    methods = list(dict.fromkeys(candidate.method for candidate in others))
    others.sort(key=lambda candidate: (methods.index(candidate.method), candidate.strength))
    return [*baselines, *others]


def order_questions(
    measures: Iterable[str | Estimand], primary: str | Estimand | None, by: str
) -> list[Estimand]:
    """Return the questions of a bench, the primary one first; refuse one that favours no side."""
    questions = [estimand(question).complete() for question in measures]
    leading = usual_primary(questions, by) if primary is None else estimand(primary)
    if leading is not None:
        questions = [leading, *(question for question in questions if question != leading)]
    strange = next((question for question in questions if not question.sided), None)
    if strange is not None:
        raise UserError(
            f"{strange!r} has no sign between two groups; use one that has, such as Share@10"
        )
    if not questions:
        raise UserError(
            "a bench needs a measure on which level is judged, such as nDCG@3 or Share@10"
        )
    return list(dict.fromkeys(questions))


@dataclass(frozen=True, kw_only=True, eq=False)
class _AuditedRuns:
    """An audit of candidates, with its samples, which the differences are computed from."""

    audit: Audit
    samples: tuple[Sample, ...]
    """Samples of every tilt, and of every answer about groups."""

    @classmethod
    def from_inputs(cls, inputs: AuditInputs) -> Self:
        """Audit runs that are lined up."""
        measurements = measure_runs(inputs)
        inferences = infer(inputs, measurements)
        return cls(
            audit=conclude(inputs, measurements, inferences),
            samples=(*inferences.tilt_samples, *inferences.group_samples),
        )


def compare_candidates(
    mixed: Collection,
    runs: CandidateRuns,
    questions: Sequence[Estimand],
    *,
    reference_runs: CandidateRuns,
    selected: tuple[str, ...] = (),
    options: BenchOptions,
) -> Bench:
    """Return the bench of runs, the baseline's first; the baseline alone is a bench too."""
    candidates = tuple(runs)
    is_judged = mixed.qrels.height > 0
    if is_judged:
        questions = list(dict.fromkeys([*questions, options.effectiveness]))
    inputs = prepare_candidates(mixed, runs, questions, options)
    audited = {ALL: _AuditedRuns.from_inputs(inputs)}
    if is_judged and reference_runs:
        measures = [question for question in questions if isinstance(question, Measure)]
        alone = reference_alone(mixed, options.reference, options.by)
        _check_reference_runs(alone, runs, reference_runs, options.reference)
        in_order = {candidate: reference_runs[candidate] for candidate in runs}
        inputs = prepare_candidates(alone, in_order, measures, options, is_grouped=False)
        audited[options.reference] = _AuditedRuns.from_inputs(inputs)
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


def prepare_candidates(
    collection: Collection,
    runs: CandidateRuns,
    questions: Sequence[Estimand],
    options: BenchOptions,
    *,
    is_grouped: bool = True,
) -> AuditInputs:
    """Line the runs of candidates up with groups and judgments, as an audit does."""
    named_runs = [
        replace(run, spec={**run.spec, "ranker": candidate.name, "name": candidate.name})
        for candidate, run in runs.items()
    ]
    _refuse_other_queries(named_runs)
    audit_options = AuditOptions(
        by=options.by if is_grouped else None,
        pairs=options.pairs if is_grouped else None,
        primary=questions[0] if is_grouped else None,
        card=False,
        depth=DEPTH,
        confounds=False,
        missing="zero",
        ties=options.ties,
        margin=options.margin if is_grouped else DEFAULT_MARGIN,
        keep_top=0,
        inference=options.inference,
    )
    return prepare(collection, named_runs, questions, audit_options)


def _check_reference_runs(
    alone: Collection, runs: CandidateRuns, reference_runs: CandidateRuns, reference: str
) -> None:
    """Refuse runs of the reference's documents that some candidate lacks, or that hold others."""
    lacking = next((candidate for candidate in runs if candidate not in reference_runs), None)
    if lacking is not None:
        raise UserError(
            f"{lacking.name} has no run of {reference} documents alone, others have; rank them "
            "with all or none"
        )
    for candidate, run in reference_runs.items():
        if (collection_rows(run, alone)[run.docs] < 0).any():
            raise UserError(
                f"{candidate.name}: its run of {reference} documents alone holds others too"
            )


def _refuse_other_queries(runs: Sequence[Run]) -> None:
    """Refuse a run over other queries than the baseline's: nothing could be paired."""
    baseline = runs[0]
    for run in runs[1:]:
        differing = sorted(set(run.queries) ^ set(baseline.queries))
        if differing:
            count = counted(len(differing), "query is", "queries are")
            raise UserError(
                f"{run.name} and {baseline.name} ranked different queries "
                f"({count} in one of them only, first {differing[0]!r}); rank the "
                "same queries with both"
            )


def _tilts(audited: Audit, questions: Sequence[Estimand], correction: str) -> tuple[Effect, ...]:
    """Return the answers of two groups, by run and pair in the order of the questions.

    On the primary question, which must be in percent, p is corrected for each run separately, as in
    an audit of that run alone.
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
    if np.isnan(in_percent(tilts[0])):
        raise UserError(
            f"level is judged in percent, and {primary} has another unit; put Share@10 first"
        )
    primary_tilts = dict[tuple[str, str, str], Effect]()
    for name in audited.runs:
        tilts_of_run = [tilt for tilt in tilts if tilt.run == name and tilt.measure == primary]
        for tilt in corrected(tilts_of_run, correction):
            primary_tilts[tilt.run, tilt.a, tilt.b] = tilt
    return tuple(
        primary_tilts[tilt.run, tilt.a, tilt.b] if tilt.measure == primary else tilt
        for tilt in tilts
    )


def _changes(audited: Mapping[str, _AuditedRuns], options: BenchOptions) -> tuple[Change, ...]:
    """Return every tilt and effectiveness less the baseline's, over the same queries.

    p is corrected over all of them.
    """
    sampling = {"resamples": options.resamples, "seed": options.seed}
    changes = list[Change]()
    for documents, runs in audited.items():
        changes += contrast_changes(_tilt_tasks(runs), **sampling)
        changes += mean_changes(_mean_tasks(runs.audit, documents), **sampling)
    return corrected(changes, options.correction)


def _tilt_tasks(runs: _AuditedRuns) -> list[ChangeTask]:
    """Pair each sample of a candidate with the baseline's sample of the same question."""
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
    """Pair each candidate's values of a measure with the baseline's."""
    baseline, *candidates = audited.runs
    tasks = []
    for number, candidate in enumerate(candidates, start=1):
        distinct = shared_numbering([audited.distinct(candidate), audited.distinct(baseline)])
        for index, measured in enumerate(audited.measures):
            values = audited.values[[number, 0], index, 0]
            tasks.append(
                ChangeTask(
                    run=candidate,
                    old_run=baseline,
                    estimand=measured,
                    a=documents,
                    b=documents,
                    columns=Columns(values, distinct),
                )
            )
    return tasks


def _means(audited: Mapping[str, _AuditedRuns], options: BenchOptions) -> tuple[Effect, ...]:
    """Return the effectiveness of every run and measure with its interval.

    That a mean is above 0 is not tested.
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


def _spec(
    audited: Audit, runs: CandidateRuns, changes: Sequence[Change], options: BenchOptions
) -> dict[str, Any]:
    """Return how the bench was made, with the rankers' own texts."""
    audit_only = ("missing", "rounding", "margin")
    shared = {key: value for key, value in audited.spec.items() if key not in audit_only}
    baseline, *others = (dict(run.spec) for run in runs.values())
    spec = {
        **shared,
        "margin": options.margin,
        "reference": options.reference,
        "runs": [baseline, *(_beyond(spec, baseline) for spec in others)],
        "family_size": sum(not np.isnan(change.p) for change in changes),
        "budget": options.budget,
    }
    if audited.measures:
        spec["effectiveness"] = repr(options.effectiveness)
    return spec


def _beyond(spec: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a run's spec that differ from the baseline's.

    Most candidates are corrections of the baseline's run, whose spec is their ``candidates``.
    """
    more = {"ranker": spec["ranker"]} if "ranker" in spec else {}
    for key, value in spec.items():
        is_baseline = key == "candidates" and value == baseline
        if value != baseline.get(key) and not is_baseline:
            more[key] = value
    return more


def _notes(audited: Mapping[str, _AuditedRuns]) -> tuple[Note, ...]:
    """Return the notes of the audits, each once."""
    notes = list(audited[ALL].audit.notes)
    for documents, runs in audited.items():
        if documents != ALL:
            others = [note for note in runs.audit.notes if note not in notes]
            notes += notes_within(others, "documents", documents)
    return tuple(notes)

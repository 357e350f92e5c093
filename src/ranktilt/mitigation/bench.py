"""The bench: compare candidates with the baseline by their runs. It ranks and trains nothing.

`bench` is for any runs; `mitigate` makes its own and calls `compare_candidates`. A bench takes two
audits: of the runs of all documents, and of the runs of the reference's documents alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranktilt.auditing.effects import Change
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.options import usual_primary
from ranktilt.auditing.prepare import DEFAULT_MEASURES
from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, notes_within
from ranktilt.errors import UserError, refuse_twice
from ranktilt.explaining.equivalence import reference_alone
from ranktilt.measures.base import Estimand, Measure, estimand, measure
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.mitigation.audited_candidates import (
    AuditedRuns,
    BenchOptions,
    CandidateRuns,
    check_reference_runs,
    prepare_candidates,
)
from ranktilt.mitigation.bench_effects import changes_of, means_of, tilts_of
from ranktilt.mitigation.bench_result import (
    Bench,
    Candidate,
    check_limits,
    default_budget,
)
from ranktilt.mitigation.movement import movements_from
from ranktilt.statistics.bootstrap import RESAMPLES

EFFECTIVENESS = "nDCG@10"
"""Default measure on which the cost of a candidate is judged."""


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
        The collection that all of them ranked; ideally with queries that no candidate was made
        with.
    runs : mapping of Candidate to Run
        The baseline, whose method is empty, and at least one candidate, each with its run of
        `mixed`.
    measures : iterable of str or Estimand, optional
        Measures to take Relative Δ of, and other estimands of two groups, such as ``Share@10``.
    reference_runs : mapping of Candidate to Run, optional
        Each candidate's run of the reference's documents alone (`reference_alone`).
    primary : str or Estimand, optional
        The question that decides what is level, in percent such as a share or a ratio; by default
        as in `audit`.
    effectiveness : str or Measure, optional
        The measure of the cost, if anything is judged relevant.
    budget : float, optional
        Effectiveness that a candidate may cost, 0 to 1, .01 by default: over all documents, and on
        the reference's alone. Without judgments, the share of the baseline's first ten documents
        that it may replace, .2 by default.
    reference : str, optional
        The group to compare all others with; positive values favour it.
    by : str, optional
        Document column of the groups.
    pairs : sequence of (str, str), optional
        Groups to compare; by default the reference and each other group. Level means level on all
        of them.
    selected : iterable of str, optional
        Names of candidates that other queries chose; then only these may be chosen.
    margin : float, optional
        Half-width, in points, of what counts as level.
    ties, test, correction, resamples, seed
        As in `audit`, for each candidate separately; the p of all changes of the bench are
        corrected together.

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
    candidates = order_candidates(runs)
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


def order_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Put the baseline first, then the others by method and rising strength; refuse none."""
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
    """Return the questions of a bench, the primary one first; refuse one that favours no side."""
    questions = [estimand(question).complete() for question in measures]
    leading = usual_primary(questions, by) if primary is None else estimand(primary)
    if leading is not None:
        questions = [leading, *(question for question in questions if question != leading)]
    strange = next((question for question in questions if not question.sided), None)
    if strange is not None:
        raise UserError(
            f"{strange!r} does not say which of two groups it favours; use one that does, such as "
            "Share@10"
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
    """Return the bench of runs; the baseline's run comes first.

    The baseline alone is a bench too.
    """
    candidates = tuple(runs)
    if mixed.has_judgments:
        questions = list(dict.fromkeys([*questions, options.effectiveness]))
    inputs = prepare_candidates(mixed, runs, questions, options)
    audited = {ALL: AuditedRuns.from_inputs(inputs)}
    if mixed.has_judgments and reference_runs:
        measures = [question for question in questions if isinstance(question, Measure)]
        alone = reference_alone(mixed, options.reference, options.by)
        check_reference_runs(alone, runs, reference_runs, options.reference)
        in_order = {candidate: reference_runs[candidate] for candidate in runs}
        inputs = prepare_candidates(alone, in_order, measures, options, is_grouped=False)
        audited[options.reference] = AuditedRuns.from_inputs(inputs)
    mixed_audit = audited[ALL].audit
    tilts = tilts_of(mixed_audit, questions, options.correction)
    changes = changes_of(audited, options)
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
        effectiveness=means_of(audited, options),
        changes=changes,
        notes=_notes(audited),
        selected=selected,
        baseline_effects=tuple(baseline_effects),
        movements=movements,
    )


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


def _notes(audited: Mapping[str, AuditedRuns]) -> tuple[Note, ...]:
    """Return the notes of the audits, without repetitions."""
    notes = _without_repeats(audited[ALL].audit)
    for documents, runs in audited.items():
        if documents != ALL:
            others = [note for note in _without_repeats(runs.audit) if note not in notes]
            notes += notes_within(others, "documents", documents)
    return tuple(notes)


def _without_repeats(audit: Audit) -> list[Note]:
    """Leave out what holds of a candidate as it does of the baseline, which is the first run."""
    baseline = audit.runs[0]
    notes = list[Note]()
    for note in audit.notes:
        run = getattr(note, "run", baseline)
        # Only notes about one run have this field, which their base class does not know.
        of_baseline: dict[str, Any] = {} if run == baseline else {"run": baseline}
        if run == baseline or replace(note, **of_baseline) not in audit.notes:
            notes.append(note)
    return notes

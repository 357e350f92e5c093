"""The bench: candidates and the baseline, compared by their runs. It ranks and trains nothing.

`bench` is for any runs; `mitigate` makes its own and calls `compare_candidates`. A bench takes two
audits: of the runs of all documents, and of those of the reference's documents alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranktilt.auditing.answer.gate import in_percent
from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.match import change_tasks, estimand_tasks, match
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.groups import ALL, Pair, grouping
from ranktilt.auditing.notes import notes_from
from ranktilt.auditing.options import usual_primary
from ranktilt.auditing.prepare import DEFAULT_MEASURES
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import (
    InferenceOptions,
    contrast_changes,
    corrected,
    effects,
    mean_changes,
    mean_sample,
)
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run, collection_rows
from ranktilt.errors import UserError, counted, refuse_twice, unknown
from ranktilt.explaining.equivalence import reference_alone
from ranktilt.measures.base import Estimand, Measure, estimand, measure
from ranktilt.measures.margin import LEVEL
from ranktilt.mitigation.bench_result import BUDGET, Bench, Candidate, check_limits
from ranktilt.statistics.bootstrap import RESAMPLES

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
    budget: float = BUDGET,
    reference: str = "human",
    by: str = "source",
    pairs: Sequence[Pair] | None = None,
    selected: Iterable[str] = (),
    ties: str = "expected",
    test: str = "interval",
    correction: str = "holm",
    margin: float = LEVEL,
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
        Effectiveness that a candidate may cost, 0 to 1: over all documents, and on the reference's
        alone.
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
        As in `audit`, of each candidate by itself; p of the changes are corrected over all changes
        of the bench.

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
    named_runs = [named_run(run, candidate) for candidate, run in runs.items()]
    _refuse_other_queries(named_runs)
    is_judged = mixed.qrels.height > 0
    if is_judged:
        questions = list(dict.fromkeys([*questions, options.effectiveness]))
    audited = _audit_mixed(mixed, named_runs, questions, options)
    audits = {ALL: audited}
    if is_judged and reference_runs:
        measures = [question for question in questions if isinstance(question, Measure)]
        audits[options.reference] = _audit_reference(mixed, runs, reference_runs, measures, options)
    tilts = _tilts(audited, questions, options.correction)
    changes = _changes(audits, options)
    primary = repr(questions[0])
    return Bench(
        spec=_spec(audited, runs, changes, options),
        candidates=candidates,
        measures=tuple(repr(measured) for measured in audited.measures),
        tilts=tilts,
        effectiveness=_means(audits, options),
        changes=changes,
        notes=_notes(audits),
        selected=selected,
        baseline_effects=tuple(
            tilt for tilt in tilts if tilt.run == candidates[0].name and tilt.measure == primary
        ),
    )


def _audit_mixed(
    mixed: Collection,
    runs: Sequence[Run],
    questions: Sequence[Estimand],
    options: BenchOptions,
) -> Audit:
    return audit(
        mixed,
        runs,
        questions,
        primary=questions[0],
        by=options.by,
        pairs=options.pairs,
        level=options.margin,
        ties=options.ties,
        test=options.test,
        correction=options.correction,
        resamples=options.resamples,
        seed=options.seed,
        confounds=False,
        keep_top=0,
    )


def _audit_reference(
    mixed: Collection,
    runs: CandidateRuns,
    reference_runs: CandidateRuns,
    measures: Sequence[Measure],
    options: BenchOptions,
) -> Audit:
    """Audit the runs of the reference's documents alone; refuse runs that hold others."""
    lacking = next((candidate for candidate in runs if candidate not in reference_runs), None)
    if lacking is not None:
        raise UserError(
            f"{lacking.name} has no run of {options.reference} documents alone, others have; rank "
            "them with all or none"
        )
    named_runs = [named_run(reference_runs[candidate], candidate) for candidate in runs]
    _refuse_other_queries(named_runs)
    alone = reference_alone(mixed, options.reference, options.by)
    for run in named_runs:
        if (collection_rows(run, alone)[run.docs] < 0).any():
            raise UserError(
                f"{run.name}: its run of {options.reference} documents alone holds others too"
            )
    return audit(
        alone,
        named_runs,
        measures,
        by=None,
        ties=options.ties,
        test=options.test,
        correction=options.correction,
        resamples=options.resamples,
        seed=options.seed,
        keep_top=0,
    )


def named_run(run: Run, candidate: Candidate) -> Run:
    """Return a run under the name of its candidate."""
    return replace(run, spec={**run.spec, "ranker": candidate.name, "name": candidate.name})


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

    On the primary question, which must be in percent, each run is judged by itself, as an audit of
    it alone would judge it.
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
    by_itself = dict[tuple[str, str, str], Effect]()
    for name in audited.runs:
        of_run = [tilt for tilt in tilts if tilt.run == name and tilt.measure == primary]
        for tilt in corrected(of_run, correction):
            by_itself[tilt.run, tilt.a, tilt.b] = tilt
    return tuple(
        by_itself[tilt.run, tilt.a, tilt.b] if tilt.measure == primary else tilt for tilt in tilts
    )


def _changes(audits: Mapping[str, Audit], options: BenchOptions) -> tuple[Change, ...]:
    """Return every tilt and effectiveness less the baseline's, over the same queries.

    p is corrected over all of them.
    """
    sampling = {"resamples": options.resamples, "seed": options.seed}
    changes = list[Change]()
    for documents, audited in audits.items():
        if len(audited.runs) < 2:
            continue
        if not (audited.measures or audited.query_answers):  # questions about twins alone
            continue
        matched = match(audited, audited, baseline_run=audited.runs[0])
        tasks = [*change_tasks(matched, matched.pairs), *estimand_tasks(matched)]
        changes += contrast_changes(tasks, **sampling)
        for change in mean_changes(change_tasks(matched, [(ALL, ALL)]), **sampling):
            changes.append(replace(change, a=documents, b=documents))
    return corrected(changes, options.correction)


def _means(audits: Mapping[str, Audit], options: BenchOptions) -> tuple[Effect, ...]:
    """Return the effectiveness of every run and measure with its interval.

    That a mean is above 0 is not tested.
    """
    means = list[Effect]()
    for documents, audited in audits.items():
        samples = []
        for run, run_values in zip(audited.runs, audited.values[:, :, 0], strict=True):
            distinct = audited.distinct(run)
            for measured, values in zip(audited.measures, run_values, strict=True):
                samples.append(mean_sample(run, measured, documents, values, distinct=distinct))
        means += effects(samples, options.inference)
    return tuple(means)


def _spec(
    audited: Audit, runs: CandidateRuns, changes: Sequence[Change], options: BenchOptions
) -> dict[str, Any]:
    """Return how the bench was made, with the rankers' own texts."""
    audit_only = ("missing", "rounding", "level")
    shared = {key: value for key, value in audited.spec.items() if key not in audit_only}
    baseline, *others = (dict(run.spec) for run in runs.values())
    spec = {
        **shared,
        "margin": options.margin,
        "reference": options.reference,
        "runs": [baseline, *(_beyond(spec, baseline) for spec in others)],
        "family_size": sum(not np.isnan(change.p) for change in changes),
    }
    if audited.measures:
        spec |= {"effectiveness": repr(options.effectiveness), "budget": options.budget}
    return spec


def _beyond(spec: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run's spec says beyond the baseline's, of which it is made as a rule."""
    more = {"ranker": spec["ranker"]} if "ranker" in spec else {}
    for key, value in spec.items():
        is_baseline = key == "candidates" and value == baseline
        if value != baseline.get(key) and not is_baseline:
            more[key] = value
    return more


def _notes(audits: Mapping[str, Audit]) -> tuple[str, ...]:
    """Return the notes of the audits, each once."""
    notes = list(audits[ALL].notes)
    for documents, audited in audits.items():
        if documents != ALL:
            others = [note for note in audited.notes if note not in notes]
            notes += notes_from(f"{documents} documents alone", others)
    return tuple(notes)

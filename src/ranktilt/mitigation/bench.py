"""The bench of interventions, made of their runs: it ranks and trains nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

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
from ranktilt.mitigation.bench_result import BUDGET, Bench, Intervention, check_limits
from ranktilt.statistics.bootstrap import RESAMPLES

EFFECTIVENESS = "nDCG@10"


class Trial(NamedTuple):
    """An intervention and what its ranker found."""

    intervention: Intervention
    mixed: Run
    """Of all documents."""
    alone: Run | None = None
    """Of the reference's documents alone (`reference_alone`)."""


def bench(
    mixed: Collection,
    trials: Iterable[Trial],
    measures: Iterable[str | Estimand] = DEFAULT_MEASURES,
    *,
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
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Bench:
    """Hold effectiveness against tilt for interventions of rising strength, and find the smallest that reaches level.

    Parameters
    ----------
    mixed : Collection
        What all of them ranked; best with queries that no intervention was made on.
    trials : iterable of Trial
        The baseline, whose method is empty, and one intervention at least; each with its run of
        `mixed`, and either all or none with one of the reference's documents alone.
    measures : iterable of str or Estimand, optional
        Measures whose Relative Δ is taken, and other estimands of two groups, such as ``Share@10``.
    primary : str or Estimand, optional
        The question that level is judged on, in percent such as a share or a ratio; by default the
        one of `audit`.
    effectiveness : str or Measure, optional
        On which the cost is judged, where anything is judged relevant.
    budget : float, optional
        Effectiveness that an intervention may cost, 0 to 1: over all documents, and on the
        reference's alone.
    reference : str, optional
        The group that all others are held against, favoured by positive values.
    by : str, optional
        Document column of the groups.
    pairs : sequence of (str, str), optional
        Groups to compare; by default the reference and each other group. Level is level on all of
        them.
    selected : iterable of str, optional
        Names of interventions that were chosen on other queries; level is then judged of them
        alone.
    ties, test, correction, level, resamples, seed
        As in `audit`, of each intervention by itself; p of the changes are corrected over all
        changes of the bench.

    Returns
    -------
    Bench
        Tilts, effectiveness, and how each differs from the baseline's.

    Raises
    ------
    UserError
        If there is no baseline or nothing beside it, names or strengths come twice, runs are over
        other queries or documents, or an option is out of range.
    """
    check_limits(level, budget)
    trials = _ordered([Trial(*one) for one in trials])
    asked, valued = _questions(
        measures, primary, measure(effectiveness), by, judged=mixed.qrels.height > 0
    )
    if pairs is None:
        names = grouping(mixed, by).names
        if reference not in names:
            raise unknown(by, reference, names)
        pairs = [(reference, name) for name in names if name != reference]
    how: dict[str, Any] = {
        "ties": ties,
        "test": test,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
    }
    runs = [_renamed(one.mixed, one.intervention) for one in trials]
    _refuse_other_queries(runs)
    shared: dict[str, Any] = {"confounds": False, "keep_top": 0, **how}
    audited = [
        audit(mixed, runs, asked, primary=asked[0], by=by, pairs=pairs, level=level, **shared)
    ]
    if valued and (lists := _alone(mixed, trials, reference, by)):
        measured = [one for one in asked if isinstance(one, Measure)]
        audited.append(
            audit(
                reference_alone(mixed, reference, by), lists, measured, by=None, keep_top=0, **how
            )
        )
    options = InferenceOptions(resamples, seed, test, correction, "none")
    changes = _changes(audited, reference, options)
    own = {
        "reference": reference,
        **({"effectiveness": repr(valued), "budget": budget} if valued else {}),
    }
    spec = {
        **_spec(audited[0], trials),
        **own,
        "tests": sum(change.p == change.p for change in changes),
    }
    means = [
        _means(one, over, options) for one, over in zip(audited, (ALL, reference), strict=False)
    ]
    chosen = tuple(selected)
    notes = list(audited[0].notes)
    for of_reference in audited[1:]:
        others = [note for note in of_reference.notes if note not in notes]
        notes += notes_from(f"{reference} documents alone", others)
    tilts = _tilts(audited[0], asked, correction)
    return Bench(
        spec,
        tuple(one.intervention for one in trials),
        tuple(map(repr, audited[0].measures)),
        tilts,
        tuple(chain(*means)),
        changes,
        (
            *notes,
            *_notes(trials, reference if valued and by == "source" else "", selected=len(chosen)),
        ),
        chosen,
        before=tuple(t for t in tilts if (t.run, t.measure) == (runs[0].name, repr(asked[0]))),
    )


def _questions(
    measures: Iterable[str | Estimand],
    primary: str | Estimand | None,
    valued: Measure,
    by: str,
    *,
    judged: bool,
) -> tuple[list[Estimand], Measure | None]:
    """What is asked, the primary question first, and the measure of effectiveness; None where nothing is judged."""
    asked = [estimand(one).complete() for one in measures]
    leading = usual_primary(asked, by) if primary is None else estimand(primary)
    asked = [*([leading] if leading else []), *(one for one in asked if one != leading)]
    strange = next((one for one in asked if not one.sided), None)
    if strange is not None:
        raise UserError(
            f"{strange!r} has no sign between two groups; use one that has, such as Share@10"
        )
    if not asked:
        raise UserError(
            "a bench needs a measure on which level is judged, such as nDCG@3 or Share@10"
        )
    if not judged:
        return list(dict.fromkeys(asked)), None
    return list(dict.fromkeys([*asked, valued])), valued


def _tilts(audited: Audit, questions: Sequence[Estimand], correction: str) -> tuple[Effect, ...]:
    """Answers of two groups, by run and pair in the order of the questions; the primary one must be in percent.

    On it each run is judged by itself, as an audit of it alone would judge it.
    """
    place = {repr(one): number for number, one in enumerate(questions)}
    runs = {name: number for number, name in enumerate(audited.runs)}
    found = sorted(
        (*audited.tilts, *audited.card),
        key=lambda t: (runs[t.run], t.a, t.b, place[t.measure]),
    )
    if not found or found[0].measure != repr(questions[0]):
        raise UserError(
            f"{questions[0]!r} is undefined for these groups: they have no twins, or no relevant documents"
        )
    if in_percent(found[0]) != in_percent(found[0]):
        raise UserError(
            f"level is judged in percent, and {questions[0]!r} has another unit; put Share@10 first"
        )
    alone = [
        effect
        for run in audited.runs
        for effect in corrected(
            [t for t in found if (t.run, t.measure) == (run, repr(questions[0]))], correction
        )
    ]
    judged = {(t.run, t.a, t.b): t for t in alone}
    return tuple(judged[t.run, t.a, t.b] if t.measure == repr(questions[0]) else t for t in found)


def _ordered(trials: list[Trial]) -> list[Trial]:
    """The baseline, then by method and rising strength."""
    refuse_twice([one.intervention.name for one in trials], "intervention")
    baselines = [one for one in trials if not one.intervention.method]
    others = [one for one in trials if one.intervention.method]
    if len(baselines) != 1 or not others:
        raise UserError(
            "a bench needs one baseline, the ranker without any intervention (no method), and an intervention at "
            f"least; got {len(baselines)} and {len(others)}"
        )
    methods = list(dict.fromkeys(one.intervention.method for one in others))
    others.sort(key=lambda one: (methods.index(one.intervention.method), one.intervention.strength))
    return [*baselines, *others]


def _renamed(run: Run, intervention: Intervention) -> Run:
    return replace(run, spec={**run.spec, "ranker": intervention.name, "name": intervention.name})


def _refuse_other_queries(runs: Sequence[Run]) -> None:
    """Refuse a run over other queries than the baseline's: nothing could be paired."""
    for run in runs[1:]:
        other = sorted(set(run.queries) ^ set(runs[0].queries))
        if other:
            raise UserError(
                f"{run.name} and {runs[0].name} ranked different queries "
                f"({counted(len(other), 'query is', 'queries are')} in one of them only, first {other[0]!r}); rank the "
                "same queries with both"
            )


def _alone(mixed: Collection, trials: Sequence[Trial], reference: str, by: str) -> list[Run]:
    """Runs of the reference's documents alone; none where there are none."""
    found = [_renamed(one.alone, one.intervention) for one in trials if one.alone is not None]
    if not found:
        return []
    if len(found) < len(trials):
        lacking = next(one.intervention.name for one in trials if one.alone is None)
        raise UserError(
            f"{lacking} has no run of {reference} documents alone, others have; rank them with all or none"
        )
    _refuse_other_queries(found)
    own = reference_alone(mixed, reference, by)
    for run in found:
        if (collection_rows(run, own)[run.docs] < 0).any():
            raise UserError(f"{run.name}: its run of {reference} documents alone holds others too")
    return found


def _changes(audited: Sequence[Audit], reference: str, how: InferenceOptions) -> tuple[Change, ...]:
    """Every tilt and effectiveness less the baseline's, over the same queries; p corrected over all of them."""
    found = list[Change]()
    for one, over in zip(audited, (ALL, reference), strict=False):
        if not (one.measures or one.query_answers):  # questions about twins alone
            continue
        side = match(one, one, baseline_run=one.runs[0])
        tasks = [*change_tasks(side, side.pairs), *estimand_tasks(side)]
        found += contrast_changes(tasks, resamples=how.resamples, seed=how.seed)
        means = mean_changes(
            change_tasks(side, [(ALL, ALL)]), resamples=how.resamples, seed=how.seed
        )
        found += [replace(change, a=over, b=over) for change in means]
    return corrected(found, how.correction)


def _means(audited: Audit, over: str, how: InferenceOptions) -> tuple[Effect, ...]:
    """Effectiveness of every run and measure with its interval; that a mean is above 0 is not tested."""
    samples = [
        mean_sample(run, one, over, values, audited.distinct(run))
        for run, of_run in zip(audited.runs, audited.values[:, :, 0], strict=True)
        for one, values in zip(audited.measures, of_run, strict=True)
    ]
    return effects(samples, how)


def _spec(audited: Audit, trials: Sequence[Trial]) -> Mapping[str, Any]:
    """How it was made, with the rankers' own texts."""
    kept = {
        name: value for name, value in audited.spec.items() if name not in ("missing", "rounding")
    }
    first, *others = (dict(one.mixed.spec) for one in trials)
    return {**kept, "runs": [first, *(_beyond(spec, first) for spec in others)]}


def _beyond(spec: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's spec says beyond the baseline's, of which it is made as a rule."""
    return {
        name: value
        for name, value in spec.items()
        if name == "ranker"
        or (value != baseline.get(name) and (name, value) != ("candidates", baseline))
    }


def _notes(trials: Sequence[Trial], reference: str, *, selected: int) -> Iterator[str]:
    if trials[0].alone is None and reference:
        yield f"effectiveness on {reference} documents alone is not known: they were not ranked alone"
    if selected:
        return
    yield (
        f"each of the {len(trials) - 1} interventions is judged by its own 95 % intervals; the more there are, the "
        "more likely one of them is called level by chance"
    )

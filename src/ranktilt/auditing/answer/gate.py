"""A gate for continuous integration: within a limit, tilted or inconclusive.

Its reasons are put in words in `reporting/sentences/gate.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ranktilt.auditing.comparison.less_variation import with_less_variation
from ranktilt.auditing.comparison.match import (
    MAX_LEFT_OUT,
    Match,
    change_tasks,
    estimand_tasks,
    match,
)
from ranktilt.auditing.effects import FEW_QUERIES, Change, Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import contrast_changes, mean_changes
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.data.artifact import Coded, Result, names_files
from ranktilt.data.group_names import name_among
from ranktilt.data.notes.base import Note, notes_within, warnings_of
from ranktilt.data.notes.comparisons import GrowthsJudgedAlone
from ranktilt.data.notes.groups import FewQueries, FewQueriesOfGroups
from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import Estimand, estimand
from ranktilt.measures.margin import (
    DEFAULT_MARGIN,
    Margin,
    half_width,
    read_margin,
    require_unit,
)
from ranktilt.statistics.bootstrap import FEWEST_ROWS, RESAMPLES

Outcome = Literal["level", "within", "tilted", "inconclusive"]
MOST = 200.0
"""The most Relative Δ can be, either way: no interval lies beyond such a limit."""
POLICIES = ("fail", "pass")
EXIT: dict[Outcome, int] = {"level": 0, "within": 0, "tilted": 1, "inconclusive": 3}
_WORST: tuple[Outcome, ...] = ("tilted", "inconclusive", "within", "level")


@dataclass(frozen=True, kw_only=True)
class LimitCheck:
    """One check of a comparison against a limit: whether the tilt is small, or has not grown."""

    name: Literal["tilt", "growth", "loss", "tau", "citations"]
    outcome: Outcome
    """``within``: a side is shown to be favoured, but within the limit."""
    value: float
    """The answer, or the growth of its distance from level, in points or its own unit.

    Of a loss, the change of effectiveness in points; of rankings, τ-b.
    """
    low: float
    high: float
    """95 % bootstrap interval."""
    floor: float
    ceiling: float
    """Range that is allowed, both ends included.

    `floor` is −inf for the growth, `ceiling` is inf for the change of effectiveness and for τ-b.
    """
    queries: int | None = None
    """Number of queries behind it; None where it is that of its row."""
    asked_limit: Margin = 0.0
    """Largest tilt either way, largest growth, or largest loss that the caller allows."""
    checked_tilt: Effect | None = None
    """The answer that was checked."""
    checked_change: Change | None = None
    """The change since the baseline that was checked."""
    is_on_common_queries: bool = False
    """Whether the change leaves out queries that only one of both audits holds."""


@dataclass(frozen=True, kw_only=True)
class GateRow:
    """One run, measure and pair of groups before the gate."""

    run: str
    measure: str
    a: str
    b: str
    queries: int
    checks: tuple[LimitCheck, ...]

    @property
    def outcome(self) -> Outcome:
        """Worst outcome of its checks; see `worst`."""
        return worst(check.outcome for check in self.checks)

    @property
    def deciding_checks(self) -> tuple[LimitCheck, ...]:
        """The checks that gave the outcome."""
        return tuple(check for check in self.checks if check.outcome == self.outcome)

    @property
    def groups(self) -> str:
        """Both groups; one name where effectiveness is judged over all documents."""
        return self.a if self.a == self.b else f"{self.a} | {self.b}"

    def derived(self) -> dict[str, Any]:
        return {"outcome": self.outcome}


@dataclass(frozen=True, eq=False)
class Gate(
    Result, format="ranktilt-gate", version=1, noun="a gate's report", command="ranktilt gate"
):
    """What `gate` found; immutable."""

    spec: Mapping[str, Any]
    """Options of the gate, and the command behind the audit."""
    rows: tuple[GateRow, ...]
    """Rows, one for each run, measure and pair of groups."""
    notes: tuple[Coded[Note], ...]
    """What a reader should know."""

    @property
    def outcome(self) -> Outcome:
        """Worst outcome of all rows; see `worst`."""
        return worst(row.outcome for row in self.rows)

    @property
    def exit_code(self) -> int:
        """0 level or within the limit, 1 tilted, 3 inconclusive (0 where inconclusive passes)."""
        code = EXIT[self.outcome]
        return 0 if code == EXIT["inconclusive"] and self.passes_inconclusive else code

    @property
    def passes_inconclusive(self) -> bool:
        """Whether an inconclusive outcome lets a build go on."""
        return bool(self.spec["inconclusive"] == "pass")

    def derived(self) -> dict[str, Any]:
        return {"outcome": self.outcome, "exit_code": self.exit_code}


@names_files
def gate(
    audit: Audit | SourceAudits,
    *,
    max_tilt: Margin | None = None,
    measures: Iterable[str | Estimand] | None = None,
    runs: Iterable[str] | None = None,
    pairs: Iterable[Pair] | None = None,
    baseline: Audit | SourceAudits | None = None,
    min_effect: float = 0.0,
    max_loss: float | None = None,
    max_left_out: float | None = None,
    inconclusive: str = "fail",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Gate:
    """Judge an audit by fixed limits, and by the rule of its own verdicts.

    The answer is checked against `max_tilt`. Where its 95 % interval lies within `max_tilt` of its
    neutral value, ends included, it is *level*, or *within* the limit if a side is shown to be
    favoured all the same. It is *tilted* if a side is shown to be favoured, and the interval lies
    wholly beyond either limit; else *inconclusive*.

    The growth ``|Δ new| − |Δ old|`` since `baseline` (distances from the neutral values) is checked
    against `min_effect`. It is resampled on the queries that both hold. It is *tilted* if the
    interval lies wholly above `min_effect`, so that a larger growth is shown; *level* if no part of
    it lies above, so that one is excluded; else *inconclusive*. At `min_effect` 0 only an unchanged
    ranking or a tilt that shrank for sure is level; to show "no worse than before", allow some
    points.

    The change of effectiveness over all documents since `baseline` is checked against `max_loss`.
    It is *level* if its interval lies wholly above ``−max_loss``, so that a greater loss is
    excluded; *tilted* if it lies wholly below, so that one is shown; else *inconclusive*.

    The worst outcome of all checks counts; an undefined tilt or growth is inconclusive.

    Parameters
    ----------
    audit : Audit or SourceAudits
        With groups; of several sources each is judged by itself.
    max_tilt : float, str or None, optional
        Limit in points of percent, at least 0 and below 200, or with the unit of another estimand
        (``"2 ranks"``). None: 5 points, or no limit where a baseline is given.
    measures, runs, pairs : iterable, optional
        What must pass: measures (by their Relative Δ) and other estimands of the audit; by default
        its primary question, every run and every pair of groups.
    baseline : Audit, SourceAudits or None, optional
        An earlier audit that holds the same runs (or one run, as this one does), measures and
        pairs.
    min_effect : float, optional
        Growth in points that is allowed, at least 0.
    max_loss : float or None, optional
        Loss of effectiveness in points that is allowed, at least 0, on the measures of `measures`,
        or else the one that the audit prints first. None: effectiveness is not asked about.
    max_left_out : float or None, optional
        Percent of all queries that only one of audit and baseline may hold: they are left out of
        the growth and noted; more are refused. None: 10.
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.
    resamples, seed : int, optional
        Of the growth's bootstrap; the tilt's interval is the audit's own.
    """
    if baseline is not None and type(baseline) is not type(audit):
        raise UserError("audit and baseline: one is of several sources, the other of one audit")
    audits = {"": audit} if isinstance(audit, Audit) else _chosen_sources(audit, pairs)
    limits = Limits(
        max_tilt=None if max_tilt is None else read_margin(max_tilt, "--max-tilt"),
        min_effect=min_effect,
        max_loss=max_loss,
        max_left_out=max_left_out,
        has_baseline=baseline is not None,
    )
    limits.check()
    if inconclusive not in POLICIES:
        raise unknown("policy for inconclusive", inconclusive, POLICIES)
    check_resamples(resamples)
    rows: list[GateRow] = []
    notes: list[Note] = []
    for source, audited in audits.items():
        earlier = baseline.audit_of(source) if isinstance(baseline, SourceAudits) else baseline
        if max_loss is not None and not audited.measures:
            raise UserError("--max-loss needs effectiveness, and nothing was judged in this audit")
        requirements = Requirements.from_names(
            audited, measures=measures, runs=runs, pairs=None if source else pairs
        )
        source_rows, source_notes = _judge(
            audited, earlier, requirements, limits, resamples=resamples, seed=seed
        )
        rows += source_rows
        notes += source_notes
    if not isinstance(audit, Audit):
        rows.sort(key=lambda row: audit.runs.index(row.run))
    spec = {
        "max_tilt": limits.tilt,
        "baseline": baseline is not None,
        "min_effect": min_effect,
        "max_loss": max_loss,
        "inconclusive": inconclusive,
        "resamples": resamples,
        "seed": seed,
        "audit": audit.spec.get("command"),
    }
    distinct_notes = dict.fromkeys([*notes, *_growth_notes(spec, rows)])
    return Gate(spec=spec, rows=tuple(rows), notes=tuple(distinct_notes))


def _chosen_sources(audits: SourceAudits, pairs: Iterable[Pair] | None) -> dict[str, Audit]:
    """Return the audits of all sources, or of those that pairs compare with the reference."""
    known = {compared.source: {audits.reference, compared.source} for compared in audits.sources}
    if pairs is None:
        return {source: audits.audit_of(source) for source in known}
    chosen = {}
    for pair in pairs:
        source = next((source for source, sides in known.items() if set(pair) == sides), None)
        if source is None:
            names = [f"{audits.reference},{source}" for source in known]
            raise unknown("pair of groups", ",".join(pair), names)
        chosen[source] = audits.audit_of(source)
    return chosen


def _growth_notes(spec: Mapping[str, Any], rows: Sequence[GateRow]) -> list[Note]:
    checks = itertools.chain.from_iterable(row.checks for row in rows)
    count = sum(check.name == "growth" for check in checks)
    if not spec["baseline"] or count < 2:
        return []
    return [GrowthsJudgedAlone(comparisons=count)]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a gate allows; see `gate`."""

    max_tilt: Margin | None
    min_effect: float
    max_loss: float | None
    max_left_out: float | None
    has_baseline: bool

    @property
    def tilt(self) -> Margin | None:
        """Largest tilt that is allowed; None where only a growth or a loss is judged."""
        if self.max_tilt is None and not self.has_baseline:
            return DEFAULT_MARGIN
        return self.max_tilt

    def check(self) -> None:
        """Refuse limits that are out of range, or that need a baseline."""
        if not 0 <= self.min_effect < math.inf:
            raise UserError(
                f"--min-effect: expected a number of points of at least 0, got {self.min_effect:g}"
            )
        if isinstance(self.max_tilt, float | int) and self.max_tilt >= MOST:
            raise UserError(
                f"--max-tilt: expected less than {MOST:g}, the most Relative Δ can be; "
                f"got {self.max_tilt:g}"
            )
        if self.max_loss is not None and not 0 <= self.max_loss < 100:
            raise UserError(
                f"--max-loss: expected a number of points from 0 to 100, got {self.max_loss:g}"
            )
        needs_baseline = {
            "--min-effect": self.min_effect > 0,
            "--max-left-out": self.max_left_out is not None,
            "--max-loss": self.max_loss is not None,
        }
        for option, is_used in needs_baseline.items():
            if is_used and not self.has_baseline:
                raise UserError(f"{option} needs a baseline: --baseline OLD.json")


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """What must pass a gate."""

    effects: tuple[Effect, ...]
    """Answers of the audit: by run, pair and question."""
    loss_measures: frozenset[str]
    """Notations of the measures on which a loss is judged."""

    @classmethod
    def from_names(
        cls,
        audit: Audit,
        *,
        measures: Iterable[str | Estimand] | None,
        runs: Iterable[str] | None,
        pairs: Iterable[Pair] | None,
    ) -> Requirements:
        """Look up what the caller names; see `gate`."""
        questions = None
        if measures is not None:
            questions = [repr(estimand(measure)) for measure in measures]
        effects = _required_effects(audit, questions, runs, pairs)
        known = {repr(measure) for measure in audit.measures}
        loss_measures = frozenset(questions or ()) & known
        if not loss_measures and known:
            # A loss is judged on the measure that the audit prints first.
            loss_measures = frozenset([repr(audit.primary_measure)])
        return cls(effects=tuple(effects), loss_measures=loss_measures)


_EffectKey = tuple[str, str, str, str]
"""Run, measure, and both groups."""


def _key(effect: Effect) -> _EffectKey:
    return effect.run, effect.measure, effect.a, effect.b


def _judge(
    audit: Audit,
    baseline: Audit | None,
    requirements: Requirements,
    limits: Limits,
    *,
    resamples: int,
    seed: int,
) -> tuple[list[GateRow], list[Note]]:
    """Judge one audit; return its rows and notes."""
    effects, limit = requirements.effects, limits.tilt
    if limit is not None:
        for question in dict.fromkeys(effect.estimand for effect in effects):
            require_unit(question, limit, "--max-tilt")
    checks_of = {
        _key(effect): [] if limit is None else [check_tilt(effect, limit)] for effect in effects
    }
    warnings = warnings_of(audit.notes)
    if baseline is None:
        rows = [effect_gate(effect, *checks_of[_key(effect)]) for effect in effects]
        return rows, [*warnings, *_few_queries(effects, {}, warnings=warnings)]

    max_left_out = MAX_LEFT_OUT if limits.max_left_out is None else limits.max_left_out
    matched = match(audit, baseline, max_left_out=max_left_out)
    changes = _changes(matched, resamples=resamples, seed=seed)
    _refuse_lacking(effects, changes)
    is_on_common_queries = matched.queries_left_out > 0
    rows = []
    for effect in effects:
        change = with_less_variation(changes[_key(effect)], audit, baseline)
        growth = check_growth(change, limits.min_effect, is_on_common_queries=is_on_common_queries)
        rows.append(effect_gate(effect, *checks_of[_key(effect)], growth))
    if limits.max_loss is not None:
        tasks = change_tasks(matched, [(ALL, ALL)])
        runs = {effect.run for effect in effects}
        for change in mean_changes(tasks, resamples=resamples, seed=seed):
            if change.run in runs and change.measure in requirements.loss_measures:
                loss = check_loss(
                    change, limits.max_loss, is_on_common_queries=is_on_common_queries
                )
                rows.append(effect_gate(change, loss))
    before = [note for note in baseline.notes if note not in warnings]
    warnings = (*warnings, *notes_within(warnings_of(before), "baseline", "baseline"))
    few_queries = _few_queries(effects, changes, warnings=warnings)
    return rows, [*warnings, *matched.notes, *few_queries]


def _changes(matched: Match, *, resamples: int, seed: int) -> dict[_EffectKey, Change]:
    """Return how answers changed since the baseline, seen from either side."""
    tasks = [*change_tasks(matched, matched.pairs), *estimand_tasks(matched)]
    changes: dict[_EffectKey, Change] = {}
    for change in contrast_changes(tasks, resamples=resamples, seed=seed):
        turned = change.swapped()
        changes[_key(turned)] = turned
        changes[_key(change)] = change
    return changes


def effect_gate(effect: Effect, *checks: LimitCheck) -> GateRow:
    """Return the row of an effect that was checked."""
    return GateRow(
        run=effect.run,
        measure=effect.measure,
        a=effect.a,
        b=effect.b,
        queries=effect.queries,
        checks=checks,
    )


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst outcome: tilted, then inconclusive, then within the limit, then level."""
    return min(outcomes, key=_WORST.index)


def worst_first(rows: Iterable[GateRow]) -> list[GateRow]:
    """Put what fails before what passes; rows of one outcome stay in their order."""
    return sorted(rows, key=lambda row: _WORST.index(row.outcome))


def in_percent(effect: Effect) -> float:
    """Return the factor from an effect's numbers to points of percent; NaN in another unit."""
    return 1 / effect.estimand.point


def _printed(effect: Effect) -> float:
    """Return the factor from an effect's numbers to the printed ones: points, or its own unit."""
    has_points = not math.isnan(effect.estimand.point)
    return in_percent(effect) if has_points else effect.estimand.scale


def check_tilt(tilt: Effect, limit: Margin) -> LimitCheck:
    """Check an effect against ±`limit` around its neutral value, by the rule of verdicts.

    See `Effect.extent`.
    """
    half, scale = half_width(tilt.estimand, limit), _printed(tilt)
    return LimitCheck(
        name="tilt",
        outcome=_tilt_outcome(tilt, limit),
        value=scale * tilt.value,
        low=scale * tilt.low,
        high=scale * tilt.high,
        floor=scale * (tilt.neutral - half),
        ceiling=scale * (tilt.neutral + half),
        asked_limit=limit,
        checked_tilt=tilt,
    )


def _tilt_outcome(tilt: Effect, limit: Margin) -> Outcome:
    is_defined = not math.isnan(tilt.value) and not math.isnan(tilt.neutral)
    if not is_defined or not tilt.has_interval or not tilt.testable:
        return "inconclusive"
    extent = tilt.extent(limit)
    if extent == "within" and tilt.can_be_level:
        return "within" if tilt.is_shown else "level"
    return "tilted" if extent == "beyond" and tilt.is_shown else "inconclusive"


def check_growth(change: Change, least: float, *, is_on_common_queries: bool = False) -> LimitCheck:
    """Check the interval of ``|Δ new| − |Δ old|`` against the growth that is allowed."""
    scale = _printed(change)
    return LimitCheck(
        name="growth",
        outcome=_growth_outcome(change, least),
        value=scale * change.growth,
        low=scale * change.growth_low,
        high=scale * change.growth_high,
        floor=-math.inf,
        ceiling=least,
        queries=change.queries,
        asked_limit=least,
        checked_change=change,
        is_on_common_queries=is_on_common_queries,
    )


def _growth_outcome(change: Change, least: float) -> Outcome:
    most = half_width(change.estimand, least) if least else 0.0
    if math.isnan(change.growth) or not change.testable:
        return "inconclusive"
    if change.growth_low > most:
        return "tilted"
    if change.growth_high <= most and change.can_be_level:
        return "level"
    return "inconclusive"


def check_loss(
    change: Change, max_loss: float, *, is_on_common_queries: bool = False
) -> LimitCheck:
    """Check the interval of a change of effectiveness against the loss that is allowed."""
    outcome: Outcome = "inconclusive"
    if change.testable and not math.isnan(change.value):
        if change.low >= -max_loss:
            outcome = "level"
        elif change.high < -max_loss:
            outcome = "tilted"
    return LimitCheck(
        name="loss",
        outcome=outcome,
        value=change.value,
        low=change.low,
        high=change.high,
        floor=-max_loss,
        ceiling=math.inf,
        queries=change.queries,
        asked_limit=max_loss,
        checked_change=change,
        is_on_common_queries=is_on_common_queries,
    )


def _required_effects(
    audit: Audit,
    questions: Sequence[str] | None,
    runs: Iterable[str] | None,
    pairs: Iterable[Pair] | None,
) -> list[Effect]:
    """Return the answers of an audit that must pass: by run, pair and question."""
    answers = _answers(audit)
    if questions is None:
        questions = [repr(audit.primary)]
    runs = list(audit.runs if runs is None else runs)
    if pairs is None:
        pairs = list(audit.pairs)
    else:  # Asia|Europe is Europe|Asia
        pairs = [
            (name_among(a, audit.groups) or a, name_among(b, audit.groups) or b) for a, b in pairs
        ]
    both_ways = [*audit.pairs, *(pair[::-1] for pair in audit.pairs)]
    _refuse_unknown("run", runs, audit.runs)
    _refuse_unknown("measure", questions, dict.fromkeys(measure for _, measure, *_ in answers))
    _refuse_unknown("pair of groups", map(",".join, pairs), list(map(",".join, both_ways)))
    effects: dict[_EffectKey, Effect] = {}
    for run, (a, b), question in itertools.product(runs, [*pairs, (ALL, ALL)], questions):
        key = run, question, a, b
        if key in answers:
            effects[key] = answers[key]
    if not effects:
        raise UserError(
            "nothing to gate: the audit has no answer for these runs and pairs, in this order"
        )
    return list(effects.values())


def _answers(audit: Audit) -> dict[_EffectKey, Effect]:
    """Return the answers that can be judged, seen from either side."""
    effects = [effect for effect in (*audit.card, *audit.tilts) if not effect.estimand.descriptive]
    if not effects:
        raise UserError("nothing to gate: this audit compares no groups; audit with --by COLUMN")
    answers = {_key(effect): effect for effect in effects}
    for effect in list(answers.values()):
        if not effect.estimand.directed:
            turned = effect.swapped()
            answers[_key(turned)] = turned
    return answers


def _refuse_unknown(noun: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown(noun, name, known)


def _refuse_lacking(effects: Sequence[Effect], changes: Mapping[_EffectKey, Change]) -> None:
    """Refuse answers that must pass and have no growth.

    The baseline lacks them, or they are not stored query by query.
    """
    for effect in effects:
        if _key(effect) not in changes:
            known = [f"{run} {measure} {a},{b}" for run, measure, a, b in changes]
            raise UserError(
                f"the growth of {effect.run} {effect.measure} {effect.a},{effect.b} is not known: "
                "the baseline lacks it, or audits hold no answer of it for each query; "
                f"known: {', '.join(dict.fromkeys(known))}"
            )


def _few_queries(
    effects: Sequence[Effect], changes: Mapping[_EffectKey, Change], *, warnings: Sequence[Note]
) -> list[Note]:
    """Note where answers rest on few queries, unless the audit warned of it."""
    compared = [changes[_key(effect)] for effect in effects] if changes else []
    fewest = min(effect.queries for effect in (*effects, *compared))
    # An audit by relevance has said it of each pair of groups.
    has_warned = any(
        isinstance(note, FewQueries) and (note.queries < FEWEST_ROWS) == (fewest < FEWEST_ROWS)
        for note in warnings
    )
    if fewest < FEW_QUERIES and not has_warned:
        return [FewQueriesOfGroups(queries=fewest)]
    return []

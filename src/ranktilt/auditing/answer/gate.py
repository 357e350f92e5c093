"""A gate for continuous integration: within a limit, tilted or inconclusive.

Its reasons are put in words in `reporting/sentences/gate.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ranktilt.auditing.comparison.less_variation import with_less_variation
from ranktilt.auditing.comparison.match import (
    MAX_LEFT_OUT,
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
    """One limit held against one comparison: whether the tilt is small, or has not grown."""

    name: Literal["tilt", "growth", "loss", "tau"]
    outcome: Outcome
    """``within``: a side is shown to be favoured, but within the limit."""
    value: float
    """The answer, or the growth of its distance from level, in points or its own unit; the change of
    effectiveness in points; or τ-b."""
    low: float
    high: float
    """95 % bootstrap interval."""
    floor: float
    ceiling: float
    """What is allowed, both ends included: `floor` is −inf for the growth, `ceiling` is inf for the
    change of effectiveness and for τ-b."""
    queries: int | None = None
    """Queries that it rests on; None where those of its row."""
    asked_limit: Margin = 0.0
    """Largest tilt either way, largest growth, or largest loss, as it was asked for."""
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
        """The worst of its checks: tilted before inconclusive before within the limit before level."""
        return worst(c.outcome for c in self.checks)

    @property
    def deciding_checks(self) -> tuple[LimitCheck, ...]:
        """The checks that gave the outcome."""
        return tuple(check for check in self.checks if check.outcome == self.outcome)

    @property
    def groups(self) -> str:
        """What is compared; one name where effectiveness is judged over all documents."""
        return self.a if self.a == self.b else f"{self.a} | {self.b}"

    def derived(self) -> dict[str, Any]:
        return {"outcome": self.outcome}


@dataclass(frozen=True, eq=False)
class Gate(
    Result, format="ranktilt-gate", version=1, noun="a gate's report", command="ranktilt gate"
):
    """What `gate` found; immutable."""

    spec: Mapping[str, Any]
    """Its options, and the command behind the audit."""
    rows: tuple[GateRow, ...]
    """One a run, measure and pair of groups."""
    notes: tuple[Coded[Note], ...]
    """What a reader should know."""

    @property
    def outcome(self) -> Outcome:
        """The worst of all rows: tilted before inconclusive before within the limit before level."""
        return worst(r.outcome for r in self.rows)

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

    The answer, against `max_tilt`: where its 95 % interval lies within `max_tilt` of its level
    value, ends included, it is *level*, or *within* the limit if a side is shown to be favoured all
    the same; *tilted* if a side is, and the interval lies wholly beyond either limit; else
    *inconclusive*.

    The growth ``|Δ new| − |Δ old|`` since `baseline` (distances from the level values), resampled on the queries that
    both hold, against `min_effect`: *tilted* if the interval lies wholly above it, so that a growth beyond it is shown;
    *level* if no part of it lies above, so that one is excluded; else *inconclusive*. At `min_effect` 0 only an
    unchanged ranking or a tilt that shrank for sure is level; to show "no worse than before", allow some points.

    The change of effectiveness over all documents since `baseline`, against `max_loss`: *level* if
    its interval lies wholly above ``−max_loss``, so that a greater loss is excluded; *tilted* if it
    lies wholly below, so that one is shown; else *inconclusive*.

    The worst outcome of what is asked counts; an undefined tilt or growth is inconclusive.

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
    decisions = []
    for source, audited in audits.items():
        earlier = baseline.audit_of(source) if isinstance(baseline, SourceAudits) else baseline
        decision = _decide(
            audited,
            max_tilt=max_tilt,
            measures=measures,
            runs=runs,
            pairs=None if source else pairs,
            baseline=earlier,
            min_effect=min_effect,
            max_loss=max_loss,
            max_left_out=max_left_out,
            inconclusive=inconclusive,
            resamples=resamples,
            seed=seed,
        )
        decisions.append(decision)
    rows = [row for decision in decisions for row in decision.rows]
    if not isinstance(audit, Audit):
        rows.sort(key=lambda row: audit.runs.index(row.run))
    notes = dict.fromkeys(note for decision in decisions for note in decision.notes)
    spec = {**decisions[0].spec, "audit": audit.spec.get("command")}
    return Gate(spec, tuple(rows), (*notes, *_growth_notes(spec, rows)))


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
    count = sum(check.name == "growth" for row in rows for check in row.checks)
    if not spec["baseline"] or count < 2:
        return []
    return [GrowthsJudgedAlone(comparisons=count)]


def _decide(
    audit: Audit,
    *,
    max_tilt: Margin | None,
    measures: Iterable[str | Estimand] | None,
    runs: Iterable[str] | None,
    pairs: Iterable[Pair] | None,
    baseline: Audit | None,
    min_effect: float,
    max_loss: float | None,
    max_left_out: float | None,
    inconclusive: str,
    resamples: int,
    seed: int,
) -> Gate:
    """Judge one audit; see `gate`."""
    max_tilt = None if max_tilt is None else read_margin(max_tilt, "--max-tilt")
    _check_options(max_tilt, min_effect, baseline is not None, inconclusive)
    if max_left_out is not None and baseline is None:
        raise UserError("--max-left-out needs a baseline: --baseline OLD.json")
    _check_loss(max_loss, audit, has_baseline=baseline is not None)
    check_resamples(resamples)
    limit = DEFAULT_MARGIN if max_tilt is None and baseline is None else max_tilt
    chosen = _chosen(audit, measures, runs, pairs)
    for of in dict.fromkeys(e.estimand for e in chosen):
        if limit is not None:
            require_unit(of, limit, "--max-tilt")
    changes: dict[tuple[str, ...], Change] = {}
    notes: tuple[Note, ...] = ()
    left_out = 0
    if baseline is not None:
        found = match(
            audit, baseline, max_left_out=MAX_LEFT_OUT if max_left_out is None else max_left_out
        )
        left_out = found.queries_left_out
        notes = found.notes
        tasks = [*change_tasks(found, found.pairs), *estimand_tasks(found)]
        grown = contrast_changes(tasks, resamples=resamples, seed=seed)
        changes = {
            (one.run, one.measure, one.a, one.b): one
            for own in grown
            for one in (own.swapped(), own)
        }
        _refuse_lacking(chosen, changes)
    rows = []
    for e in chosen:
        checks = [] if limit is None else [check_tilt(e, limit)]
        if baseline is not None:
            change = with_less_variation(changes[e.run, e.measure, e.a, e.b], audit, baseline)
            checks.append(check_growth(change, min_effect, is_on_common_queries=left_out > 0))
        rows.append(effect_gate(e, *checks))
    if max_loss is not None and baseline is not None:
        tasks = change_tasks(found, [(ALL, ALL)])
        names = _loss_measures(audit, measures)
        kept = {e.run for e in chosen}
        for change in mean_changes(tasks, resamples=resamples, seed=seed):
            if change.run in kept and change.measure in names:
                check = check_loss(change, max_loss, is_on_common_queries=left_out > 0)
                rows.append(effect_gate(change, check))
    spec = {
        "max_tilt": limit,
        "baseline": baseline is not None,
        "min_effect": min_effect,
        "max_loss": max_loss,
        "inconclusive": inconclusive,
        "resamples": resamples,
        "seed": seed,
        "audit": audit.spec.get("command"),
    }
    warned = warnings_of(audit.notes)
    before = [] if baseline is None else [note for note in baseline.notes if note not in warned]
    warned = (*warned, *notes_within(warnings_of(before), "baseline", "baseline"))
    return Gate(spec, tuple(rows), (*warned, *notes, *_notes(chosen, changes, warned=warned)))


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
    """Return the outcome that counts: tilted before inconclusive before within the limit before level."""
    return min(outcomes, key=_WORST.index)


def worst_first(rows: Iterable[GateRow]) -> list[GateRow]:
    """Put what fails before what passes; rows of one outcome stay in their order."""
    return sorted(rows, key=lambda row: _WORST.index(row.outcome))


def in_percent(e: Effect) -> float:
    """What makes an effect's numbers points of percent; NaN where it has another unit."""
    return 1 / e.estimand.point


def _printed(e: Effect) -> float:
    """What makes an effect's numbers those that are printed: points, or its own unit."""
    return e.estimand.scale if math.isnan(e.estimand.point) else in_percent(e)


def check_tilt(tilt: Effect, limit: Margin) -> LimitCheck:
    """Hold an effect against ±`limit` around its level value, by the rule of verdicts: see `Effect.extent`."""
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
        return "within" if tilt.shown else "level"
    return "tilted" if extent == "beyond" and tilt.shown else "inconclusive"


def check_growth(change: Change, least: float, *, is_on_common_queries: bool = False) -> LimitCheck:
    """Hold the interval of ``|Δ new| − |Δ old|`` against the growth that is allowed."""
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
    """Hold the interval of a change of effectiveness against the loss that is allowed."""
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


def _check_loss(max_loss: float | None, audit: Audit, *, has_baseline: bool) -> None:
    if max_loss is None:
        return
    if not 0 <= max_loss < 100:
        raise UserError(f"--max-loss: expected a number of points from 0 to 100, got {max_loss:g}")
    if not has_baseline:
        raise UserError("--max-loss needs a baseline: --baseline OLD.json")
    if not audit.measures:
        raise UserError("--max-loss needs effectiveness, and nothing was judged in this audit")


def _loss_measures(audit: Audit, measures: Iterable[str | Estimand] | None) -> set[str]:
    """Return the measures on which a loss is judged: those named, or the one printed first."""
    known = {repr(measure) for measure in audit.measures}
    named = {repr(estimand(measure)) for measure in measures or ()} & known
    return named or {repr(audit.primary_measure)}


def _check_options(
    max_tilt: Margin | None, min_effect: float, based: bool, inconclusive: str
) -> None:
    if not 0 <= min_effect < math.inf:
        raise UserError(
            f"--min-effect: expected a number of points of at least 0, got {min_effect:g}"
        )
    if not isinstance(max_tilt, str) and max_tilt is not None and max_tilt >= MOST:
        raise UserError(
            f"--max-tilt: expected less than {MOST:g}, the most Relative Δ can be; got {max_tilt:g}"
        )
    if min_effect and not based:
        raise UserError("--min-effect needs a baseline: --baseline OLD.json")
    if inconclusive not in POLICIES:
        raise unknown("policy for inconclusive", inconclusive, POLICIES)


def _chosen(
    audit: Audit,
    measures: Iterable[str | Estimand] | None,
    runs: Iterable[str] | None,
    pairs: Iterable[Pair] | None,
) -> list[Effect]:
    """The answers of an audit that must pass: by run, pair and question."""
    every = {
        (e.run, e.measure, e.a, e.b): e
        for e in (*audit.card, *audit.tilts)
        if not e.estimand.descriptive
    }
    if not every:
        raise UserError("nothing to gate: this audit compares no groups; audit with --by COLUMN")
    every |= {
        (run, measure, b, a): e.swapped()
        for (run, measure, a, b), e in every.items()
        if not e.estimand.directed
    }
    wanted = [repr(audit.primary)] if measures is None else [repr(estimand(m)) for m in measures]
    names = list(audit.runs if runs is None else runs)
    sides = list(audit.pairs)
    if pairs is not None:  # Asia|Europe is Europe|Asia
        sides = [
            (name_among(a, audit.groups) or a, name_among(b, audit.groups) or b) for a, b in pairs
        ]
    for noun, given, there in (
        ("run", names, audit.runs),
        ("measure", wanted, dict.fromkeys(measure for _, measure, *_ in every)),
        (
            "pair of groups",
            [",".join(p) for p in sides],
            [",".join(q) for p in audit.pairs for q in (p, p[::-1])],
        ),
    ):
        for name in given:
            if name not in there:
                raise unknown(noun, name, there)
    order = [(run, m, *pair) for run in names for pair in [*sides, (ALL, ALL)] for m in wanted]
    found = [every[place] for place in dict.fromkeys(order) if place in every]
    if not found:
        raise UserError(
            "nothing to gate: the audit has no answer for these runs and pairs, in this order"
        )
    return found


def _refuse_lacking(chosen: Sequence[Effect], changes: Mapping[tuple[str, ...], Change]) -> None:
    """Refuse what must pass and has no growth: the baseline lacks it, or it is not held query by query."""
    for e in chosen:
        if (e.run, e.measure, e.a, e.b) not in changes:
            there = ", ".join(
                dict.fromkeys(f"{run} {measure} {a},{b}" for run, measure, a, b in changes)
            )
            raise UserError(
                f"the growth of {e.run} {e.measure} {e.a},{e.b} is not known: the baseline lacks it, or audits hold no "
                f"answer of it for each query; known: {there}"
            )


def _notes(
    effects: Sequence[Effect], changes: Mapping[tuple[str, ...], Change], *, warned: Sequence[Note]
) -> Iterator[Note]:
    compared = [changes[e.run, e.measure, e.a, e.b].queries for e in effects] if changes else []
    fewest = min([*(e.queries for e in effects), *compared])
    # An audit by relevance has said it of each pair of groups.
    has_warned = any(
        isinstance(note, FewQueries) and (note.queries < FEWEST_ROWS) == (fewest < FEWEST_ROWS)
        for note in warned
    )
    if fewest < FEW_QUERIES and not has_warned:
        yield FewQueriesOfGroups(queries=fewest)

"""A gate for continuous integration: level, tilted or inconclusive, one outcome a comparison and one for all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.comparison.match import Match, change_tasks, match
from ranktilt.auditing.effects import FEW_QUERIES, Change, Effect
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.inference import contrast_changes
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.result import Audit
from ranktilt.auditing.verdict import bounds, too_few
from ranktilt.datasets.group_names import name_among
from ranktilt.errors import UserError, counted, unknown
from ranktilt.io.artifact import Result
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.printing import digits_apart, signed
from ranktilt.statistics.bootstrap import RESAMPLES

Outcome = Literal["level", "tilted", "inconclusive"]
MAX_TILT = 15.0
MOST = 200.0
"""The most Relative Δ can be, either way: no interval lies beyond such a limit."""
POLICIES = ("fail", "pass")
EXIT: dict[Outcome, int] = {"level": 0, "tilted": 1, "inconclusive": 3}
_COST = {"level": "within", "tilted": "beyond"}
_WORST: tuple[Outcome, ...] = ("tilted", "inconclusive", "level")


@dataclass(frozen=True)
class LimitCheck:
    """One question put to one comparison: whether the tilt is small, or has not grown."""

    name: Literal["tilt", "growth", "cost"]
    outcome: Outcome
    value: float
    """Relative Δ in percent, the growth of its distance from level in points, or the change of effectiveness."""
    low: float
    high: float
    """95 % bootstrap interval."""
    floor: float
    ceiling: float
    """What is allowed, both ends included; `floor` is −inf for the growth, `ceiling` inf for the cost."""
    reason: str
    """In one line."""

    @property
    def word(self) -> str:
        """The outcome in a word: a cost is within its limit, or beyond it."""
        return _COST.get(self.outcome, self.outcome) if self.name == "cost" else self.outcome


@dataclass(frozen=True)
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
        """The worst of its checks: tilted before inconclusive before level."""
        return worst(c.outcome for c in self.checks)

    @property
    def word(self) -> str:
        """The outcome in a word, as the check says it that gave it."""
        return next(c.word for c in self.checks if c.outcome == self.outcome)

    @property
    def groups(self) -> str:
        """What is compared, or the group on which a cost is judged."""
        return self.a if self.a == self.b else f"{self.a} | {self.b}"

    @property
    def reason(self) -> str:
        """Why, in one line: the reasons of the checks that gave the outcome."""
        return "; ".join(c.reason for c in self.checks if c.outcome == self.outcome)

    def derived(self) -> dict[str, Any]:
        """What a file tells besides the fields."""
        return {"outcome": self.outcome, "reason": self.reason}


@dataclass(frozen=True, eq=False)
class Gate(Result, format="ranktilt-gate", version=1, noun="a gate's report", command="ranktilt gate"):
    """What `gate` found; immutable.

    Parameters
    ----------
    spec : mapping
        Its options, and the command behind the audit.
    rows : tuple of GateRow
        One a run, measure and pair of groups.
    notes : tuple of str
        What a reader should know.
    """

    spec: Mapping[str, Any]
    rows: tuple[GateRow, ...]
    notes: tuple[str, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst of all rows: tilted before inconclusive before level."""
        return worst(r.outcome for r in self.rows)

    @property
    def exit_code(self) -> int:
        """0 level, 1 tilted, 3 inconclusive (0 where inconclusive passes)."""
        code = EXIT[self.outcome]
        return 0 if code == EXIT["inconclusive"] and self.passes_inconclusive else code

    @property
    def passes_inconclusive(self) -> bool:
        """Whether an inconclusive outcome lets a build go on."""
        return bool(self.spec["inconclusive"] == "pass")

    @property
    def headline(self) -> str:
        """The outcome in one line: its word, how many rows it concerns, and what was asked."""
        hit = sum(r.outcome == self.outcome for r in self.rows)
        share = f": {hit} of {len(self.rows)} comparisons" if len(self.rows) > 1 else ""
        passed = "; passes by --inconclusive pass" if self.outcome == "inconclusive" and not self.exit_code else ""
        return f"{self.outcome}{share} (asked: {' and '.join(self.questions)}{passed})"

    @property
    def questions(self) -> list[str]:
        """What was asked of every comparison, in words."""
        limit, least = self.spec["max_tilt"], self.spec["min_effect"]
        if "budget" in self.spec:
            loss = f"{points(self.spec['budget'])} of {self.spec['effectiveness']}"
            return [f"an intervention within ±{limit:g} points of level", f"a loss of at most {loss}"]
        asked = [] if limit is None else [f"tilt within ±{limit:g} points of level"]
        grown = "no growth" if least == 0 else f"growth of at most {least:g} points"
        return [*asked, f"{grown} since the baseline"] if self.spec["baseline"] else asked

    def derived(self) -> dict[str, Any]:
        """The outcome, for those who read the file."""
        return {"outcome": self.outcome, "exit_code": self.exit_code, "headline": self.headline}


def gate(
    audit: Audit,
    *,
    max_tilt: float | None = None,
    measures: Iterable[str | Measure] | None = None,
    runs: Iterable[str] | None = None,
    pairs: Iterable[Pair] | None = None,
    baseline: Audit | None = None,
    min_effect: float = 0.0,
    inconclusive: str = "fail",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Gate:
    """Judge an audit by fixed limits; every comparison by its own 95 % interval, without correction for their number.

    The tilt, against `max_tilt`: *level* if the interval of Relative Δ lies inside ±`max_tilt` around its level value
    (0 for twins, the median of random labels otherwise), ends included; *tilted* if it lies wholly beyond either
    limit; else *inconclusive*.

    The growth |Δnew| − |Δold| since `baseline` (distances from the level values), resampled on the same queries,
    against `min_effect`: *tilted* if the interval lies wholly above it, so that a growth beyond it is shown; *level*
    if no part of it lies above, so that one is excluded; else *inconclusive*. At `min_effect` 0 only an unchanged
    ranking or a tilt that shrank for sure is level; to show "no worse than before", allow some points.

    Where both are asked, the worse outcome counts.

    Parameters
    ----------
    audit : Audit
        With groups.
    max_tilt : float or None, optional
        Limit in percent, at least 0 and below 200. None: 15, or no limit where a baseline is given.
    measures, runs, pairs : iterable, optional
        What must pass; by default the primary measure, every run and every pair of groups.
    baseline : Audit or None, optional
        An earlier audit over the same queries that holds the same runs (or one run, as this one does), measures and
        pairs.
    min_effect : float, optional
        Growth in points that is allowed, at least 0.
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.
    resamples, seed : int, optional
        Of the growth's bootstrap; the tilt's interval is the audit's own.

    Returns
    -------
    Gate
        Its rows and exit code. An undefined tilt or growth is inconclusive.

    Raises
    ------
    UserError
        If the audit has no groups, it or the baseline lacks what is asked for, or the two cannot be compared.
    """
    _check_options(max_tilt, min_effect, baseline is not None, inconclusive)
    check_resamples(resamples)
    limit = MAX_TILT if max_tilt is None and baseline is None else max_tilt
    chosen = _chosen(audit, measures, runs, pairs)
    changes: list[Change] = []
    notes: tuple[str, ...] = ()
    if baseline is not None:
        alone = len(audit.runs) == len(baseline.runs) == 1  # before some of several were chosen
        found = _whole(match(chosen, baseline, alone=alone))
        notes = found.notes
        changes = contrast_changes(change_tasks(found, found.pairs), resamples=resamples, seed=seed, test=False)
    rows = []
    for index, tilt in enumerate(chosen.tilts):
        checks = [] if limit is None else [check_tilt(tilt, limit)]
        checks += [check_growth(changes[index], min_effect)] if changes else []
        rows.append(GateRow(tilt.run, tilt.measure, tilt.a, tilt.b, tilt.queries, tuple(checks)))
    spec = {
        "max_tilt": limit,
        "baseline": baseline is not None,
        "min_effect": min_effect,
        "inconclusive": inconclusive,
        "resamples": resamples,
        "seed": seed,
        "audit": audit.spec.get("command"),
    }
    return Gate(spec, tuple(rows), (*notes, *_notes(chosen.tilts)))


def points(share: float) -> str:
    """Print a share in points: ``1 point``."""
    number = f"{100 * share:g}"
    return f"{number} {'point' if number == '1' else 'points'}"


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome that counts: tilted before inconclusive before level."""
    return min(outcomes, key=_WORST.index)


def in_percent(tilt: Effect) -> float:
    """What makes an effect's numbers percent: 1 for Relative Δ, 100 for shares and ratios; NaN for other units."""
    if isinstance(tilt.estimand, RelativeDelta):
        return 1.0
    return 100.0 if tilt.estimand.scale == 100 or tilt.estimand.level == 1 else math.nan


def tilt_name(tilt: Effect) -> str:
    """Name what an effect is one of: Relative Δ, or the estimand."""
    return tilt.estimand.term if isinstance(tilt.estimand, RelativeDelta) else tilt.name


def tilt_numbers(tilt: Effect, *limits: float) -> str:
    """Print an effect with its unit and interval: ``+5.0 % [+1.0, +9.0]``; limits as of `bounds`, in its own unit."""
    of, ends = tilt.estimand, (tilt.low, tilt.high)
    digits = digits_apart([of.scale * end for end in ends], [of.scale * limit for limit in limits], of.digits)
    low, high = (of.amount(end, digits=digits) for end in ends)
    return f"{of.answer(tilt.value)} [{low}, {high}]"


def check_tilt(tilt: Effect, limit: float) -> LimitCheck:
    """Hold the interval of an effect, in percent, against ±`limit` around its level value."""
    scale = in_percent(tilt)
    at, low, high = scale * tilt.level, scale * tilt.low, scale * tilt.high
    floor, ceiling = at - limit, at + limit

    def said(value: float) -> str:
        return tilt.estimand.amount(value / scale)

    around = "" if tilt.twins else f" around the median of random labels ({said(at)})"
    found = f"{tilt_name(tilt)} {tilt_numbers(tilt, floor / scale, ceiling / scale)}"
    outcome: Outcome = "inconclusive"
    if any(math.isnan(v) for v in (tilt.value, low, high, at)):
        reason = f"{tilt_name(tilt)} is undefined: {_why(tilt)}"
    elif few := too_few(replace(tilt, tests=1)):  # each comparison is judged by itself
        reason = f"{few}; {found}"
    elif floor <= low and high <= ceiling:
        outcome, reason = "level", f"{found} lies within ±{limit:g}{around}"
    elif low > ceiling or high < floor:
        side, edge = (tilt.a, ceiling) if low > ceiling else (tilt.b, floor)
        outcome, reason = "tilted", f"toward {side}: {found} lies wholly beyond {said(edge)}{around}"
    else:
        edges = dict.fromkeys(said(edge) for edge in (floor, ceiling) if low <= edge <= high)
        reason = f"{found} reaches across {' and '.join(edges)}{around}: neither within the limit nor wholly beyond"
    return LimitCheck("tilt", outcome, scale * tilt.value, low, high, floor, ceiling, reason)


def check_growth(change: Change, least: float) -> LimitCheck:
    """Hold the interval of |Δnew| − |Δold| against the growth that is allowed."""
    low, high = change.growth_low, change.growth_high
    found = f"growth {signed(change.growth)} points {bounds(low, high, least)} since the baseline"
    moved = f"Relative Δ {signed(change.old)} % before, {signed(change.new)} % now"
    outcome: Outcome = "inconclusive"
    if any(math.isnan(v) for v in (change.growth, low, high)):
        side = "the baseline's" if math.isnan(change.old) else "the new"
        reason = f"growth since the baseline is undefined: {side} Relative Δ is, or its random band"
    elif not change.testable:
        reason = f"{counted(change.votes, 'distinct query is', 'distinct queries are')} too few to test; {found}"
    elif low > least:
        outcome, reason = "tilted", f"{found} lies above {least:g}: {moved}"
    elif high <= least:
        outcome, reason = "level", f"{found} does not exceed {least:g}: {moved}"
    else:
        could = f"{counted(change.queries, 'query', 'queries')} could detect {change.growth_detectable:.1f} points"
        reason = f"{found} reaches across {least:g}, neither shown nor excluded; {could}; {moved}"
    return LimitCheck("growth", outcome, change.growth, low, high, -math.inf, least, reason)


def _why(tilt: Effect) -> str:
    if tilt.queries == 0:
        return f"no query has a relevant document of both {tilt.a} and {tilt.b}"
    if not isinstance(tilt.estimand, RelativeDelta):
        return f"nothing to compare {tilt.a} and {tilt.b} by"
    return f"{tilt.measure} is 0 for both {tilt.a} and {tilt.b}"


def _check_options(max_tilt: float | None, min_effect: float, based: bool, inconclusive: str) -> None:
    for name, value in (("--max-tilt", max_tilt), ("--min-effect", min_effect)):
        if value is not None and not 0 <= value < math.inf:
            raise UserError(f"{name}: expected a number of points of at least 0, got {value:g}")
    if max_tilt is not None and max_tilt >= MOST:
        raise UserError(f"--max-tilt: expected less than {MOST:g}, the most Relative Δ can be; got {max_tilt:g}")
    if min_effect and not based:
        raise UserError("--min-effect is the growth since a baseline that is allowed; name it: --baseline OLD.json")
    if inconclusive not in POLICIES:
        raise unknown("policy for inconclusive", inconclusive, POLICIES)


def _chosen(
    audit: Audit, measures: Iterable[str | Measure] | None, runs: Iterable[str] | None, pairs: Iterable[Pair] | None
) -> Audit:
    """The part of an audit that must pass, as an audit of its own."""
    if not audit.measures:
        raise UserError("nothing to gate: this audit has no measure; without judgments there is no Relative Δ")
    if not audit.tilts:
        raise UserError("nothing to gate: this audit has no groups; audit with --by COLUMN")
    have = [repr(m) for m in audit.measures]
    wanted = [repr(measure(m)) for m in measures] if measures is not None else have[:1]
    names = list(runs) if runs is not None else list(audit.runs)
    held = audit.tilted_pairs
    sides = list(held)
    if pairs is not None:  # Asia|Europe is Europe|Asia
        sides = [(name_among(a, audit.groups) or a, name_among(b, audit.groups) or b) for a, b in pairs]
    for noun, given, there in (
        ("measure", wanted, have),
        ("run", names, audit.runs),
        ("pair of groups", [",".join(p) for p in sides], [",".join(q) for p in held for q in (p, p[::-1])]),
    ):
        if not given:
            raise UserError(f"nothing to gate: no {noun} is named")
        lacked = next((g for g in given if g not in there), None)
        if lacked is not None:
            shown = ", ".join(there[::2] if noun == "pair of groups" else there)
            raise UserError(f"the audit has no {noun} {lacked!r}; it has {shown}")
    return _restricted(audit, list(dict.fromkeys(wanted)), list(dict.fromkeys(names)), list(dict.fromkeys(sides)))


def _restricted(audit: Audit, measures: Sequence[str], runs: Sequence[str], pairs: Sequence[Pair]) -> Audit:
    found = {(t.run, t.a, t.b, t.measure): t for one in audit.tilts for t in (one, one.swapped())}
    rows = [audit.runs.index(r) for r in runs]
    columns = [[repr(m) for m in audit.measures].index(m) for m in measures]
    return replace(
        audit,
        runs=tuple(runs),
        measures=tuple(audit.measures[c] for c in columns),
        values=audit.values[np.ix_(rows, columns)],
        tilts=tuple(found[run, a, b, m] for run in runs for a, b in pairs for m in measures),
    )


def _whole(found: Match) -> Match:
    """Refuse a baseline that lacks something of the audit."""
    audits = (found.new, found.old)
    measures, pairs = (
        [[repr(m) for m in a.measures] for a in audits],
        [[",".join(p) for p in a.tilted_pairs] for a in audits],
    )
    for noun, (wanted, there), kept in (
        ("run", (found.new.runs, found.old.runs), [r.new for r in found.runs]),
        ("measure", measures, found.measures),
        ("pair of groups", pairs, [",".join(p) for p in found.pairs]),
    ):
        lacked = next((w for w in wanted if w not in kept), None)
        if lacked is not None:
            raise UserError(f"the baseline has no {noun} {lacked!r}; it has {', '.join(there)}")
    return found


def _notes(tilts: Sequence[Effect]) -> Iterator[str]:
    fewest = min(t.queries for t in tilts)
    if fewest < FEW_QUERIES:
        yield (
            f"warning: only {counted(fewest, 'query compares', 'queries compare')} the groups; intervals from fewer "
            f"than {FEW_QUERIES} are too narrow to rely on"
        )
    if len(tilts) > 1:
        yield (
            f"each of the {len(tilts)} comparisons is judged by its own 95 % interval; the more there are, the more "
            "likely one of them stands out by chance"
        )

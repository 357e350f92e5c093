"""What an audit of judges says, as one saved file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ranktilt.auditing.answer.findings import Finding, FindingKind, margins, ranked
from ranktilt.auditing.answer.verdict import cannot_vary, finding
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.effects import Change, Effect
from ranktilt.data.artifact import Result
from ranktilt.errors import counted, join_words
from ranktilt.judging.probes import ProbeGap
from ranktilt.measures.margin import Margin
from ranktilt.measures.printing import rounded
from ranktilt.statistics.bootstrap import FEWEST_ROWS

HUMAN = "human"
"""How the reference judge is called."""
GAP_LEVEL: Margin = "0.1 grades"
"""Grade gaps within this margin count as level."""
FEWEST_QUERIES = 6
"""Queries from which intervals are drawn: from fewer, resamples repeat each other and intervals are far too narrow."""
_GAP_POINTS = 0.1
"""The same as a number."""
_NORMAL = 1.96
"""Standard errors from the middle of a 95 % interval to its end."""
Fate = Literal["agrees", "lost", "reversed", "new", "neither"]
Favour = Literal["favours", "disfavours", "level", "depends on scale", "inconclusive", "not tested"]


class Estimate(NamedTuple):
    """A value with its 95 % interval; NaN where it is undefined."""

    value: float
    low: float = np.nan
    high: float = np.nan


@dataclass(frozen=True)
class Agreement:
    """How far one judge agrees with the human grades, over some of the pairs that both graded."""

    judge: str
    stratum: str
    """``all``, or what the pairs have in common: ``source llm``, ``short documents``."""
    pairs: int
    queries: int
    exact: Estimate
    """Share of pairs with the same grade."""
    kappa: Estimate
    """Cohen's κ of the grades."""
    binary_kappa: Estimate
    """Cohen's κ of relevant or not."""
    weighted_kappa: Estimate
    """Cohen's κ with quadratic weights."""
    alpha: Estimate
    """Krippendorff's α of ordered grades."""
    gap: Estimate
    """Mean grade of the judge less the human one."""


@dataclass(frozen=True)
class QueryAgreement:
    """The same for one query, without intervals."""

    judge: str
    query: str
    pairs: int
    exact: float
    weighted_kappa: float
    gap: float


@dataclass(frozen=True)
class GradeCount:
    """How many pairs have one human grade and one grade of the judge."""

    judge: str
    human: int
    grade: int
    pairs: int


@dataclass(frozen=True)
class SystemScore:
    """The mean of one system under the human grades and under a judge."""

    judge: str
    measure: str
    run: str
    family: str
    """Empty where no families are given."""
    human: float
    judged: float
    human_rank: float
    judged_rank: float
    """From 1; tied systems share the mean of their ranks."""
    relative: Estimate
    """How much further the judge raises it than the mean system: judged − human, less the mean of that."""


@dataclass(frozen=True)
class RankAgreement:
    """How far a judge orders the systems as the human grades do."""

    judge: str
    measure: str
    systems: int
    queries: int
    tau: Estimate
    """Kendall's τ-b."""
    tau_a: Estimate
    tau_ap: Estimate
    """Top-weighted; the human order is the reference."""
    rbo: Estimate
    """Rank-biased overlap with p = .9."""
    bias: float
    """Mean over systems of judged − human: the absolute bias, the same for all."""
    limits: tuple[float, float]
    """Bland & Altman's 95 % limits of agreement of the differences."""
    slope: float
    """What a difference of 1 between two systems becomes under the judge: below 1 it brings them closer."""


@dataclass(frozen=True)
class SystemPair:
    """Two systems whose difference is significant under the human grades, or under the judge alone."""

    judge: str
    measure: str
    better: str
    worse: str
    """By the human mean."""
    human: float
    judged: float
    """Differences of the means, better − worse."""
    human_p: float
    judged_p: float
    """Paired t tests over queries, Holm over all pairs."""
    fate: Fate


@dataclass(frozen=True)
class FamilyScale:
    """One scale on which a judge's preference for a family is measured."""

    name: Literal["points", "ranks", "z"]
    preference: Estimate
    """How much further apart family and others are than the judge's general errors explain; + favours the family."""
    p: float
    p_corrected: float
    """Holm over judges, families and measures, on this scale."""
    slope: float
    """What the judge makes of a difference of 1 between systems of one family."""
    plain: float
    """The textbook difference in differences, which a judge's general errors move too."""


@dataclass(frozen=True)
class FamilyPreference:
    """Whether a judge favours one family of systems."""

    judge: str
    measure: str
    family: str
    systems: int
    others: int
    queries: int
    scales: tuple[FamilyScale, ...]
    verdict: Favour
    sentence: str


@dataclass(frozen=True)
class Corrected:
    """A system's mean, or a difference of two, from few human labels and the judge's."""

    judge: str
    measure: str
    run: str
    minus: str
    """The system that is subtracted; empty for a mean."""
    human_only: Estimate
    """From the human queries alone."""
    judge_only: float
    powered: Estimate
    """Prediction-powered (PPI++)."""
    weight: float
    """λ, 0 to 1: how much the judge counts."""
    correlation: float
    """Of both judges' values over the human queries."""
    queries: int
    effective: float
    """Human queries that would give as small a variance without the judge; NaN where there is no interval."""
    truth: float = np.nan
    """The mean over all human queries, where these are a sample of those that are known."""


@dataclass(frozen=True)
class JudgedTilt:
    """How the tilt of one run changes with who judged."""

    judge: str
    change: Change
    """Relative Δ under the judge (new) less that under the human grades (old), in points."""


@dataclass(frozen=True)
class Weakness:
    """What one edit of passages that humans graded 0 does to a judge's grades."""

    judge: str
    edit: ProbeGap


@dataclass(frozen=True, eq=False)
class JudgeAudit(
    Result, format="ranktilt-judge", version=1, noun="an audit of judges", command="ranktilt judge"
):
    """What `judge` found; immutable."""

    spec: Mapping[str, Any]
    judges: tuple[str, ...]
    agreements: tuple[Agreement, ...]
    by_query: tuple[QueryAgreement, ...]
    confusions: tuple[GradeCount, ...]
    notes: tuple[str, ...]
    rank_agreements: tuple[RankAgreement, ...] = ()
    systems: tuple[SystemScore, ...] = ()
    system_pairs: tuple[SystemPair, ...] = ()
    """Those that are significant under either judge."""
    preferences: tuple[FamilyPreference, ...] = ()
    grade_gaps: tuple[Effect, ...] = ()
    """On twins: all pairs of one origin, then those of each human grade."""
    tilts: tuple[JudgedTilt, ...] = ()
    corrected: tuple[Corrected, ...] = ()
    weaknesses: tuple[Weakness, ...] = ()
    confounds: tuple[Confound, ...] = ()
    """What else differs between the two sources of the twins."""

    @property
    def overall(self) -> tuple[Agreement, ...]:
        """Agreement over all pairs, one row a judge."""
        return tuple(row for row in self.agreements if row.stratum == "all")

    @property
    def main_gaps(self) -> tuple[Effect, ...]:
        """Grade gaps over all twins, one a judge and pair of sources."""
        return tuple(e for e in self.grade_gaps if not e.estimand.options)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, in the order in which it is told: sides, then the order of systems, then agreement."""
        return _findings(self)

    def sentences(self) -> list[str]:
        """Say the findings in words; the page's first lines."""
        return [finding.sentence for finding in self.findings]

    def derived(self) -> dict[str, Any]:
        return {"verdicts": _verdicts(self), "next_steps": (), "effects": ()}


_PREFERENCES: dict[Favour, FindingKind] = {
    "favours": "favours",
    "disfavours": "favours",
    "depends on scale": "conflict",
    "level": "level",
    "inconclusive": "inconclusive",
    "not tested": "inconclusive",
}
_GAP_KINDS: dict[str, FindingKind] = {"level": "level", "inconclusive": "inconclusive"}


def _findings(audit: JudgeAudit) -> tuple[Finding, ...]:
    sides = [
        Finding(
            kind=_GAP_KINDS.get(effect.verdict(GAP_LEVEL), "favours"),
            sentence=_gap_sentence(effect, effect.verdict(GAP_LEVEL)),
            size=margins(effect, GAP_LEVEL),
            run=effect.run,
        )
        for effect in audit.main_gaps
    ]
    sides += [
        Finding(
            kind=_PREFERENCES[row.verdict],
            sentence=row.sentence,
            size=_standard_errors(row.scales[0].preference),
            run=row.judge,
        )
        for row in audit.preferences
    ]
    sides += [
        Finding(kind="favours", sentence=sentence, size=edit.gap / _GAP_POINTS, run=judge)
        for judge, edit, sentence in _weaknesses(audit)
    ]
    orders = [
        Finding(
            kind="described", sentence=_order(audit, row), size=1 - row.tau.value, run=row.judge
        )
        for row in audit.rank_agreements
    ]
    tilts = [Finding(kind="described", sentence=sentence) for sentence in _moved_tilts(audit)]
    agreements = [
        Finding(kind="described", sentence=_agreement(row), size=1 - row.kappa.value, run=row.judge)
        for row in audit.overall
    ]
    return (*ranked(sides), *ranked(orders), *tilts, *ranked(agreements))


def _standard_errors(estimate: Estimate) -> float:
    """How many standard errors an estimate lies from 0, as far as its interval tells."""
    error = (estimate.high - estimate.low) / (2 * _NORMAL)
    return abs(estimate.value) / error if error > 0 else 0.0


def _verdicts(audit: JudgeAudit) -> list[dict[str, Any]]:
    """List verdicts as other results do: on sources by grade gap, on families by preference."""
    families = [
        {
            "run": row.judge,
            "kind": row.verdict,
            "side": row.family if row.verdict == "favours" else None,
            "sentence": row.sentence,
            "primary": row.measure,
            "margin": None,
            "a": row.family,
            "b": "others",
        }
        for row in audit.preferences
    ]
    return _gaps(audit) + families


def _gaps(audit: JudgeAudit) -> list[dict[str, Any]]:
    found = []
    for effect in audit.main_gaps:
        kind = effect.verdict(GAP_LEVEL)
        side = effect.side(kind)
        found.append(
            {
                "run": effect.run,
                "kind": "favours" if side else kind,
                "side": side or None,
                "sentence": _gap_sentence(effect, kind),
                "primary": repr(effect.estimand),
                "margin": GAP_LEVEL,
                "a": effect.a,
                "b": effect.b,
            }
        )
    return found


def _gap_sentence(effect: Effect, kind: str) -> str:
    numbers = finding(effect, "text")
    if kind == "level":
        return f"{effect.run} is level between {effect.a} and {effect.b} twins, within ±{GAP_LEVEL}: {numbers}"
    if kind == "inconclusive":
        reason = cannot_vary(effect)
        return f"{effect.run}: inconclusive on twins: {f'{reason}; ' if reason else ''}{numbers}"
    return f"{effect.run} favours {effect.side(kind)} text on twins: {numbers}"


def _order(audit: JudgeAudit, row: RankAgreement) -> str:
    pairs = [
        one.fate
        for one in audit.system_pairs
        if (one.judge, one.measure) == (row.judge, row.measure)
    ]
    fates = Counter(pairs)
    shown = len(pairs) - fates["new"]
    changed = [f"{fates[fate]} {fate}" for fate in ("reversed", "lost") if fates[fate]]
    shown_by_humans = counted(shown, "significant difference", "significant differences")
    kept = f"of {shown_by_humans} {join_words(changed) if changed else 'none is lost'}"
    if row.queries < FEWEST_ROWS:
        kept = f"{counted(row.queries, 'query is', 'queries are')} too few to test differences"
    new = f", {fates['new']} new" if fates["new"] else ""
    return (
        f"{row.judge} orders {counted(row.systems, 'system', 'systems')} by {row.measure} with Kendall's τ-b "
        f"{_with_interval(row.tau)}: {kept}{new}"
    )


def _moved_tilts(audit: JudgeAudit) -> list[str]:
    found = []
    for judge in audit.judges:
        tilts = [one.change for one in audit.tilts if one.judge == judge]
        if tilts:
            shown = sum(one.shown for one in tilts) or "none"
            number = counted(len(tilts), "ranker's tilt", "rankers' tilts")
            found.append(
                f"{judge}: of {number} under its grades, {shown} differs from that under human grades"
            )
    return found


def _weaknesses(audit: JudgeAudit) -> list[tuple[str, ProbeGap, str]]:
    """The judges that an edit fools, each with the edit and a sentence."""
    return [
        (
            weakness.judge,
            weakness.edit,
            f"{weakness.judge} is fooled by {weakness.edit.probe}: passages of grade 0 are graded "
            f"{weakness.edit.gap:.2f} higher [{weakness.edit.low:.2f}, {weakness.edit.high:.2f}]",
        )
        for weakness in audit.weaknesses
        if weakness.edit.low > 0
    ]


def _agreement(row: Agreement) -> str:
    kappa, gap = row.kappa, row.gap
    if kappa.value != kappa.value:
        return f"{row.judge}: κ is undefined: one judge gives one grade to all {row.pairs:,} pairs"
    side = "higher" if gap.value > 0 else "lower"
    level = (
        f", grades {abs(gap.value):.2f} {side} on average" if gap.low > 0 or gap.high < 0 else ""
    )
    return (
        f"{row.judge} agrees with humans at κ {_with_interval(kappa)} over {row.pairs:,} pairs of "
        f"{counted(row.queries, 'query', 'queries')}{level}"
    )


def _with_interval(estimate: Estimate) -> str:
    """Print a coefficient with its interval, where it has one: ``.29 [.17, .39]``."""
    if np.isnan(estimate.low):
        return _decimal(estimate.value)
    return f"{_decimal(estimate.value)} [{_decimal(estimate.low)}, {_decimal(estimate.high)}]"


def _decimal(value: float) -> str:
    """Print a coefficient with two decimals and no zero before them: ``.29``."""
    text = rounded(value, 2).replace("-", "−")
    return text.replace("0.", ".", 1) if text.lstrip("−").startswith("0.") else text

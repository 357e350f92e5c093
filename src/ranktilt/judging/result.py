"""What an audit of judges says, as one saved file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.effects import Change, Effect
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.judging.probes import ProbeGap
from ranktilt.measures.margin import Margin

HUMAN = "human"
"""How the reference judge is called."""
GAP_MARGIN: Margin = "0.1 grades"
"""Grade gaps within this margin count as level."""
FEWEST_QUERIES = 6
"""Queries from which intervals are drawn: from fewer, resamples repeat each other and intervals are far too narrow."""
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
    notes: tuple[Coded[Note], ...]
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

    def derived(self) -> dict[str, Any]:
        return {"next_steps": (), "effects": ()}

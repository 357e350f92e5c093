"""What an audit of judges says, as one saved file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.effects import ALPHA, Change, Effect
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.judging.probes import ProbeGap
from ranktilt.measures.margin import Margin
from ranktilt.statistics.letters import compact_letters

HUMAN = "human"
"""How the reference judge is called."""
GAP_MARGIN: Margin = "0.1 grades"
"""Grade gaps within this margin count as level."""
FEWEST_QUERIES = 6
"""Queries from which intervals are drawn.

From fewer, resamples repeat each other, and intervals are far too narrow.
"""
Fate = Literal["agrees", "lost", "reversed", "new", "neither"]
AgreementStatistic = Literal["kappa", "tau"]
"""Cohen's κ of grades, or Kendall's τ-b of systems."""
Favour = Literal["favours", "disfavours", "level", "depends on scale", "inconclusive", "not tested"]


class Estimate(NamedTuple):
    """A value with its 95 % interval; NaN where it is undefined."""

    value: float
    low: float = np.nan
    high: float = np.nan


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class QueryAgreement:
    """The same for one query, without intervals."""

    judge: str
    query: str
    pairs: int
    exact: float
    weighted_kappa: float
    gap: float


@dataclass(frozen=True, kw_only=True)
class GradeCount:
    """How many pairs have one human grade and one grade of the judge."""

    judge: str
    human: int
    grade: int
    pairs: int


@dataclass(frozen=True, kw_only=True)
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
    """Its judged − human mean, less the mean of that over all systems."""


@dataclass(frozen=True, kw_only=True)
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
    """Difference under the judge of two systems that differ by 1; below 1 they come closer."""


@dataclass(frozen=True, kw_only=True)
class JudgeComparison:
    """The difference of two judges' agreement with humans, on what all three graded."""

    judge_a: str
    """The judge with the higher value over all that it graded."""
    judge_b: str
    statistic: AgreementStatistic
    measure: str
    """By which systems are ordered, for τ; empty for κ."""
    queries: int
    """Queries that both judges share; the same resamples of them count for both."""
    difference: float
    """Value of judge a less that of judge b, −2 to 2; NaN where one is undefined."""
    low: float
    """95 % interval over queries (see `coefficient_difference`)."""
    high: float
    p: float
    """Of no difference; below .05 exactly where the interval excludes 0."""
    p_corrected: float
    """For all pairs of judges that are compared by one statistic and measure."""

    @property
    def is_shown(self) -> bool:
        """Whether the two can be told apart: corrected p < .05."""
        return self.p_corrected < ALPHA

    def derived(self) -> dict[str, Any]:
        """Return whether the difference is shown."""
        return {"is_shown": self.is_shown}


@dataclass(frozen=True, kw_only=True)
class JudgeStanding:
    """How well one judge agrees with humans among all, and with which ones it shares a letter."""

    judge: str
    statistic: AgreementStatistic
    measure: str
    """By which systems are ordered, for τ; empty for κ."""
    value: float
    low: float
    high: float
    letters: str
    """Judges that share one cannot be distinguished; empty where the value is undefined."""


@dataclass(frozen=True, kw_only=True)
class SystemPair:
    """Two systems whose difference is significant under human grades, or under the judge alone."""

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


@dataclass(frozen=True, kw_only=True)
class FamilyScale:
    """One scale on which a judge's preference for a family is measured."""

    name: Literal["points", "ranks", "z"]
    preference: Estimate
    """Distance of family and others beyond what the judge's general errors explain; above 0 the
    judge favours the family."""
    p: float
    p_corrected: float
    """Holm over judges, families and measures, on this scale."""
    slope: float
    """What the judge makes of a difference of 1 between systems of one family."""
    plain: float
    """The textbook difference in differences, which a judge's general errors move too."""


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
    """Human queries that give as small a variance without the judge; NaN if unknown."""
    truth: float = np.nan
    """The mean over all human queries, where these are a sample of those that are known."""


@dataclass(frozen=True, kw_only=True)
class JudgedTilt:
    """How the tilt of one run changes with who judged."""

    judge: str
    change: Change
    """Relative Δ under the judge (new) less that under the human grades (old), in points."""


@dataclass(frozen=True, kw_only=True)
class Weakness:
    """What one edit of passages that humans graded 0 does to a judge's grades."""

    judge: str
    edit: ProbeGap


@dataclass(frozen=True, kw_only=True, eq=False)
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
    comparisons: tuple[JudgeComparison, ...] = ()
    """Every two judges: by κ, then by τ-b of each measure; the best judge's first."""
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

    @cached_property
    def standings(self) -> tuple[JudgeStanding, ...]:
        """How judges stand by κ, then by τ-b of each measure, the best first."""
        kappas = [(row.judge, row.kappa) for row in self.overall]
        standings = self._standings("kappa", "", kappas)
        for measure in dict.fromkeys(row.measure for row in self.rank_agreements):
            taus = [(row.judge, row.tau) for row in self.rank_agreements if row.measure == measure]
            standings += self._standings("tau", measure, taus)
        return tuple(standings)

    def standings_by(self, statistic: AgreementStatistic, measure: str) -> list[JudgeStanding]:
        """Return how judges stand by one statistic and measure, the best first."""
        key = statistic, measure
        return [row for row in self.standings if (row.statistic, row.measure) == key]

    def _standings(
        self,
        statistic: AgreementStatistic,
        measure: str,
        estimates: Sequence[tuple[str, Estimate]],
    ) -> list[JudgeStanding]:
        ordered = sorted(estimates, key=lambda row: -np.nan_to_num(row[1].value, nan=-np.inf))
        known = [judge for judge, estimate in ordered if not np.isnan(estimate.value)]
        index = {judge: number for number, judge in enumerate(known)}
        differs = np.zeros((len(known), len(known)), dtype=bool)
        for row in self.comparisons:
            if (row.statistic, row.measure) == (statistic, measure) and row.is_shown:
                a, b = index[row.judge_a], index[row.judge_b]
                differs[a, b] = differs[b, a] = True
        letters = dict(zip(known, compact_letters(differs), strict=True))
        return [
            JudgeStanding(
                judge=judge,
                statistic=statistic,
                measure=measure,
                value=estimate.value,
                low=estimate.low,
                high=estimate.high,
                letters=letters.get(judge, ""),
            )
            for judge, estimate in ordered
        ]

    def derived(self) -> dict[str, Any]:
        """Return what the file has besides the fields: how judges stand."""
        return {"next_steps": (), "effects": (), "standings": self.standings}

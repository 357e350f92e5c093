"""Records in the result of an audit of judges.

They hold a judge's agreement with humans, the order of systems, whom the judge favours, and whether
its confidence is right. ``judge`` and ``measure`` are names throughout.

A *judge* is a model, or a person, whose grades of relevance are compared with the human ones. A
*pair* is a query and a document. A *system* is a ranker whose run is evaluated by a measure, once
under the human grades and once under a judge's; a *family* is the systems that are built on models
of one maker. A *tilt* is how much better documents of one source do than those of another: ranked
in a run, or graded by a judge. A judge's *confidence*, from 0 to 1, is how sure it says it is of a
grade.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ranktilt.auditing.effects import ALPHA, Change
from ranktilt.judging.grading.probes import ProbeGap
from ranktilt.measures.margin import Margin

HUMAN = "human"
"""Name under which human grades are listed among those of judges."""
GAP_MARGIN: Margin = "0.1 grades"
"""Grade gaps within this margin count as level."""
FEWEST_QUERIES = 6
"""Fewest queries for an interval.

With fewer, many resamples have the same queries, and intervals are far too narrow.
"""
Fate = Literal["agrees", "lost", "reversed", "new", "neither"]
"""What becomes of a difference of two systems under the judge.

``agrees``: significant under both, in the same direction. ``lost``: significant under humans only.
``reversed``: significant under humans, and the judge prefers the other system. ``new``: significant
under the judge only. ``neither``: significant under neither.
"""
AgreementStatistic = Literal["kappa", "tau"]
"""Coefficient of agreement: Cohen's κ of grades, or Kendall's τ-b of the order of systems."""
Favour = Literal["favours", "disfavours", "level", "depends on scale", "inconclusive", "not tested"]
"""Verdict on a judge and a family of systems."""


class Estimate(NamedTuple):
    """A value with its 95 % interval; NaN if it is undefined."""

    value: float
    """The value."""
    low: float = np.nan
    """Lower end of the interval."""
    high: float = np.nan
    """Upper end of the interval."""


# ---- agreement -----------------------------------------------------------------------------------


class _CorrectedTest:
    """What results of a test share whose p is corrected for several tests."""

    p_corrected: float

    @property
    def is_shown(self) -> bool:
        """Whether the difference is shown: corrected p < .05."""
        return self.p_corrected < ALPHA

    def derived(self) -> dict[str, Any]:
        """Return whether the difference is shown."""
        return {"is_shown": self.is_shown}


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement of one judge with human grades, over some of the pairs that both graded."""

    judge: str
    stratum: str
    """``all``, or what the pairs have in common: ``source llm``, ``short documents``."""
    pairs: int
    """Number of pairs."""
    queries: int
    """Number of queries."""
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
    """Mean of the judge's grade minus the human one."""


@dataclass(frozen=True, kw_only=True)
class QueryAgreement:
    """Agreement of one judge with human grades for one query, without intervals."""

    judge: str
    query: str
    """Id of the query."""
    pairs: int
    """Number of its pairs that both graded."""
    exact: float
    """Share of pairs with the same grade."""
    weighted_kappa: float
    """Cohen's κ with quadratic weights."""
    gap: float
    """Mean of the judge's grade minus the human one."""


@dataclass(frozen=True, kw_only=True)
class GradeCount:
    """Number of pairs with one human grade and one grade of the judge."""

    judge: str
    human: int
    """Human grade."""
    grade: int
    """Grade of the judge."""
    pairs: int
    """Number of pairs."""


@dataclass(frozen=True, kw_only=True)
class JudgeComparison(_CorrectedTest):
    """Difference between two judges' agreement with humans.

    κ is over pairs that humans and both judges graded, τ over systems and queries of both judges.
    """

    judge_a: str
    """The judge with the higher value over all that it graded."""
    judge_b: str
    """The other judge."""
    statistic: AgreementStatistic
    """Coefficient that is compared."""
    measure: str
    """Measure that orders the systems, for τ; empty for κ."""
    queries: int
    """Queries that both judges have; both use the same resamples of them."""
    difference: float
    """Value of judge a minus value of judge b, −2 to 2; NaN if one is undefined."""
    low: float
    """Lower end of its 95 % interval over queries."""
    high: float
    """Upper end of the same interval."""
    p: float
    """p of no difference; below .05 exactly if the interval excludes 0."""
    p_corrected: float
    """The same, corrected for all pairs of judges with this statistic and measure."""


@dataclass(frozen=True, kw_only=True)
class JudgeStanding:
    """Position of one judge among all by agreement with humans."""

    judge: str
    statistic: AgreementStatistic
    """Coefficient of agreement."""
    measure: str
    """Measure that orders the systems, for τ; empty for κ."""
    value: float
    """Agreement with humans."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    letters: str
    """Letters; judges that share one cannot be distinguished. Empty if the value is undefined."""


# ---- systems -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SystemScore:
    """Mean of one system under the human grades and under a judge."""

    judge: str
    measure: str
    run: str
    """Name of the system."""
    family: str
    """Family of the system; empty if it has none."""
    human: float
    """Mean under the human grades."""
    judged: float
    """Mean under the judge."""
    human_rank: float
    """Rank under the human grades, from 1; tied systems share the mean of their ranks."""
    judged_rank: float
    """Rank under the judge."""
    relative: Estimate
    """How far the judge raises the system above average.

    It is the system's mean under the judge minus that under humans, minus the average of this
    difference over all systems.
    """


@dataclass(frozen=True, kw_only=True)
class RankAgreement:
    """How far a judge orders the systems as the human grades do."""

    judge: str
    measure: str
    systems: int
    """Number of systems."""
    queries: int
    """Number of queries."""
    tau: Estimate
    """Kendall's τ-b."""
    tau_a: Estimate
    """Kendall's τ-a."""
    tau_ap: Estimate
    """τ_AP, which weighs the top more; the human order is the reference."""
    rbo: Estimate
    """Rank-biased overlap with p = .9."""
    bias: float
    """Mean under the judge minus mean under humans, on average over systems."""
    limits: tuple[float, float]
    """Bland and Altman's limits of agreement: where 95 % of these differences lie."""
    slope: float
    """Difference under the judge between two systems that differ by 1 under humans.

    Below 1, systems come closer.
    """


@dataclass(frozen=True, kw_only=True)
class SystemPair:
    """Two systems whose difference is significant under human grades, or under the judge."""

    judge: str
    measure: str
    better: str
    """System with the higher human mean."""
    worse: str
    """The other system."""
    human: float
    """Difference of the human means, better − worse."""
    judged: float
    """Difference of the judge's means, better − worse."""
    human_p: float
    """p under human grades: paired t test over queries, with Holm's correction over all pairs."""
    judged_p: float
    """p under the judge, from the same test and correction."""
    fate: Fate
    """What becomes of the difference under the judge."""


@dataclass(frozen=True, kw_only=True)
class FamilyScale:
    """One scale on which a judge's preference for a family is measured."""

    name: Literal["points", "ranks", "z"]
    """Name of the scale.

    The values of systems in a query are taken as they are, or as ranks, or as standard scores.
    """
    preference: Estimate
    """How much further ahead of other systems the family is under the judge than under humans.

    The judge's general errors, which affect all systems, are taken out. Above 0, the judge favours
    the family.
    """
    p: float
    """p of no preference on this scale."""
    p_corrected: float
    """The same, with Holm's correction over judges, families and measures."""
    slope: float
    """Difference under the judge between systems of one family that differ by 1 under humans."""
    plain: float
    """The textbook difference in differences, which a judge's general errors affect too."""


@dataclass(frozen=True, kw_only=True)
class FamilyPreference:
    """Whether a judge favours one family of systems."""

    judge: str
    measure: str
    family: str
    """Name of the family."""
    systems: int
    """Number of systems in the family."""
    others: int
    """Number of other systems."""
    queries: int
    """Number of queries."""
    scales: tuple[FamilyScale, ...]
    """Numbers on each scale."""
    verdict: Favour
    """Verdict over all scales."""


@dataclass(frozen=True, kw_only=True)
class PoweredEstimate:
    """Mean of a system, or difference of two, estimated from few human labels and the judge's.

    A human label is a human grade; only some queries have them, and the judge graded all.
    """

    judge: str
    measure: str
    run: str
    """The system."""
    minus: str
    """The system that is subtracted; empty for a mean."""
    human_only: Estimate
    """Estimate from the human labels alone."""
    judge_only: float
    """Estimate from the judge alone."""
    powered: Estimate
    """Estimate from both: prediction-powered (PPI++)."""
    weight: float
    """λ, from 0 to 1: how much the judge's grades count in `powered`."""
    correlation: float
    """Correlation of values under humans and under the judge, over queries with human labels."""
    queries: int
    """Number of queries with human labels."""
    effective: float
    """Number of queries with human labels that would give the same variance without the judge.

    NaN if unknown.
    """
    truth: float = np.nan
    """Mean over all queries that have human grades, if the labels are only a sample of these."""


# ---- sources and probes --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class JudgedTilt:
    """How the tilt of one run, which source it favours and how much, depends on who judged."""

    judge: str
    change: Change
    """Relative Δ under the judge (new) minus under the human grades (old), in points."""


@dataclass(frozen=True, kw_only=True)
class Weakness:
    """How one probe, an edit of passages that humans graded 0, changes a judge's grades."""

    judge: str
    edit: ProbeGap
    """Change of grades by the edit."""


# ---- confidence ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ConfidenceBin:
    """A point of the curve: pairs of query and document with similar confidence."""

    lowest: float
    """Lowest confidence in the bin."""
    highest: float
    """Highest confidence in the bin."""
    confidence: float
    """Mean confidence."""
    agreement: Estimate
    """Share of pairs with the human grade."""
    pairs: int
    """Number of pairs."""


@dataclass(frozen=True, kw_only=True)
class UnsureTilt(_CorrectedTest):
    """The tilt of the grades that a judge is least sure of, compared with the tilt of the rest."""

    a: str
    """The first source; positive tilts favour it."""
    b: str
    """The second source."""
    is_of_twins: bool
    """Whether the tilt is the grade gap of twins, two versions of one text.

    Else it is the judge's grade minus the human one, for the first source minus the second.
    """
    border: float
    """Highest confidence that counts as unsure."""
    share: float
    """Share of the twins, or grades, that are unsure: as near to a third as equal values allow."""
    unsure: Estimate
    """Tilt of the unsure grades, in grades."""
    rest: Estimate
    """Tilt of all other grades."""
    difference: Estimate
    """Tilt of the unsure grades minus that of the rest."""
    p: float
    """p of no difference."""
    p_corrected: float
    """The same, corrected over judges."""
    rows: int
    """Number of twins, or of grades."""
    queries: int
    """Number of their queries."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Whether the confidence of a judge is right."""

    judge: str
    bins: tuple[ConfidenceBin, ...]
    """The curve: bins of about equal count, from the lowest confidence on."""
    error: Estimate
    """Expected calibration error, 0 to 1: mean distance of agreement from confidence over bins."""
    excess: Estimate
    """Mean confidence minus the share of pairs with the human grade; above 0 it is too sure."""
    confidence: float
    """Mean confidence."""
    agreement: float
    """Share of pairs with the human grade."""
    pairs: int
    """Number of pairs with a confidence and a human grade."""
    queries: int
    """Number of their queries."""
    without: int
    """Number of graded pairs without a confidence."""
    tilt: UnsureTilt | None
    """Tilt of unsure grades; None without two sources, or if unsure grades or the rest lack one."""

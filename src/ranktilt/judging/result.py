"""The result of an audit of judges.

A *judge* is a model, or a person, whose grades of relevance are compared with the human ones. How
far it agrees is Cohen's κ; how alike it orders *systems* (rankers whose runs are evaluated) is
Kendall's τ-b. A *grade gap* is how much higher a judge grades one of two *twins*, versions of one
text from two sources. `records` holds the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.effects import Effect
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.errors import UserError
from ranktilt.judging.drift.drift import compare_judges
from ranktilt.judging.drift.match import AuditedJudges
from ranktilt.judging.drift.result import JudgeDrift
from ranktilt.judging.grading.length_doses import LengthDoses
from ranktilt.judging.kept_grades import KeptGrades, nothing_kept
from ranktilt.judging.records import (
    Agreement,
    AgreementStatistic,
    Calibration,
    Estimate,
    FamilyPreference,
    GradeCount,
    JudgeComparison,
    JudgedTilt,
    JudgeStanding,
    PoweredEstimate,
    QueryAgreement,
    RankAgreement,
    SystemPair,
    SystemScore,
    Weakness,
)
from ranktilt.statistics.letters import compact_letters


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgeAudit(
    Result, format="ranktilt-judge", version=1, noun="an audit of judges", command="ranktilt judge"
):
    """The result of `judge`; immutable."""

    spec: Mapping[str, Any]
    """How the audit was made: files, options, versions."""
    judges: tuple[str, ...]
    """Names of the judges."""
    agreements: tuple[Agreement, ...]
    """Agreement of each judge with humans, by stratum."""
    by_query: tuple[QueryAgreement, ...]
    """Agreement for each query."""
    confusions: tuple[GradeCount, ...]
    """Number of pairs with each human grade and each grade of a judge."""
    notes: tuple[Coded[Note], ...]
    """Notes for the reader."""
    comparisons: tuple[JudgeComparison, ...] = ()
    """Comparisons of two judges: by κ, then by τ-b of each measure.

    Comparisons of the best judge come first.
    """
    rank_agreements: tuple[RankAgreement, ...] = ()
    """Agreement of each judge with humans about the order of systems."""
    systems: tuple[SystemScore, ...] = ()
    """Mean of every system under humans and each judge."""
    system_pairs: tuple[SystemPair, ...] = ()
    """Pairs of systems that differ significantly under humans or a judge."""
    preferences: tuple[FamilyPreference, ...] = ()
    """Whether a judge favours a family of systems."""
    grade_gaps: tuple[Effect, ...] = ()
    """Grade gaps of twins, two versions of one text: over all twins, then for each human grade."""
    tilts: tuple[JudgedTilt, ...] = ()
    """How the tilt of each run differs under a judge and under humans."""
    corrected: tuple[PoweredEstimate, ...] = ()
    """Means of systems, and differences of two, from few human labels and a judge's."""
    weaknesses: tuple[Weakness, ...] = ()
    """How edits of non-relevant passages change a judge's grades."""
    length_doses: tuple[LengthDoses, ...] = ()
    """Grades of the same passages at several lengths."""
    calibrations: tuple[Calibration, ...] = ()
    """Calibration of each judge that says how sure it is."""
    confounds: tuple[Confound, ...] = ()
    """Other differences between the two sources of the twins."""
    grades: Coded[KeptGrades] = field(default_factory=nothing_kept)
    """Every grade, and the values of systems per query, for comparisons."""

    @property
    def overall(self) -> tuple[Agreement, ...]:
        """Agreement of each judge over all pairs."""
        return tuple(row for row in self.agreements if row.stratum == "all")

    @property
    def main_gaps(self) -> tuple[Effect, ...]:
        """Grade gaps over all twins, for each judge and pair of sources."""
        # A gap over the twins of one human grade has that grade among its options.
        return tuple(gap for gap in self.grade_gaps if not gap.estimand.options)

    @cached_property
    def standings(self) -> tuple[JudgeStanding, ...]:
        """Rankings of the judges by κ, then by τ-b of each measure, the best first."""
        kappas = [(row.judge, row.kappa) for row in self.overall]
        standings = self._standings("kappa", "", kappas)
        for measure in dict.fromkeys(row.measure for row in self.rank_agreements):
            taus = [(row.judge, row.tau) for row in self.rank_agreements if row.measure == measure]
            standings += self._standings("tau", measure, taus)
        return tuple(standings)

    def standings_by(self, statistic: AgreementStatistic, measure: str) -> list[JudgeStanding]:
        """Return the judges' ranking by one statistic, the best first.

        `measure` orders the systems for ``tau``, and is empty for ``kappa``.
        """
        key = statistic, measure
        return [row for row in self.standings if (row.statistic, row.measure) == key]

    def _standings(
        self,
        statistic: AgreementStatistic,
        measure: str,
        estimates: Sequence[tuple[str, Estimate]],
    ) -> list[JudgeStanding]:
        """Order judges by one statistic, with a shared letter if they cannot be distinguished.

        `measure` orders the systems for ``tau``, and is empty for ``kappa``. `estimates` holds
        names of judges with their values. Judges without a value come last, and have no letter.
        """
        ordered = sorted(estimates, key=lambda row: -np.nan_to_num(row[1].value, nan=-np.inf))
        with_value = [judge for judge, estimate in ordered if not np.isnan(estimate.value)]
        index = {judge: position for position, judge in enumerate(with_value)}
        differs = np.zeros((len(with_value), len(with_value)), dtype=bool)
        for row in self.comparisons:
            if (row.statistic, row.measure) == (statistic, measure) and row.is_shown:
                a, b = index[row.judge_a], index[row.judge_b]
                differs[a, b] = differs[b, a] = True
        letters = dict(zip(with_value, compact_letters(differs), strict=True))
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

    def compared_with(self, old: Result, options: ComparisonOptions) -> JudgeDrift:
        """Return how the judges changed since an old audit; `ranktilt.compare` calls this method.

        `options` are the resamples, seed, correction, and share of queries that may be left out.
        """
        if not isinstance(old, JudgeAudit):
            raise UserError("expected two audits of judges: NEW.json OLD.json")
        return compare_judges(self._audited_judges(), old._audited_judges(), options)

    def _audited_judges(self) -> AuditedJudges:
        """Return the part of the audit that a comparison needs."""
        return AuditedJudges(
            judges=self.judges,
            grades=self.grades,
            top=self.spec.get("top_grade", 0),
            notes=self.notes,
            spec={**self.spec, "file": self.loaded_from},
        )

    def derived(self) -> dict[str, Any]:
        """Return what an audit's file holds besides the fields: the standings of judges."""
        return {"next_steps": (), "effects": (), "standings": self.standings}

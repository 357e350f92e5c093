"""Whether a judge favours one family of systems, beyond its general errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from ranktilt.auditing.effects import ALPHA
from ranktilt.errors import UserError, counted
from ranktilt.judging.records import Estimate, FamilyPreference, FamilyScale, Favour
from ranktilt.judging.systems.systems import SystemValues
from ranktilt.measures.ranking import Bools, Floats
from ranktilt.statistics.correction import holm
from ranktilt.statistics.family_difference import FamilyDifference, family_difference

MARGIN = 0.02
"""Half-width of what counts as level, in the measure's own values: 2 points of nDCG."""


def _ranks(values: Floats) -> Floats:
    """Return the share of other systems that each system beats in a query; ties count half."""
    share: Floats = (stats.rankdata(values, axis=0) - 1) / max(len(values) - 1, 1)
    return share


def _z(values: Floats) -> Floats:
    """Return standard scores within each query; 0 where all systems are equal."""
    spread = values.std(0)
    score: Floats = np.divide(
        values - values.mean(0), spread, out=np.zeros_like(values), where=spread > 0
    )
    return score


_SCALES: Mapping[str, Callable[[Floats], Floats]] = {
    "points": lambda values: values,
    "ranks": _ranks,
    "z": _z,
}
"""Functions that put values of shape (systems, queries) on a scale."""


def families_of(
    runs: Sequence[str], families: Mapping[str, str], *, joined: bool = False
) -> dict[str, list[str]]:
    """List the runs of each family, in the order in which families are named.

    `UserError` if a run has no family, or no family can be compared. After clusters of repeats were
    `joined`, a family that has one system left is not tested, but not refused.
    """
    lost = [run for run in runs if run not in families]
    if lost:
        raise UserError(
            f"no family for {counted(len(lost), 'run', 'runs')}: {', '.join(lost[:3])}; "
            "see --systems"
        )
    members_of: dict[str, list[str]] = {}
    for run, family in families.items():
        if run in runs:
            members_of.setdefault(family, []).append(run)
    if len(members_of) < 2:
        only = next(iter(members_of))
        raise UserError(f"expected systems of two families or more, got only {only!r}")
    smaller_sides = [min(len(members), len(runs) - len(members)) for members in members_of.values()]
    if not joined and max(smaller_sides) < 2:
        raise UserError(
            "a family is compared if it has two systems and there are two others; no family does"
        )
    return members_of


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedFamily:
    """A family of systems and all others, under one judge and measure."""

    values: SystemValues
    """Values of all systems."""
    family: str
    """Name of the family."""
    is_member: Bools
    """Whether each system belongs to the family."""

    def differences(self) -> list[FamilyDifference]:
        """Compare the family with the others on each scale."""
        values = self.values
        return [
            family_difference(scale(values.rescaled), scale(values.judged), self.is_member)
            for scale in _SCALES.values()
        ]

    def preference(
        self, differences: Sequence[FamilyDifference], corrected: Sequence[float]
    ) -> FamilyPreference:
        """Return the verdict on the family, with the numbers of each scale."""
        values = self.values
        scales = [
            _family_scale(name, difference, p_corrected)
            for name, difference, p_corrected in zip(_SCALES, differences, corrected, strict=True)
        ]
        # The textbook difference is in the judges' own points, before any rescaling.
        plain = family_difference(values.human, values.judged, self.is_member).plain
        scales[0] = replace(scales[0], plain=plain)
        return FamilyPreference(
            judge=values.judge,
            measure=values.measure,
            family=self.family,
            systems=int(self.is_member.sum()),
            others=int((~self.is_member).sum()),
            queries=len(values.queries),
            scales=tuple(scales),
            verdict=verdict_of(scales),
        )


def family_preferences(
    every: Sequence[SystemValues], families: Mapping[str, str], *, joined: bool = False
) -> list[FamilyPreference]:
    """Test every judge, measure and family on each scale; one verdict if all scales agree.

    `joined` says whether clusters of repeats count as one system each.
    """
    compared = list[ComparedFamily]()
    for values in every:
        members_of = families_of(values.runs, families, joined=joined)
        for family in _families_to_test(members_of):
            is_member = np.isin(values.runs, members_of[family])
            compared.append(ComparedFamily(values=values, family=family, is_member=is_member))
    differences = [family.differences() for family in compared]
    # One family of tests a scale: a preference must show on all of them anyway.
    corrected = []
    for on_scale in zip(*differences, strict=True):
        corrected.append(holm(np.array([difference.p for difference in on_scale])))
    p_corrected = np.stack(corrected, axis=1).tolist()
    return [
        family.preference(on_scales, ps)
        for family, on_scales, ps in zip(compared, differences, p_corrected, strict=True)
    ]


def _family_scale(name: str, difference: FamilyDifference, p_corrected: float) -> FamilyScale:
    """Return the numbers of one scale."""
    return FamilyScale(
        name=name,  # type: ignore[arg-type]
        preference=Estimate(difference.value, difference.low, difference.high),
        p=difference.p,
        p_corrected=p_corrected,
        slope=difference.slope,
        plain=difference.plain,
    )


def _families_to_test(families: Mapping[str, list[str]]) -> list[str]:
    """Name the families to test against all others.

    Of two families, whose answers are each other's opposite, the first is enough.
    """
    names = list(families)
    return names[:1] if len(names) == 2 else names


def verdict_of(scales: Sequence[FamilyScale], margin: float = MARGIN) -> Favour:
    """Return one verdict: a preference only if every scale shows it, in the same direction."""
    points = scales[0].preference
    if np.isnan(points.value):
        return "not tested"
    significant = [scale for scale in scales if scale.p_corrected < ALPHA]
    signs = {float(np.sign(scale.preference.value)) for scale in significant}
    if len(significant) == len(scales) and len(signs) == 1:
        return "favours" if signs == {1.0} else "disfavours"
    if significant:
        return "depends on scale"
    return "level" if -margin <= points.low and points.high <= margin else "inconclusive"

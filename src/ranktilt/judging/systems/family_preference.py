"""Whether a judge favours one family of systems, beyond its general errors.

A family is all systems that are built on the models of one maker, such as rankers that use GPT. A
judge favours a family if it puts the family further ahead of the other systems than the human
grades do. A judge's general errors are those that all systems share: leniency, or smaller
distances between good and bad systems.

The preference is measured on three *scales*: values of the measure as they are (*points*), ranks of
systems, and standard scores (*z*).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.errors import UserError, counted
from ranktilt.judging.records import Estimate, FamilyPreference, FamilyScale, Favour
from ranktilt.judging.systems.systems import SystemValues
from ranktilt.measures.ranking import Bools, Floats
from ranktilt.statistics.correction import holm
from ranktilt.statistics.judges.family_difference import FamilyDifference, family_difference

MARGIN = 0.02
"""Largest preference, either way, that counts as level, in values of the measure.

.02 are 2 points of nDCG.
"""


def _rank_shares(values: Floats) -> Floats:
    """Return the share of other systems that each system beats in a query; ties count half."""
    from scipy import stats  # imported on use: it takes half a second

    share: Floats = (stats.rankdata(values, axis=0) - 1) / max(len(values) - 1, 1)
    return share


def _standard_scores(values: Floats) -> Floats:
    """Return standard scores within each query; 0 where all systems are equal."""
    spread = values.std(0)
    score: Floats = np.divide(
        values - values.mean(0), spread, out=np.zeros_like(values), where=spread > 0
    )
    return score


_SCALES: Mapping[str, Callable[[Floats], Floats]] = {
    "points": lambda values: values,
    "ranks": _rank_shares,
    "z": _standard_scores,
}
"""Functions that put values of shape (systems, queries) on a scale.

A preference that depends on the scale is none: a judge may, for instance, only stretch distances.
"""


def families_of(
    runs: Sequence[str], families: Mapping[str, str], *, has_clusters: bool = False
) -> dict[str, list[str]]:
    """List the runs of each family, in the order of `families`.

    Parameters
    ----------
    runs : sequence of str
        Names of the systems.
    families : mapping
        Family of each system by its name.
    has_clusters : bool
        Whether a system may stand for a cluster of several runs. If so, a family may have one
        system left: it is not tested, but not refused either.

    Raises
    ------
    UserError
        If a run has no family, there is only one family, or no family can be compared.
    """
    without_family = [run for run in runs if run not in families]
    if without_family:
        raise UserError(
            f"no family for {counted(len(without_family), 'run', 'runs')}: "
            f"{', '.join(without_family[:3])}; see --systems"
        )
    members_of: dict[str, list[str]] = {}
    for run, family in families.items():
        if run in runs:
            members_of.setdefault(family, []).append(run)
    if len(members_of) < 2:
        only = next(iter(members_of))
        raise UserError(f"expected systems of two families or more, got only {only!r}")
    smaller_sides = [min(len(members), len(runs) - len(members)) for members in members_of.values()]
    if not has_clusters and max(smaller_sides) < 2:
        raise UserError(
            "a family is compared if it has two systems and there are two others; no family does"
        )
    return members_of


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedFamily:
    """A family of systems to compare with all others, under one judge and measure."""

    values: SystemValues
    """Values of all systems."""
    family: str
    """Name of the family."""
    is_member: Bools
    """Whether each system belongs to the family."""

    def differences(self) -> list[FamilyDifference]:
        """Compare the family with the others on each scale, in the order of `_SCALES`."""
        values = self.values
        return [
            family_difference(scale(values.rescaled_human), scale(values.judged), self.is_member)
            for scale in _SCALES.values()
        ]

    def preference(
        self, differences: Sequence[FamilyDifference], corrected: Sequence[float]
    ) -> FamilyPreference:
        """Return the verdict on the family, with the numbers of each scale.

        `differences` and `corrected`, their corrected p, are in the order of `_SCALES`.
        """
        values = self.values
        scales = [
            _family_scale(name, difference, p_corrected)
            for name, difference, p_corrected in zip(_SCALES, differences, corrected, strict=True)
        ]
        # The plain difference in differences of the textbooks takes human values as they are, not
        # on the judge's scale.
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
    values_of_systems: Sequence[SystemValues],
    families: Mapping[str, str],
    *,
    has_clusters: bool = False,
) -> list[FamilyPreference]:
    """Test whether each judge favours a family, by each measure and on each scale.

    Parameters
    ----------
    values_of_systems : sequence of SystemValues
        Values per query, for each judge and measure.
    families : mapping
        Family of each system by its name.
    has_clusters : bool
        Whether a system may stand for a cluster of several runs. If so, a family may have one
        system left, and is not tested.

    Returns
    -------
    list of FamilyPreference
        A verdict for each judge, measure and family.
    """
    compared = list[ComparedFamily]()
    for values in values_of_systems:
        members_of = families_of(values.runs, families, has_clusters=has_clusters)
        for family in _families_to_test(members_of):
            is_member = np.isin(values.runs, members_of[family])
            compared.append(ComparedFamily(values=values, family=family, is_member=is_member))
    differences = [family.differences() for family in compared]
    # Holm's correction is over the tests of one scale. Scales need no correction among each other,
    # because a preference must show on all of them.
    corrected_by_scale = []
    for of_scale in zip(*differences, strict=True):
        corrected_by_scale.append(holm(np.array([difference.p for difference in of_scale])))
    corrected_by_family = np.stack(corrected_by_scale, axis=1).tolist()
    return [
        family.preference(of_family, corrected)
        for family, of_family, corrected in zip(
            compared, differences, corrected_by_family, strict=True
        )
    ]


def _family_scale(name: str, difference: FamilyDifference, p_corrected: float) -> FamilyScale:
    """Return the numbers of the scale called `name`."""
    return FamilyScale(
        name=name,  # type: ignore[arg-type]
        preference=Estimate(difference.value, difference.low, difference.high),
        p=difference.p,
        p_corrected=p_corrected,
        slope=difference.slope,
        plain=difference.plain,
    )


def _families_to_test(families: Mapping[str, list[str]]) -> list[str]:
    """Return the families to test against all other systems.

    With two families only the first is tested: the preference for the second is its negative.
    """
    names = list(families)
    return names[:1] if len(names) == 2 else names


def verdict_of(scales: Sequence[FamilyScale], margin: float = MARGIN) -> Favour:
    """Return the verdict on a judge and a family: a preference if every scale shows the same.

    `margin` is the largest preference that counts as level, in values of the measure.
    """
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

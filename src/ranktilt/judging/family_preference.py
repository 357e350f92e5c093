"""Whether a judge favours one family of systems, beyond what its general errors explain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy import stats

from ranktilt.auditing.effects import ALPHA
from ranktilt.errors import UserError, counted
from ranktilt.judging.result import Estimate, FamilyPreference, FamilyScale, Favour
from ranktilt.judging.systems import SystemValues
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.correction import holm
from ranktilt.statistics.family_difference import family_difference

MARGIN = 0.02
"""Half-width of what counts as level, in the measure's own values: 2 points of nDCG."""


def _ranks(values: Floats) -> Floats:
    """Share of the other systems that each beats in its query; a tie counts half: 0 to 1."""
    share: Floats = (stats.rankdata(values, axis=0) - 1) / max(len(values) - 1, 1)
    return share


def _z(values: Floats) -> Floats:
    """Standard scores within each query; 0 where all systems are equal."""
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


def families_of(
    runs: Sequence[str], families: Mapping[str, str], *, joined: bool = False
) -> dict[str, list[str]]:
    """List the runs of each family, families as they are named first.

    `UserError` where a run has no family, or no family can be compared; where clusters of repeats
    were `joined`, a family that they leave with one system is not tested, and not refused.
    """
    lost = [run for run in runs if run not in families]
    if lost:
        raise UserError(
            f"no family for {counted(len(lost), 'run', 'runs')}: {', '.join(lost[:3])}; see --systems"
        )
    found: dict[str, list[str]] = {}
    for run, family in families.items():
        if run in runs:
            found.setdefault(family, []).append(run)
    if len(found) < 2:
        raise UserError(f"expected systems of two families or more, got only {next(iter(found))!r}")
    if not joined and not any(min(len(some), len(runs) - len(some)) > 1 for some in found.values()):
        raise UserError("a family needs two systems, and two others, to be compared; no family has")
    return found


def family_preferences(
    every: Sequence[SystemValues], families: Mapping[str, str], *, joined: bool = False
) -> list[FamilyPreference]:
    """Test every judge, measure and family on each scale, with one verdict where all scales agree.

    `joined` says whether clusters of repeats count as one system each.
    """
    of = [
        (values, family, np.isin(values.runs, members))
        for values in every
        for family, members in _compared(families_of(values.runs, families, joined=joined)).items()
    ]
    tests = [
        [
            family_difference(scale(values.rescaled), scale(values.judged), member)
            for scale in _SCALES.values()
        ]
        for values, _, member in of
    ]
    corrected = np.stack(
        [holm(np.array(ps)) for ps in zip(*([one.p for one in row] for row in tests), strict=True)],
        1,
    )
    found = []
    for (values, family, member), row, ps in zip(of, tests, corrected.tolist(), strict=True):
        scales = tuple(
            FamilyScale(name, Estimate(*one[:3]), one.p, p, one.slope, one.plain)  # type: ignore[arg-type]
            for name, one, p in zip(_SCALES, row, ps, strict=True)
        )
        plain = family_difference(values.human, values.judged, member).plain
        scales = (replace(scales[0], plain=plain), *scales[1:])
        found.append(
            FamilyPreference(
                judge=values.judge,
                measure=values.measure,
                family=family,
                systems=int(member.sum()),
                others=int((~member).sum()),
                queries=len(values.queries),
                scales=scales,
                verdict=verdict_of(scales),
            )
        )
    return found


def _compared(families: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Families to test against all others; of two, whose answers are each other's opposite, the first."""
    return dict(list(families.items())[: 1 if len(families) == 2 else None])


def verdict_of(scales: Sequence[FamilyScale], margin: float = MARGIN) -> Favour:
    """Give one verdict: a preference only where every scale shows it, the same way."""
    points = scales[0].preference
    if points.value != points.value:
        return "not tested"
    signs = {float(np.sign(one.preference.value)) for one in scales if one.p_corrected < ALPHA}
    shown = sum(one.p_corrected < ALPHA for one in scales)
    if shown == len(scales) and len(signs) == 1:
        return "favours" if signs == {1.0} else "disfavours"
    if shown:
        return "depends on scale"
    return "level" if -margin <= points.low and points.high <= margin else "inconclusive"

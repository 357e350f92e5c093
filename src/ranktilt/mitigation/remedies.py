"""Remedies of a bench: what each selected candidate does to a list, as data for engineers.

A *candidate* is a correction of a ranker at some strength. A *rule* describes it with all numbers
that it needs, for an engine that cannot run this package.
"""

from __future__ import annotations

from collections.abc import Iterable

from ranktilt.mitigation.base import Correction
from ranktilt.mitigation.bench_result import Candidate
from ranktilt.mitigation.methods import FittedMethods
from ranktilt.mitigation.projection import FittedProjection
from ranktilt.mitigation.remedy import Remedy, Rule
from ranktilt.rankers.dense.direction import Direction


def remedies_of(
    candidates: Iterable[Candidate],
    methods: FittedMethods,
    *,
    by: str,
    groups: tuple[str, ...],
    depth: int,
) -> tuple[Remedy, ...]:
    """Return the remedy of each candidate.

    A candidate without a rule, such as a newly trained ranker, is left out.

    Parameters
    ----------
    candidates : iterable of Candidate
        The candidates.
    methods : FittedMethods
        The methods that made them.
    by : str
        Column of the groups.
    groups : tuple of str
        All groups, in the order in which a rule uses them.
    depth : int
        Number of top results of each list that are corrected.
    """
    remedies = []
    for candidate in candidates:
        rule = _rule(candidate, methods)
        if rule is not None:
            remedy = Remedy(candidate=candidate.name, by=by, groups=groups, depth=depth, rule=rule)
            remedies.append(remedy)
    return tuple(remedies)


def _rule(candidate: Candidate, methods: FittedMethods) -> Rule | None:
    """Return the rule of a candidate; None if it has none."""
    fitted = methods.by_label[candidate.method]
    if isinstance(fitted, FittedProjection):
        return _projection_rule(fitted, candidate.strength)
    ranker = fitted.at_strength(candidate.strength)
    return ranker.rule() if isinstance(ranker, Correction) else None


def _projection_rule(fitted: FittedProjection, strength: float) -> Rule:
    """Return the rule of a projection, which removes a part of vectors along a direction."""
    parameters: dict[str, float | int | str] = {"strength": strength, "file": fitted.file}
    if isinstance(fitted.fit, Direction):
        parameters |= {"model": str(fitted.fit.spec["model"]), "dimensions": len(fitted.fit.vector)}
    return Rule(method="projection", reads="vectors", parameters=parameters)

"""Remedies of a bench: what each selected candidate does to a list, as data for engineers.

An engine that cannot run this package can follow a remedy's rule instead.
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
    """Return what each candidate does to a list.

    A candidate that is no rule, such as a ranker that was trained anew, is left out. `groups` has
    all groups in their order, and `depth` is the number of top results that are corrected.
    """
    remedies = []
    for candidate in candidates:
        rule = _rule(candidate, methods)
        if rule is not None:
            remedy = Remedy(candidate=candidate.name, by=by, groups=groups, depth=depth, rule=rule)
            remedies.append(remedy)
    return tuple(remedies)


def _rule(candidate: Candidate, methods: FittedMethods) -> Rule | None:
    """Return what a candidate does to a list; None if that is no rule."""
    fitted = methods.by_label[candidate.method]
    if isinstance(fitted, FittedProjection):
        return _projection_rule(fitted, candidate.strength)
    ranker = fitted.at_strength(candidate.strength)
    return ranker.rule() if isinstance(ranker, Correction) else None


def _projection_rule(fitted: FittedProjection, strength: float) -> Rule:
    """Return what a projection does to vectors: it removes a part of them along a direction."""
    parameters: dict[str, float | int | str] = {"strength": strength, "file": fitted.file}
    if isinstance(fitted.fit, Direction):
        parameters |= {"model": str(fitted.fit.spec["model"]), "dimensions": len(fitted.fit.vector)}
    return Rule(method="projection", reads="vectors", parameters=parameters)

"""A remedy: what a correction does to a list, as data for the engineers of an engine.

The engine need not run RankTilt: the rule names every number that it has to know.

The words and the pseudo-code are made in `reporting/sentences/mitigation/remedy.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class GroupConstant:
    """Constant that is added to the score of each document of a group."""

    group: str
    """Name of the group."""
    value: float
    """The constant, in the unit of the run's scores."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a correction does to one list, with all numbers that it needs."""

    method: str
    """``offset``, ``interleave``, ``det-const-sort``, ``fa-ir``, ``exposure``, ``causal`` or
    ``projection``."""
    reads: Literal["scores", "order", "vectors"]
    """What the correction needs to know about a list."""
    scale: str = ""
    """Ranker whose scores the numbers refer to; empty if scores are not read."""
    normalisation: Literal["none"] = "none"
    """Normalisation of scores before the correction: none."""
    offsets: tuple[GroupConstant, ...] = ()
    """Constants that are added to each group's scores; 0 for documents without a group."""
    protected: str = ""
    """Group that must not get too little; empty without one."""
    parameters: Mapping[str, float | int | str] = field(default_factory=dict)
    """All other numbers, such as ``strength``, ``target`` and ``seed``."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A candidate as a rule for an engine."""

    candidate: str
    """Name of the candidate."""
    by: str
    """Column of the groups."""
    groups: tuple[str, ...]
    """All groups, in the order in which the rule uses them."""
    depth: int
    """Number of top results of each list that are corrected; lower results keep their order."""
    rule: Rule
    """What the candidate does."""

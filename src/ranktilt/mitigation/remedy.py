"""A remedy: what a correction does to a list, as data that an engineer can build into an engine.

The words and the pseudo-code are made in `reporting/sentences/remedy.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class GroupConstant:
    """What is added to the score of each document of a group."""

    group: str
    value: float
    """In the unit of the run's scores."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a correction does to one list, with all numbers that it needs."""

    method: str
    """``offset``, ``interleave``, ``det-const-sort``, ``fa-ir``, ``exposure``, ``causal`` or
    ``projection``."""
    reads: Literal["scores", "order", "vectors"]
    """What it needs to know of a list."""
    scale: str = ""
    """The ranker in whose scores the numbers are; empty where scores are not read."""
    normalisation: Literal["none"] = "none"
    """What is done to scores before: nothing, they count as the ranker gives them."""
    offsets: tuple[GroupConstant, ...] = ()
    """What is added to each group's scores; 0 for documents without a group."""
    protected: str = ""
    """The group that shall not get too little; empty where no group is named."""
    parameters: Mapping[str, float | int | str] = field(default_factory=dict)
    """Every other number, such as ``strength``, ``target`` and ``seed``."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A candidate as a rule for an engine."""

    candidate: str
    """The candidate's name."""
    by: str
    """The column of the groups."""
    groups: tuple[str, ...]
    """All groups, in the order in which a rule takes them."""
    depth: int
    """Top results of each list that are corrected; results below them keep their order."""
    rule: Rule

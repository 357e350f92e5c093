"""The stages of a citation, as data: retrieved, consulted, cited.

A page is first retrieved for the query, then consulted (read) by the engine, then cited in the
answer. Pages belong to groups. The records here say which share each group has of a stage, what
made the share change on the way, and how often pages are cited by the rank at which they were
retrieved. `funnel` computes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranktilt.citing.inference.infer import Over
from ranktilt.measures.citations.funnel import Term

Stage = Literal["retrieved", "consulted", "cited", "cited without being retrieved"]
"""Name of a stage, in code and in files; the last is a part of the cited pages."""


@dataclass(frozen=True, kw_only=True)
class StageShare:
    """A group's part of the pages of one stage, in percent."""

    stage: Stage
    """The stage whose pages are counted."""
    group: str
    """Name of the group."""
    value: float
    """Percent of the pages of this stage, among those of the two groups that are compared."""
    low: float
    """Lower end of the 95 % interval; NaN with too few questions."""
    high: float
    """Upper end of the 95 % interval."""
    over: Over
    """What the interval is over: other questions, or also other units (such as domains)."""
    pages: int
    """Number of pages of the group in this stage, once for each answer."""


@dataclass(frozen=True, kw_only=True)
class FunnelPart:
    """A part of the difference between group a's share of citations and of what was retrieved."""

    name: Term
    """Name of the part; `ranktilt.measures.citations.funnel` defines each."""
    a: str
    """Group a, whose share is explained."""
    b: str
    """Group that a is compared with."""
    value: float
    """Size of the part in percentage points."""
    low: float
    """Lower end of the 95 % interval; NaN with too few questions."""
    high: float
    """Upper end of the 95 % interval."""
    over: Over
    """What the interval is over: other questions, or also other units (such as domains)."""
    p: float
    """p of the t test that the part is 0."""


@dataclass(frozen=True, kw_only=True)
class RankRate:
    """How often the pages of a group in a band of ranks are cited."""

    first: int
    """First rank of the band; 0 for pages that were consulted and not retrieved."""
    last: int
    """Last rank of the band that holds a page; 0 for pages that were not retrieved."""
    group: str
    """The group whose pages are counted."""
    value: float
    """Citation rate, 0 to 1."""
    low: float
    """Lower end of the 95 % interval; NaN with too few questions."""
    high: float
    """Upper end of the 95 % interval."""
    over: Over
    """What the interval is over: other questions, or also other units (such as domains)."""
    pages: int
    """Number of pages of the group in this band, once for each answer."""

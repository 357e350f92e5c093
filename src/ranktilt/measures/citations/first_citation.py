"""Share of first citations: how many answers cite a page of a group before all others."""

from __future__ import annotations

from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.measures.citations.share import share_estimate

NAME = "share of first citations"
QUESTION = "Which part of the first citations goes to group a?"
UNIT = "%"


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return group a's share of the first citations of answers, in percent; neutral as `share`."""
    return share_estimate(rows, rows.weight * rows.is_first)

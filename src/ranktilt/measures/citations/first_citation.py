"""Share of first citations: in how many answers the first cited page is of a group."""

from __future__ import annotations

from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.measures.citations.share import share_estimate

NAME = "share of first citations"
QUESTION = "Which part of the first citations goes to group a?"
UNIT = "%"


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return group a's share of the first citations of answers, in percent.

    Neutral is group a's share of the pool, as for `share.estimate`.
    """
    return share_estimate(rows, rows.weight * rows.is_first)

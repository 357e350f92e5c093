"""Share of first citations: in how many answers the first cited page is of a group.

The pages that answers cite are of two groups, a and b.
"""

from __future__ import annotations

from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.measures.citations.share import share_estimate

NAME = "share of first citations"
"""Name of the question in reports."""
QUESTION = "Which part of the first citations goes to group a?"
"""The question in words."""
UNIT = "%"
"""Unit of the value."""


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return group a's share of the first citations of answers, in percent.

    Neutral, the value that favours neither group, is group a's share of the pages that could have
    been cited.
    """
    return share_estimate(rows, rows.weight * rows.is_first)

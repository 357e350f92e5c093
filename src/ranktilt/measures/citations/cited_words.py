"""Share of cited words: which part of the answers' text rests on a group's pages.

The pages that answers cite are of two groups, a and b.
"""

from __future__ import annotations

import numpy as np

from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.measures.citations.share import share_estimate

NAME = "share of cited words"
"""Name of the question in reports."""
QUESTION = "Which part of the words with citations rests on group a?"
"""The question in words."""
UNIT = "%"
"""Unit of the value."""


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return group a's share of cited words, in percent.

    A cited word is a word of a sentence that cites a page. The words of a sentence are divided
    evenly among the pages that it cites (Aggarwal et al., GEO, KDD 2024, sec. 2.2.1), without
    their discount for sentences further down. Neutral, the value that favours neither group, is
    group a's share of the pages that could have been cited. The share is NaN where no answer says
    which words a citation supports.
    """
    return share_estimate(rows, rows.weight * np.nan_to_num(rows.cited_words))

"""Share of cited words: how much of the answers' text rests on a group's pages."""

from __future__ import annotations

import numpy as np

from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.measures.citations.share import share_estimate

NAME = "share of cited words"
QUESTION = "Which part of the words with citations rests on group a?"
UNIT = "%"


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return group a's share of cited words, in percent; neutral as `share`.

    The words of a sentence are divided evenly among the pages that it cites (Aggarwal et al., GEO,
    KDD 2024, sec. 2.2.1). Undefined where answers have no spans.
    """
    return share_estimate(rows, rows.weight * np.nan_to_num(rows.cited_words))

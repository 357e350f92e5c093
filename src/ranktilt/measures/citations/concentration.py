"""Concentration: over how many domains citations are spread.

An answer of an engine *cites* pages, and the *domain* of a page is the site that it is from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.measures.citations.base import Floats


@dataclass(frozen=True, kw_only=True)
class Concentration:
    """How citations are spread over domains."""

    effective_number: float
    """Effective number of domains: 1 / Σ p², with p each domain's part of the citations.

    Ten domains with equally many citations give 10, and ten with unequally many give less. NaN
    without citations.
    """
    largest_share: float
    """Part of the citations that goes to the most cited domain, 0 to 1; NaN without citations."""


def concentration(counts: Floats) -> Concentration:
    """Return how concentrated citations are; `counts` has the number for each domain."""
    total = float(np.sum(counts))
    if total <= 0:
        return Concentration(effective_number=np.nan, largest_share=np.nan)
    shares = np.asarray(counts, dtype=np.float64) / total
    return Concentration(
        effective_number=float(1 / np.sum(shares**2)), largest_share=float(shares.max())
    )

"""Concentration: over how many domains citations are spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.measures.citations.base import Floats


@dataclass(frozen=True, kw_only=True)
class Concentration:
    """How citations are spread over domains."""

    effective_number: float
    """1 / Σ p²: the number of equally cited domains that would be as concentrated."""
    largest_share: float
    """Part of the citations that goes to the most cited domain, from 0 to 1."""


def concentration(counts: Floats) -> Concentration:
    """Return the concentration of counts, one a domain; NaN where all are 0."""
    total = float(np.sum(counts))
    if total <= 0:
        return Concentration(effective_number=np.nan, largest_share=np.nan)
    shares = np.asarray(counts, dtype=np.float64) / total
    return Concentration(
        effective_number=float(1 / np.sum(shares**2)), largest_share=float(shares.max())
    )

"""How far twins differ in a property of texts, in standard deviations: Hedges' g of paired values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_Z95 = 1.959963984540054


@dataclass(frozen=True)
class EffectSize:
    """How far the texts of one source differ from their twins in the reference."""

    source: str
    what: str
    """What was measured of every text: ``words``."""
    pairs: int
    """Twins with a value on both sides."""
    reference_mean: float
    source_mean: float
    g: float
    """Hedges' g; positive where the source has more of it than the reference. NaN where it is undefined."""
    low: float
    high: float
    """95 % interval."""

    @property
    def shown(self) -> bool:
        return self.low > 0 or self.high < 0

    def derived(self) -> dict[str, Any]:
        return {"shown": self.shown}


def effect_size(source: str, what: str, reference: Floats, values: Floats) -> EffectSize:
    """Compare a property of twins, which stand in one row of both arrays; pairs with a NaN are left out."""
    known = ~(np.isnan(reference) | np.isnan(values))
    a, b = reference[known], values[known]
    means = (float(a.mean()), float(b.mean())) if len(a) else (np.nan, np.nan)
    return EffectSize(source, what, len(a), *means, *hedges_g(a, b))


def hedges_g(a: Floats, b: Floats) -> tuple[float, float, float]:
    """Compute Hedges' g of paired values, with its 95 % interval.

    The mean of b − a over the root of the two variances' mean, times 1 − 3 / (4(n − 1) − 1) against the bias of small
    samples (Hedges, Journal of Educational Statistics 6, 1981; interval: Bonett, Psychological Methods 13, 2008). NaN
    below three pairs, and where neither side varies.
    """
    n = len(a)
    if n < 3:
        return np.nan, np.nan, np.nan
    (aa, ab), (_, bb) = np.cov(a, b).tolist()
    variance = (aa + bb) / 2
    if not variance > 0:
        return np.nan, np.nan, np.nan
    d = float(np.mean(b - a)) / np.sqrt(variance)
    spread = d**2 * (aa**2 + bb**2 + 2 * ab**2) / (8 * variance**2) + (aa + bb - 2 * ab) / variance
    correction = 1 - 3 / (4 * (n - 1) - 1)
    g, half = correction * d, _Z95 * correction * np.sqrt(spread / (n - 1))
    return float(g), float(g - half), float(g + half)

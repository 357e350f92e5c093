"""A distribution over pairs of texts: its values, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
ABOVE = 0.95
"""Cosine above which the paper finds most twins."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Values of one quantity over pairs of texts, NaN where it is undefined."""

    name: str
    values: Floats
    range: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def defined(self) -> Floats:
        """The values that are not NaN, in the same order."""
        return self.values[~np.isnan(self.values)]

    @property
    def count(self) -> int:
        return len(self.defined)

    @property
    def undefined(self) -> int:
        return len(self.values) - self.count

    @property
    def mean(self) -> float:
        return float(np.mean(self.defined)) if self.count else np.nan

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The values below which a quarter, half and three quarters lie (linear interpolation); NaN without values."""
        if not self.count:
            return np.nan, np.nan, np.nan
        low, middle, high = np.quantile(self.defined, (0.25, 0.5, 0.75)).tolist()
        return low, middle, high

    def above(self, limit: float) -> float:
        """Return the share of the defined values that are larger than `limit`, 0 to 1; NaN without values."""
        return float(np.mean(self.defined > limit)) if self.count else np.nan

    def derived(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("count", "undefined", "mean", "quartiles")}


@dataclass(frozen=True, eq=False)
class Cosines(Distribution):
    """Cosines of pairs of vectors, −1 to 1."""

    range: tuple[float, float] = (-1.0, 1.0)

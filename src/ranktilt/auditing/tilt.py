"""From per-query values to Relative Δ with interval, test, random band and verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.inference import (
    correct,
    detectable_effect,
    interval,
    resampled_means,
    shuffle_p,
    sign_flip_ps,
    t_test_p,
    together,
)
from ranktilt.measures.origins import Cells, widened

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
LEVEL = 5.0
ALPHA = 0.05
FEW_QUERIES = 30


@dataclass(frozen=True)
class Tilt:
    """Relative Δ of one run and measure between two groups; all effects in percent."""

    run: str
    measure: str
    a: str
    b: str
    mean_a: float
    mean_b: float
    value: float
    """Relative Δ; positive favours `a`."""
    low: float
    high: float
    """95 % bootstrap interval."""
    error: float
    """Standard error: the resamples' standard deviation."""
    p: float
    p_corrected: float
    queries: int
    """Queries with a relevant document in both groups; the others are excluded."""
    excluded: int
    dropped: int
    """Resamples in which Relative Δ was undefined."""
    band_low: float
    band_high: float
    """What random labels give in 95 %; both 0 for twins."""
    twins: bool
    """Whether each relevant document has a twin on the other side, so that 0 is level."""
    tests: int = 1
    """Tests of the table, which are corrected together."""
    votes: int = -1
    """Distinct queries in which either side is above 0, or origins of twins where these are fewer; −1: not known."""

    @property
    def detectable(self) -> float:
        """Smallest absolute Relative Δ that this table detects with 80 % power: see `detectable_effect`."""
        return detectable_effect(self.error, self.tests, self.sample)

    @property
    def sample(self) -> int:
        """Votes; all queries where they are not known."""
        return self.queries if self.votes < 0 else self.votes

    @property
    def testable(self) -> bool:
        """Whether the sample is large enough for a p of turned signs below .05: six for one test of twins."""
        return 2.0 ** (1 - self.sample) * (self.tests if self.twins else 1) < ALPHA

    @property
    def level_value(self) -> float:
        """Relative Δ that favours nobody: 0 for twins, the middle of the random band otherwise."""
        return 0.0 if self.twins else (self.band_low + self.band_high) / 2

    def verdict(self, level: float = LEVEL) -> Literal["a", "b", "level", "inconclusive"]:
        """Say which side is favoured: corrected p < .05 and the interval excludes the level value.

        Where groups are not twins, p itself comes from the random labels behind the band.

        Parameters
        ----------
        level : float, optional
            Half-width, in percent, of what counts as level.

        Returns
        -------
        {"a", "b", "level", "inconclusive"}
            The favoured side; ``level`` where the whole interval lies within ±`level` of the level value. Neither
            where there are too few queries for any test (`testable`).
        """
        if np.isnan(self.low) or np.isnan(self.value) or not self.testable:
            return "inconclusive"
        at = self.level_value
        if self.p_corrected < ALPHA and self.low > at:
            return "a"
        if self.p_corrected < ALPHA and self.high < at:
            return "b"
        if at - level <= self.low and self.high <= at + level:
            return "level"
        return "inconclusive"

    def swapped(self) -> Tilt:
        """Return the same comparison seen from the other side: every sign turned."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            mean_a=self.mean_b,
            mean_b=self.mean_a,
            value=-self.value + 0.0,
            low=-self.high + 0.0,
            high=-self.low + 0.0,
            band_low=-self.band_high + 0.0,
            band_high=-self.band_low + 0.0,
        )

    def row(self) -> dict[str, Any]:
        """Return the fields, and the detectable effect, by name."""
        return {**asdict(self), "detectable": self.detectable}

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Tilt:
        """Make it from what `row` gives; null stands for NaN."""
        fields: dict[str, Any] = {k: (np.nan if v is None else v) for k, v in row.items() if k != "detectable"}
        return cls(**fields)


class Chance(NamedTuple):
    """What random labels give, and how far out a value lies among it."""

    low: float
    high: float
    """95 % of random labels lie between."""
    p: float

    @classmethod
    def of(cls, value: float, null: Floats) -> Chance:
        """Place a value among those under random labels."""
        band = interval(null)
        return cls(band.low, band.high, shuffle_p(value, null))


@dataclass(frozen=True)
class Side:
    """Per-query values of both groups for one run and measure, before any statistics."""

    run: str
    measure: str
    a: str
    b: str
    values_a: Floats
    values_b: Floats
    chance: Chance | None = None
    """What random labels give; None for twins."""
    distinct: Ints | None = None
    """Number of the query that each query repeats, its own for most; None where none is repeated."""
    cells: Cells | None = None
    """What relevant documents add to both sides' sums, for twins."""
    exchange_p: float = 0.0
    """The p of exchanged labels, for twins."""

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Queries with a relevant document in both groups."""
        mask: npt.NDArray[np.bool_] = ~(np.isnan(self.values_a) | np.isnan(self.values_b))
        return mask

    def among(self, null: Floats) -> Side:
        """Judge it by what Relative Δ is under random labels."""
        a, b = (np.mean(v[self.mask]) if self.mask.any() else np.nan for v in (self.values_a, self.values_b))
        return replace(self, chance=Chance.of(float(relative_delta(a, b)), null))


@dataclass(frozen=True)
class Statistics:
    """How certainty is computed.

    Parameters
    ----------
    resamples : int
        Bootstrap resamples and sign flips.
    seed : int
        Of both.
    test : {"permutation", "t"}
        Paired test for twins; where groups are not twins, labels are shuffled instead.
    correction : {"holm", "bonferroni"}
        Over all p-values of the table.
    rounding : {"none", "paper"}
        Of the means before Relative Δ.
    """

    resamples: int
    seed: int
    test: str
    correction: str
    rounding: str


def tilts(sides: Sequence[Side], how: Statistics) -> tuple[Tilt, ...]:
    """Compute Relative Δ, interval and corrected p of every comparison in one table.

    Comparisons over the same queries share their resamples.
    """
    families: dict[bytes, list[int]] = defaultdict(list)
    for index, side in enumerate(sides):
        repeated = b"" if side.distinct is None else side.distinct.tobytes()
        families[side.mask.tobytes() + repeated].append(index)
    made: dict[int, Tilt] = {}
    for members in families.values():
        made.update(_family([(i, sides[i]) for i in members], how))
    ordered = [made[i] for i in range(len(sides))]
    return corrected_tilts(ordered, how.correction)


def corrected_tilts(found: Sequence[Tilt], correction: str) -> tuple[Tilt, ...]:
    """Correct the p of all tilts of one table together."""
    tests = sum(t.p == t.p for t in found)
    corrected = correct([t.p for t in found], correction)
    return tuple(replace(t, p_corrected=float(p), tests=max(tests, 1)) for t, p in zip(found, corrected, strict=True))


def _family(members: list[tuple[int, Side]], how: Statistics) -> dict[int, Tilt]:
    mask, distinct = members[0][1].mask, members[0][1].distinct
    distinct = None if distinct is None else distinct[mask]
    columns = [together(values[mask], distinct) for _, side in members for values in (side.values_a, side.values_b)]
    means = resampled_means(columns, resamples=how.resamples, seed=how.seed)
    differences = [a - b for a, b in zip(columns[::2], columns[1::2], strict=True)]
    twin = [i for i, (_, side) in enumerate(members) if side.chance is None]
    ps = dict(zip(twin, _paired_ps([differences[i] for i in twin], how), strict=True))
    made = {}
    for position, (index, side) in enumerate(members):
        samples = relative_delta(means[2 * position], means[2 * position + 1])
        rows = columns[2 * position], columns[2 * position + 1]
        made[index] = _tilt(side, rows, samples, ps.get(position), how.rounding)
    return made


def _paired_ps(differences: list[Floats], how: Statistics) -> list[float]:
    if how.test == "t":
        return [t_test_p(d) for d in differences]
    return sign_flip_ps(differences, resamples=how.resamples, seed=how.seed)


def _tilt(side: Side, rows: tuple[Floats, Floats], samples: Floats, p: float | None, rounding: str) -> Tilt:
    """One comparison from the sums of its distinct queries, resampled tilts, and the p over queries of twins."""
    a, b = (float(np.mean(v[side.mask])) if side.mask.any() else np.nan for v in (side.values_a, side.values_b))
    value = float(relative_delta(a, b, rounding=rounding))
    band_low = band_high = 0.0
    if side.chance is not None:
        band_low, band_high, p = side.chance
    elif p is not None:
        p = max(p, side.exchange_p)
    if side.cells is not None:
        samples = _two_way(side.cells, rows, float(relative_delta(a, b)), samples)
    spread = interval(samples)
    n = int(side.mask.sum())
    votes = int(((rows[0] > 0) | (rows[1] > 0)).sum())
    votes = votes if side.cells is None else min(votes, int(np.count_nonzero(np.bincount(side.cells.origin))))
    return Tilt(
        side.run, side.measure, side.a, side.b, a, b, value, spread.low, spread.high, spread.error,
        np.nan if p is None or np.isnan(value) else p, np.nan, n, len(side.mask) - n, spread.dropped,
        band_low, band_high, side.chance is None, votes=votes,
    )  # fmt: skip


def _two_way(cells: Cells, rows: tuple[Floats, Floats], value: float, samples: Floats) -> Floats:
    """Widen resampled tilts by what documents add to their variance."""
    if value != value:
        return samples
    share = value / 100
    residuals = rows[0] - rows[1] - share * (rows[0] + rows[1]) / 2
    return np.clip(widened(samples, value, residuals, cells.variance(share)), -200.0, 200.0)

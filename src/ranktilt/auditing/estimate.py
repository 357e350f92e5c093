"""One question of the estimand card, answered: a value with its interval, its p and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.tilt import ALPHA, Tilt
from ranktilt.measures.inference import detectable_effect

Kind = Literal["relative delta", "page", "relevant twins", "other twins", "twins", "rank gap", "score gap"]
_NEGATED = ("raw", "shares")
_SIDES = ("a", "b")


@dataclass(frozen=True)
class Estimate:
    """What one run says to one question about two groups.

    Positive values favour `a`. The units: percent for Relative Δ; for ΔNDSR a difference of shares in [−1, 1]; for
    head-to-head the share of twins that `a` wins minus the share it loses, in [−1, 1]; ranks for the rank gap (per
    relevant pair, or per query where nothing is judged); standard deviations of a query's scores for the score gap.
    """

    run: str
    kind: Kind
    name: str
    """As printed: ``Relative Δ nDCG@3``, ``ΔNDSR@20``, ``head-to-head, relevant twins`` …"""
    a: str
    b: str
    value: float
    low: float
    high: float
    """95 % bootstrap interval over queries."""
    error: float
    """Standard error: the resamples' standard deviation."""
    p: float
    p_corrected: float
    """Over every p of the card but those of score gaps, which only describe and keep their own."""
    queries: int
    """Queries that say something about it."""
    level: float = 0.0
    """The value that favours nobody: 0 for twins, the middle of the random band otherwise."""
    band_low: float = 0.0
    band_high: float = 0.0
    """What random labels give in 95 %; both 0 for twins by source."""
    extra: Mapping[str, float] = field(default_factory=dict)
    """Counts behind it: ``pairs``, ``wins`` (of `a`), ``losses``, ``ties``, ``absent`` (share of sides not retrieved),
    ``raw`` (mean gap in the scores' own unit), ``whole`` (pairs with both sides retrieved) and what `a` wins and
    loses of them."""
    tests: int = 1
    """Tests of the card, which are corrected together; 1 for score gaps."""
    votes: int = -1
    """Distinct queries that say something, or origins of twins where these are fewer; −1 where this is not known."""

    @property
    def detectable(self) -> float:
        """Smallest absolute effect that this card detects with 80 % power: see `detectable_effect`."""
        return detectable_effect(self.error, self.tests, self.sample)

    @property
    def sample(self) -> int:
        """Votes; all queries where they are not known."""
        return self.queries if self.votes < 0 else self.votes

    @property
    def testable(self) -> bool:
        """Whether the sample is large enough for a p of turned signs below .05: six."""
        return 2.0 ** (1 - self.sample) < ALPHA

    @property
    def banded(self) -> bool:
        """Whether it is judged by random labels, and they give anything but 0."""
        return not (self.band_low == self.band_high == 0)

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The side on which the whole interval lies, seen from the level value; empty where it holds it."""
        if self.low > self._middle:
            return "a"
        return "b" if self.high < self._middle else ""

    @property
    def favours(self) -> Literal["a", "b", ""]:
        """The side that it leans to, where p is below .05 too and rests on enough; the score gap only describes."""
        return self.leans if self.p_corrected < ALPHA and self.testable and self.kind != "score gap" else ""

    @property
    def _middle(self) -> float:
        """The level value; by the band, because files of older versions hold the groups' shares in its place."""
        return (self.band_low + self.band_high) / 2 if self.banded else self.level

    def side(self, which: str) -> str:
        """Name of the group `a` or `b`; empty for neither."""
        return {"a": self.a, "b": self.b}.get(which, "")

    def swapped(self) -> Estimate:
        """Return the same estimate seen from the other side: every sign turned."""
        extra = {k: (-v + 0.0 if k in _NEGATED else v) for k, v in self.extra.items()}
        for one, two in (("wins", "losses"), ("whole_wins", "whole_losses")):
            if one in extra:
                extra[one], extra[two] = extra[two], extra[one]
        return replace(
            self,
            a=self.b,
            b=self.a,
            value=-self.value + 0.0,
            low=-self.high + 0.0,
            high=-self.low + 0.0,
            level=-self.level + 0.0,
            band_low=-self.band_high + 0.0,
            band_high=-self.band_low + 0.0,
            extra=extra,
        )

    def row(self) -> dict[str, Any]:
        """Return the fields, and the detectable effect, by name."""
        return {**asdict(self), "extra": dict(self.extra), "detectable": self.detectable}

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Estimate:
        """Make it from what `row` gives; null stands for NaN."""
        fields: dict[str, Any] = {k: (float("nan") if v is None else v) for k, v in row.items() if k != "detectable"}
        fields["extra"] = {k: (float("nan") if v is None else v) for k, v in row["extra"].items()}
        return cls(**fields)

    @classmethod
    def of_tilt(cls, tilt: Tilt) -> Estimate:
        """Turn a Relative Δ into a row of the card."""
        return cls(
            tilt.run, "relative delta", f"Relative Δ {tilt.measure}", tilt.a, tilt.b, tilt.value, tilt.low, tilt.high,
            tilt.error, tilt.p, np.nan, tilt.queries, tilt.level_value, tilt.band_low, tilt.band_high, votes=tilt.votes,
        )  # fmt: skip


def conflicts(estimates: Iterable[Estimate]) -> str:
    """Say in words that questions about one run and pair have opposite answers; empty where they do not.

    Parameters
    ----------
    estimates : iterable of Estimate
        The card of one run and pair. The score gap is descriptive and never part of a conflict.

    Returns
    -------
    str
        One sentence, or nothing.
    """
    asked = [e for e in estimates if e.favours]
    sides = {which: [e.name for e in asked if e.favours == which] for which in _SIDES}
    if not all(sides.values()):
        return ""
    first = asked[0]
    said = [
        f"{' and '.join(names)} point{'' if len(names) > 1 else 's'} to {first.side(w)}" for w, names in sides.items()
    ]
    return (
        f"{first.run}: the answers conflict: {'; '.join(said)}. Say which question you ask before you say what this "
        "ranker favours."
    )

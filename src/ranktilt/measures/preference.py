"""Preference: how much more often than half the time one group's document of a pair is chosen."""

from __future__ import annotations

from dataclasses import dataclass, field

from ranktilt.measures.base import Estimand


@dataclass(frozen=True, repr=False)
class PreferenceOfPairs(Estimand):
    """Share of the choices between two groups that the first one got, minus a half.

    −.5 to .5, where 0 is level. Its columns are ``(chosen of the first − chosen of the second)/2``
    and the sum of both. Wang et al., NAACL 2024, whose ratio of both groups' shares is ``(.5 +
    value)/(.5 − value)``.
    """

    pairs: str = field(default="relevant", kw_only=True)
    """Whether both documents are relevant to the query, or both are not."""

    name = "Preference"
    kind = "choices"
    unit = "pair"
    choices = {"pairs": ("relevant", "irrelevant")}  # noqa: RUF012
    question = "which of two documents is chosen?"
    bounds = (-0.5, 0.5)
    scale = 100.0
    suffix = " points"

    @property
    def title(self) -> str:
        return f"preference on {self.pairs} pairs"


Preference = PreferenceOfPairs()

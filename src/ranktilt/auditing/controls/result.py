"""What controls found: rows of an audit's table of controls.

A *control* takes away one difference between twins, such as their lengths, and audits again.
*Twins* are two versions of one document, one in each of two compared groups. A *tilt* is Relative Δ
of one run; without a control, it is *raw*. `Audit.controls` holds these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ranktilt.auditing.effects import Effect

RAW = "raw"
"""Name of the control that changes nothing."""


class Move(NamedTuple):
    """How far a tilt moved under a control: Relative Δ minus the raw one, in points."""

    value: float
    """The difference."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    queries: int
    """Number of queries that both audits have."""
    neutral: float = 0.0
    """Difference that favours nobody.

    0 for twins, else the difference between both audits' medians under random labels.
    """

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes the neutral difference."""
        return self.low > self.neutral or self.high < self.neutral


Obstacle = Literal["no twins", "saved run", "engine", "no tokens", "no token limit", "titles only"]
"""Reason why a control cannot be applied to a run."""


@dataclass(frozen=True, kw_only=True)
class ControlChange:
    """How a control changed the texts that a run ranks."""

    outcome: Literal["raw", "changed", "unchanged", "not applicable", "nothing left", "refused"]
    """What the control did to the run.

    ``unchanged``: nothing that the run reads was changed; ``nothing left``: there is nothing left
    to compare; ``refused``: the rest cannot be audited.
    """
    changed: int = 0
    """Number of documents whose texts changed, or of pairs of twins that were left out."""
    total: int = 0
    """Number of documents, or of pairs of twins, that could have been changed."""
    unit: Literal["documents", "pairs"] = "documents"
    """What `changed` and `total` count."""
    near: float = np.nan
    """Jaccard similarity of terms from which near-identical pairs are left out.

    NaN for other controls.
    """
    obstacle: Obstacle | None = None
    """Reason why the control is not applicable."""
    error: str = ""
    """Reason why the rest cannot be audited."""


@dataclass(frozen=True, kw_only=True)
class Controlled:
    """Relative Δ of one run and pair of groups under one control."""

    run: str
    """Name of the run."""
    control: str
    """Name of the control, or `RAW`."""
    a: str
    """The first group."""
    b: str
    """The second group."""
    control_change: ControlChange
    """How many texts the control changed, or why it was not applied."""
    tilts: tuple[Effect, ...]
    """Relative Δ on each measure; empty if the control was not applied."""
    moves: tuple[Move, ...]
    """How far Relative Δ moved on each measure; empty for `RAW`."""

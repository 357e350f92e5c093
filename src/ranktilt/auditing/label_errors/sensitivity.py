"""How much more often labels must err in the first ranks than below to explain a finding away."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ranktilt.auditing.effects import Effect
from ranktilt.measures.share import ShareOfFirstRanks
from ranktilt.statistics.label_errors import explaining_difference


@dataclass(frozen=True, kw_only=True)
class LabelSensitivity:
    """What errors of labels would explain one finding away.

    Errors that do not depend on rank only pull an answer toward neutral. Those that are more
    frequent in the first ranks than in the list can make a finding.
    """

    run: str
    measure: str
    a: str
    b: str
    cutoff: int
    """Number of first ranks."""
    share: float
    """Share of the favoured group in the first ranks, 0 to 1, by the labels as they are."""
    one_kind: float
    """Difference between the error rate in the first ranks and in the list that explains the
    finding, where only one group is mistaken for the other; 0 to 1, above 1 where none does."""
    both_kinds: float
    """The same where one group is mistaken more often, and the other as much less often."""


def label_sensitivities(effects: Iterable[Effect]) -> list[LabelSensitivity]:
    """Return what would explain each finding on Share@k away; other answers are left out.

    Of documents that are twins the origin is known, and no label can err.
    """
    sensitivities = []
    for effect in effects:
        estimand = effect.estimand
        is_share = isinstance(estimand, ShareOfFirstRanks) and estimand.cutoff is not None
        if not is_share or effect.twins or not effect.favours:
            continue
        sensitivities.append(_sensitivity(effect, estimand.cutoff or 0))
    return sensitivities


def _sensitivity(effect: Effect, cutoff: int) -> LabelSensitivity:
    favoured = effect if effect.favours == "a" else effect.swapped()
    # Labels err as they are: the finding to explain away is that of the observed answer.
    observed = favoured.observed
    low = favoured.low if observed is None else observed.low
    neutral = favoured.neutral if observed is None else observed.neutral
    share = favoured.details.get("even_a", math.nan) + favoured.value
    difference = explaining_difference(low - neutral, min(max(share, 0.0), 1.0))
    return LabelSensitivity(
        run=effect.run,
        measure=effect.measure,
        a=favoured.a,
        b=favoured.b,
        cutoff=cutoff,
        share=share,
        one_kind=difference.one_kind,
        both_kinds=difference.both_kinds,
    )

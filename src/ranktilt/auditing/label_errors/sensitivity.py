"""How much more often labels must err in the first ranks than below to explain a finding away.

A *finding* is an answer that favours a group. Nobody can say whether labels err more often in the
first ranks than elsewhere, so the audit says how much more often they would have to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ranktilt.auditing.effects import Effect
from ranktilt.measures.share import ShareOfFirstRanks
from ranktilt.statistics.label_errors import explaining_difference


@dataclass(frozen=True, kw_only=True)
class LabelSensitivity:
    """How unevenly labels would have to err to explain one finding away.

    Errors that do not depend on rank only pull an answer toward its neutral value. Errors that are
    more frequent in the first ranks than in the list can look like a finding.
    """

    run: str
    """Name of the run."""
    measure: str
    """Notation of the question, such as ``Share@10``."""
    a: str
    """The favoured group."""
    b: str
    """The other group."""
    cutoff: int
    """Number of first ranks."""
    share: float
    """Share of the favoured group in the first ranks, 0 to 1.

    It is corrected for label errors if the answer is: errors in the first ranks change the labels
    of documents that are truly of the group.
    """
    one_kind: float
    """Error rate in the first ranks minus that in the list, if it explains the finding.

    Here only documents of one group get the wrong label. 0 to 1; above 1 if no difference is large
    enough.
    """
    both_kinds: float
    """The difference if the error rate of one group is higher, and that of the other lower by as
    much."""


def label_sensitivities(effects: Iterable[Effect]) -> list[LabelSensitivity]:
    """Return how unevenly labels would have to err to explain each finding on Share@k away.

    Other answers are left out, and those about twins: a twin is known to be a version of another
    document, so that its label cannot be wrong.
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
    """Return how unevenly labels would have to err to explain a finding away."""
    # Seen from the favoured group, the finding is an interval above the neutral value.
    favoured = effect if effect.favours == "a" else effect.swapped()
    # If the answer is corrected for label errors, the finding to explain away is the observed one.
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

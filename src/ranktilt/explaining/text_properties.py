"""Properties of texts that gaps between twins are attributed to.

*Twins* are two documents of the same origin, one by the *reference* and one by another source
(author). A *gap* is how much higher a ranker scores or ranks the reference's document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, refuse_twice
from ranktilt.explaining.base import Floats, TextProbe
from ranktilt.explaining.perplexity import PerplexityProbe
from ranktilt.explaining.text_probes import (
    QueryWordsProbe,
    ReadabilityProbe,
    SentenceLengthProbe,
    SpecificityProbe,
    TypeTokenProbe,
    WordsProbe,
)
from ranktilt.explaining.twin_gaps import TwinPairRows
from ranktilt.rankers.base import Ranker
from ranktilt.statistics.regression.least_squares import MOST_REGRESSORS


@dataclass(frozen=True, kw_only=True, eq=False)
class TextProperty:
    """A property of texts, measured for every document."""

    name: str
    """Name of the property."""
    probe: TextProbe
    """Probe that measures it."""
    values: Floats
    """Values that the probe measured, in the order of ``collection.docs``."""

    @classmethod
    def from_probe(
        cls, probe: TextProbe, collection: Collection, reference: str, ranker: Ranker | None
    ) -> TextProperty:
        """Measure every document with a probe."""
        return cls(
            name=property_name(probe),
            probe=probe,
            values=probe.measure(collection, reference, ranker),
        )

    def differences(self, collection: Collection, pairs: TwinPairRows) -> Floats:
        """Return the value of the reference's document minus that of its twin, for each pair."""
        query = pairs.query
        reference_values = self.probe.of_pairs(collection, self.values, query, pairs.reference)
        twin_values = self.probe.of_pairs(collection, self.values, query, pairs.twin)
        return reference_values - twin_values


def default_properties() -> list[TextProbe]:
    """Return the properties that need no model."""
    return [
        PerplexityProbe(),
        WordsProbe(),
        SpecificityProbe(),
        ReadabilityProbe(),
        SentenceLengthProbe(),
        TypeTokenProbe(),
        QueryWordsProbe(),
    ]


def property_name(probe: TextProbe) -> str:
    """Return the name of the property that a probe measures."""
    return probe.label or probe.name


def require_properties(probes: Sequence[TextProbe]) -> None:
    """Refuse no properties, more than a regression can have, and a property that occurs twice."""
    if not 1 <= len(probes) <= MOST_REGRESSORS:
        raise UserError(
            f"attribution: expected 1 to {MOST_REGRESSORS} properties, got {len(probes)}"
        )
    refuse_twice([property_name(probe) for probe in probes], "attribution: property")

"""Negatives like their positive in perplexity and specificity, so that a retriever cannot learn these as relevance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.data.collection import Collection
from ranktilt.data.stated_sources import with_source
from ranktilt.explaining.base import TextProbe
from ranktilt.explaining.perplexity import PerplexityProbe
from ranktilt.explaining.text_probes import SpecificityProbe

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
CALIPER = 0.2
"""Standard deviations by which a match may differ in each property (Austin, Pharmaceutical Statistics 10, 2011)."""


@dataclass(frozen=True, eq=False)
class TextProperties:
    """Perplexity and specificity of texts without titles, in standard deviations from the mean; 0 where undefined."""

    names: tuple[str, ...]
    values: Floats
    """Shape (n_documents, n_properties)."""

    @classmethod
    def from_collection(cls, part: Collection) -> TextProperties:
        """Measure the documents that are learned from, once for all trainings on them."""
        probes: tuple[TextProbe, ...] = (PerplexityProbe(), SpecificityProbe())
        named = with_source(part, "any")  # a probe needs a reference; nobody sees its name
        reference = named.sources[0]

        def measure() -> Floats:
            return np.column_stack(
                [_standardized(probe.measure(named, reference, None)) for probe in probes]
            )

        return cls(tuple(probe.name for probe in probes), part.memo((__name__, reference), measure))

    def matched(self, positive: int, candidates: Ints, count: int) -> Ints:
        """Return the candidates within the caliper of a positive; the nearest `count` where there are fewer."""
        apart = self.values[candidates] - self.values[positive]
        within: Ints = candidates[(np.abs(apart) <= CALIPER).all(axis=1)]
        if len(within) >= count:
            return within
        nearest: Ints = candidates[np.argsort(np.square(apart).sum(axis=1), kind="stable")[:count]]
        return nearest

    def imbalance(self, documents: Ints) -> Mapping[str, float]:
        """Mean of positives less negatives, in standard deviations; a row of documents begins with its positive."""
        apart = self.values[documents[:, 0]][:, None] - self.values[documents[:, 1:]]
        return dict(zip(self.names, apart.mean(axis=(0, 1)).tolist(), strict=True))


def _standardized(values: Floats) -> Floats:
    known = values[~np.isnan(values)]
    spread = float(known.std()) if len(known) else 0.0
    return np.nan_to_num((values - known.mean()) / spread) if spread else np.zeros(len(values))

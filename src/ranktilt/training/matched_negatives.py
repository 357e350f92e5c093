"""Negatives that are like their positive in perplexity and specificity.

Perplexity is how unexpected a language model finds the text; specificity is how rare its words are
in the collection. A retriever that learns from such negatives cannot use these two properties as
signs of relevance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.data.collection import Collection
from ranktilt.data.labels.stated_sources import with_source
from ranktilt.explaining.base import TextProbe
from ranktilt.explaining.perplexity import PerplexityProbe
from ranktilt.explaining.text_probes import SpecificityProbe

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
CALIPER = 0.2
"""Largest difference between a match and its positive, in standard deviations of each property.

A caliper is the distance within which two units count as a match. The width is the one that
Austin (Pharmaceutical Statistics 10, 2011) recommends.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextProperties:
    """Perplexity and specificity of texts without titles.

    Each is given in standard deviations above or below the mean of the documents. Where it is
    undefined it counts as average, 0.
    """

    names: tuple[str, ...]
    """Names of the properties."""
    values: Floats
    """Values of shape (n_documents, n_properties)."""

    @classmethod
    def from_collection(cls, part: Collection) -> TextProperties:
        """Measure the documents that are learned from, once for all trainings on them."""
        probes: tuple[TextProbe, ...] = (PerplexityProbe(), SpecificityProbe())
        documents = with_source(part, "any")  # a probe needs a reference; nobody sees its name
        reference = documents.sources[0]

        def measure() -> Floats:
            return np.column_stack(
                [_standardized(probe.measure(documents, reference, None)) for probe in probes]
            )

        return cls(
            names=tuple(probe.name for probe in probes),
            values=part.memo((__name__, reference), measure),
        )

    def matched(self, positive: int, candidates: Ints, count: int) -> Ints:
        """Return the candidates that differ from a positive by at most `CALIPER` in each property.

        If these are fewer than `count`, return the nearest `count`. Documents are rows.
        """
        differences = self.values[candidates] - self.values[positive]
        within: Ints = candidates[(np.abs(differences) <= CALIPER).all(axis=1)]
        if len(within) >= count:
            return within
        distances = np.square(differences).sum(axis=1)
        nearest: Ints = candidates[np.argsort(distances, kind="stable")[:count]]
        return nearest

    def imbalance(self, documents: Ints) -> Mapping[str, float]:
        """Return the mean of the positives minus that of the negatives, by property.

        The difference is in standard deviations.

        `documents` has shape (n_rows, n_documents); a row begins with its positive.
        """
        positives, negatives = documents[:, :1], documents[:, 1:]
        differences = self.values[positives] - self.values[negatives]
        return dict(zip(self.names, differences.mean(axis=(0, 1)).tolist(), strict=True))


def _standardized(values: Floats) -> Floats:
    """Return values in standard deviations from the mean; 0 where they are NaN, or do not vary."""
    known = values[~np.isnan(values)]
    spread = float(known.std()) if len(known) else 0.0
    return np.nan_to_num((values - known.mean()) / spread) if spread else np.zeros(len(values))

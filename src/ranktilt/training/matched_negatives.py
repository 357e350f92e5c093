"""Negatives that are like their positive in perplexity and specificity.

A *positive* is a relevant document, a *negative* one that is not. Perplexity is how unexpected a
text is to a language model; specificity is how rare its words are in the collection. A retriever
that learns from such negatives cannot use these two properties as signs of relevance.
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
"""Maximum difference between a match and its positive, in standard deviations of each property.

In matching, a caliper is the maximum distance at which two units count as a match. Austin
(Pharmaceutical Statistics 10, 2011) recommends this width.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextProperties:
    """Perplexity and specificity of documents' texts, without titles.

    Each is given in standard deviations above or below the mean of the documents. An undefined
    value counts as average, 0.
    """

    names: tuple[str, ...]
    """Names of the properties."""
    values: Floats
    """Values of shape (n_documents, n_properties)."""

    @classmethod
    def from_collection(cls, subset: Collection) -> TextProperties:
        """Measure the documents to learn from; the collection keeps the values for later trainings.

        `subset` is the collection with only these documents.
        """
        probes: tuple[TextProbe, ...] = (PerplexityProbe(), SpecificityProbe())
        # A probe measures a text compared with a reference source. If documents have no source,
        # they all get one, whose name does not matter.
        documents = with_source(subset, "any")
        reference = documents.sources[0]

        def measure() -> Floats:
            return np.column_stack(
                [_standardize(probe.measure(documents, reference, None)) for probe in probes]
            )

        return cls(
            names=tuple(probe.name for probe in probes),
            values=subset.memo((__name__, reference), measure),
        )

    def match(self, positive: int, candidates: Ints, count: int) -> Ints:
        """Return the candidates that differ from a positive by at most `CALIPER` in each property.

        If these are fewer than `count`, return the `count` nearest candidates. `positive` and
        `candidates` are rows of documents.
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

        The difference is in standard deviations. `documents` has shape (n_rows, n_documents), and
        each row begins with its positive.
        """
        positives, negatives = documents[:, :1], documents[:, 1:]
        differences = self.values[positives] - self.values[negatives]
        return dict(zip(self.names, differences.mean(axis=(0, 1)).tolist(), strict=True))


def _standardize(values: Floats) -> Floats:
    """Return values in standard deviations from the mean; 0 where they are NaN, or do not vary."""
    known = values[~np.isnan(values)]
    deviation = float(known.std()) if len(known) else 0.0
    if not deviation:
        return np.zeros(len(values))
    standardized: Floats = np.nan_to_num((values - known.mean()) / deviation)
    return standardized

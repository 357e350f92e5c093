"""The sides of a collection: a reference, the sources compared with it, and how texts differ.

A *source* is the author of documents. *Twins* are documents of the same origin by different
sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ranktilt.data.collection import Collection
from ranktilt.data.labels.stated_sources import with_stated_sources
from ranktilt.explaining.base import EffectSize, TextProbe, effect_size, twin_rows, twin_sources
from ranktilt.explaining.similarity import Similarity, SimilarityProbe
from ranktilt.explaining.text_probes import (
    Overlap,
    OverlapProbe,
    QueryWordsProbe,
    ReadabilityProbe,
    SentenceLengthProbe,
    SpecificityProbe,
    TypeTokenProbe,
    WordsProbe,
)
from ranktilt.rankers.base import Ranker

TEXT_FEATURES: tuple[TextProbe, ...] = (
    WordsProbe(),
    SentenceLengthProbe(),
    ReadabilityProbe(),
    TypeTokenProbe(),
    SpecificityProbe(),
    QueryWordsProbe(),
)
"""Properties measured for every text; the probes need no model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedSources:
    """The reference of a collection, and the sources that are compared with it."""

    collection: Collection
    """The collection, with only those documents that state a source."""
    reference: str
    """The source that all others are compared with; empty if nothing is compared."""
    sources: tuple[str, ...]
    """All sources but the reference, or the only source."""
    sources_with_twins: Sequence[str]
    """Sources that have twins in the reference."""

    @classmethod
    def from_collection(cls, collection: Collection, reference: str | None) -> ComparedSources:
        """Choose the reference and the sources to compare; a single source is not compared.

        Without a given `reference` it is ``human`` if there is such a source, else the first.
        """
        sources = collection.sources
        stated = with_stated_sources(collection) if sources else collection
        if len(sources) < 2:
            return cls(collection=stated, reference="", sources=sources, sources_with_twins=())
        reference = reference or ("human" if "human" in sources else sources[0])
        return cls(
            collection=stated,
            reference=reference,
            sources=tuple(source for source in sources if source != reference),
            sources_with_twins=twin_sources(stated, reference),
        )

    def feature_effects(self) -> Iterator[EffectSize]:
        """Yield how far each feature of each source's texts differs from that of their twins."""
        if not self.sources_with_twins:
            return
        # Each feature is measured once for all documents.
        values_by_unit = {
            feature.unit: feature.measure(self.collection, self.reference, None)
            for feature in TEXT_FEATURES
        }
        for source in self.sources_with_twins:
            reference_rows, source_rows = twin_rows(self.collection, self.reference, source)
            for unit, values in values_by_unit.items():
                yield effect_size(source, unit, values[reference_rows], values[source_rows])

    def shared_terms(self) -> tuple[Overlap, ...]:
        """Measure how many words twins share, for each source with twins."""
        if not self.sources_with_twins:
            return ()
        return OverlapProbe().measure(self.collection, self.reference, None)

    def similarities(
        self, encoder: Ranker | None, *, map_pairs: int, seed: int
    ) -> tuple[Similarity, ...]:
        """Measure how similar the vectors of twins are; empty without an encoder or twins.

        Parameters
        ----------
        encoder : Ranker or None
            A ranker with an encoder.
        map_pairs : int
            Maximum number of pairs in a picture of the vectors; 0 for no picture.
        seed : int
            Random seed of the pairs of unrelated texts that twins are compared with.
        """
        if encoder is None or not self.sources_with_twins:
            return ()
        probe = SimilarityProbe(map_pairs=map_pairs, seed=seed)
        return probe.measure(self.collection, self.reference, encoder)

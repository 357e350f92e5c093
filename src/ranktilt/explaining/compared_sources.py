"""The sides of a collection: a reference, the sources compared with it, and how texts differ."""

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
"""Properties measured for every text: the probes of `explain` that need no model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedSources:
    """The reference of a collection, and the sources that are compared with it."""

    collection: Collection
    """The collection, with those documents only that state a source."""
    reference: str
    """The source that all others are compared with; empty where nothing is compared."""
    sources: tuple[str, ...]
    """The sources to examine: all others, or the only one."""
    twinned: Sequence[str]
    """Sources that have twins of the reference."""

    @classmethod
    def from_collection(cls, collection: Collection, reference: str | None) -> ComparedSources:
        """Choose the reference and the sources to compare; a single source is not compared."""
        sources = collection.sources
        stated = with_stated_sources(collection) if sources else collection
        if len(sources) < 2:
            return cls(collection=stated, reference="", sources=sources, twinned=())
        first = reference or ("human" if "human" in sources else sources[0])
        return cls(
            collection=stated,
            reference=first,
            sources=tuple(source for source in sources if source != first),
            twinned=twin_sources(stated, first),
        )

    def feature_effects(self) -> Iterator[EffectSize]:
        """Yield how far each feature of each source's texts differs from that of their twins."""
        if not self.twinned:
            return
        # Measured once for all documents, and then compared source by source.
        values_by_unit = {
            feature.unit: feature.measure(self.collection, self.reference, None)
            for feature in TEXT_FEATURES
        }
        for source in self.twinned:
            reference_rows, source_rows = twin_rows(self.collection, self.reference, source)
            for unit, values in values_by_unit.items():
                yield effect_size(source, unit, values[reference_rows], values[source_rows])

    def shared_terms(self) -> tuple[Overlap, ...]:
        """Measure how many words twins share, for each source with twins."""
        if not self.twinned:
            return ()
        return OverlapProbe().measure(self.collection, self.reference, None)

    def similarities(
        self, encoder: Ranker | None, *, map_pairs: int, seed: int
    ) -> tuple[Similarity, ...]:
        """Measure how similar an encoder finds twins; empty without an encoder or twins.

        The map of their vectors has at most `map_pairs` pairs, none for 0. `seed` draws the pairs
        of unrelated texts that twins are compared with.
        """
        if encoder is None or not self.twinned:
            return ()
        probe = SimilarityProbe(map_pairs=map_pairs, seed=seed)
        return probe.measure(self.collection, self.reference, encoder)

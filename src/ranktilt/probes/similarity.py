"""How near twins lie to each other in an encoder's space (Dai et al., KDD 2024, Fig. 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranktilt.collection import Collection
from ranktilt.datasets.check_result import percent
from ranktilt.probes.base import NO_TWINS, Probe, ProbeResult, described, histogram, twin_rows, twin_sources
from ranktilt.probes.distribution import ABOVE, Cosines
from ranktilt.probes.scatter import MAP_PAIRS, Map, scatter
from ranktilt.probes.separation import Separation, separation
from ranktilt.probes.vectors import DocumentVectors, Rows, require_encoder
from ranktilt.rankers.base import Ranker

__all__ = ["ABOVE", "MAP_PAIRS", "Map", "Separation", "Similarity", "twin_similarity"]

MOST_OTHERS = 10_000
"""Random pairs of the baseline, unless there are fewer twins."""


@dataclass(frozen=True, eq=False)
class Similarity:
    """How near the twins of one source lie to the reference's documents."""

    source: str
    model: str
    """The encoder, as typed."""
    text: str
    """What of a document it read."""
    cosine: Cosines = field(metadata={"file": "twins"})
    baseline: Cosines = field(metadata={"file": "other_pairs"})
    """Of a document of the reference and the rewrite of another one, drawn at random."""
    separation: Separation
    map: Map | None


def twin_similarity(
    collection: Collection, ranker: Ranker, reference: str, source: str, *, map_pairs: int = MAP_PAIRS, seed: int = 0
) -> Similarity:
    """Compare the vectors of every pair of twins with those of other pairs, at most 10,000 of them.

    Vectors are those that the ranker ranks with, and are cached as for ranking. `map_pairs` is the most pairs in the
    picture, 0 for none (Dai et al., KDD 2024, sec. 4, Fig. 4 and 5).
    """
    vectors = DocumentVectors.of(collection, ranker)
    pairs = np.stack(twin_rows(collection, reference, source), axis=1)
    origin = collection.origin_codes()
    first, second = other_pairs(pairs, origin, seed)
    others = np.stack([pairs[first, 0], pairs[second, 1]], axis=1)
    among = np.flatnonzero(collection.docs["source"].is_in([reference, source]).to_numpy())
    return Similarity(
        source,
        repr(ranker),
        str(getattr(ranker, "text", "")),
        Cosines("twins", vectors.cosines(pairs[:, 0], pairs[:, 1])),
        Cosines("other pairs", vectors.cosines(others[:, 0], others[:, 1])),
        separation(vectors, pairs, among, origin, seed=seed),
        scatter(collection, vectors, pairs, most=map_pairs, seed=seed) if map_pairs else None,
    )


def other_pairs(pairs: Rows, origin: Rows, seed: int) -> tuple[Rows, Rows]:
    """Draw pairs of a text and the rewrite of another one, neighbours on a ring in random order, as rows of `pairs`."""
    ring = np.random.default_rng(seed).permutation(len(pairs))
    other = np.roll(ring, 1)
    apart = origin[pairs[ring, 0]] != origin[pairs[other, 1]]
    return ring[apart][:MOST_OTHERS], other[apart][:MOST_OTHERS]


def vectors_sentence(found: Similarity, reference: str) -> str:
    """Say how near twins are, beside other pairs, and whether the sources can be told apart all the same."""
    if not found.cosine.count:
        return f"vectors of {found.model} cannot be compared: no pair has a vector on both sides"
    above = percent(100 * found.cosine.above(ABOVE))
    near = f"twins have a cosine of {found.cosine.quartiles[1]:.2f} in the median, {above} above {ABOVE:g}"
    if found.baseline.count:
        near += f"; a text and the rewrite of another, {found.baseline.quartiles[1]:.2f}"
    apart = found.separation
    if not np.isnan(apart.nearest):
        near += f"; for {percent(100 * apart.nearest)} of documents the nearest of all is their own twin"
    if not np.isnan(apart.auc):
        near += f"; {_told(apart.auc)} by their vectors (AUC {apart.auc:.2f})"
    return f"{near} ({found.model})"


def _told(auc: float) -> str:
    """The AUC in a word: half way between chance and certainty is called well."""
    if auc < 0.6:
        return "the sources can hardly be told apart"
    return "the sources can be told apart" + (" well" if auc >= 0.75 else " in part")


class SimilarityProbe(Probe[tuple[Similarity, ...]]):
    """How near rewrites lie to what they were made of."""

    name = "similarity"
    question = "How near is a text to its rewrite in an encoder's space, and can the sources be told apart there?"
    citation = "Dai et al., KDD 2024, sec. 4, Fig. 4 and 5"
    needs_encoder = True

    def __init__(self, *, map_pairs: int = 0, seed: int = 0) -> None:
        self.map_pairs, self.seed = map_pairs, seed

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> tuple[Similarity, ...]:
        """Compare the vectors of the twins of every source that has some."""
        dense = require_encoder(ranker)
        return tuple(
            twin_similarity(collection, dense, reference, name, map_pairs=self.map_pairs, seed=self.seed)
            for name in twin_sources(collection, reference)
        )

    def describe(self, collection: Collection, reference: str, measured: tuple[Similarity, ...]) -> ProbeResult:
        """Make a row a source and kind of pair; a cosine belongs to both sides, so that there is no effect size."""
        rows, figures = [], []
        for one in measured:
            kinds = {"twins": one.cosine, "other pairs": one.baseline}
            rows += [described(one.source, kind, of=name) for name, kind in kinds.items()]
            figures.append(histogram(f"Cosine similarity of {reference} and {one.source}", "cosine", kinds))
        said = [f"{one.source}: {vectors_sentence(one, reference)}" for one in measured]
        return self.result(rows, [], figures, f"{'; '.join(said) or NO_TWINS}.")

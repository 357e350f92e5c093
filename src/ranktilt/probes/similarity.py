"""How near twins lie to each other in an encoder's space (Dai et al., KDD 2024, Fig. 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranktilt.collection import Collection
from ranktilt.probes.distribution import ABOVE, Cosines
from ranktilt.probes.scatter import MAP_PAIRS, Map, scatter
from ranktilt.probes.separation import Separation, separation
from ranktilt.probes.vectors import DocumentVectors, Rows
from ranktilt.rankers.base import Ranker
from ranktilt.run import codes

__all__ = ["ABOVE", "MAP_PAIRS", "Map", "Separation", "Similarity", "twin_similarity"]

MOST_OTHERS = 10_000
"""Random pairs of the baseline, unless there are fewer twins."""


@dataclass(frozen=True, eq=False)
class Similarity:
    """How near the twins of one source lie to the reference's documents.

    Parameters
    ----------
    source : str
        The source that is held against the reference.
    model : str
        The encoder, as typed.
    text : str
        What of a document it read.
    cosine : Cosines
        Cosine of the twins' vectors, −1 to 1.
    baseline : Cosines
        Cosine of a document of the reference and the rewrite of another one, drawn at random.
    separation : Separation
        What the picture cannot prove.
    map : Map or None
        The picture; None where none was asked for.
    """

    source: str
    model: str
    text: str
    cosine: Cosines = field(metadata={"file": "twins"})
    baseline: Cosines = field(metadata={"file": "other_pairs"})
    separation: Separation
    map: Map | None


def twin_similarity(
    collection: Collection, ranker: Ranker, reference: str, source: str, *, map_pairs: int = MAP_PAIRS, seed: int = 0
) -> Similarity:
    """Compare the vectors of every pair of twins with those of other pairs.

    Parameters
    ----------
    collection : Collection
        With both sources.
    ranker : Ranker
        A ranker with an encoder, such as ``dense:minilm``; its options say which text is read. Vectors are those
        that it ranks with, and are cached as for ranking.
    reference, source : str
        Two of the sources.
    map_pairs : int, optional
        Most pairs in the picture; 0 for no picture.
    seed : int, optional
        Of every random draw.

    Returns
    -------
    Similarity
        Twins in the order of `Collection.pairs`; the baseline has as many pairs, at most 10,000.

    Raises
    ------
    UserError
        If the ranker makes no vectors, the model cannot be loaded, or one of the sources is none of the collection.

    References
    ----------
    Dai et al., KDD 2024, sec. 4, Fig. 4 and 5.
    """
    vectors = DocumentVectors.of(collection, ranker)
    twins = collection.pairs(reference, source)
    pairs = np.stack([codes(twins[side], collection.ids) for side in "ab"], axis=1).astype(np.int64)
    origin = collection.docs["origin"].rank("dense").to_numpy().astype(np.int64)
    others = _others(pairs, origin, seed)
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


def _others(pairs: Rows, origin: Rows, seed: int) -> Rows:
    """Documents of the reference, each with the rewrite of another one: neighbours on a ring in random order."""
    ring = np.random.default_rng(seed).permutation(len(pairs))
    found = np.stack([pairs[ring, 0], pairs[np.roll(ring, 1), 1]], axis=1)
    others: Rows = found[origin[found[:, 0]] != origin[found[:, 1]]][:MOST_OTHERS]
    return others

"""Both sides of a collection in the plane: t-SNE of their vectors (Dai et al., KDD 2024, Fig. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktilt.collection import Collection
from ranktilt.optional import need
from ranktilt.probes.separation import sample
from ranktilt.probes.vectors import DocumentVectors, Floats, Rows, one_thread
from ranktilt.progress import report

MAP_PAIRS = 1_000
"""Pairs in the picture, unless another number is asked for."""
FEWEST = 4
"""Pairs below which there is no picture to make."""
_PERPLEXITY = 30.0
_LABEL = "drawing the map (t-SNE)"


@dataclass(frozen=True, eq=False)
class Map:
    """Both sides of some pairs in the plane; near points have near vectors, distances mean little else."""

    x: Floats
    y: Floats
    """First the reference's documents, then their twins in the same order."""
    ids: tuple[str, ...]
    sources: tuple[str, ...]
    of: int
    """Pairs that there are; those shown are a seeded sample."""

    @property
    def pairs(self) -> int:
        """Pairs that are shown."""
        return len(self.ids) // 2

    def derived(self) -> dict[str, Any]:
        """How many pairs are shown."""
        return {"pairs": self.pairs}

    def __post_init__(self) -> None:
        """Refuse points that are not both sides of pairs."""
        if len({len(self.x), len(self.y), len(self.ids), len(self.sources)}) > 1 or len(self.ids) % 2:
            raise ValueError(
                f"expected a place, an id and a source for both sides of each pair, got {len(self.ids)} ids"
            )


def scatter(collection: Collection, vectors: DocumentVectors, pairs: Rows, *, most: int, seed: int = 0) -> Map | None:
    """Lay both sides of some pairs out in the plane by t-SNE; at most `most` of them, drawn at random; None below four.

    scikit-learn's, with perplexity 30 or what few points allow, started from the first two principal components, on
    vectors of length 1 (van der Maaten and Hinton, Journal of Machine Learning Research 9, 2008).
    """
    shown = sample(pairs[~np.isnan(vectors.cosines(pairs[:, 0], pairs[:, 1]))], most, seed)
    if len(shown) < FEWEST:
        return None
    manifold = need("sklearn.manifold", extra="neural", for_="the map")
    rows = shown.T.ravel()
    report(_LABEL, 0, 1)
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    made = manifold.TSNE(perplexity=perplexity, init="pca", random_state=seed)
    with one_thread():
        points = np.asarray(made.fit_transform(vectors.unit(rows).astype(np.float32)), dtype=np.float64)
    report(_LABEL, 1, 1)
    names = collection.docs[rows]
    return Map(points[:, 0], points[:, 1], tuple(names["id"]), tuple(names["source"]), len(pairs))

"""How near twins lie to each other in an encoder's space (Dai et al., KDD 2024, Fig. 4 and 5).

And what a picture cannot prove: whether the sources can be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranktilt.collection import Collection
from ranktilt.datasets.faults import percent
from ranktilt.optional import need
from ranktilt.probes.base import (
    ABOVE,
    NO_TWINS,
    Cosines,
    Probe,
    ProbeResult,
    described,
    histogram,
    twin_rows,
    twin_sources,
)
from ranktilt.probes.vectors import DocumentVectors, Floats, Rows, one_thread
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker

MOST_OTHERS = 10_000
"""Random pairs of the baseline, unless there are fewer twins."""
MOST_FITTED = 5_000
"""Pairs on which the sources are told apart; of more, a seeded sample."""
FOLDS = 5
MAP_PAIRS = 1_000
"""Pairs in the picture, unless another number is asked for."""
FEWEST = 4
"""Pairs below which there is no picture to make."""
_PERPLEXITY = 30.0
_LABEL = "drawing the map (t-SNE)"


@dataclass(frozen=True)
class Separation:
    """How well the sources can be told apart by their vectors."""

    auc: float
    """Area under the ROC curve of a logistic regression on documents that it was not fitted to; versions of one text
    are never parted by the folds. 0.5: the sources cannot be told apart; 1: they always can. NaN below ten origins."""
    auc_low: float
    auc_high: float
    """The least and the largest of the folds."""
    pairs: int
    """Pairs that the regression saw; a seeded sample of large collections."""


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
        return len(self.ids) // 2


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


def other_pairs(pairs: Rows, origin: Rows, seed: int) -> tuple[Rows, Rows]:
    """Draw pairs of a text and the rewrite of another one, neighbours on a ring in random order, as rows of `pairs`."""
    ring = np.random.default_rng(seed).permutation(len(pairs))
    other = np.roll(ring, 1)
    apart = origin[pairs[ring, 0]] != origin[pairs[other, 1]]
    return ring[apart][:MOST_OTHERS], other[apart][:MOST_OTHERS]


def _sentence(found: Similarity) -> str:
    """Say how near twins are, beside other pairs, and whether the sources can be told apart all the same."""
    if not found.cosine.count:
        return f"vectors of {found.model} cannot be compared: no pair has a vector on both sides"
    above = percent(100 * found.cosine.above(ABOVE))
    near = f"twins have a cosine of {found.cosine.quartiles[1]:.2f} in the median, {above} above {ABOVE:g}"
    if found.baseline.count:
        near += f"; a text and the rewrite of another, {found.baseline.quartiles[1]:.2f}"
    if not np.isnan(found.separation.auc):
        near += f"; a classifier tells the sources apart with an AUC of {found.separation.auc:.2f}"
    return f"{near} ({found.model})"


class SimilarityProbe(Probe[tuple[Similarity, ...]]):
    """How near rewrites lie to what they were made of; `map_pairs` is the most pairs in the picture, 0 for none."""

    name = "similarity"
    question = "How near is a text to its rewrite in an encoder's space, and can the sources be told apart there?"
    citation = "Dai et al., KDD 2024, sec. 4, Fig. 4 and 5"
    needs_encoder = True

    def __init__(self, *, map_pairs: int = 0, seed: int = 0) -> None:
        self.map_pairs, self.seed = map_pairs, seed

    def measure(
        self, collection: Collection, reference: str, ranker: Ranker | None
    ) -> tuple[Similarity, ...]:
        """Compare the vectors of every pair of twins with those of other pairs, at most 10,000 of them.

        Vectors are those that the ranker ranks with, and are cached as for ranking.
        """
        vectors, origin = (
            DocumentVectors.of(collection, ranker, self.name),
            collection.origin_codes(),
        )
        found = []
        for source in twin_sources(collection, reference):
            pairs = np.stack(twin_rows(collection, reference, source), axis=1)
            first, second = other_pairs(pairs, origin, self.seed)
            drawn = (
                scatter(collection, vectors, pairs, most=self.map_pairs, seed=self.seed)
                if self.map_pairs
                else None
            )
            found.append(
                Similarity(
                    source,
                    repr(ranker),
                    str(getattr(ranker, "text", "")),
                    Cosines("twins", vectors.cosines(pairs[:, 0], pairs[:, 1])),
                    Cosines("other pairs", vectors.cosines(pairs[first, 0], pairs[second, 1])),
                    separation(vectors, pairs, origin, seed=self.seed),
                    drawn,
                )
            )
        return tuple(found)

    def describe(
        self, collection: Collection, reference: str, measured: tuple[Similarity, ...]
    ) -> ProbeResult:
        """Make a row a source and kind of pair; a cosine belongs to both sides, so that there is no effect size."""
        rows, figures = [], []
        for one in measured:
            kinds = {"twins": one.cosine, "other pairs": one.baseline}
            rows += [described(one.source, kind, of=name) for name, kind in kinds.items()]
            figures.append(
                histogram(f"Cosine similarity of {reference} and {one.source}", "cosine", kinds)
            )
        said = [f"{one.source}: {_sentence(one)}" for one in measured]
        return self.result(rows, [], figures, f"{'; '.join(said) or NO_TWINS}.")


def separation(vectors: DocumentVectors, pairs: Rows, origin: Rows, *, seed: int = 0) -> Separation:
    """Measure how far the vectors of two sources tell them apart.

    `pairs` holds the rows of the twins, `origin` a number for each document's origin. Pairs with a
    vector of zeros are left out.
    """
    fitted = sample(pairs[~np.isnan(vectors.cosines(pairs[:, 0], pairs[:, 1]))], MOST_FITTED, seed)
    folds = told_apart(
        vectors.unit(fitted[:, 0]), vectors.unit(fitted[:, 1]), origin[fitted[:, 0]], seed=seed
    )
    if not len(folds):
        return Separation(np.nan, np.nan, np.nan, 0)
    return Separation(float(folds.mean()), float(folds.min()), float(folds.max()), len(fitted))


def sample(pairs: Rows, most: int, seed: int) -> Rows:
    """Draw at most so many pairs, each once, and keep their order."""
    if len(pairs) <= most:
        return pairs
    return pairs[np.sort(np.random.default_rng(seed).choice(len(pairs), most, replace=False))]


def told_apart(a: Floats, b: Floats, origin: Rows | None = None, *, seed: int = 0) -> Floats:
    """Area under the ROC curve in each of five folds: a logistic regression on the standardised vectors of the others.

    Twins stand in one row of `a` and `b`; pairs that share an origin are in one fold, because a
    document that stands in several pairs would otherwise be known by heart. Empty below ten
    origins.
    """
    groups = np.arange(len(a)) if origin is None else origin
    if len(np.unique(groups)) < 2 * FOLDS:
        return np.empty(0)
    need("sklearn", extra="neural", for_="telling the sources apart")
    from sklearn import linear_model, model_selection, pipeline, preprocessing

    regression = linear_model.LogisticRegression(max_iter=1_000)
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), regression)
    folds = model_selection.StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    sides = np.repeat([0, 1], len(a))
    with one_thread():
        found: Floats = model_selection.cross_val_score(
            model,
            np.concatenate([a, b]),
            sides,
            groups=np.tile(groups, 2),
            scoring="roc_auc",
            cv=folds,
        )
    return found


def scatter(
    collection: Collection, vectors: DocumentVectors, pairs: Rows, *, most: int, seed: int = 0
) -> Map | None:
    """Lay both sides of some pairs out in the plane by t-SNE; at most `most` of them, drawn at random; None below four.

    scikit-learn's, with perplexity 30 or what few points allow, started from the first two
    principal components, on vectors of length 1 (van der Maaten and Hinton, Journal of Machine
    Learning Research 9, 2008).
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
        points = np.asarray(
            made.fit_transform(vectors.unit(rows).astype(np.float32)), dtype=np.float64
        )
    report(_LABEL, 1, 1)
    names = collection.docs[rows]
    return Map(points[:, 0], points[:, 1], tuple(names["id"]), tuple(names["source"]), len(pairs))

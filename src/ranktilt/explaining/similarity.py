"""How similar the vectors of twins are (Dai et al., KDD 2024, Fig. 4 and 5).

An encoder gives each text a vector; similar texts have similar vectors. *Twins* are two documents
of the same origin, one by the *reference* (usually human) and one by another *source* (author).
They are compared by the cosines of their vectors and in a picture. A regression shows what a
picture cannot prove: whether the vectors tell the sources apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.probes import NoTwinsToCompare, TwinsNear
from ranktilt.explaining.base import (
    HIGH_COSINE,
    Cosines,
    Probe,
    ProbeResult,
    distribution_row,
    histogram,
    twin_rows,
    twin_sources,
)
from ranktilt.explaining.vectors import DocumentVectors, Floats, Rows, one_thread
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker

MOST_OTHER_PAIRS = 10_000
"""Maximum number of random pairs of unrelated texts, with which twins are compared."""
MOST_REGRESSION_PAIRS = 5_000
"""Maximum number of pairs of twins for the regression; if there are more, a sample is drawn."""
FOLDS = 5
"""Number of folds of the cross-validation."""
MAP_PAIRS = 1_000
"""Default number of pairs in the picture."""
FEWEST_MAP_PAIRS = 4
"""Minimum number of pairs for a picture."""
_PERPLEXITY = 30.0
"""Perplexity of t-SNE, about the number of neighbours of a point; few points need a lower one."""
_LABEL = "drawing the map (t-SNE)"
"""Label of the progress bar."""


@dataclass(frozen=True, kw_only=True)
class Separation:
    """How well vectors tell two sources apart."""

    auc: float
    """Area under the ROC curve of a logistic regression, cross-validated: the mean of all folds.

    At 0.5 the vectors do not tell the sources apart, at 1 they always do. Documents of the same
    origin are in the same fold. NaN with fewer than ten origins.
    """
    auc_low: float
    """The smallest area of a fold."""
    auc_high: float
    """The largest area of a fold."""
    pairs: int
    """Number of pairs of twins that the regression used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Map:
    """Points in the plane for both documents of some pairs of twins.

    Points that are near each other have similar vectors; larger distances mean little.
    """

    x: Floats
    """First coordinate of each point: the reference's documents, then their twins, pair by pair."""
    y: Floats
    """Second coordinate of each point."""
    ids: tuple[str, ...]
    """Id of each document, in the same order."""
    sources: tuple[str, ...]
    """Source of each document, in the same order."""
    of: int
    """Number of pairs in the collection, of which the map may show a sample."""

    @property
    def pairs(self) -> int:
        """Number of pairs in the picture."""
        return len(self.ids) // 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Similarity:
    """How similar the twins of one source are to the reference's documents."""

    source: str
    """The source that is compared with the reference."""
    model: str
    """Text that names the ranker with the encoder."""
    text: str
    """Part of a document that the encoder read."""
    twins: Cosines
    """Cosines of twins."""
    other_pairs: Cosines
    """Cosines of random pairs: a reference document, and a twin of another one."""
    separation: Separation
    """How well the vectors tell the sources apart."""
    map: Map | None
    """Picture of some pairs; None if none was asked for, or if there are too few pairs."""


def other_pairs(pairs: Rows, origin: Rows, seed: int) -> tuple[Rows, Rows]:
    """Draw pairs of unrelated texts: a text of the reference, and the rewrite of another text.

    The pairs of twins are put on a ring in random order, and the text of each is compared with the
    rewrite of its neighbour.

    Parameters
    ----------
    pairs : ndarray of int64, shape (n_pairs, 2)
        Rows of twins.
    origin : ndarray of int64, shape (n_docs,)
        Code of each document's origin.
    seed : int
        Random seed of the order.

    Returns
    -------
    tuple of two ndarrays
        Indices in `pairs`: of the pairs that give the text, and of those that give the rewrite.
    """
    ring = np.random.default_rng(seed).permutation(len(pairs))
    neighbour = np.roll(ring, 1)
    is_unrelated = origin[pairs[ring, 0]] != origin[pairs[neighbour, 1]]
    return ring[is_unrelated][:MOST_OTHER_PAIRS], neighbour[is_unrelated][:MOST_OTHER_PAIRS]


def _twins_near(similarity: Similarity) -> TwinsNear:
    """Return the note on how similar twins and other pairs are, and on how sources separate."""
    twins, others = similarity.twins, similarity.other_pairs
    return TwinsNear(
        source=similarity.source,
        model=similarity.model,
        pairs=twins.count,
        median=twins.quartiles[1],
        above=twins.above(HIGH_COSINE),
        limit=HIGH_COSINE,
        other_pairs=others.count,
        other_median=others.quartiles[1],
        auc=similarity.separation.auc,
    )


class SimilarityProbe(Probe[tuple[Similarity, ...]]):
    """How near rewrites lie to their originals, in an encoder's vector space.

    Parameters
    ----------
    map_pairs : int, optional
        Maximum number of pairs in the picture; 0 for no picture.
    seed : int, optional
        Random seed of all draws.
    """

    name = "similarity"
    question = (
        "How near is a text to its rewrite in an encoder's space, and can the sources be told "
        "apart there?"
    )
    citation = "Dai et al., KDD 2024, sec. 4, Fig. 4 and 5"
    needs_encoder = True

    def __init__(self, *, map_pairs: int = 0, seed: int = 0) -> None:
        self.map_pairs, self.seed = map_pairs, seed

    def measure(
        self, collection: Collection, reference: str, ranker: Ranker | None
    ) -> tuple[Similarity, ...]:
        """Compare the vectors of twins with those of at most `MOST_OTHER_PAIRS` unrelated texts.

        The vectors are those that the ranker uses, and come from the same cache.
        """
        vectors = DocumentVectors.from_ranker(collection, ranker, self.name)
        origin = collection.origin_codes()
        pairs_by_source = {
            source: np.stack(twin_rows(collection, reference, source), axis=1)
            for source in twin_sources(collection, reference)
        }
        maps = self._maps(collection, vectors, pairs_by_source) if self.map_pairs else {}
        similarities = []
        for source, pairs in pairs_by_source.items():
            text_pairs, rewrite_pairs = other_pairs(pairs, origin, self.seed)
            twin_cosines = vectors.cosines(pairs[:, 0], pairs[:, 1])
            other_cosines = vectors.cosines(pairs[text_pairs, 0], pairs[rewrite_pairs, 1])
            similarities.append(
                Similarity(
                    source=source,
                    model=repr(ranker),
                    text=str(getattr(ranker, "text", "")),
                    twins=Cosines(name="twins", values=twin_cosines),
                    other_pairs=Cosines(name="other pairs", values=other_cosines),
                    separation=separation(vectors, pairs, origin, seed=self.seed),
                    map=maps.get(source),
                )
            )
        return tuple(similarities)

    def _maps(
        self, collection: Collection, vectors: DocumentVectors, pairs_by_source: Mapping[str, Rows]
    ) -> Mapping[str, Map | None]:
        """Draw all sources in one plane if they share enough texts.

        Otherwise each source is drawn in its own plane, with the reference.
        """
        shared = shared_pairs(vectors, pairs_by_source)
        if len(shared) > 1 and len(next(iter(shared.values()))) >= FEWEST_MAP_PAIRS:
            return scatter_together(
                collection, vectors, shared, most=self.map_pairs, seed=self.seed
            )
        return {
            source: scatter(collection, vectors, pairs, most=self.map_pairs, seed=self.seed)
            for source, pairs in pairs_by_source.items()
        }

    def describe(
        self, collection: Collection, reference: str, measured: tuple[Similarity, ...]
    ) -> ProbeResult:
        """Make a row for each source and kind of pair.

        There is no effect size: a cosine belongs to a pair, and not to one of its texts.
        """
        rows, figures = [], []
        for similarity in measured:
            source = similarity.source
            cosines = {"twins": similarity.twins, "other pairs": similarity.other_pairs}
            rows += [distribution_row(source, values, of=kind) for kind, values in cosines.items()]
            figures.append(
                histogram(f"Cosine similarity of {reference} and {source}", "cosine", cosines)
            )
        findings: list[Note] = [*map(_twins_near, measured)] or [NoTwinsToCompare()]
        return self.result(reference, rows, figures=figures, findings=findings)


def separation(vectors: DocumentVectors, pairs: Rows, origin: Rows, *, seed: int = 0) -> Separation:
    """Measure how well the vectors of two sources tell them apart.

    `pairs` has the rows of both twins, shape (n_pairs, 2), and `origin` the code of each document's
    origin. Pairs with a vector of zeros are left out.
    """
    sampled = sample(_without_zero_vectors(vectors, pairs), MOST_REGRESSION_PAIRS, seed)
    aucs = fold_aucs(
        vectors.unit(sampled[:, 0]), vectors.unit(sampled[:, 1]), origin[sampled[:, 0]], seed=seed
    )
    if not len(aucs):
        return Separation(auc=np.nan, auc_low=np.nan, auc_high=np.nan, pairs=0)
    return Separation(
        auc=float(aucs.mean()),
        auc_low=float(aucs.min()),
        auc_high=float(aucs.max()),
        pairs=len(sampled),
    )


def _without_zero_vectors(vectors: DocumentVectors, pairs: Rows) -> Rows:
    """Return the pairs in which neither vector is zero."""
    return pairs[~np.isnan(vectors.cosines(pairs[:, 0], pairs[:, 1]))]


def sample(pairs: Rows, most: int, seed: int) -> Rows:
    """Return at most `most` of the pairs, drawn at random and then kept in their order."""
    if len(pairs) <= most:
        return pairs
    return pairs[np.sort(np.random.default_rng(seed).choice(len(pairs), most, replace=False))]


def fold_aucs(a: Floats, b: Floats, origin: Rows | None = None, *, seed: int = 0) -> Floats:
    """Return the area under the ROC curve in each fold; empty with fewer than ten origins.

    For each fold, a logistic regression is fitted to the standardised vectors of the other folds.
    Pairs that share an origin are in one fold: otherwise the regression could remember a document
    that it is tested on.

    Parameters
    ----------
    a, b : ndarray of float64, shape (n_pairs, n_dimensions)
        Vectors of the two sources; twins share a row.
    origin : ndarray of int64, shape (n_pairs,), optional
        Code of each pair's origin; by default all pairs have different origins.
    seed : int, optional
        Seed by which pairs are divided into folds.
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
        aucs: Floats = model_selection.cross_val_score(
            model,
            np.concatenate([a, b]),
            sides,
            groups=np.tile(groups, 2),
            scoring="roc_auc",
            cv=folds,
        )
    return aucs


def shared_pairs(vectors: DocumentVectors, twins: Mapping[str, Rows]) -> dict[str, Rows]:
    """Return for each source the pairs of those texts that have a twin in every source.

    The pairs of all sources are in the same order. Texts with a vector of zeros do not count.
    `twins` has the rows of each source's pairs of twins.
    """
    # For each source, the row of the twin by the row of the reference's document.
    twin_rows_by_source = {
        source: dict(_without_zero_vectors(vectors, pairs).tolist())
        for source, pairs in twins.items()
    }
    shared_rows: set[int] = set()
    if twin_rows_by_source:
        shared_rows = set.intersection(*map(set, twin_rows_by_source.values()))
    reference_rows = np.array(sorted(shared_rows), dtype=np.int64)
    shared = {}
    for source, twin_of in twin_rows_by_source.items():
        source_rows = np.array([twin_of[row] for row in reference_rows.tolist()], dtype=np.int64)
        shared[source] = np.stack([reference_rows, source_rows], axis=1)
    return shared


def scatter_together(
    collection: Collection,
    vectors: DocumentVectors,
    twins: Mapping[str, Rows],
    *,
    most: int,
    seed: int = 0,
) -> dict[str, Map | None]:
    """Draw the same texts of all sources in one plane, at most `most` of them.

    Returns a map for each source, with the points of the reference and of this source. `twins` has
    the pairs of each source, as `shared_pairs` returns them.
    """
    samples = {source: sample(pairs, most, seed) for source, pairs in twins.items()}
    reference_rows = next(iter(samples.values()))[:, 0]
    count = len(reference_rows)
    rows = np.concatenate([reference_rows, *(pairs[:, 1] for pairs in samples.values())])
    points, docs = _plane(vectors, rows, seed), collection.docs[rows]
    maps: dict[str, Map | None] = {}
    for number, source in enumerate(samples, start=1):
        # The reference's points come first, then those of each source in turn.
        map_points = np.r_[0:count, number * count : (number + 1) * count]
        maps[source] = _map(points[map_points], docs[map_points], len(twins[source]))
    return maps


def scatter(
    collection: Collection, vectors: DocumentVectors, pairs: Rows, *, most: int, seed: int = 0
) -> Map | None:
    """Draw both documents of at most `most` pairs in the plane by t-SNE; None below four pairs.

    t-SNE (van der Maaten and Hinton, Journal of Machine Learning Research 9, 2008) is that of
    scikit-learn. Vectors have length 1, and t-SNE starts from their first two principal components.
    """
    sampled = sample(_without_zero_vectors(vectors, pairs), most, seed)
    if len(sampled) < FEWEST_MAP_PAIRS:
        return None
    rows = sampled.T.ravel()  # all documents of the reference, then all twins
    return _map(_plane(vectors, rows, seed), collection.docs[rows], len(pairs))


def _map(points: Floats, docs: pl.DataFrame, pair_count: int) -> Map:
    """Return the picture of some pairs; `pair_count` is the number of pairs in the collection."""
    return Map(
        x=points[:, 0],
        y=points[:, 1],
        ids=tuple(docs["id"]),
        sources=tuple(docs["source"]),
        of=pair_count,
    )


def _plane(vectors: DocumentVectors, rows: Rows, seed: int) -> Floats:
    """Return a point in the plane for each text, shape (n_rows, 2)."""
    manifold = need("sklearn.manifold", extra="neural", for_="the map")
    report(_LABEL, 0, 1)
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    tsne = manifold.TSNE(perplexity=perplexity, init="pca", random_state=seed)
    with one_thread():
        coordinates = tsne.fit_transform(vectors.unit(rows).astype(np.float32))
    points: Floats = np.asarray(coordinates, dtype=np.float64)
    report(_LABEL, 1, 1)
    return points

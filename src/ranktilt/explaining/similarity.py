"""How similar the vectors of twins are (Dai et al., KDD 2024, Fig. 4 and 5).

An encoder gives each text a vector; similar texts have similar vectors. Twins are compared by their
cosines and in a picture. A regression shows what a picture cannot prove: whether the vectors tell
the sources apart.
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
    ABOVE,
    Cosines,
    Probe,
    ProbeResult,
    described,
    histogram,
    twin_rows,
    twin_sources,
)
from ranktilt.explaining.vectors import DocumentVectors, Floats, Rows, one_thread
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker

MOST_OTHERS = 10_000
"""Most random pairs of unrelated texts, with which twins are compared."""
MOST_FITTED = 5_000
"""Most pairs for the regression that tells sources apart; if there are more, a sample is drawn."""
FOLDS = 5
"""Number of parts of the documents; each is predicted by a regression on the other parts."""
MAP_PAIRS = 1_000
"""Default number of pairs in the picture."""
FEWEST = 4
"""Fewest pairs for a picture."""
_PERPLEXITY = 30.0
"""Perplexity of t-SNE: about how many neighbours of a point stay near. Few points allow less."""
_LABEL = "drawing the map (t-SNE)"
"""Label of the progress bar."""


@dataclass(frozen=True, kw_only=True)
class Separation:
    """How well vectors tell two sources apart."""

    auc: float
    """Area under the ROC curve of a logistic regression, on documents that it was not fitted to.

    At 0.5 the vectors do not tell the sources apart, at 1 they always do. Versions of one text are
    in one fold. NaN with fewer than ten origins.
    """
    auc_low: float
    """The smallest area of a fold."""
    auc_high: float
    """The largest area of a fold."""
    pairs: int
    """Number of pairs that the regression used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Map:
    """Points in the plane for both documents of some pairs.

    Points that are near each other have similar vectors; larger distances mean little.
    """

    x: Floats
    """First coordinate of each point: the reference's documents, then their twins, pair by pair."""
    y: Floats
    """Second coordinate of each point."""
    ids: tuple[str, ...]
    """Ids of the documents, in the same order."""
    sources: tuple[str, ...]
    """Their sources."""
    of: int
    """Number of pairs in the collection; the map may have a sample of them."""

    @property
    def pairs(self) -> int:
        """Number of pairs in the picture."""
        return len(self.ids) // 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Similarity:
    """How similar the twins of one source are to the reference's documents."""

    source: str
    """The source."""
    model: str
    """The encoder, as typed."""
    text: str
    """Part of a document that the encoder read."""
    twins: Cosines
    """Cosines of twins."""
    other_pairs: Cosines
    """Cosines of a reference document and the rewrite of another one, drawn at random."""
    separation: Separation
    """How well the vectors tell the sources apart."""
    map: Map | None
    """Picture of some pairs; None if none was asked for, or if there are too few pairs."""


def other_pairs(pairs: Rows, origin: Rows, seed: int) -> tuple[Rows, Rows]:
    """Draw pairs of unrelated texts: a text of the reference, and the rewrite of another text.

    Both are given as indexes in `pairs`. The pairs of twins are put on a ring in random order, and
    the text of each is compared with the rewrite of its neighbour. `origin` has the origin of each
    document by its row.
    """
    ring = np.random.default_rng(seed).permutation(len(pairs))
    neighbour = np.roll(ring, 1)
    is_apart = origin[pairs[ring, 0]] != origin[pairs[neighbour, 1]]
    return ring[is_apart][:MOST_OTHERS], neighbour[is_apart][:MOST_OTHERS]


def _twins_near(similarity: Similarity) -> TwinsNear:
    """Return the note on how similar twins and other pairs are, and on how sources separate."""
    twins, others = similarity.twins, similarity.other_pairs
    return TwinsNear(
        source=similarity.source,
        model=similarity.model,
        pairs=twins.count,
        median=twins.quartiles[1],
        above=twins.above(ABOVE),
        limit=ABOVE,
        other_pairs=others.count,
        other_median=others.quartiles[1],
        auc=similarity.separation.auc,
    )


class SimilarityProbe(Probe[tuple[Similarity, ...]]):
    """How near rewrites lie to their originals.

    `map_pairs` is the most pairs in the picture, 0 for none.
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
        """Compare the vectors of twins with those of at most `MOST_OTHERS` pairs of other texts.

        Vectors are those that the ranker uses, and are cached as they are for ranking.
        """
        vectors = DocumentVectors.from_ranker(collection, ranker, self.name)
        origin = collection.origin_codes()
        twins = {
            source: np.stack(twin_rows(collection, reference, source), axis=1)
            for source in twin_sources(collection, reference)
        }
        maps = self._maps(collection, vectors, twins) if self.map_pairs else {}
        similarities = []
        for source, pairs in twins.items():
            first, second = other_pairs(pairs, origin, self.seed)
            of_twins = vectors.cosines(pairs[:, 0], pairs[:, 1])
            of_others = vectors.cosines(pairs[first, 0], pairs[second, 1])
            similarities.append(
                Similarity(
                    source=source,
                    model=repr(ranker),
                    text=str(getattr(ranker, "text", "")),
                    twins=Cosines(name="twins", values=of_twins),
                    other_pairs=Cosines(name="other pairs", values=of_others),
                    separation=separation(vectors, pairs, origin, seed=self.seed),
                    map=maps.get(source),
                )
            )
        return tuple(similarities)

    def _maps(
        self, collection: Collection, vectors: DocumentVectors, twins: Mapping[str, Rows]
    ) -> Mapping[str, Map | None]:
        """Draw all sources in one plane if they share enough texts.

        Otherwise each source gets a plane with the reference alone.
        """
        together = shared_pairs(vectors, twins)
        if len(twins) > 1 and len(next(iter(together.values()))) >= FEWEST:
            return scatter_together(
                collection, vectors, together, most=self.map_pairs, seed=self.seed
            )
        return {
            source: scatter(collection, vectors, pairs, most=self.map_pairs, seed=self.seed)
            for source, pairs in twins.items()
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
            rows += [described(source, values, of=kind) for kind, values in cosines.items()]
            figures.append(
                histogram(f"Cosine similarity of {reference} and {source}", "cosine", cosines)
            )
        findings: list[Note] = [*map(_twins_near, measured)] or [NoTwinsToCompare()]
        return self.result(reference, rows, figures=figures, findings=findings)


def separation(vectors: DocumentVectors, pairs: Rows, origin: Rows, *, seed: int = 0) -> Separation:
    """Measure how well the vectors of two sources tell them apart.

    `pairs` has the rows of both twins, shape (n_pairs, 2), and `origin` the number of each
    document's origin. Pairs with a vector of zeros are left out.
    """
    fitted = sample(_with_vectors(vectors, pairs), MOST_FITTED, seed)
    folds = fold_aucs(
        vectors.unit(fitted[:, 0]), vectors.unit(fitted[:, 1]), origin[fitted[:, 0]], seed=seed
    )
    if not len(folds):
        return Separation(auc=np.nan, auc_low=np.nan, auc_high=np.nan, pairs=0)
    return Separation(
        auc=float(folds.mean()),
        auc_low=float(folds.min()),
        auc_high=float(folds.max()),
        pairs=len(fitted),
    )


def _with_vectors(vectors: DocumentVectors, pairs: Rows) -> Rows:
    """Return the pairs of which neither vector is zero."""
    return pairs[~np.isnan(vectors.cosines(pairs[:, 0], pairs[:, 1]))]


def sample(pairs: Rows, most: int, seed: int) -> Rows:
    """Return at most `most` of the pairs, drawn at random, in their order."""
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
        Number of each pair's origin; by default all pairs have different ones.
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
    """Return each source's pairs of the texts that have a version in every source.

    The pairs of all sources are in the same order. Versions with a vector of zeros do not count.
    """
    twin_of = {
        source: dict(_with_vectors(vectors, pairs).tolist()) for source, pairs in twins.items()
    }
    in_all = set.intersection(*map(set, twin_of.values())) if twin_of else set()
    texts = np.array(sorted(in_all), dtype=np.int64)
    shared = {}
    for source, twins_by_row in twin_of.items():
        versions = np.array([twins_by_row[row] for row in texts.tolist()], dtype=np.int64)
        shared[source] = np.stack([texts, versions], axis=1)
    return shared


def scatter_together(
    collection: Collection,
    vectors: DocumentVectors,
    twins: Mapping[str, Rows],
    *,
    most: int,
    seed: int = 0,
) -> dict[str, Map | None]:
    """Draw the same texts of all sources in one plane.

    Returns a map for each source, with the points of the reference and of this source.
    """
    samples = {source: sample(pairs, most, seed) for source, pairs in twins.items()}
    reference_rows = next(iter(samples.values()))[:, 0]
    count = len(reference_rows)
    rows = np.concatenate([reference_rows, *(pairs[:, 1] for pairs in samples.values())])
    points, docs = _plane(vectors, rows, seed), collection.docs[rows]
    maps: dict[str, Map | None] = {}
    for number, source in enumerate(samples, start=1):
        # The reference's points come first, then those of each source in turn.
        chosen = np.r_[0:count, number * count : (number + 1) * count]
        maps[source] = _map(points[chosen], docs[chosen], len(twins[source]))
    return maps


def scatter(
    collection: Collection, vectors: DocumentVectors, pairs: Rows, *, most: int, seed: int = 0
) -> Map | None:
    """Draw both documents of at most `most` pairs in the plane by t-SNE; None below four pairs.

    t-SNE (van der Maaten and Hinton, Journal of Machine Learning Research 9, 2008) is
    scikit-learn's. Vectors have length 1, and it starts from their first two principal components.
    """
    drawn = sample(_with_vectors(vectors, pairs), most, seed)
    if len(drawn) < FEWEST:
        return None
    rows = drawn.T.ravel()
    return _map(_plane(vectors, rows, seed), collection.docs[rows], len(pairs))


def _map(points: Floats, docs: pl.DataFrame, pairs: int) -> Map:
    """Return the picture of some pairs from their points."""
    return Map(
        x=points[:, 0],
        y=points[:, 1],
        ids=tuple(docs["id"]),
        sources=tuple(docs["source"]),
        of=pairs,
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

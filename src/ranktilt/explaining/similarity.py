"""How near twins lie to each other in an encoder's space (Dai et al., KDD 2024, Fig. 4 and 5).

And what a picture cannot prove: whether the sources can be told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

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
    twins: Cosines
    other_pairs: Cosines
    """Of a document of the reference and the rewrite of another one, drawn at random."""
    separation: Separation
    map: Map | None


def other_pairs(pairs: Rows, origin: Rows, seed: int) -> tuple[Rows, Rows]:
    """Draw pairs of a text and the rewrite of another one, neighbours on a ring in random order, as rows of `pairs`."""
    ring = np.random.default_rng(seed).permutation(len(pairs))
    other = np.roll(ring, 1)
    apart = origin[pairs[ring, 0]] != origin[pairs[other, 1]]
    return ring[apart][:MOST_OTHERS], other[apart][:MOST_OTHERS]


def _twins_near(similarity: Similarity) -> TwinsNear:
    """Note how near twins are, beside other pairs, and whether the sources can be told apart all the same."""
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
            DocumentVectors.from_ranker(collection, ranker, self.name),
            collection.origin_codes(),
        )
        twins = {
            source: np.stack(twin_rows(collection, reference, source), axis=1)
            for source in twin_sources(collection, reference)
        }
        maps = self._maps(collection, vectors, twins) if self.map_pairs else {}
        found = []
        for source, pairs in twins.items():
            first, second = other_pairs(pairs, origin, self.seed)
            found.append(
                Similarity(
                    source,
                    repr(ranker),
                    str(getattr(ranker, "text", "")),
                    Cosines("twins", vectors.cosines(pairs[:, 0], pairs[:, 1])),
                    Cosines("other pairs", vectors.cosines(pairs[first, 0], pairs[second, 1])),
                    separation(vectors, pairs, origin, seed=self.seed),
                    maps.get(source),
                )
            )
        return tuple(found)

    def _maps(
        self, collection: Collection, vectors: DocumentVectors, twins: Mapping[str, Rows]
    ) -> Mapping[str, Map | None]:
        """Lay all sources out in one plane where they share enough texts, else each with the reference alone."""
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
        """Make a row a source and kind of pair; a cosine belongs to both sides, so that there is no effect size."""
        rows, figures = [], []
        for one in measured:
            kinds = {"twins": one.twins, "other pairs": one.other_pairs}
            rows += [described(one.source, kind, of=name) for name, kind in kinds.items()]
            figures.append(
                histogram(f"Cosine similarity of {reference} and {one.source}", "cosine", kinds)
            )
        findings: list[Note] = [*map(_twins_near, measured)] or [NoTwinsToCompare()]
        return self.result(reference, rows, figures=figures, findings=findings)


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


def shared_pairs(vectors: DocumentVectors, twins: Mapping[str, Rows]) -> dict[str, Rows]:
    """Keep the pairs of each source whose text has a version with a vector in every source, in one order."""
    known = {
        source: pairs[~np.isnan(vectors.cosines(pairs[:, 0], pairs[:, 1]))]
        for source, pairs in twins.items()
    }
    version = {source: dict(pairs.tolist()) for source, pairs in known.items()}
    in_all = set.intersection(*(set(rows) for rows in version.values())) if version else set()
    texts = sorted(in_all)
    return {
        source: np.array([(row, rows[row]) for row in texts], dtype=np.int64).reshape(-1, 2)
        for source, rows in version.items()
    }


def scatter_together(
    collection: Collection,
    vectors: DocumentVectors,
    twins: Mapping[str, Rows],
    *,
    most: int,
    seed: int = 0,
) -> dict[str, Map | None]:
    """Lay the same texts of all sources out in one plane; each map holds the reference's points and one source's."""
    shown = {source: sample(pairs, most, seed) for source, pairs in twins.items()}
    count = len(next(iter(shown.values())))
    of_reference = next(iter(shown.values()))[:, 0]
    rows = np.concatenate([of_reference, *(pairs[:, 1] for pairs in shown.values())])
    points, names = _plane(vectors, rows, seed), collection.docs[rows]
    maps: dict[str, Map | None] = {}
    for number, source in enumerate(shown, start=1):
        chosen = np.r_[0:count, number * count : (number + 1) * count]
        drawn, texts = points[chosen], names[chosen]
        maps[source] = Map(
            x=drawn[:, 0],
            y=drawn[:, 1],
            ids=tuple(texts["id"]),
            sources=tuple(texts["source"]),
            of=len(twins[source]),
        )
    return maps


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
    rows = shown.T.ravel()
    points = _plane(vectors, rows, seed)
    names = collection.docs[rows]
    return Map(points[:, 0], points[:, 1], tuple(names["id"]), tuple(names["source"]), len(pairs))


def _plane(vectors: DocumentVectors, rows: Rows, seed: int) -> Floats:
    """Lay texts out in the plane."""
    manifold = need("sklearn.manifold", extra="neural", for_="the map")
    report(_LABEL, 0, 1)
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    made = manifold.TSNE(perplexity=perplexity, init="pca", random_state=seed)
    with one_thread():
        points: Floats = np.asarray(
            made.fit_transform(vectors.unit(rows).astype(np.float32)), dtype=np.float64
        )
    report(_LABEL, 1, 1)
    return points

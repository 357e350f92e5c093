"""How near twins lie to each other in an encoder's space (Dai et al., KDD 2024, Fig. 4 and 5).

And what a picture cannot prove: whether the sources can be told apart, and whether twins find each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranktilt.collection import Collection
from ranktilt.datasets.check_result import percent
from ranktilt.optional import need
from ranktilt.probes.base import NO_TWINS, Probe, ProbeResult, described, histogram, twin_rows, twin_sources
from ranktilt.probes.distribution import ABOVE, Cosines
from ranktilt.probes.vectors import DocumentVectors, Floats, Rows, one_thread, parts, require_encoder
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker

MOST_OTHERS = 10_000
"""Random pairs of the baseline, unless there are fewer twins."""
MOST_FITTED = 5_000
"""Pairs on which the sources are told apart; of more, a seeded sample."""
MOST_ASKED = 2_000
"""Pairs whose documents look for their nearest; of more, a seeded sample."""
FOLDS = 5
_FEWEST = 2 * FOLDS
_TIE = 1e-9
MAP_PAIRS = 1_000
"""Pairs in the picture, unless another number is asked for."""
FEWEST = 4
"""Pairs below which there is no picture to make."""
_PERPLEXITY = 30.0
_LABEL = "drawing the map (t-SNE)"


@dataclass(frozen=True)
class Separation:
    """How well the sources can be told apart by their vectors, and whether a document's nearest is its twin."""

    auc: float
    """Area under the ROC curve of a logistic regression on documents that it was not fitted to; versions of one text
    are never parted by the folds. 0.5: the sources cannot be told apart; 1: they always can. NaN below ten origins."""
    auc_low: float
    auc_high: float
    """The least and the largest of the folds."""
    pairs: int
    """Pairs that the regression saw; a seeded sample of large collections."""
    nearest: float
    """Share of the asked documents whose nearest of all other documents of both sources is its own twin, 0 to 1; a
    tie of n documents counts 1/n. NaN where nothing was asked."""
    asked: int
    """Documents whose nearest was looked for, as many of either side."""
    among: int
    """Documents among which it was looked for."""


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

    def derived(self) -> dict[str, Any]:
        return {"pairs": self.pairs}


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


def vectors_sentence(found: Similarity) -> str:
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
        said = [f"{one.source}: {vectors_sentence(one)}" for one in measured]
        return self.result(rows, [], figures, f"{'; '.join(said) or NO_TWINS}.")


def separation(vectors: DocumentVectors, pairs: Rows, among: Rows, origin: Rows, *, seed: int = 0) -> Separation:
    """Measure how far the vectors of two sources tell them apart, and twins from other documents.

    `pairs` holds the rows of the twins, `among` those of all documents of both sources, `origin` a number for each
    document's origin. Pairs with a vector of zeros are left out.
    """
    whole = pairs[~np.isnan(vectors.cosines(pairs[:, 0], pairs[:, 1]))]
    fitted, asked = (sample(whole, most, seed) for most in (MOST_FITTED, MOST_ASKED))
    folds = told_apart(vectors.unit(fitted[:, 0]), vectors.unit(fitted[:, 1]), origin[fitted[:, 0]], seed=seed)
    nearest = own_twin_first(vectors, asked, among, origin)
    auc, low, high = (folds.mean(), folds.min(), folds.max()) if len(folds) else (np.nan, np.nan, np.nan)
    return Separation(
        auc=float(auc),
        auc_low=float(low),
        auc_high=float(high),
        pairs=len(fitted) if len(folds) else 0,
        nearest=float(nearest.mean()) if len(nearest) else np.nan,
        asked=len(nearest),
        among=len(among),
    )


def sample(pairs: Rows, most: int, seed: int) -> Rows:
    """Draw at most so many pairs, each once, and keep their order."""
    if len(pairs) <= most:
        return pairs
    return pairs[np.sort(np.random.default_rng(seed).choice(len(pairs), most, replace=False))]


def told_apart(a: Floats, b: Floats, origin: Rows | None = None, *, seed: int = 0) -> Floats:
    """Area under the ROC curve in each of five folds: a logistic regression on the standardised vectors of the others.

    Twins stand in one row of `a` and `b`; pairs that share an origin are in one fold, because a document that stands in
    several pairs would otherwise be known by heart. Empty below ten origins.
    """
    names = np.arange(len(a)) if origin is None else origin
    texts, first, group = np.unique(names, return_index=True, return_inverse=True)
    if len(texts) < _FEWEST:
        return np.empty(0)
    linear = need("sklearn.linear_model", extra="neural", for_="telling the sources apart")
    metrics = need("sklearn.metrics", extra="neural", for_="telling the sources apart")
    drawn = np.random.default_rng(seed).permutation(len(texts)) % FOLDS
    fold = drawn[np.argsort(np.argsort(first))[group]]  # in the order of the pairs, whatever their numbers
    found = np.empty(FOLDS)
    for number in range(FOLDS):
        report("telling the sources apart", number, FOLDS)
        seen, held = ((np.concatenate([a[keep], b[keep]])) for keep in (fold != number, fold == number))
        middle, spread = seen.mean(axis=0), seen.std(axis=0)
        spread[spread == 0] = 1.0
        with one_thread():
            model = linear.LogisticRegression(max_iter=1_000).fit((seen - middle) / spread, _side_labels(len(seen)))
            scores = model.decision_function((held - middle) / spread)
        found[number] = metrics.roc_auc_score(_side_labels(len(held)), scores)
    report("telling the sources apart", FOLDS, FOLDS)
    return found


def _side_labels(count: int) -> Rows:
    return np.repeat(np.arange(2), count // 2)


def own_twin_first(vectors: DocumentVectors, pairs: Rows, among: Rows, origin: Rows) -> Floats:
    """Tell for each document of some pairs whether its own twin is nearer by cosine than every one of another origin.

    1 where it is, 0 where not, 1/n where it ties with n − 1 others; first the documents of one side, then the other's.
    """
    asking, twin = pairs.T.ravel(), pairs[:, ::-1].T.ravel()
    own = vectors.cosines(asking, twin)
    questions = vectors.unit(asking)
    nearer, tied = (np.zeros(len(asking), dtype=np.int64) for _ in range(2))
    for part in parts(len(among)):
        report("looking for nearest documents", part.start, len(among))
        rows = among[part]
        near = questions @ np.nan_to_num(vectors.unit(rows)).T - own[:, None]
        near[origin[asking][:, None] == origin[rows]] = -np.inf
        nearer += (near > _TIE).sum(axis=1)
        tied += (np.abs(near) <= _TIE).sum(axis=1)
    report("looking for nearest documents", len(among), len(among))
    return np.where(nearer > 0, 0.0, 1.0 / (1 + tied))


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

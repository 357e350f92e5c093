"""What a picture of two sources cannot prove: whether they can be told apart, and whether twins find each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.optional import need
from ranktilt.probes.vectors import DocumentVectors, Floats, Rows, one_thread, parts
from ranktilt.progress import report

MOST_FITTED = 5_000
"""Pairs on which the sources are told apart; of more, a seeded sample."""
MOST_ASKED = 2_000
"""Pairs whose documents look for their nearest; of more, a seeded sample."""
FOLDS = 5
_FEWEST = 2 * FOLDS
_TIE = 1e-9


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

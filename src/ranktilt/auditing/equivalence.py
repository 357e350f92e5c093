"""Whether both sources alone are as easy to search: the paired equivalence test (Dai et al., KDD 2024, Table 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import special

from ranktilt.auditing.alignment import Aligned, Judgments, group_values
from ranktilt.auditing.groups import grouping
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.measures.base import Measure
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import reranked
from ranktilt.statistics.correction import correct
from ranktilt.statistics.permutation import t_test_p

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SplitBySource:
    """Two collections that hold the same content, written by two sources."""

    reference: Collection
    source: Collection
    pairs: int
    """Origins that both sides hold."""
    left_out: int
    """Documents of both sources without a twin."""


def split_by_source(collection: Collection, reference: str, source: str) -> SplitBySource:
    """Take a collection apart into two that can be searched alone.

    Both hold all queries, the documents of their source that have a twin on the other side, and the judgments of
    these. Without that restriction the side with more documents would be the harder one to search, and a collection
    of which only a part was rewritten would say nothing.

    Parameters
    ----------
    collection : Collection
        With both sources.
    reference, source : str
        Their names.

    Returns
    -------
    SplitBySource
        The two collections, in the order of the whole one, and what they leave out.
    """
    docs = collection.docs
    origins = [set(docs.filter(pl.col("source") == name)["origin"]) for name in (reference, source)]
    shared = pl.Series(sorted(origins[0] & origins[1]), dtype=pl.String)
    paired = docs.filter(pl.col("origin").is_in(shared.implode()))
    alone = [_alone(collection, paired.filter(pl.col("source") == name), name) for name in (reference, source)]
    both = docs.filter(pl.col("source").is_in([reference, source])).height
    return SplitBySource(alone[0], alone[1], len(shared), both - alone[0].docs.height - alone[1].docs.height)


def _alone(collection: Collection, docs: pl.DataFrame, source: str) -> Collection:
    judged = collection.qrels.join(docs, left_on="doc_id", right_on="id", how="semi", maintain_order="left")
    return Collection(docs, collection.queries, judged, {**collection.spec, "only": source})


Outcome = Literal["equivalent", "different within the margin", "different", "inconclusive", "not tested"]

MARGIN, ALPHA = 0.02, 0.05
_WITHIN_95 = 0.975


@dataclass(frozen=True)
class Equivalence:
    """Effectiveness of one ranker on each side alone, on one measure; values and differences are 0 to 1.

    A difference is reference − source: positive where the reference's side is searched better.
    """

    run: str
    measure: str
    source: str
    """The source that is held against the reference."""
    on_reference: float
    on_source: float
    """Means over the compared queries."""
    difference: float
    low: float
    high: float
    """95 % interval of Student's t over queries."""
    p_different: float
    """Paired t test of no difference, two-sided."""
    p_corrected: float
    """The same after Holm's correction over all rows of the table."""
    margin: float
    """The largest difference that would not matter."""
    p_equivalent: float
    """The larger p of two one-sided paired t tests of a difference beyond ±margin (Schuirmann 1987)."""
    smallest: float
    """The smallest margin that these queries would have shown equivalence for."""
    outcome: Outcome
    queries: int
    """Queries with a relevant document on both sides."""
    excluded: int
    """Judged queries without one."""
    pairs: int
    """Pairs of documents that both sides are made of."""
    left_out: int
    """Documents of both sources without a twin, which neither side holds."""

    def row(self) -> dict[str, Any]:
        """Return the fields and the outcome in words, by name."""
        return {**asdict(self), **self.derived()}

    def derived(self) -> dict[str, Any]:
        """Return what a file tells besides the fields."""
        return {"verdict": self.verdict}

    @property
    def verdict(self) -> str:
        """The outcome in words, with the margin."""
        return {
            "equivalent": f"equivalent within ±{self.margin:g}",
            "different within the margin": f"different within ±{self.margin:g}",
        }.get(self.outcome, self.outcome)


def tost_p(difference: Floats, margin: float) -> float:
    """Test whether a mean difference lies within ±margin: two one-sided paired t tests.

    Parameters
    ----------
    difference : ndarray of float64, shape (n,)
        Per-query differences without NaN.
    margin : float
        Above 0, in the differences' unit.

    Returns
    -------
    float
        The larger p of the tests against a mean of −margin or less and of +margin or more. A small one says that
        the difference is no larger than the margin; a large one says nothing. NaN below two queries.

    References
    ----------
    Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987.
    """
    if len(difference) < 2:
        return np.nan
    mean, error, freedom = _mean_and_error(difference)
    if error == 0:
        return float(abs(mean) >= margin)
    return float(max(special.stdtr(freedom, -(mean + margin) / error), special.stdtr(freedom, (mean - margin) / error)))


def smallest_margin(difference: Floats, alpha: float = ALPHA) -> float:
    """Find the margin from which on `tost_p` is below `alpha`: the farther end of the 1 − 2·alpha interval.

    Parameters
    ----------
    difference : ndarray of float64, shape (n,)
        Per-query differences without NaN.
    alpha : float, optional
        Of each one-sided test.

    Returns
    -------
    float
        0 or more; NaN below two queries.
    """
    if len(difference) < 2:
        return np.nan
    mean, error, freedom = _mean_and_error(difference)
    return float(abs(mean) + special.stdtrit(freedom, 1 - alpha) * error)


def t_interval(difference: Floats) -> tuple[float, float]:
    """95 % interval of a mean by Student's t over queries; NaN below two queries.

    Parameters
    ----------
    difference : ndarray of float64, shape (n,)
        Per-query differences without NaN.

    Returns
    -------
    low, high : float
        Ends of the interval.
    """
    if len(difference) < 2:
        return np.nan, np.nan
    mean, error, freedom = _mean_and_error(difference)
    half = float(special.stdtrit(freedom, _WITHIN_95)) * error
    return mean - half, mean + half


def _mean_and_error(difference: Floats) -> tuple[float, float, int]:
    n = len(difference)
    if (difference == difference[0]).all():  # rounding would leave an error where there is none
        return float(difference[0]), 0.0, n - 1
    return float(np.mean(difference)), float(np.std(difference, ddof=1) / np.sqrt(n)), n - 1


def equivalences(
    collection: Collection,
    rankers: Sequence[Ranker],
    measures: Sequence[Measure],
    *,
    reference: str,
    sources: Sequence[str],
    margin: float = MARGIN,
    alpha: float = ALPHA,
) -> tuple[Equivalence, ...]:
    """Rank each side alone with each ranker, and compare the sides query by query.

    Parameters
    ----------
    collection : Collection
        With judgments that both sides share.
    rankers : sequence of Ranker
        What ranks.
    measures : sequence of Measure
        What is compared.
    reference : str
        One side of each comparison.
    sources : sequence of str
        The other sides. Both sides of a comparison are restricted to the documents with a twin on the other side.
    margin : float, optional
        The largest difference that would not matter, 0 to 1.
    alpha : float, optional
        Level of each test: equivalence is shown where `tost_p` is below it, a difference where the two-sided paired
        t test is, corrected by Holm over all rows. The p of equivalence is not corrected: that *all* rows are
        equivalent is a claim that each must carry, which keeps the level (Berger 1982).

    Returns
    -------
    tuple of Equivalence
        By source, ranker and measure; nothing for a source without twins.

    Raises
    ------
    UserError
        If margin or alpha is out of range.
    """
    if not 0 < margin < 1:
        raise UserError(f"expected a margin above 0 and below 1, such as {MARGIN:g}, got {margin:g}")
    if not 0 < alpha < 0.5:
        raise UserError(f"expected an alpha above 0 and below 0.5, such as {ALPHA:g}, got {alpha:g}")
    for one in rankers:
        one.check()
    ranked = _Ranked(measures)
    rows = []
    for source in sources:
        parts = split_by_source(collection, reference, source)
        for one in rankers if parts.pairs else ():
            left, right = (ranked.values(one, side) for side in (parts.reference, parts.source))
            for place, m in enumerate(measures):
                a, b = (found.of(collection.judged["id"], place) for found in (left, right))
                rows.append(_Comparison(repr(one), repr(m), source, parts, margin, alpha).row(a, b))
    corrected = correct([row.p_different for row in rows])
    return tuple(
        replace(row, p_corrected=p, outcome=outcome(row.p_equivalent, p, alpha))
        for row, p in zip(rows, corrected.tolist(), strict=True)
    )


def outcome(p_equivalent: float, p_different: float, alpha: float) -> Outcome:
    """Tell what two p-values show together; that no difference is shown is never equivalence."""
    if np.isnan(p_equivalent) or np.isnan(p_different):
        return "not tested"
    if p_equivalent < alpha:
        return "different within the margin" if p_different < alpha else "equivalent"
    return "different" if p_different < alpha else "inconclusive"


@dataclass(frozen=True)
class _Values:
    """Per-query values of one ranker on one side, a row a measure; NaN where nothing is relevant."""

    place: dict[str, int]
    values: Floats

    def of(self, queries: Iterable[str], measure: int) -> Floats:
        """Values of these queries; NaN for one without a judgment on this side."""
        known = np.append(self.values[measure], np.nan)
        return known[[self.place.get(query, -1) for query in queries]]


class _Ranked:
    """Values of each ranker on each side; a side that several comparisons share is ranked once."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        self._measures = measures
        self._known: dict[tuple[str, tuple[str, ...]], _Values] = {}

    def values(self, ranker: Ranker, side: Collection) -> _Values:
        key = repr(ranker), tuple(side.ids)
        if key not in self._known:
            self._known[key] = self._make(ranker, side)
        return self._known[key]

    def _make(self, ranker: Ranker, side: Collection) -> _Values:
        groups = grouping(side, None)
        judgments = Judgments.of(side, groups)
        run = reranked(ranker.rank(side), None, ranker)
        found = group_values(Aligned.of(run, side, judgments), self._measures, groups, "expected")
        return _Values({query: i for i, query in enumerate(judgments.queries)}, found[:, 0])


@dataclass(frozen=True)
class _Comparison:
    """What a row says before any numbers."""

    run: str
    measure: str
    source: str
    parts: SplitBySource
    margin: float
    alpha: float

    def row(self, a: Floats, b: Floats) -> Equivalence:
        """Compare two sides' per-query values; the correction and the outcome need all rows and come later."""
        defined = ~(np.isnan(a) | np.isnan(b))
        excluded = int((~defined).sum())
        a, b = a[defined], b[defined]
        difference = a - b
        low, high = t_interval(difference)
        return Equivalence(
            run=self.run,
            measure=self.measure,
            source=self.source,
            on_reference=_mean(a),
            on_source=_mean(b),
            difference=_mean(difference),
            low=low,
            high=high,
            p_different=t_test_p(difference),
            p_corrected=np.nan,
            margin=self.margin,
            p_equivalent=tost_p(difference, self.margin),
            smallest=smallest_margin(difference, self.alpha),
            outcome="not tested",
            queries=len(difference),
            excluded=excluded,
            pairs=self.parts.pairs,
            left_out=self.parts.left_out,
        )


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else np.nan

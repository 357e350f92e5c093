"""Whether both sources alone are as easy to search: the paired equivalence test (Dai et al., KDD 2024, Table 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.alignment import Aligned, Judgments, group_values
from ranktilt.auditing.groups import grouping
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.measures.base import Measure
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import check_reranked
from ranktilt.statistics.correction import correct
from ranktilt.statistics.equivalence import smallest_margin, t_interval, tost_p
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

    Both hold all queries, the documents of their source that have a twin on the other side, and the judgments of these.
    Without that restriction the side with more documents would be the harder one to search, and a collection of which
    only a part was rewritten would say nothing.
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
    """Rank each source alone with each ranker, and compare them query by query; by source, ranker and measure.

    Equivalence is shown where `tost_p` is below `alpha`, a difference where the two-sided paired t test is, corrected
    by Holm over all rows. The p of equivalence is not corrected: that *all* rows are equivalent is a claim that each
    must carry, which keeps the level (Berger 1982).
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
        run = check_reranked(ranker.rank(side), None, ranker)
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

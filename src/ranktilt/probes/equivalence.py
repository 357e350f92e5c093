"""Whether both sources alone are as easy to search: the paired equivalence test (Dai et al., KDD 2024, Table 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.effects import Equivalence
from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments, group_values
from ranktilt.auditing.significance import EquivalenceTask, equivalence_rows
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.measures.base import Measure
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import check_reranked

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
    sides = [alone(collection, paired.filter(pl.col("source") == name), name) for name in (reference, source)]
    both = docs.filter(pl.col("source").is_in([reference, source])).height
    return SplitBySource(sides[0], sides[1], len(shared), both - sides[0].docs.height - sides[1].docs.height)


def alone(collection: Collection, docs: pl.DataFrame, source: str) -> Collection:
    """The collection of some documents only, which `source` names: all queries, and the judgments of these."""
    judged = collection.qrels.join(docs, left_on="doc_id", right_on="id", how="semi", maintain_order="left")
    return Collection(docs, collection.queries, judged, {**collection.spec, "only": source})


MARGIN, ALPHA = 0.02, 0.05


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

    Equivalence is shown where `tost_p` is below `alpha`, a difference where the corrected p is.
    """
    if not 0 < margin < 1:
        raise UserError(f"expected a margin above 0 and below 1, such as {MARGIN:g}, got {margin:g}")
    if not 0 < alpha < 0.5:
        raise UserError(f"expected an alpha above 0 and below 0.5, such as {ALPHA:g}, got {alpha:g}")
    for one in rankers:
        one.check()
    ranked = _Ranked(measures)
    tasks = []
    for source in sources:
        parts = split_by_source(collection, reference, source)
        for one in rankers if parts.pairs else ():
            left, right = (ranked.values(one, side) for side in (parts.reference, parts.source))
            for place, m in enumerate(measures):
                a, b = (found.of(collection.judged["id"], place) for found in (left, right))
                tasks.append(EquivalenceTask(repr(one), m, reference, source, a, b, parts.pairs, parts.left_out))
    return equivalence_rows(tasks, margin=margin, alpha=alpha)


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

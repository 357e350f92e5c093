"""How far lists move from the baseline's: the cost of a correction if nothing is judged.

Without judgments, lost effectiveness cannot be measured. But the fewer documents a correction
replaces, the less it can harm. The *budget* is the share of documents that it may replace.

The *effective number* of queries is how many independent queries they are worth. It follows from
the *influence* of each query on a mean: how much it pulls the mean away from the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from ranktilt.auditing.comparison.changes import Columns
from ranktilt.auditing.effects import FEWEST
from ranktilt.auditing.gate.result import Outcome
from ranktilt.auditing.result import Audit
from ranktilt.data.runs.run import Run
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import resampled_means, shared_numbering
from ranktilt.statistics.inversion import infer
from ranktilt.statistics.judges.rank_correlation import list_overlap
from ranktilt.statistics.two_way import Influence

PAGE = 10
"""Number of first ranks among which replaced documents are counted."""
DEEPEST = 100
"""Number of first ranks that the rank-biased overlap compares.

Each rank has .9 times the weight of the rank before it. All lower ranks together have a weight of
less than .0001.
"""


@dataclass(frozen=True, kw_only=True)
class MovementMean:
    """A mean over queries with its 95 % bootstrap interval."""

    value: float
    """The mean; NaN without any query."""
    low: float
    """Lower end of the interval; NaN if the queries are too few for an interval."""
    high: float
    """Upper end of the interval; NaN if the queries are too few for an interval."""


@dataclass(frozen=True, kw_only=True)
class Movement:
    """Distance of a candidate's lists from the baseline's, over the same queries.

    Lists are compared as they are written: documents with equal scores in the order of the run.
    """

    candidate: str
    """Name of the candidate."""
    rbo: MovementMean
    """Rank-biased overlap of the lists (Webber, Moffat & Zobel, ACM TOIS 28(4), 2010; p = .9).

    It is from 0 (no document in common) to 1 (equal lists).
    """
    replaced: MovementMean
    """Percentage of the baseline's first ten documents that are not among the candidate's ten."""
    queries: int
    """Number of queries for which the baseline returns any document."""
    effective_n: float
    """Effective number of these queries; queries with the same results count once."""

    @property
    def testable(self) -> bool:
        """Whether there are enough queries for a verdict: an effective number of 10."""
        return self.effective_n >= FEWEST

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval of `replaced` are defined."""
        return not (math.isnan(self.replaced.low) or math.isnan(self.replaced.high))

    def outcome(self, budget: float) -> Outcome:
        """Compare the replaced documents with a budget, in percent.

        ``level`` if the whole interval is within the budget, ``tilted`` if it is completely above,
        else ``inconclusive``.
        """
        if not (self.testable and self.has_interval):
            return "inconclusive"
        if self.replaced.high <= budget:
            return "level"
        return "tilted" if self.replaced.low > budget else "inconclusive"


@dataclass(frozen=True, kw_only=True, eq=False)
class ListDistances:
    """How much a run's lists differ from the baseline's, query by query; shape (n_queries,)."""

    rbo: Floats
    """Rank-biased overlap, from 0 to 1; NaN if the baseline's list is empty."""
    replaced: Floats
    """Share of the first ten documents that is replaced, 0 to 1; NaN if the baseline's list is
    empty."""

    @property
    def mean_replaced(self) -> float:
        """Mean share of replaced documents, in percent; NaN if all lists are empty."""
        known = self.replaced[~np.isnan(self.replaced)]
        return 100 * float(known.mean()) if len(known) else math.nan


def list_distances(baseline: Run, run: Run, queries: Sequence[str]) -> ListDistances:
    """Compare the lists of two runs, query by query."""
    old, new = _ranks(baseline, "old"), _ranks(run, "new")
    shared = old.join(new, on=["query_id", "doc_id"], how="inner")
    # For each query, the documents that are in both lists, with their ranks in both.
    shared_by_query = {
        str(query): documents
        for (query,), documents in shared.partition_by("query_id", as_dict=True).items()
    }
    old_lengths, new_lengths = _lengths(baseline), _lengths(run)
    rbo, replaced = np.full(len(queries), np.nan), np.full(len(queries), np.nan)
    for number, query in enumerate(queries):
        length = old_lengths.get(query, 0)
        if not length:
            continue
        documents = shared_by_query.get(query, shared.clear())
        old_ranks, new_ranks = documents["old"].to_numpy(), documents["new"].to_numpy()
        page = min(PAGE, length)  # a list may be shorter than ten
        remaining = int(((old_ranks <= page) & (new_ranks <= PAGE)).sum())
        replaced[number] = 1 - remaining / page
        depth = min(length, new_lengths.get(query, 0), DEEPEST)
        rbo[number] = list_overlap(old_ranks, new_ranks, depth) if depth else 0.0
    return ListDistances(rbo=rbo, replaced=replaced)


def shares_replaced(runs: Sequence[Run]) -> list[float]:
    """Return for each run the percentage of the first run's first ten documents that it replaces.

    It is infinite if all lists of the first run are empty, so that no run is within a budget.
    """
    queries = runs[0].queries
    shares = [list_distances(runs[0], run, queries).mean_replaced for run in runs]
    return [math.inf if math.isnan(share) else share for share in shares]


def _ranks(run: Run, name: str) -> pl.DataFrame:
    """Return query, document and rank of the first `DEEPEST` results.

    `name` is the name of the column of ranks.
    """
    frame = run.frame().filter(pl.col("rank") <= DEEPEST)
    return frame.select("query_id", "doc_id", pl.col("rank").alias(name))


def _lengths(run: Run) -> Mapping[str, int]:
    """Return the length of each query's list."""
    offsets = pairwise(run.offsets.tolist())
    return {query: stop - start for query, (start, stop) in zip(run.queries, offsets, strict=True)}


def movements_from(
    audited: Audit, runs: Mapping[str, Run], *, resamples: int, seed: int
) -> tuple[Movement, ...]:
    """Return how far each run moves the lists of the first one, over the same queries.

    `audited` is an audit of these runs under the same names; it knows which queries are repeats.
    """
    (baseline, baseline_run), *others = runs.items()
    baseline_numbers = audited.distinct(baseline)
    return tuple(
        movement(
            name,
            list_distances(baseline_run, run, audited.queries),
            shared_numbering([audited.distinct(name), baseline_numbers]),
            resamples=resamples,
            seed=seed,
        )
        for name, run in others
    )


def movement(
    candidate: str,
    distances: ListDistances,
    distinct: np.ndarray[tuple[int], np.dtype[np.int64]] | None,
    *,
    resamples: int,
    seed: int,
) -> Movement:
    """Return the mean distances of a candidate with their intervals over queries.

    `distinct` has a number for each query; queries that repeat each other have one number and count
    once. None if no query is a repeat.
    """
    # `Columns` holds several columns; these have only one.
    overlap = Columns(values=distances.rbo[None], distinct=distinct)
    replaced = Columns(values=distances.replaced[None], distinct=distinct)
    return Movement(
        candidate=candidate,
        rbo=_mean(overlap, scale=1.0, neutral=1.0, resamples=resamples, seed=seed),
        replaced=_mean(replaced, scale=100.0, neutral=0.0, resamples=resamples, seed=seed),
        queries=replaced.queries,
        effective_n=_influence(replaced).variance().effective_n,
    )


def _influence(columns: Columns) -> Influence:
    """Return the influence of each query on a mean, from which the mean's variance follows."""
    (sums,), sizes = columns.sums, columns.sizes
    mean = float(sums.sum() / sizes.sum()) if len(sizes) else 0.0
    return Influence.from_queries(sums - mean * sizes, sizes)


def _mean(
    columns: Columns, *, scale: float, neutral: float, resamples: int, seed: int
) -> MovementMean:
    """Return a mean with its interval, each multiplied by `scale`, which is also their upper bound.

    `neutral` is the mean if no list moves at all.
    """
    (sums,), sizes = columns.sums, columns.sizes
    value = scale * float(columns.means[0])
    resampled_sums, resampled_sizes = resampled_means([sums, sizes], resamples=resamples, seed=seed)
    inference = infer(
        scale * resampled_sums / resampled_sizes,
        value,
        variance=_influence(columns).scaled(scale).variance(),
        neutral=neutral,
        bounds=(0.0, scale),
    )
    return MovementMean(value=value, low=inference.low, high=inference.high)

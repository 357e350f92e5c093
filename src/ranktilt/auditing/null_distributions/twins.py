"""Twins under exchanged labels.

*Twins* are two versions of one document, a version of each of two groups. The document that they
are versions of is their *origin*; a *label* says which group a version is in. If the groups did not
matter, the labels of both versions could be exchanged, and answers would be as large as before. An
exchange holds for all lists in which the two versions occur.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ranktilt.auditing.groups import Groups, Pair
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.null_distributions.base import NullDistribution
from ranktilt.auditing.null_distributions.pages import Signs
from ranktilt.auditing.significance import InferenceOptions, Sample
from ranktilt.measures.ranking import Ints
from ranktilt.measures.twins.base import TwinLists
from ranktilt.statistics.permutation import exchanged_sums
from ranktilt.statistics.two_way import Clusters

_LABEL_SEED = 4
"""Second part of the seed of labels; no other null distribution uses it."""
_EXCHANGE_SEED = 5
"""Second part of the seed of exchanges; no other null distribution uses it."""


@dataclass(frozen=True, kw_only=True)
class TwinPairs:
    """The twins between two groups."""

    pair: Pair
    """Names of both groups."""
    rows: Ints
    """Rows in the collection of each two twins, the first group's first; shape (n_twins, 2)."""
    relevant: tuple[Ints, Ints] | None
    """Twins that are relevant to a query, retrieved or not: indexes of the query and in `rows`.

    Twins are relevant if either of them is. None if nothing is judged.
    """
    documents: int
    """Number of documents of the collection."""
    origins: Ints | None = None
    """Number of the origin of each document, by row; −1 if no version of the origin has a twin.

    None where labels are not exchanged.
    """

    @classmethod
    def from_rows(
        cls, pair: Pair, rows: Ints, judgments: Judgments, origins: Ints | None = None
    ) -> TwinPairs:
        """Add to the rows of twins which of them are relevant, and their origins."""
        twin_origins = None
        if origins is not None and len(rows):
            twin_origins = np.where(np.isin(origins, origins[rows]), origins, -1)
        return cls(
            pair=pair,
            rows=rows,
            relevant=_relevant_twins(rows, judgments) if judgments.has_relevant else None,
            documents=judgments.documents,
            origins=twin_origins,
        )

    def lists(self, judged_run: JudgedRun, missing: str) -> TwinLists:
        """Return a run as the input of questions about these twins.

        `missing` says what a query that the run lacks counts as: ``zero``, or ``exclude`` to leave
        it out. Queries that are left out have no relevant twins.
        """
        judgments, relevant = judged_run.judgments, self.relevant
        if relevant is not None:
            query, twins = relevant
            keep = ~judged_run.left_out(missing)[query]
            relevant = query[keep], twins[keep]
        is_known = judgments.known_query[judged_run.ranking.query]
        # Documents that only the judgments name have rows after those of the collection.
        is_counted = (judged_run.row < self.documents) & is_known
        return TwinLists(
            ranking=judged_run.ranking,
            docs=np.where(is_counted, judged_run.row, -1),
            pairs=self.rows,
            relevant=(judgments.query, judgments.row),
            relevant_pairs=relevant,
            # A run that was read with score order "rank" has no scores to compare.
            scored=judged_run.run.spec.get("score_order") != "rank",
        )

    def clusters(self, by_row: Clusters | None) -> Clusters | None:
        """Replace the row of each document by the number of its origin in `by_row`.

        `by_row` is what each document adds to an answer. Returns None if it is None, or if labels
        are not exchanged.
        """
        return None if by_row is None or self.origins is None else by_row.with_origins(self.origins)


def _relevant_twins(rows: Ints, judgments: Judgments) -> tuple[Ints, Ints]:
    """Return the query of all relevant twins, and their index in `rows`, sorted by both."""
    judged = pl.DataFrame({"query": judgments.query, "row": judgments.row})
    judged = judged.filter(pl.Series(judgments.known_query[judgments.query]))
    table = pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "twins": np.arange(len(rows))})
    sides = [
        judged.join(table, left_on="row", right_on=side).select("query", "twins")
        for side in ("a", "b")
    ]
    relevant = pl.concat(sides).unique().sort("query", "twins")
    query, twins = (relevant[column].to_numpy().astype(np.int64) for column in ("query", "twins"))
    return query, twins


def signs_of(groups: Groups, pair: Pair) -> Signs:
    """Return 1 for documents of the first group of a pair, −1 for those of the second, else 0."""
    a, b = (groups.names.index(name) for name in pair)
    signs: Signs = (groups.code == a).astype(np.int8) - (groups.code == b).astype(np.int8)
    return signs


def share_difference(signs: Signs) -> float:
    """Return how much larger the first group's share of the collection is than the second's."""
    return float(signs.sum(dtype=np.int64)) / max(len(signs), 1)


def all_paired(signs: Signs, rows: Ints) -> bool:
    """Return whether each document of either group has exactly one twin in the other.

    `signs` are those of `signs_of`, and `rows` those of `TwinPairs`.
    """
    first_count, second_count = int((signs == 1).sum()), int((signs == -1).sum())
    if not first_count == second_count == len(rows):
        return False
    # As many twins as documents: so each has one twin unless a document occurs twice.
    return all(np.unique(rows[:, side]).size == len(rows) for side in (0, 1))


def exchanged_labels(
    judged_run: JudgedRun, groups: Groups, entry_groups: Ints, twins: TwinPairs, *, seed: int
) -> Iterator[Ints]:
    """Yield the group of each entry of a run after a random exchange of labels, without end.

    All twins exchange their labels with a probability of one half, in all lists alike.
    `entry_groups` has the index of each entry's group, −1 for none. Every draw is written into the
    same array: use it before you ask for the next.
    """
    first, second = (groups.names.index(name) for name in twins.pair)
    rng = np.random.default_rng([seed, _LABEL_SEED])
    labelled = np.flatnonzero(entry_groups >= 0)
    drawn_groups, row = entry_groups.copy(), judged_run.row[labelled]
    observed = entry_groups[labelled]
    # The index of the opposite group is first + second − observed.
    step_to_opposite = first + second - 2 * observed
    while True:
        is_exchanged = np.zeros(len(groups.code), dtype=np.int64)
        is_exchanged[twins.rows[rng.random(len(twins.rows)) < 0.5]] = 1
        # To multiply by 0 or 1 is faster than `np.where`.
        drawn_groups[labelled] = observed + step_to_opposite * is_exchanged[row]
        yield drawn_groups


def compare_with_exchanges(
    sample: Sample, options: InferenceOptions, *, shows_random_band: bool
) -> Sample:
    """Add to an answer about twins its p among answers under exchanged labels.

    Both labels of an origin are exchanged in all queries alike, or in none. With
    `shows_random_band`, the sample also gets the range of these answers, which is symmetric about
    0; else this range is empty. A sample without `Sample.clusters` is returned as it is.
    """
    weight = float(sample.denominator.sum())
    if sample.clusters is None or not weight:
        return sample
    totals = sample.clusters.origin_totals
    seed = [options.seed, _EXCHANGE_SEED]
    draws = exchanged_sums(totals, draws=options.resamples, seed=seed) / weight
    null = NullDistribution.from_draws(sample.value, draws)
    if not shows_random_band:
        null = NullDistribution.without_band(null.p)
    return replace(sample, null=null)

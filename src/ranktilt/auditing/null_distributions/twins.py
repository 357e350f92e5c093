"""Twins: pairs of documents of one origin, whose labels are exchanged in all lists alike."""

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
    """Rows of both documents of each pair of twins, of shape (n_pairs, 2)."""
    relevant: tuple[Ints, Ints] | None
    """Query and pair of every relevant pair, retrieved or not; None if nothing is judged."""
    documents: int
    """Number of documents of the collection."""
    origins: Ints | None = None
    """Number of each document's origin, −1 without a pair; None where labels are not exchanged."""

    @classmethod
    def from_rows(
        cls, pair: Pair, rows: Ints, judgments: Judgments, origins: Ints | None = None
    ) -> TwinPairs:
        """Find the relevant pairs: those with a relevant document on either side."""
        paired_origins = None
        if origins is not None and len(rows):
            paired_origins = np.where(np.isin(origins, origins[rows]), origins, -1)
        return cls(
            pair=pair,
            rows=rows,
            relevant=_relevant_pairs(rows, judgments) if judgments.has_relevant else None,
            documents=judgments.documents,
            origins=paired_origins,
        )

    def lists(self, judged_run: JudgedRun, missing: str) -> TwinLists:
        """Find the twins in a run, without relevant pairs of queries that do not count."""
        judgments, relevant = judged_run.judgments, self.relevant
        if relevant is not None:
            query, pair = relevant
            keep = ~judged_run.left_out(missing)[query]
            relevant = query[keep], pair[keep]
        is_known = judgments.known_query[judged_run.ranking.query]
        is_counted = (judged_run.row < self.documents) & is_known
        return TwinLists(
            ranking=judged_run.ranking,
            docs=np.where(is_counted, judged_run.row, -1),
            pairs=self.rows,
            relevant=(judgments.query, judgments.row),
            relevant_pairs=relevant,
            scored=judged_run.run.spec.get("score_order") != "rank",
        )

    def clusters(self, by_row: Clusters | None) -> Clusters | None:
        """Replace documents by origins; None if pairs do not exchange labels."""
        return None if by_row is None or self.origins is None else by_row.with_origins(self.origins)


def _relevant_pairs(rows: Ints, judgments: Judgments) -> tuple[Ints, Ints]:
    """Return the query and the pair of every pair with a relevant document."""
    judged = pl.DataFrame({"query": judgments.query, "row": judgments.row})
    judged = judged.filter(pl.Series(judgments.known_query[judgments.query]))
    table = pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "pair": np.arange(len(rows))})
    sides = [
        judged.join(table, left_on="row", right_on=side).select("query", "pair")
        for side in ("a", "b")
    ]
    relevant = pl.concat(sides).unique().sort("query", "pair")
    query, pair = (relevant[column].to_numpy().astype(np.int64) for column in ("query", "pair"))
    return query, pair


def signs_of(groups: Groups, pair: Pair) -> Signs:
    """Return 1 for documents of the first group of a pair, −1 for those of the second, else 0."""
    a, b = (groups.names.index(name) for name in pair)
    signs: Signs = (groups.code == a).astype(np.int8) - (groups.code == b).astype(np.int8)
    return signs


def share_difference(signs: Signs) -> float:
    """Return the difference of the two groups' shares of the collection."""
    return float(signs.sum(dtype=np.int64)) / max(len(signs), 1)


def all_paired(signs: Signs, rows: Ints) -> bool:
    """Return whether each document of either group has exactly one twin in the other."""
    return all(
        np.unique(rows[:, side]).size == len(rows) == int((signs == sign).sum())
        for side, sign in ((0, 1), (1, -1))
    )


def turned_labels(
    judged_run: JudgedRun, groups: Groups, code: Ints, twins: TwinPairs, *, seed: int
) -> Iterator[Ints]:
    """Exchange the labels of twins in a run, alike in all lists, again and again."""
    both = sum(groups.names.index(name) for name in twins.pair)
    rng = np.random.default_rng([seed, _LABEL_SEED])
    labelled = np.flatnonzero(code >= 0)
    labels, row = code.copy(), judged_run.row[labelled]
    labels_before = code[labelled]
    difference = both - 2 * labels_before
    while True:
        exchanging = np.zeros(len(groups.code), dtype=np.int64)
        exchanging[twins.rows[rng.random(len(twins.rows)) < 0.5]] = 1
        # A product takes no branches, as a choice of either label would.
        labels[labelled] = labels_before + difference * exchanging[row]
        yield labels


def among_exchanged(sample: Sample, options: InferenceOptions, *, banded: bool) -> Sample:
    """Compare a sample of twins with draws in which labels are exchanged within origins.

    An origin's labels are exchanged in all queries alike. `banded` says whether the range of the
    draws is shown; it is even around 0.
    """
    weight = float(sample.denominator.sum())
    if sample.clusters is None or not weight:
        return sample
    totals = sample.clusters.origin_totals
    seed = [options.seed, _EXCHANGE_SEED]
    draws = exchanged_sums(totals, draws=options.resamples, seed=seed) / weight
    null = NullDistribution.from_draws(sample.value, draws)
    unbanded = NullDistribution(low=0.0, high=0.0, p=null.p)
    return replace(sample, null=null if banded else unbanded)

"""Twins: pairs of documents of one origin, whose two labels are exchanged in all lists alike."""

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

_LABEL_SEED, _EXCHANGE_SEED = 4, 5


@dataclass(frozen=True)
class TwinPairs:
    """Two groups to compare, and the rows of their twins."""

    pair: Pair
    rows: Ints
    """Shape (n_pairs, 2)."""
    wanted: tuple[Ints, Ints] | None
    """Query and pair of every relevant pair, retrieved or not; None where nothing is judged."""
    documents: int
    """Of the collection."""
    origins: Ints | None = None
    """Number of each document's origin, −1 without a pair; None where labels are not exchanged."""

    @classmethod
    def from_rows(
        cls, pair: Pair, rows: Ints, judgments: Judgments, origins: Ints | None = None
    ) -> TwinPairs:
        """Find the relevant pairs: those of which either side is judged so."""
        number = None
        if origins is not None and len(rows):
            number = np.where(np.isin(origins, origins[rows]), origins, -1)
        documents = judgments.documents
        if not judgments.has_relevant:
            return cls(pair, rows, None, documents, number)
        judged = pl.DataFrame({"query": judgments.query, "row": judgments.row})
        judged = judged.filter(pl.Series(judgments.known_query[judgments.query]))
        table = pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "pair": np.arange(len(rows))})
        sides = [
            judged.join(table, left_on="row", right_on=side).select("query", "pair")
            for side in ("a", "b")
        ]
        relevant = pl.concat(sides).unique().sort("query", "pair")
        query, wanted = (
            relevant[column].to_numpy().astype(np.int64) for column in ("query", "pair")
        )
        return cls(pair, rows, (query, wanted), documents, number)

    def lists(self, judged_run: JudgedRun, missing: str) -> TwinLists:
        """Look for the twins in a run; relevant pairs of queries that count nowhere are left out."""
        judgments, wanted = judged_run.judgments, self.wanted
        if wanted is not None:
            keep = ~judged_run.left_out(missing)[wanted[0]]
            wanted = wanted[0][keep], wanted[1][keep]
        counted = (judged_run.row < self.documents) & judgments.known_query[
            judged_run.ranking.query
        ]
        return TwinLists(
            ranking=judged_run.ranking,
            docs=np.where(counted, judged_run.row, -1),
            pairs=self.rows,
            relevant=(judgments.query, judgments.row),
            relevant_pairs=wanted,
            scored=judged_run.run.spec.get("score_order") != "rank",
        )

    def clusters(self, by_row: Clusters | None) -> Clusters | None:
        """Put origins in place of documents; None where pairs do not exchange labels."""
        return None if by_row is None or self.origins is None else by_row.with_origins(self.origins)


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
    judged_run: JudgedRun, groups: Groups, code: Ints, twins: TwinPairs, seed: int
) -> Iterator[Ints]:
    """Exchange twins' labels of a run's entries, alike in all lists, again and again."""
    both = sum(groups.names.index(name) for name in twins.pair)
    rng = np.random.default_rng([seed, _LABEL_SEED])
    labelled = np.flatnonzero(code >= 0)
    labels, row = code.copy(), judged_run.row[labelled]
    while True:
        exchanging = np.zeros(len(groups.code), dtype=bool)
        exchanging[twins.rows[rng.random(len(twins.rows)) < 0.5]] = True
        labels[labelled] = np.where(exchanging[row], both - code[labelled], code[labelled])
        yield labels


def among_exchanged(sample: Sample, how: InferenceOptions, *, banded: bool) -> Sample:
    """Put a sample of twins among those under labels exchanged within origins, in all queries alike.

    `banded`: whether what exchanged labels give is shown; it lies evenly around 0.
    """
    weight = float(sample.denominator.sum())
    if sample.clusters is None or not weight:
        return sample
    totals = sample.clusters.origin_totals
    draws = exchanged_sums(totals, draws=how.resamples, seed=[how.seed, _EXCHANGE_SEED]) / weight
    null = NullDistribution.from_draws(sample.value, draws)
    return replace(sample, null=null if banded else NullDistribution(0.0, 0.0, null.p))

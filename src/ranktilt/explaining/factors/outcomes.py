"""Where each version of a document stands in a run: what factors have effects on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.list_variation import fixed_lists
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, codes, collection_rows
from ranktilt.generation.versions.design import has_changed_facts
from ranktilt.measures.ranking import Judged, Ranking, per_block, running_sums
from ranktilt.measures.twins.base import Positions
from ranktilt.measures.twins.score_gap import spread
from ranktilt.statistics.variation import Variation

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_CELLS = 1 << 22
"""Most pairs of versions that are compared at once."""


class Outcome(NamedTuple):
    """Values of versions on one estimand; versions of the same query and origin are neighbours."""

    values: Floats
    """Value of each version."""
    group: Ints
    """Number of the query and origin that a version belongs to."""
    query: Ints
    """Number of its query."""
    origin: Ints
    """Number of its origin."""
    row: Ints
    """Row of the version in the collection."""


class Targets(NamedTuple):
    """The documents whose versions are compared: pairs of query and origin, by number."""

    query: Ints
    """Number of the query."""
    origin: Ints
    """Number of the origin."""
    grade: Floats
    """NaN where nothing is judged."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Standings:
    """A run of a designed collection, and the versions that are compared in it."""

    collection: Collection
    """The designed collection."""
    run: Run
    """Its run."""
    versions: Ints
    """Rows of the versions of each origin, by the origin's number, padded with −1: (n_origins,
    most).
    """

    @cached_property
    def ranking(self) -> Ranking:
        """The scores of the run, list by list."""
        return Ranking(self.run.offsets, self.run.scores)

    @cached_property
    def docs(self) -> Ints:
        """Row in the collection of each entry of the run."""
        return collection_rows(self.run, self.collection)[self.run.docs]

    @cached_property
    def targets(self) -> Targets:
        """Return the relevant documents of which a version is retrieved; unjudged, all that are.

        Where no version is retrieved all have one rank, whatever the factors do.
        """
        query, origin, grade = self._judged
        is_retrieved = np.isin(query * len(self.versions) + origin, self._retrieved)
        return Targets(query[is_retrieved], origin[is_retrieved], grade[is_retrieved])

    @property
    def left_out(self) -> int:
        """How many documents judged relevant, query by query, have no version that is retrieved."""
        return len(self._judged.query) - len(self.targets.query)

    @cached_property
    def _retrieved(self) -> Ints:
        """Query and origin, as one number, of which a version is retrieved."""
        width, ours = len(self.versions), np.zeros(self.collection.docs.height, dtype=bool)
        ours[self.versions[self.versions >= 0]] = True
        is_version = (self.docs >= 0) & ours[self.docs]
        origin = self.collection.origin_codes()[self.docs[is_version]]
        return np.unique(self.ranking.query[is_version] * width + origin)

    @cached_property
    def _judged(self) -> Targets:
        """Return the origins with several versions, one of them relevant, by the highest grade.

        What false versions are worth chooses no document: who judged them would change who is
        compared.
        """
        origins, width = self.collection.origin_codes(), len(self.versions)
        if self.collection.qrels.height:
            query, row, grade = self._judgments
            known = (grade > 0) & ~has_changed_facts(self.collection.docs).to_numpy()[row]
            key, grade = query[known] * width + origins[row[known]], grade[known]
        else:
            key, grade = self._retrieved, np.full(len(self._retrieved), np.nan)
        order = np.lexsort((-grade, key))
        key, first = np.unique(key[order], return_index=True)
        several = (self.versions[key % width] >= 0).sum(axis=1) > 1
        return Targets(key[several] // width, key[several] % width, grade[order][first][several])

    @cached_property
    def _judgments(self) -> tuple[Ints, Ints, Floats]:
        """Query, document row and grade of each judgment, by query and row."""
        qrels = self.collection.qrels
        query, row = (
            codes(qrels["query_id"], self._queries),
            codes(qrels["doc_id"], self.collection.ids),
        )
        known = np.flatnonzero((query >= 0) & (row >= 0))
        order = known[np.lexsort((row[known], query[known]))]
        return query[order], row[order], qrels["grade"].to_numpy().astype(np.float64)[order]

    @cached_property
    def grades(self) -> Floats:
        """Return the grade of each version, or of its document: (n_targets, most)."""
        query, row, grade = self._judgments
        width = self.collection.docs.height + 1
        judged_keys = query * width + row
        keys = self.targets.query[:, None] * width + self.rows
        at = np.minimum(np.searchsorted(judged_keys, keys), len(judged_keys) - 1)
        is_judged = judged_keys[at] == keys
        return np.where(is_judged, np.maximum(grade[at], 0), self.targets.grade[:, None])

    @property
    def _queries(self) -> pl.Series:
        """Ids of the run's queries."""
        return pl.Series("query_id", self.run.queries, dtype=pl.String)

    @cached_property
    def rows(self) -> Ints:
        """Rows of the versions of each target, padded: (n_targets, most)."""
        return self.versions[self.targets.origin]

    @cached_property
    def entries(self) -> Ints:
        """Entry of each version in the run, −1 where it was not retrieved: (n_targets, most)."""
        query = np.repeat(self.targets.query, self.rows.shape[1])
        rows = self.rows.ravel()
        positions = Positions.from_ranking(self.ranking, self.docs)
        entries = positions.find(query, np.where(rows >= 0, rows, 0))
        return np.where(rows >= 0, entries, -1).reshape(self.rows.shape)

    @cached_property
    def scores(self) -> Floats:
        """Score of each version; −∞ where it was not retrieved."""
        at = self.entries
        return (
            np.where(at >= 0, self.run.scores[at], -np.inf)
            if len(self.run.scores)
            else np.full(at.shape, -np.inf)
        )

    @cached_property
    def variation(self) -> Variation:
        """Count the compared lists in which a document could have another rank."""
        lists = np.zeros(len(self.run.queries), dtype=bool)
        lists[self.targets.query] = True
        known = self.docs >= 0
        return fixed_lists(
            lists, self.run.offsets, self.ranking.query[known], self.run.scores[known]
        )

    @property
    def absent(self) -> float:
        """Share of the versions that were not retrieved."""
        present = self.rows >= 0
        return float((self.entries[present] < 0).mean()) if present.any() else np.nan

    @property
    def cut(self) -> bool:
        """Whether most lists are as long as the longest, because the ranker cuts them."""
        lengths = np.diff(self.run.offsets)
        return bool((lengths == lengths.max(initial=0)).mean() > 0.5)

    def ranks(self, weights: Floats) -> Floats:
        """Return the rank of each version among all other documents, each in one of its versions.

        ``1 + Σ_other origins Σ_versions w · [above, half where tied]``: the expected rank, where
        `weights` of an origin's rows are the probabilities of its versions. What was not retrieved
        stands below all that was.
        """
        ranking, docs, n = self.ranking, self.docs, len(self.run.queries)
        entry_weights = np.where(docs >= 0, weights[docs], 0.0)
        blocks = per_block(ranking, entry_weights)
        above = np.repeat(running_sums(ranking, blocks) - blocks / 2, ranking.sizes)
        total = np.bincount(ranking.query, weights=entry_weights, minlength=n)[self.targets.query]
        at = self.entries
        better = np.where(at >= 0, above[at], total[:, None]) if len(above) else np.zeros(at.shape)
        # A document's own versions are no competitors.
        siblings = np.where(at >= 0, weights[self.rows], 0.0)
        for part, wins, ties in self._contests():
            losses = np.swapaxes(wins, 1, 2)
            better[part] -= ((losses + ties / 2) * siblings[part][:, None, :]).sum(axis=2)
        ranks: Floats = 1 + better
        return ranks

    def won(self) -> Floats:
        """Return the share of a document's versions that each beats, minus those that beat it."""
        net_wins = np.zeros(self.rows.shape)
        present = self.rows >= 0
        for part, wins, _ in self._contests():
            wins = wins & present[part][:, None, :] & present[part][:, :, None]
            versions = present[part].sum(axis=1)[:, None]
            net_wins[part] = (wins.sum(axis=2) - wins.sum(axis=1)) / versions
        return net_wins

    def _contests(self) -> Iterator[tuple[slice, Bools, Bools]]:
        """Return who ranks above whom (target, winner, loser), and ties, some targets at a time."""
        step = max(_CELLS // self.rows.shape[1] ** 2, 1)
        for start in range(0, len(self.rows), step):
            part = slice(start, start + step)
            row_scores, column_scores = (
                self.scores[part][:, :, None],
                self.scores[part][:, None, :],
            )
            yield part, row_scores > column_scores, row_scores == column_scores

    def rank_gap(self, weights: Floats) -> Outcome:
        """How high each version ranks: its rank, negated."""
        return self._outcome(-self.ranks(weights))

    def exposure(self, weights: Floats) -> Outcome:
        """Return ``100 / log2(1 + rank)``, the percentage of the first rank; 0 if not retrieved."""
        return self._outcome(
            np.where(self.entries >= 0, 100 / np.log2(1 + self.ranks(weights)), 0.0)
        )

    def score_gap(self) -> Outcome | None:
        """Return scores in standard deviations where all versions are retrieved, else None."""
        if not self.run.scored:
            return None
        deviation = spread(self.ranking)[self.targets.query]
        all_retrieved = np.all((self.entries >= 0) | (self.rows < 0), axis=1)
        is_compared = all_retrieved & (deviation > 0)
        if not is_compared.any():
            return None
        values = np.zeros(self.rows.shape)
        values[is_compared] = self.scores[is_compared] / deviation[is_compared][:, None]
        return self._outcome(np.where(self.rows >= 0, values, 0.0), is_compared)

    def head_to_head(self) -> Outcome:
        """Return the share of a document's versions that each version beats, in percent."""
        return self._outcome(100 * self.won())

    def ndcg(self, weights: Floats) -> Outcome | None:
        """Return ``100 · grade / log2(1 + rank) / ideal DCG`` of each version; 0 if not retrieved.

        The ideal has each document in the version of its highest grade.
        """
        query, _, grade = self.targets
        if np.isnan(grade).any():
            return None
        best = np.maximum(self.grades.max(axis=1), grade)
        ideal = Judged(query=query, grade=best, n_queries=len(self.run.queries)).ideal(None)[query]
        gain = 100 * self.grades / ideal[:, None] / np.log2(1 + self.ranks(weights))
        return self._outcome(np.where(self.entries >= 0, gain, 0.0))

    def _outcome(self, values: Floats, which: Bools | None = None) -> Outcome:
        """Return the values of the versions that are there, of all targets or some."""
        present = self.rows >= 0
        if which is not None:
            present &= which[:, None]
        group = np.nonzero(present)[0]
        return Outcome(
            values=values[present],
            group=group,
            query=self.targets.query[group],
            origin=self.targets.origin[group],
            row=self.rows[present],
        )


def version_table(collection: Collection, designed: Bools) -> Ints:
    """Return the rows of each origin's designed versions, by its number, padded with −1."""
    origins = collection.origin_codes()
    rows = np.flatnonzero(designed)
    rows = rows[np.argsort(origins[rows], kind="stable")]
    owner = origins[rows]
    count = np.bincount(owner, minlength=int(origins.max(initial=-1)) + 1)
    column = np.arange(len(rows)) - (np.cumsum(count) - count)[owner]
    table = np.full((len(count), max(int(count.max(initial=0)), 1)), -1)
    table[owner, column] = rows
    return table


def even_weights(collection: Collection) -> Floats:
    """Return equal probabilities for the versions of each document, which add up to 1."""
    origins = collection.origin_codes()
    weights: Floats = 1.0 / np.bincount(origins)[origins]
    return weights


def adopted_weights(collection: Collection, levels: Floats, share: float) -> Floats:
    """Return probabilities by which a share of the documents has an edited version.

    `levels` are −1 and 1 by row, NaN for no level. Documents without both levels stay as they are.
    """
    origins, weights = collection.origin_codes(), even_weights(collection)
    n = int(origins.max(initial=-1)) + 1
    high, low = (np.bincount(origins[levels == level], minlength=n)[origins] for level in (1, -1))
    both = (high > 0) & (low > 0)
    for level, count, part in ((1, high, share), (-1, low, 1 - share)):
        of = both & (levels == level)
        weights[of] = part / count[of]
    weights[both & np.isnan(levels)] = 0.0
    return weights

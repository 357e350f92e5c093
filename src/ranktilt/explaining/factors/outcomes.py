"""How high each version of a document ranks in a run: the values that factors have effects on.

In a *designed collection* each document is written in several *versions*, of which a real
collection would hold one. The *origin* is the document that versions were made from. A *target* is
a query and an origin whose versions are compared under it. Tables of versions have a row for each
target (or origin) and as many columns as an origin has versions at most, padded.

An *estimand* says how high a version ranks: by rank, by score, in comparison with other versions of
the same document, or by what it adds to nDCG. `Standings` computes them, and an `Outcome` holds the
values of one.
"""

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
_MOST_PAIRS = 1 << 22
"""Maximum number of pairs of versions that are compared at once, which limits memory."""


class Outcome(NamedTuple):
    """Values of versions on one estimand; those of the same target follow each other."""

    values: Floats
    """Value of each version."""
    group: Ints
    """Index of each version's target."""
    query: Ints
    """Number of each version's query, in the run."""
    origin: Ints
    """Code of each version's origin."""
    row: Ints
    """Row of each version in the collection."""


class Targets(NamedTuple):
    """The queries and origins whose versions are compared."""

    query: Ints
    """Number of each target's query, in the run."""
    origin: Ints
    """Code of each target's origin."""
    grade: Floats
    """Highest grade of each target's versions; NaN if nothing is judged."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Standings:
    """A run of a designed collection, and the versions that are compared in it."""

    collection: Collection
    """The designed collection."""
    run: Run
    """The run."""
    versions: Ints
    """Rows in the collection of the versions of each origin, by the origin's code, padded with −1:
    (n_origins, most_versions).
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
        """Return the targets that are judged relevant and of which a version is retrieved.

        If nothing is judged, these are all targets of which a version is retrieved. If none is
        retrieved, all versions have the same rank, whatever the factors do.
        """
        query, origin, grade = self._relevant_targets
        is_retrieved = np.isin(query * len(self.versions) + origin, self._retrieved_keys)
        return Targets(query[is_retrieved], origin[is_retrieved], grade[is_retrieved])

    @property
    def left_out(self) -> int:
        """Number of relevant targets of which no version is retrieved."""
        return len(self._relevant_targets.query) - len(self.targets.query)

    @cached_property
    def _retrieved_keys(self) -> Ints:
        """Each query and origin of which a version is retrieved, as a key.

        The key is ``number of the query · number of origins + code of the origin``.
        """
        origin_count = len(self.versions)
        is_designed = np.zeros(self.collection.docs.height, dtype=bool)
        is_designed[self.versions[self.versions >= 0]] = True
        is_version = (self.docs >= 0) & is_designed[self.docs]
        origin = self.collection.origin_codes()[self.docs[is_version]]
        return np.unique(self.ranking.query[is_version] * origin_count + origin)

    @cached_property
    def _relevant_targets(self) -> Targets:
        """Return the targets with several versions, at least one of them relevant.

        If nothing is judged, these are all retrieved targets. Judgments of versions with changed
        facts choose no target: otherwise the judge of these versions would decide which documents
        are compared.
        """
        origins, origin_count = self.collection.origin_codes(), len(self.versions)
        if self.collection.qrels.height:
            query, row, grade = self._judgments
            counts = (grade > 0) & ~has_changed_facts(self.collection.docs).to_numpy()[row]
            keys, grade = query[counts] * origin_count + origins[row[counts]], grade[counts]
        else:
            keys, grade = self._retrieved_keys, np.full(len(self._retrieved_keys), np.nan)
        # With the highest grade first, the first place of each key has its highest grade.
        order = np.lexsort((-grade, keys))
        keys, first = np.unique(keys[order], return_index=True)
        grade = grade[order][first]
        has_several = (self.versions[keys % origin_count] >= 0).sum(axis=1) > 1
        keys, grade = keys[has_several], grade[has_several]
        return Targets(keys // origin_count, keys % origin_count, grade)

    @cached_property
    def _judgments(self) -> tuple[Ints, Ints, Floats]:
        """Number of the query, row of the document and grade of each judgment.

        They are sorted by query and row. Judgments of other queries or documents are left out.
        """
        qrels = self.collection.qrels
        query = codes(qrels["query_id"], self._query_ids)
        row = codes(qrels["doc_id"], self.collection.ids)
        known = np.flatnonzero((query >= 0) & (row >= 0))
        order = known[np.lexsort((row[known], query[known]))]
        return query[order], row[order], qrels["grade"].to_numpy().astype(np.float64)[order]

    @cached_property
    def grades(self) -> Floats:
        """Return the grade of each version: (n_targets, most_versions).

        A version that is not judged has its target's grade.
        """
        query, row, grade = self._judgments
        # Query and row as one number; padding has the row −1.
        width = self.collection.docs.height + 1
        judged_keys = query * width + row
        keys = self.targets.query[:, None] * width + self.rows
        index = np.minimum(np.searchsorted(judged_keys, keys), len(judged_keys) - 1)
        is_judged = judged_keys[index] == keys
        return np.where(is_judged, np.maximum(grade[index], 0), self.targets.grade[:, None])

    @property
    def _query_ids(self) -> pl.Series:
        """Ids of the run's queries."""
        return pl.Series("query_id", self.run.queries, dtype=pl.String)

    @cached_property
    def rows(self) -> Ints:
        """Rows of the versions of each target, padded with −1: (n_targets, most_versions)."""
        return self.versions[self.targets.origin]

    @cached_property
    def entries(self) -> Ints:
        """Entry in the run of each version of `rows`; −1 if it was not retrieved."""
        query = np.repeat(self.targets.query, self.rows.shape[1])
        rows = self.rows.ravel()
        positions = Positions.from_ranking(self.ranking, self.docs)
        entries = positions.find(query, np.where(rows >= 0, rows, 0))
        return np.where(rows >= 0, entries, -1).reshape(self.rows.shape)

    @cached_property
    def scores(self) -> Floats:
        """Score of each version; −∞ if it was not retrieved."""
        if not len(self.run.scores):
            return np.full(self.entries.shape, -np.inf)
        return np.where(self.entries >= 0, self.run.scores[self.entries], -np.inf)

    @cached_property
    def variation(self) -> Variation:
        """Count the lists of the targets in which a document could have another rank."""
        is_compared = np.zeros(len(self.run.queries), dtype=bool)
        is_compared[self.targets.query] = True
        known = self.docs >= 0
        return fixed_lists(
            is_compared, self.run.offsets, self.ranking.query[known], self.run.scores[known]
        )

    @property
    def absent(self) -> float:
        """Share of the targets' versions that were not retrieved."""
        is_version = self.rows >= 0
        return float((self.entries[is_version] < 0).mean()) if is_version.any() else np.nan

    @property
    def cut(self) -> bool:
        """Whether most lists are as long as the longest, because the ranker cuts them."""
        lengths = np.diff(self.run.offsets)
        return bool((lengths == lengths.max(initial=0)).mean() > 0.5)

    def ranks(self, weights: Floats) -> Floats:
        """Return the expected rank of each version: (n_targets, most_versions).

        It is ``1 + Σ w · above`` over the versions of all other origins, where ``above`` is 1 if
        that version ranks higher, ½ if it is tied, and 0 if it ranks lower. The weights w of an
        origin's versions are their probabilities, because a collection would hold one of them.
        Versions that were not retrieved rank below all that were.

        Parameters
        ----------
        weights : ndarray of float64, shape (n_docs,)
            Probability of each document of the collection.
        """
        ranking, docs, query_count = self.ranking, self.docs, len(self.run.queries)
        entry_weights = np.where(docs >= 0, weights[docs], 0.0)
        # A block is a set of tied entries, half of which count as above.
        blocks = per_block(ranking, entry_weights)
        weight_above = np.repeat(running_sums(ranking, blocks) - blocks / 2, ranking.sizes)
        list_weights = np.bincount(ranking.query, weights=entry_weights, minlength=query_count)
        entries = self.entries
        better = np.zeros(entries.shape)
        if len(weight_above):
            retrieved_weight = list_weights[self.targets.query][:, None]
            better = np.where(entries >= 0, weight_above[entries], retrieved_weight)
        # Versions of the same document are subtracted again: they do not compete.
        sibling_weights = np.where(entries >= 0, weights[self.rows], 0.0)
        for block, wins, ties in self._contests():
            losses = np.swapaxes(wins, 1, 2)
            siblings_above = (losses + ties / 2) * sibling_weights[block][:, None, :]
            better[block] -= siblings_above.sum(axis=2)
        ranks: Floats = 1 + better
        return ranks

    def net_wins(self) -> Floats:
        """Return for each version the share of its siblings that it beats minus those that beat it.

        The siblings are all versions of the same target; 0 to padding.
        """
        net_wins = np.zeros(self.rows.shape)
        is_version = self.rows >= 0
        for block, wins, _ties in self._contests():
            wins = wins & is_version[block][:, None, :] & is_version[block][:, :, None]
            version_count = is_version[block].sum(axis=1)[:, None]
            net_wins[block] = (wins.sum(axis=2) - wins.sum(axis=1)) / version_count
        return net_wins

    def _contests(self) -> Iterator[tuple[slice, Bools, Bools]]:
        """Compare the versions of each target with each other, some targets at a time.

        Yields the targets, and for each pair of versions, in an array of shape (n_targets,
        most_versions, most_versions), whether the first ranks above the second, and whether they
        are tied.
        """
        step = max(_MOST_PAIRS // self.rows.shape[1] ** 2, 1)
        for start in range(0, len(self.rows), step):
            block = slice(start, start + step)
            first_scores = self.scores[block][:, :, None]
            second_scores = self.scores[block][:, None, :]
            yield block, first_scores > second_scores, first_scores == second_scores

    def rank_gap(self, weights: Floats) -> Outcome:
        """Return the negative rank of each version, so that a higher value ranks higher.

        `weights` are the probabilities of documents, as in `ranks`.
        """
        return self._outcome(-self.ranks(weights))

    def exposure(self, weights: Floats) -> Outcome:
        """Return ``100 / log2(1 + rank)`` of each version, 100 at rank 1; 0 if not retrieved.

        `weights` are the probabilities of documents, as in `ranks`.
        """
        return self._outcome(
            np.where(self.entries >= 0, 100 / np.log2(1 + self.ranks(weights)), 0.0)
        )

    def score_gap(self) -> Outcome | None:
        """Return the score of each version in standard deviations of the list's scores.

        Only targets of which all versions are retrieved have values. None if there are none, or the
        run has no scores.
        """
        if not self.run.scored:
            return None
        deviation = spread(self.ranking)[self.targets.query]
        is_all_retrieved = np.all((self.entries >= 0) | (self.rows < 0), axis=1)
        is_compared = is_all_retrieved & (deviation > 0)
        if not is_compared.any():
            return None
        values = np.zeros(self.rows.shape)
        values[is_compared] = self.scores[is_compared] / deviation[is_compared][:, None]
        return self._outcome(np.where(self.rows >= 0, values, 0.0), is_compared)

    def head_to_head(self) -> Outcome:
        """Return `net_wins` of each version, in percent."""
        return self._outcome(100 * self.net_wins())

    def ndcg(self, weights: Floats) -> Outcome | None:
        """Return ``100 · grade / log2(1 + rank) / ideal DCG`` of each version; 0 if not retrieved.

        The ideal ranking has each document in its version with the highest grade. None if nothing
        is judged. `weights` are the probabilities of documents, as in `ranks`.
        """
        query, _origin, grade = self.targets
        if np.isnan(grade).any():
            return None
        best_grade = np.maximum(self.grades.max(axis=1), grade)
        judged = Judged(query=query, grade=best_grade, n_queries=len(self.run.queries))
        ideal = judged.ideal(None)[query]
        gain = 100 * self.grades / ideal[:, None] / np.log2(1 + self.ranks(weights))
        return self._outcome(np.where(self.entries >= 0, gain, 0.0))

    def _outcome(self, values: Floats, is_compared: Bools | None = None) -> Outcome:
        """Return the values of all versions without the padding.

        If `is_compared` is given, only targets for which it is true have values.
        """
        is_version = self.rows >= 0
        if is_compared is not None:
            is_version &= is_compared[:, None]
        group = np.nonzero(is_version)[0]
        return Outcome(
            values=values[is_version],
            group=group,
            query=self.targets.query[group],
            origin=self.targets.origin[group],
            row=self.rows[is_version],
        )


def version_table(collection: Collection, designed: Bools) -> Ints:
    """Return the rows of the versions of each origin, by its code, padded with −1.

    `designed` says which documents of the collection are versions. The shape is (n_origins,
    most_versions).
    """
    origins = collection.origin_codes()
    rows = np.flatnonzero(designed)
    rows = rows[np.argsort(origins[rows], kind="stable")]
    origin_of_row = origins[rows]
    count = np.bincount(origin_of_row, minlength=int(origins.max(initial=-1)) + 1)
    # The place of each row among those of its origin.
    column = np.arange(len(rows)) - (np.cumsum(count) - count)[origin_of_row]
    table = np.full((len(count), max(int(count.max(initial=0)), 1)), -1)
    table[origin_of_row, column] = rows
    return table


def even_weights(collection: Collection) -> Floats:
    """Return equal probabilities for the documents of each origin, which add up to 1."""
    origins = collection.origin_codes()
    weights: Floats = 1.0 / np.bincount(origins)[origins]
    return weights


def adoption_weights(collection: Collection, levels: Floats, share: float) -> Floats:
    """Return the probability of each document if a share of the origins has an edited version.

    `levels` has −1 (as it is), 1 (edited) or NaN (no level) for each document. Origins without both
    levels keep equal probabilities.
    """
    origins, weights = collection.origin_codes(), even_weights(collection)
    origin_count = int(origins.max(initial=-1)) + 1
    # For each document, the number of documents of its origin with that level.
    high_count = np.bincount(origins[levels == 1], minlength=origin_count)[origins]
    low_count = np.bincount(origins[levels == -1], minlength=origin_count)[origins]
    has_both = (high_count > 0) & (low_count > 0)
    for level, count, probability in ((1, high_count, share), (-1, low_count, 1 - share)):
        has_level = has_both & (levels == level)
        weights[has_level] = probability / count[has_level]
    weights[has_both & np.isnan(levels)] = 0.0
    return weights

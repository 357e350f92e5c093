"""Runs as arrays, aligned with judgments, and the values of each measure per query and group.

A *run* has a ranking for each query: a list of *entries*, which are documents with scores. Two
entries of a list with the same score are *tied*. *Judgments* say which documents are relevant to a
query. `JudgedRun` joins a run with them, and `group_values` computes measures over all documents
and over each group alone. Queries, documents and groups are numbers, as in `judgments`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judgments import MIXER, Judgments, signatures
from ranktilt.data.collection import Collection
from ranktilt.data.labels.labels import no_overlap
from ranktilt.data.runs.run import Run, codes, collection_rows
from ranktilt.data.runs.tied_lists import tied_lists
from ranktilt.errors import DataError
from ranktilt.measures.base import Measure
from ranktilt.measures.exposure.base import GroupLists
from ranktilt.measures.ranking import Floats, Ints, Ranking
from ranktilt.measures.relevance import values

# ---- judged runs --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """A run joined with a collection and its judgments.

    Queries are in the order of the judgments, documents are rows of the collection. An entry is one
    document in the list of one query.
    """

    run: Run
    """The run, with its own numbers of queries and documents."""
    ranking: Ranking
    """Entries of all lists, with their scores."""
    row: Ints
    """Row of each entry's document in the collection.

    Documents that only judgments name have rows after those of the collection. −1 for a document
    that neither collection nor judgments have.
    """
    position: Ints
    """Index of each entry in the arrays of `run`."""
    absent: npt.NDArray[np.bool_]
    """Whether each query of the collection is missing from the run."""
    judgments: Judgments
    """Judgments that the run is joined with."""

    @classmethod
    def from_run(cls, run: Run, collection: Collection, judgments: Judgments) -> JudgedRun:
        """Join a run with a collection by document and query ids."""
        rows = _rows_of_documents(run, collection, judgments)
        judged_queries = pl.Series(judgments.queries, dtype=pl.String)
        # Index of each query's list in the run; −1 for a query that the run lacks.
        list_index = codes(judged_queries, pl.Series(run.queries, dtype=pl.String))
        has_list = list_index >= 0
        starts = np.zeros(len(list_index), dtype=np.int64)
        starts[has_list] = run.offsets[list_index[has_list]]
        lengths = np.zeros(len(list_index), dtype=np.int64)
        lengths[has_list] = np.diff(run.offsets)[list_index[has_list]]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # The entries of each list one after the other, from its start in the run.
        positions = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return cls(
            run=run,
            ranking=Ranking(offsets, run.scores[positions]),
            row=rows[run.docs[positions]],
            position=positions,
            absent=~has_list & judgments.known_query,
            judgments=judgments,
        )

    @property
    def missing_count(self) -> int:
        """Number of judged queries of the collection that the run lacks."""
        return int(self.absent.sum())

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """Whether the run lacks each query because its engine failed to answer it."""
        failed = self.run.spec.get("failed")
        if not isinstance(failed, dict | list):
            failed = ()
        failed_ids = pl.Series([name for name in failed if isinstance(name, str)], dtype=pl.String)
        queries = pl.Series(self.judgments.queries, dtype=pl.String)
        return np.asarray(self.absent & queries.is_in(failed_ids.implode()).to_numpy())

    def left_out(self, missing: str) -> npt.NDArray[np.bool_]:
        """Return which queries count in no measure of this run.

        If `missing` is ``exclude``, these are all that the run lacks. If it is ``zero``, they are
        those that its engine failed to answer; the others that it lacks count as 0.
        """
        return self.absent if missing == "exclude" else self.failed

    def untied(self) -> JudgedRun:
        """Return the run without ties, in the order of trec_eval.

        That is by score as float32, then by document id, both descending.
        """
        rank_of_id = np.argsort(self.run.ids.arg_sort().to_numpy())
        by_id = rank_of_id[self.run.docs[self.position]]
        order = np.lexsort((-by_id, -self.ranking.scores.astype(np.float32), self.ranking.query))
        return replace(
            self,
            ranking=Ranking(self.ranking.offsets, -np.arange(len(order), dtype=np.float64)),
            row=self.row[order],
            position=self.position[order],
        )

    @cached_property
    def judgment(self) -> Ints:
        """Position of each entry among the relevant judgments; -1 where it is not relevant."""
        return self.judgments.find(self.ranking.query, self.row)

    @cached_property
    def list_keys(self) -> npt.NDArray[np.uint64]:
        """A number for each query's list: equal lists, ties included, have equal numbers."""
        docs = self.run.docs[self.position]
        ranks = np.repeat(self.ranking.before, self.ranking.sizes)
        return signatures(self.ranking.query, docs, ranks, len(self.judgments.queries))

    @cached_property
    def fingerprint(self) -> bytes:
        """A hash of all lists, which does not depend on the scores apart from their order and ties.

        It is made of ids, so that runs with other numbers of documents can be compared.
        """
        ids = self.run.ids.hash().to_numpy()[self.run.docs[self.position]]
        ranks = np.repeat(self.ranking.before, self.ranking.sizes)
        return signatures(self.ranking.query, ids, ranks, len(self.judgments.queries)).tobytes()

    @cached_property
    def distinct(self) -> Ints | None:
        """Number of each query; queries that repeat each other have one number.

        None if no query repeats another one. Queries repeat each other if their texts are equal, or
        both their lists and their judgments. The statistics count them as one query.
        """
        judgments = self.judgments
        query_count = len(judgments.queries)
        indexes = np.arange(query_count)
        # A hash of each query's list and judgments together. One of them is multiplied, so that
        # exchanging the two would give another hash.
        key = self.list_keys * MIXER
        key += signatures(judgments.query, judgments.row, judgments.grade, query_count)
        _, first_indexes, key_number = np.unique(key, return_index=True, return_inverse=True)
        has_list = np.diff(self.ranking.offsets) > 0
        first_alike = np.where(has_list, first_indexes[key_number], indexes)
        if (first_alike == indexes).all() and (judgments.same_text == indexes).all():
            return None
        from scipy.sparse import coo_array, csgraph  # 50 ms that hardly any audit needs

        # Two queries that both repeat a third one repeat each other, too. So queries are the nodes
        # of a graph, linked with the first query that they repeat by either rule, and each
        # connected part of the graph is one query.
        links = np.tile(indexes, 2), np.concatenate([first_alike, judgments.same_text])
        graph = coo_array((np.ones(2 * query_count), links), shape=(query_count, query_count))
        return np.asarray(csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)

    @property
    def repeated(self) -> dict[str, str]:
        """Queries of the collection that repeat an earlier query, each with the first of them."""
        return self.repeated_in(self.distinct)

    def repeated_in(self, numbering: Ints | None) -> dict[str, str]:
        """Return queries of the collection that repeat an earlier one, each with the first of them.

        In `numbering`, queries that repeat each other have one number; it is None if none does.
        """
        if numbering is None:
            return {}
        _, first, number = np.unique(numbering, return_index=True, return_inverse=True)
        queries = self.judgments.queries
        return {
            queries[index]: queries[earliest]
            for index, earliest in enumerate(first[number])
            if index != earliest and self.judgments.known_query[index]
        }

    @property
    def repeated_by_content(self) -> dict[str, str]:
        """The queries of `repeated` whose content repeats that of an earlier query.

        Their texts are equal, or their lists are equal and not all tied.
        """
        judgments = self.judgments
        is_tied = tied_lists(self.ranking.offsets, self.ranking.scores)
        repeats_text = judgments.same_text != np.arange(len(judgments.queries))
        # Two lists that are wholly tied are equal, although the queries may ask for different
        # things: their equality says nothing about the queries.
        tied_queries = {
            judgments.queries[index] for index in np.flatnonzero(is_tied & ~repeats_text).tolist()
        }
        return {query: first for query, first in self.repeated.items() if query not in tied_queries}

    def group_codes(self, groups: Groups) -> Ints:
        """Return the index of the group of each entry's document.

        −1 for no group, and in queries that the collection does not have.
        """
        in_collection = (self.row >= 0) & (self.row < len(groups.code))
        is_counted = in_collection & self.judgments.known_query[self.ranking.query]
        code = np.full(len(self.row), -1, dtype=np.int64)
        code[is_counted] = groups.code[self.row[is_counted]]
        return code

    def group_lists(self, groups: Groups) -> GroupLists:
        """Return the lists with the groups of their documents, and which entries are relevant.

        They are the input of questions about all groups together. A document may be in several
        groups, so each has a *kind* instead of a group (`Groups.kind`): its group, its combination
        of groups, or "no label".
        """
        judgments = self.judgments
        document_count, kind_count = len(groups.code), len(groups.parts)
        no_label = kind_count - 1
        # One element more: documents that the collection lacks have row −1, the last element.
        kind = np.append(groups.kind, no_label)
        in_collection = (self.row >= 0) & (self.row < document_count)
        entry_row = np.where(in_collection, self.row, -1)
        judged_kind = kind[np.where(judgments.row < document_count, judgments.row, -1)]
        query_count = len(judgments.queries)
        judged_counts = np.bincount(
            judgments.query * kind_count + judged_kind, minlength=query_count * kind_count
        )
        judged_counts = judged_counts.reshape(query_count, kind_count)
        population = np.bincount(groups.kind, minlength=kind_count)
        return GroupLists(
            ranking=self.ranking,
            kind=kind[entry_row],
            relevant=self.judgment >= 0,
            names=groups.names,
            parts=groups.parts,
            judged=judged_counts.astype(np.float64),
            population=population.astype(np.float64),
            repeats=judgments.same_text,
        )

    def group_counts(self, groups: Groups) -> dict[str, float]:
        """Count the groups, the results, and the results without a label or with several labels.

        Results are entries of lists. The keys are the names of these counts in `Effect.details`.
        """
        kind = self.group_lists(groups).kind
        group_count = len(groups.names)
        no_label = group_count + len(groups.combinations)
        has_several = (kind >= group_count) & (kind < no_label)
        return {
            "groups": float(group_count),
            "listed": float(len(kind)),
            "unlabelled": float((kind == no_label).sum()),
            "several": float(has_several.sum()),
        }

    def gains(self, group: int | None, keep: npt.NDArray[np.bool_]) -> Floats:
        """Return the grade of each entry in `keep` if it is of one group, else 0.

        `group` is the index of the group; None for all documents.
        """
        judgment = self.judgment[keep]
        if not self.judgments.has_relevant:
            return np.zeros(len(judgment))
        is_gain = judgment >= 0
        if group is not None:
            is_gain &= self.judgments.group[judgment] == group
        return np.where(is_gain, self.judgments.grade[judgment], 0.0)


def _rows_of_documents(run: Run, collection: Collection, judgments: Judgments) -> Ints:
    """Return the row of each of the run's documents in the collection, or after its rows.

    Documents that only the judgments name have rows after those of the collection. −1 for all
    others. Refuses a run without any document of the collection.
    """
    rows = collection_rows(run, collection)
    if run.ids is collection.ids:
        return rows
    if not (rows >= 0).any() and len(rows):
        raise DataError(run.spec.get("file", run.name), no_overlap(run.ids, collection))
    rows_in_judgments = codes(run.ids, judgments.ids)
    return np.where(rows >= 0, rows, rows_in_judgments)


# ---- values of measures -------------------------------------------------------------------------


def group_values(
    judged_run: JudgedRun, measures: Sequence[Measure], groups: Groups, ties: str
) -> Floats:
    """Compute every measure over all documents, and over each group alone.

    `ties` is ``expected`` for the mean over all orders of tied documents, or ``trec_eval`` for the
    order of that program. Returns an array of shape (n_measures, 1 + n_groups, n_queries); NaN
    where undefined.
    """
    columns: list[int | None] = [None, *range(len(groups.names))]  # None for all documents
    table = np.empty((len(measures), len(columns), len(judged_run.judgments.queries)))
    if not measures:
        return table
    if ties == "trec_eval":
        judged_run = judged_run.untied()
    ranking, keep = judged_run.ranking.head(deepest(measures))
    for column, group in enumerate(columns):
        gains = judged_run.gains(group, keep)
        judged = judged_run.judgments.of_group(group)
        for index, measure in enumerate(measures):
            table[index, column] = values(measure, ranking, gains, judged)
    return table


def deepest(measures: Sequence[Measure]) -> int | None:
    """Return the largest cutoff of the measures; None if a measure reads the whole ranking."""
    cutoffs = [measure.cutoff for measure in measures if measure.cutoff is not None]
    return max(cutoffs) if len(cutoffs) == len(measures) else None

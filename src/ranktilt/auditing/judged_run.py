"""Per-query values of every measure and group from one run."""

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
from ranktilt.data.labels import no_overlap
from ranktilt.data.run import Run, codes, collection_rows
from ranktilt.errors import DataError
from ranktilt.measures.base import Measure
from ranktilt.measures.exposure.base import GroupLists
from ranktilt.measures.ranking import Floats, Ints, Ranking
from ranktilt.measures.relevance import values


@dataclass(frozen=True)
class JudgedRun:
    """A run brought to the judgments' queries and to rows of the collection."""

    run: Run
    ranking: Ranking
    row: Ints
    """Row of each entry's document; -1 for one that neither collection nor judgments know."""
    entry: Ints
    """Place of each entry in the run."""
    absent: npt.NDArray[np.bool_]
    """Queries of the collection that the run does not hold."""
    judgments: Judgments

    @classmethod
    def from_run(cls, run: Run, collection: Collection, judgments: Judgments) -> JudgedRun:
        """Join a run with a collection by document and query ids."""
        rows = _rows(run, collection, judgments)
        at = codes(
            pl.Series(judgments.queries, dtype=pl.String), pl.Series(run.queries, dtype=pl.String)
        )
        held = at >= 0
        starts, lengths = np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64)
        starts[held], lengths[held] = run.offsets[at[held]], np.diff(run.offsets)[at[held]]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        absent = ~held & judgments.known_query
        return cls(
            run=run,
            ranking=Ranking(offsets, run.scores[entries]),
            row=rows[run.docs[entries]],
            entry=entries,
            absent=absent,
            judgments=judgments,
        )

    @property
    def missing(self) -> int:
        """Number of judged queries of the collection that the run does not hold."""
        return int(self.absent.sum())

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """Queries that the run lacks because its engine failed to answer them."""
        told = self.run.spec.get("failed")
        listed = told if isinstance(told, dict | list) else ()
        names = pl.Series([name for name in listed if isinstance(name, str)], dtype=pl.String)
        among = pl.Series(self.judgments.queries, dtype=pl.String).is_in(names.implode()).to_numpy()
        return np.asarray(self.absent & among)

    def left_out(self, missing: str) -> npt.NDArray[np.bool_]:
        """Queries that count nowhere: all that the run lacks, or, where those count as zero, the failed ones."""
        return self.absent if missing == "exclude" else self.failed

    def untied(self) -> JudgedRun:
        """Return the run as trec_eval orders it (score as float32, then id, both descending), without ties."""
        by_id = np.argsort(self.run.ids.arg_sort().to_numpy())[self.run.docs[self.entry]]
        order = np.lexsort((-by_id, -self.ranking.scores.astype(np.float32), self.ranking.query))
        return replace(
            self,
            ranking=Ranking(self.ranking.offsets, -np.arange(len(order), dtype=np.float64)),
            row=self.row[order],
            entry=self.entry[order],
        )

    @cached_property
    def judgment(self) -> Ints:
        """Position of each entry among the relevant judgments; -1 where it is not relevant."""
        return self.judgments.find(self.ranking.query, self.row)

    @cached_property
    def list_keys(self) -> npt.NDArray[np.uint64]:
        """A number for each query's list: equal lists, ties included, have equal numbers."""
        docs, ranks = self.run.docs[self.entry], np.repeat(self.ranking.before, self.ranking.sizes)
        return signatures(self.ranking.query, docs, ranks, len(self.judgments.queries))

    @property
    def fingerprint(self) -> bytes:
        """What runs have in common that give every query the same list, ties included, whatever their scores are."""
        ids = self.run.ids.hash().to_numpy()[self.run.docs[self.entry]]
        ranks = np.repeat(self.ranking.before, self.ranking.sizes)
        return signatures(self.ranking.query, ids, ranks, len(self.judgments.queries)).tobytes()

    @cached_property
    def distinct(self) -> Ints | None:
        """Number of the query that each query repeats, by text or by ranking and judgments; None if none does."""
        ranking, judgments, every = (
            self.ranking,
            self.judgments,
            np.arange(len(self.judgments.queries)),
        )
        key = self.list_keys * MIXER
        key += signatures(judgments.query, judgments.row, judgments.grade, len(every))
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        same_ranking = np.where(np.diff(ranking.offsets) > 0, first[place], every)
        if (same_ranking == every).all() and (judgments.same_text == every).all():
            return None
        from scipy.sparse import coo_array, csgraph  # 50 ms that hardly any audit needs

        links = np.tile(every, 2), np.concatenate([same_ranking, judgments.same_text])
        graph = coo_array((np.ones(2 * len(every)), links), shape=(len(every), len(every)))
        return np.asarray(csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)

    @property
    def repeated(self) -> dict[str, str]:
        """The collection's queries that repeat an earlier one, each with the first."""
        if self.distinct is None:
            return {}
        first = np.unique(self.distinct, return_index=True, return_inverse=True)[1:]
        names, known = self.judgments.queries, self.judgments.known_query
        return {names[i]: names[n] for i, n in enumerate(first[0][first[1]]) if i != n and known[i]}

    def group_codes(self, groups: Groups) -> Ints:
        """Group of each entry's document; −1 for none, and in queries that the collection does not have."""
        held = (
            (self.row >= 0)
            & (self.row < len(groups.code))
            & self.judgments.known_query[self.ranking.query]
        )
        code = np.full(len(self.row), -1, dtype=np.int64)
        code[held] = groups.code[self.row[held]]
        return code

    def group_lists(self, groups: Groups) -> GroupLists:
        """The run's lists with the groups of their documents, and what is relevant; for questions about all groups."""
        judgments, kind, parts = (
            self.judgments,
            np.append(groups.kind, len(groups.parts) - 1),
            groups.parts,
        )
        held = np.where((self.row >= 0) & (self.row < len(groups.code)), self.row, -1)
        judged = kind[np.where(judgments.row < len(groups.code), judgments.row, -1)]
        shape = len(judgments.queries), len(parts)
        counts = np.bincount(
            judgments.query * shape[1] + judged, minlength=shape[0] * shape[1]
        ).reshape(shape)
        population = np.bincount(groups.kind, minlength=shape[1])
        return GroupLists(
            ranking=self.ranking,
            kind=kind[held],
            relevant=self.judgment >= 0,
            names=groups.names,
            parts=parts,
            judged=counts.astype(np.float64),
            population=population.astype(np.float64),
            repeats=judgments.same_text,
        )

    def group_counts(self, groups: Groups) -> dict[str, float]:
        """How many groups there are, and how many results have no label, or several."""
        kind = self.group_lists(groups).kind
        single, last = len(groups.names), len(groups.names) + len(groups.sets)
        several = (kind >= single) & (kind < last)
        found = {
            "groups": single,
            "listed": len(kind),
            "unlabelled": (kind == last).sum(),
            "several": several.sum(),
        }
        return {name: float(count) for name, count in found.items()}

    def gains(self, group: int | None, keep: npt.NDArray[np.bool_]) -> Floats:
        """Grade of each kept entry in one group, 0 for all others; of every document where None."""
        at = self.judgment[keep]
        if not self.judgments.has_relevant:
            return np.zeros(len(at))
        relevant = at >= 0
        if group is not None:
            relevant &= self.judgments.group[at] == group
        return np.where(relevant, self.judgments.grade[at], 0.0)


def _rows(run: Run, collection: Collection, judgments: Judgments) -> Ints:
    rows = collection_rows(run, collection)
    if run.ids is collection.ids:
        return rows
    if not (rows >= 0).any() and len(rows):
        raise DataError(run.spec.get("file", run.name), no_overlap(run.ids, collection))
    beyond = codes(run.ids, judgments.ids)
    return np.where(rows >= 0, rows, beyond)


def group_values(
    judged_run: JudgedRun, measures: Sequence[Measure], groups: Groups, ties: str
) -> Floats:
    """Compute every measure of all documents and of each group: (measures, 1 + groups, queries), NaN if undefined."""
    every: list[int | None] = [None, *range(len(groups.names))]
    if not measures:
        return np.empty((0, len(every), len(judged_run.judgments.queries)))
    if ties == "trec_eval":
        judged_run = judged_run.untied()
    out = np.empty((len(measures), len(every), len(judged_run.judgments.queries)))
    ranking, keep = judged_run.ranking.head(deepest(measures))
    for position, group in enumerate(every):
        gains, judged = judged_run.gains(group, keep), judged_run.judgments.of_group(group)
        for index, m in enumerate(measures):
            out[index, position] = values(m, ranking, gains, judged)
    return out


def deepest(measures: Sequence[Measure]) -> int | None:
    """Return the deepest cutoff of some measures; None where one of them reads the whole ranking."""
    cutoffs = [m.cutoff for m in measures]
    return None if None in cutoffs else max(c for c in cutoffs if c is not None)

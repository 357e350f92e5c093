"""Per-query values of every measure and group from one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.data.collection import Collection
from ranktilt.data.labels import no_overlap
from ranktilt.data.run import Run, codes, collection_rows
from ranktilt.errors import DataError
from ranktilt.measures.base import Measure
from ranktilt.measures.exposure.base import GroupLists
from ranktilt.measures.ranking import Floats, Ints, Judged, Ranking
from ranktilt.measures.relevance import values

_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Judgments:
    """Relevant judgments: queries by number, documents by row; rows beyond the collection's are unknown documents."""

    queries: tuple[str, ...]
    known_query: npt.NDArray[np.bool_]
    """Whether the collection has the query; judgments of others count in no group."""
    ids: pl.Series
    query: Ints
    row: Ints
    grade: Floats
    group: Ints
    """Group of each judged document; -1 for none."""
    same_text: Ints
    """Number of the first query with the same text; its own where it has none."""
    documents: int
    """Documents of the collection."""

    @classmethod
    def from_collection(cls, collection: Collection, groups: Groups) -> Judgments:
        """Collect the relevant judgments of a collection's queries."""
        qrels = collection.qrels
        names = qrels["query_id"].unique(maintain_order=True)
        known = collection.queries_with_judgments["id"]
        queries = pl.concat([known, names.filter(~names.is_in(known.implode()))])
        strange = (
            qrels["doc_id"]
            .filter(~qrels["doc_id"].is_in(collection.ids.implode()))
            .unique(maintain_order=True)
        )
        ids = pl.concat([collection.ids, strange.alias("id")])
        relevant = qrels.filter(pl.col("grade") > 0)
        query, row = codes(relevant["query_id"], queries), codes(relevant["doc_id"], ids)
        order = np.lexsort((row, query))
        is_known = np.arange(len(queries)) < len(known)
        group = np.append(groups.code, np.full(len(strange), -1))[row]
        group = np.where(is_known[query], group, -1)
        grade = relevant["grade"].to_numpy().astype(np.float64)
        return cls(
            tuple(queries),
            is_known,
            ids,
            query[order],
            row[order],
            grade[order],
            group[order],
            _same_text(collection, queries),
            collection.docs.height,
        )

    @cached_property
    def first_of_equal(self) -> Ints:
        """Place of each judgment in the first query with the same ones, whose documents have one label only."""
        key = _signature(self.query, self.row, self.grade, len(self.queries))
        first = np.unique(key, return_index=True, return_inverse=True)[1:]
        start = np.searchsorted(self.query, np.arange(len(self.queries)))
        moved: Ints = (start[first[0][first[1].ravel()]] - start)[self.query] + np.arange(
            len(self.query)
        )
        return moved

    def of_group(self, group: int | None) -> Judged:
        keep = np.ones(len(self.query), dtype=bool) if group is None else self.group == group
        return Judged(self.query[keep], self.grade[keep], len(self.queries))

    @property
    def has_relevant(self) -> bool:
        """Whether any document is relevant to any query."""
        return len(self.grade) > 0

    def judged_groups(self, groups: Groups) -> set[str]:
        """Return the names of the groups that hold a relevant document."""
        return {groups.names[number] for number in np.unique(self.group) if number >= 0}

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame({"query": self.query, "row": self.row, "grade": self.grade})

    def find(self, query: Ints, row: Ints) -> Ints:
        """Position of each (query, document row) among the judgments; -1 where it is not relevant."""
        width = len(self.ids) + 1
        keys, wanted = self.query * width + self.row, query * width + row
        at = np.searchsorted(keys, wanted)
        at = np.minimum(at, max(len(keys) - 1, 0))
        return (
            np.where((row >= 0) & (keys[at] == wanted), at, -1)
            if len(keys)
            else np.full(len(row), -1)
        )


def _same_text(collection: Collection, queries: pl.Series) -> Ints:
    text = collection.queries["text"].str.strip_chars()
    row = codes(queries, collection.queries["id"])
    named = pl.DataFrame(
        {"at": np.arange(len(queries)), "row": row, "text": text.gather(np.maximum(row, 0))}
    )
    told = (pl.col("row") >= 0) & (pl.col("text") != "")
    first = pl.when(told).then(pl.col("at").first().over("text", told)).otherwise("at")
    return named.select(first)["at"].to_numpy().astype(np.int64)


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
            run,
            Ranking(offsets, run.scores[entries]),
            rows[run.docs[entries]],
            entries,
            absent,
            judgments,
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
        ranking = Ranking(self.ranking.offsets, -np.arange(len(order), dtype=np.float64))
        return JudgedRun(
            self.run, ranking, self.row[order], self.entry[order], self.absent, self.judgments
        )

    @cached_property
    def judgment(self) -> Ints:
        """Position of each entry among the relevant judgments; -1 where it is not relevant."""
        return self.judgments.find(self.ranking.query, self.row)

    @cached_property
    def list_keys(self) -> npt.NDArray[np.uint64]:
        """A number for each query's list: equal lists, ties included, have equal numbers."""
        docs, ranks = self.run.docs[self.entry], np.repeat(self.ranking.before, self.ranking.sizes)
        return _signature(self.ranking.query, docs, ranks, len(self.judgments.queries))

    @property
    def fingerprint(self) -> bytes:
        """What runs have in common that give every query the same list, ties included, whatever their scores are."""
        ids = self.run.ids.hash().to_numpy()[self.run.docs[self.entry]]
        ranks = np.repeat(self.ranking.before, self.ranking.sizes)
        return _signature(self.ranking.query, ids, ranks, len(self.judgments.queries)).tobytes()

    @cached_property
    def distinct(self) -> Ints | None:
        """Number of the query that each query repeats, by text or by ranking and judgments; None if none does."""
        ranking, judgments, every = (
            self.ranking,
            self.judgments,
            np.arange(len(self.judgments.queries)),
        )
        key = self.list_keys * _ODD
        key += _signature(judgments.query, judgments.row, judgments.grade, len(every))
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
            self.ranking,
            kind[held],
            self.judgment >= 0,
            groups.names,
            parts,
            counts.astype(np.float64),
            population.astype(np.float64),
            judgments.same_text,
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


def _signature(
    query: Ints, one: npt.NDArray[np.number], two: npt.NDArray[np.number], n: int
) -> npt.NDArray[np.uint64]:
    """A number for each query's set of (one, two): equal sets have equal numbers, others hardly ever."""
    mixed = one.astype(np.uint64) * _ODD + two.astype(np.float64).view(np.uint64)
    for shift, factor in (
        (30, 0xBF58476D1CE4E5B9),
        (27, 0x94D049BB133111EB),
        (31, 1),
    ):  # the mixing of SplitMix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    sums = np.zeros(n, dtype=np.uint64)
    np.add.at(sums, query, mixed)
    return sums


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

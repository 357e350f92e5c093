"""The ranked lists to look through: first results, and what else of a query is worth finding further down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_rankings import Aligned, Judgments
from ranktilt.collection import Collection
from ranktilt.run import Run, codes, collection_rows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
TWINS_OF_A_GROUP = 3
"""Documents of one origin and one group that are shown as twins; beyond these there is nothing to compare by eye."""
FURTHER = 100
"""Relevant documents of a list below its first results that are listed."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Some documents of the ranked lists of one run, list by list: arrays of one length, but for the last two."""

    query: Ints
    """Place of the query among those asked for; rising."""
    doc: Ints
    """Number of the document in `ShownLists.ids`."""
    first: Ints
    """First rank, from 1, that its tie block takes; 0 for a document that was not retrieved."""
    last: Ints
    score: Floats
    """NaN for a document that was not retrieved."""
    grade: Floats
    """0 for a document that is not judged relevant."""
    top: Flags
    """Whether it is among the first results."""
    found: Ints
    """Documents that each query retrieved."""
    more: Ints
    """Relevant documents of each query that are left out."""


@dataclass(frozen=True, eq=False)
class ShownLists:
    """Ranked lists of some runs for the same queries."""

    entries: tuple[Entries, ...]
    """One a run."""
    ids: pl.Series
    """Documents by number: those of the collection, those that are only judged, those that are only retrieved."""
    twins: pl.DataFrame
    """``doc`` and ``twin``: documents of one origin in two groups, for every document in an entry."""


def lists(
    collection: Collection, groups: Groups, judgments: Judgments, runs: Sequence[Run],
    *, queries: Ints, depth: int, ties: str,
) -> ShownLists:  # fmt: skip
    """Collect what is worth seeing of each run's ranked lists."""
    parts = [_Part.of(run, collection, judgments, queries, ties) for run in runs]
    ids, parts = _numbered(judgments.ids, parts)
    width = len(ids)
    place = np.full(len(judgments.queries), -1)
    place[queries] = np.arange(len(queries))
    asked = place[judgments.query] >= 0
    relevant = place[judgments.query[asked]] * width + judgments.row[asked]
    listed = [np.unique(part.doc[part.place < depth]) for part in parts]
    twins = twins_of(collection, groups, np.unique(np.concatenate([*listed, judgments.row[asked]])))
    partners = _Partners.of(twins, width)
    grades = _Grades.of(relevant, judgments.grade[asked])
    return ShownLists(tuple(_entries(part, partners, grades, depth) for part in parts), ids, twins)


def first_rows(run: Run, collection: Collection, queries: Sequence[str], depth: int) -> tuple[Ints, Ints]:
    """Return the first results of a run, in the order of its lists."""
    at = codes(pl.Series(run.queries, dtype=pl.String), pl.Series(queries, dtype=pl.String))
    length = np.minimum(np.diff(run.offsets), depth)
    query = np.repeat(at, length)
    entry = np.arange(len(query)) + np.repeat(run.offsets[:-1] - (np.cumsum(length) - length), length)
    row = collection_rows(run, collection)[run.docs[entry]]
    known = (query >= 0) & (row >= 0)
    return query[known], row[known]


def twins_of(collection: Collection, groups: Groups, docs: Ints) -> pl.DataFrame:
    """Find the twins of some documents: those of the same origin in other groups."""
    rows = np.arange(collection.docs.height)
    table = pl.DataFrame({"twin": rows, "origin": collection.docs["origin"], "group": groups.code})
    table = table.filter(pl.col("group") >= 0)
    asked = np.isin(rows[groups.code >= 0], docs)
    origins = table.filter(pl.Series(asked)).select("origin").unique()
    family = table.with_columns(asked=asked).join(origins, on="origin", how="semi", maintain_order="left")
    family = family.with_columns(few=pl.int_range(pl.len()).over("origin", "group") < TWINS_OF_A_GROUP)
    some = family.filter("few").select("twin", "origin", "group")
    every = family.filter(pl.col("few") | pl.col("asked")).select("origin", doc="twin", own="group")
    joined = every.join(some, on="origin", how="inner", maintain_order="left_right")
    return joined.filter(pl.col("group") != pl.col("own")).select("doc", "twin")


@dataclass(frozen=True, eq=False)
class _Part:
    """All entries of one run for the queries asked for, in the order asked."""

    query: Ints
    doc: Ints
    place: Ints
    """From 0, in its list."""
    first: Ints
    last: Ints
    score: Floats
    found: Ints
    strange: pl.Series
    """Ids of the entries whose document is −1, in order."""

    @classmethod
    def of(cls, run: Run, collection: Collection, judgments: Judgments, queries: Ints, ties: str) -> _Part:
        aligned = Aligned.of(_only(run, judgments, queries), collection, judgments)
        if ties == "trec_eval":
            aligned = aligned.untied()
        ranking = aligned.ranking
        lengths = np.diff(ranking.offsets)[queries]
        query = np.repeat(np.arange(len(queries)), lengths)
        place = np.arange(len(query)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        entry = ranking.offsets[queries][query] + place
        block = np.repeat(np.arange(len(ranking.sizes)), ranking.sizes)[entry]
        first, place_in_run = ranking.before[block] + 1, aligned.entry[entry]
        doc = aligned.row[entry]
        strange = aligned.run.ids.gather(aligned.run.docs[place_in_run[doc < 0]])
        last = first + ranking.sizes[block] - 1
        return cls(query, doc, place, first, last, aligned.run.scores[place_in_run], lengths, strange)


def _only(run: Run, judgments: Judgments, queries: Ints) -> Run:
    """The run without the queries that nobody asks for."""
    if len(queries) == len(judgments.queries):
        return run
    wanted = pl.Series(judgments.queries, dtype=pl.String).gather(queries)
    kept = np.flatnonzero(pl.Series(run.queries, dtype=pl.String).is_in(wanted.implode()).to_numpy())
    lengths = np.diff(run.offsets)[kept]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    entry = np.repeat(run.offsets[kept] - offsets[:-1], lengths) + np.arange(offsets[-1])
    names = tuple(run.queries[i] for i in kept)
    return Run(names, offsets, run.docs[entry], run.scores[entry], run.ids, run.spec)


def _numbered(ids: pl.Series, parts: list[_Part]) -> tuple[pl.Series, list[_Part]]:
    """Number the documents that neither collection nor judgments know, the same in all runs."""
    strange = pl.concat([ids.clear(), *(part.strange.alias(ids.name) for part in parts)]).unique(maintain_order=True)
    for part in parts:
        part.doc[part.doc < 0] = len(ids) + codes(part.strange, strange)
    return pl.concat([ids, strange]), parts


@dataclass(frozen=True)
class _Partners:
    """Twins by document number."""

    start: Ints
    length: Ints
    twin: Ints
    width: int
    """Documents; a key is a query's place times this, and a document's number."""

    @classmethod
    def of(cls, twins: pl.DataFrame, width: int) -> _Partners:
        doc, twin = twins["doc"].to_numpy(), twins["twin"].to_numpy()
        order = np.argsort(doc, kind="stable")
        length = np.bincount(doc, minlength=width)
        return cls(np.cumsum(length) - length, length, twin[order], width)

    def family(self, keys: Ints) -> Ints:
        """Turn keys of a query and a document into those of the query and each twin, and of each twin's twins."""
        twins = self._twins(keys)
        return np.concatenate([twins, self._twins(twins)])

    def _twins(self, keys: Ints) -> Ints:
        query, doc = np.divmod(keys, self.width)
        length = self.length[doc]
        within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        twin: Ints = self.twin[np.repeat(self.start[doc], length) + within]
        return np.repeat(query * self.width, length) + twin


@dataclass(frozen=True)
class _Grades:
    """Grades of the relevant documents by key, rising."""

    keys: Ints
    grade: Floats

    @classmethod
    def of(cls, keys: Ints, grade: Floats) -> _Grades:
        order = np.argsort(keys)
        return cls(keys[order], grade[order])

    def find(self, keys: Ints) -> Floats:
        if not len(self.keys):
            return np.zeros(len(keys))
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.grade[at], 0.0)


def _entries(part: _Part, partners: _Partners, grades: _Grades, depth: int) -> Entries:
    width = partners.width
    keys = part.query * width + part.doc
    top = part.place < depth
    shown = np.union1d(keys[top], grades.keys)
    wanted = np.union1d(grades.keys, partners.family(shown))
    # Runs are long and what is wanted of them is short, so it is the run that is looked up.
    at = np.minimum(np.searchsorted(wanted, keys), max(len(wanted) - 1, 0))
    kept = np.flatnonzero(top | (wanted[at] == keys if len(wanted) else False))
    lost = np.setdiff1d(grades.keys, keys[kept], assume_unique=True)
    keys = np.concatenate([keys[kept], lost])
    order = np.argsort(keys // width, kind="stable")
    keys, place = keys[order], np.concatenate([kept, np.full(len(lost), -1)])[order]
    grade, top = grades.find(keys), (place >= 0) & top[place] if len(top) else np.zeros(len(keys), dtype=bool)
    few, more = _few(keys, (grade > 0) & ~top, top, partners, len(part.found))
    keys, place, grade, top = keys[few], place[few], grade[few], top[few]
    first, last, score = (_taken(column, place) for column in (part.first, part.last, part.score))
    query, doc = np.divmod(keys, width)
    score = np.where(place >= 0, score, np.nan)
    return Entries(query, doc, first.astype(np.int64), last.astype(np.int64), score, grade, top, part.found, more)


def _few(keys: Ints, further: Flags, top: Flags, partners: _Partners, queries: int) -> tuple[Flags, Ints]:
    """Which entries stay, and how many relevant documents of each query go."""
    query = keys // partners.width
    count: Ints = np.cumsum(further)
    within = count - (count - further)[np.searchsorted(query, query)]
    shown = top | (further & (within <= FURTHER))
    few = shown | np.isin(keys, partners.family(keys[shown]))
    return few, np.bincount(query[further & ~few], minlength=queries)


def _taken(column: npt.NDArray[np.number], place: Ints) -> Floats:
    """Values at some places; 0 at those below 0."""
    out = np.zeros(len(place))
    out[place >= 0] = column[place[place >= 0]]
    return out

"""Draw pairs to ask about: a protected and an unprotected document, both relevant or neither.

*Protected* is the group of documents whose treatment is examined; all other documents are
unprotected. These are the two *sides*.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.data.collection import Collection
from ranktilt.data.labels.group_names import REST
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.pairwise import (
    DocumentsInNoPair,
    FewPairs,
    OnlyIrrelevantPairs,
    QueriesWithoutSides,
    UnaskedQueries,
)
from ranktilt.data.runs.run import Run, codes, collection_rows
from ranktilt.errors import DataError, UserError, counted, list_names, unknown_name
from ranktilt.measures.ranking import Ints

Kind = Literal["relevant", "irrelevant"]
"""Whether both documents of a pair are relevant to the query, or neither is."""
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds of pairs, in the order of tables."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoGroups:
    """The protected group and the other group, and the side of each document."""

    by: str
    """Column of the groups."""
    protected: str
    """Name of the protected group."""
    unprotected: str
    """Name of the other group."""
    code: Ints
    """Side of each document: 1 protected, 0 unprotected, −1 neither."""
    notes: tuple[Note, ...] = ()
    """Notes on labels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnPairs:
    """Pairs to ask about."""

    sides: TwoGroups
    """Sides of the documents."""
    frame: pl.DataFrame
    """One row for each pair: ``query``, ``kind``, ``protected`` and ``unprotected`` (ids)."""
    requested: int
    """Number of pairs that were to be drawn for each query and kind."""
    notes: tuple[Note, ...] = ()
    """Notes on queries with too few pairs."""


def two_groups(collection: Collection, by: str, protected: str | None = None) -> TwoGroups:
    """Divide documents into a protected group, which may unite several groups, and all others.

    `by` is the column of the groups, and `protected` the name of the protected group; by default,
    it is the smaller of two.
    """
    groups = grouping(collection, by, [] if protected is None else [protected, REST])
    if protected is None:
        if len(groups.names) != 2:
            raise UserError(
                f"{by} makes {len(groups.names)} groups ({list_names(groups.names)}): "
                "name the protected one"
            )
        first_size, second_size = np.bincount(groups.code[groups.code >= 0], minlength=2)
        # Of two groups of the same size, the second one is protected.
        protected = groups.names[1 if second_size <= first_size else 0]
    protected_index = groups.index(protected)
    if protected == REST and groups.merged:
        raise unknown_name(by, protected, groups.names)
    protected = groups.names[protected_index]
    unprotected_names = [name for name in groups.names if name != protected]
    code = np.where(groups.code < 0, -1, groups.code == protected_index).astype(np.int64)
    without_group = int((code < 0).sum())
    notes: tuple[Note, ...] = groups.remarks
    if without_group:
        note = DocumentsInNoPair(
            severity="warning" if 2 * without_group >= len(code) else "note",
            by=by,
            documents=without_group,
            total=len(code),
            has_several=bool(groups.several),
        )
        notes = (*notes, note)
    return TwoGroups(
        by=by,
        protected=protected,
        unprotected=unprotected_names[0] if len(unprotected_names) == 1 else REST,
        code=code,
        notes=notes,
    )


def relevant_pairs(collection: Collection) -> pl.DataFrame:
    """Return the relevant judgments of the collection's documents: ``query`` (id) and ``row``."""
    judged = collection.qrels.filter(pl.col("grade") > 0)
    rows = codes(judged["doc_id"], collection.ids)
    return judged.select(query="query_id", row=pl.Series(rows, dtype=pl.Int64)).filter(
        pl.col("row") >= 0
    )


def known_queries(collection: Collection, queries: Iterable[str]) -> list[str]:
    """Return the query ids, each once; refuse an empty list and ids that the collection lacks."""
    query_ids, collection_ids = list(dict.fromkeys(queries)), set(collection.queries["id"])
    if not query_ids:
        raise UserError("expected query ids, got none")
    unknown_ids = [query for query in query_ids if query not in collection_ids]
    if unknown_ids:
        number = counted(len(unknown_ids), "query is", "queries are")
        raise UserError(f"{number} not in the collection: {unknown_ids[0]!r}")
    return query_ids


def draw_pairs(
    collection: Collection,
    sides: TwoGroups,
    *,
    pairs: int = 20,
    seed: int = 0,
    candidates: Run | None = None,
    queries: Sequence[str] | None = None,
) -> DrawnPairs:
    """Draw pairs for every judged query, at random and without repeats.

    Parameters
    ----------
    collection : Collection
        Queries, documents and judgments.
    sides : TwoGroups
        The side of each document.
    pairs : int, optional
        Number of pairs to draw for each query: so many of two relevant documents, and as many of
        two documents that are not relevant.
    seed : int, optional
        Random seed.
    candidates : Run, optional
        Documents from which a query's pairs are drawn; all by default.
    queries : sequence of str, optional
        Ids of the queries to draw pairs for; all by default.

    Raises
    ------
    UserError
        If no query has a pair.
    """
    if pairs < 1:
        raise UserError(f"expected at least 1 pair per query and kind, got {pairs}")
    by_query = relevant_pairs(collection).group_by("query", maintain_order=True)
    relevant_rows = {str(query): rows["row"].to_numpy() for (query,), rows in by_query}
    pools = None if candidates is None else _pools(candidates, collection)
    judged = collection.queries_with_judgments.select("id", "text")
    if queries is not None:
        judged = judged.filter(pl.col("id").is_in(list(queries)))
    queries = [query for query, text in judged.rows() if text and (pools is None or query in pools)]
    rows = []
    # Number of queries with fewer pairs than asked for, and of queries without a pair, by kind.
    short, lacking = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    for query, kind in itertools.product(queries, KINDS):
        pool = None if pools is None else pools[query]
        documents = _documents(kind, sides.code, relevant_rows.get(query), pool)
        # A query draws the same pairs whatever other queries are asked about.
        rng = random.Random(f"{seed} {kind} {query}")
        drawn = _draw(documents, sides.code, pairs, rng)
        short[kind] += 0 < len(drawn) < pairs
        lacking[kind] += not drawn
        rows += [(query, kind, protected, unprotected) for protected, unprotected in drawn]
    if not rows:
        raise UserError(
            f"no pairs to ask about: no query has both {sides.protected} and {sides.unprotected} "
            "documents that are relevant, or both that are not"
        )
    frame = pl.DataFrame(
        rows,
        orient="row",
        schema={"query": str, "kind": str, "protected": pl.Int64, "unprotected": pl.Int64},
    ).with_columns(
        pl.col("protected", "unprotected").map_batches(
            collection.ids.gather, return_dtype=pl.String
        )
    )
    notes = list(sides.notes)
    unasked = judged.height - len(queries)
    if unasked:
        notes.append(UnaskedQueries(queries=unasked, has_candidates=pools is not None))
    notes += _draw_notes(short, lacking, pairs, len(queries), has_relevant=bool(relevant_rows))
    return DrawnPairs(sides=sides, frame=frame, requested=pairs, notes=tuple(notes))


def _pools(run: Run, collection: Collection) -> dict[str, Ints]:
    """Return the candidates of each query, as rows of the collection."""
    rows = collection_rows(run, collection)[run.docs]
    if not len(rows) or (rows < 0).any():
        fault = "it is empty"
        if len(rows):
            first_unknown = int(rows.argmin())  # −1 is the smallest row
            fault = f"first: {run.ids[int(run.docs[first_unknown])]!r}"
        raise DataError(
            run.spec.get("file", run.name), f"expected candidates from the collection ({fault})"
        )
    return {
        query: rows[start:stop]
        for query, start, stop in zip(run.queries, run.offsets[:-1], run.offsets[1:], strict=True)
    }


def _documents(kind: Kind, code: Ints, relevant: Ints | None, pool: Ints | None) -> Ints:
    """Return the rows of a query's documents of one kind that have a side, in rising order.

    `code` is the side of each document. `relevant` are the rows of the query's relevant documents,
    None without any; `pool` are those of its candidates, None for all documents.
    """
    candidates = np.arange(len(code)) if pool is None else pool
    with_side: Ints = candidates[code[candidates] >= 0]
    relevant_rows: Ints = np.empty(0, dtype=np.int64) if relevant is None else relevant
    if kind == "relevant":
        return np.intersect1d(with_side, relevant_rows).astype(np.int64)
    return np.setdiff1d(with_side, relevant_rows)


def _draw(documents: Ints, code: Ints, pairs: int, rng: random.Random) -> list[tuple[int, int]]:
    """Draw so many pairs of a protected and an unprotected document, or all if there are fewer."""
    protected = documents[code[documents] == 1]
    unprotected = documents[code[documents] == 0]
    pair_count = len(protected) * len(unprotected)
    drawn = []
    # A pair is a cell of the table protected × unprotected; its number counts the cells row by row.
    for number in rng.sample(range(pair_count), min(pairs, pair_count)):
        table_row, table_column = divmod(number, len(unprotected))
        drawn.append((int(protected[table_row]), int(unprotected[table_column])))
    return drawn


def _draw_notes(
    short: dict[Kind, int],
    lacking: dict[Kind, int],
    pairs: int,
    queries: int,
    *,
    has_relevant: bool,
) -> Iterator[Note]:
    """Note queries without documents on both sides, and queries with too few pairs.

    `short` has the number of queries with fewer than `pairs` pairs, `lacking` that of queries
    without a pair, and `queries` is that of all queries.
    """
    if not has_relevant:
        yield OnlyIrrelevantPairs()
    kinds: tuple[Kind, ...] = KINDS if has_relevant else ("irrelevant",)
    for kind in kinds:
        if lacking[kind]:
            yield QueriesWithoutSides(pairs=kind, lacking=lacking[kind], queries=queries)
        if short[kind]:
            yield FewPairs(pairs=kind, queries=short[kind], target=pairs)

"""Which pairs are asked about: a protected and an unprotected document, both relevant to a query, or neither."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl

from ranktilt.auditing.groups import grouping
from ranktilt.data.collection import Collection
from ranktilt.data.group_names import REST
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.pairwise import (
    DocumentsInNoPair,
    FewPairs,
    OnlyIrrelevantPairs,
    QueriesWithoutSides,
    UnaskedQueries,
)
from ranktilt.data.run import Run, codes, collection_rows
from ranktilt.errors import DataError, UserError, counted, unknown
from ranktilt.measures.ranking import Ints

Kind = Literal["relevant", "irrelevant"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, eq=False)
class TwoGroups:
    """The protected group and the others, and what the judgments say of each document."""

    by: str
    protected: str
    unprotected: str
    code: Ints
    """Of each document row: 1 protected, 0 unprotected, −1 neither."""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, eq=False)
class DrawnPairs:
    """Pairs to ask about."""

    sides: TwoGroups
    frame: pl.DataFrame
    """``query``, ``kind``, ``protected`` and ``unprotected`` (ids), a row a pair."""
    wanted: int
    """Pairs a query and kind that were asked for."""
    notes: tuple[Note, ...] = ()


def two_groups(collection: Collection, by: str, protected: str | None = None) -> TwoGroups:
    """Part documents into a protected group, by default the smaller of two, which may be a union, and all others."""
    groups = grouping(collection, by, [] if protected is None else [protected, REST])
    if protected is None:
        if len(groups.names) != 2:
            raise UserError(
                f"{by} makes {len(groups.names)} groups ({', '.join(groups.names)}): name the protected one"
            )
        sizes = np.bincount(groups.code[groups.code >= 0], minlength=2)
        protected = groups.names[int(sizes[1] <= sizes[0])]
    number = groups.number(protected)
    if protected == REST and groups.merged:
        raise unknown(by, protected, groups.names)
    protected = groups.names[number]
    others = [name for name in groups.names if name != protected]
    code = np.where(groups.code < 0, -1, groups.code == number).astype(np.int64)
    lost = int((code < 0).sum())
    notes: tuple[Note, ...] = groups.remarks
    if lost:
        note = DocumentsInNoPair(
            severity="warning" if 2 * lost >= len(code) else "note",
            by=by,
            documents=lost,
            total=len(code),
            has_several=bool(groups.several),
        )
        notes = (*notes, note)
    return TwoGroups(by, protected, others[0] if len(others) == 1 else REST, code, notes)


def relevant_pairs(collection: Collection) -> pl.DataFrame:
    """Return the relevant judgments of documents that are there: ``query`` (id) and ``row``."""
    judged = collection.qrels.filter(pl.col("grade") > 0)
    rows = codes(judged["doc_id"], collection.ids)
    return judged.select(query="query_id", row=pl.Series(rows, dtype=pl.Int64)).filter(
        pl.col("row") >= 0
    )


def known_queries(collection: Collection, queries: Iterable[str]) -> list[str]:
    """Return ids of queries, each once; refuses none at all, and one that is not in the collection."""
    asked, known = list(dict.fromkeys(queries)), set(collection.queries["id"])
    if not asked:
        raise UserError("expected query ids, got none")
    strange = [name for name in asked if name not in known]
    if strange:
        raise UserError(
            f"{counted(len(strange), 'query is', 'queries are')} not in the collection: {strange[0]!r}"
        )
    return asked


def draw_pairs(
    collection: Collection,
    sides: TwoGroups,
    *,
    pairs: int = 20,
    seed: int = 0,
    candidates: Run | None = None,
    queries: Sequence[str] | None = None,
) -> DrawnPairs:
    """Draw pairs for every judged query, seeded, none twice: so many of two relevant documents, and of two others."""
    if pairs < 1:
        raise UserError(f"expected at least 1 pair per query and kind, got {pairs}")
    by_query = relevant_pairs(collection).group_by("query", maintain_order=True)
    relevant = {str(query): rows["row"].to_numpy() for (query,), rows in by_query}
    pools = None if candidates is None else _pools(candidates, collection)
    found, short, lacking = [], dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    judged = collection.queries_with_judgments.select("id", "text")
    every = (judged if queries is None else judged.filter(pl.col("id").is_in(list(queries)))).rows()
    queries = [query for query, text in every if text and (pools is None or query in pools)]
    for query in queries:
        pool = None if pools is None else pools[query]
        for kind, chosen in zip(
            KINDS, _of_kinds(sides.code, relevant.get(query), pool), strict=True
        ):
            one, two = (chosen[sides.code[chosen] == side] for side in (1, 0))
            most = len(one) * len(two)
            drawn = random.Random(f"{seed} {kind} {query}").sample(range(most), min(pairs, most))
            short[kind] += 0 < most < pairs
            lacking[kind] += most == 0
            found += [(query, kind, int(one[n // len(two)]), int(two[n % len(two)])) for n in drawn]
    frame = pl.DataFrame(
        found,
        orient="row",
        schema={"query": str, "kind": str, "protected": pl.Int64, "unprotected": pl.Int64},
    ).with_columns(
        pl.col("protected", "unprotected").map_batches(
            collection.ids.gather, return_dtype=pl.String
        )
    )
    if not found:
        raise UserError(
            f"no pairs to ask about: no query has both {sides.protected} and {sides.unprotected} documents that are "
            "relevant to it, nor that are not"
        )
    left = len(every) - len(queries)
    lost = [UnaskedQueries(queries=left, has_candidates=pools is not None)] if left else []
    notes = _notes(short, lacking, pairs, len(queries), judged=bool(relevant))
    return DrawnPairs(sides, frame, pairs, (*sides.notes, *lost, *notes))


def _pools(run: Run, collection: Collection) -> dict[str, Ints]:
    rows = collection_rows(run, collection)[run.docs]
    if not len(rows) or (rows < 0).any():
        came = (
            f"first: {run.ids[int(run.docs[int(rows.argmin())])]!r}" if len(rows) else "it is empty"
        )
        raise DataError(
            run.spec.get("file", run.name), f"expected candidates of the collection ({came})"
        )
    return {query: rows[run.offsets[n] : run.offsets[n + 1]] for n, query in enumerate(run.queries)}


def _of_kinds(code: Ints, relevant: Ints | None, pool: Ints | None) -> tuple[Ints, Ints]:
    """Rows with a side that are relevant, and the others."""
    every = np.arange(len(code)) if pool is None else pool
    held: Ints = every[code[every] >= 0]
    wanted: Ints = np.empty(0, dtype=np.int64) if relevant is None else relevant
    return np.intersect1d(held, wanted).astype(np.int64), np.setdiff1d(held, wanted)


def _notes(
    short: dict[Kind, int], lacking: dict[Kind, int], pairs: int, queries: int, *, judged: bool
) -> Iterator[Note]:
    if not judged:
        yield OnlyIrrelevantPairs()
    for kind in KINDS if judged else KINDS[1:]:
        if lacking[kind]:
            yield QueriesWithoutSides(pairs=kind, lacking=lacking[kind], queries=queries)
        if short[kind]:
            yield FewPairs(pairs=kind, queries=short[kind], target=pairs)

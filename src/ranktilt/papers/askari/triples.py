"""Training triples: a query, a relevant document and a random other one, which is its negative.

A query is *judged* if some document is known to be relevant to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import codes
from ranktilt.statistics.sampling import sample_rows


def triples(collection: Collection, negatives: int, *, seed: int = 0) -> Iterator[bytes]:
    """Yield lines of query, relevant document and random negative by their ids, tab-separated.

    Each piece has the lines of one relevant document, so that memory does not grow with their
    number. Negatives are drawn at random from all documents that are not relevant to the query, and
    do not have the text of one that is. A relevant document has `negatives` different ones, or all
    if the collection has fewer. `seed` is that of the draw.
    """
    # An array of objects: selecting rows of it copies no text.
    names = np.array([name.encode() for name in collection.ids], dtype=object)
    random = np.random.default_rng(seed)
    for judged_query in _judged_queries(collection):
        excluded = judged_query.excluded
        count = min(negatives, len(names) - len(excluded))
        for row in judged_query.relevant:
            drawn = sample_rows(random, count, len(names), excluded)
            if len(drawn):
                start = f"{judged_query.query}\t".encode() + names[row] + b"\t"
                yield start + (b"\n" + start).join(names[drawn].tolist()) + b"\n"


@dataclass(frozen=True, kw_only=True)
class _JudgedQuery:
    """A query with rows of documents."""

    query: str
    """Id of the query."""
    relevant: list[int]
    """Rows of its relevant documents."""
    excluded: list[int]
    """Rows of the relevant documents and of all copies of their texts, sorted."""


def _judged_queries(collection: Collection) -> Iterator[_JudgedQuery]:
    """Yield each query that has a relevant document in the collection."""
    judged = collection.qrels.filter(pl.col("grade") > 0)
    judged = judged.with_columns(row=codes(judged["doc_id"], collection.ids))
    judged = judged.filter(pl.col("row") >= 0)
    copies = _rows_by_copy(collection)
    for query, rows in judged.group_by("query_id", maintain_order=True).agg("row").iter_rows():
        excluded = chain.from_iterable(copies.get(row, (row,)) for row in rows)
        yield _JudgedQuery(query=query, relevant=rows, excluded=sorted(set(excluded)))


def _rows_by_copy(collection: Collection) -> dict[int, list[int]]:
    """Return, for each row whose text occurs several times, all rows with this text."""
    texts = collection.docs.select("text").with_row_index("row").group_by("text").agg("row")["row"]
    copies = dict[int, list[int]]()
    for rows in texts.filter(texts.list.len() > 1).to_list():
        copies |= dict.fromkeys(rows, rows)
    return copies

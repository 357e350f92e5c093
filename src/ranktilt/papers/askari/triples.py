"""Training triples: a query, a relevant document and a random one, line by line, however many."""

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

    Each piece holds the lines of one relevant document, so that memory does not grow with their
    number. Random documents are drawn evenly from all that are not relevant to the query and not
    the same text as one that is; none comes twice, and where a collection has fewer, all of them
    are taken.
    """
    # Objects, so that a draw of rows gives strings that are there already, and joining them is one
    # copy.
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
    """Return the rows of each repeated text, by each of these rows."""
    texts = collection.docs.select("text").with_row_index("row").group_by("text").agg("row")["row"]
    copies = dict[int, list[int]]()
    for rows in texts.filter(texts.list.len() > 1).to_list():
        copies |= dict.fromkeys(rows, rows)
    return copies

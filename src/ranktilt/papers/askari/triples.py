"""Training triples: a query, a relevant document and one at random, line by line, however many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.run import codes
from ranktilt.statistics.sampling import sample_rows


def triples(collection: Collection, negatives: int, *, seed: int = 0) -> Iterator[bytes]:
    """Yield lines of query, relevant document and random other one by their ids, tab-separated.

    Each piece holds the lines of one relevant document, so that memory does not grow with their
    number. Random documents are drawn evenly from all that are not relevant to the query and not
    the same text as one that is; none comes twice, and where a collection has fewer, all of them
    are taken.
    """
    # Objects, so that a draw of rows gives strings that are there already, and joining them is one
    # copy.
    names = np.array([name.encode() for name in collection.ids], dtype=object)
    random = np.random.default_rng(seed)
    for query, relevant, excluded in _relevant(collection):
        for row in relevant:
            drawn = sample_rows(
                random, min(negatives, len(names) - len(excluded)), len(names), excluded
            )
            if len(drawn):
                start = f"{query}\t".encode() + names[row] + b"\t"
                yield start + (b"\n" + start).join(names[drawn].tolist()) + b"\n"


def _relevant(collection: Collection) -> Iterator[tuple[str, list[int], list[int]]]:
    """Each query with the rows of its relevant documents, and of these and all copies of their text, sorted."""
    judged = collection.qrels.filter(pl.col("grade") > 0)
    judged = judged.with_columns(row=codes(judged["doc_id"], collection.ids)).filter(
        pl.col("row") >= 0
    )
    texts = collection.docs.select("text").with_row_index("row").group_by("text").agg("row")["row"]
    same = {row: rows for rows in texts.filter(texts.list.len() > 1).to_list() for row in rows}
    for query, rows in judged.group_by("query_id", maintain_order=True).agg("row").iter_rows():
        yield query, rows, sorted({copy for row in rows for copy in same.get(row, (row,))})

"""Training triples: a query, a relevant document and one at random, line by line, however many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown
from ranktilt.io.columns import one_line
from ranktilt.run import codes
from ranktilt.statistics.sampling import sample_rows

Rows = npt.NDArray[np.int64]
PER = ("positive", "query")
FORMS = ("ids", "text")


@dataclass(frozen=True, kw_only=True)
class TripleRules:
    """How many random documents: `negatives` of each relevant one, or of each query, dealt out to its relevant ones.

    Of one relevant document, or of one query, none comes twice; where a collection has fewer, all of them are taken.
    """

    negatives: int = 1_000
    per: str = "positive"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.per not in PER:
            raise unknown("choice of what triples are counted by", self.per, PER)
        if self.negatives < 1:
            raise UserError(f"expected at least 1 negative, got {self.negatives}")


def triples(collection: Collection, rules: TripleRules, *, form: str = "ids") -> Iterator[bytes]:
    """Yield lines of query, relevant document and random other one, tab-separated, as ids or as text.

    Each piece holds the lines of one relevant document, so that memory does not grow with their number. Random
    documents are drawn evenly from all that are not relevant to the query and not the same text as one that is.
    """
    if form not in FORMS:
        raise unknown("form of triples", form, FORMS)
    docs = collection.docs["id" if form == "ids" else "text"]
    queries = collection.queries["id" if form == "ids" else "text"]
    # Objects, so that a draw of rows gives strings that are there already, and joining them is one copy.
    names = np.array([text.encode() for text in one_line(docs)], dtype=object)
    asked = dict(zip(collection.queries["id"], one_line(queries), strict=True))
    random = np.random.default_rng(rules.seed)
    for query, relevant, excluded in _relevant(collection):
        drawn = _draw(random, rules, len(relevant), (len(names), excluded))
        for row, negatives in zip(relevant, drawn, strict=True):
            if len(negatives):
                start = f"{asked[query]}\t".encode() + names[row] + b"\t"
                yield start + (b"\n" + start).join(names[negatives].tolist()) + b"\n"


def _relevant(collection: Collection) -> Iterator[tuple[str, list[int], list[int]]]:
    """Each query with the rows of its relevant documents, and of these and all copies of their text, sorted."""
    judged = collection.qrels.filter(pl.col("grade") > 0)
    judged = judged.with_columns(row=codes(judged["doc_id"], collection.ids)).filter(pl.col("row") >= 0)
    texts = collection.docs.select("text").with_row_index("row").group_by("text").agg("row")["row"]
    same = {row: rows for rows in texts.filter(texts.list.len() > 1).to_list() for row in rows}
    for query, rows in judged.group_by("query_id", maintain_order=True).agg("row").iter_rows():
        yield query, rows, sorted({copy for row in rows for copy in same.get(row, (row,))})


def _draw(
    random: np.random.Generator, rules: TripleRules, relevant: int, documents: tuple[int, list[int]]
) -> list[Rows]:
    """Rows of random documents for each relevant one."""
    every, excluded = documents
    n = min(rules.negatives, every - len(excluded))
    drawn = [sample_rows(random, n, every, excluded) for _ in range(1 if rules.per == "query" else relevant)]
    if rules.per == "query":  # shuffled, for a draw without that is not in random order
        return np.array_split(random.permutation(drawn[0]), relevant)
    return drawn

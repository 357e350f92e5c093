"""What a retriever is trained on: queries, their relevant documents, the twins of these, and what is no negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.training_set import (
    Ints,
    barred_rows,
    drawn,
    named_sources,
    no_twins,
    relevant_documents,
    twin_source,
    twin_texts,
)


@dataclass(frozen=True, eq=False)
class RetrieverSet:
    """What is learned from a collection; documents are rows of `part`."""

    part: Collection
    """The documents that are learned from, with the queries that have a relevant one, in their order."""
    texts: list[str]
    """Of the documents, and behind them of their twins."""
    positives: tuple[Ints, ...]
    """The relevant documents of each query."""
    barred: tuple[Ints, ...]
    """What is never a query's negative: what is relevant to it, in any version or copy."""
    twins: Ints
    """Where each document's twin stands in `texts`; its own place where it has none, which no constraint can move."""
    twin_source: str | None
    paired: int
    """Relevant documents that have a twin."""
    skipped: int
    """Queries that are left out: what is relevant to them is not among the documents."""

    @property
    def queries(self) -> list[str]:
        """Texts of the queries."""
        return self.part.queries["text"].to_list()


def shared_set(collection: Collection, asked: RetrieverTraining) -> RetrieverSet:
    """Find what a retriever can learn from a collection's judgments, once for all trainings on it.

    Raises
    ------
    UserError
        If nothing is relevant among the sources' documents, or the constraint is asked for and none has a twin.
    """
    chosen = named_sources(collection, asked.sources) or collection.sources[:1]
    key = (__name__, chosen, asked.twins, asked.text, asked.limits, asked.seed if asked.limits else 0)
    found = collection.memo(key, lambda: _retriever_set(collection, asked, chosen))
    if asked.constrained and not found.paired:
        raise UserError(no_twins(collection, chosen, found.twin_source))
    return found


def _retriever_set(collection: Collection, asked: RetrieverTraining, chosen: tuple[str, ...]) -> RetrieverSet:
    relevant, wanted, part = relevant_documents(collection, chosen)
    wanted = drawn(collection, wanted, asked.limits, asked.seed)
    rows = part.docs.select(doc_id="id").with_columns(row=pl.int_range(pl.len()))
    good = wanted.join(rows, on="doc_id", maintain_order="left").select("query_id", "row")
    barred = _by_query(barred_rows(collection, part, relevant, asked.text))
    positives = _by_query(good.sort("row"))
    queries = part.queries.join(wanted.select(id="query_id").unique(), on="id", how="semi", maintain_order="left")
    ids = queries["id"].to_list()
    source = twin_source(collection, asked.twins, chosen)
    twins, texts = twin_texts(collection, part, source, asked.text)
    used = np.unique(np.concatenate([positives[q] for q in ids]))
    paired = int((twins[used] != used).sum())
    return RetrieverSet(
        Collection(part.docs, queries, part.qrels, part.spec), texts, tuple(positives[q] for q in ids),
        tuple(barred[q] for q in ids), twins, source, paired, relevant["query_id"].n_unique() - len(ids),
    )  # fmt: skip


def _by_query(rows: pl.DataFrame) -> dict[str, Ints]:
    grouped = rows.group_by("query_id", maintain_order=True).agg("row")
    return {query: np.array(found, dtype=np.int64) for query, found in grouped.iter_rows()}

"""What a retriever is trained on: queries, their relevant documents, the twins of these, and what is no negative."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.training_set import Ints, collection_name, copies_of_text, relevant_documents


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

    def digest(self) -> str:
        """Hash of all that is learned from."""
        whole = hashlib.blake2b(digest_size=16)
        for text in (*self.queries, *self.texts):
            data = text.encode()
            whole.update(len(data).to_bytes(8, "little") + data)
        for rows in (*self.positives, self.twins):
            whole.update(len(rows).to_bytes(8, "little") + rows.astype("<i8").tobytes())
        return whole.hexdigest()


def retriever_set(collection: Collection, asked: RetrieverTraining) -> RetrieverSet:
    """Find what a retriever can learn from a collection's judgments; a grade above 0 is relevant.

    Raises
    ------
    UserError
        If nothing is relevant among the sources' documents, or the constraint is asked for and none has a twin.
    """
    chosen = asked.sources or collection.sources[:1]
    relevant, wanted, part = relevant_documents(collection, chosen)
    rows = pl.int_range(part.docs.height, eager=True).alias("row")
    docs = part.docs.select("origin", doc_id="id").with_columns(rows, copy=copies_of_text(part, asked.text))
    good = wanted.join(docs, on="doc_id", maintain_order="left").select("query_id", "row", "copy")
    origins = relevant.join(collection.docs.select("origin", doc_id="id"), on="doc_id").select("query_id", "origin")
    versions = origins.unique().join(docs.select("origin", "row"), on="origin").select("query_id", "row")
    copies = good.join(docs.select("copy", twin="row"), on="copy").select("query_id", row="twin")
    barred = _by_query(pl.concat([versions, copies]).unique().sort("row"))
    positives = _by_query(good.sort("row"))
    queries = part.queries.join(wanted.select(id="query_id").unique(), on="id", how="semi", maintain_order="left")
    ids = queries["id"].to_list()
    source = _twin_source(collection, asked, chosen)
    twins, texts = _twins(collection, part, source, asked.text)
    used = np.unique(np.concatenate([positives[q] for q in ids]))
    paired = int((twins[used] != used).sum())
    if asked.constrained and not paired:
        raise UserError(_no_twins(collection, chosen, source))
    return RetrieverSet(
        Collection(part.docs, queries, part.qrels, part.spec), texts, tuple(positives[q] for q in ids),
        tuple(barred[q] for q in ids), twins, source, paired, relevant["query_id"].n_unique() - len(ids),
    )  # fmt: skip


def _by_query(rows: pl.DataFrame) -> dict[str, Ints]:
    grouped = rows.group_by("query_id", maintain_order=True).agg("row")
    return {query: np.array(found, dtype=np.int64) for query, found in grouped.iter_rows()}


def _twin_source(collection: Collection, asked: RetrieverTraining, chosen: tuple[str, ...]) -> str | None:
    """The source of the twins: the one that is named, else the first other one that has a version of any document."""
    if asked.twins is not None:
        if asked.twins not in collection.sources:
            raise unknown("source", asked.twins, collection.sources)
        if asked.twins in chosen:
            raise UserError(f"training: {asked.twins!r} is learned from, so it cannot hold the twins too")
        return asked.twins
    origins = collection.docs.filter(pl.col("source").is_in(list(chosen)))["origin"].unique()
    others = collection.docs.filter(~pl.col("source").is_in(list(chosen)) & pl.col("origin").is_in(origins.implode()))
    return next((name for name in collection.sources if name in set(others["source"])), None)


def _twins(collection: Collection, part: Collection, source: str | None, text: str) -> tuple[Ints, list[str]]:
    own = np.arange(part.docs.height, dtype=np.int64)
    texts = part.texts(text).to_list()
    if source is None:
        return own, texts
    of_source = pl.Series(collection.docs["source"] == source)
    versions = pl.DataFrame({"origin": collection.docs["origin"], "text": collection.texts(text)}).filter(of_source)
    versions = versions.unique("origin", keep="first", maintain_order=True)
    places = versions.select("origin", place=pl.int_range(pl.len()) + len(texts))
    found = part.docs.select("origin").join(places, on="origin", how="left", maintain_order="left")["place"]
    return found.fill_null(pl.Series(own)).to_numpy().astype(np.int64), texts + versions["text"].to_list()


def _no_twins(collection: Collection, chosen: tuple[str, ...], source: str | None) -> str:
    split, path = collection.spec.get("split") or "train", collection.spec.get("path") or "DIR"
    of = f" of source {source!r}" if source else ""
    return (
        f"{collection_name(collection)}: no relevant document of source {' or '.join(map(repr, chosen))} has a twin"
        f"{of}, and the constraint compares the two; write them: ranktilt rewrite {path} --split {split} --llm MODEL "
        "-o NEW"
    )

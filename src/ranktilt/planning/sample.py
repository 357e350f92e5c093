"""Samples of a collection that stand for it: documents of every length, with their twins, queries and judgments."""

from __future__ import annotations

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.run import Run

_STEP, _SHORTER = 1e-9, 12
"""How far scores fall between copies, as a share of the largest; characters that a stand-in for a rewrite lacks."""


def sample(collection: Collection, documents: int, queries: int, *, seed: int) -> Collection:
    """Draw about so many documents and queries, evenly over their lengths.

    Documents of one origin are drawn together. A query keeps about as many judgments as it has, which are given to
    documents of the sample by chance, all of one origin alike: what is measured is time, and not effectiveness.
    """
    rng = np.random.default_rng([seed, documents, queries])
    docs = _drawn_documents(collection.docs, documents, rng)
    asked = _drawn(collection.judged.sort(pl.col("text").str.len_bytes(), "id"), queries, rng)
    qrels = collection.qrels.join(asked, left_on="query_id", right_on="id", how="semi")
    return Collection(docs, asked, _judged_by_chance(qrels, docs, rng), {"split": "test"})


def repeated(collection: Collection, times: int) -> Collection:
    """All documents, queries and judgments so many times: a larger one's work, but for new words."""
    if times == 1:
        return collection
    mark = _unused_mark(collection)

    def copied(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
        copies = ([(pl.col(name) + f"{mark}{n}").alias(name) for name in columns] for n in range(1, times))
        return pl.concat([rows, *map(rows.with_columns, copies)])

    docs, queries = copied(collection.docs, "id", "origin"), copied(collection.queries, "id")
    return Collection(docs, queries, copied(collection.qrels, "query_id", "doc_id"), {"split": "test"})


def with_rewrites(collection: Collection, source: str) -> Collection:
    """A collection with a twin of each document, a little shorter, as a stand-in for rewrites that are yet to come."""
    mark = _unused_mark(collection)
    shorter = pl.col("text").str.head(-_SHORTER)
    twins = collection.docs.with_columns(pl.col("id") + mark, shorter, source=pl.lit(source))
    qrels = collection.qrels.with_columns(pl.col("doc_id") + mark)
    return Collection(
        pl.concat([collection.docs, twins]), collection.queries, pl.concat([collection.qrels, qrels]), {"split": "test"}
    )


def without_rewrites(collection: Collection, source: str) -> Collection:
    """What was there before `with_rewrites`."""
    docs = collection.docs.filter(pl.col("source") != source)
    qrels = collection.qrels.join(docs, left_on="doc_id", right_on="id", how="semi")
    return Collection(docs, collection.queries, qrels, {"split": "test"})


def _unused_mark(collection: Collection) -> str:
    """What no id holds."""
    names, mark = pl.concat([collection.docs["id"], collection.docs["origin"], collection.queries["id"]]), "#"
    while names.str.contains(mark, literal=True).any():
        mark += "#"
    return mark


def repeated_run(run: Run, many: Collection, times: int, depth: int) -> Run:
    """A run of a collection as one of the collection so many times: lists grow as documents do, up to a depth."""
    if times == 1:
        return run
    lengths = np.diff(run.offsets)
    each = np.repeat(np.clip(depth // np.maximum(lengths, 1), 1, times), lengths)
    entry = np.repeat(np.arange(len(run.docs)), each)
    which = np.arange(len(entry)) - np.repeat(np.cumsum(each) - each, each)
    ends = np.concatenate([[0], np.cumsum(each)])[run.offsets]
    rank = np.arange(len(entry)) - np.repeat(ends[:-1], np.diff(ends))
    fall = _STEP * float(np.abs(run.scores).max(initial=0.0)) * rank
    scores = run.scores[entry] - np.where(each[entry] > 1, fall, 0)  # copies are not tied
    shift = (np.arange(times)[:, None] + which) % times * (many.docs.height // times)
    offsets = np.concatenate([[0], np.cumsum(np.tile(np.diff(ends), times))])
    count, number = many.queries.height // times, {name: n for n, name in enumerate(many.queries["id"])}
    names = many.queries["id"].gather([number[name] + copy * count for copy in range(times) for name in run.queries])
    docs = (run.docs[entry] + shift).ravel().astype(np.int32)
    return Run(tuple(names), offsets, docs, np.tile(scores, times), many.ids, run.spec)


def _drawn_documents(docs: pl.DataFrame, count: int, rng: np.random.Generator) -> pl.DataFrame:
    size = pl.col("text").str.len_bytes() + pl.col("title").str.len_bytes()
    origins = docs.group_by("origin").agg(size.sum().alias("bytes")).sort("bytes", "origin")
    chosen = _drawn(origins, round(count * origins.height / docs.height), rng)
    return docs.join(chosen, on="origin", how="semi", maintain_order="left")


def _drawn(rows: pl.DataFrame, count: int, rng: np.random.Generator) -> pl.DataFrame:
    """Rows at even distances, from a random one on; at least one."""
    count = min(max(count, 1), rows.height)
    return rows[((np.arange(count) + rng.random()) * rows.height / count).astype(np.int64)]


def _judged_by_chance(qrels: pl.DataFrame, docs: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """About as many judgments of the same queries and grades, of other documents."""
    versions = max(round(docs.height / docs["origin"].n_unique()), 1)
    some = qrels.sort(pl.col("grade"), descending=True, maintain_order=True)
    some = some.filter(pl.col("doc_id").cum_count().over("query_id") % versions == 1 % versions)
    drawn = docs["origin"].gather(rng.integers(docs.height, size=some.height))
    judged = some.with_columns(origin=drawn).join(docs.select("origin", "id"), on="origin", maintain_order="left")
    judged = judged.select("query_id", pl.col("id").alias("doc_id"), "grade")
    return judged.unique(["query_id", "doc_id"], keep="first", maintain_order=True)

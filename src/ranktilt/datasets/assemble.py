"""Documents, queries and judgments that were read apart, made one collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError
from ranktilt.io.jsonl import STRINGS, read_jsonl, stack
from ranktilt.io.parquet import PARQUET, read_parquet, read_parts
from ranktilt.io.qrels import one_grade

_QRELS = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}


def read_rows(file: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read a file of documents or queries, JSON lines or Parquet, or parts; see `ranktilt.io.jsonl.read_jsonl`."""
    if file.suffix == PARQUET:
        return read_parquet(file, strings=strings)
    return (read_parts if file.is_dir() else read_jsonl)(file, strings=strings)


def read_documents(corpora: Iterable[tuple[str | None, Path]]) -> tuple[pl.DataFrame, pl.Series]:
    """Read documents of all (source, file), and their ids as files have them; shared ids become ``<id>-<source>``."""
    frames = []
    for source, file in corpora:
        frame = read_rows(file, strings=STRINGS)
        given = pl.lit(None, dtype=pl.String) if "source" not in frame.columns or source else pl.col("source")
        frames.append(frame.with_columns(given.fill_null(source or "human").alias("source")))
    docs = stack(frames)
    if "origin" not in docs.columns:
        docs = docs.with_columns(pl.lit(None, dtype=pl.String).alias("origin"))
    bare = docs["id"]
    if bare.n_unique() < docs.height:
        docs = docs.with_columns(
            pl.format("{}-{}", "id", "source").alias("id"), pl.col("origin").fill_null(pl.format("{}-human", "id"))
        )
    return docs.with_columns(pl.col("origin").fill_null(pl.col("id"))), bare


def unjudged(docs: pl.DataFrame, queries: pl.DataFrame, spec: Mapping[str, Any]) -> Collection:
    return Collection(docs, queries, pl.DataFrame(schema=_QRELS), spec)


def judged(
    documents: tuple[pl.DataFrame, pl.Series], queries: pl.DataFrame, qrels: pl.DataFrame, file: str | Path,
    *, spec: Mapping[str, Any], ignore_unknown: bool = False,
) -> Collection:  # fmt: skip
    """Make a collection of documents, queries and judgments, which hold for every version where they name a bare id."""
    docs, bare = documents
    if (bare != docs["id"]).any():
        qrels = _spread(Path(file), qrels, docs["id"], bare)
    unknown = _unknown(file, qrels, docs, queries)
    if unknown and not ignore_unknown:
        raise unknown
    return Collection(docs, queries, qrels, {**spec, "ignore_unknown": True} if ignore_unknown else spec)


def only_judged(collection: Collection) -> Collection:
    """Keep the documents that a judgment names, and their versions; `UserError` if there are no judgments."""
    if not collection.qrels.height:
        raise UserError("docs 'judged' needs judgments, and there are none")
    docs = collection.docs
    origins = docs.filter(pl.col("id").is_in(collection.qrels["doc_id"].unique().implode()))["origin"].unique()
    kept = docs.filter(pl.col("origin").is_in(origins.implode()))
    return replace(collection, docs=kept, spec={**collection.spec, "docs": "judged", "docs_of": docs.height})


def _spread(file: Path, qrels: pl.DataFrame, ids: pl.Series, bare: pl.Series) -> pl.DataFrame:
    """Let a judgment of a bare id hold for every document of that id; full ids stay as they are."""
    written = pl.DataFrame({"doc_id": bare, "full": ids})
    whole = pl.DataFrame({"doc_id": ids, "full": ids}).join(written, on="doc_id", how="anti")
    spread = qrels.join(pl.concat([written, whole]), on="doc_id", how="left", maintain_order="left_right")
    return one_grade(file, spread.with_columns(pl.col("full").fill_null(pl.col("doc_id")).alias("doc_id")).drop("full"))


def _unknown(file: str | Path, qrels: pl.DataFrame, docs: pl.DataFrame, queries: pl.DataFrame) -> DataError | None:
    parts = []
    first: int | None = None
    for noun, column, table in (("document", "doc_id", docs["id"]), ("query", "query_id", queries["id"])):
        strange = qrels.filter(~pl.col(column).is_in(table.implode()))
        if strange.height:
            lines = strange["line"] if "line" in strange.columns else strange.select("query_id", "doc_id").to_struct()
            n, many = strange[column].n_unique(), lines.n_unique()
            plural = {"document": "documents", "query": "queries"}[noun] if n > 1 else noun
            judgments = "judgments" if many > 1 else "judgment"
            parts.append(f"{many} {judgments} of {n} unknown {plural} (first: {strange[column][0]!r})")
            if "line" in strange.columns:
                first = min(first or strange["line"][0], strange["line"][0])
    if not parts:
        return None
    hint = "--ignore-unknown (ignore_unknown=True) keeps them out of group measures"
    return DataError(file, f"{'; '.join(parts)}; {hint}", line=first)

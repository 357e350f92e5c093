"""Make a collection from documents, queries and judgments that were read from separate files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection, stated_source
from ranktilt.data.formats.jsonl import STRINGS, read_jsonl, stack
from ranktilt.data.formats.judgments.qrels import one_grade
from ranktilt.data.formats.tables.parquet import PARQUET, read_parquet, read_parts
from ranktilt.errors import DataError, UserError

_QRELS = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
"""Columns of judgments."""


def read_rows(file: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read documents or queries from a file of JSON lines or Parquet, or from a folder of parts.

    `strings` are columns that are read as strings, whatever their values look like.
    """
    if file.suffix == PARQUET:
        return read_parquet(file, strings=strings)
    return (read_parts if file.is_dir() else read_jsonl)(file, strings=strings)


def read_documents(corpora: Iterable[tuple[str | None, Path]]) -> tuple[pl.DataFrame, pl.Series]:
    """Read the documents of several files; return them, and their ids as the files have them.

    `corpora` are pairs of a source and its file; the source is None if documents name their sources
    themselves. If several sources use the same ids, the new ids are ``<id>-<source>``. A document
    without a source keeps its id.
    """
    frames = []
    for source, file in corpora:
        frame = read_rows(file, strings=STRINGS)
        if source is not None:  # the file's name says it
            frame = frame.with_columns(source=pl.lit(source))
        missing = [name for name in ("source", "origin") if name not in frame.columns]
        frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in missing)
        frames.append(frame.with_columns(stated_source()))
    docs = stack(frames)
    bare = docs["id"]
    if bare.n_unique() < docs.height:
        names = version_names(docs, bare)
        docs = docs.with_columns(names["id"], docs["origin"].fill_null(names["origin"]))
    return docs.with_columns(pl.col("origin").fill_null(pl.col("id"))), bare


def version_names(docs: pl.DataFrame, bare: pl.Series) -> pl.DataFrame:
    """Return a new ``id`` and ``origin`` for documents that share ids with other sources.

    A *bare* id is one as the file has it, in `bare`. The new id is ``<id>-<source>``. A document
    without a source keeps its bare id, which is then the origin of the other versions too. If every
    version has a source, their origin is ``<id>-human``, as in Cocktail's collections.
    """
    table = pl.DataFrame({"bare": bare, "source": docs["source"]})
    has_sourceless = pl.col("source").is_null().any().over("bare")
    return table.select(
        id=pl.when(pl.col("source").is_null())
        .then("bare")
        .otherwise(pl.format("{}-{}", "bare", "source")),
        origin=pl.when(has_sourceless).then("bare").otherwise(pl.format("{}-human", "bare")),
    )


def unjudged(docs: pl.DataFrame, queries: pl.DataFrame, spec: Mapping[str, Any]) -> Collection:
    """Make a collection without judgments."""
    return Collection(docs, queries, pl.DataFrame(schema=_QRELS), spec)


def judged(
    documents: tuple[pl.DataFrame, pl.Series],
    queries: pl.DataFrame,
    qrels: pl.DataFrame,
    file: str | Path,
    *,
    spec: Mapping[str, Any],
    ignore_unknown: bool = False,
) -> Collection:
    """Make a collection with judgments.

    A judgment of a bare id that several documents share applies to each of them.

    Parameters
    ----------
    documents : tuple of DataFrame and Series
        What `read_documents` returns: documents, and their bare ids.
    queries, qrels : DataFrame
        Queries and judgments.
    file : str or Path
        File of the judgments, for errors.
    spec : mapping
        How the collection was made.
    ignore_unknown : bool, optional
        Accept judgments of documents or queries that are not there.

    Raises
    ------
    DataError
        If there are such judgments and they are not accepted.
    """
    docs, bare = documents
    if (bare != docs["id"]).any():
        qrels = _spread(Path(file), qrels, docs["id"], bare)
    if ignore_unknown:
        spec = {**spec, "ignore_unknown": True}
    else:
        _require_known(file, qrels, docs, queries)
    return Collection(docs, queries, qrels, spec)


def only_judged(collection: Collection) -> Collection:
    """Keep judged documents and their versions; `UserError` if there are no judgments."""
    if not collection.qrels.height:
        raise UserError("docs 'judged' needs judgments, but there are none")
    docs = collection.docs
    judged_ids = collection.qrels["doc_id"].unique()
    origins = docs.filter(pl.col("id").is_in(judged_ids.implode()))["origin"].unique()
    versions = docs.filter(pl.col("origin").is_in(origins.implode()))
    spec = {**collection.spec, "docs": "judged", "docs_of": docs.height}
    return replace(collection, docs=versions, spec=spec)


def _spread(file: Path, qrels: pl.DataFrame, ids: pl.Series, bare: pl.Series) -> pl.DataFrame:
    """Repeat a judgment of a bare id for every document with this bare id.

    A judgment that names the full id of a document stays as it is.
    """
    by_bare_id = pl.DataFrame({"doc_id": bare, "full": ids})
    by_full_id = pl.DataFrame({"doc_id": ids, "full": ids})
    by_full_id = by_full_id.join(by_bare_id, on="doc_id", how="anti")
    full_ids = pl.concat([by_bare_id, by_full_id])
    spread = qrels.join(full_ids, on="doc_id", how="left", maintain_order="left_right")
    spread = spread.with_columns(doc_id=pl.coalesce("full", "doc_id")).drop("full")
    return one_grade(file, spread)


def _require_known(
    file: str | Path, qrels: pl.DataFrame, docs: pl.DataFrame, queries: pl.DataFrame
) -> None:
    """Refuse judgments of documents or queries that the collection does not hold."""
    strange_docs = qrels.filter(~pl.col("doc_id").is_in(docs["id"].implode()))
    strange_queries = qrels.filter(~pl.col("query_id").is_in(queries["id"].implode()))
    messages = []
    if strange_docs.height:
        ids = strange_docs["doc_id"]
        noun = "unknown document" if ids.n_unique() == 1 else "unknown documents"
        messages.append(_strange_judgments(strange_docs, ids, noun))
    if strange_queries.height:
        ids = strange_queries["query_id"]
        noun = "unknown query" if ids.n_unique() == 1 else "unknown queries"
        messages.append(_strange_judgments(strange_queries, ids, noun))
    if not messages:
        return
    hint = "--ignore-unknown (ignore_unknown=True) keeps them out of group measures"
    line = None
    if "line" in qrels.columns:
        line = pl.concat([strange_docs["line"].head(1), strange_queries["line"].head(1)]).min()
    raise DataError(file, f"{'; '.join(messages)}; {hint}", line=line)  # type: ignore[arg-type]


def _strange_judgments(qrels: pl.DataFrame, ids: pl.Series, noun: str) -> str:
    """Say how many judgments name unknown documents or queries."""
    # Lines are counted: `_spread` may have repeated one judgment for several documents.
    key = ["line"] if "line" in qrels.columns else ["query_id", "doc_id"]
    count = qrels.select(key).unique().height
    judgments = "judgment" if count == 1 else "judgments"
    return f"{count} {judgments} of {ids.n_unique()} {noun} (first: {ids[0]!r})"

"""Make a collection from documents, queries and judgments that were read from separate files.

Several *sources* (people, language models) may write *versions* of one document, and call them by
the same id in their files. This is the *bare id*; in the collection each version gets an id of its
own. The *origin* of a version is the id of the document that it was rewritten from. *Judgments*
(*qrels*) are grades of how relevant a document is to a query; a file of them is a *split*. The
*spec* of a collection says how it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection, stated_source
from ranktilt.data.formats.jsonl import STRINGS, read_jsonl, stack
from ranktilt.data.formats.judgments.qrels import one_grade, read_qrels_as
from ranktilt.data.formats.notation import file_of, pairs_of
from ranktilt.data.formats.tables.parquet import PARQUET, read_parquet, read_parts
from ranktilt.errors import DataError, UserError

_QRELS_SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
"""Columns of judgments."""


def read_rows(file: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read documents or queries from a file of JSON lines or Parquet.

    `file` may be a folder of Parquet files too, the parts of a corpus. `strings` are columns that
    must hold strings.
    """
    if file.suffix == PARQUET:
        return read_parquet(file, strings=strings)
    if file.is_dir():
        return read_parts(file, strings=strings)
    return read_jsonl(file, strings=strings)


def read_documents(corpora: Iterable[tuple[str | None, Path]]) -> tuple[pl.DataFrame, pl.Series]:
    """Read the documents of several files; return them and their bare ids.

    `corpora` are pairs of a source and its file; the source is None if documents name their sources
    themselves. If several sources use the same ids, the new ids are ``<id>-<source>``. A document
    without a source keeps its id.
    """
    frames = []
    for source, file in corpora:
        frame = read_rows(file, strings=STRINGS)
        if source is not None:
            frame = frame.with_columns(source=pl.lit(source))
        missing = [name for name in ("source", "origin") if name not in frame.columns]
        frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in missing)
        frames.append(frame.with_columns(stated_source()))
    docs = stack(frames)
    bare_ids = docs["id"]
    if bare_ids.n_unique() < docs.height:
        names = version_names(docs, bare_ids)
        docs = docs.with_columns(names["id"], docs["origin"].fill_null(names["origin"]))
    return docs.with_columns(pl.col("origin").fill_null(pl.col("id"))), bare_ids


def version_names(docs: pl.DataFrame, bare_ids: pl.Series) -> pl.DataFrame:
    """Return a new ``id`` and ``origin`` for each document, by its bare id and its source.

    The new id is ``<bare id>-<source>``. A document without a source keeps its bare id, which is
    then the origin of the other versions too. If every version has a source, their origin is
    ``<bare id>-human``, as in Cocktail's collections.
    """
    table = pl.DataFrame({"bare": bare_ids, "source": docs["source"]})
    is_sourceless = pl.col("source").is_null()
    has_sourceless_version = is_sourceless.any().over("bare")
    return table.select(
        id=pl.when(is_sourceless).then("bare").otherwise(pl.format("{}-{}", "bare", "source")),
        origin=pl.when(has_sourceless_version)
        .then("bare")
        .otherwise(pl.format("{}-human", "bare")),
    )


def unjudged_collection(
    docs: pl.DataFrame, queries: pl.DataFrame, spec: Mapping[str, Any]
) -> Collection:
    """Make a collection without judgments."""
    return Collection(docs, queries, pl.DataFrame(schema=_QRELS_SCHEMA), spec)


def read_named_judgments(qrels: str | Path) -> tuple[pl.DataFrame, dict[str, str]]:
    """Read the file of judgments that a user names; return them, and keys of a collection's spec.

    The keys say how they were read: the file, which counts as a split, its layout, and the columns
    that the user named.
    """
    judgments, read_as = read_qrels_as(qrels)
    keys = {
        "split": str(file_of(qrels)),
        "judgments_read": read_as,
        "qrels_read": pairs_of(qrels),
    }
    return judgments, {key: value for key, value in keys.items() if value}


def judged_collection(
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
        Whether to accept judgments of documents or queries that the collection does not have.

    Raises
    ------
    DataError
        If there are such judgments and they are not accepted.
    """
    docs, bare_ids = documents
    if (bare_ids != docs["id"]).any():
        qrels = _with_full_ids(Path(file), qrels, docs["id"], bare_ids)
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


def _with_full_ids(
    file: Path, qrels: pl.DataFrame, ids: pl.Series, bare_ids: pl.Series
) -> pl.DataFrame:
    """Repeat a judgment of a bare id for every document with this bare id.

    A judgment that names the full id of a document stays as it is.
    """
    by_bare_id = pl.DataFrame({"doc_id": bare_ids, "full": ids})
    by_full_id = pl.DataFrame({"doc_id": ids, "full": ids})
    by_full_id = by_full_id.join(by_bare_id, on="doc_id", how="anti")
    full_ids = pl.concat([by_bare_id, by_full_id])
    repeated = qrels.join(full_ids, on="doc_id", how="left", maintain_order="left_right")
    repeated = repeated.with_columns(doc_id=pl.coalesce("full", "doc_id")).drop("full")
    return one_grade(file, repeated)


def _require_known(
    file: str | Path, qrels: pl.DataFrame, docs: pl.DataFrame, queries: pl.DataFrame
) -> None:
    """Refuse judgments of documents or queries that the collection does not hold."""
    of_unknown_docs = qrels.filter(~pl.col("doc_id").is_in(docs["id"].implode()))
    of_unknown_queries = qrels.filter(~pl.col("query_id").is_in(queries["id"].implode()))
    messages = []
    if of_unknown_docs.height:
        ids = of_unknown_docs["doc_id"]
        noun = "unknown document" if ids.n_unique() == 1 else "unknown documents"
        messages.append(_unknown_message(of_unknown_docs, ids, noun))
    if of_unknown_queries.height:
        ids = of_unknown_queries["query_id"]
        noun = "unknown query" if ids.n_unique() == 1 else "unknown queries"
        messages.append(_unknown_message(of_unknown_queries, ids, noun))
    if not messages:
        return
    hint = "--ignore-unknown (ignore_unknown=True) keeps them out of group measures"
    line = None
    if "line" in qrels.columns:
        line = pl.concat(
            [of_unknown_docs["line"].head(1), of_unknown_queries["line"].head(1)]
        ).min()
    raise DataError(file, f"{'; '.join(messages)}; {hint}", line=line)  # type: ignore[arg-type]


def _unknown_message(qrels: pl.DataFrame, ids: pl.Series, noun: str) -> str:
    """Say how many judgments are of unknown documents or queries, which have these ids."""
    # Lines are counted, because `_with_full_ids` may have repeated a judgment.
    key = ["line"] if "line" in qrels.columns else ["query_id", "doc_id"]
    count = qrels.select(key).unique().height
    judgments = "judgment" if count == 1 else "judgments"
    return f"{count} {judgments} of {ids.n_unique()} {noun} (first: {ids[0]!r})"

"""Documents, queries and judgments that were read apart, made one collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection, stated_source
from ranktilt.data.formats.jsonl import STRINGS, read_jsonl, stack
from ranktilt.data.formats.parquet import PARQUET, read_parquet, read_parts
from ranktilt.data.formats.qrels import one_grade
from ranktilt.errors import DataError, UserError

_QRELS = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}


def read_rows(file: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read a file of documents or queries, JSON lines or Parquet, or parts.

    See `ranktilt.data.formats.jsonl.read_jsonl`.
    """
    if file.suffix == PARQUET:
        return read_parquet(file, strings=strings)
    return (read_parts if file.is_dir() else read_jsonl)(file, strings=strings)


def read_documents(corpora: Iterable[tuple[str | None, Path]]) -> tuple[pl.DataFrame, pl.Series]:
    """Read documents of all (source, file), and their ids as files have them; shared ids become ``<id>-<source>``.

    A document whose file names no source has none, and keeps its id.
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
    """Name documents that share `bare` ids by their sources, and the origin of each: columns ``id`` and ``origin``.

    Each is ``<id>-<source>``, and one without a source keeps the bare id. That is the origin of the
    others too; where every version has a source, their origin is ``<id>-human``, as in Cocktail's
    collections.
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
    """Make a collection of documents, queries and judgments, which hold for every version where they name a bare id."""
    docs, bare = documents
    if (bare != docs["id"]).any():
        qrels = _spread(Path(file), qrels, docs["id"], bare)
    unknown = _unknown(file, qrels, docs, queries)
    if unknown and not ignore_unknown:
        raise unknown
    return Collection(
        docs, queries, qrels, {**spec, "ignore_unknown": True} if ignore_unknown else spec
    )


def only_judged(collection: Collection) -> Collection:
    """Keep the documents that a judgment names, and their versions; `UserError` if there are no judgments."""
    if not collection.qrels.height:
        raise UserError("docs 'judged' needs judgments, and there are none")
    docs = collection.docs
    origins = docs.filter(pl.col("id").is_in(collection.qrels["doc_id"].unique().implode()))[
        "origin"
    ].unique()
    kept = docs.filter(pl.col("origin").is_in(origins.implode()))
    return replace(
        collection, docs=kept, spec={**collection.spec, "docs": "judged", "docs_of": docs.height}
    )


def _spread(file: Path, qrels: pl.DataFrame, ids: pl.Series, bare: pl.Series) -> pl.DataFrame:
    """Let a judgment of a bare id hold for every document of that id; full ids stay as they are."""
    written = pl.DataFrame({"doc_id": bare, "full": ids})
    whole = pl.DataFrame({"doc_id": ids, "full": ids}).join(written, on="doc_id", how="anti")
    spread = qrels.join(
        pl.concat([written, whole]), on="doc_id", how="left", maintain_order="left_right"
    )
    return one_grade(
        file,
        spread.with_columns(pl.col("full").fill_null(pl.col("doc_id")).alias("doc_id")).drop(
            "full"
        ),
    )


def _unknown(
    file: str | Path, qrels: pl.DataFrame, docs: pl.DataFrame, queries: pl.DataFrame
) -> DataError | None:
    parts = []
    first: int | None = None
    for noun, column, table in (
        ("document", "doc_id", docs["id"]),
        ("query", "query_id", queries["id"]),
    ):
        strange = qrels.filter(~pl.col(column).is_in(table.implode()))
        if strange.height:
            lines = (
                strange["line"]
                if "line" in strange.columns
                else strange.select("query_id", "doc_id").to_struct()
            )
            n, many = strange[column].n_unique(), lines.n_unique()
            plural = {"document": "documents", "query": "queries"}[noun] if n > 1 else noun
            judgments = "judgments" if many > 1 else "judgment"
            parts.append(
                f"{many} {judgments} of {n} unknown {plural} (first: {strange[column][0]!r})"
            )
            if "line" in strange.columns:
                first = min(first or strange["line"][0], strange["line"][0])
    if not parts:
        return None
    hint = "--ignore-unknown (ignore_unknown=True) keeps them out of group measures"
    return DataError(file, f"{'; '.join(parts)}; {hint}", line=first)

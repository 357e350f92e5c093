"""Labels from a file: for runs without a collection, or beside the documents of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ranktilt.collection import DOC_COLUMNS, Collection
from ranktilt.datasets.labels import from_labels, label_column, read_labels
from ranktilt.errors import DataError, UserError, counted
from ranktilt.io.qrels import read_qrels
from ranktilt.run import Run


def labelled(
    labels: str | Path, runs: Sequence[Run], *, by: str = "source", qrels: str | Path | None = None
) -> Collection:
    """Make a collection without texts from a label file, for auditing runs that were made elsewhere.

    Parameters
    ----------
    labels : str or Path
        A table ``doc_id``, the column `by`, and optionally ``origin``; see `ranktilt.datasets.labels.read_labels`.
    runs : sequence of Run
        Their queries are the collection's, beside those of the judgments.
    by : str, optional
        The column of labels.
    qrels : str or Path, optional
        A file of judgments. Without one only the card's questions that need none can be asked.

    Returns
    -------
    Collection
        To be audited with the runs themselves.

    Raises
    ------
    DataError
        If a file is not what it should be, or none of a run's queries is judged.
    """
    judgments = None if qrels is None else read_qrels(qrels).drop("line")
    if judgments is not None:
        judged = set(judgments["query_id"].unique())
        for run in runs:
            if judged.isdisjoint(run.queries):
                first = f" (first: {run.queries[0]!r})" if run.queries else ""
                message = f"no overlap: none of its {counted(len(run.queries), 'query', 'queries')} has a judgment"
                raise DataError(run.spec.get("file", run.name), f"{message}{first}")
    table = read_labels(labels, by=by)
    queries = (query for run in runs for query in run.queries)
    return from_labels(table, queries=queries, qrels=judgments, by=by, labels_file=labels, qrels_file=qrels)


def with_labels(collection: Collection, labels: str | Path, *, by: str) -> Collection:
    """Add a column of labels from a file to a collection's documents.

    Parameters
    ----------
    collection : Collection
        With documents of its own.
    labels : str or Path
        As for `labelled`; a label of a document that is not there is left out.
    by : str
        The column; it replaces one of that name. A document without a label is in no group.

    Returns
    -------
    Collection
        The same documents with the column, and with the file's origins where it has some.

    Raises
    ------
    DataError
        If the file is not what it should be, names none of the documents, or leaves one without a source.
    UserError
        If the column is one that every collection has, other than ``source``.
    """
    column = label_column(by, collection.docs.columns)
    if column in DOC_COLUMNS and column != "source":
        raise UserError(f"--groups cannot replace the column {column!r} of a collection; call it something else")
    table = read_labels(labels, by=by).rename({"doc_id": "id"})
    kept = [name for name in ("id", column, "origin") if name in table.columns]
    joined = collection.docs.select("id").join(table.select(kept), on="id", how="left", maintain_order="left")
    missing = joined[column].null_count()
    if missing == joined.height:
        raise DataError(labels, f"names none of the collection's {joined.height:,} documents")
    if column == "source" and missing:
        first = joined["id"].filter(joined[column].is_null())[0]
        message = f"no source for {counted(missing, 'document', 'documents')} of the collection (first: {first!r})"
        raise DataError(labels, f"{message}; label all of them, or name another column with --by")
    docs = collection.docs.with_columns(joined[column])
    if "origin" in kept:
        docs = docs.with_columns(pl.coalesce(joined["origin"], docs["origin"]).alias("origin"))
    files = [*collection.spec.get("files", ()), str(labels)]
    return Collection(
        docs, collection.queries, collection.qrels, {**collection.spec, "labels": str(labels), "files": files}
    )

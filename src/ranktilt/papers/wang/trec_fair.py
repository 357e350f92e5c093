"""Read TREC Fair Ranking, from a CSV or by name: documents with labels, and their queries.

TREC Fair Ranking is a shared task on Wikipedia's articles. A *label* says to which group a document
belongs, such as ``female``; a document may have several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.formats.tables.delimited import LINE_COLUMN
from ranktilt.data.labels.label_table import one_row_each, read_delimited
from ranktilt.data.loading.collection_name import CollectionName, read_name
from ranktilt.data.loading.irds import dataset_qrels, dataset_queries, find_dataset, open_library
from ranktilt.data.text.label_values import SEVERAL, split_labels
from ranktilt.errors import DataError, UserError, counted, unknown_name
from ranktilt.progress import report

COLUMNS = {
    "q_id": "query_id",
    "q_text": "query",
    "doc_id": "id",
    "doc_title": "title",
    "first sentence": "text",
}
"""Columns of the CSV, and our names for them; any other column may have the labels."""
_RESERVED = ("origin", "source")
"""Columns with a meaning in every collection."""
_REPORT_EVERY = 50_000
"""Number of documents after which progress is reported."""
_TEXTS = {"id": pl.String, "title": pl.String, "text": pl.String}
"""Columns of documents' texts."""
_LABELS: dict[str, pl.DataType] = {"id": pl.String(), "labels": pl.List(pl.String)}
"""Columns of documents' labels."""


@dataclass(frozen=True, kw_only=True)
class LabelledDocuments:
    """Relevant documents with their labels, and the queries they are relevant to."""

    labels: pl.DataFrame
    """Documents: ``id`` (unique) and ``labels`` (a list, empty if there are none)."""
    queries: pl.DataFrame
    """Queries: ``id`` and ``text``."""
    relevant: pl.DataFrame
    """Relevant documents of queries: ``query_id`` and ``doc_id``, each pair once."""
    by: str
    """Name of the labels, such as ``gender``."""
    texts: Callable[[Sequence[str]], pl.DataFrame]
    """Returns ``id``, ``title`` and ``text`` of documents by their ids."""
    spec: Mapping[str, Any]
    """Origin of the documents, as JSON."""


def read_labelled(source: str | Path, by: str | None = None) -> LabelledDocuments:
    """Read a CSV with the columns of `COLUMNS` and a column of labels, or ``irds:ID``.

    `by` is the column or field of labels; if it is None, there must be only one.
    """
    name = read_name(source)
    if name is None:
        return _read_csv(Path(source), by)
    if name.kind != "irds":
        raise UserError(
            f"{name}: expected a CSV file, or irds:ID, such as irds:trec-fair/2022/train"
        )
    return _read_irds(name, by)


def _read_csv(path: Path, by: str | None) -> LabelledDocuments:
    """Read documents, labels and queries from a table with a row for each relevant document."""
    table = read_delimited(path, ",")
    label_columns = [
        name for name in table.columns if name not in (*COLUMNS, *_RESERVED, LINE_COLUMN)
    ]
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise DataError(
            path, f"expected the columns {', '.join(COLUMNS)}; missing: {', '.join(missing)}"
        )
    by = _label_column(path, label_columns, by)
    if not table.height:
        raise DataError(path, "expected documents, got column names only")
    columns = {name: pl.col(column) for column, name in COLUMNS.items()}
    table = table.select(LINE_COLUMN, **columns, labels=pl.col(by))
    table = table.with_columns(pl.exclude(LINE_COLUMN).str.strip_chars())
    for column, noun in (("query_id", "q_id"), ("id", "doc_id")):
        blank = table.filter(pl.col(column).fill_null("") == "")
        if blank.height:
            raise DataError(path, f"{noun} is empty", line=blank[LINE_COLUMN][0])
    column_names = {name: column for column, name in COLUMNS.items()}
    column_names["labels"] = by
    docs = one_row_each(
        path,
        table.select("id", "title", "text", "labels", LINE_COLUMN),
        "document",
        "id",
        names=column_names,
    )
    queries = one_row_each(
        path, table.select("query", LINE_COLUMN, id="query_id"), "query", "id", names=column_names
    )
    texts = docs.select("id", pl.col("title", "text").fill_null(""))

    def texts_of(ids: Sequence[str]) -> pl.DataFrame:
        documents = pl.DataFrame({"id": ids}, schema={"id": pl.String})
        return documents.join(texts, on="id", maintain_order="left")

    return LabelledDocuments(
        labels=docs.select("id", labels=split_labels(docs["labels"]).fill_null([])),
        queries=queries.select("id", text="query"),
        relevant=table.select("query_id", doc_id="id").unique(maintain_order=True),
        by=by,
        texts=texts_of,
        spec={"files": [str(path)], "by": by},
    )


def _label_column(origin: str | Path, columns: list[str], by: str | None) -> str:
    """Return the column of labels: the named one, or the only one there is."""
    if by is None and len(columns) != 1:
        hint = "there is none, such as gender"
        if columns:
            hint = f"name one of {', '.join(columns)} (--by)"
        raise DataError(origin, f"which column holds the groups? {hint}")
    if by is not None and by not in columns:
        raise DataError(origin, str(unknown_name("column of groups", by, columns)))
    return by or columns[0]


def _read_irds(name: CollectionName, by: str | None) -> LabelledDocuments:
    """Read documents and labels from a collection of ``ir_datasets``."""
    with open_library(name) as library:
        dataset = find_dataset(library, name, ["docs", "queries", "qrels"])
        known_fields = (*_TEXTS, *_RESERVED, "doc_id")
        fields = [field for field in dataset.docs_cls()._fields if field not in known_fields]
        by = _label_column(str(name), fields, by)
        queries = dataset_queries(dataset)
        qrels = dataset_qrels(dataset, name)
        relevant = qrels.filter(pl.col("grade") > 0).select("query_id", "doc_id")
        labels = _stream_labels(dataset, name, by, set(relevant["doc_id"]))
    has_document = pl.col("doc_id").is_in(labels["id"].implode())
    has_query = pl.col("query_id").is_in(queries["id"].implode())
    return LabelledDocuments(
        labels=labels,
        queries=queries,
        relevant=relevant.filter(has_document & has_query),
        by=by,
        texts=partial(_fetch_texts, name),
        spec={"path": str(name), "ir_datasets": library.__version__, "by": by},
    )


def _stream_labels(
    dataset: Any, name: CollectionName, by: str, judged_ids: set[str]
) -> pl.DataFrame:
    """Return the labels of judged documents.

    The library yields documents with their texts, one after another; only the labels are kept in
    memory.
    """
    rows, document_count = list[tuple[str, list[str]]](), dataset.docs_count() or 0
    for number, doc in enumerate(dataset.docs_iter(), start=1):
        if doc.doc_id in judged_ids:
            rows.append((doc.doc_id, _read_labels(getattr(doc, by), name, by)))
        if number % _REPORT_EVERY == 0 and number < document_count:
            report("reading labels", number, document_count)
    report("reading labels", document_count, document_count)
    return pl.DataFrame(rows, schema=_LABELS, orient="row")


def _read_labels(value: Any, name: CollectionName, by: str) -> list[str]:
    """Return a document's labels; a field may have one label or a list."""
    labels = [value] if isinstance(value, str) else value or []
    if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
        raise UserError(
            f"{name}: field {by!r} holds {type(value).__name__}, expected a name or a list of names"
        )
    for label in labels:
        if SEVERAL in label:
            raise UserError(
                f"{name}: {by} {label!r} holds a {SEVERAL}, which separates several labels of a "
                "document"
            )
    return list(dict.fromkeys(label.strip() for label in labels if label.strip()))


def _fetch_texts(name: CollectionName, ids: Sequence[str]) -> pl.DataFrame:
    """Read the texts of documents from the library's store of the collection."""
    with open_library(name) as library:
        store = find_dataset(library, name, ["docs"]).docs_store()
        documents = store.get_many(list(ids))
    missing = [id for id in ids if id not in documents]
    if missing:
        subject = counted(len(missing), "document is", "documents are")
        raise UserError(
            f"{name}: {subject} not in its own store (first: {missing[0]!r}); delete it to "
            "rebuild it"
        )
    rows = []
    for id in ids:
        document = documents[id]
        title, text = getattr(document, "title", ""), getattr(document, "text", "")
        rows.append((id, title or "", text or ""))
    return pl.DataFrame(rows, schema=_TEXTS, orient="row")

"""Documents with labels of a group and the queries they are relevant to: TREC Fair Ranking, as a CSV or by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.collection_name import CollectionName, read_name
from ranktilt.data.formats.delimited import LINE
from ranktilt.data.irds import dataset_qrels, dataset_queries, find_dataset, open_library
from ranktilt.data.label_table import one_row_each, read_delimited
from ranktilt.data.text.label_values import SEVERAL, split_labels
from ranktilt.errors import DataError, UserError, counted, unknown
from ranktilt.progress import report

COLUMNS = {
    "q_id": "query_id",
    "q_text": "query",
    "doc_id": "id",
    "doc_title": "title",
    "first sentence": "text",
}
"""Columns of the CSV, and what they are; any other one may hold the labels."""
_TAKEN = ("origin", "source")
"""Columns that a collection gives a meaning of their own."""
_CHUNK = 50_000
_TEXTS = {"id": pl.String, "title": pl.String, "text": pl.String}
_LABELS: dict[str, pl.DataType] = {"id": pl.String(), "labels": pl.List(pl.String)}


@dataclass(frozen=True)
class LabelledDocuments:
    """Relevant documents with their labels, and the queries they are relevant to."""

    labels: pl.DataFrame
    """``id`` (unique) and ``labels`` (a list, empty where there are none)."""
    queries: pl.DataFrame
    relevant: pl.DataFrame
    """``query_id`` and ``doc_id``, each pair once."""
    by: str
    """What the labels are called."""
    texts: Callable[[Sequence[str]], pl.DataFrame]
    """Gives ``id``, ``title`` and ``text`` of some documents."""
    spec: Mapping[str, Any]


def read_labelled(source: str | Path, by: str | None = None) -> LabelledDocuments:
    """Read a CSV with the columns of `COLUMNS` and one of labels, or a collection of ir_datasets (``irds:ID``)."""
    name = read_name(source)
    if name is None:
        return _read_csv(Path(source), by)
    if name.kind != "irds":
        raise UserError(
            f"{name}: expected a CSV file, or irds:ID, such as irds:trec-fair/2022/train"
        )
    return _read_irds(name, by)


def _read_csv(path: Path, by: str | None) -> LabelledDocuments:
    table = read_delimited(path, ",")
    others = [name for name in table.columns if name not in (*COLUMNS, *_TAKEN, LINE)]
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise DataError(
            path, f"expected the columns {', '.join(COLUMNS)}; missing: {', '.join(missing)}"
        )
    by = _label_column(path, others, by)
    if not table.height:
        raise DataError(path, "expected documents, got column names only")
    names = {new: pl.col(old) for old, new in COLUMNS.items()}
    table = table.select(LINE, **names, labels=pl.col(by)).with_columns(
        pl.exclude(LINE).str.strip_chars()
    )
    for column, noun in (("query_id", "q_id"), ("id", "doc_id")):
        blank = table.filter(pl.col(column).fill_null("") == "")
        if blank.height:
            raise DataError(path, f"{noun} is empty", line=blank[LINE][0])
    olds = {**{new: old for old, new in COLUMNS.items()}, "labels": by}
    docs = one_row_each(
        path, table.select("id", "title", "text", "labels", LINE), "document", "id", names=olds
    )
    queries = one_row_each(
        path, table.select("query", LINE, id="query_id"), "query", "id", names=olds
    )
    labels = docs.select("id", labels=split_labels(docs["labels"]).fill_null([]))
    texts = docs.select("id", pl.col("title", "text").fill_null(""))

    def chosen(ids: Sequence[str]) -> pl.DataFrame:
        return pl.DataFrame({"id": ids}, schema={"id": pl.String}).join(
            texts, on="id", maintain_order="left"
        )

    relevant = table.select("query_id", doc_id="id").unique(maintain_order=True)
    return LabelledDocuments(
        labels,
        queries.select("id", text="query"),
        relevant,
        by,
        chosen,
        {"files": [str(path)], "by": by},
    )


def _label_column(where: str | Path, others: list[str], by: str | None) -> str:
    if by is None and len(others) != 1:
        got = (
            f"name one of {', '.join(others)} (--by)" if others else "there is none, such as gender"
        )
        raise DataError(where, f"which column holds the groups? {got}")
    if by is not None and by not in others:
        raise DataError(where, str(unknown("column of groups", by, others)))
    return by or others[0]


def _read_irds(name: CollectionName, by: str | None) -> LabelledDocuments:
    with open_library(name) as library:
        dataset = find_dataset(library, name, ["docs", "queries", "qrels"])
        fields = [
            one for one in dataset.docs_cls()._fields if one not in (*_TEXTS, *_TAKEN, "doc_id")
        ]
        by = _label_column(str(name), fields, by)
        queries = dataset_queries(dataset)
        judged = (
            dataset_qrels(dataset, name).filter(pl.col("grade") > 0).select("query_id", "doc_id")
        )
        labels = _stream_labels(dataset, name, by, set(judged["doc_id"]))
    known = judged["doc_id"].is_in(labels["id"].implode()) & judged["query_id"].is_in(
        queries["id"].implode()
    )
    spec = {"path": str(name), "ir_datasets": library.__version__, "by": by}
    return LabelledDocuments(
        labels, queries, judged.filter(known), by, lambda ids: _fetch_texts(name, ids), spec
    )


def _stream_labels(dataset: Any, name: CollectionName, by: str, only: set[str]) -> pl.DataFrame:
    """Labels of the judged documents; no text is held."""
    rows, expected = list[tuple[str, list[str]]](), dataset.docs_count() or 0
    for number, doc in enumerate(dataset.docs_iter(), start=1):
        if doc.doc_id in only:
            rows.append((doc.doc_id, _labels_of(getattr(doc, by), name, by)))
        if number % _CHUNK == 0 and number < expected:
            report("reading labels", number, expected)
    report("reading labels", expected, expected)
    return pl.DataFrame(rows, schema=_LABELS, orient="row")


def _labels_of(value: Any, name: CollectionName, by: str) -> list[str]:
    values = [value] if isinstance(value, str) else value or []
    if not isinstance(values, list | tuple) or not all(isinstance(one, str) for one in values):
        raise UserError(
            f"{name}: field {by!r} holds {type(value).__name__}, expected a name or a list of names"
        )
    if bar := next((one for one in values if SEVERAL in one), None):
        raise UserError(
            f"{name}: {by} {bar!r} holds a {SEVERAL}, which stands between several labels of a document"
        )
    return list(dict.fromkeys(one.strip() for one in values if one.strip()))


def _fetch_texts(name: CollectionName, ids: Sequence[str]) -> pl.DataFrame:
    with open_library(name) as library:
        store = find_dataset(library, name, ["docs"]).docs_store()
        found = store.get_many(list(ids))
    lost = [one for one in ids if one not in found]
    if lost:
        documents = counted(len(lost), "document is", "documents are")
        raise UserError(
            f"{name}: {documents} not in its own store (first: {lost[0]!r}); delete it, so it is made anew"
        )
    rows = [
        (one, getattr(found[one], "title", "") or "", getattr(found[one], "text", "") or "")
        for one in ids
    ]
    return pl.DataFrame(rows, schema=_TEXTS, orient="row")

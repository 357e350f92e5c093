"""Load collections of ir_datasets, a library of public collections, through its own interface.

A *data set* here is an object of that library. *Judgments* (*qrels*) are *grades* of how relevant a
document is to a query; a *split* is a named set of them, and is a part of a data set's id. The
*spec* of a collection says how it was made.
"""

from __future__ import annotations

import difflib
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.formats.notation import file_of
from ranktilt.data.formats.tables.columns import whole_or_fractions
from ranktilt.data.loading.assemble import (
    judged_collection,
    read_named_judgments,
    unjudged_collection,
)
from ranktilt.data.loading.collection_name import NO_QRELS, CollectionName, LoadOptions
from ranktilt.errors import DataWarning, UserError, counted, shorten, unknown_name
from ranktilt.optional import may_fetch, need
from ranktilt.progress import report

_DOCUMENTS_AT_ONCE = 50_000
"""Number of documents to hold as Python objects at a time."""
_MOST_LISTED = 12
"""Most names that an error lists."""
_TEXT_FIELDS = ("text", "body")
"""Names of the field with a document's text, in the order of preference."""
_AGREEMENT_REQUEST = "confirm you agree"
"""Words by which a message of the library is a request to agree to terms."""


def load_irds(name: CollectionName, options: LoadOptions) -> Collection:
    """Load a collection of ir_datasets by an id such as ``beir/scifact/test``."""
    if options.split is not None:
        raise UserError(
            f"{name}: an ir_datasets id contains its split, such as beir/scifact/test; omit --split"
        )
    needed = ["docs", "queries", "qrels"] if options.qrels is None else ["docs", "queries"]
    with open_library(name) as library:
        dataset = find_dataset(library, name, needed)
        qrels, qrels_spec = _choose_qrels(dataset, name, options)
        queries = dataset_queries(dataset)
        judged_ids = None
        if options.docs == "judged":
            if qrels is None:
                raise UserError(f"{name}: docs 'judged' needs judgments")
            judged_ids = set(qrels["doc_id"])
        docs, total = _read_docs(dataset, judged_ids)
    spec: dict[str, Any] = {"path": str(name), "layout": "irds", "ir_datasets": library.__version__}
    if judged_ids is not None:
        spec |= {"docs": "judged", "docs_of": total}
    if qrels is None:
        return unjudged_collection(docs, queries, {**spec, "qrels": NO_QRELS})
    spec |= qrels_spec
    judgment_file = str(name)
    if options.qrels is not None:
        judgment_file = str(file_of(options.qrels))
        spec["files"] = [judgment_file]
    return judged_collection(
        (docs, docs["id"]),
        queries,
        qrels,
        judgment_file,
        spec=spec,
        ignore_unknown=options.ignore_unknown,
    )


def _choose_qrels(
    dataset: Any, name: CollectionName, options: LoadOptions
) -> tuple[pl.DataFrame | None, dict[str, str]]:
    """Return the library's judgments or those of a file; None for ``--qrels none``.

    Also returns the keys of the collection's spec that describe them.
    """
    if options.qrels is None:
        return dataset_qrels(dataset, name), {"split": name.id.rpartition("/")[2]}
    if str(options.qrels) == NO_QRELS:
        return None, {}
    return read_named_judgments(options.qrels)


@contextmanager
def open_library(name: CollectionName) -> Iterator[Any]:
    """Yield the module ir_datasets, which prints nothing within the ``with`` block.

    If the library fails, its last message about its files explains the error. A request to agree to
    terms becomes a warning. `name` is the collection to load, for messages.
    """
    messages: list[str] = []

    def collect(record: logging.LogRecord) -> bool:
        text = " ".join(record.getMessage().split())
        messages.append(text)
        if _AGREEMENT_REQUEST in text:
            warnings.warn(f"{name}: {text}", DataWarning, stacklevel=4)
        return False  # no message is printed

    logger = logging.getLogger("ir_datasets")
    logger.addFilter(collect)
    try:
        library = need("ir_datasets", extra="datasets", for_=str(name))
        try:
            with nullcontext() if may_fetch() else _without_network(library):
                yield library
        except UserError:
            raise
        except Exception as error:  # its readers of many formats raise exceptions of any type
            raise _read_error(name, error, messages, library.util.home_path()) from error
    finally:
        logger.removeFilter(collect)


@contextmanager
def _without_network(library: Any) -> Iterator[None]:
    """Keep ir_datasets from fetching: replace each of its ways to the network."""

    def refuse(self: object) -> NoReturn:
        raise PermissionError("a report downloads nothing")

    download = library.util.download
    downloaders = (
        download.RequestsDownload,
        download.GoogleDriveDownload,
        download.GoogleCloudBucketStream,
    )
    streams = [downloader.stream for downloader in downloaders]
    for downloader in downloaders:
        downloader.stream = refuse
    try:
        yield
    finally:
        for downloader, stream in zip(downloaders, streams, strict=True):
            downloader.stream = stream


def _read_error(
    name: CollectionName, error: Exception, messages: list[str], home: Path
) -> UserError:
    """Return the error for a data set that cannot be read, with the library's reason."""
    # The library prints which file to fetch by hand, and where to put it.
    about_files = [text for text in messages if str(home) in text]
    if about_files:
        reason = about_files[-1].removesuffix(".")
    else:
        reason = " ".join((str(error).strip() or type(error).__name__).split())
    reason = shorten(reason, 400).strip("\"'")
    hint = f"ir_datasets keeps its files in {home} (to change it, set IR_DATASETS_HOME)"
    return UserError(f"{name}: cannot be read: {reason}; {hint}")


def find_dataset(library: Any, name: CollectionName, needed: list[str]) -> Any:
    """Return a data set; `UserError` if it is unknown or lacks some of the `needed` content.

    Contents are ``docs``, ``queries`` and ``qrels``.
    """
    try:
        dataset = library.load(name.id)
    except KeyError:
        known_names = sorted(library.registry)
        near_names = difflib.get_close_matches(name.id, known_names, n=_MOST_LISTED, cutoff=0.0)
        raise UserError(f"{name}: {unknown_name('collection', name.id, near_names)}") from None
    for content in needed:
        if not dataset.has(content):
            raise _missing_content_error(library, name, needed, content)
    return dataset


def _missing_content_error(
    library: Any, name: CollectionName, needed: list[str], missing: str
) -> UserError:
    """Return the error for a data set without documents, queries or judgments.

    It lists the subsets of the data set that have all `needed` contents.
    """
    noun = {"docs": "documents", "queries": "queries", "qrels": "judgments"}[missing]
    subsets = []
    for id in sorted(id for id in library.registry if id.startswith(f"{name.id}/")):
        if all(library.registry[id].has(content) for content in needed):
            subsets.append(id)
    advice = "see https://ir-datasets.com"
    if subsets:
        advice = f"these have them: {', '.join(subsets[:_MOST_LISTED])}"
    hint = "; or go without, with --qrels none" if missing == "qrels" else ""
    return UserError(f"{name}: has no {noun}; {advice}{hint}")


def dataset_qrels(dataset: Any, name: CollectionName) -> pl.DataFrame:
    """Read the judgments of a data set: ``query_id``, ``doc_id`` and ``grade``.

    Of several judgments of a document for a query, the last one counts, as in the library's own
    ``qrels_dict``.
    """
    fields = dataset.qrels_cls()._fields
    if "relevance" not in fields:
        raise UserError(
            f"{name}: its judgments have no relevance, only {', '.join(fields)}; "
            "name a file with --qrels"
        )
    rows = [(row.query_id, row.doc_id, row.relevance) for row in dataset.qrels_iter()]
    schema = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    grades = whole_or_fractions(table["grade"])
    without_number = table.filter(grades.is_null())
    if without_number.height:
        query, doc, grade = without_number.row(0)
        raise UserError(
            f"{name}: expected numbers as grades, got {grade} "
            f"for query {query!r} and document {doc!r}"
        )
    table = table.with_columns(grades)
    key = ["query_id", "doc_id"]
    grade_counts = table.group_by(key).agg(pl.col("grade").n_unique())
    contradictions = grade_counts.filter(pl.col("grade") > 1).height
    if contradictions:
        pairs = counted(contradictions, "pair has", "pairs have")
        warnings.warn(
            f"{name}: {pairs} several grades; the last one counts, as in ir_datasets",
            DataWarning,
            stacklevel=4,
        )
    return table.unique(key, keep="last", maintain_order=True)


def dataset_queries(dataset: Any) -> pl.DataFrame:
    """Read the queries: ``id`` and ``text``."""
    if "text" in dataset.queries_cls()._fields:
        rows = [(query.query_id, query.text) for query in dataset.queries_iter()]
    else:
        rows = [(query.query_id, query.default_text()) for query in dataset.queries_iter()]
    return pl.DataFrame(rows, schema={"id": pl.String, "text": pl.String}, orient="row")


def _read_docs(dataset: Any, kept_ids: set[str] | None) -> tuple[pl.DataFrame, int]:
    """Read the documents with these ids, or all if `kept_ids` is None; count all documents.

    Only `_DOCUMENTS_AT_ONCE` documents exist as Python objects at a time.
    """
    schema = {"id": pl.String, "title": pl.String, "text": pl.String}
    row_of = _document_reader(dataset)
    frames, rows, total = list[pl.DataFrame](), list[tuple[str, str, str]](), 0
    expected = dataset.docs_count() or 0
    for total, doc in enumerate(dataset.docs_iter(), start=1):
        if kept_ids is None or doc.doc_id in kept_ids:
            rows.append(row_of(doc))
        if len(rows) == _DOCUMENTS_AT_ONCE:
            frames.append(pl.DataFrame(rows, schema=schema, orient="row"))
            rows = []
        if total % _DOCUMENTS_AT_ONCE == 0 and total < expected:
            report("reading documents", total, expected)
    frames.append(pl.DataFrame(rows, schema=schema, orient="row"))
    report("reading documents", total, total)
    return pl.concat(frames), total


def _document_reader(dataset: Any) -> Callable[[Any], tuple[str, str, str]]:
    """Return a function from a document of the library to its id, title and text."""
    fields = dataset.docs_cls()._fields
    text_field = next((field for field in _TEXT_FIELDS if field in fields), None)
    if text_field is None:
        # The library's `default_text` has the title in it already.
        return lambda doc: (doc.doc_id, "", doc.default_text() or "")
    text_of = attrgetter(text_field)
    if "title" in fields:
        return lambda doc: (doc.doc_id, doc.title or "", text_of(doc) or "")
    return lambda doc: (doc.doc_id, "", text_of(doc) or "")

"""Join labels with documents: of a collection with texts, or of runs that were made elsewhere.

A *label* is the value of a column by which documents are grouped, such as ``source`` (who wrote a
document). The *rest* is all documents that a label file does not name; the user may choose a label
for them. The *origin* of a document is the one that it was rewritten from. *Judgments* (*qrels*)
are grades of how relevant documents are to queries. The *spec* of a collection says how it was
made, such as from which files.

`labelled` makes a collection of a label file and runs, without texts. `with_labels` adds a column
to a collection that was loaded with its texts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import polars as pl

from ranktilt.data.collection import DOC_COLUMNS, Collection
from ranktilt.data.formats.ids import ids_of, require_frame, require_text
from ranktilt.data.formats.judgments.qrels import read_qrels_as
from ranktilt.data.formats.notation import file_of, pairs_of
from ranktilt.data.id_forms import near_matches
from ranktilt.data.labels.group_names import group_name
from ranktilt.data.labels.label_file import LabelFile, label_column, rename_labels
from ranktilt.data.labels.label_table import RESERVED_COLUMNS, read_labels
from ranktilt.data.runs.run import Run, require_runs
from ranktilt.data.text.label_values import known_labels
from ranktilt.errors import DataError, DataWarning, UserError, counted, unknown_name

_QRELS_SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
"""Columns of judgments."""


def from_labels(
    labels: pl.DataFrame,
    *,
    queries: Iterable[str],
    qrels: pl.DataFrame | None = None,
    by: str = "source",
    labels_file: str | Path | LabelFile | None = None,
    qrels_file: str | Path | None = None,
    documents: Iterable[str] = (),
) -> Collection:
    """Make a collection without texts from a table of labels, to audit runs made elsewhere.

    Parameters
    ----------
    labels : polars.DataFrame
        ``doc_id``, the column of labels, and optionally ``origin`` and further columns. A document
        whose label is null is in no group.
    queries : iterable of str
        Ids of the queries of the runs; judged queries are added.
    qrels : polars.DataFrame, optional
        Judgments: ``query_id``, ``doc_id`` and ``grade``.
    by : str, optional
        Column of the labels; ``COLUMN:N`` will divide a column of numbers into N parts.
    labels_file : str, Path or LabelFile, optional
        File of the labels. Its label of the rest, if any, is given to all `documents` and judged
        documents that have no label.
    qrels_file : str or Path, optional
        File of the judgments, for the collection's spec.
    documents : iterable of str, optional
        Ids of the documents of the runs.
    """
    label_file = None if labels_file is None else LabelFile.from_text(labels_file)
    labels = require_frame(labels, ("doc_id",), "labels")
    column = label_column(require_text(by, "by"), labels.columns)
    labels = _checked_labels(labels, column)
    labelled_count = labels[column].count()
    if not labelled_count:
        raise UserError(f"no document has a label in column {column!r}")
    if qrels is None:
        qrels = pl.DataFrame(schema=_QRELS_SCHEMA)
    qrels = require_frame(qrels, _QRELS_SCHEMA, "qrels")
    if label_file is not None and label_file.rest:
        judged_ids = ids_of(qrels["doc_id"], "qrels: column 'doc_id'")
        ids = ids_of([*ids_of(documents, "documents"), *judged_ids], "documents")
        labels = _with_rest(labels, ids, column, label_file.rest)
    file_spec = {}
    if label_file is not None:
        file_spec = label_file.spec(labels[column], labels[column].count() - labelled_count)
    judgment_file = None if qrels_file is None else file_of(qrels_file)
    files = {"labels": file_spec.get("labels"), "qrels": judgment_file}
    paths = {key: str(file) for key, file in files.items() if file is not None}
    spec = {
        **file_spec,
        **paths,
        "files": list(paths.values()),
        "by": by,
        "unlabelled": labels[column].null_count(),
    }
    if qrels_file is not None and pairs_of(qrels_file):
        spec["qrels_read"] = pairs_of(qrels_file)
    docs = labels.drop(*RESERVED_COLUMNS, strict=False).rename({"doc_id": "id"})
    docs = docs.with_columns(text=pl.lit(""), title=pl.lit(""))
    return Collection(docs, _queries_without_text(queries, qrels), qrels, spec)


def _checked_labels(labels: pl.DataFrame, column: str) -> pl.DataFrame:
    """Check the column of labels, and convert ids and labels as those of files."""
    if column not in labels.columns:
        valid = [name for name in labels.columns if name not in ("doc_id", "origin")]
        raise unknown_name("column", column, valid)
    kind = labels[column].dtype
    if kind.is_nested() or kind == pl.Object:
        raise UserError(f"labels: expected strings or numbers in column {column!r}, got {kind}")
    ids = ids_of(labels["doc_id"], "labels: column 'doc_id'").alias("doc_id")
    label_columns = [name for name in (column, "origin") if name in labels.columns]
    return labels.with_columns(ids, *(known_labels(labels[name]) for name in label_columns))


def _with_rest(labels: pl.DataFrame, ids: pl.Series, column: str, rest: str) -> pl.DataFrame:
    """Give the label `rest` to all documents without a label, and to the `ids` without a row."""
    ids = ids.alias("doc_id")
    ids_without_row = ids.filter(~ids.is_in(labels["doc_id"].implode())).unique().sort()
    labels = pl.concat([labels, ids_without_row.to_frame()], how="diagonal")
    return labels.with_columns(pl.col(column).fill_null(rest))


def _queries_without_text(queries: Iterable[str], qrels: pl.DataFrame) -> pl.DataFrame:
    """Return queries with empty texts: those of the runs, and those that are judged."""
    judged_ids = ids_of(qrels["query_id"].unique(maintain_order=True), "qrels: column 'query_id'")
    query_ids = dict.fromkeys([*ids_of(queries, "queries"), *judged_ids])
    schema = {"id": pl.String, "text": pl.String}
    return pl.DataFrame({"id": list(query_ids), "text": ""}, schema=schema)


def with_names(collection: Collection, names: Mapping[str, str], *, by: str) -> Collection:
    """Rename the labels in the column `by` of a collection's documents.

    `names` has the new name of each label.
    """
    columns = [
        name for name in collection.docs.columns if name == "source" or name not in DOC_COLUMNS
    ]
    if by not in columns:
        raise unknown_name("column to name the labels of", by, columns)
    new_names = dict(names)
    if by == "source":
        # A collection calls the source ``1`` of a file ``source 1``.
        new_names = {}
        for label, new_name in names.items():
            source = collection.source_named(label.strip())
            new_names[label if source == label.strip() else source] = new_name
    labels = rename_labels(collection.docs[by].cast(pl.String), new_names)
    spec = {**collection.spec, "label_names": new_names, "labels_named": by}
    docs = collection.docs.with_columns(labels)
    return Collection(docs, collection.queries, collection.qrels, spec)


def no_overlap(documents: Sequence[str] | pl.Series, collection: Collection) -> str:
    """Say that a collection, or its label file, has none of a run's documents."""
    holder = "the collection"
    if "path" not in collection.spec:
        holder = collection.spec.get("labels", holder)
    examples = []
    if len(documents):
        examples.append(f"first: {documents[0]!r}")
    if collection.docs.height:
        examples.append(f"its ids look like {collection.ids[0]!r}")
    near = near_matches(pl.Series(documents, dtype=pl.String), collection.ids, all_forms=True)
    count = counted(len(documents), "document", "documents")
    message = f"no overlap: none of its {count} is in {holder}"
    message += f" ({'; '.join(examples)})" if examples else ""
    return f"{message}; {near}" if near else message


def warn_of_near_matches(file: object, ids: pl.Series, known: pl.Series, holder: str) -> None:
    """Warn of ids in `file` that are not `known`, but would be if they were written otherwise.

    Such as ``http://a.com`` where ``https://a.com`` is known. `holder` is the file, or the
    collection, of the known ids.
    """
    near = near_matches(ids, known)
    if near:
        warnings.warn(f"{file}: {near} (in {holder})", DataWarning, stacklevel=3)


def labelled(
    labels: str | Path | LabelFile,
    runs: Sequence[Run],
    *,
    by: str = "source",
    qrels: str | Path | None = None,
) -> Collection:
    """Make a collection without texts from a label file, to audit runs that were made elsewhere.

    Parameters
    ----------
    labels : str, Path or LabelFile
        A table ``doc_id``, the column `by`, and optionally ``origin``;
        ``FILE:id=url,source=is_ai`` names its columns, and a `LabelFile` has further options.
    runs : sequence of Run
        The runs to audit; their queries are those of the collection, with the judged ones.
    by : str, optional
        Column of the labels.
    qrels : str or Path, optional
        A file of judgments. Without it you can only ask questions that need no judgments.

    Returns
    -------
    Collection
        Documents with labels and without texts.

    Raises
    ------
    DataError
        If a file does not hold what it should, none of a run's queries is judged, or no document
        of the runs has a label.
    """
    runs_with_repeats = require_runs(runs, repeats=True)
    runs = list(chain.from_iterable((run, *run.repeats) for run in runs_with_repeats))
    judgments, read_as = None, ""
    if qrels is not None:
        judgments, read_as = read_qrels_as(qrels)
        judgments = judgments.drop("line")
        _refuse_unjudged(runs, judgments)
    label_path = LabelFile.from_text(labels).path
    table = read_labels(labels, by=by)
    documents = pl.concat([pl.Series(dtype=pl.String), *(run.ids for run in runs)])
    if runs and not documents.is_in(table["doc_id"].implode()).any():
        labelled_documents = from_labels(table, queries=(), by=by, labels_file=label_path)
        message = no_overlap(runs[0].ids, labelled_documents)
        raise DataError(runs[0].spec.get("file", runs[0].name), message)
    for run in runs:
        file = str(run.spec.get("file", run.name))
        warn_of_near_matches(file, run.ids, table["doc_id"], label_path)
        if judgments is not None:
            judged = judgments["doc_id"].unique(maintain_order=True)
            warn_of_near_matches(file_of(qrels or ""), judged, run.ids, file)
    queries = list[str]()
    for run in runs:
        queries += run.queries
    collection = from_labels(
        table,
        queries=queries,
        qrels=judgments,
        by=by,
        labels_file=labels,
        qrels_file=qrels,
        documents=documents,
    )
    if not read_as:
        return collection
    return replace(collection, spec={**collection.spec, "judgments_read": read_as})


def _refuse_unjudged(runs: Sequence[Run], judgments: pl.DataFrame) -> None:
    """Refuse a run without any judged query."""
    judged = set(judgments["query_id"].unique())
    for run in runs:
        if not judged.isdisjoint(run.queries):
            continue
        queries = pl.Series(run.queries, dtype=pl.String)
        near = near_matches(queries, judgments["query_id"], all_forms=True)
        hint = f" (first: {run.queries[0]!r})" if run.queries else ""
        hint += f"; {near}" if near else ""
        count = counted(len(run.queries), "query", "queries")
        message = f"no overlap: none of its {count} has a judgment{hint}"
        raise DataError(run.spec.get("file", run.name), message)


def with_labels(
    collection: Collection,
    labels: str | Path | LabelFile,
    *,
    by: str,
    other_columns: bool = False,
) -> Collection:
    """Add a column of labels, and origins, from a file to a collection's documents.

    Labels of unknown documents are left out. A document without a label gets the label of the rest
    if the user chose one; otherwise it is in no group.

    Parameters
    ----------
    collection : Collection
        The collection.
    labels : str, Path or LabelFile
        The label file.
    by : str
        Column of the labels.
    other_columns : bool, optional
        Whether to add the file's other columns too, which replace columns with the same names.

    Raises
    ------
    DataError
        If the file labels no document of the collection. For labels that are sources: if a document
        would lose its source, or the file contradicts the sources of a collection that has several.
    """
    column = label_column(by, collection.docs.columns)
    if column in DOC_COLUMNS and column != "source":
        raise UserError(
            f"--groups cannot replace the column {column!r} of a collection; give it another name"
        )
    label_file = LabelFile.from_text(labels)
    table = read_labels(label_file, by=by).rename({"doc_id": "id"})
    columns = [name for name in ("id", column, "origin") if name in table.columns]
    ids = collection.docs.select("id")
    joined = ids.join(table.select(columns), on="id", how="left", maintain_order="left")
    missing = joined[column].null_count()
    if missing == joined.height:
        message = (
            f"names none of the collection's {joined.height:,} documents (first here: "
            f"{table['id'][0]!r}; there: {collection.ids[0]!r})"
        )
        raise DataError(label_file.path, message)
    if label_file.rest:
        joined = joined.with_columns(pl.col(column).fill_null(label_file.rest))
    file_spec = label_file.spec(joined[column], missing - joined[column].null_count())
    if column == "source":
        sources = {name: group_name(column, name) for name in joined[column].drop_nulls().unique()}
        joined = joined.with_columns(joined[column].cast(pl.String).replace(sources))
        _refuse_lost_sources(label_file, collection, joined[column])
        _refuse_other_sources(label_file, collection, joined[column])
    docs = collection.docs.with_columns(joined[column])
    if other_columns:
        further_columns = table.select("id", pl.exclude(*columns, *DOC_COLUMNS))
        replaced = [name for name in further_columns.columns if name != "id"]
        docs = docs.drop(replaced, strict=False)
        docs = docs.join(further_columns, on="id", how="left", maintain_order="left")
    if "origin" in columns:
        docs = docs.with_columns(pl.coalesce(joined["origin"], docs["origin"]).alias("origin"))
    files = [*collection.spec.get("files", ()), str(label_file.path)]
    spec = {**collection.spec, **file_spec, "files": files}
    return Collection(docs, collection.queries, collection.qrels, spec)


def _refuse_lost_sources(label_file: LabelFile, collection: Collection, sources: pl.Series) -> None:
    """Refuse a file that gives no source to a document that has one."""
    is_lost = sources.is_null() & collection.docs["source"].is_not_null()
    ids = collection.ids.filter(is_lost)
    if len(ids):
        documents = counted(len(ids), "document", "documents")
        message = f"no source for {documents} in the collection (first: {ids[0]!r})"
        hint = "label them all, or name another column with --by"
        raise DataError(label_file.path, f"{message}; {hint}")


def _refuse_other_sources(
    label_file: LabelFile, collection: Collection, sources: pl.Series
) -> None:
    """Refuse a file that contradicts the sources of a collection that has several."""
    if len(collection.sources) < 2:
        return
    table = collection.docs.select("id", "source", new=sources)
    changed = table.filter(pl.col("source") != pl.col("new"))
    if changed.height:
        name, old, new = changed.row(0)
        message = (
            f"document {name!r} is {new!r} here but {old!r} in the collection, which has its "
            "own sources"
        )
        hint = "omit --groups, or name another column: --by COLUMN"
        raise DataError(label_file.path, f"{message}; {hint}")

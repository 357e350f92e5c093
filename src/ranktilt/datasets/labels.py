"""A label file in place of texts: which document belongs to which source or group."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError, counted, shorten, unknown
from ranktilt.io.files import decode_lines, line_chunks, open_bytes, require_regular
from ranktilt.io.parquet import read_table

ENDINGS = (".tsv", ".tsv.gz", ".csv", ".csv.gz", ".parquet")
NO_SOURCE = "unknown"
"""Source of labelled documents whose file does not say who wrote them."""

LENGTH = "length"
"""Name of the groups that are parts of the texts' lengths, where no column is called so."""

_ROWS = 2_000
_WIDTH = 80
_LINE = "line of the file"
_TAKEN = ("id", "text", "title", _LINE)
_BEGINS = "a label file begins with its columns' names"
_OTHER = {"\t": (",", "commas", ".csv"), ",": ("\t", "tabs", ".tsv")}


def read_labels(path: str | Path, *, by: str = "source") -> pl.DataFrame:
    """Read a table of documents and their labels.

    Parameters
    ----------
    path : str or Path
        By its ending: TSV (tabs split, quotes are plain characters), CSV (quotes as in RFC 4180), each plain
        or ``.gz`` with the column names in the first line, or Parquet. Columns: ``doc_id``, the one named,
        optionally ``origin`` (the document that it is a version of), and any others; those without a name or
        called id, text or title, and Parquet's nested ones, are passed over; its bytes that are UTF-8 are text.
    by : str, optional
        The column of labels. ``COLUMN:N``, the notation of bins, names COLUMN.

    Returns
    -------
    polars.DataFrame
        ``doc_id`` (String, unique), the label column, ``origin`` where given, then the others. A blank or NaN is
        null: no label. Of a text file, ids and labels stay strings; every other column, and a label column
        that is asked for in bins, becomes one of numbers where all its values are. A row that comes twice
        is kept once.

    Raises
    ------
    DataError
        One line, naming the place: another ending, a column that is not there, a line with another number of
        fields than the first, an empty ``doc_id``, a document with two labels, no row, or no label at all.
    UserError
        If the column asked for is one that no label file can have: the texts' lengths, an id, a text or a title.
    """
    path = Path(path)
    form = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if not path.name.lower().endswith(ENDINGS):
        raise DataError(path, f"expected a label file that ends in {', '.join(ENDINGS)}")
    frame = _read_parquet(path) if form == "parquet" else _read_text(path, "\t" if form == "tsv" else ",")
    label = _label_column(path, frame.columns, by)
    if not frame.height:
        raise DataError(path, "expected labels, got column names only")
    frame = _without_blanks(frame, strings=["doc_id", *(["origin"] if "origin" in frame.columns else [])])
    if label == by:
        frame = frame.with_columns(pl.col(label).cast(pl.String))
    if frame["doc_id"].null_count():
        row = frame["doc_id"].is_null().arg_max() or 0
        where = {"line": frame[_LINE][row]} if _LINE in frame.columns else {}
        raise DataError(path, "doc_id is empty" if where else f"doc_id is empty in row {row + 1}", **where)
    if frame[label].null_count() == frame.height:
        raise DataError(path, f"column {label!r} is blank in every row")
    frame = _one_row_each(path, frame, label)
    kept = [name for name in ("doc_id", label, "origin") if name in frame.columns]
    numbers = [_as_numbers(frame[name]) for name in frame.columns if name not in kept or name == label != by]
    return frame.with_columns(numbers).select(*kept, pl.exclude(*kept, _LINE))


def from_labels(
    labels: pl.DataFrame,
    *,
    queries: Iterable[str],
    qrels: pl.DataFrame | None = None,
    by: str = "source",
    labels_file: str | Path | None = None,
    qrels_file: str | Path | None = None,
) -> Collection:
    """Make a collection without texts from labels, for auditing runs that were made elsewhere.

    Parameters
    ----------
    labels : polars.DataFrame
        As `read_labels` gives it.
    queries : iterable of str
        Ids of the queries to know, such as those of the runs; repeated ones are taken once.
    qrels : polars.DataFrame, optional
        ``query_id``, ``doc_id``, ``grade``; may judge unknown documents. Its queries are added, so that one
        that no run holds counts as missing.
    by : str, optional
        As given to `read_labels`. A document without a ``source`` label is left out, because a collection
        takes one without a source for human; in a run it is then one that the collection does not hold. Under
        any other column it stays, and is in no group.
    labels_file, qrels_file : str or Path, optional
        Where labels and judgments came from, for the spec.

    Returns
    -------
    Collection
        Texts, titles and query texts are empty. A document's origin is its own id where none is given. Its
        source is ``unknown`` where the file does not say it. The spec holds the paths (``labels``, ``qrels``,
        ``files``), ``by``, and ``unlabelled``, the number of documents without a label.

    Raises
    ------
    UserError
        If the label column is not there, or no document has a label.
    """
    column = label_column(by, labels.columns)
    if column not in labels.columns:
        raise unknown("column", column, [name for name in labels.columns if name not in ("doc_id", "origin")])
    unlabelled = labels[column].null_count()
    if unlabelled == labels.height:
        raise UserError(f"no document has a label in column {column!r}")
    docs = labels.filter(pl.col(column).is_not_null()) if column == "source" else labels
    source = pl.col("source").cast(pl.String).fill_null(NO_SOURCE) if "source" in docs.columns else pl.lit(NO_SOURCE)
    docs = (
        docs.drop(*_TAKEN, strict=False)
        .rename({"doc_id": "id"})
        .with_columns(text=pl.lit(""), title=pl.lit(""), source=source)
    )
    judgments = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    qrels = pl.DataFrame(schema=judgments) if qrels is None else qrels
    names = dict.fromkeys([*queries, *qrels["query_id"].unique(maintain_order=True)])
    asked = pl.DataFrame({"id": list(names), "text": ""}, schema={"id": pl.String, "text": pl.String})
    files = {"labels": labels_file, "qrels": qrels_file}
    given = {name: str(file) for name, file in files.items() if file is not None}
    spec = {**given, "files": list(given.values()), "by": by, "unlabelled": unlabelled}
    return Collection(docs, asked, qrels, spec)


def label_column(by: str, columns: Iterable[str]) -> str:
    """Return the column that `by` names: itself, or the part before the colon of ``COLUMN:N`` where it is none."""
    return by.rpartition(":")[0] if ":" in by and by not in columns else by


def no_overlap(documents: Sequence[str] | pl.Series, collection: Collection) -> str:
    """Say that none of a run's documents is in a collection, or among the labels that stand for one.

    Parameters
    ----------
    documents : sequence of str
        Ids of the run.
    collection : Collection
        What they were looked up in.

    Returns
    -------
    str
        One line that shows the first id of either side.
    """
    where, theirs = "in the collection", "the collection's ids look"
    if "path" not in collection.spec and "labels" in collection.spec:
        where, theirs = f"in {collection.spec['labels']}", "its doc_ids look"
    shown = [f"first: {documents[0]!r}"] if len(documents) else []
    shown += [f"{theirs} like {collection.ids[0]!r}"] if collection.docs.height else []
    more = f" ({'; '.join(shown)})" if shown else ""
    return f"no overlap: none of its {counted(len(documents), 'document', 'documents')} is {where}{more}"


def _require_names(path: Path, names: list[str], line: int | None, separator: str = "") -> None:
    """Refuse columns without ``doc_id``, or of one name: mostly those of a file that begins with its rows."""
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise DataError(path, f"column {twice!r} is named twice; {_BEGINS}", line=line)
    if "doc_id" in names:
        return
    came, hint = ", ".join(filter(None, names)) or "no name", ""
    came = came if len(came) <= _WIDTH else f"{came[: _WIDTH - 1]}…"
    if len(names) == 1 and separator:
        other, noun, ending = _OTHER[separator]
        if other in names[0]:
            came, hint = repr(came), f" (separated by {noun}? then name it {ending})"
    raise DataError(path, f"expected a column doc_id, got {came}; {_BEGINS}{hint}", line=line)


def _label_column(path: Path, columns: list[str], by: str) -> str:
    others = [name for name in columns if name not in ("doc_id", "origin", _LINE)]
    label = label_column(by, others)
    if label == LENGTH != by and label not in others:
        raise UserError(
            f"--by {by} needs texts: name a collection DIR, without --groups (a column of numbers can be parted too, "
            "such as year:3)"
        )
    if label in (*_TAKEN, "origin", "doc_id"):
        raise UserError(f"{label!r} cannot be grouped by (valid: {', '.join(others) or 'none'})")
    if label not in others:
        raise DataError(path, f"{unknown('column', label, others)}; choose the column of labels with --by (by=)")
    return label


def _read_text(path: Path, separator: str) -> pl.DataFrame:
    frames, names = list[pl.DataFrame](), list[str]()
    for rows in _rows(path, separator):
        if not names:
            names = [str(name).strip() for name in rows["fields"][0]]
            _require_names(path, names, rows[_LINE][0], separator)
            rows = rows[1:]
        wrong = rows.filter(pl.col("fields").list.len() != len(names))
        if wrong.height:
            line, fields = wrong.row(0)
            message = f"expected {counted(len(names), 'field', 'fields')} as in the first line, got {len(fields)}"
            raise DataError(path, f"{message}: {shorten(separator.join(fields))}", line=line)
        kept = {name: pl.col("fields").list.get(i) for i, name in enumerate(names) if name and name not in _TAKEN}
        frames.append(rows.select(_LINE, **kept))
    return pl.concat(frames)


def _rows(path: Path, separator: str) -> Iterator[pl.DataFrame]:
    """Lines that are not blank, some at a time: number and fields."""
    chunks = [(chunk[0], decode_lines(path, *chunk)) for chunk in line_chunks(path)]
    if separator == "," and any('"' in text for _, text in chunks):
        yield from _quoted_rows(path, "\n".join(text for _, text in chunks))
        return
    for first_line, text in chunks:
        frame = pl.Series("text", text.split("\n")).to_frame().with_row_index(_LINE, offset=first_line)
        frame = frame.filter(pl.col("text").str.strip_chars() != "")
        if frame.height:
            yield frame.select(_LINE, fields=pl.col("text").str.split(separator))


def _quoted_rows(path: Path, text: str) -> Iterator[pl.DataFrame]:
    rows = csv.reader(io.StringIO(text), strict=True)
    held = ((rows.line_num, row) for row in rows if len(row) > 1 or (row and row[0].strip()))
    try:
        while block := list(islice(held, _ROWS)):
            numbers, fields = zip(*block, strict=True)
            lengths = pl.Series([len(row) for row in fields])
            values = pl.Series([value for row in fields for value in row], dtype=pl.String)
            yield pl.DataFrame({_LINE: pl.Series(numbers, dtype=pl.UInt32), "fields": _in_lists(values, lengths)})
    except csv.Error as error:
        raise DataError(path, f"cannot be read as CSV: {error}", line=rows.line_num) from error


def _in_lists(values: pl.Series, lengths: pl.Series) -> pl.Series:
    """Cut values into lists of these lengths, none of which is 0."""
    number = pl.Series(np.repeat(np.arange(len(lengths)), lengths))
    return pl.DataFrame({"n": number, "v": values}).group_by("n", maintain_order=True).agg("v")["v"]


def _read_parquet(path: Path) -> pl.DataFrame:
    require_regular(path)
    with open_bytes(path):  # says what is wrong with the path itself
        pass
    frame = read_table(path)
    plain = [s for s in frame.iter_columns() if not s.dtype.is_nested() and s.dtype != pl.Duration]
    _require_names(path, [s.name for s in plain], None)
    times = [s.cast(pl.String) if s.dtype.is_temporal() else s for s in plain if s.name and s.name not in _TAKEN]
    return pl.DataFrame([s.fill_nan(None) if s.dtype.is_float() else s for s in times])


def _without_blanks(frame: pl.DataFrame, *, strings: list[str]) -> pl.DataFrame:
    """Strip strings, and the columns named as strings; what is left empty is null."""
    kinds = (pl.String, pl.Categorical, pl.Enum)
    names = [s.name for s in frame.iter_columns() if s.name in strings or isinstance(s.dtype, kinds)]
    stripped = pl.col(names).cast(pl.String).str.strip_chars()
    return frame.with_columns(stripped).with_columns(pl.when(pl.col(names) != "").then(pl.col(names)))


def _one_row_each(path: Path, frame: pl.DataFrame, label: str) -> pl.DataFrame:
    """Keep a row that comes twice once; rows of one document that differ are a `DataError`."""
    if frame["doc_id"].n_unique() == frame.height:
        return frame
    values = [label, *(name for name in frame.columns if name not in ("doc_id", label, _LINE))]
    frame = frame.unique(["doc_id", *values], keep="first", maintain_order=True)
    again = frame["doc_id"].is_first_distinct().not_()
    if not again.any():
        return frame
    row = again.arg_max() or 0
    second = frame.row(row, named=True)
    first = frame.filter(pl.col("doc_id") == second["doc_id"]).row(0, named=True)
    name = next(n for n in values if first[n] != second[n])
    what = "two labels" if name == label else f"two values of {name!r}"
    one, two = ("none" if side[name] is None else repr(side[name]) for side in (first, second))
    place = f" (line {first[_LINE]})" if _LINE in frame.columns else ""
    message = f"document {second['doc_id']!r} has {what}: {one}{place} and {two}"
    raise DataError(path, message, line=second.get(_LINE))


def _as_numbers(series: pl.Series) -> pl.Series:
    """A column of strings as whole numbers or numbers where every value is one."""
    if series.dtype == pl.String:
        for kind in (pl.Int64, pl.Float64):
            numbers = series.cast(kind, strict=False)
            if numbers.null_count() == series.null_count() < len(series):
                return numbers
    return series

"""A label file, in place of texts or beside them: which document belongs to which source or group."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.collection import DOC_COLUMNS, Collection
from ranktilt.data.files import rereadable
from ranktilt.data.formats.base import LABELS
from ranktilt.data.formats.data_file import DataFile, blank_fields, numbered_names
from ranktilt.data.formats.delimited import LINE, field_rows, refuse_second_header
from ranktilt.data.formats.ids import id_texts, ids_of, kind_of, require_frame, require_text
from ranktilt.data.formats.json_values import read_document
from ranktilt.data.formats.notation import FIRST, file_of, pairs_of, split_notation
from ranktilt.data.formats.parquet import json_rows, json_table, read_table
from ranktilt.data.formats.qrels import read_qrels_as
from ranktilt.data.formats.refusals import refusal, refuse_binary
from ranktilt.data.id_forms import near_matches
from ranktilt.data.run import Run, require_runs
from ranktilt.data.text.label_values import NO_LABEL, as_numbers, known_labels
from ranktilt.errors import DataError, DataWarning, UserError, counted, shorten, unknown

_FLAGS = {
    "True": "true",
    "TRUE": "true",
    "False": "false",
    "FALSE": "false",
    "1.0": "1",
    "0.0": "0",
}


@dataclass(frozen=True)
class LabelFile:
    """A label file (TSV, CSV, JSON lines or Parquet; with `rest` also a bare list of ids), and how it is read."""

    path: str
    columns: dict[str, str] = field(default_factory=dict)
    """Column of the file by what it holds: ``{"doc_id": "url", "source": "is_ai"}``."""
    names: dict[str, str] = field(default_factory=dict)
    """What values of the labels are called: ``{"1": "ai"}``; ``True`` is ``true``, and ``1.0`` is ``1``."""
    rest: str | None = None
    """Label of every document that the file gives none; the ids of a bare list are ``listed``."""
    several: str | None = None
    """``first`` keeps the first of several labels of one document, which otherwise are refused."""

    @classmethod
    def of(cls, labels: str | Path | LabelFile) -> LabelFile:
        """Read ``FILE:id=url,source=is_ai``; the name of a file that exists is that file's."""
        if isinstance(labels, LabelFile):
            return labels
        if not isinstance(labels, str | Path):
            raise UserError(
                f"expected the name of a label file, got {kind_of(labels)}: {shorten(labels)}"
            )
        named = split_notation(labels)
        if named is None:
            return cls(str(labels))
        file, pairs = named
        choices = dict(pairs)
        several = choices.pop(_SEVERAL, None)
        if several not in (None, FIRST):
            raise UserError(f"{file}: {unknown(f'choice of {_SEVERAL}', several, [FIRST])}")
        columns = {"doc_id" if key == "id" else key: column for key, column in choices.items()}
        if len(set(columns.values())) + (several is not None) < len(pairs):
            raise UserError(
                f"{labels}: expected each column once, such as {file}:id=url,source=is_ai"
            )
        return cls(file, columns, several=several)

    def spec(self, labels: pl.Series, rest: int) -> dict[str, Any]:
        """Return what a collection's spec says of it; of its `labels` the file does not give `rest`."""
        if self == LabelFile(self.path):
            return {"labels": self.path}
        counts = labels.drop_nulls().cast(pl.String).value_counts().rows()
        counts.sort(key=lambda row: (row[0] == self.rest, -row[1], row[0]))
        told = [f"{n:,} {name}" for name, n in counts]
        told[-1] += (
            f" ({f'{rest:,} of them ' if counts[-1][1] > rest else ''}the rest)" if rest else ""
        )
        told[6:-1] = ["…"] if len(told) > 7 else told[6:-1]  # as many as a sentence bears
        columns = (
            f"{'id' if key == 'doc_id' else key} = {column}" for key, column in self.columns.items()
        )
        names = (f"{value} = {name}" for value, name in self.names.items())
        read = "; ".join(
            filter(None, (", ".join(columns), ", ".join(names), f"documents: {', '.join(told)}"))
        )
        return {"labels": self.path, "label_file": asdict(self), "labels_read": read}

    @property
    def words(self) -> list[str]:
        """The options that name it on the command line."""
        pairs = [
            f"{'id' if key == 'doc_id' else key}={column}" for key, column in self.columns.items()
        ]
        pairs += [] if self.several is None else [f"{_SEVERAL}={self.several}"]
        found = ["--groups", f"{self.path}:{','.join(pairs)}" if pairs else self.path]
        found += [
            word for value, name in self.names.items() for word in ("--name", f"{value}={name}")
        ]
        return found + ([] if self.rest is None else ["--rest", self.rest])

    def renamed(self, names: Sequence[str]) -> list[str]:
        """Name columns by what they hold; one whose name another one takes is passed over (empty)."""
        strange = next((column for column in self.columns.values() if column not in names), None)
        if strange is not None:
            raise DataError(self.path, str(unknown("column", strange, filter(None, names))))
        nouns = {column: noun for noun, column in self.columns.items()}
        columns = [nouns.get(name, "" if name in self.columns else name) for name in names]
        if "doc_id" not in columns:
            known = next((name for name in _ID_COLUMNS if name in columns), None)
            columns = ["doc_id" if name == known else name for name in columns]
        return columns

    def named(self, labels: pl.Series) -> pl.Series:
        """Call labels by their names; `UserError` for a name of a value that does not occur."""
        return renamed_labels(labels, self.names)


_PACKED = (".gz", ".bz2", ".xz", ".zst")
_SEVERAL = "several"
_SEVERAL_HINT = "; FILE:several=first takes the first"
LENGTH = "length"
"""Name of the groups that are parts of the texts' lengths, where no column is called so."""

SEVERAL = "|"
"""What stands between the groups of a document that is of several, and of a side that unites them."""

_TAKEN = ("id", "text", "title", LINE)
_BEGINS = "a label file begins with its columns' names"
_COLUMN, _LIST = (
    "; name that of ids: FILE:id=COLUMN",
    "; of a bare list of ids say what all others are: --rest LABEL",
)
_IDS = ("doc_id", "docid", "docno", "corpus_id", "corpus-id", "id", "_id")
"""First lines of a list of ids that are the name of its column."""
_ID_COLUMNS = (
    "docid",
    "docno",
    "corpus_id",
    "document_id",
    "documentid",
    "passage_id",
    "_id",
    "id",
    "url",
    "uri",
)
"""Names of a column of ids that is not called ``doc_id``, where no user names one."""


def read_labels(labels: str | Path | LabelFile, *, by: str = "source") -> pl.DataFrame:
    """Read documents and their labels: TSV (quotes are plain), CSV (RFC 4180), JSON lines, plain or .gz, or Parquet.

    Returns ``doc_id`` (unique), the column that `by` names, ``origin`` where given, and the others,
    as numbers where all are. What names no group is null: see `known_labels`. The `rest` of a
    `LabelFile` is not given here.
    """
    given = LabelFile.of(labels)
    by = require_text(by, "by")
    with rereadable(Path(given.path)) as file:
        return _read_labels(given, file, by)


def _read_labels(given: LabelFile, file: Path, by: str) -> pl.DataFrame:
    """Read the labels of a file; `given` says how its user calls it and its columns."""
    path, frame = file, _read_table(given, file, label_column(by, ()))
    label = _label_column(path, frame.columns, by)
    if not frame.height:
        raise DataError(path, "expected labels, got column names only")
    try:
        named = [name for name in ("doc_id", "origin") if name in frame.columns]
        frame = frame.with_columns(
            id_texts(frame[name], f"column {name!r}").alias(name) for name in named
        )
    except UserError as error:
        raise DataError(path, str(error)) from error
    frame = _without_blanks(
        frame, strings=["doc_id", *(["origin"] if "origin" in frame.columns else [])]
    )
    frame = frame.with_columns(
        known_labels(frame[name]) for name in (label, "origin") if name in frame.columns
    )
    if label == by:
        frame = frame.with_columns(given.named(frame[label].cast(pl.String)))
    elif given.names or given.rest:
        raise UserError(f"{by} makes parts of numbers, which no --name and no --rest can label")
    frame = _with_ids(path, frame)
    if frame[label].null_count() == frame.height:
        raise DataError(path, f"column {label!r} is blank or nan in every row")
    if given.several is not None:
        frame = frame.unique("doc_id", keep="first", maintain_order=True)
    frame = one_row_each(path, frame, "document", "doc_id", hint=_SEVERAL_HINT)
    kept = [name for name in ("doc_id", label, "origin") if name in frame.columns]
    numbers = [
        as_numbers(frame[name]) for name in frame.columns if name not in kept or name == label != by
    ]
    return frame.with_columns(numbers).select(*kept, pl.exclude(*kept, LINE))


def _with_ids(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the rows without an id, and warn of them; `DataError` where these are more than half."""
    empty = frame["doc_id"].null_count()
    if not empty:
        return frame
    if 2 * empty > frame.height:
        row = frame["doc_id"].is_null().arg_max() or 0
        line = frame[LINE][row] if LINE in frame.columns else None
        rows = counted(empty, "row", "rows")
        raise DataError(path, f"doc_id is empty in {rows} of {frame.height:,}", line=line)
    rows = counted(empty, "row", "rows")
    warnings.warn(f"{path}: {rows} without a doc_id left out", DataWarning, stacklevel=4)
    return frame.filter(pl.col("doc_id").is_not_null())


def _read_table(given: LabelFile, path: Path, label: str) -> pl.DataFrame:
    """The file's columns; of a bare list of ids, with the label of what is listed."""
    file = DataFile(path=path, columns=dict(given.columns.items()))
    refuse_binary(file, LABELS)
    ending = _ending(given.path)
    if file.binary == "Parquet":
        frame = _plain_columns(given, read_table(path), path)
    elif file.has_json:
        frame = _plain_columns(given, _json_table(given, file), path)
    elif ending not in ("csv", "tsv") and not file.separator and given.rest is None:
        if (
            file.rows
            and len(blank_fields(file.rows[0])) == 1
            and not re.search("[,;|]", file.rows[0])
        ):
            raise DataError(path, f"expected labels, got one column{_LIST}", line=file.comments + 1)
        raise refusal(file, LABELS)
    else:
        frame = read_delimited(path, _separator(file, ending), given, comments=file.comments)
    alone = (set(given.columns) or set(frame.columns) - {LINE}) == {
        "doc_id"
    } and label not in frame.columns
    return frame.with_columns(pl.lit("listed").alias(label)) if alone and given.rest else frame


def _ending(name: str) -> str:
    plain = name.lower()
    for packed in _PACKED:
        plain = plain.removesuffix(packed)
    return plain.rpartition(".")[2] if "." in plain else ""


def _separator(file: DataFile, ending: str) -> str:
    """Return what parts the columns: as the ending says, unless the first line has none of it."""
    by_ending = {"tsv": "\t", "csv": ","}.get(ending, "")
    first = file.rows[0] if file.rows else ""
    if by_ending and (by_ending in first or not file.separator):
        return by_ending
    return file.separator or "\n"


def _json_table(given: LabelFile, file: DataFile) -> pl.DataFrame:
    """Read records of JSON, a line each or in one list, or an object of ids and labels."""
    ids = _id_columns(given)
    if file.has_json_lines and len(file.rows) > 1:
        return json_rows(file.path, ids, dotted=given.columns.values())[0]
    document = read_document(file.path)
    if isinstance(document, Mapping) and not any(map(_is_nested, document.values())):
        keys = set(map(str, document))
        if "doc_id" not in keys and not keys & set(given.columns.values()):
            document = [{"doc_id": name, "source": label} for name, label in document.items()]
    if isinstance(document, Mapping) and all(map(_is_list_of_ids, document.values())):
        groups = document.items()
        document = [{"doc_id": name, "source": group} for group, names in groups for name in names]
    records = _only_list(document) if isinstance(document, Mapping) else document
    if not isinstance(records, list) or not all(isinstance(row, Mapping) for row in records):
        raise refusal(file, LABELS)
    return json_table(file.path, records, ids, dotted=given.columns.values())


def _is_list_of_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(name) in (str, int) for name in value)


def _only_list(document: Mapping[str, Any]) -> list[Any]:
    """Return the only list of records in an object, such as a detector's response; else the object as a record."""
    lists = [value for value in document.values() if isinstance(value, list) and value]
    lists = [values for values in lists if all(isinstance(value, Mapping) for value in values)]
    return lists[0] if len(lists) == 1 else [document]


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list)


def _id_columns(given: LabelFile) -> tuple[str, ...]:
    """Return the names that a file's columns of ids may have."""
    named = given.columns.get("doc_id", "doc_id"), given.columns.get("origin", "origin")
    return (*named, *_ID_COLUMNS)


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
    """Make a collection without texts from labels, for auditing runs that were made elsewhere.

    A document without a label is in no group. The `rest` of a `LabelFile` is the label of all
    `documents`, and of those judged.
    """
    given = None if labels_file is None else LabelFile.of(labels_file)
    labels = require_frame(labels, ("doc_id",), "labels")
    column = label_column(require_text(by, "by"), labels.columns)
    if column not in labels.columns:
        raise unknown(
            "column", column, [name for name in labels.columns if name not in ("doc_id", "origin")]
        )
    if labels[column].dtype.is_nested() or labels[column].dtype == pl.Object:
        raise UserError(
            f"labels: expected strings or numbers in column {column!r}, got {labels[column].dtype}"
        )
    labels = labels.with_columns(
        ids_of(labels["doc_id"], "labels: column 'doc_id'").alias("doc_id")
    )
    labels = labels.with_columns(
        known_labels(labels[name]) for name in (column, "origin") if name in labels.columns
    )
    known = labels[column].count()
    if not known:
        raise UserError(f"no document has a label in column {column!r}")
    if given is not None and given.rest:
        judged_documents = (
            () if qrels is None else ids_of(qrels["doc_id"], "qrels: column 'doc_id'")
        )
        every = ids_of([*ids_of(documents, "documents"), *judged_documents], "documents").alias(
            "doc_id"
        )
        more = every.filter(~every.is_in(labels["doc_id"].implode())).unique().sort().to_frame()
        labels = pl.concat([labels, more], how="diagonal").with_columns(
            pl.col(column).fill_null(given.rest)
        )
    told = {} if given is None else given.spec(labels[column], labels[column].count() - known)
    unlabelled = labels[column].null_count()
    docs = labels.drop(*_TAKEN, strict=False).rename({"doc_id": "id"})
    docs = docs.with_columns(text=pl.lit(""), title=pl.lit(""))
    judgments = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    qrels = (
        pl.DataFrame(schema=judgments)
        if qrels is None
        else require_frame(qrels, judgments, "qrels")
    )
    judged = ids_of(qrels["query_id"].unique(maintain_order=True), "qrels: column 'query_id'")
    names = dict.fromkeys([*ids_of(queries, "queries"), *judged])
    asked = pl.DataFrame(
        {"id": list(names), "text": ""}, schema={"id": pl.String, "text": pl.String}
    )
    judgment_file = None if qrels_file is None else file_of(qrels_file)
    files = {"labels": told.get("labels"), "qrels": judgment_file}
    paths = {name: str(file) for name, file in files.items() if file is not None}
    spec = {**told, **paths, "files": list(paths.values()), "by": by, "unlabelled": unlabelled}
    if qrels_file is not None and pairs_of(qrels_file):
        spec["qrels_read"] = pairs_of(qrels_file)
    return Collection(docs, asked, qrels, spec)


def label_column(by: str, columns: Iterable[str]) -> str:
    """Return the column that `by` names: itself, or the part before the colon of ``COLUMN:N`` where it is none."""
    return by.rpartition(":")[0] if ":" in by and by not in columns else by


def renamed_labels(labels: pl.Series, names: Mapping[str, str]) -> pl.Series:
    """Call labels by other names, whatever the blanks round them; refuses a name of a value that does not occur."""
    if not names:
        return labels
    folded = labels.replace(_FLAGS)
    values = folded.drop_nulls().unique().sort().to_list()
    read = {value if value in values else value.strip(): name for value, name in names.items()}
    read = {_FLAGS.get(value, value): name for value, name in read.items()}
    strange = next((value for value in read if value not in values), None)
    if strange is not None:
        raise unknown(f"value of {labels.name!r} to name", strange, values[:12])
    return folded.replace(read)


def with_names(collection: Collection, names: Mapping[str, str], *, by: str) -> Collection:
    """Call the labels in a column of a collection's documents by other names."""
    columns = [
        name for name in collection.docs.columns if name == "source" or name not in DOC_COLUMNS
    ]
    if by not in columns:
        raise unknown("column to name the labels of", by, columns)
    labels = renamed_labels(collection.docs[by].cast(pl.String), names)
    spec = {**collection.spec, "label_names": dict(names), "labels_named": by}
    return Collection(
        collection.docs.with_columns(labels), collection.queries, collection.qrels, spec
    )


def split_labels(column: pl.Series) -> pl.Series:
    """The groups that each value names, as lists; null where it names none."""
    lists = column.str.split(SEVERAL).list.eval(pl.element().str.strip_chars())
    found = lists.list.eval(pl.element().filter(~pl.element().is_in(NO_LABEL)))
    return found.set(found.list.len() == 0, None)


def no_overlap(documents: Sequence[str] | pl.Series, collection: Collection) -> str:
    """Say that none of a run's documents is in a collection, or among its labels, with the first id of either side."""
    where = (
        "the collection"
        if "path" in collection.spec
        else collection.spec.get("labels", "the collection")
    )
    shown = [f"first: {documents[0]!r}"] if len(documents) else []
    shown += [f"its ids look like {collection.ids[0]!r}"] if collection.docs.height else []
    more = f" ({'; '.join(shown)})" if shown else ""
    near = near_matches(pl.Series(documents, dtype=pl.String), collection.ids, all_forms=True)
    more += f"; {near}" if near else ""
    return f"no overlap: none of its {counted(len(documents), 'document', 'documents')} is in {where}{more}"


def warn_of_near_matches(file: object, ids: pl.Series, known: pl.Series, where: str) -> None:
    """Warn of ids that some file would know if they were written as it writes them."""
    near = near_matches(ids, known)
    if near:
        warnings.warn(f"{file}: {near} (in {where})", DataWarning, stacklevel=3)


def _require_names(path: Path, names: list[str], line: int | None, *, own: bool = True) -> None:
    """Refuse columns without ``doc_id``, or of one name: mostly those of a file that begins with its rows."""
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise DataError(path, f"column {twice!r} is named twice; {_BEGINS}", line=line)
    if "doc_id" in names:
        return
    hint = (_LIST if len(names) == 1 else _COLUMN) if own else ""
    came = shorten(", ".join(filter(None, names)))
    raise DataError(path, f"expected a column doc_id, got {came}; {_BEGINS}{hint}", line=line)


def _label_column(path: Path, columns: list[str], by: str) -> str:
    others = [name for name in columns if name not in ("doc_id", "origin", LINE)]
    label = label_column(by, others)
    if label == LENGTH != by and label not in others:
        raise UserError(
            f"--by {by} needs texts: name a collection DIR, without --groups (a column of numbers can be parted too, "
            "such as year:3)"
        )
    if label in (*_TAKEN, "origin", "doc_id"):
        raise UserError(f"{label!r} cannot be grouped by (valid: {', '.join(others) or 'none'})")
    if label not in others:
        raise DataError(
            path, f"{unknown('column', label, others)}; choose the column of labels with --by (by=)"
        )
    return label


def read_delimited(
    path: Path, separator: str, labels: LabelFile | None = None, *, comments: int = 0
) -> pl.DataFrame:
    """Read a table of strings with ``doc_id`` and each row's `LINE`; `labels` may name its columns, or a bare list."""
    frames, header = list[pl.DataFrame](), None
    for rows in field_rows(path, separator, comments=comments):
        if header is None:
            header = _header(path, rows, labels)
            rows = rows if header.is_row else rows[1:]
        if not header.is_row:
            refuse_second_header(path, rows, header.fields)
        frames.append(_named_columns(path, rows, header.names, separator))
    return pl.concat(frames)


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The first line of a table."""

    fields: list[str]
    names: list[str]
    """What each column holds; empty for one that is passed over."""
    is_row: bool
    """Whether it is a row already."""


def _header(path: Path, rows: pl.DataFrame, labels: LabelFile | None) -> _Header:
    """Read the names of a table's columns from its first row, or as the user says them."""
    fields = rows["fields"][0].to_list()
    cells = [str(name).strip() for name in fields]
    if labels is None:
        _require_names(path, cells, rows[LINE][0], own=False)
        return _Header(fields=fields, names=cells, is_row=False)
    is_headless = DataFile(path=path, columns=labels.columns).is_headless
    is_bare = bool(labels.rest) and not labels.columns and len(cells) == 1
    columns = numbered_names(cells) if is_headless else cells
    names = ["doc_id"] if is_bare else labels.renamed(columns)
    _require_names(path, names, rows[LINE][0])
    is_row = is_headless or (is_bare and cells[0].lower() not in _IDS)
    return _Header(fields=fields, names=names, is_row=is_row)


def _named_columns(
    path: Path, rows: pl.DataFrame, names: Sequence[str], separator: str
) -> pl.DataFrame:
    """Return rows of fields as columns; `DataError` where a row has another number of fields."""
    wrong = rows.filter(pl.col("fields").list.len() != len(names))
    if wrong.height:
        line, fields = wrong.row(0)
        expected = counted(len(names), "field", "fields")
        message = f"expected {expected} as in the first line, got {len(fields)}"
        raise DataError(path, f"{message}: {shorten(separator.join(fields))}", line=line)
    columns = dict[str, pl.Expr]()
    for number, name in enumerate(names):
        if name and name not in _TAKEN:
            columns[name] = pl.col("fields").list.get(number)
    return rows.select(LINE, **columns)


def _plain_columns(given: LabelFile, frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """The columns by what they hold, without those that are nested or taken."""
    plain = [s for s in frame.iter_columns() if not s.dtype.is_nested() and s.dtype != pl.Duration]
    names = given.renamed([s.name for s in plain])
    _require_names(path, names, None)
    plain = [
        s.alias(name) for s, name in zip(plain, names, strict=True) if name and name not in _TAKEN
    ]
    times = [s.cast(pl.String) if s.dtype.is_temporal() else s for s in plain]
    return pl.DataFrame([s.fill_nan(None) if s.dtype.is_float() else s for s in times])


def _without_blanks(frame: pl.DataFrame, *, strings: list[str]) -> pl.DataFrame:
    """Strip strings, and the columns named as strings; what is left empty is null."""
    kinds = (pl.String, pl.Categorical, pl.Enum)
    names = [
        s.name for s in frame.iter_columns() if s.name in strings or isinstance(s.dtype, kinds)
    ]
    stripped = pl.col(names).cast(pl.String).str.strip_chars()
    return frame.with_columns(stripped).with_columns(
        pl.when(pl.col(names) != "").then(pl.col(names))
    )


def one_row_each(
    path: Path,
    frame: pl.DataFrame,
    noun: str,
    key: str,
    names: Mapping[str, str] = {},
    *,
    hint: str = "",
) -> pl.DataFrame:
    """Keep a row that comes twice once; rows of one key that differ are a `DataError`, by the `names` of columns."""
    if frame[key].n_unique() == frame.height:
        return frame
    values = [name for name in frame.columns if name not in (key, LINE)]
    frame = frame.unique([key, *values], keep="first", maintain_order=True)
    again = frame.filter(~pl.col(key).is_first_distinct())
    if again.height:
        second = again.row(0, named=True)
        first = frame.filter(pl.col(key) == second[key]).row(0, named=True)
        name = next(n for n in values if first[n] != second[n])
        place = f" (line {first[LINE]})" if LINE in first else ""
        both = f"{first[name]!r}{place} and {second[name]!r}"
        message = (
            f"{noun} {second[key]!r} has two values of {names.get(name, name)!r}: {both}{hint}"
        )
        raise DataError(path, message, line=second.get(LINE))
    return frame


def labelled(
    labels: str | Path | LabelFile,
    runs: Sequence[Run],
    *,
    by: str = "source",
    qrels: str | Path | None = None,
) -> Collection:
    """Make a collection without texts from a label file, for auditing runs that were made elsewhere.

    `labels` is a table ``doc_id``, the column `by`, and optionally ``origin``;
    ``FILE:id=url,source=is_ai`` names its columns, a `LabelFile` says what else there is to say.
    Queries are those of the `runs` and of the judgments (a file, `qrels`), without which only
    questions that need none can be asked. `DataError` if a file is not what it should be, none of a
    run's queries is judged, or no document of the runs has a label.
    """
    runs = require_runs(runs)
    judgments, read_as = None, ""
    if qrels is not None:
        judgments, read_as = read_qrels_as(qrels)
        judgments = judgments.drop("line")
        _refuse_unjudged(runs, judgments)
    table = read_labels(labels, by=by)
    queries = (query for run in runs for query in run.queries)
    documents = pl.concat([pl.Series(dtype=pl.String), *(run.ids for run in runs)])
    if runs and not documents.is_in(table["doc_id"].implode()).any():
        bare = from_labels(table, queries=(), by=by, labels_file=LabelFile.of(labels).path)
        raise DataError(runs[0].spec.get("file", runs[0].name), no_overlap(runs[0].ids, bare))
    for run in runs:
        file = str(run.spec.get("file", run.name))
        warn_of_near_matches(file, run.ids, table["doc_id"], LabelFile.of(labels).path)
        if judgments is not None:
            judged = judgments["doc_id"].unique(maintain_order=True)
            warn_of_near_matches(file_of(qrels or ""), judged, run.ids, file)
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
    """Refuse a run of whose queries none is judged."""
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
    """Add a column of labels from a file to a collection's documents, and the file's origins where it has some.

    With `other_columns` the file's other columns are added too, in place of columns of their names.
    Labels of other documents are left out; documents without one are in no group, or have that of
    the rest. What takes a document's source away, or contradicts the sources that a collection has,
    is refused.
    """
    column = label_column(by, collection.docs.columns)
    if column in DOC_COLUMNS and column != "source":
        raise UserError(
            f"--groups cannot replace the column {column!r} of a collection; call it something else"
        )
    given = LabelFile.of(labels)
    table = read_labels(given, by=by).rename({"doc_id": "id"})
    kept = [name for name in ("id", column, "origin") if name in table.columns]
    joined = collection.docs.select("id").join(
        table.select(kept), on="id", how="left", maintain_order="left"
    )
    missing = joined[column].null_count()
    if missing == joined.height:
        raise DataError(given.path, f"names none of the collection's {joined.height:,} documents")
    joined = joined if not given.rest else joined.with_columns(pl.col(column).fill_null(given.rest))
    told = given.spec(joined[column], missing - joined[column].null_count())
    lost = joined["id"].filter(joined[column].is_null() & collection.docs["source"].is_not_null())
    if column == "source" and len(lost):
        message = f"no source for {counted(len(lost), 'document', 'documents')} of the collection (first: {lost[0]!r})"
        raise DataError(
            given.path, f"{message}; label all of them, or name another column with --by"
        )
    other = collection.docs.select("id", "source", new=joined[column]).filter(
        pl.col("source") != pl.col("new")
    )
    if column == "source" and len(collection.sources) > 1 and other.height:
        name, old, new = other.row(0)
        message = f"document {name!r} is {new!r} here and {old!r} in the collection, which has sources of its own"
        raise DataError(
            given.path, f"{message}: omit --groups, or name another column: --by COLUMN"
        )
    docs = collection.docs.with_columns(joined[column])
    if other_columns:
        more = table.select("id", pl.exclude(*kept, *DOC_COLUMNS))
        docs = docs.drop(more.columns[1:], strict=False)
        docs = docs.join(more, on="id", how="left", maintain_order="left")
    if "origin" in kept:
        docs = docs.with_columns(pl.coalesce(joined["origin"], docs["origin"]).alias("origin"))
    files = [*collection.spec.get("files", ()), str(given.path)]
    return Collection(
        docs, collection.queries, collection.qrels, {**collection.spec, **told, "files": files}
    )

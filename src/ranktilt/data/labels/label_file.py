"""Read the text that names a label file and its columns: ``FILE:id=url,source=is_ai``.

A label file gives each document a label, the value of a column by which documents are grouped. The
*rest* is all documents that the file does not name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.formats.ids import kind_of
from ranktilt.data.formats.notation import FIRST, split_notation
from ranktilt.data.formats.tables.column_names import DOCUMENT_IDS
from ranktilt.data.labels.group_names import group_name
from ranktilt.data.labels.label_remarks import parts_of_numbers, short_number
from ranktilt.errors import DataError, UserError, shorten, unknown_name

LENGTH = "length"
"""Name by which users group documents by the length of their texts: ``--by length:3``.

A column of this name is used instead, if there is one.
"""
_SEVERAL_OPTION = "several"
"""Key in ``FILE:several=first``."""
SEVERAL_HINT = f"; to take the first, use FILE:{_SEVERAL_OPTION}={FIRST}"
"""End of errors about documents with several labels."""
_MOST_COUNTS = 7
"""Most labels whose documents are counted in a sentence.

If there are more, the sentence has those of the most documents, and the last one.
"""
_ID_COLUMNS = (
    *DOCUMENT_IDS,
    "document_id",
    "documentid",
    "passage_id",
    "_id",
    "id",
    "url",
    "uri",
)
"""Names of a column of ids, in the order of preference, if no column is called ``doc_id``."""
_TRUTH_VALUES = {
    "True": "true",
    "TRUE": "true",
    "False": "false",
    "FALSE": "false",
    "1.0": "1",
    "0.0": "0",
}
"""Other ways to write a truth value, with the way in which it is read."""


@dataclass(frozen=True)
class LabelFile:
    """A label file, and how to read it.

    It is TSV, CSV, JSON lines or Parquet; with `rest` also a bare list of ids.
    """

    path: str
    """Path of the file."""
    _: KW_ONLY
    columns: dict[str, str] = field(default_factory=dict)
    """Column of the file by its content: ``{"doc_id": "url", "source": "is_ai"}``."""
    names: dict[str, str] = field(default_factory=dict)
    """Names for values of labels: ``{"1": "ai"}``; ``True`` is ``true``, and ``1.0`` is ``1``."""
    rest: str | None = None
    """Label of every document that the file does not label.

    The file may then be a bare list of ids, which get the label ``listed``.
    """
    several: str | None = None
    """``first`` keeps the first of several labels of a document; None refuses several labels."""

    @classmethod
    def from_text(cls, text: str | Path | LabelFile) -> LabelFile:
        """Read ``FILE:id=url,source=is_ai``; the whole text is the path if such a file exists."""
        if isinstance(text, LabelFile):
            return text
        if not isinstance(text, str | Path):
            raise UserError(
                f"expected the name of a label file, got {kind_of(text)}: {shorten(text)}"
            )
        notation = split_notation(text)
        if notation is None:
            return cls(str(text))
        file, pairs = notation
        choices = dict(pairs)
        several = choices.pop(_SEVERAL_OPTION, None)
        if several not in (None, FIRST):
            raise UserError(
                f"{file}: {unknown_name(f'choice of {_SEVERAL_OPTION}', several, [FIRST])}"
            )
        columns = {"doc_id" if key == "id" else key: column for key, column in choices.items()}
        if len(set(columns.values())) + (several is not None) < len(pairs):
            raise UserError(
                f"{text}: expected each column once, such as {file}:id=url,source=is_ai"
            )
        return cls(file, columns=columns, several=several)

    def spec(self, labels: pl.Series, rest_count: int) -> dict[str, Any]:
        """Return the keys of a collection's spec that describe this file.

        `labels` has the label of each document, and `rest_count` is the number of documents that
        got the label of the rest.
        """
        if self == LabelFile(self.path):
            return {"labels": self.path}
        columns = [f"{key} = {column}" for key, column in self._notation_columns()]
        names = [f"{value} = {name}" for value, name in self.names.items()]
        documents = f"documents: {', '.join(self._label_counts(labels, rest_count))}"
        parts = [", ".join(columns), ", ".join(names), documents]
        read = "; ".join(part for part in parts if part)
        return {"labels": self.path, "label_file": asdict(self), "labels_read": read}

    def _label_counts(self, labels: pl.Series, rest_count: int) -> list[str]:
        """Count the documents of each label, in words; the label of the rest comes last."""
        if parts := parts_of_numbers(labels):
            span = f"{short_number(parts.low)} to {short_number(parts.high)}"
            return [f"{labels.count():,} with {labels.name} from {span}"]
        counts = labels.drop_nulls().cast(pl.String).value_counts().rows()
        counts.sort(key=lambda row: (row[0] == self.rest, -row[1], row[0]))
        words = [f"{count:,} {group_name(labels.name, name)}" for name, count in counts]
        if rest_count:
            # The file itself may give the label of the rest to some documents.
            _label, last_count = counts[-1]
            share_of_rest = f"{rest_count:,} of them " if last_count > rest_count else ""
            words[-1] += f" ({share_of_rest}the rest)"
        if len(words) > _MOST_COUNTS:
            words[_MOST_COUNTS - 1 : -1] = ["…"]
        return words

    @property
    def words(self) -> list[str]:
        """The arguments that name this file on the command line, one by one."""
        pairs = [f"{key}={column}" for key, column in self._notation_columns()]
        if self.several is not None:
            pairs.append(f"{_SEVERAL_OPTION}={self.several}")
        words = ["--groups", f"{self.path}:{','.join(pairs)}" if pairs else self.path]
        for value, name in self.names.items():
            words += ["--name", f"{value}={name}"]
        if self.rest is not None:
            words += ["--rest", self.rest]
        return words

    def _notation_columns(self) -> list[tuple[str, str]]:
        """Return pairs of key and column, with the keys as ``FILE:id=url`` has them."""
        return [("id" if key == "doc_id" else key, column) for key, column in self.columns.items()]

    def rename_columns(self, names: Sequence[str]) -> list[str]:
        """Return a new name for each column of the file, which says what it holds.

        `names` are the names in the file. A column that the user names gets the name of its
        content, such as ``source`` for ``is_ai``. All others keep their names, except a column that
        is called ``source`` itself: it gets an empty name, and is not read.
        """
        for column in self.columns.values():
            if column not in names:
                raise DataError(self.path, str(unknown_name("column", column, filter(None, names))))
        chosen_names = {column: new_name for new_name, column in self.columns.items()}
        new_names = list[str]()
        for name in names:
            kept_name = "" if name in self.columns else name
            new_names.append(chosen_names.get(name, kept_name))
        return new_names if "doc_id" in new_names else _with_id_column(new_names)

    @property
    def id_columns(self) -> tuple[str, ...]:
        """Possible names of the file's columns of ids."""
        doc_id = self.columns.get("doc_id", "doc_id")
        origin = self.columns.get("origin", "origin")
        return (doc_id, origin, *_ID_COLUMNS)


def _with_id_column(columns: list[str]) -> list[str]:
    """Rename the first of `_ID_COLUMNS`, if there is one, to ``doc_id``."""
    id_column = next((name for name in _ID_COLUMNS if name in columns), None)
    return ["doc_id" if name == id_column else name for name in columns]


def label_column(by: str, columns: Iterable[str]) -> str:
    """Return the column that `by` names: `by` itself, or ``COLUMN`` of ``COLUMN:N``.

    ``COLUMN:N`` divides a column of numbers into N parts, unless a column has this name itself.
    """
    return by.rpartition(":")[0] if ":" in by and by not in columns else by


def rename_labels(labels: pl.Series, names: Mapping[str, str]) -> pl.Series:
    """Rename values of labels.

    `names` has the new name of each value; blanks around a value, and the way in which a truth
    value is written, do not matter. `UserError` for a value that does not occur.
    """
    if not names:
        return labels
    labels = labels.replace(_TRUTH_VALUES)
    values = labels.drop_nulls().unique().sort().to_list()
    new_names = dict[str, str]()
    for named_value, name in names.items():
        value = named_value if named_value in values else named_value.strip()
        new_names[_TRUTH_VALUES.get(value, value)] = name
    unknown_value = next((value for value in new_names if value not in values), None)
    if unknown_value is not None:
        raise unknown_name(f"value of {labels.name!r} to name", unknown_value, values)
    return labels.replace(new_names)

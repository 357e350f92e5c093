"""The text that names a label file: its path, columns, names of values, and label of the rest."""

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
from ranktilt.errors import DataError, UserError, shorten, unknown

LENGTH = "length"
"""Name of the groups that are parts of the texts' lengths, unless a column has this name."""
_SEVERAL_OPTION = "several"
"""Key in ``FILE:several=first``."""
SEVERAL_HINT = f"; to take the first, use FILE:{_SEVERAL_OPTION}={FIRST}"
"""End of errors about documents with several labels."""
_MOST_COUNTS = 7
"""Labels whose documents are counted in a sentence; of more, the largest and the last."""
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
_FLAGS = {
    "True": "true",
    "TRUE": "true",
    "False": "false",
    "FALSE": "false",
    "1.0": "1",
    "0.0": "0",
}
"""Ways to write a truth value, with the one that it is read as."""


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
    """Label of every document that the file does not label; ids of a bare list are ``listed``."""
    several: str | None = None
    """``first`` keeps the first of several labels of a document, which are refused otherwise."""

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
            raise UserError(f"{file}: {unknown(f'choice of {_SEVERAL_OPTION}', several, [FIRST])}")
        columns = {"doc_id" if key == "id" else key: column for key, column in choices.items()}
        if len(set(columns.values())) + (several is not None) < len(pairs):
            raise UserError(
                f"{text}: expected each column once, such as {file}:id=url,source=is_ai"
            )
        return cls(file, columns=columns, several=several)

    def spec(self, labels: pl.Series, rest_count: int) -> dict[str, Any]:
        """Return the keys of a collection's spec that describe this file.

        `labels` are those of all documents; `rest_count` of them come from the rest.
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
            has_listed = counts[-1][1] > rest_count
            words[-1] += f" ({f'{rest_count:,} of them ' if has_listed else ''}the rest)"
        if len(words) > _MOST_COUNTS:
            words[_MOST_COUNTS - 1 : -1] = ["…"]
        return words

    @property
    def words(self) -> list[str]:
        """The command line's options for this file."""
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
        """Return keys and columns as ``FILE:id=url`` has them."""
        return [("id" if key == "doc_id" else key, column) for key, column in self.columns.items()]

    def rename_columns(self, names: Sequence[str]) -> list[str]:
        """Return the content of each column; empty for a column whose name another column takes."""
        for column in self.columns.values():
            if column not in names:
                raise DataError(self.path, str(unknown("column", column, filter(None, names))))
        nouns = {column: noun for noun, column in self.columns.items()}
        columns = [nouns.get(name, "" if name in self.columns else name) for name in names]
        return columns if "doc_id" in columns else _with_id_column(columns)

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
    """Return the column that `by` names: without ``:N`` of ``COLUMN:N`` if `by` is no column."""
    return by.rpartition(":")[0] if ":" in by and by not in columns else by


def rename_labels(labels: pl.Series, names: Mapping[str, str]) -> pl.Series:
    """Rename values of labels, whatever the blanks around them.

    `UserError` for a name of a value that does not occur.
    """
    if not names:
        return labels
    unflagged = labels.replace(_FLAGS)
    values = unflagged.drop_nulls().unique().sort().to_list()
    by_value = {value if value in values else value.strip(): name for value, name in names.items()}
    by_value = {_FLAGS.get(value, value): name for value, name in by_value.items()}
    strange = next((value for value in by_value if value not in values), None)
    if strange is not None:
        raise unknown(f"value of {labels.name!r} to name", strange, values)
    return unflagged.replace(by_value)

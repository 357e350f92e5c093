"""How a label file is read: which columns count, what their values are called, and what all other documents are."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.errors import DataError, UserError, unknown

_NOTATION = re.compile(r"(?P<file>.+?):(?P<columns>[\w.-]+=[^=,]+(?:,[\w.-]+=[^=,]+)*)")
_FLAGS = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "1.0": "1", "0.0": "0"}


@dataclass(frozen=True)
class LabelFile:
    """A label file (TSV, CSV, JSON lines, JSON or Parquet; with `rest` also a bare list of ids), and how it is read."""

    path: str
    columns: dict[str, str] = field(default_factory=dict)
    """Column of the file by what it holds: ``{"doc_id": "url", "source": "is_ai"}``."""
    names: dict[str, str] = field(default_factory=dict)
    """What values of the labels are called: ``{"1": "ai"}``; ``True`` is ``true``, and ``1.0`` is ``1``."""
    rest: str | None = None
    """Label of every document that the file gives none; the ids of a bare list are ``listed``."""

    @classmethod
    def of(cls, labels: str | Path | LabelFile) -> LabelFile:
        """Read ``FILE:id=url,source=is_ai``; the name of a file that exists is that file's."""
        if isinstance(labels, LabelFile):
            return labels
        match = None if os.path.exists(labels) else _NOTATION.fullmatch(str(labels))
        if match is None:
            return cls(str(labels))
        pairs = [part.split("=") for part in match["columns"].split(",")]
        columns = {"doc_id" if key == "id" else key: column for key, column in pairs}
        if len(set(columns.values())) < len(pairs):
            raise UserError(f"{labels}: expected each column once, such as {match['file']}:id=url,source=is_ai")
        return cls(match["file"], columns)

    def spec(self, labels: pl.Series, rest: int) -> dict[str, Any]:
        """Return what a collection's spec says of it; of its `labels` the file does not give `rest`."""
        if self == LabelFile(self.path):
            return {"labels": self.path}
        counts = labels.drop_nulls().cast(pl.String).value_counts().rows()
        counts.sort(key=lambda row: (row[0] == self.rest, -row[1], row[0]))
        told = [f"{n:,} {name}" for name, n in counts]
        told[-1] += f" ({f'{rest:,} of them ' if counts[-1][1] > rest else ''}the rest)" if rest else ""
        told[6:-1] = ["…"] if len(told) > 7 else told[6:-1]  # as many as a sentence bears
        columns = (f"{'id' if key == 'doc_id' else key} = {column}" for key, column in self.columns.items())
        names = (f"{value} = {name}" for value, name in self.names.items())
        read = "; ".join(filter(None, (", ".join(columns), ", ".join(names), f"documents: {', '.join(told)}")))
        return {"labels": self.path, "label_file": asdict(self), "labels_read": read}

    @property
    def words(self) -> list[str]:
        """The options that name it on the command line."""
        columns = ",".join(f"{'id' if key == 'doc_id' else key}={column}" for key, column in self.columns.items())
        found = ["--groups", f"{self.path}:{columns}" if columns else self.path]
        found += [word for value, name in self.names.items() for word in ("--name", f"{value}={name}")]
        return found + ([] if self.rest is None else ["--rest", self.rest])

    def renamed(self, names: Sequence[str]) -> list[str]:
        """Name columns by what they hold; one whose name another one takes is passed over (empty)."""
        strange = next((column for column in self.columns.values() if column not in names), None)
        if strange is not None:
            raise DataError(self.path, str(unknown("column", strange, filter(None, names))))
        held = {column: name for name, column in self.columns.items()}
        return [held.get(name, "" if name in self.columns else name) for name in names]

    def named(self, labels: pl.Series) -> pl.Series:
        """Call labels by their names; `UserError` for a name of a value that does not occur."""
        folded = labels.replace(_FLAGS) if self.names else labels
        values = folded.drop_nulls().unique().sort().to_list()
        names = {_FLAGS.get(value, value): name for value, name in self.names.items()}
        strange = next((value for value in names if value not in values), None)
        if strange is not None:
            raise unknown(f"value of {labels.name!r} to name", strange, values[:12])
        return folded.replace(names)

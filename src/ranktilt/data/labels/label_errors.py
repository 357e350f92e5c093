"""What is known of the errors of labels: rates that a user states, or a sample that was checked.

``ai:fpr=.02,fnr=.05`` states how often a document that is not ai is labelled ai, and how often one
that is ai is not. ``fpr=2/100`` says that 2 of 100 checked documents were wrong, so that the rate
is uncertain. With ``by=length:3`` there is a rate for each part, such as ``fpr=.08|.02|.01``.

A file of a checked sample has a row for each document, with its true and its labelled group, or a
row for each combination with a count, or a table of counts; see `read_sample`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from ranktilt.data.files import require_path
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.json_values import read_document, read_lines
from ranktilt.data.formats.notation import split_notation
from ranktilt.data.formats.tables.column_names import DOCUMENT, snake_case
from ranktilt.data.formats.tables.delimited import LINE_COLUMN, read_named_table
from ranktilt.errors import DataError, UserError, shorten, unknown

EXPECTED = "expected rates, such as ai:fpr=.02,fnr=.05, or the file of a checked sample"
_RATE_KEYS = ("fpr", "fnr", "by")
_FILE_KEYS = ("true", "label", "count", "id", "by")
_TRUTH = ("true", "truth", "true_label", "true_group", "gold", "actual", "reference", "checked")
_LABEL = ("label", "labelled", "labeled", "predicted", "prediction", "pred", "detected", "observed")
_COUNT = ("count", "n", "documents", "pages", "number")
_FOLDED = {"true": _TRUTH, "label": _LABEL, "count": _COUNT, "id": DOCUMENT}
"""Names of each column of a sample, in the order of preference."""
_SAMPLE = "labels of a checked sample, in the columns true and label (and count)"
_MOST_LABELS = 10
"""Different numbers from 0 to 1 beyond which a column holds probabilities, and no labels."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often labels of one group are wrong."""

    value: float
    checked: float = np.inf
    """Number of documents that were checked; infinite where the rate is taken as known."""


@dataclass(frozen=True, kw_only=True)
class StatedRates:
    """Rates as a user states them, for each part of the documents in turn."""

    group: str
    """The group that is detected; all other documents are of the other one."""
    false_positive: tuple[Rate, ...]
    """How often a document of the other group is labelled `group`."""
    false_negative: tuple[Rate, ...]
    """How often a document of `group` is labelled as the other one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedSample:
    """Documents whose true group is known beside their label."""

    path: str
    rows: pl.DataFrame
    """Columns ``truth``, ``label``, ``count``, ``id`` and ``part``; the last two may be null."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelErrors:
    """What is known of the errors of labels, as the user wrote it."""

    text: str
    by: str = ""
    """Column, such as ``length:3``, by whose parts rates differ; empty where they do not."""
    rates: StatedRates | None = None
    sample: CheckedSample | None = None
    """The checked documents, where no rates are stated."""

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read ``GROUP:fpr=.02,fnr=.05``, or the name of a file, with ``:by=COLUMN`` for parts.

        Raises
        ------
        UserError
            If a rate lies outside 0 to 1, or labels with these rates would say nothing.
        DataError
            If the file holds no true and labelled groups.
        """
        notation = split_notation(text)
        if notation is None:
            if re.search(r":\w+=", text):
                raise UserError(f"--label-errors: {EXPECTED}; got {text!r}")
            _require_file(text)
            return cls(text=text, sample=read_sample(text, {}))
        name, pairs = notation
        options = _options(text, pairs, _RATE_KEYS if _states_rates(pairs) else _FILE_KEYS)
        by = options.get("by", "")
        if _states_rates(pairs):
            return cls(text=text, by=by, rates=_stated_rates(text, name, options))
        _require_file(name)
        return cls(text=text, by=by, sample=read_sample(name, options))


def _require_file(name: str) -> None:
    """Refuse a name that no file has."""
    if not name.strip():
        raise UserError(f"--label-errors: {EXPECTED}; got nothing")
    if os.path.isdir(name):
        raise UserError(f"--label-errors: {EXPECTED}; {name!r} is a folder")
    if not os.path.exists(name):
        raise UserError(f"--label-errors: {EXPECTED}; there is no file {name!r}")


def _states_rates(pairs: Sequence[tuple[str, str]]) -> bool:
    return any(key in ("fpr", "fnr") for key, _ in pairs)


def _options(text: str, pairs: Sequence[tuple[str, str]], valid: Sequence[str]) -> dict[str, str]:
    options = dict[str, str]()
    for key, value in pairs:
        if key not in valid:
            raise UserError(f"--label-errors {text}: {unknown('key', key, valid)}")
        if key in options:
            raise UserError(f"--label-errors {text}: {key} occurs twice")
        options[key] = value
    return options


# ---- stated rates -------------------------------------------------------------------------------


def _stated_rates(text: str, group: str, options: Mapping[str, str]) -> StatedRates:
    for key, meaning in (("fpr", "false positives"), ("fnr", "false negatives")):
        if key not in options:
            raise UserError(
                f"--label-errors {text}: {key}, the rate of {meaning}, is missing; state both, "
                f"such as {group}:fpr=.02,fnr=.05"
            )
    false_positive = _rates(text, "fpr", options["fpr"])
    false_negative = _rates(text, "fnr", options["fnr"])
    if len(false_positive) != len(false_negative):
        raise UserError(
            f"--label-errors {text}: expected as many rates for fpr as for fnr, got "
            f"{len(false_positive)} and {len(false_negative)}"
        )
    if len(false_positive) > 1 and "by" not in options:
        raise UserError(
            f"--label-errors {text}: several rates need the column by whose parts they differ, "
            "such as by=length:3"
        )
    for positive, negative in zip(false_positive, false_negative, strict=True):
        if positive.value + negative.value >= 1:
            raise UserError(
                f"--label-errors {text}: fpr + fnr is {positive.value + negative.value:g}; from 1 "
                "on labels say nothing about the groups, so that no answer can be corrected"
            )
    return StatedRates(group=group, false_positive=false_positive, false_negative=false_negative)


def _rates(text: str, key: str, written: str) -> tuple[Rate, ...]:
    return tuple(_rate(text, key, part) for part in written.split("|"))


def _rate(text: str, key: str, written: str) -> Rate:
    """Read ``.02``, ``2%``, or ``2/100`` of a checked sample."""
    number, slash, total = written.partition("/")
    if slash:
        errors, checked = _number(number), _number(total)
        rate = Rate(value=errors / checked if checked > 0 else np.nan, checked=checked)
    elif number.strip().endswith("%"):
        rate = Rate(value=_number(number.strip()[:-1]) / 100)
    else:
        rate = Rate(value=_number(number))
    if not 0 <= rate.value <= 1:
        raise UserError(
            f"--label-errors {text}: expected {key} as a rate from 0 to 1, such as .02, or as "
            f"errors among checked documents, such as 2/100; got {written.strip()}"
        )
    return rate


# ---- a checked sample ---------------------------------------------------------------------------


def read_sample(path: str | Path, options: Mapping[str, str]) -> CheckedSample:
    """Read the file of a checked sample: CSV, TSV, JSON lines or JSON.

    Rows hold the columns ``true`` and ``label``, and may hold ``count``, ``id`` and the column of
    parts; or ``true`` and a column of counts for each label. JSON may also be an object of objects:
    ``{"human": {"human": 98, "ai": 2}, …}``, the true group first. `options` name other columns.
    """
    path = require_path(path)
    file = DataFile(path=path)
    if file.binary or b"\0" in file.start:
        raise DataError(path, f"expected {_SAMPLE}, got {file.binary or 'binary data'}")
    if not file.start.strip():
        raise DataError(path, f"expected {_SAMPLE}, got an empty file")
    table = _json_table(file) if file.has_json else _text_table(file, options)
    columns = _columns(path, list(table), options)
    by = options.get("by", "")
    content = {
        "truth": table[columns["true"]],
        "id": table.get(columns.get("id", "")),
        "part": table.get(by),
    }
    if "label" in columns:
        content["label"] = table[columns["label"]]
        content["count"] = table.get(columns.get("count", ""), ["1"] * len(content["truth"] or ()))
        frame = pl.DataFrame(content, schema=_SCHEMA)
    else:
        frame = _table_of_counts(path, table, columns["true"])
    counts = frame["count"].cast(pl.Float64, strict=False)
    is_count = counts.is_between(0, np.inf, closed="left").fill_null(value=False)
    if not is_count.all():
        row = (~is_count).arg_max() or 0
        message = f"expected counts of at least 0, got {frame['count'][row]!r} in row {row + 1}"
        raise DataError(path, message)
    _refuse_probabilities(path, frame["label"])
    return CheckedSample(path=str(path), rows=frame.with_columns(count=counts))


_SCHEMA = dict.fromkeys(("truth", "label", "count", "id", "part"), pl.String)
Table = dict[str, list[str]]
"""Columns of a file by their names, as strings without blanks around them."""


def _text_table(file: DataFile, options: Mapping[str, str]) -> Table:
    header = re.split(r"[\t,;|]", file.rows[0]) if file.rows else []
    names = [name.strip().strip('"') for name in header]
    known = set(chain.from_iterable(_FOLDED.values()))
    # The separator is that between known names, and those of runs and labels are other ones.
    hints = {name: name for name in names if snake_case(name) in known}
    hinted = DataFile(path=file.path, columns={**hints, **options})
    if not hinted.separator:
        raise DataError(file.path, f"expected {_SAMPLE}, got {shorten(' '.join(names))}")
    table = read_named_table(hinted)
    frame = table.frame.drop(LINE_COLUMN)
    return {
        name: frame[str(number)].fill_null("").to_list()
        for number, name in enumerate(table.names)
        if name
    }


def _json_table(file: DataFile) -> Table:
    records: list[Any] = []
    if file.has_json_lines and len(file.rows) > 1:
        for block in read_lines(file.path):
            records += block.values
    else:
        document = read_document(file.path)
        records = _matrix_records(document) if isinstance(document, dict) else document
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DataError(file.path, f"expected {_SAMPLE}, got {shorten(records)}")
    table: Table = {name: [] for name in dict.fromkeys(chain.from_iterable(records))}
    for record in records:
        for name, column in table.items():
            column.append(_text(record.get(name)))
    return table


def _matrix_records(document: Mapping[str, Any]) -> list[Any]:
    """Return an object of objects as records of true group, label and count."""
    records = list[Any]()
    for truth, counts in document.items():
        if not isinstance(counts, dict):
            return [document]
        for label, count in counts.items():
            records.append({"true": truth, "label": label, "count": count})
    return records


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value).strip()


def _columns(path: Path, names: Sequence[str], options: Mapping[str, str]) -> dict[str, str]:
    """Return the file's column of each kind: the user's choice, or the first known name."""
    columns = dict[str, str]()
    by_snake_case = {snake_case(name): name for name in reversed(names)}
    for kind, known in _FOLDED.items():
        if kind in options:
            if options[kind] not in names:
                raise DataError(path, str(unknown("column", options[kind], names)))
            columns[kind] = options[kind]
            continue
        names_of_kind = [by_snake_case[name] for name in known if name in by_snake_case]
        if names_of_kind:
            columns[kind] = names_of_kind[0]
    if "true" not in columns:
        raise DataError(
            path,
            f"expected {_SAMPLE}, got {', '.join(names) or 'nothing'}; name the column of the true "
            "group: FILE:true=COLUMN",
        )
    return columns


def _table_of_counts(path: Path, table: Table, truth: str) -> pl.DataFrame:
    """Return a table with a column of counts for each label as a row for each cell."""
    frame = pl.DataFrame(table)
    labels = [name for name in table if name != truth]
    cells = frame.unpivot(labels, index=truth, variable_name="label", value_name="count")
    if len(labels) < 2 or cells["count"].cast(pl.Float64, strict=False).null_count():
        raise DataError(
            path,
            f"expected {_SAMPLE}, got {', '.join(table)}; name the column of labels: "
            "FILE:label=COLUMN",
        )
    unknown_cells = [pl.lit(None, dtype=pl.String).alias(name) for name in ("id", "part")]
    return cells.rename({truth: "truth"}).with_columns(unknown_cells).select(list(_SCHEMA))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _refuse_probabilities(path: Path, labels: pl.Series) -> None:
    """Refuse a detector's scores in place of the labels that a cut gives."""
    numbers = labels.cast(pl.Float64, strict=False)
    if numbers.null_count() or not numbers.is_between(0, 1).all():
        return
    is_fraction = (numbers > 0) & (numbers < 1)
    if is_fraction.any() or numbers.n_unique() > _MOST_LABELS:
        example = str(labels.filter(is_fraction).first())
        raise DataError(
            path,
            f"expected the label of each document, got a probability: {example}; cut the "
            "probabilities, such as at .5, and give the labels of that cut",
        )

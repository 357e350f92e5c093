"""Read how often labels are wrong: rates that a user states, or a sample that was checked.

Labels may come from a detector or a crowd, and some are wrong; an audit corrects its answers for
known rates of errors. ``ai:fpr=.02,fnr=.05`` states two rates: how often a document that is not ai
is labelled ai (false positives), and how often a document that is ai is not labelled ai (false
negatives).
``fpr=2/100`` says that 2 of 100 checked documents were wrong, so that the rate is uncertain. With
``by=length:3`` documents are divided into three *parts*, and each part has a rate of its own, such
as ``fpr=.08|.02|.01``.

A *checked sample* is some documents whose true group is known. Its file has a row for each
document, with its true and its labelled group; or a row for each combination of these, with a
count; or a table of counts, with a row for each true group and a column for each label.
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
from ranktilt.errors import DataError, UserError, shorten, unknown_name

EXPECTED = "expected rates, such as ai:fpr=.02,fnr=.05, or the file of a checked sample"
"""What ``--label-errors`` takes, for messages."""
_RATE_KEYS = ("fpr", "fnr", "by")
"""Keys of stated rates."""
_FILE_KEYS = ("true", "label", "count", "id", "by")
"""Keys of the columns of a checked sample."""
_SAMPLE_COLUMNS = {
    "true": (
        "true",
        "truth",
        "true_label",
        "true_group",
        "gold",
        "actual",
        "reference",
        "checked",
    ),
    "label": (
        "label",
        "labelled",
        "labeled",
        "predicted",
        "prediction",
        "pred",
        "detected",
        "observed",
    ),
    "count": ("count", "n", "documents", "pages", "number"),
    "id": DOCUMENT,
}
"""Possible names of each column of a checked sample, in the order of preference."""
_EXPECTED_SAMPLE = "labels of a checked sample, in the columns true and label (and count)"
"""What the file of a sample must hold, for messages."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often labels of one group are wrong."""

    value: float
    """Share of the documents whose label is wrong, from 0 to 1."""
    checked: float = np.inf
    """Number of documents that were checked; infinite if the rate is taken as known."""


@dataclass(frozen=True, kw_only=True)
class StatedRates:
    """Rates as a user states them, one for each part of the documents."""

    group: str
    """The group that labels detect; all other documents form the other group."""
    false_positive: tuple[Rate, ...]
    """How often a document of the other group is labelled `group`."""
    false_negative: tuple[Rate, ...]
    """How often a document of `group` is labelled as of the other group."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedSample:
    """Documents whose true group is known, with their labels."""

    path: str
    """Path of the file."""
    rows: pl.DataFrame
    """Columns ``truth``, ``label``, ``count``, ``id`` and ``part``; the last two may be null."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelErrors:
    """How often labels are wrong: the rates or the sample that a user names."""

    text: str
    """The rates, or the name of the file, as the user wrote them."""
    by: str = ""
    """Column, such as ``length:3``, in whose parts rates differ; empty if there are no parts."""
    rates: StatedRates | None = None
    """The stated rates; None if there is a sample."""
    sample: CheckedSample | None = None
    """The checked sample; None if there are rates."""

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read ``GROUP:fpr=.02,fnr=.05``, or the name of a file, with ``:by=COLUMN`` for parts.

        Raises
        ------
        UserError
            If a rate lies outside 0 to 1, or the rates add up to 1 or more: labels would then say
            nothing about the groups.
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
    """Return whether pairs of key and value state a rate."""
    return any(key in ("fpr", "fnr") for key, _value in pairs)


def _options(text: str, pairs: Sequence[tuple[str, str]], valid: Sequence[str]) -> dict[str, str]:
    """Return values by key; refuse a key that is not valid, or comes twice.

    `text` is what the user wrote, for errors.
    """
    options = dict[str, str]()
    for key, value in pairs:
        if key not in valid:
            raise UserError(f"--label-errors {text}: {unknown_name('key', key, valid)}")
        if key in options:
            raise UserError(f"--label-errors {text}: {key} occurs twice")
        options[key] = value
    return options


# ---- stated rates -------------------------------------------------------------------------------


def _stated_rates(text: str, group: str, options: Mapping[str, str]) -> StatedRates:
    """Read the rates of a group from the options of the user's `text`."""
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


def _rates(text: str, key: str, value: str) -> tuple[Rate, ...]:
    """Read the rates of all parts: ``.08|.02|.01``."""
    return tuple(_rate(text, key, rate_text) for rate_text in value.split("|"))


def _rate(text: str, key: str, rate_text: str) -> Rate:
    """Read a rate: ``.02``, ``2%``, or ``2/100`` of a checked sample."""
    number, slash, total = rate_text.partition("/")
    if slash:
        error_count, checked = _number(number), _number(total)
        rate = Rate(value=error_count / checked if checked > 0 else np.nan, checked=checked)
    elif number.strip().endswith("%"):
        rate = Rate(value=_number(number.strip()[:-1]) / 100)
    else:
        rate = Rate(value=_number(number))
    if not 0 <= rate.value <= 1:  # or NaN, which is no number
        raise UserError(
            f"--label-errors {text}: expected {key} as a rate from 0 to 1, such as .02, or as "
            f"errors among checked documents, such as 2/100; got {rate_text.strip()}"
        )
    return rate


# ---- a checked sample ---------------------------------------------------------------------------


def read_sample(path: str | Path, options: Mapping[str, str]) -> CheckedSample:
    """Read the file of a checked sample: CSV, TSV, JSON lines or JSON.

    Rows have the columns ``true`` and ``label``, and may have ``count``, ``id`` and the column of
    parts; or they have ``true`` and a column of counts for each label. JSON may also be an object
    of objects: ``{"human": {"human": 98, "ai": 2}, …}``, the true group first.

    Parameters
    ----------
    path : str or Path
        The file.
    options : mapping
        The user's names of columns by the keys of `_FILE_KEYS`; ``by`` is the column of parts.
    """
    path = require_path(path)
    file = DataFile(path=path)
    if file.binary or b"\0" in file.start:
        raise DataError(path, f"expected {_EXPECTED_SAMPLE}, got {file.binary or 'binary data'}")
    if not file.start.strip():
        raise DataError(path, f"expected {_EXPECTED_SAMPLE}, got an empty file")
    table = _json_table(file) if file.has_json else _text_table(file, options)
    columns = _column_names(path, list(table), options)
    by = options.get("by", "")
    content = {
        "truth": table[columns["true"]],
        "id": table.get(columns.get("id", "")),
        "part": table.get(by),
    }
    if "label" in columns:
        content["label"] = table[columns["label"]]
        ones = ["1"] * len(content["truth"] or ())
        content["count"] = table.get(columns.get("count", ""), ones)
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
"""Columns of a sample while it is read."""
Table = dict[str, list[str]]
"""Columns of a file by their names, as strings without blanks around them."""


def _text_table(file: DataFile, options: Mapping[str, str]) -> Table:
    """Read a delimited table; `DataError` if the file is none."""
    header = re.split(r"[\t,;|]", file.rows[0]) if file.rows else []
    names = [name.strip().strip('"') for name in header]
    known = set(chain.from_iterable(_SAMPLE_COLUMNS.values()))
    # A `DataFile` finds its separator by the names of columns. It knows those of runs and labels,
    # and has to be told those of samples.
    known_names = {name: name for name in names if snake_case(name) in known}
    file = DataFile(path=file.path, columns={**known_names, **options})
    if not file.separator:
        raise DataError(file.path, f"expected {_EXPECTED_SAMPLE}, got {shorten(' '.join(names))}")
    table = read_named_table(file)
    frame = table.frame.drop(LINE_COLUMN)
    return {
        name: frame[str(position)].fill_null("").to_list()
        for position, name in enumerate(table.names)
        if name
    }


def _json_table(file: DataFile) -> Table:
    """Read JSON lines, a JSON list of records, or an object of objects."""
    records: list[Any] = []
    if file.has_json_lines and len(file.rows) > 1:
        for block in read_lines(file.path):
            records += block.values
    else:
        document = read_document(file.path)
        records = _matrix_records(document) if isinstance(document, dict) else document
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DataError(file.path, f"expected {_EXPECTED_SAMPLE}, got {shorten(records)}")
    table: Table = {name: [] for name in dict.fromkeys(chain.from_iterable(records))}
    for record in records:
        for name, column in table.items():
            column.append(_cell_text(record.get(name)))
    return table


def _matrix_records(document: Mapping[str, Any]) -> list[Any]:
    """Return ``{true group: {label: count}}`` as records; any other object as the only record."""
    records = list[Any]()
    for truth, counts in document.items():
        if not isinstance(counts, dict):
            return [document]
        for label, count in counts.items():
            records.append({"true": truth, "label": label, "count": count})
    return records


def _cell_text(value: Any) -> str:
    """Return a value of JSON as the text that a delimited table would have; empty for null."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value).strip()


def _column_names(path: Path, names: Sequence[str], options: Mapping[str, str]) -> dict[str, str]:
    """Return the name in a file of each column of a sample.

    It is the user's choice in `options`, or else the first known name among `names`.
    """
    columns = dict[str, str]()
    # Reversed, so that the first of several columns with one spelling counts.
    by_snake_case = {snake_case(name): name for name in reversed(names)}
    for column, known in _SAMPLE_COLUMNS.items():
        if column in options:
            if options[column] not in names:
                raise DataError(path, str(unknown_name("column", options[column], names)))
            columns[column] = options[column]
            continue
        names_in_file = [by_snake_case[name] for name in known if name in by_snake_case]
        if names_in_file:
            columns[column] = names_in_file[0]
    if "true" not in columns:
        raise DataError(
            path,
            f"expected {_EXPECTED_SAMPLE}, got {', '.join(names) or 'nothing'}; name the column of "
            "the true group: FILE:true=COLUMN",
        )
    return columns


def _table_of_counts(path: Path, table: Table, truth: str) -> pl.DataFrame:
    """Return the rows of a table of counts, a row for each cell.

    `truth` is the column of the true group; each other column has the counts of a label.
    """
    frame = pl.DataFrame(table)
    labels = [name for name in table if name != truth]
    cells = frame.unpivot(labels, index=truth, variable_name="label", value_name="count")
    if len(labels) < 2 or cells["count"].cast(pl.Float64, strict=False).null_count():
        raise DataError(
            path,
            f"expected {_EXPECTED_SAMPLE}, got {', '.join(table)}; name the column of labels: "
            "FILE:label=COLUMN",
        )
    missing_columns = [pl.lit(None, dtype=pl.String).alias(name) for name in ("id", "part")]
    return cells.rename({truth: "truth"}).with_columns(missing_columns).select(list(_SCHEMA))


def _number(text: str) -> float:
    """Read a number; NaN for any other text."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _refuse_probabilities(path: Path, labels: pl.Series) -> None:
    """Refuse a detector's probabilities in place of labels, which result from cutting them."""
    numbers = labels.cast(pl.Float64, strict=False)
    if numbers.null_count() or not numbers.is_between(0, 1).all():
        return
    is_fraction = (numbers > 0) & (numbers < 1)
    if is_fraction.any():
        example = str(labels.filter(is_fraction).first())
        raise DataError(
            path,
            f"expected the label of each document, got a probability: {example}; cut the "
            "probabilities, such as at .5, and give the labels of that cut",
        )

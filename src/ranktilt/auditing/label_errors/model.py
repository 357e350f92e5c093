"""The error rates of labels: what a user states or has checked, fitted to an audit's groups.

A label says which group a document belongs to, and may be wrong. The rates are either stated
(`StatedRates`) or counted in a sample of documents whose true group somebody has checked
(`CheckedSample`). They may differ between *parts* of the documents, such as languages. The rates of
one part are a `Confusion`: a matrix of how often documents of each group get each label. Its
determinant J is 1 if labels are right and 0 if they say nothing about groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import Groups
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_errors import CheckedSample, LabelErrors, StatedRates
from ranktilt.data.text.label_values import SEVERAL
from ranktilt.errors import DataError, UserError, counted, unknown_name
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.label_errors import FEWEST_ERRORS, Confusion

OPTION = "--label-errors"
"""Option of the command line that names the rates; messages begin with it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelModel:
    """The error rates of each document's label."""

    groups: Groups
    """Groups of all documents by the labels as they are."""
    parts: tuple[str, ...]
    """Names of the parts of the documents whose rates differ; a single "" if no rates differ."""
    confusions: tuple[Confusion, ...]
    """Rates of each part, with labels and groups in the order of `groups`."""
    part: Ints
    """Index in `parts` of each document, by row."""

    @property
    def is_plain(self) -> bool:
        """Whether there are two groups, and all documents have the same rates.

        Then each corrected answer is the observed one, divided by J and moved; J is the determinant
        of the rates.
        """
        return len(self.parts) == 1 and len(self.groups.names) == 2

    @property
    def cells(self) -> Groups:
        """Documents grouped into cells: all documents of one part and one label.

        The number of a cell is part · (number of labels) + label; −1 for a document without a
        label.
        """
        label_count = len(self.groups.names)
        names = map(" ".join, product(self.parts, self.groups.names))
        code = np.where(self.groups.code >= 0, self.part * label_count + self.groups.code, -1)
        return Groups(by=self.groups.by, names=tuple(names), code=code)

    def cell_values(self, weights: Floats) -> Floats:
        """Return what a document of each cell counts in an answer on average, shape (n_cells,).

        `weights` are what a document of each group counts in it: 1 and −1 for the difference of two
        groups.
        """
        return np.concatenate([weights @ confusion.inverse for confusion in self.confusions])

    def error_parts(self, weights: Floats, cell_totals: Floats) -> Floats:
        """Return the standard error that each uncertain rate adds to an answer, with its sign.

        The squares of these parts sum to the variance that uncertain rates add. `weights` are those
        of `cell_values`. `cell_totals` are the sums that the answer is made of, by cell, minus what
        they would be at the neutral value: an answer that is neutral stays so whatever the rates.
        """
        by_part = cell_totals.reshape(len(self.parts), -1)
        parts = [
            confusion.error_parts(weights, totals)
            for confusion, totals in zip(self.confusions, by_part, strict=True)
        ]
        return np.concatenate(parts)


def label_model(errors: LabelErrors, collection: Collection | None, groups: Groups) -> LabelModel:
    """Fit error rates to the groups of a collection.

    `errors` are the rates or the checked sample that a user names. `collection` may be None if the
    rates hold for all documents.

    Raises
    ------
    UserError
        If a group or a column is unknown, rates do not fit the parts or the number of groups, or
        labels say too little about groups.
    """
    if len(groups.names) < 2:
        raise UserError(f"{OPTION} needs two groups or more; choose their column with --by")
    try:
        parts, part = _parts_of_documents(errors, collection, groups)
        if errors.rates is not None:
            groups.index(errors.rates.group)
    except UserError as error:
        if str(error).startswith(OPTION):
            raise
        raise UserError(f"{OPTION} {errors.text}: {error}") from error
    if errors.rates is not None:
        confusions = _stated_confusions(errors, errors.rates, groups, parts)
    elif errors.sample is not None:
        sample = _grouped_sample(errors.sample, groups)
        if errors.by:
            sample = _with_parts(errors, sample, _require_documents(collection), parts, part)
        confusions = _sample_confusions(errors, sample, groups, parts)
    for name, confusion in zip(parts, confusions, strict=True):
        _require_information(errors, confusion, name)
    return LabelModel(groups=groups, parts=parts, confusions=tuple(confusions), part=part)


def _parts_of_documents(
    errors: LabelErrors, collection: Collection | None, groups: Groups
) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the parts, and the number of each document's part."""
    if not errors.by:
        return ("",), np.zeros(len(groups.code), dtype=np.int64)
    documents = _require_documents(collection)
    parts = grouping(documents, errors.by, fewest=1)
    is_unknown = (groups.code >= 0) & (parts.code < 0)
    if is_unknown.any():
        count = int(is_unknown.sum())
        number = counted(count, "labelled document has", "labelled documents have")
        first = documents.ids[int(is_unknown.argmax())]
        raise UserError(
            f"{OPTION} {errors.text}: {number} no {errors.by} (first: {first!r}), so no rates; "
            "fill the column, or state one rate for all"
        )
    return parts.names, parts.code


def _require_documents(collection: Collection | None) -> Collection:
    """Return the collection; refuse rates by parts where there is none."""
    if collection is None:
        raise UserError(f"rates by parts of the documents need these; audit again with {OPTION}")
    return collection


def _stated_confusions(
    errors: LabelErrors, rates: StatedRates, groups: Groups, parts: Sequence[str]
) -> list[Confusion]:
    """Return the confusion of each part from stated rates, which need two groups."""
    if len(groups.names) > 2:
        raise UserError(
            f"{OPTION} {errors.text}: {len(groups.names)} groups ({', '.join(groups.names)}) need "
            "all rates between them: name the file of a checked sample, or compare one group with "
            f"all others (--pair {rates.group},rest)"
        )
    positive_index = groups.index(rates.group)
    rates_of_parts = list(zip(rates.false_positive, rates.false_negative, strict=True))
    if len(rates_of_parts) == 1:
        rates_of_parts *= len(parts)
    if len(rates_of_parts) != len(parts):
        raise UserError(
            f"{OPTION} {errors.text}: expected {len(parts)} rates, one for each part of "
            f"{errors.by} ({', '.join(parts)}), got {len(rates_of_parts)}"
        )
    confusions = []
    for false_positive, false_negative in rates_of_parts:
        confusion = Confusion.from_rates(
            false_positive=false_positive.value,
            false_negative=false_negative.value,
            checked_negative=false_positive.checked,
            checked_positive=false_negative.checked,
        )
        # `from_rates` puts the positive group first.
        confusions.append(confusion if positive_index == 0 else _swap_groups(confusion))
    return confusions


def _swap_groups(confusion: Confusion) -> Confusion:
    """Return the confusion with its two groups in the reverse order."""
    return Confusion(rates=confusion.rates[::-1, ::-1], checked=confusion.checked[::-1])


def _grouped_sample(sample: CheckedSample, groups: Groups) -> pl.DataFrame:
    """Return the sample's rows with the numbers of their true and labelled groups."""
    numbers = _group_numbers(groups)
    columns = {}
    for column in ("truth", "label"):
        names = sample.rows[column]
        unknown_names = names.filter(~names.is_in(list(numbers)))
        if len(unknown_names):
            message = str(unknown_name(groups.by or "group", unknown_names[0], numbers))
            raise DataError(sample.path, f"{message}; leave out the rows of other groups")
        columns[column] = names.replace_strict(numbers, return_dtype=pl.Int64)
    return sample.rows.with_columns(**columns)


def _group_numbers(groups: Groups) -> dict[str, int]:
    """Return the number of the group that each name or label belongs to.

    A group may unite several labels: its name then lists them, or it is the last group, such as
    ``rest``.
    """
    numbers = {name: number for number, name in enumerate(groups.names)}
    for name, number in list(numbers.items()):
        for label in name.split(SEVERAL):
            numbers.setdefault(label, number)
    for label in groups.merged:
        numbers.setdefault(label, len(groups.names) - 1)
    return numbers


def _sample_confusions(
    errors: LabelErrors, rows: pl.DataFrame, groups: Groups, parts: Sequence[str]
) -> list[Confusion]:
    """Return the confusion of each part from the rows of a checked sample.

    Raises `DataError` if no document of a group was checked.
    """
    if not errors.by:
        rows = rows.with_columns(part=pl.lit(0, dtype=pl.Int64))
    confusions = []
    for number, name in enumerate(parts):
        counts = _checked_counts(rows.filter(pl.col("part") == number), len(groups.names))
        empty = np.flatnonzero(counts.sum(axis=0) == 0)
        if len(empty):
            where = f" of {errors.by} {name!r}" if name else ""
            raise DataError(
                _path(errors),
                f"no checked document{where} is truly {groups.names[empty[0]]!r}; check some of "
                "every group",
            )
        confusions.append(Confusion.from_counts(counts))
    return confusions


def _with_parts(
    errors: LabelErrors,
    rows: pl.DataFrame,
    collection: Collection,
    parts: Sequence[str],
    part: Ints,
) -> pl.DataFrame:
    """Add the number of each checked document's part, from the sample's own column or by its id.

    `parts` are the names of the parts, and `part` is the number of each document's part.
    """
    numbers: Mapping[str, int] = {name: number for number, name in enumerate(parts)}
    keys, noun = rows["part"], "part"
    if keys.null_count():
        keys, noun = rows["id"], "document"
        numbers = dict(zip(collection.docs["id"], part.tolist(), strict=True))
    if keys.null_count():
        raise DataError(
            _path(errors),
            f"expected a column id or {errors.by!r}, to know which part each checked document is "
            "of; name it: FILE:id=COLUMN",
        )
    unknown_keys = keys.filter(~keys.is_in(list(numbers)))
    if len(unknown_keys):
        valid = ", ".join(parts) if noun == "part" else "ids of the collection"
        raise DataError(_path(errors), f"unknown {noun} {unknown_keys[0]!r} (valid: {valid})")
    return rows.with_columns(part=keys.replace_strict(numbers, return_dtype=pl.Int64))


def _checked_counts(rows: pl.DataFrame, group_count: int) -> Floats:
    """Count checked documents by label and true group, shape (labels, groups)."""
    counts = np.zeros((group_count, group_count))
    np.add.at(
        counts, (rows["label"].to_numpy(), rows["truth"].to_numpy()), rows["count"].to_numpy()
    )
    return counts


def _path(errors: LabelErrors) -> str:
    """Return the file of the checked sample; without a sample, the text of the option."""
    return errors.sample.path if errors.sample is not None else errors.text


def _require_information(errors: LabelErrors, confusion: Confusion, part: str) -> None:
    """Refuse labels that say nothing about groups, or may say nothing as far as is known."""
    where = f" for {errors.by} {part!r}" if part else ""
    if confusion.says_nothing:
        raise UserError(
            f"{OPTION} {errors.text}: with these rates labels say nothing about the groups{where}, "
            "so that no answer can be corrected"
        )
    if confusion.strength < FEWEST_ERRORS:
        checked = confusion.checked[np.isfinite(confusion.checked)]
        number = int(checked.sum())
        documents = counted(number, "document that was checked", "documents that were checked")
        leave = "leaves" if number == 1 else "leave"
        name = "sensitivity + specificity − 1"
        if confusion.size > 2:
            name = "the determinant of their rates"
        raise UserError(
            f"{OPTION} {errors.text}: {documents}{where} {leave} open whether "
            f"labels say anything ({name} = {confusion.information:.2f} ± "
            f"{confusion.information_error:.2f}); check more"
        )

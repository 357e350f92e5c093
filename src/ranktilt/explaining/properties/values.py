"""Properties of documents as numbers: columns of the collection, and features of texts.

A *probe* measures a *feature* of each text, such as its length. Either kind of number is a
*property*, with which a gap between groups may go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.data.collection import DOC_COLUMNS, POOL, Collection
from ranktilt.data.labels.label_file import LENGTH
from ranktilt.data.text.label_values import as_numbers, known_labels
from ranktilt.errors import UserError, join_words, refuse_twice, unknown_name
from ranktilt.explaining.base import TextProbe
from ranktilt.explaining.probe_table import probe, probe_classes
from ranktilt.explaining.properties.result import GapProperty, LeftOutProperty
from ranktilt.explaining.text_probes import (
    QueryWordsProbe,
    ReadabilityProbe,
    SentenceLengthProbe,
    TypeTokenProbe,
    WordsProbe,
)
from ranktilt.generation.versions.design import PREFIX

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
PropertyName = str | TextProbe
"""Name of a column of numbers, text that names a probe, or a probe."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredProperty:
    """A property, and its value for every document."""

    about: GapProperty
    """Name, unit and kind of the property."""
    values: Floats
    """Value of each document, in the order of ``collection.docs``; NaN if unknown."""
    probe: TextProbe | None = None
    """Probe that measured it, if it is a feature of texts; its values may depend on the query."""

    @classmethod
    def from_column(cls, name: str, column: pl.Series) -> MeasuredProperty:
        """Make a property of a column of numbers; infinite values count as unknown."""
        values = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        about = GapProperty(name=name, unit="", kind="column")
        return cls(about=about, values=np.where(np.isfinite(values), values, np.nan))

    @classmethod
    def from_probe(
        cls, feature: TextProbe, collection: Collection, groups: Groups
    ) -> MeasuredProperty:
        """Measure every text with a probe.

        Some probes learn from the texts of a reference; they learn from the first group here.
        """
        values = feature.measure(_by_group(collection, groups), groups.names[0], None)
        about = GapProperty(name=feature.label or feature.name, unit=feature.unit, kind="text")
        return cls(about=about, values=values, probe=feature)

    def of_entries(self, collection: Collection, query: Ints, document: Ints) -> Floats:
        """Return the value of each pair of a query and a document, both given by their rows."""
        if self.probe is None:
            return self.values[document]
        return self.probe.of_pairs(collection, self.values, query, document)


@dataclass(frozen=True, kw_only=True, eq=False)
class PropertyTable:
    """All measured properties, and those without numbers."""

    measured: tuple[MeasuredProperty, ...]
    """Properties with their values."""
    left_out: tuple[LeftOutProperty, ...]
    """Columns without numbers."""
    has_texts: bool
    """Whether the collection has texts."""


class NoPropertiesError(UserError):
    """Error for documents that have neither a column of numbers nor a text."""

    def __init__(self, collection: Collection, left_out: Sequence[LeftOutProperty]) -> None:
        holder = collection.spec.get("labels", "the collection")
        columns = "no column of numbers besides the labels"
        if left_out:
            names = join_words([column.name for column in left_out])
            columns = f"no column of numbers ({names} {'hold' if left_out[1:] else 'holds'} none)"
        super().__init__(
            f"nothing to explain the gap with: {holder} has {columns}; add a column that could go "
            "with it, such as each document's words, age, price or clicks, and explain again"
        )


def has_texts(collection: Collection) -> bool:
    """Return whether any document has a text; a collection of labels has none."""
    return bool((collection.docs["text"] != "").any())


def text_features() -> list[TextProbe]:
    """Return the features of texts that are measured by default.

    Perplexity and specificity are not among them, because they learn from the texts of one group.
    That alone makes their values differ between groups, and would give them a part of the gap.
    """
    return [
        WordsProbe(),
        SentenceLengthProbe(),
        ReadabilityProbe(),
        TypeTokenProbe(),
        QueryWordsProbe(),
    ]


def measure_properties(
    collection: Collection,
    groups: Groups,
    names: Sequence[PropertyName] | None,
    *,
    with_query_words: bool = True,
) -> PropertyTable:
    """Read columns of numbers, and measure features of texts.

    Parameters
    ----------
    collection : Collection
        The documents.
    groups : Groups
        The groups that are compared; their own column is no property.
    names : sequence of str or TextProbe, or None
        Columns and probes; None for all columns of numbers and the default features of texts.
    with_query_words : bool, optional
        Whether the default features include the share of a query's words; False if the collection
        has no texts of queries.

    Raises
    ------
    UserError
        If a property is unknown, given twice or not a number, or there are no properties.
    """
    if names is None:
        return _all_properties(collection, groups, with_query_words=with_query_words)
    columns = {column.name: column for column in _columns(collection, groups)}
    measured = []
    for name in names:
        if isinstance(name, str) and name in columns:
            measured.append(_named_column(columns[name]))
        else:
            numbers = [column for column in columns if _numbers(columns[column]) is not None]
            measured.append(_named_probe(name, collection, groups, numbers))
    refuse_twice([measurement.about.name for measurement in measured], "property")
    if not measured:
        raise UserError("expected at least one property, such as words")
    return PropertyTable(measured=tuple(measured), left_out=(), has_texts=has_texts(collection))


def _all_properties(
    collection: Collection, groups: Groups, *, with_query_words: bool
) -> PropertyTable:
    """Measure every column of numbers, and every feature of texts that is no column."""
    measured, left_out = [], []
    for column in _columns(collection, groups):
        numbers = _numbers(column)
        if numbers is None:
            left_out.append(LeftOutProperty(name=column.name, reason="no number"))
        else:
            measured.append(MeasuredProperty.from_column(column.name, numbers))
    with_texts = has_texts(collection)
    taken_names = {measurement.about.name for measurement in measured}
    if groups.by == LENGTH:  # the groups are made from it
        taken_names.add(LENGTH)
    features = text_features() if with_texts else []
    if not with_query_words:
        features = [feature for feature in features if not isinstance(feature, QueryWordsProbe)]
    for feature in features:
        if not {feature.name, feature.label} & taken_names:
            measured.append(MeasuredProperty.from_probe(feature, collection, groups))
    if not measured:
        raise NoPropertiesError(collection, left_out)
    return PropertyTable(measured=tuple(measured), left_out=tuple(left_out), has_texts=with_texts)


def _columns(collection: Collection, groups: Groups) -> list[pl.Series]:
    """Return the columns that may be properties: no ids, texts, groups or levels of a design."""
    reserved_names = {*DOC_COLUMNS, groups.by, POOL}
    return [
        column
        for column in collection.docs.iter_columns()
        if column.name not in reserved_names and not column.name.startswith(PREFIX)
    ]


def _numbers(column: pl.Series) -> pl.Series | None:
    """Return a column as numbers; None if it holds none."""
    if column.dtype == pl.Boolean:
        return column.cast(pl.Int64)
    if column.dtype == pl.Binary or column.dtype.is_nested():
        return None
    numbers = as_numbers(known_labels(column))
    return numbers if numbers.dtype.is_numeric() and numbers.count() else None


def _named_column(column: pl.Series) -> MeasuredProperty:
    """Return a column as a property; `UserError` if it holds no numbers."""
    numbers = _numbers(column)
    if numbers is None:
        raise UserError(f"property {column.name!r}: expected a column of numbers")
    return MeasuredProperty.from_column(column.name, numbers)


def _named_probe(
    name: PropertyName, collection: Collection, groups: Groups, columns: list[str]
) -> MeasuredProperty:
    """Measure a feature of texts; `UserError` if there is none of this name.

    `columns` are the names of columns of numbers, for the error.
    """
    if isinstance(name, str) and not has_texts(collection):
        raise unknown_name("property", name, columns)
    if isinstance(name, str) and name.split(":")[0].split("(")[0] not in probe_classes():
        raise unknown_name("property", name, [*columns, *probe_classes()])
    feature = probe(name)
    if not isinstance(feature, TextProbe) or feature.needs_encoder:
        raise UserError(
            f"{feature.name} does not give a number for each text, so it cannot be a property"
        )
    feature.check()
    return MeasuredProperty.from_probe(feature, collection, groups)


def _by_group(collection: Collection, groups: Groups) -> Collection:
    """Return the collection with the groups as sources, because probes compare sources."""
    if groups.by == "source":
        return collection
    names = [groups.names[code] if code >= 0 else None for code in groups.code.tolist()]
    docs = collection.docs.with_columns(source=pl.Series(names, dtype=pl.String))
    return Collection(docs, collection.queries, collection.qrels, collection.spec)

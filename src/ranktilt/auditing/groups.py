"""Who belongs to which group, and which groups are twins of each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import POOL, Collection
from ranktilt.data.group_names import REST, name_among, read_sides
from ranktilt.data.label_file import LENGTH
from ranktilt.data.label_remarks import (
    MOST_PAIRED,
    MOST_VALUES,
    label_remarks,
    parts_of_numbers,
    parts_words,
    short_number,
)
from ranktilt.data.notes.inputs import LabelNote, NumberLabels, PropertyLabels
from ranktilt.data.stated_sources import no_source
from ranktilt.data.text.label_values import SEVERAL, as_numbers, known_labels, split_labels
from ranktilt.data.text.quality import words
from ranktilt.errors import UserError, counted, nearest, unknown

ALL = "all"
MOST_GROUPS = 50
BINS = range(2, 11)
_SHOWN = 12
_SINGLE = ("id", "text", "title", "origin")
Pair = tuple[str, str]
_VALUE = re.compile(r"-?(?:\d+\.\d*|\.\d+)|-\d+")
"""A value that divides a column in two; a whole number is a number of bins instead."""
_HALVES = ("below {}", "{} and above")
_HIGH, _LOW = "high-", "low-"


@dataclass(frozen=True)
class Groups:
    """A grouping of a collection's documents by one column, or by bins of its numbers."""

    by: str | None
    """The column; ``length`` for bins of the number of words."""
    names: tuple[str, ...]
    code: npt.NDArray[np.int64]
    """Group number of each document row; -1 for a document without one."""
    outside: int = 0
    """Documents that a pool left out: without a twin by design, they are of neither source."""
    merged: tuple[str, ...] = ()
    """Groups that are the last one together."""
    sets: tuple[tuple[int, ...], ...] = ()
    """Groups that some document has together, each combination once."""
    set_of: npt.NDArray[np.int64] | None = None
    """Number of each document's combination, -1 for none; None where none is of several groups."""
    remarks: tuple[LabelNote, ...] = ()
    """What a reader should know of the labels as they are written."""
    values: npt.NDArray[np.float64] | None = None
    """The number of each document where groups are the ends of a property; NaN where unknown.

    See `property_sides`.
    """

    @property
    def mean_value(self) -> float:
        """Mean of the property over the documents that have a number."""
        return float(np.nanmean(self._known_values))

    @property
    def spread_of_values(self) -> float:
        """Standard deviation of the property over the documents that have a number."""
        return float(np.nanstd(self._known_values))

    @property
    def _known_values(self) -> npt.NDArray[np.float64]:
        return np.array([np.nan]) if self.values is None else self.values

    @property
    def unlabelled(self) -> int:
        """Documents without a group, those outside of a pool and those of several not counted."""
        return int((self.code < 0).sum()) - self.outside - self.several if self.by else 0

    @property
    def several(self) -> int:
        """Documents of several groups, which are of neither side where two groups are compared."""
        return 0 if self.set_of is None else int((self.set_of >= 0).sum())

    def number(self, name: str) -> int:
        """Return the number of a group or side by its name; `UserError` where there is none."""
        known_name = name_among(name, self.names)
        if known_name is None:
            near = nearest(name, self.merged, _SHOWN)
            raise unknown(self.by or "group", name, [*near, *self.names])
        return self.names.index(known_name)

    @property
    def kind(self) -> npt.NDArray[np.int64]:
        """Kind of each document: its group, or its combination of groups; the last is no label."""
        no_label = len(self.names) + len(self.sets)
        kind = np.where(self.code >= 0, self.code, no_label)
        if self.set_of is None:
            return kind
        return np.where(self.set_of >= 0, len(self.names) + self.set_of, kind)

    @property
    def parts(self) -> npt.NDArray[np.float64]:
        """Share of each group in a document of each kind; the last column is for no label."""
        groups = len(self.names)
        table = np.zeros((groups + len(self.sets) + 1, groups + 1))
        table[np.arange(groups), np.arange(groups)] = 1.0
        table[-1, -1] = 1.0
        for number, members in enumerate(self.sets):
            table[groups + number, list(members)] = 1 / len(members)
        return table


def grouping(
    collection: Collection, by: str | None, keep: Iterable[str] = (), *, fewest: int = 2
) -> Groups:
    """Group the documents by a column, or by bins of its numbers.

    Under ``source``, human comes first; other groups are in the order of their names. ``COLUMN:N``
    makes bins of numbers, ``length:N`` of the words of the texts; equal values are in one bin. Of
    more than `MOST_GROUPS`, those to `keep` remain and all others become one, as with `REST` or
    ``non-Europe``. Then a document of several groups (``Europe|Asia``) is of the first group that
    remains; without such a group it is of none of them alone.

    Fewer groups than `fewest` are refused. Where that is 1, one group is enough if some documents
    have none.
    """
    if by is None:
        return Groups(None, (), np.full(collection.docs.height, -1))
    keep = list(keep)
    # A command checks groups before it ranks, and audits them afterwards: they are made once.
    return collection.memo(
        ("groups", by, repr(keep), fewest),
        lambda: _make_groups(collection, by, keep, fewest=fewest),
    )


def property_sides(by: str) -> Pair:
    """Name the two ends of a property: documents above and below its mean."""
    return f"{_HIGH}{by}", f"{_LOW}{by}"


def is_property(collection: Collection, by: str | None) -> bool:
    """Return whether a column holds more than ten different numbers, so that no value is a group.

    It is then a property that documents have more or less of, such as popularity, age or price.
    """
    if by is None or by == "source":
        return False
    columns = [name for name in collection.docs.columns if name not in _SINGLE]
    if by not in columns or collection.docs[by].dtype == pl.Binary:
        return False
    numbers = as_numbers(known_labels(collection.docs[by]))
    return numbers.dtype.is_numeric() and numbers.drop_nulls().n_unique() > MOST_VALUES


def _by_property(collection: Collection, by: str) -> Groups:
    """Take the numbers of a column for a property.

    Its two ends are the documents above and below the mean.
    """
    column = known_labels(collection.docs[by])
    values = as_numbers(column).cast(pl.Float64).fill_null(np.nan).to_numpy()
    values = np.where(np.isfinite(values), values, np.nan)
    mean = float(np.nanmean(values))
    code = np.where(np.isnan(values), -1, np.where(values > mean, 0, 1))
    remarks: tuple[LabelNote, ...] = ()
    if parts := parts_of_numbers(column):
        remark = PropertyLabels(by=by, low=parts.low, high=parts.high, parted_at=parts.parted_at)
        remarks = (remark,)
    return Groups(by, property_sides(by), code, remarks=remarks, values=values)


def _make_groups(collection: Collection, by: str, keep: list[str], *, fewest: int) -> Groups:
    if set(property_sides(by)) <= set(keep) and is_property(collection, by):
        return _by_property(collection, by)
    columns = [column for column in collection.docs.columns if column not in _SINGLE]
    if by not in columns and ":" in by:
        return _binned(collection, by, columns)
    if by not in columns or collection.docs[by].dtype == pl.Binary:  # which holds raw JSON
        raise unknown("column to group by", by, [*columns, f"{LENGTH}:3"])
    groups = _of_column(collection, by, keep, fewest=fewest)
    return _within_pool(groups, collection) if by == "source" else groups


def _of_column(collection: Collection, by: str, keep: list[str], *, fewest: int) -> Groups:
    """Make a group of each label in a column, or of those to `keep` and all others."""
    column = known_labels(collection.docs[by])
    several = _several(column) if by != "source" else None
    single = column if several is None else several.explode()
    labels = single.drop_nulls().unique().sort().cast(pl.String).to_list()
    if by == "source":
        labels.sort(key=lambda name: name != "human")
    if len(labels) < 2 and (len(labels) < fewest or not column.null_count()):
        raise UserError(_nothing_to_compare(collection, by, labels))
    numbered = _numbered(by, labels, keep, has_several=several is not None)
    _check_names(by, numbered, column)
    groups = (
        _of_labels(by, numbered, column) if several is None else _of_several(by, numbered, several)
    )
    return replace(groups, merged=numbered.merged, remarks=tuple(label_remarks(by, single)))


def _within_pool(groups: Groups, collection: Collection) -> Groups:
    """Leave the documents of an origin that a pool left out in no group."""
    outside = _outside(collection)
    return replace(groups, code=np.where(outside, -1, groups.code), outside=int(outside.sum()))


@dataclass(frozen=True, kw_only=True)
class _Numbered:
    """Groups of a column's labels."""

    names: tuple[str, ...]
    number_of: Mapping[str, int]
    """Number of the group of each label."""
    merged: tuple[str, ...]
    """Groups that are the last one together."""
    rest: str
    """Name of all other groups together; empty where they are not one group."""


def _numbered(
    by: str, labels: Sequence[str], keep: Sequence[str], *, has_several: bool
) -> _Numbered:
    """Name and number the groups of a column's labels, of which those to `keep` stay apart."""
    sides = [name for name in keep if by != "source" or name in (*labels, REST)]
    side_of_label, rest = read_sides(sides, labels, by)
    side_of = {label: side_of_label.get(label, label) for label in labels}
    is_renamed = has_several or rest != REST
    names, merged = _kept_apart(
        list(dict.fromkeys(side_of.values())), [*keep, *side_of_label.values()], rest, is_renamed
    )
    if len(names) < 2 <= len(side_of) and names[0] in side_of_label.values():
        raise UserError(f"nothing to compare: {names[0]!r} is every {by}")
    index_of = {name: index for index, name in enumerate(names)}
    index_of |= dict.fromkeys(merged, len(names) - 1)
    number_of = {label: index_of[side] for label, side in side_of.items()}
    return _Numbered(names=tuple(names), number_of=number_of, merged=merged, rest=rest)


def _check_names(by: str, numbered: _Numbered, column: pl.Series) -> None:
    """Refuse too many groups, and a group with a reserved name."""
    names, merged = numbered.names, numbered.merged
    if len(names) > MOST_GROUPS:
        count = len(names) + max(len(merged) - 1, 0)
        parts = parts_of_numbers(column)
        advice = parts_words(by, parts) if parts else "name some to compare (--pair A,B)"
        raise UserError(
            f"column {by!r} makes {count} groups; expected at most {MOST_GROUPS}: {advice}"
        )
    if ALL in names:
        raise UserError(
            f"column {by!r} has a group called {ALL!r}, which is reserved for all documents "
            "together; rename it"
        )


def _nothing_to_compare(collection: Collection, by: str, names: Sequence[str]) -> str:
    """Say why a column makes fewer than two groups: no document has a value, or all have one."""
    file = f"{collection.spec['labels']}: " if "labels" in collection.spec else ""
    factor = next((name for name in collection.docs.columns if name.startswith("factor:")), None)
    if by == "source" and not names and not factor:
        advice = (
            "name the source of each document (field source, or --groups FILE), or measure all as "
            "one (--by none)"
        )
        return file + no_source(collection, advice=advice)
    expected = (
        "two sources or more, such as human and llm"
        if by == "source"
        else f"two groups of {by} or more"
    )
    came = f"only {by} {names[0]!r}" if names else f"no {by}"
    message = f"{file}nothing to compare: {came}; expected {expected}"
    if names and (unlabelled := collection.docs[by].null_count()):
        message += f"; {counted(unlabelled, 'document has', 'documents have')} none"
    if by == "source" and factor:
        message += (
            "; its versions differ in factors: ranktilt explain DIR -r bm25 --by-factor, "
            f"or --by {factor}"
        )
    elif file and not collection.spec.get("label_file", {}).get("rest"):
        message += "; what are all others? --rest LABEL"
    return message


def _kept_apart(
    names: list[str], keep: Iterable[str], others: str = "", renamed: bool = False
) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of the groups, and of those that are merged into the last one.

    The merged group has the name `others`, unless that is empty.
    """
    keep = list(keep)
    separate = [name for name in names if name in keep]
    merged = tuple(name for name in names if name not in keep)
    if others and separate and len(merged) + renamed > 1:
        return [*separate, others], merged
    if len(names) <= MOST_GROUPS or not keep:
        return names, ()
    return [*separate, f"{len(merged):,} other groups"], merged


def _several(column: pl.Series) -> pl.Series | None:
    """Split each value into the groups that it names; None where every value names one."""
    if column.dtype != pl.String or not column.str.contains(SEVERAL, literal=True).any():
        return None
    return split_labels(column).list.unique().list.sort()


def _of_labels(by: str, numbered: _Numbered, column: pl.Series) -> Groups:
    """Make groups of values that name one group each."""
    code = column.cast(pl.String).replace_strict(
        numbered.number_of, default=-1, return_dtype=pl.Int64
    )
    return Groups(by=by, names=numbered.names, code=code.fill_null(-1).to_numpy())


def _of_several(by: str, numbered: _Numbered, several: pl.Series) -> Groups:
    """Make groups of values that name several.

    Where the last group holds all others, a document is of the first group that it names.
    """
    is_first = numbered.names[-1] == numbered.rest
    code, set_of = np.full((2, len(several)), -1, dtype=np.int64)
    sets = dict[tuple[int, ...], int]()
    for row, labels in enumerate(several.to_list()):
        members = tuple(sorted({numbered.number_of[label] for label in labels or ()}))
        if len(members) == 1 or (members and is_first):
            code[row] = members[0]
        elif members:
            set_of[row] = sets.setdefault(members, len(sets))
    return Groups(
        by=by,
        names=numbered.names,
        code=code,
        sets=tuple(sets),
        set_of=set_of if sets else None,
    )


def _outside(collection: Collection) -> npt.NDArray[np.bool_]:
    """Documents of an origin that a pool left out."""
    docs = collection.docs
    if POOL not in docs.columns or docs[POOL].dtype != pl.Boolean:
        return np.zeros(docs.height, dtype=bool)
    origins = docs.filter(~pl.col(POOL).fill_null(True))["origin"]
    return np.asarray(docs["origin"].is_in(origins.implode()).to_numpy())


def _binned(collection: Collection, by: str, columns: list[str]) -> Groups:
    name, _, number = by.rpartition(":")
    values = _values(collection, name, columns)
    if _VALUE.fullmatch(number):
        return _halves(by, name, values, float(number), unit="" if name in columns else " words")
    if not (number.isascii() and number.isdigit() and int(number) in BINS):
        raise UserError(
            f"{by}: expected {BINS[0]} to {BINS[-1]} bins, such as {name}:3, or a value with a "
            f"point that parts it in two, such as {name}:.5; got {number!r}"
        )
    known = values.drop_nulls().to_numpy()
    edges = _edges(known, int(number))
    if len(edges) < int(number):
        raise UserError(
            f"{by}: too few distinct values of {name} for {number} bins: {len(np.unique(known))}"
        )
    known_code = np.searchsorted(edges, known)
    bounds = [(known[known_code == index].min(), edge) for index, edge in enumerate(edges)]
    names = _bin_names(bounds)
    if name not in columns:
        names = [f"{count} {'word' if count == '1' else 'words'}" for count in names]
    code = np.full(len(values), -1)
    code[values.is_not_null().to_numpy()] = known_code
    return Groups(name, tuple(names), code)


def _values(collection: Collection, name: str, columns: Sequence[str]) -> pl.Series:
    """Return the numbers of a column, also when written as text, or the word counts of texts."""
    if name in columns:
        values = as_numbers(known_labels(collection.docs[name]))
        if values.dtype.is_numeric():
            return values
    elif name == LENGTH:
        values = collection.memo("words", lambda: words(collection.docs["text"]))
        return values.set(values == 0, None)
    numbers = [
        column
        for column in columns
        if as_numbers(known_labels(collection.docs[column])).dtype.is_numeric()
    ]
    raise unknown("column of numbers to group by", name, dict.fromkeys([*numbers, LENGTH]))


def _halves(by: str, name: str, values: pl.Series, edge: float, *, unit: str) -> Groups:
    """Divide numbers in two: those below a value, and those equal to it or above."""
    is_above = values >= edge
    count = int(is_above.sum())
    if count in (0, len(values) - values.null_count()):
        side, furthest = ("below", values.max()) if not count else ("at or above", values.min())
        end = "lowest" if count else "highest"
        extreme = f"{end}: {short_number(float(furthest))}"  # type: ignore[arg-type]
        raise UserError(
            f"{by}: every {name} is {side} {short_number(edge)} ({extreme}); "
            "expected values on both sides"
        )
    names = tuple(half.format(f"{short_number(edge)}{unit}") for half in _HALVES)
    code = is_above.cast(pl.Int64).fill_null(-1).to_numpy()
    return Groups(name, names, code)


def _edges(values: npt.NDArray[Any], bins: int) -> npt.NDArray[Any]:
    """Return the highest value of each bin; fewer than `bins` where equal values empty a bin."""
    last = np.ceil(np.arange(1, bins + 1) * len(values) / bins).astype(np.int64) - 1
    return np.unique(np.sort(values)[last]) if len(values) else values


def _bin_names(bounds: list[tuple[Any, Any]]) -> list[str]:
    """Name each bin by its lowest and highest value, with enough digits that the names differ."""
    names = list[str]()
    for digits in (4, 8, 17):
        names = [_bin_name(low, high, digits) for low, high in bounds]
        if len(set(names)) == len(names):
            break
    return names


def _bin_name(low: Any, high: Any, digits: int) -> str:
    low_text, high_text = _number(low, digits), _number(high, digits)
    return low_text if low_text == high_text else f"{low_text} to {high_text}"


def _number(value: Any, digits: int) -> str:
    if isinstance(value, np.integer):
        return str(value)
    digits = max(digits, len(str(int(abs(value)))))
    return np.format_float_positional(
        value, precision=digits, unique=False, fractional=False, trim="-"
    )


def grouped_pairs(
    collection: Collection, by: str | None, pairs: Iterable[Pair] | None, *, fewest: int = 2
) -> tuple[Groups, tuple[Pair, ...]]:
    """Group the documents, and choose the pairs of groups to compare.

    See `grouping` and `choose_pairs`.
    """
    pairs = None if pairs is None else list(pairs)
    keep: list[str] = []
    for pair in pairs or ():
        if not isinstance(pair, str):  # `choose_pairs` refuses it
            keep += pair
    groups = grouping(collection, by, keep, fewest=fewest)
    if pairs and REST in keep and REST not in groups.names:
        pairs = [_resolved(pair, groups) for pair in pairs]
    if pairs and len(pairs) > 1 and REST in keep and (groups.merged or REST not in groups.names):
        raise UserError(
            f"{REST!r} stands for every group but one; name one pair with it, such as "
            f"{groups.names[0]},{REST}"
        )
    return groups, () if by is None and pairs is None else choose_pairs(groups, pairs)


def _resolved(pair: Any, groups: Groups) -> Any:
    """Replace the rest in a pair: of two groups, it is the other one."""
    if len(groups.names) != 2 or isinstance(pair, str) or len(pair) != 2 or set(pair) <= {REST}:
        return pair
    known = groups.number(next(name for name in pair if name != REST))
    return tuple(groups.names[1 - known if name == REST else known] for name in pair)


def choose_pairs(groups: Groups, pairs: Iterable[Pair] | None) -> tuple[Pair, ...]:
    """Choose the pairs of groups to compare: all of them, or those in `pairs`, which must exist."""
    if pairs is None:
        all_pairs = tuple(combinations(groups.names, 2))
        if len(groups.names) > MOST_PAIRED:
            raise UserError(
                f"{groups.by} makes {len(groups.names)} groups, {len(all_pairs)} pairs; all pairs "
                f"are compared only up to {MOST_PAIRED} groups: {_ways_on(groups)}"
            )
        return all_pairs
    pairs = list(pairs)
    odd = next((pair for pair in pairs if isinstance(pair, str) or len(pair) != 2), None)
    if odd is not None:
        raise UserError(f"expected pairs of two groups, such as [('human', 'llm')], got {odd!r}")
    chosen = tuple(
        (groups.names[groups.number(a)], groups.names[groups.number(b)]) for a, b in pairs
    )
    for a, b in chosen:
        if a == b:
            raise UserError(f"nothing to compare: pair {a!r},{b!r} names one group twice")
        if chosen.count((a, b)) + chosen.count((b, a)) > 1:
            raise UserError(f"pair {a!r},{b!r} is given twice")
    return chosen


def _ways_on(groups: Groups) -> str:
    """Say what to do where there are too many groups to compare."""
    for remark in groups.remarks:
        if isinstance(remark, NumberLabels | PropertyLabels):
            return parts_words(remark.by, remark)
    return "name some (--pair A,B), or bin a column of numbers, such as year:3, or score:.5"


def twin_rows(collection: Collection, groups: Groups, pair: Pair) -> npt.NDArray[np.int64]:
    """Return the rows of the documents of both groups that share an origin; shape (n_pairs, 2)."""
    a, b = (groups.names.index(name) for name in pair)
    table = _origins(collection, groups)
    left = table.filter(pl.col("group") == a).select("origin", a="row")
    right = table.filter(pl.col("group") == b).select("origin", b="row")
    joined = left.join(right, on="origin", how="inner", maintain_order="left_right")
    return joined.select("a", "b").to_numpy()


def _origins(collection: Collection, groups: Groups) -> pl.DataFrame:
    rows = np.arange(collection.docs.height)
    return pl.DataFrame({"row": rows, "origin": collection.docs["origin"], "group": groups.code})


def are_twins(collection: Collection, groups: Groups, pair: Pair, judged: pl.DataFrame) -> bool:
    """Return whether every relevant document of either group has exactly one equal twin.

    That is a document of the same origin and grade in the other group. `judged` lists the relevant
    documents.
    """
    a, b = (groups.names.index(name) for name in pair)
    known = judged.join(_origins(collection, groups), on="row", how="inner").filter(
        pl.col("group").is_in([a, b])
    )
    sides = known.group_by("query", "origin").agg(
        (pl.col("group") == a).sum().alias("a"),
        (pl.col("group") == b).sum().alias("b"),
        pl.col("grade").n_unique().alias("grades"),
    )
    return bool(((sides["a"] == 1) & (sides["b"] == 1) & (sides["grades"] == 1)).all())

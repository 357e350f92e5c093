"""Group documents by a column, with one group for each label.

A *label* is a value of the column; a cell may hold several (``Europe|Asia``). A *side* is a name
that a user gives to one of two compared groups. It stands for the documents of a label
(``Europe``), for all others (``non-Europe``), or for whatever the other side is not (``rest``).

Labels become groups in three steps: `_label_lists` splits the cells, `_group_labels` decides which
group each label is of, and `_groups_of_single_labels` or `_groups_of_label_lists` looks up the
group of each document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.grouping.number_bins import (
    grouping_columns,
    is_property,
    number_groups,
    property_groups,
    property_sides,
)
from ranktilt.auditing.groups import ALL, Groups
from ranktilt.data.collection import POOL, Collection
from ranktilt.data.labels.group_names import REST, bare_labels, group_name, label_text, read_sides
from ranktilt.data.labels.label_file import LENGTH
from ranktilt.data.labels.label_remarks import label_remarks, parts_of_numbers, parts_words
from ranktilt.data.labels.stated_sources import no_source
from ranktilt.data.text.label_values import SEVERAL, known_labels, split_labels
from ranktilt.errors import UserError, counted, unknown_name

MOST_GROUPS = 50
"""Most groups of one column; if there are more, groups that nobody named are merged."""


def grouping(
    collection: Collection, by: str | None, keep: Iterable[str] = (), *, fewest: int = 2
) -> Groups:
    """Group the documents by a column, or by bins of its numbers.

    Groups are in the order of their names; for the column ``source``, human comes first.

    Parameters
    ----------
    collection : Collection
        The documents.
    by : str or None
        Column to group by; ``COLUMN:N`` makes N bins of its numbers, and ``length:N`` bins of the
        number of words. Equal values are in one bin. None for no groups.
    keep : iterable of str, optional
        Groups that stay separate. All others become one group if `keep` holds `REST` or a side such
        as ``non-Europe``, or if there are more than `MOST_GROUPS`. A document of several groups
        (``Europe|Asia``) then belongs to the first that stays separate; otherwise it belongs to no
        single group.
    fewest : int, optional
        Fewest groups. If it is 1, a single group is enough if some documents have no group.

    Raises
    ------
    UserError
        If there is no such column, or it makes too few or too many groups.
    """
    if by is None:
        no_group = np.full(collection.docs.height, -1)
        return Groups(by=None, names=(), code=no_group)
    keep = list(keep)
    # A command needs the groups twice: it checks them before it ranks, and then audits.
    return collection.memo(
        ("groups", by, repr(keep), fewest),
        lambda: _make_groups(collection, by, keep, fewest=fewest),
    )


def _make_groups(collection: Collection, by: str, keep: list[str], *, fewest: int) -> Groups:
    """Make groups of a property's ends, of bins of numbers, or of labels."""
    if set(property_sides(by)) <= set(keep) and is_property(collection, by):
        return property_groups(collection, by)
    columns = grouping_columns(collection)
    if by not in columns and ":" in by:
        return number_groups(collection, by, columns)
    if by not in columns or collection.docs[by].dtype == pl.Binary:  # binary columns hold raw JSON
        raise unknown_name("column to group by", by, [*columns, f"{LENGTH}:3"])
    groups = _label_groups(collection, by, keep, fewest=fewest)
    return _within_pool(groups, collection) if by == "source" else groups


def _label_groups(collection: Collection, by: str, keep: list[str], *, fewest: int) -> Groups:
    """Make a group of each label of a column.

    With labels to `keep`, all others may form one group together.
    """
    column = known_labels(bare_labels(collection.docs[by]))
    label_lists = _label_lists(column) if by != "source" else None
    single_labels = column if label_lists is None else label_lists.explode()
    labels = single_labels.drop_nulls().unique().sort().cast(pl.String).to_list()
    if by == "source":
        labels.sort(key=lambda name: name != "human")
    if len(labels) < 2 and (len(labels) < fewest or not column.null_count()):
        raise UserError(_nothing_to_compare(collection, by, labels))
    keep = [label_text(name, by, labels) for name in keep]
    label_groups = _group_labels(by, labels, keep, has_several=label_lists is not None)
    _check_names(by, label_groups, column)
    if label_lists is None:
        groups = _groups_of_single_labels(by, label_groups, column)
    else:
        groups = _groups_of_label_lists(by, label_groups, label_lists)
    remarks = tuple(label_remarks(by, single_labels))
    return replace(groups, merged=label_groups.merged, remarks=remarks)


def _within_pool(groups: Groups, collection: Collection) -> Groups:
    """Take documents outside the pool out of their groups.

    The pool is the documents that were to be rewritten. All others have no other version by design,
    so they cannot be compared with one.
    """
    outside = _is_outside_pool(collection)
    return replace(groups, code=np.where(outside, -1, groups.code), outside=int(outside.sum()))


@dataclass(frozen=True, kw_only=True)
class _LabelGroups:
    """The group of each label."""

    names: tuple[str, ...]
    """Names of the groups, in order."""
    index_of: Mapping[str, int]
    """Index of each label's group in `names`."""
    merged: tuple[str, ...]
    """Labels that form the last group together."""
    rest: str
    """Name of the group of all other labels; empty if they form no group."""


def _group_labels(
    by: str, labels: Sequence[str], keep: Sequence[str], *, has_several: bool
) -> _LabelGroups:
    """Assign each label of a column to a group; groups to `keep` stay separate.

    `has_several` says whether a document may have several labels.
    """
    # Sources form no unions or complements: only the name of a source, or REST, is a side.
    sides = [name for name in keep if by != "source" or name in (*labels, REST)]
    named_sides, rest = read_sides(sides, labels, by)
    # A label that no side covers is a group of its own.
    side_of_label = {label: named_sides.get(label, label) for label in labels}
    names, merged = _merge_others(
        list(dict.fromkeys(side_of_label.values())),
        [*keep, *named_sides.values()],
        rest,
        renames_lone=has_several or rest != REST,
    )
    if len(names) < 2 <= len(side_of_label) and names[0] in named_sides.values():
        raise UserError(f"nothing to compare: {names[0]!r} is every {by}")
    index_of_side = {name: index for index, name in enumerate(names)}
    index_of_side |= dict.fromkeys(merged, len(names) - 1)
    index_of = {label: index_of_side[side] for label, side in side_of_label.items()}
    return _LabelGroups(
        names=tuple(group_name(by, name) for name in names),
        index_of=index_of,
        merged=merged,
        rest=group_name(by, rest),
    )


def _check_names(by: str, label_groups: _LabelGroups, column: pl.Series) -> None:
    """Refuse too many groups, and a group with a reserved name."""
    names, merged = label_groups.names, label_groups.merged
    if len(names) > MOST_GROUPS:
        group_count = len(names) + max(len(merged) - 1, 0)
        parts = parts_of_numbers(column)
        advice = "name some to compare (--pair A,B)"
        if parts:
            advice = (
                f"{parts_words(by, parts)}; ranktilt audit --by {by} asks about the number itself"
            )
        raise UserError(
            f"column {by!r} makes {group_count} groups; expected at most {MOST_GROUPS}: {advice}"
        )
    if ALL in names:
        raise UserError(
            f"column {by!r} has a group called {ALL!r}, which is reserved for all documents "
            "together; rename it"
        )


def _nothing_to_compare(collection: Collection, by: str, names: Sequence[str]) -> str:
    """Say why a column makes fewer than two groups: no document has a value, or all have one.

    `names` are those of the groups, at most one.
    """
    where = f"{collection.spec['labels']}: " if "labels" in collection.spec else ""
    factors = [name for name in collection.docs.columns if name.startswith("factor:")]
    if by == "source" and not names and not factors:
        advice = (
            "name the source of each document (field source, or --groups FILE), or measure all "
            "together (--by none)"
        )
        return where + no_source(collection, advice=advice)
    expected = (
        "two sources or more, such as human and llm"
        if by == "source"
        else f"two groups of {by} or more"
    )
    fault = f"only {by} {names[0]!r}" if names else f"no {by}"
    message = f"{where}nothing to compare: {fault}; expected {expected}"
    unlabelled = collection.docs[by].null_count()
    if names and unlabelled:
        message += f"; {counted(unlabelled, 'document has', 'documents have')} none"
    if by == "source" and factors:
        message += (
            "; its versions differ in factors: ranktilt explain DIR -r bm25 --by-factor, "
            f"or --by {factors[0]}"
        )
    elif where and not collection.spec.get("label_file", {}).get("rest"):
        message += "; label all others with --rest LABEL"
    return message


def _merge_others(
    names: list[str], keep: Iterable[str], rest: str, *, renames_lone: bool
) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of the groups, and of those that are merged into the last group.

    Parameters
    ----------
    names : list of str
        Names of all groups.
    keep : iterable of str
        Names of the groups that stay separate.
    rest : str
        Name of the last group; empty if the others are merged only where they are too many.
    renames_lone : bool
        Whether a single other group gets the name `rest`, too. It must if `rest` is a complement
        such as ``non-Europe``, or if documents are of several groups: then `rest` holds other
        documents than that group.
    """
    keep = list(keep)
    separate = [name for name in names if name in keep]
    merged = tuple(name for name in names if name not in keep)
    needs_rest = len(merged) > 1 or (renames_lone and bool(merged))
    if rest and separate and needs_rest:
        return [*separate, rest], merged
    if len(names) <= MOST_GROUPS or not keep:
        return names, ()
    return [*separate, f"{len(merged):,} other groups"], merged


def _label_lists(column: pl.Series) -> pl.Series | None:
    """Split each value into its labels; None if every value is a single label."""
    if column.dtype != pl.String or not column.str.contains(SEVERAL, literal=True).any():
        return None
    return split_labels(column).list.unique().list.sort()


def _groups_of_single_labels(by: str, label_groups: _LabelGroups, column: pl.Series) -> Groups:
    """Make groups of a column whose values are single labels."""
    code = column.cast(pl.String).replace_strict(
        label_groups.index_of, default=-1, return_dtype=pl.Int64
    )
    return Groups(by=by, names=label_groups.names, code=code.fill_null(-1).to_numpy())


def _groups_of_label_lists(by: str, label_groups: _LabelGroups, label_lists: pl.Series) -> Groups:
    """Make groups of a column whose values may name several labels.

    If the last group is the rest, a document of several groups belongs to the first of them: a
    document with the label Europe is of Europe, whatever its other labels are. Otherwise it belongs
    to a combination of groups.
    """
    has_rest = label_groups.names[-1] == label_groups.rest
    row_count = len(label_lists)
    code = np.full(row_count, -1, dtype=np.int64)
    combination_of = np.full(row_count, -1, dtype=np.int64)
    # Each combination of groups, with its index in the order in which combinations occur.
    combinations: dict[tuple[int, ...], int] = {}
    for row, labels in enumerate(label_lists.to_list()):
        indexes = tuple(sorted({label_groups.index_of[label] for label in labels or ()}))
        if len(indexes) == 1 or (indexes and has_rest):
            code[row] = indexes[0]
        elif indexes:
            combination_of[row] = combinations.setdefault(indexes, len(combinations))
    return Groups(
        by=by,
        names=label_groups.names,
        code=code,
        combinations=tuple(combinations),
        combination_of=combination_of if combinations else None,
    )


def _is_outside_pool(collection: Collection) -> npt.NDArray[np.bool_]:
    """Return whether each document is a version of a document outside the collection's pool."""
    docs = collection.docs
    if POOL not in docs.columns or docs[POOL].dtype != pl.Boolean:
        return np.zeros(docs.height, dtype=bool)
    origins = docs.filter(~pl.col(POOL).fill_null(True))["origin"]
    return np.asarray(docs["origin"].is_in(origins.implode()).to_numpy())

"""Read the names of sides, the two sets of documents that are compared.

Documents with one label, the value of a column, are a group. A side is a group (``Europe``), a
union of groups (``Europe|Asia``), a complement (``non-Europe``: every document that is not in the
group or union), or the rest (``rest``: all groups that the other side does not have).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from ranktilt.data.text.label_values import SEVERAL
from ranktilt.errors import UserError, unknown_name

REST = "rest"
"""Name of the side of all groups that the other side does not have."""
OTHERS = "non-"
"""Prefix of a complement."""
_CODE = re.compile(r"[-+]?\.?[0-9][0-9.,]*|true|false|yes|no", re.IGNORECASE)
"""Labels that say nothing without their column's name, such as ``1`` and ``true``."""


@dataclass(frozen=True, kw_only=True)
class NamedSide:
    """Groups that form one side of a comparison."""

    name: str
    """Name with the members in alphabetical order: ``Asia|Europe`` for ``Europe|Asia``."""
    members: tuple[str, ...]
    """Names of the groups; for a complement, those that the side does not have."""
    is_complement: bool = False
    """Whether the side is a complement: every document that is in none of the members."""

    @property
    def union(self) -> str:
        """Name of the union of the members; for a complement, this is its opposite side."""
        return SEVERAL.join(self.members)


def group_name(column: str, label: str) -> str:
    """Return the name of a group: its label, or ``source 1`` for the label ``1`` of ``source``.

    Unions (``grade 1|2``) and complements (``non-grade 1``) of such labels get the column's name
    too.
    """
    prefix, union = _complement_prefix(label)
    is_code = all(_CODE.fullmatch(part) for part in _members(union))
    return f"{prefix}{column} {union}" if is_code else label


def bare_labels(column: pl.Series) -> pl.Series:
    """Return the labels of a column as the file has them: ``1`` for ``source 1`` (`group_name`)."""
    if column.dtype != pl.String:
        return column
    labels_by_name = {}
    for name in column.drop_nulls().unique():
        label = name.removeprefix(f"{column.name} ")
        if label != name and group_name(column.name, label) == name:
            labels_by_name[name] = label
    return column.replace(labels_by_name) if labels_by_name else column


def label_text(name: str, column: str, labels: Collection[str]) -> str:
    """Return the name of a side with labels as the file has them: ``1`` for ``source 1``.

    `labels` are all labels in the column.
    """
    prefix, union = _complement_prefix(name)
    label = union.removeprefix(f"{column} ")
    are_labels = name not in labels and set(_members(label)) <= set(labels)
    return prefix + label if are_labels else name


def _complement_prefix(name: str) -> tuple[str, str]:
    """Return the prefix of a complement, which is empty for other names, and the rest of a name."""
    prefix = OTHERS if name.startswith(OTHERS) else ""
    return prefix, name.removeprefix(prefix)


def read_side(text: str, known: Iterable[str], column: str) -> NamedSide | None:
    """Read the name of a side; None if it is neither a group nor made of groups.

    A group may itself be called ``non-…`` or have a ``|`` in its name, and is then taken as it is.

    Parameters
    ----------
    text : str
        The name as the user writes it.
    known : iterable of str
        Names of all groups.
    column : str
        Column of the labels, for errors.
    """
    known = list(known)
    if text in known:
        return NamedSide(name=text, members=(text,))
    is_complement = text.startswith(OTHERS) and not set(_members(text)) <= set(known)
    union = text.removeprefix(OTHERS) if is_complement else text
    members = tuple(sorted(set(_members(union))))
    if SEVERAL not in text and not (is_complement and members[0] in known):
        return None
    if "" in members:
        raise UserError(
            f"expected a group on each side of every {SEVERAL}, such as Europe|Asia; got {text!r}"
        )
    unknown_group = next((name for name in members if name not in known), None)
    if unknown_group is not None:
        raise unknown_name(column, unknown_group, known)
    prefix = OTHERS if is_complement else ""
    return NamedSide(
        name=prefix + SEVERAL.join(members), members=members, is_complement=is_complement
    )


def name_among(text: str, names: Collection[str], column: str = "") -> str | None:
    """Return the name among `names` that means the same side as a text; None if there is none.

    The members of a union may come in another order. With a `column`, the column's name may be left
    out: ``1`` for ``source 1``, ``2010 to 2014`` for ``year 2010 to 2014``.
    """
    candidates = [text, _sorted_union(text)]
    if text.startswith(OTHERS):
        # The prefix may be that of a complement, or belong to a group that is called non-….
        candidates.append(OTHERS + _sorted_union(text.removeprefix(OTHERS)))
    candidates += [group_name(column, candidate) for candidate in candidates]
    candidates.append(f"{column} {text}")
    return next((name for name in candidates if name in names), None)


def _members(text: str) -> list[str]:
    """Split the name of a union into its groups."""
    return [part.strip() for part in text.split(SEVERAL)]


def _sorted_union(text: str) -> str:
    """Return the name of a union with its groups in alphabetical order."""
    return SEVERAL.join(sorted(set(_members(text))))


def read_sides(
    texts: Sequence[str], known: Sequence[str], column: str
) -> tuple[dict[str, str], str]:
    """Read the names of sides that do not overlap.

    Parameters
    ----------
    texts : sequence of str
        The names as the user writes them; a name that is no side is ignored.
    known : sequence of str
        Names of all groups.
    column : str
        Column of the labels, for errors.

    Returns
    -------
    tuple of dict and str
        The name of each group's side, by the group; and the name of the side that has all other
        groups, empty if there is no such side.

    Raises
    ------
    UserError
        If two sides share a group, or a side such as ``non-Europe`` is compared with anything but
        ``Europe`` or the rest.
    """
    sides = [side for text in texts if (side := read_side(text, known, column))]
    complements = [side for side in sides if side.is_complement]
    side_of_group = _sides_of_groups(sides, column)
    if not complements:
        rest_name = REST if REST in texts and REST not in known else ""
        return side_of_group, rest_name
    unions = {side.union for side in complements}
    if len(unions) > 1 or set(side_of_group.values()) != unions:
        name, opposite = complements[0].name, complements[0].union
        raise UserError(
            f"{name!r} is every {column} except {opposite!r}; compare it only with {opposite!r} "
            f"or {REST!r}"
        )
    return side_of_group, complements[0].name


def _sides_of_groups(sides: Sequence[NamedSide], column: str) -> dict[str, str]:
    """Return the name of each group's side, by the group.

    The members of a complement belong to its opposite side.
    """
    members_of_side = {side.name: side.members for side in sides if not side.is_complement}
    members_of_side |= {side.union: side.members for side in sides if side.is_complement}
    side_of_group = dict[str, str]()
    for name, members in members_of_side.items():
        for member in members:
            if side_of_group.setdefault(member, name) != name:
                both = f"{side_of_group[member]!r} and {name!r}"
                raise UserError(
                    f"{column} {member!r} is part of {both}; name sides that do not overlap"
                )
    return side_of_group

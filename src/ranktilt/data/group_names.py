"""What a side of a comparison is called: a group, a union (``Europe|Asia``), or all other groups (``non-Europe``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ranktilt.data.labels import SEVERAL
from ranktilt.errors import UserError, unknown

REST = "rest"
"""All other groups together, as one side of a pair."""
OTHERS = "non-"
"""Before a group or a union: every document that names none of them."""


@dataclass(frozen=True)
class NamedSide:
    """Groups that are one side."""

    name: str
    """With the members in alphabetical order, so that ``Asia|Europe`` is ``Europe|Asia``."""
    members: tuple[str, ...]
    complement: bool = False
    """Whether the side is every document that names none of the members."""

    @property
    def inside(self) -> str:
        return SEVERAL.join(self.members)


def read_side(text: str, known: Iterable[str], column: str) -> NamedSide | None:
    """Read the name of a side, a group of just this name first; None where it is neither a group nor made of groups."""
    known = list(known)
    if text in known:
        return NamedSide(text, (text,))
    complement = text.startswith(OTHERS) and not set(_parts(text)) <= set(known)
    members = tuple(sorted(set(_parts(text.removeprefix(OTHERS) if complement else text))))
    if SEVERAL not in text and not (complement and members[0] in known):
        return None
    if "" in members:
        raise UserError(
            f"expected a group on each side of every {SEVERAL}, such as Europe|Asia; got {text!r}"
        )
    strange = next((name for name in members if name not in known), None)
    if strange is not None:
        raise unknown(column, strange, known)
    return NamedSide((OTHERS if complement else "") + SEVERAL.join(members), members, complement)


def name_among(text: str, names: Collection[str]) -> str | None:
    """Return what a side is called among the names of sides, however its members are ordered; None where it is none."""
    inside, whole = (
        SEVERAL.join(sorted(set(_parts(each)))) for each in (text.removeprefix(OTHERS), text)
    )
    written = (text, whole, OTHERS + inside if text.startswith(OTHERS) else inside)
    return next((name for name in written if name in names), None)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(SEVERAL)]


def read_sides(
    texts: Sequence[str], known: Sequence[str], column: str
) -> tuple[dict[str, str], str]:
    """Read the names of sides that stay apart: that of each group in one, and of all others together, empty for none.

    `UserError` where two of them share a group, or one is all groups but some and is not alone with
    these.
    """
    found = {side.name: side for text in texts if (side := read_side(text, known, column))}
    complements = [side for side in found.values() if side.complement]
    inside = {side.inside: NamedSide(side.inside, side.members) for side in complements}
    of_group = dict[str, str]()
    for side in (
        {name: one for name, one in found.items() if not one.complement} | inside
    ).values():
        for member in side.members:
            if of_group.setdefault(member, side.name) != side.name:
                both = f"{of_group[member]!r} and of {side.name!r}"
                raise UserError(
                    f"{column} {member!r} is part of {both}; name sides that do not overlap"
                )
    if complements and (len(inside) > 1 or set(of_group.values()) != set(inside)):
        name, only = complements[0].name, complements[0].inside
        raise UserError(
            f"{name!r} is every {column} but {only!r}: compare it with {only!r} or {REST!r} alone"
        )
    rest = REST if REST in texts and REST not in known else ""
    return of_group, complements[0].name if complements else rest

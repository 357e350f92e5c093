"""Who belongs to which group, and which groups are twins of each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown

ALL = "all"
MOST_GROUPS = 50
Pair = tuple[str, str]


@dataclass(frozen=True)
class Groups:
    """A grouping of a collection's documents by one column."""

    by: str | None
    names: tuple[str, ...]
    code: npt.NDArray[np.int64]
    """Group number of each document row; -1 for a document without one."""

    @property
    def unlabelled(self) -> int:
        """Documents without a group."""
        return int((self.code < 0).sum()) if self.by else 0


def grouping(collection: Collection, by: str | None) -> Groups:
    """Group the documents by a column; None makes no groups.

    Raises
    ------
    UserError
        If there is no such column, or it holds one group only (blank labels are none), too many, or one called ``all``.
    """
    if by is None:
        return Groups(None, (), np.full(collection.docs.height, -1))
    if by not in collection.docs.columns or by in ("id", "text", "title", "origin"):
        valid = [c for c in collection.docs.columns if c not in ("id", "text", "title", "origin")]
        raise unknown("column to group by", by, valid)
    column = collection.docs[by]
    if column.dtype == pl.Binary:
        raise UserError(f"column {by!r} holds raw JSON; group by strings, numbers or truth values")
    if column.dtype == pl.String:
        blank = column.str.strip_chars() == ""
        column = column.set(blank.fill_null(False), None)
    labels = column.cast(pl.String)
    names = column.drop_nulls().unique().sort().cast(pl.String).to_list()
    if by == "source":
        names.sort(key=lambda name: name != "human")
    if len(names) < 2:
        raise UserError(f"nothing to compare: only {by} {names[0]!r}" if names else f"nothing to compare: no {by}")
    if len(names) > MOST_GROUPS:
        raise UserError(f"column {by!r} makes {len(names)} groups; expected at most {MOST_GROUPS}")
    if ALL in names:
        raise UserError(f"column {by!r} has a group called {ALL!r}, the name of the row without grouping; rename it")
    number = {name: i for i, name in enumerate(names)}
    code = labels.replace_strict(number, default=-1, return_dtype=pl.Int64).fill_null(-1).to_numpy()
    return Groups(by, tuple(names), code)


def choose_pairs(groups: Groups, pairs: Iterable[Pair] | None) -> tuple[Pair, ...]:
    """Pairs of groups to compare: all of them, or those named, which must exist."""
    if pairs is None:
        return tuple(combinations(groups.names, 2))
    pairs = list(pairs)
    odd = next((pair for pair in pairs if isinstance(pair, str) or len(pair) != 2), None)
    if odd is not None:
        raise UserError(f"expected pairs of two groups, such as [('human', 'llm')], got {odd!r}")
    chosen = tuple((a, b) for a, b in pairs)
    for pair in chosen:
        for name in pair:
            if name not in groups.names:
                raise unknown(groups.by or "group", name, groups.names)
        if pair[0] == pair[1]:
            raise UserError(f"nothing to compare: pair {pair[0]!r},{pair[1]!r} names one group twice")
        if sum(set(pair) == set(other) for other in chosen) > 1:
            raise UserError(f"pair {pair[0]!r},{pair[1]!r} is given twice")
    return chosen


def twin_rows(collection: Collection, groups: Groups, pair: Pair) -> npt.NDArray[np.int64]:
    """Rows of the documents of both groups that share an origin; shape (n_pairs, 2)."""
    a, b = (groups.names.index(name) for name in pair)
    table = _origins(collection, groups)
    left = table.filter(pl.col("group") == a).select("origin", a="row")
    right = table.filter(pl.col("group") == b).select("origin", b="row")
    joined = left.join(right, on="origin", how="inner", maintain_order="left_right")
    return joined.select("a", "b").to_numpy()


def _origins(collection: Collection, groups: Groups) -> pl.DataFrame:
    """Row, origin and group of each document."""
    rows = np.arange(collection.docs.height)
    return pl.DataFrame({"row": rows, "origin": collection.docs["origin"], "group": groups.code})


def are_twins(collection: Collection, groups: Groups, pair: Pair, judged: pl.DataFrame) -> bool:
    """Whether every relevant document of one group has exactly one twin of the same grade in the other.

    `judged` holds the relevant judgments: ``query``, ``row``, ``grade``.
    """
    a, b = (groups.names.index(name) for name in pair)
    known = judged.join(_origins(collection, groups), on="row", how="inner").filter(pl.col("group").is_in([a, b]))
    sides = known.group_by("query", "origin").agg(
        (pl.col("group") == a).sum().alias("a"),
        (pl.col("group") == b).sum().alias("b"),
        pl.col("grade").n_unique().alias("grades"),
    )
    return bool(((sides["a"] == 1) & (sides["b"] == 1) & (sides["grades"] == 1)).all())

"""Choose the pairs of groups to compare, and find the twins of a pair.

In a pair, ``rest`` (`REST`) stands for all documents of other groups. *Twins* are two versions of
one document, their *origin*: each of the two groups has one of them. `twin_rows` finds them;
`are_twins` says whether two groups consist of twins, as far as judgments of relevance go, so that
both have the same chances.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import Groups, Pair
from ranktilt.data.collection import Collection
from ranktilt.data.labels.group_names import OTHERS, REST
from ranktilt.data.labels.label_remarks import MOST_PAIRED, parts_words
from ranktilt.data.notes.inputs import NumberLabels, PropertyLabels
from ranktilt.data.text.label_values import SEVERAL
from ranktilt.errors import UserError


def grouped_pairs(
    collection: Collection, by: str | None, pairs: Iterable[Pair] | None, *, fewest: int = 2
) -> tuple[Groups, tuple[Pair, ...]]:
    """Group the documents, and choose the pairs of groups to compare.

    Parameters
    ----------
    collection : Collection
        The documents.
    by : str or None
        Column to group by, or bins of its numbers as ``COLUMN:N``; None for no groups.
    pairs : iterable of (str, str), or None
        Pairs of groups to compare; None for all pairs.
    fewest : int, optional
        Fewest groups.

    Raises
    ------
    UserError
        If there are fewer groups than `fewest`, a pair is not of two different groups, or there are
        too many pairs.
    """
    pairs = None if pairs is None else list(pairs)
    _check_pairs(pairs or ())
    keep = list(chain.from_iterable(pairs or ()))
    groups = grouping(collection, by, keep, fewest=fewest)
    if by == "source":
        _refuse_joined_sources(keep, groups)
    if pairs and REST in keep and REST not in groups.names:
        pairs = [_without_rest(pair, groups) for pair in pairs]
    if pairs and len(pairs) > 1 and REST in keep and (groups.merged or REST not in groups.names):
        raise UserError(
            f"{REST!r} stands for every group but one; name one pair with it, such as "
            f"{groups.names[0]},{REST}"
        )
    return groups, () if by is None and pairs is None else choose_pairs(groups, pairs)


def _refuse_joined_sources(names: Iterable[str], groups: Groups) -> None:
    """Refuse to join sources (``A|B``, ``non-A``), which is done for groups of other columns."""
    for name in names:
        parts = name.removeprefix(OTHERS).split(SEVERAL)
        if name in groups.names or not set(parts) <= set(groups.names):
            continue  # a source, or a name that `choose_pairs` refuses as unknown
        if len(parts) > 1:
            joined = ",".join(f"{part}=NAME" for part in parts)
            raise UserError(
                f"{name!r}: sources are not joined; give them one name in labels (--groups FILE "
                f"--name {joined}), or name another column that has these labels (--by)"
            )
        raise UserError(
            f"{name!r}: sources are not joined; to compare one with all others, type --pair "
            f"{parts[0]},{REST}"
        )


def choose_pairs(groups: Groups, pairs: Iterable[Pair] | None) -> tuple[Pair, ...]:
    """Choose the pairs of groups to compare: all of them, or those in `pairs`, which must exist."""
    if pairs is None:
        all_pairs = tuple(combinations(groups.names, 2))
        if len(groups.names) > MOST_PAIRED:
            raise UserError(
                f"{groups.by} makes {len(groups.names)} groups, {len(all_pairs)} pairs; all pairs "
                f"are compared only up to {MOST_PAIRED} groups: {_remedy(groups)}"
            )
        return all_pairs
    pairs = list(pairs)
    _check_pairs(pairs)
    chosen = tuple((groups.names[groups.index(a)], groups.names[groups.index(b)]) for a, b in pairs)
    for a, b in chosen:
        if a == b:
            raise UserError(f"nothing to compare: pair {a!r},{b!r} names one group twice")
        if chosen.count((a, b)) + chosen.count((b, a)) > 1:
            raise UserError(f"pair {a!r},{b!r} is given twice")
    return chosen


def twin_rows(collection: Collection, groups: Groups, pair: Pair) -> npt.NDArray[np.int64]:
    """Return the rows of all twins: a document of the first group, and one of the second.

    The array has the shape (n_twins, 2). If an origin has several documents in a group, all their
    combinations are twins.
    """
    index_a, index_b = (groups.names.index(name) for name in pair)
    documents = _grouped_documents(collection, groups)
    first = documents.filter(pl.col("group") == index_a).select("origin", a="row")
    second = documents.filter(pl.col("group") == index_b).select("origin", b="row")
    joined = first.join(second, on="origin", how="inner", maintain_order="left_right")
    return joined.select("a", "b").to_numpy()


def are_twins(collection: Collection, groups: Groups, pair: Pair, relevant: pl.DataFrame) -> bool:
    """Return whether each relevant document of either group has exactly one twin of its grade.

    `relevant` is a table of the relevant documents, with the columns ``query``, ``row`` and
    ``grade``.
    """
    index_a, index_b = (groups.names.index(name) for name in pair)
    documents = relevant.join(_grouped_documents(collection, groups), on="row", how="inner")
    compared = documents.filter(pl.col("group").is_in([index_a, index_b]))
    origins = compared.group_by("query", "origin").agg(
        (pl.col("group") == index_a).sum().alias("a"),
        (pl.col("group") == index_b).sum().alias("b"),
        pl.col("grade").n_unique().alias("grades"),
    )
    is_one_pair = (origins["a"] == 1) & (origins["b"] == 1) & (origins["grades"] == 1)
    return bool(is_one_pair.all())


def _check_pairs(pairs: Iterable[Any]) -> None:
    """Refuse anything but pairs of names."""
    for pair in pairs:
        # A string of two letters would pass for a pair.
        is_pair = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
        if not is_pair or not all(isinstance(name, str) for name in pair):
            raise UserError(
                f"expected pairs of two groups, such as [('human', 'llm')], got {pair!r}"
            )


def _without_rest(pair: Pair, groups: Groups) -> Pair:
    """Return a pair of a group and ``rest`` with the name of the other group for ``rest``.

    This is for collections with two groups; other pairs, and those that `choose_pairs` will refuse,
    are returned as they are.
    """
    if len(groups.names) != 2 or set(pair) <= {REST}:
        return pair
    index = groups.index(next(name for name in pair if name != REST))
    other_index = 1 - index
    a, b = (groups.names[other_index if name == REST else index] for name in pair)
    return a, b


def _remedy(groups: Groups) -> str:
    """Say what to do if there are too many groups to compare."""
    for remark in groups.remarks:
        if isinstance(remark, NumberLabels | PropertyLabels):
            return parts_words(remark.by, remark)
    return "name some (--pair A,B), or bin a column of numbers, such as year:3, or score:.5"


def _grouped_documents(collection: Collection, groups: Groups) -> pl.DataFrame:
    """Return a table of all documents: row, origin and index of the group."""
    rows = np.arange(collection.docs.height)
    return pl.DataFrame({"row": rows, "origin": collection.docs["origin"], "group": groups.code})

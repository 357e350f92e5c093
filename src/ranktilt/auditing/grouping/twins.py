"""Find twins: two versions of one document, of which each of two groups has one.

The document that they are versions of is their *origin*.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups, Pair
from ranktilt.data.collection import Collection


def twin_rows(collection: Collection, groups: Groups, pair: Pair) -> npt.NDArray[np.int64]:
    """Return the rows of all twins: a document of the first group, and one of the second.

    The array has the shape (n_twins, 2). If an origin has several documents in a group, all their
    combinations are twins.
    """
    index_a, index_b = (groups.names.index(name) for name in pair)
    documents = _documents(collection, groups)
    first = documents.filter(pl.col("group") == index_a).select("origin", a="row")
    second = documents.filter(pl.col("group") == index_b).select("origin", b="row")
    joined = first.join(second, on="origin", how="inner", maintain_order="left_right")
    return joined.select("a", "b").to_numpy()


def _documents(collection: Collection, groups: Groups) -> pl.DataFrame:
    """Return a table of all documents: row, origin and index of the group."""
    rows = np.arange(collection.docs.height)
    return pl.DataFrame({"row": rows, "origin": collection.docs["origin"], "group": groups.code})


def are_twins(collection: Collection, groups: Groups, pair: Pair, relevant: pl.DataFrame) -> bool:
    """Return whether each relevant document of either group has exactly one twin of its grade.

    `relevant` is a table of the relevant documents, with the columns ``query``, ``row`` and
    ``grade``.
    """
    index_a, index_b = (groups.names.index(name) for name in pair)
    documents = relevant.join(_documents(collection, groups), on="row", how="inner")
    compared = documents.filter(pl.col("group").is_in([index_a, index_b]))
    origins = compared.group_by("query", "origin").agg(
        (pl.col("group") == index_a).sum().alias("a"),
        (pl.col("group") == index_b).sum().alias("b"),
        pl.col("grade").n_unique().alias("grades"),
    )
    is_one_pair = (origins["a"] == 1) & (origins["b"] == 1) & (origins["grades"] == 1)
    return bool(is_one_pair.all())

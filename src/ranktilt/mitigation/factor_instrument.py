"""A factor as the instrument of the causal correction, in place of the source.

A *factor* is a property in which versions of each document were made to differ on purpose, such as
fluency. It has a low and a high *level*. An *instrument* is something that changes the perplexity
of texts, and that changes a ranker's scores only through perplexity. The *origin* is the document
that versions were made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, unknown_name
from ranktilt.explaining.factors.effects import FactorDesign
from ranktilt.explaining.factors.result import SOURCE
from ranktilt.generation.versions.design import HIGH, LOW, PREFIX


@dataclass(frozen=True, eq=False, kw_only=True)
class Instrument:
    """A factor as instrument: pairs of versions that differ only in this factor.

    Both tables have the columns ``origin``, ``a`` and ``b``; the last two are document ids.
    """

    name: str
    """Name of the factor."""
    pairs: pl.DataFrame
    """Pairs that differ only in the factor: ``a`` is the low version, ``b`` the high one."""
    by_source: pl.DataFrame | None = None
    """Pairs that differ only in the source, to compare with; None if there are none.

    ``a`` is by the reference, ``b`` by the other source.
    """


def factor_instrument(
    collection: Collection,
    factor: str,
    *,
    source: str,
    reference: str = "human",
    force: bool = False,
) -> Instrument:
    """Pair the versions of each document that differ only in one factor, or only in the source.

    Parameters
    ----------
    collection : Collection
        Documents in designed versions; a column for each factor has their levels.
    factor : str
        Name of the factor.
    source, reference : str
        The two sources to compare. If ``source`` is itself a factor of the design, its levels are
        compared instead.
    force : bool, optional
        Accept a factor that failed its manipulation check: its high versions do not measurably
        differ from its low versions.
    """
    # A *design* says which factors the versions differ in.
    names = FactorDesign.from_collection(collection).names
    if factor not in names:
        raise unknown_name("factor", factor, names)
    if factor in collection.spec.get("design", {}).get("failed", ()) and not force:
        raise UserError(
            f"factor {factor!r} failed its manipulation check, so it is not an instrument; set "
            "force to go on anyway"
        )
    columns = [PREFIX + name for name in names]
    docs = collection.docs.drop_nulls(columns)  # without documents that are no designed versions
    pairs = _pairs(docs, PREFIX + factor, (LOW, HIGH), columns)
    if not pairs.height:
        raise UserError(
            f"no two versions differ in {factor} alone: fractional designs have none, full ones do"
        )
    by_source = pairs.clear()
    if SOURCE in names and factor != SOURCE:
        by_source = _pairs(docs, PREFIX + SOURCE, (LOW, HIGH), columns)
    elif factor != SOURCE:
        by_source = _pairs(docs, SOURCE, (reference, source), columns)
    return Instrument(name=factor, pairs=pairs, by_source=by_source if by_source.height else None)


def _pairs(
    docs: pl.DataFrame, column: str, levels: tuple[str, str], same_columns: Sequence[str]
) -> pl.DataFrame:
    """Pair versions of one document that are on different levels of one column.

    They must have the same values in all other columns of `same_columns`. Returns ``origin``, and
    the ids of the versions: ``a`` is on the first level, ``b`` on the second.
    """
    key = ["origin", *(name for name in same_columns if name != column)]
    sides = [
        docs.filter(pl.col(column) == level).select(*key, pl.col("id").alias(side))
        for side, level in zip("ab", levels, strict=True)
    ]
    return (
        sides[0]
        .join(sides[1], on=key, how="inner", maintain_order="left_right")
        .select("origin", "a", "b")
    )

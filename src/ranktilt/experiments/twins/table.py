"""Designed collections of versions that there are already: a table with a row a version."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import DataError, DataWarning, UserError, counted, join_words
from ranktilt.experiments.twins.checks import ManipulationChecks, check_factors
from ranktilt.experiments.twins.design import HIGH, LOW, given_design
from ranktilt.experiments.twins.factors import RULES, Factor
from ranktilt.experiments.twins.judgments import carried
from ranktilt.experiments.twins.make import ANSWERS, DesignedTwins
from ranktilt.generation.generated import LEFT_OUT
from ranktilt.io.parquet import PARQUET, as_parquet


def twins_of_table(
    file: str | Path,
    factors: Sequence[str],
    levels: Mapping[str, tuple[str, str]] | None = None,
    *,
    collection: Collection | None = None,
) -> DesignedTwins:
    """Make a designed collection of a table of versions: CSV, TSV or Parquet.

    It has the columns ``origin``, ``text`` and one a factor, with two values: ``low`` and ``high``,
    or those that `levels` names (rows with other values are left out); ``title`` and ``source`` if
    wanted. Queries and judgments are in its columns ``query_id``, ``query`` and ``grade``, a row
    for each version and query, or those of a `collection`, by origin. `DataError` or `UserError`
    says what is missing, or that an origin has two versions of one cell.
    """
    path, levels = Path(file), dict(levels or {})
    table = _read(path)
    missing = [name for name in ("origin", "text", *factors) if name not in table.columns]
    if missing or not factors:
        expected = join_words(["origin", "text", *(factors or ["one a factor (--factors)"])])
        raise DataError(
            path, f"expected the columns {expected}; missing: {', '.join(missing) or 'a factor'}"
        )
    strange = next((name for name in levels if name not in factors), None)
    if strange is not None:
        raise UserError(f"--level {strange}: no such factor (--factors {','.join(factors)})")
    table = _levelled(
        path, table, factors, {name: levels.get(name, (LOW, HIGH)) for name in factors}
    )
    docs = _documents(path, table, factors)
    queries, qrels = _judged(path, table, docs, collection)
    cells = docs.select(pl.col(f"factor:{name}") == HIGH for name in factors).iter_rows()
    layout = given_design(factors, [tuple(1 if one else -1 for one in cell) for cell in cells])
    known = [
        replace(RULES[n], made_by=path.name) if n in RULES else _unknown(n, path.name)
        for n in factors
    ]
    about = {
        **layout.to_dict(),
        "cells": None,
        "seed": None,
        "judgments": _NOTES[collection is not None],
        "low_high": {name: list(levels.get(name, (LOW, HIGH))) for name in factors},
    }
    made = Collection(docs, queries, qrels)
    base = _originals(made, factors)
    first = qrels.join(docs.select("id", "origin"), left_on="doc_id", right_on="id")
    first = first.group_by("query_id", "origin", maintain_order=True).agg(pl.col("grade").max())
    judged = first.select("query_id", pl.col("origin").alias("doc_id"), "grade")
    checked = check_factors(made, base, judged, known)
    checks = ManipulationChecks({"path": str(path), "design": about}, checked, {})
    spec = {"table": str(path), "design": {**about, "failed": list(checks.failed)}}
    made = Collection(docs, queries, qrels, spec)
    return DesignedTwins(
        collection=made,
        given=Collection(base, queries, qrels),
        checks=checks,
        left_out=LEFT_OUT.to_frame(),
        answers=ANSWERS.to_frame(),
        made=(),
        spec={"table": str(path), "collection": {}},
    )


_NOTES = {
    True: "those of the collection, by origin; none of versions whose facts are high",
    False: "those of the table, version by version",
}


def _unknown(name: str, made_by: str) -> Factor:
    return Factor(name, HIGH, {}, made_by=made_by)


def _read(path: Path) -> pl.DataFrame:
    """Every column as text."""
    if not path.is_file():
        raise DataError(path, "no such file")
    if path.suffix == PARQUET:
        with as_parquet(path):
            return pl.read_parquet(path, glob=False).with_columns(pl.all().cast(pl.String))
    try:
        return pl.read_csv(
            path, separator="\t" if path.suffix == ".tsv" else ",", infer_schema=False
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise DataError(
            path, f"expected CSV, TSV or Parquet: {str(error).splitlines()[0]}"
        ) from error


def _levelled(
    path: Path, table: pl.DataFrame, factors: Sequence[str], levels: Mapping[str, tuple[str, str]]
) -> pl.DataFrame:
    """Rows whose values are levels, with columns ``factor:*``."""
    for name in factors:
        low, high = levels[name]
        values = table[name].unique(maintain_order=True).drop_nulls().to_list()
        lost = [value for value in (low, high) if value not in values]
        if lost:
            raise DataError(
                path,
                f"column {name!r} has the values {join_words(values or ['none'])}, not {join_words(lost, 'or')}; "
                f"name the low and the high one: --level {name}=LOW,HIGH",
            )
        column = pl.col(name).replace_strict(
            {low: LOW, high: HIGH}, default=None, return_dtype=pl.String
        )
        held = table.with_columns(column.alias(f"factor:{name}")).drop_nulls(f"factor:{name}")
        if held.height < table.height:
            rows = counted(table.height - held.height, "row is", "rows are")
            warnings.warn(
                f"{rows} left out: {name!r} is neither {low!r} nor {high!r}",
                DataWarning,
                stacklevel=3,
            )
        table = held
    return table


def _documents(path: Path, table: pl.DataFrame, factors: Sequence[str]) -> pl.DataFrame:
    """A row a version, called by its origin and the factors that are high."""
    for name in ("origin", "text"):
        if table[name].null_count():
            raise DataError(
                path,
                f"column {name!r} is empty in a row of {table.filter(pl.col(name).is_null()).row(0)}",
            )
    columns = [f"factor:{name}" for name in factors]
    suffix = pl.concat_str(
        pl.when(pl.col(f"factor:{name}") == HIGH).then(pl.lit(f"+{name}")).otherwise(pl.lit(""))
        for name in factors
    )
    named = table.with_columns(id=pl.col("origin") + suffix)
    held = [name for name in ("title", "source") if name in table.columns]
    docs = named.select("id", *held, "text", "origin", *columns).unique(maintain_order=True)
    twice = docs.filter(pl.col("id").is_duplicated())
    if twice.height:
        raise DataError(
            path, f"origin {twice['origin'][0]!r} has two versions of one cell, {twice['id'][0]!r}"
        )
    return docs


def _judged(
    path: Path, table: pl.DataFrame, docs: pl.DataFrame, collection: Collection | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Queries and judgments, of the table or of the collection."""
    if collection is not None:
        qrels = carried(collection.qrels, docs)
        if collection.qrels.height and not qrels.height:
            raise DataError(
                path, "no origin is judged in the collection: origins are ids of its documents"
            )
        return collection.queries, qrels
    missing = [name for name in ("query_id", "query") if name not in table.columns]
    if missing:
        raise DataError(
            path,
            f"expected queries, in columns query_id and query, or a collection; missing: {missing[0]}",
        )
    queries = table.select(id="query_id", text="query").unique(maintain_order=True)
    grade = pl.col("grade").cast(pl.Float64) if "grade" in table.columns else pl.lit(1)
    high = {name: pl.col(name) for name in docs.columns if name.startswith("factor:")}
    suffix = pl.concat_str(
        pl.when(level == HIGH)
        .then(pl.lit(f"+{name.removeprefix('factor:')}"))
        .otherwise(pl.lit(""))
        for name, level in high.items()
    )
    try:
        qrels = table.select(
            "query_id", (pl.col("origin") + suffix).alias("doc_id"), grade.alias("grade")
        )
    except pl.exceptions.InvalidOperationError as error:
        raise DataError(
            path, f"expected numbers in column 'grade': {str(error).splitlines()[0]}"
        ) from error
    return queries, qrels.unique(maintain_order=True)


def _originals(made: Collection, factors: Sequence[str]) -> pl.DataFrame:
    """The version of each origin with the fewest high factors, under the origin's name."""
    number = pl.sum_horizontal(
        (pl.col(f"factor:{name}") == HIGH).cast(pl.Int64) for name in factors
    )
    first = made.docs.with_columns(high=number).sort("high", maintain_order=True)
    return (
        first.unique("origin", keep="first", maintain_order=True)
        .with_columns(id="origin")
        .drop("high")
    )

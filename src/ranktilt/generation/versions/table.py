"""Designed collections from versions that exist already: a table with a row a version."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.formats.tables.parquet import PARQUET, as_parquet
from ranktilt.errors import DataError, DataWarning, UserError, counted, join_words
from ranktilt.generation.generated import LEFT_OUT
from ranktilt.generation.versions.answer_sentences import ANSWER, ANSWER_POSITION
from ranktilt.generation.versions.checks import ManipulationChecks, check_factors
from ranktilt.generation.versions.design import HIGH, LOW, PREFIX, given_design
from ranktilt.generation.versions.factors import POSITION, RULES, Factor
from ranktilt.generation.versions.judgments import carried
from ranktilt.generation.versions.make import ANSWERS, DesignedVersions

LowHigh = Mapping[str, tuple[str, str]]
"""By factor, the values of its column that are low and high."""


def versions_from_table(
    file: str | Path,
    factors: Sequence[str],
    levels: LowHigh | None = None,
    *,
    collection: Collection | None = None,
) -> DesignedVersions:
    """Make a designed collection of a table of versions: CSV, TSV or Parquet.

    It has the columns ``origin``, ``text`` and one a factor, with two values: ``low`` and ``high``,
    or those that `levels` names (rows with other values are left out); ``title`` and ``source`` if
    wanted. Queries and judgments are in its columns ``query_id``, ``query`` and ``grade``, a row
    for each version and query, or those of a `collection`, by origin. `DataError` or `UserError`
    says what is missing, or that an origin has two versions of one cell.
    """
    path = Path(file)
    table = _read(path)
    low_high = dict.fromkeys(factors, (LOW, HIGH)) | dict(levels or {})
    _check_columns(path, table, factors, low_high)
    table = _with_levels(path, table, low_high)
    docs = _documents(path, table, factors)
    queries, qrels = _judged(path, table, docs, collection)
    designed = Collection(docs, queries, qrels)
    originals = _originals(docs)
    rows = check_factors(
        designed,
        originals,
        _judgments_by_origin(qrels, docs),
        [_factor(name, path.name) for name in factors],
    )
    about = _described(docs, low_high, from_collection=collection is not None)
    checks = ManipulationChecks(spec={"path": str(path), "design": about}, rows=rows, changed={})
    spec = {"table": str(path), "design": {**about, "failed": list(checks.failed)}}
    return DesignedVersions(
        collection=Collection(docs, queries, qrels, spec),
        originals=Collection(originals, queries, qrels),
        checks=checks,
        left_out=LEFT_OUT.to_frame(),
        answers=ANSWERS.to_frame(),
        summaries=(),
        spec={"table": str(path), "collection": {}},
    )


def _described(docs: pl.DataFrame, low_high: LowHigh, *, from_collection: bool) -> dict[str, Any]:
    """Return the design as it is written down."""
    is_high = docs.select(pl.col(PREFIX + name) == HIGH for name in low_high)
    cells = []
    for row in is_high.iter_rows():
        cells.append(tuple(1 if high else -1 for high in row))
    judgments = "from the table, per version"
    if from_collection:
        judgments = "from the collection, by origin; none for versions whose facts are high"
    return {
        **given_design(list(low_high), cells).to_dict(),
        "cells": None,
        "seed": None,
        "judgments": judgments,
        "low_high": {name: list(values) for name, values in low_high.items()},
    }


def _factor(name: str, made_by: str) -> Factor:
    """Return what is expected of a factor: what its rule does where there is one, else nothing."""
    if name == POSITION:
        # Only who made the table knows which place is high.
        return replace(RULES[name], moves={ANSWER_POSITION: 0}, made_by=made_by)
    if name in RULES:
        return replace(RULES[name], made_by=made_by)
    return Factor(name=name, high=HIGH, moves={}, made_by=made_by)


def _judgments_by_origin(qrels: pl.DataFrame, docs: pl.DataFrame) -> pl.DataFrame:
    """Give each origin the highest grade of its versions."""
    versions = qrels.join(docs.select("id", "origin"), left_on="doc_id", right_on="id")
    highest = versions.group_by("query_id", "origin", maintain_order=True).agg(
        pl.col("grade").max()
    )
    return highest.select("query_id", pl.col("origin").alias("doc_id"), "grade")


def _check_columns(
    path: Path, table: pl.DataFrame, factors: Sequence[str], low_high: LowHigh
) -> None:
    """Refuse a table without the columns of versions and factors."""
    missing = [name for name in ("origin", "text", *factors) if name not in table.columns]
    if missing or not factors:
        columns = join_words(["origin", "text", *(factors or ["one a factor (--factors)"])])
        missing_columns = ", ".join(missing) or "a factor"
        raise DataError(path, f"expected the columns {columns}; missing: {missing_columns}")
    for name in low_high:
        if name not in factors:
            raise UserError(f"--factor {name}: no such factor (--factors {','.join(factors)})")


def _read(path: Path) -> pl.DataFrame:
    """Read every column as text."""
    if not path.is_file():
        raise DataError(path, "no such file")
    if path.suffix == PARQUET:
        with as_parquet(path):
            return pl.read_parquet(path, glob=False).with_columns(pl.all().cast(pl.String))
    separator = "\t" if path.suffix == ".tsv" else ","
    try:
        return pl.read_csv(path, separator=separator, infer_schema=False)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(path, f"expected CSV, TSV or Parquet: {reason}") from error


def _with_levels(path: Path, table: pl.DataFrame, low_high: LowHigh) -> pl.DataFrame:
    """Keep rows whose values are levels, with columns ``factor:*``."""
    for name, (low, high) in low_high.items():
        values = table[name].unique(maintain_order=True).drop_nulls().to_list()
        absent = [value for value in (low, high) if value not in values]
        if absent:
            raise DataError(
                path,
                f"column {name!r} has the values {join_words(values or ['none'])}, not "
                f"{join_words(absent, 'or')}; name the low and the high one: "
                f"--factor {name}=LOW,HIGH",
            )
        level = pl.col(name).replace_strict(
            {low: LOW, high: HIGH}, default=None, return_dtype=pl.String
        )
        with_level = table.with_columns(level.alias(PREFIX + name)).drop_nulls(PREFIX + name)
        if with_level.height < table.height:
            rows = counted(table.height - with_level.height, "row is", "rows are")
            warnings.warn(
                f"{rows} left out: {name!r} is neither {low!r} nor {high!r}",
                DataWarning,
                stacklevel=3,
            )
        table = with_level
    return table


def _version_id(factors: Sequence[str]) -> pl.Expr:
    """Name a version by its origin and the factors that are high."""
    suffixes = [
        pl.when(pl.col(PREFIX + name) == HIGH).then(pl.lit(f"+{name}")).otherwise(pl.lit(""))
        for name in factors
    ]
    return pl.concat_str("origin", *suffixes)


def _documents(path: Path, table: pl.DataFrame, factors: Sequence[str]) -> pl.DataFrame:
    """Return the distinct versions, a row each."""
    for name in ("origin", "text"):
        empty = table.filter(pl.col(name).is_null())
        if empty.height:
            raise DataError(path, f"column {name!r} is empty in a row of {empty.row(0)}")
    optional = [name for name in ("title", "source", ANSWER) if name in table.columns]
    columns = ["id", *optional, "text", "origin", *(PREFIX + name for name in factors)]
    docs = table.with_columns(id=_version_id(factors)).select(columns).unique(maintain_order=True)
    repeated = docs.filter(pl.col("id").is_duplicated())
    if repeated.height:
        origin, version = repeated.select("origin", "id").row(0)
        raise DataError(path, f"origin {origin!r} has two versions in one cell, {version!r}")
    return docs


def _judged(
    path: Path, table: pl.DataFrame, docs: pl.DataFrame, collection: Collection | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return queries and judgments, of the table or of the collection."""
    if collection is None:
        return _judged_by_table(path, table, docs)
    qrels = carried(collection.qrels, docs)
    if collection.qrels.height and not qrels.height:
        raise DataError(
            path, "no origin is judged in the collection: origins are ids of its documents"
        )
    return collection.queries, qrels


def _judged_by_table(
    path: Path, table: pl.DataFrame, docs: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return queries and judgments from the table's own columns."""
    for name in ("query_id", "query"):
        if name not in table.columns:
            raise DataError(
                path,
                "expected queries, in columns query_id and query, or a collection; "
                f"missing: {name}",
            )
    queries = table.select(id="query_id", text="query").unique(maintain_order=True)
    grade = pl.col("grade").cast(pl.Float64) if "grade" in table.columns else pl.lit(1)
    factors = [name.removeprefix(PREFIX) for name in docs.columns if name.startswith(PREFIX)]
    try:
        qrels = table.select("query_id", doc_id=_version_id(factors), grade=grade)
    except pl.exceptions.InvalidOperationError as error:
        reason = str(error).splitlines()[0]
        raise DataError(path, f"expected numbers in column 'grade': {reason}") from error
    return queries, qrels.unique(maintain_order=True)


def _originals(docs: pl.DataFrame) -> pl.DataFrame:
    """Return the version of each origin with the fewest high factors, under the origin's name."""
    high_count = pl.sum_horizontal((pl.col(f"^{PREFIX}.*$") == HIGH).cast(pl.Int64))
    first = docs.with_columns(high=high_count).sort("high", maintain_order=True)
    return (
        first.unique("origin", keep="first", maintain_order=True)
        .with_columns(id="origin")
        .drop("high")
    )

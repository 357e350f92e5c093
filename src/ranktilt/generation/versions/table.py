"""Designed collections from versions that exist already: a table with a row for each version.

A *factor* is a property with two levels, ``low`` and ``high``; a *cell* is a combination of one
level per factor for one origin, the document that versions were made from.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.formats.tables.parquet import PARQUET, as_parquet
from ranktilt.errors import DataError, DataWarning, UserError, counted, join_words, refuse_twice
from ranktilt.generation.generated import LEFT_OUT
from ranktilt.generation.versions.answer_sentences import ANSWER, ANSWER_POSITION
from ranktilt.generation.versions.checks import ManipulationChecks, check_factors
from ranktilt.generation.versions.design import HIGH, LOW, PREFIX, design_of_versions
from ranktilt.generation.versions.factors import POSITION, RULES, Factor
from ranktilt.generation.versions.judgments import carry_over
from ranktilt.generation.versions.make import ANSWERS, DesignedVersions

LevelValues = Mapping[str, tuple[str, str]]
"""By factor, the values of its column that stand for low and for high."""


def versions_from_table(
    file: str | Path,
    factors: Sequence[str],
    levels: LevelValues | None = None,
    *,
    collection: Collection | None = None,
) -> DesignedVersions:
    """Make a designed collection of a table of versions: CSV, TSV or Parquet.

    Parameters
    ----------
    file : str or Path
        The table, with the columns ``origin``, ``text`` and one for each factor, and optionally
        ``title``, ``source`` and ``answer``. Without a `collection` it has a row for each version
        and query, with the columns ``query_id`` and ``query``, and ``grade`` unless all are
        relevant.
    factors : sequence of str
        Names of the columns of factors.
    levels : mapping, optional
        By factor, its values for low and for high; ``low`` and ``high`` by default. Rows with other
        values are left out.
    collection : Collection, optional
        Collection with queries and judgments, whose documents are the origins.

    Raises
    ------
    DataError
        If the table cannot be read, a column or a value is missing, or an origin has two versions
        in one cell.
    UserError
        If `levels` names an unknown factor.
    """
    refuse_twice(list(factors), "factor")
    path = Path(file)
    table = _read(path)
    level_values = dict.fromkeys(factors, (LOW, HIGH)) | dict(levels or {})
    _check_columns(path, table, factors, level_values)
    table = _with_levels(path, table, level_values)
    docs = _documents(path, table, factors)
    queries, qrels = _queries_and_qrels(path, table, docs, collection)
    designed = Collection(docs, queries, qrels)
    originals = _originals(docs)
    rows = check_factors(
        designed,
        originals,
        _judgments_by_origin(qrels, docs),
        [_factor(name, path.name) for name in factors],
    )
    design = _design_spec(docs, level_values, from_collection=collection is not None)
    checks = ManipulationChecks(spec={"path": str(path), "design": design}, rows=rows, changed={})
    spec = {"table": str(path), "design": {**design, "failed": list(checks.failed)}}
    return DesignedVersions(
        collection=Collection(docs, queries, qrels, spec),
        originals=Collection(originals, queries, qrels),
        checks=checks,
        left_out=LEFT_OUT.to_frame(),
        answers=ANSWERS.to_frame(),
        summaries=(),
        spec={"table": str(path), "collection": {}},
    )


def _design_spec(
    docs: pl.DataFrame, level_values: LevelValues, *, from_collection: bool
) -> dict[str, Any]:
    """Describe the design as plain JSON values."""
    is_high = docs.select(pl.col(PREFIX + name) == HIGH for name in level_values)
    levels = []
    for row in is_high.iter_rows():
        levels.append(tuple(1 if high else -1 for high in row))
    judgments = "from the table, per version"
    if from_collection:
        judgments = "from the collection, by origin; none for versions whose facts are high"
    return {
        **design_of_versions(list(level_values), levels).to_dict(),
        "cells": None,
        "seed": None,
        "judgments": judgments,
        "low_high": {name: list(values) for name, values in level_values.items()},
    }


def _factor(name: str, made_by: str) -> Factor:
    """Return a factor with what is expected of it: what a built-in one of that name does."""
    if name == POSITION:
        # The table does not say to which place the high level moves answers.
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
    path: Path, table: pl.DataFrame, factors: Sequence[str], level_values: LevelValues
) -> None:
    """Refuse a table without the columns of versions and factors."""
    missing = [name for name in ("origin", "text", *factors) if name not in table.columns]
    if missing or not factors:
        columns = join_words(["origin", "text", *(factors or ["one a factor (--factors)"])])
        missing_columns = ", ".join(missing) or "a factor"
        raise DataError(path, f"expected the columns {columns}; missing: {missing_columns}")
    for name in level_values:
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


def _with_levels(path: Path, table: pl.DataFrame, level_values: LevelValues) -> pl.DataFrame:
    """Add columns ``factor:NAME`` with the levels, and leave out rows with other values."""
    for name, (low, high) in level_values.items():
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
    """Return the distinct versions as documents, a row for each."""
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


def _queries_and_qrels(
    path: Path, table: pl.DataFrame, docs: pl.DataFrame, collection: Collection | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return queries and judgments of the collection, or of the table if there is none."""
    if collection is None:
        return _queries_and_qrels_of_table(path, table, docs)
    qrels = carry_over(collection.qrels, docs)
    if collection.qrels.height and not qrels.height:
        raise DataError(
            path, "no origin is judged in the collection: origins are ids of its documents"
        )
    return collection.queries, qrels


def _queries_and_qrels_of_table(
    path: Path, table: pl.DataFrame, docs: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return queries and judgments from the table's own columns; without grades all are 1."""
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
    fewest_first = docs.with_columns(high=high_count).sort("high", maintain_order=True)
    return (
        fewest_first.unique("origin", keep="first", maintain_order=True)
        .with_columns(id="origin")
        .drop("high")
    )

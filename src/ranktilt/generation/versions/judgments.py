"""Judgments of versions: those of the original, except where a version says something else."""

from __future__ import annotations

import polars as pl

from ranktilt.generation.versions.design import has_changed_facts


def carried(qrels: pl.DataFrame, docs: pl.DataFrame) -> pl.DataFrame:
    """Give each version the judgments of its origin, but for those whose facts were changed."""
    return judgments_of_origins(qrels, docs.filter(~has_changed_facts(docs)))


def judgments_of_origins(qrels: pl.DataFrame, docs: pl.DataFrame) -> pl.DataFrame:
    """Give each of these documents the judgments of its origin."""
    versions = docs.select("origin", version="id")
    joined = qrels.join(versions, left_on="doc_id", right_on="origin", maintain_order="left")
    return joined.select("query_id", "version", "grade").rename({"version": "doc_id"})

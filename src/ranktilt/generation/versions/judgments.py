"""Judgments of versions: those of the original, except where a version states other facts.

An *origin* is the id of the document that a version was made from.
"""

from __future__ import annotations

import polars as pl

from ranktilt.generation.versions.design import has_changed_facts


def carry_over(qrels: pl.DataFrame, docs: pl.DataFrame) -> pl.DataFrame:
    """Give the judgments of each origin to its versions, except to those with changed facts.

    `qrels` are judgments of the origins, `docs` the versions with their columns ``factor:NAME``.
    """
    return judgments_of_origins(qrels, docs.filter(~has_changed_facts(docs)))


def judgments_of_origins(qrels: pl.DataFrame, docs: pl.DataFrame) -> pl.DataFrame:
    """Give each of these documents the judgments of its origin."""
    versions = docs.select("origin", version="id")
    judged = qrels.join(versions, left_on="doc_id", right_on="origin", maintain_order="left")
    return judged.select("query_id", "version", "grade").rename({"version": "doc_id"})

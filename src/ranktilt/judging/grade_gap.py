"""Whether a judge grades one side of twins higher: same meaning, same query, same human grade."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.null_distributions.base import NullDistribution
from ranktilt.auditing.significance import InferenceOptions, Sample, effects
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import TwinsWithoutGap
from ranktilt.measures.grade_gap import GradeGap
from ranktilt.statistics.permutation import exchanged
from ranktilt.statistics.two_way import Clusters
from ranktilt.statistics.variation import Variation, grade_variation

_SEED = 13
"""Draws of its own."""


def twin_grades(
    collection: Collection, judged: pl.DataFrame, pair: Pair
) -> tuple[pl.DataFrame, int]:
    """List the twins that a judge graded for one query, and count those of which it graded one side alone.

    Columns ``query_id``, ``origin``, ``gap`` (grade of the first side less that of the second),
    ``human`` (their human grade, null where they have none) and ``same`` (whether it is the same,
    or there is none).
    """
    human = collection.qrels.select("query_id", "doc_id", human=pl.col("grade"))
    grades = judged.select("query_id", "doc_id", "grade").join(
        human, on=["query_id", "doc_id"], how="left"
    )
    twins = collection.pairs(*pair)
    sides = [
        twins.select("origin", doc_id=side)
        .with_row_index("pair")
        .join(grades, on="doc_id")
        .drop("doc_id")
        for side in ("a", "b")
    ]
    both = sides[0].join(sides[1], on=["pair", "origin", "query_id"], suffix="_b")
    lone = sides[0].height + sides[1].height - 2 * both.height
    same = pl.col("human").eq_missing(pl.col("human_b"))
    return both.select(
        "query_id",
        "origin",
        "human",
        gap=(pl.col("grade") - pl.col("grade_b")).cast(pl.Float64),
        same=same,
    ).sort("query_id", "origin"), lone


def grade_gaps(
    collection: Collection, judges: dict[str, pl.DataFrame], pair: Pair, *, how: InferenceOptions
) -> tuple[tuple[Effect, ...], list[Note]]:
    """Give each judge's grade gap over all twins and by human grade, tested by exchanging the labels of each origin."""
    samples, notes = list[Sample](), list[Note]()
    for name, judged in judges.items():
        twins, lone = twin_grades(collection, judged, pair)
        other = twins.filter(~pl.col("same")).height
        if lone:
            notes.append(TwinsWithoutGap(judge=name, twins=lone, reason="one side"))
        if other:
            notes.append(TwinsWithoutGap(judge=name, twins=other, reason="two human grades"))
        twins = twins.filter("same")
        samples += [_sample(name, pair, some, level, how) for level, some in _levels(twins)]
    return effects(samples, how, primary=GradeGap), notes


def judge_variation(pairs: pl.DataFrame) -> Variation:
    """Return in how many queries a judge tells documents apart, of those in which humans do.

    `pairs` has the columns ``query_id``, ``judged`` and ``human``. Where humans tell none apart, a
    judge that gives more than one grade in all can vary.
    """
    queries = pairs.group_by("query_id").agg(pl.col("judged", "human").n_unique())
    apart = queries.filter(pl.col("human") > 1)
    if pairs["judged"].n_unique() < 2:
        return grade_variation(queries.height, queries.height)
    return grade_variation(max(apart.height, 1), apart.filter(pl.col("judged") == 1).height)


def _levels(twins: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """All twins, then those of each human grade, where there are several."""
    yield "any", twins
    known = sorted(twins["human"].drop_nulls().unique())
    if len(known) > 1:
        yield from ((f"{grade:g}", twins.filter(pl.col("human") == grade)) for grade in known)


def _sample(
    judge: str, pair: Pair, twins: pl.DataFrame, level: str, how: InferenceOptions
) -> Sample:
    names = twins["query_id"].unique().sort()
    query = twins["query_id"].rank("dense").to_numpy().astype(np.int64) - 1
    origin = twins["origin"].rank("dense").to_numpy().astype(np.int64) - 1
    gap = twins["gap"].to_numpy()
    total = np.bincount(query, weights=gap, minlength=len(names)).astype(np.float64)
    weight = np.bincount(query, minlength=len(names)).astype(np.float64)
    parts = {
        "pairs": float(len(gap)),
        "higher": float((gap > 0).sum()),
        "lower": float((gap < 0).sum()),
    }
    of = GradeGap if level == "any" else replace(GradeGap, grade=level)
    clusters = Clusters(query, origin, gap, np.ones(len(gap)))
    sample = Sample(judge, of, *pair, total, weight, parts, clusters=clusters)
    if not len(gap):
        return replace(sample, clusters=None)
    null = exchanged(clusters.origin_totals, draws=how.resamples, seed=[how.seed, _SEED]) / len(gap)
    p = NullDistribution.from_draws(sample.value, null).p
    return replace(sample, null=NullDistribution(0.0, 0.0, p))

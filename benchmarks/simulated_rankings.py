"""Simulated rankings whose true values are known, and how often an interval holds them (MEASURES, sec. 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import grouping, twin_rows
from ranktilt.auditing.judged_rankings import Aligned, Judgments, group_values
from ranktilt.auditing.card import DEPTH as CARD_DEPTH
from ranktilt.auditing.card import Card, card_estimands
from ranktilt.auditing.null_distributions.base import Shuffles
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.auditing.significance import InferenceOptions, Sample, effects
from ranktilt.collection import Collection
from ranktilt.measures.base import Estimand, Measure, measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.progress import report
from ranktilt.rankers.base import cut
from ranktilt.run import Run

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MEASURES = ("nDCG@1", "nDCG@5", "AP@5")
PAIRS, DEPTH = 100, 100
SIDES = ("human", "llm")
_AT_ONCE = 2_000
_MOST_RELEVANT = 40
_TIED = 0.1


class Covered(NamedTuple):
    """How often the 95 % interval of one estimand held its true value."""

    estimand: str
    truth: float
    draws: int
    held: int
    below: int
    """Intervals that lie wholly below the true value; the others that miss it lie above."""
    bias: float
    """Mean of the estimates less the true value, in standard deviations of the estimates."""

    @property
    def share(self) -> float:
        """Share of the intervals that hold the true value."""
        return self.held / self.draws


@dataclass(frozen=True)
class Population:
    """Queries without end, of which a simulated collection is a sample drawn with replacement.

    Each draw is independent, so the values of the population itself are exactly what the estimates estimate.
    """

    samples: tuple[Sample, ...]

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return len(self.samples[0].one)

    @cached_property
    def truth(self) -> dict[str, float]:
        """The true value of each estimand: a ratio of the population's means."""
        return {s.estimand.title: s.value for s in self.samples}

    def sampled(self, rows: Ints, how: InferenceOptions) -> tuple[Effect, ...]:
        """Return what an audit of these queries finds; one may come several times."""
        return effects([replace(s, one=s.one[rows], two=s.two[rows]) for s in self.samples], how)


def population(
    queries: int, *, measures: Sequence[str | Measure] = MEASURES, more: Sequence[Estimand] = (), seed: int = 0
) -> Population:
    """Simulate rankings of twins; the per-query numbers come from the functions that an audit calls.

    Per query 100 pairs, of which as many are relevant as in real collections (median 3, one in twenty over 14, at most
    40; three in ten of grade 2). A pair's scores share most of what makes them; one side is ahead by an amount that
    differs from query to query, among relevant pairs another than among the rest. One pair in ten ties. The best 100
    documents are retrieved. `more` is asked beside the card's questions.
    """
    read = [measure(m) for m in measures]
    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, queries, _AT_ONCE):
        parts.append(_part(rng, min(_AT_ONCE, queries - start), read, more))
        report("simulating rankings", min(start + _AT_ONCE, queries), queries)
    joined = [
        replace(same[0], one=_joined(s.one for s in same), two=_joined(s.two for s in same), parts=_parts(same[0]))
        for same in zip(*(part.samples for part in parts), strict=True)
    ]
    return Population(tuple(joined))


def coverage(
    whole: Population, queries: int, *, draws: int = 2_000, resamples: int = 2_000, seed: int = 0
) -> list[Covered]:
    """Count how often the 95 % interval of each estimand holds its true value; an undefined one holds nothing.

    A simulated collection has so many `queries`, and there are so many `draws` of one.
    """
    rng = np.random.default_rng([seed, queries])
    names = list(whole.truth)
    found = np.full((draws, len(names), 3), np.nan)
    for number in range(draws):
        how = InferenceOptions(resamples, int(rng.integers(2**32)), "permutation", "holm", "none")
        made = whole.sampled(rng.integers(0, whole.queries, queries), how)
        found[number] = [(e.value, e.low, e.high) for e in made]
        report(f"coverage at {queries} queries", number + 1, draws)
    rows = zip(names, whole.truth.values(), found.transpose(1, 2, 0), strict=True)
    return [_covered(name, truth, *numbers) for name, truth, numbers in rows]


def _covered(name: str, truth: float, value: Floats, low: Floats, high: Floats) -> Covered:
    held = (low <= truth) & (truth <= high)
    known = value[~np.isnan(value)]
    bias = float((known.mean() - truth) / known.std()) if len(known) and known.std() else np.nan
    return Covered(name, truth, len(value), int(held.sum()), int((high < truth).sum()), bias)


def _parts(sample: Sample) -> Mapping[str, float]:
    """What belongs to an estimand of all groups at once; of others counts, which those of a part are not."""
    return {} if sample.estimand.sided else sample.parts


def _joined(parts: Iterator[Floats]) -> Floats:
    return np.concatenate(list(parts))


def _part(rng: np.random.Generator, queries: int, measures: Sequence[Measure], more: Sequence[Estimand]) -> Population:
    """Some of the queries, as an audit sees them."""
    collection, run = _rankings(rng, queries)
    groups = grouping(collection, "source")
    judgments = Judgments.of(collection, groups)
    aligned = Aligned.of(run, collection, judgments)
    found = group_values(aligned, measures, groups, "expected")
    deltas = [
        Sample("simulated", RelativeDelta(of=m), *SIDES, values[1], values[2])
        for m, values in zip(measures, found, strict=True)
    ]
    twins = {SIDES: Twins.of(SIDES, twin_rows(collection, groups, SIDES), judgments)}
    how = InferenceOptions(0, 0, "permutation", "holm", "none")
    asked = (*card_estimands(CARD_DEPTH, judged=True), *more)
    shuffles, origins = Shuffles(judgments, 0, count=1), np.arange(len(groups.code))
    card = Card(groups, twins, asked, how, shuffles, banded=True, origins=origins)
    places = [*card.of_twins(0, aligned, {SIDES: twins[SIDES].lists(aligned, "zero")}), *card.of_groups([aligned])]
    return Population((*deltas, *(sample for _, sample in sorted(places, key=itemgetter(0)))))


def _rankings(rng: np.random.Generator, queries: int) -> tuple[Collection, Run]:
    """The same documents for every query; which are relevant, and all scores, are each query's own."""
    wanted = np.exp(rng.normal(1.0, 1.0, queries)).round()
    relevant = np.clip(wanted, 1, _MOST_RELEVANT).astype(np.int64)
    grades = np.where(np.arange(PAIRS) < relevant[:, None], 1 + (rng.random((queries, PAIRS)) < 0.3), 0)
    grades = rng.permuted(grades, axis=1)
    ease = rng.lognormal(0.2, 0.5, (queries, 1))
    shared = rng.normal(0, 1, (queries, PAIRS)) + ease * np.sqrt(grades)
    own = rng.normal(0, 0.5, (queries, PAIRS, 2))
    lead = np.where(grades > 0, rng.normal(0.15, 0.3, (queries, 1)), rng.normal(-0.1, 0.3, (queries, 1)))
    own[:, :, 0] += lead
    own[rng.random((queries, PAIRS)) < _TIED] = 0.0
    scores = (shared[:, :, None] + own).reshape(queries, 2 * PAIRS)
    collection = _collection(grades)
    every = np.arange(2 * PAIRS)
    parts = cut(((every, row) for row in scores), collection.tie_keys(), DEPTH)
    return collection, Run(tuple(collection.judged["id"]), *parts, collection.ids, {"ranker": "simulated"})


def _collection(grades: Ints) -> Collection:
    queries = [f"q{n}" for n in range(len(grades))]
    docs = pl.DataFrame(
        [
            {"id": f"{n}-{side}", "text": "", "source": side, "origin": f"{n}-{SIDES[0]}"}
            for n in range(PAIRS)
            for side in SIDES
        ]
    )
    query, pair = np.nonzero(grades)
    names = pl.Series(queries).gather(np.repeat(query, 2))
    rows = (2 * pair[:, None] + np.arange(2)).ravel()
    qrels = pl.DataFrame(
        {"query_id": names, "doc_id": docs["id"].gather(rows), "grade": np.repeat(grades[query, pair], 2)}
    )
    return Collection(docs, pl.DataFrame({"id": queries, "text": [""] * len(queries)}), qrels)

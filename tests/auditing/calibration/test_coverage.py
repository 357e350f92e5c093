"""Intervals hold the true values of simulated rankings about as often as they claim."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchmarks import simulated_rankings as simulated
from benchmarks.simulated_rankings import MEASURES, SIDES, Population, coverage, population
from ranktilt.auditing.audit import audit
from ranktilt.auditing.significance import InferenceOptions, Sample
from ranktilt.collection import Collection
from ranktilt.measures.twins.rank_gap import RankGap
from ranktilt.run import Run
from ranktilt.statistics.two_way import Clusters

ESTIMANDS = [
    "Relative Δ nDCG@1", "Relative Δ nDCG@5", "Relative Δ AP@5", "ΔNDSR@20", "head-to-head, relevant twins",
    "head-to-head, other twins", "pair rank gap", "score gap",
]  # fmt: skip


def gap(values: np.ndarray) -> Sample:
    """One pair a query."""
    return Sample("r", RankGap, *SIDES, values, np.ones(len(values)))


def drawn(mean: float, n: int = 2_000, seed: int = 0) -> Population:
    """A population of normal numbers, one pair a query."""
    values = np.random.default_rng(seed).normal(mean, 1, n)
    return Population((gap(values),))


def whole_audit(queries: int, seed: int) -> tuple[Collection, Run]:
    return simulated._rankings(np.random.default_rng(seed), queries)


class TestPopulation:
    def test_every_estimand_has_a_true_value(self) -> None:
        truth = population(300).truth
        assert list(truth) == ESTIMANDS
        assert not np.isnan(list(truth.values())).any()

    def test_a_sample_gives_what_an_audit_of_its_queries_gives(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """But for what documents add to intervals: those of the simulation differ by chance only."""
        monkeypatch.setattr(Clusters, "variance", lambda *_: 0.0)
        collection, run = whole_audit(60, seed=3)
        rows = np.arange(5, 45)
        names = [f"q{n}" for n in rows]
        kept = Collection(
            collection.docs,
            collection.queries.filter(pl.col("id").is_in(names)),
            collection.qrels.filter(pl.col("query_id").is_in(names)),
        )
        found = audit(kept, run, MEASURES, card=True, resamples=300, seed=7)
        audited = [(t.value, t.low, t.high) for t in found.tilts]
        audited += [(e.value, e.low, e.high) for e in found.estimates if e.estimand.key != "relative delta"]
        made = population(60, seed=3).sampled(rows, InferenceOptions(300, 7, "permutation", "holm", "none"))
        assert [(e.value, e.low, e.high) for e in made] == audited


class TestCoverage:
    def test_intervals_of_a_mean_hold_it_about_as_often_as_they_claim(self) -> None:
        [found] = coverage(drawn(0.3), 50, draws=400, resamples=400)
        assert found.draws == 400
        assert 0.91 < found.share < 0.97
        assert abs(found.bias) < 0.15

    @pytest.mark.long
    def test_intervals_of_every_estimand_hold_its_true_value(self) -> None:
        """93-97 % of 400 draws, give or take what chance does to so few in one of 1,000 such tests."""
        found = coverage(population(4_000), 50, draws=400, resamples=1_000)
        tail = 0.001 / len(found) / 2
        low, high = stats.binom.ppf(tail, 400, 0.93), stats.binom.isf(tail, 400, 0.97)
        assert all(low <= one.held <= high for one in found), found

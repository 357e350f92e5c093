"""Exposure-constrained re-ranking: the linear program over doubly stochastic matrices, and what is drawn."""

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy.optimize import linprog

from ranktilt.collection import Collection
from ranktilt.measures.exposure_ratio import ExposureRatio
from ranktilt.measures.ranking import Ranking
from ranktilt.mitigation.fair_rerank import FairReRank, exposure_mixture
from ranktilt.run import Run
from tests.mitigation.patterns import labelled, patterns_of, same_bits

Floats = npt.NDArray[np.float64]


def solved(first: npt.NDArray[np.bool_], scores: Floats, weights: Floats, target: float) -> float | None:
    """Best expected DCG of any doubly stochastic matrix that keeps to the target, by HiGHS; None if there is none."""
    n = len(first)
    sums = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    worth = np.where(first, 1 / first.sum(), -target / (~first).sum())
    objective, exposure = -np.outer(scores, weights).ravel(), -np.outer(worth, weights).ravel()[None]
    found = linprog(objective, A_ub=exposure, b_ub=[0], A_eq=sums, b_eq=np.ones(2 * n))
    return -float(found.fun) if found.success else None


def gained(
    first: npt.NDArray[np.bool_], gains: Floats, weights: Floats, places: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """DCG of an order, and the first side's share of the weights."""
    rest = np.setdiff1d(np.arange(len(first)), places)
    return float(gains[first] @ weights[places] + gains[~first] @ weights[rest]), float(weights[places].sum())


@pytest.mark.parametrize("tied", [False, True])
def test_value_and_exposure_are_those_of_the_linear_program(tied: bool) -> None:
    rng = np.random.default_rng(7 + tied)
    corrected = 0
    for n in (2, 3, 5, 7, 7, 7):
        first = rng.permutation(np.arange(n) < rng.integers(1, n))
        drawn = rng.integers(0, 4, n) * 1.5 if tied else rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
        scores = np.sort(drawn)[::-1]
        weights = 1 / np.log2(np.sort(rng.choice(np.arange(2, 12), n, replace=False)))
        for target in (0.5, 1.0, 1.2, 3.0):
            found, best = exposure_mixture(first, scores, weights, target), solved(first, scores, weights, target)
            today = scores @ weights
            scale = max(np.ptp(scores), 1e-12)
            if found is None:
                assert best == pytest.approx(today, abs=1e-6 * scale)
                continue
            if best is None:
                assert found.fewer.tolist() == found.more.tolist() == list(range(first.sum()))
                continue
            corrected += 1
            (low, under), (high, over) = (gained(first, scores, weights, p) for p in (found.fewer, found.more))
            assert 0 <= found.odds <= 1
            dcg, held = ((1 - found.odds) * a + found.odds * b for a, b in ((low, high), (under, over)))
            assert dcg == pytest.approx(best, abs=1e-6 * scale)
            ratio = held / first.sum() / ((weights.sum() - held) / (~first).sum())
            assert ratio == pytest.approx(target, abs=1e-9)
    assert corrected > 5


def test_a_list_of_many_is_solved_as_well() -> None:
    rng = np.random.default_rng(0)
    first, weights = rng.random(400) < 0.3, 1 / np.log2(np.arange(2, 402))
    scores = np.sort(rng.normal(size=400))[::-1]
    found = exposure_mixture(first, scores, weights, 1.3)
    assert found is not None
    held = (1 - found.odds) * weights[found.fewer].sum() + found.odds * weights[found.more].sum()
    assert held / first.sum() * (~first).sum() / (weights.sum() - held) == pytest.approx(1.3, abs=1e-12)
    assert len(np.setxor1d(found.fewer, found.more)) == 2
    assert (np.diff(found.more) > 0).all()


def test_one_of_two_orders_is_drawn_by_seed_and_query() -> None:
    collection, run = labelled(["hhhll"] * 200)
    llm = (collection.docs["source"] == "llm").to_numpy()
    correct = FairReRank(method="exposure", group="llm", seed=1)
    found = correct.rank(collection, run)
    assert same_bits(found, correct.rank(collection, run))
    drawn = patterns_of(collection, found)
    assert len(set(drawn)) == 2
    mixture = exposure_mixture(llm[:5], run.scores[:5], 1 / np.log2(np.arange(2, 7)), 1.0)
    assert mixture is not None
    # An order with the LLM's documents further up comes later in the alphabet.
    share = np.mean([one == max(drawn) for one in drawn])
    assert share == pytest.approx(mixture.odds, abs=3 * 0.5 / 200**0.5)
    other = patterns_of(collection, FairReRank(method="exposure", group="llm", seed=2).rank(collection, run))
    assert 0 < sum(a != b for a, b in zip(drawn, other, strict=True)) < 200
    part = Run(run.queries[7:9], [0, 5, 10], run.docs[35:45], run.scores[35:45], run.ids)
    assert patterns_of(collection, correct.rank(collection, part)) == drawn[7:9]


def tossed() -> tuple[Collection, Run]:
    """300 lists of 3 to 20 documents whose groups a coin tossed."""
    rng = np.random.default_rng(4)
    patterns = ["".join(rng.choice(["h", "l"], rng.integers(3, 21))) for _ in range(300)]
    return labelled(patterns)


@pytest.mark.parametrize("group", ["human", "llm"])
def test_a_ranker_that_is_level_stays_level_whichever_group_is_named(group: str) -> None:
    """Lifting the named group alone, where chance puts it low, gives it 1.14 times the exposure of the others."""
    collection, run = tossed()
    human = (collection.docs["source"] == "human").to_numpy()
    corrected = FairReRank(method="exposure", group=group).rank(collection, run)
    before, after = (
        ExposureRatio.contrast(Ranking(one.offsets, one.scores), human[one.docs], ~human[one.docs])
        for one in (run, corrected)
    )
    assert abs(np.nanmean(np.log(before))) < 0.05
    assert abs(np.nanmean(np.log(after))) < 0.02


@pytest.mark.parametrize("target", [1.0, 0.8])
def test_both_groups_are_treated_alike(target: float) -> None:
    collection, run = tossed()
    human, llm = (FairReRank(method="exposure", group=one, target=target) for one in ("human", "llm"))
    assert same_bits(human.rank(collection, run), llm.rank(collection, run))
    renamed = pl.col("source").replace({"human": "llm", "llm": "human"})
    mirrored = Collection(collection.docs.with_columns(renamed), collection.queries, collection.qrels)
    assert same_bits(human.rank(collection, run), human.rank(mirrored, run))


@pytest.mark.parametrize(
    ("patterns", "target", "expected"),
    [
        (["hhll", "llhh", "hh"], 9.0, ["llhh", "llhh", "hh"]),  # as near as it can come
        ([".hh.ll"], 5.0, [".ll.hh"]),  # documents of no group keep their places
    ],
)
def test_a_list_goes_as_far_as_its_target_asks(patterns: list[str], target: float, expected: list[str]) -> None:
    collection, run = labelled(patterns)
    found = FairReRank(method="exposure", group="llm", target=target).rank(collection, run)
    assert patterns_of(collection, found) == expected


def test_what_is_enough_already_stays() -> None:
    collection, run = labelled(["llhh", "hlh"], [[1.0] * 4, [3.0, 2.0, 1.0]])
    assert same_bits(FairReRank(method="exposure", group="llm", target=0.6).rank(collection, run), run)

"""How far lists move, by hand and by the overlap of orders; and what that decides without
judgments.
"""

import numpy as np
import pytest

from ranktilt import MitigationOptions, Run, bundled, ranker, table
from ranktilt.mitigation.mitigate import mitigate
from ranktilt.mitigation.movement import (
    Movement,
    MovementMean,
    list_distances,
    movement,
)
from ranktilt.statistics.judges.rank_correlation import list_overlap, rank_biased_overlap
from tests.mitigation.test_bench import PAIR, TRIALS, benched, unjudged


def run_from(lists: dict[str, str]) -> Run:
    """A run whose documents are letters, best first."""
    return Run.from_dict(
        {
            query: {letter: float(len(letters) - rank) for rank, letter in enumerate(letters)}
            for query, letters in lists.items()
        }
    )


def test_overlap_of_lists_by_hand() -> None:
    # abc against bac: of the first 1, 2, 3 documents 0, 2, 3 are in both.
    by_hand = 0.1 * (0 / 1 + 0.9 * 2 / 2 + 0.81 * 3 / 3) + 0.9**3 * 3 / 3
    assert list_overlap(np.array([1, 2, 3]), np.array([2, 1, 3]), 3) == pytest.approx(by_hand)
    assert list_overlap(np.array([1, 2]), np.array([1, 2]), 2) == pytest.approx(1.0)
    assert list_overlap(np.array([], np.int64), np.array([], np.int64), 4) == 0.0
    assert np.isnan(list_overlap(np.array([1]), np.array([1]), 0))


def test_overlap_of_lists_is_that_of_orders_without_ties() -> None:
    rng = np.random.default_rng(4)
    for size in (1, 5, 40):
        first, second = (rng.permutation(size) + 1 for _ in range(2))
        expected = rank_biased_overlap(-first.astype(float), -second.astype(float))
        assert list_overlap(first, second, size) == pytest.approx(float(expected))


def test_replaced_documents_by_hand() -> None:
    before = run_from({"q1": "abcdefghijkl", "q2": "abc", "q3": "abcdefghijkl"})
    after = run_from({"q1": "klabcdefghij", "q2": "cba", "q3": "abcdefghijkl"})
    distances = list_distances(before, after, ["q1", "q2", "q3", "q4"])
    # k and l enter the first ten of q1, i and j leave them; a list of three keeps all.
    assert distances.replaced.tolist()[:3] == [pytest.approx(0.2), 0.0, 0.0]
    assert np.isnan(distances.replaced[3])
    assert distances.mean_replaced == pytest.approx(20 / 3)
    assert distances.rbo[2] == pytest.approx(1.0)
    assert distances.rbo[1] == pytest.approx(0.1 * (0 + 0.9 / 2 + 0.81) + 0.729)


def test_a_run_that_finds_nothing_replaces_all() -> None:
    before = run_from({"q1": "abc"})
    empty = Run.from_frame(before.frame().clear(), queries=["q1"])
    distances = list_distances(before, empty, ["q1"])
    assert (distances.replaced.tolist(), distances.rbo.tolist()) == ([1.0], [0.0])


def test_means_have_intervals_over_queries() -> None:
    lists = {f"q{number}": "abcdefghijkl" for number in range(40)}
    swapped = {query: "klabcdefghij" if n % 2 else lists[query] for n, query in enumerate(lists)}
    distances = list_distances(run_from(lists), run_from(swapped), list(lists))
    moved = movement("offset 1", distances, None, resamples=2_000, seed=0)
    assert moved.replaced.value == pytest.approx(10.0)
    # By hand: 10 ± t(39) · 10 / √39.
    assert (moved.replaced.low, moved.replaced.high) == (
        pytest.approx(10 - 3.24, abs=0.4),
        pytest.approx(10 + 3.24, abs=0.4),
    )
    assert (moved.queries, moved.effective_n) == (40, 40)
    unmoved = movement(
        "offset 0",
        list_distances(run_from(lists), run_from(lists), list(lists)),
        None,
        resamples=200,
        seed=0,
    )
    assert (unmoved.replaced.low, unmoved.replaced.value, unmoved.replaced.high) == (0, 0, 0)
    assert (unmoved.rbo.low, unmoved.rbo.high) == (pytest.approx(1), pytest.approx(1))


@pytest.mark.parametrize(
    ("low", "high", "effective_n", "outcome"),
    [
        (5.0, 20.0, 40.0, "level"),
        (21.0, 30.0, 40.0, "tilted"),
        (15.0, 25.0, 40.0, "inconclusive"),
        (5.0, 10.0, 9.0, "inconclusive"),
        (float("nan"), float("nan"), 40.0, "inconclusive"),
    ],
)
def test_budget_is_on_the_share_replaced(
    low: float, high: float, effective_n: float, outcome: str
) -> None:
    moved = Movement(
        candidate="offset 1",
        rbo=MovementMean(value=0.9, low=0.8, high=0.95),
        replaced=MovementMean(value=(low + high) / 2, low=low, high=high),
        queries=int(effective_n),
        effective_n=effective_n,
    )
    assert moved.outcome(20) == outcome


def test_without_judgments_the_budget_decides_on_moved_lists() -> None:
    trials = [trial._replace(alone=None) for trial in TRIALS]
    bench = benched("Share@1", trials=trials, mixed=unjudged())
    assert (bench.budget, bench.is_judged) == (20, False)
    assert [moved.candidate for moved in bench.movements] == [
        candidate.name for candidate in bench.candidates[1:]
    ]
    choice = bench.choose(budget=0.0)
    checks = choice.checks["α = 0.01"]
    assert [check.is_cost for check in checks] == [False, True]
    assert bench.loss("α = 0.01") == bench.movements[1].replaced.value
    judged = benched("nDCG@1", trials=trials)
    assert (judged.budget, judged.is_judged) == (1, True)
    assert len(judged.movements) == len(judged.candidates) - 1


def test_changes_are_of_the_same_queries_as_the_values() -> None:
    bench = benched("nDCG@1")
    for candidate in bench.candidates[1:]:
        change = bench.change(candidate.name, PAIR)
        before, after = (bench.tilt(name, PAIR) for name in (bench.baseline.name, candidate.name))
        assert change is not None
        assert change.value == pytest.approx(after.value - before.value)
        assert change.queries == before.queries == after.queries


def test_mitigation_compares_candidates_and_baseline_on_the_test_queries() -> None:
    bench = mitigate(
        bundled(),
        ranker("bm25"),
        ["nDCG@3"],
        options=MitigationOptions.from_texts(["interleave"], strengths=(1.0,)),
        resamples=200,
    )
    pair, (candidate,) = bench.pairs[0], bench.eligible
    before, after = (bench.tilt(name, pair) for name in (bench.baseline.name, candidate.name))
    change, moved = bench.change(candidate.name, pair), bench.movement(candidate.name)
    assert change is not None
    assert moved is not None
    assert change.value == pytest.approx(after.value - before.value)
    assert before.queries == after.queries == change.queries
    assert moved.queries == bench.spec["queries"]["test"]
    assert bench.baseline_effects[0].queries > before.queries
    text = table(bench)
    assert f"on the {before.queries} test queries" in text
    assert f"over all {bench.baseline_effects[0].queries} queries" in text

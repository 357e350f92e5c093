"""Documents as a source of chance: clusters of queries and origins, and intervals that speak of both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktilt.measures.base import measure
from ranktilt.measures.ranking import Judged, Ranking
from ranktilt.measures.relevance import label_weights, values
from ranktilt.statistics.two_way import Clusters, Dyads, widened


def clusters(query: list[int], origin: list[int], total: list[float], weight: float = 1.0) -> Clusters:
    rows, origins = np.array(query, dtype=np.int64), np.array(origin, dtype=np.int64)
    return Clusters(rows, origins, np.array(total, dtype=np.float64), np.full(len(total), weight))


class TestCells:
    def test_nets_are_sums_over_all_queries(self) -> None:
        assert clusters([0, 1, 1, 2], [0, 0, 2, 0], [1, -2, 4, 8]).origin_totals.tolist() == [7, 0, 4]

    def test_rows_of_documents_become_origins_and_those_without_one_drop_out(self) -> None:
        found = clusters([0, 0, 1], [3, 1, 2], [1, 2, 4]).of(np.array([0, 0, -1, 1]))
        assert (found.query.tolist(), found.origin.tolist(), found.total.tolist()) == ([0, 0], [1, 0], [1, 2])

    def test_variance_by_hand(self) -> None:
        """Origin 0 adds 1 to each of three queries: (1 + 1 + 1)² − (1² + 1² + 1²) = 6; origin 1 is met once."""
        assert clusters([0, 1, 2, 0], [0, 0, 0, 1], [1, 1, 1, 5]).variance(0.0) == 6
        assert clusters([0, 1, 2, 0], [0, 0, 0, 1], [1, 1, 1, 5]).variance(1.0) == 0
        assert clusters([0, 0, 1], [0, 0, 0], [1, 1, 1]).variance(0.0) == 9 - (4 + 1)  # one cell of a query and origin
        assert clusters([0, 1], [0, 0], [1, -1]).variance(0.0) == clusters([], [], []).variance(0.0) == 0

    @given(st.integers(0, 2**32 - 1), st.floats(-1, 1))
    @settings(max_examples=40)
    def test_it_is_the_same_from_the_other_side_to_the_last_bit(self, seed: int, value: float) -> None:
        rng = np.random.default_rng(seed)
        query, origin = rng.integers(0, 5, (2, 30))
        one = Clusters(query, origin, rng.normal(size=30), rng.random(30))
        assert one.variance(value) == one._replace(total=-one.total).variance(-value)


class TestDyads:
    def test_variance_by_hand(self) -> None:
        """A chosen between x and y, B with x: sums are 3, 3, 4, 2 of weights 2, 1, 2, 1 of three; no two meet twice."""
        pairs = Dyads(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([2, 3, 2]))
        shared = [3 / (1 / 3), 3 / (2 / 3), 4 / (1 / 3), 2 / (2 / 3)]
        expected = sum(total**2 for total in shared) - (1 + 4 + 9)
        assert pairs.variance(np.array([1.0, 2.0, 3.0]), np.ones(3)) == pytest.approx(expected)

    def test_p_by_hand(self) -> None:
        """Seven of eight twins are chosen of one side: a t test, with r / (1 − 1/8); all of six: two of 2^6 signs."""
        own, total = np.arange(8), np.array([0.5] * 7 + [-0.5])
        t = total.sum() / np.sqrt(((total - total.mean()) ** 2).sum() / (7 / 8) ** 2)
        assert Dyads(own, own, own).p(total, np.ones(8)) == pytest.approx(2 * stats.t.sf(t, 7))
        six = own[:6]
        assert Dyads(six, six, six + 6).p(total[:6], np.ones(6)) == 2 / 2**6
        assert Dyads(six, six, six).p(np.zeros(6), np.ones(6)) == 1

    def test_widened_by_hand(self) -> None:
        """Twins 0 in both queries: sums 2, 0, −2 of half, a quarter and a quarter; cells give 6, queries 1² + 1²."""
        twins = np.array([0, 1, 0, 2])
        pairs, total = Dyads(np.array([0, 0, 1, 1]), twins, twins), np.array([1.0, 0.0, 1.0, -2.0])
        factor = np.sqrt(1 + ((2 / 0.5) ** 2 + (2 / 0.75) ** 2 - 6) / 2)
        assert pairs.widened(np.array([0.1, -0.1]), 0.0, total, np.ones(4)) == pytest.approx([0.1 * factor, 0.0])


class TestWidened:
    def test_distances_grow_by_the_root_of_what_is_added(self) -> None:
        found = widened(np.array([1.0, 2.0, np.nan]), 1.5, np.array([1.0, -1.0]), 6.0)
        assert found[:2].tolist() == [0.5, 2.5]
        assert np.isnan(found[2])

    @pytest.mark.parametrize(("residuals", "beyond"), [([1.0, -1.0], 0.0), ([0.0, 0.0], 3.0)])
    def test_nothing_to_add_leaves_the_samples_alone(self, residuals: list[float], beyond: float) -> None:
        samples = np.array([0.1, 0.2])
        assert widened(samples, 0.3, np.array(residuals), beyond) is samples

    def test_intervals_hold_the_true_value_where_documents_and_queries_are_drawn(self) -> None:
        """Queries, origins and single meetings all vary; over queries alone intervals are far too narrow."""
        rng = np.random.default_rng(3)
        held = alone = 0
        for _ in range(400):
            y = rng.normal(size=(40, 1)) + rng.normal(size=(1, 30)) + rng.normal(size=(40, 30))
            query, origin = np.divmod(np.arange(y.size), 30)
            found = Clusters(query, origin, y.ravel(), np.ones(y.size))
            residuals = (y - y.mean()).sum(axis=1)
            half = 1.96 * np.sqrt((residuals**2).sum()) / y.size
            wide = abs(widened(np.array([half]), 0.0, residuals, found.variance(float(y.mean())))[0])
            held += abs(y.mean()) <= wide
            alone += abs(y.mean()) <= half
        assert 0.91 * 400 <= held <= 0.98 * 400
        assert alone < 0.85 * 400


@st.composite
def twins(draw: st.DrawFn) -> tuple[Ranking, np.ndarray, np.ndarray, Judged]:
    """Rankings of twins with equal grades and tied scores; which side is which, and what is retrieved, is drawn."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    queries = draw(st.integers(1, 4))
    offsets, scores, grades, first, judged = [0], [], [], [], []
    for query in range(queries):
        pairs = rng.integers(0, 3, rng.integers(1, 8))
        score = np.round(rng.normal(size=2 * len(pairs)), 0)
        keep = rng.random(len(score)) < 0.8
        order = np.argsort(-score[keep], kind="stable")
        scores += score[keep][order].tolist()
        grades += np.repeat(pairs, 2)[keep][order].tolist()
        turned = rng.integers(0, 2, len(pairs))
        first += np.stack([turned, 1 - turned], axis=1).ravel()[keep][order].tolist()
        offsets.append(len(scores))
        judged += [(query, grade) for grade in pairs if grade]
    table = np.array(judged, dtype=np.float64).reshape(-1, 2)
    ideal = Judged(table[:, 0].astype(np.int64), table[:, 1], queries)
    ranking = Ranking(np.array(offsets), np.array(scores, dtype=np.float64))
    return ranking, np.array(grades, dtype=np.float64), np.array(first, dtype=bool), ideal


class TestLabelWeights:
    @given(twins(), st.sampled_from(["nDCG", "nDCG@3", "AP", "AP@3", "AP(rel=2)@5", "P@3", "R@3", "RR", "RR@3"]))
    @settings(max_examples=300)
    def test_they_add_up_to_the_difference_whatever_the_labels(
        self, found: tuple[Ranking, np.ndarray, np.ndarray, Judged], name: str
    ) -> None:
        (ranking, grades, first, judged), m = found, measure(name)
        sides = [np.where(mine, grades, 0.0) for mine in (first, ~first)]
        a, b = (values(m, ranking, gains, judged) for gains in sides)
        parts = [grades] if m.linear else sides
        weights = sum(label_weights(m, ranking, gains, judged) for gains in parts)
        signed = np.bincount(ranking.query, np.where(first, weights, -weights), minlength=judged.n_queries)
        known = ~np.isnan(a)
        assert signed[known] == pytest.approx((a - b)[known], abs=1e-12)
        assert (weights >= 0).all()
        assert not weights[grades == 0].any()

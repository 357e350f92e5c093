"""Telling sources apart, and finding one's own twin: cases with known answers."""

import math

import numpy as np
import pytest

from ranktilt.probes import similarity as module
from ranktilt.probes import vectors as vectors_module
from ranktilt.probes.similarity import FOLDS, own_twin_first, sample, separation, told_apart
from ranktilt.probes.vectors import DocumentVectors

pytest.importorskip("sklearn")


class Table:
    """Vectors in memory."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values.astype(np.float32)

    def take(self, rows: np.ndarray) -> np.ndarray:
        return self.values[rows]


def of(*vectors: tuple[float, ...]) -> DocumentVectors:
    table = np.array(vectors, dtype=np.float64)
    return DocumentVectors(Table(table), np.arange(len(table)))


def pairs_of(count: int) -> np.ndarray:
    """Documents 0, 1, … of the reference, then their twins in the same order."""
    return np.stack([np.arange(count), np.arange(count) + count], axis=1)


def origins(count: int) -> np.ndarray:
    return np.tile(np.arange(count), 2)


class TestToldApart:
    def test_sources_that_differ_in_one_direction_always_can(self) -> None:
        rng = np.random.default_rng(0)
        content = rng.normal(size=(60, 5))
        shift = np.zeros(5)
        shift[2] = 100
        assert told_apart(content, content + shift).tolist() == [1.0] * FOLDS

    def test_equal_sources_never_can(self) -> None:
        content = np.random.default_rng(0).normal(size=(60, 5))
        assert told_apart(content, content).tolist() == [0.5] * FOLDS

    def test_noise_is_chance(self) -> None:
        found = [told_apart(*np.random.default_rng(seed).normal(size=(2, 400, 3))).mean() for seed in range(5)]
        assert np.mean(found) == pytest.approx(0.5, abs=0.04)

    def test_a_known_overlap_gives_its_area(self) -> None:
        # Two normal distributions that lie one standard deviation apart: AUC = Φ(1/√2) = .7602.
        drawn = [np.random.default_rng(seed).normal(size=(2, 3000, 1)) for seed in range(3)]
        assert np.mean([told_apart(a, b + 1) for a, b in drawn]) == pytest.approx(0.7602, abs=0.01)

    def test_pairs_are_not_parted_by_the_folds(self) -> None:
        # Each pair has a direction of its own and there is no other difference: nothing carries over to new pairs.
        content = np.eye(100)
        found = told_apart(content, 2 * content)
        assert found.mean() == pytest.approx(0.5, abs=0.05)

    def test_nor_are_versions_of_one_text(self) -> None:
        # Noise on both sides, five rewrites a text: who has met a text in training must not meet it again.
        found, known = [], []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            texts, rewrites = rng.normal(size=(120, 60)), rng.normal(size=(600, 60))
            numbers = np.repeat(np.arange(120), 5)
            found.append(told_apart(texts[numbers], rewrites, numbers, seed=seed).mean())
            known.append(told_apart(texts[numbers], rewrites, seed=seed).mean())
        assert np.mean(found) == pytest.approx(0.5, abs=0.06)
        assert np.mean(known) > 0.58

    def test_pairs_of_their_own_origin_are_as_pairs_without(self) -> None:
        a, b = np.random.default_rng(3).normal(size=(2, 50, 3))
        assert told_apart(a, b).tolist() == told_apart(a, b, np.arange(50)[::-1]).tolist()

    def test_the_seed_decides_the_folds(self) -> None:
        a, b = np.random.default_rng(3).normal(size=(2, 50, 3))
        assert told_apart(a, b, seed=1).tolist() == told_apart(a, b, seed=1).tolist()
        assert told_apart(a, b, seed=1).tolist() != told_apart(a, b, seed=2).tolist()

    def test_below_ten_pairs_nothing_is_said(self) -> None:
        assert len(told_apart(np.ones((9, 2)), np.zeros((9, 2)))) == 0
        assert len(told_apart(np.ones((90, 2)), np.zeros((90, 2)), np.arange(90) % 9)) == 0

    def test_a_column_without_spread_does_no_harm(self) -> None:
        a, b = np.random.default_rng(4).normal(size=(2, 40, 2))
        a[:, 1] = b[:, 1] = 7.0
        assert np.isfinite(told_apart(a, b)).all()


class TestOwnTwinFirst:
    def test_by_hand(self) -> None:
        found = of((1, 0), (0, 1), (1, 0.1), (1, 0.5))
        # 0's nearest is its twin 2; 1's own twin 3 is its nearest; 2's nearest is 0; 3's nearest of 1 (own) and
        # 0, 2 (others) is 2, so it is lost.
        assert own_twin_first(found, pairs_of(2), np.arange(4), origins(2)).tolist() == [1.0, 1.0, 1.0, 0.0]

    def test_ties_share(self) -> None:
        found = of((1, 0), (1, 0), (1, 0), (1, 0))
        # Everybody is at the same place: the twin and two documents of the other origin tie.
        assert own_twin_first(found, pairs_of(2), np.arange(4), origins(2)).tolist() == [pytest.approx(1 / 3)] * 4

    def test_other_versions_of_the_same_text_do_not_compete(self) -> None:
        found = of((1, 0), (1, 0.3), (1, 0))
        pairs = np.array([[0, 1]])
        assert own_twin_first(found, pairs, np.arange(3), np.array([0, 0, 0])).tolist() == [1.0, 1.0]
        assert own_twin_first(found, pairs, np.arange(3), np.array([0, 0, 1])).tolist() == [0.0, 0.5]

    def test_documents_without_a_twin_compete_too(self) -> None:
        found = of((1, 0), (1, 0.3), (1, 0.1))
        pairs = np.array([[0, 1]])
        assert own_twin_first(found, pairs, np.array([0, 1]), np.array([0, 0, 1])).tolist() == [1.0, 1.0]
        assert own_twin_first(found, pairs, np.array([0, 1, 2]), np.array([0, 0, 1])).tolist() == [0.0, 0.0]

    def test_a_vector_of_zeros_is_nobody_s_nearest(self) -> None:
        found = of((1, 0), (1, 0.3), (0, 0))
        assert own_twin_first(found, np.array([[0, 1]]), np.arange(3), np.array([0, 0, 1])).tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("size", [1, 7])
    def test_as_a_plain_loop(self, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vectors_module, "_AT_ONCE", size)
        values = np.random.default_rng(5).normal(size=(24, 3))
        near = values @ values.T / np.outer(*(np.linalg.norm(values, axis=1),) * 2)
        expected = [
            float(all(near[i, twin] > near[i, j] for j in range(24) if j % 12 != i % 12))
            for i, twin in ((i, (i + 12) % 24) for i in range(24))
        ]
        found = own_twin_first(of(*values), pairs_of(12), np.arange(24), origins(12))
        assert found.tolist() == expected
        assert 0 < sum(expected) < 24


class TestSeparation:
    def test_versions_of_one_text_count_as_one(self) -> None:
        rng = np.random.default_rng(0)
        pairs = np.stack([np.repeat(np.arange(60), 5), np.arange(60, 360)], axis=1)
        origin = np.concatenate([np.arange(60), np.repeat(np.arange(60), 5)])
        found = separation(of(*rng.normal(size=(360, 40))), pairs, np.arange(360), origin)
        assert found.auc == pytest.approx(0.5, abs=0.12)
        assert found.pairs == 300

    def test_more_pairs_than_are_fitted_or_asked_are_sampled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_FITTED", 20)
        monkeypatch.setattr(module, "MOST_ASKED", 12)
        content = np.random.default_rng(6).normal(size=(30, 4))
        found = separation(of(*content, *content), pairs_of(30), np.arange(60), origins(30))
        assert (found.pairs, found.asked, found.among) == (20, 24, 60)

    def test_both_numbers_and_what_they_stand_on(self) -> None:
        content = np.random.default_rng(6).normal(size=(30, 4))
        found = separation(of(*content, *(content + 0.01)), pairs_of(30), np.arange(60), origins(30))
        assert (found.nearest, found.asked, found.among, found.pairs) == (1.0, 60, 60, 30)
        assert found.auc_low <= found.auc <= found.auc_high

    def test_pairs_without_a_vector_are_left_out(self) -> None:
        content = np.random.default_rng(6).normal(size=(12, 4))
        content[0] = 0
        found = separation(of(*content, *content), pairs_of(12), np.arange(24), origins(12))
        assert (found.asked, found.pairs, found.among) == (22, 11, 24)

    def test_few_pairs_have_a_nearest_and_no_area(self) -> None:
        found = separation(of((1, 0), (0, 1), (1, 0.1), (0.1, 1)), pairs_of(2), np.arange(4), origins(2))
        assert (found.nearest, found.pairs) == (1.0, 0)
        assert all(map(math.isnan, (found.auc, found.auc_low, found.auc_high)))

    def test_nothing_at_all(self) -> None:
        found = separation(of((0, 0), (0, 0)), pairs_of(1), np.arange(2), origins(1))
        assert (found.asked, found.pairs) == (0, 0)
        assert math.isnan(found.nearest)


def test_a_sample_keeps_the_order_and_takes_none_twice() -> None:
    pairs = pairs_of(100)
    drawn = sample(pairs, 30, seed=0)
    assert len(drawn) == 30
    assert (np.diff(drawn[:, 0]) > 0).all()
    assert drawn.tolist() == sample(pairs, 30, seed=0).tolist() != sample(pairs, 30, seed=1).tolist()
    assert sample(pairs, 100, seed=0) is pairs

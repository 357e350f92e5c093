"""Telling sources apart: cases with known answers."""

import math

import numpy as np
import pytest

from ranktilt.probes import similarity as module
from ranktilt.probes.similarity import FOLDS, sample, separation, told_apart
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


class TestSeparation:
    def test_versions_of_one_text_count_as_one(self) -> None:
        rng = np.random.default_rng(0)
        pairs = np.stack([np.repeat(np.arange(60), 5), np.arange(60, 360)], axis=1)
        origin = np.concatenate([np.arange(60), np.repeat(np.arange(60), 5)])
        found = separation(of(*rng.normal(size=(360, 40))), pairs, origin)
        assert found.auc == pytest.approx(0.5, abs=0.12)
        assert found.pairs == 300

    def test_more_pairs_than_are_fitted_are_sampled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_FITTED", 20)
        content = np.random.default_rng(6).normal(size=(30, 4))
        found = separation(of(*content, *content), pairs_of(30), origins(30))
        assert found.pairs == 20
        assert found.auc_low <= found.auc <= found.auc_high

    def test_pairs_without_a_vector_are_left_out(self) -> None:
        content = np.random.default_rng(6).normal(size=(12, 4))
        content[0] = 0
        assert separation(of(*content, *content), pairs_of(12), origins(12)).pairs == 11

    @pytest.mark.parametrize("vectors", [((1, 0), (0, 1), (1, 0.1), (0.1, 1)), ((0, 0), (0, 0))])
    def test_few_pairs_have_no_area(self, vectors: tuple[tuple[float, float], ...]) -> None:
        count = len(vectors) // 2
        found = separation(of(*vectors), pairs_of(count), origins(count))
        assert found.pairs == 0
        assert all(map(math.isnan, (found.auc, found.auc_low, found.auc_high)))


def test_a_sample_keeps_the_order_and_takes_none_twice() -> None:
    pairs = pairs_of(100)
    drawn = sample(pairs, 30, seed=0)
    assert len(drawn) == 30
    assert (np.diff(drawn[:, 0]) > 0).all()
    assert drawn.tolist() == sample(pairs, 30, seed=0).tolist() != sample(pairs, 30, seed=1).tolist()
    assert sample(pairs, 100, seed=0) is pairs

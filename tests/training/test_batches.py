"""Batches: a function of seed and step; like lengths together; each query's own negatives."""

import itertools
from typing import Any

import numpy as np
import pytest

from ranktilt.training.batches import Batch, Batches
from ranktilt.training.loop import starting
from ranktilt.training.options import RerankerTraining
from ranktilt.training.training_set import TrainingQuery, TrainingSet

SIZES = [(3, 5), (1, 9), (6, 2), (4, 7)]  # positives and negatives of each query


def material(sizes: list[tuple[int, int]] = SIZES) -> TrainingSet:
    """Each query has documents of its own: its positives, then its negatives."""
    queries, place = [], 0
    for number, (good, bad) in enumerate(sizes):
        positives, negatives = np.arange(place, place + good), np.arange(place + good, place + good + bad)
        queries.append(TrainingQuery(f"q{number}", positives, (negatives,) * good))
        place += good + bad
    return TrainingSet(tuple(queries), [f"d{i}" for i in range(place)], np.arange(place), 0, 0)


def batches(sizes: list[tuple[int, int]] = SIZES, **options: Any) -> Batches:
    given = RerankerTraining(**{"negatives_per_positive": 3, "batch": 16, **options})
    learned = material(sizes)
    rng = np.random.default_rng(1)
    queries = rng.integers(1, 30, len(learned.queries))
    return Batches(learned, queries, rng.integers(5, 200, len(learned.documents)), given)


def drawn(made: list[Batch]) -> list[tuple[int, ...]]:
    """All groups as (query, positive, negatives…)."""
    return [(int(q), *map(int, d)) for batch in made for q, d in zip(batch.queries, batch.documents, strict=True)]


def test_an_epoch_has_each_positive_once() -> None:
    made = batches()
    assert made.per_epoch == 4  # 14 positives, 4 at once
    expected = [(q, int(p)) for q, query in enumerate(made.training_set.queries) for p in query.positives]
    assert sorted(group[:2] for group in drawn(made.epoch(0))) == expected
    assert [len(batch.queries) for batch in made.epoch(0)].count(4) == 3


def test_broad_queries_are_capped_and_take_turns() -> None:
    made = batches(positives_per_query=2)
    assert made.per_epoch == 2  # 2 + 1 + 2 + 2
    counts = np.bincount([group[0] for group in drawn(made.epoch(0))])
    assert counts.tolist() == [2, 1, 2, 2]
    seen = {group[1] for number in range(20) for group in drawn(made.epoch(number)) if group[0] == 2}
    assert seen == set(made.training_set.queries[2].positives.tolist())


def test_negatives_are_the_querys_own_and_differ() -> None:
    made = batches()
    for query, _, *negatives in drawn(made.epoch(0)):
        own = made.training_set.queries[query].negatives[0].tolist()
        assert set(negatives) <= set(own)
        assert len(own) < 3 or len(set(negatives)) == 3


def test_a_query_with_few_negatives_repeats_them() -> None:
    made = batches([(1, 1)], negatives_per_positive=4, batch=20)
    assert drawn(made.epoch(0)) == [(0, 0, 1, 1, 1, 1)]


@pytest.mark.parametrize("step", [0, 1, 3, 4, 9, 17])
def test_any_step_can_be_made_again(step: int) -> None:
    made = batches()
    whole = list(itertools.islice(starting(made, 0), 24))
    again = list(itertools.islice(starting(made, step), 24 - step))
    assert [drawn([one]) for one in again] == [drawn([one]) for one in whole[step:]]


def test_groups_of_like_length_share_a_batch() -> None:
    made = batches([(8, 20)] * 40)
    sorted_ = sum(map(made.size, made.epoch(0)))
    groups = drawn(made.epoch(0))
    rng = np.random.default_rng(0)
    rng.shuffle(groups)
    arrays = [np.array(groups[i : i + 4]) for i in range(0, len(groups), 4)]
    shuffled = sum(made.size(Batch(a[:, 0], a[:, 1:], a[:, 1:] < 0)) for a in arrays)
    assert sorted_ < 0.9 * shuffled


def test_batches_of_all_lengths_are_mixed() -> None:
    made = batches([(8, 20)] * 40)
    sizes = np.array([made.size(batch) for batch in made.epoch(0)])
    assert abs(np.corrcoef(sizes, np.arange(len(sizes)))[0, 1]) < 0.4


def test_size_counts_the_padding() -> None:
    learned = material([(1, 3)])
    made = Batches(learned, np.array([5]), np.array([10, 40, 7, 7]), RerankerTraining(negatives_per_positive=3))
    assert [made.size(batch) for batch in made.epoch(0)] == [4 * (5 + 40)]


def test_pairs_of_the_binary_loss_are_mixed_over_queries() -> None:
    made = batches(loss="binary", positives_per_query=None)
    assert made.per_epoch == 4  # 14 positives with 3 negatives each are 56 pairs, 16 at once
    epoch = made.epoch(0)
    assert [batch.documents.shape for batch in epoch].count((16, 1)) == 3
    pairs = [
        (int(q), int(d), bool(r))
        for b in epoch
        for q, (d,), (r,) in zip(b.queries, b.documents, b.relevant, strict=True)
    ]
    expected = [(q, int(p), True) for q, query in enumerate(made.training_set.queries) for p in query.positives]
    assert sorted(pair for pair in pairs if pair[2]) == expected
    assert len(pairs) == 56
    assert all(document in made.training_set.queries[query].negatives[0] for query, document, good in pairs if not good)

"""What an epoch shows: each positive once with its own negatives, like lengths together, nothing that disturbs."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ranktilt.training.batches import BatchSampler, EpochRows, Rows
from ranktilt.training.cross_encoder import epoch_rows
from ranktilt.training.options import RerankerTraining

pytestmark = pytest.mark.neural
SIZES = [(3, 5), (1, 9), (6, 2), (4, 7)]  # positives and negatives of each query


def made(sizes: list[tuple[int, int]] = SIZES, **options: Any) -> EpochRows:
    """Each query has documents of its own, of any length: its positives, then its negatives."""
    starts = np.cumsum([0, *map(sum, sizes)])
    learned = SimpleNamespace(
        queries=[f"q{number}" for number in range(len(sizes))],
        texts=["d" * length for length in np.random.default_rng(1).integers(5, 200, starts[-1])],
        positives=[np.arange(at, at + good) for at, (good, _) in zip(starts, sizes, strict=False)],
        negatives=[
            (np.arange(at + good, at + good + bad),) * good for at, (good, bad) in zip(starts, sizes, strict=False)
        ],
    )
    return epoch_rows(learned, RerankerTraining(**{"negatives_per_positive": 3, "batch": 16, **options}), None)


def batches(rows: EpochRows, epoch: int = 0, size: int = 4) -> list[list[int]]:
    sampler = BatchSampler(rows, None, size)
    sampler.set_epoch(epoch)
    found = list(sampler)
    assert len(found) == len(sampler)
    return found


def drawn(rows: EpochRows, epoch: int = 0) -> list[tuple[int, ...]]:
    """All rows of an epoch as (query, positive, negatives…), in the order of its batches."""
    found, order = rows.of_epoch(epoch), [row for batch in batches(rows, epoch) for row in batch]
    assert sorted(order) == list(range(rows.count))
    return [(int(found.queries[row]), *map(int, found.documents[row])) for row in order]


def test_an_epoch_has_each_positive_once_with_negatives_of_its_query() -> None:
    rows = drawn(made())
    starts = [0, 8, 18, 26]
    assert sorted(row[:2] for row in rows) == [
        (q, starts[q] + n) for q, (good, _) in enumerate(SIZES) for n in range(good)
    ]
    for query, _, *negatives in rows:
        good, bad = SIZES[query]
        assert set(negatives) <= set(range(starts[query] + good, starts[query] + good + bad))
        assert len(set(negatives)) == min(bad, 3) or bad < 3  # drawn with repeats where there are too few


def test_broad_queries_are_capped_and_take_turns() -> None:
    rows = made(positives_per_query=2)
    assert np.bincount([row[0] for row in drawn(rows)]).tolist() == [2, 1, 2, 2]
    assert {row[1] for epoch in range(20) for row in drawn(rows, epoch) if row[0] == 2} == set(range(18, 24))


def test_an_epoch_is_a_function_of_the_seed() -> None:
    assert drawn(made(), 5) == drawn(made(), 5) != drawn(made(), 6)
    assert drawn(made(), 5) != drawn(made(seed=1), 5)


def test_rows_of_like_length_share_a_batch_and_lengths_are_mixed_over_batches() -> None:
    rows = made([(8, 20)] * 40)
    longest = [rows.lengths[rows.of_epoch(0).documents[batch]].max(axis=1) for batch in batches(rows)]
    assert np.mean([np.ptp(one) for one in longest]) < 0.2 * np.ptp(np.concatenate(longest))
    assert abs(np.corrcoef([one.max() for one in longest], np.arange(len(longest)))[0, 1]) < 0.4


def test_what_disturbs_each_other_is_kept_apart_where_there_is_room() -> None:
    queries, documents = np.arange(8), np.arange(8).reshape(8, 1)
    barred = [frozenset({q, q ^ 1}) for q in range(8)]  # each query's neighbour is relevant to it too
    rows = EpochRows(lambda _: Rows(queries, documents), 8, ["q"] * 8, ["d"] * 8, None, 0, barred=barred)
    for batch in batches(rows):
        assert len({row // 2 for row in batch}) == 4
    assert sorted(map(len, batches(rows, size=8))) == [8]


def test_columns_are_what_the_losses_take() -> None:
    draw = Rows(np.array([0, 1]), np.array([[0, 1], [1, 0]]))
    texts, twins = ["one", "two", "one again"], np.array([2, 1, 2])
    rows = EpochRows(lambda _: draw, 2, ["a", "b"], texts, twins, 0)
    assert rows.dataset()[:2] == {
        "query": ["a", "b"], "document": ["one", "two"], "twin": ["one again", ""], "negative1": ["two", "one"],
    }  # fmt: skip
    pairs = EpochRows(lambda _: draw.pairs(), 4, ["a", "b"], texts, twins, 0)
    assert pairs.columns({"row": [0, 1, 2, 3]}) == {
        "query": ["a", "a", "b", "b"], "document": ["one", "two", "two", "one"], "twin": ["one again", "", "", ""],
        "label": [1, 0, 1, 0],
    }  # fmt: skip

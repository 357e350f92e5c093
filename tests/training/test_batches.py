"""What an epoch shows: each positive once with its own negatives, like lengths together, nothing that disturbs."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.io.cache import Vectors
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.training.batches import BatchSampler, EpochRows, Rows
from ranktilt.training.cross_encoder import epoch_rows
from ranktilt.training.options import RerankerTraining, RetrieverTraining
from ranktilt.training.retriever import Miner
from ranktilt.training.training_set import TrainingSet, retriever_set
from tests.toy import collection_of
from tests.training.material import marked

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
    assert rows == drawn(made()) != drawn(made(), 1)
    assert rows != drawn(made(seed=1))


def test_broad_queries_are_capped_and_take_turns() -> None:
    rows = made(positives_per_query=2)
    assert np.bincount([row[0] for row in drawn(rows)]).tolist() == [2, 1, 2, 2]
    assert {row[1] for epoch in range(20) for row in drawn(rows, epoch) if row[0] == 2} == set(range(18, 24))


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


BM = RetrieverTraining(mine="bm25", negatives_per_positive=2, batch=8, depth=6)


def mined_from(collection: Collection | None = None) -> TrainingSet:
    return retriever_set(marked() if collection is None else collection, RetrieverTraining())


def test_bm25s_best_without_what_is_relevant() -> None:
    found = mined_from()
    run = BM25(k=6).rank(found.part).frame()
    for number, query in enumerate(found.part.queries["id"]):
        ranked = run.filter(query_id=query)["doc_id"].to_list()
        expected = [doc for doc in ranked if found.part.ids.to_list().index(doc) not in found.barred[number]]
        mined = Miner(found, BM).mined()[number]
        assert found.part.ids.gather(mined).to_list() == expected
        assert len(expected) == 4


def random_vectors(found: TrainingSet, seed: int = 0) -> tuple[Vectors, Vectors, bool]:
    rng = np.random.default_rng(seed)
    shapes = (len(found.queries), 8), (found.part.docs.height, 8)
    queries, documents = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return queries, documents, False


def test_ann_is_the_models_own_best_of_each_epoch() -> None:
    found = mined_from()
    calls = []

    def encode() -> tuple[Vectors, Vectors, bool]:
        calls.append(len(calls))
        return random_vectors(found, len(calls))

    miner = Miner(found, RetrieverTraining(mine="ann", depth=5), encode)
    for epoch in (1, 2):
        mined = miner.mined()
        queries, documents, _ = random_vectors(found, epoch)
        for number, query in enumerate(queries):
            best = np.argsort(-(documents @ query), kind="stable")[:5]
            assert mined[number].tolist() == [d for d in best if d not in found.barred[number]]


def test_an_epoch_has_each_positive_once_and_negatives_of_its_query() -> None:
    found = mined_from()
    rows = Miner(found, BM).rows(0)
    pairs = zip(rows.queries.tolist(), rows.documents[:, 0].tolist(), strict=True)
    assert sorted(pairs) == [(q, int(d)) for q, relevant in enumerate(found.positives) for d in relevant]
    for query, documents in zip(rows.queries, rows.documents[:, 1:], strict=True):
        assert not np.isin(documents, found.barred[query]).any()
    same, other = Miner(found, BM).rows(0), Miner(found, BM).rows(1)
    assert (rows.documents == same.documents).all()
    assert (rows.documents != other.documents).any()
    in_batch = Miner(found, RetrieverTraining()).rows(3)
    assert (in_batch.documents.shape, in_batch.labels) == ((40, 1), None)


def test_where_nothing_was_mined_any_other_document_is_a_negative() -> None:
    docs = [{"id": name, "text": text} for name, text in (("a", "apple"), ("b", "pear"), ("c", "plum"))]
    found = mined_from(collection_of(docs, {"q": "stone"}, {"q": {"a": 1}}))  # BM25 finds nothing for it
    asked = RetrieverTraining(mine="bm25", negatives_per_positive=8, batch=1)
    assert set(Miner(found, asked).rows(0).documents[0, 1:].tolist()) == {1, 2}
    every = mined_from(collection_of(docs[:1], {"q": "stone"}, {"q": {"a": 1}}))
    with pytest.raises(UserError, match="a query to which every document is relevant has no negatives"):
        Miner(every, asked).rows(0)

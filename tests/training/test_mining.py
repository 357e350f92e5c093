"""Negatives by each scheme, and batches whose documents do not disturb each other."""

from pathlib import Path

import numpy as np
import pytest

from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError
from ranktilt.io.cache import Vectors
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.run import Run
from ranktilt.training.mining import Mined, Miner, RetrieverBatch, RetrieverBatches, character_lengths
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.retriever_set import RetrieverSet, shared_set
from tests.toy import collection_of
from tests.training.material import WORDS, marked

BM = RetrieverTraining(mine="bm25", negatives_per_positive=2, batch=8, depth=6)


def learned(collection: Collection | None = None) -> RetrieverSet:
    return shared_set(marked() if collection is None else collection, RetrieverTraining())


def batches(found: RetrieverSet, asked: RetrieverTraining, teacher: Ranker | None = None) -> RetrieverBatches:
    lengths = [character_lengths(texts, 100) for texts in (found.queries, found.texts)]
    return RetrieverBatches(found, Miner(found, asked, teacher), asked, (lengths[0], lengths[1]))


def test_in_batch_mines_nothing() -> None:
    found = learned()
    assert all(len(rows) == 0 for rows in Miner(found, RetrieverTraining()).epoch(3).negatives)
    assert {batch.documents.shape[1] for batch in batches(found, RetrieverTraining()).epoch(0)} == {1}


def test_bm25s_best_without_what_is_relevant() -> None:
    found = learned()
    run = BM25(k=6).rank(found.part).frame()
    for number, query in enumerate(found.part.queries["id"]):
        ranked = run.filter(query_id=query)["doc_id"].to_list()
        expected = [doc for doc in ranked if found.part.ids.to_list().index(doc) not in found.barred[number]]
        mined = Miner(found, BM).epoch(0).negatives[number]
        assert found.part.ids.gather(mined).to_list() == expected
        assert len(expected) == 4


class Contrary(BM25):
    """A teacher to which a document is the better the later it stands in the collection."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        assert run is not None
        frame = run.frame().with_columns(score=run.frame()["doc_id"].replace_strict(
            collection.ids, np.arange(len(collection.ids)), return_dtype=float
        ))  # fmt: skip
        return Run.from_frame(frame, queries=run.queries)


def test_a_teacher_keeps_what_it_scores_below_the_positive() -> None:
    found = learned()
    asked = RetrieverTraining(mine="cross", negatives_per_positive=2, batch=8, depth=6)
    mined = Miner(found, asked, Contrary()).epoch(0)
    assert [rows.tolist() for rows in mined.scores] == [rows.tolist() for rows in mined.negatives]
    assert [rows.tolist() for rows in mined.of_positives] == [rows.tolist() for rows in found.positives]
    for batch in batches(found, asked, Contrary()).epoch(0):
        assert batch.scores is not None
        assert (batch.scores == batch.documents).all()
        # The relevant documents of each word stand first, so nothing lies below: then the lowest are taken.
        assert (batch.documents[:, 1:] % 6 <= 3).all()


class Forgetful(BM25):
    """A teacher that keeps one candidate a query."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        assert run is not None
        return Run.from_frame(run.frame().group_by("query_id", maintain_order=True).first(), queries=run.queries)


def test_a_teacher_that_leaves_documents_out_is_refused() -> None:
    with pytest.raises(UserError, match="leaves documents without a score; a teacher keeps every candidate"):
        Miner(learned(), RetrieverTraining(mine="cross"), Forgetful()).epoch(0)


def random_vectors(found: RetrieverSet, seed: int = 0) -> tuple[Vectors, Vectors, bool]:
    rng = np.random.default_rng(seed)
    shapes = (len(found.queries), 8), (found.part.docs.height, 8)
    queries, documents = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return queries, documents, False


def test_ann_is_the_models_own_best_and_is_kept_for_a_resumed_epoch(tmp_path: Path) -> None:
    found = learned()
    asked = RetrieverTraining(mine="ann", depth=5)
    calls = []

    def encode() -> tuple[Vectors, Vectors, bool]:
        calls.append(len(calls))
        return random_vectors(found, len(calls))

    mined = Miner(found, asked, None, encode, tmp_path).epoch(0)
    queries, documents, _ = random_vectors(found, 1)
    for number, query in enumerate(queries):
        best = np.argsort(-(documents @ query), kind="stable")[:5]
        assert mined.negatives[number].tolist() == [d for d in best if d not in found.barred[number]]
    again = Miner(found, asked, None, encode, tmp_path).epoch(0)
    assert [rows.tolist() for rows in again.negatives] == [rows.tolist() for rows in mined.negatives]
    assert len(calls) == 1
    Miner(found, asked, None, encode, tmp_path).epoch(1)
    assert len(calls) == 2
    (tmp_path / "negatives-1.npz").write_bytes(b"torn")
    with pytest.raises(DataError, match="cannot be read; remove its folder to start anew"):
        Miner(found, asked, None, encode, tmp_path).epoch(1)


def test_an_epoch_has_each_positive_once_and_no_batch_disturbs_itself() -> None:
    found = learned()
    made = batches(found, BM)
    epoch = made.epoch(0)
    assert len(epoch) == made.per_epoch == len(WORDS) * 2 // 8
    pairs = [(q, d) for batch in epoch for q, d in zip(batch.queries, batch.documents[:, 0], strict=True)]
    assert sorted(pairs) == [(q, int(d)) for q, rows in enumerate(found.positives) for d in rows]
    for batch in epoch:
        for row, query in enumerate(batch.queries):
            others = np.delete(batch.documents, row, axis=0)
            assert not np.isin(others, found.barred[query]).any()
            assert not np.isin(batch.documents[row, 1:], found.barred[query]).any()


def test_rows_that_cannot_be_kept_apart_are_learned_from_all_the_same() -> None:
    docs = [{"id": f"d{i}", "text": f"t{i}"} for i in range(6)]
    found = learned(collection_of(docs, {"q": "t0"}, {"q": {f"d{i}": 1 for i in range(4)}}))
    epoch = batches(found, RetrieverTraining(batch=4)).epoch(0)
    assert [sorted(batch.documents[:, 0].tolist()) for batch in epoch] == [[0, 1, 2, 3]]


def test_epochs_are_functions_of_the_seed() -> None:
    found = learned()

    def rows(number: int, **more: int) -> list[list[int]]:
        made = batches(found, RetrieverTraining(mine="bm25", negatives_per_positive=2, batch=8, depth=6, **more))  # type: ignore[arg-type]
        return [batch.documents.ravel().tolist() for batch in made.epoch(number)]

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)
    assert rows(1) != rows(1, seed=5)


def test_at_most_so_many_positives_of_a_query() -> None:
    made = batches(learned(), RetrieverTraining(positives_per_query=1, batch=8))
    assert made.per_epoch == 3
    assert sorted(q for batch in made.epoch(0) for q in batch.queries) == list(range(len(WORDS)))


def test_where_nothing_was_mined_any_other_document_is_a_negative() -> None:
    docs = [{"id": name, "text": text} for name, text in (("a", "apple"), ("b", "pear"), ("c", "plum"))]
    found = learned(collection_of(docs, {"q": "stone"}, {"q": {"a": 1}}))  # BM25 finds nothing for it
    asked = RetrieverTraining(mine="bm25", negatives_per_positive=8, batch=1)
    (batch,) = batches(found, asked).epoch(0)
    assert set(batch.documents[0, 1:].tolist()) == {1, 2}
    every = learned(collection_of(docs[:1], {"q": "stone"}, {"q": {"a": 1}}))
    with pytest.raises(UserError, match="a query to which every document is relevant has no negatives"):
        batches(every, asked).epoch(0)


def test_halves_are_the_whole() -> None:
    found = learned()
    made = batches(found, BM)
    batch = made.epoch(0)[0]
    halves = made.halves(batch)
    assert [len(half.queries) for half in halves] == [4, 4]
    assert np.concatenate([half.documents for half in halves]).tolist() == batch.documents.tolist()
    single = RetrieverBatch(batch.queries[:1], batch.documents[:1], np.ones((1, 3)))
    (kept,) = made.halves(single)
    assert kept.scores is not None
    assert kept.documents.tolist() == single.documents.tolist()


def test_what_a_teacher_did_not_see_counts_as_its_lowest_score() -> None:
    found = learned()
    made = batches(found, RetrieverTraining(mine="cross", negatives_per_positive=2, batch=8), Contrary())
    nothing = Mined(
        tuple(np.empty(0, np.int64) for _ in found.positives), tuple(np.empty(0) for _ in found.positives),
        tuple(np.arange(len(rows)) + 4.0 for rows in found.positives),
    )  # fmt: skip
    _, documents, scores = made._rows(np.random.default_rng(0), nothing)
    assert scores is not None
    assert set(scores[:, 0]) == {4.0, 5.0}
    assert (scores[:, 1:] == 4.0).all()
    assert documents.shape == (2 * len(WORDS), 3)

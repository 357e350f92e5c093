"""Negatives by each scheme, and the rows that they make."""

import numpy as np
import pytest

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.io.cache import Vectors
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.run import Run
from ranktilt.training.mining import Miner
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.training_set import TrainingSet, retriever_set
from tests.toy import collection_of
from tests.training.material import marked

BM = RetrieverTraining(mine="bm25", negatives_per_positive=2, batch=8, depth=6)


def learned(collection: Collection | None = None) -> TrainingSet:
    return retriever_set(marked() if collection is None else collection, RetrieverTraining())


def test_in_batch_mines_nothing() -> None:
    found = learned()
    rows = Miner(found, RetrieverTraining()).rows(3)
    assert (rows.documents.shape, rows.labels) == ((40, 1), None)


def test_bm25s_best_without_what_is_relevant() -> None:
    found = learned()
    run = BM25(k=6).rank(found.part).frame()
    for number, query in enumerate(found.part.queries["id"]):
        ranked = run.filter(query_id=query)["doc_id"].to_list()
        expected = [doc for doc in ranked if found.part.ids.to_list().index(doc) not in found.barred[number]]
        mined = Miner(found, BM).epoch().negatives[number]
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
    mined = Miner(found, asked, Contrary()).epoch()
    assert [rows.tolist() for rows in mined.scores] == [rows.tolist() for rows in mined.negatives]
    assert [rows.tolist() for rows in mined.of_positives] == [rows.tolist() for rows in found.positives]
    rows = Miner(found, asked, Contrary()).rows(0)
    assert rows.labels is not None
    assert (rows.labels == rows.documents).all()
    # The relevant documents of each word stand first, so nothing lies below: then the lowest are taken.
    assert (rows.documents[:, 1:] % 6 <= 3).all()


class Forgetful(BM25):
    """A teacher that keeps one candidate a query."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        assert run is not None
        return Run.from_frame(run.frame().group_by("query_id", maintain_order=True).first(), queries=run.queries)


def test_a_teacher_that_leaves_documents_out_is_refused() -> None:
    with pytest.raises(UserError, match="leaves documents without a score; a teacher keeps every candidate"):
        Miner(learned(), RetrieverTraining(mine="cross"), Forgetful()).epoch()


def random_vectors(found: TrainingSet, seed: int = 0) -> tuple[Vectors, Vectors, bool]:
    rng = np.random.default_rng(seed)
    shapes = (len(found.queries), 8), (found.part.docs.height, 8)
    queries, documents = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return queries, documents, False


def test_ann_is_the_models_own_best_of_each_epoch() -> None:
    found = learned()
    calls = []

    def encode() -> tuple[Vectors, Vectors, bool]:
        calls.append(len(calls))
        return random_vectors(found, len(calls))

    miner = Miner(found, RetrieverTraining(mine="ann", depth=5), None, encode)
    for epoch in (1, 2):
        mined = miner.epoch()
        queries, documents, _ = random_vectors(found, epoch)
        for number, query in enumerate(queries):
            best = np.argsort(-(documents @ query), kind="stable")[:5]
            assert mined.negatives[number].tolist() == [d for d in best if d not in found.barred[number]]


def test_an_epoch_has_each_positive_once_and_negatives_of_its_query() -> None:
    found = learned()
    rows = Miner(found, BM).rows(0)
    pairs = zip(rows.queries.tolist(), rows.documents[:, 0].tolist(), strict=True)
    assert sorted(pairs) == [(q, int(d)) for q, relevant in enumerate(found.positives) for d in relevant]
    for query, documents in zip(rows.queries, rows.documents[:, 1:], strict=True):
        assert not np.isin(documents, found.barred[query]).any()
    same, other = Miner(found, BM).rows(0), Miner(found, BM).rows(1)
    assert (rows.documents == same.documents).all()
    assert (rows.documents != other.documents).any()


def test_where_nothing_was_mined_any_other_document_is_a_negative() -> None:
    docs = [{"id": name, "text": text} for name, text in (("a", "apple"), ("b", "pear"), ("c", "plum"))]
    found = learned(collection_of(docs, {"q": "stone"}, {"q": {"a": 1}}))  # BM25 finds nothing for it
    asked = RetrieverTraining(mine="bm25", negatives_per_positive=8, batch=1)
    assert set(Miner(found, asked).rows(0).documents[0, 1:].tolist()) == {1, 2}
    every = learned(collection_of(docs[:1], {"q": "stone"}, {"q": {"a": 1}}))
    with pytest.raises(UserError, match="a query to which every document is relevant has no negatives"):
        Miner(every, asked).rows(0)

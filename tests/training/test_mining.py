"""Negatives by each scheme, and the rows that they make."""

import numpy as np
import pytest

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.io.cache import Vectors
from ranktilt.rankers.lexical.bm25 import BM25
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
        mined = Miner(found, BM).mined()[number]
        assert found.part.ids.gather(mined).to_list() == expected
        assert len(expected) == 4


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

    miner = Miner(found, RetrieverTraining(mine="ann", depth=5), encode)
    for epoch in (1, 2):
        mined = miner.mined()
        queries, documents, _ = random_vectors(found, epoch)
        for number, query in enumerate(queries):
            best = np.argsort(-(documents @ query), kind="stable")[:5]
            assert mined[number].tolist() == [d for d in best if d not in found.barred[number]]


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

"""What a retriever learns from: relevant documents, their twins, and what is never a negative."""

import numpy as np
import pytest

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.training_set import TrainingSet, retriever_set
from tests.refusals import refused
from tests.toy import collection_of

DOCS = [
    {"id": "a", "text": "apple", "source": "human", "origin": "a"},
    {"id": "b", "text": "pear", "source": "human", "origin": "b"},
    {"id": "c", "text": "plum", "source": "human", "origin": "c"},
    {"id": "copy", "text": "apple", "source": "human", "origin": "copy"},
    {"id": "a-llm", "text": "an apple", "source": "llm", "origin": "a"},
    {"id": "c-llm", "text": "a plum", "source": "llm", "origin": "c"},
    {"id": "a-two", "text": "apples", "source": "two", "origin": "a"},
]
QUERIES = {"q": "fruit", "r": "pome", "s": "stone", "t": "nothing"}
QRELS = {"q": {"a": 1, "b": 2}, "r": {"c": 1, "b": 0}, "s": {"a-llm": 1}}


def fruit(docs: list[dict[str, str]] = DOCS, qrels: dict[str, dict[str, int]] = QRELS) -> Collection:
    return collection_of(docs, QUERIES, qrels)


def found(**options: object) -> TrainingSet:
    return retriever_set(fruit(), RetrieverTraining(**options))  # type: ignore[arg-type]


def test_the_first_source_is_learned_from_and_grades_above_0_are_relevant() -> None:
    learned = found()
    assert learned.part.docs["id"].to_list() == ["a", "b", "c", "copy"]
    assert learned.queries == ["fruit", "pome"]
    assert [rows.tolist() for rows in learned.positives] == [[0, 1], [2]]
    assert learned.skipped == 1  # what is relevant to s is no human text


def test_versions_and_copies_of_what_is_relevant_are_no_negatives() -> None:
    assert [rows.tolist() for rows in found().barred] == [[0, 1, 3], [2]]
    judged_elsewhere = fruit(qrels={"q": {"b": 1, "a-llm": 1}})
    assert [rows.tolist() for rows in retriever_set(judged_elsewhere, RetrieverTraining()).barred] == [[0, 1]]


def test_each_document_knows_its_twin() -> None:
    learned = found()
    assert learned.twin_source == "llm"
    assert [learned.texts[place] for place in learned.twins] == ["an apple", "pear", "a plum", "apple"]
    assert learned.paired == 2
    named = found(twins="two")
    assert [named.texts[place] for place in named.twins] == ["apples", "pear", "plum", "apple"]
    assert named.paired == 1


def test_trainings_on_one_collection_share_it() -> None:
    collection = fruit()
    first = retriever_set(collection, RetrieverTraining())
    assert retriever_set(collection, RetrieverTraining(alpha=0.5, seed=3)) is first
    assert retriever_set(collection, RetrieverTraining(text="text")) is not first


def test_no_twin_is_refused_only_where_there_is_a_constraint() -> None:
    alone = fruit([one for one in DOCS if one["source"] == "human"])
    assert (retriever_set(alone, RetrieverTraining()).twins == np.arange(4)).all()
    unrelated = fruit([*alone.docs.select("id", "text", "source", "origin").to_dicts(), DOCS[5]], {"q": {"b": 1}})
    for collection, options in ((alone, {"alpha": 0.1}), (unrelated, {"variant": "code"})):
        with refused(
            "the collection: no relevant document that is learned from has a twin, and the constraint compares the "
            "two; write them: ranktilt generate rewrite DIR --split train --llm MODEL -o NEW"
        ):
            retriever_set(collection, RetrieverTraining(**options))  # type: ignore[arg-type]


def test_twins_of_another_source_than_what_is_learned_from() -> None:
    with refused("training: 'human' is learned from, so it cannot hold the twins too"):
        found(twins="human")
    with pytest.raises(UserError, match=r"^unknown source 'thre'"):
        found(twins="thre")


def test_nothing_relevant_is_refused() -> None:
    with refused("the collection: no document of source 'two' is judged relevant; there is nothing to learn"):
        found(sources=("two",))

"""A function as a ranker: one call, three forms of answer, and what is refused."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktilt as rt
from ranktilt.auditing.answer.next_steps import next_steps
from ranktilt.errors import DataWarning
from tests.rankers.contract import entries, ids
from tests.refusals import refused
from tests.toy import QUERIES, toy

FORM = "expected (document id, score) pairs, ids in their order, or a dictionary of scores by id"


def answering(*answers: Any) -> Callable[[list[str], int], Any]:
    """Return a function that gives these answers to the toy's three queries."""

    def search(queries: list[str], k: int) -> Any:
        return list(answers)

    return search


def test_function_is_called_once_with_all_texts_and_the_depth() -> None:
    calls = []

    def search(queries: list[str], k: int) -> list[list[tuple[str, float]]]:
        calls.append((queries, k))
        return [[("d1-human", 2.0), ("d1-llm", 1.0)] for _ in queries]

    run = rt.ranker(search, k=2).rank(toy())
    assert calls == [(list(QUERIES.values()), 2)]
    assert entries(run) == {query: [("d1-human", 2.0), ("d1-llm", 1.0)] for query in QUERIES}
    assert run.spec["ranker"] == "function:search@2"
    assert run.spec["function"]["name"].endswith(".search")
    assert run.spec["function"]["file"] == "test_function.py"


def test_answers_are_pairs_ids_or_scores_by_id() -> None:
    run = rt.ranker(
        answering(
            [("d1-llm", np.float32(0.5)), ("d1-human", 0.25)],
            [["d2-human", 3], ["d2-llm", 1]],
            {"d3-human": 1.0, "d3-llm": 1.0, "d1-human": 2.0},
        )
    ).rank(toy())
    hits = entries(run)
    assert hits["q1"] == [("d1-llm", 0.5), ("d1-human", 0.25)]
    assert hits["q2"] == [("d2-human", 3.0), ("d2-llm", 1.0)]
    # The order of a dictionary says nothing: the highest score is first, and equal ones are ties.
    assert hits["q3"][0] == ("d1-human", 2.0)
    assert {score for _, score in hits["q3"][1:]} == {1.0}


def test_order_of_ids_counts_and_the_run_has_no_scores() -> None:
    answers = [np.array(["d1-llm", "d1-human"]), ("d2-human",), ["d3-llm", "d3-human", "d1-llm"]]
    run = rt.ranker(answering(*answers)).rank(toy())
    assert ids(run) == {
        "q1": ["d1-llm", "d1-human"],
        "q2": ["d2-human"],
        "q3": ["d3-llm", "d3-human", "d1-llm"],
    }
    assert run.spec["score_order"] == "rank"
    assert not run.scored


def test_ties_of_a_dictionary_are_ties_of_the_audit() -> None:
    scores = {f"d{n}-{source}": 4.0 - n for n in (1, 2, 3) for source in ("human", "llm")}
    run = rt.ranker(lambda queries, k: [scores] * len(queries)).rank(toy())
    audit = rt.audit(toy(), run, "nDCG@1", resamples=100)
    assert audit.tilts[0].value == 0.0


def test_duplicates_and_unknown_documents_are_counted_and_warned_of() -> None:
    search = answering(
        [("d1-llm", 3.0), ("elsewhere", 2.0), ("d1-llm", 1.0)], ["d2-llm"], ["d3-llm"]
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        run = rt.ranker(search).rank(toy())
    messages = [str(warning.message) for warning in caught]
    assert any("1 result for a document that is already" in message for message in messages)
    assert any("1 result for a document that is not in the collection" in m for m in messages)
    assert run.spec["answers"]["duplicates"] == run.spec["answers"]["unknown"] == 1
    assert ids(run)["q1"] == ["d1-llm", "elsewhere"]  # whose place is kept


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("text", "expected a list with an answer for each of 3 queries, got str: 'text'"),
        (None, "expected a list with an answer for each of 3 queries, got nothing: None"),
        ({"q1": []}, "expected a list with an answer for each of 3 queries, got dict: {'q1': []}"),
        (
            [[]],
            "expected a list with an answer for each of 3 queries, got 1; "
            "it is called once, with all queries",
        ),
        ([[], "ab", []], f"query 'q2': {FORM}, got 'ab'"),
        ([[], [("a", 1.0), "b"], []], f"query 'q2': {FORM}, got 'b'"),
        ([[("a", "1")], [], []], f"query 'q1': {FORM}, got ('a', '1')"),
        ([[1.5], [], []], f"query 'q1': {FORM}, got [1.5]"),
        ([{"a": float("nan")}, [], []], f"query 'q1': {FORM}, got {{'a': nan}}"),
        ([[], [], []], "no query returned any document; is the index empty?"),
        (
            [["x"], ["y"], []],
            "no overlap: none of its 2 documents is in the collection "
            "(first: 'x'; its ids look like 'd1-human')",
        ),
        (
            [[(f"d{n}-human", float(n)) for n in (1, 2, 3)]] * 3,
            'the scores rise along the given order in 3 of 3 lists; score_order="ascending" …',
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::ranktilt.errors.DataWarning")
def test_other_answers_are_refused_with_what_came(returned: Any, message: str) -> None:
    def search(queries: list[str], k: int) -> Any:
        return returned

    with refused(f"function:search: {message}"):
        rt.ranker(search).rank(toy())


def test_no_command_is_suggested_that_could_not_read_the_ranker(tmp_path: Path) -> None:
    rt.save(toy(), tmp_path / "toy")
    collection = rt.load(tmp_path / "toy")
    answers = [["d1-human", "d1-llm"], ["d2-human", "d2-llm"], ["d3-human", "d3-llm"]]
    mine = rt.audit(collection, rt.ranker(answering(*answers)).rank(collection), resamples=100)
    typed = rt.audit(collection, rt.ranker("bm25").rank(collection), resamples=100)
    assert next_steps(mine) == ()
    assert any("-r bm25" in step.command for step in next_steps(typed))


def test_what_the_function_raises_is_not_caught() -> None:
    def search(queries: list[str], k: int) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        rt.ranker(search).rank(toy())


def test_function_prints_its_name_and_takes_options_of_one_call() -> None:
    class Search:
        def __call__(self, queries: list[str], k: int) -> Any:
            return [[("d1-human", 1.0)] for _ in queries]

    search = Search()
    assert repr(rt.ranker(search, k=7)) == "function:Search@7"
    assert repr(rt.ranker(partial(search, k=3))) == "function:Search"
    assert repr(rt.ranker(lambda queries, k: [])) == 'function:"<lambda>"'
    assert hash(rt.ranker(search)) == hash(rt.ranker(search))
    with refused("unknown option of function 'concurrency' (valid: …"):
        rt.ranker(search, concurrency=3)
    with refused("function: expected a depth of at least 1, got @0"):
        rt.ranker(search, k=0)
    with refused(f"{rt.ranker(search)!r} queries an engine and cannot re-rank; put it first"):
        (rt.ranker("bm25") >> rt.ranker(search)).rank(toy())


def test_objects_that_rank_nothing_are_refused() -> None:
    expected = (
        "expected the text of a ranker, a function (queries, k), a model of sentence-transformers "
        "or mteb, a PyTerrier pipeline, or a retriever of LangChain or LlamaIndex, got "
    )

    class Store:
        def as_retriever(self) -> None: ...

        def __repr__(self) -> str:
            return "Store()"

    with refused(f"{expected}3"):
        rt.ranker(3)
    with refused(f"{expected}<class 'int'>"):
        rt.ranker(int)
    with refused(f"{expected}Store(); give its retriever: .as_retriever(…)"):
        rt.ranker(Store())
    with refused("'bm25': expected options in the text of a ranker, such as bm25(k1=0.9)@100, …"):
        rt.ranker("bm25", k=3)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("function:search", "rt.ranker(your function)"),
        ("langchain:VectorStoreRetriever", "rt.ranker(your retriever)"),
        ("SentenceTransformer:minilm@5", "rt.ranker(your model)"),
        ("pyterrier:x", "rt.ranker(your pipeline)"),
    ],
)
def test_what_an_object_prints_as_cannot_be_typed(text: str, hint: str) -> None:
    with pytest.raises(rt.UserError) as caught:
        rt.ranker(text)
    assert str(caught.value).endswith(
        f"; you cannot type an object, but you can use it in Python: {hint}"
    )

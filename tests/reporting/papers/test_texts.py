"""Pairs of texts chosen by a rule that the table states."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest

from ranktilt import Audit, Collection, Run, UserError, audit
from ranktilt.auditing.study_sources import source_pairs
from ranktilt.reporting.document import Panels
from ranktilt.reporting.papers.texts import PAIRS, chosen_texts, of_collections
from ranktilt.reporting.reload import LoadedAudit
from tests.reporting.audits import ordered, twins, uneven
from tests.toy import collection_of, run_of

TWO = ("human", "llm")


def bed() -> tuple[Collection, Audit, Run]:
    """Ten queries with a twin each: q3 has human text first, q7 LLM text, the others' twins are tied."""
    collection = twins(10)
    collection = Collection(collection.docs, collection.queries.with_columns(text=pl.col("id")), collection.qrels)
    scores = {f"q{n}": {f"{n}-human": 1.0 + (n == 3), f"{n}-llm": 1.0 + (n == 7)} for n in range(10)}
    run = run_of(collection, scores, ranker="bm25")
    return collection, audit(collection, run, ["nDCG@1"], resamples=100), run


def graded(first: int, second: int) -> tuple[Collection, Audit, Run]:
    """One query, two relevant pairs."""
    docs = [{"id": f"{d}-{s}", "text": f"{s} text {d}", "source": s, "origin": f"{d}-human"} for d in "ab" for s in TWO]
    grades = {"q": {f"{d}-{s}": g for d, g in (("a", first), ("b", second)) for s in TWO}}
    collection = collection_of(docs, {"q": "the question"}, grades)
    run = run_of(collection, {"q": {"b-human": 4.0, "a-human": 3.0, "a-llm": 2.0, "b-llm": 1.0}}, ranker="bm25")
    return collection, audit(collection, run, ["nDCG@1"], resamples=100), run


def chosen(collection: Collection, found: Audit, *runs: Run, queries: Sequence[str] = ()) -> Panels:
    return chosen_texts([LoadedAudit(found, collection, runs)], "dai-10", queries=queries)


def titles(block: Panels) -> list[str]:
    return [panel.caption for panel in block.tables]


def test_queries_that_contribute_most_are_chosen_and_the_rule_is_stated() -> None:
    # Means are .5 each; q3 gives 200·1/(10·1) = 20 points, q7 takes them.
    collection, found, _ = bed()
    block = chosen(collection, found)
    assert titles(block) == ["Query: q3", "Query: q7"]
    assert found.tilts[0].value == pytest.approx(0.0)
    front = f"Chosen: of 10 queries the {PAIRS} that contribute most to Relative Δ of nDCG@1, 1 ranker added up; "
    assert block.notes == (
        f"{front}of each the relevant pair of the highest grade.",
        "Parts of Relative Δ in points, 1 ranker added up (+ favours human): q3 +20.0, q7 −20.0.",
    )


def test_a_ranker_without_a_relative_delta_brings_nothing() -> None:
    collection, _, run = bed()
    found = audit(collection, [run, run_of(collection, {}, ranker="none")], ["nDCG@1"], resamples=100)
    assert chosen(collection, found).notes[1].endswith("2 rankers added up (+ favours human): q3 +20.0, q7 −20.0.")


def test_queries_can_be_named() -> None:
    collection, found, _ = bed()
    block = chosen(collection, found, queries=["q5", "q0", "q5"])
    assert titles(block) == ["Query: q5", "Query: q0"]
    assert not any(note.startswith("Chosen") for note in block.notes)


@pytest.mark.parametrize(
    ("judged", "queries", "message"),
    [
        (pl.lit(True), ["q33"], "unknown query 'q33'; did you mean 'q3'"),
        (pl.col("doc_id") != "4-llm", ["q4"], "query 'q4' has no pair of texts that are both relevant to it"),
        (pl.col("doc_id") == "4-llm", [], "dai-10: no query has a relevant pair of human and llm"),
    ],
)
def test_a_query_without_a_relevant_pair_is_refused(judged: pl.Expr, queries: list[str], message: str) -> None:
    collection, found, _ = bed()
    with pytest.raises(UserError, match=message):
        chosen(Collection(collection.docs, collection.queries, collection.qrels.filter(judged)), found, queries=queries)


@pytest.mark.parametrize(("grades", "pair"), [((1, 2), "b"), ((2, 1), "a"), ((1, 1), "a")])
def test_of_a_query_the_pair_of_the_highest_grade_counts(grades: tuple[int, int], pair: str) -> None:
    collection, found, _ = graded(*grades)
    (panel,) = chosen(collection, found).tables
    assert [cell.text for cell in panel.rows[0]] == [f"human text {pair}", f"llm text {pair}"]


def test_the_table_is_two_texts_below_their_query() -> None:
    collection, found, _ = graded(1, 1)
    block = chosen(collection, replace(found, spec={**found.spec, "command": "ranktilt audit X"}))
    assert titles(block) == ["Query: the question"]
    assert [column.title for column in block.tables[0].columns] == ["Human-Written", "LLM-Generated"]
    assert block.caption.endswith("to which both are relevant. LLM text by llm.")
    assert block.made == ("Made by: ranktilt audit X",)


MODELS = ("gpt_1.0", "llama")


def versions(without: str = "") -> Collection:
    """Two queries of one relevant document each, in three versions; one version of q1's may be missing."""
    docs = [
        {"id": f"{d}-{s}", "text": f"{s} text {d}", "source": s, "origin": f"{d}-human"}
        for d in "ab" for s in ("human", *MODELS) if f"{d}-{s}" != without
    ]  # fmt: skip
    grades = {f"q{n}": {doc["id"]: 1 for doc in docs if doc["id"].startswith(d)} for n, d in enumerate("ab")}
    return collection_of(docs, {"q0": "first", "q1": "second"}, grades)


def audited(collection: Collection) -> LoadedAudit:
    """Human text first for q1, all tied for q0."""
    scores = {"q0": dict.fromkeys(collection.ids, 1.0), "q1": {"b-human": 2.0, **dict.fromkeys(collection.ids, 1.0)}}
    scores["q1"]["b-human"] = 2.0
    run = run_of(collection, scores, ranker="bm25")
    return LoadedAudit(audit(collection, run, ["nDCG@1"], resamples=100), collection, (run,))


@pytest.mark.parametrize("apart", [False, True], ids=["one audit", "an audit each"])
def test_every_source_has_a_column_from_one_audit_or_from_one_each(apart: bool) -> None:
    whole = Collection(*(getattr(versions(), name) for name in ("docs", "queries", "qrels")), {"path": "bed"})
    opened = [audited(one) for one in (source_pairs(whole) if apart else [whole])]
    (together,) = of_collections(opened)
    assert len(of_collections([audited(versions()), *opened])) == 2
    block = chosen_texts(together, "dai-10", queries=["q1"])
    (panel,) = block.tables
    titles = ["Human-Written", "LLM-Generated, gpt_1.0", "LLM-Generated, llama"]
    assert [column.title for column in panel.columns] == titles
    assert [cell.text for cell in panel.rows[0]] == ["human text b", "gpt_1.0 text b", "llama text b"]
    assert block.caption.endswith("bed, LLM text by gpt at temperature 1.0 and llama.")
    assert "1 ranker and 2 sources added up" in block.notes[0]


def test_a_version_that_is_missing_is_a_dash_and_its_query_is_named_not_chosen() -> None:
    opened = audited(versions(without="b-llama"))
    assert [panel.caption for panel in chosen_texts([opened], "dai-10").tables] == ["Query: first"]
    (panel,) = chosen_texts([opened], "dai-10", queries=["q1"]).tables
    assert [cell.text for cell in panel.rows[0]] == ["human text b", "gpt_1.0 text b", "–"]


def test_texts_come_with_an_audit_by_source_and_its_collection() -> None:
    collection, found, _ = bed()
    others = [LoadedAudit(uneven(), twins(40, ("human",))), LoadedAudit(found)]
    assert of_collections([*others, LoadedAudit(found, collection)]) == [[LoadedAudit(found, collection)]]


def test_two_sources_of_llms_are_called_by_their_names() -> None:
    collection = twins(3, ("gpt", "llama"))
    found = audit(collection, ordered(collection, [("gpt", "llama")] * 3, "bm25"), ["nDCG@1"], resamples=100)
    assert [column.title for column in chosen(collection, found).tables[0].columns] == ["gpt", "llama"]

"""Queries to fit on, to select by and to test on: what one learned from is nowhere tested."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.experiments.query_split import QuerySplit, at_most, split_queries
from tests.refusals import refused
from tests.toy import collection_of


def judged(relevant: dict[str, list[str]]) -> Collection:
    """Twins of ten origins, and queries with relevant documents."""
    docs = [
        {"id": f"{origin}-{source}", "text": origin, "source": source, "origin": f"{origin}-human"}
        for origin in "abcdefghij"
        for source in ("human", "llm")
    ]
    return collection_of(docs, {q: q for q in relevant}, {q: dict.fromkeys(found, 1) for q, found in relevant.items()})


def origins(collection: Collection) -> set[str]:
    joined = collection.qrels.join(collection.docs, left_on="doc_id", right_on="id")
    return set(joined["origin"])


def queries(split: QuerySplit) -> list[list[str]]:
    return [side.judged["id"].to_list() for side in (split.fit, split.select, split.test)]


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(
        st.text("pqrstuvwxyz", min_size=1, max_size=3),
        st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=3, unique=True),
        min_size=6, max_size=20,
    ),
    st.integers(0, 5),
)  # fmt: skip
def test_no_query_and_no_origin_that_is_learned_from_is_tested_on(relevant: dict[str, list[str]], seed: int) -> None:
    collection = judged({q: [f"{origin}-llm" for origin in found] for q, found in relevant.items()})
    try:
        split = split_queries(collection, seed=seed)
    except UserError as error:
        assert str(error).startswith("no query to fit on is left")  # noqa: PT017 - either way is right here
        return
    fit, select, test = map(set, queries(split))
    assert len(fit | select | test) == len(fit) + len(select) + len(test)
    assert select | test | fit <= set(relevant)
    assert not origins(split.fit) & (origins(split.select) | origins(split.test))
    assert split.fit.qrels.filter(pl.col("grade") > 0)["query_id"].n_unique() == len(fit)


def test_queries_of_one_origin_stay_together() -> None:
    relevant = {f"q{n}{half}": [f"{'abcdefghij'[n]}-{source}"] for n in range(10) for half, source in
                (("a", "human"), ("b", "llm"))}  # fmt: skip
    split = split_queries(judged(relevant), seed=3)
    sides = queries(split)
    assert sorted(map(len, sides)) == [4, 8, 8]
    assert all(f"q{n}a" in side and f"q{n}b" in side for side in sides for n in {name[1] for name in side})
    assert split.notes == ()
    assert queries(split_queries(judged(relevant), seed=3)) == sides
    assert queries(split_queries(judged(relevant), seed=4)) != sides


def test_where_one_origin_ties_all_together_the_fit_loses_what_is_shared() -> None:
    own = "abcdefghi"
    relevant = {f"q{n}": ["j-llm", f"{own[n]}-llm"] for n in range(9)}
    split = split_queries(judged(relevant))
    fit, select, test = queries(split)
    assert (len(fit), len(select), len(test)) == (4, 2, 3)
    assert split.fit.qrels["doc_id"].to_list() == [f"{own[int(name[1:])]}-llm" for name in fit]
    assert split.test.qrels.height == 6
    assert split.notes == (
        "4 of 8 judgments to fit on left out: of documents that are relevant to queries of other sides too",
    )


def test_without_judgments_queries_are_drawn() -> None:
    collection = judged({f"q{n}": [] for n in range(10)})
    split = split_queries(collection)
    assert [len(side) for side in queries(split)] == [4, 2, 4]
    assert sorted(name for side in queries(split) for name in side) == [f"q{n}" for n in range(10)]


def test_a_collection_s_own_splits_are_kept_apart() -> None:
    whole = judged({"q0": ["a-llm"], "q1": ["b-llm", "c-llm"], "q2": ["b-human"], "q3": ["d-llm"]})
    sides = [whole.only_queries(names) for names in (["q0", "q1"], ["q3"], ["q2", "q3"])]
    split = QuerySplit.of(*sides)
    assert queries(split) == [["q0", "q1"], [], ["q2", "q3"]]
    assert split.fit.qrels["doc_id"].to_list() == ["a-llm", "c-llm"]


def test_so_many_are_drawn_by_a_seed() -> None:
    collection = judged({f"q{n}": ["a-llm"] for n in range(9)})
    assert at_most(collection, 9) is collection
    few = at_most(collection, 3, seed=1).judged["id"].to_list()
    assert len(few) == 3
    assert at_most(collection, 3, seed=1).judged["id"].to_list() == few


def test_two_large_sets_of_linked_queries_leave_no_side_empty() -> None:
    relevant = {f"q{n}": [f"{'ab'[n % 2]}-llm", f"{'cdefghij'[n % 8]}-llm"] for n in range(10)}
    assert all(queries(split_queries(judged(relevant))))


def test_what_cannot_be_split_is_refused() -> None:
    with refused("a bench needs queries to fit, select and test on; the collection has 2 to rank"):
        split_queries(judged({name: ["a-llm"] for name in ("q0", "q1")}))
    one_origin = judged({f"q{n}": ["a-llm"] for n in range(4)})
    with pytest.raises(UserError, match=r"^no query to fit on is left: every document that is relevant to one is rele"):
        split_queries(one_origin)
    for shares, shown in (((), "none"), ((0.5, 0.5, 0.0), "0.5, 0.5, 0.0")):
        with refused(f"expected three shares between 0 and 1, got {shown}"):
            split_queries(one_origin, shares)

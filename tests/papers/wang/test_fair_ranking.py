"""Lists of two groups: how many of what, from where, in which order, and what is said of what is
missing.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.auditing.groups import grouping
from ranktilt.errors import UserError
from ranktilt.papers.wang.fair_ranking import (
    BLOCKS,
    FairRanking,
    ListRules,
    build_fair_ranking,
    summary,
)
from ranktilt.papers.wang.trec_fair import LabelledDocuments, read_labelled

WOMEN = "female"


def texts(ids: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame({"id": ids, "title": ids, "text": [f"about {name}" for name in ids]})


def documents(
    labels: dict[str, list[str]], relevant: dict[str, Sequence[str]]
) -> LabelledDocuments:
    """Documents called by their ids, with these labels, and which are relevant to each query."""
    pairs = [(query, doc) for query, docs in relevant.items() for doc in docs]
    table = pl.DataFrame(
        list(labels.items()), schema={"id": pl.String, "labels": pl.List(pl.String)}, orient="row"
    )
    queries = pl.DataFrame({"id": list(relevant), "text": [f"query {name}" for name in relevant]})
    judged = pl.DataFrame(pairs, schema={"query_id": pl.String, "doc_id": pl.String}, orient="row")
    return LabelledDocuments(
        labels=table,
        queries=queries,
        relevant=judged,
        by="gender",
        texts=texts,
        spec={"by": "gender"},
    )


def people(sizes: dict[str, tuple[int, int]]) -> LabelledDocuments:
    """So many men and women for each query, each relevant to one query only."""
    labels: dict[str, list[str]] = {}
    relevant: dict[str, list[str]] = {}
    for query, counts in sizes.items():
        for group, count in zip(("male", "female"), counts, strict=True):
            names = [f"{query}-{group}-{n}" for n in range(count)]
            labels |= {name: [group] for name in names}
            relevant.setdefault(query, []).extend(names)
    return documents(labels, relevant)


def lists(built: FairRanking) -> dict[str, list[str]]:
    frame = built.initial.frame()
    return {
        query: frame.filter(pl.col("query_id") == query)["doc_id"].to_list()
        for query in built.initial.queries
    }


def block_of(query: str, doc: str) -> int:
    return 2 * (not doc.startswith(f"{query}-")) + ("-female-" in doc)


def test_blocks_have_their_sizes_and_order_and_a_short_one_is_filled_from_the_other_group() -> None:
    source = people({"q1": (30, 20), "q2": (40, 10), "q3": (5, 2)})
    rules = ListRules(items=20, blocks=(8, 2, 7, 3), min_judged=10)
    built = build_fair_ranking(source, WOMEN, rules)
    assert built.initial.queries == ("q1", "q2")
    for query, docs in lists(built).items():
        assert [block_of(query, doc) for doc in docs] == [0] * 8 + [1] * 2 + [2] * 7 + [3] * 3
    assert built.counts["blocks"] == dict(zip(BLOCKS, (8, 2, 7, 3), strict=True))
    assert built.counts["precision_by_chance"] == 0.5
    source = people({"q1": (30, 2), "q2": (30, 30), "q3": (30, 30)})
    rules = ListRules(items=40, blocks=(10, 10, 10, 10), min_judged=20)
    built = build_fair_ranking(source, WOMEN, rules)
    assert built.counts["filled"] == {"q1": 8}
    sizes = np.bincount([block_of("q1", doc) for doc in lists(built)["q1"]])
    assert sizes.tolist() == [18, 2, 10, 10]
    assert ("filled", "8 items of 1 query, from the other group") in summary(built, "female")


def test_blocks_are_half_relevant_candidates_favour_nobody_and_seeds_give_other_items() -> None:
    built = build_fair_ranking(
        people({f"q{n}": (90, 30) for n in range(40)}), WOMEN, ListRules(items=100)
    )
    frame = built.candidates.frame()
    for query, docs in lists(built).items():
        blocks = [block_of(query, doc) for doc in docs]
        assert blocks == sorted(blocks)
        assert sum(block < 2 for block in blocks) == 50
        assert set(frame.filter(query_id=query)["doc_id"]) == set(docs)
    assert 0.22 < built.counts["protected_share"] < 0.28
    women = frame.with_columns(female=pl.col("doc_id").str.contains("-female-"))
    ranks = women.group_by("female").agg(pl.col("rank").mean())["rank"]
    assert abs(ranks[0] - ranks[1]) < 5  # of 50.5; the standard error is 1
    relevant = frame.filter(pl.col("doc_id").str.split("-").list.first() == pl.col("query_id"))[
        "rank"
    ].mean()
    assert abs(relevant - 50.5) < 5
    assert "shuffled" in built.candidates.spec["order"]
    assert built.initial.spec["order"].endswith(", ".join(BLOCKS))
    sizes = {"q1": (60, 30), "q2": (50, 50)}
    rules = ListRules(items=40)
    first, again = (build_fair_ranking(people(sizes), WOMEN, rules) for _ in "ab")
    assert (first.candidates, first.initial, first.collection) == (
        again.candidates,
        again.initial,
        again.collection,
    )
    assert lists(build_fair_ranking(people(sizes), WOMEN, replace(rules, seed=1))) != lists(first)
    more = build_fair_ranking(people({**sizes, "few": (1, 0)}), WOMEN, rules)
    relevant = [
        [doc for doc in lists(built)["q1"] if doc.startswith("q1")] for built in (first, more)
    ]
    assert relevant[0] == relevant[1]
    labels = {f"d{n}": ["female" if n % 2 else "male"] for n in range(12)}
    relevant = {"q1": [f"d{n}" for n in range(8)], "q2": [f"d{n}" for n in range(4, 12)]}
    built = build_fair_ranking(documents(labels, relevant), WOMEN, ListRules(items=6))
    judged = set(built.collection.qrels.select("query_id", "doc_id").rows())
    ids = set(built.collection.ids)
    assert judged == {
        (query, doc) for query, docs in relevant.items() for doc in docs if doc in ids
    }
    for query, docs in lists(built).items():
        assert [(query, doc) in judged for doc in docs] == [True] * 3 + [False] * 3


@settings(max_examples=40)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=5),
    blocks=st.tuples(*[st.integers(0, 6)] * 4).filter(lambda blocks: sum(blocks) > 1),
)
def test_every_list_is_whole_and_as_fair_as_it_can_be(
    sizes: list[tuple[int, int]], blocks: Any
) -> None:
    counts = {**{f"q{n}": pair for n, pair in enumerate(sizes)}, "other": (1, 1)}
    rules = ListRules(items=sum(blocks), blocks=blocks, min_judged=0)
    try:
        built = build_fair_ranking(people(counts), WOMEN, rules)
    except UserError:
        # Of irrelevant documents, those of the other queries, there may be too few.
        assert sum(blocks[2:]) or all(sum(pair) < blocks[0] + blocks[1] for pair in sizes)
        return
    for query, docs in lists(built).items():
        assert len(docs) == len(set(docs)) == sum(blocks)
        sizes = np.bincount([block_of(query, doc) for doc in docs], minlength=4)
        assert sizes[:2].sum() == blocks[0] + blocks[1]
        men, women = counts[query]
        assert sizes[0] >= min(men, blocks[0])
        assert sizes[1] >= min(women, blocks[1])


LABELS = {
    "a": ["Europe"],
    "b": ["Europe", "Asia"],
    "c": ["Asia"],
    "d": [],
    "e": ["Africa", "Asia"],
    "f": ["Europe"],
    "g": ["Africa"],
    "h": [],
}


def test_several_values_are_one_side_and_documents_may_have_none() -> None:
    source = documents(LABELS, {"q1": list("abcd"), "q2": list("efgh")})
    labels: dict[str, str] = {}
    for seed in range(8):
        built = build_fair_ranking(
            source, "non-Europe", ListRules(items=4, min_judged=2, seed=seed)
        )
        labels |= dict(built.collection.docs.select("id", "gender").rows())
    assert labels == {name: "|".join(values) for name, values in LABELS.items() if values}
    assert (built.counts["unlabelled"], built.counts["several"]) == (2, 1)
    built = build_fair_ranking(source, "Asia|Africa", ListRules(items=4, min_judged=2))
    assert built.counts["several"] == 1  # of Europe and of Asia
    audited = grouping(built.collection, "gender", ["Asia|Africa", "rest"])
    protected = {
        name for name, code in zip(built.collection.ids, audited.code, strict=True) if code == 0
    }
    assert protected == {"b", "c", "e", "g"} & set(built.collection.ids)
    items = [sum(doc in "bceg" for doc in docs) for docs in lists(built).values()]
    assert built.counts["protected"] == [min(items), np.median(items), max(items)]


ODD = {"a": ["male"], "b": ["female"], "c": ["male"], "d": ["female"]}
BOTH = {"q1": ["a", "b"], "q2": ["c", "d"]}


MORE = (
    "no query has enough documents of known groups (the most has 2 relevant documents): ask "
    "for "
    "fewer --items, or"
)


@pytest.mark.parametrize(
    ("labels", "relevant", "protected", "rules", "message"),
    [
        (
            ODD,
            BOTH,
            "femal",
            {},
            "unknown protected gender 'femal'; did you mean 'female'? (valid: ",
        ),
        (
            {"a": ["female"], "b": ["female"]},
            {"q1": ["a", "b"]},
            "female",
            {},
            "nothing to compare: only gender ",
        ),
        (ODD, BOTH, "female|mal", {}, "unknown gender 'mal'; did you mean 'male'"),
        (
            ODD,
            BOTH,
            "female|",
            {},
            "expected a group on each side of every |, such as Europe|Asia; got ",
        ),
        (
            ODD,
            BOTH,
            "female|male",
            {},
            "nothing to compare: 'female|male' is every gender; expected two ",
        ),
        (
            ODD,
            {"q1": []},
            "female",
            {},
            "no query has enough documents of known groups (the most has 0 ",
        ),
        (ODD, BOTH, "female", {"items": 40}, MORE),
        (ODD, BOTH, "female", {"items": 6, "blocks": (0, 0, 3, 3), "min_judged": 1}, MORE),
        (ODD, BOTH, "female", {"items": 1}, "expected at least 2 items a query, got 1"),
        (
            ODD,
            BOTH,
            "female",
            {"items": 20, "blocks": (5, 5, 5, 4)},
            "blocks 5,5,5,4 sum to 19, expected as many as i",
        ),
        (
            ODD,
            BOTH,
            "female",
            {"items": 5, "blocks": (5, 5, -5, 0)},
            "expected blocks of at least 0 items, got -5",
        ),
    ],
)
def test_what_cannot_be_compared_or_drawn_is_refused(
    labels: dict[str, list[str]],
    relevant: dict[str, list[str]],
    protected: str,
    rules: Any,
    message: str,
) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        build_fair_ranking(
            documents(labels, relevant), protected, ListRules(**{"items": 2, **rules})
        )


def test_the_papers_44_queries(shared_data: Path) -> None:
    source = read_labelled(shared_data / "trec-fair-2022-gender" / "trec_gender_2022.csv")
    assert source.by == "gender"
    built = build_fair_ranking(source, WOMEN, ListRules())
    assert (built.counts["queries"], built.counts["queries_of"]) == (44, 50)
    assert set(np.diff(built.candidates.offsets)) == {200}
    assert built.counts["precision_by_chance"] == 0.5
    assert 0.13 < built.counts["protected_share"] < 0.18  # 3,503 of 22,271 in all

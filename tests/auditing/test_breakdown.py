"""What numbers are made of: groups down the list, ties over every order; and each query's part of Relative Δ."""

from collections.abc import Mapping
from itertools import groupby, permutations, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import Collection, Run, audit
from ranktilt.auditing.breakdown import RankShares, contributions, parts, rank_shares
from ranktilt.errors import UserError
from tests.auditing.arrays import audit_of
from tests.reporting.audits import small
from tests.toy import run_of, toy

NAN = float("nan")


def shares(collection: Collection, run: Run, *, depth: int = 3, **options: Any) -> RankShares:
    found = audit(
        collection, run, options.pop("measures", ["P@1"]), **{"resamples": 100, "confounds": False, **options}
    )
    return rank_shares(collection, run, found, depth=depth)


def toy_run(scores: Mapping[str, Mapping[str, float]]) -> tuple[Collection, Run]:
    collection = toy()
    return collection, run_of(collection, scores, ranker="run")


def test_a_rank_is_shared_by_the_groups_of_the_documents_that_stand_there() -> None:
    found = shares(
        *toy_run(
            {
                "q1": {"d1-human": 3, "d1-llm": 2, "d2-human": 1},
                "q2": {"d2-llm": 3, "d1-llm": 2, "d1-human": 1},
                "q3": {"d3-llm": 3, "d2-human": 2, "d3-human": 1},
            }
        )
    )
    assert found.groups == ("human", "llm")
    np.testing.assert_allclose(found.at, [[1 / 3, 1 / 3, 1], [2 / 3, 2 / 3, 0]])
    assert found.queries.tolist() == [3, 3, 3]
    assert found.depth == 3


def test_documents_without_a_group_take_a_rank_and_belong_to_nobody() -> None:
    collection = toy()
    side = pl.when(pl.col("id") == "d1-human").then(None).otherwise(pl.col("source")).alias("side")
    collection = Collection(collection.docs.with_columns(side), collection.queries, collection.qrels)
    run = run_of(collection, {"q1": {"d1-human": 3, "d3-llm": 2, "d3-human": 1}}, ranker="run")
    found = shares(collection, run, by="side")
    np.testing.assert_array_equal(found.at, [[0, 0, 1], [0, 1, 0]])
    np.testing.assert_allclose(found.level, [2 / 5 * 2 / 3, 3 / 5 * 2 / 3])  # two of three in the list have a group


@pytest.mark.parametrize("missing", ["zero", "exclude"])
@pytest.mark.parametrize("ties", ["expected", "trec_eval"])
def test_found_is_the_mean_of_recall_as_the_audit_has_it(missing: str, ties: str) -> None:
    scores = {"q1": {"d1-human": 2, "d1-llm": 2, "d3-llm": 2, "d2-llm": 1}, "q2": {"d1-llm": 1, "d2-llm": 1}}
    collection, run = toy_run(scores)
    found = audit(collection, run, ["R@1", "R@2", "R@3"], missing=missing, ties=ties, resamples=100, confounds=False)
    expected = np.nanmean(found.values[0, :, 1:], axis=2).T
    np.testing.assert_allclose(rank_shares(collection, run, found, depth=3).found, expected, atol=1e-12)


def test_ties_are_broken_by_id_where_the_audit_did_so() -> None:
    found = shares(*toy_run({"q1": {"d1-human": 1, "d1-llm": 1}}), ties="trec_eval")
    np.testing.assert_array_equal(found.at[:, :2], [[0, 1], [1, 0]])  # the larger id first


def test_nothing_is_found_without_judgments_and_shares_are_still_there() -> None:
    collection = toy()
    collection = Collection(collection.docs, collection.queries, collection.qrels.clear())
    run = run_of(collection, {"q1": {"d1-human": 2, "d1-llm": 1}}, ranker="run")
    found = shares(collection, run, measures=None, card=True)
    assert np.isnan(found.found).all()
    np.testing.assert_array_equal(found.at[:, :2], [[1, 0], [0, 1]])


def test_a_group_without_relevant_documents_has_no_recall() -> None:
    collection = toy()
    kept = collection.qrels.filter(pl.col("doc_id").str.ends_with("-human"))
    docs = collection.docs.with_columns(side=pl.Series(["a", "b", "a", "c", "c", "c"]))
    collection = Collection(docs, collection.queries, kept)
    run = run_of(collection, {"q1": {"d1-human": 2, "d2-human": 1}}, ranker="run")
    found = shares(collection, run, by="side")
    assert np.isnan(found.found).tolist() == [[False] * 3, [False] * 3, [True] * 3]


def by_every_order(lists: list[list[tuple[str, int]]], depth: int) -> np.ndarray:
    """Share of the first group at each rank: the mean over all orders that the ties allow, then over queries."""
    total, reach = np.zeros(depth), np.zeros(depth)
    for entries in lists:
        blocks = [list(block) for _, block in groupby(sorted(entries, key=lambda e: -e[1]), key=lambda e: e[1])]
        orders = [[e for block in order for e in block] for order in product(*map(permutations, blocks))]
        for rank in range(min(depth, len(entries))):
            total[rank] += np.mean([order[rank][0].endswith("human") for order in orders])
            reach[rank] += 1
    return np.where(reach > 0, total / np.maximum(reach, 1), NAN)


IDS = tuple(toy().ids)


@settings(max_examples=15)
@given(st.lists(st.dictionaries(st.sampled_from(IDS), st.integers(0, 2), max_size=5), min_size=3, max_size=3))
def test_shares_are_the_mean_over_all_orders_of_the_ties(scores: list[dict[str, int]]) -> None:
    found = shares(
        *toy_run({f"q{i + 1}": {d: float(s) for d, s in one.items()} for i, one in enumerate(scores)}), depth=4
    )
    np.testing.assert_allclose(found.at[0], by_every_order([list(one.items()) for one in scores], 4), atol=1e-12)
    np.testing.assert_allclose(found.at.sum(axis=0)[found.queries > 0], 1, atol=1e-12)


def parts_of(a: list[float], b: list[float]) -> list[float]:
    every = [0.0] * len(a)
    return contributions(audit_of([[[every, a, b]]]), "run", "nDCG@5", "human", "llm").tolist()


def test_parts_are_the_queries_differences_over_the_sum_of_all_values() -> None:
    # Sums 1.5 and 1.0: Relative Δ is 200 · 0.5 / 2.5 = 40, of which 200 · 0.6 / 2.5 = 48 and 200 · (−0.1) / 2.5 = −8.
    assert parts_of([1.0, 0.5], [0.4, 0.6]) == pytest.approx([48, -8], abs=1e-12)


def test_a_query_without_relevant_documents_on_one_side_counts_in_no_part() -> None:
    assert parts_of([1.0, 0.9, np.nan], [0.5, np.nan, 0.7]) == pytest.approx([200 / 3, np.nan, np.nan], nan_ok=True)
    assert np.isnan(parts_of([0.0, 0.0, np.nan], [0.0, 0.0, 1.0])).all()  # where both means are 0


_values = st.lists(
    st.tuples(*[st.one_of(st.just(np.nan), st.floats(0, 1, allow_subnormal=False))] * 2), min_size=1, max_size=30
)


@settings(max_examples=60)
@given(_values)
def test_parts_add_up_to_the_delta_of_the_means_over_queries_with_both_sides_and_turn_with_them(pairs) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    both = [(x, y) for x, y in pairs if x == x and y == y]
    means = np.mean([x for x, _ in both] or [0]), np.mean([y for _, y in both] or [0])
    each = parts(a, b)
    np.testing.assert_array_equal(each, -parts(b, a))
    if sum(means) == 0:
        assert np.isnan(each).all()
    else:
        assert np.nansum(each) == pytest.approx(200 * (means[0] - means[1]) / (means[0] + means[1]), abs=1e-9)


@pytest.mark.parametrize(
    ("run", "name", "a", "b", "message"),
    [
        ("third", "nDCG@1", "human", "llm", "unknown run 'third'"),
        ("first", "nDCG@2", "human", "llm", "unknown measure 'nDCG@2'"),
        ("first", "nDCG@1", "people", "llm", "unknown group 'people'"),
        ("first", "nDCG@1", "human", "bot", "unknown group 'bot'"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(run: str, name: str, a: str, b: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        contributions(small(), run, name, a, b)
    assert "valid: " in str(error.value)

"""Who belongs to which group, which groups are compared, and which are twins."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.groups import Groups, are_twins, choose_pairs, grouping, twin_rows
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from tests.toy import collection_of, toy


def documents(column: str, labels: Sequence[Any]) -> Collection:
    """One document a label, in a column of that name."""
    docs = [{"id": f"d{i}", "text": "t", column: label} for i, label in enumerate(labels)]
    return collection_of(docs, {"q": "x"}, {"q": {"d0": 1}})


def versions(*rows: tuple[str, str, str]) -> Collection:
    """Documents as (id, source, origin)."""
    docs = [{"id": i, "text": "t", "source": s, "origin": o} for i, s, o in rows]
    return collection_of(docs, {"q": "x", "r": "y"}, {"q": {rows[0][0]: 1}})


class TestGrouping:
    def test_sources_stand_with_the_human_one_first(self) -> None:
        found = grouping(documents("source", ["llm", "human", "claude", "llm"]), "source")
        assert found.names == ("human", "claude", "llm")
        assert found.code.tolist() == [2, 0, 1, 2]

    def test_other_columns_stand_in_alphabetical_order(self) -> None:
        found = grouping(documents("kind", ["z", "human", "a"]), "kind")
        assert found.names == ("a", "human", "z")
        assert found.by == "kind"

    @pytest.mark.parametrize(
        ("labels", "names", "code"),
        [
            ([True, False, True], ("false", "true"), [1, 0, 1]),
            ([2020, 1999, 2020], ("1999", "2020"), [1, 0, 1]),
            (["b", None, "a"], ("a", "b"), [1, -1, 0]),
            ([True, None, False], ("false", "true"), [1, -1, 0]),
        ],
    )
    def test_any_kind_of_label(self, labels: list[Any], names: tuple[str, ...], code: list[int]) -> None:
        found = grouping(documents("kind", labels), "kind")
        assert found.names == names
        assert found.code.tolist() == code
        assert found.unlabelled == code.count(-1)

    def test_none_makes_no_groups(self) -> None:
        found = grouping(toy(), None)
        assert (found.by, found.names, found.unlabelled) == (None, (), 0)
        assert found.code.tolist() == [-1] * 6

    def test_fifty_groups_are_enough(self) -> None:
        assert len(grouping(documents("kind", [f"g{i:02}" for i in range(50)]), "kind").names) == 50

    @pytest.mark.parametrize(
        ("by", "labels", "message"),
        [
            ("source", ["human", "human"], "nothing to compare: only source 'human'"),
            ("gender", ["f", None], "nothing to compare: only gender 'f'"),
            ("kind", [f"g{i}" for i in range(51)], "column 'kind' makes 51 groups; expected at most 50"),
            ("kind", ["all", "some"], "column 'kind' has a group called 'all', the name of the row without grouping"),
            ("kind", [b'{"a": 1}', b"[]"], "column 'kind' holds raw JSON; group by strings, numbers or truth values"),
        ],
    )
    def test_what_cannot_be_grouped(self, by: str, labels: list[Any], message: str) -> None:
        with pytest.raises(UserError) as caught:
            grouping(documents(by, labels), by)
        assert str(caught.value).startswith(message)

    def test_no_documents(self) -> None:
        empty = Collection(pl.DataFrame(schema={"id": pl.String, "text": pl.String}), toy().queries, toy().qrels)
        with pytest.raises(UserError, match="nothing to compare: no source"):
            grouping(empty, "source")

    def test_an_unknown_column(self) -> None:
        with pytest.raises(UserError) as caught:
            grouping(documents("gender", ["f", "m"]), "gendre")
        assert str(caught.value) == (
            "unknown column to group by 'gendre'; did you mean 'gender'? (valid: source, gender)"
        )

    @pytest.mark.parametrize("by", ["id", "text", "title", "origin"])
    def test_columns_that_name_single_documents(self, by: str) -> None:
        with pytest.raises(UserError, match=f"unknown column to group by '{by}'"):
            grouping(toy(), by)


class TestPairs:
    GROUPS = Groups("kind", ("a", "b", "c"), np.zeros(3, dtype=np.int64))

    def test_all_by_default(self) -> None:
        assert choose_pairs(self.GROUPS, None) == (("a", "b"), ("a", "c"), ("b", "c"))

    def test_named_ones_keep_their_order_and_sides(self) -> None:
        assert choose_pairs(self.GROUPS, iter([("c", "a"), ("b", "c")])) == (("c", "a"), ("b", "c"))

    @pytest.mark.parametrize(
        ("pairs", "message"),
        [
            ([("a", "d")], r"unknown kind 'd' \(valid: a, b, c\)"),
            ([("a", "a")], "nothing to compare: pair 'a','a' names one group twice"),
            ([("a", "b"), ("a", "b")], "pair 'a','b' is given twice"),
            ([("a", "b"), ("b", "a")], "pair 'a','b' is given twice"),
        ],
    )
    def test_what_cannot_be_compared(self, pairs: list[tuple[str, str]], message: str) -> None:
        with pytest.raises(UserError, match=message):
            choose_pairs(self.GROUPS, pairs)


class TestTwinRows:
    def test_documents_that_share_an_origin(self) -> None:
        collection = toy()
        assert twin_rows(collection, grouping(collection, "source"), ("human", "llm")).tolist() == [
            [0, 3],
            [1, 4],
            [2, 5],
        ]

    def test_the_named_side_comes_first(self) -> None:
        collection = toy()
        assert twin_rows(collection, grouping(collection, "source"), ("llm", "human")).tolist() == [
            [3, 0],
            [4, 1],
            [5, 2],
        ]

    def test_every_combination_of_versions_and_no_lone_document(self) -> None:
        collection = versions(
            ("h1", "human", "h1"),
            ("x1", "llm", "h1"),
            ("x2", "llm", "h1"),
            ("h2", "human", "h2"),
            ("x3", "llm", "gone"),
        )
        assert twin_rows(collection, grouping(collection, "source"), ("human", "llm")).tolist() == [[0, 1], [0, 2]]

    def test_no_twins_at_all(self) -> None:
        collection = documents("kind", ["a", "b"])
        assert twin_rows(collection, grouping(collection, "kind"), ("a", "b")).shape == (0, 2)


def level(judged: list[tuple[int, int, int]], pair: tuple[str, str] = ("human", "llm")) -> bool:
    """Whether human h1, h2, h3 and llm l1, l2 (rows 0-2, 3-4) and claude c1 (5) are twins under (query, row, grade)."""
    collection = versions(
        ("h1", "human", "h1"), ("h2", "human", "h2"), ("h3", "human", "h3"),
        ("l1", "llm", "h1"), ("l2", "llm", "h2"), ("c1", "claude", "h1"),
    )  # fmt: skip
    frame = pl.DataFrame(judged, schema={"query": pl.Int64, "row": pl.Int64, "grade": pl.Float64}, orient="row")
    return are_twins(collection, grouping(collection, "source"), pair, frame)


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        ([(0, 0, 1), (0, 3, 1)], True),
        ([(0, 0, 1), (0, 3, 1), (1, 1, 2), (1, 4, 2)], True),
        ([(0, 0, 1), (0, 3, 2)], False),  # other grades
        ([(0, 0, 1), (0, 3, 1), (0, 2, 1)], False),  # h3 has no twin
        ([(0, 0, 1), (1, 3, 1)], False),  # in different queries
        ([(0, 0, 1), (0, 4, 1)], False),  # of different origins
        ([(0, 0, 1)], False),
        ([(0, 0, 1), (0, 3, 1), (0, 5, 2)], True),  # a third group is not asked
    ],
)
def test_twins_have_the_same_grade_on_both_sides_of_every_query(
    judged: list[tuple[int, int, int]], expected: bool
) -> None:
    assert level(judged) is expected


def test_two_relevant_versions_on_one_side_are_not_twins() -> None:
    collection = versions(("h1", "human", "h1"), ("l1", "llm", "h1"), ("l2", "llm", "h1"))
    judged = pl.DataFrame({"query": [0, 0, 0], "row": [0, 1, 2], "grade": [1.0, 1.0, 1.0]})
    assert not are_twins(collection, grouping(collection, "source"), ("human", "llm"), judged)

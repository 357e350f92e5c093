"""Who belongs to which group, which groups are compared, and which are twins."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Collection, Run, UserError, audit, controls
from ranktilt.auditing.breakdown import rank_shares
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.grouping.pairs import are_twins, choose_pairs, grouped_pairs, twin_rows
from ranktilt.auditing.groups import Groups
from ranktilt.data.labels.label_remarks import parts_of_numbers
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.reporting.reload import reload
from ranktilt.reporting.sentences.notes import note_sentence, note_sentences
from tests.refusals import refused
from tests.toy import collection_of, toy


def documents(column: str, labels: Sequence[Any]) -> Collection:
    """One document a label, in a column of that name."""
    docs = [{"id": f"d{i}", "text": "t", column: label} for i, label in enumerate(labels)]
    return collection_of(docs, {"q": "x"}, {"q": {"d0": 1}})


def versions(*rows: tuple[str, str, str]) -> Collection:
    """Documents as (id, source, origin)."""
    docs = [{"id": i, "text": "t", "source": s, "origin": o} for i, s, o in rows]
    return collection_of(docs, {"q": "x", "r": "y"}, {"q": {rows[0][0]: 1}})


@pytest.mark.parametrize(
    ("column", "labels", "names", "code"),
    [
        (
            "source",
            ["llm", "human", "claude", "llm"],
            ("human", "claude", "llm"),
            [2, 0, 1, 2],
        ),  # human text first
        ("kind", [100, 9, 100], ("kind 9", "kind 100"), [1, 0, 1]),
        ("kind", ["b", None, "a", " "], ("a", "b"), [1, -1, 0, -1]),
        ("kind", [True, None, False], ("kind false", "kind true"), [1, -1, 0]),
    ],
)
def test_any_kind_of_label(
    column: str, labels: list[Any], names: tuple[str, ...], code: list[int]
) -> None:
    groups = grouping(documents(column, labels), column)
    assert (groups.names, groups.code.tolist()) == (names, code)
    assert groups.unlabelled == code.count(-1)


COLUMNS = "unknown column to group by"
NUMBERS = "unknown column of numbers to group by"
GROUPED: list[tuple[str, list[Any], str, str]] = [
    (
        "source",
        ["human"] * 2,
        "source",
        "nothing to compare: only source 'human'; expected two sources or more, such ",
    ),
    (
        "factor:words",
        ["low", "high"],
        "source",
        "nothing to compare: no source; expected two sources or "
        "more, such as human and llm; its versions differ in factors: ranktilt explain DIR -r bm25 "
        "--by-factor",
    ),
    (
        "gender",
        ["f", None],
        "gender",
        "nothing to compare: only gender 'f'; expected two groups of gender or more; 1 "
        "document has none",
    ),
    (
        "kind",
        [f"k{n}" for n in range(51)],
        "kind",
        "column 'kind' makes 51 groups; expected at most 50: name some to compare (--pair A,B)",
    ),
    (
        "kind",
        [*range(51)],
        "kind",
        "column 'kind' makes 51 groups; expected at most 50: numbers from 0 to 50; --by "
        "kind:2 makes two bins, --by kind:.5 splits them there",
    ),
    (
        "kind",
        [f"{2000 + n}" for n in range(51)],
        "kind",
        "column 'kind' makes 51 groups; expected at most 50: numbers "
        "from 2000 to 2050; --by kind:2 makes two bins, --by kind:2025. splits them there",
    ),
    (
        "kind",
        [1, 2],
        "kind:7.5",
        "kind:7.5: every kind is below 7.5 (highest: 2); expected values on both sides",
    ),
    (
        "kind",
        [1.5, 2],
        "kind:1.5",
        "kind:1.5: every kind is at or above 1.5 (lowest: 1.5); expected values on both",
    ),
    (
        "kind",
        ["all", "some"],
        "kind",
        "column 'kind' has a group called 'all', which is reserved for all",
    ),
    ("kind", [b'{"a": 1}', b"[]"], "kind", f"{COLUMNS} 'kind'"),
    (
        "kind",
        ["f", "m"],
        "knid",
        f"{COLUMNS} 'knid'; did you mean 'kind'? (valid: source, kind, length:3)",
    ),
    *[("kind", ["f", "m"], by, f"{COLUMNS} '{by}'") for by in ("id", "origin")],
    ("kind", [1, 2], "length", f"{COLUMNS} 'length'; did you mean 'length:3'?"),
    ("kind", ["b", "a"], "kind:3", f"{NUMBERS} 'kind' (valid: length)"),
    ("kind", ["b", "a"], "kind:.5", f"{NUMBERS} 'kind' (valid: length)"),
    ("kind", [1, 2], "king:2", f"{NUMBERS} 'king'; did you mean 'kind'? (valid: kind, length)"),
    ("kind", [7, 7], "kind:2", "kind:2: too few distinct values of kind for 2 bins: 1"),
    ("kind", [1, 2, 3], "kind:5", "kind:5: too few distinct values of kind for 5 bins: 3"),
    ("kind", [1, 2, 2, 2], "kind:2", "kind:2: too few distinct values of kind for 2 bins: 2"),
    *[
        (
            "kind",
            [1, 2, 3],
            f"length:{bins}",
            f"length:{bins}: expected 2 to 10 bins, such as length:3, or a value with a decimal "
            f"point to split at, such as length:.5; got {bins!r}",
        )
        for bins in ("x", "1", "11", ".", "", "\u0663")
    ],
]


@pytest.mark.parametrize(("column", "labels", "by", "message"), GROUPED)
def test_grouping_refusals(column: str, labels: list[Any], by: str, message: str) -> None:
    with refused(f"{message}…"):
        grouping(documents(column, labels), by)


def test_a_file_of_labels_is_named_where_it_makes_no_groups() -> None:
    labelled = replace(documents("gender", ["f", "f"]), spec={"labels": "labels.tsv"})
    with refused(
        "labels.tsv: nothing to compare: only gender 'f'; expected two groups of gender or more; "
        "label all others with --rest LABEL"
    ):
        grouping(labelled, "gender")


def test_pairs_are_all_or_the_named_ones_in_their_order() -> None:
    groups = Groups(by="kind", names=("a", "b", "c"), code=np.zeros(3, dtype=np.int64))
    assert choose_pairs(groups, None) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert choose_pairs(groups, iter([("c", "a"), ("b", "c")])) == (("c", "a"), ("b", "c"))
    for pairs, message in (
        ([("a", "d")], "unknown kind 'd' (valid: a, b, c)"),
        ([("a", "a")], "nothing to compare: pair 'a','a' names one group twice"),
        ([("a", "b"), ("b", "a")], "pair 'a','b' is given twice"),
    ):
        with refused(message):
            choose_pairs(groups, pairs)
    many = grouping(documents("year", list(range(2000, 2013))), "year")
    with refused(
        "year makes 13 groups, 78 pairs; all pairs are compared only up to 12 groups: numbers from "
        "2000 to 2012; --by "
        "year:2 makes two bins, --by year:2006. splits them there"
    ):
        choose_pairs(many, None)
    assert choose_pairs(many, [("2000", "year 2012")]) == (("year 2000", "year 2012"),)


def test_twins_are_all_combinations_of_versions_inside_the_pool() -> None:
    collection = versions(
        ("h1", "human", "h1"),
        ("x1", "llm", "h1"),
        ("x2", "llm", "h1"),
        ("h2", "human", "h2"),
        ("x3", "llm", "gone"),
    )
    assert twin_rows(collection, grouping(collection, "source"), ("human", "llm")).tolist() == [
        [0, 1],
        [0, 2],
    ]
    assert twin_rows(toy(), grouping(toy(), "source"), ("human", "llm")).tolist() == [
        [0, 3],
        [1, 4],
        [2, 5],
    ]
    rows = (
        toy()
        .docs.filter(pl.col("id") != "d3-llm")
        .with_columns(pool=pl.col("origin") != "d3-human")
    )
    lone = grouping(
        Collection(rows, toy().queries, toy().qrels.filter(pl.col("doc_id") != "d3-llm")), "source"
    )
    assert lone.code.tolist() == [0, 0, -1, 1, 1]
    assert (lone.outside, lone.unlabelled) == (1, 0)
    docs = toy().docs.with_columns(pool=pl.when(pl.col("id") == "d3-human").then(False))
    both = grouping(Collection(docs, toy().queries, toy().qrels), "source")
    assert (both.outside, both.code.tolist()) == (2, [0, 0, -1, 1, 1, -1])


class TestBins:
    @pytest.mark.parametrize(
        ("words", "names", "code"),
        [
            (
                [9, 1, 5, 2, 7, 3],
                ("1 to 2 words", "3 to 5 words", "7 to 9 words"),
                [2, 0, 1, 0, 2, 1],
            ),
            ([0, 4, 0, 6], ("4 words", "6 words"), [-1, 0, -1, 1]),
        ],
    )
    def test_bins_of_length(
        self, words: list[int], names: tuple[str, ...], code: list[int]
    ) -> None:
        """A title does not count, and documents without text have no group."""
        docs = [
            {"id": f"d{i}", "text": " ".join(["word"] * n), "title": "a long title"}
            for i, n in enumerate(words)
        ]
        groups = grouping(collection_of(docs, {"q": "x"}, {}), f"length:{len(names)}")
        assert (groups.by, groups.names, groups.code.tolist()) == ("length", names, code)
        assert groups.unlabelled == code.count(-1)

    def test_bins_rise_but_a_column_of_that_name_comes_first(
        self,
    ) -> None:
        groups = grouping(documents("year", [2020, 1999, None, 900, 2001]), "year:4")
        assert (groups.by, groups.names) == (
            "year",
            tuple(f"year {n}" for n in (900, 1999, 2001, 2020)),
        )
        assert groups.code.tolist() == [3, 1, -1, 0, 2]
        assert groups.unlabelled == 1
        assert grouping(documents("size:2", ["s", "m"]), "size:2").names == ("m", "s")
        assert grouping(documents("length", [30, 10]), "length:2").names == (
            "length 10",
            "length 30",
        )
        assert grouping(documents("a:b", [30, 10]), "a:b:2").names == ("a:b 10", "a:b 30")

    @pytest.mark.parametrize(
        ("values", "names"),
        [
            ([0.5, -1.25, 2.0, 1e-3], ("-1.25 to 0.001", "0.5 to 2")),
            ([1 / 3, 0.25, 2 / 3, 12345.678], ("0.25 to 0.3333", "0.6667 to 12346")),
            ([1.0, 1.000001, 1.000002, 1.000003], ("1 to 1.000001", "1.000002 to 1.000003")),
            ([-5, -3, 4_000_000, 10], ("-5 to -3", "10 to 4000000")),
        ],
    )
    def test_names_are_short_and_tell_bins_apart(
        self, values: list[Any], names: tuple[str, ...]
    ) -> None:
        assert grouping(documents("x", values), "x:2").names == tuple(f"x {name}" for name in names)

    @given(st.lists(st.integers(-20, 20) | st.none(), min_size=1, max_size=40), st.integers(2, 10))
    def test_bins_are_in_order_and_none_is_empty(self, values: list[int | None], bins: int) -> None:
        docs = [{"id": f"d{i}", "text": "t", "x": value} for i, value in enumerate([*values, 99])]
        collection = collection_of(docs, {"q": "x"}, {})
        try:
            groups = grouping(collection, f"x:{bins}")
        except UserError:
            return
        placed = sorted(
            (v, g)
            for v, g in zip([*values, 99], groups.code.tolist(), strict=True)
            if v is not None
        )
        assert [g for _, g in placed] == sorted(g for _, g in placed)
        assert {g for _, g in placed} == set(range(bins))
        assert len(groups.names) == len(set(groups.names)) == bins
        assert len({v for v, _ in placed}) == len(set(placed))
        assert not any("," in name for name in groups.names)


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        ([(0, 0, 1), (0, 3, 1), (1, 1, 2), (1, 4, 2)], True),
        ([(0, 0, 1), (0, 3, 2)], False),  # other grades
        ([(0, 0, 1), (0, 3, 1), (0, 2, 1)], False),  # h3 has no twin
        ([(0, 0, 1), (1, 3, 1)], False),  # in different queries
        ([(0, 0, 1), (0, 4, 1)], False),  # of different origins
        ([(0, 0, 1)], False),
        ([(0, 0, 1), (0, 3, 1), (0, 5, 2)], True),  # a third group is not asked
        ([(0, 0, 1), (0, 3, 1), (0, 6, 1)], False),  # h1 has two twins
    ],
)
def test_twins_have_the_same_grade_on_both_sides_of_a_query(
    judged: list[tuple[int, int, int]], expected: bool
) -> None:
    """Rows are human h1, h2, h3, llm l1, l2, claude c1 and llm m1."""
    collection = versions(
        ("h1", "human", "h1"),
        ("h2", "human", "h2"),
        ("h3", "human", "h3"),
        ("l1", "llm", "h1"),
        ("l2", "llm", "h2"),
        ("c1", "claude", "h1"),
        ("m1", "llm", "h1"),
    )
    frame = pl.DataFrame(
        judged, schema={"query": pl.Int64, "row": pl.Int64, "grade": pl.Float64}, orient="row"
    )
    assert (
        are_twins(collection, grouping(collection, "source"), ("human", "llm"), frame) is expected
    )


class TestManyGroups:
    """A named pair is compared whatever the number of other groups: these become one."""

    @pytest.fixture
    def collection(self) -> Collection:
        rng = np.random.default_rng(4)
        kinds = [f"g{n:02}" for n in range(60)] + ["a", "b"] * 40 + [None] * 9
        docs = [
            {
                "id": f"d{n}",
                "text": f"word{n % 7} word{n % 5}",
                "kind": kind,
                "origin": f"d{n - n % 2}",
            }
            for n, kind in enumerate(kinds)
        ]
        qrels = {
            f"q{n}": {f"d{d}": 1 + d % 2 for d in rng.choice(140, 30, replace=False)}
            for n in range(8)
        }
        return collection_of(docs, {f"q{n}": f"word{n % 7} word{n % 3}" for n in range(8)}, qrels)

    @pytest.fixture
    def runs(self, collection: Collection) -> list[Run]:
        return [BM25().rank(collection)]

    def test_others_change_none(
        self, collection: Collection, runs: list[Run], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pairs = [("a", "b"), ("b", "g07")]
        few = audit(
            collection, runs, ["nDCG@5"], card=True, by="kind", pairs=iter(pairs), resamples=100
        )
        assert few.groups == ("all", "a", "b", "g07", "59 other groups")
        monkeypatch.setattr("ranktilt.auditing.grouping.labels.MOST_GROUPS", 99)
        unseen = replace(collection)  # a collection keeps the groups that were made of it
        every = audit(unseen, runs, ["nDCG@5"], card=True, by="kind", pairs=pairs, resamples=100)
        assert len(every.groups) == 63
        assert repr(few.tilts) == repr(every.tilts)
        assert repr(few.card) == repr(every.card)
        assert note_sentences(few.notes) == note_sentences(every.notes)
        at = [every.groups.index(name) for name in few.groups[:-1]]
        np.testing.assert_array_equal(few.values[:, :, :-1], every.values[:, :, at])

    def test_what_is_made_of_the_audit_finds_the_same_groups(
        self, collection: Collection, runs: list[Run]
    ) -> None:
        result = audit(collection, runs, ["nDCG@5"], by="kind", pairs=[("a", "b")], resamples=100)
        assert reload(result, collection=collection, runs=runs[:1]).runs == (runs[0],)
        assert rank_shares(collection, runs[0], result, depth=3).groups == result.groups[1:]
        controlled = controls(collection, [BM25()], runs, result, which=["near-identical"])
        assert [(row.a, row.b) for row in controlled.controls] == [("a", "b")] * 2

    @pytest.mark.parametrize(
        ("pairs", "message"),
        [
            (
                [("a", "g77")],
                (
                    r"^unknown kind 'g77'; did you mean 'g\d\d'\? \(valid: g\d\d, .*, a, 61 other "
                    r"groups\)$"
                ),
            ),
            ([("x", "y")], r"^unknown kind 'x' \(valid: 62 other groups\)$"),
            (
                None,
                (
                    r"^column 'kind' makes 62 groups; expected at most 50: name some to compare "
                    r"\(--pair A,B\)$"
                ),
            ),
        ],
    )
    def test_pair_refusals(
        self, collection: Collection, runs: list[Run], pairs: Any, message: str
    ) -> None:
        with pytest.raises(UserError, match=message):
            audit(collection, runs, ["nDCG@5"], by="kind", pairs=pairs)


def test_a_value_may_name_several_groups() -> None:
    """Each combination is a kind of its own, in equal parts of its groups; beside the rest it is of
    the group kept.
    """
    values = ["a", "|", "a| b", None, "b|a", "c|c", " ", "a|b|c"]
    every = [(f"d{n}", value) for n, value in enumerate(values)]
    docs = [
        {"id": name, "text": "x", "source": "s", "origin": name, "kind": value}
        for name, value in every
    ]
    collection = collection_of(docs, {"q": "x"}, {})
    groups = grouping(collection, "kind")
    assert groups.names == ("a", "b", "c")
    assert groups.code.tolist() == [0, -1, -1, -1, -1, 2, -1, -1]
    assert (groups.unlabelled, groups.several) == (3, 3)
    assert groups.kind.tolist() == [0, 5, 3, 5, 3, 2, 5, 4]
    assert groups.parts[3].tolist() == [0.5, 0.5, 0, 0]
    assert groups.parts[5].tolist() == [0, 0, 0, 1]
    rest = grouping(collection, "kind", ["b", "rest"])
    assert rest.names == ("b", "rest")
    assert rest.code.tolist() == [1, -1, 0, -1, 0, 1, -1, 0]
    with_rest = grouping(documents("kind", ["a", "b", "a|b"]), "kind", ["b", "rest"])
    assert (with_rest.names, with_rest.code.tolist()) == (("b", "rest"), [1, 0, 0])


REGIONS = ["Europe", "Asia", "Europe|Asia", "Africa|Asia", "Africa", None, "Oceania"]
OVERLAP = "region 'Asia' is part of 'Asia|Europe' and 'Africa|Asia'; name sides that do not overlap"
ALONE = "'non-Europe' is every region except 'Europe'; compare it only with 'Europe' or 'rest'"
MEMBERS = "expected a group on each side of every |, such as Europe|Asia; got "


class TestUnions:
    """Sides made of groups; a document of both is on the side that is named, beside all others."""

    @pytest.mark.parametrize(
        ("pair", "names", "code"),
        [
            (("Europe|Asia", "rest"), ("Asia|Europe", "rest"), [0, 0, 0, 0, 1, -1, 1]),
            ((" Asia | Europe|Asia", "rest"), ("Asia|Europe", "rest"), [0, 0, 0, 0, 1, -1, 1]),
            (("non-Europe", "rest"), ("Europe", "non-Europe"), [0, 1, 0, 1, 1, -1, 1]),
            (
                ("non-Europe|Asia", "Asia|Europe"),
                ("Asia|Europe", "non-Asia|Europe"),
                [0, 0, 0, 0, 1, -1, 1],
            ),
            (
                ("Europe|Asia", "Africa"),
                ("Africa", "Asia|Europe", "Oceania"),
                [1, 1, 1, -1, 0, -1, 2],
            ),
        ],
    )
    def test_sides(self, pair: tuple[str, str], names: tuple[str, ...], code: list[int]) -> None:
        collection = documents("region", REGIONS)
        groups, chosen = grouped_pairs(collection, "region", [pair])
        assert groups.names == names
        assert groups.code.tolist() == code
        assert set(chosen[0]) <= set(names)
        again = grouping(
            collection, "region", ("all", *groups.names)
        )  # as an audit is opened again
        assert (again.names, again.code.tolist()) == (names, code)

    def test_sides_keep_order_and_a_group_called_so_comes_first(
        self,
    ) -> None:
        collection = documents("region", REGIONS)
        assert grouped_pairs(collection, "region", [("non-Europe", "rest")])[1] == (
            ("non-Europe", "Europe"),
        )
        assert grouped_pairs(collection, "region", [("rest", "Europe|Asia")])[1] == (
            ("rest", "Asia|Europe"),
        )
        groups = grouping(
            documents("region", ["non-Europe", "Europe", "Asia"]), "region", ["non-Europe", "rest"]
        )
        assert groups.names == ("non-Europe", "rest")
        assert groups.code.tolist() == [0, 1, 1]
        with pytest.raises(UserError, match=r"^'a\|b': sources are not joined"):
            grouped_pairs(documents("source", ["human", "a", "b"]), "source", [("human", "a|b")])

    @pytest.mark.parametrize(
        ("pairs", "message"),
        [
            (
                [("Europe|Asai", "rest")],
                "unknown region 'Asai'; did you mean 'Asia'? (valid: Africa, Asia, Europe, Oc",
            ),
            ([("Europe|", "rest")], f"{MEMBERS}'Europe|'"),
            ([("non-Europ", "rest")], "unknown region 'non-Europ'; did you mean 'Europe'?"),
            ([("Europe|Asia", "Asia|Africa")], OVERLAP),
            ([("non-Europe", "Africa")], ALONE),
            ([("non-Europe", "rest"), ("Asia", "Africa")], ALONE),
            (
                [("Africa|Asia|Europe|Oceania", "rest")],
                "nothing to compare: 'Africa|Asia|Europe|Oceania' is every reg",
            ),
        ],
    )
    def test_side_refusals(self, pairs: list[tuple[str, str]], message: str) -> None:
        with refused(f"{message}…"):
            grouped_pairs(documents("region", REGIONS), "region", pairs)


@pytest.mark.parametrize(
    ("by", "labels", "names", "code"),
    [
        ("kind:.5", [0.1, 0.5, None, 0.9], ("below .5", ".5 and above"), [0, 1, -1, 1]),
        ("kind:0.5", ["0.49", "nan", "1", ".5"], ("below .5", ".5 and above"), [0, -1, 1, 1]),
        ("kind:2006.", [2005, 2006, 2007, 1999], ("below 2006", "2006 and above"), [0, 1, 1, 0]),
        ("kind:-1", [-2, -1, 0, 1], ("below -1", "-1 and above"), [0, 1, 1, 1]),
        ("kind:2", ["1", "2", "3", "4"], ("1 to 2", "3 to 4"), [0, 0, 1, 1]),
        ("source:.5", ["0.2", "0.7", "0.2", "1.0"], ("below .5", ".5 and above"), [0, 1, 0, 1]),
    ],
)
def test_value_parts_numbers_in_two(
    by: str, labels: list[Any], names: tuple[str, str], code: list[int]
) -> None:
    column = by.partition(":")[0]
    groups = grouping(documents(column, labels), by)
    called = tuple(f"{column} {name}" for name in names)
    assert (groups.by, groups.names, groups.code.tolist()) == (column, called, code)


def test_missing_values_are_no_group_and_words_are_said() -> None:
    groups = grouping(
        documents("kind", ["a", "nan", "NaN", "b", "NA", None, "<NA>", "None"]), "kind"
    )
    assert groups.names == ("NA", "None", "a", "b")
    assert groups.code.tolist() == [2, -1, -1, 3, 0, -1, -1, 1]
    assert list(note_sentences(groups.remarks)) == [
        "warning: kind 'NA' is read as a group: 1 document has it",
        "warning: kind 'None' is read as a group: 1 document has it",
    ]
    assert grouping(documents("kind", ["a|nan", "b", "nan|nan"]), "kind").code.tolist() == [
        0,
        1,
        -1,
    ]
    assert grouping(documents("kind", [1.5, float("nan"), 2.5]), "kind").code.tolist() == [0, -1, 1]


def test_labels_that_differ_in_spelling_are_said() -> None:
    groups = grouping(documents("source", ["ai", "AI", "human", "human ", "Ai"]), "source")
    assert set(groups.names) == {"ai", "AI", "Ai", "human", "human "}
    assert {note_sentence(replace(note, has_remedy=True)) for note in groups.remarks} == {
        "warning: source 'ai', 'AI' and 'Ai' differ only in case, and are separate groups; "
        "to merge them: --name AI=ai --name Ai=ai",
        "warning: source 'human' and 'human ' differ only in blanks, and are separate groups; "
        "to merge them: --name 'human =human'",
    }


def test_fractions_that_are_groups_are_said_to_be_numbers() -> None:
    [remark] = grouping(documents("score", [0.1, 0.4, 0.9]), "score").remarks
    assert note_sentence(remark) == "score: each of 3 values is a group"
    assert note_sentence(replace(remark, has_remedy=True)).endswith(
        "; numbers from .1 to .9; --by score:2 makes two bins, --by score:.5 splits them there"
    )
    assert grouping(documents("grade", [1, 2, 3]), "grade").remarks == ()


def test_threshold_needs_known_numbers() -> None:
    without_texts = collection_of([{"id": "d0", "text": ""}], {"q": "x"}, {})
    with refused("length:5.: no value of length is known; expected values on both sides of 5"):
        grouping(without_texts, "length:5.")


def test_infinite_numbers_are_in_the_last_bin() -> None:
    groups = grouping(documents("score", ["1", "2", "3", "inf"]), "score:2")
    assert groups.names == ("score 1 to 2", "score 3 to inf")
    assert groups.code.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(("low", "middle"), [(0.49, 0.5), (0.5, 0.75)])
def test_number_groups_split_at_half(low: float, middle: float) -> None:
    parts = parts_of_numbers(pl.Series([low, 0.75, 0.9]))
    assert parts is not None
    assert parts.parted_at == middle


def test_joined_sources_are_refused_with_what_to_do() -> None:
    collection = documents("source", ["x", "y", "z"])
    with refused("'x|y': sources are not joined; give them one name in labels (--groups FILE …"):
        grouped_pairs(collection, "source", [("x|y", "z")])
    with refused(
        "'non-x': sources are not joined; to compare one with all others, type --pair x,rest"
    ):
        grouped_pairs(collection, "source", [("non-x", "x")])
    with refused("unknown source 'x|w'…"):
        grouped_pairs(collection, "source", [("x|w", "z")])
    _, pairs = grouped_pairs(documents("kind", ["x", "y", "z"]), "kind", [("x|y", "z")])
    assert pairs == (("x|y", "z"),)

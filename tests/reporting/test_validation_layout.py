"""A validation as tables of words: every number where it belongs, rounded once."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.probes.distribution import Cosines, Distribution
from ranktilt.probes.statistics import CollectionStatistics, QueryStatistics, SourceStatistics
from ranktilt.reporting.validation_layout import PICTURE, Grid, bars, grids, legend
from tests.probes.validations import toy_validation


def by_title(*names: str) -> dict[str, Grid]:
    return {grid.title: grid for grid in grids(toy_validation(names or ("human", "llm")))}


def test_the_parts_in_the_order_of_the_paper() -> None:
    assert list(by_title()) == [
        "Collection",
        "Terms shared with human",
        "Cosine of dense:minilm, title+text",
        "Effectiveness on each side alone, nDCG@10",
    ]


def test_what_is_missing_is_left_out() -> None:
    assert list(by_title("human")) == ["Collection"]
    found = replace(toy_validation(), similarities=(), effectiveness=())
    assert [grid.title for grid in grids(found)] == ["Collection", "Terms shared with human"]


def test_every_row_has_a_cell_a_column_or_is_a_heading() -> None:
    for grid in grids(toy_validation(("human", "llm", "gpt"))):
        assert {len(row) for row in grid.rows} <= {1, len(grid.titles)}
        assert set(grid.spare) <= set(grid.titles)


def test_the_collection() -> None:
    grid = by_title()["Collection"]
    assert grid.titles == ("", "documents", "words", "quartiles", "queries", "relevant each")
    assert grid.rows[0] == ("human", "40", "20.50", "19  20  22", "300", "1.25")
    assert grid.below == (
        "1,109 queries in all, 12.38 words on average; 300 queries judged (test), 12.50 words on average",
    )


def test_empty_texts_and_undefined_means_are_said() -> None:
    nothing = SourceStatistics("llm", 1234, 1, 3.0, (1.0, 2.0, 3.0), 0, math.nan)
    counts = CollectionStatistics((nothing,), (QueryStatistics("all", 0, math.nan),), None)
    (grid,) = grids(replace(toy_validation(("human",)), statistics=counts))
    assert grid.rows == (("llm", "1,234", "3.00", "1  2  3", "0", "–"),)
    assert grid.below == ("0 queries in all", "llm: 1 text without a word")


def test_judgments_without_a_name() -> None:
    counts = CollectionStatistics((), (QueryStatistics("judged", 1, 2.0),), None)
    (grid,) = grids(replace(toy_validation(("human",)), statistics=counts))
    assert grid.below == ("1 query judged, 2.00 words on average",)


def test_terms_of_each_source_below_its_heading() -> None:
    grid = by_title("human", "llm", "gpt")["Terms shared with human"]
    assert [row[0] for row in grid.rows] == [
        "llm", "  Jaccard", "  overlap", "gpt", "  Jaccard", "  overlap",
    ]  # fmt: skip
    jaccard = toy_validation().overlaps[0].jaccard
    assert grid.rows[1][1:3] == ("39", f"{jaccard.mean:.2f}")


def test_vectors_beside_their_baseline() -> None:
    grid = by_title()["Cosine of dense:minilm, title+text"]
    near = toy_validation().similarities[0]
    assert [row[0] for row in grid.rows] == ["llm", "  twins", "  other pairs"]
    assert grid.rows[1][1:3] == ("40", f"{near.cosine.mean:.2f}")
    assert (grid.rows[1][4], grid.rows[2][4]) == ("25.0 %", "0.0 %")
    assert grid.below == (
        "own twin is the nearest of all documents: 96.2 % of 80 documents, among 80",
        "telling the sources apart by their vectors: AUC 0.871 (folds 0.840 to 0.902, 40 pairs; 0.5 is chance, 1 is "
        "always)",
    )


def test_what_is_said_of_vectors_names_its_source_where_there_are_several() -> None:
    below = by_title("human", "llm", "gpt")["Cosine of dense:minilm, title+text"].below
    assert [line.partition(": ")[0] for line in below] == ["llm", "llm", "gpt", "gpt"]


def test_undefined_numbers_of_vectors_are_not_said() -> None:
    found = toy_validation()
    near = found.similarities[0]
    nothing = Cosines("other pairs", np.empty(0))
    apart = replace(near.separation, auc=math.nan, nearest=math.nan)
    grid = grids(replace(found, similarities=(replace(near, baseline=nothing, separation=apart),)))[2]
    assert grid.below == ()
    assert grid.rows[2][:5] == ("  other pairs", "0", "–", "–  –  –", "–")


def test_effectiveness() -> None:
    grid = by_title()["Effectiveness on each side alone, nDCG@10"]
    assert grid.titles[1:4] == ("human", "rewrite", "difference")
    assert [row[-1] for row in grid.rows[1:]] == [
        "equivalent within ±0.02", "different within ±0.02", "different", "inconclusive", "not tested",
    ]  # fmt: skip
    assert grid.rows[1] == (
        "  bm25", "0.322", "0.318", "+0.004", "−0.003 … +0.011", "0.524", "< .001", "±0.010", "300",
        "equivalent within ±0.02",
    )  # fmt: skip
    assert grid.rows[5][4:8] == ("– … –", "–", "–", "–")


def test_the_p_that_is_shown_is_the_corrected_one() -> None:
    row = toy_validation().effectiveness[1]
    assert (row.p_different, row.p_corrected) == (0.002, 0.008)
    assert by_title()["Effectiveness on each side alone, nDCG@10"].rows[2][5] == "0.008"


def test_several_measures_are_named_in_their_rows() -> None:
    found = toy_validation()
    other = replace(found.effectiveness[0], measure="AP@5")
    grid = grids(replace(found, effectiveness=(found.effectiveness[0], other)))[3]
    assert grid.title == "Effectiveness on each side alone"
    assert [row[0] for row in grid.rows] == ["llm", "  bm25 nDCG@10", "  bm25 AP@5"]


def test_a_long_name_of_the_reference_makes_room() -> None:
    found = toy_validation(("a reference of many words", "llm"))
    assert grids(found)[3].titles[1] == "reference"


def test_a_column_can_be_taken_away() -> None:
    grid = Grid("t", ("", "a", "b"), (("heading",), ("x", "1", "2")), ("below",), ("a", "b"))
    assert grid.without("a") == Grid("t", ("", "b"), (("heading",), ("x", "2")), ("below",), ("b",))


class TestBars:
    def test_by_hand(self) -> None:
        found = Distribution("x", np.array([0.0, 0.3, 0.3, 0.3, 0.3, 0.9, 1.0]))
        assert bars(found, 4) == "▂█ ▄"

    def test_what_lies_below_nothing_is_in_the_first_bar(self) -> None:
        assert bars(Cosines("x", np.array([-0.7, 0.8])), 2) == "██"

    def test_little_is_not_nothing(self) -> None:
        assert bars(Distribution("x", np.array([0.1] * 1000 + [0.9])), 2) == "█▁"

    def test_nothing(self) -> None:
        assert bars(Distribution("x", np.array([math.nan])), 3) == "   "

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 30))
    @settings(max_examples=40)
    def test_as_many_characters_as_asked_for_and_one_is_full(self, values: list[float], bins: int) -> None:
        drawn = bars(Distribution("x", np.array(values)), bins)
        assert len(drawn) == bins
        assert "█" in drawn
        assert sum(char != " " for char in drawn) <= len(values)


def test_the_picture_is_the_last_column_that_goes() -> None:
    for grid in grids(toy_validation())[1:3]:
        assert grid.spare[-1] == PICTURE


class TestLegend:
    def test_it_says_what_is_corrected_and_what_is_not(self) -> None:
        text = "\n".join(legend(toy_validation()))
        assert "Difference: human − rewrite," in text
        assert "paired t test (Holm over 4 tests)" in text  # one of the five rows has no p
        assert "two one-sided paired t tests against ±0.02, uncorrected: below 0.05" in text
        assert "Inconclusive is not equivalent" in text

    def test_it_speaks_only_of_what_is_printed(self) -> None:
        assert len(legend(toy_validation(("human",)))) == 1
        found = replace(toy_validation(), similarities=(), effectiveness=())
        assert [line.partition(":")[0] for line in legend(found)] == ["Words", "Terms"]

    @pytest.mark.parametrize("margin", [0.02, 0.1])
    def test_the_margin_is_the_one_that_was_asked_for(self, margin: float) -> None:
        rows = tuple(replace(row, margin=margin) for row in toy_validation().effectiveness)
        assert f"against ±{margin:g}," in "\n".join(legend(replace(toy_validation(), effectiveness=rows)))

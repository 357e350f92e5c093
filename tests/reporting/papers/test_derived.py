"""Relative Δ and ratios, computed again from what is printed beside them."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ranktilt.measures.contrast import relative_delta
from ranktilt.reporting.papers.cells import Cell
from ranktilt.reporting.papers.derived import DELTA, RATIO, SHARES, printed
from ranktilt.reporting.papers.layouts import LAYOUTS

DAI, WANG = LAYOUTS["dai-3"], LAYOUTS["wang-3"]


def sides(human: float, llm: float, delta: str = "", note: str = "") -> list[Cell]:
    """Two means in percent, and a Relative Δ as a file prints it."""
    front = {"table": "dai-3", "system": "BM25", "measure": "nDCG@1"}
    found = [Cell(**front, target="human", value=human), Cell(**front, target="llm", value=llm)]
    return [*found, Cell(**front, target=DELTA, value=float(delta), text=delta, note=note)] if delta else found


def shares(unprotected: float, protected: float, ratio: str = "", note: str = "") -> list[Cell]:
    """Two shares, and their ratio as a file prints it."""
    front = {"table": "wang-3", "system": "GPT-4", "condition": "relevant"}
    found = [Cell(**front, measure=m, value=v) for m, v in zip(SHARES, (unprotected, protected), strict=True)]
    return [*found, Cell(**front, measure=RATIO, value=float(ratio), text=ratio, note=note)] if ratio else found


def texts(cells: Sequence[Cell]) -> list[str]:
    return [cell.text for cell in cells]


class TestRelativeDelta:
    @pytest.mark.parametrize(
        ("human", "llm", "delta"),
        [(22.0, 17.0, "25.6"), (15.3, 24.7, "-47.0"), (24.3, 24.3, "0.0"), (0.0, 0.0, "–"), (5.0, 0.0, "200.0")],
    )
    def test_it_stands_behind_the_two_means_where_it_was_missing(self, human: float, llm: float, delta: str) -> None:
        found = printed(sides(human, llm), DAI)
        assert texts(found) == [f"{human:.1f}", f"{llm:.1f}", delta]
        assert found[2].target == DELTA
        assert found[2].system == "BM25"

    def test_means_are_rounded_first(self) -> None:
        # 4.45 and 3.55 are printed as 4.4 and 3.6 (halves to even): 100·0.8/4 = 20.0; unrounded 100·0.9/4 = 22.5
        assert texts(printed(sides(4.45, 3.55), DAI)) == ["4.4", "3.6", "20.0"]
        assert texts(printed(sides(4.45, 3.55), DAI, rounding="none")) == ["4.4", "3.6", "22.5"]

    def test_what_a_file_prints_stays_where_the_means_give_it(self) -> None:
        found = printed(sides(22.0, 17.0, "25.6", "a note"), DAI)
        assert texts(found) == ["22.0", "17.0", "25.6"]
        assert found[2].note == "a note"

    def test_what_the_means_do_not_give_is_replaced_and_noted(self) -> None:
        found = printed(sides(22.0, 17.0, "25.7"), DAI)
        assert found[2].text == "25.6"
        assert found[2].note == "printed as 25.7, recomputed from its parts (the two means give 25.6)"

    def test_a_note_of_the_file_that_knows_it_is_not_said_twice(self) -> None:
        found = printed(sides(22.0, 17.0, "25.7", "misprint: 25.6"), DAI)
        assert found[2].note == "printed as 25.7, recomputed from its parts (misprint: 25.6)"

    def test_another_note_of_the_file_is_kept(self) -> None:
        found = printed(sides(22.0, 17.0, "25.7", "from the slides"), DAI)
        assert found[2].note == "printed as 25.7, recomputed from its parts (the two means give 25.6; from the slides)"

    def test_without_one_of_its_means_it_is_printed_as_it_is(self) -> None:
        found = printed([sides(22.0, 17.0, "25.7")[0], sides(22.0, 17.0, "25.7")[2]], DAI)
        assert texts(found) == ["22.0", "25.7"]
        assert found[1].note == ""

    def test_an_undefined_mean_makes_it_undefined(self) -> None:
        found = printed(sides(math.nan, 17.0), DAI)
        assert texts(found) == ["–", "17.0", "–"]

    def test_each_cell_has_its_own_parts(self) -> None:
        other = [Cell(table="dai-3", system="TF-IDF", measure="nDCG@1", target=t, value=10.0) for t in ("human", "llm")]
        found = printed([*sides(22.0, 17.0), *other], DAI)
        assert {(c.system, c.text) for c in found if c.target == DELTA} == {("BM25", "25.6"), ("TF-IDF", "0.0")}

    def test_human_text_is_favoured_by_positive_values_wherever_a_file_puts_it(self) -> None:
        assert texts(printed(sides(22.0, 17.0)[::-1], DAI)) == ["17.0", "22.0", "25.6"]

    def test_of_other_groups_the_first_is_favoured_by_positive_values(self) -> None:
        cells = [Cell(table="dai-3", measure="P@5", target=t, value=v) for t, v in (("women", 22.0), ("men", 17.0))]
        assert texts(printed(cells, DAI)) == ["22.0", "17.0", "25.6"]
        assert texts(printed(cells[::-1], DAI)) == ["17.0", "22.0", "-25.6"]

    def test_a_third_group_changes_nothing_between_human_and_llm(self) -> None:
        third = Cell(table="dai-3", system="BM25", measure="nDCG@1", target="other", value=1.0)
        assert texts(printed([third, *sides(22.0, 17.0)], DAI)) == ["1.0", "22.0", "17.0", "25.6"]

    @given(st.integers(0, 1000), st.integers(0, 1000))
    def test_it_is_the_measure_of_the_two_printed_means(self, human: int, llm: int) -> None:
        assume(human + llm)
        found = printed(sides(human / 10, llm / 10), DAI)[2]
        expected = float(relative_delta(human / 1000, llm / 1000, rounding="paper"))
        assert found.value == pytest.approx(expected, abs=1e-9)
        assert abs(float(found.text) - expected) <= 0.05 + 1e-9


class TestRatio:
    def test_it_stands_behind_the_two_shares_where_it_was_missing(self) -> None:
        found = printed(shares(0.25, 0.2), WANG)
        assert texts(found) == ["0.2500", "0.2000", "0.8000"]
        assert found[2].measure == RATIO

    @pytest.mark.parametrize(
        ("unprotected", "protected", "ratio"),
        [
            (0.2407, 0.2453, "1.0190"),
            (0.1797, 0.2979, "1.6580"),
            (0.0920, 0.2913, "3.1643"),
            (0.2366, 0.0995, "0.4206"),
        ],
    )
    def test_what_the_rounding_of_the_shares_allows_stays(
        self, unprotected: float, protected: float, ratio: str
    ) -> None:
        found = printed(shares(unprotected, protected, ratio, "as printed"), WANG)
        assert (found[2].text, found[2].note) == (ratio, "as printed")

    @pytest.mark.parametrize(
        ("unprotected", "protected", "ratio", "now"),
        [(0.2033, 0.2939, "1.4430", "1.4456"), (0.3199, 0.2245, "0.7500", "0.7018")],
    )
    def test_a_misprint_is_found_without_its_note(
        self, unprotected: float, protected: float, ratio: str, now: str
    ) -> None:
        found = printed(shares(unprotected, protected, ratio), WANG)
        assert found[2].text == now
        assert found[2].note == f"printed as {ratio}, recomputed from its parts (the shares give {now})"

    @given(st.integers(500, 9000), st.integers(500, 9000), st.floats(-0.49, 0.49), st.floats(-0.49, 0.49))
    def test_no_ratio_of_exact_shares_is_called_a_misprint(self, u: int, p: int, more: float, less: float) -> None:
        exact = (p + less) / (u + more)
        found = printed(shares(u / 10_000, p / 10_000, f"{exact:.4f}"), WANG)
        assert (found[2].text, found[2].note) == (f"{exact:.4f}", "")

    @given(st.integers(1000, 5000), st.integers(1000, 5000), st.sampled_from([-1, 1]))
    def test_a_ratio_that_is_off_by_more_than_rounding_is_replaced(self, u: int, p: int, sign: int) -> None:
        wrong = p / u * (1 + 0.01 * sign)  # the shares are known to one part in a thousand
        found = printed(shares(u / 10_000, p / 10_000, f"{wrong:.4f}"), WANG)
        assert abs(float(found[2].text) - p / u) <= 0.00005 + 1e-12
        assert "recomputed" in found[2].note

    def test_no_share_at_all_gives_no_ratio(self) -> None:
        assert texts(printed(shares(0.0, 0.2), WANG)) == ["0.0000", "0.2000", "–"]


def test_tables_without_derived_cells_only_gain_texts() -> None:
    cells = [Cell(table="askari-2", system="BM25", measure="AP@1000", value=0.3774, note="n")]
    (found,) = printed(cells, LAYOUTS["askari-2"])
    assert (found.text, found.value, found.note) == (".377", 0.3774, "n")

"""Designs run by run as in the textbook, and what they can tell apart."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.generation.versions.design import (
    Design,
    design,
    design_of_versions,
    draw_cells,
    fraction_levels,
    full_factorial,
)
from tests.refusals import refused

NAMES = ("length", "words", "facts", "fluency", "gender", "style")
SIGNS = {"-": -1, "+": 1}


def column(layout: Design, effect: Sequence[str]) -> npt.NDArray[np.int64]:
    numbers = [layout.factors.index(name) for name in effect]
    product: npt.NDArray[np.int64] = np.prod(layout.levels[:, numbers].astype(np.int64), axis=1)
    return product


def aliases(layout: Design, effect: Sequence[str]) -> list[tuple[str, ...]]:
    """Main effects and interactions of two that the runs cannot tell from an effect, at least in
    part.
    """
    effects = [*((name,) for name in layout.factors), *combinations(layout.factors, 2)]
    return [
        alias
        for alias in effects
        if set(alias) != set(effect) and column(layout, effect) @ column(layout, alias)
    ]


def rows(text: str) -> list[list[int]]:
    """Runs as textbooks print them, a line each."""
    return [[SIGNS[sign] for sign in line if sign in SIGNS] for line in text.split()]


# Box, Hunter & Hunter (2005), in standard order: A changes fastest.
HALF_4 = "---- +--+ -+-+ ++-- --++ +-+- -++- ++++"
HALF_5 = (
    "----+ +---- -+--- ++--+ --+-- +-+-+ -++-+ +++-- ---+- +--++ -+-++ ++-+- --+++ +-++- "
    "-+++- +++++"
)
QUARTER_6 = (
    "------ +---+- -+--++ ++---+ --+-++ +-+--+ -++--- +++-+- "
    "---+-+ +--+++ -+-++- ++-+-- --+++- +-++-- -+++-+ ++++++"
)


@pytest.mark.parametrize(
    ("factors", "generators", "expected"),
    [(4, ("D=ABC",), HALF_4), (5, ("E=ABCD",), HALF_5), (6, ("E=ABC", "F=BCD"), QUARTER_6)],
)
def test_fractions_are_the_textbooks_run_by_run(
    factors: int, generators: tuple[str, ...], expected: str
) -> None:
    assert fraction_levels(factors, generators).tolist() == rows(expected)


@pytest.mark.parametrize(
    ("factors", "size", "generators", "resolution", "last"),
    [
        (4, "8", ("D=ABC",), "IV", None),
        (5, "16", ("E=-ABCD",), "V", -1),
        (6, "16", ("E=ABC", "F=BCD"), "IV", None),
        (6, "32", ("F=ABCDE",), "VI", None),
        (3, "8", (), "full", None),
        (5, "32", (), "full", None),
        (1, "full", (), "full", None),
    ],
)
def test_a_design_says_how_it_was_made_and_holds_the_original(
    factors: int, size: str, generators: tuple[str, ...], resolution: str, last: int | None
) -> None:
    layout = design(NAMES[:factors], size)
    assert (layout.kind, layout.generators, layout.resolution) == (
        "factorial",
        generators,
        resolution,
    )
    assert layout.levels[0].tolist() == [-1] * factors
    assert layout.level_names()[0] == dict.fromkeys(NAMES[:factors], "low")
    if last is not None:  # the other half of the textbook's: the sign of the last column is turned
        half = fraction_levels(factors, [text.replace("-", "") for text in generators])
        assert (layout.levels * [1, 1, 1, 1, last] == half).all()


DESIGNS = [
    *(design(NAMES[:factors]) for factors in range(1, 7)),
    *(
        design(NAMES[:factors], size)
        for factors, size in ((4, "8"), (5, "16"), (6, "16"), (6, "32"))
    ),
]


@given(st.sampled_from(DESIGNS))
def test_every_factor_is_balanced_and_orthogonal_to_the_others(layout: Design) -> None:
    levels = layout.levels.astype(int)
    assert (levels.sum(axis=0) == 0).all()
    assert (levels.T @ levels == layout.runs * np.eye(len(layout.factors))).all()
    assert len({tuple(row) for row in levels.tolist()}) == layout.runs


@given(st.sampled_from(DESIGNS))
def test_main_effects_are_mixed_with_no_interaction_of_two(layout: Design) -> None:
    assert [aliases(layout, [name]) for name in layout.factors] == [[] for _ in layout.factors]
    clear = [aliases(layout, pair) == [] for pair in combinations(layout.factors, 2)]
    assert all(clear) == (layout.resolution in ("full", "V", "VI"))


def test_aliases_are_those_of_the_textbook() -> None:
    half = design("ABCD", "8")
    assert aliases(half, "AB") == [("C", "D")]
    quarter = design("ABCDEF", "16")
    aliases_by_pair = {
        pair: ["".join(alias) for alias in aliases(quarter, pair)] for pair in ("AB", "AE", "BF")
    }
    assert aliases_by_pair == {"AB": ["CE"], "AE": ["BC", "DF"], "BF": ["CD"]}


@given(
    st.sampled_from([layout for layout in DESIGNS if layout.runs >= 4]),
    st.integers(2, 4),
    st.integers(1, 40),
    st.integers(0, 9),
)
def test_drawn_cells_keep_the_balance(layout: Design, cells: int, origins: int, seed: int) -> None:
    names = [f"d{number}" for number in range(origins)]
    drawn = draw_cells(layout, names, cells, seed)
    assert drawn == draw_cells(layout, names, cells, seed)
    assert all(len({*runs}) == cells and runs == sorted(runs) for runs in drawn)
    used = np.bincount(np.concatenate(drawn), minlength=layout.runs)
    assert used.max() - used.min() <= 1


def test_drawn_cells_give_most_origins_both_levels_of_a_factor() -> None:
    layout = design(NAMES[:4], "8")
    drawn = draw_cells(layout, [str(number) for number in range(200)], 3)
    both = [
        (layout.levels[runs].max(axis=0) > layout.levels[runs].min(axis=0)).mean() for runs in drawn
    ]
    assert np.mean(both) > 0.8
    assert drawn != draw_cells(layout, [str(number) for number in range(200)], 3, seed=1)
    assert draw_cells(layout, ["a"], None) == [list(range(8))]


def test_given_versions_are_a_design_if_all_cells_are_there() -> None:
    layout = design_of_versions(("a", "b"), [(-1, 1), (-1, -1), (1, 1), (1, -1), (1, 1)])
    assert (layout.levels.tolist(), layout.resolution) == (full_factorial(2).tolist(), "full")
    assert design_of_versions(("a", "b"), [(-1, -1), (1, 1)]).resolution == "none"


@pytest.mark.parametrize(
    ("factors", "size", "message"),
    [
        ((), "full", "expected a factor, such as length, got none"),
        (("a", "a"), "full", "factor 'a' is given twice"),
        (("a b",), "full", "factor 'a b': expected a name of letters, digits, - and _"),
        (tuple("abcdefg"), "full", "expected at most 6 factors, got 7"),
        (("a",), "9", "unknown design '9' (valid: 8, 16, 32, full)"),
        (("a",), "8", "1 factor has 2 combinations: a design of 8 is too large; use full"),
        (("a", "b"), "8", "2 factors have 4 combinations: a design of 8 is too large; use full"),
        (
            tuple("abcde"),
            "8",
            "5 factors in 8 runs is of resolution III: effects would be mixed with interactions of "
            "two factors; use 16 "
            "runs or more",
        ),
    ],
)
def test_designs_that_are_none_are_refused(
    factors: tuple[str, ...], size: str, message: str
) -> None:
    with refused(message):
        design(factors, size)


def test_cells_beyond_the_design_are_refused() -> None:
    with refused("expected 2 to 4 cells per origin of a and b, got 5"):
        draw_cells(design("ab"), ["d1"], 5)

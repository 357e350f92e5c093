"""Letters of members: two share one exactly where they do not differ."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.statistics.letters import compact_letters, letter_sets

Bools = npt.NDArray[np.bool_]


def differing(count: int, *pairs: str) -> Bools:
    """Return which members differ, from pairs of their numbers such as ``0-2``."""
    matrix = np.zeros((count, count), dtype=bool)
    for pair in pairs:
        first, second = map(int, pair.split("-"))
        matrix[first, second] = matrix[second, first] = True
    return matrix


@pytest.mark.parametrize(
    ("count", "pairs", "letters"),
    [
        (0, "", []),
        (1, "", ["a"]),
        (3, "", ["a", "a", "a"]),
        (2, "0-1", ["a", "b"]),
        (3, "0-1 0-2 1-2", ["a", "b", "c"]),
        (3, "0-2", ["a", "ab", "b"]),
        (4, "0-1 0-2 0-3", ["a", "b", "b", "b"]),
        # A chain in which neighbours alone cannot be told apart.
        (5, "0-2 0-3 0-4 1-3 1-4 2-4", ["a", "ab", "bc", "cd", "d"]),
    ],
)
def test_letters_by_hand(count: int, pairs: str, letters: list[str]) -> None:
    assert compact_letters(differing(count, *pairs.split())) == letters


@st.composite
def matrices(draw: st.DrawFn) -> Bools:
    count = draw(st.integers(0, 9))
    pairs = list(combinations(range(count), 2))
    chosen = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    names = [f"{a}-{b}" for (a, b), is_different in zip(pairs, chosen, strict=True) if is_different]
    return differing(count, *names)


@given(matrices())
def test_letters_say_what_the_pairs_say(differs: Bools) -> None:
    letters = compact_letters(differs)
    for first, second in combinations(range(len(differs)), 2):
        shares = bool(set(letters[first]) & set(letters[second]))
        assert shares != differs[first, second]
    assert all(letters)


@given(matrices())
def test_no_set_of_letters_lies_within_another(differs: Bools) -> None:
    sets = [set(members) for members in letter_sets(differs)]
    assert not any(first < second or second < first for first, second in combinations(sets, 2))
    assert len({frozenset(members) for members in sets}) == len(sets)


def test_letters_go_on_beyond_the_alphabet() -> None:
    letters = compact_letters(~np.eye(54, dtype=bool))
    assert (letters[25], letters[26], letters[51:]) == ("z", "A", ["Z", "a2", "b2"])

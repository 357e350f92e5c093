"""The longest common subsequence, against the textbook's table of lengths."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ranktilt.text.sequence import common_length, holds_share


def by_table(a: list[str], b: list[str]) -> int:
    """The textbook's dynamic programme."""
    row = [0] * (len(b) + 1)
    for word in a:
        last = row
        row = [0]
        for place, other in enumerate(b):
            row.append(last[place] + 1 if word == other else max(last[place + 1], row[place]))
    return row[-1]


WORDS = st.lists(st.sampled_from("abcd"), max_size=90)


@given(WORDS, WORDS)
@settings(max_examples=80)
def test_the_length_is_that_of_the_table(a: list[str], b: list[str]) -> None:
    assert common_length(a, b) == by_table(a, b) == common_length(b, a)


def test_more_words_than_a_machine_word_has_bits() -> None:
    words = [str(number) for number in range(1_000)]
    assert common_length(words, words[::2]) == 500
    assert common_length(words, words[500:] + words[:500]) == 500


@pytest.mark.parametrize(
    ("of", "within", "share", "enough"),
    [
        ("a b c d", "a b x d", 0.75, True),
        ("a b c d", "a b x d", 0.76, False),
        ("a b c d", "a b", 0.5, True),
        ("a b c d", "x a x b x c x d x", 1.0, True),
        ("a b", "a b c d", 1.0, True),
        ("a b c d", "d c b a", 0.5, False),
        ("a a a b", "a b b b", 0.75, False),
        ("", "a b", 0.5, False),
    ],
)
def test_the_share_is_of_the_first_in_its_order(of: str, within: str, share: float, enough: bool) -> None:
    assert holds_share(of.split(), within.split(), share) is enough


@given(WORDS, WORDS, st.sampled_from([0.3, 0.5, 0.8, 0.95, 1.0]))
@settings(max_examples=80)
def test_the_shortcuts_change_no_answer(of: list[str], within: list[str], share: float) -> None:
    assert holds_share(of, within, share) is bool(of and by_table(of, within) >= share * len(of))

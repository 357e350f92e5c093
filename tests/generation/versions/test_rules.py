"""Each rule by hand."""

import re

import pytest

from ranktilt.generation.versions.rules import (
    RuleContext,
    add_query_words,
    change_facts,
    facts_of,
    feminize,
    halve,
    name_pool,
    names_of,
    swap_words,
    synonyms,
    terms,
    use_synonyms,
)

PLAIN = RuleContext(id="d1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two. Three. Four.", "One. Two."),
        ("One. Two. Three.", "One."),
        ("Only one sentence, whatever its length", "Only one sentence, whatever its length"),
        ('He asked: "Why?" She left. It rained! Then nothing', 'He asked: "Why?" She left.'),
        ("At 3.5 % it rose. It fell.", "At 3.5 % it rose."),
        ("", ""),
    ],
)
def test_half_of_the_sentences_are_left(text: str, expected: str) -> None:
    assert halve(text, PLAIN) == expected


@pytest.mark.parametrize(
    ("text", "query_terms", "expected"),
    [
        ("A large study was evaluated.", (), "A sizable investigation was assessed."),
        ("THE BIG TOWN. Common errors", (), "THE SIZEABLE MUNICIPALITY. Frequent mistakes"),
        ("A big town", ("town",), "A sizeable town"),
        ("A big town", ("municipalities",), "A sizeable town"),
        ("they evaluated an unusual area", (), "they assessed an atypical region"),
        ("an important town", (), "a significant municipality"),
        (
            "a difference of opinions in large-scale trials",
            (),
            "a discrepancy of views in large-scale trials",
        ),
        ("although numerous", (), "though a great many"),
    ],
)
def test_words_are_replaced_by_synonyms_unless_a_query_holds_a_form(
    text: str, query_terms: tuple[str, ...], expected: str
) -> None:
    assert use_synonyms(text, RuleContext(id="d1", query_terms=frozenset(query_terms))) == expected


def test_the_list_of_synonyms_is_inflected_and_has_no_word_for_itself() -> None:
    known = synonyms()
    assert len(known) > 700
    assert not [word for word, synonym in known.items() if word == synonym]
    pairs = {
        "countries": None,
        "difficulties": "problems",
        "tried": "attempted",
        "assesses": "evaluates",
    }
    assert {word: known.get(word) for word in pairs} == pairs


def test_neighbouring_words_are_swapped_within_sentences() -> None:
    text = (
        "the quick brown fox jumps over the lazy dog today.  Second sentence stays in its own "
        "place here."
    )
    swapped = swap_words(text, PLAIN)
    assert swapped != text
    assert swapped == swap_words(text, PLAIN) != swap_words(text, RuleContext(id="d1", seed=1))
    for old, new in zip(text.split(".  "), swapped.split(".  "), strict=True):
        assert sorted(old.split()) == sorted(new.split())
        assert old.split()[-1] == new.split()[-1]
        moved = [
            abs(old.split().index(word) - index)
            for index, word in enumerate(new.split())
            if word != "the"
        ]
        assert max(moved) <= 1
    assert swap_words("Two words.", PLAIN) == "Two words."


NAMED = (
    "The trial in Finland enrolled 120 people from 1995 to 2003. Later, Anna Berg found 3.5 % "
    "in omega-3 and B12."
)


def test_numbers_and_names_are_changed_and_nothing_else() -> None:
    names = {1: ("Peru", "Chile"), 2: ("Carl Dahl", "Eva Frost")}
    changed = change_facts(NAMED, RuleContext(id="d1", names=names))
    shape = (
        r"The trial in (Peru|Chile) enrolled (\d\d\d) people from 19(\d\d) to 20(\d\d)\. "
        r"Later, (Carl Dahl|Eva Frost) found (\d\.\d) % in omega-3 and B12\."
    )
    match = re.fullmatch(shape, changed)
    assert match is not None, changed
    old = ("120", "95", "03", "3.5")
    for was, now in zip(old, (match[2], match[3], match[4], match[6]), strict=True):
        assert all(a != b for a, b in zip(was, now, strict=True) if a.isdigit())
    assert changed == change_facts(NAMED, RuleContext(id="d1", names=names))
    assert changed != change_facts(NAMED, RuleContext(id="d2", seed=1, names=names))


def test_what_queries_hold_stays_a_fact() -> None:
    names = {1: ("Peru",), 2: ("Carl Dahl",)}
    changed = change_facts(
        NAMED, RuleContext(id="d1", query_terms=frozenset({"finland", "120", "berg"}), names=names)
    )
    assert "in Finland enrolled 120 people" in changed
    assert "Anna Berg" in changed
    decimal = RuleContext(id="d1", query_terms=frozenset(terms("a dose of 3.5 %")))
    assert "found 3.5 %" in change_facts(NAMED, decimal)
    assert name_pool([NAMED, "We met Eva Frost in Peru."], frozenset({"peru"})) == {
        1: ("Finland",),
        2: ("Anna Berg", "Eva Frost"),
    }


def test_facts_are_numbers_and_names_within_sentences() -> None:
    assert names_of("Anna slept. Then Bo Ek woke Anna.") == ["Bo Ek", "Anna"]
    assert facts_of(NAMED) == {"Finland", "120", "1995", "2003", "Anna", "Berg", "3.5"}


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        ((), "Red apples."),
        (("green apples", "old trees?"), "Red apples. green old trees."),
        (("a b", "c", "d", "e"), "Red apples. a b c d."),
        (("red apples",), "Red apples."),
    ],
)
def test_words_of_relevant_queries_are_added_once(queries: tuple[str, ...], expected: str) -> None:
    assert add_query_words("Red apples.", RuleContext(id="d1", queries=queries)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He gave his son the hat that was his.", "She gave her daughter the hat that was hers."),
        ("MEN and Boys, husbands and actors", "WOMEN and Girls, wives and actresses"),
        ("She met the history of mankind", "She met the history of mankind"),
        ("Mr. King thanked him himself", "Ms. Queen thanked her herself"),
    ],
)
def test_masculine_words_become_feminine(text: str, expected: str) -> None:
    assert feminize(text, PLAIN) == expected

"""A prompt's text tells its query and passages; where it does not, that is said and nothing is guessed."""

import pytest

from ranktilt.rankers.llm.log import LoggedCall
from ranktilt.rankers.llm.prompt_matching import CandidateTexts, MatchedCall, undo_mojibake
from tests.rankers.llm.logged import prompt

FLEAS = "Fleas live for a hundred days [3] or more; their “eggs” hatch in the carpet, at 70–85 °F."
RIVERS = "The river Elbe carries cold water from the mountains to the sea, past old towns and new ones."
CAFES = "Cafés at the river: in Москва nobody hurries, and the coffee is specific to the house you sit in."
SAME = "Two documents hold this sentence, and nobody can tell them apart by what they say."
OTHERS = "Clocks show the hour by their bells, which is all that anybody needs to know about a clock."
CANDIDATES = CandidateTexts(
    ("q1", "q2", "q3"),
    ("how long do fleas live", "fleas", "clock bells"),
    (("d1", "d2", "d3", "d4", "d5"), ("d1", "d2"), ("d6", "d2")),
    (((FLEAS,), (RIVERS,), (CAFES,), (SAME,), (SAME,)), ((FLEAS,), (RIVERS,)), ((OTHERS,), (RIVERS,))),
)


def call(text: str, **more: object) -> LoggedCall:
    return LoggedCall(1, None, (), text, "[1]")._replace(**more)  # type: ignore[arg-type]


def shown(*texts: str, query: str = "how long do fleas live") -> MatchedCall | str:
    return CANDIDATES.match(call(prompt(query, texts)))


@pytest.mark.parametrize(
    "flea",
    [
        FLEAS,
        FLEAS.replace("[3]", "(3)"),
        FLEAS.replace("“", '"').replace("”", '"').replace("–", "-"),
        FLEAS.encode().decode("latin-1"),
        FLEAS.encode().decode("latin-1").encode().decode("latin-1"),
        FLEAS.replace("“", "&quot;").replace("”", "&quot;"),
    ],
    ids=["same", "brackets", "quotes", "encoding", "twice", "entity"],
)
def test_texts_are_matched_whatever_a_prompt_did_to_them(flea: str) -> None:
    assert shown(RIVERS, flea, CAFES) == MatchedCall(0, ((1,), (0,), (2,)))
    cafes = CAFES.replace("Москва", "Москва".encode().decode("latin-1")).replace("specific", "speciﬁc")
    assert shown(cafes, flea) == MatchedCall(0, ((2,), (0,)))


def test_texts_read_with_another_encoding_once_or_twice_are_undone() -> None:
    for text in ("eﬃcient “ﬁlm”", "naïve – 85 °F", "Москва"):
        once = text.encode().decode("latin-1")
        assert undo_mojibake(once) == undo_mojibake(once.encode().decode("latin-1")) == undo_mojibake(text)
    assert undo_mojibake("cafÃ© â€“ Ã") == "café \x96 Ã"


def test_an_unmatched_call_may_be_about_the_queries_that_its_prompt_names() -> None:
    others = ["one " * 40, "two " * 40]
    assert CANDIDATES.possible_queries(call(prompt("how long do fleas live", others))) == {0}
    assert CANDIDATES.possible_queries(call(f"[1] {others[0]}[2] {others[1]}\nQuery: fleas")) == {1}
    assert CANDIDATES.possible_queries(call(prompt("watches", others))) == set()
    assert CANDIDATES.possible_queries(call("", ids=("d6", "d1"), query="q3")) == {2}
    assert CANDIDATES.possible_queries(call("", ids=("d6", "d2"), query="q9")) == set()


@pytest.mark.parametrize("flea", [FLEAS[:70], FLEAS.replace("hundred", "hundert")], ids=["cut", "other word"])
def test_a_text_that_is_no_candidates_whole_text_is_not_guessed(flea: str) -> None:
    assert shown(RIVERS, flea, CAFES) == "passage [2] is no candidate of query 'q1'"


def test_a_text_without_latin_letters_is_matched_to_the_sign() -> None:
    one, two = "東京は日本の首都です。人口は約千四百万人。", "大阪は日本の都市です。人口は約二百七十万人。"
    found = CandidateTexts(("q",), ("日本の首都",), (("a", "b"),), (((one,), (two,)),))
    assert found.match(call(prompt("日本の首都", [two, one]))) == MatchedCall(0, ((1,), (0,)))
    assert isinstance(found.match(call(prompt("日本の首都", [two, one[:-1]]))), str)


def test_equal_texts_can_be_either_document() -> None:
    assert shown(SAME, FLEAS, SAME) == MatchedCall(0, ((3, 4), (0,), (3, 4)))


def test_a_passage_that_begins_as_a_longer_one_is_told_from_it() -> None:
    longer = CandidateTexts(("q",), ("fleas",), (("a", "b"),), (((RIVERS,), (f"{RIVERS} And back.",)),))
    assert longer.match(call(prompt("fleas", [f"{RIVERS} And back.", RIVERS]))) == MatchedCall(0, ((1,), (0,)))


def test_a_title_may_stand_before_a_text_or_not() -> None:
    texts = (RIVERS, f"Elbe {RIVERS}", f"Title: Elbe Content: {RIVERS}")
    titled = CandidateTexts(("q",), ("fleas",), (("a", "b"),), ((texts, (FLEAS,)),))
    for text in texts:
        assert titled.match(call(prompt("fleas", [FLEAS, text]))) == MatchedCall(0, ((1,), (0,)))


def test_turns_of_a_dialogue_are_no_part_of_a_passage() -> None:
    turns = "".join(
        f"USER: [{n}] {text} ASSISTANT: Received passage [{n}].</s>" for n, text in ((1, RIVERS), (2, FLEAS))
    )
    text = f"I will provide you with 2 passages. Query: how long do fleas live. {turns} USER: e.g., [2] > [1]."
    assert CANDIDATES.match(call(text)) == MatchedCall(0, ((1,), (0,)))


def test_of_two_queries_the_longer_one_was_asked() -> None:
    assert shown(FLEAS, RIVERS) == MatchedCall(0, ((0,), (1,)))
    assert shown(FLEAS, RIVERS, query="fleas") == MatchedCall(1, ((0,), (1,)))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (call("Rank these."), "shows fewer than two passages [1], [2], …"),
        (call(prompt("clock bells", [OTHERS, RIVERS]).replace("with 2", "with 5")), "announces 5 passages and shows 2"),
        (call(prompt("clock bells", ["one " * 40, "two " * 40])), "shows passages that are no candidates"),
        (call(prompt("watches", [OTHERS, RIVERS])), "asks another query than its passages'"),
        (call(prompt("clock bells", [OTHERS, RIVERS]), query="q1"), "asks another query than its passages'"),
        (call("", ids=("d6", "d2"), query="q9"), "query 'q9' is none of the candidates'"),
        (call("", ids=("d6", "d1"), query="q3"), "document 'd1' is no candidate of its query"),
        (call("", ids=("d6", "d6"), query="q3"), "shows one document twice"),
    ],
)
def test_what_cannot_be_told_is_said(found: LoggedCall, reason: str) -> None:
    assert CANDIDATES.match(found) == reason


def test_queries_of_equal_text_and_passages_are_not_told_apart() -> None:
    twice = CandidateTexts(("a", "b"), ("fleas", "Fleas"), (("x", "y"),) * 2, (((FLEAS,), (RIVERS,)),) * 2)
    one = CandidateTexts(("a", "b"), ("fleas", "fleas"), (("x", "y"),) * 2, (((FLEAS,), (RIVERS,)),) * 2)
    assert twice.match(call(prompt("fleas", [FLEAS, RIVERS]))) == MatchedCall(0, ((0,), (1,)))
    assert one.match(call(prompt("fleas", [FLEAS, RIVERS]))) == "fits 2 queries of equal passages"
    assert one.match(call(prompt("fleas", [FLEAS, RIVERS]), query="b")) == MatchedCall(1, ((0,), (1,)))

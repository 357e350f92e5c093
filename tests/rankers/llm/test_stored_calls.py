"""Stored calls are read in every form, and matched with queries and passages."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ranktilt.data.notes.comparisons import Mismatch
from ranktilt.errors import DataError
from ranktilt.rankers.llm.stored_calls import (
    EXPECTED,
    CandidateTexts,
    LoggedCall,
    MatchedCall,
    read_log,
)
from ranktilt.reporting.sentences.notes.comparisons import mismatch_words
from tests.rankers.llm.judge import prompt, rank_llm_text
from tests.toy import write

TWO = [{"prompt": "Which?\n[1] a", "response": "[1]"}, {"prompt": "Who?", "response": None}]


@pytest.mark.parametrize(
    "text",
    [
        rank_llm_text(TWO),
        json.dumps(TWO),
        "\n".join(map(json.dumps, TWO)),
        "\ufeff" + rank_llm_text(TWO),
    ],
    ids=["rank_llm", "list", "lines", "mark"],
)
def test_records_follow_each_other_in_any_form(tmp_path: Path, text: str) -> None:
    file = tmp_path / "log.json"
    for data in (text.encode(), gzip.compress(text.encode())):
        file.write_bytes(data)
        assert read_log(file) == (
            logged_call(1, prompt="Which?\n[1] a", answer="[1]"),
            logged_call(2, prompt="Who?", answer=None),
        )


def test_ids_and_the_histories_of_later_versions_are_read(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Rank."}, {"role": "user", "content": "[1] a"}]
    history = {
        "query": {"qid": 7, "text": "a?"},
        "invocations_history": [{"prompt": messages, "response": "[1]"}] * 2,
    }
    by_id = {"query": 7, "ids": ["d1", 2], "answer": "[2] > [1]"}
    (tmp_path / "log.json").write_text(json.dumps([history, by_id]))
    first = logged_call(1, query="7", prompt="Rank.\n[1] a", answer="[1]")
    expected = (
        first,
        replace(first, number=2),
        logged_call(3, query="7", ids=("d1", "2"), answer="[2] > [1]"),
    )
    assert read_log(tmp_path / "log.json") == expected


def test_answers_are_read_in_the_forms_of_public_tools(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "[2] > [1]", "reasoning_content": "[1] > [2]?"}
    completion = {"choices": [{"message": message}]}
    request = {"messages": [{"role": "user", "content": [{"type": "text", "text": "[1] a"}]}]}
    by_id, by_text = {"query": "q", "ids": ["d1", "d2"]}, {"prompt": "[1] a"}
    parts = [{"type": "thinking", "thinking": "[1] > [2]?"}, {"type": "text", "text": "[2] > [1]"}]
    records: list[dict[str, object]] = [
        *({**by_id, "answer": answer} for answer in (message, completion, parts, ["[2] > [1]"])),
        *({**by_text, "response": answer} for answer in (message, completion, parts)),
        {**by_id, "response": "[2] > [1]"},
        {**by_id, **completion},
        {**by_text, "outputs": [{"text": "[2] > [1]"}]},
        {**request, "response": completion},
        {
            "custom_id": "1",
            "request": {"body": request},
            "response": {"status_code": 200, "body": completion},
        },
    ]
    calls = read_log(write(tmp_path / "log.jsonl", "\n".join(map(json.dumps, records))))
    assert [call.answer for call in calls] == ["[2] > [1]"] * len(records)
    assert {(call.query, call.ids, call.prompt) for call in calls} == {
        ("q", ("d1", "d2"), ""),
        (None, (), "[1] a"),
    }
    reasoning = {"role": "assistant", "content": None, "reasoning_content": "[1] > [2]"}
    (call,) = read_log(write(tmp_path / "log.jsonl", json.dumps({**by_id, "answer": reasoning})))
    assert call.answer is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", " holds no calls"),
        ("q1 Q0 d1 1 2.5 bm25\n", f"1: {EXPECTED}, got 'q1 Q0 d1 1 2.5 bm25\\n'"),
        ('{"prompt": "a", "response": "b"}\n{"prompt": "a" "b"}\n{}', f"2: {EXPECTED}, got"),
        (
            '{"prompt": "a", "response": "b"}\n{"q": "a", "text": "b"}',
            f"2: {EXPECTED}, got 'q, text'",
        ),
        ('{"prompt": "a", "response": "b"}, {"prompt": "a", "resp', f"1: {EXPECTED}, got"),
        ('{"prompt": "a", "response": 5}', f"1: {EXPECTED}, got 'prompt, response'"),
        ('{"a":' * 5_000, f"1: {EXPECTED}, got"),
        (
            '{"query": "q", "prompt": ' + '{"body": ' * 600 + "1" + "}" * 600 + ', "answer": "x"}',
            f"1: {EXPECTED}, got",
        ),
        (f'{{"query": {"9" * 5_000}, "ids": ["a"], "answer": "x"}}', f"1: {EXPECTED}, got"),
        (
            '{"query": "q", "ids": [[]], "answer": "[1]"}',
            f"1: {EXPECTED}, got 'query, ids, answer'",
        ),
    ],
)
def test_what_is_no_log_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path / "log.json", text)
    with pytest.raises(DataError, match="^" + re.escape(f"{file}:{message}")):
        read_log(file)


FLEAS = "Fleas live for a hundred days [3] or more; their “eggs” hatch in the carpet, at 70–85 °F."
RIVERS = (
    "The river Elbe carries cold water from the mountains to the sea, past old towns and new ones."
)
CAFES = (
    "Cafés at the river: in Москва nobody hurries, and the coffee is specific to the house "
    "you "
    "sit in."
)
SAME = "Two documents hold this sentence, and nobody can tell them apart by what they say."
OTHERS = (
    "Clocks show the hour by their bells, which is all that anybody needs to know about a clock."
)
SEVERAL = CandidateTexts(
    queries=("q1", "q2", "q3"),
    texts=("how long do fleas live", "fleas", "clock bells"),
    docs=(("d1", "d2", "d3", "d4", "d5"), ("d1", "d2"), ("d6", "d2")),
    passages=(
        ((FLEAS,), (RIVERS,), (CAFES,), (SAME,), (SAME,)),
        ((FLEAS,), (RIVERS,)),
        ((OTHERS,), (RIVERS,)),
    ),
)


def logged_call(
    number: int,
    *,
    query: str | None = None,
    ids: tuple[str, ...] = (),
    prompt: str = "",
    answer: str | None,
) -> LoggedCall:
    return LoggedCall(number=number, query=query, ids=ids, prompt=prompt, answer=answer)


def call(text: str, **more: object) -> LoggedCall:
    return replace(logged_call(1, prompt=text, answer="[1]"), **more)  # type: ignore[arg-type]


def matched(*texts: str, query: str = "how long do fleas live") -> MatchedCall | Mismatch:
    return SEVERAL.match(call(prompt(query, texts)))


def one_query(query: str, *passages: tuple[str, ...]) -> CandidateTexts:
    return CandidateTexts(
        queries=("q",),
        texts=(query,),
        docs=(tuple("abcd"[: len(passages)]),),
        passages=(passages,),
    )


def test_texts_are_matched_whatever_a_prompt_did_to_them() -> None:
    for flea in (
        FLEAS.replace("[3]", "(3)"),
        FLEAS.replace("“", '"').replace("”", '"').replace("–", "-"),
        FLEAS.encode().decode("latin-1"),
        FLEAS.encode().decode("latin-1").encode().decode("latin-1"),
        FLEAS.replace("“", "&quot;").replace("”", "&quot;"),
    ):
        assert matched(RIVERS, flea, CAFES) == MatchedCall(query=0, passages=((1,), (0,), (2,)))
        cafes = CAFES.replace("Москва", "Москва".encode().decode("latin-1")).replace(
            "specific", "speciﬁc"
        )
        assert matched(cafes, flea) == MatchedCall(query=0, passages=((2,), (0,)))


def test_what_cannot_be_told_is_said_and_which_queries_it_may_be_about() -> None:
    others = ["one " * 40, "two " * 40]
    assert SEVERAL.possible_queries(call(prompt("how long do fleas live", others))) == {0}
    assert SEVERAL.possible_queries(call(f"[1] {others[0]}[2] {others[1]}\nQuery: fleas")) == {1}
    assert SEVERAL.possible_queries(call(prompt("watches", others))) == set()
    assert SEVERAL.possible_queries(call("", ids=("d6", "d1"), query="q3")) == {2}
    assert SEVERAL.possible_queries(call("", ids=("d6", "d2"), query="q9")) == set()
    for logged_call, reason in (
        (
            call(prompt("how long do fleas live", [RIVERS, FLEAS[:70]])),
            "passage [2] is not a candidate of query 'q1'",
        ),
        (call("Rank these."), "shows fewer than two passages [1], [2], …"),
        (
            call(prompt("clock bells", [OTHERS, RIVERS]).replace("with 2", "with 5")),
            "announces 5 passages and shows 2",
        ),
        (
            call(prompt("clock bells", ["one " * 40, "two " * 40])),
            "shows passages that are not candidates",
        ),
        (call(prompt("watches", [OTHERS, RIVERS])), "asks a different query from its passages"),
        (call("", ids=("d6", "d2"), query="q9"), "query 'q9' is not a query of the candidates"),
        (call("", ids=("d6", "d1"), query="q3"), "document 'd1' is not a candidate of its query"),
        (call("", ids=("d6", "d6"), query="q3"), "shows one document twice"),
    ):
        mismatch = SEVERAL.match(logged_call)
        assert isinstance(mismatch, Mismatch)
        assert mismatch_words(mismatch) == reason


def test_equal_texts_can_be_either_document_and_queries_of_equal_text_are_not_told_apart() -> None:
    assert matched(SAME, FLEAS, SAME) == MatchedCall(query=0, passages=((3, 4), (0,), (3, 4)))
    assert matched(FLEAS, RIVERS) == MatchedCall(query=0, passages=((0,), (1,)))
    assert matched(FLEAS, RIVERS, query="fleas") == MatchedCall(query=1, passages=((0,), (1,)))
    different, same = (
        CandidateTexts(
            queries=("a", "b"),
            texts=("fleas", text),
            docs=(("x", "y"),) * 2,
            passages=(((FLEAS,), (RIVERS,)),) * 2,
        )
        for text in ("Fleas", "fleas")
    )
    fleas = call(prompt("fleas", [FLEAS, RIVERS]))
    assert different.match(fleas) == MatchedCall(query=0, passages=((0,), (1,)))
    assert same.match(fleas) == Mismatch(kind="several queries", queries=2)
    assert same.match(replace(fleas, query="b")) == MatchedCall(query=1, passages=((0,), (1,)))


def test_titles_turns_of_a_dialogue_and_texts_that_begin_with_another_are_told() -> None:
    texts = (RIVERS, f"Elbe {RIVERS}", f"Title: Elbe Content: {RIVERS}")
    titled = one_query("fleas", texts, (FLEAS,))
    assert {titled.match(call(prompt("fleas", [FLEAS, text]))) for text in texts} == {
        MatchedCall(query=0, passages=((1,), (0,)))
    }
    turns = "".join(
        f"USER: [{n}] {text} ASSISTANT: Received passage [{n}].</s>"
        for n, text in ((1, RIVERS), (2, FLEAS))
    )
    text = (
        f"I will provide you with 2 passages. Query: how long do fleas live. {turns} USER: "
        "e.g., [2] > [1]."
    )
    assert SEVERAL.match(call(text)) == MatchedCall(query=0, passages=((1,), (0,)))
    longer = one_query("fleas", (RIVERS,), (f"{RIVERS} And back.",))
    assert longer.match(call(prompt("fleas", [f"{RIVERS} And back.", RIVERS]))) == MatchedCall(
        query=0, passages=((1,), (0,))
    )
    tokyo, osaka = (
        "東京は日本の首都です。人口は約千四百万人。",
        "大阪は日本の都市です。人口は約二百七十万人。",
    )
    cities = one_query("日本の首都", (tokyo,), (osaka,))
    assert cities.match(call(prompt("日本の首都", [osaka, tokyo]))) == MatchedCall(
        query=0, passages=((1,), (0,))
    )
    assert isinstance(cities.match(call(prompt("日本の首都", [osaka, tokyo[:-1]]))), Mismatch)

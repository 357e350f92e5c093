"""Stored calls are read in every form, matched with queries and passages, and made rankings anew.

The published one comes back as it was; in strict ones prose decides nothing.
"""

import gzip
import json
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.errors import DataError, UserError
from ranktilt.rankers.llm.answers import MISSING, OFF_FORMAT, OK, REPEATED
from ranktilt.rankers.llm.log import EXPECTED, LoggedCall, read_log
from ranktilt.rankers.llm.prompt_matching import CandidateTexts, MatchedCall
from ranktilt.rankers.llm.published_run import UnmatchedCall, replay_calls
from tests.rankers.llm.judge import WORDS, Answer, logged, prompt, rank_llm_text
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
            LoggedCall(1, None, (), "Which?\n[1] a", "[1]"),
            LoggedCall(2, None, (), "Who?", None),
        )


def test_ids_and_the_histories_of_later_versions_are_read(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Rank."}, {"role": "user", "content": "[1] a"}]
    history = {
        "query": {"qid": 7, "text": "a?"},
        "invocations_history": [{"prompt": messages, "response": "[1]"}] * 2,
    }
    by_id = {"query": 7, "ids": ["d1", 2], "answer": "[2] > [1]"}
    (tmp_path / "log.json").write_text(json.dumps([history, by_id]))
    first = LoggedCall(1, "7", (), "Rank.\n[1] a", "[1]")
    expected = (first, first._replace(number=2), LoggedCall(3, "7", ("d1", "2"), "", "[2] > [1]"))
    assert read_log(tmp_path / "log.json") == expected


def test_answers_are_read_in_the_forms_of_public_tools(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "[2] > [1]", "reasoning_content": "[1] > [2]?"}
    completion = {"choices": [{"message": message}]}
    asked = {"messages": [{"role": "user", "content": [{"type": "text", "text": "[1] a"}]}]}
    by_id, by_text = {"query": "q", "ids": ["d1", "d2"]}, {"prompt": "[1] a"}
    parts = [{"type": "thinking", "thinking": "[1] > [2]?"}, {"type": "text", "text": "[2] > [1]"}]
    records: list[dict[str, object]] = [
        *({**by_id, "answer": answer} for answer in (message, completion, parts, ["[2] > [1]"])),
        *({**by_text, "response": answer} for answer in (message, completion, parts)),
        {**by_id, "response": "[2] > [1]"},
        {**by_id, **completion},
        {**by_text, "outputs": [{"text": "[2] > [1]"}]},
        {**asked, "response": completion},
        {
            "custom_id": "1",
            "request": {"body": asked},
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
CAFES = "Cafés at the river: in Москва nobody hurries, and the coffee is specific to the house you sit in."
SAME = "Two documents hold this sentence, and nobody can tell them apart by what they say."
OTHERS = (
    "Clocks show the hour by their bells, which is all that anybody needs to know about a clock."
)
SEVERAL = CandidateTexts(
    ("q1", "q2", "q3"),
    ("how long do fleas live", "fleas", "clock bells"),
    (("d1", "d2", "d3", "d4", "d5"), ("d1", "d2"), ("d6", "d2")),
    (
        ((FLEAS,), (RIVERS,), (CAFES,), (SAME,), (SAME,)),
        ((FLEAS,), (RIVERS,)),
        ((OTHERS,), (RIVERS,)),
    ),
)


def call(text: str, **more: object) -> LoggedCall:
    return LoggedCall(1, None, (), text, "[1]")._replace(**more)  # type: ignore[arg-type]


def matched(*texts: str, query: str = "how long do fleas live") -> MatchedCall | str:
    return SEVERAL.match(call(prompt(query, texts)))


def one_query(query: str, *passages: tuple[str, ...]) -> CandidateTexts:
    return CandidateTexts(("q",), (query,), (tuple("abcd"[: len(passages)]),), (passages,))


def test_texts_are_matched_whatever_a_prompt_did_to_them() -> None:
    for flea in (
        FLEAS.replace("[3]", "(3)"),
        FLEAS.replace("“", '"').replace("”", '"').replace("–", "-"),
        FLEAS.encode().decode("latin-1"),
        FLEAS.encode().decode("latin-1").encode().decode("latin-1"),
        FLEAS.replace("“", "&quot;").replace("”", "&quot;"),
    ):
        assert matched(RIVERS, flea, CAFES) == MatchedCall(0, ((1,), (0,), (2,)))
        cafes = CAFES.replace("Москва", "Москва".encode().decode("latin-1")).replace(
            "specific", "speciﬁc"
        )
        assert matched(cafes, flea) == MatchedCall(0, ((2,), (0,)))


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
            "passage [2] is no candidate of query 'q1'",
        ),
        (call("Rank these."), "shows fewer than two passages [1], [2], …"),
        (
            call(prompt("clock bells", [OTHERS, RIVERS]).replace("with 2", "with 5")),
            "announces 5 passages and shows 2",
        ),
        (
            call(prompt("clock bells", ["one " * 40, "two " * 40])),
            "shows passages that are no candidates",
        ),
        (call(prompt("watches", [OTHERS, RIVERS])), "asks another query than its passages'"),
        (call("", ids=("d6", "d2"), query="q9"), "query 'q9' is none of the candidates'"),
        (call("", ids=("d6", "d1"), query="q3"), "document 'd1' is no candidate of its query"),
        (call("", ids=("d6", "d6"), query="q3"), "shows one document twice"),
    ):
        assert SEVERAL.match(logged_call) == reason


def test_equal_texts_can_be_either_document_and_queries_of_equal_text_are_not_told_apart() -> None:
    assert matched(SAME, FLEAS, SAME) == MatchedCall(0, ((3, 4), (0,), (3, 4)))
    assert matched(FLEAS, RIVERS) == MatchedCall(0, ((0,), (1,)))
    assert matched(FLEAS, RIVERS, query="fleas") == MatchedCall(1, ((0,), (1,)))
    other, same = (
        CandidateTexts(("a", "b"), ("fleas", text), (("x", "y"),) * 2, (((FLEAS,), (RIVERS,)),) * 2)
        for text in ("Fleas", "fleas")
    )
    fleas = call(prompt("fleas", [FLEAS, RIVERS]))
    assert other.match(fleas) == MatchedCall(0, ((0,), (1,)))
    assert same.match(fleas) == "fits 2 queries of equal passages"
    assert same.match(fleas._replace(query="b")) == MatchedCall(1, ((0,), (1,)))


def test_titles_turns_of_a_dialogue_and_texts_that_begin_with_another_are_told() -> None:
    texts = (RIVERS, f"Elbe {RIVERS}", f"Title: Elbe Content: {RIVERS}")
    titled = one_query("fleas", texts, (FLEAS,))
    assert {titled.match(call(prompt("fleas", [FLEAS, text]))) for text in texts} == {
        MatchedCall(0, ((1,), (0,)))
    }
    turns = "".join(
        f"USER: [{n}] {text} ASSISTANT: Received passage [{n}].</s>"
        for n, text in ((1, RIVERS), (2, FLEAS))
    )
    text = f"I will provide you with 2 passages. Query: how long do fleas live. {turns} USER: e.g., [2] > [1]."
    assert SEVERAL.match(call(text)) == MatchedCall(0, ((1,), (0,)))
    longer = one_query("fleas", (RIVERS,), (f"{RIVERS} And back.",))
    assert longer.match(call(prompt("fleas", [f"{RIVERS} And back.", RIVERS]))) == MatchedCall(
        0, ((1,), (0,))
    )
    tokyo, osaka = (
        "東京は日本の首都です。人口は約千四百万人。",
        "大阪は日本の都市です。人口は約二百七十万人。",
    )
    cities = one_query("日本の首都", (tokyo,), (osaka,))
    assert cities.match(call(prompt("日本の首都", [osaka, tokyo]))) == MatchedCall(0, ((1,), (0,)))
    assert isinstance(cities.match(call(prompt("日本の首都", [osaka, tokyo[:-1]]))), str)


LISTS = {"q1": tuple("abcdefg"), "q2": tuple("gfabc")}
INPUT = {query: list(docs) for query, docs in LISTS.items()}
QUERIES = {"q1": "which wood floats", "q2": "which stone sinks"}
TEXTS = {name: " ".join(Random(name).choices(WORDS, k=12)) for name in "abcdef"}
TEXTS["g"] = TEXTS["c"]
CANDIDATES = CandidateTexts(
    tuple(LISTS),
    tuple(QUERIES.values()),
    tuple(LISTS.values()),
    tuple(tuple((TEXTS[name],) for name in docs) for docs in LISTS.values()),
)
ANSWERS = (
    "[{}] > [{}] > [{}] > [{}]",
    "{}] > [{}]",
    "20 passages are provided.",
    "{} passages will be listed.",
    "[] > []",
    "1. [{}] > 2. [{}]",
    "I cannot rank these.",
    "",
    "[1] > [2] > [3] > [4]",
)


def names(orders: list[list[int]]) -> dict[str, list[str]]:
    return {
        query: [docs[n] for n in order]
        for (query, docs), order in zip(LISTS.items(), orders, strict=True)
    }


def calls(
    answer: Answer, *, ids: bool = False, step: int = 2
) -> tuple[list[LoggedCall], dict[str, list[str]]]:
    records, run = logged(LISTS, QUERIES, TEXTS, answer, ids=ids, step=step)
    if ids:
        return [
            LoggedCall(n, r["query"], tuple(r["ids"]), "", r["answer"])
            for n, r in enumerate(records, 1)
        ], run
    return [
        LoggedCall(n, None, (), r["prompt"], r["response"]) for n, r in enumerate(records, 1)
    ], run


@given(st.randoms(use_true_random=False), st.booleans(), st.integers(1, 3))
def test_the_published_run_comes_back_rank_for_rank(chance: Random, ids: bool, step: int) -> None:
    def answer(query: str, shown: object) -> str:
        return chance.choice(ANSWERS).format(*chance.sample(range(1, 7), k=4))

    first, run = calls(answer, ids=ids, step=step)
    made = replay_calls(first, CANDIDATES)
    assert (names(made.published), made.unmatched, made.other_order) == (run, [], 0)
    for orders in (made.model, made.strict):
        assert {q: sorted(docs) for q, docs in names(orders).items()} == {
            q: sorted(docs) for q, docs in LISTS.items()
        }


def test_calls_of_several_queries_may_alternate_and_a_log_of_two_runs_is_refused() -> None:
    first, run = calls(lambda query, shown: "[2] > [1] > [4] > [3]" if query == "q1" else "[4]")
    mixed = [first[n] for n in (0, 3, 1, 4, 2)]
    assert names(replay_calls(mixed, CANDIDATES).published) == run
    first, _ = calls(lambda query, shown: "[4] > [3] > [2] > [1]")
    again = [logged_call._replace(number=logged_call.number + len(first)) for logged_call in first]
    with pytest.raises(
        UserError, match=r"^call 6 of the log ranks a query again .* it holds several runs"
    ):
        replay_calls([*first, *again], CANDIDATES)


def test_without_rankings_nothing_is_decided_and_an_echo_leaves_the_input_order() -> None:
    first, run = calls(lambda query, shown: "4 passages are provided.")
    made = replay_calls(first, CANDIDATES)
    assert {reply.kind for reply in made.answers} == {OFF_FORMAT}
    assert all(reply.moved and not reply.echo for reply in made.answers)
    assert names(made.published) == run != INPUT
    assert names(made.model) == INPUT
    strict = [tuple(replay_calls(first, CANDIDATES, seed=seed).strict[0]) for seed in range(200)]
    assert strict[0] == tuple(made.strict[0])
    first = np.bincount([order[0] for order in strict], minlength=7) / 200
    assert first[:2] == pytest.approx([0.25, 0.25], abs=0.1), (
        "the first window is shuffled, whatever came first"
    )
    first, run = calls(
        lambda query, shown: "4" if len(set(shown) & {"d", "e"}) == 2 else "[1] > [2] > [3] > [4]"
    )
    made = replay_calls(first, CANDIDATES)
    assert names(made.published) == run != INPUT
    assert (
        sum(reply.echo for reply in made.answers)
        == sum(reply.kind == OK for reply in made.answers)
        > 0
    )
    assert names(made.model) == INPUT


@pytest.mark.parametrize(
    ("answer", "kind", "order"),
    [("[3] > [2]", MISSING, [2, 1, 0, 3]), ("[4] > [1] > [4] > [2]", REPEATED, [3, 0, 1, 2])],
)
def test_what_an_answer_leaves_out_follows_and_repeats_count_once(
    answer: str, kind: str, order: list[int]
) -> None:
    texts = [TEXTS[name] for name in "abcd"]
    candidates = one_query(QUERIES["q1"], *((text,) for text in texts))
    rankings = replay_calls(
        [call(prompt(QUERIES["q1"], texts))._replace(answer=answer)], candidates
    )
    assert (rankings.answers[0].kind, rankings.model[0]) == (kind, order)
    assert rankings.strict[0][:2] == order[:2]


def test_calls_that_do_not_follow_are_counted_and_those_in_doubt_left_out() -> None:
    first, _ = calls(lambda query, shown: "[4] > [3] > [2] > [1]", ids=True)
    other = first[0]._replace(ids=("f", "a", "e"), answer="[2] > [1]")
    made = replay_calls([other, *first[3:]], CANDIDATES)
    assert (made.other_order, made.unmatched, made.called) == (1, [], {0, 1})
    assert names(made.published)["q1"] == list("abcdfeg"), "in the places that these three held"
    texts, _ = calls(lambda query, shown: "[4] > [3] > [2] > [1]")
    lost = replay_calls(
        [texts[1]._replace(prompt=texts[1].prompt.replace(TEXTS["d"], TEXTS["a"]))], CANDIDATES
    )
    reason = "shows passages of equal text in another order than the calls before it leave"
    assert lost.unmatched == [UnmatchedCall(2, reason)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "count", "prose", "echo"),
    [
        ("rankvicuna7b-aug-top100", 387, False, False),
        ("rankvicuna7b-aug-top20", 43, False, False),
        ("vicuna13b-top100", 387, True, False),
        ("vicuna7bv15-top100", 387, False, True),
    ],
)
def test_runs_of_rank_llm_come_back(
    shared_data: Path, name: str, count: int, prose: bool, echo: bool
) -> None:
    from ranktilt.auditing.replay_log import log_runs
    from ranktilt.datasets.rank_llm import read_candidates
    from ranktilt.run import Run

    collection, candidates = read_candidates(shared_data / "dl19" / "candidates-bm25.json")
    file = shared_data / "rank-llm-logs" / f"bm25-{name}"
    replayed = log_runs(Path(f"{file}.json.gz"), candidates, collection)
    ours, theirs = (
        run.frame().select("query_id", "doc_id", "rank").sort("query_id", "rank")
        for run in (replayed.runs["published"], Run.load(f"{file}.trec", score_order="rank"))
    )
    assert ours.equals(theirs)
    answers = replayed.rankings.answers
    assert (len(answers), replayed.rankings.unmatched) == (count, [])
    assert (sum(answer.kind == OFF_FORMAT for answer in answers) >= 0.95 * count) == prose
    assert (sum(answer.echo for answer in answers) >= 0.9 * count) == echo

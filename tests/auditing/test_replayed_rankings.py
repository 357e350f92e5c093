"""Stored calls are made rankings anew: the published one as it was; in strict ones prose decides
nothing.
"""

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.auditing.replay_log.rankings import UnmatchedCall, replay_calls
from ranktilt.auditing.replay_log.runs import log_runs
from ranktilt.data.notes.comparisons import Mismatch
from ranktilt.data.runs.rank_llm import read_candidates
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.rankers.llm.answers import MISSING, OFF_FORMAT, OK, REPEATED
from ranktilt.rankers.llm.stored_calls import CandidateTexts, LoggedCall
from tests.rankers.llm.judge import WORDS, Answer, logged, prompt
from tests.rankers.llm.test_stored_calls import call, one_query

LISTS = {"q1": tuple("abcdefg"), "q2": tuple("gfabc")}
INPUT = {query: list(docs) for query, docs in LISTS.items()}
QUERIES = {"q1": "which wood floats", "q2": "which stone sinks"}
TEXTS = {name: " ".join(Random(name).choices(WORDS, k=12)) for name in "abcdef"}
TEXTS["g"] = TEXTS["c"]
CANDIDATES = CandidateTexts(
    queries=tuple(LISTS),
    texts=tuple(QUERIES.values()),
    docs=tuple(LISTS.values()),
    passages=tuple(tuple((TEXTS[name],) for name in docs) for docs in LISTS.values()),
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
            LoggedCall(
                number=n, query=r["query"], ids=tuple(r["ids"]), prompt="", answer=r["answer"]
            )
            for n, r in enumerate(records, 1)
        ], run
    return [
        LoggedCall(number=n, query=None, ids=(), prompt=r["prompt"], answer=r["response"])
        for n, r in enumerate(records, 1)
    ], run


@given(st.randoms(use_true_random=False), st.booleans(), st.integers(1, 3))
def test_the_published_run_comes_back_rank_for_rank(chance: Random, ids: bool, step: int) -> None:
    def answer(query: str, passages: object) -> str:
        return chance.choice(ANSWERS).format(*chance.sample(range(1, 7), k=4))

    first, run = calls(answer, ids=ids, step=step)
    replay = replay_calls(first, CANDIDATES)
    assert (names(replay.published), replay.unmatched, replay.other_order) == (run, [], 0)
    for orders in (replay.model, replay.strict):
        assert {q: sorted(docs) for q, docs in names(orders).items()} == {
            q: sorted(docs) for q, docs in LISTS.items()
        }


def test_queries_may_alternate_and_log_of_two_runs_is_refused() -> None:
    first, run = calls(lambda query, passages: "[2] > [1] > [4] > [3]" if query == "q1" else "[4]")
    mixed = [first[n] for n in (0, 3, 1, 4, 2)]
    assert names(replay_calls(mixed, CANDIDATES).published) == run
    first, _ = calls(lambda query, passages: "[4] > [3] > [2] > [1]")
    again = [replace(logged_call, number=logged_call.number + len(first)) for logged_call in first]
    with pytest.raises(UserError, match=r"^the log holds several runs: call 6 ranks a query again"):
        replay_calls([*first, *again], CANDIDATES)


def test_without_rankings_nothing_is_decided_and_echo_keeps_order() -> None:
    first, run = calls(lambda query, passages: "4 passages are provided.")
    replay = replay_calls(first, CANDIDATES)
    assert {reply.kind for reply in replay.answers} == {OFF_FORMAT}
    assert all(reply.moved and not reply.echo for reply in replay.answers)
    assert names(replay.published) == run != INPUT
    assert names(replay.model) == INPUT
    strict = [tuple(replay_calls(first, CANDIDATES, seed=seed).strict[0]) for seed in range(200)]
    assert strict[0] == tuple(replay.strict[0])
    first = np.bincount([order[0] for order in strict], minlength=7) / 200
    assert first[:2] == pytest.approx([0.25, 0.25], abs=0.1), (
        "the first window is shuffled, whatever came first"
    )
    first, run = calls(
        lambda query, passages: (
            "4" if len(set(passages) & {"d", "e"}) == 2 else "[1] > [2] > [3] > [4]"
        )
    )
    replay = replay_calls(first, CANDIDATES)
    assert names(replay.published) == run != INPUT
    assert (
        sum(reply.echo for reply in replay.answers)
        == sum(reply.kind == OK for reply in replay.answers)
        > 0
    )
    assert names(replay.model) == INPUT


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
        [replace(call(prompt(QUERIES["q1"], texts)), answer=answer)], candidates
    )
    assert (rankings.answers[0].kind, rankings.model[0]) == (kind, order)
    assert rankings.strict[0][:2] == order[:2]


def test_unrelated_calls_are_counted_and_doubtful_ones_left_out() -> None:
    first, _ = calls(lambda query, passages: "[4] > [3] > [2] > [1]", ids=True)
    trimmed = replace(first[0], ids=("f", "a", "e"), answer="[2] > [1]")
    replay = replay_calls([trimmed, *first[3:]], CANDIDATES)
    assert (replay.other_order, replay.unmatched, replay.called) == (1, [], {0, 1})
    assert names(replay.published)["q1"] == list("abcdfeg"), "in the places that these three held"
    texts, _ = calls(lambda query, passages: "[4] > [3] > [2] > [1]")
    lost = replay_calls(
        [replace(texts[1], prompt=texts[1].prompt.replace(TEXTS["d"], TEXTS["a"]))], CANDIDATES
    )
    mismatch = Mismatch(kind="equal texts reordered")
    assert lost.unmatched == [UnmatchedCall(call=2, mismatch=mismatch)]


def test_call_that_shows_one_document_twice_is_left_out() -> None:
    texts, _ = calls(lambda query, passages: "[4] > [3] > [2] > [1]")
    # The first call shows d, e, f and g, whose text is that of c too.
    doubled = replace(texts[0], prompt=texts[0].prompt.replace(TEXTS["g"], TEXTS["d"]))
    (unmatched,) = replay_calls([doubled], CANDIDATES).unmatched
    assert unmatched.mismatch.kind == "repeated document"


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

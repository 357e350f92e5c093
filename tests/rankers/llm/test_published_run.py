"""Rankings are made anew from answers: the published one as it was, and strict ones in which prose decides nothing."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.rankers.llm.answers import MISSING, OFF_FORMAT, OK, REPEATED
from ranktilt.rankers.llm.log import LoggedCall
from ranktilt.rankers.llm.prompt_matching import CandidateTexts
from ranktilt.rankers.llm.published_run import UnmatchedCall, replay_calls
from tests.rankers.llm.logged import WORDS, Answer, logged
from tests.refusals import refused

LISTS = {"q1": tuple("abcdefg"), "q2": tuple("gfabc")}
QUERIES = {"q1": "which wood floats", "q2": "which stone sinks"}
TEXTS = {one: " ".join(Random(one).choices(WORDS, k=12)) for one in "abcdef"}
TEXTS["g"] = TEXTS["c"]
CANDIDATES = CandidateTexts(
    tuple(LISTS), tuple(QUERIES.values()), tuple(LISTS.values()),
    tuple(tuple((TEXTS[one],) for one in docs) for docs in LISTS.values()),
)  # fmt: skip
SAID = (
    "[{}] > [{}] > [{}] > [{}]", "{}] > [{}]", "20 passages are provided.", "{} passages will be listed.", "[] > []",
    "1. [{}] > 2. [{}]", "I cannot rank these.", "", "[1] > [2] > [3] > [4]",
)  # fmt: skip


def names(orders: list[list[int]]) -> dict[str, list[str]]:
    return {query: [docs[n] for n in order] for (query, docs), order in zip(LISTS.items(), orders, strict=True)}


def calls(answer: Answer, *, ids: bool = False, step: int = 2) -> tuple[list[LoggedCall], dict[str, list[str]]]:
    records, run = logged(LISTS, QUERIES, TEXTS, answer, ids=ids, step=step)
    found = [
        LoggedCall(n, one.get("query"), tuple(one.get("ids", ())), one.get("prompt", ""), one[key])
        for key in ["answer" if ids else "response"]
        for n, one in enumerate(records, start=1)
    ]
    return found, run


@given(st.randoms(use_true_random=False), st.booleans(), st.integers(1, 3))
def test_the_published_run_comes_back_rank_for_rank(chance: Random, ids: bool, step: int) -> None:
    def answer(query: str, shown: object) -> str:
        return chance.choice(SAID).format(*chance.sample(range(1, 7), k=4))

    found, run = calls(answer, ids=ids, step=step)
    made = replay_calls(found, CANDIDATES)
    assert (names(made.published), made.unmatched, made.other_order) == (run, [], 0)
    for orders in (made.model, made.strict):
        assert {q: sorted(docs) for q, docs in names(orders).items()} == {q: sorted(docs) for q, docs in LISTS.items()}


def test_calls_of_several_queries_may_alternate() -> None:
    found, run = calls(lambda query, shown: "[2] > [1] > [4] > [3]" if query == "q1" else "[4]")
    mixed = [found[n] for n in (0, 3, 1, 4, 2)]
    assert names(replay_calls(mixed, CANDIDATES).published) == run


def test_without_rankings_nothing_is_decided() -> None:
    found, run = calls(lambda query, shown: "4 passages are provided.")
    made = replay_calls(found, CANDIDATES)
    assert {one.kind for one in made.answers} == {OFF_FORMAT}
    assert all(one.moved and not one.echo for one in made.answers)
    assert names(made.published) == run != LISTS
    assert names(made.model) == {query: list(docs) for query, docs in LISTS.items()}
    strict = [tuple(replay_calls(found, CANDIDATES, seed=seed).strict[0]) for seed in range(200)]
    assert strict[0] == tuple(made.strict[0])
    first = np.bincount([order[0] for order in strict], minlength=7) / 200
    assert first[:2] == pytest.approx([0.25, 0.25], abs=0.1), "the first window is shuffled, whatever came first"


def test_an_echo_leaves_the_input_order_whatever_the_parser_did_before() -> None:
    found, run = calls(lambda query, shown: "4" if len(set(shown) & {"d", "e"}) == 2 else "[1] > [2] > [3] > [4]")
    made = replay_calls(found, CANDIDATES)
    assert names(made.published) == run != {query: list(docs) for query, docs in LISTS.items()}
    assert sum(one.echo for one in made.answers) == sum(one.kind == OK for one in made.answers) > 0
    assert names(made.model) == {query: list(docs) for query, docs in LISTS.items()}


def test_what_an_answer_leaves_out_follows_and_what_it_repeats_counts_once() -> None:
    only = {"q1": LISTS["q1"][:4]}
    few = CandidateTexts(("q1",), (QUERIES["q1"],), (only["q1"],), (CANDIDATES.passages[0][:4],))
    for answer, kind, order in (
        ("[3] > [2]", MISSING, [2, 1, 0, 3]),
        ("[4] > [1] > [4] > [2]", REPEATED, [3, 0, 1, 2]),
    ):
        records, _ = logged(only, QUERIES, TEXTS, lambda query, shown, said=answer: said)  # type: ignore[misc]
        made = replay_calls([LoggedCall(1, None, (), records[0]["prompt"], records[0]["response"])], few)
        assert (made.answers[0].kind, made.model[0]) == (kind, order)
        assert made.strict[0][:2] == order[:2]


def test_a_log_of_two_runs_is_refused() -> None:
    found, _ = calls(lambda query, shown: "[4] > [3] > [2] > [1]")
    again = [one._replace(number=one.number + len(found)) for one in found]
    with refused(
        "call 6 of the log ranks a query again from its first order: it holds several runs; give each a log of its own"
    ):
        replay_calls([*found, *again], CANDIDATES)


def test_calls_that_do_not_follow_are_counted_and_those_in_doubt_left_out() -> None:
    found, _ = calls(lambda query, shown: "[4] > [3] > [2] > [1]", ids=True)
    other = found[0]._replace(ids=("f", "a", "e"), answer="[2] > [1]")
    made = replay_calls([other, *found[3:]], CANDIDATES)
    assert (made.other_order, made.unmatched, made.called) == (1, [], {0, 1})
    assert names(made.published)["q1"] == list("abcdfeg"), "in the places that these three held"
    texts, _ = calls(lambda query, shown: "[4] > [3] > [2] > [1]")
    lost = replay_calls([texts[1]._replace(prompt=texts[1].prompt.replace(TEXTS["d"], TEXTS["a"]))], CANDIDATES)
    assert lost.unmatched == [
        UnmatchedCall(2, "shows passages of equal text in another order than the calls before it leave")
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["rankvicuna7b-aug-top100", "rankvicuna7b-aug-top20", "vicuna13b-top100", "vicuna7bv15-top100"]
)
def test_published_runs_of_rank_llm_come_back_rank_for_rank(shared_data: Path, name: str) -> None:
    from ranktilt.auditing.replay_log import log_runs
    from ranktilt.datasets.rank_llm import read_candidates
    from ranktilt.run import Run

    collection, candidates = read_candidates(shared_data / "dl19" / "candidates-bm25.json")
    folder = shared_data / "rank-llm-logs"
    found = log_runs(folder / f"bm25-{name}.json.gz", candidates, collection)
    stored = Run.load(folder / f"bm25-{name}.trec", score_order="rank").frame()
    ours = found.runs["published"].frame()
    assert (
        ours.select("query_id", "doc_id", "rank")
        .sort("query_id", "rank")
        .equals(stored.select("query_id", "doc_id", "rank").sort("query_id", "rank"))
    )
    kinds = [one.kind for one in found.rankings.answers]
    assert len(kinds) == (43 if name.endswith("top20") else 387)
    assert not found.rankings.unmatched
    assert (kinds.count(OFF_FORMAT) >= 0.95 * len(kinds)) == (name == "vicuna13b-top100")
    assert (sum(one.echo for one in found.rankings.answers) >= 0.9 * len(kinds)) == (name == "vicuna7bv15-top100")

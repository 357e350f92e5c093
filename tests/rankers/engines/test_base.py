"""Live engines, any of them through a function: their order is authoritative, and nothing that goes
wrong is silent.
"""

import functools
import math
import re
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.request import urlopen
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Collection, UserError, audit, ranker
from ranktilt.auditing.options import CHOICES
from ranktilt.errors import DataWarning
from ranktilt.rankers.engines.base import Ask, LiveEngine, strictly_falling_scores
from ranktilt.rankers.engines.calls import EngineReply, Hits, ask_engine
from ranktilt.rankers.engines.function import Engine
from tests.llm.drip import Drip
from tests.rankers.contract import entries, ids, with_queries
from tests.refusals import refused
from tests.toy import QUERIES, collection_of, toy, write, write_cocktail

Answer = Callable[[str, int], Any]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktilt.rankers.engines.calls.PAUSES", (0.0, 0.0))


@dataclass(frozen=True)
class Fake(LiveEngine):
    name: ClassVar[str] = "fake"
    answer: Answer = field(repr=False)

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[tuple[Ask, dict[str, str]]]:
        yield self.answer, {"engine": "fake"}

    def __repr__(self) -> str:
        return "fake"


@contextmanager
def data_warnings() -> Iterator[list[str]]:
    """Collect the data warnings; any other is an error."""
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", DataWarning)
        yield lines
    lines += [str(warning.message) for warning in caught]
    assert {warning.filename for warning in caught} <= {__file__}, (
        "a warning points at who called rank"
    )


GOOD = [("d2-llm", 3.0), ("d1-human", 2.0), ("d3-llm", 1.0)]


def test_each_query_is_asked_by_its_text_and_the_engines_order_and_scores_are_kept() -> None:
    calls = []

    def answer(query: str, k: int) -> list[tuple[str, float]]:
        calls.append((query, k))
        return GOOD

    run = Fake(answer=answer, k=3).rank(toy())
    assert run.queries == ("q1", "q2", "q3")
    assert entries(run) == dict.fromkeys(QUERIES, GOOD)
    assert sorted(calls) == sorted((text, 3) for text in QUERIES.values())
    assert run.spec == {
        "ranker": "fake",
        "ranktilt": run.spec["ranktilt"],
        "collection": None,
        "engine": "fake",
    }
    any_pairs = ([np.str_("d1-human"), np.float32(1)], ["d2-llm", np.int64(0)])
    run = Fake(answer=lambda query, k: any_pairs, k=2).rank(toy())
    assert entries(run)["q1"] == [("d1-human", 1.0), ("d2-llm", 0.0)]


def test_what_is_odd_is_counted_and_told_in_one_line() -> None:
    for hits, order, line, counts in (
        (
            "d1-human 2 d2-human 1 d1-human 0.5",
            "d1-human d2-human",
            "is already in the same answer",
            "duplicates",
        ),
        (
            "d1-human 2 d9 1.5 d2-human 1",
            "d1-human d9",
            "ranks are kept (first: 'd9' for query 'q1')",
            "unknown",
        ),
        (
            "d1-human 2 d2-human nan",
            "d1-human d2-human",
            "a score that is not a finite number",
            "not_finite",
        ),
        (
            "d1-human 2 d2-human 7",
            "d1-human d2-human",
            "a higher score than the result before",
            "rising",
        ),
        ("d2-llm 1 d2-human 1", "d2-llm d2-human", "", "tied"),
    ):
        words = hits.split()
        pairs = list(zip(words[::2], map(float, words[1::2]), strict=True))
        with data_warnings() as lines:
            run = Fake(answer=lambda query, k, pairs=pairs: pairs, k=2).rank(toy())
        assert ids(run)["q2"] == order.split()
        assert [line in warning for warning in lines] == [True] * bool(line)
        assert run.spec["answers"] == {counts: 3}
    with data_warnings() as lines:
        run = Fake(answer=lambda query, k: GOOD, k=5).rank(many(12))
    assert run.spec["answers"] == {"fewer": 12}
    assert lines == [
        "fake: no query got more than 3 of the 5 documents requested, as if the engine cuts there"
    ]
    sizes = {text: n for n, text in enumerate(QUERIES.values())}
    run = Fake(answer=lambda query, k: GOOD[: sizes[query]]).rank(toy())
    assert [len(ranked) for ranked in entries(run).values()] == [0, 1, 2]
    assert run.spec["answers"] == {"fewer": 3, "empty": 1}


def many(n: int) -> Collection:
    return with_queries({f"q{i}": f"words {i}" for i in range(n)}, [f"q{i}" for i in range(n)])


def failing(*texts: str) -> Answer:
    def answer(query: str, k: int) -> list[tuple[str, float]]:
        if query in texts:
            raise ConnectionError(f"no line for {query}" if len(texts) < 3 else "no line")
        return GOOD

    return answer


def test_a_failed_query_is_left_out_and_told_of_and_an_engine_that_never_answers_given_up() -> None:
    with data_warnings() as lines:
        run = Fake(answer=failing("words 7", "words 30"), k=3).rank(many(40))
    assert run.queries == tuple(f"q{i}" for i in range(40) if i not in (7, 30))
    assert all(entries(run).values())
    reasons = {f"q{i}": f"ConnectionError: no line for words {i}" for i in (7, 30)}
    assert run.spec["failed"] == reasons
    assert lines == [
        f"fake: 2 of 40 queries failed and are not in the run (first: 'q7': {reasons['q7']})"
    ]
    message = "fake: 3 of 3 queries failed, max_failures=100 % allows 40 of 40: 'q2': Connection"
    with pytest.raises(UserError, match=message):
        Fake(
            answer=failing(*(f"words {i}" for i in range(40))), max_failures=100, concurrency=1
        ).rank(many(40))


@pytest.mark.parametrize(
    ("percentage", "allowed"), [(0.0, 0), (2.4, 0), (500 / 40 - 1e-10, 5)]
)  # an eighth, in floats
def test_as_many_failures_as_allowed_make_a_run_and_one_more_none(
    percentage: float, allowed: int
) -> None:
    texts = [f"words {i}" for i in range(10, 11 + allowed)]
    engine = Fake(answer=failing(*texts), max_failures=percentage, concurrency=1, k=3)
    failed = (
        f"{allowed + 1} of {11 + allowed} queries failed, max_failures={percentage:g} % allows "
        f"{allowed} of 40: 'q1"
    )
    with pytest.raises(UserError, match=f"^fake: {failed}"):
        engine.rank(many(40))
    with data_warnings():
        assert (
            len(replace(engine, answer=failing(*texts[1:])).rank(many(40)).queries) == 40 - allowed
        )


def replies(ask: Callable[[int], Hits], total: int, concurrency: int = 4) -> list[EngineReply]:
    return sorted(ask_engine(ask, total, concurrency), key=lambda reply: reply.number)


def test_each_question_is_answered_once_as_many_at_once_as_allowed_and_failures_are_repeated() -> (
    None
):
    """The first call is alone, so that a client that it makes is there for the others."""
    full, clients = threading.Barrier(4), []  # passed only by four at once

    @functools.cache
    def client() -> Hits:
        clients.append(1)
        time.sleep(0.2)  # as long as others could begin, and make one of their own
        return GOOD

    def ask(number: int) -> Hits:
        if number:
            full.wait(timeout=20)
        return client()

    assert replies(ask, 17) == [EngineReply(number=number, hits=GOOD) for number in range(17)]
    assert len(clients) == 1
    assert [reply.number for reply in replies(lambda number: GOOD, 3, 50)] == [0, 1, 2]
    assert replies(ask, 0) == []
    calls = Counter[int]()

    def ask(number: int) -> Hits:
        calls[number] += 1
        if calls[number] <= number:
            raise SystemExit if number == 4 else ConnectionError("not\n   yet " + "z" * 300)
        return GOOD

    failures = [reply.failure for reply in replies(ask, 5)]
    assert failures == ["", "", "", "ConnectionError: not yet " + "z" * 174 + "…", "SystemExit"]
    assert calls == {0: 1, 1: 2, 2: 3, 3: 3, 4: 3}


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        (
            [("7", 1.0), ("8", 0.5)],
            "fake: no overlap: none of its 2 documents is in the collection .first: '7'",
        ),
        ([("d1-human", 1.0), ("d2", 0.5)], "several sources share document id 'd2'"),
        ([], "fake: no query returned any document; is the index empty"),
        (None, r"fake: query 'q.': expected a list of \(document id, score\), got None"),
        ([("d1", 1.0), ("d2",)], r"got \('d2',\)"),
        ([(7.0, 1.0)], r"got \(7.0, 1.0\)"),
        ([(True, 1.0)], r"got \(True, 1.0\)"),
        ([(None, 1.0)], r"got \(None, 1.0\)"),
        (["d1"], "got 'd1'"),
        ([("d1", True)], r"got \('d1', True\)"),
    ],
)
def test_answers_that_say_nothing_of_the_collection_are_refused(hits: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Fake(answer=lambda query, k: hits).rank(toy())


def test_ids_of_vector_stores_may_be_numbers() -> None:
    key = UUID(int=5)
    docs = [
        {"id": name, "text": f"text {name}", "source": "human"} for name in ("7", "8", str(key))
    ]
    collection = collection_of(docs, {"q1": "text"}, {"q1": {"7": 1}})
    points = {"result": [{"id": 7, "score": 2.0}, {"id": str(key), "score": 1.0}], "status": "ok"}
    for answer in ([(7, 2.0), (key, 1.0)], [(np.int64(7), 2.0), (key, 1.0)], {**points, "time": 1}):
        run = Fake(answer=lambda query, k, answer=answer: answer, k=2).rank(collection)
        assert run.frame()["doc_id"].to_list() == ["7", str(key)]


INF = math.inf
UP, DOWN = 1 + 2.0**-23, 1 - 2.0**-24
"""The neighbours of 1 in float32, in which trec_eval compares scores."""
LARGEST = float(np.finfo(np.float64).max)


@given(
    st.lists(
        st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, -0.0, 1.0]),
        max_size=30,
    )
)
def test_scores_are_made_finite_and_to_fall_and_stay_where_they_do(scores: list[float]) -> None:
    falling_scores = strictly_falling_scores(scores)
    assert len(falling_scores) == len(scores)
    assert np.isfinite(falling_scores).all()
    assert (np.diff(falling_scores.astype(np.float32)) < 0).all()
    finite = sorted(
        {float(np.float32(score)) for score in scores if abs(score) < 1e30}, reverse=True
    )
    assert strictly_falling_scores(finite).tolist() == finite


NAN = math.nan
DISTANCES = [("d2-llm", 0.1), ("d1-human", 0.4), ("d3-llm", 0.7)]


def test_distances_are_refused_until_the_order_is_named() -> None:
    engine = Fake(answer=lambda query, k: DISTANCES, k=3)
    message = (
        "fake: the scores rise along the given order in 3 of 3 lists; say how to order the results "
        "with score_order=ascending (smaller is better, …"
    )
    with refused(message):
        engine.rank(toy())
    ascending, by_rank = (
        replace(engine, score_order=order).rank(toy()) for order in ("ascending", "rank")
    )
    assert entries(ascending)["q1"] == [("d2-llm", -0.1), ("d1-human", -0.4), ("d3-llm", -0.7)]
    assert ids(by_rank) == ids(ascending)
    assert (ascending.spec["score_order"], by_rank.spec["score_order"]) == ("ascending", "rank")
    with refused(
        "fake: the scores fall along the given order in 3 of 3 lists, so smaller is hardly "
        "better; …"
    ):
        replace(engine, answer=lambda query, k: GOOD, score_order="ascending").rank(toy())
    with refused(
        "fake: no result has a finite number as score; say how to order the results with "
        "score_order=ascending (smaller is better, …"
    ):
        replace(engine, answer=lambda query, k: [(name, NAN) for name, _ in GOOD]).rank(toy())
    with data_warnings() as lines:
        assert ids(replace(engine, score_order="score").rank(toy()))["q1"] == [
            "d2-llm",
            "d1-human",
            "d3-llm",
        ]
    assert "6 results with a higher score than the result before" in lines[0]
    with refused("unknown score_order of fake 'up' (valid: score, ascending, rank)"):
        replace(engine, score_order="up")


def response(**signs: Any) -> dict[str, Any]:
    return {**signs, "hits": {"hits": [{"_id": name, "_score": score} for name, score in GOOD]}}


class ClientResponse:
    """A response of Elasticsearch's client, which holds the JSON in an attribute."""

    def __init__(self, body: Any) -> None:
        self.body = body


def test_engine_may_answer_with_its_response_and_a_partial_one_fails() -> None:
    for answer in (response(timed_out=False), ClientResponse(response())):
        run = Fake(answer=lambda query, k, answer=answer: answer, k=3).rank(toy())
        assert entries(run) == dict.fromkeys(QUERIES, GOOD)

    def answer(query: str, k: int) -> Any:
        return response(
            timed_out=query == "words 7", _shards={"total": 2, "successful": 2, "failed": 0}
        )

    with data_warnings() as lines:
        run = Fake(answer=answer, k=3).rank(many(40))
    assert run.spec["failed"] == {"q7": "timed out"}
    assert lines == ["fake: 1 of 40 queries failed and are not in the run (first: 'q7': timed out)"]
    error = {"error": {"type": "es_rejected_execution_exception", "reason": None}, "status": 429}
    with pytest.raises(UserError, match=r"'q.': es_rejected_execution_exception \(status 429\)"):
        Fake(answer=lambda query, k: error).rank(toy())


def test_a_query_does_not_find_itself_and_still_gets_its_depth() -> None:
    depths = []

    def answer(query: str, k: int) -> list[tuple[str, float]]:
        depths.append(k)
        return [(f"a{n}", 9.0 - n) for n in range(k)]

    docs = [{"id": f"a{n}", "text": f"words {n}"} for n in range(4)]
    collection = collection_of(
        docs, {"a0": "words 0", "a1": "words 1"}, {"a0": {"a1": 1}, "a1": {"a0": 1}}
    )
    run = Fake(answer=answer, k=2).rank(collection)
    assert depths == [3, 3]
    assert entries(run) == {"a0": [("a1", 8.0), ("a2", 7.0)], "a1": [("a0", 9.0), ("a2", 7.0)]}
    assert run.spec["own_documents_dropped"] == 2
    assert entries(Fake(answer=answer, k=1, exclude_self=False).rank(collection))["a0"] == [
        ("a0", 9.0)
    ]
    with pytest.raises(UserError, match="fake queries an engine and cannot re-rank; put it first"):
        Fake(answer=answer).rank(collection, run)


def test_ties_stay_in_an_engines_order_and_scores_fall_with_the_rank() -> None:
    tied = [("d1-human", 1.0), ("d2-llm", 1.0), ("d3-llm", 1.0)]
    run = Fake(answer=lambda query, k: tied, k=3).rank(toy())
    values = [
        audit(toy(), run, ["nDCG@1", "RR@10"], ties=ties, resamples=100).values
        for ties in CHOICES["ties"]
    ]
    assert values[0] == pytest.approx(values[1], nan_ok=True)
    for given_scores, expected in (
        ([1.0, 1.0, 0.5], [1.0, DOWN, 0.5]),
        ([1.0, 2.0, 0.5], [1.0, DOWN, 0.5]),
        ([1.0, NAN, 0.5], [1.0, DOWN, 0.5]),
        ([1.0, INF, -INF], [1.0, DOWN, 1 - 2.0**-23]),
        ([NAN, 1.0, 0.0], [UP, 1.0, 0.0]),
        ([NAN, INF, NAN], [0, -1, -2]),
        ([-LARGEST, 5.0], [0, -1]),
    ):
        assert strictly_falling_scores(given_scores).tolist() == expected


Module = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Write a module into the current folder; its name is another each time, because Python keeps
    modules.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def make(code: str) -> str:
        name = f"engine_{tmp_path.name}".replace("-", "_")
        write(tmp_path / f"{name}.py", code)
        return name

    return make


WORDS = """
DOCUMENTS = {"d1-human": "red apples grow", "d2-llm": "river water", "d3-llm": "old red clock"}

def search(query, k):
    words = set(query.split())
    scored = [(len(words & set(text.split())), name) for name, text in DOCUMENTS.items()]
    return [(name, score) for score, name in sorted(scored, reverse=True) if score][:k]
"""


def test_a_module_of_the_current_folder_is_asked(module: Module) -> None:
    name = module(WORDS)
    engine = ranker(f"engine:{name}:search(concurrency=2)@2")
    assert repr(engine) == f"engine:{name}:search(concurrency=2)@2"
    assert engine == Engine(f"{name}:search", concurrency=2, k=2)
    collection = with_queries(
        {"b": "red apples", "empty": "", "unjudged": "old", "a": "old clock"}, ["a", "b", "empty"]
    )
    run = engine.rank(collection)
    assert ids(run) == {"b": ["d1-human", "d3-llm"], "empty": [], "a": ["d3-llm"]}
    assert engine.rank(collection) == run
    assert (run.name, run.spec["ranker"], run.spec["function"]["file"]) == (
        repr(engine),
        repr(engine),
        f"{name}.py",
    )
    assert len(run.spec["function"]["sha256"]) == 64


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def serch(query, k): ...", "AttributeError: module 'MODULE' has no attribute 'search'"),
        ("search = 3", "engine:MODULE:search: expected a function search(query, k), got 3"),
        ("import no_such_client", "ModuleNotFoundError: No module named 'no_such_client'"),
        ("def search(query, k: return", "SyntaxError: "),
    ],
)
def test_a_module_that_cannot_be_used_is_refused(module: Module, code: str, message: str) -> None:
    name = module(code)
    for act in (Engine(f"{name}:search").check, lambda: Engine(f"{name}:search").rank(toy())):
        with pytest.raises(UserError, match=re.escape(message.replace("MODULE", name))):
            act()


def test_the_command_line_ends_though_the_engine_hangs(tmp_path: Path) -> None:
    write_cocktail(tmp_path / "toy")
    hang = (
        "import threading\n\ndef search(query, k):\n"
        "    threading.Event().wait() if 'clock' in query else 1 / 0\n"
    )
    write(tmp_path / "mine.py", hang)
    code = "from ranktilt.cli.main import main; main()"
    command = [
        sys.executable,
        "-c",
        code,
        "audit",
        "toy",
        "-r",
        "engine:mine:search@2",
        "--save",
        "out",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, "ZeroDivisionError" in done.stderr) == (2, True)


def test_an_engine_that_drips_is_waited_for_no_longer_than_the_time_limit() -> None:
    with Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n") as server:

        def answer(query: str, k: int) -> list[tuple[str, float]]:
            if query in ("words 7", "words 8"):
                with urlopen(server.url, timeout=20) as response:  # which is a limit for each byte
                    response.read()
            return GOOD

        with data_warnings() as lines:
            run = Fake(answer=answer, k=3, timeout=1.5, concurrency=2).rank(many(40))
        assert run.spec["failed"] == dict.fromkeys(["q7", "q8"], "no answer within 1.5 s")
        assert len(run.queries) == 38
        assert lines == [
            "fake: 2 of 40 queries failed and are not in the run (first: 'q7': no answer within "
            "1.5 s)"
        ]
        with pytest.raises(UserError, match=r"'q[01]': no answer within 0\.5 s"):
            Fake(answer=lambda query, k: answer("words 7", k), timeout=0.5, concurrency=2).rank(
                many(9)
            )
    with refused("fake: expected timeout of at least 0.001, got 0"):
        Fake(answer=answer, timeout=0)


class TestRepeats:
    def answers(self) -> Answer:
        """Each call puts another document first."""
        calls = iter(range(1000))

        def answer(query: str, k: int) -> list[tuple[str, float]]:
            turn = next(calls) % 2
            names = ["d1-human", "d1-llm"]
            return [(names[turn], 2.0), (names[1 - turn], 1.0)]

        return answer

    def test_every_query_is_asked_so_often(self) -> None:
        calls = Counter[str]()

        def answer(query: str, k: int) -> list[tuple[str, float]]:
            calls[query] += 1
            return [("d1-human", 1.0)]

        run = Fake(answer=answer, repeats=3).rank_repeats(toy())
        assert len(run.repeats) == 2
        assert set(calls.values()) == {3}
        assert [repeat.spec["repeat"] for repeat in (run, *run.repeats)] == [1, 2, 3]

    def test_repeats_hold_their_own_answers(self) -> None:
        engine = Fake(answer=self.answers(), repeats=2, concurrency=1)
        run = engine.rank_repeats(toy())
        (second,) = run.repeats
        # Three queries a round: the first one of the second round is asked in the fourth call.
        assert run.frame()["doc_id"][0] == "d1-human"
        assert second.frame()["doc_id"][0] == "d1-llm"

    def test_only_audits_ask_several_times(self) -> None:
        with refused("fake: only audit and rank ask an engine several times; omit repeats=2"):
            Fake(answer=self.answers(), repeats=2).rank(toy())

    def test_warning_of_a_failure_names_its_repeat(self) -> None:
        calls = Counter[str]()

        def answer(query: str, k: int) -> Any:
            calls[query] += 1
            shards = {"total": 2, "successful": 2, "failed": 0}
            is_second = calls["words 0"] == 2  # the engine asks again for a failed query
            return response(timed_out=query == "words 7" and is_second, _shards=shards)

        with data_warnings() as lines:
            run = Fake(answer=answer, k=3, repeats=3, concurrency=1).rank_repeats(many(40))
        reason = "1 of 40 queries failed and are not in the repeat (first: 'q7': timed out)"
        assert lines == [f"fake, repeat 2: {reason}"]
        assert ["q7" in repeat.queries for repeat in (run, *run.repeats)] == [True, False, True]

    def test_audit_averages_them(self) -> None:
        run = Fake(answer=self.answers(), repeats=4, concurrency=1).rank_repeats(toy())
        result = audit(toy(), run, "nDCG@10", resamples=100)
        assert result.repeat_count(result.runs[0]) == 4

    @pytest.mark.parametrize("repeats", [0, 1001])
    def test_number_out_of_range(self, repeats: int) -> None:
        with refused(f"fake: expected repeats of 1 to 1000, got {repeats}"):
            Fake(answer=self.answers(), repeats=repeats)

    def test_repeats_in_a_text(self) -> None:
        assert repr(ranker("engine:m:f(repeats=5)@10")) == "engine:m:f(repeats=5)@10"

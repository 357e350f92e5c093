"""Whatever a server says beside an answer, the answer is kept, all others too, and the journal can
be read again.
"""

import copy
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.generation.answer.answer import answer
from ranktilt.generation.answer.save import save_answered
from ranktilt.generation.settings import Answering
from ranktilt.judging.grading.grading import grade
from ranktilt.llm.base import Answer, Failure, llm
from ranktilt.llm.journal import JOURNAL, Journal, journalled
from ranktilt.llm.responses import error_text
from ranktilt.llm.untrusted import plain_line, whole_number
from ranktilt.rankers.llm.pointwise import Pointwise
from tests.llm.echo import COLD, Echo, requests
from tests.llm.server import Raw, Server
from tests.rankers.llm.judge import worths
from tests.toy import collection_of, toy

TEXT = "It is so."
RESPONSE: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny",
    "system_fingerprint": "fp",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": TEXT, "refusal": None},
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": TEXT, "logprob": -0.5, "bytes": None}]},
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}
DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]
STRANGE: list[Any] = [
    None,
    True,
    False,
    -1,
    3,
    5.0,
    5.5,
    1e308,
    2**70,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "5",
    "x" * 3_000,
    "half \ud83d",
    "\x1b[31m\x00\u202e",
    "two\nlines",
    [],
    {},
    [[]],
    ["a", 1, None],
    {"a": 1},
    [{"role": []}],
    DEEP,
]
REMOVED = object()


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all fields and elements, the whole one first."""
    yield path
    names: Iterable[Any] = ()
    if isinstance(value, dict):
        names = value
    elif isinstance(value, list):
        names = range(len(value))
    for name in names:
        yield from spots(value[name], (*path, name))


def replaced(path: tuple[Any, ...], value: Any, content: Any = RESPONSE) -> Any:
    """The response, or other content, with another value at a path."""
    if not path:
        return value
    response = copy.deepcopy(content)
    inside: Any = response
    for name in path[:-1]:
        inside = inside[name]
    if value is REMOVED:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return response


def strange_responses() -> list[Raw]:
    """Responses with each field in turn replaced by each strange value, or gone."""
    values = [*STRANGE, REMOVED]
    changes = [
        (path, value)
        for path in spots(RESPONSE)
        for value in values
        if path or value is not REMOVED
    ]
    return [Raw(200, json.dumps(replaced(path, value))) for path, value in changes]


DECIDING = [
    (),
    ("choices",),
    ("choices", 0),
    ("choices", 0, "message"),
    ("choices", 0, "message", "content"),
]
"""What an answer cannot be without."""


def questions(count: int) -> Collection:
    queries = {f"q{number}": f"question {number}" for number in range(count)}
    return collection_of(
        [{"id": "d1", "text": "a text"}], queries, {name: {"d1": 1} for name in queries}
    )


@pytest.mark.filterwarnings(
    "ignore::ranktilt.errors.DataWarning"
)  # of models that were not asked for
@pytest.mark.long
def test_no_field_of_a_response_locks_the_answers_in(tmp_path: Path) -> None:
    hostile = strange_responses()
    script = [
        response for pair in zip([None] * len(hostile), hostile, strict=True) for response in pair
    ]
    collection, answering = questions(len(script)), Answering(attempts=1)
    with Server(answer=lambda messages, _: TEXT, script=script) as server:
        model = llm("openai:tiny", base_url=server.url, retries=0, concurrency=1)
        first = answer(collection, model, answering, journal=Journal(tmp_path / "journal"))
        save_answered(first, tmp_path / "first")
        assert len(server.requests) == len(script)
        again = answer(collection, model, answering, journal=Journal(tmp_path / "journal"))
        save_answered(again, tmp_path / "again")
    read = first.answers.height
    assert len(server.requests) == 2 * len(script) - read, "nothing was paid for twice"
    assert again.answers.height == len(script), "and what was no answer was asked again"
    assert (again.answers["answer"] == TEXT).sum() >= len(script) - len(DECIDING) * (
        len(STRANGE) + 1
    )
    assert read >= len(script) - len(DECIDING) * (len(STRANGE) + 1)
    counts = first.answers.select("prompt_tokens", "completion_tokens").unique().rows()
    assert {type(count) for row in counts for count in row} == {int, type(None)}
    assert "".join(
        again.answers["model"].to_list() + again.answers["finish"].to_list()
    ).isprintable()


def test_every_ranker_and_judge_goes_on_after_a_strange_answer(own_cache: Path) -> None:
    spoilt = [
        ("choices", 0, "logprobs"),
        ("choices", 0, "logprobs", "content"),
        ("choices", 0, "finish_reason"),
    ]
    script = [
        Raw(200, json.dumps(replaced(path, value)))
        for path in spoilt
        for value in (None, "x", 2**70, [None])
    ]
    script = [
        response
        for pair in zip([None] * 3 * len(script), script * 3, strict=True)
        for response in pair
    ]
    for _ in range(2):
        with Server(answer=lambda messages, _: "Yes", script=script) as server:
            ranker = Pointwise(
                "openai:tiny", base_url=server.url, retries=0, concurrency=1, max_failures=100
            )
            run = ranker.rank(*worths(12))
            assert sum(run.spec["llm_answers"]["kinds"].values()) == 24
            model = llm("openai:tiny", base_url=server.url, retries=0, concurrency=1)
            assert grade(toy(), model).counts.pairs == 10


POISONED = {
    "counts": {"prompt_tokens": 5.0, "completion_tokens": "7"},
    "endless counts": {"prompt_tokens": float("nan"), "completion_tokens": 2**70},
    "halves": {
        "model": "tiny \ud83d",
        "finish": "\ud83d",
        "revision": "fp\ud83d",
        "text": "ONE \ud83d",
    },
    "controls": {"model": "tiny\x1b[31m\x00", "finish": "stop\n"},
    "types": {"model": None, "finish": 3, "revision": [], "logprobs": "x", "tokens": {}},
    "likelihoods": {"logprobs": [-0.5, None], "tokens": ["a", 3]},
}
CLEANED = {
    "counts": {"prompt_tokens": 5, "completion_tokens": None},
    "endless counts": {"prompt_tokens": None, "completion_tokens": None},
    "halves": {"model": "tiny ?", "finish": "?", "revision": "fp?", "text": "ONE ?"},
    "controls": {"model": "tiny?[31m?", "finish": "stop"},
    "types": {"model": "", "finish": "stop", "revision": None, "logprobs": None, "tokens": None},
    "likelihoods": {"logprobs": None, "tokens": None},
}


def change_stored(folder: Path, text: str, change: dict[str, Any] | str | None) -> None:
    """Put other fields, or another text, in place of those of one stored answer."""
    with closing(sqlite3.connect(folder / JOURNAL)) as db, db:
        for key, stored in db.execute("SELECT key, answer FROM answers").fetchall():
            fields = json.loads(stored)
            if fields["text"] == text:
                new = json.dumps(fields | change) if isinstance(change, dict) else change
                db.execute("UPDATE answers SET answer = ? WHERE key = ?", (new, key))


@pytest.mark.parametrize("name", POISONED)
def test_a_poisoned_journal_recovers(tmp_path: Path, name: str) -> None:
    with Journal(tmp_path) as journal:
        list(journalled(Echo(), requests("one", "two"), journal, sampling=COLD))
    change_stored(tmp_path, "ONE", POISONED[name])
    idle = Echo()
    with Journal(tmp_path) as journal:
        replies = list(journalled(idle, requests("one", "two"), journal, sampling=COLD))
    assert idle.asked_texts == []
    answers = {reply.number: reply.answer for reply in replies}
    assert answers[0] is not None
    assert {field: getattr(answers[0], field) for field in CLEANED[name]} == CLEANED[name]


@pytest.mark.parametrize("stored", ["", "[", "[]", "3", "{}", '{"text": 5}', "[" * 100_000, None])
def test_a_stored_answer_that_cannot_be_read_is_asked_again_once(
    tmp_path: Path, stored: str | None
) -> None:
    with Journal(tmp_path) as journal:
        list(journalled(Echo(), requests("one", "two"), journal, sampling=COLD))
    change_stored(tmp_path, "ONE", stored)
    for expected in (["one"], []):
        echo = Echo()
        with Journal(tmp_path) as journal:
            replies = list(journalled(echo, requests("one", "two"), journal, sampling=COLD))
        assert echo.asked_texts == expected
        assert sorted(reply.answer.text for reply in replies if reply.answer) == ["ONE", "TWO"]


def test_values_of_a_server_are_read_one_by_one() -> None:
    numbers = [
        (5, 5),
        (5.0, 5),
        (0, 0),
        (2**53, 2**53),
        (2**53 + 1, None),
        (-1, None),
        (5.5, None),
        (True, None),
    ]
    numbers += [("5", None), (None, None), (float("nan"), None), (float("inf"), None), ([], None)]
    assert [(value, whole_number(value)) for value, _ in numbers[:10]] == numbers[:10]
    assert [whole_number(value) for value, _ in numbers[10:]] == [None] * 3
    lines = [
        ("a\n b", "a b"),
        ("a\x00b", "a?b"),
        ("\ud83d", "?"),
        (5, ""),
        (None, ""),
        ("x" * 201, "x" * 199 + "…"),
    ]
    assert [plain_line(value) for value, _ in lines] == [line for _, line in lines]


@pytest.mark.parametrize(
    "message", ["half \ud83d", "\x1b[31mred", DEEP, 2**70, float("nan"), {"a": ["\ud83d"]}]
)
def test_words_of_an_error_are_one_line_that_a_table_holds(message: Any) -> None:
    for body in (
        {"message": message},
        {"detail": message},
        {"message": "x", "code": message, "type": message},
    ):
        words, labels = error_text(body)
        assert (words + labels).isprintable()
        assert len(words) <= 200
    assert Failure(kind="refused", message="half \ud83d").message == "half ?"
    with Server(script=[Raw(400, json.dumps({"error": {"message": message}}))]) as server:
        (reply,) = llm("openai:tiny", base_url=server.url).generate([requests("a")[0].prompt])
    assert reply.failure is not None
    assert reply.failure.message.isprintable()
    script = [Raw(401, json.dumps({"error": {"message": message}}))]
    with (
        Server(script=script) as server,
        pytest.raises(UserError, match="asks for a key") as caught,
    ):
        list(llm("openai:tiny", base_url=server.url).generate([requests("a")[0].prompt]))
    assert str(caught.value).isprintable()


def test_an_answer_is_clean_whoever_makes_it() -> None:
    strange: Any = "\ud83d"
    cleaned = Answer(
        text=strange,
        finish=strange,
        prompt_tokens=5.0,  # type: ignore[arg-type]
        completion_tokens=True,
        model=strange,
        revision=strange,
    )
    assert cleaned == Answer(
        text="?", finish="?", prompt_tokens=5, completion_tokens=None, model="?", revision="?"
    )


def refuses(status: int) -> Server:
    """A server that answers all but questions 5 to 16, of which it refuses each."""

    class Refusing(Server):
        def _response(self, request: Any, fault: Any) -> Any:
            number = int(
                request.body["messages"][-1]["content"]
                .rpartition("question ")[2]
                .split()[0]
                .strip("?.")
            )
            words = f"Question {number} is not taken."
            refused = Raw(
                status, f"<h1>{words}</h1>" if status == 403 else {"error": {"message": words}}
            )
            return super()._response(request, refused if 5 <= number < 17 else fault)

    return Refusing(answer=lambda messages, _: TEXT)


@pytest.mark.parametrize(
    ("status", "reason"), [(400, "refused"), (403, "refused"), (422, "refused")]
)
def test_answers_in_the_journal_are_proof_of_life(tmp_path: Path, status: int, reason: str) -> None:
    collection, answering = questions(20), Answering(attempts=1)
    with refuses(status) as server:
        for _ in range(
            2
        ):  # the first time answers come before; then the twelve are all that is asked
            model = llm("openai:tiny", base_url=server.url, retries=0, concurrency=1)
            answered = answer(collection, model, answering, journal=Journal(tmp_path / "journal"))
            save_answered(answered, tmp_path / "out")
            assert answered.summaries[0].rewritten == 8
            lost = answered.left_out.select("reason", "message").rows()
            assert lost[0] == (
                reason,
                f"rejected by the server ({status}): Question 5 is not taken",
            )
            assert len(lost) == 12
    assert len(server.requests) == 20 + 12


def test_what_a_server_fails_at_ends_a_run_that_has_answers_later(tmp_path: Path) -> None:
    collection, answering = questions(20), Answering(attempts=1)
    with refuses(500) as server:
        model = llm("openai:tiny", base_url=server.url, retries=0, concurrency=1)
        with pytest.raises(
            UserError,
            match=r"answers nobody: error of the server \(500\): Question 12 is not taken",
        ):
            answer(collection, model, answering, journal=Journal(tmp_path / "journal"))
        model = llm("openai:tiny", base_url=server.url, retries=0, concurrency=1)
        answered = answer(collection, model, answering, journal=Journal(tmp_path / "journal"))
    assert (answered.summaries[0].rewritten, answered.unanswered) == (8, 12)


@pytest.mark.parametrize(("status", "message"), [(400, "answers nobody"), (403, "asks for a key")])
def test_without_an_answer_every_request_may_be_at_fault(status: int, message: str) -> None:
    prompts = [
        request.prompt for request in requests(*(f"question {number}" for number in range(5, 17)))
    ]
    with refuses(status) as server, pytest.raises(UserError, match=message):
        list(llm("openai:tiny", base_url=server.url, retries=0, concurrency=1).generate(prompts))
    assert len(server.requests) <= 10


HEADERS = [
    {"Set-Cookie": "a=\u00ff"},
    {"Content-Type": "application/json; charset=utf-16"},
    {"Content-Type": "application/json; charset=none"},
    {"Content-Encoding": "gzip"},
    {"Retry-After": "\u00ff"},
    {"Location": "\u00ff"},
]


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_no_header_is_a_traceback(headers: dict[str, str], status: int) -> None:
    body = RESPONSE if status == 200 else {"error": {"message": "It is not taken."}}
    with Server(answer=lambda messages, _: TEXT, script=[Raw(status, body, headers)]) as server:
        model = llm("openai:tiny", base_url=server.url, retries=1, concurrency=1)
        with suppress(UserError):
            list(model.generate([request.prompt for request in requests("a", "b")]))
        (reply,) = model.generate([request.prompt for request in requests("c")])
    assert reply.answer is not None, "the next one is not spoilt"

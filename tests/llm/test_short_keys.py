"""A key of any length stands in no name, message or journal, and changes no answer."""

import json
import warnings
from pathlib import Path

import pytest

from ranktilt.errors import DataWarning, UserError
from ranktilt.judging.grading.grading import grade
from ranktilt.llm.base import Reply, llm
from ranktilt.llm.batch_files import read_lines
from ranktilt.llm.journal import JOURNAL, Journal, journalled
from ranktilt.llm.responses import json_body
from ranktilt.llm.server import Server as Asked
from ranktilt.llm.server import redactor
from tests.llm.echo import COLD, contents, requests
from tests.llm.server import Raw, Server
from tests.toy import toy

KEYS = ["k", "q7x", "zq-12", "zq-123", "zq-12345", "zq-1234567890", "zq-123456789012345678"]
SHORT = (
    r"^the key in OPENAI_API_KEY has fewer than 6 characters: an answer may contain it by chance"
)


def echo_of(key: str) -> Raw:
    """A response that repeats a key wherever it can."""
    message = {"content": f"It is {key}, so."}
    choice = {
        "message": message,
        "finish_reason": key,
        "logprobs": {"content": [{"token": key, "logprob": -1}]},
    }
    return Raw(200, {"model": f"m-{key}", "system_fingerprint": f"fp {key}", "choices": [choice]})


def ask(server: Server, folder: Path, text: str = "a") -> Reply:
    with Journal(folder) as journal:
        model = llm("openai:tiny", base_url=server.url, retries=0, concurrency=1)
        (reply,) = journalled(model, requests(text), journal, sampling=COLD)
    return reply


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_in_no_name_no_warning_and_no_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with Server(script=[echo_of(key)]) as server, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reply = ask(server, tmp_path)
    lines = [
        str(warning.message) for warning in caught if issubclass(warning.category, DataWarning)
    ]
    assert [line for line in lines if redactor(key)(line) != line] == []
    assert [line for line in lines if "'m-[key]' answered" in line]
    assert len([line for line in lines if "fewer than 6 characters" in line]) == (len(key) < 6)
    assert reply.answer is not None
    names = (reply.answer.model, reply.answer.finish, reply.answer.revision)
    assert names == ("m-[key]", "[key]", "fp [key]")
    (stored,) = contents(tmp_path)
    assert (
        reply.answer.text
        == stored["text"]
        == (f"It is {key}, so." if len(key) < 6 else "It is [key], so.")
    )
    if len(key) >= 6:
        assert key.encode() not in (tmp_path / JOURNAL).read_bytes()


@pytest.mark.filterwarnings("ignore:the key in OPENAI_API_KEY")
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_a_key_is_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, status: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    body = (
        f"<p>Bearer {key}"
        if status == 200
        else json.dumps({"error": {"message": f"Bearer {key}", "code": key}})
    )
    with Server(script=[Raw(status, body)] * 9) as server:
        try:
            reply = ask(server, tmp_path)
        except UserError as error:
            message = str(error)
        else:
            assert reply.failure is not None
            message = reply.failure.message
    assert "Bearer [key]" in message
    line = json.dumps({"custom_id": "a", "error": {"code": "x", "message": f"Bearer {key}"}})
    outcome = read_lines(line.encode(), Asked(model="tiny", url=None, key=key)).outcomes["a"]
    assert outcome.message == "Bearer [key]"  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"Bearer \[key\]"):
        json_body(f"Bearer {key}".encode(), redactor(key))


@pytest.mark.parametrize("key", ["3", "33", "final", "score"])
def test_a_grade_counts_whatever_the_key(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with (
        Server(answer=lambda messages, _: "##final score: 3") as server,
        pytest.warns(DataWarning, match=SHORT),
    ):
        grades = grade(toy(), llm("openai:tiny", base_url=server.url))
    assert (grades.counts.readable, grades.qrels["grade"].unique().to_list()) == (10, [3])


@pytest.mark.parametrize("key", [None, "zq-12", "zq-123456789012345678"])
@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "3"}, "3"),
        ({"content": None, "refusal": "3"}, "3"),
        ({"content": None, "refusal": 3}, ""),
        ({"content": 3}, None),
        ({"content": [{"type": "text", "text": "3"}]}, "3"),
    ],
)
@pytest.mark.filterwarnings("ignore:the key in OPENAI_API_KEY")
def test_an_answer_is_read_the_same_whatever_the_key(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None,
    message: dict[str, object],
    text: str | None,
) -> None:
    if key is not None:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    with Server(script=[Raw(200, {"choices": [{"message": message}]})]) as server:
        reply = ask(server, tmp_path)
    assert (reply.answer.text if reply.answer else None) == text
    assert "no message in the answer" in (
        reply.failure.message if reply.failure else "no message in the answer"
    )


def test_a_key_of_a_few_characters_is_warned_of_once_a_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with Server() as server:
        model = llm("openai:tiny", base_url=server.url)
        with pytest.warns(DataWarning, match=SHORT):
            model.check()
        list(model.generate([requests("a")[0].prompt]))
    monkeypatch.setenv("OPENAI_API_KEY", "ollama")
    llm("openai:tiny", base_url="http://localhost:1/v1").check()

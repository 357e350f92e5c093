"""What servers say: errors are told apart, answers are read strictly."""

import re

import numpy as np
import pytest

from ranktilt.errors import UserError
from ranktilt.llm.base import Answer
from ranktilt.llm.responses import (
    FailedRequest,
    classify_error,
    error_text,
    json_body,
    read_answer,
    read_vectors,
    same_model,
)
from ranktilt.llm.server import Server

KEY = "sk-secret-1234567890"


def verdict(status: int, body: object, **changed: object) -> FailedRequest | UserError:
    inner = body.get("error", body) if isinstance(body, dict) else body  # as the client gives it
    given = {"key": KEY, **changed}
    server = Server(model="tiny", url="http://h/v1", **given)  # type: ignore[arg-type]
    return classify_error(status, inner, server)


def kind(status: int, body: object, **changed: object) -> str | None:
    """Of the failure of one request; None where everything ends."""
    found = verdict(status, body, **changed)
    return found.kind if isinstance(found, FailedRequest) else None


def error(message: str, **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


# Everything ends


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, error("Incorrect."), "does not accept the key for model 'tiny' .*OPENAI_API_KEY. .401.: Incorrect"),
        (403, error("No access."), "does not accept the key for model 'tiny' .*OPENAI_API_KEY. .403.: No access"),
        (429, error("Exceeded.", code="insufficient_quota"), "the quota of the key .* is used up at http://h/v1 .429."),
        (402, error("Insufficient Balance"), "the quota of the key .* is used up at http://h/v1 .402."),
        (404, error("The model `tiny` does not exist."), "has no model 'tiny' .404.: .*; name one that it serves"),
        (404, {"detail": "Not Found"}, "has no model 'tiny' .404.: Not Found.*base URL that usually ends in /v1"),
        (308, "", "redirects elsewhere .308.; redirects are not followed"),
    ],
)
def test_what_no_other_attempt_can_mend_ends_everything(status: int, body: object, message: str) -> None:
    found = verdict(status, body)
    assert isinstance(found, UserError)
    assert re.search(message, str(found))
    assert "asks for a key" in str(verdict(401, body, key=None))


# Another attempt may help


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_passing_errors_are_asked_again(status: int) -> None:
    found = verdict(status, error("You exceeded your current quota"))
    assert isinstance(found, FailedRequest)
    assert (found.kind, found.message[:27]) == ("unavailable", f"error of the server ({status}): ")
    assert kind(400, error("Invalid role in messages: expected context")) == "refused"


# One prompt alone

TOO_LONG = [
    (400, error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded")),
    (400, {"object": "error", "message": "This model's maximum context length is 6048 tokens. However, you requested "
           "6616 tokens (568 in the messages, 6048 in the completion).", "type": "BadRequestError", "code": 400}),
    (400, error("'max_tokens' or 'max_completion_tokens' is too large: 600. This model's maximum context length is "
                "512 tokens and your request has 100 input tokens.")),
    (400, error("request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
                type="exceed_context_size_error", n_ctx=4096)),
    (500, error("Context size has been exceeded.", code=500, type="server_error")),
    (400, {"message": "max_tokens must be at least 1, got -186.", "type": "BadRequestError", "code": 400}),
    (413, {"error": "Payload Too Large"}),
    (400, error("prompt is too long: 210000 tokens > 200000 maximum")),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), TOO_LONG)
def test_longer_than_the_context_in_the_words_of_many_servers(status: int, body: object) -> None:
    assert kind(status, body) == "too long"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("Filtered.", code="content_filter")),
        (400, error("The response was filtered due to the prompt triggering our content management policy.")),
        (400, error("Input may be inappropriate.", code="data_inspection_failed")),
        (403, error("Flagged: content policy.", code="content_policy_violation")),
    ],
)
def test_a_content_filter_is_an_answer_of_its_own(status: int, body: object) -> None:
    assert kind(status, body) == "filtered"


# The words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"message": "a\n  b"}, "a b"),
        ({"detail": "FastAPI"}, "FastAPI"),
        ({"detail": [{"loc": ["body", "x"], "msg": "bad"}]}, "[{'loc': ['body', 'x'], 'msg': 'bad'}]"),
        ("<html><h1>502 Bad Gateway</h1><hr>nginx</html>", "502 Bad Gateway nginx"),
        ("Internal Server Error", "Internal Server Error"),
        ("", ""),
        ({"message": None, "code": 7}, ""),
    ],
)
def test_the_words_of_an_error_in_the_shapes_there_are(body: object, words: str) -> None:
    assert error_text(body)[0] == words


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_the_key_is_in_no_message(status: int) -> None:
    found = verdict(status, error(f"key {KEY} in Bearer {KEY}, x={KEY}y" + "x" * 5000))
    assert KEY not in str(found)
    assert "[key]" in str(found)
    assert len(str(found)) < 400


# Answers


def completion(**choice: object) -> dict[str, object]:
    return {
        "model": "tiny-2024-07-18",
        "system_fingerprint": "fp",
        "choices": [{"message": {"content": "Hi."}, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }


def rows(*given: tuple[int, list[float]]) -> dict[str, object]:
    return {"data": [{"index": index, "embedding": values} for index, values in given]}


def test_an_answer_is_read_whole_or_bare() -> None:
    tokens = {"content": [{"token": "Hi", "logprob": -0.5}, {"token": ".", "logprob": -1}]}
    read = read_answer(completion(logprobs=tokens, finish_reason="length"), "tiny")
    assert read == Answer("Hi.", "length", 3, 2, "tiny-2024-07-18", "fp", (-0.5, -1.0))
    for message, text in (
        ({"content": ""}, ""),
        ({"content": None, "refusal": "I cannot help with that."}, "I cannot help with that."),
        ({"content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}, "a b"),
        ({"content": "half \ud83d"}, "half ?"),
    ):
        read = read_answer({"choices": [{"message": message, "logprobs": {"content": None}}]}, "tiny")
        assert read == Answer(text, "stop", None, None, "tiny", None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty body"),
        (b"<html>\n<p>login", "malformed JSON: '<html> <p>login'"),
        (b"[" * 100_000, "malformed JSON: '" + "[" * 60 + "'"),
        (b"[]", "expected a JSON object, got list"),
        (b'{"choices": []}', "no choice in the answer"),
        (b'{"choices": ["x"]}', "no message in the answer"),
        (b'{"choices": [{"text": "old style"}]}', "no message in the answer"),
    ],
)
def test_what_is_no_answer_is_asked_again(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_answer(json_body(content), "tiny")


def test_what_python_s_servers_write_beside_the_standard_is_read() -> None:
    assert json_body(b'{"a": [-Infinity, "half \\ud83d"]}') == {"a": [-np.inf, "half \ud83d"]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "expected 2 vectors by their index"),
        (rows((0, [1.0]), (2, [1.0])), "expected 2 vectors by their index"),
        (rows((0, [1.0]), (1, [1.0]), (2, [1.0])), "expected 2 vectors of finite numbers, got 3"),
        (rows((0, [1.0]), (1, [1.0, 2.0])), "of one dimension"),
        (rows((0, [1.0]), (1, [1e300])), "of finite numbers"),
    ],
)
def test_vectors_are_one_a_text_in_the_order_of_their_index(data: dict[str, object], message: str) -> None:
    made = read_vectors(rows((1, [3.0, 4.0]), (0, [1.0, 2.0])), 2)
    assert (made.dtype, made.tolist()) == (np.float32, [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match=message):
        read_vectors(data, 2)


@pytest.mark.parametrize(
    ("asked", "same", "other"),
    [
        ("gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-4o"),
        ("gpt-4o", "gpt-4o", "gpt-4o-mini-2024-07-18"),
        ("mistral-large", "mistral-large-latest", "another-model"),
        ("llama3", "llama3:latest", "llama3:70b"),
        ("openai/gpt-4", "gpt-4-0613", "openai/gpt-4o"),
        ("/models/Stories", "/models/stories@main", "/models/tales"),
    ],
)
def test_a_dated_version_is_the_same_model(asked: str, same: str, other: str) -> None:
    assert same_model(asked, same)
    assert not same_model(asked, other)

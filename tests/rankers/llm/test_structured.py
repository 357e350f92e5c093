"""Answers held to a JSON schema where the server can do that, and words where it cannot."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ranktilt import Run, ranker
from ranktilt.errors import UserError
from tests.llm.server import Server
from tests.rankers.llm.judge import Judge
from tests.rankers.llm.test_rankers import best, ids, worths

REFUSALS = {
    "by parameter": {
        "message": "Unsupported parameter: 'response_format' is not supported with this model.",
        "param": "response_format",
    },
    "in words": {"message": "response_format: extra fields not permitted", "param": None},
    "vaguely": {"message": "This type of grammar is unavailable now", "param": None},
}


class Plain(Server):
    """Takes no response_format, and says so in its way."""

    said: Mapping[str, Any] = REFUSALS["by parameter"]

    def _response(self, request: Any, fault: Any) -> tuple[int, Any, Mapping[str, str]]:
        if "response_format" in request.body:
            return 400, {"error": {"type": "invalid_request_error", "code": None, **self.said}}, {}
        return super()._response(request, fault)


def rank(server: Server, monkeypatch: pytest.MonkeyPatch, text: str, candidates: Any) -> Run:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    return ranker(text).rank(*candidates)


@pytest.mark.parametrize("structured", ["auto", "json"])
@pytest.mark.parametrize("text", ["listwise:openai:tiny(window=6,step=3,{})", "setwise:openai:tiny({})"])
def test_a_server_that_can_holds_every_answer_to_the_schema(
    text: str, structured: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = worths(9)
    with Server(answer=Judge()) as server:
        run = rank(server, monkeypatch, text.format(f"structured={structured}"), candidates)
        count = len(server.requests)
        rank(server, monkeypatch, text.format(f"structured={structured}"), candidates)
        assert len(server.requests) == count, "the trial is journalled too"
        plain = rank(server, monkeypatch, text.format("structured=none"), candidates)
        assert len(server.requests) > count, "an answer in words is another one"
    assert ids(run)[:3] == ids(plain)[:3] == best(candidates[0])[:3]
    answers = run.spec["llm_answers"]
    assert answers["kinds"] == {"ok": answers["requests"]}
    assert count <= answers["requests"]
    assert all(body["response_format"]["json_schema"]["strict"] for body in server.bodies[:count])
    assert all("JSON" in body["messages"][0]["content"] for body in server.bodies[:count])
    assert run.spec["llm"]["structured"] == "json"
    assert "structured" not in plain.spec["llm"]


@pytest.mark.parametrize("said", REFUSALS.values(), ids=REFUSALS.keys())
def test_auto_does_without_where_the_server_refuses_and_says_so(
    said: Mapping[str, Any], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = worths(9)
    with Plain(answer=Judge()) as server:
        server.said = said
        run = rank(server, monkeypatch, "listwise:openai:tiny(structured=auto)", candidates)
    assert ids(run) == best(candidates[0])
    assert ["response_format" in body for body in server.bodies] == [True, False, False]
    assert run.spec["llm"]["structured"] == "none"
    assert "JSON" not in server.bodies[1]["messages"][0]["content"]


def test_json_is_refused_where_the_server_refuses_it(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Plain(answer=Judge()) as server, pytest.raises(UserError, match="does not take the parameter response_format"):
        rank(server, monkeypatch, "listwise:openai:tiny(structured=json)", worths(3))


def test_what_cannot_be_held_to_a_schema_is_refused(stories: Path, own_cache: Path) -> None:
    with pytest.raises(UserError, match="cannot be held to a JSON schema; leave structured=json out"):
        ranker(f"listwise:transformers:{stories}(structured=json)").check()
    with pytest.raises(UserError, match="cannot be held to a JSON schema; leave structured=json out"):
        ranker(f"listwise:transformers:{stories}(structured=json)").rank(*worths(3))
    with pytest.raises(UserError, match="answers are words or none at all, never JSON"):
        ranker("pointwise:openai:m(structured=auto)")


@pytest.mark.neural
@pytest.mark.data
def test_auto_asks_a_model_in_a_folder_for_words(stories: Path, own_cache: Path) -> None:
    run = ranker(f"setwise:transformers:{stories}(structured=auto,passage_tokens=10)").rank(*worths(3, queries=1))
    assert run.spec["llm"]["structured"] == "none"

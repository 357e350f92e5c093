"""Perplexities by a server: both ways to ask, what is cached, and servers that give the numbers of other tokens."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.errors import UserError
from ranktilt.llm.likelihood import LikelihoodServer, prompt_losses
from ranktilt.llm.openai import OpenAI
from ranktilt.probes.perplexity import PerplexityProbe
from tests.llm.server import Server
from tests.toy import TEXTS, toy

MODEL = "tiny"


class Prompts(Server):
    """Gives each word its length as −ln P, unless it does not know what is asked."""

    knows = True

    def _response(self, request: Any, fault: Any) -> tuple[int, Any, Mapping[str, str]]:
        if not request.path.endswith("/completions") or request.path.endswith("chat/completions"):
            return super()._response(request, fault)
        body = request.body
        words = ["<s>", *_tokens(body["prompt"])]
        values = [None, *(-float(len(word.strip())) for word in words[1:])]
        choice: dict[str, Any] = {"index": 0, "text": " new", "logprobs": None}
        if body.get("echo") and self.knows:
            choice["text"] = body["prompt"] + " new"
            choice["logprobs"] = {"tokens": [*words, " new"], "token_logprobs": [*values, -9.0]}
        elif body.get("logprobs"):
            choice["logprobs"] = {"tokens": [" new"], "token_logprobs": [-9.0]}
        usage = {"prompt_tokens": len(words), "completion_tokens": 1, "total_tokens": len(words) + 1}
        return 200, {"model": body["model"], "choices": [choice], "usage": usage}, {}


def _tokens(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)


def test_the_mean_over_the_text_s_tokens_is_given(own_cache: Path) -> None:
    with Prompts(models=(MODEL,)) as server:
        model = LikelihoodServer(OpenAI(MODEL, base_url=server.url))
        found = model.score(["a bbb", "", "cc", "a bbb"], label="scoring")
        assert found.tokens.tolist() == [2, 0, 1, 2]
        assert found.perplexity[[0, 2, 3]].tolist() == [2, 2, 2]
        assert math.isnan(found.perplexity[1])
        before = len(server.bodies)
        np.testing.assert_array_equal(model.score(["cc", "a bbb"], label="scoring").perplexity, [2, 2])
        assert len(server.bodies) == before


def test_a_server_that_ignores_what_is_asked_is_refused_before_anything_is_scored(own_cache: Path) -> None:
    """As llama.cpp's does: the numbers would be those of the token that it wrote."""
    with Prompts(models=(MODEL,)) as server:
        server.knows = False
        with pytest.raises(
            UserError, match=r"openai:tiny cannot score texts: .*do not match the prompt's tokens one by one"
        ):
            LikelihoodServer(OpenAI(MODEL, base_url=server.url)).score(["a b"], label="scoring")
        assert len(server.bodies) == 1


def test_the_probe_of_a_server(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Prompts(models=(MODEL,)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = PerplexityProbe("openai:tiny")(toy())
    assert found.rows[0]["mean"] == pytest.approx(np.mean([_mean(text) for text in TEXTS["human"].values()]))
    with pytest.raises(UserError, match="given and kind are options of a model of transformers"):
        PerplexityProbe("openai:tiny", kind="masked")


def _mean(text: str) -> float:
    return float(np.mean([len(word) for word in text.split()]))


def answer(tokens: list[str], values: list[Any], text: str, count: int) -> dict[str, Any]:
    logprobs = {"tokens": tokens, "token_logprobs": values}
    return {"choices": [{"text": text, "logprobs": logprobs}], "usage": {"prompt_tokens": count}}


@pytest.mark.parametrize(("data", "message"), [
    ({}, "they are missing"),
    ({"choices": [{"text": "a b", "logprobs": None}], "usage": {"prompt_tokens": 2}}, "they are missing"),
    (answer(["a", " b"], [None, -1.0], "x", 2), "do not match"),
    (answer(["a"], [None], "a b", 2), "do not match"),
    (answer(["a", " c", " b"], [None, -1.0, -1.0], "a b", 2), "do not match"),
    (answer(["a", " b"], [None, 0.5], "a b", 2), "some are missing or no log-probabilities"),
    (answer(["a", " b"], [None, None], "a b", 2), "some are missing or no log-probabilities"),
    (answer(["a", " b"], [None, float("nan")], "a b", 2), "some are missing or no log-probabilities"),
])  # fmt: skip
def test_numbers_of_other_tokens_are_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        prompt_losses(data, "a b")

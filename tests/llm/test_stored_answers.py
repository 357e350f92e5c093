"""Stored answers are read in the forms of public tools, and what is none is refused."""

from typing import Any

import pytest

from ranktilt.llm.stored_answers import stored_answer

TEXT = "[2] > [1]"
CHOICE = {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}
FORMS: dict[str, Any] = {
    "a text": TEXT,
    "parts (OpenAI)": [{"type": "text", "text": "[2] "}, {"type": "text", "text": "> [1]"}],
    "parts with reasoning (Anthropic)": [
        {"type": "thinking", "thinking": "[1] > [2]"},
        {"type": "text", "text": TEXT},
    ],
    "a message (Anthropic)": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": TEXT}],
    },
    "a message": {"role": "assistant", "content": TEXT, "reasoning_content": "[1] > [2]"},
    "a completion": {"id": "x", "choices": [CHOICE], "usage": {}},
    "an old completion": {"choices": [{"text": TEXT}]},
    "a response (OpenAI)": {
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "[1] > [2]"}]},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": TEXT}],
            },
        ]
    },
    "a batch's line": {"status_code": 200, "body": {"choices": [CHOICE]}},
    "Gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "[1] > [2]", "thought": True},
                        {"text": TEXT},
                    ],
                }
            }
        ]
    },
    "Ollama": {"model": "m", "response": TEXT, "done": True},
    "Ollama's chat": {"message": {"role": "assistant", "content": TEXT, "thinking": "[1] > [2]"}},
    "Bedrock": {"output": {"message": {"role": "assistant", "content": [{"text": TEXT}]}}},
    "vLLM": {"prompt": "p", "outputs": [{"index": 0, "text": TEXT, "token_ids": [1]}]},
    "transformers": [{"generated_text": TEXT}],
    "transformers' chat": [
        {
            "generated_text": [
                {"role": "user", "content": "p"},
                {"role": "assistant", "content": TEXT},
            ]
        }
    ],
    "LangChain": {"generations": [[{"text": TEXT}]]},
    "ShareGPT": [{"from": "human", "value": "p"}, {"from": "gpt", "value": TEXT}],
    "lm-eval": [[TEXT]],
    "a list of outputs": [TEXT, TEXT],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_public_tools_are_read(form: str) -> None:
    assert stored_answer(FORMS[form]) == TEXT


def test_what_is_missing_is_none_and_what_differs_stays() -> None:
    reasoning = [{"type": "thinking", "thinking": "a"}]
    without_content = {"role": "assistant", "content": None, "reasoning_content": "a"}
    for nothing in (
        None,
        [],
        {"choices": []},
        reasoning,
        without_content,
        {"choices": [{"message": without_content}]},
    ):
        assert stored_answer(nothing) is None
    assert stored_answer("") == stored_answer({"content": ""}) == ""
    assert stored_answer({"content": None, "refusal": "I cannot."}) == "I cannot."
    assert stored_answer(["[2] > [1]", "[1] > [2]"]) == "[2] > [1]\n[1] > [2]"
    assert stored_answer({"ranking": [2, 1]}) == '{"ranking": [2, 1]}'
    assert stored_answer([2, 1]) == stored_answer({"results": [2, 1]}) == "[2, 1]"
    for wrong in (5, 2.5, True, [True], [1.5]):
        with pytest.raises(ValueError, match=r"^expected a text, a message or a response, got "):
            stored_answer(wrong)

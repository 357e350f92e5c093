"""What models wrap round an answer is taken off, and what belongs to an answer or a
document stays.
"""

import pytest

from ranktilt.llm.cleaning import answer_span, clean_answer, text_of_object
from ranktilt.rankers.llm.answers import Reading, read_ranking

RANKING = "[3] > [1] > [2]"
AROUND = {
    "nothing": "@",
    "think": "<think>I would say [3] > [1], but\nnot yet.</think>\n@",
    "empty think": "<think>\n\n</think>\n\n@",
    "thinking": "<thinking>[1] > [2]</thinking>@",
    "reasoning": "<reasoning>[1] > [2]</reasoning>\n@",
    "thought": "<Thought>[1] > [2]</Thought>\n@",
    "with an attribute": "<think time='3'>[1] > [2]</think>@",
    "two blocks": "<think>[1] > [2]</think>\n<think>[2] > [1]</think>@",
    "a block that speaks of itself": "<think>The <think> block: [1] > [2]</think>@",
    "a block in a block": "<think>a <think>b</think> [1] > [2]</think>@",
    "another block in a block": "<think>a <reasoning>b</reasoning> [1] > [2]</think>@",
    "only closed": "First [1] > [2], then …\n</think>\n\n@",
    "only closed, on the line": "[1] > [2] …</think> @",
    "behind the answer": "@\n<think>or [1] > [2]</think>",
    "behind the answer, cut off": "@\n<think>or [1] > [2]",
    "after a word": "Okay.\n<think>[1] > [2]</think>\n@",
    "gpt-oss": (
        "<|channel|>analysis<|message|>[1] > "
        "[2]<|end|><|start|>assistant<|channel|>final<|message|>@<|return|>"
    ),
    "gpt-oss, constrained": (
        "<|channel|>analysis<|message|>a<|end|><|channel|>final <|constrain|>json<|message|>@"
    ),
    "gpt-oss without tokens": "analysisMaybe [1] > [2].assistantfinal@",
    "Mistral": "[THINK][1] > [2][/THINK]@",
    "Kimi": "◁think▷[1] > [2]◁/think▷@",
    "Cohere": "<|START_THINKING|>[1] > [2]<|END_THINKING|><|START_RESPONSE|>@<|END_RESPONSE|>",
    "Sky-T1": (
        "<|begin_of_thought|>[1]>[2]<|end_of_thought|>\n<|begin_of_solution|>\n@\n"
        "<|end_of_solution|>"
    ),
    "Seed": "<seed:think>[1] > [2]</seed:think>@",
    "Granite": "Here is my thought process:\n[1] > [2]\n\nHere is my response:\n@",
    "escaped": "&lt;think&gt;[1] &gt; [2]&lt;/think&gt;@",
    "ChatML": "<|im_start|>assistant\n@<|im_end|>",
    "Llama": "<|start_header_id|>assistant<|end_header_id|>\n\n@<|eot_id|>",
    "Llama without tokens": "assistant\n\n@",
    "end of sentence": "@</s>",
    "DeepSeek": "<\uff5cAssistant\uff5c>@<\uff5cend\u2581of\u2581sentence\uff5c>",
    "a turn too many": "@<|im_end|>\n<|im_start|>user\n[1] > [2]",
    "byte order": "\ufeff@\u200b",
    "fence": "```\n@\n```",
    "fence with a language": "```text\n@\n```",
    "fence on a line": "```@```",
    "other fence": "~~~\n@\n~~~",
    "fence that never closes": "```\n@",
    "label": "Final answer: @",
    "bold label": "**Final Answer:** @",
    "heading": "### Final Ranking\n@",
    "label behind prose": "[1] > [2] is close.\n\nFinal answer: @",
    "the same label twice": "Final answer: @\nFinal answer: @",
    "response": "### Response:\n@",
    "bold": "**@**",
    "quotes": '"@"',
    "curly quotes": "“@”",
    "backticks": "`@`",
    "tag": "<answer>@</answer>",
    "tag behind prose": "[1] > [2] is close. <answer> @ </answer> Done.",
    "tag that never closes": "<answer>@",
    "tag that only closes": "@</answer>",
    "tag in reasoning": "<think><answer>[1] > [2]</answer></think><answer>@</answer>",
    "box": "\\boxed{@}",
    "box in a formula": "The ranking is $\\boxed{\\text{@}}$.",
    "JSON": '{"answer": "@"}',
    "JSON with reasoning": '{"reasoning": "[1] > [2]", "ranking": "@"}',
    "JSON in JSON": '{"result": {"ranking": "@"}}',
    "JSON in a fence": '```json\n{"answer": "@"}\n```',
    "a list of one": '["@"]',
    "all at once": (
        "\ufeff<think>a</think>\n**Final answer:**\n```json\n"
        '{"answer": "<answer>@</answer>"}\n```</s>'
    ),
}


@pytest.mark.parametrize("name", AROUND)
def test_wrappers_are_taken_off_a_short_answer(name: str) -> None:
    cleaned = clean_answer(AROUND[name].replace("@", RANKING))
    assert (cleaned.text.removeprefix("Okay.").strip(), cleaned.is_cut_off) == (RANKING, False)
    assert read_ranking(AROUND[name].replace("@", RANKING), 3).order == (2, 0, 1)


def test_markdown_and_json_within_a_ranking_are_read() -> None:
    for answer in (
        "**[3]** > **[1]** > **[2]**",
        "[**3**] > [**1**] > [**2**]",
        "[3] &gt; [1] &gt; [2]",
        "[3]\u200b > [1] > [2]",
        "\\[3\\] > \\[1\\] > \\[2\\]",
        '{"ranking": ["[3]", "[1]", "[2]"]}',
        '["3", "1", "2"]',
        '{"explanation": "[1] first", "ranking": [3, 1, 2]}',
        'Here:\n```json\n{"ranking": [3, 1, 2]}\n```',
    ):
        assert read_ranking(answer, 3).order == (2, 0, 1), answer


@pytest.mark.parametrize(
    "text",
    [
        "<think>[3] > [1]",
        "<thinking>\nHm",
        "<think>[3] > [1]</think>",
        "[3] > [1]\n</think>",
        "analysisHm [3] > [1]",
        "<|channel|>analysis<|message|>[3] > [1]",
        "<|channel|>analysis<|message|>a<|end|>",
        "[THINK]a",
        "<think>a</think><think>b",
        "\ufeff <think>a",
    ],
)
def test_reasoning_alone_is_no_answer(text: str) -> None:
    cleaned = clean_answer(text)
    assert (cleaned.text, cleaned.plain, cleaned.is_cut_off) == ("", "", True)
    assert answer_span(text, "a document").is_cut_off


@pytest.mark.parametrize(
    "text",
    [
        "20 passages have been provided.",
        "[3] is better than [1].",
        "I think [3]",
        "3 > 2",
        "A final answer to [1]",
        "The order of [1] and [2]: unknown",
        "{",
        "[",
        "```",
        "**",
        '{"a": 1, "b": 2}',
        "Thought: [3] or [1]?",
    ],
)
def test_prose_stays_as_it_is(text: str) -> None:
    cleaned = clean_answer(text)
    assert (cleaned.plain, cleaned.is_cut_off) == (text, False)


def test_answers_that_are_marked_and_differ_all_stay() -> None:
    for answer in (
        "<answer>[1] > [2]</answer> or <answer>[2] > [1]</answer>",
        "\\boxed{[1] > [2]} \\boxed{[2] > [1]}",
        "Final answer: [1] > [2]\nFinal answer: [2] > [1]",
    ):
        assert clean_answer(answer).text == "[1] > [2]\n[2] > [1]"
        assert read_ranking(answer, 2) == Reading(kind="ambiguous")


@pytest.mark.parametrize(
    "text",
    [
        "R1 writes <think> before it answers, and </think> behind.",
        "The block ends with `</think>`, and then comes the answer.",
        "Use ```json``` fences.\n\n```json\n{}\n```\n\nThat is all.",
        "<answer>42</answer> is the tag, and </s> ends a line that goes on.",
        "Final answer: none.",
        "**Bold** words and \\boxed{4}.",
    ],
)
def test_a_document_keeps_what_belongs_to_it(text: str) -> None:
    for source in ("Another text.", text):
        span = answer_span(text, source)
        assert text[span.start : span.end] == text
    for before, after in (
        ("<think>Hm.</think>\n", "<|im_end|>"),
        ("\ufeff", ""),
        ("analysisHm.assistantfinal", ""),
    ):
        wrapped = before + text + after
        span = answer_span(wrapped, "Another text.")
        assert wrapped[span.start : span.end] == text


def test_a_document_that_only_closes_a_block_is_cut_unless_its_source_does_too() -> None:
    text = "So I rewrite it.</think>\nThe text."
    assert answer_span(text, "A text.").start == len("So I rewrite it.</think>\n")
    assert answer_span(text, "It ends with </think>, always.").start == 0


def test_the_one_text_of_an_object_is_found() -> None:
    assert text_of_object('{"text": "a \\"b\\"\\nc"}') == 'a "b"\nc'
    assert text_of_object('{"reasoning": "a", "text": "b"}') == "b"
    for text in ('{"a": "b", "c": "d"}', '{"a": 1}', '["a"]', "{", "a", '{"a": {"b": "c"}}'):
        assert text_of_object(text) is None


def test_long_texts_are_cleaned_in_a_moment() -> None:
    for sign in (
        "<think>",
        "</think>",
        "<",
        "*",
        "**a",
        "```",
        "\\boxed{",
        "{",
        "[",
        "'",
        "Final answer: ",
        "&lt;",
    ):
        assert isinstance(clean_answer(sign * 100_000).text, str)
        assert answer_span(sign * 100_000, "source").end >= 0

"""What is taken off an answer and what is not: wrappers of every kind, and what a person would write."""

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

from ranktilt.errors import UserError
from ranktilt.generation.cleaning import clean, remark

SOURCE = "Bees tell one another by a dance where flowers grow."
BODY = "By dancing, bees tell the hive where flowers are."


def series(*texts: str | None) -> pl.Series:
    return pl.Series("text", texts, dtype=pl.String)


def cleaned(raw: str, source: str = SOURCE) -> tuple[str, str | None, str | None]:
    """Return text, opening and closing of one answer."""
    row = clean(series(raw), series(source)).row(0)
    return row  # type: ignore[return-value]


@pytest.mark.parametrize(
    "opening",
    [
        "Sure, here is the rewritten text:",
        "here is my attempt to rewrite the given text:\nRewritten Text:",
        "## Rewritten passage",
        "<think>\nThe user wants a rewrite.\n\nLet me see.\n</think>",
        "<think>\nHm.\n</think>\n\nHere is the rewritten text:",
        "Sure, here is the rewritten text:\n\nRewritten text:",
    ],
)
def test_an_opening_is_taken_off(opening: str) -> None:
    """Those of `quality.opening`, of which its own tests have many."""
    assert cleaned(f"{opening}\n\n{BODY}") == (BODY, opening, None)


CLOSINGS = [
    "Note: I have rewritten the text to make it clearer.",
    "Note: The rewritten text keeps the original meaning.",
    "(Note: I've kept the original wording where I could.)",
    "**Note:** I have simplified the text. It is shorter now, e.g. without dates.",
    "Please note that I have rewritten the passage in simpler words.",
    "Note that I have changed some of the wording.",
    "In this rewritten text, I've changed the wording. I've also removed a phrase.",
    "This rewritten version keeps the meaning of the source and is shorter.",
    "I have rewritten the passage to be more concise.",
    "I've also removed the phrase about the hive.",
    "I tried to keep the original tone.",
    "Note:",
    "**Note:**",
    "Changes made:\n\n- shorter sentences\n- simpler words",
    "Here are the changes I made:\n1. Shorter sentences.\n2. Simpler words.",
    "**Explanation of changes:**\n\n* Shorter sentences.\n\n* Simpler words.",
    "Word count: 9",
    "(Word count: 1,200 words)",
    "I hope this helps!",
    "I hope this helps! \U0001f60a",
    "Hope this rewritten text meets your needs.",
    "Let me know if you need anything else.",
    "Please let me know whether this works for you!",
    "Feel free to ask if you have any further questions.",
    "Don't hesitate to reach out to me if you need more.",
    "If you have any further questions, feel free to ask.",
    "If you would like a shorter one, please let me know.",
    "If there is anything to change, I'd be happy to help.",
    "Is there anything else I can help you with?",
    "Would you like me to make it shorter?",
    "I hope this helps! Let me know if you have any questions.",
    "---\n\nNote: I have rewritten the text.",
    "---\n\n***\n\nI hope this helps!",
    "Note: I have rewritten the text.\n\nI hope this helps!\n\nLet me know if you want more.",
]


@pytest.mark.parametrize("closing", CLOSINGS)
def test_a_remark_at_the_end_is_taken_off(closing: str) -> None:
    assert cleaned(f"{BODY}\n\n{closing}") == (BODY, None, closing)
    assert remark(f"{BODY}\n\n{closing}") == closing
    text = f"{BODY}\n\n{closing}\n\n{SOURCE}"
    assert cleaned(text) == (text, None, None), "at the end only"


VERBS = [
    "rewrote", "re-written", "paraphrased", "rephrased", "reworded", "changed", "replaced", "simplified", "kept",
    "maintained", "preserved", "retained", "removed", "added", "omitted", "shortened", "condensed", "restructured",
    "reorganised", "reorganized", "adjusted", "modified", "edited", "improved", "used", "made", "tried", "attempted",
    "aimed", "avoided",
]  # fmt: skip
THINGS = [
    "text", "passage", "paragraph", "abstract", "version", "article", "document", "original", "wording", "phrasing",
    "rewriting",
]  # fmt: skip
SUBJECTS = ["I", "I've", "I\u2019ve", "I have", "I'm", "I am", "I have also", "I only", "I simply", "I just"]
HELPS = ["helps", "help", "is helpful", "was helpful", "works for you", "meets your needs", "suits your needs"]
SAID = [
    *(f"I have {verb} parts of the text." for verb in VERBS),
    *(f"Note: I changed the {thing}." for thing in THINGS),
    *(f"{subject} changed the wording." for subject in SUBJECTS),
    *(f"Note: it has the original {thing}." for thing in ("meaning", "wording", "content", "tone", "message", "text")),
    *(f"In {whose} rephrased text, bees dance." for whose in ("this", "the", "my")),
    *(f"My rewrite {does} the tone." for does in ("maintains", "preserves", "retains", "keeps", "conveys", "captures")),
    "The paraphrased version aims for clarity.",
    *(f"{what} made:\n- one" for what in ("Changes", "Key modifications", "The main edits", "Some changes I have")),
    *(f"{start} the changes that I made to it:\n\u2022 one\n\u2022 two" for start in ("Below are", "These are")),
    "Explanation of the changes:\n1) one\n2) two",
    *(
        f"{which} changes made:\n- one"
        for which in ("Some of the", "A list of the", "A few", "My", "Major", "Specific")
    ),
    "If anything is amiss, let me know.",
    "Feel free to ask if anything is amiss.",
    "Is there anything else you need?",
    *(f"{ready} to assist you." for ready in ("I'm here", "I will be happy", "I'd be more than glad", "I am happy")),
    *(f"I hope this {helps}." for helps in HELPS),
    *("I sincerely hope that it makes sense.", "I really hope this is what you need!", "Hope this version helps."),
    *(
        f"{start} to ask if there is anything else."
        for start in ("Feel free", "Do not hesitate", "Don\u2019t hesitate")
    ),
    *(f"Feel free to {do}." for do in ("ask", "ask me", "reach out", "reach out to me", "contact me")),
    *(f"Feel free to ask {which} questions." for which in ("any", "further", "more", "any other", "any additional")),
    *(
        f"If you need more, {ready} to help."
        for ready in ("I'm happy", "I am here", "I'll be happy", "I would be glad")
    ),
    *(
        f"{ask} assist you with more?"
        for ask in ("May I", "Can I", "Is there anything else I can do to", "Can I help you,")
    ),
]


@pytest.mark.parametrize("closing", SAID)
def test_a_remark_has_many_forms(closing: str) -> None:
    assert cleaned(f"{BODY}\n\n{closing}") == (BODY, None, closing)


@pytest.mark.parametrize("rule", ["---", "***", "___", "====="])
def test_a_rule_above_a_remark_goes_with_it(rule: str) -> None:
    assert cleaned(f"{BODY}\n\n{rule}\n\nI hope this helps!")[0] == BODY
    assert cleaned(f"{BODY}\n\n{rule}")[0] == f"{BODY}\n\n{rule}"


@pytest.mark.parametrize("tag", ["think", "thinking", "thought", "reasoning", "reflection"])
def test_a_thought_goes_with_its_tags(tag: str) -> None:
    assert cleaned(f"<{tag}>Hm.\n\nWell.</{tag}>{BODY}")[0] == BODY
    assert cleaned(f"<{tag}>Hm.</other>{BODY}")[1] is None


@pytest.mark.parametrize(
    "tag",
    [
        "rewritten", "re-written", "paraphrased", "rephrased", "revised", "summary", "output", "answer", "result",
        "text", "passage", "document", "Rewritten_Text", "text-1",
    ],
)  # fmt: skip
def test_a_tag_around_all_goes(tag: str) -> None:
    assert cleaned(f"<{tag}>{BODY}</{tag}>") == (BODY, f"<{tag}>", f"</{tag}>")


ON_THE_LINE = [
    "I hope this helps!",
    "Let me know if you have any questions.",
    "Is there anything else I can help you with?",
    "(Note: I have rewritten the text. It is shorter now.)",
    "Please note that I have rewritten the text.",
]


@pytest.mark.parametrize("closing", ON_THE_LINE)
@pytest.mark.parametrize("body", [BODY, f'{SOURCE} "{BODY}"', f"({BODY})"])
def test_a_remark_may_follow_on_the_same_line(closing: str, body: str) -> None:
    assert cleaned(f"{body} {closing}") == (body, None, closing)


WRITTEN = [
    "I hope that bees will live.", "We hope this helps to protect bees.", "We hope this study helps to save them.",
    "Let us know more of bees.", "Note: WHO stands for World Health Organization.", "Note that bees are not wasps.",
    "Please note that the hive is closed on Sundays.", "It is important to note that bees sleep.",
    "However, the authors note that the sample was small.", "I have changed my mind about bees.",
    "I have added honey to my tea.", "Would bees dance in the dark?", "Can I keep bees in a town?",
    "If you keep bees, do not hesitate to ask a keeper.", "Don't hesitate to reach out to your doctor for guidance.",
    "Feel free to visit the hives.", "Changes:\n- more bees\n- more flowers", "What they need:\n- water\n- flowers",
    "The revised version was published in 1999.", "This paper was rewritten twice.", "I am happy that bees dance.",
    "Bees dance. ---", "Copyright 2010. All rights reserved.",
]  # fmt: skip


@pytest.mark.parametrize("sentence", WRITTEN)
def test_what_a_person_would_write_at_the_end_stays(sentence: str) -> None:
    for text in (f"{BODY} {sentence}", f"{BODY}\n\n{sentence}"):
        assert cleaned(text) == (text, None, None)
    assert remark(f"{BODY}\n\n{sentence}") is None


WRAPPERS = [
    ("```\n", "\n```"),
    ("```text\n", "```"),
    ('"', '"'),
    ("\u201c", "\u201d"),
    ("\u00ab ", " \u00bb"),
    ("**", "**"),
    ("<rewritten_text>\n", "\n</rewritten_text>"),
    ("<output>", "</output>"),
    ('```\n"', '"\n```'),
]


@pytest.mark.parametrize(("before", "after"), WRAPPERS)
def test_a_wrapper_around_all_is_taken_off(before: str, after: str) -> None:
    assert cleaned(before + BODY + after) == (BODY, before.strip(), after.strip())


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (f'Sure, here is the rewritten text:\n\n"{BODY}"\n\nI hope this helps!', BODY),
        (f"Here is the rewritten text:\n\n```\n{BODY}\n```\n\nNote: I have kept the original meaning.", BODY),
        (f"Here is the rewritten text:\n\n```\n{BODY}\n```", BODY),
        (f"<think>hm</think>\n<output>Rewritten text: {BODY}</output>", BODY),
        (f"Rewritten text:\n---\n{BODY}\n---\nLet me know if you want more.", BODY),
    ],
)
def test_layers_are_taken_off_one_after_another(raw: str, text: str) -> None:
    assert cleaned(raw)[0] == text


INSIDE = [
    f'"Bees" is a word. {BODY} So is "hive"',
    "\u201cBees\u201d is a word, and so is \u201chive\u201d",
    f'"{BODY}" said the keeper.',
    f'{BODY} They call it "dance"',
    "**Bees** and **flowers**",
    f"```\n{BODY}\n```\n\n{BODY}",
    f"```\n{BODY}\n```\nand\n```\n{BODY}\n```",
    f"<b>{BODY}</b>",
    f"<output>{BODY}</answer>",
    f"* {BODY}",
    f"'{BODY}'",
]


@pytest.mark.parametrize("text", INSIDE)
def test_what_is_not_around_all_stays(text: str) -> None:
    assert cleaned(text) == (text, None, None)


OF_THE_SOURCE = [
    (f"Here is a rewritten version of the passage: {SOURCE}", f"Here is a rewritten version of the text: {BODY}"),
    (f"<think> is a tag. </think> {SOURCE}", f"<think> is a tag. </think> {BODY}"),
    (f"{SOURCE} I hope this helps.", f"{BODY} I hope it helps!"),
    (f"{SOURCE} Any questions?", f"{BODY} Let me know if you have questions."),
    (f"{SOURCE} The text was rewritten in 1920.", f"{BODY}\n\nNote: The rewritten text is of 1920."),
    (f"{SOURCE}\nNote:", f"{BODY}\nNote:"),
    (f"{SOURCE}\nWord count: 10", f"{BODY}\nWord count: 9"),
    (f'"{SOURCE}"', f'"{BODY}"'),
    (f"\u201c{SOURCE}\u201d", f"\u201c{BODY}\u201d"),
    (f"```\n{SOURCE}\n```", f"```\n{BODY}\n```"),
    (f"**{SOURCE}**", f"**{BODY}**"),
    (f"<text>{SOURCE}</text>", f"<text>{BODY}</text>"),
    (f"{SOURCE}\n```\nwaggle()\n```", f"{BODY}\n```"),
]


@pytest.mark.parametrize(("source", "text"), OF_THE_SOURCE)
def test_what_the_source_has_itself_stays(source: str, text: str) -> None:
    assert cleaned(text, source) == (text, None, None)


@pytest.mark.parametrize("cue", ["We hope so.", "Let me know.", "Feel free.", "Do not hesitate.", "Anything else?"])
def test_a_source_that_ends_with_a_courtesy_of_its_own_words_keeps_that_of_the_rewrite(cue: str) -> None:
    text = f"{BODY} Let me know if you have more."
    assert cleaned(text, f"{SOURCE} {cue}") == (text, None, None)
    assert cleaned(text, f"{SOURCE} Questions.") == (text, None, None)


def test_a_fence_that_only_ends_goes() -> None:
    assert cleaned(f"{BODY}```") == (BODY, None, "```")


@pytest.mark.parametrize("text", [text for _, text in OF_THE_SOURCE])
def test_the_same_is_taken_off_for_a_source_without_it(text: str) -> None:
    assert cleaned(text)[1:] != (None, None)


def test_a_courtesy_early_in_a_long_source_keeps_none_at_the_end() -> None:
    source = f"I hope this helps. {SOURCE * 20}"
    assert cleaned(f"{BODY} I hope this helps!", source) == (BODY, None, "I hope this helps!")


@pytest.mark.parametrize(
    "text",
    [
        "Sure! Here is the rewritten text:", "I hope this helps!",
        "Here is the rewritten text:\n\n---\n\nI hope this helps!", "<think>Hm.</think>", '"..."', "**Note:**",
        "Certainly! Let me know if you need more.",
    ],
)  # fmt: skip
def test_where_nothing_would_be_left_nothing_is_taken_off(text: str) -> None:
    assert cleaned(f" {text}\n") == cleaned(text) == (text, None, None)


@pytest.mark.parametrize("raw", ["", " \n\t", None])
def test_an_empty_answer_stays_empty(raw: str | None) -> None:
    assert clean(series(raw), series(SOURCE)).row(0) == ("", None, None)


def test_a_missing_source_has_nothing_to_keep() -> None:
    assert clean(series(f'"{BODY}"'), series(None)).row(0) == (BODY, '"', '"')


def test_an_unended_thought_stays() -> None:
    text = f"<think>\nThe user wants {BODY}"
    assert cleaned(text) == (text, None, None)


def test_answers_are_cleaned_a_row_each_in_their_order() -> None:
    raw = [f"Rewritten text: {BODY}", "Bees.", f"{BODY} I hope this helps!", "", '"Bees."'] * 3
    table = clean(series(*raw), series(*[SOURCE] * 15))
    assert table.schema == dict.fromkeys(("text", "opening", "closing"), pl.String)
    assert table["text"].to_list() == [BODY, "Bees.", BODY, "", "Bees."] * 3
    assert table["opening"].to_list() == ["Rewritten text:", None, None, None, '"'] * 3
    assert table["closing"].to_list() == [None, None, "I hope this helps!", None, '"'] * 3


def test_answers_and_sources_must_be_as_many() -> None:
    with pytest.raises(UserError, match=r"clean: expected as many answers as sources \(1\), got 2$"):
        clean(series("a", "b"), series("a"))


PIECES = st.sampled_from(
    [
        BODY,
        SOURCE,
        "Sure, here is the rewritten text:",
        "Rewritten text:",
        "Certainly!",
        "I hope this helps!",
        "Let me know if you need more.",
        "Note: I have rewritten the text.",
        "Note:",
        "Changes made:\n- one",
        "```",
        "```\n",
        '"',
        "**",
        "---",
        "<think>",
        "</think>",
        "<output>",
        "</output>",
        "\n",
        "\n\n",
        " ",
        "\u201c",
        "\u201d",
        "\u00a0",
    ]
)


@given(st.lists(PIECES, max_size=9).map(" ".join), st.sampled_from([SOURCE, "", "Note: the text was rewritten."]))
@settings(max_examples=150)
def test_the_parts_make_up_the_answer_and_the_text_is_never_emptied(raw: str, source: str) -> None:
    text, opening, closing = cleaned(raw, source)
    assert "".join(f"{opening or ''}{text}{closing or ''}".split()) == "".join(raw.split())
    assert text == text.strip()
    assert any(map(str.isalnum, text)) or not any(map(str.isalnum, raw)) or (opening, closing) == (None, None)


@given(st.lists(PIECES, max_size=9).map("\n".join))
@settings(max_examples=80)
def test_what_was_cleaned_from_itself_stays(raw: str) -> None:
    once = cleaned(raw)[0]
    assert cleaned(once, once) == (once, None, None)


def test_a_text_can_be_all_remark() -> None:
    assert remark("I hope this helps!") == "I hope this helps!"
    assert remark("") is None


@pytest.mark.parametrize("loop", ["Let me know if you need more. ", "Note that I kept the original text. "])
def test_a_model_in_a_loop_is_not_followed_to_the_beginning(loop: str) -> None:
    raw = "A fine text about apples. " + loop * 20_000
    text, opening, _ = cleaned(raw)
    assert text.startswith("A fine text about apples. " + loop)
    assert opening is None
    assert len(text) > 10_000 * len(loop)

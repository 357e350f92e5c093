"""Findings about texts: openings, refusals, endings, shared terms, scripts; by hand, and on NFCorpus."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt.datasets.load import load
from ranktilt.text import quality


def series(*texts: str) -> pl.Series:
    return pl.Series("text", texts, dtype=pl.String)


BODY = "Bees dance to tell where flowers are."

OPENINGS = [
    "Here is a rewritten version of the passage:", "Here's a possible rewrite of the text:",
    "here is my attempt to rewrite your text:\nRewritten Text:", "Sure, here's the rewritten text:",
    "Of course! I'd be happy to help you rewrite the passage. Here is the rewritten passage:",
    "Sure thing! I can certainly help with that.", "Certainly!", "Sure!", "Rewritten text:", "**Rewritten text:**",
    "## Rewritten Passage:", "Rewritten version (in plain English):", "The rewritten text is as follows:",
    "Revised text:", "Original text:", "The following is a paraphrase of the passage:",
    "This is a rewritten version of the passage.", "Here is a summary of the text:", "Here's my rewrite:",
    "I've rewritten the text as follows:", "As requested, here is the rephrased sentence:",
    "Thank you for providing the text. Here is a rewritten version:", "OK \u2013 here is one reworded version:\n---",
    "Here is a polished version:", "Here's a clearer and more concise version of the text:",
    "Below is a condensed version:", "Rewritten text\n---", "**Rewritten text**\n---",
    "## The paraphrased passage\n---",
]  # fmt: skip
SENTENCES = [
    "Here we show that bees rewrite their maps: a study of memory.",
    "Here are the results of the second trial: bees prefer blue.",
    "Here is a list of the flowers that bees visit: clover and lime.", "Sure enough, the bees came back.",
    "Sure, the bees came back, but late.", "Yes! We have honey.",
    "This is a version of the model that was fitted to the data: see below.",
    "This is a revised version of an article that appeared in 1999. It was rewritten.",
    "The following is a list of rewritten rules: one, two.", "Rewriting history: how bees lost their name.",
    "Revised version: March 2010. Bees of the south.", "Text: a short history of writing.",
    "The original text was lost in 1666: only a copy remains.", "I have rewritten history.",
    "I can help my neighbour with the harvest. It is not hard.", "Objective: to rewrite the guidelines of the trade.",
    "", "Here is the rule by which a compiler rewrites queries: push filters down.",
    "Here is a simplified version of the rule by which bees find home: turn to the sun.",
    "Here is the corrected version: the bees were blue.", "Here is a concise history of the hive: it grew.",
    "Here is a summary: bees dance.", "Rewritten by hand: a history of copies.", "Got it? Bees dance.",
]  # fmt: skip


def test_openings_are_found_and_removed_to_the_letter() -> None:
    for end in (f" {BODY}", f"\n\n{BODY}"):
        texts = series(*(start + end for start in OPENINGS))
        assert quality.opening(texts).to_list() == OPENINGS
        assert quality.without_opening(texts).to_list() == [BODY] * len(OPENINGS)
    for start in ("Rewritten text:", "Here is a rewritten version of the passage.", "Original text:"):
        assert quality.opening(series(start)).to_list() == [start]  # all there is
        assert quality.without_opening(series(start)).to_list() == [""]
    for start in ("Here is a summary:", "Here's a short, concise summary:"):  # only on a line of its own
        assert quality.opening(series(f"{start}\n\n{BODY}", f"{start} {BODY}")).to_list() == [start, None]


def test_what_a_person_may_begin_with_is_no_opening() -> None:
    assert quality.opening(series(*SENTENCES)).to_list() == [None] * len(SENTENCES)
    assert quality.without_opening(series(*SENTENCES)).to_list() == SENTENCES


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f'Rewritten text: "{BODY}"', BODY),
        (f"Rewritten text:\n\u201c{BODY}\u201d\n", BODY),
        ('Rewritten text: "Bees" dance, say "some"', '"Bees" dance, say "some"'),
        (f'"Bees" is a word. {BODY}', f'"Bees" is a word. {BODY}'),
        (f"Rewritten text: *Apis mellifera*. {BODY}", f"*Apis mellifera*. {BODY}"),
        (f"Rewritten text:\n```text\n{BODY}", BODY),
    ],
)
def test_quotation_marks_around_the_whole_rest_go_too(text: str, rest: str) -> None:
    assert quality.without_opening(series(text)).to_list() == [rest]


REFUSALS = [
    "I'm sorry, but I cannot rewrite this text.", "I\u2019m sorry, but I can\u2019t help with that.",
    "I apologize, but I cannot fulfil your request.",
    "Sorry, but without more context it is not possible for me to answer.",
    "I'm sorry, but I don't have enough information.", "As an AI language model, I cannot give an opinion.",
    "Unfortunately, as an AI, I have no access to the article.", "I cannot fulfill your request.",
    "Unfortunately, I am not able to rewrite this text.", "It is not appropriate for me to rewrite this text.",
    "It seems that the text is missing. Could you please provide the text to rewrite?",
    '"I am unable to provide a rewrite."', "I won't be able to help with that.",
    "I must respectfully decline to rewrite this text.", "I must decline this request.",
    "I'm not comfortable rewriting this text.", "I can\u2019t create content of this kind.",
    "I cannot summarise the given passage.", "It looks like you haven't provided any text to rewrite.",
    "No text was provided.",
]  # fmt: skip
WRITING = [
    "I'm sorry to hear that you feel ill. You should rest.", "Unfortunately, we cannot exclude that the bees slept.",
    "As an AI researcher, she studies bees.", "As an AI language model, ChatGPT can write about bees.",
    "I can't help but wonder why bees dance.", "It is not possible to say why bees dance.",
    "Bees cannot see red. I'm sorry, but I cannot say why.", "Language models refuse: I cannot, they say.",
    "I must decline your kind invitation to the ball.", "I cannot create an account: what should I do?",
    "I cannot write about bees without a smile.", "I'm not comfortable with bees.",
    "You did not give the bees any food.", "No text was given more weight than this one by the bees' friends.", "",
]  # fmt: skip


def test_a_refusal_is_found_and_what_a_person_may_write_is_none() -> None:
    assert [text for text in REFUSALS if not quality.refusal(series(text))[0]] == []
    assert [text for text in WRITING if quality.refusal(series(text))[0]] == []


WHOLE = [
    "Bees dance.", "Do bees dance?", "Bees dance!  \n", 'She said: "Bees dance."', "She said: \u201cbees dance.\u201d",
    "She said: \u201cbees dance\u201d.", "(Bees dance.)", "**Bees dance.**", "Bees dance. (Frisch, 1927)",
    "Bees dance. [12]", "Bees dance.[3][4]", "Bees dance.12", "Bees dance.1,2", "As shown by Frisch et al.",
    "More at https://example.org/bees/12", "More at <https://example.org/bees>.", "蜜蜂会跳舞。", "मधुमक्खियाँ नाचती हैं।",
    "هل ترقص النحلة؟", "ผึ้งเต้นรำ", "Bees dance.\u00bb",
]  # fmt: skip
CUT = [
    "Bees dance", "Bees dance and", "Bees dance,", "Bees dance:", "Bees dance;", "Bees dance -",
    "Bees dance (by night)", "Bees dance...", "Bees dance\u2026", 'Bees dance..."', "The share of bees was 0.12",
    "Bees dance. Note:", "Bees dance. (ABSTRACT TRUNCATED AT 250 WORDS)", "蜜蜂会跳", "* bees\n* flowers",
]  # fmt: skip


def test_a_text_that_stops_in_the_middle_is_cut_off() -> None:
    assert [text for text in WHOLE if quality.cut_off(series(text))[0]] == []
    assert [text for text in CUT if not quality.cut_off(series(text))[0]] == []


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("  ", 0), ("one", 1), ("a  b\tc\nd\u00a0e", 5), ("well-known (fact), 3.5", 3)]
)
def test_words_are_runs_between_white_space(text: str, count: int) -> None:
    found = quality.words(series(text))
    assert found.to_list() == [count]
    assert found.dtype == pl.Int64


@pytest.mark.parametrize(
    ("a", "b", "jaccard", "overlap"),
    [
        ("red bees dance", "red bees sleep", 2 / 4, 2 / 3),
        ("Red RED red", "red", 1.0, 1.0),
        ("one two three four", "four", 1 / 4, 1 / 4),
        ("four", "one two three four", 1 / 4, 1.0),
        ("a-b_c", "a b_c", 1.0, 1.0),
        ("bees", "", 0.0, 0.0),
        ("", "bees", 0.0, np.nan),
        ("?!", " ", np.nan, np.nan),
        ("Ärzte ÄRZTE", "ärzte", 1.0, 1.0),
    ],
)
def test_shared_terms_by_hand(a: str, b: str, jaccard: float, overlap: float) -> None:
    np.testing.assert_array_equal(quality.jaccard(series(a), series(b)), [jaccard])
    left, _, both = quality.term_counts(series(a), series(b))
    np.testing.assert_array_equal(quality.share(both, left), [overlap])


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Bees dance.", "Latin"),
        ("Пчёлы танцуют, say bees", "other"),
        ("Bees (пчёлы) dance", "Latin"),
        ("蜜蜂会跳舞 bee", "unspaced"),
        ("蜜蜂研究方法論 について", "unspaced"),
        ("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "other"),
        ("12.5 % !?", None),
    ],
)
def test_the_script_is_that_of_most_letters(text: str, script: str | None) -> None:
    assert quality.script(series(text)).to_list() == [script]


@pytest.mark.parametrize("function", ["words", "opening", "without_opening", "refusal", "cut_off", "script"])
def test_a_finding_keeps_name_and_length(function: str) -> None:
    for texts in (series(), series("Bees dance.", "", "Rewritten text: a")):
        found = getattr(quality, function)(texts)
        assert found.name == "text"
        assert len(found) == len(texts)


@pytest.fixture(scope="module")
def twins(shared_data: Path) -> tuple[pl.Series, pl.Series]:
    nfcorpus = load(shared_data / "cocktail-nfcorpus")
    human, llama = nfcorpus.sources
    text = dict(nfcorpus.docs.select("id", "text").iter_rows())
    pairs = nfcorpus.pairs(human, llama)
    return tuple(pl.Series([text[i] for i in pairs[side]]) for side in "ab")  # type: ignore[return-value]


@pytest.mark.data
def test_nfcorpus_has_the_published_lengths_and_similarity(twins: tuple[pl.Series, pl.Series]) -> None:
    assert len(twins[0]) == 3633
    assert [quality.words(side).mean() for side in twins] == pytest.approx([220.98, 179.76], abs=0.01)
    assert quality.jaccard(*twins).mean() == pytest.approx(0.58, abs=0.01)
    left, _, both = quality.term_counts(*twins)
    assert quality.share(both, left).mean() == pytest.approx(0.69, abs=0.01)
    assert int((twins[0] == twins[1]).sum()) == 2


@pytest.mark.data
def test_nfcorpus_rewrites_begin_with_boilerplate_and_human_texts_never(twins: tuple[pl.Series, pl.Series]) -> None:
    human, llama = twins
    found = quality.opening(llama).drop_nulls()
    assert len(found) == 18
    assert found.str.contains("(?i)rewrit|original text").all()
    assert quality.opening(human).null_count() == len(human)
    assert not quality.refusal(pl.concat(twins)).any()
    changed = quality.without_opening(llama) != llama
    assert int(changed.sum()) == 18
    assert [int(quality.cut_off(side).sum()) for side in twins] == [58, 10]


@pytest.mark.data
def test_scifact_has_the_published_length_and_no_openings(shared_data: Path) -> None:
    text = load(shared_data / "scifact").docs["text"]
    assert quality.words(text).mean() == pytest.approx(201.81, abs=0.01)
    assert quality.opening(text).null_count() == len(text) == 5183
    assert not quality.refusal(text).any()

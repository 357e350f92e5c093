"""Properties of texts by hand and on NFCorpus; subsequences and trigrams against peers."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from ranktilt.data.loading.load import load
from ranktilt.data.text import quality
from ranktilt.data.text.ngram import Discounts, NgramModel, Words, cross_fitted_perplexity
from ranktilt.data.text.sequence import common_length, holds_share
from ranktilt.errors import UserError


def series(*texts: str) -> pl.Series:
    return pl.Series("text", texts, dtype=pl.String)


BODY = "Bees dance to tell where flowers are."

OPENINGS = [
    "Here is a rewritten version of the passage:",
    "Here's a possible rewrite of the text:",
    "here is my attempt to rewrite your text:\nRewritten Text:",
    "Sure, here's the rewritten text:",
    "Of course! I'd be happy to help you rewrite the passage. Here is the rewritten passage:",
    "Sure thing! I can certainly help with that.",
    "Certainly!",
    "Sure!",
    "Rewritten text:",
    "**Rewritten text:**",
    "## Rewritten Passage:",
    "Rewritten version (in plain English):",
    "The rewritten text is as follows:",
    "Revised text:",
    "Original text:",
    "The following is a paraphrase of the passage:",
    "This is a rewritten version of the passage.",
    "Here is a summary of the text:",
    "Here's my rewrite:",
    "I've rewritten the text as follows:",
    "As requested, here is the rephrased sentence:",
    "Thank you for providing the text. Here is a rewritten version:",
    "OK \u2013 here is one reworded version:\n---",
    "Here is a polished version:",
    "Here's a clearer and more concise version of the text:",
    "Below is a condensed version:",
    "Rewritten text\n---",
    "**Rewritten text**\n---",
    "## The paraphrased passage\n---",
]
SENTENCES = [
    "Here we show that bees rewrite their maps: a study of memory.",
    "Here are the results of the second trial: bees prefer blue.",
    "Here is a list of the flowers that bees visit: clover and lime.",
    "Sure enough, the bees came back.",
    "Sure, the bees came back, but late.",
    "Yes! We have honey.",
    "This is a version of the model that was fitted to the data: see below.",
    "This is a revised version of an article that appeared in 1999. It was rewritten.",
    "The following is a list of rewritten rules: one, two.",
    "Rewriting history: how bees lost their name.",
    "Revised version: March 2010. Bees of the south.",
    "Text: a short history of writing.",
    "The original text was lost in 1666: only a copy remains.",
    "I have rewritten history.",
    "I can help my neighbour with the harvest. It is not hard.",
    "Objective: to rewrite the guidelines of the trade.",
    "",
    "Here is the rule by which a compiler rewrites queries: push filters down.",
    "Here is a simplified version of the rule by which bees find home: turn to the sun.",
    "Here is the corrected version: the bees were blue.",
    "Here is a concise history of the hive: it grew.",
    "Here is a summary: bees dance.",
    "Rewritten by hand: a history of copies.",
    "Got it? Bees dance.",
]


def test_openings_are_found_and_removed_to_the_letter() -> None:
    for end in (f" {BODY}", f"\n\n{BODY}"):
        texts = series(*(start + end for start in OPENINGS))
        assert quality.opening(texts).to_list() == OPENINGS
        assert quality.without_opening(texts).to_list() == [BODY] * len(OPENINGS)
    for start in (
        "Rewritten text:",
        "Here is a rewritten version of the passage.",
        "Original text:",
    ):
        assert quality.opening(series(start)).to_list() == [start]  # all there is
        assert quality.without_opening(series(start)).to_list() == [""]
    for start in (
        "Here is a summary:",
        "Here's a short, concise summary:",
    ):  # only on a line of its own
        assert quality.opening(series(f"{start}\n\n{BODY}", f"{start} {BODY}")).to_list() == [
            start,
            None,
        ]


def test_what_a_person_may_begin_with_is_no_opening() -> None:
    assert quality.opening(series(*SENTENCES)).to_list() == [None] * len(SENTENCES)
    assert quality.without_opening(series(*SENTENCES)).to_list() == SENTENCES


def test_quotation_marks_around_the_whole_rest_go_too() -> None:
    expected = {
        f'Rewritten text: "{BODY}"': BODY,
        f"Rewritten text:\n\u201c{BODY}\u201d\n": BODY,
        'Rewritten text: "Bees" dance, say "some"': '"Bees" dance, say "some"',
        f'"Bees" is a word. {BODY}': f'"Bees" is a word. {BODY}',
        f"Rewritten text: *Apis mellifera*. {BODY}": f"*Apis mellifera*. {BODY}",
        f"Rewritten text:\n```text\n{BODY}": BODY,
    }
    assert {text: quality.without_opening(series(text))[0] for text in expected} == expected


REFUSALS = [
    "I'm sorry, but I cannot rewrite this text.",
    "I\u2019m sorry, but I can\u2019t help with that.",
    "I apologize, but I cannot fulfil your request.",
    "Sorry, but without more context it is not possible for me to answer.",
    "I'm sorry, but I don't have enough information.",
    "As an AI language model, I cannot give an opinion.",
    "Unfortunately, as an AI, I have no access to the article.",
    "I cannot fulfill your request.",
    "Unfortunately, I am not able to rewrite this text.",
    "It is not appropriate for me to rewrite this text.",
    "It seems that the text is missing. Could you please provide the text to rewrite?",
    '"I am unable to provide a rewrite."',
    "I won't be able to help with that.",
    "I must respectfully decline to rewrite this text.",
    "I must decline this request.",
    "I'm not comfortable rewriting this text.",
    "I can\u2019t create content of this kind.",
    "I cannot summarise the given passage.",
    "It looks like you haven't provided any text to rewrite.",
    "No text was provided.",
]
WRITING = [
    "I'm sorry to hear that you feel ill. You should rest.",
    "Unfortunately, we cannot exclude that the bees slept.",
    "As an AI researcher, she studies bees.",
    "As an AI language model, ChatGPT can write about bees.",
    "I can't help but wonder why bees dance.",
    "It is not possible to say why bees dance.",
    "Bees cannot see red. I'm sorry, but I cannot say why.",
    "Language models refuse: I cannot, they say.",
    "I must decline your kind invitation to the ball.",
    "I cannot create an account: what should I do?",
    "I cannot write about bees without a smile.",
    "I'm not comfortable with bees.",
    "You did not give the bees any food.",
    "No text was given more weight than this one by the bees' friends.",
    "",
]


def test_a_refusal_is_found_and_what_a_person_may_write_is_none() -> None:
    assert [text for text in REFUSALS if not quality.refusal(series(text))[0]] == []
    assert [text for text in WRITING if quality.refusal(series(text))[0]] == []


WHOLE = [
    "Bees dance.",
    "Do bees dance?",
    "Bees dance!  \n",
    'She said: "Bees dance."',
    "She said: \u201cbees dance.\u201d",
    "She said: \u201cbees dance\u201d.",
    "(Bees dance.)",
    "**Bees dance.**",
    "Bees dance. (Frisch, 1927)",
    "Bees dance. [12]",
    "Bees dance.[3][4]",
    "Bees dance.12",
    "Bees dance.1,2",
    "As shown by Frisch et al.",
    "More at https://example.org/bees/12",
    "More at <https://example.org/bees>.",
    "蜜蜂会跳舞。",
    "मधुमक्खियाँ नाचती हैं।",
    "هل ترقص النحلة؟",
    "ผึ้งเต้นรำ",
    "Bees dance.\u00bb",
]
CUT = [
    "Bees dance",
    "Bees dance and",
    "Bees dance,",
    "Bees dance:",
    "Bees dance;",
    "Bees dance -",
    "Bees dance (by night)",
    "Bees dance...",
    "Bees dance\u2026",
    'Bees dance..."',
    "The share of bees was 0.12",
    "Bees dance. Note:",
    "Bees dance. (ABSTRACT TRUNCATED AT 250 WORDS)",
    "蜜蜂会跳",
    "* bees\n* flowers",
]


def test_a_text_that_stops_in_the_middle_is_cut_off() -> None:
    assert [text for text in WHOLE if quality.cut_off(series(text))[0]] == []
    assert [text for text in CUT if not quality.cut_off(series(text))[0]] == []


def test_words_are_runs_between_white_space() -> None:
    counts = quality.words(series("", "  ", "one", "a  b\tc\nd\u00a0e", "well-known (fact), 3.5"))
    assert (counts.dtype, counts.to_list()) == (pl.Int64, [0, 0, 1, 5, 3])


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


def test_the_script_is_that_of_most_letters() -> None:
    expected = {
        "Bees dance.": "Latin",
        "Пчёлы танцуют, say bees": "other",
        "Bees (пчёлы) dance": "Latin",
        "蜜蜂会跳舞 bee": "unspaced",
        "蜜蜂研究方法論 について": "unspaced",
        "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ": "other",
        "12.5 % !?": None,
    }
    assert {text: quality.script(series(text))[0] for text in expected} == expected


@pytest.mark.parametrize(
    "function", ["words", "opening", "without_opening", "refusal", "cut_off", "script"]
)
def test_a_finding_keeps_name_and_length(function: str) -> None:
    for texts in (series(), series("Bees dance.", "", "Rewritten text: a")):
        values = getattr(quality, function)(texts)
        assert values.name == "text"
        assert len(values) == len(texts)


@pytest.mark.data
def test_nfcorpus_has_the_published_lengths_and_similarity(shared_data: Path) -> None:
    nfcorpus = load(shared_data / "cocktail-nfcorpus")
    text = dict(nfcorpus.docs.select("id", "text").iter_rows())
    pairs = nfcorpus.pairs(*nfcorpus.sources)
    twins = [pl.Series([text[i] for i in pairs[side]]) for side in "ab"]
    assert pairs.height == 3633
    assert [quality.words(side).mean() for side in twins] == pytest.approx(
        [220.98, 179.76], abs=0.01
    )
    assert quality.jaccard(*twins).mean() == pytest.approx(0.58, abs=0.01)
    left, _, both = quality.term_counts(*twins)
    assert quality.share(both, left).mean() == pytest.approx(0.69, abs=0.01)
    assert [int(quality.cut_off(side).sum()) for side in twins] == [58, 10]


@pytest.mark.data
def test_scifact_has_the_published_length_and_no_openings(shared_data: Path) -> None:
    text = load(shared_data / "scifact").docs["text"]
    assert quality.words(text).mean() == pytest.approx(201.81, abs=0.01)
    assert quality.opening(text).null_count() == len(text) == 5183
    assert not quality.refusal(text).any()


def by_table(a: list[str], b: list[str]) -> int:
    row = [0] * (len(b) + 1)
    for word in a:
        last, row = row, [0]
        for column, word_of_b in enumerate(b):
            row.append(
                last[column] + 1 if word == word_of_b else max(last[column + 1], row[column])
            )
    return row[-1]


WORDS = st.lists(st.sampled_from("abcd"), max_size=90)


@given(WORDS, WORDS, st.sampled_from([0.3, 0.5, 0.8, 0.95, 1.0]))
@settings(max_examples=80)
def test_the_length_is_that_of_the_table_and_shortcuts_change_no_answer(
    a: list[str], b: list[str], share: float
) -> None:
    length = by_table(a, b)
    assert common_length(a, b) == length == common_length(b, a)
    assert holds_share(a, b, share) is bool(a and length >= share * len(a))


@pytest.mark.parametrize(
    ("of", "within", "share", "enough"),
    [
        ("a b c d", "a b x d", 0.75, True),
        ("a b c d", "a b x d", 0.76, False),
        ("a b c d", "a b", 0.5, True),
        ("a b c d", "x a x b x c x d x", 1.0, True),
        ("a b", "a b c d", 1.0, True),
        ("a b c d", "d c b a", 0.5, False),
        ("a a a b", "a b b b", 0.75, False),
        ("", "a b", 0.5, False),
    ],
)
def test_the_share_is_of_the_first_in_its_order(
    of: str, within: str, share: float, enough: bool
) -> None:
    assert holds_share(of.split(), within.split(), share) is enough


TEXTS = [
    "the cat sat on the mat",
    "the cat ate the rat on the mat",
    "a rat sat",
    "on the cat the rat sat",
]


def fitted(texts: Sequence[str], **options: object) -> tuple[NgramModel, Words]:
    words = Words.from_texts(pl.Series(texts))
    trigrams, _ = words.trigrams(np.arange(len(texts)))
    return NgramModel.fit(trigrams, words.vocabulary, **options), words  # type: ignore[arg-type]


def test_by_hand() -> None:
    model, _ = fitted(["a b", "a c"], discounts=Discounts(words=0.5, pairs=0.5, trigrams=0.5))
    uniform = 1 / 4  # a, b, c and the unknown word
    a, b = (
        0.5 / 3 + 0.5 * 3 / 3 * uniform,
        0.5 / 3 + 0.5 * 3 / 3 * uniform,
    )  # each comes after one word
    after_a = (1 - 0.5) / 2 + 0.5 * 2 / 2 * b  # two words come after "a", each in one context
    assert model.probability(np.array([[0, 1, 2]])) == pytest.approx(
        [(1 - 0.5) / 2 + 0.5 * 2 / 2 * after_a]
    )
    start = (1 - 0.5) / 1 + 0.5 * 1 / 1 * a
    assert model.probability(np.array([[0, 0, 1]])) == pytest.approx(
        [(2 - 0.5) / 2 + 0.5 * 1 / 2 * start]
    )
    assert model.probability(np.array([[2, 3, 1], [2, 3, 4]])) == pytest.approx([a, 0.5 * uniform])


def test_discounts_are_ney_s() -> None:
    model, _ = fitted(["a b c", "a b d", "a b c d"])
    # "a b" three times, "a b c" twice; "a", "a b d" and "b c d" otherwise
    trigrams = model.trigrams
    assert sorted(trigrams.counts) == [1, 1, 2, 3, 3]
    assert trigrams.discount == pytest.approx(2 / (2 + 2 * 1))
    assert fitted(["a b c"])[0].trigrams.discount == 0.95  # nothing comes twice
    assert fitted(["a a a", "a a a"])[0].trigrams.discount == 0.1  # nothing comes once


@settings(deadline=None)
@given(st.lists(st.text("abcd ", max_size=20), min_size=1, max_size=6))
def test_probabilities_add_up_to_one_after_every_context(texts: list[str]) -> None:
    model, words = fitted(texts)
    vocabulary = range(1, words.vocabulary + 2)
    for first, second in itertools.product(range(words.vocabulary + 2), repeat=2):
        trigrams = np.array([[first, second, word] for word in vocabulary])
        probabilities = model.probability(trigrams)
        assert probabilities.sum() == pytest.approx(1, abs=1e-12)
        assert (probabilities > 0).all()


def test_as_nltk_where_single_words_are_not_mixed_with_the_uniform_distribution() -> None:
    library = pytest.importorskip("nltk.lm")
    model, words = fitted(TEXTS, discounts=Discounts(words=0.0, pairs=0.3, trigrams=0.3))
    trigrams, _ = words.trigrams(np.arange(len(TEXTS)))
    names = trigrams.astype(str).tolist()
    reference = library.KneserNeyInterpolated(3, discount=0.3)
    reference.fit(
        [[gram[start:] for start in range(3)] for gram in map(tuple, names)],
        vocabulary_text=list(itertools.chain(*names)),
    )
    every = np.array(
        [
            [*context, word]
            for context in {*map(tuple, trigrams[:, :2].tolist()), (1, 1), (3, 2)}
            for word in range(1, words.vocabulary + 1)
        ]
    )
    expected = [
        reference.score(str(gram[2]), [str(gram[0]), str(gram[1])]) for gram in every.tolist()
    ]
    assert model.probability(every) == pytest.approx(expected, abs=1e-9)


def scored(texts: list[str], training: list[bool] | None = None) -> list[float]:
    origins = pl.Series([f"d{number // 2}" for number in range(len(texts))], dtype=pl.String)
    learned = np.array(training or [number % 2 == 0 for number in range(len(texts))])
    return cross_fitted_perplexity(pl.Series(texts, dtype=pl.String), origins, learned).tolist()


def test_a_text_and_its_twin_are_never_learned_from() -> None:
    """Twins of words that nothing else holds are as unlikely as unknown words can be."""
    others = [text for text in TEXTS * 20 for _ in "ab"]
    known, rare = (
        scored([*others, "the cat sat", "the cat sat"]),
        scored([*others, "x y z", "x y z"]),
    )
    assert known[-1] < rare[-1]
    assert rare[-1] == rare[-2]


def test_the_order_of_texts_makes_no_difference() -> None:
    texts = [*TEXTS, "", "a cat", "the the", "on a mat"] * 3
    origins = pl.Series([f"d{number % 8}" for number in range(24)])
    training = np.arange(24) % 3 == 0
    forward = cross_fitted_perplexity(pl.Series(texts), origins, training)
    backward = cross_fitted_perplexity(pl.Series(texts[::-1]), origins.reverse(), training[::-1])
    np.testing.assert_array_equal(forward, backward[::-1])
    assert np.isnan(forward[4])
    assert np.isnan(forward).sum() == 3


def test_only_so_many_words_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text for text in TEXTS * 10 for _ in "ab"]
    all_scores = scored(texts)
    monkeypatch.setattr("ranktilt.data.text.ngram.MOST_WORDS", 60)
    assert scored(texts) != all_scores


@pytest.mark.parametrize(
    ("texts", "training"),
    [
        (["a b", "a b"], [True, False]),
        (["", "", "", ""], None),
        (["a", "a", "b", "b"], [False] * 4),
        ([], []),
    ],
)
def test_nothing_to_learn_from_is_one_line(texts: list[str], training: list[bool] | None) -> None:
    with pytest.raises(
        UserError, match="an n-gram model needs texts of several origins to learn from"
    ):
        scored(texts, training)

"""Kneser-Ney trigrams: by hand, against nltk, as a distribution, and without a look at what is scored."""

import itertools
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.errors import UserError
from ranktilt.text.ngram import NgramModel, Words, cross_fitted_perplexity

TEXTS = ["the cat sat on the mat", "the cat ate the rat on the mat", "a rat sat", "on the cat the rat sat"]


def fitted(texts: Sequence[str], **options: object) -> tuple[NgramModel, Words]:
    words = Words.of(pl.Series(texts))
    trigrams, _ = words.trigrams(np.arange(len(texts)))
    return NgramModel.fit(trigrams, words.vocabulary, **options), words  # type: ignore[arg-type]


def test_by_hand() -> None:
    model, _ = fitted(["a b", "a c"], discounts=(0.5, 0.5, 0.5))
    uniform = 1 / 4  # a, b, c and the unknown word
    a, b = 0.5 / 3 + 0.5 * 3 / 3 * uniform, 0.5 / 3 + 0.5 * 3 / 3 * uniform  # each comes after one word
    after_a = (1 - 0.5) / 2 + 0.5 * 2 / 2 * b  # two words come after "a", each in one context
    assert model.probability(np.array([[0, 1, 2]])) == pytest.approx([(1 - 0.5) / 2 + 0.5 * 2 / 2 * after_a])
    start = (1 - 0.5) / 1 + 0.5 * 1 / 1 * a
    assert model.probability(np.array([[0, 0, 1]])) == pytest.approx([(2 - 0.5) / 2 + 0.5 * 1 / 2 * start])
    assert model.probability(np.array([[2, 3, 1], [2, 3, 4]])) == pytest.approx([a, 0.5 * uniform])


def test_discounts_are_ney_s() -> None:
    model, _ = fitted(["a b c", "a b d", "a b c d"])
    _, _, trigrams = model.levels  # "a b" three times, "a b c" twice; "a", "a b d" and "b c d" otherwise
    assert sorted(trigrams.counts) == [1, 1, 2, 3, 3]
    assert trigrams.discount == pytest.approx(2 / (2 + 2 * 1))
    assert fitted(["a b c"])[0].levels[2].discount == 0.95  # nothing comes twice
    assert fitted(["a a a", "a a a"])[0].levels[2].discount == 0.1  # nothing comes once


@settings(deadline=None)
@given(st.lists(st.text("abcd ", max_size=20), min_size=1, max_size=6))
def test_probabilities_add_up_to_one_after_every_context(texts: list[str]) -> None:
    model, words = fitted(texts)
    vocabulary = range(1, words.vocabulary + 2)
    for first, second in itertools.product(range(words.vocabulary + 2), repeat=2):
        trigrams = np.array([[first, second, word] for word in vocabulary])
        found = model.probability(trigrams)
        assert found.sum() == pytest.approx(1, abs=1e-12)
        assert (found > 0).all()


def test_as_nltk_where_single_words_are_not_mixed_with_the_uniform_distribution() -> None:
    library = pytest.importorskip("nltk.lm")
    model, words = fitted(TEXTS, discounts=(0.0, 0.3, 0.3))
    trigrams, _ = words.trigrams(np.arange(len(TEXTS)))
    names = trigrams.astype(str).tolist()
    reference = library.KneserNeyInterpolated(3, discount=0.3)
    reference.fit(
        [[gram[start:] for start in range(3)] for gram in map(tuple, names)],
        vocabulary_text=list(itertools.chain(*names)),
    )
    every = np.array([[*context, word] for context in {*map(tuple, trigrams[:, :2].tolist()), (1, 1), (3, 2)}
                      for word in range(1, words.vocabulary + 1)])  # fmt: skip
    expected = [reference.score(str(gram[2]), [str(gram[0]), str(gram[1])]) for gram in every.tolist()]
    assert model.probability(every) == pytest.approx(expected, abs=1e-9)


def scored(texts: list[str], training: list[bool] | None = None) -> list[float]:
    origins = pl.Series([f"d{number // 2}" for number in range(len(texts))], dtype=pl.String)
    learned = np.array(training or [number % 2 == 0 for number in range(len(texts))])
    return cross_fitted_perplexity(pl.Series(texts, dtype=pl.String), origins, learned).tolist()


def test_a_text_and_its_twin_are_never_learned_from() -> None:
    """Twins of words that nothing else holds are as unlikely as unknown words can be."""
    others = [text for text in TEXTS * 20 for _ in "ab"]
    known, rare = scored([*others, "the cat sat", "the cat sat"]), scored([*others, "x y z", "x y z"])
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
    whole = scored(texts)
    monkeypatch.setattr("ranktilt.text.ngram.MOST_WORDS", 60)
    assert scored(texts) != whole


@pytest.mark.parametrize(("texts", "training"), [
    (["a b", "a b"], [True, False]), (["", "", "", ""], None), (["a", "a", "b", "b"], [False] * 4), ([], [])
])  # fmt: skip
def test_nothing_to_learn_from_is_one_line(texts: list[str], training: list[bool] | None) -> None:
    with pytest.raises(UserError, match="an n-gram model needs texts of several origins to learn from"):
        scored(texts, training)

"""Languages are told by their small words: each from each other, near ones aside, and never one from itself."""

from pathlib import Path

import pytest

from ranktilt.text.language import language, other_language, profiles

# Two sentences a language, on dancing bees and on honey in jars.
LISTED = Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").splitlines()
SENTENCES = {line.split(": ")[0]: line.split(": ", 1)[1].split(" | ") for line in LISTED}
NEAR = {"Danish", "Norwegian"}


def words(text: str) -> list[str]:
    return text.casefold().split()


def test_every_language_has_a_sentence_here() -> None:
    assert list(SENTENCES) == list(profiles())


@pytest.mark.parametrize("name", list(SENTENCES))
def test_a_language_is_named(name: str) -> None:
    assert [language(words(text)) for text in SENTENCES[name]] == [name, name]


@pytest.mark.parametrize("here", list(SENTENCES))
def test_a_text_in_another_language_is_found(here: str) -> None:
    others = {there: texts for there, texts in SENTENCES.items() if there != here and {here, there} != NEAR}
    for source in SENTENCES[here]:
        missed = [
            there for there, texts in others.items() for t in texts if not other_language(words(source), words(t))
        ]
        assert not missed


@pytest.mark.parametrize("name", list(SENTENCES))
def test_a_text_in_its_own_language_is_not_found(name: str) -> None:
    first, second = map(words, SENTENCES[name])
    assert not other_language(first, second)
    assert not other_language(second, first)


ENGLISH = (
    "Randomised placebo-controlled trial: serum 25-hydroxyvitamin D, HbA1c, LDL-cholesterol and systolic pressure in "
    "142 adults with type 2 diabetes mellitus; metformin, atorvastatin, ramipril allowed.",
    "Clostridium difficile, Escherichia coli and Staphylococcus aureus de novo in vitro: a comparison of "
    "il-6, tnf-alpha and de-differentiation with es cells.",
    "Na, K, Mg, Zn, Fe, Cu, Se, Mn: 1.2, 3.4, 0.5, 7.1, 6.0, 0.9, 0.1, 2.2 mg/kg (P < .001).",
)


@pytest.mark.parametrize("text", ENGLISH)
def test_terms_and_figures_are_of_no_language(text: str) -> None:
    for sentence in (*SENTENCES["English"], *ENGLISH):
        assert not other_language(words(sentence), words(text))
        assert not other_language(words(text), words(sentence))


@pytest.mark.parametrize("text", ["", "Bees", "Apis mellifera ligustica", "el la", "the of"])
def test_too_few_small_words_name_no_language(text: str) -> None:
    assert language(words(text)) is None
    assert not other_language(words(SENTENCES["English"][0]), words(text))


def test_a_language_needs_a_tenth_of_the_words() -> None:
    assert language(["the", "of", "and", *["x"] * 27]) == "English"
    assert language(["the", "of", "and", *["x"] * 28]) is None


def test_a_short_source_needs_two_words_of_its_own() -> None:
    spanish = words(SENTENCES["Spanish"][0])
    assert other_language(words("The dance of bees"), spanish)
    assert not other_language(words("The bees"), spanish)


def test_a_source_in_two_languages_has_no_other() -> None:
    both = words(SENTENCES["French"][0] + " " + SENTENCES["English"][0])
    for name in ("French", "English"):
        assert not other_language(both, words(SENTENCES[name][1]))
    assert other_language(both, words(SENTENCES["Polish"][1]))


def test_a_few_words_in_another_language_make_no_other_text() -> None:
    quoting = words(SENTENCES["English"][0] + ' They call it "la danza de las abejas".')
    assert not other_language(words(SENTENCES["English"][1]), quoting)


LATIN = (
    "Apes vallis saltant ut ceteris dicant ubi flores sint, idque meridie faciunt. Mel autem vasis fictilibus "
    "servabatur, quam ob rem sepulcris etiam repertum est, quae vetustiora sunt oppido. Multi scriptores antiqui "
    "tradiderunt apes regem suum sequi, neque umquam ab eo discedere, nisi cum examen novum nascitur atque alias "
    "sedes petit."
)


def test_a_language_without_a_profile_is_found_by_what_it_lacks() -> None:
    assert len(words(LATIN)) >= 40
    assert other_language(words(" ".join(SENTENCES["English"])), words(LATIN))
    assert not other_language(words(LATIN), words(LATIN))
    assert not other_language(words(SENTENCES["English"][0]), words(LATIN)[:39])


def test_the_words_of_a_profile_are_folded_and_many() -> None:
    for listed in profiles().values():
        assert all(word == word.casefold() and word.split() == [word] for word in listed)
        assert 25 <= len(listed) <= 80


def padded(small: str, count: int) -> list[str]:
    """These small words, and so many in all."""
    listed = small.split()
    return [*listed, *(f"x{number}" for number in range(count - len(listed)))]


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        # A tenth of the words, two of them in the source and three in the text.
        (padded("the which", 20), padded("los las del", 30), True),
        (padded("the which", 21), padded("los las del", 30), False),
        (padded("the which", 20), padded("los las del", 31), False),
        (padded("the", 5), padded("los las del", 9), False),
        (padded("the which", 5), padded("los las", 5), False),
        # Three times as many of its own as of the other's, on both sides.
        (padded("the which that los", 9), padded("los las del", 9), True),
        (padded("the which that los las", 9), padded("los las del", 9), False),
        (padded("the which", 9), padded("los las del the", 9), True),
        (padded("the which", 9), padded("los las del the which", 9), False),
        # Words of both speak for neither.
        (padded("the a a a a no no no", 9), padded("los las del", 9), False),
    ],
)
def test_how_many_small_words_tell_a_language(source: list[str], text: list[str], found: bool) -> None:
    assert other_language(source, text) is found


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        (padded("the " * 20, 100), padded("", 40), True),
        (padded("the " * 20, 100), padded("", 39), False),
        (padded("the " * 19, 100), padded("", 40), False),
        (padded("the " * 20, 100), padded("the " * 2, 67), True),
        (padded("the " * 20, 100), padded("the " * 3, 100), False),
        (padded("the " * 20, 100), padded("the " * 2, 60), False),
        ([], padded("", 40), False),
    ],
)
def test_how_few_small_words_are_no_text_in_the_language(source: list[str], text: list[str], found: bool) -> None:
    assert other_language(source, text) is found

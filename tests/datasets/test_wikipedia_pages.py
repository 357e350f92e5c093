"""Pages of Natural Questions: titles folded as BERT's tokenizer folds them, and the words of a text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.datasets.wikipedia_pages import NotAPage, fold_title, read_page
from tests.generation.questions import full, simplified


@pytest.mark.parametrize("form", [simplified, full])
def test_a_text_starts_at_the_first_paragraph_and_has_no_tags(form: Any) -> None:
    page = read_page(form(1, "q", "Red Apple", "Apples are red .", "They grow on trees ."))
    assert (page.title, page.text(100)) == ("Red Apple", "Apples are red . They grow on trees .")


@pytest.mark.parametrize("form", [simplified, full])
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ((), "one two"),
        (("links",), "one two links"),
        (("kept", "references"), "one two kept"),
        (("kept", "kept too", "references"), "one two kept kept too"),
    ],
)
def test_a_text_ends_before_the_last_list(form: Any, lists: tuple[str, ...], expected: str) -> None:
    assert read_page(form(1, "q", "T", "one", "two", lists=lists)).text(100) == expected


@pytest.mark.parametrize(("words", "expected"), [(1, "one"), (3, "one two three"), (9, "one two three four")])
def test_words_are_counted_between_blanks(words: int, expected: str) -> None:
    assert read_page(simplified(1, "q", "T", "one two", "three four")).text(words) == expected


def test_a_list_before_the_first_paragraph_does_not_end_the_text() -> None:
    text = "<H1> T </H1> <Ul> <Li> a </Li> </Ul> <P> one </P> two"
    assert read_page({"document_text": text}).text(9) == "one"


def test_a_page_without_paragraphs_is_whole() -> None:
    assert read_page({"document_text": "<H1> T </H1> <Dl> <Dd> one </Dd> </Dl>"}).text(9) == "T one"


def test_signs_of_mathematics_are_no_tags() -> None:
    page = read_page({"document_text": '<H1> T </H1> <P> a < b and c > d , <x </P> <Td_colspan="2"> e </Td>'})
    assert page.text(20) == "a < b and c > d , <x e"


def test_a_tag_with_blanks_in_it_is_one_token() -> None:
    listed = [{"token": t, "html_token": True} for t in ("<P>", "</P>", '<Table class="a b">')]
    words = [{"token": t, "html_token": False} for t in ("one", "two\xa0three")]
    assert read_page({"document_title": "T", "document_tokens": [listed[0], *words, *listed[1:]]}).text(9) == (
        "one two three"
    )


@pytest.mark.parametrize(
    ("row", "title"),
    [
        ({"document_text": "<H1> A B </H1> x", "document_title": "C"}, "C"),
        ({"document_text": "<H1> A B </H1> x <H1> D </H1>"}, "A B"),
        ({"document_text": "x", "document_url": "https://a.org//w/index.php?title=Red_apple%21&oldid=1"}, "Red apple!"),
        ({"document_text": "x", "document_url": "https://en.wikipedia.org/wiki/Red_apple"}, "Red apple"),
        ({"document_tokens": [], "document_title": "", "document_url": "https://en.wikipedia.org/wiki/A"}, "A"),
    ],
)  # fmt: skip
def test_a_title_is_found(row: dict[str, Any], title: str) -> None:
    assert read_page(row).title == title


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question_text": "q", "example_id": 1}, "expected document_text (simplified) or document_tokens (full); its "
         "fields are: example_id, question_text"),
        ({}, "expected document_text (simplified) or document_tokens (full); its fields are: none"),
        ({"document_text": "x"}, "expected a title in document_title, <H1> or document_url, found none"),
    ],
)  # fmt: skip
def test_what_is_no_page(row: dict[str, Any], message: str) -> None:
    with pytest.raises(NotAPage) as caught:
        read_page(row)
    assert str(caught.value) == message


@pytest.mark.parametrize("listed", [["x"], [{"word": "x"}], [{"token": 1}], [None]])
def test_tokens_that_are_none(listed: list[Any]) -> None:
    page = read_page({"document_title": "T", "document_tokens": listed})
    with pytest.raises(NotAPage, match="expected document_tokens to be objects with the string token"):
        page.text(1)


@pytest.mark.parametrize(
    ("title", "folded"),
    [
        ("The Walking Dead (season 8)", "the walking dead ( season 8 )"),
        ("The Walking Dead ( season 8 )", "the walking dead ( season 8 )"),
        ("2017–18 NBA", "2017 – 18 nba"),
        ("Beyoncé", "beyonce"),
        ("Don't", "don ' t"),
        ("  A \t B\u200b ", "a b"),
        ("東京", "東 京"),
        ("C++", "c + +"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευσ"),
        ("", ""),
    ],
)
def test_titles_are_folded(title: str, folded: str) -> None:
    assert fold_title(title) == folded


# Newer characters are in one library's tables and not yet in the other's.
@given(st.text(st.characters(max_codepoint=0x5FF, exclude_categories=["Cn"]), max_size=40))
def test_titles_are_folded_as_by_the_tokenizer_itself(title: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    normalized = tokenizers.normalizers.BertNormalizer(lowercase=True).normalize_str(title)
    pieces = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normalized)
    assert fold_title(title) == " ".join(piece for piece, _ in pieces)

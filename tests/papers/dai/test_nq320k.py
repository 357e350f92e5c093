"""NQ320K from small files in the two forms of Natural Questions."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.errors import DataError, DataWarning, UserError
from ranktilt.papers.dai.nq320k import PUBLISHED, build_nq320k, fold_title, read_page
from tests.refusals import refused
from tests.toy import jsonl, write


def tokens(title: str, *paragraphs: str, lists: Sequence[str] = ()) -> list[str]:
    """A page as Natural Questions tokenizes it: heading, a table, paragraphs, and lists of links at
    its end.
    """
    page = [
        "<H1>",
        *title.split(),
        "</H1>",
        "<Table>",
        "<Tr>",
        "<Td>",
        "Infobox",
        "</Td>",
        "</Tr>",
        "</Table>",
    ]
    for text in paragraphs:
        page += ["<P>", *text.split(), "</P>"]
    for text in lists:
        page += ["<Ul>", "<Li>", *text.split(), "</Li>", "</Ul>"]
    return page


def simplified(id: int, question: str, title: str, *paragraphs: str, **more: Any) -> dict[str, Any]:
    """A line of the simplified training set."""
    return {
        "document_text": " ".join(tokens(title, *paragraphs, **more)),
        "question_text": question,
        "annotations": [
            {"yes_no_answer": "NONE", "long_answer": {"start_token": -1, "end_token": -1}}
        ],
        "document_url": page_address(title, id),
        "example_id": id,
    }


def page_address(title: str, id: int) -> str:
    name = title.replace(" ", "_")
    return f"https://en.wikipedia.org//w/index.php?title={name}&amp;oldid={id}"


def full(id: int, question: str, title: str, *paragraphs: str, **more: Any) -> dict[str, Any]:
    """A line of the development set: HTML, and tokens that say whether they are a tag."""
    page = tokens(title, *paragraphs, **more)
    return {
        "document_html": f"<!DOCTYPE html>\n<html>{' '.join(page)}</html>",
        "document_title": title,
        "document_tokens": [
            {"start_byte": 0, "html_token": text.startswith("<"), "token": text} for text in page
        ],
        "document_url": page_address(title, id),
        "example_id": id,
        "question_text": question,
    }


TRAIN = [
    simplified(11, "what is red", "Red Apple", "Apples are red .", "They grow on trees ."),
    simplified(12, "who was it", "Beyoncé ( Singer )", "She sings ."),
    simplified(13, "which tree", "red apple", "A later version of the page ."),
]
DEV = [
    full(21, "what is an apple", "Red Apple", "Yet another version ."),
    full(-22, "where is it", "Lake", "Water , cold ."),
    full(23, "who sings", "Beyonce (Singer)", "Sings ."),
    full(24, "how deep", "Lake", "Water ."),
]


def files(
    folder: Path, train: list[Any] = TRAIN, dev: list[Any] = DEV, *, end: str = ".gz"
) -> list[Path]:
    return [
        write(folder / f"v1.0-simplified_nq-dev-all.jsonl{end}", jsonl(dev)),
        write(folder / f"v1.0-simplified_simplified-nq-train.jsonl{end}", jsonl(train)),
    ]


def test_a_page_is_one_document_a_question_of_the_development_set_a_query_and_order_is_nothing(
    tmp_path: Path,
) -> None:
    for end in (".gz", ""):
        built = build_nq320k(files(tmp_path, end=end))
        assert built.collection.docs.select(
            "id", "title", "text", "page_title", "source"
        ).rows() == [
            ("0", "", "Red Apple Apples are red . They grow on trees .", "Red Apple", "human"),
            ("1", "", "Beyoncé ( Singer ) She sings .", "Beyoncé ( Singer )", "human"),
            ("2", "", "Lake Water , cold .", "Lake", "human"),
        ]
        assert (
            built.collection.docs["url"][2]
            == "https://en.wikipedia.org//w/index.php?title=Lake&amp;oldid=-22"
        )
        queries = [
            ("21", "what is an apple"),
            ("-22", "where is it"),
            ("23", "who sings"),
            ("24", "how deep"),
        ]
        assert built.collection.queries.rows() == queries
        assert built.collection.qrels.rows() == [
            ("21", "0", 1),
            ("-22", "2", 1),
            ("23", "1", 1),
            ("24", "2", 1),
        ]
        assert built.counts == {
            "documents": 3,
            "test queries": 4,
            "mean words": pytest.approx((11 + 7 + 5) / 3),
        }
        assert (built.train_lines, built.as_published) == (3, False)
        assert PUBLISHED == {"documents": 109_739, "test queries": 7_830, "mean words": 199.79}
    paths = files(tmp_path)
    assert build_nq320k(paths).collection == build_nq320k(paths[::-1]).collection
    for limit, text in ((1, "Red"), (2, "Red Apple"), (4, "Red Apple Apples are")):
        assert build_nq320k(paths, words=limit).collection.docs["text"][0] == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{oops", "expected one JSON object, got broken JSON ("),
        ("[]", "expected one JSON object, got list: '[]'"),
        (
            '{"text": "x"}',
            "expected document_text (simplified) or document_tokens (full); its fields are: text",
        ),
        (
            '{"document_text": "x"}',
            "expected a title in document_title, <H1> or document_url, found none",
        ),
        (
            '{"document_title": "T", "document_tokens": ["x"]}',
            "expected document_tokens to be objects with the string",
        ),
        (
            '{"document_title": "T", "document_text": "x"}',
            "expected the fields example_id and question_text",
        ),
        (json.dumps(DEV[0]), "example_id 21 came before; is a file named twice?"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    paths = files(tmp_path, end="")
    paths[0].write_text(jsonl(DEV[:1]) + line + "\n")
    with pytest.raises(DataError, match="^" + re.escape(f"{paths[0]}:2: {message}")):
        build_nq320k(paths)


def test_files_that_are_missing_or_do_not_say_what_they_hold(tmp_path: Path) -> None:
    dev, train = files(tmp_path)
    for name in ("nq.jsonl", "train-and-dev.jsonl"):
        with refused(
            f"{name}: expected train or dev in the file's name, which says what it holds; rename it"
        ):
            build_nq320k([name])
    with pytest.raises(
        UserError, match=r"^expected the development set too \(v1.0-simplified_nq-dev-all"
    ):
        build_nq320k([train])
    with pytest.warns(
        DataWarning, match="no training file: only the pages of the development set are there"
    ):
        assert build_nq320k([dev]).collection.docs.height == 3
    with refused("expected at least 1 word a text, got 0"):
        build_nq320k([dev, train], words=0)


@pytest.mark.parametrize("form", [simplified, full])
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ((), "one two"),
        (("links",), "one two links"),
        (("kept", "kept too", "references"), "one two kept kept too"),
    ],
)
def test_a_text_is_from_first_paragraph_to_last_list(
    form: Any, lists: tuple[str, ...], expected: str
) -> None:
    page = read_page(form(1, "q", "Red Apple", "one", "two", lists=lists))
    assert (page.title, page.text(100)) == ("Red Apple", expected)


def test_what_of_a_page_is_its_text_and_a_tag_with_blanks_is_one_token() -> None:
    expected = {
        # a list before the first paragraph
        "<H1> T </H1> <Ul> <Li> a </Li> </Ul> <P> one </P> two": "one",
        "<H1> T </H1> <Dl> <Dd> one </Dd> </Dl>": "T one",  # no paragraph at all
        (
            '<H1> T </H1> <P> a < b and c > d , <x </P> <Td_colspan="2"> e </Td>'
        ): "a < b and c > d , <x e",
    }
    assert {
        content: read_page({"document_text": content}).text(20) for content in expected
    } == expected
    tokens = [
        {"token": t, "html_token": "<" in t}
        for t in ("<P>", "one", "two\xa0three", "</P>", '<Td class="a b">')
    ]
    assert read_page({"document_title": "T", "document_tokens": tokens}).text(9) == "one two three"


def test_a_title_is_found_and_folded() -> None:
    for row, title in (
        ({"document_text": "<H1> A B </H1> x", "document_title": "C"}, "C"),
        (
            {
                "document_text": "x",
                "document_url": "https://a.org//w/index.php?title=Red_apple%21&oldid=1",
            },
            "Red apple!",
        ),
        (
            {"document_text": "x", "document_url": "https://en.wikipedia.org/wiki/Red_apple"},
            "Red apple",
        ),
        (
            {
                "document_tokens": [],
                "document_title": "",
                "document_url": "https://en.wikipedia.org/wiki/A",
            },
            "A",
        ),
    ):
        assert read_page(row).title == title
    folded = {
        "The Walking Dead (season 8)": "the walking dead ( season 8 )",
        "Beyoncé": "beyonce",
        "  A \t B\u200b ": "a b",
        "東京": "東 京",
        "C++": "c + +",
        "ΟΔΥΣΣΕΥΣ": "οδυσσευσ",
    }
    assert {title: fold_title(title) for title in folded} == folded


# Newer characters are in one library's tables and not yet in the other's.
@given(st.text(st.characters(max_codepoint=0x5FF, exclude_categories=["Cn"]), max_size=40))
def test_titles_are_folded_as_by_the_tokenizer_itself(title: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    normalized = tokenizers.normalizers.BertNormalizer(lowercase=True).normalize_str(title)
    pieces = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normalized)
    assert fold_title(title) == " ".join(piece for piece, _ in pieces)

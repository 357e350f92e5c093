"""NQ320K from small files in the two forms of Natural Questions."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.datasets.natural_questions import PUBLISHED, Built, build_nq320k, fold_title, read_page
from ranktilt.errors import DataError, DataWarning, UserError
from ranktilt.progress import listening
from tests.generation.questions import full, simplified
from tests.refusals import refused
from tests.toy import jsonl, write

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


def files(folder: Path, train: list[Any] = TRAIN, dev: list[Any] = DEV, *, end: str = ".gz") -> list[Path]:
    return [
        write(folder / f"v1.0-simplified_nq-dev-all.jsonl{end}", jsonl(dev)),
        write(folder / f"v1.0-simplified_simplified-nq-train.jsonl{end}", jsonl(train)),
    ]


def built(folder: Path, **options: Any) -> Built:
    return build_nq320k(files(folder), **options)


@pytest.mark.parametrize("end", [".gz", ""])
def test_each_page_is_one_document_with_its_first_text(tmp_path: Path, end: str) -> None:
    found = build_nq320k(files(tmp_path, end=end)).collection.docs
    assert found.select("id", "title", "text", "page_title", "source").rows() == [
        ("0", "", "Red Apple Apples are red . They grow on trees .", "Red Apple", "human"),
        ("1", "", "Beyoncé ( Singer ) She sings .", "Beyoncé ( Singer )", "human"),
        ("2", "", "Lake Water , cold .", "Lake", "human"),
    ]
    assert found["url"][2] == "https://en.wikipedia.org//w/index.php?title=Lake&amp;oldid=-22"


def test_each_question_of_the_development_set_has_its_page(tmp_path: Path) -> None:
    collection = built(tmp_path).collection
    assert collection.queries.rows() == [
        ("21", "what is an apple"),
        ("-22", "where is it"),
        ("23", "who sings"),
        ("24", "how deep"),
    ]
    assert collection.qrels.rows() == [("21", "0", 1), ("-22", "2", 1), ("23", "1", 1), ("24", "2", 1)]


def test_training_files_come_first_in_any_order(tmp_path: Path) -> None:
    paths = files(tmp_path)
    assert build_nq320k(paths).collection == build_nq320k(paths[::-1]).collection


def test_titles_may_stand_in_their_field(tmp_path: Path) -> None:
    docs = built(tmp_path, titles="field", words=3).collection.docs
    assert docs.select("title", "text").rows() == [
        ("Red Apple", "Apples are red"),
        ("Beyoncé ( Singer )", "She sings ."),
        ("Lake", "Water , cold"),
    ]
    assert "page_title" not in docs.columns


@pytest.mark.parametrize(("limit", "text"), [(1, "Red"), (2, "Red Apple"), (4, "Red Apple Apples are")])
def test_a_title_counts_among_the_words(tmp_path: Path, limit: int, text: str) -> None:
    assert built(tmp_path, words=limit).collection.docs["text"][0] == text


def test_the_counts_are_beside_the_published_ones(tmp_path: Path) -> None:
    found = built(tmp_path)
    assert found.counts == {"documents": 3, "test queries": 4, "mean words": pytest.approx((11 + 7 + 5) / 3)}
    assert (found.train_lines, found.as_published) == (3, False)
    assert PUBLISHED == {"documents": 109_739, "test queries": 7_830, "mean words": 199.79}


def test_progress_is_told_for_both_parts(tmp_path: Path) -> None:
    heard: dict[str, list[tuple[int, int]]] = {}
    with listening(lambda label, done, total: heard.setdefault(label, []).append((done, total))):
        built(tmp_path)
    assert {label: steps[-1] for label, steps in heard.items()} == {
        "reading training questions": (307_373, 307_373),
        "reading development questions": (7_830, 7_830),
    }


def fault(folder: Path, line: str | None = None, **parts: Any) -> str:
    paths = files(folder, end="", **parts)
    if line is not None:
        paths[1].write_text(jsonl(TRAIN[:1]) + line + "\n")
    with pytest.raises(DataError) as caught:
        build_nq320k(paths)
    return str(caught.value).replace(f"{folder}/v1.0-simplified_", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{oops", "simplified-nq-train.jsonl:2: expected one JSON object, got broken JSON ("),
        ("[]", "simplified-nq-train.jsonl:2: expected one JSON object, got list: '[]'"),
        (
            json.dumps({"example_id": 1, "question_text": "q", "text": "x"}),
            "simplified-nq-train.jsonl:2: expected document_text (simplified) or document_tokens (full); its fields ",
        ),
        (
            json.dumps({"example_id": 1, "question_text": "q", "document_text": "x"}),
            "simplified-nq-train.jsonl:2: expected a title in document_title, <H1> or document_url, found none",
        ),
        (
            json.dumps({"example_id": 1, "question_text": "q", "document_title": "T", "document_tokens": ["x"]}),
            "simplified-nq-train.jsonl:2: expected document_tokens to be objects with the string token",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    assert fault(tmp_path, line).startswith(message)


def test_a_question_given_twice_or_without_a_name_is_refused(tmp_path: Path) -> None:
    nameless = {name: value for name, value in DEV[0].items() if name != "example_id"}
    message = "nq-dev-all.jsonl:2: expected the fields example_id and question_text"
    assert fault(tmp_path, dev=[DEV[1], nameless]) == message
    assert fault(tmp_path, dev=[*DEV, DEV[0]]) == (
        "nq-dev-all.jsonl:5: example_id 21 came before; is a file named twice?"
    )


@pytest.mark.parametrize("name", ["nq.jsonl", "train-and-dev.jsonl"])
def test_a_file_whose_name_does_not_say_what_it_holds(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, jsonl(DEV))
    with refused(f"{path}: expected train or dev in the file's name, which says what it holds; rename it"):
        build_nq320k([path])


def test_no_development_set(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^expected the development set too \(v1.0-simplified_nq-dev-all"):
        build_nq320k(files(tmp_path)[1:])


def test_no_training_set_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="no training file: only the pages of the development set are there"):
        assert build_nq320k(files(tmp_path)[:1]).collection.docs.height == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"titles": "filed"}, "unknown place of titles 'filed'; did you mean 'field'? (valid: text, field)"),
        ({"words": 0}, "expected at least 1 word a text, got 0"),
    ],
)
def test_options_out_of_range(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with refused(message):
        built(tmp_path, **options)


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
    ("title", "folded"),
    [
        ("The Walking Dead (season 8)", "the walking dead ( season 8 )"),
        ("2017–18 NBA", "2017 – 18 nba"),
        ("Beyoncé", "beyonce"),
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

"""Errors: one sentence that says where, what came, what was expected, what to do."""

from pathlib import Path

import pytest

from ranktilt.errors import (
    DataError,
    DataWarning,
    MissingExtra,
    UserError,
    counted,
    join_words,
    shorten,
    unknown,
    visible,
)


def test_a_data_error_names_file_and_line() -> None:
    error = DataError(Path("qrels/test.tsv"), "expected 3 fields, got 4", line=812)
    assert str(error) == "qrels/test.tsv:812: expected 3 fields, got 4"
    assert (error.path, error.line, error.message) == ("qrels/test.tsv", 812, "expected 3 fields, got 4")


def test_a_data_error_without_a_line_names_the_file() -> None:
    error = DataError("corpus.jsonl", "the file is empty")
    assert str(error) == "corpus.jsonl: the file is empty"
    assert error.line is None


def test_a_missing_extra_says_the_pip_command() -> None:
    error = MissingExtra("torch", extra="neural", for_="Dense")
    assert str(error) == 'Dense needs torch. Install it with: pip install "ranktilt[neural]"'
    assert (error.package, error.extra) == ("torch", "neural")


@pytest.mark.parametrize("kind", [DataError("f", "m"), MissingExtra("p", extra="e", for_="X"), unknown("x", "y", [])])
def test_all_of_them_are_the_user_s_to_fix(kind: Exception) -> None:
    assert isinstance(kind, UserError)


def test_a_data_warning_is_a_warning_of_the_user_s_making() -> None:
    assert issubclass(DataWarning, UserWarning)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bm52", "unknown ranker 'bm52'; did you mean 'bm25'? (valid: bm25, tfidf, dense)"),
        ("BM25", "unknown ranker 'BM25'; did you mean 'bm25'? (valid: bm25, tfidf, dense)"),
        ("Tf-Idf", "unknown ranker 'Tf-Idf'; did you mean 'tfidf'? (valid: bm25, tfidf, dense)"),
        ("qqqqqq", "unknown ranker 'qqqqqq' (valid: bm25, tfidf, dense)"),
        ("", "unknown ranker '' (valid: bm25, tfidf, dense)"),
    ],
)
def test_an_unknown_name_gets_the_nearest_and_the_list(name: str, message: str) -> None:
    assert str(unknown("ranker", name, ["bm25", "tfidf", "dense"])) == message


def test_the_nearest_name_is_written_as_it_is_valid() -> None:
    assert "did you mean 'nDCG'?" in str(unknown("measure", "ndgc", iter(["AP", "nDCG"])))


def test_an_unknown_name_where_there_are_none() -> None:
    assert str(unknown("source", "llm", [])) == "unknown source 'llm' (valid: none)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("abcde", "'abcde'"),
        ("abcdef", "'abcd…'"),
        ("", "''"),
        ("a\tb\n", r"'a\tb\n'"),
    ],
)
def test_input_is_quoted_and_cut(text: str, shown: str) -> None:
    assert shorten(text, width=5) == shown


def test_input_is_cut_at_eighty_characters() -> None:
    assert shorten("x" * 80) == repr("x" * 80)
    assert shorten("x" * 81) == repr("x" * 79 + "…")


@pytest.mark.parametrize(("n", "said"), [(0, "0 queries"), (1, "1 query"), (2, "2 queries"), (1234, "1,234 queries")])
def test_counting_in_words(n: int, said: str) -> None:
    assert counted(n, "query", "queries") == said


def test_anything_can_be_shortened() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert shorten(deep) == "list"
    assert shorten(10**5000) == "int"
    assert shorten(3) == "3"
    assert shorten([1] * 100, 10) == "[1, 1, 1, …"[:9] + "…"


@pytest.mark.parametrize(
    ("names", "last", "expected"),
    [(["a"], "and", "a"), (["a", "b"], "and", "a and b"), (["a", "b", "c"], "or", "a, b or c")],
)
def test_names_are_joined_as_in_a_sentence(names: list[str], last: str, expected: str) -> None:
    assert join_words(names, last) == expected


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b]0;title\x07 \x1b[31mred", r"\x1b]0;title\x07 \x1b[31mred"),
        ("\x9b2J \x85 \x7f \x00", r"\x9b2J \x85 \x7f \x00"),
        ("back\x08space\rover", r"back\x08space\rover"),
        ("a\u202eb\u2066c\u061cd\u2028e", r"a\u202eb\u2066c\u061cd\u2028e"),
        ("half \udcff", r"half \udcff"),
        ("tab\tand\nline, naïve 日本 👩\u200d🔬 −Δ", "tab\tand\nline, naïve 日本 👩\u200d🔬 −Δ"),
    ],
)
def test_control_characters_are_shown_as_signs(text: str, seen: str) -> None:
    assert visible(text) == seen
    assert visible(seen) == seen

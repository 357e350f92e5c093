"""Errors: one sentence that says where, what came, what was expected, what to do."""

from collections.abc import Iterable
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


def test_errors_name_a_file_and_line_or_a_pip_command() -> None:
    error = DataError(Path("qrels/test.tsv"), "expected 3 fields, got 4", line=812)
    assert str(error) == "qrels/test.tsv:812: expected 3 fields, got 4"
    assert (error.path, error.line, error.message) == ("qrels/test.tsv", 812, "expected 3 fields, got 4")
    assert str(DataError("corpus.jsonl", "the file is empty")) == "corpus.jsonl: the file is empty"
    missing = MissingExtra("torch", extra="neural", for_="Dense")
    assert str(missing) == 'Dense needs torch. Install it with: pip install "ranktilt[neural]"'
    assert (missing.package, missing.extra) == ("torch", "neural")
    assert all(isinstance(one, UserError) for one in (error, missing, unknown("x", "y", [])))
    assert issubclass(DataWarning, UserWarning)


@pytest.mark.parametrize(
    ("name", "valid", "message"),
    [
        ("bm52", ["bm25", "dense"], "unknown ranker 'bm52'; did you mean 'bm25'? (valid: bm25, dense)"),
        ("BM25", ["bm25", "dense"], "unknown ranker 'BM25'; did you mean 'bm25'? (valid: bm25, dense)"),
        ("Tf-Idf", ["tfidf"], "unknown ranker 'Tf-Idf'; did you mean 'tfidf'? (valid: tfidf)"),
        ("ndgc", iter(["AP", "nDCG"]), "unknown ranker 'ndgc'; did you mean 'nDCG'? (valid: AP, nDCG)"),
        ("qqqqqq", ["bm25", "dense"], "unknown ranker 'qqqqqq' (valid: bm25, dense)"),
        ("", ["bm25", "dense"], "unknown ranker '' (valid: bm25, dense)"),
        ("llm", [], "unknown ranker 'llm' (valid: none)"),
    ],
)
def test_an_unknown_name_gets_the_nearest_and_the_list(name: str, valid: Iterable[str], message: str) -> None:
    assert str(unknown("ranker", name, valid)) == message


def test_input_is_quoted_and_cut_whatever_it_is() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert [shorten(text, width=5) for text in ("abcde", "abcdef", "", "a\tb\n")] == [
        "'abcde'", "'abcd…'", "''", r"'a\tb\n'",
    ]  # fmt: skip
    assert shorten("x" * 80) == repr("x" * 80)
    assert shorten("x" * 81) == repr("x" * 79 + "…")
    assert [shorten(one) for one in (deep, 10**5000, 3)] == ["list", "int", "3"]
    assert shorten([1] * 100, 10) == "[1, 1, 1,…"


def test_counts_and_lists_in_words() -> None:
    assert [counted(n, "query", "queries") for n in (0, 1, 1234)] == ["0 queries", "1 query", "1,234 queries"]
    assert join_words(["a"], "and") == "a"
    assert join_words(["a", "b"], "and") == "a and b"
    assert join_words(["a", "b", "c"], "or") == "a, b or c"


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

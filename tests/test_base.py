"""What all else stands on: errors of one sentence, optional packages, progress."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from ranktilt.errors import (
    MissingExtra,
    escape_invisible,
    shorten,
    unknown_name,
)
from ranktilt.optional import forbid_fetching, may_fetch, need


@pytest.mark.parametrize(
    ("name", "valid", "message"),
    [
        (
            "bm52",
            ["bm25", "dense"],
            "unknown ranker 'bm52'; did you mean 'bm25'? (valid: bm25, dense)",
        ),
        ("Tf-Idf", ["tfidf"], "unknown ranker 'Tf-Idf'; did you mean 'tfidf'? (valid: tfidf)"),
        (
            "ndgc",
            iter(["AP", "nDCG"]),
            "unknown ranker 'ndgc'; did you mean 'nDCG'? (valid: AP, nDCG)",
        ),
        ("qqqqqq", ["bm25", "dense"], "unknown ranker 'qqqqqq' (valid: bm25, dense)"),
        ("", ["bm25", "dense"], "unknown ranker '' (valid: bm25, dense)"),
        ("llm", [], "unknown ranker 'llm' (valid: none)"),
    ],
)
def test_an_unknown_name_gets_the_nearest_and_the_list(
    name: str, valid: Iterable[str], message: str
) -> None:
    assert str(unknown_name("ranker", name, valid)) == message


def test_input_is_quoted_and_cut_whatever_it_is() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    short = {text: shorten(text, width=5) for text in ("abcde", "abcdef", "a\tb\n")}
    assert short == {"abcde": "'abcde'", "abcdef": "'abcd…'", "a\tb\n": r"'a\tb\n'"}
    assert shorten("x" * 80) == repr("x" * 80)
    assert shorten("x" * 81) == repr("x" * 79 + "…")
    assert [shorten(value) for value in (deep, 10**5000, 3)] == ["list", "int", "3"]
    assert shorten([1] * 100, 10) == "[1, 1, 1,…"


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("\x1b]0;title\x07 \x1b[31mred", r"\x1b]0;title\x07 \x1b[31mred"),
        ("\x9b2J \x85 \x7f \x00", r"\x9b2J \x85 \x7f \x00"),
        ("back\x08space\rover", r"back\x08space\rover"),
        ("a\u202eb\u2066c\u061cd\u2028e", r"a\u202eb\u2066c\u061cd\u2028e"),
        ("half \udcff", r"half \udcff"),
        ("tab\tand\nline, naïve 日本 👩\u200d🔬 −Δ", "tab\tand\nline, naïve 日本 👩\u200d🔬 −Δ"),
    ],
)
def test_control_characters_are_shown_as_signs(text: str, signs: str) -> None:
    assert escape_invisible(text) == escape_invisible(signs) == signs


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder that Python imports from; what was imported there is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_missing_package_says_the_pip_command() -> None:
    for module in ("ranktilt_absent", "ranktilt_absent.deep.inside"):
        with pytest.raises(MissingExtra) as caught:
            need(module, extra="neural", for_="Dense")
        assert (
            str(caught.value)
            == 'Dense needs ranktilt_absent. Install it with: pip install "ranktilt[neural]"'
        )
        assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_what_fails_inside_an_installed_package_comes_through(packages: Path) -> None:
    (packages / "ranktilt_broken.py").write_text("import ranktilt_absent_too\n")
    (packages / "ranktilt_failing.py").write_text("raise RuntimeError('driver too old')\n")
    with pytest.raises(ModuleNotFoundError, match="ranktilt_absent_too"):
        need("ranktilt_broken", extra="neural", for_="This")
    with pytest.raises(RuntimeError, match="driver too old"):
        need("ranktilt_failing", extra="neural", for_="This")


def test_nothing_is_fetched_only_while_it_is_asked_for() -> None:
    assert may_fetch()
    with forbid_fetching():
        assert not may_fetch()
        with forbid_fetching():
            pass
        assert not may_fetch()
    assert may_fetch()

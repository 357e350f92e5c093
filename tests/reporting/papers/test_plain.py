"""Hostile text in a table: nothing in it is a command, a link or the end of a cell."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ranktilt.reporting.papers.plain import clean, markdown, markdown_number, tex, tex_comment, tex_number
from tests.reporting.papers.tex_reader import cells, check_tokens, shown

ANY = st.text(max_size=40)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("two\nlines\r\nand\u2028more", "two lines and more"),
        ("  blanks\t\t here ", "blanks here"),
        ("turned \u202eround\u202c", r"turned \u202eround\u202c"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("bell\x07 null\x00", r"bell\x07 null\x00"),
        ("half \ud800 pair", r"half \ud800 pair"),
        ("naïve 日本", "naïve 日本"),
    ],
)
def test_clean_leaves_one_line_of_visible_characters(text: str, found: str) -> None:
    assert clean(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("a & b \\\\ c", r"a \& b \textbackslash{}\textbackslash{} c"),
        ("50 % of $x_1^2$ # ~", r"50 \% of \$x\_1\textasciicircum{}2\$ \# \textasciitilde{}"),
        ("[2pt] *", "{[}2pt{]} {*}"),
        ("Relative Δ: −1 … ±2", r"Relative $\Delta$: $-$1 \ldots{} $\pm$2"),
        ("bm25@100>>x|y<z", r"bm25@100\textgreater{}\textgreater{}x\textbar{}y\textless{}z"),
    ],
)
def test_tex_escapes_every_sign_of_its_own(text: str, found: str) -> None:
    assert tex(text) == found


@given(ANY)
def test_any_text_is_one_cell_of_balanced_tex_without_commands_of_its_own(text: str) -> None:
    source = tex(text)
    check_tokens(source)
    assert len(cells(source + r" & end \\")) == 2
    assert not source.startswith(("[", "*"))


@given(st.text(st.characters(blacklist_categories=("C", "Z")), max_size=30))
def test_what_is_escaped_for_tex_reads_as_before(text: str) -> None:
    known = text.replace("–", "").replace("--", "").replace("−", "")
    assert shown(tex(known)) == known


@given(ANY)
def test_a_comment_stays_in_its_line(text: str) -> None:
    comment = tex_comment(text)
    assert comment.startswith("% ")
    assert len(comment.splitlines()) == 1
    assert not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in comment)


@given(ANY)
def test_any_text_is_one_plain_cell_of_markdown(text: str) -> None:
    line = f"| {markdown(text)} | end |"
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(f"| a | b |\n| --- | --- |\n{line}\n")
    inline = [t for t in tokens if t.type == "inline"]
    assert [t.content for t in inline][:2] == ["a", "b"]
    assert len(inline) == 4
    kinds = {child.type for child in inline[2].children or ()}
    assert kinds <= {"text", "text_special"}
    said = "".join(child.content for child in inline[2].children or ())
    assert said == clean(text)


@pytest.mark.parametrize("text", ["[a](javascript:alert(1))", "![x](y)", "<script>", "&lt;b&gt;", "`code`", "a | b"])
def test_signs_of_markdown_are_shown_and_not_meant(text: str) -> None:
    assert MarkdownIt("commonmark").renderInline(markdown(text)).count("<") == 0
    (token,) = MarkdownIt("commonmark").parseInline(markdown(text))
    assert "".join(child.content for child in token.children or ()) == text


@pytest.mark.parametrize(
    ("text", "latex", "plain"),
    [("-47.0", "$-$47.0", "−47.0"), ("25.6", "25.6", "25.6"), ("-.5", "$-$.5", "−.5"), ("–", "--", "–")],
)
def test_minus_signs_of_numbers_are_minus_signs(text: str, latex: str, plain: str) -> None:
    assert (tex_number(text), markdown_number(text)) == (latex, plain)

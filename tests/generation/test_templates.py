"""Prompts: what they hold, and what they may not hold."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.errors import UserError
from ranktilt.generation.templates import PROMPTS, TITLE, PromptTemplate, template


def test_the_default_is_the_papers_instruction() -> None:
    assert template("paper").render("Apples are red.") == "Please rewrite the following text: Apples are red."


@pytest.mark.parametrize("name", [*PROMPTS, TITLE])
def test_each_prompt_that_ships_ends_with_the_text_alone(name: str) -> None:
    prompt = template(name)
    assert prompt.fields == ("text",)
    assert prompt.render("@@@").endswith("@@@")
    assert prompt.render("@@@").count("@@@") == 1
    assert (prompt.name, prompt.place) == (name, "")


def test_a_summary_may_be_short_and_polish_may_keep_the_words() -> None:
    assert template("summarise").limits["shortest"] < 0.34
    assert template("polish").limits["copied"] == 1
    assert template("paper").limits == {}


def test_title_text_and_literal_braces_are_filled_in() -> None:
    prompt = PromptTemplate("mine", "{title}: {{keep}} {text} / {text}")
    assert prompt.render("body {x}", "{text}") == "{text}: {keep} body {x} / body {x}"
    assert prompt.fields == ("text", "title")


@given(st.text(), st.text())
def test_a_document_is_put_in_to_the_letter(text: str, title: str) -> None:
    assert PromptTemplate("mine", "a{{{title}}}b{text}c").render(text, title) == f"a{{{title}}}b{text}c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{text}} {title}", "expected {text}, the place of the document's text, and found none"),
        ("{text} {Queries}", "{Queries} cannot be filled in, only {text} and {title} can; write {{ and }}"),
        ("{text} {qrels}", "{qrels} cannot be filled in, only {text} and {title} can; write {{ and }}"),
        ("{text} {id}", "{id} cannot be filled in, only {text} and {title} can; write {{ and }}"),
        ("{text!r}", "{text!r} cannot be filled in"),
        ("{text:>9}", "{text:>9} cannot be filled in"),
        ("{} {text}", "{} cannot be filled in"),
        ("{text} {", "a brace stands alone (Single '{' encountered in format string); write {{ and }}"),
    ],
)
def test_what_cannot_be_filled_in_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        PromptTemplate("mine", text)
    assert str(caught.value).startswith(f"prompt 'mine': {message}")


def test_a_file_is_read_and_named_after_its_stem(tmp_path: Path) -> None:
    file = tmp_path / "my own.txt"
    file.write_bytes("\ufeffSay it anew:\r\n{text}\r\n".encode())
    prompt = template(file)
    assert (prompt.name, prompt.text, prompt.place) == ("my_own", "Say it anew:\n{text}", str(file))


def test_a_file_is_found_without_an_ending_and_a_prompts_name_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "paper"):
        Path(name).write_text("Mine: {text}", encoding="utf-8")
    assert template("mine").render("x") == "Mine: x"
    assert template("paper").render("x") != "Mine: x"
    assert template("./paper").render("x") == "Mine: x"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.txt", b"no place", "{file}: expected {{text}}, the place"),
        ("p.txt", b"\xff{text}", "{file}: expected a prompt as UTF-8 text: invalid at byte 0"),
        ("p.txt", None, "{file}: cannot be read: No such file or directory"),
        (".", None, "{file}: cannot be read: Is a directory"),
    ],
)
def test_a_file_that_is_no_prompt_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        template(file)
    assert str(caught.value).startswith(message.format(file=file))

"""Prompts: what they hold, and what they may not hold."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.collection import Collection
from ranktilt.datasets.queries import read_queries
from ranktilt.errors import UserError
from ranktilt.generation.answer.answer import answer
from ranktilt.generation.answer.save import save_answered
from ranktilt.generation.checks import check_answer
from ranktilt.generation.settings import DRAWS_APART, Answering
from ranktilt.generation.templates import (
    ANSWER_PROMPTS,
    PROMPTS,
    QUERY_SLOTS,
    TITLE,
    PromptTemplate,
    answer_template,
    template,
)
from tests.generation.scripted import Scripted, humans
from tests.toy import jsonl, write


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
        ("{{text}} {title}", "expected {text}, where the document's text goes, and found none"),
        ("{text} {qrels}", "{qrels} cannot be filled in, only {text} and {title} can; write {{ and }}"),
        ("{text!r}", "{text!r} cannot be filled in"),
        ("{text:>9}", "{text:>9} cannot be filled in"),
        ("{} {text}", "{} cannot be filled in"),
        ("{text} {", "unmatched brace (Single '{' encountered in format string); write {{ and }}"),
    ],
)
def test_what_cannot_be_filled_in_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        PromptTemplate("mine", text)
    assert str(caught.value).startswith(f"prompt 'mine': {message}")


def test_a_file_is_read_and_named_after_its_stem_and_a_prompts_name_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my own.txt").write_bytes("\ufeffSay it anew:\r\n{text}\r\n".encode())
    prompt = template(Path("my own.txt"))
    assert (prompt.name, prompt.text, prompt.place) == ("my_own", "Say it anew:\n{text}", "my own.txt")
    Path("paper").write_text("Mine: {text}", encoding="utf-8")
    assert template("paper").render("x") != template("./paper").render("x") == "Mine: x"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no place", "expected {text}, where"),
        (b"\xff{text}", "expected a prompt as UTF-8 text: invalid at byte 0"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_no_prompt_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "p.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=f"^{file}: {message}"):
        template(file)


pytestmark = pytest.mark.usefixtures("own_cache")


def says(prompt: str, times: int) -> str:
    return f"Answer {times} to what was asked, in {len(prompt)} letters."


@pytest.mark.parametrize("name", ANSWER_PROMPTS)
def test_a_prompt_holds_the_query_as_it_is(name: str) -> None:
    assert answer_template(name).render("what {is} that?").endswith("what {is} that?")


def test_a_prompt_holds_nothing_else() -> None:
    llm = Scripted(says)
    answer(humans(), llm, Answering(prompt="question"))
    assert llm.prompts == ["vitamin c cold", "river mouth"]
    for slot in ("text", "title", "qrels"):
        with pytest.raises(UserError, match=f"prompt 'mine': {{{slot}}} cannot be filled in, only {{query}} can"):
            PromptTemplate("mine", f"{{query}} {{{slot}}}", slots=QUERY_SLOTS)


@pytest.mark.parametrize(
    ("query", "text", "finish", "flags"),
    [
        ("who wrote it?", "Someone", "stop", []),
        ("who wrote it?", "A text that ends in the middle of", "length", ["cut off"]),
        ("who wrote it?", " Who wrote it? ", "stop", ["copied"]),
        ("who wrote it and when was it written, and for whom?", "Who wrote it and when was it written, and for whom? "
         "It was Ann who wrote it.", "stop", []),
        ("who wrote it?", " \n", "stop", ["empty"]),
        ("who wrote it?", "", "content_filter", ["empty", "filtered"]),
        ("who wrote it?", "I'm sorry, but I cannot answer that.", "stop", ["refusal"]),
        ("what is the name of the one who wrote it", "这是我们都在问的问题。", "stop", ["other script"]),
    ],
)  # fmt: skip
def test_answers_are_checked_without_regard_to_length(query: str, text: str, finish: str, flags: list[str]) -> None:
    found = check_answer(*(pl.Series([value], dtype=pl.String) for value in (query, text, finish)))
    assert found["flags"].to_list() == [flags]


@pytest.mark.parametrize("opening", ["Here's a detailed answer to your question:\n", "**Answer:** ", "Passage: ", ""])
def test_what_a_model_says_around_an_answer_is_taken_off(opening: str) -> None:
    raw = f"{opening}Bees see colours."
    found = check_answer(pl.Series(["bees"]), pl.Series([raw]), pl.Series(["stop"]))
    assert found.select("text", "flags").rows() == [("Bees see colours.", [])]
    assert found["opening"].to_list() == [opening.strip() or None]


def test_a_flagged_answer_is_asked_for_again_as_often_as_allowed() -> None:
    llm = Scripted(lambda prompt, times: "" if times < 3 and "river" in prompt else says(prompt, times))
    made = answer(humans(), llm, Answering(attempts=3))
    assert len(llm.prompts) == 4
    assert made.left_out.height == 0
    assert made.answers.filter(pl.col("flags").list.len() > 0).height == 2
    assert made.collection.ids.to_list() == ["q1-tiny-1", "q2-tiny-1"]


def test_queries_of_one_text_share_an_answer_and_temperatures_make_sources() -> None:
    queries = pl.DataFrame({"id": ["a", "b"], "text": ["the same", "the same"]})
    empty = pl.DataFrame(schema={"id": pl.String, "text": pl.String})
    qrels = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
    llm = Scripted(says)
    made = answer(Collection(empty, queries, qrels), llm, Answering(n=2, temperatures=(0.5, 1.0), seed=4))
    assert len(llm.prompts) == 4, "two draws at two temperatures"
    assert set(llm.seeds) == {4, 4 + DRAWS_APART}
    assert made.collection.sources == ("tiny-tmp0.5", "tiny-tmp1.0")
    docs = made.collection.docs.filter(source="tiny-tmp0.5")
    assert docs["id"].to_list() == [f"{q}-tiny-tmp0.5-{n}" for q in "ab" for n in (1, 2)]
    assert docs["text"][0] == docs["text"][2] != docs["text"][1]


def test_what_is_made_is_read_back(tmp_path: Path) -> None:
    from ranktilt.datasets.load import load

    rows = [{"_id": "a", "text": "one thing", "domain": "x"}, {"_id": "b", "text": "another"}]
    given = read_queries(write(tmp_path / "queries.jsonl.gz", jsonl(rows)))
    made = answer(given, Scripted(says), Answering())
    save_answered(made, tmp_path / "out")
    back = load(tmp_path / "out")
    assert back == made.collection
    assert back.docs["domain"].to_list() == ["x", None]
    assert back.docs["temperature"].to_list() == [0.2, 0.2]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"n": 0}, "generation: expected n of at least 1, got 0"),
        ({"attempts": 1001}, "generation: expected attempts of at least 1 and at most 1,000, got 1001"),
        ({"n": 2, "temperatures": (0.0,)}, "at temperature 0 a model repeats itself: 2 documents of a query need a "),
    ],
)
def test_values_out_of_range_are_refused(how: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match="^" + message):
        Answering(**how)  # type: ignore[arg-type]

"""Documents written from queries: what is asked, what is kept, and what the prompts may not hold."""

from pathlib import Path

import polars as pl
import pytest

from ranktilt.collection import Collection
from ranktilt.datasets.queries import read_queries
from ranktilt.generation.answer.answer import Answering, answer
from ranktilt.generation.answer.save import save_answered
from ranktilt.generation.batched_requests import DRAWS_APART
from ranktilt.generation.checks import check_answer
from ranktilt.generation.templates import ANSWER_PROMPTS, QUERY_SLOTS, PromptTemplate, answer_template
from tests.generation.scripted import Scripted, humans
from tests.refusals import refused
from tests.toy import jsonl, write

pytestmark = pytest.mark.usefixtures("own_cache")


def says(prompt: str, times: int) -> str:
    return f"Answer {times} to what was asked, in {len(prompt)} letters."


def flags_of(query: str, text: str, finish: str = "stop") -> list[str]:
    found = check_answer(*(pl.Series([one], dtype=pl.String) for one in (query, text, finish)))
    return list(found["flags"][0])


@pytest.mark.parametrize("name", ANSWER_PROMPTS)
def test_a_prompt_holds_the_query_as_it_is(name: str) -> None:
    assert answer_template(name).render("what {is} that?").endswith("what {is} that?")


@pytest.mark.parametrize("slot", ["text", "title", "qrels"])
def test_no_prompt_holds_a_document_or_a_judgment(slot: str) -> None:
    why = "write {{ and }} for braces"
    with refused(f"prompt 'mine': {{{slot}}} cannot be filled in, only {{query}} can; {why}"):
        PromptTemplate("mine", f"{{query}} {{{slot}}}", slots=QUERY_SLOTS)


def test_only_the_query_is_asked_about() -> None:
    llm = Scripted(says)
    answer(humans(), llm, Answering(prompt="question"))
    assert llm.prompts == ["vitamin c cold", "river mouth"]


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
    assert flags_of(query, text, finish) == flags


@pytest.mark.parametrize(
    "opening",
    [
        "Sure! Here is a passage that answers the query:\n\n",
        "Here's a detailed answer to your question:\n",
        "**Answer:** ",
        "Passage: ",
        "",
    ],
)
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
        ({"n": 0}, "n must be 1 or more, got 0"),
        ({"first": 0}, "first must be 1 or more, got 0"),
        ({"attempts": 1001}, "attempts must be at most 1,000, got 1,001"),
        ({"n": 2, "temperatures": (0.0,)}, "at temperature 0 a model repeats itself: 2 documents of a query need a "
         "higher one"),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(how: dict[str, object], message: str) -> None:
    with refused(message):
        Answering(**how)  # type: ignore[arg-type]

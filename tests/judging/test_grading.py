"""Grades of a language model: which pairs are asked for, how answers are read, and what is made of
repeats.
"""

import hashlib
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt.data.collection import Collection
from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.errors import UserError
from ranktilt.generation.estimate import estimate
from ranktilt.judging.grading.grading import Grades, grade, median_qrels, save_grades
from ranktilt.judging.grading.inputs import GRADE_PROMPTS, grade_template, prepare_grades
from ranktilt.judging.grading.parsing import parse_grade
from ranktilt.judging.grading.settings import Grading
from ranktilt.judging.judge import judge
from ranktilt.llm.base import Answer, Failure
from ranktilt.llm.journal import Journal
from tests.generation.scripted import Scripted, answer
from tests.toy import collection_of, run_of, toy

Do = Callable[..., Grades]
PAIRS = 10
"""Judgments of the toy."""


@pytest.fixture
def do(tmp_path: Path) -> Do:
    """Grade with a journal of this test."""

    def run(
        llm: Scripted, collection: Collection | None = None, *, runs: object = (), **options: object
    ) -> Grades:
        judged_collection = toy() if collection is None else collection
        return grade(
            judged_collection,
            llm,
            Grading(**options),
            runs=runs,
            journal=Journal(tmp_path / "journal"),
        )  # type: ignore[arg-type]

    return run


def test_an_answers_grade_is_read_or_it_is_unreadable_and_never_a_zero() -> None:
    grades: dict[str, int | None] = {
        "##final score: 2": 2,
        "## Final Score (O): **3**": 3,
        "M: 1\n##final score: 1\n##final score: 1": 1,
        "##final score: 2, as it answers the query.": 2,
        "<think>##final score: 3</think>##final score: 1": 1,
        '{"O": 2}': 2,
        '```json\n{"M": 1, "T": 3, "O": 0}\n```': 0,
        '[{"O": 3}]': 3,
        '{"grade": "1"}': 1,
        "0": 0,
        "**2**": 2,
        "'1'": 1,
        "Relevance category: 2": 2,
        "It is about rivers.\n2": 2,
        "##final score: 4": None,
        "##final score: -1": None,
        "##final score: 2.5": None,
        "##final score: 2/3": None,
        "##final score: 2 or 3": None,
        "##final score: two": None,
        "##final score: 1\n##final score: 2": None,
        '{"O": 2.0}': None,
        '{"O": true}': None,
        '{"O": null}': None,
        '{"relevance": 2': None,
        "22": None,
        "1\n2": None,
        "<reasoning>3</reasoning>\n2": 2,
        "Perhaps 3.\n</think>\n2": 2,
        "analysisPerhaps 3.assistantfinal2": 2,
        "<answer>2</answer>": 2,
        "Final answer: 2": 2,
        "\\boxed{2}": 2,
        '{"reasoning": "so 3", "score": 2}': 2,
        "2<|im_end|>": 2,
        "\ufeff2": 2,
        "##final score: 2\nFinal verdict: relevant": 2,
        '{"relevant passages": "2"}': None,
        "<answer>1</answer> <answer>2</answer>": None,
        "<reasoning>2": None,
        "<think>2</think>": None,
        "So I would say 2": None,
        "I cannot grade this.": None,
        "": None,
        "<think>perhaps\n2": None,
    }
    assert {text: parse_grade(text) for text in grades} == grades
    assert parse_grade("It ranks\n2", cut_off=True) is None
    assert parse_grade("##final score: 2", cut_off=True) == 2


def test_judged_pairs_are_asked_for_once_each_with_text_and_query_alone(do: Do) -> None:
    llm = Scripted(
        lambda prompt, _: "##final score: 3" if "Passage: Apples" in prompt else "##final score: 0"
    )
    grades = do(llm)
    assert len(llm.prompts) == PAIRS
    template = grade_template("umbrela")
    assert (
        template.render("Rivers the river carries cold water to the sea", "river water q2")
        not in llm.prompts
    )
    assert (
        template.render("Rivers the river carries cold water to the sea", "river water")
        in llm.prompts
    )
    assert (llm.samplings[0].temperature, llm.samplings[0].top_p) == (0.0, 1.0)
    expected = {
        (q, d): 3 * d.startswith("d1")
        for q, d in toy().qrels.select("query_id", "doc_id").iter_rows()
    }
    assert {(q, d): g for q, d, g in grades.qrels.iter_rows()} == expected
    assert grades.qrels.schema == toy().qrels.schema
    assert grades.judge == "umbrela-tiny"
    assert grades.counts[:5] == (PAIRS, PAIRS, PAIRS, PAIRS, {})
    again = do(silent := Scripted(lambda *_: "0"))
    assert silent.prompts == []
    assert again.qrels.equals(grades.qrels)
    assert (grades.counts.fresh, again.counts.fresh) == (PAIRS, 0)


def test_the_order_of_requests_is_shuffled_identical_twins_are_one_and_settings_mean_something(
    do: Do,
) -> None:
    def order(**options: object) -> list[int]:
        grading = Grading(**options)  # type: ignore[arg-type]
        return [task.row for task in prepare_grades(toy(), Scripted(), grading).tasks]

    assert sorted(order()) == list(range(PAIRS))
    assert order() == order() != sorted(order())
    assert order(seed=1) != order()
    docs = [
        {"id": f"d-{s}", "text": "the same", "source": s, "origin": "d-human"}
        for s in ("human", "llm")
    ]
    collection = collection_of(docs, {"q": "query"}, {"q": {"d-human": 1, "d-llm": 1}})
    llm = Scripted(lambda _, times: str(times))
    assert do(llm, collection).qrels["grade"].to_list() == [1, 1]
    assert len(llm.prompts) == 1
    for options in ({"pool": 0}, {"repeats": 0}, {"temperatures": (0.0, 1.0)}, {"text": "body"}):
        with pytest.raises(UserError):
            Grading(**options)


def test_a_pool_is_the_top_of_every_run_and_unknown_documents_are_counted(do: Do) -> None:
    collection = toy()
    first = run_of(
        collection, {"q1": {"d1-human": 3.0, "d2-llm": 2.0, "d3-llm": 1.0}, "q2": {"d2-human": 1.0}}
    )
    strange = collection_of(
        [{"id": "x", "text": "x"}, {"id": "d1-human", "text": "y"}], {"q1": "x"}, {}
    )
    second = run_of(strange, {"q1": {"x": 9.0, "d1-human": 8.0}, "q9": {"d1-human": 1.0}})
    grades = do(Scripted(lambda *_: "1"), runs=[first, second], pool=2)
    assert grades.qrels.rows() == [
        ("q1", "d1-human", 1),
        ("q1", "d2-llm", 1),
        ("q2", "d2-human", 1),
    ]
    assert grades.counts.without_text == 2
    assert (grades.spec["pool"], grades.spec["runs"]) == (2, ["run", "run"])
    with pytest.raises(UserError, match="no pair to grade: the runs name"):
        prepare_grades(collection, Scripted(), runs=[run_of(strange, {"q9": {"x": 1.0}})])


def test_what_has_no_grade_is_counted_by_its_reason_and_is_in_no_judgments(do: Do) -> None:
    docs = [
        {"id": name, "text": text}
        for name, text in zip("abcdef", ["a", "b", "c", "d", "e", " "], strict=True)
    ]
    collection = collection_of(docs, {"q": "query"}, {"q": dict.fromkeys("abcdef", 0)})
    says: dict[str, str | Answer | Failure] = {
        "a": "##final score: 2",
        "b": "##final score: 7",
        "c": answer("", finish="content_filter"),
        "d": Failure(kind="refused", message="not taken"),
        "e": Failure(kind="unavailable", message="no answer"),
    }

    def reply(prompt: str, times: int) -> str | Answer | Failure:
        return says[prompt.split("Passage: ")[1][0]]

    llm = Scripted(reply)
    grades = do(llm, collection)
    assert grades.qrels.rows() == [("q", "a", 2)]
    lost = {"empty": 1, "filtered": 1, "refused": 1, "unanswered": 1, "unreadable": 1}
    assert (grades.counts.graded, grades.counts.readable, grades.counts.rejected) == (1, 1, lost)
    assert (grades.unanswered, set(grades.messages)) == (1, {"not taken", "no answer"})
    assert grades.answers.sort("doc_id")["grade"].to_list() == [2, None, None]
    again = do(
        Scripted(lambda _, times: "maybe" if times == 1 else "1"),
        collection,
        prompt="basic",
        attempts=2,
    )
    assert (again.counts.readable, again.counts.rejected) == (5, {"empty": 1})


def test_repeats_give_the_median_and_say_how_often_they_agree(do: Do) -> None:
    collection = collection_of(
        [{"id": "a", "text": "a"}, {"id": "b", "text": "b"}, {"id": "c", "text": "c"}],
        {"q": "query"},
        {"q": {"a": 1, "b": 1, "c": 1}},
    )
    says = {"a": ["3", "1", "3"], "b": ["0", "none", "2"], "c": ["2", "2", "2"]}
    llm = Scripted(lambda prompt, times: says[prompt.split("Passage: ")[1][0]][times - 1])
    grades = do(llm, collection, repeats=3)
    assert grades.qrels["grade"].to_list() == [3, 0, 2], "of 0 and 2 the lower"
    assert grades.exact_agreement == pytest.approx(1 / 3)
    assert np.isnan(grades.ratings).sum() == grades.counts.rejected["unreadable"] == 1
    assert grades.spec["median"] == "median of the readable grades; the lower of two middle ones"
    assert len(llm.prompts) == 9, "each repeat is a request of its own"
    assert np.isnan(do(Scripted(lambda *_: "1"), collection, prompt="basic").exact_agreement)
    pairs = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"]})
    median = median_qrels(pairs, np.array([[3.0, 0.0, 1.0, 2.0], [np.nan] * 4]))
    assert median.rows() == [("q", "a", 1)]


def test_prompts_are_files_and_say_where_they_are_from(do: Do, tmp_path: Path) -> None:
    folder = resources.files("ranktilt.judging") / "prompts"
    assert {file.name for file in folder.iterdir()} == {f"{name}.txt" for name in GRADE_PROMPTS}
    digest = hashlib.sha256(grade_template("umbrela").text.encode()).hexdigest()
    assert digest[:16] == "c92537a4f97293df", "the published text, to the byte"
    assert [text.split()[0] for text in GRADE_PROMPTS.values()] == ["as", "ours:", "ours,"]
    template = tmp_path / "own.txt"
    template.write_text('{query} | {passage} | {{"O": n}}')
    llm = Scripted(lambda *_: '{"O": 1}')
    grades = do(llm, prompt=template, text="text", first=1)
    assert llm.prompts == ['red apples | red apples grow on old trees in autumn | {"O": n}']
    assert (grades.judge, grades.spec["prompt"]["origin"]) == ("own-tiny", "a file of the user's")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{query}", "expected {passage}"),
        ("{passage}", "expected {query}"),
        ("{query} {passage} {grade}", "{grade}"),
    ],
)
def test_a_prompt_without_query_or_passage_is_refused(
    text: str, fault: str, tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_text(text)
    with pytest.raises(UserError) as error:
        grade_template(tmp_path / "own.txt")
    assert str(error.value).startswith(f"{tmp_path}/own.txt: ")
    assert fault in str(error.value)


def test_judgments_are_written_with_how_they_were_made_and_read_back(
    do: Do, tmp_path: Path
) -> None:
    grades = do(Scripted(lambda *_: "2"), repeats=2)
    path = save_grades(grades, tmp_path / "out" / "judge.qrels")
    assert read_qrels(path).drop("line").equals(grades.qrels)
    record = json.loads((tmp_path / "out" / "judge.qrels.json").read_text())
    assert (record["counts"]["graded"], record["exact_agreement"], record["repeats"]) == (
        PAIRS,
        1.0,
        2,
    )
    assert record["prompt"]["name"] == "umbrela"
    nothing = do(Scripted(lambda *_: "no idea"), prompt="basic")
    with pytest.raises(
        UserError, match=r"not written, because no pair has a grade \(10 unreadable\)"
    ):
        save_grades(nothing, tmp_path / "none.qrels")
    assert not (tmp_path / "none.qrels").exists()


def test_the_estimate_counts_every_repeat_and_what_is_known(do: Do, tmp_path: Path) -> None:
    do(Scripted(lambda *_: "1"), first=4)
    llm = Scripted()
    planned = prepare_grades(toy(), llm, Grading(repeats=2))
    estimated = estimate(planned, llm, price=(1.0, 2.0), journal=Journal(tmp_path / "journal"))
    assert (estimated.requests, estimated.journalled, estimated.tokens_out) == (20, 4, 16 * 8)
    assert estimated.lines[0] == ("pairs", "10 pairs")
    assert estimated.lines[4] == ("tokens out", "128, if an answer has 8 tokens")
    assert llm.prompts == []


def test_judge_without_a_readable_answer_says_so(do: Do) -> None:
    graded = do(Scripted(lambda prompt, times: "I cannot say."))
    with pytest.raises(UserError) as caught:
        judge(graded, toy().qrels, resamples=100)
    assert str(caught.value) == (
        f"{graded.judge}: no answer could be read: {PAIRS} of {PAIRS} unparsed (first: 'I cannot "
        "say.'); try another model, or another --prompt"
    )
    unanswered = do(
        Scripted(
            lambda prompt, times: Failure(kind="unavailable", message="too busy"), name="lab/other"
        )
    )
    with pytest.raises(
        UserError, match=f": no pair has a grade: of {PAIRS} requests, {PAIRS} unanswered$"
    ):
        judge(unanswered, toy().qrels, resamples=100)

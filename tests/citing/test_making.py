"""Answers from a run's documents: which documents are shown, how answers are kept and audited."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.citing.cite import cite
from ranktilt.citing.making.audit import cite_session
from ranktilt.citing.making.contexts import build_contexts
from ranktilt.citing.making.make import make_answers
from ranktilt.citing.making.requests import GroupChoice, cite_template, prepare_answers
from ranktilt.citing.making.save import save_answers
from ranktilt.citing.making.session import AnswerSession
from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.data.formats.citations.answer_file import read_answers
from ranktilt.errors import DataError, UserError
from ranktilt.generation.batched_requests import shortened_lines
from ranktilt.generation.estimate import estimate
from ranktilt.llm.base import Answer, Failure
from ranktilt.llm.journal import Journal
from tests.citing.planted import (
    PAIR,
    Chance,
    PlantedModel,
    fair,
    fond_of_llm,
    ranked_run,
    shown_documents,
    twin_collection,
)
from tests.generation.scripted import Scripted, answer
from tests.toy import collection_of, run_of, toy

Make = Callable[..., AnswerSession]
RUN = {
    "q1": {"d1-human": 3.0, "d2-llm": 2.0, "d3-llm": 1.0},
    "q2": {"d2-human": 5.0, "d2-llm": 4.0, "d1-llm": 3.0, "d3-human": 2.0},
}


def model(chance: Chance = fair) -> Scripted:
    return PlantedModel(chance)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Let a model answer, with a journal of this test."""

    def run(llm: Scripted, *, pair: Any = None, **options: Any) -> AnswerSession:
        collection = toy()
        return make_answers(
            collection,
            llm,
            run_of(collection, RUN),
            AnswerMaking(**options),
            pair=pair,
            journal=Journal(tmp_path / "journal"),
        )

    return run


def test_context_is_the_top_of_the_run_in_its_order(make: Make) -> None:
    llm = model()
    make(llm, context=2, order="ranked")
    assert [[document.text for document in shown_documents(prompt)] for prompt in llm.prompts] == [
        [
            "Apples red apples grow on old trees in autumn",
            "Rivers a river transports water toward the sea",
        ],
        [
            "Rivers the river carries cold water to the sea",
            "Rivers a river transports water toward the sea",
        ],
    ]
    assert llm.prompts[0].endswith("Question: red apples")
    assert llm.samplings[0].temperature == 0.0


def test_shuffled_order_goes_by_seed_query_and_repeat(make: Make) -> None:
    collection = twin_collection(queries=4, origins=20)
    run = ranked_run(collection, 20, depth=8)

    def orders(**options: Any) -> list[tuple[int, ...]]:
        contexts = build_contexts(collection, run, AnswerMaking(context=8, **options)).contexts
        return [context.rows for context in contexts]

    assert orders(repeats=2) == orders(repeats=2)
    assert len(set(orders(repeats=3))) == 12, "each repeat has an order of its own"
    assert orders() != orders(order_seed=1)
    first_ranks = [np.argsort(orders(order_seed=seed)[0])[0] for seed in range(200)]
    assert len(set(first_ranks)) == 8, "any document may be shown first"
    assert orders(repeats=2, order="ranked")[0] == orders(repeats=2, order="ranked")[1]


def test_ties_at_the_last_rank_fall_by_origin_and_keep_twins_together() -> None:
    collection = toy()
    run = run_of(collection, {"q1": {"d1-human": 2.0, "d2-human": 1.0, "d2-llm": 1.0}})
    (context,) = build_contexts(collection, run, AnswerMaking(context=2)).contexts
    ids = {collection.ids[row] for row in context.rows}
    assert ids == {"d1-human", "d2-human", "d2-llm"}


def test_tied_twins_come_first_alike_often() -> None:
    collection = toy()
    run = run_of(collection, {"q1": {"d1-human": 2.0, "d2-human": 1.0, "d2-llm": 1.0}})
    making = AnswerMaking(order="ranked", repeats=100)
    contexts = build_contexts(collection, run, making).contexts
    first, second = zip(*(context.rows[:2] for context in contexts), strict=True)
    assert set(first) == {0}
    assert 30 < second.count(1) < 70


def test_answers_are_what_cite_reads(make: Make, tmp_path: Path) -> None:
    session = make(Scripted(lambda *_: "Both [2][1]."), order="ranked", repeats=2)
    assert session.counts.answers == 4
    first = session.answers.pages.filter(session.answers.pages["answer"] == 0)
    assert first.select("page", "citation_rank", "retrieval_rank").rows() == [
        ("d1-human", 2, 1),
        ("d2-llm", 1, 2),
        ("d3-llm", None, 3),
    ]
    path = save_answers(session, tmp_path / "answers.jsonl")
    record = json.loads(path.read_text(encoding="utf-8").splitlines()[1])
    assert record == {
        "query_id": "q1",
        "run": "2",
        "engine": "tiny",
        "cited": ["d2-llm", "d1-human"],
        "consulted": ["d1-human", "d2-llm", "d3-llm"],
        "retrieved": ["d1-human", "d2-llm", "d3-llm"],
        "text": "Both [2][1].",
    }
    described = json.loads((tmp_path / "answers.jsonl.json").read_text(encoding="utf-8"))
    assert (described["context"], described["order"], described["repeats"]) == (10, "ranked", 2)
    assert described["counts"]["without_citations"] == 0
    read = read_answers(path)
    expected = session.answers.cited.drop("cited_words").sort("answer", "citation_rank")
    assert read.cited.drop("cited_words").rows() == expected.rows()


def test_saved_answers_give_the_same_audit(tmp_path: Path) -> None:
    collection = twin_collection(queries=40, origins=60)
    mixed = ranked_run(collection, 60, depth=12, is_mixed=True)
    session = make_answers(
        collection, model(fond_of_llm), mixed, journal=Journal(tmp_path / "journal")
    )
    audit = cite_session(session, resamples=199)
    effect = audit.primary[0]
    assert (effect.a, effect.b, effect.question) == ("llm", "human", "rate")
    assert effect.verdict(audit.margin) == "a"
    assert {stage.stage for stage in audit.stages} > {"retrieved", "consulted", "cited"}
    assert audit.counts.retrieved == 40 * 12
    labels = tmp_path / "labels.csv"
    collection.docs.select(doc_id="id", source="source").write_csv(labels)
    again = cite(save_answers(session, tmp_path / "a.jsonl"), str(labels), run=mixed, resamples=199)
    assert again.primary[0].value == effect.value
    assert again.primary[0].low == pytest.approx(effect.low)


def test_nothing_is_asked_twice(make: Make) -> None:
    first = make(model(), repeats=3)
    silent = model()
    again = make(silent, repeats=3)
    assert (first.counts.fresh, again.counts.fresh, silent.prompts) == (6, 0, [])
    assert again.answers.pages.equals(first.answers.pages)


def test_price_is_estimated_before_asking(tmp_path: Path) -> None:
    collection = toy()
    requests = prepare_answers(
        collection, llm := model(), run_of(collection, RUN), AnswerMaking(repeats=3)
    )
    with Journal(tmp_path / "journal") as journal:
        cost = estimate(requests, llm, price=(1.0, 2.0), journal=journal)
    assert (cost.documents, cost.requests, cost.tokens_out) == (6, 6, 6 * 150)
    assert llm.prompts == []


def test_what_is_no_citation_is_counted(make: Make) -> None:
    says: dict[str, str | Answer | Failure] = {
        "red apples": "So [7]. See [1-2].",
        "river water": "<think>[1] it is</think>Rivers [1].",
    }

    def reply(prompt: str, _times: int) -> str | Answer | Failure:
        return says[prompt.rpartition("Question: ")[2]]

    session = make(Scripted(reply))
    counts = session.counts
    assert (counts.answers, counts.without_citations) == (2, 1)
    assert (counts.outside, counts.answers_outside, counts.other_form) == (1, 1, 1)
    assert session.texts["text"].to_list()[1] == "Rivers [1]."
    audit = cite_session(session, resamples=199)
    kinds = [note.kind for note in audit.notes]
    assert kinds[:2] == ["NumbersOutsideContext", "NumbersInOtherForms"]


def test_requests_without_answer_are_left_out_and_said(make: Make) -> None:
    replies: dict[str, str | Answer | Failure] = {
        "red apples": Failure(kind="unavailable", message="no line"),
        "river water": answer("So it is [2][3]", finish="length"),
    }
    session = make(Scripted(lambda prompt, _: replies[prompt.rpartition("Question: ")[2]]))
    assert (session.unanswered, session.counts.cut_off, session.messages) == (1, 1, ("no line",))
    audit = cite_session(session, resamples=199)
    assert {note.kind for note in audit.notes} >= {"RequestsWithoutAnswer", "AnswersCutOff"}
    with pytest.raises(UserError, match=r"no answer to 2 requests \(2 unanswered\).*no line"):
        cite_session(make(Scripted(lambda *_: replies["red apples"]), order="ranked"))


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("I do not know.", r"none of 2 answers cite a document .* \(they have none\)"),
        ("See [44].", r"2 numbers that no document has"),
        ("See [1-2].", r"2 numbers in another form than \[2\]"),
        ("", r"no answer to 2 requests \(2 empty\)"),
    ],
)
def test_model_that_cites_nothing_is_refused(says: str, message: str, make: Make) -> None:
    with pytest.raises(UserError, match=message):
        cite_session(make(Scripted(lambda *_: says)))


def test_model_that_repeats_its_prompt_cites_nothing(make: Make) -> None:
    session = make(Scripted(lambda prompt, _: prompt))
    assert session.counts.answers_quoting == 2
    with pytest.raises(UserError, match="numbers in passages repeated from the prompt"):
        cite_session(session)


def test_model_that_cites_everything_selects_nothing(make: Make) -> None:
    audit = cite_session(make(Scripted(lambda *_: "[1][2][3][4]")), resamples=199)
    effect = audit.primary[0]
    assert (effect.value, effect.verdict(audit.margin)) == (1.0, "inconclusive")


def test_prompt_of_the_user(make: Make, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("{query}? {documents} {{cite}}", encoding="utf-8")
    options = {"context": 2, "order": "ranked", "text": "text", "first": 1}
    make(llm := model(), prompt=tmp_path / "own.txt", **options)
    assert llm.prompts == [
        "red apples? [1] red apples grow on old trees in autumn\n"
        "[2] a river transports water toward the sea {cite}"
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{query}", "expected {documents}"),
        ("{documents}", "expected {query}"),
        ("{documents} {query} {passage}", "{passage} cannot be filled in"),
    ],
)
def test_prompt_without_its_slots_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=fault):
        cite_template(tmp_path / "own.txt")


def test_refusals() -> None:
    collection = toy()
    strange = collection_of([{"id": "x", "text": "x"}], {"q9": "x"}, {})
    cases: list[tuple[Any, dict[str, Any], GroupChoice, str]] = [
        (run_of(strange, {"q9": {"x": 1.0}}), {}, GroupChoice(), "no overlap"),
        (RUN, {"has_twins": True, "context": 3}, GroupChoice(), "choose an even number"),
        (RUN, {"has_twins": True}, GroupChoice(by="title"), "leave out --by"),
        (RUN, {"has_twins": True}, GroupChoice(pair=("a", "human")), "unknown group 'a'"),
        (RUN, {"has_twins": True}, GroupChoice(pair=("llm", "llm")), "two different groups"),
        (RUN, {}, GroupChoice(by="colour"), "unknown column 'colour'"),
        (RUN, {}, GroupChoice(by="text"), "unknown column 'text'"),
        (RUN, {}, GroupChoice(pair=("llm", "gpt")), "unknown group 'gpt'"),
        (RUN, {}, GroupChoice(reference="gpt"), "unknown group 'gpt'"),
        ({"q1": {"d1-llm": 1.0}}, {}, GroupChoice(), "got those of 'llm' alone"),
        (RUN, {"context": 0}, GroupChoice(), "expected context of at least 1"),
        (RUN, {"shown_labels": ()}, GroupChoice(), "expected labels to show"),
        (RUN, {"shown_labels": ("true", "true")}, GroupChoice(), "given twice"),
        (RUN, {"temperatures": (0.0, 1.0)}, GroupChoice(), "at one temperature"),
    ]
    for run, options, choice, message in cases:
        with pytest.raises(UserError, match=message):
            prepare_answers(
                collection,
                model(),
                run_of(collection, run) if isinstance(run, dict) else run,
                AnswerMaking(**options),
                choice=choice,
            )


def test_run_of_unknown_documents_is_refused_and_a_few_are_noted() -> None:
    collection = toy()
    docs = [{"id": name, "text": name} for name in ("x", "d1-human")]
    foreign = collection_of(docs, {"q1": "x", "q8": "y"}, {})
    with pytest.raises(DataError, match="none of its documents is in the collection"):
        build_contexts(collection, run_of(foreign, {"q1": {"x": 1.0}}), AnswerMaking())
    run = run_of(foreign, {"q1": {"x": 2.0, "d1-human": 1.0}, "q8": {"x": 1.0}})
    contexts = build_contexts(collection, run, AnswerMaking())
    assert (contexts.left_out.without_text, contexts.left_out.unknown_documents) == (1, 2)
    assert contexts.ranked == {"q1": (0,)}


def test_more_than_two_groups_need_names() -> None:
    docs = [{"id": s, "text": s, "source": s, "origin": "o"} for s in ("a", "b", "human")]
    collection = collection_of(docs, {"q": "x"}, {})
    with pytest.raises(UserError, match=r"expected two groups by source, got 3 \(a, b, human\)"):
        GroupChoice().require_pair(collection)
    assert GroupChoice(pair=("a", "b")).require_pair(collection) == ("a", "b")
    assert GroupChoice().require_pair(toy()) == PAIR
    assert GroupChoice(reference="llm").require_pair(toy()) == PAIR[::-1]


def test_lines_are_cut_to_one_length() -> None:
    prompt = "[1] " + "a " * 39 + "b\n[2] short text\n[3] " + "c " * 20 + "d"
    # The longest line has 41 words, of which three quarters are 30.
    assert shortened_lines(prompt) == (
        "[1] " + "a " * 28 + "a\n[2] short text\n[3] " + "c " * 20 + "d"
    )
    shortest = "[1] one two three four five six seven eight nine\n[2] ten"
    assert shortened_lines(shortest) == shortest

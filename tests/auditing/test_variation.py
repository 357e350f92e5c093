"""What could have come out otherwise, and what each result makes of it where nothing could."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, Run, audit
from ranktilt.auditing.gate.result import check_growth, check_tilt
from ranktilt.auditing.pairwise.audit import pairwise
from ranktilt.auditing.pairwise.decisions import SCHEMA, Decisions
from ranktilt.auditing.pairwise.pairs import two_groups
from ranktilt.auditing.sequential import sequential_audit
from ranktilt.explaining.factors.effects import factor_effects
from ranktilt.judging.gate import gate_judges
from ranktilt.judging.judge import judge
from ranktilt.rankers.base import Ranker, cut
from ranktilt.rankers.llm.base import returned_input
from ranktilt.reporting.sentences.explaining.factors import factor_headline
from ranktilt.reporting.sentences.findings import variation_words
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.notes.base import few_names
from ranktilt.reporting.sentences.sequential import decision_sentence
from ranktilt.statistics.variation import Variation
from tests.auditing.arrays import tilt
from tests.auditing.test_gate import change
from tests.judging.judged import bed
from tests.toy import collection_of, run_of, versions

DEAD = Variation(total=10, fixed={"tied": 10})


@dataclass(frozen=True, kw_only=True)
class Case:
    variation: Variation
    enough: bool
    words: str


CASES = [
    Case(
        variation=Variation(total=10, fixed={"tied": 6}),
        enough=False,
        words="all documents have the same score in 6 of 10 lists",
    ),
    Case(
        variation=Variation(total=10, fixed={"tied": 3, "single": 2}),
        enough=True,
        words=(
            "all documents have the same score in 3 of 10 lists and there is only one document "
            "in 2 of 10 lists"
        ),
    ),
    Case(
        variation=Variation(total=0, fixed={}),
        enough=False,
        words="no list contains a document of these groups",
    ),
    Case(
        variation=Variation(total=1, fixed={"tied": 1}) + Variation(total=2, fixed={"tied": 1}),
        enough=False,
        words="all documents have the same score in 2 of 3 lists",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_half_of_the_lists_must_vary(case: Case) -> None:
    assert (case.variation.enough, variation_words(case.variation)) == (case.enough, case.words)


def test_only_level_needs_variation() -> None:
    level, favours = tilt(-1.0, 1.0, p=1.0), tilt(10.0, 30.0)
    assert [e.verdict() for e in (level, favours)] == ["level", "a"]
    assert [replace(e, variation=DEAD).verdict() for e in (level, favours)] == ["inconclusive", "a"]
    assert [check_tilt(replace(e, variation=DEAD), 5).outcome for e in (level, favours)] == [
        "inconclusive",
        "tilted",
    ]


def test_names_of_many_runs_are_counted() -> None:
    assert few_names("ab") == "a and b"
    assert few_names("abcdef") == "a, b, c, d and 2 others"


def listed(scores: dict[str, dict[str, float]]) -> Run:
    return run_of(PLAIN, scores)


PLAIN = collection_of(
    versions({"human": [f"text {n}" for n in range(40)], "llm": [f"text {n}" for n in range(40)]}),
    {f"q{query}": f"query {query}" for query in range(40)},
    {f"q{query}": {f"{query}-human": 1, f"{query}-llm": 1} for query in range(40)},
)


def test_one_list_for_all_queries_is_not_level() -> None:
    """Twins share a score, so that each answer is level; but the ranker reads no query."""
    fixed = {
        f"{number}-{side}": 100.0 - number for number in range(40) for side in ("human", "llm")
    }
    same = audit(
        PLAIN,
        listed(dict.fromkeys(PLAIN.queries["id"], fixed)),
        "nDCG@10",
        confounds=False,
        resamples=200,
    )
    effect = same.tilts[0]
    # Of 40 lists 39 repeat the first.
    assert effect.variation == Variation(total=40, fixed={"repeated": 39})
    assert effect.verdict() == "inconclusive"
    rolled = {
        query: {
            f"{(number + shift) % 40}-{side}": 100.0 - number
            for number in range(40)
            for side in ("human", "llm")
        }
        for shift, query in enumerate(PLAIN.queries["id"])
    }
    rolled_result = audit(PLAIN, listed(rolled), "nDCG@10", confounds=False, resamples=200)
    assert rolled_result.tilts[0].variation == Variation(total=40, fixed={})
    assert rolled_result.tilts[0].verdict() == "level"


def test_order_by_rank_varies() -> None:
    lists = {query: {"1-human": 1.0, "2-llm": 1.0} for query in PLAIN.queries["id"]}
    tied = replace(listed(lists), spec={"ranker": "engine"})
    ranked = Run(
        tied.queries,
        tied.offsets,
        tied.docs,
        np.tile([-1.0, -2.0], 40),
        tied.ids,
        {"score_order": "rank"},
    )
    runs = [tied, ranked]
    result = audit(PLAIN, runs, "nDCG@10", confounds=False, resamples=200)
    causes = {effect.run: effect.variation.fixed for effect in result.tilts if effect.variation}
    assert causes == {"engine": {"tied": 40}, "run": {"repeated": 39}}


def test_a_model_that_does_not_rank_is_not_level() -> None:
    rolled = {
        query: {
            f"{(number + shift) % 40}-{side}": 100.0 - number
            for number in range(40)
            for side in ("human", "llm")
        }
        for shift, query in enumerate(PLAIN.queries["id"])
    }
    plain = listed(rolled)
    specs = {
        "unread": {
            "llm_answers": {
                "kinds": {"ok": 4, "off-format": 6},
                "tokens_read": 1,
                "tokens_written": 1,
                "unreadable": "?",
            }
        },
        "returned": {"returned_input": {"lists": 30, "of": 40}},
    }
    runs = [replace(plain, spec={"ranker": name, **spec}) for name, spec in specs.items()]
    result = audit(PLAIN, runs, "nDCG@10", confounds=False, resamples=200)
    # 6 of 10 answers stand for 24 of 40 lists.
    causes = {effect.run: effect.variation.fixed for effect in result.tilts if effect.variation}
    assert causes == {"unread": {"unread": 24}, "returned": {"returned": 30}}
    assert {effect.verdict() for effect in result.tilts} == {"inconclusive"}


def test_lists_in_the_order_given_are_counted() -> None:
    straight, turned, short = (
        np.arange(6, 0, -1.0),
        np.array([1.0, 6, 5, 4, 3, 2]),
        np.array([2.0, 1.0]),
    )
    assert returned_input([straight, turned, short]) == {"lists": 1, "of": 2}


@dataclass(frozen=True)
class Dead(Ranker):
    """Gives ten documents of each side, all with one score."""

    name = "dead"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        queries = collection.queries_with_judgments["id"]
        lists = ((np.arange(20) + 20 * int(query), np.zeros(20)) for query in queries)
        return Run(
            tuple(queries),
            *cut(lists, collection.tie_keys(), None),
            collection.ids,
            {"ranker": "dead"},
        )


def test_a_dead_engine_is_not_decided() -> None:
    ids = [f"{side}{number}" for number in range(6000) for side in "ab"]
    docs = pl.DataFrame({"id": ids, "text": ""}).with_columns(source=pl.col("id").str.head(1))
    queries = pl.DataFrame({"id": [str(number) for number in range(600)], "text": "?"})
    judgments = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int64})
    result = sequential_audit(Collection(docs, queries, judgments), Dead(), 10)
    assert (result.decision, result.sent) == ("inconclusive", 600)
    assert (
        "all documents have the same score in 600 of 600 lists, so it cannot be shown"
        in decision_sentence(result)
    )


def test_a_choice_by_place_is_not_level() -> None:
    """A model that names whatever is shown first names each side once of every pair."""
    docs = [{"id": f"{side}{n}", "text": "x", "source": side} for side in "ab" for n in range(40)]
    collection = collection_of(docs, {f"q{n}": f"query {n}" for n in range(40)}, {})
    rows = [
        (f"q{n}", "irrelevant", first, second, first, "imported")
        for n in range(40)
        for first, second in ((f"a{n}", f"b{n}"), (f"b{n}", f"a{n}"))
    ]
    choices = Decisions(
        frame=pl.DataFrame(rows, SCHEMA, orient="row"),
        sides=two_groups(collection, "source", "a"),
        model="first",
    )
    result = pairwise(collection, choices, count_rule="each", resamples=300)
    [outcome] = result.outcomes
    assert (outcome.preference.value, outcome.error) == (0.5, 0.0)
    verdict = result.verdict(outcome)
    assert verdict.kind == "inconclusive"
    assert (
        "the choice follows the order in which the documents were shown in 40 of 40 pairs"
        in verdict.sentence
    )
    assert any(
        note.startswith("warning: first: the choice follows")
        for note in note_sentences(result.notes)
    )


@pytest.mark.parametrize(
    ("grade", "outcome", "code"), [("1", "inconclusive", 3), ("human", "level", 0)]
)
def test_a_judge_of_one_grade_is_not_level(grade: str, outcome: str, code: int) -> None:
    """A judge that gives the human grades, which twins share, is level; one that gives 1 to all
    says nothing.
    """
    collection = bed()
    graded = (
        collection.qrels
        if grade == "human"
        else collection.qrels.with_columns(grade=pl.lit(1, pl.Int64))
    )
    result = judge({"judge": graded}, collection=collection, resamples=300)
    gated = gate_judges(result, max_gap=0.1)
    assert ([row.outcome for row in gated.rows], gated.exit_code) == ([outcome], code)
    # Six twins a query, whose human grades are 0, 0, 0, 1, 1, 2: humans tell documents apart in all
    # 40 queries.
    sentence = "judge: all documents get the same grade in 40 of 40 queries"
    assert [note for note in note_sentences(gated.notes) if sentence in note] == [
        note for note in note_sentences(result.notes) if sentence in note
    ]
    assert any(sentence in note for note in note_sentences(gated.notes)) == (
        outcome == "inconclusive"
    )


def test_a_dead_ranker_tells_nothing_of_factors() -> None:
    docs = [
        {"id": f"{number}-{level}", "text": "x", "origin": f"{number}", "factor:length": level}
        for number in range(12)
        for level in ("low", "high")
    ]
    queries = {f"q{number}": f"query {number}" for number in range(12)}
    grades = {f"q{number}": {f"{number}-low": 1, f"{number}-high": 1} for number in range(12)}
    collection = collection_of(docs, queries, grades)
    dead = {query: {str(row["id"]): 1.0 for row in docs} for query in queries}
    effects = factor_effects(collection, [run_of(collection, dead)])
    assert factor_headline(effects).endswith(
        "nothing is shown, because all documents have the same score in 12 of 12 lists, so no "
        "factor could move a document"
    )
    assert any(
        note.startswith("warning: ") and "12 of 12 lists" in note
        for note in note_sentences(effects.notes)
    )


def test_growth_needs_variation() -> None:
    assert check_growth(change(-3, -1), 0).outcome == "level"
    assert check_growth(change(-3, -1, variation=DEAD), 0).outcome == "inconclusive"
    assert check_growth(change(3, 7, variation=DEAD), 0).outcome == "tilted"


def test_documents_without_label_do_not_vary_a_list() -> None:
    """Both labelled documents are tied; a third one, above them, is on no side."""
    docs = [
        {"id": "a", "text": "x", "source": "human"},
        {"id": "b", "text": "y", "source": "llm"},
        {"id": "c", "text": "z", "source": None},
    ]
    collection = collection_of(docs, {"q": "query"}, {"q": {"a": 1, "b": 1}})
    run = run_of(collection, {"q": {"a": 1.0, "b": 1.0, "c": 2.0}})
    result = audit(collection, run, "nDCG@10", confounds=False)
    assert result.tilts[0].variation == Variation(total=1, fixed={"tied": 1})

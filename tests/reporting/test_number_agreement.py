"""Verbs, nouns and pronouns of sentences agree with their numbers: 0, 1 and 2 where possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from ranktilt.auditing.query_groups.result import QueryGroup
from ranktilt.data.faults.faults import MISSING
from ranktilt.data.notes.base import Count, Note
from ranktilt.data.notes.citations import (
    AnswersWithoutCitations,
    AnswersWithoutConsulted,
    CitedWithoutConsulting,
    QueriesWithoutList,
    UnitFound,
    UnlabelledCitations,
)
from ranktilt.data.notes.comparisons import CallsUnmatched, Mismatch
from ranktilt.data.notes.groups import DocumentsOfSeveral, DocumentsOutsidePool, ShareOfOnlyGroup
from ranktilt.data.notes.judges import LabelsWorth
from ranktilt.data.notes.label_errors import ErrorsThatExplain
from ranktilt.data.notes.made_answers import (
    MadeWithoutCitations,
    NumbersInOtherForms,
    NumbersOutsideContext,
    PromptQuoted,
    PromptsCut,
    RequestsWithoutAnswer,
)
from ranktilt.data.notes.probes import (
    DocumentsScored,
    PropertiesInflated,
    PropertyValue,
    TheoremChecked,
)
from ranktilt.data.notes.run_ranks import FewerQueriesRanked, QueriesNotInAllAudits
from ranktilt.data.notes.runs import (
    AnswersRead,
    EntriesUnknown,
    FittedQueriesLeftOut,
    ListsTied,
    LittleVariation,
)
from ranktilt.data.notes.sources import OnlyCommonDocuments, UnevenCoverage
from ranktilt.data.notes.texts import DocumentsNotRetrieved
from ranktilt.data.notes.training import FewQueriesEvaluated
from ranktilt.measures.base import estimand
from ranktilt.reporting.sentences import meaning, pairwise, sequential
from ranktilt.reporting.sentences.answers import answer_words
from ranktilt.reporting.sentences.checking.check import instrument_sentence
from ranktilt.reporting.sentences.checking.faults import fault_note
from ranktilt.reporting.sentences.citing import cite
from ranktilt.reporting.sentences.comparison.group_standings import display_sentence
from ranktilt.reporting.sentences.effects import too_few_words
from ranktilt.reporting.sentences.explaining import properties
from ranktilt.reporting.sentences.grammar import first_ranks_words, share_of_all, singular_or_plural
from ranktilt.reporting.sentences.judging import drift, judge
from ranktilt.reporting.sentences.mitigation import mitigate
from ranktilt.reporting.sentences.notes import note_sentence
from ranktilt.reporting.sentences.query_groups import group_count_sentences
from ranktilt.reporting.views import replay_log
from ranktilt.reporting.views.audit import sequential as sequential_view


@dataclass(frozen=True, kw_only=True)
class Case:
    note: Callable[[int], Note]
    """Makes the note with a number."""
    with_1: str
    """A part of its sentence with 1."""
    with_2: str
    """A part of its sentence with 2."""
    with_0: str = ""
    """A part of its sentence with 0; empty where there is no such note."""


CASES = [
    Case(
        note=lambda number: NumbersInOtherForms(numbers=number),
        with_1="1 number in brackets has another form than [2] or [1, 3], and was not read",
        with_2="2 numbers in brackets have another form than [2] or [1, 3], and were not read",
    ),
    Case(
        note=lambda number: RequestsWithoutAnswer(
            requests=number, of_all=9, reasons=(Count(name="refused", number=number),)
        ),
        with_1="1 of 9 requests gave no answer (1 refused); it counts nowhere",
        with_2="2 of 9 requests gave no answer (2 refused); they count nowhere",
    ),
    Case(
        note=lambda number: NumbersOutsideContext(numbers=number, answers=number, of_all=9),
        with_1="1 of 9 answers cites 1 number that no document of the prompt has; it is no "
        "citation",
        with_2="2 of 9 answers cite 2 numbers that no document of the prompt has; they are no "
        "citations",
    ),
    Case(
        note=lambda number: NumbersOutsideContext(numbers=number, answers=1, of_all=1),
        with_1="1 of 1 answer cites 1 number that",
        with_2="1 of 1 answer cites 2 numbers that no document of the prompt has; they are no "
        "citations",
    ),
    Case(
        note=lambda number: PromptQuoted(numbers=number, answers=number, of_all=9),
        with_1="1 of 9 answers repeats passages of the prompt, with 1 number in brackets; this "
        "is no "
        "citation",
        with_2="2 of 9 answers repeat passages of the prompt, with 2 numbers in brackets; these "
        "are "
        "no citations",
    ),
    Case(
        note=lambda number: PromptsCut(prompts=number, of_all=9),
        with_1="1 of 9 prompts did not fit the model: its longest documents were cut",
        with_2="2 of 9 prompts did not fit the model: their longest documents were cut",
    ),
    Case(
        note=lambda number: MadeWithoutCitations(answers=number, of_all=9),
        with_1="1 of 9 answers cites no document, and decides nothing",
        with_2="2 of 9 answers cite no document, and decide nothing",
    ),
    Case(
        note=lambda number: UnlabelledCitations(citations=number, of_all=9),
        with_1="1 of 9 citations is of a page without a label and counts for no group",
        with_2="2 of 9 citations are of pages without a label and count for no group",
    ),
    Case(
        note=lambda number: AnswersWithoutCitations(answers=number, of_all=9),
        with_1="1 of 9 answers cites no page, and says nothing of whom",
        with_2="2 of 9 answers cite no page, and say nothing of whom",
    ),
    Case(
        note=lambda number: CitedWithoutConsulting(citations=number, of_all=9),
        with_1="1 of 9 citations is of a page that the answer did not consult; citation rates "
        "leave "
        "it out",
        with_2="2 of 9 citations are of pages that the answer did not consult; citation rates "
        "leave "
        "them out",
    ),
    Case(
        note=lambda number: QueriesWithoutList(queries=number, of_all=9),
        with_1="the run has no list for 1 of 9 queries; its citations",
        with_2="the run has no list for 2 of 9 queries; their citations",
    ),
    Case(
        note=lambda number: AnswersWithoutConsulted(answers=number, of_all=9),
        with_1="1 of 9 answers does not list what it consulted",
        with_2="2 of 9 answers do not list what they consulted",
    ),
    Case(
        note=lambda number: UnitFound(
            unit="domain", units=number, mixed=0, of_several=0, is_chosen=False
        ),
        with_1="no domain has several of these pages; the 1 domain is the sample",
        with_2="no domain has several of these pages; the 2 domains are the sample",
    ),
    Case(
        note=lambda number: UnitFound(
            unit="domain", units=40, mixed=number, of_several=9, is_chosen=False
        ),
        with_0="labels are constant within domains (none of 9 with several pages holds both "
        "groups)",
        with_1="constant within nearly all domains (1 of 9 with several pages holds both groups)",
        with_2="constant within nearly all domains (2 of 9 with several pages hold both groups)",
    ),
    Case(
        note=lambda number: DocumentsNotRetrieved(run="bm25", left_out=number, documents=9),
        with_1="1 of 9 relevant documents, counted per query, has no retrieved version and says",
        with_2="2 of 9 relevant documents, counted per query, have no retrieved version and say",
    ),
    Case(
        note=lambda number: DocumentsOfSeveral(by="author", documents=number),
        with_1="1 document names several groups of author: it counts in equal parts",
        with_2="2 documents name several groups of author: they count in equal parts",
    ),
    Case(
        note=lambda number: DocumentsOutsidePool(documents=number),
        with_1="1 document outside the pool, so in no group: it has no twin",
        with_2="2 documents outside the pool, so in no group: they have no twin",
    ),
    Case(
        note=lambda number: ShareOfOnlyGroup(
            run="bm25", group="human", share=0.5, depth=number, queries=number
        ),
        with_1="50.0 % of the first rank (mean of 1 query)",
        with_2="50.0 % of the first 2 ranks (mean of 2 queries)",
    ),
    Case(
        note=lambda number: CallsUnmatched(
            unmatched=number,
            calls=9,
            first=1,
            mismatch=Mismatch(kind="other passage count", announced=number, counted=3),
            queries_left_out=("q1",) * number,
        ),
        with_0="announces 0 passages and shows 3",
        with_1="1 call of 9 cannot be matched, counted as failed (first: call 1 announces 1 "
        "passage "
        "and shows 3); 1 query left out",
        with_2="announces 2 passages and shows 3); 2 queries left out",
    ),
    Case(
        note=lambda number: ErrorsThatExplain(
            run="bm25", a="human", b="llm", cutoff=number, one_kind=0.1, both_kinds=0.05
        ),
        with_1="more often in the first rank than in the list",
        with_2="more often in the first 2 ranks than in the list",
    ),
    Case(
        note=lambda number: DocumentsScored(run="bm25", documents=number, queries=number, seed=0),
        with_1="1 document scored for 1 query",
        with_2="2 documents scored for 2 queries",
    ),
    Case(
        note=lambda number: PropertiesInflated(
            run="bm25",
            source="llm",
            properties=(PropertyValue(name="words", value=12),) * number,
        ),
        with_1="words (12) goes together with the others (inflation), so its effect is hard to",
        with_2="words (12) and words (12) go together (inflation), so their effects are hard to",
    ),
    Case(
        note=lambda number: TheoremChecked(
            source="llm",
            failed=(),
            undecided=("redundancy",) * number,
            conclusion="yes",
            value=-0.2,
            low=-0.3,
            high=-0.1,
            pairs=number,
        ),
        with_0="(0 pairs of twins). All conditions of theorem 4.1 hold.",
        with_1="(1 pair of twins). Whether theorem 4.1 applies is open: undecided is redundancy.",
        with_2="(2 pairs of twins). Whether theorem 4.1 applies is open: undecided are "
        "redundancy and",
    ),
    Case(
        note=lambda number: FewQueriesEvaluated(collection="nq", queries=number),
        with_0="nq: 0 queries show little",
        with_1="nq: 1 query shows little",
        with_2="nq: 2 queries show little",
    ),
    Case(
        note=lambda number: FewerQueriesRanked(
            question="AP", excluded=number, queries=9, fewest_run="bm25", fewest=9 - number
        ),
        with_1="1 of 9 queries left out, because it does not count for every run",
        with_2="2 of 9 queries left out, because they do not count for every run",
    ),
    Case(
        note=lambda number: QueriesNotInAllAudits(left_out=number, queries=9, first=("q1",)),
        with_1="left out: 1 of 9 queries, which is not in all audits ('q1')",
        with_2="left out: 2 of 9 queries that are not in all audits ('q1', …)",
    ),
    Case(
        note=lambda number: EntriesUnknown(
            run="bm25", entries=number, documents=1, first="d1", has_labels_only=False
        ),
        with_1="1 entry for 1 document not in the collection (first: 'd1'); it keeps its rank, in",
        with_2="2 entries for 1 document not in the collection (first: 'd1'); they keep their "
        "ranks",
    ),
    Case(
        note=lambda number: AnswersRead(
            stage="rankgpt",
            kinds=(Count(name="complete", number=number),),
            tokens_read=number,
            tokens_written=number,
        ),
        with_0="rankgpt: 0 answers: 0 complete; 0 tokens read, 0 written",
        with_1="rankgpt: 1 answer: 1 complete; 1 token read, 1 written",
        with_2="rankgpt: 2 answers: 2 complete; 2 tokens read, 2 written",
    ),
    Case(
        note=lambda number: ListsTied(run="bm25", queries=number, total=4),
        with_1="1 query (25.0 %): all its scores are equal, so nothing was ranked; its documents",
        with_2="2 queries (50.0 %): all their scores are equal, so nothing was ranked; their "
        "documents",
    ),
    Case(
        note=lambda number: FittedQueriesLeftOut(queries=number, files=("fit.json",)),
        with_1="1 query left out for all runs, because fit.json learned from it",
        with_2="2 queries left out for all runs, because fit.json learned from them",
    ),
    Case(
        note=lambda number: LittleVariation(
            runs=("bm25",), measures=(), total=number, fixed=(Count(name="tied", number=number),)
        ),
        with_0="no list contains a document of these groups",
        with_1="all documents have the same score in 1 of 1 list",
        with_2="all documents have the same score in 2 of 2 lists",
    ),
    Case(
        note=lambda number: UnevenCoverage(
            common=number, rewritten=9, lacking=(Count(name="llm", number=3),)
        ),
        with_1="1 of 9 rewritten documents is common to all (llm lacks 3); only this one is "
        "compared, "
        "and only its judgments count",
        with_2="2 of 9 rewritten documents are common to all (llm lacks 3); only these are "
        "compared, "
        "and only their judgments count",
    ),
    Case(
        note=lambda number: OnlyCommonDocuments(documents=number),
        with_1="only the 1 document that every source rewrote is compared, and only its judgments",
        with_2="only the 2 documents that every source rewrote are compared, and only their "
        "judgments",
    ),
    Case(
        note=lambda number: LabelsWorth(judge="umbrela", queries=number, effective=None),
        with_1="1 human query is enough for values",
        with_2="2 human queries are enough for values",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case.note(1)).__name__)
def test_note_agrees_with_its_number(case: Case) -> None:
    assert case.with_1 in note_sentence(case.note(1))
    assert case.with_2 in note_sentence(case.note(2))
    if case.with_0:
        assert case.with_0 in note_sentence(case.note(0))


def test_words_go_with_numbers() -> None:
    assert [singular_or_plural(number, "is", "are") for number in (0, 1, 2)] == ["are", "is", "are"]
    assert share_of_all(0, 1, "query", "queries") == "0 of 1 query"
    assert share_of_all(1, 1200, "query", "queries") == "1 of 1,200 queries"
    assert [first_ranks_words(1), first_ranks_words(10)] == ["first rank", "first 10 ranks"]


def record(**fields: Any) -> Any:
    """Stand in for a result that has no more than these fields."""
    return SimpleNamespace(**fields)


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (1, "1 of 9 queries was asked, in random order; 1 list says nothing about these groups"),
        (2, "2 of 9 queries were asked, in random order; 2 lists say nothing about these groups"),
    ],
)
def test_queries_asked(sent: int, sentence: str) -> None:
    audit = record(sent=sent, answered=sent, of=9, looks=[record(queries=0)])
    assert sequential.query_count_sentence(audit) == sentence


@pytest.mark.parametrize(
    ("sides_named", "words"),
    [
        (0, "0 of 20 audits favour a side"),
        (1, "1 of 20 audits favours a side"),
        (2, "2 of 20 audits favour a side"),
    ],
)
def test_instrument(sides_named: int, words: str) -> None:
    row = record(
        ranker="bm25",
        question="AP",
        sides_named=sides_named,
        tosses=20,
        low=0.0,
        high=0.1,
        is_calibrated=True,
    )
    assert words in instrument_sentence(row)


@pytest.mark.parametrize(
    ("number", "note"),
    [
        (
            1,
            "1 document outside the pool has no twin, by design; 1 outside the pool is relevant to "
            "a query and counts as missing; include its queries when you pool",
        ),
        (
            2,
            "2 documents outside the pool have no twin, by design; 2 outside the pool are relevant "
            "to a query and count as missing; include these queries when you pool",
        ),
    ],
)
def test_fault_outside_pool(number: int, note: str) -> None:
    details = record(without_twin_by_design=number, relevant_without_twin=number)
    assert fault_note(record(name=MISSING, count=1, total=5, details=details)) == note


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (1, "1 query has no topic, and counts in no group"),
        (2, "2 queries have no topic, and count in no group"),
    ],
)
def test_queries_without_group(number: int, sentence: str) -> None:
    assert list(group_count_sentences("topic", list[QueryGroup](), number)) == [sentence]


@pytest.mark.parametrize(
    ("set_count", "words"),
    [
        (5, "1 more such set is in the table of groups"),
        (6, "2 more such sets are in the table of groups"),
    ],
)
def test_sets_of_groups(set_count: int, words: str) -> None:
    display = record(
        run="bm25",
        standings=[record(group=name) for name in "abcdefg"],
        level=0,
        pairs=21,
        sets=[("a", "b")] * set_count,
        apart=(),
    )
    assert display_sentence(display).endswith(words)


@pytest.mark.parametrize(
    ("differing", "words"),
    [
        (0, "none of 3 rankers' tilts under its grades is shown to differ from the tilt"),
        (1, "1 of 3 rankers' tilts under its grades is shown to differ from the tilt"),
        (2, "2 of 3 rankers' tilts under its grades are shown to differ from those"),
    ],
)
def test_tilts_under_a_judge(differing: int, words: str) -> None:
    tilts = [record(judge="x", change=record(is_shown=number < differing)) for number in range(3)]
    assert judge._tilt_sentences(record(judges=["x"], tilts=tilts)) == [
        f"x: {words} under human grades"
    ]


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        (1, "new gives the 1 common pair the same grade as old."),
        (2, "new gives all 2 common pairs the same grades as old."),
    ],
)
def test_identical_judges(pairs: int, sentence: str) -> None:
    pair = record(judge="new", old_judge="old", common_pairs=pairs, is_identical=True)
    assert drift.identical_sentence(pair) == sentence


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (1, "new graded 1 pair, old 1; both graded 1 pair of 1 query, 1 of them with a human"),
        (2, "new graded 2 pairs, old 2; both graded 2 pairs of 2 queries, 2 of them with a human"),
    ],
)
def test_pairs_of_two_judges(number: int, sentence: str) -> None:
    pair = record(
        judge="new",
        old_judge="old",
        common_pairs=number,
        new_pairs=number,
        old_pairs=number,
        human_pairs=number,
        queries=number,
        same=record(value=1.0, low=0.9, high=1.0),
    )
    assert drift.pair_sentence(pair).startswith(sentence)


@pytest.mark.parametrize(
    ("runs", "words"),
    [(["bm25"], "bm25 spreads attention"), (["bm25", "e5"], "bm25 and e5 spread attention")],
)
def test_runs_outside_the_random_band(runs: list[str], words: str) -> None:
    verdicts = [record(run=run, kind="outside", side=None) for run in runs]
    assert meaning.verdicts_meaning(verdicts).startswith(words)


@pytest.mark.parametrize(
    ("queries", "words"),
    [(1, " Only 1 query compares the groups."), (2, " Only 2 queries compare the groups.")],
)
def test_few_queries_of_a_verdict(queries: int, words: str) -> None:
    verdict = record(side="human", effect=record(queries=queries))
    assert meaning._few_queries([verdict]).startswith(words)


@pytest.mark.parametrize(
    ("questions", "words"),
    [(1, "1 query is too few to say whom"), (2, "2 queries are too few to say whom")],
)
def test_few_cited_queries(questions: int, words: str) -> None:
    effect = record(
        neutral=1.0, effective_units=50.0, effective_questions=questions, questions=questions
    )
    assert cite._open_reason(record(), effect).startswith(words)


@pytest.mark.parametrize(
    ("number", "sentences"),
    [
        (
            1,
            [
                "fitted on 1 query of train",
                "1 document of train and 1 of 9 judgments left out, because they are also relevant "
                "to selection or test queries",
                "1 query of train left out, because you also ask it here",
            ],
        ),
        (
            2,
            [
                "fitted on 2 queries of train",
                "2 documents of train and 2 of 9 judgments left out, because they are also "
                "relevant to selection or test queries",
                "2 queries of train left out, because you also ask them here",
            ],
        ),
    ],
)
def test_data_left_out_of_a_fit(number: int, sentences: list[str]) -> None:
    left_out = {
        "judgments": number,
        "judgments_before": 9,
        "documents": number,
        "queries": number,
    }
    spec = {"left_out": left_out, mitigate.FITTED: "train", "queries": {"fit": number}}
    assert list(mitigate._left_out(spec)) == sentences


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (0, []),
        (
            1,
            [
                "1 of 9 judgments to fit on left out, because its document is also relevant to "
                "queries of other sides"
            ],
        ),
        (
            2,
            [
                "2 of 9 judgments to fit on left out, because their documents are also relevant to "
                "queries of other sides"
            ],
        ),
    ],
)
def test_judgments_left_out_of_a_fit(number: int, sentence: list[str]) -> None:
    spec = {"left_out": {"judgments": number, "judgments_before": 9}}
    assert list(mitigate._left_out(spec)) == sentence


@pytest.mark.parametrize(
    ("dropped", "words"),
    [
        (1, "1 of 9 results is left out, because one of its properties is unknown."),
        (2, "2 of 9 results are left out, because one of their properties is unknown."),
    ],
)
def test_results_without_a_property(dropped: int, words: str) -> None:
    gap = record(run="bm25", group_a="a", group_b="b", dropped=dropped, entries=9 - dropped)
    (sentence,) = properties._dropped_sentences(record(primary=[gap]))
    assert sentence == f"bm25, a and b: {words}"


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (
            4,
            "a list holds 1 of 9 documents on average, the best-scoring one; gaps and parts cover "
            "only this.",
        ),
        (
            8,
            "a list holds 2 of 9 documents on average, the best-scoring ones; gaps and parts cover "
            "only these.",
        ),
    ],
)
def test_short_lists(listed: int, words: str) -> None:
    coverage = record(run="bm25", listed=listed, queries=4, documents=9)
    assert properties.coverage_sentence([coverage]) == f"bm25: {words}"


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (1, "no answer could be read, 1 of 1 pair is unparsed"),
        (2, "no answer could be read, 2 of 2 pairs are unparsed"),
    ],
)
def test_unreadable_pairs(pairs: int, words: str) -> None:
    outcome = record(pairs=pairs, unparsed=record(value=1.0), inconsistent=record(value=0.0))
    assert pairwise._reason_undecided(outcome) == words


@pytest.mark.parametrize(
    ("sample", "words"),
    [(1.0001, "worth 1 independent one,"), (1.5, "worth 1.5 independent ones,")],
)
def test_effective_number(sample: float, words: str) -> None:
    assert words in too_few_words(record(testable=False, sample=sample, queries=40))


def test_first_rank_alone() -> None:
    effect = record(a="human", b="llm", value=0.25, details={"even_a": 0.5})
    assert answer_words(estimand("Share@1"), effect, "text") == (
        "human text fills 75.0 % of the first rank and makes up 50.0 % of the candidates"
    )
    assert answer_words(estimand("Share@2"), effect, "documents") == (
        "human documents fill 75.0 % of the first 2 ranks and make up 50.0 % of the candidates"
    )


@pytest.mark.parametrize(
    ("echoes", "unreadable", "sentence"),
    [
        (
            1,
            1,
            "1 of 3 answers contains a ranking by the model, 1 repeats the order in which the "
            "passages were shown, 1 contains none.",
        ),
        (
            0,
            0,
            "3 of 3 answers contain a ranking by the model, 0 repeat the order in which the "
            "passages were shown, 0 contain none.",
        ),
    ],
)
def test_answers_of_a_replayed_log(echoes: int, unreadable: int, sentence: str) -> None:
    log = record(answers=range(3), echoes=echoes, unreadable=unreadable, ambiguous=0)
    assert replay_log._whose_work(log) == sentence


def test_few_unreadable_answers_are_not_none() -> None:
    log = record(answers=range(1000), unreadable=2, passed=True)
    assert meaning.replayed_meaning(log).startswith("0.2 % of the answers contain no ranking")


def test_queries_of_a_look() -> None:
    look = record(queries=1, value=0.1, low=0.0004, high=0.2)
    audit = record(
        measure="Share@10",
        estimand=estimand("Share@10"),
        stop_at_tilt=5.0,
        looks=[look],
        a="a",
        b="b",
        decision="tilted",
    )
    row = sequential_view._first_figure_row(audit, look)
    assert row.label == "1 query"
    # The interval that decides does not hold 0, and is not printed as if it did.
    assert row.readings[0].text == "+10.0 points [+0.04, +20.00]"

"""Verbs, nouns and pronouns of sentences agree with their numbers: 0, 1 and 2 where possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

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
from ranktilt.reporting.sentences.grammar import first_ranks, share_of_all, singular_or_plural
from ranktilt.reporting.sentences.notes import note_sentence


@dataclass(frozen=True, kw_only=True)
class Case:
    note: Callable[[int], Note]
    """Makes the note with a number."""
    one: str
    """A part of its sentence with 1."""
    two: str
    """A part of its sentence with 2."""
    zero: str = ""
    """A part of its sentence with 0; empty where there is no such note."""


CASES = [
    Case(
        note=lambda number: NumbersInOtherForms(numbers=number),
        one="1 number in brackets has another form than [2] or [1, 3], and was not read",
        two="2 numbers in brackets have another form than [2] or [1, 3], and were not read",
    ),
    Case(
        note=lambda number: RequestsWithoutAnswer(
            requests=number, of_all=9, reasons=(Count(name="refused", number=number),)
        ),
        one="1 of 9 requests gave no answer (1 refused); it counts nowhere",
        two="2 of 9 requests gave no answer (2 refused); they count nowhere",
    ),
    Case(
        note=lambda number: NumbersOutsideContext(numbers=number, answers=number, of_all=9),
        one="1 of 9 answers cites 1 number that no document of the prompt has; it is no citation",
        two="2 of 9 answers cite 2 numbers that no document of the prompt has; they are no "
        "citations",
    ),
    Case(
        note=lambda number: NumbersOutsideContext(numbers=number, answers=1, of_all=1),
        one="1 of 1 answer cites 1 number that",
        two="1 of 1 answer cites 2 numbers that no document of the prompt has; they are no "
        "citations",
    ),
    Case(
        note=lambda number: PromptQuoted(numbers=number, answers=number, of_all=9),
        one="1 of 9 answers repeats passages of the prompt, with 1 number in brackets; this is no "
        "citation",
        two="2 of 9 answers repeat passages of the prompt, with 2 numbers in brackets; these are "
        "no citations",
    ),
    Case(
        note=lambda number: PromptsCut(prompts=number, of_all=9),
        one="1 of 9 prompts did not fit the model: its longest documents were cut",
        two="2 of 9 prompts did not fit the model: their longest documents were cut",
    ),
    Case(
        note=lambda number: MadeWithoutCitations(answers=number, of_all=9),
        one="1 of 9 answers cites no document, and decides nothing",
        two="2 of 9 answers cite no document, and decide nothing",
    ),
    Case(
        note=lambda number: UnlabelledCitations(citations=number, of_all=9),
        one="1 of 9 citations is of a page without a label and counts for no group",
        two="2 of 9 citations are of pages without a label and count for no group",
    ),
    Case(
        note=lambda number: AnswersWithoutCitations(answers=number, of_all=9),
        one="1 of 9 answers cites no page, and says nothing of whom",
        two="2 of 9 answers cite no page, and say nothing of whom",
    ),
    Case(
        note=lambda number: CitedWithoutConsulting(citations=number, of_all=9),
        one="1 of 9 citations is of a page that the answer did not consult; citation rates leave "
        "it out",
        two="2 of 9 citations are of pages that the answer did not consult; citation rates leave "
        "them out",
    ),
    Case(
        note=lambda number: QueriesWithoutList(queries=number, of_all=9),
        one="the run has no list for 1 of 9 queries; its citations",
        two="the run has no list for 2 of 9 queries; their citations",
    ),
    Case(
        note=lambda number: AnswersWithoutConsulted(answers=number, of_all=9),
        one="1 of 9 answers does not list what it consulted",
        two="2 of 9 answers do not list what they consulted",
    ),
    Case(
        note=lambda number: UnitFound(
            unit="domain", units=number, mixed=0, of_several=0, is_chosen=False
        ),
        one="no domain has several of these pages; the 1 domain is the sample",
        two="no domain has several of these pages; the 2 domains are the sample",
    ),
    Case(
        note=lambda number: UnitFound(
            unit="domain", units=40, mixed=number, of_several=9, is_chosen=False
        ),
        zero="labels are constant within domains (none of 9 with several pages holds both groups)",
        one="constant within nearly all domains (1 of 9 with several pages holds both groups)",
        two="constant within nearly all domains (2 of 9 with several pages hold both groups)",
    ),
    Case(
        note=lambda number: DocumentsNotRetrieved(run="bm25", left_out=number, documents=9),
        one="1 of 9 relevant documents, counted per query, has no retrieved version and says",
        two="2 of 9 relevant documents, counted per query, have no retrieved version and say",
    ),
    Case(
        note=lambda number: DocumentsOfSeveral(by="author", documents=number),
        one="1 document names several groups of author: it counts in equal parts",
        two="2 documents name several groups of author: they count in equal parts",
    ),
    Case(
        note=lambda number: DocumentsOutsidePool(documents=number),
        one="1 document outside the pool, so in no group: it has no twin",
        two="2 documents outside the pool, so in no group: they have no twin",
    ),
    Case(
        note=lambda number: ShareOfOnlyGroup(
            run="bm25", group="human", share=0.5, depth=number, queries=number
        ),
        one="50.0 % of the first rank (mean of 1 query)",
        two="50.0 % of the first 2 ranks (mean of 2 queries)",
    ),
    Case(
        note=lambda number: CallsUnmatched(
            unmatched=number,
            calls=9,
            first=1,
            mismatch=Mismatch(kind="other passage count", announced=number, counted=3),
            queries_left_out=("q1",) * number,
        ),
        zero="announces 0 passages and shows 3",
        one="1 call of 9 cannot be matched, counted as failed (first: call 1 announces 1 passage "
        "and shows 3); 1 query left out",
        two="announces 2 passages and shows 3); 2 queries left out",
    ),
    Case(
        note=lambda number: ErrorsThatExplain(
            run="bm25", a="human", b="llm", cutoff=number, one_kind=0.1, both_kinds=0.05
        ),
        one="more often in the first rank than in the list",
        two="more often in the first 2 ranks than in the list",
    ),
    Case(
        note=lambda number: DocumentsScored(run="bm25", documents=number, queries=number, seed=0),
        one="1 document scored for 1 query",
        two="2 documents scored for 2 queries",
    ),
    Case(
        note=lambda number: PropertiesInflated(
            run="bm25",
            source="llm",
            properties=(PropertyValue(name="words", value=12),) * number,
        ),
        one="words (12) goes together with the others (inflation), so its effect is hard to",
        two="words (12) and words (12) go together (inflation), so their effects are hard to",
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
        zero="(0 pairs of twins). All conditions of theorem 4.1 hold.",
        one="(1 pair of twins). Whether theorem 4.1 applies is open: undecided is redundancy.",
        two="(2 pairs of twins). Whether theorem 4.1 applies is open: undecided are redundancy and",
    ),
    Case(
        note=lambda number: FewQueriesEvaluated(collection="nq", queries=number),
        zero="nq: 0 queries show little",
        one="nq: 1 query shows little",
        two="nq: 2 queries show little",
    ),
    Case(
        note=lambda number: FewerQueriesRanked(
            question="AP", excluded=number, queries=9, fewest_run="bm25", fewest=9 - number
        ),
        one="1 of 9 queries left out, because it does not count for every run",
        two="2 of 9 queries left out, because they do not count for every run",
    ),
    Case(
        note=lambda number: QueriesNotInAllAudits(left_out=number, queries=9, first=("q1",)),
        one="left out: 1 of 9 queries, which is not in all audits ('q1')",
        two="left out: 2 of 9 queries that are not in all audits ('q1', …)",
    ),
    Case(
        note=lambda number: EntriesUnknown(
            run="bm25", entries=number, documents=1, first="d1", has_labels_only=False
        ),
        one="1 entry for 1 document not in the collection (first: 'd1'); it keeps its rank, in",
        two="2 entries for 1 document not in the collection (first: 'd1'); they keep their ranks",
    ),
    Case(
        note=lambda number: AnswersRead(
            stage="rankgpt",
            kinds=(Count(name="complete", number=number),),
            tokens_read=number,
            tokens_written=number,
        ),
        zero="rankgpt: 0 answers: 0 complete; 0 tokens read, 0 written",
        one="rankgpt: 1 answer: 1 complete; 1 token read, 1 written",
        two="rankgpt: 2 answers: 2 complete; 2 tokens read, 2 written",
    ),
    Case(
        note=lambda number: ListsTied(run="bm25", queries=number, total=4),
        one="1 query (25.0 %): all its scores are equal, so nothing was ranked; its documents",
        two="2 queries (50.0 %): all their scores are equal, so nothing was ranked; their documents",
    ),
    Case(
        note=lambda number: FittedQueriesLeftOut(queries=number, files=("fit.json",)),
        one="1 query left out for all runs, because fit.json learned from it",
        two="2 queries left out for all runs, because fit.json learned from them",
    ),
    Case(
        note=lambda number: LittleVariation(
            runs=("bm25",), measures=(), total=number, fixed=(Count(name="tied", number=number),)
        ),
        zero="no list contains a document of these groups",
        one="all documents have the same score in 1 of 1 list",
        two="all documents have the same score in 2 of 2 lists",
    ),
    Case(
        note=lambda number: UnevenCoverage(
            common=number, rewritten=9, lacking=(Count(name="llm", number=3),)
        ),
        one="1 of 9 rewritten documents is common to all (llm lacks 3); only this one is compared, "
        "and only its judgments count",
        two="2 of 9 rewritten documents are common to all (llm lacks 3); only these are compared, "
        "and only their judgments count",
    ),
    Case(
        note=lambda number: OnlyCommonDocuments(documents=number),
        one="only the 1 document that every source rewrote is compared, and only its judgments",
        two="only the 2 documents that every source rewrote are compared, and only their judgments",
    ),
    Case(
        note=lambda number: LabelsWorth(judge="umbrela", queries=number, effective=None),
        one="1 human query is enough for values",
        two="2 human queries are enough for values",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case.note(1)).__name__)
def test_note_agrees_with_its_number(case: Case) -> None:
    assert case.one in note_sentence(case.note(1))
    assert case.two in note_sentence(case.note(2))
    if case.zero:
        assert case.zero in note_sentence(case.note(0))


def test_words_go_with_numbers() -> None:
    assert [singular_or_plural(number, "is", "are") for number in (0, 1, 2)] == ["are", "is", "are"]
    assert share_of_all(0, 1, "query", "queries") == "0 of 1 query"
    assert share_of_all(1, 1200, "query", "queries") == "1 of 1,200 queries"
    assert [first_ranks(1), first_ranks(10)] == ["first rank", "first 10 ranks"]

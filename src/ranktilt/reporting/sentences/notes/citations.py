"""Words of the notes on answers and what they cite."""

from __future__ import annotations

from ranktilt.data.notes.citations import (
    AnswersReadAs,
    AnswersWithoutCitations,
    AnswersWithoutConsulted,
    CitedWithoutConsulting,
    FewerThanErrors,
    FewQuestions,
    NoPool,
    QueriesWithoutList,
    RanksAsLabelled,
    UnitFound,
    UnlabelledCitations,
)
from ranktilt.errors import counted
from ranktilt.reporting.sentences.notes.base import note_words


@note_words.register
def _answers_read_as(note: AnswersReadAs) -> str:
    rule = (
        "character by character"
        if note.exact_urls
        else ("without scheme, www, trailing slash, fragment and tracking parameters")
    )
    return f"answers read as {note.layout}; addresses are compared {rule}"


@note_words.register
def _unit_found(note: UnitFound) -> str:
    if note.is_chosen:
        return f"labels are taken as constant within {note.unit}, as you chose ({note.units:,})"
    if note.unit == "page" and note.of_documents:
        return "each document of the collection counts by itself"
    if note.unit == "page" and not note.of_several:
        return "no domain has several of these pages, so each page counts by itself"
    if note.unit == "page":
        return (
            f"labels differ within domains ({note.mixed:,} of {note.of_several:,} with several "
            "pages), so each page counts by itself"
        )
    if not note.of_several:
        return f"no domain has several of these pages; the {note.units:,} domains are the sample"
    several = f"of {note.of_several:,} with several pages"
    mixed = f"{note.mixed:,} {several} hold" if note.mixed else f"none {several} holds"
    return (
        f"labels are constant within domains ({mixed} both groups), so the {note.units:,} domains "
        "are the sample, not their pages"
    )


def _share(number: int, of_all: int, singular: str, plural: str) -> str:
    """Say how many of all: ``3 of 40 citations``."""
    return f"{number:,} of {counted(of_all, singular, plural)}"


@note_words.register
def _unlabelled_citations(note: UnlabelledCitations) -> str:
    share = _share(note.citations, note.of_all, "citation", "citations")
    return f"{share} are of pages without a label and count for no group"


@note_words.register
def _answers_without_citations(note: AnswersWithoutCitations) -> str:
    share = _share(note.answers, note.of_all, "answer", "answers")
    return f"{share} cite no page, and say nothing of whom the engine picks"


@note_words.register
def _cited_without_consulting(note: CitedWithoutConsulting) -> str:
    share = _share(note.citations, note.of_all, "citation", "citations")
    return f"{share} are of pages that the answer did not consult; citation rates leave them out"


@note_words.register
def _queries_without_list(note: QueriesWithoutList) -> str:
    share = _share(note.queries, note.of_all, "query", "queries")
    return f"the run has no list for {share}; their citations count as not retrieved"


@note_words.register
def _few_questions(note: FewQuestions) -> str:
    return (
        f"{counted(note.queries, 'query', 'queries')}: below 30, intervals are a little too narrow"
    )


@note_words.register
def _no_pool(note: NoPool) -> str:
    return (
        "nothing tells what could have been cited: a share of citations alone favours nobody. "
        "Name what was retrieved (--run), or use answers that list what they consulted"
    )


@note_words.register
def _ranks_as_labelled(_note: RanksAsLabelled) -> str:
    return (
        "rates by rank are by the labels as they are; the rate at equal rank is no sum of labels "
        "and is left out"
    )


@note_words.register
def _fewer_than_errors(note: FewerThanErrors) -> str:
    return (
        f"labels show no more citations of {note.group} pages than wrong labels alone would give, "
        "so 0 is printed; check that the error rates hold for these pages"
    )


@note_words.register
def _answers_without_consulted(note: AnswersWithoutConsulted) -> str:
    share = _share(note.answers, note.of_all, "answer", "answers")
    return f"{share} do not list what they consulted; citation rates are of the others"

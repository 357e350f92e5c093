"""Sentences of the notes on answers of an engine, and the pages that they cite.

A note is what a reader of the result should know: how a file was read, what was left out. An
answer consults pages and cites some of them; labels say which group a page belongs to.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

from ranktilt.auditing.effects import FEW_QUERIES
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
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural
from ranktilt.reporting.sentences.notes.base import note_words


@note_words.register
def _answers_read_as(note: AnswersReadAs) -> str:
    comparison = (
        "character by character"
        if note.exact_urls
        else "without scheme, www, trailing slash, fragment and tracking parameters"
    )
    return f"answers read as {note.layout}; addresses are compared {comparison}"


@note_words.register
def _unit_found(note: UnitFound) -> str:
    """Say what the sample consists of: domains, pages, or the values of a column.

    Pages of a domain mostly have the same label, and are not independent. So the domain is the
    unit unless too many domains with several pages are mixed, that is, hold both groups; then the
    page is.
    """
    multi_page_domains, mixed_domains = note.of_several, note.mixed
    if note.is_chosen:
        return f"labels are taken as constant within {note.unit}, as you chose ({note.units:,})"
    if note.unit == "page" and note.of_documents:
        return "each document of the collection counts by itself"
    if note.unit == "page" and not multi_page_domains:
        # Each page is a domain of its own; otherwise the domains would be the units, as below.
        return "no domain has several of these pages, so each page counts by itself"
    if note.unit == "page":
        return (
            f"labels differ within domains ({mixed_domains:,} of {multi_page_domains:,} with "
            "several pages), so each page counts by itself"
        )
    sample = f"the {counted(note.units, 'domain is', 'domains are')} the sample"
    if not multi_page_domains:
        return f"no domain has several of these pages; {sample}"
    several = f"of {multi_page_domains:,} with several pages"
    if not mixed_domains:
        within = f"within domains (none {several} holds both groups)"
    else:
        hold = singular_or_plural(mixed_domains, "holds", "hold")
        within = f"within nearly all domains ({mixed_domains:,} {several} {hold} both groups)"
    their = singular_or_plural(note.units, "its", "their")
    return f"labels are constant {within}, so {sample}, not {their} pages"


@note_words.register
def _unlabelled_citations(note: UnlabelledCitations) -> str:
    citations = share_of_all(note.citations, note.of_all, "citation", "citations")
    are_of_pages = singular_or_plural(note.citations, "is of a page", "are of pages")
    count = singular_or_plural(note.citations, "counts", "count")
    return f"{citations} {are_of_pages} without a label and {count} for no group"


@note_words.register
def _answers_without_citations(note: AnswersWithoutCitations) -> str:
    answers = share_of_all(note.answers, note.of_all, "answer", "answers")
    cite = singular_or_plural(note.answers, "cites", "cite")
    say = singular_or_plural(note.answers, "says", "say")
    return f"{answers} {cite} no page, and {say} nothing of whom the engine picks"


@note_words.register
def _cited_without_consulting(note: CitedWithoutConsulting) -> str:
    citations = share_of_all(note.citations, note.of_all, "citation", "citations")
    are_of_pages = singular_or_plural(note.citations, "is of a page", "are of pages")
    them = singular_or_plural(note.citations, "it", "them")
    return (
        f"{citations} {are_of_pages} that the answer did not consult; citation rates leave "
        f"{them} out"
    )


@note_words.register
def _queries_without_list(note: QueriesWithoutList) -> str:
    queries = share_of_all(note.queries, note.of_all, "query", "queries")
    their = singular_or_plural(note.queries, "its", "their")
    return f"the run has no list for {queries}; {their} citations count as not retrieved"


@note_words.register
def _few_questions(note: FewQuestions) -> str:
    queries = counted(note.queries, "query", "queries")
    return f"{queries}: below {FEW_QUERIES}, intervals are a little too narrow"


@note_words.register
def _no_pool(note: NoPool) -> str:
    """Say that shares of citations have no neutral value.

    It would be a group's share of the pages that could have been cited, and these are unknown.
    """
    return (
        "nothing tells what could have been cited: a share of citations alone favours nobody. "
        "Name what was retrieved (--run), or use answers that list what they consulted"
    )


@note_words.register
def _ranks_as_labelled(_note: RanksAsLabelled) -> str:
    # A correction for label errors puts what the error rates say in the place of each label, which
    # is right on average for sums of labels only.
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
    answers = share_of_all(note.answers, note.of_all, "answer", "answers")
    do_not_list = singular_or_plural(note.answers, "does not list", "do not list")
    they = singular_or_plural(note.answers, "it", "they")
    return f"{answers} {do_not_list} what {they} consulted; citation rates are of the others"

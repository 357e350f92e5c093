"""Let a language model answer queries from a run's documents, and read what it cites.

A *run* lists the documents that were retrieved for each query. A *context* is the documents that
one request shows to the model, with numbers in brackets, by which the answer cites them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from ranktilt.citing.making.reading import check_cited_answer, read_citations
from ranktilt.citing.making.requests import AnswerRequests, GroupChoice, prepare_answers
from ranktilt.citing.making.session import DOCUMENT_SCHEMA, AnswerSession, SessionCounts
from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.citing.making.tables import CitedAnswer, answers_of, document_table, text_table
from ranktilt.citing.making.twins import Pair
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.generation.batched_requests import (
    FLAGGED,
    Rejected,
    RoundConfig,
    RoundOutcome,
    ask_until_accepted,
    shortened_lines,
)
from ranktilt.generation.generated import spec_of
from ranktilt.llm.base import LLM
from ranktilt.llm.journal import Journal, journal_of


def make_answers(
    collection: Collection,
    llm: LLM,
    run: Run,
    making: AnswerMaking | None = None,
    *,
    by: str = "source",
    pair: Pair | None = None,
    reference: str | None = None,
    journal: Journal | None = None,
) -> AnswerSession:
    """Let a language model answer a run's queries from its documents, with citations.

    Each request shows the first documents of a query's list with numbers in brackets. Each answer
    goes into the journal first, so you never pay twice for an interrupted call. Citations are read
    strictly: numbers that no document has, and numbers in passages that repeat the prompt, are
    counted but are no citations.

    Parameters
    ----------
    collection : Collection
        Documents and queries.
    llm : LLM
        The model, such as ``ranktilt.llm.base.llm("openai:NAME")``.
    run : Run
        The documents that were retrieved for each query.
    making : AnswerMaking, optional
        Prompt, size and order of the context, repeats, twins and labels.
    by : str, optional
        Column of the documents' groups.
    pair : (str, str), optional
        The two groups whose versions of a document are compared (twins), or whose labels are
        swapped; needed if there are more than two groups.
    reference : str, optional
        Group that comes second if no pair is named; ``human`` by default.
    journal : Journal, optional
        Where answers are kept, and earlier ones are taken from; by default the model's own journal
        in the cache.

    Returns
    -------
    AnswerSession
        The answers that `cite` audits, and what became of the requests.

    Raises
    ------
    UserError
        If the settings do not fit the collection, no query has a document to show, or the model
        cannot be asked; answers until then are kept.
    """
    choice = GroupChoice(by=by, pair=pair, reference=reference)
    requests = prepare_answers(collection, llm, run, making, choice=choice)
    llm.check()
    # Generation may write texts under several names, each with its sampling; here is one.
    ((model, sampling),) = requests.sources.items()
    # On leaving, the file of the journal is closed; a caller's journal opens it again on use.
    with journal_of(llm) if journal is None else journal as open_journal:
        config = RoundConfig(
            llm=llm,
            journal=open_journal,
            sampling=sampling,
            template=requests.template,
            check=check_cited_answer,
            attempts=requests.settings.attempts,
            truncate=True,
            shorten=shortened_lines,
            part="answer",  # of a document, generation asks for the text or the title
            label=f"answering as {model}",
        )
        outcome = ask_until_accepted(config, requests.tasks)
    answers = _cited_answers(requests, outcome)
    documents = document_table(requests, collection, answers)
    messages = dict.fromkeys(rejected.message for rejected in outcome.rejected if rejected.message)
    return AnswerSession(
        model=model,
        collection=collection,
        run=run,
        making=requests.settings,
        pair=requests.pair,
        answers=answers_of(requests, documents, answers),
        documents=documents.select(*DOCUMENT_SCHEMA),
        texts=text_table(answers),
        counts=_counts(requests, outcome, answers),
        messages=tuple(messages),
        spec=_spec(spec_of(llm, requests, collection), requests, run, by),
    )


def _cited_answers(requests: AnswerRequests, outcome: RoundOutcome) -> list[CitedAnswer]:
    """Return each answer with its citations, in the order of the requests."""
    answers = []
    for row, text in sorted(outcome.accepted.items()):
        task, context = requests.tasks[row], requests.contexts.contexts[row]
        prompt = requests.template.render(task.text, task.title)
        citations = read_citations(text, prompt, len(context.rows))
        answers.append(CitedAnswer(context=context, text=text, citations=citations))
    return answers


def _counts(
    requests: AnswerRequests, outcome: RoundOutcome, answers: Sequence[CitedAnswer]
) -> SessionCounts:
    """Count requests by outcome, and numbers in answers that are no citations."""
    records = pl.concat(outcome.records)
    is_accepted = pl.col("flags").list.len() == 0
    cut_off = records.filter(is_accepted & (pl.col("finish") == "length")).height
    totals = records.select("fresh", "prompt_tokens", "completion_tokens").sum()
    fresh, prompt_tokens, completion_tokens = map(int, totals.row(0))
    outside = [answer.citations.outside for answer in answers]
    quoted = [answer.citations.quoted for answer in answers]
    # Answers with at least one such number.
    answers_outside, answers_quoting = (sum(map(bool, counts)) for counts in (outside, quoted))
    without_citations = sum(not answer.citations.positions for answer in answers)
    other_form = sum(answer.citations.other_form for answer in answers)
    cut_prompts = outcome.cut_lengths.keys() & outcome.accepted.keys()
    reasons = sorted(Counter(map(_reason, outcome.rejected)).items())
    return SessionCounts(
        queries=len(requests.contexts.ranked),
        requests=len(requests.tasks),
        answers=len(answers),
        rejected=dict(reasons),
        fresh=fresh,
        without_citations=without_citations,
        outside=sum(outside),
        answers_outside=answers_outside,
        quoted=sum(quoted),
        answers_quoting=answers_quoting,
        other_form=other_form,
        cut_off=cut_off,
        cut_prompts=len(cut_prompts),
        left_out=requests.contexts.left_out,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
    )


def _reason(rejected: Rejected) -> str:
    """Return why a request has no answer; if a check refused its answer, the check's first flag."""
    return rejected.flags[0] if rejected.reason == FLAGGED else rejected.reason


def _spec(spec: dict[str, Any], requests: AnswerRequests, run: Run, by: str) -> dict[str, Any]:
    """Add the settings of answers to `spec`, which has those of every generation."""
    making = requests.settings
    inputs = [{"path": path, "sha256": digest} for path, digest in spec["inputs"].items()]
    return {
        **spec,
        "inputs": inputs,
        "run": run.name,
        "context": making.context,
        "order": making.order,
        "order_seed": making.order_seed,
        "repeats": making.repeats,
        "twins": making.has_twins,
        "draws_versions": making.draws_versions,
        "shown_labels": list(making.shown_labels),
        "by": by,
        "text": making.text,
    }

"""Let a language model answer queries from a run's documents, and read what it cites."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl

from ranktilt.citing.making.made import SHOWN_SCHEMA, MadeAnswers, MadeCounts
from ranktilt.citing.making.reading import CitationsRead, check_cited_answer, read_citations
from ranktilt.citing.making.requests import AnswerRequests, GroupChoice, prepare_answers
from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.citing.making.twins import Pair
from ranktilt.data.answers import ANSWER_SCHEMA, PAGE_SCHEMA, Answers
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.generation.batched_requests import (
    FLAGGED,
    Rejected,
    RoundConfig,
    RoundOutcome,
    ask_until_accepted,
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
) -> MadeAnswers:
    """Let a language model answer a run's queries from its documents, with citations.

    Each request shows the first documents of a query's list with numbers in brackets. Each answer
    goes into the journal first, so you never pay twice for an interrupted call. Citations are read
    strictly (`read_citations`): numbers that no document has, and numbers in passages that repeat
    the prompt, are counted and cite nothing.

    Parameters
    ----------
    collection : Collection
        Documents and queries.
    llm : LLM
        The model, such as ``ranktilt.llm.base.llm("openai:NAME")``.
    run : Run
        Which documents each query retrieves.
    making : AnswerMaking, optional
        Prompt, size and order of the context, repeats, twins and labels.
    by : str, optional
        Column of the documents' groups.
    pair : (str, str), optional
        The two groups whose versions are twins, or whose labels are swapped; needed where there
        are more than two.
    reference : str, optional
        Group that comes second where no pair is named; ``human`` by default.
    journal : Journal, optional
        Earlier answers; by default the model's journal in the cache.

    Returns
    -------
    MadeAnswers
        The answers that `cite` audits, and what became of the requests.

    Raises
    ------
    UserError
        As `prepare_answers` does, or if the model cannot be asked; answers until then are kept.
    """
    choice = GroupChoice(by=by, pair=pair, reference=reference)
    requests = prepare_answers(collection, llm, run, making, choice=choice)
    llm.check()
    ((model, sampling),) = requests.sources.items()
    with journal_of(llm) if journal is None else journal as known:
        config = RoundConfig(
            llm=llm,
            journal=known,
            sampling=sampling,
            template=requests.template,
            check=check_cited_answer,
            attempts=requests.settings.attempts,
            part="answer",
            label=f"answering as {model}",
        )
        outcome = ask_until_accepted(config, requests.tasks)
    answers = _accepted(requests, outcome)
    shown = _shown(requests, collection, answers)
    messages = dict.fromkeys(rejected.message for rejected in outcome.rejected if rejected.message)
    return MadeAnswers(
        model=model,
        collection=collection,
        run=run,
        making=requests.settings,
        pair=requests.pair,
        answers=_answers(requests, shown, answers),
        shown=shown.drop("cited_words", "retrieval_rank"),
        texts=_texts(answers),
        counts=_counts(requests, outcome, answers),
        messages=tuple(messages),
        spec=_spec(spec_of(llm, requests, collection), requests, run, by),
    )


_Accepted = list[tuple[int, str, CitationsRead]]
"""Row of the request, answer and citations of each request with an answer."""


def _accepted(requests: AnswerRequests, outcome: RoundOutcome) -> _Accepted:
    """Read the citations of each answer, in the order of the requests."""
    answers = []
    for row, text in sorted(outcome.accepted.items()):
        task = requests.tasks[row]
        prompt = requests.template.render(task.text, task.title)
        count = len(requests.contexts.contexts[row].rows)
        answers.append((row, text, read_citations(text, prompt, count)))
    return answers


def _shown(requests: AnswerRequests, collection: Collection, answers: _Accepted) -> pl.DataFrame:
    """Return a row for each document of each answer's context."""
    columns: dict[str, list[Any]] = {name: [] for name in SHOWN_SCHEMA}
    columns |= {"cited_words": [], "retrieval_rank": []}
    rows = list[int]()
    for number, (row, _text, citations) in enumerate(answers):
        context = requests.contexts.contexts[row]
        size = len(context.rows)
        ranks = {position: rank for rank, position in enumerate(citations.positions, start=1)}
        ranked = requests.contexts.ranked[context.query]
        retrieval_ranks = {document: rank for rank, document in enumerate(ranked, start=1)}
        positions = range(1, size + 1)
        rows += context.rows
        columns["answer"] += [number] * size
        columns["query"] += [context.query] * size
        columns["repeat"] += [context.repeat] * size
        columns["is_swapped"] += [context.is_swapped] * size
        columns["shown_label"] += [context.shown_label] * size
        columns["position"] += positions
        columns["citation_rank"] += [ranks.get(position) for position in positions]
        words = citations.cited_words
        columns["cited_words"] += [words.get(position) if words else None for position in positions]
        columns["retrieval_rank"] += [retrieval_ranks[document] for document in context.rows]
    columns["id"] = collection.ids.gather(rows).to_list()
    columns["origin"] = collection.docs["origin"].gather(rows).to_list()
    columns["group"] = requests.groups.gather(rows).to_list()
    schema = {**SHOWN_SCHEMA, "cited_words": pl.Float64(), "retrieval_rank": pl.Int64()}
    return pl.DataFrame({name: columns[name] for name in schema}, schema=schema)


def _answers(requests: AnswerRequests, shown: pl.DataFrame, answers: _Accepted) -> Answers:
    """Return what `cite` audits; both versions of a document were not retrieved at a rank."""
    is_ranked = not requests.settings.has_twins
    contexts = [requests.contexts.contexts[row] for row, _text, _citations in answers]
    records = {
        "query": [context.query for context in contexts],
        "repeat": [
            repeat_name(context.repeat, context.shown_label, is_swapped=context.is_swapped)
            for context in contexts
        ],
        "has_consulted": [True] * len(contexts),
        "has_retrieved": [is_ranked] * len(contexts),
    }
    rank = pl.col("retrieval_rank") if is_ranked else pl.lit(None, dtype=pl.Int64)
    pages = shown.select(
        "answer",
        "citation_rank",
        "cited_words",
        page="id",
        is_consulted=pl.lit(True),
        retrieval_rank=rank,
    )
    return Answers(
        answers=pl.DataFrame(records, schema=ANSWER_SCHEMA),
        pages=pages.select(*PAGE_SCHEMA),
        spec={"exact_urls": True},
    )


def repeat_name(repeat: int, shown_label: str, *, is_swapped: bool) -> str:
    """Name an answer among those to its query: ``1``, or ``1, true label, exchanged``."""
    parts = [str(repeat)]
    if shown_label != "none":
        parts.append(f"{shown_label} label")
    if is_swapped:
        parts.append("exchanged")
    return ", ".join(parts)


def _texts(answers: _Accepted) -> pl.DataFrame:
    rows = [
        (number, text, citations.outside, citations.quoted)
        for number, (_row, text, citations) in enumerate(answers)
    ]
    schema = {
        "answer": pl.Int64(),
        "text": pl.String(),
        "outside": pl.Int64(),
        "quoted": pl.Int64(),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _counts(requests: AnswerRequests, outcome: RoundOutcome, answers: _Accepted) -> MadeCounts:
    records = pl.concat(outcome.records)
    accepted = records.filter(pl.col("flags").list.len() == 0)
    citations = [citations for _row, _text, citations in answers]
    contexts = requests.contexts
    return MadeCounts(
        queries=len(contexts.ranked),
        requests=len(requests.tasks),
        answers=len(answers),
        rejected=dict(sorted(Counter(map(_reason, outcome.rejected)).items())),
        fresh=int(records["fresh"].sum()),
        without_citations=sum(not read.positions for read in citations),
        outside=sum(read.outside for read in citations),
        answers_outside=sum(read.outside > 0 for read in citations),
        quoted=sum(read.quoted for read in citations),
        answers_quoting=sum(read.quoted > 0 for read in citations),
        other_form=sum(read.other_form for read in citations),
        cut_off=int((accepted["finish"] == "length").sum()),
        without_text=contexts.without_text,
        without_documents=contexts.without_documents,
        unknown_documents=contexts.unknown_documents,
        prompt_tokens=int(records["prompt_tokens"].sum()),
        completion_tokens=int(records["completion_tokens"].sum()),
    )


def _reason(rejected: Rejected) -> str:
    return rejected.flags[0] if rejected.reason == FLAGGED else rejected.reason


def _spec(spec: dict[str, Any], requests: AnswerRequests, run: Run, by: str) -> dict[str, Any]:
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
        "shown_labels": list(making.shown_labels),
        "by": by,
        "text": making.text,
    }

"""Documents that a language model writes from queries, to train a ranker or to be ranked.

The model's answer to a query becomes a document of the new collection. A *source* is the author of
documents: here the model, or the model at one temperature where there are several. A *task* is one
document to write; there may be several for one query. An answer that passes the checks is
*accepted*. The *journal* is the file that keeps all answers of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.generation.batched_requests import (
    GenerationInputs,
    GenerationTask,
    RoundConfig,
    ask_until_accepted,
    model_name,
)
from ranktilt.generation.checks import check_answer
from ranktilt.generation.generated import Generated, answers_of, left_out_of, spec_of, summaries
from ranktilt.generation.settings import Answering
from ranktilt.generation.templates import answer_template
from ranktilt.llm.base import LLM
from ranktilt.llm.journal import Journal, journal_of

HUMAN = "human"
"""Source of documents by people, whose name no new source may have."""
_ANSWER_TOKENS = 200
"""Expected tokens of an answer, by which a price is estimated before anything is asked."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerInputs(GenerationInputs):
    """The requests for documents from queries."""

    settings: Answering
    """How queries are answered."""
    queries: pl.DataFrame
    """Queries to answer, each with `settings.n` documents."""
    ids: Mapping[str, pl.Series]
    """Ids of the documents, by source; those of one query follow each other."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnsweredQueries(Generated):
    """Documents that a language model wrote from queries, as a collection.

    A document's `origin` is its own id, because it was made from no other document. ``query_id`` is
    the id of the query it was written from. Further columns of queries, such as a domain, are
    copied to their documents. Nobody graded the documents: each counts as relevant, with grade 1,
    to its query.
    """


def prepare_answers(collection: Collection, llm: LLM, answering: Answering) -> AnswerInputs:
    """Prepare the requests for the judged queries, or for all queries if nothing is judged.

    Nothing is sent yet.

    Raises
    ------
    UserError
        If there is no query, a query has no text, the new source is called ``"human"``, or an id
        holds a sign that a file of judgments cannot hold.
    """
    # These are all queries if nothing is judged.
    queries = collection.queries_with_judgments.head(answering.first or collection.queries.height)
    if not queries.height:
        raise UserError("there is no query to write a document for")
    blank = queries.filter(pl.col("text").str.strip_chars() == "")
    if blank.height:
        raise UserError(f"query {blank['id'][0]!r} has no text to write a document for")
    sources = {}
    for temperature in answering.temperatures:
        sources[_source_name(llm, temperature, answering)] = answering.sampling(temperature)
    if HUMAN in sources:
        raise UserError(
            f"source {HUMAN!r} is reserved for documents by people; choose another name"
        )
    ids = {source: _document_ids(queries["id"], source, answering.n) for source in sources}
    tasks = list[GenerationTask]()
    for text in queries["text"]:
        for index in range(answering.n):
            tasks.append(GenerationTask(row=len(tasks), text=text, title="", answer_index=index))
    return AnswerInputs(
        settings=answering,
        template=answer_template(answering.prompt),
        sources=sources,
        tasks=tuple(tasks),
        text_count=len(tasks),
        answer_tokens=_ANSWER_TOKENS,
        queries=queries,
        ids=ids,
    )


def _source_name(llm: LLM, temperature: float, answering: Answering) -> str:
    """Name the source of a temperature, such as ``gpt-4-tmp0.2`` where there are several."""
    if answering.source:
        return answering.source
    if len(answering.temperatures) == 1:
        return model_name(llm)
    return f"{model_name(llm)}-tmp{float(temperature)}"


def _document_ids(query_ids: pl.Series, source: str, count: int) -> pl.Series:
    """Name the documents of a source, `count` for each query."""
    document_ids = []
    for query_id in query_ids:
        for number in range(1, count + 1):
            document_id = f"{query_id}-{source}-{number}"
            if any(sign in document_id for sign in "\t\r\n"):
                raise UserError(
                    f"id {document_id!r} has a tab or line end in it, which a qrels file cannot "
                    "hold"
                )
            document_ids.append(document_id)
    return pl.Series("id", document_ids)


def answer(
    collection: Collection,
    llm: LLM,
    answering: Answering | None = None,
    *,
    journal: Journal | None = None,
) -> AnsweredQueries:
    """Write documents from queries with a language model.

    Each answer goes into the journal first, so you never pay twice for an interrupted call.
    Wrappers such as "Sure, here is …" are removed. If an answer fails a check, another one is
    requested, up to ``answering.attempts``. A prompt contains the query and nothing else: no
    document, no judgment. Askari et al. make training data in this way (A Test Collection of
    Synthetic Documents for Training Rankers, CIKM 2023).

    Parameters
    ----------
    collection : Collection
        Its queries with a judgment are answered, or all if nothing is judged.
        `ranktilt.data.queries.read_queries` reads a collection of queries alone.
    llm : LLM
        The model, such as ``ranktilt.llm.base.llm("openai:NAME")``.
    answering : Answering, optional
        Prompt, temperatures, number of documents, ….
    journal : Journal, optional
        Earlier answers; by default the model's journal in the cache.

    Returns
    -------
    AnsweredQueries
        `unanswered` is the number of documents that the same call would request again.

    Raises
    ------
    UserError
        If a query cannot be answered or the documents cannot be named (see `prepare_answers`), or
        if the model cannot be asked. Answers that came before the error are in the journal.
    """
    inputs = prepare_answers(collection, llm, answering or Answering())
    llm.check()
    spec = {
        **spec_of(llm, inputs, collection),
        "n": inputs.settings.n,
        "qrels": (
            "made: each document is relevant to the query it was written from; nobody judged it"
        ),
    }
    outcomes = {}
    journal = journal_of(llm) if journal is None else journal
    with journal:  # A closed journal opens again when it is used next.
        for source, sampling in inputs.sources.items():
            config = RoundConfig(
                llm=llm,
                journal=journal,
                sampling=sampling,
                template=inputs.template,
                check=check_answer,
                attempts=inputs.settings.attempts,
                label=f"writing as {source}",
            )
            outcomes[source] = ask_until_accepted(config, inputs.tasks)
    docs = pl.concat(
        _documents(llm, inputs, source, outcome.accepted) for source, outcome in outcomes.items()
    )
    qrels = docs.select("query_id", doc_id="id", grade=pl.lit(1, dtype=pl.Int32))
    answered = Collection(
        docs=docs,
        queries=inputs.queries,
        qrels=qrels,
        spec={**spec["collection"], "answer": spec},
    )
    return AnsweredQueries(
        collection=answered,
        left_out=left_out_of(outcomes, inputs.ids),
        answers=answers_of(outcomes, inputs.ids),
        summaries=summaries(inputs, outcomes),
        spec=spec,
    )


def _documents(
    llm: LLM, inputs: AnswerInputs, source: str, answers: Mapping[int, str]
) -> pl.DataFrame:
    """Return the documents of a source, with the columns of their queries.

    `answers` are the accepted ones, by the row of their task.
    """
    rows = sorted(answers)
    # Each query has `n` tasks in a row.
    queries = inputs.queries[[row // inputs.settings.n for row in rows]]
    ids, query_ids = inputs.ids[source].gather(rows), queries["id"]
    texts = [answers[row] for row in rows]
    temperature = inputs.sources[source].temperature
    columns: dict[str, pl.Expr | pl.Series] = {
        "id": ids,
        "title": pl.lit(""),
        "text": pl.Series(texts, dtype=pl.String),
        "source": pl.lit(source),
        "origin": ids,
        "query_id": query_ids,
        "model": pl.lit(llm.name),
        "temperature": pl.lit(temperature, dtype=pl.Float64),
        "prompt": pl.lit(inputs.template.name),
    }
    # Columns of type Binary hold raw JSON (see `Collection`), which stays with the queries.
    return queries.drop("text").select(pl.exclude(pl.Binary)).with_columns(**columns)

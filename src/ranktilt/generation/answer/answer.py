"""Documents from queries by a language model: training data for a ranker, or documents to rank."""

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
"""Name that no written source may have."""
_ANSWER_TOKENS = 200
"""Expected tokens of an answer, by which a price is estimated before anything is asked."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerInputs(GenerationInputs):
    """The requests for documents from queries."""

    settings: Answering
    """How queries are answered."""
    queries: pl.DataFrame
    """Queries to answer, `settings.n` times each."""
    ids: Mapping[str, pl.Series]
    """Ids of the documents, by source."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnsweredQueries(Generated):
    """Documents that a language model wrote from queries, as a collection.

    A document's `origin` is its id, because it was made of no other document. ``query_id`` is its
    query, whose further columns, such as a domain, the document has too. The judgments are made,
    not judged: each document is relevant, grade 1, to its query.
    """


def prepare_answers(collection: Collection, llm: LLM, answering: Answering) -> AnswerInputs:
    """Prepare the requests for the judged queries, or for all if nothing is judged.

    Nothing is asked yet.

    Raises
    ------
    UserError
        If there is no query, or one without text; for the source ``"human"``; for ids that no file
        of judgments could hold.
    """
    queries = collection.queries_with_judgments.head(answering.first or collection.queries.height)
    if not queries.height:
        raise UserError("there is no query to write a document for")
    blank = queries.filter(pl.col("text").str.strip_chars() == "")
    if blank.height:
        raise UserError(f"query {blank['id'][0]!r} has no text to write a document for")
    sources = {}
    for temperature in answering.temperatures:
        sources[_source(llm, temperature, answering)] = answering.sampling(temperature)
    if HUMAN in sources:
        raise UserError(
            f"source {HUMAN!r} is reserved for documents by people; choose another name"
        )
    ids = {source: _ids(queries["id"], source, answering.n) for source in sources}
    tasks = list[GenerationTask]()
    for text in queries["text"]:
        for draw in range(answering.n):
            tasks.append(GenerationTask(row=len(tasks), text=text, title="", draw=draw))
    return AnswerInputs(
        settings=answering,
        template=answer_template(answering.prompt),
        sources=sources,
        tasks=tuple(tasks),
        chosen=len(tasks),
        answer_tokens=_ANSWER_TOKENS,
        queries=queries,
        ids=ids,
    )


def _source(llm: LLM, temperature: float, answering: Answering) -> str:
    """Name the source of a temperature."""
    if answering.source:
        return answering.source
    has_several = len(answering.temperatures) > 1
    return model_name(llm) + (f"-tmp{float(temperature)!r}" if has_several else "")


def _ids(queries: pl.Series, source: str, count: int) -> pl.Series:
    """Name the documents of a source, `count` for each query."""
    names = []
    for query in queries:
        for draw in range(count):
            name = f"{query}-{source}-{draw + 1}"
            if any(sign in name for sign in "\t\r\n"):
                raise UserError(
                    f"id {name!r} has a tab or line end in it, which a qrels file cannot hold"
                )
            names.append(name)
    return pl.Series("id", names)


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
    document, no judgment. Askari et al., A Test Collection of Synthetic Documents for Training
    Rankers, CIKM 2023.

    Parameters
    ----------
    collection : Collection
        Its queries with a judgment are answered, or all if nothing is judged; queries alone are
        read by `ranktilt.data.queries.read_queries`.
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
        As in `prepare_answers`, or if the model cannot be asked; answers until then are in the
        journal.
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
    with journal_of(llm) if journal is None else journal as known:
        for source, sampling in inputs.sources.items():
            config = RoundConfig(
                llm=llm,
                journal=known,
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
    return AnsweredQueries(
        collection=Collection(docs, inputs.queries, qrels, {**spec["collection"], "answer": spec}),
        left_out=left_out_of(outcomes, inputs.ids),
        answers=answers_of(outcomes, inputs.ids),
        summaries=summaries(inputs, outcomes),
        spec=spec,
    )


def _documents(
    llm: LLM, inputs: AnswerInputs, source: str, answers: Mapping[int, str]
) -> pl.DataFrame:
    """Return the documents of a source, with the columns of their queries."""
    rows = sorted(answers)
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
    return queries.drop("text").select(pl.exclude(pl.Binary)).with_columns(**columns)

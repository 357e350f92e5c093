"""Documents written from queries by a language model: training data for a ranker, or documents to rank."""

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
_ANSWER_TOKENS = 200


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerInputs(GenerationInputs):
    """What will be asked: `queries`, each `settings.n` times; `ids` of the documents, by source."""

    settings: Answering
    queries: pl.DataFrame
    ids: Mapping[str, pl.Series]


@dataclass(frozen=True, eq=False, kw_only=True)
class AnsweredQueries(Generated):
    """Documents that a language model wrote from queries, as a collection.

    A document's `origin` is its own id, because it was made of no other document; ``query_id`` is
    its query, and what else is known of that, such as a domain, is known of the document. The
    judgments are made, not judged: each document is relevant, grade 1, to its query.
    """


def prepare_answers(collection: Collection, llm: LLM, answering: Answering) -> AnswerInputs:
    """Settle what is asked of the judged queries, or of all where nothing is judged; nothing is asked yet.

    Refused: no query, one without text, the source ``"human"``, ids that no file of judgments could
    hold.
    """
    queries = collection.queries_with_judgments.head(answering.first or collection.queries.height)
    if not queries.height:
        raise UserError("there is no query to write a document for")
    blank = queries.filter(pl.col("text").str.strip_chars() == "")
    if blank.height:
        raise UserError(f"query {blank['id'][0]!r} has no text to write a document for")
    named = len(answering.temperatures) > 1
    sources = {
        answering.source
        or model_name(llm) + (f"-tmp{float(t)!r}" if named else ""): answering.sampling(t)
        for t in answering.temperatures
    }
    if HUMAN in sources:
        raise UserError(
            f"source {HUMAN!r} is reserved for documents by people; choose another name"
        )
    numbers = [(name, draw) for name in queries["id"] for draw in range(answering.n)]
    ids = {
        one: pl.Series("id", [f"{name}-{one}-{draw + 1}" for name, draw in numbers])
        for one in sources
    }
    strange = next(
        (name for one in ids.values() for name in one if any(end in name for end in "\t\r\n")), None
    )
    if strange is not None:
        raise UserError(
            f"id {strange!r} has a tab or line end in it, which a qrels file cannot hold"
        )
    texts = [text for text in queries["text"] for _ in range(answering.n)]
    tasks = [
        GenerationTask(row, text, "", draw)
        for row, (text, (_, draw)) in enumerate(zip(texts, numbers, strict=True))
    ]
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


def answer(
    collection: Collection,
    llm: LLM,
    answering: Answering | None = None,
    *,
    journal: Journal | None = None,
) -> AnsweredQueries:
    """Write documents from queries with a language model.

    Each answer is in the journal before it counts, so that an interrupted call costs nothing twice.
    Wrappers such as "Sure, here is …" are removed; an answer that fails a check is asked for again,
    up to ``answering.attempts``. A prompt holds the query and nothing else: no document, no
    judgment.

    The queries are those with a judgment, or all where nothing is judged; queries alone are read by
    `ranktilt.data.queries.read_queries`. `journal` holds what was answered before (by default
    the model's own, in the cache), and `unanswered` of the result says for how many documents the
    same call would ask again. `UserError` as of `prepare_answers`, or if the model cannot be asked;
    what was answered until then is kept.

    Askari et al., A Test Collection of Synthetic Documents for Training Rankers, CIKM 2023.
    """
    inputs = prepare_answers(collection, llm, answering or Answering())
    llm.check()
    spec = {
        **spec_of(llm, inputs, collection),
        "n": inputs.settings.n,
        "qrels": "made: each document is relevant to the query it was written from; nobody judged it",
    }
    with journal_of(llm) if journal is None else journal as kept:
        found = {
            name: ask_until_accepted(
                RoundConfig(
                    llm,
                    kept,
                    sampling,
                    inputs.template,
                    check_answer,
                    inputs.settings.attempts,
                    label=f"writing as {name}",
                ),
                inputs.tasks,
            )
            for name, sampling in inputs.sources.items()
        }
    docs = pl.concat([_documents(llm, inputs, name, one.accepted) for name, one in found.items()])
    qrels = docs.select("query_id", doc_id="id", grade=pl.lit(1, dtype=pl.Int32))
    made = Collection(docs, inputs.queries, qrels, {**spec["collection"], "answer": spec})
    return AnsweredQueries(
        collection=made,
        left_out=left_out_of(found, inputs.ids),
        answers=answers_of(found, inputs.ids),
        made=summaries(inputs, found),
        spec=spec,
    )


def _documents(
    llm: LLM, inputs: AnswerInputs, source: str, answers: Mapping[int, str]
) -> pl.DataFrame:
    """The documents of a source, with what is known of their queries."""
    rows = sorted(answers)
    queries = inputs.queries[[row // inputs.settings.n for row in rows]]
    ids = inputs.ids[source].gather(rows)
    made: dict[str, pl.Expr | pl.Series] = {
        "id": ids,
        "title": pl.lit(""),
        "text": pl.Series([answers[row] for row in rows], dtype=pl.String),
        "source": pl.lit(source),
        "origin": ids,
        "query_id": queries["id"],
        "model": pl.lit(llm.name),
        "temperature": pl.lit(inputs.sources[source].temperature, dtype=pl.Float64),
        "prompt": pl.lit(inputs.template.name),
    }
    return queries.drop("text").select(pl.exclude(pl.Binary)).with_columns(**made)

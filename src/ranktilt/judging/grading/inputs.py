"""Prepare the requests to a judge: pairs of query and document, and the prompt.

A judge is a language model that grades how relevant a document is to a query. A request is about
one pair; each pair is asked about as often as there are *repeats*.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, collection_rows
from ranktilt.errors import UserError
from ranktilt.generation.batched_requests import (
    EMPTY,
    GenerationInputs,
    GenerationTask,
    Rejected,
    model_name,
)
from ranktilt.generation.templates import PromptTemplate
from ranktilt.judging.grading.settings import Grading
from ranktilt.llm.base import LLM
from ranktilt.llm.prompts import find_prompt
from ranktilt.rankers.base import cut

GRADE_PROMPTS = {
    "umbrela": "as published: Upadhyay et al., UMBRELA (arXiv 2406.06519), "
    "after Thomas et al. (SIGIR 2024)",
    "basic": "ours: the four grades, one line each, and a digit as the answer",
    "rubric": "ours, after criteria of Farzi and Dietz (2025): four criteria, then a grade, "
    "as JSON",
}
"""Prompts that come with RankTilt, by name; each with a note on who wrote it."""
GRADE_SLOTS = ("passage", "query")
"""Placeholders of a prompt: ``{passage}`` and ``{query}``, which a request fills in."""
_ANSWER_TOKENS = {"umbrela": 8, "basic": 2, "rubric": 40}
"""Most tokens of an answer, by prompt."""
_OTHER_ANSWER_TOKENS = 20
"""Most tokens of an answer to a user's prompt."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GradingInputs(GenerationInputs):
    """The requests to a judge, in an order that the seed shuffles.

    A task is a request. The tasks of pair ``n`` have the rows from ``n * repeats`` on.
    """

    noun: ClassVar[str] = "pair"
    """Word for what is asked about, in sentences."""
    answer_noun: ClassVar[str] = "an answer"
    """Word for what the model gives."""

    settings: Grading
    """Options of the grading."""
    pairs: pl.DataFrame
    """Pairs to grade: ``query_id`` and ``doc_id``."""
    without_text: int = 0
    """Number of pairs of the runs or judgments whose query or document the collection lacks."""


def prepare_grades(
    collection: Collection, llm: LLM, grading: Grading | None = None, *, runs: Iterable[Run] = ()
) -> GradingInputs:
    """Prepare the requests to a judge, without asking it yet.

    Pairs are the top `grading.pool` of each run for each query, or without runs those that the
    collection judges. Requests are shuffled by ``grading.seed`` (0 where none is given): if a
    server answers differently after a while, no query is affected more than others. `UserError` if
    no pair has a text to grade. `grade` explains the parameters.
    """
    grading = grading or Grading()
    template, runs = grade_template(grading.prompt), list(runs)
    wanted_pairs = collection.qrels.select("query_id", "doc_id")
    if runs:
        wanted_pairs = _pooled_pairs(collection, runs, grading.pool)
    known_pairs = _with_texts(wanted_pairs, collection, grading)
    if not known_pairs.height:
        origin = "the runs" if runs else "the judgments"
        raise UserError(f"no pair to grade: {origin} name no query and document of this collection")
    pairs = known_pairs.head(grading.first or known_pairs.height)
    tasks, rejected = list[GenerationTask](), list[Rejected]()
    for index, (text, query) in enumerate(pairs.select("text", "query").iter_rows()):
        rows = range(index * grading.repeats, (index + 1) * grading.repeats)
        if text.strip() and query.strip():
            # Repeats of a pair have the same prompt; `answer_index` makes them different requests.
            # Tasks of generation have a title where these have a query.
            for repeat, row in enumerate(rows):
                tasks.append(GenerationTask(row=row, text=text, title=query, answer_index=repeat))
        else:
            rejected += map(_empty_request, rows)
    order = np.random.default_rng(grading.seed or 0).permutation(len(tasks))
    judge = grading.source or f"{template.name}-{model_name(llm)}"
    answer_tokens = _ANSWER_TOKENS.get(str(grading.prompt), _OTHER_ANSWER_TOKENS)
    return GradingInputs(
        settings=grading,
        template=template,
        sources={judge: grading.sampling(*grading.temperatures)},
        tasks=tuple(tasks[number] for number in order),
        rejected=tuple(rejected),
        text_count=pairs.height,
        answer_tokens=answer_tokens,
        pairs=pairs.select("query_id", "doc_id"),
        without_text=wanted_pairs.height - known_pairs.height,
    )


def _with_texts(pairs: pl.DataFrame, collection: Collection, grading: Grading) -> pl.DataFrame:
    """Return the pairs whose query and document the collection holds, with both texts.

    They are in the order of the collection's queries and documents.
    """
    texts = pl.DataFrame(
        {"doc_id": collection.ids, "text": collection.texts(grading.text)}
    ).with_row_index("doc")
    queries = collection.queries.select(query_id="id", query="text").with_row_index("order")
    return pairs.join(queries, on="query_id").join(texts, on="doc_id").sort("order", "doc")


def _empty_request(row: int) -> Rejected:
    """Return the rejection of a request whose query or document has no text."""
    return Rejected(row=row, part="grade", reason=EMPTY, flags=(), attempts=0, message="")


def grade_template(name: str | Path) -> PromptTemplate:
    """Find a prompt for grades by its name, or read it from a UTF-8 file.

    The file has ``{query}`` and ``{passage}``.
    """
    prompt = find_prompt(name, tuple(GRADE_PROMPTS), "ranktilt.judging", slot="passage")
    location = "" if name in GRADE_PROMPTS else prompt.location
    template = PromptTemplate(name=prompt.name, text=prompt.text, path=location, slots=GRADE_SLOTS)
    if "query" not in template.fields:
        raise UserError(
            f"{location}: expected {{query}}, where the query's text goes, and found none"
        )
    return template


def _pooled_pairs(collection: Collection, runs: Iterable[Run], depth: int) -> pl.DataFrame:
    """Return the pairs of each query and its best `depth` documents in any run.

    Where documents tie at the last rank, the collection's tie keys decide. Versions of one document
    share a key, so that they are pooled together or not at all.
    """
    pools = list[pl.DataFrame]()
    for run in runs:
        rows = collection_rows(run, collection)  # -1 for a document that the collection lacks
        keys = np.zeros(len(run.ids), dtype=np.uint64)
        keys[rows >= 0] = collection.tie_keys()[rows[rows >= 0]]
        docs_of_run = run.docs.astype(np.int64)
        # The documents of all queries lie in one array, those of a query between two offsets.
        bounds = zip(run.offsets[:-1], run.offsets[1:], strict=True)
        offsets, docs, _scores = cut(
            ((docs_of_run[low:high], run.scores[low:high]) for low, high in bounds), keys, depth
        )
        query = np.repeat(np.arange(len(run.queries)), np.diff(offsets))
        query_ids = pl.Series(run.queries, dtype=pl.String).gather(query)
        pools.append(pl.DataFrame({"query_id": query_ids, "doc_id": run.ids.gather(docs)}))
    return pl.concat(pools).unique(maintain_order=True)

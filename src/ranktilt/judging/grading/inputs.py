"""Prepare the requests to a judge: pairs of query and document, and the prompt."""

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
"""Prompts that come with RankTilt, each with its origin."""

GRADE_SLOTS = ("passage", "query")
"""Slots of a prompt."""
_ANSWER_TOKENS = {"umbrela": 8, "basic": 2, "rubric": 40}
"""Most tokens of an answer, by prompt."""
_OTHER_ANSWER_TOKENS = 20
"""Most tokens of an answer to a user's prompt."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GradingInputs(GenerationInputs):
    """The requests to a judge, in an order that the seed shuffles.

    `pairs` holds ``query_id`` and ``doc_id``; the tasks of pair ``n`` have the rows ``n * repeats``
    and following.
    """

    noun: ClassVar[str] = "pair"
    answer_noun: ClassVar[str] = "an answer"

    settings: Grading
    """Options of the grading."""
    pairs: pl.DataFrame
    """Pairs to grade."""
    without_text: int = 0
    """Pairs that were chosen although the collection lacks their query or document."""


def prepare_grades(
    collection: Collection, llm: LLM, grading: Grading | None = None, *, runs: Iterable[Run] = ()
) -> GradingInputs:
    """Prepare the requests to a judge, without asking it yet.

    Pairs are the top `grading.pool` of each run for each query, or without runs those that the
    collection judges. Requests are shuffled by ``grading.seed`` (0 where none is given), so that no
    drift of a server falls on a query. `UserError` if no pair has a text to grade.
    """
    grading = grading or Grading()
    template, runs = grade_template(grading.prompt), list(runs)
    chosen = collection.qrels.select("query_id", "doc_id")
    if runs:
        chosen = _pooled(collection, runs, grading.pool)
    known = _with_texts(chosen, collection, grading)
    if not known.height:
        origin = "the runs" if runs else "the judgments"
        raise UserError(f"no pair to grade: {origin} name no query and document of this collection")
    pairs = known.head(grading.first or known.height)
    tasks, rejected = list[GenerationTask](), list[Rejected]()
    for pair, (text, query) in enumerate(pairs.select("text", "query").iter_rows()):
        rows = range(pair * grading.repeats, (pair + 1) * grading.repeats)
        if text.strip() and query.strip():
            for index, row in enumerate(rows):
                tasks.append(GenerationTask(row=row, text=text, title=query, answer_index=index))
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
        without_text=chosen.height - known.height,
    )


def _with_texts(chosen: pl.DataFrame, collection: Collection, grading: Grading) -> pl.DataFrame:
    """Return the pairs whose query and document the collection holds, with both texts."""
    texts = pl.DataFrame(
        {"doc_id": collection.ids, "text": collection.texts(grading.text)}
    ).with_row_index("doc")
    queries = collection.queries.select(query_id="id", query="text").with_row_index("order")
    return chosen.join(queries, on="query_id").join(texts, on="doc_id").sort("order", "doc")


def _empty_request(row: int) -> Rejected:
    """Reject a request whose query or document has no text."""
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


def _pooled(collection: Collection, runs: Iterable[Run], depth: int) -> pl.DataFrame:
    """Return queries with the best documents of each run; ties with the last fall by their keys."""
    parts = list[pl.DataFrame]()
    for run in runs:
        rows, keys = collection_rows(run, collection), np.zeros(len(run.ids), dtype=np.uint64)
        entries = run.docs.astype(np.int64)
        keys[rows >= 0] = collection.tie_keys()[rows[rows >= 0]]
        bounds = zip(run.offsets[:-1], run.offsets[1:], strict=True)
        offsets, docs, _ = cut(
            ((entries[low:high], run.scores[low:high]) for low, high in bounds), keys, depth
        )
        query = np.repeat(np.arange(len(run.queries)), np.diff(offsets))
        names = pl.Series(run.queries, dtype=pl.String).gather(query)
        parts.append(pl.DataFrame({"query_id": names, "doc_id": run.ids.gather(docs)}))
    return pl.concat(parts).unique(maintain_order=True)

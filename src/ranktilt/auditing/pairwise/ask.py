"""Ask a language model which document of each pair is more relevant, in both orders.

A *pair* is a document of the protected group, whose treatment is examined, and an unprotected one.
A model may choose by the position of a document in the prompt; so each pair is shown both ways
round. A *reading* is what was understood of the model's answer.
"""

from __future__ import annotations

from collections.abc import Generator

import polars as pl

from ranktilt.auditing.pairwise.decisions import SCHEMA, Decisions
from ranktilt.auditing.pairwise.pairs import DrawnPairs
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import codes
from ranktilt.llm.journal import journalled
from ranktilt.rankers.base import readable_texts
from ranktilt.rankers.llm.answers import Reading
from ranktilt.rankers.llm.base import Asker, Listing, Task
from ranktilt.rankers.llm.pairwise import Pairwise


def ask_pairs(
    collection: Collection, drawn: DrawnPairs, ranker: Pairwise, *, asker: Asker = journalled
) -> Decisions:
    """Ask a language model about each pair in both orders, in one batch of prompts.

    `ranker` gives the model and the prompt; its ranking method is not used. `asker` sends the
    prompts; by default it keeps a journal, so that an interrupted run can go on.
    """
    texts = readable_texts(ranker, collection)
    protected, unprotected = (
        texts.gather(codes(drawn.frame[column], collection.ids))
        for column in ("protected", "unprotected")
    )
    query_rows = codes(drawn.frame["query"], collection.queries["id"])
    queries = collection.queries["text"].gather(query_rows)
    tasks = [
        Task(query=query, passages=[ranker.prompt_text(first), ranker.prompt_text(second)])
        for query, first, second in zip(queries, protected, unprotected, strict=True)
    ]
    answers, answer_spec = ranker.ask(tasks, [_both_orders() for _ in tasks], asker=asker)
    rows = []
    for (query, kind, protected_id, unprotected_id), readings in zip(
        drawn.frame.iter_rows(), answers, strict=True
    ):
        orders = (protected_id, unprotected_id), (unprotected_id, protected_id)
        for (first, second), reading in zip(orders, readings, strict=True):
            # `reading.order` has the positions of the passages, the best one first.
            choice = (first, second)[reading.order[0]] if reading.order else None
            rows.append((query, kind, first, second, choice, reading.kind))
    return Decisions(
        frame=pl.DataFrame(rows, SCHEMA, orient="row"),
        sides=drawn.sides,
        model=ranker.model_text,
        spec={"asker": repr(ranker), "pairs": drawn.requested, **answer_spec},
        notes=drawn.notes,
        training_queries=ranker.model().training_queries,
    )


def _both_orders() -> Generator[list[Listing], list[Reading], list[Reading]]:
    """Ask about both orders of a pair, and return the readings of both answers.

    It is a dialogue with the model, as `ranktilt.rankers.llm` runs it: it yields listings of
    passages, by their positions in the task, and gets the readings of the model's answers.
    """
    readings = yield [(0, 1), (1, 0)]
    return readings

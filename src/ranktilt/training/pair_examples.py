"""Prompts about pairs of documents, in which either group has the right answer equally often.

The documents of a collection are in two *groups*, one of which is *protected*. A prompt shows a
document of each group, and the *answer* ``[1]`` or ``[2]`` chooses one of them.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.pairwise.pairs import KINDS, draw_pairs, two_groups
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import codes
from ranktilt.errors import UserError, counted
from ranktilt.llm.base import LLM
from ranktilt.rankers.base import readable_texts
from ranktilt.rankers.llm.base import Task
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.training.options import LoraTraining


@dataclass(frozen=True, eq=False, kw_only=True)
class PairExamples:
    """Prompts about two documents, each with its right answer."""

    prompts: list[str]
    """Texts of the prompts."""
    answers: list[str]
    """Right answer of each prompt."""
    protected: npt.NDArray[np.bool_]
    """For each prompt, whether its right answer is the protected document."""
    queries: list[str]
    """Ids of the queries to learn from."""
    held_out: list[str]
    """Ids of all other queries with judgments; no prompt is about them."""


def pair_examples(
    collection: Collection,
    ranker: Pairwise,
    options: LoraTraining,
    *,
    by: str,
    protected: str | None = None,
    model: LLM | None = None,
) -> PairExamples:
    """Return prompts whose right answer depends neither on the group nor on the position.

    A model can learn nothing else from them, because both documents of a pair are relevant, or
    neither is. In each of these two kinds of pairs the protected document is the right answer to
    every second prompt, and it is listed first in half of these prompts. The same holds for the
    other document.

    Parameters
    ----------
    collection : Collection
        Texts with judgments.
    ranker : Pairwise
        The ranker that writes the prompts.
    options : LoraTraining
        Number of pairs, share of the queries, and seed.
    by : str
        Attribute of documents that names their group.
    protected : str, optional
        The protected group; by default the smaller of two groups.
    model : LLM, optional
        The model that is to learn. Pairs that do not fit into its context are refused, because the
        trained model could not be asked about them either.
    """
    groups = two_groups(collection, by, protected)
    queries = sorted(collection.queries_with_judgments["id"].to_list())
    random.Random(f"{options.seed} queries").shuffle(queries)
    training_count = round(options.share * len(queries))
    if training_count in (0, len(queries)):
        raise UserError(
            f"{counted(len(queries), 'query', 'queries')} cannot be split into "
            f"{options.share:g} and the rest"
        )
    training_queries, held_out = queries[:training_count], queries[training_count:]
    training_part = Collection(
        collection.docs,
        collection.queries.filter(pl.col("id").is_in(training_queries)),
        collection.qrels.filter(pl.col("query_id").is_in(training_queries)),
        collection.spec,
    )
    # `draw_pairs` draws this many pairs of each kind.
    pairs_per_query = math.ceil(options.pairs_per_epoch / (len(KINDS) * training_count))
    pairs = draw_pairs(training_part, groups, pairs=pairs_per_query, seed=options.seed).frame
    order = random.Random(f"{options.seed} pairs").sample(range(pairs.height), pairs.height)
    pairs = pairs[np.array(order, dtype=np.int64)]
    questions = _questions(collection, ranker, pairs)
    right_answers = _right_answers(pairs["kind"])
    # A third pair of a kind is needed: it is the first whose right answer is listed second.
    if len({answer.text for answer in right_answers}) < 2:
        raise UserError(
            f"{counted(pairs.height, 'pair', 'pairs')} to train on: expected three or more of one "
            "kind (both relevant, or neither), so that each answer is right sometimes; judge more"
        )
    tasks = [
        question.task(answer) for question, answer in zip(questions, right_answers, strict=True)
    ]
    if model is not None:
        ranker.require_room(model, tasks)
    return PairExamples(
        prompts=ranker.prompts_of(tasks),
        answers=[answer.text for answer in right_answers],
        protected=np.array([answer.is_protected for answer in right_answers], dtype=bool),
        queries=training_queries,
        held_out=held_out,
    )


@dataclass(frozen=True, kw_only=True)
class _RightAnswer:
    """The document that is made the right answer to a prompt."""

    is_protected: bool
    """Whether it is the protected document."""
    is_first: bool
    """Whether it is listed first."""

    @property
    def text(self) -> str:
        """The answer as the model writes it: the number of the document in brackets."""
        return "[1]" if self.is_first else "[2]"


_ROTATION = (
    _RightAnswer(is_protected=True, is_first=True),
    _RightAnswer(is_protected=False, is_first=True),
    _RightAnswer(is_protected=True, is_first=False),
    _RightAnswer(is_protected=False, is_first=False),
)
"""Right answers to the first four pairs of a kind; every next four pairs repeat them."""


@dataclass(frozen=True, kw_only=True)
class _PairQuestion:
    """A query, and a document of each group."""

    query: str
    """Text of the query."""
    protected: str
    """Text of the protected document."""
    unprotected: str
    """Text of the document of the other group."""

    def task(self, answer: _RightAnswer) -> Task:
        """Return query and passages of a prompt, with the right answer at its position."""
        right, wrong = self.unprotected, self.protected
        if answer.is_protected:
            right, wrong = self.protected, self.unprotected
        passages = [right, wrong] if answer.is_first else [wrong, right]
        return Task(query=self.query, passages=passages)


def _questions(
    collection: Collection, ranker: Pairwise, pairs: pl.DataFrame
) -> list[_PairQuestion]:
    """Return each pair with the texts that the model reads."""
    texts = readable_texts(ranker, collection)
    query_texts = dict(collection.queries.select("id", "text").iter_rows())
    # Rows of the documents in the collection.
    protected_rows = codes(pairs["protected"], collection.ids)
    unprotected_rows = codes(pairs["unprotected"], collection.ids)
    return [
        _PairQuestion(
            query=query_texts[query],
            protected=ranker.prompt_text(texts[int(protected_row)]),
            unprotected=ranker.prompt_text(texts[int(unprotected_row)]),
        )
        for query, protected_row, unprotected_row in zip(
            pairs["query"], protected_rows, unprotected_rows, strict=True
        )
    ]


def _right_answers(kinds: pl.Series) -> list[_RightAnswer]:
    """Choose the right answer to each pair, by `_ROTATION` within each kind of pair."""
    kind_counts = Counter[str]()
    answers = []
    for kind in kinds:
        answers.append(_ROTATION[kind_counts[kind] % len(_ROTATION)])
        kind_counts[kind] += 1
    return answers

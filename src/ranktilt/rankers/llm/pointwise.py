"""Pointwise ranking by a language model: one passage for each prompt, scored by a probability.

The *method* says which: that the model answers yes to "does this passage answer the query?", or
that it would write the query after the passage. Both need the probabilities of tokens, which not
every server returns. A *reading* is what was made of an answer.
"""

from __future__ import annotations

import math
import operator
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ranktilt.errors import UserError
from ranktilt.llm.base import Answer
from ranktilt.llm.estimate import Rehearsal
from ranktilt.llm.journal import journalled
from ranktilt.llm.prompts import fill
from ranktilt.llm.transformers import Transformers
from ranktilt.models.device import PRECISIONS
from ranktilt.models.likelihood import Likelihood
from ranktilt.rankers.base import require_choices
from ranktilt.rankers.llm.answers import (
    OFF_FORMAT,
    OK,
    UNANSWERED,
    AnswerCounts,
    Reading,
    read_yes_no,
)
from ranktilt.rankers.llm.base import Asker, Listing, LLMRanker, Scores, Sorting, Task

YES_NO, QUERY_LIKELIHOOD = "yes-no", "query-likelihood"
"""Methods of scoring a passage."""
YES_NO_FORMAT = "Answer with one word, Yes or No."
"""Last line of prompts that ask for yes or no."""
_YES_NO_TOKENS = 8
"""Most tokens of an answer with yes or no: only the first word counts."""


@dataclass(frozen=True)
class Pointwise(LLMRanker):
    """Scores each passage by itself, by a probability that the model gives.

    ``yes-no`` asks whether the passage answers the query. The score is 1 + P(yes) or 1 − P(no), by
    the log-probability of the answer's first token (HELM; Liang et al., TMLR 2023). The code of
    llm-rankers compares the logits of both words instead, which no server returns.

    ``query-likelihood`` asks nothing. The score is the mean log-probability of the query's tokens
    after a prompt with the passage, as plain text without a chat template (UPR; Sachan et al.,
    EMNLP 2022). It needs a model in a local folder.

    A prompt has the slot ``{passage}``, and for yes-no also ``{query}``; for the other method, the
    query follows the prompt. Passages without a readable answer are ranked below all others.
    """

    name: ClassVar[str] = "pointwise"
    prompts: ClassVar[tuple[str, ...]] = ("yes-no", "question")
    chooses: ClassVar[bool] = True
    order_only: ClassVar[bool] = False
    logprobs: ClassVar[bool] = True

    method: str = field(default=YES_NO, kw_only=True)
    """Method of scoring, ``yes-no`` or ``query-likelihood``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices(self, method=(YES_NO, QUERY_LIKELIHOOD))
        if self.method == QUERY_LIKELIHOOD and self.adapter is not None:
            raise UserError(
                "pointwise: query likelihood uses the folder's own weights; omit adapter"
            )

    @property
    def needed(self) -> tuple[str, ...]:  # type: ignore[override]
        """Slots that a prompt must have; for query likelihood, the query follows the prompt."""
        return ("query", "passage") if self.method == YES_NO else ("passage",)

    @property
    def default_prompt(self) -> str:
        """Name of the prompt if the user names none: each method has its own."""
        return "yes-no" if self.method == YES_NO else "question"

    @property
    def answer_format(self) -> str:
        """Last line of the prompt; empty for query likelihood, which asks for no answer."""
        return YES_NO_FORMAT if self.method == YES_NO else ""

    def most_shown(self, count: int) -> int:
        """Return 1: a prompt shows one passage."""
        return min(1, count)

    def most_requests(self, count: int) -> int:
        """Return the number of passages: each has one prompt."""
        return count

    def answer_tokens(self, tasks: Sequence[Task]) -> int:
        """Return how many tokens an answer may have: enough for yes or no."""
        return _YES_NO_TOKENS

    def values(self, task: Task, listing: Listing) -> dict[str, str]:
        """Return the texts that fill the slots, with the only passage in ``{passage}``."""
        return {**super().values(task, listing), "passage": task.passages[listing[0]]}

    def agreeing_answer(self, listing: Listing) -> str:
        """Return yes; a model that answers no writes as many tokens."""
        return "Yes"

    def check(self) -> None:
        """Refuse a prompt or a model that does not fit the method, before any request."""
        if self.method == YES_NO:
            super().check()
        else:
            self._template()
            self._scorer()

    # Method yes-no: by an answer

    def sort(self, count: int, chance: random.Random) -> Sorting:
        """Ask about every passage in one round, and score each by its answer."""
        readings = yield [(position,) for position in range(count)]
        scores = [math.nan if reading.score is None else reading.score for reading in readings]
        return self._fill_unread(np.array(scores), chance)

    def read(self, answer: Answer, count: int) -> Reading:
        """Read yes or no; an answer without log-probabilities cannot be read."""
        reading = read_yes_no(answer)
        if reading.score is not None and not math.isfinite(reading.score):
            return Reading(kind=OFF_FORMAT, score=math.nan)
        return reading

    def require_scores(self, readings: Sequence[Reading]) -> None:
        """Refuse a model if none of these answers has the log-probability of its yes or no."""
        scores = [reading.score for reading in readings if reading.score is not None]
        if scores and all(map(math.isnan, scores)):
            raise UserError(
                f"{self!r}: the model gives no log-probabilities of its answers, which are needed "
                "to score yes and no; use listwise, pairwise or setwise"
            )

    def _fill_unread(self, scores: Scores, chance: random.Random) -> Scores:
        """Give passages without a score (NaN) scores below all others, in a random order."""
        unread = np.flatnonzero(np.isnan(scores)).tolist()
        chance.shuffle(unread)
        lowest = np.nanmin(scores) if len(unread) < len(scores) else 0.0
        scores[unread] = lowest - 1 - np.arange(len(unread))
        return scores

    # Method query-likelihood

    def score(
        self, tasks: Sequence[Task], chances: Sequence[random.Random], *, asker: Asker = journalled
    ) -> tuple[list[Scores], dict[str, Any]]:
        """Score passages by answers, or by the likelihood of the query without asking anything."""
        if self.method == YES_NO:
            return super().score(tasks, chances, asker=asker)
        return self._score_by_likelihood(tasks, chances, asker)

    def _score_by_likelihood(
        self, tasks: Sequence[Task], chances: Sequence[random.Random], asker: Asker
    ) -> tuple[list[Scores], dict[str, Any]]:
        """Score passages by the likelihood of the query; return what `score` returns."""
        template = self._template()
        prompts, queries = list[str](), list[str]()
        for task in tasks:
            for position in range(len(task.passages)):
                values = self.values(task, (position,))
                prompts.append(fill(template.slots, values))
                queries.append(values["query"])
        if isinstance(asker, Rehearsal):
            asker.add_unanswered(list(map(operator.add, prompts, queries)))
            return [np.zeros(len(task.passages)) for task in tasks], {}
        scorer = self._scorer()
        if prompts:
            self._require_room_for_prompts(scorer, prompts)
        likelihoods = scorer.score(queries, prompts, label=f"{self!r}: scoring")
        ends = np.cumsum([len(task.passages) for task in tasks])[:-1]
        # Likelihoods come as log perplexity: the mean of −ln P over the query's tokens.
        scores_by_task = np.split(-likelihoods.perplexity, ends)
        scores = [
            self._fill_unread(task_scores, chance)
            for task_scores, chance in zip(scores_by_task, chances, strict=True)
        ]
        is_unread = np.isnan(likelihoods.perplexity)
        counts = AnswerCounts(
            kinds=Counter(np.where(is_unread, UNANSWERED, OK).tolist()),
            requests=len(prompts),
            read=int(likelihoods.tokens.sum()),
        )
        return scores, {"llm": {**self.model().spec, **template.spec}, **counts.spec}

    def _scorer(self) -> Likelihood:
        """Return the model that gives likelihoods, checked but not loaded."""
        model = self.model()
        if not isinstance(model, Transformers):
            raise UserError(
                f"{self!r}: query likelihood needs a model in a folder: transformers:FOLDER"
            )
        folder = model.folder
        precision = self.precision or PRECISIONS[0]
        likelihood = Likelihood(
            folder=folder, model_name=model.name, device=self.device, precision=precision
        )
        likelihood.check()
        if likelihood.resolved_kind != "causal":
            raise UserError(
                f"{self!r}: query likelihood needs a causal language model, and {folder} is not one"
            )
        return likelihood

    def _require_room_for_prompts(self, scorer: Likelihood, prompts: Sequence[str]) -> None:
        """Refuse prompts that the model would not read to the end."""
        most = max(scorer.count_tokens(list(dict.fromkeys(prompts))))
        if most > scorer.longest_prefix:
            raise UserError(
                f"{self!r}: a passage in its prompt takes up to {most:,} tokens, and the model "
                f"reads {scorer.longest_prefix:,} before a query; cut passages (passage_tokens)"
            )

"""Pointwise ranking by a language model: one passage a prompt, scored by a probability."""

from __future__ import annotations

import math
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
YES_NO_FORMAT = "Answer with one word, Yes or No."
_YES_NO_TOKENS = 8


@dataclass(frozen=True)
class Pointwise(LLMRanker):
    """Scores each passage by itself, by a probability that the model gives.

    ``yes-no`` asks whether the passage answers the query: the score is 1 + P(yes) or 1 − P(no), by
    the log-probability of the answer's first token (HELM; Liang et al., TMLR 2023). Two logits side
    by side, as llm-rankers takes them, are what no server gives where it answers in words.
    ``query-likelihood`` is the mean ln P of the query's tokens after the prompt with the passage,
    as plain text without a chat template (UPR; Sachan et al., EMNLP 2022): of a local folder. A
    prompt has the slot ``{passage}``; of yes-no ``{query}`` too, which in the other follows it.
    Passages without a readable answer stand below the others.
    """

    name: ClassVar[str] = "pointwise"
    prompts: ClassVar[tuple[str, ...]] = ("yes-no", "question")
    chooses: ClassVar[bool] = True
    order_only: ClassVar[bool] = False
    logprobs: ClassVar[bool] = True

    method: str = field(default=YES_NO, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices(self, method=(YES_NO, QUERY_LIKELIHOOD))
        if self.method == QUERY_LIKELIHOOD and self.adapter is not None:
            raise UserError(
                "pointwise: query likelihood is that of the folder's own weights; omit adapter"
            )

    @property
    def needed(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("query", "passage") if self.method == YES_NO else ("passage",)

    @property
    def default_prompt(self) -> str:
        return "yes-no" if self.method == YES_NO else "question"

    @property
    def answer_format(self) -> str:
        return YES_NO_FORMAT if self.method == YES_NO else ""

    def at_once(self, count: int) -> int:
        return min(1, count)

    def requests(self, count: int) -> int:
        return count

    def answer_tokens(self, tasks: Sequence[Task]) -> int:
        return _YES_NO_TOKENS

    def values(self, task: Task, listing: Listing) -> dict[str, str]:
        return {**super().values(task, listing), "passage": task.passages[listing[0]]}

    def pretended(self, listing: Listing) -> str:
        return "Yes"

    def check(self) -> None:
        if self.method == YES_NO:
            super().check()
        else:
            self._template()
            self._scorer()

    # By an answer

    def sort(self, count: int, chance: random.Random) -> Sorting:
        answers = yield [(place,) for place in range(count)]
        scores = [math.nan if answer.score is None else answer.score for answer in answers]
        return self._with_unread(np.array(scores), chance)

    def read(self, answer: Answer, count: int) -> Reading:
        """Read yes or no; an answer whose likelihood is not said cannot be read."""
        reading = read_yes_no(answer)
        if reading.score is not None and not math.isfinite(reading.score):
            return Reading(OFF_FORMAT, (), math.nan)
        return reading

    def require_scores(self, readings: Sequence[Reading]) -> None:
        """Refuse a model that never says how likely its yes or no was."""
        scores = [reading.score for reading in readings if reading.score is not None]
        if scores and all(map(math.isnan, scores)):
            raise UserError(
                f"{self!r}: the model gives no log-probabilities of its answers, by which yes and no are scored; ask "
                "it by listwise, pairwise or setwise"
            )

    def _with_unread(self, scores: Scores, chance: random.Random) -> Scores:
        """Scores with numbers below all others for passages that have none, in a random order."""
        rest = np.flatnonzero(np.isnan(scores)).tolist()
        chance.shuffle(rest)
        floor = np.nanmin(scores) if len(rest) < len(scores) else 0.0
        scores[rest] = floor - 1 - np.arange(len(rest))
        return scores

    # By the likelihood of the query

    def score(
        self, tasks: Sequence[Task], chances: Sequence[random.Random], *, asker: Asker = journalled
    ) -> tuple[list[Scores], dict[str, Any]]:
        if self.method == YES_NO:
            return super().score(tasks, chances, asker=asker)
        slots, (name, digest) = self._template()
        pairs = [(task, place) for task in tasks for place in range(len(task.passages))]
        given = [fill(slots, self.values(task, (place,))) for task, place in pairs]
        queries = [self.values(task, (place,))["query"] for task, place in pairs]
        if isinstance(asker, Rehearsal):
            asker.add_unanswered(
                [before + query for before, query in zip(given, queries, strict=True)]
            )
            return [np.zeros(len(task.passages)) for task in tasks], {}
        scorer = self._scorer()
        if given:
            self._require_prefix(scorer, given)
        found = scorer.score(queries, given, label=f"{self!r}: scoring")
        ends = np.cumsum([len(task.passages) for task in tasks])[:-1]
        scores = [
            self._with_unread(part, chance)
            for part, chance in zip(np.split(-found.perplexity, ends), chances, strict=True)
        ]
        kinds = Counter(np.where(np.isnan(found.perplexity), UNANSWERED, OK).tolist())
        counts = AnswerCounts(kinds, len(pairs), read=int(found.tokens.sum())).spec
        return scores, {
            "llm": {**self.model().spec, "prompt": name, "prompt_sha256": digest},
            **counts,
        }

    def _scorer(self) -> Likelihood:
        """What gives likelihoods, checked as far as it can be without loading it."""
        model = self.model()
        if not isinstance(model, Transformers):
            raise UserError(
                f"{self!r}: query likelihood needs a model in a folder: transformers:FOLDER"
            )
        folder = model.folder
        precision = self.precision or PRECISIONS[0]
        found = Likelihood(
            folder=folder, model_name=model.name, device=self.device, precision=precision
        )
        found.check()
        if found.resolved_kind != "causal":
            raise UserError(
                f"{self!r}: {folder} is no causal language model, which query likelihood needs"
            )
        return found

    def _require_prefix(self, scorer: Likelihood, given: Sequence[str]) -> None:
        """Refuse prompts of which the model would not read the end."""
        most = max(scorer.count_tokens(list(dict.fromkeys(given))))
        if most > scorer.longest_prefix:
            raise UserError(
                f"{self!r}: a passage in its prompt takes up to {most:,} tokens, and the model reads "
                f"{scorer.longest_prefix:,} before a query; cut passages (passage_tokens)"
            )

"""Pointwise ranking by a language model: one passage a prompt, scored by the probability of yes or no."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktilt.errors import UserError
from ranktilt.llm.base import Answer
from ranktilt.rankers.llm.answers import Reading, read_yes_no
from ranktilt.rankers.llm.base import Listing, LLMRanker, Sorting, Task

_YES_NO_TOKENS = 8


@dataclass(frozen=True)
class Pointwise(LLMRanker):
    """Asks whether a passage answers the query (HELM; Liang et al., TMLR 2023).

    The score is 1 + P(yes) or 1 − P(no), by the log-probability of the answer's first token. Two logits side by side,
    as llm-rankers takes them, are what no server gives where it answers in words. Passages without a readable answer
    stand below the others.
    """

    name: ClassVar[str] = "pointwise"
    prompts: ClassVar[tuple[str, ...]] = ("yes-no",)
    needed: ClassVar[tuple[str, ...]] = ("query", "passage")
    optional: ClassVar[tuple[str, ...]] = ("attribute",)
    answer_format: ClassVar[str] = "Answer with one word, Yes or No."
    order_only: ClassVar[bool] = False
    logprobs: ClassVar[bool] = True

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

    def sort(self, count: int, chance: random.Random) -> Sorting:
        answers = yield [(place,) for place in range(count)]
        scores = np.array([math.nan if answer.score is None else answer.score for answer in answers])
        unread = np.flatnonzero(np.isnan(scores)).tolist()
        chance.shuffle(unread)
        lowest = np.nanmin(scores) if len(unread) < count else 0.0
        scores[unread] = lowest - 1 - np.arange(len(unread))
        return scores

    def read(self, answer: Answer, count: int) -> Reading:
        """Read yes or no; refuses a model that does not say how likely it was."""
        first = answer.logprobs[0] if answer.logprobs else math.nan
        reading = read_yes_no(answer.text, min(first, 0.0))
        if reading.score is not None and not math.isfinite(first):
            raise UserError(
                f"{self!r}: the model gives no log-probabilities of its answers, by which yes and no are scored; ask "
                "it by listwise, pairwise or setwise"
            )
        return reading

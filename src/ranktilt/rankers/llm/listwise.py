"""Listwise ranking by a language model: a window slides from the end of a list to its start.

A list may be too long for one prompt. So the model orders the last passages, the best of these move
up into the next window, and so on, until the best of all are at the start. A *listing* has the
passages of one prompt, in their order; passages are numbered by the first stage's ranking.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.rankers.base import require_range
from ranktilt.rankers.llm.answers import READABLE, UNANSWERED, Reading
from ranktilt.rankers.llm.base import Listing, LLMRanker, Sorting, scores_of_order


@dataclass(frozen=True)
class Listwise(LLMRanker):
    """Ranks a window of passages with each prompt, from the end of the candidates to the start.

    A window has `window` passages and moves by `step`; the last window begins at the first
    candidate (Sun et al., EMNLP 2023). With `shuffles`, the model orders each window several times,
    each time shown in another order, and passages are ordered by their mean rank, which is Borda's
    order. This is permutation self-consistency (Tang et al., NAACL 2024, who use Kemeny's order).
    """

    name: ClassVar[str] = "listwise"
    prompts: ClassVar[tuple[str, ...]] = ("relevance", "neutral", "sensitive")

    window: int = field(default=20, kw_only=True)
    """Number of passages in a prompt."""
    step: int = field(default=10, kw_only=True)
    """Number of passages by which the window moves."""
    shuffles: int = field(default=0, kw_only=True)
    """How often each window is asked about, in random orders.

    0: once, in the order that the list has so far.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range(self, "window", least=2)
        # Windows overlap, so that a passage can move from window to window.
        require_range(self, "step", least=1, most=self.window - 1)
        require_range(self, "shuffles", least=0, most=100)

    def most_shown(self, count: int) -> int:
        """Return the size of a window."""
        return min(self.window, count)

    def most_requests(self, count: int) -> int:
        """Return the number of windows, each as often as it is shuffled."""
        return len(list(windows(count, self.window, self.step))) * max(self.shuffles, 1)

    def sort(self, count: int, chance: random.Random) -> Sorting:
        """Order each window in turn, the last one of the list first."""
        order = list(range(count))
        for start, stop in windows(count, self.window, self.step):
            listing = tuple(order[start:stop])
            if self.shuffles:
                shuffled = [
                    tuple(chance.sample(listing, len(listing))) for _ in range(self.shuffles)
                ]
                readings = yield shuffled
                order[start:stop] = self._mean_order(listing, shuffled, readings, chance)
            else:
                (reading,) = yield [listing]
                order[start:stop] = self.full_order(listing, reading, chance)
        return scores_of_order(order)

    def _mean_order(
        self,
        listing: Listing,
        shuffled: Sequence[Listing],
        readings: Sequence[Reading],
        chance: random.Random,
    ) -> list[int]:
        """Return the order of mean ranks over several answers about the same passages.

        `shuffled` has the listing of each answer in `readings`. Answers that cannot be read are
        left out; if no answer can be read, the order is random.
        """
        position = {passage: index for index, passage in enumerate(listing)}
        rankings = []
        for shuffled_listing, reading in zip(shuffled, readings, strict=True):
            if reading.kind in READABLE:
                ranking = self.full_order(shuffled_listing, reading, chance)
                rankings.append([position[passage] for passage in ranking])
        if not rankings:
            return self.full_order(listing, Reading(kind=UNANSWERED), chance)
        return [listing[index] for index in borda(np.array(rankings))]


def windows(count: int, window: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each window over `count` passages, from the end of the list.

    Yields nothing for fewer than two passages, which need no order.
    """
    stop = count
    while stop > 1:
        start = stop - window
        yield max(start, 0), stop
        if start <= 0:
            return
        stop -= step


def borda(rankings: npt.NDArray[np.int64]) -> list[int]:
    """Order passages by their mean rank, best first; ties are ordered as in the first ranking.

    `rankings` has the shape (n_rankings, n_passages): each row has the passages, best first.
    """
    ranks = np.argsort(rankings, axis=1)  # the inverse: the rank of each passage in each ranking
    return [int(passage) for passage in np.lexsort((ranks[0], ranks.mean(axis=0)))]

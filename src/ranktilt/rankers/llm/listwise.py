"""Listwise ranking by a language model: a window slides from the end of a list to its start.

A list is too long for one prompt. So the model orders the last passages, the best of these move up
into the next window, and so on, until the best of all are at the start.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.rankers.base import require_range
from ranktilt.rankers.llm.answer_kinds import READABLE, UNANSWERED
from ranktilt.rankers.llm.answers import Reading
from ranktilt.rankers.llm.base import Listing, LLMRanker, Sorting, in_order


@dataclass(frozen=True)
class Listwise(LLMRanker):
    """Ranks a window of passages with each prompt, from the end of the candidates to the start.

    A window has `window` passages and moves by `step`; the last one always reaches the first
    candidate (Sun et al., EMNLP 2023). With `shuffles`, each window is asked so many times in
    different orders, and the mean rank over the answers counts, which is Borda's order. (That is
    permutation self-consistency; Tang et al., NAACL 2024, take Kemeny's order.)
    """

    name: ClassVar[str] = "listwise"
    prompts: ClassVar[tuple[str, ...]] = ("relevance", "neutral", "sensitive")

    window: int = field(default=20, kw_only=True)
    """Passages in a prompt."""
    step: int = field(default=10, kw_only=True)
    """Passages by which the window moves."""
    shuffles: int = field(default=0, kw_only=True)
    """Times that each window is asked about, in different orders; 0 asks once, in the order so far.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range(self, "window", least=2)
        # Windows overlap, so that a passage can move from window to window.
        require_range(self, "step", least=1, most=self.window - 1)
        require_range(self, "shuffles", least=0, most=100)

    def at_once(self, count: int) -> int:
        return min(self.window, count)

    def requests(self, count: int) -> int:
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
                order[start:stop] = self.completed(listing, reading, chance)
        return in_order(order)

    def _mean_order(
        self,
        listing: Listing,
        shuffled: Sequence[Listing],
        readings: Sequence[Reading],
        chance: random.Random,
    ) -> list[int]:
        """Return the mean order of several answers about the same passages.

        Answers that cannot be read are left out; without any that can, chance orders the passages.
        """
        position = {passage: index for index, passage in enumerate(listing)}
        rankings = []
        for shuffled_listing, reading in zip(shuffled, readings, strict=True):
            if reading.kind in READABLE:
                ranking = self.completed(shuffled_listing, reading, chance)
                rankings.append([position[passage] for passage in ranking])
        if not rankings:
            return self.completed(listing, Reading(kind=UNANSWERED), chance)
        return [listing[index] for index in borda(np.array(rankings))]


def windows(count: int, window: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each window, the last part of a list first; none of fewer than two."""
    stop = count
    while stop > 1:
        start = stop - window
        yield max(start, 0), stop
        if start <= 0:
            return
        stop -= step


def borda(rankings: npt.NDArray[np.int64]) -> list[int]:
    """Order passages by their mean rank, best first; ties are ordered as in the first ranking.

    `rankings` has the shape (n_rankings, n_passages).
    """
    ranks = np.argsort(rankings, axis=1)
    return [int(passage) for passage in np.lexsort((ranks[0], ranks.mean(axis=0)))]

"""Listwise ranking by a language model: a window that slides from the end of the list to its beginning."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.rankers.base import require_range
from ranktilt.rankers.llm.answers import READABLE, Reading
from ranktilt.rankers.llm.base import Listing, LLMRanker, Sorting, in_order


@dataclass(frozen=True)
class Listwise(LLMRanker):
    """Ranks `window` passages a prompt, from the end of the candidates to the beginning, `step` further each time.

    The last window always reaches the first candidate (Sun et al., EMNLP 2023). With `shuffles`,
    each window is asked so many times in different orders, and the mean place over the answers
    counts: Borda's order (permutation self-consistency; Tang et al., NAACL 2024, take Kemeny's).
    """

    name: ClassVar[str] = "listwise"
    prompts: ClassVar[tuple[str, ...]] = ("relevance", "neutral", "sensitive")

    window: int = field(default=20, kw_only=True)
    step: int = field(default=10, kw_only=True)
    shuffles: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range(self, "window", least=2)
        require_range(self, "step", least=1, most=self.window - 1)  # so that passages can move on
        require_range(self, "shuffles", least=0, most=100)

    def at_once(self, count: int) -> int:
        return min(self.window, count)

    def requests(self, count: int) -> int:
        return len(list(windows(count, self.window, self.step))) * max(self.shuffles, 1)

    def sort(self, count: int, chance: random.Random) -> Sorting:
        order = list(range(count))
        for start, stop in windows(count, self.window, self.step):
            listing = tuple(order[start:stop])
            if self.shuffles:
                asked = [tuple(chance.sample(listing, len(listing))) for _ in range(self.shuffles)]
                answers = yield asked
                order[start:stop] = self._agreed(listing, asked, answers, chance)
            else:
                (answer,) = yield [listing]
                order[start:stop] = self.completed(listing, answer, chance)
        return in_order(order)

    def _agreed(
        self,
        listing: Listing,
        asked: Sequence[Listing],
        answers: Sequence[Reading],
        chance: random.Random,
    ) -> list[int]:
        """What several answers about the same passages say together."""
        said = [
            self.completed(one, answer, chance)
            for one, answer in zip(asked, answers, strict=True)
            if answer.kind in READABLE
        ]
        if not said:
            return self.completed(listing, Reading("", ()), chance)
        place = {passage: number for number, passage in enumerate(listing)}
        rankings = np.array([[place[passage] for passage in one] for one in said])
        return [listing[number] for number in borda(rankings)]


def windows(count: int, window: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each window, the last part of the list first; none of fewer than two."""
    stop = count
    while stop > 1:
        start = stop - window
        yield max(start, 0), stop
        if start <= 0:
            return
        stop -= step


def borda(rankings: npt.NDArray[np.int64]) -> list[int]:
    """Order items by their mean place in rankings, shape (n_rankings, n_items), best first; ties as in the first."""
    places = np.argsort(rankings, axis=1)
    return [int(item) for item in np.lexsort((places[0], places.mean(axis=0)))]

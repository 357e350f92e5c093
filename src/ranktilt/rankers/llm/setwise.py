"""Setwise ranking by a language model: the best of a few passages a prompt, along a heap."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import ClassVar

from ranktilt.rankers.base import require_range
from ranktilt.rankers.llm.base import Listing, LLMRanker, Sorting, in_order
from ranktilt.rankers.llm.pairwise import Asking, heap_sifts, heapsort


@dataclass(frozen=True)
class Setwise(LLMRanker):
    """Asks for the best of `size` passages: a heap's parent and its children (Zhuang et al., SIGIR 2024).

    So it finds the best `top`; what lies below stays in the first stage's order.
    """

    name: ClassVar[str] = "setwise"
    prompts: ClassVar[tuple[str, ...]] = ("choice",)
    chooses: ClassVar[bool] = True

    size: int = field(default=4, kw_only=True)
    top: int = field(default=10, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range(self, "size", least=3)  # of two: pairwise
        require_range(self, "top", least=1)

    def at_once(self, count: int) -> int:
        return min(self.size, count)

    def requests(self, count: int) -> int:
        return heap_sifts(count, self.top, self.size - 1)

    def sort(self, count: int, chance: random.Random) -> Sorting:
        def best(listing: Listing) -> Asking:
            (answer,) = yield [listing]
            return self.completed(listing, answer, chance)[0]

        return in_order((yield from heapsort(list(range(count)), self.top, self.size - 1, best)))

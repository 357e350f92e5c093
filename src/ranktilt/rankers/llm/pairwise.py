"""Pairwise and setwise ranking by a language model: two passages a prompt, or the best of a few along a heap."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ranktilt.rankers.base import require_choices, require_range
from ranktilt.rankers.llm.answers import Reading
from ranktilt.rankers.llm.base import Listing, LLMRanker, Sorting, in_order

METHODS = ("heapsort", "allpairs", "sliding")
Asking = Generator[list[Listing], list[Reading], int]
"""Asks about some candidates, and ends with what was found."""


@dataclass(frozen=True)
class Pairwise(LLMRanker):
    """Compares passages two by two (PRP; Qin et al., Findings of NAACL 2024).

    A pair counts where both orders name the same passage, else as a tie, which leaves both where
    they are. With ``allpairs`` a passage's score is the pairs it wins, and half of its ties;
    ``heapsort`` and ``sliding`` find the best `top`.
    """

    name: ClassVar[str] = "pairwise"
    prompts: ClassVar[tuple[str, ...]] = ("choice", "pairwise-neutral", "pairwise-sensitive")
    chooses: ClassVar[bool] = True

    method: str = field(default="heapsort", kw_only=True)
    top: int = field(default=10, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices(self, method=METHODS)
        require_range(self, "top", least=1)

    def at_once(self, count: int) -> int:
        return min(2, count)

    def requests(self, count: int) -> int:
        top = min(self.top, count)
        if self.method == "allpairs":
            return count * (count - 1)
        if self.method == "sliding":
            return 2 * sum(count - 1 - number for number in range(min(top, max(count - 1, 0))))
        return 4 * heap_sifts(count, top, 2)

    def sort(self, count: int, chance: random.Random) -> Sorting:
        if self.method == "allpairs":
            scores = np.zeros(count)
            pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
            answers = yield [listing for a, b in pairs for listing in ((a, b), (b, a))]
            for number, (a, b) in enumerate(pairs):
                won = self._winner(answers[2 * number], answers[2 * number + 1], chance)
                scores[a] += (1 + won) / 2
                scores[b] += (1 - won) / 2
            return scores
        order = list(range(count))
        if self.method == "sliding":
            for done in range(min(self.top, max(count - 1, 0))):
                for place in range(count - 1, done, -1):
                    if (yield from self._compare(order[place - 1], order[place], chance)) < 0:
                        order[place - 1], order[place] = order[place], order[place - 1]
            return in_order(order)
        return in_order(
            (yield from heapsort(order, self.top, 2, lambda places: self._best(places, chance)))
        )

    def _best(self, places: Listing, chance: random.Random) -> Asking:
        """The best of a parent and its children, two at a time; a tie goes to the one that came first."""
        best = places[0]
        for other in places[1:]:
            if (yield from self._compare(best, other, chance)) < 0:
                best = other
        return best

    def _compare(self, a: int, b: int, chance: random.Random) -> Asking:
        """1 where the first comes before the second, −1 where it is the other way round, 0 for a tie."""
        one, other = yield [(a, b), (b, a)]
        return self._winner(one, other, chance)

    def _winner(self, one: Reading, other: Reading, chance: random.Random) -> int:
        """What two answers say together; what neither says is settled by chance, so that no order profits."""
        votes = [
            sign if reading.order[0] == 0 else -sign
            for reading, sign in ((one, 1), (other, -1))
            if reading.order
        ]
        if not votes and self.method != "allpairs":
            return chance.choice((1, -1))
        return votes[0] if len(votes) == 2 and votes[0] == votes[1] else 0


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


def heapsort(
    order: list[int], top: int, children: int, best: Callable[[Listing], Asking]
) -> Generator[list[Listing], list[Reading], list[int]]:
    """Order the best `top` by a heap whose nodes have so many children; what is left follows as it stood.

    `best` asks which of a parent and its children, in this order, comes first.
    """
    heap, found = list(order), list[int]()
    for place in range((len(heap) - 2) // children, -1, -1):
        yield from _sift(heap, place, children, best)
    while heap and len(found) < min(top, len(order)):
        found.append(heap[0])
        last = heap.pop()
        if heap:
            heap[0] = last
            if len(found) < top:
                yield from _sift(heap, 0, children, best)
    chosen = set(found)
    return [*found, *(one for one in order if one not in chosen)]


def _sift(
    heap: list[int], place: int, children: int, best: Callable[[Listing], Asking]
) -> Generator[list[Listing], list[Reading], None]:
    """Let an item sink until none of its children comes before it."""
    while (first := children * place + 1) < len(heap):
        family = (place, *range(first, min(first + children, len(heap))))
        chosen = yield from best(tuple(heap[one] for one in family))
        winner = next(one for one in family if heap[one] == chosen)
        if winner == place:
            return
        heap[place], heap[winner] = heap[winner], heap[place]
        place = winner


def heap_sifts(count: int, top: int, children: int) -> int:
    """Return how many times at most `heapsort` asks for the best of a parent and its children."""

    def below(place: int, size: int) -> int:
        levels = 0
        while (place := children * place + 1) < size:
            levels += 1
        return levels

    built = (
        sum(below(place, count) for place in range((count - 2) // children + 1)) if count > 1 else 0
    )
    return built + sum(below(0, count - done) for done in range(1, min(top, count)))

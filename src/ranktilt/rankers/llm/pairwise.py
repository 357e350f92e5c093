"""Pairwise and setwise ranking by a language model: a prompt shows two passages, or a few.

A *method* sorts the passages of a query by such questions, as heapsort sorts numbers by comparing
them. It is a generator: it yields *listings*, each the passages of one prompt, and is sent a
*reading* of each answer; so the questions of all queries can be asked together. Passages are
numbered by the first stage's ranking, from 0. `chance` is a source of random numbers, for what
answers leave open.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

import numpy as np

from ranktilt.rankers.base import require_choices, require_range
from ranktilt.rankers.llm.answers import Reading
from ranktilt.rankers.llm.base import Listing, LLMRanker, Sorting, scores_of_order

METHODS = ("heapsort", "allpairs", "sliding")
"""Ways to sort by comparisons."""
Choice = Generator[list[Listing], list[Reading], int]
"""A choice of one passage: it yields the listings to ask about, and returns the best passage."""
Comparison = Generator[list[Listing], list[Reading], int]
"""A comparison of two passages: it yields the listings to ask about, and returns the outcome.

That is 1 if the first passage wins, −1 if the second wins, and 0 for a tie.
"""


@dataclass(frozen=True)
class Pairwise(LLMRanker):
    """Compares passages two by two: pairwise ranking prompting.

    The method is by Qin et al., Findings of NAACL 2024. Each pair is asked about in both orders. If
    both answers name the same passage, it wins; otherwise the pair is a tie, and keeps its order.
    With ``allpairs``, a passage's score is the number of pairs that it wins plus half of its ties.
    ``heapsort`` and ``sliding`` find only the best `top` passages.
    """

    name: ClassVar[str] = "pairwise"
    prompts: ClassVar[tuple[str, ...]] = ("choice", "pairwise-neutral", "pairwise-sensitive")
    chooses: ClassVar[bool] = True

    method: str = field(default="heapsort", kw_only=True)
    """Way to sort, one of `METHODS`."""
    top: int = field(default=10, kw_only=True)
    """Number of best passages to find, for ``heapsort`` and ``sliding``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices(self, method=METHODS)
        require_range(self, "top", least=1)

    def most_shown(self, count: int) -> int:
        """Return 2: a prompt shows a pair."""
        return min(2, count)

    def most_requests(self, count: int) -> int:
        """Return how many prompts the method needs: two for each comparison of a pair."""
        top = min(self.top, count)
        if self.method == "allpairs":
            return count * (count - 1)  # twice the number of pairs
        if self.method == "sliding":
            rounds = min(top, max(count - 1, 0))
            # Each round compares neighbours, from the end of the list up to the passages that
            # earlier rounds have put at its start.
            return 2 * sum(count - 1 - done for done in range(rounds))
        # A parent and its two children are compared in two pairs, each asked about in both orders.
        return 4 * heap_sifts(count, top, 2)

    def sort(self, count: int, chance: random.Random) -> Sorting:
        """Sort by comparisons of two passages, in the way that `method` names."""
        if self.method == "allpairs":
            return (yield from self._sort_all_pairs(count, chance))
        if self.method == "sliding":
            return (yield from self._sort_sliding(count, chance))

        def best(listing: Listing) -> Choice:
            return self._best(listing, chance)

        order = yield from heapsort(list(range(count)), self.top, 2, best)
        return scores_of_order(order)

    def _sort_all_pairs(self, count: int, chance: random.Random) -> Sorting:
        """Compare every pair, and count wins and half of the ties."""
        scores = np.zeros(count)
        pairs = list(combinations(range(count), 2))
        both_orders = list[Listing]()
        for first, second in pairs:
            both_orders += [(first, second), (second, first)]
        readings = yield both_orders
        # Every second reading is about the reverse order of a pair.
        for (first, second), forward, backward in zip(
            pairs, readings[::2], readings[1::2], strict=True
        ):
            outcome = self._outcome(forward, backward, chance)
            # 1 for a win, 0 for a loss, and one half for a tie.
            scores[first] += (1 + outcome) / 2
            scores[second] += (1 - outcome) / 2
        return scores

    def _sort_sliding(self, count: int, chance: random.Random) -> Sorting:
        """Let the best passage rise from the end of the list, then the second best, and so on."""
        order = list(range(count))
        for done in range(min(self.top, max(count - 1, 0))):
            for lower in range(count - 1, done, -1):
                upper = lower - 1
                if (yield from self._compare(order[upper], order[lower], chance)) < 0:
                    order[upper], order[lower] = order[lower], order[upper]
        return scores_of_order(order)

    def _best(self, listing: Listing, chance: random.Random) -> Choice:
        """Return the best passage of a listing by comparing pairs; the earlier one wins a tie."""
        best = listing[0]
        for challenger in listing[1:]:
            if (yield from self._compare(best, challenger, chance)) < 0:
                best = challenger
        return best

    def _compare(self, first: int, second: int, chance: random.Random) -> Comparison:
        """Ask about a pair in both orders, and return its outcome."""
        forward, backward = yield [(first, second), (second, first)]
        return self._outcome(forward, backward, chance)

    def _outcome(self, forward: Reading, backward: Reading, chance: random.Random) -> int:
        """Return 1 if the pair's first passage wins, −1 if the second, 0 if tied.

        `forward` is the answer about the pair in its order, and `backward` the answer about the
        reverse order. A passage wins if both name it. If neither can be read, `chance` decides,
        because a sort needs a winner, and neither order may have an advantage. With ``allpairs``,
        the pair is a tie then.
        """
        votes = []
        if forward.order:
            votes.append(1 if forward.order[0] == 0 else -1)
        if backward.order:
            votes.append(-1 if backward.order[0] == 0 else 1)
        if not votes and self.method != "allpairs":
            return chance.choice((1, -1))
        return votes[0] if len(votes) == 2 and votes[0] == votes[1] else 0


@dataclass(frozen=True)
class Setwise(LLMRanker):
    """Asks for the best of `size` passages: a heap's parent and its children.

    The method is by Zhuang et al., SIGIR 2024. It finds the best `top` passages; all others keep
    the first stage's order.
    """

    name: ClassVar[str] = "setwise"
    prompts: ClassVar[tuple[str, ...]] = ("choice",)
    chooses: ClassVar[bool] = True

    size: int = field(default=4, kw_only=True)
    """Number of passages in a prompt."""
    top: int = field(default=10, kw_only=True)
    """Number of best passages to find."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range(self, "size", least=3)  # two passages are compared by `Pairwise`
        require_range(self, "top", least=1)

    def most_shown(self, count: int) -> int:
        """Return the number of passages in a prompt: a parent and all its children."""
        return min(self.size, count)

    def most_requests(self, count: int) -> int:
        """Return how many prompts the heap needs: one for each step that a passage sinks."""
        return heap_sifts(count, self.top, self.size - 1)

    def sort(self, count: int, chance: random.Random) -> Sorting:
        """Sort by a heap, whose parent and children are the passages of a prompt."""

        def best(listing: Listing) -> Choice:
            (reading,) = yield [listing]
            return self.full_order(listing, reading, chance)[0]

        order = yield from heapsort(list(range(count)), self.top, self.size - 1, best)
        return scores_of_order(order)


def heapsort(
    order: list[int], top: int, children: int, best: Callable[[Listing], Choice]
) -> Generator[list[Listing], list[Reading], list[int]]:
    """Return passages with the best `top` first; the others follow in their order.

    In a heap every passage is at least as good as its children, so the best one is at the top. It
    is taken off, and the last passage is put in its place and sinks down. Then the next best
    passage is at the top.

    Parameters
    ----------
    order : list of int
        The passages, best first by the first stage.
    top : int
        Number of best passages to find.
    children : int
        Number of children of each node of the heap.
    best : callable
        Returns a generator that asks which of a parent and its children, in this order, is best.
    """
    heap, ranked = list(order), list[int]()
    for node in range((len(heap) - 2) // children, -1, -1):
        yield from _sift(heap, node, children, best)
    while heap and len(ranked) < min(top, len(order)):
        ranked.append(heap[0])
        last = heap.pop()
        if heap:
            heap[0] = last
            if len(ranked) < top:
                yield from _sift(heap, 0, children, best)
    best_passages = set(ranked)
    return [*ranked, *(passage for passage in order if passage not in best_passages)]


def _sift(
    heap: list[int], node: int, children: int, best: Callable[[Listing], Choice]
) -> Generator[list[Listing], list[Reading], None]:
    """Let the passage at a node sink: exchange it with its best child while that is better."""
    while (first_child := children * node + 1) < len(heap):
        family = (node, *range(first_child, min(first_child + children, len(heap))))
        best_passage = yield from best(tuple(heap[member] for member in family))
        winner = heap.index(best_passage, node)
        if winner == node:
            return
        heap[node], heap[winner] = heap[winner], heap[node]
        node = winner


def heap_sifts(count: int, top: int, children: int) -> int:
    """Return how often `heapsort` asks for the best of a parent and its children, at most.

    The parameters are those of `heapsort`, with the number of passages as `count`. A passage that
    sinks needs one question for each level below it. While the heap is built, every parent sinks.
    Then the passage at the top sinks each time that one is taken off, except the last time.
    """

    def levels_below(node: int, size: int) -> int:
        """Return how many levels of a heap of this size lie below a node."""
        levels = 0
        while (node := children * node + 1) < size:
            levels += 1
        return levels

    parents = range((count - 2) // children + 1 if count > 1 else 0)
    to_build = sum(levels_below(node, count) for node in parents)
    return to_build + sum(levels_below(0, count - done) for done in range(1, min(top, count)))

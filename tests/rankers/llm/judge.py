"""A language model whose mind is known: it ranks passages by a number in them, as wrongly as a test wants."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

_ITEM = re.compile(r"(?:^|(?<=: ))\[(\d+)\] (.*)$", re.M)
_WORTH = re.compile(r"worth (-?[\d.]+)")


def worth(text: str) -> float:
    """The number that a passage says it is worth."""
    found = _WORTH.search(text)
    return float(found[1]) if found else 0.0


@dataclass
class Judge:
    """Answers a prompt with the ranking of its passages by `worth`, or with the best one where it is asked to choose.

    `first` is what a passage gains by standing first; a share of the answers is prose, and one names a passage twice.
    """

    value: Callable[[str], float] = worth
    first: float = 0.0
    prose: float = 0.0
    repeated: float = 0.0
    seed: int = 0
    shown: list[list[str]] = field(default_factory=list)

    def __call__(self, messages: list[dict[str, str]], body: dict[str, object]) -> str:
        prompt = messages[-1]["content"]
        items = [text for _, text in _ITEM.findall(prompt)]
        self.shown.append(items)
        chance = random.Random(f"{self.seed} {prompt}")
        if chance.random() < self.prose:
            return f"{len(items)} passages have been provided."
        values = [self.value(text) + (self.first if place == 0 else 0.0) for place, text in enumerate(items)]
        order = sorted(range(len(items)), key=lambda place: -values[place])
        if "chosen passage" in prompt:
            return f"[{order[0] + 1}]"
        named = [f"[{place + 1}]" for place in order]
        if chance.random() < self.repeated:
            named.append(named[0])
        return " > ".join(named)

"""A ranker with an encoder whose vectors can be written down: how often a text holds each of some letters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.collection import Collection
from ranktilt.io.cache import Stored
from ranktilt.rankers.base import Ranker
from ranktilt.run import Run


@dataclass(frozen=True)
class Letters:
    letters: str

    def encode(self, texts: Sequence[str], kind: str, label: str) -> tuple[Stored, npt.NDArray[np.int64]]:
        """A vector a distinct text, in the order of the alphabet."""
        distinct = sorted(set(texts))
        vectors = np.array([[text.count(one) for one in self.letters] for text in distinct], dtype=np.float32)
        rows = np.array([distinct.index(text) for text in texts], dtype=np.int64)
        return Stored(vectors, np.arange(len(distinct))), rows


@dataclass(frozen=True)
class LetterVectors(Ranker):
    """A ranker that has an encoder; it is never asked to rank."""

    name: ClassVar[str] = "letters"
    argument: ClassVar[str | None] = "letters"
    letters: str = "abc"
    text: str = "text"

    @property
    def encoder(self) -> Letters:
        return Letters(self.letters)

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        raise AssertionError("not asked to rank")

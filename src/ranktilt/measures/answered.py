"""What an estimand needs to know of an answer to say it in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Answered(Protocol):
    """What an estimand needs of an effect to say in words what it rests on."""

    @property
    def a(self) -> str:
        """The first group."""

    @property
    def b(self) -> str:
        """The second group."""

    @property
    def value(self) -> float:
        """The answer."""

    @property
    def queries(self) -> int:
        """Queries that say something."""

    @property
    def level(self) -> float:
        """The value that favours nobody."""

    @property
    def parts(self) -> Mapping[str, float]:
        """Counts and means behind it."""

    @property
    def place(self) -> str:
        """Where it lies beside the random band: ``inside``, ``below`` or ``above``."""

    @property
    def significant(self) -> bool:
        """Whether it is significant after correction."""

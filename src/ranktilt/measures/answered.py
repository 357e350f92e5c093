"""What an estimand needs to know of an answer to say it in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Answered(Protocol):
    """An answer about the groups `a` and `b`; what its properties say stands at `ranktilt.auditing.effects.Effect`."""

    @property
    def a(self) -> str: ...
    @property
    def b(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def queries(self) -> int: ...
    @property
    def level(self) -> float: ...
    @property
    def parts(self) -> Mapping[str, float]: ...
    @property
    def place(self) -> str: ...
    @property
    def significant(self) -> bool: ...

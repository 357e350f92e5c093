"""Methods: what each learns from the queries to fit on, and its ranker at a strength.

A method is a frozen record of its options, in the file of its correction.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.data.collection import Collection
from ranktilt.data.group_names import REST
from ranktilt.data.run import Run
from ranktilt.errors import UserError
from ranktilt.measures.base import GroupEstimand
from ranktilt.mitigation.base import Fit
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.dense.direction import Direction
from ranktilt.spec import Stage


@dataclass(frozen=True, kw_only=True)
class FittingQueries:
    """Queries for methods to learn from, which test nothing, and the baseline's run of them."""

    collection: Collection
    """Collection with the queries to fit on."""
    run: Run
    """The baseline's run of these queries."""
    ranker: Ranker | None
    """The ranker behind the run; None where only the run is at hand."""
    pair: Pair
    """The reference, and the group that is compared with it."""
    groups: tuple[str, ...]
    """All groups of the collection that is levelled."""
    by: str = "source"
    page: int = 10
    """First ranks on which shares and exposure are fitted."""
    held_out: AbstractSet[str] = frozenset()
    """Origins that nothing may be learned from, because they are relevant to other queries."""
    foreign_name: str = ""
    """Name of the collection, where another one is levelled; its groups may be others."""
    folder: Path | None = None
    """Where fits are to be saved; None where they are not."""
    seed: int = 0

    def need_ranker(self, method: str) -> Ranker:
        """Return the ranker; refuse a saved run."""
        if self.ranker is None:
            raise UserError(
                f"{method} needs the ranker itself, and {self.run.name} is a saved run; leave it "
                "out"
            )
        return self.ranker

    def need_groups(self, names: Sequence[str]) -> None:
        """Refuse another collection that lacks a group."""
        if not self.foreign_name:
            return
        try:
            known = grouping(self.collection, self.by).names
        except UserError as error:
            raise UserError(f"{self.foreign_name}: {error}") from error
        lacking = next((name for name in names if name not in known), None)
        if lacking is not None:
            raise UserError(
                f"{self.foreign_name} has no {self.by} {lacking!r} to fit on "
                f"(valid: {', '.join(known)})"
            )

    def file(self, name: str) -> str:
        """Return the file of a fit of this ranker; its name alone where it is not saved."""
        ranker = re.sub(r"[^a-z0-9.]+", "-", self.run.name.lower())[:60].strip("-.") or "ranker"
        path = Path(f"{ranker}-{name}")
        return str(path if self.folder is None else self.folder / path)

    def group_value(self, question: GroupEstimand, group: str, opposite: str = "") -> float:
        """Return the run's answer about two groups; `opposite` is all the rest by default."""
        groups = grouping(self.collection, self.by, (group, opposite or REST))
        judgments = Judgments.from_collection(self.collection, groups)
        judged_run = JudgedRun.from_run(self.run, self.collection, judgments)
        code, number = judged_run.group_codes(groups), groups.index(group)
        second = (code >= 0) & (code != number)
        if opposite:
            second = code == groups.index(opposite)
        total, weight = question.columns(judged_run.ranking, code == number, second)
        return question.value(total, weight)


@dataclass(frozen=True, kw_only=True)
class FittedMethod:
    """A fitted method: its ranker at each strength, from 0, nothing, to 1."""

    full: Any
    """The correction, or the changed ranker, at strength 1."""
    fit: Fit | Direction | None = None
    """The numbers that were learned; None for a method without any."""
    file: str = ""
    """File of the fit, as rankers name it."""

    def at_strength(self, strength: float) -> Ranker:
        """Return the correction, or the changed ranker, at a strength."""
        ranker: Ranker = replace(self.full, strength=strength)
        return ranker


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to level a ranker, with its options."""

    name: ClassVar[str]
    largest_strength: ClassVar[float] = 1.0
    learns_from_twins: ClassVar[bool] = False
    """Whether it compares versions that differ in source, and so levels no other groups."""

    @property
    def label(self) -> str:
        """How a bench names it."""
        return self.name

    def __str__(self) -> str:
        options = {}
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name != "variant" and value != option.default:
                options[option.name] = "true" if value is True else str(value)
        return str(Stage(name=self.label, argument=None, options=options))

    @abstractmethod
    def fit(self, queries: FittingQueries) -> FittedMethod:
        """Learn from the queries to fit on; `UserError` says why it cannot."""

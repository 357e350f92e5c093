"""Methods: what each one learns from the queries to fit on, and its ranker at a strength.

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
    """Queries for methods to learn from, and the baseline's run of them.

    Nothing is tested on these queries.
    """

    collection: Collection
    """Collection with the queries to fit on."""
    run: Run
    """The baseline's run of these queries."""
    ranker: Ranker | None
    """The ranker behind the run; None for a saved run."""
    pair: Pair
    """The reference, and the group that is compared with it."""
    groups: tuple[str, ...]
    """All groups of the collection that is levelled."""
    by: str = "source"
    """Column of the groups."""
    page: int = 10
    """Number of first ranks on which shares and exposure are fitted."""
    held_out: AbstractSet[str] = frozenset()
    """Origins that nothing may be learned from, because they are relevant to other queries."""
    foreign_name: str = ""
    """Name of the collection, if it is another one than the levelled one; groups may differ."""
    folder: Path | None = None
    """Folder for fits; None if they are not saved."""
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
        """Return the run's answer about two groups.

        Without `opposite` all others are the second group.
        """
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
    """A fitted method: its ranker at each strength, from 0 (no effect) to 1."""

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
    """Name that users type."""
    largest_strength: ClassVar[float] = 1.0
    learns_from_twins: ClassVar[bool] = False
    """Whether it learns from twins; then it levels sources and no other groups."""

    @property
    def label(self) -> str:
        """Name in a bench."""
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
        """Learn from the queries to fit on; `UserError` says why that is impossible."""

"""Methods: ways to level a ranker, so that it favours no group over another.

A method is a frozen record of its options, in the file of its correction. `Method.fit` learns from
queries (`FittingQueries`) and returns a `FittedMethod`, which has a ranker for each strength, from
0 (nothing is changed) to 1 (the full correction). The *baseline* is the ranker to level; a *fit* is
a set of numbers that a method has learned. The *origin* of a document is the document from which
all versions of it were made.
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
from ranktilt.data.labels.group_names import REST
from ranktilt.data.runs.run import Run
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
    """All groups of the collection whose rankings are levelled."""
    by: str = "source"
    """Column of the groups."""
    page: int = 10
    """Number of first ranks on which shares and exposure are fitted."""
    held_out: AbstractSet[str] = frozenset()
    """Origins that nothing may be learned from, because they are relevant to other queries."""
    foreign_name: str = ""
    """Name of `collection` if methods learn from another collection than the one to level.

    Such a collection may lack a group that is to be levelled. Empty if it is the same collection.
    """
    folder: Path | None = None
    """Folder for fits; None if they are not saved."""
    seed: int = 0
    """Random seed of all draws."""

    def need_ranker(self, method: str) -> Ranker:
        """Return the ranker, for a method that must rank or score again; refuse a saved run."""
        if self.ranker is None:
            raise UserError(
                f"{method} needs the ranker itself, and {self.run.name} is a saved run; leave it "
                "out"
            )
        return self.ranker

    def need_groups(self, names: Sequence[str]) -> None:
        """Refuse to learn from another collection that lacks one of these groups."""
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
        """Return the path of a fit of this ranker; the file name alone if fits are not saved.

        The file name is the ranker's name, in characters that are valid on every file system, and
        `name`.
        """
        ranker = re.sub(r"[^a-z0-9.]+", "-", self.run.name.lower())[:60].strip("-.") or "ranker"
        path = Path(f"{ranker}-{name}")
        return str(path if self.folder is None else self.folder / path)

    def group_value(self, question: GroupEstimand, group: str, opposite: str = "") -> float:
        """Return the value of a question such as ``Share@10`` about two groups of the run.

        Parameters
        ----------
        question : GroupEstimand
            The question.
        group : str
            The first group; a positive share means that it is favoured.
        opposite : str, optional
            The second group; by default all other groups together.
        """
        groups = grouping(self.collection, self.by, (group, opposite or REST))
        judgments = Judgments.from_collection(self.collection, groups)
        judged_run = JudgedRun.from_run(self.run, self.collection, judgments)
        entry_groups = judged_run.group_codes(groups)  # below 0 for an entry without a group
        is_first = entry_groups == groups.index(group)
        is_second = (entry_groups >= 0) & ~is_first
        if opposite:
            is_second = entry_groups == groups.index(opposite)
        total, weight = question.columns(judged_run.ranking, is_first, is_second)
        return question.value(total, weight)


@dataclass(frozen=True, kw_only=True)
class FittedMethod:
    """A fitted method: a ranker for each strength."""

    full: Any
    """The correction, or the changed ranker, at strength 1.

    A `Ranker`; its type is left open because not every ranker has the field ``strength``.
    """
    fit: Fit | Direction | None = None
    """The numbers that were learned; None for a method that learns none."""
    file: str = ""
    """Path of the fit as the ranker's text has it, such as ``offset(fit=PATH)``; empty if none."""

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
    """Largest strength that can be tried."""
    learns_from_twins: ClassVar[bool] = False
    """Whether the method learns from twins: versions of one document by different sources.

    Such a method levels sources (authors) and no other groups.
    """

    @property
    def label(self) -> str:
        """Name in a bench."""
        return self.name

    def __str__(self) -> str:
        """Return the text from which `read_method` makes this method, without default options."""
        options = {}
        for option in fields(self):
            value = getattr(self, option.name)
            # The variant is in the label already: ``fair-rerank:exposure``.
            if option.name != "variant" and value != option.default:
                options[option.name] = "true" if value is True else str(value)
        return str(Stage(name=self.label, argument=None, options=options))

    @abstractmethod
    def fit(self, queries: FittingQueries) -> FittedMethod:
        """Learn from the queries to fit on.

        Raises
        ------
        UserError
            If that is impossible, with the reason. The method is then left out of the bench.
        """

"""Offsets: a constant for each group, fitted on training queries, that is added to the scores of its documents."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.errors import DataError, UserError, counted, join_words
from ranktilt.mitigation.base import (
    KEYS,
    Correction,
    Fit,
    Lists,
    fitted_on,
    read_fit,
    require_scale,
    scale_of,
)
from ranktilt.rankers.fit_provenance import query_keys
from ranktilt.statistics.bootstrap import interval, resampled_means

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GroupOffset:
    """What is to be added to the scores of one group."""

    group: str
    value: float
    """In the run's scores."""
    low: float
    high: float
    """95 % interval, by bootstrap over queries."""
    queries: int
    """Queries that had documents of both groups to compare."""


def _extent(offset: GroupOffset) -> str:
    """Say how exact an offset is: from one query or two nothing can be said."""
    queries = counted(offset.queries, "query", "queries")
    if math.isnan(offset.low):
        return f"{queries}, no interval"
    return f"95 % interval {_signed(offset.low)} to {_signed(offset.high)}, {queries}"


@dataclass(frozen=True, eq=False)
class OffsetFit(
    Fit, format="ranktilt-offset", version=1, noun="an offset fit", command="ranktilt mitigate"
):
    """The constants that `fit_offset` found; immutable."""

    by: str
    reference: str
    """The group whose scores stay."""
    offsets: tuple[GroupOffset, ...]

    @property
    def sentence(self) -> str:
        found = [
            f"{_signed(offset.value)} for {offset.group} ({_extent(offset)})"
            for offset in self.offsets
        ]
        return f"Scores match those of {self.reference} with {join_words(found)}."


def fit_offset(
    collection: Collection,
    run: Run,
    *,
    by: str = "source",
    reference: str | None = None,
    seed: int = 0,
) -> OffsetFit:
    """Find the constants that make the scores of all groups match those of one, by quantiles.

    In each query's list the i-th best document of a group is compared with the reference's document
    at the same quantile, counted from the top; the median of the differences is the query's, and
    the mean over queries the constant. A list cut at depth k holds the best of each group only, and
    more of the group that is favoured, so that quantiles of what the list holds would hide the
    tilt: quantiles are those of all documents of the group that the collection holds, of which the
    cut shows the uppermost, and compared is as far down as both groups are seen.
    """
    if not run.scored:
        raise UserError(f"an offset is fitted to scores, and {run.name} gives only an order")
    if not run.queries:
        raise UserError("no queries to fit on: the run has none")
    lists = Lists.of(collection, run, by)
    names = lists.groups.names
    number = lists.groups.number(names[0] if reference is None else reference)
    sizes = np.bincount(lists.groups.code[lists.groups.code >= 0], minlength=len(names))
    offsets = tuple(
        _offset(lists, (number, other), sizes, seed)
        for other in range(len(names))
        if other != number
    )
    spec = {
        "ranker": scale_of(str(run.spec.get("made_by") or run.name)),
        "seed": seed,
        "ranktilt": __version__,
        "collection": collection.spec.get("path"),
        KEYS: query_keys(collection, run.queries),
    }
    return OffsetFit(spec, run.queries, by, names[number], offsets)


def _signed(value: float) -> str:
    return f"{value:+.4g}".replace("-", "−")


def _offset(
    lists: Lists, pair: tuple[int, int], sizes: npt.NDArray[np.int64], seed: int
) -> GroupOffset:
    """Constant of the second group of a pair of numbers, the first being the reference."""
    gaps = list[float]()
    for _, part in lists.parts():
        one, two = (lists.run.scores[part][lists.group[part] == number] for number in pair)
        gaps.append(quantile_gap(one, two, *sizes[list(pair)]))
    found = np.array([gap for gap in gaps if not np.isnan(gap)])
    reference, name = (lists.groups.names[number] for number in pair)
    if not len(found):
        many = counted(len(lists.run.queries), "query", "queries")
        raise UserError(
            f"no offset for {name}: no list of the {many} to fit on lets it be compared with {reference}"
        )
    low, high, *_ = interval(resampled_means([found], seed=seed)[0])
    return GroupOffset(name, float(found.mean()), low, high, len(found))


def quantile_gap(first: Floats, second: Floats, n_first: int, n_second: int) -> float:
    """Median of the first scores less the second at equal quantiles, counted from the top; NaN if no two are seen.

    Both fall; `n_first` and `n_second` say how many scores there would be if none were cut off.
    """
    if n_second > n_first:
        return -quantile_gap(second, first, n_second, n_first)
    at = (np.arange(len(second)) + 0.5) / max(n_second, 1) * n_first - 0.5
    seen = at <= len(first) - 1 + 1e-9
    if not seen.any():
        return float("nan")
    return float(np.median(np.interp(at[seen], np.arange(len(first)), first) - second[seen]))


@dataclass(frozen=True)
class Offset(Correction):
    """Adds to each document's score the constant that was fitted for its group; documents of no group keep theirs.

    `strength` 0 leaves the run as it is, 1 adds the whole constant, 2 twice as much.
    """

    fit: str = field(default="", kw_only=True)
    strength: float = field(default=1.0, kw_only=True)

    name: ClassVar[str] = "offset"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.strength <= 2:
            raise UserError(f"{self.name}: expected a strength from 0 to 2, got {self.strength}")

    @property
    def reads_scores(self) -> bool:
        return True

    def rescored(self, lists: Lists) -> Floats:
        fit = read_fit(OffsetFit, self.fit, self.name)
        if fit.by != self.by:
            raise DataError(
                self.fit, f"was fitted to groups of {fit.by!r}, not of {self.by!r}: say by={fit.by}"
            )
        known = {fit.reference: 0.0} | {one.group: one.value for one in fit.offsets}
        strange = [name for name in lists.groups.names if name not in known]
        if strange:
            raise DataError(
                self.fit,
                f"was fitted to {join_words(list(known))}; here is {join_words(strange)} too",
            )
        require_scale(lists.run, self.fit, fit)
        lists.notes.update(fitted_on(self.fit, fit, lists.collection))
        if self.strength == 0:
            return lists.run.scores
        constants = np.array([*(known[name] for name in lists.groups.names), 0.0])
        return lists.run.scores + self.strength * constants[lists.group]

"""Offsets: a constant for each group, which is added to the scores of its documents.

The constants are fitted on other queries, so that the scores of all groups match those of one
group, the *reference*. A *fit* is such a set of constants, saved with how it was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, UserError, counted, join_words
from ranktilt.mitigation.base import QUERY_KEYS, Fit, FittedCorrection, Lists, scale_of
from ranktilt.mitigation.method import FittedMethod, FittingQueries, Method
from ranktilt.mitigation.remedy import GroupConstant, Rule
from ranktilt.rankers.fit_provenance import query_keys
from ranktilt.statistics.bootstrap import interval, resampled_means

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GroupOffset:
    """Constant to add to the scores of one group."""

    group: str
    """Name of the group."""
    value: float
    """Constant, in the unit of the run's scores."""
    low: float
    """Lower end of its 95 % interval by a bootstrap over queries; NaN with one or two queries."""
    high: float
    """Upper end of the 95 % interval; NaN with one or two queries."""
    queries: int
    """Number of queries whose lists have documents of both groups that can be compared."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OffsetFit(
    Fit, format="ranktilt-offset", version=1, noun="an offset fit", command="ranktilt mitigate"
):
    """Constants to add to the scores of each group; made by `fit_offset`."""

    by: str
    """Column of the groups."""
    reference: str
    """Group whose scores stay as they are."""
    offsets: tuple[GroupOffset, ...]
    """Constants of all other groups."""


def fit_offset(
    collection: Collection,
    run: Run,
    *,
    by: str = "source",
    reference: str | None = None,
    seed: int = 0,
) -> OffsetFit:
    """Find the constants that make the scores of all groups match those of the reference.

    In each query's list, the i-th best document of a group is compared with the reference's
    document at the same quantile, counted from the top. The median of the differences is the
    query's value, and the constant is the mean over queries.

    A list that is cut at depth k holds only the best documents of each group, and more documents of
    the favoured group. Quantiles among the documents of the list would hide this tilt. So quantiles
    are taken among all documents of the group in the collection. The list has the highest of them,
    and the comparison ends at the lowest quantile that the list has of both groups.

    Parameters
    ----------
    collection : Collection
        The documents with their groups.
    run : Run
        A run with scores; nothing may be tested on its queries.
    by : str, optional
        Column of the groups.
    reference : str, optional
        Group whose scores stay as they are; by default the first group.
    seed : int, optional
        Seed of the bootstrap.
    """
    if not run.scored:
        raise UserError(f"an offset is fitted to scores, and {run.name} gives only an order")
    if not run.queries:
        raise UserError("no queries to fit on: the run has none")
    lists = Lists.from_run(collection, run, by)
    names = lists.groups.names
    reference_number = lists.groups.index(names[0] if reference is None else reference)
    offsets = [
        _offset(lists, number, reference_number, seed)
        for number in range(len(names))
        if number != reference_number
    ]
    spec = {
        "ranker": scale_of(str(run.spec.get("made_by") or run.name)),
        "seed": seed,
        "ranktilt": __version__,
        "collection": collection.spec.get("path"),
        QUERY_KEYS: query_keys(collection, run.queries),
    }
    return OffsetFit(
        spec=spec,
        queries=run.queries,
        by=by,
        reference=names[reference_number],
        offsets=tuple(offsets),
    )


def _offset(lists: Lists, number: int, reference_number: int, seed: int) -> GroupOffset:
    """Return the constant of a group; groups are given as their indices in `lists.groups`."""
    code = lists.groups.code  # of each document in the collection; −1 without a group
    sizes = np.bincount(code[code >= 0], minlength=len(lists.groups.names))
    name, reference = lists.groups.names[number], lists.groups.names[reference_number]
    gaps = list[float]()
    for _query, span in lists.slices():
        scores, group = lists.run.scores[span], lists.group[span]
        gap = quantile_gap(
            scores[group == reference_number],
            scores[group == number],
            int(sizes[reference_number]),
            int(sizes[number]),
        )
        if not np.isnan(gap):
            gaps.append(gap)
    if not gaps:
        queries = counted(len(lists.run.queries), "query", "queries")
        raise UserError(
            f"no offset for {name}: no list of the {queries} to fit on allows a comparison with "
            f"{reference}"
        )
    values = np.array(gaps)
    ends = interval(resampled_means([values], seed=seed)[0])
    return GroupOffset(
        group=name, value=float(values.mean()), low=ends.low, high=ends.high, queries=len(values)
    )


def quantile_gap(first: Floats, second: Floats, n_first: int, n_second: int) -> float:
    """Return the median difference of two groups' scores at equal quantiles: first minus second.

    Parameters
    ----------
    first, second : ndarray of float64
        The scores of each group in a list, falling.
    n_first, n_second : int
        Number of scores that each group would have in a list of the whole collection. Those in the
        list are the largest of them.

    Returns
    -------
    float
        NaN if no two scores can be compared.
    """
    if n_second > n_first:  # compare at the quantiles of the smaller group
        return -quantile_gap(second, first, n_second, n_first)
    # The i-th of n scores (from 0) is at the quantile (i + ½) / n. These are the positions in
    # `first` at the same quantiles as the scores of `second`; they need not be whole numbers.
    positions = (np.arange(len(second)) + 0.5) / max(n_second, 1) * n_first - 0.5
    is_shown = positions <= len(first) - 1 + 1e-9  # the rest of the first group was cut off
    if not is_shown.any():
        return float("nan")
    at_equal_quantiles = np.interp(positions[is_shown], np.arange(len(first)), first)
    return float(np.median(at_equal_quantiles - second[is_shown]))


@dataclass(frozen=True)
class Offset(FittedCorrection):
    """Add to each document's score the constant that was fitted for its group.

    Documents without a group keep their scores. At `strength` 0 a run stays as it is, at 1 the
    whole constant is added, and at 2 twice as much.
    """

    name: ClassVar[str] = "offset"
    fit_kind: ClassVar[type[Fit]] = OffsetFit
    largest_strength: ClassVar[float] = 2.0

    def rule(self) -> Rule:
        fitted = cast(OffsetFit, self.fitted)
        constants = [
            GroupConstant(group=offset.group, value=self.strength * offset.value)
            for offset in fitted.offsets
        ]
        return Rule(
            method=self.name,
            reads="scores",
            scale=str(fitted.spec["ranker"]),
            offsets=(GroupConstant(group=fitted.reference, value=0.0), *constants),
            parameters={"strength": self.strength},
        )

    def rescore(self, lists: Lists) -> Floats:
        fitted = cast(OffsetFit, self.fitted)
        if fitted.by != self.by:
            message = (
                f"was fitted to groups of {fitted.by!r}, not of {self.by!r}: set by={fitted.by}"
            )
            raise DataError(self.fit, message)
        constants = {offset.group: offset.value for offset in fitted.offsets}
        constants[fitted.reference] = 0.0
        unknown_groups = [name for name in lists.groups.names if name not in constants]
        if unknown_groups:
            groups = [fitted.reference, *(offset.group for offset in fitted.offsets)]
            message = (
                f"was fitted to {join_words(groups)}; these lists also have "
                f"{join_words(unknown_groups)}"
            )
            raise DataError(self.fit, message)
        self.require_scale(lists.run)
        if self.strength == 0:
            return lists.run.scores
        # Documents without a group have the index −1, which reads the 0 at the end.
        constant_of_group = np.array([*(constants[name] for name in lists.groups.names), 0.0])
        return lists.run.scores + self.strength * constant_of_group[lists.group]


@dataclass(frozen=True, kw_only=True)
class OffsetMethod(Method):
    """Add a constant to the scores of each group."""

    name: ClassVar[str] = "offset"
    largest_strength: ClassVar[float] = Offset.largest_strength

    def fit(self, queries: FittingQueries) -> FittedMethod:
        queries.need_groups(queries.groups)
        fit = fit_offset(
            queries.collection,
            queries.run,
            by=queries.by,
            reference=queries.pair[0],
            seed=queries.seed,
        )
        file = queries.file("offset.json")
        return FittedMethod(full=Offset(fit=file, by=queries.by, learned=fit), fit=fit, file=file)

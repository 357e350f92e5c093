"""Sum up comparisons of several groups: which stand apart, and which cannot be distinguished.

With three groups or more, an audit compares every two of them. The *lead* of a group is the mean of
its answers against all other groups, measured from the neutral value, which favours neither. Groups
are sorted by it. A *display* is a compact letter display: each group gets letters, and two groups
that share a letter cannot be distinguished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import Audit
from ranktilt.statistics.letters import compact_letters, letter_sets

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
FEWEST_GROUPS = 3
"""Fewest groups to sum up; two groups have a single verdict."""


@dataclass(frozen=True, kw_only=True)
class GroupStanding:
    """How one run treats one group compared with all others."""

    run: str
    """Name of the run."""
    group: str
    """Name of the group."""
    lead: float
    """Mean of the answers to the primary question against each other group, minus neutral.

    Above 0, the group is favoured. NaN if no answer is defined.
    """
    low: float
    """Lower end of the lead's interval: the mean of the lower ends of the answers' intervals.

    The standard error of a mean is at most the mean of the standard errors. So the interval of the
    lead is rather too wide than too narrow.
    """
    high: float
    """Upper end of the lead's interval: the mean of the upper ends."""
    over: int
    """Number of groups that this group is favoured over, after the correction for several tests."""
    under: int
    """Number of groups that are favoured over this group."""
    letters: str
    """Letters such as ``ab``.

    Two groups that share a letter cannot be distinguished: no verdict favours either.
    """


@dataclass(frozen=True, kw_only=True)
class GroupDisplay:
    """How one run treats all groups, with the most favoured group first."""

    run: str
    """Name of the run."""
    standings: tuple[GroupStanding, ...]
    """Standing of each group."""
    sets: tuple[tuple[str, ...], ...]
    """Names of the groups with each letter; none of them is favoured over another."""
    level: int
    """Number of pairs of groups whose verdict is "level"."""

    @property
    def pairs(self) -> int:
        """Number of pairs of groups."""
        return len(self.standings) * (len(self.standings) - 1) // 2

    @property
    def is_in_order(self) -> bool:
        """Whether each group is favoured over all groups after it."""
        last = len(self.standings) - 1
        return all(
            (row.under, row.over) == (rank, last - rank) for rank, row in enumerate(self.standings)
        )

    @property
    def apart(self) -> tuple[GroupStanding, ...]:
        """Groups that can be distinguished from every other group."""
        other_count = len(self.standings) - 1
        return tuple(row for row in self.standings if row.over + row.under == other_count)


def group_displays(audit: Audit) -> tuple[GroupDisplay, ...]:
    """Return a display for each run of an audit with three groups or more.

    Its verdicts answer the primary question, with the audit's correction. Nothing is returned if
    the question is about all groups together, or if some pairs were not compared.
    """
    pairs = audit.judged_pairs
    groups = list(dict.fromkeys(chain.from_iterable(pairs)))
    compares_two = audit.primary is not None and audit.primary.sided
    is_complete = len(pairs) == len(groups) * (len(groups) - 1) // 2
    if len(groups) < FEWEST_GROUPS or not compares_two or not is_complete:
        return ()
    return tuple(_display(audit, run, groups) for run in audit.runs)


def _answers(audit: Audit, run: str) -> Iterator[Effect]:
    """Yield the answer of a run to the primary question for each pair of groups."""
    # An answer can be both among the tilts and on the card, perhaps with its groups in the other
    # order. It counts once.
    answered: set[frozenset[str]] = set()
    for effect in (*audit.tilts, *audit.card):
        pair = frozenset((effect.a, effect.b))
        is_answer = effect.run == run and effect.measure == repr(audit.primary)
        if is_answer and pair not in answered:
            answered.add(pair)
            yield effect


def _display(audit: Audit, run: str, groups: list[str]) -> GroupDisplay:
    """Sum up the verdicts of one run: the groups' leads, their order and letters."""
    count, answers = len(groups), list(_answers(audit, run))
    group_indexes = {group: index for index, group in enumerate(groups)}
    # In all four tables, row a is what group a has over each other group.
    leads, lows, highs = (np.full((count, count), np.nan) for _ in range(3))
    is_over = np.zeros((count, count), dtype=bool)
    for effect in answers:
        a, b = group_indexes[effect.a], group_indexes[effect.b]
        leads[a, b] = effect.value - effect.neutral
        leads[b, a] = -leads[a, b]
        lows[a, b], highs[a, b] = effect.low - effect.neutral, effect.high - effect.neutral
        lows[b, a], highs[b, a] = -highs[a, b], -lows[a, b]
        is_over[a, b], is_over[b, a] = effect.favours == "a", effect.favours == "b"
    is_defined = ~np.isnan(leads)
    mean_leads, mean_lows, mean_highs = (
        _row_means(values, is_defined) for values in (leads, lows, highs)
    )
    # The largest lead comes first, groups without a lead last.
    order = np.argsort(-np.nan_to_num(mean_leads, nan=-np.inf), kind="stable")
    is_over = is_over[np.ix_(order, order)]
    differs = is_over | is_over.T
    letters = compact_letters(differs)
    names = [groups[index] for index in order]
    standings = []
    for rank, (name, index) in enumerate(zip(names, order, strict=True)):
        standing = GroupStanding(
            run=run,
            group=name,
            lead=float(mean_leads[index]),
            low=float(mean_lows[index]),
            high=float(mean_highs[index]),
            over=int(is_over[rank].sum()),
            under=int(is_over[:, rank].sum()),
            letters=letters[rank],
        )
        standings.append(standing)
    sets = [_names_at(names, ranks) for ranks in letter_sets(differs)]
    level = sum(effect.verdict(audit.margin) == "level" for effect in answers)
    return GroupDisplay(run=run, standings=tuple(standings), sets=tuple(sets), level=level)


def _names_at(names: list[str], ranks: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the groups at these ranks."""
    return tuple(names[rank] for rank in ranks)


def _row_means(values: Floats, is_defined: Bools) -> Floats:
    """Return the mean of the defined values of each row; NaN for a row without any."""
    counts = is_defined.sum(axis=1)
    means: Floats = np.where(is_defined, values, 0).sum(axis=1) / np.maximum(counts, 1)
    return np.where(counts > 0, means, np.nan)

"""Sum up comparisons of several groups: which stand apart, and which cannot be distinguished."""

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
    """Number of groups that it is favoured over, after correction."""
    under: int
    """Number of groups that are favoured over it."""
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
    """Groups that have each letter: none of them is favoured over another."""
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
        """Groups that have a verdict against every other group."""
        others = len(self.standings) - 1
        return tuple(row for row in self.standings if row.over + row.under == others)


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
    # An answer can be among the tilts and on the card, there perhaps with the groups the other way
    # round. It counts once.
    answered = set[frozenset[str]]()
    for effect in (*audit.tilts, *audit.card):
        pair = frozenset((effect.a, effect.b))
        is_answer = effect.run == run and effect.measure == repr(audit.primary)
        if is_answer and pair not in answered:
            answered.add(pair)
            yield effect


def _display(audit: Audit, run: str, groups: list[str]) -> GroupDisplay:
    """Sum up the verdicts of one run: leads, their order and letters."""
    count, answers = len(groups), list(_answers(audit, run))
    index_of = {group: index for index, group in enumerate(groups)}
    leads, lows, highs = (np.full((count, count), np.nan) for _ in range(3))
    is_over = np.zeros((count, count), dtype=bool)
    for effect in answers:
        a, b = index_of[effect.a], index_of[effect.b]
        # Row a has the leads of group a over each other group.
        leads[a, b] = effect.value - effect.neutral
        leads[b, a] = -leads[a, b]
        lows[a, b], highs[a, b] = effect.low - effect.neutral, effect.high - effect.neutral
        lows[b, a], highs[b, a] = -highs[a, b], -lows[a, b]
        is_over[a, b], is_over[b, a] = effect.favours == "a", effect.favours == "b"
    defined = ~np.isnan(leads)
    mean_lead, mean_low, mean_high = (_means(values, defined) for values in (leads, lows, highs))
    order = np.argsort(-np.nan_to_num(mean_lead, nan=-np.inf), kind="stable")
    is_over = is_over[np.ix_(order, order)]
    differs = is_over | is_over.T
    letters = compact_letters(differs)
    names = [groups[index] for index in order]
    standings = []
    for rank, (name, position) in enumerate(zip(names, order, strict=True)):
        over, under = int(is_over[rank].sum()), int(is_over[:, rank].sum())
        standing = GroupStanding(
            run=run,
            group=name,
            lead=float(mean_lead[position]),
            low=float(mean_low[position]),
            high=float(mean_high[position]),
            over=over,
            under=under,
            letters=letters[rank],
        )
        standings.append(standing)
    sets = [_members(names, members) for members in letter_sets(differs)]
    level = sum(effect.verdict(audit.margin) == "level" for effect in answers)
    return GroupDisplay(run=run, standings=tuple(standings), sets=tuple(sets), level=level)


def _means(values: Floats, defined: Bools) -> Floats:
    """Return the mean of each row over its defined answers; NaN where none is defined."""
    means: Floats = np.where(defined, values, 0).sum(axis=1) / np.maximum(defined.sum(axis=1), 1)
    return np.where(defined.any(axis=1), means, np.nan)


def _members(names: list[str], members: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the groups with these positions."""
    return tuple(names[member] for member in members)

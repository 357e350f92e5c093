"""Sentences about several groups: which lead, and which cannot be distinguished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from ranktilt.auditing.answer.group_standings import GroupDisplay, GroupStanding
from ranktilt.errors import counted, join_words

_MOST_NAMED = 6
"""Most groups that a sentence names."""
_MOST_SETS = 4
"""Most sets of groups that a sentence names."""
_MOST_IN_HEADLINE = 8
"""Names in sets of groups that a headline can hold; a group counts in each of its sets."""


def display_sentence(display: GroupDisplay) -> str:
    """Say which groups stand apart from all others, and which cannot be distinguished."""
    groups = [standing.group for standing in display.standings]
    if display.level == display.pairs:
        return f"{display.run}: all {len(groups)} groups are level with one another"
    if len(display.sets) == 1:
        return f"{display.run}: none of the {len(groups)} groups can be distinguished from another"
    if len(display.apart) == len(groups):
        order = (
            ", the most favoured first" if display.is_in_order else ", though in no single order"
        )
        names = _few_names(groups)
        return f"{display.run}: every group stands apart from all others{order}: {names}"
    return f"{display.run}: {'; '.join([*_apart_clauses(display), *_set_clauses(display)])}"


def display_headline(display: GroupDisplay) -> str:
    """Say the same in few words where sets of groups overlap: who leads, and who is behind."""
    sets = [members for members in display.sets if len(members) > 1]
    if len(sets) < 2 or sum(map(len, sets)) <= _MOST_IN_HEADLINE:
        return display_sentence(display)
    leader = max(display.standings, key=attrgetter("over"))
    last = max(reversed(display.standings), key=attrgetter("under"))
    differing = sum(standing.over for standing in display.standings)
    others = len(display.standings) - 1
    return (
        f"{display.run} favours {leader.group} over {leader.over} of {others} other groups, and "
        f"{counted(last.under, 'group', 'groups')} over {last.group}; "
        f"{display.pairs - differing} of {display.pairs} pairs cannot be distinguished"
    )


def _apart_clauses(display: GroupDisplay) -> Iterator[str]:
    """Say which groups are favoured over all others, over some of them, or over none."""
    above = [standing.group for standing in display.apart if not standing.under]
    below = [standing.group for standing in display.apart if not standing.over]
    between = [standing for standing in display.apart if standing.over and standing.under]
    if above:
        yield f"{join_words(above)} is favoured over all others"
    for standing in between:
        yield f"{standing.group} is favoured over {_counts(standing)}"
    if below:
        yield f"all others are favoured over {join_words(below)}"


def _counts(standing: GroupStanding) -> str:
    """Say over how many other groups a group is favoured, and how many are favoured over it."""
    over = counted(standing.over, "other", "others")
    return (
        f"{over}, and {standing.under:,} {'is' if standing.under == 1 else 'are'} favoured over it"
    )


def _set_clauses(display: GroupDisplay) -> Iterator[str]:
    """Name the groups of each set of groups that cannot be distinguished; a letter is a set."""
    sets = [members for members in display.sets if len(members) > 1]
    for index, members in enumerate(sets[:_MOST_SETS]):
        names = _few_names(members)
        yield f"nor can {names}" if index else f"{names} cannot be distinguished"
    if len(sets) > _MOST_SETS:
        yield f"{len(sets) - _MOST_SETS} more such sets are in the table of groups"


def _few_names(names: Sequence[str]) -> str:
    """Name groups, the most favoured first; of many the first few."""
    more = len(names) - _MOST_NAMED
    return join_words([*names[:_MOST_NAMED], f"{more} more"] if more > 1 else list(names))

"""Sentences about several groups of documents: which lead, and which cannot be distinguished.

Each pair of groups is compared. A standing counts over how many groups a group is favoured
(``over``), and how many are favoured over it (``under``). A set holds groups of which no two can be
distinguished, and a group can be in several sets; a group that can be distinguished from all others
is apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from ranktilt.auditing.answer.group_standings import GroupDisplay, GroupStanding
from ranktilt.errors import counted, join_words
from ranktilt.reporting.sentences.grammar import singular_or_plural

_MOST_NAMED = 6
"""Most groups that a sentence names."""
_MOST_SETS = 4
"""Most sets of groups that a sentence names."""
_MOST_IN_HEADLINE = 8
"""Most names in all sets together that a headline lists; a group counts in each of its sets."""


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
    """Say who leads and who is behind, where the sets have too many names for a headline.

    Otherwise the headline is `display_sentence`.
    """
    sets = [members for members in display.sets if len(members) > 1]
    if len(sets) < 2 or sum(map(len, sets)) <= _MOST_IN_HEADLINE:
        return display_sentence(display)
    leader = max(display.standings, key=attrgetter("over"))
    last = max(reversed(display.standings), key=attrgetter("under"))
    distinguished_pairs = sum(standing.over for standing in display.standings)
    other_groups = len(display.standings) - 1
    return (
        f"{display.run} favours {leader.group} over {leader.over} of {other_groups} other groups, "
        f"and {counted(last.under, 'group', 'groups')} over {last.group}; "
        f"{display.pairs - distinguished_pairs} of {display.pairs} pairs cannot be distinguished"
    )


def _apart_clauses(display: GroupDisplay) -> Iterator[str]:
    """Say of each group apart whether it is favoured over all others, some of them, or none."""
    # One group at most is above all others, and one below.
    above = [standing.group for standing in display.apart if not standing.under]
    below = [standing.group for standing in display.apart if not standing.over]
    between = [standing for standing in display.apart if standing.over and standing.under]
    if above:
        yield f"{join_words(above)} is favoured over all others"
    for standing in between:
        yield f"{standing.group} is favoured over {_over_and_under(standing)}"
    if below:
        yield f"all others are favoured over {join_words(below)}"


def _over_and_under(standing: GroupStanding) -> str:
    """Say over how many other groups a group is favoured, and how many are favoured over it."""
    over = counted(standing.over, "other", "others")
    are = singular_or_plural(standing.under, "is", "are")
    return f"{over}, and {standing.under:,} {are} favoured over it"


def _set_clauses(display: GroupDisplay) -> Iterator[str]:
    """Name the groups of each set that cannot be distinguished; a group apart has a set alone."""
    sets = [members for members in display.sets if len(members) > 1]
    for index, members in enumerate(sets[:_MOST_SETS]):
        names = _few_names(members)
        yield f"nor can {names}" if index else f"{names} cannot be distinguished"
    if len(sets) > _MOST_SETS:
        more_sets = counted(len(sets) - _MOST_SETS, "more such set is", "more such sets are")
        yield f"{more_sets} in the table of groups"


def _few_names(names: Sequence[str]) -> str:
    """Name groups, the most favoured first; the first few of many."""
    more = len(names) - _MOST_NAMED
    return join_words([*names[:_MOST_NAMED], f"{more} more"] if more > 1 else list(names))

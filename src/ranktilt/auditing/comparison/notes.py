"""Notes of a comparison: what its reader should know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from ranktilt.auditing.comparison.match import Match
from ranktilt.auditing.effects import FEW_QUERIES, Change
from ranktilt.data.notes.base import GroupPair, Note, warnings_of
from ranktilt.data.notes.comparisons import (
    ChangeResamplesDropped,
    ChangeUndefined,
    FewQueriesCompared,
    TiltsFromMedians,
)
from ranktilt.data.notes.repeats import RepeatCountsDiffer
from ranktilt.statistics.bootstrap import FEWEST_ROWS


def warnings_of_both(new: Sequence[Note], old: Sequence[Note]) -> tuple[Note, ...]:
    """List the warnings of both results once, and then those of one result alone."""
    both = [note for note in new if note in old]
    warnings = list(warnings_of(both))
    for side, notes in (("new", new), ("old", old)):
        warnings += [note.within("side", side) for note in warnings_of(notes) if note not in both]
    return tuple(warnings)


def change_notes(
    contrasts: Sequence[Change], means: Sequence[Change], resamples: int
) -> Iterator[Note]:
    """Note what a comparison leaves out or has few data for, and where its tilts have a median."""
    yield from _undefined(contrasts)
    fewest = min((change.queries for change in (*contrasts, *means)), default=FEW_QUERIES)
    if fewest < FEW_QUERIES:
        yield FewQueriesCompared(queries=fewest)
    dropped = [change.dropped for change in contrasts if change.queries >= FEWEST_ROWS]
    if any(dropped):
        yield ChangeResamplesDropped(dropped=max(dropped), resamples=resamples)
    uneven = dict.fromkeys(
        GroupPair(a=change.a, b=change.b)
        for change in contrasts
        if not change.twins and change.estimand.sided and _is_from_medians(change)
    )
    if uneven:
        yield TiltsFromMedians(pairs=tuple(uneven))


def match_notes(matched: Match) -> Iterator[Note]:
    """Give the notes of a match, and note pairs of runs with different numbers of repeats."""
    yield from matched.notes
    yield from repeat_count_notes(matched)


def repeat_count_notes(matched: Match) -> Iterator[RepeatCountsDiffer]:
    """Note pairs of runs with different numbers of repeats."""
    for new_run, old_run in matched.runs:
        new_repeats = matched.new.repeat_count(new_run)
        old_repeats = matched.old.repeat_count(old_run)
        if new_repeats != old_repeats:
            yield RepeatCountsDiffer(
                run=new_run, old_run=old_run, new_repeats=new_repeats, old_repeats=old_repeats
            )


def _is_from_medians(change: Change) -> bool:
    """Return whether medians are neutral, as where neither run has twins; see `neutral_values`."""
    neutral = change.estimand.neutral
    return not change.neutral_new == change.neutral_old == neutral


def _undefined(contrasts: Sequence[Change]) -> Iterator[Note]:
    """Note in how many queries each question is not defined under both runs.

    Of a pair of groups only the largest number is noted.
    """
    most: dict[tuple[GroupPair | None, str], Change] = {}
    for change in sorted(contrasts, key=attrgetter("excluded")):
        if not change.excluded:
            continue
        groups = GroupPair(a=change.a, b=change.b) if change.of_tilt else None
        most[groups, "" if change.of_tilt else change.name] = change
    for (groups, question), change in most.items():
        yield ChangeUndefined(
            groups=groups,
            question=question,
            excluded=change.excluded,
            queries=change.queries + change.excluded,
        )

"""Notes of a comparison: what its reader should know.

A function here decides which notes apply; `reporting/sentences/notes` has their words. A *change*
is an answer of the new run minus that of the old one. If groups are not twins (two versions of each
document), answers are measured from a *median*: that of the answers that random labels would give.
"""

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
    """Return the warnings that both results have, and then those that only one of them has.

    The latter say which result they are about, the new or the old one.
    """
    shared = [note for note in new if note in old]
    warnings = list(warnings_of(shared))
    for side, notes in (("new", new), ("old", old)):
        warnings += [note.within("side", side) for note in warnings_of(notes) if note not in shared]
    return tuple(warnings)


def change_notes(
    contrasts: Sequence[Change], means: Sequence[Change], resamples: int
) -> Iterator[Note]:
    """Yield the notes on changes: what is undefined, rests on few queries, or has medians.

    `contrasts` are changes of answers about groups, and `means` those of effectiveness. The tilts
    of groups that are no twins are measured from medians under random labels.
    """
    yield from _undefined_notes(contrasts)
    fewest = min((change.queries for change in (*contrasts, *means)), default=FEW_QUERIES)
    if fewest < FEW_QUERIES:
        yield FewQueriesCompared(queries=fewest)
    dropped = [change.dropped for change in contrasts if change.queries >= FEWEST_ROWS]
    if any(dropped):
        yield ChangeResamplesDropped(dropped=max(dropped), resamples=resamples)
    pairs_with_medians = dict.fromkeys(
        GroupPair(a=change.a, b=change.b)
        for change in contrasts
        if not change.twins and change.estimand.sided and _is_from_medians(change)
    )
    if pairs_with_medians:
        yield TiltsFromMedians(pairs=tuple(pairs_with_medians))


def match_notes(matched: Match) -> Iterator[Note]:
    """Yield the notes of a match, and those on pairs of runs with different numbers of repeats.

    A repeat is one of several rankings by the same ranker.
    """
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
    """Return whether a neutral value is a median, and not the neutral value of the estimand."""
    neutral = change.estimand.neutral
    return not change.neutral_new == change.neutral_old == neutral


def _undefined_notes(contrasts: Sequence[Change]) -> Iterator[Note]:
    """Note in how many queries each question is not defined under both runs.

    The measures of Relative Δ share a note for each pair of groups, with the largest number.
    """
    largest: dict[tuple[GroupPair | None, str], Change] = {}
    # In rising order, so that the largest number of a key remains.
    for change in sorted(contrasts, key=attrgetter("excluded")):
        if not change.excluded:
            continue
        groups = GroupPair(a=change.a, b=change.b) if change.of_tilt else None
        question = "" if change.of_tilt else change.name
        largest[groups, question] = change
    for (groups, question), change in largest.items():
        yield ChangeUndefined(
            groups=groups,
            question=question,
            excluded=change.excluded,
            queries=change.queries + change.excluded,
        )

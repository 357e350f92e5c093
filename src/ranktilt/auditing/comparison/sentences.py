"""A comparison in words."""

from __future__ import annotations

from ranktilt.auditing.answer.verdict import across, probability
from ranktilt.auditing.effects import ALPHA, Change
from ranktilt.errors import counted
from ranktilt.measures.base import Measure


def contrast_sentence(change: Change) -> str:
    """Say in words how a run's tilt, or its answer to another question about groups, moved, and whether it grew."""
    of, old, front = change.estimand, _than(change), f"{change.run}: "
    groups = f" for both {change.a} and {change.b}" if of.sided else ""
    if change.queries == 0:
        return f"{front}nothing to compare: no query has a value{groups}"
    if change.value != change.value:
        side = "the new run" if change.new != change.new else "the old run"
        why = f"is 0 for {change.a} and {change.b}" if change.of_tilt else "is undefined"
        return f"{front}no comparison with {old}: {change.measure} of {side} {why}"
    name, where = ("Relative Δ", f" on {change.measure}") if change.of_tilt else (change.name, "")
    numbers = f"{name} {of.answer(change.new)} against {of.answer(change.old)}{where}, {_difference(change)}"
    if not change.shown:
        what = "tilt" if change.of_tilt else name
        return f"{front}no difference in {what} from {old} shown; {_could(change)}; {numbers}"
    if not of.sided:
        return f"{change.run} has a {'higher' if change.value > 0 else 'lower'} {name} than {old}: {numbers}"
    side = change.a if change.value > 0 else change.b
    front = f"{change.run} lies {_size(change, change.value)} further toward {side} than {old}"
    return f"{front}: {numbers}; {growth_words(change)}"


def growth_words(change: Change) -> str:
    """Say whether the tilt itself grew or shrank, whichever way it points, or that this is open."""
    low, high = (change.amount(end, sign=True) for end in (change.growth_low, change.growth_high))
    if change.growth_low <= 0 <= change.growth_high:
        growth = f"{change.amount(change.growth, sign=True)}{change.unit}"
        return f"whether {_tilt_itself(change)} grew or shrank is open: {growth} [{low}, {high}]"
    word = "grew" if change.growth_low > 0 else "shrank"
    return f"{_tilt_itself(change)} {word} by {_size(change, change.growth)}, change [{low}, {high}]"


def _tilt_itself(change: Change) -> str:
    return "the tilt itself" if change.twins else "its distance from the median of random labels"


def mean_sentence(change: Change) -> str:
    """Say in words how a run's effectiveness moved."""
    old = _than(change)
    if change.queries == 0:
        return f"{change.run}: nothing to compare: no query has a value of {change.measure} under both runs"
    numbers = f"{change.measure} {change.new:.1f} % against {change.old:.1f} %, {_difference(change)}"
    if change.shown:
        word = "more" if change.value > 0 else "less"
        return f"{change.run} is {word} effective than {old}: {numbers}"
    return f"{change.run}: no difference in effectiveness from {old} shown; {_could(change)}; {numbers}"


def _difference(change: Change) -> str:
    difference = f"difference {change.amount(change.value, sign=True)}{change.unit}"
    return f"{difference} [{', '.join(change.ends)}], corrected p {probability(change.p_corrected)}"


def _size(change: Change, value: float) -> str:
    return f"{change.amount(abs(value), sign=False)}{change.unit}"


def _than(change: Change) -> str:
    return "its old run" if change.run == change.old_run else change.old_run


def _could(change: Change) -> str:
    queries = counted(change.queries, "query", "queries")
    if change.error == 0:
        return f"every resample of {queries} says the same"
    if change.p_corrected < ALPHA:
        return across(change.p_corrected, "0")
    low, high = change.estimand.bounds
    if change.detectable > (high - low) * (100 if isinstance(change.estimand, Measure) else 1):
        return f"{queries} could not detect any difference"
    these = "this query" if change.queries == 1 else f"these {queries}"
    return f"{these} could detect one of {_size(change, change.detectable)} or more"

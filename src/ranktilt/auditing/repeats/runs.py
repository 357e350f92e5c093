"""What an audit keeps of repeated runs: means of their values, and notes on what is odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.repeats.average import average_defined
from ranktilt.auditing.repeats.components import RepeatComponents
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.repeats import RepeatDepthsDiffer, RepeatsDiffer, RepeatsIdentical
from ranktilt.data.runs.repeats import name_of_repeat
from ranktilt.data.runs.run import Run
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.bootstrap import shared_numbering

_LEVEL = 0.05
"""Level of the test that repeats differ as wholes."""


def repeats_by_name(judged_runs: Sequence[JudgedRun]) -> dict[str, list[JudgedRun]]:
    """Return the repeats of each run; a single run is its only one."""
    repeats_of: dict[str, list[JudgedRun]] = {}
    for judged_run in judged_runs:
        repeats_of.setdefault(judged_run.run.name, []).append(judged_run)
    return repeats_of


def mean_values(judged_runs: Sequence[JudgedRun], values: Floats) -> Floats:
    """Return the values of each run, averaged over its repeats, from those of all repeats."""
    names = [judged_run.run.name for judged_run in judged_runs]
    means = []
    for name in dict.fromkeys(names):
        indices = np.flatnonzero([repeat_name == name for repeat_name in names])
        is_single = len(indices) == 1
        means.append(values[indices[0]] if is_single else average_defined(values[indices]))
    return np.stack(means)


def summed_pair_counts(counts: pl.DataFrame) -> pl.DataFrame:
    """Add up wins, losses and ties of the repeats of each run."""
    keys = ["run", "a", "b", "query", "relevant"]
    return counts.group_by(keys, maintain_order=True).agg(pl.all().sum())


def queries_repeated(judged_runs: Sequence[JudgedRun]) -> dict[str, dict[str, str]]:
    """Return each run's queries that repeat an earlier one, in every repeat of the run.

    Runs without any are left out.
    """
    repeated = {}
    for name, repeats in repeats_by_name(judged_runs).items():
        numbering = shared_numbering([repeat.distinct for repeat in repeats])
        queries = repeats[0].repeated if len(repeats) == 1 else _firsts(repeats[0], numbering)
        if queries:
            repeated[name] = queries
    return repeated


def content_repeated(judged_runs: Sequence[JudgedRun]) -> dict[str, dict[str, str]]:
    """Return each run's queries that say something twice, in every repeat of the run."""
    repeated = {}
    for name, repeats in repeats_by_name(judged_runs).items():
        common = set(repeats[0].repeated_by_content.items())
        for repeat in repeats[1:]:
            common &= set(repeat.repeated_by_content.items())
        in_order = {
            query: earlier
            for query, earlier in repeats[0].repeated_by_content.items()
            if (query, earlier) in common
        }
        if in_order:
            repeated[name] = in_order
    return repeated


def _firsts(judged_run: JudgedRun, numbering: Ints | None) -> dict[str, str]:
    """Return the queries of a numbering that repeat an earlier one, each with the first."""
    if numbering is None:
        return {}
    judgments = judged_run.judgments
    _, first, group = np.unique(numbering, return_index=True, return_inverse=True)
    return {
        judgments.queries[index]: judgments.queries[earliest]
        for index, earliest in enumerate(first[group])
        if index != earliest and judgments.known_query[index]
    }


def named_repeats(judged_runs: Sequence[JudgedRun]) -> Iterator[JudgedRun]:
    """Yield the judged runs, those of a repeated run under names of their own, for notes."""
    for name, repeats in repeats_by_name(judged_runs).items():
        if len(repeats) == 1:
            yield repeats[0]
            continue
        for number, repeat in enumerate(repeats, start=1):
            spec = {**repeat.run.spec, "alias": name_of_repeat(name, number)}
            yield replace(repeat, run=replace(repeat.run, spec=spec))


def distinct_rankings(judged_runs: Sequence[JudgedRun]) -> Iterator[JudgedRun]:
    """Yield the judged runs without repeats that equal an earlier one of their run.

    Repeats have names of their own, because one of them does not say what their run is.
    """
    for repeats in repeats_by_name(judged_runs).values():
        first_of: dict[bytes, JudgedRun] = {}
        for repeat in named_repeats(repeats):
            first_of.setdefault(repeat.fingerprint, repeat)
        yield from first_of.values()


def repeat_notes(
    judged_runs: Sequence[JudgedRun], components: Sequence[RepeatComponents], primary: str
) -> Iterator[Note]:
    """Note repeats that are identical, cut at different depths, or different as wholes."""
    repeats_of = repeats_by_name(judged_runs)
    repeated = {name: repeats for name, repeats in repeats_of.items() if len(repeats) > 1}
    for name, repeats in repeated.items():
        yield from _identical(name, repeats)
        yield from _depths(name, [repeat.run for repeat in repeats])
    for row in _primary_components(components, primary):
        p = min(row.p_of_repeats * len(repeated), 1.0)
        if p < _LEVEL:
            yield RepeatsDiffer(severity="warning", run=row.run, question=row.question, p=p)


def _primary_components(
    components: Sequence[RepeatComponents], primary: str
) -> list[RepeatComponents]:
    """Return the first components of each run that are about the primary question."""
    first_of: dict[str, RepeatComponents] = {}
    for row in components:
        if row.measure == primary and not row.is_effectiveness:
            first_of.setdefault(row.run, row)
    return list(first_of.values())


def _identical(name: str, repeats: Sequence[JudgedRun]) -> Iterator[Note]:
    """Note how many repeats are the same ranking as another one."""
    counts = Counter(repeat.fingerprint for repeat in repeats)
    identical = sum(count for count in counts.values() if count > 1)
    if identical:
        yield RepeatsIdentical(
            severity="warning", run=name, identical=identical, repeats=len(repeats)
        )


def _depths(name: str, repeats: Sequence[Run]) -> Iterator[Note]:
    """Note different lengths of the longest lists of repeats."""
    depths = [int(np.diff(repeat.offsets).max(initial=0)) for repeat in repeats]
    if min(depths) < max(depths):
        yield RepeatDepthsDiffer(run=name, shallowest=min(depths), deepest=max(depths))

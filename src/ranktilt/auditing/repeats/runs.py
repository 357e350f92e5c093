"""What an audit's result holds of runs with repeats: means of their values, and notes.

A *repeat* is one of several rankings of the same queries by one ranker. A *judged run* is a ranking
that is aligned with judgments of relevance. A run with repeats has a judged run for each of them,
all under the run's name; without repeats, it has one.
"""

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
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import shared_numbering

_ALPHA = 0.05
"""Level of the test that the means of repeats differ."""


def repeats_by_name(judged_runs: Sequence[JudgedRun]) -> dict[str, list[JudgedRun]]:
    """Return the repeats of each run, by its name; a run without repeats is its only repeat."""
    by_name: dict[str, list[JudgedRun]] = {}
    for judged_run in judged_runs:
        by_name.setdefault(judged_run.run.name, []).append(judged_run)
    return by_name


def mean_values(judged_runs: Sequence[JudgedRun], values: Floats) -> Floats:
    """Return the values of each run, averaged over its repeats.

    `values` are those of each judged run, on the first axis.
    """
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
    """Return each run's queries that repeat an earlier query in every repeat of the run.

    Each comes with the first of the queries that it repeats. Runs without such queries are left
    out.
    """
    repeated = {}
    for name, repeats in repeats_by_name(judged_runs).items():
        numbering = shared_numbering([repeat.distinct for repeat in repeats])
        queries = repeats[0].repeated_in(numbering)
        if queries:
            repeated[name] = queries
    return repeated


def content_repeated(judged_runs: Sequence[JudgedRun]) -> dict[str, dict[str, str]]:
    """Return each run's queries whose content repeats that of an earlier query.

    Their texts are equal, or their lists are equal and not all tied, in every repeat of the run.
    Each comes with the first of the queries that it repeats.
    """
    repeated = {}
    for name, repeats in repeats_by_name(judged_runs).items():
        common = set(repeats[0].repeated_by_content.items())
        for repeat in repeats[1:]:
            common &= set(repeat.repeated_by_content.items())
        # In the order of the first repeat; a set has none.
        queries = {
            query: earlier
            for query, earlier in repeats[0].repeated_by_content.items()
            if (query, earlier) in common
        }
        if queries:
            repeated[name] = queries
    return repeated


def named_repeats(judged_runs: Sequence[JudgedRun]) -> Iterator[JudgedRun]:
    """Yield the judged runs; those of a run with repeats under names of their own, for notes."""
    for name, repeats in repeats_by_name(judged_runs).items():
        if len(repeats) == 1:
            yield repeats[0]
            continue
        for number, repeat in enumerate(repeats, start=1):
            spec = {**repeat.run.spec, "alias": name_of_repeat(name, number)}
            yield replace(repeat, run=replace(repeat.run, spec=spec))


def distinct_rankings(judged_runs: Sequence[JudgedRun]) -> Iterator[JudgedRun]:
    """Yield the judged runs, and of equal repeats of one run only the first.

    Repeats have names of their own, so that a note can say which of them it is about.
    """
    for repeats in repeats_by_name(judged_runs).values():
        by_ranking: dict[bytes, JudgedRun] = {}
        for repeat in named_repeats(repeats):
            by_ranking.setdefault(repeat.fingerprint, repeat)
        yield from by_ranking.values()


def repeat_notes(
    judged_runs: Sequence[JudgedRun], components: Sequence[RepeatComponents], primary: str
) -> Iterator[Note]:
    """Note repeats that are identical, are cut at different depths, or have different means.

    `components` have the test of the means; `primary` is the notation of the question that counts.
    """
    by_name = repeats_by_name(judged_runs)
    with_repeats = {name: repeats for name, repeats in by_name.items() if len(repeats) > 1}
    for name, repeats in with_repeats.items():
        yield from _identical_notes(name, repeats)
        yield from _depth_notes(name, [repeat.run for repeat in repeats])
    for row in _primary_components(components, primary):
        p = min(row.p_of_repeats * len(with_repeats), 1.0)  # Bonferroni, over the runs
        if p < _ALPHA:
            yield RepeatsDiffer(severity="warning", run=row.run, question=row.question, p=p)


def _primary_components(
    components: Sequence[RepeatComponents], primary: str
) -> list[RepeatComponents]:
    """Return the first components of each run that are about the primary question."""
    first_by_run: dict[str, RepeatComponents] = {}
    for row in components:
        if row.measure == primary and not row.is_effectiveness:
            first_by_run.setdefault(row.run, row)
    return list(first_by_run.values())


def _identical_notes(name: str, repeats: Sequence[JudgedRun]) -> Iterator[Note]:
    """Note how many repeats are the same ranking as another repeat."""
    counts = Counter(repeat.fingerprint for repeat in repeats)
    identical = sum(count for count in counts.values() if count > 1)
    if identical:
        yield RepeatsIdentical(
            severity="warning", run=name, identical=identical, repeats=len(repeats)
        )


def _depth_notes(name: str, repeats: Sequence[Run]) -> Iterator[Note]:
    """Note that the longest lists of the repeats have different lengths."""
    depths = [int(np.diff(repeat.offsets).max(initial=0)) for repeat in repeats]
    if min(depths) < max(depths):
        yield RepeatDepthsDiffer(run=name, shallowest=min(depths), deepest=max(depths))

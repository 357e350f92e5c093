"""Measure an audit's runs: a value for each query, group and run, before any statistics.

A *judged run* is a run that is aligned with judgments of relevance. Usually there is one for each
run. A run with *repeats*, which are several rankings by the same ranker, has one for each repeat.
*Twins* are two versions of one document, one in each of two compared groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.auditing.groups import Pair
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.list_variation import ListVariation
from ranktilt.auditing.prepare import AuditInputs
from ranktilt.auditing.result import PAIR_COUNTS
from ranktilt.measures.ranking import Floats
from ranktilt.measures.twins.base import TwinLists
from ranktilt.measures.twins.head_to_head import pair_counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurements:
    """Values of every run, and where its twins are.

    `infer` makes the samples of all questions from these.
    """

    values: Floats
    """Values of the measures, of shape (n_judged_runs, n_measures, 1 + n_groups, n_queries).

    On the axis of groups, index 0 is all documents together. NaN where a query has no relevant
    document in the group.
    """
    twin_lists: tuple[Mapping[Pair, TwinLists], ...]
    """For each judged run and pair of groups, where the twins are in the lists.

    Pairs of groups without twins are left out.
    """
    pair_counts: pl.DataFrame
    """Wins, losses and ties of twins, by run, pair and query."""
    variations: Mapping[str, Sequence[ListVariation]]
    """How many lists of each repeat could have come out differently, by the name of the run."""


def measure(inputs: AuditInputs) -> Measurements:
    """Measure every run: all documents, each group, and the twins of each pair."""
    missing = inputs.options.missing
    # An empty table first, so that the tables can be concatenated if there are no twins at all.
    values, twin_lists, counts = [], [], [pl.DataFrame(schema=PAIR_COUNTS)]
    for judged_run in inputs.judged_runs:
        values.append(_measure_groups(inputs, judged_run))
        lists_of_run = {
            pair.names: pair.twins.lists(judged_run, missing)
            for pair in inputs.pairs
            if len(pair.twins.rows)
        }
        for pair, lists in lists_of_run.items():
            counts += _count_pairs(judged_run, pair, lists)
        twin_lists.append(lists_of_run)
    return Measurements(
        values=np.stack(values),
        twin_lists=tuple(twin_lists),
        pair_counts=pl.concat(counts),
        variations=_variations(inputs),
    )


def _variations(inputs: AuditInputs) -> dict[str, list[ListVariation]]:
    """Return how much the lists of each run could vary, repeat by repeat."""
    variations: dict[str, list[ListVariation]] = {}
    for judged_run in inputs.judged_runs:
        variation = ListVariation(judged_run, inputs.groups, missing=inputs.options.missing)
        variations.setdefault(judged_run.run.name, []).append(variation)
    return variations


def _measure_groups(inputs: AuditInputs, judged_run: JudgedRun) -> Floats:
    """Return the values of one run, NaN for queries that are left out of it."""
    values = group_values(judged_run, inputs.measures, inputs.groups, inputs.options.ties)
    # A judged query that a run lacks counts as zero (trec_eval's -c), or is left out of this run.
    values[:, :, judged_run.left_out(inputs.options.missing)] = np.nan
    return values


def _count_pairs(judged_run: JudgedRun, pair: Pair, lists: TwinLists) -> list[pl.DataFrame]:
    """Count wins, losses and ties per query, of relevant twins and then of all others."""
    frames = []
    for is_relevant, counts in zip((True, False), pair_counts(lists), strict=True):
        columns = {
            "run": judged_run.run.name,
            "a": pair[0],
            "b": pair[1],
            "query": judged_run.judgments.queries,
            "relevant": is_relevant,
            **counts._asdict(),
        }
        frames.append(pl.DataFrame(columns, schema=PAIR_COUNTS))
    return frames

"""The queries that ``ranktilt mitigate`` fits corrections on, selects by, and tests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.cli.notes import note
from ranktilt.errors import counted

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.mitigation.query_split import QuerySplit

FIT = "train"
"""Name of the split of a collection to fit on."""
SELECT = ("dev", "validation", "valid", "val")
"""Possible names of the split to select a strength by, in the order of preference."""
MOST = 300
"""Largest number of queries to fit on, and to select by, where a collection has such splits."""


def read_query_sets(
    inputs: InputOptions, fit: Path | None, seed: int
) -> tuple[QuerySplit, list[Run]]:
    """Read the collection and divide its queries into three sets: to fit, to select, to test.

    The second value has the run where labels and a run were read in place of a collection.
    """
    from ranktilt.mitigation.query_split import QuerySplit, split_across, split_queries

    test, runs = inputs.load()
    names = None
    if inputs.folder is not None:
        # With --fit, another collection has the queries to fit on.
        names = _splits_to_use(inputs, () if fit else (FIT,))
    if fit is not None:
        from ranktilt.data.loading.load import load

        fitted = load(fit, ignore_unknown=inputs.ignore_unknown)
        if names is None:
            return split_across(test, fitted, most=MOST, seed=seed), runs
        select = _side(inputs, names[-1], test)
        return QuerySplit.across(fitted, select, test, most=MOST, seed=seed), runs
    if names is None:
        return split_queries(test, seed=seed), runs
    train, select = (_side(inputs, name, test) for name in names)
    if inputs.run and not _hold_queries(inputs, (train, select)):
        # Runs are mostly saved for the test queries alone.
        note(
            f"the run has no queries of {names[0]} and {names[-1]}, so its own are split at random"
        )
        return split_queries(test, seed=seed), runs
    return QuerySplit.from_sides(train, select, test, most=MOST, seed=seed), runs


def split_words(split: QuerySplit) -> str:
    """Say how many queries each step gets, before the work begins."""
    fit, select, test = (
        len(side.queries_with_judgments) for side in (split.fit, split.select, split.test)
    )
    origin = f" of {split.fitted_on}" if split.fitted_on else ""
    fitting = f"{counted(fit, 'query', 'queries')}{origin} {'fits' if fit == 1 else 'fit'}"
    choosing = "chooses their strength" if select == 1 else "choose their strength"
    testing = "tests them" if test == 1 else "test them"
    return f"{fitting} corrections, {select:,} {choosing}, {test:,} {testing}"


def _splits_to_use(inputs: InputOptions, first: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of the splits to use: the `first`, and one to select by.

    None where the collection lacks any of them, or where you named another split.
    """
    from ranktilt.data.loading.load import splits

    known = splits(Path(str(inputs.folder)))
    names = (*first, next((name for name in SELECT if name in known), ""))
    # One split besides these is needed, to test on.
    has_splits = len(known) > len(names) and set(names) <= set(known)
    # Queries that the user tests on cannot fit or select as well.
    is_free = inputs.qrels is None and inputs.split not in names
    return names if has_splits and is_free else None


def _hold_queries(inputs: InputOptions, sides: Iterable[Collection]) -> bool:
    """Tell whether the saved run holds judged queries of every side."""
    names = set(chain.from_iterable(run.queries for run in inputs.load_runs()))
    return all(not names.isdisjoint(side.queries_with_judgments["id"]) for side in sides)


def _side(inputs: InputOptions, split: str, test: Collection) -> Collection:
    """Return another split's judgments, with the documents that are loaded already."""
    loaded = replace(inputs, split=split).load()[0]
    return test.with_judgments(loaded.queries, loaded.qrels, loaded.spec)

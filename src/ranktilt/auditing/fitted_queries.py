"""Queries that a ranker was fitted on: no audit tests on them."""

from __future__ import annotations

from collections.abc import Sequence

from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted
from ranktilt.rankers.candidates import FITTED
from ranktilt.run import Run, stage_facts


def without_fitted(collection: Collection, runs: Sequence[Run]) -> tuple[Collection, list[str]]:
    """Leave out, for all runs, the queries that a stage of one was fitted on; notes say how many.

    `UserError` if none is left to test on.
    """
    learned = dict[str, set[str]]()
    for run in runs:
        for _, said in stage_facts(run.spec, FITTED):
            learned.setdefault(str(said.get("file", "a fit")), set()).update(map(str, said.get("queries", ())))
    asked = collection.judged["id"].to_list()
    held = {file: [name for name in asked if name in queries] for file, queries in learned.items()}
    held = {file: names for file, names in held.items() if names}
    if not held:
        return collection, []
    gone = {name for names in held.values() for name in names}
    files = " and ".join(held)
    if len(gone) == len(asked):
        raise UserError(
            f"nothing to test on: {files} learned from all {counted(len(asked), 'query', 'queries')}; audit others, "
            "such as a test split"
        )
    note = f"{counted(len(gone), 'query', 'queries')} left out for all runs: {files} learned from them"
    return collection.only_queries(name for name in asked if name not in gone), [note]

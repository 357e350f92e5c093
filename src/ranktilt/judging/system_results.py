"""Everything that an audit of judges says of systems, from their values under both judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import JudgedWithoutIntervals, OneSystem
from ranktilt.judging.comparison import compare_orders
from ranktilt.judging.corrected import corrected, gain_note
from ranktilt.judging.family_preference import family_preferences
from ranktilt.judging.result import Corrected, SystemScore
from ranktilt.judging.system_groups import (
    SystemGroups,
    cluster_notes,
    joined,
    repeat_notes,
)
from ranktilt.judging.systems import SystemValues, rank_agreement, system_pairs, system_scores


def system_results(
    every_values: Sequence[SystemValues],
    groups: SystemGroups,
    labelled: Mapping[str, Sequence[str]],
    *,
    tags: Mapping[str, str] | None = None,
    correction: str = "holm",
    resamples: int,
    seed: int,
) -> tuple[dict[str, Any], list[Note]]:
    """Compare systems under humans and judges; returns fields of a `JudgeAudit`, and notes.

    `labelled` holds, by judge, the queries whose human values repair the judge's; judges that it
    lacks are not repaired. `tags` are those of systems whose runs have any.
    """
    repaired, scores = list[Corrected](), list[SystemScore]()
    runs = list(dict.fromkeys(chain.from_iterable(values.runs for values in every_values)))
    notes = list[Note](cluster_notes(runs, groups.clusters))
    every_values = [joined(values, groups.clusters) for values in every_values]
    families = groups.after_joining().families
    for values in every_values:
        notes += repeat_notes(values, tags or {})
        if not values.has_intervals:
            few = JudgedWithoutIntervals(
                judge=values.judge, measure=values.measure, queries=len(values.queries)
            )
            notes.append(few)
        if values.judge in labelled:
            rows = list(corrected(values, labelled[values.judge]))
            notes.append(gain_note(rows))
            repaired += rows
        scores += system_scores(values, families, resamples=resamples, seed=seed)
    fields: dict[str, Any] = {"systems": tuple(scores), "corrected": tuple(repaired)}
    if any(len(values.runs) < 2 for values in every_values):
        return fields, [*notes, OneSystem()]
    pairs = [pair for values in every_values for pair in system_pairs(values)]
    fields |= {
        "comparisons": tuple(compare_orders(every_values, correction=correction, seed=seed)),
        "rank_agreements": tuple(rank_agreement(values, seed=seed) for values in every_values),
        "system_pairs": tuple(pairs),
    }
    if families:
        preferences = family_preferences(every_values, families, joined=bool(groups.clusters))
        fields["preferences"] = tuple(preferences)
    return fields, notes

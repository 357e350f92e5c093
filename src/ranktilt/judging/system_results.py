"""Everything that an audit of judges says of systems, from their values under both judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import JudgedWithoutIntervals, OneSystem
from ranktilt.judging.corrected import corrected, gain_note
from ranktilt.judging.family_preference import family_preferences
from ranktilt.judging.result import Corrected, SystemScore
from ranktilt.judging.systems import SystemValues, rank_agreement, system_pairs, system_scores


def system_results(
    every_values: Sequence[SystemValues],
    families: Mapping[str, str],
    labelled: Mapping[str, Sequence[str]],
    *,
    resamples: int,
    seed: int,
) -> tuple[dict[str, Any], list[Note]]:
    """Compare systems under humans and judges; returns fields of a `JudgeAudit`, and notes.

    `labelled` holds, by judge, the queries whose human values repair the judge's; judges that it
    lacks are not repaired.
    """
    notes, repaired, scores = list[Note](), list[Corrected](), list[SystemScore]()
    for values in every_values:
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
        "rank_agreements": tuple(rank_agreement(values, seed=seed) for values in every_values),
        "system_pairs": tuple(pairs),
        "preferences": tuple(family_preferences(every_values, families)) if families else (),
    }
    return fields, notes

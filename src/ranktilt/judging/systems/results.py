"""Compare systems under humans and under judges, by their values per query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ranktilt.auditing.significance import InferenceOptions
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import JudgedWithoutIntervals, OneSystem
from ranktilt.judging.comparison import compare_orders
from ranktilt.judging.drift.evaluated_runs import EvaluatedRuns
from ranktilt.judging.grades import Graded
from ranktilt.judging.kept_grades import KeptValues
from ranktilt.judging.records import (
    Corrected,
    FamilyPreference,
    JudgeComparison,
    RankAgreement,
    SystemPair,
    SystemScore,
)
from ranktilt.judging.systems.corrected import corrected, gain_note, sampled_queries
from ranktilt.judging.systems.family_preference import family_preferences
from ranktilt.judging.systems.groups import (
    SystemGroups,
    cluster_notes,
    joined,
    repeat_notes,
)
from ranktilt.judging.systems.systems import (
    SystemValues,
    rank_agreement,
    system_pairs,
    system_scores,
    system_values,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemResults:
    """Systems under humans and judges; see the fields of `JudgeAudit`. Empty without systems."""

    systems: tuple[SystemScore, ...] = ()
    corrected: tuple[Corrected, ...] = ()
    comparisons: tuple[JudgeComparison, ...] = ()
    rank_agreements: tuple[RankAgreement, ...] = ()
    system_pairs: tuple[SystemPair, ...] = ()
    preferences: tuple[FamilyPreference, ...] = ()
    values: tuple[KeptValues, ...] = ()
    notes: tuple[Note, ...] = ()


def compare_systems(
    graded: Sequence[Graded],
    evaluated: EvaluatedRuns,
    *,
    groups: SystemGroups,
    human_sample: int | None,
    inference: InferenceOptions,
) -> SystemResults:
    """Compare systems under humans and each judge."""
    values_of_systems, notes = list[SystemValues](), list[Note]()
    labelled: dict[str, list[str]] = {}
    for pairs_of_judge in graded:
        values, left_out = system_values(pairs_of_judge, evaluated.runs, evaluated.measures)
        values_of_systems += values
        notes += left_out
        if human_sample is not None:
            labelled[pairs_of_judge.judge], _ = sampled_queries(
                pairs_of_judge, human_sample, inference.seed
            )
        elif pairs_of_judge.more.height:
            labelled[pairs_of_judge.judge] = pairs_of_judge.pairs["query_id"].unique().to_list()
    results = system_results(
        values_of_systems,
        groups,
        labelled,
        tags=evaluated.tags,
        correction=inference.correction,
        resamples=inference.resamples,
        seed=inference.seed,
    )
    return replace(results, notes=(*notes, *results.notes))


def system_results(
    values_of_systems: Sequence[SystemValues],
    groups: SystemGroups,
    labelled: Mapping[str, Sequence[str]],
    *,
    tags: Mapping[str, str] | None = None,
    correction: str = "holm",
    resamples: int,
    seed: int,
) -> SystemResults:
    """Compare systems under humans and judges.

    `labelled` holds, by judge, the queries whose human values repair the judge's; judges that it
    lacks are not repaired. `tags` are those of systems whose runs have any.
    """
    repaired, scores = list[Corrected](), list[SystemScore]()
    runs = list(dict.fromkeys(chain.from_iterable(values.runs for values in values_of_systems)))
    notes = list[Note](cluster_notes(runs, groups.clusters))
    values_of_systems = [joined(values, groups.clusters) for values in values_of_systems]
    families = groups.after_joining().families
    for values in values_of_systems:
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
    results = SystemResults(
        systems=tuple(scores),
        corrected=tuple(repaired),
        values=tuple(map(_kept_values, values_of_systems)),
        notes=tuple(notes),
    )
    if any(len(values.runs) < 2 for values in values_of_systems):
        return replace(results, notes=(*notes, OneSystem()))
    preferences = list[FamilyPreference]()
    if families:
        preferences = family_preferences(values_of_systems, families, joined=bool(groups.clusters))
    return replace(
        results,
        comparisons=tuple(compare_orders(values_of_systems, correction=correction, seed=seed)),
        rank_agreements=tuple(rank_agreement(values, seed=seed) for values in values_of_systems),
        system_pairs=tuple(chain.from_iterable(map(system_pairs, values_of_systems))),
        preferences=tuple(preferences),
    )


def _kept_values(values: SystemValues) -> KeptValues:
    """Return the values that the file of an audit holds."""
    return KeptValues(
        judge=values.judge,
        measure=values.measure,
        runs=values.runs,
        queries=values.queries,
        human=values.human,
        judged=values.judged,
    )

"""Compare systems under human grades and under each judge's, by their values per query.

A *system* is a ranker whose run is evaluated. A *judge* is a model, or a person, whose grades of
relevance are compared with the human grades. Values of a system are those of a measure such as
nDCG@10, for each query: once by human grades, once by a judge's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ranktilt.auditing.significance import InferenceOptions
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import JudgedWithoutIntervals, OneSystem
from ranktilt.judging.comparison import compare_orders
from ranktilt.judging.grades import GradedPairs
from ranktilt.judging.kept_grades import KeptValues
from ranktilt.judging.records import (
    FamilyPreference,
    JudgeComparison,
    PoweredEstimate,
    RankAgreement,
    SystemPair,
    SystemScore,
)
from ranktilt.judging.systems.evaluated_runs import EvaluatedRuns
from ranktilt.judging.systems.family_preference import family_preferences
from ranktilt.judging.systems.groups import (
    SystemGroups,
    cluster_notes,
    join_clusters,
    repeat_notes,
)
from ranktilt.judging.systems.powered_estimates import (
    labels_worth,
    powered_estimates,
    sampled_queries,
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
    """What the comparison of systems gives; every field is empty if there are no systems."""

    systems: tuple[SystemScore, ...] = ()
    """Mean of every system under humans and each judge."""
    powered_estimates: tuple[PoweredEstimate, ...] = ()
    """Means of systems, and differences of two, from few human labels and a judge's."""
    comparisons: tuple[JudgeComparison, ...] = ()
    """Differences of two judges' agreement with the human order of systems."""
    rank_agreements: tuple[RankAgreement, ...] = ()
    """Agreement of each judge with humans about the order of systems."""
    system_pairs: tuple[SystemPair, ...] = ()
    """Pairs of systems that differ significantly under humans or a judge."""
    preferences: tuple[FamilyPreference, ...] = ()
    """Whether a judge favours a family of systems."""
    values: tuple[KeptValues, ...] = ()
    """Values per query that the file of the audit keeps."""
    notes: tuple[Note, ...] = ()
    """Notes on what was left out, and on systems that count as one."""


def compare_systems(
    pairs_of_judges: Sequence[GradedPairs],
    evaluated: EvaluatedRuns,
    *,
    groups: SystemGroups,
    human_sample: int | None,
    inference: InferenceOptions,
) -> SystemResults:
    """Measure every run by the grades of humans and judges, and compare the systems.

    Parameters
    ----------
    pairs_of_judges : sequence of GradedPairs
        For each judge, the pairs of query and document that it and humans graded.
    evaluated : EvaluatedRuns
        The runs of the systems, and the measures.
    groups : SystemGroups
        Families of systems, and clusters of repeats of one system.
    human_sample : int or None
        Number of human labels to pretend to have. With None all human labels are used.
    inference : InferenceOptions
        Resamples, seed, and the correction of p for several tests.
    """
    values_of_systems, notes = list[SystemValues](), list[Note]()
    for pairs_of_judge in pairs_of_judges:
        values, left_out = system_values(pairs_of_judge, evaluated.runs, evaluated.measures)
        values_of_systems += values
        notes += left_out
    results = system_results(
        values_of_systems,
        groups,
        _labelled_queries(pairs_of_judges, human_sample, inference.seed),
        tag_of=evaluated.tag_of,
        correction=inference.correction,
        resamples=inference.resamples,
        seed=inference.seed,
    )
    return replace(results, notes=(*notes, *results.notes))


def _labelled_queries(
    pairs_of_judges: Sequence[GradedPairs], human_sample: int | None, seed: int
) -> dict[str, list[str]]:
    """Return, by judge, the queries whose human labels count in prediction-powered estimates.

    Without a sample these are all queries with human grades, for judges that graded further
    queries. A judge without further queries gets no estimate: human labels cover all of its
    queries.
    """
    labelled = dict[str, list[str]]()
    for pairs_of_judge in pairs_of_judges:
        if human_sample is not None:
            labelled[pairs_of_judge.judge], _ = sampled_queries(pairs_of_judge, human_sample, seed)
        elif pairs_of_judge.further_grades.height:
            labelled[pairs_of_judge.judge] = pairs_of_judge.table["query_id"].unique().to_list()
    return labelled


def system_results(
    values_of_systems: Sequence[SystemValues],
    groups: SystemGroups,
    labelled: Mapping[str, Sequence[str]],
    *,
    tag_of: Mapping[str, str] | None = None,
    correction: str = "holm",
    resamples: int,
    seed: int,
) -> SystemResults:
    """Compare systems by values that are known already, computed or published.

    Parameters
    ----------
    values_of_systems : sequence of SystemValues
        Values per query, for each judge and measure.
    groups : SystemGroups
        Families of systems, and clusters of repeats of one system.
    labelled : mapping
        By judge, the queries whose human labels count in prediction-powered estimates; a judge that
        is missing gets no estimates.
    tag_of : mapping, optional
        By name of run, the name of the system in its run file. Runs of one tag are likely repeats.
    correction : {"holm", "bonferroni"}
        Correction of the p of comparisons of two judges.
    resamples, seed : int
        Bootstrap resamples; random seed.
    """
    runs = list(dict.fromkeys(chain.from_iterable(values.runs for values in values_of_systems)))
    notes = list[Note](cluster_notes(runs, groups.clusters))
    values_of_systems = [join_clusters(values, groups.clusters) for values in values_of_systems]
    family_of = groups.family_of_systems()
    estimates, scores = list[PoweredEstimate](), list[SystemScore]()
    for values in values_of_systems:
        notes += repeat_notes(values, tag_of or {})
        if not values.has_intervals:
            few = JudgedWithoutIntervals(
                judge=values.judge, measure=values.measure, queries=len(values.queries)
            )
            notes.append(few)
        if values.judge in labelled:
            of_judge = list(powered_estimates(values, labelled[values.judge]))
            notes.append(labels_worth(of_judge))
            estimates += of_judge
        scores += system_scores(values, family_of, resamples=resamples, seed=seed)
    results = SystemResults(
        systems=tuple(scores),
        powered_estimates=tuple(estimates),
        values=tuple(map(_kept_values, values_of_systems)),
        notes=tuple(notes),
    )
    # One system has no order. Judges evaluate the same runs, so that none is compared then.
    if any(len(values.runs) < 2 for values in values_of_systems):
        return replace(results, notes=(*notes, OneSystem()))
    preferences = list[FamilyPreference]()
    if family_of:
        has_clusters = bool(groups.clusters)
        preferences = family_preferences(values_of_systems, family_of, has_clusters=has_clusters)
    return replace(
        results,
        comparisons=tuple(compare_orders(values_of_systems, correction=correction, seed=seed)),
        rank_agreements=tuple(rank_agreement(values, seed=seed) for values in values_of_systems),
        system_pairs=tuple(chain.from_iterable(map(system_pairs, values_of_systems))),
        preferences=tuple(preferences),
    )


def _kept_values(values: SystemValues) -> KeptValues:
    """Return the part of the values that the file of an audit keeps."""
    return KeptValues(
        judge=values.judge,
        measure=values.measure,
        runs=values.runs,
        queries=values.queries,
        human=values.human,
        judged=values.judged,
    )

"""Notes of an audit: what its reader should know besides the numbers.

A function here decides which notes apply, and yields them as data. `reporting/sentences/notes` has
their words, and `conclude` calls the functions.

A *tilt* is Relative Δ of one run, between two groups, on one measure. The *card* has the answers to
all other questions. *Twins* are two versions of one document, one in each group. A *judged run* is
a run that is aligned with judgments of relevance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.effects import FEW_QUERIES, Effect
from ranktilt.auditing.grouping.pairs import twin_rows
from ranktilt.auditing.groups import ALL, Groups, Pair
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.numerical_noise import NumericalNoise
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Count, Note, counts_of
from ranktilt.data.notes.groups import (
    DocumentsOfSeveral,
    DocumentsOutsidePool,
    DocumentsUnlabelled,
    FewQueriesAnswered,
    FewQueriesOfGroups,
    FewQueriesOfPair,
    NoTilt,
    NotTwins,
    OnlyGroup,
    QueriesExcluded,
    ResamplesDropped,
    ShareOfOnlyGroup,
    TwinsNeeded,
)
from ranktilt.data.notes.inputs import (
    GradesAreFractions,
    JudgmentsReadAs,
    JudgmentsUnknown,
    LabelsReadAs,
    SourcesChosen,
    SourcesMixed,
)
from ranktilt.data.notes.runs import (
    AnswersRead,
    AnswersUnreadable,
    EntriesUnknown,
    FittedQueriesLeftOut,
    LittleVariation,
    QueriesFailed,
    QueriesMissing,
    QueriesRepeated,
    RunReadAs,
    RunsIdentical,
    VerdictWithinNoise,
)
from ranktilt.data.runs.run import Run, stage_facts
from ranktilt.data.runs.tied_lists import tied_list_notes
from ranktilt.errors import UserError, counted
from ranktilt.measures.ranking import probability_within
from ranktilt.rankers.candidates import FITTED
from ranktilt.rankers.llm.answers import READABLE
from ranktilt.rankers.self_exclusion import exclusion_notes
from ranktilt.statistics.bootstrap import FEWEST_ROWS


def run_notes(
    judged_run: JudgedRun, collection: Collection, missing: str = "zero"
) -> Iterator[Note]:
    """Note what a run lacks, and what it holds that the collection does not.

    `missing` says what a query that the run lacks counts as: ``zero``, or ``exclude``.
    """
    name, spec = judged_run.run.name, judged_run.run.spec
    if "read_as" in spec:
        yield RunReadAs(file=str(spec.get("file", name)), format=str(spec["read_as"]))
    are_judged = judged_run.judgments.has_relevant
    failed = int(judged_run.failed.sum())
    if judged_run.missing_count > failed:
        yield QueriesMissing(
            run=name,
            queries=judged_run.missing_count - failed,
            are_judged=are_judged,
            count_as_zero=missing == "zero",
        )
    if failed:
        yield QueriesFailed(run=name, queries=failed, are_judged=are_judged)
    is_unknown = (judged_run.row < 0) | (judged_run.row >= collection.docs.height)
    if is_unknown.any():
        documents = judged_run.run.docs[judged_run.position[is_unknown]]
        unknown_ids = judged_run.run.ids.gather(documents)
        yield EntriesUnknown(
            run=name,
            entries=len(unknown_ids),
            documents=unknown_ids.n_unique(),
            first=unknown_ids[0],
            has_labels_only=only_labels(collection),
        )
    yield from tied_list_notes(judged_run.run)
    yield from exclusion_notes(name, spec)
    yield from answer_notes(judged_run.run)


def source_notes(collection: Collection, by: str | None) -> Iterator[Note]:
    """Note how judgments and labels were read, and which of several sources were ranked together.

    `by` is the column of the groups.
    """
    if "judgments_read" in collection.spec:
        yield JudgmentsReadAs(format=str(collection.spec["judgments_read"]))
    if "labels_read" in collection.spec:
        yield LabelsReadAs(format=str(collection.spec["labels_read"]))
    left_out, ranked = collection.spec.get("without_sources", ()), collection.sources
    if left_out:
        yield SourcesChosen(ranked=tuple(ranked), left_out=tuple(left_out))
    if by == "source" and len(ranked) > 2:
        yield SourcesMixed(sources=len(ranked))


def answer_notes(run: Run) -> Iterator[Note]:
    """Note the kinds of answers that each language model gave, and how many are unreadable."""
    for stage, answers in run.llm_answers:
        numbers = {str(kind): int(number) for kind, number in answers["kinds"].items()}
        kinds = counts_of(numbers)
        unreadable = sum(number for kind, number in numbers.items() if kind not in READABLE)
        yield AnswersRead(
            stage=stage,
            kinds=kinds,
            tokens_read=int(answers["tokens_read"]),
            tokens_written=int(answers["tokens_written"]),
        )
        if unreadable:
            yield AnswersUnreadable(
                stage=stage,
                answers=sum(numbers.values()),
                unreadable=unreadable,
                kinds=kinds,
                first=str(answers["unreadable"]),
            )


@dataclass(frozen=True, kw_only=True)
class _FixedLists:
    """Lists that could not have come out differently, whatever the groups of their documents.

    Runs with the same numbers share a note.
    """

    measures: tuple[str, ...]
    """Measures that the numbers hold for; empty if they hold for all."""
    total: int
    """Number of lists behind an answer."""
    fixed: tuple[Count, ...]
    """Number of fixed lists by reason."""


def variation_notes(effects: Iterable[Effect]) -> Iterator[Note]:
    """Warn of runs that cannot be called level, because too many of their lists are fixed.

    A list is fixed if it could not have come out differently.
    """
    measures_of_run: dict[str, set[str]] = {}
    fixed_measures: dict[tuple[str, int, tuple[Count, ...]], list[str]] = {}
    for effect in effects:
        measures_of_run.setdefault(effect.run, set()).add(effect.measure)
        variation = effect.variation
        if variation is not None and not effect.can_be_level:
            key = effect.run, variation.total, counts_of(variation.fixed)
            fixed_measures.setdefault(key, []).append(effect.measure)
    runs_by_lists: dict[_FixedLists, list[str]] = {}
    for (run, total, counts), names in fixed_measures.items():
        measures = tuple(dict.fromkeys(names))
        # If it holds for all measures, the note names the run alone.
        holds_for_all = len(measures) == len(measures_of_run[run])
        lists = _FixedLists(measures=() if holds_for_all else measures, total=total, fixed=counts)
        runs_by_lists.setdefault(lists, []).append(run)
    for lists, runs in runs_by_lists.items():
        yield LittleVariation(
            runs=tuple(runs), measures=lists.measures, total=lists.total, fixed=lists.fixed
        )


def identical_notes(judged_runs: Iterable[JudgedRun]) -> Iterator[Note]:
    """Note runs that are the same ranking, such as a re-ranker that returned its candidates."""
    names_by_ranking: dict[bytes, list[str]] = {}
    for judged_run in judged_runs:
        names_by_ranking.setdefault(judged_run.fingerprint, []).append(judged_run.run.name)
    for names in names_by_ranking.values():
        if len(names) > 1:
            yield RunsIdentical(runs=tuple(names))


def repeated_notes(repeated: Mapping[str, Mapping[str, str]]) -> Iterator[Note]:
    """Note how many queries repeat others; runs with the same queries share a note.

    `repeated` has an entry for each run: its queries that repeat an earlier one, each with that
    earlier query.
    """
    runs_by_queries: dict[tuple[str, ...], list[str]] = {}
    for run, earlier_queries in repeated.items():
        runs_by_queries.setdefault(tuple(earlier_queries), []).append(run)
    for queries, runs in runs_by_queries.items():
        yield QueriesRepeated(
            runs=tuple(runs),
            queries=len(queries),
            first=queries[0],
            repeats=repeated[runs[0]][queries[0]],
        )


def only_labels(collection: Collection) -> bool:
    """Return whether the collection was made from a file of labels, without a folder of texts."""
    return "labels" in collection.spec and "path" not in collection.spec


def judgment_notes(judgments: Judgments, collection: Collection) -> Iterator[Note]:
    """Note judgments of unknown queries or documents, and grades that are fractions."""
    documents = int((judgments.row >= collection.docs.height).sum())
    queries = int((~judgments.known_query[judgments.query]).sum())
    if documents or queries:
        yield JudgmentsUnknown(
            documents=documents, queries=queries, has_labels_only=only_labels(collection)
        )
    grades = collection.qrels["grade"]
    if grades.dtype.is_float():
        fractions = grades.filter(grades % 1 != 0)
        if len(fractions):  # there are none if all of them are of queries that were left out
            yield GradesAreFractions(grades=len(fractions), first=float(fractions[0]))


def twin_notes(
    collection: Collection, groups: Groups, uneven: Sequence[Pair], judgments: Judgments
) -> Iterator[Note]:
    """Note why groups are no twins although most of their documents have a twin.

    Groups are twins if every relevant document has exactly one version in the other group, its
    twin, with the same grade. `uneven` are the pairs of groups that are no twins.
    """
    for pair in uneven:
        twins = twin_rows(collection, groups, pair)
        group_indexes = [groups.names.index(name) for name in pair]
        judged = judgments.frame().filter(pl.Series(np.isin(judgments.group, group_indexes)))
        alone = judged.filter(~pl.col("row").is_in(np.unique(twins)))
        # If most documents have no twin, nobody takes the groups for twins.
        are_most_paired = 2 * alone.height <= judged.height
        if alone.height and are_most_paired:
            yield NotTwins(
                a=pair[0],
                b=pair[1],
                alone=alone.height,
                judgments=judged.height,
                unlabelled=groups.unlabelled,
            )


def card_notes(collection: Collection, groups: Groups, *, twins: bool) -> Iterator[Note]:
    """Note that the card lacks the questions about twins, if no document has a twin.

    `twins` says whether a document has a twin. Groups by a column of texts need no such note:
    nobody expects twins there.
    """
    has_labels = only_labels(collection)
    if twins or groups.values is not None or not (has_labels or groups.by == "source"):
        return
    is_alone = (collection.docs["origin"] == collection.docs["id"]).all()
    labels = str(collection.spec["labels"]) if has_labels and is_alone else ""
    yield TwinsNeeded(by=str(groups.by), labels=labels)


def sparse_notes(
    tilts: Sequence[Effect], runs: Sequence[str], groups: Groups, values: npt.NDArray[np.float64]
) -> Iterator[Note]:
    """Note where few of the compared queries have a value above 0 for either group.

    Only these queries move Relative Δ; a tilt of many queries then rests on few. `values` has the
    shape (n_runs, n_measures, 1 + n_groups, n_queries); the first column of groups is for all
    documents.
    """
    measures = list(dict.fromkeys(tilt.measure for tilt in tilts))
    counts_by_pair: dict[tuple[str, str, str, int], list[Count]] = {}
    for tilt in tilts:
        values_of_groups = values[runs.index(tilt.run), measures.index(tilt.measure)]
        values_a = values_of_groups[1 + groups.names.index(tilt.a)]
        values_b = values_of_groups[1 + groups.names.index(tilt.b)]
        is_compared = ~np.isnan(values_a) & ~np.isnan(values_b)
        answered = int((is_compared & ((values_a > 0) | (values_b > 0))).sum())
        if 0 < answered < FEW_QUERIES <= tilt.queries:
            count = Count(name=tilt.measure, number=answered)
            counts_by_pair.setdefault((tilt.run, tilt.a, tilt.b, tilt.queries), []).append(count)
    for (run, a, b, queries), counts in counts_by_pair.items():
        yield FewQueriesAnswered(run=run, a=a, b=b, queries=queries, answered=tuple(counts))


def group_notes(
    groups: Groups, left_out: Sequence[Pair], tilts: Sequence[Effect], *, absent: bool = False
) -> Iterator[Note]:
    """Note what the comparison of groups leaves out.

    `left_out` are pairs of groups without a Relative Δ. `absent` says whether a run also lacks
    queries.
    """
    by = str(groups.by)
    yield from (replace(remark, has_remedy=True) for remark in groups.remarks)
    if groups.unlabelled:
        yield DocumentsUnlabelled(by=by, documents=groups.unlabelled)
    if groups.several:
        yield DocumentsOfSeveral(by=by, documents=groups.several)
    if groups.outside:
        yield DocumentsOutsidePool(documents=groups.outside)
    for a, b in left_out:
        yield NoTilt(a=a, b=b)
    first_tilts: dict[Pair, Effect] = {}
    for tilt in tilts:
        first_tilts.setdefault((tilt.a, tilt.b), tilt)
    for (a, b), tilt in first_tilts.items():
        if tilt.excluded:
            yield QueriesExcluded(
                a=a,
                b=b,
                excluded=tilt.excluded,
                queries=tilt.queries + tilt.excluded,
                has_missing_queries=absent,
            )


def few_query_notes(
    tilts: Sequence[Effect], answers: Sequence[Effect], resamples: int
) -> Iterator[Note]:
    """Warn if few queries compare a pair, or if a tilt is undefined in some bootstrap resamples.

    `answers` are the effects of the primary question, for audits without judgments, which have no
    `tilts`. `resamples` is the number of resamples.
    """
    compared = (*tilts, *answers)
    for pair in dict.fromkeys((effect.a, effect.b) for effect in compared):
        effects = [effect for effect in compared if (effect.a, effect.b) == pair]
        fewest = min(effect.queries for effect in effects)
        if fewest < FEW_QUERIES:
            yield _few_queries(pair, fewest)
        dropped = _dropped_resamples(tilts, pair)
        if dropped:
            yield ResamplesDropped(a=pair[0], b=pair[1], dropped=dropped, resamples=resamples)


def _dropped_resamples(tilts: Sequence[Effect], pair: Pair) -> int:
    """Return the largest number of resamples in which one of a pair's tilts is undefined."""
    # A tilt of fewer queries is not resampled at all.
    resampled = [tilt for tilt in tilts if (tilt.a, tilt.b) == pair and tilt.queries >= FEWEST_ROWS]
    return max((tilt.dropped for tilt in resampled), default=0)


def _few_queries(pair: Pair, queries: int) -> Note:
    """Warn that few queries compare a pair, or all groups together."""
    if pair == (ALL, ALL):
        return FewQueriesOfGroups(queries=queries)
    return FewQueriesOfPair(queries=queries, a=pair[0], b=pair[1])


def lone_group_notes(
    judged_runs: Sequence[JudgedRun], groups: Groups, collection: Collection, *, depth: int | None
) -> Iterator[Note]:
    """Note that only one group is left; with a `depth`, also its share of the first ranks."""
    if len(groups.names) != 1:
        return
    (group,) = groups.names
    yield OnlyGroup(by=str(groups.by), group=group, can_name_rest="labels" in collection.spec)
    if not depth:
        return
    for judged_run in judged_runs:
        # 1 for an entry in the first ranks, and a fraction if it is tied across the cutoff.
        is_first = probability_within(judged_run.ranking, depth)
        is_known = (judged_run.row >= 0) & (judged_run.row < len(groups.code))
        # Row −1 is read as row 0, and left out by `is_known`.
        is_member = is_known & (groups.code[np.where(is_known, judged_run.row, 0)] == 0)
        query, query_count = judged_run.ranking.query, len(judged_run.ranking.offsets) - 1
        results = np.bincount(query, weights=is_first, minlength=query_count)
        members = np.bincount(query, weights=is_first * is_member, minlength=query_count)
        has_results = results > 0
        share = np.nan
        if has_results.any():
            share = float(np.mean(members[has_results] / results[has_results]))
        yield ShareOfOnlyGroup(
            run=judged_run.run.name,
            group=group,
            share=share,
            depth=depth,
            queries=int(has_results.sum()),
        )


def noise_notes(
    noise: Sequence[NumericalNoise], tilts: Sequence[Effect], margin: float
) -> Iterator[Note]:
    """Warn of verdicts that could change if scores moved within their resolution.

    `tilts` are those on the measure that `noise` is about.
    """
    tilt_by_pair = {(tilt.run, tilt.a, tilt.b): tilt for tilt in tilts}
    for run_noise in noise:
        tilt = tilt_by_pair[run_noise.run, run_noise.a, run_noise.b]
        verdicts = {_verdict_on_interval(tilt, margin)}
        for points in (-run_noise.points, run_noise.points):
            moved = replace(
                tilt, value=tilt.value + points, low=tilt.low + points, high=tilt.high + points
            )
            verdicts.add(_verdict_on_interval(moved, margin))
        if len(verdicts) > 1:
            yield VerdictWithinNoise(
                run=run_noise.run,
                a=run_noise.a,
                b=run_noise.b,
                measure=tilt.measure,
                resolution=run_noise.resolution,
                points=run_noise.points,
            )


def _verdict_on_interval(tilt: Effect, margin: float) -> tuple[str, bool]:
    """Return the side of the neutral value with the interval, and whether the tilt is level."""
    return tilt.leans, tilt.verdict(margin) == "level"


def without_fitted(
    collection: Collection, specs: Iterable[Mapping[str, Any]]
) -> tuple[Collection, list[Note]]:
    """Leave out the queries that a stage of a run was fitted on, with a note.

    A stage that was fitted to some queries ranks these better than others, so an audit of them
    would mislead. `specs` are those of the runs; such a stage names its queries there.

    Raises
    ------
    UserError
        If no query is left.
    """
    fitted_by_file: dict[str, set[str]] = {}
    for spec in specs:
        for _stage, fact in stage_facts(spec, FITTED):
            queries = fitted_by_file.setdefault(str(fact.get("file", "a fit")), set())
            queries.update(map(str, fact.get("queries", ())))
    judged = collection.queries_with_judgments["id"].to_list()
    files = [file for file, queries in fitted_by_file.items() if not queries.isdisjoint(judged)]
    if not files:
        return collection, []
    fitted = set[str]().union(*fitted_by_file.values())
    remaining = [query for query in judged if query not in fitted]
    if not remaining:
        number = counted(len(judged), "query", "queries")
        raise UserError(
            f"nothing left to test on: {' and '.join(files)} learned from all {number}; audit "
            "other queries, such as a test split"
        )
    note = FittedQueriesLeftOut(queries=len(judged) - len(remaining), files=tuple(files))
    return collection.only_queries(remaining), [note]

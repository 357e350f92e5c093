"""Notes of an audit: what its reader should know besides the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.effects import FEW_QUERIES, Effect
from ranktilt.auditing.grouping.twins import twin_rows
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
from ranktilt.rankers.llm.answer_kinds import READABLE
from ranktilt.rankers.self_exclusion import exclusion_notes
from ranktilt.statistics.bootstrap import FEWEST_ROWS


def run_notes(
    judged_run: JudgedRun, collection: Collection, missing: str = "zero"
) -> Iterator[Note]:
    """Note what a run lacks, and what it holds that the collection does not."""
    name, spec = judged_run.run.name, judged_run.run.spec
    if "read_as" in spec:
        yield RunReadAs(file=str(spec.get("file", name)), format=str(spec["read_as"]))
    are_judged = judged_run.judgments.has_relevant
    failed = int(judged_run.failed.sum())
    if judged_run.missing > failed:
        yield QueriesMissing(
            run=name,
            queries=judged_run.missing - failed,
            are_judged=are_judged,
            count_as_zero=missing == "zero",
        )
    if failed:
        yield QueriesFailed(run=name, queries=failed, are_judged=are_judged)
    beyond = (judged_run.row < 0) | (judged_run.row >= collection.docs.height)
    if beyond.any():
        strange = judged_run.run.ids.gather(judged_run.run.docs[judged_run.position[beyond]])
        yield EntriesUnknown(
            run=name,
            entries=len(strange),
            documents=strange.n_unique(),
            first=strange[0],
            has_labels_only=only_labels(collection),
        )
    yield from tied_list_notes(judged_run.run)
    yield from exclusion_notes(name, spec)
    yield from answer_notes(judged_run.run)


def source_notes(collection: Collection, by: str | None) -> Iterator[Note]:
    """Note how labels were read, and which of several sources were ranked together."""
    if "judgments_read" in collection.spec:
        yield JudgmentsReadAs(format=str(collection.spec["judgments_read"]))
    if "labels_read" in collection.spec:
        yield LabelsReadAs(format=str(collection.spec["labels_read"]))
    left, ranked = collection.spec.get("without_sources", ()), collection.sources
    if left:
        yield SourcesChosen(ranked=tuple(ranked), left_out=tuple(left))
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
    """Lists that could not vary. Runs with the same numbers share a note."""

    measures: tuple[str, ...]
    """Measures that the numbers hold for; empty if they hold for all."""
    total: int
    """Number of lists behind an answer."""
    fixed: tuple[Count, ...]
    """Number of fixed lists by reason."""


def variation_notes(effects: Iterable[Effect]) -> Iterator[Note]:
    """Warn of runs that cannot be called level, because too many of their lists cannot vary."""
    measures_of: dict[str, set[str]] = {}
    fixed: dict[tuple[str, int, tuple[Count, ...]], dict[str, None]] = {}
    for effect in effects:
        measures_of.setdefault(effect.run, set()).add(effect.measure)
        variation = effect.variation
        if variation is not None and not effect.can_be_level:
            counts = counts_of(variation.fixed)
            fixed.setdefault((effect.run, variation.total, counts), {})[effect.measure] = None
    runs_of: dict[_FixedLists, list[str]] = {}
    for (run, total, counts), measures in fixed.items():
        # What is so whatever is asked names the run alone.
        is_always = len(measures) == len(measures_of[run])
        lists = _FixedLists(
            measures=() if is_always else tuple(measures), total=total, fixed=counts
        )
        runs_of.setdefault(lists, []).append(run)
    for lists, runs in runs_of.items():
        yield LittleVariation(
            runs=tuple(runs), measures=lists.measures, total=lists.total, fixed=lists.fixed
        )


def identical_notes(judged_runs: Iterable[JudgedRun]) -> Iterator[Note]:
    """Name runs that are the same ranking, such as a re-ranker that returned its candidates."""
    names_of: dict[bytes, list[str]] = {}
    for judged_run in judged_runs:
        names_of.setdefault(judged_run.fingerprint, []).append(judged_run.run.name)
    for names in names_of.values():
        if len(names) > 1:
            yield RunsIdentical(runs=tuple(names))


def repeated_notes(repeated: Mapping[str, Mapping[str, str]]) -> Iterator[Note]:
    """Note how many queries repeat others; runs with the same repeats share a note."""
    runs_of: dict[tuple[str, ...], list[str]] = {}
    for run, queries in repeated.items():
        runs_of.setdefault(tuple(queries), []).append(run)
    for names, runs in runs_of.items():
        yield QueriesRepeated(
            runs=tuple(runs),
            queries=len(names),
            first=names[0],
            repeats=repeated[runs[0]][names[0]],
        )


def only_labels(collection: Collection) -> bool:
    """Return whether the collection is made of labels alone, without texts."""
    return "labels" in collection.spec and "path" not in collection.spec


def judgment_notes(judgments: Judgments, collection: Collection) -> Iterator[Note]:
    """Note judgments of unknown queries or documents, and how fractions among grades count."""
    documents = int((judgments.row >= collection.docs.height).sum())
    queries = int((~judgments.known_query[judgments.query]).sum())
    if documents or queries:
        yield JudgmentsUnknown(
            documents=documents, queries=queries, has_labels_only=only_labels(collection)
        )
    grades = collection.qrels["grade"]
    if grades.dtype.is_float():
        fractions = grades.filter(grades % 1 != 0)
        yield GradesAreFractions(grades=len(fractions), first=float(fractions[0]))


def twin_notes(
    collection: Collection, groups: Groups, uneven: Sequence[Pair], judgments: Judgments
) -> Iterator[Note]:
    """Note why groups are no twins although most of their documents have a twin.

    `uneven` are the pairs of groups that are no twins.
    """
    for pair in uneven:
        twins = twin_rows(collection, groups, pair)
        sides = [groups.names.index(name) for name in pair]
        judged = judgments.frame().filter(pl.Series(np.isin(judgments.group, sides)))
        alone = judged.filter(~pl.col("row").is_in(np.unique(twins)))
        if 0 < 2 * alone.height <= judged.height:
            yield NotTwins(
                a=pair[0],
                b=pair[1],
                alone=alone.height,
                judgments=judged.height,
                unlabelled=groups.unlabelled,
            )


def card_notes(collection: Collection, groups: Groups, *, twins: bool) -> Iterator[Note]:
    """Note what a card lacks where no document has a twin."""
    has_labels = only_labels(collection)
    if twins or groups.values is not None or not (has_labels or groups.by == "source"):
        return
    is_alone = (collection.docs["origin"] == collection.docs["id"]).all()
    labels = str(collection.spec["labels"]) if has_labels and is_alone else ""
    yield TwinsNeeded(by=str(groups.by), labels=labels)


def sparse_notes(
    tilts: Sequence[Effect], runs: Sequence[str], groups: Groups, values: npt.NDArray[np.float64]
) -> Iterator[Note]:
    """Note where few of the compared queries have a value other than 0 on either side."""
    measures = list(dict.fromkeys(t.measure for t in tilts))
    few = dict[tuple[str, str, str, int], list[Count]]()
    for tilt in tilts:
        of_run = values[runs.index(tilt.run), measures.index(tilt.measure)]
        a, b = (of_run[groups.names.index(name) + 1] for name in (tilt.a, tilt.b))
        answered = int((~np.isnan(a) & ~np.isnan(b) & ((a > 0) | (b > 0))).sum())
        if 0 < answered < FEW_QUERIES <= tilt.queries:
            few.setdefault((tilt.run, tilt.a, tilt.b, tilt.queries), []).append(
                Count(name=tilt.measure, number=answered)
            )
    for (run, a, b, queries), counts in few.items():
        yield FewQueriesAnswered(run=run, a=a, b=b, queries=queries, answered=tuple(counts))


def group_notes(
    groups: Groups, left_out: Sequence[Pair], tilts: Sequence[Effect], *, absent: bool = False
) -> Iterator[Note]:
    """Note what the comparison of groups leaves out.

    `absent` says whether a run also lacks queries.
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
    first = {(tilt.a, tilt.b): tilt for tilt in reversed(tilts)}
    for a, b in dict.fromkeys((tilt.a, tilt.b) for tilt in tilts):
        tilt = first[a, b]
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
    """Warn if few queries compare a pair, or if resamples leave a tilt undefined.

    `answers` are the effects of the primary question, for audits without judgments and `tilts`.
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
    """Return the most resamples that left one of a pair's tilts undefined."""
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
        within = probability_within(judged_run.ranking, depth)
        known = (judged_run.row >= 0) & (judged_run.row < len(groups.code))
        is_member = known & (groups.code[np.where(known, judged_run.row, 0)] == 0)
        query, query_count = judged_run.ranking.query, len(judged_run.ranking.offsets) - 1
        listed = np.bincount(query, weights=within, minlength=query_count)
        members = np.bincount(query, weights=within * is_member, minlength=query_count)
        share = (
            float(np.mean(members[listed > 0] / listed[listed > 0]))
            if (listed > 0).any()
            else np.nan
        )
        yield ShareOfOnlyGroup(
            run=judged_run.run.name,
            group=group,
            share=share,
            depth=depth,
            queries=int((listed > 0).sum()),
        )


def noise_notes(
    noise: Sequence[NumericalNoise], tilts: Sequence[Effect], margin: float
) -> Iterator[Note]:
    """Warn of verdicts that could change if scores moved within their resolution.

    `tilts` are those on the measure that `noise` is about.
    """
    tilt_of = {(tilt.run, tilt.a, tilt.b): tilt for tilt in tilts}
    for moved in noise:
        tilt = tilt_of[moved.run, moved.a, moved.b]
        directions = {_direction(tilt, margin)}
        for points in (-moved.points, moved.points):
            shifted = replace(
                tilt, value=tilt.value + points, low=tilt.low + points, high=tilt.high + points
            )
            directions.add(_direction(shifted, margin))
        if len(directions) > 1:
            yield VerdictWithinNoise(
                run=moved.run,
                a=moved.a,
                b=moved.b,
                measure=tilt.measure,
                resolution=moved.resolution,
                points=moved.points,
            )


def _direction(tilt: Effect, margin: float) -> tuple[str, bool]:
    """Return the side that the interval lies on, and whether it counts as level."""
    return tilt.leans, tilt.verdict(margin) == "level"


def without_fitted(
    collection: Collection, specs: Iterable[Mapping[str, Any]]
) -> tuple[Collection, list[Note]]:
    """Leave out the queries that a stage of a run was fitted on, with a note.

    Runs are given by their specs.

    Raises
    ------
    UserError
        If no query is left.
    """
    learned = dict[str, set[str]]()
    for spec in specs:
        for _, fact in stage_facts(spec, FITTED):
            queries = learned.setdefault(str(fact.get("file", "a fit")), set())
            queries.update(map(str, fact.get("queries", ())))
    judged = collection.queries_with_judgments["id"].to_list()
    files = [file for file, queries in learned.items() if not queries.isdisjoint(judged)]
    if not files:
        return collection, []
    fitted = set[str]().union(*learned.values())
    remaining = [query for query in judged if query not in fitted]
    if not remaining:
        number = counted(len(judged), "query", "queries")
        raise UserError(
            f"nothing left to test on: {' and '.join(files)} learned from all {number}; audit "
            "other queries, such as a test split"
        )
    note = FittedQueriesLeftOut(queries=len(judged) - len(remaining), files=tuple(files))
    return collection.only_queries(remaining), [note]

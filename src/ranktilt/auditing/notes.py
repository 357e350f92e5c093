"""What a reader of an audit should know beside its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.effects import FEW_QUERIES, Effect, too_narrow
from ranktilt.auditing.groups import ALL, Groups, Pair, twin_rows
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.numerical_noise import NumericalNoise
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run, stage_facts
from ranktilt.errors import UserError, counted, join_words, shorten
from ranktilt.measures.ranking import first_ranks
from ranktilt.rankers.candidates import FITTED
from ranktilt.rankers.llm.answers import READABLE, unread_reasons
from ranktilt.rankers.self_exclusion import exclusion_notes
from ranktilt.statistics.bootstrap import FEWEST_ROWS

WARNING = "warning: "
_MOST_NAMED = 4


def run_notes(
    judged_run: JudgedRun, collection: Collection, missing: str = "zero"
) -> Iterator[str]:
    """Say what a run lacks and what it holds beyond a collection's documents."""
    name, spec = judged_run.run.name, judged_run.run.spec
    if "read_as" in spec:
        yield f"{spec.get('file', name)}: read as {spec['read_as']}"
    noun = (
        ("judged query", "judged queries")
        if judged_run.judgments.has_relevant
        else ("query", "queries")
    )
    failed = int(judged_run.failed.sum())
    if judged_run.missing > failed:
        how = (
            ""
            if not judged_run.judgments.has_relevant
            else ", counted as 0"
            if missing == "zero"
            else ", not counted"
        )
        yield f"{name}: {counted(judged_run.missing - failed, *noun)} not in the run{how}"
    if failed:
        yield f"{name}: {counted(failed, *noun)} failed by the engine, not counted"
    beyond = (judged_run.row < 0) | (judged_run.row >= collection.docs.height)
    if beyond.any():
        strange = judged_run.run.ids.gather(judged_run.run.docs[judged_run.entry[beyond]])
        yield (
            f"{name}: {counted(len(strange), 'entry', 'entries')} of "
            f"{counted(strange.n_unique(), 'document', 'documents')} {lacking(collection)} (first: {strange[0]!r}); "
            "these keep their ranks and belong to no group"
        )
    yield from (f"{name}: {note}" for note in exclusion_notes(spec))
    yield from answer_notes(judged_run.run)


def source_notes(collection: Collection, by: str | None) -> Iterator[str]:
    """Say how labels were read, and which sources were ranked together, where there is a choice."""
    if "judgments_read" in collection.spec:
        yield f"judgments: read as {collection.spec['judgments_read']}"
    if "labels_read" in collection.spec:
        yield f"labels: {collection.spec['labels_read']}"
    left, ranked = collection.spec.get("without_sources", ()), collection.sources
    if left:
        yield f"sources ranked together: {', '.join(ranked)}; without {', '.join(left)}"
    if by == "source" and len(ranked) > 2:
        yield f"mixed: {len(ranked)} sources are ranked as one, where each competes with those of other pairs too"


def answer_notes(run: Run) -> Iterator[str]:
    """Say of each stage that asked a language model what kinds of answers came, and what the unreadable ones mean."""
    for stage, said in run.llm_answers:
        kinds = {str(kind): int(n) for kind, n in said["kinds"].items()}
        total, lost = (
            sum(kinds.values()),
            sum(n for kind, n in kinds.items() if kind not in READABLE),
        )
        shown = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())
        tokens = f"{said['tokens_read']:,} tokens read, {said['tokens_written']:,} written"
        yield f"{stage}: {counted(total, 'answer', 'answers')}: {shown}; {tokens}"
        if lost:
            what = (
                "what is measured is mostly that, not the model"
                if 2 * lost > total
                else "they blur what is measured"
            )
            yield (
                f"warning: {stage}: {lost / total:.0%} of the answers decide nothing about their passages"
                f"{unread_reasons(kinds)}, which stand in random order; {what} "
                f"(first: {shorten(said['unreadable'], 100)})"
            )


def variation_notes(effects: Iterable[Effect]) -> Iterator[str]:
    """Warn of runs that cannot be called level, because too much of what they say could not have come out otherwise."""
    asked: dict[str, set[str]] = {}
    fixed: dict[tuple[str, str], dict[str, None]] = {}
    for effect in effects:
        asked.setdefault(effect.run, set()).add(effect.measure)
        if effect.variation is not None and not effect.can_be_level:
            fixed.setdefault((effect.run, effect.variation.words), {})[effect.measure] = None
    alike: dict[tuple[str, str], list[str]] = {}
    for (run, words), measures in fixed.items():
        # What is so whatever is asked names the run alone.
        on = "" if len(measures) == len(asked[run]) else f" on {', '.join(measures)}"
        alike.setdefault((on, words), []).append(run)
    for (on, words), runs in alike.items():
        yield f"warning: {few_names(runs)}{on}: {words}; level cannot be shown from these"


def warnings_of(notes: Iterable[str]) -> tuple[str, ...]:
    """Return the notes that warn, which every result made of these numbers repeats."""
    return tuple(note for note in notes if note.startswith(WARNING))


def warnings_from(where: str, notes: Iterable[str]) -> tuple[str, ...]:
    """Return the notes that warn, each with where it comes from."""
    return tuple(f"{WARNING}{where}: {note.removeprefix(WARNING)}" for note in warnings_of(notes))


def notes_from(where: str, notes: Iterable[str]) -> tuple[str, ...]:
    """Return notes, each with where it comes from; a warning stays one."""
    return tuple(
        f"{WARNING}{where}: {note.removeprefix(WARNING)}"
        if note.startswith(WARNING)
        else f"{where}: {note}"
        for note in notes
    )


def few_names(names: Sequence[str]) -> str:
    """Name a few runs, and count the others."""
    more = len(names) - _MOST_NAMED
    if more <= 1:  # the one that is left is named as soon as counted
        return join_words(list(names))
    return f"{', '.join(names[:_MOST_NAMED])} and {more:,} others"


def identical_notes(judged_runs: Sequence[JudgedRun]) -> Iterator[str]:
    """Name the runs that are one ranking under several names, such as a re-ranker that gave back its candidates."""
    alike: dict[bytes, list[str]] = {}
    for one in judged_runs:
        alike.setdefault(one.fingerprint, []).append(one.run.name)
    for names in alike.values():
        if len(names) > 1:
            yield f"{few_names(names)} are identical: they give every query the same list"


def repeated_notes(repeated: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Say how many queries repeat others; of runs with the same ones once."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for run, found in repeated.items():
        groups.setdefault(tuple(found), []).append(run)
    for queries, runs in groups.items():
        verb = "repeats" if len(queries) == 1 else "repeat"
        yield (
            f"warning: {', '.join(runs)}: {counted(len(queries), 'query', 'queries')} {verb} others, by text or by "
            f"ranking and judgments (first: {queries[0]!r} as {repeated[runs[0]][queries[0]]!r}); such queries are "
            "resampled and tested together, as one"
        )


def lacking(collection: Collection) -> str:
    """Say of a document that it is not there: in a collection, or among the labels that stand for one."""
    return "without a label" if only_labels(collection) else "not in the collection"


def only_labels(collection: Collection) -> bool:
    """Whether labels stand for a collection, without its texts."""
    return "labels" in collection.spec and "path" not in collection.spec


def judgment_notes(judgments: Judgments, collection: Collection) -> Iterator[str]:
    """Say how many judgments name what the collection does not hold, and how fractions among their grades count."""
    strange = "documents without a label" if only_labels(collection) else "unknown documents"
    counts = {
        strange: int((judgments.row >= collection.docs.height).sum()),
        "unknown queries": int((~judgments.known_query[judgments.query]).sum()),
    }
    said = [f"{counted(n, 'judgment', 'judgments')} of {what}" for what, n in counts.items() if n]
    if said:
        verb = "counts" if sum(counts.values()) == 1 else "count"
        yield f"{' and '.join(said)} {verb} in the row {ALL!r} and in no group"
    grades = collection.qrels["grade"]
    if grades.dtype.is_float():
        some = grades.filter(grades % 1 != 0)
        yield (
            f"{counted(len(some), 'grade is a fraction', 'grades are fractions')} (first: {some[0]:g}): nDCG takes "
            "grades as gains; AP, P, R and RR count those from 1 on, or from the measure's rel"
        )


def twin_notes(
    collection: Collection, groups: Groups, uneven: Sequence[Pair], judgments: Judgments
) -> Iterator[str]:
    """Say why groups that mostly are twins, but not all (`uneven` pairs), are not held to be so."""
    unlabelled = groups.unlabelled
    for pair in uneven:
        twins = twin_rows(collection, groups, pair)
        sides = [groups.names.index(name) for name in pair]
        judged = judgments.frame().filter(pl.Series(np.isin(judgments.group, sides)))
        alone = judged.filter(~pl.col("row").is_in(np.unique(twins)))
        if not 0 < 2 * alone.height <= judged.height:
            continue
        noun = counted(judged.height, "relevance judgment", "relevance judgments")
        of = "is of a document" if alone.height == 1 else "are of documents"
        lost = (
            f" ({counted(unlabelled, 'document has', 'documents have')} no label)"
            if unlabelled
            else ""
        )
        yield (
            f"{' and '.join(pair)} are not twins: {alone.height:,} of {noun} {of} without a twin on the other "
            f"side{lost}, so level is the median of random labels and not 0"
        )


def card_notes(collection: Collection, groups: Groups, *, twins: bool) -> Iterator[str]:
    """Say what a card lacks where no document has a twin."""
    labels = only_labels(collection)
    if twins or groups.values is not None or not (labels or groups.by == "source"):
        return
    alone = (collection.docs["origin"] == collection.docs["id"]).all()
    needed = f"documents of two {'sources' if groups.by == 'source' else 'groups'} with one origin"
    if labels and alone:
        needed = f"the column origin in {collection.spec['labels']}"
    yield f"head-to-head, rank gap and score gap need twins: {needed}"


def sparse_notes(
    tilts: Sequence[Effect], runs: Sequence[str], groups: Groups, values: npt.NDArray[np.float64]
) -> Iterator[str]:
    """Say where many queries are compared and few say something: the others have 0 on both sides, and add nothing."""
    measures = list(dict.fromkeys(t.measure for t in tilts))
    few = dict[tuple[str, str, str, int], list[str]]()
    for tilt in tilts:
        of_run = values[runs.index(tilt.run), measures.index(tilt.measure)]
        one, two = (of_run[groups.names.index(name) + 1] for name in (tilt.a, tilt.b))
        found = int((~np.isnan(one) & ~np.isnan(two) & ((one > 0) | (two > 0))).sum())
        if 0 < found < FEW_QUERIES <= tilt.queries:
            few.setdefault((tilt.run, tilt.a, tilt.b, tilt.queries), []).append(
                f"{tilt.measure} ({found})"
            )
    for (run, a, b, queries), counts in few.items():
        yield (
            f"warning: {run}: few of {queries:,} queries retrieved a relevant document of {a} or {b} on "
            f"{', '.join(counts)}; intervals from fewer than {FEW_QUERIES} such queries are too narrow to rely on"
        )


def group_notes(
    groups: Groups,
    left_out: Sequence[Pair],
    tilts: Sequence[Effect],
    resamples: int,
    *,
    absent: bool = False,
) -> Iterator[str]:
    """Say what the comparison leaves out (`absent`: queries that a run lacks too), and where it stands on little."""
    yield from (remark.sentence for remark in groups.remarks)
    if groups.unlabelled:
        without = counted(groups.unlabelled, "document", "documents")
        yield f"{without} without {groups.by}, in no group"
    if groups.several:
        held = counted(groups.several, "document names", "documents name")
        yield (
            f"{held} several groups of {groups.by}: an equal part in each where all groups are asked about at once, "
            "in none where two are compared"
        )
    if groups.outside:
        yield (
            f"{counted(groups.outside, 'document', 'documents')} outside the pool, in no group: they have no twin by "
            "design; who fills the page (ΔNDSR) is asked of the pool alone, not of a full rewrite"
        )
    for a, b in left_out:
        yield f"{a} and {b} have no Relative Δ: one of them has no relevant document"
    first = {(t.a, t.b): t for t in reversed(tilts)}
    for pair in dict.fromkeys((t.a, t.b) for t in tilts):
        tilt = first[pair]
        if tilt.excluded:
            total = tilt.queries + tilt.excluded
            yield (
                f"{tilt.excluded} of {counted(total, 'query', 'queries')} excluded: no relevant document of both "
                f"{tilt.a} and {tilt.b}{', or not in the run' if absent else ''}"
            )
        if tilt.queries < FEW_QUERIES:
            yield too_narrow(
                f"{counted(tilt.queries, 'query compares', 'queries compare')} {tilt.a} and {tilt.b}",
                tilt.queries,
            )
        drawn = (t for t in tilts if (t.a, t.b) == pair and t.queries >= FEWEST_ROWS)
        dropped = max((t.dropped for t in drawn), default=0)
        if dropped:
            yield f"up to {dropped:,} of {resamples:,} resamples dropped for {tilt.a} and {tilt.b}: both sides were 0"


def lone_group_notes(
    judged_runs: Sequence[JudgedRun], groups: Groups, collection: Collection, *, depth: int | None
) -> Iterator[str]:
    """Say that one group alone is left; where a `depth` is given, also how much of the first ranks it holds."""
    if len(groups.names) != 1:
        return
    (group,) = groups.names
    hint = "; what are all others? --rest LABEL" if "labels" in collection.spec else ""
    yield f"only {groups.by} {group!r} is left, so nothing is compared{hint}"
    for judged_run in judged_runs if depth else ():
        within = first_ranks(judged_run.ranking, depth)
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
        queries = counted(int((listed > 0).sum()), "query", "queries")
        yield f"{judged_run.run.name}: {group} holds {100 * share:.1f} % of the first {depth} ranks (mean of {queries})"


def noise_notes(
    noise: Sequence[NumericalNoise], tilts: Sequence[Effect], margin: float
) -> Iterator[str]:
    """Warn of verdicts that would be others if scores moved within their resolution.

    `tilts` are those of the measure that the noise is about.
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
            yield (
                f"warning: {moved.run}: the verdict on {moved.a} and {moved.b} hangs on numerical "
                f"noise: scores known to {moved.resolution} leave Relative Δ on {tilt.measure} "
                f"open by ±{moved.points:.1f} points"
            )


def _direction(tilt: Effect, margin: float) -> tuple[str, bool]:
    """Return which side the interval lies on, and whether it counts as level."""
    return tilt.leans, tilt.verdict(margin) == "level"


def without_fitted(collection: Collection, runs: Sequence[Run]) -> tuple[Collection, list[str]]:
    """Leave out the queries that a stage of a run was fitted on, with a note; `UserError` if none is left."""
    learned = dict[str, set[str]]()
    for run in runs:
        for _, said in stage_facts(run.spec, FITTED):
            learned.setdefault(str(said.get("file", "a fit")), set()).update(
                map(str, said.get("queries", ()))
            )
    asked = collection.queries_with_judgments["id"].to_list()
    held = {file: [name for name in asked if name in queries] for file, queries in learned.items()}
    held = {file: names for file, names in held.items() if names}
    if not held:
        return collection, []
    gone = {name for names in held.values() for name in names}
    files = " and ".join(held)
    if len(gone) == len(asked):
        raise UserError(
            f"nothing left to test on: {files} learned from all {counted(len(asked), 'query', 'queries')}; audit "
            "others, such as a test split"
        )
    note = (
        f"{counted(len(gone), 'query', 'queries')} left out for all runs: {files} learned from them"
    )
    return collection.only_queries(name for name in asked if name not in gone), [note]

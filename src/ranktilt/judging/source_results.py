"""Which source of documents each judge favours: grade gaps of twins, and the tilt of each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.compare import compare
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.confounds import Confound, confounds
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import Pair, grouping, twin_rows
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.notes import variation_notes
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.auditing.significance import InferenceOptions
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, notes_within
from ranktilt.data.run import Run, named_apart, require_runs
from ranktilt.judging.grade_gap import grade_gaps, judge_variation
from ranktilt.judging.grades import Graded
from ranktilt.judging.result import JudgedTilt
from ranktilt.judging.system_groups import run_tags
from ranktilt.measures.base import Measure, measure


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluatedRuns:
    """The systems that both judges evaluate, and by which measures."""

    runs: tuple[Run, ...]
    measures: tuple[Measure, ...]
    tags: Mapping[str, str]
    """The tag in each run's file, by the run's name; empty for none."""

    @classmethod
    def from_arguments(
        cls, runs: Run | Iterable[Run], measures: str | Measure | Sequence[str | Measure]
    ) -> EvaluatedRuns:
        """Take runs and measures as a user gives them; runs of one name get names of their own."""
        runs = require_runs(runs)
        tags = run_tags(runs)
        runs = named_apart(runs)
        if isinstance(measures, str | Measure):
            measures = [measures]
        return cls(
            runs=tuple(runs),
            measures=tuple(measure(name) for name in measures),
            tags={run.name: tags.get(run.spec.get("file", ""), "") for run in runs},
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class GradedCollection:
    """A collection with two sources of twins, and the grades of its documents."""

    collection: Collection
    graded: tuple[Graded, ...]
    """For each judge, the pairs that humans graded too."""
    by_judge: Mapping[str, pl.DataFrame]
    """All grades of each judge."""
    pair: Pair


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceResults:
    """Which source of documents each judge favours."""

    grade_gaps: tuple[Effect, ...] = ()
    confounds: tuple[Confound, ...] = ()
    tilts: tuple[JudgedTilt, ...] = ()
    notes: tuple[Note, ...] = ()


def source_results(
    graded: GradedCollection, evaluated: EvaluatedRuns, inference: InferenceOptions
) -> SourceResults:
    """Compare the sources of documents: grade gaps of twins, and the tilt of each run."""
    collection, pair = graded.collection, graded.pair
    notes = list[Note]()
    gaps: tuple[Effect, ...] = ()
    differences: tuple[Confound, ...] = ()
    if collection.pairs(*pair).height:
        gaps, gap_notes = grade_gaps(collection, dict(graded.by_judge), pair, inference=inference)
        notes += gap_notes
        variation = {pairs.judge: judge_variation(pairs.pairs) for pairs in graded.graded}
        gaps = tuple(replace(gap, variation=variation[gap.run]) for gap in gaps)
        notes += variation_notes(gap for gap in gaps if not gap.estimand.options)
        differences = _confounds(collection, pair)
    tilts = list[JudgedTilt]()
    for pairs_of_judge in graded.graded if evaluated.runs else ():
        compared = _compared_audits(pairs_of_judge, graded, evaluated, inference)
        notes += notes_within(compared.notes, "judge", pairs_of_judge.judge)
        for change in compared.tilts:
            tilts.append(JudgedTilt(judge=pairs_of_judge.judge, change=change))
    return SourceResults(
        grade_gaps=gaps, confounds=differences, tilts=tuple(tilts), notes=tuple(notes)
    )


def _confounds(collection: Collection, pair: Pair) -> tuple[Confound, ...]:
    """List the other differences between the two sources."""
    groups = grouping(collection, "source")
    judgments = Judgments.from_collection(collection, groups)
    twins = TwinPairs.from_rows(pair, twin_rows(collection, groups, pair), judgments)
    return tuple(confounds(collection, groups, twins, ()))


def _compared_audits(
    pairs: Graded,
    graded: GradedCollection,
    evaluated: EvaluatedRuns,
    inference: InferenceOptions,
) -> Comparison:
    """Compare audits under the judge and under humans, on the pairs that both graded."""
    collection = graded.collection
    audits = []
    for grader in ("judged", "human"):
        qrels = pairs.pairs.select("query_id", "doc_id", grade=grader)
        judged = Collection(collection.docs, collection.queries, qrels, collection.spec)
        audits.append(
            audit(
                judged,
                evaluated.runs,
                evaluated.measures,
                pairs=[graded.pair],
                confounds=False,
                keep_top=0,
                resamples=inference.resamples,
                seed=inference.seed,
                correction=inference.correction,
            )
        )
    by_judge, by_humans = audits
    return compare(
        by_judge,
        by_humans,
        resamples=inference.resamples,
        seed=inference.seed,
        correction=inference.correction,
    )

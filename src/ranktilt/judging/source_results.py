"""The source of documents that each judge favours: grade gaps of twins, and tilts of runs.

A *judge* is whoever gives the grades that are compared with human ones. *Twins* are two versions of
one text from two sources; a judge's *grade gap* is its grade of the first minus its grade of the
second. The *tilt* of a run is how much better it ranks one source; it depends on the grades, and is
computed under the judge's grades and under the human ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.compare import compare
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.confounds import Confound, confounds
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.grouping.pairs import grouped_pairs
from ranktilt.auditing.grouping.twins import twin_rows
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.notes import variation_notes
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.auditing.significance import InferenceOptions
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, notes_within
from ranktilt.data.notes.comparisons import TwinsInOneAudit
from ranktilt.judging.grade_gap import grade_gaps, judge_variation
from ranktilt.judging.grades import GradedPairs
from ranktilt.judging.judge_grades import JudgeGrades
from ranktilt.judging.records import JudgedTilt
from ranktilt.judging.systems.evaluated_runs import EvaluatedRuns


@dataclass(frozen=True, kw_only=True, eq=False)
class GradedCollection:
    """A collection with documents of two sources, and the grades of its documents."""

    collection: Collection
    """The collection."""
    pairs_of_judges: tuple[GradedPairs, ...]
    """For each judge, the pairs that humans graded too."""
    by_judge: Mapping[str, pl.DataFrame]
    """All grades of each judge."""
    pair: Pair
    """Names of both sources."""
    remarks: tuple[Note, ...]
    """Notes on the labels that name the sources of its documents."""

    @classmethod
    def from_grades(
        cls, collection: Collection, grades: JudgeGrades, pair: Pair | None
    ) -> GradedCollection:
        """Take the pair of sources to compare; with None the first two of the collection."""
        groups, pairs = grouped_pairs(collection, "source", None if pair is None else [pair])
        return cls(
            collection=collection,
            pairs_of_judges=grades.pairs_of_judges,
            by_judge=grades.by_judge,
            pair=pairs[0],
            remarks=groups.remarks,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceResults:
    """The source of documents that each judge favours."""

    grade_gaps: tuple[Effect, ...] = ()
    """Grade gaps of twins."""
    confounds: tuple[Confound, ...] = ()
    """Other differences between the sources."""
    tilts: tuple[JudgedTilt, ...] = ()
    """For each judge and run, the tilt under the judge's grades minus that under human ones."""
    notes: tuple[Note, ...] = ()
    """Notes on labels and twins."""
    twins: tuple[str, ...] = ()
    """Names of the two sources that are compared; empty if the collection has one."""


def source_results(
    graded: GradedCollection, evaluated: EvaluatedRuns, inference: InferenceOptions
) -> SourceResults:
    """Compare the sources of documents: grade gaps of twins, and the tilt of each run.

    `graded` holds the collection and all grades, `evaluated` the runs and measures of tilts, and
    `inference` the resamples, the seed and the correction of p. Without twins there are no grade
    gaps, and without runs no tilts.
    """
    collection, pair = graded.collection, graded.pair
    notes = list[Note](graded.remarks)
    gaps: tuple[Effect, ...] = ()
    differences: tuple[Confound, ...] = ()
    if collection.pairs(*pair).height:
        gaps, gap_notes = grade_gaps(collection, dict(graded.by_judge), pair, inference=inference)
        notes += gap_notes
        variation = {
            pairs_of_judge.judge: judge_variation(pairs_of_judge.table)
            for pairs_of_judge in graded.pairs_of_judges
        }
        # The run of an effect is here the judge.
        gaps = tuple(replace(gap, variation=variation[gap.run]) for gap in gaps)
        notes += variation_notes(gap for gap in gaps if not gap.estimand.options)
        differences = _confounds(collection, pair)
    tilts = list[JudgedTilt]()
    judges_to_compare = graded.pairs_of_judges if evaluated.runs else ()
    for pairs_of_judge in judges_to_compare:
        compared = _compared_audits(pairs_of_judge, graded, evaluated, inference)
        notes += _notes_under_judge(compared.notes, pairs_of_judge.judge)
        for change in compared.tilts:
            tilts.append(JudgedTilt(judge=pairs_of_judge.judge, change=change))
    return SourceResults(
        grade_gaps=gaps,
        confounds=differences,
        tilts=tuple(tilts),
        notes=tuple(notes),
        twins=tuple(pair),
    )


def _notes_under_judge(notes: Iterable[Note], judge: str) -> tuple[Note, ...]:
    """Return the notes of a comparison of audits, worded and marked as notes on a judge."""
    of_judge = list[Note]()
    for note in notes:
        if isinstance(note, TwinsInOneAudit):
            # Versions of one text with different grades are no twins, so that the two audits may
            # have different twins. The reader knows them by their grades, not as new and old.
            new_names = {
                "the new audit": "the audit under its grades",
                "the old audit": "the audit under human grades",
            }
            sides = new_names[note.sides[0]], new_names[note.sides[1]]
            note = replace(note, sides=sides, can_be_alike=False)
        of_judge.append(note)
    return notes_within(of_judge, "judge", judge)


def _confounds(collection: Collection, pair: Pair) -> tuple[Confound, ...]:
    """List the other differences between the two sources."""
    groups = grouping(collection, "source")
    judgments = Judgments.from_collection(collection, groups)
    twins = TwinPairs.from_rows(pair, twin_rows(collection, groups, pair), judgments)
    return tuple(confounds(collection, groups, twins, ()))


def _compared_audits(
    pairs_of_judge: GradedPairs,
    graded: GradedCollection,
    evaluated: EvaluatedRuns,
    inference: InferenceOptions,
) -> Comparison:
    """Compare an audit of the runs under the judge with one under humans.

    Both use only the pairs of query and document that the judge and humans graded.
    """
    collection = graded.collection
    audits = []
    for grader in ("judged", "human"):
        # Everything but the grades is the same.
        qrels = pairs_of_judge.table.select("query_id", "doc_id", grade=grader)
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

"""The source of documents that each judge favours: grade gaps of twins, and tilts of runs.

A *judge* is whoever gives the grades that are compared with human ones. *Twins* are two versions of
one text from two sources, such as a person and a model; a judge's *grade gap* is its grade of the
first minus its grade of the second, for the same query. The *tilt* of a run is how much better it
ranks one source; it depends on the grades, and is computed under the judge's grades and under the
human ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.compare import compare
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.confounds import Confound, confounds
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.grouping.pairs import grouped_pairs, twin_rows
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.notes import variation_notes
from ranktilt.auditing.null_distributions.base import NullDistribution
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.auditing.significance import InferenceOptions, Sample, effects
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, notes_within
from ranktilt.data.notes.comparisons import TwinsInOneAudit
from ranktilt.data.notes.judges import TwinsWithoutGap
from ranktilt.judging.grades import GradedPairs
from ranktilt.judging.judge_grades import JudgeGrades
from ranktilt.judging.records import JudgedTilt
from ranktilt.judging.systems.evaluated_runs import EvaluatedRuns
from ranktilt.measures.grade_gap import GradeGap, GradeGapOfTwins
from ranktilt.statistics.permutation import exchanged_sums
from ranktilt.statistics.two_way import Clusters
from ranktilt.statistics.variation import Variation, grade_variation

_SEED = 13
"""Second part of the seed of exchanges, so that other tests have independent draws."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GradedCollection:
    """A collection with documents of two sources, and the grades of its documents."""

    collection: Collection
    """The collection."""
    human: pl.DataFrame
    """Human grades: ``query_id``, ``doc_id``, ``grade``."""
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
        cls, collection: Collection, human: pl.DataFrame, grades: JudgeGrades, pair: Pair | None
    ) -> GradedCollection:
        """Take the pair of sources to compare; with None the first two of the collection."""
        groups, pairs = grouped_pairs(collection, "source", None if pair is None else [pair])
        return cls(
            collection=collection,
            human=human,
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
        gaps, gap_notes = _grade_gaps(graded, inference)
        notes += gap_notes
        variation = {
            pairs_of_judge.judge: _judge_variation(pairs_of_judge.table)
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


# ---- grade gaps of twins -------------------------------------------------------------------------


def _grade_gaps(
    graded: GradedCollection, inference: InferenceOptions
) -> tuple[tuple[Effect, ...], list[Note]]:
    """Test each judge's grade gap over all twins, and for each human grade.

    The test exchanges the two sources within the twins of a text, at random: if a judge favours
    none, its grades could as well have been given the other way round. Twins with different human
    grades are left out and counted in a note. `inference` holds the resamples, the seed and the
    correction of p.
    """
    samples, notes = list[Sample](), list[Note]()
    pair_rows = graded.collection.pairs(*graded.pair)
    for name, judged in graded.by_judge.items():
        twins, with_one_grade = twin_grades(pair_rows, judged, graded.human)
        unequal = twins.filter(~pl.col("same")).height
        if with_one_grade:
            note = TwinsWithoutGap(judge=name, twins=with_one_grade, reason="one side")
            notes.append(note)
        if unequal:
            notes.append(TwinsWithoutGap(judge=name, twins=unequal, reason="two human grades"))
        for human_grade, graded_twins in _by_human_grade(twins.filter("same")):
            estimand = GradeGap
            if human_grade != "any":
                estimand = replace(GradeGap, grade=human_grade)
            gap = _GradedTwins(judge=name, pair=graded.pair, estimand=estimand, twins=graded_twins)
            samples.append(gap.sample(inference))
    return effects(samples, inference, primary=GradeGap), notes


def twin_grades(
    twins: pl.DataFrame, judged: pl.DataFrame, human: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Return the grade gaps of twins, and how many twins have only one graded side.

    Parameters
    ----------
    twins : polars.DataFrame
        The twins of two sources: ``origin``, and the ids of documents in ``a`` and ``b``.
    judged, human : polars.DataFrame
        Grades of the judge, and of humans: ``query_id``, ``doc_id``, ``grade``.

    Returns
    -------
    tuple of polars.DataFrame and int
        The table has a row for each query and twins that have two grades: ``query_id``, ``origin``
        (the text of which both are versions), ``gap``, ``human`` (human grade of the first side,
        null without one) and ``same`` (whether both sides have the same human grade, or none).
    """
    human = human.select("query_id", "doc_id", human=pl.col("grade"))
    grades = judged.select("query_id", "doc_id", "grade").join(
        human, on=["query_id", "doc_id"], how="left"
    )
    first, second = (_side_grades(twins, side, grades) for side in ("a", "b"))
    graded_twins = first.join(second, on=["pair", "origin", "query_id"], suffix="_b")
    with_one_grade = first.height + second.height - 2 * graded_twins.height
    gaps = graded_twins.select(
        "query_id",
        "origin",
        "human",
        gap=(pl.col("grade") - pl.col("grade_b")).cast(pl.Float64),
        same=pl.col("human").eq_missing(pl.col("human_b")),
    )
    return gaps.sort("query_id", "origin"), with_one_grade


def _side_grades(twins: pl.DataFrame, side: str, grades: pl.DataFrame) -> pl.DataFrame:
    """Return the grades of one side's documents, with the number of their twins as ``pair``.

    `twins` has the ids of documents in the columns ``a`` and ``b``, and `side` is one of these.
    """
    documents = twins.select("origin", doc_id=side).with_row_index("pair")
    return documents.join(grades, on="doc_id").drop("doc_id")


def _by_human_grade(twins: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield all twins with the name ``any``, then those of each human grade, if there are several.

    `twins` is the table of `twin_grades`.
    """
    yield "any", twins
    human_grades = sorted(twins["human"].drop_nulls().unique())
    if len(human_grades) > 1:
        for human_grade in human_grades:
            yield f"{human_grade:g}", twins.filter(pl.col("human") == human_grade)


@dataclass(frozen=True, kw_only=True, eq=False)
class _GradedTwins:
    """The twins behind one grade gap of a judge."""

    judge: str
    """Name of the judge."""
    pair: Pair
    """Names of both sources."""
    estimand: GradeGapOfTwins
    """The question: the gap over all twins, or over those with one human grade."""
    twins: pl.DataFrame
    """``query_id``, ``origin`` and ``gap`` of the twins, as `twin_grades` returns them."""

    def sample(self, inference: InferenceOptions) -> Sample:
        """Sum the gaps of each query, with the p of a test that exchanges the two sources."""
        query_count = self.twins["query_id"].n_unique()
        query = self.twins["query_id"].rank("dense").to_numpy().astype(np.int64) - 1
        origin = self.twins["origin"].rank("dense").to_numpy().astype(np.int64) - 1
        gap = self.twins["gap"].to_numpy()
        total = np.bincount(query, weights=gap, minlength=query_count).astype(np.float64)
        weight = np.bincount(query, minlength=query_count).astype(np.float64)
        counts = {
            "pairs": float(len(gap)),
            "higher": float((gap > 0).sum()),
            "lower": float((gap < 0).sum()),
        }
        first, second = self.pair
        clusters = Clusters(query=query, origin=origin, total=gap, weight=np.ones(len(gap)))
        sample = Sample(
            run=self.judge,
            estimand=self.estimand,
            a=first,
            b=second,
            numerator=total,
            denominator=weight,
            details=counts,
            clusters=clusters,
        )
        if not len(gap):
            return replace(sample, clusters=None)
        # Sums of all gaps after random exchanges of the two sources within the twins of a text.
        exchanged_totals = exchanged_sums(
            clusters.origin_totals, draws=inference.resamples, seed=[inference.seed, _SEED]
        )
        mean_gaps = exchanged_totals / len(gap)
        p = NullDistribution.from_draws(sample.value, mean_gaps).p
        # Only the p of the exchanged sources is used. The neutral value of a gap is exactly 0, and
        # not a range of values that random labels may have.
        return replace(sample, null=NullDistribution(low=0.0, high=0.0, p=p))


def _judge_variation(pairs: pl.DataFrame) -> Variation:
    """Count the queries in which a judge gives different grades, among those in which humans do.

    `pairs` has the columns ``query_id``, ``judged`` and ``human``. If humans never give different
    grades, a judge that gives several grades in all can vary.
    """
    grade_counts = pairs.group_by("query_id").agg(pl.col("judged", "human").n_unique())
    if pairs["judged"].n_unique() < 2:  # then every query is constant
        return grade_variation(grade_counts.height, grade_counts.height)
    varied = grade_counts.filter(pl.col("human") > 1)
    constant = varied.filter(pl.col("judged") == 1)
    # Counted as at least one query, because a judge that gives several grades can vary.
    return grade_variation(max(varied.height, 1), constant.height)

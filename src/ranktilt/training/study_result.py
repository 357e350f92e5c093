"""The result of a training study: rankers that learned from human or from LLM documents.

A *source* is the author of documents: people (the *reference*) or a language model. A *side* is the
documents of one source. A *body* is the encoder that a training starts from. Relative Δ, a ranker's
*tilt*, is how much it favours the reference. The *first stage* is BM25, whose documents the trained
rankers re-rank. A *training* has a seed; trainings that differ in it alone are one *ranker*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ranktilt.auditing.effects import ALPHA, Change, Effect
from ranktilt.auditing.groups import ALL
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.errors import join_words, unknown_name

BASELINE = "BM25"
"""Name of the first stage."""
Kind = Literal["supervised", "zero-shot", "seen", "first stage", "curve"]
"""Kind of an evaluation; the field `Evaluation.kind` explains each."""
KINDS: tuple[Kind, ...] = ("supervised", "zero-shot", "seen", "first stage", "curve")
"""Kinds in the order of results."""


@dataclass(frozen=True, kw_only=True)
class TrainedRanker:
    """One training of one encoder."""

    body: str
    """Name of the encoder that the training started from."""
    documents: tuple[str, ...]
    """Sources of the documents to learn from."""
    seed: int
    """Seed of the training; trainings that differ in it alone are one ranker, shown by its mean."""
    ranker: str
    """Text that names the ranker, such as ``cross-encoder:FOLDER``; empty before it is trained."""
    limits: tuple[tuple[str, int], ...] = ()
    """Number of documents of each source that the ranker learned from, for the learning curve;
    empty if it learned from all."""
    tuned: str = ""
    """Task that the encoder was fine-tuned for before, such as ``retrieval``; empty if it was
    pretrained alone."""

    @property
    def learned(self) -> str:
        """Documents that the ranker learned from: ``human``, or ``100 human and 50 llm``."""
        counts = dict(self.limits)
        phrases = [
            f"{counts[name]:,} {name}" if name in counts else name for name in self.documents
        ]
        return join_words(phrases)

    @property
    def name(self) -> str:
        """Name in print, which trainings with other seeds share."""
        return f"{self.body} trained on {self.learned}"

    @property
    def run(self) -> str:
        """Name of the ranker's runs, which no two trainings share."""
        return f"{self.name}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class SeedValues:
    """Values of one ranker's trainings, one for each seed."""

    ranker: str
    """Name of the ranker."""
    measure: str
    """Notation of the measure."""
    values: tuple[float, ...]
    """Mean over queries for each seed, 0 to 1."""

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """Standard deviation over the seeds; NaN for a single one."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else float("nan")


@dataclass(frozen=True, kw_only=True)
class AnswerOverlap:
    """Share of a query's distinct words that are in a relevant document of one side, 0 to 1.

    The values summarise these shares over all pairs of a query and a relevant document.
    """

    source: str
    """Side of the documents."""
    pairs: int
    """Number of pairs of a query and a relevant document."""
    mean: float
    """Mean share."""
    low: float
    """Lower quartile."""
    median: float
    """Median."""
    high: float
    """Upper quartile."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """All rankers on one collection; values per query are means over a ranker's trainings."""

    name: str
    """Name of the collection."""
    kind: Kind
    """What was ranked.

    ``supervised``: the test split of the collection that was learned from; ``zero-shot``: another
    collection; ``seen``: queries of the training, by rankers that did not see their labels; ``first
    stage``: BM25 on one side of one split; ``curve``: the test split, by rankers that learned from
    a limited number of documents.
    """
    queries: int
    """Number of queries."""
    documents: int
    """Number of documents."""
    depth: int
    """Number of documents that are re-ranked for each query."""
    measures: tuple[str, ...]
    """Notations of the measures, such as ``nDCG@10``."""
    groups: tuple[str, ...]
    """Groups of documents: ``all``, then the domains."""
    means: tuple[Effect, ...]
    """Mean of every ranker, group (in the fields `a` and `b` alike) and measure, 0 to 1."""
    differences: tuple[Change, ...] = ()
    """Difference between every two rankers, by group and measure, in points: `run` minus `old_run`.

    p comes from the interval, with Holm's correction over all differences in a group.
    """
    t_tests: tuple[Change, ...] = ()
    """The same differences with the p of the paired t test, with Bonferroni's correction."""
    seeds: tuple[SeedValues, ...] = ()
    """Mean over all queries for each seed of a ranker's trainings, by ranker and measure."""
    split: str = ""
    """Split of the judgments if the kind is ``first stage``; empty in others."""
    side: str = ""
    """Source of the ranked documents if the kind is ``first stage``; empty in others."""

    @property
    def rankers(self) -> tuple[str, ...]:
        """Names of the rankers, the first stage first."""
        return tuple(dict.fromkeys(mean.run for mean in self.means))

    def mean(self, ranker: str, measure: str, group: str = ALL) -> Effect:
        """Return the mean of a ranker for a measure in a group; `UserError` if there is none."""
        for mean in self.means:
            if (mean.run, mean.measure, mean.a) == (ranker, measure, group):
                return mean
        known = [f"{mean.run}, {mean.measure}, {mean.a}" for mean in self.means]
        raise unknown_name("ranker, measure and group", f"{ranker}, {measure}, {group}", known)

    def difference(self, new: str, old: str, measure: str, group: str = ALL) -> Change | None:
        """Return `new` minus `old` for a measure in a group; None if they were not compared."""
        for change in self.differences:
            compared = (change.run, change.old_run, change.measure, change.a)
            if compared == (new, old, measure, group):
                return change
        return None

    def best(
        self, ranker: str, measure: str, group: str = ALL, *, test: Literal["t", "interval"] = "t"
    ) -> bool:
        """Return whether a ranker is significantly better than every other one.

        The first stage is among the others. `test` says whose p counts: that of the paired t test,
        or that of the interval.
        """
        changes = [
            change
            for change in (self.t_tests if test == "t" else self.differences)
            if (change.measure, change.a) == (measure, group)
            and ranker in (change.run, change.old_run)
        ]
        if not changes or len(changes) != len(self.rankers) - 1:
            return False  # not compared with all others
        for change in changes:
            gain = change.value if change.run == ranker else -change.value
            if not (change.p_corrected < ALPHA and gain > 0):
                return False
        return True


class Contrast(NamedTuple):
    """Two rankers of one body: one learned from the reference, one from another side."""

    body: str
    """Name of the encoder."""
    new: str
    """Name of the ranker that learned from another side."""
    reference: str
    """Name of the ranker that learned from the reference."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingStudy(
    Result,
    format="ranktilt-training-study",
    version=1,
    noun="a training study",
    command="ranktilt train study",
):
    """The result of a training study; immutable.

    Parameters
    ----------
    spec : mapping
        How the study was made: options, collections, versions.
    reference : str
        Source of people's documents; positive Relative Δ favours it.
    rankers : tuple of TrainedRanker
        Every training.
    evaluations : tuple of Evaluation
        One for each ranked collection, in the order of `KINDS`.
    tilts : tuple of Effect
        Relative Δ of the first stage and of every training, on documents of all sources; empty if
        these were not ranked together.
    tilt_changes : tuple of Change
        For every body and seed, Relative Δ of the ranker that learned from another side minus that
        of the ranker that learned from the reference.
    overlaps : tuple of AnswerOverlap
        Share of the words of queries that are in the relevant documents of each side.
    notes : tuple of Note
        What a reader should know.
    """

    spec: Mapping[str, Any]
    reference: str
    rankers: tuple[TrainedRanker, ...]
    evaluations: tuple[Evaluation, ...]
    tilts: tuple[Effect, ...]
    tilt_changes: tuple[Change, ...]
    overlaps: tuple[AnswerOverlap, ...]
    notes: tuple[Coded[Note], ...]

    def of_kind(self, *kinds: Kind) -> tuple[Evaluation, ...]:
        """Return the evaluations of these kinds."""
        return tuple(evaluation for evaluation in self.evaluations if evaluation.kind in kinds)

    @property
    def primary(self) -> str:
        """Measure that sentences and figures are about; every evaluation has it."""
        return str(self.spec["primary"])

    @property
    def tuned(self) -> dict[str, str]:
        """Task that each body was fine-tuned for before, by body; without bodies that were not."""
        return {ranker.body: ranker.tuned for ranker in self.rankers if ranker.tuned}

    @property
    def contrasts(self) -> list[Contrast]:
        """Rankers that learned from another side, with those that learned from the reference."""
        names = {
            (ranker.body, ranker.documents): ranker.name
            for ranker in self.rankers
            if not ranker.limits
        }
        contrasts = []
        for (body, _), name in names.items():
            reference_name = names.get((body, (self.reference,)), name)
            if reference_name != name:
                contrasts.append(Contrast(body=body, new=name, reference=reference_name))
        return contrasts

    def moved(self, name: str) -> list[Change]:
        """Return a ranker's Relative Δ minus that of the one that learned from the reference.

        There is one change for each seed and source, for the primary measure. `name` is that of a
        ranker (`TrainedRanker.name`).
        """
        runs = {ranker.run for ranker in self.rankers if ranker.name == name}
        return [
            change
            for change in self.tilt_changes
            if change.run in runs and change.measure == self.primary
        ]

"""The result of a training study: what rankers do that learned from human or LLM documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ranktilt.auditing.effects import ALPHA, Change, Effect
from ranktilt.auditing.groups import ALL
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.errors import join_words, unknown

BASELINE = "BM25"
Kind = Literal["supervised", "zero-shot", "seen", "first stage", "curve"]
KINDS: tuple[Kind, ...] = ("supervised", "zero-shot", "seen", "first stage", "curve")


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
    """Text of the ranker, such as ``cross-encoder:FOLDER``."""
    limits: tuple[tuple[str, int], ...] = ()
    """Numbers of documents of each source, where not all were learned from (augmentation curve)."""
    tuned: str = ""
    """Task that the encoder was tuned for before, such as ``retrieval``; empty for pretraining
    alone."""

    @property
    def learned(self) -> str:
        """Documents that the ranker learned from: ``human``, or ``100 human and 50 llm``."""
        counts = dict(self.limits)
        parts = [f"{counts[name]:,} {name}" if name in counts else name for name in self.documents]
        return join_words(parts)

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
    measure: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """Standard deviation over the seeds; NaN of one."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else float("nan")


@dataclass(frozen=True, kw_only=True)
class AnswerOverlap:
    """Share of a query's distinct words in a relevant document of one side, 0 to 1.

    `low`, `median` and `high` are its quartiles.
    """

    source: str
    pairs: int
    mean: float
    low: float
    median: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Every ranker on one collection; per-query values are means over the trainings of a ranker."""

    name: str
    kind: Kind
    """``supervised``: the test split of the collection that was learned from; ``zero-shot``:
    another collection; ``seen``: queries of the training, to rankers that did not see their labels;
    ``first stage``: BM25 on one side of one split; ``curve``: rankers that learned from a number of
    documents, on the test split."""
    queries: int
    documents: int
    depth: int
    """Number of a query's documents that are re-ranked."""
    measures: tuple[str, ...]
    groups: tuple[str, ...]
    """``all``, then the domains."""
    means: tuple[Effect, ...]
    """Mean of every ranker, group (as `a` and as `b`) and measure, 0 to 1."""
    differences: tuple[Change, ...] = ()
    """Difference of every two rankers, by group and measure, in points: `run` less `old_run`. Their
    p is that of the interval, Holm over all of the group."""
    t_tests: tuple[Change, ...] = ()
    """The same differences with the p of the paired t test, Bonferroni over all of the group."""
    seeds: tuple[SeedValues, ...] = ()
    """Values of every trained ranker's seeds, by measure, over all queries."""
    split: str = ""
    """Split of the first stage's judgments."""
    side: str = ""
    """Source of the documents that the first stage ranks."""

    @property
    def rankers(self) -> tuple[str, ...]:
        """Names, the first stage first."""
        return tuple(dict.fromkeys(mean.run for mean in self.means))

    def mean(self, ranker: str, measure: str, group: str = ALL) -> Effect:
        """Return a ranker's mean; `UserError` where there is none."""
        for mean in self.means:
            if (mean.run, mean.measure, mean.a) == (ranker, measure, group):
                return mean
        known = [f"{mean.run}, {mean.measure}, {mean.a}" for mean in self.means]
        raise unknown("ranker, measure and group", f"{ranker}, {measure}, {group}", known)

    def difference(self, new: str, old: str, measure: str, group: str = ALL) -> Change | None:
        """Return how a ranker differs from another one; None where the two were not compared."""
        for change in self.differences:
            compared = (change.run, change.old_run, change.measure, change.a)
            if compared == (new, old, measure, group):
                return change
        return None

    def best(
        self, ranker: str, measure: str, group: str = ALL, *, test: Literal["t", "interval"] = "t"
    ) -> bool:
        """Whether a ranker is significantly better than all others, the first stage among them."""
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
    """Two rankers of one body, of which one learned from the reference."""

    body: str
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
    """The result of `compare_trainings`; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: options, collections, versions.
    reference : str
        The human side; positive Relative Δ favours it.
    rankers : tuple of TrainedRanker
        Every training.
    evaluations : tuple of Evaluation
        Supervised first, then zero-shot, seen queries, the first stage, and the curve; those that
        were made.
    tilts : tuple of Effect
        Relative Δ of the first stage and of every training on the mixed collection; empty where
        nothing mixed was ranked.
    tilt_changes : tuple of Change
        For every body and seed, Relative Δ of the one that learned from another side less that of
        the one that learned from the reference.
    overlaps : tuple of AnswerOverlap
        Words of queries in the relevant documents of each side.
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
        """Task of each body that was trained for more than language."""
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
        """Return how a ranker's tilts differ from those of the one that learned from the reference.

        There is a change for each seed.
        """
        runs = {ranker.run for ranker in self.rankers if ranker.name == name}
        return [
            change
            for change in self.tilt_changes
            if change.run in runs and change.measure == self.primary
        ]

"""What training on human or on LLM documents does to rankers, as one versioned file."""

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


@dataclass(frozen=True)
class TrainedRanker:
    """One training of one encoder."""

    body: str
    """Name of the encoder that it started from."""
    documents: tuple[str, ...]
    """The sources whose documents it learned from."""
    seed: int
    """Trainings that differ in it alone are one ranker, of which means are shown."""
    ranker: str
    limits: tuple[tuple[str, int], ...] = ()
    """How many documents of each source it learned from, where not all (the augmentation curve)."""
    tuned: str = ""
    """What the encoder was trained for before, such as ``retrieval``; empty for pretraining alone."""

    @property
    def learned(self) -> str:
        """What it learned from: ``human``, or ``100 human and 50 llm``."""
        counts = dict(self.limits)
        parts = [f"{counts[name]:,} {name}" if name in counts else name for name in self.documents]
        return join_words(parts)

    @property
    def name(self) -> str:
        """As printed; trainings with other seeds share it."""
        return f"{self.body} trained on {self.learned}"

    @property
    def run(self) -> str:
        """Name of its runs, which no two trainings share."""
        return f"{self.name}, seed {self.seed}"


class SeedValues(NamedTuple):
    """What the trainings of one ranker give, one value a seed."""

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


class AnswerOverlap(NamedTuple):
    """Share of a query's distinct words that stand in a relevant document of one side, 0 to 1, and its quartiles."""

    source: str
    pairs: int
    mean: float
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Evaluation:
    """Every ranker on one collection; per-query values are means over the trainings of a ranker."""

    name: str
    kind: Kind
    """The own test split; another collection; queries of the training without their labels; what the first stage finds
    on one side of one split; or rankers that learned from a number of documents, on the own test split."""
    queries: int
    documents: int
    depth: int
    """How many of a query's documents are re-ranked."""
    measures: tuple[str, ...]
    groups: tuple[str, ...]
    """The first is ``all``, the others are the domains."""
    means: tuple[Effect, ...]
    """Of every ranker, group (which stands twice) and measure, 0 to 1."""
    differences: tuple[Change, ...] = ()
    """Of every two rankers, group and measure, in points: `run` less `old_run`. The p of the interval,
    Holm over all of the group."""
    t_tests: tuple[Change, ...] = ()
    """The same by the paired t test, Bonferroni over all of the group."""
    seeds: tuple[SeedValues, ...] = ()
    """Of every trained ranker and measure, over all queries."""
    split: str = ""
    side: str = ""
    """Of the first stage: whose judgments, and which source's documents."""

    @property
    def rankers(self) -> tuple[str, ...]:
        """Names, the first stage first."""
        return tuple(dict.fromkeys(mean.run for mean in self.means))

    def mean(self, ranker: str, measure: str, group: str = ALL) -> Effect:
        found = next(
            (m for m in self.means if (m.run, m.measure, m.a) == (ranker, measure, group)), None
        )
        if found is None:
            known = [f"{m.run}, {m.measure}, {m.a}" for m in self.means]
            raise unknown("ranker, measure and group", f"{ranker}, {measure}, {group}", known)
        return found

    def difference(self, new: str, old: str, measure: str, group: str = ALL) -> Change | None:
        """Return how a ranker differs from another one; None where the two were not compared."""
        pair = (
            c
            for c in self.differences
            if (c.run, c.old_run, c.measure, c.a) == (new, old, measure, group)
        )
        return next(pair, None)

    def best(
        self, ranker: str, measure: str, group: str = ALL, *, test: Literal["t", "interval"] = "t"
    ) -> bool:
        """Whether a ranker is significantly better than every other one, the first stage among them."""
        rows = self.t_tests if test == "t" else self.differences
        of = [
            c for c in rows if (c.measure, c.a) == (measure, group) and ranker in (c.run, c.old_run)
        ]
        return len(of) == len(self.rankers) - 1 > 0 and all(
            c.p_corrected < ALPHA and (c.value > 0 if c.run == ranker else c.value < 0) for c in of
        )


@dataclass(frozen=True, eq=False)
class TrainingStudy(
    Result,
    format="ranktilt-training-study",
    version=1,
    noun="a training study",
    command="ranktilt train study",
):
    """What `compare_trainings` found; immutable.

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
        """Return the evaluations of some kinds."""
        return tuple(one for one in self.evaluations if one.kind in kinds)

    @property
    def primary(self) -> str:
        """Measure that sentences and figures are about; every evaluation has it."""
        return str(self.spec["primary"])

    @property
    def tuned(self) -> dict[str, str]:
        """Bodies that were trained for more than language, each with what for."""
        return {one.body: one.tuned for one in self.rankers if one.tuned}

    @property
    def contrasts(self) -> list[tuple[str, str, str]]:
        """Body, the ranker that learned from another side, and the one that learned from the reference."""
        names = {(one.body, one.documents): one.name for one in self.rankers if not one.limits}
        own = {
            body: name
            for (body, documents), name in names.items()
            if documents == (self.reference,)
        }
        return [
            (body, name, own[body])
            for (body, _), name in names.items()
            if body in own and name != own[body]
        ]

    def moved(self, name: str) -> list[Change]:
        """Return how a ranker's tilts differ from those of the one that learned from the reference.

        There is a change for each seed.
        """
        runs = {one.run for one in self.rankers if one.name == name}
        return [
            change
            for change in self.tilt_changes
            if change.run in runs and change.measure == self.primary
        ]

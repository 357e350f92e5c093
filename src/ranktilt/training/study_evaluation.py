"""The evaluation of rankers on one collection of a training study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.audit import audit
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import (
    ChangeTask,
    Columns,
    InferenceOptions,
    correct_p_values,
    effects,
    mean_changes,
    mean_sample,
)
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.recall import Recall
from ranktilt.statistics.bootstrap import shared_numbering
from ranktilt.statistics.permutation import t_test_p
from ranktilt.training.study_result import Evaluation, Kind, SeedValues, TrainedRanker

PRIMARY = "nDCG@10"
"""Measure that sentences and figures are about."""
DOMAIN = "domain"
"""Column of documents with the domain."""
COMPARED_KINDS: tuple[Kind, ...] = ("supervised", "zero-shot", "seen")
"""Kinds of evaluations in which rankers are tested against each other."""
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranked:
    """Rankings of one collection by the first stage and the trained rankers."""

    name: str
    """Name of the collection."""
    kind: Kind
    """Kind of evaluation."""
    collection: Collection
    """Documents of one side alone, with the judgments that count."""
    runs: Mapping[str, Run]
    """``BM25``, and trainings by `TrainedRanker.run`."""
    depth: int = 1000
    """Number of a query's documents that were re-ranked."""
    split: str = ""
    """Split of the judgments if the kind is ``first stage``; empty in others."""
    side: str = ""
    """Source of the documents that were ranked if the kind is ``first stage``; empty in others."""

    def named_runs(self) -> list[Run]:
        """Return the runs with the name of their ranker."""
        return [replace(run, spec={**run.spec, "ranker": name}) for name, run in self.runs.items()]


def study_measures(collection: Collection, depth: int = 1000) -> list[Measure]:
    """Return MAP, nDCG@10, MRR@10 and recall.

    If there are grades of 2 and above, the binary measures are also computed for these.
    """
    names = [f"AP@{depth}", PRIMARY, "RR@10", f"R@{depth}"]
    if (collection.qrels["grade"] >= 2).any():
        names += [f"AP(rel=2)@{depth}", "RR(rel=2)@10", f"R(rel=2)@{depth}"]
    return [measure(name) for name in names]


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluatedCollection:
    """The audit of one collection, and which of its runs are trainings of one ranker."""

    ranked: Ranked
    """Rankings of the collection."""
    audit: Audit
    """Audit of its runs."""
    trainings: Mapping[str, tuple[int, ...]]
    """Indices of each ranker's runs, by its name."""

    @classmethod
    def from_rankings(
        cls,
        ranked: Ranked,
        rankers: Sequence[TrainedRanker],
        ties: str,
        inference: InferenceOptions,
    ) -> EvaluatedCollection:
        """Audit the runs of one collection, by domain where it has several."""
        docs = ranked.collection.docs
        has_domains = DOMAIN in docs.columns and docs[DOMAIN].drop_nulls().n_unique() > 1
        collection_audit = audit(
            ranked.collection,
            ranked.named_runs(),
            study_measures(ranked.collection, ranked.depth),
            by=DOMAIN if has_domains else None,
            pairs=[] if has_domains else None,
            confounds=False,
            keep_top=0,
            ties=ties,
            resamples=inference.resamples,
            seed=inference.seed,
        )
        ranker_names = {ranker.run: ranker.name for ranker in rankers}
        trainings = dict[str, tuple[int, ...]]()
        for index, run in enumerate(collection_audit.runs):
            name = ranker_names.get(run, run)
            trainings[name] = (*trainings.get(name, ()), index)
        return cls(ranked=ranked, audit=collection_audit, trainings=trainings)

    def values(self, ranker: str) -> _Floats:
        """Return per-query values, means over the trainings: (measures, groups, queries)."""
        values: _Floats = self.audit.values[list(self.trainings[ranker])].mean(axis=0)
        return values

    def distinct(self, *rankers: str) -> npt.NDArray[np.int64] | None:
        """Return a number for each query, the same for queries that repeat each other.

        They must do so in every run of these rankers. None if no two do; see `Audit.distinct`.
        """
        per_run = []
        for ranker in rankers:
            for index in self.trainings[ranker]:
                per_run.append(self.audit.distinct(self.audit.runs[index]))
        return shared_numbering(per_run)

    def evaluation(
        self, rankers: Sequence[TrainedRanker], inference: InferenceOptions
    ) -> Evaluation:
        """Return means with intervals, and comparisons of every two rankers.

        The p of a group's comparisons are corrected together, once by Holm and once by Bonferroni.
        """
        ranked, values = self.ranked, self.audit.values
        differences, t_tests = list[Change](), list[Change]()
        if ranked.kind in COMPARED_KINDS:
            for group in range(len(self.audit.groups)):
                tasks = list(self._tasks(group))
                changes = mean_changes(tasks, resamples=inference.resamples, seed=inference.seed)
                differences += correct_p_values(changes, "holm")
                t_tests += correct_p_values(_with_t_test(changes, tasks), "bonferroni")
        measures = tuple(map(repr, self.audit.measures))
        # All rankers are judged on the same queries; the first group is all documents.
        is_judged = ~np.isnan(values[0, measures.index(PRIMARY), 0])
        return Evaluation(
            name=ranked.name,
            kind=ranked.kind,
            queries=int(is_judged.sum()),
            documents=ranked.collection.docs.height,
            depth=ranked.depth,
            measures=measures,
            groups=self.audit.groups,
            means=self._means(inference),
            differences=tuple(differences),
            t_tests=tuple(t_tests),
            seeds=tuple(self._seeds(rankers)),
            split=ranked.split,
            side=ranked.side,
        )

    def _tasks(self, group: int) -> Iterator[ChangeTask]:
        """Yield the comparison of every two rankers, measure by measure."""
        name = self.audit.groups[group]
        for old, new in combinations(self.trainings, 2):
            distinct = self.distinct(new, old)
            pairs = np.stack([self.values(new)[:, group], self.values(old)[:, group]], axis=1)
            for estimand, pair in zip(self.audit.measures, pairs, strict=True):
                # At the depth of the re-ranking, no re-ranker changes recall.
                if not isinstance(estimand, Recall):
                    yield ChangeTask(
                        run=new,
                        old_run=old,
                        estimand=estimand,
                        a=name,
                        b=name,
                        columns=Columns(values=pair, distinct=distinct),
                    )

    def _means(self, inference: InferenceOptions) -> tuple[Effect, ...]:
        """Return the mean of each ranker, group and measure; nothing is tested."""
        samples = []
        for ranker in self.trainings:
            values, distinct = self.values(ranker), self.distinct(ranker)
            groups, measures = enumerate(self.audit.groups), enumerate(self.audit.measures)
            for (group, name), (number, estimand) in product(groups, measures):
                samples.append(
                    mean_sample(
                        ranker, estimand, name, values=values[number, group], distinct=distinct
                    )
                )
        return effects(samples, replace(inference, correction="holm"))

    def _seeds(self, rankers: Sequence[TrainedRanker]) -> Iterator[SeedValues]:
        """Yield the values of each ranker's trainings, measure by measure."""
        names = dict.fromkeys(ranker.name for ranker in rankers)
        ranker_names = [name for name in names if name in self.trainings]
        for ranker, (number, estimand) in product(ranker_names, enumerate(self.audit.measures)):
            all_documents = self.audit.values[list(self.trainings[ranker]), number, 0]
            means = tuple(float(np.nanmean(values)) for values in all_documents)
            yield SeedValues(ranker=ranker, measure=repr(estimand), values=means)


def _with_t_test(changes: Sequence[Change], tasks: Sequence[ChangeTask]) -> list[Change]:
    """Return the changes with the p of the paired t test."""
    tested = []
    for change, task in zip(changes, tasks, strict=True):
        new_values, old_values = task.columns.sums
        tested.append(replace(change, p=t_test_p(new_values - old_values)))
    return tested

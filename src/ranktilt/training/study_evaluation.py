"""The evaluation of rankers on one collection of a training study.

Trainings of one ranker differ in the seed alone. The *first stage* is BM25, whose documents the
rankers re-rank. An *effect* is one number with its interval, such as a ranker's mean; a *change* is
a difference of two effects over the same queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.changes import ChangeTask, Columns, mean_changes
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import InferenceOptions, correct_p_values, effects, mean_sample
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.recall import Recall
from ranktilt.statistics.bootstrap import shared_numbering
from ranktilt.statistics.permutation import t_test_p
from ranktilt.training.study_result import Evaluation, Kind, SeedValues, TrainedRanker

PRIMARY = "nDCG@10"
"""Measure that sentences and figures of a study are about."""
DOMAIN = "domain"
"""Column of documents with the domain, such as medicine."""
COMPARED_KINDS: tuple[Kind, ...] = ("supervised", "zero-shot", "seen")
"""Kinds of evaluations in which rankers are compared with each other."""
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Rankings:
    """Rankings of one collection by the first stage and the trained rankers."""

    name: str
    """Name of the collection."""
    kind: Kind
    """Kind of evaluation: ``supervised``, ``zero-shot``, ``seen``, ``first stage`` or ``curve``."""
    collection: Collection
    """The documents that were ranked, and their judgments."""
    runs: Mapping[str, Run]
    """The runs, by ``BM25`` or the name of a training (`TrainedRanker.run`)."""
    depth: int = 1000
    """Number of documents that were re-ranked for each query."""
    split: str = ""
    """Split of the judgments if the kind is ``first stage``; empty in others."""
    side: str = ""
    """Source (author) of the ranked documents if the kind is ``first stage``; empty in others."""

    def named_runs(self) -> list[Run]:
        """Return the runs, with the name of their ranker in their spec."""
        return [replace(run, spec={**run.spec, "ranker": name}) for name, run in self.runs.items()]


def study_measures(collection: Collection, depth: int = 1000) -> list[Measure]:
    """Return MAP and recall at `depth`, nDCG@10 and MRR@10.

    If there are grades of 2 and above, the binary measures are added a second time, with only those
    grades as relevant.
    """
    names = [f"AP@{depth}", PRIMARY, "RR@10", f"R@{depth}"]
    if (collection.qrels["grade"] >= 2).any():
        names += [f"AP(rel=2)@{depth}", "RR(rel=2)@10", f"R(rel=2)@{depth}"]
    return [measure(name) for name in names]


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluatedCollection:
    """The audit of one collection, and which of its runs are trainings of one ranker."""

    rankings: Rankings
    """Rankings of the collection."""
    audit: Audit
    """Audit of the runs."""
    trainings: Mapping[str, tuple[int, ...]]
    """Indices, in the audit, of the runs of each ranker's trainings, by the ranker's name."""

    @classmethod
    def from_rankings(
        cls,
        rankings: Rankings,
        rankers: Sequence[TrainedRanker],
        ties: str,
        inference: InferenceOptions,
    ) -> EvaluatedCollection:
        """Audit the runs of one collection, by domain if it has several domains.

        `ties` says how tied documents count, `inference` how intervals are computed.
        """
        docs = rankings.collection.docs
        has_domains = DOMAIN in docs.columns and docs[DOMAIN].drop_nulls().n_unique() > 1
        collection_audit = audit(
            rankings.collection,
            rankings.named_runs(),
            study_measures(rankings.collection, rankings.depth),
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
        return cls(rankings=rankings, audit=collection_audit, trainings=trainings)

    def values(self, ranker: str) -> _Floats:
        """Return a ranker's value for each query, as the mean over its trainings.

        The shape is (n_measures, n_groups, n_queries).
        """
        values: _Floats = self.audit.values[list(self.trainings[ranker])].mean(axis=0)
        return values

    def repeated_query_numbers(self, *rankers: str) -> npt.NDArray[np.int64] | None:
        """Return a number for each query, the same for queries that repeat each other.

        Queries repeat each other if they have the same results in every run of these rankers. None
        if no two queries do.
        """
        numbers_by_run = []
        for ranker in rankers:
            for index in self.trainings[ranker]:
                numbers_by_run.append(self.audit.distinct(self.audit.runs[index]))
        return shared_numbering(numbers_by_run)

    def evaluation(
        self, rankers: Sequence[TrainedRanker], inference: InferenceOptions
    ) -> Evaluation:
        """Return means with intervals, and comparisons of every two rankers.

        All p of a group (a domain, or all documents) are corrected together: those from intervals
        by Holm, those of t tests by Bonferroni.
        """
        rankings, values = self.rankings, self.audit.values
        differences, t_tests = list[Change](), list[Change]()
        if rankings.kind in COMPARED_KINDS:
            for group in range(len(self.audit.groups)):
                tasks = list(self._tasks(group))
                changes = mean_changes(tasks, resamples=inference.resamples, seed=inference.seed)
                differences += correct_p_values(changes, "holm")
                t_tests += correct_p_values(_with_t_test(changes, tasks), "bonferroni")
        measures = tuple(map(repr, self.audit.measures))
        # All runs have values for the same queries, so the first run will do. The first group is
        # all documents.
        has_value = ~np.isnan(values[0, measures.index(PRIMARY), 0])
        return Evaluation(
            name=rankings.name,
            kind=rankings.kind,
            queries=int(has_value.sum()),
            documents=rankings.collection.docs.height,
            depth=rankings.depth,
            measures=measures,
            groups=self.audit.groups,
            means=self._means(inference),
            differences=tuple(differences),
            t_tests=tuple(t_tests),
            seeds=tuple(self._seed_values(rankers)),
            split=rankings.split,
            side=rankings.side,
        )

    def _tasks(self, group: int) -> Iterator[ChangeTask]:
        """Yield the comparison of every two rankers in a group, measure by measure.

        `group` is the index of the group.
        """
        name = self.audit.groups[group]
        for old, new in combinations(self.trainings, 2):
            query_numbers = self.repeated_query_numbers(new, old)
            new_values, old_values = self.values(new)[:, group], self.values(old)[:, group]
            for index, estimand in enumerate(self.audit.measures):
                # Recall is measured at the depth of re-ranking, where no re-ranker changes it.
                if not isinstance(estimand, Recall):
                    values = np.stack([new_values[index], old_values[index]])
                    yield ChangeTask(
                        run=new,
                        old_run=old,
                        estimand=estimand,
                        a=name,
                        b=name,
                        columns=Columns(values=values, distinct=query_numbers),
                    )

    def _means(self, inference: InferenceOptions) -> tuple[Effect, ...]:
        """Return the mean of each ranker, group and measure, with its interval and no test."""
        samples = []
        for ranker in self.trainings:
            values, query_numbers = self.values(ranker), self.repeated_query_numbers(ranker)
            groups, measures = enumerate(self.audit.groups), enumerate(self.audit.measures)
            for (group, name), (index, estimand) in product(groups, measures):
                samples.append(
                    mean_sample(
                        ranker, estimand, name, values=values[index, group], distinct=query_numbers
                    )
                )
        return effects(samples, replace(inference, correction="holm"))

    def _seed_values(self, rankers: Sequence[TrainedRanker]) -> Iterator[SeedValues]:
        """Yield the means of each ranker's trainings over all queries, measure by measure."""
        names = dict.fromkeys(ranker.name for ranker in rankers)
        ranker_names = [name for name in names if name in self.trainings]
        for ranker, (index, estimand) in product(ranker_names, enumerate(self.audit.measures)):
            # The first group is all documents.
            values_by_training = self.audit.values[list(self.trainings[ranker]), index, 0]
            means = tuple(float(np.nanmean(values)) for values in values_by_training)
            yield SeedValues(ranker=ranker, measure=repr(estimand), values=means)


def _with_t_test(changes: Sequence[Change], tasks: Sequence[ChangeTask]) -> list[Change]:
    """Return the changes with the p of the paired t test in place of theirs."""
    t_tests = []
    for change, task in zip(changes, tasks, strict=True):
        new_values, old_values = task.columns.sums
        t_tests.append(replace(change, p=t_test_p(new_values - old_values)))
    return t_tests

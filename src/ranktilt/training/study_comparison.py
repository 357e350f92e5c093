"""The training study, made of its runs: it trains and ranks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.match import RunPair, change_tasks, match
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import (
    ChangeTask,
    Columns,
    InferenceOptions,
    contrast_changes,
    corrected,
    effects,
    mean_changes,
    mean_sample,
)
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, notes_within, warnings_of
from ranktilt.data.notes.training import (
    BodyTuned,
    FewQueriesEvaluated,
    MeanOfTrainings,
    OneTraining,
)
from ranktilt.data.run import Run
from ranktilt.data.text.quality import share, term_counts
from ranktilt.errors import UserError, join_words, refuse_twice
from ranktilt.explaining.base import Distribution
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.recall import Recall
from ranktilt.statistics.bootstrap import RESAMPLES, in_all
from ranktilt.statistics.permutation import t_test_p
from ranktilt.training.study_result import (
    BASELINE,
    KINDS,
    AnswerOverlap,
    Evaluation,
    Kind,
    SeedValues,
    TrainedRanker,
    TrainingStudy,
)

PRIMARY = "nDCG@10"
TILT_MEASURES = (PRIMARY, "nDCG@3", "nDCG@1")
DOMAIN = "domain"
_OWN_TESTS = ("supervised", "zero-shot", "seen")
_FEW_QUERIES = 30
"""Queries below which a collection shows little."""
_Floats = npt.NDArray[np.float64]


class Ranked(NamedTuple):
    """What the first stage and the trained rankers found in one collection."""

    name: str
    kind: Kind
    collection: Collection
    """Of one side alone, with the judgments that count."""
    runs: Mapping[str, Run]
    """``BM25``, and trainings by `TrainedRanker.run`."""
    depth: int = 1000
    """How many documents a query were re-ranked."""
    split: str = ""
    side: str = ""


def study_measures(collection: Collection, depth: int = 1000) -> list[Measure]:
    """MAP, nDCG@10, MRR@10 and recall; the binary ones at grade 2 and above too, where there are such grades."""
    found = [f"AP@{depth}", PRIMARY, "RR@10", f"R@{depth}"]
    if (collection.qrels["grade"] >= 2).any():
        found += [f"AP(rel=2)@{depth}", "RR(rel=2)@10", f"R(rel=2)@{depth}"]
    return [measure(one) for one in found]


def compare_trainings(
    rankers: Sequence[TrainedRanker],
    ranked: Iterable[Ranked],
    *,
    mixed: Ranked | None = None,
    answers: Collection | None = None,
    reference: str = "human",
    ties: str = "expected",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> TrainingStudy:
    """Compare rankers that learned from human with those that learned from LLM documents, and with the first stage.

    Trainings that differ in the seed alone are one ranker, whose values are their means query by
    query. `mixed` holds the documents of both sides with a run of every training, for Relative Δ;
    `answers` those whose query words count.
    """
    rankers, ranked = list(rankers), list(ranked)
    _check(rankers, ranked)
    how = InferenceOptions(resamples, seed, "interval", "holm", "none")
    evaluated = [_Evaluated.from_rankers(one, rankers, ties, how) for one in ranked]
    evaluated.sort(key=lambda one: KINDS.index(one.ranked.kind))
    evaluations = tuple(one.evaluation(rankers, how) for one in evaluated)
    tilts, changes, tilt_notes = (
        _tilts(mixed, rankers, reference, ties, how) if mixed else ((), (), ())
    )
    first = evaluated[0].audit
    kept = {key: first.spec[key] for key in ("ranktilt", "python", "packages", "collection")}
    inputs = {str(one["path"]): one for found in evaluated for one in found.audit.spec["inputs"]}
    spec = {
        "primary": PRIMARY,
        "reference": reference,
        "ties": ties,
        "resamples": resamples,
        "seed": seed,
        **kept,
        "inputs": list(inputs.values()),
    }
    warnings = chain.from_iterable(
        notes_within(warnings_of(one.audit.notes), "collection", one.ranked.name)
        for one in evaluated
    )
    notes = dict.fromkeys((*_notes(rankers, evaluations), *warnings, *tilt_notes))
    overlaps = answer_overlaps(answers) if answers is not None else ()
    return TrainingStudy(
        spec, reference, tuple(rankers), evaluations, tilts, changes, overlaps, tuple(notes)
    )


def _check(rankers: Sequence[TrainedRanker], ranked: Sequence[Ranked]) -> None:
    if not (rankers and ranked):
        raise UserError("a training study needs a trained ranker and a collection that it ranked")
    refuse_twice([one.run for one in rankers], "training")
    refuse_twice([f"{one.name} ({one.kind})" for one in ranked], "collection")
    known = (BASELINE, *(one.run for one in rankers if not one.limits))
    for one in ranked:
        if not one.collection.qrels.height:
            raise UserError(
                f"{one.name}: no judgments (qrels), so that no ranker can be measured on it"
            )
        missing = (
            [name for name in known if name not in one.runs]
            if one.kind in ("supervised", "zero-shot")
            else []
        )
        if missing:
            raise UserError(f"{one.name}: no run of {join_words(missing)}")


@dataclass(frozen=True)
class _Evaluated:
    """The audit of one collection, and which of its runs are trainings of one ranker."""

    ranked: Ranked
    audit: Audit
    trainings: Mapping[str, tuple[int, ...]]
    """By name of the ranker, places of its runs."""

    @classmethod
    def from_rankers(
        cls, ranked: Ranked, rankers: Sequence[TrainedRanker], ties: str, how: InferenceOptions
    ) -> _Evaluated:
        runs = [
            replace(run, spec={**run.spec, "ranker": name}) for name, run in ranked.runs.items()
        ]
        docs, asked = ranked.collection.docs, study_measures(ranked.collection, ranked.depth)
        several = DOMAIN in docs.columns and docs[DOMAIN].drop_nulls().n_unique() > 1
        found = audit(
            ranked.collection,
            runs,
            asked,
            by=DOMAIN if several else None,
            pairs=[] if several else None,
            confounds=False,
            keep_top=0,
            ties=ties,
            resamples=how.resamples,
            seed=how.seed,
        )
        named = {one.run: one.name for one in rankers}
        trainings = dict[str, tuple[int, ...]]()
        for place, run in enumerate(found.runs):
            name = named.get(run, run)
            trainings[name] = (*trainings.get(name, ()), place)
        return cls(ranked, found, trainings)

    def values(self, ranker: str) -> _Floats:
        """Per-query values, means over the trainings: (measures, groups, queries)."""
        found: _Floats = self.audit.values[list(self.trainings[ranker])].mean(axis=0)
        return found

    def distinct(self, *rankers: str) -> npt.NDArray[np.int64] | None:
        """Queries that repeat each other in every run of some rankers."""
        runs = [self.audit.runs[place] for name in rankers for place in self.trainings[name]]
        return in_all([self.audit.distinct(run) for run in runs])

    def evaluation(self, rankers: Sequence[TrainedRanker], how: InferenceOptions) -> Evaluation:
        """Means with intervals, and every comparison; each group's are corrected together."""
        kind, found = self.ranked.kind, self.audit
        differences, t_tests = list[Change](), list[Change]()
        for group in range(len(found.groups)) if kind in _OWN_TESTS else ():
            tasks = [
                task
                for old, new in combinations(self.trainings, 2)
                for task in self._tasks(new, old, group)
            ]
            changes = mean_changes(tasks, resamples=how.resamples, seed=how.seed)
            differences += corrected(changes, "holm")
            ps = [t_test_p(np.subtract(*task.columns.sums)) for task in tasks]
            t_tests += corrected(
                [replace(c, p=p) for c, p in zip(changes, ps, strict=True)], "bonferroni"
            )
        judged = int((~np.isnan(found.values[0, 1, 0])).sum())
        return Evaluation(
            self.ranked.name,
            kind,
            judged,
            self.ranked.collection.docs.height,
            self.ranked.depth,
            tuple(map(repr, found.measures)),
            found.groups,
            tuple(self._means(how)),
            tuple(differences),
            tuple(t_tests),
            tuple(self._seeds(rankers)),
            self.ranked.split,
            self.ranked.side,
        )

    def _tasks(self, new: str, old: str, group: int) -> Iterator[ChangeTask]:
        values = np.stack([self.values(new)[:, group], self.values(old)[:, group]], axis=1)
        name, distinct = self.audit.groups[group], self.distinct(new, old)
        for one, pair in zip(self.audit.measures, values, strict=True):
            if isinstance(one, Recall):  # at the depth of the re-ranking no re-ranker changes it
                continue
            yield ChangeTask(
                run=new, old_run=old, estimand=one, a=name, b=name, columns=Columns(pair, distinct)
            )

    def _means(self, how: InferenceOptions) -> tuple[Effect, ...]:
        """That a mean is above 0 is not tested."""
        samples = [
            mean_sample(ranker, one, group, numbers, self.distinct(ranker))
            for ranker in self.trainings
            for group, values in zip(
                self.audit.groups, self.values(ranker).swapaxes(0, 1), strict=True
            )
            for one, numbers in zip(self.audit.measures, values, strict=True)
        ]
        return effects(samples, replace(how, correction="holm"))

    def _seeds(self, rankers: Sequence[TrainedRanker]) -> Iterator[SeedValues]:
        names = dict.fromkeys(one.name for one in rankers)
        for ranker in (name for name in names if name in self.trainings):
            for number, one in enumerate(self.audit.measures):
                values = [
                    float(np.nanmean(self.audit.values[run, number, 0]))
                    for run in self.trainings[ranker]
                ]
                yield SeedValues(ranker, repr(one), tuple(values))


def _tilts(
    mixed: Ranked,
    rankers: Sequence[TrainedRanker],
    reference: str,
    ties: str,
    how: InferenceOptions,
) -> tuple[tuple[Effect, ...], tuple[Change, ...], tuple[Note, ...]]:
    """Relative Δ of every run, and how training on another side moves it."""
    runs = [replace(run, spec={**run.spec, "ranker": name}) for name, run in mixed.runs.items()]
    others = [name for name in mixed.collection.sources if name != reference]
    if reference not in mixed.collection.sources:
        raise mixed.collection.unknown_source(reference)
    found = audit(
        mixed.collection,
        runs,
        TILT_MEASURES,
        pairs=[(reference, other) for other in others],
        confounds=False,
        keep_top=0,
        ties=ties,
        resamples=how.resamples,
        seed=how.seed,
    )
    whole = [one for one in rankers if not one.limits and one.run in found.runs]
    own = {(one.body, one.seed): one.run for one in whole if one.documents == (reference,)}
    learned = [(one.run, own.get((one.body, one.seed), one.run)) for one in whole]
    pairs = tuple(RunPair(new, old) for new, old in learned if new != old)
    side = replace(match(found, found, baseline_run=pairs[0].old), runs=pairs) if pairs else None
    tasks = change_tasks(side, side.pairs) if side else []
    changes = corrected(
        contrast_changes(tasks, resamples=how.resamples, seed=how.seed), how.correction
    )
    return found.tilts, changes, notes_within(warnings_of(found.notes), "collection", "mixed")


def answer_overlaps(collection: Collection) -> tuple[AnswerOverlap, ...]:
    """Count which share of a query's distinct words stands in its relevant documents, side by side.

    Words are lower-cased runs of letters, digits and underscores. Askari et al. (CIKM 2023) find
    25.5 % in human and 34.6 % in ChatGPT's answers.
    """
    docs = collection.docs.select("source", doc_id="id", answer="text")
    queries = collection.queries.select(query_id="id", query="text")
    pairs = collection.qrels.filter(pl.col("grade") > 0).join(
        docs, on="doc_id", maintain_order="left"
    )
    pairs = pairs.join(queries, on="query_id", maintain_order="left")
    found = []
    for source in collection.sources:
        of = pairs.filter(pl.col("source") == source)
        left, _, both = term_counts(of["query"], of["answer"])
        shares = Distribution("overlap", share(both, left))
        found.append(AnswerOverlap(source, shares.count, shares.mean, *shares.quartiles))
    return tuple(found)


def _notes(rankers: Sequence[TrainedRanker], evaluations: Sequence[Evaluation]) -> Iterator[Note]:
    for body, tuned in dict.fromkeys((ranker.body, ranker.tuned) for ranker in rankers):
        if tuned:
            yield BodyTuned(body=body, tuned=tuned)
    seeds = len({ranker.seed for ranker in rankers})
    yield MeanOfTrainings(trainings=seeds) if seeds > 1 else OneTraining()
    for evaluation in evaluations:
        if evaluation.queries < _FEW_QUERIES and evaluation.kind in _OWN_TESTS:
            yield FewQueriesEvaluated(collection=evaluation.name, queries=evaluation.queries)

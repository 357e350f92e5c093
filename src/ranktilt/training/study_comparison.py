"""Compare the rankers of a training study by their runs; it trains and ranks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.match import RunPair, match
from ranktilt.auditing.comparison.tasks import change_tasks
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import (
    ChangeTask,
    InferenceOptions,
    contrast_changes,
    correct_p_values,
)
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, notes_within, warnings_of
from ranktilt.data.notes.training import (
    BodyTuned,
    FewQueriesEvaluated,
    MeanOfTrainings,
    OneTraining,
)
from ranktilt.errors import UserError, join_words, refuse_twice
from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.training.answer_overlap import answer_overlaps
from ranktilt.training.study_evaluation import (
    COMPARED_KINDS,
    PRIMARY,
    EvaluatedCollection,
    Ranked,
)
from ranktilt.training.study_result import (
    BASELINE,
    KINDS,
    Evaluation,
    TrainedRanker,
    TrainingStudy,
)

TILT_MEASURES = (PRIMARY, "nDCG@3", "nDCG@1")
"""Measures whose Relative Δ is compared."""
_FEW_QUERIES = 30
"""Number of queries below which a note says that a collection shows little."""


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
    """Compare rankers that learned from human with those that learned from LLM documents.

    The first stage is compared with both. Trainings that differ in the seed alone are one ranker,
    whose values are their means query by query.

    Parameters
    ----------
    rankers : sequence of TrainedRanker
        Every training.
    ranked : iterable of Ranked
        Collections with one side's documents and the runs of the rankers.
    mixed : Ranked, optional
        The documents of both sides with a run of every training, for Relative Δ.
    answers : Collection, optional
        Documents of both sides, in which the words of the queries are counted.
    reference : str, optional
        The human side.
    ties : str, optional
        How tied documents count; see `audit`.
    resamples, seed : int, optional
        Resamples of each interval, and their seed.
    """
    rankers, ranked = list(rankers), list(ranked)
    _check(rankers, ranked)
    inference = InferenceOptions(
        resamples=resamples, seed=seed, test="interval", correction="holm", rounding="none"
    )
    evaluated = [
        EvaluatedCollection.from_rankings(rankings, rankers, ties, inference) for rankings in ranked
    ]
    evaluated.sort(key=lambda collection: KINDS.index(collection.ranked.kind))
    evaluations = tuple(collection.evaluation(rankers, inference) for collection in evaluated)
    tilts, changes, tilt_notes = (
        _tilts(mixed, rankers, inference, reference=reference, ties=ties) if mixed else ((), (), ())
    )
    first_spec = evaluated[0].audit.spec
    inputs_by_path = dict[str, Any]()
    for collection in evaluated:
        for input_file in collection.audit.spec["inputs"]:
            inputs_by_path[str(input_file["path"])] = input_file
    spec = {
        "primary": PRIMARY,
        "reference": reference,
        "ties": ties,
        "resamples": resamples,
        "seed": seed,
        "ranktilt": first_spec["ranktilt"],
        "python": first_spec["python"],
        "packages": first_spec["packages"],
        "collection": first_spec["collection"],
        "inputs": list(inputs_by_path.values()),
    }
    warnings: list[Note] = []
    for collection in evaluated:
        audit_warnings = warnings_of(collection.audit.notes)
        warnings += notes_within(audit_warnings, "collection", collection.ranked.name)
    notes = dict.fromkeys((*_notes(rankers, evaluations), *warnings, *tilt_notes))
    overlaps = answer_overlaps(answers) if answers is not None else ()
    return TrainingStudy(
        spec=spec,
        reference=reference,
        rankers=tuple(rankers),
        evaluations=evaluations,
        tilts=tilts,
        tilt_changes=changes,
        overlaps=overlaps,
        notes=tuple(notes),
    )


def _check(rankers: Sequence[TrainedRanker], ranked: Sequence[Ranked]) -> None:
    """Refuse a study without rankers or runs."""
    if not (rankers and ranked):
        raise UserError("a training study needs a trained ranker and a collection that it ranked")
    refuse_twice([ranker.run for ranker in rankers], "training")
    refuse_twice([f"{rankings.name} ({rankings.kind})" for rankings in ranked], "collection")
    expected_runs = (BASELINE, *(ranker.run for ranker in rankers if not ranker.limits))
    for rankings in ranked:
        if not rankings.collection.qrels.height:
            raise UserError(
                f"{rankings.name}: no judgments (qrels), so that no ranker can be measured on it"
            )
        missing = [name for name in expected_runs if name not in rankings.runs]
        if missing and rankings.kind in ("supervised", "zero-shot"):
            raise UserError(f"{rankings.name}: no run of {join_words(missing)}")


def _tilts(
    mixed: Ranked,
    rankers: Sequence[TrainedRanker],
    inference: InferenceOptions,
    *,
    reference: str,
    ties: str,
) -> tuple[tuple[Effect, ...], tuple[Change, ...], tuple[Note, ...]]:
    """Return Relative Δ of every run, how training on another side moves it, and notes on both."""
    if reference not in mixed.collection.sources:
        raise mixed.collection.unknown_source(reference)
    mixed_audit = audit(
        mixed.collection,
        mixed.named_runs(),
        TILT_MEASURES,
        pairs=[(reference, source) for source in mixed.collection.sources if source != reference],
        confounds=False,
        keep_top=0,
        ties=ties,
        resamples=inference.resamples,
        seed=inference.seed,
    )
    pairs = _training_pairs(rankers, mixed_audit, reference)
    tasks = list[ChangeTask]()
    if pairs:
        comparison = replace(match(mixed_audit, mixed_audit, baseline_run=pairs[0].old), runs=pairs)
        tasks = change_tasks(comparison, comparison.pairs)
    uncorrected = contrast_changes(tasks, resamples=inference.resamples, seed=inference.seed)
    changes = correct_p_values(uncorrected, inference.correction)
    return (
        mixed_audit.tilts,
        changes,
        notes_within(warnings_of(mixed_audit.notes), "collection", "mixed"),
    )


def _training_pairs(
    rankers: Sequence[TrainedRanker], mixed_audit: Audit, reference: str
) -> tuple[RunPair, ...]:
    """Pair each ranker with the one that learned from the reference, of the same body and seed."""
    compared = [
        ranker for ranker in rankers if not ranker.limits and ranker.run in mixed_audit.runs
    ]
    reference_runs = {
        (ranker.body, ranker.seed): ranker.run
        for ranker in compared
        if ranker.documents == (reference,)
    }
    pairs = []
    for ranker in compared:
        reference_run = reference_runs.get((ranker.body, ranker.seed), ranker.run)
        if reference_run != ranker.run:
            pairs.append(RunPair(ranker.run, reference_run))
    return tuple(pairs)


def _notes(rankers: Sequence[TrainedRanker], evaluations: Sequence[Evaluation]) -> Iterator[Note]:
    """Note tuned bodies, the number of trainings, and collections with few queries."""
    for body, tuned in dict.fromkeys((ranker.body, ranker.tuned) for ranker in rankers):
        if tuned:
            yield BodyTuned(body=body, tuned=tuned)
    seeds = len({ranker.seed for ranker in rankers})
    yield MeanOfTrainings(trainings=seeds) if seeds > 1 else OneTraining()
    for evaluation in evaluations:
        if evaluation.queries < _FEW_QUERIES and evaluation.kind in COMPARED_KINDS:
            yield FewQueriesEvaluated(collection=evaluation.name, queries=evaluation.queries)

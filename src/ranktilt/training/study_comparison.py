"""Compare the rankers of a training study by their runs, without training or ranking anything.

A *source* is the author of documents: people or a language model. The *reference* is the source of
people's documents. A *body* is the encoder that a training starts from. Relative Δ, a ranker's
*tilt*, is how much it favours the reference over another source. The *first stage* is BM25.
*Overlap* is how many of a query's words are in the documents that answer it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.changes import ChangeTask, contrast_changes
from ranktilt.auditing.comparison.match import RunPair, match
from ranktilt.auditing.comparison.tasks import change_tasks
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import InferenceOptions, correct_p_values
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, notes_within, warnings_of
from ranktilt.data.notes.training import (
    BodyTuned,
    FewQueriesEvaluated,
    MeanOfTrainings,
    OneTraining,
)
from ranktilt.data.text.quality import share, term_counts
from ranktilt.errors import UserError, join_words, refuse_twice
from ranktilt.explaining.base import Distribution
from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.training.study_evaluation import (
    COMPARED_KINDS,
    PRIMARY,
    EvaluatedCollection,
    Rankings,
)
from ranktilt.training.study_result import (
    BASELINE,
    KINDS,
    AnswerOverlap,
    Evaluation,
    TrainedRanker,
    TrainingStudy,
)

TILT_MEASURES = (PRIMARY, "nDCG@3", "nDCG@1")
"""Measures whose Relative Δ is compared."""
_FEW_QUERIES = 30
"""Number of queries below which a note warns that a collection shows little."""


def compare_trainings(
    rankers: Sequence[TrainedRanker],
    rankings: Iterable[Rankings],
    *,
    mixed: Rankings | None = None,
    answers: Collection | None = None,
    reference: str = "human",
    ties: str = "expected",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> TrainingStudy:
    """Compare rankers that learned from different sources, and the first stage, with each other.

    Trainings that differ in the seed alone are one ranker. Its value for a query is the mean over
    these trainings.

    Parameters
    ----------
    rankers : sequence of TrainedRanker
        Every training.
    rankings : iterable of Rankings
        Runs of the rankers and the first stage, on one collection each, whose documents are of one
        source.
    mixed : Rankings, optional
        Runs on documents of all sources, from which Relative Δ is computed.
    answers : Collection, optional
        Documents of all sources, in which the words of the queries are counted.
    reference : str, optional
        Source of the documents that people wrote.
    ties : str, optional
        How tied documents count: ``"expected"`` over their random orders, or another way that
        `ranktilt.audit` takes.
    resamples, seed : int, optional
        Bootstrap resamples of each interval, and their random seed.
    """
    rankers, rankings = list(rankers), list(rankings)
    _require_complete(rankers, rankings)
    inference = InferenceOptions(
        resamples=resamples, seed=seed, test="interval", correction="holm", rounding="none"
    )
    evaluated_collections = [
        EvaluatedCollection.from_rankings(collection_rankings, rankers, ties, inference)
        for collection_rankings in rankings
    ]
    evaluated_collections.sort(key=lambda evaluated: KINDS.index(evaluated.rankings.kind))
    evaluations = tuple(
        evaluated.evaluation(rankers, inference) for evaluated in evaluated_collections
    )
    tilts = tuple[Effect, ...]()
    tilt_changes = tuple[Change, ...]()
    tilt_notes = tuple[Note, ...]()
    if mixed is not None:
        mixed_audit = _audit_mixed(mixed, inference, reference=reference, ties=ties)
        tilts = mixed_audit.tilts
        tilt_changes = _tilt_changes(mixed_audit, rankers, inference, reference)
        tilt_notes = notes_within(warnings_of(mixed_audit.notes), "collection", "mixed")
    warnings: list[Note] = []
    for evaluated in evaluated_collections:
        audit_warnings = warnings_of(evaluated.audit.notes)
        warnings += notes_within(audit_warnings, "collection", evaluated.rankings.name)
    notes = dict.fromkeys((*_notes(rankers, evaluations), *warnings, *tilt_notes))
    spec = {
        "primary": PRIMARY,
        "reference": reference,
        "ties": ties,
        "resamples": resamples,
        "seed": seed,
        **_shared_spec([evaluated.audit for evaluated in evaluated_collections]),
    }
    return TrainingStudy(
        spec=spec,
        reference=reference,
        rankers=tuple(rankers),
        evaluations=evaluations,
        tilts=tilts,
        tilt_changes=tilt_changes,
        overlaps=answer_overlaps(answers) if answers is not None else (),
        notes=tuple(notes),
    )


def _require_complete(rankers: Sequence[TrainedRanker], rankings: Sequence[Rankings]) -> None:
    """Refuse a study without rankers, runs or judgments, and two of the same name."""
    if not (rankers and rankings):
        raise UserError("a training study needs a trained ranker and a collection that it ranked")
    refuse_twice([ranker.run for ranker in rankers], "training")
    names = [f"{ranked.name} ({ranked.kind})" for ranked in rankings]
    refuse_twice(names, "collection")
    expected_runs = (BASELINE, *(ranker.run for ranker in rankers if not ranker.limits))
    for ranked in rankings:
        if not ranked.collection.qrels.height:
            raise UserError(
                f"{ranked.name}: no judgments (qrels), so that no ranker can be measured on it"
            )
        missing = [name for name in expected_runs if name not in ranked.runs]
        if missing and ranked.kind in ("supervised", "zero-shot"):
            raise UserError(f"{ranked.name}: no run of {join_words(missing)}")


def _audit_mixed(
    mixed: Rankings, inference: InferenceOptions, *, reference: str, ties: str
) -> Audit:
    """Audit the rankings of all sources: Relative Δ of every run, for each source and measure."""
    if reference not in mixed.collection.sources:
        raise mixed.collection.unknown_source(reference)
    return audit(
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


def _tilt_changes(
    mixed_audit: Audit,
    rankers: Sequence[TrainedRanker],
    inference: InferenceOptions,
    reference: str,
) -> tuple[Change, ...]:
    """Return how Relative Δ changes if an encoder learns from another source than the reference."""
    run_pairs = _training_pairs(rankers, mixed_audit, reference)
    tasks = list[ChangeTask]()
    if run_pairs:
        # The audit is compared with itself, because both runs of each pair are in it.
        matched = match(mixed_audit, mixed_audit, baseline_run=run_pairs[0].old)
        comparison = replace(matched, runs=run_pairs)
        tasks = change_tasks(comparison, comparison.pairs)
    uncorrected = contrast_changes(tasks, resamples=inference.resamples, seed=inference.seed)
    return correct_p_values(uncorrected, inference.correction)


def _training_pairs(
    rankers: Sequence[TrainedRanker], mixed_audit: Audit, reference: str
) -> tuple[RunPair, ...]:
    """Pair each ranker with the one that learned from the reference, of the same body and seed.

    Rankers that learned from a limited number of documents are left out.
    """
    full_rankers = [
        ranker for ranker in rankers if not ranker.limits and ranker.run in mixed_audit.runs
    ]
    reference_runs = {
        (ranker.body, ranker.seed): ranker.run
        for ranker in full_rankers
        if ranker.documents == (reference,)
    }
    pairs = []
    for ranker in full_rankers:
        reference_run = reference_runs.get((ranker.body, ranker.seed), ranker.run)
        if reference_run != ranker.run:
            pairs.append(RunPair(new=ranker.run, old=reference_run))
    return tuple(pairs)


def answer_overlaps(collection: Collection) -> tuple[AnswerOverlap, ...]:
    """Return the share of a query's distinct words that are in its relevant documents, by source.

    The shares of all pairs of a query and a relevant document are summarised, each between 0 and 1.
    Words are lower-cased runs of letters, digits and underscores. Askari et al. (CIKM 2023) find
    25.5 % in human and 34.6 % in ChatGPT's answers.
    """
    docs = collection.docs.select("source", doc_id="id", answer="text")
    queries = collection.queries.select(query_id="id", query="text")
    pairs = collection.qrels.filter(pl.col("grade") > 0)
    pairs = pairs.join(docs, on="doc_id", maintain_order="left")
    pairs = pairs.join(queries, on="query_id", maintain_order="left")
    overlaps = []
    for source in collection.sources:
        pairs_of_source = pairs.filter(pl.col("source") == source)
        query_words, _answer_words, shared_words = term_counts(
            pairs_of_source["query"], pairs_of_source["answer"]
        )
        shares = Distribution(name="overlap", values=share(shared_words, query_words))
        low, median, high = shares.quartiles
        overlaps.append(
            AnswerOverlap(
                source=source,
                pairs=shares.count,
                mean=shares.mean,
                low=low,
                median=median,
                high=high,
            )
        )
    return tuple(overlaps)


def _notes(rankers: Sequence[TrainedRanker], evaluations: Sequence[Evaluation]) -> Iterator[Note]:
    """Note encoders that were tuned before, the number of trainings, and few queries."""
    for body, tuned in dict.fromkeys((ranker.body, ranker.tuned) for ranker in rankers):
        if tuned:
            yield BodyTuned(body=body, tuned=tuned)
    seeds = len({ranker.seed for ranker in rankers})
    yield MeanOfTrainings(trainings=seeds) if seeds > 1 else OneTraining()
    for evaluation in evaluations:
        if evaluation.queries < _FEW_QUERIES and evaluation.kind in COMPARED_KINDS:
            yield FewQueriesEvaluated(collection=evaluation.name, queries=evaluation.queries)


def _shared_spec(audits: Sequence[Audit]) -> dict[str, Any]:
    """Return versions and collection of the first audit, and the input files of all."""
    first_spec = audits[0].spec
    inputs_by_path = dict[str, Any]()
    for collection_audit in audits:
        for input_file in collection_audit.spec["inputs"]:
            inputs_by_path[str(input_file["path"])] = input_file
    return {
        "ranktilt": first_spec["ranktilt"],
        "python": first_spec["python"],
        "packages": first_spec["packages"],
        "collection": first_spec["collection"],
        "inputs": list(inputs_by_path.values()),
    }

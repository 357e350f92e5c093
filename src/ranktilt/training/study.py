"""The training study from end to end: train each encoder on each source, rank, and compare.

A *source* is the author of documents: people (the *reference*) or a language model. A *side* is the
documents of one source. A *body* is the encoder that a training starts from. The *first stage* is
BM25, whose documents the trained rankers re-rank. Rankers are tested on the test split of the
collection that they learned from (*supervised*), on other collections (*zero-shot*), and on queries
of the training (*seen*). The learning *curve* has rankers that learned from limited numbers of
documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ranktilt.auditing.options import check_choices, check_resamples
from ranktilt.field_checks import require_seed
from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.training.study_collections import StudyCollections, load_collections
from ranktilt.training.study_comparison import compare_trainings
from ranktilt.training.study_evaluation import Rankings
from ranktilt.training.study_options import StudyOptions
from ranktilt.training.study_rankers import (
    bodies_by_name,
    rankers_to_train,
    require_encoders,
    train_rankers,
)
from ranktilt.training.study_rankings import CollectionRanker, StudyFolder, first_stages
from ranktilt.training.study_result import TrainedRanker, TrainingStudy


def training_study(
    folder: str | Path,
    models: Sequence[str | Path],
    work_dir: str | Path,
    *,
    options: StudyOptions | None = None,
    ties: str = "expected",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> TrainingStudy:
    """Train each encoder on each side's documents, and compare the rankers.

    You can interrupt a study and run it again: trainings continue from their last checkpoint, and
    finished trainings and scored pairs are not repeated.

    Parameters
    ----------
    folder : str or Path
        A collection with two sources and judgments to learn from and to test on, as
        ``ranktilt data build retrieval-qa`` makes one.
    models : sequence of str or Path
        The encoders to start from.
    work_dir : str or Path
        Folder to which models and runs are written.
    options : StudyOptions, optional
        Rankers to train, and collections to test them on.
    ties : str, optional
        How tied documents count: ``"expected"`` over their random orders, or another way that
        `ranktilt.audit` takes.
    resamples : int, optional
        Bootstrap resamples of each interval.
    seed : int, optional
        Random seed of the resamples.

    Returns
    -------
    TrainingStudy
        Effectiveness of every ranker on the test split (supervised), on other collections
        (zero-shot) and on queries of the training, that of the first stage, and Relative Δ.

    Raises
    ------
    UserError
        Before any training: if a collection has no judgments or only one source, or a model is not
        an encoder.
    """
    options = options or StudyOptions()
    check_choices(ties=ties)
    check_resamples(resamples)
    require_seed(seed)
    bodies = bodies_by_name(models)
    collections = load_collections(folder, options)
    planned_rankers = rankers_to_train(collections.learned, bodies, options)
    require_encoders(bodies, options.training)

    study_folder = StudyFolder(path=Path(work_dir), training=options.training)
    rankers = train_rankers(planned_rankers, bodies, collections.learned, study_folder)
    collection_ranker = CollectionRanker(folder=study_folder, options=options)
    rankings = [
        *_trained_rankings(collections, rankers, collection_ranker),
        *first_stages(folder, collections.name, collections.train.sources),
        *_curve_rankings(collections, rankers, collection_ranker),
    ]
    full_rankers = _trained_on_all(rankers)
    study = compare_trainings(
        rankers,
        rankings,
        mixed=collection_ranker.rank("mixed", "supervised", collections.mixed, full_rankers),
        answers=collections.test,
        reference=options.reference,
        ties=ties,
        resamples=resamples,
        seed=seed,
    )
    collection_spec = {**study.spec["collection"], "path": str(folder)}
    zero_shot = [unseen.given_fields() for unseen in options.zero_shot]
    spec = {
        **study.spec,
        "collection": collection_spec,
        "seeds": options.seeds,
        "depth": options.depth,
        "queries": options.queries,
        "disjoint": options.disjoint,
        "train": options.train,
        "test": options.test,
        "zero_shot": zero_shot,
        "training": asdict(options.training),
        "work": str(Path(work_dir)),
    }
    return replace(study, spec=spec)


def _trained_on_all(rankers: Sequence[TrainedRanker]) -> list[TrainedRanker]:
    """Return the rankers that learned from all documents of a side, and not from some."""
    return [ranker for ranker in rankers if not ranker.limits]


def _trained_rankings(
    collections: StudyCollections,
    rankers: Sequence[TrainedRanker],
    collection_ranker: CollectionRanker,
) -> Iterator[Rankings]:
    """Rank the test split, the zero-shot collections, and queries of the training."""
    full_rankers, options = _trained_on_all(rankers), collection_ranker.options
    test_name = f"{collections.name}-{options.test}"
    yield collection_ranker.rank(test_name, "supervised", collections.supervised, full_rankers)
    for unseen in collections.zero_shot:
        yield collection_ranker.rank(
            unseen.name,
            "zero-shot",
            unseen.collection,
            full_rankers,
            candidates=unseen.candidates,
        )
    # A ranker that learned from the reference has seen which of its documents are relevant to
    # these queries; the others have seen the queries alone, and can be tested on them.
    without_labels = [
        ranker for ranker in full_rankers if options.reference not in ranker.documents
    ]
    seen_name = f"{collections.name}-{options.train} queries, {options.reference} documents"
    yield collection_ranker.rank(seen_name, "seen", collections.seen, without_labels)


def _curve_rankings(
    collections: StudyCollections,
    rankers: Sequence[TrainedRanker],
    collection_ranker: CollectionRanker,
) -> Iterator[Rankings]:
    """Rank the test split with the rankers of the learning curve.

    Each of them learned from a limited number of documents of each source.
    """
    curve_rankers = [ranker for ranker in rankers if ranker.limits]
    if curve_rankers:
        name = f"{collections.name}-{collection_ranker.options.test}, augmented"
        yield collection_ranker.rank(name, "curve", collections.supervised, curve_rankers)

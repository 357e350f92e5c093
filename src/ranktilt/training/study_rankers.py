"""Rankers of a training study: the list of trainings, and how they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path, PurePath

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, refuse_twice
from ranktilt.models.checkpoint import read_json
from ranktilt.progress import report
from ranktilt.training.cross_encoder import train_cross_encoder
from ranktilt.training.model import find_base_model, require_encoder
from ranktilt.training.options import RerankerTraining
from ranktilt.training.study_options import Amounts, StudyOptions
from ranktilt.training.study_rankings import StudyFolder
from ranktilt.training.study_result import TrainedRanker
from ranktilt.training.training_set import reranker_set


def bodies_by_name(models: Sequence[str | Path]) -> dict[str, str]:
    """Return the encoders by their names in tables."""
    if not models:
        raise UserError("a training study needs an encoder to start from (--base-model MODEL)")
    names = [PurePath(model).name or str(model) for model in models]
    refuse_twice(names, "model")
    return dict(zip(names, map(str, models), strict=True))


def tuned_for(model: str) -> str:
    """Return the task that an encoder was tuned for before, as far as its folder says.

    ``classification``, ``retrieval``, or empty for pretraining alone.
    """
    folder = find_base_model(model)
    architectures = read_json(folder / "config.json", dict).get("architectures") or []
    if any(str(name).endswith("ForSequenceClassification") for name in architectures):
        return "classification"
    for module in read_json(folder / "modules.json", list):
        if isinstance(module, dict) and str(module.get("type")).endswith("Pooling"):
            return "retrieval"
    return ""


def rankers_to_train(
    train: Collection, bodies: Mapping[str, str], options: StudyOptions
) -> list[TrainedRanker]:
    """Return every training: for each body and seed, each side and then each point of the curve.

    A point of the curve is a number of documents of each source. Trainings that could not learn
    anything are refused here, before the first one begins.
    """
    reference = options.reference
    sides = [reference, *(name for name in train.sources if name != reference)]
    curve = [_learned_amounts(amounts) for amounts in options.curve]
    learned = [
        *(((name,), ()) for name in sides),
        *((tuple(dict(amounts)), amounts) for amounts in curve),
    ]
    for sources, limits in learned:
        # Refuses what has nothing to learn from, of which BM25 finds no relevant document, or fewer
        # than the curve asks for.
        reranker_set(train, replace(options.training, sources=sources, limits=limits, alpha=0.0))
    tasks = {body: tuned_for(model) for body, model in bodies.items()}
    seeds = range(options.seed, options.seed + options.seeds)
    rankers = [
        TrainedRanker(
            body=body, documents=sources, seed=seed, ranker="", limits=limits, tuned=tasks[body]
        )
        for body, seed, (sources, limits) in product(bodies, seeds, learned)
    ]
    refuse_twice([ranker.run for ranker in rankers], "training")
    return rankers


def _learned_amounts(amounts: Amounts) -> Amounts:
    """Return the amounts without sources that nothing is learned from."""
    learned = tuple((source, amount) for source, amount in amounts if amount)
    if not learned:
        raise UserError(
            "the curve: a ranker needs a document to learn from; got none of any source"
        )
    return learned


def require_encoders(bodies: Mapping[str, str], training: RerankerTraining) -> None:
    """Refuse bodies that are no encoders; their weights are read, for a folder may lack them."""
    for model in bodies.values():
        require_encoder(model, training.max_query_tokens, training.max_document_tokens)


def train_rankers(
    rankers: Sequence[TrainedRanker],
    bodies: Mapping[str, str],
    collection: Collection,
    folder: StudyFolder,
) -> list[TrainedRanker]:
    """Train each ranker into its folder, and return them with the text that ranks with them."""
    trained = []
    for number, ranker in enumerate(rankers):
        report("training rankers", number, len(rankers))
        training = replace(
            folder.training, sources=ranker.documents, seed=ranker.seed, limits=ranker.limits
        )
        model = bodies[ranker.body]
        train_cross_encoder(collection, model, folder.model(ranker), options=training)
        trained.append(replace(ranker, ranker=repr(folder.ranker(ranker))))
    report("training rankers", len(rankers), len(rankers))
    return trained

"""Rankers of a training study: list the trainings, and train them.

A *body* is the encoder that a training starts from. A *side* is the documents of one source
(author); the *reference* is the source of people's documents.
"""

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
    """Return the encoders by their names in tables, the last part of each path."""
    if not models:
        raise UserError("a training study needs an encoder to start from (--base-model MODEL)")
    names = [PurePath(model).name or str(model) for model in models]
    refuse_twice(names, "model")
    return dict(zip(names, map(str, models), strict=True))


def tuning_task(model: str) -> str:
    """Return the task that an encoder was fine-tuned for before, as its folder says.

    It is ``classification``, ``retrieval``, or empty if the encoder was pretrained alone.
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

    A point of the learning curve is a number of documents of each source. Trainings that have
    nothing to learn from are refused here, before the first one begins.

    Parameters
    ----------
    train : Collection
        The documents and judgments to learn from.
    bodies : mapping
        Path or hub name of each encoder, by its name.
    options : StudyOptions
        Seeds, curve and reference.
    """
    reference = options.reference
    sides = [reference, *(name for name in train.sources if name != reference)]
    # What each training learns from: sources, and limits on their documents if not all are used.
    material: list[tuple[tuple[str, ...], Amounts]] = [((name,), ()) for name in sides]
    for point in options.curve:
        amounts = _positive_amounts(point)
        material.append((tuple(dict(amounts)), amounts))
    for sources, limits in material:
        # This raises an error if BM25 finds no relevant document of the sources, or if they have
        # fewer documents than the curve asks for.
        reranker_set(train, replace(options.training, sources=sources, limits=limits, alpha=0.0))
    tuning_tasks = {body: tuning_task(model) for body, model in bodies.items()}
    seeds = range(options.seed, options.seed + options.seeds)
    rankers = [
        TrainedRanker(
            body=body,
            documents=sources,
            seed=seed,
            ranker="",  # known once it is trained
            limits=limits,
            tuned=tuning_tasks[body],
        )
        for body, seed, (sources, limits) in product(bodies, seeds, material)
    ]
    refuse_twice([ranker.run for ranker in rankers], "training")
    return rankers


def _positive_amounts(amounts: Amounts) -> Amounts:
    """Return the amounts above 0; refuse a point of the curve without any."""
    positive_amounts = tuple((source, amount) for source, amount in amounts if amount)
    if not positive_amounts:
        raise UserError(
            "the curve: a ranker needs a document to learn from; got none of any source"
        )
    return positive_amounts


def require_encoders(bodies: Mapping[str, str], training: RerankerTraining) -> None:
    """Refuse models that are no encoders, or whose folder lacks weights that can be loaded."""
    for model in bodies.values():
        require_encoder(model, training.max_query_tokens, training.max_document_tokens)


def train_rankers(
    rankers: Sequence[TrainedRanker],
    bodies: Mapping[str, str],
    collection: Collection,
    folder: StudyFolder,
) -> list[TrainedRanker]:
    """Train each ranker, and return it with the text that names it, ``cross-encoder:FOLDER``.

    Parameters
    ----------
    rankers : sequence of TrainedRanker
        The rankers to train, as `rankers_to_train` returns them.
    bodies : mapping
        Path or hub name of each encoder, by its name.
    collection : Collection
        The documents and judgments to learn from.
    folder : StudyFolder
        Folder for the models.
    """
    trained_rankers = []
    for number, ranker in enumerate(rankers):
        report("training rankers", number, len(rankers))
        training = replace(
            folder.training, sources=ranker.documents, seed=ranker.seed, limits=ranker.limits
        )
        model = bodies[ranker.body]
        train_cross_encoder(collection, model, folder.model(ranker), options=training)
        trained_rankers.append(replace(ranker, ranker=repr(folder.ranker(ranker))))
    report("training rankers", len(rankers), len(rankers))
    return trained_rankers

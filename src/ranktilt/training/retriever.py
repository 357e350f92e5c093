"""Train a retriever on a collection's own judgments.

It learns that a *positive*, a relevant document of a query, comes before its *negatives*. A *twin*
is a language model's version of a positive. The debiased constraint of Dai et al. (2024), an
option, keeps a twin from scoring above its positive.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.models import checkpoint
from ranktilt.models.encoder import Encoder
from ranktilt.optional import need
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.training.options import RetrieverTraining, TrainedModel
from ranktilt.training.trainable import FOR, TrainableEncoder, parse_loss
from ranktilt.training.trainer import TrainingRun, digest, new_trainer
from ranktilt.training.training_set import TrainingSet, retriever_set


def train_retriever(
    collection: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    options: RetrieverTraining | None = None,
    dev: Collection | None = None,
) -> TrainedModel:
    """Fine-tune an encoder as a retriever, with or without the debiased constraint.

    Each positive makes a row: its query, the positive, its twin if there is a constraint, and mined
    negatives. Loss and trainer come from sentence-transformers; dropout is off. An interrupted
    training continues from its last checkpoint.

    Parameters
    ----------
    collection : Collection
        Loaded with the judgments to learn from: ``load(DIR, split="train")``.
    model : str or Path
        The encoder: a folder, ``minilm``, or a hub name.
    folder : str or Path
        Folder to write the model to: a new one, or one with an unfinished training of the same
        options to continue.
    options : RetrieverTraining, optional
        Schedule, texts, negatives, loss and constraint.
    dev : Collection, optional
        The collection with the judgments of a development split, on which the model is audited
        after each epoch.

    Returns
    -------
    TrainedModel
        `folder` holds the model as sentence-transformers saves it, a model card, and
        ``training.json``.

    Raises
    ------
    UserError
        Before any work: if there is nothing to learn from, a constraint has no twin, the encoder
        cannot be used, or the folder has other content. Later: if the loss stops being a number, or
        memory or disk is full.

    References
    ----------
    Dai et al., KDD 2024, sec. 5, on the constraint.
    """
    started_at, options = time.monotonic(), options or RetrieverTraining()
    library = need("sentence_transformers", extra="train", for_=FOR)
    _require_consistent_options(options, dev)
    training_set = retriever_set(collection, options)
    _require_negatives(training_set, options)
    encoder = _base_encoder(model, options.device)
    texts = digest(training_set.queries, training_set.texts)
    pairs = digest(*training_set.positives, training_set.twins)
    spec = {
        "kind": "retriever",
        **asdict(options),
        "body": encoder.fingerprint,
        "twin_source": training_set.twin_source,
        "data": f"{texts} {pairs}",
    }
    run = TrainingRun(
        label=FOR, folder=Path(folder), options=options, spec=spec, started_at=started_at
    )
    if run.finished is not None:
        return run.finished
    trainable = TrainableEncoder(encoder, training_set, options)
    evaluator = None if dev is None else _evaluator(dev, training_set, options)
    arguments: dict[str, Any] = {"prompts": trainable.prompts}
    callbacks = list[Any]()
    if evaluator is not None:
        arguments["eval_strategy"] = "epoch"
    if evaluator is not None and options.patience is not None:
        arguments |= {
            "save_strategy": "epoch",
            "load_best_model_at_end": True,
            "metric_for_best_model": f"eval_dev_{evaluator.primary_metric}",
        }
        callbacks.append(checkpoint.transformers(for_=FOR).EarlyStoppingCallback(options.patience))
    trainer = new_trainer(
        library.SentenceTransformerTrainer,
        trainable.model,
        run.arguments(library.SentenceTransformerTrainingArguments, options.batch, **arguments),
        trainable.rows(),
        loss=trainable.loss(),
        evaluator=evaluator,
        callbacks=callbacks,
    )
    score_before = trainable.positive_score()
    figures = run.train(trainer, documents_per_row=1 + options.mined_negatives)
    figures |= {
        "queries": len(training_set.queries),
        "positives": sum(map(len, training_set.positives)),
        "twins": training_set.twin_count,
        "mean_score_before": score_before,
        "skipped_queries": training_set.skipped_queries,
    }
    if imbalance := trainable.miner.imbalance():
        figures["imbalance"] = imbalance
    return run.finish(trainable.model, str(model), collection, figures)


def score_scale(collection: Collection, model: str | Path, options: RetrieverTraining) -> float:
    """Return the mean absolute score of relevant documents before training.

    Choose alpha, the weight of the constraint, on this scale.

    Parameters
    ----------
    collection : Collection
        Loaded with the judgments to learn from.
    model : str or Path
        The encoder.
    options : RetrieverTraining
        Options of the training, which choose sources and cut texts.
    """
    training_set = retriever_set(collection, options)
    encoder = _base_encoder(model, options.device)
    return TrainableEncoder(encoder, training_set, options).positive_score()


def _evaluator(dev: Collection, training_set: TrainingSet, options: RetrieverTraining) -> Any:
    """Return the evaluator that audits the model after each epoch, on the queries of `dev`.

    Its reference is the first source that is learned from.
    """
    from ranktilt.training.evaluator import SourceBiasEvaluator

    if not training_set.subset.sources:
        raise UserError(
            f"{FOR}: the dev collection compares sources, and no document to learn from has one"
        )
    source = training_set.subset.sources[0]
    return SourceBiasEvaluator(dev, name="dev", source=source, text=options.text)


def _base_encoder(model: str | Path, device: str | None) -> Encoder:
    """Return the encoder to start from; refuse a model behind a server."""
    base = Dense(str(model), device=device).encoder
    if not isinstance(base, Encoder):
        raise UserError(
            f"{FOR}: {model} is a server's model; only a model on this machine can be trained"
        )
    return base


def _require_consistent_options(options: RetrieverTraining, dev: Collection | None) -> None:
    """Refuse options that exclude each other."""
    if options.patience is not None and dev is None:
        raise UserError(f"{FOR}: patience needs dev queries to judge each epoch by")
    loss_name, _loss_options = parse_loss(options.loss)
    if loss_name == "TripletLoss" and options.mined_negatives != 1:
        raise UserError(
            f"{FOR}: TripletLoss takes one mined negative a row: "
            "negatives_per_positive=1, not in-batch"
        )


def _require_negatives(training_set: TrainingSet, options: RetrieverTraining) -> None:
    """Refuse a single positive if negatives are the documents of other rows."""
    limit = options.positives_per_query
    row_count = sum(len(positives[:limit]) for positives in training_set.positives)
    if options.negatives == "in-batch" and row_count < 2:
        raise UserError(
            f"{FOR}: negatives=in-batch belong to other relevant documents, and there is only "
            "one; judge more, or choose negatives=bm25"
        )

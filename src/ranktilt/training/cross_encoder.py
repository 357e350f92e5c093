"""Train a cross-encoder on a collection's own judgments, with sentence-transformers' trainer.

A cross-encoder reads a query and a document together and gives one score, so it re-ranks the
documents that BM25 found. It learns that a *positive*, a relevant document of a query, comes before
its *negatives*, documents that are not relevant. A *twin* is a language model's version of a
positive. Negatives are drawn anew in each *epoch* from the *pool* of a positive.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ranktilt.data.collection import Collection
from ranktilt.models.checkpoint import fingerprint
from ranktilt.optional import need
from ranktilt.training.batches import EpochRows, Rows, draw_rows
from ranktilt.training.model import (
    FOR,
    cut_texts,
    disable_dropout,
    find_base_model,
    new_cross_encoder,
    require_encoder,
)
from ranktilt.training.options import RerankerTraining, TrainedModel
from ranktilt.training.trainer import TrainingRun, digest, new_trainer
from ranktilt.training.training_set import TrainingSet, reranker_set


def train_cross_encoder(
    collection: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    options: RerankerTraining | None = None,
) -> TrainedModel:
    """Fine-tune an encoder into a cross-encoder that re-ranks BM25's documents.

    For each positive and its negatives, the loss is the cross-entropy of the softmax over their
    scores. With ``loss="binary"`` it is the binary cross-entropy of each pair of query and
    document. The ``CrossEncoderTrainer`` of sentence-transformers does the rest. An interrupted
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
    options : RerankerTraining, optional
        Schedule, texts, positives, negatives and loss.

    Returns
    -------
    TrainedModel
        `folder` holds weights, configuration, tokenizer and ``training.json``.

    Raises
    ------
    UserError
        Before any work: if there is nothing to learn from, the encoder cannot be used, or the
        folder has other content. Later: if the loss stops being a number, or the disk is full.
    """
    started_at, options = time.monotonic(), options or RerankerTraining()
    library = need("sentence_transformers", extra="train", for_=FOR)
    training_set = reranker_set(collection, options)
    body = fingerprint(find_base_model(str(model)))
    pools = chain.from_iterable(training_set.negatives)
    data = digest(
        training_set.queries,
        training_set.texts,
        training_set.twins,
        *training_set.positives,
        *pools,
    )
    run = TrainingRun(
        label=FOR,
        folder=Path(folder),
        options=options,
        spec={"kind": "cross-encoder", **asdict(options), "body": body, "data": data},
        started_at=started_at,
    )
    if run.finished is not None:
        return run.finished
    encoder_folder, pair_tokens = require_encoder(
        str(model), options.max_query_tokens, options.max_document_tokens
    )
    cross_encoder = new_cross_encoder(encoder_folder, pair_tokens, options.seed)
    if not options.dropout:
        disable_dropout(cross_encoder)
    trainer = new_trainer(
        library.CrossEncoderTrainer,
        cross_encoder,
        run.arguments(library.CrossEncoderTrainingArguments, options.rows_per_batch),
        epoch_rows(training_set, options, cross_encoder.tokenizer),
        loss=_loss(cross_encoder, options),
    )
    documents_per_row = 1 if options.loss == "binary" else 1 + options.negatives_per_positive
    figures = run.train(trainer, documents_per_row)
    figures |= {
        "queries": len(training_set.queries),
        "positives": sum(map(len, training_set.positives)),
        "skipped_queries": training_set.skipped_queries,
        "skipped_positives": training_set.skipped_positives,
    }
    return run.finish(cross_encoder, str(model), collection, figures)


def epoch_rows(training_set: TrainingSet, options: RerankerTraining, tokenizer: Any) -> EpochRows:
    """Return rows whose positives, negatives and order are drawn anew in each epoch.

    `tokenizer` is used to cut the texts. If a positive has fewer negatives than a row needs, some
    of them repeat.
    """
    negative_count = options.negatives_per_positive

    def draw_negatives(rng: np.random.Generator, query: int, position: int) -> list[int]:
        pool = training_set.negatives[query][position]
        rows = rng.choice(pool, negative_count, replace=len(pool) < negative_count)
        return [int(row) for row in rows]

    def draw(epoch: int) -> Rows:
        rows = draw_rows(
            np.random.default_rng([options.seed, epoch]),
            training_set.positives,
            draw_negatives,
            positives_per_query=options.positives_per_query,
            negatives_per_positive=negative_count,
        )
        return rows.pairs() if options.loss == "binary" else rows

    positive_count = training_set.positive_count(options.positives_per_query)
    pair_count = positive_count * (1 + negative_count)
    return EpochRows(
        draw=draw,
        count=pair_count if options.loss == "binary" else positive_count,
        queries=training_set.queries,
        documents=training_set.texts,
        twins=training_set.twins if options.alpha else None,
        seed=options.seed,
        cut_queries=partial(cut_texts, tokenizer, options.max_query_tokens),
        cut_documents=partial(cut_texts, tokenizer, options.max_document_tokens),
    )


def _loss(model: Any, options: RerankerTraining) -> Any:
    """Return the loss that the options name, with the debiased constraint if `alpha` is not 0."""
    losses = need("sentence_transformers.cross_encoder.losses", extra="train", for_=FOR)
    from ranktilt.training.losses import ChoiceLoss, DebiasedLoss

    loss = losses.BinaryCrossEntropyLoss(model) if options.loss == "binary" else ChoiceLoss(model)
    return DebiasedLoss(model, loss, alpha=options.alpha) if options.alpha else loss

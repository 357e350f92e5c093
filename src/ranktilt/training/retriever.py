"""Train a retriever on a collection's own judgments.

It learns that a *positive*, a relevant document of a query, comes before its *negatives*. A *twin*
is a language model's version of a positive. The debiased *constraint* of Dai et al. (2024), an
option, keeps a twin from scoring above its positive. A *prompt* is a prefix that an encoder expects
before queries or documents. *Mined* negatives are documents that a search returns although they
are not relevant.

`train_retriever` makes the training; `TrainableEncoder` is the encoder in it, with its texts,
prompts, rows and loss.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ranktilt.data.cache import Vectors
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, first_line, unknown_name
from ranktilt.models import checkpoint
from ranktilt.models.encoder import Encoder, Kind
from ranktilt.optional import need
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.spec import parse_stages
from ranktilt.training.batches import EpochRows
from ranktilt.training.mining import EncodedTexts, Miner
from ranktilt.training.model import cut_texts, disable_dropout
from ranktilt.training.options import RetrieverTraining, TrainedModel
from ranktilt.training.trainer import TrainingRun, digest, new_trainer
from ranktilt.training.training_set import TrainingSet, retriever_set

FOR = "train retriever"
"""Command, for messages."""
LOSSES = ("MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss", "TripletLoss")
"""Losses of sentence-transformers that learn from a query, its positive and negatives."""
_KINDS: tuple[Kind, Kind] = ("query", "document")
"""Kinds of text that an encoder may treat differently."""
_SCORED_PAIRS = 256
"""Number of pairs of query and positive from which the scale of scores is estimated."""


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
    row_count = training_set.positive_count(options.positives_per_query)
    if options.negatives == "in-batch" and row_count < 2:
        raise UserError(
            f"{FOR}: negatives=in-batch belong to other relevant documents, and there is only "
            "one; judge more, or choose negatives=bm25"
        )


# ---- the encoder in training ---------------------------------------------------------------------


class TrainableEncoder:
    """An encoder without dropout, with the texts of a training set.

    The encoder's prompts are put before the texts. `cut_queries` and `cut_documents` cut the texts
    at the numbers of tokens in the options, including special tokens.
    """

    def __init__(
        self, encoder: Encoder, training_set: TrainingSet, options: RetrieverTraining
    ) -> None:
        self.encoder = encoder
        self.training_set = training_set
        self.options = options
        self.miner = Miner(
            training_set=training_set, options=options, encode=self._encode_all_texts
        )
        model = self.model = encoder.module
        disable_dropout(model)
        model.similarity_fn_name = model.similarity_fn_name or "cosine"
        model.prompts = {**(model.prompts or {}), **{kind: encoder.prefix(kind) for kind in _KINDS}}
        longest = max(options.max_query_tokens, options.max_document_tokens)
        model.max_seq_length = min(model.max_seq_length or longest, longest)
        tokenizer: Any = getattr(model, "tokenizer", None)
        special_tokens = 0
        if hasattr(tokenizer, "num_special_tokens_to_add"):
            special_tokens = tokenizer.num_special_tokens_to_add()
        self.cut_queries = partial(
            cut_texts, tokenizer, max(options.max_query_tokens - special_tokens, 1)
        )
        self.cut_documents = partial(
            cut_texts, tokenizer, max(options.max_document_tokens - special_tokens, 1)
        )

    def loss(self) -> Any:
        """Return the loss that the options name, with the constraint if they ask for it."""
        losses = need("sentence_transformers.sentence_transformer.losses", extra="train", for_=FOR)
        name, loss_options = parse_loss(self.options.loss)
        try:
            loss = getattr(losses, name)(self.model, **loss_options)
        except (TypeError, ValueError) as error:
            raise UserError(f"{FOR}: {self.options.loss}: {first_line(error)}") from error
        if not self.options.has_constraint:
            return loss
        from ranktilt.training.losses import DebiasedLoss

        return DebiasedLoss(
            self.model, loss, alpha=self.options.alpha, variant=self.options.variant
        )

    def rows(self) -> EpochRows:
        """Return the rows of all epochs, which are drawn when they are needed."""
        training_set, options = self.training_set, self.options
        return EpochRows(
            draw=self.miner.rows,
            count=training_set.positive_count(options.positives_per_query),
            queries=training_set.queries,
            documents=training_set.texts,
            twins=training_set.twins if options.has_constraint else None,
            seed=options.seed,
            cut_queries=self.cut_queries,
            cut_documents=self.cut_documents,
            barred=[frozenset(rows.tolist()) for rows in training_set.barred],
        )

    @property
    def prompts(self) -> dict[str, str]:
        """Prefix of the texts of each column; without columns whose prefix is empty."""
        numbers = range(1, 1 + self.options.mined_negatives)
        document_columns = ["document", "twin", *(f"negative{number}" for number in numbers)]
        prompts = {"query": self.encoder.prefix("query")}
        prompts |= dict.fromkeys(document_columns, self.encoder.prefix("document"))
        return {column: prompt for column, prompt in prompts.items() if prompt}

    def positive_score(self) -> float:
        """Return the mean absolute score of positives, by the model as it is now.

        This is the scale of its scores, on which the weight of the constraint (alpha) is chosen.
        """
        # The epochs' generators have the seed and the number of the epoch, which is never so large.
        rng = np.random.default_rng([self.options.seed, 1 << 31])
        queries, documents = list[str](), list[str]()
        for query, positives in zip(
            self.training_set.queries, self.training_set.positives, strict=True
        ):
            for document in positives:
                queries.append(query)
                documents.append(self.training_set.texts[document])
        sample = rng.permutation(len(queries))[:_SCORED_PAIRS]
        query_vectors = self._encode([queries[pair] for pair in sample], "query")
        document_vectors = self._encode([documents[pair] for pair in sample], "document")
        return float(self.model.similarity_pairwise(query_vectors, document_vectors).abs().mean())

    def _encode(self, texts: list[str], kind: Kind) -> Vectors:
        """Return the vectors of texts, by the model as it is now."""
        cut = self.cut_queries if kind == "query" else self.cut_documents
        vectors: Vectors = self.model.encode(
            cut(texts), prompt=self.encoder.prefix(kind), show_progress_bar=False
        )
        return vectors

    def _encode_all_texts(self) -> EncodedTexts:
        """Return the vectors of all queries and documents, by the model as it is now."""
        # After the documents, `texts` holds the twins, which are never negatives.
        documents = self.training_set.texts[: self.training_set.subset.docs.height]
        return EncodedTexts(
            queries=self._encode(self.training_set.queries, "query"),
            documents=self._encode(documents, "document"),
            cosine=self.model.similarity_fn_name == "cosine",
        )


def parse_loss(text: str) -> tuple[str, dict[str, Any]]:
    """Read ``Name(option=value,…)`` as the name of a loss and its options.

    The name is one of `LOSSES`; values are numbers, booleans or words.
    """
    try:
        # A loss is written as a stage of a ranker is.
        stages = parse_stages(text)
    except UserError:  # its message is about rankers; the error below is about losses
        stages = []
    if len(stages) != 1 or stages[0].argument is not None or stages[0].k is not None:
        raise UserError(f"cannot read loss {text!r}: expected Name(option=value,…)")
    [loss] = stages
    if loss.name not in LOSSES:
        raise unknown_name("loss", loss.name, LOSSES)
    values = dict[str, Any](loss.options)
    for name, value in loss.options.items():
        with suppress(ValueError):  # a word stays as it is
            values[name] = json.loads(value.lower())
    return loss.name, values

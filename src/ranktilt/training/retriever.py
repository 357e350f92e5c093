"""Train a retriever on a collection's own judgments, if wanted under the debiased constraint of Dai et al. (2024)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ranktilt.data.cache import Stored, Vectors
from ranktilt.data.collection import Collection
from ranktilt.data.run import collection_rows
from ranktilt.errors import UserError, first_line, unknown
from ranktilt.models import checkpoint
from ranktilt.models.encoder import Encoder, Kind
from ranktilt.optional import need
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.dense.search import search
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.spec import parse_stages
from ranktilt.training.batches import EpochRows, Ints, Rows, draw_rows
from ranktilt.training.matched_negatives import TextProperties
from ranktilt.training.model import cut_texts, without_dropout
from ranktilt.training.options import RetrieverTraining, Trained
from ranktilt.training.trainer import TrainingRun, digest, trainer_of
from ranktilt.training.training_set import TrainingSet, retriever_set

FOR = "train retriever"
LOSSES = ("MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss", "TripletLoss")
"""sentence-transformers' losses that learn from a query, its positive and negatives."""
_KINDS: tuple[Kind, Kind] = ("query", "document")
_SCORED_ROWS = 256


def train_retriever(
    collection: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    options: RetrieverTraining | None = None,
    dev: Collection | None = None,
) -> Trained:
    """Fine-tune an encoder as a retriever on a collection's judgments, with or without the debiased constraint.

    Each relevant document is a row: a query, this document, its twin where there is a constraint,
    and mined negatives. Loss and trainer are sentence-transformers' own; no dropout. An interrupted
    training goes on from its last checkpoint.

    Parameters
    ----------
    collection : Collection
        Loaded with the judgments to learn from: ``load(DIR, split="train")``.
    model : str or Path
        The encoder: a folder, ``minilm``, or a hub name.
    folder : str or Path
        Where the model goes: new, or with an unfinished training of the same options, which is
        continued.
    options : RetrieverTraining, optional
        How.
    dev : Collection, optional
        The collection with other judgments, on which the model is audited after each epoch.

    Returns
    -------
    Trained
        `folder` holds the model as sentence-transformers saves it, a model card, and
        ``training.json``.

    Raises
    ------
    UserError
        Before any work: where there is nothing to learn from, no twin, the encoder cannot be used,
        or the folder holds something else. Later: if the loss stops being a number, memory does not
        suffice, or the disk is full.

    References
    ----------
    Dai et al., KDD 2024, sec. 5.
    """
    began, options = time.monotonic(), options or RetrieverTraining()
    library = need("sentence_transformers", extra="train", for_=FOR)
    _require_fit(options, dev)
    training_set = retriever_set(collection, options)
    _require_negatives(training_set, options)
    encoder = _base_encoder(model, options.device)
    texts, pairs = (
        digest(training_set.queries, training_set.texts),
        digest(*training_set.positives, training_set.twins),
    )
    spec = {
        "kind": "retriever",
        **asdict(options),
        "body": encoder.fingerprint,
        "twin_source": training_set.twin_source,
        "data": f"{texts} {pairs}",
    }
    run = TrainingRun(FOR, Path(folder), options, spec, began)
    if run.finished is not None:
        return run.finished
    trainable = _Trainable(encoder, training_set, options)
    judge, rows = None, trainable.rows()
    if dev is not None:
        from ranktilt.training.evaluator import SourceBiasEvaluator

        if not training_set.part.sources:
            raise UserError(
                f"{FOR}: the dev collection compares sources, and no document that is learned from has one"
            )
        judge = SourceBiasEvaluator(
            dev, name="dev", source=training_set.part.sources[0], text=options.text
        )
    best: dict[str, Any] = {} if judge is None else {"eval_strategy": "epoch"}
    callbacks = list[Any]()
    if judge is not None and options.patience is not None:
        metric = f"eval_dev_{judge.primary_metric}"
        best |= {
            "save_strategy": "epoch",
            "load_best_model_at_end": True,
            "metric_for_best_model": metric,
        }
        callbacks.append(checkpoint.transformers(for_=FOR).EarlyStoppingCallback(options.patience))
    arguments = run.arguments(
        library.SentenceTransformerTrainingArguments,
        options.batch,
        prompts=trainable.prompts,
        **best,
    )
    trainer = trainer_of(
        library.SentenceTransformerTrainer,
        trainable.model,
        arguments,
        rows,
        loss=trainable.loss(),
        evaluator=judge,
        callbacks=callbacks,
    )
    score = trainable.positive_score()
    figures = run.train(trainer, 1 + options.mined_negatives)
    figures |= {
        "queries": len(training_set.queries),
        "positives": sum(map(len, training_set.positives)),
        "twins": training_set.paired,
        "mean_score_before": score,
        "skipped_queries": training_set.skipped,
    }
    if imbalance := trainable.miner.imbalance():
        figures["imbalance"] = imbalance
    return run.finish(trainable.model, str(model), collection, figures)


def score_scale(collection: Collection, model: str | Path, options: RetrieverTraining) -> float:
    """Return the mean absolute score of relevant documents before training: the scale that alpha is on."""
    training_set = retriever_set(collection, options)
    return _Trainable(_base_encoder(model, options.device), training_set, options).positive_score()


def _base_encoder(model: str | Path, device: str | None) -> Encoder:
    base = Dense(str(model), device=device).encoder
    if not isinstance(base, Encoder):
        raise UserError(
            f"{FOR}: {model} is a server's model; only one on this machine can be trained"
        )
    return base


def _require_fit(options: RetrieverTraining, dev: Collection | None) -> None:
    if options.patience is not None and dev is None:
        raise UserError(f"{FOR}: patience needs dev queries to judge each epoch by")
    name = parse_loss(options.loss)[0]
    if name == "TripletLoss" and (
        options.negatives == "in-batch" or options.negatives_per_positive != 1
    ):
        raise UserError(
            f"{FOR}: TripletLoss takes one mined negative a row: negatives_per_positive=1, not in-batch"
        )


def _require_negatives(training_set: TrainingSet, options: RetrieverTraining) -> None:
    """Refuse a single pair of query and document where negatives are the documents of other pairs."""
    pairs = sum(len(rows[: options.positives_per_query]) for rows in training_set.positives)
    if options.negatives == "in-batch" and pairs < 2:
        raise UserError(
            f"{FOR}: one relevant document to train on, and negatives=in-batch are those of others; "
            "judge more, or choose negatives=bm25"
        )


def parse_loss(text: str) -> tuple[str, dict[str, Any]]:
    """Read ``Name(option=value,…)`` as one of `LOSSES` and its options: numbers, booleans or words."""
    try:
        stages = parse_stages(text)
    except UserError:  # which speaks of rankers
        stages = []
    if len(stages) != 1 or stages[0].argument is not None or stages[0].k is not None:
        raise UserError(f"cannot read loss {text!r}: expected Name(option=value,…)")
    if stages[0].name not in LOSSES:
        raise unknown("loss", stages[0].name, LOSSES)
    values = dict[str, Any](stages[0].options)
    for name, text in stages[0].options.items():
        with suppress(ValueError):  # a word
            values[name] = json.loads(text.lower())
    return stages[0].name, values


@dataclass(eq=False)
class Miner:
    """Finds negatives by one scheme; what BM25 finds stays the same over epochs and trainings."""

    training_set: TrainingSet
    options: RetrieverTraining
    encode: Callable[[], tuple[Vectors, Vectors, bool]] | None = None
    """Vectors of queries and documents by the model as it is now, and whether they are compared by cosine."""

    def rows(self, epoch: int) -> Rows:
        """Draw an epoch's positives and their negatives."""
        mined, count = self.mined(), self.options.mined_negatives
        properties = self.properties

        def negatives(rng: np.random.Generator, query: int, place: int) -> list[int]:
            if not count:
                return []
            rows = mined[query] if len(mined[query]) else self._others(query)
            if properties is not None:
                rows = properties.matched(
                    int(self.training_set.positives[query][place]), rows, count
                )
            return [int(row) for row in rng.choice(rows, count, replace=len(rows) < count)]

        rng = np.random.default_rng([self.options.seed, epoch])
        return draw_rows(
            rng, self.training_set.positives, self.options.positives_per_query, negatives, count
        )

    @cached_property
    def properties(self) -> TextProperties | None:
        """What negatives are matched on; None where they are not."""
        return (
            TextProperties.from_collection(self.training_set.part)
            if self.options.negatives == "controlled"
            else None
        )

    def imbalance(self) -> dict[str, dict[str, float]]:
        """By how much positives and negatives of the first epoch differ, and would if they were not matched."""
        if self.properties is None:
            return {}
        plain = replace(self, options=replace(self.options, negatives="bm25"))
        return {
            name: dict(self.properties.imbalance(miner.rows(0).documents))
            for name, miner in (("matched", self), ("unmatched", plain))
        }

    def _others(self, query: int) -> Ints:
        """All documents that are not relevant to a query for which none was mined."""
        others = np.setdiff1d(
            np.arange(self.training_set.part.docs.height), self.training_set.barred[query]
        )
        if not len(others):
            raise UserError(
                "training: a query to which every document is relevant has no negatives; negatives=in-batch"
            )
        return others

    def mined(self) -> tuple[Ints, ...]:
        """Find the negatives of each query, best first, for the epoch that begins."""
        part = self.training_set.part
        if self.options.negatives == "in-batch":
            return ()
        if self.options.negatives in ("bm25", "controlled"):
            return part.memo((__name__, self.options.depth, self.options.text), self._retrieved)
        if self.encode is None:
            raise UserError(
                "training: negatives=ann searches with the model that is trained, and there is none"
            )
        queries, documents, cosine = self.encode()
        stored = Stored(documents, np.arange(len(documents)))
        every = search(
            queries, stored, self.options.depth, cosine=cosine, label="train retriever: mining"
        )
        return self._without_relevant(rows[np.lexsort((rows, -scores))] for rows, scores in every)

    def _retrieved(self) -> tuple[Ints, ...]:
        part = self.training_set.part
        run = BM25(k=self.options.depth, text=self.options.text).rank(part)
        return self._without_relevant(
            np.split(collection_rows(run, part)[run.docs], run.offsets[1:-1])
        )

    def _without_relevant(self, lists: Iterable[Ints]) -> tuple[Ints, ...]:
        return tuple(
            rows[~np.isin(rows, barred)]
            for rows, barred in zip(lists, self.training_set.barred, strict=True)
        )


class _Trainable:
    """The encoder, its texts, and the loss."""

    def __init__(
        self, encoder: Encoder, training_set: TrainingSet, options: RetrieverTraining
    ) -> None:
        self.encoder, self.training_set, self.options = encoder, training_set, options
        self.miner = Miner(training_set, options, self._vectors)
        model = self.model = encoder.module
        without_dropout(model)
        model.similarity_fn_name = model.similarity_fn_name or "cosine"
        model.prompts = {**(model.prompts or {}), **{kind: encoder.prefix(kind) for kind in _KINDS}}
        longest = max(options.max_query_tokens, options.max_document_tokens)
        model.max_seq_length = min(model.max_seq_length or longest, longest)
        tokenizer: Any = getattr(model, "tokenizer", None)
        special = (
            tokenizer.num_special_tokens_to_add()
            if hasattr(tokenizer, "num_special_tokens_to_add")
            else 0
        )
        self.cut_queries, self.cut_documents = (
            partial(cut_texts, tokenizer, max(most - special, 1))
            for most in (options.max_query_tokens, options.max_document_tokens)
        )

    def loss(self) -> Any:
        """The loss that is named, with the constraint where there is one."""
        losses = need("sentence_transformers.sentence_transformer.losses", extra="train", for_=FOR)
        name, given = parse_loss(self.options.loss)
        try:
            loss = getattr(losses, name)(self.model, **given)
        except (TypeError, ValueError) as error:
            raise UserError(f"{FOR}: {self.options.loss}: {first_line(error)}") from error
        if not self.options.constrained:
            return loss
        from ranktilt.training.losses import DebiasedLoss

        return DebiasedLoss(
            self.model, loss, alpha=self.options.alpha, variant=self.options.variant
        )

    def rows(self) -> EpochRows:
        """What each epoch shows."""
        learned, options = self.training_set, self.options
        return EpochRows(
            self.miner.rows,
            sum(len(rows[: options.positives_per_query]) for rows in learned.positives),
            learned.queries,
            learned.texts,
            learned.twins if options.constrained else None,
            options.seed,
            self.cut_queries,
            self.cut_documents,
            [frozenset(rows.tolist()) for rows in learned.barred],
        )

    @property
    def prompts(self) -> dict[str, str]:
        """What is put before the texts of each column."""
        documents = [
            "document",
            "twin",
            *(f"negative{n}" for n in range(1, 1 + self.options.mined_negatives)),
        ]
        prompts = {"query": self.encoder.prefix("query")} | dict.fromkeys(
            documents, self.encoder.prefix("document")
        )
        return {name: prompt for name, prompt in prompts.items() if prompt}

    def _encoded(self, texts: list[str], kind: Kind) -> Vectors:
        """Vectors of texts by the model as it is now."""
        cut = self.cut_queries if kind == "query" else self.cut_documents
        vectors: Vectors = self.model.encode(
            cut(texts), prompt=self.encoder.prefix(kind), show_progress_bar=False
        )
        return vectors

    def _vectors(self) -> tuple[Vectors, Vectors, bool]:
        documents = self.training_set.texts[: self.training_set.part.docs.height]
        cosine = self.model.similarity_fn_name == "cosine"
        return (
            self._encoded(self.training_set.queries, "query"),
            self._encoded(documents, "document"),
            cosine,
        )

    def positive_score(self) -> float:
        """Mean absolute score of relevant documents before training."""
        rng = np.random.default_rng([self.options.seed, 1 << 31])
        pairs = [(q, int(d)) for q, rows in enumerate(self.training_set.positives) for d in rows]
        chosen = [pairs[place] for place in rng.permutation(len(pairs))[:_SCORED_ROWS]]
        queries = self._encoded([self.training_set.queries[q] for q, _ in chosen], "query")
        documents = self._encoded([self.training_set.texts[d] for _, d in chosen], "document")
        return float(self.model.similarity_pairwise(queries, documents).abs().mean())

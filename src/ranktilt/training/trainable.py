"""An encoder that is about to be trained as a retriever: its texts, prompts, rows and loss.

A *positive* is a relevant document of a query; a *prompt* is a prefix that an encoder expects
before queries or documents. The *constraint* is the debiased one of Dai et al. (2024), which keeps
a language model's version of a positive from scoring above it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ranktilt.data.cache import Vectors
from ranktilt.errors import UserError, first_line, unknown_name
from ranktilt.models.encoder import Encoder, Kind
from ranktilt.optional import need
from ranktilt.spec import parse_stages
from ranktilt.training.batches import EpochRows
from ranktilt.training.mining import EncodedTexts, Miner
from ranktilt.training.model import cut_texts, disable_dropout
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.training_set import TrainingSet

FOR = "train retriever"
"""Command, for messages."""
LOSSES = ("MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss", "TripletLoss")
"""Losses of sentence-transformers that learn from a query, its positive and negatives."""
_KINDS: tuple[Kind, Kind] = ("query", "document")
"""Kinds of text that an encoder may treat differently."""
_SCORED_PAIRS = 256
"""Number of pairs of query and positive from which the scale of scores is estimated."""


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
        limit = options.positives_per_query
        row_count = sum(len(positives[:limit]) for positives in training_set.positives)
        return EpochRows(
            draw=self.miner.rows,
            count=row_count,
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
        # The large number keeps this draw apart from those of the epochs.
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

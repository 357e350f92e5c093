"""monoT5: an encoder-decoder that answers true or false (Nogueira et al., EMNLP Findings 2020).

The model reads a prompt with query and document. The score of the document is the probability of
the token ``true``, of the two tokens ``true`` and ``false``; no text is generated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ranktilt.errors import UserError
from ranktilt.models.checkpoint import load, load_tokenizer, loading, require
from ranktilt.models.device import torch_device
from ranktilt.models.scorer import (
    Logits,
    PairScorer,
    Scores,
    TokenLimits,
    fit_texts,
    in_float32,
    sigmoid,
)
from ranktilt.models.token_counts import Tokens
from ranktilt.optional import need
from ranktilt.rankers.rerank.base import ReRanker

QUERY, DOCUMENT, RELEVANT = PARTS = ("Query:", "Document:", "Relevant:")
"""The prompt's words before the query, before the document, and after it."""
LIMIT = 512
"""Tokens of a prompt if the tokenizer names no limit: those that T5 was trained with."""
_FAMILY = ("t5", "mt5", "umt5", "longt5")
"""Types of models that are T5."""
_BLANK = "▁"
"""Character that SentencePiece writes for the blank before a word."""


@dataclass(frozen=True, kw_only=True)
class TrueFalseScorer(PairScorer):
    """An encoder-decoder that answers with the token true or false."""

    true_token: str = "true"
    """Answer for a relevant document."""
    false_token: str = "false"
    """Answer for any other document."""
    start: int = 0
    """Number of the token with which the decoder starts."""

    @property
    def cache_key(self) -> tuple[object, ...]:
        """Options on which the logits depend: they are those of these two tokens."""
        return *super().cache_key, self.true_token, self.false_token

    def relevance(self, logits: Logits) -> Scores:
        """Return the probability of the true answer, of the two answers, from their logits."""
        # The softmax of two logits is the logistic function of their difference.
        wide = logits.astype(np.float64)
        return sigmoid(wide[:, 0] - wide[:, 1])

    def special_token_count(self) -> int:
        """Return how many tokens the prompt's own words and the end token take."""
        # The empty text has only special tokens; each part of the prompt has its words in addition.
        counts = Tokens(folder=self.folder).counts(["", *PARTS], "counting tokens")
        special, parts = counts[0], counts[1:]
        return int((parts - special).sum() + special)

    @cached_property
    def module(self) -> Any:
        """The loaded model. Its last layer computes only the logits of the two answers."""
        torch = need("torch", extra="neural", for_=self.ranker)
        on_device = f" on device {self.device!r}" if self.device else ""
        failure = f"{self.folder}: cannot be loaded as a model for {self.ranker}{on_device}"
        with loading(failure, for_=self.ranker):
            model = load(self.folder, "AutoModelForSeq2SeqLM", for_=self.ranker)
            # The original layer computes a logit for each token of the vocabulary.
            answers = [self._answer(self.true_token), self._answer(self.false_token)]
            last_layer = model.get_output_embeddings()
            has_bias = last_layer.bias is not None
            answer_layer = torch.nn.Linear(last_layer.in_features, len(answers), bias=has_bias)
            with torch.no_grad():
                answer_layer.weight.copy_(last_layer.weight[answers])
                if has_bias:
                    answer_layer.bias.copy_(last_layer.bias[answers])
            model.lm_head = in_float32(answer_layer)
            return model.to(torch_device(self.device))

    @cached_property
    def tokenizer(self) -> Any:
        """The model's tokenizer, of transformers."""
        with loading(f"{self.folder}: its tokenizer cannot be read", for_=self.ranker):
            return load_tokenizer(self.folder, for_=self.ranker)

    def _answer(self, word: str) -> int:
        """Return the number of an answer's token: with the blank before a word, or without it."""
        vocabulary = self.tokenizer.get_vocab()
        for token in (_BLANK + word, word):
            if token in vocabulary:
                return int(vocabulary[token])
        raise UserError(
            f"{self.folder}: its vocabulary has no token {_BLANK + word!r}; "
            "set true_token and false_token"
        )

    def read(self, queries: list[str], documents: list[str]) -> Any:
        """Return the logits of both answers after each prompt.

        A prompt that is too long loses tokens of the query and the document, never its own words.
        """
        part_ids = self.tokenizer(list(PARTS), add_special_tokens=False)["input_ids"]
        prompt_token_count = sum(map(len, part_ids)) + 1  # and the end token
        pairs = fit_texts(self.tokenizer, (queries, documents), self.limits, prompt_token_count)
        prompts = [
            f"{QUERY} {query} {DOCUMENT} {document} {RELEVANT}"
            for query, document in zip(*pairs, strict=True)
        ]
        device = self.module.device
        encoding = self.tokenizer(prompts, padding=True, return_tensors="pt", verbose=False)
        input_ids = encoding["input_ids"].to(device)
        outputs = self.module(
            input_ids=input_ids,
            attention_mask=encoding["attention_mask"].to(device),
            decoder_input_ids=input_ids.new_full((len(prompts), 1), self.start),
            use_cache=False,
        )
        return outputs.logits[:, 0, :].float().cpu()


@dataclass(frozen=True)
class MonoT5(ReRanker):
    """Ranks by the probability of "true" after "Query: … Document: … Relevant:".

    Long texts are cut, but never the words of the prompt. `true_token` and `false_token` are for a
    model that was trained on other answers.
    """

    name: ClassVar[str] = "monot5"

    true_token: str = field(default="true", kw_only=True)
    """Answer for a relevant document."""
    false_token: str = field(default="false", kw_only=True)
    """Answer for any other document."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("true_token", "false_token"):
            if not getattr(self, option).strip(_BLANK):
                raise UserError(
                    f"monot5: expected a word as {option}, got {getattr(self, option)!r}"
                )
        if self.true_token == self.false_token:
            raise UserError(
                f"monot5: expected two different answers, got {self.true_token!r} twice"
            )

    def scorer_of(
        self, folder: Path, query: int | None, document: int | None, precision: str
    ) -> PairScorer:
        """Return the scorer of a T5, or of a model of its family, which is not loaded yet."""
        config = require(folder, ranker=self.name)
        kinds = config.get("architectures") or []
        is_t5 = config.get("model_type") in _FAMILY
        if not is_t5 or not all(str(kind).endswith("ConditionalGeneration") for kind in kinds):
            kind = kinds[0] if kinds else repr(config.get("model_type"))
            raise UserError(
                f"{folder}: expected a T5ForConditionalGeneration, or one of its family, for "
                f"monot5, got {kind}"
            )
        start = config.get("decoder_start_token_id")
        if not isinstance(start, int):
            raise UserError(
                f"{folder / 'config.json'}: no decoder_start_token_id to start the answer with"
            )
        pair_limit = Tokens(folder=folder).limit or LIMIT
        return TrueFalseScorer(
            folder=folder,
            ranker=self.name,
            limits=TokenLimits(query=query, document=document, pair=pair_limit),
            precision=precision,
            device=self.device,
            outputs=2,
            true_token=self.true_token,
            false_token=self.false_token,
            start=start,
        )

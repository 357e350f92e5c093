"""monoT5: an encoder-decoder that answers true or false (Nogueira et al., EMNLP Findings 2020)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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

PARTS = ("Query:", "Document:", "Relevant:")
"""What stands before the query, between query and document, and behind the document."""
LIMIT = 512
"""Tokens of a whole prompt where the tokenizer names no limit of its own."""
_FAMILY = ("t5", "mt5", "umt5", "longt5")
_BLANK = "▁"


@dataclass(frozen=True)
class TrueFalseScorer(PairScorer):
    """An encoder-decoder whose first answered token, true or false, is read."""

    true_token: str = field(default="true", kw_only=True)
    false_token: str = field(default="false", kw_only=True)
    start: int = field(default=0, kw_only=True)
    """Token with which the decoder starts."""

    @property
    def cache_key(self) -> tuple[object, ...]:
        return *super().cache_key, self.true_token, self.false_token

    def relevance(self, logits: Logits) -> Scores:
        wide = logits.astype(np.float64)
        return sigmoid(wide[:, 0] - wide[:, 1])

    def special_token_count(self) -> int:
        counts = Tokens(self.folder, None).counts(["", *PARTS], "counting tokens")
        return int((counts[1:] - counts[0]).sum() + counts[0])

    @cached_property
    def module(self) -> Any:
        torch = need("torch", extra="neural", for_=self.ranker)
        where = f" on device {self.device!r}" if self.device else ""
        with loading(
            f"{self.folder}: cannot be loaded as a model for {self.ranker}{where}", for_=self.ranker
        ):
            model = load(self.folder, "AutoModelForSeq2SeqLM", for_=self.ranker)
            answers = [self._answer(name) for name in (self.true_token, self.false_token)]
            whole = model.get_output_embeddings()
            two = torch.nn.Linear(whole.in_features, 2, bias=whole.bias is not None)
            with torch.no_grad():
                two.weight.copy_(whole.weight[answers])
                if whole.bias is not None:
                    two.bias.copy_(whole.bias[answers])
            model.lm_head = in_float32(two)
            return model.to(torch_device(self.device))

    @cached_property
    def tokenizer(self) -> Any:
        """The model's tokenizer, which is transformers' own."""
        with loading(f"{self.folder}: its tokenizer cannot be read", for_=self.ranker):
            return load_tokenizer(self.folder, for_=self.ranker)

    def _answer(self, name: str) -> int:
        """Number of an answer: the token at the start of a word, or else the token of exactly this text."""
        vocabulary = self.tokenizer.get_vocab()
        for token in (_BLANK + name, name):
            if token in vocabulary:
                return int(vocabulary[token])
        raise UserError(
            f"{self.folder}: its vocabulary has no token {_BLANK + name!r}; set true_token and false_token"
        )

    def read(self, queries: list[str], documents: list[str]) -> Any:
        """Return the logits of both answers after each prompt, of which only query and document are cut."""
        around = (
            sum(map(len, self.tokenizer(list(PARTS), add_special_tokens=False)["input_ids"])) + 1
        )
        pairs = zip(
            *fit_texts(self.tokenizer, (queries, documents), self.limits, around), strict=True
        )
        prompts = [
            f"{PARTS[0]} {query} {PARTS[1]} {document} {PARTS[2]}" for query, document in pairs
        ]
        found = self.tokenizer(prompts, padding=True, return_tensors="pt", verbose=False).to(
            self.module.device
        )
        inputs = {name: found[name] for name in ("input_ids", "attention_mask")}
        first = found["input_ids"].new_full((len(prompts), 1), self.start)
        return (
            self.module(**inputs, decoder_input_ids=first, use_cache=False)
            .logits[:, 0, :]
            .float()
            .cpu()
        )


@dataclass(frozen=True)
class MonoT5(ReRanker):
    """Ranks by the probability of "true" after "Query: … Document: … Relevant:", of which the whole prompt stays.

    `true_token` and `false_token` are the answers, for a model that was trained on others.
    """

    name: ClassVar[str] = "monot5"

    true_token: str = field(default="true", kw_only=True)
    false_token: str = field(default="false", kw_only=True)

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
        config = require(folder, ranker=self.name)
        kinds = config.get("architectures") or []
        if config.get("model_type") not in _FAMILY or not all(
            str(k).endswith("ConditionalGeneration") for k in kinds
        ):
            got = kinds[0] if kinds else repr(config.get("model_type"))
            raise UserError(
                f"{folder}: expected a T5ForConditionalGeneration, or one of its family, for monot5, got {got}"
            )
        start = config.get("decoder_start_token_id")
        if not isinstance(start, int):
            raise UserError(
                f"{folder / 'config.json'}: no decoder_start_token_id, with which the answer starts"
            )
        limits = TokenLimits(query, document, Tokens(folder, None).limit or LIMIT)
        scorer = TrueFalseScorer(
            folder, self.name, limits, precision, self.device, outputs=2, start=start
        )
        return replace(scorer, true_token=self.true_token, false_token=self.false_token)

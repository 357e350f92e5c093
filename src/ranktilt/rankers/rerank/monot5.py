"""monoT5: an encoder-decoder that answers true or false (Nogueira et al., EMNLP Findings 2020)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ranktilt.errors import UserError
from ranktilt.models.checkpoint import load, read_json, require
from ranktilt.models.pairs import PairTemplate, TokenLimits
from ranktilt.models.scorer import Logits, PairScorer, Scores, in_float32, sigmoid
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.optional import need
from ranktilt.rankers.rerank.base import ReRanker

PARTS = ("Query:", "Document:", "Relevant:")
"""What stands before the query, between query and document, and behind the document."""
LIMIT = 512
_FAMILY = ("t5", "mt5", "umt5", "longt5")
_BLANK = "▁"
_PROBE = ("which apples", "Red apples, on old trees.")


@dataclass(frozen=True)
class TrueFalseScorer(PairScorer):
    """An encoder-decoder whose first answered token, true or false, is read."""

    true_token: str = field(default="true", kw_only=True)
    false_token: str = field(default="false", kw_only=True)
    start: int = field(default=0, kw_only=True)
    """Token with which the decoder starts."""

    @property
    def cache_key(self) -> tuple[object, ...]:
        """See `PairScorer.cache_key`; the answers too."""
        return *super().cache_key, self.true_token, self.false_token

    def relevance(self, logits: Logits) -> Scores:
        """Return the probability of true, of true and false alone, in float64; see `PairScorer.relevance`."""
        wide = logits.astype(np.float64)
        return sigmoid(wide[:, 0] - wide[:, 1])

    def special_token_count(self) -> int:
        """Return the tokens of the prompt; see `PairScorer.special_token_count`."""
        counts = Tokens(self.folder, None).counts(["", *PARTS], "counting tokens")
        return int((counts[1:] - counts[0]).sum() + counts[0])

    def template(self, tokenizer: Any) -> PairTemplate:
        """Return the prompt as tokens; see `PairScorer.template`."""
        backend = tokenizer.backend_tokenizer
        before, between, behind = (backend.encode(part, add_special_tokens=False).ids for part in PARTS)
        end = backend.encode("").ids
        template = PairTemplate(tuple(before), tuple(between), (*behind, *end))
        query, document = (backend.encode(text, add_special_tokens=False).ids for text in _PROBE)
        whole = backend.encode(f"Query: {_PROBE[0]} Document: {_PROBE[1]} Relevant:").ids
        if template.ids(np.array(query), np.array(document)).tolist() != whole:
            raise UserError(f"{self.folder}: its tokenizer does not divide text at blanks, as that of a T5 does")
        return template

    def load(self) -> Any:
        """Load the model, its last layer reduced to the two answers; see `PairScorer.load`."""
        torch = need("torch", extra="neural", for_=self.ranker)
        model = load(self.folder, "AutoModelForSeq2SeqLM", for_=self.ranker, ignore_mismatched_sizes=True)
        answers = [self._answer(name) for name in (self.true_token, self.false_token)]
        whole = model.get_output_embeddings()
        two = torch.nn.Linear(whole.in_features, 2, bias=whole.bias is not None)
        with torch.no_grad():
            two.weight.copy_(whole.weight[answers])
            if whole.bias is not None:
                two.bias.copy_(whole.bias[answers])
        model.lm_head = in_float32(two)
        return model

    def _answer(self, name: str) -> int:
        """Number of an answer: the token at the start of a word, or else the token of exactly this text."""
        backend = self._tokenizer.backend_tokenizer
        for token in (_BLANK + name, name):
            number = backend.token_to_id(token)
            if number is not None:
                return int(number)
        raise UserError(f"{self.folder}: its vocabulary has no token {_BLANK + name!r}; set true_token and false_token")

    def call(self, model: Any, features: dict[str, Any]) -> Any:
        """Return the logits of both answers; see `PairScorer.call`."""
        first = features["input_ids"].new_full((len(features["input_ids"]), 1), self.start)
        return model(**features, decoder_input_ids=first, use_cache=False).logits[:, 0, :]


@dataclass(frozen=True)
class MonoT5(ReRanker):
    """Ranks by the probability of "true" after "Query: … Document: … Relevant:"; see `ReRanker` for its options.

    The document is cut so that the whole prompt stays, and the query where it alone takes more than half of the room.
    `true_token` and `false_token` are the answers, for a model that was trained on others.
    """

    name: ClassVar[str] = "monot5"

    true_token: str = field(default="true", kw_only=True)
    false_token: str = field(default="false", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("true_token", "false_token"):
            if not getattr(self, option).strip(_BLANK):
                raise UserError(f"monot5: expected a word as {option}, got {getattr(self, option)!r}")
        if self.true_token == self.false_token:
            raise UserError(f"monot5: expected two different answers, got {self.true_token!r} twice")

    def scorer_of(self, folder: Path, query: int | None, document: int | None, precision: str) -> PairScorer:
        """Read the model's configuration; see `ReRanker.scorer_of`."""
        config = require(folder, ranker=self.name)
        kinds = config.get("architectures") or []
        if config.get("model_type") not in _FAMILY or not all(str(k).endswith("ConditionalGeneration") for k in kinds):
            got = kinds[0] if kinds else repr(config.get("model_type"))
            raise UserError(
                f"{folder}: expected a T5ForConditionalGeneration, or one of its family, for monot5, got {got}"
            )
        start = config.get("decoder_start_token_id")
        if not isinstance(start, int):
            raise UserError(f"{folder / 'config.json'}: no decoder_start_token_id, with which the answer starts")
        limits = TokenLimits(query, document, _limit(folder))
        scorer = TrueFalseScorer(folder, self.name, limits, precision, self.device, outputs=2, start=start)
        return replace(scorer, true_token=self.true_token, false_token=self.false_token)


def _limit(folder: Path) -> int:
    """Tokens of a whole prompt: the tokenizer's own limit, else 512."""
    named = read_json(folder / "tokenizer_config.json", dict).get("model_max_length")
    return int(named) if isinstance(named, int | float) and 0 < named < NO_LIMIT else LIMIT

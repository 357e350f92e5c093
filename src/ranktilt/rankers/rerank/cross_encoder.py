"""Cross-encoders and monoBERT: a classifier with one or two labels reads query and document as one text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ranktilt.errors import UserError, counted
from ranktilt.models.checkpoint import load, read_json, require
from ranktilt.models.pairs import PairTemplate, TokenLimits, pair_template
from ranktilt.models.scorer import Logits, PairScorer, Scores, in_float32, sigmoid
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.optional import need
from ranktilt.rankers.rerank.base import ReRanker

_RELEVANT = ("relevant", "positive", "true", "yes", "1")
_ACTIVATIONS = ("Sigmoid", "Identity", "Tanh")
_LOW_POSITIONS = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "xmod", "longformer")
"""Architectures that count positions from behind the padding token's number."""


@dataclass(frozen=True)
class Head:
    """The last layer of a classifier with one or two labels."""

    labels: int
    relevant: int = 0
    """Which of two labels says relevant."""
    activation: str = "Sigmoid"
    """What is applied to the number of a single label; two labels always give a probability."""

    def relevance(self, logits: Logits) -> Scores:
        """Turn logits into scores, in float64: what float32 rounds to 1 is not tied."""
        wide = logits.astype(np.float64)
        if self.labels == 2:
            return sigmoid(wide[:, self.relevant] - wide[:, 1 - self.relevant])
        if self.activation == "Sigmoid":
            return sigmoid(wide[:, 0])
        return np.tanh(wide[:, 0]) if self.activation == "Tanh" else wide[:, 0]


@dataclass(frozen=True)
class Classifier(PairScorer):
    """A classifier of sequences with one or two labels."""

    head: Head = field(default=Head(1), kw_only=True)

    def relevance(self, logits: Logits) -> Scores:
        """Return the head's scores; see `PairScorer.relevance`."""
        return self.head.relevance(logits)

    @property
    def activation(self) -> str:
        """That of the head; see `PairScorer.activation`."""
        return "Sigmoid" if self.head.labels == 2 else self.head.activation

    def special_token_count(self) -> int:
        """Return how many special tokens a pair has; see `PairScorer.special_token_count`."""
        return Tokens(self.folder, None).special_tokens_of_pair

    def template(self, tokenizer: Any) -> PairTemplate:
        """Return the tokenizer's own template of a pair; see `PairScorer.template`."""
        found = pair_template(tokenizer.backend_tokenizer, typed="token_type_ids" in tokenizer.model_input_names)
        if found is None:
            raise UserError(f"{self.folder}: its tokenizer does not put a query, as a whole, before a document")
        return found

    def load(self) -> Any:
        """Load the classifier; see `PairScorer.load`."""
        torch = need("torch", extra="neural", for_=self.ranker)
        kind = "AutoModelForSequenceClassification"
        model = load(self.folder, kind, for_=self.ranker, ignore_mismatched_sizes=True)
        linear = [layer for layer in model.modules() if isinstance(layer, torch.nn.Linear)]
        for layer in [layer for layer in linear if layer.out_features == self.outputs][-1:]:
            in_float32(layer)
        return model

    def call(self, model: Any, features: dict[str, Any]) -> Any:
        """Return the logits of a batch; see `PairScorer.call`."""
        return model(**features).logits


@dataclass(frozen=True)
class CrossEncoder(ReRanker):
    """Ranks by a cross-encoder of sentence-transformers, or any classifier of transformers with one or two labels.

    One label: the activation that the model's configuration names, the logistic function by default. Two labels: the
    probability of the relevant one. See `ReRanker` for the options.
    """

    name: ClassVar[str] = "cross-encoder"

    def scorer_of(self, folder: Path, query: int | None, document: int | None, precision: str) -> PairScorer:
        """Read the model's configuration; see `ReRanker.scorer_of`."""
        config = require(folder, ranker=self.name)
        _require_one_module(folder)
        head = read_head(folder, config, self.name)
        limits = TokenLimits(query, document, pair_limit(folder, config))
        scorer = Classifier(folder, self.name, limits, precision, self.device, outputs=head.labels, head=head)
        return replace(scorer, prompt=_prompt(folder))


@dataclass(frozen=True)
class MonoBERT(ReRanker):
    """Ranks by the probability that a BERT with two labels gives to the relevant one (Nogueira et al., 2019).

    See `ReRanker` for the options.
    """

    name: ClassVar[str] = "monobert"

    def scorer_of(self, folder: Path, query: int | None, document: int | None, precision: str) -> PairScorer:
        """Read the model's configuration; see `ReRanker.scorer_of`."""
        config = require(folder, ranker=self.name)
        head = read_head(folder, config, self.name)
        if config.get("model_type") != "bert" or head.labels != 2:
            got = f"{config.get('model_type')!r} with {counted(head.labels, 'label', 'labels')}"
            raise UserError(
                f"{folder}: expected a BERT with 2 labels for monobert, got {got}; cross-encoder:{folder} takes it"
            )
        limits = TokenLimits(query, document, pair_limit(folder, config))
        return Classifier(folder, self.name, limits, precision, self.device, outputs=2, head=head)


def read_head(folder: Path, config: dict[str, Any], ranker: str) -> Head:
    """Read what a classifier's one or two labels mean from its configuration.

    Refuses what is no classifier, has more labels, or labels and an activation that say nothing of relevance.
    """
    kinds = config.get("architectures") or []
    if kinds and not any(str(kind).endswith("ForSequenceClassification") for kind in kinds):
        raise UserError(
            f"{folder}: a {kinds[0]} has no classification head, so {ranker} cannot score with it; train one from it "
            "(ranktilt train cross-encoder), or choose a model that was trained to re-rank"
        )
    names = config.get("id2label") or {}
    labels = len(names) or int(config.get("num_labels") or 2)
    if labels > 2:
        shown = ", ".join(map(str, names.values())) if names else f"{labels} of them"
        raise UserError(
            f"{folder}: wrong labels for {ranker}: expected 1 or 2, relevant or not, got {labels} ({shown})"
        )
    if labels == 2:
        return Head(2, relevant=_relevant(folder, names, ranker))
    return Head(1, activation=_activation(folder, config))


def _relevant(folder: Path, names: dict[str, Any], ranker: str) -> int:
    """Which of two labels says relevant: the second one where they have no names of their own."""
    labels = {str(name).casefold(): int(number) for number, name in names.items()}
    if not labels or set(labels) == {"label_0", "label_1"}:
        return 1
    found = [labels[name] for name in _RELEVANT if name in labels]
    if not found:
        raise UserError(
            f"{folder}: wrong labels for {ranker}: cannot tell which of {' and '.join(map(repr, labels))} says "
            "relevant; name one of them 'relevant' in config.json's id2label"
        )
    return found[0]


def _activation(folder: Path, config: dict[str, Any]) -> str:
    """The activation of a single label, from the three places where sentence-transformers has kept it."""
    nested = config.get("sentence_transformers")
    settings = (
        _saved(folder, "config_sentence_transformers.json").get("activation_fn"),
        nested.get("activation_fn") if isinstance(nested, dict) else None,
        config.get("sbert_ce_default_activation_function"),
    )
    named = next((str(one) for one in settings if one), "torch.nn.Sigmoid")
    name = named.rpartition(".")[2]
    if not named.startswith("torch.") or name not in _ACTIVATIONS:
        valid = ", ".join(f"torch.nn.{one}" for one in _ACTIVATIONS)
        raise UserError(f"{folder}: its activation {named!r} is not supported (valid: {valid})")
    return name


def pair_limit(folder: Path, config: dict[str, Any]) -> int:
    """Return how many tokens of a pair a classifier reads, special ones included, as sentence-transformers would.

    That is the limit which its sentence-transformers configuration names, or else the lower one of its tokenizer's and
    of its positions; `NO_LIMIT` where nothing says so.
    """
    saved = _saved(folder, "sentence_bert_config.json")
    options = saved.get("processor_kwargs") or saved.get("tokenizer_args") or {}
    named = options.get("model_max_length") or saved.get("max_seq_length")
    if isinstance(named, int) and named > 0:
        return named
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _LOW_POSITIONS:
        positions -= int(config.get("pad_token_id") or 1) + 1
    found = (read_json(folder / "tokenizer_config.json", dict).get("model_max_length"), positions)
    return min((int(one) for one in found if isinstance(one, int | float) and 0 < one < NO_LIMIT), default=NO_LIMIT)


def _require_one_module(folder: Path) -> None:
    """Refuse a folder of sentence-transformers whose score is made by further modules."""
    modules = read_json(folder / "modules.json", list)
    kinds = [str(one.get("type")).rpartition(".")[2] for one in modules if isinstance(one, dict)]
    if kinds and kinds != ["Transformer"]:
        found = " + ".join(kinds)
        raise UserError(
            f"{folder}: its modules are {found}; expected a cross-encoder: one Transformer with its own head"
        )


def _prompt(folder: Path) -> str:
    """What sentence-transformers would put before each query of its own accord."""
    saved = _saved(folder, "config_sentence_transformers.json")
    prompts, name = saved.get("prompts"), saved.get("default_prompt_name")
    return str(prompts.get(name) or "") if isinstance(prompts, dict) and name else ""


def _saved(folder: Path, name: str) -> dict[str, Any]:
    """What sentence-transformers saved beside a model, which it reads only where it saved the list of modules too."""
    return read_json(folder / name, dict) if (folder / "modules.json").is_file() else {}

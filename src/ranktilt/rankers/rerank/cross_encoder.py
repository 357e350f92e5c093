"""Cross-encoders and monoBERT: a classifier with one or two labels reads query and document as one text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ranktilt.errors import UserError, counted
from ranktilt.models.checkpoint import load_sentence_transformers, read_json, require
from ranktilt.models.device import BACKENDS
from ranktilt.models.scorer import (
    Logits,
    PairScorer,
    Scores,
    TokenLimits,
    fit_texts,
    in_float32,
    sigmoid,
)
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.optional import need
from ranktilt.rankers.base import require_backend
from ranktilt.rankers.rerank.base import ReRanker

_RELEVANT = ("relevant", "positive", "true", "yes", "1")
ACTIVATIONS = ("Sigmoid", "Identity", "Tanh")


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
    """A classifier of sequences with one or two labels, run by sentence-transformers."""

    head: Head = field(default=Head(1), kw_only=True)
    backend: str = field(default=BACKENDS[0], kw_only=True)

    @property
    def cache_key(self) -> tuple[object, ...]:
        return *super().cache_key, self.backend

    def relevance(self, logits: Logits) -> Scores:
        return self.head.relevance(logits)

    @property
    def activation(self) -> str:
        return "Sigmoid" if self.head.labels == 2 else self.head.activation

    def special_token_count(self) -> int:
        return self.token_counter(None).special_tokens_of_pair

    @cached_property
    def module(self) -> Any:
        torch = need("torch", extra="neural", for_=self.ranker)
        where = self.device, self.backend
        model = load_sentence_transformers(self.folder, "CrossEncoder", *where, for_=self.ranker)
        if self.limits.pair < NO_LIMIT:
            model.max_seq_length = self.limits.pair
        linear = [layer for layer in model.modules() if isinstance(layer, torch.nn.Linear)]
        for layer in [layer for layer in linear if layer.out_features == self.outputs][-1:]:
            in_float32(layer)
        return model

    def read(self, queries: list[str], documents: list[str]) -> Any:
        torch = need("torch", extra="neural", for_=self.ranker)
        sides = [queries, documents]
        if self.limits.query is not None or self.limits.document is not None:
            sides = fit_texts(self.module.tokenizer, sides, replace(self.limits, pair=NO_LIMIT), 0)
        options = {
            "batch_size": len(queries),
            "activation_fn": torch.nn.Identity(),
            "show_progress_bar": False,
        }
        return self.module.predict(list(zip(*sides, strict=True)), prompt=self.prompt, **options)


@dataclass(frozen=True)
class CrossEncoder(ReRanker):
    """Ranks by a cross-encoder of sentence-transformers, or any classifier of transformers with one or two labels.

    One label: the activation that the model's configuration names, the logistic function by
    default. Two labels: the probability of the relevant one.
    """

    name: ClassVar[str] = "cross-encoder"

    backend: str = field(default=BACKENDS[0], kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_backend(self)

    def scorer_of(
        self, folder: Path, query: int | None, document: int | None, precision: str
    ) -> PairScorer:
        config = require(folder, ranker=self.name)
        head = read_head(folder, config, self.name)
        limits = TokenLimits(query, document, Tokens(folder, None).limit or NO_LIMIT)
        scorer = Classifier(
            folder, self.name, limits, precision, self.device, head=head, backend=self.backend
        )
        return replace(scorer, outputs=head.labels, prompt=_prompt(folder))


@dataclass(frozen=True)
class MonoBERT(CrossEncoder):
    """Ranks by the probability that a BERT with two labels gives to the relevant one (Nogueira et al., 2019)."""

    name: ClassVar[str] = "monobert"

    def scorer_of(
        self, folder: Path, query: int | None, document: int | None, precision: str
    ) -> PairScorer:
        config = require(folder, ranker=self.name)
        labels = read_head(folder, config, self.name).labels
        if config.get("model_type") != "bert" or labels != 2:
            got = f"{config.get('model_type')!r} with {counted(labels, 'label', 'labels')}"
            raise UserError(
                f"{folder}: expected a BERT with 2 labels for monobert, got {got}; cross-encoder:{folder} takes it"
            )
        return super().scorer_of(folder, query, document, precision)


def read_head(folder: Path, config: dict[str, Any], ranker: str) -> Head:
    """Read what a classifier's one or two labels mean from its configuration.

    Refuses what is no classifier, has more labels, or labels and an activation that say nothing of
    relevance.
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
        return Head(2, relevant=relevant_label(folder, names, ranker))
    return Head(1, activation=_activation(folder, config))


def relevant_label(folder: Path, names: dict[str, Any], ranker: str) -> int:
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
    if not named.startswith("torch.") or name not in ACTIVATIONS:
        valid = ", ".join(f"torch.nn.{one}" for one in ACTIVATIONS)
        raise UserError(f"{folder}: its activation {named!r} is not supported (valid: {valid})")
    return name


def _prompt(folder: Path) -> str:
    """What sentence-transformers would put before each query of its own accord."""
    saved = _saved(folder, "config_sentence_transformers.json")
    prompts, name = saved.get("prompts"), saved.get("default_prompt_name")
    return str(prompts.get(name) or "") if isinstance(prompts, dict) and name else ""


def _saved(folder: Path, name: str) -> dict[str, Any]:
    """What sentence-transformers saved beside a model, which it reads only where it saved the list of modules too."""
    return read_json(folder / name, dict) if (folder / "modules.json").is_file() else {}

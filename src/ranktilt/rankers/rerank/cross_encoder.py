"""Cross-encoders and monoBERT: classifiers that read query and document as one text.

The last layer of a classifier, its *head*, has an output for each *label* (a *logit*). With one
label, an *activation* such as the logistic function makes the logit a score. With two, one of them
means relevant, and the score is its probability. Models state both in different places of their
configuration, so most of this file finds out which they have.
"""

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

_RELEVANT_NAMES = ("relevant", "positive", "true", "yes", "1")
"""Names of a label that means relevant; if a model has two of them, the first one here counts."""
ACTIVATIONS = ("Sigmoid", "Identity", "Tanh")
"""Names of the functions of torch that turn a logit, a model's raw output, into a score."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """The last layer of a classifier with one or two labels."""

    labels: int
    """Number of labels, 1 or 2."""
    relevant: int = 0
    """Position of the label that means relevant, if there are two."""
    activation: str = "Sigmoid"
    """Function that is applied to the logit of a single label; not used for two labels."""

    def relevance(self, logits: Logits) -> Scores:
        """Turn logits into scores, in float64: float32 would round large ones to 1 and tie them."""
        wide = logits.astype(np.float64)
        if self.labels == 2:
            # The softmax of two logits is the logistic function of their difference.
            return sigmoid(wide[:, self.relevant] - wide[:, 1 - self.relevant])
        if self.activation == "Sigmoid":
            return sigmoid(wide[:, 0])
        return np.tanh(wide[:, 0]) if self.activation == "Tanh" else wide[:, 0]


@dataclass(frozen=True, kw_only=True)
class Classifier(PairScorer):
    """A classifier of sequences with one or two labels, run by sentence-transformers."""

    head: Head = Head(labels=1)
    """Last layer of the model."""
    backend: str = BACKENDS[0]
    """Library that runs the model."""

    @property
    def cache_key(self) -> tuple[object, ...]:
        """Options on which the logits depend; libraries round differently, so they count too."""
        return *super().cache_key, self.backend

    def relevance(self, logits: Logits) -> Scores:
        """Turn logits into scores, by the model's head."""
        return self.head.relevance(logits)

    @property
    def activation(self) -> str:
        """Function of the logits; for two labels the logistic function of their difference."""
        return "Sigmoid" if self.head.labels == 2 else self.head.activation

    def special_token_count(self) -> int:
        """Return how many tokens the tokenizer puts around a pair."""
        return self.token_counter(None).special_tokens_of_pair

    @cached_property
    def module(self) -> Any:
        """The loaded classifier. Its last layer, with an output for each label, is in float32."""
        torch = need("torch", extra="neural", for_=self.ranker)
        model = load_sentence_transformers(
            self.folder,
            "CrossEncoder",
            device=self.device,
            backend=self.backend,
            for_=self.ranker,
        )
        if self.limits.pair < NO_LIMIT:
            model.max_seq_length = self.limits.pair
        label_layers = [
            layer
            for layer in model.modules()
            if isinstance(layer, torch.nn.Linear) and layer.out_features == self.outputs
        ]
        if label_layers:
            in_float32(label_layers[-1])
        return model

    def read(self, queries: list[str], documents: list[str]) -> Any:
        """Return the classifier's logits for some pairs, before any activation."""
        torch = need("torch", extra="neural", for_=self.ranker)
        if self.limits.query is not None or self.limits.document is not None:
            # The library itself cuts pairs to the model's limit for both together.
            side_limits = replace(self.limits, pair=NO_LIMIT)
            queries, documents = fit_texts(
                self.module.tokenizer, (queries, documents), side_limits, special_token_count=0
            )
        return self.module.predict(
            list(zip(queries, documents, strict=True)),
            prompt=self.prompt,
            batch_size=len(queries),
            activation_fn=torch.nn.Identity(),
            show_progress_bar=False,
        )


@dataclass(frozen=True)
class CrossEncoder(ReRanker):
    """Ranks by a cross-encoder, or any classifier of transformers with one or two labels.

    With one label, a score is the activation of its logit, by the function that the model's
    configuration names; by default that is the logistic function. With two labels, it is the
    probability of the label that means relevant.
    """

    name: ClassVar[str] = "cross-encoder"

    backend: str = field(default=BACKENDS[0], kw_only=True)
    """Library that runs the model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_backend(self)

    def scorer_of(
        self, folder: Path, query: int | None, document: int | None, precision: str
    ) -> PairScorer:
        """Return the scorer of a classifier with one or two labels, which is not loaded yet."""
        config = require(folder, ranker=self.name)
        head = read_head(folder, config, self.name)
        pair_limit = Tokens(folder=folder).limit or NO_LIMIT
        return Classifier(
            folder=folder,
            ranker=self.name,
            limits=TokenLimits(query=query, document=document, pair=pair_limit),
            precision=precision,
            device=self.device,
            outputs=head.labels,
            prompt=_prompt(folder),
            head=head,
            backend=self.backend,
        )


@dataclass(frozen=True)
class MonoBERT(CrossEncoder):
    """Ranks by the probability of relevance of a BERT with two labels (Nogueira et al., 2019)."""

    name: ClassVar[str] = "monobert"

    def scorer_of(
        self, folder: Path, query: int | None, document: int | None, precision: str
    ) -> PairScorer:
        """Return the scorer of a BERT with two labels, which is not loaded yet."""
        config = require(folder, ranker=self.name)
        labels = read_head(folder, config, self.name).labels
        if config.get("model_type") != "bert" or labels != 2:
            model = f"{config.get('model_type')!r} with {counted(labels, 'label', 'labels')}"
            raise UserError(
                f"{folder}: expected a BERT with 2 labels for monobert, got {model}; "
                f"cross-encoder:{folder} takes it"
            )
        return super().scorer_of(folder, query, document, precision)


def read_head(folder: Path, config: dict[str, Any], ranker: str) -> Head:
    """Read from a model's configuration what its one or two labels mean.

    Refuses a model that is no classifier or has more labels, two labels of which none means
    relevant, and an unknown activation. `ranker` is named in the errors.
    """
    kinds = config.get("architectures") or []
    if kinds and not any(str(kind).endswith("ForSequenceClassification") for kind in kinds):
        raise UserError(
            f"{folder}: a {kinds[0]} has no classification head, so {ranker} cannot score with it; "
            "train one from it (ranktilt train cross-encoder), or choose a model that was trained "
            "to re-rank"
        )
    names = config.get("id2label") or {}
    labels = len(names) or int(config.get("num_labels") or 2)
    if labels > 2:
        list_of_labels = ", ".join(map(str, names.values())) if names else f"{labels} of them"
        raise UserError(
            f"{folder}: wrong labels for {ranker}: expected 1 or 2, relevant or not, "
            f"got {labels} ({list_of_labels})"
        )
    if labels == 2:
        return Head(labels=2, relevant=relevant_label(folder, names, ranker))
    return Head(labels=1, activation=_activation(folder, config))


def relevant_label(folder: Path, names: dict[str, Any], ranker: str) -> int:
    """Return the position of the label that means relevant; the second one of default names.

    `names` has the name of each of two labels by its position, as ``id2label`` of a configuration.
    """
    positions = {str(name).casefold(): int(position) for position, name in names.items()}
    if not positions or set(positions) == {"label_0", "label_1"}:
        return 1
    for name in _RELEVANT_NAMES:
        if name in positions:
            return positions[name]
    raise UserError(
        f"{folder}: wrong labels for {ranker}: cannot tell which of "
        f"{' and '.join(map(repr, positions))} means relevant; name one of them 'relevant' in "
        "config.json's id2label"
    )


def _activation(folder: Path, config: dict[str, Any]) -> str:
    """Return the name of the activation of a model with a single label.

    Versions of sentence-transformers have saved it in three places. The place of the newest version
    is read first.
    """
    nested = config.get("sentence_transformers")
    settings = (
        _saved(folder, "config_sentence_transformers.json").get("activation_fn"),
        nested.get("activation_fn") if isinstance(nested, dict) else None,
        config.get("sbert_ce_default_activation_function"),
    )
    setting = next((str(setting) for setting in settings if setting), "torch.nn.Sigmoid")
    name = setting.rpartition(".")[2]
    if not setting.startswith("torch.") or name not in ACTIVATIONS:
        valid = ", ".join(f"torch.nn.{activation}" for activation in ACTIVATIONS)
        raise UserError(f"{folder}: its activation {setting!r} is not supported (valid: {valid})")
    return name


def _prompt(folder: Path) -> str:
    """Return the prompt that sentence-transformers puts before each query by default."""
    saved = _saved(folder, "config_sentence_transformers.json")
    prompts, name = saved.get("prompts"), saved.get("default_prompt_name")
    return str(prompts.get(name) or "") if isinstance(prompts, dict) and name else ""


def _saved(folder: Path, name: str) -> dict[str, Any]:
    """Read a JSON file of sentence-transformers; empty if the library would not read it."""
    # If there is no list of modules, the library treats the folder as a model of transformers.
    return read_json(folder / name, dict) if (folder / "modules.json").is_file() else {}

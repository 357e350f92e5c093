"""sentence-transformers: models in memory as rankers, with the scores of their folders.

Each ranker here is the one of a model's folder, `Dense`, `CrossEncoder` or `Sparse`, with the
object in place of what the folder would load.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ranktilt.adapters.base import ObjectRanker, object_spec
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.errors import UserError
from ranktilt.models.batching import RESULTS_VERSION
from ranktilt.models.encoder import Encoder
from ranktilt.models.loaded import LoadedTokens, model_hash, model_name
from ranktilt.models.scorer import PairScorer, TokenLimits
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.rankers.base import installed_versions
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.rerank.base import LIMITS
from ranktilt.rankers.rerank.cross_encoder import (
    ACTIVATIONS,
    Classifier,
    CrossEncoder,
    Head,
    relevant_label,
)
from ranktilt.rankers.sparse import Sparse, SparseEncoder
from ranktilt.spec import Stage

_PROBE = "What does this model make of a short text?"


@dataclass(frozen=True, kw_only=True)
class LoadedEncoder(Encoder):
    """An encoder in memory, as it is: its device, its precision and its limit of tokens."""

    loaded: Any = field(hash=False)

    @classmethod
    def from_model(cls, model: Any, **options: Any) -> Self:
        """Take a ``SentenceTransformer`` or a ``SparseEncoder``."""
        name = model_name(model)
        return cls(
            name=name,
            folder=Path(name),
            max_tokens=model.max_seq_length,
            # Autocast would be added to whatever precision the model is in.
            precision="float32",
            device=str(model.device),
            loaded=model,
            **options,
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the weights as they are now, and of what else the vectors depend on."""
        with self._inference():
            answer = self._encoded([_PROBE], "document")
        prefixes = self.prefix("query"), self.prefix("document")
        return model_hash(self.loaded, answer, RESULTS_VERSION, self.ranker, self.store, *prefixes)

    @cached_property
    def similarity(self) -> str:
        """``cosine`` or ``dot``, as the model says."""
        return str(self.loaded.similarity_fn_name)

    def token_counter(self, prompt: str) -> Tokens:
        return _tokens(self.loaded, self.max_tokens, prompt)

    @property
    def module(self) -> Any:
        return self.loaded

    @property
    def about(self) -> dict[str, Any]:
        return {**super().about, "folder": "in memory"}

    @property
    def _config(self) -> dict[str, Any]:
        return {"prompts": self.loaded.prompts}


@dataclass(frozen=True, kw_only=True)
class LoadedSparseEncoder(LoadedEncoder, SparseEncoder):
    """A sparse encoder in memory."""

    def check(self) -> None:
        pass


class LoadedModelRanker(ObjectRanker):
    """A ranker of a model in memory, which is named as the model names itself."""

    @classmethod
    def from_object(cls, value: Any, **options: Any) -> Self:
        cls.require_options(options)
        return cls(model_name(value), loaded=value, **options)  # type: ignore[call-arg]

    def stage(self) -> Stage:
        return _without_object(super().stage())


@dataclass(frozen=True)
class SentenceTransformerRanker(LoadedModelRanker, Dense):
    """Ranks by a ``SentenceTransformer`` in memory, as ``dense:FOLDER`` does with the saved model.

    The vectors are kept by a hash of the weights, which is taken again each time it ranks, so that
    a model in training is seen as it is.
    """

    name: ClassVar[str] = "SentenceTransformer"
    fixed: ClassVar[tuple[str, ...]] = (
        *("model", "loaded", "max_tokens", "precision", "device", "backend", "pooling"),
        *("base_url", "requests_per_minute"),
    )

    loaded: Any = field(kw_only=True, hash=False)

    @cached_property
    def encoder(self) -> LoadedEncoder:
        return LoadedEncoder.from_model(
            self.loaded,
            store=self.store,
            query_prefix=self.query_prefix,
            document_prefix=self.document_prefix,
        )

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        # A copy has no hash yet: training may have changed the weights since the last one.
        return Dense.rank(replace(self), collection, run)

    def provenance(self) -> dict[str, Any]:
        return _provenance(self.loaded, self.encoder)


@dataclass(frozen=True)
class SparseEncoderRanker(LoadedModelRanker, Sparse):
    """Ranks by a ``SparseEncoder`` in memory, as ``sparse:FOLDER`` does with the saved model."""

    name: ClassVar[str] = "SparseEncoder"
    fixed: ClassVar[tuple[str, ...]] = (
        *("model", "loaded", "max_tokens", "precision", "device", "backend"),
    )

    loaded: Any = field(kw_only=True, hash=False)

    @cached_property
    def encoder(self) -> LoadedSparseEncoder:
        return LoadedSparseEncoder.from_model(self.loaded, max_active_dims=self.max_active_dims)

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        return Sparse.rank(replace(self), collection, run)

    def provenance(self) -> dict[str, Any]:
        return _provenance(self.loaded, self.encoder)


@dataclass(frozen=True)
class LoadedClassifier(Classifier):
    """A cross-encoder in memory, as it is."""

    loaded: Any = field(kw_only=True, hash=False)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the weights as they are now, and of what else the logits depend on."""
        with self._inference():
            answer = np.asarray(self.read([_PROBE], [_PROBE]), dtype=np.float32)
        return model_hash(self.loaded, answer, *self.cache_key, self.prompt)

    def token_counter(self, max_tokens: int | None) -> Tokens:
        return _tokens(self.loaded, max_tokens)

    @property
    def module(self) -> Any:
        return self.loaded


@dataclass(frozen=True)
class CrossEncoderRanker(LoadedModelRanker, CrossEncoder):
    """Ranks by a ``CrossEncoder`` in memory, as ``cross-encoder:FOLDER`` does with the saved model.

    One label: the model's activation, in float64. Two labels: the probability of the relevant one.
    """

    name: ClassVar[str] = "CrossEncoder"
    fixed: ClassVar[tuple[str, ...]] = ("model", "loaded", "precision", "device", "backend")

    loaded: Any = field(kw_only=True, hash=False)

    def scorer(self) -> PairScorer:
        model, head = self.loaded, self._head()
        query, document = LIMITS[self.limits]
        limits = TokenLimits(
            query=self.max_query_tokens or query,
            document=self.max_document_tokens or document,
            pair=model.max_seq_length or NO_LIMIT,
        )
        return LoadedClassifier(
            folder=Path(self.model),
            ranker=self.name,
            limits=limits,
            precision="float32",
            device=str(model.device),
            outputs=head.labels,
            prompt=(model.prompts or {}).get(model.default_prompt_name) or "",
            model_name=self.model,
            head=head,
            loaded=model,
        )

    def _head(self) -> Head:
        """Return what the labels mean; refuse more than two, and activations of other uses."""
        labels = self.loaded.num_labels
        if labels == 2:
            names = self.loaded.config.id2label or {}
            return Head(labels=2, relevant=relevant_label(Path(self.model), names, self.name))
        if labels != 1:
            raise UserError(f"{self!r}: expected a model with 1 or 2 labels, got {labels}")
        activation = type(self.loaded.activation_fn).__name__
        if activation not in ACTIVATIONS:
            raise UserError(
                f"{self!r}: its activation {activation} is not supported "
                f"(valid: {', '.join(ACTIVATIONS)})"
            )
        return Head(labels=1, activation=activation)

    def provenance(self, scorer: PairScorer) -> dict[str, Any]:
        return _provenance(self.loaded, scorer)


def _tokens(model: Any, max_tokens: int | None, prompt: str = "") -> Tokens:
    # A folder of its own keeps the model's name in messages and in the list of the cache.
    return LoadedTokens(
        Path(model_name(model)),
        max_tokens=max_tokens,
        prompt=prompt,
        tokenizer=model.tokenizer,
    )


def _provenance(model: Any, computing: Encoder | PairScorer) -> dict[str, Any]:
    """Return what a run's spec says of a model: class, name, hash, precision and versions."""
    spec = object_spec(model)
    versions = installed_versions("torch", "transformers", "sentence-transformers")
    return {
        **spec,
        "model": {"name": model_name(model), "fingerprint": computing.fingerprint},
        "precision": str(model.dtype).removeprefix("torch."),
        "packages": {**spec.get("packages", {}), **versions},
    }


def _without_object(stage: Stage) -> Stage:
    """Return what a ranker prints as: the object is no option that one could type."""
    return replace(stage, options={k: v for k, v in stage.options.items() if k != "loaded"})

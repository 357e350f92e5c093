"""sentence-transformers: encoders in memory as rankers.

Each ranker is the ranker of a model's folder, `Dense` or `Sparse`, but with the object instead of a
model that is loaded from the folder, so the scores are the same. `cross_encoder` has the ranker of
a `CrossEncoder`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from ranktilt.adapters.base import ObjectRanker, object_spec
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.models.batching import RESULTS_VERSION
from ranktilt.models.encoder import Encoder
from ranktilt.models.loaded import LoadedTokens, model_hash, model_name
from ranktilt.models.token_counts import Tokens
from ranktilt.rankers.base import installed_versions
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.sparse import Sparse, SparseEncoder
from ranktilt.spec import Stage

PROBE = "What does this model make of a short text?"
"""Text whose vector or logit is part of a model's hash, in addition to the weights.

Two models with the same weights may still differ, for example in their prompts or pooling.
"""


@dataclass(frozen=True, kw_only=True)
class LoadedEncoder(Encoder):
    """An encoder in memory, with the device, precision and limit of tokens that it has."""

    loaded: Any = field(hash=False)
    """The model."""

    @classmethod
    def from_model(cls, model: Any, **options: Any) -> Self:
        """Return the encoder of a ``SentenceTransformer`` or a ``SparseEncoder``."""
        name = model_name(model)
        return cls(
            name=name,
            folder=Path(name),
            max_tokens=model.max_seq_length,
            # No autocast: the model computes in the precision that it has.
            precision="float32",
            device=str(model.device),
            loaded=model,
            **options,
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the present weights, and of everything else that the vectors depend on."""
        with self._inference():
            output = self._encoded([PROBE], "document")
        prefixes = self.prefix("query"), self.prefix("document")
        return model_hash(self.loaded, output, RESULTS_VERSION, self.ranker, self.store, *prefixes)

    @cached_property
    def similarity(self) -> str:
        """Similarity of the model: ``cosine`` or ``dot``."""
        return str(self.loaded.similarity_fn_name)

    def token_counter(self, prompt: str) -> Tokens:
        """Return the model's tokenizer, with the prefix that the model puts before each text."""
        return loaded_tokens(self.loaded, self.max_tokens, prompt)

    @property
    def module(self) -> Any:
        """The model as it is."""
        return self.loaded

    @property
    def about(self) -> dict[str, Any]:
        """Description of the vectors for the cache."""
        return {**super().about, "folder": "in memory"}

    @property
    def _config(self) -> dict[str, Any]:
        """Prompts of the model, as its configuration would have them."""
        return {"prompts": self.loaded.prompts}


@dataclass(frozen=True, kw_only=True)
class LoadedSparseEncoder(LoadedEncoder, SparseEncoder):
    """A sparse encoder in memory."""

    def check(self) -> None:
        """Accept the model: its class says that it is a sparse encoder."""


class LoadedModelRanker(ObjectRanker):
    """A ranker of a model in memory, which is called by the name under which it was loaded."""

    @classmethod
    def from_object(cls, value: Any, **options: Any) -> Self:
        """Return the ranker of a model in memory."""
        cls.require_options(options)
        return cls(model_name(value), loaded=value, **options)  # type: ignore[call-arg]

    def stage(self) -> Stage:
        """Return the ranker as it is typed, without the object."""
        return _without_object(super().stage())


@dataclass(frozen=True)
class SentenceTransformerRanker(LoadedModelRanker, Dense):
    """Ranks by a ``SentenceTransformer`` in memory, as ``dense:FOLDER`` does with the saved model.

    Vectors are cached by a hash of the weights. The hash is computed anew for each ranking, because
    training may have changed the weights.
    """

    name: ClassVar[str] = "SentenceTransformer"
    fixed: ClassVar[tuple[str, ...]] = (
        *("model", "loaded", "max_tokens", "precision", "device", "backend", "pooling"),
        *("base_url", "requests_per_minute"),
    )
    """Options that the object decides."""

    loaded: Any = field(kw_only=True, hash=False)
    """The model."""

    @cached_property
    def encoder(self) -> LoadedEncoder:
        """The model, with the ranker's options."""
        return LoadedEncoder.from_model(
            self.loaded,
            store=self.store,
            query_prefix=self.query_prefix,
            document_prefix=self.document_prefix,
        )

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Rank with the model as it is now."""
        # A copy has no cached encoder, whose hash may be of weights that training has changed
        # since.
        return Dense.rank(replace(self), collection, run)

    def provenance(self) -> dict[str, Any]:
        """Return name and hash of the model, for the run."""
        return provenance_of(self.loaded, self.encoder.fingerprint)


@dataclass(frozen=True)
class SparseEncoderRanker(LoadedModelRanker, Sparse):
    """Ranks by a ``SparseEncoder`` in memory, as ``sparse:FOLDER`` does with the saved model."""

    name: ClassVar[str] = "SparseEncoder"
    fixed: ClassVar[tuple[str, ...]] = (
        *("model", "loaded", "max_tokens", "precision", "device", "backend"),
    )
    """Options that the object decides."""

    loaded: Any = field(kw_only=True, hash=False)
    """The model."""

    @cached_property
    def encoder(self) -> LoadedSparseEncoder:
        """The model, with the ranker's options."""
        return LoadedSparseEncoder.from_model(self.loaded, max_active_dims=self.max_active_dims)

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Rank with the model as it is now."""
        # A copy, for the reason that `SentenceTransformerRanker.rank` gives.
        return Sparse.rank(replace(self), collection, run)

    def provenance(self) -> dict[str, Any]:
        """Return name and hash of the model, for the run."""
        return provenance_of(self.loaded, self.encoder.fingerprint)


def loaded_tokens(model: Any, max_tokens: int | None, prompt: str = "") -> Tokens:
    """Return the token counter of a model in memory, with a prompt before each text."""
    # There is no folder; its name is printed in messages and in the list of the cache.
    return LoadedTokens(
        folder=Path(model_name(model)),
        max_tokens=max_tokens,
        prompt=prompt,
        tokenizer=model.tokenizer,
    )


def provenance_of(model: Any, fingerprint: str) -> dict[str, Any]:
    """Describe a model for a run's spec: class, name, hash, precision and versions."""
    spec = object_spec(model)
    versions = installed_versions("torch", "transformers", "sentence-transformers")
    return {
        **spec,
        "model": {"name": model_name(model), "fingerprint": fingerprint},
        "precision": str(model.dtype).removeprefix("torch."),
        "packages": {**spec.get("packages", {}), **versions},
    }


def _without_object(stage: Stage) -> Stage:
    """Return a stage without the option for the object, which nobody can type."""
    options = {name: value for name, value in stage.options.items() if name != "loaded"}
    return replace(stage, options=options)

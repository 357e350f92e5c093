"""sentence-transformers: a `CrossEncoder` in memory as a ranker.

A cross-encoder is a classifier that reads a query and a document together. Its last layer, the
*head*, has one or two outputs (*labels*), which `Head` makes a score. The scores here are the same
as those of ``cross-encoder:FOLDER`` for the saved model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ranktilt.adapters.sentence_transformers import (
    PROBE,
    LoadedModelRanker,
    loaded_tokens,
    provenance_of,
)
from ranktilt.errors import UserError
from ranktilt.models.loaded import model_hash
from ranktilt.models.scorer import PairScorer, TokenLimits
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.rankers.rerank.base import LIMITS
from ranktilt.rankers.rerank.cross_encoder import (
    ACTIVATIONS,
    Classifier,
    CrossEncoder,
    Head,
    relevant_label,
)


@dataclass(frozen=True, kw_only=True)
class LoadedClassifier(Classifier):
    """A cross-encoder in memory, with its present weights, device and precision."""

    loaded: Any = field(kw_only=True, hash=False)
    """The model."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the present weights, and of everything else that the logits depend on."""
        with self._inference():
            output = np.asarray(self.read([PROBE], [PROBE]), dtype=np.float32)
        return model_hash(self.loaded, output, *self.cache_key, self.prompt)

    def token_counter(self, max_tokens: int | None) -> Tokens:
        """Return the model's tokenizer, with a limit of tokens."""
        return loaded_tokens(self.loaded, max_tokens)

    @property
    def module(self) -> Any:
        """The model as it is."""
        return self.loaded


@dataclass(frozen=True)
class CrossEncoderRanker(LoadedModelRanker, CrossEncoder):
    """Ranks by a ``CrossEncoder`` in memory, as ``cross-encoder:FOLDER`` does with the saved model.

    If the model has one label, a score is the model's activation, in float64; if it has two, the
    probability of the label that means relevant.
    """

    name: ClassVar[str] = "CrossEncoder"
    fixed: ClassVar[tuple[str, ...]] = ("model", "loaded", "precision", "device", "backend")
    """Fields that a user cannot set as options, because the model decides them."""

    loaded: Any = field(kw_only=True, hash=False)
    """The model."""

    def scorer(self) -> PairScorer:
        """Return the object that scores pairs with the model, with its limits of tokens."""
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
        """Return how the model's outputs become a score.

        Raises
        ------
        UserError
            If the model has more than two labels, or an activation that is not in `ACTIVATIONS`.
        """
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
        """Return name and hash of the model, for the run."""
        return provenance_of(self.loaded, scorer.fingerprint)

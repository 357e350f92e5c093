"""What scores pairs of query and document: a model in a folder, its tokenizer, and its answers kept by content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError
from ranktilt.executing.executor import Portable
from ranktilt.executing.memory_limits import vector_folder
from ranktilt.io.cache import VectorCache
from ranktilt.models import batching, checkpoint
from ranktilt.models.batching import BatchJob, BatchShapes
from ranktilt.models.device import inference
from ranktilt.models.pairs import Ints, PairInputs, PairTemplate, TextPairs, TokenLimits
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.optional import need

Logits = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PairScorer(Portable, ABC):
    """A model in a local folder that says of a query and a document how relevant the one is to the other."""

    folder: Path
    ranker: str
    """Name of the ranker that it serves."""
    limits: TokenLimits
    precision: str
    """Of the forward pass; the last layer always computes in float32, for what bfloat16 rounds would be tied."""
    device: str | None
    outputs: int = field(default=1, kw_only=True)
    """Numbers that the model gives a pair."""
    prompt: str = field(default="", kw_only=True)
    """What stands before each query."""
    model_name: str = field(default="", kw_only=True)
    """The model as the user named it, by which the cache lists it."""

    @property
    def cache_key(self) -> tuple[object, ...]:
        """What else, beside the model's files and the texts, decides what the model gives."""
        limits = self.limits.query, self.limits.document, self.limits.pair
        return batching.RESULTS_VERSION, self.ranker, *limits, self.precision

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model's files and of `cache_key`."""
        return checkpoint.fingerprint(self.folder, *self.cache_key)

    @abstractmethod
    def relevance(self, logits: Logits) -> Scores:
        """Turn what the model gives, one row a pair, into scores: higher is more relevant."""

    @property
    def activation(self) -> str:
        """What `relevance` applies to the logits: ``Sigmoid``, ``Tanh`` or ``Identity``."""
        return "Sigmoid"

    @abstractmethod
    def special_token_count(self) -> int:
        """Return how many tokens the model puts around a pair, read without the library that computes."""

    @abstractmethod
    def template(self, tokenizer: Any) -> PairTemplate:
        """Return what the model puts around a pair; `tokenizer` is transformers' own."""

    @abstractmethod
    def load(self) -> Any:
        """Return the model as transformers loads it, its last layer made to compute in float32."""

    @abstractmethod
    def call(self, model: Any, features: dict[str, Any]) -> Any:
        """Return the model's logits of a batch of tensors, shape (n, outputs)."""

    @cached_property
    def tokens(self) -> Tokens:
        """The tokenizer as one document meets it: no more tokens of it are read than its limit says."""
        limit = self.limits.pair
        if self.limits.document is not None:
            special = int(Tokens(self.folder, None).counts([""], "counting tokens")[0])
            limit = min(limit, self.limits.document + special)
        return Tokens(self.folder, limit if limit < NO_LIMIT else None)

    def truncated(self, pairs: TextPairs, label: str) -> npt.NDArray[np.bool_]:
        """Say which pairs' documents are not read to their end."""
        texts = ["", *(self.prompt + text for text in pairs.queries), *pairs.documents]
        counts = self.tokens.counts(texts, label)
        counts = counts[1:] - counts[0]
        query, document = counts[: len(pairs.queries)][pairs.query], counts[len(pairs.queries) :][pairs.document]
        return np.asarray(self.limits.fit(query, document, self.special_token_count())[1] < document)

    def logits(self, pairs: TextPairs, label: str) -> Logits:
        """Return what the model gives for each pair, shape (n_pairs, outputs), finite; computed once, then cached."""
        cache = VectorCache(vector_folder() / "pairs" / self.fingerprint, about=self._about)
        found, stored = cache.get(pairs.keys)
        if not found.all():
            checkpoint.require_embeddings(self.folder)
            stored = batching.compute_missing(self._job(pairs), cache, label)
        return stored.read(0, len(pairs))

    @property
    def _about(self) -> dict[str, Any]:
        sizes = {"max_query_tokens": self.limits.query, "max_document_tokens": self.limits.document}
        options = {"precision": self.precision, "ranker": self.ranker, **sizes}
        model = self.model_name or str(self.folder)
        return {"model": model, "folder": str(self.folder.absolute()), "options": options}

    def _job(self, pairs: TextPairs) -> BatchJob:
        tokenizer = self._tokenizer
        if self.prompt:
            prompted = tuple(self.prompt + text for text in pairs.queries)
            pairs = TextPairs(prompted, pairs.documents, pairs.query, pairs.document, pairs.keys, pairs.entry)
        inputs = PairInputs.of(tokenizer.backend_tokenizer, pairs, self.template(tokenizer), self.limits)
        pad, left = int(tokenizer.pad_token_id), tokenizer.padding_side == "left"
        shapes = BatchShapes.on(self.device, self.limits.pair)
        padding = {"input_ids": pad, "token_type_ids": tokenizer.pad_token_type_id}

        return BatchJob(
            keys=pairs.keys,
            lengths=inputs.lengths,
            take=partial(inputs.batch, pad=pad, pad_type=tokenizer.pad_token_type_id, left=left),
            prepare=partial(batching.pad, shapes=shapes, padding=padding, left=left),
            forward=partial(batching.compute_parts, self._forward),
            context=self._inference,
            shapes=shapes,
        )

    @contextmanager
    def _inference(self) -> Iterator[None]:
        with inference(self._model.device, self.precision):
            yield

    @cached_property
    def _device(self) -> str:
        if self.device is not None:
            return self.device
        torch = need("torch", extra="neural", for_=self.ranker)
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"

    def _forward(self, features: dict[str, Ints]) -> Logits:
        torch = need("torch", extra="neural", for_=self.ranker)
        tensors = {name: torch.from_numpy(values).to(self._device) for name, values in features.items()}
        try:
            found = self.call(self._model, tensors).float().cpu().numpy()
        except (RuntimeError, IndexError) as error:
            size = features["input_ids"].shape[1]
            reason = checkpoint.first_line(error)
            raise UserError(f"{self.folder}: cannot score pairs of {size} tokens: {reason}") from error
        if found.shape != (len(features["input_ids"]), self.outputs):
            expected = f"{self.outputs} a pair"
            raise UserError(f"{self.folder}: expected {expected}, got scores of the shape {found.shape}")
        if not np.isfinite(found).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite scores")
        return np.ascontiguousarray(found, dtype=np.float32)

    @cached_property
    def _model(self) -> Any:
        where = f" on device {self.device!r}" if self.device else ""
        failure = f"{self.folder}: cannot be loaded as a model for {self.ranker}{where}"
        with checkpoint.loading(failure, for_=self.ranker):
            return self.load().to(self._device)

    @cached_property
    def _tokenizer(self) -> Any:
        with checkpoint.loading(f"{self.folder}: its tokenizer cannot be read", for_=self.ranker):
            found = checkpoint.load_tokenizer(self.folder, for_=self.ranker)
        if not getattr(found, "is_fast", False):
            raise UserError(f"{self.folder}: its tokenizer is of a kind that the tokenizers library cannot run")
        if found.pad_token_id is None:
            raise UserError(f"{self.folder}: its tokenizer has no padding token, so pairs cannot share a batch")
        found.backend_tokenizer.no_truncation()
        found.backend_tokenizer.no_padding()
        return found


def in_float32(layer: Any) -> Any:
    """Make a layer compute in float32 wherever it stands; returns the layer."""
    torch = need("torch", extra="neural", for_="a re-ranker")
    plain = layer.forward

    def forward(values: Any) -> Any:
        with torch.autocast(values.device.type, enabled=False):
            return plain(values.float())

    layer.forward = forward
    return layer


def sigmoid(values: npt.NDArray[np.floating[Any]]) -> Scores:
    """Logistic function in float64, of numbers of any size."""
    wide = np.asarray(values, dtype=np.float64)
    small = np.exp(-np.abs(wide))
    return np.asarray(np.where(wide >= 0, 1 / (1 + small), small / (1 + small)))

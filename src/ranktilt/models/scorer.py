"""What scores pairs of query and document: a model in a folder, its tokenizer, and its answers kept by content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.data.cache import Keys, VectorCache, cache_folder, content_keys
from ranktilt.errors import UserError, first_line
from ranktilt.models import batching, checkpoint
from ranktilt.models.batching import BatchJob, Ints, batch_tokens
from ranktilt.models.device import inference
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.optional import need
from ranktilt.parallel.executor import Portable

Logits = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TextPairs:
    """The distinct pairs of a query's and a document's text."""

    queries: tuple[str, ...]
    """Distinct texts."""
    documents: tuple[str, ...]
    query: Ints
    """Number of each pair's query."""
    document: Ints
    keys: Keys
    """Hashes of the pairs' texts."""
    entry: Ints
    """Pair of each of a run's entries."""

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def from_texts(
        cls, queries: Sequence[str], documents: Sequence[str], query: Ints, document: Ints
    ) -> TextPairs:
        """Find the distinct pairs of a run's entries, given by the place of each one's texts."""
        distinct_queries, of_query = _distinct(queries)
        distinct_documents, of_document = _distinct(documents)
        count = len(distinct_documents)
        codes, entry = np.unique(
            of_query[query] * count + of_document[document], return_inverse=True
        )
        sides = codes // max(count, 1), codes % max(count, 1)
        hashes = (
            content_keys(distinct_queries, prefix="query"),
            content_keys(distinct_documents, prefix="document"),
        )
        keys = _combined(*hashes, *sides)
        return cls(
            tuple(distinct_queries), tuple(distinct_documents), *sides, keys, entry.astype(np.int64)
        )


def _distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    number: dict[str, int] = {}
    row = np.fromiter(
        (number.setdefault(text, len(number)) for text in texts), dtype=np.int64, count=len(texts)
    )
    return list(number), row


def _combined(queries: Keys, documents: Keys, query: Ints, document: Ints) -> Keys:
    one, two = ([key.tobytes().hex() for key in side] for side in (queries, documents))
    return content_keys(
        (one[q] + two[d] for q, d in zip(query.tolist(), document.tolist(), strict=True))
    )


@dataclass(frozen=True)
class TokenLimits:
    """Tokens that stay of a query, of a document (special ones not counted; None for all), and of both with them."""

    query: int | None
    document: int | None
    pair: int

    def fit(self, query: Ints, document: Ints, special_token_count: int) -> tuple[Ints, Ints]:
        """Return how many tokens of each pair's sides stay: the longer side is cut first, as the libraries cut it."""
        query = query if self.query is None else np.minimum(query, self.query)
        document = document if self.document is None else np.minimum(document, self.document)
        room = max(self.pair - special_token_count, 0)
        query = np.minimum(query, np.maximum(room - document, (room + (query > document)) // 2))
        return query, np.minimum(document, room - query)


def fit_texts(
    tokenizer: Any, sides: Sequence[Sequence[str]], limits: TokenLimits, special_token_count: int
) -> Any:
    """Cut queries and documents of some pairs behind the tokens that stay; `tokenizer` is transformers' own."""
    options = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
    found = [tokenizer(list(texts), **options)["offset_mapping"] for texts in sides]
    query, document = (
        np.array([len(offsets) for offsets in side], dtype=np.int64) for side in found
    )
    fitted = limits.fit(query, document, special_token_count)
    return [
        [
            text if count == len(offsets) else text[: offsets[count - 1][1] if count else 0]
            for text, offsets, count in zip(texts, side, kept.tolist(), strict=True)
        ]
        for texts, side, kept in zip(sides, found, fitted, strict=True)
    ]


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

    @property
    @abstractmethod
    def module(self) -> Any:
        """The loaded model, its last layer made to compute in float32."""

    @abstractmethod
    def read(self, queries: list[str], documents: list[str]) -> Any:
        """Return what the model gives for some pairs, as an array or a tensor of shape (n, outputs) or (n,)."""

    @cached_property
    def tokens(self) -> Tokens:
        """The tokenizer as one document meets it: no more tokens of it are read than its limit says."""
        limit = self.limits.pair
        if self.limits.document is not None:
            special = int(self.token_counter(None).counts([""], "counting tokens")[0])
            limit = min(limit, self.limits.document + special)
        return self.token_counter(limit if limit < NO_LIMIT else None)

    def token_counter(self, max_tokens: int | None) -> Tokens:
        """Return the model's tokenizer, of which so many tokens are read."""
        return Tokens(self.folder, max_tokens)

    def truncated(self, pairs: TextPairs, label: str) -> npt.NDArray[np.bool_]:
        """Say which pairs' documents are not read to their end."""
        query, document = self._token_counts(pairs, label)
        return np.asarray(
            self.limits.fit(query, document, self.special_token_count())[1] < document
        )

    def _token_counts(self, pairs: TextPairs, label: str) -> tuple[Ints, Ints]:
        """How many tokens each pair's query and document have, special ones not counted."""
        texts = ["", *(self.prompt + text for text in pairs.queries), *pairs.documents]
        counts = self.token_counter(NO_LIMIT).lengths(texts, label)
        counts = counts[1:] - counts[0]
        return counts[: len(pairs.queries)][pairs.query], counts[len(pairs.queries) :][
            pairs.document
        ]

    def logits(self, pairs: TextPairs, label: str) -> Logits:
        """Return what the model gives for each pair, shape (n_pairs, outputs), finite; computed once, then cached."""
        cache = VectorCache(cache_folder() / "pairs" / self.fingerprint, about=self._about)
        found, stored = cache.get(pairs.keys)
        if not found.all():
            stored = batching.compute_missing(self._job(pairs, label), cache, label)
        return stored.read(0, len(pairs))

    @property
    def _about(self) -> dict[str, Any]:
        sizes = {"max_query_tokens": self.limits.query, "max_document_tokens": self.limits.document}
        options = {"precision": self.precision, "ranker": self.ranker, **sizes}
        model = self.model_name or str(self.folder)
        return {"model": model, "folder": str(self.folder.absolute()), "options": options}

    def _job(self, pairs: TextPairs, label: str) -> BatchJob:
        query, document = self.limits.fit(*self._token_counts(pairs, label), 0)

        def take(positions: Ints) -> tuple[list[str], list[str]]:
            queries, documents = pairs.query[positions].tolist(), pairs.document[positions].tolist()
            return [pairs.queries[i] for i in queries], [pairs.documents[i] for i in documents]

        return BatchJob(
            pairs.keys,
            query + document,
            self._scored,
            take,
            self._inference,
            batch_tokens(self.device),
        )

    @contextmanager
    def _inference(self) -> Iterator[None]:
        with inference(self.module.device, self.precision):
            yield

    def _scored(self, texts: tuple[list[str], list[str]]) -> Logits:
        try:
            found = np.asarray(self.read(*texts), dtype=np.float32).reshape(len(texts[0]), -1)
        except (RuntimeError, IndexError, ValueError) as error:
            raise UserError(f"{self.folder}: cannot score pairs: {first_line(error)}") from error
        if found.shape[1] != self.outputs:
            expected = f"{self.outputs} a pair"
            raise UserError(
                f"{self.folder}: expected {expected}, got scores of the shape {found.shape}"
            )
        if not np.isfinite(found).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite scores")
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

"""Score pairs of query and document by a model in a folder; scores are cached by content.

An *entry* is one document of one query of a run. Many entries have equal texts; a *pair* is a
distinct pair of texts, which is scored once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
"""Raw outputs of a model, before they are made scores: one row for each pair."""
Scores = npt.NDArray[np.float64]
"""One score per pair."""


@dataclass(frozen=True, kw_only=True)
class TextPairs:
    """The distinct pairs of a query's and a document's text."""

    queries: tuple[str, ...]
    """Distinct texts of queries."""
    documents: tuple[str, ...]
    """Distinct texts of documents."""
    query: Ints
    """Index of each pair's query in `queries`."""
    document: Ints
    """Index of each pair's document in `documents`."""
    keys: Keys
    """Hash of each pair's texts."""
    pair_of_entry: Ints
    """Index of the pair of each entry of a run."""

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def from_texts(
        cls, queries: Sequence[str], documents: Sequence[str], query: Ints, document: Ints
    ) -> TextPairs:
        """Return the distinct pairs of a run's entries.

        `query` and `document` are the indexes of each entry's texts in `queries` and `documents`.
        """
        distinct_queries, query_number = _distinct(queries)
        distinct_documents, document_number = _distinct(documents)
        # A pair's code is one number, so that NumPy can sort it.
        base = max(len(distinct_documents), 1)
        codes, pair_of_entry = np.unique(
            query_number[query] * base + document_number[document], return_inverse=True
        )
        pair_query, pair_document = np.divmod(codes, base)
        return cls(
            queries=tuple(distinct_queries),
            documents=tuple(distinct_documents),
            query=pair_query,
            document=pair_document,
            keys=_pair_keys(distinct_queries, distinct_documents, pair_query, pair_document),
            pair_of_entry=pair_of_entry.astype(np.int64),
        )


def _distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the distinct texts in their order, and the index of each text among them."""
    positions: dict[str, int] = {}
    rows = np.fromiter(
        (positions.setdefault(text, len(positions)) for text in texts),
        dtype=np.int64,
        count=len(texts),
    )
    return list(positions), rows


def _pair_keys(
    queries: Sequence[str], documents: Sequence[str], query: Ints, document: Ints
) -> Keys:
    """Hash each pair by the hashes of its two texts, so that each text is hashed only once."""
    query_hashes = [key.tobytes().hex() for key in content_keys(queries, prefix="query")]
    document_hashes = [key.tobytes().hex() for key in content_keys(documents, prefix="document")]
    return content_keys(
        query_hashes[query_index] + document_hashes[document_index]
        for query_index, document_index in zip(query.tolist(), document.tolist(), strict=True)
    )


@dataclass(frozen=True, kw_only=True)
class TokenLimits:
    """Most tokens that a model reads of a pair; further ones are cut off."""

    query: int | None = None
    """Tokens of a query, without special ones; None for all."""
    document: int | None = None
    """Tokens of a document, without special ones; None for all."""
    pair: int
    """Tokens of both together, with special ones."""

    def fit(self, query: Ints, document: Ints, special_token_count: int) -> tuple[Ints, Ints]:
        """Return how many tokens are read of each pair's query and document.

        `query` and `document` are the numbers of tokens that each has. If both together are longer
        than the pair's limit, they are cut as the libraries cut them: the longer one loses tokens
        until it is as long as the other, then both lose tokens in turn.
        """
        query = query if self.query is None else np.minimum(query, self.query)
        document = document if self.document is None else np.minimum(document, self.document)
        room = max(self.pair - special_token_count, 0)
        # A query gets what the document leaves free, but at least half of the room. If the room is
        # odd, the longer text gets the last token.
        query = np.minimum(query, np.maximum(room - document, (room + (query > document)) // 2))
        return query, np.minimum(document, room - query)


def fit_texts(
    tokenizer: Any,
    texts: tuple[Sequence[str], Sequence[str]],
    limits: TokenLimits,
    special_token_count: int,
) -> tuple[list[str], list[str]]:
    """Cut the queries and documents of some pairs after the tokens that the model reads.

    Parameters
    ----------
    tokenizer : object
        A tokenizer of transformers.
    texts : (sequence of str, sequence of str)
        Queries and documents, pair by pair.
    limits : TokenLimits
        Most tokens of query, document and both.
    special_token_count : int
        Tokens of the pair's limit that the model takes for itself.
    """
    queries, documents = texts
    query_offsets = _token_offsets(tokenizer, queries)
    document_offsets = _token_offsets(tokenizer, documents)
    query_counts, document_counts = limits.fit(
        np.array([len(offsets) for offsets in query_offsets], dtype=np.int64),
        np.array([len(offsets) for offsets in document_offsets], dtype=np.int64),
        special_token_count,
    )
    return (
        list(map(_cut, queries, query_offsets, query_counts.tolist())),
        list(map(_cut, documents, document_offsets, document_counts.tolist())),
    )


def _token_offsets(tokenizer: Any, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
    """Return the positions in each text at which each token starts and ends."""
    encoding = tokenizer(
        list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    offsets: list[list[tuple[int, int]]] = encoding["offset_mapping"]
    return offsets


def _cut(text: str, offsets: list[tuple[int, int]], token_count: int) -> str:
    """Cut a text after `token_count` of its tokens, whose positions are `offsets`."""
    if token_count == len(offsets):
        return text
    if token_count == 0:
        return ""
    _start, end = offsets[token_count - 1]
    return text[:end]


@dataclass(frozen=True, kw_only=True)
class PairScorer(Portable, ABC):
    """A model in a local folder that scores how relevant a document is to a query."""

    folder: Path
    """Folder of the model."""
    ranker: str
    """Name of the ranker that uses the model."""
    limits: TokenLimits
    """Most tokens that it reads."""
    precision: str
    """Precision of the forward pass.

    The last layer always computes in float32: scores that bfloat16 rounds would be tied.
    """
    device: str | None
    """Device that it runs on; None takes a GPU if there is one."""
    outputs: int = 1
    """Number of outputs of the model for a pair."""
    prompt: str = ""
    """Text that the model puts before each query."""
    model_name: str = ""
    """Name of the model as the user typed it, for the list of the cache."""

    @property
    def cache_key(self) -> tuple[object, ...]:
        """Options on which the model's outputs depend."""
        limits = self.limits.query, self.limits.document, self.limits.pair
        return batching.RESULTS_VERSION, self.ranker, *limits, self.precision

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model's files and of `cache_key`."""
        return checkpoint.fingerprint(self.folder, *self.cache_key)

    @abstractmethod
    def relevance(self, logits: Logits) -> Scores:
        """Turn the model's outputs, a row for each pair, into scores: higher is more relevant."""

    @property
    def activation(self) -> str:
        """Function that `relevance` applies to the logits: ``Sigmoid``, ``Tanh``, ``Identity``."""
        return "Sigmoid"

    @abstractmethod
    def special_token_count(self) -> int:
        """Return how many tokens the model puts around a pair, without loading the model."""

    @property
    @abstractmethod
    def module(self) -> Any:
        """The loaded model, whose last layer computes in float32."""

    @abstractmethod
    def read(self, queries: list[str], documents: list[str]) -> Any:
        """Return the model's outputs for some pairs: an array of shape (n, outputs) or (n,)."""

    @cached_property
    def tokens(self) -> Tokens:
        """The tokenizer, limited to the tokens that the model reads of a document."""
        limit = self.limits.pair
        if self.limits.document is not None:
            special = int(self.token_counter(None).counts([""], "counting tokens")[0])
            limit = min(limit, self.limits.document + special)
        return self.token_counter(limit if limit < NO_LIMIT else None)

    def token_counter(self, max_tokens: int | None) -> Tokens:
        """Return the model's tokenizer with a limit of tokens."""
        return Tokens(folder=self.folder, max_tokens=max_tokens)

    def truncated(self, pairs: TextPairs, label: str) -> npt.NDArray[np.bool_]:
        """Tell for each pair whether the model does not read its document to the end."""
        query, document = self._token_counts(pairs, label)
        _, document_read = self.limits.fit(query, document, self.special_token_count())
        return np.asarray(document_read < document)

    def _token_counts(self, pairs: TextPairs, label: str) -> tuple[Ints, Ints]:
        """Count the tokens of each pair's query and document, without special ones."""
        # The empty text has only special tokens, whose number is subtracted from all others.
        texts = ["", *(self.prompt + text for text in pairs.queries), *pairs.documents]
        counts = self.token_counter(NO_LIMIT).lengths(texts, label)
        query_counts, document_counts = np.split(counts[1:] - counts[0], [len(pairs.queries)])
        return query_counts[pairs.query], document_counts[pairs.document]

    def logits(self, pairs: TextPairs, label: str) -> Logits:
        """Return the model's outputs for each pair, shape (n_pairs, outputs), all finite.

        Each pair is computed once, then cached.
        """
        cache = VectorCache(cache_folder() / "pairs" / self.fingerprint, about=self._about)
        is_cached, stored = cache.get(pairs.keys)
        if not is_cached.all():
            stored = batching.compute_missing(self._job(pairs, label), cache, label)
        return stored.read(0, len(pairs))

    @property
    def _about(self) -> dict[str, Any]:
        """Description of the scores for the cache."""
        options = {
            "precision": self.precision,
            "ranker": self.ranker,
            "max_query_tokens": self.limits.query,
            "max_document_tokens": self.limits.document,
        }
        model = self.model_name or str(self.folder)
        return {"model": model, "folder": str(self.folder.absolute()), "options": options}

    def _job(self, pairs: TextPairs, label: str) -> BatchJob:
        """Return the work of scoring some pairs, with the tokens of each."""
        query, document = self._token_counts(pairs, label)
        query_read, document_read = self.limits.fit(query, document, special_token_count=0)

        def take(positions: Ints) -> tuple[list[str], list[str]]:
            queries = pairs.query[positions].tolist()
            documents = pairs.document[positions].tolist()
            return (
                [pairs.queries[query] for query in queries],
                [pairs.documents[document] for document in documents],
            )

        return BatchJob(
            keys=pairs.keys,
            lengths=query_read + document_read,
            compute=self._checked_outputs,
            take=take,
            context=self._inference,
            tokens=batch_tokens(self.device, self.precision),
        )

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Compute without gradients, in the chosen precision."""
        with inference(self.module.device, self.precision):
            yield

    def _checked_outputs(self, texts: tuple[list[str], list[str]]) -> Logits:
        """Return the model's outputs for some pairs; `UserError` if they are no finite scores."""
        queries, documents = texts
        try:
            outputs = self.read(queries, documents)
            scores = np.asarray(outputs, dtype=np.float32).reshape(len(queries), -1)
        except (RuntimeError, IndexError, ValueError) as error:
            raise UserError(f"{self.folder}: cannot score pairs: {first_line(error)}") from error
        if scores.shape[1] != self.outputs:
            raise UserError(
                f"{self.folder}: expected {self.outputs} per pair, got scores of shape "
                f"{scores.shape}"
            )
        if not np.isfinite(scores).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite scores")
        return scores


def in_float32(layer: Any) -> Any:
    """Change a layer to compute in float32, even under torch's autocast, and return it."""
    torch = need("torch", extra="neural", for_="a re-ranker")
    original = layer.forward

    def forward(values: Any) -> Any:
        with torch.autocast(values.device.type, enabled=False):
            return original(values.float())

    layer.forward = forward
    return layer


def sigmoid(values: npt.NDArray[np.floating[Any]]) -> Scores:
    """Apply the logistic function in float64, without overflow for numbers of any size."""
    wide = np.asarray(values, dtype=np.float64)
    decay = np.exp(-np.abs(wide))  # at most 1, for negative and for positive numbers
    return np.asarray(np.where(wide >= 0, 1 / (1 + decay), decay / (1 + decay)))

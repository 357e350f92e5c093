"""Dense retrieval: exact search over the vectors of a sentence encoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown
from ranktilt.rankers.base import FirstStage, Rows, Scores
from ranktilt.rankers.chunks import cells
from ranktilt.rankers.encoder import PRECISIONS, Encoder, Vectors, encoder
from ranktilt.rankers.tokens import Tokens

SIMILARITIES = ("auto", "cosine", "dot")
_CELLS = 1 << 25


@dataclass(frozen=True)
class Dense(FirstStage):
    """Ranks by the similarity of a sentence encoder's vectors.

    Parameters
    ----------
    model : str
        A local sentence-transformers folder, ``minilm`` (all-MiniLM-L6-v2), or a hub name. Custom code in a
        model is never run.
    similarity : {"auto", "cosine", "dot"}, optional
        ``auto`` takes the model's own.
    max_tokens : int, optional
        Tokens after which a text is cut; the model's own limit by default.
    precision : {"auto", "float32", "bfloat16"}, optional
        Of the forward pass; ``auto`` is bfloat16 where the processor has it.
    device : str, optional
        Torch's name of the device.
    """

    name: ClassVar[str] = "dense"
    argument: ClassVar[str | None] = "model"

    model: str
    similarity: str = field(default="auto", kw_only=True)
    max_tokens: int | None = field(default=None, kw_only=True)
    precision: str = field(default="auto", kw_only=True)
    device: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.similarity not in SIMILARITIES:
            raise unknown("similarity of dense", self.similarity, SIMILARITIES)
        if self.precision not in PRECISIONS:
            raise unknown("precision of dense", self.precision, PRECISIONS)
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UserError(f"dense: expected max_tokens of at least 1, got {self.max_tokens}")

    def provenance(self) -> dict[str, Any]:
        """Return the model's hash, the precision it computes in, and the versions of what computes."""
        model = self._encoder()
        packages = ("torch", "transformers", "sentence-transformers")
        return {
            "model": {"folder": str(model.folder), "fingerprint": model.fingerprint},
            "precision": model.precision,
            "packages": {name: version(name) for name in packages if find_spec(name.replace("-", "_"))},
        }

    def about(self, collection: Collection) -> dict[str, Any]:
        """Return the share of each source's documents that the model does not read to their end."""
        tokens = self.tokens()
        if tokens is None or tokens.limit is None:
            return {}
        counts = tokens.counts(collection.texts(self.text).to_list(), f"{self!r}: counting tokens")
        over = collection.docs.select("source", over=pl.Series(counts > tokens.limit))
        shares = over.group_by("source", maintain_order=True).agg(pl.col("over").mean())
        return {"truncated": {"limit": tokens.limit, "share": dict(shares.iter_rows())}}

    def tokens(self) -> Tokens | None:
        """Return the model's tokenizer; None where it has none that can be read without the model's own code."""
        tokens = self._encoder().tokens
        return tokens if tokens.readable else None

    def _encoder(self) -> Encoder:
        return encoder(self.model, max_tokens=self.max_tokens, precision=self.precision, device=self.device)

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        """Yield the best documents of each query by exact search; see `FirstStage.candidates`."""
        model = self._encoder()
        similarity = self._similarity(model)
        texts = collection.texts(self.text).to_list()
        documents, row = model.encode(texts, "document", f"{self!r}: encoding documents")
        queries, query = model.encode(collection.judged["text"].to_list(), "query", f"{self!r}: encoding queries")
        if similarity == "cosine":
            documents, queries = _unit(documents), _unit(queries)
        copies = _Copies.of(row, len(documents))
        for scores in _products(queries, documents, query):
            yield copies.best(scores, self.k + slack)

    def _similarity(self, model: Encoder) -> str:
        similarity = model.similarity if self.similarity == "auto" else self.similarity
        if similarity not in SIMILARITIES:
            message = f"{self!r}: the model asks for {similarity!r}, which is not supported; choose cosine or dot"
            raise UserError(message)
        return similarity


@dataclass(frozen=True)
class _Copies:
    """Documents that share a text share its vector and so, to the last bit, its score."""

    order: Rows
    start: Rows
    count: Rows

    @classmethod
    def of(cls, row: npt.NDArray[np.int64], n_texts: int) -> _Copies:
        count = np.bincount(row, minlength=n_texts)
        return cls(np.argsort(row, kind="stable"), np.cumsum(count) - count, count)

    def best(self, scores: npt.NDArray[np.float32], k: int) -> tuple[Rows, Scores]:
        """Rows and scores of the documents of the k best texts, and of all texts tied with the last."""
        texts = np.arange(len(scores))
        if len(scores) > k:
            texts = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
        count = self.count[texts]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        rows = self.order[np.repeat(self.start[texts], count) + within]
        return rows, np.repeat(scores[texts], count).astype(np.float64)


def _products(queries: Vectors, documents: Vectors, query: Rows) -> Iterator[npt.NDArray[np.float32]]:
    """Yield each query's scores over all distinct texts; memory is bounded by the block, not by the queries."""
    step = max(cells(_CELLS) // max(len(documents), 1), 1)
    for start in range(0, len(query), step):
        yield from queries[query[start : start + step]] @ documents.T


def _unit(vectors: Vectors) -> Vectors:
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(norm > 0, norm, 1)).astype(np.float32)

"""Vectors of an embedding model behind an OpenAI-compatible server."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.cache import Keys, StoredVectors, VectorCache
from ranktilt.errors import UserError
from ranktilt.llm.base import LLM, llm
from ranktilt.llm.prompts import cut_tokens
from ranktilt.models.encoder import Kind, TextEncoder
from ranktilt.progress import report
from ranktilt.rankers.base import Rows, installed_versions

PREFIX = "openai:"
"""Start of a model's name that says it is behind a server, and not on this machine."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingServer(TextEncoder):
    """An embedding model behind an OpenAI-compatible server; its vectors are cached by content.

    The server's tokens are not known here, so a text is cut after `max_tokens` as if every token
    had four bytes.
    """

    model: LLM
    """Client of the model."""
    store: str
    """Type of the cached numbers."""
    max_tokens: int | None
    """Tokens after which a text is cut; None for no limit."""
    query_prefix: str
    """Text before each query."""
    document_prefix: str
    """Text before each document."""

    similarity = "cosine"
    """How vectors are compared, where the user does not say."""

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        base_url: str | None,
        requests_per_minute: int | None,
        **options: Any,
    ) -> EmbeddingServer:
        """Return the server of ``openai:MODEL``, which is not asked yet; `options` are fields."""
        model = llm(text, base_url=base_url, requests_per_minute=requests_per_minute)
        return cls(model=model, **options)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the server's address, the model's name and the options of its vectors."""
        parts = (
            self.model.identity,
            self.store,
            str(self.max_tokens),
            self.query_prefix,
            self.document_prefix,
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    @property
    def about(self) -> dict[str, Any]:
        return {
            "model": f"{PREFIX}{self.model.name}",
            "options": {**self.model.spec, "store": self.store},
        }

    @property
    def provenance(self) -> dict[str, Any]:
        """Model, address and client, for a run's spec; never a key."""
        model = {**self.model.spec, "fingerprint": self.fingerprint}
        return {"model": model, "packages": installed_versions("openai")}

    def truncated(self, texts: pl.Series) -> npt.NDArray[np.bool_]:
        """Tell which texts are cut before they are sent."""
        return np.array(
            [cut_tokens(text, self.max_tokens) != text for text in texts], dtype=np.bool_
        )

    def encode(
        self, texts: Sequence[str] | pl.Series, kind: Kind, label: str
    ) -> tuple[StoredVectors, Rows]:
        """Encode texts, cut after `max_tokens`; see `TextEncoder.encode`."""
        return super().encode([cut_tokens(text, self.max_tokens) for text in texts], kind, label)

    def compute(
        self, texts: pl.Series, keys: Keys, *, kind: Kind, cache: VectorCache, label: str
    ) -> StoredVectors:
        """Ask the server for the vectors that the cache lacks.

        Each answer is cached when it comes, so that an interruption loses only answers that were
        under way. Vectors of another length than the cached ones are refused.
        """
        is_cached, stored = cache.get(keys)
        missing = np.flatnonzero(~is_cached)
        prefix = self.query_prefix if kind == "query" else self.document_prefix
        # A server refuses an empty text.
        prompts = [f"{prefix}{texts[position]}" or " " for position in missing.tolist()]
        done = len(keys) - len(missing)
        dimension = stored.shape[1]
        report(label, done, len(keys))
        for positions, vectors in self.model.embed(prompts):
            if dimension not in (0, vectors.shape[1]):
                raise UserError(
                    f"{PREFIX}{self.model.name} now gives vectors of {vectors.shape[1]} numbers, "
                    f"and {cache.folder} holds those of {dimension}: another model answers under "
                    "that name; remove the folder to go on"
                )
            dimension = vectors.shape[1]
            cache.put(keys[missing[positions]], vectors)
            done += len(positions)
            report(label, done, len(keys))
        _, stored = cache.get(keys)
        return stored

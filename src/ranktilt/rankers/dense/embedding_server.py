"""Vectors of an embedding server: each distinct text is sent once, and kept as those of a local model are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ranktilt.errors import UserError
from ranktilt.io.cache import Keys, Stored, VectorCache
from ranktilt.llm.base import LLM
from ranktilt.llm.prompts import cut_tokens
from ranktilt.models.batching import Ints
from ranktilt.models.encoder import Kind, TextEncoder
from ranktilt.progress import report
from ranktilt.rankers.base import installed_versions

PREFIX = "openai:"
"""What names a model of a server instead of one on this machine."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingServer(TextEncoder):
    """An embedding model behind an OpenAI-compatible server, with its vectors cached by content.

    A text is cut after `max_tokens`, at four bytes a token: the server's tokens are not known here.
    """

    model: LLM
    store: str
    max_tokens: int | None
    query_prefix: str
    document_prefix: str

    similarity = "cosine"

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the server's address, the model's name and of what else its vectors depend on."""
        parts = (self.model.identity, self.store, str(self.max_tokens), self.query_prefix, self.document_prefix)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    @property
    def about(self) -> dict[str, Any]:
        """Model and address; see `TextEncoder.about`."""
        return {"model": f"{PREFIX}{self.model.name}", "options": {**self.model.spec, "store": self.store}}

    @property
    def provenance(self) -> dict[str, Any]:
        """Model, address and client, for a run's spec; no key is in it."""
        model = {**self.model.spec, "fingerprint": self.fingerprint}
        return {"model": model, "packages": installed_versions("openai")}

    def cut(self, text: str) -> str:
        """Cut a text that is too long in UTF-8, behind a word where one ends in its last tenth."""
        return cut_tokens(text, self.max_tokens)

    def encode(self, texts: Sequence[str] | pl.Series, kind: Kind, label: str) -> tuple[Stored, Ints]:
        """Encode texts, cut to what may be sent; see `TextEncoder.encode`."""
        return super().encode([self.cut(text) for text in texts], kind, label)

    def compute(self, texts: pl.Series, keys: Keys, kind: Kind, cache: VectorCache, label: str) -> Stored:
        """Ask the server for what the cache lacks.

        Each answer is kept at once, so that an interruption pays for nothing twice but what was under way. Vectors of
        another length than those kept are refused.
        """
        found, stored = cache.get(keys)
        missing = np.flatnonzero(~found)
        prefix = self.query_prefix if kind == "query" else self.document_prefix
        done = len(keys) - len(missing)
        report(label, done, len(keys))
        for positions, vectors in self.model.embed([f"{prefix}{texts[i]}" or " " for i in missing.tolist()]):
            if stored.shape[1] not in (0, vectors.shape[1]):
                raise UserError(
                    f"{PREFIX}{self.model.name} now gives vectors of {vectors.shape[1]} numbers, and {cache.folder} "
                    f"holds those of {stored.shape[1]}: another model answers under that name; remove the folder to "
                    "go on"
                )
            cache.put(keys[missing[positions]], vectors)
            done += len(positions)
            report(label, done, len(keys))
        found, stored = cache.get(keys)
        if not found.all():
            raise UserError(
                f"{cache.folder}: {int((~found).sum()):,} vectors are gone again; is the cache being pruned?"
            )
        return stored

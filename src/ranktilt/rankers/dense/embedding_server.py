"""Vectors of an embedding server: each distinct text is asked for once, and kept as those of a local model are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from ranktilt.errors import UserError
from ranktilt.executing import memory_limits as chunks
from ranktilt.io.cache import Stored, VectorCache
from ranktilt.llm.base import LLM, llm
from ranktilt.models.batching import Ints
from ranktilt.models.encoder import Kind, distinct_texts
from ranktilt.progress import report

PREFIX = "openai:"
"""What names a model of a server instead of one on this machine."""
BYTES_A_TOKEN = 4
_WIDEST = 4


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """An embedding model behind an OpenAI-compatible server, with its vectors cached by content.

    Parameters
    ----------
    model : LLM
        Whom to ask.
    store : {"float32", "float16"}
        As which vectors are kept.
    max_tokens : int or None
        Tokens after which a text is cut, at four bytes a token: the server's tokens are not known here.
    query_prefix, document_prefix : str
        What is put before each text.
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
    def provenance(self) -> dict[str, Any]:
        """Model, address and client, for a run's spec; no key is in it."""
        packages = {name: version(name) for name in ("openai",) if find_spec(name)}
        return {"model": {**self.model.spec, "fingerprint": self.fingerprint}, "packages": packages}

    def cut(self, text: str) -> str:
        """Cut a text that is too long, behind a word where one ends in its last tenth.

        Parameters
        ----------
        text : str
            Any.

        Returns
        -------
        str
            At most four bytes of UTF-8 a token; the text itself where it is no longer than that, or there is no limit.
        """
        most = (self.max_tokens or 0) * BYTES_A_TOKEN
        if not most or len(text) * _WIDEST <= most or len(encoded := text.encode()) <= most:
            return text
        head = encoded[:most].decode(errors="ignore")
        end = max(head.rfind(blank) for blank in " \n\t")
        return head[:end] if end > len(head) * 9 // 10 else head

    def encode(self, texts: Sequence[str], kind: Kind, label: str) -> tuple[Stored, Ints]:
        """Look texts up, and ask the server for those that are missing; see `Encoder.encode`.

        Parameters
        ----------
        texts : sequence of str
            Any number, repeats allowed.
        kind : {"query", "document"}
            Which prefix applies.
        label : str
            Names the progress.

        Returns
        -------
        stored : Stored, shape (n_distinct, d)
            One row a distinct text. What the server has answered is kept at once, so that an interruption pays for
            nothing twice but what was under way.
        row : ndarray of int64, shape (n_texts,)
            Row of each text.

        Raises
        ------
        UserError
            If the server refuses or fails, gives vectors of another length than those kept, or the cache cannot be
            written.
        """
        texts = [self.cut(text) for text in texts]
        distinct, keys, row = distinct_texts(texts, kind)
        folder = chunks.vector_folder() / "embeddings" / self.fingerprint
        about = {"model": f"{PREFIX}{self.model.name}", "options": {**self.model.spec, "store": self.store}}
        cache = VectorCache(folder, dtype=self.store, about=about)
        found, stored = cache.get(keys)
        missing = np.flatnonzero(~found)
        if not len(missing):
            return stored, row
        cache.require_writable()
        prefix = self.query_prefix if kind == "query" else self.document_prefix
        done = len(keys) - len(missing)
        report(label, done, len(keys))
        for positions, vectors in self.model.embed([f"{prefix}{distinct[i]}" or " " for i in missing]):
            if stored.shape[1] not in (0, vectors.shape[1]):
                raise UserError(
                    f"{PREFIX}{self.model.name} now gives vectors of {vectors.shape[1]} numbers, and {folder} holds "
                    f"those of {stored.shape[1]}: another model answers under that name; remove the folder to go on"
                )
            cache.put(keys[missing[positions]], vectors)
            done += len(positions)
            report(label, done, len(keys))
        found, stored = cache.get(keys)
        if not found.all():
            raise UserError(f"{folder}: {int((~found).sum()):,} vectors are gone again; is the cache being pruned?")
        return stored, row


def embedded(
    model: str,
    *,
    store: str,
    max_tokens: int | None,
    query_prefix: str | None,
    document_prefix: str | None,
    **server: Any,
) -> Embedded:
    """Name a model of a server; nothing is asked.

    Parameters
    ----------
    model : str
        ``openai:NAME``, such as ``openai:text-embedding-3-small``.
    store : {"float32", "float16"}
        See `Embedded`.
    max_tokens : int or None
        See `Embedded`.
    query_prefix, document_prefix : str or None
        See `Embedded`.
    **server
        ``base_url``, ``rpm``, ``tpm``: see `ranktilt.llm.base.llm`.

    Returns
    -------
    Embedded
        Ready to be asked.

    Raises
    ------
    UserError
        If the name or an address is none.
    """
    prefixes = {"query_prefix": query_prefix or "", "document_prefix": document_prefix or ""}
    return Embedded(model=llm(model, **server), store=store, max_tokens=max_tokens, **prefixes)

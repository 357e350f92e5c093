"""How many tokens a model sees in a text, and where a budget of tokens ends: without loading the model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.cache import VectorCache, cache_folder, content_keys
from ranktilt.data.files import sha256
from ranktilt.errors import UserError
from ranktilt.models.checkpoint import read_json
from ranktilt.optional import need
from ranktilt.progress import report

Ints = npt.NDArray[np.int64]
NO_LIMIT = 1 << 30
_TEXTS_AT_ONCE = 2048
_LIMITS = ("tokenizer_config.json", "model_max_length"), ("config.json", "max_position_embeddings")
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class Tokens:
    """The tokenizer of a model in a local folder; `prompt` is what the model puts before each document."""

    folder: Path
    max_tokens: int | None
    prompt: str = ""

    @cached_property
    def limit(self) -> int | None:
        """Tokens, special ones included, after which a text is cut: the user's or the model's; None if unknown.

        The model's is the one that its sentence-transformers configuration names, else the lower
        one of its tokenizer's and of its positions, as sentence-transformers has it.
        """
        if self.max_tokens is not None:
            return self.max_tokens
        saved = self._setting("sentence_bert_config.json")
        options = saved.get("processor_kwargs") or saved.get("tokenizer_args") or {}
        named = options.get("model_max_length") or saved.get("max_seq_length")
        sizes = [named] if named else [self._setting(file).get(key) for file, key in _LIMITS]
        return min(
            (int(size) for size in sizes if isinstance(size, int | float) and 0 < size < NO_LIMIT),
            default=None,
        )

    def _setting(self, name: str) -> dict[str, Any]:
        """The model's configuration file of this name that lies least deep."""
        files = sorted(self.folder.rglob(name), key=lambda file: len(file.parts))
        return read_json(files[0], dict) if files else {}

    @property
    def special_tokens_of_pair(self) -> int:
        """How many tokens the tokenizer adds to a pair of texts."""
        return int(self._tokenizer.num_special_tokens_to_add(True))

    def counts(self, texts: Sequence[str] | pl.Series, label: str) -> Ints:
        """Count the tokens of each text as the model would see it whole, special ones included; kept by content."""
        keys = content_keys(texts, prefix=f"tokens {self.prompt}")
        keys, first, place = np.unique(keys, return_index=True, return_inverse=True)
        about = {"model": str(self.folder.absolute())}
        cache = VectorCache(cache_folder() / "tokens" / self._fingerprint, about=about)
        found, stored = cache.get(keys)
        missing = np.flatnonzero(~found)
        counts = np.zeros(len(keys), dtype=np.int64)
        if found.any():
            counts[found] = stored.take(np.flatnonzero(found))[:, 0].astype(np.int64)
        for start in range(0, len(missing), _TEXTS_AT_ONCE):
            part = missing[start : start + _TEXTS_AT_ONCE]
            encoded = self._tokenizer.encode_batch(
                [self.prompt + texts[int(i)] for i in first[part]]
            )
            counts[part] = [len(e.ids) for e in encoded]
            report(label, start + len(part), len(missing))
        if len(missing):
            with suppress(UserError):  # a cache that cannot be written: counts are soon made again
                cache.put(keys[missing], counts[missing, None].astype(np.float32))
        return counts[place]

    def lengths(self, texts: Sequence[str] | pl.Series, label: str) -> Ints:
        """Return how many tokens are read of each text; a guess by its letters where the tokenizer cannot be read."""
        if self.readable:
            counts = self.counts(texts, f"{label} (counting tokens)")
        else:
            counts = (
                pl.Series(texts, dtype=pl.String).str.len_chars().cast(pl.Int64).to_numpy()
                // _CHARACTERS_A_TOKEN
            )
        return counts if self.limit is None else np.minimum(counts, self.limit)

    def ends(self, texts: Sequence[str], budgets: Ints) -> list[int]:
        """Characters to keep of each text so that it has at most so many tokens, special ones included."""
        found = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = texts[start : start + _TEXTS_AT_ONCE]
            encoded = self._tokenizer.encode_batch([self.prompt + text for text in part])
            for text, one, budget in zip(
                part, encoded, budgets[start : start + _TEXTS_AT_ONCE], strict=True
            ):
                found.append(len(text) if len(one.ids) <= budget else self._end(one, int(budget)))
        return found

    def _end(self, encoded: Any, budget: int) -> int:
        special = sum(encoded.special_tokens_mask)
        inner = [
            end
            for (_, end), mark in zip(encoded.offsets, encoded.special_tokens_mask, strict=True)
            if not mark
        ]
        keep = budget - special
        return max(inner[keep - 1] - len(self.prompt), 0) if keep > 0 else 0

    @property
    def readable(self) -> bool:
        """Whether the folder holds a tokenizer that can be read without the model."""
        return any(self.folder.rglob("tokenizer.json")) and find_spec("tokenizers") is not None

    @cached_property
    def _file(self) -> Path:
        files = sorted(self.folder.rglob("tokenizer.json"), key=lambda f: len(f.parts))
        if not files:
            raise UserError(f"{self.folder}: no tokenizer.json, so its tokens cannot be counted")
        return files[0]

    @cached_property
    def _fingerprint(self) -> str:
        return sha256(self._file)[:32]

    @cached_property
    def _tokenizer(self) -> Any:
        library = need("tokenizers", extra="neural", for_="counting tokens")
        try:
            tokenizer = library.Tokenizer.from_file(str(self._file))
        except Exception as error:  # the library raises bare Exception
            raise UserError(f"{self._file}: cannot be read as a tokenizer: {error}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

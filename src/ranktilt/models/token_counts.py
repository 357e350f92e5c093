"""Count the tokens of texts, and cut texts to a budget of tokens, without loading the model.

A model reads only so many tokens of a text (its *limit*), and a run says which share of each
source's texts was cut. Counting needs only the tokenizer's file, not the model.
"""

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
"""Numbers of tokens."""
NO_LIMIT = 1 << 30
"""Number of tokens from which on a limit means that there is none: libraries write such numbers."""
_TEXTS_AT_ONCE = 2048
"""Number of texts that are given to the tokenizer together."""
_LIMITS = ("tokenizer_config.json", "model_max_length"), ("config.json", "max_position_embeddings")
"""Files and fields that may have a limit of tokens."""
_CHARACTERS_A_TOKEN = 4
"""Number of characters that count as a token if there is no tokenizer: about that of English."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The tokenizer of a model in a local folder."""

    folder: Path
    """Folder of the model."""
    max_tokens: int | None = None
    """Tokens after which the user cuts a text; None for the model's limit."""
    prompt: str = ""
    """Text that the model puts before each document."""

    @cached_property
    def limit(self) -> int | None:
        """Number of tokens, special ones included, after which a text is cut; None if unknown.

        It is the user's limit, if there is one. Otherwise it is that of the model's configuration
        for sentence-transformers, or else the lower of the tokenizer's limit and the number of the
        model's positions, as in sentence-transformers.
        """
        if self.max_tokens is not None:
            return self.max_tokens
        saved = self._setting("sentence_bert_config.json")
        options = saved.get("processor_kwargs") or saved.get("tokenizer_args") or {}
        limit = options.get("model_max_length") or saved.get("max_seq_length")
        limits = [limit] if limit else [self._setting(file).get(key) for file, key in _LIMITS]
        numbers = [limit for limit in limits if isinstance(limit, int | float)]
        return min((int(number) for number in numbers if 0 < number < NO_LIMIT), default=None)

    def _setting(self, name: str) -> dict[str, Any]:
        """Read the model's configuration file of this name, the one in the outermost folder."""
        files = sorted(self.folder.rglob(name), key=lambda file: len(file.parts))
        return read_json(files[0], dict) if files else {}

    @property
    def special_tokens_of_pair(self) -> int:
        """Number of tokens that the tokenizer adds to a pair of texts."""
        return int(self._tokenizer.num_special_tokens_to_add(True))

    def counts(self, texts: Sequence[str] | pl.Series, label: str) -> Ints:
        """Count the tokens of each uncut text, special ones included; cached by content."""
        all_keys = content_keys(texts, prefix=f"tokens {self.prompt}")
        keys, first, row = np.unique(all_keys, return_index=True, return_inverse=True)
        about = {"model": str(self.folder.absolute())}
        cache = VectorCache(cache_folder() / "tokens" / self._fingerprint, about=about)
        is_cached, stored = cache.get(keys)
        missing = np.flatnonzero(~is_cached)
        counts = np.zeros(len(keys), dtype=np.int64)
        if is_cached.any():
            counts[is_cached] = stored.take(np.flatnonzero(is_cached))[:, 0].astype(np.int64)
        for start in range(0, len(missing), _TEXTS_AT_ONCE):
            part = missing[start : start + _TEXTS_AT_ONCE]
            encodings = self._encode([texts[int(position)] for position in first[part]])
            counts[part] = [len(encoding.ids) for encoding in encodings]
            report(label, start + len(part), len(missing))
        if len(missing):
            # If the cache cannot be written, the counts are soon computed again.
            with suppress(UserError):
                cache.put(keys[missing], counts[missing, None].astype(np.float32))
        return counts[row]

    def lengths(self, texts: Sequence[str] | pl.Series, label: str) -> Ints:
        """Count the tokens that the model reads of each text.

        If the tokenizer cannot be read, they are estimated from the number of characters.
        """
        if self.readable:
            counts = self.counts(texts, f"{label} (counting tokens)")
        else:
            lengths = pl.Series(texts, dtype=pl.String).str.len_chars().cast(pl.Int64).to_numpy()
            counts = lengths // _CHARACTERS_A_TOKEN
        return counts if self.limit is None else np.minimum(counts, self.limit)

    def ends(self, texts: Sequence[str], budgets: Ints) -> list[int]:
        """Return how many characters to keep of each text, so that its tokens fit its budget.

        A budget is the most tokens of a text, special ones included.
        """
        ends = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = texts[start : start + _TEXTS_AT_ONCE]
            part_budgets = budgets[start : start + _TEXTS_AT_ONCE].tolist()
            for text, encoding, budget in zip(part, self._encode(part), part_budgets, strict=True):
                fits = len(encoding.ids) <= budget
                ends.append(len(text) if fits else self._end(encoding, budget))
        return ends

    def _end(self, encoding: Any, budget: int) -> int:
        """Return the position in a text at which its last token within a budget ends."""
        special_tokens = encoding.special_tokens_mask
        token_ends = [
            end
            for (_, end), is_special in zip(encoding.offsets, special_tokens, strict=True)
            if not is_special
        ]
        remaining = budget - sum(special_tokens)
        return max(token_ends[remaining - 1] - len(self.prompt), 0) if remaining > 0 else 0

    def _encode(self, texts: Sequence[str]) -> list[Any]:
        """Encode texts, each after the prompt."""
        encodings: list[Any] = self._tokenizer.encode_batch([self.prompt + text for text in texts])
        return encodings

    @property
    def readable(self) -> bool:
        """Whether the folder has a tokenizer that can be read without the model."""
        return any(self.folder.rglob("tokenizer.json")) and find_spec("tokenizers") is not None

    @cached_property
    def _file(self) -> Path:
        """File of the tokenizer, the one in the outermost folder."""
        files = sorted(self.folder.rglob("tokenizer.json"), key=lambda file: len(file.parts))
        if not files:
            raise UserError(f"{self.folder}: no tokenizer.json, so its tokens cannot be counted")
        return files[0]

    @cached_property
    def _fingerprint(self) -> str:
        """Hash of the tokenizer."""
        return sha256(self._file)[:32]

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer, which is loaded on first use, and neither cuts nor pads."""
        library = need("tokenizers", extra="neural", for_="counting tokens")
        try:
            tokenizer = library.Tokenizer.from_file(str(self._file))
        except Exception as error:  # the library raises bare Exception
            raise UserError(f"{self._file}: cannot be read as a tokenizer: {error}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

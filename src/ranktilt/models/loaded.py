"""Name, hash and tokenizer of a model that is in memory already, and has no folder.

The hash takes the place of that of a folder's files: results of the model are cached under it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.models.token_counts import Tokens
from ranktilt.optional import need

_DIGITS = 3
"""Decimals of a model's output that enter a hash: its last bits depend on the machine."""


def model_name(model: Any) -> str:
    """Return the name by which a model was loaded; for a path, its last two parts."""
    name = str(getattr(model.config, "name_or_path", "") or "")
    if not name:
        return type(model).__name__
    path = Path(name)
    return "/".join(path.parts[-2:]) if path.is_absolute() else name


def model_hash(model: Any, output: npt.NDArray[Any], *cache_key: object) -> str:
    """Hash a model's weights, modules and tokenizer, and its output for some text.

    The output distinguishes models whose weights are equal, but which have an adapter that is
    switched off, a hook, or a module that the user wrote. `cache_key` has the options on which
    results depend.
    """
    torch = need("torch", extra="neural", for_="a model in memory")
    digest = hashlib.blake2b(repr(cache_key).encode(), digest_size=16)
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    limits = getattr(model, "max_seq_length", None), getattr(model, "truncate_dim", None)
    tokenizer = tokenizer_json(getattr(model, "tokenizer", None))
    digest.update(f"{model!r} {limits} {tokenizer}".encode())
    # Adding 0 makes −0.0 and 0.0 one number.
    digest.update((np.round(output.astype(np.float64), _DIGITS) + 0.0).tobytes())
    return digest.hexdigest()


def tokenizer_json(tokenizer: Any) -> str:
    """Return the content of the ``tokenizer.json`` of a fast tokenizer; empty for any other."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        return ""
    library = need("tokenizers", extra="neural", for_="counting tokens")
    copy = library.Tokenizer.from_str(backend.to_str())
    copy.no_truncation()
    copy.no_padding()
    return str(copy.to_str())


@dataclass(frozen=True, kw_only=True)
class LoadedTokens(Tokens):
    """The tokenizer of a model in memory; its only limit is `max_tokens`."""

    tokenizer: Any = field(default=None, hash=False)
    """The tokenizer of transformers."""

    @property
    def readable(self) -> bool:
        """Whether the tokenizer is a fast one."""
        return bool(self._json)

    @cached_property
    def _json(self) -> str:
        """Content of the tokenizer's ``tokenizer.json``; empty if it is no fast tokenizer."""
        return tokenizer_json(self.tokenizer)

    @cached_property
    def _fingerprint(self) -> str:
        """Hash of the tokenizer."""
        return hashlib.sha256(self._json.encode()).hexdigest()[:32]

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer for the tokenizers library."""
        library = need("tokenizers", extra="neural", for_="counting tokens")
        return library.Tokenizer.from_str(self._json)

    def _setting(self, name: str) -> dict[str, Any]:
        """Return an empty configuration: there is no folder to read one from."""
        return {}

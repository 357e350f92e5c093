"""How many tokens a text has: by the model's own tokenizer where it lies on this machine, else by a rule of thumb."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ranktilt.llm.base import LLM

BYTES_A_TOKEN = 4
"""Of English and most other text in UTF-8, for the tokenizers of today's models."""

TEMPLATE_TOKENS = 12
"""What a chat template adds to a prompt, about."""


@dataclass(frozen=True)
class Counting:
    """A way to count tokens.

    Parameters
    ----------
    count : callable
        From texts to numbers of tokens.
    how : str
        In words, for whoever reads the estimate.
    """

    count: Callable[[Sequence[str]], list[int]]
    how: str


def counting(llm: LLM) -> Counting:
    """Choose how tokens are counted for a model.

    Parameters
    ----------
    llm : LLM
        One that has a method ``count_tokens(texts) -> list of int`` counts itself.

    Returns
    -------
    Counting
        Its own tokenizer's, or one token for four bytes.
    """
    own = getattr(llm, "count_tokens", None)
    if own is not None:
        return Counting(own, "counted by the model's own tokenizer")
    return Counting(_by_bytes, f"estimated, one token for {BYTES_A_TOKEN} bytes of UTF-8")


def _by_bytes(texts: Sequence[str]) -> list[int]:
    return [-(-len(text.encode()) // BYTES_A_TOKEN) for text in texts]

"""Pairs of query and document as a re-ranker reads them: which there are, and where they are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.io.cache import Keys, content_keys

Ints = npt.NDArray[np.int64]


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
    def of(cls, queries: Sequence[str], documents: Sequence[str], query: Ints, document: Ints) -> TextPairs:
        """Find the distinct pairs of a run's entries, given by the place of each one's texts."""
        distinct_queries, of_query = _distinct(queries)
        distinct_documents, of_document = _distinct(documents)
        count = len(distinct_documents)
        codes, entry = np.unique(of_query[query] * count + of_document[document], return_inverse=True)
        sides = codes // max(count, 1), codes % max(count, 1)
        hashes = content_keys(distinct_queries, prefix="query"), content_keys(distinct_documents, prefix="document")
        keys = _combined(*hashes, *sides)
        return cls(tuple(distinct_queries), tuple(distinct_documents), *sides, keys, entry.astype(np.int64))


def _distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    number: dict[str, int] = {}
    row = np.fromiter((number.setdefault(text, len(number)) for text in texts), dtype=np.int64, count=len(texts))
    return list(number), row


def _combined(queries: Keys, documents: Keys, query: Ints, document: Ints) -> Keys:
    one, two = ([key.tobytes().hex() for key in side] for side in (queries, documents))
    return content_keys((one[q] + two[d] for q, d in zip(query.tolist(), document.tolist(), strict=True)))


def fit_pairs(query: Ints, document: Ints, room: int) -> tuple[Ints, Ints]:
    """Tokens that stay of pairs cut to `room`, from the longer side first, as the tokenizers library cuts them.

    Where both are longer than half of the room, each gets half, and an odd one goes to the longer (to the document
    where they are equal).
    """
    room = max(room, 0)
    short, long = np.minimum(query, document), np.maximum(query, document)
    over, half = short + long > room, room // 2
    short = np.where(over, np.minimum(short, half), short)
    long = np.where(over, room - short, long)
    swapped = query > document
    return np.where(swapped, long, short), np.where(swapped, short, long)


@dataclass(frozen=True)
class TokenLimits:
    """Tokens that stay of a query, of a document (special ones not counted; None for all), and of both with them."""

    query: int | None
    document: int | None
    pair: int

    def fit(self, query: Ints, document: Ints, special_token_count: int) -> tuple[Ints, Ints]:
        """Return how many tokens of each pair's sides stay."""
        query = query if self.query is None else np.minimum(query, self.query)
        document = document if self.document is None else np.minimum(document, self.document)
        return fit_pairs(query, document, self.pair - special_token_count)


def fit_texts(tokenizer: Any, sides: Sequence[Sequence[str]], limits: TokenLimits, special_token_count: int) -> Any:
    """Cut queries and documents of some pairs behind the tokens that stay; `tokenizer` is transformers' own."""
    options = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
    found = [tokenizer(list(texts), **options)["offset_mapping"] for texts in sides]
    query, document = (np.array([len(offsets) for offsets in side], dtype=np.int64) for side in found)
    fitted = limits.fit(query, document, special_token_count)
    return [
        [
            text if count == len(offsets) else text[: offsets[count - 1][1] if count else 0]
            for text, offsets, count in zip(texts, side, kept.tolist(), strict=True)
        ]
        for texts, side, kept in zip(sides, found, fitted, strict=True)
    ]

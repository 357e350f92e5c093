"""Pairs of query and document as a re-ranker reads them: which there are, their tokens, and where they are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.io.cache import Keys, content_keys
from ranktilt.models.token_counts import NO_LIMIT

Ints = npt.NDArray[np.int64]
TokenIds = npt.NDArray[np.int32]
_TEXTS_AT_ONCE = 512


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


@dataclass(frozen=True)
class PairTemplate:
    """Tokens that a model puts before, between and behind query and document.

    `types` are those of the five parts, from the first to the last; empty for a model that knows none.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    behind: tuple[int, ...]
    types: tuple[int, ...] = ()

    @property
    def special_token_count(self) -> int:
        """How many tokens it adds."""
        return len(self.before) + len(self.between) + len(self.behind)

    def ids(self, query: TokenIds, document: TokenIds) -> TokenIds:
        """Return a pair's tokens."""
        parts = (self.before, query, self.between, document, self.behind)
        return np.concatenate([np.asarray(part, dtype=np.int32) for part in parts])

    def type_ids(self, query: int, document: int) -> TokenIds:
        """Return the type of each token of a pair with so many tokens on its sides."""
        sizes = [len(self.before), query, len(self.between), document, len(self.behind)]
        return np.repeat(np.asarray(self.types, dtype=np.int32), sizes)


def pair_template(tokenizer: Any, *, typed: bool) -> PairTemplate | None:
    """Find what a tokenizer puts around a pair; None where it does not put a query, as a whole, before a document.

    `tokenizer` is one of the tokenizers library; `typed` says whether the model knows types of tokens.
    """
    one, two = (tokenizer.encode(text, add_special_tokens=False) for text in ("a", "b"))
    found = tokenizer.encode("a", "b")
    sequence = list(found.sequence_ids)
    sides = [[i for i, side in enumerate(sequence) if side == number] for number in (0, 1)]
    if [len(side) for side in sides] != [len(one.ids), len(two.ids)] or not (one.ids and two.ids):
        return None
    (start, end), (second, last) = ((side[0], side[-1] + 1) for side in sides)
    if (found.ids[start:end], found.ids[second:last]) != (one.ids, two.ids) or end > second:
        return None
    parts = (slice(0, start), slice(start, end), slice(end, second), slice(second, last), slice(last, None))
    types = [(set(found.type_ids[part]) or {0}) for part in parts]
    if any(len(kinds) > 1 for kinds in types):
        return None
    before, between, behind = (tuple(found.ids[part]) for part in parts[::2])
    return PairTemplate(before, between, behind, tuple(kinds.pop() for kinds in types) if typed else ())


@dataclass(frozen=True)
class Tokenized:
    """The first tokens of texts, without special ones: text ``i`` owns ``flat[start[i]:start[i + 1]]``."""

    flat: TokenIds
    start: Ints
    counts: Ints
    """Tokens of each whole text."""

    @classmethod
    def of(cls, tokenizer: Any, texts: Sequence[str], most: int | None) -> Tokenized:
        """Tokenize texts, keeping at most so many tokens of each; `tokenizer` neither truncates nor pads."""
        flat, counts = [np.empty(0, np.int32)], []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = list(texts[start : start + _TEXTS_AT_ONCE])
            ids = [one.ids for one in tokenizer.encode_batch_fast(part, add_special_tokens=False)]
            counts += [len(one) for one in ids]
            flat += [np.asarray(one[:most], dtype=np.int32) for one in ids]
        whole = np.asarray(counts, dtype=np.int64)
        kept = whole if most is None else np.minimum(whole, most)
        return cls(np.concatenate(flat), np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)]), whole)

    def first(self, text: int, most: int) -> TokenIds:
        """Return the first tokens of one text."""
        start = self.start[text]
        return self.flat[start : min(start + most, self.start[text + 1])]


@dataclass(frozen=True)
class PairInputs:
    """All pairs as tokens, ready to be put into batches."""

    pairs: TextPairs
    queries: Tokenized
    documents: Tokenized
    template: PairTemplate
    limits: TokenLimits

    @classmethod
    def of(cls, tokenizer: Any, pairs: TextPairs, template: PairTemplate, limits: TokenLimits) -> PairInputs:
        """Tokenize each distinct query and each distinct document once."""
        queries, documents = (
            Tokenized.of(tokenizer, texts, min(limits.pair, limit or NO_LIMIT))
            for texts, limit in ((pairs.queries, limits.query), (pairs.documents, limits.document))
        )
        return cls(pairs, queries, documents, template, limits)

    @cached_property
    def token_counts(self) -> tuple[Ints, Ints]:
        """How many tokens of each pair's query and of its document stay."""
        query, document = self.queries.counts[self.pairs.query], self.documents.counts[self.pairs.document]
        return self.limits.fit(query, document, self.template.special_token_count)

    @cached_property
    def lengths(self) -> Ints:
        """Tokens of each pair, special ones included."""
        query, document = self.token_counts
        return query + document + self.template.special_token_count

    def batch(self, positions: Ints, pad: int, *, pad_type: int = 0, left: bool = False) -> dict[str, Ints]:
        """Make the arrays that a model takes of some pairs: int64, one row a pair.

        Shorter pairs are filled up with the token `pad` of type `pad_type`; at the left for models that read the last
        token. There are ``token_type_ids`` where the template has types.
        """
        sides = [side[positions] for side in self.token_counts]
        sizes = self.lengths[positions]
        shape = (len(positions), int(sizes.max(initial=0)))
        ids, mask, types = np.full(shape, pad), np.zeros(shape, dtype=np.int64), np.full(shape, pad_type)
        for row, (position, size) in enumerate(zip(positions.tolist(), sizes.tolist(), strict=True)):
            query = self.queries.first(self.pairs.query[position], sides[0][row])
            document = self.documents.first(self.pairs.document[position], sides[1][row])
            at = slice(shape[1] - size, shape[1]) if left else slice(0, size)
            ids[row, at], mask[row, at] = self.template.ids(query, document), 1
            if self.template.types:
                types[row, at] = self.template.type_ids(len(query), len(document))
        arrays = {"input_ids": ids, "attention_mask": mask}
        return {**arrays, "token_type_ids": types} if self.template.types else arrays

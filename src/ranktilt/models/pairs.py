"""Pairs of query and document as a re-ranker reads them: which there are, their tokens, and where they are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.io.cache import Keys, content_keys
from ranktilt.optional import need

Ints = npt.NDArray[np.int64]
NO_LIMIT = 1 << 30
_AT_ONCE = 512


@dataclass(frozen=True)
class Pairs:
    """The distinct pairs of a query's and a document's text.

    Parameters
    ----------
    queries, documents : tuple of str
        Distinct texts.
    query, document : ndarray of int64, shape (n_pairs,)
        Number of each pair's texts.
    keys : ndarray of 16-byte records, shape (n_pairs,)
        Hashes of the pairs' texts.
    entry : ndarray of int64, shape (n_entries,)
        Pair of each of a run's entries.
    """

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    query: Ints
    document: Ints
    keys: Keys
    entry: Ints

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, queries: Sequence[str], documents: Sequence[str], query: Ints, document: Ints) -> Pairs:
        """Find the distinct pairs of a run's entries.

        Parameters
        ----------
        queries, documents : sequence of str
            Texts, repeats allowed.
        query, document : ndarray of int64, shape (n_entries,)
            Place of each entry's texts in them.

        Returns
        -------
        Pairs
            Each combination of texts once.
        """
        asked, of_query = _distinct(queries)
        held, of_document = _distinct(documents)
        code = of_query[query] * len(held) + of_document[document]
        codes, entry = np.unique(code, return_inverse=True)
        sides = codes // max(len(held), 1), codes % max(len(held), 1)
        keys = _combined(content_keys(asked, prefix="query"), content_keys(held, prefix="document"), *sides)
        return cls(tuple(asked), tuple(held), *sides, keys, entry.astype(np.int64))


def _distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    number: dict[str, int] = {}
    row = np.fromiter((number.setdefault(text, len(number)) for text in texts), dtype=np.int64, count=len(texts))
    return list(number), row


def _combined(queries: Keys, documents: Keys, query: Ints, document: Ints) -> Keys:
    one, two = ([key.tobytes().hex() for key in side] for side in (queries, documents))
    return content_keys((one[q] + two[d] for q, d in zip(query.tolist(), document.tolist(), strict=True)))


def fitted(query: Ints, document: Ints, room: int) -> tuple[Ints, Ints]:
    """Cut pairs to a number of tokens, from the longer side first, as the tokenizers library does.

    Parameters
    ----------
    query, document : ndarray of int64, shape (n,)
        Tokens of both sides.
    room : int
        Tokens for both together.

    Returns
    -------
    query, document : ndarray of int64, shape (n,)
        Tokens that stay. Where both are longer than half of the room, each gets half, and an odd one goes to the
        longer (to the document where they are equal).
    """
    room = max(room, 0)
    short, long = np.minimum(query, document), np.maximum(query, document)
    over, half = short + long > room, room // 2
    short = np.where(over, np.minimum(short, half), short)
    long = np.where(over, room - short, long)
    swapped = query > document
    return np.where(swapped, long, short), np.where(swapped, short, long)


@dataclass(frozen=True)
class Limits:
    """Tokens that stay of a query, of a document, and of both with what the model puts around them.

    Parameters
    ----------
    query, document : int or None
        Without special tokens; None for as many as fit.
    pair : int
        All together.
    """

    query: int | None
    document: int | None
    pair: int

    def kept(self, query: Ints, document: Ints, around: int) -> tuple[Ints, Ints]:
        """Return how many tokens of each pair's sides stay; `around` tokens are the model's own."""
        query = query if self.query is None else np.minimum(query, self.query)
        document = document if self.document is None else np.minimum(document, self.document)
        return fitted(query, document, self.pair - around)


@dataclass(frozen=True)
class Template:
    """What a model puts before, between and behind query and document.

    Parameters
    ----------
    before, between, behind : tuple of int
        Tokens.
    types : tuple of int
        Types of the five parts, from the first to the last; empty for a model that knows none.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    behind: tuple[int, ...]
    types: tuple[int, ...] = ()

    @property
    def around(self) -> int:
        """How many tokens it adds."""
        return len(self.before) + len(self.between) + len(self.behind)

    def ids(self, query: npt.NDArray[np.int32], document: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return a pair's tokens."""
        parts = (self.before, query, self.between, document, self.behind)
        return np.concatenate([np.asarray(part, dtype=np.int32) for part in parts])

    def type_ids(self, query: int, document: int) -> npt.NDArray[np.int32]:
        """Return the type of each token of a pair with so many tokens on its sides."""
        return np.repeat(
            np.asarray(self.types, dtype=np.int32),
            [len(self.before), query, len(self.between), document, len(self.behind)],
        )


@dataclass(frozen=True)
class Tokenized:
    """The first tokens of texts, and how many each text has.

    Parameters
    ----------
    flat : ndarray of int32
        Tokens, text after text, without special ones.
    start : ndarray of int64, shape (n_texts + 1,)
        Text ``i`` owns ``flat[start[i]:start[i + 1]]``.
    counts : ndarray of int64, shape (n_texts,)
        Tokens of the whole text.
    """

    flat: npt.NDArray[np.int32]
    start: Ints
    counts: Ints

    @classmethod
    def of(cls, tokenizer: Any, texts: Sequence[str], most: int | None) -> Tokenized:
        """Tokenize texts.

        Parameters
        ----------
        tokenizer : tokenizers.Tokenizer
            Without truncation and padding.
        texts : sequence of str
            The texts.
        most : int or None
            Tokens of each text to keep; all where None.

        Returns
        -------
        Tokenized
            In the order of the texts.
        """
        flat, counts = [np.empty(0, np.int32)], []
        for start in range(0, len(texts), _AT_ONCE):
            part = list(texts[start : start + _AT_ONCE])
            ids = [one.ids for one in tokenizer.encode_batch_fast(part, add_special_tokens=False)]
            counts += [len(one) for one in ids]
            flat += [np.asarray(one[:most], dtype=np.int32) for one in ids]
        whole = np.asarray(counts, dtype=np.int64)
        kept = whole if most is None else np.minimum(whole, most)
        return cls(np.concatenate(flat), np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)]), whole)

    def first(self, text: int, most: int) -> npt.NDArray[np.int32]:
        """Return the first tokens of one text."""
        start = self.start[text]
        return self.flat[start : min(start + most, self.start[text + 1])]


@dataclass(frozen=True)
class Inputs:
    """All pairs as tokens, ready to be put into batches.

    Parameters
    ----------
    pairs : Pairs
        The pairs.
    queries, documents : Tokenized
        Tokens of their texts.
    template : Template
        What goes around them.
    limits : Limits
        What stays of them.
    """

    pairs: Pairs
    queries: Tokenized
    documents: Tokenized
    template: Template
    limits: Limits

    @classmethod
    def of(cls, tokenizer: Any, pairs: Pairs, template: Template, limits: Limits) -> Inputs:
        """Tokenize each distinct query and each distinct document once."""
        queries, documents = (
            Tokenized.of(tokenizer, texts, min(limits.pair, limit or NO_LIMIT))
            for texts, limit in ((pairs.queries, limits.query), (pairs.documents, limits.document))
        )
        return cls(pairs, queries, documents, template, limits)

    @cached_property
    def kept(self) -> tuple[Ints, Ints]:
        """How many tokens of each pair's query and of its document stay."""
        query, document = self.queries.counts[self.pairs.query], self.documents.counts[self.pairs.document]
        return self.limits.kept(query, document, self.template.around)

    @cached_property
    def lengths(self) -> Ints:
        """Tokens of each pair, with the model's own."""
        query, document = self.kept
        return query + document + self.template.around

    def batch(self, positions: Ints, pad: int, *, pad_type: int = 0, left: bool = False) -> dict[str, Ints]:
        """Make the arrays that a model takes of some pairs.

        Parameters
        ----------
        positions : ndarray of int64, shape (n,)
            Which pairs.
        pad, pad_type : int
            Token, and its type, that fills up shorter pairs.
        left : bool, optional
            Fill up before a pair's tokens, for models that read the last one.

        Returns
        -------
        dict
            ``input_ids``, ``attention_mask`` and, where the template has types, ``token_type_ids``: int64, shape
            (n, most tokens).
        """
        sides = [side[positions] for side in self.kept]
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
        made = {"input_ids": ids, "attention_mask": mask}
        return {**made, "token_type_ids": types} if self.template.types else made


def template_of(tokenizer: Any, *, typed: bool) -> Template | None:
    """Find what a tokenizer puts around a pair of texts.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        The tokenizer.
    typed : bool
        Whether the model knows types of tokens.

    Returns
    -------
    Template or None
        None where the tokenizer does not put a query, as a whole, before a document.
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
    return Template(before, between, behind, tuple(kinds.pop() for kinds in types) if typed else ())


def special_tokens(folder: Path) -> int:
    """Return how many tokens a tokenizer puts around a pair, from its file alone.

    Parameters
    ----------
    folder : Path
        A model whose ``tokenizer.json`` can be read.

    Returns
    -------
    int
        Special tokens of a pair.
    """
    library = need("tokenizers", extra="neural", for_="counting tokens")
    file = min(folder.rglob("tokenizer.json"), key=lambda f: len(f.parts))
    return int(library.Tokenizer.from_file(str(file)).num_special_tokens_to_add(True))

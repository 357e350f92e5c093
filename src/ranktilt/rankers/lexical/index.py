"""The lexical index: which documents hold each term; made in blocks, and kept on disk where the texts are many."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from ranktilt.data.collection import Collection
from ranktilt.data.text.analyzers import TokenCodes, Vocabulary, analyzer
from ranktilt.parallel.executor import executor
from ranktilt.parallel.memory_limits import index_files_from, memory_limit
from ranktilt.progress import report
from ranktilt.rankers.lexical.index_files import (
    IndexFolder,
    IndexWriter,
    PostingPart,
    PostingTable,
    PostingTableDraft,
)

Ints = npt.NDArray[np.int64]

CHUNK, _BYTES_A_CHUNK = 16_384, 64 << 20
_BYTES_A_POSTING = 64
LARGE, _NLTK_TIMES = 32 << 20, 16
"""Bytes of text from which an index is kept on disk: below, reading it would not be much faster than making it; and how
much longer NLTK's tokenizers take than the others, so that less text is enough."""


@dataclass(frozen=True)
class Terms:
    """The terms of a collection's documents, in memory or mapped from files; the vocabulary names them."""

    table: PostingTable
    vocabulary: Vocabulary

    def of_queries(self, texts: pl.Series) -> sp.csr_array:
        """Count the collection's terms in queries; terms that no document holds are left out."""
        owner, term = self.vocabulary.encode(
            TokenCodes.from_texts(self.vocabulary.analyzer, texts), grow=False
        )
        return _count(owner, term, (len(texts), len(self.vocabulary)))


def terms(collection: Collection, how: str, text: str) -> Terms:
    """Return the terms of a collection's documents, made once for all rankers that share them.

    Where texts are many, the index is kept in the cache, and read from there the next time.
    """

    def make() -> Terms:
        texts = collection.texts(text)
        large = _bytes(texts) >= index_files_from(LARGE // (_NLTK_TIMES if how == "paper" else 1))
        return _from_disk(texts, how) if large else _make(texts, how)

    return collection.memo(("terms", how, text), make)


def _bytes(texts: pl.Series) -> int:
    return int(texts.str.len_bytes().cast(pl.Int64).sum())


def _from_disk(texts: pl.Series, how: str) -> Terms:
    """The index from its folder, or a new one that is put there."""
    folder = IndexFolder.from_texts(texts, how)
    if (stored := folder.read()) is not None:
        return Terms(stored[0], Vocabulary(analyzer(how), stored[1]))
    with folder.writing() as writer:
        return _make(texts, how, writer)


def _make(texts: pl.Series, how: str, writer: IndexWriter | None = None) -> Terms:
    vocabulary = Vocabulary(analyzer(how))
    blocks, lengths = list[_PostingBlock](), [np.empty(0, np.int32)]
    step = max(min(CHUNK, _BYTES_A_CHUNK * len(texts) // max(_bytes(texts), 1)), 1)
    parts = (texts.slice(start, step) for start in range(0, len(texts), step))
    for number, tokens in enumerate(executor().map(partial(_analyzed, how), parts)):
        owner, term = vocabulary.encode(tokens, grow=True)
        lengths.append(np.bincount(owner, minlength=len(tokens.counts)).astype(np.int32))
        block = _PostingBlock.from_postings(owner + number * step, term)
        blocks.append(block if writer is None else block.aside(writer))
        report(f"analyzer {how}: documents", min((number + 1) * step, len(texts)), len(texts))
    draft = _draft(blocks, len(vocabulary), np.concatenate(lengths))
    return Terms(
        draft.whole() if writer is None else writer.write(draft, list(vocabulary.terms)), vocabulary
    )


@dataclass(frozen=True)
class _PostingBlock:
    """Postings of consecutive documents: distinct terms in order, documents of each, which they are, and how often."""

    terms: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    times: npt.NDArray[Any]

    @classmethod
    def from_postings(cls, owner: Ints, term: Ints) -> _PostingBlock:
        first, last = (int(owner[0]), int(owner[-1])) if len(owner) else (0, 0)
        shape = (int(term.max(initial=-1)) + 1, last - first + 1)
        counts = _count(term, owner - first, shape)
        sizes = np.diff(counts.indptr)
        terms = np.flatnonzero(sizes)
        kind = np.min_scalar_type(int(counts.data.max(initial=0)))
        rows = counts.indices.astype(np.int32) + np.int32(first)
        return cls(
            terms.astype(np.int32), sizes[terms].astype(np.int32), rows, counts.data.astype(kind)
        )

    def aside(self, writer: IndexWriter) -> _PostingBlock:
        return _PostingBlock(*map(writer.aside, (self.terms, self.sizes, self.rows, self.times)))


def _draft(
    blocks: Sequence[_PostingBlock], n_terms: int, lengths: npt.NDArray[np.int32]
) -> PostingTableDraft:
    sizes = np.zeros(n_terms, dtype=np.int64)
    for block in blocks:
        sizes[block.terms] += block.sizes
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    kind = np.result_type(np.uint8, *(block.times.dtype for block in blocks))
    return PostingTableDraft(partial(_merged, blocks, offsets, kind), kind, offsets, lengths)


def _merged(
    blocks: Sequence[_PostingBlock], offsets: Ints, kind: np.dtype[Any]
) -> Iterator[PostingPart]:
    """Postings of all blocks together, a few terms at a time: as many as a part of the memory holds."""
    starts = [np.concatenate([[0], np.cumsum(block.sizes, dtype=np.int64)]) for block in blocks]
    most = max(memory_limit() // _BYTES_A_POSTING, 1)
    low, n_terms = 0, len(offsets) - 1
    while low < n_terms:
        high = max(int(np.searchsorted(offsets, offsets[low] + most, side="right")) - 1, low + 1)
        rows = np.empty(offsets[high] - offsets[low], dtype=np.int32)
        times = np.empty(len(rows), dtype=kind)
        free = offsets[low:high] - offsets[low]
        for block, start in zip(blocks, starts, strict=True):
            a, b = np.searchsorted(block.terms, [low, high])
            terms, sizes, span = block.terms[a:b] - low, block.sizes[a:b], slice(start[a], start[b])
            place = np.repeat(free[terms] - (start[a:b] - start[a]), sizes) + np.arange(
                start[b] - start[a]
            )
            rows[place], times[place] = block.rows[span], block.times[span]
            free[terms] += sizes
        yield rows, times
        low = high


def _analyzed(how: str, parts: Iterator[pl.Series]) -> Iterator[TokenCodes]:
    """Split the next parts in threads while the caller uses the last one; no more than a few are held."""
    work, threads = partial(TokenCodes.from_texts, analyzer(how)), pl.thread_pool_size()
    with ThreadPoolExecutor(threads) as pool:
        waiting = deque(pool.submit(work, part) for part in islice(parts, threads))
        while waiting:
            done = waiting.popleft().result()
            waiting.extend(pool.submit(work, part) for part in islice(parts, 1))
            yield done


def _count(row: Ints, column: Ints, shape: tuple[int, int]) -> sp.csr_array:
    ones = np.ones(len(row), dtype=np.int32)
    counts = sp.coo_array(
        (ones, (row.astype(np.int32), column.astype(np.int32))), shape=shape
    ).tocsr()
    counts.sum_duplicates()
    return sp.csr_array(counts)

"""The lexical index: the documents of each term; built in blocks, on disk where texts are many."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
from ranktilt.data.texts import release_array, release_texts
from ranktilt.errors import UserError
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
"""Most documents of a block, and bytes of text that a block should have."""
_BYTES_A_POSTING = 64
"""Bytes of memory for a posting while blocks are merged."""
_MOST_POSTINGS = 1 << 25
"""Postings that are merged at a time where the memory would allow more; more are no faster."""
LARGE, STORED = 32 << 20, 4 << 20
"""Bytes of text from which an index must be on disk, and from which it is put there if possible.

An index of `LARGE` texts may not fit into the memory. Below `STORED`, an index is built within some
tenths of a second, so that none is stored.
"""
_NLTK_TIMES = 16
"""How much slower NLTK's tokenizers are; with them, both limits are as many times smaller."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The postings of a collection, in memory or mapped from files, and the names of its terms."""

    table: PostingTable
    """Documents of each term."""
    vocabulary: Vocabulary
    """Names and numbers of the terms."""

    def of_queries(self, texts: pl.Series) -> sp.csr_array:
        """Count the collection's terms in queries; other terms are left out."""
        tokens = TokenCodes.from_texts(self.vocabulary.analyzer, texts)
        owner, term = self.vocabulary.encode(tokens, grow=False)
        return _count(owner, term, (len(texts), len(self.vocabulary)))


def terms(collection: Collection, analyzer_name: str, text: str) -> Terms:
    """Return the terms of a collection's documents, built once for all rankers that share them.

    From `STORED` bytes of text on, the index is written to the cache, and read from there the next
    time. Where the cache cannot be written, only an index of `LARGE` texts is refused.
    """

    def build() -> Terms:
        texts = collection.texts(text)
        times_slower = _NLTK_TIMES if analyzer_name == "paper" else 1
        size = _bytes(texts)
        if size >= index_files_from(LARGE // times_slower):
            return _from_disk(collection, analyzer_name, text)
        if size >= STORED // times_slower:
            with suppress(UserError, OSError):  # the cache is full, or may not be written
                return _from_disk(collection, analyzer_name, text)
        return _build(texts, analyzer_name)

    return collection.memo(("terms", analyzer_name, text), build)


def _bytes(texts: pl.Series) -> int:
    """Return the bytes of all texts."""
    return int(texts.str.len_bytes().cast(pl.Int64).sum())


def _from_disk(collection: Collection, analyzer_name: str, text: str) -> Terms:
    """Return the index from its folder, or build it there."""
    folder = IndexFolder.from_collection(collection, analyzer_name, text)
    stored = folder.read()
    if stored is not None:
        vocabulary = Vocabulary(analyzer(analyzer_name), stored.terms)
        return Terms(table=stored.table, vocabulary=vocabulary)
    with folder.writing() as writer:
        return _build(collection.texts(text), analyzer_name, writer)


def _build(texts: pl.Series, analyzer_name: str, writer: IndexWriter | None = None) -> Terms:
    """Build the index block by block; with a writer, blocks and index are on disk."""
    vocabulary = Vocabulary(analyzer(analyzer_name))
    blocks = list[_PostingBlock]()
    lengths = [np.empty(0, np.int32)]
    step = max(min(CHUNK, _BYTES_A_CHUNK * len(texts) // max(_bytes(texts), 1)), 1)
    parts = (texts.slice(start, step) for start in range(0, len(texts), step))
    analyzed_parts = executor().map(partial(_analyze, analyzer_name), parts)
    for number, tokens in enumerate(analyzed_parts):
        owner, term = vocabulary.encode(tokens, grow=True)
        lengths.append(np.bincount(owner, minlength=len(tokens.counts)).astype(np.int32))
        block = _PostingBlock.from_postings(owner + number * step, term)
        blocks.append(block if writer is None else block.moved_to_disk(writer))
        release_texts()
        done = min((number + 1) * step, len(texts))
        report(f"analyzer {analyzer_name}: documents", done, len(texts))
    draft = _draft(blocks, len(vocabulary), np.concatenate(lengths))
    table = draft.in_memory() if writer is None else writer.write(draft, vocabulary.terms)
    return Terms(table=table, vocabulary=vocabulary)


@dataclass(frozen=True, kw_only=True)
class _PostingBlock:
    """Postings of consecutive documents, sorted by term."""

    terms: npt.NDArray[np.int32]
    """Distinct terms, in order."""
    sizes: npt.NDArray[np.int32]
    """Number of documents of each term."""
    rows: npt.NDArray[np.int32]
    """Documents of each term, one term after the other."""
    times: npt.NDArray[Any]
    """How often each of these documents holds the term."""

    @classmethod
    def from_postings(cls, owner: Ints, term: Ints) -> _PostingBlock:
        """Sort the postings of consecutive documents by term.

        `owner` is the document of each token, `term` its term.
        """
        first, last = (int(owner[0]), int(owner[-1])) if len(owner) else (0, 0)
        shape = (int(term.max(initial=-1)) + 1, last - first + 1)
        counts = _count(term, owner - first, shape)
        sizes = np.diff(counts.indptr)
        terms = np.flatnonzero(sizes)
        # The smallest type that holds all counts: mostly a byte, which keeps the index small.
        kind = np.min_scalar_type(int(counts.data.max(initial=0)))
        return cls(
            terms=terms.astype(np.int32),
            sizes=sizes[terms].astype(np.int32),
            rows=counts.indices.astype(np.int32) + np.int32(first),
            times=counts.data.astype(kind),
        )

    def moved_to_disk(self, writer: IndexWriter) -> _PostingBlock:
        """Return the block with its arrays mapped from files."""
        return _PostingBlock(
            terms=writer.move_to_disk(self.terms),
            sizes=writer.move_to_disk(self.sizes),
            rows=writer.move_to_disk(self.rows),
            times=writer.move_to_disk(self.times),
        )

    def release(self) -> None:
        """Give the memory of arrays that are mapped from files back to the system."""
        for array in (self.terms, self.sizes, self.rows, self.times):
            release_array(array)


def _draft(
    blocks: Sequence[_PostingBlock], n_terms: int, lengths: npt.NDArray[np.int32]
) -> PostingTableDraft:
    """Return the merged table, whose postings are made when they are read."""
    sizes = np.zeros(n_terms, dtype=np.int64)
    for block in blocks:
        sizes[block.terms] += block.sizes
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    kind = np.result_type(np.uint8, *(block.times.dtype for block in blocks))
    return PostingTableDraft(
        parts=partial(_merged, blocks, offsets, kind), kind=kind, offsets=offsets, lengths=lengths
    )


def _merged(
    blocks: Sequence[_PostingBlock], offsets: Ints, kind: np.dtype[Any]
) -> Iterator[PostingPart]:
    """Yield the postings of all blocks together, as many terms at a time as fit into the memory.

    Each block is copied by one assignment, and not term by term: a large collection has millions of
    terms.
    """
    starts = [np.concatenate([[0], np.cumsum(block.sizes, dtype=np.int64)]) for block in blocks]
    most = max(min(memory_limit() // _BYTES_A_POSTING, _MOST_POSTINGS), 1)
    low, n_terms = 0, len(offsets) - 1
    while low < n_terms:
        high = max(int(np.searchsorted(offsets, offsets[low] + most, side="right")) - 1, low + 1)
        rows = np.empty(offsets[high] - offsets[low], dtype=np.int32)
        times = np.empty(len(rows), dtype=kind)
        next_free = offsets[low:high] - offsets[low]
        for block, start in zip(blocks, starts, strict=True):
            first, last = np.searchsorted(block.terms, [low, high])
            terms, sizes = block.terms[first:last] - low, block.sizes[first:last]
            span = slice(start[first], start[last])
            # A posting goes to its term's next free position, after the term's earlier postings.
            shift = next_free[terms] - (start[first:last] - start[first])
            position = np.repeat(shift, sizes) + np.arange(start[last] - start[first])
            rows[position], times[position] = block.rows[span], block.times[span]
            next_free[terms] += sizes
            block.release()
        yield rows, times
        low = high


def _analyze(analyzer_name: str, parts: Iterator[pl.Series]) -> Iterator[TokenCodes]:
    """Split the next parts in threads while the caller uses the last one.

    No more than a few parts are in memory.
    """
    analyze = partial(TokenCodes.from_texts, analyzer(analyzer_name))
    threads = pl.thread_pool_size()
    with ThreadPoolExecutor(threads) as pool:
        waiting = deque(pool.submit(analyze, part) for part in islice(parts, threads))
        while waiting:
            tokens = waiting.popleft().result()
            waiting.extend(pool.submit(analyze, part) for part in islice(parts, 1))
            yield tokens


def _count(row: Ints, column: Ints, shape: tuple[int, int]) -> sp.csr_array:
    """Count how often each pair of row and column occurs."""
    positions = (row.astype(np.int32), column.astype(np.int32))
    counts = sp.coo_array((np.ones(len(row), dtype=np.int32), positions), shape=shape).tocsr()
    counts.sum_duplicates()
    return sp.csr_array(counts)

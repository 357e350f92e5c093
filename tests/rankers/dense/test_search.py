"""Exact search finds what comparing every pair finds, to the last bit, in any memory and from any
place.
"""

import numpy as np
import numpy.typing as npt
import pytest

from ranktilt.errors import UserError
from ranktilt.parallel.memory_limits import MemoryLimits, limit_memory
from ranktilt.rankers.dense import search as module
from ranktilt.rankers.dense.search import search, unit

Vectors = npt.NDArray[np.float32]
Scores = list[dict[int, float]]


class Held:
    """Vectors that count what is read of them."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.reads: list[tuple[int, int]] = []

    @property
    def shape(self) -> tuple[int, int]:
        return self.vectors.shape[0], self.vectors.shape[1]

    def read(self, start: int, stop: int) -> Vectors:
        assert 0 <= start < stop <= len(self.vectors)
        self.reads.append((start, stop))
        return self.vectors[start:stop]


def drawn(n: int, d: int, seed: int = 0) -> Vectors:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def searched(
    queries: Vectors, documents: Vectors, k: int, *, cosine: bool = False, memory: int | None = None
) -> Scores:
    """Rows and scores of each query."""
    with limit_memory(MemoryLimits(memory=memory)):
        parts = list(search(queries, Held(documents), k, cosine=cosine, label="searching"))
    for rows, scores in parts:
        assert (rows.dtype, scores.dtype) == (np.int64, np.float32)
        assert len(set(rows.tolist())) == len(rows) == len(scores)
    return [dict(zip(rows.tolist(), scores.tolist(), strict=True)) for rows, scores in parts]


def every_pair(queries: Vectors, documents: Vectors, k: int, *, cosine: bool = False) -> Scores:
    """Score all pairs in Python's exact fractions of floats, round once, and keep the best k with
    all ties.
    """
    best = []
    if cosine:
        queries, documents = _divided(queries), _divided(documents)
    for query in queries.astype(np.float64):
        scores = np.array(
            [np.float32((query * document).sum()) for document in documents.astype(np.float64)]
        )
        line = np.sort(scores)[-k] if k < len(scores) else -np.inf
        best.append({int(row): float(scores[row]) for row in np.flatnonzero(scores >= line)})
    return best


def _divided(vectors: Vectors) -> Vectors:
    lengths = [np.sqrt(np.float32((row * row).sum())) for row in vectors]
    return np.array(
        [row / length if length else row for row, length in zip(vectors, lengths, strict=True)]
    )


def test_with_a_pencil_where_float32_sums_cannot_tell_and_where_there_is_nothing() -> None:
    documents = np.array([[1, 0], [0, 2], [3, 4], [0, 0]], dtype=np.float32)
    queries = np.array([[1, 0], [0, 10]], dtype=np.float32)
    assert searched(queries, documents, 2) == [{2: 3.0, 0: 1.0}, {2: 40.0, 1: 20.0}]
    cosine = searched(queries, documents, 2, cosine=True)
    assert cosine == [{0: 1.0, 2: np.float32(0.6)}, {1: 1.0, 2: np.float32(0.8)}]
    documents = np.array(
        [[2**24, 1, 1, -(2**24)], [2**24, 1, 0, -(2**24)], [0, 0, 0, 0]], dtype=np.float32
    )
    assert searched(np.ones((1, 4), dtype=np.float32), documents, 1) == [{0: 2.0}]
    assert searched(drawn(2, 3), drawn(0, 3), 5) == [{}, {}]
    assert searched(drawn(0, 3), drawn(5, 3), 5) == []


@pytest.mark.parametrize("cosine", [True, False])
def test_as_comparing_every_pair_in_many_small_blocks(
    cosine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    queries, documents = drawn(7, 24), drawn(900, 24, 1)
    for k in (1, 10, 100, 899, 900, 5000):
        scores, expected = (
            find(queries, documents, k, cosine=cosine) for find in (searched, every_pair)
        )
        assert all(
            a == pytest.approx(b, rel=1e-6, abs=1e-6) for a, b in zip(scores, expected, strict=True)
        )


def small_blocks(patch: pytest.MonkeyPatch, *, docs: int = 32, room: int = 16) -> None:
    """Make blocks so small that a few hundred documents are many of them, and candidates soon need
    their room.
    """
    for name, value in {
        "_MOST": docs,
        "_FEWEST": 1,
        "QUERIES": 3,
        "PAIRS": 5,
        "_ROOM": room,
    }.items():
        patch.setattr(module, name, value)


@pytest.mark.parametrize(
    ("d", "cosine"),
    [
        (1, False),
        (7, True),
        (16, False),
        (17, True),
        (65, False),
        (384, True),
        (767, False),
        (1024, True),
    ],
)
def test_the_place_of_a_document_changes_no_bit(d: int, cosine: bool) -> None:
    documents, queries = drawn(257, d), drawn(5, d, 1)
    usual = searched(queries, documents, 300, cosine=cosine)
    order = np.random.default_rng(2).permutation(257)
    moved = searched(queries, documents[order], 300, cosine=cosine)
    assert [{int(order[row]): score for row, score in scores.items()} for scores in moved] == usual
    few = searched(queries, documents[100:103], 300, cosine=cosine)
    assert few == [{row: scores[row + 100] for row in range(3)} for scores in usual]


@pytest.mark.parametrize(("cosine", "k"), [(True, 1), (False, 10), (True, 150)])
def test_no_memory_changes_a_bit(cosine: bool, k: int) -> None:
    queries, documents = drawn(50, 48), drawn(20_000, 48, 1)
    usual = searched(queries, documents, k, cosine=cosine)
    for memory in (1, 50 << 20, 1 << 30):
        assert searched(queries, documents, k, cosine=cosine, memory=memory) == usual


@pytest.mark.parametrize("memory", [None, 1])
def test_all_tied_with_the_last_come_however_many(
    memory: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    documents = np.zeros((500, 2), dtype=np.float32)
    documents[::100] = [1, 0]
    queries = np.array([[1, 0], [0, 1], [-1, 1]], dtype=np.float32)
    best = searched(queries, documents, 3, memory=memory)
    assert set(best[0]) == {0, 100, 200, 300, 400}
    assert set(best[1]) == set(range(500))
    assert set(best[2]) == set(range(500)) - {0, 100, 200, 300, 400}


def test_documents_pass_once_for_all_queries_divided_as_numpy_does() -> None:
    documents = Held(drawn(30_000, 4))
    list(search(drawn(700, 4, 1), documents, 3, cosine=False, label=""))
    blocks = documents.reads[:4]
    assert blocks == [(0, 8192), (8192, 16384), (16384, 24576), (24576, 30000)]
    assert (
        sum(stop - start for start, stop in documents.reads) <= 2 * 30_000
    )  # and once more, at most, for the scores
    vectors = drawn(100, 33)
    vectors[7] = 0
    divided = unit(vectors)
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert divided.dtype == np.float32
    assert divided.tobytes() == (vectors / np.where(norm > 0, norm, 1)).tobytes()
    assert all(unit(vectors[i : i + 1]).tobytes() == divided[i].tobytes() for i in range(100))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_vectors_that_are_no_numbers_end_the_search(bad: float) -> None:
    documents = np.ones((5, 4), dtype=np.float32)
    documents[3, 1] = bad
    with pytest.raises(UserError, match=r"^vectors are NaN, infinite or too large"):
        list(search(np.ones((1, 4), dtype=np.float32), Held(documents), 2, cosine=False, label=""))

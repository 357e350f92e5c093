"""The compiled search of weighted terms returns the lists of scipy's products, to the last bit."""

import numpy as np
import pytest

from ranktilt.data.cache import Vectors
from ranktilt.rankers import sparse
from ranktilt.rankers.dense.search import Matches
from ranktilt.rankers.lexical import weighted_search
from ranktilt.rankers.lexical.compiler import Compiler


class Texts:
    """Vectors of texts in memory, as an encoder's cache gives them."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.shape = vectors.shape

    def read(self, start: int, stop: int) -> Vectors:
        return self.vectors[start:stop]


def weighted_texts(rng: np.random.Generator, count: int, *, steps: int) -> Vectors:
    """Return 6 of 40 terms and their weights for each text; few steps make many scores equal."""
    terms = rng.permuted(np.tile(np.arange(40), (count, 1)), axis=1)[:, :6]
    weights = rng.integers(0, steps, (count, 6)) / 3
    return np.concatenate([terms, weights], axis=1).astype(np.float32)


def best(
    queries: Vectors, texts: Vectors, depth: int, monkeypatch: pytest.MonkeyPatch, least: int
) -> list[Matches]:
    """Search with the compiled code from so many additions; sort each list by score and row."""
    monkeypatch.setattr(weighted_search, "COMPILED_FROM", least)
    matches = sparse._search(queries, Texts(texts), depth, cosine=False, label="searching")
    orders = [(rows, scores, np.lexsort((rows, -scores))) for rows, scores in matches]
    return [(rows[order], scores[order]) for rows, scores, order in orders]


def assert_same(lists: list[Matches], expected: list[Matches]) -> None:
    assert len(lists) == len(expected)
    for (rows, scores), (expected_rows, expected_scores) in zip(lists, expected, strict=True):
        assert rows.tolist() == expected_rows.tolist()
        assert scores.tobytes() == expected_scores.tobytes()


@pytest.mark.parametrize("seed", range(60))
def test_compiled_lists_equal_products(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    # Parts of 50 texts: from the second on, a query's worst text so far is a bound.
    monkeypatch.setattr(sparse, "_TEXTS_AT_ONCE", 50)
    steps = (3, 1000)[seed % 2]
    texts = weighted_texts(rng, 30 + 10 * seed, steps=steps)
    queries = weighted_texts(rng, 9, steps=steps)
    depth = (1, 7, 100)[seed % 3]
    expected = best(queries, texts, depth, monkeypatch, 1 << 60)
    assert_same(best(queries, texts, depth, monkeypatch, 0), expected)


def test_scores_that_float32_cannot_distinguish_are_tied(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1 + 2**-30 and 1 are one number in float32: at depth 1 both texts are returned.
    near = [[0, 1, 1, 2**-30], [0, 2, 1, 0]]
    texts, query = np.array(near, np.float32), np.array([[0, 1, 1, 1]], np.float32)
    for least in (1 << 60, 0):
        ((rows, scores),) = best(query, texts, 1, monkeypatch, least)
        assert (rows.tolist(), scores.tolist()) == ([0, 1], [1.0, 1.0])


@pytest.mark.parametrize("weight", [-1.0, 1e-30])
def test_weights_below_zero_or_next_to_it_are_multiplied_by_scipy(
    weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = np.array([[0, 1, 1, weight]], np.float32)
    expected = best(texts, texts, 1, monkeypatch, 1 << 60)
    monkeypatch.setattr(weighted_search, "compiler", lambda: pytest.fail("numba was asked for"))
    assert_same(best(texts, texts, 1, monkeypatch, 0), expected)


def test_without_numba_scipy_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Compiler(search_lists=None, reason="numba is not installed")
    monkeypatch.setattr(weighted_search, "compiler", lambda: missing)
    texts = weighted_texts(np.random.default_rng(0), 20, steps=1000)
    assert [len(rows) for rows, _ in best(texts[:2], texts, 3, monkeypatch, 0)] == [3, 3]

"""The map: both twins of each pair, the same with each seed, clusters that stay clusters."""

import numpy as np
import pytest

from ranktilt.probes.similarity import Map, scatter
from ranktilt.probes.vectors import DocumentVectors
from tests.probes.lexical_vectors import LetterVectors
from tests.toy import collection_of

pytest.importorskip("sklearn")


def texts(count: int) -> list[dict[str, str]]:
    """Half of the pairs are about a, half about b."""
    return [
        {
            "id": f"{n}-{s}",
            "text": ("a" if n % 2 else "b") * 30 + "c" * (n % 5) + end,
            "source": s,
            "origin": f"{n}-human",
        }
        for n in range(count)
        for s, end in (("human", ""), ("llm", "d"))
    ]


def drawn(count: int, most: int = 100, seed: int = 0) -> Map | None:
    whole = collection_of(texts(count), {}, {})
    pairs = np.stack([np.arange(0, 2 * count, 2), np.arange(1, 2 * count, 2)], axis=1)
    return scatter(whole, DocumentVectors.of(whole, LetterVectors("abcd")), pairs, most=most, seed=seed)


def test_twins_stand_in_the_same_order() -> None:
    found = drawn(10)
    assert found is not None
    assert found.sources == ("human",) * 10 + ("llm",) * 10
    assert [name.partition("-")[0] for name in found.ids] == [str(n) for n in range(10)] * 2
    assert (found.pairs, found.of, len(found.x), len(found.y)) == (10, 10, 20, 20)
    assert np.isfinite([found.x, found.y]).all()


def test_of_many_pairs_a_sample_is_shown_with_both_twins() -> None:
    found = drawn(30, most=8)
    assert found is not None
    assert (found.pairs, found.of) == (8, 30)
    assert [name.replace("human", "llm") for name in found.ids[:8]] == list(found.ids[8:])


def test_near_vectors_are_near_points() -> None:
    found = drawn(40)
    assert found is not None
    points = np.stack([found.x, found.y], axis=1)
    about = np.array([int(name.partition("-")[0]) % 2 for name in found.ids])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (about[apart.argmin(axis=1)] == about).all()


def test_a_seed_gives_one_picture() -> None:
    one, again = drawn(12, seed=3), drawn(12, seed=3)
    assert one is not None
    assert again is not None
    assert one.x.tolist() == again.x.tolist()
    assert one.ids == again.ids


@pytest.mark.parametrize(("count", "shown"), [(3, False), (4, True)])
def test_below_four_pairs_there_is_none(count: int, shown: bool) -> None:
    assert (drawn(count) is not None) is shown


def test_pairs_without_a_vector_are_not_shown() -> None:
    whole = collection_of([*texts(6), {"id": "x", "text": "z", "source": "human"}], {}, {})
    pairs = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [12, 9]])
    found = scatter(whole, DocumentVectors.of(whole, LetterVectors("abcd")), pairs, most=100)
    assert found is not None
    assert (found.pairs, found.of) == (4, 5)
    assert "x" not in found.ids


@pytest.mark.parametrize(("count", "perplexity"), [(4, 7 / 3), (40, 79 / 3), (60, 30.0)])
def test_the_perplexity_is_30_or_what_few_points_allow(
    count: int, perplexity: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn import manifold

    asked = list[float]()

    class Quick:
        def __init__(self, *, perplexity: float, init: str, random_state: int) -> None:
            asked.append(perplexity)

        def fit_transform(self, vectors: np.ndarray) -> np.ndarray:
            return vectors[:, :2]

    monkeypatch.setattr(manifold, "TSNE", Quick)
    drawn(count)
    assert asked == [pytest.approx(perplexity)]

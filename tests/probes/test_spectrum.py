"""Singular values against numpy's, identical twins, and a source that is known to be concentrated."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktilt as rt
from ranktilt.errors import UserError
from ranktilt.probes.spectrum import SpectrumProbe, singular_values, spectrum
from ranktilt.probes.vectors import DocumentVectors
from tests.llm.server import Server, vector
from tests.toy import collection_of, versions


class Stored:
    """Vectors in memory, read as from the cache."""

    def __init__(self, vectors: np.ndarray[Any, Any]) -> None:
        self.vectors, self.shape = vectors, vectors.shape

    def take(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return self.vectors[rows]


def vectors_of(human: np.ndarray[Any, Any], llm: np.ndarray[Any, Any]) -> tuple[DocumentVectors, str, Any]:
    both = np.concatenate([human, llm]).astype(np.float32)
    rows = np.arange(len(human)), np.arange(len(human), len(both))
    return DocumentVectors(Stored(both), np.arange(len(both))), "llm", rows


def test_as_numpy_down_to_the_300th_value() -> None:
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(2_000, 384)) * np.geomspace(1, 1e-3, 384)
    values, directions = singular_values(iter(np.array_split(matrix, 7)), 384)
    _, expected, right = np.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(values[:300], expected[:300], rtol=1e-6)
    rounded = singular_values(iter([matrix.astype(np.float32).astype(float)]), 384)[0]
    assert (abs(rounded - expected) <= 2**-23 * np.linalg.norm(matrix)).all()
    np.testing.assert_allclose(np.abs((directions[:, :20] * right[:20].T).sum(0)), 1, atol=1e-6)


def test_identical_twins_have_relative_values_of_one() -> None:
    human = np.random.default_rng(1).normal(size=(80, 16))
    found = spectrum(*vectors_of(human, human))
    assert (found.relative == 1).all()
    assert found.heads[0] == found.heads[1]
    assert found.interval == (0, 0)
    assert found.leading.g == 0


def test_a_concentrated_source_is_found_to_be_one() -> None:
    generator = np.random.default_rng(2)
    human = generator.normal(size=(400, 20))
    llm = human * np.where(np.arange(20) < 2, 1.5, 0.8)
    found = spectrum(*vectors_of(human, llm))
    assert found.relative[0] > 1.3
    assert found.relative[-1] < 0.9
    assert found.interval[0] > 0
    assert found.pairs == 400
    assert found.heads[1] == pytest.approx(
        (np.linalg.svd(llm.astype(np.float32))[1][:2] ** 2).sum() / (llm**2).sum(), rel=1e-4
    )


def test_values_that_the_reference_lacks_have_no_ratio() -> None:
    human, llm = np.zeros((9, 3)), np.random.default_rng(3).normal(size=(9, 3))
    human[:, 0] = 1
    found = spectrum(*vectors_of(human, llm))
    assert found.relative == pytest.approx(np.linalg.svd(llm, compute_uv=False)[:1] / 3)


def test_values_within_rounding_are_not_compared() -> None:
    """One dimension is dead, and one below what float32 keeps: of their noise no ratio is shown."""
    generator = np.random.default_rng(5)
    sides = generator.normal(size=(2, 400, 8)) * np.array([8, 4, 2, 1, 1, 1, 1e-7, 0])
    turned = sides @ np.linalg.qr(generator.normal(size=(8, 8)))[0] + 3
    exact = [np.linalg.svd(side, compute_uv=False) for side in turned]
    vectors, _, rows = vectors_of(*turned)
    found = spectrum(vectors, "llm", rows)
    known = len(found.relative)
    assert known == 7, "six and the constant"
    assert found.relative == pytest.approx(exact[1][:known] / exact[0][:known], rel=1e-5)
    for values, true in ((found.reference, exact[0]), (found.values, exact[1])):
        assert (abs(values - true)[:known] <= found.rounding).all()
    docs = versions({"human": "tt", "llm": "tt"})
    says = SpectrumProbe().describe(collection_of(docs, {}, {}), "human", (found,)).figures[0].says
    assert says.endswith(f"{found.relative[-1]:.3f} at the last that is above rounding.")
    coarse = spectrum(DocumentVectors(vectors.stored, vectors.row, "float16"), "llm", rows)
    assert coarse.rounding > 1_000 * found.rounding
    with np.errstate(invalid="ignore"):
        nothing = spectrum(*vectors_of(np.zeros((9, 3)), np.zeros((9, 3))))
    says = SpectrumProbe().describe(collection_of(docs, {}, {}), "human", (nothing,)).figures[0].says
    assert says == "llm: no value is above rounding."


def test_too_few_twins_are_refused_with_a_way_out() -> None:
    few = vectors_of(*np.random.default_rng(4).normal(size=(2, 10, 16)))
    with pytest.raises(UserError, match=r"16 values need more than 16 pairs of twins, got 10 pairs of twins; ask for "
                       r"fewer values: spectrum\(values=N\)"):  # fmt: skip
        spectrum(*few)
    assert len(spectrum(*few, values=5).values) == 5
    with pytest.raises(UserError, match="values must be a whole number of at least 1, got 0"):
        SpectrumProbe(values=0)


def test_vectors_of_a_server_whose_length_only_its_answers_tell(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against numpy's values; the second explanation asks for nothing again."""
    texts = {s: [f"text {n} {s}" for n in range(20)] for s in ("human", "llm")}
    whole = collection_of(versions(texts), {"q": "text"}, {})
    sides = [np.linalg.svd(np.array([vector(text) for text in found]), compute_uv=False) for found in texts.values()]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        spectral, near = rt.explain(whole, ["spectrum", "similarity"], rt.ranker("dense:openai:tiny")).results
        before = len(server.requests)
        rt.explain(whole, ["spectrum"], rt.ranker("dense:openai:tiny"))
        assert len(server.requests) == before
    assert spectral.rows[0]["values"] == len(vector("a")) == len(sides[0])
    np.testing.assert_allclose(spectral.figures[0].series["llm"], sides[1] / sides[0], rtol=1e-4)
    cosines = [float(np.dot(vector(a), vector(b))) for a, b in zip(*texts.values(), strict=True)]
    assert near.rows[0]["mean"] == pytest.approx(np.mean(cosines), abs=1e-5)

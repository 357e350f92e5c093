"""A direction that sources differ in is removed from documents, without reading them anew."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from ranktilt import Collection, DataError, ranker
from ranktilt.mitigation.projection import fit_direction
from ranktilt.mitigation.query_split import relevant_origins
from ranktilt.parallel.memory_limits import MemoryLimits, limit_memory
from ranktilt.rankers.dense.direction import Direction
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.dense.search import score_pairs, search, unit
from ranktilt.rankers.lexical.bm25 import TFIDF
from ranktilt.reporting.sentences.mitigation.mitigate import direction_sentence
from ranktilt.statistics.permutation import sign_flip_length_p, sign_flip_p
from tests.mitigation.builders import judged, same_bits, text_column
from tests.rankers.dense.test_search import Held, drawn
from tests.rankers.tiny import tiny_model
from tests.refusals import refused
from tests.toy import collection_of, write

SPEC = {
    "model": "dense:some",
    "fingerprint": "abc",
    "cosine": True,
    "reference": "human",
    "source": "llm",
    "twins": 2,
    "left_out": 0,
    "length": 0.25,
    "random_length": 0.125,
    "p": 0.0009990,
}


def direction(size: int = 8, seed: int = 3) -> Direction:
    vector = np.random.default_rng(seed).standard_normal(size)
    return Direction(vector=vector / np.linalg.norm(vector), spec=SPEC, origins=("o1", "o2"))


def explicit(
    documents: npt.NDArray[np.float32], along: Direction, strength: float
) -> npt.NDArray[np.float64]:
    """v − s(v·u)u, row by row in Python."""
    rows = documents.astype(np.float64)
    return np.array([row - strength * float(row @ along.vector) * along.vector for row in rows])


def test_nothing_is_left_along_the_direction_and_the_signs_of_twins_are_turned() -> None:
    along, vectors = direction(384), unit(drawn(50, 384))
    removed = along.remove(vectors)
    assert np.abs(removed @ along.vector).max() < 1e-6
    assert along.remove(vectors, 0.25) @ along.vector == pytest.approx(
        0.75 * (vectors @ along.vector), abs=1e-6
    )
    assert removed == pytest.approx(explicit(vectors, along, 1.0), abs=1e-6)
    across = drawn(1, 384)[0] - (drawn(1, 384)[0] @ along.vector) * along.vector
    assert removed @ across == pytest.approx(vectors @ across, abs=1e-5)
    rng = np.random.default_rng(0)
    few = rng.standard_normal((9, 3)) + 0.4
    signs = 1 - 2 * ((np.arange(512)[:, None] >> np.arange(9)) & 1)
    lengths = np.linalg.norm(signs @ few, axis=1)
    assert sign_flip_length_p(few) == np.mean(lengths >= np.linalg.norm(few.sum(axis=0)) - 1e-9)
    line = rng.standard_normal(60) + 0.3
    assert sign_flip_length_p(line[:, None], resamples=500) == sign_flip_p(line, resamples=500)
    assert sign_flip_length_p(rng.standard_normal((80, 20)) + 1) == 1 / 1001
    null = [
        sign_flip_length_p(rng.standard_normal((30, 5)), resamples=199, seed=s) for s in range(200)
    ]
    assert 0.01 <= np.mean(np.array(null) <= 0.05) <= 0.1
    assert sign_flip_length_p(np.zeros((20, 3))) == 1


@pytest.mark.parametrize("cosine", [True, False])
@pytest.mark.parametrize("memory", [None, 1])
def test_scores_are_those_of_projected_documents(cosine: bool, memory: int | None) -> None:
    queries, documents, along = drawn(5, 8, 1), drawn(40, 8, 2), direction()

    def project(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return along.remove(vectors, 0.7)

    with limit_memory(MemoryLimits(memory=memory)):
        results = list(
            search(queries, Held(documents), 6, cosine=cosine, label="", project=project)
        )
    sides = (unit(queries), unit(documents)) if cosine else (queries, documents)
    expected = sides[0].astype(np.float64) @ explicit(sides[1], along, 0.7).T
    for (rows, scores), every in zip(results, expected, strict=True):
        assert sorted(rows) == sorted(np.argsort(-every)[:6])
        assert scores == pytest.approx(every[rows], abs=1e-6)
        query = np.full(6, np.flatnonzero((expected == every).all(axis=1))[0])
        again = score_pairs(
            queries, Held(documents), query=query, row=rows, cosine=cosine, project=project
        )
        assert again.tobytes() == scores.tobytes()


def test_a_direction_is_read_back_and_files_and_options_that_give_none_are_refused(
    tmp_path: Path,
) -> None:
    saved = direction()
    loaded = Direction.load(saved.save(tmp_path / "direction.json"))
    assert loaded.vector.tobytes() == saved.vector.tobytes()
    assert (loaded.spec, loaded.origins) == (saved.spec, saved.origins)
    assert (
        "over 2 twins; their mean difference has length 0.25, with random signs 0.125 (p < .001)"
        in direction_sentence(loaded.spec)
    )
    assert direction_sentence({**loaded.spec, "p": 0.3}).endswith("(p = .300)")
    with pytest.raises(DataError, match="ranktilt-direction"):
        Direction.load(write(tmp_path / "none.json", "{}"))
    with refused("a direction of 8 numbers, by dense:some, does not fit vectors of 4"):
        direction().remove(drawn(2, 4))
    with refused("dense: expected project_strength of 0 to 1, got 1.5"):
        Dense("minilm", project="u.json", project_strength=1.5)
    with refused("dense: project_strength needs a direction: project=FILE"):
        Dense("minilm", project_strength=0.5)
    text = "dense:minilm(project=u.json,project_strength=0.5)@10"
    assert repr(ranker(text)) == text


@pytest.fixture(scope="module")
def texts() -> Collection:
    return text_column(20)


def vectors(dense: Dense, collection: Collection) -> npt.NDArray[np.float32]:
    """Vectors of all documents, as the model gives them."""
    stored, row = dense.encoder.encode(collection.texts().to_list(), "document", "")
    return stored.take(row)


@pytest.mark.neural
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_direction_is_the_mean_difference_of_twins(
    tiny: Path, texts: Collection, similarity: str
) -> None:
    dense = Dense(str(tiny), similarity=similarity)
    left = relevant_origins(judged(texts, ["q4", "q5"]))
    assert left == {f"o{n}" for n in (4, 5, 6, 7)}
    direction = fit_direction(texts, dense, source="llm", leave_out=left)
    every = vectors(dense, texts)
    every = unit(every) if similarity == "cosine" else every
    row = {name: n for n, name in enumerate(texts.ids)}
    learned = [n for n in range(20) if f"o{n}" not in left]
    mean = np.mean([every[row[f"{n}-llm"]] - every[row[f"{n}-human"]] for n in learned], axis=0)
    assert direction.vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
    assert direction.spec["length"] == pytest.approx(np.linalg.norm(mean), rel=1e-5)
    assert (direction.spec["twins"], direction.spec["left_out"], len(direction.origins)) == (
        16,
        4,
        16,
    )
    assert direction.spec["p"] < 0.01


@pytest.mark.neural
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_search_without_the_direction(
    tiny: Path, texts: Collection, similarity: str, tmp_path: Path
) -> None:
    dense = Dense(str(tiny), similarity=similarity, k=9)
    along = fit_direction(texts, dense, source="llm")
    file = str(along.save(tmp_path / "u.json"))
    plain = dense.rank(texts)
    assert same_bits(replace(dense, project=file, project_strength=0.0).rank(texts), plain)
    removing = replace(dense, project=file)
    run = removing.rank(texts)
    stored, row = dense.encoder.encode(texts.queries_with_judgments["text"].to_list(), "query", "")
    queries, documents = stored.take(row), vectors(dense, texts)
    if similarity == "cosine":
        queries, documents = unit(queries), unit(documents)
    expected = queries.astype(np.float64) @ explicit(documents, along, 1.0).T
    query = run.entry_queries
    assert run.scores == pytest.approx(expected[query, run.docs], rel=1e-4, abs=1e-5)
    assert not same_bits(run, plain)
    again = removing.rank(texts, run)
    assert same_bits(again, run)
    assert (
        run.spec["fitted_on"]
        == again.spec["fitted_on"]
        == {"file": file, "queries": list(texts.queries_with_judgments["id"])}
    )
    assert run.spec["direction"] == dict(along.spec)


@pytest.mark.neural
def test_other_origins_are_not_learned_from_and_none_is_refused(
    tiny: Path, texts: Collection, tmp_path: Path
) -> None:
    test = judged(texts, ["q4", "q5"])
    along = fit_direction(texts, Dense(str(tiny)), source="llm", leave_out=relevant_origins(test))
    file = along.save(tmp_path / "u.json")
    run = Dense(str(tiny), project=str(file)).rank(test)
    assert run.spec["fitted_on"]["queries"] == []
    candidates = TFIDF(k=5).rank(texts)
    both = Dense(str(tiny), project=str(file)).rank(texts, candidates)
    assert both.spec["fitted_on"]["queries"] == [
        q for q in texts.queries_with_judgments["id"] if q not in ("q4", "q5")
    ]
    dense = Dense(str(tiny))
    lone = collection_of(
        [{"id": s, "text": "x y", "source": s, "origin": s} for s in ("human", "llm")], {}, {}
    )
    with refused(
        "a projection needs twins: no document of 'llm' shares its origin with one of 'human'"
    ):
        fit_direction(lone, dense, source="llm")
    with refused("a projection needs twins to learn from, and all 20 are left out"):
        fit_direction(texts, dense, source="llm", leave_out=texts.docs["origin"])
    same = [{"id": s, "text": "x y", "source": s, "origin": "o"} for s in ("human", "llm")]
    with refused(
        "a projection needs a direction, and the vectors of 1 twin of human and llm do not differ "
        "on average"
    ):
        fit_direction(collection_of(same, {}, {}), dense, source="llm")
    file = str(fit_direction(texts, dense, source="llm").save(tmp_path / "u.json"))
    other_model = tiny_model(tmp_path / "other", seed=1)
    start = f"{file} is a direction of {dense!r}; it does not fit vectors of"
    with refused(f"{start} dense:{other_model}"):
        Dense(str(other_model), project=file).check()
    with refused(f"{start} dense:{tiny}(similarity=dot)"):
        Dense(str(tiny), similarity="dot", project=file).check()

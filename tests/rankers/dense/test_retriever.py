"""Dense retrieval: exact search, and scores that cannot tell copies apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Collection, Run
from ranktilt.executing.memory_limits import MemoryLimits, limited
from ranktilt.models.catalogue import MODELS, Model
from ranktilt.rankers.dense import retriever as dense
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.lexical.bm25 import TFIDF
from tests.rankers.tiny import tiny_model
from tests.refusals import refused
from tests.toy import collection_of, toy

WORDS = ["red", "apples", "grow", "on", "old", "trees", "the", "river", "carries", "water", "clock", "shows", "hour"]


def texts(n: int, seed: int = 0) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, size=draw.integers(1, 15))) for _ in range(n)]


def collection(*, docs: int = 30, queries: int = 9, sources: tuple[str, ...] = ("human",)) -> Collection:
    """Documents of random words, word for word the same in every source."""
    rows = [
        {"id": f"{n}-{source}", "text": text, "source": source, "origin": f"{n}"}
        for source in sources
        for n, text in enumerate(texts(docs))
    ]
    asked = {f"q{n}": text for n, text in enumerate(texts(queries, seed=1))}
    relevant = {f"{n}-{source}": 1 for n in range(0, docs, 4) for source in sources}
    return collection_of(rows, asked, dict.fromkeys(asked, relevant))


def reference(folder: Path, found: Collection, similarity: str) -> np.ndarray[Any, Any]:
    """Scores of every query and document by sentence-transformers and plain products."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    sides = [model.encode(list(side)).astype(np.float64) for side in (found.judged["text"], found.texts())]
    if similarity == "cosine":
        sides = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    return sides[0] @ sides[1].T


def rows(run: Run) -> list[list[int]]:
    return [run.docs[a:b].tolist() for a, b in zip(run.offsets[:-1], run.offsets[1:], strict=True)]


@pytest.mark.neural
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("k", [1, 7, 100])
def test_search_is_exact(tiny: Path, similarity: str, k: int) -> None:
    found = collection()
    run = Dense(str(tiny), similarity=similarity, precision="float32", k=k).rank(found)
    expected = reference(tiny, found, similarity)
    for query, chosen in enumerate(rows(run)):
        best = np.sort(expected[query])[::-1][:k]
        assert len(chosen) == min(k, found.docs.height)
        assert run.scores[run.offsets[query] : run.offsets[query + 1]] == pytest.approx(best, rel=1e-5)
        assert expected[query, chosen] == pytest.approx(best, rel=1e-5)


@pytest.mark.neural
def test_the_models_own_similarity_is_the_default(tiny: Path, tmp_path: Path) -> None:
    found = collection()
    dotted = tiny_model(tmp_path, similarity="dot")
    for folder, similarity in ((tiny, "cosine"), (dotted, "dot")):
        assert Dense(str(folder)).rank(found) == Dense(str(folder), similarity=similarity).rank(found)
    assert Dense(str(tiny)).rank(found) != Dense(str(tiny), similarity="dot").rank(found)


@pytest.mark.neural
@pytest.mark.parametrize("sizes", [MemoryLimits(1), MemoryLimits(1 << 20), MemoryLimits()])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_copies_get_the_same_scores_to_the_last_bit(
    tiny: Path, own_cache: Path, sizes: MemoryLimits, precision: str
) -> None:
    found = collection(docs=11, queries=5, sources=("human", "llm"))
    with limited(sizes):
        run = Dense(str(tiny), precision=precision).rank(found)
    for query, chosen in enumerate(rows(run)):
        score = dict(zip(chosen, run.scores[run.offsets[query] : run.offsets[query + 1]].tolist(), strict=True))
        assert all(score[row] == score[row + 11] for row in range(11))


@pytest.mark.neural
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_candidate_scores_as_in_a_search_of_everything(tiny: Path, similarity: str) -> None:
    found = collection(sources=("human", "llm"))
    searched = Dense(str(tiny), similarity=similarity).rank(found)
    candidates = TFIDF(k=9).rank(found)
    run = Dense(str(tiny), similarity=similarity).rank(found, candidates)
    for query in range(len(run.queries)):
        part, whole = (slice(one.offsets[query], one.offsets[query + 1]) for one in (run, searched))
        score = dict(zip(searched.docs[whole].tolist(), searched.scores[whole].tolist(), strict=True))
        assert sorted(run.docs[part]) == sorted(rows(candidates)[query])
        assert [score[row] for row in run.docs[part].tolist()] == run.scores[part].tolist()


@pytest.mark.neural
def test_a_reranked_run_says_where_it_comes_from_and_is_cut_where_a_depth_is_typed(tiny: Path, tmp_path: Path) -> None:
    found = collection(sources=("human", "llm"))
    candidates = TFIDF(k=9).rank(found)
    run = Dense(str(tiny), max_tokens=5).rank(found, candidates)
    assert run.name == f"dense:{tiny}(max_tokens=5)"
    assert (run.spec["candidates"]["ranker"], run.spec["precision"]) == ("tfidf@9", "float32")
    assert run.spec["model"]["folder"] == str(tiny)
    other = Dense(str(tiny_model(tmp_path, seed=1))).provenance()
    assert other["model"]["fingerprint"] != run.spec["model"]["fingerprint"]
    assert set(other["packages"]) == {"torch", "transformers", "sentence-transformers"}
    cut = run.spec["truncated"]
    assert (cut["limit"], set(cut["share"])) == (5, {"human", "llm"})
    assert cut["share"]["human"] == cut["share"]["llm"] > 0
    assert [len(chosen) for chosen in rows(run)] == [len(chosen) for chosen in rows(candidates)]
    best = Dense(str(tiny), max_tokens=5, k=4).rank(found, candidates)
    assert rows(best) == [chosen[:4] for chosen in rows(run)]


@pytest.mark.neural
@pytest.mark.parametrize(
    ("written", "typed", "expected"),
    [
        pytest.param({}, {}, ("cls", False, "query: ", ""), id="a bare folder is used as the table says"),
        pytest.param({}, {"similarity": "cosine"}, ("cls", True, "query: ", ""), id="a typed similarity comes first"),
        pytest.param({}, {"pooling": "mean"}, ("mean", False, "query: ", ""), id="so does a typed pooling"),
        pytest.param({}, {"query_prefix": "", "document_prefix": "d "}, ("cls", False, "", "d "), id="and a prefix"),
        pytest.param({"modules": True}, {}, ("auto", False, "query: ", ""), id="the folder's own pooling stays"),
    ],
)
def test_the_model_table_fills_in_what_files_do_not_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: dict[str, bool], typed: dict[str, Any], expected: Any
) -> None:
    folder = tiny_model(tmp_path)
    if not written:
        (folder / "modules.json").unlink()
    entry = Model(
        name=str(folder), kind="dense", hub="some/model", about="", licence="MIT", source="",
        pooling="cls", similarity="dot", query_prefix="query: ",
    )  # fmt: skip
    monkeypatch.setitem(MODELS, entry.spec, entry)
    made = Dense(str(folder), **typed)
    found = made.encoder
    assert (found.pooling, made.cosine, found.prefix("query"), found.prefix("document")) == expected
    assert len(made.rank(toy()).docs) == 18


@pytest.mark.neural
def test_a_similarity_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, similarity="euclidean")
    with refused(f"dense:{folder}: the model asks for 'euclidean', which is not supported; choose cosine or dot"):
        Dense(str(folder)).rank(toy())
    assert len(Dense(str(folder), similarity="dot").rank(toy()).docs) == 18


@given(copies=st.lists(st.integers(1, 3), min_size=1, max_size=8), chosen=st.sets(st.integers(0, 7)))
def test_texts_come_with_all_their_copies(copies: list[int], chosen: set[int]) -> None:
    text = np.random.default_rng(len(copies)).permutation(np.repeat(np.arange(len(copies)), copies))
    some = sorted(chosen & set(text.tolist()))
    expected = sorted((row, 0.5 * t) for row, t in enumerate(text.tolist()) if t in chosen)
    scores = np.array(some, dtype=np.float32) / 2
    found = dense.TextCopies.of(text, len(copies)).rows(np.array(some, dtype=np.int64), scores)
    assert sorted(zip(*(side.tolist() for side in found), strict=True)) == expected

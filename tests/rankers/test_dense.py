"""Dense retrieval: exact search, and scores that cannot tell copies apart."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Collection, Run, UserError, audit, ranker
from ranktilt.rankers import dense, encoder
from ranktilt.rankers.dense import Dense
from tests.rankers.tiny import tiny_model
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
def test_cosine_lies_within_one_and_dot_does_not(tiny: Path) -> None:
    found = collection()
    cosine = Dense(str(tiny), similarity="cosine").rank(found).scores
    dot = Dense(str(tiny), similarity="dot").rank(found).scores
    assert np.abs(cosine).max() <= 1 + 1e-6
    assert np.abs(dot).max() > 2


@pytest.mark.neural
@pytest.mark.parametrize(("cells", "shard"), [(1, 1), (37, 5), (100, 512), (1 << 25, 3), (1 << 25, 512)])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_copies_get_the_same_scores_to_the_last_bit(
    tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, cells: int, shard: int, precision: str
) -> None:
    monkeypatch.setattr(dense, "_CELLS", cells)
    monkeypatch.setattr(encoder, "SHARD", shard)
    found = collection(docs=11, queries=5, sources=("human", "llm"))
    run = Dense(str(tiny), precision=precision).rank(found)
    for query, chosen in enumerate(rows(run)):
        score = dict(zip(chosen, run.scores[run.offsets[query] : run.offsets[query + 1]].tolist(), strict=True))
        assert all(score[row] == score[row + 11] for row in range(11))


@pytest.mark.neural
@pytest.mark.parametrize("cells", [1, 37, 1 << 25])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("k", [3, 1000])
@pytest.mark.parametrize("sources", [("human", "llm"), ("zz", "aa")])
def test_copies_are_exactly_level(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, cells: int, precision: str, k: int, sources: tuple[str, str]
) -> None:
    monkeypatch.setattr(dense, "_CELLS", cells)
    found = collection(sources=sources)
    run = Dense(str(tiny), precision=precision, k=k).rank(found)
    result = audit(found, run, ["nDCG@1", "nDCG@5", "AP@5", "RR@10", "P@3", "R@3"], resamples=100)
    assert [(t.value, t.low, t.high, t.p) for t in result.tilts] == [(0.0, 0.0, 0.0, 1.0)] * 6
    assert result.tied_share(run.name, *sources) == 1.0


@pytest.mark.neural
@pytest.mark.parametrize("cells", [1, 100])
def test_blocks_of_queries_do_not_show(tiny: Path, monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    found = collection()
    whole = Dense(str(tiny)).rank(found)
    monkeypatch.setattr(dense, "_CELLS", cells)
    blocks = Dense(str(tiny)).rank(found)
    assert rows(blocks) == rows(whole)
    assert blocks.scores == pytest.approx(whole.scores, abs=1e-6)


@pytest.mark.neural
def test_many_copies_do_not_push_others_out_of_the_depth(tiny: Path) -> None:
    docs = [{"id": f"copy {n}", "text": "red apples"} for n in range(5)]
    docs += [{"id": text, "text": text} for text in ("old clock", "river water", "sea")]
    found = collection_of(docs, {"q": "red apples"}, {"q": {"sea": 1}})
    assert len(rows(Dense(str(tiny), k=2).rank(found))[0]) == 5
    assert len(rows(Dense(str(tiny), k=6).rank(found))[0]) == 6


@pytest.mark.neural
def test_a_depth_is_filled_although_own_documents_are_dropped(tiny: Path) -> None:
    docs = [{"id": str(n), "text": text} for n, text in enumerate(("red apples", "old clock", "river", "sea", "bell"))]
    found = collection_of(docs, {"0": "red apples", "1": "old clock"}, {"0": {"1": 1}, "1": {"0": 1}})
    run = Dense(str(tiny), k=2).rank(found)
    assert [len(chosen) for chosen in rows(run)] == [2, 2]
    assert all(query not in chosen for query, chosen in enumerate(rows(run)))


@pytest.mark.neural
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_vector_of_zeros_ranks_everywhere_alike(similarity: str, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(self: encoder.Encoder, some: list[str], kind: str, label: str) -> Any:
        return np.zeros((len(some), 4), dtype=np.float32), np.arange(len(some))

    monkeypatch.setattr(encoder.Encoder, "encode", zeros)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Dense(str(tiny), similarity=similarity).rank(toy()).scores.any()


@pytest.mark.neural
def test_the_run_says_which_weights_made_it(tiny: Path, tmp_path: Path) -> None:
    specs = [
        Dense(str(folder), precision="float32").rank(toy()).spec for folder in (tiny, tiny_model(tmp_path, seed=1))
    ]
    assert [spec["model"]["folder"] for spec in specs] == [str(tiny), str(tmp_path)]
    assert specs[0]["model"]["fingerprint"] != specs[1]["model"]["fingerprint"]
    assert {spec["precision"] for spec in specs} == {"float32"}
    assert set(specs[0]["packages"]) == {"torch", "transformers", "sentence-transformers"}


@pytest.mark.neural
def test_a_similarity_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, similarity="euclidean")
    with pytest.raises(UserError) as caught:
        Dense(str(folder)).rank(toy())
    assert str(caught.value) == (
        f"dense:{folder}: the model asks for 'euclidean', which is not supported; choose cosine or dot"
    )
    assert len(Dense(str(folder), similarity="dot").rank(toy()).docs) == 18


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"similarity": "cosin"},
            "unknown similarity of dense 'cosin'; did you mean 'cosine'? (valid: auto, cosine, dot)",
        ),
        (
            {"precision": "bfloat"},
            "unknown precision of dense 'bfloat'; did you mean 'bfloat16'? (valid: auto, float32, bfloat16)",
        ),
        ({"max_tokens": 0}, "dense: expected max_tokens of at least 1, got 0"),
        ({"k": 0}, "dense: expected a depth of at least 1, got @0"),
    ],
)
def test_impossible_options_are_refused_before_any_model_is_looked_for(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        Dense("no/such/model", **options)
    assert str(caught.value) == message


def test_options_are_typed_as_they_print() -> None:
    text = "dense:org/model(similarity=dot,max_tokens=128,precision=float32,device=cuda:0)@50"
    expected = Dense("org/model", similarity="dot", max_tokens=128, precision="float32", device="cuda:0", k=50)
    assert ranker(text) == expected
    assert ranker(repr(expected)) == expected


@given(
    scores=st.lists(st.integers(-3, 3), min_size=1, max_size=8),
    copies=st.lists(st.integers(1, 3), min_size=8, max_size=8),
    k=st.integers(1, 10),
)
def test_the_best_texts_come_with_all_their_copies(scores: list[int], copies: list[int], k: int) -> None:
    text = np.repeat(np.arange(len(scores)), copies[: len(scores)])
    text = np.random.default_rng(len(text)).permutation(text)
    last = sorted(scores, reverse=True)[:k][-1]
    expected = sorted((row, float(scores[t])) for row, t in enumerate(text) if scores[t] >= last)
    found = dense._Copies.of(text, len(scores)).best(np.array(scores, dtype=np.float32), k)
    assert sorted(zip(*(side.tolist() for side in found), strict=True)) == expected

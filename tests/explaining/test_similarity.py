"""Twins beside other pairs: cosines by hand, a baseline in which nobody meets their own twin."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ranktilt.data.cache import StoredVectors
from ranktilt.errors import UserError
from ranktilt.explaining import similarity as module
from ranktilt.explaining import vectors as vectors_module
from ranktilt.explaining.base import Cosines
from ranktilt.explaining.similarity import (
    FOLDS,
    Map,
    Separation,
    Similarity,
    SimilarityProbe,
    _twins_near,
    fold_aucs,
    sample,
    scatter,
    separation,
)
from ranktilt.explaining.vectors import DocumentVectors, require_encoder, row_slices
from ranktilt.registry import ranker
from tests.explaining.checks import LetterVectors
from tests.toy import collection_of, versions

pytest.importorskip("sklearn")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def bed(count: int, *, rewrite: str = "") -> list[dict[str, str]]:
    """Text n is letter n; a rewrite adds letters."""
    return versions(
        {"human": ALPHABET[:count], "llm": [letter + rewrite for letter in ALPHABET[:count]]}
    )


def near(
    docs: list[dict[str, str]], *, letters: str = ALPHABET, map_pairs: int = 0, seed: int = 0
) -> Similarity:
    probe = SimilarityProbe(map_pairs=map_pairs, seed=seed)
    (similarity,) = probe.measure(collection_of(docs, {}, {}), "human", LetterVectors(letters))
    return similarity


def test_twins_and_the_sentence_by_hand() -> None:
    similarity = near(bed(5, rewrite="z"))
    assert similarity.twins.values == pytest.approx(np.full(5, math.sqrt(0.5)))
    assert similarity.twins.range == (-1.0, 1.0)
    assert (similarity.source, similarity.text) == ("llm", "text")
    assert similarity.map is None
    drawn = near(bed(6), map_pairs=5).map
    assert drawn is not None
    assert (drawn.pairs, drawn.of) == (5, 6)
    few = near(bed(5), letters="abcd")
    assert few.twins.undefined == 1
    assert math.isnan(few.twins.values[4])
    similarity = replace(
        near(bed(4)), twins=Cosines(name="twins", values=np.array([0.9, 0.96, 0.98]))
    )
    words = (
        "llm: twins have a median cosine of 0.96, 66.7 % of them above 0.95; for a text and "
        "another text's rewrite it is 0.00"
    )
    for auc, apart in (
        (0.612, "; a classifier tells the sources apart with an AUC of 0.61"),
        (math.nan, ""),
    ):
        separated = replace(
            similarity, separation=Separation(auc=auc, auc_low=auc, auc_high=auc, pairs=3)
        )
        assert _twins_near(separated).sentence == f"{words}{apart} ({similarity.model})"
    nothing = replace(similarity, twins=Cosines(name="twins", values=np.array([math.nan])))
    assert _twins_near(nothing).sentence == (
        f"llm: {similarity.model} vectors cannot be compared, as no pair has one on both sides"
    )


def test_nobody_meets_a_version_of_their_own_text_in_the_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Texts share no letter with anybody but their twin, and each is drawn once.
    again = [{**row, "id": f"{row['id']}-2"} for row in bed(4) if row["source"] == "llm"]
    for seed in range(5):
        similarity = near(bed(9), seed=seed)
        assert similarity.twins.values.tolist() == [1.0] * 9
        assert similarity.other_pairs.values.tolist() == [0.0] * 9
        two_versions = near([*bed(4), *again], seed=seed)
        assert len(two_versions.twins.values) == 8
        assert 0 < two_versions.other_pairs.count <= 8
        assert set(two_versions.other_pairs.values.tolist()) == {0.0}
    docs = [{**row, "text": row["text"] + "a" * n} for n, row in enumerate(bed(12))]
    first, again, reseeded = near(docs, seed=1), near(docs, seed=1), near(docs, seed=2)
    assert (
        first.other_pairs.values.tolist()
        == again.other_pairs.values.tolist()
        != reseeded.other_pairs.values.tolist()
    )
    assert first.twins.values.tolist() == reseeded.twins.values.tolist()
    alone = near(bed(1))
    assert (alone.twins.count, alone.other_pairs.count) == (1, 0)
    monkeypatch.setattr("ranktilt.explaining.similarity.MOST_OTHER_PAIRS", 5)
    assert near(bed(9)).other_pairs.count == 5


def mapped_texts(count: int) -> list[dict[str, str]]:
    """Half of the pairs are about a, half about b."""
    texts = ["ba"[n % 2] * 30 + "c" * (n % 5) for n in range(count)]
    return versions({"human": texts, "llm": [text + "d" for text in texts]})


def maps(docs: list[dict[str, str]], pairs: np.ndarray, most: int = 100) -> list[Map]:
    """The map of these documents, if there is one."""
    collection = collection_of(docs, {}, {})
    points = scatter(
        collection, DocumentVectors.from_ranker(collection, LetterVectors("abcd")), pairs, most=most
    )
    return [] if points is None else [points]


def drawn(count: int, most: int = 100) -> list[Map]:
    return maps(mapped_texts(count), pairs_of(count), most)


def test_map_keeps_twin_order_and_neighbours_and_samples_many_pairs() -> None:
    [drawn_ten], [again], [drawn_few] = drawn(10), drawn(10), drawn(30, most=8)
    assert drawn_ten.sources == ("human",) * 10 + ("llm",) * 10
    assert drawn_ten.ids == tuple(f"{n}-{source}" for source in ("human", "llm") for n in range(10))
    assert (drawn_ten.pairs, drawn_ten.of, len(drawn_ten.x), len(drawn_ten.y)) == (10, 10, 20, 20)
    assert np.isfinite([drawn_ten.x, drawn_ten.y]).all()
    assert (again.x.tolist(), again.ids) == (drawn_ten.x.tolist(), drawn_ten.ids)
    assert (drawn_few.pairs, drawn_few.of) == (8, 30)
    assert [name.replace("human", "llm") for name in drawn_few.ids[:8]] == list(drawn_few.ids[8:])
    assert drawn(3) == []
    assert len(drawn(4)) == 1  # few points have a smaller perplexity than 30
    [drawn_ten] = drawn(40)
    points = np.stack([drawn_ten.x, drawn_ten.y], axis=1)
    about = np.array([int(name.partition("-")[0]) % 2 for name in drawn_ten.ids])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (about[apart.argmin(axis=1)] == about).all()
    pairs = np.array([[0, 6], [1, 7], [2, 8], [3, 9], [12, 10]])
    [drawn_ten] = maps([*mapped_texts(6), {"id": "x", "text": "z", "source": "human"}], pairs)
    assert (drawn_ten.pairs, drawn_ten.of) == (4, 5)
    assert "x" not in drawn_ten.ids


def of(*vectors: tuple[float, ...]) -> DocumentVectors:
    table = np.array(vectors, dtype=np.float32)
    return DocumentVectors(
        stored=StoredVectors(table, np.arange(len(table))), row=np.arange(len(table))
    )


def pairs_of(count: int) -> np.ndarray:
    """Documents 0, 1, … of the reference, then their twins in the same order."""
    return np.stack([np.arange(count), np.arange(count) + count], axis=1)


@pytest.mark.long
def test_differing_sources_are_told_apart_and_equal_ones_are_not() -> None:
    content = np.random.default_rng(0).normal(size=(60, 5))
    content[:, 4] = 7  # a column without spread does no harm
    assert fold_aucs(content, content + np.array([0, 0, 100, 0, 0])).tolist() == [1.0] * FOLDS
    assert fold_aucs(content, content).tolist() == [0.5] * FOLDS
    means = [
        fold_aucs(*np.random.default_rng(seed).normal(size=(2, 400, 3))).mean() for seed in range(5)
    ]
    assert np.mean(means) == pytest.approx(0.5, abs=0.04)
    a, b = np.random.default_rng(3).normal(size=(2, 50, 3))
    assert (
        fold_aucs(a, b, seed=1).tolist()
        == fold_aucs(a, b, seed=1).tolist()
        != fold_aucs(a, b, seed=2).tolist()
    )
    assert len(fold_aucs(np.ones((9, 2)), np.zeros((9, 2)))) == 0
    assert len(fold_aucs(np.ones((90, 2)), np.zeros((90, 2)), np.arange(90) % 9)) == 0
    # Two normal distributions that lie one standard deviation apart: AUC = Φ(1/√2) = .7602.
    drawn = [np.random.default_rng(seed).normal(size=(2, 3000, 1)) for seed in range(3)]
    assert np.mean([fold_aucs(a, b + 1) for a, b in drawn]) == pytest.approx(0.7602, abs=0.01)


def test_folds_never_part_pairs_or_versions_of_a_text() -> None:
    content = np.eye(100)
    aucs = fold_aucs(content, 2 * content)
    assert aucs.mean() == pytest.approx(0.5, abs=0.05)
    aucs, known = [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        texts, rewrites = rng.normal(size=(120, 60)), rng.normal(size=(600, 60))
        numbers = np.repeat(np.arange(120), 5)
        aucs.append(fold_aucs(texts[numbers], rewrites, numbers, seed=seed).mean())
        known.append(fold_aucs(texts[numbers], rewrites, seed=seed).mean())
    assert np.mean(aucs) == pytest.approx(0.5, abs=0.06)
    assert np.mean(known) > 0.58
    rng = np.random.default_rng(0)
    pairs = np.stack([np.repeat(np.arange(60), 5), np.arange(60, 360)], axis=1)
    origin = np.concatenate([np.arange(60), np.repeat(np.arange(60), 5)])
    aucs = separation(of(*rng.normal(size=(360, 40))), pairs, origin)
    assert aucs.auc == pytest.approx(0.5, abs=0.12)
    assert aucs.pairs == 300
    assert aucs.auc_low <= aucs.auc <= aucs.auc_high


def document_vectors() -> DocumentVectors:
    docs = [{"id": text, "title": "aaaa", "text": text} for text in ("a", "b", "aa", "ab", "xyz")]
    return DocumentVectors.from_ranker(collection_of(docs, {}, {}), LetterVectors("ab"))


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def test_vectors_have_length_one_and_parts_cover_them_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = math.sqrt(0.5)
    assert document_vectors().unit(rows(0, 2, 3)) == pytest.approx(
        np.array([[1, 0], [1, 0], [half, half]])
    )
    assert document_vectors().cosines(rows(0, 0, 0), rows(1, 2, 3)) == pytest.approx(
        [0.0, 1.0, math.sqrt(0.5)]
    )
    assert (document_vectors().cosines(np.arange(4), np.arange(4)) <= 1.0).all()
    assert np.isnan(document_vectors().cosines(rows(4, 0), rows(0, 4))).all()
    assert np.isnan(document_vectors().unit(rows(4))).all()
    docs = [{"id": "d0", "title": "a", "text": "b"}, {"id": "d1", "title": "a", "text": "a"}]
    collection = collection_of(docs, {}, {})
    for text, expected in (("text", 0.0), ("title", 1.0), ("title+text", math.sqrt(0.5))):
        vectors_of_text = DocumentVectors.from_ranker(collection, LetterVectors("ab", text=text))
        assert vectors_of_text.cosines(rows(0), rows(1)).tolist() == [pytest.approx(expected)]
    monkeypatch.setattr(vectors_module, "_ROWS_PER_BLOCK", 3)
    assert [list(range(8))[part] for part in row_slices(8)] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert list(row_slices(0)) == []
    a, b = rows(0, 0, 0, 1, 2), rows(1, 2, 3, 3, 3)
    small = document_vectors().cosines(a, b)
    monkeypatch.undo()
    assert small.tolist() == document_vectors().cosines(a, b).tolist()
    content = np.random.default_rng(6).normal(size=(30, 4))
    content[0] = 0
    vectors, origin = of(*content, *content), np.tile(np.arange(30), 2)
    assert separation(vectors, pairs_of(30), origin).pairs == 29
    monkeypatch.setattr(module, "MOST_REGRESSION_PAIRS", 20)
    assert separation(vectors, pairs_of(30), origin).pairs == 20
    part = sample(pairs_of(30), 20, seed=0)
    assert (np.diff(part[:, 0]) > 0).all(), "in their order, and none twice"
    assert (
        part.tolist()
        == sample(pairs_of(30), 20, seed=0).tolist()
        != sample(pairs_of(30), 20, seed=1).tolist()
    )
    few = separation(vectors, pairs_of(2), origin)
    assert few.pairs == 0
    assert all(map(math.isnan, (few.auc, few.auc_low, few.auc_high)))


@pytest.mark.parametrize("spec", ["bm25", "bm25@10>>bm25"])
def test_a_ranker_without_an_encoder_is_refused(spec: str) -> None:
    with pytest.raises(
        UserError, match=r"^similarity needs vectors from an encoder, such as dense:minilm; bm25"
    ):
        require_encoder(ranker(spec))

    class Absent(LetterVectors):
        def check(self) -> None:
            raise UserError("no such folder")

    with pytest.raises(UserError, match=r"^no such folder$"):
        require_encoder(Absent())

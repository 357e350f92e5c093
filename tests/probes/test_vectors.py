"""Cosines of documents: by hand, read a part at a time."""

import math

import numpy as np
import pytest

from ranktilt.errors import UserError
from ranktilt.probes import vectors as module
from ranktilt.probes.vectors import DocumentVectors, parts, require_encoder
from ranktilt.registry import ranker
from tests.probes.lexical_vectors import LetterVectors
from tests.toy import collection_of

TEXTS = ["a", "b", "aa", "ab", "xyz"]


def made(letters: str = "ab") -> DocumentVectors:
    docs = [{"id": f"d{n}", "title": "aaaa", "text": text} for n, text in enumerate(TEXTS)]
    return DocumentVectors.of(collection_of(docs, {}, {}), LetterVectors(letters))


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def test_vectors_have_length_one() -> None:
    half = math.sqrt(0.5)
    assert made().unit(rows(0, 2, 3)) == pytest.approx(np.array([[1, 0], [1, 0], [half, half]]))


def test_a_vector_of_zeros_is_undefined() -> None:
    assert np.isnan(made().unit(rows(4))).all()
    assert np.isnan(made().cosines(rows(4, 0), rows(0, 4))).all()


def test_cosines_by_hand() -> None:
    assert made().cosines(rows(0, 0, 0), rows(1, 2, 3)).tolist() == [
        0.0,
        pytest.approx(1.0),
        pytest.approx(math.sqrt(0.5)),
    ]


def test_a_cosine_is_never_above_one() -> None:
    every = np.arange(4)
    assert (made().cosines(every, every) <= 1.0).all()
    assert made().cosines(every, every) == pytest.approx(np.ones(4))


def test_the_text_is_the_ranker_s_choice() -> None:
    docs = [{"id": "d0", "title": "a", "text": "b"}, {"id": "d1", "title": "a", "text": "a"}]
    whole = collection_of(docs, {}, {})
    for text, expected in (("text", 0.0), ("title", 1.0), ("title+text", math.sqrt(0.5))):
        found = DocumentVectors.of(whole, LetterVectors("ab", text=text))
        assert found.cosines(rows(0), rows(1)).tolist() == [pytest.approx(expected)]


def test_parts_cover_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    assert [list(range(8))[part] for part in parts(8)] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert list(parts(0)) == []
    a, b = rows(0, 0, 0, 1, 2), rows(1, 2, 3, 3, 3)
    small = made().cosines(a, b)
    monkeypatch.undo()
    assert small.tolist() == made().cosines(a, b).tolist()


@pytest.mark.parametrize("spec", ["bm25", "bm25@10>>bm25"])
def test_a_ranker_without_an_encoder_is_refused(spec: str) -> None:
    one = ranker(spec)
    with pytest.raises(UserError, match=r"^similarity needs the vectors of an encoder, such as dense:minilm; bm25"):
        require_encoder(one)


def test_a_model_that_is_not_there_is_found_out_before_anything_is_encoded() -> None:
    class Absent(LetterVectors):
        def check(self) -> None:
            raise UserError("no such folder")

    with pytest.raises(UserError, match=r"^no such folder$"):
        require_encoder(Absent())

"""Twins beside other pairs: cosines by hand, a baseline in which nobody meets their own twin."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ranktilt.probes.base import Cosines
from ranktilt.probes.similarity import Separation, Similarity, SimilarityProbe, _sentence
from tests.probes.lexical_vectors import LetterVectors
from tests.toy import collection_of

pytest.importorskip("sklearn")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def bed(count: int, *, rewrite: str = "") -> list[dict[str, str]]:
    """Text n is letter n; a rewrite adds letters."""
    return [
        {"id": f"{n}-{s}", "text": ALPHABET[n] + end, "source": s, "origin": f"{n}-human"}
        for s, end in (("human", ""), ("llm", rewrite))
        for n in range(count)
    ]


def near(docs: list[dict[str, str]], *, letters: str = ALPHABET, map_pairs: int = 0, seed: int = 0) -> Similarity:
    probe = SimilarityProbe(map_pairs=map_pairs, seed=seed)
    (found,) = probe.measure(collection_of(docs, {}, {}), "human", LetterVectors(letters))
    return found


def test_twins_by_hand() -> None:
    found = near(bed(5, rewrite="z"))
    assert found.cosine.values == pytest.approx(np.full(5, math.sqrt(0.5)))
    assert found.cosine.range == (-1.0, 1.0)
    assert (found.source, found.text) == ("llm", "text")
    assert found.model == f"letters:{ALPHABET}(text=text)" or found.model == f"letters:{ALPHABET}"


def test_nobody_meets_their_own_twin_in_the_baseline() -> None:
    # Texts share no letter with anybody but their twin, and each is drawn once.
    for seed in range(5):
        found = near(bed(9), seed=seed)
        assert found.cosine.values.tolist() == [1.0] * 9
        assert found.baseline.values.tolist() == [0.0] * 9


def test_nor_another_version_of_their_own_text() -> None:
    docs = [*bed(4), *({**row, "id": f"{row['id']}-2"} for row in bed(4) if row["source"] == "llm")]
    for seed in range(5):
        found = near(docs, seed=seed)
        assert len(found.cosine.values) == 8
        assert 0 < found.baseline.count <= 8
        assert set(found.baseline.values.tolist()) == {0.0}


def test_one_pair_has_no_baseline() -> None:
    found = near(bed(1))
    assert (found.cosine.count, found.baseline.count) == (1, 0)
    assert math.isnan(found.baseline.mean)


def test_the_seed_decides_the_baseline_and_not_the_twins() -> None:
    docs = [{**row, "text": row["text"] + "a" * n} for n, row in enumerate(bed(12))]
    one, again, other = near(docs, seed=1), near(docs, seed=1), near(docs, seed=2)
    assert one.baseline.values.tolist() == again.baseline.values.tolist() != other.baseline.values.tolist()
    assert one.cosine.values.tolist() == other.cosine.values.tolist()


def test_texts_without_a_vector_are_undefined() -> None:
    found = near(bed(5), letters="abcd")
    assert found.cosine.undefined == 1
    assert math.isnan(found.cosine.values[4])


def test_the_map_is_made_where_it_is_asked_for() -> None:
    assert near(bed(6)).map is None
    drawn = near(bed(6), map_pairs=5).map
    assert drawn is not None
    assert (drawn.pairs, drawn.of) == (5, 6)


@pytest.mark.parametrize("auc", [0.612, math.nan])
def test_the_sentence(auc: float) -> None:
    found = replace(near(bed(4)), cosine=Cosines("twins", np.array([0.9, 0.96, 0.98])))
    found = replace(found, separation=Separation(auc, auc, auc, 3))
    apart = "" if math.isnan(auc) else "; a classifier tells the sources apart with an AUC of 0.61"
    assert _sentence(found) == (
        "twins have a cosine of 0.96 in the median, 66.7 % above 0.95; a text and the rewrite of another, 0.00"
        f"{apart} ({found.model})"
    )
    nothing = replace(found, cosine=Cosines("twins", np.array([math.nan])))
    assert _sentence(nothing) == f"vectors of {found.model} cannot be compared: no pair has a vector on both sides"


def test_of_many_pairs_the_baseline_is_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktilt.probes.similarity.MOST_OTHERS", 5)
    found = near(bed(9))
    assert (found.cosine.count, found.baseline.count) == (9, 5)

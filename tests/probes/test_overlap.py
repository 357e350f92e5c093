"""Terms of twins: hand-counted sets, and the means that NFCorpus is known for."""

import math
from pathlib import Path

import pytest

from ranktilt.datasets.load import load
from ranktilt.probes.text_probes import OverlapProbe, shared_terms
from tests.toy import collection_of, toy


def texts(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [
        {"id": f"{n}-{s}", "title": "same title", "text": text, "source": s, "origin": f"{n}-human"}
        for s, place in (("human", 0), ("llm", 1))
        for n, text in ((n, pair[place]) for n, pair in enumerate(pairs))
    ]


def test_the_toy_by_hand() -> None:
    found = shared_terms(toy(), "human", "llm")
    # d1: red apples grow on old trees in autumn (8) | apples are red fruits that grow on trees (8): 5 in common
    # d2: the river carries cold water to sea (7) | a river transports water toward the sea (7): 4
    # d3: an old clock shows the hour by its bell (9) | a clock indicates the hour with bell (7, "a" once): 4
    assert found.source == "llm"
    assert found.jaccard.values.tolist() == [pytest.approx(v) for v in (5 / 11, 4 / 10, 4 / 12)]
    assert found.overlap.values.tolist() == [pytest.approx(v) for v in (5 / 8, 4 / 7, 4 / 9)]


def test_the_overlap_is_that_of_the_reference() -> None:
    whole = collection_of(texts(("a b c d", "a b")), {}, {})
    assert shared_terms(whole, "human", "llm").overlap.values.tolist() == [0.5]
    assert shared_terms(whole, "llm", "human").overlap.values.tolist() == [1.0]


def test_titles_are_not_compared() -> None:
    assert shared_terms(collection_of(texts(("x", "y")), {}, {}), "human", "llm").jaccard.values.tolist() == [0.0]


def test_a_side_without_terms_is_undefined() -> None:
    found = shared_terms(collection_of(texts(("a", "a"), ("—", "b"), ("", "")), {}, {}), "human", "llm")
    assert found.overlap.values[0] == 1.0
    assert [math.isnan(v) for v in found.overlap.values] == [False, True, True]
    assert [math.isnan(v) for v in found.jaccard.values] == [False, False, True]
    assert found.overlap.undefined == 2


def test_values_stand_in_the_order_of_the_pairs() -> None:
    shuffled = collection_of(list(reversed(texts(("a", "a"), ("a b", "a"), ("a b c", "a")))), {}, {})
    ratio = {"0-human": 1.0, "1-human": 1 / 2, "2-human": 1 / 3}
    expected = [ratio[name] for name in shuffled.pairs("human", "llm")["a"]]
    assert shared_terms(shuffled, "human", "llm").jaccard.values.tolist() == [pytest.approx(v) for v in expected]


def test_terms_of_nothing() -> None:
    assert OverlapProbe()(collection_of(texts(("—", "—")), {}, {})).summary == (
        "llm: terms cannot be compared: no text of human with a twin has a term."
    )


@pytest.mark.data
def test_nfcorpus_has_the_known_means(shared_data: Path) -> None:
    whole = load(shared_data / "cocktail-nfcorpus")
    found = shared_terms(whole, "human", next(s for s in whole.sources if s != "human"))
    assert (found.jaccard.count, found.overlap.count) == (3633, 3633)
    assert found.jaccard.mean == pytest.approx(0.58, abs=0.01)
    assert found.overlap.mean == pytest.approx(0.69, abs=0.01)

"""Triples: which documents are negatives, how many, and that memory does not grow with them."""

import tracemalloc
from collections import Counter
from itertools import islice

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.collection import Collection
from ranktilt.generation.triples import triples


def collection(relevant: dict[str, list[int]], docs: int = 20, texts: dict[int, str] | None = None) -> Collection:
    """So many documents, called by their numbers, and which are relevant to each query."""
    names = [str(n) for n in range(docs)]
    judged = [(query, str(n), 1) for query, rows in relevant.items() for n in rows]
    return Collection(
        pl.DataFrame({"id": names, "text": [(texts or {}).get(n, f"text {n}") for n in range(docs)]}),
        pl.DataFrame({"id": list(relevant), "text": [f"asked {query}" for query in relevant]}),
        pl.DataFrame(judged, schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}, orient="row"),
    )


def lines(found: Collection, negatives: int, seed: int = 0) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in b"".join(triples(found, negatives, seed=seed)).decode().splitlines()]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 19), min_size=1, max_size=6, unique=True)),
    st.integers(1, 30),
    st.integers(0, 5),
)
def test_negatives_are_others_and_none_comes_twice(relevant: dict[str, list[int]], n: int, seed: int) -> None:
    found = collection(relevant, docs=20, texts={7: "same", 8: "same"})
    rows = lines(found, n, seed)
    for query, positives in relevant.items():
        excluded = {str(p) for p in positives} | ({"7", "8"} if {7, 8} & set(positives) else set())
        expected = min(n, 20 - len(excluded))
        mine = [row for row in rows if row[0] == query]
        assert not {negative for _, _, negative in mine} & excluded
        for positive in positives:
            negatives = [negative for _, shown, negative in mine if shown == str(positive)]
            assert len(negatives) == len(set(negatives)) == expected


def test_every_other_document_is_as_likely() -> None:
    counts = Counter[str]()
    for seed in range(150):
        counts.update(row[2] for row in lines(collection({"a": [3, 11]}), 6, seed))
    assert len(counts) == 18
    assert all(60 < n < 140 for n in counts.values())  # 100 expected, standard deviation 8


def test_nothing_is_held_but_one_piece() -> None:
    found = collection({str(n): [n] for n in range(2_000)}, docs=2_000)
    pieces = triples(found, 1_000)
    next(pieces)
    tracemalloc.start()
    size = sum(map(len, islice(pieces, 1_500)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 15_000_000
    assert peak < 1_000_000

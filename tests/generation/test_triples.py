"""Triples: which documents are negatives, how many, and that memory does not grow with them."""

import tracemalloc
from collections import Counter
from itertools import islice

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.collection import Collection
from ranktilt.generation.triples import TripleRules, triples
from tests.refusals import refused


def collection(relevant: dict[str, list[int]], docs: int = 40, texts: dict[int, str] | None = None) -> Collection:
    """So many documents, called by their numbers, and which are relevant to each query."""
    names = [str(n) for n in range(docs)]
    judged = [(query, str(n), 1) for query, rows in relevant.items() for n in rows]
    return Collection(
        pl.DataFrame({"id": names, "text": [(texts or {}).get(n, f"text {n}") for n in range(docs)]}),
        pl.DataFrame({"id": list(relevant), "text": [f"asked {query}" for query in relevant]}),
        pl.DataFrame(judged, schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}, orient="row"),
    )


def lines(found: Collection, rules: TripleRules, form: str = "ids") -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in b"".join(triples(found, rules, form=form)).decode().splitlines()]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 19), min_size=1, max_size=6, unique=True)),
    st.integers(1, 30),
    st.sampled_from(["positive", "query"]),
    st.integers(0, 5),
)
def test_negatives_are_others_and_none_comes_twice(relevant: dict[str, list[int]], n: int, per: str, seed: int) -> None:
    found = collection(relevant, docs=20, texts={7: "same", 8: "same"})
    rows = lines(found, TripleRules(negatives=n, per=per, seed=seed))
    for query, positives in relevant.items():
        excluded = {str(p) for p in positives} | ({"7", "8"} if {7, 8} & set(positives) else set())
        expected = min(n, 20 - len(excluded))
        mine = [row for row in rows if row[0] == query]
        assert not {negative for _, _, negative in mine} & excluded
        units = [[row for row in mine if row[1] == str(p)] for p in positives] if per == "positive" else [mine]
        assert {row[1] for row in mine} <= {str(p) for p in positives}
        for unit in units:
            negatives = [negative for _, _, negative in unit]
            assert len(negatives) == len(set(negatives)) == expected


def test_every_other_document_is_as_likely() -> None:
    counts = Counter[str]()
    for seed in range(150):
        counts.update(row[2] for row in lines(collection({"a": [3, 11]}, docs=20), TripleRules(negatives=6, seed=seed)))
    assert len(counts) == 18
    assert all(60 < n < 140 for n in counts.values())  # 100 expected, standard deviation 8


def test_negatives_of_a_query_are_dealt_out_evenly_and_at_random() -> None:
    rows = lines(collection({"a": [0, 1, 2]}, docs=500), TripleRules(negatives=300, per="query"))
    assert Counter(row[1] for row in rows) == {"0": 100, "1": 100, "2": 100}
    means = [sum(int(row[2]) for row in rows if row[1] == p) / 100 for p in "012"]
    assert all(200 < mean < 300 for mean in means)  # 250 expected, standard error 13


def test_texts_are_one_line_each() -> None:
    found = collection({"a": [0]}, docs=3, texts={0: "tab\tand\r\nline", 1: "x\u2028y"})
    rows = lines(found, TripleRules(negatives=2), form="text")
    assert {row[:2] for row in rows} == {("asked a", "tab and line")}
    assert {row[2] for row in rows} == {"x y", "text 2"}


def test_nothing_is_held_but_one_piece() -> None:
    found = collection({str(n): [n] for n in range(2_000)}, docs=2_000)
    pieces = triples(found, TripleRules(negatives=1_000))
    next(pieces)
    tracemalloc.start()
    size = sum(map(len, islice(pieces, 1_500)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 15_000_000
    assert peak < 1_000_000


def test_refusals() -> None:
    with refused("expected at least 1 negative, got 0"):
        TripleRules(negatives=0)
    with refused("unknown choice of what triples are counted by 'pair' (valid: positive, query)"):
        TripleRules(per="pair")
    with refused("unknown form of triples 'json' (valid: ids, text)"):
        next(triples(collection({"a": [0]}), TripleRules(), form="json"))

"""The numbers of the explorer, and which queries come first."""

import numpy as np
import polars as pl

from ranktilt import Collection
from ranktilt.reporting.explorer.numbers import MOST_PAIRS, Numbers
from tests.auditing.arrays import audit_of
from tests.reporting.audits import small, three
from tests.reporting.explored import opened
from tests.toy import toy

NAN = float("nan")


def order(a: list[list[float]], b: list[list[float]]) -> list[int]:
    """Order of the queries where run r has the values a[r] and b[r]."""
    runs = [f"run{i}" for i in range(len(a))]
    audit = audit_of([[[[0.0] * len(x), x, y]] for x, y in zip(a, b, strict=True)], runs=runs)
    return Numbers.of(audit, runs).order().tolist()


def test_queries_that_pull_most_come_first_whichever_way_they_pull() -> None:
    assert order([[0.5, 0.9, 0.0]], [[0.4, 0.9, 0.8]]) == [2, 0, 1]


def test_equal_pulls_stay_in_the_audits_order() -> None:
    assert order([[0.5, 1.0, 0.5, 0.0]], [[0.0, 0.5, 0.0, 0.5]]) == [0, 1, 2, 3]


def test_each_ranker_counts_the_same() -> None:
    # The second ranker's queries pull half as far, but all that pulls on it is one query: that one comes first.
    assert order([[0.8, 0.6, 0.0], [0.1, 0.1, 0.5]], [[0.0, 0.0, 0.0], [0.1, 0.1, 0.1]]) == [2, 0, 1]


def test_a_query_that_does_not_count_pulls_nothing() -> None:
    assert order([[NAN, 0.2, 1.0]], [[1.0, 0.1, NAN]]) == [1, 0, 2]


def test_without_measures_the_margin_of_wins_decides() -> None:
    collection = toy()
    bare = Collection(collection.docs, collection.queries, collection.qrels.clear())
    scores = {
        "q1": {"d1-human": 2.0, "d1-llm": 1.0, "d2-llm": 1.0},
        "q2": {"d1-human": 2.0, "d2-human": 2.0, "d3-human": 2.0},
        "q3": {"d1-llm": 2.0, "d2-llm": 2.0},
    }
    audit = opened(bare, [scores], measures=None, card=True).audit
    numbers = Numbers.of(audit, ["first"])
    assert numbers.heads[0, 0].tolist() == [[1, 1, 0], [3, 0, 0], [0, 2, 0]]
    assert numbers.order().tolist() == [1, 2, 0]


def test_heads_are_of_relevant_twins_where_there_are_judgments() -> None:
    audit = small()
    heads = Numbers.of(audit, audit.runs).heads
    relevant = audit.pair_counts.filter("relevant", pl.col("run") == "first")
    assert heads[0, 0].tolist() == [list(row) for row in relevant.select("wins", "losses", "ties").rows()]


def test_tilts_of_every_pair_and_measure_add_up_to_the_audits() -> None:
    audit = three()
    numbers = Numbers.of(audit, audit.runs)
    sums = np.nansum(numbers.tilt, axis=-1)
    for tilt in audit.tilts:
        at = numbers.pairs.index((tilt.a, tilt.b)), [repr(m) for m in audit.measures].index(tilt.measure)
        np.testing.assert_allclose(sums[0][at], tilt.value, atol=1e-9)


def test_at_most_so_many_pairs_are_taken() -> None:
    names = tuple("abcde")
    audit = audit_of(np.full((1, 1, 6, 3), 0.5), groups=names)
    assert len(Numbers.of(audit, ["run"]).pairs) == MOST_PAIRS < len(audit.pairs)

"""Head-to-head counts of twins against a plain double loop."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.measures import preference
from ranktilt.measures.preference import PairCounts, pair_counts, split_pair_counts

Ranked = dict[int, float]
Pairs = Sequence[tuple[int, int]]


def counted(queries: Sequence[Ranked], pairs: Pairs, chosen: Sequence[set[int]] | None = None) -> PairCounts:
    """What the library counts, from one dictionary of document -> score a query."""
    entries = [(i, d, s) for i, found in enumerate(queries) for d, s in found.items()]
    mask = None if chosen is None else np.array([d in chosen[i] for i, d, _ in entries], dtype=bool)
    return pair_counts(
        np.cumsum([0, *map(len, queries)]),
        np.array([d for _, d, _ in entries], dtype=np.int64),
        np.array([s for _, _, s in entries], dtype=np.float64),
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        mask,
    )


def by_loops(queries: Sequence[Ranked], pairs: Pairs, chosen: Sequence[set[int]] | None = None) -> list[list[int]]:
    """Wins, losses, ties and both-retrieved a query, one pair after the other."""
    rows = []
    for i, found in enumerate(queries):
        wins = losses = ties = both = 0
        for a, b in pairs:
            if a not in found and b not in found:
                continue
            if chosen is not None and not ({a, b} & chosen[i] & set(found)):
                continue
            one, two = found.get(a, -np.inf), found.get(b, -np.inf)
            wins += one > two
            losses += one < two
            ties += one == two
            both += a in found and b in found
        rows.append([wins, losses, ties, both])
    return rows


def as_rows(counts: PairCounts) -> list[list[int]]:
    return np.stack(counts, axis=1).tolist()


DOCS = 9
RANKED = st.dictionaries(st.integers(0, DOCS - 1), st.integers(-2, 2).map(float), max_size=DOCS)
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(5, DOCS - 1)), unique=True, max_size=8)
CHOSEN = st.sets(st.integers(0, DOCS - 1))


@given(st.lists(RANKED, max_size=6), PAIRS, st.integers(1, 40))
@settings(max_examples=150)
def test_as_a_double_loop_in_chunks_of_any_size(queries: list[Ranked], pairs: Pairs, cells: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preference, "_CELLS", cells)
        assert as_rows(counted(queries, pairs)) == by_loops(queries, pairs)


@given(st.lists(st.tuples(RANKED, CHOSEN), max_size=6), PAIRS, st.integers(1, 40))
@settings(max_examples=150)
def test_with_chosen_entries_as_a_double_loop(given: list[tuple[Ranked, set[int]]], pairs: Pairs, cells: int) -> None:
    queries, chosen = [ranked for ranked, _ in given], [marked for _, marked in given]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preference, "_CELLS", cells)
        assert as_rows(counted(queries, pairs, chosen)) == by_loops(queries, pairs, chosen)


@given(st.lists(RANKED, min_size=1, max_size=4), PAIRS)
@settings(max_examples=60)
def test_swapping_the_sides_swaps_wins_and_losses(queries: list[Ranked], pairs: Pairs) -> None:
    one, two = counted(queries, pairs), counted(queries, [(b, a) for a, b in pairs])
    assert [c.tolist() for c in one] == [c.tolist() for c in (two.losses, two.wins, two.ties, two.both)]


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        ({0: 2.0, 1: 1.0}, [1, 0, 0, 1]),
        ({0: 1.0, 1: 2.0}, [0, 1, 0, 1]),
        ({0: 1.0, 1: 1.0}, [0, 0, 1, 1]),
        ({0: -5.0}, [1, 0, 0, 0]),
        ({1: -5.0}, [0, 1, 0, 0]),
        ({2: 1.0}, [0, 0, 0, 0]),
        ({}, [0, 0, 0, 0]),
    ],
)
def test_one_pair_by_hand(ranked: Ranked, expected: list[int]) -> None:
    assert as_rows(counted([ranked], [(0, 1)])) == [expected]


def test_several_twins_of_one_document_each_count() -> None:
    ranked = {0: 2.0, 1: 3.0, 2: 2.0}
    assert as_rows(counted([ranked], [(0, 1), (0, 2), (0, 3)])) == [[1, 1, 1, 2]]


def test_a_pair_counts_if_either_side_is_chosen() -> None:
    queries = [{0: 2.0, 1: 1.0, 2: 2.0, 3: 1.0}]
    assert as_rows(counted(queries, [(0, 1), (2, 3)], [{0}])) == [[1, 0, 0, 1]]
    assert as_rows(counted(queries, [(0, 1), (2, 3)], [{3}])) == [[1, 0, 0, 1]]
    assert as_rows(counted(queries, [(0, 1), (2, 3)], [set()])) == [[0, 0, 0, 0]]


def test_one_query_leaves_no_trace_in_the_next() -> None:
    queries = [{0: 1.0, 1: 2.0}, {0: 1.0}, {}, {1: 1.0}]
    assert as_rows(counted(queries, [(0, 1)])) == [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]]


def test_without_pairs_nothing_counts() -> None:
    assert as_rows(counted([{0: 1.0}], [])) == [[0, 0, 0, 0]]


def test_without_entries_nothing_counts() -> None:
    assert as_rows(counted([{}, {}], [(0, 1)])) == [[0, 0, 0, 0]] * 2


def test_counts_are_whole_numbers_per_query() -> None:
    counts = counted([{0: 1.0}, {1: 1.0}], [(0, 1)])
    assert all(c.dtype == np.int64 and c.shape == (2,) for c in counts)


@given(st.integers(0, 2**32 - 1))
def test_chosen_and_other_pairs_add_up_to_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 9, 4)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.concatenate([rng.permutation(8)[:n] for n in lengths])
    scores = rng.integers(0, 3, len(rows)).astype(float)
    pairs = np.array([[0, 4], [1, 5], [2, 6], [2, 7]])
    marks = rng.random(len(rows)) < 0.5
    chosen, other = split_pair_counts(offsets, rows, scores, pairs, marks)
    for name in PairCounts._fields:
        whole = getattr(pair_counts(offsets, rows, scores, pairs), name)
        assert (getattr(chosen, name) + getattr(other, name) == whole).all()
    assert (chosen.wins == pair_counts(offsets, rows, scores, pairs, chosen=marks).wins).all()

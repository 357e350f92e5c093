"""Preference between twins, and who fills the page: against plain double loops and rows counted by
hand.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.measures.ndsr import page_shares
from ranktilt.measures.ranking import Ranking
from ranktilt.measures.twins.base import TwinAnswers, TwinEstimand, TwinLists, mid_ranks
from ranktilt.measures.twins.head_to_head import HeadToHead, PairCounts, pair_counts
from ranktilt.measures.twins.rank_gap import RankGap
from ranktilt.measures.twins.score_gap import ScoreGap
from ranktilt.statistics.two_way import Clusters

Entry = tuple[int, float]
Query = list[Entry]
"""Documents and scores, the best first; a negative document belongs to no pair."""
Pairs = Sequence[tuple[int, int]]
RelevantPairs = tuple[np.ndarray, np.ndarray]
"""Numbers of queries, and of the pairs that are asked for in them."""


def ranking_of(queries: Sequence[Query]) -> tuple[Ranking, np.ndarray]:
    flat = list(chain.from_iterable(queries))
    ranking = Ranking(
        np.cumsum([0, *map(len, queries)]), np.array([s for _, s in flat], dtype=np.float64)
    )
    return ranking, np.array([d for d, _ in flat], dtype=np.int64)


def judged(relevant: Sequence[set[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Query and document of every relevant one; the last query first."""
    numbers, docs = list[int](), list[int]()
    for number, relevant_docs in enumerate(relevant):
        numbers += [number] * len(relevant_docs)
        docs += relevant_docs
    return np.array(numbers[::-1], dtype=np.int64), np.array(docs[::-1], dtype=np.int64)


def lists(
    queries: Sequence[Query],
    pairs: Pairs,
    relevant: Sequence[set[int]] = (),
    relevant_pairs: RelevantPairs | None = None,
) -> TwinLists:
    ranking, docs = ranking_of(queries)
    return TwinLists(
        ranking=ranking,
        docs=docs,
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        relevant=judged(relevant),
        relevant_pairs=relevant_pairs,
    )


def split(
    queries: Sequence[Query], pairs: Pairs, relevant: Sequence[set[int]] = ()
) -> tuple[PairCounts, PairCounts]:
    return pair_counts(lists(queries, pairs, relevant))


def by_loops(
    queries: Sequence[Query],
    pairs: Pairs,
    relevant: Sequence[set[int]],
    *,
    of_relevant: bool = False,
) -> list[list[int]]:
    """Wins, losses, ties, both retrieved and first side alone a query, one pair after the other."""
    rows = []
    for i, scores in enumerate(map(dict, queries)):
        wins = losses = ties = both = alone = 0
        for a, b in pairs:
            if a not in scores and b not in scores:
                continue
            if bool({a, b} & relevant[i]) != of_relevant:
                continue
            first, second = scores.get(a, -np.inf), scores.get(b, -np.inf)
            wins += first > second
            losses += first < second
            ties += first == second
            both += a in scores and b in scores
            alone += a in scores and b not in scores
        rows.append([wins, losses, ties, both, alone])
    return rows


def as_rows(counts: PairCounts) -> list[list[int]]:
    return np.stack(counts, axis=1).tolist()


DOCS = 9
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(5, DOCS - 1)), unique=True, max_size=8)
RELEVANT = st.sets(st.integers(0, DOCS + 1))
"""The last two are in no run and no pair."""
MARKED = st.lists(RELEVANT, min_size=4, max_size=4)


@st.composite
def queries_of(draw: st.DrawFn, longest: int = 7) -> list[Query]:
    """Up to four queries of distinct documents 0-8 and unknown ones (-1), in falling order, with
    many ties.
    """
    queries = []
    for _ in range(draw(st.integers(1, 4))):
        docs = draw(st.lists(st.integers(0, DOCS - 1), unique=True, max_size=longest))
        docs = [d if draw(st.integers(0, 5)) else -1 for d in docs]
        scores = sorted((draw(st.integers(-2, 2)) / 3 for _ in docs), reverse=True)
        queries.append(list(zip(docs, scores, strict=True)))
    return queries


@given(queries_of(), MARKED, PAIRS)
@settings(max_examples=150)
def test_relevant_pairs_apart_as_a_double_loop(
    queries: list[Query], marked: list[set[int]], pairs: Pairs
) -> None:
    relevant = marked[: len(queries)]
    of_relevant, of_others = split(queries, pairs, relevant)
    assert as_rows(of_relevant) == by_loops(queries, pairs, relevant, of_relevant=True)
    assert as_rows(of_others) == by_loops(queries, pairs, relevant)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ranktilt.measures.twins.base._MOST_CELLS", 1)  # one query at a time
        assert [as_rows(counts) for counts in split(queries, pairs, relevant)] == [
            as_rows(of_relevant),
            as_rows(of_others),
        ]


UNITS = np.array([0, 1, 1, 2, 3, 0, 1, 2, 3])
"""Documents 1, 2 and 6 share one unit, and so on."""


def nets(clusters: Clusters | None) -> list[float]:
    """What each of the four origins adds."""
    assert clusters is not None
    totals = clusters.with_origins(UNITS).origin_totals
    return np.append(totals, np.zeros(4 - len(totals))).tolist()


WITHIN = [(0, 5), (1, 6), (2, 6), (3, 7), (4, 8)]


@given(queries_of(), MARKED)
@settings(max_examples=60)
def test_meetings_are_wins_less_losses_and_turn_with_sides(
    queries: list[Query], marked: list[set[int]]
) -> None:
    relevant = marked[: len(queries)]
    n, turned = len(queries), [pair[::-1] for pair in WITHIN]
    for kind, counts in zip(("relevant", "other"), split(queries, WITHIN, relevant), strict=True):
        of = replace(HeadToHead, pairs=kind, over="pairs")
        clusters, back = (
            of.answers(lists(queries, pairs, relevant)).clusters for pairs in (WITHIN, turned)
        )
        assert (
            np.bincount(clusters.query, clusters.total, n).tolist()
            == (counts.wins - counts.losses).tolist()
        )
        met = counts.wins + counts.losses + counts.ties
        assert np.bincount(clusters.query, clusters.weight, n).tolist() == met.tolist()
        assert nets(clusters) == [-net for net in nets(back)]


def discount(rank: int) -> float:
    return 1 / math.log2(1 + rank)


def shares_by_orders(query: Query, depth: int) -> list[float]:
    """Average over every order that falls in score, one rank after the other."""
    scores = [s for _, s in query]
    shares = [0.0] * len(query)
    orders = [o for o in permutations(range(len(query))) if [scores[i] for i in o] == scores]
    page = sum(discount(r) for r in range(1, min(depth, len(query)) + 1))
    for order in orders:
        for rank, i in enumerate(order[:depth], start=1):
            shares[i] += discount(rank) / page / len(orders)
    return shares


T = discount(2)


class TestThePage:
    def test_by_hand(self) -> None:
        cases: list[tuple[list[float], int, list[float]]] = [
            ([3.0, 2.0, 1.0], 3, [1 / (1.5 + T), T / (1.5 + T), 0.5 / (1.5 + T)]),
            ([3.0], 20, [1]),
            ([], 5, []),
            ([3.0, 2.0, 1.0], 2, [1 / (1 + T), T / (1 + T), 0]),
            ([2.0, 2.0], 2, [1 / 2, 1 / 2]),
            ([2.0, 2.0], 1, [1 / 2, 1 / 2]),
            ([3.0, 2.0, 2.0], 2, [1 / (1 + T), T / 2 / (1 + T), T / 2 / (1 + T)]),
            (
                [3.0, 2.0, 2.0, 1.0],
                3,
                [1 / (1.5 + T), (T + 0.5) / 2 / (1.5 + T), (T + 0.5) / 2 / (1.5 + T), 0],
            ),
        ]
        for scores, depth, expected in cases:
            ranking, _ = ranking_of([[(i, s) for i, s in enumerate(scores)]])
            assert page_shares(ranking, depth).tolist() == pytest.approx(expected, abs=1e-15), (
                scores,
                depth,
            )

    @given(queries_of(longest=5), st.integers(1, 7))
    @settings(max_examples=80)
    def test_as_the_mean_over_all_orders_of_ties(self, queries: list[Query], depth: int) -> None:
        expected = list(chain.from_iterable(shares_by_orders(query, depth) for query in queries))
        assert page_shares(ranking_of(queries)[0], depth).tolist() == pytest.approx(
            expected, abs=1e-13
        )


def test_tied_documents_have_the_middle_of_their_ranks() -> None:
    ranking, _ = ranking_of(
        [[(0, 3.0), (1, 2.0), (2, 2.0), (3, 2.0), (4, 1.0)], [], [(0, 1.0), (1, 1.0)]]
    )
    assert mid_ranks(ranking).tolist() == [1, 3, 3, 3, 5, 1.5, 1.5]


def rank_of(entries: Query, doc: int) -> tuple[float, bool]:
    """Rank of a document, the middle of its ties, the one after the last where it is not there."""
    mine = next((s for d, s in entries if d == doc), None)
    if mine is None:
        return len(entries) + 1, False
    return sum(s > mine for _, s in entries) + (sum(s == mine for _, s in entries) + 1) / 2, True


WANTED = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), unique=True, max_size=12)


class TestRankGaps:
    @given(queries_of(), PAIRS, WANTED)
    @settings(max_examples=120)
    def test_wanted_pairs_as_a_loop(
        self, queries: list[Query], pairs: Pairs, numbers: list[tuple[int, int]]
    ) -> None:
        chosen = [(q, p) for q, p in numbers if q < len(queries) and p < len(pairs)]
        (total, count), absent = ([0.0] * len(queries) for _ in range(2)), 0
        for q, p in chosen:
            (a, has_a), (b, has_b) = (rank_of(queries[q], doc) for doc in pairs[p])
            total[q] += b - a
            count[q] += 1
            absent += 2 - has_a - has_b
        relevant_pairs = (
            np.array([q for q, _ in chosen], dtype=np.int64),
            np.array([p for _, p in chosen], dtype=np.int64),
        )
        gaps = RankGap.answers(lists(queries, pairs, (), relevant_pairs))
        assert [gaps.total.tolist(), gaps.weight.tolist()] == [total, count]
        share = absent / len(chosen) / 2 if chosen else math.nan
        assert (gaps.details["pairs"], gaps.details["absent"]) == (
            len(chosen),
            pytest.approx(share, nan_ok=True),
        )

    @given(queries_of(), PAIRS)
    @settings(max_examples=120)
    def test_sums_over_every_pair_as_a_plain_loop(self, queries: list[Query], pairs: Pairs) -> None:
        expected = [
            sum(rank_of(query, b)[0] - rank_of(query, a)[0] for a, b in pairs) for query in queries
        ]
        assert (
            replace(RankGap, pairs="all").answers(lists(queries, pairs)).total.tolist() == expected
        )

    def test_one_pair_by_hand(self) -> None:
        cases: list[tuple[Query, float, int]] = [
            ([(0, 2.0), (1, 1.0)], 1, 0),
            ([(1, 2.0), (7, 1.5), (0, 1.0)], -2, 0),
            ([(0, 1.0), (1, 1.0)], 0, 0),
            ([(7, 3.0), (0, 2.0), (8, 1.0)], 4 - 2, 1),
            ([(1, 5.0)], -1, 1),
            ([(7, 3.0)], 0, 2),
            ([], 0, 2),
            ([(-1, 9.0), (0, 2.0), (1, 1.0), (-1, 1.0)], 3.5 - 2, 0),
        ]
        for query, expected, absent in cases:
            gaps = RankGap.answers(lists([query], [(0, 1)], (), (np.array([0]), np.array([0]))))
            assert (gaps.total.tolist(), gaps.weight.tolist()) == ([expected], [1]), query
            assert gaps.details == {"pairs": 1, "absent": absent / 2}
            assert replace(RankGap, pairs="all").answers(
                lists([query], [(0, 1)])
            ).total.tolist() == [expected]


class TestScoreGaps:
    @given(queries_of(), PAIRS)
    @settings(max_examples=120)
    def test_as_a_plain_loop(self, queries: list[Query], pairs: Pairs) -> None:
        scaled, raw, count = ([] for _ in range(3))
        for query in queries:
            scores = {d: s for d, s in query if d >= 0}
            spread = float(np.std([s for _, s in query])) if query else 0.0
            gaps = [scores[a] - scores[b] for a, b in pairs if a in scores and b in scores]
            scaled.append(sum(g / spread for g in gaps) if spread > 1e-12 else 0.0)
            raw.append(sum(gaps))
            count.append(len(gaps))
        gaps = ScoreGap.answers(lists(queries, pairs))
        assert gaps.total.tolist() == pytest.approx(scaled, abs=1e-9)
        mean = sum(raw) / sum(count) if sum(count) else math.nan
        assert gaps.details == {
            "pairs": sum(count),
            "raw": pytest.approx(mean, abs=1e-12, nan_ok=True),
        }
        assert gaps.weight.tolist() == count

    def test_by_hand(self) -> None:
        queries = [[(0, 5.0), (1, 4.0), (7, 3.0)], [(0, 2.0), (8, 1.0)], [(0, 1.0), (1, 1.0)], []]
        gaps = ScoreGap.answers(lists(queries, [(0, 1)]))
        level = ScoreGap.answers(
            lists([[(0, 0.1), (1, 0.1), (7, 0.1)]], [(0, 1)])
        )  # whose mean is rounded
        assert (level.total.tolist(), level.details["raw"]) == ([0.0], 0.0)
        # Scores 5, 4, 3 have a standard deviation of sqrt(2/3); a query whose scores are all equal
        # has none.
        assert gaps.total.tolist() == pytest.approx([math.sqrt(3 / 2), 0, 0, 0])
        assert gaps.details == {"pairs": 2, "raw": 1 / 2}
        assert gaps.weight.tolist() == [1, 0, 1, 0]


POOLED = replace(HeadToHead, over="pairs")
SUMS = [replace(POOLED, pairs="relevant"), replace(POOLED, pairs="other"), RankGap, ScoreGap]


@pytest.mark.parametrize("of", [*SUMS, replace(RankGap, pairs="all")], ids=repr)
@given(queries_of(), MARKED)
@settings(max_examples=60)
def test_each_unit_adds_what_its_own_pairs_do(
    of: TwinEstimand, queries: list[Query], relevant: list[set[int]]
) -> None:
    def answers(pairs: Pairs) -> TwinAnswers:
        every = np.divmod(np.arange(len(queries) * len(pairs)), len(pairs))
        return of.answers(lists(queries, pairs, relevant[: len(queries)], every))

    totals = nets(answers(WITHIN).clusters)
    for unit in range(4):
        mine = [pair for pair in WITHIN if UNITS[pair[0]] == unit]
        assert totals[unit] == pytest.approx(answers(mine).total.sum(), abs=1e-9)


def test_head_to_head_is_a_mean_over_queries_or_pairs() -> None:
    """The first query's four pairs are lost, the second's only pair is won: −1 and 1, or
    −3 of 5.
    """
    queries: list[Query] = [[(5, 9.0), (6, 8.0), (7, 7.0), (8, 6.0)], [(0, 1.0)]]
    pairs = [(0, 5), (1, 6), (3, 7), (4, 8)]
    twin_lists = lists(queries, pairs, [set(), set()])
    mean, pooled = HeadToHead.answers(twin_lists), POOLED.answers(twin_lists)
    assert HeadToHead.value(mean.total, mean.weight) == 0
    assert POOLED.value(pooled.total, pooled.weight) == -3 / 5
    assert (mean.details["mean_wins"], mean.details["mean_losses"]) == (0.5, 0.5)
    assert (mean.details["query_wins"], mean.details["query_losses"]) == (1, 1)

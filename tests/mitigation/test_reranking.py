"""Fair re-ranking: the published algorithms, all orders of small lists, what comes back as it was;
and interleaving.
"""

import itertools
import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats
from scipy.optimize import linprog

from ranktilt import Collection, Run, UserError, ranker
from ranktilt.measures.exposure_ratio import ExposureRatio
from ranktilt.measures.ranking import Ranking
from ranktilt.mitigation.fair_rerank import FairReRank, exposure_mixture, fail_probability, m_table
from ranktilt.mitigation.interleave import Interleave
from tests.mitigation.builders import labelled, patterns_of, same_bits
from tests.refusals import refused
from tests.toy import collection_of, run_of, toy

MIXED = [
    "".join(p)
    for n in range(2, 8)
    for p in itertools.product("hl", repeat=n)
    if 0 < p.count("h") < n
]
TARGETS = (-30.0, -10.0, 0.0, 20.0)


def shares(pattern: str, target: float) -> dict[str, float]:
    """Least share of each side."""
    base = pattern.count("h") / len(pattern)
    return {
        "h": min(max(base + target / 100, 0), 1),
        "l": min(max(1 - base - abs(target) / 100, 0), 1),
    }


def minimum(share: float, k: int) -> int:
    return math.floor(share * k + 1e-9)


def published(pattern: str, share: dict[str, float]) -> str:
    """Algorithm 3 of Geyik et al., line by line; places are counted from 1, for from 0 a minimum is
    missed.
    """
    pools = {
        side: [-rank for rank, letter in enumerate(pattern) if letter == side] for side in share
    }
    counts, minimums = dict.fromkeys(share, 0), dict.fromkeys(share, 0)
    sides, scores, limits = list[str](), list[int](), list[float]()

    def insert(score: int, side: str, limit: float) -> None:
        start = len(sides)
        sides.append(side)
        scores.append(score)
        limits.append(limit)
        while start > 0 and limits[start - 1] >= start + 1 and scores[start - 1] < scores[start]:
            for values in (sides, scores, limits):
                before = start - 1
                values[before], values[start] = values[start], values[before]  # type: ignore[index]
            start -= 1
        counts[side] += 1

    k = 0
    while len(sides) < len(pattern) and k < 1000:
        k += 1
        now = {side: min(minimum(share[side], k), len(pools[side])) for side in share}
        changed = [side for side in share if minimums[side] < now[side]]
        for score, side in sorted(
            ((pools[side][counts[side]], side) for side in changed), reverse=True
        ):
            insert(score, side, k)
        minimums = now
    rest = [(score, side) for side in share for score in pools[side][counts[side] :]]
    for score, side in sorted(rest, reverse=True):
        insert(score, side, math.inf)
    return "".join(sides)


def fair(pattern: str, method: str, target: float, alpha: float) -> list[tuple[int, int]]:
    """Least number of human documents, and of others, on each prefix."""
    share, n = shares(pattern, target), len(pattern)
    if method == "fa-ir":
        return [(min(least, pattern.count("h")), 0) for least in m_table(n, share["h"], alpha)]
    human, llm = (
        [min(minimum(share[side], k), pattern.count(side)) for k in range(1, n + 1)]
        for side in "hl"
    )
    return list(zip(human, llm, strict=True))


def keeps(pattern: str, needed: Sequence[tuple[int, int]]) -> bool:
    """Whether all prefixes hold what they need."""
    prefixes = (pattern[:k] for k in range(1, len(pattern) + 1))
    return all(
        p.count("h") >= human and p.count("l") >= llm
        for p, (human, llm) in zip(prefixes, needed, strict=True)
    )


@pytest.mark.parametrize("target", TARGETS)
def test_det_const_sort_gives_what_is_published(target: float) -> None:
    collection, run = labelled(MIXED)
    reranked = FairReRank(group="human", target=target).rank(collection, run)
    assert patterns_of(collection, reranked) == [
        published(pattern, shares(pattern, target)) for pattern in MIXED
    ]


@pytest.mark.parametrize("method", ["det-const-sort", "fa-ir"])
@pytest.mark.parametrize("target", TARGETS)
def test_it_is_the_best_order_that_keeps_to_target(method: str, target: float) -> None:
    collection, run = labelled(MIXED)
    reranked = FairReRank(method=method, group="human", target=target, alpha=0.3).rank(
        collection, run
    )
    for pattern, got in zip(MIXED, patterns_of(collection, reranked), strict=True):
        needed = fair(pattern, method, target, 0.3)
        orders = (
            {"".join(order) for order in itertools.permutations(pattern)}
            if len(pattern) < 6
            else {got}
        )
        assert got in orders
        assert keeps(got, needed)

        def documents(order: str, pattern: str = pattern) -> list[int]:
            left = {
                side: [rank for rank, letter in enumerate(pattern) if letter == side]
                for side in "hl"
            }
            return [left[side].pop(0) for side in order]

        assert got == min((order for order in orders if keeps(order, needed)), key=documents)


@pytest.mark.parametrize("method", ["det-const-sort", "fa-ir", "exposure"])
def test_a_list_at_its_target_comes_back_to_the_last_bit(method: str) -> None:
    rng = np.random.default_rng(5)
    changed = 0
    for pattern in rng.choice(MIXED, 25).tolist():
        base, weights = (
            pattern.count("h") / len(pattern),
            1 / np.log2(np.arange(2, len(pattern) + 2)),
        )
        ahead = [pattern[:k].count("h") / k - base for k in range(1, len(pattern) + 1)]
        today = 100 * min(*ahead, 0.0)
        if method == "det-const-sort":
            today = -100 * max(map(abs, ahead))
        if method == "exposure":
            human = np.array(list(pattern)) == "h"
            today = float(weights[human].mean() / weights[~human].mean())
        collection, run = labelled([pattern], [np.sort(rng.normal(size=len(pattern)))[::-1]])
        assert same_bits(
            FairReRank(method=method, group="human", target=today).rank(collection, run), run
        )
        more = FairReRank(
            method=method, group="human", target=1.5 if method == "exposure" else 60.0
        )
        changed += not same_bits(more.rank(collection, run), run)
    assert changed > 15


def test_documents_without_group_keep_places_and_run_stays_exact() -> None:
    collection, run = labelled([".hh.ll", "hhh", "l.", "", "hlg.gl"])
    reranked = FairReRank(group="llm").rank(collection, run)
    assert patterns_of(collection, reranked) == [".hl.hl", "hhh", "l.", "", "hlg.gl"]
    assert patterns_of(collection, FairReRank(group="llm", k=3).rank(collection, run))[0] == ".hl"
    collection, run = labelled(["hhhhllll"])
    reranked = FairReRank(group="llm").rank(collection, run)
    assert (patterns_of(collection, reranked), reranked.name) == (
        ["hlhlhlhl"],
        "fair-rerank(group=llm)",
    )
    assert reranked.scores.tobytes() == run.scores.tobytes()
    collection, _ = labelled(["hhll"])
    strange = Run(
        ("q0",), [0, 5], [0, 4, 1, 2, 3], [9, 8, 6, 5, 4.5], pl.Series([*collection.ids, "d0-0x"])
    )
    reranked = FairReRank(group="llm").rank(
        collection, strange
    )  # what the collection lacks is of no group
    assert reranked.frame()["doc_id"].to_list() == ["d0-0", "d0-0x", "d0-2", "d0-1", "d0-3"]
    rng = np.random.default_rng(1)
    patterns = ["".join(rng.permutation(list("hhlllg.."))) for _ in range(10)] + [
        "",
        "h",
        "hhh",
        "...",
    ]
    collection, run = labelled(
        patterns, [np.sort(rng.normal(size=len(pattern)))[::-1] for pattern in patterns]
    )
    assert same_bits(Interleave(strength=0).rank(collection, run), run)
    reranked = Interleave().rank(collection, run)
    assert patterns_of(collection, reranked)[-4:] == patterns[-4:]
    for before, after in zip(patterns, patterns_of(collection, reranked), strict=True):
        assert [letter == "." for letter in before] == [letter == "." for letter in after]


def test_ties_are_broken_where_needed_and_favour_nobody() -> None:
    for pattern in ("hhllhhll", "llhhllhh", "hlhllhlh"):
        collection, run = labelled([pattern], [[3.0] * 4 + [2.0] * 4])
        assert same_bits(FairReRank(group="human").rank(collection, run), run)
    collection, run = labelled(["hhhlllhl"], [[3.0] * 3 + [2.0] * 5])
    reranked_patterns = patterns_of(collection, FairReRank(group="llm").rank(collection, run))
    assert reranked_patterns == ["hlhlhlhl"]
    collection, run = labelled(["llll", "hhll"], [[1.0] * 4, [1.0] * 4])
    reranked_patterns = patterns_of(
        collection, FairReRank(group="llm", target=100.0).rank(collection, run)
    )
    assert reranked_patterns == ["[llll]", "[ll][hh]"]
    # Twins share their tie keys, so all depends on what the sides are called or on the order in
    # which they come.
    rng, results = np.random.default_rng(2), []
    levels = {"q0": 2, "q1": 3, "q2": 6}
    for first, second in (("human", "llm"), ("z", "a")):
        docs = [
            {
                "id": f"{n if first == 'human' else 9 - n}{side}",
                "text": f"{n}",
                "source": side,
                "origin": f"o{n}",
            }
            for n in rng.permutation(6).tolist()
            for side in ((first, second) if rng.random() < 0.5 else (second, first))
        ]
        collection = collection_of(
            docs, {query: query for query in levels}, {"q0": {docs[0]["id"]: 1}}
        )
        origin = dict(zip(collection.docs["id"], collection.docs["origin"], strict=True))
        scores = {
            query: {name: -float(int(o[1:]) // size) for name, o in origin.items()}
            for query, size in levels.items()
        }
        reranked_patterns = FairReRank(group=first, target=20.0).rank(
            collection, run_of(collection, scores)
        )
        rows = reranked_patterns.frame().iter_rows()
        results.append(
            sorted(
                (query, score, origin[doc], doc.endswith(first)) for query, doc, _, score in rows
            )
        )
    assert results[0] == results[1]
    assert len({row[:2] for row in results[0]}) > sum(6 // size for size in levels.values())


def test_it_reads_back_and_refuses_options_and_lists_that_cannot_be() -> None:
    for correction in (
        FairReRank(method="fa-ir", group="a,b", target=-5.5, alpha=0.05, by="gender", k=10),
        FairReRank(method="exposure", group="human", target=0.9, seed=3),
        Interleave(by="gender", strength=0.5, seed=2, k=7),
    ):
        assert ranker(repr(correction)) == correction
    for text, message in (
        (
            "method=greedy",
            "unknown method of fair-rerank 'greedy' (valid: det-const-sort, fa-ir, exposure)",
        ),
        ("target=101.0", "fair-rerank: expected a target from -100 to 100 points, got 101.0"),
        ("target=nan", "fair-rerank: expected a target from -100 to 100 points, got nan"),
        (
            "method=exposure,target=-0.1",
            "fair-rerank: expected a ratio of exposures of 0 or more as target, got -0.1",
        ),
        (
            "method=exposure,target=inf",
            "fair-rerank: expected a ratio of exposures of 0 or more as target, got inf",
        ),
        ("method=fa-ir,alpha=0", "fair-rerank: expected alpha between 0 and 1, got 0.0"),
    ):
        with refused(message):
            ranker(f"fair-rerank({text})")
    for strength in ("1.5", "-0.1", "nan"):
        with refused(f"interleave: expected a strength from 0 to 1, got {strength}"):
            ranker(f"interleave(strength={strength})")
    collection, run = labelled(["hhll"])
    with refused("fair-rerank needs the group to protect: group=NAME (valid: human, llm)"):
        ranker("fair-rerank").rank(collection, run)
    with refused("unknown source 'people' (valid: human, llm)"):
        ranker("fair-rerank(group=people)").rank(collection, run)
    for correction in (FairReRank(group="human"), Interleave()):
        with pytest.raises(
            UserError, match="re-ranks candidates; put a ranker before it, such as bm25@100>>"
        ):
            correction.rank(toy())
    order = Run(
        run.queries,
        run.offsets,
        run.docs,
        run.scores,
        run.ids,
        {"score_order": "rank", "ranker": "listed"},
    )
    with refused(
        "fair-rerank(method=exposure,group=human) reads scores, and listed gives only an order"
    ):
        FairReRank(method="exposure", group="human").rank(collection, order)
    assert FairReRank(group="llm").rank(collection, order).spec["score_order"] == "rank"


@cache
def every_list(k: int) -> npt.NDArray[np.int64]:
    return np.array(list(itertools.product((0, 1), repeat=k)))


def enumerated(table: tuple[int, ...], p: float) -> float:
    """Probability of all lists that fall below a table somewhere, one by one."""
    lists = every_list(len(table))
    fails = (np.cumsum(lists, axis=1) < np.array(table)).any(axis=1)
    chance = np.where(lists == 1, p, 1 - p).prod(axis=1)
    return float(chance[fails].sum())


def test_the_published_table_and_the_probability_to_fail_of_all_lists() -> None:
    table = m_table(20, 0.25, 0.1)
    assert table == (0,) * 8 + (1,) * 7 + (2,) * 5
    assert fail_probability(table, 0.25) == pytest.approx(0.10515247355215251, abs=1e-15)
    unadjusted = (0,) * 8 + (1,) * 6 + (2,) * 5 + (3,)
    assert fail_probability(unadjusted, 0.25) == pytest.approx(0.14688718869911094, abs=1e-15)
    assert [m_table(4, share, 0.1) for share in (0.0, 1.0)] == [(0, 0, 0, 0), (1, 2, 3, 4)]
    certain = [((0, 0, 0), 0.0, 0), ((0, 1), 0.0, 1), ((1, 2), 1.0, 0), ((3, 3), 0.5, 1)]
    assert [fail_probability(table, p) for table, p, _ in certain] == [
        chance for *_, chance in certain
    ]
    for p in (0.05, 0.25, 0.5, 0.7):
        rng = np.random.default_rng(3)
        for k in (1, 2, 5, 12):
            tables = [m_table(k, p, alpha) for alpha in (0.05, 0.1, 0.4)]
            tables += [
                tuple(np.minimum(np.sort(rng.integers(0, k + 2, k)), 4).tolist()) for _ in range(3)
            ]
            for table in tables:
                assert fail_probability(table, p) == pytest.approx(enumerated(table, p), abs=1e-14)


@pytest.mark.parametrize(("k", "p"), [(1, 0.95), (1, 0.5), (7, 0.3), (9, 0.5), (8, 0.62)])
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
def test_table_is_the_one_that_fails_nearest_to_alpha(k: int, p: float, alpha: float) -> None:
    distribution = [stats.binom.cdf(np.arange(i + 1), i, p) for i in range(1, k + 1)]
    steps = np.unique([0, *(value for chance in distribution for value in chance if value < 1)])
    tables = {
        tuple(int((values <= c + 1e-12).sum()) for values in distribution) for c in steps[:-1]
    }
    tables |= {(0,) * k, tuple(range(1, k + 1))}
    nearest = min(tables, key=lambda table: (abs(enumerated(table, p) - alpha), sum(table)))
    assert m_table(k, p, alpha) == nearest


Floats = npt.NDArray[np.float64]


def solved(
    first: npt.NDArray[np.bool_], scores: Floats, weights: Floats, target: float
) -> float | None:
    """Best expected DCG of any doubly stochastic matrix that keeps to the target, by HiGHS; None if
    there is none.
    """
    n = len(first)
    sums = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    worth = np.where(first, 1 / first.sum(), -target / (~first).sum())
    objective, exposure = (
        -np.outer(scores, weights).ravel(),
        -np.outer(worth, weights).ravel()[None],
    )
    solution = linprog(objective, A_ub=exposure, b_ub=[0], A_eq=sums, b_eq=np.ones(2 * n))
    return -float(solution.fun) if solution.success else None


def gained(
    first: npt.NDArray[np.bool_], gains: Floats, weights: Floats, ranks: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """DCG of an order, and the first side's share of the weights."""
    rest = np.setdiff1d(np.arange(len(first)), ranks)
    return float(gains[first] @ weights[ranks] + gains[~first] @ weights[rest]), float(
        weights[ranks].sum()
    )


@pytest.mark.parametrize("tied", [False, True])
def test_value_and_exposure_are_those_of_the_linear_program(tied: bool) -> None:
    rng = np.random.default_rng(7 + tied)
    corrected = 0
    for n in (2, 3, 5, 7, 7, 7):
        first = rng.permutation(np.arange(n) < rng.integers(1, n))
        drawn = (
            rng.integers(0, 4, n) * 1.5
            if tied
            else rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
        )
        scores = np.sort(drawn)[::-1]
        weights = 1 / np.log2(np.sort(rng.choice(np.arange(2, 12), n, replace=False)))
        for target in (0.5, 1.0, 1.2, 3.0):
            mixture, best = (
                exposure_mixture(first, scores, weights, target),
                solved(first, scores, weights, target),
            )
            today = scores @ weights
            scale = max(np.ptp(scores), 1e-12)
            if mixture is None:
                assert best == pytest.approx(today, abs=1e-6 * scale)
                continue
            if best is None:
                assert mixture.fewer.tolist() == mixture.more.tolist() == list(range(first.sum()))
                continue
            corrected += 1
            (low, under), (high, over) = (
                gained(first, scores, weights, p) for p in (mixture.fewer, mixture.more)
            )
            assert 0 <= mixture.odds <= 1
            dcg, attention = (
                (1 - mixture.odds) * a + mixture.odds * b for a, b in ((low, high), (under, over))
            )
            assert dcg == pytest.approx(best, abs=1e-6 * scale)
            ratio = attention / first.sum() / ((weights.sum() - attention) / (~first).sum())
            assert ratio == pytest.approx(target, abs=1e-9)
    assert corrected > 5


def test_long_list_is_solved_and_goes_as_far_as_target() -> None:
    rng = np.random.default_rng(0)
    first, weights = rng.random(400) < 0.3, 1 / np.log2(np.arange(2, 402))
    scores = np.sort(rng.normal(size=400))[::-1]
    mixture = exposure_mixture(first, scores, weights, 1.3)
    assert mixture is not None
    attention = (1 - mixture.odds) * weights[mixture.fewer].sum() + mixture.odds * weights[
        mixture.more
    ].sum()
    assert attention / first.sum() * (~first).sum() / (weights.sum() - attention) == pytest.approx(
        1.3, abs=1e-12
    )
    assert len(np.setxor1d(mixture.fewer, mixture.more)) == 2
    assert (np.diff(mixture.more) > 0).all()
    for patterns, target, expected in (
        (["hhll", "llhh", "hh"], 9.0, ["llhh", "llhh", "hh"]),  # as near as it can come
        ([".hh.ll"], 5.0, [".ll.hh"]),  # documents of no group keep their places
    ):
        collection, run = labelled(patterns)
        mixture = FairReRank(method="exposure", group="llm", target=target).rank(collection, run)
        assert patterns_of(collection, mixture) == expected
    collection, run = labelled(["llhh", "hlh"], [[1.0] * 4, [3.0, 2.0, 1.0]])
    assert same_bits(
        FairReRank(method="exposure", group="llm", target=0.6).rank(collection, run), run
    )


def test_one_of_two_orders_is_drawn_by_seed_and_query() -> None:
    collection, run = labelled(["hhhll"] * 200)
    llm = (collection.docs["source"] == "llm").to_numpy()
    correct = FairReRank(method="exposure", group="llm", seed=1)
    reranked = correct.rank(collection, run)
    assert same_bits(reranked, correct.rank(collection, run))
    drawn = patterns_of(collection, reranked)
    assert len(set(drawn)) == 2
    mixture = exposure_mixture(llm[:5], run.scores[:5], 1 / np.log2(np.arange(2, 7)), 1.0)
    assert mixture is not None
    # An order with the LLM's documents further up comes later in the alphabet.
    share = np.mean([pattern == max(drawn) for pattern in drawn])
    assert share == pytest.approx(mixture.odds, abs=3 * 0.5 / 200**0.5)
    patterns_of_seed = patterns_of(
        collection, FairReRank(method="exposure", group="llm", seed=2).rank(collection, run)
    )
    assert 0 < sum(a != b for a, b in zip(drawn, patterns_of_seed, strict=True)) < 200
    part = Run(run.queries[7:9], [0, 5, 10], run.docs[35:45], run.scores[35:45], run.ids)
    assert patterns_of(collection, correct.rank(collection, part)) == drawn[7:9]


@pytest.mark.parametrize("target", [1.0, 0.8])
def test_groups_are_treated_alike_and_level_ranker_stays_level(
    target: float,
) -> None:
    """Lifting the named group alone, where chance puts it low, gives it 1.14 times the exposure of
    the others.
    """
    rng = np.random.default_rng(4)
    collection, run = labelled(
        ["".join(rng.choice(["h", "l"], rng.integers(3, 21))) for _ in range(300)]
    )
    human, llm = (
        FairReRank(method="exposure", group=group, target=target) for group in ("human", "llm")
    )
    corrected = human.rank(collection, run)
    assert same_bits(corrected, llm.rank(collection, run))
    renamed = pl.col("source").replace({"human": "llm", "llm": "human"})
    mirrored = Collection(
        collection.docs.with_columns(renamed), collection.queries, collection.qrels
    )
    assert same_bits(corrected, human.rank(mirrored, run))
    if target == 1:
        first = (collection.docs["source"] == "human").to_numpy()
        ratios = [
            ExposureRatio.contrast(
                Ranking(lists.offsets, lists.scores), first[lists.docs], ~first[lists.docs]
            )
            for lists in (run, corrected)
        ]
        before, after = np.abs(np.nanmean(np.log(ratios), axis=1))
        assert before < 0.05
        assert after < 0.02


def counts(pattern: str, side: str = "l") -> npt.NDArray[np.int64]:
    return np.cumsum([letter == side for letter in pattern])


def held_by(correction: Interleave, collection: Collection, run: Run) -> npt.NDArray[np.int64]:
    """The LLM's documents among the first of each corrected list."""
    return np.stack(
        [counts(pattern) for pattern in patterns_of(collection, correction.rank(collection, run))]
    )


def test_mean_share_of_first_ranks_is_that_of_candidates() -> None:
    collection, run = labelled(["hhhhhhhlll"] * 20)
    attention = np.concatenate(
        [held_by(Interleave(seed=seed), collection, run) for seed in range(15)]
    )
    exact = 0.3 * np.arange(1, 11)
    assert (abs(attention - exact) < 1).all()
    for k in (1, 3, 5, 10):
        error = attention[:, k - 1].std() / len(attention) ** 0.5
        assert abs(attention[:, k - 1].mean() - exact[k - 1]) <= 3 * error
    for strength in (0.25, 0.5, 0.9):
        pattern = "hhhhhhlhll"
        collection, run = labelled([pattern] * 250)
        attention = held_by(Interleave(strength=strength), collection, run)
        aim = (1 - strength) * counts(pattern) + strength * 0.3 * np.arange(1, 11)
        assert (abs(attention - aim) < 1).all()
        assert (abs(attention.mean(axis=0) - aim) <= 3.5 * attention.std(axis=0) / 250**0.5).all()


def test_order_within_group_stays_and_several_groups_take_turns() -> None:
    collection, run = labelled(["hhhhllll"])
    interleaved = Interleave().rank(collection, run)
    assert patterns_of(collection, interleaved)[0] in ("hlhlhlhl", "lhlhlhlh")
    assert interleaved.scores.tobytes() == run.scores.tobytes()
    assert sorted(d for d in interleaved.docs.tolist() if d < 4) == [
        d for d in interleaved.docs.tolist() if d < 4
    ]
    collection, run = labelled(["hhhhhhlllggg"] * 250)
    interleaved = patterns_of(collection, Interleave().rank(collection, run))
    for side, share in (("h", 0.5), ("l", 0.25), ("g", 0.25)):
        group_counts = np.stack([counts(pattern, side) for pattern in interleaved])
        aim = share * np.arange(1, 13)
        assert (abs(group_counts - aim) < 2).all()
        assert (
            abs(group_counts.mean(axis=0) - aim)
            <= 3.5 * group_counts.std(axis=0) / 250**0.5 + 1e-12
        ).all()
    assert {pattern[0] for pattern in interleaved} == set("hlg")
    collection, run = labelled(["hhll", "llhh"] * 150, [[2.0] * 4] * 300)
    for strength in (0.5, 1.0):
        group_counts = held_by(Interleave(strength=strength), collection, run)
        assert abs(group_counts[:, 0].mean() - 0.5) < 3 * 0.5 / 300**0.5

"""Who fills the page: the difference of two groups, its level, and random labels against a slow simulation."""

import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from ranktilt.auditing import random_band
from ranktilt.auditing.groups import Groups, grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments
from ranktilt.auditing.random_band import Shuffles, TopRanks, all_paired, share_bands, share_difference, signs_of
from ranktilt.collection import Collection
from ranktilt.measures.ndsr import NDSR
from tests.toy import collection_of, run_of

Order = Sequence[Sequence[str]]
"""Documents of one query, block by block: those of a block tie."""


class Made(NamedTuple):
    """What a page is made from."""

    collection: Collection
    groups: Groups
    aligned: Aligned


def made(sides: str, orders: Sequence[Order], relevant: Sequence[Sequence[str]] = ()) -> Made:
    """Documents d0, d1 … of the sides named letter by letter ("-" for none); one order a query."""
    docs = [{"id": f"d{n}", "text": "x", "side": None if side == "-" else side} for n, side in enumerate(sides)]
    qrels = {f"q{q}": dict.fromkeys(found, 1) for q, found in enumerate(relevant) if found}
    queries = {f"q{q}": "x" for q in range(len(orders))}
    collection = collection_of(docs, queries, qrels)
    scores = {f"q{q}": {d: -float(n) for n, block in enumerate(order) for d in block} for q, order in enumerate(orders)}
    groups = grouping(collection, "side")
    run = run_of(collection, scores)
    return Made(collection, groups, Aligned.of(run, collection, Judgments.of(collection, groups)))


def null_of(given: Made, depth: int, *, shuffles: int = 1000, seed: int = 0) -> npt.NDArray[np.float64]:
    page = TopRanks.of(given.aligned, NDSR @ depth, given.collection.docs.height)
    (found,) = share_bands([page], given.groups, Shuffles(given.aligned.judgments, seed, shuffles))
    return found[0] - found[1]


def shares(order: Order, depth: int) -> dict[str, float]:
    """What each document holds of a page, ties shared."""
    length = min(depth, sum(map(len, order)))
    whole = sum(1 / np.log2(1 + r) for r in range(1, length + 1))
    held, rank = {}, 1
    for block in order:
        mass = sum(1 / np.log2(1 + r) for r in range(rank, min(rank + len(block), depth + 1)))
        held |= dict.fromkeys(block, float(mass / whole / len(block)))
        rank += len(block)
    return held


def simulated(
    sides: str, orders: Sequence[Order], relevant: Sequence[Sequence[str]], depth: int, rounds: int
) -> list[float]:
    """Draw labels anew in every round, document by document, with Python's own generator."""
    draw = random.Random(1)
    label: Mapping[str, str] = {f"d{n}": side for n, side in enumerate(sides)}
    sign = {"a": 1, "b": -1, "-": 0}
    ever = {d for right in relevant for d in right}
    labelled = [d for d in label if label[d] != "-"]
    strata = [[d for d in labelled if d in ever], [d for d in labelled if d not in ever]]
    found = []
    for _ in range(rounds):
        everywhere = dict.fromkeys(label, "-")
        for stratum in strata:
            everywhere |= dict(zip(stratum, draw.sample([label[d] for d in stratum], len(stratum)), strict=True))
        values = []
        for order, right in zip(orders, relevant, strict=True):
            known = [d for d in right if label[d] != "-"]
            drawn = everywhere | dict(zip(known, draw.sample([label[d] for d in known], len(known)), strict=True))
            values.append(sum(share * sign[drawn[d]] for d, share in shares(order, depth).items()))
        found.append(statistics.fmean(values))
    return found


class TestDifference:
    def test_by_hand_with_ties_a_cut_and_documents_of_no_group(self) -> None:
        given = made("abb-a", [[["d0"], ["d1", "d3"], ["d4"]], [["d2"]], []])
        page = TopRanks.of(given.aligned, NDSR @ 3, 5)
        t = 1 / np.log2(3)
        expected = [(1 - (t + 0.5) / 2) / (1.5 + t), -1, 0]
        assert page.difference(signs_of(given.groups, ("a", "b"))).tolist() == pytest.approx(expected)
        assert page.known.tolist() == [True, True, False]
        origins = np.array([0, 1, 0, -1, 1])  # d0 and d2 are of one origin, d1 and d4 of another
        nets = page.clusters(signs_of(given.groups, ("a", "b"))).of(origins).origin_totals
        assert nets.tolist() == pytest.approx([1 / (1.5 + t) - 1, (0.5 - (t + 0.5) / 2) / (1.5 + t) - 0.5 / (1.5 + t)])

    def test_documents_that_nobody_knows_keep_their_part_of_the_page(self) -> None:
        given = made("ab", [[["d0"], ["d1"]]])
        page = TopRanks.of(given.aligned, NDSR @ 2, 1)  # a collection of one document: d1 is beyond it
        assert page.row.tolist() == [0, -1]
        assert page.difference(np.array([1], dtype=np.int8)).tolist() == pytest.approx([1 / (1 + 1 / np.log2(3))])


class TestLevel:
    @pytest.mark.parametrize(("sides", "expected"), [("aab", 1 / 3), ("abb-", -1 / 4), ("ab-----", 0)])
    def test_it_is_the_difference_of_shares(self, sides: str, expected: float) -> None:
        signs = np.array([{"a": 1, "b": -1, "-": 0}[s] for s in sides], dtype=np.int8)
        assert share_difference(signs) == pytest.approx(expected)
        assert share_difference(-signs) == -share_difference(signs)

    @pytest.mark.parametrize(
        ("pairs", "expected"),
        [
            ([(0, 1), (2, 3)], True),
            ([(0, 1)], False),  # d2 and d3 have none
            ([(0, 1), (2, 3), (0, 3)], False),  # d0 has two
            ([], False),
        ],
    )
    def test_twins_are_all_paired_where_each_document_has_one(
        self, pairs: list[tuple[int, int]], expected: bool
    ) -> None:
        signs = np.array([1, -1, 1, -1, 0], dtype=np.int8)
        assert all_paired(signs, np.array(pairs, dtype=np.int64).reshape(-1, 2)) is expected


def random_case(seed: int, *, documents: int, depth: int) -> tuple[str, list[Order], list[list[str]]]:
    rng = random.Random(seed)
    names = [f"d{n}" for n in range(documents)]
    sides = "".join(rng.choice("aabb-") for _ in names[2:]) + "ab"
    orders, relevant = [], []
    for _ in range(4):
        chosen = rng.sample(names, depth + 2)
        blocks: list[list[str]] = []
        for name in chosen:
            if blocks and rng.random() < 0.3:
                blocks[-1].append(name)
            else:
                blocks.append([name])
        orders.append(blocks)
        relevant.append(rng.sample(names, rng.randint(1, 5)))
    return sides, orders, relevant


class TestRandomLabels:
    @pytest.mark.parametrize(("documents", "depth"), [(12, 5), (60, 14)])
    def test_they_are_distributed_as_a_slow_simulation_says(self, documents: int, depth: int) -> None:
        sides, orders, relevant = random_case(documents, documents=documents, depth=depth)
        fast = null_of(made(sides, orders, relevant), depth, shuffles=4000)
        slow = simulated(sides, orders, relevant, depth, 4000)
        error = statistics.stdev(slow) * (2 / 4000) ** 0.5
        assert fast.mean() == pytest.approx(statistics.fmean(slow), abs=4 * error)
        assert fast.std() == pytest.approx(statistics.pstdev(slow), rel=0.06)
        for q in (0.025, 0.5, 0.975):
            assert np.quantile(fast, q) == pytest.approx(np.quantile(slow, q), abs=0.25 * statistics.stdev(slow))

    def test_labels_are_drawn_without_replacement(self) -> None:
        # All six documents tie and fill the page: whoever is who, the sides hold 4/6 and 2/6 of it.
        full = [[f"d{n}" for n in range(6)]]
        assert null_of(made("aaaabb", [full]), 6).tolist() == pytest.approx([2 / 6] * 1000)
        # A query without results counts not at all.
        assert null_of(made("aaaabb", [full, [], full]), 6).tolist() == pytest.approx([2 / 6] * 1000)

    def test_a_relevant_document_that_is_not_retrieved_leaves_its_label_among_the_relevant(self) -> None:
        # d0 (a) and d2 (b) are relevant, only d0 is retrieved: it is of a in half of the draws. The rest is one tie.
        given = made("aabb", [[["d0"], ["d1", "d3"]]], [["d0", "d2"]])
        top = shares([["d0"], ["d1", "d3"]], 3)["d0"]
        counts = Counter(np.round(null_of(given, 3), 9).tolist())
        assert set(counts) == {round(top, 9), round(-top, 9)}
        assert counts[round(top, 9)] == pytest.approx(500, abs=80)

    def test_a_run_feels_neither_the_other_runs_nor_the_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sides, orders, relevant = random_case(7, documents=60, depth=8)
        one, two = (made(sides, mine, relevant) for mine in (orders, orders[::-1]))
        pages = [TopRanks.of(given.aligned, NDSR @ 8, 60) for given in (one, two)]
        shuffles = Shuffles(one.aligned.judgments, 0, 100)
        alone = [next(share_bands([page], one.groups, shuffles)).tolist() for page in pages]
        assert [found.tolist() for found in share_bands(pages, one.groups, shuffles)] == alone
        monkeypatch.setattr(random_band, "_SHARE", 1 << 40)
        assert [found.tolist() for found in share_bands(pages, one.groups, shuffles)] == alone

    def test_blocks_of_any_size_are_as_good(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given = made(*random_case(5, documents=60, depth=8))
        whole = null_of(given, 8)
        monkeypatch.setattr(random_band, "_CELLS", 100)
        parts = null_of(given, 8)
        assert len(parts) == len(whole) == 1000
        assert parts.mean() == pytest.approx(whole.mean(), abs=4 * whole.std() * (2 / 1000) ** 0.5)
        assert parts.std() == pytest.approx(whole.std(), rel=0.12)

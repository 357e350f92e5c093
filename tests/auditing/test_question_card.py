"""The question card: every number of a small collection by hand, its checks by brute force, and
what it leaves out.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from scipy import stats

from ranktilt import Audit, Collection, UserError, audit
from ranktilt.auditing.effects import Effect
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.statistics.bootstrap import resampled_means
from ranktilt.statistics.correction import correct
from tests.auditing.test_audit import SCORES
from tests.auditing.test_audit import THIRD as T
from tests.refusals import refused
from tests.reporting.audits import ordered, twins
from tests.toy import Table, collection_of, run_of, toy

KINDS = ("relative delta", "page", "relevant twins", "other twins", "rank gap", "score gap")


def card_of(audit: Audit) -> dict[str, Effect]:
    return {e.estimand.key: e for e in audit.card_of(None)}


def toy_card(
    scores: Table = SCORES, *, collection: Collection | None = None, **options: Any
) -> dict[str, Effect]:
    collection = collection or toy()
    run = run_of(collection, scores, ranker="hand", **options.pop("spec", {}))
    return card_of(
        audit(collection, run, **{"measures": "nDCG@1", "card": True, "depth": 3, **options})
    )


def without_judgments(collection: Collection) -> Collection:
    return Collection(collection.docs, collection.queries, collection.qrels.clear())


Cells = Mapping[tuple[str, str], tuple[float, float]]
"""What each query and origin adds to the sums behind an answer: total and weight."""


def sums_of(cells: Cells, axis: int) -> dict[str, tuple[float, float]]:
    """Sum cells by query (axis 0) or by origin (axis 1)."""
    sums: dict[str, tuple[float, float]] = {}
    for key, (total, weight) in cells.items():
        before = sums.get(key[axis], (0.0, 0.0))
        sums[key[axis]] = before[0] + total, before[1] + weight
    return sums


def totals_of(cells: Cells, axis: int) -> list[float]:
    return [total for total, _ in sums_of(cells, axis).values()]


class Inferred(NamedTuple):
    """What the rule in the documentation makes of cells: interval, error, G, and the levels that p
    lies between.
    """

    ends: tuple[float, float]
    error: float
    effective_n: float
    p_above: float
    p_below: float


def inferred(cells: Cells, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Inferred:
    """Stretch the percentile interval at every level, and look for the one that first
    excludes 0.
    """
    queries, origins = (np.array(list(sums_of(cells, axis).values())) for axis in (0, 1))
    value = queries[:, 0].sum() / queries[:, 1].sum()
    q, o, both = (
        float(((part[:, 0] - value * part[:, 1]) ** 2).sum())
        for part in (queries, origins, np.array(list(cells.values())))
    )
    effective_n = min(
        float(part[:, 1].sum() ** 2 / (part[:, 1] ** 2).sum()) for part in (queries, origins)
    )
    wider = math.sqrt(max(q + o - both, q, o) / q)
    totals, weights = resampled_means([*queries.T])
    ordered = np.sort(totals / weights)
    orders = np.arange(1, 5000)  # of 10,000; the 250th belongs to .05
    level = 0.05 * orders / 250
    width = (
        wider
        * math.sqrt(effective_n / (effective_n - 1))
        * stats.t.ppf(1 - level / 2, effective_n - 1)
        / stats.norm.ppf(1 - level / 2)
    )
    low, high = (value + width * (ordered[index] - value) for index in (orders - 1, -orders))
    holding = int(((low <= 0) & (high >= 0)).sum())
    ends = np.clip([low[249], high[249]], *bounds)
    return Inferred(
        (ends[0], ends[1]),
        wider * float(ordered.std()),
        effective_n,
        level[holding - 1],
        level[holding],
    )


def flipped(total: list[float]) -> float:
    """Two-sided p of the sum over all signs."""
    sums = [
        abs(sum(s * t for s, t in zip(signs, total, strict=True)))
        for signs in product((1, -1), repeat=len(total))
    ]
    return sum(s >= abs(sum(total)) - 1e-12 for s in sums) / len(sums)


def exchanged_p(totals: Iterable[Fraction]) -> float:
    """Two-sided p of a sum of what origins add, each with its labels as they are or exchanged."""
    totals, counts = list(totals), Counter({Fraction(0): 1})
    for total in totals:
        turned: Counter[Fraction] = Counter()
        for reached, count in counts.items():
            turned[reached + total] += count
            turned[reached - total] += count
        counts = turned
    return sum(
        count for reached, count in counts.items() if abs(reached) >= abs(sum(totals))
    ) / 2 ** len(totals)


D = 1.5 + T
PAGE = [(1 - T - 0.5) / D, (0.5 - 1 - T) / D, 0.5 / D]
SD1, SD2 = math.sqrt(0.56), math.sqrt(2 / 3)
TIED = (T + 0.5) / 2
"""In query 1 two documents share the second and the third rank."""
CELLS: dict[str, Cells] = {
    "page": {
        ("q1", "d1"): ((1 - TIED) / D, (1 + TIED) / D),
        ("q1", "d3"): (-TIED / D, TIED / D),
        ("q2", "d1"): (-1 / D, 1 / D),
        ("q2", "d2"): ((0.5 - T) / D, (0.5 + T) / D),
        ("q3", "d3"): (0, (1 + T) / D),
        ("q3", "d1"): (0.5 / D, 0.5 / D),
    },
    # q1: d1 wins, d3 loses; q2: d2 loses; q3: d3 ties. Each query counts once.
    "relevant twins": {
        ("q1", "d1"): (1 / 2, 1 / 2),
        ("q1", "d3"): (-1 / 2, 1 / 2),
        ("q2", "d2"): (-1, 1),
        ("q3", "d3"): (0, 1),
    },
    # d2, d1 and d1, each retrieved on one side only.
    "other twins": {("q1", "d2"): (1, 1), ("q2", "d1"): (-1, 1), ("q3", "d1"): (1, 1)},
    "rank gap": {
        ("q1", "d1"): (2.5 - 1, 1),
        ("q1", "d3"): (2.5 - 4.5, 1),
        ("q2", "d2"): (2 - 3, 1),
        ("q3", "d3"): (0, 1),
    },
    "score gap": {
        ("q1", "d1"): ((3 - 2) / SD1, 1),
        ("q1", "d3"): ((1 - 2) / SD1, 1),
        ("q2", "d2"): ((3 - 4) / SD2, 1),
        ("q3", "d3"): (0, 1),
    },
}
COPIES = 5


def copied(cells: Cells) -> Cells:
    return {(f"{n}{q}", f"{n}{d}"): cell for n in range(COPIES) for (q, d), cell in cells.items()}


def copies_card(*, is_judged: bool = True) -> dict[str, Effect]:
    """Audit five copies of the toy side by side, with documents, queries and rankings of
    their own.
    """
    plain = toy()
    docs = [
        {**doc, "id": f"{n}{doc['id']}", "origin": f"{n}{doc['origin']}"}
        for n in range(COPIES)
        for doc in plain.docs.iter_rows(named=True)
    ]
    scores = {
        f"{n}{q}": {f"{n}{d}": v for d, v in query_scores.items()}
        for n in range(COPIES)
        for q, query_scores in SCORES.items()
    }
    qrels: dict[str, dict[str, int]] = {q: {} for q in scores}
    for q, d, grade in plain.qrels.iter_rows():
        for n in range(COPIES):
            qrels[f"{n}{q}"][f"{n}{d}"] = grade
    collection = collection_of(docs, dict.fromkeys(qrels, "x"), qrels)
    if is_judged:
        return toy_card(scores, collection=collection)
    return toy_card(scores, collection=without_judgments(collection), measures=None)


class TestByHand:
    def test_card_asks_every_run_and_pair(self) -> None:
        collection = twins(3, ("human", "llm", "gpt"))
        runs = [ordered(collection, [("gpt", "human", "llm")] * 3, name) for name in "rs"]
        result = audit(collection, runs, ["AP@3", "nDCG@1"], card=True, resamples=100, depth=3)
        pairs = (("human", "gpt"), ("human", "llm"), ("gpt", "llm"))
        assert [(e.run, e.a, e.b, e.estimand.key) for e in result.card] == [
            (run, *pair, kind) for run in "rs" for pair in pairs for kind in KINDS
        ]
        primary = [t for t in result.tilts if t.measure == "nDCG@1"]
        assert [(e.value, e.low, e.p) for e in result.card[::6]] == [
            (t.value, t.low, t.p) for t in primary
        ]
        assert [e.name for e in result.card_of("s", "llm", "gpt")] == [
            "Relative Δ nDCG@1",
            "ΔNDSR@3",
            "head-to-head, relevant twins",
            "head-to-head, other twins",
            "pair rank gap",
            "score gap",
        ]
        with pytest.raises(UserError, match="unknown pair of groups 'human,claude'"):
            result.card_of(None, "human", "claude")

    @pytest.mark.parametrize("kind", CELLS)
    def test_value_queries_and_votes(self, kind: str) -> None:
        effect, (total, weight) = (
            toy_card()[kind],
            map(sum, zip(*CELLS[kind].values(), strict=True)),
        )
        assert effect.value == pytest.approx(total / weight, abs=1e-15)
        assert (effect.queries, effect.neutral, effect.has_random_band) == (3, 0, False)
        # No three documents carry equally much, so fewer than three votes: too few for an interval.
        weights = np.array(list(sums_of(CELLS[kind], 1).values()))[:, 1]
        assert effect.effective_n == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
        assert effect.effective_n < 3
        assert np.isnan([effect.low, effect.high, effect.error, effect.p, effect.p_corrected]).all()

    @pytest.mark.parametrize("kind", CELLS)
    def test_interval_and_p_of_five_copies(self, kind: str) -> None:
        effect, single = copies_card()[kind], toy_card()[kind]
        expected = inferred(copied(CELLS[kind]), effect.estimand.bounds)
        assert (effect.value, effect.effective_n) == pytest.approx(
            (single.value, COPIES * single.effective_n)
        )
        assert (effect.low, effect.high) == pytest.approx(expected.ends)
        assert (effect.error, effect.effective_n) == pytest.approx(
            (expected.error, expected.effective_n)
        )
        assert expected.p_above <= effect.p <= expected.p_below
        assert np.isnan(effect.p_corrected) == (effect.effective_n < 10)

    def test_their_checks(self) -> None:
        effects_by_kind = toy_card()
        cells = {**CELLS, "relative delta": {("q1", "d1"): (1.0, 0.5), ("q2", "d2"): (0.0, 0.0)}}
        flips, labels = (
            {kind: flipped(totals_of(cells[kind], axis)) for kind in cells} for axis in (0, 1)
        )
        # Rank gap by exchanged labels: d1 adds 1.5 ranks, d2 −1, d3 −2; six of eight signs are as
        # far out.
        assert labels["rank gap"] == 6 / 8
        assert {
            kind: e.checks["sign flips"] for kind, e in effects_by_kind.items()
        } == pytest.approx(flips)
        assert {
            kind: e.checks["exchanged labels"] for kind, e in effects_by_kind.items()
        } == pytest.approx(labels, abs=0.02)

    def test_twins_not_retrieved_are_below_the_last_rank(
        self,
    ) -> None:
        effects_by_kind = toy_card()
        relevant, irrelevant = (
            effects_by_kind["relevant twins"].details,
            effects_by_kind["other twins"].details,
        )
        assert relevant == {
            "pairs": 4,
            "wins": 1,
            "losses": 2,
            "ties": 1,
            "both": 4,
            "both_wins": 1,
            "both_losses": 2,
            "query_wins": 0,
            "query_losses": 1,
            "share_wins": 1 / 4,
            "share_losses": 2 / 4,
            "mean_wins": pytest.approx((1 / 2 + 0 + 0) / 3),
            "mean_losses": pytest.approx((1 / 2 + 1 + 0) / 3),
        }
        assert irrelevant == {
            "pairs": 3,
            "wins": 2,
            "losses": 1,
            "ties": 0,
            "both": 0,
            "both_wins": 0,
            "both_losses": 0,
            "query_wins": 2,
            "query_losses": 1,
            "share_wins": 2 / 3,
            "share_losses": 1 / 3,
            "mean_wins": pytest.approx(2 / 3),
            "mean_losses": pytest.approx(1 / 3),
        }
        assert effects_by_kind["rank gap"].details == {"pairs": 4, "absent": 0}
        assert effects_by_kind["score gap"].details == {"pairs": 4, "raw": -1 / 4}
        assert effects_by_kind["page"].details == {"shares": 0}
        scores = {**SCORES, "q3": {"d1-human": 2.0, "d3-llm": 1.0}}
        effects_by_kind = toy_card(scores)
        # In query 3 the human side of d3 has rank 3, after a list of two.
        assert effects_by_kind["rank gap"].value == pytest.approx((-0.5 - 1 + (2 - 3)) / 4)
        assert effects_by_kind["rank gap"].details == {"pairs": 4, "absent": 1 / 8}
        assert effects_by_kind["relevant twins"].details["both"] == 3
        assert effects_by_kind["relevant twins"].details["pairs"] == 4

    def test_lost_pair_with_unretrieved_judged_side(self) -> None:
        """Judged is the human side of pair 1 only; of it only the other side is found, then both,
        then only it.
        """
        sides = [(o, s) for o in range(3) for s in ("human", "llm")]
        docs = [{"id": f"{o}-{s}", "text": "x", "source": s, "origin": f"{o}"} for o, s in sides]
        qrels = {q: {"0-human": 1, "0-llm": 1, "1-human": 1} for q in ("q0", "q1", "q2")}
        collection = collection_of(docs, dict.fromkeys(qrels, "x"), qrels)
        scores_by_query = {
            "q0": {"1-llm": 2.0, "2-llm": 1.0},
            "q1": {"1-llm": 2.0, "1-human": 1.0},
            "q2": {"1-human": 2.0},
        }
        counts = audit(
            collection, run_of(collection, scores_by_query, ranker="r"), "nDCG@3", resamples=100
        ).pair_counts
        rows = {
            (q, r): (w, n)
            for q, r, w, n in counts.select("query", "relevant", "wins", "losses").iter_rows()
        }
        assert [rows[q, True] for q in scores_by_query] == [(0, 1), (0, 1), (1, 0)]
        assert [rows[q, False] for q in scores_by_query] == [(0, 1), (0, 0), (0, 0)]


class TestHeadToHead:
    """A query with many pairs counts once; each pair stands in one query."""

    @staticmethod
    def wins(per_query: list[tuple[int, int]]) -> Effect:
        """Queries in which human text wins and loses so many pairs of its own."""
        docs, scores, qrels = [], dict[str, dict[str, float]](), dict[str, dict[str, int]]()
        for q, counts in enumerate(per_query):
            scores[f"q{q}"], qrels[f"q{q}"] = {}, {}
            for sign, count in zip((1, -1), counts, strict=True):
                for n in range(count):
                    human, llm = (f"{q}.{sign}.{n}-{s}" for s in ("human", "llm"))
                    docs.append({"id": human, "text": human, "source": "human", "origin": human})
                    docs.append({"id": llm, "text": llm, "source": "llm", "origin": human})
                    scores[f"q{q}"] |= {human: n + sign / 4, llm: float(n)}
                    qrels[f"q{q}"] |= {human: 1, llm: 1}
        collection = collection_of(docs, dict.fromkeys(qrels, "x"), qrels)
        return card_of(audit(collection, run_of(collection, scores), "nDCG@1", card=True))[
            "relevant twins"
        ]

    @staticmethod
    def cells(per_query: list[tuple[int, int]]) -> dict[tuple[str, str], Fraction]:
        """Return what each pair adds to the mean: its query's share."""
        return {
            (f"{q}", f"{q}.{sign}.{n}"): Fraction(sign, sum(counts))
            for q, counts in enumerate(per_query)
            for sign, count in zip((1, -1), counts, strict=True)
            for n in range(count)
        }

    @pytest.mark.parametrize(
        ("per_query", "flips"),
        [
            ([(1, 0)] * 5, 2 / 32),
            ([(9, 1)] * 5, 2 / 32),
            ([(1, 0)] * 5 + [(0, 1)], 2 * 7 / 64),
            ([(2, 1)] * 3 + [(1, 1)] * 30, 2 / 8),
            ([(1, 1)] * 4, 1.0),
            ([(0, 3)], 1.0),
        ],
    )
    def test_value_and_checks(self, per_query: list[tuple[int, int]], flips: float) -> None:
        effect = self.wins(per_query)
        means = [(won - lost) / (won + lost) for won, lost in per_query]
        assert effect.value == pytest.approx(sum(means) / len(means))
        assert effect.queries == len(per_query)
        exact = exchanged_p(self.cells(per_query).values())
        assert effect.checks == pytest.approx(
            {"sign flips": flips, "exchanged labels": exact}, abs=0.02
        )

    @pytest.mark.parametrize(
        ("per_query", "p"),
        [
            ([(1, 0)] * 5, 2 * 0.5**5),  # all effective_n on one side
            # Queries say the same, pairs do not: (45 · .2² + 5 · 1.8²)/50² · 5/4, four degrees of
            # freedom.
            ([(9, 1)] * 5, 2 * stats.t.sf(0.8 / math.sqrt(18 / 50**2 * 5 / 4), 4)),
            ([(1, 1)] * 4, 1.0),
            ([(0, 3)], math.nan),
        ],
    )
    def test_p_where_all_queries_say_the_same(
        self, per_query: list[tuple[int, int]], p: float
    ) -> None:
        effect = self.wins(per_query)
        assert effect.p == pytest.approx(p, nan_ok=True)
        assert math.isnan(effect.p_corrected)  # at most five votes

    @pytest.mark.parametrize(
        "per_query", [[(1, 0)] * 4 + [(0, 1)] * 2, [(2, 1)] * 3 + [(1, 1)] * 30]
    )
    def test_p_is_the_level_whose_interval_first_excludes_0(
        self, per_query: list[tuple[int, int]]
    ) -> None:
        effect = self.wins(per_query)
        cells = {
            key: (float(part), abs(float(part))) for key, part in self.cells(per_query).items()
        }
        expected = inferred(cells, (-1.0, 1.0))
        assert (effect.low, effect.high) == pytest.approx(expected.ends)
        assert (effect.effective_n, effect.error) == pytest.approx(
            (expected.effective_n, expected.error)
        )
        assert expected.p_above <= effect.p <= expected.p_below


class TestWithoutJudgments:
    def test_the_questions_that_need_none(self) -> None:
        collection = without_judgments(toy())
        result = audit(collection, run_of(collection, SCORES, ranker="hand"), card=True, depth=3)
        card = card_of(result)
        assert tuple(card) == ("page", "twins", "twins, pooled", "rank gap", "score gap")
        # q1: d1 and d2 win, d3 loses; q2: d1 and d2 lose; q3: d1 wins, d3 ties.
        assert (card["twins"].value, card["twins, pooled"].value) == pytest.approx(
            ((1 / 3 - 1 + 1 / 2) / 3, 0)
        )
        assert result.measures == result.tilts == ()
        assert result.values.shape == (1, 0, 3, 3)
        assert card["page"].value == pytest.approx(sum(PAGE) / 3)
        assert (
            card["twins"].details | {"pairs": 7, "wins": 3, "losses": 3, "ties": 1, "both": 4}
            == card["twins"].details
        )
        assert card["score gap"].value == pytest.approx(-1 / SD2 / 4)

    def test_the_rank_gap_is_a_sum_per_query(self) -> None:
        rank_gap = toy_card(collection=without_judgments(toy()), measures=None)["rank gap"]
        # q1: d1 and d3 as before, d2: 4.5 against the sixth; q2: d2, d1: 1 against the fourth; q3:
        # d3, d1 at 3.
        totals = [-0.5 + (6 - 4.5), -1 + (1 - 4), 4 - 3]
        assert rank_gap.name == "pair rank gap, summed per query"
        assert rank_gap.value == pytest.approx(sum(totals) / 3)
        assert rank_gap.details == {}
        # The parts of a query's documents add up to its sum; each document found is an equal share
        # of its weight.
        cells: Cells = {
            ("q1", "d1"): (1.5, 2 / 5),
            ("q1", "d3"): (-2, 2 / 5),
            ("q1", "d2"): (6 - 4.5, 1 / 5),
            ("q2", "d2"): (-1, 2 / 3),
            ("q2", "d1"): (1 - 4, 1 / 3),
            ("q3", "d3"): (0, 2 / 3),
            ("q3", "d1"): (4 - 3, 1 / 3),
        }
        assert totals_of(cells, 0) == totals
        rank_gap, expected = copies_card(is_judged=False)["rank gap"], inferred(copied(cells))
        assert (rank_gap.low, rank_gap.high, rank_gap.effective_n) == pytest.approx(
            (*expected.ends, expected.effective_n)
        )

    def test_without_the_card_the_primary_question_alone_is_asked(self) -> None:
        collection = without_judgments(toy())
        result = audit(collection, run_of(collection, SCORES))
        assert [repr(e.estimand) for e in result.card] == [
            "HeadToHead",
            "HeadToHead(over=pairs)",
        ]
        with refused("this audit has no card; audit with --card (card=True)"):
            audit(toy(), run_of(toy(), SCORES), "nDCG@1").card_of(None)
        with pytest.raises(
            UserError,
            match=r"^no judgments, so no measure can be computed, and no groups to compare",
        ):
            audit(collection, run_of(collection, SCORES), by=None)


class TestWhatARunLacks:
    def test_missing_query_counts_relevant_pairs_run_by_run(self) -> None:
        scores = {q: SCORES[q] for q in ("q1", "q3")}
        zero, exclude = toy_card(scores), toy_card(scores, missing="exclude")
        assert zero["rank gap"].details == {"pairs": 4, "absent": 2 / 8}
        assert exclude["rank gap"].details == {"pairs": 3, "absent": 0}
        assert (zero["rank gap"].value, exclude["rank gap"].value) == pytest.approx(
            (-0.5 / 4, -0.5 / 3)
        )
        assert zero["page"].value == exclude["page"].value == pytest.approx((PAGE[0] + PAGE[2]) / 2)
        assert (zero["relative delta"].queries, exclude["relative delta"].queries) == (3, 2)
        collection = toy()
        runs = [
            run_of(collection, SCORES, ranker="all"),
            run_of(collection, {"q1": SCORES["q1"]}, ranker="one"),
        ]
        result = audit(collection, runs, "nDCG@1", card=True, missing="exclude")
        assert [e.queries for e in result.card if e.estimand.key == "rank gap"] == [3, 1]
        assert result.by_group().filter(pl.col("group") == "all")["queries"].to_list() == [3, 1]
        assert "one: 2 judged queries not in the run, not counted" in note_sentences(result.notes)

    def test_queries_that_only_judgments_know_count_for_no_side(self) -> None:
        plain = toy()
        judged = pl.DataFrame(
            {"query_id": ["q9", "q9"], "doc_id": ["d1-human", "d1-llm"], "grade": [1, 1]}
        )
        more = Collection(
            plain.docs, plain.queries, pl.concat([plain.qrels, judged.cast(plain.qrels.schema)])
        )
        scores = {**SCORES, "q9": {"d1-human": 9.0, "d1-llm": 1.0, "d2-human": 0.5}}
        before, enlarged = toy_card(), toy_card(scores, collection=more)
        for kind in KINDS:
            assert (enlarged[kind].value, enlarged[kind].details) == (
                before[kind].value,
                before[kind].details,
            )

    def test_run_ordered_by_ranks_has_no_score_gap(
        self,
    ) -> None:
        effects_by_kind = toy_card(spec={"score_order": "rank"})
        assert np.isnan([effects_by_kind["score gap"].value, effects_by_kind["score gap"].p]).all()
        assert (effects_by_kind["score gap"].queries, effects_by_kind["rank gap"].value) == (
            0,
            toy_card()["rank gap"].value,
        )
        assert [kind for kind, e in effects_by_kind.items() if math.isnan(e.value)] == ["score gap"]
        effects_by_kind = toy_card({})
        assert all(math.isnan(effects_by_kind[kind].value) for kind in KINDS if kind != "rank gap")
        assert (
            effects_by_kind["rank gap"].value,
            effects_by_kind["rank gap"].details["absent"],
        ) == (0, 1)
        assert [
            effects_by_kind[kind].queries for kind in ("page", "relevant twins", "score gap")
        ] == [
            0,
            0,
            0,
        ]


class TestGroupsThatAreNotTwins:
    @pytest.mark.parametrize("shift", [0.8, 0.0, -0.8])
    @pytest.mark.parametrize("blank", [True, False])
    def test_page_partly_unlabelled_is_level_where_the_rest_is(
        self, shift: float, blank: bool
    ) -> None:
        """Half of the documents have a label, five of six of them a; a label file lacks the others,
        or is blank.
        """
        rng = np.random.default_rng(3)
        side: dict[str, str | None] = {f"d{n}": None for n in range(600)}
        for n in range(0, 600, 2):
            side[f"d{n}"] = "b" if n % 12 == 0 else "a"
        docs = [{"id": d, "text": "", "side": s} for d, s in side.items()]
        collection = collection_of(docs, {f"q{q}": "x" for q in range(60)}, {})
        drawn = {q: rng.choice(600, 40, replace=False) for q in collection.queries["id"]}
        lift = {"a": 0.5, "b": 0.5 + shift, None: 0.0}
        scores = {
            q: {f"d{d}": rng.normal() + lift[side[f"d{d}"]] for d in ds} for q, ds in drawn.items()
        }
        labelled = collection.docs.filter(pl.col("side").is_not_null())
        known = collection if blank else Collection(labelled, collection.queries, collection.qrels)
        page = card_of(audit(known, run_of(collection, scores), by="side", card=True))["page"]
        pages = [
            [bool(side[d]) for d in sorted(query_scores, key=lambda d: -query_scores[d])[:20]]
            for query_scores in scores.values()
        ]
        discounts = 1 / np.log2(np.arange(2, 22))
        share = (np.mean(pages, axis=0) * discounts).sum() / discounts.sum()
        assert 0.55 < share < 0.75
        assert page.neutral == pytest.approx(share * 2 / 3, abs=0.01)
        assert page.side(page.favours) == {0.8: "b", 0.0: "", -0.8: "a"}[shift]

    def test_twins_with_documents_without_twin_use_random_band(self) -> None:
        plain = toy()
        extra = pl.DataFrame(
            {"id": ["x"], "title": [""], "text": ["x"], "source": ["human"], "origin": ["x"]}
        )
        more = Collection(pl.concat([plain.docs, extra]), plain.queries, plain.qrels)
        effects_by_kind = toy_card(collection=more)
        assert effects_by_kind["page"].has_random_band
        assert effects_by_kind["page"].details["shares"] == pytest.approx(1 / 7)
        assert not effects_by_kind["relative delta"].has_random_band


@pytest.mark.parametrize("correction", ["bonferroni", "holm"])
def test_ps_beside_primary_are_a_family_without_score_gap(correction: str) -> None:
    collection, runs = twins(12), []
    for name, losses in (("r", 0), ("s", 1), ("t", 2)):
        sides = [("human", "llm") if n >= losses else ("llm", "human") for n in range(12)]
        scores = {
            f"q{n}": {f"{n}-{top}": 2.0 + n, f"{n}-{low}": 1.0}
            for n, (top, low) in enumerate(sides)
        }
        runs.append(run_of(collection, scores, ranker=name))
    card_effects = audit(collection, runs, "nDCG@1", card=True, correction=correction).card
    tested = [e for e in card_effects if e.estimand.key not in ("score gap", "other twins")]
    exact = sorted([2 / 4096, 26 / 4096, 158 / 4096] * 4)
    assert sorted(e.checks["sign flips"] for e in tested) == pytest.approx(exact)
    # Where no query is lost, p is that of twelve effective_n on one side, to the same number.
    assert [e.p for e in tested if e.run == "r"] == pytest.approx([2 * 0.5**12] * 4)
    for members in (
        [e for e in tested if (e.measure == "nDCG@1") is first] for first in (True, False)
    ):
        assert {e.family_size for e in members} == {len(members)}
        expected = correct([e.p for e in members], correction)
        assert [e.p_corrected for e in members] == pytest.approx(expected.tolist())
    assert all(e.p_corrected == e.p for e in card_effects if e.estimand.key == "score gap")
    assert all(math.isnan(e.p_corrected) for e in card_effects if e.estimand.key == "other twins")

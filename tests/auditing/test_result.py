"""The audit as a value: its table and views, its one file, and what its numbers are made of."""

import json
from collections.abc import Mapping
from itertools import groupby, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktilt import Audit, Collection, Run, UserError, audit, controls, gate
from ranktilt.auditing.breakdown import RankShares, contributions, query_parts, rank_shares
from ranktilt.auditing.storage.top_results import MOST_RESULTS, TopResults
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.statistics.correction import detectable_effect
from tests.auditing.arrays import audit_of
from tests.refusals import refused
from tests.reporting.audits import small, twins
from tests.toy import run_of, toy


def ranked(collection: Collection, name: str, above: list[str]) -> Run:
    """Query i finds its two documents, the source named in `above` first; "-" lets them tie."""
    scores = {}
    for i, winner in enumerate(above):
        scores[f"q{i}"] = {f"{i}-{s}": 2.0 if winner == s else 1.0 for s in ("human", "llm")}
    return run_of(collection, scores, ranker=name)


@pytest.fixture(scope="module")
def three() -> Audit:
    """40 queries: one ranker puts human text first, one the other, one ties all."""
    collection = twins(40)
    runs = [
        ranked(collection, "people", ["human"] * 38 + ["llm"] * 2),
        ranked(collection, "machines", ["llm"] * 36 + ["-"] * 4),
        ranked(collection, "blind", ["-"] * 40),
    ]
    return audit(collection, runs, ["nDCG@1", "RR", "R@2"])


@pytest.fixture
def uneven() -> Audit:
    """Undefined values: query 2 of the toy without its LLM judgment; another run with nothing at
    all.
    """
    collection = toy()
    qrels = collection.qrels.filter(pl.col("doc_id") != "d2-llm")
    collection = Collection(collection.docs, collection.queries, qrels)
    return audit(
        collection,
        [
            run_of(collection, {"q1": {"d1-human": 1 / 3}}, ranker="one"),
            run_of(collection, {}, ranker="none"),
        ],
        ["nDCG@3", "AP(rel=2)@3"],
    )


@pytest.fixture(scope="module")
def full_audit() -> Audit:
    """The toy with everything an audit can hold; the second run finds nothing, so that much is
    undefined.
    """
    collection, rankers = toy(), [BM25(), BM25(k1=0.9)]
    runs = [rankers[0].rank(collection), run_of(collection, {}, ranker="bm25(k1=0.9)")]
    raw = audit(collection, runs, ["nDCG@1", "AP@3"], card=True, resamples=200)
    return controls(collection, rankers, runs, raw)


class TestTables:
    def test_values_and_means_stand_at_their_names(self, three: Audit) -> None:
        for *names, value in (
            ("people", "nDCG@1", "human", "q39", 0.0),
            ("machines", "RR", "human", "q39", 0.75),
            ("blind", "nDCG@1", "all", "q11", 1.0),
        ):
            here = [
                pl.col(c) == v
                for c, v in zip(("run", "measure", "group", "query"), names, strict=True)
            ]
            assert three.table.filter(*here)["value"].item() == value
        means = three.by_group().filter(pl.col("measure") == "nDCG@1")
        assert means["run"].to_list() == ["people"] * 3 + ["machines"] * 3 + ["blind"] * 3
        assert means["group"].to_list() == ["all", "human", "llm"] * 3
        assert means["mean"].to_list() == pytest.approx([1, 0.95, 0.05, 1, 0.05, 0.95, 1, 0.5, 0.5])

    def test_detectable_effect_uses_first_step_of_correction(self, three: Audit) -> None:
        frame = three.frame("tilts")
        assert frame.select("run", "measure").rows() == [
            (r, m) for r in three.runs for m in ("nDCG@1", "RR", "R@2")
        ]
        assert frame["value"].to_list() == pytest.approx(
            [200 * 0.9, 200 * (1.95 - 1.05) / 2 / 1.5, 0, -200 * 0.9, -200 * 0.9 / 3, 0, 0, 0, 0]
        )
        tests = [
            3 if name == "nDCG@1" else 6 for name in frame["measure"]
        ]  # three runs on the primary measure
        assert frame["family_size"].to_list() == tests
        columns = (frame["error"], tests, frame["queries"])
        expected = [detectable_effect(error, m, n) for error, m, n in zip(*columns, strict=True)]
        assert frame["detectable"].to_list() == pytest.approx(expected)


class TestVerdict:
    def test_favours_human_text_or_is_inconclusive(self, three: Audit) -> None:
        verdict, tilt = three.verdict("people"), three.tilts[0]
        assert (verdict.kind, verdict.side, verdict.agree, verdict.measures) == (
            "favours",
            "human",
            2,
            3,
        )
        # Among 40 draws with a chance of .05, 0 to 5 losses are the middle 95 %, which would end at
        # 150. The exact interval of 2 losses of 40, with the variance times 40/39 that leaves 39
        # votes, is wider.
        losses = 39 * 0.05
        assert tilt.low == pytest.approx(200 - 400 * stats.beta.ppf(0.975, losses + 1, 39 - losses))
        assert tilt.low < 150
        assert tilt.high == 200
        assert repr(three) == "Audit(people, machines, blind; nDCG@1, RR, R@2; by human, llm)"
        collection = twins(40)
        verdict = audit(
            collection,
            ranked(collection, "unsure", ["human"] * 22 + ["llm"] * 18),
            ["nDCG@1", "R@2"],
        )
        # The share of wins has a standard error of .0787, Relative Δ (400 times its distance from
        # one half) of 31.5.
        assert verdict.verdict("unsure").sentence.endswith("; but it is level on R@2")
        assert verdict.tilts[0].detectable == pytest.approx(
            detectable_effect(31.46, 1, 40), rel=0.03
        )
        assert verdict.tilts[0].value == pytest.approx(20)
        with pytest.raises(UserError, match=r"unknown run 'unsrue'; did you mean 'unsure'\?"):
            verdict.verdict("unsrue")


class TestFile:
    @pytest.mark.parametrize("name", ["three", "uneven", "full_audit"])
    def test_an_audit_comes_back_equal(
        self, name: str, request: pytest.FixtureRequest, tmp_path: Path
    ) -> None:
        audited: Audit = request.getfixturevalue(name)
        back = Audit.load(audited.save(tmp_path / "audit.json"))
        assert back == audited
        assert hash(back) == hash(audited)
        assert np.array_equal(back.values, audited.values, equal_nan=True)
        assert back.pair_counts.equals(audited.pair_counts)
        assert (back.measures, back.confounds) == (audited.measures, audited.confounds)
        for part in ("tilts", "card", "controls"):
            assert repr(getattr(back, part)) == repr(getattr(audited, part))
        assert back.by_group().equals(audited.by_group(), null_equal=True)

    def test_json_holds_every_number(self, uneven: Audit, full_audit: Audit) -> None:
        content = json.loads(uneven.to_json())
        assert (content["format"], content["version"]) == ("ranktilt-audit", 1)
        assert content["measures"] == ["nDCG@3", "AP(rel=2)@3"]
        assert np.array(content["values"]).shape == (2, 2, 3, 3)
        assert content["values"][0][0][2][1] is None
        assert content["tilts"][0]["detectable"] is None  # of three queries
        assert uneven.table["value"].null_count() == 0
        content = json.loads(full_audit.to_json())
        assert (len(full_audit.card), len(full_audit.confounds), len(full_audit.controls)) == (
            12,
            7,
            12,
        )
        assert [e["kind"] for e in content["card"][:2]] == ["relative delta", "page"]
        assert content["card"][2]["details"]["wins"] == full_audit.card[2].details["wins"]
        assert content["confounds"][0]["name"] == "words"
        assert content["controls"][0]["control"] == "raw"
        length = next(c for c in content["controls"] if c["control"] == "length")
        assert (length["tilts"][0]["measure"], length["moves"][0]["queries"]) == ("nDCG@1", 3)

    def test_without_judgments_it_comes_back_too(self, tmp_path: Path) -> None:
        collection = Collection(toy().docs, toy().queries, toy().qrels.clear())
        result = audit(collection, BM25().rank(collection), card=True, resamples=200)
        back = Audit.load(result.save(tmp_path / "audit.json"))
        assert back == result
        assert (back.measures, back.tilts, back.values.shape) == ((), (), (1, 0, 3, 3))
        assert back.pairs == (("human", "llm"),)
        assert back.verdict("bm25") == result.verdict("bm25")


FOUND = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d2-llm": 2.0, "d3-llm": 1.0},
    "q2": {"d2-llm": 2.0},
    "q3": {},
}


class TestTopResults:
    def audited(self, **options: Any) -> Audit:
        collection = toy()
        return audit(
            collection, [run_of(collection, FOUND, ranker="mine")], resamples=100, **options
        )

    def test_lists_come_back_exactly_with_ties_and_empty_lists(self, tmp_path: Path) -> None:
        audited = self.audited()
        top_results, loaded = (
            audited.top_results,
            Audit.load(audited.save(tmp_path / "audit.json")).top_results,
        )
        assert top_results
        assert loaded
        (run,), (back,) = top_results.runs, loaded.runs
        assert run.frame().equals(back.frame())
        assert (back.queries, back.name) == (run.queries, "mine")
        nothing = self.audited(keep_top=0)
        assert nothing.top_results is None
        assert Audit.load(nothing.save(tmp_path / "none.json")).top_results is None
        top_two = self.audited(keep_top=2).top_results
        assert top_two is not None
        assert (top_two.depth, top_two.is_complete) == (2, False)
        assert np.diff(top_two.runs[0].offsets).tolist() == [3, 1, 0]
        longest = Run(
            ("q",),
            np.array([0, 3]),
            np.arange(3),
            np.array([3.0, 2.0, 1.0]),
            pl.Series(["a", "b", "c"]),
            {},
        )
        cut = TopResults.from_runs([longest], 2)
        assert (cut.is_complete, len(cut.runs[0].docs)) == (False, 2)

    def test_their_size_is_bounded_over_all_runs(self) -> None:
        ids, scores = (
            pl.Series([f"d{n}" for n in range(1000)]),
            np.tile(np.arange(1000, 0, -1.0), 300),
        )
        docs, offsets = np.tile(np.arange(1000), 300), np.arange(301) * 1000
        runs = [Run(tuple(map(str, range(300))), offsets, docs, scores, ids, {}) for _ in range(2)]
        top_results = TopResults.from_runs(runs)
        assert not top_results.is_complete
        assert MOST_RESULTS / 2 < top_results.results == 2 * 300 * top_results.depth <= MOST_RESULTS
        assert TopResults.from_runs(runs[:1]).is_complete
        run = Run(
            tuple(map(str, range(250))),
            offsets[:251],
            docs[: MOST_RESULTS // 2],
            scores[: MOST_RESULTS // 2],
            ids,
            {},
        )
        assert TopResults.from_runs([run, run]).is_complete


QUICK: dict[str, Any] = {"resamples": 100, "confounds": False}


def shares(collection: Collection, run: Run, *, depth: int = 3, **options: Any) -> RankShares:
    result = audit(collection, run, options.pop("measures", ["P@1"]), **QUICK, **options)
    return rank_shares(collection, run, result, depth=depth)


def toy_run(scores: Mapping[str, Mapping[str, float]]) -> tuple[Collection, Run]:
    collection = toy()
    return collection, run_of(collection, scores, ranker="run")


def test_documents_without_group_take_a_rank() -> None:
    collection = toy()
    side = pl.when(pl.col("id") == "d1-human").then(None).otherwise(pl.col("source")).alias("side")
    collection = Collection(
        collection.docs.with_columns(side), collection.queries, collection.qrels
    )
    run = run_of(collection, {"q1": {"d1-human": 3, "d3-llm": 2, "d3-human": 1}}, ranker="run")
    top_shares = shares(collection, run, by="side")
    np.testing.assert_array_equal(top_shares.at, [[0, 0, 1], [0, 1, 0]])
    np.testing.assert_allclose(
        top_shares.neutral, [2 / 5 * 2 / 3, 3 / 5 * 2 / 3]
    )  # two of three in the list have a group


@pytest.mark.parametrize("missing", ["zero", "exclude"])
@pytest.mark.parametrize("ties", ["expected", "trec_eval"])
def test_found_is_the_mean_of_recall_as_the_audit_has_it(missing: str, ties: str) -> None:
    scores = {
        "q1": {"d1-human": 2, "d1-llm": 2, "d3-llm": 2, "d2-llm": 1},
        "q2": {"d1-llm": 1, "d2-llm": 1},
    }
    collection, run = toy_run(scores)
    result = audit(collection, run, ["R@1", "R@2", "R@3"], missing=missing, ties=ties, **QUICK)
    expected = np.nanmean(result.values[0, :, 1:], axis=2).T
    np.testing.assert_allclose(
        rank_shares(collection, run, result, depth=3).recall, expected, atol=1e-12
    )


def test_recall_undefined_without_relevant_documents() -> None:
    collection = toy()
    collection = Collection(collection.docs, collection.queries, collection.qrels.clear())
    run = run_of(collection, {"q1": {"d1-human": 2, "d1-llm": 1}}, ranker="run")
    top_shares = shares(collection, run, measures=None, card=True)
    assert np.isnan(top_shares.recall).all()
    np.testing.assert_array_equal(top_shares.at[:, :2], [[1, 0], [0, 1]])
    collection = toy()
    judged = collection.qrels.filter(pl.col("doc_id").str.ends_with("-human"))
    docs = collection.docs.with_columns(side=pl.Series(["a", "b", "a", "c", "c", "c"]))
    collection = Collection(docs, collection.queries, judged)
    run = run_of(collection, {"q1": {"d1-human": 2, "d2-human": 1}}, ranker="run")
    top_shares = shares(collection, run, by="side")
    assert np.isnan(top_shares.recall).tolist() == [[False] * 3, [False] * 3, [True] * 3]


def by_every_order(lists: list[list[tuple[str, int]]], depth: int) -> np.ndarray:
    """Share of the first group at each rank: the mean over all orders that the ties allow, then
    over queries.
    """
    total, reach = np.zeros(depth), np.zeros(depth)
    for entries in lists:
        blocks = [
            list(block)
            for _, block in groupby(sorted(entries, key=lambda e: -e[1]), key=lambda e: e[1])
        ]
        orders = [
            [e for block in order for e in block] for order in product(*map(permutations, blocks))
        ]
        for rank in range(min(depth, len(entries))):
            total[rank] += np.mean([order[rank][0].endswith("human") for order in orders])
            reach[rank] += 1
    return np.where(reach > 0, total / np.maximum(reach, 1), np.nan)


IDS = tuple(toy().ids)


@settings(max_examples=15)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(IDS), st.integers(0, 2), max_size=5), min_size=3, max_size=3
    )
)
def test_shares_are_the_mean_over_all_orders_of_the_ties(scores: list[dict[str, int]]) -> None:
    top_shares = shares(
        *toy_run({f"q{number}": row for number, row in enumerate(scores, start=1)}), depth=4
    )
    np.testing.assert_allclose(
        top_shares.at[0], by_every_order([list(row.items()) for row in scores], 4), atol=1e-12
    )
    np.testing.assert_allclose(top_shares.at.sum(axis=0)[top_shares.queries > 0], 1, atol=1e-12)
    assert top_shares.queries.tolist() == [
        sum(len(row) > rank for row in scores) for rank in range(4)
    ]


def test_parts_are_query_differences_over_the_sum_of_values() -> None:
    # Sums 1.5 and 1.0: Relative Δ is 200 · 0.5 / 2.5 = 40, of which 200 · 0.6 / 2.5 = 48 and 200 ·
    # (−0.1) / 2.5 = −8.
    values = [[[[0.0] * 3, [1.0, 0.5, 0.9], [0.4, 0.6, np.nan]]]]
    query_contributions = contributions(audit_of(values), "run", "nDCG@5", "human", "llm")
    assert query_contributions.tolist() == pytest.approx([48, -8, np.nan], abs=1e-12, nan_ok=True)
    assert np.isnan(
        query_parts(np.array([0.0, 0.0, np.nan]), np.array([0.0, 0.0, 1.0]))
    ).all()  # where both means are 0


SIDE = st.just(np.nan) | st.floats(0, 1, allow_subnormal=False)


@settings(max_examples=60)
@given(st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=30))
def test_parts_add_up_to_delta_and_turn_with_sides(
    pairs,
) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    both = [(x, y) for x, y in pairs if x == x and y == y]
    means = np.mean([x for x, _ in both] or [0]), np.mean([y for _, y in both] or [0])
    differences = query_parts(a, b)
    np.testing.assert_array_equal(differences, -query_parts(b, a))
    if sum(means) == 0:
        assert np.isnan(differences).all()
    else:
        assert np.nansum(differences) == pytest.approx(
            200 * (means[0] - means[1]) / (means[0] + means[1]), abs=1e-9
        )


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    names = ("first", "nDCG@1", "human", "llm")
    for at, kind, name in (
        (0, "run", "third"),
        (1, "measure", "nDCG@2"),
        (2, "group", "people"),
        (3, "group", "bot"),
    ):
        with pytest.raises(UserError, match=f"unknown {kind} '{name}'.*valid: "):
            contributions(small(), *names[:at], name, *names[at + 1 :])


def test_printed_results_show_their_verdicts() -> None:
    alone = audit_of(np.full((1, 1, 3, 12), 0.5))
    assert str(alone) == "\n".join(verdict.sentence for verdict in alone.verdicts())
    assert str(gate(alone)).startswith("run, nDCG@5, human | llm: ")


def test_verdict_needs_no_name_of_the_only_run(three: Audit) -> None:
    alone = audit_of(np.full((1, 1, 3, 12), 0.5))
    assert alone.verdict() == alone.verdict("run")
    with refused("name one of 3 runs: people, machines, blind"):
        three.verdict()

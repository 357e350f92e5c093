"""The audit as a value: its table and views, and its one file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.controls import controls
from ranktilt.auditing.result import Audit
from ranktilt.auditing.top_results import MOST, TopResults
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.run import Run
from ranktilt.statistics.correction import detectable_effect
from tests.reporting.audits import twins
from tests.toy import run_of, toy

GROUPS = ("all", "human", "llm")


def ranked(collection: Collection, name: str, above: list[str]) -> Run:
    """Query i finds its two documents, the source named in `above` first; "-" lets them tie."""
    found = {}
    for i, winner in enumerate(above):
        found[f"q{i}"] = {f"{i}-{s}": 2.0 if winner == s else 1.0 for s in ("human", "llm")}
    return run_of(collection, found, ranker=name)


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
    """Undefined values: query 2 of the toy without its LLM judgment; another run with nothing at all."""
    collection = toy()
    qrels = collection.qrels.filter(pl.col("doc_id") != "d2-llm")
    collection = Collection(collection.docs, collection.queries, qrels)
    return audit(collection, [run_of(collection, {"q1": {"d1-human": 1 / 3}}, ranker="one"),
                              run_of(collection, {}, ranker="none")], ["nDCG@3", "AP(rel=2)@3"])  # fmt: skip


@pytest.fixture(scope="module")
def whole() -> Audit:
    """The toy with everything an audit can hold; the second run finds nothing, so that much is undefined."""
    collection, rankers = toy(), [BM25(), BM25(k1=0.9)]
    runs = [rankers[0].rank(collection), run_of(collection, {}, ranker="bm25(k1=0.9)")]
    raw = audit(collection, runs, ["nDCG@1", "AP@3"], card=True, resamples=200)
    return controls(collection, rankers, runs, raw)


class TestTable:
    @pytest.mark.parametrize(
        ("run", "measure", "group", "query", "value"),
        [
            ("people", "nDCG@1", "human", "q0", 1.0),
            ("people", "nDCG@1", "human", "q39", 0.0),
            ("machines", "RR", "human", "q39", 0.75),
            ("blind", "nDCG@1", "all", "q11", 1.0),
        ],
    )
    def test_values_stand_at_their_names(
        self, three: Audit, run: str, measure: str, group: str, query: str, value: float
    ) -> None:
        here = [pl.col(c) == v for c, v in (("run", run), ("measure", measure), ("group", group), ("query", query))]
        assert three.table.filter(*here)["value"].item() == value


class TestByGroup:
    def test_means(self, three: Audit) -> None:
        means = three.by_group().filter(pl.col("measure") == "nDCG@1")
        assert means["run"].to_list() == ["people"] * 3 + ["machines"] * 3 + ["blind"] * 3
        assert means["group"].to_list() == list(GROUPS) * 3
        assert means["mean"].to_list() == pytest.approx([1, 0.95, 0.05, 1, 0.05, 0.95, 1, 0.5, 0.5])

    def test_nothing_defined_is_nan(self) -> None:
        collection = toy()
        found = audit(collection, run_of(collection, {}), ["AP(rel=3)@3"])
        assert found.by_group()["mean"].is_nan().all()
        assert found.by_group()["queries"].to_list() == [0, 0, 0]
        assert found.verdict("run").sentence == (
            "run: inconclusive: no query has a relevant document of both human and llm"
        )


class TestRelativeDelta:
    def test_one_row_a_run_and_measure(self, three: Audit) -> None:
        found = three.frame("tilts")
        assert found.select("run", "measure").rows() == [(r, m) for r in three.runs for m in ("nDCG@1", "RR", "R@2")]
        assert found["value"].to_list() == pytest.approx(
            [200 * 0.9, 200 * (1.95 - 1.05) / 2 / 1.5, 0, -200 * 0.9, -200 * 0.9 / 3, 0, 0, 0, 0]
        )

    def test_detectable_effect_is_that_of_the_first_step_of_the_correction(self, three: Audit) -> None:
        found = three.frame("tilts")
        tests = [3 if name == "nDCG@1" else 6 for name in found["measure"]]  # three runs on the primary measure
        assert found["tests"].to_list() == tests
        columns = (found["error"], tests, found["queries"])
        expected = [detectable_effect(error, m, n) for error, m, n in zip(*columns, strict=True)]
        assert found["detectable"].to_list() == pytest.approx(expected)


class TestVerdict:
    def test_favours_human_text(self, three: Audit) -> None:
        found = three.verdict("people")
        assert (found.kind, found.side, found.agree, found.measures) == ("favours", "human", 2, 3)
        # Among 40 draws with a chance of .05, 0 to 5 losses are the middle 95 %: 200·(40 − 2·5)/40 = 150.
        assert found.sentence == (
            "people favours human text: nDCG@1 is 95.0 % for human text and 5.0 % for llm text (Relative Δ +180.0 % "
            "[+150.0, +200.0], corrected p < .001); agrees on 2 of 3 measures"
        )

    def test_inconclusive(self) -> None:
        collection = twins(40)
        found = audit(collection, ranked(collection, "unsure", ["human"] * 22 + ["llm"] * 18), ["nDCG@1", "R@2"])
        # The share of wins has a standard error of .0787, Relative Δ (400 times its distance from one half) of 31.5.
        sentence = found.verdict("unsure").sentence
        assert sentence.startswith("unsure: inconclusive: this query set could only detect a tilt of 90 %")
        assert sentence.endswith("; but level on R@2")
        assert found.tilts[0].detectable == pytest.approx(detectable_effect(31.46, 1, 40), rel=0.03)
        assert found.tilts[0].value == pytest.approx(20)
        with pytest.raises(UserError, match=r"unknown run 'unsrue'; did you mean 'unsure'\?"):
            found.verdict("unsrue")
        assert repr(found) == "Audit(unsure; nDCG@1, R@2; by human, llm)"


class TestFile:
    @pytest.mark.parametrize("name", ["three", "uneven", "whole"])
    def test_an_audit_comes_back_equal(self, name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        audited: Audit = request.getfixturevalue(name)
        back = Audit.load(audited.save(tmp_path / "audit.json"))
        assert back == audited
        assert hash(back) == hash(audited)
        assert np.array_equal(back.values, audited.values, equal_nan=True)
        assert back.pair_counts.equals(audited.pair_counts)
        assert (back.measures, back.confounds) == (audited.measures, audited.confounds)
        for part in ("tilts", "estimates", "controls"):
            assert repr(getattr(back, part)) == repr(getattr(audited, part))
        assert back.by_group().equals(audited.by_group(), null_equal=True)

    def test_it_is_plain_json_that_holds_every_number_by_name(self, uneven: Audit, whole: Audit) -> None:
        content = json.loads(uneven.to_json())
        assert (content["format"], content["version"]) == ("ranktilt-audit", 1)
        assert content["measures"] == ["nDCG@3", "AP(rel=2)@3"]
        assert np.array(content["values"]).shape == (2, 2, 3, 3)
        assert content["values"][0][0][2][1] is None
        assert content["tilts"][0]["detectable"] == pytest.approx(2.8 * content["tilts"][0]["error"])
        assert uneven.table["value"].null_count() == 0
        content = json.loads(whole.to_json())
        assert (len(whole.estimates), len(whole.confounds), len(whole.controls)) == (12, 7, 12)
        assert [e["kind"] for e in content["card"][:2]] == ["relative delta", "page"]
        assert content["card"][2]["extra"]["wins"] == whole.estimates[2].parts["wins"]
        assert content["confounds"][0]["name"] == "words"
        assert content["controls"][0]["control"] == "raw"
        length = next(c for c in content["controls"] if c["control"] == "length")
        assert (length["tilts"][0]["measure"], length["moves"][0]["queries"]) == ("nDCG@1", 3)

    def test_without_judgments_it_comes_back_too(self, tmp_path: Path) -> None:
        collection = Collection(toy().docs, toy().queries, toy().qrels.clear())
        found = audit(collection, BM25().rank(collection), card=True, resamples=200)
        back = Audit.load(found.save(tmp_path / "audit.json"))
        assert back == found
        assert (back.measures, back.tilts, back.values.shape) == ((), (), (1, 0, 3, 3))
        assert back.pairs == (("human", "llm"),)
        assert back.verdict("bm25") == found.verdict("bm25")


FOUND = {"q1": {"d1-human": 3.0, "d1-llm": 2.0, "d2-llm": 2.0, "d3-llm": 1.0}, "q2": {"d2-llm": 2.0}, "q3": {}}


class TestTopResults:
    def audited(self, **options: Any) -> Audit:
        collection = toy()
        return audit(collection, [run_of(collection, FOUND, ranker="mine")], resamples=100, **options)

    def test_they_come_back_from_a_file_to_the_last_bit(self, tmp_path: Path) -> None:
        audited = self.audited()
        made, loaded = audited.top_results, Audit.load(audited.save(tmp_path / "audit.json")).top_results
        assert made is not None
        assert loaded is not None
        (run,), (back,) = made.runs, loaded.runs
        assert run.frame().equals(back.frame())
        assert (back.queries, back.name) == (run.queries, "mine")
        nothing = self.audited(keep_top=0)
        assert nothing.top_results is None
        assert Audit.load(nothing.save(tmp_path / "none.json")).top_results is None

    def test_a_block_of_ties_is_kept_whole_and_empty_lists_stay(self) -> None:
        found = self.audited(keep_top=2).top_results
        assert found is not None
        assert (found.depth, found.whole) == (2, False)
        assert np.diff(found.runs[0].offsets).tolist() == [3, 1, 0]

    def test_their_size_is_bounded_over_all_runs(self) -> None:
        ids, scores = pl.Series([f"d{n}" for n in range(1000)]), np.tile(np.arange(1000, 0, -1.0), 300)
        docs, offsets = np.tile(np.arange(1000), 300), np.arange(301) * 1000
        runs = [Run(tuple(map(str, range(300))), offsets, docs, scores, ids, {}) for _ in range(2)]
        found = TopResults.of(runs)
        assert not found.whole
        assert MOST / 2 < found.results == 2 * 300 * found.depth <= MOST
        assert TopResults.of(runs[:1]).whole

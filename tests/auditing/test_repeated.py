"""Queries that repeat each other are one piece of evidence, wherever queries are resampled or tested."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.answer.gate import gate
from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.compare import compare
from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.run import Run
from tests.toy import run_of

SIDES = ("human", "llm")


def collection(times: int, texts: list[str], queries: int = 25) -> Collection:
    """Queries of one relevant pair each, every one of them `times` over."""
    names = [(f"q{n}-{copy}", n) for n in range(queries) for copy in range(times)]
    docs = [{"id": f"{n}-{s}", "text": "x", "source": s, "origin": f"{n}"} for n in range(queries) for s in SIDES]
    qrels = [(name, f"{n}-{s}", 1) for name, n in names for s in SIDES]
    text = [texts[number % len(texts)] for number in range(len(names))]
    return Collection(
        pl.DataFrame(docs),
        pl.DataFrame({"id": [name for name, _ in names], "text": text}, schema_overrides={"text": pl.String}),
        pl.DataFrame(qrels, schema=["query_id", "doc_id", "grade"], orient="row").cast({"grade": pl.Int32}),
    )


def ranked(given: Collection, seed: int = 0, *, shuffled: bool = False) -> Run:
    """Which twin is above is tossed for each origin; `shuffled`: other documents differ from copy to copy."""
    rng = np.random.default_rng(seed)
    queries = given.queries["id"].to_list()
    first = rng.integers(0, 2, len(queries))
    scores = {}
    for number, name in enumerate(queries):
        n = int(name[1:].partition("-")[0])
        scores[name] = {f"{n}-{SIDES[first[n]]}": 3.0, f"{n}-{SIDES[1 - first[n]]}": 2.0}
        if shuffled:
            scores[name][f"{(n + 1 + number % 7) % 25}-human"] = 1.0
    return run_of(given, scores, ranker="r")


def found(times: int, texts: list[str], **options: Any) -> Audit:
    given = collection(times, texts)
    return audit(given, ranked(given, shuffled=options.pop("shuffled", False)), ["nDCG@1"], card=True, **options)


def distinct_texts(times: int) -> list[str]:
    return [f"text {number}" for number in range(25 * times)]


class TestWhatRepeats:
    def test_the_same_text_whatever_it_found(self) -> None:
        texts = [f"text {n}" for n in range(25) for _ in range(4)]
        one = found(4, texts, shuffled=True)
        assert set(one.repeated) == {"r"}
        assert len(one.repeated["r"]) == 75
        assert one.repeated["r"]["q3-2"] == "q3-0"

    @pytest.mark.parametrize("texts", [distinct_texts(4), [""]])
    def test_the_same_ranking_and_judgments_whatever_the_text(self, texts: list[str]) -> None:
        assert len(found(4, texts).repeated["r"]) == 75

    def test_another_ranking_another_text_is_another_query(self) -> None:
        assert found(4, distinct_texts(4), shuffled=True).repeated == {}
        given = collection(2, distinct_texts(2))
        graded = pl.when(pl.col("query_id").str.ends_with("-1")).then(2).otherwise("grade").cast(pl.Int32)
        other = Collection(given.docs, given.queries, given.qrels.with_columns(grade=graded))
        assert audit(other, ranked(other), ["nDCG@1"]).repeated == {}

    def test_ties_have_no_order_and_where_nothing_was_found_nothing_is_alike(self) -> None:
        given = collection(2, distinct_texts(2), queries=3)
        tied = {"q0-0": {"0-human": 1.0, "0-llm": 1.0}, "q0-1": {"0-llm": 1.0, "0-human": 1.0}}
        tied |= {"q1-0": {"1-human": 2.0, "1-llm": 1.0}, "q1-1": {"1-human": 1.0, "1-llm": 1.0}, "q2-0": {}, "q2-1": {}}
        made = audit(given, run_of(given, tied, ranker="r"), ["nDCG@1"])
        assert made.repeated == {"r": {"q0-1": "q0-0"}}

    def test_text_and_ranking_join_in_a_chain(self) -> None:
        """The first and the second share their text, the second and the third their ranking and judgments."""
        given = collection(3, ["same", "same", "other"], queries=1)
        scores = {"q0-0": {"0-llm": 1.0}, "q0-1": {"0-human": 1.0}, "q0-2": {"0-human": 1.0}}
        made = audit(given, run_of(given, scores, ranker="r"), ["nDCG@1"])
        assert made.repeated == {"r": {"q0-1": "q0-0", "q0-2": "q0-0"}}


class TestOneQueryAgain:
    @pytest.mark.parametrize("by", ["text", "ranking"])
    def test_four_times_the_queries_say_no_more(self, by: str) -> None:
        texts = [f"text {n}" for n in range(25) for _ in range(4)] if by == "text" else distinct_texts(4)
        one, four = found(1, distinct_texts(1)), found(4, texts)
        [a], [b] = one.tilts, four.tilts
        assert (b.queries, b.votes, a.votes) == (100, 25, 25)
        assert (a.value, a.low, a.high, a.error, a.p) == (b.value, b.low, b.high, b.error, b.p)
        for x, y in zip(one.estimates, four.estimates, strict=True):
            assert np.array_equal([x.value, x.p], [y.value, y.p], equal_nan=True)
            assert [x.low, x.high, x.error] == pytest.approx([y.low, y.high, y.error], nan_ok=True)

    def test_it_is_said_once_for_runs_with_the_same_ones(self) -> None:
        given = collection(2, ["text"] * 2 + distinct_texts(2)[2:])
        runs = [replace(ranked(given, shuffled=True), spec={"ranker": name}) for name in ("r", "s")]
        [note] = [note for note in audit(given, runs, ["nDCG@1"]).notes if "repeat" in note]
        assert note == (
            "warning: r, s: 1 query repeats others, by text or by ranking and judgments (first: 'q0-1' as 'q0-0'); "
            "such queries are resampled and tested together, as one"
        )


class TestFiles:
    def test_compare_and_gate_resample_them_together_too(self) -> None:
        texts = [f"text {n}" for n in range(25) for _ in range(4)]
        ones, fours = (
            [audit(given, ranked(given, seed), ["nDCG@1"]) for seed in (1, 2)]
            for given in (collection(1, distinct_texts(1)), collection(4, texts))
        )
        one, four = compare(*ones), compare(*fours)
        for x, y in ((one.tilts[0], four.tilts[0]), (one.means[0], four.means[0])):
            assert (y.queries, y.votes) == (100, 25)
            assert (x.value, x.low, x.high, x.p) == pytest.approx((y.value, y.low, y.high, y.p), nan_ok=True)
        checks = [gate(new, baseline=old).rows[0].checks[0] for new, old in (ones, fours)]
        assert (checks[0].low, checks[0].high) == pytest.approx((checks[1].low, checks[1].high))


def test_groups_that_are_not_twins_share_the_labels_of_queries_that_repeat_each_other() -> None:
    rng = np.random.default_rng(7)
    docs = pl.DataFrame({"id": [f"d{n}" for n in range(60)], "text": "x", "side": ["ab"[n % 2] for n in range(60)]})
    relevant = {q: rng.permutation(60)[:6] for q in range(20)}
    scores = {q: rng.permutation(60)[:30] for q in range(20)}

    def asked(times: int) -> Audit:
        names = [f"q{q}-{c}" for c in range(times) for q in range(20)]
        qrels = [(name, f"d{d}", 1) for name in names for d in relevant[int(name[1:].partition("-")[0])]]
        given = Collection(
            docs,
            pl.DataFrame({"id": names, "text": [name.partition("-")[0] for name in names]}),
            pl.DataFrame(qrels, schema=["query_id", "doc_id", "grade"], orient="row").cast({"grade": pl.Int32}),
        )
        found = {
            name: {f"d{d}": -float(rank) for rank, d in enumerate(scores[int(name[1:].partition("-")[0])])}
            for name in names
        }
        return audit(given, run_of(given, found, ranker="r"), ["nDCG@10"], by="side", resamples=200)

    one, four = asked(1).tilts[0], asked(4).tilts[0]
    width = one.band_high - one.band_low
    assert four.band_high - four.band_low == pytest.approx(width, rel=0.15)
    assert four.p == pytest.approx(one.p, abs=0.1)

"""Twins under labels that are not provenance: judged by exchanging the labels of each origin in all queries."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranktilt as rt
import ranktilt.auditing.significance as module
from ranktilt.auditing.answer.gate import gate
from ranktilt.auditing.audit import audit
from ranktilt.auditing.effects import Effect
from ranktilt.collection import Collection
from tests.probes.test_explain import gendered
from tests.toy import Table, collection_of, run_of

KINDS = ("relevant twins", "other twins", "rank gap", "score gap")
UNJUDGED = ("twins", "rank gap", "score gap")
few = settings(max_examples=15)


def paired(origins: int, queries: int, *, judged: int = 0, extra: int = 0) -> Collection:
    """One document in German and one in English an origin; of the first `extra` origins a second German one."""
    docs = [
        {"id": f"{n}-{lang}", "text": "x", "source": "human", "lang": lang.strip("2"), "origin": f"{n}"}
        for n in range(origins)
        for lang in (("de", "en", "de2") if n < extra else ("de", "en"))
    ]
    qrels = {f"q{q}": {f"{n}-{s}": 1 for n in range(judged) for s in ("de", "en")} for q in range(queries)}
    return collection_of(docs, {f"q{q}": "x" for q in range(queries)}, qrels if judged else {})


def card(collection: Collection, scores: Table, **options: Any) -> dict[str, Effect]:
    given = {"measures": "nDCG@3" if collection.qrels.height else None, "by": "lang", "resamples": 200, **options}
    return {
        e.estimand.key: e
        for e in audit(collection, run_of(collection, scores, ranker="r"), card=True, **given).estimates
    }


def labelled_source(collection: Collection) -> Collection:
    """The same, with the language as its source."""
    return Collection(collection.docs.with_columns(source="lang"), collection.queries, collection.qrels)


def drawn(collection: Collection, seed: int, depth: int = 8, levels: int = 6) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    names = collection.ids.to_list()
    return {
        q: {names[d]: float(rng.integers(0, levels)) for d in rng.permutation(len(names))[:depth]}
        for q in collection.queries["id"]
    }


def numbers(e: Effect) -> list[float]:
    return [e.value, e.low, e.high, e.error, e.p, e.queries, e.level, e.band_low, e.band_high]


def ahead(queries: int, german: list[int], english: list[int]) -> dict[str, dict[str, float]]:
    """Scores of the same pairs in every query, in another order: German on top in these origins, English in those."""
    rng = np.random.default_rng(0)
    sides = [(n, "de", "en") for n in german] + [(n, "en", "de") for n in english]
    scores = {}
    for q in range(queries):
        order = rng.permutation(len(sides))
        scores[f"q{q}"] = {
            f"{n}-{name}": place + high
            for place, (n, *names) in zip(order, sides, strict=True)
            for name, high in zip(names, (0.5, 0.0), strict=True)
        }
    return scores


@pytest.fixture
def without_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the tests over queries out, so that p is that of exchanged labels alone."""
    monkeypatch.setattr(module, "sign_test_p", lambda *_: 0.0)
    monkeypatch.setattr(module, "sign_flip_ps", lambda columns, **_: [0.0] * len(columns))


class TestTheSamePairsInEveryQuery:
    """Forty queries bring back the same few pairs: there are as many votes as pairs, not as queries."""

    @pytest.mark.parametrize("judged", [0, 5])
    def test_one_pair_is_one_vote_however_many_queries(self, judged: int) -> None:
        found = card(paired(5, 40, judged=judged), ahead(40, [0], []))
        twins = found["relevant twins" if judged else "twins"]
        assert (twins.value, twins.low, twins.high, twins.queries) == (1, 1, 1, 40)
        assert twins.p == found["score gap"].p == found["rank gap"].p == 1
        assert (twins.band_low, twins.band_high, twins.leans, twins.favours) == (-1, 1, "a", "")

    def test_by_source_too_and_no_band_is_shown(self) -> None:
        collection = paired(5, 40, judged=5)
        found = card(labelled_source(collection), ahead(40, [0, 1, 2], []), by="source")
        # Three pairs, the same way up in 40 queries: a coin for each says so in one of four.
        assert found["relevant twins"].p == pytest.approx(1 / 4, abs=0.06)
        assert found["relative delta"].p > 0.05
        assert not any(found[kind].banded for kind in KINDS)
        assert not any(e.favours for e in found.values())

    @pytest.mark.parametrize(("german", "english"), [(6, 0), (5, 1), (4, 2), (7, 1), (3, 3)])
    def test_p_is_that_of_a_coin_for_each_pair(self, german: int, english: int) -> None:
        n = german + english
        found = card(paired(n, 20), ahead(20, [*range(german)], [*range(german, n)]))["twins"]
        margins = [abs(sum(signs)) for signs in product((1, -1), repeat=n)]
        exact = np.mean([m >= abs(german - english) for m in margins])
        assert found.p == pytest.approx(exact, abs=4 * np.sqrt(exact / 200))
        assert found.value == pytest.approx((german - english) / n)
        assert found.band_low == -found.band_high

    def test_enough_pairs_on_one_side_are_favoured(self) -> None:
        found = card(paired(30, 20), ahead(20, [*range(30)], []))
        assert {found[kind].side(found[kind].favours) for kind in ("twins", "rank gap")} == {"de"}
        # 200 exchanges and their mirror images, none as far out.
        assert found["twins"].p == pytest.approx(2 / 401)
        assert (found["twins"].leans, found["score gap"].p) == ("a", pytest.approx(2 / 401))


def turned(collection: Collection, flips: tuple[bool, ...]) -> Collection:
    """The labels of these origins exchanged."""
    mine = pl.Series([flips[int(o)] for o in collection.docs["origin"]])
    other = pl.col("lang").replace({"de": "en", "en": "de"})
    docs = collection.docs.with_columns(lang=pl.when(mine).then(other).otherwise("lang"))
    return Collection(docs, collection.queries, collection.qrels)


class TestRelativeDelta:
    @pytest.mark.usefixtures("without_queries")
    @pytest.mark.parametrize("ties", ["expected", "trec_eval"])
    def test_p_is_that_of_each_way_to_exchange_the_labels(self, ties: str) -> None:
        measures = ["nDCG@3", "AP", "P@2", "R@4", "RR"]
        collection = paired(5, 5, judged=5)
        run = run_of(collection, drawn(collection, 5, depth=9, levels=4), ranker="r")
        mine, *others = (
            [
                t.mean_a - t.mean_b
                for t in audit(turned(collection, flips), run, measures, by="lang", ties=ties, resamples=200).tilts
            ]
            for flips in product((False, True), repeat=5)
        )
        exact = (np.abs([mine, *others]) >= np.abs(mine) - 1e-9).mean(axis=0)
        found = audit(collection, run, measures, by="lang", ties=ties, resamples=2000).tilts
        assert [t.p for t in found] == pytest.approx(exact.tolist(), abs=0.04)
        assert len({round(e, 3) for e in exact}) > 2

    def test_the_larger_p_counts(self) -> None:
        """Three pairs in 40 queries: over queries alone p is below 1e-4."""
        collection = paired(3, 40, judged=3)
        scores = ahead(40, [0, 1, 2], [])
        rng = np.random.default_rng(1)
        for found in scores.values():  # documents of no pair make each ranking another
            found |= {"2-de": 4 + rng.random(), "0-de": 3 + rng.random(), "0-en": rng.random()}
        [one] = audit(collection, run_of(collection, scores, ranker="r"), ["nDCG@1"], by="lang").tilts
        assert one.p >= 0.2
        assert one.verdict() == "inconclusive"


class TestTheBand:
    @pytest.mark.usefixtures("without_queries")
    @pytest.mark.parametrize("judged", [0, 3])
    def test_it_is_what_exchanged_labels_give(self, judged: int) -> None:
        """Every answer of the card, asked anew under each of the 2^5 ways to exchange the labels of five origins."""
        collection = paired(5, 5, judged=judged, extra=2)
        scores = drawn(collection, 3, depth=11)
        mine = card(collection, scores)
        asked: dict[str, list[float]] = {}
        for flips in product((False, True), repeat=5):
            for kind, e in card(turned(collection, flips), scores).items():
                asked.setdefault(kind, []).append(e.value)
        for kind in KINDS if judged else UNJUDGED:
            values = np.array(asked[kind])
            exact = np.mean(np.abs(values) >= abs(mine[kind].value) - 1e-9)
            assert mine[kind].p == pytest.approx(exact, abs=0.1)
            outer = np.sort(np.abs(values))
            assert outer[-5] - 1e-9 <= mine[kind].band_high <= outer[-1] + 1e-9
            assert mine[kind].band_low == -mine[kind].band_high
            assert mine[kind].level == 0

    def test_several_versions_of_one_origin_are_exchanged_together(self) -> None:
        collection = paired(1, 10, extra=1)
        found = card(collection, {f"q{q}": {"0-de": 3.0, "0-de2": 2.0, "0-en": 1.0} for q in range(10)})["twins"]
        assert (found.parts["pairs"], found.value, found.p) == (20, 1, 1)
        assert (found.band_low, found.band_high) == (-1, 1)

    def test_a_page_of_twins_only_is_judged_so_too(self) -> None:
        found = card(paired(4, 40), ahead(40, [0, 1, 2, 3], []))["page"]
        assert (found.leans, found.favours) == ("a", "")
        assert found.p == pytest.approx(2 / 2**4, abs=0.05)
        assert found.band_low == -found.band_high < 0


class TestExactness:
    @given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(0, 3))
    @few
    def test_swapping_the_labels_negates_every_answer_and_band(self, seed: int, judged: bool, extra: int) -> None:
        collection = paired(7, 6, judged=3 * judged, extra=extra)
        scores = drawn(collection, seed, depth=12)
        names = pl.col("lang").replace({"de": "en", "en": "de"})
        other = Collection(collection.docs.with_columns(names), collection.queries, collection.qrels)
        one, two = card(collection, scores), card(other, scores)
        three = card(collection, scores, pairs=[("en", "de")])
        for kind, e in one.items():
            assert np.array_equal(numbers(e.swapped()), numbers(two[kind]), equal_nan=True), kind
            assert np.array_equal(numbers(e.swapped()), numbers(three[kind]), equal_nan=True), kind


class TestWhatRestsOnLittle:
    """Many queries over a few documents, or a few queries that say anything, are not evidence enough."""

    @pytest.mark.parametrize("origins", [1, 5])
    def test_few_documents_under_many_queries(self, origins: int) -> None:
        collection = paired(12, 40, judged=origins)
        scores = ahead(40, [*range(12)], [])
        found = audit(collection, run_of(collection, scores, ranker="r"), ["nDCG@10"], by="lang", card=True)
        [one] = found.tilts
        assert (one.queries, one.votes, one.testable, one.verdict()) == (40, origins, False, "inconclusive")
        assert gate(found, max_tilt=1).outcome == "inconclusive"
        twins = next(e for e in found.estimates if e.estimand.key == "relevant twins")
        assert (twins.votes, twins.favours) == (origins, "")
        word = "documents say" if origins > 1 else "document says"
        assert f"{word} anything, too few to test; nDCG@10 is" in found.verdict("r").sentence

    def test_one_query_that_found_anything(self) -> None:
        collection = paired(12, 40, judged=12)
        run = run_of(collection, {"q0": {"0-de": 1.0, "0-en": 1.0}}, ranker="r")
        found = audit(collection, run, ["P@2"], by="lang")
        [one] = found.tilts
        assert (one.queries, one.votes, one.value, one.low, one.high) == (40, 1, 0, 0, 0)
        assert (one.verdict(), gate(found).outcome) == ("inconclusive", "inconclusive")

    def test_who_fills_the_page_is_a_share_and_its_interval_is_not_widened_by_the_tilt_itself(self) -> None:
        collection = paired(60, 60)
        rng = np.random.default_rng(4)
        scores = {
            f"q{q}": {f"{n}-{s}": rng.normal(0.0, 1.0) + 1.7 * (s == "de") for n in range(60) for s in ("de", "en")}
            for q in range(60)
        }
        page = card(collection, scores, resamples=1000)["page"]
        assert 0.8 < page.value < page.high <= 1
        assert page.high - page.low < 0.1


@pytest.fixture(scope="module")
def wordings(shared_data: Path) -> rt.Collection:
    """The female and the male wording of each text."""
    whole = gendered(shared_data / "grep-bias-ir")
    docs = whole.docs.filter(pl.col("gender").is_in(["F", "M"]))
    return rt.Collection(docs, whole.queries, whole.qrels.join(docs, left_on="doc_id", right_on="id", how="semi"))


def test_bm25_can_hardly_tell_the_wordings_apart(wordings: rt.Collection) -> None:
    found = rt.audit(wordings, [rt.ranker("bm25").rank(wordings)], ["nDCG@1"], by="gender")
    (tilt,), verdict = found.tilts, found.verdict(found.runs[0])
    assert found.tied_share(found.runs[0], "F", "M") == pytest.approx(0.947, abs=0.005)
    assert verdict.kind == "inconclusive"
    assert tilt.low < 0 < tilt.high

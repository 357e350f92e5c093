"""The instrument is tested where a coin decides who wrote what."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ranktilt import Collection, UserError, bundled, ranker
from ranktilt.auditing.checks.instrument import (
    CHANCE,
    InstrumentRow,
    check_instrument,
    with_drawn_sources,
)
from ranktilt.reporting.sentences.checking.check import instrument_sentence
from tests.refusals import refused
from tests.toy import collection_of


def origins_of_three_kinds() -> Collection:
    """Two twins, an origin of three sources, and three documents alone, of which one has
    no source.
    """
    sources = {
        "o1": ("human", "llm"),
        "o2": ("human", "llm"),
        "o3": ("human", "llm", "gpt"),
        "o4": ("human",),
        "o5": ("llm",),
        "o6": (None,),
    }
    docs = []
    for origin, names in sources.items():
        for number, source in enumerate(names):
            name = f"{origin}-{number}"
            docs.append({"id": name, "text": name, "source": source, "origin": origin})
    return collection_of(docs, {"q": "text"}, {"q": {"o1-0": 1}})


class TestDrawnSources:
    def test_each_origin_keeps_its_sources(self) -> None:
        collection = origins_of_three_kinds()
        drawn = with_drawn_sources(collection, np.random.default_rng(0)).docs
        for origin in ("o1", "o2", "o3"):
            before, after = (
                docs.filter(docs["origin"] == origin)["source"].to_list()
                for docs in (collection.docs, drawn)
            )
            assert sorted(after) == sorted(before)

    def test_documents_alone_draw_from_each_other(self) -> None:
        drawn = with_drawn_sources(origins_of_three_kinds(), np.random.default_rng(0)).docs
        alone = drawn.filter(drawn["origin"].is_in(["o4", "o5", "o6"]))["source"].to_list()
        assert sorted(alone, key=str) == [None, "human", "llm"]

    def test_each_exchange_comes_in_half_of_the_draws(self) -> None:
        collection = origins_of_three_kinds()
        human = [
            with_drawn_sources(collection, np.random.default_rng(seed)).docs["source"][0] == "human"
            for seed in range(400)
        ]
        assert np.mean(human) == pytest.approx(0.5, abs=0.08)


def test_bm25_names_a_side_as_seldom_as_chance_does() -> None:
    (row,) = check_instrument(bundled(), [ranker("bm25@20")], "nDCG@10", tosses=30)
    assert (row.question, row.tosses) == ("nDCG@10", 30)
    assert row.sides_named <= 5  # of 30 draws with a chance of .05, more come once in 300 times
    assert row.is_calibrated
    # Clopper and Pearson: the ends are the shares that would give as few, or as many, in 2.5 % of
    # cases.
    assert stats.binom.cdf(row.sides_named, 30, row.high) == pytest.approx(0.025)
    if row.sides_named:
        assert stats.binom.sf(row.sides_named - 1, 30, row.low) == pytest.approx(0.025)


def test_a_side_that_is_named_too_often_is_said_to_be() -> None:
    row = InstrumentRow(
        ranker="mine", question="nDCG@10", sides_named=40, tosses=200, low=0.147, high=0.262
    )
    assert not row.is_calibrated
    assert instrument_sentence(row) == (
        "mine on nDCG@10: with sources set by a coin, 40 of 200 audits favour a side (20.0 % "
        "[14.7, 26.2]); "
        "too many, as at most 5 % are expected"
    )


def test_instrument_refusals() -> None:
    with refused("the instrument needs two sources…"):
        check_instrument(bundled().only_sources(["human"]), [ranker("bm25")])
    with pytest.raises(
        UserError, match="cannot be tested: name a ranker that ranks the collection itself"
    ):
        check_instrument(bundled(), [ranker("replay:run.trec")])
    with refused("expected at least 1 toss, got 0"):
        check_instrument(bundled(), [ranker("bm25")], tosses=0)


def test_interval_that_begins_at_chance_is_calibrated() -> None:
    row = InstrumentRow(
        ranker="bm25", question="nDCG@10", sides_named=12, tosses=100, low=CHANCE, high=0.2
    )
    assert row.is_calibrated
    assert not replace(row, low=CHANCE + 1e-9).is_calibrated

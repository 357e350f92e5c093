"""A designed factor in the source's place: what perplexity does to scores, and what else the source
does.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, MitigationOptions, UserError, mitigate
from ranktilt.mitigation.causal import CausalFit, CausalOptions, fit_causal
from ranktilt.mitigation.factor_instrument import factor_instrument
from ranktilt.reporting.sentences.mitigation.mitigate import bench_notes, causal_sentence
from ranktilt.statistics.regression.least_squares import ratio_difference
from tests.mitigation.builders import COMMON, RARE, Planted, text_column
from tests.refusals import refused
from tests.toy import collection_of

LEVELS = ("low", "high")


def designed(origins: int = 30, *, seed: int = 5, **more: Any) -> Collection:
    """Every text with some rare words made common (fluency), others too (source, by an LLM), both,
    and neither.
    """
    rng, docs = np.random.default_rng(seed), []
    for n in range(origins):
        words, drawn = rng.choice(RARE, 20), rng.random(20)
        for source in LEVELS:
            for fluency in LEVELS:
                common = 0.2 + 0.3 * (fluency == "high") + 0.3 * (source == "high")
                text = np.where(drawn < common, rng.choice(COMMON, 20), words)
                docs.append(
                    {
                        "id": f"{n}-{source}-{fluency}",
                        "text": " ".join(text),
                        "origin": f"x{n}",
                        "source": "human" if source == "low" else "llm",
                        "factor:fluency": fluency,
                        "factor:source": source,
                    }
                )
    names = [doc["id"] for doc in docs]
    queries = {f"q{n}": f"what of {n}" for n in range(origins)}
    judged = {
        n: [name for name in names if int(name.split("-")[0]) in (n, (n + 1) % origins)]
        for n in range(origins)
    }
    qrels = {f"q{n}": dict.fromkeys(relevant, 1) for n, relevant in judged.items()}
    designed_collection = collection_of(docs, queries, qrels)
    return Collection(
        designed_collection.docs,
        designed_collection.queries,
        designed_collection.qrels,
        {"path": "designed", "design": more},
    )


def fitted(collection: Collection, ranked: Planted, **more: Any) -> CausalFit:
    instrument = factor_instrument(collection, "fluency", source="llm")
    return fit_causal(
        collection, ranked, source="llm", options=CausalOptions(instrument=instrument, **more)
    )


def test_pairs_differ_in_the_factor_alone() -> None:
    instrument = factor_instrument(designed(3), "fluency", source="llm")
    assert [tuple(row) for row in instrument.pairs.sort("a").iter_rows()][:2] == [
        ("x0", "0-high-low", "0-high-high"),
        ("x0", "0-low-low", "0-low-high"),
    ]
    assert instrument.pairs.height == 6
    assert instrument.by_source is not None
    assert [tuple(row) for row in instrument.by_source.sort("a").iter_rows()][:2] == [
        ("x0", "0-low-high", "0-high-high"),
        ("x0", "0-low-low", "0-high-low"),
    ]
    collection = designed(3)
    unnamed = Collection(
        collection.docs.drop("factor:source"), collection.queries, collection.qrels
    )
    by_column = factor_instrument(unnamed, "fluency", source="llm")
    assert by_column.by_source is not None
    assert set(by_column.by_source.iter_rows()) == set(instrument.by_source.iter_rows())
    assert factor_instrument(collection, "source", source="llm").by_source is None


def test_without_noise_both_ratios_are_what_was_planted() -> None:
    collection = designed()
    fit = fitted(collection, Planted(noise=0.0))
    assert fit.by_source is not None
    assert (fit.coefficient, fit.by_source.coefficient) == (
        pytest.approx(-0.5),
        pytest.approx(-0.5),
    )
    assert fit.by_source.difference == pytest.approx(0, abs=1e-12)
    assert fit.spec["instrument"] == "fluency"
    assert (
        len(fit.pairs) == fit.by_source.pairs == 120
    )  # 30 queries, 2 origins, 2 levels of the other factor
    assert fit.perplexity_gap < 0
    assert "high minus low fluency: perplexity −" in causal_sentence(fit)
    favoured = fitted(collection, Planted(noise=0.0, bonus=0.3))
    assert favoured.coefficient == pytest.approx(-0.5)
    assert favoured.by_source is not None
    by_source = fit_causal(
        collection,
        Planted(noise=0.0),
        source="llm",
        options=CausalOptions(instrument=factor_instrument(collection, "source", source="llm")),
    )
    assert favoured.by_source.coefficient == pytest.approx(-0.5 + 0.3 / by_source.perplexity_gap)
    assert "exclusion fails" in causal_sentence(favoured)


def test_a_direct_bonus_is_shown_and_moves_the_factor_s_ratio_nowhere() -> None:
    fit = fitted(designed(), Planted(noise=0.2, bonus=0.3))
    assert fit.low < -0.5 < fit.high
    assert fit.by_source is not None
    assert fit.by_source.difference_high < 0
    assert "exclusion fails" in causal_sentence(fit)
    even = fitted(designed(), Planted(noise=0.2))
    assert "no other way of source to scores is shown" in causal_sentence(even)


def test_what_the_source_cannot_test_is_not_told(tmp_path: Path) -> None:
    collection = designed()
    people = pl.col("factor:source") == "low"
    alone = Collection(
        collection.docs.filter(people).drop("factor:source"), collection.queries, collection.qrels
    )
    fit = fitted(alone, Planted())
    assert fit.by_source is None
    assert causal_sentence(fit).endswith("is not tested: no pairs differ in the source alone")
    copied = collection.docs.with_columns(
        text=pl.col("text").first().over("origin", "factor:fluency")
    )
    weak = fitted(Collection(copied, collection.queries, collection.qrels), Planted())
    assert weak.by_source is not None
    assert "is not tested: source hardly moves perplexity" in causal_sentence(weak)
    assert CausalFit.load(weak.save(tmp_path / "fit.json")) == weak


def test_a_difference_of_ratios_by_hand() -> None:
    # Ratios 2 and 1; rows add -1/3, 0, 1/3, 0, 0: variance 5/4 · 2/9, and t with 4 degrees of
    # freedom is 2.7764.
    first, second = (np.array([1.0, 2, 3]), np.ones(3)), (np.ones(2), np.ones(2))
    difference = ratio_difference(first, second, np.arange(5), np.arange(5))
    assert difference.value == 1
    assert difference.low == pytest.approx(1 - 1.4633, abs=1e-4)
    assert difference.high == pytest.approx(1 + 1.4633, abs=1e-4)


def test_a_designed_collection_levels_another(tmp_path: Path) -> None:
    options = MitigationOptions.from_texts(
        ["causal(instrument=fluency)"], strengths=(0.5, 1.0), always=True
    )
    bench = mitigate(
        text_column(),
        Planted(),
        ["Share@5"],
        fit=designed(),
        folder=tmp_path,
        options=options,
        budget=90,
        resamples=200,
    )
    before, half, full = (
        abs(bench.tilt(candidate.name, ("human", "llm")).value) for candidate in bench.candidates
    )
    assert full < half < before
    assert bench.spec["mitigation"]["methods"] == ["causal(instrument=fluency)"]
    assert any("high minus low fluency" in note for note in bench_notes(bench))


def test_what_is_no_instrument_is_refused() -> None:
    full = designed(4, failed=["fluency"])
    bare = Collection(full.docs.drop("factor:fluency", "factor:source"), full.queries, full.qrels)
    even = pl.col("factor:fluency") == pl.col("factor:source")
    fraction = full.docs.with_columns(
        pl.when(even).then(pl.lit("high")).otherwise(pl.lit("low")).alias("factor:words")
    )
    with refused(
        "no factors: expected columns factor:NAME of low and high, as ranktilt generate versions "
        "writes them"
    ):
        factor_instrument(bare, "fluency", source="llm")
    with refused("unknown factor 'style' (valid: fluency, source)"):
        factor_instrument(full, "style", source="llm")
    with refused(
        "factor 'fluency' failed its manipulation check, so it is not an instrument; set force to "
        "go on anyway"
    ):
        factor_instrument(full, "fluency", source="llm")
    assert factor_instrument(full, "fluency", source="llm", force=True).pairs.height == 8
    with refused(
        "no two versions differ in words alone: fractional designs have none, full ones do"
    ):
        factor_instrument(Collection(fraction, full.queries, full.qrels), "words", source="llm")
    few = Collection(
        full.docs, full.queries, full.qrels.filter(query_id="q0", doc_id="0-low-low"), {}
    )
    with refused("causal needs at least 3 pairs with both sides scored by planted, got 1 of 1"):
        fitted(few, Planted())
    copied = full.docs.with_columns(text=pl.col("text").first().over("origin", "factor:source"))
    with pytest.raises(UserError, match="high and low fluency differ too little in perplexity"):
        fitted(Collection(copied, full.queries, full.qrels), Planted(), force=True)
    with refused("unknown option of offset 'instrument' (valid: none)"):
        MitigationOptions.from_texts(["offset(instrument=fluency)"])

"""Gaps between groups that are no twins, and the properties that go with them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.explaining.properties.gaps import are_mostly_twins, explain_gaps
from ranktilt.explaining.properties.result import ExplainedGap, ExplainedGaps, LeftOutProperty
from ranktilt.reporting.headline import headline
from ranktilt.reporting.sentences.explaining.properties import gap_cautions, gap_findings
from ranktilt.reporting.views import view
from tests.explaining.properties.planted import (
    DOCUMENTS,
    MORE_WORDS,
    PER_WORD,
    REMAINING,
    shop_collection,
    shop_documents,
    shop_gaps,
    shop_run,
)
from tests.refusals import refused
from tests.toy import collection_of, run_of

SHOP_FORUM = [("shop", "forum")]


def of_run(gaps: ExplainedGaps, run: str, outcome: str = "score") -> ExplainedGap:
    return next(gap for gap in gaps.gaps if (gap.run, gap.outcome) == (run, outcome))


def with_docs(docs: pl.DataFrame) -> Collection:
    shop = shop_collection()
    return Collection(docs.with_columns(text=pl.lit("")), shop.queries, shop.qrels, shop.spec)


def test_planted_part_is_found() -> None:
    gap = of_run(shop_gaps(), "engine")
    # Scores are divided by their list's deviation, which is some 1.2 here, so shares are compared.
    true_part = MORE_WORDS * PER_WORD / (MORE_WORDS * PER_WORD + REMAINING)
    words = next(part for part in gap.parts if part.property_name == "words")
    assert gap.is_shown
    assert gap.share(words) == pytest.approx(true_part, abs=0.1)
    assert words.difference == pytest.approx(MORE_WORDS, abs=5)
    assert [part.property_name for part in gap.shown_parts] == ["words"]


@pytest.mark.parametrize("outcome", ["score", "rank", "first ranks"])
def test_parts_and_rest_add_up(outcome: str) -> None:
    gap = of_run(shop_gaps(), "engine", outcome)
    parts = sum(part.value for part in gap.parts)
    assert parts + gap.remaining == pytest.approx(gap.value)
    assert gap.value > 0


def test_blind_ranker_shows_no_gap() -> None:
    gap = of_run(shop_gaps(), "blind")
    assert not gap.is_shown
    assert not gap.shown_parts
    assert np.isnan(gap.share(gap.parts[0]))


def test_swapped_pair_turns_every_sign() -> None:
    first = of_run(shop_gaps(), "engine")
    turned = explain_gaps(
        shop_collection(), shop_run(), by="kind", pairs=[("forum", "shop")], draws=100
    )
    second = of_run(turned, "engine")
    assert second.value == pytest.approx(-first.value)
    assert [part.value for part in second.parts] == pytest.approx(
        [-part.value for part in first.parts]
    )


def test_numbers_are_holm_corrected_over_runs() -> None:
    gaps = shop_gaps()
    ps = [part.p for gap in gaps.of_outcome("score") for part in gap.parts]
    smallest = min(ps)
    corrected = [part.p_corrected for gap in gaps.of_outcome("score") for part in gap.parts]
    assert min(corrected) == pytest.approx(min(len(ps) * smallest, 1.0))


def test_order_alone_has_no_scores() -> None:
    run = shop_run()
    ranks = np.concatenate([-np.arange(size) for size in np.diff(run.offsets)]).astype(np.float64)
    ordered = Run(run.queries, run.offsets, run.docs, ranks, run.ids, run.spec)
    gaps = explain_gaps(shop_collection(), ordered, by="kind", pairs=SHOP_FORUM, draws=100)
    assert [gap.outcome for gap in gaps.gaps] == ["rank", "first ranks"]
    assert gaps.primary[0].outcome == "rank"
    assert "ranks shop higher than forum" in gap_findings(gaps)[0].sentence


def test_tied_list_has_no_gap() -> None:
    docs = [{"id": f"d{n}", "text": "", "kind": "ab"[n % 2], "size": n % 5} for n in range(20)]
    queries = {f"q{n}": "" for n in range(20)}
    collection = collection_of(docs, queries, {})
    scores = {query: {f"d{n}": 1.0 for n in range(20)} for query in queries}
    gaps = explain_gaps(collection, run_of(collection, scores), by="kind", draws=100)
    assert [gap.value for gap in gaps.gaps] == pytest.approx([0.0, 0.0, 0.0])
    assert not any(gap.is_shown for gap in gaps.gaps)


def test_properties_that_say_nothing_more_are_left_out() -> None:
    docs = shop_documents().with_columns(
        twice=2 * pl.col("words") + 1,
        same=pl.lit(7),
        rare=pl.when(pl.int_range(pl.len()) < DOCUMENTS // 4).then(pl.col("words")),
        is_shop=pl.col("kind") == "shop",
    )
    gaps = explain_gaps(with_docs(docs), shop_run(), by="kind", pairs=SHOP_FORUM, draws=100)
    assert set(gaps.left_out) == {
        LeftOutProperty(name="url", reason="no number"),
        LeftOutProperty(name="twice", reason="follows"),
        LeftOutProperty(name="same", reason="one value"),
        LeftOutProperty(name="rare", reason="mostly unknown"),
        LeftOutProperty(name="is_shop", reason="follows"),
    }
    parts = [part.property_name for part in gaps.gaps[0].parts]
    assert parts == ["words", "price"]


def test_results_without_a_value_are_counted() -> None:
    docs = shop_documents().with_columns(
        price=pl.when(pl.int_range(pl.len()) >= 40).then(pl.col("price"))
    )
    gaps = explain_gaps(with_docs(docs), shop_run(), by="kind", pairs=SHOP_FORUM, draws=100)
    gap = gaps.gaps[0]
    in_first = [f"d{number}" for number in range(40)]
    assert gap.dropped == int(shop_run().frame()["doc_id"].is_in(in_first).sum())
    assert gap.dropped + gap.entries == len(shop_run().docs)
    assert any("one of their properties is unknown" in caution for caution in gap_cautions(gaps))


def test_few_queries_say_nothing_of_a_side() -> None:
    run = shop_run()
    few = Run.from_frame(run.frame().filter(pl.col("query_id").is_in(["q0", "q1", "q2"])))
    gaps = explain_gaps(shop_collection(), few, by="kind", pairs=SHOP_FORUM, draws=100)
    gap = gaps.gaps[0]
    assert not gap.has_enough
    assert np.isnan(gap.p)
    assert not gap.shown_parts
    assert "inconclusive between shop and forum" in gap_findings(gaps)[0].sentence


def test_saved_run_answers_for_what_it_holds() -> None:
    gaps = shop_gaps()
    assert not gaps.coverage[0].is_complete
    assert any(
        caution.startswith("blind and engine: a list holds 40 of 400 documents on average")
        for caution in gap_cautions(gaps)
    )
    complete = replace(gaps.coverage[0], listed=gaps.coverage[0].queries * DOCUMENTS)
    assert complete.is_complete


def test_texts_give_features() -> None:
    bundled = rt.bundled()
    docs = bundled.docs.with_columns(
        pl.when(pl.int_range(pl.len()) % 2 == 0)
        .then(pl.lit("even"))
        .otherwise(pl.lit("odd"))
        .alias("half")
    )
    collection = Collection(docs, bundled.queries, bundled.qrels, bundled.spec)
    run = rt.ranker("bm25").rank(collection)
    gaps = explain_gaps(collection, run, by="half", draws=200)
    names = [about.name for about in gaps.properties]
    assert names == [
        "length",
        "sentence length",
        "reading difficulty",
        "type/token ratio",
        "query words",
    ]
    chosen = explain_gaps(collection, run, ["words", "specificity"], by="half", draws=200)
    assert [about.name for about in chosen.properties] == ["length", "specificity"]


def test_twins_of_texts_are_known() -> None:
    assert are_mostly_twins(rt.bundled(), "source")
    assert not are_mostly_twins(shop_collection(), "kind")


def test_file_is_read_back(tmp_path) -> None:
    gaps = shop_gaps()
    path = gaps.save(tmp_path / "gaps.json")
    assert ExplainedGaps.load(path) == gaps
    assert gaps.frame("gaps.parts").height == sum(len(gap.parts) for gap in gaps.gaps)


def test_sentences_never_say_because() -> None:
    document = view(shop_gaps())
    text = " ".join([*(line.text for line in document.sentences), *document.notes])
    assert "engine scores shop higher than forum" in text
    assert "goes with words" in text
    assert "generate versions, then explain --by-factor) show causes" in text
    assert "because of" not in text


def test_a_gap_is_said_from_the_side_that_stands_higher() -> None:
    gaps = explain_gaps(shop_collection(), shop_run(), by="kind", pairs=[("forum", "shop")])
    (sentence,) = [line.text for line in view(gaps).sentences]
    assert re.fullmatch(
        r"engine scores shop higher than forum, by 0\.\d+ sd \[0\.\d+, 0\.\d+\] \(8\.\d ranks\)\. "
        r"Of this, 0\.\d+ sd \[0\.\d+, 0\.\d+\] \(7\d %\) goes with words \(higher in shop\)\. "
        r"At equal properties, shop is still higher, by 0\.\d+ sd \[.*\]\.",
        sentence,
    )
    assert re.fullmatch(
        r"engine scores shop higher than forum, by .* \(8\.\d ranks\); 7\d % of this goes with "
        r"words\.",
        view(gaps).headline,
    )
    gap_row, words_row, *_ = view(gaps).first_figure_blocks[0].rows
    assert (gap_row.label, words_row.note) == ("the gap", "higher in shop")
    assert gap_row.readings[0].mark.value > 0  # although forum is the first group


def test_properties_that_do_not_vary_are_said_to_be_unexamined() -> None:
    docs = shop_documents().with_columns(price=pl.lit(5.0), age=pl.lit(1.0))
    collection = with_docs(docs)
    gaps = explain_gaps(collection, shop_run(), by="kind")
    unexamined = "In these lists, price and age do not vary and could not be examined"
    document = view(gaps)
    assert document.sentences[0].text.endswith(
        f"{unexamined}, so words is the only property compared."
    )
    assert document.headline.endswith("goes with words, the only property compared.")
    assert "Not examined, for want of variation in these lists: price and age." in document.meaning
    level = explain_gaps(collection, shop_run(tilt=0.0, seed=3), by="kind")
    assert unexamined not in view(level).sentences[0].text


def two_part_gaps(
    value: float, words: float, readability: float, remaining: float
) -> ExplainedGaps:
    """The gap between ai and human pages, with parts whose intervals are ±0.02."""
    gaps = shop_gaps()
    gap = of_run(gaps, "engine")
    first, second = gap.parts
    margin = 0.02
    parts = [
        replace(part, property_name=name, value=size, low=size - margin, high=size + margin)
        for part, name, size in ((first, "words", words), (second, "readability", readability))
    ]
    gap = replace(
        gap,
        group_a="ai",
        group_b="human",
        value=value,
        low=value - margin,
        high=value + margin,
        remaining=remaining,
        remaining_low=remaining - margin,
        remaining_high=remaining + margin,
        parts=tuple(replace(part, p_corrected=0.001) for part in parts),
    )
    return replace(gaps, gaps=(gap,))


@pytest.mark.parametrize(
    ("numbers", "sentence", "short"),
    [
        (
            (0.053, -0.1, 0.098, 0.055),
            "engine scores ai higher than human, by 0.053 sd [0.033, 0.073]. 0.098 sd [0.078, "
            "0.118] goes with readability (higher in ai), more than the gap itself. The other "
            "way, 0.100 sd [0.080, 0.120] goes with words (higher in ai); without that, the gap "
            "would be larger, 0.153 sd. At equal properties the gap is no smaller: 0.055 sd "
            "[0.035, 0.075].",
            "; readability goes with it, but words goes against it.",
        ),
        (
            (-0.2, -0.1, -0.06, -0.04),
            "engine scores human higher than ai, by 0.200 sd [0.180, 0.220]. Of this, 0.100 sd "
            "[0.080, 0.120] (50 %) goes with words (higher in ai) and 0.060 sd [0.040, 0.080] "
            "(30 %) with readability (higher in ai). At equal properties, human is still higher, "
            "by 0.040 sd [0.020, 0.060].",
            "; 80 % of this goes with words and readability.",
        ),
        (
            (0.1, 0.15, 0.05, -0.1),
            "engine scores ai higher than human, by 0.100 sd [0.080, 0.120]. 0.150 sd [0.130, "
            "0.170] goes with words (higher in ai) and 0.050 sd [0.030, 0.070] with readability "
            "(higher in ai), more than the gap itself. At equal properties, human is higher, by "
            "0.100 sd [0.080, 0.120].",
            "; words and readability go with it.",
        ),
        (
            (0.1, 0.06, 0.03, 0.01),
            "engine scores ai higher than human, by 0.100 sd [0.080, 0.120]. Of this, 0.060 sd "
            "[0.040, 0.080] (60 %) goes with words (higher in ai) and 0.030 sd [0.010, 0.050] "
            "(30 %) with readability (higher in ai). At equal properties no gap is shown (0.010 "
            "sd [−0.010, 0.030] toward ai).",
            "; 90 % of this goes with words and readability.",
        ),
    ],
    ids=["opposed", "second group", "more than all", "nothing remains"],
)
def test_parts_are_said_with_the_gap_and_against_it(
    numbers: tuple[float, float, float, float], sentence: str, short: str
) -> None:
    gaps = two_part_gaps(*numbers)
    assert gap_findings(gaps)[0].sentence == sentence
    assert headline(gaps).endswith(short)


def test_figure_is_drawn_when_a_page_asks() -> None:
    document = view(shop_gaps())
    assert [block.kind for block in document.blocks("page")].count("figure") == 1
    assert not [block for block in document.blocks("text") if block.kind == "figure"]


def test_refusals() -> None:
    collection, run = shop_collection(), shop_run()
    with refused("unknown property 'weight' (valid: words, price)"):
        explain_gaps(collection, run, ["weight"], by="kind")
    with refused("property 'url': expected a column of numbers"):
        explain_gaps(collection, run, ["url"], by="kind")
    without_numbers = shop_documents().select("id", "kind")
    with refused("nothing to explain the gap with: pages.csv has no column of numbers…"):
        explain_gaps(with_docs(without_numbers), run, by="kind")
    with refused(
        "nothing to explain the gap with: pages.csv has no column of numbers (lang holds none)…"
    ):
        explain_gaps(with_docs(without_numbers.with_columns(lang=pl.lit("en"))), run, by="kind")
    with refused("expected a cutoff of at least 1, got 0"):
        explain_gaps(collection, run, by="kind", cutoff=0)
    apart = Run.from_dict({"q0": {"d0": 2.0}, "q1": {"d1": 1.0}})
    with refused("run: no list holds documents of both…"):
        explain_gaps(collection, apart, by="kind")

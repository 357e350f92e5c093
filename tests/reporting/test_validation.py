"""A validation as it is shown: the headline says what was found, and every number stands in the tables and figures."""

import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktilt.measures.average_precision import AP
from ranktilt.probes.distribution import Cosines, Distribution
from ranktilt.probes.text_probes import CollectionStatistics, Overlap
from ranktilt.reporting.document import Figure, Section, Table
from ranktilt.reporting.figures.validation import OUTCOMES
from ranktilt.reporting.views.validate import headline
from ranktilt.reporting.views.validate_sections import validation_sections
from tests.probes.validations import toy_effectiveness, toy_similarity, toy_validation
from tests.reporting.charts import by_name, domain, points
from tests.reporting.charts import rows as rows_of
from tests.reporting.markup import Markup
from tests.reporting.screen import html

VALIDATION = toy_validation()
MANY = toy_validation(("human", "llm-0.2", "llm-0.6"))
NEAR = toy_similarity()


@pytest.fixture(scope="module")
def text() -> str:
    return html(VALIDATION)


@pytest.fixture(scope="module")
def shown(text: str) -> Markup:
    return Markup(text)


def drawings(text: str) -> dict[str, Any]:
    """Figures by their caption, as the page carries them."""
    names = re.findall(r'<figcaption id="([\w-]+)-caption">(.*?)</figcaption>', text)
    blocks = dict(re.findall(r'<script type="application/json" id="([\w-]+)-data">(.*?)</script>', text, re.DOTALL))
    return {re.sub(r"<.*?>", "", caption): json.loads(blocks[name]) for name, caption in names}


def drawn(text: str, caption: str) -> Any:
    return next(drawing for title, drawing in drawings(text).items() if title.startswith(caption))


def section(name: str, **changes: object) -> Section:
    """One section of the toy validation with some parts changed."""
    found = validation_sections(replace(VALIDATION, **changes))  # type: ignore[arg-type]
    return next(one for one in found if one.name == name)


def figures(one: Section) -> list[Figure]:
    return [block for block in one.blocks if isinstance(block, Figure)]


def table(one: Section) -> Table:
    return next(block for block in one.blocks if isinstance(block, Table))


def spread(*values: float, low: float = 0.0) -> Distribution:
    return Distribution("toy", np.array(values), (low, 1.0))


def renamed(names: list[str], **changes: Any) -> dict[str, Any]:
    return {"effectiveness": tuple(replace(toy_effectiveness()[0], run=name, **changes) for name in names)}


KEPT = round(100 * VALIDATION.overlaps[0].overlap.mean)
ALL_OUTCOMES = (
    f"The rewrites keep {KEPT} % of the words and stay close in meaning; bm25 is equivalent on both sides; "
    "tfidf differs within the margin; dense:minilm differs; bm25@5 is inconclusive; tfidf@1 is not tested."
)
OTHER_MEASURE = tuple(replace(row, estimand=AP @ 5, outcome="different") for row in toy_effectiveness())
STRAYING = (NEAR, replace(NEAR, source="b", cosine=NEAR.baseline))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ALL_OUTCOMES),
        ({"effectiveness": toy_effectiveness() + OTHER_MEASURE}, ALL_OUTCOMES),
        (renamed(["a", "b", "c"]), "; a, b and c are equivalent on both sides."),
        (renamed([f"r{n}" for n in range(6)]), "; r0, r1, r2, r3 and 2 more are equivalent on both sides."),
        ({"similarities": STRAYING[1:], "effectiveness": ()}, "do not all stay close in meaning."),
        ({"similarities": STRAYING, "effectiveness": ()}, "do not all stay close in meaning."),
        (
            {"overlaps": (), "similarities": (), "effectiveness": ()},
            "No pair of llm and human could be compared.",
        ),
    ],
)
def test_headline(changes: dict[str, Any], said: str) -> None:
    assert headline(replace(VALIDATION, **changes)).endswith(said)


def test_headline_names_sources_where_there_are_several_or_none() -> None:
    assert "bm25 (llm-0.2) and bm25 (llm-0.6) are equivalent on both sides" in headline(MANY)
    assert headline(toy_validation(("human",))) == "One source, human, with 40 documents: no twins."


def test_headline_leaves_out_meaning_that_is_unknown() -> None:
    nothing = Cosines("cosine", np.array([np.nan]))
    for similarities in ((), (replace(NEAR, cosine=nothing, baseline=nothing),)):
        assert "meaning" not in headline(replace(VALIDATION, similarities=similarities))


def test_void_comparison_comes_first() -> None:
    assert VALIDATION.check is not None
    check = replace(VALIDATION.check, rows=tuple(replace(row, verdict="void") for row in VALIDATION.check.rows[:1]))
    assert headline(replace(VALIDATION, check=check)) == check.sentence
    assert check.sentence.startswith("Void")


def test_sections_come_in_the_order_of_the_papers_and_only_what_was_asked_for() -> None:
    parts = {"words": "overlaps", "meaning": "similarities", "effectiveness": "effectiveness", "check": "check"}
    assert [one.name for one in validation_sections(VALIDATION)] == ["collection", *parts]
    for name, part in parts.items():
        found = validation_sections(replace(VALIDATION, **{part: None if part == "check" else ()}))  # type: ignore[arg-type]
        assert [one.name for one in found] == ["collection", *(other for other in parts if other != name)]


@pytest.mark.parametrize("validation", [VALIDATION, MANY, toy_validation(("human",))])
def test_every_row_fits_its_columns(validation: Any) -> None:
    for one in validation_sections(validation):
        tables = [block for block in one.blocks if isinstance(block, Table)]
        for found in [*tables, *(figure.table for figure in figures(one) if figure.table)]:
            assert {len(row) for row in found.rows} == {len(found.columns)}


def test_table_1_holds_the_statistics(shown: Markup) -> None:
    grid = shown.grid("Documents by source")
    sources = VALIDATION.statistics.sources
    assert grid.column("source") == ["human", "llm"]
    for title, name in (
        ("documents", "documents"), ("words", "words"), ("queries", "queries"), ("relevant each", "relevant"),
    ):  # fmt: skip
        assert grid.numbers(title) == [getattr(row, name) for row in sources]
    assert shown.grid("Queries").column("words a query") == ["12.38", "12.50"]


def test_empty_documents_and_the_split_are_named() -> None:
    human, llm = VALIDATION.statistics.sources
    found = section(
        "collection", statistics=CollectionStatistics((human, replace(llm, empty=3)), VALIDATION.statistics.queries, "")
    )
    assert table(found).note == "Documents without a word: llm 3; they count with 0."
    assert found.lead == ("Both sides answer the same queries.",)
    assert table(section("collection")).note == ""
    assert section("collection").lead == ("Both sides answer the same queries. Judgments: test.",)


def test_shared_terms_are_summed_up(shown: Markup) -> None:
    grid = shown.grid("Terms shared with human")
    (found,) = VALIDATION.overlaps
    assert grid.column("quantity") == ["Jaccard", "overlap"]
    assert grid.numbers("mean") == [found.jaccard.mean, found.overlap.mean]
    assert grid.column("quartiles")[0] == "  ".join(f"{value:.2f}" for value in found.jaccard.quartiles)
    assert grid.column("mean")[0] == f"{found.jaccard.mean:.2f}"
    assert grid.numbers("pairs") == [39, 39]
    assert grid.numbers("undefined") == [1, 1]


def test_several_sources_share_a_figure_and_a_table() -> None:
    words = next(one for one in validation_sections(MANY) if one.name == "words")
    assert list(by_name(figures(words)[0].drawing, "bar")) == ["llm-0.2", "llm-0.6"]
    assert [row.group for row in table(words).rows] == [("llm-0.2",)] * 2 + [("llm-0.6",)] * 2


def test_figure_3_counts_every_pair(text: str) -> None:
    found = VALIDATION.overlaps[0].jaccard.defined
    bars = rows_of(drawn(text, "Figure 3, left"), "bar")
    assert sum(bar["y"] for bar in bars) == pytest.approx(100, abs=1e-3)
    inside = [100 * np.mean((bar["x"] <= found) & (found < bar["end"])) for bar in bars]
    assert [bar["y"] for bar in bars] == pytest.approx(inside, abs=1e-3)


def test_figure_5_sets_twins_against_unrelated_pairs(text: str, shown: Markup) -> None:
    sides = by_name(drawn(text, "Figure 5"), "bar")
    assert {name: round(sum(shares), 3) for name, shares in sides.items()} == {"twins": 100, "unrelated pairs": 100}
    one = VALIDATION.similarities[0]
    assert shown.grid("Cosine similarity").numbers("mean") == [one.cosine.mean, one.baseline.mean]


def test_histogram_of_shares_spans_the_whole_range() -> None:
    one = Overlap("llm", spread(0.5, 0.5), spread(0.9, 0.1))
    left, right = figures(section("words", overlaps=(one,)))
    for figure, heights in ((left, [100.0]), (right, [50.0, 50.0])):
        assert domain(figure.drawing, "x") == [0.0, 1.0]
        assert [bar["y"] for bar in rows_of(figure.drawing, "bar")] == heights


def test_histogram_of_cosines_spans_what_there_is() -> None:
    one = replace(NEAR, cosine=spread(0.91, low=-1.0), baseline=spread(0.01, low=-1.0))
    figure = figures(section("meaning", similarities=(one,)))[0]
    low, high = domain(figure.drawing, "x")
    assert (low, high) == pytest.approx((0.0, 0.925))


def test_separation_has_a_row(shown: Markup) -> None:
    apart = VALIDATION.similarities[0].separation
    assert shown.grid("How far apart").numbers("value") == [apart.auc]
    unknown = replace(NEAR, separation=replace(NEAR.separation, auc=np.nan))
    found = [block for block in section("meaning", similarities=(unknown,)).blocks if isinstance(block, Table)][-1]
    assert [row[1].text for row in found.rows] == ["–"]


def test_figure_4_shows_every_text_of_the_map_with_its_id(text: str) -> None:
    places = VALIDATION.similarities[0].map
    assert places is not None
    marked = points(drawn(text, "Figure 4"))
    assert [row["tip"] for row in marked] == list(places.ids)
    assert [row["x"] for row in marked] == pytest.approx(places.x.tolist(), abs=1e-3)
    assert [row["name"] for row in marked] == list(places.sources)
    assert "Figure 4." not in html(toy_validation(map=False))


@pytest.mark.parametrize(("of", "said"), [(40, "20 of 40 pairs, drawn by chance"), (20, "all pairs")])
def test_map_says_how_many_pairs_it_shows(of: int, said: str) -> None:
    assert NEAR.map is not None
    whole = replace(NEAR, map=replace(NEAR.map, of=of))
    assert said in figures(section("meaning", similarities=(whole,)))[-1].says


def test_table_2_holds_every_number(shown: Markup) -> None:
    grid, rows = shown.grid("Effectiveness on each"), toy_effectiveness()
    assert grid.column("ranker") == [row.run for row in rows]
    signs = ["✓", "✓", "!", "○", "○"]
    assert grid.column("outcome") == [f"{sign} {row.statement}" for sign, row in zip(signs, rows, strict=True)]
    for title, name in (
        ("human", "mean_a"), ("rewrite", "mean_b"), ("difference", "value"),
        ("p different", "p_corrected"), ("p equivalent", "p_equivalent"), ("smallest margin", "smallest"),
        ("queries", "queries"),
    ):  # fmt: skip
        assert grid.numbers(title) == pytest.approx([getattr(row, name) for row in rows], nan_ok=True), title
    assert grid.column("difference")[0] == "+0.004 [−0.003, +0.011]"
    assert grid.column("p different")[-1] == "–"
    assert math.isnan(grid.numbers("p different")[-1])


def test_forest_plot_draws_both_intervals_and_the_margin(text: str) -> None:
    drawing = drawn(text, "Difference in nDCG@10")
    first, row = points(drawing)[0], toy_effectiveness()[0]
    assert (first["x"], first["high"]) == (row.value, pytest.approx(row.high))
    assert first["to"] == pytest.approx(row.value + row.smallest - abs(row.value))
    assert rows_of(drawing, "rect") == [{"x": -0.02, "end": 0.02}]
    assert figures(section("effectiveness"))[0].says.startswith(
        "1 different, 1 different within the margin, 1 equivalent, 1 inconclusive, 1 not tested. "
    )


def test_several_measures_and_sources_have_rows_and_a_plot_each() -> None:
    text = html(replace(VALIDATION, effectiveness=(*toy_effectiveness(), *toy_effectiveness(measure="AP@5"))))
    assert Markup(text).grid("Effectiveness on each").column("ranker")[4:6] == ["tfidf@1 nDCG@10", "bm25 AP@5"]
    assert [c for c in drawings(text) if c.startswith("Difference")] == [
        "Difference in nDCG@10, human − llm",
        "Difference in AP@5, human − llm",
    ]
    text = html(MANY)
    assert '<h2 id="meaning-1-title">Meaning of llm-0.2</h2>' in text
    assert '<h2 id="meaning-2-title">Meaning of llm-0.6</h2>' in text
    assert Markup(text).grid("Effectiveness on each").column("ranker") == [row.run for row in toy_effectiveness()] * 2


def test_margin_and_left_out_queries_are_said() -> None:
    rows = tuple(replace(row, margin=0.05) for row in toy_effectiveness())
    assert "The margin is ±0.05" in section("effectiveness", effectiveness=rows).lead[0]
    assert table(section("effectiveness")).note.endswith("without a relevant document on both sides, left out: 2.")
    whole = tuple(replace(row, excluded=0) for row in toy_effectiveness())
    assert "left out" not in table(section("effectiveness", effectiveness=whole)).note
    rows = tuple(replace(row, excluded={"llm-0.2": 2, "llm-0.6": 7}[row.source]) for row in MANY.effectiveness)
    found = section("effectiveness", sources=MANY.sources, effectiveness=rows)
    assert table(found).note.endswith("left out: 2 of llm-0.2, 7 of llm-0.6.")


@pytest.mark.parametrize(
    ("alpha", "below", "level"), [(0.05, ".05", "90 %"), (0.01, ".01", "98 %"), (0.1, ".1", "80 %")]
)
def test_the_level_is_the_one_that_was_asked_for(alpha: float, below: str, level: str) -> None:
    found = section("effectiveness", spec={**VALIDATION.spec, "alpha": alpha})
    assert f"not corrected; below {below} it shows equivalence" in table(found).note
    assert f"thick: {level} interval, which must lie in the shade" in figures(found)[0].says


def test_check_has_a_row_each_and_says_what_faults_mean(shown: Markup) -> None:
    assert VALIDATION.check is not None
    grid, rows = shown.grid("Faults"), VALIDATION.check.rows
    assert grid.column("check") == [row.name for row in rows]
    assert grid.numbers("found") == [row.found for row in rows]
    assert [cell.lstrip("✓!? ") for cell in grid.column("verdict")] == [row.verdict for row in rows]
    assert "d7-llm" in grid.column("examples")[[row.name for row in rows].index("cut-off endings")]
    assert "cut-off endings: the text ends without a full stop" in shown.text


def test_one_source_has_its_statistics_only() -> None:
    page = Markup(html(toy_validation(("human",))))
    assert [grid.caption for grid in page.grids] == ["Documents by source", "Queries", "Verdict"]
    assert not [a for a in page.of("div") if "data-figure" in a]


def test_page_says_verdicts_and_how_it_was_made(shown: Markup) -> None:
    said = re.sub(r"\s+", " ", shown.text)
    assert all(f"{row.run}: {row.statement}." in said for row in VALIDATION.effectiveness)
    assert all(part in said for part in ("both sides are restricted to their 40 pairs", "margin", "KDD 2024"))
    text = html(replace(VALIDATION, spec={**VALIDATION.spec, "path": "/data/sets/nfcorpus"}))
    assert "<title>Validation of nfcorpus</title>" in text
    assert "/data/sets/nfcorpus" in Markup(text).text


@pytest.mark.parametrize(("outcome", "tone"), OUTCOMES.items())
def test_verdict_has_the_tone_of_its_outcome(outcome: str, tone: str) -> None:
    rows = tuple(row for row in toy_effectiveness() if row.outcome == outcome)
    text = html(replace(VALIDATION, effectiveness=rows))
    assert re.findall(r'<li class="(\w*)">', text)[-1] == tone


def test_names_are_hostile_and_do_nothing(shown: Markup) -> None:
    text = html(toy_validation(("human", "</script><script>alert(1)</script>{{7*7}}\u202e")))
    assert len(Markup(text).of("script")) == len(shown.of("script"))
    assert "\u202e" not in text
    assert "{{7*7}}" in text

"""A validation as a page: every number of the validation stands in it, and the headline says what was found."""

import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktilt.measures.average_precision import AP
from ranktilt.probes.distribution import Cosines
from ranktilt.probes.validation import Validation
from ranktilt.reporting.views.validate import headline
from tests.probes.validations import toy_effectiveness, toy_similarity, toy_validation
from tests.reporting.markup import Markup
from tests.reporting.screen import html

VALIDATION = toy_validation()
MANY = toy_validation(("human", "llm-0.2", "llm-0.6"))


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


def outcomes(*names: str) -> Validation:
    rows = [row for row in toy_effectiveness() if row.outcome in names]
    return replace(VALIDATION, effectiveness=tuple(rows))


def test_headline_says_words_meaning_and_every_outcome() -> None:
    kept = round(100 * VALIDATION.overlaps[0].overlap.mean)
    assert headline(VALIDATION) == (
        f"The rewrites keep {kept} % of the words and stay close in meaning; bm25 is equivalent on both sides; "
        "tfidf differs within the margin; dense:minilm differs; bm25@5 is inconclusive; tfidf@1 is not tested."
    )


def test_headline_joins_rankers_of_one_outcome() -> None:
    first = toy_effectiveness()[0]
    rows = tuple(replace(first, run=name) for name in ("a", "b", "c"))
    assert headline(replace(VALIDATION, effectiveness=rows)).endswith("; a, b and c are equivalent on both sides.")


def test_headline_names_no_more_than_four() -> None:
    rows = tuple(replace(toy_effectiveness()[0], run=f"r{n}") for n in range(6))
    assert "; r0, r1, r2, r3 and 2 more are equivalent" in headline(replace(VALIDATION, effectiveness=rows))


def test_headline_names_the_source_where_there_are_several() -> None:
    assert "bm25 (llm-0.2) and bm25 (llm-0.6) are equivalent on both sides" in headline(MANY)


def test_headline_speaks_of_the_first_measure() -> None:
    other = tuple(replace(row, estimand=AP @ 5, outcome="different") for row in toy_effectiveness())
    both = replace(VALIDATION, effectiveness=toy_effectiveness() + other)
    assert headline(both) == headline(VALIDATION)


def test_headline_does_not_claim_meaning_that_is_not_shown() -> None:
    near = toy_similarity()
    far = replace(near, cosine=near.baseline)
    assert "do not all stay close in meaning" in headline(replace(VALIDATION, similarities=(far,)))
    assert "meaning" not in headline(replace(VALIDATION, similarities=()))


def test_headline_leaves_out_what_is_undefined() -> None:
    nothing = Cosines("cosine", np.array([np.nan]))
    undefined = replace(toy_similarity(), cosine=nothing, baseline=nothing)
    assert "meaning" not in headline(replace(VALIDATION, similarities=(undefined,)))


def test_headline_of_one_source() -> None:
    assert headline(toy_validation(("human",))) == "One source, human, with 40 documents: no twins."


def test_headline_where_nothing_could_be_compared() -> None:
    bare = replace(VALIDATION, overlaps=(), similarities=(), effectiveness=())
    assert headline(bare) == "No pair of llm and human could be compared."


def test_void_comparison_comes_first() -> None:
    assert VALIDATION.check is not None
    rows = tuple(replace(row, verdict="void") for row in VALIDATION.check.rows[:1])
    check = replace(VALIDATION.check, rows=rows)
    assert headline(replace(VALIDATION, check=check)) == check.sentence
    assert check.sentence.startswith("Void")


def test_table_1_holds_the_statistics(shown: Markup) -> None:
    grid = shown.grid("Table 1")
    assert grid.column("source") == ["human", "llm"]
    sources = VALIDATION.statistics.sources
    assert grid.numbers("documents") == [row.documents for row in sources]
    assert grid.numbers("words a document") == [row.words for row in sources]
    assert grid.numbers("queries with an answer") == [row.queries for row in sources]
    assert grid.numbers("relevant a query") == [row.relevant for row in sources]
    assert shown.grid("Queries").column("words a query") == ["12.38", "12.50"]


def test_shared_terms_are_summed_up(shown: Markup) -> None:
    grid = shown.grid("Terms that twins share")
    (found,) = VALIDATION.overlaps
    assert grid.column("quantity") == ["Jaccard", "overlap"]
    assert grid.numbers("mean") == [found.jaccard.mean, found.overlap.mean]
    assert grid.numbers("median") == [found.jaccard.quartiles[1], found.overlap.quartiles[1]]
    assert grid.numbers("pairs") == [39, 39]
    assert grid.numbers("undefined") == [1, 1]


def test_figure_3_counts_every_pair(text: str) -> None:
    found = VALIDATION.overlaps[0].jaccard.defined
    (bars,) = next(d for c, d in drawings(text).items() if c.startswith("Figure 3, left"))["data"]
    assert sum(share or 0 for share in bars["y"]) == pytest.approx(100, abs=1e-3)
    inside = [(x - w / 2 <= found) & (found < x + w / 2) for x, w in zip(bars["x"], bars["width"], strict=True)]
    assert [share or 0 for share in bars["y"]] == pytest.approx([100 * np.mean(i) for i in inside], abs=1e-4)


def test_figure_5_sets_twins_against_unrelated_pairs(text: str, shown: Markup) -> None:
    drawing = next(d for c, d in drawings(text).items() if c.startswith("Figure 5"))
    assert [bars["name"] for bars in drawing["data"]] == ["twins", "unrelated pairs"]
    for bars in drawing["data"]:
        assert sum(share or 0 for share in bars["y"]) == pytest.approx(100, abs=1e-3)
    one = VALIDATION.similarities[0]
    assert shown.grid("Cosine similarity").numbers("mean") == [one.cosine.mean, one.baseline.mean]


def test_separation_is_shown_in_large_figures(shown: Markup) -> None:
    values = [float(a["data-value"] or "nan") for a in shown.of("span") if a.get("class") == "big"]
    one = VALIDATION.similarities[0]
    assert values == [one.cosine.mean, one.baseline.mean, one.separation.nearest, one.separation.auc]


def test_figure_4_shows_every_text_of_the_map_with_its_id(text: str) -> None:
    drawn = VALIDATION.similarities[0].map
    assert drawn is not None
    _, human, llm = next(d for c, d in drawings(text).items() if c.startswith("Figure 4"))["data"]
    assert human["text"] + llm["text"] == list(drawn.ids)
    assert human["x"] + llm["x"] == pytest.approx(drawn.x.tolist(), abs=1e-3)
    assert human["y"] + llm["y"] == pytest.approx(drawn.y.tolist(), abs=1e-3)
    assert (human["name"], llm["name"]) == ("human", "llm")


def test_map_is_left_out_where_there_is_none() -> None:
    assert "Figure 4." not in html(toy_validation(map=False))


def test_table_2_holds_every_number(shown: Markup) -> None:
    grid, rows = shown.grid("Table 2"), toy_effectiveness()
    assert grid.column("ranker") == [row.run for row in rows]
    assert [cell.lstrip("✓!? ") for cell in grid.column("outcome")] == [row.outcome for row in rows]
    for title, name in (
        ("human", "mean_a"), ("rewrite", "mean_b"), ("difference", "value"),
        ("p different", "p_corrected"), ("p equivalent", "p_equivalent"), ("smallest margin", "smallest"),
        ("queries", "queries"),
    ):  # fmt: skip
        assert grid.numbers(title) == pytest.approx([getattr(row, name) for row in rows], nan_ok=True), title
    assert grid.column("95 % interval")[0] == "[−0.003, +0.011]"
    assert grid.column("95 % interval")[-1] == "–"


def test_outcomes_have_a_sign_each(shown: Markup) -> None:
    assert [cell[0] for cell in shown.grid("Table 2").column("outcome")] == ["✓", "✓", "!", "?", "?"]


def test_forest_plot_draws_both_intervals_and_the_margin(text: str) -> None:
    drawing = next(d for c, d in drawings(text).items() if c.startswith("Difference in nDCG@10"))
    outer, inner = drawing["data"][:2]
    row = toy_effectiveness()[0]
    assert outer["x"] == [row.value]
    assert outer["error_x"]["array"][0] == pytest.approx(row.high - row.value)
    assert inner["error_x"]["array"][0] == pytest.approx(row.smallest - row.value)
    band = next(shape for shape in drawing["layout"]["shapes"] if shape["type"] == "rect")
    assert (band["x0"], band["x1"]) == (-0.02, 0.02)


def test_several_measures_have_a_column_and_a_plot_each() -> None:
    rows = (*toy_effectiveness(), *toy_effectiveness(measure="AP@5"))
    text = html(replace(VALIDATION, effectiveness=rows))
    assert Markup(text).grid("Table 2").column("measure") == ["nDCG@10"] * 5 + ["AP@5"] * 5
    assert [c for c in drawings(text) if c.startswith("Difference")] == [
        "Difference in nDCG@10, human − llm",
        "Difference in AP@5, human − llm",
    ]


def test_several_sources_have_a_section_of_meaning_each() -> None:
    text = html(MANY)
    assert '<h2 id="meaning-1-title">Meaning of llm-0.2</h2>' in text
    assert '<h2 id="meaning-2-title">Meaning of llm-0.6</h2>' in text
    assert Markup(text).grid("Table 2").column("ranker")[5] == "bm25, llm-0.6"


def test_check_has_a_row_each(shown: Markup) -> None:
    assert VALIDATION.check is not None
    grid, rows = shown.grid("Faults"), VALIDATION.check.rows
    assert grid.column("check") == [row.name for row in rows]
    assert grid.numbers("found") == [row.found for row in rows]
    assert [cell.lstrip("✓!? ") for cell in grid.column("verdict")] == [row.verdict for row in rows]
    assert "d7-llm" in grid.column("such as")[[row.name for row in rows].index("cut-off endings")]


def test_one_source_has_its_statistics_only() -> None:
    page = Markup(html(toy_validation(("human",))))
    assert [grid.caption for grid in page.grids] == ["Table 1. Documents by source", "Queries"]
    assert not [a for a in page.of("div") if "data-figure" in a]


def test_verdicts_are_those_of_the_terminal(shown: Markup) -> None:
    said = re.sub(r"\s+", " ", shown.text)
    for sentence in VALIDATION.sentences():
        assert sentence[1:] in said


@pytest.mark.parametrize(
    ("outcome", "tone"),
    [
        ("equivalent", "good"),
        ("different within the margin", "good"),
        ("different", "bad"),
        ("inconclusive", "unsure"),
        ("not tested", "unsure"),
    ],
)
def test_verdict_has_the_tone_of_its_outcome(outcome: str, tone: str) -> None:
    text = html(outcomes(outcome))
    assert re.findall(r'<li class="(\w*)">', text)[-1] == tone


def test_notes_and_spec_say_how_it_was_made(shown: Markup) -> None:
    assert "both sides are restricted to their 40 pairs" in shown.text
    assert "margin" in shown.text
    assert "KDD 2024" in shown.text


def test_page_is_named_after_the_folder() -> None:
    text = html(replace(VALIDATION, spec={**VALIDATION.spec, "path": "/data/sets/nfcorpus"}))
    assert "<title>Validation of nfcorpus</title>" in text
    assert "/data/sets/nfcorpus" in Markup(text).text


def test_names_are_hostile_and_do_nothing() -> None:
    name = "</script><script>alert(1)</script>{{7*7}}\u202e"
    text = html(toy_validation(("human", name)))
    assert [tag for tag, _ in Markup(text).elements if tag == "script"] == [
        tag for tag, _ in Markup(html(VALIDATION)).elements if tag == "script"
    ]
    assert "\u202e" not in text
    assert "{{7*7}}" in text


def test_nan_is_a_dash(shown: Markup) -> None:
    assert shown.grid("Table 2").column("p different")[-1] == "–"
    assert math.isnan(shown.grid("Table 2").numbers("p different")[-1])


def test_one_source_that_strays_is_enough() -> None:
    near = VALIDATION.similarities[0]
    far = replace(near, source="b", cosine=near.baseline)
    assert "do not all stay close in meaning" in headline(replace(VALIDATION, similarities=(near, far)))

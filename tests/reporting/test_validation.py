"""A validation as it is shown: the headline says what was found, and every number stands in the tables and figures."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktilt.measures.average_precision import AP
from ranktilt.probes.base import Distribution
from ranktilt.reporting.document import Figure, Section
from ranktilt.reporting.views.validate import headline, validation_sections
from tests.probes.validations import toy_effectiveness, toy_similarity, toy_validation
from tests.reporting.charts import by_name, domain, points
from tests.reporting.charts import rows as rows_of
from tests.reporting.markup import Markup
from tests.reporting.screen import html

VALIDATION = toy_validation()
MANY = toy_validation(("human", "llm-0.2", "llm-0.6"))
NEAR = toy_similarity()


@pytest.fixture(scope="module")
def shown() -> Markup:
    return Markup(html(VALIDATION))


def drawn(caption: str) -> dict[str, Any]:
    """The figure whose title begins so."""
    every = (figure for one in validation_sections(VALIDATION) for figure in figures(one))
    return next(figure.drawing for figure in every if figure.title.startswith(caption))


def section(name: str, **changes: object) -> Section:
    """One section of the toy validation with some parts changed."""
    found = validation_sections(replace(VALIDATION, **changes))  # type: ignore[arg-type]
    return next(one for one in found if one.name == name)


def figures(one: Section) -> list[Figure]:
    return [block for block in one.blocks if isinstance(block, Figure)]


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
        ({"similarities": STRAYING, "effectiveness": ()}, "do not all stay close in meaning."),
        (
            {"overlaps": (), "similarities": (), "effectiveness": ()},
            "No pair of llm and human could be compared.",
        ),
    ],
)
def test_headline(changes: dict[str, Any], said: str) -> None:
    assert headline(replace(VALIDATION, **changes)).endswith(said)


def test_headline_names_sources_where_there_are_several_or_none_and_a_void_comparison_first() -> None:
    assert "bm25 (llm-0.2) and bm25 (llm-0.6) are equivalent on both sides" in headline(MANY)
    assert headline(toy_validation(("human",))) == "One source, human, with 40 documents: no twins."

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


def test_figure_3_counts_every_pair() -> None:
    found = VALIDATION.overlaps[0].jaccard.defined
    bars = rows_of(drawn("Figure 3, left"), "bar")
    assert sum(bar["y"] for bar in bars) == pytest.approx(100, abs=1e-3)
    inside = [100 * np.mean((bar["x"] <= found) & (found < bar["end"])) for bar in bars]
    assert [bar["y"] for bar in bars] == pytest.approx(inside, abs=1e-3)


def test_figure_5_sets_twins_against_unrelated_pairs(shown: Markup) -> None:
    sides = by_name(drawn("Figure 5"), "bar")
    assert {name: round(sum(shares), 3) for name, shares in sides.items()} == {"twins": 100, "unrelated pairs": 100}
    one = VALIDATION.similarities[0]
    assert shown.grid("Cosine similarity").numbers("mean") == [one.cosine.mean, one.baseline.mean]
    one = replace(NEAR, cosine=spread(0.91, low=-1.0), baseline=spread(0.01, low=-1.0))
    low, high = domain(figures(section("meaning", similarities=(one,)))[0].drawing, "x")
    assert (low, high) == pytest.approx((0.0, 0.925))  # what there is


def test_figure_4_shows_every_text_of_the_map_with_its_id() -> None:
    places = VALIDATION.similarities[0].map
    assert places is not None
    marked = points(drawn("Figure 4"))
    assert [row["tip"] for row in marked] == list(places.ids)
    assert [row["x"] for row in marked] == pytest.approx(places.x.tolist(), abs=1e-3)
    assert [row["name"] for row in marked] == list(places.sources)
    assert "Figure 4." not in html(toy_validation(map=False))


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


def test_forest_plot_draws_both_intervals_and_the_margin() -> None:
    drawing = drawn("Difference in nDCG@10")
    first, row = points(drawing)[0], toy_effectiveness()[0]
    assert (first["x"], first["high"]) == (row.value, pytest.approx(row.high))
    assert first["to"] == pytest.approx(row.value + row.smallest - abs(row.value))
    assert rows_of(drawing, "rect") == [{"x": -0.02, "end": 0.02}]
    found = section("effectiveness", spec={**VALIDATION.spec, "alpha": 0.01})
    assert "thick: 98 % interval, which must lie in the shade" in figures(found)[0].says

"""The figures of an audit's page: what is drawn, said and tabled are the audit's numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ranktilt import Audit
from ranktilt.auditing.effects import Effect
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.audit import (
    MOST_PAIRS,
    card_figure,
    control_figure,
    drawn_pairs,
    effectiveness,
    effectiveness_figure,
    tilt_figure,
    tilt_mark,
)
from tests.reporting.audits import small, uneven
from tests.reporting.charts import points, rows
from tests.reporting.openings import colours, many, opened, unjudged
from tests.reporting.results import controlled as made

PAIR = ("human", "llm")


def drawn(figure: Figure) -> list[tuple[float, float, float]]:
    """Values and the ends of their intervals, from top to bottom."""
    return [(row["x"], row["low"], row["high"]) for row in points(figure.drawing)]


def tilt(audit: Audit, run: str, measure: str) -> Effect:
    return next(t for t in audit.tilts if (t.run, t.measure) == (run, measure))


def test_every_ranker_and_measure_is_drawn_in_the_order_of_the_audit() -> None:
    audit = opened().audit
    wanted = [(t.value, t.low, t.high) for t in audit.tilts]
    assert drawn(tilt_figure(audit, PAIR)) == [pytest.approx(one, rel=1e-5) for one in wanted]


def test_queries_that_all_say_the_same_do_not_make_every_tilt_detectable() -> None:
    audit = opened().audit
    same = tuple(replace(t, value=200.0, low=200.0, high=200.0, error=1e-15) for t in audit.tilts)
    figure = tilt_figure(replace(audit, tilts=same), PAIR)
    assert all(row["low"] == row["high"] for row in rows(figure.drawing, "rule", -1))
    assert not any("could" in line for line in tilt_mark(same[0], 5).hover)


def test_detectable_effect_is_that_of_each_row() -> None:
    audit = opened().audit
    spans = rows(tilt_figure(audit, PAIR).drawing, "rule", 1)
    assert [row["high"] for row in spans] == pytest.approx(
        [t.detectable for t in audit.tilts if t.detectable > 0], rel=1e-5
    )


def test_marks_say_what_the_verdict_says() -> None:
    marked = [(row["tone"], row["x"]) for row in points(tilt_figure(opened().audit, PAIR).drawing)]
    assert marked == [
        ("favours human", 200), ("level", 0), ("favours llm", -200), ("level", 0), ("inconclusive", 0), ("level", 0),
    ]  # fmt: skip


def test_many_rankers_are_drawn_on_the_primary_measure() -> None:
    audit = many().audit
    figure = tilt_figure(audit, PAIR)
    assert figure.title == "Relative Δ of nDCG@1, human against llm"
    assert len(drawn(figure)) == 30


def test_level_band_is_drawn_for_twins_only() -> None:
    assert rows(tilt_figure(opened().audit, PAIR).drawing, "rect")
    figure = tilt_figure(uneven(), ("a", "b"))
    assert rows(figure.drawing, "rect") == []
    random = [row["low"] for place in (0, 1) for row in rows(figure.drawing, "rule", place)]
    assert {t.band_low for t in uneven().tilts} <= set(random)
    assert "their median is level" in figure.says


def test_of_many_pairs_the_clearest_are_drawn_in_the_order_of_the_audit() -> None:
    audit = colours().audit
    chosen = drawn_pairs(audit)
    assert len(audit.tilted_pairs) == 21
    assert len(chosen) == MOST_PAIRS
    clear = {(t.a, t.b): abs(t.value - t.level) / t.error for t in audit.tilts}
    assert set(chosen) == set(sorted(clear, key=lambda pair: -clear[pair])[:MOST_PAIRS])
    assert list(chosen) == [pair for pair in audit.tilted_pairs if pair in chosen]


def test_without_judgments_the_twins_head_to_head_are_drawn() -> None:
    audit = unjudged().audit
    figure = card_figure(audit, PAIR)
    assert figure is not None
    found = [e for e in audit.estimates if e.estimand.key == "twins"]
    assert [value for value, _, _ in drawn(figure)] == pytest.approx([100 * e.value for e in found], rel=1e-5)


def test_without_twins_who_fills_the_page_is_drawn() -> None:
    audit = unjudged().audit
    pages = tuple(e for e in audit.estimates if e.estimand.key == "page")
    figure = card_figure(replace(audit, estimates=pages, spec={**audit.spec, "primary": "NDSR@20"}), PAIR)
    assert figure is not None
    assert figure.title.startswith("ΔNDSR@20")
    assert [value for value, _, _ in drawn(figure)] == pytest.approx([100 * e.value for e in pages], rel=1e-5)
    assert card_figure(replace(audit, estimates=()), PAIR) is None


def test_effectiveness_is_the_mean_of_all_documents() -> None:
    audit = small()
    found = effectiveness(audit)
    means = audit.by_group().filter(measure="nDCG@3", group="all")  # the primary measure
    assert [mean / 100 for mean, _ in found.values()] == pytest.approx(means["mean"].to_list())
    for mean, spread in found.values():
        assert spread.low <= mean <= spread.high


def test_a_ranker_without_a_relative_delta_is_said_not_to_be_drawn() -> None:
    audit = opened().audit
    nan = replace(audit.tilts[0], value=math.nan, low=math.nan, high=math.nan, error=math.nan, p_corrected=math.nan)
    gone = replace(audit, tilts=(nan, *audit.tilts[1:]))
    said = effectiveness_figure(gone, PAIR, effectiveness(gone)).says
    assert said.endswith(" Not drawn, because a value is undefined: people.")
    assert "Not drawn" not in effectiveness_figure(audit, PAIR, effectiveness(audit)).says


def test_queries_without_a_value_are_left_out() -> None:
    audit = small()
    values = audit.values.copy()
    values[0, 1, 0, 0] = np.nan
    found = effectiveness(replace(audit, values=values))
    assert found["first"][0] == pytest.approx(100 * np.nanmean(values[0, 1, 0]))
    assert found["second@5"] == effectiveness(audit)["second@5"]


def test_nothing_defined_is_undefined() -> None:
    audit = small()
    values = np.full_like(audit.values, np.nan)
    bare = replace(audit, values=values)
    figure = effectiveness_figure(bare, PAIR, effectiveness(bare))
    assert points(figure.drawing) == []


def test_tilt_stands_above_effectiveness() -> None:
    audit = small()
    figure = effectiveness_figure(audit, PAIR, effectiveness(audit))
    drawn = sorted((row["x"], row["y"]) for row in points(figure.drawing))
    means = audit.by_group().filter(measure="nDCG@3", group="all")["mean"].to_list()
    values = [tilt(audit, run, "nDCG@3").value for run in audit.runs]
    wanted = sorted(zip([100 * mean for mean in means], values, strict=True))
    assert drawn == [pytest.approx(one, rel=1e-5) for one in wanted]


def test_groups_without_twins_are_read_against_the_random_band() -> None:
    audit = uneven()
    pair = audit.pairs[0]
    said = tilt_figure(audit, pair).says
    assert "Right of the hatched band: a; left: b." in said
    assert "Right of 0" not in said
    beside = effectiveness_figure(audit, pair, effectiveness(audit)).says
    assert "above 0" not in beside
    assert "Level is what random labels give" in beside


def test_controls_are_drawn_below_the_raw_value() -> None:
    audit = made()
    figure = control_figure(audit, PAIR)
    wanted = [one.tilts[0].value for one in audit.controls if one.tilts]
    assert [value for value, _, _ in drawn(figure)] == wanted
    assert [row["row"].strip() for row in points(figure.drawing)] == ["raw", "length", "titles"]

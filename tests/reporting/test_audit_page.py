"""An audit as a page: its headline and verdicts, the figures' numbers, who stands at which rank, what is left out."""

import math
from dataclasses import replace
from typing import Any

import pytest

from ranktilt import Audit
from ranktilt.reporting.document import Explorer, Figure, Section, Sentence, Table
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views import view
from ranktilt.reporting.views.audit import audit_headline
from ranktilt.reporting.views.audit_sections import (
    MOST_PAIRS,
    audit_sections,
    card_figure,
    control_figure,
    drawn_pairs,
    effectiveness_figure,
    ranks_section,
    tilt_figure,
    tilt_mark,
)
from tests.reporting.audits import small, three, uneven
from tests.reporting.charts import by_name, points, rows
from tests.reporting.openings import alone, colours, many, opened, sources, ungrouped, unjudged
from tests.reporting.results import beside, controlled, temperatures

HUMAN, LLM, LEVEL, OPEN = ("favours", "human"), ("favours", "llm"), ("level", None), ("inconclusive", None)
PAIR = ("human", "llm")
WHY = "corpus.jsonl has changed since the audit."
FILLED, FOUND = "Documents of each group down to a rank, in %", "Relevant documents of each group found down to a rank"


def verdicts(audit: Audit) -> list[Sentence]:
    """The lines at the top of the page."""
    return view(audit).page_lines


def judged(*kinds: tuple[Any, str | None]) -> Audit:
    """An audit whose rankers a, b, c … have these verdicts."""
    names = tuple("abcdefghij"[: len(kinds)])
    plain = small()
    tilt = replace(plain.tilts[0], queries=50, votes=50)
    by_kind = {
        HUMAN: replace(tilt, value=50.0, low=40.0, high=60.0, p_corrected=0.01),
        LLM: replace(tilt, value=-50.0, low=-60.0, high=-40.0, p_corrected=0.01),
        LEVEL: replace(tilt, value=0.0, low=-1.0, high=1.0, p_corrected=1.0),
        OPEN: replace(tilt, value=0.0, low=-50.0, high=50.0, p_corrected=1.0),
    }
    tilts = tuple(replace(by_kind[kind], run=name) for name, kind in zip(names, kinds, strict=True))
    values = plain.values[:1].repeat(len(names), axis=0)[:, :1]
    spec = {**plain.spec, "primary": "nDCG@1"}
    return replace(plain, spec=spec, runs=names, tilts=tilts, values=values, measures=plain.measures[:1])


def drawn(figure: Figure) -> list[tuple[float, float, float]]:
    """Values and the ends of their intervals, from top to bottom."""
    return [(row["x"], row["low"], row["high"]) for row in points(figure.drawing)]


def figures(section: Section) -> list[Figure]:
    return [block for block in section.blocks if isinstance(block, Figure)]


def grid(section: Section, caption: str) -> list[list[str]]:
    """The table whose caption begins so: groups and texts, row by row."""
    tables = (block for block in section.blocks if isinstance(block, Table))
    found = next(table for table in tables if table.caption.startswith(caption))
    return [[*row.group, *(cell.text for cell in row)] for row in found.rows]


class TestVerdicts:
    @pytest.mark.parametrize(
        ("kinds", "expected"),
        [
            ([HUMAN, LLM], "a favours human text; b favours llm text"),
            ([OPEN, HUMAN, OPEN], "b favours human text; a and c are inconclusive"),
            ([LEVEL, LEVEL, HUMAN, LEVEL], "c favours human text; 3 of 4 rankers are level"),
            ([LLM, LLM, LLM], "all 3 rankers favour llm text"),
            ([OPEN, LEVEL, LLM, HUMAN], "d favours human text; c favours llm text; b is level; a is inconclusive"),
        ],
    )
    def test_headline_says_who_does_what(self, kinds: list[tuple[Any, str | None]], expected: str) -> None:
        assert audit_headline(judged(*kinds)) == f"{expected} (by nDCG@1)."

    def test_headline_of_several_pairs_and_many_rankers_counts_comparisons(self) -> None:
        plain = three()
        runs = tuple(f"run {n}" for n in range(5))
        tilts = tuple(
            replace(t, run=run, p_corrected=1.0 if run == "run 0" else 0.0) for run in runs for t in plain.tilts
        )
        audit = replace(plain, runs=runs, tilts=tilts, values=plain.values.repeat(5, axis=0))
        assert audit_headline(audit) == (
            "of 15 comparisons (5 rankers, 3 pairs of groups) 12 favour one side and 3 are inconclusive (by RR)."
        )

    def test_headline_without_judgments_names_the_question_and_without_groups_says_so(self) -> None:
        assert audit_headline(unjudged().audit) == (
            "people favours human text; machines favours llm text; nobody is inconclusive (by head-to-head)."
        )
        assert audit_headline(ungrouped().audit) == "3 rankers; no groups were compared."

    def test_tone_follows_the_pair_and_not_the_name(self) -> None:
        audit = judged(HUMAN, OPEN)
        verdict, _ = verdicts(replace(audit, tilts=tuple(t.swapped() for t in audit.tilts)))
        assert verdict.tone == "second"
        assert verdict.text.startswith("a favours human text")

    def test_every_view_gives_the_protected_side_and_the_other_one_tone_each(self) -> None:
        assert [line.tone for line in view(beside()).sentences if "favours male documents" in line.text] == ["second"]
        found = replace(beside(), protected="male", unprotected="female")
        assert view(found).sentences[0].text.startswith("stored favours female documents")
        assert view(found).sentences[0].tone == "second"
        study = next(block for block in view(temperatures()).tables if "each source" in block.caption)
        assert [row.cells[-1].tone for row in study.rows[:3]] == ["second", "unsure", "first"]

    def test_of_many_verdicts_those_that_favour_a_side_come_first(self) -> None:
        assert [line.tone for line in verdicts(judged(*[OPEN] * 6, HUMAN))] == ["first", *["unsure"] * 6]
        assert [line.tone for line in verdicts(judged(OPEN, HUMAN))] == ["unsure", "first"]


class TestFigures:
    def test_every_ranker_and_measure_is_drawn_with_its_verdict_in_the_order_of_the_audit(self) -> None:
        audit = opened().audit
        figure = tilt_figure(audit, PAIR)
        assert drawn(figure) == [pytest.approx((t.value, t.low, t.high), rel=1e-5) for t in audit.tilts]
        assert [(row["tone"], row["x"]) for row in points(figure.drawing)] == [
            ("favours human", 200), ("level", 0), ("favours llm", -200), ("level", 0), ("inconclusive", 0),
            ("level", 0),
        ]  # fmt: skip

    def test_what_could_have_been_detected_is_grey_but_not_where_all_queries_say_the_same(self) -> None:
        audit = opened().audit
        grey = [row["high"] for row in rows(tilt_figure(audit, PAIR).drawing, "rule", 1)]
        assert grey == pytest.approx([t.detectable for t in audit.tilts if t.detectable > 0], rel=1e-5)
        same = tuple(replace(t, value=200.0, low=200.0, high=200.0, error=1e-15) for t in audit.tilts)
        figure = tilt_figure(replace(audit, tilts=same), PAIR)
        assert all(row["low"] == row["high"] for row in rows(figure.drawing, "rule", -1))
        assert not any("could" in line for line in tilt_mark(same[0], 5).hover)

    def test_many_rankers_are_drawn_on_the_primary_measure(self) -> None:
        figure = tilt_figure(many().audit, PAIR)
        assert figure.title == "Relative Δ of nDCG@1, human against llm"
        assert len(drawn(figure)) == 30

    def test_groups_without_twins_are_read_against_the_random_band(self) -> None:
        assert rows(tilt_figure(opened().audit, PAIR).drawing, "rect")
        audit = uneven()
        figure = tilt_figure(audit, ("a", "b"))
        assert rows(figure.drawing, "rect") == []
        random = {row["low"] for place in (0, 1) for row in rows(figure.drawing, "rule", place)}
        assert {t.band_low for t in audit.tilts} <= random
        assert "Right of the hatched band: a; left: b." in figure.says
        assert "Level is what random labels give" in effectiveness_figure(audit, ("a", "b")).says

    def test_of_many_pairs_the_clearest_are_drawn_in_the_order_of_the_audit(self) -> None:
        audit = colours().audit
        chosen = drawn_pairs(audit)
        assert len(audit.tilted_pairs) == 21
        clear = {(t.a, t.b): abs(t.value - t.level) / t.error for t in audit.tilts}
        assert set(chosen) == set(sorted(clear, key=lambda pair: -clear[pair])[:MOST_PAIRS])
        assert list(chosen) == [pair for pair in audit.tilted_pairs if pair in chosen]

    @pytest.mark.parametrize(("key", "primary"), [("twins", None), ("page", "NDSR@20")])
    def test_without_judgments_the_primary_question_of_the_card_is_drawn(self, key: str, primary: str | None) -> None:
        audit = unjudged().audit
        asked = tuple(e for e in audit.estimates if e.estimand.key == key)
        if primary is not None:
            audit = replace(audit, estimates=asked, spec={**audit.spec, "primary": primary})
        figure = card_figure(audit, PAIR)
        assert figure is not None
        assert [value for value, _, _ in drawn(figure)] == pytest.approx([100 * e.value for e in asked], rel=1e-5)
        assert card_figure(replace(audit, estimates=()), PAIR) is None

    def test_tilt_stands_above_effectiveness_and_what_is_undefined_is_said_not_to_be_drawn(self) -> None:
        audit = small()
        figure = effectiveness_figure(audit, PAIR)
        means = audit.by_group().filter(measure="nDCG@3", group="all")["mean"].to_list()
        values = [t.value for t in audit.tilts if t.measure == "nDCG@3"]
        wanted = [pytest.approx((100 * mean, value), rel=1e-5) for mean, value in zip(means, values, strict=True)]
        assert [(row["x"], row["y"]) for row in points(figure.drawing)] == wanted
        assert "Not drawn" not in figure.says
        nan = replace(audit.tilts[0], value=math.nan, low=math.nan, high=math.nan, error=math.nan, p_corrected=math.nan)
        gone = replace(audit, tilts=(nan, *audit.tilts[1:]), spec={**audit.spec, "primary": "nDCG@1"})
        figure = effectiveness_figure(gone, PAIR)
        assert figure.says.endswith(" Not drawn, because a value is undefined: first.")
        assert len(points(figure.drawing)) == 1

    def test_controls_are_drawn_below_the_raw_value(self) -> None:
        audit = controlled()
        figure = control_figure(audit, PAIR)
        assert [value for value, _, _ in drawn(figure)] == [one.tilts[0].value for one in audit.controls if one.tilts]
        assert [row["row"].strip() for row in points(figure.drawing)] == ["raw", "length", "titles"]


class TestRanks:
    def test_tables_and_lines_count_what_stands_first_and_how_soon_it_is_found(self) -> None:
        section = ranks_section(opened())
        assert grid(section, FILLED) == [
            ["people", "human", "100.0"], ["people", "llm", "0.0"],
            ["machines", "human", "0.0"], ["machines", "llm", "100.0"],
            ["nobody", "human", "50.0"], ["nobody", "llm", "50.0"],
        ]  # fmt: skip
        assert grid(section, FOUND)[:2] == [["people", "human", "100.0"], ["people", "llm", "0.0"]]
        filled, sooner = (figure.drawing for figure in figures(section))
        assert by_name(filled) == {"people": [100, 50], "machines": [0, 50], "nobody": [50, 50]}
        assert rows(filled, "rule") == [{"y": 50}]  # the share of the collection
        assert by_name(sooner) == {"people": [100, 0], "machines": [-100, 0], "nobody": [0, 0]}
        assert rows(sooner, "rule") == [{"y": 0}]

    def test_without_judgments_only_who_fills_the_page_is_shown(self) -> None:
        section = ranks_section(unjudged())
        assert [block.kind for block in section.blocks] == ["figure", "table"]

    def test_each_of_several_groups_has_a_figure_of_its_own(self) -> None:
        human, gpt, llama, *sooner = figures(ranks_section(sources("human", "llama", "gpt")))
        assert [one.title.rpartition(" ")[2] for one in (human, gpt, llama)] == ["human", "gpt", "llama"]
        assert by_name(human.drawing)["run"] == pytest.approx([100, 50, 33.33], abs=0.01)
        assert [by_name(one.drawing)["run"] for one in sooner] == [[100, 100, 0], [100, 0, 0]]

    def test_more_groups_and_rankers_than_are_drawn_are_in_the_table(self) -> None:
        section = ranks_section(colours())
        assert len([one for one in figures(section) if one.title.startswith("Who fills")]) == 3
        assert len(grid(section, FILLED)) == 7
        section = ranks_section(many(12))
        assert len(by_name(figures(section)[0].drawing)) == 8
        assert "Drawn for the first 8 of 12 rankers; the tables hold all." in section.lead
        assert len(grid(section, FOUND)) == 24


class TestSections:
    def test_what_cannot_be_had_is_said(self) -> None:
        for notes in ((), (WHY,)):
            found = {section.name: section for section in audit_sections(alone(opened(), *notes))}
            for name in ("queries", "ranks"):
                assert found[name].blocks == ()
                why = notes or ("The audit was not opened together with its collection and runs.",)
                assert found[name].lead[1:] == why

    def test_the_explorer_is_carried_with_its_collection_and_left_out_on_request(self) -> None:
        (carried,), (left,) = (
            [section for section in audit_sections(opened(), **how) if section.name == "queries"]
            for how in ({}, {"budget": 0})
        )
        assert carried.lead[0].endswith("what the two texts look like side by side.")
        (block,) = carried.blocks
        assert isinstance(block, Explorer)
        assert block.texts
        assert left.blocks == ()
        assert left.lead == ("Queries, ranked lists and texts are left out, as was asked for.",)

    def test_controls_that_change_nothing_say_so(self) -> None:
        raw = tuple(one for one in controlled().controls if one.control == "raw")
        (section,) = (
            one for one in audit_sections(LoadedAudit(replace(controlled(), controls=raw))) if one.name == "controls"
        )
        assert section.lead[1:] == ("No control changes a verdict on the primary measure.",)

    def test_many_pairs_say_which_are_drawn(self) -> None:
        tilt, *_ = audit_sections(colours())
        assert len(tilt.blocks) == 4
        assert tilt.lead[1].startswith("Drawn for the 4 of 21 pairs of groups that tilt most clearly")

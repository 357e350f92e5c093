"""An audit as a page: headline, verdicts, the numbers of figures and tables, unrounded and in their
tone, and ranks.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktilt import Audit, audit, table
from ranktilt.measures.base import estimand
from ranktilt.reporting.document import Figure, Row, Section, Table
from ranktilt.reporting.headline import headline
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views import view
from ranktilt.reporting.views.audit import figures as audit_figures
from ranktilt.reporting.views.audit import sections as audit_sections
from ranktilt.reporting.views.audit.ranks import ranks_section
from ranktilt.reporting.views.audit.tables import (
    card_legend,
    card_table,
    control_sentences,
    control_table,
    group_table,
)
from tests.reporting.audits import small, three, twins, uneven
from tests.reporting.openings import colours, many, opened, sources, unjudged
from tests.reporting.readers import by_name, points, rows
from tests.reporting.results import beside, controlled, temperatures
from tests.toy import run_of

HUMAN, LLM, LEVEL, OPEN = (
    ("favours", "human"),
    ("favours", "llm"),
    ("level", None),
    ("inconclusive", None),
)
FILLED, FOUND = (
    "Documents of each group down to a rank, in %",
    "Relevant documents of each group found down to a rank",
)


def judged(*kinds: tuple[Any, str | None]) -> Audit:
    """An audit whose rankers a, b, c … have these verdicts."""
    names = tuple("abcdefghij"[: len(kinds)])
    plain = small()
    tilt = replace(plain.tilts[0], queries=50, effective_n=50)
    by_kind = {
        HUMAN: replace(tilt, value=50.0, low=40.0, high=60.0, p_corrected=0.01),
        LLM: replace(tilt, value=-50.0, low=-60.0, high=-40.0, p_corrected=0.01),
        LEVEL: replace(tilt, value=0.0, low=-1.0, high=1.0, p_corrected=1.0),
        OPEN: replace(tilt, value=0.0, low=-50.0, high=50.0, p_corrected=1.0),
    }
    tilts = tuple(replace(by_kind[kind], run=name) for name, kind in zip(names, kinds, strict=True))
    values = plain.values[:1].repeat(len(names), axis=0)[:, :1]
    spec = {**plain.spec, "primary": "nDCG@1"}
    return replace(
        plain, spec=spec, runs=names, tilts=tilts, values=values, measures=plain.measures[:1]
    )


def drawn(figure: Figure) -> list[tuple[float, float, float]]:
    """Values and the ends of their intervals, from top to bottom."""
    return [(row["x"], row["low"], row["high"]) for row in points(figure.drawing)]


def figures(section: Section) -> list[Figure]:
    return [block for block in section.blocks_for("page") if isinstance(block, Figure)]


def grid(section: Section, caption: str) -> list[list[str]]:
    """The table whose caption begins so: groups and texts, row by row."""
    tables = (block for block in section.blocks if isinstance(block, Table))
    matching_table = next(table for table in tables if table.caption.startswith(caption))
    return [[*row.group, *(cell.text for cell in row)] for row in matching_table.rows]


class TestVerdicts:
    @pytest.mark.parametrize(
        ("kinds", "expected"),
        [
            ([HUMAN, LLM], "a favours human text; b favours llm text"),
            ([OPEN, HUMAN, OPEN], "b favours human text; a and c are inconclusive"),
            ([LEVEL, LEVEL, HUMAN, LEVEL], "c favours human text; 3 of 4 rankers are level"),
            ([LLM, LLM, LLM], "all 3 rankers favour llm text"),
            (
                [OPEN, LEVEL, LLM, HUMAN],
                "c favours llm text; d favours human text; a is inconclusive; b is level",
            ),
        ],
    )
    def test_headline_says_who_does_what(
        self, kinds: list[tuple[Any, str | None]], expected: str
    ) -> None:
        assert headline(judged(*kinds)) == f"{expected} (by nDCG@1)."

    def test_headline_of_several_pairs_and_many_rankers_counts_comparisons(self) -> None:
        plain = three()
        runs = tuple(f"run {n}" for n in range(5))
        chance = {run: float(run == "run 0") for run in runs}
        tilts = tuple(
            replace(t, run=run, p_corrected=chance[run]) for run in runs for t in plain.tilts
        )
        audit = replace(plain, runs=runs, tilts=tilts, values=plain.values.repeat(5, axis=0))
        assert headline(audit) == (
            "15 comparisons (5 rankers, 3 pairs of groups): 12 favour one side and 3 are "
            "inconclusive (by RR)."
        )

    def test_tone_follows_pair_and_verdicts_with_side_come_first(self) -> None:
        audit = judged(HUMAN, OPEN)
        verdict, _ = view(replace(audit, tilts=tuple(t.swapped() for t in audit.tilts))).page_lines
        assert verdict.tone == "second"
        assert verdict.text.startswith("a favours human text")
        reversed_audit = replace(beside(), protected="male", unprotected="female")
        assert view(reversed_audit).sentences[0].text.startswith("stored favours female documents")
        assert view(reversed_audit).sentences[0].tone == "second"
        table = next(
            block for block in view(temperatures()).tables if "each source" in block.caption
        )
        assert [row.cells[-1].tone for row in table.rows[:3]] == ["second", "unsure", "first"]
        many, few = (
            view(judged(*kinds)).page_lines for kinds in ([*[OPEN] * 6, HUMAN], [OPEN, HUMAN])
        )
        assert [line.tone for line in many] == ["first", *["unsure"] * 6]
        assert [line.tone for line in few] == ["first", "unsure"]


class TestFigures:
    def test_ranker_measures_are_drawn_with_verdicts_in_audit_order(
        self,
    ) -> None:
        audit = opened().audit
        figure = audit_figures.tilt_figure(audit, PAIR)
        assert drawn(figure) == [
            pytest.approx((t.value, t.low, t.high), rel=1e-5) for t in audit.tilts
        ]
        assert [(row["tone"], row["x"]) for row in points(figure.drawing)] == [
            ("favours human", 200),
            ("level", 0),
            ("favours llm", -200),
            ("level", 0),
            ("inconclusive", 0),
            ("level", 0),
        ]
        # Of many rankers the primary measure alone is drawn.
        crowded = audit_figures.tilt_figure(many().audit, PAIR)
        assert (crowded.title, len(drawn(crowded))) == (
            "Relative Δ of nDCG@1, human against llm",
            30,
        )

    def test_detectable_tilt_is_grey_unless_all_queries_agree(
        self,
    ) -> None:
        audit = opened().audit
        grey = [
            row["high"] for row in rows(audit_figures.tilt_figure(audit, PAIR).drawing, "rule", 1)
        ]
        assert grey == pytest.approx(
            [t.detectable for t in audit.tilts if t.detectable > 0 and not t.favours], rel=1e-5
        )
        same = tuple(
            replace(t, value=200.0, low=200.0, high=200.0, error=1e-15) for t in audit.tilts
        )
        figure = audit_figures.tilt_figure(replace(audit, tilts=same), PAIR)
        assert all(row["low"] == row["high"] for row in rows(figure.drawing, "rule", -1))
        assert not any("could" in line for line in audit_figures.tilt_mark(same[0], 5).hover)

    def test_groups_without_twins_are_read_against_the_random_band(self) -> None:
        assert rows(audit_figures.tilt_figure(opened().audit, PAIR).drawing, "rect")
        audit = uneven()
        figure = audit_figures.tilt_figure(audit, ("a", "b"))
        assert rows(figure.drawing, "rect") == []
        bars = [row for layer in (0, 1) for row in rows(figure.drawing, "rule", layer)]
        random = {row["low"] for row in bars if "low" in row}
        assert {t.null_low for t in audit.tilts} <= random

    def test_clearest_of_many_pairs_are_drawn_in_audit_order(self) -> None:
        audit = colours().audit
        chosen = audit_figures.drawn_pairs(audit)
        assert len(audit.tilted_pairs) == 21
        clear = {(t.a, t.b): abs(t.value - t.neutral) / t.error for t in audit.tilts}
        clearest = sorted(clear, key=lambda pair: -clear[pair])[: audit_figures.MOST_PAIRS]
        assert set(chosen) == set(clearest)
        assert list(chosen) == [pair for pair in audit.tilted_pairs if pair in chosen]

    @pytest.mark.parametrize(("key", "primary"), [("twins", None), ("page", "NDSR@20")])
    def test_without_judgments_the_primary_question_of_the_card_is_drawn(
        self, key: str, primary: str | None
    ) -> None:
        audit = unjudged().audit
        effects = tuple(e for e in audit.card if e.estimand.key == key)
        if primary is not None:
            audit = replace(audit, card=effects, spec={**audit.spec, "primary": primary})
        figure = audit_figures.card_figure(audit, PAIR, effects)
        assert [value for value, _, _ in drawn(figure)] == pytest.approx(
            [100 * e.value for e in effects], rel=1e-5
        )
        unasked = LoadedAudit(replace(audit, card=()))
        assert "tilt" not in [section.name for section in view(unasked).shown_sections("page")]

    def test_answers_of_the_card_are_drawn_in_their_unit_and_by_their_verdict(self) -> None:
        audit = unjudged().audit
        effect = next(e for e in audit.card if e.estimand.key == "twins")
        level = replace(effect, value=0.01, low=-0.001, high=0.019, p=0.2, p_corrected=0.2)
        assert level.verdict(audit.margin) == "level"
        mark = audit_figures._answer_mark(level, audit.margin)
        assert (mark.value, mark.tone) == (pytest.approx(1.0), "good")
        gap = replace(effect, estimand=estimand("RankGap"), value=2.5, low=1.0, high=4.0)
        assert audit_figures._answer_mark(gap, audit.margin).value == 2.5

    def test_tilt_is_above_effectiveness_and_undefined_is_said(
        self,
    ) -> None:
        audit = small()
        figure = audit_figures.effectiveness_figure(audit, PAIR)
        means = audit.by_group().filter(measure="nDCG@3", group="all")["mean"].to_list()
        values = [t.value for t in audit.tilts if t.measure == "nDCG@3"]
        expected = [
            pytest.approx((100 * mean, value), rel=1e-5)
            for mean, value in zip(means, values, strict=True)
        ]
        assert [(row["x"], row["y"]) for row in points(figure.drawing)] == expected
        assert "Not drawn" not in figure.description
        nan = replace(
            audit.tilts[0],
            value=math.nan,
            low=math.nan,
            high=math.nan,
            error=math.nan,
            p_corrected=math.nan,
        )
        gone = replace(
            audit, tilts=(nan, *audit.tilts[1:]), spec={**audit.spec, "primary": "nDCG@1"}
        )
        figure = audit_figures.effectiveness_figure(gone, PAIR)
        assert figure.description.endswith(" Not drawn because a value is undefined: first.")
        assert len(points(figure.drawing)) == 1

    def test_controls_are_drawn_below_the_raw_value(self) -> None:
        audit = controlled()
        figure = audit_figures.control_figure(audit, PAIR)
        assert [value for value, _, _ in drawn(figure)] == [
            control.tilts[0].value for control in audit.controls if control.tilts
        ]
        assert [row["row"].strip() for row in points(figure.drawing)] == ["raw", "length", "titles"]


class TestRanks:
    def test_tables_and_lines_count_firsts_and_first_ranks(self) -> None:
        section = ranks_section(opened())
        assert grid(section, FILLED) == [
            ["people", "human", "100.0"],
            ["people", "llm", "0.0"],
            ["machines", "human", "0.0"],
            ["machines", "llm", "100.0"],
            ["nobody", "human", "50.0"],
            ["nobody", "llm", "50.0"],
        ]
        assert grid(section, FOUND)[:2] == [["people", "human", "100.0"], ["people", "llm", "0.0"]]
        filled, sooner = (figure.drawing for figure in figures(section))
        assert by_name(filled) == {"people": [100, 50], "machines": [0, 50], "nobody": [50, 50]}
        assert rows(filled, "rule") == [{"y": 50}]  # the share of the collection
        assert by_name(sooner) == {"people": [100, 0], "machines": [-100, 0], "nobody": [0, 0]}
        assert rows(sooner, "rule") == [{"y": 0}]

    def test_groups_have_figures_and_those_left_are_in_table(
        self,
    ) -> None:
        human, gpt, llama, *sooner = figures(ranks_section(sources("human", "llama", "gpt")))
        assert [figure.title.rpartition(" ")[2] for figure in (human, gpt, llama)] == [
            "human",
            "gpt",
            "llama",
        ]
        assert by_name(human.drawing)["run"] == pytest.approx([100, 50, 33.33], abs=0.01)
        assert [by_name(figure.drawing)["run"] for figure in sooner] == [[100, 100, 0], [100, 0, 0]]
        section = ranks_section(colours())
        assert (
            len([figure for figure in figures(section) if figure.title.startswith("Who fills")])
            == 3
        )
        assert len(grid(section, FILLED)) == 7
        section = ranks_section(many(12))
        assert len(by_name(figures(section)[0].drawing)) == 8
        assert "The figures show the first 8 of 12 rankers, the tables all." in section.lead
        assert len(grid(section, FOUND)) == 24


PAIR = ("human", "llm")


def front(row: Row) -> str:
    return row.cells[0].text


def of_run(table: Table, run: str) -> list[Row]:
    return [row for row in table.rows if row.group == (run,)]


class TestTable:
    def test_numbers_are_kept_unrounded(self) -> None:
        audit = small()
        means = {
            (r["run"], r["measure"], r["group"]): r["mean"] for r in audit.by_group().to_dicts()
        }
        for run in audit.runs:
            everything, human, llm, delta = of_run(group_table(audit), run)
            for column, measure in enumerate(map(repr, audit.measures), start=1):
                for row, group in ((everything, "all"), (human, "human"), (llm, "llm")):
                    assert row.cells[column].value == means[run, measure, group]
                (tilt,) = (t for t in audit.tilts if (t.run, t.measure) == (run, measure))
                assert delta.cells[column].value == tilt.value
            share = delta.cells[-1]
            assert (share.value, share.text) == (
                audit.tied_share(run, *PAIR),
                f"{100 * (share.value or 0):.1f} %",
            )


@pytest.mark.parametrize(
    ("name", "value", "printed"),
    [
        ("RelativeDelta(nDCG@3)", 12.34, "+12.3 %"),
        ("NDSR@20", -0.0504, "−5.0 points"),
        ("NDSR@20", 0.00001, "0.0 points"),
        ("HeadToHead(pairs=relevant)", -0.25, "−25.0 %"),
        ("RankGap", -3.25, "−3.2 ranks"),
        ("ScoreGap", 10.5, "+10.500 sd"),
        ("ExposureRatio", 0.98, ".980"),
        ("ScoreGap", np.nan, "–"),
    ],
)
def test_an_answer_has_its_sign_and_unit(name: str, value: float, printed: str) -> None:
    assert estimand(name).answer(value) == printed
    assert estimand(name).amount(value) == printed.split()[0]


def test_a_card_of_a_run_without_scores_says_so() -> None:
    collection = twins(40)
    scores = {f"q{n}": {f"{n}-human": 1.0, f"{n}-llm": 2.0} for n in range(40)}
    result = audit(
        collection,
        run_of(collection, scores, ranker="hand", score_order="rank"),
        "nDCG@1",
        card=True,
    )
    assert card_table(result).rows[-1].cells[-1].text == "no pair with two scores"
    assert "without the score gap, which only describes" in card_legend(result)[0]


class TestControls:
    def test_numbers_are_exact_and_stars_follow_the_corrected_table(
        self,
    ) -> None:
        cells_by_control = {front(row): row.cells for row in control_table(controlled()).rows}
        length = next(control for control in controlled().controls if control.control == "length")
        assert [cell.value for cell in cells_by_control["length"][1:3]] == [
            t.value for t in length.tilts
        ]
        move = (cells_by_control["length"][3].value, cells_by_control["length"][3].text)
        assert move == (length.moves[0].value, "−200.0 [−200.0, −200.0]")
        assert [cell.text for cell in cells_by_control["tokens"][1:]] == [
            "",
            "",
            "",
            "no token limit",
        ]
        cells_by_control = controlled()
        weak = tuple(
            replace(c, tilts=tuple(replace(t, p_corrected=0.06) for t in c.tilts))
            for c in cells_by_control.controls
        )
        cells = [
            [row.cells[1] for row in control_table(control_audit).rows]
            for control_audit in (cells_by_control, replace(cells_by_control, controls=weak))
        ]
        assert [[cell.text for cell in cells_of_column] for cells_of_column in cells] == [
            ["+200.0*", "0.0", "", "+200.0*"],
            ["+200.0", "0.0", "", "+200.0"],
        ]
        assert [[cell.tone for cell in cells_of_column] for cells_of_column in cells] == [
            ["first", "", "", "first"],
            [""] * 4,
        ]

    def test_verdict_changed_by_control_is_said_and_none_too(self) -> None:
        control_audit = controlled()
        unsure = tuple(
            replace(c, moves=tuple(m._replace(high=1.0) for m in c.moves))
            for c in control_audit.controls
        )
        same = tuple(
            replace(c, tilts=control_audit.controls[0].tilts) if c.tilts else c
            for c in control_audit.controls
        )
        assert (
            "% " + control_sentences(control_audit)[0] in table(control_audit, "latex").splitlines()
        )
        assert control_sentences(replace(control_audit, controls=unsure)) == []
        assert control_sentences(replace(control_audit, controls=same)) == []
        raw = tuple(control for control in control_audit.controls if control.control == "raw")
        sections = {
            section.name: section
            for section in view(replace(control_audit, controls=raw)).shown_sections("page")
        }
        assert sections["controls"].lead[1:] == (
            "No control changes a verdict on the primary measure.",
        )


def test_printing_draws_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    drawings = list[str]()
    for name in ("tilt_figure", "effectiveness_figure"):
        monkeypatch.setattr(
            audit_sections, name, lambda audit, pair, name=name: drawings.append(name)
        )
    document = view(small())
    document.blocks("text")
    assert drawings == []
    document.blocks("page")
    document.blocks("page")  # which are not drawn again
    assert drawings == ["tilt_figure", "effectiveness_figure"]

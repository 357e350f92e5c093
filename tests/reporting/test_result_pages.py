"""What studies, benches, explanations and checks show: every number, and how it was made.

Their sentences and sections are kept in ``printed/``.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ranktilt as rt
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.explaining.base import Distribution
from ranktilt.explaining.explanation import Explanation
from ranktilt.measures.base import estimand
from ranktilt.mitigation.bench_result import Bench
from ranktilt.reporting.document import Code, Figure, Lines, NamedValues, Section, Sentence, Table
from ranktilt.reporting.output import table
from ranktilt.reporting.provenance import folder, provenance
from ranktilt.reporting.sentences.checking.check import equivalence_words
from ranktilt.reporting.views import view
from ranktilt.reporting.views.check.sections import check_sections
from ranktilt.reporting.views.experiments.bench import pareto
from ranktilt.training.study_result import BASELINE
from tests.explaining.checks import toy_check, toy_effectiveness, toy_similarity
from tests.mitigation.planted import (
    HUMAN,
    bench_of,
    collection,
    mixture,
    planted,
    ranked,
    studied,
)
from tests.reporting.audits import (
    ENDS,
    HALF,
    TEMPERATURES,
    VALUES,
    explained,
    temperatures,
    timeless_source_audits,
    toy_audit,
    toy_source_audits,
)
from tests.reporting.readers import Markup, by_name, domain, html, points, rows
from tests.reporting.results import result

NAN = float("nan")
SOURCES = toy_source_audits()


def figures(result: object) -> dict[str, list[Figure]]:
    return {
        section.name: [block for block in section.blocks_for("page") if isinstance(block, Figure)]
        for section in view(result).shown_sections("page")
    }


class TestSourceAudits:
    @staticmethod
    def measured(*names: str) -> SourceAudits:
        audits = []
        for audited in SOURCES.audits:
            tilts = [
                replace(tilt, estimand=estimand(f"RelativeDelta({name})"))
                for tilt in audited.tilts
                for name in names
            ]
            audits.append(toy_audit(tilts, primary=names[0]))
        return replace(SOURCES, audits=tuple(audits), trends=())

    def test_headline_counts_sides_by_ranker_and_ambiguous_sources(
        self,
    ) -> None:
        assert view(SOURCES).headline == (
            "dense:minilm favours the rewrites at all 3 temperatures; "
            "bm25 favours human text at 2 of 3 temperatures and is inconclusive at 1."
        )
        sources = tuple(
            replace(source, series=f"model {n}") for n, source in enumerate(SOURCES.sources)
        )
        page = view(replace(SOURCES, sources=sources, trends=()))
        assert "; bm25 favours human text on 2 of 3 sources and" in page.headline

    def test_models_of_one_source_each_stand_together_under_each_measure(self) -> None:
        sources = tuple(
            replace(source, series=f"model {n}", temperature=NAN)
            for n, source in enumerate(SOURCES.sources)
        )
        audits = replace(self.measured("nDCG@3", "AP@5"), sources=sources)
        (table,) = (table for table in view(audits).tables if table.caption.startswith("human"))
        groups = [row.group for row in table.rows]
        assert groups[:6] == [("bm25", "nDCG@3")] * 3 + [("bm25", "AP@5")] * 3
        assert [column.title for column in table.columns][:2] == ["source", "human"]

    def test_the_figure_has_a_line_a_ranker_with_intervals(self) -> None:
        (figure,) = figures(SOURCES)["tilt"]
        assert by_name(figure.drawing) == {name: list(values) for name, values in VALUES.items()}
        for row in points(figure.drawing):
            assert row["high"] - row["y"] == pytest.approx(HALF[row["name"]])
        assert figure.drawing["layer"][-1]["encoding"]["x"]["axis"]["values"] == list(TEMPERATURES)

    def test_measures_have_figures_but_not_single_points(
        self,
    ) -> None:
        assert "tilt" not in figures(timeless_source_audits())
        grid = Markup(html(timeless_source_audits())).grid("human against")
        assert "temperature" not in grid.titles
        assert np.isnan(grid.numbers("Relative Δ")[0])
        assert len(figures(self.measured("nDCG@3", "AP@5"))["tilt"]) == 2
        many = self.measured(*(f"nDCG@{k}" for k in range(1, 9)))
        assert len(figures(many)["tilt"]) == 1
        (every,) = (
            table for table in view(many).tables if table.caption.startswith("human against")
        )
        assert len(every.rows) == 8 * 6


class TestBench:
    def test_the_pareto_front_is_what_no_other_point_beats(self) -> None:
        cases: list[tuple[list[tuple[float, float]], list[int]]] = [
            ([(1, 1)], [0]),
            ([(3, 9), (2, 5), (1, 7), (0, 0)], [0, 1, 3]),
            ([(1, 2), (2, 1)], [1]),
            ([], []),
            ([(2, 1), (2, 1), (2, 0)], [2]),
            ([(1, 1), (1, 1)], [0]),
            ([(NAN, 0), (5, NAN), (1, 3)], [2]),
        ]
        for curve, front in cases:
            assert pareto(curve) == front, curve

    def test_strengths_stand_in_equal_steps(self) -> None:
        tilt, *_, cost = figures(result("bench"))["strength-1"]
        for drawing in (tilt.drawing, cost.drawing):
            axis = drawing["layer"][-1]["encoding"]["x"]["axis"]
            assert axis["values"] == [0, 1, 2, 3]
            assert all(
                f"datum.value === {n} ? {name!r}" in axis["labelExpr"]
                for n, name in ((0, "0"), (3, "0.1"))
            )
        assert by_name(tilt.drawing) == {"llm": [-200, -100, 0, 200]}
        everything, alone = (
            by_name(cost.drawing)["all documents"],
            by_name(cost.drawing)["human documents alone"],
        )
        assert everything[:2] == alone[:2] == [0, 0]
        assert alone[3] < everything[3] < -10

    def test_front_is_drawn_and_undefined_candidates_too(
        self,
    ) -> None:
        (plane,) = figures(result("bench"))["plane"]
        assert [row["y"] for row in rows(plane.drawing, "line")] == [-100, 0]
        assert {row["tone"] for row in points(plane.drawing)} == {
            "toward human",
            "toward llm",
            "level",
        }
        bench: Bench = result("bench")
        nothing = replace(
            bench, tilts=tuple(replace(t, value=NAN, low=NAN, high=NAN) for t in bench.tilts)
        )
        assert figures(nothing)["plane"][0].description.startswith("Pareto front: none; ")
        assert "Relative Δ is undefined" in table(nothing)

    def test_every_method_has_its_rows_and_one_of_several_strengths_figures(self) -> None:
        swapped = planted(0.5, (0, 60, 0), method="swap", name="swap(0.5)")
        trials = [planted(0, (60, 0, 0)), planted(1, (0, 0, 0)), planted(2, (0, 0, 0)), swapped]
        small_bench = bench_of(collection(), trials, ["nDCG@1"])
        assert [section.name for section in view(small_bench).shown_sections("page")] == [
            "choice",
            "plane",
            "strength-1",
            "made",
        ]
        assert "| swap | swap(0.5) | +200.0" in table(small_bench, "markdown")

    def test_groups_that_are_no_twins_have_no_band_around_zero(self) -> None:
        bench: Bench = result("bench")
        band = {"null_low": -250.0, "null_high": -150.0, "null_median": -200.0}
        uneven = replace(bench, tilts=tuple(replace(t, twins=False, **band) for t in bench.tilts))
        tilt, plane = figures(uneven)["strength-1"][0], figures(uneven)["plane"][0]
        assert tilt.description.endswith(
            "Groups are not twins, so the neutral value is the median of random labels, not 0."
        )
        assert rows(tilt.drawing, "rect") == rows(plane.drawing, "rect") == []
        assert plane.description.startswith("Pareto front: α = 0; ")  # whose tilt is that median


class TestExplanation:
    def test_what_differs_most_comes_first(self) -> None:
        explanation: Explanation = explained(*ENDS)
        every = [effect for result in explanation.results for effect in result.effects]
        most = max(
            (effect for effect in every if effect.is_shown), key=lambda effect: abs(effect.g)
        )
        side = "higher" if most.g > 0 else "lower"
        document = view(explanation)
        assert document.headline.startswith(
            f"Largest difference from human: {most.quantity}, {side} in {most.source}, by "
            f"{abs(most.g):.2f} sd ["
        )
        assert table(explanation).splitlines()[0] == document.headline
        effects, *_ = document.tables
        order = list(dict.fromkeys(row.cells[1].text for row in effects.rows))
        sizes = {
            quantity: max(abs(e.g) for e in every if e.quantity == quantity) for quantity in order
        }
        assert order == sorted(order, key=lambda quantity: -sizes[quantity])
        assert [row.cells[0].text for row in effects.rows] == [*explanation.sources] * 3
        assert [row.cells[2].value for row in effects.rows[:3]] == [
            e.g for e in every if e.quantity == order[0]
        ]

    def test_without_a_difference_that_is_said(self) -> None:
        collection = temperatures("human", "llama-t0.2")
        human = collection.docs["text"].to_list()[:12]
        same = rt.Collection(
            collection.docs.with_columns(text=np.array(human * 2)),
            collection.queries,
            collection.qrels,
        )
        lines = table(rt.explain(same, ["words", "type-token"])).splitlines()
        assert lines[0] == "No difference from human is shown in 2 properties."
        assert "llama-t0.2: 12 twins are identical to the one in human" in lines


class TestTrainingStudy:
    def test_curve_has_a_point_per_size_and_interval_of_seeds(
        self,
    ) -> None:
        (curve,) = figures(result("training study"))["curve"]
        line = "mini, 10 human"
        assert [(row["name"], row["x"]) for row in points(curve.drawing)] == [
            (line, 20),
            (line, 40),
        ]
        assert by_name(curve.drawing)[line] == pytest.approx([50.0, 63.093], rel=1e-4)
        assert "over queries (bootstrap)" in curve.description
        few = result("training study").rankers[2]
        again = replace(few, seed=1)
        study = studied(
            (few, again), sets=[ranked({few.run: 1, again.run: 2}, "curve", "augmented")]
        )
        (figure,) = (
            figure
            for figures_of_section in figures(study).values()
            for figure in figures_of_section
        )
        assert "over seeds (Student's t)" in figure.description
        (spread,) = (
            block
            for block in view(study).blocks("page")
            if isinstance(block, Table) and block.audience == "page"
        )
        assert spread.caption == "What other seeds give, in %"

    def test_each_seed_has_a_tilt_of_its_own(self) -> None:
        again = replace(HUMAN, seed=1)
        study = studied(
            (HUMAN, again),
            sets=[ranked({BASELINE: 10, HUMAN.run: 1, again.run: 2})],
            mixed=mixture({BASELINE: "llm", HUMAN.run: "human", again.run: "llm"}),
        )
        (tilts,) = (table for table in view(study).tables if table.caption.startswith("Relative Δ"))
        cells_by_row = {row.cells[0].text: row.cells[1].text for row in tilts.rows}
        assert {
            name: text[:5] for name, text in cells_by_row.items() if name.startswith("mini")
        } == {
            "mini trained on human, seed 0": "+45.3",
            "mini trained on human, seed 1": "−45.3",
        }


CHECK = toy_check()
NEAR = toy_similarity()


@pytest.fixture(scope="module")
def check_page() -> Markup:
    return Markup(html(CHECK))


def drawn(caption: str) -> dict[str, Any]:
    every = (figure for section in check_sections(CHECK) for figure in drawn_in(section))
    return next(figure.drawing for figure in every if figure.title.startswith(caption))


def section(name: str, **changes: object) -> Section:
    sections = check_sections(replace(CHECK, **changes))  # type: ignore[arg-type]
    return next(section for section in sections if section.name == name)


def drawn_in(section: Section) -> list[Figure]:
    return [block for block in section.blocks_for("page") if isinstance(block, Figure)]


def spread(*values: float, low: float = 0.0) -> Distribution:
    return Distribution(name="toy", values=np.array(values), range=(low, 1.0))


def renamed(names: list[str], **changes: Any) -> dict[str, Any]:
    return {
        "effectiveness": tuple(
            replace(toy_effectiveness()[0], run=name, **changes) for name in names
        )
    }


def test_requested_parts_have_sections_and_figures_show_all() -> None:
    parts = {"words": "terms", "meaning": "similarity", "effectiveness": "effectiveness"}
    for name, part in parts.items():
        without = replace(CHECK, **{part: ()})  # type: ignore[arg-type]
        names = [section.name for section in check_sections(without)]
        others = [name_of_part for name_of_part in parts if name_of_part != name]
        assert names == ["faults", "contents", "features", *others, "faults-as-text"]
    distribution = CHECK.terms[0].jaccard.defined
    bars = rows(drawn("Figure 3, left"), "bar")
    assert sum(bar["y"] for bar in bars) == pytest.approx(100, abs=1e-3)
    inside = [
        100 * np.mean((bar["x"] <= distribution) & (distribution < bar["end"])) for bar in bars
    ]
    assert [bar["y"] for bar in bars] == pytest.approx(inside, abs=1e-3)
    positions = CHECK.similarity[0].map
    assert positions is not None
    marked = points(drawn("Figure 4"))
    assert [row["tip"] for row in marked] == list(positions.ids)
    assert [row["x"] for row in marked] == pytest.approx(positions.x.tolist(), abs=1e-3)
    assert [row["name"] for row in marked] == list(positions.sources)
    assert "Figure 4." not in html(toy_check(map=False))


def test_figure_5_sets_twins_against_unrelated_pairs(check_page: Markup) -> None:
    sides = by_name(drawn("Figure 5"), "bar")
    assert {name: round(sum(shares), 3) for name, shares in sides.items()} == {
        "twins": 100,
        "unrelated pairs": 100,
    }
    similarity = CHECK.similarity[0]
    assert check_page.grid("Cosine similarity").numbers("mean") == [
        similarity.twins.mean,
        similarity.other_pairs.mean,
    ]
    similarity = replace(NEAR, twins=spread(0.91, low=-1.0), other_pairs=spread(0.01, low=-1.0))
    low, high = domain(drawn_in(section("meaning", similarity=(similarity,)))[0].drawing, "x")
    assert (low, high) == pytest.approx((0.0, 0.925))  # what there is


def test_outcomes_have_their_signs(check_page: Markup) -> None:
    signs = ["✓", "✓", "!", "○", "○"]
    outcomes = [
        f"{sign} {equivalence_words(row)}"
        for sign, row in zip(signs, toy_effectiveness(), strict=True)
    ]
    assert check_page.grid("Effectiveness on each").column("outcome") == outcomes


def test_forest_plot_draws_both_intervals_and_the_margin() -> None:
    drawing = drawn("Difference in nDCG@10")
    first, row = points(drawing)[0], toy_effectiveness()[0]
    assert (first["x"], first["high"]) == pytest.approx((100 * row.value, 100 * row.high))
    assert first["to"] == pytest.approx(100 * (row.value + row.smallest - abs(row.value)))
    assert rows(drawing, "rect") == [{"x": -2.0, "end": 2.0}]
    section_of_effects = section("effectiveness", spec={**CHECK.spec, "alpha": 0.01})
    assert (
        "thick: 98 % interval, which must lie in the shade"
        in drawn_in(section_of_effects)[0].description
    )


def test_making_is_written_plainly_and_command_and_notes_apart() -> None:
    spec = {
        "path": "toy",
        "rankers": ["bm25", "tfidf"],
        "margin": 5.0,
        "seed": 0,
        "map": True,
        "split": None,
        "score_order": "score",
        "versions": {"ranktilt": "0.1.0", "polars": "1.36", "torch": None},
    }
    expected = (
        ("collection", "toy"),
        ("rankers", "bm25, tfidf"),
        ("margin", "5"),
        ("seed", "0"),
        ("map", "yes"),
        ("score order", "score"),
        ("versions", "ranktilt 0.1.0, polars 1.36"),
    )
    section = provenance(spec)
    assert (section.lead, section.blocks) == ((), (NamedValues(pairs=expected),))
    command = "ranktilt check x"
    inputs = [{"path": "a", "sha256": "1"}, {"path": "b", "sha256": "2"}]
    section = provenance({"command": command, "seed": 1, "inputs": inputs}, ["two were left out"])
    *front, table = section.blocks
    assert "same numbers" in section.lead[0]
    notes = Lines(lines=(Sentence("two were left out"),), audience="page")
    assert front == [
        notes,
        Code(label="The command that made it", text=command),
        NamedValues(pairs=(("seed", "1"),)),
    ]
    assert isinstance(table, Table)
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "1"], ["b", "2"]]


def test_result_is_named_after_last_part_of_its_folder() -> None:
    specs: list[tuple[dict[str, object], str]] = [
        ({"path": "/data/nfcorpus"}, "nfcorpus"),
        ({"collection": {"path": "sets/scifact/"}}, "scifact"),
        ({"collection": {"labels": "runs/gender.tsv"}}, "gender.tsv"),
        ({"path": None, "collection": "toy"}, ""),
        ({"collection": {"path": "beds/scifact", "labels": "runs/gender.tsv"}}, "scifact"),
    ]
    assert [folder(spec) for spec, _ in specs] == [name for _, name in specs]

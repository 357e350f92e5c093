"""Figures of papers and notebooks: which results have which, their files and tables, and what is
read in them.
"""

import csv
import io
import re
import sys
from pathlib import Path

import pytest

from ranktilt import MissingExtra, UserError
from ranktilt.explaining.explanation import Explanation
from ranktilt.mitigation.bench_result import Bench
from ranktilt.papers.dai.temperature import temperature_figures
from ranktilt.reporting.layouts.figures import for_paper, paper_figures
from ranktilt.reporting.layouts.results import cells_of, tables_of
from ranktilt.reporting.layouts.tables import paper_tables
from ranktilt.reporting.reload import LoadedAudit
from tests.explaining.checks import toy_check
from tests.mitigation.planted import bench_of, collection, planted, swept
from tests.refusals import refused
from tests.reporting.audits import ENDS, explained, toy_source_audits
from tests.reporting.openings import opened
from tests.reporting.readers import by_name
from tests.reporting.results import result, temperatures

pytest.importorskip("vl_convert")
PAIR = ("human", "llm")
FORMATS = (("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG"))


@pytest.fixture(scope="module")
def four() -> Explanation:
    return explained(*ENDS)


@pytest.fixture(scope="module")
def explanation_of_two() -> Explanation:
    return explained("human", "llama-t0.2")


def texts(svg: bytes) -> list[str]:
    return re.findall(r"<text[^>]*>(.*?)</text>", svg.decode())


def rows(explanation: Explanation, layout: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(paper_tables([explanation], layout, "csv"))))


def test_audit_has_figures_of_its_page_and_duplicates_are_numbered() -> None:
    drawn = paper_figures([opened()])
    assert list(drawn) == [
        "relative-delta-human-against-llm.svg",
        "ndcg-1-over-all-documents-and-how-far-it-tilts-between-human-and-llm.svg",
        "who-fills-the-first-ranks-human.svg",
        "whose-right-answers-are-found-sooner-human-minus-llm.svg",
    ]
    first = drawn["relative-delta-human-against-llm.svg"]
    assert {"people", "favours human"} <= set(texts(first))
    assert b"var(--" not in first
    names = paper_figures([opened(), LoadedAudit(result("audit"))])
    assert {name.split("-")[0] for name in names} == {"1", "2"}


def test_letters_have_print_size_and_colours_are_the_pages() -> None:
    (svg,) = (drawn.decode() for drawn in paper_figures([toy_source_audits()]).values())
    assert {float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)} <= {7.0, 8.0}
    assert "#b8578f" in svg  # --d of the light theme
    assert '"width": 240' in for_paper({"width": "container", "height": 300, "layer": []})


@pytest.mark.parametrize(("format", "front"), FORMATS)
def test_each_format(format: str, front: bytes, tmp_path: Path) -> None:
    assert all(
        svg.startswith(front)
        for svg in paper_figures([toy_source_audits()], format=format).values()
    )
    file = result("pairwise").plot().save(tmp_path / f"looks.{format.upper()}")
    assert file.read_bytes().startswith(front)


def test_a_check_of_several_sources_has_figure_14() -> None:
    many = toy_check(("human", "llm-0.2", "llm-0.6"))
    names = list(paper_figures([many]))
    assert names[-1] == "dai-figure-14.svg"
    assert sum(name.startswith("figure-4-") for name in names) == 2
    assert "dai-figure-14.svg" not in paper_figures([toy_check()])
    drawn = paper_figures([many], layout="dai-fig14")
    assert list(drawn) == ["dai-figure-14.svg"]
    assert {"llm-0.2", "llm-0.6"} <= set(texts(drawn["dai-figure-14.svg"]))


class TestTemperatureFigure:
    """Figure 6 of Dai et al."""

    def test_both_sides_and_relative_delta_at_each_temperature(self) -> None:
        audits = temperatures(("nDCG@1", "RR"))
        (figure,) = temperature_figures(audits)
        assert by_name(figure.drawing) == {
            "human": [25.0, 50.0, 75.0],
            "rewrites": [75.0, 50.0, 25.0],
        }
        ticks = figure.drawing["layer"][-1]["encoding"]["x"]["axis"]["labelExpr"]
        assert "0.2 (Δ −100.0 %)" in ticks
        drawn = paper_figures([audits], layout="dai-fig6")
        assert list(drawn) == ["dai-figure-6.svg"]

    def test_it_needs_the_measures_and_two_temperatures(self) -> None:
        assert list(temperature_figures(toy_source_audits())) == []
        single_source = temperatures(("nDCG@1",), sources=["llm-tmp0.2"])
        assert list(temperature_figures(single_source)) == []
        message = "dai-fig6 shows rewrites at several temperatures (an audit of several sources)"
        with refused(f"{message}; the results given hold none: …"):
            paper_figures([single_source], layout="dai-fig6")

    def test_the_table_has_the_same_numbers(self) -> None:
        text = paper_tables([temperatures(("nDCG@1", "RR"))], "dai-fig6", "csv")
        rows = [line.split(",") for line in text.splitlines()[1:]]
        assert {row[-3] for row in rows} == {"nDCG@1"}
        assert [row[-2] for row in rows if "relative_delta" in row] == ["-100.0", "0.0", "100.0"]


def test_what_cannot_be_drawn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("nothing to draw: no result was given"):
        paper_figures([])
    with refused("unknown format of a figure 'gif' (valid: svg, pdf, png)"):
        paper_figures([toy_source_audits()], format="gif")
    with pytest.raises(
        UserError, match=r"dai-fig10 shows candidates of rising strength .* makes one"
    ):
        paper_figures([toy_source_audits()], layout="dai-fig10")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtra, match=r"ranktilt\[plots\]"):
        paper_figures([toy_source_audits()])


class TestNotebook:
    def test_a_figure_shows_itself_in_vega_and_in_words(self) -> None:
        figure = result("audit, controls").plot("tilt")
        bundle = figure._repr_mimebundle_()
        assert bundle["application/vnd.vegalite.v5+json"]["width"] == 520
        assert "var(--" not in str(bundle)
        assert bundle["text/plain"] == repr(figure)
        assert "Right of 0: human; left: llm." in repr(figure)

    def test_first_figure_needs_no_name_and_others_are_guessed(self) -> None:
        assert repr(result("sources").plot()) == repr(result("sources").plot("tilt-1"))
        for name, figure, message in (
            (
                "sources",
                "tilts",
                r"unknown figure .*; did you mean 'tilt-\d'\? \(valid: tilt-1, tilt-2",
            ),
            (
                "audit",
                "effectivenes",
                r"unknown figure .*; did you mean 'effectiveness'\? \(valid: tilt, eff",
            ),
            ("gate", "", "nothing to draw: Gate has no figures"),
        ):
            with pytest.raises(UserError, match=message):
                result(name).plot(figure)
        with pytest.raises(UserError, match="unknown format of a figure 'gif'"):
            result("pairwise").plot().save("looks.gif")
        assert (
            result("check, every part, three sources")
            .plot("dai-fig14")
            .figure.title.startswith("Cosine similarity")
        )


class TestBench:
    """Figures 10 and 11 of Dai et al."""

    def test_cells_are_those_of_the_bench_a_row_a_strength(self) -> None:
        bench: Bench = result("bench")
        assert tables_of(bench) == ["dai-fig10", "dai-fig11"]
        ten = {(cell.condition, cell.measure): cell for cell in cells_of(bench, "dai-fig10")}
        assert {cell.generator for cell in ten.values()} == {"llm"}
        eleven = {
            (cell.condition, cell.measure): cell.value for cell in cells_of(bench, "dai-fig11")
        }
        assert len(ten) == len(eleven) == 4 * 3
        for candidate in bench.candidates:
            for measure in bench.measures:
                position = (f"{candidate.strength:g}", measure)
                assert ten[position].value == bench.tilt(candidate.name, PAIR, measure).value
                assert eleven[position] == 100 * bench.mean(candidate.name, "human", measure).value
        text = paper_tables([bench], "paper", "markdown")
        assert "| 0.001 | −100.0 | −33.3 | −22.6 |" in text
        assert "| 0.1 | 60.0 | 80.0 | 85.2 |" in text
        assert "$\\alpha$ & NDCG@1" in paper_tables([bench], "dai-fig10", "latex")

    def test_each_measure_has_a_figure_and_each_source_a_line(self) -> None:
        sources = ("one", "two")
        trials = [
            planted(0, (60, 0, 0), sources=sources),
            planted(1, (0, 0, 0), sources=sources),
            planted(2, (0, 0, 0), sources=sources),
            planted(1, (0, 60, 0), sources=sources, method="swap", name="swap"),
        ]
        bench = bench_of(collection(sources), trials, ["nDCG@1"])
        text = paper_tables([bench], "dai-fig10", "markdown")
        assert len(re.findall(r"^\| 0 \| −200\.0 ", text, re.MULTILINE)) == 4
        drawn = paper_figures([bench], layout="dai-fig10")
        assert list(drawn) == [
            "dai-figure-10.svg",
            "dai-figure-10-2.svg",
        ]  # of α alone: swap has one strength
        assert {"one", "two", "Relative Δ nDCG@10, %", "0", "1"} <= set(
            texts(drawn["dai-figure-10-2.svg"])
        )

    def test_without_runs_of_human_documents_alone_there_is_no_figure_11(self) -> None:
        message = (
            "dai-fig11 shows candidates of rising strength, ranked on human documents alone "
            "too (a bench)"
        )
        command = "ranktilt train retriever DIR --debias 0 --debias paper -o FOLDER"
        with refused(f"{message}; the results given hold none: {command} makes one"):
            paper_figures([swept(alone=False)], layout="dai-fig11")
        assert (
            next(iter(paper_figures([result("bench")], layout="dai-fig11"))) == "dai-figure-11.svg"
        )


class TestExplanation:
    """Figures 7 to 9 of Dai et al."""

    def test_each_temperature_has_row_curve_and_box_in_order(self, four: Explanation) -> None:
        order = ["llama-t0.2", "llama-t0.7", "llama-t1.0"]
        assert list(four.sources) == order
        for part in four.results[:2]:
            assert [row["source"] for row in part.rows] == ["human", *order]
            assert list(part.figures[0].series) == ["human", *order]
        curves = four.results[2].figures[0].series
        assert list(curves) == order
        printed_rows = rows(four, "dai-fig8")
        positions = [(source, str(n)) for source in order for n in range(1, 12)]
        assert [(row["target"], row["condition"]) for row in printed_rows] == positions
        assert [row["value"] for row in printed_rows[:11]] == [
            f"{value:.3f}" for value in curves["llama-t0.2"]
        ]
        assert list(dict.fromkeys(row["target"] for row in rows(four, "dai-fig9"))) == [
            "human",
            *order,
        ]

    def test_print_shows_some_places_of_a_curve_and_csv_all(
        self, explanation_of_two: Explanation
    ) -> None:
        lines = paper_tables([explanation_of_two], "dai-fig7", "markdown").splitlines()
        assert [line.split(" | ")[0] for line in lines[6:12]] == [
            "| 1",
            "| 2",
            "| 5",
            "| 10",
            "| 11",
            "",
        ]
        assert [row["condition"] for row in rows(explanation_of_two, "dai-fig7")] == [
            str(n) for n in range(1, 12)
        ]
        human = explanation_of_two.results[1].rows[0]
        names = ("mean", "25 %", "median", "75 %")
        expected = [
            ("documents", f"{human['values']}"),
            *((name, f"{human[name]:.2f}") for name in names),
        ]
        assert [
            (row["measure"], row["value"]) for row in rows(explanation_of_two, "dai-fig9")[:5]
        ] == expected
        assert [row["table"] for row in rows(explanation_of_two, "paper")] == ["dai-fig7"] * 11 + [
            "dai-fig9"
        ] * 10

    def test_a_layout_draws_its_figure_alone(
        self, explanation_of_two: Explanation, four: Explanation
    ) -> None:
        for explanation, name in (
            (explanation_of_two, "dai-figure-7.svg"),
            (four, "dai-figure-8.svg"),
        ):
            assert list(paper_figures([explanation]))[-2:] == ["dai-figure-9.svg", name]
        assert list(paper_figures([toy_source_audits(), four], layout="dai-fig7")) == [
            "dai-figure-7.svg"
        ]
        for name in ("dai-fig8", "dai-fig9"):
            ((file, drawn),) = paper_figures([four], layout=name).items()
            assert file == f"{name.replace('fig', 'figure-')}.svg"
            indexes = [texts(drawn).index(source) for source in four.sources]
            assert indexes == sorted(indexes)
            assert ("human" in texts(drawn)) == (name == "dai-fig9")

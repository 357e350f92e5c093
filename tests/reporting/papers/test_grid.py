"""Rows, columns and panels of a table, before any format."""

import pytest

from ranktilt.errors import UserError
from ranktilt.reporting.papers.cells import Cell
from ranktilt.reporting.papers.derived import printed
from ranktilt.reporting.papers.grid import Grid, lay_out
from ranktilt.reporting.papers.layouts import LAYOUTS

DAI = LAYOUTS["dai-3"]
DATASETS, SYSTEMS, MEASURES = ("nq", "sci"), ("BM25", "ANCE"), ("AP@1", "nDCG@1")


def mixed(**fixed: str) -> list[Cell]:
    """Two rankers, collections and measures; human 30, LLM 10 everywhere: Relative Δ is 100."""
    keys = {"generator": "llama", "temperature": "0.2", "collection": "mixed", **fixed}
    return [
        Cell(table="dai-3", dataset=d, system=s, measure=m, target=t, value=v, **keys)
        for d in DATASETS
        for m in MEASURES
        for s in SYSTEMS
        for t, v in (("llm", 10.0), ("human", 30.0))
    ]


def laid(cells: list[Cell], name: str = "dai-3") -> Grid:
    """Print and lay out."""
    return lay_out(printed(cells, LAYOUTS[name]), LAYOUTS[name])


class TestRowsAndColumns:
    def test_rows_are_rankers_and_sides_and_columns_collections_and_measures(self) -> None:
        (panel,) = laid(mixed()).panels
        assert [row.labels for row in panel.rows] == [
            ("BM25", "Human-Written"), ("", "LLM-Generated"), ("", "Relative Δ"),
            ("ANCE", "Human-Written"), ("", "LLM-Generated"), ("", "Relative Δ"),
        ]  # fmt: skip
        assert panel.header == (
            (("nq", 2), ("sci", 2)),
            (("NDCG@1", 1), ("MAP@1", 1), ("NDCG@1", 1), ("MAP@1", 1)),
        )
        assert panel.rows[0].texts == ("30.0",) * 4
        assert panel.rows[2].texts == ("100.0",) * 4

    def test_measures_of_the_paper_stand_in_its_order_and_others_follow(self) -> None:
        cells = [Cell(table="askari-2", system="s", measure=m, value=0.5) for m in ("P@5", "RR@10", "AP@1000")]
        (panel,) = laid(cells, "askari-2").panels
        assert panel.header[-1] == (("MAP@1000", 1), ("MRR@10", 1), ("P@5", 1))

    def test_each_text_has_its_cell(self) -> None:
        (panel,) = laid(mixed()).panels
        for row in panel.rows:
            assert [cell.text for cell in row.cells if cell] == list(row.texts)
        first = panel.rows[3].cells[2]
        assert first is not None
        assert (first.system, first.dataset, first.measure) == ("ANCE", "sci", "nDCG@1")

    def test_a_level_with_one_value_moves_into_the_caption(self) -> None:
        grid = laid([cell for cell in mixed() if cell.dataset == "sci"])
        assert grid.panels[0].header == ((("NDCG@1", 1), ("MAP@1", 1)),)
        assert grid.caption == f"{DAI.title}. sci, LLM text by llama, temperature 0.2."

    def test_several_collections_are_not_in_the_caption(self) -> None:
        assert laid(mixed()).caption == f"{DAI.title}. LLM text by llama, temperature 0.2."

    def test_groups_that_are_not_human_and_llm_have_another_caption(self) -> None:
        cells = [Cell(table="dai-3", system="s", measure="P@5", target=t, value=10.0) for t in ("female", "male")]
        grid = laid(cells)
        assert grid.caption == f"{DAI.title_of_groups}."
        assert [row.labels[1] for row in grid.panels[0].rows] == ["female", "male", "Relative Δ"]

    def test_titles_of_the_label_columns(self) -> None:
        assert laid(mixed()).stub == ("Model", "Target corpus")


class TestPanels:
    def test_what_stands_nowhere_and_varies_makes_panels(self) -> None:
        grid = laid([*mixed(temperature="0.2"), *mixed(temperature="1.0")])
        assert [panel.title for panel in grid.panels] == ["temperature 0.2", "temperature 1.0"]
        assert grid.panels[0].rows[0].labels == grid.panels[1].rows[0].labels == ("BM25", "Human-Written")
        assert grid.caption.endswith("LLM text by llama.")

    def test_panels_of_a_preset_need_several_values(self) -> None:
        def cells(*datasets: str) -> list[Cell]:
            return [
                Cell(table="wang-1", dataset=d, system="s", condition=c, measure="P@20", value=0.5)
                for d, conditions in zip(datasets, (("neutral", "male"), ("neutral", "european")), strict=False)
                for c in conditions
            ]

        one, two = laid(cells("a"), "wang-1"), laid(cells("a", "b"), "wang-1")
        assert [panel.title for panel in one.panels] == [""]
        assert [panel.title for panel in two.panels] == ["a", "b"]

    def test_a_panel_has_only_the_columns_that_it_holds(self) -> None:
        cells = [
            Cell(table="wang-1", dataset=d, system="s", condition=c, measure="P@20", value=0.5)
            for d, c in (("a", "neutral"), ("a", "male"), ("b", "neutral"))
        ]
        grid = laid(cells, "wang-1")
        assert grid.panels[0].header[0] == (("Neutral", 1), ("Male", 1))
        assert grid.panels[1].header[0] == (("Neutral", 1),)
        assert grid.width == 2


class TestNotes:
    def test_a_note_names_its_cell(self) -> None:
        cells = mixed()
        cells[1] = Cell(**{**vars(cells[1]), "note": "read off a figure"})
        assert laid(cells).notes == ("BM25, Human-Written, nq, MAP@1: read off a figure.",)

    def test_what_no_result_holds_is_a_dash(self) -> None:
        grid = laid([c for c in mixed() if (c.system, c.dataset) != ("ANCE", "sci")])
        assert grid.panels[0].rows[3].texts == ("30.0", "30.0", "–", "–")
        assert grid.panels[0].rows[3].cells[2] is None
        assert grid.notes == ("–: not in these results.",)

    def test_what_is_undefined_is_a_dash_of_its_own(self) -> None:
        cells = [Cell(table="askari-2", system="s", measure="AP@1000", value=float("nan"))]
        assert laid(cells, "askari-2").notes == ("–: undefined.",)

    def test_what_the_paper_has_besides_is_a_remark_to_the_maker(self) -> None:
        grid = laid(mixed())
        assert grid.remarks == ("The paper's table also has NDCG@3, NDCG@5, MAP@3, MAP@5, not in these results.",)

    def test_a_whole_table_has_no_remark(self) -> None:
        cells = [Cell(table="askari-2", system="s", measure=m, value=0.5) for m in ("AP@1000", "nDCG@10", "RR@10")]
        assert laid(cells, "askari-2").remarks == ()


def test_two_results_with_one_cell_are_refused_by_its_name() -> None:
    cells = [*mixed(), mixed()[3]]
    with pytest.raises(UserError) as caught:
        lay_out(cells, DAI)
    assert str(caught.value) == (
        "dai-3: two results hold the same cell (dataset nq, llm llama, temperature 0.2, collection mixed, model ANCE, "
        "target corpus human, metric AP@1); leave one of them out, or give their folders different names"
    )

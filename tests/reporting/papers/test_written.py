"""Markdown and CSV of a table: what is in them is what is printed."""

import csv
import io
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from ranktilt.reporting.papers.cells import Cell, read_cells
from ranktilt.reporting.papers.derived import printed
from ranktilt.reporting.papers.grid import Grid, Panel, Row, lay_out
from ranktilt.reporting.papers.layouts import LAYOUTS
from ranktilt.reporting.papers.written import cells_csv, markdown_table, prose_csv


def grid(name: str = "dai-3", system: str = "BM25", note: str = "") -> Grid:
    """One ranker on two collections; Relative Δ of 12.5 and 20 is −46.2."""
    cells = [
        Cell(table=name, dataset=d, system=system, target=t, measure="nDCG@1", value=v, note=note)
        for d in ("a", "b")
        for t, v in (("human", 12.5), ("llm", 20.0))
    ]
    return lay_out(printed(cells, LAYOUTS[name]), LAYOUTS[name], made=["Made by: ranktilt audit a"])


def tables(text: str) -> list[list[list[str]]]:
    """Tables of a Markdown text as a reader sees them."""
    found: list[list[list[str]]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and found and token.level >= 4:
            found[-1][-1].append("".join(child.content for child in token.children or ()))
    return found


class TestMarkdown:
    def test_the_whole_text(self) -> None:
        lines = markdown_table(grid()).splitlines()
        assert lines[0] == f"**{LAYOUTS['dai-3'].title}.**"
        assert lines[2] == "*Layout: Table 3 of Dai et al., KDD 2024.*"
        assert lines[4:9] == [
            "| Model | Target corpus | a, NDCG@1 | b, NDCG@1 |",
            "| --- | --- | ---: | ---: |",
            "| BM25 | Human-Written | 12.5 | 12.5 |",
            "|  | LLM-Generated | 20.0 | 20.0 |",
            "|  | Relative Δ | −46.2 | −46.2 |",
        ]
        assert lines[-1] == "- Made by: ranktilt audit a"

    def test_headers_of_all_levels_are_one(self) -> None:
        assert tables(markdown_table(grid()))[0][0] == ["Model", "Target corpus", "a, NDCG@1", "b, NDCG@1"]

    @pytest.mark.parametrize("name", ["a | b", "[x](y)", "**bold**", "<b>", "two\nlines", "`c`", "---"])
    def test_a_hostile_name_is_one_cell(self, name: str) -> None:
        found = tables(markdown_table(grid(system=name)))
        assert [len(row) for row in found[0]] == [4] * 4
        assert found[0][1][0] == " ".join(name.split())

    def test_notes_are_a_list(self) -> None:
        text = markdown_table(grid(note="50 % *guessed*"))
        assert r"- BM25, Human-Written, a, NDCG@1: 50 % \*guessed\*." in text

    def test_each_panel_has_its_title_and_its_table(self) -> None:
        cells = [
            Cell(table="wang-1", dataset=d, system="s", condition=c, measure="P@20", value=0.5)
            for d, c in (("a", "neutral"), ("b", "male"))
        ]
        text = markdown_table(lay_out(printed(cells, LAYOUTS["wang-1"]), LAYOUTS["wang-1"]))
        assert [table[0] for table in tables(text)] == [["Model", "Neutral, P@20"], ["Model", "Male, P@20"]]
        assert "*a*\n" in text
        assert "*b*\n" in text


class TestCsv:
    def test_cells_stand_in_the_order_of_the_print_as_printed(self) -> None:
        assert cells_csv([grid()]).splitlines() == [
            "table,dataset,system,target,measure,value,note",
            "dai-3,a,BM25,human,nDCG@1,12.5,",
            "dai-3,b,BM25,human,nDCG@1,12.5,",
            "dai-3,a,BM25,llm,nDCG@1,20.0,",
            "dai-3,b,BM25,llm,nDCG@1,20.0,",
            "dai-3,a,BM25,relative_delta,nDCG@1,-46.2,",
            "dai-3,b,BM25,relative_delta,nDCG@1,-46.2,",
        ]

    def test_several_tables_share_one_header(self) -> None:
        rows = list(csv.DictReader(io.StringIO(cells_csv([grid(), grid("dai-4")]))))
        assert [row["table"] for row in rows] == ["dai-3"] * 6 + ["dai-4"] * 6

    def test_it_is_read_back_as_it_was(self, tmp_path: Path) -> None:
        file = tmp_path / "cells.csv"
        before = cells_csv([grid(system='a "quoted", name', note="n")])
        file.write_text(before, encoding="utf-8")
        cells = read_cells(file).cells
        again = lay_out(printed(cells, LAYOUTS["dai-3"]), LAYOUTS["dai-3"])
        assert cells_csv([again]) == before

    def test_an_undefined_value_is_nan(self) -> None:
        cells = [Cell(table="askari-2", system="s", measure="AP@1000", value=float("nan"))]
        text = cells_csv([lay_out(printed(cells, LAYOUTS["askari-2"]), LAYOUTS["askari-2"])])
        assert text.splitlines()[1] == "askari-2,,s,AP@1000,nan,"

    def test_texts_are_a_line_a_pair(self) -> None:
        header = ((("Human-Written", 1), ("LLM-Generated", 1)),)
        panels = (
            Panel("Query: one", header, (Row((), ("a, b", "c")),)),
            Panel("Query: two", header, (Row((), ("d", "e")),)),
        )
        found = list(csv.reader(io.StringIO(prose_csv([Grid("dai-10", "p", "c", (), panels, prose=True)]))))
        assert found == [
            ["table", "pair", "Human-Written", "LLM-Generated"],
            ["dai-10", "Query: one", "a, b", "c"],
            ["dai-10", "Query: two", "d", "e"],
        ]

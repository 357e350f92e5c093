"""LaTeX of a table: its structure, its numbers, and names that would break it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.reporting.papers.cells import Cell
from ranktilt.reporting.papers.derived import printed
from ranktilt.reporting.papers.grid import Grid, Panel, Row, lay_out
from ranktilt.reporting.papers.latex import latex
from ranktilt.reporting.papers.layouts import LAYOUTS
from ranktilt.reporting.papers.plain import clean
from tests.reporting.papers.tex_reader import read

HOSTILE = (
    r"\end{table}\input{/etc/passwd}", "a & b \\\\ \\hline", "% comment", "[2pt]", "*", "{{{", "}}}", "$x$", "#1",
    "two\nlines", "^^M", "\u202ereversed", "--", "~", "|", "`", "",
)  # fmt: skip


def made(system: str = "BM25", dataset: str = "d", generator: str = "llama", note: str = "", origin: str = "x") -> Grid:
    """One ranker on two collections and two measures."""
    cells = [
        Cell(
            table="dai-3", dataset=name, system=system, generator=generator, target=target, measure=measure,
            value=value, note=note if (name, target, measure) == (dataset, "human", "nDCG@1") else "",
        )
        for name in dict.fromkeys((dataset, "other"))
        for measure in ("nDCG@1", "AP@1")
        for target, value in (("human", 12.5), ("llm", 20.0))
    ]  # fmt: skip
    layout = LAYOUTS["dai-3"]
    return lay_out(printed(cells, layout), layout, made=[origin])


class TestStructure:
    def test_a_whole_table_line_by_line(self) -> None:
        cells = [
            Cell(table="dai-3", dataset=d, system="BM25", target=t, measure="nDCG@1", value=v)
            for d in ("a", "b")
            for t, v in (("human", 12.5), ("llm", 20.0))
        ]
        layout = LAYOUTS["dai-3"]
        grid = lay_out(printed(cells, layout), layout, made=["Made by: ranktilt audit a --json a.json"])
        # 100·(12.5 − 20)/16.25 = −46.15
        assert latex(grid).splitlines()[1:] == [
            "% Made by: ranktilt audit a --json a.json",
            "% The paper's table also has NDCG@3, NDCG@5, MAP@1, MAP@3, MAP@5, not in these results.",
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{layout.title.replace('Δ', '$' + chr(92) + 'Delta$')}.}}",
            r"\label{tab:dai-3}",
            r"\begin{tabular}{llrr}",
            r"\toprule",
            r" &  & \multicolumn{1}{c}{a} & \multicolumn{1}{c}{b} \\",
            r"\cmidrule(lr){3-3} \cmidrule(lr){4-4}",
            r"Model & Target corpus & NDCG@1 & NDCG@1 \\",
            r"\midrule",
            r"BM25 & Human-Written & 12.5 & 12.5 \\",
            r" & LLM-Generated & 20.0 & 20.0 \\",
            r" & Relative $\Delta$ & $-$46.2 & $-$46.2 \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]

    def test_the_comments_name_layout_package_and_command(self) -> None:
        (table,) = read(latex(made(origin="Made by: ranktilt audit DIR -r 'bm25@100>>x' --json a.json")))
        assert table.comments == [
            r"Layout: Table 3 of Dai et al., KDD 2024. Needs \usepackage{booktabs}.",
            "Made by: ranktilt audit DIR -r 'bm25@100>>x' --json a.json",
            "The paper's table also has NDCG@3, NDCG@5, MAP@3, MAP@5, not in these results.",
        ]

    def test_caption_label_and_columns(self) -> None:
        (table,) = read(latex(made()))
        assert table.caption == f"{LAYOUTS['dai-3'].title}. LLM text by llama."
        assert (table.label, table.columns) == ("tab:dai-3", 6)

    def test_headers_of_two_levels_span_their_columns(self) -> None:
        (table,) = read(latex(made()))
        assert table.header == [
            [("", 1), ("", 1), ("d", 2), ("other", 2)],
            [(t, 1) for t in ("Model", "Target corpus", "NDCG@1", "MAP@1", "NDCG@1", "MAP@1")],
        ]
        assert r"\cmidrule(lr){3-4} \cmidrule(lr){5-6}" in latex(made())

    @pytest.mark.parametrize(
        ("measures", "environment", "size"),
        [
            (4, "table", []),
            (5, "table*", [r"\small"]),
            (7, "table*", [r"\small"]),
            (8, "table*", [r"\scriptsize", r"\setlength{\tabcolsep}{2pt}"]),
        ],
    )
    def test_a_wide_table_spans_the_page_in_small_print(self, measures: int, environment: str, size: list[str]) -> None:
        cells = [
            Cell(table="dai-3", system="s", target=t, measure=f"P@{n}", value=10.0)
            for n in range(measures)
            for t in ("human", "llm")
        ]
        text = latex(lay_out(printed(cells, LAYOUTS["dai-3"]), LAYOUTS["dai-3"]))
        (table,) = read(text)
        assert table.environment == environment
        assert text.partition("{tab:dai-3}\n")[2].partition(r"\begin{tabular}")[0].splitlines() == size

    def test_rankers_are_parted_by_a_rule(self) -> None:
        cells = [
            Cell(table="dai-3", system=s, target=t, measure="P@1", value=10.0) for s in "abc" for t in ("human", "llm")
        ]
        text = latex(lay_out(printed(cells, LAYOUTS["dai-3"]), LAYOUTS["dai-3"]))
        assert text.count(r"\midrule") == 3

    def test_panels_with_one_header_share_it(self) -> None:
        cells = [
            Cell(table="dai-3", system="s", temperature=d, target=t, measure="P@1", value=10.0)
            for d in ("0.2", "1.0")
            for t in ("human", "llm")
        ]
        (table,) = read(latex(lay_out(printed(cells, LAYOUTS["dai-3"]), LAYOUTS["dai-3"])))
        assert table.panels == ["temperature 0.2", "temperature 1.0"]
        assert len(table.header) == 1
        assert len(table.rows) == 6

    def test_panels_with_headers_of_their_own_are_as_wide_as_the_widest(self) -> None:
        cells = [
            Cell(table="wang-1", dataset=d, system="s", condition=c, measure="P@20", value=0.5)
            for d, c in (("a", "neutral"), ("a", "male"), ("b", "neutral"))
        ]
        (table,) = read(latex(lay_out(printed(cells, LAYOUTS["wang-1"]), LAYOUTS["wang-1"])).replace(
            "s & 0.5000 & \\\\", "s & 0.5000 & -- \\\\"))  # fmt: skip
        assert table.panels == ["a", "b"]
        assert table.rows == [["s", "0.5000", "0.5000"], ["s", "0.5000", "–"]]

    def test_notes_stand_below_the_table(self) -> None:
        (table,) = read(latex(made(note="50 % read off a figure")))
        assert table.notes == ["BM25, Human-Written, d, NDCG@1: 50 % read off a figure."]

    def test_a_table_without_notes_has_no_room_for_them(self) -> None:
        assert "minipage" not in latex(made())


class TestHostile:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_a_name_is_shown_and_does_nothing(self, name: str) -> None:
        (table,) = read(latex(made(name, name, name, name, name)))
        label = clean(name).replace("--", "–")
        assert table.rows[0] == [label, "Human-Written", "12.5", "12.5", "12.5", "12.5"]
        assert len(table.rows) == 3

    @settings(max_examples=60)
    @given(st.text(max_size=30))
    def test_any_text_leaves_the_structure_alone(self, text: str) -> None:
        (table,) = read(latex(made(text, text, text, text, text)))
        assert [len(row) for row in table.rows] == [table.columns] * 3

    def test_texts_side_by_side_are_escaped_too(self) -> None:
        row = Row((), (r"\write18{rm} & 5 % of {all}", "[x] \\\\ $y$"))
        panel = Panel("Query: \\[a_b\\]", ((("Human-Written", 1), ("LLM-Generated", 1)),), (row,))
        grid = Grid("dai-10", "p", "c", (), (panel,), prose=True)
        (table,) = read(re.sub(r"(\\\\\n\\midrule\n)(.*) \\\\", r"\1\2 \\\\", latex(grid)))
        assert table.header[-1] == [(r"\write18{rm} & 5 % of {all}", 1), (r"[x] \\ $y$", 1)]
        assert table.panels == [r"Query: \[a_b\]"]
        assert table.columns == 2

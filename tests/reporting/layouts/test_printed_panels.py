"""Panels of tables as LaTeX, Markdown and CSV: their structure, their numbers, and names that would
break them.
"""

import re
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ranktilt.reporting.document import Cell, Column, Document, Panels, Row, Table, single_section
from ranktilt.reporting.layouts.cells import CellFile
from ranktilt.reporting.layouts.layout import layouts
from ranktilt.reporting.layouts.selection import PaperCell
from ranktilt.reporting.layouts.tables import _text_data, paper_tables
from ranktilt.reporting.render.latex import render as latex_document
from ranktilt.reporting.render.markdown import clean, guarded
from tests.reporting.readers import TexTable, read_tex

HOSTILE = (
    r"\end{table}\input{/etc/passwd}",
    "a & b \\\\ \\hline",
    "% comment",
    "[2pt]",
    "*",
    "{{{",
    "}}}",
    "$x$",
    "#1",
    "two\nlines",
    "^^M",
    "\u202ereversed",
    "--",
    "~",
    "|",
    "`",
    "",
    "a | b",
    "[x](y)",
    "**bold**",
    "<b>",
    "`c`",
    "---",
)
TITLE = layouts()["dai-3"].title
SIDES = (("human", 12.5), ("llm", 20.0))


def cells(
    system: str = "BM25", dataset: str = "a", note: str = "", table: str = "dai-3"
) -> list[PaperCell]:
    """One ranker on two collections; Relative Δ of 12.5 and 20 is 100·(12.5 − 20)/16.25 =
    −46.15.
    """
    return [
        PaperCell(
            table=table,
            dataset=name,
            system=system,
            target=target,
            measure="nDCG@1",
            value=value,
            note=note if (name, target) == (dataset, "human") else "",
        )
        for name in dict.fromkeys((dataset, "b"))
        for target, value in SIDES
    ]


def text(
    cells: Sequence[PaperCell], format: str = "latex", path: str = "", layout: str = "dai-3"
) -> str:
    return paper_tables([CellFile(cells=tuple(cells), path=path)], layout, format)


def tex(cells: Sequence[PaperCell], path: str = "", layout: str = "dai-3") -> TexTable:
    (table,) = read_tex(text(cells, "latex", path, layout))
    return table


def markdown_rows(markdown: str) -> list[list[list[str]]]:
    tables: list[list[list[str]]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type == "inline" and tables and token.level >= 4:
            tables[-1][-1].append("".join(child.content for child in token.children or ()))
    return tables


def two_panels(**conditions: Sequence[str]) -> list[PaperCell]:
    return [
        PaperCell(
            table="wang-1",
            dataset=dataset,
            system="s",
            condition=condition,
            measure="P@20",
            value=0.5,
        )
        for dataset, names in conditions.items()
        for condition in names
    ]


class TestStructure:
    def test_a_whole_table_as_latex(self) -> None:
        assert text(cells(), path="a  b.csv").splitlines() == [
            r"% Layout: Table 3 of Dai et al., arXiv 2310.20501 (numbered as before KDD 2024). "
            r"Needs "
            r"\usepackage{booktabs} and \usepackage[table]{xcolor}.",
            "% Cells of a b.csv",
            (
                "% The paper's table also has NDCG@3, NDCG@5, MAP@1, MAP@3, MAP@5, not in these "
                "results."
            ),
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{TITLE.replace('Δ', '$' + chr(92) + 'Delta$')}.}}",
            r"\label{tab:dai-3}",
            r"\begin{tabular}{llrr}",
            r"\toprule",
            r" &  & \multicolumn{1}{c}{a} & \multicolumn{1}{c}{b} \\",
            r"\cmidrule(lr){3-3} \cmidrule(lr){4-4}",
            r"Model & Target corpus & NDCG@1 & NDCG@1 \\",
            r"\midrule",
            r"BM25 & Human-Written & 12.5 & 12.5 \\",
            r" & LLM-Generated & 20.0 & 20.0 \\",
            # 46.2 % of .6 of the way from white to D55E00: 255 − .277·(42, 161, 255)
            (
                r" & Relative $\Delta$ & \cellcolor[HTML]{F3D2B8}$-$46.2 & "
                r"\cellcolor[HTML]{F3D2B8}$-$46.2 \\"
            ),
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\smallskip",
            r"\begin{minipage}{\linewidth}",
            r"\footnotesize",
            r"Shaded: Relative $\Delta$, blue above 0 and orange below, the darker the further "
            r"from it (darkest from "
            r"100 on).\par",
            r"\end{minipage}",
            r"\end{table}",
        ]

    def test_the_same_as_markdown(self) -> None:
        assert tex(cells(note="50 % *guessed*")).notes == [
            "BM25, Human-Written, a, NDCG@1: 50 % *guessed*."
        ]
        assert text(cells(note="50 % *guessed*"), "markdown", "a.csv").splitlines() == [
            f"**{TITLE}.**",
            "",
            "*Layout: Table 3 of Dai et al., arXiv 2310.20501 (numbered as before KDD 2024).*",
            "",
            "| Model | Target corpus | a, NDCG@1 | b, NDCG@1 |",
            "| --- | --- | ---: | ---: |",
            "| BM25 | Human-Written | 12.5 | 12.5 |",
            "|  | LLM-Generated | 20.0 | 20.0 |",
            "|  | Relative Δ | −46.2 | −46.2 |",
            "",
            r"- BM25, Human-Written, a, NDCG@1: 50 % \*guessed\*.",
            (
                "- The paper's table also has NDCG@3, NDCG@5, MAP@1, MAP@3, MAP@5, not in these "
                "results."
            ),
            "- Cells of a.csv",
        ]

    @pytest.mark.parametrize(
        ("measures", "environment", "size"),
        [
            (4, "table", []),
            (5, "table*", [r"\small"]),
            (7, "table*", [r"\small"]),
            (8, "table*", [r"\scriptsize", r"\setlength{\tabcolsep}{2pt}"]),
        ],
    )
    def test_a_wide_table_spans_the_page_in_small_print(
        self, measures: int, environment: str, size: list[str]
    ) -> None:
        wide = [
            PaperCell(table="dai-3", system="s", target=t, measure=f"P@{n}", value=v)
            for n in range(measures)
            for t, v in SIDES
        ]
        assert tex(wide).environment == environment
        assert (
            text(wide).partition("{tab:dai-3}\n")[2].partition(r"\begin{tabular}")[0].splitlines()
            == size
        )

    def test_rule_parts_rankers_and_equal_headers_are_shared(self) -> None:
        assert text([c for s in "abc" for c in cells(s)]).count(r"\midrule") == 3
        warm = [PaperCell(**{**vars(c), "temperature": t}) for t in ("0.2", "1.0") for c in cells()]
        table = tex(warm)
        assert table.panels == ["temperature 0.2", "temperature 1.0"]
        assert (len(table.header), len(table.rows)) == (2, 6)

    def test_panels_of_own_headers_are_as_wide_as_widest(self) -> None:
        assert tex(two_panels(a=("neutral", "male")), layout="wang-1").panels == []
        panels = two_panels(a=("neutral", "male"), b=("neutral",))
        lines = text(panels, layout="wang-1").splitlines()
        assert lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")] == [
            r"\multicolumn{3}{l}{\textit{a}} \\",
            r"\midrule",
            r" & \multicolumn{1}{c}{Neutral} & \multicolumn{1}{c}{Male} \\",
            r"\cmidrule(lr){2-2} \cmidrule(lr){3-3}",
            r"Model & P@20 & P@20 \\",
            r"\midrule",
            r"s & 0.5000 & 0.5000 \\",
            r"\midrule",
            r"\multicolumn{3}{l}{\textit{b}} \\",
            r"\midrule",
            r" & \multicolumn{1}{c}{Neutral} & \\",
            r"\cmidrule(lr){2-2}",
            r"Model & P@20 & \\",
            r"\midrule",
            r"s & 0.5000 & \\",
        ]
        markdown = text(panels, "markdown", layout="wang-1")
        assert [table[0] for table in markdown_rows(markdown)] == [
            ["Model", "Neutral, P@20", "Male, P@20"],
            ["Model", "Neutral, P@20"],
        ]
        assert "\n\n*a*\n\n" in markdown

    @pytest.mark.parametrize(
        ("human", "llm", "colours"),
        [
            (30.0, 10.0, ["66AAD1"]),
            (12.0, 8.0, ["C2DDED"]),
            (10.0, 10.0, []),
            (0.0, 0.0, []),
        ],
    )
    def test_relative_delta_is_blue_above_0_and_white_at_0(
        self, human: float, llm: float, colours: list[str]
    ) -> None:
        """30 and 10 give +100, 12 and 8 +40, the others 0 and nothing."""
        values = {"human": human, "llm": llm}
        cells = [
            PaperCell(table="dai-3", system="s", target=t, measure="nDCG@1", value=v)
            for t, v in values.items()
        ]
        table = tex(cells)
        assert table.colours == colours
        assert bool(table.legend) == bool(colours)

    def test_texts_side_by_side_are_as_wide_as_the_page(self) -> None:
        columns = tuple(Column(title, number=False) for title in ("Human-Written", "LLM-Generated"))
        row = Row((Cell(r"\write18{rm} & 5 % of {all}"), Cell("[x] \\\\ $y$")))
        panels = Panels(
            name="dai-10",
            caption="c",
            layout="Layout: p.",
            tables=(Table("Query: \\[a_b\\]", columns, (row,)),),
        )
        lines = latex_document(
            Document(kind="", headline="", sections=single_section([panels]))
        ).splitlines()
        assert lines[1] == r"\begin{table*}[t]"
        assert lines[5:13] == [
            r"\small",
            r"\begin{tabular}{p{0.47\linewidth}p{0.47\linewidth}}",
            r"\toprule",
            r"Human-Written & LLM-Generated \\",
            r"\midrule",
            (
                r"\multicolumn{2}{p{0.96\linewidth}}{\textit{Query: "
                r"\textbackslash{}{[}a\_b\textbackslash{}{]}}} \\"
            ),
            r"\midrule",
            (
                r"\textbackslash{}write18\{rm\} \& 5 \% of \{all\} & {[}x{]} "
                r"\textbackslash{}\textbackslash{} \$y\$ \\"
            ),
        ]


def test_texts_of_collections_with_other_sources_share_a_csv_file() -> None:
    blocks = []
    for name, titles in (("dai-10", ("human", "gpt")), ("dai-11", ("human", "llama", "gpt"))):
        columns = tuple(Column(title, number=False) for title in titles)
        row = Row(tuple(Cell(f"{title} text") for title in titles))
        table = Table("Query: q", columns, (row,))
        blocks.append(Panels(name=name, caption="c", layout="Layout: p.", tables=(table,)))
    assert _text_data(blocks).rows(named=True) == [
        {
            "table": "dai-10",
            "pair": "Query: q",
            "human": "human text",
            "gpt": "gpt text",
            "llama": None,
        },
        {
            "table": "dai-11",
            "pair": "Query: q",
            "human": "human text",
            "gpt": "gpt text",
            "llama": "llama text",
        },
    ]


class TestHostile:
    def test_a_name_is_shown_and_does_nothing(self) -> None:
        for name in HOSTILE:
            table = tex(cells(name, name, name), name)
            assert table.rows[0] == [
                clean(name).replace("--", "–"),
                "Human-Written",
                "12.5",
                "12.5",
            ]
            (rows,) = markdown_rows(text(cells(name, name, name), "markdown", name))
            assert [len(row) for row in rows] == [4] * 4
            assert rows[1][0] == clean(name)

    @settings(max_examples=20)
    @given(st.text(max_size=30))
    def test_any_text_leaves_the_structure_alone(self, name: str) -> None:
        table = tex(cells(name, name, name), name)
        assert [len(row) for row in table.rows] == [table.columns] * 3
        assert all("\r" not in comment and "\u2028" not in comment for comment in table.comments)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("two\nlines\r\nand\u2028more", "two lines and more"),
            ("  blanks\t\t here ", "blanks here"),
            ("turned \u202eround\u202c", r"turned \u202eround\u202c"),
            ("zero\u200bwidth\ufeff", "zerowidth"),
            ("bell\x07 null\x00", r"bell\x07 null\x00"),
            ("half \ud800 pair", r"half \ud800 pair"),
            ("naïve 日本", "naïve 日本"),
        ],
    )
    def test_clean_leaves_one_line_of_visible_characters(self, name: str, expected: str) -> None:
        assert clean(name) == expected

    @given(st.text(st.characters(blacklist_categories=("C", "Z")), max_size=30))
    def test_what_is_escaped_for_tex_reads_as_before(self, name: str) -> None:
        known = re.sub("[–−†]|--", "", name)  # signs with a form of their own
        assert tex(cells(f"x{known}")).rows[0][0] == f"x{known}"

    @given(st.text(max_size=40))
    def test_any_text_is_one_plain_cell_of_markdown(self, name: str) -> None:
        line = f"| {guarded(name)} | end |"
        tokens = (
            MarkdownIt("commonmark", {"html": True})
            .enable("table")
            .parse(f"| a | b |\n| --- | --- |\n{line}\n")
        )
        inline = [t for t in tokens if t.type == "inline"]
        assert len(inline) == 4
        assert {child.type for child in inline[2].children or ()} <= {"text", "text_special"}
        visible_text = "".join(child.content for child in inline[2].children or ())
        assert visible_text == clean(name)
        assert not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in visible_text)


class TestCsv:
    def test_cells_are_in_print_order_and_undefined_is_nan(
        self,
    ) -> None:
        assert text(cells(), "csv").splitlines() == [
            "table,dataset,system,target,measure,value,note",
            "dai-3,a,BM25,human,nDCG@1,12.5,",
            "dai-3,b,BM25,human,nDCG@1,12.5,",
            "dai-3,a,BM25,llm,nDCG@1,20.0,",
            "dai-3,b,BM25,llm,nDCG@1,20.0,",
            "dai-3,a,BM25,relative_delta,nDCG@1,-46.2,",
            "dai-3,b,BM25,relative_delta,nDCG@1,-46.2,",
        ]
        undefined_cells = [
            PaperCell(table="askari-2", system="s", measure="AP@1000", value=float("nan"))
        ]
        assert (
            text(undefined_cells, "csv", layout="askari-2").splitlines()[1]
            == "askari-2,,s,AP@1000,nan,"
        )

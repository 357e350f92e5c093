"""Cells of tables: what a file gives or is refused for, what is computed again, their names and
numbers in print.
"""

import gzip
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.errors import DataError
from ranktilt.reporting.layouts.cells import DELTA, RATIO, SHARES, printed_cells, read_cells
from ranktilt.reporting.layouts.layout import PAPER, layouts
from ranktilt.reporting.layouts.names import generator, measure_name, system_names
from ranktilt.reporting.layouts.selection import PaperCell

HEADER = "table,dataset,generator,temperature,collection,system,target,measure,value,note\n"
LINE = "dai-3,scifact,llama,0.2,mixed,BM25,human,nDCG@1,26.7,\n"
DAI, WANG = layouts()["dai-3"], layouts()["wang-3"]


def written(folder: Path, text: str) -> Path:
    file = folder / "cells.csv"
    file.write_text(text, encoding="utf-8", newline="")
    return file


def test_columns_come_in_any_order_and_compressed_file_is_read(
    tmp_path: Path,
) -> None:
    file = tmp_path / "cells.csv.gz"
    rows = (
        "\ufeffvalue,measure,model,dataset,table\n.480,nDCG@1,BM25,d,dai-3\n"
        "nan,nDCG@1,BM25,e,dai-3\n\n"
    )
    file.write_bytes(gzip.compress(rows.encode()))
    paper_cells = read_cells(str(file))
    cell, undefined = paper_cells.cells
    assert paper_cells.path == str(file)
    assert (cell.table, cell.system, cell.measure, cell.value, cell.text) == (
        "dai-3",
        "BM25",
        "nDCG@1",
        0.48,
        ".480",
    )
    assert math.isnan(undefined.value)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "expected columns table, dataset, system, measure, value, each once, and of"),
        (HEADER.replace("note", "notes") + LINE, 1, "expected columns"),
        ("table,dataset,system,model,measure,value\n", 1, "expected columns"),
        (
            HEADER + LINE.replace("dai-3", "dia-3"),
            2,
            "unknown table 'dia-3'; did you mean 'dai-3'?",
        ),
        (
            HEADER + LINE.replace("26.7", "high"),
            2,
            "expected a number as value, or nan, got 'high'",
        ),
        (HEADER + LINE.replace(",26.7,", ",26.7"), 2, "expected 10 fields (table, dataset"),
        (
            HEADER + LINE + LINE.replace("26.7", "26.8"),
            3,
            "the cell dai-3, scifact, llama, 0.2, mixed, BM25, human, nDCG@1 occurs twice",
        ),
        (HEADER, 0, "expected cells of tables, one per line below the header"),
        (
            HEADER + LINE[:-1] + '"one\ntwo"\n' + LINE.replace("26.7", "x"),
            4,
            "expected a number as value",
        ),
    ],
)
def test_one_sentence_names_file_line_and_what_came(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_cells(file)
    assert caught.value.line == (line or None)
    assert str(caught.value).startswith(f"{file}{f':{line}' if line else ''}: {message}")
    assert "\n" not in str(caught.value)


def means(human: float, llm: float, delta: str = "", note: str = "") -> list[PaperCell]:
    """Two means in percent, and a Relative Δ as a file prints it."""
    front = {"table": "dai-3", "system": "BM25", "measure": "nDCG@1"}
    cells = [
        PaperCell(**front, target="human", value=human),
        PaperCell(**front, target="llm", value=llm),
    ]
    return (
        [*cells, PaperCell(**front, target=DELTA, value=float(delta), text=delta, note=note)]
        if delta
        else cells
    )


def shares(
    unprotected: float, protected: float, ratio: str = "", note: str = ""
) -> list[PaperCell]:
    """Two shares, and their ratio as a file prints it."""
    front = {"table": "wang-3", "system": "GPT-4", "condition": "relevant"}
    cells = [
        PaperCell(**front, measure=m, value=v)
        for m, v in zip(SHARES, (unprotected, protected), strict=True)
    ]
    return (
        [*cells, PaperCell(**front, measure=RATIO, value=float(ratio), text=ratio, note=note)]
        if ratio
        else cells
    )


def texts(cells: Sequence[PaperCell]) -> list[str]:
    return [cell.text for cell in cells]


class TestRelativeDelta:
    @pytest.mark.parametrize(
        ("human", "llm", "expected"),
        [
            (22.0, 17.0, ["22.0", "17.0", "25.6"]),
            (15.3, 24.7, ["15.3", "24.7", "-47.0"]),
            (24.3, 24.3, ["24.3", "24.3", "0.0"]),
            (0.0, 0.0, ["0.0", "0.0", "–"]),
            (5.0, 0.0, ["5.0", "0.0", "200.0"]),
            (math.nan, 17.0, ["–", "17.0", "–"]),
            (
                4.45,
                3.55,
                ["4.4", "3.6", "20.0"],
            ),  # rounded first, halves to even: 100·0.8/4; unrounded 100·0.9/4
        ],
    )
    def test_it_stands_behind_both_means_where_missing(
        self, human: float, llm: float, expected: list[str]
    ) -> None:
        printed = printed_cells(means(human, llm), DAI)
        assert texts(printed) == expected
        assert (printed[2].target, printed[2].system) == (DELTA, "BM25")
        assert texts(printed_cells(means(4.45, 3.55), DAI, rounding="none")) == [
            "4.4",
            "3.6",
            "22.5",
        ]

    @pytest.mark.parametrize(
        ("delta", "note", "expected"),
        [
            ("25.6", "a note", "a note"),
            ("25.7", "", "printed as 25.7, recomputed from its parts (the two means give 25.6)"),
            (
                "25.7",
                "misprint: 25.6",
                "printed as 25.7, recomputed from its parts (misprint: 25.6)",
            ),
            (
                "25.7",
                "from the slides",
                (
                    "printed as 25.7, recomputed from its parts (the two means give 25.6; from the "
                    "slides)"
                ),
            ),
        ],
    )
    def test_what_a_file_prints_stays_where_the_means_give_it(
        self, delta: str, note: str, expected: str
    ) -> None:
        printed = printed_cells(means(22.0, 17.0, delta, note), DAI)
        assert texts(printed) == ["22.0", "17.0", "25.6"]
        assert printed[2].note == expected

    def test_cells_have_own_parts_and_lone_mean_is_printed_as_is(
        self,
    ) -> None:
        front = {"table": "dai-3", "system": "TF-IDF", "measure": "nDCG@1"}
        others = [PaperCell(**front, target=target, value=10.0) for target in ("human", "llm")]
        printed = printed_cells([*means(22.0, 17.0), *others], DAI)
        assert {(c.system, c.text) for c in printed if c.target == DELTA} == {
            ("BM25", "25.6"),
            ("TF-IDF", "0.0"),
        }
        human, _, delta = means(22.0, 17.0, "25.7")
        printed = printed_cells([human, delta], DAI)
        assert (texts(printed), printed[1].note) == (["22.0", "25.7"], "")

    def test_positive_values_favour_human_text_or_the_first_group(
        self,
    ) -> None:
        third = PaperCell(table="dai-3", system="BM25", measure="nDCG@1", target="other", value=1.0)
        assert texts(printed_cells([third, *means(22.0, 17.0)[::-1]], DAI)) == [
            "1.0",
            "17.0",
            "22.0",
            "25.6",
        ]
        cells = [
            PaperCell(table="dai-3", measure="P@5", target=t, value=v)
            for t, v in (("f", 22.0), ("m", 17.0))
        ]
        assert texts(printed_cells(cells, DAI)) == ["22.0", "17.0", "25.6"]
        assert texts(printed_cells(cells[::-1], DAI)) == ["17.0", "22.0", "-25.6"]


class TestRatio:
    def test_it_stands_behind_the_shares_and_a_misprint_is_noted(self) -> None:
        for unprotected, protected, typed, expected in (
            (0.25, 0.2, "", "0.8000"),
            (0.0, 0.2, "", "–"),
            (0.0920, 0.2913, "3.1643", "3.1643"),
            (0.2366, 0.0995, "0.4206", "0.4206"),
            (0.2407, 0.2453, "1.0190", "1.0190"),  # by rounding
            (0.2033, 0.2939, "1.4430", "1.4456"),
            (0.3199, 0.2245, "0.7500", "0.7018"),  # misprints
        ):
            printed = printed_cells(
                shares(unprotected, protected, typed, "n" if typed else ""), WANG
            )
            assert (printed[2].text, printed[2].measure) == (expected, RATIO)
            wrong = f"printed as {typed}, recomputed from its parts (the shares give {expected}; n)"
            note = "n" if typed == expected else wrong
            assert printed[2].note == (note if typed else "")

    @given(
        st.integers(500, 9000),
        st.integers(500, 9000),
        st.floats(-0.49, 0.49),
        st.floats(-0.49, 0.49),
    )
    def test_no_ratio_of_exact_shares_is_called_a_misprint(
        self, u: int, p: int, more: float, less: float
    ) -> None:
        exact = (p + less) / (u + more)
        printed = printed_cells(shares(u / 10_000, p / 10_000, f"{exact:.4f}"), WANG)
        assert (printed[2].text, printed[2].note) == (f"{exact:.4f}", "")


def test_tables_are_in_order_and_underived_ones_only_gain_texts() -> None:
    cells = [PaperCell(table="askari-2", system="BM25", measure="AP@1000", value=0.3774, note="n")]
    (cell,) = printed_cells(cells, layouts()["askari-2"])
    assert (cell.text, cell.value, cell.note) == (".377", 0.3774, "n")
    numbers = (("dai", 11), ("wang", 3), ("askari", 5))
    tables = [f"{paper}-{n}" for paper, last in numbers for n in range(1, last + 1)]
    figures = {name for name, layout in layouts().items() if layout.is_figure}
    assert {*layouts()} == {*tables, *figures, "askari-overlap"}
    assert PAPER not in layouts()


def test_numbers_and_labels_are_printed_as_in_the_paper() -> None:
    for name, measure, value, text in (
        ("dai-3", "nDCG@1", 25.25, "25.2"),
        ("dai-3", "nDCG@1", 25.75, "25.8"),  # halves go to the even digit
        ("dai-3", "nDCG@1", -0.01, "0.0"),
        ("dai-3", "nDCG@1", math.nan, "–"),
        ("wang-1", "ExposureRatio", 1.94021, "1.9402"),
        ("askari-2", "AP@1000", 0.377, ".377"),
        ("askari-1", "queries train", 16788.0, "16788"),
        ("dai-1", "document words", 201.814, "201.81"),
    ):
        assert layouts()[name].printed(value, measure) == text, (name, value)
    for name, key, key_value, label in (
        ("dai-3", "target", "llm", "LLM-Generated"),
        ("dai-3", "dataset", "scifact", "SciFact"),
        ("dai-5", "system", "BM25+MiniLM", "+MiniLM"),
        ("wang-2", "condition", "neutral window=10 step=3", "window 10, step 3"),
        (
            "askari-4",
            "dataset",
            "chatgpt-retrievalqa-test (chatgpt responses)",
            "Test, ChatGPT responses",
        ),
    ):
        assert layouts()[name].label(key, key_value) == label


def test_known_rankers_have_paper_names_and_others_stay_distinct() -> None:
    names = {
        "bm25@100": "BM25",
        "bm25:dai@100>>monot5:base": "BM25+monoT5",
        "replay:runs/gpt35.trec.gz": "gpt35",
        "dense:facebook/contriever-msmarco": "Contriever",
        "a[b]&c": "a[b]&c",
        "bm25@100>>cross-encoder:cross-encoder/ms-marco-MiniLM-L-6-v2": "BM25+MiniLM",
        "bm25(k1=0.9,b=0.4)": "bm25(k1=0.9,b=0.4)",  # another BM25 than the papers'
        "dense:berm": "dense:berm",  # no checkpoint of it is published
    }
    assert {run: system_names([run])[run] for run in names} == names
    names_by_system = system_names(["bm25", "bm25@5", "tfidf"])
    assert names_by_system == {"bm25": "bm25", "bm25@5": "bm25@5", "tfidf": "TF-IDF"}


def test_measures_have_paper_names_and_source_splits_into_model_temperature() -> None:
    names = {
        "nDCG@10": "NDCG@10",
        "AP(rel=2)@5": "MAP(rel=2)@5",
        "RR": "MRR",
        "R@100": "Recall@100",
        "P@20": "P@20",
        "ExposureRatio": "ExposureRatio",
    }
    assert {measure: measure_name(measure) for measure in names} == names
    for source, expected in (
        ("llama-2-7b-chat-tmp0.2", ("llama-2-7b-chat", "0.2")),
        ("llm_1.0", ("llm", "1.0")),
        ("gpt-4", ("gpt-4", "")),
        ("gpt_3.5", ("gpt_3.5", "")),
        ("llama_temp1", ("llama", "1.0")),
        ("-tmp0.2", ("-tmp0.2", "")),
    ):
        assert generator(source) == expected

"""CSV for spreadsheets: names that begin like formulas are text, and come back as they were."""

import csv
import io
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Run, audit, table
from ranktilt.cli.audit.audit import per_query_csv
from ranktilt.data.formats.tables.spreadsheet import csv_text, from_cell
from ranktilt.judging.systems.evaluation_files import read_evaluations
from ranktilt.reporting.layouts.cells import read_cells
from tests.toy import collection_of

CELLS = {
    "=1+1": "'=1+1",
    "+alpha": "'+alpha",
    "-beta": "'-beta",
    "@SUM(A1)": "'@SUM(A1)",
    "\t=1": "'\t=1",
    "'=1": "''=1",  # an apostrophe of its own, so that reading takes off one
    "-5": "-5",
    "+1.5e-3": "+1.5e-3",
    "-.5 ": "-.5 ",
    "-": "-",
    "a=b": "a=b",
    "'quoted'": "'quoted'",
    "-1+cmd|' /C calc'!A0": "'-1+cmd|' /C calc'!A0",
}


def cells_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_texts_are_no_formulas_and_numbers_stay() -> None:
    frame = pl.DataFrame(
        {"=name": list(CELLS), "value": [-1.5] * len(CELLS), "missing": [None] * len(CELLS)}
    )
    header, *rows = cells_of(csv_text(frame))
    assert header == ["'=name", "value", "missing"]
    assert rows == [[cell, "-1.5", ""] for cell in CELLS.values()]


@given(st.lists(st.text(alphabet="'=+-@\t\r\n 1.e,\"a", min_size=1), min_size=1))
def test_cells_come_back(texts: list[str]) -> None:
    rows = cells_of(csv_text(pl.DataFrame({"text": texts, "row": range(len(texts))})))
    assert [from_cell(row[0]) for row in rows[1:]] == texts


def test_names_of_an_audit_are_no_formulas(tmp_path: Path) -> None:
    docs = [
        {"id": f"d{n}", "text": "x", "source": source}
        for n, source in enumerate(["=human()", "@llm"])
    ]
    collection = collection_of(docs, {"-query": "x"}, {"-query": {"d0": 1, "d1": 1}})
    run = Run.from_dict({"-query": {"d0": 2.0, "d1": 1.0}}, name="+run()")
    result = audit(collection, [run], ["nDCG@2"], resamples=100)
    printed = table(result, "csv")
    assert {cell for row in cells_of(printed) for cell in row if cell[:1] in "=@" and cell} == set()
    assert "'+run()" in printed
    assert "'=human()" in printed
    rows = cells_of(per_query_csv(result).decode())
    assert rows[1] == ["'+run()", "nDCG@2", "all", "'-query", rows[1][4]]


def test_files_that_are_read_back_have_the_names_that_were_written(tmp_path: Path) -> None:
    values = tmp_path / "values.csv"
    values.write_text("run,measure,query,value\n'+run(),nDCG@2,'-query,0.5\n")
    assert read_evaluations(values).select("run", "query_id").rows() == [("+run()", "-query")]
    cells = tmp_path / "cells.csv"
    cells.write_text("table,dataset,system,measure,value\ndai-3,'=data,'@system,NDCG@1,-1.5\n")
    (cell,) = read_cells(cells).cells
    assert (cell.dataset, cell.system, cell.text) == ("=data", "@system", "-1.5")

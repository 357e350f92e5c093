"""Every published table is printed again from its cells, cell by cell and in its order."""

import csv
import io
from pathlib import Path

import pytest

from ranktilt.reporting.layouts.cells import CellFile, read_cells
from ranktilt.reporting.layouts.layout import layouts
from ranktilt.reporting.layouts.tables import paper_tables
from tests.reporting.layouts.test_printed_panels import markdown_rows
from tests.reporting.layouts.test_tables import panels
from tests.reporting.readers import TexTable, numbers, read_tex

pytestmark = pytest.mark.data

PAPERS = ("dai", "wang", "askari")
COUNTS = {
    "dai-2": 144,
    "dai-3": 216,
    "dai-4": 108,
    "dai-5": 54,
    "dai-6": 54,
    "dai-7": 72,
    "dai-8": 72,
    "dai-9": 144,
    "wang-1": 108,
    "wang-2": 8,
    "wang-3": 72,
    "askari-1": 18,
    "askari-2": 60,
    "askari-3": 36,
    "askari-4": 12,
    "askari-5": 6,
}
MISPRINTS = {"1.4430": "1.4456", "0.7500": "0.7018"}
"""Of Wang et al.'s Table 3, and what the printed shares give."""
every_table = pytest.mark.parametrize("name", COUNTS)


@pytest.fixture(scope="module")
def published(shared_data: Path) -> dict[str, CellFile]:
    folder = shared_data.parent / "design" / "golden"
    if not folder.is_dir():
        pytest.skip(f"needs the published cells: {folder} is absent")
    return {paper: read_cells(folder / f"{paper}.csv") for paper in PAPERS}


def expected(published: dict[str, CellFile], name: str) -> list[str]:
    """Printed texts of one table in the order of its file; misprints are what they should have
    been.
    """
    cells = [cell for cell in published[name.partition("-")[0]].cells if cell.table == name]
    return [MISPRINTS[c.text] if c.note.startswith("misprint") else c.text for c in cells]


def of(published: dict[str, CellFile], name: str) -> CellFile:
    return published[name.partition("-")[0]]


def tex(published: dict[str, CellFile], name: str) -> TexTable:
    (table,) = read_tex(paper_tables([of(published, name)], name, "latex"))
    return table


def test_every_published_table_is_there(published: dict[str, CellFile]) -> None:
    blocks = panels(list(published.values()), "paper")
    cell_counts = {
        b.name: sum(len(r.cells) - len(layouts()[b.name].rows) for t in b.tables for r in t.rows)
        for b in blocks
    }
    assert cell_counts == COUNTS


@every_table
def test_latex_markdown_and_csv_hold_the_printed_cells(
    published: dict[str, CellFile], name: str
) -> None:
    cells, labels = expected(published, name), len(layouts()[name].rows)
    assert numbers(tex(published, name), labels) == cells
    titles = [layouts()[name].title_of(key) for key in layouts()[name].rows]
    rows = [
        row
        for table in markdown_rows(paper_tables([of(published, name)], name, "markdown"))
        for row in table
    ]
    data_rows = [row[labels:] for row in rows if row[:labels] != titles]
    assert [text.replace("−", "-") for row in data_rows for text in row] == cells
    # A file holds printed means, so that there is nothing to round.
    text = paper_tables([of(published, name)], name, "csv")
    assert text == paper_tables([of(published, name)], name, "csv", rounding="none")
    lines = list(csv.DictReader(io.StringIO(text)))
    source = [cell for cell in of(published, name).cells if cell.table == name]
    assert [line["value"] for line in lines] == cells
    for line, cell in zip(lines, source, strict=True):
        assert line == {
            **{key: getattr(cell, key) for key in line},
            "value": line["value"],
            "note": line["note"],
        }


def test_without_any_relative_delta_all_of_them_come_back(published: dict[str, CellFile]) -> None:
    parts = CellFile(
        tuple(cell for cell in published["dai"].cells if cell.target != "relative_delta")
    )
    mixed = [name for name in COUNTS if layouts()[name].derived == "relative_delta"]
    assert mixed == ["dai-3", "dai-4", "dai-5", "dai-6", "dai-9"]
    for name in mixed:
        (table,) = read_tex(paper_tables([parts], name, "latex"))
        assert numbers(table, 2) == expected(published, name)


def test_rows_columns_and_headers_are_the_papers(published: dict[str, CellFile]) -> None:
    sides = ("Human-Written", "LLM-Generated", "Relative Δ")
    for name, front, columns in (("dai-3", "TF-IDF", 14), ("dai-5", "NDCG@1", 5)):
        table = tex(published, name)
        assert [row[0] for row in table.rows[:3]] == [front, "", ""]
        assert [row[1] for row in table.rows[:3]] == [*sides]
        assert table.columns == columns
    wang, askari = tex(published, "wang-1"), tex(published, "askari-3")
    assert [row[0] for row in wang.rows[:3]] == ["MonoT5", "MonoBERT", "GPT-3.5"]
    assert [row[0] for row in askari.rows[:3]] == ["All", "Medicine", "Finance"]
    assert (wang.columns, askari.columns) == (7, 7)
    assert wang.panels == ["TREC 2022 gender", "TREC 2022 location", "TREC 2021 location"]
    assert tex(published, "dai-3").header[0] == [("", 1), ("", 1), ("SciFact", 6), ("NQ320K", 6)]
    assert tex(published, "wang-3").header[0] == [
        ("", 1),
        ("Relevant pairs", 3),
        ("Irrelevant pairs", 3),
    ]
    assert len(tex(published, "askari-2").header[0]) == 1 + 4

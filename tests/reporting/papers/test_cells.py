"""Files of cells: what is read, and what is refused with file and line."""

import gzip
import math
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from ranktilt.errors import DataError
from ranktilt.reporting.papers.cells import KEYS, Cell, Cells, read_cells

HEADER = "table,dataset,generator,temperature,collection,system,target,measure,value,note\n"
LINE = "dai-3,scifact,llama,0.2,mixed,BM25,human,nDCG@1,26.7,\n"


def written(folder: Path, text: str, name: str = "cells.csv") -> Path:
    """Write a file and return where it lies."""
    file = folder / name
    file.write_text(text, encoding="utf-8", newline="")
    return file


class TestRead:
    def test_every_field_of_a_line_becomes_a_key_of_the_cell(self, tmp_path: Path) -> None:
        file = written(tmp_path, HEADER + 'dai-3,scifact,llama,0.2,mixed,BM25,human,nDCG@1,26.7,"a note, quoted"\n')
        (cell,) = read_cells(file).cells
        assert cell == Cell(
            table="dai-3", dataset="scifact", generator="llama", temperature="0.2", collection="mixed",
            system="BM25", target="human", measure="nDCG@1", value=26.7, text="26.7", note="a note, quoted",
        )  # fmt: skip

    def test_numbers_keep_their_text(self, tmp_path: Path) -> None:
        file = written(tmp_path, "table,dataset,system,measure,value\naskari-2,d,BM25,nDCG@10,.480\n")
        (cell,) = read_cells(file).cells
        assert (cell.value, cell.text) == (0.48, ".480")

    def test_model_is_another_word_for_system(self, tmp_path: Path) -> None:
        file = written(tmp_path, "table,dataset,model,measure,value\nwang-1,d,MonoT5,P@20,0.1\n")
        assert read_cells(file).cells[0].system == "MonoT5"

    def test_the_order_of_columns_does_not_matter(self, tmp_path: Path) -> None:
        file = written(tmp_path, "value,measure,system,dataset,table\n7.5,nDCG@1,BM25,d,dai-3\n")
        cell = read_cells(file).cells[0]
        assert (cell.table, cell.system, cell.measure, cell.value) == ("dai-3", "BM25", "nDCG@1", 7.5)

    def test_nan_is_an_undefined_value(self, tmp_path: Path) -> None:
        file = written(tmp_path, HEADER + LINE.replace("26.7", "nan"))
        assert math.isnan(read_cells(file).cells[0].value)

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_every_line_end_is_read(self, tmp_path: Path, end: str) -> None:
        other = LINE.replace("human", "llm")
        file = written(tmp_path, (HEADER + LINE + other).replace("\n", end))
        assert [cell.target for cell in read_cells(file).cells] == ["human", "llm"]

    def test_a_byte_order_mark_and_empty_lines_do_no_harm(self, tmp_path: Path) -> None:
        file = written(tmp_path, "\ufeff" + HEADER + "\n" + LINE + "\n\n")
        assert len(read_cells(file).cells) == 1

    def test_a_compressed_file_is_read(self, tmp_path: Path) -> None:
        file = tmp_path / "cells.csv.gz"
        file.write_bytes(gzip.compress((HEADER + LINE).encode()))
        assert read_cells(file).cells[0].text == "26.7"

    def test_the_file_is_named_as_where_they_come_from(self, tmp_path: Path) -> None:
        file = written(tmp_path, HEADER + LINE)
        assert read_cells(str(file)).made == str(file)


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "line", "said"),
        [
            (
                "table,dataset,measure\n",
                1,
                "expected columns table, dataset, system, measure, value; missing: system, value (or model); got "
                "'table, dataset, measure'",
            ),
            (HEADER.replace("note", "notes") + LINE, 1, "unknown column 'notes'; did you mean 'note'?"),
            ("table,dataset,system,model,measure,value\n", 1, "column 'system' is there twice"),
            (HEADER + LINE.replace("dai-3", "dia-3"), 2, "unknown table 'dia-3'; did you mean 'dai-3'?"),
            (HEADER + LINE.replace("26.7", "high"), 2, "expected a number as value, or nan, got 'high'"),
            (HEADER + LINE.replace("26.7", ""), 2, "expected a number as value, or nan, got ''"),
            (HEADER + LINE.replace("26.7", "inf"), 2, "expected a number as value, or nan, got 'inf'"),
            (HEADER + LINE.replace("nDCG@1", ""), 2, "expected a measure, got nothing"),
            (
                HEADER + LINE.replace(",26.7,", ",26.7"),
                2,
                "expected 10 fields (table, dataset, generator, temperature, collection, system, target, measure, "
                "value, note), got 9",
            ),
            (HEADER + LINE + LINE.replace("26.7", "26.8"), 3, "the cell dai-3, scifact, llama, 0.2, mixed, BM25, human,"
             " nDCG@1 is there twice, first in line 2"),
            (HEADER + LINE + '"open', 3, "cannot be read as CSV: unexpected end of data"),
        ],
    )  # fmt: skip
    def test_one_sentence_names_file_line_and_what_came(self, tmp_path: Path, text: str, line: int, said: str) -> None:
        file = written(tmp_path, text)
        with pytest.raises(DataError) as caught:
            read_cells(file)
        assert caught.value.line == line
        assert str(caught.value).startswith(f"{file}:{line}: {said}")
        assert "\n" not in str(caught.value)

    def test_lines_are_counted_behind_a_field_of_several_lines(self, tmp_path: Path) -> None:
        file = written(tmp_path, HEADER + LINE[:-1] + '"one\ntwo"\n' + LINE.replace("26.7", "x"))
        with pytest.raises(DataError, match=r":4: expected a number as value"):
            read_cells(file)

    def test_a_header_alone_is_no_table(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="expected cells of tables, a line each below the header"):
            read_cells(written(tmp_path, HEADER))

    def test_an_empty_file_is_no_table(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="missing: table, dataset, system, measure, value"):
            read_cells(written(tmp_path, ""))

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"nowhere\.csv: cannot be read: No such file"):
            read_cells(tmp_path / "nowhere.csv")

    def test_bytes_that_are_no_text_are_named(self, tmp_path: Path) -> None:
        file = tmp_path / "cells.csv"
        file.write_bytes(HEADER.encode() + b"\xff\xfe\n")
        with pytest.raises(DataError, match=f"invalid UTF-8 at byte {len(HEADER)} of the file"):
            read_cells(file)

    @pytest.mark.parametrize("damage", [lambda data: data[:-12], lambda data: data[:2] + b"no deflate at all"])
    def test_a_damaged_gzip_file_is_refused_in_one_line(self, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
        file = tmp_path / "cells.csv.gz"
        file.write_bytes(damage(gzip.compress((HEADER + LINE).encode())))
        with pytest.raises(DataError, match=r"cells\.csv\.gz: cannot be read to its end: "):
            read_cells(file)


class TestTable:
    def test_a_cell_is_a_row_and_every_key_a_column(self) -> None:
        one = Cell(table="dai-3", system="BM25", target="human", measure="nDCG@1", value=26.7, text="26.7")
        found = Cells((one,)).table
        assert found.columns == ["table", *KEYS, "value", "text", "note"]
        assert found.row(0, named=True) == {**dict.fromkeys(KEYS, ""), "table": "dai-3", "system": "BM25",
            "target": "human", "measure": "nDCG@1", "value": 26.7, "text": "26.7", "note": ""}  # fmt: skip

    def test_no_cells_are_a_table_without_rows(self) -> None:
        found = Cells(()).table
        assert found.height == 0
        assert found.schema["value"] == pl.Float64

    def test_the_place_is_the_table_and_every_key(self) -> None:
        one = Cell(table="dai-3", dataset="d", measure="m", value=1.0)
        assert one.place == ("dai-3", "d", "", "", "", "", "", "", "m")

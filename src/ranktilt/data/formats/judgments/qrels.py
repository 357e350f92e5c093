"""Relevance judgments in whatever layout, and BEIR's, in which they are written.

`LAYOUTS` has a module for each; a new one is a module with `sniff` and `read`, and a line there.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl

from ranktilt.data.files import require_path, rereadable_file
from ranktilt.data.formats.base import JUDGMENTS, FileLayout, JudgmentFile
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.judgments import json_qrels, parquet_qrels, table_qrels, text_qrels
from ranktilt.data.formats.notation import QRELS_NOUNS, QRELS_OPTIONS, NamedFile
from ranktilt.data.formats.refusals import refusal, refuse_binary
from ranktilt.errors import DataError, DataWarning, UserError, counted

LAYOUTS = (
    FileLayout(name="Parquet", sniff=parquet_qrels.sniff, read=parquet_qrels.read),
    FileLayout(name="JSON", sniff=json_qrels.sniff, read=json_qrels.read),
    FileLayout(name="table", sniff=table_qrels.sniff, read=table_qrels.read),
    FileLayout(name="lines", sniff=text_qrels.sniff, read=text_qrels.read),
)
"""Layouts of judgments in the order of recognition."""
_HEADER = ("query-id", "corpus-id", "score")
"""Names of the columns of BEIR's judgments."""


def read_qrels(path: str | Path) -> pl.DataFrame:
    """Read judgments: BEIR's or TREC's lines, CSV, JSON or Parquet; the content tells which.

    ``FILE:query=q,id=url,grade=rating`` names the columns, nested keys by dots, and
    ``several=first`` keeps the first of several grades. Returns ``query_id``, ``doc_id``, ``grade``
    (Int32, or Float64 with fractions) and ``line`` (in JSON and Parquet the number of the record).
    Judgments that are repeated with the same grade are kept once. `DataError` has the line of a
    fault.
    """
    return read_qrels_as(path)[0]


def read_qrels_as(path: str | Path) -> tuple[pl.DataFrame, str]:
    """Read judgments as `read_qrels` does, and describe how the file is read.

    The description is empty for TREC's and BEIR's lines.
    """
    frame, read_as = _read(path)
    return frame.drop("confidence", strict=False), read_as


def read_judge_qrels(path: str | Path) -> pl.DataFrame:
    """Read a judge's grades as `read_qrels` does.

    Where a table, JSON or Parquet has a column ``confidence``, or one is named
    (``FILE:confidence=COLUMN``), it is there too: Float64, null where it is empty, and NaN for what
    is no number.
    """
    return _read(path)[0]


def _read(path: str | Path) -> tuple[pl.DataFrame, str]:
    """Read judgments with a judge's confidence, and describe how the file is read."""
    named_file = NamedFile.from_text(require_path(path), QRELS_NOUNS, QRELS_OPTIONS)
    with rereadable_file(named_file.path) as file:
        judgments = read_judgment_file(DataFile(path=file, columns=dict(named_file.columns)))
        if judgments.skipped:
            number = counted(judgments.skipped, "judgment", "judgments")
            message = f"{named_file.path}: left out {number} without a query, a document or a grade"
            warnings.warn(message, DataWarning, stacklevel=3)
        frame = judgments.frame.drop_nulls(["query_id", "doc_id"])
        if not frame.height:
            raise DataError(file, "expected judgments, got none with a query and a document id")
        if "several" in named_file.options:
            frame = frame.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        return one_grade(file, frame, has_lines=judgments.has_lines), judgments.read_as


def read_judgment_file(file: DataFile) -> JudgmentFile:
    """Read a file of judgments as it is, with rows without ids, repetitions and contradictions."""
    refuse_binary(file, JUDGMENTS)
    for layout in LAYOUTS:
        if layout.sniff(file):
            judgments: JudgmentFile = layout.read(file)
            return judgments
    raise refusal(file, JUDGMENTS)


def one_grade(path: Path, frame: pl.DataFrame, *, has_lines: bool = True) -> pl.DataFrame:
    """Drop repeated judgments; `DataError` for a second, different grade of a pair."""
    frame = frame.unique(["query_id", "doc_id", "grade"], keep="first", maintain_order=True)
    clash = frame.filter(pl.struct("query_id", "doc_id").is_first_distinct().not_())
    if clash.height:
        row = clash.row(0, named=True)
        message = (
            f"a second grade ({row['grade']}) for query {row['query_id']!r}, document "
            f"{row['doc_id']!r}; to take the first, use FILE:several=first"
        )
        raise DataError(path, message, line=row["line"] if has_lines else None)
    return frame


def to_tsv(qrels: pl.DataFrame) -> bytes:
    """Write judgments as a BEIR file, the inverse of `read_qrels`; a confidence is a fourth column.

    `UserError` if an id has a tab or line end in it.
    """
    ids = pl.concat([qrels["query_id"], qrels["doc_id"]])
    unfit = ids.filter(ids.str.contains(r"[\t\r\n]"))
    if len(unfit):
        raise UserError(
            f"id {unfit[0]!r} contains a tab or line end, which a qrels file cannot hold"
        )
    has_confidence = "confidence" in qrels.columns
    lines = ["\t".join([*_HEADER, "confidence"] if has_confidence else _HEADER)]
    names = ["query_id", "doc_id", "grade", *(["confidence"] if has_confidence else [])]
    for row in qrels.select(names).iter_rows():
        lines.append("\t".join("" if value is None else str(value) for value in row))
    return ("\n".join(lines) + "\n").encode()

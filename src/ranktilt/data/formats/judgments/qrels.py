"""Read relevance judgments (qrels) in any layout, and write them in BEIR's.

A judgment is the *grade* of a *pair* of query and document, by a person or a language model (a
*judge*). A judge may also say how sure it is of a grade, its *confidence*. `LAYOUTS` has a module
for each layout; a new one is a module with `sniff` and `read`, and a line there.
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

    Parameters
    ----------
    path : str or Path
        The file; ``-`` is standard input. ``FILE:query=q,id=url,grade=rating`` names its columns,
        and nested keys with dots. ``several=first`` keeps the first of several grades of a pair.

    Returns
    -------
    polars.DataFrame
        ``query_id``, ``doc_id``, ``grade`` (Int32, or Float64 if there are fractions) and ``line``
        (in JSON and Parquet the number of the record). Judgments that are repeated with the same
        grade are kept once.

    Raises
    ------
    DataError
        With the line of the fault, if the file holds no judgments, or a pair has several grades.
    """
    frame, _read_as = read_qrels_as(path)
    return frame


def read_qrels_as(path: str | Path) -> tuple[pl.DataFrame, str]:
    """Read judgments as `read_qrels` does, and describe how the file is read.

    The description is empty for TREC's and BEIR's lines.
    """
    frame, read_as = _read(path)
    return frame.drop("confidence", strict=False), read_as


def read_judge_qrels(path: str | Path) -> pl.DataFrame:
    """Read a judge's grades as `read_qrels` does.

    The frame has a column ``confidence`` too, if a table, JSON or Parquet has a column of this name
    or the user names one (``FILE:confidence=COLUMN``): Float64, null where the cell is empty, and
    NaN where it is no number.
    """
    frame, _read_as = _read(path)
    return frame


def _read(path: str | Path) -> tuple[pl.DataFrame, str]:
    """Read judgments, with a judge's confidence if the file has it, and describe their layout."""
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
    """Read a file of judgments as it is.

    Rows without ids, repeated judgments and contradicting ones are left in.
    """
    refuse_binary(file, JUDGMENTS)
    for layout in LAYOUTS:
        if layout.sniff(file):
            judgments: JudgmentFile = layout.read(file)
            return judgments
    raise refusal(file, JUDGMENTS)


def one_grade(path: Path, frame: pl.DataFrame, *, has_lines: bool = True) -> pl.DataFrame:
    """Drop repeated judgments; `DataError` for a second, different grade of a pair.

    `has_lines` says whether the column ``line`` holds lines of the file, which errors may name.
    """
    frame = frame.unique(["query_id", "doc_id", "grade"], keep="first", maintain_order=True)
    contradicting = frame.filter(pl.struct("query_id", "doc_id").is_first_distinct().not_())
    if contradicting.height:
        row = contradicting.row(0, named=True)
        message = (
            f"a second grade ({row['grade']}) for query {row['query_id']!r}, document "
            f"{row['doc_id']!r}; to take the first, use FILE:several=first"
        )
        raise DataError(path, message, line=row["line"] if has_lines else None)
    return frame


def to_tsv(qrels: pl.DataFrame) -> bytes:
    """Return judgments as the bytes of a BEIR file, which `read_qrels` reads.

    A column ``confidence`` is written as a fourth column. `UserError` if an id has a tab or line
    end in it.
    """
    ids = pl.concat([qrels["query_id"], qrels["doc_id"]])
    unwritable_ids = ids.filter(ids.str.contains(r"[\t\r\n]"))
    if len(unwritable_ids):
        raise UserError(
            f"id {unwritable_ids[0]!r} contains a tab or line end, which a qrels file cannot hold"
        )
    header, columns = list(_HEADER), ["query_id", "doc_id", "grade"]
    if "confidence" in qrels.columns:
        header.append("confidence")
        columns.append("confidence")
    lines = ["\t".join(header)]
    for row in qrels.select(columns).iter_rows():
        lines.append("\t".join("" if value is None else str(value) for value in row))
    return ("\n".join(lines) + "\n").encode()

"""Relevance judgments: BEIR's tab-separated files and TREC's."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from ranktilt.errors import DataError, UserError, shorten
from ranktilt.files import decode_lines, line_chunks

_HEADER = ("query-id", "corpus-id", "score")
_THREE = f"{', '.join(_HEADER)} (3 tab-separated fields)"
_FIELD = r"[^ \t\x0b\x0c\r]+"
_WHOLE = r"^\s*[+-]?[0-9]+\s*$"


def read_qrels(path: str | Path) -> pl.DataFrame:
    """Read judgments in BEIR's format or TREC's; the first line tells which.

    Parameters
    ----------
    path : str or Path
        Plain or gzip. BEIR: three tab-separated fields a line: query-id, corpus-id, score (a whole number);
        the header line ``query-id corpus-id score`` may be left out. TREC: four fields split by any blanks
        and tabs: query-id, iteration (not read), document-id, grade (a whole number); no header.

    Returns
    -------
    polars.DataFrame
        ``query_id``, ``doc_id``, ``grade`` (Int32), and ``line``, the line number. A judgment that is
        repeated with the same grade is kept once.

    Raises
    ------
    DataError
        Naming the line: another number of fields, an empty id, a grade that is no whole number, or a
        second, different grade for a pair.
    """
    path = Path(path)
    frames, trec = list[pl.DataFrame](), None
    for first_line, offset, lines in line_chunks(path):
        text = pl.Series("text", decode_lines(path, first_line, offset, lines).split("\n"))
        frame = text.to_frame().with_row_index("line", offset=first_line)
        frame = frame.filter(pl.col("text").str.strip_chars() != "")
        if not frame.height:
            continue
        trec = _is_trec(frame["text"][0]) if trec is None else trec
        frames.append(_parse(path, frame, trec=trec))
    if not any(frame.height for frame in frames):
        raise DataError(path, "expected judgments, got a header only")
    return one_grade(path, pl.concat(frames))


def one_grade(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Keep a judgment that is repeated once; a second, different grade for a pair is a `DataError`."""
    frame = frame.unique(["query_id", "doc_id", "grade"], keep="first", maintain_order=True)
    clash = frame.filter(pl.struct("query_id", "doc_id").is_first_distinct().not_())
    if clash.height:
        row = clash.row(0, named=True)
        message = f"a second grade ({row['grade']}) for query {row['query_id']!r}, document {row['doc_id']!r}"
        raise DataError(path, message, line=row["line"])
    return frame


def _is_trec(line: str) -> bool:
    """Whether a file's first line has TREC's four fields, and not BEIR's three with a blank in an id."""
    trec, beir = re.findall(_FIELD, line), line.split("\t")
    whole = re.compile(_WHOLE)
    return len(trec) == 4 and bool(whole.match(trec[3])) and not (len(beir) == 3 and whole.match(beir[2]))


def _parse(path: Path, frame: pl.DataFrame, *, trec: bool) -> pl.DataFrame:
    """Judgments of a chunk's lines, given as ``line`` and ``text``."""
    split = pl.col("text").str.extract_all(_FIELD) if trec else pl.col("text").str.split("\t")
    frame = frame.with_columns(fields=split)
    if not trec:
        head = pl.col("fields").list.get(0, null_on_oob=True).str.to_lowercase().str.replace_all("_", "-")
        head = head.is_in(["query-id", "qid", "query"]) & ~pl.col("fields").list.last().str.contains(_WHOLE)
        frame = frame.filter(~((pl.col("line") == 1) & head))
    wrong = frame.filter(pl.col("fields").list.len() != (4 if trec else 3))
    if wrong.height:
        line, raw, fields = wrong.row(0)
        expected = "query-id, iteration, document-id, grade (4 fields)" if trec else _THREE
        raise DataError(path, f"expected {expected}, got {len(fields)}: {shorten(raw)}", line=line)
    field = [pl.col("fields").list.get(i) for i in ((0, 2, 3) if trec else (0, 1, 2))]
    grade = field[2].str.strip_chars().cast(pl.Int32, strict=False)
    frame = frame.select("line", "text", query_id=field[0], doc_id=field[1], raw=field[2], grade=grade)
    _check(path, frame, "grade" if trec else "score")
    return frame.select("query_id", "doc_id", "grade", "line")


def _check(path: Path, frame: pl.DataFrame, noun: str) -> None:
    blank = frame.filter((pl.col("query_id") == "") | (pl.col("doc_id") == ""))
    if blank.height:
        row = blank.row(0, named=True)
        raise DataError(
            path,
            f"expected a query-id and a corpus-id, one is empty: {shorten(row['text'])}",
            line=row["line"],
        )
    bad = frame.filter(~pl.col("raw").str.contains(_WHOLE) | pl.col("grade").is_null())
    if bad.height:
        row = bad.row(0, named=True)
        raise DataError(path, f"expected a whole number as {noun}, got {row['raw']!r}", line=row["line"])


def to_tsv(qrels: pl.DataFrame) -> bytes:
    """Write judgments as a BEIR file, the inverse of `read_qrels`.

    Parameters
    ----------
    qrels : polars.DataFrame
        ``query_id``, ``doc_id``, ``grade``.

    Returns
    -------
    bytes
        Header and one line a judgment.

    Raises
    ------
    UserError
        If an id has a tab or a line end in it.
    """
    ids = pl.concat([qrels["query_id"], qrels["doc_id"]])
    unfit = ids.filter(ids.str.contains(r"[\t\r\n]"))
    if len(unfit):
        raise UserError(f"id {unfit[0]!r} has a tab or line end in it, which a qrels file cannot hold")
    lines = ["\t".join(_HEADER)]
    lines += [f"{q}\t{d}\t{g}" for q, d, g in qrels.select("query_id", "doc_id", "grade").iter_rows()]
    return ("\n".join(lines) + "\n").encode()

"""Training triples out of a file: a query, a relevant document and another one, a line each, as ids or as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import DataError, shorten
from ranktilt.io.columns import one_line
from ranktilt.io.files import decode_lines, line_chunks

_FIELDS = ("query", "positive", "negative")


@dataclass(frozen=True)
class Positives:
    """Relevant documents to learn from, and rows of documents that each of them is learned against."""

    frame: pl.DataFrame
    """``query_id``, ``doc_id``, ``row`` and ``pool``, a place in `pools`."""
    pools: list[npt.NDArray[np.int64]]


def read_triples(path: str | Path, part: Collection, wanted: pl.DataFrame, name: str) -> Positives:
    """Read what is learned from out of MS MARCO's form: query, positive and negative, tab-separated.

    The first line tells whether they are ids or texts. `DataError` names the line of what is no triple, of a query or
    document that the collection does not have, and of a positive that is not judged relevant there.
    """
    path, known = Path(path), None
    pieces = list[pl.DataFrame]()
    for lines in _lines(path):
        known = _Known.of(part, wanted, ids=lines["query"][0] in part.queries["id"]) if known is None else known
        pieces.append(_rows(path, lines, known, name))
    found = pl.concat(pieces).group_by("query_id", "doc_id", "row", maintain_order=True).agg("negative")
    frame = found.drop("negative").with_columns(pool=pl.int_range(pl.len()))
    return Positives(frame, [rows.to_numpy() for rows in found["negative"]])


@dataclass(frozen=True)
class _Known:
    """What a triple may name: queries and documents by id or by text, and pairs that are judged relevant."""

    queries: pl.DataFrame
    documents: pl.DataFrame
    relevant: pl.DataFrame

    @classmethod
    def of(cls, part: Collection, wanted: pl.DataFrame, *, ids: bool) -> _Known:
        queries, docs = (
            frame.select("id", key="id" if ids else one_line(frame["text"])) for frame in (part.queries, part.docs)
        )
        docs = docs.with_columns(row=pl.int_range(pl.len()))
        relevant = wanted.join(queries.select(query_id="id", query="key"), on="query_id")
        relevant = relevant.join(docs.select("row", doc_id="id", positive="key"), on="doc_id")
        relevant = relevant.unique(["query", "positive"], keep="first", maintain_order=True)
        first = docs.unique("key", keep="first", maintain_order=True)
        return cls(queries, first, relevant.select("query", "positive", "query_id", "doc_id", "row"))


def _lines(path: Path) -> Iterator[pl.DataFrame]:
    """Lines with their number, ``line``, and three fields."""
    for first_line, lines in line_chunks(path):
        text = pl.Series("text", decode_lines(path, first_line, lines).split("\n"))
        frame = text.to_frame().with_row_index("line", offset=first_line).filter(pl.col("text") != "")
        fields = pl.col("text").str.split("\t")
        wrong = frame.filter(fields.list.len() != len(_FIELDS))
        if wrong.height:
            line, raw = wrong.row(0)
            message = f"expected query, positive and negative (3 tab-separated fields), got {shorten(raw)}"
            raise DataError(path, message, line=line)
        if frame.height:
            yield frame.select("line", **{name: fields.list.get(place) for place, name in enumerate(_FIELDS)})


def _rows(path: Path, lines: pl.DataFrame, known: _Known, name: str) -> pl.DataFrame:
    """The positives of some lines, ``query_id``, ``doc_id`` and ``row``, each with the row of its ``negative``."""
    for kind, keys in (("query", known.queries), ("positive", known.documents), ("negative", known.documents)):
        strange = lines.join(keys, left_on=kind, right_on="key", how="anti", maintain_order="left")
        if strange.height:
            noun = "query" if kind == "query" else "document to learn from"
            line, value = strange.select("line", kind).row(0)
            message = f"{name} has no {noun} {shorten(value)}; are these the triples of another collection?"
            raise DataError(path, message, line=line)
    found = lines.join(known.relevant, on=["query", "positive"], how="left", maintain_order="left")
    unjudged = found.filter(pl.col("row").is_null())
    if unjudged.height:
        line, query, document = unjudged.select("line", "query", "positive").row(0)
        message = f"document {shorten(document)} is not judged relevant to query {shorten(query)} in {name}"
        raise DataError(path, message, line=line)
    others = known.documents.select(negative="key", other="row")
    found = found.join(others, on="negative", how="left", maintain_order="left")
    return found.select("query_id", "doc_id", "row", negative="other")

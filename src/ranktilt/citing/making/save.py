"""Write answers as JSON lines, which `cite` reads, so that no model has to be asked again.

A *sidecar* is the JSON file beside it that says how the answers were made.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import orjson
import polars as pl

from ranktilt.citing.making.session import AnswerSession
from ranktilt.data.files import sidecar, write_files
from ranktilt.errors import UserError


def save_answers(session: AnswerSession, path: str | Path) -> Path:
    """Write each answer as a line of JSON, and ``<path>.json`` with how they were made.

    A line has ``query_id``, ``run`` (which of several answers to the query), ``engine`` (the
    model), ``cited`` in the order of citations, ``consulted`` in the order of the prompt,
    ``retrieved`` as ranked, and ``text``. With twins or labels it also says which were shown.
    Either both files are written or neither. They are compressed if `path` ends in ``.gz``.

    Raises
    ------
    UserError
        If there is no answer.
    """
    path = Path(path)
    if not session.counts.answers:
        reasons = ", ".join(f"{count:,} {name}" for name, count in session.counts.rejected.items())
        raise UserError(f"{path}: not written, because there is no answer ({reasons})")
    description = {**session.spec, "counts": asdict(session.counts)}
    write_files(
        {
            path: b"".join(orjson.dumps(record) + b"\n" for record in answer_records(session)),
            sidecar(path): orjson.dumps(description, option=orjson.OPT_INDENT_2) + b"\n",
        }
    )
    return path


def answer_records(session: AnswerSession) -> list[dict[str, object]]:
    """Return each answer as a record for JSON, in a layout that `cite` reads."""
    is_cited = pl.col("citation_rank").is_not_null()
    lists = session.answers.pages.group_by("answer", maintain_order=True).agg(
        cited=pl.col("page").sort_by("citation_rank").filter(is_cited.sort_by("citation_rank")),
        consulted=pl.col("page"),
        retrieved=pl.col("page").sort_by("retrieval_rank"),
    )
    conditions = session.documents.group_by("answer", maintain_order=True).agg(
        pl.col("is_swapped", "shown_label").first()
    )
    numbered = session.answers.answers.with_row_index("answer").cast({"answer": pl.Int64})
    table = numbered.join(lists, on="answer").join(conditions, on="answer")
    table = table.join(session.texts, on="answer", maintain_order="left")
    records = []
    for row in table.sort("answer").iter_rows(named=True):
        record: dict[str, object] = {"query_id": row["query"], "run": row["repeat"]}
        record |= {"engine": session.model, "cited": row["cited"], "consulted": row["consulted"]}
        if row["has_retrieved"]:
            record["retrieved"] = row["retrieved"]
        if session.making.is_experiment or row["shown_label"] != "none":
            record |= {"shown_label": row["shown_label"], "exchanged": row["is_swapped"]}
        if row["outside"] or row["quoted"]:
            record |= {"outside": row["outside"], "quoted": row["quoted"]}
        records.append({**record, "text": row["text"]})
    return records

"""Errors for a file of another kind than its reader expects: what the file is, and what to do.

The *kind* of a file is what its content can be read as: a run, judgments, labels and so on.
"""

from __future__ import annotations

from ranktilt.data.formats.base import JUDGMENTS, LABELS, QUERIES, RUN
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.recognition import DOCUMENTS, EVALUATIONS, RESULT, recognise
from ranktilt.errors import DataError, shorten

USES = {
    RUN: "name a run with --run",
    JUDGMENTS: "name judgments with --qrels (ranktilt judge: --human, --judge)",
    LABELS: "name labels with --groups",
    QUERIES: "name queries with --queries",
    DOCUMENTS: "documents belong in a collection DIR",
    EVALUATIONS: "ranktilt judge --scores reads values per query",
    RESULT: "to see it, run ranktilt report FILE",
}
"""Where to use each kind of file."""
ANYTHING = "a file of ranktilt"
"""What a reader expects that takes any kind of file."""
_COLUMNS = {
    ANYTHING: "a run, judgments, labels, queries, documents or a result",
    RUN: "query, document and score (or rank)",
    JUDGMENTS: "query, document and grade",
    LABELS: "doc_id and source",
    QUERIES: "id and text",
}
"""Columns that a kind of file needs."""
_EXAMPLES = {
    RUN: "FILE:query=qid,id=url,score=bm25",
    JUDGMENTS: "FILE:query=qid,id=url,grade=rating",
    LABELS: "FILE:id=url,source=is_ai",
    QUERIES: "",
    ANYTHING: "FILE:query=qid,id=url,score=bm25",
}
"""Example of naming the columns of each kind of file; empty if they cannot be named."""
_BY_NUMBER = {
    RUN: "FILE:query=1,id=3,score=5",
    JUDGMENTS: "FILE:query=1,id=3,grade=4",
    LABELS: "FILE:id=1,source=2",
}
"""Examples for files whose columns have no names."""
_BY_NUMBER_OF_THREE = {RUN: "FILE:query=1,id=2,score=3", JUDGMENTS: "FILE:query=1,id=2,grade=3"}
"""Examples for files of three columns without names."""


def refuse_binary(file: DataFile, kind: str) -> None:
    """Refuse a file that is neither text nor Parquet; `kind` is what it should be."""
    if file.binary and file.binary != "Parquet":
        raise refusal(file, kind)


def refusal(file: DataFile, kind: str) -> DataError:
    """Return the error for a file that cannot be read as a file of this kind.

    It says what the file is instead, and what to do with it.
    """
    expected = f"expected {kind} ({_COLUMNS[kind]})"
    if not file.rows and not file.binary:
        is_empty = not file.start.strip()
        return DataError(
            file.path, "the file is empty" if is_empty else f"{expected}, got comments only"
        )
    recognition = recognise(file)
    message = f"{expected}, got {recognition.description()}"
    if recognition.remedy:
        return DataError(file.path, f"{message}; {recognition.remedy}")
    line = None if file.has_json else file.comments + 1
    if recognition.kinds and kind not in recognition.kinds:
        return DataError(file.path, f"{message}; {USES[recognition.kinds[0]]}", line=line)
    if recognition.first and not recognition.columns:
        message += f": {shorten(recognition.first)}"
    example = _example(kind, recognition.width)
    hint = f"; name its columns: {example}" if example else ""
    return DataError(file.path, f"{message}{hint}", line=line)


def _example(kind: str, width: int) -> str:
    """Return an example of naming the columns of a file; empty if they cannot be named.

    `width` is the number of columns if they have no names, and 0 if they have.
    """
    by_number = _BY_NUMBER_OF_THREE if width == 3 else _BY_NUMBER
    return by_number.get(kind, _EXAMPLES[kind]) if width else _EXAMPLES[kind]

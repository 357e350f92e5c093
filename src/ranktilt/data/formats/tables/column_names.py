"""Recognise columns and fields by their names: query, document, score, rank and grade.

A *grade* says how relevant a document is to a query, and a *label* to which group it belongs.
The names in this module are in snake case and lower case; `snake_case` gives any name this form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ranktilt.errors import UserError, unknown_name

Names = Mapping[str, Sequence[str]]
"""Possible names of each column, in the order of preference."""
QUERY = (
    "qid",
    "query_id",
    "queryid",
    "q_id",
    "topic_id",
    "topicid",
    "topic",
    "question_id",
    "request_id",
    "query",
    "query_text",
    "search_term",
    "question",
    "keyword",
    "q",
    "user_input",
    "prompt",
    "input",
)
"""Names of the column of a query's id."""
TEXT_LIKE = ("doc", "document")
"""Names of a document's id in tables; in JSON they mostly hold its text."""
DOCUMENT_IDS = ("docno", "doc_id", "docid", "corpus_id", "corpus-id")
"""Names of a document's id that only an id has, in the order of preference.

PyTerrier's tables have both: ``docid`` is a number of its index, ``docno`` is the id.
"""
DOCUMENT = (
    *DOCUMENT_IDS,
    "document_id",
    "documentid",
    "passage_id",
    "passageid",
    "product_id",
    "item_id",
    "article_id",
    "page_id",
    "pageid",
    "paper_id",
    "paperid",
    "file_id",
    "node_id",
    "point_id",
    "pid",
    "chunk_id",
    "objectid",
    "_id",
    "id",
    "uuid",
    "id_",
    "uri",
    "url",
    "link",
    "href",
    *TEXT_LIKE,
)
"""Names of the column of a document's id."""
SCORE = (
    "score",
    "_score",
    "@search.rerankerscore",
    "@search.score",
    "relevance_score",
    "relevancescore",
    "rerank_score",
    "rerankscore",
    "_rankingscore",
    "similarity",
    "similarity_score",
    "certainty",
    "distance",
    "_distance",
    "$dist",
)
"""Names of the column of a score."""
RANK = ("rank", "position", "doc_position")
"""Names of the column of a rank."""
GRADE = (
    "grade",
    "rating",
    "relevance",
    "rel",
    "label",
    "relevance_label",
    "relevancy",
    "judgment",
    "judgement",
    "relevant",
    "is_relevant",
    "score",
)
"""Names of the column of a grade."""
LABEL = ("source", "label", "is_ai", "origin", "group", "author", "generated")
"""Names of the column of a label, by which documents are grouped."""
RUN_COLUMNS: Names = {"query": QUERY, "document": DOCUMENT, "score": SCORE, "rank": RANK}
"""Names of each column of a run, in the order of preference."""
QRELS_COLUMNS: Names = {"query": QUERY, "document": DOCUMENT, "grade": GRADE}
"""Names of the columns of judgments."""
CONFIDENCE: Names = {"confidence": ("confidence",)}
"""Names of the column that says how sure a judge is of each grade; few files have it."""
DISTANCES = frozenset({"distance", "_distance", "$dist", "distances"})
"""Names of scores of which smaller ones are usually better."""
_ENDINGS = {"score": ("_score",), "grade": ("_label", "_grade", "_rating", "_relevance")}
"""Endings of the names of a particular score or grade, such as ``bm25_score``."""
NOUNS = {"query": "query", "document": "id", "score": "score", "rank": "rank", "grade": "grade"}
"""Key in ``FILE:key=column`` of each column: users call the column of documents ``id``."""


def snake_case(name: str) -> str:
    """Return a name in snake case and lower case: ``doc_id`` for ``Doc ID``."""
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


def find_columns(
    names: Iterable[str], valid: Names, choices: Mapping[str, str] = {}
) -> dict[str, str]:
    """Return the name that each column has in a file: the user's choice, or the first known name.

    Parameters
    ----------
    names : iterable of str
        Names of the file's columns.
    valid : mapping
        Possible names of each column, such as `RUN_COLUMNS`.
    choices : mapping, optional
        The user's names of columns, by the keys that `NOUNS` has.

    Raises
    ------
    UserError
        If a choice is no column of the file.
    """
    names_in_file = [name.strip() for name in names]
    # Reversed, so that the first of several columns with one spelling counts.
    by_snake_case = {snake_case(name): name for name in reversed(names_in_file)}
    columns = dict[str, str]()
    for column, known in valid.items():
        choice = choices.get(NOUNS.get(column, column))
        if choice is not None:
            if choice not in names_in_file:
                raise unknown_name("column", choice, filter(None, names_in_file))
            columns[column] = choice
            continue
        name = known_name(column, known, list(by_snake_case))
        if name:
            columns[column] = by_snake_case[name]
    return columns


def known_name(column: str, known: Sequence[str], names: Sequence[str]) -> str:
    """Return the name of a column among `names`; empty if there is none.

    It is the first of the `known` names that occurs, or else the only name with an ending that
    names of this column have, such as ``bm25_score``.
    """
    for name in known:
        if name in names:
            return name
    endings = _ENDINGS.get(column, ())
    names_with_ending = [name for name in names if name.endswith(endings)] if endings else []
    return names_with_ending[0] if len(names_with_ending) == 1 else ""


def require_distinct(names: Iterable[str], columns: Mapping[str, str]) -> None:
    """Refuse a file with two spellings of a used column's name, such as Score and score.

    `names` are all names in the file; `columns` has the names of the used columns.
    """
    counts = Counter(map(snake_case, names))
    for name in columns.values():
        if counts[snake_case(name)] > 1:
            spellings = [spelling for spelling in names if snake_case(spelling) == snake_case(name)]
            both = " and ".join(map(repr, spellings))
            raise UserError(f"{both} name the same column; keep one of them")


def require_columns(
    columns: Mapping[str, str], needed: Sequence[str], *, form: str, names: Iterable[str]
) -> None:
    """Refuse a table that lacks one of the needed columns.

    Parameters
    ----------
    columns : mapping
        Names of the columns that were recognised.
    needed : sequence of str
        Columns that the table must have.
    form : str
        Format of the table, such as ``CSV``, for the message.
    names : iterable of str
        All names in the file, for the message.
    """
    missing = next((column for column in needed if column not in columns), None)
    if missing is None:
        return
    valid = {**RUN_COLUMNS, **QRELS_COLUMNS}[missing]
    came = ", ".join(names) or "none"
    raise UserError(
        f"{form}: expected a column for the {missing} ({', '.join(valid[:4])}, …), got {came}; "
        f"name it: FILE:{NOUNS[missing]}=COLUMN"
    )

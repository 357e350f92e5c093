"""Recognise columns and fields by their names: query, document, score, rank and grade."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ranktilt.errors import UserError, unknown

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
"""Names of the column of a label."""
RUN_COLUMNS: Names = {"query": QUERY, "document": DOCUMENT, "score": SCORE, "rank": RANK}
"""Names of each column of a run, in the order of preference."""
QRELS_COLUMNS: Names = {"query": QUERY, "document": DOCUMENT, "grade": GRADE}
"""Names of the columns of judgments."""
CONFIDENCE: Names = {"confidence": ("confidence",)}
"""Names of the column of how sure a judge is of a grade; few files have one."""
DISTANCES = frozenset({"distance", "_distance", "$dist", "distances"})
"""Names of scores of which smaller ones are usually better."""
_ENDINGS = {"score": ("_score",), "grade": ("_label", "_grade", "_rating", "_relevance")}
"""Endings of the names of a particular score or grade, such as ``bm25_score``."""
NOUNS = {"query": "query", "document": "id", "score": "score", "rank": "rank", "grade": "grade"}
"""Keys of the columns in ``FILE:key=column``."""


def snake_case(name: str) -> str:
    """Return a name in the spelling of this module: ``doc_id`` for ``Doc ID``."""
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


def find_columns(
    names: Iterable[str], valid: Names, choices: Mapping[str, str] = {}
) -> dict[str, str]:
    """Return the name of each column in a file: the user's choice, or the first known name.

    `choices` has the user's names by `NOUNS`; `UserError` if a name is no column of the file.
    """
    present = [name.strip() for name in names]
    by_snake_case = {snake_case(name): name for name in reversed(present)}
    columns = dict[str, str]()
    for column, known in valid.items():
        choice = choices.get(NOUNS.get(column, column))
        if choice is not None:
            columns[column] = _chosen(choice, present)
            continue
        name = known_name(column, known, list(by_snake_case))
        if name:
            columns[column] = by_snake_case[name]
    return columns


def known_name(column: str, known: Sequence[str], names: Sequence[str]) -> str:
    """Return the first known name in `names`, or the only one with a known ending; else empty."""
    for name in known:
        if name in names:
            return name
    endings = _ENDINGS.get(column, ())
    alike = [name for name in names if name.endswith(endings)] if endings else []
    return alike[0] if len(alike) == 1 else ""


def _chosen(choice: str, present: Sequence[str]) -> str:
    """Return the user's choice; refuse one that is no column."""
    if choice in present:
        return choice
    raise unknown("column", choice, filter(None, present))


def require_distinct(names: Iterable[str], columns: Mapping[str, str]) -> None:
    """Refuse two spellings of a column's name, such as Score and score."""
    counts = Counter(map(snake_case, names))
    for name in columns.values():
        if counts[snake_case(name)] > 1:
            spellings = [spelling for spelling in names if snake_case(spelling) == snake_case(name)]
            both = " and ".join(map(repr, spellings))
            raise UserError(f"{both} name the same column; keep one of them")


def require_columns(
    columns: Mapping[str, str], needed: Sequence[str], *, form: str, names: Iterable[str]
) -> None:
    """Refuse a table without one of the needed columns."""
    lacking = next((column for column in needed if column not in columns), None)
    if lacking is None:
        return
    valid = {**RUN_COLUMNS, **QRELS_COLUMNS}[lacking]
    came = ", ".join(names) or "none"
    raise UserError(
        f"{form}: expected a column for the {lacking} ({', '.join(valid[:4])}, …), got {came}; "
        f"name it: FILE:{NOUNS[lacking]}=COLUMN"
    )

"""Find the answers to queries in JSON, whatever made it.

An *answer* is the ranked documents of one query. JSON of ranked documents has few shapes: a record
for each document; a record for each query with a list inside; a response that does not name its
query; an object of queries and lists; and tables. `content_of` divides the value of a file into
answers or documents, and `answer_shape.shape_of` finds out where these have their fields. A
*sample* is the first few records, by which the shape is recognised.

In all functions, `valid` has the possible names of the columns to find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.responses.answer_tables import ID_FIELD, table_documents, table_rows
from ranktilt.data.formats.responses.hit_fields import (
    HIT_KEYS,
    SAMPLE,
    has_hit_list,
    is_number,
    is_pair,
    pick_path,
    pick_query,
    scalar_paths,
)
from ranktilt.data.formats.responses.layouts import has_path, layout_of
from ranktilt.data.formats.responses.search_responses import is_error
from ranktilt.data.formats.tables.column_names import (
    QUERY,
    TEXT_LIKE,
    Names,
    find_columns,
    snake_case,
)

QUERY_ONLY_NAMES = tuple(name for name in QUERY[: QUERY.index("query") + 1] if name != "topic")
"""Names of fields that only queries have, and no document."""
_ANSWER_LIST_KEYS = ("responses",)
"""Fields that hold the answers to several queries."""
_WORKBENCH_KEY = "judgmentRatings"
"""Key of the judgments in OpenSearch's Search Relevance Workbench."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """The values of a file."""

    values: Sequence[Any]
    """The values, each an answer or a document."""
    keys: Sequence[str] | None = None
    """Query of each value, if the values are those of an object with queries as its keys."""
    form: str = "JSON records"
    """What messages call the form of the file."""
    is_list: bool = True
    """Whether the values are those of a list, and not the one value of the file."""


def without_run_name(document: Any) -> Any:
    """Return ``{query: …}`` for ``{NAME OF THE RUN: {query: …}}``, which some tools write.

    Any other value is returned as it is.
    """
    if not isinstance(document, Mapping) or layout_of(document) is not None:
        return document
    nested = [value for value in document.values() if isinstance(value, Mapping | list) and value]
    if len(nested) != 1 or not isinstance(nested[0], Mapping):
        return document
    answers = list(nested[0].values())
    # Lists of records may as well be parts of one response, such as its web pages and its news.
    are_ids = len(document) > 1 and all(map(_holds_ids, answers))
    return nested[0] if are_ids or all(map(_is_number_map, answers)) else document


def stored_judgments(document: Any) -> Any:
    """Return the judgments in a response of an engine that stores judgments as documents.

    Any other value is returned as it is.
    """
    hits = value_at(document, "hits.hits")
    if not isinstance(hits, list):
        return document
    sources = [hit.get("_source") for hit in hits if isinstance(hit, Mapping)]
    lists = []
    for source in sources:
        if isinstance(source, Mapping) and _WORKBENCH_KEY in source:
            lists.append(source[_WORKBENCH_KEY])
    if lists and all(isinstance(judgments, list) for judgments in lists):
        return list(chain.from_iterable(lists))
    return sources or document


def _holds_ids(value: Any) -> bool:
    """Tell whether a value is a list of ids, or of ids with scores."""
    if not isinstance(value, list):
        return False
    return all(type(hit) in (str, int) or is_pair(hit) for hit in value)


def _is_number_map(value: Any) -> bool:
    """Return whether a value is ``{document: number}``, and no record with a score."""
    if not isinstance(value, Mapping) or not value or "score" in value or "rank" in value:
        return False
    return all(map(is_number, value.values()))


def content_of(document: Any, valid: Names, choices: Mapping[str, str]) -> Content:
    """Divide a JSON value into answers or documents; `choices` has the user's names of fields."""
    if isinstance(document, list):
        return Content(values=[table_documents(value) or value for value in document])
    if not isinstance(document, Mapping) or not document:
        return Content(values=[document], is_list=False)
    if "hits" in choices:
        return _content_with_lists(document, choices["hits"])
    return _content_of_object(document, valid)


def _content_of_object(document: Mapping[str, Any], valid: Names) -> Content:
    """Return the values of a file that is one object: a table, or a list of answers in it."""
    table = table_rows(document, valid)
    if table is not None:
        return Content(values=table, form="JSON table")
    for key, values in document.items():
        if isinstance(values, list) and _holds_answers(key, values, document, valid):
            return Content(values=values)
    lists = _lists_of_records(document, valid)
    if lists is not None:
        return Content(values=list(lists.values()), keys=list(lists), form="JSON lists")
    if layout_of(document) is None and _is_by_query(document):
        values = [table_documents(value) or value for value in document.values()]
        return Content(values=values, keys=list(document), form="JSON lists")
    if _has_records_by_key(document, valid):
        return Content(values=list(document.values()))
    return Content(values=[document], is_list=False)


def _content_with_lists(document: Mapping[str, Any], hits: str) -> Content:
    """Read an object as one answer, or as an object of answers by query.

    The user names the path `hits` of an answer's list of documents.
    """
    values = list(document.values())
    if value_at(document, hits) is None and any(has_path(value, hits) for value in values):
        return Content(values=values, keys=list(document))
    return Content(values=[document], is_list=False)


def _is_by_query(document: Mapping[str, Any]) -> bool:
    """Return whether an object has the answers to queries under the queries' names."""
    values = list(document.values())
    if all(isinstance(value, list) for value in values):
        return len(document) > 1 or snake_case(next(iter(document))) not in HIT_KEYS
    if not all(isinstance(value, Mapping | list) for value in values):
        return False
    sample = values[:SAMPLE]
    return 2 * sum(map(_is_answer, sample)) > len(sample)


def _is_answer(value: Any) -> bool:
    """Return whether a value has a list of documents, or an error in place of one."""
    if layout_of(value) is not None or is_error(value) or table_documents(value) is not None:
        return True
    return isinstance(value, Mapping) and bool(has_hit_list(value))


def _has_records_by_key(document: Mapping[str, Any], valid: Names) -> bool:
    """Return whether an object has records under numbers, as pandas writes rows by their index."""
    records = list(document.values())[:SAMPLE]
    if not all(isinstance(record, Mapping) for record in records):
        return False
    keys = set(scalar_paths(records))
    return len(find_columns(keys, {name: valid[name] for name in ("query", "document")})) == 2


def _holds_answers(key: str, values: list[Any], document: Mapping[str, Any], valid: Names) -> bool:
    """Return whether a list has answers, or documents that name their queries.

    The list `values` is in the object `document` under this key.
    """
    sample = values[:SAMPLE]
    if key in _ANSWER_LIST_KEYS:
        return not sample or all(isinstance(value, Mapping) for value in sample)
    if not sample:
        return False
    if all(isinstance(value, list) for value in sample):
        return snake_case(key) in HIT_KEYS and not all(map(is_pair, sample))
    if not all(isinstance(value, Mapping) for value in sample):
        return False
    if any(layout_of(value) is not None for value in sample):
        return True
    return _are_answers(key, sample, document, valid)


def _are_answers(key: str, sample: list[Any], document: Mapping[str, Any], valid: Names) -> bool:
    """Return whether records under a key are answers, or documents that name their queries."""
    paths = scalar_paths(sample)
    top_level = [path for path in paths if "." not in path]
    has_lists = has_hit_list(sample[0])
    # A record with a list and without an id, or a number, of a document is an answer.
    if has_lists and not pick_path(top_level, _id_names(valid)):
        return True
    if layout_of(document) is not None:
        return False
    if has_lists and not pick_path(top_level, _number_names(valid)):
        return True
    query = pick_query(paths, QUERY_ONLY_NAMES) if "query" in valid else ""
    if not query:
        return False
    # {query: [document, …]} may repeat the query in each document.
    return not all(value_at(value, query) == key for value in sample)


def _id_names(valid: Names) -> list[str]:
    """Return the names of a document's id, without those that may name its text."""
    return [name for name in valid["document"] if name not in TEXT_LIKE]


def _number_names(valid: Names) -> list[str]:
    """Return the names of a document's score, rank and grade."""
    return [*valid.get("score", ()), *valid.get("rank", ()), *valid.get("grade", ())]


def _lists_of_records(document: Mapping[str, Any], valid: Names) -> dict[str, list[Any]] | None:
    """Return the lists of ``{query: {document: {"score": …}}}`` by query; None for others."""
    lists = dict[str, list[Any]]()
    for query, records in document.items():
        if not isinstance(records, Mapping):
            return None
        if not all(isinstance(record, Mapping) for record in records.values()):
            return None
        lists[query] = [{**record, ID_FIELD: name} for name, record in records.items()]
    first_hit = next((hits[0] for hits in lists.values() if hits), None)
    if first_hit is None or pick_path(scalar_paths([first_hit]), _id_names(valid)) != ID_FIELD:
        return None
    other_fields = [path for path in first_hit if path != ID_FIELD]
    return lists if pick_path(other_fields, _number_names(valid)) else None

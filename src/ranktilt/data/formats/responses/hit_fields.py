"""Find the fields of records in JSON by their names, and lists of documents in records.

A *path* is the keys that lead to a field, joined by dots: ``document.url``. Its *depth* is the
number of its dots. A *hit* is one document in a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.tables.column_names import (
    DOCUMENT,
    NOUNS,
    TEXT_LIKE,
    Names,
    known_name,
    snake_case,
)
from ranktilt.errors import UserError, join_words, shorten, unknown_name

SAMPLE = 200
"""Number of first records that are examined for the paths of fields."""
_DEEPEST = 3
"""Number of levels of nested objects that are searched."""
HIT_KEYS = (
    "hits",
    "results",
    "documents",
    "docs",
    "matches",
    "candidates",
    "passages",
    "candidate_passages",
    "retrieved",
    "retrieved_docs",
    "retrieved_documents",
    "retrieved_contexts",
    "contexts",
    "ctxs",
    "nodes",
    "source_nodes",
    "points",
    "items",
    "entries",
    "ranked_results",
    "ranked_documents",
    "ranking",
    "rankings",
    "ranked_list",
    "predictions",
    "idlist",
    "search_results",
    "records",
    "rows",
    "value",
    "data",
    "result",
    "docids",
    "doc_ids",
    "ids",
    "ratings",
    "judgments",
    "judgements",
    "objects",
    "references",
)
"""Names of lists of documents; a list with another name is recognised by its records."""
NUMBER_KEYS = ("scores", "score", "similarities", "relevance_scores", "distances")
"""Names of objects of documents and scores, and of lists of scores for lists of ids."""
_ID_LIST_ENDING = "_ids"
"""Ending of the names of lists of ids."""
_QUERY_OBJECTS = ("query", "topic", "question", "search", "request")
"""Names of objects that describe a query."""
_NESTED_ID_NAMES = ("id", "_id", "qid", "number")
"""Names of a query's id in such an object."""
_WRAPPER_KEYS = ("$oid", "$numberDouble", "$numberInt", "$numberLong", "raw")
"""Keys of the objects in which MongoDB and App Search wrap a value."""


def scalar_paths(records: Sequence[Any]) -> list[str]:
    """Return the dotted paths of all plain values in some records, shallow ones first."""
    paths = dict[str, None]()
    for record in records[:SAMPLE]:
        if isinstance(record, Mapping):
            paths.update(dict.fromkeys(_paths_in(record, "", 1)))
    return sorted(paths, key=lambda path: path.count("."))


def _paths_in(record: Mapping[str, Any], prefix: str, depth: int) -> Iterator[str]:
    """Yield the paths of the plain values in a record at this depth of nesting, from 1.

    `prefix` is the path that leads to the record, with a dot at its end.
    """
    for key, value in record.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            if any(name in value for name in _WRAPPER_KEYS):
                yield path
            elif depth < _DEEPEST:
                yield from _paths_in(value, f"{path}.", depth + 1)
        elif value is not None and not isinstance(value, list):
            yield path


def pick_path(paths: Sequence[str], known: Sequence[str]) -> str:
    """Return the path whose last key is a known name; empty if there is none.

    Of several, it is the shallowest path, and of these the one whose name comes first in `known`.
    """
    for depth in sorted({path.count(".") for path in paths}):
        at_depth = [path for path in paths if path.count(".") == depth]
        path = _path_by_name(at_depth, known)
        if path:
            return path
    return ""


def _path_by_name(paths: Sequence[str], known: Sequence[str]) -> str:
    """Return the path that is a known name, or else whose last key is one."""
    by_path = {snake_case(path): path for path in reversed(paths)}
    by_key = {snake_case(path.rpartition(".")[2]): path for path in reversed(paths)}
    candidates = [by_path[name] for name in known if name in by_path]
    candidates += [by_key[name] for name in known if name in by_key]
    return candidates[0] if candidates else ""


def pick_query(paths: Sequence[str], known: Sequence[str]) -> str:
    """Return the path of a record's query: a known name, or an id in an object called ``query``."""
    top_level_path = pick_path([path for path in paths if "." not in path], known)
    if top_level_path:
        return top_level_path
    for names in (_NESTED_ID_NAMES, (*known, "text")):
        for path in paths:
            parent, _, name = path.rpartition(".")
            is_in_query = snake_case(parent.rpartition(".")[2]) in _QUERY_OBJECTS
            if is_in_query and snake_case(name) in names:
                return path
    return pick_path(paths, known)


def find_fields(records: Sequence[Any], valid: Names, choices: Mapping[str, str]) -> dict[str, str]:
    """Return the path of each column in some records: the user's choice, or a known name's path.

    `valid` has the possible names of each column, and `choices` the user's own paths. `UserError`
    if a choice is no path of a record.
    """
    paths = scalar_paths(records)
    fields = dict[str, str]()
    for column, known in valid.items():
        choice = choices.get(NOUNS[column])
        if choice is not None:
            if not any(value_at(record, choice) is not None for record in records):
                raise unknown_name("field", choice, paths[:20])
            fields[column] = choice
            continue
        path = _known_path(column, known, [path for path in paths if path not in fields.values()])
        if path:
            fields[column] = path
    return fields


def _known_path(column: str, known: Sequence[str], paths: Sequence[str]) -> str:
    """Return the path of a column by its name, or by the end of its name; empty if none matches."""
    if column == "query":
        return pick_query(paths, known)
    if column == "document":
        known = [name for name in known if name not in TEXT_LIKE]
    path = pick_path(paths, known)
    if path:
        return path
    by_name = {snake_case(candidate.rpartition(".")[2]): candidate for candidate in reversed(paths)}
    return by_name.get(known_name(column, known, list(by_name)), "")


def plain_value(value: Any) -> Any:
    """Return a value without the object in which MongoDB or App Search wraps it."""
    if isinstance(value, Mapping):
        for key in _WRAPPER_KEYS:
            if key in value:
                return value[key]
    return value


def find_hit_list(records: Sequence[Any], choice: str | None) -> str:
    """Return the path of the list of documents in some records; empty if they have none.

    `UserError` if there are several, or if the user's choice is no list.
    """
    if choice is not None:
        if not any(isinstance(value_at(record, choice), list | Mapping) for record in records):
            raise UserError(f"{shorten(choice)} does not name a list in its records")
        return choice
    hit_lists = list[tuple[str, bool]]()  # path of each list, and whether it is empty
    for record in records[:SAMPLE]:
        if isinstance(record, Mapping):
            hit_lists += _lists_in(record, "", 1)
    filled_paths = dict.fromkeys(path for path, is_empty in hit_lists if not is_empty)
    if not filled_paths:
        return next((path for path, _is_empty in hit_lists), "")
    candidates = _likeliest_lists(list(filled_paths))
    if len(candidates) > 1:
        listed = join_words([repr(path) for path in candidates])
        raise UserError(
            f"found lists of documents under {listed}; choose one: FILE:hits={candidates[0]}"
        )
    return candidates[0]


def _likeliest_lists(paths: Sequence[str]) -> list[str]:
    """Return the lists with known names; if there are none, the shallowest lists."""
    known_paths = [path for path in paths if _is_known_key(path.rpartition(".")[2])]
    least_depth = min(path.count(".") for path in paths)
    return known_paths or [path for path in paths if path.count(".") == least_depth]


def _is_known_key(key: str) -> bool:
    """Return whether a key is a known name of lists of documents."""
    name = snake_case(key)
    return name in HIT_KEYS or name.endswith(_ID_LIST_ENDING)


def has_hit_list(record: Any) -> bool:
    """Return whether a record has a list of documents in it, which may be empty."""
    return isinstance(record, Mapping) and any(True for _ in _lists_in(record, "", 1))


def _lists_in(record: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, bool]]:
    """Yield the path of each list of documents in a record, and whether the list is empty.

    `prefix` is the path that leads to the record, with a dot at its end, and `depth` the record's
    depth of nesting, from 1.
    """
    for key, value in record.items():
        path = f"{prefix}{key}"
        if isinstance(value, list):
            if is_hit_list(value, is_known=_is_known_key(key)):
                yield path, False
            elif not value and _is_known_key(key):
                yield path, True
        elif isinstance(value, Mapping):
            if _is_score_map(key, value):
                yield path, False
            elif depth < _DEEPEST:
                yield from _lists_in(value, f"{path}.", depth + 1)


def _is_score_map(key: str, value: Mapping[str, Any]) -> bool:
    """Return whether an object has a score for each document."""
    if not _is_known_key(key) and snake_case(key) not in NUMBER_KEYS:
        return False
    return bool(value) and all(map(is_number, value.values()))


def is_hit_list(values: Sequence[Any], *, is_known: bool) -> bool:
    """Return whether a list has documents.

    Records are documents if they have an id. If the list has a known name, any records are, and so
    are ids, and pairs of an id and a score.
    """
    if not values:
        return False
    first = values[0]
    if not isinstance(first, Mapping):
        return is_known and (isinstance(first, list) or type(first) in (str, int))
    if not all(isinstance(value, Mapping) for value in values[:SAMPLE]):
        return False
    id_names = [name for name in DOCUMENT if name not in TEXT_LIKE]
    return is_known or bool(pick_path(scalar_paths(values[:5]), id_names))


def is_pair(value: Any) -> bool:
    """Return whether a value is an id and a score."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and type(value[0]) in (str, int)
        and (value[1] is None or is_number(value[1]))
    )


def is_number(value: Any) -> bool:
    """Return whether a value of JSON is a number."""
    return type(value) in (int, float)

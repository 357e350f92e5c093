"""Find the fields of answers in JSON: paths of the query, the documents, their ids and scores.

A *path* is the keys that lead to a field, joined by dots: ``hits.hits``. A *value* of a file is an
answer, which holds the documents of one query, or is one document itself. A *hit* is one document
in an answer. `shape_of` examines the first values of a file and returns a `ValueShape`, which then
finds query and documents in every value. `ValueShape.read_as` tells the user how a file is read. If
two readings are possible, none is chosen, and the error asks the user. A *layout* here is the
documented form of one producer's responses.

In all functions, `valid` has the possible names of the columns to find, and `choices` the user's
own names of fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.responses.answer_tables import ID_FIELD, SCORE_FIELD, as_record
from ranktilt.data.formats.responses.answers import QUERY_ONLY_NAMES, Content
from ranktilt.data.formats.responses.hit_fields import (
    NUMBER_KEYS,
    SAMPLE,
    find_fields,
    find_hit_list,
    pick_path,
    pick_query,
    plain_value,
    scalar_paths,
)
from ranktilt.data.formats.responses.layouts import (
    ResponseLayout,
    first_path,
    has_path,
    hits_at,
    layout_of,
)
from ranktilt.data.formats.responses.search_responses import is_error, signs_of_fault
from ranktilt.data.formats.tables.column_names import (
    NOUNS,
    QUERY,
    Names,
    require_distinct,
    snake_case,
)
from ranktilt.errors import UserError, shorten, unknown_name

_MOST_HITS = 2_000
"""Most documents to examine for the paths of fields."""
_QUERY_ID_NAMES = QUERY[: QUERY.index("query")]
"""Names of a query's id; those after them in `QUERY` are names of its text too."""
_UNUSUAL_QUERY_NAMES = ("id", "_id", "name", "key")
"""Names of the query in an answer that has none of `QUERY`, as in requests for an evaluation."""


@dataclass(frozen=True, kw_only=True)
class ValueShape:
    """Where the values of a file have their fields."""

    form: str
    """Words for the values, such as ``JSON answers``."""
    fields: dict[str, str]
    """Path of each column in a document's record; if `is_flat`, in the value itself."""
    query: str = ""
    """Path of the query in a value; empty if values do not name it."""
    hits: str = ""
    """Path of the list of documents in a value."""
    hit_query: str = ""
    """Path of the query's id in each document, if the value itself has only its text."""
    numbers: str = ""
    """Path of a second list with the scores, if the list of documents has only ids."""
    is_flat: bool = False
    """Whether a value is one document, and not an answer with a list of documents."""
    is_list: bool = False
    """Whether a value is itself the list of documents."""
    layout: ResponseLayout | None = None
    """Layout of a known producer's responses; None for other files."""
    is_response: bool = False
    """Whether a value is a response, which may be an error instead of an answer."""

    @property
    def names_no_ids(self) -> bool:
        """Whether values lack the id of their query.

        Responses have the query's text at most, and lists have nothing.
        """
        return not self.is_flat and (self.is_response or self.is_list)

    def has_bare_ids(self, values: Sequence[Any]) -> bool:
        """Return whether documents are ids alone, as in lists of relevant documents."""
        lists = [self.hits_of(value) or [] for value in values[:SAMPLE]]
        return not self.is_flat and all(
            set(hit) == {ID_FIELD} for hit in chain.from_iterable(lists)
        )

    def query_of(self, value: Any) -> Any:
        """Return the query of a value; None if the value does not name it."""
        if self.hit_query:
            hits = hits_at(value, self.hits)
            name = value_at(hits[0], self.hit_query) if isinstance(hits, list) and hits else None
            if name is not None:
                return plain_value(name)
        return plain_value(value_at(value, self.query)) if self.query else None

    def hits_of(self, value: Any) -> list[Any] | None:
        """Return the documents of a value, best first; None if it has no list."""
        if self.is_flat:
            return [value]
        hits = value if self.is_list else hits_at(value, self.hits)
        if hits is None and self.layout is not None and self.layout.may_lack_hits:
            return []
        if isinstance(hits, Mapping):
            return [{ID_FIELD: name, SCORE_FIELD: number} for name, number in hits.items()]
        if not isinstance(hits, list):
            return None
        if self.numbers:
            return _with_numbers(hits, value_at(value, self.numbers), self.fields)
        if set(map(type, hits)) <= {dict}:
            return hits
        return [as_record(hit) for hit in hits]

    def fault_of(self, value: Any) -> str:
        """Say why a value is an error or a partial response; empty if it is a full answer."""
        if self.is_flat:
            return ""
        fault = signs_of_fault(value) if self.is_response and isinstance(value, Mapping) else ""
        if fault or self.hits_of(value) is not None:
            return fault
        return f"no list under {self.hits}" if self.hits else f"no list: {shorten(value)}"

    def read_as(self, columns: Sequence[str], *, is_by_place: bool) -> str:
        """Describe how the file is read, with the paths of `columns`.

        `is_by_place` says whether documents are ordered by their place in the list.
        """
        paths = [self.fields[column] for column in columns if column in self.fields]
        if not self.fields:
            return f"{self.form} without documents"
        query_path = f"{self.hits}.{self.hit_query}" if self.hit_query else self.query
        list_path = f"{self.hits}: " if self.hits and self.layout is None else ""
        parts = [query_path] if query_path else []
        parts.append(list_path + ", ".join(paths))
        order = ", in their order" if is_by_place else ""
        return f"{self.form}: {', '.join(parts)}{order}"


def _with_numbers(ids: list[Any], numbers: Any, fields: Mapping[str, str]) -> list[Any] | None:
    """Return ids with their scores from another list; None if it has another length."""
    if not isinstance(numbers, list) or len(numbers) != len(ids):
        return None
    name = fields["score"]
    return [{ID_FIELD: doc, name: number} for doc, number in zip(ids, numbers, strict=True)]


def shape_of(content: Content, valid: Names, choices: Mapping[str, str]) -> ValueShape:
    """Find the fields in the values of a file; `UserError` if several readings are possible."""
    sample = content.values[:SAMPLE]
    if any(isinstance(value, list) for value in sample):
        return _shape_of_lists(content, sample, valid, choices)
    records = [value for value in sample if isinstance(value, Mapping)]
    if not records:
        came = shorten(sample[0] if sample else [])
        raise UserError(f"expected answers or documents, got {came}")
    return _shape_of_records(content, records, valid, choices)


def _shape_of_records(
    content: Content, records: Sequence[Any], valid: Names, choices: Mapping[str, str]
) -> ValueShape:
    """Find the fields of objects: responses, answers with a list, or documents."""
    layouts = [layout for layout in map(layout_of, records) if layout is not None]
    if layouts and "hits" not in choices:
        return _shape_of_responses(layouts[0], records, valid, choices)
    hits = find_hit_list(records, choices.get("hits"))
    if hits and ("hits" in choices or not _are_documents(records, valid, choices)):
        return _shape_of_answers(content, records, hits, valid=valid, choices=choices)
    fields = find_fields(records, valid, choices)
    if is_error(records[0]) and not {"query", "document"} <= fields.keys():
        return ValueShape(form="responses to searches", fields={}, hits="hits", is_response=True)
    require_distinct(list(records[0]), fields)
    query = fields.get("query", "")
    return ValueShape(form=content.form, fields=fields, query=query, is_flat=True)


def _are_documents(records: Sequence[Any], valid: Names, choices: Mapping[str, str]) -> bool:
    """Return whether records with lists in them are documents: they have all fields of one."""
    present_choices = dict[str, str]()
    for key, path in choices.items():
        if _any_has(records, path):
            present_choices[key] = path
    fields = find_fields(records, valid, present_choices)
    numbers = [fields[column] for column in ("score", "rank", "grade") if column in fields]
    has_number = any("." not in path for path in numbers)  # at the top level of the record
    has_ids = {"query", "document"} <= fields.keys()
    return has_ids and has_number and present_choices == dict(choices)


def _shape_of_lists(
    content: Content, sample: Sequence[Any], valid: Names, choices: Mapping[str, str]
) -> ValueShape:
    """Find the fields of lists of documents, one list per answer."""
    documents = list[Any]()
    for hits in sample:
        _refuse_row(content, hits)
        if isinstance(hits, list):
            documents += map(as_record, hits)
    records = [hit for hit in documents[:_MOST_HITS] if isinstance(hit, Mapping)]
    fields = find_fields(records, _document_columns(valid), choices)
    require_distinct(_keys(records), fields)
    form = content.form if content.keys is not None else "JSON lists"
    return ValueShape(form=form, fields=fields, is_list=True)


def _refuse_row(content: Content, values: Any) -> None:
    """Refuse a row of a table without names, which looks like a list of ids."""
    if content.keys is not None or not isinstance(values, list):
        return
    types = set(map(type, values))
    if str in types and not types.isdisjoint({int, float}):
        expected = "expected lists of documents, or records with names"
        raise UserError(f"{expected}, got a row without column names: {shorten(values)}")


def _shape_of_responses(
    layout: ResponseLayout, records: Sequence[Any], valid: Names, choices: Mapping[str, str]
) -> ValueShape:
    """Find the fields of responses in the layout of a known producer."""
    documents = list[Any]()
    for record in records:
        hits = hits_at(record, layout.hits)
        documents += hits if isinstance(hits, list) else []
    documents = [as_record(hit) for hit in documents[:_MOST_HITS]]
    query = choices.get("query", "") or _first_path(records, layout.query)
    if not query:
        query = pick_query(_top_level(scalar_paths(records)), QUERY_ONLY_NAMES)
    return ValueShape(
        form=f"responses of {layout.producer}",
        fields=_fields_of_layout(layout, documents, valid, choices),
        query=query,
        hits=layout.hits,
        layout=layout,
        is_response=True,
    )


def _fields_of_layout(
    layout: ResponseLayout, documents: Sequence[Any], valid: Names, choices: Mapping[str, str]
) -> dict[str, str]:
    """Return the path of each column: the user's choice, the layout's, or a known name's."""
    fields = find_fields(documents, _document_columns(valid), choices)
    layout_paths = {"document": layout.document, "score": layout.score, "rank": layout.rank}
    for column, paths in layout_paths.items():
        if not paths or column not in valid or NOUNS[column] in choices:
            continue
        present = [path for path in paths if _any_has(documents, path)]
        fields.pop(column, None)
        if present:
            fields[column] = present[0]
    return fields


def _shape_of_answers(
    content: Content,
    records: Sequence[Any],
    hits: str,
    *,
    valid: Names,
    choices: Mapping[str, str],
) -> ValueShape:
    """Find the fields of answers that hold a list of documents, at the path `hits`."""
    documents = _documents_at(records, hits)
    fields = find_fields(documents[:_MOST_HITS], _document_columns(valid), choices)
    require_distinct(_keys(documents[:_MOST_HITS]), fields)
    paths = [path for path in scalar_paths(records) if not path.startswith(f"{hits}.")]
    query = choices.get("query", "")
    if query and not _any_has(records, query):
        raise unknown_name("field", query, paths[:20])
    query = query or pick_query(paths, valid["query"])
    # An answer that does not name its query is read as the response of an engine.
    is_response = not query
    if not query and content.is_list:
        query = pick_path(_top_level(paths), _UNUSUAL_QUERY_NAMES)
    if content.keys is not None:
        query = ""
    form = "JSON answers" if query or content.keys is not None else "responses to searches"
    numbers = _path_of_numbers(records, hits, documents) if "score" in valid else ""
    if numbers:
        # Hits get a field for the score, named as the list in the singular: ``distance``.
        fields["score"] = snake_case(numbers.rpartition(".")[2]).removesuffix("s")
    return ValueShape(
        form=form,
        fields=fields,
        query=query,
        hits=hits,
        hit_query=_id_in_hits(query, documents),
        numbers=numbers,
        is_response=is_response,
    )


def _documents_at(records: Sequence[Any], hits: str) -> list[Any]:
    """Return the documents of some answers as records; `hits` is the path of their list."""
    documents = list[Any]()
    for record in records:
        values = value_at(record, hits)
        if isinstance(values, Mapping):
            documents += [{ID_FIELD: name, SCORE_FIELD: number} for name, number in values.items()]
        elif isinstance(values, list):
            documents += map(as_record, values)
    return documents


def _id_in_hits(query: str, documents: Sequence[Any]) -> str:
    """Return the path of the query's id in documents, if their answer has only its text.

    `query` is the path of the query in the answer. rank_llm wrote such files.
    """
    if not query or snake_case(query.rpartition(".")[2]) in _QUERY_ID_NAMES:
        return ""
    records = [document for document in documents if isinstance(document, Mapping)]
    return pick_path(scalar_paths(records), _QUERY_ID_NAMES)


def _path_of_numbers(records: Sequence[Any], hits: str, documents: Sequence[Any]) -> str:
    """Return the path of lists of scores next to lists of ids; empty if there are none.

    `hits` is the path of the lists of ids.
    """
    if not documents or any(set(document) != {ID_FIELD} for document in documents):
        return ""
    parent = hits.rpartition(".")[0]
    for record in records:
        siblings = value_at(record, parent) if parent else record
        key = _number_key(siblings)
        if key:
            return f"{parent}.{key}" if parent else key
    return ""


def _number_key(siblings: Any) -> str:
    """Return the first key of an object that has a list of scores; empty if none has."""
    if not isinstance(siblings, Mapping):
        return ""
    for key, values in siblings.items():
        if snake_case(key) in NUMBER_KEYS and isinstance(values, list):
            return str(key)
    return ""


def _any_has(records: Sequence[Any], path: str) -> bool:
    """Tell whether any record has a value at a path."""
    return any(has_path(record, path) for record in records)


def _top_level(paths: Sequence[str]) -> list[str]:
    """Return the paths that lead to no nested field."""
    return [path for path in paths if "." not in path]


def _document_columns(valid: Names) -> Names:
    """Return the columns of a document in an answer: all but the query."""
    return {column: known for column, known in valid.items() if column != "query"}


def _keys(records: Sequence[Any]) -> list[str]:
    """Return the keys of some records, in the order of appearance."""
    return list(dict.fromkeys(chain.from_iterable(records)))


def sample_keys(records: Sequence[Any]) -> list[str]:
    """Return the keys of the first records, in the order of appearance."""
    return _keys(records[:SAMPLE])


def _first_path(records: Sequence[Any], paths: Sequence[str]) -> str:
    """Return the first path at which any record has a value; empty for none."""
    for record in records:
        path = first_path(record, paths)
        if path:
            return path
    return ""

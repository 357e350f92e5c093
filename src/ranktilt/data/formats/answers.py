"""Answers to queries in JSON, whatever made them: which value is an answer, where its documents are.

JSON of ranked documents has few shapes: a record a document, a record a query with a list inside, a
response that does not name its query, lists by query, and tables. `shape_of` finds out which one a
file has, from its first values, and `ValueShape.hits` takes any value apart by it. What was understood is
said (`ValueShape.form` and its fields); where two readings are possible, none is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ranktilt.data.formats.column_names import (
    NOUNS,
    QUERY,
    TEXT_LIKE,
    Names,
    find_columns,
    folded,
    require_distinct,
)
from ranktilt.data.formats.hit_fields import (
    HIT_KEYS,
    NUMBER_KEYS,
    SAMPLE,
    find_fields,
    find_hit_list,
    has_hit_list,
    is_number,
    is_pair,
    pick_path,
    pick_query,
    plain_value,
    scalar_paths,
)
from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.response_layouts import (
    ResponseLayout,
    first_path,
    has_path,
    hits_at,
    layout_of,
)
from ranktilt.data.formats.search_responses import is_error, signs_of_fault
from ranktilt.errors import UserError, shorten, unknown

PLACE, VALUE = "id", "score"
"""Fields of a hit that is no record: its id, and its score."""
_MOST_HITS = 2_000
"""Documents that are looked at to find out where fields lie."""
_STRONG_QUERY = tuple(name for name in QUERY[: QUERY.index("query") + 1] if name != "topic")
"""Names of queries that a document would hardly have for something else."""
_IDS_OF_QUERIES = QUERY[: QUERY.index("query")]
"""Names of ids of queries, not of their texts."""
_NAMES = ("id", "_id", "name", "key")
"""Names of an answer that has a list and calls nothing a query, as in requests for an evaluation."""
_ANSWER_LISTS = ("responses",)
_HEADS = ("columns", "schema", "manifest.columns")
"""Paths of the names of a table's columns, the last of Databricks."""
_BODIES = ("data", "rows", "datarows", "result.data_array")
"""Paths of its rows."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """Values of a file, each an answer or a document."""

    values: Sequence[Any]
    keys: Sequence[str] | None = None
    """The query of each value, where an object names them."""
    form: str = "JSON records"
    is_list: bool = True
    """Whether the values lie in a list, and are not one value that is the whole file."""


@dataclass(frozen=True, kw_only=True)
class ValueShape:
    """How the values of a file are read."""

    form: str
    """What they are, in words."""
    fields: dict[str, str]
    """Path of each column in a document's record, or in the value itself."""
    query: str = ""
    """Path of the query in a value; empty where values do not name it."""
    hits: str = ""
    """Path of the list in a value."""
    hit_query: str = ""
    """Path of the query's id in each document, where the value itself has its text alone."""
    numbers: str = ""
    """Path of a list of scores that stands beside a list of ids."""
    is_flat: bool = False
    """Whether a value is a document itself."""
    is_list: bool = False
    """Whether a value is a list of documents itself."""
    layout: ResponseLayout | None = None
    is_response: bool = False
    """Whether a value may be an error in place of an answer."""

    @property
    def names_no_ids(self) -> bool:
        """Whether values are responses or bare lists, which repeat at most the text of their queries."""
        return not self.is_flat and (self.is_response or self.is_list)

    def query_of(self, value: Any) -> Any:
        """Return the query that a value names; None where it names none."""
        if self.hit_query:
            hits = hits_at(value, self.hits)
            name = value_at(hits[0], self.hit_query) if isinstance(hits, list) and hits else None
            if name is not None:
                return plain_value(name)
        return plain_value(value_at(value, self.query)) if self.query else None

    def hits_of(self, value: Any) -> list[Any] | None:
        """Return the documents of a value, best first; None where it has no list."""
        if self.is_flat:
            return [value]
        hits = value if self.is_list else hits_at(value, self.hits)
        if hits is None and self.layout is not None and self.layout.may_lack_hits:
            return []
        if isinstance(hits, Mapping):
            return [{PLACE: name, VALUE: number} for name, number in hits.items()]
        if not isinstance(hits, list):
            return None
        if self.numbers:
            return _with_numbers(hits, value_at(value, self.numbers), self.fields)
        if set(map(type, hits)) <= {dict}:
            return hits
        return [_as_record(hit) for hit in hits]

    def fault_of(self, value: Any) -> str:
        """Say why a value is an error or a partial response; empty where it is whole."""
        if self.is_flat:
            return ""
        fault = signs_of_fault(value) if self.is_response and isinstance(value, Mapping) else ""
        if fault or self.hits_of(value) is not None:
            return fault
        return f"no list under {self.hits}" if self.hits else f"no list: {shorten(value)}"

    def read_as(self, columns: Sequence[str], *, is_by_place: bool) -> str:
        """Say what was understood of the file."""
        paths = [self.fields[column] for column in columns if column in self.fields]
        if not self.fields:
            return f"{self.form} without documents"
        query = [f"{self.hits}.{self.hit_query}" if self.hit_query else self.query]
        query = [path for path in query if path]
        within = f"{self.hits}: " if self.hits and self.layout is None else ""
        order = ", in their order" if is_by_place else ""
        return f"{self.form}: {', '.join([*query, within + ', '.join(paths)])}{order}"


def _with_numbers(ids: list[Any], numbers: Any, fields: Mapping[str, str]) -> list[Any] | None:
    """Return ids with the scores beside them; None where these are not as many."""
    if not isinstance(numbers, list) or len(numbers) != len(ids):
        return None
    name = fields["score"]
    return [{PLACE: doc, name: number} for doc, number in zip(ids, numbers, strict=True)]


def _as_record(hit: Any) -> Any:
    """Return a hit as a record; of a bare id, or of an id and a score, their places."""
    if isinstance(hit, Mapping):
        return hit
    if is_pair(hit):
        return {PLACE: hit[0], VALUE: hit[1]}
    if isinstance(hit, list):
        expected = "expected documents as ids, as pairs of id and score, or as records"
        raise UserError(f"{expected}, got {shorten(hit)}")
    return {PLACE: hit}


def unwrapped(document: Any) -> Any:
    """Return ``{query: …}`` without an object around it that has its name; any other value as it is."""
    if not isinstance(document, Mapping) or layout_of(document) is not None:
        return document
    nested = [value for value in document.values() if isinstance(value, Mapping | list) and value]
    if len(nested) != 1 or not isinstance(nested[0], Mapping):
        return document
    answers = list(nested[0].values())
    # Lists of records may as well be parts of one response, such as its web pages and its news.
    are_ids = len(document) > 1 and all(map(_holds_ids, answers))
    return nested[0] if are_ids or all(map(_is_number_map, answers)) else document


def _holds_ids(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(type(hit) in (str, int) or is_pair(hit) for hit in value)


def _is_number_map(value: Any) -> bool:
    """Return whether a value is ``{document: number}``, and no record with a score."""
    if not isinstance(value, Mapping) or not value or "score" in value or "rank" in value:
        return False
    return all(map(is_number, value.values()))


def content_of(document: Any, valid: Names, choices: Mapping[str, str]) -> Content:
    """Take a JSON value apart into answers or documents."""
    if isinstance(document, list):
        return Content(values=[one_table(value) or value for value in document])
    if not isinstance(document, Mapping) or not document:
        return Content(values=[document], is_list=False)
    if "hits" in choices:
        return _content_by_name(document, choices["hits"])
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
        values = [one_table(value) or value for value in document.values()]
        return Content(values=values, keys=list(document), form="JSON lists")
    if _has_records_by_key(document, valid):
        return Content(values=list(document.values()))
    return Content(values=[document], is_list=False)


def _content_by_name(document: Mapping[str, Any], hits: str) -> Content:
    """Take a document for one answer, or for an answer a query where these have the list that a user named."""
    values = list(document.values())
    if value_at(document, hits) is None and any(has_path(value, hits) for value in values):
        return Content(values=values, keys=list(document))
    return Content(values=[document], is_list=False)


def _is_by_query(document: Mapping[str, Any]) -> bool:
    """Return whether an object holds an answer for each query, under the query's name."""
    values = list(document.values())
    if all(isinstance(value, list) for value in values):
        return len(document) > 1 or folded(next(iter(document))) not in HIT_KEYS
    if not all(isinstance(value, Mapping | list) for value in values):
        return False
    sample = values[:SAMPLE]
    return 2 * sum(map(_is_answer, sample)) > len(sample)


def _is_answer(value: Any) -> bool:
    """Return whether a value holds a list of documents, or an error in place of one."""
    if layout_of(value) is not None or is_error(value) or one_table(value) is not None:
        return True
    return isinstance(value, Mapping) and bool(has_hit_list(value))


def _has_records_by_key(document: Mapping[str, Any], valid: Names) -> bool:
    """Return whether an object holds records under numbers, as pandas writes rows by their index."""
    records = list(document.values())[:SAMPLE]
    if not all(isinstance(record, Mapping) for record in records):
        return False
    keys = set(scalar_paths(records))
    return len(find_columns(keys, {name: valid[name] for name in ("query", "document")})) == 2


def _holds_answers(key: str, values: list[Any], document: Mapping[str, Any], valid: Names) -> bool:
    """Return whether a list within an object is one of answers, or of documents that name their queries."""
    sample = values[:SAMPLE]
    if key in _ANSWER_LISTS:
        return not sample or all(isinstance(value, Mapping) for value in sample)
    if not sample:
        return False
    if all(isinstance(value, list) for value in sample):
        return folded(key) in HIT_KEYS and not all(map(is_pair, sample))
    if not all(isinstance(value, Mapping) for value in sample):
        return False
    if any(layout_of(value) is not None for value in sample):
        return True
    paths = scalar_paths(sample)
    top_level = [path for path in paths if "." not in path]
    has_lists = has_hit_list(sample[0])
    if has_lists and not pick_path(top_level, _plain_ids(valid)):
        return True
    if layout_of(document) is not None:
        return False
    numbers = [*valid.get("score", ()), *valid.get("rank", ()), *valid.get("grade", ())]
    if has_lists and not pick_path(top_level, numbers):
        return True
    query = pick_query(paths, _STRONG_QUERY) if "query" in valid else ""
    if not query:
        return False
    # {query: [document, …]} may repeat the query in each document.
    return not all(value_at(value, query) == key for value in sample)


def _plain_ids(valid: Names) -> list[str]:
    return [name for name in valid["document"] if name not in TEXT_LIKE]


def _lists_of_records(document: Mapping[str, Any], valid: Names) -> dict[str, list[Any]] | None:
    """Return the lists of ``{query: {document: {"score": …}}}``, whose documents are records under their ids."""
    numbers = [*valid.get("score", ()), *valid.get("rank", ()), *valid.get("grade", ())]
    lists = dict[str, list[Any]]()
    for query, records in document.items():
        if not isinstance(records, Mapping):
            return None
        if not all(isinstance(record, Mapping) for record in records.values()):
            return None
        lists[query] = [{**record, PLACE: name} for name, record in records.items()]
    first = next((hits[0] for hits in lists.values() if hits), None)
    if first is None or pick_path(scalar_paths([first]), _plain_ids(valid)) != PLACE:
        return None
    return lists if pick_path([path for path in first if path != PLACE], numbers) else None


def table_rows(document: Mapping[str, Any], valid: Names) -> list[Any] | None:
    """Return the rows of a table that is written as columns; None where an object is no table."""
    rows = _rows_below_names(document)
    if rows is not None:
        return rows
    if isinstance(document.get("ids"), list):
        return _parallel_lists(document)
    needed = {name: valid[name] for name in ("query", "document")}
    if len(find_columns(document, needed)) < len(needed):
        return None
    return _rows_of_columns(document)


def one_table(value: Any) -> list[Any] | None:
    """Return the documents of an answer that is written as a table, or as lists of ids and scores; else None."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("ids"), list):
        answers = _parallel_lists(value)
        return answers[0] if answers is not None and len(answers) == 1 else None
    return _rows_below_names(value)


def _rows_below_names(document: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of a table whose columns are named apart from them, as of SQL and pandas."""
    names = _first_list(document, _HEADS)
    body = _first_list(document, _BODIES)
    if names is None or body is None:
        return None
    heads = [str(value_at(name, "name") or name) for name in names]
    if not all(isinstance(row, list) and len(row) == len(heads) for row in body):
        return None
    return [dict(zip(heads, row, strict=True)) for row in body]


def _first_list(document: Mapping[str, Any], paths: Sequence[str]) -> list[Any] | None:
    for path in paths:
        values = value_at(document, path)
        if isinstance(values, list):
            return values
    return None


def _parallel_lists(document: Mapping[str, Any]) -> list[Any] | None:
    """Return the answers that Chroma writes as lists of ids beside lists of distances."""
    scores = next((key for key in ("distances", "scores") if document.get(key)), "")
    ids, numbers = document["ids"], document.get(scores)
    if not ids or not all(isinstance(names, list) for names in ids):
        return None
    name = scores.removesuffix("s")
    if numbers is None:
        return [list(map(_as_record, names)) for names in ids]
    if len(numbers) != len(ids):
        return None
    answers = list[Any]()
    for names, values in zip(ids, numbers, strict=True):
        if not isinstance(values, list) or len(names) != len(values):
            return None
        answers.append(
            [{PLACE: doc, name: value} for doc, value in zip(names, values, strict=True)]
        )
    return answers


def _rows_of_columns(document: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of ``{column: [cell, …]}`` or, as pandas writes it, ``{column: {row: cell}}``."""
    columns = list(document.values())
    if all(isinstance(cells, Mapping) for cells in columns):
        rows = list(columns[0])
        if any(list(cells) != rows for cells in columns):
            return None
        columns = [list(cells.values()) for cells in columns]
    if not all(isinstance(cells, list) for cells in columns):
        return None
    if len(set(map(len, columns))) > 1:
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]


def shape_of(content: Content, valid: Names, choices: Mapping[str, str]) -> ValueShape:
    """Find out how the values of a file are read; `UserError` where that cannot be told."""
    sample = content.values[:SAMPLE]
    records = [value for value in sample if isinstance(value, Mapping)]
    if any(isinstance(value, list) for value in sample):
        return _shape_of_lists(content, sample, valid, choices)
    if not records:
        raise UserError(
            f"expected answers or documents, got {shorten(sample[0] if sample else [])}"
        )
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
    """Return whether records that have lists in them are documents all the same: they name all that a document has."""
    present = dict[str, str]()
    for key, path in choices.items():
        if any(has_path(record, path) for record in records):
            present[key] = path
    fields = find_fields(records, valid, present)
    has_number = any("." not in fields.get(name, ".") for name in ("score", "rank", "grade"))
    return {"query", "document"} <= fields.keys() and has_number and present == dict(choices)


def _shape_of_lists(
    content: Content, sample: Sequence[Any], valid: Names, choices: Mapping[str, str]
) -> ValueShape:
    documents = list[Any]()
    for hits in sample:
        _refuse_row(content, hits)
        documents += map(_as_record, hits) if isinstance(hits, list) else ()
    records = [hit for hit in documents[:_MOST_HITS] if isinstance(hit, Mapping)]
    fields = find_fields(records, _of_hits(valid), choices)
    require_distinct(_keys(records), fields)
    form = content.form if content.keys is not None else "JSON lists"
    return ValueShape(form=form, fields=fields, is_list=True)


def _refuse_row(content: Content, values: Any) -> None:
    """Refuse a row of a table without names, which a list of ids may look like."""
    if content.keys is not None or not isinstance(values, list):
        return
    kinds = set(map(type, values))
    if str in kinds and not kinds.isdisjoint({int, float}):
        expected = "expected lists of documents, or records with names"
        raise UserError(f"{expected}, got a row without names: {shorten(values)}")


def _shape_of_responses(
    layout: ResponseLayout, records: Sequence[Any], valid: Names, choices: Mapping[str, str]
) -> ValueShape:
    documents = list[Any]()
    for record in records:
        hits = hits_at(record, layout.hits)
        documents += hits if isinstance(hits, list) else []
    documents = [_as_record(hit) for hit in documents[:_MOST_HITS]]
    fields = find_fields(documents, _of_hits(valid), choices)
    known = {"document": layout.document, "score": layout.score, "rank": layout.rank}
    for column, paths in known.items():
        if not paths or column not in valid or NOUNS[column] in choices:
            continue
        fields.pop(column, None)
        for path in paths:
            if any(has_path(hit, path) for hit in documents):
                fields[column] = path
                break
    query = choices.get("query", "") or _first_path(records, layout.query)
    if not query:
        query = pick_query(
            [path for path in scalar_paths(records) if "." not in path], _STRONG_QUERY
        )
    return ValueShape(
        form=f"responses of {layout.producer}",
        fields=fields,
        query=query,
        hits=layout.hits,
        layout=layout,
        is_response=True,
    )


def _shape_of_answers(
    content: Content,
    records: Sequence[Any],
    hits: str,
    *,
    valid: Names,
    choices: Mapping[str, str],
) -> ValueShape:
    documents = list[Any]()
    for record in records:
        values = value_at(record, hits)
        if isinstance(values, Mapping):
            documents += [{PLACE: name, VALUE: number} for name, number in values.items()]
        elif isinstance(values, list):
            documents += map(_as_record, values)
    fields = find_fields(documents[:_MOST_HITS], _of_hits(valid), choices)
    require_distinct(_keys(documents[:_MOST_HITS]), fields)
    paths = [path for path in scalar_paths(records) if not path.startswith(f"{hits}.")]
    query = choices.get("query", "")
    if query and not any(has_path(record, query) for record in records):
        raise unknown("field", query, paths[:20])
    query = query or pick_query(paths, valid["query"])
    is_response = not query
    if not query and content.is_list:
        query = pick_path([path for path in paths if "." not in path], _NAMES)
    if content.keys is not None:
        query = ""
    form = "JSON answers" if query or content.keys is not None else "responses to searches"
    numbers = _numbers_beside(records, hits, documents) if "score" in valid else ""
    if numbers:
        fields["score"] = folded(numbers.rpartition(".")[2]).removesuffix("s")
    return ValueShape(
        form=form,
        fields=fields,
        query=query,
        hits=hits,
        hit_query=_id_in_hits(query, documents),
        numbers=numbers,
        is_response=is_response,
    )


def _id_in_hits(query: str, documents: Sequence[Any]) -> str:
    """Return the path of the query's id in documents whose answer has its text alone, as rank_llm wrote them."""
    if not query or folded(query.rpartition(".")[2]) in _IDS_OF_QUERIES:
        return ""
    records = [document for document in documents if isinstance(document, Mapping)]
    return pick_path(scalar_paths(records), _IDS_OF_QUERIES)


def _numbers_beside(records: Sequence[Any], hits: str, documents: Sequence[Any]) -> str:
    """Return the path of the lists of scores that stand beside lists of bare ids; empty where there are none."""
    if not documents or any(set(document) != {PLACE} for document in documents):
        return ""
    parent = hits.rpartition(".")[0]
    for record in records:
        siblings = value_at(record, parent) if parent else record
        lists = siblings if isinstance(siblings, Mapping) else {}
        for key in lists:
            if folded(key) in NUMBER_KEYS and isinstance(lists[key], list):
                return f"{parent}.{key}" if parent else key
    return ""


def _of_hits(valid: Names) -> Names:
    """Return the columns that a document within a list has."""
    return {column: known for column, known in valid.items() if column != "query"}


def _keys(records: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(records)))


def _first_path(records: Sequence[Any], paths: Sequence[str]) -> str:
    for record in records:
        path = first_path(record, paths)
        if path:
            return path
    return ""

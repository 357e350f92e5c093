"""Read answers with citations from a file or a folder of any layout.

A *record* is the JSON object of one answer; the first record tells the layout. It may be a
*wrapper*, a record of the user's around the *response* of an engine. An engine may *consult* a
page, read it to write the answer, without citing it. Several answers to one query are *repeats*.
The *origin* of a record is the file and line that it was read from.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import polars as pl

from ranktilt.data.answers import ANSWER_SCHEMA, PAGE_SCHEMA, Answers
from ranktilt.data.files import require_path, rereadable_file
from ranktilt.data.formats.citations import (
    anthropic,
    gemini,
    numbered_text,
    openai,
    perplexity,
    plain_records,
    serpapi,
    trec_rag,
)
from ranktilt.data.formats.citations.base import AnswerRecord, first_text, mapping_in
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.json_values import read_document, read_lines
from ranktilt.data.formats.recognition import recognise
from ranktilt.data.formats.responses.folder import query_name, response_files
from ranktilt.data.page_urls import CUT_OFF, is_address, page_key
from ranktilt.errors import (
    DataError,
    DataWarning,
    UserError,
    counted,
    error_in_file,
    join_words,
    shorten,
    unknown_name,
)

LAYOUTS: tuple[ModuleType, ...] = (
    plain_records,
    serpapi,
    perplexity,
    openai,
    gemini,
    anthropic,
    trec_rag,
    numbered_text,
)
"""Layouts in the order in which they are tried."""
_QUERY_ID_FIELDS = (
    "query_id",
    "qid",
    "topic_id",
    "narrative_id",
    "question_id",
    "custom_id",
    "id_query",
)
"""Names of the field with a query's id, in the order of preference."""
_QUERY_TEXT_FIELDS = ("query", "question", "user_input", "input", "prompt", "q")
"""Names of the field with a query's text, which is the query if there is no id."""
_REPEAT_FIELDS = ("run", "repeat", "repetition", "trial", "sample")
"""Names of the field that distinguishes several answers to one query."""
_RESPONSE_FIELDS = ("response", "body", "answer", "output", "result", "data", "raw")
"""Names of the field in which a wrapper holds the response."""
_NESTED_OBJECTS = ("metadata", "search_parameters")
"""Names of objects in a record that may have the fields of queries and repeats."""
_ENGINE = "engine"
"""Field of a record that names the engine, for files with answers of several engines."""
_MOST_NAMED = 4
"""Most engines that a message names."""
_MOST_WRAPPERS = 4
"""Most wrappers around each other in which a response is looked for."""
_EXPECTED = (
    "expected answers with citations: records with query and cited, or responses of SerpAPI, "
    "OpenAI, Perplexity, Gemini or Anthropic, TREC RAG, or a text with [1] and its list of sources"
)
"""What a file must hold, for messages."""
_UNNAMED_HINT = "name them in their order with --queries FILE, or add a field query to each"
"""What to do if answers do not name their queries, for messages."""


@dataclass(frozen=True, kw_only=True)
class _RecordOrigin:
    """Where a record comes from."""

    path: Path
    """File of the record."""
    line: int | None = None
    """Line of the record; None if records are not lines."""
    query: str | None = None
    """Query that the file is named by; None unless it is a file of a folder."""


@dataclass(kw_only=True)
class _RecordCopies:
    """Hashes of the records that were read, by which copies of them are recognised."""

    count: int = 0
    """Number of copies so far."""
    hashes: set[bytes] = field(default_factory=set)
    """Hashes of the records so far."""

    def is_copy(self, content: Any) -> bool:
        """Return whether an equal record was read before; remember this one."""
        try:
            text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
        except TypeError as error:  # orjson reads deeper nesting than it writes
            message = f"nested deeper than any answer is: {shorten(content)}"
            raise UserError(message) from error
        record_hash = hashlib.sha256(text).digest()
        is_copy = record_hash in self.hashes
        self.hashes.add(record_hash)
        self.count += is_copy
        return is_copy


@dataclass(kw_only=True)
class _Columns:
    """The columns of `Answers`, which grow while records are read.

    A page is called by its *key*, which is the same for all addresses of the page.
    """

    is_exact: bool
    """Whether addresses are compared character by character."""
    answers: dict[str, list[Any]] = field(
        default_factory=lambda: {column: [] for column in ANSWER_SCHEMA}
    )
    """Columns of `Answers.answers`."""
    pages: dict[str, list[Any]] = field(
        default_factory=lambda: {column: [] for column in PAGE_SCHEMA}
    )
    """Columns of `Answers.pages`."""
    keys: dict[str, str] = field(default_factory=dict)
    """Keys by the addresses that were read, so that each address is examined once."""
    uncited: int = 0
    """Number of answers without citations."""

    def key(self, page: str) -> str:
        """Return the key of a page by its address or id; `UserError` for a cut-off address."""
        key = self.keys.get(page)
        if key is None:
            if CUT_OFF.search(page) and is_address(page):
                message = f"the address {shorten(page)} is cut off"
                raise UserError(
                    f"{message}; export whole addresses, or ids without dots at the end"
                )
            key = self.keys[page] = page.strip() if self.is_exact else page_key(page)
        return key

    def keys_of(self, pages: Iterable[str]) -> list[str]:
        """Return the keys of pages."""
        known_keys = self.keys  # most pages are among them, and a method call takes longer
        return [known_keys[page] if page in known_keys else self.key(page) for page in pages]

    def add(self, query: str, repeat: str, record: AnswerRecord) -> None:
        """Append an answer and its pages, each page once."""
        citation_ranks = _first_ranks(self.keys_of(record.cited))
        consulted = set(self.keys_of(record.consulted or ()))
        retrieval_ranks = _first_ranks(self.keys_of(record.retrieved or ()))
        words = dict[str, float]()
        for page, count in record.cited_words.items():
            words[self.key(page)] = words.get(self.key(page), 0.0) + count
        answer = len(self.answers["query"])
        self.answers["query"].append(query)
        self.answers["repeat"].append(repeat)
        self.answers["has_consulted"].append(record.consulted is not None)
        self.answers["has_retrieved"].append(record.retrieved is not None)
        self.uncited += not citation_ranks
        # Consulted pages are sorted, because the order of a set differs between processes.
        distinct_pages = list(
            dict.fromkeys([*citation_ranks, *sorted(consulted), *retrieval_ranks])
        )
        # Adding a million pages column by column takes half the time of adding them page by page.
        self.pages["answer"] += [answer] * len(distinct_pages)
        self.pages["page"] += distinct_pages
        self.pages["citation_rank"] += map(citation_ranks.get, distinct_pages)
        self.pages["is_consulted"] += map(consulted.__contains__, distinct_pages)
        self.pages["retrieval_rank"] += map(retrieval_ranks.get, distinct_pages)
        self.pages["cited_words"] += map(words.get, distinct_pages)


@dataclass(frozen=True, kw_only=True)
class _ReadingOptions:
    """The user's options, as `read_answers` explains them."""

    queries: Sequence[str] | None
    """Queries of the answers in their order; None if answers name theirs."""
    is_exact: bool
    """Whether addresses are compared character by character."""
    engine: str | None
    """Engine whose answers are read; None for all."""


def read_answers(
    path: str | Path,
    *,
    queries: Sequence[str] | None = None,
    exact_urls: bool = False,
    engine: str | None = None,
) -> Answers:
    """Read the answers of a file of JSON or JSON lines, or of a folder with a file an answer.

    Parameters
    ----------
    path : str or Path
        File, plain or packed, ``-`` for standard input, or folder. Files of a folder are named by
        their query, or by query and repeat, such as ``q01.2.json``.
    queries : sequence of str, optional
        Queries of the answers in their order, where answers do not name theirs.
    exact_urls : bool, optional
        Compare addresses character by character; otherwise by the rule of `page_key`.
    engine : str, optional
        Engine whose answers are read, where the field ``engine`` of the records names several.

    Raises
    ------
    DataError
        If the file holds no answers with citations, a record differs from the first one, an answer
        names no query, one run answers a query twice, an address is cut off, or there are several
        engines and none is named.
    """
    path = require_path(path)
    options = _ReadingOptions(queries=queries, is_exact=exact_urls, engine=engine)
    if path.is_dir():
        return _read_records(_folder_records(path), path, options)
    with rereadable_file(path) as file:
        return _read_records(_file_records(file), file, options)


@dataclass(kw_only=True)
class _AnswerReader:
    """The state of reading records one after the other."""

    options: _ReadingOptions
    """The user's options."""
    columns: _Columns
    """Columns of the answers so far."""
    layout: ModuleType | None = None
    """Layout of the records; None before the first one."""
    repeat_counts: Counter[str] = field(default_factory=Counter)
    """Number of answers to each query so far."""
    engines: Counter[str] = field(default_factory=Counter)
    """Number of records of each engine so far; the name is empty if a record has none."""
    copies: _RecordCopies = field(default_factory=_RecordCopies)
    """Records so far, to leave out copies."""
    count: int = 0
    """Number of records so far."""

    def read(self, origin: _RecordOrigin, content: Any) -> None:
        """Add the answer of the next record, unless it is a copy or of another engine."""
        number = self.count
        self.count += 1
        response = _response(content)
        engine = first_text([content, response], (_ENGINE,))
        self.engines[engine] += 1
        if self.options.engine not in (None, engine):
            return
        # If a record names its query, an equal record is a copy. If not, two equal records may be
        # the answers to two queries.
        names_query = origin.query is None and self.options.queries is None
        if names_query and self.copies.is_copy(content):
            return
        self.layout = self.layout or _layout_of(response)
        record = _record(self.layout, response, content)
        query = _listed_query(self.options.queries, number) or _query(content, response, origin)
        self.repeat_counts[query] += 1
        repeat = _field(content, response, _REPEAT_FIELDS) or str(self.repeat_counts[query])
        self.columns.add(query, repeat, record)


def _read_records(
    records: Iterator[tuple[_RecordOrigin, Any]], path: Path, options: _ReadingOptions
) -> Answers:
    """Read the answers in records, each of which comes with its origin.

    `path` is the file or folder, for errors about all of them.
    """
    reader = _AnswerReader(options=options, columns=_Columns(is_exact=options.is_exact))
    for origin, content in records:
        try:
            reader.read(origin, content)
        except UserError as error:
            raise error_in_file(origin.path, error, line=origin.line) from error
    _require_one_engine(path, reader.engines, options.engine)
    if reader.layout is None:
        raise DataError(path, f"{_EXPECTED}; got none")
    if options.queries is not None and len(options.queries) != reader.count:
        count = counted(reader.count, "answer", "answers")
        message = f"{count} and {len(options.queries):,} queries; expected a query each"
        raise DataError(path, message)
    if reader.copies.count:
        count = counted(reader.copies.count, "answer is a copy", "answers are copies")
        warnings.warn(f"{path}: {count} of another; left out", DataWarning, stacklevel=4)
    answers = _answers(reader.columns, path, reader.layout.NAME, copies=reader.copies.count)
    engine = options.engine or next(filter(None, reader.engines), "")
    return replace(answers, spec={**answers.spec, _ENGINE: engine}) if engine else answers


def _require_one_engine(path: Path, engines: Counter[str], engine: str | None) -> None:
    """Refuse answers of several engines of which none is chosen, and an engine without answers."""
    names = [name for name in engines if name]
    if engine is not None and not names:
        hint = f"add a field {_ENGINE!r} to each, or read the file without --engine"
        raise DataError(path, f"no answer names its engine; {hint}")
    if engine is not None and engine not in names:
        raise DataError(path, str(unknown_name("engine", engine, names)))
    if engine is None and len(names) > 1:
        first = join_words([shorten(name) for name in names[:_MOST_NAMED]])
        message = f"answers of {len(names)} engines ({first}); name one: --engine {names[0]}"
        raise DataError(path, f"{message}. To compare them, audit each and compare the two files")


def _answers(columns: _Columns, path: Path, name: str, *, copies: int) -> Answers:
    """Make `Answers` of the columns; `DataError` if no answer cites a page.

    `name` is the name of the layout, and `copies` the number of copies that were left out.
    """
    if columns.uncited == len(columns.answers["query"]):
        count = counted(columns.uncited, "answer cites", "answers cite")
        raise DataError(path, f"read as {name}: none of {count} a page; nothing says what is cited")
    spec = {
        "files": [str(path)],
        "read_as": name,
        "exact_urls": columns.is_exact,
        "copies": copies,
        "without_citations": columns.uncited,
    }
    try:
        return Answers(
            answers=pl.DataFrame(columns.answers, schema=ANSWER_SCHEMA),
            pages=pl.DataFrame(columns.pages, schema=PAGE_SCHEMA),
            spec=spec,
        )
    except UserError as error:
        raise error_in_file(path, error) from error


def _file_records(path: Path) -> Iterator[tuple[_RecordOrigin, Any]]:
    """Yield the origin and the content of each record of a file."""
    file = DataFile(path=path)
    if not file.start.strip():
        raise DataError(path, "the file is empty")
    if not file.has_json:
        raise DataError(path, f"{_EXPECTED}; got {recognise(file).description()}")
    # A list on one line is one value, and holds the answers.
    if not file.has_json_lines or len(file.rows) < 2:
        content = read_document(path)
        records = content if isinstance(content, list) else [content]
        yield from ((_RecordOrigin(path=path), record) for record in records)
        return
    for block in read_lines(path):
        for line, record in zip(block.lines, block.values, strict=True):
            yield _RecordOrigin(path=path, line=line), record


def _folder_records(folder: Path) -> Iterator[tuple[_RecordOrigin, Any]]:
    """Yield the origin and the record of each file of a folder, in the order of their names."""
    try:
        paths = response_files(folder)
    except DataError as error:
        message = "expected a folder of answers, with a .json file for each, got none"
        raise DataError(folder, message) from error
    for path in paths:
        file = DataFile(path=path)
        # A page that asks to sign in is often saved in place of an answer.
        if file.start.strip() and not file.has_json:
            raise DataError(path, f"{_EXPECTED}; got {recognise(file).description()}")
        # A number at the end is that of a repeat: q01.2.json.
        query = query_name(path)
        stem, _dot, suffix = query.rpartition(".")
        query = stem if stem and suffix.isdigit() else query
        yield _RecordOrigin(path=path, query=query), read_document(path)


def _response(content: Any) -> Mapping[str, Any]:
    """Return the response in a record, which may be a wrapper, such as a line of a batch's output.

    A response is an object that fits a layout; `UserError` if there is none.
    """
    for _level in range(_MOST_WRAPPERS):
        if not isinstance(content, Mapping):
            raise UserError(f"expected a record for each answer, got {shorten(content)}")
        if any(layout.fits(content) for layout in LAYOUTS):
            return content
        nested_objects = [
            content[name] for name in _RESPONSE_FIELDS if isinstance(content.get(name), Mapping)
        ]
        if not nested_objects:
            break
        content = nested_objects[0]
    raise UserError(f"{_EXPECTED}; got {shorten(content)}")


def _layout_of(response: Mapping[str, Any]) -> ModuleType:
    """Return the first layout that fits a response; one does."""
    return next(layout for layout in LAYOUTS if layout.fits(response))


def _listed_query(queries: Sequence[str] | None, number: int) -> str:
    """Return the user's query for the answer with this number; empty if the user gave none."""
    if queries is None:
        return ""
    if number >= len(queries):
        raise UserError(f"there are more answers than the {len(queries):,} queries")
    return queries[number]


def _query(content: Any, response: Mapping[str, Any], origin: _RecordOrigin) -> str:
    """Return the query that a record names, or that its file is named by."""
    names = (*_QUERY_ID_FIELDS, *_QUERY_TEXT_FIELDS)
    query = _field(content, response, names) or origin.query
    if not query:
        raise UserError(f"the answer does not name its query; {_UNNAMED_HINT}")
    return query


def _record(layout: ModuleType, response: Mapping[str, Any], content: Any) -> AnswerRecord:
    """Read a response in the layout of the first one; refuse a response of another layout.

    `content` is the record of the response, for the message.
    """
    if not layout.fits(response):
        message = f"expected {layout.NAME} as in the first answer"
        raise UserError(f"{message}, got {shorten(content)}")
    record: AnswerRecord = layout.read(response)
    return record


def _field(content: Any, response: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first field of these names that holds a text or a number; empty for none.

    The fields may be in the record `content`, in its response, or in nested objects of these.
    """
    records = [content, response]
    for name in _NESTED_OBJECTS:
        records += [mapping_in(content.get(name)), mapping_in(response.get(name))]
    return first_text(records, names)


def _first_ranks(pages: Sequence[str]) -> dict[str, int]:
    """Return the rank of each page among the distinct pages, from 1 in the order of appearance."""
    return {page: rank for rank, page in enumerate(dict.fromkeys(pages), start=1)}

"""The door to answers: a file or a folder of any layout, told by its first record."""

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
    join_words,
    located,
    shorten,
    unknown,
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
_QUERIES = ("query_id", "qid", "topic_id", "narrative_id", "question_id", "custom_id", "id_query")
_QUERY_TEXTS = ("query", "question", "user_input", "input", "prompt", "q")
_REPEATS = ("run", "repeat", "repetition", "trial", "sample")
_WRAPPERS = ("response", "body", "answer", "output", "result", "data", "raw")
_PARTS = ("metadata", "search_parameters")
_ENGINE = "engine"
"""Field of a record that names the engine, where a file holds answers of several."""
_MOST_NAMED = 4
_MOST_WRAPPERS = 4
_EXPECTED = (
    "expected answers with citations: records with query and cited, or responses of SerpAPI, "
    "OpenAI, Perplexity, Gemini or Anthropic, TREC RAG, or a text with [1] and its list of sources"
)
_BY_ORDER = "name them in their order with --queries FILE, or add a field query to each"


@dataclass(frozen=True, kw_only=True)
class _Origin:
    """Where a record stands in its file."""

    path: Path
    line: int | None = None
    query: str | None = None
    """Query that a file in a folder is named by."""


@dataclass(kw_only=True)
class _SeenRecords:
    """Records that were read, to leave out those that come again."""

    count: int = 0
    fingerprints: set[bytes] = field(default_factory=set)

    def has_seen(self, content: Any) -> bool:
        """Return whether an equal record was read before, and remember this one."""
        try:
            text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
        except TypeError as error:  # deeper than orjson writes, though it reads it
            message = f"nested deeper than any answer is: {shorten(content)}"
            raise UserError(message) from error
        fingerprint = hashlib.sha256(text).digest()
        is_copy = fingerprint in self.fingerprints
        self.fingerprints.add(fingerprint)
        self.count += is_copy
        return is_copy


@dataclass(kw_only=True)
class _Columns:
    """Columns of `Answers` while records are read."""

    is_exact: bool
    answers: dict[str, list[Any]] = field(
        default_factory=lambda: {key: [] for key in ANSWER_SCHEMA}
    )
    pages: dict[str, list[Any]] = field(default_factory=lambda: {key: [] for key in PAGE_SCHEMA})
    keys: dict[str, str] = field(default_factory=dict)
    """Key of each address, so that an address is taken apart once."""
    uncited: int = 0

    def key(self, page: str) -> str:
        """Return the key of a page; `UserError` for an address that was cut off."""
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
        """Return the keys of pages; most were seen before."""
        known = self.keys
        return [known[page] if page in known else self.key(page) for page in pages]

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
        # A set has no order of its own, and files must not depend on it.
        distinct_pages = list(
            dict.fromkeys([*citation_ranks, *sorted(consulted), *retrieval_ranks])
        )
        # A million pages are added column by column in half the time of one by one.
        self.pages["answer"] += [answer] * len(distinct_pages)
        self.pages["page"] += distinct_pages
        self.pages["citation_rank"] += map(citation_ranks.get, distinct_pages)
        self.pages["is_consulted"] += map(consulted.__contains__, distinct_pages)
        self.pages["retrieval_rank"] += map(retrieval_ranks.get, distinct_pages)
        self.pages["cited_words"] += map(words.get, distinct_pages)


@dataclass(frozen=True, kw_only=True)
class _ReadingOptions:
    """How records are read; `read_answers` has the meaning of each."""

    queries: Sequence[str] | None
    is_exact: bool
    engine: str | None


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
    """What is known while records are read, one after the other."""

    options: _ReadingOptions
    columns: _Columns
    layout: ModuleType | None = None
    repeat_counts: Counter[str] = field(default_factory=Counter)
    engines: Counter[str] = field(default_factory=Counter)
    copies: _SeenRecords = field(default_factory=_SeenRecords)
    count: int = 0

    def read(self, origin: _Origin, content: Any) -> None:
        """Add the answer of the next record, unless it is a copy or of another engine."""
        number = self.count
        self.count += 1
        # Answers without a name of their own may well be equal; a record with one is written once.
        has_own_name = origin.query is None and self.options.queries is None
        if has_own_name and self.copies.has_seen(content):
            return
        response = _response(content)
        engine = first_text([content, response], (_ENGINE,))
        self.engines[engine] += 1
        if self.options.engine not in (None, engine):
            return
        self.layout = self.layout or _layout_of(response)
        record = _record(self.layout, response, content)
        query = _listed_query(self.options.queries, number) or _query(content, response, origin)
        self.repeat_counts[query] += 1
        repeat = _field(content, response, _REPEATS) or str(self.repeat_counts[query])
        self.columns.add(query, repeat, record)


def _read_records(
    records: Iterator[tuple[_Origin, Any]], path: Path, options: _ReadingOptions
) -> Answers:
    reader = _AnswerReader(options=options, columns=_Columns(is_exact=options.is_exact))
    for origin, content in records:
        try:
            reader.read(origin, content)
        except UserError as error:
            raise located(origin.path, error, line=origin.line) from error
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
        raise DataError(path, str(unknown("engine", engine, names)))
    if engine is None and len(names) > 1:
        first = join_words([shorten(name) for name in names[:_MOST_NAMED]])
        message = f"answers of {len(names)} engines ({first}); name one: --engine {names[0]}"
        raise DataError(path, f"{message}. To compare them, audit each and compare the two files")


def _answers(columns: _Columns, path: Path, name: str, *, copies: int) -> Answers:
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
        raise located(path, error) from error


def _file_records(path: Path) -> Iterator[tuple[_Origin, Any]]:
    """Yield the records of a file with their lines."""
    file = DataFile(path=path)
    if not file.start.strip():
        raise DataError(path, "the file is empty")
    if not file.has_json:
        raise DataError(path, f"{_EXPECTED}; got {recognise(file).description()}")
    # A list on one line is one value, and holds the answers.
    if not file.has_json_lines or len(file.rows) < 2:
        content = read_document(path)
        records = content if isinstance(content, list) else [content]
        yield from ((_Origin(path=path), record) for record in records)
        return
    for block in read_lines(path):
        for line, record in zip(block.lines, block.values, strict=True):
            yield _Origin(path=path, line=line), record


def _folder_records(folder: Path) -> Iterator[tuple[_Origin, Any]]:
    """Yield the records of a folder's files, in the order of their names."""
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
        query = query_name(path)
        stem, _dot, suffix = query.rpartition(".")
        query = stem if stem and suffix.isdigit() else query
        yield _Origin(path=path, query=query), read_document(path)


def _response(content: Any) -> Mapping[str, Any]:
    """Return the response inside a record of the user's, such as a line of a batch's output."""
    for _level in range(_MOST_WRAPPERS):
        if not isinstance(content, Mapping):
            raise UserError(f"expected a record for each answer, got {shorten(content)}")
        if any(layout.fits(content) for layout in LAYOUTS):
            return content
        inner = [content[key] for key in _WRAPPERS if isinstance(content.get(key), Mapping)]
        if not inner:
            break
        content = inner[0]
    raise UserError(f"{_EXPECTED}; got {shorten(content)}")


def _layout_of(response: Mapping[str, Any]) -> ModuleType:
    return next(layout for layout in LAYOUTS if layout.fits(response))


def _listed_query(queries: Sequence[str] | None, number: int) -> str:
    """Return the query of an answer by its number; empty where none are listed."""
    if queries is None:
        return ""
    if number >= len(queries):
        raise UserError(f"there are more answers than the {len(queries):,} queries")
    return queries[number]


def _query(content: Any, response: Mapping[str, Any], origin: _Origin) -> str:
    """Return the query that a record names, or that its file is named by."""
    query = _field(content, response, (*_QUERIES, *_QUERY_TEXTS)) or origin.query
    if not query:
        raise UserError(f"the answer does not name its query; {_BY_ORDER}")
    return query


def _record(layout: ModuleType, response: Mapping[str, Any], content: Any) -> AnswerRecord:
    """Read a response; one of another layout than the first is refused."""
    if not layout.fits(response):
        message = f"expected {layout.NAME} as in the first answer"
        raise UserError(f"{message}, got {shorten(content)}")
    record: AnswerRecord = layout.read(response)
    return record


def _field(content: Any, response: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first field of these names that holds a text or a number; empty for none."""
    records = [content, response]
    for name in _PARTS:
        records += [mapping_in(content.get(name)), mapping_in(response.get(name))]
    return first_text(records, names)


def _first_ranks(pages: Sequence[str]) -> dict[str, int]:
    """Return the rank of each page's first appearance among distinct pages, from 1."""
    return {page: rank for rank, page in enumerate(dict.fromkeys(pages), start=1)}

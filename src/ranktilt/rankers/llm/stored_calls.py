"""Read a log of an LLM ranker's calls, and find the query and passages that each call showed.

A log often has only prompts, with the texts of passages and no ids. `CandidateTexts.match` cuts a
prompt into passages and compares these with the texts of the first stage's candidates: without
blanks first, and if nothing matches, by letters and digits alone.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ranktilt.data.files import decode_text, read_bytes
from ranktilt.data.formats.json_values import require_single_keys
from ranktilt.data.notes.comparisons import Mismatch
from ranktilt.errors import DataError, shorten
from ranktilt.llm.stored_answers import stored_answer

EXPECTED = "expected records of prompt and response (rank_llm), or of query, ids and answer"
"""Records that a log should have, for errors."""

_SEPARATORS = re.compile(r"[\s,\[\]]*")
"""Characters between two records, which are lines or elements of a list."""
_ANSWERS = (
    "answer",
    "response",
    "output",
    "outputs",
    "completion",
    "choices",
    "generated_text",
    "raw_response",
    "raw_answer",
)
"""Names of fields that may have a record's answer; the first field that exists counts.

The answer has any form that `stored_answer` reads.
"""
_PROMPTS = ("prompt", "messages", "request", "input")
"""Names of fields that may have a record's prompt."""

_PREFIX_LENGTH = 16
"""Number of a passage's first characters by which its candidates are looked up."""
_TEMPLATE_LENGTH = 80
"""Most characters of a prompt between two passages, such as "Received passage [1]"."""
_PASSAGE_COUNT = re.compile(r"(?<![\w.])(\d{1,4}) passages", re.I)
"""Number of passages that a prompt announces."""
_MARKS = (
    re.compile(r"(?:^[ \t]*|: ?)\[(\d{1,4})\]:?\s+(?!>)", re.M),
    re.compile(r"(?<!\S)(?<!> )\[(\d{1,4})\]:?\s+(?!>)"),
)
"""Numbers before passages: at the beginning of a line or, in prompts without such, anywhere."""
_NO_LETTER = re.compile(r"[^0-9A-Za-z]+")
"""Everything but the letters a to z and digits."""
_MISREAD = re.compile("[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""The bytes of one UTF-8 character, each of which was read as a character."""
_WINDOWS_1252 = {
    ord(bytes([byte]).decode("cp1252")): byte
    for byte in range(128, 160)
    if byte not in b"\x81\x8d\x8f\x90\x9d"
}
"""For each character that Windows-1252 has instead of a control character, its byte."""


@dataclass(frozen=True, kw_only=True)
class LoggedCall:
    """One call of a log: a prompt and its answer."""

    number: int
    """Number of the call, from 1."""
    query: str | None
    """Id of the query, if the log has it."""
    ids: tuple[str, ...]
    """Ids of the documents in the order shown; empty if only the prompt shows them."""
    prompt: str
    """Text of the prompt; empty if the log has ids."""
    answer: str | None
    """Text of the answer; None if there is none."""


def read_log(path: Path) -> tuple[LoggedCall, ...]:
    """Read a log of JSON records, as lines or as a list, plain or gzip.

    There are two kinds of records. One has ``prompt`` (a text, or a list of messages) and
    ``response``, alone or in the ``invocations_history`` of a ``query``, as rank_llm writes it. The
    other has ``query`` (an id), ``ids`` (documents in the order shown) and ``answer``. Requests and
    responses of a server's API are read too. Answers are returned as they are, with reasoning. A
    `DataError` names the line of a record of another kind.
    """
    text = decode_text(path, read_bytes(path))
    decoder = json.JSONDecoder()
    calls: list[LoggedCall] = []
    end, line = 0, 1
    while (start := _next_record(text, end)) < len(text):
        line += text.count("\n", end, start)
        # Text that is no JSON, is nested too deeply or has a number of thousands of digits raises
        # one of these errors. Then there are no calls, and the error below shows its beginning.
        content: Any = text[start : start + 200]
        record_calls: list[LoggedCall] = []
        with suppress(ValueError, RecursionError):
            record, end = decoder.raw_decode(text, start)
            require_single_keys(path, text[start:end], record, first_line=line)
            record_calls = _calls_of_record(record, len(calls))
            content = ", ".join(record) if isinstance(record, dict) else record
        if not record_calls:
            raise DataError(path, f"{EXPECTED}, got {shorten(content)}", line=line)
        calls += record_calls
        line += text.count("\n", start, end)
    if not calls:
        raise DataError(path, "holds no calls")
    return tuple(calls)


def _next_record(text: str, end: int) -> int:
    """Return the position of the next record, after the one that ends at `end`."""
    separator = _SEPARATORS.match(text, end)
    return end if separator is None else separator.end()


def _calls_of_record(record: Any, calls_before: int) -> list[LoggedCall]:
    """Return the calls of a record, numbered on from `calls_before`; none of another record."""
    if not isinstance(record, dict):
        return []
    query = record.get("query")
    if isinstance(query, dict):
        query = query.get("qid")
    history = record.get("invocations_history")
    parts = history if isinstance(history, list) else [record]
    calls = []
    for number, part in enumerate(parts, start=calls_before + 1):
        call = _call(part, number, _id(query))
        if call is None:
            return []
        calls.append(call)
    return calls


def _call(record: Any, number: int, query: str | None) -> LoggedCall | None:
    """Return the call of a record; None if it has no answer or no prompt."""
    if not isinstance(record, Mapping):
        return None
    key = next((name for name in _ANSWERS if name in record), None)
    if key is None:
        return None
    try:
        answer = stored_answer({key: record[key]} if key == "choices" else record[key])
    except ValueError:
        return None
    if isinstance(record.get("ids"), list):
        ids = [_id(value) for value in record["ids"]]
        if query is None or None in ids:
            return None
        doc_ids = tuple(str(doc_id) for doc_id in ids)
        return LoggedCall(number=number, query=query, ids=doc_ids, prompt="", answer=answer)
    prompt = _first_prompt(record, _PROMPTS)
    if not prompt:
        return None
    return LoggedCall(number=number, query=query, ids=(), prompt=prompt, answer=answer)


def _first_prompt(record: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first text among some fields; empty without any."""
    for name in names:
        if text := _prompt(record.get(name)):
            return text
    return ""


def _prompt(stored: Any) -> str:
    """Return the text of a prompt, of all messages, or of a request; empty for anything else."""
    if isinstance(stored, Mapping):
        return _first_prompt(stored, ("body", *_PROMPTS))
    if isinstance(stored, list):
        messages = [message for message in stored if isinstance(message, Mapping)]
        return "\n".join(_content(message.get("content")) for message in messages)
    return stored if isinstance(stored, str) else ""


def _content(content: Any) -> str:
    """Return the text of a message, or the text of all its parts."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        return "".join(str(part.get("text") or "") for part in parts)
    return content if isinstance(content, str) else ""


def _id(value: Any) -> str | None:
    """Return an id as text; None if the value is no id."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None


@dataclass(frozen=True, kw_only=True)
class MatchedCall:
    """The query of a call, and the candidates that each of its passages may be."""

    query: int
    """Index of the query."""
    passages: tuple[tuple[int, ...], ...]
    """For each passage, positions of candidates: several if their texts are equal."""


Passages = tuple[tuple[tuple[str, ...], ...], ...]
"""The texts of each document of each query; a document may have several."""


class TextTable:
    """Queries and passages in one form, without blanks for example, to look them up.

    Matches are kept in memory: windows overlap, so most passages are looked up several times.

    Parameters
    ----------
    form : callable
        Changes a text to the form in which it is compared.
    queries : sequence of str
        Texts of the queries.
    passages : Passages
        Texts of each query's documents.
    """

    def __init__(
        self, form: Callable[[str], str], queries: Sequence[str], passages: Passages
    ) -> None:
        self.form = form
        """Changes a text to the form in which it is compared."""
        self.queries = [form(text) for text in queries]
        """Texts of the queries."""
        self.candidates: list[list[tuple[int, str]]] = []
        """For each query its candidates' texts, each with the candidate's position."""
        self.queries_by_prefix = defaultdict[str, set[int]](set)
        """Queries that have a candidate with these first characters."""
        self._matches: dict[tuple[int, str, bool], tuple[int, ...]] = {}
        """Candidates by query, passage, and whether the passage is a prompt's last."""
        for query, documents in enumerate(passages):
            candidates = []
            for position, texts in enumerate(documents):
                for text in map(form, texts):
                    candidates.append((position, text))
                    self.queries_by_prefix[text[:_PREFIX_LENGTH]].add(query)
            self.candidates.append(candidates)

    def queries_with(self, passages: Sequence[str]) -> set[int]:
        """Return the queries that have a candidate which begins like one of these passages."""
        queries: set[int] = set()
        for passage in passages:
            queries.update(self.queries_by_prefix.get(passage[:_PREFIX_LENGTH], ()))
        return queries

    def queries_within(self, text: str) -> set[int]:
        """Return the queries whose text is part of a text; if there are several, the longest."""
        lengths = {
            number: len(query)
            for number, query in enumerate(self.queries)
            if query and query in text
        }
        longest = max(lengths.values(), default=0)
        return {number for number, length in lengths.items() if length == longest}

    def matches(self, query: int, passages: Sequence[str]) -> list[tuple[int, ...]]:
        """Return, for each passage, the positions of the query's candidates that it may be."""
        matches = []
        for number, passage in enumerate(passages, start=1):
            is_last = number == len(passages)
            key = query, passage, is_last
            if key not in self._matches:
                candidates = self.candidates[query]
                self._matches[key] = longest_prefixes(passage, candidates, last=is_last)
            matches.append(self._matches[key])
        return matches


@dataclass(frozen=True, kw_only=True)
class CandidateTexts:
    """Lists of the first stage with their texts.

    A document may have several texts, such as with and without its title, and none if only ids are
    known.
    """

    queries: tuple[str, ...]
    """Ids of the queries."""
    texts: tuple[str, ...]
    """Texts of the queries."""
    docs: tuple[tuple[str, ...], ...]
    """Ids of each query's documents, best first."""
    passages: Passages
    """Texts of each query's documents."""

    def match(self, call: LoggedCall) -> MatchedCall | Mismatch:
        """Find the query and passages of a call: by ids or, without ids, by their texts."""
        if call.ids:
            return self._by_ids(call)
        match = self._by_text(call, self._exact)
        return self._by_text(call, self._letters) if isinstance(match, Mismatch) else match

    def possible_queries(self, call: LoggedCall) -> set[int]:
        """Return the queries that a call may be about, for a call that did not match."""
        if call.query is not None:
            return {self._numbers[call.query]} if call.query in self._numbers else set()
        parts = parts_of(call.prompt)
        for part in (parts[0], parts[-1]):
            for table in (self._exact, self._letters):
                if queries := table.queries_within(table.form(part)):
                    return queries
        return set()

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Index of each query by its id."""
        return {query_id: number for number, query_id in enumerate(self.queries)}

    @cached_property
    def _positions(self) -> list[dict[str, int]]:
        """For each query, the position of each document by its id."""
        return [dict(zip(docs, range(len(docs)), strict=True)) for docs in self.docs]

    @cached_property
    def _exact(self) -> TextTable:
        """Texts without blanks."""
        return TextTable(lambda text: "".join(text.split()), self.texts, self.passages)

    @cached_property
    def _letters(self) -> TextTable:
        """Letters and digits of the texts, for prompts with broken characters."""
        return TextTable(letters_of, self.texts, self.passages)

    def _by_ids(self, call: LoggedCall) -> MatchedCall | Mismatch:
        """Match a call by the ids of its documents."""
        query = self._numbers.get(call.query or "")
        if query is None:
            return Mismatch(kind="unknown query", query=call.query or "")
        positions = self._positions[query]
        for doc_id in call.ids:
            if doc_id not in positions:
                return Mismatch(kind="unknown document", document=doc_id)
        if len(call.ids) < 2:
            return Mismatch(kind="too few ids")
        if len(set(call.ids)) < len(call.ids):
            return Mismatch(kind="repeated document")
        return MatchedCall(query=query, passages=tuple((positions[doc_id],) for doc_id in call.ids))

    def _by_text(self, call: LoggedCall, table: TextTable) -> MatchedCall | Mismatch:
        """Match a call by the texts of its passages, in the form of `table`."""
        head, *parts = parts_of(call.prompt)
        if len(parts) < 2:
            return Mismatch(kind="too few passages")
        stated = _PASSAGE_COUNT.search(call.prompt)
        if stated is not None and int(stated[1]) != len(parts):
            announced = int(stated[1])
            return Mismatch(kind="other passage count", announced=announced, counted=len(parts))
        passages = [table.form(part) for part in parts]
        queries = table.queries_with(passages)
        if not queries:
            return Mismatch(kind="no known passage")
        # The query is before the passages, or after the last one.
        surroundings = (table.form(head), passages[-1])
        asked_queries = [
            query
            for query in queries
            if call.query in (None, self.queries[query])
            and _contains(surroundings, table.queries[query])
        ]
        if not asked_queries:
            return Mismatch(kind="other query")
        return self._match_of(asked_queries, passages, table)

    def _match_of(
        self, queries: Sequence[int], passages: Sequence[str], table: TextTable
    ) -> MatchedCall | Mismatch:
        """Choose, among some queries, the one that has all passages among its candidates."""
        matches = {query: table.matches(query, passages) for query in queries}
        complete = [query for query in queries if all(matches[query])]
        if not complete:
            query = max(queries, key=lambda query: sum(map(bool, matches[query])))
            missing = 1 + matches[query].index(())
            return Mismatch(kind="unknown passage", passage=missing, query=self.queries[query])
        # The text of a query may contain that of another query. If the longest contains all others,
        # it was asked.
        longest = max(complete, key=lambda query: len(table.queries[query]))
        text = table.queries[longest]
        for query in complete:
            is_within = table.queries[query] != text and table.queries[query] in text
            if query != longest and not is_within:
                return Mismatch(kind="several queries", queries=len(complete))
        return MatchedCall(query=longest, passages=tuple(matches[longest]))


def _contains(texts: Sequence[str], part: str) -> bool:
    """Return whether any of these texts contains `part`."""
    return bool(part) and any(part in text for text in texts)


def letters_of(text: str) -> str:
    """Return the letters a to z and digits of a text, free of encoding errors."""
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", undo_mojibake(html.unescape(text))))


def undo_mojibake(text: str) -> str:
    """Undo that UTF-8 was read as Latin-1 or Windows-1252.

    ``ï¬`` and U+0081, for example, are the bytes of a ligature.
    """
    before = None
    while before != text:
        before = text
        text = _MISREAD.sub(
            lambda match: match[0].encode("latin-1").decode(errors="ignore"),
            text.translate(_WINDOWS_1252),
        )
    return text


def parts_of(prompt: str) -> list[str]:
    """Cut a prompt at ``[1]``, ``[2]``, …; return the text before them, and each passage.

    An example such as ``[2] > [1]`` in the instructions is no passage.
    """
    marks: list[re.Match[str]] = []
    for pattern in _MARKS:
        marks = _passage_marks(pattern, prompt)
        if len(marks) > 1:
            break
    else:  # no pattern has two marks
        marks = []
    begins = [0, *(mark.end() for mark in marks)]
    ends = [*(mark.start() for mark in marks), len(prompt)]
    return [prompt[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _passage_marks(pattern: re.Pattern[str], prompt: str) -> list[re.Match[str]]:
    """Return the matches of a pattern whose numbers are 1, 2, 3, …."""
    marks: list[re.Match[str]] = []
    for mark in pattern.finditer(prompt):
        number = int(mark[1])
        if number == len(marks) + 1:
            marks.append(mark)
        elif number == 1 and len(marks) == 1:  # the first one was in the instructions
            marks = [mark]
    return marks


def longest_prefixes(
    passage: str, candidates: Sequence[tuple[int, str]], *, last: bool
) -> tuple[int, ...]:
    """Return the positions of the candidates with whose text a passage begins.

    If there are several, the longest texts count. The template's text that follows a passage, such
    as "Received passage [1]", has at most 80 characters; after the `last` passage, any text may
    follow.
    """
    least = 1 if last else max(len(passage) - _TEMPLATE_LENGTH, 1)
    lengths: dict[int, int] = {}
    for position, text in candidates:
        if len(text) >= least and passage.startswith(text):
            lengths[position] = max(lengths.get(position, 0), len(text))
    longest = max(lengths.values(), default=0)
    return tuple(position for position, length in lengths.items() if length == longest)

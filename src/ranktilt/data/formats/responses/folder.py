"""Read runs from folders: a JSON file for each response of an engine, named by its query.

This is what a user has who saved the answer to each query by hand or by a script: ``q1.json``,
``q2.json`` and so on.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ranktilt.data.formats.base import RunFile, RunRequest
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.json_values import read_document
from ranktilt.data.formats.responses.answer_run import answer_in, read_answers
from ranktilt.data.formats.responses.answer_shape import shape_of
from ranktilt.data.formats.responses.answers import Content
from ranktilt.data.formats.tables.column_names import RUN_COLUMNS
from ranktilt.errors import DataError, UserError, error_in_file

_PACKED = (".gz", ".bz2", ".xz", ".zst")
"""Endings of compressed files."""
_ENDINGS = (".json", ".jsonl")
"""Endings of responses."""
_WORD_AND_NUMBER = re.compile(r"([^0-9]*)([0-9]*)")
"""A part of a file's name: other characters, and the number after them."""


def query_name(path: Path) -> str:
    """Return the query that a file is named by: its name without the endings."""
    name = path.name
    for ending in (*_PACKED, *_ENDINGS):
        name = name.removesuffix(ending)
    return name


def response_files(folder: Path) -> list[Path]:
    """Return the files of a folder of responses, by name; `DataError` where there is none."""
    files = sorted(filter(_is_response, folder.iterdir()), key=_natural_order)
    if not files:
        expected = "expected a folder of responses, with one .json per query, got none"
        raise DataError(folder, f"{expected}; name run files with --run FILE")
    return files


def _natural_order(file: Path) -> list[tuple[str, int]]:
    """Return a sort key that puts ``q2`` before ``q10``."""
    parts = _WORD_AND_NUMBER.findall(query_name(file))
    return [(word, int(digits or 0)) for word, digits in parts]


def _is_response(file: Path) -> bool:
    """Tell whether a file of a folder may be a response."""
    plain = file.name
    for ending in _PACKED:
        plain = plain.removesuffix(ending)
    return file.is_file() and not plain.startswith(".") and plain.endswith(_ENDINGS)


def read(folder: DataFile, request: RunRequest) -> RunFile:
    """Read the responses of a folder; each file's name is its query."""
    files = response_files(folder.path)
    names = [query_name(file) for file in files]
    values = [_answer(file, folder) for file in files]
    content = Content(values=values, keys=names, form="a folder of answers")
    try:
        shape = shape_of(content, RUN_COLUMNS, folder.columns)
    except UserError as error:
        raise error_in_file(folder.path, error) from error
    return read_answers(folder.path, content, shape, queries=names, request=request)


def _answer(file: Path, folder: DataFile) -> Any:
    """Return the answer that a file holds."""
    content = read_document(file)
    try:
        return answer_in(content, folder.columns)
    except UserError as error:
        raise error_in_file(file, error) from error

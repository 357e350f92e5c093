"""The document of a single file: its contents, what it can be used for, and the next command.

A file may be a run, judgments (which documents are relevant), labels (by which documents are
grouped) or queries, in one of many layouts.
"""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.explaining.file_report import FileReport
from ranktilt.reporting.document import (
    Document,
    Sentence,
    make_table,
    name_column,
    single_section,
    text_column,
)
from ranktilt.reporting.sentences.checking.file_report import need_words, use_sentences
from ranktilt.reporting.sentences.notes import note_sentences

_LONGEST_VALUE = 100
"""Most characters of a record that is printed."""


def view(report: FileReport) -> Document:
    """Return the document of a file."""
    rows = [("format", report.format), *report.contents.items()]
    if report.first:
        rows.append(("first record", _shortened(report.first)))
    columns = (
        (name_column("what"), lambda row: row[0]),
        (text_column("value"), lambda row: row[1]),
    )
    return Document(
        kind=f"Check of {report.path}",
        headline=f"{report.path}: {report.kind}",
        sections=single_section([make_table(f"{report.path}: {report.kind}", rows, columns)]),
        sentences=tuple(_sentences(report)),
        notes=note_sentences(report.notes),
        commands=report.commands,
    )


def _sentences(report: FileReport) -> Iterator[Sentence]:
    """Yield what a file can be used for, what is missing for more, and commands."""
    for answer in use_sentences(report):
        yield Sentence(answer)
    for need in need_words(report):
        yield Sentence(f"Missing for more: {need}.")
    for command in report.commands:
        yield Sentence(f"Type: {command}", emphasis="strong")


def _shortened(text: str) -> str:
    """Cut a text after `_LONGEST_VALUE` characters."""
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"

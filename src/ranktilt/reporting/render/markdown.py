"""A document as Markdown, as GitHub and GitLab show it.

A *block* is a part of a document, such as a table. Rows of a table with one *group*, such as those
of one ranker, share a heading. A text is *escaped* so that Markdown prints it as it is, and
*guarded* where others wrote it, as a name of a run: then it cannot hold links, references or
invisible characters either.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from ranktilt.errors import escape_invisible
from ranktilt.reporting.document import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    Lines,
    NamedValues,
    Panels,
    Table,
    shown_lines,
    text_column,
)
from ranktilt.reporting.tones import TEXT_SIGNS, Tone

_OUTCOME_SIGNS: dict[Tone, str] = {"good": "✅", "bad": "❌", "unsure": "⚠️"}
"""Sign before the outcome of a test, by its tone."""
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn")
"""Unicode's categories of invisible characters: control, format, surrogate, private, unassigned."""


def render(document: Document, *, notes: bool = True) -> str:
    """Return a document as Markdown: outcome of a test, tables, sentences, notes and commands.

    Without `notes` there are no legend and no notes.
    """
    parts: list[list[str]] = []
    if document.outcome:
        sign = _OUTCOME_SIGNS[document.outcome]
        parts.append([f"## {sign} RankTilt: {escaped(document.headline)}"])
    sentences = _sentences(document, notes=notes)
    if document.answer_first:
        parts.append(sentences)
    for section in document.shown_sections("text"):
        if section.titled:
            title, lead = section.text_heading
            parts += [[f"### {escaped(title)}"], [escaped(lead)]]
        for block in section.blocks_for("text"):
            parts += _block(block, notes=notes)
    steps = [f"- Next: {escaped(step.text)}: {code(step.command)}" for step in document.next_steps]
    legend = [*document.legend, *document.notes] if notes else []
    closing = [] if document.answer_first else sentences
    parts.append([*closing, *steps, *(f"- {escaped(text)}" for text in legend)])
    if document.commands:
        parts.append([f"Make it again: {', then '.join(map(code, document.commands))}"])
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _sentences(document: Document, *, notes: bool) -> list[str]:
    """Return the findings as the lines of a list; before those of a test stands their sign."""
    signs = TEXT_SIGNS if document.outcome else {}
    sentences = []
    for line in document.lines(notes=notes):
        text = f"{signs.get(line.tone, '')} {line.text}".lstrip()
        sentences.append(f"- {escaped(text)}")
    return sentences


def _block(block: Block, *, notes: bool) -> Iterator[list[str]]:
    """Yield the lines of each part of a block."""
    if isinstance(block, Table):
        yield [f"**{escaped(block.caption)}**"]
        yield _table_lines(block, escaped)
    elif isinstance(block, Code):
        yield [f"**{escaped(block.label)}**"]
        fence = "`" * (3 + block.text.count("`"))
        yield [f"{fence}text", *escape_invisible(block.text).splitlines(), fence]
    elif isinstance(block, Panels):
        yield from _panels(block)
    elif isinstance(block, Lines):
        lines = shown_lines(block.lines, notes=notes)
        yield [f"- {escaped(line.text)}" for line in lines if line.text]
    elif isinstance(block, NamedValues):
        yield [f"- {escaped(f'{name}: {text}')}" for name, text in block.pairs if text]


def _table_lines(table: Table, escape: Callable[[str], str]) -> list[str]:
    """Return the lines of a table, whose texts `escape` escapes.

    In a paper's table, whose texts are guarded, a title includes the heading that spans it.
    """
    columns, rows = flat(table)
    titles = [column.title for column in columns]
    if table.spans and escape is guarded:
        headings: list[str] = []
        for heading, span in table.spans:
            headings += [heading] * span
        pairs = zip(headings, titles, strict=True)
        titles = [f"{heading}, {title}" if heading else title for heading, title in pairs]
    alignments = ["---:" if column.number else "---" for column in columns]
    lines = (table_line(cells, escape) for _, cells in rows)
    return [table_line(titles, escape), f"| {' | '.join(alignments)} |", *lines]


def flat(table: Table) -> tuple[list[Column], list[tuple[bool, list[str]]]]:
    """Return the columns and rows of a table whose groups are columns, not headings.

    A row is whether a line separates it from the row above, and the texts of its cells with their
    intervals. A group stands in its first row alone.
    """
    columns = [*map(text_column, table.group_titles), *table.columns]
    rows: list[tuple[bool, list[str]]] = []
    previous_group: tuple[str, ...] = ()
    for row in table.rows:
        is_new_group = row.group != previous_group
        previous_group = row.group
        groups = row.group if is_new_group else [""] * len(table.group_titles)
        has_rule = (is_new_group and bool(table.group_titles)) or row.rule
        rows.append((has_rule, [*groups, *map(_cell_text, row)]))
    return columns, rows


def _cell_text(cell: Cell) -> str:
    """Return the text of a cell, followed by its interval and its note."""
    note = f"({cell.note})" if cell.note else ""
    return " ".join(filter(None, (cell.text, cell.interval, note)))


def _panels(block: Panels) -> Iterator[list[str]]:
    """Yield the lines of a paper's table."""
    yield [f"**{guarded(block.caption)}**"]
    yield [f"*{guarded(block.layout)}*"]
    for table in block.tables:
        if table.caption:
            yield [f"*{guarded(table.caption)}*"]
        yield _table_lines(table, guarded)
    if notes := (*block.notes, *block.remarks, *block.origins):
        yield [f"- {guarded(note)}" for note in notes]


def escaped(text: str) -> str:
    """Escape the characters that Markdown would read as markup, on a single line.

    Brackets are left, as intervals have them; only the start of a link's address is escaped.
    """
    return re.sub(r"([|*_`<>~\\]|(?<=\])\(|&(?=#?\w+;))", r"\\\1", one_line(text))


def one_line(text: str) -> str:
    """Put a text on a single line, with control characters written as codes."""
    return " ".join(escape_invisible(text).splitlines())


def guarded(text: str) -> str:
    """Escape a text that others wrote, so that nothing in it is a link, markup or end of a cell."""
    return re.sub(r"([\[\]$#]|(?<!\\)&)", r"\\\1", escaped(clean(text)))


def clean(text: str) -> str:
    """Put a text that others wrote on a single line.

    Control characters are written as codes, other invisible characters are removed, and several
    blanks in a row become one.
    """
    single_line = escape_invisible(" ".join(text.split()))
    seen = [
        character
        for character in single_line
        if character.isspace() or unicodedata.category(character) not in _HIDDEN
    ]
    return " ".join("".join(seen).split())


def table_line(cells: Sequence[str], escape: Callable[[str], str] = escaped) -> str:
    """Return a line of a table, whose texts `escape` escapes."""
    return "| " + " | ".join(map(escape, cells)) + " |"


def code(text: str) -> str:
    """Return a code span, between more backticks than the text has in a row."""
    text = one_line(text)
    backticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{backticks}{blank}{text}{blank}{backticks}"

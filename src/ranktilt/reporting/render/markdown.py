"""A document as Markdown, as GitHub and GitLab show it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from ranktilt.errors import visible
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

_OUTCOMES: dict[Tone, str] = {"good": "✅", "bad": "❌", "unsure": "⚠️"}
"""Sign before a sentence, by its tone."""
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn")
"""Categories of Unicode that nobody sees."""


def render(document: Document, *, notes: bool = True) -> str:
    """Write the outcome of a test, tables, sentences, legend and notes, and the commands.

    Without `notes` there is no legend.
    """
    parts: list[list[str]] = []
    if document.outcome:
        sign = _OUTCOMES[document.outcome]
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
    """Return the answers as a list."""
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
        yield _ruled(block, escaped)
    elif isinstance(block, Code):
        yield [f"**{escaped(block.label)}**"]
        fence = "`" * (3 + block.text.count("`"))
        yield [f"{fence}text", *visible(block.text).splitlines(), fence]
    elif isinstance(block, Panels):
        yield from _panels(block)
    elif isinstance(block, Lines):
        lines = shown_lines(block.lines, notes=notes)
        yield [f"- {escaped(line.text)}" for line in lines if line.text]
    elif isinstance(block, NamedValues):
        yield [f"- {escaped(f'{name}: {text}')}" for name, text in block.pairs if text]


def _ruled(table: Table, escape: Callable[[str], str]) -> list[str]:
    """Return the lines of a table; a title includes the heading above it."""
    columns, rows = flat(table)
    titles = [column.title for column in columns]
    if table.spans and escape is guarded:
        headings: list[str] = []
        for heading, span in table.spans:
            headings += [heading] * span
        pairs = zip(headings, titles, strict=True)
        titles = [f"{heading}, {title}" if heading else title for heading, title in pairs]
    ends = ["---:" if column.number else "---" for column in columns]
    lines = (table_line(cells, escape) for _, cells in rows)
    return [table_line(titles, escape), f"| {' | '.join(ends)} |", *lines]


def flat(table: Table) -> tuple[list[Column], list[tuple[bool, list[str]]]]:
    """Lay a table out flat: groups are columns, and an interval stands in its cell.

    Each row comes with whether it begins a group.
    """
    columns = [*map(text_column, table.group_titles), *table.columns]
    rows: list[tuple[bool, list[str]]] = []
    previous: tuple[str, ...] = ()
    for row in table.rows:
        is_new = row.group != previous
        previous = row.group
        groups = row.group if is_new else [""] * len(table.group_titles)
        begins_group = (is_new and bool(table.group_titles)) or row.rule
        rows.append((begins_group, [*groups, *map(_text, row)]))
    return columns, rows


def _text(cell: Cell) -> str:
    """Write a cell with its interval and note."""
    note = f"({cell.note})" if cell.note else ""
    return " ".join(filter(None, (cell.text, cell.interval, note)))


def _panels(block: Panels) -> Iterator[list[str]]:
    """Yield the lines of a paper's table."""
    yield [f"**{guarded(block.caption)}**"]
    yield [f"*{guarded(block.layout)}*"]
    for table in block.tables:
        if table.caption:
            yield [f"*{guarded(table.caption)}*"]
        yield _ruled(table, guarded)
    if notes := (*block.notes, *block.remarks, *block.origins):
        yield [f"- {guarded(note)}" for note in notes]


def escaped(text: str) -> str:
    """Escape what Markdown would read as its own signs."""
    return re.sub(r"([|*_`<>\\])", r"\\\1", one_line(text))


def one_line(text: str) -> str:
    """Make one line of a text, with letters that cannot be seen shown as signs."""
    return " ".join(visible(text).splitlines())


def guarded(text: str) -> str:
    """Escape a text that others wrote: nothing in it is a link, a sign or the end of a cell."""
    return re.sub(r"([\[\]&~$#])", r"\\\1", escaped(clean(text)))


def clean(text: str) -> str:
    """Make one line of a text that others wrote.

    Runs of blanks are one; letters that cannot be seen are shown as signs or dropped.
    """
    letters = visible(" ".join(text.split()))
    seen = [c for c in letters if c.isspace() or unicodedata.category(c) not in _HIDDEN]
    return " ".join("".join(seen).split())


def table_line(cells: Sequence[str], escape: Callable[[str], str] = escaped) -> str:
    """Make one line of a table."""
    return "| " + " | ".join(map(escape, cells)) + " |"


def code(text: str) -> str:
    """Make a code span, fenced by more backticks than the text has in a row."""
    text = one_line(text)
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"

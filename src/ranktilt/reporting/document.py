"""A document: sections of text, tables and figures.

Views make a document from a result; renderers know nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.tones import LOOKS, Tone

if TYPE_CHECKING:
    import polars as pl

Audience = Literal["", "page", "text", "paper"]
"""Readers: everybody (empty), of a page, of text (a terminal, Markdown, LaTeX), or of a paper.

Authors of papers take the figures of a page, and further ones.
"""
Emphasis = Literal["", "strong", "quiet", "alarm"]
"""How strongly a text is shown."""
SIDES = ("the first group of a pair", "the second")
"""Names of two sides where several pairs share a page."""


# Views build cells, rows, columns, sentences, sections, tables and figures by the hundred, a row of
# a table in a line: these take what they show by position, and their options by name. The other
# records are built by name alone.
@dataclass(frozen=True)
class Cell:
    """One cell of a table: a text, the number it was rounded from, and its tone."""

    text: str
    """What is printed."""
    value: float | int | None = None
    """Unrounded."""
    tone: Tone = ""
    """Tone of the text."""
    note: str = ""
    """A small second line."""
    ends: tuple[str, str] | None = None
    """Both ends of an interval, as printed; a cell without a text shows the interval alone."""
    emphasis: Emphasis = ""
    """How strongly it is shown."""

    @property
    def interval(self) -> str:
        """Its interval in brackets; a dash where it is undefined, empty where it has none."""
        if self.ends is None:
            return ""
        return "–" if "–" in self.ends else f"[{', '.join(self.ends)}]"


@dataclass(frozen=True)
class Sentence:
    """A sentence with its tone and emphasis."""

    text: str
    """The sentence."""
    tone: Tone = ""
    """Its tone."""
    emphasis: Emphasis = ""
    """How strongly it is shown."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    title: str
    """Heading of the column."""
    number: bool = True
    """Whether it holds numbers, which stand to the right."""
    header: bool = False
    """Whether its cells name their rows."""
    hint: str = ""
    """What its title means, shown when pointed at."""
    drop_order: int = 0
    """Order in which a narrow terminal leaves out columns: 1 goes first; 0 for a column that stays.
    """


@dataclass(frozen=True)
class Row:
    """One row of a table: its cells, and the group it belongs to."""

    cells: tuple[Cell, ...]
    """A cell for each column."""
    group: tuple[str, ...] = ()
    """The row's value for each group column of the table."""
    rule: bool = False
    """Whether a line separates the row from the one above."""

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    @property
    def shown_cells(self) -> tuple[Cell, ...]:
        """Its cells, without intervals where each of them is 0 from end to end.

        Such a row has one line.
        """
        intervals = [cell for cell in self.cells if cell.ends is not None and cell.text]
        if not intervals or not all(map(_is_zero, intervals)):
            return self.cells
        return tuple(replace(cell, ends=None) if cell.text else cell for cell in self.cells)


def _is_zero(cell: Cell) -> bool:
    """Tell whether a value and both ends of its interval are printed as 0."""
    return all(text.strip("+−*.0") == "" for text in (cell.text, *(cell.ends or ())))


@dataclass(frozen=True)
class Table:
    """A table with its caption."""

    kind: ClassVar[str] = "table"
    caption: str
    """Heading of the table."""
    columns: tuple[Column, ...]
    """The columns."""
    rows: tuple[Row, ...]
    """The rows."""
    note: str = ""
    """Below it on a page."""
    groups: tuple[str, ...] = ()
    """Titles of the group columns; a terminal and a page print groups as headings."""
    spans: tuple[tuple[str, int], ...] = ()
    """Headings above the titles, on a page and in panels: a text, and how many columns it spans."""
    collapsed: bool = False
    """Whether a page shows it collapsed, because another table or figure says it in short."""
    audience: Audience = ""
    """Readers that see it; all by default."""


def name_column(title: str) -> Column:
    """Make a column whose cells name their rows."""
    return Column(title, number=False, header=True)


def text_column(title: str, drop_order: int = 0) -> Column:
    """Make a column of texts; `drop_order` as in `Column`."""
    return Column(title, number=False, drop_order=drop_order)


ColumnOf = tuple[Column | str, Callable[[Any], Cell | str]]
"""A column, and the function that makes its cell from a row's data."""


def tabulated(
    caption: str,
    items: Iterable[Any],
    columns: Sequence[ColumnOf],
    *,
    group: Callable[[Any], tuple[str, ...]] = lambda record: (),
    rule: Callable[[Any], bool] = lambda record: False,
    **more: Any,
) -> Table:
    """Make a table with a row for each of the items.

    `group` and `rule` return a row's `Row.group` and `Row.rule`; `more` are further fields of the
    table.
    """
    heads = tuple(Column(head) if isinstance(head, str) else head for head, _ in columns)
    rows = []
    for record in items:
        contents = [make_cell(record) for _, make_cell in columns]
        cells = [Cell(text) if isinstance(text, str) else text for text in contents]
        rows.append(Row(tuple(cells), group(record), rule(record)))
    return Table(caption, heads, tuple(rows), **more)


@dataclass(frozen=True, kw_only=True)
class Panels:
    """A paper's table, for text: tables below each other under one caption.

    The caption of each table is its title.
    """

    kind: ClassVar[str] = "panels"
    name: str
    """Label by which a text refers to it."""
    caption: str
    """Heading of all tables."""
    layout: str
    """Which table of which paper it follows."""
    tables: tuple[Table, ...]
    """The tables."""
    notes: tuple[str, ...] = ()
    """Below it."""
    remarks: tuple[str, ...] = ()
    """Remarks for the author, not for the paper's readers."""
    origins: tuple[str, ...] = ()
    """The commands and files behind it."""


@dataclass(frozen=True)
class Figure:
    """A figure with its description in words."""

    kind: ClassVar[str] = "figure"
    title: str
    """Heading of the figure."""
    description: str
    """Description for a reader who cannot see it."""
    drawing: dict[str, Any]
    """As made in `ranktilt.reporting.figures`."""
    half: bool = False
    """Whether it shares a line with its neighbour where there is room."""
    layout: str = ""
    """Which figure of a paper it is, such as ``dai-fig10``; empty for none."""
    collapsed: bool = False
    """Whether a page shows it collapsed, because the first figure says it in short."""
    audience: Audience = ""
    """Readers that see it; all by default."""

    @property
    def height(self) -> int:
        """Pixels."""
        return int(self.drawing["height"])


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Names and values, one below the other."""

    kind: ClassVar[str] = "pairs"
    pairs: tuple[tuple[str, str], ...]
    """Names with their values."""
    audience: Audience = "page"
    """Readers that see them."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Sentences in the running text; quiet ones are notes."""

    kind: ClassVar[str] = "lines"
    lines: tuple[Sentence, ...]
    """The sentences."""
    audience: Audience = ""
    """Readers that see them; all by default."""
    collapsed: bool = False
    """Whether a page shows them collapsed, as notes."""


@dataclass(frozen=True, kw_only=True)
class Code:
    """A command as one would type it, or a formula, whose lines and blanks are kept."""

    kind: ClassVar[str] = "code"
    label: str
    """What the command does, or what the formula is."""
    text: str
    """The command or formula."""
    audience: Audience = "page"
    """Readers that see it."""


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """Queries, ranked lists and texts to look through; without scripts, a table of queries."""

    kind: ClassVar[str] = "explorer"
    caption: str
    """Heading of the table of queries."""
    description: str
    """The parts of the audit that it holds, and those it leaves out."""
    lists: str
    """Queries, values and ranked lists: JSON, compressed with gzip, in base64."""
    texts: str
    """The documents' texts in the same form; empty for none."""
    rows: Table
    """The queries that contribute most, for readers without scripts and for print."""


@dataclass(frozen=True, kw_only=True)
class PageBlocks:
    """Blocks for pages alone, such as figures; made when a page asks for them, and once."""

    kind: ClassVar[str] = "page blocks"
    audience: ClassVar[Audience] = "page"
    make: Callable[[], Iterable[Block]]
    """Function that makes the blocks."""

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, none of which is of this kind again."""
        return tuple(self.make())


Block = Table | Panels | Figure | Pairs | Lines | Code | Explorer | IntervalChart | PageBlocks
"""A part of a section."""


@dataclass(frozen=True)
class Section:
    """A part of the document with a heading of its own; headings and leads are for pages."""

    name: str
    """Its anchor: letters, digits and hyphens."""
    title: str
    """Empty where it is for text only."""
    lead: tuple[str, ...] = ()
    """Sentences before the blocks."""
    blocks: tuple[Block, ...] = ()
    """Content of the section."""
    titled: bool = False
    """Whether text has its title and lead too."""
    part: str = ""
    """The result it belongs to, where a page holds several.

    Neighbouring sections of one part have one heading.
    """
    collapsed: bool = False
    """Whether a page shows it collapsed."""
    short_title: str = ""
    """Its title in the navigation; empty where that is the title."""

    @property
    def is_collapsed_whole(self) -> bool:
        """Whether a page shows it as one collapsed part: its blocks are all collapsed."""
        blocks = self.blocks_for("page")
        are_collapsed = [getattr(block, "collapsed", False) for block in blocks]
        return self.collapsed or (bool(blocks) and not self.lead and all(are_collapsed))

    @property
    def text_heading(self) -> tuple[str, str]:
        """Its title in text, and what follows: the question that is its title on a page."""
        lead = " ".join(self.lead)
        if not self.short_title:
            return self.title, lead
        return self.short_title, f"{self.title} {lead}".strip()

    @property
    def nav_title(self) -> str:
        """Its title in the navigation."""
        title = self.short_title or self.title
        return title[:1].upper() + title[1:]

    def blocks_for(self, audience: Audience) -> list[Block]:
        """Return the blocks for an audience."""
        audiences = ("", "page", "paper") if audience == "paper" else ("", audience)
        blocks: list[Block] = []
        for block in self.blocks:
            if getattr(block, "audience", "") not in audiences:
                continue
            parts = block.blocks if isinstance(block, PageBlocks) else (block,)
            blocks += [part for part in parts if getattr(part, "audience", "") in audiences]
        return blocks


@dataclass(frozen=True, kw_only=True)
class PageSections:
    """Sections for pages alone; made when a page asks for them, and once."""

    make: Callable[[], Iterable[Section]]
    """Function that makes the sections."""

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections."""
        return tuple(self.make())


@dataclass(frozen=True, kw_only=True)
class NextCommand:
    """A command to run next."""

    text: str
    """What it is for."""
    command: str
    """The command, as one types it."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """The content of a report on a result, before any format."""

    kind: str
    """The kind of result and its subject; in the browser's tab too."""
    headline: str
    """The answer in one sentence."""
    sections: tuple[Section | PageSections, ...]
    """Content of the report."""
    sentences: tuple[Sentence, ...] = ()
    """The answer in detail, a sentence each; what is quiet is a note."""
    answer_first: bool = False
    """Whether text begins with them, because tables are long; it ends with them otherwise."""
    meaning: str = ""
    """What the answer means for somebody who reads nothing else, in one or two sentences."""
    first_figure: PageBlocks | None = None
    """Figure on the first screen that shows the answer: at most one block."""
    next_steps: tuple[NextCommand, ...] = ()
    """What to do next, each with its command."""
    legend: tuple[str, ...] = ()
    """How the numbers were reached, and how the tables are read."""
    notes: tuple[str, ...] = ()
    """What a reader should know."""
    outcome: Tone = ""
    """Set where the headline is the outcome of a test: text ends, and Markdown begins, with it."""
    sides: tuple[str, ...] = ()
    """What is compared, in the page's legend: two names, or none."""
    names: tuple[str, ...] = ()
    """Names of rankers and groups, of which a page shortens the long ones in its sentences."""
    commands: tuple[str, ...] = ()
    """What makes the result again, for Markdown."""
    data: pl.DataFrame | None = field(default=None, compare=False)
    """What CSV holds of tables that are no result's rows, such as a paper's."""

    @property
    def signs(self) -> list[tuple[str, str]]:
        """The signs of sides and sentences on a page, each with its meaning."""
        sides = dict(zip(("first", "second"), self.sides, strict=False))
        tones = {line.tone for line in self.sentences} | {*sides}
        return [
            (look.sign, look.meaning.format(sides.get(tone, "")))
            for tone, look in LOOKS.items()
            if tone and tone in tones
        ]

    @property
    def parts(self) -> tuple[tuple[str, tuple[Section, ...]], ...]:
        """Sections that follow each other and belong to one result, with its name."""
        titled = [section for section in self.shown_sections("page") if section.title]
        groups = groupby(titled, key=lambda section: section.part)
        return tuple((part, tuple(sections)) for part, sections in groups)

    def shown_sections(self, audience: Audience) -> list[Section]:
        """Return the sections for an audience."""
        sections: list[Section] = []
        for section in self.sections:
            if isinstance(section, Section):
                sections.append(section)
            elif audience in ("page", "paper"):
                sections += section.sections
        if audience == "page":  # a section that holds figures for papers alone is left out
            return [part for part in sections if part.blocks_for("page") or not part.blocks]
        return sections

    def blocks(self, audience: Audience) -> list[Block]:
        """Return all blocks for an audience, in order."""
        blocks: list[Block] = []
        for section in self.shown_sections(audience):
            blocks += section.blocks_for(audience)
        return blocks

    def lines(self, *, notes: bool = True) -> list[Sentence]:
        """Return the sentences, with or without notes among them."""
        return shown_lines(self.sentences, notes=notes)

    @property
    def first_figure_blocks(self) -> tuple[Block, ...]:
        """The figure that shows the answer; none where there is nothing to draw."""
        return () if self.first_figure is None else self.first_figure.blocks

    @property
    def explorers(self) -> list[tuple[Section, Explorer]]:
        """The queries, lists and texts to look through, each with the section that holds them."""
        explorers = []
        for section in self.shown_sections("page"):
            blocks = section.blocks_for("page")
            explorers += [(section, block) for block in blocks if isinstance(block, Explorer)]
        return explorers

    @property
    def page_lines(self) -> list[Sentence]:
        """The sentences below a page's headline, without what it says already."""
        return [line for line in self.sentences if line.text.removesuffix(".") not in self.headline]

    @property
    def page_notes(self) -> list[str]:
        """Legend and notes that do not stand below a table of the page already."""
        below = " ".join(table.note for table in self.tables)
        return [text for text in (*self.legend, *self.notes) if text not in below]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the page."""
        return tuple(block for block in self.blocks("page") if isinstance(block, Table))


def shown_lines(lines: Iterable[Sentence], *, notes: bool = True) -> list[Sentence]:
    """Choose the lines, with or without notes among them."""
    return [line for line in lines if notes or line.emphasis != "quiet"]


def printed(blocks: Sequence[Block]) -> tuple[Section, ...]:
    """Return one section of blocks, for a result whose page needs no headings."""
    return (Section("result", "Result", blocks=tuple(blocks)),)

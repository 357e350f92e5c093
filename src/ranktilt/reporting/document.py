"""A document: the content of a report as sections of text, tables and figures, before any format.

A *view* makes a document from a result. A *renderer* turns it into a format (terminal, Markdown,
HTML, LaTeX) and needs nothing but the document. A *block* is a part of a section, such as a table.
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
"""Who sees a block: everybody (empty), or only readers of one kind of output.

``page`` is HTML; ``text`` is a terminal, Markdown or LaTeX; ``paper`` is a figure saved for a
publication. Whoever saves figures for a paper gets those of the page too.
"""
Emphasis = Literal["", "strong", "quiet", "alarm"]
"""How strongly a text is shown."""
SIDES = ("the first group of a pair", "the second")
"""What a page calls the two sides of a comparison where it compares several pairs of groups.

A *side* is one of two groups of documents that are compared, such as human and LLM texts.
"""


# Views build cells, rows, columns, sentences, sections, tables and figures by the hundred, a row of
# a table in a line: these take what they show by position, and their options by name. The other
# records are built by name alone.
@dataclass(frozen=True)
class Cell:
    """One cell of a table: a text, the number it was rounded from, and its tone."""

    text: str
    """What is printed."""
    value: float | int | None = None
    """The unrounded number; None for a cell that holds none."""
    tone: Tone = ""
    """Colour of the text, by its meaning."""
    note: str = ""
    """A small second line."""
    ends: tuple[str, str] | None = None
    """Both ends of an interval, as printed; None where there is no interval.

    A cell with ends and no text shows the interval alone.
    """
    emphasis: Emphasis = ""
    """How strongly it is shown."""

    @property
    def interval(self) -> str:
        """The interval in brackets; a dash where it is undefined, empty where there is none."""
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
    """Whether it holds numbers, which are aligned to the right."""
    header: bool = False
    """Whether its cells name their rows."""
    hint: str = ""
    """What its title means, shown when pointed at."""
    drop_order: int = 0
    """When a narrow terminal leaves the column out: those with 1 first, then 2; 0 for never."""


@dataclass(frozen=True)
class Row:
    """One row of a table: its cells, and the group of rows that it belongs to.

    Neighbouring rows of one group are printed below one heading, such as the name of a ranker.
    """

    cells: tuple[Cell, ...]
    """A cell for each column."""
    group: tuple[str, ...] = ()
    """The parts of the heading, one for each of the table's `Table.group_titles`."""
    rule: bool = False
    """Whether a line separates the row from the one above."""

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    @property
    def shown_cells(self) -> tuple[Cell, ...]:
        """The cells; without their intervals where every value and interval is printed as 0.

        Intervals are printed on a second line, which would say nothing in such a row.
        """
        cells_with_intervals = [cell for cell in self.cells if cell.ends is not None and cell.text]
        if not cells_with_intervals or not all(map(_is_zero, cells_with_intervals)):
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
    """A note below the table, on a page alone."""
    group_titles: tuple[str, ...] = ()
    """What each part of a row's group is, such as ``ranker``.

    Markdown and LaTeX print groups as columns with these titles, a terminal and a page as headings.
    """
    spans: tuple[tuple[str, int], ...] = ()
    """Headings above the titles, on a page and in panels: a text, and how many columns it spans."""
    collapsed: bool = False
    """Whether a page shows it collapsed, because another table or figure is its summary."""
    audience: Audience = ""
    """Who sees the table; everybody by default."""


def name_column(title: str) -> Column:
    """Make a column whose cells name their rows."""
    return Column(title, number=False, header=True)


def text_column(title: str, drop_order: int = 0) -> Column:
    """Make a column of texts; `drop_order` says when a narrow terminal leaves it out, 0 never."""
    return Column(title, number=False, drop_order=drop_order)


ColumnSpec = tuple[Column | str, Callable[[Any], Cell | str]]
"""A column or its title, and the function that makes the column's cell from a record."""


def make_table(
    caption: str,
    records: Iterable[Any],
    columns: Sequence[ColumnSpec],
    *,
    group_of: Callable[[Any], tuple[str, ...]] = lambda record: (),
    has_rule: Callable[[Any], bool] = lambda record: False,
    **options: Any,
) -> Table:
    """Make a table with a row for each record.

    `group_of` returns the group that a record's row belongs to; `has_rule` tells whether a line
    separates the row from the one above; `options` are further fields of the table, by name.
    """
    heads = tuple(Column(head) if isinstance(head, str) else head for head, _ in columns)
    rows = []
    for record in records:
        contents = [make_cell(record) for _, make_cell in columns]
        cells = [Cell(content) if isinstance(content, str) else content for content in contents]
        rows.append(Row(tuple(cells), group=group_of(record), rule=has_rule(record)))
    return Table(caption, heads, tuple(rows), **options)


@dataclass(frozen=True, kw_only=True)
class Panels:
    """A paper's table, for text: several tables (panels) below each other under one caption.

    The caption of each table is the title of its panel.
    """

    kind: ClassVar[str] = "panels"
    name: str
    """Label of the table, as in LaTeX's ``\\ref``."""
    caption: str
    """Heading of all tables."""
    layout: str
    """Which table of which paper it follows."""
    tables: tuple[Table, ...]
    """The tables."""
    notes: tuple[str, ...] = ()
    """Notes below the tables."""
    remarks: tuple[str, ...] = ()
    """Remarks for the author, not for the paper's readers."""
    origins: tuple[str, ...] = ()
    """The commands and files that the numbers come from."""


@dataclass(frozen=True)
class Figure:
    """A figure with its description in words."""

    kind: ClassVar[str] = "figure"
    title: str
    """Heading of the figure."""
    description: str
    """Description for a reader who cannot see it."""
    drawing: dict[str, Any]
    """A Vega-Lite specification."""
    half: bool = False
    """Whether it stands next to its neighbour where a page is wide enough."""
    layout: str = ""
    """Which figure of a paper it is, such as ``dai-fig10``; empty for none."""
    collapsed: bool = False
    """Whether a page shows it collapsed, because the page's first figure is its summary."""
    audience: Audience = ""
    """Who sees the figure; everybody by default."""

    @property
    def height(self) -> int:
        """Height of the drawing in pixels."""
        return int(self.drawing["height"])


@dataclass(frozen=True, kw_only=True)
class NamedValues:
    """Names and values, one below the other."""

    kind: ClassVar[str] = "pairs"
    pairs: tuple[tuple[str, str], ...]
    """Names with their values."""
    audience: Audience = "page"
    """Who sees them; readers of a page by default."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Sentences in the running text; those with the emphasis ``quiet`` are notes."""

    kind: ClassVar[str] = "lines"
    lines: tuple[Sentence, ...]
    """The sentences."""
    audience: Audience = ""
    """Who sees them; everybody by default."""
    collapsed: bool = False
    """Whether a page shows them collapsed, as it shows notes."""


@dataclass(frozen=True, kw_only=True)
class Code:
    """A command as one would type it, or a formula, whose lines and blanks are kept."""

    kind: ClassVar[str] = "code"
    label: str
    """What the command does, or what the formula is."""
    text: str
    """The command or formula."""
    audience: Audience = "page"
    """Who sees it; readers of a page by default."""


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """Queries, ranked lists and texts to look through in a browser.

    A reader without scripts, and print, have a table of queries instead.
    """

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
    """The queries that contribute most to the tilt, for readers without scripts and for print."""


@dataclass(frozen=True, kw_only=True)
class PageBlocks:
    """Blocks for pages alone, such as figures; made once, when a page first asks for them."""

    kind: ClassVar[str] = "page blocks"
    audience: ClassVar[Audience] = "page"
    make: Callable[[], Iterable[Block]]
    """Function that makes the blocks."""

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, none of which is a `PageBlocks` itself."""
        return tuple(self.make())


Block = Table | Panels | Figure | NamedValues | Lines | Code | Explorer | IntervalChart | PageBlocks
"""A part of a section."""


@dataclass(frozen=True)
class Section:
    """A part of the document below its own heading; only pages print the title and the lead."""

    name: str
    """Anchor of the section in a page: letters, digits and hyphens."""
    title: str
    """Heading of the section; empty where the section is for text alone."""
    lead: tuple[str, ...] = ()
    """Sentences before the blocks."""
    blocks: tuple[Block, ...] = ()
    """Content of the section."""
    titled: bool = False
    """Whether text prints the title and the lead too."""
    part: str = ""
    """Name of the result it belongs to, where a page holds several results; empty otherwise.

    Neighbouring sections of one result have one heading.
    """
    collapsed: bool = False
    """Whether a page shows it collapsed."""
    short_title: str = ""
    """Shorter title for the navigation; empty where the title serves."""

    @property
    def is_collapsed_whole(self) -> bool:
        """Whether a page shows the section as one collapsed part, as where all its blocks are."""
        blocks = self.blocks_for("page")
        are_collapsed = [getattr(block, "collapsed", False) for block in blocks]
        return self.collapsed or (bool(blocks) and not self.lead and all(are_collapsed))

    @property
    def text_heading(self) -> tuple[str, str]:
        """The title in text, and the lead, before which stands the longer title of a page."""
        lead = " ".join(self.lead)
        if not self.short_title:
            return self.title, lead
        return self.short_title, f"{self.title} {lead}".strip()

    @property
    def nav_title(self) -> str:
        """The title in the navigation."""
        title = self.short_title or self.title
        return title[:1].upper() + title[1:]

    def blocks_for(self, audience: Audience) -> list[Block]:
        """Return the blocks that an audience sees, those of `PageBlocks` among them."""
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
    """Sections for pages alone; made once, when a page first asks for them."""

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
    """What the command is for."""
    command: str
    """The command, as you would type it."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """The content of a report on a result, before any format."""

    kind: str
    """The kind of result and its subject; also the title of the browser's tab."""
    headline: str
    """The answer in one sentence: the finding that leads."""
    sections: tuple[Section | PageSections, ...]
    """Content of the report."""
    sentences: tuple[Sentence, ...] = ()
    """The answer in detail, one finding per sentence; those with the emphasis ``quiet`` are notes.
    """
    answer_first: bool = False
    """Whether text prints the sentences before the tables, which are long; after them otherwise."""
    meaning: str = ""
    """What the answer means for somebody who reads nothing else, in one or two sentences."""
    first_figure: PageBlocks | None = None
    """The figure on a page's first screen that shows the answer: at most one block."""
    next_steps: tuple[NextCommand, ...] = ()
    """What to do next, each with its command."""
    legend: tuple[str, ...] = ()
    """How the numbers were computed, and how the tables are read."""
    notes: tuple[str, ...] = ()
    """What a reader should know before trusting the numbers."""
    outcome: Tone = ""
    """Tone of a test's outcome, which is then the headline; empty where nothing was tested.

    Text ends with the outcome, and Markdown begins with it.
    """
    sides: tuple[str, ...] = ()
    """The two sides of the comparison, in the page's legend; empty where there are none."""
    names: tuple[str, ...] = ()
    """Names of rankers and groups, of which a page shortens the long ones in its sentences."""
    commands: tuple[str, ...] = ()
    """The commands that make the result again, for Markdown."""
    data: pl.DataFrame | None = field(default=None, compare=False)
    """Content of a CSV file, where it is not the rows of one result, such as a paper's table."""

    @property
    def signs(self) -> list[tuple[str, str]]:
        """The signs (such as ▲) that a page prints at sides and sentences, with their meanings."""
        side_of_tone = dict(zip(("first", "second"), self.sides, strict=False))
        tones = {line.tone for line in self.sentences} | {*side_of_tone}
        return [
            (look.sign, look.meaning.format(side_of_tone.get(tone, "")))
            for tone, look in LOOKS.items()
            if tone and tone in tones
        ]

    @property
    def parts(self) -> tuple[tuple[str, tuple[Section, ...]], ...]:
        """The name of each result on the page, with the neighbouring sections that belong to it."""
        titled = [section for section in self.shown_sections("page") if section.title]
        groups = groupby(titled, key=lambda section: section.part)
        return tuple((part, tuple(sections)) for part, sections in groups)

    def shown_sections(self, audience: Audience) -> list[Section]:
        """Return the sections that an audience sees, those of `PageSections` among them."""
        sections: list[Section] = []
        for section in self.sections:
            if isinstance(section, Section):
                sections.append(section)
            elif audience in ("page", "paper"):
                sections += section.sections
        if audience == "page":  # a section that holds figures for papers alone is left out
            return [
                section for section in sections if section.blocks_for("page") or not section.blocks
            ]
        return sections

    def blocks(self, audience: Audience) -> list[Block]:
        """Return all blocks that an audience sees, in order."""
        blocks: list[Block] = []
        for section in self.shown_sections(audience):
            blocks += section.blocks_for(audience)
        return blocks

    def lines(self, *, notes: bool = True) -> list[Sentence]:
        """Return the sentences; without `notes`, only those that are findings."""
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
        """The sentences below a page's headline, without those that it contains."""
        return [line for line in self.sentences if line.text.removesuffix(".") not in self.headline]

    @property
    def page_notes(self) -> list[str]:
        """Legend and notes, without those that the note of a table contains."""
        table_notes = " ".join(table.note for table in self.tables)
        return [text for text in (*self.legend, *self.notes) if text not in table_notes]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the page."""
        return tuple(block for block in self.blocks("page") if isinstance(block, Table))


def shown_lines(lines: Iterable[Sentence], *, notes: bool = True) -> list[Sentence]:
    """Return the lines; without `notes`, leave out those with the emphasis ``quiet``."""
    return [line for line in lines if notes or line.emphasis != "quiet"]


def single_section(blocks: Sequence[Block]) -> tuple[Section, ...]:
    """Return a single section that holds the blocks, for a result that needs no headings."""
    return (Section("result", "Result", blocks=tuple(blocks)),)

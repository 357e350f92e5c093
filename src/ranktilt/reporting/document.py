"""A document: sections of text, tables and figures. Views make it of a result; renderers know nothing else."""

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
"""Who is shown it: everybody, readers of pages, or of a terminal, Markdown and LaTeX; a paper's
author, who takes a page's figures and further ones, is shown those too."""
Emphasis = Literal["", "strong", "quiet", "alarm"]
SIDES = ("the first group of a pair", "the second")


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a text, the number it was rounded from, and how it is to be taken."""

    text: str
    value: float | int | None = None
    """Unrounded."""
    tone: Tone = ""
    note: str = ""
    """A small second line."""
    ends: tuple[str, str] | None = None
    """Its interval; of a cell without a text it is the cell."""
    emphasis: Emphasis = ""

    @property
    def interval(self) -> str:
        """Its interval in brackets; a dash where it is undefined, empty where it has none."""
        return "" if self.ends is None else "–" if "–" in self.ends else f"[{', '.join(self.ends)}]"


@dataclass(frozen=True)
class Sentence:
    """A sentence, and how it is to be taken."""

    text: str
    tone: Tone = ""
    emphasis: Emphasis = ""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    title: str
    number: bool = True
    """Whether it holds numbers, which stand to the right."""
    header: bool = False
    """Whether its cells name their rows."""
    hint: str = ""
    """What its title means, shown when pointed at."""
    spare: int = 0
    """A narrow terminal goes without it, the lowest number first; 0 for never."""


@dataclass(frozen=True)
class Row:
    """One row of a table: its cells, and the group it belongs to."""

    cells: tuple[Cell, ...]
    group: tuple[str, ...] = ()
    """One a group column of the table."""
    rule: bool = False
    """Whether it is set apart from the row above."""

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    @property
    def shown_cells(self) -> tuple[Cell, ...]:
        """Its cells, without intervals where each of them is 0 from end to end: it is one line then."""
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
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    """Below it on a page."""
    groups: tuple[str, ...] = ()
    """Titles of the group columns; a terminal and a page print groups as headings."""
    spans: tuple[tuple[str, int], ...] = ()
    """A row above the titles, on a page and in panels: a heading, empty for none, and how many columns it spans."""
    folded: bool = False
    """Whether a reader of a page unfolds it: what another table or figure says in short."""
    only: Audience = ""


def named(title: str) -> Column:
    """Make a column whose cells name their rows."""
    return Column(title, number=False, header=True)


def worded(title: str, spare: int = 0) -> Column:
    """Make a column of texts."""
    return Column(title, number=False, spare=spare)


ColumnOf = tuple[Column | str, Callable[[Any], Cell | str]]
"""A column, and what makes its cell of a thing."""


def tabulated(
    caption: str,
    items: Iterable[Any],
    columns: Sequence[ColumnOf],
    *,
    group: Callable[[Any], tuple[str, ...]] = lambda item: (),
    rule: Callable[[Any], bool] = lambda item: False,
    **more: Any,
) -> Table:
    """Lay things out, a row each."""
    heads = tuple(Column(head) if isinstance(head, str) else head for head, _ in columns)
    rows = []
    for item in items:
        cells = (make(item) for _, make in columns)
        rows.append(
            Row(tuple(Cell(c) if isinstance(c, str) else c for c in cells), group(item), rule(item))
        )
    return Table(caption, heads, tuple(rows), **more)


@dataclass(frozen=True)
class Panels:
    """A paper's table, for text: tables below each other under one caption, each with its own as title."""

    kind: ClassVar[str] = "panels"
    name: str
    """By which a text refers to it."""
    caption: str
    layout: str
    """Which table of which paper it follows."""
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    """Below it."""
    remarks: tuple[str, ...] = ()
    """For those who make it, not for a paper's reader."""
    made: tuple[str, ...] = ()
    """The commands and files behind it."""


@dataclass(frozen=True)
class Figure:
    """A figure, and what it shows in words."""

    kind: ClassVar[str] = "figure"
    title: str
    says: str
    """What a reader who cannot see it needs to know."""
    drawing: dict[str, Any]
    """As made in `ranktilt.reporting.figures`."""
    half: bool = False
    """Whether it shares a line with its neighbour where there is room."""
    layout: str = ""
    """Which figure of a paper it is, such as ``dai-fig10``; empty for none."""
    folded: bool = False
    """Whether a reader of a page unfolds it: what the first figure says in short."""
    only: Audience = ""

    @property
    def height(self) -> int:
        """Pixels."""
        return int(self.drawing["height"])


@dataclass(frozen=True)
class Pairs:
    """Names and values, one below the other."""

    kind: ClassVar[str] = "pairs"
    pairs: tuple[tuple[str, str], ...]
    only: Audience = "page"


@dataclass(frozen=True)
class Lines:
    """Sentences where they stand in the text; what is quiet is a note."""

    kind: ClassVar[str] = "lines"
    lines: tuple[Sentence, ...]
    only: Audience = ""


@dataclass(frozen=True)
class Code:
    """A command as one would type it, or a formula, whose lines and blanks are kept."""

    kind: ClassVar[str] = "code"
    label: str
    text: str
    only: Audience = "page"


@dataclass(frozen=True)
class Explorer:
    """Queries, ranked lists and texts to look through; without scripts, the table of those that matter most."""

    kind: ClassVar[str] = "explorer"
    caption: str
    says: str
    """What it holds, and what of the audit it leaves out."""
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
    only: ClassVar[Audience] = "page"
    make: Callable[[], Iterable[Block]]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, none of which is of this kind again."""
        return tuple(self.make())


Block = Table | Panels | Figure | Pairs | Lines | Code | Explorer | IntervalChart | PageBlocks


@dataclass(frozen=True)
class Section:
    """A part of the document with a heading of its own; headings and leads are for pages."""

    name: str
    """Its anchor: letters, digits and hyphens."""
    title: str
    """Empty where it is for text only."""
    lead: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    titled: bool = False
    """Whether text has its title and lead too."""
    part: str = ""
    """The result it belongs to, where a page holds several: sections of one part that follow each other stand under
    one heading."""
    folded: bool = False
    """Whether a reader of a page unfolds it."""
    short_title: str = ""
    """Its title in the navigation; empty where that is the title."""

    @property
    def is_one_fold(self) -> bool:
        """Whether all of it is unfolded together: it is folded, or holds folded blocks alone."""
        blocks = self.shown("page")
        are_folded = [getattr(block, "folded", False) for block in blocks]
        return self.folded or (bool(blocks) and not self.lead and all(are_folded))

    @property
    def nav_title(self) -> str:
        """Its title in the navigation."""
        return self.short_title or self.title

    def shown(self, audience: Audience) -> list[Block]:
        """Return the blocks that an audience is shown."""
        audiences = ("", "page", "paper") if audience == "paper" else ("", audience)
        shown = list[Block]()
        for block in self.blocks:
            if getattr(block, "only", "") not in audiences:
                continue
            blocks = block.blocks if isinstance(block, PageBlocks) else (block,)
            shown += [part for part in blocks if getattr(part, "only", "") in audiences]
        return shown


@dataclass(frozen=True, kw_only=True)
class PageSections:
    """Sections for pages alone; made when a page asks for them, and once."""

    make: Callable[[], Iterable[Section]]

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


@dataclass(frozen=True)
class Document:
    """What is said of a result, before any format."""

    kind: str
    """What it is, and of what; in the browser's tab too."""
    headline: str
    """The answer in one sentence."""
    sections: tuple[Section | PageSections, ...]
    sentences: tuple[Sentence, ...] = ()
    """The answer in detail, a sentence each; what is quiet is a note."""
    answer_first: bool = False
    """Whether text begins with them, because tables are long; it ends with them otherwise."""
    meaning: str = ""
    """What the answer means for somebody who reads nothing else, in one or two sentences."""
    hero: PageBlocks | None = None
    """The figure that shows the answer, or none: at most one block, on the first screen of a page."""
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
        """What the signs of sides and of its sentences mean on a page, each once."""
        sides = dict(zip(("first", "second"), self.sides, strict=False))
        tones = {line.tone for line in self.sentences} | {*sides}
        return [
            (look.sign, look.meaning.format(sides.get(t, "")))
            for t, look in LOOKS.items()
            if t and t in tones
        ]

    @property
    def parts(self) -> tuple[tuple[str, tuple[Section, ...]], ...]:
        """Sections that follow each other and belong to one result, with its name."""
        shown = [section for section in self.shown_sections("page") if section.title]
        return tuple(
            (part, tuple(some)) for part, some in groupby(shown, key=lambda section: section.part)
        )

    def shown_sections(self, audience: Audience) -> list[Section]:
        """Return the sections that an audience is shown."""
        shown = list[Section]()
        for section in self.sections:
            if isinstance(section, Section):
                shown.append(section)
            elif audience in ("page", "paper"):
                shown += section.sections
        if audience == "page":  # what holds figures for papers alone is no section of a page
            return [section for section in shown if section.shown("page") or not section.blocks]
        return shown

    def blocks(self, audience: Audience) -> list[Block]:
        """Return what an audience is shown, in order."""
        shown = list[Block]()
        for section in self.shown_sections(audience):
            shown += section.shown(audience)
        return shown

    def lines(self, *, notes: bool = True) -> list[Sentence]:
        """Return the sentences, with or without notes among them."""
        return shown_lines(self.sentences, notes=notes)

    @property
    def hero_blocks(self) -> tuple[Block, ...]:
        """The figure that shows the answer; none where there is nothing to draw."""
        return () if self.hero is None else self.hero.blocks

    @property
    def explorers(self) -> list[tuple[Section, Explorer]]:
        """The queries, lists and texts to look through, each with the section that holds them."""
        explorers = []
        for section in self.shown_sections("page"):
            blocks = section.shown("page")
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
    return (Section("result", "Result", (), tuple(blocks)),)

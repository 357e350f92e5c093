"""A table of a paper without its numbers: rows, columns, names, and how numbers are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from math import isnan
from typing import Any

import numpy as np

from ranktilt.errors import UserError, unknown
from ranktilt.extensions import ExtensionTable
from ranktilt.reporting.document import Figure
from ranktilt.reporting.layouts.names import NAMES, dataset_name, measure_name
from ranktilt.reporting.layouts.selection import KEYS, Selection

_DERIVED = ("", "relative_delta", "ratio")
"""Ways in which cells may follow from others; the first: they do not."""
_CONTEXT = {"generator": "LLM text by {}", "temperature": "temperature {}"}
"""How a caption phrases a key."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One table of a paper, without its numbers."""

    name: str
    """Such as ``dai-3``; figures are named ``dai-fig7``."""
    source: str
    """The paper, such as ``Wang et al., NAACL 2024``."""
    title: str
    """The caption."""
    cells: tuple[Selection, ...] = ()
    """Which rows of which results are its cells."""
    draw: Callable[[Any], Iterable[Figure]] | None = None
    """The function that draws a figure that no page has, from a result that `cells` are about."""
    reads_collection: bool = False
    """Whether an audit's collection and lists are read again for it."""
    texts: int = 0
    """For a table of texts: the number of the collection that it shows, 1 for the first."""
    left_out: str = ""
    """What is said of rankers that the table is not about."""
    title_of_groups: str = ""
    """The caption where the groups are not human and LLM; the same by default."""
    rows: tuple[str, ...] = ("system", "target")
    """Keys of a cell, the slowest first."""
    columns: tuple[str, ...] = ("dataset", "measure")
    """One key or two."""
    panels: tuple[str, ...] = ()
    """Keys of the blocks below each other.

    Every key that is used nowhere else and has several values joins them.
    """
    measures: tuple[str, ...] = ()
    """Those of the paper, in its order; others follow."""
    digits: int = 1
    """Decimals."""
    digits_of: Mapping[str, int] = field(default_factory=dict)
    """Decimals of single measures."""
    leading_zero: bool = True
    """Whether 0.5 is printed so, or .5."""
    scale: float = 1.0
    """What a value of 0 to 1 is multiplied by for the print: 100 for percent."""
    derived: str = ""
    """Cells that follow from others: ``relative_delta`` of two means, ``ratio`` of two shares."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of keys, where they are not the usual ones."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """How values are printed, where it is not the usual way."""
    shows: str = ""
    """What a result must hold for this table."""
    command: str = ""
    """What makes such a result."""
    mark: str = ""
    """What stands behind a number that is significantly better than others, such as ``†``."""
    mark_note: str = ""
    """What the mark says."""
    curve: bool = False
    """Whether its rows are the places of a curve, of which print shows a few and CSV all."""

    @property
    def is_figure(self) -> bool:
        """Whether it is a figure, which is drawn too."""
        return "-fig" in self.name

    @property
    def paper(self) -> str:
        """Which table or figure of which paper it is."""
        number = self.name.rpartition("-")[2]
        if not (self.is_figure or number.isdecimal()):
            return self.source
        kind = "Figure" if self.is_figure else "Table"
        return f"{kind} {number.removeprefix('fig')} of {self.source}"

    def title_of(self, key: str) -> str:
        """Return the title of a key."""
        return self.titles.get(key, NAMES["keys"][key])

    def __post_init__(self) -> None:
        keys_of_cells = chain.from_iterable(selection.keys for selection in self.cells)
        for key in (*self.rows, *self.columns, *self.panels, *keys_of_cells):
            if key not in KEYS:
                raise unknown(f"key of layout {self.name}", key, KEYS)
        if len(self.columns) not in (1, 2):
            raise UserError(
                f"layout {self.name}: expected one key or two for columns, got {len(self.columns)}"
            )
        if self.derived not in _DERIVED:
            raise unknown(f"derived cells of layout {self.name}", self.derived, _DERIVED[1:])

    def label(self, key: str, value: str) -> str:
        """Return a key's value as it is printed."""
        if value in self.labels:
            return self.labels[value]
        if key == "measure":
            return measure_name(value)
        if key == "dataset":
            return dataset_name(value)
        return NAMES["targets"].get(value, value) if key == "target" else value

    def caption_phrase(self, key: str, value: str) -> str:
        """Return a key's value as a caption has it; empty where there is none."""
        if not value:
            return ""
        return _CONTEXT.get(key, "{}").format(self.label(key, value))

    def printed(self, value: float, measure: str) -> str:
        """Print a number as the paper does; ``–`` where it is undefined."""
        if isnan(value):
            return "–"
        digits = self.digits_of.get(measure, self.digits)
        text = f"{np.round(value, digits) + 0.0:.{digits}f}"  # halves to even; −0 becomes 0
        if not self.leading_zero and text.lstrip("-").startswith("0"):
            return text.replace("0.", ".", 1)
        return text

    def unit(self, measure: str) -> float:
        """Return half a unit of the last printed digit: how far a print may be from its number."""
        return float(0.5 * 10.0 ** -self.digits_of.get(measure, self.digits))


PAPER = "paper"
"""The layout of every table that the results hold."""


def layouts() -> dict[str, Layout]:
    """Return every layout by its name: the papers' and those of installed packages.

    Packages name theirs in the entry points ``ranktilt.layouts``.
    """
    return load_layouts()[0]


@cache
def load_layouts() -> tuple[dict[str, Layout], list[UserError]]:
    """Return every layout by its name, and why those of some packages could not be loaded."""
    table = ExtensionTable("layout", "ranktilt.layouts", {}, _fault)
    foreign = {name for name, _ in table.foreign()}
    by_name: dict[str, Layout] = {}
    errors = list[UserError]()
    for name in table.names():
        try:
            loaded = table.load(name)
        except UserError as error:
            # A package that is broken takes no table of others away.
            if name not in foreign:
                raise
            errors.append(error)
            continue
        for layout in (loaded,) if isinstance(loaded, Layout) else loaded:
            if layout.name == PAPER or layout.name in by_name:
                raise UserError(
                    f"layout {layout.name!r} of {name!r} has the name of another layout; rename it"
                )
            by_name[layout.name] = layout
    return by_name, errors


def layout_named(name: str) -> Layout:
    """Return a layout.

    Raises
    ------
    UserError
        If there is none of this name: lists those there are, or says why a package's could not be
        loaded.
    """
    by_name, errors = load_layouts()
    if name in by_name:
        return by_name[name]
    raise errors[0] if errors else unknown("layout", name, (PAPER, *by_name))


def _fault(loaded: object, name: str) -> str:
    """Say what keeps a package's object from being layouts; empty if nothing does."""
    parts = loaded if isinstance(loaded, list | tuple) else (loaded,)
    is_layout = all(isinstance(layout, Layout) for layout in parts)
    return "" if is_layout else "is neither a Layout nor a tuple of Layouts"

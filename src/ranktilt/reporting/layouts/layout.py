"""A table of a paper without its numbers: rows, columns, names, and how numbers are printed.

A *cell* is one number of the table. A *key* is a property of a cell that gives its position, such
as ``system`` or ``measure``. *Panels* are blocks of a table below each other. A *layout* is such a
description of a table or figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from math import isnan
from typing import Any

import numpy as np

from ranktilt.errors import UserError, unknown_name
from ranktilt.extensions import ExtensionTable
from ranktilt.reporting.document import Figure
from ranktilt.reporting.layouts.names import NAMES, dataset_name, measure_name
from ranktilt.reporting.layouts.selection import KEYS, Selection

_DERIVATIONS = ("", "relative_delta", "ratio")
"""Values of `Layout.derived`; the empty one is for tables without derived cells."""
_CAPTION_PHRASES = {"generator": "LLM text by {}", "temperature": "temperature {}"}
"""Phrase of a caption by its key; other keys stand alone."""


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
    """The function that draws figures from a result of a kind in `cells`; None for a table.

    A figure that the page of a result already has needs none.
    """
    reads_collection: bool = False
    """Whether an audit's collection and lists must be loaded for it."""
    texts: int = 0
    """For a table of texts: which of the given collections it shows, 1 for the first; else 0."""
    left_out: str = ""
    """Reason why some rankers of a result are not in the table, for a note."""
    title_of_groups: str = ""
    """The caption where groups are not human and LLM; empty where `title` serves."""
    rows: tuple[str, ...] = ("system", "target")
    """Keys whose values name the rows; the last one changes from row to row."""
    columns: tuple[str, ...] = ("dataset", "measure")
    """Keys whose values name the columns: one key, or two with a heading for the first."""
    panels: tuple[str, ...] = ()
    """Keys whose values name the panels.

    Every key that is used nowhere else and has several values joins them.
    """
    measures: tuple[str, ...] = ()
    """Measures of the paper, in its order; others of a result come after them."""
    digits: int = 1
    """Number of decimals."""
    digits_of: Mapping[str, int] = field(default_factory=dict)
    """Number of decimals of single measures, where it is another."""
    leading_zero: bool = True
    """Whether a half is printed as 0.5; as .5 otherwise."""
    scale: float = 1.0
    """Factor from a result's value to the printed number: 100 for percent."""
    derived: str = ""
    """Cells that are computed from others: ``relative_delta`` of means, ``ratio`` of shares."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of keys, where they are not the usual ones."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Printed forms of keys' values, where they are not the usual ones."""
    shows: str = ""
    """What a result must hold for this table, for an error message."""
    command: str = ""
    """The command that makes such a result."""
    mark: str = ""
    """Mark after a number that is significantly better than others, such as ``†``."""
    mark_note: str = ""
    """Explanation of the mark."""
    curve: bool = False
    """Whether its rows are the points of a curve, of which print shows a few and CSV all."""

    @property
    def is_figure(self) -> bool:
        """Whether it is a figure of the paper, not a table."""
        return "-fig" in self.name

    @property
    def paper(self) -> str:
        """Which table or figure of which paper it is, such as ``Table 3 of Dai et al.``."""
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
                raise unknown_name(f"key of layout {self.name}", key, KEYS)
        if len(self.columns) not in (1, 2):
            raise UserError(
                f"layout {self.name}: expected one key or two for columns, got {len(self.columns)}"
            )
        if self.derived not in _DERIVATIONS:
            raise unknown_name(
                f"derived cells of layout {self.name}", self.derived, _DERIVATIONS[1:]
            )

    def label(self, key: str, value: str) -> str:
        """Return the printed form of a key's value, such as the paper's name of a measure."""
        if value in self.labels:
            return self.labels[value]
        if key == "measure":
            return measure_name(value)
        if key == "dataset":
            return dataset_name(value)
        return NAMES["targets"].get(value, value) if key == "target" else value

    def caption_phrase(self, key: str, value: str) -> str:
        """Return a caption's phrase about a key's value; empty for no value."""
        if not value:
            return ""
        return _CAPTION_PHRASES.get(key, "{}").format(self.label(key, value))

    def printed(self, value: float, measure: str) -> str:
        """Print a number as the paper does; ``–`` where it is undefined."""
        if isnan(value):
            return "–"
        digits = self.digits_of.get(measure, self.digits)
        text = f"{np.round(value, digits) + 0.0:.{digits}f}"  # halves to even; −0 becomes 0
        if not self.leading_zero and text.lstrip("-").startswith("0"):
            return text.replace("0.", ".", 1)
        return text

    def rounding_error(self, measure: str) -> float:
        """Return how far a printed number may be from the exact one: half of the last digit."""
        return float(0.5 * 10.0 ** -self.digits_of.get(measure, self.digits))


PAPER = "paper"
"""Name that stands for the layouts of all tables that the results hold."""


def layouts() -> dict[str, Layout]:
    """Return every layout by its name: those of papers, and those of other installed packages.

    Packages name theirs in the entry points ``ranktilt.layouts``.
    """
    return load_layouts()[0]


@cache
def load_layouts() -> tuple[dict[str, Layout], list[UserError]]:
    """Return every layout by its name, and the errors of packages whose layouts did not load."""
    table = ExtensionTable("layout", "ranktilt.layouts", {}, _fault)
    other_packages = {name for name, _ in table.foreign()}
    by_name: dict[str, Layout] = {}
    errors = list[UserError]()
    for name in table.names():
        try:
            loaded = table.load(name)
        except UserError as error:
            # A broken package must not make the layouts of others unavailable.
            if name not in other_packages:
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
    """Return the layout with a name.

    Raises
    ------
    UserError
        If there is none: lists the names of all layouts, or says why those of a package could not
        be loaded.
    """
    by_name, errors = load_layouts()
    if name in by_name:
        return by_name[name]
    raise errors[0] if errors else unknown_name("layout", name, (PAPER, *by_name))


def _fault(loaded: object, name: str) -> str:
    """Say why an object of a package cannot be used as layouts; empty where it can."""
    candidates = loaded if isinstance(loaded, list | tuple) else (loaded,)
    are_layouts = all(isinstance(candidate, Layout) for candidate in candidates)
    return "" if are_layouts else "is neither a Layout nor a tuple of Layouts"

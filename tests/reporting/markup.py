"""A page's HTML read back: its elements, and its tables as rows of texts and exact numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

Attributes = dict[str, str | None]


@dataclass
class Grid:
    """One table: its caption, its titles, its cells' texts and exact numbers."""

    caption: str = ""
    titles: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    values: list[list[str | None]] = field(default_factory=list)

    def column(self, title: str) -> list[str]:
        """Return the texts of one column."""
        return [row[self.titles.index(title)] for row in self.rows]

    def numbers(self, title: str) -> list[float]:
        """Return the exact numbers of one column."""
        return [float(row[self.titles.index(title)] or "missing") for row in self.values]


class Markup(HTMLParser):
    """Every element, every table, and the text outside of scripts and styles; no-break spaces are spaces."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, Attributes]] = []
        self.grids: list[Grid] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def of(self, tag: str) -> list[Attributes]:
        """Return the attributes of every element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    def grid(self, caption: str) -> Grid:
        """Return the first table whose caption begins so."""
        return next(grid for grid in self.grids if grid.caption.startswith(caption))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in ("meta", "link", "img", "br"):
            self._open.append(tag)
        if tag == "table":
            self.grids.append(Grid())
        if tag == "tr" and "tbody" in self._open:
            self.grids[-1].rows.append([])
            self.grids[-1].values.append([])
        if tag in ("td", "th") and "tbody" in self._open:
            self.grids[-1].rows[-1].append("")
            self.grids[-1].values[-1].append(attributes.get("data-value"))
        if tag == "th" and "thead" in self._open:
            self.grids[-1].titles.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "tr" and "tbody" in self._open and not any(self.grids[-1].rows[-1][1:] or ["one cell"]):
            self.grids[-1].rows.pop()  # the heading of a group
            self.grids[-1].values.pop()
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self._open):
            return
        data = data.replace("\u00a0", " ")
        self.text += data
        if "caption" in self._open:
            self.grids[-1].caption += data
        elif "thead" in self._open and "th" in self._open:
            self.grids[-1].titles[-1] += data
        elif "tbody" in self._open and {"td", "th"} & set(self._open):
            self.grids[-1].rows[-1][-1] += data

"""What a reader sees: of a page, its elements and tables; of a terminal; of a chart; of a LaTeX
table.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from ranktilt.reporting.output import show, table

Attributes = dict[str, str | None]
Rows = list[dict[str, Any]]
CODE = re.compile(r"\x1b\[([\d;]*)m")
BLUE, ORANGE, BOLD = "38;5;27", "38;5;208", "1"
COMMANDS = {
    "begin",
    "end",
    "centering",
    "caption",
    "label",
    "small",
    "footnotesize",
    "scriptsize",
    "setlength",
    "tabcolsep",
    "toprule",
    "midrule",
    "bottomrule",
    "cmidrule",
    "multicolumn",
    "textit",
    "par",
    "smallskip",
    "linewidth",
    "Delta",
    "pm",
    "leq",
    "geq",
    "ldots",
    "cellcolor",
    "textbackslash",
    "textasciitilde",
    "textasciicircum",
    "textbar",
    "textless",
    "textgreater",
}
TOKEN = re.compile(r"\\([A-Za-z]+)|\\(.)|([^\\])", re.DOTALL)
COLOUR = re.compile(r"\\cellcolor\[HTML\]\{([0-9A-F]{6})\}")
SPANNED = re.compile(
    r"\\multicolumn\{(\d+)\}\{(?:[lcr]|p\{[\d.]+\\linewidth\})\}\{(.*)\}", re.DOTALL
)
WORDS = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textbar{}": "|",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"$\pm$": "±",
    r"$\Delta$": "Δ",
    r"$\leq$": "≤",
    r"$\geq$": "≥",
    r"\ldots{}": "…",
    "$-$": "-",
    "{[}": "[",
    "{]}": "]",
    "{*}": "*",
    "{`}": "`",
    "--": "–",
}


@dataclass
class Grid:
    """One table: its caption, its titles, its cells' texts and exact numbers."""

    caption: str = ""
    titles: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    values: list[list[str | None]] = field(default_factory=list)

    def column(self, title: str) -> list[str]:
        return [row[self.titles.index(title)] for row in self.rows]

    def numbers(self, title: str) -> list[float]:
        return [float(row[self.titles.index(title)] or "missing") for row in self.values]


class Markup(HTMLParser):
    """Every element, every table, and the text outside of scripts and styles; no-break spaces are
    spaces.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, Attributes]] = []
        self.grids: list[Grid] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def of(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.elements if name == tag]

    def grid(self, caption: str) -> Grid:
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
        if (
            tag == "tr"
            and "tbody" in self._open
            and not any(self.grids[-1].rows[-1][1:] or ["one cell"])
        ):
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


class Terminal(io.StringIO):
    """A terminal, as far as the code can tell."""

    def isatty(self) -> bool:
        return True


def screen(
    result: Any, monkeypatch: pytest.MonkeyPatch, *, columns: int = 120, notes: bool = True
) -> str:
    for name, value in {"COLUMNS": str(columns), "LINES": "50", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    show(result, stream, notes=notes)
    return stream.getvalue()


def plain(text: str) -> str:
    return CODE.sub("", text)


def style(text: str, cell: str) -> set[str]:
    """Return the style in force where a cell's text begins, as a set of colour and weight."""
    code = CODE.findall(text[: text.index(cell)])[-1]
    return {colour for colour in (BLUE, ORANGE) if colour in code} | (
        {BOLD} if code.startswith("1") else set()
    )


def html(result: Any) -> str:
    return table(result, "html")


def rows(drawing: dict[str, Any], mark: str, number: int = 0) -> Rows:
    """The rows of so many-th layer of a mark; none where there is no such layer."""
    layers = [
        layer
        for layer in drawing["layer"]
        if layer["mark"] == mark or layer["mark"]["type"] == mark
    ]
    data: Rows = (
        layers[number]["data"]["values"] if layers[number:] or number < 0 < len(layers) else []
    )
    return data


def points(drawing: dict[str, Any]) -> Rows:
    """What is marked, with its interval."""
    return rows(drawing, "point")


def by_name(drawing: dict[str, Any], mark: str = "line") -> dict[str, list[float]]:
    curves = dict[str, list[float]]()
    for row in rows(drawing, mark):
        curves.setdefault(row["name"], []).append(row["y"])
    return curves


def domain(drawing: dict[str, Any], channel: str) -> list[float]:
    every = (layer["encoding"] for layer in drawing["layer"])
    limits: list[float] = next(
        encoding[channel]["scale"]["domain"] for encoding in every if channel in encoding
    )
    return limits


@dataclass
class TexTable:
    """One table as a reader of the paper sees it."""

    environment: str = ""
    columns: int = 0
    header: list[list[tuple[str, int]]] = field(default_factory=list)
    """Per line of a header the titles with the columns that each one spans."""
    rows: list[list[str]] = field(default_factory=list)
    panels: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    legend: list[str] = field(default_factory=list)
    """What the colours mean."""
    comments: list[str] = field(default_factory=list)
    colours: list[str] = field(default_factory=list)
    """Of the coloured cells, row by row."""


def tex_text(source: str) -> str:
    """What LaTeX would print for an escaped text."""
    pattern = "|".join(re.escape(word) for word in sorted(WORDS, key=len, reverse=True))
    return re.sub(rf"{pattern}|\\([&%$#_{{}}])", lambda m: WORDS.get(m[0]) or m[1], source).strip()


def check_tokens(text: str) -> None:
    """Check that braces and dollar signs are balanced and every command is one of those that a
    table needs.
    """
    depth = dollars = 0
    for command, escaped, plain in TOKEN.findall(re.sub(r"\$\^\\d?dagger\$", "", text)):
        assert not command or command in COMMANDS, command
        assert escaped in "&%$#_{}\\", escaped
        assert plain not in ("%", "#", "~", "^", "_")
        depth += (plain == "{") - (plain == "}")
        dollars += plain == "$"
        assert depth >= 0
    assert depth == 0
    assert dollars % 2 == 0


def read_tex(text: str) -> list[TexTable]:
    """Read all tables of a LaTeX text; anything out of place fails."""
    tables, table, opened = list[TexTable](), TexTable(), list[str]()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("%"):
            table.comments.append(line.removeprefix("% "))
            continue
        check_tokens(line)
        if begins := re.match(r"\\begin\{([a-z*]+)\}(?:\{(.*)\})?", line):
            opened.append(begins[1])
            if begins[1] == "tabular":
                table.columns = len(re.sub(r"p\{[\d.]+\\linewidth\}", "p", begins[2]))
            elif begins[1].startswith("table"):
                table.environment = begins[1]
        elif ends := re.match(r"\\end\{([a-z*]+)\}", line):
            assert ends[1] == opened.pop()
            if not opened:
                tables.append(table)
                table = TexTable()
        elif opened[-1:] == ["tabular"]:
            _row(line, table)
        elif opened[-1:] == ["minipage"] and line != r"\footnotesize":
            note = tex_text(line.removesuffix(r"\par"))
            (table.legend if note.startswith("Shaded: ") else table.notes).append(note)
    assert opened == []
    return tables


def _row(line: str, table: TexTable) -> None:
    """Read a line of a table: a rule, the title of a panel, a line of a header, or numbers with
    their labels.
    """
    if line.startswith(r"\cmidrule"):
        ends = re.findall(r"\\cmidrule\(lr\)\{(\d+)-(\d+)\}", line)
        assert all(1 <= int(first) <= int(last) <= table.columns for first, last in ends)
        return
    if line in (r"\toprule", r"\midrule", r"\bottomrule"):
        return
    assert line.endswith(r" \\"), line
    table.colours += COLOUR.findall(line)
    parts = re.split(r"(?<!\\)&", COLOUR.sub("", line).removesuffix(r"\\"))
    spans = [
        (many[2], int(many[1])) if (many := SPANNED.fullmatch(part.strip())) else (part, 1)
        for part in parts
    ]
    cells = [(tex_text(text), span) for text, span in spans]
    assert sum(span for _, span in cells) == table.columns, line
    if len(cells) == 1 and table.columns > 1:
        table.panels.append(tex_text(spans[0][0].removeprefix(r"\textit{").removesuffix("}")))
    elif not re.fullmatch(r"-?\d*\.?\d+|–", cells[-1][0]):
        table.header.append(cells)
    else:
        table.rows.append([text for text, _ in cells])


def numbers(table: TexTable, labels: int) -> list[str]:
    return [text for row in table.rows for text in row[labels:]]


def explorers(page: str) -> list[Any]:
    """What the explorers of a page carry: queries and lists."""
    blocks = re.findall(r'<script type="[^"]*" id="[^"]*-lists"[^>]*>([^<]*)</script>', page)
    return [json.loads(gzip.decompress(base64.b64decode(block))) for block in blocks]

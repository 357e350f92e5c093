"""A small reader of LaTeX tables: it knows what a table may consist of, and refuses everything else."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

COMMANDS = {
    "begin", "end", "centering", "caption", "label", "small", "footnotesize", "scriptsize", "setlength", "tabcolsep",
    "toprule", "midrule", "bottomrule",
    "cmidrule", "multicolumn", "textit", "par", "smallskip", "linewidth", "Delta", "pm", "leq", "geq", "ldots",
    "cellcolor", "textbackslash", "textasciitilde", "textasciicircum", "textbar", "textless", "textgreater",
}  # fmt: skip
ESCAPED = set("&%$#_{}\\")
TOKEN = re.compile(r"\\([A-Za-z]+)|\\(.)|([^\\])", re.DOTALL)
WORDS = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textbar{}": "|",
    r"\textless{}": "<", r"\textgreater{}": ">", r"$\pm$": "±", r"$\Delta$": "Δ", r"$\leq$": "≤", r"$\geq$": "≥",
    r"\ldots{}": "…", "$-$": "-", "{[}": "[", "{]}": "]", "{*}": "*", "{`}": "`", "--": "–",
}  # fmt: skip


_COLOUR = re.compile(r"\\cellcolor\[HTML\]\{([0-9A-F]{6})\}")


@dataclass
class Table:
    """One table as a reader of the paper sees it."""

    environment: str = ""
    caption: str = ""
    label: str = ""
    columns: int = 0
    header: list[list[tuple[str, int]]] = field(default_factory=list)
    """Per line of a header the titles with the columns that each one spans."""
    rows: list[list[str]] = field(default_factory=list)
    panels: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    legend: str = ""
    """What the colours mean."""
    colours: list[str] = field(default_factory=list)
    """Of the coloured cells, row by row."""


def shown(source: str) -> str:
    """What LaTeX would print for an escaped text."""
    pattern = "|".join(re.escape(word) for word in sorted(WORDS, key=len, reverse=True))
    return re.sub(rf"{pattern}|\\([&%$#_{{}}])", lambda m: WORDS.get(m[0]) or m[1], source).strip()


def check_tokens(text: str) -> None:
    """Check that braces and dollar signs are balanced and every command is one of those that a table needs."""
    depth = dollars = 0
    for mark in (r"$^\dagger$", r"$^\ddagger$"):
        text = text.replace(mark, "")
    for command, escaped, plain in TOKEN.findall(text):
        assert not command or command in COMMANDS, command
        assert not escaped or escaped in ESCAPED, escaped
        depth += (plain == "{") - (plain == "}")
        dollars += plain == "$"
        assert depth >= 0
        assert plain not in ("%", "#", "~", "^", "_")
    assert depth == 0
    assert dollars % 2 == 0


def cells(line: str) -> list[str]:
    """Cells of a row, without its end; an ampersand counts outside of braces and without its backslash."""
    assert line.endswith(r" \\"), line
    found, depth = [""], 0
    for command, escaped, plain in TOKEN.findall(line.removesuffix(r"\\")):
        piece = f"\\{command or escaped}" if command or escaped else plain
        depth += (plain == "{") - (plain == "}")
        if plain == "&" and not depth:
            found.append("")
        else:
            found[-1] += piece
    return [cell.strip() for cell in found]


def spanned(cell: str) -> tuple[str, int]:
    """Text of a cell, and how many columns it takes."""
    many = re.fullmatch(r"\\multicolumn\{(\d+)\}\{(?:[lcr]|p\{[\d.]+\\linewidth\})\}\{(.*)\}", cell, re.DOTALL)
    return (many[2], int(many[1])) if many else (cell, 1)


def argument(line: str, command: str) -> str:
    """What stands between the braces of a command that is alone in its line."""
    assert line.startswith(f"\\{command}{{"), line
    assert line.endswith("}"), line
    return line.removeprefix(f"\\{command}{{").removesuffix("}")


def read(text: str) -> list[Table]:
    """Read all tables of a LaTeX text; anything out of place fails."""
    found, table, opened = [], Table(), list[str]()
    for line in text.splitlines():
        if line.startswith("%"):
            table.comments.append(line.removeprefix("% "))
        elif line:
            check_tokens(line)
            opened = _line(line, table, opened)
            if not opened and line.startswith(r"\end"):
                found.append(table)
                table = Table()
    assert opened == []
    assert text.endswith("\n")
    return found


def _line(line: str, table: Table, opened: list[str]) -> list[str]:
    """Read one line; returns the environments that are open behind it."""
    if line.startswith(r"\begin"):
        name = re.match(r"\\begin\{([a-z*]+)\}", line)[1]  # type: ignore[index]
        if name == "tabular":
            spec = re.sub(r"p\{[\d.]+\\linewidth\}", "p", line.removeprefix(r"\begin{tabular}"))[1:-1]
            assert set(spec) <= set("lrp"), spec
            table.columns = len(spec)
        elif name.startswith("table"):
            assert opened == []
            table.environment = name
        return [*opened, name]
    if line.startswith(r"\end"):
        assert argument(line, "end") == opened[-1]
        return opened[:-1]
    _content(line, table, opened[-1])
    return opened


def _content(line: str, table: Table, inside: str) -> None:
    if inside == "tabular":
        _tabular(line, table)
    elif line.startswith(r"\caption"):
        table.caption = shown(argument(line, "caption"))
    elif line.startswith(r"\label"):
        table.label = argument(line, "label")
    elif inside == "minipage" and line != r"\footnotesize":
        note = shown(line.removesuffix(r"\par"))
        if note.startswith("Shaded: "):
            table.legend = note
        else:
            table.notes.append(note)


def _tabular(line: str, table: Table) -> None:
    if line.startswith(r"\cmidrule"):
        for first, last in re.findall(r"\\cmidrule\(lr\)\{(\d+)-(\d+)\}", line):
            assert 1 <= int(first) <= int(last) <= table.columns
        return
    if line in (r"\toprule", r"\midrule", r"\bottomrule"):
        return
    table.colours += _COLOUR.findall(line)
    found = [spanned(cell) for cell in cells(_COLOUR.sub("", line))]
    assert sum(span for _, span in found) == table.columns, line
    if len(found) == 1 and table.columns > 1:
        table.panels.append(shown(argument(found[0][0], "textit")))
    elif not re.fullmatch(r"-?\d*\.?\d+|–", shown(found[-1][0])):
        table.header.append([(shown(text), span) for text, span in found])
    else:
        table.rows.append([shown(text) for text, _ in found])


def numbers(table: Table, labels: int) -> list[str]:
    """Every number of a table, row by row."""
    return [text for row in table.rows for text in row[labels:]]

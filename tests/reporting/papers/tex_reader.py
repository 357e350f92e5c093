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
TOKEN = re.compile(r"\\([A-Za-z]+)|\\(.)|([^\\])", re.DOTALL)
COLOUR = re.compile(r"\\cellcolor\[HTML\]\{([0-9A-F]{6})\}")
SPANNED = re.compile(r"\\multicolumn\{(\d+)\}\{(?:[lcr]|p\{[\d.]+\\linewidth\})\}\{(.*)\}", re.DOTALL)
WORDS = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textbar{}": "|",
    r"\textless{}": "<", r"\textgreater{}": ">", r"$\pm$": "±", r"$\Delta$": "Δ", r"$\leq$": "≤", r"$\geq$": "≥",
    r"\ldots{}": "…", "$-$": "-", "{[}": "[", "{]}": "]", "{*}": "*", "{`}": "`", "--": "–",
}  # fmt: skip


@dataclass
class Table:
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


def shown(source: str) -> str:
    """What LaTeX would print for an escaped text."""
    pattern = "|".join(re.escape(word) for word in sorted(WORDS, key=len, reverse=True))
    return re.sub(rf"{pattern}|\\([&%$#_{{}}])", lambda m: WORDS.get(m[0]) or m[1], source).strip()


def check_tokens(text: str) -> None:
    """Check that braces and dollar signs are balanced and every command is one of those that a table needs."""
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


def read(text: str) -> list[Table]:
    """Read all tables of a LaTeX text; anything out of place fails."""
    found, table, opened = list[Table](), Table(), list[str]()
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
                found.append(table)
                table = Table()
        elif opened[-1:] == ["tabular"]:
            _row(line, table)
        elif opened[-1:] == ["minipage"] and line != r"\footnotesize":
            note = shown(line.removesuffix(r"\par"))
            (table.legend if note.startswith("Shaded: ") else table.notes).append(note)
    assert opened == []
    return found


def _row(line: str, table: Table) -> None:
    """Read a line of a table: a rule, the title of a panel, a line of a header, or numbers with their labels."""
    if line.startswith(r"\cmidrule"):
        ends = re.findall(r"\\cmidrule\(lr\)\{(\d+)-(\d+)\}", line)
        assert all(1 <= int(first) <= int(last) <= table.columns for first, last in ends)
        return
    if line in (r"\toprule", r"\midrule", r"\bottomrule"):
        return
    assert line.endswith(r" \\"), line
    table.colours += COLOUR.findall(line)
    parts = re.split(r"(?<!\\)&", COLOUR.sub("", line).removesuffix(r"\\"))
    spans = [(many[2], int(many[1])) if (many := SPANNED.fullmatch(part.strip())) else (part, 1) for part in parts]
    cells = [(shown(text), span) for text, span in spans]
    assert sum(span for _, span in cells) == table.columns, line
    if len(cells) == 1 and table.columns > 1:
        table.panels.append(shown(spans[0][0].removeprefix(r"\textit{").removesuffix("}")))
    elif not re.fullmatch(r"-?\d*\.?\d+|–", cells[-1][0]):
        table.header.append(cells)
    else:
        table.rows.append([text for text, _ in cells])


def numbers(table: Table, labels: int) -> list[str]:
    """Every number of a table, row by row."""
    return [text for row in table.rows for text in row[labels:]]

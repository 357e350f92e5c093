"""A gate's outcome for people (terminal, Markdown) and for build servers (JUnit XML)."""

from __future__ import annotations

import io
import math
import re
from typing import IO
from xml.etree import ElementTree

from rich import box
from rich.table import Table
from rich.text import Text

from ranktilt._version import __version__
from ranktilt.auditing.gate import Gate, GateRow, LimitCheck, Outcome
from ranktilt.reporting.console import fits, printing
from ranktilt.reporting.layout import signed_or_dash
from ranktilt.reporting.markdown import markdown, markdown_line, one_line

SIGNS: dict[Outcome, str] = {"level": "✓", "tilted": "✗", "inconclusive": "?"}
_EMOJI: dict[Outcome, str] = {"level": "✅", "tilted": "❌", "inconclusive": "⚠️"}
_STYLES: dict[Outcome, str] = {"level": "green", "tilted": "bold red", "inconclusive": "yellow"}
_TITLES = ("measure", "groups", "check", "value", "95 % interval", "allowed", "queries", "outcome")
_LABEL = 26
_NARROW = tuple(t for t in _TITLES if t not in ("allowed", "queries"))
_RIGHT = {"value", "95 % interval", "allowed", "queries"}
# What XML 1.0 has no way to write: control characters, lone surrogates and the two non-characters.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def show_gate(gate: Gate, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None) -> None:
    """Print a row a check, the reasons, notes, and last the outcome.

    Parameters
    ----------
    gate : Gate
        What to print.
    stream : file
        Where to.
    notes : bool, optional
        Whether to print notes.
    terminal : file, optional
        The terminal whose width and colours count, by default the stream itself. Without one the text is plain and
        as wide as it needs to be.
    """
    with printing(stream, terminal) as (console, plain):
        for titles in (_TITLES, _NARROW):
            table = _table(gate, titles)
            if fits(console, table):
                console.print(table)  # where neither fits, the sentences say the same
                break
        for row in gate.rows:
            console.print(Text(_sentence(row)), soft_wrap=plain)
        for note in gate.notes if notes else ():
            console.print(Text(note, style="dim"), soft_wrap=plain)
        outcome = Text(f"{SIGNS[gate.outcome]} {gate.headline}", style=_bold(gate.outcome))
        console.print(outcome, soft_wrap=plain)


def _bold(outcome: Outcome) -> str:
    return f"bold {_STYLES[outcome].removeprefix('bold ')}"


def _sentence(row: GateRow) -> str:
    return f"{SIGNS[row.outcome]} {row.run}, {row.measure}, {row.a} | {row.b}: {row.outcome}: {row.reason}"


def _table(gate: Gate, titles: tuple[str, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(titles[0], max_width=_LABEL, overflow="fold")  # it holds the names of runs too
    for title in titles[1:]:
        table.add_column(title, justify="right" if title in _RIGHT else "left", no_wrap=True)
    before = None
    for row in gate.rows:
        if row.run != before:
            if before is not None:
                table.add_section()
            table.add_row(Text(row.run, style="bold"))
            before = row.run
        for number, check in enumerate(row.checks):
            cells = {t: Text(c) for t, c in zip(_TITLES, _cells(row, check), strict=True)}
            cells["measure"] = Text("" if number else f"  {row.measure}")
            cells["groups"] = Text("") if number else cells["groups"]
            cells["outcome"].stylize(_STYLES[check.outcome])
            table.add_row(*(cells[t] for t in titles))
    return table


def _cells(row: GateRow, check: LimitCheck) -> tuple[str, ...]:
    """Texts of one check, in the order of the titles."""
    return (
        row.measure,
        f"{row.a} | {row.b}",
        check.name,
        signed_or_dash(check.value),
        f"{signed_or_dash(check.low)} … {signed_or_dash(check.high)}",
        _allowed(check),
        f"{row.queries}",
        f"{SIGNS[check.outcome]} {check.outcome}",
    )


def _allowed(check: LimitCheck) -> str:
    if math.isinf(check.floor):
        return f"≤ {check.ceiling:g}"
    return f"{signed_or_dash(check.floor)} … {signed_or_dash(check.ceiling)}"


def gate_text(gate: Gate) -> str:
    """Return what `show_gate` prints where there is no terminal."""
    stream = io.StringIO()
    show_gate(gate, stream)
    return stream.getvalue()


def gate_markdown(gate: Gate) -> str:
    """Print a gate for a pull request: a headline with a sign, a table, the reasons, and how to make it again.

    Parameters
    ----------
    gate : Gate
        What to print.

    Returns
    -------
    str
        Markdown as GitHub and GitLab show it; ends with a line end.
    """
    lines = [f"## {_EMOJI[gate.outcome]} RankTilt: {markdown(gate.headline)}", ""]
    titles = ("ranker", *_TITLES)
    lines += [markdown_line(titles), markdown_line(["---:" if t in _RIGHT else "---" for t in titles])]
    before = None
    for row in gate.rows:
        for check in row.checks:
            lines.append(markdown_line((row.run if row.run != before else "", *_cells(row, check))))
            before = row.run
    lines += ["", *(f"- {markdown(_sentence(row))}" for row in gate.rows)]
    lines += [f"- {markdown(note)}" for note in gate.notes]
    commands = [_code(str(gate.spec[key])) for key in ("audit", "command") if gate.spec.get(key)]
    if commands:
        lines += ["", f"Make it again: {', then '.join(commands)}"]
    return "\n".join(" ".join(line.splitlines()) for line in lines) + "\n"


def _code(text: str) -> str:
    """A code span, fenced by more backticks than the text has in a row."""
    text = one_line(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def gate_junit(gate: Gate) -> bytes:
    """Write a gate as JUnit XML, a test case a row.

    Parameters
    ----------
    gate : Gate
        What to write.

    Returns
    -------
    bytes
        UTF-8. Tilted is a ``failure``. Inconclusive is an ``error`` (the test could not be decided), or ``skipped``
        where inconclusive passes, so that a build server and the exit code say the same. Characters that XML cannot
        hold are left out.
    """
    kinds = {"tilted": "failure", "inconclusive": "skipped" if gate.passes_inconclusive else "error"}
    counts = {
        "tests": len(gate.rows),
        "failures": sum(r.outcome == "tilted" for r in gate.rows),
        "errors": sum(kinds.get(r.outcome) == "error" for r in gate.rows),
        "skipped": sum(kinds.get(r.outcome) == "skipped" for r in gate.rows),
    }
    attributes = {"name": "ranktilt gate", **{key: str(count) for key, count in counts.items()}, "time": "0"}
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", attributes)
    properties = ElementTree.SubElement(suite, "properties")
    asked = {"ranktilt": __version__, "asked": " and ".join(gate.questions), "command": gate.spec.get("command")}
    for name, value in asked.items():
        if value:
            ElementTree.SubElement(properties, "property", {"name": name, "value": _writable(str(value))})
    for row in gate.rows:
        name = f"{row.measure}: {row.a} | {row.b}"
        case = {"classname": _writable(row.run), "name": _writable(name), "time": "0"}
        found = ElementTree.SubElement(suite, "testcase", case)
        if row.outcome in kinds:
            reason = {"type": row.outcome, "message": _writable(row.reason)}
            kind = ElementTree.SubElement(found, kinds[row.outcome], reason)
            kind.text = _writable("\n".join(c.reason for c in row.checks))
        else:
            ElementTree.SubElement(found, "system-out").text = _writable(row.reason)
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _writable(text: str) -> str:
    return _UNWRITABLE.sub("", text)

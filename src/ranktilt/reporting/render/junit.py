"""A gate as JUnit XML, for build servers: the one format that is of one result only."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ranktilt._version import __version__
from ranktilt.auditing.answer.gate import Gate
from ranktilt.reporting.sentences.gate import gate_questions, limit_reason, row_reason

# What XML 1.0 has no way to write: control characters, lone surrogates and the two non-characters.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(gate: Gate) -> bytes:
    """Write a test case a row: tilted is a ``failure``, inconclusive an ``error``, or ``skipped`` where that passes."""
    kinds = {
        "tilted": "failure",
        "inconclusive": "skipped" if gate.passes_inconclusive else "error",
    }
    counts = {
        "tests": len(gate.rows),
        "failures": sum(r.outcome == "tilted" for r in gate.rows),
        "errors": sum(kinds.get(r.outcome) == "error" for r in gate.rows),
        "skipped": sum(kinds.get(r.outcome) == "skipped" for r in gate.rows),
    }
    attributes = {
        "name": "ranktilt gate",
        **{key: str(count) for key, count in counts.items()},
        "time": "0",
    }
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", attributes)
    properties = ElementTree.SubElement(suite, "properties")
    asked = {
        "ranktilt": __version__,
        "asked": " and ".join(gate_questions(gate)),
        "command": gate.spec.get("command"),
    }
    for name, value in asked.items():
        if value:
            ElementTree.SubElement(
                properties, "property", {"name": name, "value": _writable(str(value))}
            )
    for row in gate.rows:
        name = f"{row.measure}: {row.groups}"
        case = {"classname": _writable(row.run), "name": _writable(name), "time": "0"}
        found = ElementTree.SubElement(suite, "testcase", case)
        if row.outcome in kinds:
            reason = {"type": row.outcome, "message": _writable(row_reason(row))}
            kind = ElementTree.SubElement(found, kinds[row.outcome], reason)
            kind.text = _writable(
                "\n".join(limit_reason(check, row.queries) for check in row.checks)
            )
        else:
            ElementTree.SubElement(found, "system-out").text = _writable(row_reason(row))
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _writable(text: str) -> str:
    return _UNWRITABLE.sub("", text)

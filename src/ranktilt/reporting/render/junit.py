"""A gate as JUnit XML, for build servers; no other result has this format."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

from ranktilt._version import __version__
from ranktilt.auditing.gate.result import Gate
from ranktilt.reporting.sentences.gate import gate_questions, limit_reason, row_reason

# What XML 1.0 has no way to write: control characters, lone surrogates and the two non-characters.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(gate: Gate) -> bytes:
    """Write a test case for each row of a gate.

    Tilted is a ``failure``, inconclusive an ``error``, or ``skipped`` where inconclusive passes.
    """
    kinds = {
        "tilted": "failure",
        "inconclusive": "skipped" if gate.passes_inconclusive else "error",
    }
    counts = Counter(kinds.get(row.outcome, "passed") for row in gate.rows)
    attributes = {
        "name": "ranktilt gate",
        "tests": str(len(gate.rows)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": "0",
    }
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", attributes)
    properties = ElementTree.SubElement(suite, "properties")
    values = {
        "ranktilt": __version__,
        "asked": " and ".join(gate_questions(gate)),
        "command": gate.spec.get("command"),
    }
    for name, value in values.items():
        if value:
            pair = {"name": name, "value": _writable(str(value))}
            ElementTree.SubElement(properties, "property", pair)
    for row in gate.rows:
        name = f"{row.measure}: {row.groups}"
        case = {"classname": _writable(row.run), "name": _writable(name), "time": "0"}
        test_case = ElementTree.SubElement(suite, "testcase", case)
        if row.outcome in kinds:
            reason = {"type": row.outcome, "message": _writable(row_reason(row))}
            element = ElementTree.SubElement(test_case, kinds[row.outcome], reason)
            lines = [limit_reason(check, row.queries) for check in row.checks]
            element.text = _writable("\n".join(lines))
        else:
            ElementTree.SubElement(test_case, "system-out").text = _writable(row_reason(row))
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _writable(text: str) -> str:
    """Remove what XML cannot hold."""
    return _UNWRITABLE.sub("", text)

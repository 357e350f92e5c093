"""A gate as JUnit XML, for build servers; no other result has this format.

A gate checks runs against limits. Each of its rows (a run, a measure and a pair of groups) is a
test case in JUnit, whose *outcome* is that of the row: within the limits, tilted, or inconclusive.
"""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

from ranktilt._version import __version__
from ranktilt.auditing.gate.result import Gate
from ranktilt.reporting.sentences.gate import gate_questions, limit_reason, row_reason

_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold: control characters, surrogates and non-characters."""


def junit(gate: Gate) -> bytes:
    """Return JUnit XML with a test case for each row of a gate.

    A tilted row is a ``failure``. An inconclusive row is an ``error``, or ``skipped`` if the gate
    lets inconclusive rows pass.
    """
    element_names = {
        "tilted": "failure",
        "inconclusive": "skipped" if gate.passes_inconclusive else "error",
    }
    counts = Counter(element_names.get(row.outcome, "passed") for row in gate.rows)
    # Build servers expect a time, which a gate does not measure.
    suite_attributes = {
        "name": "ranktilt gate",
        "tests": str(len(gate.rows)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": "0",
    }
    root = ElementTree.Element("testsuites", suite_attributes)
    suite = ElementTree.SubElement(root, "testsuite", suite_attributes)
    properties = ElementTree.SubElement(suite, "properties")
    property_values = {
        "ranktilt": __version__,
        "asked": " and ".join(gate_questions(gate)),
        "command": gate.spec.get("command"),
    }
    for property_name, value in property_values.items():
        if value:
            property_attributes = {"name": property_name, "value": _writable(str(value))}
            ElementTree.SubElement(properties, "property", property_attributes)
    for row in gate.rows:
        case_attributes = {
            "classname": _writable(row.run),
            "name": _writable(f"{row.measure}: {row.groups}"),
            "time": "0",
        }
        test_case = ElementTree.SubElement(suite, "testcase", case_attributes)
        if row.outcome in element_names:
            outcome_attributes = {"type": row.outcome, "message": _writable(row_reason(row))}
            outcome = ElementTree.SubElement(
                test_case, element_names[row.outcome], outcome_attributes
            )
            lines = [limit_reason(check, row.queries) for check in row.checks]
            outcome.text = _writable("\n".join(lines))
        else:
            ElementTree.SubElement(test_case, "system-out").text = _writable(row_reason(row))
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _writable(text: str) -> str:
    """Remove the characters that XML cannot hold."""
    return _UNWRITABLE.sub("", text)

"""A gate as build servers read it: JUnit XML, and Markdown for a pull request."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.auditing.answer.gate import Gate, gate
from ranktilt.reporting.render.junit import junit
from tests.auditing.arrays import audit_of
from tests.auditing.test_gate import HUMAN, LEVEL, UNSURE

THREE = audit_of(np.concatenate([LEVEL.values, HUMAN.values, UNSURE.values]), runs=("a", "b", "c"))


def named(found: Gate, **spec: object) -> Gate:
    return replace(found, spec={**found.spec, **spec})


def parsed(found: Gate) -> ElementTree.Element:
    return ElementTree.fromstring(junit(found))


class TestJUnit:
    def test_counts_and_kinds(self) -> None:
        root = parsed(gate(THREE))
        assert root.tag == "testsuites"
        (suite,) = root
        for node in (root, suite):
            assert {k: node.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
                "tests": "3", "failures": "1", "errors": "1", "skipped": "0",
            }  # fmt: skip
        cases = suite.findall("testcase")
        assert [(c.get("classname"), c.get("name")) for c in cases] == [
            ("a", "nDCG@5: human | llm"), ("b", "nDCG@5: human | llm"), ("c", "nDCG@5: human | llm"),
        ]  # fmt: skip
        assert [[child.tag for child in case] for case in cases] == [["system-out"], ["failure"], ["error"]]

    def test_reasons_are_the_messages(self) -> None:
        found = gate(THREE, max_tilt=15, baseline=THREE, resamples=200)
        (failure,), (error,) = (list(parsed(found).iter(tag)) for tag in ("failure", "error"))
        assert (failure.get("type"), failure.get("message")) == ("tilted", found.rows[1].reason)
        assert (error.get("type"), error.get("message")) == ("inconclusive", found.rows[2].reason)
        assert (failure.text or "").splitlines() == [c.reason for c in found.rows[1].checks]

    def test_inconclusive_that_passes_is_skipped(self) -> None:
        root = parsed(gate(UNSURE, inconclusive="pass"))
        assert (root.get("errors"), root.get("skipped")) == ("0", "1")
        assert [node.get("type") for node in root.iter("skipped")] == ["inconclusive"]
        assert not list(root.iter("error"))

    def test_properties_say_how(self) -> None:
        found = named(gate(LEVEL), command="ranktilt gate <x> & 'y'")
        values = {p.get("name"): p.get("value") for p in parsed(found).iter("property")}
        assert values["command"] == "ranktilt gate <x> & 'y'"
        assert values["asked"] == "tilt within ±15 points of level"
        assert set(values) == {"ranktilt", "asked", "command"}
        assert len(list(parsed(gate(LEVEL)).iter("property"))) == 2

    def test_it_is_utf8_with_a_declaration(self) -> None:
        data = junit(gate(audit_of(HUMAN.values, runs=["语言–Δ"])))
        assert data.startswith(b"<?xml version='1.0' encoding='utf-8'?>\n<testsuites ")
        assert data.endswith(b"</testsuites>\n")
        assert "语言–Δ" in data.decode("utf-8")

    @given(st.text(st.characters(codec=None), min_size=1, max_size=20))
    def test_any_name_can_be_parsed_again(self, name: str) -> None:
        found = gate(HUMAN)
        row = replace(found.rows[0], run=name, a=name)
        (case,) = parsed(replace(found, rows=(row,))).iter("testcase")
        allowed = [
            c for c in name if c in "\t\n\r" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff"
        ]
        assert case.get("classname") == "".join(allowed)

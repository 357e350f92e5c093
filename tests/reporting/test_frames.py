"""A result's rows as frames and CSV, every number unrounded and nothing for what is undefined; a
gate as JUnit XML.
"""

import csv
import io
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import UserError, table
from ranktilt.auditing.gate.gate import gate
from ranktilt.auditing.gate.result import Gate
from ranktilt.reporting.render.junit import junit
from ranktilt.reporting.sentences.gate import limit_reason, row_reason
from tests.auditing.test_gate import HUMAN, UNSURE
from tests.reporting.audits import clear, small
from tests.reporting.results import RESULTS, THREE, result

NO_RESULTS = ("installation", "models", "models, in full")


def test_effects_have_fields_and_nested_rows_their_upper_names() -> None:
    audit = small()
    assert audit.frame("means").equals(audit.by_group())
    tilts = audit.frame("tilts")
    assert tilts["run", "a", "b"].rows() == [(t.run, t.a, t.b) for t in audit.tilts]
    for name in (
        "value",
        "low",
        "high",
        "p",
        "p_corrected",
        "detectable",
        "null_low",
        "queries",
        "excluded",
    ):
        values = [getattr(tilt, name) for tilt in audit.tilts]
        assert tilts[name].to_list() == [None if value != value else value for value in values]
    assert tilts["estimand"][0] == "RelativeDelta(nDCG@1)"
    gate = result("gate")
    checks = gate.frame("rows.checks")
    assert checks.height == sum(len(row.checks) for row in gate.rows)
    first = checks.row(0, named=True)
    assert (first["run"], first["value"]) == (gate.rows[0].run, gate.rows[0].checks[0].value)
    assert (first["outcome"], first["rows.outcome"]) == (
        gate.rows[0].checks[0].outcome,
        gate.rows[0].outcome,
    )
    assert result("check").frame("faults")["examples"].drop_nulls().to_list() == ["d0-llm; d1-llm"]


def test_each_part_is_named_and_one_that_is_not_there_refused() -> None:
    with pytest.raises(UserError, match="unknown part of the result 'tilt'; did you mean 'tilts'"):
        small().frame("tilt")
    check = result("check, every part")
    assert check.frame("contents.sources")["words"][0] == 20.5
    assert check.frame("similarity")["separation_auc"][0] == 0.871
    assert check.frame("effectiveness")["low"][-1] is None  # undefined


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in NO_RESULTS])
def test_csv_holds_every_part(name: str) -> None:
    case_result: Any = result(name)
    lines = list(csv.DictReader(io.StringIO(table(case_result, "csv"))))
    frame = case_result.frame()
    assert [line["part"] for line in lines] == frame["part"].to_list()
    for column in (name for name, kind in frame.schema.items() if kind == pl.Float64):
        read = [float(line[column]) if line[column] else None for line in lines]
        assert read == frame[column].to_list()
        assert np.isfinite([v for v in read if v is not None]).all() or column.endswith(
            ("ceiling", "floor")
        )


def test_csv_quotes_names_and_holds_what_is_known_of_models() -> None:
    names = ('say "hi"', "a,b", "two\nlines")
    rows = list(csv.DictReader(io.StringIO(table(clear(names), "csv"))))
    assert list(dict.fromkeys(row["run"] for row in rows if row["part"] == "tilts")) == list(names)
    first, second, *_ = csv.DictReader(io.StringIO(table(result("models"), "csv")))
    known = (first["limit"], first["tuned"], first["here"], second["aliases"], second["pooling"])
    assert known == ("128", "true", "cache", "org/2", "")


def parsed(gate: Gate) -> ElementTree.Element:
    return ElementTree.fromstring(junit(gate))


class TestJUnit:
    def test_counts_and_kinds(self) -> None:
        data = junit(gate(THREE))
        assert data.startswith(b"<?xml version='1.0' encoding='utf-8'?>\n<testsuites ")
        root = ElementTree.fromstring(data)
        assert root.tag == "testsuites"
        (suite,) = root
        for node in (root, suite):
            assert {k: node.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
                "tests": "3",
                "failures": "1",
                "errors": "1",
                "skipped": "0",
            }
        cases = suite.findall("testcase")
        assert [(c.get("classname"), c.get("name")) for c in cases] == [
            ("a", "nDCG@5: human | llm"),
            ("b", "nDCG@5: human | llm"),
            ("c", "nDCG@5: human | llm"),
        ]
        assert [[child.tag for child in case] for case in cases] == [
            ["system-out"],
            ["failure"],
            ["error"],
        ]

    def test_reasons_are_the_messages_and_inconclusive_that_passes_is_skipped(self) -> None:
        gate_result = gate(THREE, max_tilt=15, baseline=THREE, resamples=200)
        (failure,), (error,) = (list(parsed(gate_result).iter(tag)) for tag in ("failure", "error"))
        assert (failure.get("type"), failure.get("message")) == (
            "tilted",
            row_reason(gate_result.rows[1]),
        )
        assert (error.get("type"), error.get("message")) == (
            "inconclusive",
            row_reason(gate_result.rows[2]),
        )
        assert (failure.text or "").splitlines() == [
            limit_reason(c) for c in gate_result.rows[1].checks
        ]
        root = parsed(gate(UNSURE, inconclusive="pass"))
        assert (root.get("errors"), root.get("skipped")) == ("0", "1")
        assert [node.get("type") for node in root.iter("skipped")] == ["inconclusive"]
        assert not list(root.iter("error"))

    @given(st.text(st.characters(codec=None), min_size=1, max_size=20))
    def test_any_name_can_be_parsed_again(self, name: str) -> None:
        gate_result = gate(HUMAN)
        row = replace(gate_result.rows[0], run=name, a=name)
        (case,) = parsed(replace(gate_result, rows=(row,))).iter("testcase")
        allowed = [
            c
            for c in name
            if c in "\t\n\r" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff"
        ]
        assert case.get("classname") == "".join(allowed)

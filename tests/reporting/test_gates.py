"""A gate as printed, and as build servers read it."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.auditing.gate import Gate, gate
from ranktilt.reporting.gates import gate_junit, gate_markdown, gate_text, show_gate
from tests.auditing.arrays import audit_of
from tests.auditing.test_gate import HUMAN, LEVEL, NOTHING, UNSURE
from tests.reporting.test_terminal import Terminal, plain

THREE = audit_of(np.concatenate([LEVEL.values, HUMAN.values, UNSURE.values]), runs=("a", "b", "c"))


def named(found: Gate, **spec: object) -> Gate:
    return replace(found, spec={**found.spec, **spec})


def parsed(found: Gate) -> ElementTree.Element:
    return ElementTree.fromstring(gate_junit(found))


class TestText:
    def test_one_row(self) -> None:
        lines = gate_text(gate(HUMAN, max_tilt=30)).splitlines()
        tilt = HUMAN.tilts[0]
        ends = f"+{tilt.low:.1f} … +{tilt.high:.1f}"
        assert lines[1].split() == [
            "measure", "groups", "check", "value", "95", "%", "interval", "allowed", "queries", "outcome",
        ]  # fmt: skip
        assert lines[3].strip() == "run"
        assert " ".join(lines[4].split()) == (
            f"nDCG@5 human | llm tilt +{tilt.value:.1f} {ends} −30.0 … +30.0 60 ✗ tilted"
        )
        assert lines[6:] == [
            f"✗ run, nDCG@5, human | llm: tilted: toward human: Relative Δ +{tilt.value:.1f} % "
            f"[+{tilt.low:.1f}, +{tilt.high:.1f}] lies wholly beyond +30.0",
            "✗ tilted (asked: tilt within ±30 points of level)",
        ]

    def test_a_row_for_each_check_and_a_sentence_for_each_comparison(self) -> None:
        text = gate_text(gate(THREE, max_tilt=20, baseline=THREE, min_effect=2.5, resamples=200))
        assert [line.split()[-1] for line in text.splitlines() if " … " in line] == [
            "level", "level", "tilted", "level", "inconclusive", "level",
        ]  # fmt: skip
        assert text.count("≤ 2.5") == 3
        starts = [line[:30] for line in text.splitlines() if line.startswith(("✓", "✗", "?"))]
        assert [s.split(",")[0] for s in starts[:3]] == ["✓ a", "✗ b", "? c"]
        assert text.splitlines()[-1].startswith("✗ tilted: 1 of 3 comparisons (asked: ")

    def test_undefined_is_a_dash(self) -> None:
        assert re.search(r"tilt +– +– … – ", gate_text(gate(NOTHING)))

    def test_notes_can_be_left_out(self) -> None:
        stream = Terminal()
        stream.isatty = lambda: False  # type: ignore[method-assign]
        show_gate(gate(THREE), stream, notes=False)
        assert "by chance" in gate_text(gate(THREE))
        assert "by chance" not in stream.getvalue()

    @pytest.mark.parametrize("columns", [40, 80, 100, 200])
    def test_nothing_is_cut_off(self, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", str(columns))
        stream = Terminal()
        show_gate(gate(THREE), stream)
        text = plain(stream.getvalue())
        assert max(map(len, text.splitlines())) <= columns
        assert ("check" in text.split("nDCG")[0]) == (columns >= 80)
        assert ("allowed" in text) == (columns >= 100)
        words = " ".join(text.split())
        for row in gate(THREE).rows:
            assert row.reason in words

    def test_a_long_name_is_folded(self) -> None:
        name = "replay:a/very/long/path/of/a/run/that/was/saved.trec"
        lines = gate_text(gate(audit_of(LEVEL.values, runs=[name]))).splitlines()
        assert "".join(line.strip() for line in lines[3:5]) == name
        assert lines[1].index("groups") <= 30

    def test_colours_follow_the_outcome(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", "120")
        stream = Terminal()
        show_gate(gate(THREE), stream)
        styles = dict(re.findall(r"\x1b\[([\d;]+)m([✓✗?] [a-z]+)", stream.getvalue()))
        assert {styles[code]: code for code in styles} == {
            "✓ level": "32", "? inconclusive": "33", "✗ tilted": "1;31",
        }  # fmt: skip


class TestMarkdown:
    def test_headline_table_reasons_and_how_to_make_it_again(self) -> None:
        found = gate(HUMAN, max_tilt=30)
        made = named(found, audit="ranktilt audit DIR -r bm25", command="ranktilt gate audit.json --max-tilt 30")
        lines = gate_markdown(made).splitlines()
        assert lines[0] == "## ❌ RankTilt: tilted (asked: tilt within ±30 points of level)"
        assert lines[2] == (
            "| ranker | measure | groups | check | value | 95 % interval | allowed | queries | outcome |"
        )
        assert lines[3] == "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | --- |"
        assert lines[4].startswith(r"| run | nDCG@5 | human \| llm | tilt | +")
        assert lines[4].endswith("| −30.0 … +30.0 | 60 | ✗ tilted |")
        assert lines[6].startswith(r"- ✗ run, nDCG@5, human \| llm: tilted: toward human: ")
        assert lines[-1] == (
            "Make it again: `ranktilt audit DIR -r bm25`, then `ranktilt gate audit.json --max-tilt 30`"
        )

    @pytest.mark.parametrize(("audit", "sign"), [(LEVEL, "✅"), (HUMAN, "❌"), (UNSURE, "⚠️")])
    def test_the_headline_has_a_sign(self, audit: object, sign: str) -> None:
        assert gate_markdown(gate(audit)).startswith(f"## {sign} RankTilt: ")  # type: ignore[arg-type]

    def test_without_commands_nothing_is_said_of_them(self) -> None:
        assert "Make it again" not in gate_markdown(gate(LEVEL))

    @pytest.mark.parametrize(
        ("command", "expected"), [("a `b` c", "``a `b` c``"), ("`a", "`` `a ``"), ("a ``b", "```a ``b```")]
    )
    def test_backticks_do_not_end_the_code(self, command: str, expected: str) -> None:
        assert f"Make it again: {expected}\n" in gate_markdown(named(gate(LEVEL), command=command))

    def test_names_cannot_break_the_table_or_become_html(self) -> None:
        odd = audit_of(HUMAN.values, runs=["x|y\n<img src=x>"])
        text = gate_markdown(gate(odd))
        assert r"| x\|y \<img src=x\> | nDCG@5 |" in text
        assert len(text.splitlines()) == 7


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

    def test_level_has_neither(self) -> None:
        root = parsed(gate(LEVEL))
        assert {root.get(k) for k in ("failures", "errors", "skipped")} == {"0"}
        assert [node.text for node in root.iter("system-out")] == [gate(LEVEL).rows[0].reason]

    def test_properties_say_how(self) -> None:
        found = named(gate(LEVEL), command="ranktilt gate <x> & 'y'")
        values = {p.get("name"): p.get("value") for p in parsed(found).iter("property")}
        assert values["command"] == "ranktilt gate <x> & 'y'"
        assert values["asked"] == "tilt within ±15 points of level"
        assert set(values) == {"ranktilt", "asked", "command"}
        assert len(list(parsed(gate(LEVEL)).iter("property"))) == 2

    def test_it_is_utf8_with_a_declaration(self) -> None:
        data = gate_junit(gate(audit_of(HUMAN.values, runs=["语言–Δ"])))
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

    def test_control_characters_are_left_out(self) -> None:
        found = audit_of(HUMAN.values, runs=["be\x07ll\x00 \x1b[31mred\ud800\ufffe"])
        (case,) = parsed(gate(found)).iter("testcase")
        assert case.get("classname") == "bell [31mred"

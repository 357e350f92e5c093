"""A calibration as text: measured beside expected, faults where they are, and the same words for other programs."""

import csv
import io
import re
from dataclasses import replace

import pytest

from ranktilt.auditing.calibration.result import (
    EXPECTED,
    MEANINGS,
    SIMULATED,
    Calibration,
    Check,
    CheckOutcome,
    Verdict,
)
from ranktilt.errors import UserError
from ranktilt.reporting.calibration import FORMATS, calibration_text, closing, legend, show

ROUGH = "Of coverage this is a rough check: with 200 draws 88.0–99.5 % passes; --draws narrows it."
CODE = re.compile(r"\x1b\[([\d;]*)m")
RED = "31"
SPEC = {
    "schemes": ["suffixes", "hashed"], "depths": [1, 3], "tilts": [-1.0, 0.0, 0.5], "draws": 200, "draw_queries": 50,
}  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def row(
    check: Check, measured: str, *, estimand: str = "ΔNDSR", ranker: str = "bm25", verdict: Verdict = "ok",
    details: str = "",
) -> CheckOutcome:  # fmt: skip
    expected = EXPECTED[check] or "88.0–99.5 %"
    return CheckOutcome(check, ranker, estimand, expected, measured, verdict, 12, int(verdict == "failed"), details)


GOOD = Calibration(
    (
        row("null", "0 in 12 of 12"),
        row("null", "0 in 12 of 12", estimand="score gap"),
        row("antisymmetry", "2 of 2"),
        row("antisymmetry", "2 of 2", estimand="score gap"),
        row("known tilt", "rose −1 to +1"),
        row("coverage", "94.5 %", ranker=SIMULATED),
    ),
    SPEC,
    ("Sources left out: gpt.",),
)
BAD = replace(
    GOOD,
    rows=(
        *GOOD.rows,
        row("null", "≠ 0 in 3 of 12, up to −1", ranker="mine", verdict="failed", details="ids: hashed, depth 3: −1"),
        row("null", "≠ 0 in 2 of 12, up to +9", ranker="mine", estimand="score gap", verdict="failed", details="two"),
        row("known tilt", "never moved", ranker="mine", verdict="untested"),
    ),
)


class TestText:
    def test_each_ranker_has_a_line_an_estimand_and_a_column_a_check(self) -> None:
        lines = calibration_text(GOOD, notes=False).splitlines()
        assert lines == [
            "bm25",
            "             null           antisymmetry  known tilt",
            "  expected   exactly 0      negated       rises with δ",
            "  ΔNDSR      0 in 12 of 12  2 of 2        rose −1 to +1",
            "  score gap  0 in 12 of 12  2 of 2        –",
            "",
            "simulated rankings",
            "            coverage",
            "  expected  88.0–99.5 %",
            "  ΔNDSR     94.5 %",
            "",
            f"Calibrated: 6 checks came out as expected. {ROUGH}",
        ]

    @pytest.mark.parametrize(
        ("accepted", "rough"),
        [("90.0–99.0 %", False), ("91.2–98.6 %", False), ("89.9–98.0 %", True), ("92.0–99.1 %", True)],
    )
    def test_a_wide_band_of_coverage_is_called_a_rough_check(self, accepted: str, rough: bool) -> None:
        rows = (*GOOD.rows[:-1], replace(GOOD.rows[-1], expected=accepted))
        said = closing(replace(GOOD, rows=rows))
        more = f" Of coverage this is a rough check: with 200 draws {accepted} passes; --draws narrows it."
        assert said == "Calibrated: 6 checks came out as expected." + more * rough

    def test_without_coverage_nothing_is_said_of_it(self) -> None:
        assert closing(replace(GOOD, rows=GOOD.rows[:-1])) == "Calibrated: 5 checks came out as expected."

    def test_a_failure_is_marked_and_explained(self) -> None:
        text = calibration_text(BAD)
        part = text[text.index("mine\n") : text.index("simulated rankings")].splitlines()
        assert part[3] == "  ΔNDSR      FAILED: ≠ 0 in 3 of 12, up to −1  never moved"
        assert part[5] == "  null failed for ΔNDSR (and 1 more): ids: hashed, depth 3: −1"
        assert part[6].startswith("  A ranker that tells copies apart breaks ties by id or order")
        assert "Not calibrated: 2 of 9 checks failed (mine: null). " in text

    def test_coverage_that_fails_is_explained_by_its_misses(self) -> None:
        low = row("coverage", "71.0 %", ranker=SIMULATED, verdict="failed", details="true value +3: 50 intervals below")
        text = calibration_text(Calibration((low,), SPEC), notes=False)
        assert "  ΔNDSR     FAILED: 71.0 %\n" in text
        assert "  coverage failed for ΔNDSR: true value +3: 50 intervals below\n" in text

    def test_notes_say_what_was_done(self) -> None:
        text = calibration_text(GOOD)
        assert "id schemes: suffixes, hashed; depths: 1, 3)." in text
        assert "in standard deviations of a query's scores: −1, 0, 0.5;" in text
        assert "(200 collections of 50 queries)." in text
        assert text.endswith("Sources left out: gpt.\n")
        assert calibration_text(GOOD, notes=False) == text[: text.index("Null: ")]

    def test_the_legend_names_only_what_was_checked(self) -> None:
        assert [line.split(":")[0] for line in legend(GOOD)] == ["Null", "Antisymmetry", "Known tilt", "Coverage"]
        assert len(legend(replace(GOOD, rows=GOOD.rows[:1]))) == 1
        assert set(MEANINGS) == set(EXPECTED)

    def test_lines_have_no_blanks_at_their_ends(self) -> None:
        assert not [line for line in calibration_text(BAD).splitlines() if line != line.rstrip()]


class TestTerminal:
    @pytest.fixture(autouse=True)
    def colours(self, monkeypatch: pytest.MonkeyPatch, no_terminal: None) -> None:
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("LINES", "50")

    def screen(self, monkeypatch: pytest.MonkeyPatch, made: Calibration, columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        stream = Terminal()
        show(made, stream)
        return stream.getvalue()

    def test_only_failures_are_red(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bad, good = (self.screen(monkeypatch, made, 200) for made in (BAD, GOOD))
        red = [line for line in bad.splitlines() if any(RED in code.split(";") for code in CODE.findall(line))]
        assert len(red) == 4  # two rows, where it failed, the sentence
        assert not any(RED in code.split(";") for code in CODE.findall(good))

    def test_colour_changes_no_word(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert CODE.sub("", self.screen(monkeypatch, BAD, 600)) == calibration_text(BAD)

    def test_a_narrow_screen_is_kept_to(self, monkeypatch: pytest.MonkeyPatch) -> None:
        lines = CODE.sub("", self.screen(monkeypatch, BAD, 60)).splitlines()
        assert max(map(len, lines)) <= 60


class TestOtherFormats:
    def test_markdown_holds_every_row_and_the_verdict(self) -> None:
        lines = calibration_text(BAD, "markdown").splitlines()
        assert lines[0] == "| check | ranker | estimand | expected | measured | verdict |"
        assert lines[1] == "| --- | --- | --- | --- | --- | --- |"
        assert lines[2] == "| null | bm25 | ΔNDSR | exactly 0 | 0 in 12 of 12 | ok |"
        assert len(lines) - lines.index("") - 1 == 1 + 2 + 4 + 1  # sentence, failures, legend, note
        assert "- null of mine, ΔNDSR: ids: hashed, depth 3: −1" in lines

    def test_markdown_is_short_without_notes(self) -> None:
        lines = calibration_text(GOOD, "markdown", notes=False).splitlines()
        assert lines[-1] == f"- Calibrated: 6 checks came out as expected. {ROUGH}"
        assert len(lines) == 2 + 6 + 1 + 1

    def test_csv_holds_every_field(self) -> None:
        found = list(csv.DictReader(io.StringIO(calibration_text(BAD, "csv"))))
        assert len(found) == 9
        assert found[6] == {
            "check": "null", "ranker": "mine", "estimand": "ΔNDSR", "expected": "exactly 0",
            "measured": "≠ 0 in 3 of 12, up to −1", "verdict": "failed", "tests": "12", "failed": "1",
            "details": "ids: hashed, depth 3: −1",
        }  # fmt: skip

    def test_formats(self) -> None:
        assert FORMATS == ("table", "markdown", "csv")
        with pytest.raises(UserError, match=r"unknown format 'html' \(valid: table, markdown, csv\)"):
            calibration_text(GOOD, "html")

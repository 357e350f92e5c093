"""A calibration: measured beside expected, and where it failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import polars as pl

from ranktilt.auditing.calibration.result import EXPECTED, MEANINGS, Calibration, Check, CheckOutcome, Verdict
from ranktilt.reporting.document import (
    ELSEWHERE,
    TERMINAL,
    Cell,
    Column,
    Document,
    Emphasis,
    Row,
    Sentence,
    Table,
    printed,
)
from ranktilt.reporting.numbers import DASH, listed_numbers
from ranktilt.reporting.tones import Tone

_COLUMNS = ("check", "ranker", "estimand", "expected", "measured", "verdict", "tests", "failed", "details")
_EMPHASIS: dict[Verdict, Emphasis] = {"ok": "", "untested": "quiet", "failed": "alarm"}
_TONES: dict[Verdict, Tone] = {"ok": "", "untested": "", "failed": "bad"}
_ADVICE: dict[Check, str] = {
    "null": "A ranker that tells copies apart breaks ties by id or order, or reads something other than the text; "
    "do not audit it before this is mended.",
}


def view(calibration: Calibration) -> Document:
    """Return what is said of a calibration."""
    grids = [_grid(calibration, ranker) for ranker in calibration.rankers]
    failed = (f"{row.check} of {row.ranker}, {row.estimand}: {row.details}" for row in calibration.failures)
    said = calibration.sentence
    return Document(
        title="Calibration",
        kind="Calibration of the instrument",
        headline=said,
        sections=printed([*grids, _every(calibration)]),
        sentences=(
            Sentence(said, "good" if calibration.passed else "bad", "strong" if calibration.passed else "alarm"),
            *(Sentence(text, "bad", only=ELSEWHERE) for text in failed),
        ),
        legend=tuple(legend(calibration)),
        notes=calibration.notes,
        data=pl.DataFrame([asdict(row) for row in calibration.rows]).select(_COLUMNS),
    )


def _every(calibration: Calibration) -> Table:
    titles = ("check", "ranker", "estimand", "expected", "measured", "verdict")
    columns = tuple(Column(title, number=False) for title in titles)
    rows = tuple(
        Row(tuple(Cell(getattr(row, t), None, _TONES[row.verdict] if t == "verdict" else "") for t in titles))
        for row in calibration.rows
    )
    return Table("Measured beside expected", columns, rows, only=ELSEWHERE)


def _grid(calibration: Calibration, ranker: str) -> Table:
    """For a terminal: a line an estimand, a column a check; above it what each check expects."""
    rows = [row for row in calibration.rows if row.ranker == ranker]
    checks = list(dict.fromkeys(row.check for row in rows))
    cells = {(row.estimand, row.check): row for row in rows}
    expected = [EXPECTED[check] for check in checks]
    lines = [Row(tuple(Cell(text, emphasis="quiet") for text in ("expected", *expected)))]
    for name in dict.fromkeys(row.estimand for row in rows):
        lines.append(Row((Cell(name), *(_cell(cells.get((name, check))) for check in checks))))
    columns = (Column("", number=False), *(Column(check, number=False) for check in checks))
    return Table(
        ranker, columns, tuple(lines), titled=True, aligned=True, below=tuple(_faults(rows)), space=(0, 1),
        only=TERMINAL,
    )  # fmt: skip


def _cell(row: CheckOutcome | None) -> Cell:
    if row is None:
        return Cell(DASH, emphasis="quiet")
    text = f"FAILED: {row.measured}" if row.verdict == "failed" else row.measured
    return Cell(text, None, _TONES[row.verdict], emphasis=_EMPHASIS[row.verdict])


def _faults(rows: Sequence[CheckOutcome]) -> Iterator[Sentence]:
    """Where each check failed first, once a check."""
    for check in dict.fromkeys(row.check for row in rows if row.verdict == "failed"):
        bad = [row for row in rows if row.check == check and row.verdict == "failed"]
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        yield Sentence(f"{check} failed for {bad[0].estimand}{more}: {bad[0].details}", "bad")
        if check in _ADVICE:
            yield Sentence(_ADVICE[check], emphasis="quiet")


def legend(calibration: Calibration) -> list[str]:
    """Say how it was done, in a few lines."""
    spec = calibration.spec
    settings = {
        "null": f"id schemes: {', '.join(spec.get('schemes', ()))}; depths: {listed_numbers(spec.get('depths', ()))}",
        "known tilt": f"in standard deviations of a query's scores: {listed_numbers(spec.get('tilts', ()))}; whole "
        "rankings with their ties, and cut at 10 with distinct scores",
    }
    lines = []
    for check in dict.fromkeys(row.check for row in calibration.rows):
        more = f" ({settings[check]})" if check in settings else ""
        lines.append(f"{check[0].upper()}{check[1:]}: {MEANINGS[check]}{more}.")
    return lines

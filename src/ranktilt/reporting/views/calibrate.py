"""A calibration: measured beside expected, and where it failed."""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.auditing.calibration.calibrate import EXPECTED, MEANINGS, Calibration, Check, CheckOutcome, Verdict
from ranktilt.reporting.document import Cell, Column, Document, Emphasis, Row, Sentence, Table, named, printed
from ranktilt.reporting.numbers import DASH, listed_numbers
from ranktilt.reporting.tones import Tone

_EMPHASIS: dict[Verdict, Emphasis] = {"ok": "", "untested": "quiet", "failed": "alarm"}
_TONES: dict[Verdict, Tone] = {"ok": "", "untested": "", "failed": "bad"}
_ADVICE: dict[Check, str] = {
    "null": "A ranker that tells copies apart breaks ties by id or order, or reads something other than the text; "
    "do not audit it before this is fixed."
}


def view(calibration: Calibration) -> Document:
    """Return what is said of a calibration."""
    grids = [_grid(calibration, ranker) for ranker in calibration.rankers]
    said = calibration.sentence
    return Document(
        kind="Calibration of the instrument",
        headline=said,
        sections=printed(grids),
        sentences=(
            *(fault for ranker in calibration.rankers for fault in _faults(calibration, ranker)),
            Sentence(said, "good" if calibration.passed else "bad", "strong" if calibration.passed else "alarm"),
        ),
        legend=tuple(legend(calibration)),
        notes=calibration.notes,
    )


def _grid(calibration: Calibration, ranker: str) -> Table:
    """A row an estimand, a column a check; above it what each check expects."""
    rows = [row for row in calibration.rows if row.ranker == ranker]
    checks = list(dict.fromkeys(row.check for row in rows))
    cells = {(row.estimand, row.check): row for row in rows}
    expected = [EXPECTED[check] for check in checks]
    lines = [Row(tuple(Cell(text, emphasis="quiet") for text in ("expected", *expected)))]
    for name in dict.fromkeys(row.estimand for row in rows):
        lines.append(Row((Cell(name), *(_cell(cells.get((name, check))) for check in checks))))
    columns = (named("estimand"), *(Column(check, number=False) for check in checks))
    return Table(ranker, columns, tuple(lines))


def _cell(row: CheckOutcome | None) -> Cell:
    if row is None:
        return Cell(DASH, emphasis="quiet")
    text = f"FAILED: {row.measured}" if row.verdict == "failed" else row.measured
    return Cell(text, None, _TONES[row.verdict], emphasis=_EMPHASIS[row.verdict])


def _faults(calibration: Calibration, ranker: str) -> Iterator[Sentence]:
    """Where each check failed first, once a check."""
    rows = [row for row in calibration.rows if row.ranker == ranker]
    for check in dict.fromkeys(row.check for row in rows if row.verdict == "failed"):
        bad = [row for row in rows if row.check == check and row.verdict == "failed"]
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        yield Sentence(f"{ranker}: {check} failed for {bad[0].estimand}{more}: {bad[0].details}", "bad")
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

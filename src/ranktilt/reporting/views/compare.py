"""A comparison of two audits: per run pair effectiveness and Relative Δ, old beside new."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ranktilt.auditing.compare import Comparison, RunPair
from ranktilt.auditing.effects import ALPHA, Change
from ranktilt.auditing.groups import Pair
from ranktilt.errors import counted
from ranktilt.reporting.document import Cell, Column, Document, Row, Sentence, Table, printed
from ranktilt.reporting.numbers import decimal, ends, signed

_LABEL = 26
_COLUMNS = (
    "run", "old_run", "measure", "quantity", "new", "old", "value", "low", "high", "error", "p", "p_corrected",
    "queries", "excluded", "votes", "tests", "detectable",
)  # fmt: skip
_OF_TILTS = (
    "a", "b", "dropped", "level_new", "level_old", "growth", "growth_low", "growth_high", "growth_error", "twins",
    "growth_detectable",
)  # fmt: skip


def view(comparison: Comparison) -> Document:
    """Return what is said of a comparison."""
    said = [verdict.sentence for verdict in comparison.verdicts()]
    return Document(
        title="Comparison",
        kind="Comparison of two audits",
        headline=said[0] if said else "Nothing was compared.",
        sections=printed([_table(comparison)]),
        sentences=tuple(Sentence(sentence, emphasis="strong") for sentence in said),
        legend=tuple(legend(comparison)),
        notes=comparison.notes,
        data=_data(comparison),
    )


def _table(comparison: Comparison) -> Table:
    columns = (
        Column("", number=False, header=True, width=_LABEL),
        *(Column(measure, spread=True) for measure in comparison.measures),
        Column("queries"),
    )
    rows = tuple(row for runs in comparison.runs for row in _run_rows(comparison, runs))
    return Table("New beside old", columns, rows, groups=("runs",), intervals="row")


def _run_rows(comparison: Comparison, runs: RunPair) -> list[Row]:
    title = f"{runs.new} against {'its old run' if runs.new == runs.old else runs.old}"
    means = [m for m in comparison.means if (m.run, m.old_run) == runs]
    queries = str(means[0].queries)
    found = [
        _row(title, "effectiveness: old", [_mean(m, m.old) for m in means], queries),
        _row(title, "new", [_mean(m, m.new) for m in means]),
        _difference(title, means),
    ]
    for pair in comparison.pairs:
        found += _tilt_rows(comparison, runs, pair, title)
    return found


def _mean(change: Change, value: float) -> Cell:
    return Cell(decimal(value) if change.queries else "–", value, emphasis="quiet" if value is change.old else "")


def _tilt_rows(comparison: Comparison, runs: RunPair, pair: Pair, title: str) -> list[Row]:
    tilts = [t for t in comparison.tilts if (t.run, t.old_run) == runs and (t.a, t.b) == pair]
    name = "Relative Δ" if len(comparison.pairs) == 1 else f"Relative Δ {pair[0]} | {pair[1]}"
    grown = [Cell(signed(t.growth), t.growth, ends=ends(t.growth_low, t.growth_high)) for t in tilts]
    return [
        _row(title, f"{name}: old", [Cell(signed(t.old), t.old) for t in tilts], str(tilts[0].queries)),
        _row(title, "new", [Cell(signed(t.new), t.new) for t in tilts]),
        _difference(title, tilts),
        _row(title, "growth of the tilt", grown),
    ]


def _difference(title: str, changes: Sequence[Change]) -> Row:
    cells = [
        Cell(
            signed(c.value) + ("*" if c.p_corrected < ALPHA else ""), c.value, ends=ends(c.low, c.high),
            emphasis="strong" if c.shown else "", signed=c.of_tilt,
        )
        for c in changes
    ]  # fmt: skip
    return _row(title, "difference", cells)


def _row(title: str, label: str, cells: Sequence[Cell], queries: str = "") -> Row:
    emphasis = {"difference": "strong", "effectiveness: old": "quiet"}.get(label, "")
    name = Cell(label, emphasis=emphasis)  # type: ignore[arg-type]
    return Row((name, *cells, Cell(queries, emphasis="quiet")), (title,))


def legend(comparison: Comparison) -> list[str]:
    """Say what the numbers are, in a few lines."""
    spec = comparison.spec
    tests = counted(int(spec["tests"]), "test", "tests")
    kinds = "sign flips for effectiveness"
    lines = ["Effectiveness: means over all relevant documents in %. Differences are new − old, in points."]
    if comparison.pairs:
        a, b = comparison.pairs[0]
        more = " (and likewise for the other pairs)" if len(comparison.pairs) > 1 else ""
        kinds = f"systems exchanged query by query for Relative Δ, {kinds}"
        lines.append(
            f"Relative Δ in %: + favours {a}, − favours {b}{more}. Growth of the tilt: |Δ new| − |Δ old|; above 0 the "
            "new run tilts more, whichever way."
        )
    correction = str(spec["correction"]).capitalize()
    lines.append(f"* corrected p < .05 ({correction} over {tests}; permutation tests: {kinds}).")
    lines.append(f"Intervals: paired bootstrap over queries, {spec['resamples']:,} resamples.")
    return lines


def _data(comparison: Comparison) -> pl.DataFrame:
    parts = [
        pl.DataFrame([_record(c) for c in changes], infer_schema_length=None)
        for changes in (comparison.means, comparison.tilts)
        if changes
    ]
    return pl.concat(parts, how="diagonal_relaxed")


def _record(change: Change) -> dict[str, object]:
    row = change.row() | {"quantity": "relative_delta" if change.of_tilt else "effectiveness"}
    return {name: row[name] for name in (*_COLUMNS, *(_OF_TILTS if change.of_tilt else ()))}

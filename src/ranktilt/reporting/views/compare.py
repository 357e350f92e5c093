"""A comparison of two audits, or of one's runs: effectiveness, Relative Δ and other estimands, old beside new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.comparison.match import RunPair
from ranktilt.auditing.effects import ALPHA, Change
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.errors import counted
from ranktilt.measures.preference import PreferenceOfPairs
from ranktilt.reporting.document import Cell, Column, Document, Emphasis, Row, Sentence, Table, printed
from ranktilt.reporting.numbers import decimal, ends, p_value, signed
from ranktilt.reporting.verdicts import named


def view(comparison: Comparison) -> Document:
    """Return what is said of a comparison."""
    said = [verdict.sentence for verdict in comparison.verdicts()]
    return Document(
        title="Comparison",
        kind=_kind(comparison),
        headline=said[0] if said else "Nothing was compared.",
        sections=printed(
            [
                *([_table(comparison)] if comparison.measures else []),
                *([_estimands(comparison)] if comparison.estimates else []),
            ]
        ),
        sentences=tuple(Sentence(sentence, emphasis="strong") for sentence in said),
        legend=tuple(legend(comparison)),
        notes=comparison.notes,
    )


def _kind(comparison: Comparison) -> str:
    if "count_rule" in comparison.spec:
        return "Comparison of two pairwise audits"
    return (
        "Comparison of two audits" if comparison.spec.get("baseline_run") is None else "Comparison of one audit's runs"
    )


def _table(comparison: Comparison) -> Table:
    columns = (
        named(""),
        *map(Column, comparison.measures),
        Column("queries"),
    )
    rows = tuple(row for runs in comparison.runs for row in _run_rows(comparison, runs))
    return Table(" beside ".join(_names(comparison)).capitalize(), columns, rows, groups=("runs",))


def _names(comparison: Comparison) -> tuple[str, str]:
    """What stands beside the numbers of both runs."""
    return ("new", "old") if comparison.spec.get("baseline_run") is None else ("run", "reference")


def _title(comparison: Comparison, runs: RunPair) -> str:
    if comparison.spec.get("baseline_run") is not None:
        return runs.new
    return f"{runs.new} against {'its old run' if runs.new == runs.old else runs.old}"


def _estimands(comparison: Comparison) -> Table:
    new, old = _names(comparison)
    columns = (
        named(""), Column(new), Column(old), Column("difference"),
        Column("corrected p", spare=1), Column("queries", spare=2),
    )  # fmt: skip
    rows = tuple(
        _estimand_row(change, _title(comparison, runs))
        for runs in comparison.runs
        for change in comparison.of_estimands(runs)
    )
    title = "Choices between two documents" if "count_rule" in comparison.spec else "Other estimands of groups"
    return Table(title, columns, rows, groups=("runs",))


def _estimand_row(change: Change, title: str) -> Row:
    name = change.name if change.a == ALL else f"{change.name} {change.a} | {change.b}"
    if isinstance(change.estimand, PreferenceOfPairs):
        name = f"{change.estimand.pairs} pairs"
    cells = (
        Cell(name), Cell(change.amount(change.new), change.new), Cell(change.amount(change.old), change.old),
        _moved(change), Cell(p_value(change.p_corrected), change.p_corrected), Cell(str(change.queries)),
    )  # fmt: skip
    return Row(cells, (title,))


def _run_rows(comparison: Comparison, runs: RunPair) -> list[Row]:
    title = _title(comparison, runs)
    new, old = _names(comparison)
    means = [m for m in comparison.means if (m.run, m.old_run) == runs]
    queries = str(means[0].queries)
    found = [
        _row(title, f"effectiveness: {old}", [_mean(m, m.old) for m in means], queries),
        _row(title, new, [_mean(m, m.new) for m in means]),
        _difference(title, means),
    ]
    for pair in comparison.pairs:
        found += _tilt_rows(comparison, runs, pair, title)
    return found


def _mean(change: Change, value: float) -> Cell:
    return Cell(decimal(value) if change.queries else "–", value, emphasis="quiet" if value is change.old else "")


def _tilt_rows(comparison: Comparison, runs: RunPair, pair: Pair, title: str) -> list[Row]:
    tilts = [t for t in comparison.tilts if (t.run, t.old_run) == runs and (t.a, t.b) == pair]
    new, old = _names(comparison)
    name = "Relative Δ" if len(comparison.pairs) == 1 else f"Relative Δ {pair[0]} | {pair[1]}"
    grown = [Cell(signed(t.growth), t.growth, ends=ends(t.growth_low, t.growth_high)) for t in tilts]
    return [
        _row(title, f"{name}: {old}", [Cell(signed(t.old), t.old) for t in tilts], str(tilts[0].queries)),
        _row(title, new, [Cell(signed(t.new), t.new) for t in tilts]),
        _difference(title, tilts),
        _row(title, "growth of the tilt", grown),
    ]


def _difference(title: str, changes: Sequence[Change]) -> Row:
    return _row(title, "difference", [*map(_moved, changes)])


def _moved(change: Change) -> Cell:
    text = change.amount(change.value, sign=True) + ("*" if change.p_corrected < ALPHA else "")
    emphasis: Emphasis = "strong" if change.shown else ""
    return Cell(text, change.value, ends=change.ends, emphasis=emphasis)


def _row(title: str, label: str, cells: Sequence[Cell], queries: str = "") -> Row:
    emphasis: Emphasis = "strong" if label == "difference" else "quiet" if label.startswith("effectiveness") else ""
    name = Cell(label, emphasis=emphasis)
    return Row((name, *cells, Cell(queries, emphasis="quiet")), (title,))


def legend(comparison: Comparison) -> list[str]:
    """Say what the numbers are, in a few lines."""
    spec = comparison.spec
    tests = counted(int(spec["tests"]), "test", "tests")
    if "count_rule" in spec:
        return _choice_legend(spec, tests)
    reference, others = spec.get("baseline_run"), bool(comparison.estimates)
    exchanged = ["Relative Δ"] * bool(comparison.pairs) + ["other estimands"] * others
    kinds = [f"systems exchanged query by query for {' and '.join(exchanged)}"] if exchanged else []
    new, old = _names(comparison)
    lines = [f"Differences are {new} − {old}, in points{'; of other estimands in their own unit' * others}."]
    if comparison.measures:
        kinds.append("sign flips for effectiveness")
        lines = [f"Effectiveness: means over all relevant documents in %. {lines[0]}"]
    if reference is not None:
        lines.insert(0, f"Reference: {reference}.")
    if comparison.pairs:
        a, b = comparison.pairs[0]
        more = " (and likewise for the other pairs)" if len(comparison.pairs) > 1 else ""
        lines.append(
            f"Relative Δ in %: + favours {a}, − favours {b}{more}. Growth of the tilt: |Δ {new}| − |Δ {old}|; above 0 "
            f"the {'new run' if reference is None else 'run'} tilts more, whichever way."
        )
    correction = str(spec["correction"]).capitalize()
    lines.append(f"* corrected p < .05 ({correction} over {tests}; permutation tests: {', '.join(kinds)}).")
    lines.append(f"Intervals: paired bootstrap over queries, {spec['resamples']:,} resamples.")
    return lines


def _choice_legend(spec: Mapping[str, Any], tests: str) -> list[str]:
    of = (
        "the pairs on which both orders agree"
        if spec["count_rule"] == "both-agree"
        else "the answers that could be read"
    )
    return [
        f"Preference: {spec['protected']} chosen among {of}, less 50 %; 0 is level. Differences are new − old, in "
        "points, over the queries in which both models decided anything.",
        f"* corrected p < .05 ({str(spec['correction']).capitalize()} over {tests}; permutation tests: models "
        "exchanged query by query).",
        f"Intervals: paired bootstrap over queries, {spec['resamples']:,} resamples. Tests and intervals speak of "
        "these documents alone.",
    ]

"""A comparison of two audits, or of one's runs: effectiveness, Relative Δ and other estimands, old beside new."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.comparison.match import RunPair
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.pairwise.result import EVEN, Share
from ranktilt.measures.base import Measure
from ranktilt.measures.preference import PreferenceOfPairs
from ranktilt.reporting.document import (
    Cell,
    Column,
    Document,
    Emphasis,
    Figure,
    PageBlocks,
    Row,
    Sentence,
    Table,
    named,
    printed,
    tabulated,
)
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import decimal, ends, moved, number, p_value, signed
from ranktilt.reporting.sentences.comparison import comparison_findings, comparison_meaning
from ranktilt.reporting.sentences.verdicts import sides_legend, starred
from ranktilt.reporting.views.readings import change_chart

BEFORE_AND_AFTER = ("before", "after")
_DODGE = 0.12


def view(comparison: Comparison) -> Document:
    """Return what is said of a comparison."""
    return Document(
        kind=_kind(comparison),
        headline=headline(comparison),
        sections=printed(
            [
                *([_table(comparison)] if comparison.measures else []),
                *([_estimands(comparison)] if comparison.estimates else []),
                PageBlocks(make=partial(_choice_figure, comparison)),
            ]
        ),
        sentences=tuple(
            Sentence(finding.sentence, emphasis="strong")
            for finding in comparison_findings(comparison)
        ),
        meaning=comparison_meaning(comparison),
        hero=PageBlocks(make=partial(_hero, comparison)),
        names=tuple(name for runs in comparison.runs for name in runs),
        legend=tuple(legend(comparison)),
        notes=tuple(note.sentence for note in comparison.notes),
    )


def _hero(comparison: Comparison) -> Iterator[IntervalChart]:
    """Draw the differences that verdicts are given on, those that are shown first."""
    verdicts = [verdict for verdict in comparison.verdicts() if verdict.kind != "identical"]
    changes = sorted((verdict.changes[0] for verdict in verdicts), key=_is_unshown)
    several_pairs, several_runs = len(comparison.pairs) > 1, len(comparison.runs) > 1

    def label(change: Change) -> str:
        words = [_quantity(change)]
        words += [f"{change.a} | {change.b}"] if several_pairs and change.a != change.b else []
        words += [change.run] if several_runs else []
        return ", ".join(words)

    new, old = _names(comparison)
    is_of_measure = bool(changes) and changes[0].unit == " points"
    subject = changes[0].measure if is_of_measure and comparison.measures else "Differences"
    chart = change_chart(changes, label, title=f"{subject}: {new} less {old}")
    if chart is not None:
        yield chart


def _is_unshown(change: Change) -> bool:
    return not change.shown


def _quantity(change: Change) -> str:
    """Name what a difference is of, in a word or two."""
    if isinstance(change.estimand, PreferenceOfPairs):
        return f"{change.estimand.pairs} pairs"
    if change.of_tilt:
        return "tilt"
    return "effectiveness" if isinstance(change.estimand, Measure) else change.name


def _kind(comparison: Comparison) -> str:
    if "count_rule" in comparison.spec:
        return "Comparison of two pairwise audits"
    return (
        "Comparison of two audits"
        if comparison.spec.get("baseline_run") is None
        else "Comparison of one audit's runs"
    )


def _table(comparison: Comparison) -> Table:
    columns = (named(""), *map(Column, comparison.measures), Column("queries"))
    rows = tuple(row for runs in comparison.runs for row in _run_rows(comparison, runs))
    title = " beside ".join(_names(comparison)).capitalize()
    return Table(title, columns, rows, groups=("runs",), folded=True)


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
        (named(""), lambda of: _named(of[0])),
        (new, lambda of: number(of[0].new, of[0].amount)),
        (old, lambda of: number(of[0].old, of[0].amount)),
        ("difference", lambda of: moved(of[0])),
        (Column("corrected p", spare=1), lambda of: number(of[0].p_corrected, p_value)),
        (Column("queries", spare=2), lambda of: str(of[0].queries)),
    )
    found = [(change, runs) for runs in comparison.runs for change in comparison.of_estimands(runs)]
    title = (
        "Choices between two documents"
        if "count_rule" in comparison.spec
        else "Other estimands of groups"
    )
    return tabulated(
        title, found, columns, group=lambda of: (_title(comparison, of[1]),), groups=("runs",)
    )


def _named(change: Change) -> str:
    if isinstance(change.estimand, PreferenceOfPairs):
        return f"{change.estimand.pairs} pairs"
    return change.name if change.a == ALL else f"{change.name} {change.a} | {change.b}"


def _run_rows(comparison: Comparison, runs: RunPair) -> Iterator[Row]:
    """Old, new and difference of effectiveness, then of each pair's Relative Δ, and by how much that grew."""
    new, old = _names(comparison)
    many = len(comparison.pairs) > 1
    means = [m for m in comparison.effectiveness if (m.run, m.old_run) == runs]
    blocks: list[tuple[str, list[Change], Callable[[float], str], Emphasis]]
    blocks = [("effectiveness", means, decimal, "quiet")]
    for a, b in comparison.pairs:
        tilts = [t for t in comparison.tilts if (t.run, t.old_run) == runs and (t.a, t.b) == (a, b)]
        blocks.append((f"Relative Δ {a} | {b}" if many else "Relative Δ", tilts, signed, ""))
    for name, changes, show, quiet in blocks:
        rows = [
            (
                Cell(f"{name}: {old}", emphasis=quiet),
                [number(c.old, show, emphasis=quiet) for c in changes],
            ),
            (Cell(new), [number(c.new, show) for c in changes]),
            (Cell("difference", emphasis="strong"), [*map(moved, changes)]),
        ]
        if name != "effectiveness":
            grown = [
                Cell(signed(t.growth), t.growth, ends=ends(t.growth_low, t.growth_high))
                for t in changes
            ]
            rows.append((Cell("growth of the tilt"), grown))
        for place, (head, cells) in enumerate(rows):
            queries = Cell("" if place else str(changes[0].queries), emphasis="quiet")
            yield Row((head, *cells, queries), (_title(comparison, runs),))


def legend(comparison: Comparison) -> list[str]:
    """Say what the numbers are, in a few lines."""
    spec, (new, old) = comparison.spec, _names(comparison)
    intervals = f"Intervals: paired bootstrap over queries, {spec['resamples']:,} resamples."
    if "count_rule" in spec:
        agreed = spec["count_rule"] == "both-agree"
        of = "the pairs on which both orders agree" if agreed else "the answers that could be read"
        return [
            f"Preference: {spec['protected']} chosen among {of}, less 50 %; 0 is level. "
            "Differences are new − old, in "
            "points, over the queries in which both models decided anything.",
            starred(spec),
            f"{intervals} Tests and intervals speak of these documents alone.",
        ]
    lines = [f"Reference: {spec['baseline_run']}."] if spec.get("baseline_run") is not None else []
    lines += (
        ["Effectiveness: means over all relevant documents in %."] if comparison.measures else []
    )
    others = "; of other estimands in their own unit" if comparison.estimates else ""
    lines.append(f"Differences are {new} − {old}, in points{others}.")
    if comparison.pairs:
        lines.append(
            f"Relative Δ in %: {sides_legend(comparison.pairs)}. Growth of the tilt: |Δ {new}| "
            f"− |Δ {old}|; above 0 "
            "the tilt grew, in either direction."
        )
    return [*lines, starred(spec), intervals]


def choices_of(comparison: Comparison) -> dict[str, Change]:
    """Changes of preference by their kind of pairs; none in a comparison of audits."""
    return {
        c.estimand.pairs: c
        for c in comparison.estimates
        if isinstance(c.estimand, PreferenceOfPairs)
    }


def ratios(change: Change) -> tuple[Share, Share]:
    """Protected over unprotected share of the old and of the new model, with their intervals; 1 is level."""
    ends = ((change.old, "old"), (change.new, "new"))
    shares = (
        Share(EVEN + x, EVEN + change.details[f"{n}_low"], EVEN + change.details[f"{n}_high"])
        for x, n in ends
    )
    before, after = (one.odds for one in shares)
    return before, after


def _choice_figure(comparison: Comparison) -> Iterator[Figure]:
    """Draw both models' ratios of each kind of pairs, as Wang et al. do; nothing for two audits."""
    found = choices_of(comparison)
    if not found:
        return
    (runs,) = comparison.runs
    both = list(zip(*map(ratios, found.values()), strict=True))
    points = {
        f"{when}: {model}": [
            Point(place, one.value, one.low, one.high) for place, one in enumerate(values)
        ]
        for when, model, values in zip(BEFORE_AND_AFTER, (runs.old, runs.new), both, strict=True)
    }
    ends = [
        v
        for values in both
        for one in values
        for v in (one.value, one.low, one.high)
        if np.isfinite(v)
    ]
    protected, unprotected = comparison.spec["protected"], comparison.spec["unprotected"]
    drawing = lines(
        points,
        x="",
        y=f"{protected} / {unprotected}",
        dodge=_DODGE,
        domain=(0.0, max([*ends, 1.0]) * 1.1),
        names={float(place): f"{kind} pairs" for place, kind in enumerate(found)},
    )
    title = f"Choices of {protected} over {unprotected} documents before and after"
    says = "Ratio of both groups' shares; 1 is level. Bars: 95 % intervals over queries."
    yield Figure(title, says, drawing, layout="wang-fig4")

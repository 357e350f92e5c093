"""Who stands at which rank, as figures, words and tables of an audit's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.breakdown import RankShares, rank_counts, rank_shares
from ranktilt.measures.printing import signed
from ranktilt.reporting.document import PAGE, Block, Cell, Column, Figure, Row, Section, Table
from ranktilt.reporting.figures.charts import GROUP_COLOURS, Point, curves, stairs
from ranktilt.reporting.numbers import interval as interval_text
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.verdicts import named
from ranktilt.run import Run
from ranktilt.statistics.bootstrap import RESAMPLES, interval, resampled_means

Floats = npt.NDArray[np.float64]
_DEPTH = 100
_MOST_LINES = 8
_MOST_DRAWN = 3
_RANKS = (1, 3, 5, 10, 20, 50, 100)
_SAID = 10
_DEEPEST = 1000
_BINS = 10


def ranks_section(opened: LoadedAudit) -> Section:
    """Show which groups fill the first ranks, and how soon the relevant documents of each are found."""
    title = "Who stands at which rank"
    if opened.collection is None or not opened.runs:
        why = opened.notes or ("The audit was not opened together with its collection and runs.",)
        return Section("ranks", title, ("Left out here: it needs the collection and the runs.", *why))
    found = [rank_shares(opened.collection, run, opened.audit, depth=_DEPTH) for run in opened.runs]
    judged = any(np.isfinite(one.found).any() for one in found)
    sooner = " And of the relevant documents of each group, how many?" if judged else ""
    lead = (
        f"Relevant or not, which documents does a searcher meet down to a rank?{sooner} Tied documents are spread "
        "evenly over the ranks that they share.",
    )
    order = _order(found[0], opened)
    figures: list[Block] = []
    if len(order) == 2:
        figures += _compared(found[:_MOST_LINES], order, judged=judged)
    else:
        for one in found[:_MOST_DRAWN]:
            figures += _by_group(one, order[:_MOST_LINES], judged=judged)
    for run in opened.runs[:_MOST_DRAWN]:
        figures += _distribution(opened, run, order)
    drawn = _MOST_LINES if len(order) == 2 else _MOST_DRAWN
    more = (f"Drawn for the first {drawn} of {len(found)} rankers; the tables hold all.",) if len(found) > drawn else ()
    tables = [_table([_filled(one) for one in found], found, "Documents of each group down to a rank, in %")]
    if judged:
        values = [one.found for one in found]
        tables.append(_table(values, found, "Relevant documents of each group found down to a rank, in %"))
    return Section("ranks", title, (*lead, *more), (*figures, *tables))


def _order(one: RankShares, opened: LoadedAudit) -> list[int]:
    """The groups of the first pair, then the others."""
    first = opened.audit.pairs[0] if opened.audit.pairs else ()
    ahead = [one.groups.index(name) for name in first]
    return [*ahead, *(g for g in range(len(one.groups)) if g not in ahead)]


def _filled(one: RankShares) -> Floats:
    """Share of each group among all documents down to each rank, over all queries; NaN below the longest list."""
    held = np.cumsum(np.where(one.queries > 0, np.nan_to_num(one.at) * one.queries, 0.0), axis=1)
    of = np.cumsum(one.queries)
    return np.where(one.queries > 0, held / np.maximum(of, 1), np.nan)


def _reach(found: Sequence[RankShares]) -> int:
    return max(1, *(int((one.queries > 0).sum()) for one in found))


def _compared(found: Sequence[RankShares], order: Sequence[int], *, judged: bool) -> Iterator[Figure]:
    """Two groups: what the first holds, and how much sooner its relevant documents are found; a line a ranker."""
    a, b = order
    first, second = (found[0].groups[g] for g in order)
    reach, level = _reach(found), 100 * float(found[0].level[a])
    filled = {one.run: 100 * _filled(one)[a][:reach] for one in found}
    at = min(_SAID, reach)
    said = ", ".join(f"{run} {_percent(heights[at - 1])}" for run, heights in filled.items())
    whose = f"Of the first {at} results" if at > 1 else "Of the results at rank 1"
    yield Figure(
        f"Who fills the first ranks: {first}",
        f"{whose} are {first}: {said}. Dotted: {first} in the whole collection, {_percent(level)}.",
        curves(filled, x="down to rank", y=f"{_short(first)}, % of results", levels=[level]),
        half=judged,
    )
    if not judged:
        return
    sooner = {one.run: 100 * (one.found[a] - one.found[b])[:reach] for one in found}
    said = ", ".join(f"{run} {_points(heights[at - 1])}" for run, heights in sooner.items())
    yield Figure(
        f"Whose right answers are found sooner: {first} less {second}",
        f"Share of the relevant documents found down to rank {at}, {first} less {second}, in points: {said}. Above 0 "
        f"those of {first} are found sooner, below 0 those of {second}.",
        curves(sooner, x="down to rank", y="difference, points", zero=True),
        half=True,
    )


def _by_group(one: RankShares, drawn: Sequence[int], *, judged: bool) -> Iterator[Figure]:
    """Several groups: one ranker's lines, a group each."""
    reach = _reach([one])
    at = min(_SAID, reach)
    for name, values, wanted in (("results", _filled(one), True), ("relevant documents found", one.found, judged)):
        if not wanted:
            continue
        said = ", ".join(f"{one.groups[g]} {_percent(100 * values[g][at - 1])}" for g in drawn)
        more = f" Drawn for {len(drawn)} of {len(one.groups)} groups." if len(drawn) < len(one.groups) else ""
        what = "Of its relevant documents are found"
        if name == "results":
            what, more = "Of the results", f"{more} Dotted: the groups' shares of the collection."
        yield Figure(
            f"{one.run}: {name}",
            f"{what} down to rank {at}: {said}.{more}",
            curves(
                {one.groups[g]: 100 * values[g][:reach] for g in drawn},
                x="down to rank",
                y="% of results" if name == "results" else "% of the group's",
                levels=[100 * float(one.level[g]) for g in drawn] if name == "results" else (),
                colours=GROUP_COLOURS,
            ),
        )


def _distribution(opened: LoadedAudit, run: Run, order: Sequence[int]) -> Iterator[Figure]:
    """How much larger a share of one group's documents than of another's stands at some ranks; none of short lists."""
    depth = min(int(np.diff(run.offsets).max(initial=0)), _DEEPEST)
    if opened.collection is None or depth < _BINS:
        return
    spec, (first, second) = opened.audit.spec, opened.audit.pairs[0]
    edges = np.linspace(0, depth, _BINS + 1).round().astype(np.int64)
    counts = rank_counts(opened.collection, run, opened.audit, edges)[order[:2]]
    if not counts.any(axis=(1, 2)).all():
        return
    resampling = {"resamples": min(int(spec.get("resamples", RESAMPLES)), RESAMPLES), "seed": int(spec.get("seed", 0))}
    means = resampled_means([column for side in counts for column in side], **resampling)
    values, drawn = _less(counts.sum(axis=2)), _less(np.reshape(means, (2, _BINS, -1)))
    bands = [interval(row) for row in drawn]
    steps = [Point(float(edge), v, band.low, band.high) for edge, v, band in zip(edges[1:], values, bands, strict=True)]
    yield Figure(
        f"{run.name}: on which ranks documents stand, {first} less {second}",
        f"Share of the listed documents of {first} that stands on some ranks, less that of {second}: "
        f"{_points(steps[0].value)} points {interval_text(steps[0].low, steps[0].high)} on ranks 1 to {edges[1]}; "
        "where the shaded 95 % band, a bootstrap over queries, holds 0, no difference is shown.",
        stairs(steps, x="rank", y="difference, points"),
    )


def _less(counts: Floats) -> Floats:
    """Share of each row's count among all of its side, first side less second, in points."""
    total = counts.sum(axis=1, keepdims=True)
    shares = 100 * np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
    difference: Floats = shares[0] - shares[1]
    return difference


def _table(values: Sequence[Floats], found: Sequence[RankShares], caption: str) -> Table:
    shown = [rank for rank in _RANKS if rank <= _reach(found)]
    columns = (named("ranker and group"), *(Column(f"rank {rank}") for rank in shown))
    rows: list[Row] = []
    for one, shares in zip(found, values, strict=True):
        for g, group in enumerate(one.groups):
            cells = (_cell(float(shares[g][rank - 1])) for rank in shown)
            rows.append(Row((Cell(group), *cells), (one.run,)))
    return Table(caption, columns, tuple(rows), folded=True, only=PAGE)


def _cell(value: float) -> Cell:
    return Cell("–" if value != value else f"{100 * value:.1f}", value)


def _percent(value: float) -> str:
    return "–" if value != value else f"{value:.1f} %"


def _points(value: float) -> str:
    return signed(value)


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"

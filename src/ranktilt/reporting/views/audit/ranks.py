"""Rank by rank: which groups fill the first ranks, and whose relevant documents come sooner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.breakdown import RankShares, rank_shares
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    Figure,
    Row,
    Section,
    Table,
    name_column,
)
from ranktilt.reporting.figures.charts import curves
from ranktilt.reporting.numbers import decimal, number_cell, percent
from ranktilt.reporting.reload import LoadedAudit

Floats = npt.NDArray[np.float64]
NOT_OPENED = "The audit was opened without its collection and runs."
"""Note in place of ranks, where an audit has neither collection nor runs."""
_DEPTH = 100
"""Ranks that a figure shows."""
_MOST_LINES = 8
"""Runs that one figure can hold and still be read."""
_MOST_DRAWN = 3
"""Groups that have a figure."""
_RANKS = (1, 3, 5, 10, 20, 50, 100)
"""Ranks that a table shows."""


def ranks_section(opened: LoadedAudit) -> Section:
    """Show which groups fill the first ranks, and how soon their relevant documents are found."""
    title = "Which group is at which rank"
    if opened.collection is None or not opened.runs:
        reasons = opened.notes or (NOT_OPENED,)
        lead = ("Left out here: it needs the collection and the runs.", *reasons)
        return Section("ranks", title, lead=lead)
    shares = [
        rank_shares(opened.collection, run, opened.audit, depth=_DEPTH) for run in opened.runs
    ]
    is_judged = any(np.isfinite(run.recall).any() for run in shares)
    # The groups of the first pair come first, in its order.
    groups = shares[0].groups
    leading = [groups.index(name) for name in (opened.audit.pairs or [()])[0]]
    order = [*leading, *(index for index in range(len(groups)) if index not in leading)]
    blocks: tuple[Block, ...] = (
        *_rank_figures(shares[:_MOST_LINES], order[:_MOST_DRAWN], is_judged=is_judged),
        *_rank_tables(shares, is_judged=is_judged),
    )
    lead = tuple(_ranks_lead(len(shares), is_judged=is_judged))
    return Section("ranks", title, lead=lead, blocks=blocks, short_title="Rank by rank")


def _ranks_lead(run_count: int, *, is_judged: bool) -> Iterator[str]:
    """Yield the sentences before the figures."""
    sooner = " And how many of each group's relevant documents?" if is_judged else ""
    yield (
        f"Which documents, relevant or not, does a searcher see down to each rank?{sooner} Tied "
        "documents are spread evenly over the ranks that they share."
    )
    if run_count > _MOST_LINES:
        yield f"The figures show the first {_MOST_LINES} of {run_count} rankers, the tables all."


def _filled(shares: RankShares) -> Floats:
    """Return the share of each group among all documents down to each rank, over all queries.

    NaN below the longest list.
    """
    queries = shares.queries
    documents = np.where(queries > 0, np.nan_to_num(shares.at) * queries, 0.0)
    all_documents = np.maximum(np.cumsum(queries), 1)
    return np.where(queries > 0, np.cumsum(documents, axis=1) / all_documents, np.nan)


def _reach(shares: Sequence[RankShares]) -> int:
    """Return the length of the longest list."""
    return max(1, *(int((run.queries > 0).sum()) for run in shares))


def _rank_figures(
    shares: Sequence[RankShares], order: Sequence[int], *, is_judged: bool
) -> Iterator[Figure]:
    """Draw the share of each group, then whose relevant ones come sooner; a line per ranker."""
    first, *others = order
    filling = order if len(others) > 1 else [first]
    for group in filling:
        yield _filled_figure(shares, group, half=is_judged or len(others) > 1)
    if is_judged:
        for group in others:
            yield _sooner_figure(shares, first, group)


def _filled_figure(shares: Sequence[RankShares], group: int, *, half: bool) -> Figure:
    """Return the figure of a group's share down to each rank."""
    name, reach = shares[0].groups[group], _reach(shares)
    level = 100 * float(shares[0].neutral[group])
    filled = {run.run: 100 * _filled(run)[group][:reach] for run in shares}
    return Figure(
        f"Who fills the first ranks: {name}",
        f"Dotted: {name} in the whole collection, {decimal(level)} %.",
        curves(filled, x="down to rank", y=f"{name}, % of results", levels=[level]),
        half=half,
    )


def _sooner_figure(shares: Sequence[RankShares], first: int, second: int) -> Figure:
    """Return the figure of whose relevant documents come sooner."""
    reach, groups = _reach(shares), shares[0].groups
    a, b = groups[first], groups[second]
    sooner = {run.run: 100 * (run.recall[first] - run.recall[second])[:reach] for run in shares}
    return Figure(
        f"Whose right answers are found sooner: {a} minus {b}",
        f"Share of the relevant documents found down to each rank, {a} minus {b}. Above 0, those "
        f"of {a} are found sooner; below 0, those of {b}.",
        curves(sooner, x="down to rank", y="difference, points", zeroed=True),
        half=True,
    )


def _rank_tables(shares: Sequence[RankShares], *, is_judged: bool) -> Iterator[Table]:
    """Yield the tables of the same numbers at some ranks."""
    filled = [_filled(run) for run in shares]
    yield _rank_table(filled, shares, "Documents of each group down to a rank, in %")
    if is_judged:
        recalls = [run.recall for run in shares]
        caption = "Relevant documents of each group found down to a rank, in %"
        yield _rank_table(recalls, shares, caption)


def _rank_table(values: Sequence[Floats], shares: Sequence[RankShares], caption: str) -> Table:
    """Lay out the values of each run, of shape (groups, ranks), at a few ranks."""
    ranks = [rank for rank in _RANKS if rank <= _reach(shares)]
    rows = list[Row]()
    for run, run_values in zip(shares, values, strict=True):
        for group, group_values in zip(run.groups, run_values, strict=True):
            cells = (number_cell(float(group_values[rank - 1]), percent) for rank in ranks)
            rows.append(Row((Cell(group), *cells), (run.run,)))
    columns = (name_column("group"), *(Column(f"rank {rank}") for rank in ranks))
    return Table(caption, columns, tuple(rows), collapsed=True, audience="page")

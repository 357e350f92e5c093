"""The section of an audit rank by rank: which groups fill the first ranks of lists.

*Down to rank k* means at the ranks 1 to k. The share of a group down to a rank is the part of all
results there that belongs to it; its *recall* is the part of its relevant documents found there.
Arrays have a row for each group and a column for each rank. Documents are *judged* if somebody said
whether they are relevant to a query.
"""

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
"""Array of floating-point numbers."""
NOT_OPENED = "The audit was opened without its collection and runs."
"""Note in place of ranks, where an audit has neither collection nor runs."""
_DEPTH = 100
"""Last rank that a figure shows."""
_MOST_LINES = 8
"""Most runs that one figure can hold and still be read."""
_MOST_DRAWN = 3
"""Most groups that have a figure."""
_RANKS = (1, 3, 5, 10, 20, 50, 100)
"""Ranks that a table shows."""


def ranks_section(loaded: LoadedAudit) -> Section:
    """Return the section with figures and tables of each group's share and recall by rank.

    Without collection or runs, the section says why they are left out.
    """
    title = "Which group is at which rank"
    if loaded.collection is None or not loaded.runs:
        reasons = loaded.notes or (NOT_OPENED,)
        lead = ("Left out here: it needs the collection and the runs.", *reasons)
        return Section("ranks", title, lead=lead)
    shares = [
        rank_shares(loaded.collection, run, loaded.audit, depth=_DEPTH) for run in loaded.runs
    ]
    is_judged = any(np.isfinite(run.recall).any() for run in shares)
    # The two groups of the first pair come first, in its order.
    groups = shares[0].groups
    first_pair = loaded.audit.pairs[0] if loaded.audit.pairs else ()
    in_pair = [groups.index(group) for group in first_pair]
    group_indices = [*in_pair, *(index for index in range(len(groups)) if index not in in_pair)]
    blocks: tuple[Block, ...] = (
        *_rank_figures(shares[:_MOST_LINES], group_indices[:_MOST_DRAWN], is_judged=is_judged),
        *_rank_tables(shares, is_judged=is_judged),
    )
    lead = tuple(_ranks_lead(len(shares), is_judged=is_judged))
    return Section("ranks", title, lead=lead, blocks=blocks, short_title="Rank by rank")


def _ranks_lead(run_count: int, *, is_judged: bool) -> Iterator[str]:
    """Yield the sentences before the figures."""
    recall = " And how many of each group's relevant documents?" if is_judged else ""
    yield (
        f"Which documents, relevant or not, does a searcher see down to each rank?{recall} Tied "
        "documents are spread evenly over the ranks that they share."
    )
    if run_count > _MOST_LINES:
        yield f"The figures show the first {_MOST_LINES} of {run_count} rankers, the tables all."


def _cumulative_shares(shares: RankShares) -> Floats:
    """Return the share of each group among all results down to each rank, over all queries.

    NaN below the longest list.
    """
    # How many queries have a result at a rank is also how many results there are at the rank.
    results = shares.queries
    results_of_groups = np.where(results > 0, np.nan_to_num(shares.at) * results, 0.0)
    all_results = np.maximum(np.cumsum(results), 1)
    return np.where(results > 0, np.cumsum(results_of_groups, axis=1) / all_results, np.nan)


def _longest_list(shares: Sequence[RankShares]) -> int:
    """Return the length of the longest list of any run, at least 1."""
    return max(1, *(int((run.queries > 0).sum()) for run in shares))


def _rank_figures(
    shares: Sequence[RankShares], group_indices: Sequence[int], *, is_judged: bool
) -> Iterator[Figure]:
    """Yield the figures of groups' shares and, with judgments, of differences in recall.

    Each has a line for each ranker. The share of the first of two groups also tells that of the
    second, which has no figure; recall is compared with that of the first group.
    """
    first, *others = group_indices
    has_several_others = len(others) > 1
    for group in group_indices if has_several_others else [first]:
        yield _share_figure(shares, group, half=is_judged or has_several_others)
    if is_judged:
        for group in others:
            yield _recall_figure(shares, first, group)


def _share_figure(shares: Sequence[RankShares], group: int, *, half: bool) -> Figure:
    """Draw the share of a group, given by its index, down to each rank."""
    name, depth = shares[0].groups[group], _longest_list(shares)
    level = 100 * float(shares[0].neutral[group])
    lines = {run.run: 100 * _cumulative_shares(run)[group][:depth] for run in shares}
    return Figure(
        f"Who fills the first ranks: {name}",
        f"Dotted: {name} in the whole collection, {decimal(level)} %.",
        curves(lines, x="down to rank", y=f"{name}, % of results", levels=[level]),
        half=half,
    )


def _recall_figure(shares: Sequence[RankShares], first: int, second: int) -> Figure:
    """Draw the difference in recall of two groups, given by their indices, down to each rank."""
    depth, groups = _longest_list(shares), shares[0].groups
    a, b = groups[first], groups[second]
    lines = {run.run: 100 * (run.recall[first] - run.recall[second])[:depth] for run in shares}
    return Figure(
        f"Whose right answers are found sooner: {a} minus {b}",
        f"Share of the relevant documents found down to each rank, {a} minus {b}. Above 0, those "
        f"of {a} are found sooner; below 0, those of {b}.",
        curves(lines, x="down to rank", y="difference, points", has_zero_line=True),
        half=True,
    )


def _rank_tables(shares: Sequence[RankShares], *, is_judged: bool) -> Iterator[Table]:
    """Yield the tables of the groups' shares and, with judgments, of their recall at some ranks."""
    cumulative = [_cumulative_shares(run) for run in shares]
    yield _rank_table(cumulative, shares, "Documents of each group down to a rank, in %")
    if is_judged:
        recalls = [run.recall for run in shares]
        caption = "Relevant documents of each group found down to a rank, in %"
        yield _rank_table(recalls, shares, caption)


def _rank_table(values: Sequence[Floats], shares: Sequence[RankShares], caption: str) -> Table:
    """Return the table of each run's values at a few ranks; `values` has an array for each run."""
    ranks = [rank for rank in _RANKS if rank <= _longest_list(shares)]
    rows = list[Row]()
    for run, run_values in zip(shares, values, strict=True):
        for group, group_values in zip(run.groups, run_values, strict=True):
            cells = (number_cell(float(group_values[rank - 1]), percent) for rank in ranks)
            rows.append(Row((Cell(group), *cells), (run.run,)))
    columns = (name_column("group"), *(Column(f"rank {rank}") for rank in ranks))
    return Table(caption, columns, tuple(rows), collapsed=True, audience="page")

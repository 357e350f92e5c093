"""The queries that two results have in common, and those that only one of them holds.

The *new* result is compared with the *old* one. Queries that a ranker was *fitted* on (learned
from) are missing from its result on purpose: they do not count as a difference between results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from ranktilt.data.notes.comparisons import QueriesLeftOut, QueriesOfOneSide, ResultKind
from ranktilt.errors import UserError, counted
from ranktilt.field_checks import is_number, printed
from ranktilt.measures.printing import digits_apart
from ranktilt.measures.ranking import Ints

MOST_NAMED = 3
"""Most names that a note or message lists."""
MAX_LEFT_OUT = 10.0
"""Largest percentage of all queries that only one of two results may hold."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonQueries:
    """The queries that two results have in common."""

    rows: tuple[Ints, Ints]
    """Indexes of the common queries in the new and the old result.

    The order of the queries does not depend on which result is the new one.
    """
    only_new: tuple[str, ...] = ()
    """Ids of queries that only the new result holds, without `fitted`."""
    only_old: tuple[str, ...] = ()
    """Ids of queries that only the old result holds, without `fitted`."""
    fitted: tuple[str, ...] = ()
    """Ids of queries that one result lacks because its runs learned from them.

    They do not count as missing.
    """

    @property
    def left_out(self) -> int:
        """Number of queries that only one of the results holds, without `fitted`."""
        return len(self.only_new) + len(self.only_old)

    @property
    def total(self) -> int:
        """Number of queries that either result holds, without `fitted`."""
        return len(self.rows[0]) + self.left_out

    @property
    def percent_left_out(self) -> float:
        """Percentage of queries that only one of the results holds."""
        return 100 * self.left_out / self.total if self.left_out else 0.0

    def differences(self, noun: str) -> str:
        """Say how many queries only one result holds, and name the first of them.

        `noun` is the noun for a result.
        """
        parts = []
        for side, queries in (("new", self.only_new), ("old", self.only_old)):
            if queries:
                number = counted(len(queries), "query", "queries")
                parts.append(f"{number} only in the {side} {noun} ({first_names(queries)})")
        return ", ".join(parts)

    def note(
        self, result: ResultKind, *, pairs: str = "", keeps_medians: bool = False
    ) -> QueriesLeftOut:
        """Return the note on the queries that are left out.

        Parameters
        ----------
        result : str
            Kind of the two results.
        pairs : str, optional
            Kind of the pairs of documents that the queries were asked about; empty for none.
        keeps_medians : bool, optional
            Whether medians under random labels remain those over all queries.
        """
        new, old = self.only_new, self.only_old
        sides = [
            QueriesOfOneSide(side="new", number=len(new), first=new[:MOST_NAMED]),
            QueriesOfOneSide(side="old", number=len(old), first=old[:MOST_NAMED]),
        ]
        return QueriesLeftOut(
            result=result,
            left_out=self.left_out,
            queries=self.total,
            sides=tuple(side for side in sides if side.number),
            pairs=pairs,
            keeps_medians=keeps_medians,
        )


def common_queries(
    new: Sequence[str],
    old: Sequence[str],
    *,
    max_left_out: float,
    noun: str = "audit",
    hint: str = "use the same judgments for both",
    fitted: Sequence[AbstractSet[str]] = (frozenset(), frozenset()),
) -> CommonQueries:
    """Return the queries that both results have.

    Parameters
    ----------
    new, old : sequence of str
        Ids of the queries of both results.
    max_left_out : float
        Largest percentage of all queries that only one result may hold.
    noun : str, optional
        Noun for a result in messages.
    hint : str, optional
        What to do about results with different queries, at the end of messages.
    fitted : pair of sets of str, optional
        Ids of queries that runs of the new and of the old result learned from. A result leaves
        these out, so that it does not count that only the other one holds them.

    Raises
    ------
    UserError
        If too many queries are in one of the results only.
    """
    check_left_out(max_left_out)
    common = _match_queries(new, old, fitted)
    if not len(common.rows[0]) and (common.left_out or common.fitted):
        raise UserError(f"the {noun}s have no query in common: {common.differences('one')}; {hint}")
    if common.percent_left_out > max_left_out:
        digits = digits_apart([common.percent_left_out], [max_left_out], 1)
        share = f"{common.left_out} of {common.total} ({common.percent_left_out:.{digits}f} %)"
        raise UserError(
            f"the {noun}s cover different queries: {common.differences('one')}; that is {share},"
            f" more than --max-left-out {max_left_out:g}; {hint}"
        )
    return common


def check_left_out(max_left_out: float) -> None:
    """Refuse a percentage of queries that is out of range."""
    if not is_number(max_left_out) or not 0 <= max_left_out <= 100:
        raise UserError(
            f"--max-left-out: expected a percentage from 0 to 100, got {printed(max_left_out)}"
        )


def _match_queries(
    new: Sequence[str], old: Sequence[str], fitted: Sequence[AbstractSet[str]]
) -> CommonQueries:
    """Match the queries of two results; `fitted` is that of `common_queries`."""
    new_ids, old_ids = set(new), set(old)
    rows_new = np.array([row for row, query in enumerate(new) if query in old_ids], dtype=np.int64)
    rows_old = np.array([row for row, query in enumerate(old) if query in new_ids], dtype=np.int64)
    if [new[row] for row in rows_new] != [old[row] for row in rows_old]:
        # The results have them in different orders: both are sorted by id.
        rows_new = np.array(sorted(rows_new, key=new.__getitem__), dtype=np.int64)
        rows_old = np.array(sorted(rows_old, key=old.__getitem__), dtype=np.int64)
    fitted_by_new, fitted_by_old = fitted
    only_new = tuple(query for query in new if query not in old_ids | fitted_by_old)
    only_old = tuple(query for query in old if query not in new_ids | fitted_by_new)
    missing_from_old = [query for query in new if query in fitted_by_old - old_ids]
    missing_from_new = [query for query in old if query in fitted_by_new - new_ids]
    return CommonQueries(
        rows=(rows_new, rows_old),
        only_new=only_new,
        only_old=only_old,
        fitted=(*missing_from_old, *missing_from_new),
    )


def first_names(names: Iterable[str]) -> str:
    """List the first `MOST_NAMED` names, and an ellipsis if there are more."""
    names = list(names)
    text = ", ".join(repr(name) for name in names[:MOST_NAMED])
    return text + (", …" if len(names) > MOST_NAMED else "")

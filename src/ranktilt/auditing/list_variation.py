"""Count the lists of a run that could have come out differently.

A list is *fixed* if it says nothing about whom the ranker favours: for example if it has a single
document, if all its documents are tied, or if a language model returned its input. A verdict of
*level* says that a ranker favours nobody; it is given only if enough lists could have come out
differently. The `Reason` of a fixed list is one of those in `statistics.variation`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.measures.base import Estimand
from ranktilt.measures.ranking import Bools, Floats, Ints
from ranktilt.rankers.llm.answers import READABLE
from ranktilt.statistics.variation import Reason, Variation


class ListVariation:
    """How many lists of one run could have come out differently.

    `missing` says what a query that the run lacks counts as: ``zero``, or ``exclude``.
    """

    def __init__(self, judged_run: JudgedRun, groups: Groups, *, missing: str) -> None:
        self.judged_run = judged_run
        # Documents without a label are no part of an answer, whatever their scores are.
        no_label = len(groups.names) + len(groups.combinations)
        has_label = judged_run.group_lists(groups).kind < no_label
        self.query = judged_run.ranking.query[has_label]
        self.scores = judged_run.ranking.scores[has_label]
        queries = np.arange(len(judged_run.judgments.queries))
        is_counted = judged_run.judgments.known_query & ~judged_run.left_out(missing)
        # Queries that repeat each other are one query to the statistics, so they are one list here.
        first = queries if judged_run.distinct is None else _first_queries(judged_run.distinct)
        self.lists: Bools = is_counted & (first == queries) & np.isin(queries, self.query)
        self._variations: dict[Estimand, Variation] = {}

    def for_estimand(self, estimand: Estimand) -> Variation:
        """Return how many lists behind the answer to one question could vary."""
        if estimand not in self._variations:
            self._variations[estimand] = self._variation(estimand)
        return self._variations[estimand]

    def _variation(self, estimand: Estimand) -> Variation:
        """Count the fixed lists by reason, each list for the first reason that applies.

        A list may be fixed by itself, be the same for many queries, or not be ranked by the
        language model that should have ranked it.
        """
        offsets = self.judged_run.ranking.offsets
        single_lists, is_varying = _count_fixed(
            self.lists, offsets, self.query, self.scores, estimand=estimand
        )
        fixed = dict(single_lists.fixed)
        _add_count(fixed, "repeated", _repeats(self.judged_run.list_keys[is_varying]))
        # A run only says which share of its lists a language model left unranked, and not which of
        # them. The share is taken of the lists that are not fixed for another reason.
        for reason, share in _llm_shares(self.judged_run).items():
            _add_count(fixed, reason, round(share * (single_lists.total - sum(fixed.values()))))
        return Variation(total=single_lists.total, fixed=fixed)


def fixed_lists(
    lists: Bools, offsets: Ints, query: Ints, scores: Floats, *, estimand: Estimand | None = None
) -> Variation:
    """Return how many lists are fixed, whatever the lists of other queries are.

    Parameters
    ----------
    lists : array of bool, shape (n_queries,)
        Which lists count.
    offsets : array of int64, shape (n_queries + 1,)
        Where each list begins and ends among the entries.
    query, scores : array
        Query and score of each entry whose document has a label.
    estimand : Estimand, optional
        The question, which may not depend on the order of a short list.
    """
    variation, _is_varying = _count_fixed(lists, offsets, query, scores, estimand=estimand)
    return variation


def _count_fixed(
    lists: Bools, offsets: Ints, query: Ints, scores: Floats, *, estimand: Estimand | None
) -> tuple[Variation, Bools]:
    """Return the result of `fixed_lists`, and which lists could vary."""
    lengths = np.diff(offsets)
    highest, lowest = np.full(len(lengths), -np.inf), np.full(len(lengths), np.inf)
    np.maximum.at(highest, query, scores)
    np.minimum.at(lowest, query, scores)
    labelled_count = np.bincount(query, minlength=len(lengths))
    reasons: list[tuple[Reason, Bools]] = [
        ("single", lengths == 1),
        ("tied", (highest == lowest) & (labelled_count > 1)),
    ]
    if estimand is not None:
        reasons.append(("whole", ~estimand.depends_on_order(lengths)))
    fixed: dict[Reason, int] = {}
    is_varying = lists.copy()
    for reason, is_fixed in reasons:
        _add_count(fixed, reason, int((is_varying & is_fixed).sum()))
        is_varying &= ~is_fixed
    return Variation(total=int(lists.sum()), fixed=fixed), is_varying


def _add_count(fixed: dict[Reason, int], reason: Reason, number: int) -> None:
    """Add how many lists are fixed for a reason, unless there are none."""
    if number:
        fixed[reason] = number


def _first_queries(distinct: Ints) -> Ints:
    """Return the index of the first query with the same number in `distinct`."""
    _, first, number = np.unique(distinct, return_index=True, return_inverse=True)
    return np.asarray(first[number], dtype=np.int64)


def _repeats(keys: npt.NDArray[np.uint64]) -> int:
    """Count how often the most frequent list is repeated; `keys` are equal for equal lists.

    A ranker that does not read the query returns the same list for all queries.
    """
    _, counts = np.unique(keys, return_counts=True)
    return int(counts.max(initial=1)) - 1


def _llm_shares(judged_run: JudgedRun) -> dict[Reason, float]:
    """Return the shares of lists that a language model as the last stage did not rank.

    The reason is that its answer could not be read, or that it returned its input.
    """
    shares: dict[Reason, float] = {}
    spec = judged_run.run.spec
    answers = spec.get("llm_answers")
    if isinstance(answers, Mapping):
        kinds = {str(kind): int(number) for kind, number in answers["kinds"].items()}
        unreadable = sum(number for kind, number in kinds.items() if kind not in READABLE)
        shares["unread"] = unreadable / max(sum(kinds.values()), 1)
    returned_input = spec.get("returned_input")
    if isinstance(returned_input, Mapping):
        list_count = max(int(returned_input["of"]), 1)
        shares["returned"] = int(returned_input["lists"]) / list_count
    return shares

"""Count the lists of a run that could have come out differently, so that "level" says something."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.measures.base import Estimand
from ranktilt.measures.ranking import Bools, Floats, Ints
from ranktilt.rankers.llm.answer_kinds import READABLE
from ranktilt.statistics.variation import Reason, Variation


class ListVariation:
    """How much the lists of one run could vary; made once for each run."""

    def __init__(self, judged_run: JudgedRun, groups: Groups, *, missing: str) -> None:
        self.judged_run = judged_run
        # Documents without a label are no part of an answer, whatever their scores are.
        labelled = judged_run.group_lists(groups).kind < len(groups.names) + len(
            groups.combinations
        )
        self.query, self.scores = (
            judged_run.ranking.query[labelled],
            judged_run.ranking.scores[labelled],
        )
        queries = np.arange(len(judged_run.judgments.queries))
        known = judged_run.judgments.known_query & ~judged_run.left_out(missing)
        # Queries that repeat each other are one query to the statistics, so they are one list here.
        first = queries if judged_run.distinct is None else _first_of(judged_run.distinct)
        self.lists: Bools = known & (first == queries) & np.isin(queries, self.query)
        self._known: dict[Estimand, Variation] = {}

    def for_estimand(self, estimand: Estimand) -> Variation:
        """Return how much the answer to one question could vary."""
        if estimand not in self._known:
            self._known[estimand] = self._variation(estimand)
        return self._known[estimand]

    def _variation(self, estimand: Estimand) -> Variation:
        """Count the fixed lists by reason.

        Lists are fixed by themselves, repeated, or not ranked by the language model.
        """
        offsets = self.judged_run.ranking.offsets
        by_list, varying = _fixed(self.lists, offsets, self.query, self.scores, estimand=estimand)
        fixed = dict(by_list.fixed)
        _count(fixed, "repeated", _repeats(self.judged_run.list_keys[varying]))
        for reason, share in _llm_shares(self.judged_run).items():
            _count(fixed, reason, round(share * (by_list.total - sum(fixed.values()))))
        return Variation(total=by_list.total, fixed=fixed)


def fixed_lists(
    lists: Bools, offsets: Ints, query: Ints, scores: Floats, *, estimand: Estimand | None = None
) -> Variation:
    """Return how many of `lists` could not have come out differently, each by itself.

    `query` and `scores` belong to the entries that count, which are those of labelled documents.
    """
    return _fixed(lists, offsets, query, scores, estimand=estimand)[0]


def _fixed(
    lists: Bools, offsets: Ints, query: Ints, scores: Floats, *, estimand: Estimand | None
) -> tuple[Variation, Bools]:
    """Return the result of `fixed_lists`, and which lists could vary."""
    lengths = np.diff(offsets)
    highest, lowest = np.full(len(lengths), -np.inf), np.full(len(lengths), np.inf)
    np.maximum.at(highest, query, scores)
    np.minimum.at(lowest, query, scores)
    counted = np.bincount(query, minlength=len(lengths))
    reasons: list[tuple[Reason, Bools]] = [
        ("single", lengths == 1),
        ("tied", (highest == lowest) & (counted > 1)),
    ]
    if estimand is not None:
        reasons.append(("whole", ~estimand.depends_on_order(lengths)))
    fixed: dict[Reason, int] = {}
    varying = lists.copy()
    for reason, holds in reasons:
        _count(fixed, reason, int((varying & holds).sum()))
        varying &= ~holds
    return Variation(total=int(lists.sum()), fixed=fixed), varying


def _count(fixed: dict[Reason, int], reason: Reason, number: int) -> None:
    """Note how many lists are fixed for a reason; nothing for none."""
    if number:
        fixed[reason] = number


def _first_of(distinct: Ints) -> Ints:
    """Return the index of the first query that each query repeats."""
    _, first, group = np.unique(distinct, return_index=True, return_inverse=True)
    return np.asarray(first[group], dtype=np.int64)


def _repeats(keys: npt.NDArray[np.uint64]) -> int:
    """Count how often the most frequent list is repeated.

    A ranker that does not read the query returns the same list for all of them.
    """
    _, counts = np.unique(keys, return_counts=True)
    return int(counts.max(initial=1)) - 1


def _llm_shares(judged_run: JudgedRun) -> dict[Reason, float]:
    """Return the shares of lists that a language model as the last stage did not rank, by reason.

    Its answer could not be read, or it returned its input.
    """
    shares: dict[Reason, float] = {}
    spec = judged_run.run.spec
    answers = spec.get("llm_answers")
    if isinstance(answers, Mapping):
        kinds = {str(kind): int(number) for kind, number in answers["kinds"].items()}
        unread = sum(number for kind, number in kinds.items() if kind not in READABLE)
        shares["unread"] = unread / max(sum(kinds.values()), 1)
    returned = spec.get("returned_input")
    if isinstance(returned, Mapping):
        shares["returned"] = int(returned["lists"]) / max(int(returned["of"]), 1)
    return shares

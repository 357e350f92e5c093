"""Make rankings from the answers in a log.

A *log* holds the calls of an LLM ranker. A *call* shows a window of a query's list, with its
passages numbered from [1], and the answer orders the window. Published code writes the new order
into the list, and the next call shows the next window of it. Here the answers are read in three
ways (published, model, strict), and each way has its own list; see `ReplayedRankings`.

The calls were made while the published list was built. So the published list says which documents a
window shows, also for the other two lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ranktilt.data.notes.comparisons import Mismatch
from ranktilt.errors import UserError
from ranktilt.rankers.llm.answers import (
    END_OF_THOUGHT,
    UNANSWERED,
    Reading,
    published_ranking,
    read_ranking,
)
from ranktilt.rankers.llm.stored_calls import CandidateTexts, LoggedCall, MatchedCall


@dataclass(frozen=True, kw_only=True)
class ReadAnswer:
    """An answer of a log, and how it was read."""

    call: int
    """Number of the call in the log."""
    query: str
    """Id of the query."""
    passages: int
    """Number of passages that the call showed."""
    kind: str
    """Kind of answer, one of `ranktilt.rankers.llm.answers.KINDS`."""
    echo: bool
    """Whether the answer ranks all passages in the order in which they were shown."""
    moved: bool
    """Whether the published reading puts the passages into another order than they were shown in.
    """


@dataclass(frozen=True, kw_only=True)
class UnmatchedCall:
    """A call that was left out."""

    call: int
    """Number of the call in the log."""
    mismatch: Mismatch
    """Reason why it was left out."""


@dataclass(kw_only=True)
class ReplayedRankings:
    """Rankings of the queries' candidates, by three readings of the answers.

    A ranking is a list of positions in the query's candidates, best first. Queries are named by
    their index. The object is filled while the calls of a log are read in turn.
    """

    published: list[list[int]]
    """Ranking of each query as the code of RankGPT and rank_llm reads the answers."""
    model: list[list[int]]
    """Ranking of each query by answers that hold a ranking; others leave the order as it was."""
    strict: list[list[int]]
    """Ranking of each query by answers that hold a ranking; passages that an answer does not rank
    are shuffled, so that they do not keep their input order."""
    answers: list[ReadAnswer] = field(default_factory=list)
    """Every answer that was read, in the log's order."""
    unmatched: list[UnmatchedCall] = field(default_factory=list)
    """Calls whose query or passages are not among the candidates."""
    left_out: dict[int, str] = field(default_factory=dict)
    """Queries that an unmatched call may be about, with their ids: they may lack a step."""
    called: set[int] = field(default_factory=set)
    """Queries that have a call and are not left out."""
    reordered: list[int] = field(default_factory=list)
    """Query of each call that shows passages in another order than the calls before it led to."""
    restarted: int | None = None
    """Number of the first call that begins a second run, from a query's input order; else None."""

    @property
    def misfits(self) -> float:
        """Number of calls that do not fit the published reading of the calls before them.

        Infinite if the log holds a second run.
        """
        if self.restarted is not None:
            return np.inf
        return len(self.unmatched) + len(self.reordered)

    @property
    def other_order(self) -> int:
        """Number of calls in `reordered`, without queries that are left out."""
        return sum(query not in self.left_out for query in self.reordered)


def replay_calls(
    calls: Sequence[LoggedCall], candidates: CandidateTexts, *, seed: int = 0
) -> ReplayedRankings:
    """Read the answers of a log in turn.

    In an answer with ``</think>``, published code reads the text after it (rank_llm), or all of it
    (RankGPT). Here the reading is used that better fits the orders in which later calls show the
    passages; if both fit, it is that of rank_llm. A call whose query or passages are not among the
    candidates is listed as unmatched, and the queries that it may be about are left out.

    Parameters
    ----------
    calls : sequence of LoggedCall
        The calls of the log.
    candidates : CandidateTexts
        The lists that were ranked, with their texts.
    seed : int, optional
        Random seed of the strict rankings.

    Raises
    ------
    UserError
        If a query is ranked again from its input order: then the log holds several runs.
    """
    rankings = _Replay(candidates, seed, after_thought=True).read(calls)
    if rankings.misfits and any(END_OF_THOUGHT in (call.answer or "") for call in calls):
        with_thought = _Replay(candidates, seed, after_thought=False).read(calls)
        if with_thought.misfits < rankings.misfits:
            rankings = with_thought
    if rankings.restarted is not None:
        raise UserError(
            f"the log holds several runs: call {rankings.restarted} ranks a query again from its "
            "first order; keep one log per run"
        )
    return rankings


class _Replay:
    """Reads the calls of a log in turn, by one of the two published readings.

    `after_thought` says that only the text after ``</think>`` counts.
    """

    def __init__(self, candidates: CandidateTexts, seed: int, *, after_thought: bool) -> None:
        self.candidates = candidates
        self.after_thought = after_thought
        self.rng = np.random.default_rng(seed)
        self.rankings = ReplayedRankings(
            published=self._input_orders(), model=self._input_orders(), strict=self._input_orders()
        )

    def _input_orders(self) -> list[list[int]]:
        """Return the positions of each query's candidates in their input order."""
        return [list(range(len(docs))) for docs in self.candidates.docs]

    def read(self, calls: Sequence[LoggedCall]) -> ReplayedRankings:
        """Read all calls, up to one that begins another run."""
        rankings = self.rankings
        for call in calls:
            matched = self.candidates.match(call)
            if isinstance(matched, Mismatch):
                self._leave_out(call, matched, self.candidates.possible_queries(call))
            elif matched.query in rankings.left_out:
                self._read_answer(call, matched)
            elif self._begins_another_run(matched):
                rankings.restarted = call.number
                break
            else:
                self._read_call(call, matched)
        rankings.called -= set(rankings.left_out)
        return rankings

    def _leave_out(self, call: LoggedCall, mismatch: Mismatch, queries: Iterable[int]) -> None:
        """List a call as unmatched, and leave out the queries that it may be about."""
        self.rankings.unmatched.append(UnmatchedCall(call=call.number, mismatch=mismatch))
        for query in sorted(queries):
            self.rankings.left_out[query] = self.candidates.queries[query]

    def _begins_another_run(self, matched: MatchedCall) -> bool:
        """Return whether a call shows passages in their input order, and not in the present one."""
        order = self.rankings.published[matched.query]
        if len(_window_starts(order, matched.passages)) == 1:
            return False
        input_order = range(len(order))
        return bool(_window_starts(input_order, matched.passages))

    def _read_call(self, call: LoggedCall, matched: MatchedCall) -> None:
        """Put the window of a call into the order of its answer, in all three rankings."""
        window = self._window(matched)
        if isinstance(window, Mismatch):
            self._leave_out(call, window, {matched.query})
            return
        reading = self._read_answer(call, matched)
        published_order = self._published_order(call, matched)
        query, rankings = matched.query, self.rankings
        _reorder(rankings.published[query], [window[position] for position in published_order])
        ranked = [window[position] for position in reading.order]
        as_shown = tuple(range(len(window)))
        if reading.order != as_shown:
            unranked = _unranked(rankings.model[query], window, ranked)
            _reorder(rankings.model[query], [*ranked, *unranked])
        unranked = _unranked(rankings.strict[query], window, ranked)
        _reorder(rankings.strict[query], [*ranked, *self.rng.permutation(unranked).tolist()])
        rankings.called.add(query)

    def _read_answer(self, call: LoggedCall, matched: MatchedCall) -> Reading:
        """Read an answer strictly, as exactly one ranking or none, and list how it was read."""
        count = len(matched.passages)
        reading = Reading(kind=UNANSWERED)
        if call.answer is not None:
            reading = read_ranking(call.answer, count)
        as_shown = tuple(range(count))
        self.rankings.answers.append(
            ReadAnswer(
                call=call.number,
                query=self.candidates.queries[matched.query],
                passages=count,
                kind=reading.kind,
                echo=reading.order == as_shown,
                moved=self._published_order(call, matched) != as_shown,
            )
        )
        return reading

    def _published_order(self, call: LoggedCall, matched: MatchedCall) -> tuple[int, ...]:
        """Return the order of the passages as published code reads the answer."""
        return published_ranking(
            call.answer or "", len(matched.passages), after_thought=self.after_thought
        )

    def _window(self, matched: MatchedCall) -> list[int] | Mismatch:
        """Return the passages of a call, as positions in the list of its query.

        If documents have equal texts, the published ranking so far says which of them is shown.
        """
        order, size = self.rankings.published[matched.query], len(matched.passages)
        starts = _window_starts(order, matched.passages)
        if len(starts) == 1:
            return order[starts[0] : starts[0] + size]
        # The call shows the passages in another order.
        if any(len(candidates) > 1 for candidates in matched.passages):
            return Mismatch(kind="equal texts reordered")
        window = [candidates[0] for candidates in matched.passages]
        if len(set(window)) < size:
            return Mismatch(kind="repeated document")
        self.rankings.reordered.append(matched.query)
        return window


def _window_starts(order: Sequence[int], passages: Sequence[tuple[int, ...]]) -> list[int]:
    """Return where in a ranking these passages come one after the other, in this order.

    `passages` has, for each passage, the candidates that it may be.
    """
    starts = []
    for start in range(len(order) - len(passages) + 1):
        window = order[start : start + len(passages)]
        if all(doc in candidates for doc, candidates in zip(window, passages, strict=True)):
            starts.append(start)
    return starts


def _unranked(order: Sequence[int], window: Sequence[int], ranked: Sequence[int]) -> list[int]:
    """Return the passages of a window that an answer does not rank, as `order` has them."""
    unranked = set(window) - set(ranked)
    return [doc for doc in order if doc in unranked]


def _reorder(order: list[int], window: Sequence[int]) -> None:
    """Write the passages of a window, in its order, into the positions that they hold in a list."""
    members = set(window)
    positions = [position for position, doc in enumerate(order) if doc in members]
    for position, doc in zip(positions, window, strict=True):
        order[position] = doc

"""Make rankings of the answers in a log.

A call shows a window of a query's list, numbered from [1], and its answer orders the window.
Published code writes the new order into the list, and the next call shows the next window of it.
Here the answers are read in three ways, and each way has its own list; see `ReplayedRankings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ranktilt.data.notes.comparisons import Mismatch
from ranktilt.errors import UserError
from ranktilt.rankers.llm.answer_kinds import UNANSWERED
from ranktilt.rankers.llm.answers import END_OF_THOUGHT, Reading, published_ranking, read_ranking
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
    """Whether it ranks all passages in the order in which they were shown."""
    moved: bool
    """Whether the published reading puts the passages in another order than they were shown in."""


@dataclass(frozen=True, kw_only=True)
class UnmatchedCall:
    """A call that was left out."""

    call: int
    """Number of the call in the log."""
    mismatch: Mismatch
    """Reason why it was left out."""


@dataclass(kw_only=True)
class ReplayedRankings:
    """Rankings of the candidates' queries in three readings.

    A ranking is a list of positions in the query's candidates, best first. Queries are numbers.
    """

    published: list[list[int]]
    """Rankings as the code of RankGPT and rank_llm reads the answers."""
    model: list[list[int]]
    """Rankings by answers that do rank; any other answer leaves the order as it was."""
    strict: list[list[int]]
    """The same, but what no answer decides is shuffled, so that no window keeps its input order."""
    answers: list[ReadAnswer] = field(default_factory=list)
    """Every answer, in the log's order."""
    unmatched: list[UnmatchedCall] = field(default_factory=list)
    """Calls that fit nothing."""
    left_out: dict[int, str] = field(default_factory=dict)
    """Queries that an unmatched call may be about, with their ids: a step may be missing there."""
    called: set[int] = field(default_factory=set)
    """Queries that have a call and are not left out."""
    reordered: list[int] = field(default_factory=list)
    """Query of each call that showed passages in another order than the published reading left."""
    restarted: int | None = None
    """Number of a call that ranks a query from its first order again; None without one."""

    @property
    def misfits(self) -> float:
        """Number of calls that do not follow from the published reading of the calls before."""
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

    Published code reads an answer with ``</think>`` from there on (rank_llm), or completely
    (RankGPT). The reading that fits the orders which later calls show is used; if both fit, it is
    that of rank_llm. A call whose query or passages are not recognised is noted, and the queries
    that it may be about are left out. `UserError` if a query is ranked again from its first order,
    because the log then holds several runs.
    """
    rankings = _Replay(candidates, seed, after_thought=True).read(calls)
    if rankings.misfits and any(END_OF_THOUGHT in (call.answer or "") for call in calls):
        of_whole_answers = _Replay(candidates, seed, after_thought=False).read(calls)
        if of_whole_answers.misfits < rankings.misfits:
            rankings = of_whole_answers
    if rankings.restarted is not None:
        raise UserError(
            f"the log holds several runs: call {rankings.restarted} ranks a query again from its "
            "first order; keep one log per run"
        )
    return rankings


class _Replay:
    """Reads the answers of a log by one of the published readings."""

    def __init__(self, candidates: CandidateTexts, seed: int, *, after_thought: bool) -> None:
        self.candidates = candidates
        self.after_thought = after_thought
        self.rng = np.random.default_rng(seed)
        self.rankings = ReplayedRankings(
            published=self._input_orders(), model=self._input_orders(), strict=self._input_orders()
        )

    def _input_orders(self) -> list[list[int]]:
        """Return the candidates of each query in their first order."""
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
        """Note a call that fits nothing, and the queries that it may be about."""
        self.rankings.unmatched.append(UnmatchedCall(call=call.number, mismatch=mismatch))
        for query in sorted(queries):
            self.rankings.left_out[query] = self.candidates.queries[query]

    def _begins_another_run(self, matched: MatchedCall) -> bool:
        """Tell whether passages are in their first order again, after calls that changed it."""
        order = self.rankings.published[matched.query]
        if len(_windows(order, matched.passages)) == 1:
            return False
        return bool(_windows(range(len(order)), matched.passages))

    def _read_call(self, call: LoggedCall, matched: MatchedCall) -> None:
        """Order the window of a call as its answer says, in all three readings."""
        window = self._window(matched)
        if isinstance(window, Mismatch):
            self._leave_out(call, window, {matched.query})
            return
        reading = self._read_answer(call, matched)
        published = self._published_order(call, matched)
        query, rankings = matched.query, self.rankings
        ranked = [window[position] for position in reading.order]
        _put(rankings.published[query], [window[position] for position in published])
        if reading.order != tuple(range(len(window))):
            rest = _rest(rankings.model[query], window, ranked)
            _put(rankings.model[query], [*ranked, *rest])
        rest = _rest(rankings.strict[query], window, ranked)
        _put(rankings.strict[query], [*ranked, *self.rng.permutation(rest).tolist()])
        rankings.called.add(query)

    def _read_answer(self, call: LoggedCall, matched: MatchedCall) -> Reading:
        """Read an answer strictly, and note its kind."""
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

        Of passages with equal texts, the ranking so far says which is which.
        """
        order, size = self.rankings.published[matched.query], len(matched.passages)
        starts = _windows(order, matched.passages)
        if len(starts) == 1:
            return order[starts[0] : starts[0] + size]
        if any(len(candidates) > 1 for candidates in matched.passages):
            return Mismatch(kind="equal texts reordered")
        window = [candidates[0] for candidates in matched.passages]
        if len(set(window)) < size:
            return Mismatch(kind="repeated document")
        self.rankings.reordered.append(matched.query)
        return window


def _windows(order: Sequence[int], passages: Sequence[tuple[int, ...]]) -> list[int]:
    """List where a ranking has these passages next to each other, in this order."""
    starts = []
    for start in range(len(order) - len(passages) + 1):
        window = order[start : start + len(passages)]
        if all(doc in candidates for doc, candidates in zip(window, passages, strict=True)):
            starts.append(start)
    return starts


def _rest(order: Sequence[int], window: Sequence[int], ranked: Sequence[int]) -> list[int]:
    """Return the passages of a window that an answer does not rank, in the given order."""
    rest = set(window) - set(ranked)
    return [doc for doc in order if doc in rest]


def _put(order: list[int], window: Sequence[int]) -> None:
    """Put the passages of a window into the positions that they hold in a list, in a new order."""
    members = set(window)
    positions = [position for position, doc in enumerate(order) if doc in members]
    for position, doc in zip(positions, window, strict=True):
        order[position] = doc

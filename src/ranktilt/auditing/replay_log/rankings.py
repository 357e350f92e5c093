"""The orders that the answers of a log make of its candidates."""

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
    """One answer of a log, as it was read."""

    call: int
    """Number of the call in the log."""
    query: str
    passages: int
    """Number of passages that were shown."""
    kind: str
    """One of `ranktilt.rankers.llm.answers.KINDS`."""
    echo: bool
    """Whether it ranks all passages in the order in which they were shown."""
    moved: bool
    """Whether the published reading puts them in another order than the one in which they were
    shown.
    """


@dataclass(frozen=True, kw_only=True)
class UnmatchedCall:
    """A call that was left out."""

    call: int
    """Number of the call in the log."""
    mismatch: Mismatch


@dataclass(kw_only=True)
class ReplayedRankings:
    """Rankings of the candidates' queries, as positions in each query's list, best first."""

    published: list[list[int]]
    """As RankGPT's and rank_llm's code reads the answers."""
    model: list[list[int]]
    """As answers say that have a ranking of their own; everything else stays as it came."""
    strict: list[list[int]]
    """The same, but what no answer decides is shuffled: nothing of the input order is left in a
    window.
    """
    answers: list[ReadAnswer] = field(default_factory=list)
    unmatched: list[UnmatchedCall] = field(default_factory=list)
    left_out: dict[int, str] = field(default_factory=dict)
    """Ids of the queries that an unmatched call can be about: their rankings may lack a step."""
    called: set[int] = field(default_factory=set)
    """Queries that have a call, without those."""
    reordered: list[int] = field(default_factory=list)
    """The query of each call that showed passages in another order than the calls before it leave,
    as published.
    """
    restarted: int | None = None
    """The call that ranks a query again from its first order: the log has several runs."""

    @property
    def misfits(self) -> float:
        """Calls that do not follow from the published reading of those before."""
        if self.restarted is not None:
            return np.inf
        return len(self.unmatched) + len(self.reordered)

    @property
    def other_order(self) -> int:
        """Calls that showed passages in another order, of queries that are not left out."""
        return sum(query not in self.left_out for query in self.reordered)


def replay_calls(
    calls: Sequence[LoggedCall], candidates: CandidateTexts, *, seed: int = 0
) -> ReplayedRankings:
    """Read the answers of a log in turn.

    Calls whose query or passages cannot be told are named, and their query is left out.

    Published code reads an answer with ``</think>`` from there on (rank_llm), or whole (RankGPT).
    The reading counts whose orders the later calls show, that of rank_llm where both fit.
    `UserError` if a query is ranked again from its first order: the log then holds more than one
    run.
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
        """Tell whether passages are in their first order, which earlier calls have changed."""
        order = self.rankings.published[matched.query]
        if len(_windows(order, matched.passages)) == 1:
            return False
        return bool(_windows(range(len(order)), matched.passages))

    def _read_call(self, call: LoggedCall, matched: MatchedCall) -> None:
        """Rank the window of a call as its answer says."""
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
        """Read an answer strictly, and keep what kind it is."""
        count = len(matched.passages)
        reading = Reading(UNANSWERED, ())
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
    """Return the passages of a window that an answer does not rank, in the order of a list."""
    rest = set(window) - set(ranked)
    return [doc for doc in order if doc in rest]


def _put(order: list[int], window: Sequence[int]) -> None:
    """Put a window's passages into the positions that they have in a list, in a new order."""
    members = set(window)
    positions = [position for position, doc in enumerate(order) if doc in members]
    for position, doc in zip(positions, window, strict=True):
        order[position] = doc

"""Rankings made anew from stored answers: as published code reads them, and strictly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from ranktilt.errors import UserError
from ranktilt.rankers.llm.answers import (
    END_OF_THOUGHT,
    UNANSWERED,
    Reading,
    published_ranking,
    read_ranking,
)
from ranktilt.rankers.llm.log import LoggedCall
from ranktilt.rankers.llm.prompt_matching import CandidateTexts, MatchedCall


class ReadAnswer(NamedTuple):
    """One answer of a log, as it was read."""

    call: int
    """Number of the call in the log."""
    query: str
    passages: int
    """How many were shown."""
    kind: str
    """One of `ranktilt.rankers.llm.answers.KINDS`."""
    echo: bool
    """Whether it ranks all passages in the order in which they were shown."""
    moved: bool
    """Whether the published reading puts them in another order than the one in which they were shown."""


class UnmatchedCall(NamedTuple):
    """A call that was left out."""

    call: int
    reason: str


@dataclass
class ReplayedRankings:
    """Rankings of the candidates' queries, as places in each query's list, best first."""

    published: list[list[int]]
    """As RankGPT's and rank_llm's code reads the answers."""
    model: list[list[int]]
    """As answers say that hold a ranking of their own; everything else stays as it came."""
    strict: list[list[int]]
    """The same, but what no answer decides is shuffled: nothing of the input order is left in a window."""
    answers: list[ReadAnswer] = field(default_factory=list)
    unmatched: list[UnmatchedCall] = field(default_factory=list)
    left_out: dict[int, str] = field(default_factory=dict)
    """Queries that an unmatched call can be about, with their ids: what is known of their rankings is not whole."""
    called: set[int] = field(default_factory=set)
    """Queries that have a call, without those."""
    reordered: list[int] = field(default_factory=list)
    """The query of each call that showed passages in another order than the calls before it leave, as published."""

    @property
    def misfits(self) -> int:
        """Calls that do not follow from the published reading of those before."""
        return len(self.unmatched) + len(self.reordered)

    @property
    def other_order(self) -> int:
        """Calls that showed passages in another order, of queries that are not left out."""
        return sum(query not in self.left_out for query in self.reordered)


def replay_calls(
    calls: Sequence[LoggedCall], candidates: CandidateTexts, *, seed: int = 0
) -> ReplayedRankings:
    """Read the answers of a log in turn; calls whose query or passages cannot be told are named, their query left out.

    Published code reads an answer with ``</think>`` from there on (rank_llm), or whole (RankGPT).
    The reading counts whose orders the later calls show, that of rank_llm where both fit.
    `UserError` if a query is ranked again from its first order: the log then holds more than one
    run.
    """
    replay = partial(_replay_as, calls, candidates, seed)
    if not any(END_OF_THOUGHT in (call.answer or "") for call in calls):
        return replay(after_thought=True)
    try:
        after = replay(after_thought=True)
    except UserError as error:
        try:
            return replay(after_thought=False)
        except UserError:
            raise error from None
    if not after.misfits:
        return after
    with suppress(UserError):
        whole = replay(after_thought=False)
        return whole if whole.misfits < after.misfits else after
    return after


def _replay_as(
    calls: Sequence[LoggedCall], candidates: CandidateTexts, seed: int, *, after_thought: bool
) -> ReplayedRankings:
    """Read the answers of a log by one of the published readings."""
    lists = [list(range(len(docs))) for docs in candidates.docs]
    found = ReplayedRankings(lists, [list(one) for one in lists], [list(one) for one in lists])
    rng = np.random.default_rng(seed)
    for call in calls:
        shown = candidates.match(call)
        places: list[int] | str = shown if isinstance(shown, str) else []
        if not isinstance(shown, str) and shown.query not in found.left_out:
            places = _resolved(shown, found, call)
        if isinstance(shown, str) or isinstance(places, str):
            found.unmatched.append(UnmatchedCall(call.number, str(places)))
            unknown = candidates.possible_queries(call) if isinstance(shown, str) else {shown.query}
            found.left_out |= {query: candidates.queries[query] for query in sorted(unknown)}
            continue
        query, count = shown.query, len(shown.passages)
        reading = (
            Reading(UNANSWERED, ()) if call.answer is None else read_ranking(call.answer, count)
        )
        published = published_ranking(call.answer or "", count, after_thought=after_thought)
        echo, moved = reading.order == tuple(range(count)), published != tuple(range(count))
        found.answers.append(
            ReadAnswer(call.number, candidates.queries[query], count, reading.kind, echo, moved)
        )
        if not places:
            continue
        named = [places[n] for n in reading.order]
        _place(found.published[query], [places[n] for n in published])
        if not echo:
            _place(found.model[query], [*named, *_others(found.model[query], places, named)])
        rest = _others(found.strict[query], places, named)
        _place(found.strict[query], [*named, *rng.permutation(rest).tolist()])
        found.called.add(query)
    found.called -= set(found.left_out)
    return found


def _resolved(shown: MatchedCall, found: ReplayedRankings, call: LoggedCall) -> list[int] | str:
    """The passages of a call: where several are of equal text, their order so far says which is which."""
    state, size = found.published[shown.query], len(shown.passages)
    starts = list(_starts(state, shown.passages))
    if len(starts) == 1:
        return state[starts[0] : starts[0] + size]
    if next(_starts(range(len(state)), shown.passages), None) is not None:
        raise UserError(
            f"call {call.number} of the log ranks a query again from its first order: it holds several runs; keep "
            "one log per run"
        )
    if any(len(one) > 1 for one in shown.passages):
        return "shows passages of equal text in another order than the calls before it leave"
    places = [one[0] for one in shown.passages]
    if len(set(places)) < size:
        return "shows one document twice"
    found.reordered.append(shown.query)
    return places


def _starts(order: Sequence[int], passages: Sequence[tuple[int, ...]]) -> Iterator[int]:
    """Where a list holds these passages next to each other, in this order."""
    for start in range(len(order) - len(passages) + 1):
        if all(order[start + n] in one for n, one in enumerate(passages)):
            yield start


def _others(order: Sequence[int], places: Sequence[int], named: Sequence[int]) -> list[int]:
    """Those of a window that an answer does not name, in the order of a list."""
    rest = set(places) - set(named)
    return [one for one in order if one in rest]


def _place(order: list[int], window: Sequence[int]) -> None:
    """Put a window's passages into the places that they hold in a list, in a new order."""
    members = set(window)
    held = [place for place, one in enumerate(order) if one in members]
    for place, one in zip(held, window, strict=True):
        order[place] = one

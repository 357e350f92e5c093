"""What did the model rank, and what did the parser? The stored calls of an LLM ranker, read again.

`log_runs` makes the runs of a log: the input order, the model's, the published and the strict one.
`replay_log` splits what the published run shows into their differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.audit import audit
from ranktilt.auditing.card import group_samples
from ranktilt.auditing.comparison.match import RunPair, change_tasks, match
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL, Pair, grouped_pairs
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.significance import (
    ChangeTask,
    Sample,
    contrast_changes,
    contrast_task,
    corrected,
    mean_changes,
)
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import CallsUnmatched, PassagesReordered
from ranktilt.data.run import Run, collection_rows
from ranktilt.errors import DataError, UserError, counted
from ranktilt.measures.base import Estimand, GroupEstimand, Measure, estimand
from ranktilt.rankers.llm.answers import (
    AMBIGUOUS,
    END_OF_THOUGHT,
    KINDS,
    READABLE,
    UNANSWERED,
    Reading,
    published_ranking,
    read_ranking,
)
from ranktilt.rankers.llm.stored_calls import CandidateTexts, LoggedCall, MatchedCall, read_log
from ranktilt.statistics.bootstrap import RESAMPLES

INPUT, MODEL, PUBLISHED, STRICT = "input order", "model", "published", "strict"
PARTS = (
    RunPair(MODEL, INPUT),
    RunPair(PUBLISHED, MODEL),
    RunPair(PUBLISHED, INPUT),
    RunPair(STRICT, INPUT),
)
"""The model's part, the parser's, both together; and what the answers are worth without the input
order.
"""


class ReadAnswer(NamedTuple):
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


class UnmatchedCall(NamedTuple):
    """A call that was left out."""

    call: int
    reason: str


class AnswerExample(NamedTuple):
    """An answer that came often."""

    kind: str
    answer: str
    times: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplayedLog(
    Result,
    format="ranktilt-replayed-log",
    version=1,
    noun="a replayed log",
    command="ranktilt tools replay-log",
):
    """What the published run of a log owes to the input order, the model and the parser."""

    spec: Mapping[str, Any]
    """How it was made: log, candidates, options."""
    answers: tuple[ReadAnswer, ...]
    """Every answer that was read, in the log's order."""
    unmatched: tuple[UnmatchedCall, ...]
    """Calls that cannot be matched, and why."""
    examples: tuple[AnswerExample, ...]
    """The answers that came most often, of each kind."""
    queries: int
    """Queries with a call, without those that an unmatched call can be about."""
    measures: tuple[str, ...]
    """What was split; the first is the primary one."""
    pairs: tuple[Pair, ...]
    changes: tuple[Change, ...]
    """Each measure's part of the model (`model` − `input order`), of the parser (`published` −
    `model`), both together, and `strict` − `input order`.
    """
    notes: tuple[Coded[Note], ...]
    """What a reader should know."""

    @property
    def kinds(self) -> dict[str, int]:
        """How many answers are of each kind, the best first."""
        counts = Counter(answer.kind for answer in self.answers)
        return {kind: counts[kind] for kind in KINDS if counts[kind]}

    @property
    def unreadable(self) -> int:
        """Answers that hold no ranking."""
        return sum(answer.kind not in READABLE for answer in self.answers)

    @property
    def failures(self) -> int:
        """These, and calls that cannot be matched."""
        return self.unreadable + len(self.unmatched)

    @property
    def ambiguous(self) -> int:
        """Answers with more than one ranking, which are among the unreadable ones."""
        return self.kinds.get(AMBIGUOUS, 0)

    @property
    def echoes(self) -> int:
        """Answers that repeat the order in which the passages were shown."""
        return sum(answer.echo for answer in self.answers)

    @property
    def passed(self) -> bool:
        """Whether no more calls fail than are allowed."""
        max_failures = self.spec.get("max_failures")
        if max_failures is None:
            return True
        return bool(self.failures <= max_failures * (len(self.answers) + len(self.unmatched)))

    def change(self, part: RunPair, measure: str, pair: Pair) -> Change | None:
        """Return a part of the run in a measure; the pair (`ALL`, `ALL`) is all documents."""
        key = (part, pair, measure)
        for change in self.changes:
            run_pair = RunPair(change.run, change.old_run)
            if (run_pair, (change.a, change.b), change.measure) == key:
                return change
        return None

    def derived(self) -> dict[str, Any]:
        return {
            "kinds": self.kinds,
            "failures": self.failures,
            "echoes": self.echoes,
            "passed": self.passed,
        }


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
            f"call {rankings.restarted} of the log ranks a query again from its first order: "
            "it holds several runs; keep one log per run"
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
            if isinstance(matched, str):
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

    def _leave_out(self, call: LoggedCall, reason: str, queries: Iterable[int]) -> None:
        self.rankings.unmatched.append(UnmatchedCall(call.number, reason))
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
        if isinstance(window, str):
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

    def _window(self, matched: MatchedCall) -> list[int] | str:
        """Return the passages of a call; of equal texts their order so far says which is which."""
        order, size = self.rankings.published[matched.query], len(matched.passages)
        starts = _windows(order, matched.passages)
        if len(starts) == 1:
            return order[starts[0] : starts[0] + size]
        if any(len(candidates) > 1 for candidates in matched.passages):
            return "shows passages of equal text in another order than the calls before it leave"
        window = [candidates[0] for candidates in matched.passages]
        if len(set(window)) < size:
            return "shows one document twice"
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


@dataclass(frozen=True, kw_only=True)
class LogRuns:
    """A log's answers, and the runs that they make."""

    file: str
    calls: Sequence[LoggedCall]
    rankings: ReplayedRankings
    runs: Mapping[str, Run]
    """The input order, the model on it, the published one, and the strict one."""


def log_runs(log: str | Path, candidates: Run, collection: Collection, *, seed: int = 0) -> LogRuns:
    """Read the stored calls of an LLM ranker, and rank with them again.

    A query is ranked if it has a call and all of its calls match.

    Parameters
    ----------
    log : str or Path
        Calls of one run, as `ranktilt.rankers.llm.stored_calls.read_log` reads them.
    candidates : Run
        The first stage's lists that were ranked.
    collection : Collection
        With the texts of queries and documents, by which prompts are matched; a log of ids needs
        none.
    seed : int, optional
        Of what is shuffled where no answer decides.
    """
    calls = read_log(Path(log))
    lists = _candidate_texts(candidates, collection)
    rankings = replay_calls(calls, lists, seed=seed)
    if not rankings.called:
        raise DataError(log, _nothing_to_replay(calls, lists, rankings))
    orders = {
        MODEL: rankings.model,
        PUBLISHED: rankings.published,
        STRICT: rankings.strict,
    }
    input_orders = [list(range(len(docs))) for docs in lists.docs]
    runs = {
        name: _run(name, lists, ranked_orders, rankings.called, log=str(log))
        for name, ranked_orders in {INPUT: input_orders, **orders}.items()
    }
    return LogRuns(file=str(log), calls=calls, rankings=rankings, runs=runs)


def _nothing_to_replay(
    calls: Sequence[LoggedCall], lists: CandidateTexts, rankings: ReplayedRankings
) -> str:
    first = rankings.unmatched[0]
    reason = f"none of its {counted(len(calls), 'call', 'calls')} fits the candidates"
    if rankings.answers:
        reason = "no query is whole"
    has_texts = any(lists.texts) or calls[0].ids
    hint = "" if has_texts else "; prompts are matched by texts: name a collection"
    return f"{reason}: call {first.call} {first.reason}{hint}"


def _candidate_texts(run: Run, collection: Collection) -> CandidateTexts:
    rows = collection_rows(run, collection)
    titles = collection.docs["title"].to_list()
    texts = collection.docs["text"].to_list()
    queries = dict(collection.queries.select("id", "text").iter_rows())
    spans = [
        run.docs[start:end] for start, end in zip(run.offsets[:-1], run.offsets[1:], strict=True)
    ]
    passages = []
    for span in spans:
        of_query = [
            _prompt_texts(titles[row], texts[row]) if row >= 0 else ()
            for row in rows[span].tolist()
        ]
        passages.append(tuple(of_query))
    return CandidateTexts(
        queries=run.queries,
        texts=tuple(queries.get(query) or "" for query in run.queries),
        docs=tuple(tuple(run.ids.gather(span)) for span in spans),
        passages=tuple(passages),
    )


def _prompt_texts(title: str, text: str) -> tuple[str, ...]:
    """Return how a prompt may show a document: without its title, or with it."""
    if title:
        return (text, f"{title} {text}", f"Title: {title} Content: {text}")
    return (text,) if text else ()


def _run(
    name: str,
    lists: CandidateTexts,
    orders: Sequence[Sequence[int]],
    queries: set[int],
    *,
    log: str,
) -> Run:
    rows = []
    for query in sorted(queries):
        for rank, position in enumerate(orders[query], start=1):
            rows.append((lists.queries[query], lists.docs[query][position], -float(rank)))
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    return Run.from_frame(frame, spec={"ranker": name, "log": log})


def replay_log(
    replayed: LogRuns,
    collection: Collection,
    measures: Iterable[str | Estimand] | None = None,
    *,
    by: str | None = None,
    pairs: Iterable[Pair] | None = None,
    max_failures: float | None = None,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ReplayedLog:
    """Split what a published run shows into the input order, the model's part, and the parser's.

    The published run is the ranking that RankGPT's and rank_llm's code makes of the answers: any
    number anywhere counts, and what is not named keeps its place. Strictly read, an answer without
    one ranking decides nothing.

    Parameters
    ----------
    replayed : LogRuns
        Of `log_runs`.
    collection : Collection
        With judgments, and groups where they are compared; without judgments only answers are
        counted.
    measures : iterable of str or Estimand, optional
        Measures and group estimands; by default nDCG@10, and with groups ExposureRatio.
    by, pairs, correction, resamples, seed : optional
        As in `ranktilt.audit`; no groups by default.
    max_failures : float, optional
        Most calls without a ranking or that cannot be matched, as a share of all;
        `ReplayedLog.passed` tells.
    """
    if max_failures is not None and not 0 <= max_failures <= 1:
        raise UserError(f"expected a share of 0 to 1 as max_failures, got {max_failures:g}")
    check_resamples(resamples)
    estimands = _estimands(measures, collection, by)
    runs = list(replayed.runs.values())
    chosen_pairs = None if pairs is None else list(pairs)
    means: list[ChangeTask] = []
    contrasts: list[ChangeTask] = []
    if of_runs := [measure for measure in estimands if isinstance(measure, Measure)]:
        audited = audit(
            collection,
            runs,
            of_runs,
            by=by,
            pairs=chosen_pairs,
            missing="exclude",
            confounds=False,
            keep_top=0,
            resamples=resamples,
            seed=seed,
        )
        parts = replace(match(audited, audited, baseline_run=INPUT), runs=PARTS)
        means += change_tasks(parts, [(ALL, ALL)])
        contrasts += change_tasks(parts, parts.pairs)
    if of_groups := [group for group in estimands if isinstance(group, GroupEstimand)]:
        groups, compared_pairs = grouped_pairs(collection, by, chosen_pairs)
        judgments = Judgments.from_collection(collection, groups)
        judged_runs = [JudgedRun.from_run(run, collection, judgments) for run in runs]
        contrasts += _group_contrasts(group_samples(judged_runs, groups, compared_pairs, of_groups))
    changes = [
        *mean_changes(means, resamples=resamples, seed=seed),
        *contrast_changes(contrasts, resamples=resamples, seed=seed),
    ]
    compared = dict.fromkeys((change.a, change.b) for change in changes)
    return ReplayedLog(
        spec={
            "log": {
                "path": replayed.file,
                "sha256": sha256(Path(replayed.file)),
                "calls": len(replayed.calls),
            },
            "candidates": replayed.runs[INPUT].spec.get("candidates"),
            "by": by,
            "max_failures": max_failures,
            "correction": correction,
            "resamples": resamples,
            "seed": seed,
            "ranktilt": __version__,
        },
        answers=tuple(replayed.rankings.answers),
        unmatched=tuple(replayed.rankings.unmatched),
        examples=tuple(_examples(replayed)),
        queries=len(replayed.rankings.called),
        measures=tuple(repr(measure) for measure in estimands),
        pairs=tuple(pair for pair in compared if pair != (ALL, ALL)),
        changes=corrected(changes, correction),
        notes=tuple(_notes(replayed)),
    )


def _estimands(
    measures: Iterable[str | Estimand] | None, collection: Collection, by: str | None
) -> list[Estimand]:
    has_judgments = collection.qrels.height > 0
    if measures is None:
        measures = ["nDCG@10"] * has_judgments + ["ExposureRatio"] * (by is not None)
    estimands = [estimand(measure) for measure in measures]
    for measure in estimands:
        if not isinstance(measure, Measure | GroupEstimand) or measure.reads_scores:
            raise UserError(
                f"{measure!r} cannot be split; name a measure such as nDCG@10, or ExposureRatio "
                "with groups"
            )
        if isinstance(measure, GroupEstimand) and by is None:
            raise UserError(f"{measure!r} needs a column to group by (--by)")
        if isinstance(measure, Measure) and not has_judgments:
            raise UserError(
                f"{measure!r} needs judgments, and there are none: name them (--qrels FILE)"
            )
    return estimands


def _group_contrasts(samples: Sequence[Sample]) -> Iterator[ChangeTask]:
    """Compare the runs of each part on each group estimand and pair."""
    by_run = {(sample.run, sample.estimand, sample.a, sample.b): sample for sample in samples}
    questions = dict.fromkeys((sample.estimand, sample.a, sample.b) for sample in samples)
    for question in questions:
        for part in PARTS:
            yield contrast_task(by_run[part.new, *question], by_run[part.old, *question])


_MOST_EXAMPLES = 2
_LONGEST_EXAMPLE = 200


def _examples(replayed: LogRuns) -> Iterator[AnswerExample]:
    """Give the answers of each kind that came most often."""
    answers = {call.number: call.answer or "" for call in replayed.calls}
    for kind in KINDS:
        of_kind = Counter(
            answers[read.call] for read in replayed.rankings.answers if read.kind == kind
        )
        for answer, times in of_kind.most_common(_MOST_EXAMPLES):
            if len(answer) > _LONGEST_EXAMPLE:
                answer = f"{answer[: _LONGEST_EXAMPLE - 1]}…"
            yield AnswerExample(kind=kind, answer=answer, times=times)


def _notes(replayed: LogRuns) -> Iterator[Note]:
    rankings = replayed.rankings
    if rankings.unmatched:
        first = rankings.unmatched[0]
        yield CallsUnmatched(
            unmatched=len(rankings.unmatched),
            calls=len(replayed.calls),
            first=first.call,
            reason=first.reason,
            queries_left_out=tuple(rankings.left_out.values()),
        )
    if rankings.other_order:
        yield PassagesReordered(calls=rankings.other_order)

"""What did the model rank, and what did the parser? The stored calls of an LLM ranker, read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.audit import audit
from ranktilt.auditing.card import group_samples
from ranktilt.auditing.comparison.match import RunPair, change_tasks, match
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL, Pair, grouped_pairs
from ranktilt.auditing.judged_rankings import Aligned, Judgments
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.significance import (
    ChangeTask,
    contrast_changes,
    contrast_task,
    corrected,
    mean_changes,
)
from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError, counted
from ranktilt.io.artifact import Result
from ranktilt.io.files import sha256
from ranktilt.measures.base import Estimand, GroupEstimand, Measure, estimand
from ranktilt.rankers.llm.answers import AMBIGUOUS, KINDS, READABLE
from ranktilt.rankers.llm.log import LoggedCall, read_log
from ranktilt.rankers.llm.prompt_matching import CandidateTexts
from ranktilt.rankers.llm.published_run import (
    ReadAnswer,
    ReplayedRankings,
    UnmatchedCall,
    replay_calls,
)
from ranktilt.run import Run, collection_rows
from ranktilt.statistics.bootstrap import RESAMPLES

INPUT, MODEL, PUBLISHED, STRICT = "input order", "model", "published", "strict"
PARTS = (
    RunPair(MODEL, INPUT),
    RunPair(PUBLISHED, MODEL),
    RunPair(PUBLISHED, INPUT),
    RunPair(STRICT, INPUT),
)
"""The model's part, the parser's, both together; and what the answers are worth without the input order."""


class AnswerExample(NamedTuple):
    kind: str
    answer: str
    times: int


@dataclass(frozen=True, eq=False)
class ReplayedLog(
    Result,
    format="ranktilt-replayed-log",
    version=1,
    noun="a replayed log",
    command="ranktilt tools replay-log",
):
    """What `replay_log` found; immutable."""

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
    """Each measure's part of the model (`model` − `input order`), of the parser (`published` − `model`), both
    together, and `strict` − `input order`."""
    notes: tuple[str, ...]
    """What a reader should know."""

    @property
    def kinds(self) -> dict[str, int]:
        """How many answers are of each kind, the best first."""
        found = Counter(one.kind for one in self.answers)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    @property
    def unreadable(self) -> int:
        """Answers that hold no ranking."""
        return sum(one.kind not in READABLE for one in self.answers)

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
        return sum(one.echo for one in self.answers)

    @property
    def passed(self) -> bool:
        """Whether no more calls fail than are allowed."""
        most = self.spec.get("max_failures")
        return most is None or self.failures <= most * (len(self.answers) + len(self.unmatched))

    def change(self, part: RunPair, measure: str, pair: Pair) -> Change | None:
        """Find the part of a run in a measure, of all documents where the pair is (`ALL`, `ALL`)."""
        found = (c for c in self.changes if (c.run, c.old_run) == part and (c.a, c.b) == pair)
        return next((c for c in found if c.measure == measure), None)

    def derived(self) -> dict[str, Any]:
        return {
            "kinds": self.kinds,
            "failures": self.failures,
            "echoes": self.echoes,
            "passed": self.passed,
        }


_EXAMPLES = 2
_LONGEST = 200


@dataclass(frozen=True)
class LogRuns:
    """A log's answers, and the runs that they make."""

    file: str
    calls: Sequence[LoggedCall]
    rankings: ReplayedRankings
    runs: Mapping[str, Run] = field(default_factory=dict)
    """The input order, the model on it, the published one, and the strict one."""


def log_runs(log: str | Path, candidates: Run, collection: Collection, *, seed: int = 0) -> LogRuns:
    """Read the stored calls of an LLM ranker, and rank with them again: every query that has a call, if all match.

    Parameters
    ----------
    log : str or Path
        Calls of one run, as `ranktilt.rankers.llm.log.read_log` reads them.
    candidates : Run
        The first stage's lists that were ranked.
    collection : Collection
        With the texts of queries and documents, by which prompts are matched; a log of ids needs
        none.
    seed : int, optional
        Of what is shuffled where no answer decides.
    """
    calls = read_log(Path(log))
    lists = _candidates(candidates, collection)
    rankings = replay_calls(calls, lists, seed=seed)
    if not rankings.called:
        first, count = rankings.unmatched[0], counted(len(calls), "call", "calls")
        hint = (
            ""
            if any(lists.texts) or calls[0].ids
            else "; prompts are matched by texts: name a collection"
        )
        none = (
            "no query is whole" if rankings.answers else f"none of its {count} fits the candidates"
        )
        raise DataError(log, f"{none}: call {first.call} {first.reason}{hint}")
    orders = {
        INPUT: [list(range(len(docs))) for docs in lists.docs],
        MODEL: rankings.model,
        PUBLISHED: rankings.published,
        STRICT: rankings.strict,
    }
    runs = {
        name: _run(name, lists, order, rankings.called, str(log)) for name, order in orders.items()
    }
    return LogRuns(str(log), calls, rankings, runs)


def replay_log(
    found: LogRuns,
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
    found : LogRuns
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
    asked = _estimands(measures, collection, by)
    changes = _changes(found, collection, asked, by=by, pairs=pairs, resamples=resamples, seed=seed)
    spec = {
        "log": {"path": found.file, "sha256": sha256(Path(found.file)), "calls": len(found.calls)},
        "candidates": found.runs[INPUT].spec.get("candidates"),
        "by": by,
        "max_failures": max_failures,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
        "ranktilt": __version__,
    }
    groups = dict.fromkeys((c.a, c.b) for c in changes if (c.a, c.b) != (ALL, ALL))
    return ReplayedLog(
        spec,
        tuple(found.rankings.answers),
        tuple(found.rankings.unmatched),
        tuple(_examples(found)),
        len(found.rankings.called),
        tuple(repr(one) for one in asked),
        tuple(groups),
        corrected(changes, correction),
        tuple(_notes(found)),
    )


def _candidates(run: Run, collection: Collection) -> CandidateTexts:
    rows, title = collection_rows(run, collection), collection.docs["title"].to_list()
    texts = collection.docs["text"].to_list()
    asked = dict(collection.queries.select("id", "text").iter_rows())

    def versions(row: int) -> tuple[str, ...]:
        if row < 0 or not (texts[row] or title[row]):
            return ()
        plain, name = texts[row], title[row]
        return (plain, f"{name} {plain}", f"Title: {name} Content: {plain}") if name else (plain,)

    spans = [
        run.docs[start:end] for start, end in zip(run.offsets[:-1], run.offsets[1:], strict=True)
    ]
    return CandidateTexts(
        run.queries,
        tuple(asked.get(query) or "" for query in run.queries),
        tuple(tuple(run.ids.gather(span)) for span in spans),
        tuple(tuple(versions(int(rows[doc])) for doc in span) for span in spans),
    )


def _run(
    name: str, lists: CandidateTexts, orders: Sequence[Sequence[int]], called: set[int], log: str
) -> Run:
    rows = [
        (lists.queries[query], lists.docs[query][place], -float(rank))
        for query in sorted(called)
        for rank, place in enumerate(orders[query], start=1)
    ]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    return Run.from_frame(frame, spec={"ranker": name, "log": log})


def _estimands(
    given: Iterable[str | Estimand] | None, collection: Collection, by: str | None
) -> list[Estimand]:
    usual = ["nDCG@10"] * bool(collection.qrels.height) + ["ExposureRatio"] * (by is not None)
    found = [estimand(one) for one in (usual if given is None else given)]
    for one in found:
        if not isinstance(one, Measure | GroupEstimand) or one.reads_scores:
            raise UserError(
                f"{one!r} cannot be split; name a measure such as nDCG@10, or ExposureRatio with groups"
            )
        if isinstance(one, GroupEstimand) and by is None:
            raise UserError(f"{one!r} needs a column to group by (--by)")
        if isinstance(one, Measure) and not collection.qrels.height:
            raise UserError(
                f"{one!r} needs judgments, and there are none: name them (--qrels FILE)"
            )
    return found


def _changes(
    found: LogRuns,
    collection: Collection,
    asked: Sequence[Estimand],
    *,
    by: str | None,
    pairs: Iterable[Pair] | None,
    resamples: int,
    seed: int,
) -> list[Change]:
    runs, pairs = list(found.runs.values()), None if pairs is None else list(pairs)
    means, tasks = list[ChangeTask](), list[ChangeTask]()
    measures = [one for one in asked if isinstance(one, Measure)]
    if measures:
        result = audit(
            collection,
            runs,
            measures,
            by=by,
            pairs=pairs,
            missing="exclude",
            confounds=False,
            keep_top=0,
            resamples=resamples,
            seed=seed,
        )
        parts = replace(match(result, result, baseline_run=INPUT), runs=PARTS)
        means += change_tasks(parts, [(ALL, ALL)])
        tasks += change_tasks(parts, parts.pairs)
    if of_groups := [one for one in asked if isinstance(one, GroupEstimand)]:
        groups, chosen = grouped_pairs(collection, by, pairs)
        judgments = Judgments.of(collection, groups)
        aligned = [Aligned.of(run, collection, judgments) for run in runs]
        samples = group_samples(aligned, groups, chosen, of_groups)
        named = {(s.run, s.estimand, s.a, s.b): s for s in samples}
        questions = dict.fromkeys((s.estimand, s.a, s.b) for s in samples)
        tasks += [
            contrast_task(named[new, *one], named[old, *one])
            for one in questions
            for new, old in PARTS
        ]
    moved = mean_changes(means, resamples=resamples, seed=seed)
    return [*moved, *contrast_changes(tasks, resamples=resamples, seed=seed)]


def _examples(found: LogRuns) -> Iterator[AnswerExample]:
    texts = {call.number: call.answer or "" for call in found.calls}
    for kind in KINDS:
        said = Counter(texts[one.call] for one in found.rankings.answers if one.kind == kind)
        for answer, count in said.most_common(_EXAMPLES):
            yield AnswerExample(
                kind, answer if len(answer) <= _LONGEST else f"{answer[: _LONGEST - 1]}…", count
            )


def _notes(found: LogRuns) -> Iterator[str]:
    rankings = found.rankings
    if rankings.unmatched:
        first, names = rankings.unmatched[0], list(rankings.left_out.values())
        calls, queries = (
            counted(len(rankings.unmatched), "call", "calls"),
            counted(len(names), "query", "queries"),
        )
        left_out = (
            f"; {queries} left out whole: {', '.join(names[:3])}{', …' * (len(names) > 3)}"
            if names
            else ""
        )
        yield (
            f"warning: {calls} of {len(found.calls):,} cannot be matched, which counts as failed (first: call "
            f"{first.call} {first.reason}){left_out}"
        )
    if rankings.other_order:
        calls = counted(rankings.other_order, "call shows", "calls show")
        yield (
            f"warning: {calls} passages in another order than the published reading of the calls before leaves them: "
            "a log that is not whole, or of another parser; the published run may differ from what was published"
        )

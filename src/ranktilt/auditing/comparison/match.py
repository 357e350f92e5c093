"""Runs side by side: those of two audits on the queries that both hold, or one run of an audit and all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.contributions import Place, common_places
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import ChangeTask, Columns, Sample, contrast_task
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import (
    OnlyInOneAudit,
    QueriesLeftOut,
    QueriesOfOneSide,
    ResultKind,
    RoundingIgnored,
    RunsPaired,
    Side,
)
from ranktilt.errors import UserError, counted, unknown
from ranktilt.measures.base import measure as to_measure
from ranktilt.measures.printing import digits_apart
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.bootstrap import in_all
from ranktilt.statistics.two_way import Clusters

Question = tuple[str, Pair]
"""Notation of an estimand about groups, and the groups; (`ALL`, `ALL`) where it is about all of them at once."""
_Answers = dict[tuple[str, Question], tuple[Effect, Floats, Floats]]
_NAMED = 3
MAX_LEFT_OUT = 10.0
"""Percent of all queries that only one of two results may hold."""


class RunPair(NamedTuple):
    """A run of the new audit and its partner in the old one."""

    new: str
    old: str


@dataclass(frozen=True, eq=False)
class Match:
    """Two audits side by side; made by `match`."""

    new: Audit
    old: Audit
    runs: tuple[RunPair, ...]
    measures: tuple[str, ...]
    """In the new audit's order: the first is the primary one."""
    pairs: tuple[Pair, ...]
    """Named as in the new audit."""
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    """Where the new and the old audit hold each query, in an order that does not depend on which is the new one."""
    left_out: tuple[Note, ...]
    """Notes on what only one audit holds."""
    notes: tuple[Note, ...]
    """Notes on what else differs between the audits, such as the queries that only one holds."""
    queries_left_out: int = 0
    """Queries that only one of the audits holds."""
    questions: tuple[Question, ...] = ()
    """About groups, with an answer for each query in both audits; named as in the new one."""
    answers: tuple[_Answers, ...] = ()
    """Of both audits."""

    def audit_rows(self, runs: RunPair) -> Iterator[tuple[Audit, str, npt.NDArray[np.int64]]]:
        """The new and the old audit, each with its run and the rows of the queries."""
        return zip((self.new, self.old), runs, self.rows, strict=True)

    def distinct(self, runs: RunPair) -> npt.NDArray[np.int64] | None:
        """Number of the query that each query repeats under both runs; None where none does."""
        numbers = [(audit.distinct(run), rows) for audit, run, rows in self.audit_rows(runs)]
        return in_all([None if one is None else one[rows] for one, rows in numbers])

    def clusters(
        self, runs: RunPair, estimand: str, pair: Pair
    ) -> tuple[Clusters | None, Clusters | None]:
        """What documents add to both runs' answers, with queries and origins numbered alike."""
        if (
            self.common_places is None
            or self.new.contributions is None
            or self.old.contributions is None
        ):
            return None, None
        return (
            self.new.contributions.of((runs.new, estimand, *pair), self.common_places[0]),
            self.old.contributions.of((runs.old, estimand, *pair), self.common_places[1]),
        )

    @cached_property
    def common_places(self) -> list[Place] | None:
        """Where the queries and origins of the new and the old audit stand beside each other."""
        if self.new.contributions is None or self.old.contributions is None:
            return None
        queries = [self.new.queries[row] for row in self.rows[0]]
        return common_places([self.new.contributions, self.old.contributions], queries)


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonQueries:
    """The queries that two results both hold."""

    rows: tuple[Ints, Ints]
    """Where the new and the old result hold each, in an order that does not depend on which is the new one."""
    only_new: tuple[str, ...] = ()
    only_old: tuple[str, ...] = ()

    @property
    def left_out(self) -> int:
        """Number of queries that only one of the results holds."""
        return len(self.only_new) + len(self.only_old)

    @property
    def total(self) -> int:
        """Number of queries that either result holds."""
        return len(self.rows[0]) + self.left_out

    @property
    def percent_left_out(self) -> float:
        return 100 * self.left_out / self.total if self.left_out else 0.0

    def differences(self, noun: str) -> str:
        """Count and name the queries that only one result holds."""
        return ", ".join(
            f"{counted(len(queries), 'query', 'queries')} only in the {side} {noun} ({names(queries)})"
            for side, queries in (("new", self.only_new), ("old", self.only_old))
            if queries
        )

    def note(
        self, result: ResultKind, *, pairs: str = "", keeps_medians: bool = False
    ) -> QueriesLeftOut:
        """Note how many queries are left out, and which."""
        sides = [
            QueriesOfOneSide(side="new", number=len(self.only_new), first=self.only_new[:_NAMED]),
            QueriesOfOneSide(side="old", number=len(self.only_old), first=self.only_old[:_NAMED]),
        ]
        return QueriesLeftOut(
            result=result,
            left_out=self.left_out,
            queries=self.total,
            sides=tuple(side for side in sides if side.number),
            pairs=pairs,
            keeps_medians=keeps_medians,
        )


def match(
    new: Audit, old: Audit, *, baseline_run: str | None = None, max_left_out: float = MAX_LEFT_OUT
) -> Match:
    """Put two audits side by side on the queries that both hold; runs are partners as `ranktilt.compare` says."""
    if not all(audit.measures or audit.query_answers for audit in (new, old)):
        raise UserError(
            "an audit has no measure: without judgments there is no Relative Δ to compare"
        )
    _refuse_other_settings(new, old)
    common = common_queries(new.queries, old.queries, max_left_out=max_left_out)
    runs = [RunPair(run, run) for run in new.runs if run in old.runs]
    if baseline_run is not None:
        runs = _against(new, old, baseline_run)
    elif len(new.runs) == len(old.runs) == 1:
        runs = [RunPair(*new.runs, *old.runs)]
    ours, theirs = ([repr(m) for m in audit.measures] for audit in (new, old))
    measures = [m for m in ours if m in theirs]
    sides, others = new.tilted_pairs, old.tilted_pairs
    pairs = [p for p in sides if p in others or p[::-1] in others]
    asked = [
        dict.fromkeys((repr(q.estimand), (q.a, q.b)) for q in audit.query_answers)
        for audit in (new, old)
    ]
    answers = _answers(new), _answers(old)
    answered = set.intersection(*({question for _, question in one} for one in answers))
    questions = [one for one in asked[0] if one in answered]
    _refuse_nothing(runs, "run", new.runs, old.runs)
    _refuse_nothing(measures or questions, "measure", ours, theirs)
    if sides or others:
        _refuse_nothing(pairs or questions, "pair of groups", map(_pair, sides), map(_pair, others))
    every = [_pair(q) for p in pairs for q in (p, p[::-1])]
    left_out = (
        *_left_out("run", new.runs, old.runs, kept=[name for p in runs for name in p]),
        *_left_out("measure", ours, theirs, kept=measures),
        *_left_out("pair of groups", map(_pair, sides), map(_pair, others), kept=every),
        *_left_out("question", *(map(_said, one) for one in asked), kept=map(_said, answered)),
    )
    renamed = [
        RunsPaired(new=one.new, old=one.old)
        for one in runs
        if one.new != one.old and baseline_run is None
    ]
    notes = (*_query_notes(common, new, old), *renamed, *_rounded(new, old))
    return Match(
        new=new,
        old=old,
        runs=tuple(runs),
        measures=tuple(measures),
        pairs=tuple(pairs),
        rows=common.rows,
        left_out=left_out,
        notes=notes,
        queries_left_out=common.left_out,
        questions=tuple(questions),
        answers=answers,
    )


def names(texts: Iterable[str]) -> str:
    """List names, the first few of many."""
    every = list(texts)
    shown = ", ".join(repr(t) for t in every[:_NAMED])
    return shown + (", …" if len(every) > _NAMED else "")


def _against(new: Audit, old: Audit, baseline_run: str) -> list[RunPair]:
    if baseline_run not in old.runs:
        raise unknown("run", baseline_run, old.runs)
    if new.runs == (baseline_run,):
        raise UserError(f"nothing to compare: the audit has no run other than {baseline_run!r}")
    return [RunPair(run, baseline_run) for run in new.runs if run != baseline_run]


def _answers(audit: Audit) -> _Answers:
    """Answers by run and question, with the columns behind them; either way round, but for ratios."""
    effects = {(e.run, repr(e.estimand), e.a, e.b): e for e in audit.card}
    found: _Answers = {}
    for q in audit.query_answers:
        name = repr(q.estimand)
        effect = effects[q.run, name, q.a, q.b]
        if not q.estimand.directed:
            found[q.run, (name, (q.b, q.a))] = effect.swapped(), -q.numerator, q.denominator
        found[q.run, (name, (q.a, q.b))] = effect, q.numerator, q.denominator
    return found


def _said(question: Question) -> str:
    name, pair = question
    return name if pair == (ALL, ALL) else f"{name} {_pair(pair)}"


def _pair(pair: Pair) -> str:
    return f"{pair[0]},{pair[1]}"


def _refuse_other_settings(new: Audit, old: Audit) -> None:
    for name in ("by", "ties", "missing"):
        one, two = (audit.spec[name] or "none" for audit in (new, old))
        if one != two:
            raise UserError(
                f"the audits differ in {name}: {one!r} (new) and {two!r} (old); make both with the same"
            )


def common_queries(
    new: Sequence[str],
    old: Sequence[str],
    *,
    max_left_out: float,
    noun: str = "audit",
    hint: str = "make both with the same judgments",
) -> CommonQueries:
    """Return the queries that both results hold; refuse where more than `max_left_out` % are in one of them only."""
    if not 0 <= max_left_out <= 100:
        raise UserError(
            f"--max-left-out: expected a percentage from 0 to 100, got {max_left_out:g}"
        )
    in_new, in_old = set(new), set(old)
    rows_new = np.array([row for row, query in enumerate(new) if query in in_old], dtype=np.int64)
    rows_old = np.array([row for row, query in enumerate(old) if query in in_new], dtype=np.int64)
    if [new[row] for row in rows_new] != [old[row] for row in rows_old]:
        rows_new = np.array(sorted(rows_new, key=new.__getitem__), dtype=np.int64)
        rows_old = np.array(sorted(rows_old, key=old.__getitem__), dtype=np.int64)
    common = CommonQueries(
        rows=(rows_new, rows_old),
        only_new=tuple(query for query in new if query not in in_old),
        only_old=tuple(query for query in old if query not in in_new),
    )
    if common.left_out and not len(rows_new):
        raise UserError(f"the {noun}s have no query in common: {common.differences('one')}; {hint}")
    if common.percent_left_out > max_left_out:
        digits = digits_apart([common.percent_left_out], [max_left_out], 1)
        share = f"{common.left_out} of {common.total} ({common.percent_left_out:.{digits}f} %)"
        raise UserError(
            f"the {noun}s are over different queries: {common.differences('one')}; that is {share}, more than "
            f"--max-left-out {max_left_out:g}; {hint}"
        )
    return common


def _query_notes(common: CommonQueries, new: Audit, old: Audit) -> Iterator[Note]:
    if not common.left_out:
        return
    effects = [effect for audit in (new, old) for effect in (*audit.tilts, *audit.card)]
    # The draws behind a median are not kept with an audit, so that it cannot be taken over fewer
    # queries.
    shuffled = any(not effect.twins and effect.estimand.sided for effect in effects)
    yield common.note("audit", keeps_medians=shuffled)


def _refuse_nothing(
    found: Sequence[Any], noun: str, new: Iterable[str], old: Iterable[str]
) -> None:
    if not found:
        ours, theirs = (", ".join(side) or "none" for side in (new, old))
        raise UserError(
            f"the audits have no {noun} in common: the new one has {ours}; the old one has {theirs}"
        )


def _left_out(
    part: Literal["run", "measure", "pair of groups", "question"],
    new: Iterable[str],
    old: Iterable[str],
    *,
    kept: Iterable[str],
) -> Iterator[Note]:
    known = set(kept)
    sides: tuple[tuple[Side, Iterable[str]], ...] = (("new", new), ("old", old))
    for side, given in sides:
        if lone := [name for name in given if name not in known]:
            yield OnlyInOneAudit(part=part, side=side, number=len(lone), first=tuple(lone[:_NAMED]))


def _rounded(new: Audit, old: Audit) -> list[Note]:
    audits: tuple[tuple[Side, Audit], ...] = (("new", new), ("old", old))
    sides = tuple(side for side, audit in audits if audit.spec["rounding"] != "none")
    return [RoundingIgnored(sides=sides)] if sides else []


def change_tasks(match: Match, pairs: Iterable[Pair]) -> list[ChangeTask]:
    """Every run pair, pair of groups and measure to compare; of the pair (`ALL`, `ALL`) the effectiveness."""
    pairs = list(pairs)
    return [
        _task(match, runs, m, pair) for runs in match.runs for pair in pairs for m in match.measures
    ]


def _task(match: Match, runs: RunPair, measure: str, pair: Pair) -> ChangeTask:
    values = [
        audit.values[
            audit.runs.index(run),
            [*map(repr, audit.measures)].index(measure),
            audit.groups.index(name),
        ][rows]
        for name in dict.fromkeys(pair)
        for audit, run, rows in match.audit_rows(runs)
    ]
    columns = Columns(np.array(values), match.distinct(runs))
    if pair == (ALL, ALL):
        return ChangeTask(
            run=runs.new,
            old_run=runs.old,
            estimand=to_measure(measure),
            a=ALL,
            b=ALL,
            columns=columns,
        )
    new, old = (
        next(
            t
            for t in audit.tilts
            if (t.run, t.measure) == (run, measure) and {t.a, t.b} == set(pair)
        )
        for audit, run, _ in match.audit_rows(runs)
    )
    new, old = (one if (one.a, one.b) == pair else one.swapped() for one in (new, old))
    return ChangeTask(
        run=runs.new,
        old_run=runs.old,
        estimand=new.estimand,
        a=pair[0],
        b=pair[1],
        columns=columns,
        clusters=match.clusters(runs, repr(new.estimand), pair),
        neutral_values=neutral_values(new, old),
        twins=new.twins and old.twins,
    )


def neutral_values(new: Effect, old: Effect) -> tuple[float, float]:
    """Return what favours nobody under the new and the old run.

    A level of random labels is no level beside that of twins: then both are measured from the same.
    """
    if new.twins != old.twins:
        return new.estimand.neutral, new.estimand.neutral
    return new.neutral, old.neutral


def estimand_tasks(match: Match) -> list[ChangeTask]:
    """Every run pair and question about groups to compare."""
    return [
        _question_task(match, runs, question) for runs in match.runs for question in match.questions
    ]


def _question_task(match: Match, runs: RunPair, question: Question) -> ChangeTask:
    distinct, samples, effects = match.distinct(runs), list[Sample](), list[Effect]()
    name, pair = question
    clusters = match.clusters(runs, name, pair)
    sides = zip(match.answers, match.audit_rows(runs), clusters, strict=True)
    for answers, (_, run, rows), side in sides:
        e, one, two = answers[run, question]
        samples.append(
            Sample(
                e.run,
                e.estimand,
                e.a,
                e.b,
                numerator=one[rows],
                denominator=two[rows],
                parts=e.details,
                twins=e.twins,
                clusters=side,
                distinct=distinct,
            )
        )
        effects.append(e)
    return contrast_task(samples[0], samples[1], neutral_values(*effects))

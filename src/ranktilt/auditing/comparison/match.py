"""Runs side by side: those of two audits over the same queries, or one run of an audit and all others of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.contributions import Place, places
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import ChangeTask, Columns, Sample, contrast_task
from ranktilt.errors import UserError, counted, unknown
from ranktilt.measures.base import measure as to_measure
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import in_all
from ranktilt.statistics.two_way import Clusters

Question = tuple[str, Pair]
"""Notation of an estimand about groups, and the groups; (`ALL`, `ALL`) where it is about all of them at once."""
_Answers = dict[tuple[str, Question], tuple[Effect, Floats, Floats]]
_NAMED = 3


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
    left_out: tuple[str, ...]
    """Notes on what only one audit holds."""
    notes: tuple[str, ...]
    """Notes on what else differs between the audits."""
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

    def clusters(self, runs: RunPair, estimand: str, pair: Pair) -> tuple[Clusters | None, Clusters | None]:
        """What documents add to both runs' answers, with queries and origins numbered alike."""
        if self.places is None or self.new.contributions is None or self.old.contributions is None:
            return None, None
        return (
            self.new.contributions.of((runs.new, estimand, *pair), self.places[0]),
            self.old.contributions.of((runs.old, estimand, *pair), self.places[1]),
        )

    @cached_property
    def places(self) -> list[Place] | None:
        """Where the queries and origins of the new and the old audit stand beside each other."""
        if self.new.contributions is None or self.old.contributions is None:
            return None
        counts = len(self.new.queries), len(self.old.queries)
        return places([self.new.contributions, self.old.contributions], self.rows, counts)


def match(new: Audit, old: Audit, *, baseline_run: str | None = None) -> Match:
    """Put two audits over the same queries side by side; runs are partners as `ranktilt.compare` says."""
    if not all(audit.measures or audit.query_answers for audit in (new, old)):
        raise UserError("an audit has no measure: without judgments there is no Relative Δ to compare")
    _refuse_other_settings(new, old)
    rows = same_queries(new.queries, old.queries)
    runs = [RunPair(run, run) for run in new.runs if run in old.runs]
    if baseline_run is not None:
        runs = _against(new, old, baseline_run)
    elif len(new.runs) == len(old.runs) == 1:
        runs = [RunPair(*new.runs, *old.runs)]
    ours, theirs = ([repr(m) for m in audit.measures] for audit in (new, old))
    measures = [m for m in ours if m in theirs]
    sides, others = new.tilted_pairs, old.tilted_pairs
    pairs = [p for p in sides if p in others or p[::-1] in others]
    asked = [dict.fromkeys((repr(q.estimand), (q.a, q.b)) for q in audit.query_answers) for audit in (new, old)]
    answers = _answers(new), _answers(old)
    answered = set.intersection(*({question for _, question in one} for one in answers))
    questions = [one for one in asked[0] if one in answered]
    _refuse_nothing(runs, "run", new.runs, old.runs)
    _refuse_nothing(measures or questions, "measure", ours, theirs)
    if sides or others:
        _refuse_nothing(pairs or questions, "pair of groups", map(_pair, sides), map(_pair, others))
    every = [_pair(q) for p in pairs for q in (p, p[::-1])]
    left_out = (
        *_left_out("run", "runs", new.runs, old.runs, kept=[name for p in runs for name in p]),
        *_left_out("measure", "measures", ours, theirs, kept=measures),
        *_left_out("pair of groups", "pairs of groups", map(_pair, sides), map(_pair, others), kept=every),
        *_left_out("question", "questions", *(map(_said, one) for one in asked), kept=map(_said, answered)),
    )
    renamed = [f"{one.new} is compared with {one.old}" for one in runs if one.new != one.old and baseline_run is None]
    notes = (*renamed, *_rounded(new, old))
    named = tuple(runs), tuple(measures), tuple(pairs)
    return Match(new, old, *named, rows, left_out, notes, tuple(questions), answers)


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
    effects = {(e.run, repr(e.estimand), e.a, e.b): e for e in audit.estimates}
    found: _Answers = {}
    for q in audit.query_answers:
        name = repr(q.estimand)
        effect = effects[q.run, name, q.a, q.b]
        if not q.estimand.directed:
            found[q.run, (name, (q.b, q.a))] = effect.swapped(), -q.one, q.two
        found[q.run, (name, (q.a, q.b))] = effect, q.one, q.two
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
            raise UserError(f"the audits differ in --{name}: {one!r} (new) and {two!r} (old); make both with the same")


def same_queries(
    new: Sequence[str], old: Sequence[str], *, noun: str = "audits", hint: str = "make both with the same judgments"
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where both results hold each query, in an order that does not depend on which is the new one."""
    ours, theirs = set(new), set(old)
    if ours != theirs:
        only = ((new, theirs, "new"), (old, ours, "old"))
        parts = [
            f"{counted(len(found), 'query', 'queries')} only in the {side} one ({names(found)})"
            for given, others, side in only
            if (found := [q for q in given if q not in others])
        ]
        raise UserError(f"the {noun} are over different queries: {', '.join(parts)}; {hint}")
    if tuple(new) == tuple(old):
        return np.arange(len(new)), np.arange(len(old))
    one, two = (np.array(sorted(range(len(side)), key=side.__getitem__), dtype=np.int64) for side in (new, old))
    return one, two


def _refuse_nothing(found: Sequence[Any], noun: str, new: Iterable[str], old: Iterable[str]) -> None:
    if not found:
        ours, theirs = (", ".join(side) or "none" for side in (new, old))
        raise UserError(f"the audits have no {noun} in common: the new one has {ours}; the old one has {theirs}")


def _left_out(one: str, many: str, new: Iterable[str], old: Iterable[str], *, kept: Iterable[str]) -> Iterator[str]:
    known = set(kept)
    for side, given in (("new", new), ("old", old)):
        if lone := [name for name in given if name not in known]:
            yield f"left out: {counted(len(lone), one, many)} only in the {side} audit ({names(lone)})"


def _rounded(new: Audit, old: Audit) -> list[str]:
    sides = [side for side, audit in (("new", new), ("old", old)) if audit.spec["rounding"] != "none"]
    which = "both audits round" if len(sides) == 2 else f"the {''.join(sides)} audit rounds"
    return [f"{which} means before Relative Δ; here it is computed from unrounded means"] if sides else []


def change_tasks(match: Match, pairs: Iterable[Pair]) -> list[ChangeTask]:
    """Every run pair, pair of groups and measure to compare; of the pair (`ALL`, `ALL`) the effectiveness."""
    pairs = list(pairs)
    return [_task(match, runs, m, pair) for runs in match.runs for pair in pairs for m in match.measures]


def _task(match: Match, runs: RunPair, measure: str, pair: Pair) -> ChangeTask:
    values = [
        audit.values[audit.runs.index(run), [*map(repr, audit.measures)].index(measure), audit.groups.index(name)][rows]
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
        next(t for t in audit.tilts if (t.run, t.measure) == (run, measure) and {t.a, t.b} == set(pair))
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
        levels=(new.level, old.level),
        twins=new.twins and old.twins,
    )


def estimand_tasks(match: Match) -> list[ChangeTask]:
    """Every run pair and question about groups to compare."""
    return [_question_task(match, runs, question) for runs in match.runs for question in match.questions]


def _question_task(match: Match, runs: RunPair, question: Question) -> ChangeTask:
    distinct, samples, levels = match.distinct(runs), list[Sample](), list[float]()
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
                one=one[rows],
                two=two[rows],
                parts=e.parts,
                twins=e.twins,
                clusters=side,
                distinct=distinct,
            )
        )
        levels.append(e.level)
    return contrast_task(samples[0], samples[1], (levels[0], levels[1]))

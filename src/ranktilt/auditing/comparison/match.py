"""Match runs: those of two audits on their common queries, or one run and the others."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.comparison.comparability import comparability_notes, depth_notes
from ranktilt.auditing.contributions import CommonNumbering, common_numbering
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
from ranktilt.data.notes.runs import FittedQueriesLeftOut
from ranktilt.data.runs.run import stage_facts
from ranktilt.errors import UserError, counted, unknown
from ranktilt.measures.base import measure as to_measure
from ranktilt.measures.printing import digits_apart
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.rankers.candidates import FITTED
from ranktilt.statistics.bootstrap import shared_numbering
from ranktilt.statistics.two_way import Clusters

Question = tuple[str, Pair]
"""Notation of an estimand about groups, and the groups; (`ALL`, `ALL`) for all groups together."""
_NAMED = 3
"""Most names that a note or message lists."""
_HINTS = {
    "run": "name the runs alike (--run NAME=FILE)",
    "measure": "audit both with the same judgments and measures",
    "pair of groups": "audit both with the same groups",
}
"""What to do about audits that have nothing of a kind in common."""
MAX_LEFT_OUT = 10.0
"""Largest percentage of all queries that only one of two results may hold."""


class RunPair(NamedTuple):
    """A run of the new audit and its partner in the old one."""

    new: str
    """Name of the run in the new audit."""
    old: str
    """Name of the run in the old audit."""


class QueryAnswer(NamedTuple):
    """One run's answer to a question about groups, with the columns behind it."""

    effect: Effect
    """The answer."""
    numerator: Floats
    """Total of each query."""
    denominator: Floats
    """Weight of each query."""


AnswerOf = dict[tuple[str, Question], QueryAnswer]
"""Answers of an audit by run and question."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Match:
    """Two audits side by side; made by `match`."""

    new: Audit
    """The new audit."""
    old: Audit
    """The old audit."""
    runs: tuple[RunPair, ...]
    """Pairs of runs to compare."""
    measures: tuple[str, ...]
    """Measures that both have, in the new audit's order; the first one is the primary one."""
    pairs: tuple[Pair, ...]
    """Pairs of groups that both have, in the new audit's order of sides."""
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    """Rows of the common queries in the new and the old audit.

    Their order does not depend on which audit is the new one.
    """
    left_out: tuple[Note, ...]
    """Notes on what only one audit holds."""
    notes: tuple[Note, ...]
    """Notes on other differences between the audits, such as queries that only one of them holds.
    """
    queries_left_out: int = 0
    """Queries that only one of the audits holds."""
    questions: tuple[Question, ...] = ()
    """Questions about groups that both audits answer query by query, with the new one's sides."""
    answers: tuple[AnswerOf, ...] = ()
    """Answers of the new and the old audit."""

    def audit_rows(self, runs: RunPair) -> Iterator[tuple[Audit, str, npt.NDArray[np.int64]]]:
        """Yield the new and the old audit, each with its run and the rows of the queries."""
        return zip((self.new, self.old), runs, self.rows, strict=True)

    def distinct(self, runs: RunPair) -> npt.NDArray[np.int64] | None:
        """Return a number for each query, equal for queries that repeat each other under both runs.

        None if no query repeats another one.
        """
        numberings = []
        for audit, run, rows in self.audit_rows(runs):
            numbers = audit.distinct(run)
            numberings.append(None if numbers is None else numbers[rows])
        return shared_numbering(numberings)

    def clusters(
        self, runs: RunPair, estimand: str, pair: Pair
    ) -> tuple[Clusters | None, Clusters | None]:
        """Return the documents' contributions to both runs' answers, with common numbers."""
        if (
            self.numberings is None
            or self.new.contributions is None
            or self.old.contributions is None
        ):
            return None, None
        new_numbering, old_numbering = self.numberings
        return (
            self.new.contributions.clusters_of((runs.new, estimand, *pair), new_numbering),
            self.old.contributions.clusters_of((runs.old, estimand, *pair), old_numbering),
        )

    @cached_property
    def numberings(self) -> list[CommonNumbering] | None:
        """Common numbers of queries and origins, for the new and the old audit."""
        if self.new.contributions is None or self.old.contributions is None:
            return None
        queries = [self.new.queries[row] for row in self.rows[0]]
        return common_numbering([self.new.contributions, self.old.contributions], queries)


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonQueries:
    """The queries that two results have in common."""

    rows: tuple[Ints, Ints]
    """Rows of the common queries in the new and the old result.

    Their order does not depend on which result is the new one.
    """
    only_new: tuple[str, ...] = ()
    """Queries that only the new result holds."""
    only_old: tuple[str, ...] = ()
    """Queries that only the old result holds."""
    fitted: tuple[str, ...] = ()
    """Queries that one result lacks because its runs learned from them; they are not held against
    it."""

    @property
    def left_out(self) -> int:
        """Number of queries that only one of the results holds, without `fitted`."""
        return len(self.only_new) + len(self.only_old)

    @property
    def total(self) -> int:
        """Number of queries that either result holds, without `fitted`."""
        return len(self.rows[0]) + self.left_out

    @property
    def percent_left_out(self) -> float:
        """Percentage of queries that only one of the results holds."""
        return 100 * self.left_out / self.total if self.left_out else 0.0

    def differences(self, noun: str) -> str:
        """Count and name the queries that only one result holds."""
        parts = []
        for side, queries in (("new", self.only_new), ("old", self.only_old)):
            if queries:
                number = counted(len(queries), "query", "queries")
                parts.append(f"{number} only in the {side} {noun} ({names(queries)})")
        return ", ".join(parts)

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
    """Match two audits on the queries that they have in common.

    Runs are partners as `ranktilt.compare` says.
    """
    if not all(audit.measures or audit.query_answers for audit in (new, old)):
        raise UserError(
            "an audit has no measure: without judgments there is no Relative Δ to compare"
        )
    refuse_other_settings(new, old)
    learned = learned_queries(new), learned_queries(old)
    common = common_queries(
        new.queries, old.queries, max_left_out=max_left_out, fitted=[*map(set, learned)]
    )
    runs = _run_pairs(new, old, baseline_run)
    measure_names = _measure_names(new), _measure_names(old)
    measures = [name for name in measure_names[0] if name in measure_names[1]]
    pairs = [
        pair
        for pair in new.tilted_pairs
        if pair in old.tilted_pairs or pair[::-1] in old.tilted_pairs
    ]
    answers = answers_of(new), answers_of(old)
    answered = {question for _, question in answers[0]} & {question for _, question in answers[1]}
    questions = [question for question in _questions(new) if question in answered]

    pair_names = _pair_names(new.tilted_pairs), _pair_names(old.tilted_pairs)
    _refuse_nothing(runs, "run", new.runs, old.runs)
    _refuse_nothing(measures or questions, "measure", *measure_names)
    if new.tilted_pairs or old.tilted_pairs:
        _refuse_nothing(pairs or questions, "pair of groups", *pair_names)

    common_runs = {run.new for run in runs} | {run.old for run in runs}
    common_pairs = _pair_names([*pairs, *(pair[::-1] for pair in pairs)])
    question_names = map(_question_name, _questions(new)), map(_question_name, _questions(old))
    left_out = (
        *_left_out("run", new.runs, old.runs, common=common_runs),
        *_left_out("measure", *measure_names, common=measures),
        *_left_out("pair of groups", *pair_names, common=common_pairs),
        *_left_out("question", *question_names, common=map(_question_name, answered)),
    )
    renamed = [
        RunsPaired(new=run.new, old=run.old)
        for run in runs
        if run.new != run.old and baseline_run is None
    ]
    notes = (
        *_query_notes(common, new, old),
        *renamed,
        *_rounded(new, old),
        *comparability_notes(new, old, ("new", "old")),
        *depth_notes(new, old, runs, _deepest(measures)),
    )
    return Match(
        new=new,
        old=old,
        runs=tuple(runs),
        measures=tuple(measures),
        pairs=tuple(pairs),
        rows=common.rows,
        left_out=left_out,
        notes=notes,
        queries_left_out=common.left_out + len(common.fitted),
        questions=tuple(questions),
        answers=answers,
    )


def _run_pairs(new: Audit, old: Audit, baseline_run: str | None) -> list[RunPair]:
    """Return the pairs of runs to compare; see `ranktilt.compare`."""
    if baseline_run is not None:
        return _against(new, old, baseline_run)
    if len(new.runs) == len(old.runs) == 1:
        return [RunPair(new=new.runs[0], old=old.runs[0])]
    return [RunPair(new=run, old=run) for run in new.runs if run in old.runs]


def _deepest(measures: Iterable[str]) -> int | None:
    """Return the largest cutoff of some measures; None if one has none, or there are none."""
    cutoffs = [to_measure(measure).cutoff for measure in measures]
    known = [cutoff for cutoff in cutoffs if cutoff is not None]
    return max(known) if known and len(known) == len(cutoffs) else None


def _measure_names(audit: Audit) -> list[str]:
    """Return the notations of an audit's measures."""
    return [repr(measure) for measure in audit.measures]


def _pair_names(pairs: Iterable[Pair]) -> list[str]:
    """Return the names of pairs of groups, as messages have them."""
    return [_pair_name(pair) for pair in pairs]


def _questions(audit: Audit) -> list[Question]:
    """Return the questions that an audit answers query by query, each once."""
    questions = [(repr(answer.estimand), (answer.a, answer.b)) for answer in audit.query_answers]
    return list(dict.fromkeys(questions))


def names(texts: Iterable[str]) -> str:
    """List names, the first few of many."""
    texts = list(texts)
    first = ", ".join(repr(text) for text in texts[:_NAMED])
    return first + (", …" if len(texts) > _NAMED else "")


def _against(new: Audit, old: Audit, baseline_run: str) -> list[RunPair]:
    """Pair every run with the baseline run."""
    if baseline_run not in old.runs:
        raise unknown("run", baseline_run, old.runs)
    if new.runs == (baseline_run,):
        raise UserError(f"nothing to compare: the audit has no run other than {baseline_run!r}")
    return [RunPair(new=run, old=baseline_run) for run in new.runs if run != baseline_run]


def answers_of(audit: Audit) -> AnswerOf:
    """Collect an audit's answers by run and question, from either side.

    Ratios from their own only.
    """
    effects = {
        (effect.run, repr(effect.estimand), effect.a, effect.b): effect for effect in audit.card
    }
    answers: AnswerOf = {}
    for answer in audit.query_answers:
        run, name, a, b = answer.run, repr(answer.estimand), answer.a, answer.b
        effect = effects[run, name, a, b]
        if not answer.estimand.directed:
            answers[run, (name, (b, a))] = QueryAnswer(
                effect=effect.swapped(),
                numerator=-answer.numerator,
                denominator=answer.denominator,
            )
        answers[run, (name, (a, b))] = QueryAnswer(
            effect=effect, numerator=answer.numerator, denominator=answer.denominator
        )
    return answers


def _question_name(question: Question) -> str:
    """Return the name of a question, as messages have it."""
    name, pair = question
    return name if pair == (ALL, ALL) else f"{name} {_pair_name(pair)}"


def _pair_name(pair: Pair) -> str:
    """Return the name of a pair of groups, as messages have it."""
    return f"{pair[0]},{pair[1]}"


def refuse_other_settings(new: Audit, old: Audit, sides: tuple[str, str] = ("new", "old")) -> None:
    """Refuse audits that group, break ties or count missing queries differently.

    `sides` are the names of the two audits.
    """
    for name in ("by", "ties", "missing"):
        new_setting, old_setting = (audit.spec[name] or "none" for audit in (new, old))
        if new_setting != old_setting:
            raise UserError(
                f"the audits differ in {name}: {new_setting!r} ({sides[0]}) and {old_setting!r} "
                f"({sides[1]}); use the same for both"
            )

    rates = [audit.spec.get("label_errors", "none") for audit in (new, old)]
    if rates[0] != rates[1]:
        raise UserError(
            f"the audits differ in label errors: {rates[0]!r} ({sides[0]}) and {rates[1]!r} "
            f"({sides[1]}); audit both with the same --label-errors"
        )


def common_queries(
    new: Sequence[str],
    old: Sequence[str],
    *,
    max_left_out: float,
    noun: str = "audit",
    hint: str = "use the same judgments for both",
    fitted: Sequence[AbstractSet[str]] = (frozenset(), frozenset()),
) -> CommonQueries:
    """Return the queries that both results have.

    `fitted` are those that runs of the new and the old result learned from, which it leaves out;
    that only the other one holds them counts for nothing.

    Raises
    ------
    UserError
        If more than `max_left_out` percent of the queries are in one of them only.
    """
    if not 0 <= max_left_out <= 100:
        raise UserError(
            f"--max-left-out: expected a percentage from 0 to 100, got {max_left_out:g}"
        )
    common = _matched_queries(new, old, fitted)
    if not len(common.rows[0]) and (common.left_out or common.fitted):
        raise UserError(f"the {noun}s have no query in common: {common.differences('one')}; {hint}")
    if common.percent_left_out > max_left_out:
        digits = digits_apart([common.percent_left_out], [max_left_out], 1)
        share = f"{common.left_out} of {common.total} ({common.percent_left_out:.{digits}f} %)"
        raise UserError(
            f"the {noun}s cover different queries: {common.differences('one')}; that is {share},"
            f" more than --max-left-out {max_left_out:g}; {hint}"
        )
    return common


def _matched_queries(
    new: Sequence[str], old: Sequence[str], fitted: Sequence[AbstractSet[str]]
) -> CommonQueries:
    """Match the queries of two results, and say why a query is in one of them only."""
    in_new, in_old = set(new), set(old)
    rows_new = np.array([row for row, query in enumerate(new) if query in in_old], dtype=np.int64)
    rows_old = np.array([row for row, query in enumerate(old) if query in in_new], dtype=np.int64)
    if [new[row] for row in rows_new] != [old[row] for row in rows_old]:
        rows_new = np.array(sorted(rows_new, key=new.__getitem__), dtype=np.int64)
        rows_old = np.array(sorted(rows_old, key=old.__getitem__), dtype=np.int64)
    by_new, by_old = fitted
    only_new = tuple(query for query in new if query not in in_old | by_old)
    only_old = tuple(query for query in old if query not in in_new | by_new)
    left_by_old = [query for query in new if query in by_old - in_old]
    left_by_new = [query for query in old if query in by_new - in_new]
    return CommonQueries(
        rows=(rows_new, rows_old),
        only_new=only_new,
        only_old=only_old,
        fitted=(*left_by_old, *left_by_new),
    )


def _query_notes(common: CommonQueries, new: Audit, old: Audit) -> Iterator[Note]:
    """Note the queries that only one audit holds, and those that runs learned from."""
    if not (common.left_out or common.fitted):
        return
    effects = (*new.tilts, *new.card, *old.tilts, *old.card)
    # The draws behind a median are not kept with an audit, so that it cannot be taken over fewer
    # queries.
    shuffled = any(not effect.twins and effect.estimand.sided for effect in effects)
    if common.fitted:
        files = dict.fromkeys([*learned_queries(new).values(), *learned_queries(old).values()])
        yield FittedQueriesLeftOut(
            queries=len(common.fitted),
            files=tuple(files),
            keeps_medians=shuffled and not common.left_out,
        )
    if common.left_out:
        yield common.note("audit", keeps_medians=shuffled)


def learned_queries(audit: Audit) -> dict[str, str]:
    """Return the queries that runs of an audit learned from, each with the file of the fit."""
    learned = dict[str, str]()
    for spec in audit.spec.get("runs", ()):
        for _, fact in stage_facts(spec, FITTED):
            file = str(fact.get("file", "a fit"))
            learned |= dict.fromkeys(map(str, fact.get("queries", ())), file)
    return learned


def _refuse_nothing(
    common: Sequence[Any], noun: str, new: Iterable[str], old: Iterable[str]
) -> None:
    """Refuse audits that have nothing of a kind in common."""
    if not common:
        new_names, old_names = (", ".join(side) or "none" for side in (new, old))
        raise UserError(
            f"the audits have no {noun} in common: the new one has {new_names}; "
            f"the old one has {old_names}; {_HINTS[noun]}"
        )


def _left_out(
    part: Literal["run", "measure", "pair of groups", "question"],
    new: Iterable[str],
    old: Iterable[str],
    *,
    common: Iterable[str],
) -> Iterator[Note]:
    """Note the names that are not `common` to both audits."""
    common = set(common)
    sides: tuple[tuple[Side, Iterable[str]], ...] = (("new", new), ("old", old))
    for side, names_of_side in sides:
        if lone := [name for name in names_of_side if name not in common]:
            yield OnlyInOneAudit(part=part, side=side, number=len(lone), first=tuple(lone[:_NAMED]))


def _rounded(new: Audit, old: Audit) -> list[Note]:
    """Note that the rounding of an audit is ignored."""
    audits: tuple[tuple[Side, Audit], ...] = (("new", new), ("old", old))
    sides = tuple(side for side, audit in audits if audit.spec["rounding"] != "none")
    return [RoundingIgnored(sides=sides)] if sides else []


def change_tasks(match: Match, pairs: Iterable[Pair]) -> list[ChangeTask]:
    """Return a task for every pair of runs, pair of groups and measure.

    For the pair (`ALL`, `ALL`) effectiveness is compared.
    """
    combinations = itertools.product(match.runs, list(pairs), match.measures)
    return [_task(match, runs, measure, pair) for runs, pair, measure in combinations]


def _task(match: Match, runs: RunPair, measure: str, pair: Pair) -> ChangeTask:
    """Return the task of one pair of runs, measure and pair of groups."""
    values = []
    for name in dict.fromkeys(pair):
        for audit, run, rows in match.audit_rows(runs):
            run_number = audit.runs.index(run)
            measure_number = _measure_names(audit).index(measure)
            group_number = audit.groups.index(name)
            values.append(audit.values[run_number, measure_number, group_number][rows])
    columns = Columns(values=np.array(values), distinct=match.distinct(runs))
    if pair == (ALL, ALL):
        return ChangeTask(
            run=runs.new,
            old_run=runs.old,
            estimand=to_measure(measure),
            a=ALL,
            b=ALL,
            columns=columns,
        )
    new = tilt_of(match.new, runs.new, measure, pair)
    old = tilt_of(match.old, runs.old, measure, pair)
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


def tilt_of(audit: Audit, run: str, measure: str, pair: Pair) -> Effect:
    """Return a run's tilt, seen from the first group of the pair."""
    for tilt in audit.tilts:
        if (tilt.run, tilt.measure) == (run, measure) and {tilt.a, tilt.b} == set(pair):
            return tilt if (tilt.a, tilt.b) == pair else tilt.swapped()
    raise ValueError(f"no tilt of {run} on {measure} for {_pair_name(pair)}")


def neutral_values(new: Effect, old: Effect) -> tuple[float, float]:
    """Return the neutral values under the new and under the old run.

    The median of random labels cannot be compared with the neutral value of twins. If only one run
    has twins, the estimand's neutral value counts for both.
    """
    if new.twins != old.twins:
        return new.estimand.neutral, new.estimand.neutral
    return new.neutral, old.neutral


def estimand_tasks(match: Match) -> list[ChangeTask]:
    """List every run pair and question about groups to compare."""
    return [
        _question_task(match, runs, question)
        for runs, question in itertools.product(match.runs, match.questions)
    ]


def _question_task(match: Match, runs: RunPair, question: Question) -> ChangeTask:
    """Return the task of one pair of runs and question about groups."""
    distinct, samples, effects = match.distinct(runs), list[Sample](), list[Effect]()
    name, pair = question
    clusters = match.clusters(runs, name, pair)
    sides = zip(match.answers, match.audit_rows(runs), clusters, strict=True)
    for answers, (_, run, rows), side_clusters in sides:
        answer = answers[run, question]
        effect = answer.effect
        sample = Sample(
            run=effect.run,
            estimand=effect.estimand,
            a=effect.a,
            b=effect.b,
            numerator=answer.numerator[rows],
            denominator=answer.denominator[rows],
            parts=effect.details,
            twins=effect.twins,
            clusters=side_clusters,
            distinct=distinct,
        )
        samples.append(sample)
        effects.append(effect)
    return contrast_task(samples[0], samples[1], neutral_values(*effects))

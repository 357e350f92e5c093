"""Match two audits: the runs, questions and queries that both of them have.

The *new* audit is compared with the *old* one. Both may be the same audit: then one of its runs,
the baseline, is compared with all others.

A *question* is an estimand (something with a number for an answer) and the two groups that it is
about; a *measure* is an estimand that reads judgments of relevance. An audit stores the values per
query of each measure, group by group, and of its other questions in `Audit.query_answers`. These
are matched here, so that both runs can be compared on the same queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.comparison.common_queries import (
    MAX_LEFT_OUT,
    MOST_NAMED,
    CommonQueries,
    common_queries,
)
from ranktilt.auditing.comparison.comparability import comparability_notes, depth_notes
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.storage.contributions import CommonNumbering, common_numbering
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import (
    OnlyInOneAudit,
    RoundingIgnored,
    RunsPaired,
    Side,
)
from ranktilt.data.notes.runs import FittedQueriesLeftOut
from ranktilt.data.runs.run import stage_facts
from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.base import measure as to_measure
from ranktilt.measures.ranking import Floats
from ranktilt.rankers.candidates import FITTED
from ranktilt.statistics.bootstrap import shared_numbering
from ranktilt.statistics.two_way import Clusters

Question = tuple[str, Pair]
"""Notation of an estimand that is no measure, such as ``Share@10``, and the groups.

The groups are (`ALL`, `ALL`) for a question about all groups together.
"""
_REMEDIES = {
    "run": "name the runs alike (--run NAME=FILE)",
    "measure": "audit both with the same judgments and measures",
    "pair of groups": "audit both with the same groups",
}
"""What to do if two audits have no run, no measure or no pair of groups in common."""


class RunPair(NamedTuple):
    """A run of the new audit and its partner in the old one."""

    new: str
    """Name of the run in the new audit."""
    old: str
    """Name of the run in the old audit."""


class QueryAnswer(NamedTuple):
    """One run's answer to a question about groups, with the values per query behind it."""

    effect: Effect
    """The answer."""
    numerator: Floats
    """Total of each query; the answer is ``Σ numerator / Σ denominator`` for most questions."""
    denominator: Floats
    """Weight of each query."""


AnswersByQuestion = dict[tuple[str, Question], QueryAnswer]
"""Answers of an audit by run and question."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Match:
    """What two audits have in common; made by `match`."""

    new: Audit
    """The new audit."""
    old: Audit
    """The old audit."""
    runs: tuple[RunPair, ...]
    """Pairs of runs to compare."""
    measures: tuple[str, ...]
    """Measures that both have, in the new audit's order."""
    pairs: tuple[Pair, ...]
    """Pairs of groups that both have. The first group is that of the new audit."""
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    """Indexes of the common queries in the new and the old audit.

    The order of the queries does not depend on which audit is the new one.
    """
    left_out: tuple[Note, ...]
    """Notes on what only one audit holds."""
    notes: tuple[Note, ...]
    """Notes on other differences between the audits, such as queries that only one of them holds.
    """
    queries_left_out: int = 0
    """Number of queries that only one of the audits holds."""
    questions: tuple[Question, ...] = ()
    """Questions about groups that both audits answer query by query.

    The first group of a question is that of the new audit.
    """
    answers: tuple[AnswersByQuestion, ...] = ()
    """Answers of the new and the old audit."""

    def audit_rows(self, runs: RunPair) -> Iterator[tuple[Audit, str, npt.NDArray[np.int64]]]:
        """Yield the new and the old audit, each with its run and the rows of the queries."""
        return zip((self.new, self.old), runs, self.rows, strict=True)

    def distinct(self, runs: RunPair) -> npt.NDArray[np.int64] | None:
        """Return a number for each common query.

        Queries that repeat each other under both runs have one number. None if no query repeats
        another one.
        """
        numberings = []
        for audit, run, rows in self.audit_rows(runs):
            numbers = audit.distinct(run)
            numberings.append(None if numbers is None else numbers[rows])
        return shared_numbering(numberings)

    def clusters(
        self, runs: RunPair, estimand: str, pair: Pair
    ) -> tuple[Clusters | None, Clusters | None]:
        """Return what documents add to both runs' answers, with common numbers of queries.

        Both are None if an audit does not say what documents add. `estimand` is the notation of the
        question.
        """
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
        """Common numbers of queries and documents, for the new and the old audit."""
        if self.new.contributions is None or self.old.contributions is None:
            return None
        queries = [self.new.queries[row] for row in self.rows[0]]
        return common_numbering([self.new.contributions, self.old.contributions], queries)


def match(
    new: Audit, old: Audit, *, baseline_run: str | None = None, max_left_out: float = MAX_LEFT_OUT
) -> Match:
    """Match two audits on the queries that they have in common.

    Parameters
    ----------
    new, old : Audit
        The audits, or twice the same one.
    baseline_run : str, optional
        Run of the old audit to compare all runs of the new one with. By default, runs of the same
        name are compared, or the two runs of audits with one run each.
    max_left_out : float, optional
        Largest percentage of all queries that only one audit may hold.

    Raises
    ------
    UserError
        If the audits were made with different settings, or have too little in common.
    """
    if not all(audit.measures or audit.query_answers for audit in (new, old)):
        raise UserError(
            "an audit has no measure: without judgments there is no Relative Δ to compare"
        )
    refuse_other_settings(new, old)
    fitted = [set(learned_queries(audit)) for audit in (new, old)]
    common = common_queries(new.queries, old.queries, max_left_out=max_left_out, fitted=fitted)
    runs = _run_pairs(new, old, baseline_run)
    measure_names = _measure_names(new), _measure_names(old)
    measures = [name for name in measure_names[0] if name in measure_names[1]]
    pairs = _common_pairs(new, old)
    answers = answers_of(new), answers_of(old)
    answered = answered_questions(answers[0]) & answered_questions(answers[1])
    questions = [question for question in _questions(new) if question in answered]

    # Common runs and queries are needed, and a common measure or question.
    pair_names = _pair_names(new.tilted_pairs), _pair_names(old.tilted_pairs)
    _require_common(runs, "run", new.runs, old.runs)
    _require_common(measures or questions, "measure", *measure_names)
    if new.tilted_pairs or old.tilted_pairs:
        _require_common(pairs or questions, "pair of groups", *pair_names)

    # Whatever only one audit has is left out, with a note.
    common_runs = {run.new for run in runs} | {run.old for run in runs}
    common_pairs = _pair_names([*pairs, *(pair[::-1] for pair in pairs)])
    question_names = map(_question_name, _questions(new)), map(_question_name, _questions(old))
    left_out = (
        *_left_out_notes("run", new.runs, old.runs, common=common_runs),
        *_left_out_notes("measure", *measure_names, common=measures),
        *_left_out_notes("pair of groups", *pair_names, common=common_pairs),
        *_left_out_notes("question", *question_names, common=map(_question_name, answered)),
    )
    notes = (
        *_query_notes(common, new, old),
        *(_renaming_notes(runs) if baseline_run is None else ()),
        *_rounding_notes(new, old),
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
    """Return the pairs of runs to compare: every run with the baseline, if one is named.

    Otherwise these are runs of the same name, or the two runs of audits with one run each, whatever
    their names.
    """
    if baseline_run is not None:
        return _pairs_with_baseline(new, old, baseline_run)
    if len(new.runs) == len(old.runs) == 1:
        return [RunPair(new=new.runs[0], old=old.runs[0])]
    return [RunPair(new=run, old=run) for run in new.runs if run in old.runs]


def _common_pairs(new: Audit, old: Audit) -> list[Pair]:
    """Return the pairs of groups with a Relative Δ in both audits; their order may differ."""
    old_pairs = {frozenset(pair) for pair in old.tilted_pairs}
    return [pair for pair in new.tilted_pairs if frozenset(pair) in old_pairs]


def answered_questions(answers: AnswersByQuestion) -> set[Question]:
    """Return the questions that some run answers, with their groups in both orders."""
    return {question for _run, question in answers}


def _renaming_notes(runs: Iterable[RunPair]) -> Iterator[Note]:
    """Note runs that are compared although they have different names."""
    for run in runs:
        if run.new != run.old:
            yield RunsPaired(new=run.new, old=run.old)


def _deepest(measures: Iterable[str]) -> int | None:
    """Return the largest cutoff of some measures; None if one has none, or there are none."""
    cutoffs = [to_measure(measure).cutoff for measure in measures]
    known = [cutoff for cutoff in cutoffs if cutoff is not None]
    return max(known) if known and len(known) == len(cutoffs) else None


def _measure_names(audit: Audit) -> list[str]:
    """Return the notations of an audit's measures."""
    return [repr(measure) for measure in audit.measures]


def _pair_names(pairs: Iterable[Pair]) -> list[str]:
    """Return the names of pairs of groups in messages."""
    return [_pair_name(pair) for pair in pairs]


def _questions(audit: Audit) -> list[Question]:
    """Return the questions that an audit answers query by query, each once."""
    questions = [(repr(answer.estimand), (answer.a, answer.b)) for answer in audit.query_answers]
    return list(dict.fromkeys(questions))


def _pairs_with_baseline(new: Audit, old: Audit, baseline_run: str) -> list[RunPair]:
    """Pair every run with the baseline run."""
    if baseline_run not in old.runs:
        raise unknown_name("run", baseline_run, old.runs)
    if new.runs == (baseline_run,):
        raise UserError(f"nothing to compare: the audit has no run other than {baseline_run!r}")
    return [RunPair(new=run, old=baseline_run) for run in new.runs if run != baseline_run]


def answers_of(audit: Audit) -> AnswersByQuestion:
    """Collect an audit's answers by run and question.

    Each answer is there twice, with its groups in both orders. A directed estimand, such as a mean
    of ratios, is not symmetric, and is there in its own order only.
    """
    effects = {
        (effect.run, repr(effect.estimand), effect.a, effect.b): effect for effect in audit.card
    }
    answers: AnswersByQuestion = {}
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
    """Return the name of a question in messages."""
    name, pair = question
    return name if pair == (ALL, ALL) else f"{name} {_pair_name(pair)}"


def _pair_name(pair: Pair) -> str:
    """Return the name of a pair of groups in messages."""
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


def _query_notes(common: CommonQueries, new: Audit, old: Audit) -> Iterator[Note]:
    """Note the queries that only one audit holds, and those that runs learned from.

    The note also says that neutral values remain those over all queries, if they are medians under
    random labels: an audit's file does not hold the draws that a median over fewer queries needs.
    """
    if not (common.left_out or common.fitted):
        return
    effects = (*new.tilts, *new.card, *old.tilts, *old.card)
    has_medians = any(not effect.twins and effect.estimand.sided for effect in effects)
    if common.fitted:
        files = dict.fromkeys([*learned_queries(new).values(), *learned_queries(old).values()])
        yield FittedQueriesLeftOut(
            queries=len(common.fitted),
            files=tuple(files),
            keeps_medians=has_medians and not common.left_out,  # said once
        )
    if common.left_out:
        yield common.note("audit", keeps_medians=has_medians)


def learned_queries(audit: Audit) -> dict[str, str]:
    """Return the queries that runs of an audit learned from, each with the file of the fit."""
    file_of_query: dict[str, str] = {}
    for spec in audit.spec.get("runs", ()):
        for _stage, fact in stage_facts(spec, FITTED):
            file = str(fact.get("file", "a fit"))
            file_of_query |= dict.fromkeys(map(str, fact.get("queries", ())), file)
    return file_of_query


def _require_common(
    common: Sequence[Any], noun: str, new: Iterable[str], old: Iterable[str]
) -> None:
    """Refuse two audits if `common` is empty.

    `noun` says what they should have in common, a key of `_REMEDIES`; `new` and `old` are the names
    of what each has.
    """
    if not common:
        new_names, old_names = (", ".join(side) or "none" for side in (new, old))
        raise UserError(
            f"the audits have no {noun} in common: the new one has {new_names}; "
            f"the old one has {old_names}; {_REMEDIES[noun]}"
        )


def _left_out_notes(
    part: Literal["run", "measure", "pair of groups", "question"],
    new: Iterable[str],
    old: Iterable[str],
    *,
    common: Iterable[str],
) -> Iterator[Note]:
    """Note what only one audit has; `new` and `old` are the names of what each has."""
    common = set(common)
    sides: tuple[tuple[Side, Iterable[str]], ...] = (("new", new), ("old", old))
    for side, names in sides:
        lone = [name for name in names if name not in common]
        if lone:
            yield OnlyInOneAudit(
                part=part, side=side, number=len(lone), first=tuple(lone[:MOST_NAMED])
            )


def _rounding_notes(new: Audit, old: Audit) -> list[Note]:
    """Note that the rounding of an audit is ignored."""
    audits: tuple[tuple[Side, Audit], ...] = (("new", new), ("old", old))
    sides = tuple(side for side, audit in audits if audit.spec["rounding"] != "none")
    return [RoundingIgnored(sides=sides)] if sides else []

"""What every run answers to one question, query by query, over the queries of all audits.

Three runs or more are ranked, of one audit or several. A question is an estimand about two groups,
written in its notation, and the groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from ranktilt.auditing.comparison.common_queries import first_names
from ranktilt.auditing.comparison.match import (
    AnswersByQuestion,
    Question,
    answered_questions,
    answers_of,
    learned_queries,
)
from ranktilt.auditing.comparison.tasks import tilt_of
from ranktilt.auditing.effects import Effect, ObservedAnswer
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import Sample, mean_sample
from ranktilt.auditing.storage.contributions import CommonNumbering, common_numbering
from ranktilt.errors import UserError, counted
from ranktilt.measures.base import measure as to_measure
from ranktilt.measures.ranking import Bools, Floats, Ints
from ranktilt.statistics.bootstrap import shared_numbering
from ranktilt.statistics.two_way import Clusters


@dataclass(frozen=True, kw_only=True, eq=False)
class RunAnswer:
    """One run's answer to a question, with the values per query behind it."""

    run: str
    """Name of the run, which differs from those of all other runs."""
    sample: Sample
    """Values per query, over the queries of all audits."""
    neutral: float
    """Value that favours nobody."""
    observed: ObservedAnswer | None = None
    """The answer by the labels as they are, if it is corrected for label errors."""

    @property
    def value(self) -> float:
        """The answer over the queries that count; NaN if none does."""
        mask = self.sample.mask
        if not mask.any():
            return np.nan
        return self.sample.estimand.value(
            self.sample.numerator[mask], self.sample.denominator[mask]
        )

    def over(self, is_counted: Bools) -> RunAnswer:
        """Return the answer over the queries for which `is_counted` is True."""
        sample = replace(
            self.sample,
            numerator=np.where(is_counted, self.sample.numerator, np.nan),
            denominator=np.where(is_counted, self.sample.denominator, np.nan),
        )
        return replace(self, sample=sample)


@dataclass(frozen=True, kw_only=True)
class AuditRun:
    """A run of an audit."""

    audit_index: int
    """Index of the audit."""
    run: str
    """Name of the run in its audit."""
    name: str
    """Name of the run among those of all audits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchedAudits:
    """Audits whose runs are ranked, with their common queries; made by `match_audits`."""

    audits: tuple[Audit, ...]
    """The audits."""
    runs: tuple[AuditRun, ...]
    """Runs of all audits."""
    rows: tuple[Ints, ...]
    """Indexes of the common queries in each audit, in the order of the first audit."""
    left_out: tuple[str, ...] = ()
    """Ids of queries that not all audits hold."""

    @property
    def queries(self) -> tuple[str, ...]:
        """Ids of the common queries."""
        return tuple(self.audits[0].queries[row] for row in self.rows[0])

    @cached_property
    def _numberings(self) -> list[CommonNumbering] | None:
        """Common numbers of queries and documents, by audit.

        None if an audit does not say what documents add to its answers.
        """
        contributions = [
            audit.contributions for audit in self.audits if audit.contributions is not None
        ]
        if len(contributions) < len(self.audits):
            return None
        return common_numbering(contributions, self.queries)

    @cached_property
    def _distinct(self) -> Ints | None:
        """Number of each query; queries that repeat each other under every run have one number.

        None if no query repeats another one.
        """
        numberings = []
        for audit_run in self.runs:
            numbers = self.audits[audit_run.audit_index].distinct(audit_run.run)
            rows = self.rows[audit_run.audit_index]
            numberings.append(None if numbers is None else numbers[rows])
        return shared_numbering(numberings)

    @cached_property
    def _answers(self) -> list[AnswersByQuestion]:
        """Answers of each audit by run and question, with the groups in both orders."""
        return [answers_of(audit) for audit in self.audits]

    @property
    def measures(self) -> list[str]:
        """Notations of the measures that all audits have."""
        notations = [list(map(repr, audit.measures)) for audit in self.audits]
        common = set[str](notations[0]).intersection(*notations)
        return [notation for notation in notations[0] if notation in common]

    @property
    def pairs(self) -> list[Pair]:
        """Pairs of groups that have a Relative Δ in all audits, in the order of the first audit."""
        pairs = [set(map(frozenset, audit.tilted_pairs)) for audit in self.audits]
        common = pairs[0].intersection(*pairs)
        return [pair for pair in self.audits[0].tilted_pairs if frozenset(pair) in common]

    def questions(self, estimand: str) -> list[Question]:
        """Return an estimand with each pair of groups about which all audits answer it.

        `estimand` is its notation. The groups are in the order of the first audit.
        """
        answered = [answered_questions(answers) for answers in self._answers]
        common = answered[0].intersection(*answered)
        questions: dict[frozenset[str], Question] = {}
        for answer in self.audits[0].query_answers:
            notation, pair = repr(answer.estimand), (answer.a, answer.b)
            if notation == estimand and (notation, pair) in common:
                questions.setdefault(frozenset(pair), (notation, pair))
        return list(questions.values())

    def means(self, measure: str) -> list[RunAnswer]:
        """Return the effectiveness of every run on one measure."""
        answers = []
        for audit_run in self.runs:
            values = self._values_per_query(audit_run, measure, ALL)
            sample = mean_sample(
                audit_run.name, to_measure(measure), ALL, values, distinct=self._distinct
            )
            answers.append(RunAnswer(run=audit_run.name, sample=sample, neutral=0.0))
        return answers

    def tilts(self, measure: str, pair: Pair) -> list[RunAnswer]:
        """Return Relative Δ of every run on one measure; it favours the first group of the pair."""
        answers = []
        for audit_run in self.runs:
            audit = self.audits[audit_run.audit_index]
            tilt = tilt_of(audit, audit_run.run, measure, pair)
            values_a, values_b = (
                self._values_per_query(audit_run, measure, group) for group in pair
            )
            answers.append(self._answer(audit_run, tilt, values_a, values_b))
        return self._with_common_neutral(answers)

    def estimates(self, question: Question) -> list[RunAnswer]:
        """Return the answer of every run that has one to a question about groups."""
        answers = []
        for audit_run in self.runs:
            answer = self._answers[audit_run.audit_index].get((audit_run.run, question))
            if answer is not None:
                rows = self.rows[audit_run.audit_index]
                numerator, denominator = answer.numerator[rows], answer.denominator[rows]
                answers.append(self._answer(audit_run, answer.effect, numerator, denominator))
        return self._with_common_neutral(answers)

    def _values_per_query(self, audit_run: AuditRun, measure: str, group: str) -> Floats:
        """Return a run's values of one measure for one group, over the common queries."""
        audit = self.audits[audit_run.audit_index]
        run_index = audit.runs.index(audit_run.run)
        measure_index = [repr(member) for member in audit.measures].index(measure)
        values: Floats = audit.values[run_index, measure_index, audit.groups.index(group)]
        return values[self.rows[audit_run.audit_index]]

    def _answer(
        self, audit_run: AuditRun, effect: Effect, numerator: Floats, denominator: Floats
    ) -> RunAnswer:
        """Return a run's answer from its values per query; `effect` is the answer in its audit."""
        sample = Sample(
            run=audit_run.name,
            estimand=effect.estimand,
            a=effect.a,
            b=effect.b,
            numerator=numerator,
            denominator=denominator,
            twins=effect.twins,
            clusters=self._clusters(audit_run, effect),
            distinct=self._distinct,
            is_bounded=effect.observed is None,
        )
        return RunAnswer(
            run=audit_run.name, sample=sample, neutral=effect.neutral, observed=effect.observed
        )

    def _clusters(self, audit_run: AuditRun, effect: Effect) -> Clusters | None:
        """Return what documents add to an answer; documents have one number in all audits."""
        contributions = self.audits[audit_run.audit_index].contributions
        if self._numberings is None or contributions is None:
            return None
        key = (audit_run.run, repr(effect.estimand), effect.a, effect.b)
        return contributions.clusters_of(key, self._numberings[audit_run.audit_index])

    @staticmethod
    def _with_common_neutral(answers: list[RunAnswer]) -> list[RunAnswer]:
        """Measure all answers from the estimand's neutral value, if only some are of twins.

        The median of random labels cannot be compared with the neutral value of twins.
        """
        if len({answer.sample.twins for answer in answers}) < 2:
            return answers
        return [replace(answer, neutral=answer.sample.estimand.neutral) for answer in answers]


def match_audits(audits: Sequence[Audit], *, max_left_out: float) -> MatchedAudits:
    """Match audits on the queries that all of them hold.

    Raises
    ------
    UserError
        If more than `max_left_out` percent of the queries are not in all of them.
    """
    counts = Counter(chain.from_iterable(audit.queries for audit in audits))
    common = [query for query in audits[0].queries if counts[query] == len(audits)]
    left_out = [query for query, count in counts.items() if count < len(audits)]
    _refuse_other_queries(audits, len(common), left_out, max_left_out)
    rows = []
    for audit in audits:
        row_of_query = {query: row for row, query in enumerate(audit.queries)}
        rows.append(np.array([row_of_query[query] for query in common], dtype=np.int64))
    return MatchedAudits(
        audits=tuple(audits),
        runs=tuple(_audit_runs(audits)),
        rows=tuple(rows),
        left_out=tuple(left_out),
    )


def _refuse_other_queries(
    audits: Sequence[Audit], common: int, left_out: Sequence[str], max_left_out: float
) -> None:
    """Refuse audits if more than `max_left_out` percent of the queries are not in all of them.

    `common` is the number of common queries, and `left_out` are the others.
    """
    if not common:
        raise UserError(
            "the audits have no query in common; rank runs that were audited on the same queries"
        )
    # Queries that a run learned from are missing from its audit on purpose.
    fitted = set(chain.from_iterable(map(learned_queries, audits)))
    missing = [query for query in left_out if query not in fitted]
    percent = 100 * len(missing) / (common + len(missing))
    if percent > max_left_out:
        queries = counted(len(missing), "query is", "queries are")
        raise UserError(
            f"the audits cover different queries: {queries} not in all of them "
            f"({first_names(missing)}), {percent:.1f} % and more than --max-left-out "
            f"{max_left_out:g}; audit all runs on the same queries"
        )


def _audit_runs(audits: Sequence[Audit]) -> Iterator[AuditRun]:
    """Yield the runs of all audits; the name of their audit is added to runs of one name."""
    counts = Counter(chain.from_iterable(audit.runs for audit in audits))
    audit_names = [audit_name(audit, index) for index, audit in enumerate(audits)]
    if len(set(audit_names)) < len(audit_names):  # files of one name in several folders
        audit_names = [f"{name}, {number}" for number, name in enumerate(audit_names, start=1)]
    for index, audit in enumerate(audits):
        for run in audit.runs:
            name = run if counts[run] == 1 else f"{run} ({audit_names[index]})"
            yield AuditRun(audit_index=index, run=run, name=name)


def audit_name(audit: Audit, index: int) -> str:
    """Return the name of an audit: that of its file, or else its number."""
    return Path(audit.loaded_from).stem if audit.loaded_from else f"audit {index + 1}"

"""Compare judges by published values of systems, without the grades behind them.

*Evaluations* are values of measures, such as nDCG@10, for each query and system. Two sets of them
are compared: one by human grades, one by the grades of a judge, such as a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.options import check_resamples
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import QueriesWithoutValues, SystemsOfOneGrader, ValuesIdentical
from ranktilt.errors import UserError, join_words, refuse_twice
from ranktilt.field_checks import require_seed
from ranktilt.judging.kept_grades import KeptGrades
from ranktilt.judging.result import JudgeAudit
from ranktilt.judging.systems.evaluation_files import (
    COLUMNS,
    evaluation_name,
    measure_bounds,
    measure_name,
    read_evaluations,
)
from ranktilt.judging.systems.groups import SystemGroups
from ranktilt.judging.systems.results import system_results
from ranktilt.judging.systems.systems import SystemValues
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import RESAMPLES

EvaluationSource = str | Path | pl.DataFrame
"""Evaluations as a user passes them: a file, a folder or a table."""
_DEFAULT_MEASURE = "nDCG@10"
"""Measure to compare if the user names none."""
_MOST_MEASURES = 4
"""Most measures that are all compared if the user names none and no file has the default."""
_MOST_LISTED = 8
"""Most measures that an error message lists."""
_MOST_EXAMPLES = 3
"""Most systems that an error message lists."""


class _Evaluations(NamedTuple):
    """Values of systems for each query, by the grades of one judge or of humans."""

    judge: str
    """Name of the judge; ``human`` for humans."""
    values: pl.DataFrame
    """``run``, ``query_id``, ``measure``, ``value``; defined values only."""

    @property
    def measures(self) -> list[str]:
        """Return the measures, in order."""
        return self.values["measure"].unique(maintain_order=True).to_list()

    def for_measure(self, measure: str) -> _Evaluations:
        """Return the values of one measure."""
        return self._replace(values=self.values.filter(pl.col("measure") == measure))

    @property
    def runs(self) -> list[str]:
        """Return the systems, in order."""
        return self.values["run"].unique(maintain_order=True).to_list()

    def matrix(self, runs: Sequence[str]) -> _Matrix:
        """Return the values of some systems as a matrix."""
        of_runs = self.values.filter(pl.col("run").is_in(runs))
        queries = of_runs["query_id"].unique(maintain_order=True).to_list()
        matrix = np.full((len(runs), len(queries)), np.nan)
        row_of = {run: index for index, run in enumerate(runs)}
        column_of = {query: index for index, query in enumerate(queries)}
        for run, query, value in of_runs.select("run", "query_id", "value").iter_rows():
            matrix[row_of[run], column_of[query]] = value
        return _Matrix(column_of=column_of, values=matrix)


class _Matrix(NamedTuple):
    """Values of one measure for systems and queries."""

    column_of: dict[str, int]
    """Column of each query, in the order of the file."""
    values: Floats
    """Values of shape (systems, queries); NaN for a missing one."""

    def complete_queries(self) -> list[str]:
        """Return the queries in which every system has a value."""
        is_missing = np.isnan(self.values)
        return [
            query for query, column in self.column_of.items() if not is_missing[:, column].any()
        ]

    def columns(self, queries: Sequence[str]) -> Floats:
        """Return the values of some queries, of shape (systems, queries)."""
        return self.values[:, [self.column_of[query] for query in queries]]


def judge_scores(
    human: EvaluationSource,
    judges: EvaluationSource | Sequence[str | Path] | Mapping[str, EvaluationSource],
    *,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    families: Mapping[str, str] | None = None,
    clusters: Mapping[str, str] | None = None,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> JudgeAudit:
    """Compare systems under human grades and a judge's from values per query, without the grades.

    Agreement of grades, grade gaps of twins and tilts need grades: see `judge`.

    Parameters
    ----------
    human : path or polars.DataFrame
        Values under human grades: a file of trec_eval's ``-q`` output or a table (gdeval, ndeval,
        ir_measures, PyTerrier), a folder of such files, or a frame with ``run``, ``query_id``,
        ``measure``, ``value``.
    judges : path or frame, sequence of paths, or mapping of names to any of these
        The same under one judge or several. A file's judge is named by the file.
    measures : str, Measure or sequence of them, optional
        By default nDCG@10, or, where a file lacks it, all measures that the files share, up to
        four.
    families : mapping, optional
        The family of each system by its name: asks whether a judge favours a family.
    clusters : mapping, optional
        The cluster of each system that is one of several repeats: each cluster counts as one
        system, with the mean of its members.
    correction : {"holm", "bonferroni"}, optional
        Correction of the p of differences between judges.
    resamples, seed : int, optional
        Bootstrap resamples; random seed.

    Returns
    -------
    JudgeAudit
        A result with tables, figures and sentences.

    Raises
    ------
    UserError
        If humans and a judge have fewer than two systems, or no query or measure, in common.
    """
    check_resamples(resamples)
    require_seed(seed)
    human_evaluations = _evaluations("human", human)
    judges_by_name = _judges_by_name(judges)
    if not judges_by_name:
        raise UserError(
            "expected the values of at least one judge: --scores FILE, after the human ones"
        )
    every_judge = [_evaluations(name, values) for name, values in judges_by_name.items()]
    measures_to_compare = _measures_to_compare(measures, [human_evaluations, *every_judge])
    every_values, notes = list[SystemValues](), list[Note]()
    # Judges with values of further queries get prediction-powered estimates (`system_results`).
    labelled: dict[str, Sequence[str]] = {}
    for judge in every_judge:
        for measure in measures_to_compare:
            values, left_out = _system_values(human_evaluations, judge, measure)
            every_values.append(values)
            notes += left_out
            if values.further_judged.shape[1]:
                labelled[judge.judge] = values.queries
    systems = system_results(
        every_values,
        SystemGroups(families=families or {}, clusters=clusters or {}),
        labelled,
        correction=correction,
        resamples=resamples,
        seed=seed,
    )
    spec = {
        "ranktilt": __version__,
        "human": _file(human),
        "judges": {name: _file(values) for name, values in judges_by_name.items()},
        "measures": measures_to_compare,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
    }
    return JudgeAudit(
        spec=spec,
        judges=tuple(judges_by_name),
        agreements=(),
        by_query=(),
        confusions=(),
        notes=tuple(dict.fromkeys([*notes, *systems.notes])),
        comparisons=systems.comparisons,
        rank_agreements=systems.rank_agreements,
        systems=systems.systems,
        system_pairs=systems.system_pairs,
        preferences=systems.preferences,
        corrected=systems.powered_estimates,
        grades=KeptGrades.from_values(systems.values),
    )


def _judges_by_name(
    judges: EvaluationSource | Sequence[str | Path] | Mapping[str, EvaluationSource],
) -> dict[str, EvaluationSource]:
    """Return evaluations by the name of their judge, which for a file is the file's name."""
    if isinstance(judges, Mapping):
        return dict(judges)
    if isinstance(judges, pl.DataFrame):
        return {"judge": judges}
    paths = [Path(judges)] if isinstance(judges, str | Path) else [Path(path) for path in judges]
    names = [evaluation_name(path) for path in paths]
    refuse_twice(names, "judge")
    return dict(zip(names, paths, strict=True))


def _file(values: EvaluationSource) -> str:
    """Return the path of evaluations; empty for a table."""
    return "" if isinstance(values, pl.DataFrame) else str(values)


def _evaluations(judge: str, source: EvaluationSource) -> _Evaluations:
    """Read the evaluations of a judge, and leave out undefined values."""
    values = (
        _checked_values(judge, source)
        if isinstance(source, pl.DataFrame)
        else read_evaluations(source)
    )
    defined = values.filter(pl.col("value").is_not_null() & pl.col("value").is_not_nan())
    if not defined.height:
        raise UserError(f"{judge}: no value per query is defined")
    return _Evaluations(judge, defined)


def _checked_values(judge: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Check a table as files are checked, and name measures as RankTilt does."""
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        columns = ", ".join(frame.columns)
        raise UserError(
            f"{judge}: expected columns {', '.join(COLUMNS)}; {join_words(missing)} not among "
            f"{columns}"
        )
    known_names = {name: measure_name(name) for name in frame["measure"].cast(pl.String).unique()}
    values = frame.select(
        pl.col("run", "query_id").cast(pl.String),
        pl.col("measure").cast(pl.String).replace(known_names),
        pl.col("value").cast(pl.Float64),
    )
    repeated = values.filter(pl.struct("run", "query_id", "measure").is_duplicated())
    if repeated.height:
        run, query, measure, _ = repeated.row(0)
        raise UserError(f"{judge}: two values of {measure} for query {query!r} of system {run!r}")
    for name in values["measure"].unique(maintain_order=True):
        low, high = measure_bounds(name)
        outside = values.filter(
            (pl.col("measure") == name) & ~pl.col("value").is_between(low, high)
        )
        outside = outside.filter(pl.col("value").is_not_nan())
        if outside.height:
            value = outside["value"][0]
            raise UserError(f"{judge}: expected {name} between {low:g} and {high:g}, got {value:g}")
    return values


def _measures_to_compare(
    measures: str | Measure | Sequence[str | Measure] | None,
    every_evaluations: Sequence[_Evaluations],
) -> list[str]:
    """Return the measures to compare.

    These are the measures of the user; or nDCG@10, if all evaluations have it; or all that they
    share, if these are few. The first of the evaluations is the human one.
    """
    human, *judges = every_evaluations
    common = [name for name in human.measures if all(name in judge.measures for judge in judges)]
    if measures is not None:
        return _common_measures(measures, common, every_evaluations)
    if not common:
        human_measures = ", ".join(human.measures[:_MOST_LISTED])
        judge_measures = ", ".join(judges[0].measures[:_MOST_LISTED])
        raise UserError(
            f"no measure in common: humans have {human_measures}; {judges[0].judge} has "
            f"{judge_measures}"
        )
    if _DEFAULT_MEASURE in common:
        return [_DEFAULT_MEASURE]
    if len(common) > _MOST_MEASURES:
        raise UserError(
            f"name the measures to compare (-m): the files have {_list_measures(common)}"
        )
    return common


def _common_measures(
    measures: str | Measure | Sequence[str | Measure],
    common: Sequence[str],
    every_evaluations: Sequence[_Evaluations],
) -> list[str]:
    """Return the user's measures by name, without repetitions.

    `common` are the measures that all evaluations have; any other is refused.
    """
    if isinstance(measures, str | Measure):
        measures = [measures]
    names = list(dict.fromkeys(_name(measure) for measure in measures))
    for name in names:
        if name not in common:
            lacking = [
                evaluations for evaluations in every_evaluations if name not in evaluations.measures
            ]
            raise UserError(
                f"{lacking[0].judge} has no values of {name}; all files have "
                f"{_list_measures(common) or 'no measure in common'}"
            )
    return names


def _name(measure: str | Measure) -> str:
    """Return the name of a measure."""
    return measure_name(measure if isinstance(measure, str) else repr(measure))


def _list_measures(measures: Sequence[str]) -> str:
    """List the first measures, and count the rest."""
    listed = ", ".join(measures[:_MOST_LISTED])
    rest = len(measures) - _MOST_LISTED
    return f"{listed} and {rest} more" if rest > 0 else listed


def _system_values(
    human: _Evaluations, judge: _Evaluations, measure: str
) -> tuple[SystemValues, list[Note]]:
    """Return the values of one measure for systems and queries that both have.

    A query counts if every system has a value. Queries that humans do not have are kept apart, for
    prediction-powered estimates.
    """
    human, judge = human.for_measure(measure), judge.for_measure(measure)
    runs, notes = _common_runs(human, judge, measure)
    by_human, by_judge = human.matrix(runs), judge.matrix(runs)
    human_queries, judge_queries = by_human.complete_queries(), by_judge.complete_queries()
    queries = [query for query in human_queries if query in set(judge_queries)]
    further = [query for query in judge_queries if query not in by_human.column_of]
    every_query = by_human.column_of.keys() | by_judge.column_of.keys()
    if not queries:
        shares_queries = bool(by_human.column_of.keys() & by_judge.column_of.keys())
        reason = (
            "query with a value of every system under both" if shares_queries else "query in common"
        )
        raise UserError(f"{judge.judge} and the human values, {measure}: no {reason}")
    left_out = len(every_query) - len(queries) - len(further)
    if left_out:
        note = QueriesWithoutValues(judge=judge.judge, measure=measure, queries=left_out)
        notes.append(note)
    human_values, judge_values = by_human.columns(queries), by_judge.columns(queries)
    if (human_values == judge_values).all():
        notes.append(ValuesIdentical(judge=judge.judge, measure=measure))
    values = SystemValues(
        judge=judge.judge,
        measure=measure,
        bounds=measure_bounds(measure),
        runs=tuple(runs),
        queries=tuple(queries),
        human=human_values,
        judged=judge_values,
        rescaled_human=human_values,  # without grades, nothing is known of the judge's scale
        further_judged=by_judge.columns(further),
    )
    return values, notes


def _common_runs(
    human: _Evaluations, judge: _Evaluations, measure: str
) -> tuple[list[str], list[Note]]:
    """Return the systems that both have, in the humans' order, and notes on all others."""
    runs = [run for run in human.runs if run in set(judge.runs)]
    if len(runs) < 2:
        shared = f"one system in common, {runs[0]!r}" if runs else "no system in common"
        raise UserError(
            f"{judge.judge} and the human values, {measure}: {shared}; two are needed "
            f"({_list_runs(human.runs)} against {_list_runs(judge.runs)})"
        )
    notes = list[Note]()
    graders: tuple[tuple[_Evaluations, Literal["humans", "judge"]], ...] = (
        (human, "humans"),
        (judge, "judge"),
    )
    for evaluations, grader in graders:
        systems_of_one = len(evaluations.runs) - len(runs)
        if systems_of_one:
            note = SystemsOfOneGrader(
                judge=judge.judge, measure=measure, systems=systems_of_one, grader=grader
            )
            notes.append(note)
    return runs, notes


def _list_runs(runs: Sequence[str]) -> str:
    """List the first systems, for an error message."""
    return ", ".join(runs[:_MOST_EXAMPLES]) + ("…" if len(runs) > _MOST_EXAMPLES else "")

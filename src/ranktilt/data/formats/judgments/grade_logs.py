"""Read grades in the logs of evaluation tools: Inspect, promptfoo and DeepEval.

A *sample* in such a log is a query and a document that were graded. It names them in fields that
the author of the evaluation fills (Inspect's ``metadata``, promptfoo's ``vars``, DeepEval's
``additionalMetadata``). It has a score by each *scorer*, a metric of the tool or a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ranktilt.data.formats.base import JudgmentFile
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.judgments.judgment_columns import judgments_of_columns
from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.responses.hit_fields import pick_path, pick_query, scalar_paths
from ranktilt.data.formats.responses.layouts import has_path
from ranktilt.data.formats.tables.cells import NumberColumn, json_ids
from ranktilt.data.formats.tables.column_names import QRELS_COLUMNS
from ranktilt.errors import DataError, UserError, error_in_file, join_words

_LETTER_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Grades of Inspect's letters for correct, incorrect, partly correct and no answer."""


@dataclass(frozen=True, kw_only=True)
class GradeLog:
    """The layout of one tool's log."""

    tool: str
    """Name of the tool."""
    samples: tuple[str, ...]
    """Paths of the list of samples, in the order of preference."""
    signs: tuple[str, ...]
    """Paths by which the tool is recognised: its samples have a value at one of them."""
    pairs: tuple[str, ...]
    """Paths of the objects in which a sample names its query and its document."""
    scores: str
    """Path of the scores: an object by scorer, or a list of records that name their scorer."""
    total: str = ""
    """Path of the overall score of a sample, if the tool has one."""

    def samples_in(self, values: Any) -> list[Any]:
        """Return the samples in a log: a list of them, or an object with one; empty if none."""
        if isinstance(values, list):
            return values
        for path in self.samples:
            samples = value_at(values, path)
            if isinstance(samples, list):
                return samples
        return []


LOGS = (
    GradeLog(
        tool="Inspect",
        samples=("samples",),
        signs=("scores", "epoch"),
        pairs=("metadata",),
        scores="scores",
    ),
    GradeLog(
        tool="promptfoo",
        samples=("results.results", "results"),
        signs=("vars", "testCase.vars"),
        pairs=("vars", "testCase.vars", "testCase.metadata", "metadata"),
        scores="namedScores",
        total="score",
    ),
    GradeLog(
        tool="DeepEval",
        samples=("testCases", "test_cases", "testRunData.testCases", "test_results"),
        signs=("metricsData", "metrics_data"),
        pairs=("additionalMetadata", "additional_metadata", "metadata"),
        scores="metricsData",
    ),
)
"""Logs that can be read."""


def log_of(values: Any) -> GradeLog | None:
    """Recognise the log of a tool in a JSON value, or in the values of JSON lines.

    None if the values are no log of a known tool.
    """
    for log in LOGS:
        samples = log.samples_in(values)
        if not samples or not all(isinstance(sample, Mapping) for sample in samples):
            continue
        if any(has_path(samples[0], sign) for sign in log.signs):
            return log
    return None


def read_log(
    file: DataFile, log: GradeLog, samples: Sequence[Any], lines: Sequence[int] = ()
) -> JudgmentFile:
    """Read the grades of a log's samples.

    `lines` has the line of each sample; it is empty if samples are not lines. `DataError` if
    samples do not name their query and document, or have scores by several scorers.
    """
    try:
        query_path, document_path = _pair_paths(file, log, samples)
        scorer = _scorer(file, log, samples)
        query_ids = json_ids([value_at(sample, query_path) for sample in samples], "query")
        document_ids = json_ids([value_at(sample, document_path) for sample in samples], "document")
        grades = NumberColumn.from_json([_grade(sample, log, scorer) for sample in samples])
        return judgments_of_columns(
            file.path,
            query=query_ids,
            document=document_ids,
            grade=grades,
            grade_name=f"score of {scorer}",
            lines=lines,
            read_as=f"log of {log.tool}: {query_path}, {document_path}, {scorer}",
        )
    except UserError as error:
        raise error_in_file(file.path, error) from error


def _pair_paths(file: DataFile, log: GradeLog, samples: Sequence[Any]) -> tuple[str, str]:
    """Return the paths of a sample's query and document: the user's choices, or known names."""
    query_path, document_path = file.columns.get("query", ""), file.columns.get("id", "")
    for parent in log.pairs:
        paths = scalar_paths([value_at(sample, parent) for sample in samples])
        query_field = pick_query(paths, QRELS_COLUMNS["query"])
        remaining_paths = [path for path in paths if path != query_field]
        document_field = pick_path(remaining_paths, QRELS_COLUMNS["document"])
        query_path = query_path or _nested_path(parent, query_field)
        document_path = document_path or _nested_path(parent, document_field)
    if query_path and document_path:
        return query_path, document_path
    parents = join_words([repr(path) for path in log.pairs[:2]], "or")
    missing = "query" if not query_path else "document"
    raise UserError(
        f"log of {log.tool}: no {missing} id in {parents} of its samples, so they are not "
        "graded pairs; name its field: FILE:query=metadata.query_id,id=metadata.doc_id"
    )


def _nested_path(parent: str, field: str) -> str:
    """Return the path of a field in an object; empty for no field."""
    return f"{parent}.{field}" if field else ""


def _scorer(file: DataFile, log: GradeLog, samples: Sequence[Any]) -> str:
    """Return the scorer whose scores are the grades: the user's choice, or the only one."""
    names = list(dict.fromkeys(chain.from_iterable(_scores(sample, log) for sample in samples)))
    choice = file.columns.get("grade")
    if choice is not None:
        is_total = choice == log.total
        if choice not in names and not is_total:
            raise UserError(f"no scores from {choice!r} (valid: {', '.join(names) or 'none'})")
        return choice
    if len(names) == 1:
        return names[0]
    if not names and log.total:
        return log.total
    if not names:
        raise UserError(f"log of {log.tool}: its samples have no scores")
    raise UserError(
        f"log of {log.tool}: scores from {join_words([repr(name) for name in names])}; choose "
        f"one: FILE:grade={names[0]}"
    )


def _scores(sample: Mapping[str, Any], log: GradeLog) -> dict[str, Any]:
    """Return a sample's scores by scorer."""
    # DeepEval spells this field in two ways.
    scores = value_at(sample, log.scores) or sample.get("metrics_data")
    if isinstance(scores, list):
        records = [score for score in scores if isinstance(score, Mapping)]
        return {str(score.get("name")): score.get("score") for score in records}
    if not isinstance(scores, Mapping):
        return {}
    return {
        str(name): score.get("value") if isinstance(score, Mapping) else score
        for name, score in scores.items()
    }


def _grade(sample: Mapping[str, Any], log: GradeLog, scorer: str) -> Any:
    """Return a sample's score by a scorer, with letters and truth values as numbers.

    `scorer` may be the path of the overall score too.
    """
    scores = _scores(sample, log)
    is_total = scorer == log.total and scorer not in scores
    grade = sample.get(log.total) if is_total else scores.get(scorer)
    if isinstance(grade, bool):
        return int(grade)
    return _LETTER_GRADES.get(grade, grade) if isinstance(grade, str) else grade


def require_single_model(file: DataFile, log: GradeLog, samples: Sequence[Any]) -> None:
    """Refuse a log of promptfoo in which several models graded the same pairs.

    A pair of a query and a document can have only one grade.
    """
    models = dict.fromkeys(
        str(value_at(sample, "provider.id") or value_at(sample, "provider") or "")
        for sample in samples
    )
    if log.tool == "promptfoo" and len(models) > 1:
        names = join_words([repr(name) for name in models])
        raise DataError(
            file.path,
            f"log of promptfoo: grades from {names}; save the results of each in a file of its own",
        )

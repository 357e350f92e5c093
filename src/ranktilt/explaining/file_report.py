"""Describe a file: its kind and contents, its uses, and commands to type next.

`describe_file` recognises the kind of a file (judgments, a run, labels, …) by its layout, and reads
it as that kind; `_DESCRIBERS` has a function for each kind. A *run* has the documents that a ranker
returned for each query, *labels* say which group a document is in, and *judgments* (qrels) which
documents answer a query. The sentences are in `reporting/sentences/checking/file_report.py`.
"""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import polars as pl

from ranktilt.auditing.result import Audit
from ranktilt.data.artifact import fields_for_file
from ranktilt.data.files import rereadable_file
from ranktilt.data.formats.base import JUDGMENTS, LABELS, QUERIES, RUN
from ranktilt.data.formats.citations.answer_file import read_answers
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.json_values import read_document
from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.data.formats.notation import pairs_of, split_notation
from ranktilt.data.formats.recognition import (
    DOCUMENTS,
    EVALUATIONS,
    RESULT,
    Recognition,
    recognise,
)
from ranktilt.data.formats.refusals import ANYTHING, refusal
from ranktilt.data.formats.responses.folder import response_files
from ranktilt.data.labels.group_names import group_name
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.labels.stated_sources import MOST_VALUES, columns_of_few_values
from ranktilt.data.loading.assemble import read_rows
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.texts import FileHasOtherReadings, FileNotReadable
from ranktilt.data.queries import read_queries
from ranktilt.data.runs.run import Run
from ranktilt.data.runs.tied_lists import tied_list_notes
from ranktilt.errors import DataError, DataWarning, UserError, counted

Use = Literal[
    "whose documents are on top",
    "whose relevant documents rank higher",
    "which twin wins",
    "which group is on top",
    "which source is favoured",
    "how far judges agree",
    "whether systems change places",
    "name queries",  # for responses that do not name their queries
    "query an engine",
    "decide by an audit",
    "report a result",
    "whom answers cite",
]
"""A question that a file helps to answer, or another use of it."""
Need = Literal[
    "labels or collection",
    "judgments",
    "run or judge",
    "run",
    "origins",
    "run or engine",
    "queries and judgments",
    "sources",
    "second evaluations",
]
"""Another input with which a file can be used in more ways."""
_KIND_OF_KEY = {
    "grade": JUDGMENTS,
    "several": JUDGMENTS,
    "score": RUN,
    "rank": RUN,
    "hits": RUN,
    "keep": RUN,
}
"""Kind of a file whose columns a user names as ``FILE:key=column``, by a key that only it has."""
_MOST_LISTED = 6
"""Maximum number of columns, grades, groups or names in a list."""
_MOST_GRADES = 20
"""Maximum number of different grades; a column with more different numbers holds scores."""


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """The kind of a file, and what you can do with it."""

    path: str
    """The file, as the user named it."""
    kind: str
    """Kind of file that it is read as."""
    format: str
    """Layout, with the columns that were understood."""
    contents: Mapping[str, str] = field(default_factory=dict)
    """Counts in print, by the name of what is counted."""
    first: str = ""
    """The first record of the file."""
    uses: tuple[Use, ...] = ()
    """Questions that the file helps to answer, some together with other files."""
    needs: tuple[Need, ...] = ()
    """Other inputs with which the file can be used in more ways."""
    commands: tuple[str, ...] = ()
    """Commands to type next."""
    notes: tuple[Note, ...] = ()
    """Remarks, such as why the file cannot be read yet."""
    is_readable: bool = True
    """Whether the file can be read as this kind without a change."""

    def to_json(self) -> bytes:
        """Return the report as JSON."""
        notes = [fields_for_file(note) for note in self.notes]
        content = {**fields_for_file(self), "notes": notes}
        return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)


def describe_file(text: str | Path) -> FileReport:
    """Describe a file.

    Parameters
    ----------
    text : str or Path
        Path of a file, or of a folder with an engine's responses. ``FILE:query=qid,id=url`` names
        the columns of a table.

    Raises
    ------
    DataError
        If no kind of file has this layout; the message says what the file is instead.
    """
    path, columns = Path(text), dict[str, str]()
    notation = split_notation(text)
    if notation is not None:
        path, columns = Path(notation[0]), dict(notation[1])
    if path.is_dir():
        return _run_report(str(text), Recognition(format=_folder_format(path), kinds=(RUN,)))
    with rereadable_file(path) as file:
        data_file = DataFile(path=file, columns=columns)
        recognition = recognise(data_file)
        if columns:
            recognition = replace(recognition, kinds=(_named_kind(columns),))
        # Records of answers hold the text of a query, so they may look like queries.
        if data_file.has_json and not columns and set(recognition.kinds) <= {QUERIES}:
            answers = _answer_report(str(text), file)
            if answers is not None:
                return answers
        if not recognition.kinds:
            raise refusal(data_file, ANYTHING)
        column_names = pairs_of(text)  # "query=qid,id=url"
        report = _report(f"{file}:{column_names}" if column_names else str(file), recognition)
        return _with_user_path(report, copy=str(file), path=str(path), text=str(text))


def _folder_format(folder: Path) -> str:
    """Describe a folder of an engine's responses."""
    return f"a folder of {counted(len(response_files(folder)), 'response', 'responses')}"


def _named_kind(columns: Mapping[str, str]) -> str:
    """Return the kind of a file whose columns are named, by the keys that name them."""
    for key, kind in _KIND_OF_KEY.items():
        if key in columns:
            return kind
    return RUN if "query" in columns else LABELS


def _with_user_path(report: FileReport, *, copy: str, path: str, text: str) -> FileReport:
    """Replace the path of a copy by the user's path, if a copy was read.

    A pipe or standard input can be read only once. So `rereadable_file` copies it to a temporary
    file, which is gone when the user reads the report.

    Parameters
    ----------
    report : FileReport
        The report, with the path of the copy.
    copy : str
        Path of the copy, or of the file itself if there is no copy.
    path : str
        The user's path.
    text : str
        The user's path with the names of columns, as it was typed.
    """
    if copy == path:
        return replace(report, path=text)
    return replace(
        report,
        path=text,
        commands=tuple(line.replace(copy, path) for line in report.commands),
        notes=tuple(_note_with_user_path(note, copy=copy, path=path) for note in report.notes),
    )


def _note_with_user_path(note: Note, *, copy: str, path: str) -> Note:
    """Put the user's path into a note, if it is of the kind that quotes a path."""
    if isinstance(note, FileNotReadable):
        return replace(note, error=note.error.replace(copy, path))
    return note


def _report(text: str, recognition: Recognition) -> FileReport:
    """Read a file as each of the kinds that it may be, and return the first report that worked.

    Other reports that worked are named in a note. If none worked, the first report says why.
    """
    kinds = recognition.kinds
    if RUN in kinds and JUDGMENTS in kinds and _holds_scores(text):
        kinds = (RUN,)
    reports = [_DESCRIBERS[kind](text, recognition) for kind in kinds]
    readable = [report for report in reports if report.is_readable]
    if len(readable) < 2:
        return readable[0] if readable else reports[0]
    report, *alternatives = readable
    note = FileHasOtherReadings(kinds=tuple(alternative.kind for alternative in alternatives))
    commands = chain.from_iterable(alternative.commands[:1] for alternative in alternatives)
    return replace(report, notes=(*report.notes, note), commands=(*report.commands, *commands))


def _holds_scores(text: str) -> bool:
    """Return whether a table of queries, documents and numbers has too many numbers for grades."""
    try:
        return read_qrels(text)["grade"].n_unique() > _MOST_GRADES
    except DataError:
        return False


def _unreadable_report(
    text: str, kind: str, recognition: Recognition, error: UserError
) -> FileReport:
    """Return the report on a file that was recognised, but cannot be read without a change."""
    return FileReport(
        path=text,
        kind=kind,
        format=_layout(recognition),
        first=recognition.first,
        notes=(FileNotReadable(error=str(error)),),
        is_readable=False,
    )


def _layout(recognition: Recognition) -> str:
    """Return the layout of a file, with the first of its columns."""
    columns = ", ".join(recognition.columns[:_MOST_LISTED])
    return f"{recognition.format}: {columns}" if columns else recognition.format


def _run_report(text: str, recognition: Recognition) -> FileReport:
    """Describe a run."""
    try:
        run = Run.load(text, repeats=True)
    except DataError as error:
        return _unreadable_report(text, RUN, recognition, error)
    frame = run.frame()
    lengths = frame.group_by("query_id").len()["len"]
    # Readers of tables and responses note how they understood each column, which says more.
    layout = str(run.spec.get("read_as", "")) or _layout(recognition)
    median_length = float(np.median(lengths.to_numpy())) if len(lengths) else 0.0
    contents = {
        "queries": f"{len(run.queries):,}",
        "documents": f"{len(run.ids):,}",
        "results": f"{frame.height:,}",
        "results per query": f"{median_length:g} (median)",
        "scores": "yes" if run.scored else "no, only their order",
    }
    if run.repeats:
        contents["repeats"] = f"{len(run.repeats) + 1:,}, counted in the first"
    uses: list[Use] = ["whose documents are on top", "whose relevant documents rank higher"]
    if run.scored:
        uses.append("which twin wins")
    return FileReport(
        path=text,
        kind=RUN,
        format=layout,
        contents=contents,
        first=recognition.first,
        uses=tuple(uses),
        needs=("labels or collection", "judgments"),
        commands=(
            _command(["audit", "--run", text, "--groups", "LABELS", "--qrels", "QRELS"]),
            _command(["audit", "DIR", "--run", text]),
        ),
        notes=tuple(tied_list_notes(run)),
    )


def _judgment_report(text: str, recognition: Recognition) -> FileReport:
    """Describe judgments."""
    try:
        judgments = read_qrels(text)
    except DataError as error:
        return _unreadable_report(text, JUDGMENTS, recognition, error)
    grade_counts = judgments["grade"].value_counts().sort("grade").rows()
    grades = ", ".join(f"{grade:g}: {count:,}" for grade, count in grade_counts)
    if len(grade_counts) > _MOST_LISTED:
        lowest, highest = grade_counts[0][0], grade_counts[-1][0]
        grades = f"{len(grade_counts):,} from {lowest:g} to {highest:g}"
    contents = {
        "queries": f"{judgments['query_id'].n_unique():,}",
        "documents": f"{judgments['doc_id'].n_unique():,}",
        "judgments": f"{judgments.height:,}",
        "grades": grades,
    }
    commands = (
        _command(["audit", "--run", "RUN", "--groups", "LABELS", "--qrels", text]),
        _command(["judge", "--human", text, "--judge", "JUDGE", "--runs", "RUNS"]),
    )
    return FileReport(
        path=text,
        kind=JUDGMENTS,
        format=_layout(recognition),
        contents=contents,
        first=recognition.first,
        uses=("whose relevant documents rank higher", "how far judges agree"),
        needs=("run or judge",),
        commands=commands,
    )


def _label_report(text: str, recognition: Recognition) -> FileReport:
    """Describe labels of documents: the column ``source``, or else the first with few values."""
    by, labels = "source", None
    try:
        labels = read_labels(text)
    except UserError as error:
        for name in recognition.columns:
            values = _few_values(text, name)
            if values is not None:
                by, labels = name, values
                break
        if labels is None:
            return _unreadable_report(text, LABELS, recognition, error)
    counts = labels[by].drop_nulls().cast(pl.String).value_counts(sort=True).rows()
    groups = ", ".join(
        f"{group_name(by, name)}: {count:,}" for name, count in counts[:_MOST_LISTED]
    )
    by_words = [] if by == "source" else ["--by", by]
    has_twins = "origin" in labels.columns
    needs: list[Need] = ["run", "judgments"]
    if not has_twins:
        needs.append("origins")
    return FileReport(
        path=text,
        kind=LABELS,
        format=_layout(recognition),
        contents={"documents": f"{labels.height:,}", f"groups ({by})": groups},
        first=recognition.first,
        uses=("which group is on top",),
        needs=tuple(needs),
        commands=(_command(["audit", "--run", "RUN", "--groups", text, *by_words]),),
    )


def _command(words: Sequence[str]) -> str:
    """Return a command of ranktilt as you type it in a shell."""
    return shlex.join(["ranktilt", *words])


def _few_values(text: str, name: str) -> pl.DataFrame | None:
    """Return the labels of a column if it has few different values, else None."""
    try:
        labels = read_labels(text, by=name)
    except UserError:
        return None
    return labels if 2 <= labels[name].drop_nulls().n_unique() <= MOST_VALUES else None


def _query_report(text: str, recognition: Recognition) -> FileReport:
    """Describe queries."""
    try:
        queries = read_queries(text).queries
    except DataError as error:
        return _unreadable_report(text, QUERIES, recognition, error)
    return FileReport(
        path=text,
        kind=QUERIES,
        format=_layout(recognition),
        contents={"queries": f"{queries.height:,}"},
        first=recognition.first,
        uses=("name queries", "query an engine"),
        needs=("run or engine",),
        commands=(
            _command(["audit", "--run", "RESPONSES", "--queries", text, "--groups", "LABELS"]),
        ),
    )


def _document_report(text: str, recognition: Recognition) -> FileReport:
    """Describe documents."""
    try:
        documents = read_rows(Path(text))
    except DataError as error:
        return _unreadable_report(text, DOCUMENTS, recognition, error)
    folder = str(Path(text).parent)
    possible_groups = columns_of_few_values(documents)
    has_source = "source" in documents.columns
    needs: list[Need] = ["queries and judgments"]
    commands = [_command(["check", folder]), _command(["audit", folder, "-r", "bm25"])]
    if not has_source:
        needs.insert(0, "sources")
        commands = [
            _command(["audit", folder, "-r", "bm25", "--by", name]) for name in possible_groups[:1]
        ]
        commands.append(_command(["check", folder]))
    contents = {"documents": f"{documents.height:,}"}
    if has_source:
        counts = documents["source"].drop_nulls().cast(pl.String).value_counts(sort=True).rows()
        contents["sources"] = ", ".join(
            f"{name}: {count:,}" for name, count in counts[:_MOST_LISTED]
        )
    elif possible_groups:
        contents["columns that could be the source"] = ", ".join(possible_groups)
    return FileReport(
        path=text,
        kind=DOCUMENTS,
        format=_layout(recognition),
        contents=contents,
        first=recognition.first,
        uses=("which source is favoured",),
        needs=tuple(needs),
        commands=tuple(commands),
    )


def _evaluation_report(text: str, recognition: Recognition) -> FileReport:
    """Describe evaluations of systems."""
    return FileReport(
        path=text,
        kind=EVALUATIONS,
        format=_layout(recognition),
        first=recognition.first,
        uses=("whether systems change places",),
        needs=("second evaluations",),
        commands=(_command(["judge", "--scores", "HUMAN", "--scores", text]),),
    )


def _answer_report(text: str, file: Path) -> FileReport | None:
    """Describe answers with citations; None if the file holds none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            answers = read_answers(file)
        except UserError:
            return None
    citations = int(answers.pages["citation_rank"].is_not_null().sum())
    if not citations:
        return None
    return FileReport(
        path=text,
        kind="answers with citations",
        format=str(answers.spec.get("read_as", "")),
        contents={
            "answers": f"{answers.answers.height:,}",
            "citations": f"{citations:,}",
        },
        uses=("whom answers cite",),
        commands=(_command(["cite", text, "--groups", "PAGES.csv:id=url,source=COLUMN"]),),
    )


def _result_report(text: str, recognition: Recognition) -> FileReport:
    """Describe a result that RankTilt saved."""
    content = read_document(Path(text))
    if content.get("format") != Audit.header.format:
        return FileReport(
            path=text,
            kind=RESULT,
            format=str(content.get("format")),
            uses=("report a result",),
            commands=(_command(["report", text, "-o", "page.html"]),),
        )
    audit = Audit.load(text)
    contents = {
        "rankers": ", ".join(audit.runs[:_MOST_LISTED]),
        "measures": ", ".join(map(repr, (audit.measures or (audit.primary,))[:_MOST_LISTED])),
        "groups": ", ".join(audit.groups[1:]),  # the first is "all"
        "queries": f"{len(audit.queries):,}",
    }
    # `explain` and `mitigate` read a single ranking of each query, and no repeated ones.
    has_single_rankings = any(audit.repeat_count(run) == 1 for run in audit.runs)
    commands = [["report", text, "-o", "page.html"]]
    if has_single_rankings:
        commands += [["explain", text], ["mitigate", text]]
    commands += [["gate", text, "--max-tilt", "5"], ["compare", text, "OTHER.json"]]
    return FileReport(
        path=text,
        kind="an audit",
        format=f"{Audit.header.format}, version {Audit.header.version}",
        contents=contents,
        uses=("decide by an audit",),
        commands=tuple(map(_command, commands)),
    )


_DESCRIBERS: dict[str, Callable[[str, Recognition], FileReport]] = {
    RUN: _run_report,
    JUDGMENTS: _judgment_report,
    LABELS: _label_report,
    QUERIES: _query_report,
    DOCUMENTS: _document_report,
    EVALUATIONS: _evaluation_report,
    RESULT: _result_report,
}
"""Function that describes a file, by its kind."""


def can_describe(text: Any) -> bool:
    """Return whether `describe_file` can describe a path; otherwise it names a collection.

    It can describe files, standard input (``-``), paths with named columns, and folders with JSON
    responses and no corpus.
    """
    notation = split_notation(text)
    path = Path(text if notation is None else notation[0])
    if str(path) == "-" or notation is not None or os.path.isfile(path) or path.is_fifo():
        return True
    return path.is_dir() and not any(path.glob("corpus*")) and any(path.glob("*.json*"))

"""A file in words: the questions that you can ask of it, and the inputs that you lack for more.

A file may hold a run (ranked lists), judgments (which documents are relevant), labels (which group
a document belongs to), a judge's grades, a collection or a result.
"""

from __future__ import annotations

from ranktilt.data.formats.base import JUDGMENTS
from ranktilt.explaining.file_report import FileReport, Need, Use

_USES: dict[Use, str] = {
    "whose documents are on top": (
        "With labels for its documents, you can ask whose documents are on top "
        "(Share@10, exposure)."
    ),
    "whose relevant documents rank higher": (
        "With judgments as well, you can ask whose relevant documents rank higher (Relative Δ)."
    ),
    "which twin wins": (
        "With twins (a column origin in the labels), you can ask which of two versions wins."
    ),
    "which group is on top": "With a run of these documents, you can ask which group is on top.",
    "which source is favoured": (
        "In a folder with queries and judgments, you can ask which source a ranker favours."
    ),
    "how far judges agree": (
        "With another judge's grades, you can ask how far the two agree and whom each favours."
    ),
    "whether systems change places": (
        "With values of the same systems from another judge, you can ask whether they change "
        "places."
    ),
    "name queries": "They name the queries for responses that do not.",
    "query an engine": "You can send them to a live engine.",
    "decide by an audit": (
        "You can turn it into a page, ask why, ask for a remedy, gate it with a limit, or "
        "compare it with another audit."
    ),
    "report a result": "It is a result already.",
    "whom answers cite": "With labels for the pages, you can ask whom the answers cite.",
}
"""Question that you can ask of a file, by its use."""
_USE_OF_JUDGMENTS = "With runs and labels, you can ask whose relevant documents rank higher."
"""The question of ``whose relevant documents rank higher`` for a file of judgments."""
_NEEDS: dict[Need, str] = {
    "labels or collection": (
        "labels: which group each document belongs to (--groups LABELS), or the collection (DIR)"
    ),
    "judgments": "judgments (--qrels QRELS)",
    "run or judge": (
        "a run (--run RUN) with labels (--groups LABELS), or a judge's grades (--judge JUDGE)"
    ),
    "run": "a run of these documents (--run RUN)",
    "origins": "a column origin, if documents are versions of each other",
    "run or engine": (
        "a run (--run RUN) or an engine (-r engine:MODULE:FUNCTION), and labels (--groups LABELS)"
    ),
    "queries and judgments": "queries.jsonl and qrels/test.tsv in the same folder",
    "sources": "a field source: who wrote each document",
    "second evaluations": "a second file of values: the human one first, then each judge's",
}
"""Inputs that you lack, by the need."""


def use_sentences(report: FileReport) -> list[str]:
    """Say which questions you can ask of a file."""
    return [_use(report, use) for use in report.uses]


def _use(report: FileReport, use: Use) -> str:
    """Say which question you can ask of a file."""
    # Judgments serve the same question as a run does, but need other files with them.
    if report.kind == JUDGMENTS and use == "whose relevant documents rank higher":
        return _USE_OF_JUDGMENTS
    return _USES[use]


def need_words(report: FileReport) -> list[str]:
    """Name the inputs that you lack for more questions."""
    return [_NEEDS[need] for need in report.needs]


def derived_words(report: FileReport) -> dict[str, list[str]]:
    """Return the answers and what is missing as sentences, which JSON holds besides the fields."""
    return {"answers": use_sentences(report), "missing": need_words(report)}

"""Let a language model grade pairs of query and document, and keep the grades as judgments.

The model, with its prompt, is called the *judge*. A *request* asks it for the grade of one pair. A
pair may be asked about several times (*repeats*), so that grades can be compared. An answer from
which no grade can be read may be asked for again: these tries of one request are its *attempts*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import sidecar, write_files
from ranktilt.data.formats.judgments.qrels import to_tsv
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.generation.batched_requests import (
    FLAGGED,
    UNANSWERED,
    Rejected,
    RoundConfig,
    RoundOutcome,
    ask_until_accepted,
)
from ranktilt.generation.generated import spec_of
from ranktilt.judging.grading.inputs import GRADE_PROMPTS, GradingInputs, prepare_grades
from ranktilt.judging.grading.parsing import check_grade, parse_confidence
from ranktilt.judging.grading.settings import Grading
from ranktilt.llm.base import LLM
from ranktilt.llm.journal import Journal, journal_of

MEDIAN_RULE = "median of the readable grades; the lower of two middle ones"
"""Description of the rule that makes one grade of several; saved with the grades."""
_ANSWER_COLUMNS = ("attempt", "grade", "answer", "finish", "model", "revision", "time", "fresh")
"""Columns of `Grades.answers` after those of the pair."""


class GradeCounts(NamedTuple):
    """Numbers of requests by outcome."""

    pairs: int
    """Pairs to grade."""
    graded: int
    """Pairs with a grade. Other pairs are in no judgments, and never count as 0."""
    requests: int
    """Requests: one for each pair and repeat."""
    readable: int
    """Requests whose answer has a grade of the scale."""
    rejected: Mapping[str, int]
    """Requests without a grade, by reason.

    The reasons are ``unreadable`` (no grade in the answer), ``filtered`` (a content filter held the
    answer back), ``refused`` (the server refused the request), ``too long``, ``unanswered``, and
    ``empty`` (a text or query without words, which is not sent).
    """
    without_text: int
    """Pairs of the runs or judgments whose query or document the collection does not hold."""
    fresh: int
    """Answers that this call asked for; others were in the journal."""
    prompt_tokens: int
    """Tokens of the prompts."""
    completion_tokens: int
    """Tokens of the answers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Grades:
    """Judgments of a language model."""

    judge: str
    """Name of the judge."""
    qrels: pl.DataFrame
    """``query_id``, ``doc_id`` and ``grade`` (Int32), as `Collection.qrels` holds them.

    Also ``confidence``, if any answer says how sure the judge is: the mean over a pair's answers.
    """
    pairs: pl.DataFrame
    """Columns ``query_id`` and ``doc_id`` of every pair to grade."""
    ratings: npt.NDArray[np.float64]
    """All grades, of shape (pairs, repeats); NaN for none."""
    answers: pl.DataFrame
    """All answers as they came, also those without a grade.

    ``query_id`` and ``doc_id`` are the pair. ``repeat`` (from 1) and ``attempt`` number its
    requests and their tries, and ``grade`` is null if the answer is unreadable.
    """
    counts: GradeCounts
    """Numbers of requests by outcome."""
    messages: tuple[str, ...] = ()
    """Messages of the server in place of answers, without repetitions."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How the grades were made; plain JSON values."""

    @property
    def unanswered(self) -> int:
        """Requests that the model did not answer; the same call again asks only these."""
        return self.counts.rejected.get(UNANSWERED, 0)

    @property
    def exact_agreement(self) -> float:
        """Share of pairs whose readable repeats all have the same grade; NaN without repeats.

        Only pairs with at least two readable grades count.
        """
        several = self.ratings[(~np.isnan(self.ratings)).sum(axis=1) > 1]
        if not len(several):
            return float("nan")
        return float((np.nanmax(several, axis=1) == np.nanmin(several, axis=1)).mean())


def grade(
    collection: Collection,
    llm: LLM,
    grading: Grading | None = None,
    *,
    runs: Iterable[Run] = (),
    journal: Journal | None = None,
) -> Grades:
    """Grade pairs of query and document with a language model.

    The pairs are the top ``grading.pool`` of each of the `runs`, or without runs those that the
    collection judges; the model does not see these grades. Grades are read strictly; unreadable
    answers are counted and never taken for 0. With several repeats the median counts, the lower of
    two middle ones. Each answer goes into the journal first, so you never pay twice for an
    interrupted call.

    The default prompt and scale are those of UMBRELA: Upadhyay et al., UMbrela is the (Open-Source
    Reproduction of the) Bing RELevance Assessor, 2024.

    Parameters
    ----------
    collection : Collection
        Queries and documents, and the judgments whose pairs are graded if there are no runs.
    llm : LLM
        The model that grades.
    grading : Grading, optional
        How it is asked: prompt, repeats, temperature, ….
    runs : iterable of Run, optional
        Runs whose top documents are graded.
    journal : Journal, optional
        Where answers are kept, and earlier ones are taken from; by default the model's own journal
        in the cache.

    Returns
    -------
    Grades
        The grades as judgments, with all answers.

    Raises
    ------
    UserError
        If no pair has a text to grade, or the model cannot be asked; answers until then are kept.
    """
    runs = list(runs)
    inputs = prepare_grades(collection, llm, grading, runs=runs)
    llm.check()
    # Generation may write texts under several names, each with its sampling; a judge has one.
    ((judge, sampling),) = inputs.sources.items()
    # On leaving, the file of the journal is closed; a caller's journal opens it again on use.
    with journal_of(llm) if journal is None else journal as open_journal:
        config = RoundConfig(
            llm=llm,
            journal=open_journal,
            sampling=sampling,
            template=inputs.template,
            check=check_grade,
            attempts=inputs.settings.attempts,
            truncate=inputs.settings.truncate,
            part="grade",  # of a document, generation asks for the text or the title
            label=f"grading as {judge}",
        )
        outcome = ask_until_accepted(config, inputs.tasks)
    rejected = sorted([*inputs.rejected, *outcome.rejected], key=attrgetter("row"))
    ratings = np.full((inputs.pairs.height, inputs.settings.repeats), np.nan)
    # The row of a request is its index in the flat array: pair n has the rows from n * repeats on.
    # `check_grade` has replaced the text of an accepted answer by its grade.
    for row, grade_text in outcome.accepted.items():
        ratings.flat[row] = int(grade_text)
    answers = _answers(inputs, outcome)
    return Grades(
        judge=judge,
        qrels=_with_confidence(median_qrels(inputs.pairs, ratings), answers),
        pairs=inputs.pairs,
        ratings=ratings,
        answers=answers,
        counts=_counts(inputs, ratings, outcome, rejected),
        messages=tuple(dict.fromkeys(request.message for request in rejected if request.message)),
        spec=_spec(collection, llm, inputs, runs),
    )


def median_qrels(pairs: pl.DataFrame, ratings: npt.NDArray[np.float64]) -> pl.DataFrame:
    """Make judgments of the median grade of each pair, the lower of two middle ones.

    `ratings` has a row for each of the `pairs` and a column for each repeat, with NaN for no grade.
    Pairs without any grade are left out.
    """
    grade_counts = (~np.isnan(ratings)).sum(axis=1)
    is_graded = grade_counts > 0
    ordered = np.sort(ratings[is_graded], axis=1)  # puts NaN last
    middle = (grade_counts[is_graded, None] - 1) // 2
    median = np.take_along_axis(ordered, middle, axis=1)[:, 0]
    return pairs.filter(pl.Series(is_graded)).with_columns(grade=pl.Series(median).cast(pl.Int32))


def confidences(answers: pl.DataFrame) -> pl.DataFrame:
    """Return the answers with a grade that also say how sure the judge is.

    The column ``confidence`` is a number from 0 to 1, or NaN if the answer has one that cannot be
    read. Answers that say nothing about it are left out.
    """
    readable = answers.drop_nulls("grade")
    parsed = [parse_confidence(answer) for answer in readable["answer"]]
    column = pl.Series("confidence", parsed, dtype=pl.Float64)
    return readable.with_columns(column).drop_nulls("confidence")


def _with_confidence(qrels: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Add the mean confidence of each pair's answers; no column if no answer has one."""
    with_confidence = confidences(answers).drop_nans("confidence")
    if not with_confidence.height:
        return qrels
    means = with_confidence.group_by("query_id", "doc_id").agg(pl.col("confidence").mean())
    return qrels.join(means, on=["query_id", "doc_id"], how="left", maintain_order="left")


def save_grades(grades: Grades, path: str | Path) -> Path:
    """Write the judgments in BEIR's format, and ``<path>.json`` with their spec and counts.

    Either both files are written or neither. They are compressed if `path` ends in ``.gz``.
    `UserError` if no pair has a grade.
    """
    path = Path(path)
    if not grades.qrels.height:
        raise UserError(
            f"{path}: not written, because no pair has a grade ({_reasons(grades.counts)})"
        )
    description = {
        **grades.spec,
        "counts": grades.counts._asdict(),
        "exact_agreement": grades.exact_agreement,
    }
    write_files(
        {
            path: to_tsv(grades.qrels),
            sidecar(path): orjson.dumps(description, option=orjson.OPT_INDENT_2) + b"\n",
        }
    )
    return path


def _reasons(counts: GradeCounts) -> str:
    """Count the requests without a grade by reason, for an error message."""
    reasons = [f"{number:,} {reason}" for reason, number in counts.rejected.items()]
    return ", ".join(reasons) or "nothing was asked"


def _answers(inputs: GradingInputs, outcome: RoundOutcome) -> pl.DataFrame:
    """Return the table of all answers."""
    # Each round of requests adds a table of records; there is at least one round.
    records, repeats = pl.concat(outcome.records), inputs.settings.repeats
    # A row is a request: pair n has the rows from n * repeats on.
    pairs = inputs.pairs[(records["row"] // repeats).to_list()]
    # The text of an accepted answer is its grade; others are no numbers and become null.
    grades = records["text"].cast(pl.Int32, strict=False).alias("grade")
    answers = records.with_columns(
        pairs["query_id"], pairs["doc_id"], grades, repeat=pl.col("row") % repeats + 1
    )
    return answers.select("query_id", "doc_id", "repeat", *_ANSWER_COLUMNS)


def _counts(
    inputs: GradingInputs,
    ratings: npt.NDArray[np.float64],
    outcome: RoundOutcome,
    rejected: Sequence[Rejected],
) -> GradeCounts:
    """Count requests by outcome; `rejected` also has those that were not sent."""
    records = pl.concat(outcome.records)
    return GradeCounts(
        pairs=len(ratings),
        graded=int((~np.isnan(ratings)).any(axis=1).sum()),
        requests=ratings.size,
        readable=len(outcome.accepted),
        rejected=dict(sorted(Counter(map(_reason, rejected)).items())),
        without_text=inputs.without_text,
        fresh=int(records["fresh"].sum()),
        prompt_tokens=int(records["prompt_tokens"].sum()),
        completion_tokens=int(records["completion_tokens"].sum()),
    )


def _reason(rejected: Rejected) -> str:
    """Return the reason why a request has no grade."""
    # `check_grade` gives an answer at most one flag.
    return rejected.flags[0] if rejected.reason == FLAGGED else rejected.reason


def _spec(
    collection: Collection, llm: LLM, inputs: GradingInputs, runs: list[Run]
) -> dict[str, Any]:
    """Return how the grades were made: model, prompt, pairs and options."""
    settings, spec = inputs.settings, spec_of(llm, inputs, collection)
    prompt_origin = GRADE_PROMPTS.get(str(settings.prompt), "a file of the user's")
    return {
        **spec,
        "prompt": {**spec["prompt"], "origin": prompt_origin},
        "pool": settings.pool if runs else None,
        "runs": [run.name for run in runs],
        "repeats": settings.repeats,
        "median": MEDIAN_RULE if settings.repeats > 1 else None,
        "text": settings.text,  # part of a document that the judge reads
        "truncate": settings.truncate,
    }

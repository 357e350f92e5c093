"""Judgments of versions: those of the original, and where a version says something else, those of a language model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.experiments.twins.factors import MEANING, Factor, is_false
from ranktilt.judging.grade_parsing import GRADES
from ranktilt.judging.grades import read_grades
from ranktilt.judging.grading import Grades, grade
from ranktilt.judging.grading_plan import grade_template
from ranktilt.judging.grading_settings import Grading
from ranktilt.llm.base import LLM

_PAIR = ["query_id", "doc_id"]


def carried(qrels: pl.DataFrame, docs: pl.DataFrame) -> pl.DataFrame:
    """Give each version the judgments of its origin, but for those whose facts were changed."""
    return _of_origins(qrels, docs.filter(~is_false(docs)))


def _of_origins(qrels: pl.DataFrame, docs: pl.DataFrame) -> pl.DataFrame:
    found = qrels.join(
        docs.select("origin", version="id"),
        left_on="doc_id",
        right_on="origin",
        maintain_order="left",
    )
    return found.select("query_id", "version", "grade").rename({"version": "doc_id"})


def how_graded(
    factors: Iterable[Factor], qrels: pl.DataFrame, prompt: str | Path, seed: int
) -> Grading:
    """Ask as ``ranktilt judge`` does, so that the two share their answers.

    Refuses, before anything is paid for, a judge where every version keeps the judgments of its
    original, grades that are of no scale, and a prompt that is none.
    """
    if MEANING not in (one.name for one in factors):
        raise UserError(
            f"a judge (--judge) grades versions whose facts are changed: name the factor {MEANING!r}, too"
        )
    scale_of(qrels)
    grade_template(prompt)
    return Grading(prompt=prompt, seed=seed)


def to_grade(made: Collection, given: Collection) -> Collection:
    """Return the false versions, under the grades that their originals have: these pairs are to be graded.

    A version whose text another one of its document has, too, which is not false, is none of them.
    """
    false = is_false(made.docs)
    others = made.docs.filter(~false)
    changed = made.docs.filter(false).join(
        others, on=["origin", "title", "text"], how="anti", maintain_order="left"
    )
    qrels = _of_origins(given.qrels, changed)
    if not qrels.height:
        raise UserError(
            "nothing to judge: no version whose facts were changed has an original with judgments"
        )
    return Collection(changed, given.queries, qrels, given.spec)


def scale_of(qrels: pl.DataFrame) -> tuple[int, ...]:
    """What each grade of a judge is on a collection's scale, whose highest grade is as good as the judge's.

    A grade between is rounded: with two grades a judge's 2 is relevant and its 1 is not, as TREC
    reads that scale. `DataError` where grades are no whole numbers from 0.
    """
    top = read_grades(qrels, None, "judgments of the collection")[0]["grade"].max()
    highest = max(int(top or 0), 1)  # type: ignore[arg-type]
    return tuple(round(one * highest / GRADES[-1]) for one in GRADES)


def judged_anew(
    made: Collection, given: Collection, judge: LLM, how: Grading
) -> tuple[Collection, Grades]:
    """Ask a model for the grade of each false version whose original is judged; the design says what became of them.

    One whose text is not changed says what it said, and keeps the judgments: a judge's own
    strictness is no effect.
    """
    scale, asked = scale_of(given.qrels), to_grade(made, given)
    grades = grade(asked, judge, how)
    column = pl.col("grade").replace_strict(
        dict(enumerate(scale)), return_dtype=made.qrels["grade"].dtype
    )
    qrels = grades.qrels.with_columns(column)
    same = made.docs.filter(is_false(made.docs)).join(
        asked.docs, on="id", how="anti", maintain_order="left"
    )
    unchanged = _of_origins(given.qrels, same)
    both = qrels.join(asked.qrels, on=_PAIR, suffix="_first")
    design = {
        **made.spec["design"],
        "judgments": f"carried over from the original; where {MEANING} are changed those of {grades.judge}",
        "judged": {
            "judge": grades.judge,
            "model": judge.name,
            "prompt": grades.spec["prompt"]["name"],
            "scale": list(scale),
            "pairs": grades.counts.pairs,
            "graded": grades.counts.graded,
            "unchanged": unchanged.height,
            "lower": both.filter(pl.col("grade") < pl.col("grade_first")).height,
            "higher": both.filter(pl.col("grade") > pl.col("grade_first")).height,
        },
    }
    every = pl.concat([made.qrels, unchanged, qrels])
    return replace(made, qrels=every, spec={**made.spec, "design": design}), grades

"""Let a language model grade versions whose facts were changed.

A *designed collection* has several versions of each document, which differ in *factors*: length,
tone, facts, …. The document that a version was made from is its *original*. A version usually
keeps the judgments of its original; but one whose facts were changed may no longer be relevant, so
that a *judge*, a language model, grades it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.generation.estimate import estimate
from ranktilt.generation.versions.design import FACTS, has_changed_facts
from ranktilt.generation.versions.factors import Factor
from ranktilt.generation.versions.judgments import judgments_of_origins
from ranktilt.generation.versions.make import DesignedVersions
from ranktilt.generation.versions.options import Crossing
from ranktilt.generation.versions.prices import PromptPrice
from ranktilt.generation.versions.writer import VersionWriter
from ranktilt.judging.grades import read_grades
from ranktilt.judging.grading.grading import Grades, grade
from ranktilt.judging.grading.inputs import grade_template, prepare_grades
from ranktilt.judging.grading.parsing import GRADES
from ranktilt.judging.grading.settings import Grading
from ranktilt.llm.base import LLM


@dataclass(frozen=True, eq=False, kw_only=True)
class GradedVersions:
    """A designed collection whose judgments include a judge's, for versions with changed facts."""

    versions: DesignedVersions
    """The collection."""
    grades: Grades
    """Grades of the judge; the same call again asks for those that were not answered."""


def grade_versions(
    versions: DesignedVersions, judge: LLM, grading: Grading | None = None
) -> GradedVersions:
    """Ask a model for the grade of each version with changed facts whose original is judged.

    A version without changed facts keeps the judgments of its original, so that a judge's own
    strictness is not taken for an effect. The judge is asked in the same way as by ``ranktilt
    judge``, so that an answer to either serves both.

    Parameters
    ----------
    versions : DesignedVersions
        The result of `versions`, with a factor ``facts``.
    judge : LLM
        The model that grades: ``ranktilt.llm.base.llm("openai:NAME")``.
    grading : Grading, optional
        How it is asked: prompt, temperature, ….

    Returns
    -------
    GradedVersions
        `versions` with the judge's grades among its judgments, on the collection's scale; its
        design says under ``judged`` what became of them.

    Raises
    ------
    UserError
        If no version has changed facts, or there is nothing to judge.
    """
    designed, originals = versions.collection, versions.originals
    design = designed.spec["design"]
    grading = grading or Grading()
    require_gradable(design["factors"], originals.qrels, grading)
    scale = scale_of(originals.qrels)
    to_grade = versions_to_grade(designed, originals)
    grades = grade(to_grade, judge, grading)
    grade_type = designed.qrels["grade"].dtype
    on_scale = pl.col("grade").replace_strict(dict(enumerate(scale)), return_dtype=grade_type)
    graded = grades.qrels.with_columns(on_scale)
    # Designed as versions with changed facts, but with the text of a version without.
    unchanged = designed.docs.filter(has_changed_facts(designed.docs)).join(
        to_grade.docs, on="id", how="anti", maintain_order="left"
    )
    carried = judgments_of_origins(originals.qrels, unchanged)
    compared = graded.join(to_grade.qrels, on=["query_id", "doc_id"], suffix="_original")
    lower = compared.filter(pl.col("grade") < pl.col("grade_original"))
    higher = compared.filter(pl.col("grade") > pl.col("grade_original"))
    judged_versions = {
        "judge": grades.judge,
        "model": judge.name,
        "prompt": grades.spec["prompt"]["name"],
        "scale": list(scale),
        "pairs": grades.counts.pairs,
        "graded": grades.counts.graded,
        "unchanged": carried.height,
        "lower": lower.height,
        "higher": higher.height,
    }
    design = {
        **design,
        "judgments": f"carried over from the original; from {grades.judge} where {FACTS} are "
        "changed",
        "judged": judged_versions,
    }
    judged = replace(
        designed,
        qrels=pl.concat([designed.qrels, carried, graded]),
        spec={**designed.spec, "design": design},
    )
    checks = replace(versions.checks, spec={**versions.checks.spec, "design": design})
    spec = {**versions.spec, "judge": {**grades.spec, "counts": grades.counts._asdict()}}
    return GradedVersions(
        versions=replace(versions, collection=judged, checks=checks, spec=spec), grades=grades
    )


def price_grades(
    collection: Collection,
    factors: Sequence[Factor],
    crossing: Crossing,
    judge: LLM,
    grading: Grading | None = None,
    **options: Any,
) -> PromptPrice:
    """Estimate the cost of grading, without asking the model.

    Versions that are made by rules are made here, so that with rules alone exactly the pairs to
    grade are priced. Texts that prompts will make are not known yet, so that no earlier answer
    about them can be in the journal; then all pairs are priced.

    Parameters
    ----------
    collection : Collection
        Documents and judgments.
    factors : sequence of Factor
        What the versions differ in.
    crossing : Crossing
        Which combinations of factors are made.
    judge : LLM
        The model that grades.
    grading : Grading, optional
        How it is asked.
    options
        Options of `ranktilt.generation.estimate.estimate`, such as prices.
    """
    writer = VersionWriter.from_collection(collection, factors, crossing)
    names = [factor.name for factor in factors]
    grading = grading or Grading()
    require_gradable(names, writer.originals.qrels, grading)
    for step in range(len(writer.order)):
        writer.apply(step, None)
    to_grade = versions_to_grade(writer.collection(""), writer.originals)
    cost = estimate(prepare_grades(to_grade, judge, grading), judge, **options)
    pair_count = cost.documents - cost.empty
    has_prompts = any(factor.by == "model" for factor in factors)
    return PromptPrice(
        name="judge",
        prompt=str(grading.prompt),
        texts=pair_count,
        estimate=cost,
        multiplier=pair_count / max(cost.requests, 1) if has_prompts else 1.0,
    )


def require_gradable(factors: Iterable[str], qrels: pl.DataFrame, grading: Grading) -> None:
    """Refuse versions that no judge could grade, before you pay for anything.

    `factors` are names of factors, `qrels` the judgments of the originals. `UserError` if no factor
    changes facts, so that every version keeps the judgments of its original, or the prompt is
    unknown. `DataError` if grades are not whole numbers from 0.
    """
    if FACTS not in factors:
        raise UserError(
            f"a judge (--judge) grades versions whose facts are changed: name the factor {FACTS!r} "
            "as well"
        )
    scale_of(qrels)
    grade_template(grading.prompt)


def versions_to_grade(designed: Collection, originals: Collection) -> Collection:
    """Return the versions with changed facts, with the grades of their originals.

    A version is left out if its text is also that of a version of the same document without changed
    facts. `UserError` if no version is left that has an original with judgments.
    """
    is_changed = has_changed_facts(designed.docs)
    changed = designed.docs.filter(is_changed).join(
        designed.docs.filter(~is_changed),
        on=["origin", "title", "text"],
        how="anti",
        maintain_order="left",
    )
    qrels = judgments_of_origins(originals.qrels, changed)
    if not qrels.height:
        raise UserError(
            "nothing to judge: no version whose facts were changed has an original with judgments"
        )
    return Collection(changed, originals.queries, qrels, originals.spec)


def scale_of(qrels: pl.DataFrame) -> tuple[int, ...]:
    """Return, for each grade of a judge from 0 on, the grade on the collection's scale.

    The scale of the collection is that of its judgments, `qrels`. The highest grades of both scales
    correspond, and grades between are rounded. With two grades in the collection, a judge's 2 is
    relevant and its 1 is not, as TREC reads the judge's scale. `DataError` if the collection's
    grades are not whole numbers from 0.
    """
    top = read_grades(qrels, None, "judgments of the collection")[0]["grade"].max()
    highest = max(int(top or 0), 1)  # type: ignore[arg-type]
    return tuple(round(judge_grade * highest / GRADES[-1]) for judge_grade in GRADES)

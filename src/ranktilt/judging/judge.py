"""The one call: judge(human grades, judges' grades, …)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.groups import Pair, grouped_pairs
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.significance import InferenceOptions
from ranktilt.data.collection import Collection
from ranktilt.data.formats.notation import file_of
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import (
    GradeSteps,
    JudgedWithoutIntervals,
    RepeatedGrades,
    RequestsWithoutGrade,
)
from ranktilt.data.run import Run
from ranktilt.errors import UserError, counted, refuse_twice, shorten
from ranktilt.judging.agreement import QueryDraws, agreements, confusion, per_query, strata_of
from ranktilt.judging.comparison import compare_kappas
from ranktilt.judging.corrected import sampled_queries
from ranktilt.judging.grade_parsing import GRADES, UNREADABLE
from ranktilt.judging.grades import Graded, grade_steps, read_grades, side_by_side, stepped
from ranktilt.judging.grading import Grades
from ranktilt.judging.probes import JudgeProbes
from ranktilt.judging.result import (
    FEWEST_QUERIES,
    HUMAN,
    Agreement,
    GradeCount,
    JudgeAudit,
    QueryAgreement,
    Weakness,
)
from ranktilt.judging.source_results import (
    EvaluatedRuns,
    GradedCollection,
    SourceResults,
    source_results,
)
from ranktilt.judging.system_groups import SystemGroups
from ranktilt.judging.system_results import SystemResults, system_results
from ranktilt.judging.systems import SystemValues, system_values
from ranktilt.measures.base import Measure
from ranktilt.statistics.agreement import coincidences_of, krippendorff_alpha
from ranktilt.statistics.bootstrap import RESAMPLES

GradesOf = str | Path | pl.DataFrame | Grades
MEASURES = ("nDCG@10",)
_ENDING = re.compile(r"(\.(qrels|txt|tsv|csv|json|jsonl|parquet))*(\.(gz|bz2|xz|zst|zip))?$")


def judge(
    judges: GradesOf | Sequence[str | Path] | Mapping[str, GradesOf],
    human: str | Path | pl.DataFrame | None = None,
    *,
    collection: Collection | None = None,
    runs: Run | Iterable[Run] = (),
    families: Mapping[str, str] | None = None,
    clusters: Mapping[str, str] | None = None,
    measures: str | Measure | Sequence[str | Measure] = MEASURES,
    pair: Pair | None = None,
    relevant: int = 1,
    top_grade: int | None = None,
    human_sample: int | None = None,
    probed: Iterable[JudgeProbes] = (),
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> JudgeAudit:
    """Compare a judge's grades with human ones.

    You learn how far they agree, whether systems change places, and which families of systems and
    sources of documents the judge favours. Only pairs of query and document that both graded count.
    Pairs that one side graded are counted and left out, never 0.

    Parameters
    ----------
    judges : path, frame or Grades, sequence of paths, or mapping of names to any of these
        Grades of one judge or several: qrels files (TREC or BEIR), frames with ``query_id``,
        ``doc_id``, ``grade``, or what `grade` made.
    human : path or polars.DataFrame, optional
        Human grades; the collection's judgments by default.
    collection : Collection, optional
        Documents with their sources: gives agreement by source, length and query words, and, where
        it holds twins, the grade gap and the tilt of each run under either judge.
    runs : Run or iterable of Run, optional
        Systems that both judges evaluate.
    families : mapping, optional
        The family of each run by its name, such as ``{"rankgpt": "llm", "bm25": "lexical"}``: asks
        whether a judge favours a family.
    clusters : mapping, optional
        The cluster of each run that is one of several repeats of a system: each cluster counts as
        one system, with the mean of its members.
    measures : str, Measure or sequence of them, optional
        Of the systems.
    pair : (str, str), optional
        Two sources of twins; positive gaps favour the first. By default the first two.
    relevant : int, optional
        Smallest grade that counts as relevant in binary κ.
    top_grade : int, optional
        Highest grade of the scale, which begins at 0; by default the highest human grade, and 3
        where a model graded.
    human_sample : int, optional
        Pretend to have only so many human labels, and show what they repair; without it all human
        queries are used where the judge graded more.
    probed : iterable of JudgeProbes, optional
        What `ranktilt.judging.probes.probe_judge` found of judges.
    correction : {"holm", "bonferroni"}, optional
        Of the p of grade gaps, of tilts, and of differences between judges.
    resamples, seed : int, optional
        Bootstrap resamples and exchanges of labels; random seed.

    Returns
    -------
    JudgeAudit
        A result with tables, figures and sentences.

    Raises
    ------
    UserError
        If nothing overlaps, a grade lies outside the scale, or systems have no family.
    """
    check_resamples(resamples)
    judges_by_name = named_judges(judges)
    if not judges_by_name:
        raise UserError("expected the grades of at least one judge: --judge FILE")
    files = {name: _file(grades) for name, grades in judges_by_name.items()}
    human_file = "" if human is None else _file(human)
    common = _common_scale(judges_by_name, human, collection, top_grade)
    if not 1 <= relevant <= common.top:
        raise UserError(
            f"expected the smallest relevant grade between 1 and {common.top}, got {relevant}"
        )
    by_judge, reading_notes = _read_judges(common)
    graded = [side_by_side(common.human, frame, name) for name, frame in by_judge.items()]
    notes = [*reading_notes, *chain.from_iterable(pairs.notes() for pairs in graded)]
    notes += _few_query_notes(graded)
    inference = InferenceOptions(
        resamples=resamples, seed=seed, test="interval", correction=correction, rounding="none"
    )
    draws = QueryDraws(resamples=resamples, seed=seed)
    agreement = _grade_agreement(graded, collection, top=common.top, relevant=relevant, draws=draws)
    comparisons = compare_kappas(graded, top=common.top, correction=correction, draws=draws)
    evaluated = EvaluatedRuns.from_arguments(runs, measures)
    systems = SystemResults()
    if evaluated.runs:
        system_groups = SystemGroups(families=families or {}, clusters=clusters or {})
        systems = _systems(graded, evaluated, system_groups, human_sample, inference)
        notes += systems.notes
    elif families or clusters or human_sample is not None:
        raise UserError(f"{_systems_question(families, clusters)}: need runs (--runs DIR)")
    sources = SourceResults()
    if collection is not None and len(collection.sources) > 1:
        groups, pairs = grouped_pairs(collection, "source", None if pair is None else [pair])
        notes += groups.remarks
        sources = source_results(
            GradedCollection(
                collection=collection, graded=tuple(graded), by_judge=by_judge, pair=pairs[0]
            ),
            evaluated,
            inference,
        )
        notes += sources.notes
    spec = {
        "ranktilt": __version__,
        "human": human_file,
        "judges": files,
        "top_grade": common.top,
        "relevant": relevant,
        "measures": [repr(evaluated_measure) for evaluated_measure in evaluated.measures],
        "runs": [run.name for run in evaluated.runs],
        "human_sample": human_sample,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
    }
    return JudgeAudit(
        spec=spec,
        judges=tuple(judges_by_name),
        agreements=agreement.by_stratum,
        by_query=agreement.by_query,
        confusions=agreement.counts,
        notes=tuple(dict.fromkeys(notes)),
        comparisons=(*comparisons, *systems.comparisons),
        rank_agreements=systems.rank_agreements,
        systems=systems.systems,
        system_pairs=systems.system_pairs,
        preferences=systems.preferences,
        grade_gaps=sources.grade_gaps,
        tilts=sources.tilts,
        corrected=systems.corrected,
        weaknesses=tuple(chain.from_iterable(map(_weaknesses, probed))),
        confounds=sources.confounds,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonScale:
    """Grades of humans and judges, before those of the judges are read, on one scale."""

    human: pl.DataFrame
    judges: Mapping[str, GradesOf]
    top: int
    """Highest grade; the lowest is 0."""
    steps: int
    """Steps that make one grade in the files; each counts as one here."""


@dataclass(frozen=True, kw_only=True)
class GradeAgreement:
    """How far each judge agrees with humans."""

    by_stratum: tuple[Agreement, ...]
    by_query: tuple[QueryAgreement, ...]
    counts: tuple[GradeCount, ...]


def _common_scale(
    judges: Mapping[str, GradesOf],
    human: str | Path | pl.DataFrame | None,
    collection: Collection | None,
    top_grade: int | None,
) -> CommonScale:
    """Read the human grades, and count fractions of grades in steps."""
    steps = grade_steps([human, *judges.values()])
    has_model = any(isinstance(grades, Grades) for grades in judges.values())
    human_grades, top = _human(
        stepped(human, steps),
        collection,
        None if top_grade is None else top_grade * steps,
        least=GRADES[-1] if has_model else 1,
    )
    return CommonScale(
        human=human_grades,
        judges={name: stepped(grades, steps) for name, grades in judges.items()},
        top=top,
        steps=steps,
    )


def _read_judges(common: CommonScale) -> tuple[dict[str, pl.DataFrame], list[Note]]:
    """Read every judge's grades, with notes on what was left out."""
    by_judge, notes = dict[str, pl.DataFrame](), list[Note]()
    if common.steps > 1:
        notes.append(GradeSteps(steps=common.steps))
    for name, grades in common.judges.items():
        if isinstance(grades, Grades):
            _refuse_ungraded(name, grades)
            notes += grading_notes(grades, common.top)
            grades = grades.qrels
        by_judge[name], stray_notes = read_grades(grades, common.top, name)
        notes += stray_notes
    return by_judge, notes


def _few_query_notes(graded: Sequence[Graded]) -> Iterator[Note]:
    for pairs_of_judge in graded:
        queries = pairs_of_judge.pairs["query_id"].n_unique()
        if queries < FEWEST_QUERIES:
            yield JudgedWithoutIntervals(judge=pairs_of_judge.judge, measure="", queries=queries)


def _weaknesses(probes: JudgeProbes) -> Iterator[Weakness]:
    for gap in probes.gaps:
        yield Weakness(judge=probes.judge, edit=gap)


def _grade_agreement(
    graded: Sequence[Graded],
    collection: Collection | None,
    *,
    top: int,
    relevant: int,
    draws: QueryDraws,
) -> GradeAgreement:
    """Compute how far each judge agrees with humans: by stratum, by query, and grade by grade."""
    by_stratum, by_query, counts = list[Agreement](), list[QueryAgreement](), list[GradeCount]()
    for pairs_of_judge in graded:
        strata = {} if collection is None else strata_of(pairs_of_judge, collection)
        by_stratum += agreements(pairs_of_judge, strata, top=top, relevant=relevant, draws=draws)
        by_query += per_query(pairs_of_judge, top)
        counts += confusion(pairs_of_judge, top)
    return GradeAgreement(
        by_stratum=tuple(by_stratum), by_query=tuple(by_query), counts=tuple(counts)
    )


def named_judges(
    judges: GradesOf | Sequence[str | Path] | Mapping[str, GradesOf],
) -> dict[str, GradesOf]:
    """Return grades by their judge's name; a file's is its stem."""
    if isinstance(judges, Mapping):
        return dict(judges)
    if isinstance(judges, Grades):
        return {judges.judge: judges}
    if isinstance(judges, pl.DataFrame):
        return {"judge": judges}
    files = (
        list(judges) if isinstance(judges, Iterable) and not isinstance(judges, str) else [judges]
    )
    wrong = next((file for file in files if not isinstance(file, str | Path)), None)
    if wrong is not None or judges is None:
        raise UserError(
            "judges: expected files of grades, frames by name, or what grade made, "
            f"got {shorten(wrong)}"
        )
    paths = [Path(file) for file in files]
    names = [_ENDING.sub("", file_of(path).name) for path in paths]
    refuse_twice(names, "judge")
    return dict(zip(names, paths, strict=True))


def _human(
    human: str | Path | pl.DataFrame | None,
    collection: Collection | None,
    top: int | None,
    *,
    least: int,
) -> tuple[pl.DataFrame, int]:
    """Read the human grades; the scale goes as high as they, and at least to `least`."""
    if human is None:
        if collection is None or not collection.qrels.height:
            raise UserError(
                "no human grades: name a file (--human FILE), or a collection with judgments"
            )
        human = collection.qrels
    frame, _ = read_grades(human, top, HUMAN)
    if not frame.height:
        raise UserError("no human grades: the table has no row")
    if top is None:
        top = max(int(frame["grade"].max()), least)  # type: ignore[arg-type]
    return frame, top


def _file(grades: GradesOf | pl.DataFrame) -> str:
    return str(grades) if isinstance(grades, str | Path) else ""


def _refuse_ungraded(name: str, grades: Grades) -> None:
    """Refuse a model's grading without a single grade, and say what became of its requests."""
    if grades.qrels.height:
        return
    counts = grades.counts
    if set(counts.rejected) == {UNREADABLE}:
        answers = grades.answers.filter(pl.col("grade").is_null())["answer"].drop_nulls()
        first = f" (first: {shorten(answers[0], 100)})" if len(answers) else ""
        unparsed = f"{counts.rejected[UNREADABLE]:,} of {counts.requests:,} unparsed{first}"
        raise UserError(
            f"{name}: no answer could be read: {unparsed}; ask another model, or with another "
            "--prompt"
        )
    reasons = [f"{number:,} {reason}" for reason, number in counts.rejected.items()]
    raise UserError(
        f"{name}: no pair has a grade: of {counted(counts.requests, 'request', 'requests')}, "
        f"{', '.join(reasons) or 'nothing was asked'}"
    )


def grading_notes(grades: Grades, top: int) -> Iterator[Note]:
    """Note which requests of a model's grading have no grade, and whether it agrees with itself."""
    for reason, number in grades.counts.rejected.items():
        yield RequestsWithoutGrade(judge=grades.judge, requests=number, reason=reason)
    if not math.isnan(grades.exact_agreement):
        alpha = float(krippendorff_alpha(coincidences_of(grades.ratings, top)))
        yield RepeatedGrades(
            judge=grades.judge,
            times=grades.ratings.shape[1],
            same=grades.exact_agreement,
            alpha=alpha,
        )


def _systems(
    graded: Sequence[Graded],
    evaluated: EvaluatedRuns,
    groups: SystemGroups,
    human_sample: int | None,
    inference: InferenceOptions,
) -> SystemResults:
    """Compare systems under humans and each judge."""
    values_of_systems, notes = list[SystemValues](), list[Note]()
    labelled: dict[str, list[str]] = {}
    for pairs_of_judge in graded:
        values, left_out = system_values(pairs_of_judge, evaluated.runs, evaluated.measures)
        values_of_systems += values
        notes += left_out
        if human_sample is not None:
            labelled[pairs_of_judge.judge], _ = sampled_queries(
                pairs_of_judge, human_sample, inference.seed
            )
        elif pairs_of_judge.more.height:
            labelled[pairs_of_judge.judge] = pairs_of_judge.pairs["query_id"].unique().to_list()
    results = system_results(
        values_of_systems,
        groups,
        labelled,
        tags=evaluated.tags,
        correction=inference.correction,
        resamples=inference.resamples,
        seed=inference.seed,
    )
    return replace(results, notes=(*notes, *results.notes))


def _systems_question(
    families: Mapping[str, str] | None, clusters: Mapping[str, str] | None
) -> str:
    """Name what is asked about systems."""
    if families:
        return "families"
    return "clusters" if clusters else "a sample of human labels"

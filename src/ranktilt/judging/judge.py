"""Compare judges' grades with human ones: the function `judge`.

A *judge* is a model, or a person, who grades how relevant documents are to queries. A *pair* is a
query and a document. A *system* is a ranker whose run is evaluated, once by the human grades and
once by the judge's; a *family* is the systems built on the models of one maker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.significance import InferenceOptions
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.field_checks import require_seed, require_whole_number
from ranktilt.judging.agreement import QueryDraws, grade_agreement
from ranktilt.judging.calibration import CalibrationOptions, calibrate
from ranktilt.judging.comparison import compare_kappas
from ranktilt.judging.grading.probes import JudgeProbes
from ranktilt.judging.judge_grades import CommonScale, GradeSource, file_name, named_judges
from ranktilt.judging.kept_grades import KeptGrades
from ranktilt.judging.records import Weakness
from ranktilt.judging.result import JudgeAudit
from ranktilt.judging.source_results import GradedCollection, SourceResults, source_results
from ranktilt.judging.systems.evaluated_runs import EvaluatedRuns
from ranktilt.judging.systems.groups import SystemGroups
from ranktilt.judging.systems.results import SystemResults, compare_systems
from ranktilt.measures.base import Measure
from ranktilt.statistics.bootstrap import RESAMPLES

MEASURES = ("nDCG@10",)
"""Measures by which systems are evaluated if the user names none."""


def judge(
    judges: GradeSource | Sequence[str | Path] | Mapping[str, GradeSource],
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
    sources of documents the judge favours. Only pairs of query and document with both grades are
    used. Others are counted and left out, never taken for 0.

    Parameters
    ----------
    judges : path, frame or Grades, sequence of paths, or mapping of names to any of these
        Grades of one judge or several: qrels files (TREC or BEIR), frames with ``query_id``,
        ``doc_id``, ``grade``, or results of `grade`.
    human : path or polars.DataFrame, optional
        Human grades; the collection's judgments by default.
    collection : Collection, optional
        Documents with their sources: gives agreement by source, length and query words. With
        documents of two sources it also gives the tilt of each run under the judge and under
        humans, and, where these are twins, the judge's grade gap.
    runs : Run or iterable of Run, optional
        Runs of systems, to evaluate under the judge's grades and under the human ones.
    families : mapping, optional
        The family of each run by its name, such as ``{"rankgpt": "llm", "bm25": "lexical"}``: to
        ask whether a judge favours a family.
    clusters : mapping, optional
        The cluster of each run that is one of several repeats of a system: each cluster counts as
        one system, with the mean of its members.
    measures : str, Measure or sequence of them, optional
        Measures of the systems.
    pair : (str, str), optional
        Two sources of twins; positive gaps favour the first. By default the first two.
    relevant : int, optional
        Smallest grade that counts as relevant in binary κ.
    top_grade : int, optional
        Highest grade of the scale, which begins at 0; by default the highest human grade, and 3
        where a model graded.
    human_sample : int, optional
        Pretend to have only this many human labels, to show how close an estimate from these and
        the judge's grades comes to the truth. By default all human labels are used, if the judge
        graded further queries.
    probed : iterable of JudgeProbes, optional
        Results of `ranktilt.judging.grading.probes.probe_judge`.
    correction : {"holm", "bonferroni"}, optional
        Correction of the p of grade gaps, of tilts, and of differences between judges.
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
    require_seed(seed)
    if top_grade is not None:
        require_whole_number(top_grade, "a top grade of at least 1", least=1)
    if human_sample is not None:
        require_whole_number(human_sample, "at least 1 human label", least=1)
    judges_by_name = named_judges(judges)
    if not judges_by_name:
        raise UserError("expected the grades of at least one judge: --judge FILE")
    scale = CommonScale.from_grades(judges_by_name, human, collection, top_grade)
    require_whole_number(relevant, "a whole number as smallest relevant grade", least=0)
    scale.require_relevant(relevant)
    grades = scale.read_judges()
    inference = InferenceOptions(
        resamples=resamples, seed=seed, test="interval", correction=correction, rounding="none"
    )
    draws = QueryDraws(resamples=resamples, seed=seed)
    agreement = grade_agreement(
        grades.pairs_of_judges, collection, top=scale.top, relevant=relevant, draws=draws
    )
    comparisons = compare_kappas(
        grades.pairs_of_judges, top=scale.top, correction=correction, draws=draws
    )
    evaluated = EvaluatedRuns.from_arguments(runs, measures)
    groups = SystemGroups(families=families or {}, clusters=clusters or {})
    if not evaluated.runs:
        _refuse_questions_about_systems(groups, human_sample)
    systems = SystemResults()
    if evaluated.runs:
        systems = compare_systems(
            grades.pairs_of_judges,
            evaluated,
            groups=groups,
            human_sample=human_sample,
            inference=inference,
        )
    sources = SourceResults()
    if collection is not None and len(collection.sources) > 1:
        graded = GradedCollection.from_grades(collection, scale.human, grades, pair)
        sources = source_results(graded, evaluated, inference)
    kept_grades = KeptGrades.from_grades(
        grades.by_judge,
        scale.human,
        collection,
        values=systems.values,
        twins=sources.twins,
        steps=scale.steps,
    )
    calibrated = calibrate(
        grades.by_judge,
        kept_grades,
        CalibrationOptions(resamples=resamples, seed=seed, correction=correction),
    )
    human_file = "" if human is None else file_name(human)
    files = {name: file_name(of_judge) for name, of_judge in judges_by_name.items()}
    spec = {
        "ranktilt": __version__,
        "human": human_file,
        "judges": files,
        "top_grade": scale.top,
        "relevant": relevant,
        "measures": list(map(repr, evaluated.measures)),
        "runs": evaluated.names,
        "human_sample": human_sample,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
    }
    notes = dict.fromkeys([*grades.notes, *systems.notes, *sources.notes, *calibrated.notes])
    comparisons += systems.comparisons
    probed = list(probed)
    weaknesses = chain.from_iterable(map(_weaknesses, probed))
    doses = [probes.doses for probes in probed if probes.doses is not None]
    return JudgeAudit(
        spec=spec,
        judges=tuple(judges_by_name),
        agreements=agreement.by_stratum,
        by_query=agreement.by_query,
        confusions=agreement.counts,
        notes=tuple(notes),
        comparisons=tuple(comparisons),
        rank_agreements=systems.rank_agreements,
        systems=systems.systems,
        system_pairs=systems.system_pairs,
        preferences=systems.preferences,
        grade_gaps=sources.grade_gaps,
        tilts=sources.tilts,
        corrected=systems.powered_estimates,
        weaknesses=tuple(weaknesses),
        length_doses=tuple(doses),
        calibrations=calibrated.calibrations,
        confounds=sources.confounds,
        grades=kept_grades,
    )


def _weaknesses(probes: JudgeProbes) -> Iterator[Weakness]:
    """Yield how each probe changed the judge's grades."""
    for gap in probes.gaps:
        yield Weakness(judge=probes.judge, edit=gap)


def _refuse_questions_about_systems(groups: SystemGroups, human_sample: int | None) -> None:
    """Refuse questions about systems where the user named no runs."""
    question = ""
    if groups.families:
        question = "families"
    elif groups.clusters:
        question = "clusters"
    elif human_sample is not None:
        question = "a sample of human labels"
    if question:
        raise UserError(f"{question}: need runs (--runs DIR)")

"""The one call: judge(human grades, judges' grades, …)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.compare import compare
from ranktilt.auditing.confounds import Confound, confounds
from ranktilt.auditing.groups import Pair, grouped_pairs, grouping, twin_rows
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.notes import variation_notes
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.significance import InferenceOptions
from ranktilt.data.collection import Collection
from ranktilt.data.formats.notation import file_of
from ranktilt.data.notes.base import Note, notes_within
from ranktilt.data.notes.judges import (
    GradeSteps,
    JudgedWithoutIntervals,
    RepeatedGrades,
    RequestsWithoutGrade,
)
from ranktilt.data.run import Run, named_apart, require_runs
from ranktilt.errors import UserError, counted, refuse_twice, shorten
from ranktilt.judging.agreement import QueryDraws, agreements, confusion, per_query, strata_of
from ranktilt.judging.comparison import compare_kappas
from ranktilt.judging.corrected import sampled_queries
from ranktilt.judging.grade_gap import grade_gaps, judge_variation
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
    JudgedTilt,
    QueryAgreement,
    Weakness,
)
from ranktilt.judging.system_groups import SystemGroups, run_tags
from ranktilt.judging.system_results import system_results
from ranktilt.judging.systems import SystemValues, system_values
from ranktilt.measures.base import Measure, measure
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
    """Hold a judge's grades against human ones: agreement, order of systems, favoured families and sources.

    Only pairs of query and document that both graded count; those of one side are counted and left
    out, never 0.

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
    named = named_judges(judges)
    if not named:
        raise UserError("expected the grades of at least one judge: --judge FILE")
    models = any(isinstance(grades, Grades) for grades in named.values())
    files = {name: _file(grades) for name, grades in named.items()}
    human_file = "" if human is None else _file(human)
    steps = grade_steps([human, *named.values()])
    human = stepped(human, steps)
    named = {name: stepped(grades, steps) for name, grades in named.items()}
    top_grade = None if top_grade is None else top_grade * steps
    human, top = _human(human, collection, top_grade, least=GRADES[-1] if models else 1)
    if not 1 <= relevant <= top:
        raise UserError(f"expected the smallest relevant grade between 1 and {top}, got {relevant}")
    read, notes = dict[str, pl.DataFrame](), list[Note]()
    if steps > 1:
        notes.append(GradeSteps(steps=steps))
    for name, grades in named.items():
        if isinstance(grades, Grades):
            _refuse_ungraded(name, grades)
            notes += grading_notes(grades, top)
        read[name], stray = read_grades(
            grades.qrels if isinstance(grades, Grades) else grades, top, name
        )
        notes += stray
    graded = [side_by_side(human, frame, name) for name, frame in read.items()]
    notes += chain.from_iterable(one.notes() for one in graded)
    for pairs_of_judge in graded:
        queries = pairs_of_judge.pairs["query_id"].n_unique()
        if queries < FEWEST_QUERIES:
            few = JudgedWithoutIntervals(judge=pairs_of_judge.judge, measure="", queries=queries)
            notes.append(few)
    how = {"resamples": resamples, "seed": seed}
    draws = QueryDraws(resamples=resamples, seed=seed)
    found = _agreement_fields(graded, collection, top=top, relevant=relevant, draws=draws)
    comparisons = compare_kappas(graded, top=top, correction=correction, draws=draws)
    tags = run_tags(require_runs(runs))
    runs = named_apart(require_runs(runs))
    asked = [
        measure(one) for one in ([measures] if isinstance(measures, str | Measure) else measures)
    ]
    if runs:
        system_groups = SystemGroups(families=families or {}, clusters=clusters or {})
        fields, more_notes = _systems(
            graded,
            runs,
            asked,
            system_groups,
            tags={run.name: tags.get(run.spec.get("file", ""), "") for run in runs},
            human_sample=human_sample,
            correction=correction,
            **how,
        )
        comparisons += fields.pop("comparisons", ())
        found |= fields
        notes += more_notes
    elif families or clusters or human_sample is not None:
        raise UserError(f"{_systems_question(families, clusters)}: need runs (--runs DIR)")
    if collection is not None and len(collection.sources) > 1:
        groups, pairs = grouped_pairs(collection, "source", None if pair is None else [pair])
        notes += groups.remarks
        statistics = InferenceOptions(resamples, seed, "interval", correction, "none")
        found |= _sources(graded, read, collection, (runs, asked, pairs[0]), notes, how=statistics)
    weaknesses = tuple(Weakness(one.judge, gap) for one in probed for gap in one.gaps)
    spec = {
        "ranktilt": __version__,
        "human": human_file,
        "judges": files,
        "top_grade": top,
        "relevant": relevant,
        "measures": [repr(one) for one in asked],
        "runs": [run.name for run in runs],
        "human_sample": human_sample,
        "correction": correction,
        **how,
    }
    return JudgeAudit(
        spec,
        tuple(named),
        notes=tuple(dict.fromkeys(notes)),
        weaknesses=weaknesses,
        comparisons=tuple(comparisons),
        **found,
    )


def _agreement_fields(
    every_graded: Sequence[Graded],
    collection: Collection | None,
    *,
    top: int,
    relevant: int,
    draws: QueryDraws,
) -> dict[str, Any]:
    """Say how far each judge agrees with humans: fields of a `JudgeAudit`."""
    by_judge, by_query, counts = list[Agreement](), list[QueryAgreement](), list[GradeCount]()
    for graded in every_graded:
        strata = {} if collection is None else strata_of(graded, collection)
        by_judge += agreements(graded, strata, top=top, relevant=relevant, draws=draws)
        by_query += per_query(graded, top)
        counts += confusion(graded, top)
    return {
        "agreements": tuple(by_judge),
        "by_query": tuple(by_query),
        "confusions": tuple(counts),
    }


def named_judges(
    judges: GradesOf | Sequence[str | Path] | Mapping[str, GradesOf],
) -> dict[str, GradesOf]:
    """Give judges their names: a file's is its stem."""
    if isinstance(judges, Mapping):
        return dict(judges)
    if isinstance(judges, Grades):
        return {judges.judge: judges}
    if isinstance(judges, pl.DataFrame):
        return {"judge": judges}
    named_files = (
        [judges]
        if isinstance(judges, str | Path) or not isinstance(judges, Iterable)
        else list(judges)
    )
    wrong = next((file for file in named_files if not isinstance(file, str | Path)), None)
    if wrong is not None or judges is None:
        raise UserError(
            f"judges: expected files of grades, frames by name, or what grade made, got {shorten(wrong)}"
        )
    paths = [Path(file) for file in named_files]
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
    return frame, max(int(frame["grade"].max()), least) if top is None else top  # type: ignore[arg-type]


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
            f"{name}: no answer could be read: {unparsed}; ask another model, or with another --prompt"
        )
    reasons = (
        ", ".join(f"{number:,} {reason}" for reason, number in counts.rejected.items())
        or "nothing was asked"
    )
    raise UserError(
        f"{name}: no pair has a grade: of {counted(counts.requests, 'request', 'requests')}, {reasons}"
    )


def grading_notes(grades: Grades, top: int) -> Iterator[Note]:
    """Note what of a model's grading a reader should know: what has no grade, and whether it agrees with itself."""
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
    runs: Sequence[Run],
    measures: Sequence[Measure],
    groups: SystemGroups,
    *,
    tags: Mapping[str, str],
    human_sample: int | None,
    correction: str,
    resamples: int,
    seed: int,
) -> tuple[dict[str, Any], list[Note]]:
    """Compare systems: fields of the result, and notes."""
    every_values, notes = list[SystemValues](), list[Note]()
    labelled: dict[str, list[str]] = {}
    for pairs_of_judge in graded:
        values, left_out = system_values(pairs_of_judge, runs, measures)
        every_values += values
        notes += left_out
        if human_sample is not None:
            labelled[pairs_of_judge.judge], _ = sampled_queries(pairs_of_judge, human_sample, seed)
        elif pairs_of_judge.more.height:
            labelled[pairs_of_judge.judge] = pairs_of_judge.pairs["query_id"].unique().to_list()
    fields, more_notes = system_results(
        every_values,
        groups,
        labelled,
        tags=tags,
        correction=correction,
        resamples=resamples,
        seed=seed,
    )
    return fields, [*notes, *more_notes]


def _systems_question(
    families: Mapping[str, str] | None, clusters: Mapping[str, str] | None
) -> str:
    """Name what is asked about systems."""
    if families:
        return "families"
    return "clusters" if clusters else "a sample of human labels"


def _sources(
    graded: Sequence[Graded],
    read: Mapping[str, pl.DataFrame],
    collection: Collection,
    asked: tuple[Sequence[Run], Sequence[Measure], Pair],
    notes: list[Note],
    *,
    how: InferenceOptions,
) -> dict[str, Any]:
    """Everything about the sources of documents."""
    runs, _, pair = asked
    found: dict[str, Any] = {}
    if collection.pairs(*pair).height:
        gaps, more = grade_gaps(collection, dict(read), pair, how=how)
        notes += more
        varied = {one.judge: judge_variation(one.pairs) for one in graded}
        gaps = tuple(replace(gap, variation=varied[gap.run]) for gap in gaps)
        notes += variation_notes(gap for gap in gaps if not gap.estimand.options)
        found |= {"grade_gaps": gaps, "confounds": _confounds(collection, pair)}
    if runs:
        found["tilts"] = tuple(
            chain.from_iterable(_tilts(one, collection, asked, notes, how) for one in graded)
        )
    return found


def _confounds(collection: Collection, pair: Pair) -> tuple[Confound, ...]:
    """What else differs between the two sources."""
    groups = grouping(collection, "source")
    judgments = Judgments.from_collection(collection, groups)
    twins = TwinPairs.from_rows(pair, twin_rows(collection, groups, pair), judgments)
    return tuple(confounds(collection, groups, twins, ()))


def _tilts(
    graded: Graded,
    collection: Collection,
    asked: tuple[Sequence[Run], Sequence[Measure], Pair],
    notes: list[Note],
    how: InferenceOptions,
) -> Iterator[JudgedTilt]:
    """Relative Δ of every run under the judge less that under the human grades, on the pairs that both graded."""
    runs, measures, pair = asked
    audits = []
    for column in ("judged", "human"):
        qrels = graded.pairs.select("query_id", "doc_id", grade=column)
        judged = Collection(collection.docs, collection.queries, qrels, collection.spec)
        audits.append(
            audit(
                judged,
                runs,
                measures,
                pairs=[pair],
                confounds=False,
                keep_top=0,
                resamples=how.resamples,
                seed=how.seed,
                correction=how.correction,
            )
        )
    compared = compare(*audits, resamples=how.resamples, seed=how.seed, correction=how.correction)
    notes += notes_within(compared.notes, "judge", graded.judge)
    for change in compared.tilts:
        yield JudgedTilt(graded.judge, change)

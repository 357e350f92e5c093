"""Prepare an audit: check its questions, group the documents, and align runs with judgments.

A *question* is an estimand: something with a number for an answer that can be asked of two groups.
There are two sorts. A *measure*, such as nDCG@10, reads judgments of relevance; its answer is
Relative Δ, the difference between both groups' means in percent. All other questions are on the
*card*. The *primary question* was chosen before the data were seen, and gives the verdict.

*Twins* are two versions of one document, one in each of two groups. The document that they are
versions of is their *origin*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import polars as pl

from ranktilt.auditing.card import HEAD_TO_HEAD, card_estimands
from ranktilt.auditing.grouping.number_bins import is_property, property_sides
from ranktilt.auditing.grouping.pairs import are_twins, grouped_pairs, twin_rows
from ranktilt.auditing.groups import Groups, Pair
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.label_errors.checks import (
    audited_label_model,
    check_correctable,
    is_correctable,
)
from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.auditing.notes import only_labels, without_fitted
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.auditing.options import AuditOptions, usual_primary
from ranktilt.auditing.query_groups.grouping import QueryGroups, collection_query_groups
from ranktilt.data.collection import Collection
from ranktilt.data.formats.runs.runfile import unwritable
from ranktilt.data.notes.base import Note
from ranktilt.data.runs.repeats import each_repeat, join_namesakes
from ranktilt.data.runs.run import Run, named_apart
from ranktilt.errors import UserError, counted, refuse_twice, shorten
from ranktilt.measures.base import Estimand, Measure, estimand
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.exposure.base import AttentionEstimand
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin, read_margin, require_unit
from ranktilt.measures.ranking import Ints

DEFAULT_MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "AP@1", "AP@3", "AP@5")
"""Measures of an audit whose caller names none, where documents are judged."""
SHARE = "Share@10"
"""Primary question if nothing is judged and there are no twins.

Also the primary question if answers about two groups are corrected for label errors.
"""
PAGE = "NDSR@10"
"""Primary question if answers about more than two groups are corrected for label errors.

`SHARE` is a ratio of counts, and can be corrected only if every label is one of the two groups.
"""
PROPERTY_LIFT = "PropertyLift@10"
"""Primary question about a property of documents, such as their popularity."""

Estimands = str | Estimand | Iterable[str | Estimand] | None
"""Questions of an audit: notations or objects, one or several; None for the usual ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedPair:
    """Two groups to compare, with their twins."""

    names: Pair
    """Names of both groups; positive differences favour the first."""
    numbers: tuple[int, int]
    """Indexes of both groups in `Groups.names`."""
    twins: TwinPairs
    """Pairs of twins between the two groups; has no rows if there are none."""
    has_judgments: bool
    """Whether each group holds a relevant document, so that it has a Relative Δ."""
    are_twins: bool
    """Whether each relevant document has exactly one twin of the same grade in the other group.

    If so, both groups have the same chances, and a Relative Δ of 0 favours neither. If not, the
    group with more relevant documents has an advantage even in a random ranking. Then the answer
    that favours neither is the median of what random labels give.
    """


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditInputs:
    """The questions, runs and documents of an audit, checked and aligned with each other."""

    collection: Collection
    """Documents and queries, without queries that a run was fitted on."""
    judgments: Judgments
    """Relevant judgments."""
    runs: tuple[Run, ...]
    """Runs, each with its repeats."""
    judged_runs: tuple[JudgedRun, ...]
    """Runs aligned with the judgments.

    A run with repeats, which are several rankings by the same ranker, has a judged run for each of
    them, under its own name.
    """
    groups: Groups
    """Groups of the documents."""
    pairs: tuple[ComparedPair, ...]
    """Pairs of groups to compare."""
    measures: tuple[Measure, ...]
    """Measures of relevance, whose Relative Δ is computed."""
    card_questions: tuple[Estimand, ...]
    """All other questions, which the card answers."""
    primary: Estimand | None
    """The question that verdicts answer; None where nothing is compared."""
    origins: Ints
    """Number of each document's origin, by row; twins have the same number."""
    options: AuditOptions
    """Options as they were set."""
    notes: tuple[Note, ...]
    """Notes on what was left out."""
    label_model: LabelModel | None = None
    """The error rates of labels, for which answers are corrected; None if labels are taken as true.
    """
    query_groups: QueryGroups | None = None
    """Groups of queries; None where answers are not broken down by them."""

    @property
    def has_repeats(self) -> bool:
        """Whether a run has repeats, which are averaged within each query."""
        return len(self.judged_runs) > len(self.runs)

    @property
    def pairs_with_judgments(self) -> list[ComparedPair]:
        """Pairs of groups that have a Relative Δ: both groups hold relevant documents."""
        return [pair for pair in self.pairs if pair.has_judgments]

    @property
    def primary_measure(self) -> Measure:
        """The measure that is printed first.

        It is the primary question if that is a measure, else the nDCG with the largest cutoff.
        """
        if isinstance(self.primary, Measure):
            return self.primary
        usual = usual_primary(self.measures)
        return usual if isinstance(usual, Measure) else self.measures[0]


def prepare(
    collection: Collection,
    runs: Run | Sequence[Run],
    measures: Estimands,
    options: AuditOptions,
) -> AuditInputs:
    """Check the questions, and align every run with groups and judgments.

    Parameters
    ----------
    collection : Collection
        The ranked collection.
    runs : Run or sequence of Run
        The rankings to audit.
    measures : str, Estimand, or iterable of these, optional
        The questions; None for the usual ones.
    options : AuditOptions
        Options of the audit.

    Raises
    ------
    UserError
        If an option is out of range, a question cannot be answered, or there is nothing to compare.
    """
    _require_collection(collection)
    # A column of numbers is a property, unless the user named groups of it to compare.
    has_property = options.pairs is None and is_property(collection, options.by)
    if has_property and measures is None:
        measures = options.primary or PROPERTY_LIFT
    estimands = _read_estimands(measures, options, has_judgments=collection.has_judgments)
    _check_property(estimands, options, has_property=has_property)
    options.check()
    runs = _read_runs(runs)
    repeats = list(chain.from_iterable(map(each_repeat, runs)))
    refuse_twice([repr(estimand) for estimand in estimands], "measure")
    # A ranker knows the queries that it was fitted on, so they say nothing about it.
    collection, notes = without_fitted(collection, [run.spec for run in repeats])
    margin = read_margin(options.margin)
    check_correctable(estimands, options, has_property=has_property)
    _check_grouped(estimands, options)

    # The questions and options are checked; now the documents are grouped.
    pairs = [property_sides(options.by or "")] if has_property else options.pairs
    groups, pair_names = grouped_pairs(collection, options.by, pairs, fewest=1)
    judgments = Judgments.from_collection(collection, groups)
    # The usual questions depend on the groups: whether they have twins, and how many there are.
    estimands = estimands or _usual_estimands(collection, groups, pair_names, options)
    primary = _read_primary(estimands, options, margin)
    relevance_measures, card_questions = _measures(estimands), _card_questions(estimands)
    _check_answerable(card_questions, repeats, groups, has_relevant=judgments.has_relevant)
    if relevance_measures:
        _check_judged(judgments, groups, pair_names, collection)
    if options.card and not has_property:
        card_questions = _with_standard_card(card_questions, options, judgments)

    origins = collection.origin_codes()
    compared = tuple(_compared_pairs(collection, groups, judgments, pair_names, origins=origins))
    twins = {pair.names: pair.twins.rows for pair in compared}
    model = audited_label_model(options.label_errors, collection, groups, twins, card_questions)
    return AuditInputs(
        collection=collection,
        judgments=judgments,
        runs=tuple(runs),
        judged_runs=tuple(JudgedRun.from_run(run, collection, judgments) for run in repeats),
        groups=groups,
        pairs=compared,
        measures=tuple(relevance_measures),
        card_questions=tuple(card_questions),
        primary=primary,
        origins=origins,
        options=options,
        notes=tuple(notes),
        label_model=model,
        query_groups=_query_groups(collection, judgments, options),
    )


def _query_groups(
    collection: Collection, judgments: Judgments, options: AuditOptions
) -> QueryGroups | None:
    """Return the groups of queries, if the options name a column of queries to group by."""
    if options.by_query is None:
        return None
    if options.by is None:
        raise UserError("groups of queries need groups of documents to compare; omit --by none")
    return collection_query_groups(options.by_query, collection, judgments.queries)


def _require_collection(collection: object) -> None:
    """Refuse anything but a collection, such as the path of its folder."""
    if not isinstance(collection, Collection):
        raise UserError(
            f"expected a collection, got {shorten(collection)}; load it first: load(folder)"
        )


def _read_estimands(
    measures: Estimands, options: AuditOptions, *, has_judgments: bool
) -> list[Estimand]:
    """Return the questions, the primary one among them; refuse those that no audit can answer.

    Empty if the usual questions depend on the groups, which `_usual_estimands` returns.
    """
    if measures is None:
        # Relative Δ cannot be corrected for errors of labels.
        is_relative = has_judgments and options.label_errors is None
        measures = DEFAULT_MEASURES if is_relative else ()
    elif isinstance(measures, str | Estimand):
        measures = [measures]
    else:
        measures = list(measures)
        if not measures:
            raise UserError("an audit needs at least one measure, such as nDCG@3")
    estimands = [estimand(measure) for measure in measures]
    if options.primary is not None:
        primary = estimand(options.primary)
        if primary.descriptive:
            raise UserError(
                f"{primary!r} only describes and gives no verdict; choose another primary question"
            )
        if primary not in estimands:
            estimands.append(primary)
    _check_kinds(estimands, has_judgments=has_judgments)
    return estimands


def _measures(estimands: Sequence[Estimand]) -> list[Measure]:
    """Return the estimands that are measures of relevance, whose Relative Δ is computed."""
    return [estimand for estimand in estimands if isinstance(estimand, Measure)]


def _card_questions(estimands: Sequence[Estimand]) -> list[Estimand]:
    """Return the estimands that are no measures of relevance; the card answers them."""
    return [estimand for estimand in estimands if not isinstance(estimand, Measure)]


def _with_standard_card(
    questions: Sequence[Estimand], options: AuditOptions, judgments: Judgments
) -> list[Estimand]:
    """Return the standard questions of the card, then the given questions, each once.

    If answers are corrected for label errors, standard questions that cannot be are left out.
    """
    standard = card_estimands(options.depth, judged=judgments.has_relevant)
    if options.label_errors is not None:
        standard = tuple(filter(is_correctable, standard))
    return list(dict.fromkeys([*standard, *questions]))


def _check_kinds(estimands: Sequence[Estimand], *, has_judgments: bool) -> None:
    """Refuse questions about pairs of documents, and measures of relevance without judgments."""
    for question in estimands:
        if question.kind == "choices":
            raise UserError(f"{question!r} compares two documents at a time: use ranktilt pairwise")
        if question.kind == "grades":
            raise UserError(f"{question!r} compares grades of a judge: use ranktilt judge")
        if isinstance(question, RelativeDelta):
            raise UserError(
                f"{question!r}: name the measure alone, {question.of!r}; an audit takes Relative Δ "
                "of every measure"
            )
    for question in estimands:
        if isinstance(question, Measure) and not has_judgments:
            raise UserError(
                f"{question!r} needs judgments, and there are none: name them (--qrels FILE), or "
                f"ask a question that needs none, such as {SHARE}, or HeadToHead for twins"
            )


def _check_property(
    estimands: Sequence[Estimand], options: AuditOptions, *, has_property: bool
) -> None:
    """Refuse a question that does not fit the column.

    A column of numbers takes questions about a property, all others questions about groups.
    """
    for question in estimands:
        if (question.kind == "property") == has_property:
            continue
        if has_property:
            raise UserError(
                f"{question!r} compares groups, and {options.by} is a column of numbers: ask "
                f"{PROPERTY_LIFT}, or make groups: --by {options.by}:2"
            )
        raise UserError(
            f"{question!r} needs a column of more than ten different numbers, such as --by "
            "popularity"
        )


def _usual_estimands(
    collection: Collection, groups: Groups, pairs: Sequence[Pair], options: AuditOptions
) -> list[Estimand]:
    """Return the questions if nothing is judged, or answers are corrected for label errors.

    With twins, the question is which of two twins ranks higher. Without twins, or with label
    errors, it is which group holds the first ranks.
    """
    if options.label_errors is not None:
        return [estimand(SHARE if len(groups.names) == 2 else PAGE)]
    has_twins = any(len(twin_rows(collection, groups, pair)) for pair in pairs)
    return list(HEAD_TO_HEAD) if has_twins else [estimand(SHARE)]


def _read_primary(
    estimands: Sequence[Estimand], options: AuditOptions, margin: Margin
) -> Estimand | None:
    """Return the primary question; refuse a margin in another unit."""
    primary = usual_primary(estimands, options.by)
    if options.primary is not None:
        primary = estimand(options.primary)
    if primary is not None and margin != DEFAULT_MARGIN:
        answer = RelativeDelta(of=primary) if isinstance(primary, Measure) else primary
        require_unit(answer, margin, "a margin of")
    return primary


def _read_runs(runs: Run | Sequence[Run]) -> list[Run]:
    """Return the runs, each once with its repeats; refuse what cannot be audited."""
    # A string is no run, but a sequence: it must not be split into letters.
    runs = [runs] if isinstance(runs, Run | str) else named_apart(runs)
    _check_runs(runs)
    runs_with_repeats = join_namesakes(runs)
    _refuse_shared_names(runs_with_repeats)
    return runs_with_repeats


def _refuse_shared_names(runs: Sequence[Run]) -> None:
    """Refuse several runs of one name that the user did not declare to be repeats."""
    try:
        refuse_twice([run.name for run in runs], "run")
    except UserError as error:
        raise UserError(
            f"{error}; if these are repeats of one engine, give them one name of your own: "
            "--run NAME=FILE for each (in Python: Run.from_repeats(runs, name=…))"
        ) from error


def _check_runs(runs: Sequence[Run]) -> None:
    """Refuse values that are no runs, and runs that no file could hold."""
    for run in runs:
        if not isinstance(run, Run):
            raise UserError(
                f"expected runs, got {shorten(run)}; rank first: ranker(...).rank(collection)"
            )
    for run in runs:
        fault = unwritable(run.spec)
        if fault:
            raise UserError(f"run {run.name!r}: its spec: {fault}")
    if not runs:
        raise UserError("an audit needs at least one run or ranker, such as -r bm25")


def _check_grouped(estimands: Sequence[Estimand], options: AuditOptions) -> None:
    """Refuse questions about groups where there are none, and an audit without any question."""
    if options.by is not None:
        return
    questions = _card_questions(estimands)
    subject = ""
    if options.card:
        subject = "the card needs"
    elif questions:
        subject = f"{questions[0]!r} needs"
    elif options.pairs is not None:
        subject = "pairs of groups need"
    if subject:
        raise UserError(f"{subject} a column to group by; omit --by none")
    if not estimands:
        raise UserError(
            "no judgments, so no measure can be computed, and no groups to compare: name them "
            "(--by)"
        )


def _check_answerable(
    questions: Sequence[Estimand], runs: Sequence[Run], groups: Groups, *, has_relevant: bool
) -> None:
    """Refuse questions that need judgments, scores or groups where there are none."""
    unscored = list[str]()
    if any(question.reads_scores for question in questions):  # all scores of a run are looked at
        unscored = [run.name for run in runs if not run.scored]
    for question in questions:
        if question.reads_scores and unscored:
            raise UserError(
                f"{question!r} needs scores, and {unscored[0]} gives only an order; choose a "
                "measure of ranks"
            )
        if isinstance(question, AttentionEstimand):
            question.check(groups.names)
            if question.needs_judgments() and not has_relevant:
                raise UserError(
                    f"{question!r} needs judgments: it asks which documents are relevant, and "
                    "there are none (--qrels FILE)"
                )


def _check_judged(
    judgments: Judgments, groups: Groups, pairs: Sequence[Pair], collection: Collection
) -> None:
    """Refuse judgments that leave no pair of groups with relevant documents on both sides."""
    if not judgments.has_relevant:
        raise UserError("no document is judged relevant to any query")
    judged = judgments.judged_groups(groups)
    if not pairs or any(a in judged and b in judged for a, b in pairs):
        return
    names = chain.from_iterable(pairs)
    missing = [name for name in names if name not in judged]
    remedy = _remedy_without_judgments(collection)
    # Documents that only the judgments name have rows after those of the collection.
    unknown_rows = np.unique(judgments.row[judgments.row >= len(groups.code)])
    if len(unknown_rows):
        noun = counted(len(unknown_rows), "relevant document has", "relevant documents have")
        remedy = (
            f"{noun} no known {groups.by} (first: {judgments.ids[int(unknown_rows[0])]!r}; known "
            f"ids look like {collection.ids[0]!r}): use these ids in the judgments"
        )
    raise UserError(
        f"nothing to compare: no document of {groups.by} {missing[0]!r} is judged relevant; "
        f"{remedy}"
    )


def _remedy_without_judgments(collection: Collection) -> str:
    """Say how to audit if only documents of one group are judged relevant."""
    option = "omit --qrels" if only_labels(collection) else "add --qrels none"
    words = f"to ask whose documents stand on top, {option}"
    has_versions = bool((collection.docs["origin"] != collection.docs["id"]).any())
    if has_versions:
        words += (
            "; to compare by relevance, judge the versions too: repeat each judgment for the "
            "documents of the same origin"
        )
    return words


def _compared_pairs(
    collection: Collection,
    groups: Groups,
    judgments: Judgments,
    pairs: Sequence[Pair],
    *,
    origins: Ints,
) -> list[ComparedPair]:
    """Return the pairs of groups with their twins."""
    judged = judgments.judged_groups(groups)
    relevant = judgments.frame().filter(pl.Series(judgments.group >= 0))
    compared = []
    for pair in pairs:
        a, b = pair
        has_judgments = {a, b} <= judged
        rows = twin_rows(collection, groups, pair)
        compared.append(
            ComparedPair(
                names=pair,
                numbers=(groups.names.index(a), groups.names.index(b)),
                twins=TwinPairs.from_rows(pair, rows, judgments, origins),
                has_judgments=has_judgments,
                are_twins=has_judgments and are_twins(collection, groups, pair, relevant),
            )
        )
    return compared

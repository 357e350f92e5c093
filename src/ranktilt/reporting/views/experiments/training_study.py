"""The document of a training study (Askari et al.): what rankers learn from each side's documents.

A *ranker* is a *body* (a pretrained model) that was trained on the documents of one *side*, such as
human answers (the *reference*); every body is trained on each side. An *evaluation* is the
effectiveness of all rankers on one collection. A *tilt* is how far a ranker favours one side's
documents, by Relative Δ. A *change* is the difference of two rankers of one body. *Seeds* are
trainings of the same ranker with other random numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.groups import ALL
from ranktilt.errors import counted
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnSpec,
    Document,
    Figure,
    PageBlocks,
    Row,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import (
    change_cell,
    decimal,
    estimate_cell,
    number_cell,
    number_cells,
    percent,
    signed,
    with_commas,
)
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.training_study import study_meaning, study_sentences
from ranktilt.reporting.sentences.verdicts import INTERVAL_CAUTION, significance_star
from ranktilt.reporting.views.readings import change_chart
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.equivalence import t_interval
from ranktilt.training.study_result import (
    AnswerOverlap,
    Evaluation,
    Kind,
    SeedValues,
    TrainedRanker,
    TrainingStudy,
)


def view(study: TrainingStudy) -> Document:
    """Return the document of a training study."""
    sections = [section for section in _sections(study) if section.blocks]
    sentences = [Sentence(text, emphasis="strong") for text in study_sentences(study)]
    notes = [note.sentence for note in study.notes]
    return Document(
        kind=titled("Training study on", study.spec),
        headline=headline(study),
        sections=tuple(sections),
        sentences=tuple(sentences),
        meaning=study_meaning(study),
        first_figure=PageBlocks(make=partial(_first_figure, study)),
        legend=tuple(_legend(study)),
        notes=tuple(notes),
    )


def _sections(study: TrainingStudy) -> Iterator[Section]:
    """Yield every section, also those that have no blocks in this study."""

    def evaluation_section(name: str, title: str, *kinds: Kind, short_title: str) -> Section:
        tables = tuple(_evaluation_tables(study.of_kind(*kinds), title))
        return Section(name, title, blocks=tables, short_title=short_title)

    yield evaluation_section(
        "effectiveness",
        "Effectiveness on each collection",
        "supervised",
        "zero-shot",
        short_title="Effectiveness",
    )
    yield _tilt_section(study)
    yield _domain_section(study)
    yield evaluation_section(
        "first-stage", "What BM25 finds, by split and side", "first stage", short_title="BM25"
    )
    yield evaluation_section(
        "seen",
        "Queries of the training, whose labels it did not learn from",
        "seen",
        short_title="Training queries",
    )
    yield _overlap_section(study)
    yield _curve_section(study)
    yield _seed_section(study)
    yield provenance(study.spec, tuple(note.sentence for note in study.notes))


def _first_figure(study: TrainingStudy) -> Iterator[IntervalChart]:
    """Draw differences in effectiveness and tilt of rankers that were trained on two sides."""
    changes: list[Change] = []
    labels: dict[int, str] = {}
    for body, new, old in study.contrasts:
        for evaluation in study.of_kind("supervised", "zero-shot"):
            change = evaluation.difference(new, old, study.primary)
            if change is not None:
                labels[id(change)] = f"{body}, {evaluation.name}"
                changes.append(change)
        for change in study.moved(new):
            labels[id(change)] = f"{body}, tilt"
            changes.append(change)
    if not changes:
        return
    _, new, old = study.contrasts[0]
    sides = " minus ".join(name.rpartition("trained on ")[2] for name in (new, old))
    chart = change_chart(
        changes, lambda change: labels[id(change)], title=f"{study.primary}: trained on {sides}"
    )
    if chart is not None:
        yield chart


def _legend(study: TrainingStudy) -> Iterator[str]:
    """Yield sentences on the marks, on Relative Δ, and on how intervals were computed."""
    spec = study.spec
    yield (
        "In %. † significantly better than every other ranker of the table or domain and BM25: "
        "corrected p < .05 by the paired t test (Bonferroni over all its pairs of rankers and "
        "measures); ‡ by the inversion of the bootstrap interval (Holm)."
    )
    if study.tilts:
        yield (
            f"Relative Δ: + favours {study.reference}, on the answers of both sides; * "
            "corrected p < .05 (Holm, random labels)."
        )
    yield from (f"Body already tuned for {tuned}: {body}." for body, tuned in study.tuned.items())
    yield f"Intervals: bootstrap over queries, {spec['resamples']:,} resamples. {INTERVAL_CAUTION}"


def _mean_cells(evaluation: Evaluation, ranker: str, domain: str = ALL) -> Iterator[Cell]:
    """Yield a ranker's mean on each measure, marked where it is better than all other rankers.

    The marks are those of two tests: † of the paired t test, ‡ of the bootstrap interval.
    """
    for measure in evaluation.measures:
        marks = ""
        if evaluation.best(ranker, measure, domain):
            marks += "†"
        if evaluation.best(ranker, measure, domain, test="interval"):
            marks += "‡"
        yield estimate_cell(evaluation.mean(ranker, measure, domain), percent, marks)


def _measure_columns(measures: Iterable[str]) -> tuple[Column, ...]:
    """Return the column of rankers, and one for each measure."""
    return name_column("ranker"), *map(Column, measures)


def _evaluation_tables(evaluations: Sequence[Evaluation], caption: str) -> Iterator[Table]:
    """Yield a table for each list of measures, of all evaluations that have these measures."""
    for measures in dict.fromkeys(evaluation.measures for evaluation in evaluations):
        rows = list[Row]()
        for evaluation in evaluations:
            if evaluation.measures == measures:
                rows += _evaluation_rows(evaluation)
        yield Table(
            caption,
            _measure_columns(measures),
            tuple(rows),
            group_titles=("collection",),
            collapsed=True,
        )


def _evaluation_rows(evaluation: Evaluation) -> Iterator[Row]:
    """Yield a row for each ranker, below the name of the collection."""
    queries = counted(evaluation.queries, "query", "queries")
    heading = f"{evaluation.name} ({queries}, depth {evaluation.depth:,})"
    for ranker in evaluation.rankers:
        yield Row((Cell(ranker), *_mean_cells(evaluation, ranker)), (heading,))


def _tilt_section(study: TrainingStudy) -> Section:
    """Return the section on the tilt of every ranker, and its difference between two sides."""
    measures = list(dict.fromkeys(tilt.measure for tilt in study.tilts))
    rows = list[Row]()
    for run, a, b in dict.fromkeys((tilt.run, tilt.a, tilt.b) for tilt in study.tilts):
        tilts = [tilt for tilt in study.tilts if (tilt.run, tilt.a, tilt.b) == (run, a, b)]
        rows.append(_tilt_row(study, run, tilts, measures))
        changes = [
            change
            for change in study.tilt_changes
            if (change.run, change.a, change.b) == (run, a, b)
        ]
        if changes:
            difference = Cell(f"minus trained on {study.reference}", emphasis="quiet")
            rows.append(Row((difference, *(change_cell(change, "quiet") for change in changes))))
    note = (
        f"In %; + favours {study.reference}. Minus: the paired difference in points. "
        "* corrected p < .05 (Holm)."
    )
    caption = "Relative Δ on the answers of both sides"
    table = Table(caption, _measure_columns(measures), tuple(rows), note, collapsed=True)
    title = "What training on either side does to the source bias"
    return Section("tilt", title, blocks=(table,) if rows else (), short_title="Tilt")


def _tilt_row(
    study: TrainingStudy, run: str, tilts: Sequence[Effect], measures: Sequence[str]
) -> Row:
    """Return the row of one ranker's Relative Δ, with an empty cell for a measure without one.

    A run's name also has the seed, which only matters where there are several.
    """
    has_several_seeds = len({ranker.seed for ranker in study.rankers}) > 1
    ranker_names = {ranker.run: ranker.name for ranker in study.rankers}
    name = run if has_several_seeds else ranker_names.get(run, run)
    cells = dict.fromkeys(measures, Cell(""))
    for tilt in tilts:
        cells[tilt.measure] = estimate_cell(
            tilt, signed, significance_star(tilt), neutral=tilt.neutral
        )
    return Row((Cell(name), *cells.values()), rule=True)


def _domain_section(study: TrainingStudy) -> Section:
    """Return the section on effectiveness by domain of queries (Table 3 of Askari et al.)."""
    tables = tuple(
        _domain_table(study, evaluation)
        for evaluation in study.of_kind("supervised")
        if len(evaluation.groups) > 1
    )
    title = "Effectiveness in each domain"
    return Section("domains", title, blocks=tables, short_title="Domains")


def _domain_table(study: TrainingStudy, evaluation: Evaluation) -> Table:
    """Return the table of one collection by domain, with differences of rankers below means."""
    rows = list[Row]()
    for domain in evaluation.groups:
        for ranker in evaluation.rankers:
            rows.append(Row((Cell(ranker), *_mean_cells(evaluation, ranker, domain)), (domain,)))
        rows += _difference_rows(study, evaluation, domain)
    return Table(
        caption=f"{evaluation.name}, by domain",
        columns=_measure_columns(evaluation.measures),
        rows=tuple(rows),
        note="In %, differences in points. * corrected p < .05. "
        "All tests are corrected in each domain.",
        group_titles=("domain",),
        collapsed=True,
    )


def _difference_rows(study: TrainingStudy, evaluation: Evaluation, domain: str) -> Iterator[Row]:
    """Yield the rows of differences between two rankers of a body, trained on two sides."""
    for body, new, old in study.contrasts:
        changes = [
            evaluation.difference(new, old, measure, domain) for measure in evaluation.measures
        ]
        if any(changes):
            name = Cell(_difference_name(body, new, old), emphasis="quiet")
            cells = (change_cell(change, "quiet") if change else Cell("") for change in changes)
            yield Row((name, *cells), (domain,))


def _difference_name(body: str, new: str, old: str) -> str:
    """Name a difference of two rankers of one body: ``minilm, llm minus human``.

    The names of rankers are ``minilm trained on llm`` and ``minilm trained on human``.
    """
    prefix = f"{body} trained on "
    return f"{body}, {new.removeprefix(prefix)} minus {old.removeprefix(prefix)}"


def _overlap_section(study: TrainingStudy) -> Section:
    """Return the section on the share of a query's words that occur in an answer to it."""
    statistics = {
        "mean": "mean",
        "lowest quarter below": "low",
        "median": "median",
        "highest quarter above": "high",
    }
    columns: tuple[ColumnSpec, ...] = (
        (name_column("answers"), attrgetter("source")),
        ("judged pairs", number_cells("pairs", with_commas)),
        *((title, partial(_overlap_cell, field=field)) for title, field in statistics.items()),
    )
    note = "Askari et al. find 25.5 % in human and 34.6 % in ChatGPT's answers."
    table = make_table(
        "Words of a query that stand in an answer to it, in %", study.overlaps, columns, note=note
    )
    return Section("overlap", "Shared words", blocks=(table,) if study.overlaps else ())


def _overlap_cell(overlap: AnswerOverlap, field: str) -> Cell:
    """Return the cell of a statistic of the overlaps, such as their mean."""
    return number_cell(getattr(overlap, field), percent)


def _curve_section(study: TrainingStudy) -> Section:
    """Return the section on effectiveness by the number of documents that were learned from."""
    blocks: list[Any] = []
    for evaluation in study.of_kind("curve"):
        blocks += _evaluation_tables([evaluation], "Trained on a number of documents")
        blocks.append(PageBlocks(make=partial(_curve_figure, study, evaluation)))
    return Section("curve", "Augmentation", blocks=tuple(blocks))


def _curve_figure(study: TrainingStudy, evaluation: Evaluation) -> Iterator[Figure]:
    """Yield the figure of effectiveness by the number of documents.

    It has a line for each body and number of the reference's documents, and a point for each number
    of further documents.
    """
    trained_rankers = {ranker.name: ranker for ranker in study.rankers}
    series: dict[str, list[Point]] = {}
    for name in evaluation.rankers:
        if name not in trained_rankers:
            continue
        further, line = _training_size(trained_rankers[name], study.reference)
        series.setdefault(line, []).append(_curve_point(evaluation, name, study.primary, further))
    if not series:
        return
    for points in series.values():
        points.sort(key=attrgetter("x"))
    has_several_seeds = any(len(seeds.values) > 1 for seeds in evaluation.seeds)
    units = "seeds (Student's t)" if has_several_seeds else "queries (bootstrap)"
    yield Figure(
        f"Augmentation: {study.primary} by documents learned from",
        f"Bars: 95 % intervals over {units}.",
        lines(series, x="further documents learned from", y=f"{study.primary}, %"),
    )


def _training_size(ranker: TrainedRanker, reference: str) -> tuple[float, str]:
    """Return the number of documents of other sides that a ranker learned from, and its line.

    The name of the line has the number of documents of the reference.
    """
    counts = dict(ranker.limits)
    reference_count = counts.pop(reference, 0)
    return float(sum(counts.values())), f"{ranker.body}, {reference_count:,} {reference}"


def _curve_point(evaluation: Evaluation, ranker: str, measure: str, x: float) -> Point:
    """Return the point of a ranker at `x`, its number of further documents.

    Its interval is over seeds where there are enough of them, and over queries otherwise.
    """
    mean = evaluation.mean(ranker, measure)
    low, high = mean.low, mean.high
    for seeds in evaluation.seeds:
        is_of_ranker = (seeds.ranker, seeds.measure) == (ranker, measure)
        if is_of_ranker and len(seeds.values) >= FEWEST_ROWS:
            low, high = t_interval(np.array(seeds.values))
    return Point(
        x=x,
        value=100 * mean.value,
        low=100 * low,
        high=100 * high,
        label=f"{percent(mean.value)} % [{percent(low)}, {percent(high)}] at {x:g}",
    )


def _seed_section(study: TrainingStudy) -> Section:
    """Return the section on the means of rankers that were trained with several seeds."""
    rows = list[Row]()
    for evaluation in study.evaluations:
        rows += [
            _seeds_row(evaluation, seeds) for seeds in evaluation.seeds if len(seeds.values) > 1
        ]
    columns = (
        name_column("ranker"),
        text_column("collection"),
        text_column("measure"),
        Column("mean"),
        Column("standard deviation"),
        Column("trainings"),
    )
    table = Table("What other seeds give, in %", columns, tuple(rows), audience="page")
    return Section("seeds", "Spread over seeds", blocks=(table,) if rows else ())


def _seeds_row(evaluation: Evaluation, seeds: SeedValues) -> Row:
    """Return the row of a ranker's trainings with different seeds."""
    deviation = Cell(decimal(100 * seeds.deviation, 2), seeds.deviation)
    return Row(
        (
            Cell(seeds.ranker),
            Cell(evaluation.name),
            Cell(seeds.measure),
            number_cell(seeds.mean, percent),
            deviation,
            Cell(", ".join(map(percent, seeds.values))),
        )
    )

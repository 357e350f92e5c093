"""A training study (Askari et al.): every ranker on every collection and domain, and its tilt."""

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
from ranktilt.reporting.sentences.verdicts import ONE_AT_A_TIME, mark
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
    """Yield every section, those without blocks too."""

    def evaluated(name: str, title: str, *kinds: Kind, short: str) -> Section:
        tables = tuple(_tables(study.of_kind(*kinds), title))
        return Section(name, title, blocks=tables, short_title=short)

    yield evaluated(
        "effectiveness",
        "Effectiveness on each collection",
        "supervised",
        "zero-shot",
        short="Effectiveness",
    )
    yield _tilts(study)
    yield _domains(study)
    yield evaluated(
        "first-stage", "What BM25 finds, by split and side", "first stage", short="BM25"
    )
    yield evaluated(
        "seen",
        "Queries of the training, whose labels it did not learn from",
        "seen",
        short="Training queries",
    )
    yield _overlaps(study)
    yield _curve(study)
    yield _spread(study)
    yield provenance(study.spec, tuple(note.sentence for note in study.notes))


def _first_figure(study: TrainingStudy) -> Iterator[IntervalChart]:
    """Draw what learning from another side changes: effectiveness, and the tilt."""
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
    """Yield what numbers mean."""
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
    yield f"Intervals: bootstrap over queries, {spec['resamples']:,} resamples. {ONE_AT_A_TIME}"


def _means(evaluation: Evaluation, ranker: str, group: str = ALL) -> Iterator[Cell]:
    """Return a ranker's cells, marked where it is better than all others."""
    for measure in evaluation.measures:
        marks = ""
        if evaluation.best(ranker, measure, group):
            marks += "†"
        if evaluation.best(ranker, measure, group, test="interval"):
            marks += "‡"
        yield estimate_cell(evaluation.mean(ranker, measure, group), percent, marks)


def _columns(measures: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns of a table of measures."""
    return name_column("ranker"), *map(Column, measures)


def _tables(evaluations: Sequence[Evaluation], caption: str) -> Iterator[Table]:
    """Lay evaluations of one kind out, in one table for each choice of measures."""
    for measures in dict.fromkeys(evaluation.measures for evaluation in evaluations):
        rows = list[Row]()
        for evaluation in evaluations:
            if evaluation.measures == measures:
                rows += _rows(evaluation)
        yield Table(
            caption, _columns(measures), tuple(rows), group_titles=("collection",), collapsed=True
        )


def _rows(evaluation: Evaluation) -> Iterator[Row]:
    """Yield the rows of one collection."""
    queries = counted(evaluation.queries, "query", "queries")
    name = f"{evaluation.name} ({queries}, depth {evaluation.depth:,})"
    for ranker in evaluation.rankers:
        yield Row((Cell(ranker), *_means(evaluation, ranker)), (name,))


def _tilts(study: TrainingStudy) -> Section:
    """Lay out Relative Δ of every training, and how another side's documents move it."""
    measures = list(dict.fromkeys(tilt.measure for tilt in study.tilts))
    rows = list[Row]()
    for run, a, b in dict.fromkeys((tilt.run, tilt.a, tilt.b) for tilt in study.tilts):
        tilts = [tilt for tilt in study.tilts if (tilt.run, tilt.a, tilt.b) == (run, a, b)]
        rows.append(_tilt_row(study, run, tilts, measures))
        changes = [c for c in study.tilt_changes if (c.run, c.a, c.b) == (run, a, b)]
        if changes:
            difference = Cell(f"minus trained on {study.reference}", emphasis="quiet")
            rows.append(Row((difference, *(change_cell(change, "quiet") for change in changes))))
    note = (
        f"In %; + favours {study.reference}. Minus: the paired difference in points. "
        "* corrected p < .05 (Holm)."
    )
    caption = "Relative Δ on the answers of both sides"
    table = Table(caption, _columns(measures), tuple(rows), note, collapsed=True)
    title = "What training on either side does to the source bias"
    return Section("tilt", title, blocks=(table,) if rows else (), short_title="Tilt")


def _tilt_row(
    study: TrainingStudy, run: str, tilts: Sequence[Effect], measures: Sequence[str]
) -> Row:
    """Return the row of one ranker's Relative Δ."""
    has_seeds = len({ranker.seed for ranker in study.rankers}) > 1
    names = {ranker.run: ranker.name for ranker in study.rankers}
    name = run if has_seeds else names.get(run, run)
    cells = dict.fromkeys(measures, Cell(""))
    for tilt in tilts:
        cells[tilt.measure] = estimate_cell(tilt, signed, mark(tilt))
    return Row((Cell(name), *cells.values()), rule=True)


def _domains(study: TrainingStudy) -> Section:
    """Lay out Table 3 of the paper, with the differences of rankers below their means."""
    tables = tuple(
        _domain_table(study, evaluation)
        for evaluation in study.of_kind("supervised")
        if len(evaluation.groups) > 1
    )
    title = "Effectiveness in each domain"
    return Section("domains", title, blocks=tables, short_title="Domains")


def _domain_table(study: TrainingStudy, evaluation: Evaluation) -> Table:
    """Return the table of one collection by domain."""
    rows = list[Row]()
    for group in evaluation.groups:
        for ranker in evaluation.rankers:
            rows.append(Row((Cell(ranker), *_means(evaluation, ranker, group)), (group,)))
        rows += _difference_rows(study, evaluation, group)
    return Table(
        caption=f"{evaluation.name}, by domain",
        columns=_columns(evaluation.measures),
        rows=tuple(rows),
        note="In %, differences in points. * corrected p < .05. "
        "All tests are corrected in each domain.",
        group_titles=("domain",),
        collapsed=True,
    )


def _difference_rows(study: TrainingStudy, evaluation: Evaluation, group: str) -> Iterator[Row]:
    """Yield the rows of differences between training sources."""
    for body, new, old in study.contrasts:
        changes = [evaluation.difference(new, old, m, group) for m in evaluation.measures]
        if any(changes):
            difference = Cell(_difference_name(body, new, old), emphasis="quiet")
            cells = (change_cell(change, "quiet") if change else Cell("") for change in changes)
            yield Row((difference, *cells), (group,))


def _difference_name(body: str, new: str, old: str) -> str:
    """Name a difference of two rankers of one body: ``minilm, llm minus human``."""
    front = f"{body} trained on "
    return f"{body}, {new.removeprefix(front)} minus {old.removeprefix(front)}"


def _overlaps(study: TrainingStudy) -> Section:
    """Lay out how many words of queries their answers share."""
    shares = {
        "mean": "mean",
        "lowest quarter below": "low",
        "median": "median",
        "highest quarter above": "high",
    }
    columns: tuple[ColumnSpec, ...] = (
        (name_column("answers"), attrgetter("source")),
        ("judged pairs", number_cells("pairs", with_commas)),
        *((title, partial(_share, field=field)) for title, field in shares.items()),
    )
    note = "Askari et al. find 25.5 % in human and 34.6 % in ChatGPT's answers."
    table = make_table(
        "Words of a query that stand in an answer to it, in %", study.overlaps, columns, note=note
    )
    return Section("overlap", "Shared words", blocks=(table,) if study.overlaps else ())


def _share(overlap: AnswerOverlap, field: str) -> Cell:
    """Print a share."""
    return number_cell(getattr(overlap, field), percent)


def _curve(study: TrainingStudy) -> Section:
    """Lay out effectiveness by the number of documents that were learned from.

    The figure has a line for each body and number of the reference's documents.
    """
    blocks: list[Any] = []
    for evaluation in study.of_kind("curve"):
        blocks += _tables([evaluation], "Trained on a number of documents")
        blocks.append(PageBlocks(make=partial(_curve_figure, study, evaluation)))
    return Section("curve", "Augmentation", blocks=tuple(blocks))


def _curve_figure(study: TrainingStudy, evaluation: Evaluation) -> Iterator[Figure]:
    """Yield the figures of effectiveness by the number of documents."""
    trained = {ranker.name: ranker for ranker in study.rankers}
    series: dict[str, list[Point]] = {}
    for name in evaluation.rankers:
        if name not in trained:
            continue
        x, line = _augmented(trained[name], study.reference)
        series.setdefault(line, []).append(_curve_point(evaluation, name, study.primary, x))
    if not series:
        return
    for points in series.values():
        points.sort(key=attrgetter("x"))
    has_seeds = any(len(seeds.values) > 1 for seeds in evaluation.seeds)
    units = "seeds (Student's t)" if has_seeds else "queries (bootstrap)"
    yield Figure(
        f"Augmentation: {study.primary} by documents learned from",
        f"Bars: 95 % intervals over {units}.",
        lines(series, x="further documents learned from", y=f"{study.primary}, %"),
    )


def _augmented(ranker: TrainedRanker, reference: str) -> tuple[float, str]:
    """Return how many documents of other sides a ranker learned from, and the name of its line."""
    further = dict(ranker.limits)
    reference_count = further.pop(reference, 0)
    return float(sum(further.values())), f"{ranker.body}, {reference_count:,} {reference}"


def _curve_point(evaluation: Evaluation, ranker: str, measure: str, x: float) -> Point:
    """Return a ranker, as a point of a curve."""
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


def _spread(study: TrainingStudy) -> Section:
    """Lay out the means that other seeds give."""
    rows = list[Row]()
    for evaluation in study.evaluations:
        rows += [_seeds_row(evaluation, s) for s in evaluation.seeds if len(s.values) > 1]
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

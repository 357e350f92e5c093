"""A training study: every ranker on every collection, per domain, its tilt, and what lies behind (Askari et al.)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL
from ranktilt.errors import counted
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnOf,
    Document,
    Figure,
    PageBlocks,
    Row,
    Section,
    Sentence,
    Table,
    named,
    tabulated,
    worded,
)
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import count, decimal, estimate, moved, number, percent, signed
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
    TrainedRanker,
    TrainingStudy,
)


def view(study: TrainingStudy) -> Document:
    """Return what is said of a training study."""

    def evaluated(name: str, title: str, *kinds: Kind, short: str) -> Section:
        tables = tuple(_tables(study.of_kind(*kinds), title))
        return Section(name, title, (), tables, short_title=short)

    sections = (
        evaluated(
            "effectiveness",
            "Effectiveness on each collection",
            "supervised",
            "zero-shot",
            short="Effectiveness",
        ),
        _tilts(study),
        _domains(study),
        evaluated("first-stage", "What BM25 finds, by split and side", "first stage", short="BM25"),
        evaluated(
            "seen",
            "Queries of the training, whose labels it did not learn from",
            "seen",
            short="Training queries",
        ),
        _overlaps(study),
        _curve(study),
        _spread(study),
        provenance(study.spec, tuple(note.sentence for note in study.notes)),
    )
    return Document(
        kind=titled("Training study on", study.spec),
        headline=headline(study),
        sections=tuple(one for one in sections if one.blocks),
        sentences=tuple(
            Sentence(sentence, emphasis="strong") for sentence in study_sentences(study)
        ),
        meaning=study_meaning(study),
        hero=PageBlocks(make=partial(_hero, study)),
        legend=tuple(_legend(study)),
        notes=tuple(note.sentence for note in study.notes),
    )


def _hero(study: TrainingStudy) -> Iterator[IntervalChart]:
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
    sides = " less ".join(name.rpartition("trained on ")[2] for name in (new, old))
    chart = change_chart(
        changes, lambda change: labels[id(change)], title=f"{study.primary}: trained on {sides}"
    )
    if chart is not None:
        yield chart


def _legend(study: TrainingStudy) -> Iterator[str]:
    spec = study.spec
    yield (
        "In %. † significantly better than every other ranker of the table or domain and BM25: "
        "corrected p < .05 by "
        "the paired t test (Bonferroni over all its pairs of rankers and measures); ‡ by the "
        "inversion of the "
        "bootstrap interval (Holm)."
    )
    if study.tilts:
        yield (
            f"Relative Δ: + favours {study.reference}, on the answers of both sides; * "
            "corrected p < .05 (Holm, random "
            "labels)."
        )
    yield from (f"Body already tuned for {tuned}: {body}." for body, tuned in study.tuned.items())
    yield f"Intervals: bootstrap over queries, {spec['resamples']:,} resamples. {ONE_AT_A_TIME}"


def _means(one: Evaluation, ranker: str, group: str = ALL) -> Iterator[Cell]:
    """A ranker's cells, marked where it is better than all others."""
    for measure in one.measures:
        tests = (
            ("†", one.best(ranker, measure, group)),
            ("‡", one.best(ranker, measure, group, test="interval")),
        )
        mean, marks = (
            one.mean(ranker, measure, group),
            "".join(sign for sign, best in tests if best),
        )
        yield estimate(mean, percent, marks)


def _columns(measures: Iterable[str]) -> tuple[Column, ...]:
    return named("ranker"), *map(Column, measures)


def _tables(found: Sequence[Evaluation], caption: str) -> Iterator[Table]:
    """One table of evaluations of one kind; those with other measures in one of their own."""
    for measures in dict.fromkeys(one.measures for one in found):
        rows = list[Row]()
        for one in (one for one in found if one.measures == measures):
            name = f"{one.name} ({counted(one.queries, 'query', 'queries')}, depth {one.depth:,})"
            rows += [Row((Cell(ranker), *_means(one, ranker)), (name,)) for ranker in one.rankers]
        yield Table(caption, _columns(measures), tuple(rows), groups=("collection",), folded=True)


def _tilts(study: TrainingStudy) -> Section:
    """Relative Δ of every training, and how another side's documents move it."""
    measures = list(dict.fromkeys(tilt.measure for tilt in study.tilts))
    several = len({one.seed for one in study.rankers}) > 1
    names = {one.run: one.run if several else one.name for one in study.rankers}
    rows = []
    for run, a, b in dict.fromkeys((tilt.run, tilt.a, tilt.b) for tilt in study.tilts):
        of = {
            tilt.measure: tilt for tilt in study.tilts if (tilt.run, tilt.a, tilt.b) == (run, a, b)
        }
        cells = (estimate(of[m], signed, mark(of[m])) if m in of else Cell("") for m in measures)
        rows.append(Row((Cell(names.get(run, run)), *cells), rule=True))
        changes = [c for c in study.tilt_changes if (c.run, c.a, c.b) == (run, a, b)]
        if changes:
            less = Cell(f"less trained on {study.reference}", emphasis="quiet")
            rows.append(Row((less, *(moved(change, "quiet") for change in changes))))
    note = f"In %; + favours {study.reference}. Less: the paired difference in points. * corrected p < .05 (Holm)."
    caption = "Relative Δ on the answers of both sides"
    table = Table(caption, _columns(measures), tuple(rows), note, folded=True)
    title = "What training on either side does to the source bias"
    return Section("tilt", title, (), (table,) if rows else (), short_title="Tilt")


def _domains(study: TrainingStudy) -> Section:
    """Table 3 of the paper, and the differences as a forest."""
    blocks: list[Any] = []
    for one in study.of_kind("supervised"):
        if len(one.groups) == 1:
            continue
        rows = []
        for group in one.groups:
            rows += [
                Row((Cell(ranker), *_means(one, ranker, group)), (group,)) for ranker in one.rankers
            ]
            for body, new, old in study.contrasts:
                found = [one.difference(new, old, measure, group) for measure in one.measures]
                if any(found):
                    less = Cell(_less(body, new, old), emphasis="quiet")
                    rows.append(
                        Row(
                            (less, *(moved(c, "quiet") if c else Cell("") for c in found)), (group,)
                        )
                    )
        note = "In %, differences in points. * corrected p < .05. All tests are corrected in each domain."
        blocks.append(
            Table(
                f"{one.name}, by domain",
                _columns(one.measures),
                tuple(rows),
                note,
                groups=("domain",),
                folded=True,
            )
        )
    title = "Effectiveness in each domain"
    return Section("domains", title, (), tuple(blocks), short_title="Domains")


def _less(body: str, new: str, old: str) -> str:
    """Name a difference of two rankers of one body: ``minilm, llm less human``."""
    front = f"{body} trained on "
    return f"{body}, {new.removeprefix(front)} less {old.removeprefix(front)}"


def _overlaps(study: TrainingStudy) -> Section:
    """The words that queries and answers share."""
    shares = {
        "mean": "mean",
        "lowest quarter below": "low",
        "median": "median",
        "highest quarter above": "high",
    }
    columns: tuple[ColumnOf, ...] = (
        (named("answers"), lambda o: o.source),
        ("judged pairs", lambda o: number(o.pairs, count)),
        *((title, partial(_share, field=field)) for title, field in shares.items()),
    )
    note = "Askari et al. find 25.5 % in human and 34.6 % in ChatGPT's answers."
    table = tabulated(
        "Words of a query that stand in an answer to it, in %", study.overlaps, columns, note=note
    )
    return Section("overlap", "Shared words", (), (table,) if study.overlaps else ())


def _share(overlap: AnswerOverlap, field: str) -> Cell:
    return number(getattr(overlap, field), percent)


def _curve(study: TrainingStudy) -> Section:
    """Effectiveness by the number of documents that were learned from, a line a body and number of the reference's."""
    blocks: list[Any] = []
    for one in study.of_kind("curve"):
        blocks += _tables([one], "Trained on a number of documents")
        blocks.append(PageBlocks(make=partial(_curve_figure, study, one)))
    return Section("curve", "Augmentation", (), tuple(blocks))


def _curve_figure(study: TrainingStudy, evaluation: Evaluation) -> Iterator[Figure]:
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
    of = "seeds (Student's t)" if has_seeds else "queries (bootstrap)"
    yield Figure(
        f"Augmentation: {study.primary} by documents learned from",
        f"Bars: 95 % intervals over {of}.",
        lines(series, x="further documents learned from", y=f"{study.primary}, %"),
    )


def _augmented(one: TrainedRanker, reference: str) -> tuple[float, str]:
    """How many documents of other sides a ranker learned from, and on which line it stands."""
    limits = dict(one.limits)
    own = limits.pop(reference, 0)
    return float(sum(limits.values())), f"{one.body}, {own:,} {reference}"


def _curve_point(one: Evaluation, ranker: str, measure: str, x: float) -> Point:
    mean = one.mean(ranker, measure)
    values = next((s.values for s in one.seeds if (s.ranker, s.measure) == (ranker, measure)), ())
    low, high = (
        t_interval(np.array(values)) if len(values) >= FEWEST_ROWS else (mean.low, mean.high)
    )
    said = f"{percent(mean.value)} % [{percent(low)}, {percent(high)}] at {x:g}"
    return Point(x, 100 * mean.value, 100 * low, 100 * high, said)


def _spread(study: TrainingStudy) -> Section:
    """What other seeds give."""
    found = [(one.name, s) for one in study.evaluations for s in one.seeds if len(s.values) > 1]
    columns = (
        (named("ranker"), lambda of: of[1].ranker),
        (worded("collection"), lambda of: of[0]),
        (worded("measure"), lambda of: of[1].measure),
        ("mean", lambda of: number(of[1].mean, percent)),
        ("standard deviation", lambda of: Cell(decimal(100 * of[1].deviation, 2), of[1].deviation)),
        ("trainings", lambda of: ", ".join(map(percent, of[1].values))),
    )
    table = tabulated("What other seeds give, in %", found, columns, only="page")
    return Section("seeds", "Spread over seeds", (), (table,) if found else ())

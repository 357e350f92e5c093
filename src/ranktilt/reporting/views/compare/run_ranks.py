"""Runs that are ranked: values, intervals of ranks, and letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import isnan
from operator import attrgetter

from ranktilt.auditing.comparison.ranks.order import MOST_LETTERS
from ranktilt.auditing.comparison.ranks.result import (
    RankedRun,
    RunDifference,
    RunOrder,
    RunRanks,
)
from ranktilt.data.notes.run_ranks import RankedQuestionsDiffer
from ranktilt.errors import join_words
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnOf,
    Document,
    Emphasis,
    PageBlocks,
    Row,
    Section,
    Sentence,
    Table,
    name_column,
    tabulated,
    text_column,
)
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import (
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import DASH, estimate, number, p_value
from ranktilt.reporting.provenance import MOST_NAMED, provenance
from ranktilt.reporting.sentences.comparison.run_ranks import (
    question_words,
    ranks_findings,
    ranks_meaning,
    ranks_next_commands,
)

_MOST_IN_TEXT = 30
"""Runs of an order that text lists; a page lists all."""
_MOST_DRAWN = 12
"""Runs that the figure draws; of more the first and the last."""
_RUNS_AT_ENDS = 4
"""Number of runs that are drawn at each end of a long order."""
_MOST_PAIRS = 500
"""Pairs of runs that a page lists; a file lists all."""


def view(ranks: RunRanks) -> Document:
    """Return the document of ranked runs."""
    orders = ranks.orders()
    about_questions = [note for note in ranks.notes if isinstance(note, RankedQuestionsDiffer)]
    sentences = [Sentence(finding.sentence, emphasis="strong") for finding in ranks_findings(ranks)]
    sentences += [
        Sentence(note.sentence.removeprefix("warning: "), "warning") for note in about_questions
    ]
    numbers = Section(
        "result", "Every number", blocks=tuple(_tables(orders)), short_title="Numbers"
    )
    notes = tuple(note.sentence for note in ranks.notes if note not in about_questions)
    return Document(
        kind=f"Ranks of {_subject(ranks.runs)}",
        headline=headline(ranks),
        sections=(numbers, provenance(ranks.spec)),
        sentences=tuple(sentences),
        meaning=ranks_meaning(ranks),
        first_figure=PageBlocks(make=partial(_first_figure, orders)),
        next_steps=ranks_next_commands(ranks),
        legend=tuple(_legend(ranks, orders)),
        notes=notes,
        names=ranks.runs,
    )


def _subject(runs: Sequence[str]) -> str:
    return join_words(list(runs)) if len(runs) <= MOST_NAMED else f"{len(runs)} runs"


def _tables(orders: Sequence[RunOrder]) -> Iterator[Table]:
    """Yield the table of ranks, of many runs the first for text; then that of pairs, for pages."""
    count = max(len(order.ranks) for order in orders)
    table = _rank_table(chain.from_iterable(order.ranks for order in orders))
    if count <= _MOST_IN_TEXT:
        yield table
    else:
        first_ranks = chain.from_iterable(order.ranks[:_MOST_IN_TEXT] for order in orders)
        yield replace(_rank_table(first_ranks), audience="text")
        yield replace(table, audience="page", collapsed=True)
    if sum(len(order.differences) for order in orders) <= _MOST_PAIRS:
        yield _pair_table(orders)


def _rank_table(ranks: Iterable[RankedRun]) -> Table:
    """Return the table of values, intervals of ranks, and letters."""
    columns: list[ColumnOf] = [
        (name_column("run"), attrgetter("run")),
        (Column("value"), _value),
        (Column("95 % interval", drop_order=1), _interval),
        (Column("rank", hint="interval of ranks"), _rank),
        (text_column("letters"), attrgetter("letters")),
    ]
    rows = list(ranks)
    if not any(rank.letters for rank in rows):
        columns = columns[:-1]
    return tabulated(
        "Runs, the highest value first",
        rows,
        columns,
        group=lambda rank: (_group_title(rank),),
        groups=("question",),
    )


def _group_title(rank: RankedRun) -> str:
    """Name the question that runs are ranked by, with its groups and unit."""
    return _with_unit(rank, question_words(rank))


def _scale_title(rank: RankedRun) -> str:
    """Name the question, whose groups stand at the ends of the scale, with its unit."""
    return _with_unit(rank, rank.estimand.title)


def _with_unit(rank: RankedRun, title: str) -> str:
    unit = "%" if rank.is_effectiveness else rank.estimand.suffix.strip()
    title = f"effectiveness, {title}" if rank.is_effectiveness else title
    return f"{title}, {unit}" if unit else title


def _amount(rank: RankedRun, value: float) -> str:
    """Print a value of a question without its unit."""
    sign = False if rank.is_effectiveness else None
    return rank.estimand.amount(value, sign=sign)


def _value(rank: RankedRun) -> Cell:
    return Cell(_amount(rank, rank.value), rank.value)


def _interval(rank: RankedRun) -> Cell:
    """Print the interval of a value; a dash where it is undefined."""
    # In a column of its own, so that many runs take one line each.
    return Cell(_interval_words(rank) or DASH)


def _interval_words(rank: RankedRun) -> str:
    """Print the interval of a value; nothing where it is undefined."""
    if isnan(rank.low) or isnan(rank.high):
        return ""
    return f"[{_amount(rank, rank.low)}, {_amount(rank, rank.high)}]"


def rank_words(rank: RankedRun) -> str:
    """Print an interval of ranks: ``2–4``, or ``2`` where there is one."""
    if rank.best_rank == rank.worst_rank:
        return str(rank.best_rank)
    return f"{rank.best_rank}–{rank.worst_rank}"


def _rank(rank: RankedRun) -> Cell:
    return Cell(rank_words(rank), float(rank.best_rank))


def _pair_table(orders: Iterable[RunOrder]) -> Table:
    """Return the table of the differences between every two runs."""
    columns = (
        name_column("higher"),
        name_column("lower"),
        Column("difference"),
        Column("corrected p"),
    )
    rows = list[Row]()
    for order in orders:
        group = (_group_title(order.first),)
        rows += [Row(_pair_cells(order.first, pair), group) for pair in order.differences]
    return Table(
        "Every two runs",
        columns,
        tuple(rows),
        groups=("question",),
        collapsed=True,
        audience="page",
    )


def _pair_cells(rank: RankedRun, difference: RunDifference) -> tuple[Cell, ...]:
    """Return the row of a difference, printed as the ranked values are."""
    amount = partial(rank.estimand.amount, sign=True)
    look: Emphasis = "strong" if difference.is_shown else ""
    return (
        Cell(difference.higher),
        Cell(difference.lower),
        estimate(difference, amount, emphasis=look),
        number(difference.p_corrected, p_value),
    )


def _first_figure(orders: Sequence[RunOrder]) -> Iterator[IntervalChart]:
    """Draw each run's values, in the order of the primary question, with their ranks."""
    drawn_orders = [orders[0], *(order for order in orders[1:] if order.first.is_effectiveness)]
    runs = [rank.run for rank in orders[0].ranks]
    if len(runs) > _MOST_DRAWN:
        runs = [*runs[:_RUNS_AT_ENDS], *runs[-_RUNS_AT_ENDS:]]
    rows = []
    for run in runs:
        readings = tuple(_reading_of(order, run) for order in drawn_orders)
        rows.append(IntervalRow(label=run, readings=readings))
    says = "Line: 95 % interval of the value. Filled: no other run is shown to be higher."
    if orders[0].first.letters:
        says += " Runs that share a letter cannot be distinguished."
    if len(runs) < len(orders[0].ranks):
        says += f" Drawn: the first and last {_RUNS_AT_ENDS} of {len(orders[0].ranks)} runs."
    yield interval_chart(
        "Where each run stands",
        says,
        rows,
        scales=[_scale_title(order.first) for order in drawn_orders],
        sides=_scale_sides(orders[0].first),
        last_rows_on_phone=2,
    )


def _scale_sides(rank: RankedRun) -> tuple[str, str]:
    """Name what lies to the left and to the right on the scale of a question."""
    if rank.a == rank.b or not rank.estimand.sided:
        return ("", "")
    return (f"◀ {rank.b}", f"{rank.a} ▶")


def _reading_of(order: RunOrder, run: str) -> IntervalReading | None:
    """Return a run's value with its ranks; None where it has none."""
    for rank in order.ranks:
        if rank.run == run:
            return _reading(rank)
    return None


def _reading(rank: RankedRun) -> IntervalReading:
    scale = rank.estimand.scale
    text = f"{_amount(rank, rank.value)} {_interval_words(rank)}".rstrip()
    # Effectiveness has no neutral value, and 0 would stretch its scale.
    is_sided = not rank.is_effectiveness and rank.estimand.sided
    mark = IntervalMark(value=scale * rank.value, low=scale * rank.low, high=scale * rank.high)
    return IntervalReading(
        mark=mark,
        text=f"{text}, rank {rank_words(rank)} {rank.letters}".rstrip(),
        # Plain for runs that may be first, lighter for others.
        tone="" if rank.best_rank == 1 else "unsure",
        neutral=scale * rank.neutral if is_sided else float("nan"),
    )


def _legend(ranks: RunRanks, orders: Sequence[RunOrder]) -> Iterator[str]:
    """Say how ranks and letters are read, and how they were tested."""
    spec, count = ranks.spec, max(len(order.ranks) for order in orders)
    if count > _MOST_IN_TEXT:
        yield f"The table has the first {_MOST_IN_TEXT} of {count} runs; -o and --json have all."
    yield (
        "Rank: from 1 + the number of runs shown to be higher, to the number of runs − those "
        "shown to be lower. All ranks on one question hold together with 95 % confidence."
    )
    if any(rank.letters for rank in ranks.ranks):
        yield "Letters: runs that share one cannot be distinguished."
    if any(not rank.letters for rank in ranks.ranks):
        yield f"No letters where more than {MOST_LETTERS} would be needed."
    if any(order.first.is_effectiveness for order in orders):
        yield "Effectiveness: means over all relevant documents, in %."
    neutral = {rank.neutral for rank in ranks.ranks if not rank.is_effectiveness}
    if len(neutral) > 1:
        yield "Tilts are ordered by value − neutral value, which differs between the runs."
    correction = str(spec["correction"]).capitalize()
    yield (
        f"Tests: the larger p of the paired interval ({spec['resamples']:,} resamples of the "
        f"queries) and of a paired t test, {correction} over all pairs of runs on one question."
    )

"""The document of ranked runs: which runs may be first, with an interval of ranks for each run.

Runs are put in order on one or several *questions*: effectiveness, or a tilt between two groups
(how far a run favours one of them; *neutral* is the value that favours neither).
An *interval of ranks* holds the places that a run may have, given which differences are shown.
Runs that share a *letter* cannot be distinguished.
"""

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
    ColumnSpec,
    Document,
    Emphasis,
    PageBlocks,
    Row,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
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
from ranktilt.reporting.numbers import DASH, estimate_cell, number_cell, p_value
from ranktilt.reporting.provenance import MOST_NAMED, provenance
from ranktilt.reporting.sentences.comparison.run_ranks import (
    question_words,
    ranks_findings,
    ranks_meaning,
    ranks_next_commands,
)

_MOST_IN_TEXT = 30
"""Most runs that text lists on each question; a page lists all."""
_MOST_DRAWN = 12
"""Most runs that the figure draws all of; of more it draws the first and the last."""
_RUNS_AT_ENDS = 4
"""Number of runs that are drawn at either end of a longer order."""
_MOST_PAIRS = 500
"""Most pairs of runs that a page lists; a result's file always has all."""


def view(ranks: RunRanks) -> Document:
    """Return the document of ranked runs."""
    orders = ranks.orders()
    # A reader of the headline must know of it, so this note is printed among the findings.
    question_notes = [note for note in ranks.notes if isinstance(note, RankedQuestionsDiffer)]
    sentences = [Sentence(finding.sentence, emphasis="strong") for finding in ranks_findings(ranks)]
    sentences += [
        Sentence(note.sentence.removeprefix("warning: "), "warning") for note in question_notes
    ]
    numbers = Section(
        "result", "Every number", blocks=tuple(_tables(orders)), short_title="Numbers"
    )
    notes = tuple(note.sentence for note in ranks.notes if note not in question_notes)
    return Document(
        kind=f"Ranks of {_run_words(ranks.runs)}",
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


def _run_words(runs: Sequence[str]) -> str:
    """Name the runs; give the number of many."""
    return join_words(list(runs)) if len(runs) <= MOST_NAMED else f"{len(runs)} runs"


def _tables(orders: Sequence[RunOrder]) -> Iterator[Table]:
    """Yield the table of ranks and, for pages, the table of pairs of runs.

    Of many runs text has the first, and a page all.
    """
    run_count = max(len(order.ranks) for order in orders)
    table_of_all = _rank_table(chain.from_iterable(order.ranks for order in orders))
    if run_count <= _MOST_IN_TEXT:
        yield table_of_all
    else:
        first_ranks = chain.from_iterable(order.ranks[:_MOST_IN_TEXT] for order in orders)
        yield replace(_rank_table(first_ranks), audience="text")
        yield replace(table_of_all, audience="page", collapsed=True)
    if sum(len(order.differences) for order in orders) <= _MOST_PAIRS:
        yield _pair_table(orders)


def _rank_table(ranks: Iterable[RankedRun]) -> Table:
    """Return the table of values, intervals of ranks, and letters."""
    columns: list[ColumnSpec] = [
        (name_column("run"), attrgetter("run")),
        (Column("value"), _value_cell),
        (Column("95 % interval", drop_order=1), _interval_cell),
        (Column("rank", hint="interval of ranks"), _rank_cell),
    ]
    ranks = list(ranks)
    if any(rank.letters for rank in ranks):
        columns.append((text_column("letters"), attrgetter("letters")))
    return make_table(
        "Runs, the highest value first",
        ranks,
        columns,
        group_of=lambda rank: (_group_title(rank),),
        group_titles=("question",),
    )


def _group_title(rank: RankedRun) -> str:
    """Name the question that runs are ranked by, with its groups and unit."""
    return _with_unit(rank, question_words(rank))


def _scale_title(rank: RankedRun) -> str:
    """Name the question with its unit, but without its groups: the ends of the scale name them."""
    return _with_unit(rank, rank.estimand.title)


def _with_unit(rank: RankedRun, question: str) -> str:
    """Return a question's name, followed by the unit of its values."""
    if rank.is_effectiveness:
        return f"effectiveness, {question}, %"
    unit = rank.estimand.suffix.strip()
    return f"{question}, {unit}" if unit else question


def _amount(rank: RankedRun, value: float) -> str:
    """Print a value of a question without its unit."""
    sign = False if rank.is_effectiveness else None  # None: the estimand decides
    return rank.estimand.amount(value, sign=sign)


def _value_cell(rank: RankedRun) -> Cell:
    """Return the cell of a run's value."""
    return Cell(_amount(rank, rank.value), rank.value)


def _interval_cell(rank: RankedRun) -> Cell:
    """Return the cell of a value's interval; a dash where it is undefined."""
    # In its own column, so that each of many runs takes a single line.
    return Cell(_interval_text(rank) or DASH)


def _interval_text(rank: RankedRun) -> str:
    """Print the interval of a value in brackets; empty where it is undefined."""
    if isnan(rank.low) or isnan(rank.high):
        return ""
    return f"[{_amount(rank, rank.low)}, {_amount(rank, rank.high)}]"


def rank_words(rank: RankedRun) -> str:
    """Print an interval of ranks: ``2–4``, or ``2`` where only that rank is possible."""
    if rank.best_rank == rank.worst_rank:
        return str(rank.best_rank)
    return f"{rank.best_rank}–{rank.worst_rank}"


def _rank_cell(rank: RankedRun) -> Cell:
    """Return the cell of a run's interval of ranks, by which a page sorts from the best rank on."""
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
        rows += [
            Row(_difference_cells(order.first, difference), group)
            for difference in order.differences
        ]
    return Table(
        "Every two runs",
        columns,
        tuple(rows),
        group_titles=("question",),
        collapsed=True,
        audience="page",
    )


def _difference_cells(rank: RankedRun, difference: RunDifference) -> tuple[Cell, ...]:
    """Return the cells of a pair of runs, in the unit of the question that `rank` answers."""
    amount = partial(rank.estimand.amount, sign=True)
    emphasis: Emphasis = "strong" if difference.is_shown else ""
    return (
        Cell(difference.higher),
        Cell(difference.lower),
        estimate_cell(difference, amount, neutral=0.0, emphasis=emphasis),
        number_cell(difference.p_corrected, p_value),
    )


def _first_figure(orders: Sequence[RunOrder]) -> Iterator[IntervalChart]:
    """Draw the values and ranks of the runs, in the order of the primary question.

    The primary question is the first; effectiveness has a second scale.
    """
    primary_order, *further_orders = orders
    effectiveness = [order for order in further_orders if order.first.is_effectiveness]
    drawn_orders = [primary_order, *effectiveness]
    runs = [rank.run for rank in primary_order.ranks]
    if len(runs) > _MOST_DRAWN:
        runs = [*runs[:_RUNS_AT_ENDS], *runs[-_RUNS_AT_ENDS:]]
    rows = []
    for run in runs:
        readings = tuple(_reading_of(order, run) for order in drawn_orders)
        rows.append(IntervalRow(label=run, readings=readings))
    description = "Line: 95 % interval of the value. Filled: no other run is shown to be higher."
    if primary_order.first.letters:
        description += " Runs that share a letter cannot be distinguished."
    run_count = len(primary_order.ranks)
    if len(runs) < run_count:
        description += f" Drawn: the first and last {_RUNS_AT_ENDS} of {run_count} runs."
    yield interval_chart(
        "Where each run stands",
        description,
        rows,
        scale_titles=[_scale_title(order.first) for order in drawn_orders],
        sides=_scale_sides(primary_order.first),
        last_rows_on_phone=2,
    )


def _scale_sides(rank: RankedRun) -> tuple[str, str]:
    """Name the groups that values to the left and to the right favour; empty without groups."""
    if rank.a == rank.b or not rank.estimand.sided:
        return ("", "")
    return (f"◀ {rank.b}", f"{rank.a} ▶")


def _reading_of(order: RunOrder, run: str) -> IntervalReading | None:
    """Return a run's reading on the scale of one question; None where the run has no value."""
    for rank in order.ranks:
        if rank.run == run:
            return _rank_reading(rank)
    return None


def _rank_reading(rank: RankedRun) -> IntervalReading:
    """Return a run's value and interval, with its ranks and letters in the text."""
    scale = rank.estimand.scale
    text = f"{_amount(rank, rank.value)} {_interval_text(rank)}".rstrip()
    # Effectiveness has no neutral value, and 0 would stretch its scale.
    is_sided = not rank.is_effectiveness and rank.estimand.sided
    mark = IntervalMark(value=scale * rank.value, low=scale * rank.low, high=scale * rank.high)
    return IntervalReading(
        mark=mark,
        text=f"{text}, rank {rank_words(rank)} {rank.letters}".rstrip(),
        # Runs that may be first are filled, others are rings.
        tone="" if rank.best_rank == 1 else "unsure",
        neutral=scale * rank.neutral if is_sided else float("nan"),
    )


def _legend(ranks: RunRanks, orders: Sequence[RunOrder]) -> Iterator[str]:
    """Say how ranks and letters are read, and how they were tested."""
    spec, run_count = ranks.spec, max(len(order.ranks) for order in orders)
    if run_count > _MOST_IN_TEXT:
        all_runs = f"{run_count} runs; -o and --json have all"
        yield f"The table has the first {_MOST_IN_TEXT} of {all_runs}."
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
    neutral_values = {rank.neutral for rank in ranks.ranks if not rank.is_effectiveness}
    if len(neutral_values) > 1:
        yield "Tilts are ordered by value − neutral value, which differs between the runs."
    correction = str(spec["correction"]).capitalize()
    yield (
        f"Tests: the larger p of the paired interval ({spec['resamples']:,} resamples of the "
        f"queries) and of a paired t test, {correction} over all pairs of runs on one question."
    )

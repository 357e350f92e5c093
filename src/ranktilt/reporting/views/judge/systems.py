"""Systems under judges: families that are favoured, orders, and what few human labels repair."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.judging.records import (
    Corrected,
    Estimate,
    FamilyPreference,
    Fate,
    RankAgreement,
    SystemPair,
    SystemScore,
)
from ranktilt.judging.result import JudgeAudit
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    Figure,
    PageBlocks,
    Section,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.figures.charts import Mark, ScatterPoint, forest, scatter
from ranktilt.reporting.numbers import (
    DASH,
    decimal,
    estimate_cell,
    estimate_cells,
    fixed,
    number_cell,
    number_cells,
    p_value,
    signed,
    with_commas,
)
from ranktilt.reporting.sentences.judging.judge import PREFERENCE_TONES
from ranktilt.reporting.tones import Tone

_PLOTTED = 4
"""Most pairs of a judge and a measure for which a plot of the systems is drawn."""
_POINTS, _RANKS, _Z = range(3)
"""Position of each scale in `FamilyPreference.scales`."""


def families_section(audit: JudgeAudit) -> Iterator[Section]:
    """Show which families of systems a judge favours; nothing where no family is given."""
    if not audit.preferences:
        return
    columns: list[ColumnSpec] = [
        (name_column("family"), _family_name),
        (text_column("measure", drop_order=1), attrgetter("measure")),
        ("points", partial(_scale_cell, index=_POINTS, factor=100, digits=1)),
        ("ranks", partial(_scale_cell, index=_RANKS, factor=100, digits=1)),
        ("z", partial(_scale_cell, index=_Z, factor=1, digits=2)),
        (Column("plain difference", drop_order=2), _plain_cell),
        (Column("slope", drop_order=3), _slope_cell),
        (text_column("verdict"), _preference_cell),
    ]
    table = make_table(
        "Preference for a family, beyond the judge's general errors",
        audit.preferences,
        columns,
        group_of=lambda row: (row.judge,),
        group_titles=("judge",),
    )
    figure = PageBlocks(make=partial(_family_figure, audit))
    yield Section("families", "Does a judge favour a family of systems?", blocks=(figure, table))


def _family_name(row: FamilyPreference) -> str:
    """Name a family, with the number of its systems."""
    return f"{row.family} ({row.systems} of {row.systems + row.others})"


def _plain_cell(row: FamilyPreference) -> Cell:
    """Print the difference in differences that ignores the judge's general errors."""
    return number_cell(100 * row.scales[_POINTS].plain, signed)


def _slope_cell(row: FamilyPreference) -> Cell:
    """Print how far apart the judge sees systems of one family that differ by 1 under humans."""
    return number_cell(row.scales[_POINTS].slope, fixed)


def _preference_cell(row: FamilyPreference) -> Cell:
    """Print whether the judge favours the family."""
    return Cell(row.verdict, tone=PREFERENCE_TONES[row.verdict])


def _family_figure(audit: JudgeAudit) -> Iterator[Figure]:
    """Yield the figure of preferences."""
    marks: dict[str, list[Mark]] = {}
    for row in audit.preferences:
        preference = row.scales[_POINTS].preference
        mark = Mark(
            label=f"{row.family}, {row.measure}",
            value=100 * preference.value,
            low=100 * preference.low,
            high=100 * preference.high,
            tone=PREFERENCE_TONES[row.verdict],
        )
        marks.setdefault(row.judge, []).append(mark)
    # The legend's words for the tones of `PREFERENCE_TONES`.
    names: dict[Tone, str] = {
        "first": "favours it",
        "second": "disfavours it",
        "good": "level",
        "warning": "depends on scale",
        "unsure": "inconclusive",
    }
    drawing = forest(marks, x="preference, points", names=names)
    yield Figure(
        "Preference for a family",
        "Right of 0: the judge raises the family beyond its general errors.",
        drawing,
    )


def _scale_cell(row: FamilyPreference, index: int, factor: float, digits: int) -> Cell:
    """Print a preference on one scale, with a star if it is significant after correction."""
    scale = row.scales[index]
    star = "*" if scale.p_corrected < ALPHA else ""
    return estimate_cell(_times(scale.preference, factor), partial(signed, digits=digits), star)


def _times(value: Estimate, factor: float) -> Estimate:
    """Multiply an estimate by a factor."""
    return Estimate(factor * value.value, factor * value.low, factor * value.high)


def systems_section(audit: JudgeAudit) -> Iterator[Section]:
    """Show how a judge orders systems; nothing where there are no systems."""
    if not audit.rank_agreements:
        return
    plots = PageBlocks(make=partial(_plots, audit))
    blocks: list[Block] = [_orders(audit), plots, _system_table(audit)]
    if any(pair.fate != "agrees" for pair in audit.system_pairs):
        blocks.append(_changed_table(audit))
    yield Section("systems", "Do systems change places?", blocks=tuple(blocks))


def _system_table(audit: JudgeAudit) -> Table:
    """Return the table of systems."""
    columns: list[ColumnSpec] = [(name_column("system"), attrgetter("run"))]
    if any(row.family for row in audit.systems):
        columns.append((text_column("family"), attrgetter("family")))
    columns += [
        ("human", number_cells("human", decimal, scale=100)),
        ("judge", number_cells("judged", decimal, scale=100)),
        ("rank", lambda row: f"{row.human_rank:g} → {row.judged_rank:g}"),
        ("raised", lambda row: estimate_cell(_times(row.relative, 100), signed)),
    ]
    return make_table(
        "Systems under both judges, in %",
        audit.systems,
        columns,
        group_of=_judge_and_measure,
        group_titles=("judge", "measure"),
        collapsed=True,
        note="Raised: beyond the mean system.",
    )


def _changed_table(audit: JudgeAudit) -> Table:
    """Return the table of significant differences that human grades and a judge do not share."""
    columns: list[ColumnSpec] = [
        (name_column("better"), attrgetter("better")),
        (text_column("than"), attrgetter("worse")),
        ("human", number_cells("human", signed, scale=100)),
        (Column("p", drop_order=1), number_cells("human_p", p_value)),
        ("judge", number_cells("judged", signed, scale=100)),
        (Column("p", drop_order=1), number_cells("judged_p", p_value)),
        (text_column("under the judge"), _fate_cell),
    ]
    return make_table(
        "Significant differences that do not hold under both judges",
        [pair for pair in audit.system_pairs if pair.fate != "agrees"],
        columns,
        group_of=_judge_and_measure,
        group_titles=("judge", "measure"),
        collapsed=True,
    )


def _fate_cell(pair: SystemPair) -> Cell:
    """Print what becomes of a significant difference under the judge."""
    return Cell(pair.fate, tone="bad" if pair.fate == "reversed" else "")


def _judge_and_measure(row: Any) -> tuple[str, ...]:
    """Return the judge and the measure of a row."""
    return row.judge, row.measure


def _orders(audit: JudgeAudit) -> Table:
    """Return the table of how judges order systems."""
    fates = defaultdict[tuple[str, ...], Counter[Fate]](Counter)
    for pair in audit.system_pairs:
        fates[_judge_and_measure(pair)][pair.fate] += 1

    def fate(name: Fate) -> Callable[[RankAgreement], Cell]:
        return lambda row: number_cell(fates[_judge_and_measure(row)][name], with_commas)

    columns: list[ColumnSpec] = [
        (name_column("judge"), attrgetter("judge")),
        (text_column("measure"), attrgetter("measure")),
        ("τ-b", estimate_cells("tau", fixed)),
        (Column("τ-a", drop_order=2), number_cells("tau_a.value", fixed)),
        (Column("τ_AP", drop_order=1), estimate_cells("tau_ap", fixed)),
        (Column("RBO", drop_order=1), estimate_cells("rbo", fixed)),
        (
            Column("bias", drop_order=3, hint="judge − human, mean of systems"),
            number_cells("bias", signed, scale=100),
        ),
        (Column("slope", drop_order=3), number_cells("slope", fixed)),
        ("agree", fate("agrees")),
        ("lost", fate("lost")),
        ("reversed", fate("reversed")),
        ("new", fate("new")),
    ]
    return make_table(
        "Order of systems, and differences of two that are significant",
        sorted(audit.rank_agreements, key=_tau_or_lowest, reverse=True),
        columns,
    )


def _tau_or_lowest(row: RankAgreement) -> float:
    """Return τ-b, which is at least −1; −2 for one that is undefined, so that it sorts last."""
    return -2.0 if np.isnan(row.tau.value) else row.tau.value


def _plots(audit: JudgeAudit) -> Iterator[Figure]:
    """Draw how far a judge raises each system over its human mean, as Bland & Altman do."""
    for agreement in audit.rank_agreements[:_PLOTTED]:
        key = _judge_and_measure(agreement)
        pairs = [
            (pair.better, pair.worse)
            for pair in audit.system_pairs
            if pair.fate == "reversed" and _judge_and_measure(pair) == key
        ]
        reversed_runs = set(chain.from_iterable(pairs))
        rows = [row for row in audit.systems if _judge_and_measure(row) == key]
        points = [_point(row, is_reversed=row.run in reversed_runs) for row in rows]
        names: dict[Tone, str] = {"": "keeps its place", "bad": "in a reversed pair"}
        drawing = scatter(
            points,
            x=f"human {agreement.measure}, %",
            y="raised beyond the mean system, points",
            margin=0.0,  # a system has no margin, so that no strip is drawn
            names=names,
        )
        yield Figure(
            f"{agreement.judge}: systems raised and lowered, {agreement.measure}",
            "Above 0 the judge raises a system more than the mean one. Bars: 95 % intervals over "
            "queries.",
            drawing,
            half=True,
            collapsed=True,
        )


def _point(row: SystemScore, *, is_reversed: bool) -> ScatterPoint:
    """Return a system, as a point in the plane of human and judge's values."""
    mark = Mark(
        label=row.run,
        value=100 * row.relative.value,
        low=100 * row.relative.low,
        high=100 * row.relative.high,
        tone="bad" if is_reversed else "",
    )
    return ScatterPoint(mark=mark, x=100 * row.human)


def few_labels_section(audit: JudgeAudit) -> Iterator[Section]:
    """Show means corrected by few human labels; nothing where none were given."""
    if not audit.corrected:
        return
    # `Corrected.powered` is the prediction-powered estimate (PPI++; Angelopoulos et al., 2023): the
    # mean of the judge's labels, corrected by the few human ones. Its λ is the judge's weight.
    columns: list[ColumnSpec] = [
        (name_column("system"), _compared_systems),
        ("humans alone", lambda row: _percent(row.human_only)),
        ("judge alone", number_cells("judge_only", decimal, scale=100)),
        ("both", lambda row: _percent(row.powered)),
    ]
    if any(np.isfinite(row.truth) for row in audit.corrected):
        columns.append(("all humans", number_cells("truth", decimal, scale=100)))
    columns += [
        (Column("λ", drop_order=2), number_cells("weight", fixed)),
        (Column("correlation", drop_order=1), number_cells("correlation", fixed)),
        ("worth, queries", _worth),
        (text_column("decided", drop_order=3), _decided),
    ]
    table = make_table(
        "Means and differences of neighbours from few human labels, in %",
        audit.corrected,
        columns,
        group_of=_judge_and_measure,
        group_titles=("judge", "measure"),
        has_rule=lambda row: bool(row.minus),  # a line above each difference of two systems
        note="A difference whose interval includes 0 is not decided and corrects nothing.",
    )
    yield Section("few-labels", "What do few human labels repair?", blocks=(table,))


def _compared_systems(row: Corrected) -> str:
    """Name a system, or the two whose difference a row is about."""
    return f"{row.run} − {row.minus}" if row.minus else row.run


def _worth(row: Corrected) -> str:
    """Write the number of queries with human labels, and how many they are worth with the judge.

    It would take that many human queries to get the same variance without the judge.
    """
    return f"{row.queries} → {fixed(row.effective, 0)}"


def _percent(value: Estimate) -> Cell:
    """Print an estimate in percent."""
    return estimate_cell(_times(value, 100), decimal)


def _decided(row: Corrected) -> str:
    """Say whether the interval of a difference excludes 0; nothing for a mean."""
    if not row.minus:
        return ""
    if np.isnan(row.powered.low):
        return DASH
    return "yes" if row.powered.low > 0 or row.powered.high < 0 else "no"

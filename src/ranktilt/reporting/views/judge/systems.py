"""Sections of an audit of judges on systems: the retrieval runs that they compare.

A *judge* is a model that grades documents in place of humans, whose effectiveness values of each
system are compared with those by human grades. A *family* is the systems that are built on models
of one maker. A *pair* is two systems, and its *fate* is what becomes under the judge of a
difference that is significant by human grades. *Few labels*: human labels of some queries correct
the judge's means.
"""

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
    Estimate,
    FamilyPreference,
    Fate,
    PoweredEstimate,
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

_MOST_PLOTS = 4
"""Most combinations of a judge and a measure for which systems are plotted."""
_POINTS, _RANKS, _Z = range(3)
"""Index of each scale in `FamilyPreference.scales`: values in points, ranks, standard scores."""


def families_section(audit: JudgeAudit) -> Iterator[Section]:
    """Yield the section on families that a judge favours; nothing where no family is given."""
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
    """Name a family, with its number of systems and that of all systems."""
    return f"{row.family} ({row.systems} of {row.systems + row.others})"


def _plain_cell(row: FamilyPreference) -> Cell:
    """Return the cell of the difference in differences that ignores the judge's general errors."""
    return number_cell(100 * row.scales[_POINTS].plain, signed)


def _slope_cell(row: FamilyPreference) -> Cell:
    """Return the cell of the slope: what a difference of 1 by human grades is under the judge."""
    return number_cell(row.scales[_POINTS].slope, fixed)


def _preference_cell(row: FamilyPreference) -> Cell:
    """Return the cell of the verdict: whether the judge favours the family."""
    return Cell(row.verdict, tone=PREFERENCE_TONES[row.verdict])


def _family_figure(audit: JudgeAudit) -> Iterator[Figure]:
    """Yield the figure of each judge's preference for each family, in points."""
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
    tone_names: dict[Tone, str] = {
        "first": "favours it",
        "second": "disfavours it",
        "good": "level",
        "warning": "depends on scale",
        "unsure": "inconclusive",
    }
    drawing = forest(marks, x="preference, points", tone_names=tone_names)
    yield Figure(
        "Preference for a family",
        "Right of 0: the judge raises the family beyond its general errors.",
        drawing,
    )


def _scale_cell(row: FamilyPreference, index: int, factor: float, digits: int) -> Cell:
    """Return the cell of a preference on the scale at an index, times a factor.

    It has a star where the preference is significant after correction.
    """
    scale = row.scales[index]
    star = "*" if scale.p_corrected < ALPHA else ""
    return estimate_cell(_times(scale.preference, factor), partial(signed, digits=digits), star)


def _times(estimate: Estimate, factor: float) -> Estimate:
    """Multiply an estimate and its interval by a factor."""
    return Estimate(factor * estimate.value, factor * estimate.low, factor * estimate.high)


def systems_section(audit: JudgeAudit) -> Iterator[Section]:
    """Yield the section on how judges order systems; nothing where there are no systems."""
    if not audit.rank_agreements:
        return
    plots = PageBlocks(make=partial(_plots, audit))
    blocks: list[Block] = [_order_table(audit), plots, _system_table(audit)]
    if any(pair.fate != "agrees" for pair in audit.system_pairs):
        blocks.append(_disagreement_table(audit))
    yield Section("systems", "Do systems change places?", blocks=tuple(blocks))


def _system_table(audit: JudgeAudit) -> Table:
    """Return the table of each system's means and ranks, by human grades and under a judge."""
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


def _disagreement_table(audit: JudgeAudit) -> Table:
    """Return the table of differences of systems that are significant for one side alone.

    The sides are human grades and a judge's; differences of opposite signs are here too.
    """
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
    """Return the cell of what becomes of a significant difference under the judge."""
    return Cell(pair.fate, tone="bad" if pair.fate == "reversed" else "")


def _judge_and_measure(row: Any) -> tuple[str, ...]:
    """Return the judge and the measure of a row, whose type depends on the table."""
    return row.judge, row.measure


def _order_table(audit: JudgeAudit) -> Table:
    """Return the table of how the order of systems by each judge agrees with that by humans.

    Its last columns count the pairs of systems by their *fate*: what becomes under the judge of a
    difference that is significant by human grades.
    """
    fate_counts = defaultdict[tuple[str, ...], Counter[Fate]](Counter)
    for pair in audit.system_pairs:
        fate_counts[_judge_and_measure(pair)][pair.fate] += 1

    def fate_cells(fate: Fate) -> Callable[[RankAgreement], Cell]:
        return lambda row: number_cell(fate_counts[_judge_and_measure(row)][fate], with_commas)

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
        ("agree", fate_cells("agrees")),
        ("lost", fate_cells("lost")),
        ("reversed", fate_cells("reversed")),
        ("new", fate_cells("new")),
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
    """Draw by how much a judge raises each system, against its mean by human grades.

    Such a plot of a difference against a level is Bland and Altman's (1986).
    """
    for agreement in audit.rank_agreements[:_MOST_PLOTS]:
        key = _judge_and_measure(agreement)
        pairs = [
            (pair.better, pair.worse)
            for pair in audit.system_pairs
            if pair.fate == "reversed" and _judge_and_measure(pair) == key
        ]
        reversed_runs = set(chain.from_iterable(pairs))
        rows = [row for row in audit.systems if _judge_and_measure(row) == key]
        points = [_system_point(row, is_reversed=row.run in reversed_runs) for row in rows]
        drawing = scatter(
            points,
            x=f"human {agreement.measure}, %",
            y="raised beyond the mean system, points",
            margin=0.0,  # no band of what counts as level: nothing is tested here
            tone_names={"": "keeps its place", "bad": "in a reversed pair"},
        )
        yield Figure(
            f"{agreement.judge}: systems raised and lowered, {agreement.measure}",
            "Above 0 the judge raises a system more than the mean one. Bars: 95 % intervals over "
            "queries.",
            drawing,
            half=True,
            collapsed=True,
        )


def _system_point(row: SystemScore, *, is_reversed: bool) -> ScatterPoint:
    """Return the point of a system: its mean by human grades, and by how much it is raised.

    `is_reversed` tells whether the judge reverses its difference from another system.
    """
    mark = Mark(
        label=row.run,
        value=100 * row.relative.value,
        low=100 * row.relative.low,
        high=100 * row.relative.high,
        tone="bad" if is_reversed else "",
    )
    return ScatterPoint(mark=mark, x=100 * row.human)


def few_labels_section(audit: JudgeAudit) -> Iterator[Section]:
    """Yield the section on means corrected by few human labels; nothing where none were given."""
    if not audit.corrected:
        return
    # `PoweredEstimate.powered` is the prediction-powered estimate (PPI++; Angelopoulos et al.,
    # 2023): the mean of the judge's labels, corrected by the few human ones. Its λ is the judge's
    # weight.
    columns: list[ColumnSpec] = [
        (name_column("system"), _system_words),
        ("humans alone", lambda row: _percent_cell(row.human_only)),
        ("judge alone", number_cells("judge_only", decimal, scale=100)),
        ("both", lambda row: _percent_cell(row.powered)),
    ]
    if any(np.isfinite(row.truth) for row in audit.corrected):
        columns.append(("all humans", number_cells("truth", decimal, scale=100)))
    columns += [
        (Column("λ", drop_order=2), number_cells("weight", fixed)),
        (Column("correlation", drop_order=1), number_cells("correlation", fixed)),
        ("worth, queries", _worth_words),
        (text_column("decided", drop_order=3), _decided_word),
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


def _system_words(row: PoweredEstimate) -> str:
    """Name the system of a mean, or the two systems of a difference."""
    return f"{row.run} − {row.minus}" if row.minus else row.run


def _worth_words(row: PoweredEstimate) -> str:
    """Print the number of queries with human labels, and how many they are worth with the judge.

    Without the judge, it would take that many queries with human labels for the same variance.
    """
    return f"{row.queries} → {fixed(row.effective, 0)}"


def _percent_cell(estimate: Estimate) -> Cell:
    """Return the cell of an estimate from 0 to 1, in percent."""
    return estimate_cell(_times(estimate, 100), decimal)


def _decided_word(row: PoweredEstimate) -> str:
    """Say whether the interval of a difference excludes 0; empty for a mean."""
    if not row.minus:
        return ""
    if np.isnan(row.powered.low):
        return DASH
    return "yes" if row.powered.low > 0 or row.powered.high < 0 else "no"

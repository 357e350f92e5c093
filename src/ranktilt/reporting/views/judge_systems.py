"""Systems under judges: families that are favoured, orders, and what few human labels repair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.judging.result import (
    Corrected,
    Estimate,
    FamilyPreference,
    Fate,
    JudgeAudit,
    RankAgreement,
    SystemScore,
)
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnOf,
    Figure,
    PageBlocks,
    Section,
    Table,
    named,
    tabulated,
    worded,
)
from ranktilt.reporting.figures.charts import Mark, ScatterPoint, forest, scatter
from ranktilt.reporting.numbers import (
    DASH,
    count,
    decimal,
    estimate,
    fixed,
    number,
    p_value,
    signed,
)
from ranktilt.reporting.sentences.judging import PREFERENCE_TONES
from ranktilt.reporting.tones import Tone

_PLOTTED = 4
"""Judges whose systems are drawn."""


def families_section(audit: JudgeAudit) -> Iterator[Section]:
    if not audit.preferences:
        return
    columns: list[ColumnOf] = [
        (
            named("family"),
            lambda row: f"{row.family} ({row.systems} of {row.systems + row.others})",
        ),
        (worded("measure", spare=1), lambda row: row.measure),
        ("points", partial(_scale, place=0, factor=100, digits=1)),
        ("ranks", partial(_scale, place=1, factor=100, digits=1)),
        ("z", partial(_scale, place=2, factor=1, digits=2)),
        (
            Column("plain difference", spare=2),
            lambda row: number(100 * row.scales[0].plain, signed),
        ),
        (Column("slope", spare=3), lambda row: number(row.scales[0].slope, fixed)),
        (worded("verdict"), lambda row: Cell(row.verdict, tone=PREFERENCE_TONES[row.verdict])),
    ]
    table = tabulated(
        "Preference for a family, beyond the judge's general errors",
        audit.preferences,
        columns,
        group=lambda row: (row.judge,),
        groups=("judge",),
    )
    figure = PageBlocks(make=partial(_family_figure, audit))
    yield Section("families", "Does a judge favour a family of systems?", (), (figure, table))


def _family_figure(audit: JudgeAudit) -> Iterator[Figure]:
    marks: dict[str, list[Mark]] = {}
    for row in audit.preferences:
        value, low, high = (100 * end for end in row.scales[0].preference)
        marks.setdefault(row.judge, []).append(
            Mark(f"{row.family}, {row.measure}", value, low, high, PREFERENCE_TONES[row.verdict])
        )
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


def _scale(row: FamilyPreference, place: int, factor: float, digits: int) -> Cell:
    scale = row.scales[place]
    preference = Estimate(*(factor * end for end in scale.preference))
    return estimate(
        preference, partial(signed, digits=digits), "*" if scale.p_corrected < ALPHA else ""
    )


def systems_section(audit: JudgeAudit) -> Iterator[Section]:
    if not audit.rank_agreements:
        return
    blocks: list[Block] = [_orders(audit), PageBlocks(make=partial(_plots, audit))]
    columns: list[ColumnOf] = [
        (named("system"), lambda row: row.run),
        *(
            [(worded("family"), lambda row: row.family)]
            if any(row.family for row in audit.systems)
            else []
        ),
        ("human", lambda row: number(100 * row.human, decimal)),
        ("judge", lambda row: number(100 * row.judged, decimal)),
        ("rank", lambda row: f"{row.human_rank:g} → {row.judged_rank:g}"),
        ("raised", lambda row: estimate(Estimate(*(100 * end for end in row.relative)), signed)),
    ]
    blocks.append(
        tabulated(
            "Systems under both judges, in %",
            audit.systems,
            columns,
            group=_of_judge,
            groups=("judge", "measure"),
            folded=True,
            note="Raised: beyond the mean system.",
        )
    )
    changed = [row for row in audit.system_pairs if row.fate != "agrees"]
    if changed:
        blocks.append(
            tabulated(
                "Significant differences that do not hold under both judges",
                changed,
                [
                    (named("better"), lambda row: row.better),
                    (worded("than"), lambda row: row.worse),
                    ("human", lambda row: number(100 * row.human, signed)),
                    (Column("p", spare=1), lambda row: number(row.human_p, p_value)),
                    ("judge", lambda row: number(100 * row.judged, signed)),
                    (Column("p", spare=1), lambda row: number(row.judged_p, p_value)),
                    (
                        worded("under the judge"),
                        lambda row: Cell(row.fate, tone="bad" if row.fate == "reversed" else ""),
                    ),
                ],
                group=_of_judge,
                groups=("judge", "measure"),
                folded=True,
            )
        )
    yield Section("systems", "Do systems change places?", (), tuple(blocks))


def _of_judge(row: Any) -> tuple[str, ...]:
    return row.judge, row.measure


def _orders(audit: JudgeAudit) -> Table:
    fates = {
        key: Counter(row.fate for row in audit.system_pairs if (row.judge, row.measure) == key)
        for key in {(row.judge, row.measure) for row in audit.rank_agreements}
    }

    def fate(name: Fate) -> Callable[[RankAgreement], Cell]:
        return lambda row: number(fates[row.judge, row.measure][name], count)

    columns: list[ColumnOf] = [
        (named("judge"), lambda row: row.judge),
        (worded("measure"), lambda row: row.measure),
        ("τ-b", lambda row: estimate(row.tau, fixed)),
        (Column("τ-a", spare=2), lambda row: number(row.tau_a.value, fixed)),
        (Column("τ_AP", spare=1), lambda row: estimate(row.tau_ap, fixed)),
        (Column("RBO", spare=1), lambda row: estimate(row.rbo, fixed)),
        (
            Column("bias", spare=3, hint="judge − human, mean of systems"),
            lambda row: number(100 * row.bias, signed),
        ),
        (Column("slope", spare=3), lambda row: number(row.slope, fixed)),
        ("agree", fate("agrees")),
        ("lost", fate("lost")),
        ("reversed", fate("reversed")),
        ("new", fate("new")),
    ]
    return tabulated(
        "Order of systems, and differences of two that are significant",
        sorted(audit.rank_agreements, key=lambda row: -np.nan_to_num(row.tau.value, nan=-2.0)),
        columns,
    )


def _plots(audit: JudgeAudit) -> Iterator[Figure]:
    """Bland & Altman's plot: how far the judge raises each system, over how good it is for humans."""
    for agreement in audit.rank_agreements[:_PLOTTED]:
        key = _of_judge(agreement)
        rows = [row for row in audit.systems if _of_judge(row) == key]
        pairs = [
            pair
            for pair in audit.system_pairs
            if pair.fate == "reversed" and _of_judge(pair) == key
        ]
        turned = {name for pair in pairs for name in (pair.better, pair.worse)}
        points = [_point(row, reversed=row.run in turned) for row in rows]
        names: dict[Tone, str] = {"": "keeps its place", "bad": "in a reversed pair"}
        drawing = scatter(
            points,
            x=f"human {agreement.measure}, %",
            y="raised beyond the mean system, points",
            margin=0.0,
            names=names,
        )
        yield Figure(
            f"{agreement.judge}: systems raised and lowered, {agreement.measure}",
            "Above 0 the judge raises a system more than the mean one. Bars: 95 % intervals over "
            "queries.",
            drawing,
            half=True,
            folded=True,
        )


def _point(row: SystemScore, *, reversed: bool) -> ScatterPoint:
    value, low, high = (100 * end for end in row.relative)
    return ScatterPoint(Mark(row.run, value, low, high, "bad" if reversed else ""), 100 * row.human)


def few_labels_section(audit: JudgeAudit) -> Iterator[Section]:
    if not audit.corrected:
        return
    columns: list[ColumnOf] = [
        (named("system"), lambda row: f"{row.run} − {row.minus}" if row.minus else row.run),
        ("humans alone", lambda row: _percent(row.human_only)),
        ("judge alone", lambda row: number(100 * row.judge_only, decimal)),
        ("both", lambda row: _percent(row.powered)),
        *(
            [("all humans", lambda row: number(100 * row.truth, decimal))]
            if any(np.isfinite(row.truth) for row in audit.corrected)
            else []
        ),
        (Column("λ", spare=2), lambda row: number(row.weight, fixed)),
        (Column("correlation", spare=1), lambda row: number(row.correlation, fixed)),
        ("worth, queries", lambda row: f"{row.queries} → {fixed(row.effective, 0)}"),
        (worded("decided", spare=3), _decided),
    ]
    table = tabulated(
        "Means and differences of neighbours from few human labels, in %",
        audit.corrected,
        columns,
        group=_of_judge,
        groups=("judge", "measure"),
        rule=lambda row: bool(row.minus),
        note="A difference whose interval holds 0 corrects nothing: it is not decided.",
    )
    yield Section("few-labels", "What do few human labels repair?", (), (table,))


def _percent(value: Estimate) -> Cell:
    return estimate(Estimate(*(100 * end for end in value)), decimal)


def _decided(row: Corrected) -> str:
    if not row.minus:
        return ""
    if np.isnan(row.powered.low):
        return DASH
    return "yes" if row.powered.low > 0 or row.powered.high < 0 else "no"

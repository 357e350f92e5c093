"""An audit of judges: who is favoured, whether systems change places, and how far a judge agrees with humans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.errors import counted
from ranktilt.judging.result import (
    GAP_MARGIN,
    Agreement,
    Corrected,
    Estimate,
    FamilyPreference,
    Fate,
    JudgeAudit,
    RankAgreement,
    SystemScore,
)
from ranktilt.measures.margin import half_width
from ranktilt.reporting.document import (
    Block,
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
from ranktilt.reporting.figures.charts import Mark, ScatterPoint, forest, scatter
from ranktilt.reporting.headline import headline
from ranktilt.reporting.numbers import (
    DASH,
    count,
    decimal,
    estimate,
    fixed,
    moved,
    number,
    p_value,
    signed,
)
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.judging import PREFERENCE_TONES, judge_findings
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.verdicts import ONE_AT_A_TIME, sides_named
from ranktilt.reporting.tones import VERDICT_TONES, Tone
from ranktilt.reporting.views.audit_tables import confound_table
from ranktilt.statistics.prediction_powered import FEWEST_LABELS

_COEFFICIENTS: tuple[tuple[str, str], ...] = (
    ("exact", "same grade"),
    ("kappa", "κ"),
    ("binary_kappa", "binary κ"),
    ("weighted_kappa", "weighted κ"),
    ("alpha", "α"),
)
_PLOTTED = 4
"""Judges whose systems are drawn."""


def view(audit: JudgeAudit) -> Document:
    """Return what is said of an audit of judges."""
    sections = (
        *_sources(audit),
        *_families(audit),
        *_systems(audit),
        *_repaired(audit),
        *_agreement(audit),
    )
    pair = next(((e.a, e.b) for e in audit.grade_gaps), ())
    return Document(
        kind=f"Audit of {counted(len(audit.judges), 'judge', 'judges')}",
        headline=headline(audit),
        sections=(*sections, provenance(audit.spec, note_sentences(audit.notes))),
        sentences=tuple(
            Sentence(finding.sentence, finding.tone, "strong") for finding in judge_findings(audit)
        ),
        legend=tuple(_legend(audit)),
        notes=note_sentences(audit.notes),
        sides=pair,
    )


def _sources(audit: JudgeAudit) -> Iterator[Section]:
    """Twins that are graded apart, and the tilt of rankers by who judged."""
    blocks = list[Block]()
    if audit.grade_gaps:
        columns: list[ColumnOf] = [
            (
                named("twins"),
                lambda e: "all" if not e.estimand.options else f"human grade {e.estimand.grade}",
            ),
            (
                "grade gap",
                lambda e: estimate(
                    e, partial(signed, digits=3), "*" if e.p_corrected < ALPHA else ""
                ),
            ),
            ("p", lambda e: number(e.p_corrected, p_value)),
            (
                Column("pairs", spare=1),
                lambda e: number(e.details["pairs"], lambda n: count(int(n))),
            ),
            (
                Column("graded higher", spare=2),
                lambda e: number(e.details["higher"], lambda n: count(int(n))),
            ),
            (
                Column("lower", spare=2),
                lambda e: number(e.details["lower"], lambda n: count(int(n))),
            ),
            (
                worded("verdict", spare=3),
                lambda e: e.side(e.verdict(GAP_MARGIN)) or e.verdict(GAP_MARGIN),
            ),
        ]
        rows = sorted(audit.grade_gaps, key=lambda e: audit.judges.index(e.run))
        blocks += [
            PageBlocks(make=partial(_gap_figure, audit)),
            tabulated(
                "Grade gap of twins, in grades",
                rows,
                columns,
                group=lambda e: (e.run,),
                groups=("judge",),
            ),
        ]
    if audit.tilts:
        blocks.append(_tilts(audit))
    if audit.confounds:
        blocks.append(confound_table(audit.confounds))
    if blocks:
        yield Section("sources", "Does a judge favour a source?", (), tuple(blocks))


def _gap_figure(audit: JudgeAudit) -> Iterator[Figure]:
    marks: dict[str, list[Mark]] = {}
    for e in audit.grade_gaps:
        label = f"human grade {e.estimand.grade}" if e.estimand.options else "all twins"  # type: ignore[attr-defined]
        tone = VERDICT_TONES[e.verdict(GAP_MARGIN)]
        marks.setdefault(e.run, []).append(
            Mark(label, e.value, e.low, e.high, tone, detectable=e.detectable)
        )
    first = audit.grade_gaps[0]
    drawing = forest(
        marks,
        x="grade gap",
        margin=half_width(first.estimand, GAP_MARGIN),
        sides=(first.a, first.b),
        names=sides_named((first.a, first.b)),
    )
    yield Figure("Grade gap of twins", f"Right of 0: {first.a} twins are graded higher.", drawing)


def _tilts(audit: JudgeAudit) -> Table:
    columns: list[ColumnOf] = [
        (named("ranker"), lambda one: one.change.run),
        (worded("measure"), lambda one: one.change.measure),
        ("human", lambda one: number(one.change.old, signed)),
        ("judge", lambda one: number(one.change.new, signed)),
        ("difference", lambda one: moved(one.change)),
        (Column("p", spare=1), lambda one: number(one.change.p_corrected, p_value)),
    ]
    return tabulated(
        "Relative Δ of each ranker by who judged, in %",
        audit.tilts,
        columns,
        group=lambda one: (one.judge,),
        groups=("judge",),
    )


def _families(audit: JudgeAudit) -> Iterator[Section]:
    if not audit.preferences:
        return
    columns: list[ColumnOf] = [
        (
            named("family"),
            lambda one: f"{one.family} ({one.systems} of {one.systems + one.others})",
        ),
        (worded("measure", spare=1), lambda one: one.measure),
        ("points", partial(_scale, place=0, factor=100, digits=1)),
        ("ranks", partial(_scale, place=1, factor=100, digits=1)),
        ("z", partial(_scale, place=2, factor=1, digits=2)),
        (
            Column("plain difference", spare=2),
            lambda one: number(100 * one.scales[0].plain, signed),
        ),
        (Column("slope", spare=3), lambda one: number(one.scales[0].slope, fixed)),
        (worded("verdict"), lambda one: Cell(one.verdict, tone=PREFERENCE_TONES[one.verdict])),
    ]
    table = tabulated(
        "Preference for a family, beyond the judge's general errors",
        audit.preferences,
        columns,
        group=lambda one: (one.judge,),
        groups=("judge",),
    )
    figure = PageBlocks(make=partial(_family_figure, audit))
    yield Section("families", "Does a judge favour a family of systems?", (), (figure, table))


def _family_figure(audit: JudgeAudit) -> Iterator[Figure]:
    marks: dict[str, list[Mark]] = {}
    for one in audit.preferences:
        value, low, high = (100 * end for end in one.scales[0].preference)
        marks.setdefault(one.judge, []).append(
            Mark(f"{one.family}, {one.measure}", value, low, high, PREFERENCE_TONES[one.verdict])
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


def _scale(one: FamilyPreference, place: int, factor: float, digits: int) -> Cell:
    scale = one.scales[place]
    found = Estimate(*(factor * end for end in scale.preference))
    return estimate(found, partial(signed, digits=digits), "*" if scale.p_corrected < ALPHA else "")


def _systems(audit: JudgeAudit) -> Iterator[Section]:
    if not audit.rank_agreements:
        return
    blocks: list[Block] = [_orders(audit), PageBlocks(make=partial(_plots, audit))]
    columns: list[ColumnOf] = [
        (named("system"), lambda one: one.run),
        *(
            [(worded("family"), lambda one: one.family)]
            if any(one.family for one in audit.systems)
            else []
        ),
        ("human", lambda one: number(100 * one.human, decimal)),
        ("judge", lambda one: number(100 * one.judged, decimal)),
        ("rank", lambda one: f"{one.human_rank:g} → {one.judged_rank:g}"),
        ("raised", lambda one: estimate(Estimate(*(100 * end for end in one.relative)), signed)),
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
    changed = [one for one in audit.system_pairs if one.fate != "agrees"]
    if changed:
        blocks.append(
            tabulated(
                "Significant differences that do not hold under both judges",
                changed,
                [
                    (named("better"), lambda one: one.better),
                    (worded("than"), lambda one: one.worse),
                    ("human", lambda one: number(100 * one.human, signed)),
                    (Column("p", spare=1), lambda one: number(one.human_p, p_value)),
                    ("judge", lambda one: number(100 * one.judged, signed)),
                    (Column("p", spare=1), lambda one: number(one.judged_p, p_value)),
                    (
                        worded("under the judge"),
                        lambda one: Cell(one.fate, tone="bad" if one.fate == "reversed" else ""),
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
        key: Counter(one.fate for one in audit.system_pairs if (one.judge, one.measure) == key)
        for key in {(one.judge, one.measure) for one in audit.rank_agreements}
    }

    def fate(name: Fate) -> Callable[[RankAgreement], Cell]:
        return lambda one: number(fates[one.judge, one.measure][name], count)

    columns: list[ColumnOf] = [
        (named("judge"), lambda one: one.judge),
        (worded("measure"), lambda one: one.measure),
        ("τ-b", lambda one: estimate(one.tau, fixed)),
        (Column("τ-a", spare=2), lambda one: number(one.tau_a.value, fixed)),
        (Column("τ_AP", spare=1), lambda one: estimate(one.tau_ap, fixed)),
        (Column("RBO", spare=1), lambda one: estimate(one.rbo, fixed)),
        (
            Column("bias", spare=3, hint="judge − human, mean of systems"),
            lambda one: number(100 * one.bias, signed),
        ),
        (Column("slope", spare=3), lambda one: number(one.slope, fixed)),
        ("agree", fate("agrees")),
        ("lost", fate("lost")),
        ("reversed", fate("reversed")),
        ("new", fate("new")),
    ]
    return tabulated(
        "Order of systems, and differences of two that are significant",
        audit.rank_agreements,
        columns,
    )


def _plots(audit: JudgeAudit) -> Iterator[Figure]:
    """Bland & Altman's plot: how far the judge raises each system, over how good it is for humans."""
    for one in audit.rank_agreements[:_PLOTTED]:
        key = _of_judge(one)
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
            x=f"human {one.measure}, %",
            y="raised beyond the mean system, points",
            margin=0.0,
            names=names,
        )
        yield Figure(
            f"{one.judge}: systems raised and lowered, {one.measure}",
            "Above 0 the judge raises a system more than the mean one. Bars: 95 % intervals over queries.",
            drawing,
            half=True,
        )


def _point(row: SystemScore, *, reversed: bool) -> ScatterPoint:
    value, low, high = (100 * end for end in row.relative)
    return ScatterPoint(Mark(row.run, value, low, high, "bad" if reversed else ""), 100 * row.human)


def _repaired(audit: JudgeAudit) -> Iterator[Section]:
    if not audit.corrected:
        return
    columns: list[ColumnOf] = [
        (named("system"), lambda one: f"{one.run} − {one.minus}" if one.minus else one.run),
        ("humans alone", lambda one: _percent(one.human_only)),
        ("judge alone", lambda one: number(100 * one.judge_only, decimal)),
        ("both", lambda one: _percent(one.powered)),
        *(
            [("all humans", lambda one: number(100 * one.truth, decimal))]
            if any(np.isfinite(one.truth) for one in audit.corrected)
            else []
        ),
        (Column("λ", spare=2), lambda one: number(one.weight, fixed)),
        (Column("correlation", spare=1), lambda one: number(one.correlation, fixed)),
        ("worth, queries", lambda one: f"{one.queries} → {fixed(one.effective, 0)}"),
        (worded("decided", spare=3), _decided),
    ]
    table = tabulated(
        "Means and differences of neighbours from few human labels, in %",
        audit.corrected,
        columns,
        group=_of_judge,
        groups=("judge", "measure"),
        rule=lambda one: bool(one.minus),
        note="A difference whose interval holds 0 corrects nothing: it is not decided.",
    )
    yield Section("few-labels", "What do few human labels repair?", (), (table,))


def _percent(found: Estimate) -> Cell:
    return estimate(Estimate(*(100 * end for end in found)), decimal)


def _decided(one: Corrected) -> str:
    if not one.minus:
        return ""
    if np.isnan(one.powered.low):
        return DASH
    return "yes" if one.powered.low > 0 or one.powered.high < 0 else "no"


def _agreement(audit: JudgeAudit) -> Iterator[Section]:
    if not audit.agreements:
        return
    columns: list[ColumnOf] = [(named("judge"), lambda one: one.judge), *_coefficients()]
    blocks: list[Block] = [tabulated("Agreement with human grades", audit.overall, columns)]
    strata = [one for one in audit.agreements if one.stratum != "all"]
    if strata:
        blocks.append(
            tabulated(
                "Agreement by what documents have in common",
                strata,
                [(named("pairs"), lambda one: one.stratum), *_coefficients()],
                group=lambda one: (one.judge,),
                groups=("judge",),
            )
        )
    blocks.append(_confusion(audit))
    blocks.append(
        tabulated(
            "Agreement by query",
            audit.by_query,
            [
                (named("query"), lambda one: one.query),
                ("pairs", lambda one: number(one.pairs, count)),
                ("same grade, %", lambda one: number(100 * one.exact, decimal)),
                ("weighted κ", lambda one: number(one.weighted_kappa, fixed)),
                ("judge − human", lambda one: number(one.gap, partial(signed, digits=2))),
            ],
            group=lambda one: (one.judge,),
            groups=("judge",),
            folded=True,
            only="page",
        )
    )
    if audit.weaknesses:
        blocks.append(_weaknesses(audit))
    yield Section("agreement", "How far does a judge agree with humans?", (), tuple(blocks))


def _weaknesses(audit: JudgeAudit) -> Table:
    columns: list[ColumnOf] = [
        (named("edit"), lambda one: one.edit.probe),
        ("grade", lambda one: number(one.edit.original, fixed)),
        ("raised by", lambda one: estimate(Estimate(*one.edit[4:7]), partial(signed, digits=2))),
        ("raised, %", lambda one: number(100 * one.edit.raised, decimal)),
        (Column("pairs", spare=1), lambda one: number(one.edit.pairs, count)),
        (Column("left out", spare=2), lambda one: number(one.edit.left_out, count)),
    ]
    caption = "What may fool a judge: edits of passages with human grade 0"
    return tabulated(
        caption, audit.weaknesses, columns, group=lambda one: (one.judge,), groups=("judge",)
    )


def _coefficients() -> list[ColumnOf]:
    def shown(name: str) -> Callable[[Agreement], Cell]:
        return lambda one: estimate(getattr(one, name), fixed)

    columns: list[ColumnOf] = [
        (Column(title, spare=2 if name in ("exact", "binary_kappa") else 0), shown(name))
        for name, title in _COEFFICIENTS
    ]
    gap: ColumnOf = (
        Column("judge − human", spare=1),
        lambda one: estimate(one.gap, partial(signed, digits=2)),
    )
    return [*columns, gap, (Column("pairs", spare=3), lambda one: number(one.pairs, count))]


def _confusion(audit: JudgeAudit) -> Table:
    grades = range(audit.spec["top_grade"] + 1)
    rows = []
    for judge in audit.judges:
        cells = {
            (one.human, one.grade): one.pairs for one in audit.confusions if one.judge == judge
        }
        for human in grades:
            line = (Cell(count(cells[human, grade]), cells[human, grade]) for grade in grades)
            rows.append(Row((Cell(str(human)), *line), (judge,)))
    columns = (named("human grade"), *(Column(f"judge {grade}") for grade in grades))
    return Table("Pairs by human grade and the judge's", columns, tuple(rows), groups=("judge",))


def _legend(audit: JudgeAudit) -> Iterator[str]:
    spec = audit.spec
    if not audit.agreements:
        yield (
            "Systems are compared by their values per query, as the files hold them. Grades are not known, so there is "
            "no agreement (κ, α), grade gap or tilt."
        )
    else:
        yield (
            f"Agreement: Cohen's κ of grades 0 to {spec['top_grade']}, of relevant or not (grade {spec['relevant']} or "
            "more), and with quadratic weights; Krippendorff's α of ordered grades. Only pairs that both graded count."
        )
    if audit.grade_gaps:
        yield (
            "Grade gap: grade of the first side less that of its twin, for one query and with the same human grade; "
            f"level is ±{GAP_MARGIN}."
        )
    if audit.preferences:
        put = ", which are put on its scale" if audit.agreements else ""
        yield (
            "Preference: family − others under the judge, less what its general errors make of the same difference "
            f"under human grades{put}; intervals over queries and systems. Points are those of the judge's own scale: "
            "of judges that spread systems differently they do not compare. Ranks: share of systems beaten, in points; "
            "z: within query. A preference needs all three. Plain: the textbook difference in differences, which a "
            "noisy judge moves without preferring anybody. * corrected p < .05 (Holm)."
        )
    if audit.rank_agreements:
        yield (
            "τ-b counts ties (τ-a does not); τ_AP and RBO (p = .9) weigh the top. Differences of two systems: paired t "
            "tests, Holm over all pairs; lost: not significant under the judge; reversed: of the other sign; new: "
            "significant under the judge alone. Slope: what a difference of 1 becomes under the judge. Intervals of "
            "coefficients: the wider of percentiles of resampled queries and the same turned round the value."
        )
    if audit.corrected:
        yield (
            "Few labels: prediction-powered means (PPI++) with 95 % intervals of Student's t, n − 2 degrees of freedom "
            f"of n labelled queries, from {FEWEST_LABELS} on; λ is the judge's weight."
        )
    intervals = f"Intervals: bootstrap over queries, {spec['resamples']:,} resamples, where nothing else is said."
    has_tests = audit.grade_gaps or audit.tilts or audit.preferences
    yield f"{intervals} {ONE_AT_A_TIME}" if has_tests else intervals

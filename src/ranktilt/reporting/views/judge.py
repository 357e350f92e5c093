"""An audit of judges: who is favoured, whether systems change places, and how far a judge agrees with humans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ranktilt.auditing.effects import ALPHA
from ranktilt.errors import counted
from ranktilt.judging.result import GAP_MARGIN, JudgeAudit
from ranktilt.measures.margin import half_width
from ranktilt.reporting.document import (
    Block,
    Column,
    ColumnOf,
    Document,
    Figure,
    PageBlocks,
    Section,
    Sentence,
    Table,
    named,
    tabulated,
    worded,
)
from ranktilt.reporting.figures.charts import Mark, forest
from ranktilt.reporting.headline import headline
from ranktilt.reporting.numbers import count, estimate, moved, number, p_value, signed
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.judge_meaning import judge_next_commands, meaning_sentence
from ranktilt.reporting.sentences.judging import judge_findings
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.verdicts import ONE_AT_A_TIME, sides_named
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.views.audit_tables import confound_table
from ranktilt.reporting.views.judge_agreement import (
    agreement_section,
    hero_chart,
    trust_section,
)
from ranktilt.reporting.views.judge_systems import (
    families_section,
    few_labels_section,
    systems_section,
)
from ranktilt.statistics.prediction_powered import FEWEST_LABELS


def view(audit: JudgeAudit) -> Document:
    """Return what is said of an audit of judges."""
    sections = (
        *trust_section(audit),
        *_sources(audit),
        *families_section(audit),
        *systems_section(audit),
        *few_labels_section(audit),
        *agreement_section(audit),
    )
    pair = next(((e.a, e.b) for e in audit.grade_gaps), ())
    return Document(
        kind=f"Audit of {counted(len(audit.judges), 'judge', 'judges')}",
        headline=headline(audit),
        sections=(*sections, provenance(audit.spec, note_sentences(audit.notes))),
        sentences=tuple(
            Sentence(finding.sentence, finding.tone, "strong") for finding in judge_findings(audit)
        ),
        meaning=meaning_sentence(audit),
        hero=PageBlocks(make=partial(hero_chart, audit)),
        next_steps=judge_next_commands(audit),
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


def _legend(audit: JudgeAudit) -> Iterator[str]:
    spec = audit.spec
    if not audit.agreements:
        yield (
            "Systems are compared by their values per query, as the files hold them. Grades are "
            "not known, so there is no agreement (κ, α), grade gap or tilt."
        )
    else:
        yield (
            f"Agreement: Cohen's κ of grades 0 to {spec['top_grade']}, of relevant or not "
            f"(grade {spec['relevant']} or more), and with quadratic weights; Krippendorff's α "
            "of ordered grades. Only pairs that both graded count."
        )
    if audit.comparisons:
        yield (
            "Judges against each other: difference of κ (of τ-b) on the same resampled queries; "
            "p is the level at which its interval excludes 0, Holm over all pairs of judges. "
            "Judges that share a letter cannot be distinguished."
        )
    if audit.grade_gaps:
        yield (
            "Grade gap: grade of the first side less that of its twin, for one query and with "
            "the same human grade; "
            f"level is ±{GAP_MARGIN}."
        )
    if audit.preferences:
        put = ", which are put on its scale" if audit.agreements else ""
        yield (
            "Preference: family − others under the judge, less what its general errors make of "
            f"the same difference under human grades{put}; intervals over queries and systems. "
            "Points are those of the judge's own scale: of judges that spread systems "
            "differently they do not compare. Ranks: share of systems beaten, in points; z: "
            "within query. A preference needs all three. Plain: the textbook difference in "
            "differences, which a noisy judge moves without preferring anybody. * corrected p < "
            ".05 (Holm)."
        )
    if audit.rank_agreements:
        yield (
            "τ-b counts ties (τ-a does not); τ_AP and RBO (p = .9) weigh the top. Differences "
            "of two systems: paired t tests, Holm over all pairs; lost: not significant under "
            "the judge; reversed: of the other sign; new: significant under the judge alone. "
            "Slope: what a difference of 1 becomes under the judge. Intervals of coefficients: "
            "the wider of percentiles of resampled queries and the same turned round the value."
        )
    if audit.corrected:
        yield (
            "Few labels: prediction-powered means (PPI++) with 95 % intervals of Student's t, n "
            f"− 2 degrees of freedom of n labelled queries, from {FEWEST_LABELS} on; λ is the "
            "judge's weight."
        )
    intervals = f"Intervals: bootstrap over queries, {spec['resamples']:,} resamples, where nothing else is said."
    has_tests = audit.grade_gaps or audit.tilts or audit.preferences
    yield f"{intervals} {ONE_AT_A_TIME}" if has_tests else intervals

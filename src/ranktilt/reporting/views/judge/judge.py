"""The document of an audit of judges: whom they favour, and how far they agree with humans.

A *judge* is a model that grades how well a document answers a query, in place of humans. *Twins*
are two versions of one document, such as a human text and its rewrite by an LLM; their *grade gap*
is how much higher a judge grades the first. A gap within a *margin* of 0 counts as level. *Systems*
are the retrieval runs that grades compare, and a *tilt* is how far a system favours one of two
groups of documents, by human grades or by a judge's. The *verdict* on a gap says whom it is shown
to favour. A *change* is the difference of a tilt by the judge's grades from that by human grades.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import attrgetter

from ranktilt.auditing.effects import ALPHA, Effect
from ranktilt.errors import counted
from ranktilt.judging.records import GAP_MARGIN, JudgedTilt
from ranktilt.judging.result import JudgeAudit
from ranktilt.measures.margin import half_width
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    Document,
    Figure,
    PageBlocks,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.figures.charts import Mark, forest
from ranktilt.reporting.headline import headline
from ranktilt.reporting.numbers import (
    change_cell,
    estimate_cell,
    number_cell,
    number_cells,
    p_value,
    signed,
    with_commas,
)
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.judging.judge import judge_findings
from ranktilt.reporting.sentences.judging.meaning import judge_next_commands, meaning_sentence
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.verdicts import INTERVAL_CAUTION, tone_legend
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.views.audit.tables import confound_table
from ranktilt.reporting.views.judge.agreement import (
    agreement_section,
    first_figure_chart,
    trust_section,
)
from ranktilt.reporting.views.judge.confidence import confidence_section
from ranktilt.reporting.views.judge.systems import (
    families_section,
    few_labels_section,
    systems_section,
)
from ranktilt.statistics.judges.prediction_powered import FEWEST_LABELS


def view(audit: JudgeAudit) -> Document:
    """Return the document of an audit of judges."""
    sections = (
        *trust_section(audit),
        *_source_section(audit),
        *families_section(audit),
        *systems_section(audit),
        *few_labels_section(audit),
        *confidence_section(audit),
        *agreement_section(audit),
        provenance(audit.spec, note_sentences(audit.notes)),
    )
    judges = counted(len(audit.judges), "judge", "judges")
    return Document(
        kind=f"Audit of {judges}",
        headline=headline(audit),
        sections=sections,
        sentences=tuple(_sentences(audit)),
        meaning=meaning_sentence(audit),
        first_figure=PageBlocks(make=partial(first_figure_chart, audit)),
        next_steps=judge_next_commands(audit),
        legend=tuple(_legend(audit)),
        notes=note_sentences(audit.notes),
        sides=_side_names(audit),
    )


def _side_names(audit: JudgeAudit) -> tuple[str, ...]:
    """Return the names of the two groups of twins; empty where none were graded."""
    if not audit.grade_gaps:
        return ()
    return (audit.grade_gaps[0].a, audit.grade_gaps[0].b)


def _sentences(audit: JudgeAudit) -> Iterator[Sentence]:
    """Yield the findings on all judges, the largest first."""
    for finding in judge_findings(audit):
        yield Sentence(finding.sentence, finding.tone, emphasis="strong")


def _source_section(audit: JudgeAudit) -> Iterator[Section]:
    """Yield the section on whether a judge favours a source of documents.

    It has the grade gaps of twins, the tilts of rankers by human and by the judge's grades, and
    other differences between the two sides.
    """
    blocks = list[Block]()
    if audit.grade_gaps:
        blocks += [PageBlocks(make=partial(_gap_figure, audit)), _gap_table(audit)]
    if audit.tilts:
        blocks.append(_tilt_table(audit))
    if audit.confounds:
        blocks.append(confound_table(audit.confounds))
    if blocks:
        yield Section("sources", "Does a judge favour a source?", blocks=tuple(blocks))


def _gap_table(audit: JudgeAudit) -> Table:
    """Return the table of grade gaps, over all twins and over those with one human grade."""
    columns: list[ColumnSpec] = [
        (name_column("twins"), _twins_words),
        ("grade gap", _gap_cell),
        ("p", number_cells("p_corrected", p_value)),
        (Column("pairs", drop_order=1), partial(_detail_cell, name="pairs")),
        (Column("graded higher", drop_order=2), partial(_detail_cell, name="higher")),
        (Column("lower", drop_order=2), partial(_detail_cell, name="lower")),
        (text_column("verdict", drop_order=3), _gap_verdict),
    ]
    return make_table(
        "Grade gap of twins, in grades",
        sorted(audit.grade_gaps, key=lambda gap: audit.judges.index(gap.run)),
        columns,
        group_of=lambda gap: (gap.run,),
        group_titles=("judge",),
    )


def _gap_cell(gap: Effect) -> Cell:
    """Return the cell of a grade gap, with a star where it is significant."""
    star = "*" if gap.p_corrected < ALPHA else ""
    return estimate_cell(gap, partial(signed, digits=3), star)


def _detail_cell(gap: Effect, name: str) -> Cell:
    """Return the cell of a count behind a gap, such as its number of pairs."""
    return number_cell(gap.details[name], lambda value: with_commas(int(value)))


def _twins_words(gap: Effect, all_twins: str = "all") -> str:
    """Name the twins that a grade gap is about: those with one human grade, or `all_twins`."""
    if not gap.estimand.options:
        return all_twins
    return f"human grade {gap.estimand.grade}"  # type: ignore[attr-defined]


def _gap_verdict(gap: Effect) -> str:
    """Name the favoured side; ``level`` or ``inconclusive`` where there is none."""
    verdict = gap.verdict(GAP_MARGIN)
    return gap.side(verdict) or verdict


def _gap_figure(audit: JudgeAudit) -> Iterator[Figure]:
    """Yield the figure of each judge's grade gaps."""
    marks: dict[str, list[Mark]] = {}
    for gap in audit.grade_gaps:
        mark = Mark(
            label=_twins_words(gap, all_twins="all twins"),
            value=gap.value,
            low=gap.low,
            high=gap.high,
            tone=VERDICT_TONES[gap.verdict(GAP_MARGIN)],
            detectable=gap.detectable,
        )
        marks.setdefault(gap.run, []).append(mark)
    first = audit.grade_gaps[0]
    drawing = forest(
        marks,
        x="grade gap",
        margin=half_width(first.estimand, GAP_MARGIN),
        sides=(first.a, first.b),
        tone_names=tone_legend((first.a, first.b)),
    )
    yield Figure("Grade gap of twins", f"Right of 0: {first.a} twins are graded higher.", drawing)


def _tilt_table(audit: JudgeAudit) -> Table:
    """Return the table of each ranker's Relative Δ by human grades and by a judge's."""
    columns: list[ColumnSpec] = [
        (name_column("ranker"), attrgetter("change.run")),
        (text_column("measure"), attrgetter("change.measure")),
        ("human", number_cells("change.old", signed)),
        ("judge", number_cells("change.new", signed)),
        ("difference", _tilt_change_cell),
        (Column("p", drop_order=1), number_cells("change.p_corrected", p_value)),
    ]
    return make_table(
        "Relative Δ of each ranker by who judged, in %",
        audit.tilts,
        columns,
        group_of=lambda tilt: (tilt.judge,),
        group_titles=("judge",),
    )


def _tilt_change_cell(tilt: JudgedTilt) -> Cell:
    """Return the cell of the difference of Relative Δ by a judge's grades and by human ones."""
    return change_cell(tilt.change)


def _legend(audit: JudgeAudit) -> Iterator[str]:
    """Yield sentences on what the numbers of each part of the audit mean."""
    spec = audit.spec
    if not audit.agreements:
        yield (
            "Systems are compared by their values per query from the files. Grades are not known, "
            "so there is no agreement (κ, α), grade gap or tilt."
        )
    else:
        yield (
            f"Agreement: Cohen's κ of grades 0 to {spec['top_grade']}, of relevant or not "
            f"(grade {spec['relevant']} or more), and with quadratic weights; Krippendorff's α "
            "of ordered grades. Only pairs graded by both count."
        )
    if audit.comparisons:
        yield (
            "Judges compared: difference of κ (of τ-b) on the same resampled queries; p is the "
            "level at which its interval excludes 0, Holm over all pairs of judges. "
            "Judges that share a letter cannot be distinguished."
        )
    if audit.grade_gaps:
        yield (
            "Grade gap: grade of the first side minus the grade of its twin, for the same query "
            f"and human grade; level is ±{GAP_MARGIN}."
        )
    if audit.preferences:
        scaled = ", which are put on its scale" if audit.agreements else ""
        yield (
            "Preference: family − others under the judge, minus what its general errors make of "
            f"the same difference under human grades{scaled}; intervals over queries and systems. "
            "Points are on the judge's own scale, so do not compare judges that spread systems "
            "differently. Ranks: share of systems beaten, in points; z: within query. A "
            "preference needs all three. Plain: the textbook difference in differences, which a "
            "noisy judge moves without preferring anybody. * corrected p < .05 (Holm)."
        )
    if audit.rank_agreements:
        yield (
            "τ-b counts ties (τ-a does not); τ_AP and RBO (p = .9) weigh the top. Differences "
            "of two systems: paired t tests, Holm over all pairs; lost: not significant under "
            "the judge; reversed: of the other sign; new: significant under the judge alone. "
            "Slope: what a difference of 1 becomes under the judge. Intervals of coefficients: "
            "the wider of percentiles of resampled queries and their reflection at the value."
        )
    if audit.length_doses:
        yield (
            "Length: passages that humans graded 0 get neutral sentences of other documents, up to "
            "2 and 4 times their length. Grades per doubling: within passages."
        )
    if audit.calibrations:
        yield (
            "Confidence: bins of equal count; a judge is right where it gives the human grade. "
            "Expected calibration error: mean distance of agreement from confidence, over bins. "
            "Least sure: the third of grades, or of twins, with the lowest confidence."
        )
    if audit.corrected:
        yield (
            "Few labels: prediction-powered means (PPI++) with 95 % intervals of Student's t, n "
            f"− 2 degrees of freedom of n labelled queries, from {FEWEST_LABELS} on; λ is the "
            "judge's weight."
        )
    intervals = f"Other intervals: bootstrap over queries, {spec['resamples']:,} resamples."
    has_tests = audit.grade_gaps or audit.tilts or audit.preferences
    yield f"{intervals} {INTERVAL_CAUTION}" if has_tests else intervals

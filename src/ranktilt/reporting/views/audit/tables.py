"""Tables of an audit, and their legends: means, Relative Δ, the card, controls and confounds.

*Relative Δ* is the difference of two groups' means in percent of their average; its value for a
ranker is a *tilt*. The *card* has further questions about each ranker, one row for each *answer*. A
tilt and an answer are both an *effect*: the value of a measure (an *estimand*) for one ranker and
pair of groups. Some estimands are *unsided*: they cover all groups at once and favour none. The
verdict on an effect says which side (group) it is shown to favour, if any; p is corrected for all
questions that are asked together. The spec of an audit is its settings.

A *control* computes Relative Δ again without a possible cause, such as length; *raw* is the value
without any control. A *confound* is another difference between the groups' texts. *Twins* are
versions of one document in both groups. The *random band* is the range that Relative Δ has when
labels of groups are shuffled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import isnan
from operator import attrgetter
from typing import Any

import polars as pl

from ranktilt.auditing.confounds import SIDED, Confound
from ranktilt.auditing.controls.result import RAW, Controlled
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.numerical_noise import ROUNDOFF, precision
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted, join_words
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnSpec,
    Emphasis,
    Row,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.headline import conflict_findings
from ranktilt.reporting.numbers import (
    DASH,
    decimal,
    ends,
    estimate_cell,
    interval,
    number_cell,
    number_cells,
    p_value,
    percent,
    signed,
    with_commas,
)
from ranktilt.reporting.sentences.answers import basis_words
from ranktilt.reporting.sentences.controls import control_change, control_meaning
from ranktilt.reporting.sentences.effects import interval_words
from ranktilt.reporting.sentences.verdicts import (
    INTERVAL_CAUTION,
    sides_legend,
    significance_star,
    star_legend,
)
from ranktilt.reporting.tones import VERDICT_TONES

_QUERIES = "Queries with a relevant document in the group; for Relative Δ, in both groups."
"""Hint of the column of queries: the text that a page shows when its title is pointed at."""
_TIED = "Share of relevant twins with equal scores, among those with a side retrieved."
"""Hint of the column of tied twins."""
_AS_LABELLED = "The answer by the labels as they are, before it is corrected for their errors."
"""Hint of the column of answers that are not corrected for wrong labels of groups."""
_MOST_OPEN_ROWS = 14
"""Most rows of a table that a page does not collapse, where a figure shows its main column."""
_CONFOUNDS = {
    "words": "words per document",
    "query words": "query words in relevant text",
    "cut-off endings": "documents cut off at the end",
    "boilerplate openings": "documents that begin with boilerplate",
    "identical": "the same text",
    "near-identical": "nearly the same text (Jaccard ≥ .95)",
    "same title": "the same title",
}
"""What a row of confounds counts, by the confound's name."""


def group_table(audit: Audit) -> Table:
    """Lay out the means of all documents and of each group, and Relative Δ, for each ranker.

    The papers print their results in this form.
    """
    has_twins = any(tilt.twins for tilt in audit.tilts)
    columns = [name_column("group"), *(Column(repr(measure)) for measure in audit.measures)]
    columns.append(Column("queries", hint=_QUERIES))
    if has_twins:
        columns.append(Column("tied twins", hint=_TIED))
    no_tied_share = [Cell("")] if has_twins else []
    rows: list[Row] = []
    means = audit.by_group()
    for run in audit.runs:
        for group in audit.groups:
            of_group = means.filter((pl.col("run") == run) & (pl.col("group") == group))
            cells = _mean_cells(group, of_group["mean"].to_list(), of_group["queries"][0])
            rows.append(Row((*cells, *no_tied_share), group=(run,)))
        for pair in audit.tilted_pairs:
            rows += _tilt_rows(audit, run, pair, has_tied_share=has_twins)
    caption = "Means and Relative Δ, in %" if audit.tilts else "Means, in %"
    note = " ".join(table_legend(audit))
    return Table(
        caption, tuple(columns), tuple(rows), note, group_titles=("ranker",), collapsed=True
    )


def _mean_cells(group: str, means: list[float], queries: int) -> Iterator[Cell]:
    """Yield the cells of a group: its name, a mean on each measure, and its number of queries."""
    emphasis: Emphasis = "quiet" if group == ALL else ""
    yield Cell(group, emphasis=emphasis)
    yield from (number_cell(mean, percent, emphasis=emphasis) for mean in means)
    yield number_cell(queries, str, emphasis=emphasis)


def _tilt_rows(audit: Audit, run: str, pair: Pair, *, has_tied_share: bool) -> Iterator[Row]:
    """Yield the row of Relative Δ for a pair of groups, and below it that of the random band.

    Twins have no random band: both groups have the same texts to find, so their neutral value is 0.
    `has_tied_share` tells whether the table has the column of tied twins.
    """
    tilts = [tilt for tilt in audit.tilts if tilt.run == run and (tilt.a, tilt.b) == pair]
    groups = "" if len(audit.pairs) == 1 else f" {pair[0]} | {pair[1]}"
    cells = [Cell(f"Relative Δ{groups}", emphasis="strong")]
    cells += [_tilt_cell(tilt, audit.margin_points) for tilt in tilts]
    cells.append(number_cell(tilts[0].queries, str))
    if has_tied_share:
        share = audit.tied_share(run, *pair)
        cells.append(Cell("" if isnan(share) else f"{percent(share)} %", share))
    yield Row(tuple(cells), group=(run,))
    if not tilts[0].twins:
        bands = (
            Cell("", ends=ends(tilt.null_low, tilt.null_high), emphasis="quiet") for tilt in tilts
        )
        title, no_queries = Cell("random band", emphasis="quiet"), Cell("")
        no_tied_share = [Cell("")] if has_tied_share else []
        yield Row((title, *bands, no_queries, *no_tied_share), group=(run,))


def _tilt_cell(tilt: Effect, margin: float) -> Cell:
    """Return the cell of Relative Δ with its star, in the colour of the favoured side.

    `margin` is the smallest Relative Δ that matters, in points.
    """
    verdict = tilt.verdict(margin)
    tone = VERDICT_TONES[verdict] if verdict in ("a", "b") else ""
    star = significance_star(tilt)
    return estimate_cell(tilt, signed, star, neutral=tilt.neutral, tone=tone)


def _answer_cell(effect: Effect) -> Cell:
    """Return the cell of an answer of the card, in the colour of the favoured side."""
    tone = VERDICT_TONES[effect.favours] if effect.favours else ""
    return Cell(effect.estimand.answer(effect.value), effect.value, tone)


def _interval_text(effect: Effect) -> str:
    """Print the interval of an answer in the answer's unit; a dash where it has none."""
    return interval_words(effect) or DASH


def _as_labelled_text(effect: Effect) -> str:
    """Print the answer before its correction for wrong labels; empty where there was none."""
    observed = effect.observed
    return "" if observed is None else effect.estimand.amount(observed.value)


def _random_labels_text(effect: Effect) -> str:
    """Print the range that random labels give; empty where the answer was not compared with it."""
    if not effect.has_random_band or not effect.has_interval:
        return ""
    amount = effect.estimand.amount
    return f"[{amount(effect.null_low)}, {amount(effect.null_high)}]"


@dataclass(frozen=True, kw_only=True)
class _PairAnswer:
    """An answer of the card, and the pair of groups in the heading above its row.

    An answer about all groups together is printed below each pair.
    """

    effect: Effect
    """The answer."""
    pair: Pair
    """The pair of groups in the heading."""


def card_table(audit: Audit) -> Table:
    """Lay out the card, with one row per question for each ranker and pair of groups."""
    answers = []
    for run, pair in product(audit.runs, audit.pairs):
        answers += [_PairAnswer(effect=effect, pair=pair) for effect in audit.card_of(run, *pair)]
    columns: list[ColumnSpec] = [
        (
            name_column("question"),
            lambda row: Cell(row.effect.name, note=row.effect.estimand.question),
        ),
        ("answer", lambda row: _answer_cell(row.effect)),
        ("95 % interval", lambda row: Cell(_interval_text(row.effect), emphasis="quiet")),
    ]
    if any(answer.effect.observed is not None for answer in answers):
        as_labelled = Column("as labelled", drop_order=4, hint=_AS_LABELLED)
        columns.append(
            (as_labelled, lambda row: Cell(_as_labelled_text(row.effect), emphasis="quiet"))
        )
    # A separate column, which a narrow terminal leaves out before the columns that matter more.
    if any(_random_labels_text(answer.effect) for answer in answers):
        random_labels = Column("random labels", drop_order=2)
        columns.append(
            (random_labels, lambda row: Cell(_random_labels_text(row.effect), emphasis="quiet"))
        )
    columns += [
        (Column("corrected p", drop_order=3), number_cells("effect.p_corrected", p_value)),
        (text_column("favours"), lambda row: row.effect.side(row.effect.favours) or DASH),
        (
            text_column("from", drop_order=1),
            lambda row: basis_words(row.effect.estimand, row.effect),
        ),
    ]
    return make_table(
        "The question card, every number",
        answers,
        columns,
        group_of=lambda row: _heading(audit, row.effect.run, row.pair),
        note=" ".join(card_legend(audit)),
        group_titles=("ranker",),
        collapsed=len(answers) > _MOST_OPEN_ROWS,
    )


def _heading(audit: Audit, run: str, pair: Pair) -> tuple[str]:
    """Return the heading of a group of rows: the ranker, and the pair where there are several."""
    return (f"{run}, {pair[0]} | {pair[1]}" if len(audit.pairs) > 1 else run,)


@dataclass(frozen=True, kw_only=True)
class _PairControl:
    """A run under one control, and the pair of groups in the heading above its row.

    A control that was not applied is printed below each pair.
    """

    controlled: Controlled
    """The run under the control."""
    pair: Pair
    """The pair of groups in the heading."""


def control_table(audit: Audit) -> Table:
    """Lay out the raw value and one row per control, for each ranker and pair of groups."""
    primary = audit.primary_index
    columns: list[ColumnSpec] = [(name_column("control"), attrgetter("controlled.control"))]
    for index, measure in enumerate(audit.measures):
        columns.append((repr(measure), partial(_controlled_tilt_cell, audit, index)))
    columns += [
        (f"moved on {audit.measures[primary]!r}", lambda row: _move_cell(row.controlled, primary)),
        (text_column("changed"), lambda row: control_change(row.controlled.control_change)),
    ]
    rows = []
    for run, pair in product(audit.runs, audit.tilted_pairs):
        for controlled in audit.controls:
            # Controls that were not applied name only the first pair.
            is_of_pair = (controlled.a, controlled.b) == pair or not controlled.tilts
            if controlled.run == run and is_of_pair:
                rows.append(_PairControl(controlled=controlled, pair=pair))
    return make_table(
        "Relative Δ in %, raw and controlled",
        rows,
        columns,
        group_of=lambda row: _heading(audit, row.controlled.run, row.pair),
        note=" ".join(control_legend(audit)),
        group_titles=("ranker",),
        collapsed=len(rows) > _MOST_OPEN_ROWS,
    )


def _controlled_tilt_cell(audit: Audit, index: int, row: _PairControl) -> Cell:
    """Return the cell of Relative Δ under a control, on the measure at an index.

    Empty where the control was not applied.
    """
    tilts = row.controlled.tilts
    return _tilt_cell(tilts[index], audit.margin_points) if tilts else Cell("")


def _move_cell(controlled: Controlled, index: int) -> Cell:
    """Return the cell of how far a control moves Relative Δ, on the measure at an index.

    Empty where the control was not applied, or the difference is undefined.
    """
    if not controlled.moves or isnan(controlled.moves[index].value):
        return Cell("")
    move = controlled.moves[index]
    text = f"{signed(move.value)} {interval(move.low, move.high)}"
    return Cell(text, move.value, emphasis="quiet")


def conflict_sentences(audit: Audit) -> list[str]:
    """Name the runs and pairs of groups whose answers have opposite signs, a sentence for each."""
    return [finding.sentence for finding in conflict_findings(audit)]


def confound_table(confounds: Sequence[Confound]) -> Table:
    """Lay out the other differences between the texts of two groups, and how alike twins are.

    A confound of either side, such as words per document, has a value for each group; a confound
    of pairs, such as the share of identical twins, has a single value.
    """
    pairs = list(dict.fromkeys((confound.a, confound.b) for confound in confounds))
    has_several_pairs = len(pairs) > 1
    first, second = ("first", "second") if has_several_pairs else pairs[0]
    columns = (
        (name_column("what else differs"), _confound_name),
        (first, partial(_confound_cell, field="value_a", of_side=True)),
        (second, partial(_confound_cell, field="value_b", of_side=True)),
        ("share of pairs", partial(_confound_cell, field="value_a", of_side=False)),
        (
            Column("counted", hint="documents of both sides, or pairs that are alike"),
            number_cells("number", with_commas),
        ),
    )
    return make_table(
        "Other differences between the two sides",
        confounds,
        columns,
        group_titles=("pair",) if has_several_pairs else (),
        group_of=lambda confound: (f"{confound.a} | {confound.b}",) if has_several_pairs else (),
    )


def _confound_name(confound: Confound) -> str:
    """Name a confound, as its row does."""
    if confound.name == "truncated":
        limit = counted(confound.limit, "token", "tokens")
        return f"documents that {confound.run} cuts at {limit}"
    return _CONFOUNDS[confound.name]


def _confound_cell(confound: Confound, *, field: str, of_side: bool) -> Cell:
    """Return the cell of a confound's value; empty in a column of the other kind of confounds.

    `of_side` tells whether the column is of confounds that have a value for each side.
    """
    if (confound.name in SIDED) != of_side:
        return Cell("")
    value = getattr(confound, field)
    if confound.name == "words" or isnan(value):
        return number_cell(value, decimal)
    return Cell(f"{percent(value)} %", value)


def control_sentences(audit: Audit) -> list[str]:
    """Say which controls change the verdict on the primary measure, a sentence for each run."""
    if not audit.measures:
        return []
    primary = audit.primary_index
    raw_tilts = {
        (controlled.run, controlled.a, controlled.b): controlled.tilts[primary]
        for controlled in audit.controls
        if controlled.control == RAW and controlled.tilts
    }
    sentences = []
    for controlled in audit.controls:
        raw = raw_tilts.get((controlled.run, controlled.a, controlled.b))
        if raw is None or not controlled.moves or not controlled.moves[primary].is_shown:
            continue
        tilt = controlled.tilts[primary]
        before, after = raw.verdict(audit.margin_points), tilt.verdict(audit.margin_points)
        if before != after:
            sentences.append(
                f"{controlled.run}, control {controlled.control}: Relative Δ on {raw.measure} "
                f"moves from {signed(raw.value)} to {signed(tilt.value)} %; "
                f"the verdict from {_verdict_words(raw, before)} to {_verdict_words(raw, after)}"
            )
    return sentences


def _verdict_words(tilt: Effect, verdict: str) -> str:
    """Name a verdict in a sentence: the favoured side in place of ``a`` or ``b``."""
    side = {"a": tilt.a, "b": tilt.b}.get(verdict)
    return f"favours {side}" if side else verdict


def legend(audit: Audit) -> list[str]:
    """Say what the numbers of all tables of an audit are, and how they were computed."""
    lines = [*table_legend(audit), *card_legend(audit), *control_legend(audit)]
    return [*lines, *preset_legend(audit.spec)]


def preset_legend(spec: Mapping[str, Any]) -> list[str]:
    """Name the preset of an audit, and the options that were set differently; empty without."""
    if not spec.get("preset"):
        return []
    changes = spec.get("preset_changes") or ()
    otherwise = f", except for {', '.join(changes)}, which you chose" if changes else ""
    return [f"Computed by the preset {spec['preset']}{otherwise}."]


def table_legend(audit: Audit) -> list[str]:
    """Say what the numbers of the table of means and Relative Δ are."""
    spec = audit.spec
    lines = ["Means in %."] if audit.measures else []
    if audit.tilts:
        lines = list(_tilt_legend(audit))
    elif audit.card:
        bootstrap = ""
        if any(effect.has_interval for effect in audit.card):
            bootstrap = f"95 % intervals: bootstrap over queries, {spec['resamples']:,} resamples. "
        lines.append(f"{bootstrap}Ties: averaged.")
    return [*lines, *noise_legend(audit)]


def _tilt_legend(audit: Audit) -> Iterator[str]:
    """Yield sentences about Relative Δ: its sides, intervals, ties and neutral value."""
    rounded = ""
    if audit.spec["rounding"] == "paper":
        rounded = " Means rounded to 0.1 % as in the papers."
    yield f"Means and Relative Δ in %: {sides_legend(audit.pairs)}.{_stars(audit)}"
    yield f"{_intervals_legend(audit)}Ties: {tie_rule(audit.spec)}.{rounded}"
    if any(tilt.excluded for tilt in audit.tilts):
        yield (
            "A group's mean covers the queries with a relevant document in it; Relative Δ and its "
            "sentence cover those with one in both groups."
        )
    if not all(tilt.twins for tilt in audit.tilts):
        has_twins = any(tilt.twins for tilt in audit.tilts)
        groups = "Groups that are not twins" if has_twins else "Groups are not twins"
        yield (
            f"{groups}: the neutral value is the median of random labels (shuffled within each "
            "query), not 0."
        )


def _stars(audit: Audit) -> str:
    """Say what a star means; empty where no value was tested."""
    return (
        ""
        if all(isnan(tilt.p_corrected) for tilt in audit.tilts)
        else f" {star_legend(audit.spec)}"
    )


def _intervals_legend(audit: Audit) -> str:
    """Say how the intervals were computed; empty where there is none."""
    if not any(tilt.has_interval for tilt in audit.tilts):
        return ""
    return (
        f"95 % intervals: paired bootstrap over queries, {audit.spec['resamples']:,} resamples, "
        "widened for the choice of documents. "
    )


def noise_legend(audit: Audit) -> list[str]:
    """Say how far rounding error may move Relative Δ, and in which precision runs were computed.

    Runs whose numerical noise is given are not named a second time for their precision.
    """
    has_several_pairs = len(audit.tilted_pairs) > 1
    lines = []
    if audit.noise:
        noise = (
            f"{tilt.run}{f' ({tilt.a} | {tilt.b})' if has_several_pairs else ''} "
            f"±{tilt.points:.1f} points ({tilt.resolution})"
            for tilt in audit.noise
        )
        measure = f"{audit.primary_measure!r}"
        lines.append(f"Numerical noise of Relative Δ {measure}: {', '.join(noise)}.")
    precision_of = {
        str(spec.get("name", spec.get("ranker"))): precision(spec)
        for spec in audit.spec.get("runs", ())
    }
    noisy_runs = {tilt.run for tilt in audit.noise}
    precisions = [
        f"{run} in {number_type}"
        for run, number_type in precision_of.items()
        if number_type in ROUNDOFF and run not in noisy_runs
    ]
    if precisions:
        lines.append(f"Computed: {', '.join(precisions)}.")
    return lines


def tie_rule(spec: Mapping[str, Any]) -> str:
    """Say how documents with equal scores are ranked."""
    return "expected value over all orders" if spec["ties"] == "expected" else "trec_eval's, by id"


def card_legend(audit: Audit) -> list[str]:
    """Say what the numbers of the card are; empty for an audit without a card."""
    if not audit.card:
        return []
    return [" ".join(_card_legend(audit))]


def _card_legend(audit: Audit) -> Iterator[str]:
    """Yield sentences about the card: its sides, correction and ties."""
    if any(effect.estimand.sided for effect in audit.card):
        yield f"Card: {sides_legend(audit.pairs)}."
    unsided = (effect for effect in audit.card if not effect.estimand.sided)
    names = list(dict.fromkeys(effect.name for effect in unsided))
    if names:
        covers, favours = ("covers", "favours") if len(names) == 1 else ("cover", "favour")
        yield f"{join_words(names)} {covers} all groups at once and {favours} none."
    if not all(isnan(effect.p_corrected) for effect in audit.card):
        yield _correction_legend(audit)
        if not audit.tilts:  # the main table's legend says it otherwise
            yield INTERVAL_CAUTION
    has_relevance = any(effect.estimand.kind == "relevance" for effect in audit.card)
    if audit.spec["ties"] != "expected" and has_relevance:
        yield "Ties are averaged in all rows except Relative Δ."


def _correction_legend(audit: Audit) -> str:
    """Say how the card's p-values are corrected, and which answers were not tested."""
    correction = str(audit.spec["correction"]).capitalize()
    descriptive = dict.fromkeys(effect.name for effect in audit.card if effect.estimand.descriptive)
    untested = "".join(f", without the {name}, which only describes" for name in descriptive)
    return f"p: corrected ({correction}), separately for the primary question{untested}."


def control_legend(audit: Audit) -> list[str]:
    """Say what each control removes or holds fixed."""
    applied = (row for row in audit.controls if row.control != RAW and row.tilts)
    meanings = dict.fromkeys((row.control, control_meaning(row)) for row in applied)
    if not meanings:  # the rows say why none was applied
        return []
    controls = "; ".join(f"{name}: {meaning}" for name, meaning in meanings)
    return [
        f"Controls (Relative Δ in %, ranked again where texts changed): {controls}. "
        "* corrected p < .05 over the raw and controlled values together; "
        "moved: points, with 95 % paired bootstrap interval."
    ]

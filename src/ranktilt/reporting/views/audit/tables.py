"""Tables of an audit, and their legends: means, Relative Δ, the card, controls and confounds."""

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
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.numerical_noise import ROUNDOFF, precision
from ranktilt.auditing.result import RAW, Audit, Controlled
from ranktilt.errors import counted, join_words
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnOf,
    Emphasis,
    Row,
    Table,
    name_column,
    tabulated,
    text_column,
)
from ranktilt.reporting.headline import conflict_findings
from ranktilt.reporting.numbers import (
    DASH,
    count,
    decimal,
    ends,
    estimate,
    interval,
    number,
    number_of,
    p_value,
    percent,
    signed,
)
from ranktilt.reporting.sentences.answers import basis_words
from ranktilt.reporting.sentences.controls import control_change, control_meaning
from ranktilt.reporting.sentences.verdicts import ONE_AT_A_TIME, mark, sides_legend, starred
from ranktilt.reporting.tones import VERDICT_TONES

_QUERIES = "Queries with a relevant document in the group; for Relative Δ, in both groups."
"""Hint of the column of queries."""
_TIED = "Share of relevant twins with equal scores, among those with a side retrieved."
"""Hint of the column of tied twins."""
_AS_LABELLED = "The answer by the labels as they are, before it is corrected for their errors."
_MOST_OPEN = 14
"""Rows of a table below a figure that shows its first column, before the table is collapsed."""
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
    tied = any(tilt.twins for tilt in audit.tilts)
    columns = [name_column("group"), *(Column(repr(measure)) for measure in audit.measures)]
    columns.append(Column("queries", hint=_QUERIES))
    if tied:
        columns.append(Column("tied twins", hint=_TIED))
    rows: list[Row] = []
    means = audit.by_group()
    for run in audit.runs:
        for group in audit.groups:
            side = means.filter((pl.col("run") == run) & (pl.col("group") == group))
            cells = _mean_cells(group, side["mean"].to_list(), side["queries"][0])
            rows.append(Row((*cells, *[Cell("")] * tied), (run,)))
        for pair in audit.tilted_pairs:
            rows += _tilt_rows(audit, run, pair, tied=tied)
    caption = "Means and Relative Δ, in %" if audit.tilts else "Means, in %"
    note = " ".join(table_legend(audit))
    return Table(caption, tuple(columns), tuple(rows), note, groups=("ranker",), collapsed=True)


def _mean_cells(group: str, means: list[float], queries: int) -> Iterator[Cell]:
    """Yield a group's row: its name, a mean on each measure, and its number of queries."""
    emphasis: Emphasis = "quiet" if group == ALL else ""
    yield Cell(group, emphasis=emphasis)
    yield from (number(mean, percent, emphasis=emphasis) for mean in means)
    yield number(queries, str, emphasis=emphasis)


def _tilt_rows(audit: Audit, run: str, pair: Pair, *, tied: bool) -> Iterator[Row]:
    """Yield the row of Relative Δ for a pair of groups, and of its random labels."""
    tilts = [tilt for tilt in audit.tilts if tilt.run == run and (tilt.a, tilt.b) == pair]
    sides = "" if len(audit.pairs) == 1 else f" {pair[0]} | {pair[1]}"
    cells = [Cell(f"Relative Δ{sides}", emphasis="strong")]
    cells += [_delta(tilt, audit.margin_points) for tilt in tilts]
    cells.append(number(tilts[0].queries, str))
    if tied:
        share = audit.tied_share(run, *pair)
        cells.append(Cell("" if isnan(share) else f"{percent(share)} %", share))
    yield Row(tuple(cells), (run,))
    if not tilts[0].twins:
        bands = (
            Cell("", ends=ends(tilt.null_low, tilt.null_high), emphasis="quiet") for tilt in tilts
        )
        empty = [Cell("")] * (1 + tied)
        yield Row((Cell("random band", emphasis="quiet"), *bands, *empty), (run,))


def _delta(tilt: Effect, margin: float) -> Cell:
    """Print Relative Δ with its mark, in the colour of the favoured side.

    `margin` is the smallest Relative Δ that matters, in points.
    """
    kind = tilt.verdict(margin)
    return estimate(
        tilt, signed, mark(tilt), tone=VERDICT_TONES[kind] if kind in ("a", "b") else ""
    )


def _answer(effect: Effect) -> Cell:
    """Print an answer of the card, in the colour of the favoured side."""
    tone = VERDICT_TONES[effect.favours] if effect.favours else ""
    return Cell(effect.estimand.answer(effect.value), effect.value, tone)


def _interval(effect: Effect) -> str:
    """Write an answer's interval in its own unit; a dash without one."""
    amount = effect.estimand.amount
    return f"[{amount(effect.low)}, {amount(effect.high)}]" if effect.has_interval else DASH


def _observed(effect: Effect) -> str:
    """Print the answer by the labels as they are."""
    observed = effect.observed
    return "" if observed is None else effect.estimand.amount(observed.value)


def _random_labels(effect: Effect) -> str:
    """Write the band that random labels give; nothing where there is none."""
    if not effect.has_random_band or not effect.has_interval:
        return ""
    amount = effect.estimand.amount
    return f"[{amount(effect.null_low)}, {amount(effect.null_high)}]"


@dataclass(frozen=True, kw_only=True)
class _PairAnswer:
    """An answer of the card, and the pair of groups below which it is printed."""

    effect: Effect
    """The answer."""
    pair: Pair
    """The pair of groups."""


def card_table(audit: Audit) -> Table:
    """Lay out the card, with one row per question for each ranker and pair of groups."""
    answers = []
    for run, pair in product(audit.runs, audit.pairs):
        answers += [_PairAnswer(effect=effect, pair=pair) for effect in audit.card_of(run, *pair)]
    columns: list[ColumnOf] = [
        (
            name_column("question"),
            lambda row: Cell(row.effect.name, note=row.effect.estimand.question),
        ),
        ("answer", lambda row: _answer(row.effect)),
        ("95 % interval", lambda row: Cell(_interval(row.effect), emphasis="quiet")),
    ]
    if any(answer.effect.observed is not None for answer in answers):
        as_labelled = Column("as labelled", drop_order=4, hint=_AS_LABELLED)
        columns.append((as_labelled, lambda row: Cell(_observed(row.effect), emphasis="quiet")))
    # A column of its own, so that a narrow terminal can go without it and keeps who is favoured.
    if any(_random_labels(answer.effect) for answer in answers):
        random_labels = Column("random labels", drop_order=2)
        columns.append(
            (random_labels, lambda row: Cell(_random_labels(row.effect), emphasis="quiet"))
        )
    columns += [
        (Column("corrected p", drop_order=3), number_of("effect.p_corrected", p_value)),
        (text_column("favours"), lambda row: row.effect.side(row.effect.favours) or DASH),
        (
            text_column("from", drop_order=1),
            lambda row: basis_words(row.effect.estimand, row.effect),
        ),
    ]
    return tabulated(
        "The question card, every number",
        answers,
        columns,
        group=lambda row: _group(audit, row.effect.run, row.pair),
        note=" ".join(card_legend(audit)),
        groups=("ranker",),
        collapsed=len(answers) > _MOST_OPEN,
    )


def _group(audit: Audit, run: str, pair: Pair) -> tuple[str]:
    """Return the ranker, with the pair where there are several."""
    return (f"{run}, {pair[0]} | {pair[1]}" if len(audit.pairs) > 1 else run,)


@dataclass(frozen=True, kw_only=True)
class _PairControl:
    """A run under one control, and the pair of groups below which it is printed."""

    controlled: Controlled
    """The run under the control."""
    pair: Pair
    """The pair of groups."""


def control_table(audit: Audit) -> Table:
    """Lay out the raw value and one row per control, for each ranker and pair of groups."""
    primary = audit.primary_index
    columns: list[ColumnOf] = [(name_column("control"), attrgetter("controlled.control"))]
    for index, measure in enumerate(audit.measures):
        columns.append((repr(measure), partial(_delta_under, audit, index)))
    columns += [
        (f"moved on {audit.measures[primary]!r}", lambda row: _move(row.controlled, primary)),
        (text_column("changed"), lambda row: control_change(row.controlled.control_change)),
    ]
    rows = []
    for run, pair in product(audit.runs, audit.tilted_pairs):
        for controlled in audit.controls:
            # Controls that were not applied name only the first pair.
            is_of_pair = (controlled.a, controlled.b) == pair or not controlled.tilts
            if controlled.run == run and is_of_pair:
                rows.append(_PairControl(controlled=controlled, pair=pair))
    return tabulated(
        "Relative Δ in %, raw and controlled",
        rows,
        columns,
        group=lambda row: _group(audit, row.controlled.run, row.pair),
        note=" ".join(control_legend(audit)),
        groups=("ranker",),
        collapsed=len(rows) > _MOST_OPEN,
    )


def _delta_under(audit: Audit, index: int, row: _PairControl) -> Cell:
    """Return Relative Δ on one measure; nothing where the control was not applied."""
    tilts = row.controlled.tilts
    return _delta(tilts[index], audit.margin_points) if tilts else Cell("")


def _move(controlled: Controlled, index: int) -> Cell:
    """Return how far a control moves Relative Δ on one measure, with the interval."""
    if not controlled.moves or isnan(controlled.moves[index].value):
        return Cell("")
    move = controlled.moves[index]
    text = f"{signed(move.value)} {interval(move.low, move.high)}"
    return Cell(text, move.value, emphasis="quiet")


def conflict_sentences(audit: Audit) -> list[str]:
    """Say for each run and pair that its answers have opposite signs, where they have."""
    return [finding.sentence for finding in conflict_findings(audit)]


def confound_table(confounds: Sequence[Confound]) -> Table:
    """Lay out the other differences between the texts of two groups, and how alike twins are."""
    pairs = list(dict.fromkeys((confound.a, confound.b) for confound in confounds))
    has_groups = len(pairs) > 1
    first, second = ("first", "second") if has_groups else pairs[0]
    columns = (
        (name_column("what else differs"), _confound_name),
        (first, partial(_confound_cell, field="value_a", sided=True)),
        (second, partial(_confound_cell, field="value_b", sided=True)),
        ("share of pairs", partial(_confound_cell, field="value_a", sided=False)),
        (
            Column("counted", hint="documents of both sides, or pairs that are alike"),
            number_of("number", count),
        ),
    )
    return tabulated(
        "Other differences between the two sides",
        confounds,
        columns,
        groups=("pair",) if has_groups else (),
        group=lambda confound: (f"{confound.a} | {confound.b}",) if has_groups else (),
    )


def _confound_name(confound: Confound) -> str:
    """Name what a row of confounds counts."""
    if confound.name == "truncated":
        limit = counted(confound.limit, "token", "tokens")
        return f"documents that {confound.run} cuts at {limit}"
    return _CONFOUNDS[confound.name]


def _confound_cell(confound: Confound, *, field: str, sided: bool) -> Cell:
    """Print a confound's value if its column is for such confounds: of one side, or of both."""
    if (confound.name in SIDED) != sided:
        return Cell("")
    value = getattr(confound, field)
    if confound.name == "words" or isnan(value):
        return number(value, decimal)
    return Cell(f"{percent(value)} %", value)


def control_sentences(audit: Audit) -> list[str]:
    """Say for each run which control changes the verdict on the primary measure."""
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
                f"the verdict from {_kind(raw, before)} to {_kind(raw, after)}"
            )
    return sentences


def _kind(tilt: Effect, kind: str) -> str:
    """Name a verdict in a sentence, with the favoured side."""
    side = {"a": tilt.a, "b": tilt.b}.get(kind)
    return f"favours {side}" if side else kind


def legend(audit: Audit) -> list[str]:
    """Say what the numbers are, in a few lines."""
    lines = [*table_legend(audit), *card_legend(audit), *control_legend(audit)]
    return [*lines, *preset_legend(audit.spec)]


def preset_legend(spec: Mapping[str, Any]) -> list[str]:
    """Name the preset of an audit, and what was asked for otherwise."""
    if not spec.get("preset"):
        return []
    changes = spec.get("preset_changes") or ()
    otherwise = f", except for {', '.join(changes)}, which you chose" if changes else ""
    return [f"Computed by the preset {spec['preset']}{otherwise}."]


def table_legend(audit: Audit) -> list[str]:
    """Say what the main table's numbers are."""
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
    """Say what a star means, if any value was tested."""
    return "" if all(isnan(tilt.p_corrected) for tilt in audit.tilts) else f" {starred(audit.spec)}"


def _intervals_legend(audit: Audit) -> str:
    """Say how the intervals were computed, if there is one."""
    if not any(tilt.has_interval for tilt in audit.tilts):
        return ""
    return (
        f"95 % intervals: paired bootstrap over queries, {audit.spec['resamples']:,} resamples, "
        "widened for the choice of documents. "
    )


def noise_legend(audit: Audit) -> list[str]:
    """Say how far rounding leaves Relative Δ open, and the precision of the other runs."""
    has_pairs = len(audit.tilted_pairs) > 1
    lines = []
    if audit.noise:
        noise = (
            f"{tilt.run}{f' ({tilt.a} | {tilt.b})' if has_pairs else ''} ±{tilt.points:.1f} "
            f"points ({tilt.resolution})"
            for tilt in audit.noise
        )
        name = f"{audit.primary_measure!r}"
        lines.append(f"Numerical noise of Relative Δ {name}: {', '.join(noise)}.")
    computed = {
        str(spec.get("name", spec.get("ranker"))): precision(spec)
        for spec in audit.spec.get("runs", ())
    }
    noisy = {tilt.run for tilt in audit.noise}
    silent = [
        f"{run} in {name}"
        for run, name in computed.items()
        if name in ROUNDOFF and run not in noisy
    ]
    if silent:
        lines.append(f"Computed: {', '.join(silent)}.")
    return lines


def tie_rule(spec: Mapping[str, Any]) -> str:
    """Say how ties count."""
    return "expected value over all orders" if spec["ties"] == "expected" else "trec_eval's, by id"


def card_legend(audit: Audit) -> list[str]:
    """Say what the card's numbers are."""
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
        verbs = ("covers", "favours") if len(names) == 1 else ("cover", "favour")
        yield f"{join_words(names)} {verbs[0]} all groups at once and {verbs[1]} none."
    if not all(isnan(effect.p_corrected) for effect in audit.card):
        yield _correction_legend(audit)
        if not audit.tilts:  # the main table's legend says it otherwise
            yield ONE_AT_A_TIME
    has_relevance = any(effect.estimand.kind == "relevance" for effect in audit.card)
    if audit.spec["ties"] != "expected" and has_relevance:
        yield "Ties are averaged in all rows except Relative Δ."


def _correction_legend(audit: Audit) -> str:
    """Say over which answers of the card p-values are corrected."""
    correction = str(audit.spec["correction"]).capitalize()
    descriptive = dict.fromkeys(effect.name for effect in audit.card if effect.estimand.descriptive)
    gap = "".join(f", without the {name}, which only describes" for name in descriptive)
    return f"p: corrected ({correction}), separately for the primary question{gap}."


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

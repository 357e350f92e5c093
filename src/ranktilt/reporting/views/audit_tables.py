"""What is said of an audit: verdicts, the tables of the papers, the card, controls and confounds, and their legend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import isnan
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
    named,
    tabulated,
    worded,
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
    p_value,
    percent,
    signed,
)
from ranktilt.reporting.sentences.answers import basis_words
from ranktilt.reporting.sentences.controls import control_change, control_meaning
from ranktilt.reporting.sentences.verdicts import ONE_AT_A_TIME, mark, sides_legend, starred
from ranktilt.reporting.tones import VERDICT_TONES

_TIED = "Relevant twins with one score, of those with a side retrieved."
_MOST_OPEN = 14
"""Rows of a table below a figure that shows its first column, before it is folded away."""
_CONFOUNDS = {
    "words": "words a document",
    "query words": "query words in relevant text",
    "cut-off endings": "documents that break off",
    "boilerplate openings": "documents that begin with boilerplate",
    "identical": "the same text",
    "near-identical": "nearly the same text (Jaccard ≥ .95)",
    "same title": "the same title",
}


def group_table(audit: Audit) -> Table:
    """Lay an audit out as the papers do: per ranker the means of all documents and of each group, and Relative Δ."""
    tied = any(t.twins for t in audit.tilts)
    columns = (
        named("group"),
        *(Column(repr(measure)) for measure in audit.measures),
        Column(
            "queries",
            hint="Queries with a relevant document in the group; for Relative Δ in both groups.",
        ),
        *([Column("tied twins", hint=_TIED)] if tied else []),
    )
    rows: list[Row] = []
    means = audit.by_group()
    for run in audit.runs:
        for group in audit.groups:
            side = means.filter((pl.col("run") == run) & (pl.col("group") == group))
            rows.append(
                _mean_row(run, group, side["mean"].to_list(), side["queries"][0], tied=tied)
            )
        for pair in audit.tilted_pairs:
            rows += _tilt_rows(audit, run, pair, tied=tied)
    caption = "Means and Relative Δ, in %" if audit.tilts else "Means, in %"
    note = " ".join(table_legend(audit))
    return Table(caption, columns, tuple(rows), note, groups=("ranker",), folded=True)


def _mean_row(run: str, group: str, means: list[float], queries: int, *, tied: bool) -> Row:
    quiet: Emphasis = "quiet" if group == ALL else ""
    cells = (number(mean, percent, emphasis=quiet) for mean in means)
    end = (number(queries, str, emphasis=quiet), *[Cell("")] * tied)
    return Row((Cell(group, emphasis=quiet), *cells, *end), (run,))


def _tilt_rows(audit: Audit, run: str, pair: Pair, *, tied: bool) -> Iterator[Row]:
    found = [t for t in audit.tilts if t.run == run and (t.a, t.b) == pair]
    which = "" if len(audit.pairs) == 1 else f" {pair[0]} | {pair[1]}"
    share = audit.tied_share(run, *pair)
    last = [Cell("" if share != share else f"{percent(share)} %", share)] * tied
    deltas = (_delta(t, audit.margin_points) for t in found)
    yield Row(
        (
            Cell(f"Relative Δ{which}", emphasis="strong"),
            *deltas,
            number(found[0].queries, str),
            *last,
        ),
        (run,),
    )
    if not found[0].twins:
        bands = (Cell("", ends=ends(t.null_low, t.null_high), emphasis="quiet") for t in found)
        yield Row(
            (Cell("random band", emphasis="quiet"), *bands, Cell(""), *[Cell("")] * tied), (run,)
        )


def _delta(tilt: Effect, level: float) -> Cell:
    kind = tilt.verdict(level)
    return estimate(
        tilt, signed, mark(tilt), tone=VERDICT_TONES[kind] if kind in ("a", "b") else ""
    )


def _answer(e: Effect) -> Cell:
    return Cell(e.estimand.answer(e.value), e.value, VERDICT_TONES[e.favours] if e.favours else "")


def _interval(e: Effect) -> str:
    amount = e.estimand.amount
    return f"[{amount(e.low)}, {amount(e.high)}]" if e.has_interval else DASH


def _random_labels(e: Effect) -> str:
    if not e.banded or not e.has_interval:
        return ""
    amount = e.estimand.amount
    return f"[{amount(e.null_low)}, {amount(e.null_high)}]"


def card_table(audit: Audit) -> Table:
    """Lay the whole card out: per ranker and pair a row a question."""
    found = [
        (e, pair) for run in audit.runs for pair in audit.pairs for e in audit.card_of(run, *pair)
    ]
    # A column of its own, so that a narrow terminal can go without it and keeps who is favoured.
    random: list[ColumnOf] = []
    if any(_random_labels(e) for e, _ in found):
        random = [
            (
                Column("random labels", spare=2),
                lambda of: Cell(_random_labels(of[0]), emphasis="quiet"),
            )
        ]
    columns: list[ColumnOf] = [
        (named("question"), lambda of: Cell(of[0].name, note=of[0].estimand.question)),
        ("answer", lambda of: _answer(of[0])),
        ("95 % interval", lambda of: Cell(_interval(of[0]), emphasis="quiet")),
        *random,
        (Column("corrected p", spare=3), lambda of: number(of[0].p_corrected, p_value)),
        (worded("favours"), lambda of: of[0].side(of[0].favours) or DASH),
        (worded("from", spare=1), lambda of: basis_words(of[0].estimand, of[0])),
    ]
    return tabulated(
        "The question card, every number",
        found,
        columns,
        group=lambda of: _group(audit, of[0].run, of[1]),
        note=" ".join(card_legend(audit)),
        groups=("ranker",),
        folded=len(found) > _MOST_OPEN,
    )


def _group(audit: Audit, run: str, pair: Pair) -> tuple[str]:
    """The ranker, and the pair where there are several."""
    return (f"{run}, {pair[0]} | {pair[1]}" if len(audit.pairs) > 1 else run,)


def control_table(audit: Audit) -> Table:
    """Lay raw and controlled values out below each other: per ranker and pair a row raw and one a control."""
    measures = [repr(measure) for measure in audit.measures]
    columns: list[ColumnOf] = [(named("control"), lambda of: of[0].control)]
    columns += [
        (name, partial(_controlled, place=place, level=audit.margin_points))
        for place, name in enumerate(measures)
    ]
    columns += [
        (
            f"moved on {measures[audit.primary_index]}",
            lambda of: _moved(of[0], audit.primary_index),
        ),
        (worded("changed"), lambda of: control_change(of[0].control_change)),
    ]
    found = [
        (one, pair)
        for run in audit.runs
        for pair in audit.tilted_pairs
        # Controls that were not applied name only the first pair.
        for one in audit.controls
        if one.run == run and ((one.a, one.b) == pair or not one.tilts)
    ]
    return tabulated(
        "Relative Δ in %, raw and controlled",
        found,
        columns,
        group=lambda of: _group(audit, of[0].run, of[1]),
        note=" ".join(control_legend(audit)),
        groups=("ranker",),
        folded=len(found) > _MOST_OPEN,
    )


def _controlled(of: tuple[Controlled, Pair], place: int, level: float) -> Cell:
    return _delta(of[0].tilts[place], level) if of[0].tilts else Cell("")


def _moved(one: Controlled, place: int) -> Cell:
    if not one.moves or one.moves[place].value != one.moves[place].value:
        return Cell("")
    move = one.moves[place]
    return Cell(
        f"{signed(move.value)} {interval(move.low, move.high)}", move.value, emphasis="quiet"
    )


def conflict_sentences(audit: Audit) -> list[str]:
    """One sentence for each run and pair whose answers have opposite signs."""
    return [finding.sentence for finding in conflict_findings(audit)]


def confound_table(confounds: Sequence[Confound]) -> Table:
    """Lay out in what else the texts of two groups differ, and how alike their twins are."""
    pairs = list(dict.fromkeys((one.a, one.b) for one in confounds))
    first, second = pairs[0] if len(pairs) == 1 else ("first", "second")
    columns = (
        (named("what else differs"), _confound_name),
        (first, lambda one: _confound_cell(one, one.value_a, sided=True)),
        (second, lambda one: _confound_cell(one, one.value_b, sided=True)),
        (Column("share of pairs"), lambda one: _confound_cell(one, one.value_a, sided=False)),
        (
            Column("counted", hint="documents of both sides, or pairs with it"),
            lambda one: number(one.number, count),
        ),
    )
    return tabulated(
        "Beside who wrote it",
        confounds,
        columns,
        groups=("pair",) * (len(pairs) > 1),
        group=lambda one: (f"{one.a} | {one.b}",) * (len(pairs) > 1),
    )


def _confound_name(one: Confound) -> str:
    if one.name == "truncated":
        return f"documents that {one.run} cuts at {counted(one.limit, 'token', 'tokens')}"
    return _CONFOUNDS[one.name]


def _confound_cell(one: Confound, value: float, *, sided: bool) -> Cell:
    if (one.name in SIDED) != sided:
        return Cell("")
    return (
        number(value, decimal)
        if one.name == "words" or value != value
        else Cell(f"{percent(value)} %", value)
    )


def control_sentences(audit: Audit) -> list[str]:
    """Say for each run which control changes the verdict on the primary measure."""
    said = []
    place = audit.primary_index if audit.measures else 0
    raws = {
        (one.run, one.a, one.b): one.tilts[place]
        for one in audit.controls
        if one.control == RAW and one.tilts
    }
    for one in audit.controls:
        raw = raws.get((one.run, one.a, one.b))
        if raw is None or not one.moves or not one.moves[place].shown:
            continue
        before, after = (
            raw.verdict(audit.margin_points),
            one.tilts[place].verdict(audit.margin_points),
        )
        if before != after:
            said.append(
                f"{one.run}, control {one.control}: Relative Δ on {raw.measure} moves from "
                f"{signed(raw.value)} to "
                f"{signed(one.tilts[place].value)} %; the verdict from {_kind(raw, before)} to "
                f"{_kind(raw, after)}"
            )
    return said


def _kind(tilt: Effect, kind: str) -> str:
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
    otherwise = f", but for {', '.join(changes)}, which you chose" if changes else ""
    return [f"Computed by the preset {spec['preset']}{otherwise}."]


def table_legend(audit: Audit) -> list[str]:
    """Say what the main table's numbers are."""
    spec = audit.spec
    lines = ["Means in %."] if audit.measures else []
    if audit.tilts:
        twins = {tilt.twins for tilt in audit.tilts}
        rounded = " Means rounded to 0.1 % as in the papers." if spec["rounding"] == "paper" else ""
        lines = [
            f"Means and Relative Δ in %: {sides_legend(audit.pairs)}.{_stars(audit)}",
            f"{_intervals_legend(audit)}Ties: {tie_rule(spec)}.{rounded}",
        ]
        if any(tilt.excluded for tilt in audit.tilts):
            lines.append(
                "The mean of a group is over the queries with a relevant document in it; "
                "Relative Δ and its sentence "
                "are over those with one in both groups."
            )
        if False in twins:
            which = "Groups that are not twins" if True in twins else "Groups are not twins"
            lines.append(
                f"{which}: level is the median of random labels (shuffled within each query), "
                "not 0."
            )
    elif audit.card:
        bootstrap = f"95 % intervals: bootstrap over queries, {spec['resamples']:,} resamples. "
        lines.append(
            f"{bootstrap if any(e.has_interval for e in audit.card) else ''}Ties: averaged."
        )
    return [*lines, *noise_legend(audit)]


def _stars(audit: Audit) -> str:
    """Say what a star means, where anything could be tested."""
    return "" if all(isnan(tilt.p_corrected) for tilt in audit.tilts) else f" {starred(audit.spec)}"


def _intervals_legend(audit: Audit) -> str:
    """Say how intervals were made, where there is one."""
    if not any(tilt.has_interval for tilt in audit.tilts):
        return ""
    return (
        f"95 % intervals: paired bootstrap over queries, {audit.spec['resamples']:,} resamples, "
        "widened by what "
        "documents add. "
    )


def noise_legend(audit: Audit) -> list[str]:
    """Say how far rounding leaves Relative Δ open, and what runs without such noise were computed in."""
    many = len(audit.tilted_pairs) > 1
    noise = (
        f"{tilt.run}{f' ({tilt.a} | {tilt.b})' if many else ''} ±{tilt.points:.1f} points "
        f"({tilt.resolution})"
        for tilt in audit.noise
    )
    lines = (
        [f"Numerical noise of Relative Δ {audit.primary_measure!r}: {', '.join(noise)}."]
        if audit.noise
        else []
    )
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
    return [*lines, *([f"Computed: {', '.join(silent)}."] if silent else [])]


def tie_rule(spec: Mapping[str, Any]) -> str:
    """Say how ties count."""
    return "expected value over all orders" if spec["ties"] == "expected" else "trec_eval's, by id"


def card_legend(audit: Audit) -> list[str]:
    """Say what the numbers are that the card shows."""
    if not audit.card:
        return []
    sided = any(e.estimand.sided for e in audit.card)
    said = [f"Card: {sides_legend(audit.pairs)}."] if sided else []
    whole = list(dict.fromkeys(e.name for e in audit.card if not e.estimand.sided))
    if whole:
        verbs = ("speaks", "favours") if len(whole) == 1 else ("speak", "favour")
        said.append(f"{join_words(whole)} {verbs[0]} of all groups at once and {verbs[1]} none.")
    described = dict.fromkeys(e.name for e in audit.card if e.estimand.descriptive)
    gap = "".join(f", without the {name}, which only describes" for name in described)
    correction = str(audit.spec["correction"]).capitalize()
    if not all(isnan(e.p_corrected) for e in audit.card):
        said.append(f"p: corrected ({correction}), the primary question's tests apart{gap}.")
        if not audit.tilts:  # the main table's legend says it otherwise
            said.append(ONE_AT_A_TIME)
    if audit.spec["ties"] != "expected" and any(e.estimand.kind == "relevance" for e in audit.card):
        said.append("Ties are averaged in all rows but Relative Δ.")
    return [" ".join(said)]


def control_legend(audit: Audit) -> list[str]:
    """Say what each control takes away."""
    meanings = dict.fromkeys(
        (c.control, control_meaning(c)) for c in audit.controls if c.control != RAW and c.tilts
    )
    if not meanings:  # the rows say why none was applied
        return []
    said = "; ".join(f"{name}: {meaning}" for name, meaning in meanings)
    return [
        f"Controls (Relative Δ in %, ranked again where texts changed): {said}. * corrected p < "
        ".05 over the raw and "
        "controlled values together; moved: points, with 95 % paired bootstrap interval."
    ]

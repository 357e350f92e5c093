"""The table of an audit as rows and cells, before any format: per ranker a row for each group and for Relative Δ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from ranktilt.auditing.confounds import confound_sentence
from ranktilt.auditing.effects import ALPHA, Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.verdict import signed
from ranktilt.errors import counted
from ranktilt.reporting.card import card_legend, conflict_sentences
from ranktilt.reporting.controls import control_legend, control_sentences

Kind = Literal["all", "group", "delta", "interval", "band"]


@dataclass(frozen=True)
class Row:
    """One row: a label, one cell a measure, and what stands behind them."""

    run: str
    kind: Kind
    label: str
    cells: tuple[tuple[str, ...], ...]
    """Lines of each measure's cell."""
    queries: str = ""
    tied: str = ""
    favoured: tuple[str, ...] = ()
    """For Relative Δ, per measure: ``a``, ``b`` or nothing, where the verdict's rule finds a side."""


def header(audit: Audit) -> tuple[str, ...]:
    """Column titles: one a measure, then queries and tied twins."""
    return (*(repr(m) for m in audit.measures), "queries", "tied twins")


def rows(audit: Audit) -> list[Row]:
    """Lay an audit out as the papers do."""
    out: list[Row] = []
    if not audit.measures:
        return out
    means = audit.by_group()
    for run in audit.runs:
        for group in audit.groups:
            side = means.filter((pl.col("run") == run) & (pl.col("group") == group))
            cells = tuple((percent(v),) for v in side["mean"])
            out.append(Row(run, "all" if group == ALL else "group", group, cells, str(side["queries"][0])))
        for pair in audit.tilted_pairs:
            out += _pair_rows(audit, run, pair)
    return out


def _pair_rows(audit: Audit, run: str, pair: Pair) -> list[Row]:
    found = [t for t in audit.tilts if t.run == run and (t.a, t.b) == pair]
    name = "Relative Δ" if len(audit.pairs) == 1 else f"Relative Δ {pair[0]} | {pair[1]}"
    tied = audit.tied_share(run, *pair)
    favoured = tuple(k if (k := t.verdict(audit.level)) in ("a", "b") else "" for t in found)
    rows = [
        Row(
            run,
            "delta",
            name,
            tuple((signed_or_dash(t.value) + mark(t),) for t in found),
            str(found[0].queries),
            "" if tied != tied else f"{100 * tied:.1f} %",
            favoured,
        ),
        Row(run, "interval", "95 % interval", tuple(_ends(t.low, t.high) for t in found)),
    ]
    if not found[0].twins:
        rows.append(Row(run, "band", "random band", tuple(_ends(t.band_low, t.band_high) for t in found)))
    return rows


def _ends(low: float, high: float) -> tuple[str, ...]:
    return (signed_or_dash(low), signed_or_dash(high))


def percent(value: float) -> str:
    """Print a mean in percent with one decimal, a dash where it is undefined."""
    return "–" if value != value else f"{100 * value:.1f}"


def signed_or_dash(value: float) -> str:
    """Print a percentage with its sign, a dash where it is undefined."""
    return "–" if value != value else signed(value)


def mark(tilt: Effect) -> str:
    """Mark what is significant after correction."""
    return "*" if tilt.p_corrected < ALPHA else ""


def legend(audit: Audit) -> list[str]:
    """Say what the table's numbers are, in a few lines."""
    spec = audit.spec
    lines = ["Means in %."] if audit.measures else []
    if audit.tilts:
        sides = "; ".join(f"+ favours {a}, − favours {b}" for a, b in audit.pairs[:1])
        more = " (and likewise for the other pairs)" if len(audit.pairs) > 1 else ""
        kinds = {t.twins for t in audit.tilts}
        names = [twin_test(spec["test"], two_way=audit.two_way)] if True in kinds else []
        names += ["test against shuffled labels"] if False in kinds else []
        test = f"for twins {names[0]}, for other groups {names[1]}" if len(names) == 2 else names[0]
        tests = counted(len(audit.tilts), "test", "tests")
        wide = _widened(audit, True in kinds)
        lines = [
            f"Means and Relative Δ in %: {sides}{more}. * corrected p < .05 ({str(spec['correction']).capitalize()} "
            f"over {tests}; {test}).",
            f"Intervals: paired bootstrap over queries, {spec['resamples']:,} resamples{wide}. "
            + ("Ties: expected value over all orders." if spec["ties"] == "expected" else "Ties: trec_eval's, by id.")
            + (" Means rounded to 0.1 % as in the papers." if spec["rounding"] == "paper" else ""),
        ]
        if False in kinds:
            which = "Groups that are not twins" if True in kinds else "Groups are not twins"
            lines.append(f"{which}: level is the random band (labels shuffled within each query), not 0.")
    elif audit.estimates:
        wide = _widened(audit, False)
        lines.append(f"Intervals: bootstrap over queries, {spec['resamples']:,} resamples{wide}. Ties: averaged.")
    beside = [confound_sentence([c for c in audit.confounds if (c.a, c.b) == pair]) for pair in audit.pairs]
    return [*filter(None, beside), *lines, *card_legend(audit), *control_legend(audit)]


def _widened(audit: Audit, twins: bool) -> str:
    """Say that the intervals of twins speak of documents too, where there are any: of Relative Δ, or on the card."""
    paired = twins or any(e.estimand.kind == "twins" for e in audit.estimates)
    return ", for twins widened by what documents add" if paired and audit.two_way else ""


def twin_test(test: str, *, two_way: bool = True) -> str:
    """Name the test of twins: ``permutation`` or ``t`` over queries, beside the exchange of labels."""
    name = "paired sign-flip permutation test" if test == "permutation" else "paired t test"
    return name if not two_way else f"the larger p of a {name} over queries and of labels exchanged within origins"


def sentences(audit: Audit) -> list[str]:
    """One verdict a ranker and pair, in plain words; then conflicts on the card, and what controls change."""
    many = len(audit.pairs) > 1
    verdicts = [
        (f"{a} | {b}: " if many else "") + audit.verdict(run, a, b).sentence
        for run in audit.runs
        for a, b in (audit.tilted_pairs if audit.measures else audit.pairs)
    ]
    return verdicts + conflict_sentences(audit) + control_sentences(audit)

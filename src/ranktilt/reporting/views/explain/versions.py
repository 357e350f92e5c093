"""Manipulation checks: a row for each factor and property, and which factors failed."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from operator import attrgetter
from typing import Any

from ranktilt.errors import counted, join_words
from ranktilt.generation.versions.checks import FAILED, SMALL, FactorCheck, ManipulationChecks
from ranktilt.reporting.document import (
    Cell,
    Column,
    Document,
    Emphasis,
    Sentence,
    Table,
    make_table,
    name_column,
    single_section,
    text_column,
)
from ranktilt.reporting.numbers import (
    DASH,
    always_signed,
    fixed,
    number_cell,
    number_cells,
    percent,
)
from ranktilt.reporting.tones import Tone

_TONES: dict[str, Tone] = {"moved": "good", "held": "good", "unclear": "warning", FAILED: "bad"}
"""Tone of a verdict."""
_EXPECTED = {"up": "moves up", "down": "moves down"}
"""Words for what is expected."""
_LEGEND = (
    "Low and high: means over documents on each level of the factor. Effect: Hedges' g of high "
    "against low, in standard deviations, with its 95 % interval by document (origin).",
    f"Failed: a property that must move did not move by at least {SMALL:g} in its direction, or "
    f"one that must hold surely moved by more than {SMALL:g}. Unclear: the interval reaches "
    f"beyond {SMALL:g}.",
)
"""What numbers mean."""


def view(checks: ManipulationChecks) -> Document:
    """Return the document of manipulation checks."""
    design = checks.spec["design"]
    names, failed = design["factors"], checks.failed
    tried = (
        f"{counted(len(names), 'factor', 'factors')} in {counted(design['runs'], 'run', 'runs')}"
    )
    if failed:
        verdict = (
            f"{join_words(list(failed))} failed the manipulation check and {_are(failed)} left out "
            "of analyses."
        )
    else:
        verdict = "every factor moved what it should."
    headline = f"{tried}: {verdict}"
    unchanged = [
        Sentence(f"{name}: {percent(share)} % of the texts were changed", emphasis="quiet")
        for name, share in checks.changed.items()
    ]
    if "judged" in design:
        unchanged.append(Sentence(_judged(design["judged"])))
    return Document(
        kind="Versions by design",
        headline=headline,
        sections=single_section([checks_table(checks)]),
        sentences=(
            Sentence(headline, "bad" if failed else "good", "alarm" if failed else "strong"),
            *unchanged,
        ),
        legend=_LEGEND,
    )


def _judged(judged: Mapping[str, Any]) -> str:
    """Say how a judge grades false versions, compared with their originals."""
    versions = counted(judged["graded"], "false version", "false versions")
    lost = judged["pairs"] - judged["graded"]
    without = f"; {lost:,} have no grade" if lost else ""
    return (
        f"facts: {judged['lower']:,} of {versions} graded lower than their originals, "
        f"{judged['higher']:,} higher, by {judged['judge']}{without}"
    )


def _are(names: tuple[str, ...]) -> str:
    """Return the verb for some names."""
    return "are" if len(names) > 1 else "is"


def checks_table(checks: ManipulationChecks) -> Table:
    """Lay the checks out by factor."""
    columns = (
        (name_column("property"), attrgetter("probe")),
        (text_column("must"), _expected),
        (Column("low", drop_order=2), number_cells("low_mean", fixed)),
        (Column("high", drop_order=2), number_cells("high_mean", fixed)),
        (Column("effect", hint="Hedges' g"), _effect),
        (Column("documents", drop_order=1), _origins),
        (text_column("verdict"), _verdict),
    )
    return make_table(
        "What each factor did to the texts",
        checks.rows,
        columns,
        group_of=lambda row: (row.factor,),
        group_titles=("factor",),
    )


def _expected(row: FactorCheck) -> str:
    """Say what is expected of a property."""
    return _EXPECTED.get(row.expected, row.expected)


def _origins(row: FactorCheck) -> str:
    """Write the number of documents."""
    return f"{row.origins:,}"


def _verdict(row: FactorCheck) -> Cell:
    """Print the verdict."""
    return Cell(row.verdict, tone=_TONES.get(row.verdict, ""))


def _effect(row: FactorCheck) -> Cell:
    """Print the effect, strongly where the check failed."""
    if isnan(row.g):
        return Cell(DASH)
    ends = (always_signed(row.low), always_signed(row.high))
    emphasis: Emphasis = "strong" if row.verdict == FAILED else ""
    return number_cell(row.g, always_signed, ends=ends, emphasis=emphasis)

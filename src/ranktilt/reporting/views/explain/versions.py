"""The document of manipulation checks, of whether each factor changed in the texts what it should.

A *factor* is a change of a text in an experiment, with the levels low and high. A check measures
one property of the texts on both levels; the property must move up or down, or must hold. The
*verdict* says whether it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from operator import attrgetter
from typing import Any

from ranktilt.errors import counted, join_words
from ranktilt.generation.versions.checks import FAILED, SMALL, FactorCheck, ManipulationChecks
from ranktilt.measures.printing import ends_apart
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
    with_commas,
)
from ranktilt.reporting.tones import Tone

_TONES: dict[str, Tone] = {"moved": "good", "held": "good", "unclear": "warning", FAILED: "bad"}
"""Tone of a verdict."""
_EXPECTED = {"up": "moves up", "down": "moves down"}
"""Words for how a property must change."""
_LEGEND = (
    "Low and high: means over documents on each level of the factor. Effect: Hedges' g of high "
    "against low, in standard deviations, with its 95 % interval by document (origin).",
    f"Failed: a property that must move did not move by at least {SMALL:g} in its direction, or "
    f"one that must hold surely moved by more than {SMALL:g}. Unclear: the interval reaches "
    f"beyond {SMALL:g}.",
)
"""Explanation of the columns and verdicts."""


def view(checks: ManipulationChecks) -> Document:
    """Return the document of manipulation checks."""
    design = checks.spec["design"]
    failed = checks.failed
    factors = counted(len(design["factors"]), "factor", "factors")
    runs = counted(design["runs"], "run", "runs")
    verdict = "every factor moved what it should."
    if failed:
        are = "are" if len(failed) > 1 else "is"
        names = join_words(list(failed))
        verdict = f"{names} failed the manipulation check and {are} left out of analyses."
    headline = f"{factors} in {runs}: {verdict}"
    details = [
        Sentence(f"{factor}: {percent(share)} % of the texts were changed", emphasis="quiet")
        for factor, share in checks.changed.items()
    ]
    if "judged" in design:
        details.append(Sentence(_false_versions_sentence(design["judged"])))
    return Document(
        kind="Versions by design",
        headline=headline,
        sections=single_section([checks_table(checks)]),
        sentences=(
            Sentence(headline, "bad" if failed else "good", "alarm" if failed else "strong"),
            *details,
        ),
        legend=_LEGEND,
    )


def _false_versions_sentence(counts: Mapping[str, Any]) -> str:
    """Say how many versions with false facts a judge grades lower than their originals."""
    versions = counted(counts["graded"], "false version", "false versions")
    ungraded_count = counts["pairs"] - counts["graded"]
    ungraded = f"; {ungraded_count:,} have no grade" if ungraded_count else ""
    return (
        f"facts: {counts['lower']:,} of {versions} graded lower than their originals, "
        f"{counts['higher']:,} higher, by {counts['judge']}{ungraded}"
    )


def checks_table(checks: ManipulationChecks) -> Table:
    """Return the table of checks, with a row for each factor and property."""
    columns = (
        (name_column("property"), attrgetter("probe")),
        (text_column("must"), _expected_change),
        (Column("low", drop_order=2), number_cells("low_mean", fixed)),
        (Column("high", drop_order=2), number_cells("high_mean", fixed)),
        (Column("effect", hint="Hedges' g"), _effect_cell),
        (Column("documents", drop_order=1), _document_count),
        (text_column("verdict"), _verdict_cell),
    )
    return make_table(
        "What each factor did to the texts",
        checks.rows,
        columns,
        group_of=lambda row: (row.factor,),
        group_titles=("factor",),
    )


def _expected_change(row: FactorCheck) -> str:
    """Say how a property must change: ``moves up``, ``moves down``, or that it holds."""
    return _EXPECTED.get(row.expected, row.expected)


def _document_count(row: FactorCheck) -> str:
    """Print the number of documents that have a version on both levels."""
    return with_commas(row.origins)


def _verdict_cell(row: FactorCheck) -> Cell:
    """Return the cell of the verdict, in its colour."""
    return Cell(row.verdict, tone=_TONES.get(row.verdict, ""))


def _effect_cell(row: FactorCheck) -> Cell:
    """Return the cell of the effect with its interval, strong where the check failed."""
    if isnan(row.g):
        return Cell(DASH)
    emphasis: Emphasis = "strong" if row.verdict == FAILED else ""
    ends = ends_apart((row.low, row.high), 0.0, always_signed)
    return number_cell(row.g, always_signed, ends=ends, emphasis=emphasis)

"""A check in words: whether an audit of a collection is a fair comparison of its sides.

The sides are the reference, such as human authors, and other sources, whose texts are rewrites of
the reference's. A fault, such as texts that are cut off, is a warning or makes the comparison void.
The instrument is the audit itself: it is tested on sides that a coin decides, where it should
favour none. Effectiveness is tested too: it should be the same on both sides, up to a margin.
"""

from __future__ import annotations

import shlex
from typing import Any

from ranktilt.auditing.checks.equivalence import Equivalence
from ranktilt.auditing.checks.instrument import CHANCE, InstrumentRow
from ranktilt.data.faults.faults import LENGTH, FaultRow
from ranktilt.errors import counted
from ranktilt.explaining.check_result import CheckResult
from ranktilt.measures.margin import margin_words
from ranktilt.measures.printing import digits_apart
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.findings import command_rows, without_output
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural

_RANKER = "bm25"
"""Ranker in the commands of next steps; you put your own in its place."""
_PAGE = "audit.html"
"""File of the page in the commands of next steps."""


def check_sentence(check: CheckResult) -> str:
    """Say whether the comparison is fair, and why not."""
    reasons = [_fault_words(check, row) for row in check.of("void")]
    for row in check.instrument:
        if not row.is_calibrated:
            tests = share_of_all(row.sides_named, row.tosses, "test", "tests")
            reasons.append(
                f"audits of {row.ranker} favour a side too often (in {tests} where a coin decided "
                "who wrote what)"
            )
    if reasons:
        return f"Not a fair comparison{_compared_sides(check)}: {'; '.join(reasons)}."
    comparison = _comparison(check)
    warnings = check.of("warning")
    if not warnings:
        return f"{comparison}: no fault makes it unfair." if check.is_compared else f"{comparison}."
    names = ", ".join(_fault_name(check, row) for row in warnings)
    return f"{comparison}; {counted(len(warnings), 'warning', 'warnings')}: {names}."


def _comparison(check: CheckResult) -> str:
    """Say that the comparison is fair, and of which sides; or that nothing is compared."""
    if not check.sources:
        return "Nothing is compared: no document names its source"
    if not check.is_compared:
        return f"Nothing is compared: only source {check.sources[0]!r} is left"
    return f"A fair comparison{_compared_sides(check)}"


def _compared_sides(check: CheckResult) -> str:
    """Name the compared sources and the reference; empty where nothing is compared."""
    if not check.is_compared:
        return ""
    return f" of {' and '.join(check.sources)} with {check.reference}"


def _fault_words(check: CheckResult, row: FaultRow) -> str:
    """Name a fault with its amount and its limit."""
    amount = f"{row.count:,} of {row.total:,}, {row.shown_value}"
    if row.name == LENGTH:  # a ratio of lengths, which counts nothing
        amount = f"median {row.shown_value}"
    return f"{_fault_name(check, row)} ({amount}; allowed: {row.limit})"


def _fault_name(check: CheckResult, row: FaultRow) -> str:
    """Name a fault, and the source where there are several."""
    is_of_one_side = row.source and len(check.sources) > 1
    return f"{row.name} of {row.source}" if is_of_one_side else row.name


def instrument_sentence(row: InstrumentRow) -> str:
    """Say how often an audit names a side where a coin decided who wrote what."""
    shares = [100 * row.sides_named / row.tosses, 100 * row.low, 100 * row.high]
    digits = digits_apart(shares[1:], [100 * CHANCE])
    share, low, high = (f"{number:.{digits}f}" for number in shares)
    audits = share_of_all(row.sides_named, row.tosses, "audit", "audits")
    favour = singular_or_plural(row.sides_named, "favours", "favour")
    expected = f"at most {100 * CHANCE:g} % are expected"
    outcome = expected if row.is_calibrated else f"too many, as {expected}"
    return (
        f"{row.ranker} on {row.question}: with sources set by a coin, {audits} {favour} a side "
        f"({share} % [{low}, {high}]); {outcome}"
    )


def equivalence_words(row: Equivalence) -> str:
    """Say whether effectiveness is the same on both sides, up to a margin."""
    outcomes = {
        "equivalent": f"equivalent within {_margin(row)}",
        "different within the margin": f"different within {_margin(row)}",
    }
    return outcomes.get(row.outcome, row.outcome)


def _margin(row: Equivalence) -> str:
    """Print the margin of a test of equivalence, a share from 0 to 1, in points."""
    return margin_words(100 * row.margin)


def check_meaning(check: CheckResult) -> str:
    """Say what a check means: whether an audit of this collection can be trusted."""
    if check.is_void:
        return (
            "Do not audit with this collection yet. Its sides differ in ways that would look like "
            "a tilt."
        )
    if not check.is_compared:
        return "There are no two sides here, so no ranker can favour one."
    if check.of("warning"):
        return "You can audit with this collection, but keep the warnings in mind."
    return "You can audit with this collection. It compares like with like."


def check_next_commands(check: CheckResult) -> tuple[NextCommand, ...]:
    """Return what to do after a check of a collection that has a path."""
    path, command = check.spec.get("path"), str(check.spec.get("command") or "")
    if not path or not check.is_compared:
        return ()
    split = check.spec.get("split")
    split_words = [] if split in (None, "test") else ["--split", str(split)]  # test is the default
    collection = [str(path), *split_words]
    if check.is_void:
        text = "Fix the collection, then check it again"
        repeated = shlex.join(without_output(shlex.split(command)))
        return (NextCommand(text=text, command=repeated),) if command else ()
    audit = ["ranktilt", "audit", *collection, "-r", _RANKER]
    steps = []
    if check.of("warning"):
        text = "Audit a ranker, and see whether other differences explain its tilt"
        controlled = [*audit, "--controls", "-o", _PAGE]
        steps.append(NextCommand(text=text, command=shlex.join(controlled)))
    else:
        steps.append(NextCommand(text="Audit a ranker", command=shlex.join([*audit, "-o", _PAGE])))
    if not check.instrument:
        instrument_test = ["ranktilt", "check", *collection, "-r", _RANKER, "--instrument"]
        text = "Test how often an audit favours a side by chance"
        steps.append(NextCommand(text=text, command=shlex.join(instrument_test)))
    return tuple(steps)


def derived_words(check: CheckResult) -> dict[str, Any]:
    """Return the sentence and next steps, which the saved file holds besides the fields."""
    steps = command_rows(check_next_commands(check))
    return {"sentence": check_sentence(check), "next_steps": steps}


def derived_equivalence_words(row: Equivalence) -> dict[str, Any]:
    """Return the words of a test of equivalence, which a check's file holds besides its numbers."""
    return {"verdict": equivalence_words(row)}

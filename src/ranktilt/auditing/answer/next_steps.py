"""What to do after an audit: two or three commands that run as printed, by rule from what was read and found."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ranktilt.auditing.answer.command_words import (
    Audit,
    are_twins,
    audit_words,
    explain_groups_words,
    explain_twins_words,
    folder_of,
    limit_text,
    mitigate_words,
    split_words,
)

SHOWN = 10.0
"""Points of tilt that queries should be able to show."""
_SIDED = ("cut-off endings", "boilerplate openings", "truncated")
_PAIRED = ("identical", "near-identical")
_UNFAIR = 0.05
"""Share of pairs that are too alike, or difference between the sides, from which texts should be checked first."""
_MOST = 3

StepKind = Literal["check", "explain", "twins", "mitigate", "keep", "fail", "queries", "card"]


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """One command to run next, and what it is for."""

    kind: StepKind
    """``keep``, ``fail``: a gate in CI, for a run that is level or one that is tilted."""
    command: str
    control: str = ""
    """The control that moves the tilt, which is to be explained after it."""
    queries: int = 0
    """Number of queries that the audit rests on."""
    needed: int = 0
    """Number of queries like these that would show a tilt of `SHOWN` points."""


def next_steps(audit: Audit) -> tuple[NextStep, ...]:
    """Return what to do next; nothing where no command could read the same."""
    verdicts = audit.verdicts() if audit.pairs else []
    if not verdicts or not audit_words(audit):
        return ()
    steps = list[NextStep]()
    if (folder := folder_of(audit)) and _unfair(audit):
        steps.append(_step("check", ["ranktilt", "check", folder, *split_words(audit)]))
    tilted = [one for one in verdicts if one.kind == "favours"]
    open_ones = [one for one in verdicts if one.kind == "inconclusive"]
    if tilted:
        worst = max(tilted, key=lambda one: not one.slight)
        steps += _favoured(audit, worst)
    elif open_ones:
        steps += _more_queries(audit, open_ones[0].run)
    else:
        steps.append(_gate(audit))
    return tuple(steps[:_MOST])


def _step(kind: StepKind, words: list[str], *more: str, control: str = "") -> NextStep:
    return NextStep(kind=kind, command=shlex.join([*words, *more]), control=control)


def _unfair(audit: Audit) -> bool:
    """Whether the sides of a collection cannot be compared as they are: missing twins, cut or repeated texts."""
    if (
        audit.spec["by"] != "source"
        or not audit.confounds
        or audit.spec["collection"].get("labels")
    ):
        return (
            False  # labels of a file are not the sources that a check of the folder would compare
        )
    if any(not e.twins for e in (*audit.tilts, *audit.card) if e.estimand.sided):
        return True
    alike = (one.value_a for one in audit.confounds if one.name in _PAIRED)
    apart = (abs(one.value_a - one.value_b) for one in audit.confounds if one.name in _SIDED)
    return any(share >= _UNFAIR for share in (*alike, *apart))


def _favoured(audit: Audit, verdict: Any) -> Iterator[NextStep]:
    run, pair = verdict.run, (verdict.a, verdict.b)
    if explain := explain_twins_words(audit, [run], pair):
        moved = [
            one
            for one in audit.controls
            if one.run == run and one.moves and one.moves[audit.primary_index].shown
        ]
        control = moved[0].control if moved else ""
        yield _step("explain", explain, "--attribution", control=control)
    elif audit.measures and not audit.card and are_twins(audit, pair):
        yield _step("twins", audit_words(audit), "--card")
    elif properties := explain_groups_words(audit, [run], pair):
        yield _step("explain", properties, "--attribution")
    if verdict.slight:
        yield _gate(audit)
        return
    if level := mitigate_words(audit, run, pair):
        yield _step("mitigate", level, "-o", "level.html")
    yield _gate(audit, "fail")


def _gate(audit: Audit, kind: StepKind = "keep") -> NextStep:
    make = shlex.join([*audit_words(audit), "--json", "audit.json"])
    limit = shlex.quote(limit_text(audit))
    return NextStep(kind=kind, command=f"{make} && ranktilt gate audit.json --max-tilt {limit}")


def _more_queries(audit: Audit, run: str) -> Iterator[NextStep]:
    """How many queries would show a tilt."""
    own = (
        e for e in (*audit.tilts, *audit.card) if e.run == run and e.measure == repr(audit.primary)
    )
    primary = next(own, None)
    points = math.nan if primary is None else primary.detectable / primary.estimand.point
    if primary is not None and SHOWN < points < math.inf:
        yield NextStep(
            kind="queries",
            command=shlex.join(audit_words(audit)),
            queries=primary.queries,
            needed=math.ceil(primary.queries * (points / SHOWN) ** 2),
        )
    if not audit.card and audit.spec["by"] == "source" and primary is not None and primary.twins:
        yield _step("card", audit_words(audit), "--card")

"""What to do after an audit: two or three commands that run as printed, chosen by rules."""

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
    explain_labels_words,
    explain_twins_words,
    folder_of,
    json_file,
    limit_text,
    mitigate_words,
    split_words,
)
from ranktilt.auditing.answer.verdict import margins
from ranktilt.auditing.groups import Pair
from ranktilt.data.notes.texts import CheckFailed

SHOWN = 10.0
"""Tilt in points that an audit should be able to show."""
_SIDED = ("cut-off endings", "boilerplate openings", "truncated")
"""Confounds that count documents of each group; unfair if the two shares differ."""
_PAIRED = ("identical", "near-identical")
"""Confounds that count pairs of twins; unfair if many pairs have them."""
_UNFAIR = 0.05
"""Share of pairs that are too alike, or difference of the sides, that asks for a check first."""
_MOST = 3
"""Most steps to recommend."""
_SAVE_RUN = ("--save-run", "mitigated.trec")
"""Option that writes a corrected run, so that a step leaves something to use."""
_SAVE_RANKER = ("--save-ranker", "mitigated")
"""Option that writes a corrected ranker."""

StepKind = Literal["check", "explain", "twins", "mitigate", "keep", "fail", "queries", "card"]
"""Purpose of a next step; the words are in `reporting/sentences/next_steps`."""


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """A command to run next, and its purpose."""

    kind: StepKind
    """Purpose of the step.

    ``keep`` and ``fail`` are gates for continuous integration, after a level and after a tilted
    run.
    """
    command: str
    """The command, as you type it."""
    control: str = ""
    """Control that moves the tilt, which the step would explain."""
    queries: int = 0
    """Number of queries that the audit rests on."""
    needed: int = 0
    """Number of queries like these that would show a tilt of `SHOWN` points."""


def next_steps(audit: Audit) -> tuple[NextStep, ...]:
    """Return the next steps; none if no command could read the same data."""
    verdicts = audit.verdicts() if audit.pairs else []
    if not verdicts or not audit_words(audit):
        return ()
    steps = list[NextStep]()
    if (folder := folder_of(audit)) and _unfair(audit):
        steps.append(_step("check", ["ranktilt", "check", folder, *split_words(audit)]))
    tilted = [verdict for verdict in verdicts if verdict.kind == "favours"]
    # The headline begins with the largest, and so do the steps.
    tilted.sort(key=lambda verdict: -margins(verdict.effect, audit.margin))
    inconclusive = [verdict for verdict in verdicts if verdict.kind == "inconclusive"]
    if tilted:
        beyond_margin = [verdict for verdict in tilted if not verdict.slight]
        steps += _favoured(audit, (beyond_margin or tilted)[0])
    elif inconclusive:
        steps += _more_queries(audit, inconclusive[0].run)
    else:
        steps.append(_gate(audit))
    return tuple(steps[:_MOST])


def _step(kind: StepKind, words: list[str], *more: str, control: str = "") -> NextStep:
    """Return a step whose command has these words."""
    return NextStep(kind=kind, command=shlex.join([*words, *more]), control=control)


def _unfair(audit: Audit) -> bool:
    """Return whether the two sides should be checked first.

    That is so if twins are missing, or if texts are cut or repeated.
    """
    # Labels of a file are not the sources that a check of the folder would compare.
    has_label_file = bool(audit.spec["collection"].get("labels"))
    if audit.spec["by"] != "source" or not audit.confounds or has_label_file:
        return False
    if any(isinstance(note, CheckFailed) for note in audit.notes):
        return True
    effects = (*audit.tilts, *audit.card)
    if any(not effect.twins for effect in effects if effect.estimand.sided):
        return True
    for confound in audit.confounds:
        if confound.name in _PAIRED and confound.value_a >= _UNFAIR:
            return True
        if confound.name in _SIDED and abs(confound.value_a - confound.value_b) >= _UNFAIR:
            return True
    return False


def _favoured(audit: Audit, verdict: Any) -> Iterator[NextStep]:
    """Yield the steps after a favoured side: explain it, correct it, and gate it."""
    run, pair = verdict.run, (verdict.a, verdict.b)
    yield from _why(audit, run, pair)
    if verdict.slight:
        yield _gate(audit)
        return
    if level := mitigate_words(audit, run, pair):
        save = _SAVE_RUN if "--run" in level else _SAVE_RANKER
        yield _step("mitigate", level, *save, "-o", "mitigated.html")
    yield _gate(audit, "fail")


def _why(audit: Audit, run: str, pair: Pair) -> Iterator[NextStep]:
    """Yield the command that says most about what a tilt goes with."""
    if explain := explain_twins_words(audit, [run], pair):
        moving = [
            row.control
            for row in audit.controls
            if row.run == run and row.moves and row.moves[audit.primary_index].is_shown
        ]
        control = moving[0] if moving else ""
        yield _step("explain", explain, "--attribution", control=control)
    elif audit.measures and not audit.card and are_twins(audit, pair):
        yield _step("twins", audit_words(audit), "--card")
    elif properties := explain_groups_words(audit, [run], pair):
        yield _step("explain", properties, "--attribution")
    elif folder_of(audit) and (labelled := explain_labels_words(audit, [run], pair)):
        yield _step("explain", labelled, "--attribution")


def _gate(audit: Audit, kind: StepKind = "keep") -> NextStep:
    """Return the step that gates a new audit with the margin of this one."""
    file = json_file(str(audit.spec.get("command", "")), "audit.json")
    make = shlex.join([*audit_words(audit), "--json", file])
    gate = f"ranktilt gate {shlex.quote(file)} --max-tilt {shlex.quote(limit_text(audit))}"
    return NextStep(kind=kind, command=f"{make} && {gate}")


def _more_queries(audit: Audit, run: str) -> Iterator[NextStep]:
    """Say how many queries would show a tilt, and suggest the card of twins."""
    effects = [effect for effect in (*audit.tilts, *audit.card) if effect.run == run]
    answers = [effect for effect in effects if effect.measure == repr(audit.primary)]
    primary = answers[0] if answers else None
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

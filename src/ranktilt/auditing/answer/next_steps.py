"""What to do after an audit: up to three commands that run as printed, chosen by rules.

*Twins* are two versions of one document, of which each of two groups has one. A *confound* is a
difference between their texts other than the group. A *tilt* is an answer that favours a group. A
*control* audits again without one confound.

The rules, in order: a check of the texts, if faults of theirs could explain what was found; after a
tilt, a command that explains it and one that corrects it; after an inconclusive audit, the number
of queries that would decide; after a level one, a gate that keeps it level.
"""

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
"""Tilt that an audit should be able to show, in points: twice the default margin.

If an inconclusive audit could not have shown so large a tilt, more queries are recommended.
"""
_SIDED = ("cut-off endings", "boilerplate openings", "truncated")
"""Confounds with a share of documents for each group; unfair if the two shares differ."""
_PAIRED = ("identical", "near-identical")
"""Confounds with one share, of the pairs of twins; unfair if it is large."""
_UNFAIR = 0.05
"""Share of pairs, or difference of both groups' shares, from which a check is recommended first."""
_MOST_STEPS = 3
"""Most steps to recommend."""
_SAVE_RUN = ("--save-run", "mitigated.trec")
"""Option that writes the run that `mitigate` levelled."""
_SAVE_RANKER = ("--save-ranker", "mitigated")
"""Option that writes the ranker that `mitigate` levelled."""

StepKind = Literal["check", "explain", "twins", "mitigate", "keep", "fail", "queries", "card"]
"""Purpose of a next step; the words are in `reporting/sentences/findings`."""


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """A command to run next, and its purpose."""

    kind: StepKind
    """Purpose of the step.

    ``keep`` and ``fail`` are gates for continuous integration: ``keep`` after a level run, ``fail``
    after a tilted run.
    """
    command: str
    """The command, as you type it."""
    control: str = ""
    """For ``explain``: name of a control that moves the tilt, such as ``length``; else empty."""
    queries: int = 0
    """For ``queries``: number of queries that the audit rests on."""
    needed: int = 0
    """For ``queries``: number of such queries that would show a tilt of `SHOWN` points."""


def next_steps(audit: Audit) -> tuple[NextStep, ...]:
    """Return the next steps; none if no command could read the same data."""
    verdicts = audit.verdicts() if audit.pairs else []
    if not verdicts or not audit_words(audit):
        return ()
    steps: list[NextStep] = []
    folder = folder_of(audit)
    if folder and _needs_check(audit):
        steps.append(_command_step("check", ["ranktilt", "check", folder, *split_words(audit)]))
    tilted = [verdict for verdict in verdicts if verdict.kind == "favours"]
    # The steps are about the largest tilt, with which the headline begins, too.
    tilted.sort(key=lambda verdict: -margins(verdict.effect, audit.margin))
    inconclusive = [verdict for verdict in verdicts if verdict.kind == "inconclusive"]
    if tilted:
        beyond_margin = [verdict for verdict in tilted if not verdict.slight]
        steps += _steps_if_favoured(audit, (beyond_margin or tilted)[0])
    elif inconclusive:
        steps += _steps_if_inconclusive(audit, inconclusive[0].run)
    else:
        steps.append(_gate_step(audit, "keep"))
    return tuple(steps[:_MOST_STEPS])


def _command_step(kind: StepKind, words: list[str], *more: str, control: str = "") -> NextStep:
    """Return a step whose command has these words, `more` at its end."""
    return NextStep(kind=kind, command=shlex.join([*words, *more]), control=control)


def _needs_check(audit: Audit) -> bool:
    """Return whether the texts of the sources should be checked first.

    They should if twins are missing, or if many texts are cut off or repeated.
    """
    # A check compares the sources in the folder, and no labels from a file.
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


def _steps_if_favoured(audit: Audit, verdict: Any) -> Iterator[NextStep]:
    """Yield the steps after a verdict for a group: explain the tilt, level it, and gate it."""
    run, pair = verdict.run, (verdict.a, verdict.b)
    yield from _explanation_step(audit, run, pair)
    if verdict.slight:
        yield _gate_step(audit, "keep")
        return
    words = mitigate_words(audit, run, pair)
    if words:
        save = _SAVE_RUN if "--run" in words else _SAVE_RANKER
        yield _command_step("mitigate", words, *save, "-o", "mitigated.html")
    yield _gate_step(audit, "fail")


def _explanation_step(audit: Audit, run: str, pair: Pair) -> Iterator[NextStep]:
    """Yield the one command that can say most about what explains a tilt, if there is any.

    Twins of one source can be compared text by text. Other groups can only be compared within each
    list, by their texts or by the other columns of a label file.
    """
    explain_twins = explain_twins_words(audit, [run], pair)
    if explain_twins:
        controls_that_move = [
            row.control
            for row in audit.controls
            if row.run == run and row.moves and row.moves[audit.primary_index].is_shown
        ]
        control = controls_that_move[0] if controls_that_move else ""
        yield _command_step("explain", explain_twins, "--attribution", control=control)
        return
    if audit.measures and not audit.card and are_twins(audit, pair):
        yield _command_step("twins", audit_words(audit), "--card")
        return
    explain_groups = explain_groups_words(audit, [run], pair)
    if explain_groups:
        yield _command_step("explain", explain_groups, "--attribution")
        return
    explain_labels = explain_labels_words(audit, [run], pair) if folder_of(audit) else []
    if explain_labels:
        yield _command_step("explain", explain_labels, "--attribution")


def _gate_step(audit: Audit, kind: StepKind) -> NextStep:
    """Return the step that makes the audit again and gates it with its own margin."""
    file = json_file(str(audit.spec.get("command", "")), "audit.json")
    audit_command = shlex.join([*audit_words(audit), "--json", file])
    gate_command = f"ranktilt gate {shlex.quote(file)} --max-tilt {shlex.quote(limit_text(audit))}"
    return NextStep(kind=kind, command=f"{audit_command} && {gate_command}")


def _steps_if_inconclusive(audit: Audit, run: str) -> Iterator[NextStep]:
    """Yield a step with the number of queries that would show a tilt, and the card for twins."""
    effects = [effect for effect in (*audit.tilts, *audit.card) if effect.run == run]
    answers = [effect for effect in effects if effect.measure == repr(audit.primary)]
    primary = answers[0] if answers else None
    points = math.nan if primary is None else primary.detectable / primary.estimand.point
    if primary is not None and SHOWN < points < math.inf:
        # A detectable tilt shrinks with the square root of the number of queries.
        yield NextStep(
            kind="queries",
            command=shlex.join(audit_words(audit)),
            queries=primary.queries,
            needed=math.ceil(primary.queries * (points / SHOWN) ** 2),
        )
    if not audit.card and audit.spec["by"] == "source" and primary is not None and primary.twins:
        yield _command_step("card", audit_words(audit), "--card")

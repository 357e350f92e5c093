"""The meaning of a comparison, for somebody who has to choose a run, and next steps.

A new and an old run are compared in how effective they are, and in tilts, that is, in how much they
favour one of two groups. A change is such a difference, and the verdict on it says whether it is
shown. The spec of an audit says how it was made, so that a command can be suggested.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Any

from ranktilt.auditing.answer.next_steps import SHOWN
from ranktilt.auditing.comparison.result import ChangeVerdict, Comparison
from ranktilt.auditing.effects import Change
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.comparison.compare import change_order, change_verdict_sentence
from ranktilt.reporting.sentences.findings import command_rows

MITIGATION_PAGE = "mitigated.html"
"""Page of the documentation on levelling a ranker."""


def comparison_meaning(comparison: Comparison) -> str:
    """Say what a comparison means: whether the new run may replace the old one."""
    verdicts = comparison.verdicts()
    if not verdicts or all(verdict.kind == "identical" for verdict in verdicts):
        return "Nothing changed: what you know about the old run also holds for the new one."
    tilts = moved_tilts([verdict for verdict in verdicts if verdict.is_primary])
    if tilts:
        runs = (tilts[0].run, tilts[0].old_run)
        return f"{_tilt_meaning(tilts[0])}{_effectiveness_meaning(comparison, runs)}"
    if any(verdict.is_shown for verdict in verdicts):
        effectiveness = _effectiveness_meaning(comparison, comparison.runs[0])
        if moved_tilts(verdicts):
            return (
                "On the primary question no change in what is favoured is shown; on others it is. "
                f"Decide which question matters to you.{effectiveness}"
            )
        nothing = "No change in what is favoured is shown. Other changes are listed below."
        return f"{nothing}{effectiveness}"
    return (
        "No change is shown. That does not mean there is none: these queries could have missed one "
        "as large as the size named below."
    )


def moved_tilts(verdicts: Sequence[ChangeVerdict]) -> list[Change]:
    """Return the differences of tilts that are shown, those on the primary question first.

    Among these, and among all others, the largest comes first.
    """
    tilts = [verdict for verdict in verdicts if verdict.side is not None]
    tilts.sort(key=lambda verdict: (not verdict.is_primary, change_order(verdict.changes[0])))
    return [verdict.changes[0] for verdict in tilts]


def _tilt_meaning(change: Change) -> str:
    """Say what a change of tilt means for a reader."""
    side = change.a if change.value > 0 else change.b
    old = "its old run" if change.run == change.old_run else change.old_run
    answer = change.estimand.answer
    finding = (
        f"{change.run} gives {side} more than {old} does ({answer(change.old)} before, "
        f"{answer(change.new)} now), by more than chance explains"
    )
    new_tilt = change.new - change.neutral_new
    old_tilt = change.old - change.neutral_old
    if new_tilt * old_tilt < 0:  # to different sides
        finding += ", and now leans to the other side"
    if change.growth_low > 0:
        return f"{finding}, and its tilt is larger. Look at it before you switch."
    if change.growth_high < 0:
        return f"{finding}, and its tilt is smaller. Switching reduces the tilt."
    return f"{finding}. A larger tilt is not shown."


def _effectiveness_meaning(comparison: Comparison, runs: tuple[str, str]) -> str:
    """Say whether the new of two runs is more effective; nothing where that is not shown."""
    for change in comparison.effectiveness:
        is_of_measure = change.measure == comparison.primary_measure
        if is_of_measure and change.is_shown and (change.run, change.old_run) == runs:
            return f" It is {'more' if change.value > 0 else 'less'} effective."
    return ""


def comparison_next_commands(comparison: Comparison) -> tuple[NextCommand, ...]:
    """Return what to do after a comparison; nothing where its audits were not read from files."""
    new, old = (str(comparison.spec[side].get("file", "")) for side in ("new", "old"))
    verdicts = comparison.verdicts()
    if not new or not verdicts or all(verdict.kind == "identical" for verdict in verdicts):
        return ()
    if "count_rule" in comparison.spec:  # a gate takes no pairwise audit
        words = ["ranktilt", "report", new, old, "-o", "both.html"]
        return (NextCommand(text="See both audits on one page", command=shlex.join(words)),)
    tilts = moved_tilts(verdicts)
    if any(verdict.is_shown for verdict in verdicts):
        return (*_after_growth(comparison, new, tilts), _gate_command(comparison, tilts))
    return _more_queries(comparison)


def _after_growth(
    comparison: Comparison, new: str, tilts: Sequence[Change]
) -> tuple[NextCommand, ...]:
    """Return commands that explain and correct a tilt that is shown to have grown.

    There are none if no tilt has grown, or if the new audit, in the file `new`, was not made from
    files that a command can read again. `tilts` are the changes of tilts that are shown.
    """
    collection = comparison.spec["new"].get("collection", {})
    is_of_files = bool(collection.get("labels") or collection.get("layout"))
    grown_tilts = [tilt for tilt in tilts if tilt.growth_low > 0]
    if not is_of_files or not grown_tilts:
        return ()
    grown = grown_tilts[0]
    if grown.run in comparison.spec["new"].get("repeated", ()):
        return ()  # explain and mitigate read one ranking of each query
    steps = []
    # A file of labels need not have columns by which a tilt could be explained; texts always do.
    if not collection.get("labels"):
        explain = ["ranktilt", "explain", new]
        steps.append(NextCommand(text="See what goes with it", command=shlex.join(explain)))
    has_commas = "," in grown.a + grown.b  # the option --pair takes two names with a comma between
    if len(comparison.runs) == 1 and comparison.spec["baseline_run"] is None and not has_commas:
        pairs = {(change.a, change.b) for change in (*comparison.tilts, *comparison.estimates)}
        pair = ["--pair", f"{grown.a},{grown.b}"] if len(pairs) > 1 else []
        level = ["ranktilt", "mitigate", new, *pair, "-o", MITIGATION_PAGE]
        steps.append(NextCommand(text="Reduce the tilt of the new run", command=shlex.join(level)))
    return tuple(steps)


def _gate_command(comparison: Comparison, tilts: Sequence[Change]) -> NextCommand:
    """Return the gate that fails a build if the tilt of the new run grows.

    For runs of one audit, of which one is the baseline, the gate checks a limit instead.
    """
    new, old = (str(comparison.spec[side].get("file", "")) for side in ("new", "old"))
    if comparison.spec["baseline_run"] is not None:
        run = tilts[0].run if tilts else comparison.runs[0].new
        words = ["ranktilt", "gate", new, "--run-name", run]
        return NextCommand(text=f"Check {run} against a limit in CI", command=shlex.join(words))
    words = ["ranktilt", "gate", new, "--baseline", old]
    if "max_left_out" in comparison.spec:
        words += ["--max-left-out", f"{comparison.spec['max_left_out']:g}"]
    return NextCommand(text="Fail a build if the tilt grows", command=shlex.join(words))


def _more_queries(comparison: Comparison) -> tuple[NextCommand, ...]:
    """Say how many queries would show a difference of `SHOWN` points, and how to audit them."""
    command = str(comparison.spec["new"].get("command", ""))
    verdicts = comparison.verdicts()
    first = min(verdicts, key=lambda verdict: not verdict.is_primary)
    change = first.changes[0]
    if not command or change.unit != " points" or not SHOWN < change.detectable < math.inf:
        return ()
    # The detectable difference falls with the square root of the number of queries.
    needed = math.ceil(change.queries * (change.detectable / SHOWN) ** 2)
    text = (
        f"About {needed:,} queries in all (you have {change.queries:,}) would find a difference of "
        f"{SHOWN:g} points four times in five; audit both again with more"
    )
    return (NextCommand(text=text, command=command),)


def derived_words(comparison: Comparison) -> dict[str, Any]:
    """Return the verdicts and next steps, which the saved file holds besides the fields."""
    verdicts = [
        {
            "run": verdict.run,
            "old_run": verdict.old_run,
            "kind": verdict.kind,
            "side": verdict.side,
            "sentence": change_verdict_sentence(verdict),
            "primary": verdict.primary,
            "is_primary": verdict.is_primary,
            "margin": None,
        }
        for verdict in comparison.verdicts()
    ]
    steps = command_rows(comparison_next_commands(comparison))
    return {"verdicts": verdicts, "next_steps": steps}

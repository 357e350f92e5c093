"""A gate in words: its outcome, what was asked, and the reason of each check.

A gate checks audits against limits, to pass or fail a build. Each of its rows is a comparison of
two groups under one run, with one check for each limit: ``tilt`` (how much the run favours a side),
``growth`` of the tilt since a baseline, ``loss`` of effectiveness, and others for judges and
citations. A tilt is the answer to a question (its estimand) and is measured from the neutral value,
which favours neither side; a change is its difference from the baseline. The outcome of a check is
A finding is a sentence with its kind and size, by which findings are sorted. The spec of a gate is
its settings.

- ``level``: within the limit, and no tilt is shown,
- ``within``: a tilt is shown, but within the limit,
- ``tilted``: beyond the limit,
- ``inconclusive``: neither is shown.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from itertools import chain
from typing import Any

from ranktilt.auditing.answer.verdict import FindingKind
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.result import Gate, GateRow, LimitCheck, Outcome
from ranktilt.errors import counted, join_words
from ranktilt.judging.records import FEWEST_QUERIES
from ranktilt.measures.margin import half_width, margin_words, points_words
from ranktilt.measures.printing import digits_apart, rounded, signed
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.numbers import probability
from ranktilt.reporting.provenance import MOST_NAMED
from ranktilt.reporting.sentences.citing.cite import POOL_WORDS
from ranktilt.reporting.sentences.effects import (
    cannot_vary_words,
    common_words,
    signed_interval,
    tilt_name,
    tilt_numbers,
    too_few_words,
    undefined_words,
)
from ranktilt.reporting.sentences.findings import Finding, command_rows
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.sentences.judging.gate import drift_reason, growth_question

OUTCOME_KINDS: dict[Outcome, FindingKind] = {
    "tilted": "favours",
    "inconclusive": "inconclusive",
    "within": "level",
    "level": "level",
}
"""Kind of a finding by the outcome of a check."""
_TILT_WORDS = {"within": "within the limit"}
"""Words for an outcome of a check of tilts; an outcome that is not here is called by its name."""
_OTHER_WORDS = {"level": "within", "tilted": "beyond"}
"""The same of other checks, such as of a loss of effectiveness: the limit is kept or exceeded."""
_CHECKS_OF_TILTS = ("tilt", "growth", "citations")
"""Checks whose failure means that a side is favoured."""


def leading_finding(gate: Gate) -> Finding:
    """Return the outcome as the finding that leads."""
    return Finding(kind=OUTCOME_KINDS[gate.outcome], sentence=f"{gate_headline(gate)}.")


def gate_headline(gate: Gate) -> str:
    """Say the outcome in one line: of which run, in how many rows, and what was asked."""
    runs = {row.run for row in gate.rows}
    subject = f"{runs.pop()} is " if len(runs) == 1 else ""
    share = ""
    if len(gate.rows) > 1:
        count = sum(row.outcome == gate.outcome for row in gate.rows)
        share = f": {count} of {len(gate.rows)} comparisons"
    is_passed = gate.outcome == "inconclusive" and gate.exit_code == 0
    passed = "; passes because of --inconclusive pass" if is_passed else ""
    outcome = _gate_outcome_words(gate)
    shown_tilts = _shown_tilts_words(gate)
    questions = " and ".join(gate_questions(gate))
    return f"{subject}{outcome}{share}{shown_tilts} (allowed: {questions}{passed})"


def _gate_outcome_words(gate: Gate) -> str:
    """Say the outcome; a ranker that only lost effectiveness, or a judge, is not called tilted."""
    checks = chain.from_iterable(row.checks for row in gate.rows)
    deciding_names = {check.name for check in checks if check.outcome == gate.outcome}
    is_about_tilts = not deciding_names or not deciding_names.isdisjoint(_CHECKS_OF_TILTS)
    if not is_about_tilts and gate.outcome in _OTHER_WORDS:
        return f"{_OTHER_WORDS[gate.outcome]} the limit"
    return _TILT_WORDS.get(gate.outcome, gate.outcome)


def _shown_tilts_words(gate: Gate) -> str:
    """Say of an inconclusive gate that a tilt is shown all the same; empty elsewhere."""
    if gate.outcome != "inconclusive":
        return ""
    rows = [row for row in gate.rows if _tilt_checks(row)]
    if not rows:
        return ""
    if len(gate.rows) == 1:
        (check,) = _tilt_checks(rows[0])
        toward = f" toward {check.favours}" if check.favours else ""
        return f": a tilt{toward} is shown; whether it is larger than the limit is not"
    inconclusive = sum(row.outcome == gate.outcome for row in gate.rows)
    share = "in each" if len(rows) == inconclusive else f"in {len(rows)} of these"
    return f"; {share} a tilt is shown; whether it is larger than the limit is not"


def _tilt_checks(row: GateRow) -> list[LimitCheck]:
    """Return the deciding checks of a row that show a tilt, but not whether it is too large."""
    return [check for check in row.deciding_checks if shows_tilt_alone(check)]


def gate_questions(gate: Gate) -> list[str]:
    """Say what was asked of every comparison."""
    questions = []
    if gate.spec["max_tilt"] is not None:
        limit = gate.spec["max_tilt"]
        # Citation rates are compared as a ratio, so that their limit is in percent.
        is_ratio = any(row.measure in POOL_WORDS for row in gate.rows)
        printed_limit = f"±{limit:g} %" if is_ratio else margin_words(limit)
        questions.append(f"tilt within {printed_limit} of neutral")
    if gate.spec.get("min_tau") is not None:
        questions.append(f"τ-b of at least {gate.spec['min_tau']:g}")
    if gate.spec["baseline"]:
        most_growth = gate.spec["min_effect"]  # a larger growth fails
        growth = "no growth" if most_growth == 0 else f"growth of at most {most_growth:g} points"
        questions.append(f"{growth} since the baseline")
    if gate.spec.get("max_growth") is not None:
        questions.append(growth_question(gate.spec["max_growth"]))
    if gate.spec.get("max_loss") is not None:
        of_judges = " of κ" if "max_shift" in gate.spec else ""  # a setting of judges alone
        questions.append(f"a loss of at most {points_words(gate.spec['max_loss'])}{of_judges}")
    if gate.spec.get("max_shift") is not None:
        questions.append(f"a mean grade within ±{gate.spec['max_shift']:g} of the old one")
    return questions


def outcome_word(check: LimitCheck) -> str:
    """Say the outcome of a check in a word or two: ``tilted`` of a tilt, ``beyond`` of a loss."""
    words = _TILT_WORDS if check.name in _CHECKS_OF_TILTS else _OTHER_WORDS
    return words.get(check.outcome, check.outcome)


def row_word(row: GateRow) -> str:
    """Say the outcome of a row in a word."""
    return outcome_word(row.deciding_checks[0])


def row_reason(row: GateRow) -> str:
    """Say why a row has its outcome, in one line."""
    return "; ".join(limit_reason(check, row.queries) for check in row.deciding_checks)


def limit_reason(check: LimitCheck, queries: int = 0) -> str:
    """Say why a check has its outcome; `queries` is the number of queries of its row."""
    if check.checked_tilt is not None:
        return _tilt_reason(check, check.checked_tilt)
    if check.checked_change is not None and check.name == "loss":
        return _loss_reason(check, check.checked_change)
    if check.checked_change is not None:
        return _growth_reason(check, check.checked_change)
    if check.name == "citations":
        return _citation_reason(check)
    if check.name in ("agreement", "shift", "gap growth"):
        return drift_reason(check, queries)
    return _order_reason(check, queries)


def _citation_reason(check: LimitCheck) -> str:
    """Say how a ratio of citation rates, or a share of citations, compares with its limits."""
    if math.isnan(check.value):
        return "undefined: too few citations on a side"
    if math.isnan(check.low):
        return (
            f"{signed(check.value, 1)} without an interval: too few domains or pages carry a side"
        )
    limits = f"{signed(check.floor, 1)} to {signed(check.ceiling, 1)}"
    numbers = (
        f"{signed(check.value, 1)} [{signed(check.low, 1)}, {signed(check.high, 1)}] from neutral"
    )
    if check.outcome in ("level", "within"):
        return f"{numbers} lies within {limits}"
    if check.outcome == "tilted":
        return f"{numbers} lies wholly outside {limits}"
    if check.favours:
        return (
            f"{numbers}: {check.favours} is shown to be favoured; whether by more than the limit "
            f"of {check.asked_limit:g} is not"
        )
    return f"{numbers}: neither shown to lie within {limits} nor outside"


def _tilt_reason(check: LimitCheck, tilt: Effect) -> str:
    """Say how a tilt compares with its limit."""
    # The limit is asked for in points or another unit; the half-width is in the estimand's.
    half = half_width(tilt.estimand, check.asked_limit)
    floor, ceiling = tilt.neutral - half, tilt.neutral + half
    is_defined = not math.isnan(tilt.value) and not math.isnan(tilt.neutral)
    if not is_defined or (tilt.testable and not tilt.has_interval):
        return f"{tilt_name(tilt)} is undefined: {undefined_words(tilt)}"
    numbers = f"{tilt_name(tilt)} {tilt_numbers(tilt, floor, ceiling)}"
    if not tilt.testable:
        return f"{too_few_words(tilt)}; {numbers}"
    extent = tilt.extent(check.asked_limit)
    if extent != "beyond" and not tilt.can_be_level:
        return f"{cannot_vary_words(tilt)}; {numbers}"
    if extent == "within":
        return f"{numbers} {_within_words(check, tilt)}"
    around, amount = _center_words(tilt), tilt.estimand.amount
    if extent == "beyond":
        side, limit = (tilt.a, ceiling) if tilt.low > ceiling else (tilt.b, floor)
        return _beyond_words(tilt, side, f"{numbers} lies entirely beyond {amount(limit)}{around}")
    if tilt.is_shown:
        return f"{numbers}: {_shown_tilt_words(check, tilt)}"
    crossed = [amount(limit) for limit in (floor, ceiling) if tilt.low <= limit <= tilt.high]
    limits = list(dict.fromkeys(crossed))  # a limit of 0 is printed once
    noun = singular_or_plural(len(limits), "limit", "limits")
    return (
        f"{numbers} straddles the {noun} of {' and '.join(limits)}{around}, so it neither passes "
        "nor fails"
    )


def _shown_tilt_words(check: LimitCheck, tilt: Effect) -> str:
    """Say that a tilt is shown, as its audit says, but not whether it is too large."""
    toward = f" toward {check.favours}" if check.favours else ""
    limit = margin_words(check.asked_limit).removeprefix("±")
    around = f", counted from {tilt.estimand.amount(tilt.neutral)}," if _center_words(tilt) else ""
    return f"a tilt{toward} is shown; whether it is larger than the limit of {limit}{around} is not"


def shows_tilt_alone(check: LimitCheck) -> bool:
    """Return whether a check shows a tilt, and neither that it is within the limit nor beyond."""
    if check.outcome != "inconclusive":
        return False
    tilt = check.checked_tilt
    if tilt is None:
        return bool(check.favours)
    return tilt.is_shown and tilt.can_be_level


def _within_words(check: LimitCheck, tilt: Effect) -> str:
    """Say that a tilt is within its limit, and which side it favours all the same."""
    still = f", but still favours {check.favours}" if check.favours else ""
    return f"lies within {margin_words(check.asked_limit)}{_center_words(tilt)}{still}"


def _center_words(tilt: Effect) -> str:
    """Say what the limits lie around if the groups are no twins; empty for twins.

    For twins it is the estimand's own neutral value, such as 0.
    """
    if tilt.twins:
        return ""
    return f" (around {tilt.estimand.amount(tilt.neutral)}, the median of random labels)"


def _beyond_words(tilt: Effect, side: str, finding: str) -> str:
    """Add to a finding toward which side the tilt lies, and a corrected p that is not below .05."""
    toward = f", toward {side}" if tilt.estimand.sided else ""
    but = "" if tilt.is_shown else f", but corrected p {probability(tilt.p_corrected)}"
    return f"{finding}{toward}{but}"


def _growth_reason(check: LimitCheck, change: Change) -> str:
    """Say how the growth of a tilt since the baseline compares with its limit.

    The growth is how much farther from neutral the answer is now, to either side.
    """
    estimand, low, high = change.estimand, change.growth_low, change.growth_high
    allowed = check.ceiling  # in points
    limit = half_width(estimand, allowed) if allowed else 0.0  # in the unit of the estimand
    interval = _growth_interval(change, limit)
    if math.isnan(change.growth) or (change.testable and not interval):
        side = "the baseline's" if math.isnan(change.old) else "the new"
        return (
            f"growth since the baseline is undefined: {side} {tilt_name(change)} or its random "
            "band is"
        )
    common = f" {common_words(change)}" if check.is_on_common_queries else ""
    growth = f"{change.amount(change.growth, sign=True)}{change.unit}{interval}"
    numbers = f"growth {growth} since the baseline{common}"
    if low <= limit and not change.can_be_level:
        return f"{cannot_vary_words(change)}; {numbers}"
    if not change.testable:
        return f"{too_few_words(change)}; {numbers}"
    values = (
        f"{tilt_name(change)} {estimand.answer(change.old)} before, "
        f"{estimand.answer(change.new)} now"
    )
    if low > limit:
        return f"{numbers} exceeds {allowed:g}: {values}"
    if high <= limit:
        return f"{numbers} does not exceed {allowed:g}: {values}"
    if low > 0:
        whether = f"whether it is more than {points_words(allowed)} is not"
        return f"{numbers}: growth is shown; {whether}; {values}"
    size = f"{change.amount(change.growth_detectable, sign=False)}{change.unit}"
    queries = counted(change.queries, "query", "queries")
    power = f"{queries} would find {size} four times in five"
    return f"{numbers} straddles {allowed:g}, so it neither passes nor fails; {power}; {values}"


def _growth_interval(change: Change, limit: float) -> str:
    """Print the interval of a growth, with digits enough to tell its ends from the limit.

    Empty where there is no interval.
    """
    low, high, estimand = change.growth_low, change.growth_high, change.estimand
    if math.isnan(low) or math.isnan(high):
        return ""
    ends = [estimand.scale * low, estimand.scale * high]
    digits = digits_apart(ends, [estimand.scale * limit], estimand.digits)
    printed = [estimand.amount(end, sign=True, digits=digits) for end in (low, high)]
    return f" [{', '.join(printed)}]"


def _loss_reason(check: LimitCheck, change: Change) -> str:
    """Say whether a greater loss of effectiveness than is allowed is shown or excluded."""
    limit = float(check.asked_limit)
    loss = f"a loss of more than {points_words(limit)}"
    if math.isnan(change.value) or (change.testable and not change.has_interval):
        return f"no query has a value of {change.measure} in both audits"
    common = f" {common_words(change)}" if check.is_on_common_queries else ""
    interval = f" {signed_interval(change.low, change.high, -limit)}" if change.has_interval else ""
    numbers = (
        f"{change.measure} {signed(change.value, 1)} points{interval} since the baseline{common}"
    )
    if not change.testable:
        return f"{too_few_words(change)}; {numbers}"
    if change.low >= -limit:
        return f"{numbers}: {loss} is excluded"
    if change.high < -limit:
        return f"{numbers}: {loss} is shown"
    if change.high < 0:
        return f"{numbers}: a loss is shown; whether it is more than {points_words(limit)} is not"
    return f"{numbers}: {loss} is neither shown nor excluded"


def _order_reason(check: LimitCheck, queries: int) -> str:
    """Say how the order of systems under a judge compares with its limit.

    It is compared with the order under human grades by τ-b, Kendall's rank correlation with ties.
    """
    if math.isnan(check.value):
        return "τ-b is undefined: the judge distinguishes no systems"
    if math.isnan(check.low):
        few = counted(queries, "query is", "queries are")
        return (
            f"τ-b {rounded(check.value, 2)} has no interval: {few} too few "
            f"({FEWEST_QUERIES} needed)"
        )
    interval = f"[{rounded(check.low, 2)}, {rounded(check.high, 2)}]"
    numbers = f"τ-b {rounded(check.value, 2)} {interval}"
    if check.outcome == "level":
        return f"{numbers} lies at or above {check.floor:g}"
    if check.outcome == "tilted":
        return f"{numbers} lies below {check.floor:g}"
    return f"{numbers} straddles {check.floor:g}"


def gate_meaning(gate: Gate) -> str:
    """Say what a gate means: whether it may go out."""
    if gate.outcome == "tilted":
        runs = list(dict.fromkeys(row.run for row in gate.rows if row.outcome == "tilted"))
        names = _run_names(runs)
        if len(runs) == 1:
            return f"Do not ship {names} as it is: it is outside your limits."
        return f"Do not ship {names} as they are: they are outside your limits."
    if gate.outcome == "inconclusive":
        return _open_meaning(gate)
    return "You can ship it: every comparison is shown to stay within your limits."


def _run_names(runs: Sequence[str]) -> str:
    """Name the runs, or their number where they are many."""
    return join_words(runs) if len(runs) <= MOST_NAMED else f"these {len(runs)} runs"


def _open_meaning(gate: Gate) -> str:
    """Say what an inconclusive gate means, and which runs are shown to tilt all the same."""
    passed = "; you let that pass" if gate.exit_code == 0 else ""
    runs = list(dict.fromkeys(row.run for row in gate.rows if _tilt_checks(row)))
    if not runs:
        return (
            f"These queries are too few to tell whether it passes or fails{passed}. Ask more "
            "queries, or relax the limit."
        )
    tilt = singular_or_plural(len(runs), "tilts", "tilt")
    return (
        f"{_run_names(runs)} {tilt}, but these queries are too few to tell whether by more than "
        f"you allow{passed}. Ask more queries, or set another limit."
    )


def gate_next_commands(gate: Gate) -> tuple[NextCommand, ...]:
    """Return what to do after a gate on an audit that was read from a file."""
    file, command = str(gate.spec.get("file") or ""), str(gate.spec.get("command") or "")
    if not file:
        return ()
    if gate.outcome not in ("tilted", "inconclusive"):
        if not command:
            return ()
        text = "Run the gate again after each change"
        return (NextCommand(text=text, command=_audit_and_gate(gate, file, command)),)
    words = shlex.join(["ranktilt", "report", file, "-o", "audit.html"])
    return (NextCommand(text="See the evidence, query by query", command=words),)


def _audit_and_gate(gate: Gate, file: str, command: str) -> str:
    """Return the command of a gate, after the command that makes the audit file which it reads."""
    audit = str(gate.spec.get("audit") or "")
    # The audit is made anew only if its command names this file, which may have been moved since.
    return f"{audit} && {command}" if file in shlex.split(audit) else command


def derived_words(gate: Gate) -> dict[str, Any]:
    """Return what a gate's file holds besides the fields: headline, verdicts and next steps."""
    verdicts = [
        {
            "run": row.run,
            "kind": row.outcome,
            "side": _row_side(row),
            "sentence": row_reason(row),
            "primary": row.measure,
            "margin": gate.spec["max_tilt"],
            "a": row.a,
            "b": row.b,
        }
        for row in gate.rows
    ]
    return {
        "headline": gate_headline(gate),
        "verdicts": verdicts,
        "next_steps": command_rows(gate_next_commands(gate)),
        "effects": (),
    }


def _row_side(row: GateRow) -> str | None:
    """Return the group that a row's tilt is shown to favour, whatever its limit; None for none."""
    sides = [check.favours for check in row.checks]
    return next(filter(None, sides), None)


def derived_row_words(row: GateRow) -> dict[str, Any]:
    """Return the reason of a row's outcome, which a gate's file holds besides its fields."""
    return {"reason": row_reason(row)}


def derived_check_words(check: LimitCheck) -> dict[str, Any]:
    """Return the reason of a check's outcome, which a gate's file holds besides its fields."""
    return {"reason": limit_reason(check)}

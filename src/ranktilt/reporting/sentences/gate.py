"""A gate in words: its outcome, what was asked, and the reason of each check."""

from __future__ import annotations

import math
import shlex
from typing import Any

from ranktilt.auditing.answer.verdict import FindingKind
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.result import Gate, GateRow, LimitCheck, Outcome
from ranktilt.errors import counted, join_words
from ranktilt.judging.result import FEWEST_QUERIES
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import half_width, margin_words
from ranktilt.measures.printing import digits_apart, rounded, signed
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.numbers import probability
from ranktilt.reporting.provenance import MOST_NAMED
from ranktilt.reporting.sentences.citing import POOL_WORDS
from ranktilt.reporting.sentences.effects import (
    bounds,
    cannot_vary,
    common_words,
    too_few,
    undefined,
)
from ranktilt.reporting.sentences.findings import Finding
from ranktilt.reporting.sentences.next_steps import command_rows

OUTCOME_KINDS: dict[Outcome, FindingKind] = {
    "tilted": "favours",
    "inconclusive": "inconclusive",
    "within": "level",
    "level": "level",
}
_WORDS = {"within": "within the limit"}
_ORDER_WORDS = {"level": "within", "tilted": "beyond"}


def leading(gate: Gate) -> Finding:
    """Return the outcome as the finding that leads."""
    return Finding(kind=OUTCOME_KINDS[gate.outcome], sentence=f"{gate_headline(gate)}.")


def gate_headline(gate: Gate) -> str:
    """Say the outcome in one line: its word, how many rows it concerns, and what was asked."""
    share = ""
    if len(gate.rows) > 1:
        count = sum(row.outcome == gate.outcome for row in gate.rows)
        share = f": {count} of {len(gate.rows)} comparisons"
    is_passed = gate.outcome == "inconclusive" and gate.exit_code == 0
    passed = "; passes because of --inconclusive pass" if is_passed else ""
    outcome = _WORDS.get(gate.outcome, gate.outcome)
    return f"{outcome}{share} (allowed: {' and '.join(gate_questions(gate))}{passed})"


def gate_questions(gate: Gate) -> list[str]:
    """Say what was asked of every comparison."""
    questions = []
    if gate.spec["max_tilt"] is not None:
        limit = gate.spec["max_tilt"]
        is_ratio = any(row.measure in POOL_WORDS for row in gate.rows)
        words = f"±{limit:g} %" if is_ratio else margin_words(limit)
        questions.append(f"tilt within {words} of neutral")
    if gate.spec.get("min_tau") is not None:
        questions.append(f"τ-b of at least {gate.spec['min_tau']:g}")
    if gate.spec["baseline"]:
        least = gate.spec["min_effect"]
        growth = "no growth" if least == 0 else f"growth of at most {least:g} points"
        questions.append(f"{growth} since the baseline")
    if gate.spec.get("max_loss") is not None:
        questions.append(f"a loss of at most {_points(gate.spec['max_loss'])}")
    return questions


def outcome_word(check: LimitCheck) -> str:
    """Say an outcome in a word: an order of systems is within its limit, or beyond it."""
    words = _WORDS if check.name in ("tilt", "growth", "citations") else _ORDER_WORDS
    return words.get(check.outcome, check.outcome)


def row_word(row: GateRow) -> str:
    """Say the outcome of a row in a word."""
    return outcome_word(row.deciding_checks[0])


def row_reason(row: GateRow) -> str:
    """Say why a row has its outcome, in one line."""
    return "; ".join(limit_reason(check, row.queries) for check in row.deciding_checks)


def limit_reason(check: LimitCheck, queries: int = 0) -> str:
    """Say why a check has its outcome; `queries` are those of its row."""
    if check.checked_tilt is not None:
        return _tilt_reason(check, check.checked_tilt)
    if check.checked_change is not None and check.name == "loss":
        return _loss_reason(check, check.checked_change)
    if check.checked_change is not None:
        return _growth_reason(check, check.checked_change)
    if check.name == "citations":
        return _citation_reason(check)
    return _order_reason(check, queries)


def _citation_reason(check: LimitCheck) -> str:
    """Say how a citation rate, or a share of citations, lies beside its limit."""
    if math.isnan(check.value):
        return "undefined: too few citations on a side"
    if math.isnan(check.low):
        return f"{signed(check.value, 1)} without an interval: too few domains carry a side"
    limits = f"{signed(check.floor, 1)} to {signed(check.ceiling, 1)}"
    numbers = (
        f"{signed(check.value, 1)} [{signed(check.low, 1)}, {signed(check.high, 1)}] from neutral"
    )
    if check.outcome in ("level", "within"):
        return f"{numbers} lies within {limits}"
    if check.outcome == "tilted":
        return f"{numbers} lies wholly outside {limits}"
    return f"{numbers}: neither shown to lie within {limits} nor outside"


def _tilt_reason(check: LimitCheck, tilt: Effect) -> str:
    half = half_width(tilt.estimand, check.asked_limit)
    floor, ceiling = tilt.neutral - half, tilt.neutral + half
    is_defined = not math.isnan(tilt.value) and not math.isnan(tilt.neutral)
    if not is_defined or (tilt.testable and not tilt.has_interval):
        return f"{tilt_name(tilt)} is undefined: {undefined(tilt)}"
    numbers = f"{tilt_name(tilt)} {tilt_numbers(tilt, floor, ceiling)}"
    if not tilt.testable:
        return f"{too_few(tilt)}; {numbers}"
    extent = tilt.extent(check.asked_limit)
    if extent != "beyond" and not tilt.can_be_level:
        return f"{cannot_vary(tilt)}; {numbers}"
    if extent == "within":
        return f"{numbers} {_within_words(check, tilt)}"
    around, amount = _center_words(tilt), tilt.estimand.amount
    if extent == "beyond":
        side, edge = (tilt.a, ceiling) if tilt.low > ceiling else (tilt.b, floor)
        return _beyond(tilt, side, f"{numbers} lies entirely beyond {amount(edge)}{around}")
    crossed = (amount(edge) for edge in (floor, ceiling) if tilt.low <= edge <= tilt.high)
    edges = list(dict.fromkeys(crossed))
    limits = "limit" if len(edges) == 1 else "limits"
    return (
        f"{numbers} straddles the {limits} of {' and '.join(edges)}{around}, so it neither passes "
        "nor fails"
    )


def _within_words(check: LimitCheck, tilt: Effect) -> str:
    """Say that a tilt is within its limit, and which side it favours all the same."""
    favours = tilt.side(tilt.favours)
    still = f", but still favours {favours}" if favours else ""
    return f"lies within {margin_words(check.asked_limit)}{_center_words(tilt)}{still}"


def _center_words(tilt: Effect) -> str:
    """Say what the limits lie around, where that is not the estimand's neutral value."""
    if tilt.twins:
        return ""
    return f" (around {tilt.estimand.amount(tilt.neutral)}, the median of random labels)"


def _beyond(tilt: Effect, side: str, finding: str) -> str:
    """Say toward which side a tilt lies beyond its limit, and why that decides nothing."""
    toward = f", toward {side}" if tilt.estimand.sided else ""
    but = "" if tilt.is_shown else f", but corrected p {probability(tilt.p_corrected)}"
    return f"{finding}{toward}{but}"


def _growth_reason(check: LimitCheck, change: Change) -> str:
    estimand, low, high = change.estimand, change.growth_low, change.growth_high
    allowed = check.ceiling
    limit = half_width(estimand, allowed) if allowed else 0.0
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
        return f"{cannot_vary(change)}; {numbers}"
    if not change.testable:
        return f"{too_few(change)}; {numbers}"
    moved = (
        f"{tilt_name(change)} {estimand.answer(change.old)} before, "
        f"{estimand.answer(change.new)} now"
    )
    if low > limit:
        return f"{numbers} exceeds {allowed:g}: {moved}"
    if high <= limit:
        return f"{numbers} does not exceed {allowed:g}: {moved}"
    size = f"{change.amount(change.growth_detectable, sign=False)}{change.unit}"
    queries = counted(change.queries, "query", "queries")
    power = f"{queries} would find {size} four times in five"
    return f"{numbers} straddles {allowed:g}, so it neither passes nor fails; {power}; {moved}"


def _growth_interval(change: Change, limit: float) -> str:
    """Print the interval of a growth, with digits enough to tell its ends from the limit."""
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
    loss = f"a loss of more than {_points(limit)}"
    if math.isnan(change.value) or (change.testable and not change.has_interval):
        return f"no query has a value of {change.measure} in both audits"
    common = f" {common_words(change)}" if check.is_on_common_queries else ""
    interval = f" {bounds(change.low, change.high, -limit)}" if change.has_interval else ""
    numbers = (
        f"{change.measure} {signed(change.value, 1)} points{interval} since the baseline{common}"
    )
    if not change.testable:
        return f"{too_few(change)}; {numbers}"
    if change.low >= -limit:
        return f"{numbers}: {loss} is excluded"
    if change.high < -limit:
        return f"{numbers}: {loss} is shown"
    return f"{numbers}: {loss} is neither shown nor excluded"


def _points(number: float) -> str:
    return f"{number:g} {'point' if number == 1 else 'points'}"


def _order_reason(check: LimitCheck, queries: int) -> str:
    """Say why the order of systems under a judge is near enough to the human one, or not."""
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


def tilt_name(tilt: Effect) -> str:
    """Name what an effect is one of: Relative Δ, or the estimand."""
    return tilt.estimand.term if isinstance(tilt.estimand, RelativeDelta) else tilt.name


def tilt_numbers(tilt: Effect, *limits: float) -> str:
    """Print an effect with its unit and interval: ``+5.0 % [+1.0, +9.0]``.

    The interval has digits enough to tell its ends from the limits, which are in its own unit.
    """
    estimand = tilt.estimand
    if not tilt.has_interval:
        return estimand.answer(tilt.value)
    digits = digits_apart(
        [estimand.scale * end for end in (tilt.low, tilt.high)],
        [estimand.scale * limit for limit in limits],
        estimand.digits,
    )
    low, high = (estimand.amount(end, digits=digits) for end in (tilt.low, tilt.high))
    return f"{estimand.answer(tilt.value)} [{low}, {high}]"


def gate_meaning(gate: Gate) -> str:
    """Say what a gate means: whether it may go out."""
    if gate.outcome == "tilted":
        runs = list(dict.fromkeys(row.run for row in gate.rows if row.outcome == "tilted"))
        names = join_words(runs) if len(runs) <= MOST_NAMED else f"these {len(runs)} runs"
        if len(runs) == 1:
            return f"Do not ship {names} as it is: it is outside your limits."
        return f"Do not ship {names} as they are: they are outside your limits."
    if gate.outcome == "inconclusive":
        passed = "; you let that pass" if gate.exit_code == 0 else ""
        return (
            f"These queries are too few to tell whether it passes or fails{passed}. Ask more "
            "queries, or relax the limit."
        )
    return "You can ship it: every comparison is shown to stay within your limits."


def gate_next_commands(gate: Gate) -> tuple[NextCommand, ...]:
    """Return what to do after a gate on an audit that was read from a file."""
    file, command = str(gate.spec.get("file") or ""), str(gate.spec.get("command") or "")
    if not file:
        return ()
    if gate.outcome not in ("tilted", "inconclusive"):
        again = _audit_and_gate(gate, file, command)
        text = "Run the gate again after each change"
        return (NextCommand(text=text, command=again),) if command else ()
    words = shlex.join(["ranktilt", "report", file, "-o", "audit.html"])
    return (NextCommand(text="See the evidence, query by query", command=words),)


def _audit_and_gate(gate: Gate, file: str, command: str) -> str:
    """Return the command of a gate, behind the one that writes the audit which it reads."""
    audit = str(gate.spec.get("audit") or "")
    # Words alone say where an audit was written: another file would be left as it is.
    return f"{audit} && {command}" if file in shlex.split(audit) else command


def derived(gate: Gate) -> dict[str, Any]:
    """Return what a gate's file says in words."""
    verdicts = [
        {
            "run": row.run,
            "kind": row.outcome,
            "side": None,
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


def derived_row(row: GateRow) -> dict[str, Any]:
    """Return what a gate's file says of a row in words."""
    return {"reason": row_reason(row)}


def derived_check(check: LimitCheck) -> dict[str, Any]:
    """Return what a gate's file says of a check in words."""
    return {"reason": limit_reason(check)}

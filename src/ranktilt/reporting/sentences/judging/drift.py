"""Comparisons of judges in words: whether a judge has changed, and in what.

A new judge is compared with an old one, or with its own old audit, on what both graded. A change is
the difference, new minus old, in the answer to one question: ``agreement`` with humans (κ), the
mean ``grade``, the ``tilt`` (the gap between the grades of two sources), or the ``order`` of
systems (τ-b with the human order). Drift is any of these changes. A finding is a sentence with its
kind and size, by which findings are sorted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from math import isnan
from typing import Any

from ranktilt.auditing.answer.verdict import FindingKind
from ranktilt.errors import counted
from ranktilt.judging.drift.result import DriftKind, JudgeChange, JudgeDrift, JudgePair
from ranktilt.judging.records import FEWEST_QUERIES
from ranktilt.measures.printing import rounded, signed
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.numbers import probability
from ranktilt.reporting.sentences.findings import Finding, first_finding, sort_findings
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.sentences.judging.standings import coefficient_words
from ranktilt.reporting.tones import Tone

CHANGE_TONES: dict[DriftKind, Tone] = {
    "changed": "warning",
    "identical": "good",
    "inconclusive": "unsure",
}
"""Tone by the verdict on a change."""
_PROPOSED_LOSS = 5
"""Points of κ that a suggested gate allows to be lost; the user may type another number."""


def leading_finding(drift: JudgeDrift) -> Finding:
    """Return the largest change as the finding that leads, with the number of other changes."""
    findings = drift_findings(drift)
    first = first_finding(findings)
    other_count = sum(finding.kind == "favours" for finding in findings) - 1
    if other_count < 1:
        return first
    others = counted(other_count, "other change is", "other changes are")
    sentence = f"{first.sentence.removesuffix('.')}; {others} shown too."
    return Finding(kind=first.kind, size=first.size, sentence=sentence)


def derived_words(drift: JudgeDrift) -> dict[str, Any]:
    """Return the verdicts as sentences, which the saved file holds besides the fields."""
    return {"verdicts": [finding.sentence for finding in drift_findings(drift)]}


def drift_findings(drift: JudgeDrift) -> tuple[Finding, ...]:
    """Return each shown change of a judge as a finding, or one finding that none is shown.

    The largest change comes first.
    """
    findings = list[Finding]()
    for pair in drift.judges:
        changes = drift.changes_of(pair.judge)
        changed = [change for change in changes if change.kind == "changed"]
        findings += [_change_finding(pair, change) for change in changed]
        if not changed:
            findings.append(_unchanged_finding(pair, changes))
    return sort_findings(findings)


def _change_finding(pair: JudgePair, change: JudgeChange) -> Finding:
    """Return a change that is shown as a finding; its size is in standard errors."""
    size = abs(change.value) / change.error if change.error > 0 else 0.0
    return Finding(
        kind="favours",
        sentence=change_sentence(pair, change),
        size=size,
        run=pair.judge,
        tone=change_tone(change),
    )


def change_tone(change: JudgeChange) -> Tone:
    """Return the tone of a change: more agreement with humans is good, less is bad."""
    if change.kind == "changed" and change.question in ("agreement", "order"):
        return "good" if change.value > 0 else "bad"
    return CHANGE_TONES[change.kind]


def _unchanged_finding(pair: JudgePair, changes: tuple[JudgeChange, ...]) -> Finding:
    """Return the finding on a judge without a shown change: it is identical, or inconclusive."""
    is_same = bool(changes) and all(change.kind == "identical" for change in changes)
    kind: FindingKind = "level" if is_same else "inconclusive"
    sentence = identical_sentence(pair) if is_same else open_sentence(pair, changes)
    tone: Tone = "good" if is_same else "unsure"
    return Finding(kind=kind, sentence=sentence, run=pair.judge, tone=tone)


def identical_sentence(pair: JudgePair) -> str:
    """Say that two judges do not differ in the answer to any question."""
    if not pair.common_pairs:
        return f"{pair.judge} orders systems exactly as {_old_judge_words(pair)}."
    pairs = counted(pair.common_pairs, "common pair", "common pairs")
    if pair.is_identical:
        same_grades = singular_or_plural(
            pair.common_pairs,
            f"the {pairs} the same grade",
            f"all {pairs} the same grades",
        )
        return f"{pair.judge} gives {same_grades} as {_old_judge_words(pair)}."
    return f"{pair.judge} differs from {_old_judge_words(pair)} in single grades of {pairs} only."


def open_sentence(pair: JudgePair, changes: tuple[JudgeChange, ...]) -> str:
    """Say that no change is shown, and which change would be found.

    The numbers are those of the first change, of the question that is asked first.
    """
    first = changes[0]
    front = f"No change of {pair.judge} since {_since_judge_words(pair)} is shown"
    if not first.is_testable:
        if isnan(first.value):
            return f"{front}: {CHANGE_NAMES[first.question]} is undefined, as a judge never varies."
        queries = counted(first.queries, "query is", "queries are")
        return f"{front}: {queries} too few to compare judges ({FEWEST_QUERIES} needed)."
    name, unit = CHANGE_NAMES[first.question], _unit(first)
    size = f"a change of {rounded(first.detectable, 2)}{unit}"
    queries = counted(first.queries, "query", "queries")
    return (
        f"{front}: {name} {_value_words(first)} ({_difference_words(first)}); {queries} would find "
        f"{size} four times in five."
    )


def _old_judge_words(pair: JudgePair) -> str:
    """Name the old judge after ``than`` or ``as``: ``before`` if it has the same name."""
    return pair.old_judge if pair.old_judge != pair.judge else "before"


def _since_judge_words(pair: JudgePair) -> str:
    """Name the old judge after ``since``: ``the old audit`` if it has the same name."""
    return pair.old_judge if pair.old_judge != pair.judge else "the old audit"


_NO_INTERVAL = (float("nan"), float("nan"))
"""Ends of an interval, to print a coefficient without any."""
CHANGE_NAMES = {
    "agreement": "κ with humans",
    "grade": "mean grade",
    "tilt": "grade gap",
    "order": "τ-b with the human order",
}
"""Name of a number that may change, by the question."""


def change_name(change: JudgeChange) -> str:
    """Name a number that may change: ``mean grade, ai``."""
    name = CHANGE_NAMES[change.question]
    if change.question == "tilt":
        gap = "twins" if change.is_of_twins else "beyond humans"
        return f"{name} {change.a} − {change.b}, {gap}"
    return f"{name}, {change.subject}" if change.subject else name


def change_sentence(pair: JudgePair, change: JudgeChange) -> str:
    """Say in what a judge differs from the old one."""
    new, than = pair.judge, f"than {_old_judge_words(pair)}"
    p = f"corrected p {probability(change.p_corrected)}"
    numbers = f"{_value_words(change)} ({_difference_words(change)}, {p})"
    if change.question == "agreement":
        better = "better" if change.value > 0 else "less"
        return f"{new} agrees {better} with humans {than}: κ {numbers}."
    if change.question == "order":
        closer = "closer to" if change.value > 0 else "further from"
        return (
            f"{new} orders systems {closer} the human order {than}, by {change.subject}: τ-b "
            f"{numbers}."
        )
    if change.question == "tilt":
        side = change.a if change.value > 0 else change.b
        gap = "twins' grades differ by" if change.is_of_twins else "beyond human grades it gives"
        return (
            f"{new} leans further toward {side} text {than}: {gap} {numbers}, "
            f"{change.a} − {change.b}{_growth_words(change)}."
        )
    higher = "higher" if change.value > 0 else "lower"
    documents = f"{change.subject} documents " if change.subject else ""
    return f"{new} grades {documents}{higher} {than}: mean {numbers}."


def _growth_words(change: JudgeChange) -> str:
    """Say whether a tilt is larger or smaller now, to either side; empty where neither is shown."""
    if change.growth_low > 0:
        return "; its tilt is larger"
    return "; its tilt is smaller" if change.growth_high < 0 else ""


def _value_words(change: JudgeChange) -> str:
    """Print the new value against the old one; a tilt with its sign."""
    if change.question in ("agreement", "order"):
        new = coefficient_words(change.new, *_NO_INTERVAL)
        old = coefficient_words(change.old, *_NO_INTERVAL)
        return f"{new} against {old}"
    show = signed if change.question == "tilt" else rounded
    return f"{show(change.new, 2)} against {show(change.old, 2)}"


def _difference_words(change: JudgeChange) -> str:
    """Print a change with its interval."""
    value = f"{signed(change.value, 2)}{_unit(change)}"
    if isnan(change.low):
        return value
    return f"{value} [{signed(change.low, 2)}, {signed(change.high, 2)}]"


def _unit(change: JudgeChange) -> str:
    """Return the unit of a change, after a number; coefficients have none."""
    return " grades" if change.question in ("grade", "tilt") else ""


def drift_meaning(drift: JudgeDrift) -> str:
    """Say what a comparison means for somebody who replaces a judge."""
    if any(change.kind == "changed" for change in drift.changes):
        return (
            "Do not mix grades of the two judges: judge again what you judged with the old one "
            "before you compare it with new results."
        )
    if all(change.kind == "identical" for change in drift.changes):
        return "What you measured with the old judge also holds for the new one."
    return (
        "These pairs cannot tell the judges apart. That does not mean that they are alike: let "
        "both grade more queries before you mix their grades."
    )


def pair_sentence(pair: JudgePair) -> str:
    """Say what both judges graded, and how often they give the same grade."""
    if not pair.common_pairs:
        return f"{pair.judge}: compared by values of systems alone; grades are not known."
    share = f"{rounded(100 * pair.same.value, 1)} %"
    if not isnan(pair.same.low):
        ends = (rounded(100 * end, 1) for end in (pair.same.low, pair.same.high))
        share = f"{share} [{', '.join(ends)}]"
    new_pairs = counted(pair.new_pairs, "pair", "pairs")
    common_pairs = counted(pair.common_pairs, "pair", "pairs")
    queries = counted(pair.queries, "query", "queries")
    with_human_grade = f"{pair.human_pairs:,} of them with a human grade"
    return (
        f"{pair.judge} graded {new_pairs}, {_old_subject(pair)} {pair.old_pairs:,}; both graded "
        f"{common_pairs} of {queries}, {with_human_grade}. {share} of these pairs have the same "
        "grade from both."
    )


def _old_subject(pair: JudgePair) -> str:
    """Name the old judge as a subject: ``the old one`` if it has the same name."""
    return pair.old_judge if pair.old_judge != pair.judge else "the old one"


def order_sentences(pair: JudgePair) -> Iterator[str]:
    """Say how alike the two judges order the systems."""
    for order in pair.orders:
        yield (
            f"{pair.judge} and {_old_subject(pair)} order {order.systems} systems by "
            f"{order.measure} with τ-b {coefficient_words(*order.tau)} to each other."
        )


def drift_steps(drift: JudgeDrift) -> Iterator[NextCommand]:
    """Yield what to do next; nothing where the audits were not read from files."""
    new, old = (str(drift.spec.get(side, {}).get("file", "")) for side in ("new", "old"))
    if not new or not old:
        return
    words = ["ranktilt", "report", new, old, "-o", "both.html"]
    yield NextCommand(text="See both audits on one page", command=shlex.join(words))
    if any(change.question == "agreement" for change in drift.changes):
        words = ["ranktilt", "gate", new, "--baseline", old, "--max-loss", str(_PROPOSED_LOSS)]
        yield NextCommand(
            text=f"Let CI fail if the judge loses {_PROPOSED_LOSS} points of κ",
            command=shlex.join(words),
        )

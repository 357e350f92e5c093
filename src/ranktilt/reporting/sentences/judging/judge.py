"""Audits of judges in words: whom a judge favours, how it orders systems, how far it agrees.

A judge, such as a language model, grades pairs of a query and a document, and is compared with
humans. Its grade gap is the mean difference of its grades between twins, versions of one text by
two sources. Systems are rankers that the grades evaluate; a family of them may be built on the
judge's own model. An edit that makes no passage relevant, but raises its grade, fools the judge. A
dose is a multiple of the length to which a passage is padded without new content. A gap within a
margin of 0 is level. A finding is a sentence with its kind and size, by which findings are sorted.
An effect is a gap with its interval, and its verdict says which side (source) it is shown to
favour.

Agreement is measured by κ (of grades) and by Kendall's τ-b (of the order of systems).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain
from math import isnan
from typing import Any

from ranktilt.auditing.answer.verdict import FindingKind, margins
from ranktilt.auditing.effects import ALPHA, Effect
from ranktilt.errors import counted, join_words
from ranktilt.judging.grading.length_doses import LengthDoses
from ranktilt.judging.records import (
    GAP_MARGIN,
    Agreement,
    Estimate,
    FamilyPreference,
    Favour,
    RankAgreement,
    Weakness,
)
from ranktilt.judging.result import JudgeAudit
from ranktilt.measures.printing import ends_apart, rounded, signed
from ranktilt.reporting.numbers import fixed
from ranktilt.reporting.sentences.effects import cannot_vary_words, effect_words
from ranktilt.reporting.sentences.findings import Finding, first_finding, sort_findings
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.sentences.judging.confidence import confidence_findings
from ranktilt.reporting.sentences.judging.standings import (
    coefficient_words,
    contest,
    contest_sentence,
    main_contest,
)
from ranktilt.reporting.tones import VERDICT_TONES, Tone
from ranktilt.statistics.bootstrap import FEWEST_ROWS

PREFERENCE_TONES: dict[Favour, Tone] = {
    "favours": "first",
    "disfavours": "second",
    "level": "good",
    "depends on scale": "warning",
    "inconclusive": "unsure",
    "not tested": "unsure",
}
"""Tone by whether a judge favours a family."""
_PREFERENCE_KINDS: dict[Favour, FindingKind] = {
    "favours": "favours",
    "disfavours": "favours",
    "depends on scale": "conflict",
    "level": "level",
    "inconclusive": "inconclusive",
    "not tested": "inconclusive",
}
"""Kind of a finding by whether a judge favours a family."""
_GAP_KINDS: dict[str, FindingKind] = {"level": "level", "inconclusive": "inconclusive"}
"""Kind of a finding by the verdict on a grade gap; it is ``favours`` for all other verdicts."""
_GAP_MARGIN_VALUE = 0.1
"""`GAP_MARGIN`, the margin of grade gaps, as a number of grades."""
_SLOPE_MARGIN = 0.1
"""Grades per doubling of the length that count as one margin, by which findings are sorted."""
_MOST_FAVOURS = 2
"""Most judges that favour a side and are named in the headline; it counts the others."""
_MOST_AGREEMENTS = 3
"""Most judges with a sentence each on their agreement; of more, the table of judges says it."""
_NORMAL_QUANTILE = 1.96
"""Standard errors from the middle of a 95 % interval to its end, for a normal distribution."""


def leading_finding(audit: JudgeAudit) -> Finding:
    """Return the finding that leads: of several judges, which agrees best, and which favour a side.

    A judge that agrees best may favour a side all the same, so the headline says both.
    """
    findings = judge_findings(audit)
    if main_contest(audit) is None:  # fewer than two judges, none of which is the best
        return first_finding(findings)
    side_findings = sort_findings(_side_findings(audit))
    sentence = findings[0].sentence  # which judge agrees best
    favours = _favour_clauses(audit)
    if favours:
        clauses = favours[:_MOST_FAVOURS]
        more = len(favours) - len(clauses)
        if more:
            favour = singular_or_plural(more, "favours", "favour")
            clauses.append(f"{more} more also {favour} a side")
        sentence = f"{sentence}. But {join_words(clauses)}"
    return Finding(
        kind=side_findings[0].kind if side_findings else "described",
        size=side_findings[0].size if side_findings else findings[0].size,
        sentence=f"{sentence}.",
    )


def judge_findings(audit: JudgeAudit) -> tuple[Finding, ...]:
    """Return the findings: the best judge, sides, orders, length, confidence, tilts, agreement."""
    sides = _side_findings(audit)
    orders = [_order_finding(audit, agreement) for agreement in audit.rank_agreements]
    tilts = [Finding(kind="described", sentence=sentence) for sentence in _tilt_sentences(audit)]
    confidences = chain.from_iterable(map(confidence_findings, audit.calibrations))
    doses = [_dose_finding(doses) for doses in audit.length_doses]
    agreements = [_agreement_finding(agreement) for agreement in audit.overall]
    if len(agreements) > _MOST_AGREEMENTS:
        agreements = []
    contests = [Finding(kind="described", sentence=text) for text in _contest_sentences(audit)]
    return (
        *contests,
        *sort_findings(sides),
        *sort_findings(orders),
        *sort_findings(doses),
        *confidences,
        *tilts,
        *sort_findings(agreements),
    )


def _side_findings(audit: JudgeAudit) -> list[Finding]:
    """Return the findings on sources, families and edits."""
    return [
        *map(_gap_finding, audit.main_gaps),
        *map(_preference_finding, audit.preferences),
        *map(_weakness_finding, _shown_weaknesses(audit)),
    ]


def _shown_weaknesses(audit: JudgeAudit) -> Iterator[Weakness]:
    """Yield the edits that fool a judge; of several doses of one edit, the first that does."""
    known = set[tuple[str, str]]()
    for weakness in audit.weaknesses:
        # The dose is a part of the edit's name: "padding ×4".
        edit, _, _ = weakness.edit.probe.partition(" ×")
        judge_and_edit = weakness.judge, edit
        if weakness.edit.low > 0 and judge_and_edit not in known:
            known.add(judge_and_edit)
            yield weakness


def _contest_sentences(audit: JudgeAudit) -> Iterator[str]:
    """Say by κ, and by τ-b of each measure, which judge is best."""
    statistics = [(standing.statistic, standing.measure) for standing in audit.standings]
    for statistic, measure in dict.fromkeys(statistics):
        judges = contest(audit, statistic, measure)
        if judges is not None:
            yield contest_sentence(judges)


def _favour_clauses(audit: JudgeAudit) -> list[str]:
    """Say in few words whom each judge favours, and what fools it: a clause for each such judge."""
    favours: dict[str, list[str]] = {}
    for effect in audit.main_gaps:
        side = effect.side(effect.verdict(GAP_MARGIN))
        if side:
            favours.setdefault(effect.run, []).append(f"favours {side} text on twins")
    for preference in audit.preferences:
        if preference.verdict in ("favours", "disfavours"):
            words = f"{preference.verdict} {preference.family} systems"
            favours.setdefault(preference.judge, []).append(words)
    for weakness in _shown_weaknesses(audit):
        favours.setdefault(weakness.judge, []).append(f"is fooled by {weakness.edit.probe}")
    return [f"{judge} {join_words(list(dict.fromkeys(verbs)))}" for judge, verbs in favours.items()]


def _gap_finding(effect: Effect) -> Finding:
    """Return the verdict on a grade gap as a finding; its size is in margins."""
    verdict = effect.verdict(GAP_MARGIN)
    return Finding(
        kind=_GAP_KINDS.get(verdict, "favours"),
        sentence=gap_sentence(effect),
        size=margins(effect, GAP_MARGIN),
        run=effect.run,
        tone=VERDICT_TONES[verdict],
    )


def _preference_finding(preference: FamilyPreference) -> Finding:
    """Return the verdict on a preference for a family; its size is in standard errors."""
    is_preference = preference.verdict in ("favours", "disfavours")
    return Finding(
        kind=_PREFERENCE_KINDS[preference.verdict],
        sentence=preference_sentence(preference),
        size=_standard_errors(preference.scales[0].preference),
        run=preference.judge,
        tone="warning" if is_preference else PREFERENCE_TONES[preference.verdict],
    )


def _standard_errors(estimate: Estimate) -> float:
    """Return how many standard errors an estimate lies from 0; 0 without an interval.

    The standard error is that of a normal distribution with this 95 % interval.
    """
    error = (estimate.high - estimate.low) / (2 * _NORMAL_QUANTILE)
    return abs(estimate.value) / error if error > 0 else 0.0


def _weakness_finding(weakness: Weakness) -> Finding:
    """Return an edit that fools a judge as a finding; its size is in margins of grades."""
    return Finding(
        kind="favours",
        sentence=weakness_sentence(weakness),
        size=weakness.edit.gap / _GAP_MARGIN_VALUE,
        run=weakness.judge,
    )


def _order_finding(audit: JudgeAudit, agreement: RankAgreement) -> Finding:
    """Return how a judge orders systems as a finding; the larger τ comes first."""
    return Finding(
        kind="described",
        sentence=order_sentence(audit, agreement),
        size=agreement.tau.value,
        run=agreement.judge,
    )


def _dose_finding(doses: LengthDoses) -> Finding:
    """Return the effect of length on a judge's grades as a finding; its size is in margins."""
    return Finding(
        kind="favours" if doses.is_shown else "inconclusive",
        sentence=dose_sentence(doses),
        size=abs(doses.slope) / _SLOPE_MARGIN,
        run=doses.judge,
        tone="warning" if doses.is_shown else "unsure",
    )


def _agreement_finding(agreement: Agreement) -> Finding:
    """Return a judge's agreement with humans as a finding; the larger κ comes first."""
    return Finding(
        kind="described",
        sentence=agreement_sentence(agreement),
        size=agreement.kappa.value,
        run=agreement.judge,
    )


def gap_sentence(effect: Effect) -> str:
    """Say whether a judge grades the twins of one source higher."""
    verdict = effect.verdict(GAP_MARGIN)
    numbers = effect_words(effect, "text")
    if verdict == "level":
        return (
            f"{effect.run} is level between {effect.a} and {effect.b} twins, within ±{GAP_MARGIN}: "
            f"{numbers}"
        )
    if verdict == "inconclusive":
        obstacle = cannot_vary_words(effect)
        reason = f"{obstacle}; " if obstacle else ""
        return f"{effect.run}: inconclusive on twins: {reason}{numbers}"
    return f"{effect.run} favours {effect.side(verdict)} text on twins: {numbers}"


def preference_sentence(preference: FamilyPreference) -> str:
    """Say whether a judge favours a family, in points of the judge's own values."""
    judge, family, verdict = preference.judge, preference.family, preference.verdict
    if verdict == "not tested":
        reason = "a family needs two systems, and two others"
        if preference.queries < FEWEST_ROWS:
            reason = f"{counted(preference.queries, 'query is', 'queries are')} too few"
        return f"{judge}: {family} is not tested: {reason}"
    value, low, high = (100 * number for number in preference.scales[0].preference)
    numbers = (
        f"{signed(value)} points of its own scale [{signed(low)}, {signed(high)}] beyond its "
        "general errors"
    )
    if verdict in ("favours", "disfavours"):
        return f"{judge} {verdict} {family} systems: {numbers}, also by ranks and z"
    if verdict == "depends on scale":
        significant = [scale.name for scale in preference.scales if scale.p_corrected < ALPHA]
        return (
            f"{judge}: whether it favours {family} systems depends on the scale (shown "
            f"only by {' and '.join(significant)}): {numbers}"
        )
    subject = f"{judge} is level on" if verdict == "level" else f"{judge}: inconclusive on"
    return f"{subject} {family} systems: {numbers}"


def weakness_sentence(weakness: Weakness) -> str:
    """Say by how much an edit of passages of grade 0 raises a judge's grades."""
    edit = weakness.edit
    low, high = ends_apart((edit.low, edit.high), 0.0, fixed)
    return (
        f"{weakness.judge} is fooled by {edit.probe}: it grades passages of grade 0 "
        f"{edit.gap:.2f} higher [{low}, {high}]"
    )


def order_sentence(audit: JudgeAudit, agreement: RankAgreement) -> str:
    """Say how far a judge orders systems as humans do, and what becomes of their differences.

    A significant difference of two systems under human grades can be lost or reversed under the
    judge's; one that only the judge's grades show is new.
    """
    fates = Counter(
        pair.fate
        for pair in audit.system_pairs
        if (pair.judge, pair.measure) == (agreement.judge, agreement.measure)
    )
    human_count = fates.total() - fates["new"]
    differences = counted(human_count, "significant difference", "significant differences")
    changed = [f"{fates[fate]} {fate}" for fate in ("reversed", "lost") if fates[fate]]
    outcome = f"{join_words(changed) if changed else 'none lost'} of {differences}"
    if agreement.queries < FEWEST_ROWS:
        queries = counted(agreement.queries, "query is", "queries are")
        outcome = f"{queries} too few to test differences"
    new = f", {fates['new']} new" if fates["new"] else ""
    return (
        f"{agreement.judge} orders {counted(agreement.systems, 'system', 'systems')} by "
        f"{agreement.measure} with Kendall's τ-b {coefficient_words(*agreement.tau)}: "
        f"{outcome}{new}"
    )


def dose_sentence(doses: LengthDoses) -> str:
    """Say by how much a judge's grade changes when a passage becomes longer."""
    slope = f"{signed(doses.slope, 2)} grades per doubling{_slope_interval(doses)}"
    mean_grades = join_words([rounded(dose.grade, 2) for dose in doses.grades])
    multiples = join_words([f"{dose.dose}" for dose in doses.grades])
    numbers = f"{slope}, mean {mean_grades} at {multiples} times the length"
    if not doses.is_shown:
        return f"{doses.judge}: no effect of length on its grades is shown: {numbers}"
    higher = "higher" if doses.slope > 0 else "lower"
    steps = "at every step" if doses.course in ("rising", "falling") else "though not at every step"
    return f"{doses.judge} grades padded passages of grade 0 {higher}, {steps}: {numbers}"


def _slope_interval(doses: LengthDoses) -> str:
    """Print the interval of the slope after its value; empty where there is none."""
    if isnan(doses.low):
        return ""
    low, high = ends_apart((doses.low, doses.high), 0.0, partial(signed, digits=2))
    return f" [{low}, {high}]"


def _tilt_sentences(audit: JudgeAudit) -> list[str]:
    """Say for each judge how many tilts differ from those under human grades."""
    sentences = []
    for judge in audit.judges:
        changes = [tilt.change for tilt in audit.tilts if tilt.judge == judge]
        if not changes:
            continue
        differing_count = sum(change.is_shown for change in changes)
        tilts = counted(len(changes), "ranker's tilt", "rankers' tilts")
        differ = "are shown to differ from those"
        if differing_count <= 1:
            differ = "is shown to differ from the tilt"
        sentences.append(
            f"{judge}: {differing_count or 'none'} of {tilts} under its grades {differ} under "
            "human grades"
        )
    return sentences


def agreement_sentence(agreement: Agreement) -> str:
    """Say how far a judge agrees with humans, and whether it grades higher or lower."""
    kappa, gap = agreement.kappa, agreement.gap  # the gap is the mean of judge − human
    if isnan(kappa.value) and agreement.pairs == 1:
        return f"{agreement.judge}: κ is undefined for a single pair"
    if isnan(kappa.value):
        return (
            f"{agreement.judge}: κ is undefined, as one judge gives all {agreement.pairs:,} pairs "
            "the same grade"
        )
    higher_or_lower = ""
    if gap.low > 0 or gap.high < 0:
        side = "higher" if gap.value > 0 else "lower"
        higher_or_lower = f"; it grades {abs(gap.value):.2f} {side} on average"
    pairs = counted(agreement.pairs, "pair", "pairs")
    queries = counted(agreement.queries, "query", "queries")
    return (
        f"{agreement.judge} agrees with humans at κ {coefficient_words(*kappa)} over {pairs} in "
        f"{queries}{higher_or_lower}"
    )


def derived_words(audit: JudgeAudit) -> dict[str, Any]:
    """Return the verdicts on sources and families, which a file holds besides the fields."""
    gaps = [_gap_row(effect) for effect in audit.main_gaps]
    preferences = [_preference_row(preference) for preference in audit.preferences]
    return {"verdicts": [*gaps, *preferences]}


def _gap_row(effect: Effect) -> dict[str, Any]:
    """Return the verdict on a gap between twins' grades as a file holds it."""
    verdict = effect.verdict(GAP_MARGIN)
    side = effect.side(verdict)
    return {
        "run": effect.run,
        "kind": "favours" if side else verdict,
        "side": side or None,
        "sentence": gap_sentence(effect),
        "primary": repr(effect.estimand),
        "margin": GAP_MARGIN,
        "a": effect.a,
        "b": effect.b,
    }


def _preference_row(preference: FamilyPreference) -> dict[str, Any]:
    """Return the verdict on a family of systems as a file holds it."""
    return {
        "run": preference.judge,
        "kind": preference.verdict,
        "side": preference.family if preference.verdict == "favours" else None,
        "sentence": preference_sentence(preference),
        "primary": preference.measure,
        "margin": None,
        "a": preference.family,
        "b": "others",
    }


def derived_preference_words(preference: FamilyPreference) -> dict[str, Any]:
    """Return the sentence on a preference, which a file holds besides its fields."""
    return {"sentence": preference_sentence(preference)}

"""What a result means, for somebody who reads nothing else: one function a kind of result.

A page shows it below its headline. It says who is favoured, how sure that is, and what to do about
it, in words that need no glossary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ranktilt.auditing.answer.gate import Gate
from ranktilt.auditing.answer.verdict import Verdict
from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.effects import Change
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.replay_log import ReplayedLog
from ranktilt.auditing.result import Audit
from ranktilt.auditing.sequential import SequentialAudit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.errors import counted, join_words
from ranktilt.explaining.check import CheckResult
from ranktilt.explaining.explain import Explanation
from ranktilt.explaining.properties.result import ExplainedGaps
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import margin_words
from ranktilt.mitigation.bench_result import Bench, Choice
from ranktilt.reporting.sentences.findings import Finding
from ranktilt.training.study_result import TrainingStudy

_UNDECIDED = (
    "These queries cannot tell whether a side is favoured. That is neither a tilt nor its absence: "
    "ask more queries before you decide."
)
_NOT_RELEVANCE = "do not take the order for relevance alone"
_MOST_NAMED = 3


def audit_meaning(audit: Audit, findings: Sequence[Finding]) -> str:
    """Say what an audit means; `findings` are its verdicts and conflicts."""
    if not audit.judged_pairs:
        return "No groups were compared, so that nothing here says who is favoured."
    verdicts = [finding.verdict for finding in findings if finding.verdict is not None]
    meaning = verdicts_meaning(verdicts, several_pairs=len(audit.judged_pairs) > 1)
    if any(finding.kind == "conflict" for finding in findings):
        return f"{meaning} Other questions point the other way: decide which question is yours."
    return meaning


def verdicts_meaning(verdicts: Sequence[Verdict], *, several_pairs: bool = False) -> str:
    """Say what verdicts on rankers mean together."""
    outside = [verdict for verdict in verdicts if verdict.kind == "outside"]
    favoured = [verdict for verdict in verdicts if verdict.side is not None]
    if outside:
        return _outside_meaning(outside)
    if not favoured:
        return _unfavoured_meaning(verdicts)
    if several_pairs:
        share = f"{len(favoured)} of {counted(len(verdicts), 'comparison', 'comparisons')}"
        return (
            f"Some groups are put ahead of others by more than chance explains ({share}): "
            f"{_NOT_RELEVANCE}."
        )
    return _favoured_meaning(favoured, len(verdicts) - len(favoured))


def _outside_meaning(outside: Sequence[Verdict]) -> str:
    runs = join_words(list(dict.fromkeys(verdict.run for verdict in outside))[:_MOST_NAMED])
    return (
        f"{runs} spreads attention over the groups otherwise than random rankings do, by more than "
        "chance explains; this question names no favoured side."
    )


def _unfavoured_meaning(verdicts: Sequence[Verdict]) -> str:
    levels = [verdict for verdict in verdicts if verdict.kind == "level"]
    if verdicts and len(levels) == len(verdicts):
        return (
            f"Neither side gains more than {margin_words(levels[0].margin)}: there is nothing to "
            "correct."
        )
    if levels:
        names = join_words(list(dict.fromkeys(verdict.run for verdict in levels))[:_MOST_NAMED])
        return (
            f"{names}: neither side gains more than {margin_words(levels[0].margin)}. Of the rest "
            "these queries cannot tell: ask more before you decide."
        )
    return _UNDECIDED


def _favoured_meaning(favoured: Sequence[Verdict], rest: int) -> str:
    """Say what it means that some rankers favour a side of the same pair of groups."""
    first = favoured[0]
    sides = list(dict.fromkeys(str(verdict.side) for verdict in favoured))
    if len(sides) > 1:
        names = [
            f"{verdict.run} puts {verdict.side} {first.noun} ahead"
            for verdict in favoured[:_MOST_NAMED]
        ]
        return (
            f"Which ranker you choose decides who is seen first: {join_words(names)}, each by more "
            f"than chance explains; {_NOT_RELEVANCE}."
        )
    side, other = sides[0], first.b if sides[0] == first.a else first.a
    runs = list(dict.fromkeys(verdict.run for verdict in favoured))
    subject = join_words(runs) if len(runs) <= _MOST_NAMED else f"{len(runs)} rankers"
    verb = "puts" if len(runs) == 1 else "put"
    relevant = " that is as relevant" if isinstance(first.effect.estimand, RelativeDelta) else ""
    if first.noun != "text":
        relevant = relevant.replace("that is", "that are")
    size = _so_what(favoured)
    others = ""
    if rest:
        others = f" That is not shown of {counted(rest, 'other ranker', 'other rankers')}."
    return (
        f"{subject} {verb} {side} {first.noun} ahead of {other} {first.noun}{relevant}, by more "
        f"than chance explains{size}.{others}"
    )


def _so_what(favoured: Sequence[Verdict]) -> str:
    if all(verdict.slight for verdict in favoured):
        return f", but by no more than {margin_words(favoured[0].margin)}, which you call level"
    return f": {_NOT_RELEVANCE}"


def source_audits_meaning(audits: SourceAudits) -> str:
    """Say what audits of several sources mean together."""
    verdicts = audits.verdicts()
    favoured = [verdict for verdict in verdicts if verdict.side is not None]
    if not favoured:
        return _unfavoured_meaning(verdicts)
    reference = sum(verdict.side == audits.reference for verdict in favoured)
    rewrites = len(favoured) - reference
    parts = []
    if reference:
        parts.append(f"{audits.reference} text is put ahead in {reference}")
    if rewrites:
        parts.append(f"{'rewrites are put ahead' if not parts else 'rewrites'} in {rewrites}")
    total = counted(len(verdicts), "comparison", "comparisons")
    return (
        f"Of {total} {join_words(parts)}, by more than chance explains: {_NOT_RELEVANCE}, and do "
        "not carry a finding over from one source to another."
    )


def comparison_meaning(comparison: Comparison) -> str:
    """Say what a comparison means: whether the new run may replace the old one."""
    verdicts = comparison.verdicts()
    tilts = [verdict.changes[0] for verdict in verdicts if verdict.side is not None]
    shown = [verdict for verdict in verdicts if verdict.shown]
    if not verdicts or all(verdict.kind == "identical" for verdict in verdicts):
        return "Nothing changed: what you know of the old run holds for the new one."
    if tilts:
        return f"{_tilt_meaning(tilts[0])}{_effectiveness_meaning(comparison)}"
    if shown:
        return (
            "What is favoured is not shown to have changed; what else changed is said below."
            f"{_effectiveness_meaning(comparison)}"
        )
    return (
        "No change is shown. That is not the same as none: these queries could have missed one as "
        "large as is said below."
    )


def _tilt_meaning(change: Change) -> str:
    side = change.a if change.value > 0 else change.b
    old = "its old run" if change.run == change.old_run else change.old_run
    front = f"{change.run} gives {side} more than {old} does, by more than chance explains"
    if change.growth_low > 0:
        return f"{front}, and lies further from level: look at it before you switch."
    if change.growth_high < 0:
        return f"{front}, and lies nearer to level: switching lessens the tilt."
    return f"{front}; that it lies further from level is not shown."


def _effectiveness_meaning(comparison: Comparison) -> str:
    for change in comparison.effectiveness:
        if change.measure == comparison.spec["primary"] and change.shown:
            return f" It is {'more' if change.value > 0 else 'less'} effective."
    return ""


def gate_meaning(gate: Gate) -> str:
    """Say what a gate means: whether it may go out."""
    if gate.outcome == "tilted":
        return "Do not ship it as it is: at least one comparison lies beyond what you allow."
    if gate.outcome == "inconclusive":
        passed = "; you let that pass" if gate.exit_code == 0 else ""
        return (
            f"It neither passed nor failed{passed}: these queries are too few to tell. Ask more of "
            "them, or allow more."
        )
    return "It may go out: every comparison is shown to stay within what you allow."


def bench_meaning(choice: Choice) -> str:
    """Say what a bench means: which correction to apply, or that none will do."""
    bench: Bench = choice.bench
    if not choice.is_tilted:
        return "Leave the ranker as it is: it is not shown to tilt by more than you call level."
    if choice.chosen is not None:
        cost = ", and replaces no more of the first ten results than you allow"
        if bench.is_judged:
            cost = ", and costs no more effectiveness than you allow"
        return (
            f"Apply {choice.chosen.name}: the ranker then stays within "
            f"{margin_words(choice.margin)} of level{cost}."
        )
    if choice.outcome == "cannot be mitigated within the budget":
        return (
            "No correction tried here does it within your budget: allow a greater cost, or change "
            "the ranker itself."
        )
    return (
        "The ranker tilts, and no correction is shown to be enough: some may be, but these queries "
        "are too few to tell. Test on more queries before you apply one."
    )


def check_meaning(check: CheckResult) -> str:
    """Say what a check means: whether an audit of this collection can be trusted."""
    if check.is_void:
        return (
            "Do not audit with this collection yet: its sides differ in ways that would pass for a "
            "tilt."
        )
    if not check.is_compared:
        return "There are no two sides here, so that no ranker can favour one."
    if check.of("warning"):
        return "You can audit with this collection; read what an audit finds with the warnings."
    return "You can audit with this collection: it compares like with like."


def explanation_meaning(explanation: Explanation) -> str:
    """Say what differences between texts mean."""
    effects = [effect for result in explanation.results for effect in result.effects]
    shown = list(dict.fromkeys(effect.what for effect in effects if effect.shown))
    if shown:
        return (
            f"The sides' texts differ in {counted(len(shown), 'property', 'properties')} by more "
            f"than chance explains. A ranker may go by {'it' if len(shown) == 1 else 'these'}; that "
            "one does, only an audit shows."
        )
    if effects:
        return "The sides' texts are alike in what was measured: a tilt would need another reason."
    return "This describes the texts; whom a ranker favours, only an audit shows."


def gaps_meaning(gaps: ExplainedGaps) -> str:
    """Say what the parts of a gap mean; never that they cause it."""
    shown = [gap for gap in gaps.primary if gap.is_shown]
    if not shown:
        return "No gap is shown, so that there is nothing yet to explain."
    parts = shown[0].shown_parts
    if not parts:
        return (
            "None of these properties is shown to go with the gap: look for the reason elsewhere."
        )
    names = join_words([part.property_name for part in parts[:_MOST_NAMED]])
    return (
        f"The gap goes with {names}: start there. That these cause it is not shown; a test with "
        "twins, or texts that are edited on purpose, would show it."
    )


def pairwise_meaning(audit: PairwiseAudit) -> str:
    """Say what a model's choices between two documents mean."""
    verdicts = [audit.verdict(outcome) for outcome in audit.outcomes]
    sides = list(dict.fromkeys(v.side for v in verdicts if v.side is not None))
    if len(sides) == 1:
        return (
            f"Asked which of two documents is more relevant, {audit.model} picks {sides[0]} ones "
            "more often than chance explains: do not let it decide between these groups."
        )
    if sides:
        return (
            f"Whom {audit.model} picks depends on whether the documents are relevant: do not let "
            "it decide between these groups."
        )
    return _unfavoured_meaning(verdicts)


def study_meaning(study: TrainingStudy) -> str:
    """Say what learning from another side changes."""
    for body, new, old in study.contrasts:
        changes = [
            evaluation.difference(new, old, study.primary)
            for evaluation in study.of_kind("supervised")
        ]
        shown = [change for change in changes if change is not None and change.shown]
        moved = [change for change in study.moved(new) if change.shown]
        front = f"{body} {new.removeprefix(f'{body} ')}, rather than on {study.reference},"
        effects = []
        if shown:
            effects.append(f"is {'more' if shown[0].value > 0 else 'less'} effective")
        if moved:
            side = moved[0].a if moved[0].value > 0 else moved[0].b
            effects.append(f"moves toward {side}")
        if effects:
            return f"{front} {join_words(effects)}, by more than chance explains."
    if study.contrasts:
        return "What rankers learned from is not shown to change them; a small change may be there."
    return "Nothing was trained on two sides, so that there is nothing to compare."


def sequential_meaning(audit: SequentialAudit) -> str:
    """Say what was decided while queries were asked."""
    if audit.decision == "tilted":
        side = audit.a if audit.looks[-1].value > 0 else audit.b
        other = audit.b if side == audit.a else audit.a
        return (
            f"{audit.run} puts {side} ahead of {other} by more than chance explains, whenever you "
            f"look: {_NOT_RELEVANCE}."
        )
    if audit.decision == "level":
        return (
            f"Neither side gains more than ±{audit.stop_at_tilt:g} points: there is nothing to "
            "correct."
        )
    return _UNDECIDED


def replayed_meaning(replayed: ReplayedLog) -> str:
    """Say whether a published run shows what its model can do."""
    total = len(replayed.answers)
    share = replayed.unreadable / total if total else math.nan
    if replayed.passed is False:
        return "Do not use this run: too many answers hold no ranking of the model's own."
    if share > 0:
        return (
            f"{100 * share:.0f} % of the answers hold no ranking of the model's own; what the run "
            "shows for them is the input order, or its parser's work."
        )
    return "Every answer holds a ranking: the run is the model's own work."
